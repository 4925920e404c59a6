"""The verbs for mixed fields: read the evidence, choose the method, hand over."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from markovfield._validation import generator_of, whole_number
from markovfield.exceptions import ImpossibleEvidenceError, ModelError
from markovfield.gaussian.mixed_field import MixedField
from markovfield.inference.core.answers import LogPartition
from markovfield.inference.core.method import Question
from markovfield.inference.core.registry import resolve
from markovfield.inference.strong_junction_tree.answers import MixedDecoding, MixedMarginals, MixedSamples
from markovfield.inference.strong_junction_tree.evidence import MixedEvidence
from markovfield.inference.strong_junction_tree.potential import table
from markovfield.names import VariableName

__all__ = ["decode", "log_partition", "marginals", "probability", "sample"]


def _ask(verb: str, field: MixedField, question: Question, *words: Any, **asked: Any) -> Any:
    if question.init is not None:
        raise ModelError("mixed fields are answered for exactly, in one step, which takes no init")
    method = resolve("strong_junction_tree" if question.method == "auto" else question.method, verb, "MixedField")
    known = MixedEvidence.parse(field, question.evidence, question.noise)
    return getattr(method, verb)(field, *words, known, running=question.running, **asked)


def marginals(
    field: MixedField, question: Question, targets: Sequence[Sequence[VariableName]] | None
) -> MixedMarginals:
    """Probabilities, means and variances given the evidence, and log Z."""
    together = [field.names.positions(group) for group in targets or ()]
    answer: MixedMarginals = _ask("marginals", field, question, targets=together)
    return answer


def log_partition(field: MixedField, question: Question) -> LogPartition:
    """log of the sum over states of the integral over numbers."""
    answer: LogPartition = _ask("log_partition", field, question)
    return answer


def decode(
    field: MixedField, question: Question, variables: Sequence[VariableName] | None, loss: Any, n_best: int
) -> MixedDecoding:
    """The outcome of the highest density, or the likeliest states of some discrete variables."""
    if loss is not None or whole_number(n_best, "n_best", 1) != 1:
        raise ModelError("a mixed field is decoded to its one best outcome: decode takes neither loss nor n_best there")
    positions = None if variables is None else field.names.positions(variables)
    answer: MixedDecoding = _ask("decode", field, question, variables=positions)
    return answer


def sample(field: MixedField, question: Question, size: int) -> MixedSamples:
    """Independent draws given the evidence."""
    size = whole_number(size, "size", 0)
    answer: MixedSamples = _ask("sample", field, question, size, rng=generator_of(question.rng))
    return answer


def probability(field: MixedField, question: Question, event: Any) -> float:
    """The probability that discrete variables are in some states: the ratio of two sums."""
    if not isinstance(event, Mapping):
        raise ModelError(f"event must be a mapping from variable to state or states, got {event!r}")
    known = MixedEvidence.parse(field, question.evidence, question.noise)
    masks = []
    for name, value in event.items():
        v = field.names.position(name)
        card = int(field.cardinalities[v])
        if not card:
            raise ModelError(
                f"variable {name!r} is real-valued: its mixture in the answer of marginals has `cumulative`"
            )
        several = value if isinstance(value, list | tuple | set | frozenset | np.ndarray | range) else [value]
        allowed = [field.names.state(v, x, card) for x in several]
        mask = np.full((1, card), -np.inf)
        mask[0, allowed] = 0.0
        if v in known.states:
            if np.isneginf(mask[0, known.states[v][0]]):
                return 0.0
            continue
        masks.append(table((v,), mask))
    method = resolve(
        "strong_junction_tree" if question.method == "auto" else question.method, "marginals", "MixedField"
    )
    below = method.log_partition(field, known, running=question.running)
    asked = MixedEvidence(known.states, known.numbers, (*known.factors, *masks))
    try:
        above = method.log_partition(field, asked, running=question.running)
    except ImpossibleEvidenceError:
        return 0.0
    return float(min(1.0, np.exp(float(above) - float(below))))
