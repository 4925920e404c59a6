"""Differences of two best scores, one of them with the loss: the ramp loss, and direct minimisation of the loss.

``max_y [score + a loss] - max_y [score - b loss]``: features of two outputs are its slope wherever it has one. It is
not convex, and flat where all scores are equal: training begins with the weights of a softmax margin, which is convex
and above it, unless others are given (``fit(..., init=...)``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from markovfield._validation import check_method
from markovfield.arrays import FloatArray
from markovfield.inference.core.method import MethodLike
from markovfield.inference.core.running import Running
from markovfield.structured.core.batch import Batch
from markovfield.structured.core.form_batch import FormBatch
from markovfield.structured.losses.loss import keep_loss
from markovfield.structured.objectives.hinge import Hinge
from markovfield.structured.objectives.softmax_margin import SoftmaxMargin, additive_oracle
from markovfield.structured.oracles.oracles import AdditiveOracle

__all__ = ["DirectLoss", "Ramp"]


class _FromSoftmax:
    """What is not convex, and begins with what is."""

    loss: Any

    def begin_with(self) -> SoftmaxMargin:
        """The objective whose optimum training begins with."""
        return SoftmaxMargin(self.loss)


@dataclass(frozen=True)
class Ramp(_FromSoftmax):
    """``max_y [score of y + loss of y] - max_y [score of y]``, summed over examples (Do et al. 2008).

    A hinge that ends: it is no less than the loss of the prediction, and an example whose truth scores far below
    others, an outlier, costs its loss and no more.

    Parameters
    ----------
    loss
        As that of `Hinge`; it must add up over variables or parts.
    below
        ``"best"``: the output of highest score is taken off. ``"hope"``: that of highest score less loss, which looks
        for the truth also where it scores low (Gimpel and Smith 2012).
    decoding
        As that of `Hinge`.

    Examples
    --------
    >>> import numpy as np
    >>> import markovfield as mf
    >>> x, y = (np.eye(3), [[0, 1], [1, 2], [2, 0]]), ["a", "b", "b"]
    >>> batch = mf.structured.GraphModel(bias=False).shaped([x], [y]).encode([x], [y])
    >>> value, gradient = Ramp().on(batch, running=Running())(np.zeros(9))
    >>> float(value), gradient.shape
    (3.0, (9,))
    """

    loss: Any = "hamming"
    below: Literal["best", "hope"] = "best"
    decoding: MethodLike = "auto"

    name: ClassVar[str] = "ramp"

    def __post_init__(self) -> None:
        check_method(self, choices={"below": ("best", "hope")})
        keep_loss(self)

    def on(self, batch: Batch | FormBatch, *, running: Running, rng: Any = None) -> Between:
        """The function of weights."""
        oracle = additive_oracle(batch, Hinge(self.loss, decoding=self.decoding), self.name, running)
        return Between(batch, oracle, 1.0, 1.0 if self.below == "hope" else 0.0, 1.0)


@dataclass(frozen=True)
class DirectLoss(_FromSoftmax):
    """The loss of predictions itself, by perturbing scores a little with it (Hazan, McAllester and Keshet 2010).

    ``(max_y [score of y + e loss of y] - max_y [score of y]) / e``, whose slope goes to that of the expected loss as e
    goes to 0 with enough data; with e = 1 it is the ramp. Small e are nearer to the loss, and noisier. (The step
    towards better outputs, ``max_y [score] - max_y [score - e loss]``, is left out: it is 0 at weights of zero, so that
    with a penalty nothing is learned.)

    Parameters
    ----------
    loss
        As that of `Hinge`; it must add up over variables or parts.
    epsilon
        e.
    decoding
        As that of `Hinge`.

    Examples
    --------
    >>> import numpy as np
    >>> import markovfield as mf
    >>> x, y = (np.eye(3), [[0, 1], [1, 2], [2, 0]]), ["a", "b", "b"]
    >>> batch = mf.structured.GraphModel(bias=False).shaped([x], [y]).encode([x], [y])
    >>> value, gradient = DirectLoss(epsilon=0.1).on(batch, running=Running())(np.zeros(9))
    >>> round(float(value), 6), gradient.shape
    (3.0, (9,))
    """

    loss: Any = "hamming"
    epsilon: float = 0.1
    decoding: MethodLike = "auto"

    name: ClassVar[str] = "direct_loss"

    def __post_init__(self) -> None:
        check_method(self, above={"epsilon": 0.0})
        keep_loss(self)

    def on(self, batch: Batch | FormBatch, *, running: Running, rng: Any = None) -> Between:
        """The function of weights."""
        oracle = additive_oracle(batch, Hinge(self.loss, decoding=self.decoding), self.name, running)
        return Between(batch, oracle, self.epsilon, 0.0, self.epsilon)


class Between:
    """``(max [score + up loss] - max [score - down loss]) / scale`` of a batch and its slope, as a function of weights.

    Attributes
    ----------
    method, guarantee, converged
        Nothing infers; whether all outputs so far were proven to be the best.
    """

    method = None
    converged = True

    def __init__(self, batch: Batch | FormBatch, oracle: AdditiveOracle, up: float, down: float, scale: float) -> None:
        self.batch, self._oracle, self._up, self._down, self._scale = batch, oracle, up, down, scale
        self._weights = np.ones(batch.n_examples) if batch.weights is None else batch.weights

    @property
    def guarantee(self) -> str:
        """Of decoding so far."""
        return "exact" if self._oracle.exact else "approximate"

    def __call__(self, w: FloatArray) -> tuple[float, FloatArray]:
        """The value and a subgradient."""
        high, rows = self._highest(w, self._up)
        low, other = self._highest(w, -self._down)
        weights = self._weights / self._scale
        return float(weights @ (high - low)), other(weights) - rows(weights)

    def _highest(self, w: FloatArray, factor: float) -> tuple[FloatArray, Any]:
        """The greatest score and factor times loss of each example, beside that of the truth, and weighted features."""
        oracle, decoder = self._oracle, self._oracle.decoder
        output = decoder.best(w, factor * oracle.costs if factor else None)
        rows, base = decoder.rows(output), decoder.base(output)
        scores = factor * (decoder.total(oracle.costs, output) + oracle.before) - rows.products(w)

        def summed(weights: FloatArray) -> FloatArray:
            spread = np.repeat(weights, np.diff(rows.offsets))
            return np.bincount(rows.columns, rows.values * spread, len(w)).astype(np.float64)

        return scores if base is None else scores + base, summed
