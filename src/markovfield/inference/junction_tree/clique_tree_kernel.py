"""From an elimination order to a rooted tree of maximal cliques, with every factor assigned to one of them.

Cliques are numbered in preorder, roots first, so a loop over rising numbers goes down the trees and a loop over
falling numbers goes up.
"""

from __future__ import annotations

import numpy as np

from markovfield.inference.junction_tree.intermediate_kernel import add_intermediate_cliques
from markovfield.kernels.compiler import kernel

__all__ = ["build_clique_tree"]


@kernel
def _maximal_cliques(cardinalities, stage, order, higher_offsets, higher):
    """Absorb non-maximal elimination cliques; clique k consists of ``order[first[k]]`` and its higher neighbours.

    The clique of i is inside that of its child j exactly when j has one higher neighbour more than i. Cliques that
    eliminate variables of different stages are kept apart, so that each clique is reduced by one operation.
    """
    n = len(order)
    position = np.full(len(cardinalities), -1, np.int64)
    for i in range(n):
        position[order[i]] = i
    clique_of = np.empty(n, np.int64)
    absorbed_by = np.full(n, -1, np.int64)
    above = np.full(n, -1, np.int64)
    first = np.empty(n, np.int64)
    last = np.empty(n, np.int64)
    count = 0
    for i in range(n):
        k = absorbed_by[i]
        if k < 0:
            k = count
            count += 1
            first[k] = i
        clique_of[i] = k
        last[k] = i
        lowest = n
        for h in range(higher_offsets[i], higher_offsets[i + 1]):
            lowest = min(lowest, position[higher[h]])
        if lowest < n:
            above[i] = lowest
            size_here = higher_offsets[i + 1] - higher_offsets[i]
            size_above = higher_offsets[lowest + 1] - higher_offsets[lowest]
            same_stage = stage[order[i]] == stage[order[lowest]]
            if size_here == size_above + 1 and absorbed_by[lowest] < 0 and same_stage:
                absorbed_by[lowest] = k
    parent = np.full(count, -1, np.int64)
    for k in range(count):
        p = above[last[k]]
        if p >= 0:
            parent[k] = clique_of[p]
    return first[:count], parent, clique_of, position


@kernel
def _members(order, higher_offsets, higher, first):
    offsets = np.zeros(len(first) + 1, np.int64)
    for k in range(len(first)):
        i = first[k]
        offsets[k + 1] = offsets[k] + 1 + higher_offsets[i + 1] - higher_offsets[i]
    members = np.empty(offsets[-1], np.int32)
    for k in range(len(first)):
        i = first[k]
        at = offsets[k]
        members[at] = order[i]
        for h in range(higher_offsets[i], higher_offsets[i + 1]):
            at += 1
            members[at] = higher[h]
    return offsets, members


@kernel
def _children(parent):
    """Children of every clique as offsets and a flat list."""
    n = len(parent)
    offsets = np.zeros(n + 1, np.int64)
    for k in range(n):
        if parent[k] >= 0:
            offsets[parent[k] + 1] += 1
    for k in range(n):
        offsets[k + 1] += offsets[k]
    fill = offsets[:n].copy()
    children = np.empty(offsets[n], np.int64)
    for k in range(n):
        if parent[k] >= 0:
            children[fill[parent[k]]] = k
            fill[parent[k]] += 1
    return offsets, children


@kernel
def _preorder(parent):
    """All cliques, each after its parent, subtrees contiguous; no recursion."""
    n = len(parent)
    offsets, children = _children(parent)
    visited = np.empty(n, np.int64)
    stack = np.empty(n, np.int64)
    count = 0
    for root in range(n):
        if parent[root] >= 0:
            continue
        top = 0
        stack[0] = root
        while top >= 0:
            k = stack[top]
            top -= 1
            visited[count] = k
            count += 1
            for i in range(offsets[k + 1] - 1, offsets[k] - 1, -1):
                top += 1
                stack[top] = children[i]
    return visited


@kernel
def _reroot(parent, new_root):
    """Turn the path from ``new_root`` to its present root around (in place)."""
    k = new_root
    above = parent[k]
    parent[k] = -1
    while above >= 0:
        following = parent[above]
        parent[above] = k
        k = above
        above = following


@kernel
def _tops(parent, visited, offsets, members, n_variables):
    """The clique nearest the root that holds each variable, and the depth of each clique."""
    depth = np.zeros(len(parent), np.int64)
    top = np.full(n_variables, -1, np.int64)
    for k in visited:
        if parent[k] >= 0:
            depth[k] = depth[parent[k]] + 1
        for i in range(offsets[k], offsets[k + 1]):
            if top[members[i]] < 0:
                top[members[i]] = k
    return top, depth


@kernel
def _highest_homes(scope_offsets, scopes, cardinalities, top, depth):
    """For each factor the clique nearest the root that holds its scope: the deepest of its variables' tops."""
    m = len(scope_offsets) - 1
    home = np.full(m, -1, np.int64)
    for f in range(m):
        for i in range(scope_offsets[f], scope_offsets[f + 1]):
            v = scopes[i]
            if cardinalities[v] > 1 and (home[f] < 0 or depth[top[v]] > depth[home[f]]):
                home[f] = top[v]
    return home


@kernel
def _unit_messages(parent, visited, top, home, child, cardinalities):
    """Which cliques send a message that is one everywhere, whatever the conditional tables hold.

    The message out of a subtree is one when the subtree holds exactly the conditional distributions of the
    variables it eliminates. It is spoilt, up to the root, by a factor that is no conditional distribution and by an
    eliminated variable without one; and, up to the top clique of v, by the distribution of a v that outlives it.
    """
    n = len(parent)
    unit = np.ones(n, np.bool_)
    spoilt = np.zeros(n, np.bool_)
    has_distribution = np.zeros(len(cardinalities), np.bool_)
    for f in range(len(home)):
        v = child[f]
        if home[f] < 0:
            continue
        if v < 0 or cardinalities[v] <= 1 or has_distribution[v]:
            spoilt[home[f]] = True
            continue
        has_distribution[v] = True
        k = home[f]
        while k != top[v]:
            unit[k] = False
            k = parent[k]
    for v in range(len(cardinalities)):
        if top[v] >= 0 and not has_distribution[v]:
            spoilt[top[v]] = True
    for at in range(n - 1, -1, -1):
        k = visited[at]
        if spoilt[k]:
            unit[k] = False
            if parent[k] >= 0:
                spoilt[parent[k]] = True
    return unit


@kernel
def _best_roots(parent, visited, offsets, members, sizes, top, home, child, cardinalities, unit):
    """For each tree the root that leaves the fewest states in cliques with a message to compute.

    One pass gives, for every edge, whether the message *down* it would be one if the tree hung the other way; then
    moving the root along an edge changes the cost by two terms.
    """
    n = len(parent)
    down_unit = np.ones(n, np.bool_)
    bad = np.zeros(n, np.int64)
    family_home = np.full(len(cardinalities), -1, np.int64)
    for f in range(len(home)):
        if home[f] >= 0:
            v = child[f]
            if v < 0 or cardinalities[v] <= 1 or family_home[v] >= 0:
                bad[home[f]] += 1
            else:
                family_home[v] = home[f]
    for v in range(len(cardinalities)):
        if top[v] >= 0 and family_home[v] < 0:
            bad[top[v]] += 1
    for at in range(n - 1, -1, -1):
        k = visited[at]
        if parent[k] >= 0:
            bad[parent[k]] += bad[k]
    root_of = np.empty(n, np.int64)
    for k in visited:
        root_of[k] = k if parent[k] < 0 else root_of[parent[k]]
        if parent[k] >= 0 and bad[root_of[k]] > bad[k]:
            down_unit[k] = False
    # A variable's distribution travels away from its family: down every edge of the variable's subtree but those
    # between its top and the family.
    number = np.empty(n, np.int64)
    for at in range(n):
        number[visited[at]] = at
    subtree = np.ones(n, np.int64)
    for at in range(n - 1, -1, -1):
        if parent[visited[at]] >= 0:
            subtree[parent[visited[at]]] += subtree[visited[at]]
    for k in visited:
        if parent[k] < 0:
            continue
        for i in range(offsets[k], offsets[k + 1]):
            v = members[i]
            if top[v] == k or family_home[v] < 0:
                continue
            ahead = number[family_home[v]] - number[k]
            if ahead < 0 or ahead >= subtree[k]:
                down_unit[k] = False
                break
    cost = np.zeros(n)
    best = np.full(n, -1, np.int64)
    for k in visited:
        r = root_of[k]
        if parent[k] >= 0 and not unit[k]:
            cost[r] += sizes[k]
    for k in visited:
        r = root_of[k]
        if parent[k] < 0:
            best[r] = k
            continue
        p = parent[k]
        cost[k] = cost[p] - (0.0 if unit[k] else sizes[k]) + (0.0 if down_unit[k] else sizes[p])
        if cost[k] < cost[best[r]]:
            best[r] = k
    return best, root_of


@kernel
def _lower_homes(scope_offsets, scopes, cardinalities, home, parent, visited, offsets, members, sizes, unit):
    """Move factors down into smaller cliques where that costs no message that was one."""
    n = len(parent)
    child_offsets, children = _children(parent)
    m = len(home)
    head = np.full(n, -1, np.int64)
    following = np.full(m, -1, np.int64)
    for f in range(m):
        if home[f] >= 0:
            following[f] = head[home[f]]
            head[home[f]] = f
    stamp = np.full(len(cardinalities), -1, np.int64)
    for k in visited:
        for i in range(child_offsets[k], child_offsets[k + 1]):
            d = children[i]
            if unit[d] or sizes[d] >= sizes[k] or head[k] < 0:
                continue
            for j in range(offsets[d], offsets[d + 1]):
                stamp[members[j]] = d
            f = head[k]
            previous = -1
            while f >= 0:
                after = following[f]
                inside = True
                for j in range(scope_offsets[f], scope_offsets[f + 1]):
                    if cardinalities[scopes[j]] > 1 and stamp[scopes[j]] != d:
                        inside = False
                        break
                if inside:
                    if previous < 0:
                        head[k] = after
                    else:
                        following[previous] = after
                    following[f] = head[d]
                    head[d] = f
                    home[f] = d
                else:
                    previous = f
                f = after


@kernel
def _separators(cardinalities, parent, offsets, members):
    """log2 of the states of each separator."""
    n = len(parent)
    result = np.zeros(n)
    inside = np.full(len(cardinalities), -1, np.int64)
    for c in range(n):
        p = parent[c]
        if p < 0:
            continue
        for i in range(offsets[c], offsets[c + 1]):
            inside[members[i]] = c
        for i in range(offsets[p], offsets[p + 1]):
            if inside[members[i]] == c:
                result[c] += np.log2(cardinalities[members[i]])
    return result


@kernel
def build_clique_tree(cardinalities, scope_offsets, scopes, child, stage, order, higher_offsets, higher, reroot, merge):
    """Cliques, their tree and the factors' homes.

    With ``reroot`` the trees are hung from the root that leaves the least to compute; with ``merge`` large cliques get
    intermediate cliques (see `add_intermediate_cliques`), which are numbered like cliques.

    Returns
    -------
    parent
        ``int64[n]`` parent of each clique, -1 for roots; a parent's number is below its children's.
    offsets, members
        Variables of each clique (not yet in axis order).
    log2_sizes, log2_separators
        log2 of the number of states of each clique, and of what it shares with its parent.
    home
        ``int64[m]`` the clique each factor is multiplied into; -1 for a factor without free variables.
    unit
        ``bool[n]`` whether a clique's upward message is one everywhere.
    """
    first, parent, _, _ = _maximal_cliques(cardinalities, stage, order, higher_offsets, higher)
    offsets, members = _members(order, higher_offsets, higher, first)
    n = len(parent)
    log2_sizes = np.zeros(n)
    for k in range(n):
        for i in range(offsets[k], offsets[k + 1]):
            log2_sizes[k] += np.log2(cardinalities[members[i]])
    sizes = 2.0 ** np.minimum(log2_sizes, 500.0)
    visited = _preorder(parent)
    top, depth = _tops(parent, visited, offsets, members, len(cardinalities))
    home = _highest_homes(scope_offsets, scopes, cardinalities, top, depth)
    unit = _unit_messages(parent, visited, top, home, child, cardinalities)
    if reroot:
        best, root_of = _best_roots(parent, visited, offsets, members, sizes, top, home, child, cardinalities, unit)
        for k in range(n):
            if root_of[k] == k and best[k] != k:
                _reroot(parent, best[k])
        visited = _preorder(parent)
        top, depth = _tops(parent, visited, offsets, members, len(cardinalities))
        home = _highest_homes(scope_offsets, scopes, cardinalities, top, depth)
        unit = _unit_messages(parent, visited, top, home, child, cardinalities)
    _lower_homes(scope_offsets, scopes, cardinalities, home, parent, visited, offsets, members, sizes, unit)
    if merge:
        parent, offsets, members, sizes, unit = add_intermediate_cliques(
            cardinalities, scope_offsets, scopes, parent, offsets, members, sizes, home, unit
        )
        n = len(parent)
        visited = _preorder(parent)
    # Renumber in preorder.
    number = np.empty(n, np.int64)
    for at in range(n):
        number[visited[at]] = at
    new_parent = np.empty(n, np.int64)
    new_offsets = np.zeros(n + 1, np.int64)
    new_members = np.empty(len(members), np.int32)
    new_log2 = np.empty(n)
    new_unit = np.empty(n, np.bool_)
    for at in range(n):
        k = visited[at]
        new_parent[at] = -1 if parent[k] < 0 else number[parent[k]]
        width = offsets[k + 1] - offsets[k]
        new_offsets[at + 1] = new_offsets[at] + width
        for i in range(width):
            new_members[new_offsets[at] + i] = members[offsets[k] + i]
        new_log2[at] = log2_sizes[k] if k < len(log2_sizes) else np.log2(sizes[k])
        new_unit[at] = unit[k] and parent[k] >= 0
    for f in range(len(home)):
        if home[f] >= 0:
            home[f] = number[home[f]]
    log2_separators = _separators(cardinalities, new_parent, new_offsets, new_members)
    return new_parent, new_offsets, new_members, new_log2, log2_separators, home, new_unit
