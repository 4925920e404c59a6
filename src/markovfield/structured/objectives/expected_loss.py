"""Objectives of marginals: the loss expected of predictions (Murphy 19.80), and the likelihood of single labels.

The gradient of a function of marginals is a covariance: the Hessian of log Z times the derivative by the marginals. It
is had from counts weighted by a loss (`LossCounter`), by differences of two runs, which on narrow models take half the
time of the exact way. Exact methods give gradients to about nine digits; where a label has a small probability p, to
(1e-16 / p)^(2/3).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from markovfield._validation import check_method
from markovfield.arrays import FloatArray
from markovfield.exceptions import ModelError
from markovfield.inference.core.counts import resolve_counts
from markovfield.inference.core.loss_counts import LossCounter
from markovfield.inference.core.method import MethodLike
from markovfield.inference.core.running import Running
from markovfield.structured.core.batch import Batch
from markovfield.structured.core.inference import choose_inference

__all__ = ["ExpectedLoss", "MarginalLikelihood"]

# Messages are the difference of two runs, so they must be sharper than a likelihood needs.
TOLERANCE, SWEEPS = 1e-9, 1000
# Below this an expected loss is as good as none, and its log no better.
SMALLEST = 1e-300

# The value, and the derivative by all marginals.
Slope = tuple[float, FloatArray]


@dataclass(frozen=True)
class ExpectedLoss:
    """The loss expected of an output drawn from the model, of each example; the sum of their logs (Murphy 19.80).

    The loss of an output adds up over variables. Variables whose label is not known cost nothing, whatever they are.
    It is not convex: start from the weights of a likelihood where that is cheap.

    Parameters
    ----------
    loss
        ``"hamming"``: one for each wrong variable. A vector: what a wrong variable costs, by its true class. A matrix:
        ``loss[true, predicted]``, at least 0.
    log
        Whether to sum logs of expected losses, as Murphy does, or the expected losses themselves, the risk.
    inference
        A method of `markovfield.marginals` that has expected counts; ``"auto"`` as for `ConditionalLikelihood`.

    Examples
    --------
    >>> import numpy as np
    >>> import markovfield as mf
    >>> x, y = (np.eye(3), [[0, 1], [1, 2], [2, 0]]), ["a", "b", "b"]
    >>> batch = mf.structured.GraphModel(bias=False).shaped([x], [y]).encode([x], [y])
    >>> value, gradient = ExpectedLoss(log=False).on(batch, running=Running())(np.zeros(9))
    >>> round(float(value), 4), gradient.shape
    (1.5, (9,))
    """

    loss: str | npt.ArrayLike = "hamming"
    log: bool = True
    inference: MethodLike = "auto"

    name: ClassVar[str] = "expected_loss"

    def __post_init__(self) -> None:
        if isinstance(self.loss, str):
            check_method(self, choices={"loss": ("hamming",)})
            return
        table = np.array(self.loss, np.float64)
        if table.ndim == 1:
            table = table[:, None] * (1.0 - np.eye(len(table)))
        square = table.ndim == 2 and table.shape[0] == table.shape[1] and len(table) > 1
        if not square or not np.isfinite(table).all() or (table < 0).any():
            raise ModelError(
                "loss of ExpectedLoss must be 'hamming', a cost for each class, or a square matrix of costs "
                f"[true, predicted] of at least 0, got shape {np.shape(self.loss)}"
            )
        # As tuples: a frozen dataclass is compared and hashed.
        object.__setattr__(self, "loss", tuple(map(tuple, table.tolist())))

    def on(self, batch: Batch, *, running: Running, rng: Any = None) -> ValueOfMarginals:
        """The function of weights."""
        costs = self._costs(batch)
        example = np.repeat(batch.example_of_variable, batch.structure.cardinalities)
        weights = np.ones(batch.n_examples) if batch.weights is None else batch.weights
        costly = np.bincount(example, costs, batch.n_examples) > 0

        def value(marginals: FloatArray) -> Slope:
            risks = np.bincount(example, costs * marginals, batch.n_examples)
            if not self.log:
                return float(weights @ risks), weights[example] * costs
            some = risks > SMALLEST
            logs = np.log(risks, where=some, out=np.full(len(risks), np.log(SMALLEST)))
            logs[~costly] = 0.0
            slopes = np.divide(weights, risks, where=some, out=np.zeros(len(risks)))
            return float(weights @ logs), slopes[example] * costs

        return ValueOfMarginals(batch, _method_of(self.inference, batch, running), value, running, rng)

    def _costs(self, batch: Batch) -> FloatArray:
        """What each state of each variable costs, given its label."""
        s, labels = batch.structure, batch.labels
        known = np.repeat(labels >= 0, s.cardinalities)
        state = np.arange(len(known)) - np.repeat(s.value_offsets[:-1], s.cardinalities)
        true = np.repeat(labels, s.cardinalities)
        if isinstance(self.loss, str):
            return (known & (state != true)).astype(np.float64)
        table = np.array(self.loss)
        other = np.flatnonzero((s.cardinalities != len(table)) & (labels >= 0))
        if len(other):
            i = int(batch.example_of_variable[other[0]])
            raise ModelError(
                f"example {i}: a variable has {int(s.cardinalities[other[0]])} states, and the loss is a table of "
                f"{len(table)} classes"
            )
        return np.where(known, table[np.maximum(true, 0), np.minimum(state, len(table) - 1)], 0.0)


@dataclass(frozen=True)
class MarginalLikelihood:
    """Minus the sum over variables of the log-probability of the label of each by itself.

    It trains the marginals that predictions variable by variable are made from (Kakade, Teh and Roweis 2002). Variables
    whose label is not known are summed over and count for nothing. With one variable in each example it is the
    likelihood.

    Parameters
    ----------
    inference
        A method of `markovfield.marginals` that has expected counts; ``"auto"`` as for `ConditionalLikelihood`.

    Examples
    --------
    >>> import numpy as np
    >>> import markovfield as mf
    >>> x, y = (np.eye(3), [[0, 1], [1, 2], [2, 0]]), ["a", "b", "b"]
    >>> batch = mf.structured.GraphModel(bias=False).shaped([x], [y]).encode([x], [y])
    >>> value, gradient = MarginalLikelihood().on(batch, running=Running())(np.zeros(9))
    >>> round(float(value), 4), gradient.shape
    (2.0794, (9,))
    """

    inference: MethodLike = "auto"

    name: ClassVar[str] = "marginal_likelihood"

    def on(self, batch: Batch, *, running: Running, rng: Any = None) -> ValueOfMarginals:
        """The function of weights."""
        s = batch.structure
        known = np.flatnonzero(batch.labels >= 0)
        at = s.value_offsets[known] + batch.labels[known]
        weights = np.ones(len(known)) if batch.weights is None else batch.weights[batch.example_of_variable[known]]

        def value(marginals: FloatArray) -> Slope:
            seen = np.maximum(marginals[at], SMALLEST)
            slope = np.zeros(len(marginals))
            slope[at] = -weights / seen
            return -float(weights @ np.log(seen)), slope

        return ValueOfMarginals(batch, _method_of(self.inference, batch, running), value, running, rng)


def _method_of(inference: MethodLike, batch: Batch, running: Running) -> Any:
    if inference == "auto":
        method = choose_inference(batch.structure, batch.variable_offsets, running, batch.wide_inference)
        if not hasattr(method, "tolerance"):
            return method
        return replace(method, tolerance=TOLERANCE, max_iterations=SWEEPS)
    return resolve_counts(inference)


class ValueOfMarginals:
    """A function of the marginals of a batch and its gradient by the weights.

    Attributes
    ----------
    method
        What infers.
    """

    def __init__(
        self, batch: Batch, method: Any, value: Callable[[FloatArray], Slope], running: Running, rng: Any
    ) -> None:
        self.batch, self.method, self.value = batch, method, value
        if batch.possible is not None:
            raise ModelError("hidden states of labels are summed over by the likelihood alone: objective='likelihood'")
        at = batch.variable_offsets
        self._counter = LossCounter(method, batch.structure, at, running=running, rng=rng, differences=True)

    @property
    def guarantee(self) -> str:
        """Of the last log Z."""
        return self._counter.guarantee

    @property
    def converged(self) -> bool:
        """Whether all inference so far came to its end."""
        return self._counter.converged

    def __call__(self, w: FloatArray) -> tuple[float, FloatArray]:
        """The value and the gradient."""
        value, slope = self.value(self._counter.expect(self.batch.pool(w)))
        return value, self.batch.adjoint(self._counter.weigh(slope).covariance)
