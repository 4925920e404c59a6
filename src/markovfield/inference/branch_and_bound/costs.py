"""Networks of integer costs, and bounds on their best assignment by soft local consistency."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from markovfield.arrays import FloatArray, IntArray, offsets_of
from markovfield.exceptions import ModelError
from markovfield.inference.branch_and_bound.consistency_kernel import FORBIDDEN, LIMIT, REGISTERS, Board, CostLayout
from markovfield.inference.branch_and_bound.root_kernel import edge_minima
from markovfield.inference.problem.pairwise import pairwise
from markovfield.inference.problem.problem import Problem
from markovfield.inference.tree_reweighted.stars_kernel import breadth_first, finite_cells

__all__ = ["CostNetwork", "CostScale", "Costs", "cost_scale"]


# Sums of costs stay below 2^54 units, far from what counts as forbidden.
MOST_BITS = 54
# Finer than a unit, so that a cost can be shared among functions; integer units come back when bounds are rounded up.
MOST_PARTS = 1 << 10
_DECIMALS = 9


@dataclass(frozen=True)
class CostScale:
    """How log-potentials become integer costs: ``cost = floor(-log_potential / unit) * parts``.

    Attributes
    ----------
    unit
        What one step of cost is worth.
    parts
        Into how many parts a step is divided: the costs of assignments are multiples of it.
    exact
        Whether every log-potential is a multiple of the unit, so that nothing is rounded.
    """

    unit: float
    parts: int
    exact: bool

    def costs(self, log_potentials: FloatArray) -> IntArray:
        """Integer costs; -inf is forbidden."""
        hard = np.isneginf(log_potentials)
        scaled = np.where(hard, 0.0, -log_potentials) / self.unit
        whole = (np.rint(scaled) if self.exact else np.floor(scaled)).astype(np.int64) * self.parts
        return np.where(hard, FORBIDDEN, whole)

    def score(self, cost: int) -> float:
        """The score that a cost stands for."""
        return -float(cost) / self.parts * self.unit


def cost_scale(log_potentials: FloatArray, n_factors: int, *, most_bits: int = MOST_BITS) -> CostScale:
    """The coarsest decimal unit that all finite log-potentials are multiples of, or else a fine power of two.

    Such that sums over ``n_factors`` of them stay below 2^most_bits units.

    Examples
    --------
    >>> cost_scale(np.array([-3.0, 0.0, -np.inf]), 3)
    CostScale(unit=1.0, parts=1024, exact=True)
    >>> cost_scale(np.array([-0.25, -1.5]), 2).unit
    0.01
    >>> cost_scale(np.log([0.3, 0.7]), 1).exact
    False
    """
    values = np.unique(log_potentials[np.isfinite(log_potentials)])
    span = 2.0 * max(n_factors, 1) * float(np.abs(values).max(initial=0.0))
    for decimals in range(_DECIMALS + 1):
        factor = 10.0**decimals
        if span * factor >= 2.0**most_bits:
            break
        # Read back the way a decimal file is: the number nearest to whole / factor.
        if np.array_equal(np.rint(values * factor) / factor, values):
            room = most_bits - np.log2(max(span * factor, 1.0))
            return CostScale(1.0 / factor, int(min(MOST_PARTS, 2.0 ** np.floor(room))), True)
    return CostScale(float(2.0 ** (np.ceil(np.log2(span)) - most_bits)), 1, False)


@dataclass(frozen=True, eq=False)
class CostNetwork:
    """One connected component of a problem as a network of costs, with a board to work on.

    Attributes
    ----------
    variables
        ``int64``: positions of its variables in the problem.
    constant
        What was taken out of all functions to make their least costs zero; the board's bound starts with it.
    total
        No possible assignment costs more.
    """

    layout: CostLayout
    board: Board
    variables: IntArray
    constant: int
    total: int

    @property
    def n_variables(self) -> int:
        """Number of variables."""
        return len(self.variables)

    @property
    def n_functions(self) -> int:
        """Functions of three variables or more."""
        return len(self.layout.function_cells) - 1


def _sealed(array: npt.ArrayLike) -> IntArray:
    result = np.ascontiguousarray(array, np.int64)
    result.flags.writeable = False
    return result


@dataclass(frozen=True, eq=False)
class Costs:
    """A prepared problem in integer costs: unary costs, pairs, larger functions, and its connected components.

    Build it with `Costs.of`.
    """

    problem: Problem
    scale: CostScale
    unary: IntArray
    pool: IntArray
    pair_nodes: IntArray
    pair_base: IntArray
    pair_strides: IntArray
    functions: IntArray
    function_cells: IntArray
    axis_at: IntArray
    cell_cost: IntArray
    cell_states: npt.NDArray[np.int32]
    component: IntArray
    rounding: float

    @classmethod
    def of(cls, problem: Problem, *, max_factor_cells: int = 2**18) -> Costs:
        """Round a problem's log-potentials to costs.

        Time and memory are linear in the pool and in the cells of factors of three or more variables; such a factor of
        more than ``max_factor_cells`` cells is refused.

        Examples
        --------
        >>> import markovfield as mf
        >>> from markovfield.inference.core.evidence import Evidence
        >>> from markovfield.inference.problem.problem import prepare
        >>> net = mf.MarkovNetwork({"A": 2, "B": 2, "C": 2})
        >>> _ = net.add_factor(["A", "B"], log_table=[[0, -3], [-2, 0]])
        >>> graph = net.compile()
        >>> costs = Costs.of(prepare(graph, Evidence.parse(graph.structure, None)))
        >>> costs.scale.unit, costs.component.tolist()
        (1.0, [0, 0, 1])
        """
        s = problem.structure
        log_tables = problem.potentials.log_tables
        view = pairwise(s)
        scale = cost_scale(np.concatenate([log_tables, problem.likelihood]), s.n_factors + int(problem.active.sum()))
        pool = scale.costs(log_tables)
        unary = _unary(problem, scale, pool)
        pairs, large = view.pairs, view.large
        nodes, base, strides, pool = _pairs(problem, pool)
        cells, axis_at, cell_log, cell_states = _cells(problem, large, max_factor_cells)
        # Each factor is rounded down by less than a unit, and so is each vector of likelihoods.
        rounded = 0 if scale.exact else int((view.arity > 0).sum() + problem.active.sum())
        return cls(
            problem,
            scale,
            unary,
            pool,
            nodes,
            base,
            strides,
            large,
            cells,
            axis_at,
            scale.costs(cell_log),
            cell_states,
            _components(s, pairs, large),
            rounded * scale.unit,
        )

    def networks(self) -> Iterator[CostNetwork | tuple[IntArray, IntArray]]:
        """The connected components with two variables or more; last, the single variables and their cheapest states."""
        s = self.problem.structure
        sizes = np.bincount(self.component)
        single = np.flatnonzero(sizes[self.component] == 1)
        edge_component = self.component[self.pair_nodes[:, 0]] if len(self.pair_nodes) else np.zeros(0, np.int64)
        owner = s.scopes[s.scope_offsets[self.functions]] if len(self.functions) else np.zeros(0, np.int32)
        function_component = self.component[owner]
        order = np.argsort(self.component, kind="stable")
        edges, larges = np.argsort(edge_component, kind="stable"), np.argsort(function_component, kind="stable")
        v_at, e_at = offsets_of(sizes), offsets_of(np.bincount(edge_component, minlength=len(sizes)))
        f_at = offsets_of(np.bincount(function_component, minlength=len(sizes)))
        for c in np.flatnonzero(sizes > 1).tolist():
            yield self._network(
                order[v_at[c] : v_at[c + 1]], edges[e_at[c] : e_at[c + 1]], larges[f_at[c] : f_at[c + 1]]
            )
        at = s.value_offsets
        best = [int(np.argmin(self.unary[at[v] : at[v + 1]])) for v in single.tolist()]
        yield single, np.array(best, np.int64)

    def _network(self, variables: IntArray, edges: IntArray, functions: IntArray) -> CostNetwork:
        s = self.problem.structure
        local = np.zeros(s.n_variables, np.int64)
        local[variables] = np.arange(len(variables))
        cards = s.cardinalities[variables].astype(np.int64)
        offsets = offsets_of(cards)
        half_node = local[self.pair_nodes[edges]].ravel()
        minima = np.empty(len(edges), np.int64)
        base, strides = _sealed(self.pair_base[edges]), _sealed(self.pair_strides[edges].ravel())
        edge_minima(_sealed(cards), _sealed(half_node), strides, base, _sealed(self.pool), minima)
        if (minima >= LIMIT).any():
            raise self.problem.impossible()
        at = s.value_offsets
        unary = np.concatenate([self.unary[at[v] : at[v + 1]] for v in variables.tolist()])
        least = np.minimum.reduceat(unary, offsets[:-1])
        if (least >= LIMIT).any():
            raise self.problem.impossible()
        scopes, scope_at, cell_at, axis_at, cells, states = self._functions(functions, local)
        least_cells = np.minimum.reduceat(cells, cell_at[:-1]) if len(functions) else np.zeros(0, np.int64)
        constant = int(minima.sum()) + int(least.sum()) + int(least_cells.sum())
        n, m, f = len(variables), len(edges), len(functions)
        at_size = 1 + len(unary)
        at_degree, at_free = at_size + n, at_size + 2 * n
        at_count = at_free + 1
        at_message = at_count + f
        message_at = at_message + offsets_of(cards[half_node])
        at_cell = int(message_at[-1])
        by_function = np.argsort(scopes, kind="stable")
        layout = CostLayout(
            _sealed(offsets),
            _sealed(offsets_of(np.bincount(half_node, minlength=n))),
            _sealed(half_node),
            strides,
            _sealed(message_at[:-1]),
            base,
            _sealed(self.pool),
            _sealed(scope_at),
            _sealed(scopes),
            _sealed(cell_at),
            _sealed(axis_at),
            _sealed(states),
            _sealed(offsets_of(np.bincount(scopes, minlength=n))),
            _sealed(np.repeat(np.arange(f), np.diff(scope_at))[by_function]),
            1,
            at_size,
            at_degree,
            at_free,
            at_count,
            at_message,
            at_cell,
        )
        state = np.zeros(at_cell + len(cells), np.int64)
        state[0] = constant
        state[1:at_size] = unary - np.repeat(least, cards)
        state[at_size:at_degree] = cards
        state[at_degree:at_free] = np.bincount(half_node, minlength=n)
        state[at_free] = n
        state[at_count:at_message] = np.diff(cell_at)
        # The least cost of an edge is taken out through the messages of its first half.
        first = np.zeros(2 * m, np.int64)
        first[0::2] = minima
        state[at_message:at_cell] = np.repeat(first, cards[half_node])
        state[at_cell:] = cells - np.repeat(least_cells, np.diff(cell_at))
        board = _board(layout, state, cards, _widest(layout))
        _drop_forbidden(layout, board)
        return CostNetwork(layout, board, variables, constant, constant + self._most(state, layout, minima))

    def _functions(self, functions: IntArray, local: IntArray) -> tuple[Any, ...]:
        """Scopes in rising order, cells and their states, of some of the larger functions."""
        s = self.problem.structure
        scopes, scope_at, cell_at, axis_at, cells, states = [], [0], [0], [0], [], []
        for f in functions.tolist():
            factor = int(self.functions[f])
            scope = local[s.scope(factor)]
            order = np.argsort(scope)
            first, last = int(self.function_cells[f]), int(self.function_cells[f + 1])
            own = self.cell_states[self.axis_at[f] : self.axis_at[f + 1]].reshape(len(scope), last - first)
            scopes.append(scope[order])
            states.append(own[order].ravel())
            cells.append(self.cell_cost[first:last])
            scope_at.append(scope_at[-1] + len(scope))
            cell_at.append(cell_at[-1] + last - first)
            axis_at.append(axis_at[-1] + own.size)
        nothing = [np.zeros(0, np.int64)]
        return (
            np.concatenate(scopes or nothing),
            np.array(scope_at, np.int64),
            np.array(cell_at, np.int64),
            np.array(axis_at, np.int64),
            np.concatenate(cells or nothing),
            np.concatenate(states or nothing),
        )

    def _most(self, state: IntArray, layout: CostLayout, minima: IntArray) -> int:
        """An assignment above the constant costs at most this: the largest finite cost of each function."""
        unary = np.where(state[1 : layout.at_size] < LIMIT, state[1 : layout.at_size], 0)
        most = int(np.maximum.reduceat(unary, layout.value_offsets[:-1]).sum())
        cells = state[layout.at_cell :]
        most += int(np.maximum.reduceat(cells, layout.function_cells[:-1]).sum()) if len(cells) else 0
        finite = layout.costs[layout.costs < LIMIT]
        # Shared tables are not looked up one by one: none of their cells exceeds the pool's largest.
        most += int((int(finite.max(initial=0)) - minima).sum()) if len(minima) else 0
        return min(most, 1 << 57)


def _widest(layout: CostLayout) -> int:
    """The most states in the scope of a function, all its variables together."""
    cards = np.diff(layout.value_offsets)[layout.scopes]
    return int(np.add.reduceat(cards, layout.scope_offsets[:-1]).max()) if len(cards) else 1


def _board(layout: CostLayout, state: IntArray, cards: IntArray, widest: int) -> Board:
    n, m, f = len(cards), len(layout.edge_base), len(layout.function_cells) - 1
    room = int(min(max(24 * len(state), 1 << 16), 1 << 23)) + 2 * len(state)
    largest = int(cards.max(initial=1))
    states = np.arange(len(state[1 : layout.at_size])) - np.repeat(layout.value_offsets[:-1], cards)
    by_node = np.argsort(layout.half_node, kind="stable").astype(np.int64)
    half_place = np.empty(2 * m, np.int64)
    half_place[by_node] = np.arange(2 * m) - layout.adjacency_offsets[layout.half_node[by_node]]
    return Board(
        state,
        np.zeros(len(state), np.int64),
        np.empty(room, np.int64),
        np.empty(room, np.int64),
        np.zeros(REGISTERS, np.int64),
        states.copy(),
        states.copy(),
        by_node,
        half_place,
        np.arange(n),
        np.arange(n),
        np.arange(layout.function_cells[-1]) - np.repeat(layout.function_cells[:-1], np.diff(layout.function_cells)),
        np.zeros(n, np.int64),
        np.ones(m + f),
        np.ones(n, np.bool_),
        np.ones(n, np.bool_),
        np.ones(n, np.bool_),
        np.ones(f, np.bool_),
        np.zeros(largest, np.int64),
        np.zeros(largest, np.int64),
        np.zeros(largest, np.int64),
        np.zeros(largest, np.int64),
        np.zeros(widest, np.int64),
        np.zeros(layout.at_cell - layout.at_message, np.int64),
    )


def _drop_forbidden(layout: CostLayout, board: Board) -> None:
    """States that are forbidden by themselves leave the domains, so that all unary costs are finite."""
    state, at = board.state, layout.value_offsets
    for v in np.unique(np.searchsorted(at, np.flatnonzero(state[1 : layout.at_size] >= LIMIT), "right") - 1).tolist():
        unary = state[1 + at[v] : 1 + at[v + 1]]
        order = np.argsort(unary >= LIMIT, kind="stable")
        board.domain[at[v] : at[v + 1]] = order
        board.place[at[v] + order] = np.arange(len(order))
        state[layout.at_size + v] = int((unary < LIMIT).sum())
        board.support[v] = order[0]
        unary[unary >= LIMIT] = 0


def _unary(problem: Problem, scale: CostScale, pool: IntArray) -> IntArray:
    """Factors of one variable and likelihoods, added up."""
    s = problem.structure
    out = np.zeros(int(s.value_offsets[-1]), np.int64)
    if len(problem.likelihood):
        out += scale.costs(problem.likelihood)
    where, cell = pairwise(s).unary_cells
    cost = pool[cell]
    np.add.at(out, where, np.where(cost >= LIMIT, 0, cost))
    out[where[cost >= LIMIT]] = FORBIDDEN
    return np.where(out >= LIMIT, FORBIDDEN, out)


def _pairs(problem: Problem, pool: IntArray) -> tuple[IntArray, IntArray, IntArray, IntArray]:
    """Nodes, base and strides of the pairs; several factors on the same two variables are added up in a new table."""
    s = problem.structure
    view = pairwise(s)
    nodes = np.stack([view.low, view.high], axis=1)
    strides = np.stack([view.low_stride, view.high_stride], axis=1)
    base = s.table_offsets[view.pairs].copy()
    key = nodes[:, 0] * s.n_variables + nodes[:, 1]
    _, representative, edge, counts = np.unique(key, return_index=True, return_inverse=True, return_counts=True)
    shared = np.flatnonzero(counts > 1)
    by_edge, starts = np.argsort(edge, kind="stable"), offsets_of(counts)
    added, at = [pool], len(pool)
    for e in shared.tolist():
        factors = by_edge[starts[e] : starts[e + 1]]
        kept = int(representative[e])
        rows, columns = s.cardinalities[nodes[kept]].tolist()
        total = np.zeros((rows, columns), np.int64)
        hard = np.zeros((rows, columns), np.bool_)
        for k in factors.tolist():
            i, j = np.arange(rows)[:, None], np.arange(columns)[None, :]
            table = pool[base[k] + strides[k, 0] * i + strides[k, 1] * j]
            hard |= table >= LIMIT
            total += np.where(table >= LIMIT, 0, table)
        added.append(np.where(hard, FORBIDDEN, total).ravel())
        base[kept], strides[kept] = at, (columns, 1)
        at += rows * columns
    pool = np.concatenate(added) if len(shared) else pool
    return nodes[representative], base[representative], strides[representative], pool


def _cells(problem: Problem, large: IntArray, limit: int) -> tuple[IntArray, IntArray, FloatArray, Any]:
    """Cells above -inf of the factors of three or more variables, and the state of each axis in each of them."""
    s = problem.structure
    sizes = np.zeros(s.n_factors)
    np.add.at(sizes, np.repeat(np.arange(s.n_factors), np.diff(s.scope_offsets)), np.log2(s.cardinalities[s.scopes]))
    if len(large) and sizes[large].max() > np.log2(limit):
        raise ModelError(
            f"a factor of {int(np.diff(s.scope_offsets)[large].max())} variables has 2^{sizes[large].max():.1f} cells, "
            f"and the search takes at most {limit}: raise max_factor_cells, or use mini_bucket or belief_propagation"
        )
    counts = np.zeros(len(large) + 1, np.int64)
    nothing, no_states = np.zeros(0), np.zeros(0, np.int32)
    if not len(large):
        return counts, counts, nothing, no_states
    arguments = (
        large, s.cardinalities, s.scope_offsets, s.scopes, s.table_offsets, s.table_strides,
        problem.potentials.log_tables,
    )  # fmt: skip
    finite_cells(*arguments, counts, counts.copy(), nothing, no_states)
    cells = np.cumsum(counts)
    if (np.diff(cells) == 0).any():
        raise problem.impossible()
    axis_at = offsets_of(np.diff(cells) * np.diff(s.scope_offsets)[large])
    cell_log, cell_states = np.empty(int(cells[-1])), np.empty(int(axis_at[-1]), np.int32)
    finite_cells(*arguments, cells, axis_at, cell_log, cell_states)
    return cells, axis_at, cell_log, cell_states


def _components(s: Any, pairs: IntArray, large: IntArray) -> IntArray:
    """The connected component of each variable, numbered in the order of their first ones."""
    several = np.concatenate([pairs, large])
    arity = np.diff(s.scope_offsets)[several]
    starts = offsets_of(arity)
    axes = np.repeat(s.scope_offsets[several] - starts[:-1], arity) + np.arange(starts[-1])
    one, two = np.repeat(s.scopes[s.scope_offsets[several]], arity), s.scopes[axes]
    ends, others = np.concatenate([one, two]), np.concatenate([two, one]).astype(np.int64)
    order, offsets = breadth_first(
        offsets_of(np.bincount(ends, minlength=s.n_variables)), others[np.argsort(ends, kind="stable")]
    )
    label = np.empty(s.n_variables, np.int64)
    label[order] = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    return label
