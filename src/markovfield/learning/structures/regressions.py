"""All full conditionals of a pairwise model at once: penalised multinomial regressions, tied or each by itself."""

from __future__ import annotations

import math
from contextlib import AbstractContextManager

import numpy as np
import numpy.typing as npt

from markovfield.arrays import BoolArray, FloatArray, offsets_of
from markovfield.exceptions import MemoryLimitError
from markovfield.inference.core.limits import format_bytes, memory_limit_bytes
from markovfield.inference.core.running import Running
from markovfield.learning.structures.coded_rows import CodedRows
from markovfield.learning.structures.group_lasso_kernel import (
    descend,
    group_norms,
    group_slopes,
    node_terms,
)

__all__ = ["Regressions", "one_blas_thread"]

UNSEEN = 0.01
"""Ridge of the own terms of a variable one of whose states has no weight: otherwise they would have no finite
optimum."""
SWEEPS = 1000
BLOCK = 32
"""Rows of the gradient at a time, side by side."""


def one_blas_thread() -> AbstractContextManager[object]:
    """In it, products of matrices keep to the thread that asks for them: nodes run side by side already."""
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    limits: AbstractContextManager[object] = threadpool_limits(1, user_api="blas")
    return limits


class _Layout:
    """Where the parameters of some groups lie, node by node (see `group_lasso_kernel`)."""

    def __init__(self, pairs: npt.NDArray[np.intp], offsets: npt.NDArray[np.int64], tied: bool) -> None:
        widths = np.diff(offsets)
        n, g = len(widths), len(pairs)
        node, other = np.concatenate([pairs, pairs[:, ::-1]]).T if tied else pairs.T
        order = np.lexsort((other, node))
        width = widths[other][order]
        ends = np.cumsum(width)
        features = np.bincount(node, widths[other], n).astype(np.int64)
        before = offsets_of(features)
        column = np.empty(len(node), np.int64)
        column[order] = 1 + ends - width - before[node[order]]
        second = column[g:] if tied else np.full(g, -1)
        self.groups = np.column_stack([pairs, column[:g], second]).astype(np.int64)
        read = np.repeat(offsets[other][order] - (ends - width), width) + np.arange(len(width) and ends[-1])
        self.columns = np.split(read, before[1:-1]) if n else []
        self.widths = widths
        self.sizes = (1 + features) * widths
        self.starts = offsets_of(self.sizes)
        self.own = np.repeat(self.starts[:-1] - offsets[:-1], widths) + np.arange(offsets[-1])
        self.places = offsets_of(self.sizes**2)


class Regressions:
    """Full conditionals of every variable given all others, fitted together.

    With contrasts z of the states, variable s has log-potentials ``C_s (own_s + sum over t of coupling_st z_t)``. What
    is minimised is minus the sum over rows (weighted) and variables of the log-probability of the variable's state
    given the others, plus ``penalty`` times the sum over groups of ``scales[s, t] |coupling_st|``, plus l2 / 2 times
    the sum over variables of (K - 1) / K ``|own_s|^2``. A group is the block of a pair, which both conditionals share
    (`tied`: pseudo-likelihood), or that of an ordered pair.

    Newton's method on the groups that may be nonzero, each quadratic model minimised by coordinate descent; one product
    over all pairs then tells whether others have to join. A step takes, for r rows, n variables and d neighbours, r n
    d^2 multiplications, the product r n^2, both by columns (states less one) where there are more than two states.

    Parameters
    ----------
    rows
        The data.
    weights
        ``float64[rows]``, in place of those of the rows.
    tied
        Whether both conditionals of a pair share its parameters.
    l2
        See above.
    tolerance, max_iterations
        Newton steps end when no subgradient, by the weight of all rows, is longer.
    """

    def __init__(
        self,
        rows: CodedRows,
        weights: FloatArray | None = None,
        *,
        tied: bool = True,
        l2: float = 0.0,
        tolerance: float = 1e-7,
        max_iterations: int = 100,
        running: Running | None = None,
    ) -> None:
        self.rows, self.tied, self.tolerance, self.max_iterations = rows, tied, tolerance, max_iterations
        self.running = Running() if running is None else running
        weights = rows.weights if weights is None else weights
        live = weights > 0
        every = bool(live.all())
        self.weights = weights if every else np.ascontiguousarray(weights[live])
        self.features = rows.features if every else np.ascontiguousarray(rows.features[:, live])
        self.codes = rows.codes if every else np.ascontiguousarray(rows.codes[:, live])
        self.total = float(self.weights.sum())
        self.scales = rows.scales
        widths = rows.widths
        self.n_nodes = len(widths)
        self.ridges = l2 * widths / (widths + 1.0)
        self.residuals = np.zeros_like(self.features)
        d = len(self.features)
        self.coupling = np.zeros((d, d))
        self.own = np.zeros(d)
        self.iterations = 0
        self.loss = self.penalised = np.inf
        for s, contrasts in enumerate(rows.contrasts):
            counts = np.bincount(self.codes[s], self.weights, len(contrasts))
            if not counts.all():
                self.ridges[s] = max(self.ridges[s], UNSEEN)
            self._part(self.own, s)[:] = contrasts.T @ np.log(np.maximum(counts, UNSEEN))
        self.converged = self._newton(self._layout(np.zeros((self.n_nodes, self.n_nodes), np.bool_)), 0.0)
        self.entering = self._entering()

    def _part(self, values: FloatArray, s: int) -> FloatArray:
        return values[self.rows.offsets[s] : self.rows.offsets[s + 1]]

    # ---- what is fitted ------------------------------------------------------------------------------------

    @property
    def norms(self) -> FloatArray:
        """``float64[p, p]``: of each block of the couplings, scaled as the penalty is; a spin's is its coupling's
        size."""
        return self._blocks(self.coupling) * self.scales

    @property
    def largest_penalty(self) -> float:
        """The least penalty that leaves no group, from the gradient at the present couplings."""
        return float(self.entering.max(initial=0.0))

    def _blocks(self, matrix: FloatArray) -> FloatArray:
        """Frobenius norms of the blocks of a matrix over all columns."""
        if len(matrix) == self.n_nodes:
            return np.abs(matrix)
        at = self.rows.offsets[:-1]
        return np.asarray(np.sqrt(np.add.reduceat(np.add.reduceat(matrix**2, at, axis=0), at, axis=1)))

    def _entering(self) -> FloatArray:
        """Penalty above which each group would be zero, were it alone: the norm of its gradient, by its scale."""
        self.running.check()
        if not len(self.features):
            return np.zeros((0, 0))
        slope = np.empty_like(self.coupling)

        def some(low: int) -> int:
            np.matmul(self.residuals[low : low + BLOCK], self.features.T, out=slope[low : low + BLOCK])
            return 0

        self.running.side_by_side([lambda low=low: some(low) for low in range(0, len(slope), BLOCK)])  # type: ignore[misc]
        if self.tied:
            slope = slope + slope.T
        found = self._blocks(slope) / self.scales
        np.fill_diagonal(found, 0.0)
        return np.triu(found) if self.tied else found

    def held_out(self, weights: FloatArray) -> float:
        """Log-pseudo-likelihood of the rows with other weights."""
        live = np.flatnonzero(weights)
        features, codes = self.rows.features[:, live], self.rows.codes[:, live]
        layout = self._layout(self.norms > 0)
        own = layout, self._gather(layout), features, codes, weights[live], np.empty_like(features)
        return -self._terms_of(*own)[0]

    # ---- fitting -------------------------------------------------------------------------------------------

    def minimise(self, penalty: float, before: float | None = None) -> bool:
        """Go from the present couplings to the minimum for a penalty; whether it was reached.

        ``before`` is the penalty of the present couplings: groups whose gradient could grow enough on the way (the
        strong rule of Tibshirani et al. 2012) are let in at once.
        """
        bar = penalty if before is None else max(2 * penalty - before, 0.5 * penalty)
        inside: BoolArray = (self.norms > 0) | (self.entering > bar)
        np.fill_diagonal(inside, False)
        slack = 1e-9 * penalty + self.tolerance * self.total
        while True:
            self.converged = self._newton(self._layout(inside), penalty)
            self.entering = self._entering()
            missed = (self.entering > penalty + slack / self.scales) & ~inside
            if not missed.any():
                return self.converged
            inside |= missed

    def minimise_within(self, inside: BoolArray, penalty: float) -> bool:
        """The minimum with couplings between some pairs only; whether it was reached."""
        self.coupling[~np.repeat(np.repeat(inside | inside.T, self.rows.widths, 0), self.rows.widths, 1)] = 0.0
        self.converged = self._newton(self._layout(inside), penalty)
        return self.converged

    def _layout(self, inside: BoolArray) -> _Layout:
        return _Layout(np.argwhere(np.triu(inside, 1) if self.tied else inside), self.rows.offsets, self.tied)

    def _newton(self, layout: _Layout, penalty: float) -> bool:
        # Two of them are held while steps are tried.
        needed, limit = 16.0 * float(layout.places[-1]), memory_limit_bytes(None)
        if needed > limit:
            raise MemoryLimitError(
                f"couplings of {len(layout.groups)} pairs at once need {format_bytes(math.log2(needed))}, more than "
                f"the limit of {format_bytes(math.log2(limit))}: take a larger penalty, or join rare states"
            )
        penalties = penalty * self.scales[layout.groups[:, 0], layout.groups[:, 1]]
        shape = layout.starts, layout.widths, layout.groups
        enough = self.tolerance * self.total
        theta = self._gather(layout)
        value, slope, hessian = self._terms(layout, theta)
        objective = value + self._penalty(layout, theta, penalties)
        reached = False
        for _ in range(self.max_iterations):
            worst = group_slopes(theta, slope, *shape, penalties, self.ridges)
            reached = worst <= enough
            if reached:
                break
            self.running.check(objective)
            self.iterations += 1
            wanted, model = theta.copy(), slope.copy()
            descend(
                wanted, model, hessian, layout.starts, layout.sizes, layout.places, layout.widths, layout.groups,
                penalties, self.ridges, max(0.02 * worst, 0.1 * enough), SWEEPS,
            )  # fmt: skip
            direction = wanted - theta
            target = self._penalty(layout, wanted, penalties)
            promised = float(slope @ direction) + target - (objective - value)
            step = 1.0
            while step > 1e-6:
                trial = theta + step * direction if step < 1 else wanted
                value_there, slope_there, hessian_there = self._terms(layout, trial)
                there = self._penalty(layout, trial, penalties) + value_there
                if there <= objective + 1e-4 * step * promised + 1e-13 * abs(objective):
                    break
                step /= 2
            else:  # rounding leaves nothing to gain
                self._terms(layout, theta)
                break
            theta, value, slope, hessian, objective = trial, value_there, slope_there, hessian_there, there
        self._scatter(layout, theta)
        self.loss, self.penalised = value, objective
        return bool(reached)

    def _penalty(self, layout: _Layout, theta: FloatArray, penalties: FloatArray) -> float:
        norms = np.empty(len(penalties))
        group_norms(theta, layout.starts, layout.widths, layout.groups, norms)
        return float(penalties @ norms) + 0.5 * float(np.repeat(self.ridges, layout.widths) @ theta[layout.own] ** 2)

    def _gather(self, layout: _Layout) -> FloatArray:
        theta = np.empty(layout.starts[-1])
        for s, columns in enumerate(layout.columns):
            block = theta[layout.starts[s] : layout.starts[s + 1]].reshape(-1, layout.widths[s])
            block[0] = self._part(self.own, s)
            block[1:] = self._part(self.coupling, s)[:, columns].T
        return theta

    def _scatter(self, layout: _Layout, theta: FloatArray) -> None:
        for s, columns in enumerate(layout.columns):
            block = theta[layout.starts[s] : layout.starts[s + 1]].reshape(-1, layout.widths[s])
            self._part(self.own, s)[:] = block[0]
            self._part(self.coupling, s)[:, columns] = block[1:].T

    def _terms(self, layout: _Layout, theta: FloatArray) -> tuple[float, FloatArray, FloatArray]:
        return self._terms_of(layout, theta, self.features, self.codes, self.weights, self.residuals)

    def _terms_of(
        self,
        layout: _Layout,
        theta: FloatArray,
        features: FloatArray,
        codes: npt.NDArray[np.int16],
        weights: FloatArray,
        residuals: FloatArray,
    ) -> tuple[float, FloatArray, FloatArray]:
        """The loss, its gradient and the nodes' Hessians, with residuals written. Nodes are done side by side."""
        losses, slope, hessian = np.empty(self.n_nodes), np.empty(len(theta)), np.empty(layout.places[-1])

        def node(s: int) -> int:
            a, here = layout.widths[s], slice(layout.starts[s], layout.starts[s + 1])
            losses[s] = node_terms(
                features,
                layout.columns[s],
                theta[here].reshape(-1, a),
                codes[s],
                weights,
                self.rows.contrasts[s],
                self._part(residuals, s),
                slope[here].reshape(-1, a),
                hessian[layout.places[s] : layout.places[s + 1]].reshape(-1, a, layout.sizes[s] // a, a),
            )
            return 0

        self.running.side_by_side([lambda s=s: node(s) for s in range(self.n_nodes)])  # type: ignore[misc]
        return float(losses.sum()), slope, hessian
