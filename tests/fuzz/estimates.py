"""Claims of answers that are drawn: samples of exact methods, and estimates by their own standard errors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from tests.fuzz.models import Case
from tests.fuzz.options import Question, class_asked
from tests.fuzz.verdicts import Broken

SIGMAS = 6.0
# A state that so many independent draws should have shown is missed once in 10^8.
FLOOR = 20.0
# Level of one chi-square test of exact samples.
LEVEL = 1e-10


def outside(found: np.ndarray, errors: np.ndarray, truth: np.ndarray, size: float) -> np.ndarray:
    """Where an estimate is further off than six standard errors, its own or of ``size`` draws, and the floor."""
    own = np.sqrt(truth * np.maximum(0.0, 1 - truth) / size)
    return np.asarray(np.abs(found - truth) > SIGMAS * np.fmax(errors, own) + FLOOR / size)


def check_marginals(case: Case, question: Question, answer: Any) -> Iterator[Broken]:
    """Estimates that call themselves converged, and their errors."""
    found = answer.monte_carlo
    if found is None or not answer.converged:
        return
    sizes = found.effective_sample_sizes[np.isfinite(found.effective_sample_sizes)]
    size = max(1.0, min(float(sizes.min(initial=np.inf)), float(found.n_samples)))
    for v, label in enumerate(case.labels):
        truth = case.oracle.marginal(v)
        errors = answer.standard_error(label)
        if outside(answer[label], errors, truth, size).any():
            said = f"{label!r}: {answer[label].round(5).tolist()} +- {errors.round(6).tolist()}"
            yield Broken("converged means near", f"{said} for {truth.round(5).tolist()}, worth {size:.0f} draws")
            return
    r_hats = found.r_hats[~np.isnan(found.r_hats)]
    if (r_hats > 1.1).any():
        yield Broken("converged means that chains agree", f"R-hat {r_hats.max()}")


def check_log_partition(case: Case, question: Question, answer: Any) -> Iterator[Broken]:
    """An estimate of log Z by its standard error."""
    error = getattr(answer, "standard_error", None)
    if error is None or callable(error):
        error = getattr(answer, "log_partition_error", None)
    if error is None or np.isnan(answer.log_partition) or not answer.converged:
        return
    chains = float(question.settings.get("n_chains", 128))
    off = abs(answer.log_partition - case.oracle.log_partition)
    said = f"log Z {answer.log_partition!r} +- {error!r} for {case.oracle.log_partition!r}"
    if not error >= 0:
        yield Broken("a standard error is at least zero", said)
    elif not off <= SIGMAS * error + FLOOR / chains + case.rounding:
        yield Broken("log Z is within its standard errors", said)


def check_sample(case: Case, question: Question, answer: Any) -> Iterator[Broken]:
    """Rows are possible assignments; those of exact methods have the right frequencies."""
    size = question.keywords["size"]
    if answer.states.shape != (size, case.n_variables) or answer.states.dtype != np.int32:
        if not (question.stopped and not answer.converged):
            yield Broken("samples have the size asked for", f"{answer.states.shape} of {answer.states.dtype}")
        return
    if not len(answer) or not case.n_variables:
        return
    weights = answer.weights
    if abs(weights.sum() - 1) > 1e-9:
        yield Broken("weights add up to one", f"{weights.sum()}")
    rows = answer.states[weights > 0]
    if case.columns:
        possible = [np.isfinite(case.oracle.score(row)) for row in rows[:20]]
    else:
        possible = np.isfinite(case.oracle.scores[np.ravel_multi_index(rows.T, case.cardinalities)])
    if not np.all(possible):
        yield Broken("samples are possible", "an impossible assignment was drawn")
        return
    cls = class_asked(question)
    exact = cls.exact if cls is not None else answer.guarantee == "exact"
    if exact and answer.guarantee != "exact" and not question.stopped:
        yield Broken("an exact method is exact", answer.guarantee)
    if size < 100:
        return
    yield from check_weighted(case, answer)
    rng = np.random.default_rng(size)
    groups = [(v,) for v in range(case.n_variables)]
    groups += [] if case.columns else [tuple(rng.permutation(case.n_variables)[:3].tolist())]
    if answer.guarantee == "exact" and answer.log_weights is None:
        for group in groups:
            wrong = frequencies(case, answer.states, group)
            if wrong:
                yield Broken("exact samples have the right frequencies", f"{group}: {wrong}")
                return


def check_weighted(case: Case, answer: Any) -> Iterator[Broken]:
    """Weighted draws that are worth most of their number, and an estimate of log Z that comes with them."""
    size = answer.effective_sample_size if answer.log_weights is not None and answer.converged else 0.0
    if size > len(answer) / 4:
        for v, label in enumerate(case.labels):
            found, errors = answer.frequencies(label)
            if outside(found, errors, case.oracle.marginal(v), size).any():
                said = f"{label!r}: {found.round(4).tolist()} for {case.oracle.marginal(v).round(4).tolist()}"
                yield Broken("weighted samples have the right frequencies", said)
                return
    off = abs(answer.log_partition - case.oracle.log_partition)
    if off > SIGMAS * answer.log_partition_error + FLOOR / len(answer) + case.rounding and answer.converged:
        said = f"{answer.log_partition!r} +- {answer.log_partition_error!r} for {case.oracle.log_partition!r}"
        yield Broken("log Z is within its standard errors", said)


def frequencies(case: Case, states: np.ndarray, group: tuple[int, ...]) -> str:
    """A chi-square test of a group's joint frequencies; what is wrong with them, or nothing."""
    from scipy.stats import chi2, poisson

    expected = case.oracle.joint(group).ravel() * len(states)
    cells = np.ravel_multi_index(states[:, list(group)].T, [case.cardinalities[v] for v in group])
    seen = np.bincount(cells, minlength=len(expected))
    rare = expected < 10
    # Rare cells together, by their Poisson tail; the others by chi-square.
    if seen[rare].sum() > poisson.isf(LEVEL, max(1e-9, expected[rare].sum())):
        return f"{seen[rare].sum()} rare ones, expected {expected[rare].sum():.3g}"
    common, mean = seen[~rare], expected[~rare]
    if len(common) < 1:
        return ""
    statistic = float(((common - mean) ** 2 / mean).sum())
    if statistic > chi2.isf(LEVEL, len(common)):
        return f"seen {common.tolist()}, expected {mean.round(1).tolist()}"
    return ""
