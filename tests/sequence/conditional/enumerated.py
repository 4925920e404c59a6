"""Scores of conditional models of sequences straight from their definition, and what enumeration says of them."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

Score = Callable[[Any, tuple[int, ...], np.ndarray], float]


def likelihood(score: Score, X: list[Any], sizes: list[list[int]], known: list[list[int]], w: np.ndarray) -> float:
    """Minus the log-probability of what is known (-1: unknown) of labels, by summing over all labels of each sentence.

    ``sizes`` are the numbers of states of each sentence's variables.
    """
    total = 0.0
    for x, own, labels in zip(X, sizes, known, strict=True):
        paths = list(itertools.product(*map(range, own)))
        scores = np.array([score(x, path, w) for path in paths])
        fits = [all(b in (-1, a) for a, b in zip(path, labels, strict=True)) for path in paths]
        total += np.logaddexp.reduce(scores) - np.logaddexp.reduce(scores[fits])
    return total


def slopes(function: Callable[[np.ndarray], float], w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Directions in which every weight moves, and slopes along them by differences: a wrong weight shows in all."""
    directions, h = np.random.default_rng(0).normal(size=(4, len(w))), 1e-5
    return directions, np.array([(function(w + h * d) - function(w - h * d)) / (2 * h) for d in directions])
