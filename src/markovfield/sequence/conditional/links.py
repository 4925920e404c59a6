"""Links between the tokens of a sentence: equal words, or any rule."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from markovfield.arrays import IntArray
from markovfield.exceptions import ModelError
from markovfield.sequence.text._encoding import is_matrix, shown
from markovfield.sequence.text.sequences import SequenceData
from markovfield.structured.core.reading import pairs_of

__all__ = ["LINKS", "equal_pairs", "ruled_pairs", "words_of"]

# Names of rules to whether a word may be linked.
LINKS: dict[str, Callable[[str], bool]] = {"equal": bool, "equal_capitalised": lambda word: word[:1].isupper()}
# Names under which the word of a token is looked for, where nobody says one.
_WORD_NAMES = ("word", "w", "token", "text")


def words_of(X: Iterable[Any], name: str | None) -> list[str | None]:
    """The word of every token: the entry of a dict under a name, or what follows ``name=`` or ``name:`` in a list.

    A token that is a text is its word. Tokens without such an entry have none.
    """
    names = _WORD_NAMES if name is None else (name,)
    prefixes = tuple(f"{each}{sign}" for each in names for sign in "=:")
    found: list[str | None] = []
    for s, sentence in enumerate(() if isinstance(X, SequenceData) else X):
        if is_matrix(sentence):
            raise ModelError(
                f"sentence {s} is an array, whose tokens have no words: give link= a function of sentences"
            )
        for token in sentence:
            if isinstance(token, str):
                found.append(token)
            elif isinstance(token, Mapping):
                found.append(next((str(token[each]) for each in names if each in token), None))
            else:
                starts = ((text, prefix) for text in token for prefix in prefixes if text.startswith(prefix))
                found.append(next((text[len(prefix) :] for text, prefix in starts), None))
    if isinstance(X, SequenceData):
        raise ModelError("sequences that are encoded have no words: give sentences, or link=None")
    if found and all(word is None for word in found):
        raise ModelError(
            f"no token has a word: none has an attribute named {' or '.join(map(repr, names))}; say which by word="
        )
    return found


def equal_pairs(
    words: Sequence[str | None],
    offsets: IntArray,
    may: Callable[[str], bool],
    *,
    max_links: int | None,
    max_distance: int | None,
) -> IntArray:
    """Pairs of tokens of a sentence with the same word, ``int64[n, 2]``, the first before the second.

    Neighbours are left out. Each token has up to ``max_links`` links to tokens before it, the nearest first, at most
    ``max_distance`` apart. Time is a sort, and linear in the links.
    """
    numbers: dict[str, int] = {}
    codes = np.fromiter(
        (-1 if word is None or not may(word) else numbers.setdefault(word, len(numbers)) for word in words),
        np.int64,
        len(words),
    )
    sentence = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    at = np.flatnonzero(codes >= 0)
    group = sentence[at] * max(len(numbers), 1) + codes[at]
    order = np.argsort(group, kind="stable")
    at, group = at[order], group[order]
    found, made, lag = [np.zeros((0, 2), np.int64)], np.zeros(len(at), np.int64), 0
    while True:
        lag += 1
        later = np.flatnonzero(group[lag:] == group[:-lag]) + lag if lag < len(at) else np.zeros(0, np.int64)
        if max_links is not None:
            later = later[made[later] < max_links]
        if not len(later):
            return np.concatenate(found)
        apart = at[later] - at[later - lag]
        fits = (apart > 1) & ((apart <= max_distance) if max_distance is not None else True)
        later = later[fits]
        made[later] += 1
        found.append(np.column_stack([at[later - lag], at[later]]))


def ruled_pairs(X: Iterable[Any], offsets: IntArray, rule: Callable[[Any], npt.ArrayLike]) -> IntArray:
    """Pairs of tokens that a function gives for each sentence, numbered through all sentences."""
    found = [np.zeros((0, 2), np.int64)]
    for s, (sentence, start, end) in enumerate(zip(X, offsets[:-1].tolist(), offsets[1:].tolist(), strict=True)):
        try:
            given = np.asarray(rule(sentence))
        except ValueError:
            raise ModelError(f"sentence {s}: link must give pairs of tokens, got {shown(rule(sentence))}") from None
        found.append(pairs_of(given, end - start, s, "links") + start)
    return np.concatenate(found)
