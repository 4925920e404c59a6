"""Scores of labelled sequences: chunks as the CoNLL shared tasks score them, and single tokens."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any, ClassVar

import numpy as np

from markovfield.arrays import IntArray
from markovfield.exceptions import ModelError
from markovfield.frames import OneRow, Tabular
from markovfield.sequence.text.labels import LabelEncoder, chunk_borders, split_label

__all__ = ["EntityReport", "Score", "TokenReport", "entity_f1_scorer", "entity_report", "token_report"]


@dataclass(frozen=True)
class Score(OneRow):
    """How many there are, how many were found, how many of these are right."""

    n_true: int
    n_found: int
    n_correct: int

    _row: ClassVar[tuple[str, ...]] = ("n_true", "n_found", "n_correct", "precision", "recall", "f1")

    @property
    def precision(self) -> float:
        """The share of those found that are right; zero where none was found."""
        return self.n_correct / self.n_found if self.n_found else 0.0

    @property
    def recall(self) -> float:
        """The share of those there are that were found; zero where there are none."""
        return self.n_correct / self.n_true if self.n_true else 0.0

    @property
    def f1(self) -> float:
        """The harmonic mean of precision and recall; zero where both are."""
        both = self.precision + self.recall
        return 2 * self.precision * self.recall / both if both else 0.0

    def _shown(self) -> str:
        # From percentages, in the order of the reference scorer's own operations, so that even rounding is the same.
        precision = 100 * self.n_correct / self.n_found if self.n_found else 0.0
        recall = 100 * self.n_correct / self.n_true if self.n_true else 0.0
        f1 = 2 * precision * recall / (precision + recall) if precision + recall else 0.0
        return f"precision: {precision:6.2f}%; recall: {recall:6.2f}%; FB1: {f1:6.2f}"


def _rows(name: str, scores: Mapping[Any, Score], limit: int | None) -> dict[Any, Any]:
    """A row of figures for each of several scores."""
    shown = dict(islice(scores.items(), limit))
    return {name: list(shown)} | {what: [getattr(s, what) for s in shown.values()] for what in Score._row}


@dataclass(frozen=True, repr=False)
class EntityReport(Score):
    """Scores of chunks over all types, and of each type.

    ``str(report)`` is what the CoNLL shared tasks' scorer prints.

    Attributes
    ----------
    n_tokens, n_correct_tokens
        How many tokens there are, and how many have the right label.
    by_type
        Type of chunk to its `Score`, in sorted order.
    """

    n_tokens: int
    n_correct_tokens: int
    by_type: Mapping[str, Score]

    def _columns(self, limit: int | None = None) -> dict[Any, Any]:
        return _rows("type", {"all": self, **self.by_type}, limit)

    def __repr__(self) -> str:
        return f"EntityReport: {self._shown()}, {len(self.by_type)} types, {self.n_tokens} tokens"

    @property
    def accuracy(self) -> float:
        """The share of tokens with the right label; zero where there are none."""
        return self.n_correct_tokens / self.n_tokens if self.n_tokens else 0.0

    def __str__(self) -> str:
        lines = [
            f"processed {self.n_tokens} tokens with {self.n_true} phrases; "
            f"found: {self.n_found} phrases; correct: {self.n_correct}."
        ]
        if self.n_tokens:
            lines.append(f"accuracy: {100 * self.n_correct_tokens / self.n_tokens:6.2f}%; {self._shown()}")
        lines += [f"{name:>17}: {score._shown()}  {score.n_found}" for name, score in self.by_type.items()]
        return "\n".join(lines)


@dataclass(frozen=True, repr=False)
class TokenReport(Tabular):
    """Scores of single tokens.

    Attributes
    ----------
    n_tokens, n_correct
        How many tokens there are, and how many have the right label.
    by_label
        Label to its `Score`, in sorted order.
    """

    n_tokens: int
    n_correct: int
    by_label: Mapping[Any, Score]

    def _columns(self, limit: int | None = None) -> dict[Any, Any]:
        return _rows("label", self.by_label, limit)

    def __repr__(self) -> str:
        return f"TokenReport: accuracy {self.accuracy:.4f}, macro F1 {self.macro_f1:.4f}, {self.n_tokens} tokens"

    @property
    def accuracy(self) -> float:
        """The share of tokens with the right label; zero where there are none."""
        return self.n_correct / self.n_tokens if self.n_tokens else 0.0

    @property
    def macro_f1(self) -> float:
        """The mean of the labels' F1, each label counting alike; zero where there are none."""
        return sum(score.f1 for score in self.by_label.values()) / len(self.by_label) if self.by_label else 0.0

    def __str__(self) -> str:
        width = max([5, *(len(str(label)) for label in self.by_label)])
        lines = [f"{'label':>{width}}  precision  recall      F1   tokens"]
        lines += [
            f"{label!s:>{width}}  {score.precision:9.4f}  {score.recall:6.4f}  {score.f1:6.4f}  {score.n_true:7d}"
            for label, score in self.by_label.items()
        ]
        lines.append(f"accuracy {self.accuracy:.4f}, macro F1 {self.macro_f1:.4f}, {self.n_tokens} tokens")
        return "\n".join(lines)


def entity_report(
    true: Iterable[Iterable[str]], predicted: Iterable[Iterable[str]], *, raw: bool = False
) -> EntityReport:
    """Precision, recall and F1 of chunks, equal to those of the CoNLL shared tasks' scorer (conlleval).

    A chunk is right when its type, its first and its last token are. Labels may be in IOB1, IOB2, IOE1, IOE2 or IOBES,
    also where they break the scheme's rules: see `chunk_borders`.

    Parameters
    ----------
    true, predicted
        A list of labels for each sequence.
    raw
        Whether labels are bare types, each token other than ``O`` being a chunk of its own.

    Returns
    -------
    EntityReport
        Time and memory are linear in the tokens.

    Examples
    --------
    >>> print(entity_report([["B-PER", "I-PER", "O", "B-LOC"]], [["B-PER", "I-PER", "O", "B-ORG"]]))
    processed 4 tokens with 2 phrases; found: 2 phrases; correct: 1.
    accuracy:  75.00%; precision:  50.00%; recall:  50.00%; FB1:  50.00
                  LOC: precision:   0.00%; recall:   0.00%; FB1:   0.00  0
                  ORG: precision:   0.00%; recall:   0.00%; FB1:   0.00  1
                  PER: precision: 100.00%; recall: 100.00%; FB1: 100.00  1
    """
    labels, numbers, guesses, lengths = _aligned(true, predicted)
    strange = next((label for label in labels if not isinstance(label, str)), None)
    if strange is not None:
        raise ModelError(f"entity_report: labels must be str, got {strange!r} of type {type(strange).__name__}")
    if raw:
        labels = [label if label == "O" else f"B-{label}" for label in labels]
    types = sorted({split_label(label)[1] for label in labels})
    type_of = np.array([types.index(split_label(label)[1]) for label in labels] or [0], np.int64)
    borders = _Borders([*labels, "O"], lengths)
    start, end = borders.chunks(numbers)
    found_start, found_end = borders.chunks(guesses)
    kind, found_kind = type_of[numbers[start]], type_of[guesses[found_start]]
    # Where a chunk starts, its end and type; nothing starts at tokens that keep -1.
    at = np.full((2, len(numbers)), -1, np.int64)
    at[0, start], at[1, start] = end, kind
    right = (at[0, found_start] == found_end) & (at[1, found_start] == found_kind)
    size = len(types)
    tallies = [np.bincount(k, minlength=size).tolist() for k in (kind, found_kind, found_kind[right])]
    scores = {name: Score(*counts) for name, *counts in zip(types, *tallies, strict=True)}
    by_type = {name: score for name, score in scores.items() if score.n_true or score.n_found}
    return EntityReport(
        len(start), len(found_start), int(right.sum()), len(numbers), int((numbers == guesses).sum()), by_type
    )


def entity_f1_scorer(estimator: Any, X: Any, y: Iterable[Iterable[str]]) -> float:
    """F1 of the chunks that a fitted tagger finds: a scorer for ``GridSearchCV`` and ``cross_val_score``.

    Examples
    --------
    >>> from sklearn.model_selection import GridSearchCV
    >>> from markovfield.sequence import ChainCRF
    >>> X, y = [[["Ann"], ["ran"]], [["Bob"], ["sat"]]] * 4, [["B-PER", "O"]] * 8
    >>> search = GridSearchCV(ChainCRF(), {"l2": [0.1, 100.0]}, scoring=entity_f1_scorer, cv=2).fit(X, y)
    >>> search.best_params_, float(search.best_score_)
    ({'l2': 0.1}, 1.0)
    """
    return entity_report(y, estimator.predict(X)).f1


def token_report(true: Iterable[Iterable[Any]], predicted: Iterable[Iterable[Any]]) -> TokenReport:
    """Accuracy over tokens, and precision, recall and F1 of each label.

    Examples
    --------
    >>> print(token_report([["N", "V", "N"]], [["N", "V", "V"]]))
    label  precision  recall      F1   tokens
        N     1.0000  0.5000  0.6667        2
        V     0.5000  1.0000  0.6667        1
    accuracy 0.6667, macro F1 0.6667, 3 tokens
    """
    labels, numbers, guesses, _ = _aligned(true, predicted)
    right = numbers == guesses
    tallies = [np.bincount(k, minlength=len(labels)).tolist() for k in (numbers, guesses, numbers[right])]
    by_label = {label: Score(*counts) for label, *counts in zip(labels, *tallies, strict=True)}
    return TokenReport(len(numbers), int(right.sum()), by_label)


def _aligned(
    true: Iterable[Iterable[Any]], predicted: Iterable[Iterable[Any]]
) -> tuple[list[Any], IntArray, IntArray, list[int]]:
    """All labels in sorted order, both sides as numbers of them, and the lengths of the sequences."""
    sides = [
        [list(sequence) if not isinstance(sequence, str) else sequence for sequence in y] for y in (true, predicted)
    ]
    lengths = [len(sequence) for sequence in sides[0]]
    if len(sides[0]) != len(sides[1]):
        raise ModelError(f"there are {len(sides[0])} sequences of true labels and {len(sides[1])} of predicted ones")
    for s, (a, b) in enumerate(zip(*sides, strict=True)):
        if len(a) != len(b):
            raise ModelError(f"sequence {s} has {len(a)} true labels and {len(b)} predicted ones")
    encoder = LabelEncoder().fit(chain(*sides))
    numbers, guesses = (encoder.transform(y).astype(np.int64) for y in sides)
    return encoder.classes_, numbers, guesses, lengths


class _Borders:
    """Where chunks start and end, by a table over pairs of labels; the last label stands outside of all sequences."""

    def __init__(self, labels: list[str], lengths: list[int]) -> None:
        pairs = np.array([[chunk_borders(a, b) for b in labels] for a in labels], np.bool_)
        self.ends, self.starts = pairs[:, :, 0], pairs[:, :, 1]
        self.outside = len(labels) - 1
        after = np.cumsum(lengths, dtype=np.int64)
        # Each sequence gets one more token, outside, so that a chunk ends with its sequence.
        self.n_slots = int(after[-1]) + len(lengths) if len(lengths) else 0
        self.slots = np.delete(np.arange(self.n_slots), after + np.arange(len(lengths)))

    def chunks(self, numbers: IntArray) -> tuple[IntArray, IntArray]:
        """First token of each chunk, and the token after its last (of a sequence's own tokens, plus one slot)."""
        padded = np.full(self.n_slots + 1, self.outside)
        padded[self.slots + 1] = numbers
        before, after = padded[:-1], padded[1:]
        starts = np.flatnonzero(self.starts[before, after])
        ends = np.append(np.flatnonzero(self.ends[before, after]), self.n_slots)
        # The next end after each start: labels of no scheme may end what never started.
        ends = ends[np.searchsorted(ends, starts, side="right")]
        tokens = np.cumsum(np.bincount(self.slots, minlength=self.n_slots)) - 1 if self.n_slots else starts
        return tokens[starts], tokens[ends - 1] + 1
