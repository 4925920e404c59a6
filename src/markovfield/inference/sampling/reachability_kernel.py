"""Where moves of one variable can lead among the assignments that hard zeros leave.

Invariant: components are named by their first variable; ``states`` come back unchanged. Free to change: how states are
visited.
"""

from __future__ import annotations

import numpy as np

from markovfield.kernels.compiler import kernel
from markovfield.kernels.union_find import find

__all__ = ["FROZEN", "MOVES", "SPLIT", "UNDECIDED", "hard_components", "reach"]

MOVES, SPLIT, FROZEN, UNDECIDED = 0, 1, 2, 3


@kernel
def hard_components(scope_offsets, scopes, hard, n):  # type: ignore[no-untyped-def]
    """``int64[n]``: the component of each variable among factors with hard zeros, named by its first variable."""
    parent = np.arange(n)
    for f in range(len(hard)):
        if hard[f]:
            for k in range(scope_offsets[f] + 1, scope_offsets[f + 1]):
                a, b = find(parent, np.int64(scopes[k - 1])), find(parent, np.int64(scopes[k]))
                parent[max(a, b)] = min(a, b)
    for v in range(n):
        parent[v] = find(parent, v)
    return parent


@kernel
def _allowed(f, scope_offsets, scopes, table_offsets, table_strides, log_tables, states):  # type: ignore[no-untyped-def]
    cell = table_offsets[f]
    for k in range(scope_offsets[f], scope_offsets[f + 1]):
        cell += table_strides[k] * states[scopes[k]]
    return log_tables[cell] > -np.inf


@kernel
def _all_allowed(factors, scope_offsets, scopes, table_offsets, table_strides, log_tables, states):  # type: ignore[no-untyped-def]
    fits = True
    for f in factors:
        fits = fits and _allowed(f, scope_offsets, scopes, table_offsets, table_strides, log_tables, states)
    return fits


@kernel
def _can_move(  # type: ignore[no-untyped-def]
    members, cardinalities, scope_offsets, scopes, table_offsets, table_strides, log_tables, variable_offsets,
    variable_factors, states,
):  # fmt: skip
    """Whether any variable of a component has another state that is allowed, the others staying as they are."""
    for v in members:
        old = states[v]
        for k in range(cardinalities[v]):
            if k != old:
                states[v] = k
                fits = True
                for j in range(variable_offsets[v], variable_offsets[v + 1]):
                    f = np.int64(variable_factors[j])
                    fits = fits and _allowed(f, scope_offsets, scopes, table_offsets, table_strides, log_tables, states)
                states[v] = old
                if fits:
                    return True
    return False


@kernel
def reach(  # type: ignore[no-untyped-def]
    members, factors, joint, cardinalities, scope_offsets, scopes, table_offsets, table_strides, log_tables,
    variable_offsets, variable_factors, states,
):  # fmt: skip
    """Whether single-site moves join all allowed states of a component (``members``, ``factors``), or `SPLIT` them.

    ``joint`` is how many joint states it has, or 0 where they are too many to visit: then the answer is `FROZEN` where
    no variable can leave its state in ``states``, and `UNDECIDED` otherwise. ``states`` come back as they were.
    """
    if joint == 0:
        moves = _can_move(
            members, cardinalities, scope_offsets, scopes, table_offsets, table_strides, log_tables, variable_offsets,
            variable_factors, states,
        )  # fmt: skip
        return UNDECIDED if moves else FROZEN
    m = len(members)
    start = states.copy()
    steps = np.empty(m, np.int64)
    step, here = 1, 0
    for j in range(m - 1, -1, -1):
        steps[j] = step
        step *= cardinalities[members[j]]
        here += steps[j] * states[members[j]]
    # 1: allowed; 2: reached.
    marks = np.zeros(joint, np.uint8)
    allowed = 0
    for index in range(joint):
        for j in range(m):
            states[members[j]] = index // steps[j] % cardinalities[members[j]]
        if _all_allowed(factors, scope_offsets, scopes, table_offsets, table_strides, log_tables, states):
            marks[index] = 1
            allowed += 1
    for j in range(m):
        states[members[j]] = start[members[j]]
    stack = np.empty(allowed + 1, np.int64)
    stack[0], depth, reached = here, 1, 1
    marks[here] = 2
    while depth:
        depth -= 1
        at = stack[depth]
        for j in range(m):
            card = cardinalities[members[j]]
            now = at // steps[j] % card
            for k in range(card):
                other = at + (k - now) * steps[j]
                if marks[other] == 1:
                    marks[other] = 2
                    stack[depth] = other
                    depth += 1
                    reached += 1
    return MOVES if reached == allowed else SPLIT
