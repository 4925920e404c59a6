"""Losses of labels: the share or number that are wrong, tables of costs, and whether anything is wrong at all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from markovfield._validation import check_method
from markovfield.arrays import FloatArray
from markovfield.exceptions import ModelError
from markovfield.structured.losses.loss import Loss, TrueParts, Truth

__all__ = ["Hamming", "TableLoss", "ZeroOne", "weighted_hamming"]


@dataclass(frozen=True)
class Hamming(Loss):
    """How many labels are wrong (of structures: how many parts only one of both has).

    Parameters
    ----------
    normalised
        Whether to divide by the number of variables of the example. That makes long examples count for less: the
        optimum is another one.
    weights
        What a wrong variable costs, by its true label: a dict, where those it does not name cost 1, or a number for
        each label in the order of classes.

    Examples
    --------
    >>> import numpy as np
    >>> truth = Truth(np.array([1, 0]), np.array([2, 2]), np.array([0, 0]), 1)
    >>> Hamming(weights=(1.0, 3.0)).state_costs(truth).tolist()
    [3.0, 0.0, 0.0, 1.0]
    """

    normalised: bool = False
    weights: Any = None

    name: ClassVar[str] = "hamming"

    def __post_init__(self) -> None:
        check_method(self)
        if self.weights is None:
            return
        mapped = isinstance(self.weights, Mapping)
        values = np.array(list(self.weights.values()) if mapped else self.weights, np.float64)
        if values.ndim != 1 or not np.isfinite(values).all() or (values < 0).any():
            raise ModelError(f"weights of Hamming must be numbers of at least 0 by label, got {self.weights!r}")
        kept = tuple(sorted(self.weights.items(), key=str)) if mapped else tuple(values.tolist())
        object.__setattr__(self, "weights", dict(kept) if mapped else kept)

    def __hash__(self) -> int:
        return hash((self.normalised, str(self.weights)))

    def resolved(self, classes: Sequence[Any]) -> Hamming:
        if not isinstance(self.weights, Mapping):
            return self
        new = [label for label in self.weights if label not in classes]
        if new:
            raise ModelError(f"weights of Hamming name {new[0]!r}, which is no label of the training data")
        return replace(self, weights=tuple(float(self.weights.get(label, 1.0)) for label in classes))

    def _weights(self, n: int) -> FloatArray:
        if self.weights is None:
            return np.ones(n)
        if isinstance(self.weights, Mapping):
            raise ModelError("weights of Hamming by label need the labels: give a number for each, in their order")
        if len(self.weights) != n:
            raise ModelError(f"weights of Hamming are {len(self.weights)} numbers, and there are {n} labels")
        return np.array(self.weights)

    def state_costs(self, truth: Truth) -> FloatArray:
        cost = np.ones(len(truth.labels))
        if self.weights is not None:
            if len(truth.labels) and (truth.cardinalities != truth.cardinalities[0]).any():
                raise ModelError("weights of Hamming are for models whose variables all have the same labels")
            cost = self._weights(int(truth.cardinalities[0]) if len(truth.labels) else 0)[truth.labels]
        if self.normalised:
            cost = cost / truth.lengths[truth.examples]
        found = np.repeat(cost, truth.cardinalities)
        found[truth.offsets + truth.labels] = 0.0
        return found

    def part_costs(self, truth: TrueParts) -> tuple[FloatArray, FloatArray]:
        from markovfield.structured.losses.parts import PartLoss

        if self.weights is not None:
            raise ModelError("weights of Hamming are for labels of variables; structures have PartLoss(missing, wrong)")
        return PartLoss(normalised=self.normalised).part_costs(truth)

    def table(self, n_labels: int) -> FloatArray:
        return np.asarray(self._weights(n_labels)[:, None] * (1.0 - np.eye(n_labels)))


def weighted_hamming(loss: Any, class_weight: Any, counts: npt.NDArray[Any], who: str) -> Any:
    """``loss="hamming"`` with weights of labels; ``counts`` says how often each label is the truth."""
    if class_weight is None:
        return loss
    if not isinstance(loss, str) or loss != "hamming":
        raise ModelError(f"class_weight of {who} is for loss='hamming': give a table of losses instead")
    if isinstance(class_weight, Mapping):
        return Hamming(weights=class_weight)
    if not isinstance(class_weight, str) or class_weight != "balanced":
        raise ModelError(f"class_weight must be 'balanced' or a dict of labels, got {class_weight!r}")
    return Hamming(weights=tuple((counts.sum() / (len(counts) * np.maximum(counts, 1))).tolist()))


@dataclass(frozen=True)
class TableLoss(Loss):
    """A cost for each pair of a true and a predicted label, added up over variables.

    Parameters
    ----------
    costs
        ``[true, predicted]``, at least 0, and 0 where the truth is predicted; the order is that of classes.

    Examples
    --------
    >>> TableLoss([[0, 1], [5, 0]]).table(2).tolist()
    [[0.0, 1.0], [5.0, 0.0]]
    """

    costs: Any

    name: ClassVar[str] = "table"

    def __post_init__(self) -> None:
        try:
            table = np.array(self.costs, np.float64)
        except (TypeError, ValueError):
            raise ModelError(f"loss must be a square table of numbers, [true, predicted], got {self.costs!r}") from None
        if table.ndim != 2 or table.shape[0] != table.shape[1] or not np.isfinite(table).all():
            raise ModelError(f"loss must be a square table of numbers, [true, predicted], got shape {table.shape}")
        if (table < 0).any() or np.diag(table).any():
            raise ModelError("losses must be at least 0, and 0 where the truth is predicted")
        object.__setattr__(self, "costs", tuple(map(tuple, table.tolist())))

    def state_costs(self, truth: Truth) -> FloatArray:
        table = np.array(self.costs)
        other = truth.cardinalities[truth.cardinalities != len(table)]
        if len(other):
            raise ModelError(f"loss is a table of {len(table)} labels, and a variable has {int(other[0])}")
        return np.asarray(table[truth.labels].ravel())

    def part_costs(self, truth: TrueParts) -> None:
        raise ModelError("a table of losses is for labels of variables; structures have loss='hamming' or PartLoss")

    def table(self, n_labels: int) -> FloatArray:
        if len(self.costs) != n_labels:
            raise ModelError(f"loss must be a table [{n_labels}, {n_labels}] of true and predicted labels, got shape "
                             f"{np.shape(self.costs)}")  # fmt: skip
        return np.array(self.costs)


@dataclass(frozen=True)
class ZeroOne(Loss):
    """One where anything is wrong.

    The output of highest score and loss is the best output, or the second best where the best is the truth: exact
    wherever decoding is.

    Examples
    --------
    >>> ZeroOne().name
    'zero_one'
    """

    name: ClassVar[str] = "zero_one"
