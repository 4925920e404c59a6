"""Factorial chains: several layers of labels over the same tokens (Murphy 19.6.2.2)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from markovfield._validation import check_method
from markovfield.arrays import IntArray
from markovfield.exceptions import ModelError
from markovfield.sequence.conditional.tokens import (
    TokenShape,
    attribute_matrix,
    learned_vectoriser,
    neighbours,
)
from markovfield.sequence.text.sequences import split_sequences
from markovfield.structured.core.conditional import Shape, Template
from markovfield.structured.core.model import Inputs, Placed, StructuredModel
from markovfield.structured.core.reading import encoded_labels, known_classes

__all__ = ["FactorialChainModel"]


@dataclass(frozen=True, eq=False)
class FactorialChainModel(StructuredModel):
    """Several labels for each token, in layers: each layer a linear chain, joined token by token to the next layer.

    An input is a sentence as `ChainCRF` takes it. An output is a dict with a list of labels for each layer, or a table
    with a row for each token and a column for each layer. Labels that are None, and layers that a dict leaves out, are
    not known. Inference is exact as long as the states of all layers together are few enough for a junction tree, which
    then is the product of the chains.

    Parameters
    ----------
    layers
        Names of the layers, in the order in which they are joined.
    across
        Whether the label of a token is also joined to the label of the token after it in the next layer.
    pair_features
        Whether the weights of pairs of labels of one token, in two layers, also depend on its attributes.
    min_count
        Attributes with fewer references are left out.

    Examples
    --------
    >>> model = FactorialChainModel(["tag", "chunk"])
    >>> X = [[["w=the"], ["w=dog"], ["w=ran"]]]
    >>> Y = [{"tag": ["DT", "NN", "VB"], "chunk": ["B", "I", "O"]}]
    >>> model = model.shaped(X, Y)
    >>> model.encode(X, Y)
    Batch(1 example, 6 variables, 13 factors, 45 weights)
    >>> {name: shape for name, (_, shape) in model.layout.items()}  # doctest: +NORMALIZE_WHITESPACE
    {'tag': (3, 3), 'tag transitions': (1, 9), 'chunk': (3, 3), 'chunk transitions': (1, 9), 'tag with chunk': (1, 9)}
    """

    layers: Sequence[str] = ()
    across: bool = False
    pair_features: bool = False
    min_count: int = 1

    name: ClassVar[str] = "factorial_chain"
    shape_class: ClassVar[type[Shape]] = TokenShape

    def __post_init__(self) -> None:
        check_method(self, least={"min_count": 1})
        layers = self.layers
        fine = not isinstance(layers, str) and len(layers) > 0 and all(isinstance(name, str) for name in layers)
        if not fine or len(set(layers)) < len(layers):
            raise ModelError(f"FactorialChainModel: layers must be different names, at least one, got {layers!r}")

    @property
    def takes_hidden(self) -> bool:
        """Layers have labels of their own."""
        return False

    def shape_of(self, X: Any, Y: Any) -> Shape:
        """The labels of each layer and the attributes."""
        vectoriser = learned_vectoriser(X, self.min_count)
        classes = []
        for name, labels in zip(self.layers, self._by_layer(Y), strict=True):
            try:
                classes.append(known_classes(labels))
            except ModelError as error:
                raise ModelError(f"layer {name!r}: {error}") from None
        return TokenShape(tuple(classes), {"attributes": vectoriser.n_attributes_}, vectoriser=vectoriser)

    def templates(self) -> Sequence[Template]:
        """Tokens and transitions of each layer, then pairs of layers."""
        n, sizes = self.known.sizes["attributes"], list(map(len, self.classes))
        found = []
        for name, k in zip(self.layers, sizes, strict=True):
            found += [Template(name, k, n), Template(f"{name} transitions", k * k)]
        for (one, k), (other, m) in pairwise(zip(self.layers, sizes, strict=True)):
            found.append(Template(f"{one} with {other}", k * m, n if self.pair_features else None))
            if self.across:
                found.append(Template(f"{one} before {other}", k * m))
        return found

    def inputs(self, X: Any) -> Inputs:
        """Attributes and neighbours of all sentences; the variables of a token stand together, layer by layer."""
        matrix, offsets = attribute_matrix(self.known, X)
        n, depth, steps = matrix.shape[0], len(self.layers), neighbours(offsets)
        tokens = np.arange(n)[:, None] * depth
        placed = {}
        for layer, name in enumerate(self.layers):
            placed[name] = Placed(tokens + layer, matrix)
            placed[f"{name} transitions"] = Placed(steps * depth + layer)
        for layer, (one, other) in enumerate(pairwise(self.layers)):
            features = matrix if self.pair_features else None
            placed[f"{one} with {other}"] = Placed(tokens + np.array([layer, layer + 1]), features)
            if self.across:
                placed[f"{one} before {other}"] = Placed(steps * depth + np.array([layer, layer + 1]))
        cardinalities = np.tile(np.array(list(map(len, self.classes)), np.int32), n)
        return Inputs(offsets * depth, cardinalities, placed)

    def labels(self, Y: Any, inputs: Inputs) -> npt.NDArray[np.int32]:
        """Labels of all layers as states, -1 where they are not known."""
        lengths = np.diff(inputs.variable_offsets) // len(self.layers)
        by_layer = []
        for name, labels, classes in zip(self.layers, self._by_layer(Y, lengths), self.classes, strict=True):
            try:
                by_layer.append(encoded_labels(labels, lengths, classes))
            except ModelError as error:
                raise ModelError(f"layer {name!r}: {error}") from None
        return np.column_stack(by_layer).ravel()

    def outputs(self, states: npt.NDArray[np.int32], inputs: Inputs) -> list[Any]:
        """For each sentence a dict with a list of labels for each layer."""
        depth = len(self.layers)
        offsets = inputs.variable_offsets // depth
        columns = [
            split_sequences([classes[k] for k in states[layer::depth].tolist()], offsets)
            for layer, classes in enumerate(self.classes)
        ]
        return [dict(zip(self.layers, labels, strict=True)) for labels in zip(*columns, strict=True)]

    def _by_layer(self, Y: Any, lengths: IntArray | None = None) -> list[list[Any]]:
        """For each layer the labels of every sentence; None throughout where a dict leaves a layer out."""
        found: list[list[Any]] = [[] for _ in self.layers]
        for i, y in enumerate(Y):
            if isinstance(y, Mapping):
                strange = next((name for name in y if name not in self.layers), None)
                if strange is not None:
                    raise ModelError(f"example {i}: there is no layer {strange!r}; layers are {list(self.layers)}")
                sizes = {len(labels) for labels in y.values()}
                if len(sizes) > 1:
                    raise ModelError(f"example {i}: its layers have different numbers of labels, {sorted(sizes)}")
                length = int(lengths[i]) if lengths is not None else next(iter(sizes), 0)
                for own, name in zip(found, self.layers, strict=True):
                    own.append(list(y[name]) if name in y else [None] * length)
                continue
            rows = [list(row) if np.ndim(row) else [row] for row in y]
            if any(len(row) != len(self.layers) for row in rows):
                t = next(t for t, row in enumerate(rows) if len(row) != len(self.layers))
                raise ModelError(
                    f"example {i}: token {t} has {len(rows[t])} labels where there are {len(self.layers)} layers; give "
                    "a row of labels for each token, or a dict with a list for each layer"
                )
            for own, labels in zip(found, zip(*rows, strict=True) if rows else [()] * len(found), strict=True):
                own.append(list(labels))
        return found
