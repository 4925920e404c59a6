"""Cutting planes: ask the oracle of every example, solve the dual over all planes so far, and again.

With n slacks every example has planes of its own (Murphy algorithm 19.3; Tsochantaridis et al. 2005); with one slack
an iteration adds the sum of all of them as one plane (algorithm 19.4; Joachims, Finley and Yu 2009), as the bundle
method of Teo et al. (2010) does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from markovfield._validation import check_method
from markovfield.arrays import FloatArray
from markovfield.exceptions import ModelError
from markovfield.inference.core.running import STOPS, Running
from markovfield.learning.max_margin.problem import HingeProblem, MarginMinimum, Planes, Watch
from markovfield.learning.max_margin.working_set import WorkingSet
from markovfield.learning.max_margin.working_set_kernel import ascend_gram

__all__ = ["CuttingPlane"]


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
    """

    slack: Literal["n", "one"] = "n"
    gap: float = 1e-3
    max_passes: int = 1000
    keep: int = 50

    name: ClassVar[str] = "cutting_plane"

    def __post_init__(self) -> None:
        check_method(self, least={"max_passes": 1, "keep": 1, "gap": 0.0})
        if self.slack not in ("n", "one"):
            raise ModelError(f"CuttingPlane(slack=...) must be 'n' or 'one', got {self.slack!r}")

    def run(self, problem: HingeProblem, *, rng: np.random.Generator, running: Running) -> MarginMinimum:
        """Minimise; what stops it ends it with the best weights so far."""
        dual: _Joint | _Separate
        dual = _Joint(problem, self.keep) if self.slack == "one" else _Separate(problem, self.keep, rng)
        watch = Watch(problem, running)
        message = "as many passes as were allowed"
        try:
            for _ in range(self.max_passes):
                found, primal = watch.everywhere(dual.w)
                watch.note(primal, dual.value)
                if watch.primal - dual.value <= self.gap * abs(watch.primal):
                    break
                dual.add(found, primal - dual.value)
        except STOPS as stop:
            message = str(stop) or "stopped by the keyboard"
        if not len(watch.weights):
            watch.weights = dual.w.copy()
        return watch.ended(dual.value, self.gap, message, n_planes=dual.n_planes)


class _Separate:
    """Planes of every example."""

    def __init__(self, problem: HingeProblem, keep: int, rng: np.random.Generator) -> None:
        self._set, self._keep, self._rng = WorkingSet(problem.costs, problem.n_weights), keep, rng

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
        blocks = len(self._set.costs)
        for _ in range(1000):
            if self._set.ascend(self._rng.permutation(blocks), 10) <= 1e-4 * gap:
                break
        self._set.forget(self._keep)


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
        return len(self._losses)

    def add(self, found: list[Planes], gap: float) -> None:
        sums = [planes.summed(len(self.w), self._costs[planes.blocks]) for planes in found]
        a, b = np.sum([a for a, _ in sums], axis=0), sum(b for _, b in sums)
        inner = self._planes @ a
        self._planes = np.vstack([self._planes, a])
        self._gram = np.block([[self._gram, inner[:, None]], [inner[None, :], np.array([[a @ a]])]])
        self._losses, self._masses = np.append(self._losses, b), np.append(self._masses, 0.0)
        self._age = np.append(self._age, 0)
        enough = 1e-10 * max(1.0, float(np.abs(self._losses).max()))
        ascend_gram(np.ascontiguousarray(self._gram), self._losses, self._masses, 20_000, enough)
        self.w = self._masses @ self._planes
        self.value = float(self._masses @ self._losses) - 0.5 * float(self.w @ self.w)
        self._age = np.where(self._masses > 0.0, 0, self._age + 1)
        kept = np.flatnonzero((self._age <= self._keep) | (np.arange(len(self._age)) == 0))
        self._planes, self._gram = self._planes[kept], self._gram[np.ix_(kept, kept)]
        self._losses, self._masses, self._age = self._losses[kept], self._masses[kept], self._age[kept]
