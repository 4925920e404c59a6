"""Scores of nodes by an external classifier, then a joint model on top (Murphy 19.6.2.1)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from markovfield._validation import check_method
from markovfield.arrays import FloatArray
from markovfield.exceptions import ModelError
from markovfield.structured.core.conditional import Shape, Template
from markovfield.structured.core.model import Inputs, StructuredModel
from markovfield.structured.core.reading import feature_rows

__all__ = ["NeuralFeatures"]


@dataclass(frozen=True, eq=False)
class NeuralFeatures(StructuredModel):
    """Node features replaced by what a trained classifier makes of them: a network, a forest, anything with scores.

    The classifier is trained beforehand, on nodes by themselves; the joint model learns how far to trust each of its
    scores, and what neighbours say of each other.

    Parameters
    ----------
    model
        A model whose inputs are ``(node_features, ...)``, such as `GraphModel`, or matrices.
    scores
        A fitted scikit-learn classifier, or a function from ``float[n, k]`` features to ``float[n, m]`` scores.
    keep
        Whether the features themselves are kept beside the scores.

    Examples
    --------
    >>> import numpy as np
    >>> from markovfield.structured.models.graph import GraphModel
    >>> model = NeuralFeatures(GraphModel(), scores=np.tanh)
    >>> x = (np.array([[1.0, 2.0], [3.0, 4.0]]), [[0, 1]])
    >>> model.shaped([x], [[0, 1]]).encode([x])
    Batch(1 example, 2 variables, 3 factors, 9 weights)
    """

    model: StructuredModel | None = None
    scores: Any = None
    keep: bool = False

    name: ClassVar[str] = "neural"

    def __post_init__(self) -> None:
        if not isinstance(self.model, StructuredModel):
            raise ModelError("NeuralFeatures needs a model, such as NeuralFeatures(GraphModel(), scores=classifier)")
        check_method(self)
        self._function()

    def _function(self) -> Callable[[Any], Any]:
        for name in ("predict_log_proba", "decision_function"):
            if hasattr(self.scores, name):
                return getattr(self.scores, name)  # type: ignore[no-any-return]
        if not callable(self.scores):
            raise ModelError("scores of NeuralFeatures must be a fitted classifier or a function of node features")
        return self.scores  # type: ignore[no-any-return]

    @cached_property
    def inner(self) -> StructuredModel:
        """The joint model, with the shape of its scores."""
        assert self.model is not None
        return replace(self.model, shape=self.known)

    def _scored(self, X: Any) -> Any:
        if hasattr(X, "shape"):
            return self._rows(X, 0)
        for i, x in enumerate(X):
            if not isinstance(x, tuple | list) or len(x) not in (2, 3) or np.ndim(x[0]) != 2:
                raise ModelError(
                    f"example {i}: NeuralFeatures takes graphs (node_features, ...), or a matrix of all rows, "
                    f"got {type(x).__name__}"
                )
        return [(self._rows(x[0], i), *x[1:]) for i, x in enumerate(X)]

    def _rows(self, features: Any, index: int) -> Any:
        given = feature_rows(features, index, "node features")
        from scipy.sparse import hstack, issparse

        scores = np.asarray(self._function()(given), np.float64)
        if scores.ndim == 1:
            scores = scores[:, None]
        if scores.shape[0] != given.shape[0]:
            raise ModelError(
                f"example {index}: the classifier gave {len(scores)} rows of scores for {given.shape[0]} nodes"
            )
        # A classifier that is sure says log 0.
        scores = np.maximum(scores, -50.0)
        if not self.keep:
            return scores
        return hstack([given, scores], format="csr") if issparse(given) else np.column_stack([given, scores])

    @property
    def shape_class(self) -> type[Shape]:  # type: ignore[override]
        """That of the model."""
        assert self.model is not None
        return self.model.shape_class

    def shape_of(self, X: Any, Y: Any) -> Shape:
        """That of the joint model."""
        assert self.model is not None
        return self.model.shape_of(self._scored(X), Y)

    def templates(self) -> Sequence[Template]:
        """Those of the joint model."""
        return self.inner.templates()

    def inputs(self, X: Any) -> Inputs:
        """Those of the joint model, of scores."""
        return self.inner.inputs(self._scored(X))

    @property
    def hidden_per_label(self) -> int:
        """That of the joint model."""
        assert self.model is not None
        return self.model.hidden_per_label

    @property
    def takes_hidden(self) -> bool:
        """That of the joint model."""
        assert self.model is not None
        return self.model.takes_hidden

    def start(self, rng: np.random.Generator) -> FloatArray:
        """That of the joint model."""
        return self.inner.start(rng)

    def visible_labels(self, Y: Any, inputs: Inputs) -> npt.NDArray[np.int32]:
        """Those of the joint model."""
        return self.inner.visible_labels(Y, inputs)

    def labelled_outputs(self, states: npt.NDArray[np.int32], inputs: Inputs) -> Any:
        """Those of the joint model."""
        return self.inner.labelled_outputs(states, inputs)

    def labels(self, Y: Any, inputs: Inputs) -> npt.NDArray[np.int32]:
        """Those of the joint model."""
        return self.inner.labels(Y, inputs)

    def possible(self, Y: Any, inputs: Inputs) -> npt.NDArray[np.bool_] | None:
        """Those of the joint model."""
        return self.inner.possible(Y, inputs)

    def outputs(self, states: npt.NDArray[np.int32], inputs: Inputs) -> Any:
        """Those of the joint model."""
        return self.inner.outputs(states, inputs)
