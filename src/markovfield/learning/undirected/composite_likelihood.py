"""Composite likelihood: blocks of variables given the others (Lindsay 1988; Murphy 19.5.4 names it)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from markovfield._validation import check_method
from markovfield.arrays import FloatArray, IntArray, offsets_of
from markovfield.exceptions import ModelError
from markovfield.factors.factor_graph import FactorGraph
from markovfield.factors.structure import Structure
from markovfield.inference.core.registry import resolve
from markovfield.inference.core.row_counts import counts_of
from markovfield.inference.core.running import Running
from markovfield.learning.core.data import DataTable
from markovfield.learning.solvers.penalty import Penalty
from markovfield.learning.undirected.fitting import minimise, reported, start_of
from markovfield.learning.undirected.local_fit import likelihood_if_cheap
from markovfield.learning.undirected.problem import Problem, cell_counts, site_layout
from markovfield.models import LogLinear
from markovfield.names import VariableName

__all__ = ["CompositeLikelihood", "spanning_blocks"]


@dataclass(frozen=True)
class CompositeLikelihood:
    """The parameters that make blocks of variables most likely given all others, each block summed exactly.

    With blocks of one variable it is pseudo-likelihood, with one block of all the likelihood; between, larger blocks
    cost more and lose less. Blocks may overlap: every block counts once. Data must be complete.

    Parameters
    ----------
    blocks
        Sequences of variables; ``"trees"``: sets of variables that induce forests and cover the graph, found greedily,
        so that each block costs what a forest costs; ``"edges"``: the two ends of every pair that shares a factor.
    l2, l1, group_l1, penalty, solver, checkpoint
        As for `MaximumLikelihood`.

    Examples
    --------
    >>> import markovfield as mf
    >>> data = mf.sample(mf.Ising((6, 6), coupling=0.3), 300, rng=0)
    >>> fitted = mf.fit(mf.Ising((6, 6), coupling=0.0), data, method=mf.methods.CompositeLikelihood("trees"))
    >>> round(fitted.coupling, 2)
    0.29
    """

    blocks: str | Sequence[Sequence[VariableName]] = "trees"
    l2: float = 0.0
    l1: float = 0.0
    group_l1: float = 0.0
    penalty: Penalty | None = None
    solver: Any = "auto"
    checkpoint: Any = None

    name: ClassVar[str] = "composite_likelihood"
    exact: ClassVar[bool] = False
    verbs: ClassVar[frozenset[str]] = frozenset({"fit"})
    missing_values: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if isinstance(self.blocks, str) and self.blocks not in ("trees", "edges"):
            raise ModelError(f"blocks of CompositeLikelihood must be 'trees', 'edges' or a list, got {self.blocks!r}")
        check_method(self, least={"l2": 0, "l1": 0, "group_l1": 0})

    def fit(self, model: Any, table: DataTable, *, rng: np.random.Generator, running: Running) -> Any:
        """A new model with the estimated parameters."""
        problem = Problem(LogLinear.of(model), table, running)
        problem.need_complete(self.name, "MaximumLikelihood or StochasticMaximumLikelihood, which sum it out")
        objective = BlockObjective(problem, self._positions(problem))
        start = start_of(problem)
        objective(start)
        planning = running.seconds
        found = minimise(self, problem, objective, start, rng)
        return reported(
            self,
            model,
            problem,
            found,
            log_likelihood=likelihood_if_cheap(problem, found.weights),
            objective_name="minus the composite log-likelihood, with penalties",
            guarantee="approximate",
            planning_seconds=planning,
            notes=(f"{len(objective.blocks)} blocks of variables, each summed exactly given the others",),
        )

    def _positions(self, problem: Problem) -> list[list[int]]:
        if self.blocks == "trees":
            return spanning_blocks(problem)
        if self.blocks == "edges":
            return [list(pair) for pair in sorted(_neighbours(problem)[1])]
        names = problem.model.base_graph.names
        made = []
        for block in self.blocks:
            if isinstance(block, str | int) or not len(block):
                raise ModelError(f"a block of CompositeLikelihood is a sequence of variables, got {block!r}")
            made.append(sorted({names.position(v) for v in block}))
        if not made:
            raise ModelError("CompositeLikelihood needs at least one block")
        return made


def _neighbours(problem: Problem) -> tuple[list[set[int]], set[tuple[int, int]]]:
    s = problem.structure
    around: list[set[int]] = [set() for _ in range(s.n_variables)]
    for f in range(s.n_factors):
        scope = set(s.scope(f).tolist())
        for v in scope:
            around[v] |= scope - {v}
    return around, {(min(u, v), max(u, v)) for u, near in enumerate(around) for v in near}


def spanning_blocks(problem: Problem) -> list[list[int]]:
    """Sets of variables that induce forests, every variable in at least one: each is grown as far as it goes.

    A variable may join where its neighbours in the block lie in different trees.
    """
    around = _neighbours(problem)[0]
    left = set(range(len(around)))
    blocks = []
    while left:
        tree = list(range(len(around)))

        def find(v: int, tree: list[int] = tree) -> int:
            while tree[v] != v:
                tree[v] = tree[tree[v]]
                v = tree[v]
            return v

        block: set[int] = set()
        for v in [*sorted(left), *sorted(set(range(len(around))) - left)]:
            roots = [find(u) for u in around[v] if u in block]
            if len(set(roots)) == len(roots):
                block.add(v)
                for root in roots:
                    tree[root] = v
        blocks.append(sorted(block))
        left -= block
    return blocks


class BlockObjective:
    """Minus the sum over rows and blocks of log p(block | rest), for each row, and its gradient.

    A block has a say in its own factors only, and rows that agree on its neighbours are one row of clamps with the
    weight of all.
    """

    def __init__(self, problem: Problem, blocks: list[list[int]]) -> None:
        self.problem, self.blocks = problem, blocks
        self.tree = resolve("junction_tree", "marginals")
        table, n = problem.complete, problem.structure.n_variables
        assert table.weights is not None
        layout = site_layout(problem.structure)
        self.parts = []
        for block in blocks:
            own = [layout.incident[layout.incident_offsets[v] : layout.incident_offsets[v + 1]] for v in block]
            structure = _some_factors(problem.structure, np.unique(np.concatenate([np.zeros(0, np.int32), *own])))
            clamps = np.zeros((table.n_rows, n), np.int32)  # variables that no factor of the block reads say nothing
            outside = np.setdiff1d(np.unique(structure.scopes), block)
            clamps[:, outside] = table.codes[outside].T
            clamps[:, block] = -1
            distinct, which = np.unique(clamps, axis=0, return_inverse=True)
            weights = np.bincount(which.ravel(), table.weights, len(distinct))
            self.parts.append((structure, distinct, weights, cell_counts(structure, table, problem.running)))

    def __call__(self, parameters: FloatArray) -> tuple[float, FloatArray]:
        """The objective and its gradient."""
        problem, model = self.problem, self.problem.model
        tables = model.log_tables(parameters)
        value, gradient = 0.0, np.zeros(len(tables))
        for structure, clamps, weights, seen in self.parts:
            graph = FactorGraph(structure, tables, marks_hold=True)
            answer = counts_of(self.tree, graph, clamps, weights, n_samples=1, rng=0, running=problem.running.quiet)
            read = seen > 0
            value += float(weights @ np.asarray(answer.log_partition)) - float(tables[read] @ seen[read])
            gradient += answer.counts - seen
        return value / problem.total, model.moments(gradient) / problem.total


def _some_factors(s: Structure, factors: IntArray) -> Structure:
    """The structure with these factors only, on the same variables and cells."""
    each = [np.arange(s.scope_offsets[f], s.scope_offsets[f + 1]) for f in factors]
    axes = np.concatenate([np.zeros(0, np.int64), *each])
    lengths = np.diff(s.scope_offsets)[factors]
    return Structure.from_arrays(
        s.cardinalities,
        offsets_of(lengths),
        s.scopes[axes],
        s.table_offsets[factors],
        s.table_strides[axes],
        n_cells=s.n_cells,
        kind=s.kind[factors],
        names=s.names,
    )
