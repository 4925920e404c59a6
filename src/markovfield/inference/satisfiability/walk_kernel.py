"""MaxWalkSAT: take a factor that is not satisfied, and change one of its variables; component by component.

What every change would gain is kept at hand (`markovfield.inference.local_search.local_search_kernel`), so that the
best change of a factor is a look-up for each of its variables. Factors that are not satisfied are listed, each
component's in a part of one array: those that read -inf (broken) from its front, the others (short) from its end.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from markovfield.factors.kinds_kernel import DISTANCE, PARITY, TABLE
from markovfield.inference.local_search.local_search_kernel import cell_of, change, part_of
from markovfield.kernels.compiler import kernel
from markovfield.kernels.random import draw_index, draw_unit
from markovfield.kernels.union_find import flatten, unite

__all__ = ["Lists", "Parts", "fill_tops", "label_components", "unsatisfied", "walk"]


class Parts(NamedTuple):
    """Connected components of the variables that are free: their variables, and their factors.

    ``top`` is the largest log-potential that each factor can read; a factor without a free variable is in no component.
    """

    variable_offsets: np.ndarray
    variables: np.ndarray
    factor_offsets: np.ndarray
    factors: np.ndarray
    top: np.ndarray


class Lists(NamedTuple):
    """What is not satisfied, and the best assignment of each component.

    ``places`` is each factor's place in ``listed``, or -1; ``sizes[c]`` how many factors of a component are broken, and
    how many short. ``record[c]`` has the broken constraints and the score of its best assignment and of the present
    one, counted from where the search began. ``moved`` lists, component by component, variables that may differ from
    ``best``, and ``n_moved[c]`` how many; one more than there is room for says that all may.
    """

    places: np.ndarray
    listed: np.ndarray
    sizes: np.ndarray
    record: np.ndarray
    best: np.ndarray
    moved: np.ndarray
    n_moved: np.ndarray
    until: np.ndarray


@kernel
def _top(at, f, states):
    """The largest log-potential that a factor can read while fixed variables stay; ``states`` are scratch."""
    first, last = at.scope_offsets[f], at.scope_offsets[f + 1]
    kind, cap, base = at.kind[f], at.caps[f], at.table_offsets[f]
    best = -np.inf
    if kind not in (TABLE, DISTANCE):
        # Any number of true literals from those that are certain to those that are possible.
        least, most = np.int64(0), np.int64(0)
        for p in range(first, last):
            v, stride = at.scopes[p], at.table_strides[p]
            now = part_of(kind, stride, p == first, states[v])
            if at.fixed[v] or at.cardinalities[v] < 2:
                least, most = least + now, most + now
            else:
                most += 1
        most = min(most, least + 1 if kind == PARITY else max(least, cap))
        for count in range(least, most + 1):
            best = max(best, at.log_tables[base + cell_of(kind, cap, count)])
        return best
    total = np.int64(0)
    kept = np.empty(last - first, np.int64)
    for p in range(first, last):
        v = at.scopes[p]
        kept[p - first] = states[v]
        if not at.fixed[v]:
            states[v] = 0
        total += part_of(kind, at.table_strides[p], p == first, states[v])
    while True:
        best = max(best, at.log_tables[base + cell_of(kind, cap, total)])
        p = last - 1
        while p >= first:
            v, stride = at.scopes[p], at.table_strides[p]
            if not at.fixed[v]:
                total -= part_of(kind, stride, p == first, states[v])
                states[v] = states[v] + 1 if states[v] + 1 < at.cardinalities[v] else 0
                total += part_of(kind, stride, p == first, states[v])
                if states[v]:
                    break
            p -= 1
        if p < first:
            break
    for p in range(first, last):
        states[at.scopes[p]] = kept[p - first]
    return best


@kernel
def fill_tops(at, states, top):
    """`_top` of every factor."""
    for f in range(len(top)):
        top[f] = _top(at, f, states)


@kernel
def label_components(at, label):
    """The component of each free variable, numbered by their first variables; -1 for others. How many there are."""
    n = len(label)
    for v in range(n):
        label[v] = v
    for f in range(len(at.table_offsets)):
        front = np.int64(-1)
        for p in range(at.scope_offsets[f], at.scope_offsets[f + 1]):
            v = np.int64(at.scopes[p])
            if not at.fixed[v] and at.cardinalities[v] > 1:
                if front >= 0:
                    unite(label, front, v)
                else:
                    front = v
    flatten(label)
    count = 0
    for v in range(n):
        root = label[v]
        if root == v:
            if at.fixed[v] or at.cardinalities[v] < 2:
                label[v] = -1
            else:
                label[v] = count
                count += 1
        else:
            label[v] = label[root]
    return count


@kernel
def _note(parts, lists, c, f, value):
    """Put a factor of component c that now reads ``value`` into the list it belongs to, or take it out."""
    begin, end = parts.factor_offsets[c], parts.factor_offsets[c + 1]
    places, listed, sizes = lists.places, lists.listed, lists.sizes
    place = places[f]
    was = 0 if place < 0 else (1 if place < begin + sizes[c, 0] else 2)
    now = 0 if value >= parts.top[f] else (1 if value == -np.inf else 2)
    if was == now:
        return
    if was == 1:
        sizes[c, 0] -= 1
        other = listed[begin + sizes[c, 0]]
        listed[place] = other
        places[other] = place
    elif was == 2:
        other = listed[end - sizes[c, 1]]
        sizes[c, 1] -= 1
        listed[place] = other
        places[other] = place
    if now == 1:
        place = begin + sizes[c, 0]
        sizes[c, 0] += 1
    elif now == 2:
        sizes[c, 1] += 1
        place = end - sizes[c, 1]
    else:
        places[f] = -1
        return
    listed[place] = f
    places[f] = place


@kernel
def _read(at, totals, f):
    """The log-potential that a factor reads."""
    return at.log_tables[at.table_offsets[f] + cell_of(at.kind[f], at.caps[f], totals[f])]


@kernel
def _take(at, parts, lists, c, v, state, states, totals, soft, hard):
    """Change a variable of a component, with lists and record."""
    old, new = at.value_offsets[v] + states[v], at.value_offsets[v] + state
    lists.record[c, 2] += hard[new] - hard[old]
    lists.record[c, 3] += soft[new] - soft[old]
    change(at, v, state, states, totals, soft, hard)
    for i in range(at.variable_offsets[v], at.variable_offsets[v + 1]):
        f = np.int64(at.variable_factors[i])
        _note(parts, lists, c, f, _read(at, totals, f))
    begin, room = parts.variable_offsets[c], parts.variable_offsets[c + 1] - parts.variable_offsets[c]
    if lists.n_moved[c] < room:
        lists.moved[begin + lists.n_moved[c]] = v
        lists.n_moved[c] += 1
    else:
        lists.n_moved[c] = room + 1


@kernel
def _keep(parts, lists, c, states):
    """Remember the present assignment of a component as its best."""
    begin, room = parts.variable_offsets[c], parts.variable_offsets[c + 1] - parts.variable_offsets[c]
    if lists.n_moved[c] <= room:
        for i in range(begin, begin + lists.n_moved[c]):
            lists.best[lists.moved[i]] = states[lists.moved[i]]
    else:
        for i in range(begin, begin + room):
            lists.best[parts.variables[i]] = states[parts.variables[i]]
    lists.n_moved[c] = 0
    lists.record[c, 0], lists.record[c, 1] = lists.record[c, 2], lists.record[c, 3]


@kernel
def _scatter(at, parts, lists, c, stream, states, totals, soft, hard):
    """Put the variables of a component into random states."""
    for i in range(parts.variable_offsets[c], parts.variable_offsets[c + 1]):
        v = np.int64(parts.variables[i])
        state = draw_index(stream, at.cardinalities[v])
        if state != states[v]:
            _take(at, parts, lists, c, v, state, states, totals, soft, hard)


@kernel
def _choose(at, lists, c, f, clock, noise, stream, states, soft, hard):
    """A variable of a factor, times 2^32, and a state for it; by chance, or where all are tabu, a random one."""
    first, width = at.scope_offsets[f], at.scope_offsets[f + 1] - at.scope_offsets[f]
    record, room = lists.record, 1e-9 * at.unit
    chosen, to, ties = np.int64(-1), np.int64(0), 0
    least, most = np.int64(0), -np.inf
    if draw_unit(stream) >= noise:
        for p in range(first, first + width):
            v = np.int64(at.scopes[p])
            if at.fixed[v]:
                continue
            base = at.value_offsets[v]
            own = base + states[v]
            for k in range(at.cardinalities[v]):
                if k == states[v]:
                    continue
                worse = hard[base + k] - hard[own]
                gain = soft[base + k] - soft[own]
                if lists.until[v] > clock:
                    broken = record[c, 2] + worse
                    better = broken < record[c, 0]
                    better = better or (broken == record[c, 0] and record[c, 3] + gain > record[c, 1] + room)
                    if not better:
                        continue
                if chosen < 0 or worse < least or (worse == least and gain > most):
                    chosen, to, least, most, ties = v, np.int64(k), worse, gain, 1
                elif worse == least and gain == most:
                    ties += 1
                    if draw_index(stream, ties) == 0:
                        chosen, to = v, np.int64(k)
    if chosen < 0:
        p = draw_index(stream, width)
        chosen = np.int64(at.scopes[first + p])
        while at.fixed[chosen] or at.cardinalities[chosen] < 2:
            p = (p + 1) % width
            chosen = np.int64(at.scopes[first + p])
        to = draw_index(stream, at.cardinalities[chosen] - 1)
        to += to >= states[chosen]
    return (chosen << 32) + to


@kernel
def walk(at, parts, lists, begin, end, left, renew, noise, tenure, most, stream, states, totals, soft, hard):
    """Walk in the components from ``begin`` to ``end``, each for ``left[c]`` steps; the work that was done.

    A component is left as soon as all of its factors are satisfied. It stops when ``most`` factors were looked at;
    what is left of the steps tells where. With ``renew`` a component's walk begins at a random assignment.
    """
    done = 0
    mask = (np.int64(1) << 32) - 1
    room = 1e-9 * at.unit
    for c in range(begin, end):
        if left[c] < 0:
            # Steps are negative until the walk of a component has begun.
            left[c] = -left[c]
            for i in range(parts.factor_offsets[c], parts.factor_offsets[c + 1]):
                f = np.int64(parts.factors[i])
                _note(parts, lists, c, f, _read(at, totals, f))
            if renew and lists.sizes[c, 0] + lists.sizes[c, 1]:
                _scatter(at, parts, lists, c, stream, states, totals, soft, hard)
            for i in range(parts.variable_offsets[c], parts.variable_offsets[c + 1]):
                lists.until[parts.variables[i]] = -left[c]
            done += parts.factor_offsets[c + 1] - parts.factor_offsets[c]
        from_end = parts.factor_offsets[c + 1] - 1
        while left[c] > 0:
            if done >= most:
                return done
            broken, short = lists.sizes[c, 0], lists.sizes[c, 1]
            if broken + short == 0:
                left[c] = 0
                break
            if broken:
                f = lists.listed[parts.factor_offsets[c] + draw_index(stream, broken)]
            else:
                f = lists.listed[from_end - draw_index(stream, short)]
            picked = _choose(at, lists, c, f, -left[c], noise, stream, states, soft, hard)
            v, state = picked >> 32, picked & mask
            _take(at, parts, lists, c, v, state, states, totals, soft, hard)
            lists.until[v] = tenure - left[c]
            left[c] -= 1
            done += 1 + at.variable_offsets[v + 1] - at.variable_offsets[v]
            record = lists.record
            fewer = record[c, 2] < record[c, 0]
            if fewer or (record[c, 2] == record[c, 0] and record[c, 3] > record[c, 1] + room):
                _keep(parts, lists, c, states)
    return done


@kernel
def unsatisfied(at, parts, stream, totals, out):
    """A free variable of each factor that is not satisfied, at random, in ``out`` (as long as factors); how many."""
    count = 0
    for i in range(len(parts.factors)):
        f = np.int64(parts.factors[i])
        if _read(at, totals, f) < parts.top[f]:
            first, width = at.scope_offsets[f], at.scope_offsets[f + 1] - at.scope_offsets[f]
            p = draw_index(stream, width)
            while at.fixed[at.scopes[first + p]] or at.cardinalities[at.scopes[first + p]] < 2:
                p = (p + 1) % width
            out[count] = at.scopes[first + p]
            count += 1
    return count
