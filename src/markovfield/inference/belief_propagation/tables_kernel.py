"""Messages on the edges of any factor graph in scaled linear space: sums or maxima of products.

Edges and their messages lie as in `MessageLayout`. A message sums to one, in maxima too. What lies in a connected
component of the graph that is not ``active`` is passed over. ``flags`` and ``residuals`` have an entry for each: what
happened there, and how far a message moved at most: the largest change of an entry in proportion to its size. (The sum
of all changes would call a message converged whose small entries are still on their way, and a factor of many powers of
ten may make those the ones that matter.)

All of that is invariant. Free to change: the special cases for two and three axes and for two states.
"""

from __future__ import annotations

import numpy as np

from markovfield.kernels.compiler import kernel

__all__ = [
    "CONTRADICTION",
    "LOW",
    "binary_moved",
    "keep_message",
    "message_moved",
    "message_to_variable",
    "messages_of_binary",
    "messages_of_variable",
    "pair_messages",
    "table_messages",
    "triple_messages",
]

LOW = 1
"""Flag: an entry is so small that products of such may vanish."""
CONTRADICTION = 2
"""Flag: all entries of a message or belief are zero."""
TINY, HUGE = 1e-100, 1e100
BOTTOM = 1e-250


@kernel
def table_messages(
    first, last, base, target, message_offsets, table_strides, tables, variable_to_factor, maximise, fresh, walk, part
):  # fmt: skip
    """Messages of a table of any arity to all its edges ``first:last``, or to the edge ``target`` alone.

    Not scaled; written to ``fresh`` at the edges' message offsets less that of ``first``. The last axis is the inner
    loop, the others count like an odometer; ``part[0]`` and ``part[1]`` hold products of the messages before and
    after an axis.
    """
    at = message_offsets[first]
    for i in range(message_offsets[last] - at):
        fresh[i] = 0.0
    outer = last - first - 1
    inner = last - 1
    stride, offset = table_strides[inner], message_offsets[inner]
    card = message_offsets[last] - offset
    for a in range(outer):
        walk[a] = 0
    cell = base
    part[1, outer] = 1.0
    while True:
        part[0, 0] = 1.0
        for a in range(outer):
            part[0, a + 1] = part[0, a] * variable_to_factor[message_offsets[first + a] + walk[a]]
        weight = part[0, outer]
        if target < 0 or target == inner:
            if maximise:
                for j in range(card):
                    x = weight * tables[cell + j * stride]
                    fresh[offset - at + j] = max(fresh[offset - at + j], x)
            else:
                for j in range(card):
                    fresh[offset - at + j] += weight * tables[cell + j * stride]
        if target != inner:
            total = 0.0
            if maximise:
                for j in range(card):
                    total = max(total, variable_to_factor[offset + j] * tables[cell + j * stride])
            else:
                for j in range(card):
                    total += variable_to_factor[offset + j] * tables[cell + j * stride]
            for a in range(outer - 1, -1, -1):
                to = message_offsets[first + a] + walk[a]
                if target < 0 or target == first + a:
                    x = part[0, a] * part[1, a + 1] * total
                    fresh[to - at] = max(fresh[to - at], x) if maximise else fresh[to - at] + x
                part[1, a] = part[1, a + 1] * variable_to_factor[to]
        a = outer - 1
        while a >= 0:
            e = first + a
            walk[a] += 1
            cell += table_strides[e]
            if walk[a] < message_offsets[e + 1] - message_offsets[e]:
                break
            cell -= table_strides[e] * walk[a]
            walk[a] = 0
            a -= 1
        if a < 0:
            return


@kernel
def triple_messages(first, base, message_offsets, table_strides, tables, variable_to_factor, fresh):
    """As `table_messages` for three axes and sums, to all edges: most wider tables have three, and few states."""
    x, y, z, end = (
        message_offsets[first],
        message_offsets[first + 1],
        message_offsets[first + 2],
        message_offsets[first + 3],
    )
    step, stride = table_strides[first + 1], table_strides[first + 2]
    for i in range(end - x):
        fresh[i] = 0.0
    for i in range(y - x):
        weight, row, to_x = variable_to_factor[x + i], base + i * table_strides[first], 0.0
        for j in range(z - y):
            other, total, cell = variable_to_factor[y + j], 0.0, row + j * step
            both = weight * other
            for k in range(end - z):
                t = tables[cell + k * stride]
                total += t * variable_to_factor[z + k]
                fresh[z - x + k] += both * t
            fresh[y - x + j] += weight * total
            to_x += other * total
        fresh[i] = to_x


@kernel
def pair_messages(tables, base, step, stride, x, y, to_x, to_y, maximise):
    """Both messages of a table of two axes, not scaled; each row of the table is read once.

    Stretches of arrays, not offsets into them: an index that might be negative keeps a loop from being vectorised.
    """
    n = len(y)
    for j in range(n):
        to_y[j] = 0.0
    for i in range(len(x)):
        weight, total, at = x[i], 0.0, base + i * step
        if stride == 1:
            row = tables[at : at + n]
            if maximise:
                one, two, three = 0.0, 0.0, 0.0
                whole = n - n % 4
                for j in range(0, whole, 4):
                    total = max(total, row[j] * y[j])
                    one = max(one, row[j + 1] * y[j + 1])
                    two = max(two, row[j + 2] * y[j + 2])
                    three = max(three, row[j + 3] * y[j + 3])
                for j in range(whole, n):
                    total = max(total, row[j] * y[j])
                total = max(total, one, two, three)
                for j in range(n):
                    to_y[j] = max(to_y[j], weight * row[j])
            else:
                for j in range(n):
                    total += row[j] * y[j]
                for j in range(n):
                    to_y[j] += weight * row[j]
        elif maximise:
            for j in range(n):
                t = tables[at + j * stride]
                total = max(total, t * y[j])
                to_y[j] = max(to_y[j], weight * t)
        else:
            for j in range(n):
                t = tables[at + j * stride]
                total += t * y[j]
                to_y[j] += weight * t
        to_x[i] = total


@kernel
def binary_moved(x, y, old_x, old_y):
    """The larger change of two entries in proportion to its size, with one division; zeros that stay have not moved."""
    a, b = abs(x - old_x), abs(y - old_y)
    larger_x, larger_y = max(x, old_x), max(y, old_y)
    if a * larger_y > b * larger_x:
        return a / larger_x if larger_x > 0.0 else 0.0
    return b / larger_y if larger_y > 0.0 else 0.0


@kernel
def message_moved(fresh, scale, old):
    """The largest change of an entry of ``scale * fresh`` in proportion to its size, with one division."""
    change, size = 0.0, 1.0
    for i in range(len(old)):
        x = fresh[i] * scale
        moved, larger = abs(x - old[i]), max(x, old[i])
        if moved * size > change * larger:
            change, size = moved, larger
    return change / size


@kernel
def keep_message(fresh, messages, damping, floor):
    """Scale a new message to sum one, mix it with the one kept and keep it: how far it moved, and flags.

    A zero is kept a zero whatever the damping, so that hard constraints hold at once.
    """
    total = 0.0
    for i in range(len(messages)):
        total += fresh[i]
    if not total > 0.0:
        return 0.0, CONTRADICTION
    scale = 1.0 / total
    moved, low = message_moved(fresh, scale, messages), 0
    for i in range(len(messages)):
        x = fresh[i] * scale
        messages[i] = x + damping * (messages[i] - x) if x > 0.0 else 0.0
    if floor > 0.0:
        for i in range(len(messages)):
            low |= (messages[i] < floor) & (messages[i] > 0.0)
    return moved, low


@kernel
def messages_of_variable(slots, unary, variable_to_factor, factor_to_variable, product, floor):
    """All messages of one variable, each scaled to sum one; the product of all it received stays in ``product``."""
    card = len(unary)
    flag = 0
    for i in range(card):
        product[i] = 1.0
    for k in range(len(slots) - 1, -1, -1):
        at = slots[k]
        out, received = variable_to_factor[at : at + card], factor_to_variable[at : at + card]
        total = 0.0
        for i in range(card):
            out[i] = product[i]
            product[i] *= received[i]
            total += product[i]
        if floor > 0.0:
            for i in range(card):
                flag |= (product[i] < BOTTOM) & (product[i] > 0.0)
        if total < TINY:
            for i in range(card):
                product[i] *= HUGE
    for i in range(card):
        product[i] = unary[i]
    for k in range(len(slots)):
        at = slots[k]
        out, received = variable_to_factor[at : at + card], factor_to_variable[at : at + card]
        total, whole = 0.0, 0.0
        for i in range(card):
            out[i] *= product[i]
            total += out[i]
            product[i] *= received[i]
            whole += product[i]
        if whole < TINY:
            for i in range(card):
                product[i] *= HUGE
        if not (total > 0.0 and whole > 0.0):
            flag |= CONTRADICTION
            continue
        scale = 1.0 / total
        for i in range(card):
            out[i] *= scale
        if floor > 0.0:
            for i in range(card):
                flag |= ((out[i] < floor) & (out[i] > 0.0)) | ((product[i] < BOTTOM) & (product[i] > 0.0))
    return flag


@kernel
def messages_of_binary(first, last, slots, p0, p1, variable_to_factor, factor_to_variable, floor):
    """As `messages_of_variable`, for a variable of two states whose unary potentials are p0 and p1; flags."""
    flag = 0
    s0, s1 = 1.0, 1.0
    for k in range(last - 1, first - 1, -1):
        to = slots[k]
        variable_to_factor[to], variable_to_factor[to + 1] = s0, s1
        s0 *= factor_to_variable[to]
        s1 *= factor_to_variable[to + 1]
        if floor > 0.0:
            flag |= ((s0 < BOTTOM) & (s0 > 0.0)) | ((s1 < BOTTOM) & (s1 > 0.0))
        if s0 + s1 < TINY:
            s0, s1 = s0 * HUGE, s1 * HUGE
    s0, s1 = p0, p1
    for k in range(first, last):
        to = slots[k]
        a, b = variable_to_factor[to] * s0, variable_to_factor[to + 1] * s1
        if a + b > 0.0:
            scale = 1.0 / (a + b)
            a, b = a * scale, b * scale
        else:
            flag |= CONTRADICTION
        variable_to_factor[to], variable_to_factor[to + 1] = a, b
        s0 *= factor_to_variable[to]
        s1 *= factor_to_variable[to + 1]
        if floor > 0.0:
            flag |= ((a < floor) & (a > 0.0)) | ((b < floor) & (b > 0.0))
            flag |= ((s0 < BOTTOM) & (s0 > 0.0)) | ((s1 < BOTTOM) & (s1 > 0.0))
        if s0 + s1 < TINY:
            s0, s1 = s0 * HUGE, s1 * HUGE
    if not s0 + s1 > 0.0:
        flag |= CONTRADICTION
    return flag


@kernel
def message_to_variable(
    e, first, last, base, message_offsets, table_strides, tables, variable_to_factor, maximise, fresh, walk, part
):
    """The message on edge e from its factor in linear space, not scaled; where in ``fresh`` it starts."""
    if last - first == 3:
        one = first + 1 if e == first else first
        two = 3 * first + 3 - e - one
        y, z = message_offsets[one], message_offsets[two]
        n_y, n_z = message_offsets[one + 1] - y, message_offsets[two + 1] - z
        stride = table_strides[two]
        for i in range(message_offsets[e + 1] - message_offsets[e]):
            total = 0.0
            for j in range(n_y):
                cell, inner = base + i * table_strides[e] + j * table_strides[one], 0.0
                if maximise:
                    for k in range(n_z):
                        inner = max(inner, tables[cell + k * stride] * variable_to_factor[z + k])
                    total = max(total, inner * variable_to_factor[y + j])
                else:
                    for k in range(n_z):
                        inner += tables[cell + k * stride] * variable_to_factor[z + k]
                    total += inner * variable_to_factor[y + j]
            fresh[i] = total
        return np.int64(0)
    if last - first > 3:
        table_messages(
            first, last, base, e, message_offsets, table_strides, tables, variable_to_factor, maximise, fresh, walk,
            part,
        )  # fmt: skip
        return message_offsets[e] - message_offsets[first]
    other = first + last - 1 - e
    step, stride = table_strides[e], table_strides[other]
    card = message_offsets[e + 1] - message_offsets[e]
    y = variable_to_factor[message_offsets[other] : message_offsets[other + 1]]
    if maximise:
        for i in range(card):
            best = 0.0
            for j in range(len(y)):
                best = max(best, tables[base + i * step + j * stride] * y[j])
            fresh[i] = best
    elif stride == 1 and len(y) > 4:
        for i in range(card):
            row = tables[base + i * step : base + i * step + len(y)]
            total = 0.0
            for j in range(len(y)):
                total += row[j] * y[j]
            fresh[i] = total
    elif step == 1 and card > 4:
        out = fresh[:card]
        for i in range(card):
            out[i] = 0.0
        for j in range(len(y)):
            row, weight = tables[base + j * stride : base + j * stride + card], y[j]
            for i in range(card):
                out[i] += weight * row[i]
    else:
        for i in range(card):
            total = 0.0
            for j in range(len(y)):
                total += tables[base + i * step + j * stride] * y[j]
            fresh[i] = total
    return np.int64(0)
