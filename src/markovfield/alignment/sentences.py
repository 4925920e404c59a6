"""Pairs of sentences: words from text, words as numbers, all pairs in flat arrays."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from markovfield.arrays import IntArray, offsets_of
from markovfield.exceptions import ModelError

__all__ = ["EncodedPairs", "PairArrays", "Vocabulary", "checked_pairs", "normalised", "tokenised"]

# Titles whose full stop is part of them.
_TITLES = ("mr", "mrs", "ms", "dr", "st", "hon", "jr", "sr", "no", "m", "mme")
_WORD = re.compile(r"\d+(?:[.,]\d+)*|(?:[A-Za-z]\.){2,}|[^\W\d_]+|\S")
# What French leaves out before a vowel, and words that stand for two.
_ELIDED = {"l": "le", "d": "de", "n": "ne", "j": "je", "s": "se", "c": "ce", "qu": "que", "m": "me", "t": "te"}
_ELIDED |= {"jusqu": "jusque", "lorsqu": "lorsque", "puisqu": "puisque", "quoiqu": "quoique"}
_JOINED = {"du": ("de", "le"), "des": ("de", "les"), "au": ("à", "le"), "aux": ("à", "les")}


def tokenised(text: str, language: str = "") -> list[str]:
    """The words and signs of a text; hyphens and signs stand alone, numbers and titles stay whole.

    Parameters
    ----------
    text
        A sentence as it was written.
    language
        ``"fr"``: what is left out before a vowel is written out (``l'est`` is ``le est``), and so are words that stand
        for two (``du`` is ``de le``), as in the aligned French of the Hansards. Anything else changes no word.

    Examples
    --------
    >>> tokenised("Mr. Speaker, cut-backs of $1,000.50!")
    ['Mr.', 'Speaker', ',', 'cut', '-', 'backs', 'of', '$', '1,000.50', '!']
    >>> tokenised("C'est l'effet du projet de loi C-49.", "fr")
    ['Ce', 'est', 'le', 'effet', 'de', 'le', 'projet', 'de', 'loi', 'C', '-', '49', '.']
    """
    found = _WORD.findall(text)
    words: list[str] = []
    at = 0
    while at < len(found):
        word, following = found[at], found[at + 1] if at + 1 < len(found) else ""
        if following in ("'", "\u2019") and language == "fr":
            whole = _ELIDED.get(word.lower())
            # A word with an apostrophe inside that nothing is left out of keeps it: "aujourd' hui".
            words.append(f"{word}'" if whole is None else _like(word, whole))
            at += 2
        elif following == "." and word.lower() in _TITLES and at + 2 < len(found):
            words.append(f"{word}.")
            at += 2
        else:
            pair = _JOINED.get(word.lower()) if language == "fr" else None
            words += [word] if pair is None else [_like(word, pair[0]), pair[1]]
            at += 1
    return words


def _like(word: str, other: str) -> str:
    """Another word with the first letter written as that of a word."""
    return other.capitalize() if word[:1].isupper() else other


def normalised(word: str) -> str:
    """A word in small letters and without accents.

    Examples
    --------
    >>> normalised("Été"), normalised("cœur")
    ('ete', 'coeur')
    """
    plain = word.lower()
    if plain.isascii():
        return plain
    apart = unicodedata.normalize("NFD", plain.replace("œ", "oe").replace("æ", "ae"))
    return "".join(c for c in apart if not unicodedata.combining(c))


def checked_pairs(pairs: Any, *, what: str = "pairs") -> list[tuple[Sequence[str], Sequence[str]]]:
    """Pairs of sentences, each a sequence of words; errors name the pair."""
    if isinstance(pairs, str | bytes | Mapping) or not isinstance(pairs, Iterable):
        raise ModelError(f"{what} must be pairs (source words, target words), got {type(pairs).__name__}")
    found: list[tuple[Sequence[str], Sequence[str]]] = []
    for k, pair in enumerate(pairs):
        if isinstance(pair, str) or not isinstance(pair, Sequence) or len(pair) != 2:
            raise ModelError(f"pair {k} must be (source words, target words), got {_shown(pair)}")
        for side, words in zip(("source", "target"), pair, strict=True):
            if isinstance(words, str) or not isinstance(words, Sequence):
                raise ModelError(f"the {side} sentence of pair {k} must be a list of words, got {_shown(words)}")
            if not len(words):
                raise ModelError(f"the {side} sentence of pair {k} has no words")
            strange = next((word for word in words if not isinstance(word, str)), None)
            if strange is not None:
                raise ModelError(f"the {side} sentence of pair {k} must be a list of texts, got {strange!r}")
        found.append((pair[0], pair[1]))
    if not found:
        raise ModelError(f"{what} holds no pairs of sentences")
    return found


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


class Vocabulary:
    """Words and their numbers.

    Examples
    --------
    >>> known = Vocabulary.of([["the", "house"], ["the", "dog"]])
    >>> known.words, known.numbers(["dog", "cat"]).tolist()
    (['the', 'house', 'dog'], [2, -1])
    """

    def __init__(self, words: Iterable[str]) -> None:
        self.words = list(words)
        self._number = {word: k for k, word in enumerate(self.words)}

    def __len__(self) -> int:
        return len(self.words)

    @classmethod
    def of(cls, sentences: Iterable[Sequence[str]]) -> Vocabulary:
        """The words of sentences, in the order they come."""
        return cls(dict.fromkeys(word for words in sentences for word in words))

    def numbers(self, words: Iterable[str]) -> npt.NDArray[np.int32]:
        """The number of each word; -1 where it is not known."""
        find = self._number.get
        return np.array([find(word, -1) for word in words], np.int32)

    def number(self, word: str) -> int:
        """The number of one word; -1 where it is not known."""
        return self._number.get(word, -1)


class PairArrays(NamedTuple):
    """What kernels read of sentence pairs: offsets and numbers of words on both sides; offsets and numbers of cells."""

    source_offsets: IntArray
    sources: npt.NDArray[np.int32]
    target_offsets: IntArray
    targets: npt.NDArray[np.int32]
    cell_offsets: IntArray
    cells: npt.NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class EncodedPairs:
    """Sentence pairs in flat arrays; cells are still to be written."""

    arrays: PairArrays

    @classmethod
    def of(cls, pairs: Sequence[tuple[Sequence[str], Sequence[str]]], source: Vocabulary, target: Vocabulary) -> Any:
        """Words as numbers of two vocabularies."""
        offsets = [offsets_of([len(pair[side]) for pair in pairs]) for side in (0, 1)]
        numbers = [
            known.numbers(word for pair in pairs for word in pair[k]) for k, known in enumerate((source, target))
        ]
        cell_offsets = offsets_of(np.diff(offsets[0]) * np.diff(offsets[1]))
        cells = np.empty(int(cell_offsets[-1]), np.int32)
        return cls(PairArrays(offsets[0], numbers[0], offsets[1], numbers[1], cell_offsets, cells))

    def __len__(self) -> int:
        return len(self.arrays.cell_offsets) - 1

    @property
    def source_lengths(self) -> IntArray:
        """``int64[n]``: words of each source sentence."""
        return np.diff(self.arrays.source_offsets)

    @property
    def target_lengths(self) -> IntArray:
        """``int64[n]``: words of each target sentence."""
        return np.diff(self.arrays.target_offsets)

    def matrices(self, values: npt.NDArray[Any]) -> list[npt.NDArray[Any]]:
        """Values of cells as one matrix ``[source position, target position]`` for each pair."""
        starts = self.arrays.cell_offsets
        return [
            values[a:b].reshape(m, n).T.copy()
            for a, b, n, m in zip(starts[:-1], starts[1:], self.source_lengths, self.target_lengths, strict=True)
        ]
