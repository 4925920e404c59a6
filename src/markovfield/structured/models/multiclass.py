"""One label for each input: multinomial logistic regression, flat or with a taxonomy (Murphy 19.6.2.5)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from markovfield._validation import check_method
from markovfield.exceptions import ModelError
from markovfield.structured.core.conditional import Shape, Template
from markovfield.structured.core.model import Inputs, Placed, StructuredModel
from markovfield.structured.core.reading import encoded_labels, example_count, feature_rows, known_classes
from markovfield.structured.models.graph import joined

__all__ = ["HierarchyModel", "MulticlassModel", "class_rows"]


def class_rows(X: Any, n_features: int | None = None) -> Any:
    """Inputs as a matrix, a row for each example: errors name the row."""
    example_count(X)
    rows: Any = X if hasattr(X, "shape") and not hasattr(X, "columns") else np.asarray(X)
    if rows.ndim != 2:
        raise ModelError(f"X must be a matrix, a row for each example, got shape {rows.shape}")
    if n_features is not None and rows.shape[1] != n_features:
        raise ModelError(f"X must have {n_features} features as in training, got {rows.shape[1]}")
    dense = getattr(rows, "dtype", None)
    if isinstance(rows, np.ndarray) and dense is not None and dense.kind in "biuf":
        finite = np.isfinite(rows).all(axis=1)
        if not finite.all():
            raise ModelError(f"example {int(np.flatnonzero(~finite)[0])}: features must be finite")
    return feature_rows(rows, 0, "features")


@dataclass(frozen=True, eq=False)
class MulticlassModel(StructuredModel):
    """One label for each row of a matrix: ``p(y | x)`` proportional to ``exp(w_y' x)``.

    Parameters
    ----------
    bias
        Whether there is a constant feature as well, the first.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[0.0], [1.0], [2.0]])
    >>> model = MulticlassModel().shaped(X, ["a", "b", "c"])
    >>> model.encode(X, ["a", "b", "c"])
    Batch(3 examples, 3 variables, 3 factors, 6 weights)
    """

    bias: bool = True

    name: ClassVar[str] = "multiclass"

    def __post_init__(self) -> None:
        check_method(self)

    def shape_of(self, X: Any, Y: Any) -> Shape:
        """The labels and the number of features."""
        Y = [Y] if _plain(Y) else [[y] for y in Y]
        return Shape(known_classes(Y), {"features": class_rows(X).shape[1]})

    def templates(self) -> Sequence[Template]:
        """One: features by labels."""
        return [Template("classes", self.n_classes, self.known.sizes["features"] + self.bias)]

    def inputs(self, X: Any) -> Inputs:
        """A variable for each row."""
        size = self.known.sizes["features"]
        rows = class_rows(X, size)
        n = rows.shape[0]
        placed = Placed(np.arange(n)[:, None], joined([rows], size, self.bias))
        return Inputs(np.arange(n + 1), np.full(n, self.n_classes, np.int32), {self.templates()[0].name: placed})

    def labels(self, Y: Any, inputs: Inputs) -> npt.NDArray[np.int32]:
        """The state of each row."""
        n = len(inputs.variable_offsets) - 1
        # All at once, where no error can come of it: errors name the row.
        if _plain(Y) and len(Y) == n and set(np.unique(Y).tolist()) <= set(self.classes):
            return encoded_labels([Y], np.array([n]), self.classes)
        return super().labels([[y] for y in Y], inputs)

    def outputs(self, states: npt.NDArray[np.int32], inputs: Inputs) -> Any:
        """An array of labels."""
        return np.asarray(self.classes)[states]


def _plain(Y: Any) -> bool:
    """Whether labels are an array of whole numbers or texts."""
    return isinstance(Y, np.ndarray) and Y.ndim == 1 and Y.dtype.kind in "biuU" and len(Y) > 0


@dataclass(frozen=True, eq=False)
class HierarchyModel(MulticlassModel):
    """One label for each row, in a taxonomy: a class has its own weights and those of all its ancestors.

    The features are ``phi(x) tensor phi(y)``, where phi(y) has a bit for the class y and one for each of its ancestors
    (Murphy 19.6.2.5, whose text has children for ancestors): classes that are near in the taxonomy share weights, which
    helps where there are few examples of each.

    Parameters
    ----------
    taxonomy
        The parent of each class and of each inner node, by name; nodes without an entry are roots. Two levels of digits
        by shape: ``{0: "round", 6: "round", 8: "round", 1: "straight", ...}``.
    bias
        Whether there is a constant feature as well, the first.

    Examples
    --------
    >>> import numpy as np
    >>> model = HierarchyModel({"cat": "animal", "dog": "animal", "animal": "thing", "car": "thing"})
    >>> model = model.shaped(np.eye(3), ["cat", "dog", "car"])
    >>> model.nodes
    ('car', 'cat', 'dog', 'thing', 'animal')
    >>> model.bits.astype(int).tolist()
    [[1, 0, 0, 1, 0], [0, 1, 0, 1, 1], [0, 0, 1, 1, 1]]
    """

    taxonomy: Mapping[Any, Any] | None = None

    name: ClassVar[str] = "hierarchy"

    def __init__(self, taxonomy: Mapping[Any, Any] | None = None, bias: bool = True, *, shape: Any = None) -> None:
        object.__setattr__(self, "taxonomy", taxonomy)
        object.__setattr__(self, "bias", bias)
        object.__setattr__(self, "shape", shape)
        check_method(self)
        if not isinstance(taxonomy, Mapping) or not taxonomy:
            raise ModelError("taxonomy of HierarchyModel must be a dict from each class to its parent")
        for node in taxonomy:
            self._above(node)

    def _above(self, node: Any) -> list[Any]:
        """A node and its ancestors."""
        assert self.taxonomy is not None
        path = [node]
        while path[-1] in self.taxonomy:
            path.append(self.taxonomy[path[-1]])
            if path[-1] in path[:-1]:
                raise ModelError(f"the taxonomy goes round in a circle at {path[-1]!r}")
        return path

    @property
    def nodes(self) -> tuple[Any, ...]:
        """Classes, and then the inner nodes, as they are found above them."""
        return tuple(dict.fromkeys([*self.classes, *(node for c in self.classes for node in self._above(c))]))

    @property
    def bits(self) -> npt.NDArray[np.float64]:
        """``float64[n_classes, n_nodes]``: one for a class and each of its ancestors."""
        position = {node: i for i, node in enumerate(self.nodes)}
        bits = np.zeros((self.n_classes, len(position)))
        for i, label in enumerate(self.classes):
            bits[i, [position[node] for node in self._above(label)]] = 1.0
        return bits

    def templates(self) -> Sequence[Template]:
        """One: features by nodes of the taxonomy."""
        return [Template("nodes", self.n_classes, self.known.sizes["features"] + self.bias, self.bits)]

    @property
    def takes_hidden(self) -> bool:
        """The taxonomy has a place for labels alone."""
        return False

    def shape_of(self, X: Any, Y: Any) -> Shape:
        """The labels, each of which must be in the taxonomy, and the number of features."""
        shape = super().shape_of(X, Y)
        assert self.taxonomy is not None
        for label in shape.classes:
            if label not in self.taxonomy:
                raise ModelError(f"label {label!r} has no place in the taxonomy")
        return shape
