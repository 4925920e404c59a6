"""Gradient steps on noisy gradients: plain, AdaGrad and Adam, with schedules, averages and proximal steps.

A stochastic objective has ``n_shards`` and ``gradient(w, shard, rng)``, whose average over shards is the gradient: that
of each shard is an estimate of the whole. It may have ``value(w)``, for reports, and ``state()`` and ``restore(state)``
where it remembers something itself, such as Markov chains. A function ``objective(w, rng)`` is one of a single shard.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np

from markovfield._validation import check_method
from markovfield.arrays import FloatArray
from markovfield.exceptions import ModelError, StoppedError
from markovfield.inference.core.running import STOPS
from markovfield.kernels.compilations import clock
from markovfield.learning.solvers.checkpoint import State
from markovfield.learning.solvers.minimum import Minimum
from markovfield.learning.solvers.problem import Problem

__all__ = ["AdaGrad", "Adam", "NoisyObjective", "StochasticGradient"]

# Seconds between two looks at the clock, within a pass.
BETWEEN = 0.1
# The length of the first step of plain gradient steps, where none is given.
FIRST = 0.5
_GENERATORS = ("PCG64", "PCG64DXSM", "MT19937", "Philox", "SFC64")


class NoisyObjective(Protocol):
    """What stochastic solvers minimise: gradients of shards, each an estimate of the whole."""

    n_shards: int

    def gradient(self, w: FloatArray, shard: int, rng: np.random.Generator) -> FloatArray:
        """An estimate of the gradient."""


@dataclass(frozen=True)
class _Stochastic(ABC):
    """Settings that all share.

    A step at time t has the length ``eta0 / (1 + t / tau)**power``. Steps as long as they add up to infinity while
    their squares do not (Robbins and Monro 1951) reach the minimum of a convex objective: that is a power above 1/2 and
    up to 1. With averages of weights (Polyak and Ruppert) any power between 1/2 and 1 has the best rate there is. A
    power of zero is a constant step, which stays within its noise of the minimum.
    """

    name: ClassVar[str]
    eta0: float | None = None
    tau: float = 100.0
    power: float = 0.6
    passes: int = 100
    order: str = "shuffled"
    average: float = 0.5
    tolerance: float = 0.0

    def __post_init__(self) -> None:
        check_method(
            self,
            least={"power": 0, "passes": 0, "average": 0, "tolerance": 0},
            above={"eta0": 0, "tau": 0},
            choices={"order": ("shuffled", "fixed")},
        )
        if self.power > 1:
            raise ModelError(f"power of {type(self).__name__} must be at most 1, got {self.power}")
        if self.average > 1:
            raise ModelError(f"average of {type(self).__name__} must be at most 1, got {self.average}")

    @abstractmethod
    def scaled(self, gradient: FloatArray, memory: State, t: int) -> tuple[FloatArray, float | FloatArray]:
        """The direction of a step, and its length in units of the schedule, maybe one for each weight."""

    @abstractmethod
    def memory(self, n: int) -> State:
        """What is remembered of gradients, before the first."""

    def run(self, problem: Problem) -> Minimum:
        """Minimise."""
        started = clock()
        walk = _Walk(self, problem)
        message, converged = f"{self.passes} passes", False
        between = True
        try:
            while walk.passes < self.passes and not walk.ending:
                before = walk.answer
                while walk.at < walk.n_shards and not walk.ending:
                    between = False
                    walk.step()
                    between = True
                if walk.ending:
                    break
                walk.end_pass()
                problem.keeper.offer(walk.state)
                if problem.told(walk.passes, walk.value, walk.answer):
                    message = "stopped by the callback"
                    break
                size = max(1.0, float(np.linalg.norm(walk.answer)))
                if walk.passes > 1 and np.linalg.norm(walk.answer - before) < self.tolerance * size:
                    message, converged = f"the weights moved by less than {self.tolerance:g} in a pass", True
                    break
        except STOPS as stop:
            if walk.t == 0 and not isinstance(stop, StoppedError):
                raise
            message = str(stop) or "interrupted"
        if between and not walk.ending:
            problem.keeper.offer(walk.state, now=True)
        return walk.minimum(walk.ending or message, converged, clock() - started)


@dataclass(frozen=True)
class StochasticGradient(_Stochastic):
    """Stochastic gradient descent with a Robbins-Monro schedule, averages of weights, and proximal steps.

    Parameters
    ----------
    eta0, tau, power
        A step at time t is ``eta0 / (1 + t / tau)**power`` times the gradient. A power above 1/2 and up to 1 meets the
        conditions of Robbins and Monro (1951); averages want one between 1/2 and 1. The first step has length 0.5 where
        ``eta0`` is None.
    passes
        Over all shards; of an objective without shards, a step each.
    order
        Of shards in a pass: ``"shuffled"`` anew, or ``"fixed"``.
    average
        The share of passes, at the end, over whose weights the answer is an average; 0 is the last weights.
    tolerance
        Converged when the answer moved by less than this in a pass, relative to its norm, or to one if that is less.

    Examples
    --------
    >>> import numpy as np
    >>> from markovfield.learning.solvers.solve import solve
    >>> def noisy(w, rng):
    ...     return w - 1 + rng.normal(size=2)
    >>> found = solve(noisy, np.zeros(2), solver=StochasticGradient(eta0=0.5, passes=20_000), rng=0)
    >>> bool(np.abs(found.weights - 1).max() < 0.05)
    True
    """

    name: ClassVar[str] = "sgd"

    def scaled(self, gradient: FloatArray, memory: State, t: int) -> tuple[FloatArray, float | FloatArray]:
        """The gradient itself."""
        if not memory["unit"][0]:
            length = float(np.linalg.norm(gradient)) or 1.0
            memory["unit"][0] = FIRST / length if self.eta0 is None else 1.0
        return gradient, float(memory["unit"][0])

    def memory(self, n: int) -> State:
        """The length of a step where it was not given."""
        return {"unit": np.zeros(1)}


@dataclass(frozen=True)
class AdaGrad(_Stochastic):
    """AdaGrad (Duchi, Hazan and Singer 2011): each weight's step falls with the root of its squared gradients so far.

    Parameters
    ----------
    eta0, tau, power
        As those of `StochasticGradient`, times one over that root, which decays by itself: power 0 is right.
    passes, order, average, tolerance
        As those of `StochasticGradient`.
    """

    name: ClassVar[str] = "adagrad"
    eta0: float | None = 0.5
    power: float = 0.0

    def scaled(self, gradient: FloatArray, memory: State, t: int) -> tuple[FloatArray, float | FloatArray]:
        """The gradient, and one over the root of the sum of squares."""
        memory["squares"] += gradient * gradient
        return gradient, 1.0 / (np.sqrt(memory["squares"]) + 1e-12)

    def memory(self, n: int) -> State:
        """Sums of squares."""
        return {"squares": np.zeros(n)}


@dataclass(frozen=True)
class Adam(_Stochastic):
    """Adam (Kingma and Ba 2015): steps along an average of gradients, divided by the root of that of their squares.

    Parameters
    ----------
    eta0, tau, power
        As those of `StochasticGradient`. With a constant step (power 0) it need not converge (Reddi, Kale and Kumar
        2018).
    passes, order, average, tolerance
        As those of `StochasticGradient`.
    beta1, beta2, epsilon
        Memory of the averages of gradients and of squares; what is added to the root.
    """

    name: ClassVar[str] = "adam"
    eta0: float | None = 0.05
    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-8

    def __post_init__(self) -> None:
        super().__post_init__()
        check_method(self, least={"beta1": 0, "beta2": 0}, below={"beta1": 1, "beta2": 1}, above={"epsilon": 0})

    def scaled(self, gradient: FloatArray, memory: State, t: int) -> tuple[FloatArray, float | FloatArray]:
        """The averages without their bias towards zero."""
        memory["mean"] += (1 - self.beta1) * (gradient - memory["mean"])
        memory["squares"] += (1 - self.beta2) * (gradient * gradient - memory["squares"])
        root = np.sqrt(memory["squares"] / (1 - self.beta2 ** (t + 1)))
        return memory["mean"] / (1 - self.beta1 ** (t + 1)), 1.0 / (root + self.epsilon)

    def memory(self, n: int) -> State:
        """Averages of gradients and of their squares."""
        return {"mean": np.zeros(n), "squares": np.zeros(n)}


class _Walk:
    """Where a stochastic solver is, and all that it needs to go on."""

    def __init__(self, solver: _Stochastic, problem: Problem) -> None:
        self.solver, self.problem, self.penalty = solver, problem, problem.penalty
        self.objective = problem.objective
        self.n_shards = int(getattr(self.objective, "n_shards", 1))
        self.w, self.rng = problem.start.copy(), problem.rng
        n = len(self.w)
        self.memory = solver.memory(n)
        self.t = self.passes = self.at = 0
        self.order = np.zeros(0, np.int64)
        self.mean, self.counted = np.zeros(n), 0
        self.total, self.last_total = np.zeros(n), np.full(n, np.nan)
        self.values: list[float] = []
        self.value, self.ending = math.nan, ""
        self.looked = clock()
        state = problem.keeper.read(n)
        if state is not None:
            self._restore(state)

    @property
    def answer(self) -> FloatArray:
        """The average, once there is one."""
        return (self.mean if self.counted else self.w).copy()

    def step(self) -> None:
        """One step, with one shard's gradient."""
        if self.at == 0:
            shuffled = self.solver.order == "shuffled" and self.n_shards > 1
            self.order = self.rng.permutation(self.n_shards) if shuffled else np.arange(self.n_shards)
        if hasattr(self.objective, "gradient"):
            gradient = self.objective.gradient(self.w, int(self.order[self.at]), self.rng)
        else:
            gradient = self.objective(self.w, self.rng)
        if self.penalty.has_l2:
            gradient = gradient + self.penalty.smooth(self.w)[1]
        if not np.isfinite(gradient).all():
            self.ending = f"a gradient is not finite after {self.t} steps: take shorter ones (eta0)"
            return
        solver = self.solver
        direction, unit = solver.scaled(gradient, self.memory, self.t)
        length = unit * (solver.eta0 or 1.0) / (1 + self.t / solver.tau) ** solver.power
        new = self.penalty.prox(self.w - length * direction, length)
        if not float(np.abs(new).max(initial=0.0)) < self.problem.far:
            self.ending = (
                "the weights run away: steps are too long (eta0), or the objective has no minimum without a penalty"
            )
            return
        self.w = new
        self.total += gradient
        self.t += 1
        self.at += 1
        if self.passes >= math.floor((1 - solver.average) * solver.passes):
            self.counted += 1
            self.mean += (new - self.mean) / self.counted
        if clock() - self.looked > BETWEEN:
            self.looked = clock()
            self.problem.keeper.offer(self.state)
            self.problem.running.check()

    def end_pass(self) -> None:
        """After the last shard."""
        self.passes, self.at = self.passes + 1, 0
        self.last_total, self.total = self.total / self.n_shards, np.zeros(len(self.w))
        if hasattr(self.objective, "value"):
            self.value = float(self.objective.value(self.answer)) + self.penalty.value(self.answer)
        self.values.append(self.value)

    def state(self) -> State:
        """What to go on from, exactly."""
        numbers = {name: getattr(self, name) for name in ("t", "passes", "at", "counted")}
        arrays = {name: getattr(self, name) for name in ("order", "mean", "total", "last_total")}
        own = self.objective.state() if hasattr(self.objective, "state") else {}
        return {
            "weights": self.w,
            **numbers,
            **arrays,
            "values": np.array(self.values),
            "rng": _plain(self.rng.bit_generator.state),
            **{f"memory_{name}": value for name, value in self.memory.items()},
            **{f"own_{name}": value for name, value in own.items()},
        }

    def _restore(self, state: State) -> None:
        self.w = state["weights"].copy()
        for name in ("t", "passes", "at", "counted"):
            setattr(self, name, int(state[name]))
        for name in ("order", "mean", "total", "last_total"):
            setattr(self, name, state[name].copy())
        self.values = state["values"].tolist()
        self.value = self.values[-1] if self.values else math.nan
        kind = state["rng"]["bit_generator"]
        if kind not in _GENERATORS:
            raise ModelError(f"the checkpoint has a generator {kind!r}, which is not known: remove it")
        bits = getattr(np.random, kind)()
        bits.state = state["rng"]
        self.rng = np.random.Generator(bits)
        self.memory = {name: state[f"memory_{name}"].copy() for name in self.memory}
        own = {name.removeprefix("own_"): value for name, value in state.items() if name.startswith("own_")}
        if hasattr(self.objective, "restore"):
            self.objective.restore(own)

    def minimum(self, message: str, converged: bool, seconds: float) -> Minimum:
        """Where it ended."""
        w = self.answer
        norm = self.penalty.optimality(w, self.last_total)
        return Minimum(w, self.value, norm, self.passes, self.t, converged, message, tuple(self.values), seconds)


def _plain(value: Any) -> Any:
    """A generator's state as JSON can hold it."""
    if isinstance(value, dict):
        return {key: _plain(inner) for key, inner in value.items()}
    if isinstance(value, np.ndarray):
        return value.tolist()
    return int(value) if isinstance(value, np.integer) else value
