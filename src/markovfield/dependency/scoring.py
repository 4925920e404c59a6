"""Attachment scores: how many words have the right head, and the right label, with punctuation and without."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from markovfield.dependency.trees import heads_and_labels, tagged_words
from markovfield.exceptions import ModelError
from markovfield.frames import OneRow

__all__ = ["PUNCTUATION", "DependencyReport", "dependency_report"]

# Tags of punctuation in the Penn Treebank, as papers on its dependencies leave them out, and in Universal Dependencies.
PUNCTUATION = frozenset({"``", "''", ",", ".", ":", "PUNCT"})


@dataclass(frozen=True)
class DependencyReport(OneRow):
    """Words with the right head (unlabelled attachment score), and with the right head and label (labelled).

    Attributes
    ----------
    n_sentences, n_words, n_punctuation
        What was scored; punctuation is among the words.
    uas, las
        Shares of all words, punctuation included; ``las`` is None without labels.
    uas_without_punctuation, las_without_punctuation
        Shares of the words that are not punctuation.
    root_accuracy
        Share of the sentences whose words on the root are the right ones.
    complete_match
        Share of the sentences whose heads are all right, punctuation included.
    n_failed
        Sentences without a parse; all of their words count as wrong.
    """

    n_sentences: int
    n_words: int
    n_punctuation: int
    uas: float
    las: float | None
    uas_without_punctuation: float
    las_without_punctuation: float | None
    root_accuracy: float
    complete_match: float
    n_failed: int

    _row = (
        "n_sentences", "n_words", "n_punctuation", "uas", "las", "uas_without_punctuation",
        "las_without_punctuation", "root_accuracy", "complete_match", "n_failed",
    )  # fmt: skip

    def __str__(self) -> str:
        def shown(value: float | None) -> str:
            return "    -" if value is None else f"{100 * value:5.2f}"

        shares = f"root {shown(self.root_accuracy)}, whole trees {shown(self.complete_match)}"
        return "\n".join(
            [
                f"{self.n_sentences} sentences, {self.n_words} words, {self.n_punctuation} of them punctuation",
                "                        UAS    LAS",
                f"with punctuation      {shown(self.uas)}  {shown(self.las)}",
                f"without punctuation   {shown(self.uas_without_punctuation)}  {shown(self.las_without_punctuation)}",
                f"{shares}, without a parse {self.n_failed}",
            ]
        )


def dependency_report(
    sentences: Any, gold: Sequence[Any], predicted: Sequence[Any], *, punctuation: Collection[str] = PUNCTUATION
) -> DependencyReport:
    """Compare trees with gold ones.

    Parameters
    ----------
    sentences
        Words with tags, which say what is punctuation.
    gold, predicted
        For each sentence heads, or pairs (head, label); labels are scored where both have them. A prediction may be
        None.
    punctuation
        Tags of what counts as punctuation.

    Examples
    --------
    >>> x = [("Rain", "NN"), ("fell", "VBD"), (".", ".")]
    >>> report = dependency_report([x], [[2, 0, 2]], [[2, 0, 1]])
    >>> round(report.uas, 3), report.uas_without_punctuation
    (0.667, 1.0)
    """
    read = tagged_words(sentences)
    if not len(read) == len(gold) == len(predicted):
        raise ModelError(f"there are {len(read)} sentences, {len(gold)} gold trees and {len(predicted)} predicted ones")
    labelled = _have_labels(gold) and _have_labels(predicted)
    # Words, right heads, right labels too: of all, and of those that are not punctuation.
    totals = [[0, 0, 0], [0, 0, 0]]
    roots = complete = failed = 0
    for i, (sentence, right, found) in enumerate(zip(read, gold, predicted, strict=True)):
        heads, labels = heads_and_labels(right, i, labelled=labelled)
        if found is None:
            failed += 1
            own, own_labels = [-1] * len(sentence), [None] * len(sentence)
        else:
            own, own_labels = heads_and_labels(found, i, labelled=labelled)
        if not len(sentence) == len(heads) == len(own):
            raise ModelError(
                f"sentence {i} has {len(sentence)} words, {len(heads)} gold heads and {len(own)} predicted"
            )
        for (_, tag), a, b, c, d in zip(sentence, heads, own, labels, own_labels, strict=True):
            scored = (a == b, a == b and c == d)
            for total in totals[: 1 if tag in punctuation else 2]:
                total[0] += 1
                total[1] += scored[0]
                total[2] += scored[1]
        roots += [h == 0 for h in heads] == [h == 0 for h in own]
        complete += heads == own
    (n, uas, las), (n_plain, uas_plain, las_plain) = totals
    return DependencyReport(
        n_sentences=len(read),
        n_words=n,
        n_punctuation=n - n_plain,
        uas=uas / max(n, 1),
        las=las / max(n, 1) if labelled else None,
        uas_without_punctuation=uas_plain / max(n_plain, 1),
        las_without_punctuation=las_plain / max(n_plain, 1) if labelled else None,
        root_accuracy=roots / max(len(read), 1),
        complete_match=complete / max(len(read), 1),
        n_failed=failed,
    )


def _have_labels(trees: Sequence[Any]) -> bool:
    """Whether trees are pairs of heads and labels, as the first word of the first one says."""
    first = next((tree[0] for tree in trees if tree is not None and len(tree)), None)
    return isinstance(first, tuple | list)
