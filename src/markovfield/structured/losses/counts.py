"""Losses of counts: how many of those that are predicted are right (Murphy 19.7.5; Joachims 2005)."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from markovfield._validation import check_method
from markovfield.arrays import FloatArray
from markovfield.exceptions import ModelError
from markovfield.structured.losses.loss import Loss

__all__ = ["F1", "CountLoss", "PrecisionAtK"]


@dataclass(frozen=True)
class CountLoss(Loss):
    """A loss of an example that depends on two counts: labels predicted, and those of them that are right.

    One label is *negative* and counts as nothing predicted.
    """

    negative: Any = None

    def resolved(self, classes: Sequence[Any]) -> CountLoss:
        if self.negative is None:
            found = next((label for label in ("O", 0) if label in classes), None)
            if found is None:
                raise ModelError(f"{type(self).__name__} needs the label that counts for nothing: negative=...")
            return replace(self, negative=list(classes).index(found))
        if self.negative not in classes:
            raise ModelError(f"{type(self).__name__}: negative={self.negative!r} is no label of the training data")
        return replace(self, negative=list(classes).index(self.negative))

    @abstractmethod
    def costs(self, n_true: int, n: int) -> FloatArray:
        """``float64[n_true + 1, n + 1]``: the loss ``[right, predicted]``, inf where an output may not be so."""


@dataclass(frozen=True)
class F1(CountLoss):
    """One less the F1 score of an example: ``1 - 2 right / (predicted + true)``.

    Exact for linear chains (tokens, by counting in the dynamic program) and for labels that do not depend on each
    other (by sorting). Other models refuse it.

    Parameters
    ----------
    negative
        The label that counts for nothing; ``"O"`` or 0 where there is one of these.

    Examples
    --------
    >>> F1().costs(1, 2).round(3).tolist()
    [[1.0, 1.0, 1.0], [-1.0, 0.0, 0.333]]
    """

    name: ClassVar[str] = "f1"

    def costs(self, n_true: int, n: int) -> FloatArray:
        right, predicted = np.arange(n_true + 1)[:, None], np.arange(n + 1)[None, :]
        total = predicted + n_true
        return np.where(total > 0, 1.0 - 2.0 * right / np.maximum(total, 1), 0.0)


@dataclass(frozen=True)
class PrecisionAtK(CountLoss):
    """One less the precision of the k that are predicted: ``1 - right / min(k, true)``, so that the best costs 0.

    Outputs that are compared with the truth have exactly k labels predicted. For labels that do not depend on each
    other, by sorting: it is then a ranking of labels, or of rows where a row is a label.

    Parameters
    ----------
    k
        How many are predicted (all, where there are fewer).
    negative
        As that of `F1`.

    Examples
    --------
    >>> PrecisionAtK(k=1).costs(2, 2).tolist()
    [[inf, 1.0, inf], [inf, 0.0, inf], [inf, -1.0, inf]]
    """

    k: int = 10

    name: ClassVar[str] = "precision_at_k"

    def __post_init__(self) -> None:
        check_method(self, least={"k": 1})

    def costs(self, n_true: int, n: int) -> FloatArray:
        found = np.full((n_true + 1, n + 1), np.inf)
        k = min(self.k, n)
        best = min(k, n_true)
        found[:, k] = 1.0 - np.arange(n_true + 1) / best if best else 0.0
        return found
