"""Cutting variables into clusters that are trees: growing them, and rooting what was given.

Invariant: a cluster and the parts of factors in it are a forest. Free to change: which clusters are grown, since every
choice gives a bound.
"""

from __future__ import annotations

import numpy as np

from markovfield.kernels.compiler import kernel

__all__ = ["grow_chains", "join_clusters", "root_clusters"]


@kernel
def _links(v, own, scope_offsets, scopes, variable_offsets, variable_factors, cluster):  # type: ignore[no-untyped-def]
    """How many factors join v to the cluster ``own``, one of them, and how many variables it has there."""
    links, link, members = 0, np.int64(-1), 0
    for j in range(variable_offsets[v], variable_offsets[v + 1]):
        f = np.int64(variable_factors[j])
        inside = 0
        for k in range(scope_offsets[f], scope_offsets[f + 1]):
            if scopes[k] != v and cluster[scopes[k]] == own:
                inside += 1
        if inside:
            links += 1
            link, members = f, inside
    return links, link, members


@kernel
def grow_chains(scope_offsets, scopes, variable_offsets, variable_factors):  # type: ignore[no-untyped-def]
    """``int64[n]``: the linear chain of each variable.

    A chain grows from the first variable that is in none, by variables that exactly one factor joins to it, and that
    to one of its ends alone.
    """
    n = len(variable_offsets) - 1
    cluster = np.full(n, -1, np.int64)
    # How many neighbours in its chain a variable has.
    joined = np.zeros(n, np.int64)
    queue = np.empty(n, np.int64)
    count = 0
    for seed in range(n):
        if cluster[seed] >= 0:
            continue
        cluster[seed] = count
        queue[0] = seed
        head, tail = 0, 1
        while head < tail:
            u = queue[head]
            head += 1
            for j in range(variable_offsets[u], variable_offsets[u + 1]):
                f = variable_factors[j]
                for k in range(scope_offsets[f], scope_offsets[f + 1]):
                    v = scopes[k]
                    if cluster[v] >= 0 or joined[u] == 2:
                        continue
                    links, link, members = _links(
                        v, count, scope_offsets, scopes, variable_offsets, variable_factors, cluster
                    )
                    if links != 1 or link != f or members != 1:
                        continue
                    cluster[v] = count
                    joined[u] += 1
                    joined[v] += 1
                    queue[tail] = v
                    tail += 1
        count += 1
    return cluster


@kernel
def join_clusters(  # type: ignore[no-untyped-def]
    scope_offsets, scopes, variable_offsets, variable_factors, cluster, cluster_offsets, cluster_variables
):
    """``int64[n]``: clusters joined to larger ones, as long as exactly one factor joins them: trees stay trees."""
    n, count = len(variable_offsets) - 1, len(cluster_offsets) - 1
    home = np.full(count, -1, np.int64)
    refused = np.full(count, -1, np.int64)
    looked = np.full(len(scope_offsets) - 1, -1, np.int64)
    queue = np.empty(count, np.int64)
    joined, looks = 0, 0
    for seed in range(count):
        if home[seed] >= 0:
            continue
        home[seed] = joined
        queue[0] = seed
        head, tail = 0, 1
        while head < tail:
            c = queue[head]
            head += 1
            for i in range(cluster_offsets[c], cluster_offsets[c + 1]):
                u = cluster_variables[i]
                for j in range(variable_offsets[u], variable_offsets[u + 1]):
                    f = variable_factors[j]
                    for k in range(scope_offsets[f], scope_offsets[f + 1]):
                        d = cluster[scopes[k]]
                        if home[d] >= 0 or refused[d] == joined:
                            continue
                        looks += 1
                        links = 0
                        for a in range(cluster_offsets[d], cluster_offsets[d + 1]):
                            v = cluster_variables[a]
                            for b in range(variable_offsets[v], variable_offsets[v + 1]):
                                g = variable_factors[b]
                                if looked[g] == looks:
                                    continue
                                looked[g] = looks
                                for x in range(scope_offsets[g], scope_offsets[g + 1]):
                                    if home[cluster[scopes[x]]] == joined:
                                        links += 1
                                        break
                        # Links only become more.
                        if links != 1:
                            refused[d] = joined
                            continue
                        home[d] = joined
                        queue[tail] = d
                        tail += 1
        joined += 1
    result = np.empty(n, np.int64)
    for v in range(n):
        result[v] = home[cluster[v]]
    return result


@kernel
def root_clusters(  # type: ignore[no-untyped-def]
    cluster_offsets, cluster_variables, member_offsets, member_variable, part_lists, parts_of, part_offsets,
    cluster_parts, parent_member, is_root,
):  # fmt: skip
    """Order the parts of two or more members of each cluster from its roots on; a variable on a cycle, or -1.

    ``parts_of[part_lists[v] : part_lists[v + 1]]`` are those that variable v is a member of.
    """
    n = len(part_lists) - 1
    seen = np.zeros(n, np.bool_)
    used = np.zeros(len(member_offsets) - 1, np.bool_)
    queue = np.empty(n, np.int64)
    filled = 0
    for c in range(len(cluster_offsets) - 1):
        part_offsets[c] = filled
        for j in range(cluster_offsets[c], cluster_offsets[c + 1]):
            root = cluster_variables[j]
            if seen[root]:
                continue
            seen[root] = True
            is_root[root] = True
            queue[0] = root
            head, tail = 0, 1
            while head < tail:
                v = queue[head]
                head += 1
                for k in range(part_lists[v], part_lists[v + 1]):
                    p = parts_of[k]
                    if used[p]:
                        continue
                    used[p] = True
                    cluster_parts[filled] = p
                    filled += 1
                    for i in range(member_offsets[p], member_offsets[p + 1]):
                        u = np.int64(member_variable[i])
                        if u == v:
                            parent_member[p] = i - member_offsets[p]
                            continue
                        if seen[u]:
                            return u
                        seen[u] = True
                        queue[tail] = u
                        tail += 1
    part_offsets[len(cluster_offsets) - 1] = filled
    return np.int64(-1)
