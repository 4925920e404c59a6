"""Exact inference with each kind of connected component solved once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from markovfield._validation import check_method
from markovfield.arrays import FloatArray
from markovfield.exceptions import ImpossibleEvidenceError
from markovfield.factors.factor_graph import FactorGraph
from markovfield.inference.core.answers import LogPartition, Marginals
from markovfield.inference.core.decodings import Decoding, decoding_of_states
from markovfield.inference.core.evidence import Evidence
from markovfield.inference.core.running import Running
from markovfield.inference.junction_tree.junction_tree import JunctionTree
from markovfield.inference.lifted.components import Kinds, kinds_of
from markovfield.inference.problem.problem import Problem, prepare

__all__ = ["LiftedComponents"]


@dataclass(frozen=True)
class LiftedComponents:
    """Exact inference by junction trees, in which connected components that are the same are solved once.

    Evidence cuts a network into components first; those with the same tables, joined alike, differ by names alone.
    Marginals and best states are copied, and log Z counts as often as there are such components. What one junction
    tree costs for all individuals it costs here for each kind of them.

    Parameters
    ----------
    memory_limit
        As for `JunctionTree`.

    Examples
    --------
    >>> import markovfield as mf
    >>> net = mf.MarkovNetwork(dict.fromkeys(range(2000), 2))
    >>> _ = net.add_factors([(i, i + 1) for i in range(0, 2000, 2)], [[3.0, 1.0], [1.0, 2.0]])
    >>> answer = mf.marginals(net, evidence={6: 1}, method=mf.methods.LiftedComponents())
    >>> answer[1999].round(4).tolist(), answer.guarantee
    ([0.5714, 0.4286], 'exact')
    """

    memory_limit: str | int | None = None

    name: ClassVar[str] = "lifted_components"
    exact: ClassVar[bool] = True
    verbs: ClassVar[frozenset[str]] = frozenset({"marginals", "decode", "log_partition"})
    abilities: ClassVar[frozenset[str]] = frozenset()

    def __post_init__(self) -> None:
        check_method(self)
        self._engine()

    def _engine(self) -> JunctionTree:
        return JunctionTree(memory_limit=self.memory_limit)

    def log_partition(self, graph: FactorGraph, evidence: Evidence, *, running: Running) -> LogPartition:
        """Sums of the kinds, each as often as it occurs."""
        problem, kinds = self._kinds(graph, evidence)
        found = self._solved(problem, kinds, running)
        value, width = self._total(problem, kinds, found), found.width
        return LogPartition(log_partition=value, method=self.name, seconds=running.seconds, width=width)

    def marginals(self, graph: FactorGraph, evidence: Evidence, *, running: Running) -> Marginals:
        """Marginals of the kinds, copied."""
        problem, kinds = self._kinds(graph, evidence)
        found = self._solved(problem, kinds, running)
        value = self._total(problem, kinds, found)
        return Marginals(
            graph=graph,
            values=problem.expand(_copied(problem, kinds, found.values), 0.0),
            log_partition=value,
            log_partition_bounds=(value, value),
            method=self.name,
            seconds=running.seconds,
            width=found.width,
            # What joins variables, or tells cells of the pool apart, is asked of the whole.
            _joint=lambda positions: self._whole(graph, evidence).joint([graph.variables[v] for v in positions]),
            _max_marginals=lambda: np.concatenate(list(self._whole(graph, evidence).max_marginals.values())),
            _counts=lambda: self._whole(graph, evidence).expected_counts,
        )

    def _whole(self, graph: FactorGraph, evidence: Evidence) -> Marginals:
        return self._engine().marginals(graph, evidence, running=Running())

    def decode(self, graph: FactorGraph, evidence: Evidence, *, running: Running) -> Decoding:
        """Best states of the kinds, copied."""
        problem, kinds = self._kinds(graph, evidence)
        try:
            found = self._engine().decode(kinds.graph, kinds.evidence, running=running)
        except ImpossibleEvidenceError:
            raise problem.impossible() from None
        states = problem.states(found.states[kinds.variable])
        score = float(graph.score(states)) + evidence.log_likelihood(states)
        return decoding_of_states(
            graph, [(states, score)], method=self.name, seconds=running.seconds, width=found.width
        )

    def _kinds(self, graph: FactorGraph, evidence: Evidence) -> tuple[Problem, Kinds]:
        problem = prepare(graph, evidence)
        if np.isneginf(_constants(problem)).any():
            raise problem.impossible()
        return problem, kinds_of(problem)

    def _solved(self, problem: Problem, kinds: Kinds, running: Running) -> Marginals:
        try:
            return self._engine().marginals(kinds.graph, kinds.evidence, running=running)
        except ImpossibleEvidenceError:
            raise problem.impossible() from None

    def _total(self, problem: Problem, kinds: Kinds, found: Marginals) -> float:
        """log Z from that of each kind."""
        parts = found.components
        assert parts is not None
        # Each kind is one component of the representatives, which stand in the order of kinds.
        many = np.bincount(kinds.kind, minlength=kinds.n_kinds)
        return float(many @ parts.log_partition) + float(_constants(problem).sum())


def _constants(problem: Problem) -> FloatArray:
    """Log-potentials of factors that no free variable is left in."""
    s = problem.structure
    return np.asarray(problem.potentials.log_tables[s.table_offsets[np.diff(s.scope_offsets) == 0]], np.float64)


def _copied(problem: Problem, kinds: Kinds, values: FloatArray) -> FloatArray:
    """Values of the representatives' states for every variable of the problem."""
    s, offsets = problem.structure, kinds.graph.structure.value_offsets
    within = np.arange(int(s.value_offsets[-1])) - np.repeat(s.value_offsets[:-1], s.cardinalities)
    return np.asarray(values[np.repeat(offsets[kinds.variable], s.cardinalities) + within], np.float64)
