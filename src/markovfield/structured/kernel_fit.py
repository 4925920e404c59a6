"""Max-margin training with a kernel of inputs: a problem whose tokens have a feature each, and its solvers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from markovfield.arrays import FloatArray, IntArray, offsets_of
from markovfield.exceptions import ModelError
from markovfield.inference.core.limits import memory_limit_bytes
from markovfield.inference.core.running import Running
from markovfield.learning.max_margin.kernel_expansion import InputKernel, KernelExpansion
from markovfield.learning.max_margin.kernel_frank_wolfe import KernelFrankWolfe, KernelPlaces
from markovfield.learning.max_margin.multiclass import ClassAscent, GramBlocks
from markovfield.structured.core.conditional import example_weights
from markovfield.structured.core.model import Placed
from markovfield.structured.core.reading import example_count, numbered_from, some_examples
from markovfield.structured.losses.loss import loss_of
from markovfield.structured.margin_report import MarginReport
from markovfield.structured.margin_training import multiclass_data
from markovfield.structured.models.kernelised import kernelised, token_rows
from markovfield.structured.objectives.hinge import Hinge
from markovfield.structured.oracles.problem import MarginProblem

__all__ = ["check_kernel", "fit_kernel", "kernel_solver", "shard_size", "train_by_kernel"]

# Tokens of a shard, about: steps among them need no other inner products than theirs.
SHARD_TOKENS = 512


def shard_size(n_examples: int, n_tokens: int) -> int:
    """Examples of a shard, where nobody says."""
    return max(1, SHARD_TOKENS * n_examples // max(n_tokens, 1))


def check_kernel(estimator: Any, refused: dict[str, Any], who: str) -> bool:
    """Whether there is a kernel; an error where other settings do not go with it, which are given with their default.

    A plain linear model needs no inner products and is trained as ever.
    """
    if isinstance(estimator.kernel, str) and estimator.kernel == "linear":
        return False
    for name, default in refused.items():
        value = getattr(estimator, name)
        if (value is not None) if default is None else value != default:
            raise ModelError(f"{who} with a kernel takes no {name}: leave it {default!r}, got {value!r}")
    kernel_solver(estimator.solver, who)
    return True


def kernel_solver(solver: Any, who: str) -> KernelFrankWolfe | None:
    """The solver, or None for ``"auto"``."""
    if isinstance(solver, KernelFrankWolfe):
        return solver
    if isinstance(solver, str) and solver in ("auto", KernelFrankWolfe.name):
        return None if solver == "auto" else KernelFrankWolfe()
    raise ModelError(f"solver of {who} with a kernel must be 'auto' or KernelFrankWolfe(...), got {solver!r}")


def fit_kernel(
    objective: Hinge,
    batches: list[Any],
    weights: FloatArray,
    kernel: InputKernel,
    rows: Any,
    places: KernelPlaces,
    *,
    C: float,
    solver: KernelFrankWolfe | None,
    rng: np.random.Generator,
    running: Running,
) -> tuple[KernelExpansion, FloatArray, MarginReport]:
    """Scores as sums over support vectors, the vector of weights (zero at the places of tokens), and a report.

    ``rows`` are the inputs of all tokens, ``places`` says where in the vector of weights a token's scores are.
    """
    total = float(weights.sum())
    if not total > 0:
        raise ModelError("sample_weight must be positive for some example")
    oracles = []
    for first, batch in zip(offsets_of([batch.n_examples for batch in batches]).tolist(), batches, strict=False):
        with numbered_from(first):
            oracles.append(objective.on(batch, running=running, rng=rng))
    problem = MarginProblem(oracles, C * weights, batches[0].n_weights)
    planned = running.seconds
    chosen: Any = KernelFrankWolfe() if solver is None else solver
    gram = GramBlocks(
        lambda part: kernel(rows[part], rows), rows.shape[0], max_bytes=memory_limit_bytes(chosen.memory_limit),
        parts=places.parts(problem.shards),
    )  # fmt: skip
    data = multiclass_data(problem) if solver is None else None
    if data is None:
        name, found = chosen.name, chosen.run_kernel(problem, gram, places, rng=rng, running=running)
        w = found.weights
    else:
        name, found = ClassAscent.name, ClassAscent().run_kernel(gram, data[1], rng=rng, running=running)
        w = np.zeros(problem.n_weights)
        w[places.nodes.ravel()] = found.weights
    if not len(w):
        raise ModelError(f"there are no weights yet: training was stopped before its first pass ({found.message})")
    expansion = KernelExpansion.of(kernel, rows, w[places.nodes])
    notes = [f"{len(expansion.coefficients)} of {rows.shape[0]} tokens are support vectors"]
    if not found.exact:
        notes.append("the oracle is not exact and undergenerates; the gap is an estimate")
    if problem.n_worse:
        notes.append(f"the oracle gave an output worse than the truth {problem.n_worse} times: the truth was taken")
    spent = running.seconds
    report = MarginReport.of(
        found, scale=1.0 / C, n_rows=len(weights), total_weight=total, n_parameters=len(w), primal=found.primal,
        objective=found.primal / C, seconds=spent, planning_seconds=planned, notes=tuple(notes), solver=name,
        solver_seconds=max(spent - planned - found.oracle_seconds, 0.0), loss=loss_of(objective.loss).name,
        rescaling=objective.rescaling, n_worse=problem.n_worse, gap_is_estimate=not found.exact,
        guarantee="exact" if found.exact else "approximate",
    )  # fmt: skip
    return expansion, w, report


def train_by_kernel(
    model: Any,
    objective: Hinge,
    data: tuple[Any, Any, Any],
    kernel_of: Callable[[Any, float], InputKernel],
    *,
    C: float,
    solver: KernelFrankWolfe | None,
    batch_size: int | None,
    rng: np.random.Generator,
    running: Running,
) -> tuple[Any, FloatArray, MarginReport]:
    """A model of graphs or classes with scores by a kernel, its weights, and a report.

    ``kernel_of`` gives the kernel for the inputs of all tokens, and the product of constants that a bias adds.
    """
    from scipy.sparse import csr_array

    X, Y, sample_weight = data
    n = example_count(X, Y)
    weights = np.ones(n) if sample_weight is None else example_weights(sample_weight, n)
    whole = model.inputs(X)
    rows, name = token_rows(model, whole), next(iter(whole.placed))
    n_tokens, n_labels = rows.shape[0], model.n_classes
    size = batch_size or shard_size(n, n_tokens)
    trained = kernelised(model, n_tokens)
    offsets = np.asarray(whole.variable_offsets, np.int64)
    batches = []
    for a in range(0, n, size):
        part = slice(a, min(a + size, n))
        with numbered_from(a):
            inputs = model.inputs(some_examples(X, part))
            tokens: IntArray = np.arange(offsets[part.start], offsets[part.stop])
            own = csr_array((np.ones(len(tokens)), tokens, np.arange(len(tokens) + 1)), shape=(len(tokens), n_tokens))
            placed = {**inputs.placed, name: Placed(inputs.placed[name].scopes, own)}
            batches.append(trained.encode_inputs(replace(inputs, placed=placed), some_examples(Y, part)))
    first = trained.layout[name][0]
    places = KernelPlaces(np.arange(first.start, first.stop).reshape(n_tokens, n_labels), offsets)
    kernel = kernel_of(rows, float(model.bias))
    expansion, w, report = fit_kernel(
        objective.resolved(model.classes), batches, weights, kernel, rows, places, C=C, solver=solver, rng=rng,
        running=running,
    )  # fmt: skip
    # Scores are the features of tokens: each label has its own, with weight 1.
    fitted = kernelised(model, n_labels, expansion)
    return fitted, np.concatenate([np.eye(n_labels).ravel(), w[first.stop :]]), report
