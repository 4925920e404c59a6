"""Marginal MAP by local search: the best states of some variables, the others summed out."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from markovfield._validation import check_method
from markovfield.exceptions import ImpossibleEvidenceError, ModelError, StoppedError
from markovfield.factor_graph import FactorGraph
from markovfield.inference.compiled import CompiledJunctionTree
from markovfield.inference.decodings import Decoding, decoding_of_states
from markovfield.inference.evidence import Evidence
from markovfield.inference.junction_tree import JunctionTree
from markovfield.inference.limits import memory_limit_bytes
from markovfield.inference.running import Running

__all__ = ["MarginalSearch"]


@dataclass(frozen=True)
class MarginalSearch:
    """Marginal MAP by steepest ascent over single variables, with the rest summed out exactly.

    Exact marginal MAP must sum before it maximises, which can make cliques far wider than those of the model. This
    search only needs the model's own junction tree: one pass for each variable sought tells what all its states would
    score, given the present states of the other ones. The answer is a local optimum and nothing is proven of it.

    Parameters
    ----------
    restarts
        Further climbs, from the best so far with a third of its variables drawn anew.
    memory_limit
        As for `JunctionTree`.

    Examples
    --------
    >>> import markovfield as mf
    >>> net = mf.MarkovNetwork({"A": 2, "B": 3})
    >>> _ = net.add_factor(["A", "B"], [[4.0, 1.0, 1.0], [3.0, 3.0, 1.0]])
    >>> answer = mf.decode(net, variables=["A"], method=mf.MarginalSearch(), rng=0)
    >>> answer.assignment, round(float(np.exp(answer.score)), 6)
    ({'A': 1}, 7.0)
    """

    restarts: int = 4
    memory_limit: int | str | None = None

    name: ClassVar[str] = "marginal_search"
    exact: ClassVar[bool] = False
    verbs: ClassVar[frozenset[str]] = frozenset({"decode"})
    abilities: ClassVar[frozenset[str]] = frozenset({"marginal_map", "rng"})

    def __post_init__(self) -> None:
        check_method(self)
        memory_limit_bytes(self.memory_limit)
        if self.restarts < 0:
            raise ModelError(f"restarts must be at least 0, got {self.restarts}")

    def decode(
        self,
        graph: FactorGraph,
        evidence: Evidence,
        *,
        variables: Sequence[int] | None = None,
        n_best: int = 1,
        running: Running,
        rng: np.random.Generator,
    ) -> Decoding:
        """Climb from the likeliest state of each variable, then from elsewhere."""
        if n_best != 1:
            raise ModelError("marginal_search finds one assignment: use junction_tree for the n best")
        if graph.structure.has_latent and variables is None:
            raise ModelError("marginal_search cannot maximise over a noisy-max: use junction_tree")
        sought = list(range(graph.n_variables)) if variables is None else list(variables)
        climb = _Climb(self, graph, evidence, sought, running)
        converged, rounds = True, 0
        try:
            climb.ascend(climb.first())
            while rounds < self.restarts:
                running.check(climb.best_score)
                climb.ascend(climb.elsewhere(rng))
                rounds += 1
        except (TimeoutError, StoppedError, KeyboardInterrupt):
            converged = False
            if climb.best is None:
                raise
        assert climb.best is not None
        return decoding_of_states(
            graph,
            [(climb.best, climb.best_score)],
            sought,
            gap=np.inf,
            guarantee="lower",
            method=self.name,
            converged=converged,
            iterations=rounds + 1,
            seconds=time.perf_counter() - running.started,
            width=climb.tree.plan.width,
        )


class _Climb:
    """Rows of evidence in which one sought variable is open and the others are held."""

    def __init__(
        self, method: MarginalSearch, graph: FactorGraph, evidence: Evidence, sought: list[int], running: Running
    ) -> None:
        engine = JunctionTree(memory_limit=method.memory_limit)
        self.tree = CompiledJunctionTree(_with_likelihoods(graph, evidence), engine)
        self.graph, self.evidence, self.running = graph, evidence, running
        self.open = [v for v in sought if evidence.states[v] < 0]
        self.best: npt.NDArray[np.int32] | None = None
        self.best_score = -np.inf

    def first(self) -> npt.NDArray[np.int32]:
        """Likeliest states one after the other, each given those before: always possible."""
        row = self.evidence.states.copy()
        for v in self.open:
            row[v] = int(np.argmax(self._conditional(row, [v])[0][0]))
            self.running.check(self.best_score)
        return row

    def elsewhere(self, rng: np.random.Generator) -> npt.NDArray[np.int32]:
        """The best so far with a third of its variables drawn anew, given the others."""
        assert self.best is not None
        row = np.where(self.evidence.states >= 0, self.evidence.states, -1).astype(np.int32)
        row[self.open] = self.best[self.open]
        if not self.open:
            return row
        moved = rng.permutation(self.open)[: max(1, len(self.open) // 3)].tolist()
        row[moved] = -1
        for v in moved:
            scores = self._conditional(row, [v])[0][0]
            p = np.exp(scores - scores.max())
            row[v] = int(rng.choice(len(p), p=p / p.sum()))
        return row

    def ascend(self, row: npt.NDArray[np.int32]) -> None:
        """Take the best change of a single variable until none gains; remember the best."""
        row = row.copy()
        while True:
            scores, value = self._conditional(row, self.open) if self.open else ([], self._score(row))
            gains = [float(s.max()) - value for s in scores]
            if value > self.best_score:
                self.best, self.best_score = row.copy(), value
            if not gains or max(gains) <= 1e-9 * (1.0 + abs(value)):
                return
            i = int(np.argmax(gains))
            row[self.open[i]] = int(np.argmax(scores[i]))
            self.running.check(self.best_score)

    def _score(self, row: npt.NDArray[np.int32]) -> float:
        return float(self.tree.run_batch(row[None]).log_partition[0])

    def _conditional(
        self, row: npt.NDArray[np.int32], variables: list[int]
    ) -> tuple[list[npt.NDArray[np.float64]], float]:
        """For each variable the score of all its states, the others as in the row; and the score of the row itself."""
        rows = np.repeat(row[None], len(variables), axis=0)
        rows[np.arange(len(variables)), variables] = -1
        answer = self.tree.run_batch(rows, impossible="nan", n_jobs=self.running.n_jobs)
        if not np.isfinite(answer.log_partition).any():
            raise self.evidence.impossible(self.graph.structure)
        offsets = self.graph.structure.value_offsets
        with np.errstate(divide="ignore"):
            scores = [
                np.log(answer.values[i, offsets[v] : offsets[v + 1]]) + answer.log_partition[i]
                for i, v in enumerate(variables)
            ]
        own = max((float(s[row[v]]) for s, v in zip(scores, variables, strict=True) if row[v] >= 0), default=-np.inf)
        return scores, own


def _with_likelihoods(graph: FactorGraph, evidence: Evidence) -> FactorGraph:
    """The graph with virtual evidence as factors, since rows of evidence hold states only."""
    if not evidence.likelihoods:
        return graph
    from markovfield.models import MarkovNetwork

    if graph.structure.has_latent:
        raise ModelError("marginal_search takes no likelihood vectors beside a noisy-max: use junction_tree")
    net = MarkovNetwork.from_factor_graph(graph)
    for v, vector in evidence.likelihoods:
        net.add_factor([graph.variables[v]], log_table=vector)
    try:
        return net.compile()
    except ImpossibleEvidenceError:
        raise evidence.impossible(graph.structure) from None
