"""Cutting planes: ask the oracle of every example, solve the dual over all planes so far, and again.

With n slacks every example has planes of its own (Murphy algorithm 19.3; Tsochantaridis et al. 2005); with one slack
an iteration adds the sum of all of them as one plane (algorithm 19.4; Joachims, Finley and Yu 2009), as the bundle
method of Teo et al. (2010) does. The dual over what is kept is solved by `working_set`, from where it was.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from markovfield._validation import check_method
from markovfield.arrays import FloatArray
from markovfield.exceptions import ModelError
from markovfield.inference.core.running import STOPS, Running
from markovfield.learning.max_margin.problem import HingeProblem, MarginMinimum, Planes, Watch, only_squares
from markovfield.learning.max_margin.working_set import WorkingSet
from markovfield.learning.max_margin.working_set_kernel import PAIRWISE, climb

__all__ = ["CuttingPlane"]

# Steps on the one block of summed planes, and the part of the largest loss that a gap there may be.
MOST, SMALL = 20_000, 1e-10
# Where a pass leaves more of the gap than this, the dual over what is kept was not near enough to its end.
SLOW = 0.8
# Halvings of the interval that the multiplier of a level is searched in, by its logarithm.
HALVINGS = 40


@dataclass(frozen=True)
class CuttingPlane:
    """Cutting planes with n slacks or with one.

    Parameters
    ----------
    slack
        ``"n"``: planes of every example by themselves, fewer passes. ``"one"``: their sum as one plane, less memory.
    gap
        Ends where primal less dual is below this share of the primal.
    max_passes
        Over all examples.
    keep
        Planes without mass are forgotten after so many passes.
    level
        None: the oracle is asked at the minimum of the planes so far. A number from 0 to 1, with one slack: at the
        point that is nearest to the best weights so far among those where planes are below a level, which is so far up
        from the dual to the best primal (Lemaréchal et al. 1995); it keeps steps short where planes tell little.

    Examples
    --------
    >>> import markovfield as mf
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], ["a", "a", "b", "b"]
    >>> svm = mf.MulticlassCRF(objective="hinge", solver=CuttingPlane("one", level=0.5), l2=0.1).fit(X, y)
    >>> svm.report_.converged
    True
    """

    slack: Literal["n", "one"] = "n"
    gap: float = 1e-3
    max_passes: int = 1000
    keep: int = 50
    level: float | None = None

    name: ClassVar[str] = "cutting_plane"

    def __post_init__(self) -> None:
        check_method(self, least={"max_passes": 1, "keep": 1, "gap": 0.0}, above={"level": 0.0}, below={"level": 1.0})
        if self.slack not in ("n", "one"):
            raise ModelError(f"CuttingPlane(slack=...) must be 'n' or 'one', got {self.slack!r}")
        if self.level is not None and self.slack == "n":
            raise ModelError("CuttingPlane(level=...) is for slack='one'; leave it None")

    def run(self, problem: HingeProblem, *, rng: np.random.Generator, running: Running) -> MarginMinimum:
        """Minimise; what stops it ends it with the best weights so far."""
        dual: _Joint | _Separate
        if self.slack == "one":
            only_squares(problem, "CuttingPlane('one')")
        dual = _Joint(problem, self.keep) if self.slack == "one" else _Separate(problem, self.keep, rng)
        watch = Watch(problem, running)
        message, at = "as many passes as were allowed", dual.w
        try:
            for _ in range(self.max_passes):
                found, primal = watch.everywhere(at)
                watch.note(primal, dual.value)
                if watch.closed(dual.value, self.gap):
                    break
                dual.add(found, watch.primal - dual.value)
                at = dual.w
                if self.level is not None and isinstance(dual, _Joint):
                    at = dual.nearest(watch.weights, dual.value + self.level * (watch.primal - dual.value))
        except STOPS as stop:
            message = str(stop) or "stopped by the keyboard"
        if not len(watch.weights):
            watch.weights = dual.w.copy()
        return watch.ended(dual.value, self.gap, message, n_planes=dual.n_planes)


def _kept(problem: HingeProblem) -> WorkingSet:
    return WorkingSet(problem.costs, problem.n_weights, restraint=problem.restraint)


class _Separate:
    """Planes of every example."""

    def __init__(self, problem: HingeProblem, keep: int, rng: np.random.Generator) -> None:
        self._set, self._keep, self._rng = _kept(problem), keep, rng
        self._share, self._gap = 1e-3, np.inf

    @property
    def w(self) -> FloatArray:
        return self._set.w

    @property
    def value(self) -> float:
        return self._set.dual

    @property
    def n_planes(self) -> int:
        return self._set.n_planes

    def add(self, found: list[Planes], gap: float) -> None:
        for planes in found:
            self._set.add(planes)
        # To the end, or so near to it that the oracle has more to give.
        if gap > SLOW * self._gap:
            self._share = max(0.1 * self._share, 1e-7)
        self._gap = gap
        self._set.settle(self._rng, self._share * gap, 1000)
        self._set.forget(self._keep)
        self._set.refresh()


class _Joint:
    """Sums over all examples, as one block of which inner products are kept."""

    def __init__(self, problem: HingeProblem, keep: int) -> None:
        n_weights = problem.n_weights
        self.w, self.value = np.zeros(n_weights), 0.0
        self._keep, self._costs = keep, problem.costs
        # The true outputs are a plane too, and have all mass first.
        self._planes, self._losses, self._masses = np.zeros((1, n_weights)), np.zeros(1), np.ones(1)
        self._gram, self._age = np.zeros((1, 1)), np.zeros(1, np.int64)

    @property
    def n_planes(self) -> int:
        return len(self._losses) - 1

    def add(self, found: list[Planes], gap: float) -> None:
        sums = [planes.summed(len(self.w), self._costs[planes.blocks]) for planes in found]
        a, b = np.sum([a for a, _ in sums], axis=0), sum(b for _, b in sums)
        inner = self._planes @ a
        self._planes = np.vstack([self._planes, a])
        self._gram = np.block([[self._gram, inner[:, None]], [inner[None, :], np.array([[a @ a]])]])
        self._losses, self._masses = np.append(self._losses, b), np.append(self._masses, 0.0)
        self._age = np.append(self._age, 0)
        _climb(self._gram, self._losses, self._masses)
        self.w = self._masses @ self._planes
        self.value = float(self._masses @ self._losses) - 0.5 * float(self.w @ self.w)
        self._age = np.where(self._masses > 0.0, 0, self._age + 1)
        kept = np.flatnonzero((self._age <= self._keep) | (np.arange(len(self._age)) == 0))
        self._planes, self._gram = self._planes[kept], self._gram[np.ix_(kept, kept)]
        self._losses, self._masses, self._age = self._losses[kept], self._masses[kept], self._age[kept]

    def nearest(self, centre: FloatArray, level: float) -> FloatArray:
        """The weights nearest to a centre at which half their square and the highest plane are below a level.

        With a multiplier t of the level these are ``(centre + t sum of mass times plane) / (1 + t)``, and the masses
        solve a dual like that of `climb`; t is found by halving, as the value falls in it.
        """
        products, masses = self._planes @ centre, self._masses.copy()
        low, high, best = -10.0, 20.0, self.w
        for _ in range(HALVINGS):
            t = float(np.exp((low + high) / 2.0))
            scale = t / (1.0 + t)
            _climb(scale * self._gram, self._losses - products / (1.0 + t), masses)
            w = (centre + t * (masses @ self._planes)) / (1.0 + t)
            value = 0.5 * float(w @ w) + float((self._losses - self._planes @ w).max())
            if value <= level:
                best, high = w, (low + high) / 2.0
            else:
                low = (low + high) / 2.0
        return best


def _climb(gram: FloatArray, losses: FloatArray, masses: FloatArray) -> None:
    """Masses of the greatest dual of one block, in place."""
    n = len(losses)
    flat = np.ascontiguousarray(gram).ravel()
    enough = SMALL * max(1.0, float(np.abs(losses).max()))
    climb(flat, 0, n, n, losses - gram @ masses, masses, 1.0, MOST, 0.0, enough, PAIRWISE, np.empty(n))
