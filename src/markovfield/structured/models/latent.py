"""Hidden states of labels in any model of one kind of variables (Murphy 19.6.3, last paragraph)."""

from __future__ import annotations

from collections.abc import Sequence
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

__all__ = ["LatentModel"]


@dataclass(frozen=True, eq=False)
class LatentModel(StructuredModel):
    """Every label stands for several hidden states, which the data do not tell apart.

    The factors of another model are on hidden states in place of labels; the probability of labels is the sum over
    their hidden states. The objective is not convex: training starts from small random weights.

    Parameters
    ----------
    model
        A model with one set of labels, such as `GraphModel`, `MulticlassModel` or `GridModel`.
    n_hidden
        Hidden states of each label.
    spread
        Standard deviation of the weights that training starts from.

    Examples
    --------
    >>> import numpy as np
    >>> from markovfield.structured.models.multiclass import MulticlassModel
    >>> X = np.array([[-1.0], [0.0], [1.0]])
    >>> model = LatentModel(MulticlassModel(), n_hidden=2).shaped(X, ["out", "in", "out"])
    >>> model.encode(X, ["out", "in", "out"])
    Batch(3 examples, 3 variables, 3 factors, 8 weights)
    """

    model: StructuredModel | None = None
    n_hidden: int = 2
    spread: float = 0.1

    name: ClassVar[str] = "latent"

    def __post_init__(self) -> None:
        if not isinstance(self.model, StructuredModel):
            raise ModelError("LatentModel needs a model, such as LatentModel(GraphModel(), n_hidden=2)")
        check_method(self, least={"n_hidden": 1, "spread": 0.0})
        if not self.model.takes_hidden:
            raise ModelError(f"labels of {type(self.model).__name__} as it is set cannot stand for hidden states")

    @property
    def hidden_per_label(self) -> int:
        """`n_hidden`."""
        return self.n_hidden

    @property
    def takes_hidden(self) -> bool:
        """Hidden states have no hidden states of their own: a larger `n_hidden` is the same model."""
        return False

    @cached_property
    def inner(self) -> StructuredModel:
        """The model of hidden states: as many as labels times `n_hidden`, those of a label one after the other."""
        assert self.model is not None
        states = tuple(range(len(self.known.classes) * self.n_hidden))
        return replace(self.model, shape=replace(self.known, classes=states))

    @property
    def shape_class(self) -> type[Shape]:  # type: ignore[override]
        """That of the model."""
        assert self.model is not None
        return self.model.shape_class

    def shape_of(self, X: Any, Y: Any) -> Shape:
        """That of the model."""
        assert self.model is not None
        return self.model.shape_of(X, Y)

    def templates(self) -> Sequence[Template]:
        """Those of the model, on hidden states."""
        return self.inner.templates()

    def inputs(self, X: Any) -> Inputs:
        """Those of the model."""
        return self.inner.inputs(X)

    def start(self, rng: np.random.Generator) -> FloatArray:
        """Small random weights: with all zero, hidden states of a label would stay alike."""
        return rng.normal(scale=self.spread, size=self.n_weights)

    def visible_labels(self, Y: Any, inputs: Inputs) -> npt.NDArray[np.int32]:
        """Those of the model."""
        assert self.model is not None
        return replace(self.model, shape=self.known).labels(Y, inputs)

    def labels(self, Y: Any, inputs: Inputs) -> npt.NDArray[np.int32]:
        """None are known: `possible` says which a label leaves open."""
        known = self.visible_labels(Y, inputs)
        return known if self.n_hidden == 1 else np.full(len(known), -1, np.int32)

    def possible(self, Y: Any, inputs: Inputs) -> npt.NDArray[np.bool_] | None:
        """The hidden states of each known label."""
        known = self.visible_labels(Y, inputs)
        if self.n_hidden == 1:
            return None
        label = np.arange(self.n_classes * self.n_hidden) // self.n_hidden
        return np.asarray(((label == known[:, None]) | (known[:, None] < 0)).ravel())

    def outputs(self, states: npt.NDArray[np.int32], inputs: Inputs) -> Any:
        """Labels of hidden states."""
        return self.labelled_outputs(np.asarray(states // self.n_hidden, np.int32), inputs)

    def labelled_outputs(self, states: npt.NDArray[np.int32], inputs: Inputs) -> Any:
        """Those of the model."""
        assert self.model is not None
        return replace(self.model, shape=self.known).outputs(states, inputs)
