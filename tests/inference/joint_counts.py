"""Counts of whole assignments against the brute-force oracle, by Pearson's chi-square."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy.stats import chi2

from tests.oracle import Oracle
from tests.strategies import Spec, Table

# A correct sampler falls below this in one of ten thousand tests; seeds are fixed, so each either does or does not.
FALSE_ALARM = 1e-4


def p_value(oracle: Oracle, states: np.ndarray) -> float:
    """Of the rows being independent draws; rare assignments are thrown together, impossible ones are an error."""
    expected = oracle.probabilities.astype(np.float64) * len(states)
    counts = np.bincount(np.ravel_multi_index(states.T.astype(np.int64), oracle.cardinalities), minlength=len(expected))
    assert not counts[expected == 0].any(), "an impossible assignment was drawn"
    often = expected >= 5
    seen = np.append(counts[often], counts[~often].sum())
    wanted = np.append(expected[often], expected[~often].sum())
    keep = wanted > 0
    seen, wanted = seen[keep], wanted[keep]
    return float(chi2.sf((np.square(seen - wanted) / wanted).sum(), max(1, len(seen) - 1)))


def pairs_spec(
    seed: int,
    n: int,
    pairs: Sequence[tuple[int, int]],
    *,
    states: int = 2,
    coupling: tuple[float, float] = (0.2, 1.2),
    field: float = 0.5,
    ruled_out: Mapping[int, Sequence[int]] | None = None,
) -> Spec:
    """A Potts model with couplings drawn from a range and normal fields; of two states, this is any Ising model."""
    rng = np.random.default_rng(seed)
    operations: list[Any] = [Table((pair,), rng.uniform(*coupling) * np.eye(states)) for pair in pairs]
    if field:
        operations += [Table(((v,),), field * rng.normal(size=states)) for v in range(n)]
    for v, gone in (ruled_out or {}).items():
        table = np.zeros(states)
        table[list(gone)] = -np.inf
        operations.append(Table(((v,),), table))
    return Spec((states,) * n, tuple(operations), tuple(f"x{v}" for v in range(n)))


CYCLE = [(0, 1), (1, 2), (2, 3), (3, 4), (4, 0), (0, 2)]
GRID = [(0, 1), (1, 2), (3, 4), (4, 5), (0, 3), (1, 4), (2, 5)]
APART = [(0, 1), (1, 2), (3, 4)]
