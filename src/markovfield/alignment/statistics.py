"""What an unlabelled corpus says of words: how often they come, and models 1 and HMM in both directions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from markovfield.alignment.hmm_aligner import HMMAligner
from markovfield.alignment.ibm import IBM1
from markovfield.alignment.sentences import EncodedPairs, normalised
from markovfield.alignment.symmetric import SymmetricAligner
from markovfield.alignment.translation import TranslationTable
from markovfield.arrays import FloatArray, IntArray
from markovfield.exceptions import FormatError
from markovfield.inference.core.running import Running

__all__ = ["CorpusStatistics", "normalised_pairs"]

# Pairs of words below such a probability (or Dice coefficient) are not kept: there are many and they say nothing.
LEAST = 1e-6
LEAST_DICE = 1e-3


def normalised_pairs(pairs: Sequence[tuple[Sequence[str], Sequence[str]]]) -> list[Any]:
    """The same with words in small letters and without accents; each distinct word is looked at once."""
    known = {word: normalised(word) for pair in pairs for words in pair for word in words}
    return [tuple([known[word] for word in words] for words in pair) for pair in pairs]


@dataclass(frozen=True, eq=False)
class CorpusStatistics:
    """Statistics of a corpus of sentence pairs, of which links have features.

    Attributes
    ----------
    dice
        ``2 n(e, f) / (n(e) + n(f))`` of sentence pairs that have words, for pairs of words.
    first, hidden
        `IBM1` and `HMMAligner` in both directions.
    source_counts, target_counts
        How often each word comes, by the vocabularies of ``dice``.
    """

    dice: TranslationTable
    first: SymmetricAligner
    hidden: SymmetricAligner
    source_counts: IntArray
    target_counts: IntArray

    @classmethod
    def learned(cls, pairs: Sequence[tuple[Sequence[str], Sequence[str]]], running: Running) -> CorpusStatistics:
        """Those of a corpus, whose words are normalised first."""
        given = normalised_pairs(pairs)
        first, hidden = SymmetricAligner(IBM1()), SymmetricAligner(HMMAligner())
        dice: Any = None
        for side, own in (("forward_", given), ("backward_", [(target, source) for source, target in given])):
            table, encoded, together = TranslationTable.over(own)
            if dice is None:
                dice = table.with_values(_dice(table, encoded, together)).pruned(LEAST_DICE)
                counts = [np.bincount(words) for words in (encoded.arrays.sources, encoded.arrays.targets)]
            one = IBM1(n_jobs=running.n_jobs)._learn(table, encoded, running)
            other = HMMAligner(first_iterations=0, n_jobs=running.n_jobs)._learn(one.table_, encoded, running)
            for model, found in ((first, one), (hidden, other)):
                found.table_ = found.table_.pruned(LEAST)
                setattr(model, side, found)
        return cls(dice, first, hidden, *counts)

    def count(self, word: str, side: int) -> int:
        """How often a normalised word comes: side 0 is the source."""
        k = (self.dice.source, self.dice.target)[side].number(word)
        return 0 if k < 0 else int((self.source_counts, self.target_counts)[side][k])

    def described(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """As an archive holds it: plain values, and vectors."""
        about, arrays = {}, self.dice.described("dice_")
        for name, model in (("first", self.first), ("hidden", self.hidden)):
            about[name], own = model.described(f"{name}_")
            arrays.update(own)
        return about, {**arrays, "source_counts": self.source_counts, "target_counts": self.target_counts}

    @classmethod
    def restored(cls, about: Mapping[str, Any], arrays: Mapping[str, Any]) -> CorpusStatistics:
        """From an archive."""
        dice = TranslationTable.restored(arrays, "dice_")
        models = []
        for name in ("first", "hidden"):
            own = about.get(name)
            if not isinstance(own, dict):
                raise FormatError("it has no statistics of a corpus")
            models.append(SymmetricAligner.from_archive(own, dict(arrays), f"{name}_"))
        counts = [arrays.get(f"{side}_counts") for side in ("source", "target")]
        for given, words in zip(counts, (dice.source, dice.target), strict=True):
            if given is None or given.dtype != np.int64 or len(given) != len(words):
                raise FormatError("its counts of words do not fit its words")
        return cls(dice, models[0], models[1], counts[0], counts[1])  # type: ignore[arg-type]


def _dice(table: TranslationTable, encoded: EncodedPairs, together: IntArray) -> FloatArray:
    """The Dice coefficient of each pair of words."""
    arrays = encoded.arrays
    found = []
    for words, lengths, known in (
        (arrays.sources, encoded.source_lengths, table.source),
        (arrays.targets, encoded.target_lengths, table.target),
    ):
        codes = np.unique(np.repeat(np.arange(len(encoded)), lengths) * len(known) + words)
        found.append(np.bincount(codes % len(known), minlength=len(known)))
    rows = np.repeat(np.arange(len(table.source)), np.diff(table.row_starts))
    return 2.0 * together / (found[0][rows] + found[1][table.columns])
