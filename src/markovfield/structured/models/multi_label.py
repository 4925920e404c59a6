"""Several yes-or-no labels for each input, with what they say of each other (Murphy 19.6.2 on dependent outputs)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from markovfield._validation import check_method
from markovfield.exceptions import ModelError
from markovfield.inference.core.running import Running
from markovfield.learning.core.data import encode
from markovfield.learning.structures.chow_liu import ChowLiu
from markovfield.structured.core.conditional import Shape, Template
from markovfield.structured.core.model import Inputs, Placed, StructuredModel
from markovfield.structured.models.graph import joined
from markovfield.structured.models.multiclass import class_rows

__all__ = ["DEPENDENCES", "MultiLabelModel"]

DEPENDENCES = ("independent", "tree", "full")
# A table of how many labels there are has a cell for each combination.
MOST_COUNTED = 16


@dataclass(frozen=True, eq=False)
class MultiLabelModel(StructuredModel):
    """Which of several labels each row of a matrix has; an output is a row of zeros and ones.

    Parameters
    ----------
    dependence
        Which labels have a weight for coming together: ``"independent"`` none, ``"tree"`` the pairs of the Chow-Liu
        tree of the training labels (but for those that tell nothing of each other), which keeps inference exact and
        linear, ``"full"`` all pairs: exact up to about 20 labels, in time that doubles with each.
    cardinality
        Whether the number of labels that an input has gets weights too (up to 16 labels).
    bias
        Whether there is a constant feature as well, the first.

    Examples
    --------
    >>> import numpy as np
    >>> X, Y = np.eye(4), np.array([[1, 1, 0], [0, 0, 1], [1, 1, 1], [0, 0, 0]])
    >>> model = MultiLabelModel("tree").shaped(X, Y)
    >>> sorted(model.shape.edges)
    [(0, 1)]
    >>> model.encode(X, Y)
    Batch(4 examples, 12 variables, 16 factors, 16 weights)
    """

    dependence: str = "tree"
    cardinality: bool = False
    bias: bool = True

    name: ClassVar[str] = "multi_label"

    def __post_init__(self) -> None:
        check_method(self, choices={"dependence": DEPENDENCES})

    @property
    def takes_hidden(self) -> bool:
        """A label is there or not: there is nothing to split."""
        return False

    def shape_of(self, X: Any, Y: Any) -> Shape:
        """How many labels and features there are, and the pairs of labels that are joined."""
        labels = indicators(Y)
        n_labels = labels.shape[1]
        if self.cardinality and n_labels > MOST_COUNTED:
            raise ModelError(f"cardinality=True takes up to {MOST_COUNTED} labels, got {n_labels}")
        for j in range(n_labels):
            seen = np.unique(labels[labels[:, j] >= 0, j])
            if len(seen) < 2:
                raise ModelError(f"label {j} is always {'absent' if seen.sum() == 0 else 'there'} in training: drop it")
        pairs: list[tuple[int, int]] = []
        if self.dependence == "full":
            pairs = [(i, j) for i in range(n_labels) for j in range(i + 1, n_labels)]
        elif self.dependence == "tree" and n_labels > 1:
            pairs = _chow_liu(labels)
        sizes = {"features": class_rows(X).shape[1], "labels": n_labels}
        return Shape((0, 1), sizes, tuple(pairs))

    def templates(self) -> Sequence[Template]:
        """Labels by features; pairs; how many."""
        n, k = self.known.sizes["labels"], self.known.sizes["features"] + self.bias
        on = np.array([[0.0], [1.0]])
        found = [Template("labels", 2 * n, k, np.kron(np.eye(n), on))]
        if self.known.edges:
            both = np.array([[0.0], [0.0], [0.0], [1.0]])
            found.append(Template("pairs", 4, None, both, n_tables=len(self.known.edges)))
        if self.cardinality:
            many = np.array([bin(c).count("1") for c in range(2**n)])
            found.append(Template("cardinality", 2**n, None, np.eye(n + 1)[many][:, 1:]))
        return found

    def inputs(self, X: Any) -> Inputs:
        """As many variables for each row as there are labels."""
        n_labels, size = self.known.sizes["labels"], self.known.sizes["features"]
        rows = class_rows(X, size)
        n = rows.shape[0]
        at = np.arange(n)[:, None] * n_labels
        placed = {"labels": Placed(np.arange(n * n_labels)[:, None], joined([rows], size, self.bias))}
        if self.known.edges:
            edges = np.array(self.known.edges)
            scopes = (at[:, :, None] + edges[None]).reshape(-1, 2)
            placed["pairs"] = Placed(scopes, table=np.tile(np.arange(len(edges)), n))
        if self.cardinality:
            placed["cardinality"] = Placed(at + np.arange(n_labels))
        return Inputs(np.arange(n + 1) * n_labels, np.full(n * n_labels, 2, np.int32), placed)

    def labels(self, Y: Any, inputs: Inputs) -> npt.NDArray[np.int32]:
        """Zeros and ones of all rows, -1 for nan or None."""
        return indicators(Y, self.known.sizes["labels"]).ravel().astype(np.int32)

    def outputs(self, states: npt.NDArray[np.int32], inputs: Inputs) -> Any:
        """A matrix of zeros and ones."""
        return np.asarray(states.reshape(-1, self.known.sizes["labels"]), np.int64)


def indicators(Y: Any, n_labels: int | None = None) -> npt.NDArray[np.int64]:
    """A matrix of zeros and ones, -1 where it has nan or None: a row for each example."""
    dense = Y.toarray() if hasattr(Y, "toarray") else Y
    try:
        values = np.array(dense, np.float64)
    except (TypeError, ValueError):
        raise ModelError("y must be a matrix of zeros and ones, a column for each label") from None
    if values.ndim != 2:
        raise ModelError(f"y must be a matrix of zeros and ones, a column for each label, got shape {values.shape}")
    if n_labels is not None and values.shape[1] != n_labels:
        raise ModelError(f"y must have {n_labels} columns as in training, got {values.shape[1]}")
    values = np.where(np.isnan(values), -1.0, values)
    bad = np.flatnonzero(~np.isin(values, (-1.0, 0.0, 1.0)).all(axis=1))
    if len(bad):
        raise ModelError(f"example {bad[0]}: labels must be 0 or 1, got {values[bad[0]].tolist()}")
    return values.astype(np.int64)


def _chow_liu(labels: npt.NDArray[np.int64]) -> list[tuple[int, int]]:
    """The pairs of labels of their Chow-Liu tree."""
    columns = {j: [None if value < 0 else value for value in own.tolist()] for j, own in enumerate(labels.T)}
    tree = ChowLiu().learn(encode(columns), running=Running(), rng=np.random.default_rng(0))
    arcs: Any = tree.arcs
    return sorted((min(arc), max(arc)) for arc in arcs)
