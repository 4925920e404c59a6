"""The graphical lasso as a problem of arrays: components by themselves, Newton steps, a duality gap at the end.

Minimised over positive definite X: ``-log det X + tr(S X) + sum_ij penalty w_ij |X_ij|``. Its dual is to maximise
``log det V + n`` over V with ``|V - S| <= penalty w``; the inverse of a good X, moved into that box, gives a bound.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from markovfield.arrays import FloatArray, IntArray
from markovfield.exceptions import ModelError
from markovfield.inference.core.running import Running
from markovfield.learning.gaussian.conjugate_gradients import conjugate_gradients
from markovfield.learning.gaussian.graph_maximum_kernel import hessian_product
from markovfield.learning.gaussian.lasso_kernel import components, descend, mirror, pattern, scan

__all__ = ["ALIKE", "LassoMinimum", "blocks_of", "cholesky", "dense", "inverse_of", "minimise", "objective_and_gap"]

ALIKE = np.ones((1, 1))
"""Weights of a penalty that is the same for every entry."""
SUFFICIENT = 1e-3
"""Of the decrease that a step's first-order part promises, the share that must come true."""
SHARE = 0.1
"""A step is good enough when a sweep moves it by no more than this part of its first sweep."""
SHORTEST = 2.0**-40
MOST_POLISHED = 60
ROUNDING = 1e-13
"""Part of the objective that it cannot be told to."""
STUCK = 4
"""So many steps in a row that come no nearer end the search: the rest is rounding."""


@dataclass(frozen=True, eq=False)
class LassoMinimum:
    """A minimum: ``precision`` is a SciPy CSC array, ``objective`` at most ``gap`` above the least there is."""

    precision: Any
    objective: float
    gap: float
    log_determinant: float
    iterations: int
    converged: bool
    components: tuple[IntArray, ...]


def cholesky(matrix: FloatArray) -> FloatArray | None:
    """The upper factor of a symmetric matrix in the upper triangle of a new array; None where not positive definite."""
    from scipy.linalg import lapack

    # The rows of the new array are columns to LAPACK, which so has nothing to copy.
    factor, failed = lapack.dpotrf(np.array(matrix, order="C").T, lower=1, overwrite_a=1, clean=0)
    return None if failed else factor.T


def inverse_of(factor: FloatArray) -> FloatArray:
    """The inverse of the matrix that was factorised, in the factor's own array."""
    from scipy.linalg import lapack

    inverse, failed = lapack.dpotri(factor.T, lower=1, overwrite_c=1)
    if failed:
        raise ModelError("a precision became singular: give a larger penalty")
    found: FloatArray = inverse.T
    mirror(found)
    return found


def dense(precision: Any) -> FloatArray:
    """A sparse or dense matrix as an array in rows."""
    return np.ascontiguousarray(precision.toarray() if hasattr(precision, "toarray") else precision, np.float64)


def blocks_of(s: FloatArray, penalty: float, weights: FloatArray = ALIKE) -> list[IntArray]:
    """Variables that hang together at a penalty, by the covariances alone (Witten, Friedman and Simon 2011)."""
    label = np.empty(len(s), np.int64)
    components(s, penalty, weights, label)
    order = np.argsort(label, kind="stable")
    cuts = np.flatnonzero(np.diff(label[order])) + 1
    return [np.asarray(block) for block in np.split(order, cuts)]


def _part(matrix: FloatArray, block: IntArray) -> FloatArray:
    """The rows and columns of a component."""
    return matrix if len(block) == len(matrix) else np.ascontiguousarray(matrix[np.ix_(block, block)])


def minimise(
    s: FloatArray,
    penalty: float,
    weights: FloatArray = ALIKE,
    *,
    diagonal: float = 0.0,
    start: Any = None,
    tolerance: float = 1e-6,
    max_iterations: int = 100,
    running: Running | None = None,
) -> LassoMinimum:
    """The minimum for a covariance ``s`` in rows, to a duality gap of ``tolerance``.

    ``weights`` multiply the penalty, entry by entry, or are `ALIKE`; ``diagonal`` multiplies it once more on the
    diagonal. ``start`` is a positive definite precision to begin with. For a component of m variables and k entries, an
    iteration takes some m^3 operations of LAPACK and a few m k.
    """
    from scipy import sparse

    n = len(s)
    s = s if (s == s.T).all() else (s + s.T) / 2
    rows, columns, values = [], [], []
    objective, gap, log_determinant, iterations, converged = 0.0, 0.0, 0.0, 0, True
    blocks = blocks_of(s, penalty, weights)
    single = np.array([b[0] for b in blocks if len(b) == 1], np.int64)
    if len(single):
        own = weights[single, single] if len(weights) > 1 else weights[0, 0]
        total = s[single, single] + penalty * diagonal * own
        rows.append(single)
        columns.append(single)
        values.append(1 / total)
        objective += float(np.log(total).sum()) + len(single)
        log_determinant -= float(np.log(total).sum())
    begin = sparse.csr_array(start) if start is not None and len(blocks) > 1 else start
    for block in blocks:
        if len(block) == 1:
            continue
        first = None
        if begin is not None:
            first = dense(begin if len(blocks) == 1 else begin[block][:, block])
        own = weights if len(weights) == 1 else _part(weights, block)
        found = _Component(_part(s, block), penalty, own, diagonal)
        iterations = max(iterations, found.run(first, tolerance * len(block) / n, max_iterations, running))
        i, j, x = found.entries()
        rows.append(block[i])
        columns.append(block[j])
        values.append(x)
        objective += found.objective
        gap += found.gap
        log_determinant += found.log_determinant
        converged &= found.converged
    made = sparse.coo_array((np.concatenate(values), (np.concatenate(rows), np.concatenate(columns))), shape=(n, n))
    return LassoMinimum(made.tocsc(), objective, gap, log_determinant, iterations, converged, tuple(blocks))


class _Component:
    """Variables that hang together, and a precision on its way to their minimum."""

    def __init__(self, s: FloatArray, penalty: float, weights: FloatArray, diagonal: float) -> None:
        self.s, self.penalty, self.weights, self.diagonal = s, float(penalty), weights, float(diagonal)
        n = len(s)
        self.rows, self.columns = np.empty(n * (n + 1) // 2, np.int32), np.empty(n * (n + 1) // 2, np.int32)
        self.objective, self.gap, self.log_determinant = math.inf, math.inf, 0.0
        self.converged = False

    def _bounds(self, i: Any, j: Any) -> FloatArray:
        weights = self.weights[i, j] if len(self.weights) > 1 else self.weights[0, 0]
        return np.asarray(self.penalty * weights * np.where(i == j, self.diagonal, 1.0))

    def run(self, start: FloatArray | None, tolerance: float, most: int, running: Running | None) -> int:
        """Newton steps until the gap is at most the tolerance."""
        s = self.s
        factor = None if start is None else cholesky(start)
        self.x = np.diag(1 / (np.diag(s) + self._bounds(np.arange(len(s)), np.arange(len(s)))))
        if start is not None and factor is not None:
            self.x = start
        if factor is None:
            factor = np.sqrt(self.x)
        wanted, nearest, idle = tolerance, math.inf, 0
        for turn in range(most + 1):
            self.log_determinant = 2 * float(np.log(np.diag(factor)).sum())
            w = inverse_of(factor)
            setting = self.penalty, self.weights, self.diagonal
            found, slack, excess = scan(s, w, self.x, *setting, self.rows, self.columns)
            if running is not None:
                running.check()
            idle = 0 if slack + excess < 0.9 * nearest else idle + 1
            nearest = min(nearest, slack + excess)
            last = turn == most or (idle >= STUCK and nearest <= ROUNDING**0.5)
            if slack + excess <= wanted or last:
                self._close(w)
                if self.gap <= tolerance or last:
                    break
                wanted /= 4.0
            factor = self._step(w, found, 3 + 2 * turn)
            if factor is None:
                # Rounding leaves no descent.
                self._close(w)
                break
        self.converged = self.gap <= max(tolerance, ROUNDING * max(10.0 * len(s), abs(self.objective)))
        return turn

    def _step(self, w: FloatArray, found: int, sweeps: int) -> FloatArray | None:
        """A Newton step, shortened until the objective falls enough; the new factor, or None where it does not."""
        n = len(self.s)
        rows, columns = self.rows[:found], self.columns[:found]
        size = 2 * found - int((rows == columns).sum())
        starts, every, twins = np.empty(n + 1, np.int64), np.empty(size, np.int64), np.empty(size, np.int64)
        pattern(rows, columns, found, starts, every, twins)
        d = np.zeros(size)
        setting = self.penalty, self.weights, self.diagonal
        made = descend(self.s, w, self.x, *setting, starts, every, twins, d, sweeps, SHARE)
        at = np.repeat(np.arange(n), np.diff(starts)), every
        x, s, bound = self.x[at], self.s[at], self._bounds(*at)
        if made == sweeps:
            layout = starts, every, twins
            d = _polished(w, d, x, s - w[at], bound, at, layout)
            # Twins that rounding has parted would part for good where only one of them is zero.
            d = d[np.where(at[0] <= at[1], np.arange(size), twins)]
        before = -self.log_determinant + float(s @ x + bound @ np.abs(x))
        slope = float((s - w[at]) @ d + bound @ np.abs(x + d) - bound @ np.abs(x))
        length = 1.0
        while length >= SHORTEST:
            moved = x + length * d
            self.x[at] = moved
            factor = cholesky(self.x)
            if factor is not None:
                value = -2 * float(np.log(np.diag(factor)).sum()) + float(s @ moved + bound @ np.abs(moved))
                if value <= before + SUFFICIENT * length * slope + ROUNDING * max(1.0, abs(before)):
                    return factor
            length /= 2
        self.x[at] = x
        return None

    def _close(self, w: FloatArray) -> None:
        self.objective, self.gap = objective_and_gap(
            self.s, self.x, w, self.log_determinant, self.penalty, self.weights, self.diagonal
        )

    def entries(self) -> tuple[IntArray, IntArray, FloatArray]:
        """The entries that are not zero."""
        i, j = np.nonzero(self.x)
        return i, j, self.x[i, j]


def _polished(
    w: FloatArray, d: FloatArray, x: FloatArray, g: FloatArray, bound: FloatArray, at: Any, layout: tuple[Any, ...]
) -> FloatArray:
    """The step that coordinate descent left unfinished, bettered by conjugate gradients where it is not zero.

    Where covariances are nearly singular, coordinates move by little at a time, all together by much. Signs are held;
    what would change its sign becomes zero, if that is better than to stop where the first one does.
    """
    inside = x + d != 0
    sign = np.sign(x + d)
    curved = np.empty(len(d))
    starts, columns, twins = layout

    def value(step: FloatArray) -> float:
        hessian_product(w, starts, columns, twins, step, curved)
        return float(g @ step + 0.5 * step @ curved + bound @ np.abs(x + step))

    before = value(d)
    residual = np.where(inside, -(g + bound * sign + curved), 0.0)
    more = conjugate_gradients(w, residual, at, layout, inside=inside, most=MOST_POLISHED, share=1e-1)
    moved = d + more
    crossed = (x + moved) * sign < 0
    if not crossed.any():
        return moved
    clipped = np.where(crossed, -x, moved)
    if value(clipped) < before:
        return clipped
    part = float(np.min((x + d)[crossed] / -more[crossed]))
    return d + part * more


def objective_and_gap(
    s: FloatArray,
    x: FloatArray,
    w: FloatArray,
    log_determinant: float,
    penalty: float,
    weights: FloatArray = ALIKE,
    diagonal: float = 0.0,
) -> tuple[float, float]:
    """The objective at X, whose inverse is about W, and how far above the least value it can be: any X, a proven bound.

    The gap is infinite where W, moved to within the penalty of S, is not positive definite.
    """
    bound = np.broadcast_to(penalty * weights, s.shape).copy() if len(weights) == 1 else penalty * weights
    np.fill_diagonal(bound, np.diag(bound) * diagonal)
    there = x != 0
    value = -log_determinant + float((s[there] * x[there]).sum() + (bound[there] * np.abs(x[there])).sum())
    factor = cholesky(s + np.clip(w - s, -bound, bound))
    if factor is None:
        return value, math.inf
    return value, value - 2 * float(np.log(np.diag(factor)).sum()) - len(s)
