"""Belief propagation: messages between factors and variables; on forests two passes are exact."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from markovfield.exceptions import MemoryLimitError, ModelError
from markovfield.factor_graph import FactorGraph, Structure
from markovfield.inference.answers import Decoding, LogPartition, Marginals, decoding_of_states
from markovfield.inference.evidence import Evidence
from markovfield.inference.limits import format_bytes, memory_limit_bytes
from markovfield.inference.problem import Problem, prepare
from markovfield.inference.running import Running
from markovfield.kernels.messages import (
    MessageLayout,
    add_counts,
    backtrack,
    collect,
    distribute,
    factor_belief,
    factor_sizes,
    grow_forest,
    link_edges,
)

__all__ = ["SCHEDULES", "BeliefPropagation"]

FloatArray = npt.NDArray[np.float64]
SCHEDULES = ("tree",)
# Cells of work in one kernel call: about a tenth of a second, so that Ctrl-C and time limits are heard.
GRAIN = 2.0**23


@dataclass(frozen=True)
class BeliefPropagation:
    """Sum-product and max-product messages on the factor graph (Andres 6.36 to 6.40; seed 001, lecture 5).

    With ``schedule="tree"`` messages go once towards the roots and once back, which is exact when the factor
    graph, after evidence, is a forest; on any other it raises. Everything runs in log space. Time is the sum
    over factors of table size times arity, memory the states of all edges.

    Parameters
    ----------
    schedule
        The order in which messages are sent; ``"tree"`` is the only one so far.

    Examples
    --------
    >>> import markovfield as mf
    >>> net = mf.MarkovNetwork({"A": 2, "B": 2, "C": 2})
    >>> _ = net.add_factors([("A", "B"), ("B", "C")], [[3.0, 1.0], [1.0, 3.0]])
    >>> answer = mf.marginals(net, evidence={"A": 0}, method=mf.BeliefPropagation())
    >>> answer["C"].round(4).tolist(), answer.guarantee
    ([0.625, 0.375], 'exact')
    >>> mf.decode(net, evidence={"A": 1}, method="bp").assignment
    {'A': 1, 'B': 1, 'C': 1}
    """

    schedule: str = "tree"

    name: ClassVar[str] = "belief_propagation"
    exact: ClassVar[bool] = True
    verbs: ClassVar[frozenset[str]] = frozenset({"marginals", "decode", "log_partition"})
    abilities: ClassVar[frozenset[str]] = frozenset()

    def __post_init__(self) -> None:
        if self.schedule not in SCHEDULES:
            known = ", ".join(repr(s) for s in SCHEDULES)
            raise ModelError(f"schedule of BeliefPropagation must be one of {known}, got {self.schedule!r}")

    def log_partition(self, graph: FactorGraph, evidence: Evidence, *, running: Running) -> LogPartition:
        """log Z by the pass towards the roots alone."""
        messages = _Messages(prepare(graph, evidence, drop_barren=True))
        value = messages.collect(running)
        return LogPartition(
            log_partition=value,
            method=self.name,
            seconds=time.perf_counter() - running.started,
            width=messages.forest.width,
        )

    def marginals(
        self,
        graph: FactorGraph,
        evidence: Evidence,
        *,
        targets: Sequence[Sequence[int]] = (),
        running: Running,
    ) -> Marginals:
        """All single marginals; joint distributions of ``targets`` are worked out when they are asked for."""
        problem = prepare(graph, evidence)
        messages = _Messages(problem)
        value = messages.collect(running)
        beliefs = messages.distribute(running)
        values = problem.expand(beliefs, 0.0)
        values.flags.writeable = False

        def joint(positions: tuple[int, ...]) -> FloatArray:
            return _joint(messages, beliefs, positions)

        def max_marginals() -> FloatArray:
            best = _Messages(problem, maximise=True)
            score = best.collect(Running())
            return problem.expand(best.distribute(Running()) + score, -np.inf)

        def counts() -> FloatArray:
            return problem.counts(messages.counts(Running()))

        return Marginals(
            graph=graph,
            values=values,
            log_partition=value,
            log_partition_bounds=(value, value),
            method=self.name,
            seconds=time.perf_counter() - running.started,
            width=messages.forest.width,
            _joint=joint,
            _max_marginals=max_marginals,
            _counts=counts,
        )

    def decode(
        self,
        graph: FactorGraph,
        evidence: Evidence,
        *,
        variables: Sequence[int] | None = None,
        n_best: int = 1,
        running: Running,
    ) -> Decoding:
        """The best assignment, by maxima towards the roots and choices on the way back."""
        if n_best > 1:
            raise ModelError(f"belief_propagation finds one best assignment, not {n_best}: use junction_tree")
        if variables is not None and len(set(variables)) < graph.n_variables:
            raise ModelError(
                f"belief_propagation decodes all {graph.n_variables} variables, not {len(set(variables))} "
                "of them with the others summed out: use junction_tree"
            )
        problem = prepare(graph, evidence)
        messages = _Messages(problem, maximise=True)
        score = messages.collect(running)
        states = problem.states(messages.backtrack(running))
        return decoding_of_states(
            graph,
            [(states, score)],
            variables,
            method=self.name,
            seconds=time.perf_counter() - running.started,
            width=messages.forest.width,
        )


@dataclass(frozen=True, eq=False)
class _Forest:
    """What depends on the structure alone: the edges, and the nodes with every parent before its children.

    Nodes are variables, then factors. ``pieces`` and ``factor_pieces`` cut the nodes in ``order``, and the
    factors, into stretches of about `GRAIN` cells of work.
    """

    layout: MessageLayout
    order: npt.NDArray[np.int64]
    parent_edge: npt.NDArray[np.int64]
    pieces: tuple[tuple[int, int], ...]
    factor_pieces: tuple[tuple[int, int], ...]
    width: int


class _Messages:
    """The messages of one problem, in sums or in maxima, and what is read off them.

    ``variable_to_factor`` and ``factor_to_variable`` are flat over edges, at the layout's ``message_offsets``.
    """

    def __init__(self, problem: Problem, *, maximise: bool = False) -> None:
        if maximise and problem.graph.structure.has_latent:
            raise ModelError(
                "belief_propagation would maximise the contributions of a noisy-max, which must be summed: "
                "use junction_tree"
            )
        self.problem, self.maximise = problem, maximise
        self.forest = _forest(problem)
        n_values = int(self.forest.layout.message_offsets[-1])
        self.variable_to_factor = np.empty(n_values)
        self.factor_to_variable = np.empty(n_values)

    def _arguments(self, piece: tuple[int, int], *rest: Any) -> tuple[Any, ...]:
        forest, problem = self.forest, self.problem
        return (
            forest.layout,
            forest.order,
            forest.parent_edge,
            *piece,
            problem.potentials.log_tables,
            problem.likelihood,
            self.variable_to_factor,
            self.factor_to_variable,
            *rest,
        )

    def collect(self, running: Running) -> float:
        """Towards the roots; log Z or the best score."""
        log_scales = np.zeros(len(self.forest.order))
        for piece in reversed(self.forest.pieces):
            running.check()
            collect(*self._arguments(piece, log_scales, self.maximise))
        # NumPy sums pairwise, so a million terms lose no more than a few bits.
        value = float(log_scales.sum())
        if value == -np.inf:
            raise self.problem.impossible()
        return value

    def distribute(self, running: Running) -> FloatArray:
        """Back from the roots; probabilities, or max-marginals less the best score, of all reduced states."""
        beliefs = np.empty(int(self.forest.layout.value_offsets[-1]))
        for piece in self.forest.pieces:
            running.check()
            distribute(*self._arguments(piece, beliefs, self.maximise))
        return beliefs

    def backtrack(self, running: Running) -> npt.NDArray[np.int64]:
        """States of a best assignment of the reduced problem."""
        states = np.zeros(self.problem.structure.n_variables, np.int64)
        for piece in self.forest.pieces:
            running.check()
            backtrack(*self._arguments(piece, states))
        return states

    def counts(self, running: Running) -> FloatArray:
        """Expected counts of the reduced pool's cells."""
        log_tables = self.problem.potentials.log_tables
        counts = np.zeros(len(log_tables))
        for piece in self.forest.factor_pieces:
            running.check()
            add_counts(self.forest.layout, *piece, log_tables, self.variable_to_factor, counts)
        return counts

    def factor_belief(self, factor: int) -> FloatArray:
        """Joint distribution of a reduced factor's variables, axes as in its scope (Andres 6.40)."""
        s = self.problem.structure
        log_tables = self.problem.potentials.log_tables
        table: FloatArray = factor_belief(self.forest.layout, factor, log_tables, self.variable_to_factor)
        return table.reshape(s.cardinalities[s.scope(factor)])


def _sealed(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    array.setflags(write=False)
    return array


def _forest(problem: Problem) -> _Forest:
    """The forest of a problem, kept with its structure; raises where there is a cycle."""
    s = problem.structure
    found: _Forest | None = s.cache.get("forest")
    if found is not None:
        return found
    layout, sizes = _layout(s)
    order, parent_edge, closing = grow_forest(layout)
    if closing >= 0:
        v = _variable_on_cycle(layout, parent_edge, closing, problem.graph.n_variables)
        raise ModelError(
            f"variable {problem.graph.variables[v]!r} lies on a cycle of the factor graph, and belief "
            "propagation with schedule 'tree' needs a forest: use junction_tree"
        )
    arity = np.diff(s.scope_offsets)
    factor_cost = 10.0 + sizes * arity
    variable_cost = 10.0 + np.bincount(s.scopes, minlength=s.n_variables) * s.cardinalities
    node_cost = np.concatenate([variable_cost, factor_cost])[order]
    forest = _Forest(
        layout,
        _sealed(order),
        _sealed(parent_edge),
        _cut(node_cost),
        _cut(factor_cost),
        max(int(arity.max(initial=0)) - 1, 0),
    )
    s.cache["forest"] = forest
    return forest


def _layout(s: Structure) -> tuple[MessageLayout, FloatArray]:
    """Edges and message offsets of a structure of plain tables, and the cells of each factor."""
    edge_factor, variable_offsets, variable_edges = link_edges(s.n_variables, s.scope_offsets, s.scopes)
    sizes = factor_sizes(s.cardinalities, s.scope_offsets, s.scopes)
    largest = float(sizes.max(initial=1.0))
    if 16 * largest > memory_limit_bytes(None):
        raise MemoryLimitError(
            f"factor {int(sizes.argmax())} has a table of 2^{np.log2(largest):.1f} cells, and belief "
            f"propagation would need {format_bytes(float(np.log2(16 * largest)))} to work on it"
        )
    limits = [int(np.diff(s.scope_offsets).max(initial=0)), int(s.cardinalities.max(initial=1)), int(largest)]
    layout = MessageLayout(
        s.scope_offsets,
        s.scopes,
        _sealed(edge_factor),
        _sealed(variable_offsets),
        _sealed(variable_edges),
        _sealed(np.concatenate([np.zeros(1, np.int64), np.cumsum(s.cardinalities[s.scopes], dtype=np.int64)])),
        _sealed(s.value_offsets),
        s.table_offsets,
        s.table_strides,
        _sealed(np.array(limits, np.int64)),
    )
    return layout, sizes


def _cut(cost: FloatArray) -> tuple[tuple[int, int], ...]:
    """Stretches of about `GRAIN` cost."""
    done = np.cumsum(cost)
    if not len(done):
        return ()
    ends = np.searchsorted(done, np.arange(GRAIN, done[-1], GRAIN), side="right")
    borders = np.unique(np.concatenate([[0], ends, [len(done)]])).tolist()
    return tuple(pairwise(borders))


def _variable_on_cycle(
    layout: MessageLayout, parent_edge: npt.NDArray[np.int64], closing: int, n_user_variables: int
) -> int:
    """A variable of the user's on the cycle that an edge closes; an auxiliary one would tell them nothing."""
    n = len(layout.value_offsets) - 1
    v, f = int(layout.edge_variable[closing]), n + int(layout.edge_factor[closing])

    def path_to_root(node: int) -> list[int]:
        path = [node]
        while parent_edge[path[-1]] >= 0:
            e = parent_edge[path[-1]]
            path.append(int(layout.edge_variable[e]) if path[-1] >= n else n + int(layout.edge_factor[e]))
        return path

    if v < n_user_variables:
        return v
    one, two = path_to_root(v), path_to_root(f)
    while len(one) > 1 and len(two) > 1 and one[-2] == two[-2]:
        one.pop()
        two.pop()
    # A structured factor lowers to a tree, so every cycle leaves it through a variable of the user's.
    return next(node for node in one + two if node < n_user_variables)


def _joint(messages: _Messages, beliefs: FloatArray, positions: tuple[int, ...]) -> FloatArray:
    """Joint distribution of some variables: from a factor that holds them all, else from a junction tree."""
    problem = messages.problem
    s = problem.structure
    free = [v for v in positions if s.cardinalities[v] > 1]
    if len(free) > 1:
        factor = _factor_holding(messages.forest.layout, free)
        if factor is None:
            from markovfield.inference.junction_tree import JunctionTree

            names = [problem.graph.variables[v] for v in positions]
            answer = JunctionTree().marginals(problem.graph, problem.evidence, targets=[positions], running=Running())
            return answer.joint(names)
        scope = s.scope(factor).tolist()
        table = messages.factor_belief(factor)
        table = table.sum(axis=tuple(a for a, v in enumerate(scope) if v not in free))
        kept = [v for v in scope if v in free]
        table = table.transpose([kept.index(v) for v in free])
    elif free:
        offsets = messages.forest.layout.value_offsets
        table = beliefs[offsets[free[0]] : offsets[free[0] + 1]].copy()
    else:
        table = np.ones(())
    table = table.reshape([int(s.cardinalities[v]) for v in positions])
    if problem.reduced is None:
        return table
    r = problem.reduced
    full = np.zeros([int(problem.lowered.structure.cardinalities[v]) for v in positions])
    full[np.ix_(*(r.states[r.state_offsets[v] : r.state_offsets[v + 1]] for v in positions))] = table
    return full


def _factor_holding(layout: MessageLayout, variables: Sequence[int]) -> int | None:
    """A factor with all the variables in its scope."""
    lists = []
    for v in variables:
        edges = layout.variable_edges[layout.variable_offsets[v] : layout.variable_offsets[v + 1]]
        lists.append(layout.edge_factor[edges])
    common = min(lists, key=len)
    for other in lists:
        common = np.intersect1d(common, other)
    return int(common[0]) if len(common) else None
