"""Region graphs by the cluster variation method: outer regions, their intersections, counting numbers, who holds whom.

A *region* is a set of variables. Belief propagation knows the factors' scopes and the single variables; a region graph
knows larger sets too, such as the squares of a lattice, and counts each of their intersections so often that every
variable and every factor counts once in all (Yedidia, Freeman and Weiss).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt

from markovfield.arrays import offsets_of
from markovfield.factors.structure import Structure
from markovfield.inference.generalized_bp.short_cycles_kernel import take_cycles

__all__ = ["RegionGraph", "cycle_regions", "region_graph", "scope_regions"]

Region = tuple[int, ...]
# Steps of the search for short cycles: about half a second.
CYCLE_WORK = 50_000_000


@dataclass(frozen=True, eq=False)
class RegionGraph:
    """Regions closed under intersection.

    Attributes
    ----------
    outer, inner
        Each region a rising tuple of variables. No outer region is inside another; the inner ones, from large to
        small, are all intersections of two or more outer ones.
    counting
        ``int64``: the counting number of each inner region (that of an outer one is 1). Those of all regions that hold
        some other region, itself included, add up to one.
    holder_offsets, holders
        ``holders[holder_offsets[b] : holder_offsets[b + 1]]`` are the outer regions around inner region b.
    join_order
        When the outer regions form a junction tree: an order of them in which each, taken away, leaves one behind that
        holds all it shares with the rest (leaves first). None when they do not.
    """

    outer: tuple[Region, ...]
    inner: tuple[Region, ...]
    counting: npt.NDArray[np.int64]
    holder_offsets: npt.NDArray[np.int64]
    holders: npt.NDArray[np.int64]
    join_order: tuple[int, ...] | None

    @property
    def is_junction_tree(self) -> bool:
        """Whether the outer regions form a junction tree; then the free energy, minimised, is exact."""
        return self.join_order is not None

    @property
    def regions(self) -> tuple[Region, ...]:
        """The outer regions, then the inner ones."""
        return self.outer + self.inner


def region_graph(outer: Iterable[Sequence[int]]) -> RegionGraph:
    """Close sets of variables under intersection and count them (the cluster variation method).

    Sets inside another one are dropped first. Time is about the number of pairs of sets that share a variable, or the
    number of subsets of all sets, whichever is less.

    Examples
    --------
    >>> graph = region_graph([(0, 1, 3, 4), (1, 2, 4, 5)])
    >>> graph.regions, graph.counting.tolist(), graph.is_junction_tree
    (((0, 1, 3, 4), (1, 2, 4, 5), (1, 4)), [-1], True)
    >>> region_graph([(0, 1), (1, 2), (0, 2)]).is_junction_tree
    False
    """
    outers = _maximal(outer)
    around = _holders(outers)
    subsets_to_try = sum(2.0 ** len(r) for r in outers)
    pairs_to_try = sum(float(len(h)) ** 2 for h in around.values())
    found = _closed_by_subsets(outers) if subsets_to_try <= pairs_to_try else _closed_by_pairs(outers, around)
    inner = sorted(found, key=lambda r: (-len(r), r))
    n = len(outers)
    inside = _inside([*outers, *inner])
    holders: list[list[int]] = [[] for _ in inner]
    above = np.zeros(len(inner), np.int64)
    counting = np.zeros(len(inner), np.int64)
    for r, parts in enumerate(inside):
        # Everything around an inner region comes before it.
        count = 1
        if r >= n:
            count = counting[r - n] = 1 - above[r - n]
        for s in parts:
            above[s - n] += count
            if r < n:
                holders[s - n].append(r)
    return RegionGraph(
        tuple(outers),
        tuple(inner),
        counting,
        offsets_of([len(h) for h in holders]),
        np.array([r for h in holders for r in h], np.int64),
        _join_order(outers),
    )


def scope_regions(structure: Structure) -> list[Region]:
    """The scopes of all factors, and single variables that are in none; variables of one state are left out."""
    found = {tuple(sorted(structure.scope(f).tolist())) for f in range(structure.n_factors)}
    found.discard(())
    alone = structure.cardinalities > 1
    alone[structure.scopes] = False
    return sorted(found) + [(int(v),) for v in np.flatnonzero(alone)]


def cycle_regions(structure: Structure, max_cycle: int, max_states: int) -> list[Region]:
    """Short cycles without chords of the graph that joins variables of a common factor, the shortest first.

    On a square lattice these are its squares, on a triangular one its triangles. A cycle is taken when it has at
    most ``max_states`` joint states and brings an edge that no cycle before it has: so the cycles taken are
    independent (a torus leaves one square out, and a complete graph gets all triangles at one vertex), and counting
    numbers stay small.

    Examples
    --------
    >>> import markovfield as mf
    >>> net = mf.MarkovNetwork(dict.fromkeys(range(6), 2))
    >>> pairs = [(0, 1), (1, 2), (3, 4), (4, 5), (0, 3), (1, 4), (2, 5)]
    >>> _ = net.add_factors(pairs, [[2.0, 1.0], [1.0, 2.0]])
    >>> cycle_regions(net.compile().structure, 4, 1000)
    [(0, 1, 3, 4), (1, 2, 4, 5)]
    """
    offsets, neighbours = _primal(structure)
    cards = structure.cardinalities.astype(np.int64)
    missing = _n_cycles(offsets, neighbours)
    covered = np.zeros(len(neighbours), np.bool_)
    work = np.array([CYCLE_WORK], np.int64)
    found: list[Region] = []
    for length in range(3, max_cycle + 1):
        if len(found) >= missing or work[0] <= 0:
            break
        cycles = take_cycles(offsets, neighbours, cards, length, max_states, covered, work)
        found += [tuple(sorted(row)) for row in cycles.reshape(-1, length).tolist()]
    return found


def _primal(structure: Structure) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Neighbours of each variable, rising: those in a scope with it."""
    arity = np.diff(structure.scope_offsets)
    ones, others = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for k in np.unique(arity[arity > 1]).tolist():
        starts = structure.scope_offsets[:-1][arity == k]
        for i, j in combinations(range(k), 2):
            ones.append(structure.scopes[starts + i].astype(np.int64))
            others.append(structure.scopes[starts + j].astype(np.int64))
    a, b = np.concatenate(ones), np.concatenate(others)
    n = structure.n_variables
    keys = np.unique(np.concatenate([a * n + b, b * n + a]))
    offsets = np.searchsorted(keys, np.arange(n + 1, dtype=np.int64) * n).astype(np.int64)
    return offsets, keys % n if n else keys


def _n_cycles(offsets: npt.NDArray[np.int64], neighbours: npt.NDArray[np.int64]) -> int:
    """How many independent cycles a graph has: edges less variables plus connected components."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    n = len(offsets) - 1
    matrix = csr_array((np.ones(len(neighbours), np.int8), neighbours, offsets), shape=(n, n))
    components = int(connected_components(matrix, directed=False, return_labels=False)) if n else 0
    return len(neighbours) // 2 - n + components


# ---- sets of sets --------------------------------------------------------------------------------------------------


def _holders(regions: Iterable[Region]) -> dict[int, list[int]]:
    """The regions that each variable is in."""
    holders: dict[int, list[int]] = {}
    for r, region in enumerate(regions):
        for v in region:
            holders.setdefault(v, []).append(r)
    return holders


def _maximal(sets: Iterable[Sequence[int]]) -> list[Region]:
    """Distinct sets that are inside no other one, in the order given."""
    distinct = list(dict.fromkeys(tuple(sorted(set(map(int, s)))) for s in sets if len(s)))
    by_size = sorted(range(len(distinct)), key=lambda i: -len(distinct[i]))
    kept: list[int] = []
    as_sets = [frozenset(s) for s in distinct]
    holders: dict[int, list[int]] = {}
    nobody: list[int] = []
    for i in by_size:
        rarest = min((holders.get(v, nobody) for v in distinct[i]), key=len)
        if any(as_sets[i] <= as_sets[j] for j in rarest):
            continue
        kept.append(i)
        for v in distinct[i]:
            holders.setdefault(v, []).append(i)
    return [distinct[i] for i in sorted(kept)]


def _closed_by_subsets(outers: Sequence[Region]) -> set[Region]:
    """Intersections of two or more outer regions: subsets that are all that the regions around them share."""
    shared: dict[Region, frozenset[int]] = {}
    single: set[Region] = set()
    for outer in outers:
        whole = frozenset(outer)
        for size in range(1, len(outer)):
            for part in combinations(outer, size):
                before = shared.get(part)
                if before is None:
                    shared[part] = whole
                    single.add(part)
                else:
                    shared[part] = before & whole
                    single.discard(part)
    return {part for part, common in shared.items() if len(common) == len(part) and part not in single}


def _closed_by_pairs(outers: Sequence[Region], holders: dict[int, list[int]]) -> set[Region]:
    """The same, by intersecting with outer regions until nothing new comes."""
    as_sets = [frozenset(r) for r in outers]
    found: set[frozenset[int]] = set()
    waiting = list(as_sets)
    while waiting:
        one = waiting.pop()
        near = {r for v in one for r in holders[v]}
        for r in near:
            both = one & as_sets[r]
            if len(both) < len(one) and both not in found:
                found.add(both)
                waiting.append(both)
    return {tuple(sorted(s)) for s in found}


def _inside(regions: Sequence[Region]) -> list[list[int]]:
    """For every region those strictly inside it, large to small (regions come in that order but for the outer ones)."""
    number = {r: i for i, r in enumerate(regions)}
    as_sets = [frozenset(r) for r in regions]
    holders = _holders(regions)
    inside = []
    for i, region in enumerate(regions):
        near: Iterable[Any]
        if 2 ** len(region) <= sum(len(holders[v]) for v in region):
            parts = (p for size in range(len(region) - 1, 0, -1) for p in combinations(region, size))
            inside.append([number[p] for p in parts if p in number])
        else:
            near = {r for v in region for r in holders[v]}
            inside.append(sorted((r for r in near if as_sets[r] < as_sets[i]), key=lambda r: (-len(regions[r]), r)))
    return inside


def _join_order(outers: Sequence[Region]) -> tuple[int, ...] | None:
    """Take away outer regions that share with the rest only what one other region holds (Graham's reduction)."""
    alive = [set(r) for r in outers]
    there = [True] * len(outers)
    holders = {v: set(h) for v, h in _holders(outers).items()}
    order: list[int] = []
    waiting = list(range(len(outers) - 1, -1, -1))
    queued = [True] * len(outers)
    while waiting:
        r = waiting.pop()
        queued[r] = False
        if not there[r]:
            continue
        alive[r] = {v for v in alive[r] if len(holders[v]) > 1}
        rarest = min((holders[v] for v in alive[r]), key=len, default=set())
        if alive[r] and not any(o != r and alive[r] <= alive[o] for o in rarest):
            continue
        there[r] = False
        order.append(r)
        for v in alive[r]:
            holders[v].discard(r)
            if len(holders[v]) == 1:
                (last,) = holders[v]
                if not queued[last]:
                    queued[last] = True
                    waiting.append(last)
        for v in outers[r]:
            holders[v].discard(r)
    return tuple(order) if len(order) == len(outers) else None
