"""Features of runs of words: what stands at their borders and inside, for all spans of many sentences at once.

A feature is a number: values of some fields of a span (the tag of its first word, how long it is) in mixed radix. Those
that occurred in training are kept in sorted arrays, one for each template, and found by bisection; no text is made.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from markovfield.arrays import IntArray, offsets_of
from markovfield.grammar.pairs import FeatureRows

__all__ = ["N_WORD_CLASSES", "SpanFeatures", "Spans", "TaggedSentence", "word_class"]

# A sentence as words with their tags.
TaggedSentence = Sequence[tuple[str, str]]

# Lengths from which the next bucket begins.
_BUCKETS = np.array([2, 3, 4, 5, 6, 8, 11, 16, 26])
# Longest span whose tags are all named.
_SHORT = 5
# Tags whose presence inside of a span is told.
_INSIDE = ("VBD VBZ VBP MD", "IN TO", "CC", ",", ": -- ``")
# Fields: t tags and w words; 1 the first, n the last, b before, a after, 2 the second and m the last but one, B and A
# those one further outside; length is a bucket, inside which kinds of tags there are, all the tags of short spans.
TEMPLATES = tuple(
    tuple(names.split())
    for names in (
        "length whole",
        "t1 length",
        "tn length",
        "tb length",
        "ta length",
        "w1 length",
        "wn length",
        "wb length",
        "wa length",
        "t1 tn",
        "tb t1",
        "tn ta",
        "tb ta",
        "tb t1 tn",
        "t1 tn ta",
        "tb t1 ta",
        "tb tn ta",
        "tb t1 tn ta",
        "t1 t2 tn",
        "t1 tm tn",
        "tB tb t1",
        "tn ta tA",
        "w1 tn",
        "t1 wn",
        "wb t1",
        "tn wa",
        "wb ta",
        "tb wa",
        "w1 wn",
        "inside t1 tn",
        "inside tb ta",
        "all",
        "tb all ta",
    )
)


@dataclass(frozen=True, eq=False)
class Spans:
    """All spans of some sentences, sentence after sentence, in the order (0, 0), (0, 1), ..., (1, 1), ...

    Attributes
    ----------
    lengths
        ``int64[n]``: words of each sentence.
    fields
        Name of a field to its value for each span.
    offsets
        ``int64[n + 1]``: where the spans of each sentence begin.
    """

    lengths: IntArray
    fields: dict[str, IntArray]
    offsets: IntArray


@dataclass(frozen=True, eq=False)
class SpanFeatures:
    """Which words, tags and combinations of them have features.

    Attributes
    ----------
    words, tags
        Those with features of their own; other words count as one of a few classes, by how they are written.
    keys
        For each template the sorted numbers of combinations that have a feature.
    """

    words: tuple[str, ...]
    tags: tuple[str, ...]
    keys: tuple[IntArray, ...] = ()

    @classmethod
    def learned(
        cls, sentences: Sequence[TaggedSentence], used: Sequence[Any], *, min_count: int, min_word_count: int
    ) -> tuple[SpanFeatures, FeatureRows]:
        """The features that spans of training sentences have, and those of the spans that trees have.

        Parameters
        ----------
        sentences
            Words with tags.
        used
            For each sentence the positions, among its spans, of those in its tree.
        min_count
            How many spans of trees must have a feature, or ten times as many spans of any kind.
        min_word_count
            How often a word must occur to have features of its own.
        """
        counts = Counter(word for sentence in sentences for word, _ in sentence)
        words = tuple(sorted(word for word, n in counts.items() if n >= min_word_count))
        tags = tuple(sorted({tag for sentence in sentences for _, tag in sentence}))
        bare = cls(words, tags)
        spans = bare.spans(sentences)
        chosen = np.concatenate([np.zeros(0, np.int64), *(o + u for o, u in zip(spans.offsets, used, strict=False))])
        keys = []
        for template in TEMPLATES:
            numbers, valid = bare._numbers(spans, template)
            own, n_own = np.unique(numbers[chosen][valid[chosen]], return_counts=True)
            every, n_every = np.unique(numbers[valid], return_counts=True)
            keys.append(np.union1d(own[n_own >= min_count], every[n_every >= 10 * min_count]))
        found = cls(words, tags, tuple(keys))
        return found, found.rows(spans, chosen)

    @property
    def n_features(self) -> int:
        """How many features there are."""
        return sum(map(len, self.keys))

    @cached_property
    def _word_index(self) -> dict[str, int]:
        return {word: i + 1 + N_WORD_CLASSES for i, word in enumerate(self.words)}

    @cached_property
    def _tag_index(self) -> dict[str, int]:
        return {tag: i + 2 for i, tag in enumerate(self.tags)}

    @property
    def _sizes(self) -> dict[str, int]:
        t, w = len(self.tags) + 2, len(self.words) + 1 + N_WORD_CLASSES
        others = {"length": len(_BUCKETS) + 1, "whole": 4, "inside": 2 ** len(_INSIDE), "all": (t + 1) ** _SHORT}
        return {name: others.get(name, t if name[0] == "t" else w) for template in TEMPLATES for name in template}

    def spans(self, sentences: Sequence[TaggedSentence]) -> Spans:
        """The spans of some sentences."""
        lengths = np.array([len(sentence) for sentence in sentences], np.int64)
        tag_index, word_index = self._tag_index, self._word_index
        # Two places on either side of each sentence, so that what is outside of it is 0; 1 is a tag that is not known.
        tags, words = np.zeros(int((lengths + 4).sum()), np.int64), np.zeros(int((lengths + 4).sum()), np.int64)
        starts = np.cumsum(lengths + 4) - lengths - 2
        for sentence, at in zip(sentences, starts, strict=True):
            tags[at : at + len(sentence)] = [tag_index.get(tag, 1) for _, tag in sentence]
            words[at : at + len(sentence)] = [word_index.get(word) or 1 + word_class(word) for word, _ in sentence]
        pairs = [np.triu_indices(n) for n in lengths]
        sizes = lengths * (lengths + 1) // 2
        offsets = offsets_of(sizes)
        place = np.repeat(starts, sizes)
        first = np.concatenate([np.zeros(0, np.int64), *(i for i, _ in pairs)]) + place
        last = np.concatenate([np.zeros(0, np.int64), *(j for _, j in pairs)]) + place
        begin, end = place, place + np.repeat(lengths, sizes) - 1
        fields = {
            "t1": tags[first],
            "tn": tags[last],
            "tb": tags[first - 1],
            "ta": tags[last + 1],
            "t2": tags[np.minimum(first + 1, last)],
            "tm": tags[np.maximum(last - 1, first)],
            "tB": tags[first - 2],
            "tA": tags[last + 2],
            "w1": words[first],
            "wn": words[last],
            "wb": words[first - 1],
            "wa": words[last + 1],
            "length": np.searchsorted(_BUCKETS, last - first + 1, "right"),
            "whole": (first == begin) + 2 * (last == end),
            "inside": self._inside(tags, first, last),
            "all": self._all(tags, first, last),
        }
        return Spans(lengths, fields, offsets)

    def _inside(self, tags: IntArray, first: IntArray, last: IntArray) -> IntArray:
        """Which kinds of tags a span has, as bits."""
        found = np.zeros(len(first), np.int64)
        for bit, names in enumerate(_INSIDE):
            wanted = [self._tag_index[name] for name in names.split() if name in self._tag_index]
            before = offsets_of(np.isin(tags, wanted))
            found |= (before[last + 1] > before[first]).astype(np.int64) << bit
        return found

    def _all(self, tags: IntArray, first: IntArray, last: IntArray) -> IntArray:
        """The tags of a short span as one number; -1 of a longer one."""
        base = len(self.tags) + 3
        found = np.zeros(len(first), np.int64)
        for step in range(_SHORT):
            at = first + step
            found = found * base + np.where(at <= last, tags[np.minimum(at, last)] + 1, 0)
        return np.where(last - first < _SHORT, found, -1)

    def _numbers(self, spans: Spans, template: tuple[str, ...]) -> tuple[IntArray, Any]:
        """The number of a combination for each span, and whether it has one."""
        sizes = self._sizes
        numbers = np.zeros(int(spans.offsets[-1]), np.int64)
        valid = np.ones(len(numbers), bool)
        for name in template:
            numbers = numbers * sizes[name] + spans.fields[name]
            if name == "all":
                valid &= spans.fields[name] >= 0
        return numbers, valid

    def rows(self, spans: Spans, where: Any = None) -> FeatureRows:
        """The features of all spans, or of those at some positions."""
        numbers: Any
        n = int(spans.offsets[-1]) if where is None else len(where)
        columns = np.full((n, len(TEMPLATES)), -1, np.int32)
        start = 0
        for x, (template, keys) in enumerate(zip(TEMPLATES, self.keys, strict=True)):
            if len(keys):
                numbers, valid = self._numbers(spans, template)
                if where is not None:
                    numbers, valid = numbers[where], valid[where]
                at = np.minimum(np.searchsorted(keys, numbers), len(keys) - 1)
                columns[:, x] = np.where(valid & (keys[at] == numbers), at + start, -1)
            start += len(keys)
        kept = columns >= 0
        return FeatureRows(offsets_of(kept.sum(axis=1)), columns[kept])


# How words that were rare in training are written; the first that fits.
_CLASSES = (
    re.compile(r".*\d"),
    re.compile(r"[A-Z].*s$"),
    re.compile(r"[A-Z]"),
    re.compile(r".*-"),
    re.compile(r".*ing$"),
    re.compile(r".*ed$"),
    re.compile(r".*ly$"),
    re.compile(r".*s$"),
    re.compile(r".*(?:ion|ment|ness|ity|er|or)$"),
    re.compile(r".*(?:able|ible|ful|ous|ive|al|ic)$"),
    re.compile(r""),
)
N_WORD_CLASSES = len(_CLASSES)


def word_class(word: str) -> int:
    """How a word is written: its class among a few."""
    return next(x for x, pattern in enumerate(_CLASSES) if pattern.match(word))
