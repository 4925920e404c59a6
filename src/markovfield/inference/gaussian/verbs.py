"""The verbs for Gaussian fields: read the evidence, choose the method, hand over."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from markovfield._validation import generator_of, whole_number
from markovfield.exceptions import ModelError
from markovfield.gaussian.gaussian_field import GaussianField
from markovfield.inference.core.answers import LogPartition
from markovfield.inference.core.method import Question
from markovfield.inference.core.registry import resolve
from markovfield.inference.gaussian.answers import GaussianDecoding, GaussianMarginals, GaussianSamples
from markovfield.inference.gaussian.evidence import GaussianEvidence
from markovfield.names import VariableName

__all__ = ["decode", "log_partition", "marginals", "sample"]


def _ask(verb: str, field: GaussianField, question: Question, *words: Any, **asked: Any) -> Any:
    """The answer of the method that was named."""
    if question.init is not None:
        raise ModelError("Gaussian fields are answered for exactly, in one step, which takes no init")
    method = resolve("sparse_cholesky" if question.method == "auto" else question.method, verb, "GaussianField")
    known = GaussianEvidence.parse(field, question.evidence, question.noise)
    return getattr(method, verb)(field, *words, known, running=question.running, **asked)


def marginals(
    field: GaussianField, question: Question, targets: Sequence[Sequence[VariableName]] | None
) -> GaussianMarginals:
    """Means and variances given the evidence, and log Z; any joint distribution can be asked of the answer."""
    for group in targets or ():
        field.names.positions(group)
    answer: GaussianMarginals = _ask("marginals", field, question)
    return answer


def log_partition(field: GaussianField, question: Question) -> LogPartition:
    """log of the integral over what was not observed."""
    answer: LogPartition = _ask("log_partition", field, question)
    return answer


def decode(
    field: GaussianField, question: Question, variables: Sequence[VariableName] | None, loss: Any, n_best: int
) -> GaussianDecoding:
    """The mode."""
    if loss is not None or whole_number(n_best, "n_best", 1) != 1:
        raise ModelError("a Gaussian field has one mode: decode takes neither loss nor n_best there")
    positions = None if variables is None else field.names.positions(variables)
    answer: GaussianDecoding = _ask("decode", field, question, variables=positions)
    return answer


def sample(field: GaussianField, question: Question, size: int) -> GaussianSamples:
    """Independent draws given the evidence."""
    size = whole_number(size, "size", 0)
    answer: GaussianSamples = _ask("sample", field, question, size, rng=generator_of(question.rng))
    return answer
