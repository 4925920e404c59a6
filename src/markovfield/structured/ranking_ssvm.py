"""Rankings by margins: the items of a list, the relevant ones first (Murphy 19.7.5; Joachims 2005)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from markovfield.arrays import FloatArray, IntArray
from markovfield.exceptions import ModelError
from markovfield.structured.core.conditional import Shape
from markovfield.structured.core.model import Inputs, StructuredModel
from markovfield.structured.core.reading import example_count
from markovfield.structured.estimator import StructuredEstimator
from markovfield.structured.losses.counts import PrecisionAtK
from markovfield.structured.margin_estimator import MarginEstimator
from markovfield.structured.models.graph import GraphModel
from markovfield.structured.settings import MarginSettings

__all__ = ["ItemModel", "RankingSSVM"]


@dataclass(frozen=True, eq=False)
class ItemModel(GraphModel):
    """Whether each item of a list is relevant: an input is ``float[n_items, k]``, an output 0 or 1 for each.

    Examples
    --------
    >>> import numpy as np
    >>> model = ItemModel(bias=False).shaped([np.eye(3)], [[1, 0, 0]])
    >>> model.encode([np.eye(3)], [[1, 0, 0]])
    Batch(1 example, 3 variables, 3 factors, 6 weights)
    """

    name: ClassVar[str] = "items"

    def shape_of(self, X: Any, Y: Any) -> Shape:
        shape = super().shape_of(_graphs(X), Y)
        if set(shape.classes) - {0, 1}:
            raise ModelError(f"relevance must be 0 or 1, got {sorted(set(shape.classes) - {0, 1}, key=str)[0]!r}")
        return shape

    def inputs(self, X: Any) -> Inputs:
        return super().inputs(_graphs(X))


def _graphs(X: Any) -> list[Any]:
    """Lists as graphs without edges of any type."""
    example_count(X)
    return [(x, {}) for x in X]


@dataclass(kw_only=True, eq=False, repr=False)
class RankingSSVM(MarginSettings, StructuredEstimator, MarginEstimator):
    """Ranks the items of lists so that the first are relevant, by a structural SVM on precision at k.

    An input is the items of a list, ``float[n_items, n_features]``, and an output their relevance, 0 or 1 for each.
    Minimised is ``1/2 |w|^2 + C sum_i hinge_i`` over lists; the most violated set of k items is found by sorting, so
    that the gap is exact.

    Parameters
    ----------
    C, rescaling, solver, early_stopping, batch_size, rng, n_jobs
        As those of `GraphSSVM`.
    k
        How many of the first items count.
    loss
        `PrecisionAtK` of ``k`` when None; ``"f1"`` and ``"hamming"`` are losses of relevance, too.

    Examples
    --------
    >>> import numpy as np
    >>> X = [np.array([[0.1], [0.9], [0.5]]), np.array([[0.8], [0.2]])]
    >>> svm = RankingSSVM(10.0, k=1, rng=0).fit(X, [[0, 1, 0], [1, 0]])
    >>> [order.tolist() for order in svm.rank(X)]
    [[1, 2, 0], [0, 1]]
    >>> svm.score(X, [[0, 1, 0], [1, 0]])
    1.0
    """

    k: int = 10
    loss: Any = None

    def _model(self) -> StructuredModel:
        return ItemModel(bias=False)

    def _loss(self) -> Any:
        return PrecisionAtK(negative=0, k=self.k) if self.loss is None else self.loss

    def decision_function(self, X: Any) -> list[FloatArray]:
        """For each list the scores of its items: the higher, the more relevant."""
        inputs, batch = self._batch(X)
        scores = batch.pool(self.weights_).reshape(-1, 2)
        return np.split(scores[:, 1] - scores[:, 0], inputs.variable_offsets[1:-1])

    def rank(self, X: Any) -> list[IntArray]:
        """For each list its items, the most relevant first."""
        return [np.argsort(-scores, kind="stable") for scores in self.decision_function(X)]

    def score(self, X: Any, y: Any, sample_weight: npt.ArrayLike | None = None) -> float:
        """The precision of the first k, of at most as many as are relevant: the mean over lists that have any."""
        found, weights = [], []
        given = np.ones(example_count(X, y)) if sample_weight is None else np.asarray(sample_weight, np.float64)
        for order, relevance, weight in zip(self.rank(X), y, given.tolist(), strict=True):
            true = np.asarray(relevance)
            if most := min(self.k, int(true.sum())):
                found.append(true[order[: self.k]].sum() / most)
                weights.append(weight)
        return float(np.average(found, weights=weights)) if found else 1.0
