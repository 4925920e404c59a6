"""Tables fitted to margins: the array-level function behind iterative proportional fitting and raking."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from markovfield.arrays import FloatArray
from markovfield.exceptions import ModelError
from markovfield.inference.core.running import STOPS, Running
from markovfield.kernels.interpreter import CELL, small
from markovfield.learning.tables.hull import Hull, plan_hull
from markovfield.learning.tables.scaling_kernel import LEFT, UNREACHABLE, calibrate, run_sweeps

__all__ = ["MarginFit", "Scaling", "fit_margins", "own_axes", "sorted_axes"]

# Cells of work between two looks at the clock, about 0.1 s; and sweeps over which a deviation must fall by a share.
CHUNK = 5e7
PATIENCE, LEAST_FALL = 500, 1e-3


@dataclass(frozen=True, eq=False)
class MarginFit:
    """What fitting margins gave.

    Attributes
    ----------
    log_factors
        One array for each margin, shaped like it: the fitted table is the product of their exponentials (and of the
        starting factors), and sums to one over the variables of the scopes. None where there was no margin.
    deviations
        The largest difference between a fitted and a wanted margin in each sweep, as a share of the total.
    converged, stalled, stopped
        Whether the last deviation is within the tolerance; whether it no longer falls; what ended it from outside.
    unreachable
        A margin and its cell (flat) that is wanted to be positive where no cell of the table can be; None where there
        is none.
    """

    hull: Hull
    log_factors: tuple[FloatArray | None, ...]
    deviations: FloatArray
    converged: bool
    stalled: bool = False
    stopped: str | None = None
    unreachable: tuple[int, int] | None = None


class Scaling:
    """The tables of a hull while margins are being fitted to them.

    Parameters
    ----------
    hull
        The plan.
    starts
        For each generator a table of factors (not negative) that the fit begins with, in the generator's own axis
        order and without variables of one state, or None for ones.
    """

    def __init__(self, hull: Hull, starts: Sequence[FloatArray | None]) -> None:
        self.hull = hull
        self.tables = np.ones(int(hull.set_at[-1]))
        self.log_factors = np.zeros(int(hull.factor_at[-1]))
        self.state = np.zeros(5)
        self.log_scale = np.zeros(len(hull.cliques))
        for g, start in enumerate(starts):
            k = int(hull.home[g])
            if start is not None and k >= 0:
                largest = float(start.max(initial=0.0)) or 1.0
                table = self.tables[hull.set_at[k] : hull.set_at[k + 1]]
                where = hull.projections[hull.starts[g]]
                outer = hull.index[where[0] : where[0] + where[1]]
                inner = hull.index[where[2] : where[2] + where[3]]
                table *= (start.ravel() / largest)[(outer[:, None] + inner).ravel()]
                self.log_scale[k] += math.log(largest)
        found: Any = calibrate(
            hull.parents, hull.separators, hull.up, hull.down, hull.projections, hull.index, hull.set_at, self.tables
        )
        self.log_scale += found[0]
        self.possible = bool(found[1])

    def sweep(
        self, targets: FloatArray, most: int, tolerance: float, program: npt.NDArray[np.int64] | None = None
    ) -> FloatArray:
        """Up to so many sweeps, or a chunk of work; the deviations of those that were completed.

        ``targets`` has a row for each sweep, or one for all; another program may be given.
        """
        hull = self.hull
        history = np.empty(most)
        self.state[LEFT] = CHUNK
        self.state[UNREACHABLE] = -1.0
        done: Any = run_sweeps(
            hull.program if program is None else program, hull.fits, hull.projections, hull.index, hull.set_at,
            self.tables, targets, hull.factor_at, self.log_factors, tolerance, history, self.state,
        )  # fmt: skip
        return history[:done]

    def normalised(self, anyone: int) -> FloatArray:
        """Logs of the factors, such that the fitted table sums to one.

        The factor ``anyone`` takes the constant of trees in which no margin is fitted.
        """
        hull = self.hull
        result = self.log_factors.copy()
        for root, g, scale in self._trees:
            # What the table at a root sums to is what the whole of its tree does.
            total = float(self.tables[hull.set_at[root] : hull.set_at[root + 1]].sum())
            if total > 0.0:
                taker = anyone if g is None else g
                result[hull.factor_at[taker] : hull.factor_at[taker + 1]] -= scale + math.log(total)
        return result

    @cached_property
    def _trees(self) -> list[tuple[int, int | None, float]]:
        """Each root, the first margin that is fitted in its tree, and the log of what its tables were divided by."""
        roots = self.hull.roots
        scales = np.bincount(roots, weights=self.log_scale, minlength=len(roots))
        taker: dict[int, int] = {}
        for g in self.hull.fits[:, 2].tolist():
            taker.setdefault(int(roots[self.hull.home[g]]), g)
        return [(root, taker.get(root), float(scales[root])) for root in np.unique(roots).tolist()]


def fit_margins(
    cardinalities: npt.ArrayLike,
    scopes: Sequence[Sequence[int]],
    margins: Sequence[npt.ArrayLike | None],
    *,
    starts: Sequence[npt.ArrayLike | None] | None = None,
    tolerance: float = 1e-8,
    max_iterations: int = 10_000,
    hull: Hull | None = None,
    running: Running | None = None,
) -> MarginFit:
    """Fit a table to margins by iterative proportional fitting on a tree of cliques (Murphy 19.60).

    Parameters
    ----------
    cardinalities
        ``int[n]``.
    scopes
        Positions of the variables of each margin, in the order of its axes.
    margins
        Tables of counts or probabilities, all of the same total, or None for a scope that is only a starting factor.
    starts
        Tables of factors (not negative) to begin with; a zero stays. None: ones.
    tolerance
        Largest difference of a margin, as a share of the total.
    hull
        A plan made before for the same scopes.

    Returns
    -------
    MarginFit
        A sweep takes time of the order of the cliques' states times the margins of each, far fewer in blocks.

    Examples
    --------
    >>> import numpy as np
    >>> fit = fit_margins([2, 2], [(0,), (1,)], [[52, 48], [87, 13]])
    >>> np.exp(fit.log_factors[0][:, None] + fit.log_factors[1]).round(4).tolist()
    [[0.4524, 0.0676], [0.4176, 0.0624]]
    """
    running = Running() if running is None else running
    cards = np.asarray(cardinalities)
    wanted = [m is not None for m in margins]
    if not any(wanted):
        raise ModelError("fit_margins needs at least one margin, got none")
    if hull is None:
        hull = plan_hull(cards, scopes, wanted)
    given = [None] * len(scopes) if starts is None else list(starts)
    sorted_starts = [
        None if s is None else sorted_axes(s, scope, cards) for s, scope in zip(given, scopes, strict=True)
    ]
    flat = [
        np.zeros(int(hull.factor_at[g + 1] - hull.factor_at[g]))
        if m is None
        else sorted_axes(m, scopes[g], cards).ravel()
        for g, m in enumerate(margins)
    ]
    targets = np.concatenate([np.zeros(0), *flat])[None, :]
    total = max((float(f.sum()) for f in flat), default=0.0) or 1.0
    plain = all(s is None for s in given)
    with small(CELL * hull.work):
        scaling = Scaling(hull, sorted_starts)
    exact = hull.decomposable and plain
    most = min(max_iterations, 1) if exact else max_iterations
    found: list[float] = []
    stopped, stalled = None, False
    while scaling.possible and len(hull.fits) and len(found) < most:
        # Some twenty sweeps are the rule.
        with small(20.0 * CELL * hull.work):
            found += scaling.sweep(targets, min(most - len(found), 1000), tolerance * total).tolist()
        if found and (found[-1] <= tolerance * total or scaling.state[UNREACHABLE] >= 0.0):
            break
        stalled = len(found) > PATIENCE and found[-1] > (1.0 - LEAST_FALL) * found[-1 - PATIENCE]
        if stalled or len(found) >= most:
            break
        try:
            running.check(found[-1] / total if found else None)
        except STOPS as stop:
            stopped = str(stop) or type(stop).__name__
            running.remember(stop)
            break
    result = scaling.normalised(wanted.index(True))
    at = int(scaling.state[UNREACHABLE]) if len(found) else -1
    g = int(np.searchsorted(hull.factor_at, at, side="right")) - 1
    deviations = np.array(found) / total
    reached = not len(hull.fits) or bool(found and (exact or deviations[-1] <= tolerance))
    return MarginFit(
        hull,
        tuple(
            own_axes(result[hull.factor_at[i] : hull.factor_at[i + 1]], scopes[i], cards) if wanted[i] else None
            for i in range(len(scopes))
        ),
        deviations,
        scaling.possible and at < 0 and reached and stopped is None,
        stalled,
        stopped,
        (g, at - int(hull.factor_at[g])) if at >= 0 else None,
    )


def sorted_axes(table: npt.ArrayLike, scope: Sequence[int], cards: Any) -> FloatArray:
    """A table with its axes in rising order of the variables."""
    shaped = np.asarray(table, np.float64).reshape([int(cards[v]) for v in scope])
    order = sorted(range(len(scope)), key=lambda i: scope[i])
    return np.ascontiguousarray(shaped.transpose(order))


def own_axes(flat: FloatArray, scope: Sequence[int], cards: Any) -> FloatArray:
    """The inverse: a flat table of the sorted variables with its axes as in the scope."""
    order = sorted(range(len(scope)), key=lambda i: scope[i])
    shaped = flat.reshape([int(cards[scope[i]]) for i in order])
    back = sorted(range(len(scope)), key=lambda i: order[i])
    return np.ascontiguousarray(shaped.transpose(back))
