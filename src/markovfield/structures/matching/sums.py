"""Sums over the matchings of one instance: exact where tables fit, otherwise Bethe's lower bound and an upper one."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from markovfield.arrays import BoolArray, FloatArray, IntArray
from markovfield.structures.matching.bethe_kernel import bethe_messages
from markovfield.structures.matching.permanent_kernel import permanent_counts, permanent_draws, permanent_tables

__all__ = ["LARGEST_TABLE", "Instance", "MatchingSums", "bethe_sums", "exact_draws", "exact_sums", "table_size"]

# Numbers in the tables of the dynamic program, at most: a perfect matching of 20 has half of it (0.4 GB).
LARGEST_TABLE = 1e8


class Instance(NamedTuple):
    """Scores of an instance, relative to those of absent links; rows and columns may have changed places."""

    links: FloatArray
    forced: BoolArray
    rows: FloatArray
    columns: FloatArray
    row_limits: IntArray
    column_limits: IntArray

    def turned(self) -> Instance:
        """With rows as columns."""
        return Instance(
            np.ascontiguousarray(self.links.T),
            np.ascontiguousarray(self.forced.T),
            self.columns,
            self.rows,
            self.column_limits,
            self.row_limits,
        )


class MatchingSums(NamedTuple):
    """log Z with bounds, and expected numbers of links and of rows and columns without one."""

    log_z: float
    lower: float
    upper: float
    links: FloatArray
    rows: FloatArray
    columns: FloatArray


def table_size(one: Instance) -> float:
    """Numbers in the tables of the dynamic program over the columns."""
    m, n = one.links.shape
    states = float(np.prod(one.column_limits + 1.0))
    return states * (m + 1 + (n + 1) * (1.0 + float(one.row_limits.max(initial=0))))


def _plan(one: Instance) -> tuple[Instance, bool]:
    """The instance in the orientation that has smaller tables, and whether it was turned."""
    other = one.turned()
    return (one, False) if table_size(one) <= table_size(other) else (other, True)


def _tables(one: Instance) -> tuple[Any, IntArray, float]:
    m, n = one.links.shape
    limits = one.column_limits
    radices = np.concatenate([[1], np.cumprod(limits + 1)]).astype(np.int64)
    states = int(radices[-1])
    digits = (np.arange(states)[:, None] // radices[:-1]) % (limits + 1)
    ends = np.where(digits == 0, one.columns, 0.0).sum(axis=1)
    steps = np.empty((n + 1, int(one.row_limits.max(initial=0)) + 1, states))
    tables = np.empty((m + 1, states))
    words = (one.links, one.forced, one.rows, ends, one.row_limits, radices[:-1].copy(), limits, steps, tables)
    return words, digits, permanent_tables(*words)


def exact_sums(one: Instance, counts: bool) -> MatchingSums:
    """By the dynamic program over the columns that are taken."""
    own, turned = _plan(one)
    words, digits, log_z = _tables(own)
    links, rows, columns = np.zeros(own.links.shape), np.zeros(len(own.rows)), np.zeros(len(own.columns))
    if counts and log_z > -np.inf:
        final = permanent_counts(*(*words, log_z, links, rows))
        columns = final @ (digits == 0)
    found = (links.T, columns, rows) if turned else (links, rows, columns)
    return MatchingSums(log_z, log_z, log_z, *found)


def exact_draws(one: Instance, size: int, state: object) -> IntArray | None:
    """``int8[size, m, n]``: links of random matchings; None where none is possible."""
    own, turned = _plan(one)
    words, _, log_z = _tables(own)
    if log_z == -np.inf:
        return None
    drawn = np.zeros((size, *own.links.shape), np.int8)
    permanent_draws(*(*words, size, state, drawn))
    return drawn.transpose(0, 2, 1) if turned else drawn


def bethe_sums(one: Instance, max_iterations: int = 5000, tolerance: float = 1e-11) -> MatchingSums:
    """Bethe's approximation, a lower bound: links, rows and columns are where it is attained."""
    links, rows, columns = one.links, one.rows, one.columns
    beliefs, messages = np.empty(links.shape), np.empty(links.shape)
    bethe_messages(links, rows, columns, max_iterations, tolerance, beliefs, messages)
    beliefs = _feasible(beliefs, rows, columns)
    alone = tuple(
        np.where(np.isneginf(scores), 0.0, np.maximum(1.0 - beliefs.sum(axis=axis), 0.0))
        for axis, scores in ((1, rows), (0, columns))
    )
    # Expected scores and entropies of rows and of columns, less those of links, which both have.
    value = sum(_gain(p, s) - _x_log_x(p) for p, s in ((beliefs, links), (alone[0], rows), (alone[1], columns)))
    value = float(value + _x_log_x(1.0 - beliefs))
    uppers = [_row_bound(links, rows, columns, messages), _row_bound(links.T, columns, rows, None)]
    if np.isneginf(rows).all() and np.isneginf(columns).all():
        uppers.append(value + 0.5 * np.log(2.0) * len(rows))
    return MatchingSums(value, value, max(value, min(uppers)), beliefs, *alone)


def _feasible(beliefs: FloatArray, rows: FloatArray, columns: FloatArray) -> FloatArray:
    """Beliefs whose rows and columns have at most one link, and exactly one where they must: by scaling."""
    for _ in range(20):
        for axis, scores in ((1, rows), (0, columns)):
            totals = beliefs.sum(axis=axis)
            factors = np.where(np.isneginf(scores) & (totals > 0), totals, np.maximum(totals, 1.0))
            beliefs = beliefs / np.expand_dims(np.where(factors > 0, factors, 1.0), axis)
        if not np.isneginf(rows).any() and not np.isneginf(columns).any():
            break
    return beliefs


def _gain(p: FloatArray, scores: FloatArray) -> float:
    used = (p > 0) & (scores > -np.inf)
    return float(p[used] @ scores[used])


def _x_log_x(p: FloatArray) -> float:
    positive = p[p > 0]
    return float(positive @ np.log(positive))


def _row_bound(links: FloatArray, rows: FloatArray, columns: FloatArray, messages: FloatArray | None) -> float:
    """A bound by letting every row choose for itself, after columns have been given any scores above their own."""
    raised = [np.where(np.isfinite(columns), columns, 0.0)]
    if messages is not None:
        raised.append(np.logaddexp(columns, np.logaddexp.reduce(messages, axis=0)))
    bounds = []
    for own in raised:
        if np.isfinite(own).all():
            each = np.logaddexp(rows, np.logaddexp.reduce(links - own, axis=1, initial=-np.inf))
            bounds.append(float(each.sum() + own.sum()))
    return min(bounds, default=np.inf)
