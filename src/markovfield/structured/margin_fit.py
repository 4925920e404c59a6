"""Max-margin training of any conditional model: shards, a solver of planes, a development set, a report."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from markovfield._validation import number, whole_number
from markovfield.arrays import FloatArray, IntArray, offsets_of
from markovfield.exceptions import ModelError, StoppedError
from markovfield.inference.core.running import Running
from markovfield.learning.max_margin.problem import MarginMinimum, Planes
from markovfield.learning.max_margin.restraint import Restraint
from markovfield.structured.core.conditional import ConditionalModel, example_weights
from markovfield.structured.core.reading import example_count, numbered_from
from markovfield.structured.losses.loss import loss_of
from markovfield.structured.margin_report import MarginReport
from markovfield.structured.margin_training import SHARDS, margin_solver
from markovfield.structured.marginals.relaxed import RelaxedDecoder
from markovfield.structured.objectives.hinge import Hinge
from markovfield.structured.oracles.problem import MarginProblem

__all__ = ["Development", "checked_cost", "checked_l1", "fit_planes", "hinges_at", "train_by_margin"]


def checked_cost(C: Any, who: str) -> float:
    """The cost of hinges, above 0."""
    if not np.isfinite(number(C, f"C of {who}", above=0.0)):
        raise ModelError(f"C of {who} must be finite, got {C}")
    return float(C)


def checked_l1(l1: Any, who: str) -> float:
    """What the absolute values of weights cost, at least 0."""
    if not np.isfinite(number(l1, f"l1 of {who}", least=0.0)):
        raise ModelError(f"l1 of {who} must be finite, got {l1}")
    return float(l1)


@dataclass(eq=False)
class Development:
    """A development set: what weights cost there, and after how many passes without a lower cost to stop.

    Attributes
    ----------
    values, weights
        The cost after each pass, and the weights of the least.
    """

    loss: Callable[[FloatArray], float]
    patience: int | None = None
    values: list[float] = field(default_factory=list)
    weights: FloatArray | None = None

    def look(self, w: FloatArray) -> None:
        """Weights after a pass; a `StoppedError` where it is time."""
        value = float(self.loss(w))
        if not self.values or value < min(self.values):
            self.weights = w.copy()
        self.values.append(value)
        since = len(self.values) - 1 - int(np.argmin(self.values))
        if self.patience is not None and since >= self.patience:
            raise StoppedError(f"the loss of the development set did not fall for {self.patience} passes")


@dataclass(eq=False)
class _Watched:
    """A problem whose weights are looked at after each pass."""

    problem: MarginProblem
    development: Development
    calls: int = 0

    @property
    def n_weights(self) -> int:
        return self.problem.n_weights

    @property
    def costs(self) -> FloatArray:
        return self.problem.costs

    @property
    def shards(self) -> list[IntArray]:
        return self.problem.shards

    @property
    def restraint(self) -> Restraint | None:
        return self.problem.restraint

    @property
    def exact(self) -> bool:
        return self.problem.exact

    def planes(self, w: FloatArray, shard: int, *, losses: bool = True) -> Planes:
        if self.calls and self.calls % len(self.shards) == 0:
            self.development.look(w)
        self.calls += 1
        return self.problem.planes(w, shard, losses=losses)


def train_by_margin(
    model: ConditionalModel,
    objective: Hinge,
    data: tuple[Any, Any, Any],
    *,
    C: float,
    solver: Any,
    batch_size: int | None,
    rng: np.random.Generator,
    running: Running,
    development: Development | None = None,
    l1: FloatArray | None = None,
) -> tuple[FloatArray, MarginReport]:
    """Weights of least ``1/2 |w|^2 + l1 |w|_1 + C sum of hinges``, by a solver of planes, and how they were found."""
    X, Y, sample_weight = data
    n = example_count(X, Y)
    weights = np.ones(n) if sample_weight is None else example_weights(sample_weight, n)
    chosen = margin_solver(solver)
    if batch_size is None:
        size = 1 if chosen.name == "perceptron" else -(-n // SHARDS)
    else:
        size = whole_number(batch_size, "batch_size", 1)
    parts = [slice(a, a + size) for a in range(0, n, size)]
    batches = model.encode_parts(X, Y, parts)
    objective = objective.resolved(model.classes)
    return fit_planes(
        objective, batches, weights, C=C, solver=chosen, rng=rng, running=running, development=development,
        restraint=_restraint(model, objective, l1),
    )  # fmt: skip


def _restraint(model: ConditionalModel, objective: Hinge, l1: FloatArray | None) -> Restraint | None:
    """What is asked of weights beside their squares."""
    nonnegative = np.zeros(model.n_weights, np.bool_)
    for name in objective.nonnegative:
        if name not in model.layout:
            kinds = ", ".join(map(repr, model.layout))
            raise ModelError(f"nonnegative of Hinge names {name!r}; kinds of factors are {kinds}")
        nonnegative[model.layout[name][0]] = True
    if not nonnegative.any() and (l1 is None or not l1.any()):
        return None
    return Restraint(np.zeros(model.n_weights) if l1 is None else l1, nonnegative)


def fit_planes(
    objective: Hinge,
    batches: list[Any],
    weights: FloatArray,
    *,
    C: float,
    solver: Any,
    rng: np.random.Generator,
    running: Running,
    development: Development | None = None,
    restraint: Restraint | None = None,
) -> tuple[FloatArray, MarginReport]:
    """The same of batches that are shards; ``weights`` are those of examples."""
    total = float(weights.sum())
    if not total > 0:
        raise ModelError("sample_weight must be positive for some example")
    oracles = []
    for first, batch in zip(offsets_of([batch.n_examples for batch in batches]).tolist(), batches, strict=False):
        with numbered_from(first):
            oracles.append(objective.on(batch, running=running, rng=rng))
    problem = MarginProblem(oracles, C * weights, batches[0].n_weights, restraint)
    planned = running.seconds
    chosen = margin_solver(solver)
    found: MarginMinimum = chosen.run(
        problem if development is None else _Watched(problem, development), rng=rng, running=running
    )
    if development is not None and not development.values and len(found.weights):
        development.values.append(float(development.loss(found.weights)))
    w, primal, notes = found.weights, found.primal, []
    if not len(w):
        raise ModelError(f"there are no weights yet: training was stopped before its first pass ({found.message})")
    if development is not None and development.weights is not None and development.patience is not None:
        w = development.weights
        primal = _anew(objective, batches, problem, running).primal(w)
        notes.append(f"weights are those of the least development loss, after pass {np.argmin(development.values) + 1}")
    estimate, bound = False, float("nan")
    if not found.exact:
        primal, estimate, bound, said = _checked(objective, batches, problem, w, running, found.dual)
        notes.append(said)
    if objective.relaxed:
        notes.append(_overgenerated(objective, batches, problem, w, running))
    if problem.n_worse:
        notes.append(f"the oracle gave an output worse than the truth {problem.n_worse} times: the truth was taken")
    spent = running.seconds
    report = MarginReport.of(
        found, scale=1.0 / C, n_rows=len(weights), total_weight=total, n_parameters=len(w), primal=primal,
        objective=primal / C, seconds=spent, planning_seconds=planned, notes=tuple(notes), solver=chosen.name,
        solver_seconds=max(spent - planned - found.oracle_seconds, 0.0), loss=loss_of(objective.loss).name,
        rescaling=objective.rescaling, n_worse=problem.n_worse, gap_is_estimate=estimate, primal_bound=bound,
        guarantee="approximate" if estimate else "exact",
        development=() if development is None else tuple(development.values),
    )  # fmt: skip
    return w, report


def hinges_at(objective: Hinge, batches: list[Any], w: FloatArray, running: Running) -> FloatArray:
    """``float64[n_examples]``: the hinge of each example at some weights."""
    found = []
    for batch in batches:
        rows, cost = objective.on(batch, running=running.quiet).planes(w, losses=True)
        found.append(np.maximum(cost - rows.products(w), 0.0))
    return np.concatenate(found)


def _anew(objective: Hinge, batches: list[Any], problem: MarginProblem, running: Running) -> MarginProblem:
    """The same problem with oracles that nothing stops."""
    quiet = replace(running.quiet, time_limit=None)
    oracles = [objective.on(batch, running=quiet) for batch in batches]
    return MarginProblem(oracles, problem.costs, problem.n_weights, problem.restraint)


def _overgenerated(
    objective: Hinge, batches: list[Any], problem: MarginProblem, w: FloatArray, running: Running
) -> str:
    """What fractional outputs make of the hinge: how many there were, and the primal by the best decoding there is."""
    made = [oracle.decoder.n_outputs for oracle in problem.oracles if isinstance(oracle.decoder, RelaxedDecoder)]
    fractional = [o.decoder.n_fractional for o in problem.oracles if isinstance(o.decoder, RelaxedDecoder)]
    again = _anew(replace(objective, relaxed=False), batches, problem, running)
    value = again.primal(w)
    proof = "of outputs" if again.exact else "of outputs, an estimate,"
    return (
        f"the oracle (linear programs) overgenerates: {sum(fractional)} of {sum(made)} outputs were fractional; the "
        f"primal is that of the relaxation, and {value:.6g} that {proof} at these weights"
    )


def _checked(
    objective: Hinge, batches: list[Any], problem: MarginProblem, w: FloatArray, running: Running, dual: float
) -> tuple[float, bool, float, str]:
    """The primal anew, by the best decoding there is; whether it is an estimate, a bound above it, and a sentence.

    An oracle that misses the worst output undergenerates: its planes are valid and the dual holds, but its primal can
    be too low.
    """
    again = _anew(replace(objective, decoding="auto"), batches, problem, running)
    # No primal is below the dual: planes that prove it may have been forgotten.
    value = float(np.nanmax([again.primal(w), problem.primal_seen(w), dual]))
    name = objective.decoding if isinstance(objective.decoding, str) else getattr(objective.decoding, "name", "")
    said = (
        f"the oracle ({name if objective.rescaling == 'margin' else 'slack rescaling'}) is not exact and undergenerates"
    )
    if again.exact:
        return value, False, value, f"{said}; the check at the end proved the primal, so that the gap holds"
    slack = sum(oracle.gap for oracle in again.oracles)
    bound = value + float(problem.costs.max()) * slack
    above = f"the primal is proven to be at most {bound:.6g}" if np.isfinite(bound) else "nothing bounds the primal"
    return value, True, bound, f"{said}; the gap is an estimate: {above}"
