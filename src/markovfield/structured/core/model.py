"""What every conditional model of factor graphs says: kinds of factors, inputs as flat arrays, labels as states."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from markovfield.arrays import FloatArray, IntArray
from markovfield.structured.core.batch import Batch, Factors
from markovfield.structured.core.conditional import ConditionalModel, example_weights
from markovfield.structured.core.operators import LinearTerms, TensorProduct
from markovfield.structured.core.reading import encoded_labels, example_count

__all__ = ["Inputs", "Placed", "StructuredModel"]


@dataclass(frozen=True, eq=False)
class Placed:
    """Where the factors of a template are, in all examples.

    Attributes
    ----------
    scopes
        ``int[n, arity]``, variables numbered through all examples.
    features
        ``float64[rows, n_features]`` of inputs, dense or sparse: a row for each factor, or for each group of factors
        that are written one after the other.
    table
        ``int[n]``: which table each factor reads, where they do not depend on the input; None is the first.
    terms
        ``float64[cells, k]`` in place of features: what each weight is multiplied with, cell by cell.
    """

    scopes: IntArray
    features: Any = None
    table: IntArray | None = None
    terms: Any = None


@dataclass(frozen=True, eq=False)
class Inputs:
    """Inputs of all examples as flat arrays; no Python object per variable.

    Attributes
    ----------
    variable_offsets
        ``int64[n_examples + 1]``.
    cardinalities
        ``int32[n_variables]``.
    placed
        The factors of each template.
    base
        Log-potentials without weights for templates that have them, as long as the template's cells.
    kinds
        ``int[n_variables]``: the kind of each variable, for models that tell kinds apart.
    """

    variable_offsets: IntArray
    cardinalities: npt.NDArray[np.int32]
    placed: Mapping[str, Placed]
    base: Mapping[str, FloatArray] = field(default_factory=dict)
    kinds: IntArray | None = None

    def example(self, i: int) -> Inputs:
        """One example by itself; needs rows of features that go with factors one by one, or tables without."""
        first, last = int(self.variable_offsets[i]), int(self.variable_offsets[i + 1])
        placed, base = {}, {}
        for name, all_of in self.placed.items():
            own = np.flatnonzero((all_of.scopes[:, 0] >= first) & (all_of.scopes[:, 0] < last))
            sizes = np.prod(self.cardinalities[all_of.scopes].astype(np.int64), axis=1)
            ends = np.cumsum(sizes)
            cells = slice(int((ends - sizes)[own[0]]), int(ends[own[-1]])) if len(own) else slice(0, 0)
            features = all_of.features
            if features is not None:
                group = max(1, len(all_of.scopes) // max(1, features.shape[0]))
                features = features[np.unique(own // group)]
            placed[name] = Placed(
                all_of.scopes[own] - first,
                features,
                None if all_of.table is None else all_of.table[own],
                None if all_of.terms is None else all_of.terms[cells],
            )
            if name in self.base:
                base[name] = self.base[name][cells]
        kinds = None if self.kinds is None else self.kinds[first:last]
        return Inputs(np.array([0, last - first]), self.cardinalities[first:last], placed, base, kinds)


@dataclass(frozen=True, eq=False)
class StructuredModel(ConditionalModel):
    """A model whose outputs are states of the variables of a factor graph."""

    @abstractmethod
    def inputs(self, X: Any) -> Inputs:
        """Inputs as flat arrays, checked: errors name the example."""

    def labels(self, Y: Any, inputs: Inputs) -> npt.NDArray[np.int32]:
        """Outputs as states of all variables, -1 where unknown (None)."""
        return encoded_labels(Y, np.diff(inputs.variable_offsets), self.classes)

    def possible(self, Y: Any, inputs: Inputs) -> npt.NDArray[np.bool_] | None:
        """The states that are possible given outputs, where those leave some open; None is all."""
        return None

    def outputs(self, states: npt.NDArray[np.int32], inputs: Inputs) -> list[Any]:
        """States as a user wants them: for each example an array of labels."""
        values = np.asarray(self.classes)[states]
        return np.split(values, inputs.variable_offsets[1:-1])

    @property
    def hidden_per_label(self) -> int:
        """How many states, one after the other, a label stands for."""
        return 1

    @property
    def takes_hidden(self) -> bool:
        """Whether states may be hidden states of labels: weights of states mean nothing but the states."""
        return True

    def visible_labels(self, Y: Any, inputs: Inputs) -> npt.NDArray[np.int32]:
        """Outputs as states of labels, where these are not states of variables."""
        return self.labels(Y, inputs)

    def labelled_outputs(self, states: npt.NDArray[np.int32], inputs: Inputs) -> Any:
        """Outputs from states of labels, where these are not states of variables."""
        return self.outputs(states, inputs)

    def encode(self, X: Any, Y: Any = None, weights: npt.ArrayLike | None = None) -> Batch:
        """Inputs, and outputs where they are known, as one batch."""
        if Y is not None:
            example_count(X, Y)
        inputs = self.inputs(X)
        return self.encode_inputs(inputs, Y, weights)

    def encode_inputs(self, inputs: Inputs, Y: Any = None, weights: npt.ArrayLike | None = None) -> Batch:
        """The same for inputs that have been read."""
        factors, bases = [], []
        for template in self.templates():
            placed = inputs.placed[template.name]
            operator: Any
            if placed.terms is not None:
                operator = LinearTerms(placed.terms)
            elif template.n_features is None:
                operator = TensorProduct(template.n_tables, template.n_cells, None, template.states)
            else:
                rows = placed.features.shape[0]
                operator = TensorProduct(rows, template.n_cells, placed.features, template.states)
            table = placed.table
            if template.n_features is None and placed.terms is None and table is None:
                table = np.zeros(len(placed.scopes), np.int64)
            factors.append(Factors(placed.scopes, operator, self.layout[template.name][0].start, table))
            bases.append(inputs.base.get(template.name, np.zeros(operator.n_cells)))
        labels = None if Y is None else self.labels(Y, inputs)
        given = None if weights is None else example_weights(weights, len(inputs.variable_offsets) - 1)
        return Batch.of(
            inputs.cardinalities,
            inputs.variable_offsets,
            factors,
            self.n_weights,
            labels,
            base=np.concatenate(bases) if inputs.base else None,
            weights=given,
            possible=None if Y is None else self.possible(Y, inputs),
            wide_inference=self.known.wide_inference,
        )
