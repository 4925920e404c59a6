"""What all losses say, and losses by name."""

from __future__ import annotations

from abc import ABC
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from markovfield.arrays import FloatArray, IntArray
from markovfield.exceptions import ModelError

__all__ = ["LOSSES", "Loss", "TrueParts", "Truth", "keep_loss", "loss_of"]

_HERE = "markovfield.structured.losses"
# Losses by name, with their settings.
LOSSES: dict[str, tuple[str, dict[str, Any]]] = {
    "hamming": ("labels:Hamming", {}),
    "zero_one": ("labels:ZeroOne", {}),
    "f1": ("counts:F1", {}),
    "spans": ("parts:PartLoss", {}),
    "links": ("parts:PartLoss", {}),
    "arcs": ("parts:PartLoss", {"missing": 0.0}),
}


class Truth(NamedTuple):
    """True labels of the variables of all examples.

    Attributes
    ----------
    labels, cardinalities, examples
        ``int64[n_variables]``: the state of each variable, how many it has, and the example that it belongs to.
    """

    labels: IntArray
    cardinalities: IntArray
    examples: IntArray
    n_examples: int

    @property
    def offsets(self) -> IntArray:
        """Where the states of each variable begin."""
        return np.cumsum(self.cardinalities) - self.cardinalities

    @property
    def lengths(self) -> IntArray:
        """Variables of each example."""
        return np.bincount(self.examples, minlength=self.n_examples)


class TrueParts(NamedTuple):
    """True structures of all examples.

    Attributes
    ----------
    cells
        ``int64[...]``: those of all structures.
    examples
        ``int64[n_cells]``: the example that each cell belongs to; of shared ones, any.
    counted
        ``bool[n_cells]``: the cells that stand for parts which count.
    """

    cells: IntArray
    examples: IntArray
    counted: Any
    n_examples: int


@dataclass(frozen=True)
class Loss(ABC):
    """What an output costs beside the truth."""

    name: ClassVar[str]

    def resolved(self, classes: Sequence[Any]) -> Self:
        """The loss with labels as states; ``classes`` are the labels in the order of states."""
        return self

    def state_costs(self, truth: Truth) -> FloatArray | None:
        """``float64[total states]``: what each state of each variable costs; None where costs are no sum of these."""
        return None

    def part_costs(self, truth: TrueParts) -> tuple[FloatArray, FloatArray] | None:
        """What each cell of a structure adds, and what each example costs before; None where there is no such sum."""
        return None

    def table(self, n_labels: int) -> FloatArray | None:
        """``float64[n_labels, n_labels]``: costs ``[true, predicted]`` of a variable, where the loss is their sum."""
        return None


def loss_of(loss: Any) -> Loss:
    """A loss by its name, a table ``[true, predicted]``, or itself.

    Examples
    --------
    >>> loss_of("hamming")
    Hamming(normalised=False, weights=None)
    >>> loss_of([[0, 1], [5, 0]]).name
    'table'
    """
    if isinstance(loss, Loss):
        return loss
    if isinstance(loss, str):
        if loss not in LOSSES:
            names = ", ".join(map(repr, LOSSES))
            raise ModelError(f"loss must be one of {names}, a table [true, predicted] or such an object, got {loss!r}")
        where, settings = LOSSES[loss]
        module, _, name = where.partition(":")
        made: Loss = getattr(import_module(f"{_HERE}.{module}"), name)(**settings)
        return made
    found: Loss = import_module(f"{_HERE}.labels").TableLoss(loss)
    return found


def keep_loss(settings: Any) -> None:
    """Check the loss of a frozen dataclass; one that is no name becomes an object."""
    found = loss_of(settings.loss)
    if not isinstance(settings.loss, str):
        object.__setattr__(settings, "loss", found)
