"""Training where tokens weigh differently.

The probability of labels is that of the first, times that of each label given the one before it and the whole input.
Weights of tokens multiply the logs of these: minimised is the sum of ``-w_t log p(y_t | y_{t-1}, x)``. Where all tokens
of a sequence weigh the same, that is its weight times ``-log p(y | x)``, as ever.

With the sum ``b_t`` of all that may follow label ``y_t``, a conditional probability is the score of the step to token t
and its label, times ``b_t``, over ``b_{t-1}``. So only where a weight differs from the one before does a log of ``b``
remain, and that is log Z of the sequence from there on with its first label known. The objective is one of linear
chains of the usual kind, of more of them; some of their weights are negative, so that it need not be convex.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from markovfield.arrays import FloatArray, offsets_of
from markovfield.exceptions import ModelError
from markovfield.sequence.text.sequences import SequenceData, gather_ranges

__all__ = ["Weighted", "weights_of"]


class Weighted:
    """Sequences and the ends of them whose log Z make up the weighted objective.

    Attributes
    ----------
    states, steps
        ``float64[n_tokens]``: what the features of a token's label count, and those of the step to it.
    weights
        Of all sequences, then of all ends.
    """

    def __init__(self, weights: FloatArray, data: SequenceData, labels: npt.NDArray[np.int32]) -> None:
        firsts, ends = data.sequence_offsets[:-1], data.sequence_offsets[1:]
        some = data.lengths > 0
        last = np.zeros(data.n_tokens, np.bool_)
        last[ends[some] - 1] = True
        following = np.append(weights[1:], 0.0)
        self.states, self.steps = np.where(last, weights, following), weights
        self.starts = np.flatnonzero(~last & (following != weights))
        owner = np.searchsorted(data.sequence_offsets, self.starts, side="right") - 1
        self.lengths = ends[owner] - self.starts
        own = np.zeros(data.n_sequences)
        own[some] = weights[firsts[some]]
        self.weights = np.concatenate([own, (following - weights)[self.starts]])
        self.labels = labels

    def extended(self, data: SequenceData) -> SequenceData:
        """Sequences, and then their ends."""
        tokens = np.concatenate([np.arange(data.n_tokens), gather_ranges(self.starts, self.lengths)])
        counts = np.diff(data.token_offsets)[tokens]
        references = gather_ranges(data.token_offsets[tokens], counts)
        return SequenceData(
            offsets_of(np.concatenate([data.lengths, self.lengths])),
            offsets_of(counts),
            data.attributes[references],
            None if data.values is None else data.values[references],
            data.n_attributes,
        )

    def masks(self, data: SequenceData, n_labels: int) -> npt.NDArray[np.uint8]:
        """Every label, but only the true one at the first token of an end; flat."""
        masks = np.ones((data.n_tokens + int(self.lengths.sum()), n_labels), np.uint8)
        at = data.n_tokens + np.cumsum(self.lengths) - self.lengths
        masks[at] = self.labels[self.starts][:, None] == np.arange(n_labels)
        return masks.ravel()


def weights_of(
    class_weight: Mapping[Any, float] | str | None,
    sample_weight: Any,
    labels: npt.NDArray[np.int32],
    data: SequenceData,
    classes: list[Any],
    *,
    apart: bool,
) -> tuple[FloatArray | None, Weighted | None]:
    """What sequences weigh, and their ends where tokens differ; None where all weigh one.

    Where tokens cannot be told ``apart``, a sequence weighs the mean of its tokens, unless weights of single tokens are
    given.
    """
    if class_weight is None and sample_weight is None:
        return None, None
    given, nested = None, False
    if sample_weight is not None:
        given, nested = _sampled(sample_weight, data)
    weights = _by_label(class_weight, labels, classes) * (1.0 if given is None else given)
    found = Weighted(weights, data, labels)
    if apart and len(found.starts):
        return found.weights, found
    if nested and len(found.starts):
        raise ModelError(
            "sample_weight of single tokens needs a batch solver, order=1, no hidden states and every label; give one "
            "number for each sequence"
        )
    owner = np.repeat(np.arange(data.n_sequences), data.lengths)
    return np.bincount(owner, weights, data.n_sequences) / np.maximum(data.lengths, 1), None


def _by_label(
    class_weight: Mapping[Any, float] | str | None, labels: npt.NDArray[np.int32], classes: list[Any]
) -> FloatArray:
    """What each token weighs by its label; one where that is not known."""
    if class_weight is None:
        return np.ones(len(labels))
    if isinstance(class_weight, str) and class_weight == "balanced":
        seen = np.bincount(labels[labels >= 0], minlength=len(classes))
        by_label = seen.sum() / (len(classes) * np.maximum(seen, 1))
    elif isinstance(class_weight, Mapping):
        unknown = [name for name in class_weight if name not in classes]
        if unknown:
            raise ModelError(f"class_weight names the label {unknown[0]!r}, which is not in y")
        by_label = np.array([float(class_weight.get(name, 1.0)) for name in classes])
        if not (np.isfinite(by_label) & (by_label >= 0)).all():
            raise ModelError("class_weight needs finite numbers from 0 on")
    else:
        raise ModelError(f"class_weight must be a dict, 'balanced' or None, got {class_weight!r}")
    return np.append(by_label, 1.0)[labels]


def _sampled(sample_weight: Any, data: SequenceData) -> tuple[FloatArray, bool]:
    """Weights of tokens from those of sequences or from a list for each sequence, and whether it was the latter."""
    weights: npt.NDArray[np.float64] = np.full(1, np.nan)
    nested = False
    try:
        listed = list(sample_weight)
        nested = any(np.ndim(entry) for entry in listed)
        if not nested:
            weights = np.asarray(listed, np.float64)
        elif [len(entry) for entry in listed] == data.lengths.tolist():
            weights = np.array([float(w) for entry in listed for w in entry])
    except (TypeError, ValueError):
        pass
    fine = weights.shape == (data.n_tokens if nested else data.n_sequences,)
    if not fine or not (np.isfinite(weights) & (weights >= 0)).all():
        raise ModelError(
            f"sample_weight needs a finite number from 0 on for each of {data.n_sequences} sequences, or a list "
            "of them for the tokens of each"
        )
    return (weights if nested else np.repeat(weights, data.lengths)), nested
