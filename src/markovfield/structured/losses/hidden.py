"""Losses of labels that stand for hidden states."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from markovfield.arrays import FloatArray
from markovfield.exceptions import ModelError
from markovfield.structured.losses.loss import Loss, Truth

__all__ = ["HiddenLoss"]


@dataclass(frozen=True)
class HiddenLoss(Loss):
    """A loss of labels as one of their hidden states: which state a label has costs nothing.

    State m of label k is ``k * n_hidden + m``.
    """

    loss: Loss
    n_hidden: int

    name: ClassVar[str] = "hidden"

    def state_costs(self, truth: Truth) -> FloatArray:
        h = self.n_hidden
        visible = Truth(truth.labels // h, truth.cardinalities // h, truth.examples, truth.n_examples)
        found = self.loss.state_costs(visible)
        if found is None:
            raise ModelError(f"hidden states need a loss that adds up over labels, and {self.loss.name!r} does not")
        return np.repeat(found, h)
