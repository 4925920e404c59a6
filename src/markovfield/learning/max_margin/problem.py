"""Planes of a structural SVM, what a problem says of itself, and where a solver ends."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import numpy as np

from markovfield.arrays import FloatArray, IntArray
from markovfield.exceptions import ModelError
from markovfield.inference.core.running import Running
from markovfield.kernels.compilations import clock
from markovfield.learning.max_margin.restraint import Restraint

__all__ = ["HingeProblem", "MarginMinimum", "MarginPass", "Planes", "Watch", "only_squares", "weight_cost"]


class Planes(NamedTuple):
    """One plane for each of some blocks: its hinge is at least ``loss - <w, features>``.

    Attributes
    ----------
    blocks
        ``int64[n]``.
    offsets, columns, values
        Features as sparse rows.
    losses
        ``float64[n]``.
    """

    blocks: IntArray
    offsets: IntArray
    columns: IntArray
    values: FloatArray
    losses: FloatArray

    def heights(self, w: FloatArray) -> FloatArray:
        """``loss - <w, features>`` of each."""
        products = np.concatenate([[0.0], np.cumsum(w[self.columns] * self.values)])
        return np.asarray(self.losses - np.diff(products[self.offsets]))

    def summed(self, n_weights: int, factors: FloatArray) -> tuple[FloatArray, float]:
        """The sum of all planes, each with a factor."""
        spread = np.repeat(factors, np.diff(self.offsets))
        found = np.bincount(self.columns, self.values * spread, n_weights)
        return found.astype(np.float64), float(self.losses @ factors)


class HingeProblem(Protocol):
    """What solvers know.

    Attributes
    ----------
    n_weights
        Length of the vector of weights.
    costs
        ``float64[n_blocks]``: C times the weight of each example.
    shards
        Blocks that the oracle is asked of together.
    exact
        Whether the oracle finds the highest plane; where it may not, gaps are estimates.
    restraint
        What is asked of weights beside their squares, or None.
    """

    n_weights: int
    costs: FloatArray
    shards: list[IntArray]
    exact: bool
    restraint: Restraint | None

    def planes(self, w: FloatArray, shard: int, *, losses: bool = True) -> Planes:
        """The highest plane of each block of a shard; without ``losses`` the output of highest score."""
        ...


def weight_cost(w: FloatArray, restraint: Restraint | None) -> float:
    """What weights cost by themselves: half their square, and an l1."""
    return 0.5 * float(w @ w) + (0.0 if restraint is None else restraint.cost(w))


def only_squares(problem: HingeProblem, who: str) -> None:
    """An error of a solver that knows no restraint of weights."""
    if problem.restraint is not None:
        raise ModelError(
            f"{who} knows no l1 and no weights that must not be negative: take solver='block_frank_wolfe', "
            "CuttingPlane('n') or Subgradient()"
        )


@dataclass(frozen=True)
class MarginPass:
    """Where a solver was after a pass; what it did not work out is nan."""

    oracle_calls: int
    seconds: float
    primal: float
    dual: float

    @property
    def gap(self) -> float:
        """Primal less dual."""
        return self.primal - self.dual


@dataclass(frozen=True, eq=False)
class MarginMinimum:
    """Where a solver of structural SVMs ended.

    Attributes
    ----------
    weights
        Those of the least primal that was seen.
    primal, dual
        The objective there, and the bound below it (nan where a solver has none).
    oracle_calls, oracle_seconds, seconds
        Calls of the oracle, one for each block, the time they took, and all time.
    n_planes
        Planes that were kept at the end.
    exact
        Whether the oracle is exact: else the gap is an estimate, and the primal could be higher.
    mistakes
        Of a perceptron: outputs that were wrong, pass by pass.
    radius
        Of a perceptron: the greatest length of features of the truth less those of an output, R of its bound.
    relaxed
        Of `MaxMarginMarkovNetwork`: the optimum of its program.
    """

    weights: FloatArray
    primal: float
    dual: float
    passes: int
    oracle_calls: int
    oracle_seconds: float
    seconds: float
    converged: bool
    message: str
    history: tuple[MarginPass, ...] = ()
    n_planes: int = 0
    exact: bool = True
    mistakes: tuple[int, ...] = ()
    radius: float = float("nan")
    relaxed: float = float("nan")

    @property
    def gap(self) -> float:
        """Primal less dual, as a share of the primal."""
        return (self.primal - self.dual) / max(abs(self.primal), 1e-300)


@dataclass(eq=False)
class Watch:
    """Asks the oracle, counts its calls and its time, and keeps the best weights and the history."""

    problem: HingeProblem
    running: Running
    calls: int = 0
    oracle_seconds: float = 0.0
    primal: float = np.inf
    weights: FloatArray = field(default_factory=lambda: np.zeros(0))
    history: list[MarginPass] = field(default_factory=list)

    def look(self) -> None:
        """Between two calls: tell the callback, and stop when it or the clock says so."""
        self.running.check(
            self.primal if np.isfinite(self.primal) else None, self.history[-1].dual if self.history else None
        )

    def planes(self, w: FloatArray, shard: int, *, losses: bool = True) -> Planes:
        """The planes of a shard."""
        self.look()
        started = clock()
        found = self.problem.planes(w, shard, losses=losses)
        self.oracle_seconds += clock() - started
        self.calls += len(found.blocks)
        if losses and len(found.losses) and not np.isfinite(found.losses).all():
            raise ModelError("the loss of an output is not a finite number")
        return found

    def everywhere(self, w: FloatArray) -> tuple[list[Planes], float]:
        """The planes of all blocks at the same weights, and the primal there, which is kept where it is the least."""
        found = [self.planes(w, shard) for shard in range(len(self.problem.shards))]
        value = weight_cost(w, self.problem.restraint)
        for planes in found:
            value += float(self.problem.costs[planes.blocks] @ np.maximum(planes.heights(w), 0.0))
        if value < self.primal:
            self.primal, self.weights = value, w.copy()
        return found, value

    def note(self, primal: float, dual: float) -> None:
        """Remember a pass."""
        self.history.append(MarginPass(self.calls, self.running.seconds, primal, dual))

    def stopped(self, stop: BaseException, w: FloatArray) -> str:
        """What ended it from outside, in words; the weights are these where no primal was worked out before."""
        if not len(self.weights):
            self.weights = w.copy()
        return str(stop) or "stopped by the keyboard"

    def closed(self, dual: float, gap: float) -> bool:
        """Whether the dual is as near to the least primal as was asked for."""
        return self.primal - dual <= gap * abs(self.primal)

    def ended(self, dual: float, gap: float, message: str, **details: object) -> MarginMinimum:
        """The answer: weights of the least primal."""
        found = MarginMinimum(
            weights=self.weights,
            primal=self.primal,
            dual=dual,
            passes=len(self.history),
            oracle_calls=self.calls,
            oracle_seconds=self.oracle_seconds,
            seconds=self.running.seconds,
            converged=False,
            message=message,
            history=tuple(self.history),
            exact=self.problem.exact,
            **details,  # type: ignore[arg-type]
        )
        if found.gap <= gap:
            object.__setattr__(found, "converged", True)
            what = "the gap" if self.problem.exact else "the gap, an estimate as the oracle is not exact,"
            object.__setattr__(found, "message", f"{what} is below {gap:g} of the primal")
        return found
