"""Dual losses, primal weights: inference and learning interleaved (Meshi, Sontag, Jaakkola and Globerson 2010)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np

from markovfield._validation import check_method
from markovfield.arrays import FloatArray
from markovfield.inference.core.running import STOPS, Running
from markovfield.kernels.compilations import clock
from markovfield.learning.max_margin.problem import HingeProblem, MarginMinimum, Watch, only_squares

__all__ = ["BoundedProblem", "DualLossPrimalWeights"]


class BoundedProblem(HingeProblem, Protocol):
    """A problem of planes whose hinges have bounds by messages, which are kept between calls."""

    def bounds(self, w: FloatArray, shard: int, sweeps: int, temperature: float) -> tuple[FloatArray, FloatArray]:
        """After some more messages: minus a slope of the bounds of a shard, with costs, and the bounds themselves."""
        ...


@dataclass(frozen=True)
class DualLossPrimalWeights:
    """Steps of weights and of messages in turn, on a bound of the hinge that falls in both.

    Where decoding is hard, hinges are bounded by dual decomposition: a sum of maxima over variables and factors, with
    messages that tell what they disagree on. Weights and messages are minimised over together, so that no example is
    ever decoded: a visit sends some messages, from where they were, and makes a step of weights down the slope of the
    bound. Maxima are softmaxes at a temperature that falls, as else messages get stuck (Meshi et al. 2015). The primal
    that is reported is that of the bound, which is no less than the true one, and goes to that of the local relaxation.

    Parameters
    ----------
    passes
        Over all examples.
    sweeps
        Of messages at each visit.
    temperature
        Of the first pass, in the unit of losses; in pass t it is so much divided by t.
    check_every
        Passes from one value of the primal to the next.

    Notes
    -----
    A visit costs ``sweeps`` times arity times the cells of the tables of factors; memory is that of the messages of
    all examples.

    Examples
    --------
    >>> import numpy as np
    >>> import markovfield as mf
    >>> ring = [[0, 1], [1, 2], [2, 0]]
    >>> X = [(np.array([[2.0], [1.5], [0.2]]), ring), (np.array([[-1.0], [-2.0], [0.1]]), ring)]
    >>> svm = mf.GraphSSVM(1.0, solver=DualLossPrimalWeights(), rng=0).fit(X, [[1, 1, 1], [0, 0, 0]])
    >>> [labels.tolist() for labels in svm.predict(X)]
    [[1, 1, 1], [0, 0, 0]]
    """

    passes: int = 100
    sweeps: int = 3
    temperature: float = 1.0
    check_every: int = 5

    name: ClassVar[str] = "dual_loss"

    def __post_init__(self) -> None:
        check_method(self, least={"passes": 1, "sweeps": 1, "check_every": 1}, above={"temperature": 0.0})

    def run(self, problem: BoundedProblem, *, rng: np.random.Generator, running: Running) -> MarginMinimum:
        """Minimise; what stops it ends it with the best weights so far."""
        only_squares(problem, "DualLossPrimalWeights")
        watch, n = _Bounds(problem, running), len(problem.shards)
        w, mean, t = np.zeros(problem.n_weights), np.zeros(problem.n_weights), 0
        message = "as many passes as were asked for"
        try:
            for step in range(self.passes):
                temperature = max(self.temperature / (step + 1.0), 1e-4)
                for shard in rng.permutation(n).tolist():
                    slope, _ = watch.bounds(w, shard, self.sweeps, temperature)
                    t += 1
                    w = (1.0 - 1.0 / t) * w + (n / t) * slope
                    mean += 2.0 / (t + 1.0) * (w - mean)
                last = step == self.passes - 1
                value = np.nan
                if last or (step + 1) % self.check_every == 0:
                    value = watch.primal_at(mean, self.sweeps, temperature)
                watch.note(value, np.nan)
        except STOPS as stop:
            message = str(stop) or "stopped by the keyboard"
        if not len(watch.weights):
            watch.weights = mean
        return watch.ended(np.nan, -1.0, message)


class _Bounds(Watch):
    """A watch that counts bounds as calls of the oracle."""

    problem: BoundedProblem

    def bounds(self, w: FloatArray, shard: int, sweeps: int, temperature: float) -> tuple[FloatArray, FloatArray]:
        self.look()
        started = clock()
        found = self.problem.bounds(w, shard, sweeps, temperature)
        self.oracle_seconds += clock() - started
        self.calls += len(self.problem.shards[shard])
        return found

    def primal_at(self, w: FloatArray, sweeps: int, temperature: float) -> float:
        """The primal of the bounds, which is kept where it is the least."""
        value = 0.5 * float(w @ w)
        for shard, blocks in enumerate(self.problem.shards):
            value += float(self.problem.costs[blocks] @ self.bounds(w, shard, sweeps, temperature)[1])
        if value < self.primal:
            self.primal, self.weights = value, w.copy()
        return value
