"""Heat-bath sweeps over the bonds of the random-cluster model (Fortuin and Kasteleyn), of one Markov chain or two.

A configuration of open bonds weighs the product of p over open ones and 1 - p over closed ones, times q to the number
of clusters. Given the rest, a bond is open with probability p where its ends are joined otherwise, and
p / (p + q (1 - p)) where they are not; so more open bonds elsewhere never make it less likely, and chains with the same
draws stay in order.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from markovfield.kernels.compiler import kernel
from markovfield.kernels.random import draw_index, draw_unit
from markovfield.kernels.union_find import flatten, unite

__all__ = ["BondGraph", "colour_clusters", "sweep_bonds", "sweep_bonds_both"]


class BondGraph(NamedTuple):
    """Bonds between ``n`` variables, and perhaps one more end, a ghost, which stands for the fields.

    Attributes
    ----------
    q
        States of a variable.
    first, second
        ``int32[m]``: the ends of each bond; ``n`` is the ghost.
    joined, apart
        ``float64[m]``: the probability of being open where the ends are joined by others, and where not.
    offsets, other, bond
        Each bond from both ends: where those of an end start, the other end, its number.
    seen, queue
        Room for searches: ``int64[ends + 1]``, whose last entry counts them, and ``int32[2, ends]``. Of one thread.
    """

    q: Any
    first: Any
    second: Any
    joined: Any
    apart: Any
    offsets: Any
    other: Any
    bond: Any
    seen: Any
    queue: Any


@kernel
def _are_joined(graph, opened, skip):
    """Whether the ends of bond ``skip`` are joined by other open bonds, and how many bonds were looked at.

    Both ends search in turns, so that the smaller cluster decides how long it takes.
    """
    seen, queue, offsets = graph.seen, graph.queue, graph.offsets
    count = len(seen) - 1
    seen[count] += 1
    mark = 2 * seen[count]
    sizes, at, half = np.ones(2, np.int64), np.zeros(2, np.int64), np.empty(2, np.int64)
    for side in range(2):
        end = graph.first[skip] if side == 0 else graph.second[skip]
        queue[side, 0] = end
        half[side] = offsets[end]
        seen[end] = mark + side
    work = 0
    side = 0
    while True:
        while half[side] == offsets[queue[side, at[side]] + 1]:
            at[side] += 1
            if at[side] == sizes[side]:
                return False, work
            half[side] = offsets[queue[side, at[side]]]
        h = half[side]
        half[side] += 1
        work += 1
        if graph.bond[h] != skip and opened[graph.bond[h]]:
            end = graph.other[h]
            if seen[end] == mark + 1 - side:
                return True, work
            if seen[end] != mark + side:
                seen[end] = mark + side
                queue[side, sizes[side]] = end
                sizes[side] += 1
        side = 1 - side


@kernel
def sweep_bonds_both(graph, top, bottom, stream):
    """One sweep of both Markov chains with the same draws; answers how many bonds differ, and the work done.

    Ends that are joined below are joined above, so a search above is seldom needed.
    """
    different, work = 0, 0
    for e in range(len(graph.first)):
        u = draw_unit(stream)
        above = below = u < graph.apart[e]
        if not below and u < graph.joined[e]:
            below, steps = _are_joined(graph, bottom, e)
            work += steps
            above = below
            if not below:
                above, steps = _are_joined(graph, top, e)
                work += steps
        top[e] = above
        bottom[e] = below
        different += above != below
    return different, work + len(graph.first)


@kernel
def sweep_bonds(graph, opened, stream):
    """One sweep of one Markov chain, with the draws that `sweep_bonds_both` would use; answers the work done."""
    work = 0
    for e in range(len(graph.first)):
        u = draw_unit(stream)
        is_open = u < graph.apart[e]
        if not is_open and u < graph.joined[e]:
            is_open, steps = _are_joined(graph, opened, e)
            work += steps
        opened[e] = is_open
    return work + len(graph.first)


@kernel
def colour_clusters(graph, opened, stream, states):
    """Give every cluster a state, all equally likely; that of the ghost gets state 0."""
    ends = len(graph.offsets) - 1
    parent = np.empty(ends, np.int32)
    for i in range(ends):
        parent[i] = i
    for e in range(len(opened)):
        if opened[e]:
            unite(parent, graph.first[e], graph.second[e])
    flatten(parent)
    ghost = parent[ends - 1] if ends > len(states) else -1
    for i in range(len(states)):
        root = parent[i]
        if root == ghost:
            states[i] = 0
        elif root == i:
            states[i] = draw_index(stream, graph.q)
        else:
            states[i] = states[root]
