"""Claims of log Z, marginals, joints, queries, batches and semirings."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

import markovfield as mf
from tests.fuzz import estimates
from tests.fuzz.models import Case
from tests.fuzz.options import Question
from tests.fuzz.verdicts import TOLERANCE, Broken, log_tolerance, probabilities, promises_exact, same_logs


def check_partition(case: Case, question: Question, answer: Any) -> Iterator[Broken]:
    """log Z, its guarantee and its bounds."""
    truth, room = case.oracle.log_partition, log_tolerance(case, case.oracle.log_partition)
    value, (low, high) = answer.log_partition, answer.log_partition_bounds
    said = f"log Z {value!r}, bounds ({low!r}, {high!r}), {answer.guarantee}, truth {truth!r}"
    if np.isnan(low) or np.isnan(high) or low > high:
        yield Broken("bounds are an interval", said)
    if answer.guarantee not in ("exact", "upper", "lower", "approximate"):
        yield Broken("the guarantee is one of four", said)
    if answer.guarantee == "exact" and not (max(abs(x - truth) for x in (value, low, high)) <= room):
        yield Broken("log Z is exact", said)
        return
    if low > truth + room:
        yield Broken("the lower bound holds", said)
    if high < truth - room:
        yield Broken("the upper bound holds", said)
    if answer.guarantee == "upper" and not value >= truth - room:
        yield Broken("log Z is an upper bound", said)
    if answer.guarantee == "lower" and not value <= truth + room:
        yield Broken("log Z is a lower bound", said)
    if promises_exact(question) and answer.guarantee != "exact":
        yield Broken("an exact method is exact", said)
    yield from estimates.check_log_partition(case, question, answer)


def check_log_partition(case: Case, question: Question, answer: Any) -> Iterator[Broken]:
    if float(answer) != answer.log_partition and not np.isnan(answer.log_partition):
        yield Broken("float(answer) is log Z", f"{float(answer)} and {answer.log_partition}")
    yield from check_partition(case, question, answer)


def check_marginals(case: Case, question: Question, answer: Any) -> Iterator[Broken]:
    yield from check_partition(case, question, answer)
    exact = answer.guarantee == "exact"
    if list(answer) != list(case.labels):
        yield Broken("variables are those of the model", f"{list(answer)}")
    if answer.values.flags.writeable:
        yield Broken("an answer cannot be written", "values are writeable")
    for v, label in enumerate(case.labels):
        p = answer[label]
        if not ((p >= 0).all() and abs(p.sum() - 1) <= 1e-9):
            yield Broken("marginals are distributions", f"{label!r}: {p.tolist()}")
            return
        given = case.evidence.get(v)
        out = p[np.asarray(given) == 0] if np.ndim(given) else np.delete(p, given) if given is not None else p[:0]
        if out.any():
            yield Broken("marginals agree with the evidence", f"{label!r}: {p.tolist()} given {given}")
        wrong = probabilities(p, case, [v]) if exact else ""
        if wrong:
            yield Broken("marginals are exact", f"{label!r}: {wrong}")
            return
    yield from estimates.check_marginals(case, question, answer)
    if exact:
        yield from check_exact_extras(case, question, answer)


def check_exact_extras(case: Case, question: Question, answer: Any) -> Iterator[Broken]:
    """Joints, max-marginals, expected counts and the likeliest states of an exact answer."""
    oracle, room = case.oracle, TOLERANCE + case.rounding
    sets = [t.positions for t in question.keywords.get("targets", ())]
    if case.n_variables > 1 and not case.columns:
        sets.append((case.n_variables - 1, 0))
    for group in sets:
        try:
            joint = answer.joint([case.labels[v] for v in group])
        except (mf.ModelError, mf.MemoryLimitError):
            continue
        wrong = probabilities(joint, case, group)
        if wrong:
            yield Broken("joints are exact", f"{group}: {wrong}")
    best = answer.mpm()
    for v, label in enumerate(case.labels):
        truth = oracle.marginal(v)
        if truth[best[label]] < truth.max() - 2 * room:
            yield Broken("mpm is the likeliest state", f"{label!r}: {best[label]} of {truth.tolist()}")
    if case.noisy:
        return
    try:
        maxima = answer.max_marginals
    except mf.ModelError:
        maxima = {}
    for v, label in enumerate(case.labels if maxima else ()):
        truth = oracle.max_marginal(v)
        if not same_logs(maxima[label], truth, room):
            yield Broken("max-marginals are exact", f"{label!r}: {maxima[label].tolist()} for {truth.tolist()}")
            break
    try:
        counts = answer.expected_counts
    except mf.ModelError:
        return
    if not np.abs(counts - case.pool_counts()).max(initial=0.0) <= 10 * room:
        yield Broken("expected counts are exact", f"{counts.tolist()} for {case.pool_counts().tolist()}")


def check_query(case: Case, question: Question, answer: Any) -> Iterator[Broken]:
    """The posterior of a few variables, perhaps given others."""
    if answer.guarantee != "exact":
        return
    asked = question.keywords["targets"].positions
    given = question.keywords["given"].positions if "given" in question.keywords else ()
    truth = case.oracle.joint([*given, *asked])
    room = TOLERANCE + case.rounding
    if not given:
        wrong = probabilities(answer.values, case, asked)
        if wrong:
            yield Broken("a query is exact", wrong)
        return
    total = truth.sum(axis=tuple(range(len(given), truth.ndim)), keepdims=True)
    sure = np.broadcast_to(total > 1e-6, truth.shape)
    expected = truth / np.where(total > 0, total, 1.0)
    if not (np.abs(answer.values - expected)[sure] <= 1e3 * room + 1e-9).all():
        yield Broken("a query is exact", f"{answer.values.tolist()} for {expected.tolist()}")
    if not np.isnan(answer.values[np.broadcast_to(total == 0, truth.shape)]).all():
        yield Broken("an impossible condition has nan", f"{answer.values.tolist()}")


def check_probability(case: Case, question: Question, answer: float) -> Iterator[Broken]:
    event = dict(question.keywords["event"].items)
    truth = case.oracle.probability(event)
    if not abs(answer - truth) <= TOLERANCE + 4 * case.rounding:
        yield Broken("a probability is exact", f"{answer} for {truth}")


def check_expected_counts(case: Case, question: Question, answer: Any) -> Iterator[Broken]:
    """The seam of learning: only hard evidence counts there."""
    hard = {v: e for v, e in case.evidence.items() if np.ndim(e) == 0}
    clamped = replace(case, evidence=hard)
    value, counts = answer
    if clamped.oracle.impossible:
        yield Broken("impossible evidence is an error", f"log Z {value}")
        return
    room = log_tolerance(case, clamped.oracle.log_partition)
    if not abs(value - clamped.oracle.log_partition) <= room:
        yield Broken("log Z is exact", f"{value!r} for {clamped.oracle.log_partition!r}")
    elif not case.noisy and not np.abs(counts - clamped.pool_counts()).max(initial=0.0) <= 10 * room:
        yield Broken("expected counts are exact", f"{counts.tolist()} for {clamped.pool_counts().tolist()}")


def rows_of(case: Case, seed: int) -> np.ndarray:
    """Four rows of a batch: hard evidence of the case, and some more of it at random."""
    rng = np.random.default_rng(seed)
    rows = np.stack([rng.integers(0, case.cardinalities) for _ in range(4)]) if case.n_variables else np.zeros((4, 0))
    rows = np.where(rng.random(rows.shape) < 0.7, -1, rows).astype(int)
    rows[0] = -1
    return rows


def check_batch(case: Case, question: Question, answer: Any) -> Iterator[Broken]:
    """Every row of a batch is what the row alone would give."""
    rows = rows_of(case, question.keywords["seed"])
    for i, row in enumerate(rows.tolist()):
        oracle = case.oracle_given({v: s for v, s in enumerate(row) if s >= 0})
        value, truth = float(answer.log_partition[i]), oracle.log_partition
        if question.method == "belief_propagation":
            if oracle.impossible and np.isfinite(value) and getattr(answer, "guarantee", "") == "exact":
                yield Broken("an impossible row is found", f"row {i}: {value}")
            if getattr(answer, "guarantee", "") != "exact":
                continue
        if (value == -np.inf) != (truth == -np.inf) or not (
            value == truth or abs(value - truth) <= log_tolerance(case, truth)
        ):
            yield Broken("log Z of a row is exact", f"row {row}: {value!r} for {truth!r}")
            return
        for v, label in enumerate(case.labels if not oracle.impossible else ()):
            wrong = probabilities(answer[label][i], case, [v], oracle)
            if wrong:
                yield Broken("marginals of a row are exact", f"row {row}, {label!r}: {wrong}")
                return


# ---- semirings --------------------------------------------------------------------------------------------------


def check_aggregate(case: Case, question: Question, answer: Any) -> Iterator[Broken]:
    """All semirings; where nothing is possible only the count says so with a number."""
    ring, oracle = question.keywords["semiring"], case.oracle
    room = TOLERANCE + case.rounding
    name = ring if isinstance(ring, str) else ring.name
    if name == "counting":
        # Above 2^53 a float that says so is as good as the integer.
        rough = isinstance(answer, float) and oracle.count > 2**53 and abs(answer / oracle.count - 1) < 1e-9
        if not rough and not (isinstance(answer, int) and answer == oracle.count):
            yield Broken("the count is right", f"{answer!r} for {oracle.count}")
        return
    if name == "min_sum":
        truth = float(oracle.scores[oracle.allowed].min(initial=np.inf))
        if not (answer == truth or abs(answer - truth) <= room):
            yield Broken("the lowest score is right", f"{answer!r} for {truth!r}")
        return
    if oracle.impossible:
        if not (name in ("sum_product", "max_sum") and answer == -np.inf) and answer not in (0.0, ()):
            yield Broken("impossible evidence is an error", f"{answer!r}")
        return
    if name == "max_product":
        with np.errstate(over="ignore"):
            expected = float(np.exp(oracle.best_score))
        inside = 1e-300 < expected < np.inf
        near = abs(np.log(answer) - oracle.best_score) <= 10 * room if inside and answer > 0 else answer == expected
        if not near and expected > 0:
            yield Broken("the largest product is right", f"{answer!r} for exp({oracle.best_score!r})")
    elif name == "k_best":
        expected = oracle.n_best(ring.k)
        if len(answer) != len(expected) or not np.allclose(answer, expected, rtol=0, atol=room):
            yield Broken("the k best scores are right", f"{answer} for {expected}")
    elif name == "expectation":
        if case.noisy:
            return
        truth = oracle.expectation(case.from_pool(np.array(ring.values)))
        if not abs(answer - truth) <= 100 * room:
            yield Broken("an expectation is right", f"{answer!r} for {truth!r}")
    else:
        truth = getattr(oracle, {"sum_product": "log_partition", "max_sum": "best_score"}.get(name, name))
        if not abs(answer - truth) <= 10 * room + 1e-9 * abs(truth) * (abs(truth) < 1e6):
            yield Broken(f"{name} is right", f"{answer!r} for {truth!r}")
