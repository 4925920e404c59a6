"""Factors as the flat arrays that kernels take, laid out by hand, and random ones.

Arrays cannot be written, as those of a model: a kernel is compiled for each kind of argument, and this one is there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tests.oracle import Oracle

Factor = tuple[Sequence[int], np.ndarray]


@dataclass(frozen=True)
class Flat:
    """Tables one after the other, last axis fastest; ``variable_axes[variable_offsets[v]:]`` are the axes of v."""

    factors: list[Factor]
    cardinalities: np.ndarray
    value_offsets: np.ndarray
    scope_offsets: np.ndarray
    scopes: np.ndarray
    table_offsets: np.ndarray
    table_strides: np.ndarray
    log_tables: np.ndarray
    owner: np.ndarray
    variable_offsets: np.ndarray
    variable_axes: np.ndarray
    variable_factors: np.ndarray

    @property
    def oracle(self) -> Oracle:
        return Oracle(self.cardinalities.tolist(), [(tuple(s), t) for s, t in self.factors])


def offsets(sizes: Sequence[int] | np.ndarray) -> np.ndarray:
    """Where parts of these sizes begin, and the last one ends."""
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)


def fixed(values: object, dtype: type) -> np.ndarray:
    """An array that cannot be written."""
    array = np.array(values, dtype)
    array.flags.writeable = False
    return array


def flat(cardinalities: Sequence[int], factors: Sequence[Factor]) -> Flat:
    scopes = [v for scope, _ in factors for v in scope]
    tables = [np.asarray(table, float).reshape([cardinalities[v] for v in scope]) for scope, table in factors]
    strides = [int(np.prod(t.shape[axis + 1 :])) for t in tables for axis in range(t.ndim)]
    owner = np.repeat(np.arange(len(factors)), [len(scope) for scope, _ in factors])
    axes = np.argsort(np.array(scopes, np.int64), kind="stable")
    many = np.bincount(np.array(scopes, np.int64), minlength=len(cardinalities))
    return Flat(
        list(factors),
        fixed(cardinalities, np.int32),
        fixed(offsets(cardinalities), np.int64),
        fixed(offsets([len(scope) for scope, _ in factors]), np.int64),
        fixed(scopes, np.int32),
        fixed(offsets([t.size for t in tables])[:-1], np.int64),
        fixed(strides, np.int64),
        fixed([x for t in tables for x in t.ravel()], np.float64),
        owner.astype(np.int64),
        offsets(many),
        axes.astype(np.int64),
        owner[axes].astype(np.int32),
    )


def random_forest(seed: int, n: int = 6, zeros: float = 0.0) -> tuple[list[int], list[Factor]]:
    """Factors of two or three variables that close no cycle, some variables alone."""
    rng = np.random.default_rng(seed)
    cards = rng.integers(1, 4, n).tolist()
    factors: list[Factor] = []
    fresh = 1
    while fresh < n:
        below = list(range(fresh, min(n, fresh + int(rng.integers(1, 3)))))
        fresh += len(below)
        if rng.random() < 0.15:
            continue
        scope = rng.permutation([int(rng.integers(0, below[0])), *below]).tolist()
        table = rng.normal(size=[cards[v] for v in scope])
        factors.append((scope, np.where(rng.random(table.shape) < zeros, -np.inf, table)))
    return cards, factors
