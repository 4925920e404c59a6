"""Dependency trees as lists of heads: what a sentence and a tree must be, and trees made projective."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from markovfield.exceptions import ModelError

__all__ = ["TaggedWords", "checked_heads", "crossing_arcs", "heads_and_labels", "projectivised", "tagged_words"]

# A sentence as words with their tags.
TaggedWords = tuple[tuple[str, str], ...]

WORD_KEYS, TAG_KEYS = ("word", "form"), ("tag", "upos", "xpos", "pos")


def tagged_words(X: Any) -> list[TaggedWords]:
    """Sentences as words with tags, checked: given as such, or as dicts with a word and a tag.

    Examples
    --------
    >>> tagged_words([[("Rain", "NN"), {"form": "fell", "upos": "VERB"}]])
    [(('Rain', 'NN'), ('fell', 'VERB'))]
    """
    if isinstance(X, str) or not isinstance(X, Iterable):
        raise ModelError(f"sentences must be a list, each of words with tags, got {X!r}")
    found = []
    for i, sentence in enumerate(X):
        if isinstance(sentence, str | Mapping) or not isinstance(sentence, Iterable):
            raise ModelError(_untagged(i, sentence))
        words = [_pair(token) for token in sentence]
        if not words:
            raise ModelError(f"sentence {i} has no words")
        for token, pair in zip(sentence, words, strict=True):
            if pair is None:
                raise ModelError(_untagged(i, token))
        found.append(tuple(words))
    return found  # type: ignore[return-value]


def _untagged(i: int, token: Any) -> str:
    return f"sentence {i} must be words with tags, as ('dog', 'NN') or {{'word': 'dog', 'tag': 'NN'}}, got {token!r}"


def _pair(token: Any) -> tuple[str, str] | None:
    """A word and its tag; None where that is not what was given."""
    if isinstance(token, Mapping):
        word, tag = (next((token[k] for k in keys if k in token), None) for keys in (WORD_KEYS, TAG_KEYS))
    elif isinstance(token, tuple | list) and len(token) == 2:
        word, tag = token
    else:
        return None
    return (word, tag) if isinstance(word, str) and isinstance(tag, str) else None


def heads_and_labels(tree: Any, i: int, *, labelled: bool) -> tuple[list[int], list[Any]]:
    """Heads and labels of one output, given as heads or as pairs (head, label); labels are read if they are wanted."""
    if isinstance(tree, str) or not isinstance(tree, Iterable):
        raise ModelError(f"tree {i} must be a list of heads, got {tree!r}")
    heads: list[int] = []
    labels: list[Any] = []
    for entry in tree:
        pair = isinstance(entry, tuple | list) and len(entry) == 2
        head, label = entry if pair else (entry, None)
        if (
            isinstance(head, bool)
            or not isinstance(head, int | np.integer)
            or (labelled and not isinstance(label, str))
        ):
            wanted = "pairs (head, label)" if labelled else "heads, whole numbers from 0, the root"
            raise ModelError(f"tree {i} must have {wanted}, got {entry!r}")
        heads.append(int(head))
        labels.append(label)
    return heads, labels


def checked_heads(heads: Sequence[int], n: int, i: int, *, single_root: bool) -> None:
    """Whether heads make a tree of n words; errors name the sentence."""
    if len(heads) != n:
        raise ModelError(f"tree {i} has {len(heads)} heads, and its sentence {n} words")
    for word, head in enumerate(heads, 1):
        if not 0 <= head <= n or head == word:
            rule = f"0, the root, or another word, up to {n}"
            raise ModelError(f"tree {i}: the head of word {word} must be {rule}, got {head}")
    roots = [word for word, head in enumerate(heads, 1) if head == 0]
    # Words known to lead to the root; every word is walked over once.
    done = [True] + [False] * n
    for word in range(1, n + 1):
        path, at = [], word
        while not done[at]:
            done[at] = True
            path.append(at)
            at = heads[at - 1]
        if at in path:
            cycle = " -> ".join(map(str, [*path[path.index(at) :], at]))
            raise ModelError(f"tree {i} has a cycle of heads, {cycle}")
    if single_root and len(roots) != 1:
        named = ", ".join(map(str, roots))
        raise ModelError(f"tree {i} has {len(roots)} words on the root, {named}: say single_root=False to allow that")


def crossing_arcs(heads: Sequence[int]) -> tuple[tuple[int, int], tuple[int, int]] | None:
    """Two arcs, as (head, modifier), that cross when the root is left of the first word; None where none do.

    Time linear in the words where none cross, but for sorting.

    Examples
    --------
    >>> crossing_arcs([3, 4, 0, 3])
    ((3, 1), (4, 2))
    >>> crossing_arcs([2, 0, 2]) is None
    True
    """
    arcs = [(head, word) for word, head in enumerate(heads, 1)]
    # From left to right, longer ones first: those that are open must end no earlier than what they hold.
    arcs.sort(key=lambda arc: (min(arc), -max(arc)))
    open_arcs: list[tuple[int, int]] = []
    for arc in arcs:
        left, right = min(arc), max(arc)
        while open_arcs and max(open_arcs[-1]) <= left:
            open_arcs.pop()
        if open_arcs and max(open_arcs[-1]) < right:
            return open_arcs[-1], arc
        open_arcs.append(arc)
    return None


def projectivised(tree: Sequence[Any]) -> list[Any]:
    """A tree without crossing arcs: the shortest arc of those that cover a word not below their head is lifted.

    Lifting gives a word its head's head (Nivre and Nilsson 2005); labels stay.

    Parameters
    ----------
    tree
        Heads, or pairs (head, label).

    Examples
    --------
    >>> projectivised([3, 4, 0, 3])
    [3, 3, 0, 3]
    >>> projectivised([2, 0, 2])
    [2, 0, 2]
    """
    heads, labels = heads_and_labels(tree, 0, labelled=False)
    checked_heads(heads, len(heads), 0, single_root=False)
    while crossing_arcs(heads) is not None:
        above = _ancestors(heads)
        wrong = [
            (abs(head - word), word)
            for word, head in enumerate(heads, 1)
            if any(head not in above[k] for k in range(min(head, word) + 1, max(head, word)))
        ]
        _, word = min(wrong)
        heads[word - 1] = heads[heads[word - 1] - 1]
    pairs = any(label is not None for label in labels)
    return list(zip(heads, labels, strict=True)) if pairs else heads


def _ancestors(heads: Sequence[int]) -> list[set[int]]:
    """For each word all words above it, the root among them."""
    found: list[set[int]] = [set()]
    for word in range(1, len(heads) + 1):
        above, at = set(), word
        while at:
            at = heads[at - 1]
            above.add(at)
        found.append(above)
    return found
