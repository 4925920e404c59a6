"""What every sequence model answers, under the same names and in the same shapes: labels, probabilities, draws."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Iterable, Sequence
from difflib import get_close_matches
from typing import Any, Protocol, TypedDict, Unpack

import numpy as np
import numpy.typing as npt

from markovfield._validation import generator_of
from markovfield.arrays import FloatArray, IntArray
from markovfield.exceptions import ImpossibleEvidenceError, ModelError
from markovfield.sequence.text.labels import LabelEncoder

__all__ = ["Allowed", "Asked", "Fixed", "Known", "Listed", "SequenceQueries", "label_masks"]

Fixed = Iterable[Sequence[Any] | None] | None
Allowed = Iterable[Sequence[Collection[Any] | None] | npt.NDArray[np.bool_] | None] | None
Masks = npt.NDArray[np.uint8]


class Known(TypedDict, total=False):
    """Keywords of most questions; see `SequenceQueries`."""

    edges: Iterable[Any] | None
    fixed: Fixed
    allowed: Allowed


class Listed(list[Any]):
    """A list that NumPy takes for a vector of whatever it holds: what scikit-learn's ``cross_val_predict`` joins."""

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> npt.NDArray[Any]:
        vector = np.empty(len(self), object)
        for i, item in enumerate(self):
            vector[i] = item
        return vector


class Asked(Protocol):
    """Sequences as some model sees them, with all that it can say of them; labels are numbers."""

    @property
    def offsets(self) -> IntArray:
        """``int64[n_sequences + 1]``."""

    def decode(self) -> tuple[npt.NDArray[np.int32], FloatArray]:
        """The best label of every token, and the score of each sequence; -inf where none is possible."""

    def posteriors(self) -> FloatArray:
        """``float64[n_tokens, n_labels]``."""

    def log_partitions(self) -> FloatArray:
        """log Z of each sequence."""

    def entropies(self) -> FloatArray:
        """Entropy of each sequence's labels, in nats."""

    def n_best(self, s: int, n: int) -> list[tuple[npt.NDArray[np.int32], float]]:
        """The best labellings of a sequence and their scores."""

    def sample(self, size: int, rng: np.random.Generator) -> list[npt.NDArray[np.int32]]:
        """For each sequence, ``int32[size, length]`` labels drawn from the posterior."""


class SequenceQueries:
    """Questions that take sequences and what is known of their labels.

    Three keywords are common to them. ``edges`` are attributes of steps, where the model was fitted with them.
    ``fixed`` gives labels that are known, None where they are not. ``allowed`` gives for each token the labels that it
    may have, None where it may have all; for a sequence it may also be ``bool[length, n_labels]``, in the order of
    ``classes_``, or None. Answers are those of the model given all that.
    """

    classes_: list[Any]
    hidden_states_: int = 1
    _encoder: LabelEncoder
    # What is wrong with a sequence that has no possible labels.
    _impossible = "has no labels that its constraints allow"

    @abstractmethod
    def _ask(
        self, X: Iterable[Any], *, edges: Iterable[Any] | None = None, fixed: Fixed = None, allowed: Allowed = None
    ) -> Asked: ...

    def _asked(self, X: Iterable[Any], known: Known) -> Asked:
        """The same, after a look at the keywords: one that is mistyped is told by its name."""
        strange = next((name for name in known if name not in Known.__annotations__), None)
        if strange is not None:
            words = list(Known.__annotations__)
            close = get_close_matches(strange, words, n=1)
            hint = f"; did you mean {close[0]!r}?" if close else ""
            raise TypeError(f"there is no keyword {strange!r}: the keywords are {', '.join(words)}{hint}")
        return self._ask(X, **known)

    def _names(self) -> npt.NDArray[Any]:
        """The label of each state, by number."""
        names = np.empty(len(self.classes_) * self.hidden_states_, object)
        for k in range(len(names)):
            names[k] = self.classes_[k // self.hidden_states_]
        return names

    def predict(self, X: Iterable[Any], **known: Unpack[Known]) -> list[list[Any]]:
        """The best labels of each sequence together (Viterbi).

        Keywords are ``edges``, ``fixed`` and ``allowed``. With hidden states, these are the labels of the best states;
        `predict_mpm` sums over states.
        """
        return self._decoded(self._asked(X, known))

    def _decoded(self, asked: Asked) -> list[list[Any]]:
        paths, scores = asked.decode()
        bad = np.flatnonzero(np.isneginf(scores))
        if len(bad):
            raise ImpossibleEvidenceError(f"sequence {bad[0]} {self._impossible}")
        return Listed(self._encoder.inverse_transform(paths // self.hidden_states_, asked.offsets))

    def predict_single(self, x: Any) -> list[Any]:
        """The best labels of one sequence."""
        return self.predict([x])[0]

    def predict_n_best(
        self, X: Iterable[Any], n: int = 5, **known: Unpack[Known]
    ) -> list[list[tuple[list[Any], float]]]:
        """For each sequence its ``n`` best label sequences, each with its probability.

        Keywords are ``edges``, ``fixed`` and ``allowed``. With hidden states they are the best sequences of states, so
        that labels may come twice.
        """
        if isinstance(n, bool) or not isinstance(n, (int, np.integer)) or n < 1:
            raise ModelError(f"n must be an integer from 1 on, got {n!r}")
        asked = self._asked(X, known)
        totals, names = asked.log_partitions(), self._names()
        return [
            [(names[path].tolist(), float(np.exp(score - total))) for path, score in asked.n_best(s, int(n))]
            for s, total in enumerate(totals.tolist())
        ]

    def predict_marginals(self, X: Iterable[Any], **known: Unpack[Known]) -> list[list[dict[Any, float]]]:
        """Posterior probabilities of each token's labels, as dicts; `predict_proba` gives them as arrays."""
        return Listed(
            [dict(zip(self.classes_, row, strict=True)) for row in table.tolist()]
            for table in self.predict_proba(X, **known)
        )

    def predict_marginals_single(self, x: Any) -> list[dict[Any, float]]:
        """The same for one sequence."""
        return self.predict_marginals([x])[0]

    def predict_proba(self, X: Iterable[Any], **known: Unpack[Known]) -> list[FloatArray]:
        """For each sequence ``float64[length, n_labels]``, labels in the order of ``classes_``.

        Keywords are ``edges``, ``fixed`` and ``allowed``. NumPy takes the answer for a vector of tables, so that those
        of several folds can be joined. scikit-learn's ``cross_val_predict`` refuses labels of sequences before it comes
        to any ``predict_proba``: loop over the folds of ``KFold`` instead.
        """
        asked = self._asked(X, known)
        tables = asked.posteriors()
        by_label = tables.reshape(len(tables), len(self.classes_), self.hidden_states_).sum(axis=2)
        return Listed(np.split(by_label, asked.offsets[1:-1])[: len(asked.offsets) - 1])

    def predict_mpm(self, X: Iterable[Any], **known: Unpack[Known]) -> list[list[Any]]:
        """The likeliest label of each token on its own (maximiser of posterior marginals)."""
        return Listed([self.classes_[k] for k in table.argmax(axis=1)] for table in self.predict_proba(X, **known))

    def sample_posterior(
        self, X: Iterable[Any], size: int, rng: int | np.random.Generator | None = None, **known: Unpack[Known]
    ) -> list[list[list[Any]]]:
        """For each sequence ``size`` label sequences drawn given what is seen."""
        if isinstance(size, bool) or not isinstance(size, (int, np.integer)) or size < 0:
            raise ModelError(f"size must be an integer from 0 on, got {size!r}")
        drawn = self._asked(X, known).sample(int(size), generator_of(rng))
        names = self._names()
        return [names[paths].tolist() for paths in drawn]

    def entropy(self, X: Iterable[Any], **known: Unpack[Known]) -> FloatArray:
        """Entropy of each sequence's labels, in nats: where it is high, a human should look.

        With hidden states it is the entropy of the states.
        """
        return self._asked(X, known).entropies()

    def expected_loss(self, X: Iterable[Any], **known: Unpack[Known]) -> FloatArray:
        """How many labels of `predict_mpm` are expected to be wrong in each sequence, by the model's own account."""
        tables = self.predict_proba(X, **known)
        return np.array([float(len(table) - table.max(axis=1, initial=0.0).sum()) for table in tables])

    def score(
        self,
        X: Iterable[Any],
        y: Iterable[Sequence[Any]],
        sample_weight: npt.ArrayLike | None = None,
        **known: Unpack[Known],
    ) -> float:
        """The share of tokens whose predicted label is right."""
        true, found = list(y), self.predict(X, **known)
        if list(map(len, true)) != list(map(len, found)):
            raise ModelError("score: X and y have sequences of different lengths")
        weights = np.ones(len(true)) if sample_weight is None else np.asarray(sample_weight, np.float64)
        if weights.shape != (len(true),):
            raise ModelError(f"score: sample_weight needs a number for each of {len(true)} sequences")
        right = np.array([sum(a == b for a, b in zip(p, q, strict=True)) for p, q in zip(true, found, strict=True)])
        total = float(weights @ np.array([len(p) for p in true]))
        if not total:
            raise ModelError("score: there are no tokens to score")
        return float(weights @ right) / total


def label_masks(encoder: LabelEncoder, lengths: IntArray, fixed: Fixed, allowed: Allowed) -> Masks:
    """Which labels are left, ``uint8[n_tokens, n_labels]``."""
    n_labels = len(encoder.classes_)
    masks = np.ones((int(lengths.sum()), n_labels), np.uint8)
    if fixed is not None:
        known = encoder.transform(filled(fixed, lengths), lengths=lengths, missing=True)
        at = np.flatnonzero(known >= 0)
        masks[at] &= (known[at, None] == np.arange(n_labels)).astype(np.uint8)
    if allowed is not None:
        tables = filled(allowed, lengths)
        for s, (table, end) in enumerate(zip(tables, np.cumsum(lengths).tolist(), strict=True)):
            masks[end - int(lengths[s]) : end] &= _allowed(encoder, s, int(lengths[s]), table)
    return masks


def filled(entries: Iterable[Any], lengths: IntArray) -> list[Any]:
    """An entry for each token of each sequence, None throughout where a sequence has none."""
    listed = list(entries)
    if len(listed) != len(lengths):
        raise ModelError(f"{len(lengths)} sequences need as many lists of labels, got {len(listed)}")
    return [[None] * n if own is None else own for own, n in zip(listed, lengths.tolist(), strict=True)]


def _allowed(encoder: LabelEncoder, s: int, length: int, table: Any) -> Masks:
    """The labels that one sequence may have."""
    n_labels = len(encoder.classes_)
    if isinstance(table, np.ndarray) and table.dtype == np.bool_:
        if table.shape != (length, n_labels):
            raise ModelError(f"allowed: sequence {s} needs an array of shape {(length, n_labels)}, got {table.shape}")
        return table.astype(np.uint8)
    if len(table) != length:
        raise ModelError(f"allowed: sequence {s} has {length} tokens and {len(table)} entries")
    numbers = {label: k for k, label in enumerate(encoder.classes_)}
    masks = np.zeros((length, n_labels), np.uint8)
    for t, labels in enumerate(table):
        if labels is None:
            masks[t] = 1
            continue
        if isinstance(labels, (str, bytes)) or not isinstance(labels, Collection):
            raise ModelError(f"allowed: token {t} of sequence {s} needs a set of labels or None, got {labels!r}")
        unknown = [label for label in labels if label not in numbers]
        if unknown:
            raise ModelError(f"allowed: token {t} of sequence {s} names the label {unknown[0]!r}, which is not known")
        masks[t, [numbers[label] for label in labels]] = 1
    return masks
