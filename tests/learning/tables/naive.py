"""Iterative proportional fitting written as plainly as can be, on the joint table; imports nothing of the library."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def margin(table: np.ndarray, scope: Sequence[int]) -> np.ndarray:
    """The margin of a table, axes in the order of the scope."""
    lost = tuple(v for v in range(table.ndim) if v not in scope)
    kept = [v for v in range(table.ndim) if v in scope]
    return table.sum(axis=lost).transpose([kept.index(v) for v in scope])


def spread(values: np.ndarray, scope: Sequence[int], n: int) -> np.ndarray:
    """A margin's values with axes of length one for all other variables."""
    order = sorted(range(len(scope)), key=lambda i: scope[i])
    shape = [1] * n
    for i, v in enumerate(scope):
        shape[v] = values.shape[i]
    return values.transpose(order).reshape(shape)


def fitted(
    start: np.ndarray, scopes: Sequence[Sequence[int]], margins: Sequence[np.ndarray], sweeps: int
) -> np.ndarray:
    """The table after so many sweeps."""
    table = np.array(start, float)
    for _ in range(sweeps):
        for scope, wanted in zip(scopes, margins, strict=True):
            now = margin(table, scope)
            ratio = np.divide(wanted, now, out=np.zeros_like(now), where=now > 0)
            table = table * spread(ratio, scope, table.ndim)
    return table
