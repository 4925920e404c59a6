"""Marginal MAP as plain MAP: variables to be summed are eliminated exactly, as far as their tables stay small."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush

import numpy as np
import numpy.typing as npt

from markovfield.arrays import FloatArray, log_sum, offsets_of
from markovfield.factors.factor_graph import FactorGraph
from markovfield.factors.factor_kinds import NOISY_MAX
from markovfield.factors.structure import Structure
from markovfield.inference.core.evidence import Evidence
from markovfield.inference.core.running import Running
from markovfield.inference.problem.problem import Problem, prepare
from markovfield.names import Names

__all__ = ["SummedOut", "assemble", "compact", "subset", "sum_out"]

Function = tuple[tuple[int, ...], FloatArray]
# Cells between two looks at the clock.
GRAIN = 2.0**22


@dataclass(frozen=True, eq=False)
class SummedOut:
    """A model whose best assignments, with what is left summed, are those of a marginal MAP problem.

    Attributes
    ----------
    graph
        The variables of the model by position, then auxiliary ones that could not be summed. A variable that was summed
        has one state; the others have those of the model, but for `left`, which have their possible ones.
    evidence
        What is known of the maximised variables.
    constant
        What the sums gave beside tables: the marginal score of an assignment is that of `graph` and this.
    left
        Positions of variables that are still to be summed, because their elimination would make too large a table.
    """

    graph: FactorGraph
    evidence: Evidence
    constant: float
    left: npt.NDArray[np.int64]


def sum_out(
    graph: FactorGraph,
    evidence: Evidence,
    maximised: npt.NDArray[np.bool_],
    *,
    largest: float,
    work: float,
    running: Running,
) -> SummedOut:
    """Eliminate variables that are not maximised, smallest table first, exactly.

    Parameters
    ----------
    maximised
        ``bool[n]``.
    largest, work
        The most cells of a table that is formed, and of all together; what would need more is left.
    running
        Asked now and then; it may raise.
    """
    s = graph.structure
    n = s.n_variables
    summed = ~maximised
    arity = np.diff(s.scope_offsets)
    owner = np.repeat(np.arange(s.n_factors), arity)
    touched = np.zeros(s.n_factors, np.bool_)
    touched[owner[summed[s.scopes]]] = True
    # The contributions of a noisy-max are summed whatever is asked.
    touched |= s.kind == NOISY_MAX
    part = FactorGraph(subset(s, np.flatnonzero(touched)), graph.log_tables)
    of_summed = tuple((v, vector) for v, vector in evidence.likelihoods if summed[v])
    problem = prepare(part, Evidence(evidence.states, of_summed), drop_barren=True, keep=maximised)
    cards = problem.structure.cardinalities
    open_ = np.ones(problem.structure.n_variables, np.bool_)
    open_[:n] = summed
    open_ &= cards > 1
    elimination = _Elimination(problem, open_, largest, work, running)
    functions = _absorb(elimination.functions())
    constant = elimination.constant
    tables: list[Function] = []
    for scope, table in functions:
        top = float(table.max())
        if top == -np.inf:
            raise evidence.impossible(s)
        constant += top
        tables.append(_on_all_states(problem, scope, table - top, maximised))
    tables += _excluded(problem, maximised)
    left = np.flatnonzero(elimination.open)
    size = n if not len(left) else max(n, int(left[-1]) + 1)
    new_cards = np.ones(size, np.int64)
    new_cards[:n][maximised] = s.cardinalities[maximised]
    new_cards[left] = cards[left]
    built = assemble(graph, np.flatnonzero(~touched), tables, new_cards)
    states = np.full(size, -1, np.int32)
    states[:n][maximised] = evidence.states[maximised]
    states.flags.writeable = False
    known = Evidence(states, tuple((v, vector) for v, vector in evidence.likelihoods if maximised[v]))
    return SummedOut(built, known, constant, left)


class _Elimination:
    """Functions over sets of variables, and the variables among them that are still to be summed."""

    def __init__(
        self, problem: Problem, open_: npt.NDArray[np.bool_], largest: float, work: float, running: Running
    ) -> None:
        s = problem.structure
        self.open, self.constant = open_, 0.0
        self.cards = s.cardinalities.tolist()
        self.bits = np.log2(s.cardinalities).tolist()
        self.of_variable: list[set[int]] = [set() for _ in self.cards]
        self.table: dict[int, Function] = {}
        self.made = 0
        pool = problem.potentials.log_tables
        for f in range(s.n_factors):
            self._add(_table(s, f, pool))
        for v in np.flatnonzero(problem.active).tolist():
            unary = problem.likelihood[s.value_offsets[v] : s.value_offsets[v + 1]]
            self._add(((v,), unary) if len(unary) > 1 else ((), unary[0]))
        self._run(float(np.log2(largest)) + 1e-9, work, running)

    def functions(self) -> list[Function]:
        return list(self.table.values())

    def _add(self, function: Function) -> None:
        scope, table = function
        if not scope:
            self.constant += float(table)
            return
        for v in scope:
            self.of_variable[v].add(self.made)
        self.table[self.made] = function
        self.made += 1

    def _cost(self, v: int) -> float:
        met: set[int] = set()
        for f in self.of_variable[v]:
            met.update(self.table[f][0])
        return sum([self.bits[u] for u in met])

    def _run(self, most_bits: float, work: float, running: Running) -> None:
        variables = np.flatnonzero(self.open).tolist()
        costs = {v: self._cost(v) for v in variables}
        heap = [(cost, v) for v, cost in costs.items()]
        heapify(heap)
        done = looked = 0.0
        while heap:
            cost, v = heappop(heap)
            if not self.open[v] or cost != costs[v]:
                continue
            if cost > most_bits or done + 2.0**cost > work:
                # What meets more than this can only be made smaller by another elimination, which puts it back.
                continue
            done += 2.0**cost
            if done - looked > GRAIN:
                running.check()
                looked = done
            for u in self._eliminate(v):
                if self.open[u]:
                    costs[u] = self._cost(u)
                    heappush(heap, (costs[u], u))

    def _eliminate(self, v: int) -> list[int]:
        """Sum a variable out of the product of its functions; the variables that it met."""
        mine = [self.table.pop(f) for f in sorted(self.of_variable[v])]
        self.open[v] = False
        if not mine:
            # Nothing speaks of it.
            self.constant += float(np.log(self.cards[v]))
            return []
        scope = sorted(set().union(*(own for own, _ in mine)))
        total = np.zeros([self.cards[u] for u in scope])
        for own, table in mine:
            total += _spread(table, own, scope)
        axis = scope.index(v)
        gone = self.of_variable[v].copy()
        for u in scope:
            self.of_variable[u] -= gone
        rest = tuple(u for u in scope if u != v)
        self._add((rest, log_sum(total, axis)))
        return list(rest)


def _spread(table: FloatArray, own: Sequence[int], scope: Sequence[int]) -> FloatArray:
    """A table over some of the variables of a scope, both in rising order, ready to be broadcast over it."""
    mine = dict(zip(own, table.shape, strict=True))
    return table.reshape([mine.get(u, 1) for u in scope])


def _table(s: Structure, f: int, pool: FloatArray) -> Function:
    """A factor as an array over its variables of several states, in rising order."""
    axes = sorted(
        (v, stride)
        for v, stride in zip(s.scope(f).tolist(), s.strides(f).tolist(), strict=True)
        if s.cardinalities[v] > 1
    )
    cells = np.array(s.table_offsets[f])
    for v, stride in axes:
        cells = cells[..., None] + stride * np.arange(int(s.cardinalities[v]))
    return tuple(v for v, _ in axes), pool[cells]


def _absorb(functions: list[Function]) -> list[Function]:
    """Add each function to one that has all its variables, where there is one: fewer and no larger tables."""
    holding: dict[int, list[int]] = {}
    kept: list[tuple[tuple[int, ...], FloatArray, frozenset[int]]] = []
    for scope, table in sorted(functions, key=lambda function: (-len(function[0]), function[0])):
        few = min((holding.get(v, []) for v in scope), key=len)
        host = next((i for i in few if kept[i][2].issuperset(scope)), None)
        if host is not None:
            own = kept[host]
            kept[host] = (own[0], own[1] + _spread(table, scope, own[0]), own[2])
            continue
        for v in scope:
            holding.setdefault(v, []).append(len(kept))
        kept.append((scope, table, frozenset(scope)))
    return [(scope, table) for scope, table, _ in kept]


def _on_all_states(
    problem: Problem, scope: tuple[int, ...], table: FloatArray, maximised: npt.NDArray[np.bool_]
) -> Function:
    """A table over the possible states of its variables, put among all states of those that are maximised."""
    reduced = problem.reduced
    if reduced is None:
        return scope, table
    n = len(maximised)
    places, shape = [], []
    for v, card in zip(scope, table.shape, strict=True):
        if v < n and maximised[v]:
            places.append(reduced.states[reduced.state_offsets[v] : reduced.state_offsets[v + 1]])
            shape.append(int(problem.as_tables.structure.cardinalities[v]))
        else:
            places.append(np.arange(card))
            shape.append(card)
    if list(table.shape) == shape:
        return scope, table
    out = np.full(shape, -np.inf)
    out[np.ix_(*places)] = table
    return scope, out


def _excluded(problem: Problem, maximised: npt.NDArray[np.bool_]) -> list[Function]:
    """For each maximised variable that hard zeros took states from, a table that says so."""
    reduced, all_cards = problem.reduced, problem.as_tables.structure.cardinalities
    if reduced is None:
        return []
    n = len(maximised)
    found: list[Function] = []
    free = (problem.evidence.states < 0) & maximised
    for v in np.flatnonzero(free & (problem.structure.cardinalities[:n] < all_cards[:n])).tolist():
        table = np.full(int(all_cards[v]), -np.inf)
        table[reduced.states[reduced.state_offsets[v] : reduced.state_offsets[v + 1]]] = 0.0
        found.append(((v,), table))
    return found


def subset(s: Structure, factors: npt.NDArray[np.int64], n_cells: int | None = None) -> Structure:
    """The same variables and pool (or none) with some of the factors."""
    arity = np.diff(s.scope_offsets)[factors]
    axes = _axes(s, factors)
    return Structure.from_arrays(
        s.cardinalities,
        offsets_of(arity),
        s.scopes[axes],
        s.table_offsets[factors],
        s.table_strides[axes],
        n_cells=s.n_cells if n_cells is None else n_cells,
        child=s.child[factors],
        kind=s.kind[factors],
        names=Names(range(s.n_variables)),
    )


def _axes(s: Structure, factors: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Where the axes of some factors stand among all."""
    arity = np.diff(s.scope_offsets)[factors]
    ends = np.cumsum(arity)
    return np.repeat(s.scope_offsets[factors] - ends + arity, arity) + np.arange(int(arity.sum()))


def compact(graph: FactorGraph, factors: npt.NDArray[np.int64]) -> FactorGraph:
    """The same variables with some of the factors, which are plain tables, and no cells but theirs."""
    s = graph.structure
    tables = [_table(s, f, graph.log_tables) for f in factors.tolist()]
    nothing = FactorGraph(subset(s, factors[:0], n_cells=0), np.zeros(0))
    return assemble(nothing, factors[:0], tables, s.cardinalities.astype(np.int64))


def assemble(
    graph: FactorGraph, factors: npt.NDArray[np.int64], tables: list[Function], cards: npt.NDArray[np.int64]
) -> FactorGraph:
    """Some factors of a graph as they are, and new tables."""
    s = graph.structure
    axes = _axes(s, factors)
    arity = np.concatenate([np.diff(s.scope_offsets)[factors], [len(scope) for scope, _ in tables]]).astype(np.int64)
    sizes = np.array([table.size for _, table in tables], np.int64)
    strides = [np.cumprod([1, *table.shape[:0:-1]])[::-1] for _, table in tables]
    structure = Structure.from_arrays(
        cards,
        offsets_of(arity),
        np.concatenate([s.scopes[axes], *(np.array(scope, np.int64) for scope, _ in tables)]),
        np.concatenate([s.table_offsets[factors], s.n_cells + np.cumsum(sizes) - sizes]),
        np.concatenate([s.table_strides[axes], *strides]),
        n_cells=s.n_cells + int(sizes.sum()),
        kind=np.concatenate([s.kind[factors], np.zeros(len(tables), np.int8)]),
        names=Names(range(len(cards))),
    )
    return FactorGraph(structure, np.concatenate([graph.log_tables, *(table.ravel() for _, table in tables)]))
