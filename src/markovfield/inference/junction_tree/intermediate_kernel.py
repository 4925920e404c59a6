"""Intermediate cliques: small ones under a large clique that gather what it would otherwise meet one by one.

A clique of a million states that holds six factors multiplies a million states six times, and one with nine children is
summed nine times. Factors, children and variables over few of its variables are therefore gathered under a small
clique in between: the factors are multiplied there, where it costs little; on the way back the large clique is summed
once onto the intermediate clique, and the children's separators and the variables' marginals are read there. A factor
or a separator inside the scope of another always joins it. An intermediate clique has no residual.

Free to change: `SMALLEST`, `SHARE` and `MOST`, which change cost alone.
"""

from __future__ import annotations

import numpy as np

from markovfield.kernels.compiler import kernel

__all__ = ["add_intermediate_cliques"]

SMALLEST = 1024.0
"""Cliques below this many states are left alone: an intermediate clique has a cost of its own."""
SHARE = 8.0
"""An intermediate clique has at most this fraction of its clique's states."""
MOST = 8
"""Intermediate cliques per clique."""


@kernel
def _separators(parent, offsets, members, n_variables):
    """What each clique shares with its parent, as offsets and a flat list."""
    n = len(parent)
    inside = np.full(n_variables, -1, np.int64)
    result_offsets = np.zeros(n + 1, np.int64)
    result = np.empty(len(members), np.int32)
    used = 0
    for c in range(n):
        p = parent[c]
        if p >= 0:
            for i in range(offsets[c], offsets[c + 1]):
                inside[members[i]] = c
            for i in range(offsets[p], offsets[p + 1]):
                if inside[members[i]] == c:
                    result[used] = members[i]
                    used += 1
        result_offsets[c + 1] = used
    return result_offsets, result


@kernel
def _grown(cardinalities, inside, group, size, scopes, start, stop):
    """States of a group after a scope joins it."""
    for i in range(start, stop):
        v = scopes[i]
        if cardinalities[v] > 1 and not inside[group, v]:
            size *= cardinalities[v]
    return size


@kernel
def _place(cardinalities, inside, sizes, groups, limit, scopes, start, stop):
    """Put a scope into the group that stays smallest, or into a new one; -1 when it is too large for any.

    Returns the group and how many there are now.
    """
    best, best_size = -1, np.inf
    for g in range(groups):
        size = _grown(cardinalities, inside, g, sizes[g], scopes, start, stop)
        if size <= limit and size < best_size:
            best, best_size = g, size
    if best < 0 and groups < MOST:
        size = _grown(cardinalities, inside, groups, 1.0, scopes, start, stop)
        if size <= limit:
            best, best_size = groups, size
            groups += 1
    if best >= 0:
        sizes[best] = best_size
        for i in range(start, stop):
            if cardinalities[scopes[i]] > 1:
                inside[best, scopes[i]] = True
    return best, groups


@kernel
def _lists(owner, n):
    """Members of each owner as linked lists: head and next."""
    head = np.full(n, -1, np.int64)
    following = np.full(len(owner), -1, np.int64)
    for i in range(len(owner) - 1, -1, -1):
        if owner[i] >= 0:
            following[i] = head[owner[i]]
            head[owner[i]] = i
    return head, following


@kernel
def add_intermediate_cliques(cardinalities, scope_offsets, scopes, parent, offsets, members, sizes, home, unit):
    """Add intermediate cliques to the large cliques of a tree; factors and children that join one move there.

    Returns the tree's arrays with the intermediate cliques appended: parent, offsets, members, sizes, unit. ``home`` is
    changed in place.
    """
    n = len(parent)
    n_variables = len(cardinalities)
    answers_at = np.full(n_variables, -1, np.int64)
    n_large, n_wide = 0, 0
    for c in range(n):
        for i in range(offsets[c], offsets[c + 1]):
            v = members[i]
            if answers_at[v] < 0 or sizes[c] < sizes[answers_at[v]]:
                answers_at[v] = c
        if sizes[c] >= SMALLEST:
            n_large += 1
            n_wide += offsets[c + 1] - offsets[c]
    if n_large == 0:
        return parent, offsets, members, sizes, unit
    factor_head, factor_next = _lists(home, n)
    child_head, child_next = _lists(parent, n)
    separator_offsets, separators = _separators(parent, offsets, members, n_variables)
    inside = np.zeros((MOST, n_variables), np.bool_)
    group_size = np.ones(MOST)
    load = np.zeros((MOST, 3), np.int64)
    factor_group = np.full(len(home), -1, np.int64)
    child_group = np.full(n, -1, np.int64)
    single = np.empty(1, np.int32)
    extra = MOST * n_large
    all_parent = np.empty(n + extra, np.int64)
    all_offsets = np.empty(n + extra + 1, np.int64)
    all_members = np.empty(len(members) + MOST * n_wide, np.int32)
    all_sizes = np.empty(n + extra)
    all_unit = np.empty(n + extra, np.bool_)
    all_offsets[0] = 0
    for c in range(n):
        all_parent[c], all_sizes[c], all_unit[c] = parent[c], sizes[c], unit[c]
        all_offsets[c + 1] = offsets[c + 1]
    for i in range(len(members)):
        all_members[i] = members[i]
    k, used = n, len(members)
    for c in range(n):
        if sizes[c] < SMALLEST:
            continue
        limit = sizes[c] / SHARE
        for i in range(offsets[c], offsets[c + 1]):
            for g in range(MOST):
                inside[g, members[i]] = False
        for g in range(MOST):
            load[g, 0], load[g, 1], load[g, 2] = 0, 0, 0
        groups = 0
        # Children first: their separators are the largest, and smaller scopes fall inside them.
        d = child_head[c]
        while d >= 0:
            child_group[d], groups = _place(
                cardinalities,
                inside,
                group_size,
                groups,
                limit,
                separators,
                separator_offsets[d],
                separator_offsets[d + 1],
            )
            if child_group[d] >= 0:
                load[child_group[d], 0] += 1
            d = child_next[d]
        f = factor_head[c]
        while f >= 0:
            factor_group[f], groups = _place(
                cardinalities, inside, group_size, groups, limit, scopes, scope_offsets[f], scope_offsets[f + 1]
            )
            if factor_group[f] >= 0:
                load[factor_group[f], 1] += 1
            f = factor_next[f]
        for i in range(offsets[c], offsets[c + 1]):
            if answers_at[members[i]] == c:
                single[0] = members[i]
                g, groups = _place(cardinalities, inside, group_size, groups, limit, single, 0, 1)
                if g >= 0:
                    load[g, 2] += 1
        for g in range(groups):
            if load[g, 0] + load[g, 1] < 2 and load[g, 0] + load[g, 2] < 2:
                continue
            all_parent[k], all_sizes[k], all_unit[k] = c, group_size[g], load[g, 1] == 0
            for i in range(offsets[c], offsets[c + 1]):
                if inside[g, members[i]]:
                    all_members[used] = members[i]
                    used += 1
            all_offsets[k + 1] = used
            f = factor_head[c]
            while f >= 0:
                if factor_group[f] == g:
                    home[f] = k
                f = factor_next[f]
            d = child_head[c]
            while d >= 0:
                if child_group[d] == g:
                    all_parent[d] = k
                    all_unit[k] = all_unit[k] and unit[d]
                d = child_next[d]
            k += 1
    return all_parent[:k], all_offsets[: k + 1], all_members[:used], all_sizes[:k], all_unit[:k]
