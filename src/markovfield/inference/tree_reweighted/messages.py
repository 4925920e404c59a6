"""The messages of a tree-reweighted run, its trees, and the best bound so far."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from markovfield.arrays import FloatArray, offsets_of
from markovfield.exceptions import ModelError
from markovfield.inference.core.answers import Components
from markovfield.inference.core.running import Running
from markovfield.inference.problem.problem import component_labels
from markovfield.inference.tree_reweighted.pseudo_marginals_kernel import (
    cell_counts,
    edge_belief,
    mutual_information,
    node_beliefs,
)
from markovfield.inference.tree_reweighted.spanning_trees import SpanningTrees, best_tree
from markovfield.inference.tree_reweighted.stars import PairGraph
from markovfield.inference.tree_reweighted.sweeps_kernel import (
    TABLE,
    backtrack_tree,
    fill_linear,
    hold,
    sweep,
    tree_value,
)

__all__ = ["ReweightedMessages"]

# Work between two looks at the clock, in units of about 5 ns; sweeps between two evaluations of the bound.
GRAIN = 2.0**24
SWEEPS_PER_BOUND = 10
STRONGEST_DAMPING = 0.9
# Changes of messages that grow by this much are undone, and more damping taken.
GETS_OUT_OF_HAND = 4.0
# Frank-Wolfe: sweeps to judge a step by, and the smallest step worth judging.
SWEEPS_PER_STEP = 30
SMALLEST_STEP = 1.0 / 128.0
# Parts that the trees are cut into, for threads; and of the components, each of so much work at least.
SHARDS, PARTS, PART_WORK = 4, 8, 2.0**17
# The most cells of tables in linear space: half a gigabyte.
LINEAR_CELLS = 2**26


@dataclass(eq=False)
class ReweightedMessages:
    """Messages on one graph of pairs, the trees, and the best bound so far."""

    pairs: PairGraph
    trees: SpanningTrees
    maximise: bool
    max_iterations: int
    tolerance: float
    damping: float
    residuals: list[float] = field(default_factory=list)
    converged: bool = False
    warm: bool = False

    def __post_init__(self) -> None:
        pairs = self.pairs
        self._mix(self.trees)
        self.node_log = pairs.node_log.copy()
        self.messages = np.zeros(int(pairs.layout.message_offsets[-1]))
        self.held = np.empty(len(self.node_log))
        self.component_values = np.full(pairs.n_components, np.inf)
        self.component_converged = np.zeros(pairs.n_components, np.bool_)
        self.sweeps = np.zeros(pairs.n_components, np.int64)
        sizes = np.diff(pairs.layout.message_offsets)
        cost = 10.0 * len(sizes) + 2.0 * float((sizes[0::2] * sizes[1::2]).sum())
        self.sweeps_at_once = max(1, int(GRAIN / max(cost, 1.0)))
        self.parts = self._parts(cost)

    def _parts(self, cost: float) -> tuple[npt.NDArray[np.bool_], ...]:
        """Components that may be swept side by side: masks of about equal work, whatever the number of threads."""
        at, n_components = self.pairs.layout, self.pairs.n_components
        n = int(min(PARTS, n_components, max(1.0, cost // PART_WORK)))
        if n < 2:
            return (np.ones(n_components, np.bool_),)
        work = np.bincount(at.half_node, 5.0 + np.diff(at.message_offsets) ** 2, self.pairs.n_nodes)
        done = np.cumsum(np.add.reduceat(work, at.component_offsets[:-1]))
        part = np.minimum(n - 1, (n * (done - 0.5 * np.diff(done, prepend=0.0)) / done[-1]).astype(np.int64))
        return tuple(part == i for i in range(n))

    @property
    def value(self) -> float:
        """The best bound so far."""
        return float(self.component_values.sum()) + self.pairs.constant

    @property
    def last_residual(self) -> float:
        """The largest change of a message in the last sweep."""
        return self.residuals[-1] if self.residuals else float("inf")

    def start_from(self, init: Any, *, with_trees: bool) -> None:
        """Take over the messages, and if wanted the trees, of an earlier run on a graph of the same shape."""
        earlier = getattr(init, "_state", None)
        if not isinstance(earlier, ReweightedMessages) or earlier.maximise != self.maximise:
            raise ModelError("init of tree_reweighted must be an earlier answer of tree_reweighted to marginals")
        if earlier.pairs.same_shape != self.pairs.same_shape:
            raise ModelError("init of tree_reweighted is an answer about another graph, or other variables observed")
        self.messages[:] = earlier.messages
        self.warm = True
        if with_trees:
            self._mix(earlier.trees)

    def evaluate(self, running: Running) -> FloatArray:
        """The bound of each component at the current messages; trees side by side on the threads of ``running``."""
        pairs = self.pairs
        hold(pairs.layout, self.node_log, self.messages, self.held)
        values = np.empty((len(self.trees), pairs.n_components))

        def some(trees: range) -> int:
            collected = np.empty(len(self.held))
            for t in trees:
                self._tree_value(t, collected, values[t])
            return 0

        # A clock of its own: the bound is wanted even when the time is over.
        tasks = [partial(some, range(first, len(self.trees), SHARDS)) for first in range(min(SHARDS, len(self.trees)))]
        Running(running.n_jobs).side_by_side(tasks)
        total = np.zeros(pairs.n_components)
        for weight, value in zip(self.trees.weights, values, strict=True):
            total += weight * value
        if (total == -np.inf).any():
            raise pairs.problem.impossible()
        return total

    def _tree_value(self, t: int, collected: FloatArray, values: FloatArray) -> None:
        """log Z, or the best score, of each component under one tree."""
        tree_value(
            self.pairs.layout, self.rho, self.linear_at, self.linear, self.trees.orders[t], self.trees.parents[t],
            self.messages, self.held, np.bool_(self.maximise), collected, values,
        )  # fmt: skip

    def converge(self, running: Running, limit: int | None = None) -> FloatArray:
        """Sweep until messages converge, at most ``limit`` times; the best bound of each component with these trees."""
        limit = limit or self.max_iterations
        pairs = self.pairs
        self.component_converged[:] = False
        self.converged = False
        damping = self.damping
        # Messages of an earlier run have been evaluated there, with other potentials: sweeps come first.
        hold(pairs.layout, self.node_log, self.messages, self.held)
        best = np.full(pairs.n_components, np.inf) if self.warm else self.evaluate(running)
        self.warm = False
        self.component_values = np.minimum(self.component_values, best)
        changes = np.zeros(pairs.n_components)
        kept, lowest = self.messages.copy(), float(best.sum())
        begun, last = len(self.residuals), np.inf
        while len(self.residuals) - begun < limit and not self.converged:
            at_most = min(SWEEPS_PER_BOUND, limit - len(self.residuals) + begun)
            try:
                residual, smallest = self._sweeps(at_most, damping, changes, running)
            finally:
                # The bound holds at any messages, also at those that a time limit left.
                values = self.evaluate(running)
                best = np.minimum(best, values)
                self.component_values = np.minimum(self.component_values, best)
            self.converged = bool(self.component_converged.all())
            wild = residual > GETS_OUT_OF_HAND * smallest
            if values.sum() < lowest and (lowest < np.inf or not wild):
                kept[:], lowest = self.messages, float(values.sum())
            if wild or residual > 0.9 * last:
                damping = max(damping, min(STRONGEST_DAMPING, max(0.5, 0.5 * (1.0 + damping))))
            if wild:
                self.messages[:] = kept
                hold(pairs.layout, self.node_log, self.messages, self.held)
            last = np.inf if wild else residual
        return best

    def _sweeps(self, count: int, damping: float, changes: FloatArray, running: Running) -> tuple[float, float]:
        """Some sweeps, fewer where all messages converge or get out of hand; the last residual and the least."""
        residual, smallest = 0.0, np.inf
        for i in range(count):
            if i % self.sweeps_at_once == 0:
                running.check(self.value)
            active = ~self.component_converged
            moving = [some for part in self.parts if (some := part & active).any()]
            running.quiet.side_by_side([partial(self._sweep, some, damping, changes) for some in moving])
            if (changes < 0).any():
                raise self.pairs.problem.impossible()
            self.sweeps += active
            residual = float(changes[active].max(initial=0.0))
            self.residuals.append(residual)
            self.component_converged |= changes <= self.tolerance * (1.0 - damping)
            smallest = min(smallest, residual)
            if self.component_converged.all() or residual > GETS_OUT_OF_HAND * smallest:
                break
        return residual, smallest

    def _sweep(self, active: npt.NDArray[np.bool_], damping: float, changes: FloatArray) -> int:
        """All messages of some components once towards their first nodes, and once back."""
        sweep(
            self.pairs.layout, self.rho, self.linear_at, self.linear, 1.0 - damping, np.bool_(self.maximise),
            active, self.messages, self.node_log, self.held, changes,
        )  # fmt: skip
        return 0

    def optimise(self, running: Running, iterations: int) -> None:
        """Frank-Wolfe on the edge probabilities: each step mixes in the tree of greatest mutual information.

        That is the derivative of the bound by the probabilities, where messages have converged. A step that does not
        lower the bound is halved; few sweeps are enough to tell, since the bound holds at any messages.
        """
        pairs = self.pairs
        gain = np.empty(pairs.n_edges)
        step = 0.5
        value = float(self.component_values.sum())
        moved = False
        for _ in range(iterations):
            mutual_information(pairs.layout, self.rho, self.messages, self.held, pairs.largest, gain)
            # Where potentials are so far apart that it cannot be computed, an edge is no better than another.
            gain[~np.isfinite(gain)] = 0.0
            tree = best_tree(pairs, gain)
            if float(gain @ (tree - self.rho)) <= 1e-9 * max(1.0, abs(value)):
                break
            trees, messages = self.trees, self.messages.copy()
            accepted = False
            while step >= SMALLEST_STEP and not accepted:
                self._mix(trees.mixed_with(pairs, tree, step))
                tried = float(self.converge(running, SWEEPS_PER_STEP).sum())
                accepted = tried < value
                if not accepted:
                    self._mix(trees)
                    self.messages[:] = messages
                    step *= 0.5
            if not accepted:
                break
            value, moved = tried, True
            step = min(0.5, 1.5 * step)
        if moved:
            self.converge(running)

    def _mix(self, trees: SpanningTrees) -> None:
        """Take other trees: their edge probabilities, and tables in linear space for them."""
        self.trees, self.rho = trees, trees.probabilities
        self.linear_at, self.linear = _linear_tables(self.pairs, self.rho)

    def finish(self) -> None:
        """Leave the node scores as the messages say."""
        hold(self.pairs.layout, self.node_log, self.messages, self.held)

    def beliefs(self) -> FloatArray:
        """Pseudo-marginals of all nodes."""
        beliefs = np.empty(len(self.held))
        node_beliefs(self.pairs.layout, self.held, beliefs)
        return beliefs

    def of_variables(self, values: FloatArray) -> FloatArray:
        """Values per state of the nodes, as those per state of the problem's variables."""
        s = self.pairs.problem.structure
        starts = self.pairs.layout.value_offsets[self.pairs.variable_node]
        shift = np.repeat(starts - s.value_offsets[:-1], s.cardinalities)
        return values[shift + np.arange(len(shift))]

    def components(self) -> Components:
        """The connected components; evidence may have cut some of them into several that ran each for itself."""
        problem, at = self.pairs.problem, self.pairs.layout
        part = np.searchsorted(at.component_offsets, self.pairs.variable_node, side="right") - 1
        first = np.unique(part, return_index=True)[1]
        of_variables = np.zeros(len(part))
        of_variables[first] = self.component_values
        constant = np.where(np.diff(problem.structure.scope_offsets) == 0, problem.base_values, 0.0)
        whole = problem.components(constant, of_variables)
        label = component_labels(problem.as_tables.structure)[0][first]
        converged, sweeps = np.ones(len(whole), np.bool_), np.zeros(len(whole), np.int64)
        np.logical_and.at(converged, label, self.component_converged | self.converged)
        np.maximum.at(sweeps, label, self.sweeps)
        return Components(whole.component, whole.log_partition, converged, sweeps)

    def counts(self, beliefs: FloatArray) -> FloatArray:
        """Pseudo-marginal probabilities in the cells of the reduced pool."""
        pairs, s = self.pairs, self.pairs.problem.structure
        counts = np.zeros(len(pairs.problem.potentials.log_tables))
        cell_counts(
            pairs.layout, self.rho, self.messages, self.held, beliefs, pairs.largest, s.scope_offsets, s.scopes,
            s.table_offsets, s.table_strides, pairs.variable_node, pairs.factor_edge, pairs.factor_node, counts,
        )  # fmt: skip
        return counts

    def joint(self, beliefs: FloatArray, positions: tuple[int, ...]) -> FloatArray:
        """The pseudo-marginal of variables that one factor holds."""
        pairs, problem = self.pairs, self.pairs.problem
        s = problem.structure
        free = [v for v in dict.fromkeys(positions) if s.cardinalities[v] > 1]
        if len(free) > 1:
            factor = next((f for f in range(s.n_factors) if set(free) <= set(s.scope(f).tolist())), None)
            if factor is None:
                names = ", ".join(repr(problem.graph.variables[v]) for v in positions)
                raise ModelError(
                    f"tree_reweighted has a joint distribution of the variables of one factor only, not of {names}: "
                    "use junction_tree"
                )
            scope = s.scope(factor).tolist()
            table = self._factor_belief(factor, beliefs)
            table = table.sum(axis=tuple(a for a, v in enumerate(scope) if v not in free))
            kept = [v for v in scope if v in free]
            table = table.transpose([kept.index(v) for v in free])
        elif free:
            at = pairs.layout.value_offsets[pairs.variable_node[free[0]]]
            table = beliefs[at : at + s.cardinalities[free[0]]].copy()
        else:
            table = np.ones(())
        table = table.reshape([int(s.cardinalities[v]) for v in positions])
        return problem.expand_joint(table, positions)

    def _factor_belief(self, factor: int, beliefs: FloatArray) -> FloatArray:
        pairs, s = self.pairs, self.pairs.problem.structure
        scope = s.scope(factor)
        cards = s.cardinalities[scope].tolist()
        at, e = pairs.layout, int(pairs.factor_edge[factor])
        if len(scope) == 2:
            table = np.empty(pairs.largest)
            count = edge_belief(at, e, self.rho[e], self.messages, self.held, table)
            if pairs.variable_node[scope[0]] == at.half_node[2 * e]:
                return table[:count].reshape(cards)
            return table[:count].reshape(cards[::-1]).T
        node = int(pairs.factor_node[factor])
        values = beliefs[at.value_offsets[node] : at.value_offsets[node + 1]]
        table = np.zeros(cards)
        starts = at.edge_base[e : e + len(scope)]
        table[tuple(at.cell_states[a : a + len(values)] for a in starts)] = values
        return table

    def tree_states(self) -> npt.NDArray[np.int64]:
        """Best states of the problem's variables under each tree, ``int64[trees, n]``; maxima only."""
        pairs = self.pairs
        result = np.empty((len(self.trees), len(pairs.variable_node)), np.int64)
        states = np.empty(pairs.n_nodes, np.int64)
        collected, values = np.empty(len(self.held)), np.empty(pairs.n_components)
        for t in range(len(self.trees)):
            self._tree_value(t, collected, values)
            order, parents = self.trees.orders[t], self.trees.parents[t]
            backtrack_tree(pairs.layout, self.rho, order, parents, self.messages, collected, states)
            result[t] = states[pairs.variable_node]
        return result


def _linear_tables(pairs: PairGraph, rho: FloatArray) -> tuple[npt.NDArray[np.int64], FloatArray]:
    """Where each edge's table in linear space is, -1 where it has none, and all of them.

    Edges that share a table and a probability share it there as well. Pairs of binary variables need none.
    """
    at = pairs.layout
    where = np.full(pairs.n_edges, -1, np.int64)
    ends = at.half_node.reshape(-1, 2)
    cards = np.diff(at.value_offsets)[ends]
    sizes = cards.prod(axis=1)
    edges = np.flatnonzero((at.edge_kind == TABLE) & (sizes > 4))
    if not len(edges):
        return where, np.zeros(0)
    # Shrunk domains may read the first states of a table that others read whole: the shape is part of the key.
    keys = np.column_stack(
        [at.edge_base[edges], at.half_stride.reshape(-1, 2)[edges], cards[edges], rho[edges].view(np.int64)]
    )
    order = np.lexsort(keys.T)
    new = np.ones(len(edges), np.bool_)
    new[1:] = (keys[order[1:]] != keys[order[:-1]]).any(axis=1)
    chosen = edges[order[new]]
    starts = offsets_of(1 + sizes[chosen])
    if starts[-1] > LINEAR_CELLS:
        return where, np.zeros(0)
    linear = np.empty(int(starts[-1]))
    fill_linear(at, rho, chosen, starts, linear)
    where[edges[order]] = starts[np.cumsum(new) - 1]
    return where, linear
