"""Ascent of the dual of structural SVMs over planes that are kept (Murphy 19.7.2; Lacoste-Julien et al. 2013).

Block i has planes (a, b): its hinge is at least ``b - <w, a>``. Masses over the planes of a block, with that of the
true output (a = 0, b = 0) among them, add up to its cost, and ``w`` is the sum of mass times a over all of them.

The planes of a block lie in ``rooms[i]`` slots from ``starts[i]`` on, of which ``counts[i]`` are used and the first is
the true output; a slot says where its features are in a store of sparse rows. Inner products of the planes of a block
are kept, from ``squares[i]`` on (Shah et al. 2015): heights are worked out once for a visit of a block, after which a
step costs as much as the block has planes, and ``w`` is brought up to date at the end of the visit.

Invariant: masses are at least 0 and add up to costs, and the dual never falls. Free to change: the order of blocks and
of steps.
"""

from __future__ import annotations

import numpy as np

from markovfield.kernels.compiler import kernel

__all__ = ["AWAY", "PAIRWISE", "TOWARD", "ascend", "climb", "compact", "insert", "moved", "refresh"]

# How a step moves mass: from the worst plane that has some to the best one; from all to the best, or away from the
# worst to all, whichever gains more; from all to the best alone, which is the plain algorithm.
PAIRWISE, AWAY, TOWARD = 0, 1, 2


@kernel
def _dot(w, columns, values, first, size):
    total = 0.0
    for k in range(first, first + size):
        total += w[columns[k]] * values[k]
    return total


@kernel
def climb(gram, at, room, n, heights, masses, cost, n_steps, share, enough, kind, product):
    """Steps on one block until its gap is below a share of what it was at first; the rise of the dual.

    ``gram[at + i * room + j]`` are inner products; heights and masses of its ``n`` planes are changed in place, and
    ``product`` is room for as many numbers. The gap is the cost times the greatest height less the sum of mass times
    height.
    """
    risen, limit = 0.0, -1.0
    if kind != PAIRWISE:
        for i in range(n):
            product[i] = 0.0
            for j in range(n):
                product[i] += gram[at + i * room + j] * masses[j]
    for _ in range(n_steps):
        to, source, mean = 0, -1, 0.0
        for i in range(n):
            if heights[i] > heights[to]:
                to = i
            if masses[i] > 0.0:
                mean += masses[i] * heights[i]
                if source < 0 or heights[i] < heights[source]:
                    source = i
        gap = cost * heights[to] - mean
        if limit < 0.0:
            limit = max(share * gap, enough)
        if source < 0 or not gap > limit or not heights[to] > heights[source]:
            break
        if kind == PAIRWISE:
            gain, most = heights[to] - heights[source], masses[source]
            square = gram[at + to * room + to] + gram[at + source * room + source] - 2.0 * gram[at + to * room + source]
            step = most if gain >= square * most else gain / square
            masses[to] += step
            masses[source] = 0.0 if step == most else most - step
            for i in range(n):
                heights[i] -= step * (gram[at + i * room + to] - gram[at + i * room + source])
        else:
            away = kind == AWAY and mean - cost * heights[source] > gap and masses[source] < cost
            corner = source if away else to
            sign = -1.0 if away else 1.0
            gain = mean - cost * heights[source] if away else gap
            most = masses[source] / (cost - masses[source]) if away else 1.0
            square = cost * cost * gram[at + corner * room + corner] - 2.0 * cost * product[corner]
            for i in range(n):
                square += masses[i] * product[i]
            step = most if gain >= square * most else gain / square
            for i in range(n):
                change = cost * gram[at + i * room + corner] - product[i]
                heights[i] -= sign * step * change
                product[i] += sign * step * change
                masses[i] *= 1.0 - sign * step
            masses[corner] += sign * step * cost
            if step == most:
                for i in range(n):
                    if (away and i == source) or (not away and i != to):
                        masses[i] = 0.0
        risen += step * gain - 0.5 * step * step * square
    return risen


@kernel
def _visit(
    block, layout, slots, masses, losses, gram, columns, values, w, cost, n_steps, share, enough, kind, heights, own,
    product,
):  # fmt: skip
    """Steps on one block; ``heights`` are known. The weights are brought up to date."""
    n, first = layout[0, block], layout[2, block]
    for i in range(n):
        own[i] = masses[first + i]
    rise = climb(gram, layout[3, block], layout[1, block], n, heights, own, cost, n_steps, share, enough, kind, product)
    if rise > 0.0:
        for i in range(n):
            change = own[i] - masses[first + i]
            if change != 0.0:
                masses[first + i] = own[i]
                start, size = slots[0, first + i], slots[1, first + i]
                for k in range(start, start + size):
                    w[columns[k]] += change * values[k]
    return rise


@kernel
def ascend(
    blocks, layout, slots, masses, losses, gram, columns, values, w, costs, n_steps, share, enough, kind, rise
):  # fmt: skip
    """Steps on some blocks, in their order.

    ``layout`` is ``int64[4, n_blocks]``: counts, rooms, starts, squares; ``slots`` is ``int64[3, n]``: where features
    start, how many they are, and how long a plane has had no mass. The rise of the dual by the k-th block is put into
    ``rise[k]``.
    """
    room = 0
    for position in range(len(blocks)):
        room = max(room, layout[0, blocks[position]])
    heights, own, product = np.empty(room), np.empty(room), np.empty(room)
    for position in range(len(blocks)):
        block = blocks[position]
        n, first = layout[0, block], layout[2, block]
        if n == 1:
            rise[position] = 0.0
            continue
        for i in range(n):
            heights[i] = losses[first + i] - _dot(w, columns, values, slots[0, first + i], slots[1, first + i])
        rise[position] = _visit(
            block, layout, slots, masses, losses, gram, columns, values, w, costs[block], n_steps, share, enough, kind,
            heights, own, product,
        )  # fmt: skip


@kernel
def insert(
    blocks, offsets, new_columns, new_values, new_losses, layout, slots, masses, losses, gram, columns, values, used,
    w, scratch, costs, least, n_steps, share, enough, kind, gaps, rise,
):  # fmt: skip
    """Keep planes that are higher than what their block has by more than ``least``, with steps after each.

    Every block has an empty slot, and the store room for all features; ``used`` of it is. A block's gap is its cost
    times its hinge less what its masses make of it. Returns how much of the store is used then.
    """
    room = 0
    for position in range(len(blocks)):
        room = max(room, layout[0, blocks[position]] + 1)
    heights, own, product = np.empty(room), np.empty(room), np.empty(room)
    for position in range(len(blocks)):
        block = blocks[position]
        n, first, at, width = layout[0, block], layout[2, block], layout[3, block], layout[1, block]
        begin, end = offsets[position], offsets[position + 1]
        height, total = new_losses[position], 0.0
        for k in range(begin, end):
            scratch[new_columns[k]] += new_values[k]
            height -= w[new_columns[k]] * new_values[k]
        for k in range(begin, end):
            total += scratch[new_columns[k]] * new_values[k]
        best, mean = 0.0, 0.0
        for i in range(n):
            # Its height, and its product with the new plane, in one go through its features.
            value, inner = 0.0, 0.0
            for k in range(slots[0, first + i], slots[0, first + i] + slots[1, first + i]):
                value += w[columns[k]] * values[k]
                inner += scratch[columns[k]] * values[k]
            heights[i], product[i] = losses[first + i] - value, inner
            best = max(best, heights[i])
            mean += masses[first + i] * heights[i]
        for k in range(begin, end):
            scratch[new_columns[k]] = 0.0
        gaps[position] = costs[block] * max(height, best) - mean
        if height > best + least:
            slots[0, first + n], slots[1, first + n], slots[2, first + n] = used, end - begin, 0
            masses[first + n], losses[first + n], heights[n] = 0.0, new_losses[position], height
            for k in range(begin, end):
                columns[used], values[used] = new_columns[k], new_values[k]
                used += 1
            for i in range(n):
                gram[at + i * width + n] = product[i]
                gram[at + n * width + i] = product[i]
            gram[at + n * width + n] = total
            n += 1
            layout[0, block] = n
        rise[position] = 0.0
        if n > 1 and n_steps > 0:
            rise[position] = _visit(
                block, layout, slots, masses, losses, gram, columns, values, w, costs[block], n_steps, share, enough,
                kind, heights, own, product,
            )  # fmt: skip
    return used


@kernel
def moved(layout, old_layout, slots, old_slots, masses, old_masses, losses, old_losses, gram, old_gram):
    """Copy what all blocks have to slots of another layout."""
    for block in range(layout.shape[1]):
        n, first, old_first = old_layout[0, block], layout[2, block], old_layout[2, block]
        at, old_at = layout[3, block], old_layout[3, block]
        room, old_room = layout[1, block], old_layout[1, block]
        for i in range(n):
            for j in range(3):
                slots[j, first + i] = old_slots[j, old_first + i]
            masses[first + i] = old_masses[old_first + i]
            losses[first + i] = old_losses[old_first + i]
            for j in range(n):
                gram[at + i * room + j] = old_gram[old_at + i * old_room + j]


@kernel
def compact(layout, slots, masses, losses, gram, most_age):
    """Drop planes that have had no mass for so many calls, but never a true output; numbers that are still needed."""
    needed = 0
    for block in range(layout.shape[1]):
        n, first, at, room = layout[0, block], layout[2, block], layout[3, block], layout[1, block]
        kept = 0
        for i in range(n):
            slots[2, first + i] = 0 if masses[first + i] > 0.0 else slots[2, first + i] + 1
            if i > 0 and slots[2, first + i] > most_age:
                continue
            if kept != i:
                for j in range(3):
                    slots[j, first + kept] = slots[j, first + i]
                masses[first + kept], losses[first + kept] = masses[first + i], losses[first + i]
                for j in range(n):
                    gram[at + kept * room + j] = gram[at + i * room + j]
                for j in range(n):
                    gram[at + j * room + kept] = gram[at + j * room + i]
            needed += slots[1, first + kept]
            kept += 1
        layout[0, block] = kept
    return needed


@kernel
def refresh(layout, slots, masses, losses, columns, values, new_columns, new_values, w):
    """Copy features that are needed to another store, block after block, and work the weights out anew.

    Returns the sum of mass times loss.
    """
    used, total = 0, 0.0
    w[:] = 0.0
    for block in range(layout.shape[1]):
        for slot in range(layout[2, block], layout[2, block] + layout[0, block]):
            start, size = slots[0, slot], slots[1, slot]
            mass = masses[slot]
            for k in range(start, start + size):
                new_columns[used + k - start], new_values[used + k - start] = columns[k], values[k]
                w[columns[k]] += mass * values[k]
            slots[0, slot] = used
            used += size
            total += mass * losses[slot]
    return total
