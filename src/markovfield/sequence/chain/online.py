"""Online solvers of a linear chain: weights move after every sequence.

``sgd`` and ``adagrad`` minimise the same objective as the batch solvers; the averaged perceptron (Collins 2002), the
passive-aggressive update (Crammer et al. 2006) and AROW (Crammer, Kulesza and Dredze 2009) minimise mistakes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from markovfield.arrays import FloatArray
from markovfield.exceptions import ModelError, StoppedError
from markovfield.inference.core.running import Running
from markovfield.sequence.chain.features import ChainFeatures, Encoded
from markovfield.sequence.chain.online_kernel import Delta, Scratch, Weights, adagrad_pass, margin_pass, sgd_pass

__all__ = ["ONLINE_SOLVERS", "Calibration", "Online"]

Callback = Callable[[int, float, FloatArray], bool | None]
# Tokens between two looks at the clock: about a tenth of a second.
CHUNK_TOKENS = 20_000
# What did best on the last 1,000 training sentences of CoNLL-2000 after learning from those before them: AdaGrad's of
# 0.05 to 0.8, and AROW's of 0.001 to 1; any of 0.3 to 3 is the same to the passive-aggressive update.
STEPS = {"adagrad": 0.2, "pa": 1.0, "arow": 0.01}
_NONE = np.zeros(0)


@dataclass(frozen=True)
class Calibration:
    """How the first rate of gradient descent is found: by a pass over so many sequences with each of some rates.

    They are ``eta`` times powers of ``rate``, upwards and downwards until the objective is no longer lower, and at
    most ``trials`` of them, or so many ``candidates`` that lower it.
    """

    eta: float = 0.1
    rate: float = 2.0
    samples: int = 1000
    candidates: int = 20
    trials: int = 20


@dataclass(eq=False)
class Online:
    """What the solvers share: data, a layout for weights, an order for every pass.

    Attributes
    ----------
    labels
        ``int32[n_tokens]``, all known.
    weights
        Of sequences, or empty.
    step
        How far a step may go, in the solver's own measure; None is its own choice.
    enough
        Mistake-driven solvers end after a pass whose loss is at most so much for each sequence.
    margin, averaged
        Of passive-aggressive updates: the root of the number of wrong labels (1) or one (0); whether weights are
        averages over all updates.
    variance
        Of AROW's weights at the start.
    """

    features: ChainFeatures
    data: Encoded
    labels: npt.NDArray[np.int32]
    weights: FloatArray
    l2: float
    step: float | None
    rng: np.random.Generator
    running: Running
    max_iterations: int
    tolerance: float
    period: int
    callback: Callback
    enough: float = 0.0
    margin: int = 1
    averaged: bool = True
    variance: float = 1.0
    calibration: Calibration = field(default_factory=Calibration)
    history: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        f, longest = self.features, self.data.longest(0, self.data.n_sequences)
        cells = f.width**2
        steps = cells * max(longest - 1, 0) if len(self.data.edges.offsets) else 0
        sizes = (*[longest * f.width] * 3, steps, cells, cells, cells)
        self.scratch = Scratch(*(np.empty(size) for size in sizes))
        self.row_mask, self.move_mask = np.zeros(f.n_rows * f.width, np.uint8), np.zeros(cells, np.uint8)
        self.row_mask[f.row_cells] = 1
        self.move_mask[f.transition_cells] = 1

    def unpacked(self, vector: FloatArray) -> Weights:
        """A vector of weights in the layout of the kernels, its own to change."""
        unpacked = self.features.unpack(vector.copy())
        return Weights(unpacked.rows, unpacked.pairs, unpacked.transitions.ravel(), unpacked.edges)

    def packed(self, unpacked: Weights) -> FloatArray:
        """The way back."""
        return self.features.pack(unpacked.rows, unpacked.pairs, unpacked.moves, unpacked.edges, _NONE)

    def chunks(self, order: npt.NDArray[np.int64]) -> Iterator[npt.NDArray[np.int64]]:
        """An order of sequences in parts that a kernel goes through in about a tenth of a second."""
        ends = np.cumsum(np.diff(self.data.offsets)[order])
        cuts = np.searchsorted(ends, np.arange(CHUNK_TOKENS, ends[-1] if len(ends) else 0, CHUNK_TOKENS))
        for part in np.split(order, cuts):
            self.running.check(self.history[-1] if self.history else None)
            if len(part):
                yield part

    def passes(
        self, one: Callable[[npt.NDArray[np.int64]], float], current: Callable[[], FloatArray]
    ) -> dict[str, Any]:
        """Passes over the data until the objective stands still: what the report says of them."""
        message, converged = f"{self.max_iterations} passes", False
        try:
            for iteration in range(1, self.max_iterations + 1):
                loss = sum(one(part) for part in self.chunks(self.rng.permutation(self.data.n_sequences)))
                if not np.isfinite(loss):
                    raise ModelError(
                        "the weights left the range of numbers: scale the values of attributes, lower step, or use "
                        "solver='lbfgs'"
                    )
                vector = current()
                self.history.append(loss + 0.5 * self.l2 * float(vector @ vector))
                if self.callback(iteration, self.history[-1], vector):
                    message = "stopped by the callback"
                    break
                if loss <= self.enough * self.data.n_sequences:
                    message = "a pass without a mistake" if loss == 0.0 else f"a loss of at most {self.enough:g} each"
                    converged = True
                    break
                before = self.history[-1 - self.period] if iteration > self.period else np.inf
                if before - self.history[-1] < self.tolerance * abs(self.history[-1]):
                    message, converged = (
                        f"the objective fell by less than {self.tolerance:g} in {self.period} passes",
                        True,
                    )
                    break
        except (TimeoutError, StoppedError, KeyboardInterrupt) as stop:
            if not self.history and not isinstance(stop, StoppedError):
                raise
            message = str(stop) or "interrupted"
        return {
            "objective": self.history[-1] if self.history else np.nan,
            "iterations": len(self.history),
            "converged": converged,
            "message": message,
            "history": tuple(self.history),
        }

    def _about(self, part: npt.NDArray[np.int64], *rest: Any) -> list[Any]:
        """Arguments of a pass: those that all have first."""
        d, f = self.data, self.features
        return [d.tokens, d.edges, d.offsets, part, self.labels, self.weights, f.n_labels, f.width, *rest]

    def sgd(self, start: FloatArray) -> tuple[FloatArray, dict[str, Any]]:
        """Stochastic gradient descent whose rate falls as ``1 / (1 + rate * decay * t)`` (Bottou 2010).

        The first rate is ``step``, or the best of a few that are tried on a sample of the sequences. The weights are
        averages over passes, later ones counting for more (Shamir and Zhang 2013): the last alone would still depend
        on the order of its sequences.
        """
        decay = self.l2 / max(self.data.n_sequences, 1)
        rate = self.step if self.step is not None else self._calibrated(start, decay)
        unpacked, state = self.unpacked(start), np.array([1.0, 0.0])
        mean = start.copy()

        def one(part: npt.NDArray[np.int64]) -> float:
            if state[0] < 1e-6:
                _fold(unpacked, state)
            rest = (unpacked, self.row_mask, self.move_mask, state, rate, decay, self.scratch)
            return float(sgd_pass(*self._about(part, *rest)))

        def current() -> FloatArray:
            nonlocal mean
            _fold(unpacked, state)
            mean = mean + (self.packed(unpacked) - mean) * (2.0 / (len(self.history) + 2.0))
            return mean

        said = self.passes(one, current)
        return mean, said

    def _calibrated(self, start: FloatArray, decay: float) -> float:
        """The rate whose single pass over a sample ends at the lowest objective."""
        sample = self.rng.permutation(self.data.n_sequences)[: self.calibration.samples]
        share = len(sample) / max(self.data.n_sequences, 1)

        def objective(rate: float) -> float:
            unpacked, state = self.unpacked(start), np.array([1.0, 0.0])
            rest = (unpacked, self.row_mask, self.move_mask, state)
            for part in self.chunks(sample):
                if not np.isfinite(sgd_pass(*self._about(part, *rest, rate, decay, self.scratch))):
                    return np.inf
            _fold(unpacked, state)
            vector = self.packed(unpacked)
            # A pass of no rate at all only adds up losses.
            still = (*rest, 0.0, 0.0, self.scratch)
            loss = sum(float(sgd_pass(*self._about(part, *still))) for part in self.chunks(sample))
            return loss + 0.5 * self.l2 * share * float(vector @ vector) if np.isfinite(loss) else np.inf

        how = self.calibration
        tried = {how.eta: objective(how.eta)}
        before = objective(0.0)
        for factor in (how.rate, 1.0 / how.rate):
            rate = how.eta
            while len(tried) < how.trials and sum(value < before for value in tried.values()) < how.candidates:
                rate, last = rate * factor, rate
                tried[rate] = objective(rate)
                if not tried[rate] < tried[last]:
                    break
        return min(tried, key=lambda rate: tried[rate])

    def adagrad(self, start: FloatArray) -> tuple[FloatArray, dict[str, Any]]:
        """AdaGrad (Duchi, Hazan and Singer 2011): every weight has a rate of its own."""
        rate = STEPS["adagrad"] if self.step is None else self.step
        unpacked = self.unpacked(start)
        squares = Weights(*(np.zeros(len(part)) for part in unpacked))
        tokens, edges = self.data.tokens, self.data.edges
        references = (
            np.bincount(tokens.rows, minlength=self.features.n_rows),
            np.bincount(tokens.pair_weight, minlength=len(unpacked.pairs)),
            np.array([max(np.count_nonzero(np.diff(self.data.offsets)), 1)]),
            np.bincount(edges.weight, minlength=len(unpacked.edges)),
        )
        shares = Weights(*(self.l2 / np.maximum(part, 1) for part in references))

        def one(part: npt.NDArray[np.int64]) -> float:
            rest = (unpacked, squares, shares, self.row_mask, self.move_mask, rate, self.scratch)
            return float(adagrad_pass(*self._about(part, *rest)))

        said = self.passes(one, lambda: self.packed(unpacked))
        return self.packed(unpacked), said

    def perceptron(self, start: FloatArray) -> tuple[FloatArray, dict[str, Any]]:
        """The averaged perceptron."""
        return self._margins(start, 0)

    def passive_aggressive(self, start: FloatArray) -> tuple[FloatArray, dict[str, Any]]:
        """Passive-aggressive I: the smallest step that leaves a margin, at most ``step``."""
        return self._margins(start, 1)

    def passive_aggressive_two(self, start: FloatArray) -> tuple[FloatArray, dict[str, Any]]:
        """Passive-aggressive II: long steps are shortened instead of cut."""
        return self._margins(start, 2)

    def arow(self, start: FloatArray) -> tuple[FloatArray, dict[str, Any]]:
        """AROW: weights seen often move less; ``step`` is the inverse of its r."""
        return self._margins(start, 3)

    def _margins(self, start: FloatArray, kind: int) -> tuple[FloatArray, dict[str, Any]]:
        unpacked = self.unpacked(start)
        flat = np.concatenate(unpacked)
        starts = np.cumsum([len(part) for part in unpacked])[:3].astype(np.int64)
        mask = np.concatenate([self.row_mask, np.ones(len(unpacked.pairs), np.uint8), self.move_mask])
        sums = np.zeros(len(flat) if kind < 3 else 0)
        variances = np.full(len(flat) if kind == 3 else 0, self.variance)
        state, longest = np.zeros(1), self.data.longest(0, self.data.n_sequences)
        delta, touched = Delta(np.zeros(len(flat)), np.zeros(len(flat), np.uint8)), self._room()
        width = self.features.width
        space = (np.empty(width), np.zeros(longest * width, np.int32), np.zeros(longest, np.int32))
        # AROW moves for the closest rival of all, with a margin of as much as it has wrong labels.
        margin = 2 if kind == 3 else self.margin
        step = STEPS["arow" if kind == 3 else "pa"] if self.step is None else self.step

        def one(part: npt.NDArray[np.int64]) -> float:
            rest = (
                starts,
                flat,
                mask,
                sums,
                variances,
                kind,
                margin,
                step,
                state,
                delta,
                touched,
                self.scratch,
                *space,
            )
            return float(margin_pass(*self._about(part, *rest)))

        def current() -> FloatArray:
            # Each move counts for the share of sequences that came after it.
            mean = flat - sums / max(state[0], 1.0) if kind < 3 and self.averaged else flat
            return self.packed(Weights(*np.split(mean, starts)))

        said = self.passes(one, current)
        return current(), said

    def _room(self) -> npt.NDArray[np.int64]:
        """Space for the cells that one sequence may touch."""
        d, n = self.data, np.diff(self.data.offsets)
        references = 2 * d.tokens.row_offsets[d.offsets] + d.tokens.pair_offsets[d.offsets]
        if len(d.edges.offsets):
            references = references + d.edges.offsets[d.offsets]
        return np.zeros(int((np.diff(references) + 2 * n).max(initial=0)), np.int64)


def _fold(unpacked: Weights, state: FloatArray) -> None:
    """Multiply the scale into the weights."""
    for part in unpacked:
        part *= state[0]
    state[0] = 1.0


ONLINE_SOLVERS: dict[str, Callable[[Online, FloatArray], tuple[FloatArray, dict[str, Any]]]] = {
    "sgd": Online.sgd,
    "adagrad": Online.adagrad,
    "perceptron": Online.perceptron,
    "pa": Online.passive_aggressive,
    "pa2": Online.passive_aggressive_two,
    "arow": Online.arow,
}
# Passes where none are asked for: mistake-driven solvers converge soon.
PASSES = {"sgd": 100, "adagrad": 50, "perceptron": 30, "pa": 30, "pa2": 30, "arow": 30}
