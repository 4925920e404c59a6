"""Markov chains that move one variable at a time: layout, tables of conditionals, and where they cannot go."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, TypeVar

import numpy as np
import numpy.typing as npt

from markovfield.arrays import FloatArray, States, offsets_of
from markovfield.exceptions import ModelError
from markovfield.factors.factor_graph import FactorGraph
from markovfield.factors.factor_kinds import DISTANCE, TABLE
from markovfield.factors.remembered import Shelf, remembered
from markovfield.factors.structure import Structure
from markovfield.inference.core.evidence import Evidence
from markovfield.inference.core.running import Running
from markovfield.inference.gibbs.single_site_kernel import (
    DIRECT,
    HEAT_BATH,
    LINEAR,
    Sites,
    advance_colours,
    advance_shard,
    advance_sites,
    blankets,
    colour_sites,
    fill_rows,
    fill_tables,
    shard_seeds,
)
from markovfield.inference.problem.domains_kernel import factors_of_variables
from markovfield.inference.problem.feasible import Feasible
from markovfield.inference.problem.problem import Problem, prepare
from markovfield.inference.sampling.reachability_kernel import FROZEN, SPLIT, hard_components, reach

__all__ = ["ColouredSites", "SingleSite", "check_moves", "prepare_chains", "sites_of", "tables_of", "tabulated"]

# Structured factors up to this many cells are written out, so that chains meet no auxiliary variables.
MOST_CELLS = 2**16
# Cells of one site's table of conditionals, and of all of them together.
SITE_CELLS, ALL_CELLS = 2**14, 2**22
# Joint states of a component whose moves are followed (as bits), and of all components together.
COMPONENT_BITS, ALL_STATES = 16, 2**21
# Work of one call of a kernel: look-ups and sums of log-potentials, of some nanoseconds each.
GRAIN = 2**23
SHARD = 4096
_NOTHING = np.zeros(0)


@remembered
def tabulated(graph: FactorGraph) -> FactorGraph:
    """The same model with its small structured factors as tables; those too large stay as they are."""
    s = graph.structure
    if s.is_plain:
        return graph
    bases, strides, kinds = s.table_offsets.copy(), s.table_strides.copy(), s.kind.copy()
    tables: list[FloatArray] = [graph.log_tables]
    filled = s.n_cells
    size = np.diff(s.scope_offsets)
    structured = (s.kind != TABLE) & (s.kind != DISTANCE)
    # Factors of as many axes at a time: those that are alike in every number have one table.
    for width in np.unique(size[structured]).tolist():
        chosen = np.flatnonzero(structured & (size == width))
        axes = s.scope_offsets[chosen, None] + np.arange(width)
        cards = s.cardinalities[s.scopes[axes]].astype(np.int64)
        small = np.prod(cards.astype(np.float64), axis=1) <= MOST_CELLS
        chosen, axes, cards = chosen[small], axes[small], cards[small]
        key = np.concatenate([s.kind[chosen, None], bases[chosen, None], cards, s.table_strides[axes]], axis=1)
        first, which = _distinct(key)
        starts = np.empty(len(first), np.int64)
        for i, f in enumerate(chosen[first].tolist()):
            tables.append(np.ascontiguousarray(graph.table(f), np.float64).ravel())
            starts[i], filled = filled, filled + tables[-1].size
        bases[chosen], kinds[chosen] = starts[which], TABLE
        own = np.ones_like(cards)
        for i in range(width - 2, -1, -1):
            own[:, i] = own[:, i + 1] * cards[:, i + 1]
        strides[axes] = own
    structure = Structure.from_arrays(
        s.cardinalities, s.scope_offsets, s.scopes, bases, strides, n_cells=filled, child=s.child, kind=kinds,
        names=s.names,
    )  # fmt: skip
    return FactorGraph(structure, np.concatenate(tables), marks_hold=True)


def _distinct(rows: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """The first of each distinct row, in their order, and which of these each row is."""
    _, first, which = np.unique(rows, axis=0, return_index=True, return_inverse=True)
    order = np.argsort(first)
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    return first[order].astype(np.int64), place[which.ravel()]


def prepare_chains(graph: FactorGraph, evidence: Evidence) -> Problem:
    """A problem for Markov chains: `prepare`, with small structured factors written out as tables."""
    return replace(prepare(tabulated(graph), evidence), graph=graph)


def _entries(problem: Problem, variable: npt.NDArray[np.int32]) -> tuple[npt.NDArray[Any], ...]:
    """The factors of each site in turn: base, stride of the site's own axis, and the other axes."""
    s = problem.structure
    offsets, factors = factors_of_variables(s.n_variables, s.scope_offsets, s.scopes)
    degree = np.diff(offsets)[variable]
    entry_offsets = offsets_of(degree)
    within = np.arange(int(entry_offsets[-1])) - np.repeat(entry_offsets[:-1], degree)
    factor = factors[np.repeat(offsets[:-1][variable], degree) + within].astype(np.int64)
    owner = np.repeat(variable, degree)
    arity = np.diff(s.scope_offsets)[factor]
    begin = offsets_of(arity)
    axis = np.repeat(s.scope_offsets[:-1][factor] - begin[:-1], arity) + np.arange(int(begin[-1]))
    own = s.scopes[axis] == np.repeat(owner, arity)
    other = axis[~own]
    return (
        entry_offsets,
        s.table_offsets[factor],
        s.table_strides[axis[own]],
        offsets_of(arity - 1),
        s.scopes[other],
        s.table_strides[other],
    )


def sites_of(problem: Problem, order: npt.NDArray[np.int32] | None = None, most_cells: int = ALL_CELLS) -> Sites:
    """The sites of a problem in scan order (that of the variables where None), with tables while there is room."""
    s = problem.structure
    variable = np.flatnonzero(s.cardinalities > 1).astype(np.int32) if order is None else order
    entry_offsets, base, stride, other_offsets, other_variable, other_stride = _entries(problem, variable)
    link_offsets, links = blankets(variable, entry_offsets, other_offsets, other_variable, s.n_variables)
    card = s.cardinalities[variable].astype(np.int64)
    count = np.diff(link_offsets)
    sizes = s.cardinalities[links].astype(np.float64)
    # Strides of a blanket's joint states, the last variable fastest; in doubles, since large ones are not used.
    link_stride = np.ones(len(links))
    for back in range(2, int(count.max(initial=0)) + 1):
        at = link_offsets[1:][count >= back] - back
        link_stride[at] = np.minimum(link_stride[at + 1] * sizes[at + 1], 2.0**40)
    joint = np.ones(len(variable))
    some = count > 0
    joint[some] = link_stride[link_offsets[:-1][some]] * sizes[link_offsets[:-1][some]]
    cells = joint * (card - 1)
    small = np.flatnonzero(cells <= SITE_CELLS)
    small = small[np.cumsum(cells[small]) <= most_cells]
    table = np.full(len(variable), DIRECT, np.int64)
    table[small] = offsets_of(cells[small].astype(np.int64))[:-1]
    link_stride = link_stride * np.repeat(card - 1, count)
    entries = entry_offsets, base, stride, other_offsets, other_variable, other_stride
    linear, weight, bias = _log_odds(problem, variable, entries, link_offsets, links)
    table[linear & (table < 0)] = LINEAR
    return Sites(
        variable,
        card,
        s.value_offsets[variable],
        table,
        link_offsets,
        links,
        link_stride.astype(np.int64),
        weight,
        bias,
        *entries,
        np.asarray(problem.likelihood),
        problem.potentials.log_tables,
        int(card.max(initial=1)),
    )


def _log_odds(
    problem: Problem,
    variable: npt.NDArray[np.int32],
    entries: tuple[npt.NDArray[Any], ...],
    link_offsets: npt.NDArray[np.int64],
    links: npt.NDArray[np.int32],
) -> tuple[npt.NDArray[np.bool_], FloatArray, FloatArray]:
    """Which sites have two states, factors of pairs of such variables alone and no hard zero; then weights and bias."""
    s, pool = problem.structure, problem.potentials.log_tables
    entry_offsets, base, stride, other_offsets, other_variable, other_stride = entries
    linear = s.cardinalities[variable] == 2
    site = np.repeat(np.arange(len(variable)), np.diff(entry_offsets))
    arity = np.diff(other_offsets)
    wide = arity > 1
    wide[arity == 1] = s.cardinalities[other_variable[other_offsets[:-1][arity == 1]]] != 2
    linear[site[wide]] = False
    weight, bias = np.zeros(len(links)), np.zeros(len(variable))
    used = linear[site]
    site, base, stride, pair = site[used], base[used], stride[used], arity[used] == 1
    at = other_offsets[:-1][used][pair]
    step = np.zeros(len(site), np.int64)
    step[pair] = other_stride[at]
    with np.errstate(invalid="ignore"):
        low, high = pool[base + stride] - pool[base], pool[base + stride + step] - pool[base + step]
    linear[site[~(np.isfinite(low) & np.isfinite(high))]] = False
    low, high = np.where(linear[site], low, 0.0), np.where(linear[site], high, 0.0)
    bias += np.bincount(site, low, len(variable))
    # Where the other variable of each pair is among the site's links.
    n = max(1, s.n_variables)
    key = np.repeat(np.arange(len(variable)), np.diff(link_offsets)) * n + links
    order = np.argsort(key)
    place = order[np.searchsorted(key, site[pair] * n + other_variable[at], sorter=order)]
    weight += np.bincount(place, (high - low)[pair], len(links))
    if len(problem.likelihood):
        values = s.value_offsets[variable[linear]]
        bias[linear] += problem.likelihood[values + 1] - problem.likelihood[values]
    return linear, weight, bias


def tables_of(problem: Problem, sites: Sites, beta: float = 1.0) -> FloatArray:
    """Cumulated conditional distributions of the sites that have a table, at an inverse temperature."""
    used = np.flatnonzero(sites.table >= 0)
    total = 0
    if len(used):
        last = used[-1]
        links = slice(sites.link_offsets[last], sites.link_offsets[last + 1])
        joint = int(np.prod(problem.structure.cardinalities[sites.link_variable[links]], dtype=np.int64))
        total = int(sites.table[last]) + joint * int(sites.card[last] - 1)
    cumulated = np.empty(total)
    fill_tables(sites, problem.structure.cardinalities, beta, cumulated)
    return cumulated


def _cost(sites: Sites) -> float:
    """Nanoseconds of a sweep, roughly."""
    general = sites.table == DIRECT
    degree = np.diff(sites.entry_offsets)[general]
    return float(10 * len(sites.table) + np.diff(sites.link_offsets).sum() + 10 * (degree * sites.card[general]).sum())


T = TypeVar("T")
_IN_ORDER: Shelf[tuple[Sites, FloatArray]] = Shelf(1)
_COLOURED: Shelf[tuple[Sites, FloatArray, list[list[tuple[int, int]]]]] = Shelf(1)


def _kept(shelf: Shelf[T], problem: Problem, make: Callable[[], T]) -> T:
    """A layout, kept with the graph, unless evidence has made the problem another one."""
    same = problem.reduced is None and not len(problem.likelihood)
    return shelf.get(problem.as_tables, None, make) if same else make()


def _in_order(problem: Problem) -> tuple[Sites, FloatArray]:
    sites = sites_of(problem)
    return sites, tables_of(problem, sites)


@dataclass(eq=False)
class SingleSite:
    """Sweeps of single-site moves over a problem, in order or at random."""

    sites: Sites
    tables: FloatArray
    rule: Any = HEAT_BATH
    at_random: bool = False

    def __post_init__(self) -> None:
        self.sweeps_at_once = max(1, int(8 * GRAIN / max(1.0, _cost(self.sites))))
        self._scan = np.bool_(self.at_random)
        self.conditional = not self.at_random

    @classmethod
    def of(cls, problem: Problem, rule: Any = HEAT_BATH, at_random: bool = False) -> SingleSite:
        """Lay a problem out; kept with its graph where the evidence changes nothing."""
        return cls(*_kept(_IN_ORDER, problem, lambda: _in_order(problem)), rule, at_random)

    def _run(self, kernel: Any, states: States, stream: Any, count: int, out: Any) -> None:
        kernel(self.sites, self.tables, self.rule, self._scan, 1.0, states, stream, count, out)

    def advance(self, states: States, stream: Any, sweeps: int) -> None:
        """Move on by some sweeps."""
        self._run(advance_sites, states, stream, sweeps, _NOTHING)

    def fill(self, states: States, stream: Any, thinning: int, rows: States) -> None:
        """Write the states after every so many sweeps."""
        self._run(fill_rows, states, stream, thinning, rows)

    def accumulate(self, states: States, stream: Any, sweeps: int, sums: FloatArray) -> None:
        """Add up conditional distributions (in order) or states (at random) of every sweep."""
        self._run(advance_sites, states, stream, sweeps, sums)


@dataclass(eq=False)
class ColouredSites:
    """Sweeps colour by colour: sites of a colour share no factor, so their shards can move at the same time.

    A shard takes its random numbers from a seed that the Markov chain's stream gives it, whichever thread it runs on.
    """

    sites: Sites
    tables: FloatArray
    shards: list[list[tuple[int, int]]]
    running: Running
    threaded: bool
    conditional: ClassVar[bool] = True

    @classmethod
    def of(cls, problem: Problem, running: Running, n_chains: int) -> ColouredSites:
        """Colour a problem's sites greedily and cut each colour into shards."""
        sites, tables, shards = _kept(_COLOURED, problem, lambda: cls._layout(problem))
        quiet = Running(running.n_jobs)
        several = max((len(part) for part in shards), default=0) > 1
        return cls(sites, tables, shards, quiet, several and n_chains < (running.n_jobs or os.cpu_count() or 1))

    @staticmethod
    def _layout(problem: Problem) -> tuple[Sites, FloatArray, list[list[tuple[int, int]]]]:
        first = sites_of(problem)
        colour = colour_sites(first.variable, first.link_offsets, first.link_variable, problem.structure.n_variables)
        order = np.argsort(colour, kind="stable")
        sites = sites_of(problem, first.variable[order])
        ends = np.cumsum(np.bincount(colour, minlength=1)).tolist()
        shards = [
            [(a, min(a + SHARD, end)) for a in range(begin, end, SHARD)]
            for begin, end in zip([0, *ends[:-1]], ends, strict=True)
        ]
        return sites, tables_of(problem, sites), shards

    def __post_init__(self) -> None:
        self.sweeps_at_once = max(1, int(8 * GRAIN / max(1.0, _cost(self.sites))))
        borders = np.array([shard for part in self.shards for shard in part], np.int64).reshape(-1, 2)
        self._borders = borders[:, 0].copy(), borders[:, 1].copy()

    def advance(self, states: States, stream: Any, sweeps: int) -> None:
        """Move on by some sweeps."""
        self.accumulate(states, stream, sweeps, _NOTHING)

    def accumulate(self, states: States, stream: Any, sweeps: int, sums: FloatArray) -> None:
        """Add up the conditional distributions of every sweep."""
        begins, ends = self._borders
        if not self.threaded:
            advance_colours(self.sites, self.tables, HEAT_BATH, begins, ends, states, stream, sweeps, sums)
            return
        seeds = np.empty(len(begins), np.uint64)

        def task(begin: int, end: int, seed: Any) -> int:
            advance_shard(self.sites, self.tables, HEAT_BATH, begin, end, seed, states, sums)
            return 0

        for _ in range(sweeps):
            shard_seeds(stream, seeds)
            at = iter(seeds)
            for part in self.shards:
                tasks = [partial(task, *shard, next(at)) for shard in part]
                self.running.side_by_side(tasks)


def check_moves(problem: Problem, starts: States, method: str) -> None:
    """Raise where single-site moves provably cannot reach all that they should.

    Variables that factors with hard zeros join make a component. Up to 2^16 joint states, all of them are visited, so
    that the answer is a proof either way. In a larger component only this is looked at: no variable can leave its state
    at a start, though another assignment exists. What that leaves undecided shows, at best, as an R-hat above one.
    """
    s = problem.structure
    if s.n_variables > problem.graph.n_variables:
        raise ModelError(
            f"{method} moves one variable at a time, and a structured factor of more than {MOST_CELLS} cells holds "
            "its auxiliary variables fast: use Gibbs(scan='trees') or junction_tree"
        )
    feasible = Feasible.of(problem)
    if not feasible.hard.any():
        return
    component = hard_components(s.scope_offsets, s.scopes, feasible.hard, s.n_variables)
    hard = np.flatnonzero(feasible.hard & (np.diff(s.scope_offsets) > 0))
    home = component[s.scopes[s.scope_offsets[hard]]]
    by_component, by_home = np.argsort(component, kind="stable"), np.argsort(home, kind="stable")
    labels = np.unique(home)
    left = ALL_STATES
    for label, (a, b), (c, d) in zip(
        labels.tolist(), _ranges(component[by_component], labels), _ranges(home[by_home], labels), strict=True
    ):
        members, factors = by_component[a:b], hard[by_home[c:d]]
        small = np.log2(s.cardinalities[members]).sum() <= COMPONENT_BITS + 1e-9
        visited = int(np.prod(s.cardinalities[members], dtype=np.int64)) if small else 0
        visited = visited if visited <= left else 0
        left -= visited
        for start in starts[:1] if visited else starts:
            answer = reach(
                members, factors, visited, s.cardinalities, s.scope_offsets, s.scopes, s.table_offsets,
                s.table_strides, problem.potentials.log_tables, feasible.variable_offsets, feasible.variable_factors,
                start.copy(),
            )  # fmt: skip
            if answer == SPLIT or (answer == FROZEN and _another(feasible, starts, start, members)):
                name = problem.graph.variables[label]
                raise ModelError(
                    f"hard zeros keep {method} from reaching every assignment: moves of one variable at a time do not "
                    f"join those of the {len(members)} variables around {name!r}; use Gibbs(scan='trees') or "
                    "junction_tree"
                )


def _ranges(ordered: npt.NDArray[np.int64], labels: npt.NDArray[np.int64]) -> list[tuple[int, int]]:
    """Where each label begins and ends."""
    begins, ends = np.searchsorted(ordered, labels), np.searchsorted(ordered, labels, "right")
    return list(zip(begins.tolist(), ends.tolist(), strict=True))


def _another(feasible: Feasible, starts: States, start: States, members: npt.NDArray[np.int64]) -> bool:
    """Whether a component has an assignment other than that of a start."""
    if (starts[:, members] != start[members]).any():
        return True
    s = feasible.problem.structure
    preference = np.zeros(int(s.value_offsets[-1]))
    preference[s.value_offsets[:-1] + start] = -1.0
    found = feasible.assignment(preference)
    return found is not None and bool((found[members] != start[members]).any())
