"""What an arc is known by: its words, tags and prefixes, how far it goes and over what (McDonald et al. 2005).

A feature is a number, values of some fields of an arc in mixed radix. Those kept from training are in one sorted array
and found by a table; there is no text and no object for an arc.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from markovfield.arrays import IntArray, offsets_of
from markovfield.dependency.arc_features_kernel import arc_features, arc_keys, count_keys, fill_table
from markovfield.dependency.trees import TaggedWords
from markovfield.exceptions import ModelError
from markovfield.grammar.pairs import FeatureRows
from markovfield.grammar.span_features import N_WORD_CLASSES, word_class

__all__ = ["ArcFeatures", "Arcs"]

# hw, ht, hp: word, tag and prefix of the head; mw, mt, mp: of the modifier; h- h+ m- m+: tags of their neighbours;
# d: how far apart they are, and on which side; r: on which side; b: a tag between them, every one in turn. Those that
# say less come first, for where they have no feature, others that say more need not be looked up.
FIELDS = ("hw", "ht", "hp", "mw", "mt", "mp", "h-", "h+", "m-", "m+", "d", "r", "b")
TEMPLATES = tuple(
    tuple(names.split())
    for names in (
        "ht d",
        "mt d",
        "hw r",
        "mw r",
        "hw d",
        "mw d",
        "hw ht d",
        "mw mt d",
        "ht mt r",
        "ht mt d",
        "hw mt r",
        "ht mw r",
        "hw mw r",
        "hw mt d",
        "ht mw d",
        "hw ht mt d",
        "ht mw mt d",
        "hw ht mw mt r",
        "hp mt d",
        "ht mp d",
        "hp mp r",
        "h- ht h+ d",
        "m- mt r",
        "mt m+ r",
        "m- mt m+ d",
        "m- mw m+ r",
        "h- ht mt d",
        "ht h+ mt d",
        "ht m- mt d",
        "ht mt m+ d",
        "h- ht m- mt d",
        "h- ht mt m+ d",
        "ht h+ m- mt d",
        "ht h+ mt m+ d",
        "h- ht m- mt r",
        "ht h+ m- mt r",
        "h- ht mt m+ r",
        "ht h+ mt m+ r",
        "ht b mt r",
        "ht b mt d",
    )
)
# Templates whose features also go with labels.
LABELLED = tuple(
    TEMPLATES.index(tuple(names.split()))
    for names in (
        "ht d",
        "mt d",
        "hw r",
        "mw r",
        "mw mt d",
        "ht mt d",
        "hw mt r",
        "ht mw r",
        "hw mw r",
        "ht mp d",
        "m- mt m+ d",
        "h- ht mt d",
        "ht h+ mt d",
        "ht m- mt d",
        "ht mt m+ d",
    )
)
# Distances from which the next bucket begins.
BUCKETS = np.array([2, 3, 4, 5, 7, 11, 21])
PREFIX = 5
# Numbers of words, classes of words and tags that stand for no word: outside of the sentence, and the root.
OUTSIDE, ROOT = 0, 1
# Arcs whose features are counted at once.
ARCS_AT_ONCE = 100_000


class Arcs(NamedTuple):
    """Sentences as arrays: of each an entry outside, the root, its words, and another outside."""

    lengths: IntArray
    words: IntArray
    tags: IntArray
    prefixes: IntArray

    @property
    def n_cells(self) -> int:
        """Cells ``[n + 1, n + 1]`` of all sentences."""
        return int(((self.lengths + 1) ** 2).sum())


@dataclass(frozen=True, eq=False)
class ArcFeatures:
    """Which words, tags, prefixes and combinations of them have features.

    Attributes
    ----------
    words, tags, prefixes
        Those with features of their own. Other words count as one of a few classes, by how they are written; a prefix
        is the first five letters of a longer word.
    keys
        Sorted numbers of the combinations that have a feature.
    """

    words: tuple[str, ...]
    tags: tuple[str, ...]
    prefixes: tuple[str, ...]
    keys: IntArray

    @classmethod
    def learned(
        cls, sentences: Sequence[TaggedWords], used: Sequence[IntArray], *, min_count: int, min_word_count: int
    ) -> ArcFeatures:
        """The features of arcs of training sentences.

        Parameters
        ----------
        sentences
            Words with tags.
        used
            For each sentence the cells ``head * (n + 1) + modifier`` of the arcs of its tree.
        min_count
            How many arcs of trees must have a feature; one of tags alone may have ten times as many arcs of any kind
            instead.
        min_word_count
            How often a word or a prefix must occur to have features of its own.
        """
        words = Counter(word for sentence in sentences for word, _ in sentence)
        prefixes: Counter[str] = Counter()
        for word, n in words.items():
            if len(word) > PREFIX:
                prefixes[word[:PREFIX]] += n
        bare = cls(
            _frequent(words, min_word_count),
            tuple(sorted({tag for sentence in sentences for _, tag in sentence})),
            _frequent(prefixes, min_word_count),
            np.zeros(0, np.int64),
        )
        largest = max(prod(int(bare.sizes[FIELDS.index(name)]) for name in template) for template in TEMPLATES)
        if largest * len(TEMPLATES) >= 2**62:
            raise ModelError(
                f"there are {len(bare.words)} words and {len(bare.tags)} tags, too many to number their combinations: "
                "raise min_word_count"
            )
        # Arcs that trees do not have are worth features where tags alone tell that.
        common = np.array([not {"hw", "mw", "hp", "mp", "b"} & set(template) for template in TEMPLATES])
        seen, every = _KeyCounts(), _KeyCounts()
        for first, last in _chunks(sentences):
            arcs = bare.arcs(sentences[first:last])
            chosen = bare.cells(arcs.lengths, used[first:last])
            seen.add(bare._keys(arcs, chosen, np.ones(len(TEMPLATES), np.bool_)))
            every.add(bare._keys(arcs, np.ones(len(chosen), np.bool_), common))
        keys = np.union1d(seen.at_least(min_count), every.at_least(10 * min_count))
        return cls(bare.words, bare.tags, bare.prefixes, keys)

    @property
    def n_features(self) -> int:
        """How many features there are."""
        return len(self.keys)

    @property
    def goes_with_labels(self) -> npt.NDArray[np.bool_]:
        """``bool[n_features]``: whether a feature also has weights with labels."""
        return np.isin(self.keys % len(TEMPLATES), LABELLED)

    @cached_property
    def sizes(self) -> IntArray:
        """How many values each field has."""
        words, tags = len(self.words) + N_WORD_CLASSES + 2, len(self.tags) + 3
        others = {"d": 2 * (len(BUCKETS) + 1), "r": 2, "hp": len(self.prefixes) + 1, "mp": len(self.prefixes) + 1}
        return np.array([others.get(name, words if name[1:] == "w" else tags) for name in FIELDS], np.int64)

    @cached_property
    def _indices(self) -> tuple[dict[str, int], dict[str, int], dict[str, int]]:
        begins = (2 + N_WORD_CLASSES, 3, 0)  # of tags, 2 is one that is not known
        kinds = (self.words, self.tags, self.prefixes)
        words, tags, prefixes = ({text: i for i, text in enumerate(k, at)} for k, at in zip(kinds, begins, strict=True))
        return words, tags, prefixes

    @cached_property
    def _parents(self) -> IntArray:
        """For each template one before it that says less: it has a feature of every arc of which this one has."""
        said = [set(template) | ({"r"} if "d" in template else set()) for template in TEMPLATES]
        found = np.full(len(TEMPLATES), -1, np.int64)
        for t, own in enumerate(said):
            less = [s for s in range(t) if said[s] < own and "b" not in said[s]]
            found[t] = max(less, key=lambda s: (len(said[s]), s), default=-1)
        return found

    @cached_property
    def _templates(self) -> tuple[IntArray, npt.NDArray[np.bool_]]:
        """Fields of templates, and whether one of them is a tag between."""
        found = np.full((len(TEMPLATES), max(map(len, TEMPLATES))), -1, np.int64)
        for t, template in enumerate(TEMPLATES):
            found[t, : len(template)] = [FIELDS.index(name) for name in template]
        return found, np.array(["b" in template for template in TEMPLATES])

    @cached_property
    def _table(self) -> tuple[IntArray, npt.NDArray[np.int32]]:
        size = _power(2 * len(self.keys) + 1)
        table, places = np.full(size, -1, np.int64), np.zeros(size, np.int32)
        fill_table(self.keys, table, places)
        return table, places

    def arcs(self, sentences: Sequence[TaggedWords]) -> Arcs:
        """Sentences as arrays."""
        word_index, tag_index, prefix_index = self._indices
        lengths = np.array([len(sentence) for sentence in sentences], np.int64)
        words, tags, prefixes = np.zeros((3, int((lengths + 3).sum())), np.int64)
        prefixes[:] = -1
        at = 1
        for sentence in sentences:
            end = at + 1 + len(sentence)
            words[at] = tags[at] = ROOT
            words[at + 1 : end] = [word_index.get(word) or 2 + word_class(word) for word, _ in sentence]
            tags[at + 1 : end] = [tag_index.get(tag, 2) for _, tag in sentence]
            prefixes[at + 1 : end] = [
                prefix_index.get(word[:PREFIX], -1) if len(word) > PREFIX else -1 for word, _ in sentence
            ]
            at = end + 2
        return Arcs(lengths, words, tags, prefixes)

    @staticmethod
    def cells(lengths: IntArray, used: Iterable[IntArray]) -> npt.NDArray[np.bool_]:
        """``bool[n_cells]``: the cells that are used."""
        starts = offsets_of((lengths + 1) ** 2)
        chosen = np.zeros(int(starts[-1]), np.bool_)
        for start, own in zip(starts.tolist(), used, strict=False):
            chosen[start + own] = True
        return chosen

    def _room(self, arcs: Arcs, chosen: npt.NDArray[np.bool_], wanted: npt.NDArray[np.bool_]) -> int:
        """How many features the chosen cells may have at most."""
        _, named = self._templates
        n = int((wanted & ~named).sum()) * int(chosen.sum())
        if (wanted & named).any():
            longest = np.minimum(arcs.lengths, self.sizes[-1])
            starts = offsets_of((arcs.lengths + 1) ** 2)[:-1]
            of_sentence = np.add.reduceat(chosen.astype(np.int64), starts)
            n += int((wanted & named).sum()) * int(longest @ of_sentence)
        return n

    def _keys(self, arcs: Arcs, chosen: npt.NDArray[np.bool_], wanted: npt.NDArray[np.bool_]) -> IntArray:
        templates, named = self._templates
        keys = np.empty(self._room(arcs, chosen, wanted), np.int64)
        n = arc_keys(*arcs, BUCKETS, templates, self.sizes, named, wanted, chosen, keys)
        return keys[:n]

    def rows(self, arcs: Arcs, chosen: npt.NDArray[np.bool_] | None = None) -> FeatureRows:
        """The features of all cells, sentence after sentence; those into the root and of words to themselves have none.

        About 40 numbers of four bytes for an arc.
        """
        if chosen is None:
            chosen = np.ones(arcs.n_cells, np.bool_)
        templates, named = self._templates
        rows = np.empty(len(chosen) + 1, np.int64)
        room = np.empty(self._room(arcs, chosen, np.ones(len(templates), np.bool_)), np.int32)
        table, places = self._table
        n = arc_features(*arcs, BUCKETS, templates, self.sizes, named, self._parents, table, places, chosen, rows, room)
        return FeatureRows(rows, room[:n].copy())


class _KeyCounts:
    """How often numbers come, in a table that grows."""

    def __init__(self) -> None:
        self.table, self.counts, self.n = np.full(2, -1, np.int64), np.zeros(2, np.int64), 0

    def add(self, keys: IntArray) -> None:
        """Count some numbers."""
        if 2 * (self.n + len(keys)) > len(self.table):
            held = self.table >= 0
            old, counts = self.table[held], self.counts[held]
            size = _power(3 * (self.n + len(keys)))
            self.table, self.counts, places = (
                np.full(size, -1, np.int64),
                np.zeros(size, np.int64),
                np.zeros(size, np.int32),
            )
            fill_table(old, self.table, places)
            now = self.table >= 0
            self.counts[now] = counts[places[now]]
        self.n += count_keys(keys, self.table, self.counts)

    def at_least(self, n: int) -> IntArray:
        """Those that came so often, sorted."""
        return np.asarray(np.sort(self.table[(self.table >= 0) & (self.counts >= n)]))


def _frequent(counts: Counter[str], least: int) -> tuple[str, ...]:
    return tuple(sorted(text for text, n in counts.items() if n >= least))


def _chunks(sentences: Sequence[Any]) -> list[tuple[int, int]]:
    """Ranges of sentences of about `ARCS_AT_ONCE` arcs."""
    which = np.cumsum([(len(sentence) + 1) ** 2 for sentence in sentences]) // ARCS_AT_ONCE
    starts = np.flatnonzero(np.diff(which, prepend=-1)).tolist()
    return list(zip(starts, [*starts[1:], len(sentences)], strict=True))


def _power(n: int) -> int:
    """The first power of two from n on."""
    return 1 << max(n - 1, 1).bit_length()
