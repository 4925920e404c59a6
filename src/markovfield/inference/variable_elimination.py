"""Variable elimination: one query, one upward pass, nothing kept but messages (seed 001, lecture 5)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from markovfield._validation import check_method
from markovfield.arrays import FloatArray
from markovfield.factors.factor_graph import FactorGraph
from markovfield.inference.core.answers import LogPartition, Marginals
from markovfield.inference.core.decodings import Decoding
from markovfield.inference.core.evidence import Evidence
from markovfield.inference.core.limits import memory_limit_bytes
from markovfield.inference.core.running import Running
from markovfield.inference.junction_tree.junction_tree import JunctionTree, deferred
from markovfield.inference.junction_tree.propagate import propagate
from markovfield.inference.junction_tree.queries_kernel import clique_table
from markovfield.inference.problem.problem import Problem
from markovfield.names import VariableName

__all__ = ["VariableElimination"]


@dataclass(frozen=True)
class VariableElimination:
    """Eliminate the variables one after the other; the queried ones come last.

    The same kernels as the junction tree, without its downward pass: right for a single question. All single
    marginals take one elimination each, with everything the query does not depend on dropped first; ask
    `JunctionTree` for many.

    Parameters
    ----------
    memory_limit, order, search, seed
        As in `JunctionTree`.

    Examples
    --------
    >>> import markovfield as mf
    >>> net = mf.MarkovNetwork({"A": 2, "B": 2})
    >>> _ = net.add_factor(["A", "B"], [[3.0, 1.0], [1.0, 3.0]])
    >>> round(float(mf.log_partition(net, method="variable_elimination")), 4)
    2.0794
    """

    memory_limit: str | int | None = None
    order: tuple[VariableName, ...] | None = None
    search: float = 1.0
    seed: int = 0

    name: ClassVar[str] = "variable_elimination"
    exact: ClassVar[bool] = True
    verbs: ClassVar[frozenset[str]] = frozenset({"marginals", "decode", "log_partition"})
    abilities: ClassVar[frozenset[str]] = frozenset({"n_best", "marginal_map"})

    def __post_init__(self) -> None:
        check_method(self, least={"search": 0, "seed": 0})
        memory_limit_bytes(self.memory_limit)
        if self.order is not None and not isinstance(self.order, tuple):
            object.__setattr__(self, "order", tuple(self.order))

    def engine(self) -> JunctionTree:
        return JunctionTree(memory_limit=self.memory_limit, order=self.order, search=self.search, seed=self.seed)

    def log_partition(self, graph: FactorGraph, evidence: Evidence, *, running: Running) -> LogPartition:
        """log Z: eliminate everything."""
        engine = self.engine()
        problem = engine.prepare(graph, evidence, drop_barren=True)
        plan = engine.plan(problem, stage=np.zeros(problem.structure.n_variables, np.int8), running=running)
        result = propagate(plan, problem, downward=False, running=running)
        seconds = running.seconds
        return LogPartition(log_partition=result.value, method=self.name, seconds=seconds, width=plan.width)

    def count(self, graph: FactorGraph, evidence: Evidence, *, running: Running | None = None) -> int:
        """How many assignments of a zero-one model are possible."""
        return self.engine().count(graph, evidence, running=running)

    def marginals(self, graph: FactorGraph, evidence: Evidence, *, running: Running) -> Marginals:
        """All single marginals, by one elimination each."""
        engine = self.engine()
        offsets = graph.structure.value_offsets
        values = np.zeros(int(offsets[-1]))
        width = 0
        value = float(self.log_partition(graph, evidence, running=running))
        for v in range(graph.n_variables):
            problem = engine.prepare_query(graph, evidence, [v])
            table, query_width = self._query(engine, problem, [v], running)
            width = max(width, query_width)
            values[offsets[v] : offsets[v + 1]] = problem.expand_joint(table, [v])
        whole = engine.prepare(graph, evidence)
        # What needs a downward pass anyway is the junction tree's business.
        joint, max_marginals, counts = deferred(engine, whole, None)
        return Marginals(
            graph=graph,
            values=values,
            log_partition=value,
            log_partition_bounds=(value, value),
            method=self.name,
            seconds=running.seconds,
            width=width,
            _joint=joint,
            _max_marginals=max_marginals,
            _counts=counts,
        )

    def _query(
        self, engine: JunctionTree, problem: Problem, variables: Sequence[int], running: Running
    ) -> tuple[FloatArray, int]:
        """The joint of some variables: eliminate all others, then read the clique that is left. Also the width."""
        cards = problem.structure.cardinalities
        free = [v for v in variables if cards[v] > 1]
        shape = [int(cards[v]) for v in variables]
        if not free:
            return np.ones(shape), 0
        stage = np.zeros(problem.structure.n_variables, np.int8)
        stage[free] = 1
        plan = engine.plan(problem, stage=stage, together=[free] if len(free) > 1 else (), running=running)
        p = propagate(plan, problem, downward=False, running=running)
        lay = plan.layout
        # Together, and last in the order, they are in one root; its other variables are still to be summed.
        last = int(np.flatnonzero(lay.axis_variable[lay.axis_offsets[:-1]] == free[0])[0]) if len(free) == 1 else -1
        for c in plan.roots.tolist() if last < 0 else ():
            if set(free) <= set(lay.axis_variable[lay.axis_offsets[c] : lay.axis_offsets[c + 1]].tolist()):
                last = c
        assert last >= 0
        axes = lay.axis_variable[lay.axis_offsets[last] : lay.axis_offsets[last + 1]].tolist()
        table = np.empty(int(lay.size[last]))
        clique_table(
            lay, last, p.log_space, p.pool, problem.potentials.high, p.message, p.likelihood, p.active, p.needed,
            p.message, False, table,
        )  # fmt: skip
        if p.log_space:
            table = np.exp(table - table.max())
        table = (table / table.sum()).reshape([int(cards[v]) for v in axes])
        table = table.sum(axis=tuple(i for i, v in enumerate(axes) if v not in free))
        kept = [v for v in axes if v in free]
        return table.transpose([kept.index(v) for v in free]).reshape(shape), plan.width

    def joint(
        self, graph: FactorGraph, evidence: Evidence, variables: Sequence[int], *, running: Running
    ) -> FloatArray:
        """Joint posterior of a few variables, from the part of the model that it depends on."""
        engine = self.engine()
        problem = engine.prepare_query(graph, evidence, variables)
        table, _ = self._query(engine, problem, variables, running)
        return problem.expand_joint(table, variables)

    def decode(
        self,
        graph: FactorGraph,
        evidence: Evidence,
        *,
        variables: Sequence[int] | None = None,
        n_best: int = 1,
        running: Running,
    ) -> Decoding:
        """Eliminate by maximum (after the sums, for marginal MAP) and trace back."""
        from dataclasses import replace

        found = self.engine().decode(graph, evidence, variables=variables, n_best=n_best, running=running)
        return replace(found, method=self.name)
