"""The verbs for Gaussian fields: read the evidence, choose the method, hand over."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from markovfield._validation import generator_of, whole_number
from markovfield.exceptions import MemoryLimitError, ModelError
from markovfield.gaussian.constrained_field import ConstrainedField
from markovfield.gaussian.gaussian_field import GaussianField
from markovfield.inference.core.answers import LogPartition
from markovfield.inference.core.method import MethodLike, Question
from markovfield.inference.core.registry import resolve
from markovfield.inference.gaussian.answers import GaussianDecoding, GaussianMarginals, GaussianSamples
from markovfield.inference.gaussian.evidence import GaussianEvidence
from markovfield.inference.gaussian.toeplitz_fft import is_stationary
from markovfield.names import VariableName

__all__ = ["candidates", "decode", "log_partition", "marginals", "sample"]

FORM = "GaussianField"
# From here on a Fourier transform is quicker than a factorisation.
MANY = 1000


def candidates(method: MethodLike, verb: str, field: GaussianField, known: GaussianEvidence) -> list[Any]:
    """The methods to try in turn: the one that was named, or those of ``"auto"``.

    It transforms large stationary fields, factors whatever fits the memory limit, and iterates where that is refused.
    """
    if method != "auto":
        return [resolve(method, verb, FORM)]
    if field.n_variables >= MANY and is_stationary(field, known):
        return [resolve("toeplitz_fft", verb, FORM)]
    return [resolve("sparse_cholesky", verb, FORM), resolve("conjugate_gradient", verb, FORM)]


def _ask(verb: str, field: GaussianField, question: Question, *words: Any, **asked: Any) -> Any:
    """The answer of the method that was named, or of the first of ``"auto"``'s that does not refuse for memory."""
    known = GaussianEvidence.parse(field, question.evidence, question.noise)
    methods = candidates(question.method, verb, field, known)
    if question.init is not None:
        raise ModelError(f"method {methods[0].name!r} does not go on from an earlier answer and takes no init")
    refused: MemoryLimitError | None = None
    for method in methods:
        extra = dict(asked)
        if "rng" in method.abilities or verb == "sample":
            extra["rng"] = generator_of(question.rng)
        if refused is not None and not _iterates(field, known):
            raise refused
        try:
            return getattr(method, verb)(field, *words, known, running=question.running, **extra)
        except MemoryLimitError as error:
            if method is methods[-1]:
                raise
            refused = error
    raise AssertionError("auto has methods")


def _iterates(field: GaussianField, known: GaussianEvidence) -> bool:
    """Whether what is left can be iterated on: without constraints and open directions."""
    rest = known.condition(field)[1]
    return not isinstance(rest, ConstrainedField) or rest.plain


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
    answer: GaussianSamples = _ask("sample", field, question, size)
    return answer
