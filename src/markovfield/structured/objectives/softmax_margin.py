"""Softmax margin: a likelihood in which outputs weigh more the more they cost (Gimpel and Smith 2010)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

from markovfield._validation import check_method
from markovfield.exceptions import ModelError
from markovfield.inference.core.method import MethodLike
from markovfield.inference.core.running import Running
from markovfield.structured.core.batch import Batch
from markovfield.structured.core.form_batch import FormBatch
from markovfield.structured.core.labels import check_labels
from markovfield.structured.losses.loss import keep_loss, loss_of
from markovfield.structured.marginals.augmented import with_losses
from markovfield.structured.objectives.hinge import Hinge
from markovfield.structured.objectives.likelihood import ConditionalLikelihood
from markovfield.structured.oracles.oracles import AdditiveOracle

__all__ = ["SoftmaxMargin"]


@dataclass(frozen=True)
class SoftmaxMargin:
    """``log sum_y exp(score of y + loss of y) - score of the truth``, summed over examples.

    The hinge with a softmax in place of its max, and minus the log-likelihood with costs added to scores: it is smooth
    and convex, no less than either, and trained as a likelihood is.

    Parameters
    ----------
    loss
        As that of `Hinge`; it must add up over variables or parts.
    inference
        As that of `ConditionalLikelihood`.

    Examples
    --------
    >>> import numpy as np
    >>> import markovfield as mf
    >>> x, y = (np.eye(3), [[0, 1], [1, 2], [2, 0]]), ["a", "b", "b"]
    >>> batch = mf.structured.GraphModel(bias=False).shaped([x], [y]).encode([x], [y])
    >>> value, gradient = SoftmaxMargin().on(batch, running=Running())(np.zeros(9))
    >>> round(float(value), 4), round(float(3 * np.log(1 + np.e)), 4), gradient.shape
    (3.9398, 3.9398, (9,))
    """

    loss: Any = "hamming"
    inference: MethodLike = "auto"

    name: ClassVar[str] = "softmax_margin"

    def __post_init__(self) -> None:
        check_method(self)
        keep_loss(self)

    def on(self, batch: Batch | FormBatch, *, running: Running, rng: Any = None) -> Any:
        """The function of weights."""
        costs = added_costs(batch, self.loss, self.name, running)
        if isinstance(batch, FormBatch):
            augmented: Any = replace(batch, base=costs if batch.base is None else batch.base + costs)
        else:
            augmented = with_losses(batch, costs)
        return ConditionalLikelihood(self.inference).on(augmented, running=running, rng=rng)


def added_costs(batch: Batch | FormBatch, loss: Any, who: str, running: Running) -> Any:
    """What is added to scores of states or cells; an error where the loss does not add up."""
    oracle = additive_oracle(batch, Hinge(loss), who, running)
    return oracle.costs


def additive_oracle(batch: Batch | FormBatch, hinge: Hinge, who: str, running: Running) -> AdditiveOracle:
    """The oracle of a loss that adds up."""
    if isinstance(batch, Batch):
        check_labels(batch, who)
    oracle = hinge.on(batch, running=running)
    if not isinstance(oracle, AdditiveOracle):
        raise ModelError(f"{who} needs a loss that adds up, such as 'hamming', and not {loss_of(hinge.loss).name!r}")
    return oracle
