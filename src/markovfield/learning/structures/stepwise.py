"""Stepwise selection of log-linear models: one interaction at a time, by a criterion or by tests."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, ClassVar

import numpy as np

from markovfield._validation import check_method
from markovfield.exceptions import ModelError
from markovfield.inference.core.running import STOPS, Running
from markovfield.learning.core.data import DataTable
from markovfield.learning.core.learned_graph import LearnedGraph, undirected_graph
from markovfield.learning.structures.decomposable_moves import DecomposableModels
from markovfield.learning.structures.hierarchical_moves import HierarchicalModels
from markovfield.learning.structures.neighbours import Neighbour
from markovfield.learning.tables.model_tables import model_dimension
from markovfield.learning.tables.proportional import IterativeProportionalFitting
from markovfield.models.generators import generator_text, read_generators
from markovfield.names import VariableName

__all__ = ["StepwiseSelection", "TermMove"]

# A gain must be larger than what fits leave open.
ROUNDING = 1e-6


@dataclass(frozen=True)
class TermMove:
    """One step of a search: an interaction that was deleted or added.

    Attributes
    ----------
    kind, term
        "delete" or "add", and the variables of the interaction.
    gain
        What the criterion gained; for tests the p-value.
    deviance, degrees_of_freedom
        By how much the deviance rose or fell, and the degrees of freedom.
    p_value
        Of that difference under the chi-squared distribution.
    """

    kind: str
    term: tuple[VariableName, ...]
    gain: float
    deviance: float
    degrees_of_freedom: int
    p_value: float

    def __str__(self) -> str:
        return f"{self.kind} {generator_text([self.term])} ({self.gain:+.6g})"


@dataclass(frozen=True)
class StepwiseSelection:
    """Delete or add the interaction that betters a log-linear model most, until none does.

    Parameters
    ----------
    direction
        ``"backward"`` deletes, ``"forward"`` adds, ``"both"`` does either.
    criterion
        ``"bic"`` or ``"aic"``; ``"chi2"`` deletes the interaction with the largest p-value above ``alpha`` and adds the
        one with the smallest below it.
    start
        Where to begin, in a notation of `markovfield.models.generators.read_generators`: ``"AB/BC"``, ``"all 2-way"``,
        or ``"saturated"`` and ``"independence"``. None: independence for forward, and for backward the saturated model
        where the table has at most 2^12 cells, otherwise all pairs.
    decomposable
        Walk over decomposable graphical models only: whole edges, scored in closed form without fitting. Otherwise over
        hierarchical models: single interactions, each neighbour fitted by iterative proportional fitting.
    alpha
        Level of the tests.
    max_order
        Most variables that an added interaction has (or a clique of a decomposable graph); None is all.
    max_iterations
        Most steps; None is no limit.

    Examples
    --------
    >>> import numpy as np
    >>> import markovfield as mf
    >>> rng = np.random.default_rng(0)
    >>> a = rng.integers(2, size=500)
    >>> b = a ^ (rng.random(500) < 0.2)
    >>> data = {"A": a, "B": b, "C": b ^ (rng.random(500) < 0.2), "D": rng.integers(2, size=500)}
    >>> learned = mf.learn_structure(data, method=mf.methods.StepwiseSelection())
    >>> learned.generators
    (('A', 'B'), ('B', 'C'), ('D',))
    """

    direction: str = "backward"
    criterion: str = "bic"
    start: Any = None
    decomposable: bool = False
    alpha: float = 0.05
    max_order: int | None = None
    max_iterations: int | None = None

    name: ClassVar[str] = "stepwise_selection"
    verbs: ClassVar[frozenset[str]] = frozenset({"learn_structure"})

    def __post_init__(self) -> None:
        check_method(
            self,
            least={"max_order": 2, "max_iterations": 0},
            above={"alpha": 0},
            below={"alpha": 1},
            choices={"direction": ("backward", "forward", "both"), "criterion": ("bic", "aic", "chi2")},
        )

    def learn(self, table: DataTable, *, running: Running, rng: np.random.Generator) -> LearnedGraph:
        """Step by step from the start."""
        if table.has_missing:
            raise ModelError("stepwise selection needs complete data: pass drop_missing=True to leave out other rows")
        generators = self._start(table)
        models = self._models(table, generators, running)
        history: list[TermMove] = []
        stopped = None
        while self.max_iterations is None or len(history) < self.max_iterations:
            try:
                running.check(models.log_likelihood)
                best = self._best(models, table.total_weight)
            except STOPS as stop:
                stopped = str(stop) or type(stop).__name__
                running.remember(stop)
                break
            if best is None:
                break
            move, gain, p_value = best
            models.make(move)
            history.append(
                TermMove(
                    move.kind,
                    tuple(table.variables[v] for v in move.members),
                    gain,
                    2.0 * abs(move.log_likelihood_gain),
                    abs(move.parameters),
                    p_value,
                )
            )
        return self._answer(table, models, tuple(history), stopped, running)

    def _start(self, table: DataTable) -> list[tuple[int, ...]]:
        """The generators to begin with; variables of one state interact with nothing."""
        alone = [v for v in range(table.n_variables) if table.cardinalities[v] == 1]
        found = [tuple(v for v in g if v not in alone) for g in self._given(table)]
        return [g for g in found if g] + [(v,) for v in alone]

    def _given(self, table: DataTable) -> list[tuple[int, ...]]:
        names, n = table.variables, table.n_variables
        given = self.start
        if given is None:
            small = math.prod(map(int, table.cardinalities)) <= 2**12
            given = "independence" if self.direction == "forward" else "saturated" if small else "all 2-way"
        if isinstance(given, str) and given in ("saturated", "independence"):
            return [tuple(range(n))] if given == "saturated" else [(v,) for v in range(n)]
        position = {v: i for i, v in enumerate(names)}
        if hasattr(given, "edges") and not isinstance(given, str):
            given = [[v] for v in names] + [list(e) for e in given.edges]
        if n == 1 and isinstance(given, str):
            return [(0,)]
        return [tuple(position[v] for v in g) for g in read_generators(given, names)]

    def _models(
        self, table: DataTable, generators: Sequence[tuple[int, ...]], running: Running
    ) -> DecomposableModels | HierarchicalModels:
        most = table.n_variables if self.max_order is None else self.max_order
        if not self.decomposable:
            return HierarchicalModels(table, generators, most, running)
        from markovfield.graphs.decomposable import chordless_cycle

        edges = sorted({e for g in generators for e in combinations(sorted(g), 2)})
        cycle = chordless_cycle(undirected_graph(table, edges))
        if cycle is not None:
            raise ModelError(
                "start of StepwiseSelection(decomposable=True) must be decomposable, but the cycle "
                f"{' - '.join(map(str, [*cycle, cycle[0]]))} has no chord"
            )
        return DecomposableModels(table, edges, most, running)

    def _best(
        self, models: DecomposableModels | HierarchicalModels, total: float
    ) -> tuple[Neighbour, float, float] | None:
        """The step to take, what it gains, and its p-value; None at the end."""
        from scipy.special import chdtrc

        found = models.neighbours(delete=self.direction != "forward", add=self.direction != "backward")
        if not found:
            return None
        p_values = [float(chdtrc(abs(m.parameters), 2.0 * abs(m.log_likelihood_gain))) for m in found]
        if self.criterion == "chi2":
            gone = [i for i, m in enumerate(found) if m.kind == "delete" and p_values[i] > self.alpha]
            come = [i for i, m in enumerate(found) if m.kind == "add" and p_values[i] < self.alpha]
            if not gone and not come:
                return None
            i = max(gone, key=p_values.__getitem__) if gone else min(come, key=p_values.__getitem__)
            return found[i], p_values[i], p_values[i]
        price = 1.0 if self.criterion == "aic" else 0.5 * math.log(max(total, 1.0))
        gains = [m.log_likelihood_gain - price * m.parameters for m in found]
        i = int(np.argmax(gains))
        return (found[i], gains[i], p_values[i]) if gains[i] > ROUNDING else None

    def _answer(
        self,
        table: DataTable,
        models: DecomposableModels | HierarchicalModels,
        history: tuple[TermMove, ...],
        stopped: str | None,
        running: Running,
    ) -> LearnedGraph:
        generators = models.generators
        edges = sorted({e for g in generators for e in combinations(g, 2)})
        k = model_dimension(table.cardinalities.tolist(), generators) - 1
        price = {"aic": 1.0, "bic": 0.5 * math.log(max(table.total_weight, 1.0)), "chi2": 0.0}[self.criterion]
        learned = LearnedGraph(
            variables=table.variables,
            states=table.states,
            graph=undirected_graph(table, edges),
            method=self.name,
            generators=tuple(tuple(table.variables[v] for v in g) for g in generators),
            score=models.log_likelihood - price * k,
            score_name="log_likelihood" if self.criterion == "chi2" else self.criterion,
            history=history,
            iterations=len(history),
            converged=stopped is None and (self.max_iterations is None or len(history) < self.max_iterations),
            stopped=stopped,
        )
        rest = Running() if stopped is not None else running
        fitted = IterativeProportionalFitting().fit(
            learned.to_network(), table, rng=np.random.default_rng(0), running=rest
        )
        return replace(learned, details=fitted.fit_report.details)
