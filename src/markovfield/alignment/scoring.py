"""Scores of links against gold links: the alignment error rate (Och and Ney 2003)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from markovfield.alignment.links import gold_links
from markovfield.exceptions import ModelError
from markovfield.frames import OneRow

__all__ = ["AlignmentReport", "alignment_error_rate", "alignment_report"]


@dataclass(frozen=True, repr=False)
class AlignmentReport(OneRow):
    """Counts of links over all pairs together, and what follows from them.

    Attributes
    ----------
    n_pairs
        Sentence pairs.
    n_found, n_sure, n_possible
        Links that were found; gold links that are sure; gold links that are possible, the sure ones included.
    n_correct_sure, n_correct
        Links found that are sure, and that are possible.
    """

    n_pairs: int
    n_found: int
    n_sure: int
    n_possible: int
    n_correct_sure: int
    n_correct: int

    _row = (
        "n_pairs", "n_found", "n_sure", "n_possible", "n_correct_sure", "n_correct",
        "precision", "recall", "error_rate",
    )  # fmt: skip

    @property
    def precision(self) -> float:
        """The share of links found that are possible; 1 where none was found."""
        return self.n_correct / self.n_found if self.n_found else 1.0

    @property
    def recall(self) -> float:
        """The share of sure links that were found; 1 where there are none."""
        return self.n_correct_sure / self.n_sure if self.n_sure else 1.0

    @property
    def error_rate(self) -> float:
        """``1 - (|A and S| + |A and P|) / (|A| + |S|)`` with links A, sure ones S, and possible ones P that hold S."""
        asked = self.n_found + self.n_sure
        return 1.0 - (self.n_correct_sure + self.n_correct) / asked if asked else 0.0

    def to_dict(self) -> dict[str, Any]:
        """All numbers as plain values."""
        return {name: getattr(self, name) for name in self._row}

    def __repr__(self) -> str:
        return f"AlignmentReport: {self}"

    def __str__(self) -> str:
        return (
            f"AER {100 * self.error_rate:.2f} %, precision {100 * self.precision:.2f} %, recall "
            f"{100 * self.recall:.2f} % ({self.n_found} links found, {self.n_sure} sure, {self.n_possible} possible, "
            f"{self.n_pairs} pairs)"
        )


def alignment_report(gold: Sequence[Any], found: Sequence[Iterable[tuple[int, int]]]) -> AlignmentReport:
    """Links against gold links; counts are pooled over pairs, not averaged.

    Parameters
    ----------
    gold
        For each pair a `GoldLinks` (sure and possible links; sure ones count as possible, too, wherever they are
        listed), or links that are all sure.
    found
        For each pair its links; one that stands twice counts once.

    Examples
    --------
    >>> from markovfield.alignment.links import GoldLinks
    >>> gold = [GoldLinks(frozenset({(0, 0), (1, 1)}), frozenset({(1, 2)}))]
    >>> print(alignment_report(gold, [[(0, 0), (1, 2), (3, 3)]]))
    AER 40.00 %, precision 66.67 %, recall 50.00 % (3 links found, 2 sure, 3 possible, 1 pairs)
    """
    if len(gold) != len(found):
        raise ModelError(f"there are gold links of {len(gold)} pairs and found links of {len(found)}")
    counts = [0] * 5
    for k, (links, own) in enumerate(zip(gold, found, strict=True)):
        truth = gold_links(links, k)
        guess = gold_links(own, k).sure
        allowed = truth.allowed
        for at, some in enumerate((guess, truth.sure, allowed, guess & truth.sure, guess & allowed)):
            counts[at] += len(some)
    return AlignmentReport(len(gold), *counts)


def alignment_error_rate(gold: Sequence[Any], found: Sequence[Iterable[tuple[int, int]]]) -> float:
    """The alignment error rate, from 0 (all sure links, nothing impossible) to 1; see `alignment_report`.

    Examples
    --------
    >>> alignment_error_rate([{(0, 0), (1, 1)}], [[(0, 0), (1, 1)]])
    0.0
    """
    return alignment_report(gold, found).error_rate
