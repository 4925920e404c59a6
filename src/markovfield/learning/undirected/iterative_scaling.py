"""Iterative scaling of log-linear models: generalised (Darroch and Ratcliff) and improved (Della Pietra and others)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from markovfield._validation import check_method
from markovfield.arrays import FloatArray
from markovfield.exceptions import ModelError
from markovfield.inference.core.counts import resolve_counts
from markovfield.inference.core.running import STOPS, Running
from markovfield.learning.core.data import DataTable
from markovfield.learning.solvers.minimum import Minimum
from markovfield.learning.undirected.fitting import reported
from markovfield.learning.undirected.likelihood import Likelihood
from markovfield.learning.undirected.problem import Problem
from markovfield.models import LogLinear

__all__ = ["IterativeScaling"]

# A feature that never occurs is fitted as if it did in this share of the rows: its parameter has no finite optimum.
NEVER = 1e-9
# Joint states that improved scaling enumerates.
MOST_STATES = 2**16


@dataclass(frozen=True)
class IterativeScaling:
    """Move every parameter by the log of its observed over its expected moment, as far as that is safe.

    Features are made non-negative by constants, which no distribution notices. ``"gis"`` then divides all steps by the
    largest sum of features that an assignment can have; ``"iis"`` solves an equation in the distribution of that sum
    for each parameter, which takes larger steps where it varies, and enumerates all assignments (at most 2^16). The
    likelihood never falls. A step costs one inference. For tables that read every cell once,
    `IterativeProportionalFitting` is far faster; for everything else `MaximumLikelihood` nearly always is: this is the
    classic to compare with.

    Parameters
    ----------
    variant
        ``"gis"`` or ``"iis"``.
    inference
        Where expectations of ``"gis"`` come from; it is exact only with exact ones.
    tolerance
        Largest difference of a moment for each row.
    max_iterations
        Most steps.

    Examples
    --------
    >>> import markovfield as mf
    >>> agree = mf.Feature(["A", "B"], lambda a, b: float(a == b), name="agree")
    >>> model = mf.LogLinear({"A": 2, "B": 2}, [agree])
    >>> fitted = mf.fit(model, [[0, 0], [1, 1], [0, 1], [0, 0]], method=mf.methods.IterativeScaling())
    >>> fitted.parameters.round(4).tolist()
    [1.0986]
    """

    variant: str = "gis"
    inference: Any = "junction_tree"
    tolerance: float = 1e-7
    max_iterations: int = 10_000

    name: ClassVar[str] = "iterative_scaling"
    exact: ClassVar[bool] = True
    verbs: ClassVar[frozenset[str]] = frozenset({"fit"})
    missing_values: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_method(self, above={"tolerance": 0}, least={"max_iterations": 1}, choices={"variant": ("gis", "iis")})

    def fit(self, model: Any, table: DataTable, *, rng: np.random.Generator, running: Running) -> Any:
        """A new model with the fitted parameters."""
        problem = Problem(LogLinear.of(model), table, running)
        problem.need_complete(self.name, "method 'maximum_likelihood'")
        operator = _non_negative(problem.model)
        observed = np.asarray(operator.T @ problem.counts) / problem.total
        used = np.diff(problem.model.operator.tocsc().indptr) > 0
        never = int((used & (observed <= 0)).sum())
        wanted = np.maximum(observed, NEVER)
        engine: Any
        if self.variant == "iis":
            engine = _Enumerated(problem, operator)
        else:
            engine = _Inferred(problem, operator, Likelihood(problem, resolve_counts(self.inference), rng=rng))
        planning = running.seconds
        found = self._climb(problem, engine, wanted)
        notes = []
        if never:
            notes.append(
                f"{never} feature{'s' * (never != 1)} never occur{'s' * (never == 1)}: the likelihood has no finite "
                "maximum there, and parameters stop where they are expected in a billionth of the rows"
            )
        return reported(
            self,
            model,
            problem,
            found,
            log_likelihood=-problem.total * found.value,
            objective_name="minus the log-likelihood",
            guarantee="exact" if found.converged and engine.guarantee == "exact" else "approximate",
            planning_seconds=planning,
            notes=tuple(notes),
        )

    def _climb(self, problem: Problem, engine: Any, wanted: FloatArray) -> Minimum:
        """Steps until moments match."""
        theta = np.array(problem.model.parameters)
        history: list[float] = []
        message, converged, norm = "as many steps as were allowed", False, math.inf
        value = math.nan
        for _ in range(self.max_iterations):
            value, expected = engine.expect(theta)
            history.append(value)
            norm = float(np.abs(wanted - expected).max(initial=0.0))
            if norm <= self.tolerance:
                message, converged = "moments match", True
                break
            try:
                problem.running.check(-problem.total * value)
            except STOPS as stop:
                message = str(stop) or type(stop).__name__
                problem.running.remember(stop)
                break
            # A parameter that no assignment reads stays where it is.
            theta = theta + np.where(expected > 0.0, engine.step(wanted, expected), 0.0)
        return Minimum(
            theta, value, norm, len(history), len(history), converged, message, tuple(history), problem.running.seconds
        )


def _non_negative(model: LogLinear) -> Any:
    """The operator with what is negative raised by a constant in the whole table: moments move by constants."""
    from scipy.sparse import coo_array

    operator = model.operator.tocoo()
    if not len(operator.data) or operator.data.min() >= 0:
        return model.operator
    base = _blocks(model)
    rows, columns, values = operator.row, operator.col, operator.data
    low: dict[tuple[int, int], float] = {}
    for r, c, x in zip(rows.tolist(), columns.tolist(), values.tolist(), strict=True):
        if x < 0:
            key = (int(base[r]), c)
            low[key] = min(low.get(key, 0.0), x)
    cells = {b: np.flatnonzero(base == b) for b in {b for b, _ in low}}
    more = [(cells[b], np.full(len(cells[b]), c), np.full(len(cells[b]), -x)) for (b, c), x in low.items()]
    joined = [np.concatenate([own, *(m[i] for m in more)]) for i, own in enumerate((rows, columns, values))]
    return coo_array((joined[2], (joined[0], joined[1])), shape=operator.shape).tocsr()


def _blocks(model: LogLinear) -> npt.NDArray[np.intp]:
    """``int[cells]``: which table each cell of the pool belongs to; factors that share a table share its block."""
    s = model.base_graph.structure
    return np.searchsorted(np.unique(s.table_offsets), np.arange(s.n_cells), side="right") - 1


class _Inferred:
    """Expectations by inference, and the step of generalised scaling."""

    def __init__(self, problem: Problem, operator: Any, likelihood: Likelihood) -> None:
        self.problem, self.operator, self.likelihood = problem, operator, likelihood
        s = problem.structure
        sums = np.asarray(operator.sum(axis=1)).ravel()
        base = _blocks(problem.model)
        most: dict[int, float] = {}
        for b, x in zip(base.tolist(), sums.tolist(), strict=True):
            most[b] = max(most.get(b, 0.0), x)
        # No assignment has a larger sum of features than all factors at their largest.
        self.largest = sum(most[int(base[b])] for b in s.table_offsets) or 1.0

    @property
    def guarantee(self) -> str:
        return str(self.likelihood.guarantee)

    def expect(self, theta: FloatArray) -> tuple[float, FloatArray]:
        value, _, expected = self.likelihood.expectations(theta)
        total = self.problem.total
        return -value / total, np.asarray(self.operator.T @ expected) / total

    def step(self, wanted: FloatArray, expected: FloatArray) -> FloatArray:
        return np.log(wanted / np.maximum(expected, 1e-300)) / self.largest


class _Enumerated:
    """Every assignment with its features, and the step of improved scaling."""

    guarantee = "exact"

    def __init__(self, problem: Problem, operator: Any) -> None:
        from markovfield.factors.factor_kinds import cell_reader

        self.problem = problem
        graph = problem.model.base_graph
        s = problem.structure
        states = math.prod(int(c) for c in s.cardinalities)
        if states > MOST_STATES:
            raise ModelError(
                f"variant 'iis' of iterative_scaling enumerates at most {MOST_STATES} joint states; use variant 'gis'"
            )
        rows = np.indices(s.cardinalities.tolist()).reshape(s.n_variables, -1).T
        read = cell_reader(s)
        cells = np.array([read(row) for row in rows])
        self.base = graph.log_tables[cells].sum(axis=1)
        self.features = sum(operator[cells[:, f]] for f in range(cells.shape[1]))
        self.original = sum(problem.model.operator[cells[:, f]] for f in range(cells.shape[1]))
        self.sums, self.level = np.unique(np.asarray(self.features.sum(axis=1)).ravel().round(12), return_inverse=True)

    def expect(self, theta: FloatArray) -> tuple[float, FloatArray]:
        scores = self.base + self.original @ theta
        top = float(scores.max())
        p = np.exp(scores - top)
        log_z = top + math.log(p.sum())
        self.p = p / p.sum()
        problem = self.problem
        value = (problem.base_score + float(theta @ problem.moments)) / problem.total - log_z
        return -value, np.asarray(self.features.T @ self.p)

    def step(self, wanted: FloatArray, expected: FloatArray) -> FloatArray:
        """For each parameter, the step at which its shares of all levels, times exp(step * level), sum as wanted."""
        from scipy.sparse import csr_array

        at = csr_array((self.p, (self.level, np.arange(len(self.p)))), shape=(len(self.sums), len(self.p)))
        shares = (at @ self.features).toarray()
        # The left side is convex in the step: from the right of its solution, Newton's method falls onto it.
        least = float(self.sums[self.sums > 0].min(initial=np.inf))
        steps = np.log(wanted / np.maximum(expected, 1e-300))
        steps = np.maximum(steps / (least if math.isfinite(least) else 1.0), steps / float(self.sums.max(initial=1.0)))
        cap = 600.0 / float(self.sums.max(initial=1.0))
        steps = np.clip(steps, -cap, cap)
        for _ in range(200):
            powers = np.exp(np.outer(self.sums, steps))
            value = (shares * powers).sum(axis=0) - wanted
            slope = (shares * powers * self.sums[:, None]).sum(axis=0)
            change = np.where(slope > 0, value / np.maximum(slope, 1e-300), 0.0)
            steps = np.clip(steps - change, -cap, cap)
            if np.abs(change).max(initial=0.0) < 1e-12:
                break
        return steps
