"""Alignments of tiny sentence pairs, one by one, without the library's kernels."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np

NONE = -1


def probability_of(model: Any, source: list[str], target: list[str]) -> tuple[np.ndarray, np.ndarray]:
    """``t(target word | source word)`` and after none, looked up word by word."""
    table = model.table_

    def value(e: str, f: str) -> float:
        row, column = table.source.number(e), table.target.number(f)
        if row < 0:
            return float(table.rest[-1])
        own = range(int(table.row_starts[row]), int(table.row_starts[row + 1]))
        return next((float(table.values[k]) for k in own if table.columns[k] == column), float(table.rest[row]))

    nulls = [float(table.null_values[table.target.number(f)]) for f in target]
    return np.array([[value(e, f) for f in target] for e in source]), np.array(nulls)


def none_probability(model: Any, n: int) -> float:
    return 1.0 / (n + 1) if model.null_probability == "uniform" else float(model.null_probability)


def prior_of(model: Any, n: int, m: int, alignment: tuple[int, ...]) -> float:
    """The probability of source positions, given both lengths."""
    none = none_probability(model, n)
    found, before = 1.0, None
    for j, i in enumerate(alignment):
        if i == NONE:
            found *= none
            continue
        found *= (1.0 - none) * _step(model, n, m, i, j, before)
        before = i
    return found


def _step(model: Any, n: int, m: int, i: int, j: int, before: int | None) -> float:
    name = type(model).__name__
    if name == "IBM1":
        return 1.0 / n
    positions = model.positions_
    if name == "HMMAligner":
        jumps, starts = positions
        widest, furthest = len(jumps) // 2, len(starts) - 1
        if before is None:
            weights = [starts[min(k, furthest)] for k in range(n)]
        else:
            weights = [jumps[min(max(k - before, -widest), widest) + widest] for k in range(n)]
        return float(weights[i] / sum(weights))
    if model.positions == "diagonal":
        weights = [np.exp(-positions.tension * abs((k + 0.5) / n - (j + 0.5) / m)) for k in range(n)]
        return float(weights[i] / sum(weights))
    at = 0
    for own in positions.lengths.tolist():
        if own == [n, m]:
            return float(positions.table[at + j * n + i])
        at += own[0] * own[1]
    return 1.0 / n


def enumerate_alignments(model: Any, source: list[str], target: list[str]) -> dict[tuple[int, ...], float]:
    """The joint probability of target words and every alignment."""
    n, m = len(source), len(target)
    t, nulls = probability_of(model, source, target)
    found = {}
    for alignment in product(range(-1, n), repeat=m):
        words = [nulls[j] if i == NONE else t[i, j] for j, i in enumerate(alignment)]
        found[alignment] = prior_of(model, n, m, alignment) * float(np.prod(words))
    return found


def posteriors(joint: dict[tuple[int, ...], float], n: int, m: int) -> np.ndarray:
    """``[source position, target position]`` of links; the last row is none."""
    total = sum(joint.values())
    table = np.zeros((n + 1, m))
    for alignment, p in joint.items():
        for j, i in enumerate(alignment):
            table[i, j] += p / total
    return table


def random_pairs(rng: np.random.Generator, size: int, longest: int = 3, words: int = 4) -> list[Any]:
    """Sentence pairs of a few words each."""
    return [
        (
            [f"e{k}" for k in rng.integers(0, words, rng.integers(1, longest + 1))],
            [f"f{k}" for k in rng.integers(0, words, rng.integers(1, longest + 1))],
        )
        for _ in range(size)
    ]
