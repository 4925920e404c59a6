"""Sums over the rankings of one instance: exact where tables fit, otherwise between Bethe's bound and an upper one."""

from __future__ import annotations

from math import lgamma
from typing import Any, NamedTuple

import numpy as np

from markovfield.arrays import FloatArray, IntArray
from markovfield.structures.matching.permanent_kernel import permanent_counts, permanent_draws, permanent_tables
from markovfield.structures.matching.sums import Instance, bethe_sums
from markovfield.structures.ranking.order import best_order

__all__ = ["RankingSums", "bethe_ranking_sums", "exact_ranking_draws", "exact_ranking_sums", "ranking_table_size"]


class RankingSums(NamedTuple):
    """log Z with bounds, and expected numbers of items at positions and nowhere."""

    log_z: float
    lower: float
    upper: float
    positions: FloatArray
    unranked: FloatArray


def ranking_table_size(n: int, positions: int, copies: int) -> float:
    """Numbers in the tables of the dynamic program, for n items."""
    return 2.0 ** (positions - 1) * (copies + 1.0) * (n + 1 + 2 * (positions + 1))


def _tables(scores: FloatArray, unranked: FloatArray, copies: int) -> tuple[Any, float]:
    """A matching of items with positions that must all be taken, the last one ``copies`` times."""
    n, m = scores.shape
    limits = np.ones(m, np.int64)
    limits[-1] = copies
    radices = np.concatenate([[1], np.cumprod(limits + 1)]).astype(np.int64)
    ends = np.full(int(radices[-1]), -np.inf)
    ends[-1] = 0.0
    room = np.empty((m + 1, 2, len(ends))), np.empty((n + 1, len(ends)))
    forced, ones = np.zeros(scores.shape, np.bool_), np.ones(n, np.int64)
    words = (np.ascontiguousarray(scores), forced, unranked, ends, ones, radices[:-1].copy(), limits, *room)
    return words, permanent_tables(*words)


def exact_ranking_sums(scores: FloatArray, unranked: FloatArray, copies: int, counts: bool) -> RankingSums:
    """By the dynamic program over the positions that are taken."""
    words, log_z = _tables(scores, unranked, copies)
    positions, alone = np.zeros(scores.shape), np.zeros(len(scores))
    if counts and log_z > -np.inf:
        permanent_counts(*(*words, log_z, positions, alone))
    return RankingSums(log_z, log_z, log_z, positions, alone)


def exact_ranking_draws(
    scores: FloatArray, unranked: FloatArray, copies: int, size: int, state: object
) -> IntArray | None:
    """``int8[size, n, m]``: where items stand in random rankings; None where none is possible."""
    words, log_z = _tables(scores, unranked, copies)
    if log_z == -np.inf:
        return None
    drawn = np.zeros((size, *scores.shape), np.int8)
    permanent_draws(*(*words, size, state, drawn))
    return drawn


def bethe_ranking_sums(scores: FloatArray, unranked: FloatArray, copies: int) -> RankingSums:
    """Bethe's lower bound, with positions that are there several times written out, and an upper bound."""
    n, m = scores.shape
    k = m - 1 + copies
    if best_order(scores, unranked if k < n else None, copies) is None:
        return RankingSums(-np.inf, -np.inf, -np.inf, np.zeros(scores.shape), np.zeros(n))
    spread = np.concatenate([scores, np.repeat(scores[:, -1:], copies - 1, axis=1)], axis=1)
    ones = np.ones(n, np.int64), np.ones(k, np.int64)
    one = Instance(spread, np.zeros(spread.shape, np.bool_), unranked, np.full(k, -np.inf), *ones)
    found = bethe_sums(one)
    # A set of items fills equal positions in as many ways as they can be ordered.
    orders = lgamma(copies + 1.0)
    positions = np.column_stack([found.links[:, : m - 1], found.links[:, m - 1 :].sum(axis=1)])
    return RankingSums(found.log_z - orders, found.lower - orders, found.upper - orders, positions, found.rows)
