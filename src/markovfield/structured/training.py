"""Training: an objective on a batch (or on shards of it), a penalty, a solver, and a report."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from markovfield._validation import number, whole_number
from markovfield.arrays import FloatArray
from markovfield.exceptions import ModelError
from markovfield.inference.core.counts import is_sampler
from markovfield.inference.core.running import Running
from markovfield.learning.core.report import FitReport
from markovfield.learning.solvers.lbfgs import LBFGS
from markovfield.learning.solvers.minimum import Minimum
from markovfield.learning.solvers.penalty import Penalty
from markovfield.learning.solvers.proximal_gradient import ProximalGradient
from markovfield.learning.solvers.solve import solve, solver_of
from markovfield.learning.solvers.stochastic import AdaGrad, Adam, StochasticGradient
from markovfield.structured.core.conditional import ConditionalModel, example_weights
from markovfield.structured.core.form_batch import FormBatch
from markovfield.structured.core.reading import example_count, numbered_from
from markovfield.structured.margin_fit import train_by_margin
from markovfield.structured.objectives.hinge import Hinge

__all__ = ["ShardedObjective", "penalty_of", "train"]

# Objectives are divided by the weight of all examples; messages that are not quite at rest leave the gradient so far
# from zero.
DEFAULT = LBFGS(max_iterations=500, tolerance=1e-8, gradient_tolerance=1e-5)
# Of a bound that is some percent from the likelihood, no more digits are wanted.
BOUND_DIGITS = 1e-6
# What the guarantee of log Z says of training.
TRUST = {
    "exact": "exact",
    "upper": "an upper bound on log Z",
    "lower": "a lower bound on log Z",
    "approximate": "approximate",
}
# Examples of a shard, where nobody says.
SHARD = 16


class ShardedObjective:
    """Mini-batches: examples cut into shards in a fixed order, each encoded once."""

    def __init__(self, objectives: list[Any], total: float) -> None:
        self.objectives, self.total = objectives, total
        self.n_shards = len(objectives)

    def gradient(self, w: FloatArray, shard: int, rng: np.random.Generator) -> FloatArray:
        """The gradient of one shard, as an estimate of that of all, for each example."""
        return np.asarray(self.objectives[shard](w)[1] * (self.n_shards / self.total))

    def value(self, w: FloatArray) -> float:
        """The objective of all examples, for each."""
        return float(sum(objective(w)[0] for objective in self.objectives)) / self.total

    @property
    def guarantee(self) -> str:
        """Of the inference in all shards together."""
        found = {getattr(objective, "guarantee", "exact") for objective in self.objectives}
        return found.pop() if len(found) == 1 else "approximate"

    @property
    def converged(self) -> bool:
        """Whether inference came to its end in all shards."""
        return all(getattr(objective, "converged", True) for objective in self.objectives)

    @property
    def method(self) -> Any:
        """What infers."""
        return getattr(self.objectives[0], "method", None)


def train(
    model: ConditionalModel,
    objective: Any,
    data: tuple[Any, Any, Any],
    *,
    solver: Any,
    penalty: Penalty,
    batch_size: int | None,
    init: Any,
    rng: np.random.Generator,
    running: Running,
) -> tuple[FloatArray, FitReport, str]:
    """Weights that fit outputs to inputs, how they were found, and what infers where examples are wide."""
    X, Y, sample_weight = data
    n = example_count(X, Y)
    if isinstance(objective, Hinge):
        l2 = np.unique(penalty.l2)
        if len(l2) != 1 or not l2[0] > 0 or penalty.has_groups:
            raise ModelError("a hinge is minimised with one l2 above 0 for all weights, beside it an l1, and no groups")
        if init is not None:
            raise ModelError("max-margin solvers start from nothing: leave init None")
        settings = {"solver": solver, "batch_size": batch_size, "rng": rng, "running": running}
        l1 = np.asarray(penalty.l1, np.float64) / float(l2[0])
        trained = train_by_margin(model, objective, data, C=1.0 / float(l2[0]), l1=l1, **settings)
        return *trained, model.known.wide_inference
    notes: list[str] = []
    if init is None and hasattr(objective, "begin_with"):
        first = objective.begin_with()
        settings = {"solver": "auto", "batch_size": None, "rng": rng, "running": running}
        init = train(model, first, data, penalty=penalty, init=None, **settings)[0]
        notes.append(f"begun with the weights of {first.name}")
    sample_weight = None if sample_weight is None else example_weights(sample_weight, n)
    total = float(n if sample_weight is None else sample_weight.sum())
    if not total > 0:
        raise ModelError("sample_weight must be positive for some example")
    default = ProximalGradient() if penalty.has_groups else DEFAULT
    chosen = default if solver == "auto" else solver_of(solver)
    noisy = isinstance(chosen, StochasticGradient | AdaGrad | Adam)
    if batch_size is not None and not noisy:
        raise ModelError("batch_size is for stochastic solvers ('sgd', 'adagrad', 'adam'); leave it None")
    value: Any
    if noisy:
        size = whole_number(SHARD if batch_size is None else batch_size, "batch_size")
        if size < 1:
            raise ModelError(f"batch_size must be at least 1, got {size}")
        parts = [slice(a, min(a + size, n)) for a in range(0, n, size)]
        shards = []
        for part, batch in zip(parts, model.encode_parts(X, Y, parts, sample_weight), strict=True):
            with numbered_from(part.start):
                shards.append(objective.on(_taken(objective, batch), running=running.quiet, rng=rng))
        evaluated = value = ShardedObjective(shards, total)
        sizes = [shard.batch.details for shard in shards]
        details = {name: sum(size[name] for size in sizes) for name in sizes[0]}
    else:
        batch = _taken(objective, model.encode(X, Y, sample_weight))
        evaluated = objective.on(batch, running=running.quiet, rng=rng)
        method = getattr(evaluated, "method", None)
        if method is not None and hasattr(method, "verbs") and is_sampler(method):
            raise ModelError(f"{chosen.name} cannot follow a sampler's gradient: use 'sgd', 'adagrad' or 'adam'")
        details = batch.details

        def value(w: FloatArray) -> tuple[float, FloatArray]:
            found, gradient = evaluated(w)
            return found / total, gradient / total

    planned = running.seconds
    start = model.start(rng) if init is None else _weights(init, model.n_weights)
    penalty.check(model.n_weights)
    penalty = replace(
        penalty,
        l2=np.asarray(penalty.l2) / total,
        l1=np.asarray(penalty.l1) / total,
        group_l1=penalty.group_l1 / total,
    )

    def solved() -> Minimum:
        # Between evaluations, threads of a matrix library would wait for more work and keep ours from theirs.
        with threadpool_limits(1, user_api="blas"):
            return solve(value, start, solver=chosen, penalty=penalty, rng=rng, running=running)

    found = solved()
    wide_inference = model.known.wide_inference
    smooth = total * (found.value - penalty.value(found.weights))
    if not noisy and hasattr(evaluated, "misled") and evaluated.misled(smooth, total * found.gradient_norm):
        notes.append("loopy belief propagation misled training, which went on with tree_reweighted, a convex bound")
        evaluated.convex()  # type: ignore[attr-defined]
        if solver == "auto" and isinstance(chosen, LBFGS):
            chosen = replace(chosen, tolerance=BOUND_DIGITS)
        wide_inference = "tree_reweighted"
        found = solved()
    guarantee = str(getattr(evaluated, "guarantee", "exact"))
    method = getattr(evaluated, "method", None)
    likelihood = float("nan")
    if objective.name == "likelihood" and np.isfinite(found.value):
        likelihood = -total * (found.value - penalty.value(found.weights))
    if method is not None:
        notes.insert(0, f"inference by {method.name} ({TRUST[guarantee]})")
    if not getattr(evaluated, "converged", True):
        notes.append("inference did not always converge: values and gradients are less precise")
    report = FitReport(
        method=objective.name,
        log_likelihood=likelihood,
        n_rows=n,
        total_weight=total,
        n_parameters=model.n_weights,
        converged=found.converged,
        iterations=found.iterations,
        evaluations=found.evaluations,
        message=found.message,
        history=tuple(-total * one for one in found.history),
        objective=total * found.value,
        objective_name=objective.name,
        gradient_norm=total * found.gradient_norm,
        seconds=running.seconds,
        planning_seconds=planned,
        guarantee="exact" if guarantee == "exact" and objective.name == "likelihood" else "approximate",
        notes=tuple(notes),
        details=details,
    )
    return found.weights, report, wide_inference


def _weights(init: Any, n_weights: int) -> FloatArray:
    """Weights that a user gives to start from."""
    try:
        start = np.array(init, np.float64)
    except (TypeError, ValueError):
        raise ModelError(f"init must be {n_weights} weights, such as weights_ of a fit, got {init!r:.60}") from None
    if start.shape != (n_weights,) or not np.isfinite(start).all():
        raise ModelError(f"init must be {n_weights} finite weights, got shape {start.shape}")
    return start


def penalty_of(model: ConditionalModel, l2: Any, l1: Any, group_l1: Any = 0.0) -> Penalty:
    """What weights cost: numbers, or by kind of factor, ``{"edges": 0.1}``.

    Kinds that a dict does not name cost nothing. ``group_l1`` is on norms of groups: all weights of one feature of the
    input, or of one table.
    """
    groups = np.full(model.n_weights, -1, np.int64)
    strengths: dict[str, float] = {}
    for name, (part, shape) in model.layout.items():
        strength = _by_kind(model, group_l1, "group_l1").get(name, 0.0)
        if strength:
            groups[part] = groups.max(initial=-1) + 1 + np.repeat(np.arange(shape[0]), shape[1])
            strengths[name] = strength
    if len(set(strengths.values())) > 1:
        raise ModelError("group_l1 must be one number for all kinds of factors that it names")
    spread = {}
    for title, given in (("l2", l2), ("l1", l1)):
        by_kind = _by_kind(model, given, title)
        spread[title] = np.zeros(model.n_weights)
        for name, (part, _) in model.layout.items():
            spread[title][part] = by_kind.get(name, 0.0)
    return Penalty(
        l2=spread["l2"],
        l1=spread["l1"],
        groups=groups if strengths else None,
        group_l1=next(iter(strengths.values()), 0.0),
    )


def _by_kind(model: ConditionalModel, given: Any, title: str) -> dict[str, float]:
    """A penalty for each kind of factor."""
    if not isinstance(given, Mapping):
        if not np.isfinite(number(given, title, least=0.0)):
            raise ModelError(f"{title} must be finite, got {given}")
        return dict.fromkeys(model.layout, float(given))
    for name, value in given.items():
        if name not in model.layout:
            raise ModelError(f"{title} names {name!r}; kinds of factors are {', '.join(map(repr, model.layout))}")
        if not np.isfinite(number(value, f"{title}[{name!r}]", least=0.0)):
            raise ModelError(f"{title}[{name!r}] must be finite, got {value}")
    return {name: float(value) for name, value in given.items()}


def _taken(objective: Any, batch: Any) -> Any:
    """The batch, where the objective takes its kind: those of factor graphs do not take structures."""
    if isinstance(batch, FormBatch) and objective.name not in ("likelihood", "softmax_margin", "ramp", "direct_loss"):
        raise ModelError(f"objective {objective.name!r} is for factor graphs; structures are trained by 'likelihood'")
    return batch
