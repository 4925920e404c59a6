"""What a link between two words is judged by: statistics of a corpus, positions, how words are written."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from markovfield.alignment.statistics import CorpusStatistics, normalised_pairs
from markovfield.arrays import FloatArray

__all__ = ["ALONE", "LINKS", "PairFeatures", "features_of"]

# Names of features of links, and of words without one.
LINKS = (
    "bias", "dice", "dice, best of row", "dice, best of column",
    "ibm1 forward", "ibm1 backward", "ibm1 mean", "hmm forward", "hmm backward", "hmm mean",
    "hmm log-odds", "hmm best of row", "hmm best of column", "hmm best of both",
    "distance", "distance squared", "same place",
    "equal", "prefix", "numbers", "punctuation", "punctuation and word",
    "rare and rare", "rare and frequent", "frequent and frequent", "frequency ratio",
    "next hmm", "previous hmm", "both neighbours", "beside in row", "beside in column",
    "distance of rare", "hmm of frequent", "hmm of rare",
)  # fmt: skip
ALONE = ("bias", "hmm alone", "hmm alone squared", "best mean", "frequent", "rare", "punctuation", "short")
RARE, FREQUENT = 5, 500
PREFIX = 4


class PairFeatures(NamedTuple):
    """Features of one sentence pair.

    Attributes
    ----------
    links
        ``float64[source words * target words, len(LINKS)]``, source words first.
    sources, targets
        ``float64[words, len(ALONE)]``: of words without a link.
    """

    links: FloatArray
    sources: FloatArray
    targets: FloatArray


def features_of(pairs: Sequence[tuple[Sequence[str], Sequence[str]]], known: CorpusStatistics) -> list[PairFeatures]:
    """Features of sentence pairs.

    Cost: that of the posteriors of both models, and ``I J`` comparisons of words for a pair of I and J words.
    """
    given = normalised_pairs(pairs)
    encoded = known.dice.encoded(given)
    cells = encoded.arrays.cells
    dice = encoded.matrices(np.where(cells >= 0, np.append(known.dice.values, 0.0)[cells], 0.0))
    first, hidden = known.first.directed_marginals(given), known.hidden.directed_marginals(given)
    return [
        _features(words[0], words[1], known, alike, one, other)
        for words, alike, one, other in zip(given, dice, first, hidden, strict=True)
    ]


def _features(
    source: list[str],
    target: list[str],
    known: CorpusStatistics,
    dice: FloatArray,
    first: tuple[FloatArray, FloatArray],
    hidden: tuple[FloatArray, FloatArray],
) -> PairFeatures:
    n, m = len(source), len(target)
    mean = np.sqrt(hidden[0] * hidden[1])
    counts = [np.array([known.count(w, side) for w in words]) for side, words in enumerate((source, target))]
    rare = counts[0][:, None] < RARE, counts[1] < RARE
    frequent = counts[0][:, None] > FREQUENT, counts[1] > FREQUENT
    distance = np.abs((np.arange(n)[:, None] + 0.5) / n - (np.arange(m) + 0.5) / m)
    signs = [np.array([not any(c.isalnum() for c in w) for w in words]) for words in (source, target)]
    digits = [np.array([w[:1].isdigit() for w in words]) for words in (source, target)]
    equal = np.array([[a == b for b in target] for a in source])
    prefix = np.array([[_prefix(a, b) for b in target] for a in source])
    around = np.pad(mean, 1)
    after, before = around[2:, 2:], around[:-2, :-2]
    best_row, best_column = mean >= mean.max(axis=1, keepdims=True), mean >= mean.max(axis=0)
    ratio = np.abs(np.log((counts[0][:, None] + 1.0) / (counts[1] + 1.0)))
    odds = np.log(mean + 1e-4) - np.log(1.0001 - mean)
    columns = (
        np.ones((n, m)), dice, dice >= dice.max(axis=1, keepdims=True), dice >= dice.max(axis=0),
        first[0], first[1], np.sqrt(first[0] * first[1]), hidden[0], hidden[1], mean,
        odds / 5.0, best_row, best_column, best_row & best_column,
        distance, distance**2, distance < 0.05,
        equal, prefix, digits[0][:, None] & digits[1], signs[0][:, None] & signs[1], signs[0][:, None] ^ signs[1],
        rare[0] & rare[1], (rare[0] & frequent[1]) | (frequent[0] & rare[1]), frequent[0] & frequent[1], ratio / 5.0,
        after, before, after * before, np.maximum(around[1:-1, 2:], around[1:-1, :-2]),
        np.maximum(around[2:, 1:-1], around[:-2, 1:-1]),
        distance * (rare[0] | rare[1]), mean * (frequent[0] & frequent[1]), mean * (rare[0] | rare[1]),
    )  # fmt: skip
    links = np.stack([np.asarray(column, np.float64) for column in columns], axis=-1).reshape(n * m, len(LINKS))
    alone = []
    for axis, words in ((0, source), (1, target)):
        linked = np.minimum(hidden[1 - axis].sum(axis=1 - axis), 1.0)
        own = counts[axis]
        alone.append(
            np.stack(
                [
                    np.ones(len(words)), 1.0 - linked, (1.0 - linked) ** 2, mean.max(axis=1 - axis),
                    own > FREQUENT, own < RARE, signs[axis], [len(w) < PREFIX for w in words],
                ],
                axis=-1,
            ).astype(np.float64)
        )  # fmt: skip
    return PairFeatures(links, *alone)


def _prefix(a: str, b: str) -> float:
    """How much of two words is the same from their beginnings on, where that is a few letters at least."""
    size = min(len(a), len(b))
    if size < PREFIX or a[:PREFIX] != b[:PREFIX]:
        return 0.0
    same = next((k for k in range(size) if a[k] != b[k]), size)
    return same / max(len(a), len(b))
