"""The verbs for structures: read the evidence, let the family compute, dress the answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from markovfield import semirings
from markovfield._validation import generator_of, whole_number
from markovfield.arrays import FloatArray
from markovfield.exceptions import ImpossibleEvidenceError, ModelError
from markovfield.inference.core.answers import LogPartition
from markovfield.inference.core.method import Question
from markovfield.structures.core.answers import (
    StructureDecoding,
    StructureMarginals,
    StructureSamples,
    StructureSolution,
)
from markovfield.structures.core.family import Parts, Sums
from markovfield.structures.core.form import StructureForm

__all__ = ["aggregate", "decode", "log_partition", "marginals", "probability", "sample"]

LOSSES = ("parts",)


def _pool(form: StructureForm, question: Question) -> FloatArray:
    """Scores given the evidence, of a question that a form can be asked."""
    if question.init is not None:
        raise ModelError(f"{type(form).__name__} is answered for in one step, which takes no init")
    if question.method not in ("auto", form.family.name):
        raise ModelError(
            f"{type(form).__name__} is answered for by {form.family.name!r}, got method={question.method!r}: leave it "
            "'auto'"
        )
    return form.given(question.evidence)


def _impossible(form: StructureForm, question: Question) -> ImpossibleEvidenceError:
    why = "given the evidence" if question.evidence else "as its scores rule all out"
    return ImpossibleEvidenceError(f"{type(form).__name__} has no possible structure {why}")


def _exact_sums(form: StructureForm, question: Question, pool: FloatArray, counts: bool) -> tuple[Sums, dict[str, Any]]:
    """The same, for answers that are numbers and have no place to say what is promised."""
    sums, about = _sums(form, question, pool, counts)
    if sums.guarantee != "exact":
        raise ModelError(
            f"sums of this {type(form).__name__} are bounds: ask mf.log_partition or mf.marginals, whose answers say so"
        )
    return sums, about


def _sums(form: StructureForm, question: Question, pool: FloatArray, counts: bool) -> tuple[Sums, dict[str, Any]]:
    """Sums of the one instance, and the words of an answer that tell of log Z."""
    with form.work():
        sums = form.family.sums(pool, counts=counts, running=question.running)
    if np.isneginf(sums.log_partition[0]):
        raise _impossible(form, question)
    about = {
        "method": form.family.name,
        "guarantee": sums.guarantee,
        "log_partition": float(sums.log_partition[0]),
        "bounds": None if sums.bounds is None else tuple(map(float, sums.bounds[0])),
        "standard_error": None if sums.errors is None else float(sums.errors[0]),
        "seconds": question.running.seconds,
    }
    return sums, about


def log_partition(form: StructureForm, question: Question) -> LogPartition:
    """log of the sum over all structures."""
    _, about = _sums(form, question, _pool(form, question), counts=False)
    return LogPartition(**about)


def marginals(form: StructureForm, question: Question, targets: Any) -> StructureMarginals:
    """Expected numbers of all parts, log Z and the entropy."""
    if targets is not None:
        raise ModelError(f"{type(form).__name__} has no joint targets: its answer has the probability of every part")
    pool = _pool(form, question)
    sums, about = _sums(form, question, pool, counts=True)
    assert sums.counts is not None
    return StructureMarginals(values=form.shaped(sums.counts), entropy=_entropy(sums, pool), **about)


def _entropy(sums: Sums, pool: FloatArray) -> float:
    """log Z less the expected score."""
    assert sums.counts is not None
    used = (sums.counts > 0) & (pool > -np.inf)
    return max(float(sums.log_partition[0] - sums.counts[used] @ pool[used]), 0.0)


def decode(form: StructureForm, question: Question, variables: Any, loss: Any, n_best: int) -> StructureDecoding:
    """The best structures; or, with a loss, the one that has the most parts in expectation."""
    if variables is not None:
        raise ModelError(f"{type(form).__name__} is decoded as a whole: leave variables None")
    n = whole_number(n_best, "n_best", 1)
    pool = _pool(form, question)
    family, running = form.family, question.running
    expected = None
    if loss is None and n == 1:
        with form.work():
            found = [family.maxima(pool, running=running).of(0)]
    elif loss is None:
        with form.work(n):
            found = family.best(pool, n, running=running)[0]
    elif loss not in LOSSES:
        raise ModelError(f"loss of a structure is 'parts' (wrong parts are counted), got {loss!r}")
    elif n > 1:
        raise ModelError("decode(loss=...) finds one structure: leave n_best 1")
    else:
        sums, _ = _sums(form, question, pool, counts=True)
        assert sums.counts is not None
        with form.work():
            found = [family.maxima(np.where(np.isneginf(pool), -np.inf, sums.counts), running=running).of(0)]
        expected = float(len(found[0]) - sums.counts[found[0]].sum())
    if not found or not len(found[0]):
        raise _impossible(form, question)
    guarantee, gap = family.proof(pool, found[0]) if expected is None else (sums.guarantee, 0.0)
    return StructureDecoding(
        n_best=tuple(StructureSolution(form.structure(cells), float(pool[cells].sum())) for cells in found),
        expected_loss=expected,
        method=family.name,
        guarantee=guarantee,
        gap=gap,
        seconds=running.seconds,
    )


def sample(form: StructureForm, question: Question, size: int) -> StructureSamples:
    """Independent draws."""
    n = whole_number(size, "size", 0)
    pool = _pool(form, question)
    rng = generator_of(question.rng)
    with form.work(n):
        drawn = form.family.draws(pool, n, rng=rng, running=question.running) if n else Parts.joined([])
    if n and not len(drawn.of(0)):
        raise _impossible(form, question)
    counts = drawn.counts(form.family.n_cells) / max(n, 1)
    return StructureSamples(
        structures=[form.structure(drawn.of(i)) for i in range(n)],
        values=form.shaped(counts),
        method=form.family.name,
        seconds=question.running.seconds,
    )


def probability(form: StructureForm, question: Question, event: Any) -> float:
    """How probable it is that a structure has, or lacks, some parts: the ratio of two sums."""
    below, _ = _exact_sums(form, question, _pool(form, question), counts=False)
    given = {**(question.evidence or {})}
    if not isinstance(event, Mapping):
        raise ModelError(f"event must be a dict, as evidence is, got {event!r}")
    form.given(event)  # read as evidence is, and refused in the same words
    for part, fixed in event.items():
        known = given.get(part, {})
        if any(bool(known[index]) != bool(fixed[index]) for index in fixed.keys() & known.keys()):
            return 0.0
        given[part] = {**known, **fixed}
    with form.work():
        above = form.family.sums(form.given(given), running=question.running).log_partition
    return float(min(1.0, np.exp(above[0] - below.log_partition[0])))


def aggregate(form: StructureForm, ring: Any, question: Question) -> Any:
    """All structures combined in a semiring (Caetano lecture 5); ``min_sum`` is the lowest of those possible."""
    if isinstance(ring, semirings.KBest):
        return tuple(one.score for one in decode(form, question, None, None, ring.k).n_best)
    if ring in (semirings.MAX_SUM, semirings.MAX_PRODUCT):
        best = decode(form, question, None, None, 1).score
        return best if ring is semirings.MAX_SUM else float(np.exp(best))
    pool = _pool(form, question)
    if ring is semirings.SUM_PRODUCT:
        return _exact_sums(form, question, pool, counts=False)[1]["log_partition"]
    if ring is semirings.ENTROPY:
        sums, _ = _exact_sums(form, question, pool, counts=True)
        return _entropy(sums, pool)
    if ring is semirings.COUNTING:
        found = form.counted(pool, question.running)
        return round(found) if found < 2.0**52 else found
    if ring is semirings.MIN_SUM:
        with form.work():
            cells = form.family.maxima(np.where(np.isneginf(pool), -np.inf, -pool), running=question.running).of(0)
        if not len(cells):
            raise _impossible(form, question)
        return float(pool[cells].sum())
    values = np.asarray(ring.values, np.float64)
    if values.shape != pool.shape:
        raise ModelError(f"values need one number for each of {len(pool)} cells, got shape {values.shape}")
    sums, _ = _exact_sums(form, question, pool, counts=True)
    assert sums.counts is not None
    return float(sums.counts @ np.where(sums.counts > 0, values, 0.0))
