"""Belief propagation on forests: messages once towards the roots and once back, in log space, exact."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from markovfield.arrays import FloatArray, offsets_of, sealed
from markovfield.exceptions import MemoryLimitError, ModelError
from markovfield.factors.remembered import Told
from markovfield.factors.structure import Structure
from markovfield.inference.belief_propagation.edges_kernel import (
    MessageLayout,
    acyclic,
    factor_sizes,
    grow_forest,
    link_edges,
)
from markovfield.inference.belief_propagation.forest_kernel import (
    add_counts,
    backtrack,
    collect,
    distribute,
    factor_belief,
)
from markovfield.inference.core.limits import format_bytes, memory_limit_bytes
from markovfield.inference.core.running import Running
from markovfield.inference.problem.problem import Problem

__all__ = [
    "Forest",
    "TreeMessages",
    "factor_holding",
    "find_forest",
    "forest_of",
    "is_forest",
    "message_layout",
    "tree_joint",
]

# Cells of work in one kernel call: about a tenth of a second, so that Ctrl-C and time limits are heard.
GRAIN = 2.0**23


@dataclass(frozen=True, eq=False)
class Forest:
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


class TreeMessages:
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
        self.forest = forest_of(problem)
        n_values = int(self.forest.layout.message_offsets[-1])
        self.variable_to_factor = np.empty(n_values)
        self.factor_to_variable = np.empty(n_values)
        self.log_scales = np.zeros(0)

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
        log_scales = self.log_scales = np.zeros(len(self.forest.order))
        for piece in reversed(self.forest.pieces):
            running.check()
            collect(*self._arguments(piece, log_scales, self.maximise))
        # NumPy sums pairwise, so a million terms lose no more than a few bits.
        value = float(log_scales.sum())
        if value == -np.inf:
            raise self.problem.impossible()
        return value

    @property
    def terms(self) -> tuple[FloatArray, FloatArray]:
        """What each factor and each variable adds to log Z, or to the best score."""
        n = self.problem.structure.n_variables
        return self.log_scales[n:], self.log_scales[:n]

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


def forest_of(problem: Problem) -> Forest:
    """The forest of a problem, kept with its structure; raises where there is a cycle."""
    found = _forest_or_cycle(problem)
    if isinstance(found, Forest):
        return found
    v = found
    raise ModelError(
        f"variable {problem.graph.variables[v]!r} lies on a cycle of the factor graph, and belief "
        "propagation with schedule 'tree' needs a forest: use schedule 'auto', or junction_tree"
    )


def find_forest(problem: Problem) -> Forest | None:
    """The forest of a problem, or None; both kept with its structure."""
    found = _forest_or_cycle(problem)
    return found if isinstance(found, Forest) else None


_FOREST: Told[Forest | int] = Told()


def _forest_or_cycle(problem: Problem) -> Forest | int:
    """The forest of a problem, or a variable on a cycle; kept with its structure."""
    s = problem.structure
    found = _FOREST.of(s)
    if found is not None:
        return found
    layout, sizes = message_layout(s)
    order, parent_edge, closing = grow_forest(layout)
    if closing >= 0:
        on_cycle = int(_variable_on_cycle(layout, parent_edge, closing, problem.graph.n_variables))
        _FOREST.tell(s, on_cycle)
        return on_cycle
    arity = np.diff(s.scope_offsets)
    factor_cost = 10.0 + sizes * arity
    variable_cost = 10.0 + np.bincount(s.scopes, minlength=s.n_variables) * s.cardinalities
    node_cost = np.concatenate([variable_cost, factor_cost])[order]
    forest = Forest(
        layout,
        sealed(order),
        sealed(parent_edge),
        cut_work(node_cost),
        cut_work(factor_cost),
        max(int(arity.max(initial=0)) - 1, 0),
    )
    _FOREST.tell(s, forest)
    return forest


def is_forest(s: Structure, states: npt.NDArray[np.int32]) -> bool:
    """Whether the factor graph is a forest once observed variables are taken out (-1 for those that are not)."""
    return bool(acyclic(s.n_variables, s.scope_offsets, s.scopes, states))


def message_layout(s: Structure) -> tuple[MessageLayout, FloatArray]:
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
    message_offsets = offsets_of(s.cardinalities[s.scopes])
    layout = MessageLayout(
        s.scope_offsets,
        s.scopes,
        sealed(edge_factor),
        sealed(variable_offsets),
        sealed(variable_edges),
        sealed(message_offsets),
        sealed(s.value_offsets),
        s.table_offsets,
        s.table_strides,
        sealed(np.array(limits, np.int64)),
        sealed(message_offsets[variable_edges]),
    )
    return layout, sizes


def cut_work(cost: FloatArray) -> tuple[tuple[int, int], ...]:
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
    # A structured factor in plain tables is a tree, so every cycle leaves it through a variable of the user's.
    return next(node for node in one + two if node < n_user_variables)


def tree_joint(messages: TreeMessages, beliefs: FloatArray, positions: tuple[int, ...]) -> FloatArray:
    """Joint distribution of some variables: from a factor that holds them all, else from a junction tree."""
    problem = messages.problem
    s = problem.structure
    free = [v for v in positions if s.cardinalities[v] > 1]
    if len(free) > 1:
        factor = factor_holding(messages.forest.layout, free)
        if factor is None:
            from markovfield.inference.junction_tree.junction_tree import JunctionTree

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
    return problem.expand_joint(table, positions) if positions else table


def factor_holding(layout: MessageLayout, variables: Sequence[int]) -> int | None:
    """A factor with all the variables in its scope: the first of those with the fewest others."""
    lists = []
    for v in variables:
        edges = layout.variable_edges[layout.variable_offsets[v] : layout.variable_offsets[v + 1]]
        lists.append(layout.edge_factor[edges])
    common = min(lists, key=len)
    for other in lists:
        common = np.intersect1d(common, other)
    if not len(common):
        return None
    arity = layout.factor_offsets[common + 1] - layout.factor_offsets[common]
    return int(common[np.argmin(arity)])
