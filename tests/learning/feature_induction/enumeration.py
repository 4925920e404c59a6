"""Fields over words by listing every word; nothing of the library's counting is used."""

from __future__ import annotations

import itertools
import re

import numpy as np

__all__ = ["all_words", "count", "expectations", "log_partitions"]


def all_words(characters: str, longest: int) -> list[list[str]]:
    """Every word of each length."""
    return [["".join(w) for w in itertools.product(characters, repeat=n)] for n in range(longest + 1)]


def count(pattern: str, word: str) -> int:
    """How often a pattern, whose classes are those of regular expressions, is in a word; occurrences may overlap."""
    return len(re.findall(f"(?=({pattern}))", f"<{word}>"))


def scores(words: list[str], patterns: list[str], weights: np.ndarray) -> np.ndarray:
    return np.array([sum(w * count(p, word) for p, w in zip(patterns, weights, strict=True)) for word in words])


def log_partitions(words: list[list[str]], patterns: list[str], weights: np.ndarray) -> np.ndarray:
    return np.array([np.logaddexp.reduce(scores(same, patterns, weights)) for same in words])


def expectations(words: list[list[str]], patterns: list[str], weights: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    total = np.zeros(len(patterns))
    for same, p in zip(words, lengths, strict=True):
        score = scores(same, patterns, weights)
        probability = np.exp(score - np.logaddexp.reduce(score))
        total += p * np.array([probability @ [count(pattern, word) for word in same] for pattern in patterns])
    return total
