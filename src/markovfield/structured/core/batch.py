"""Examples as one factor graph: a structure, an operator from weights to its pool, and labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from markovfield.arrays import FloatArray, IntArray, offsets_of
from markovfield.exceptions import ModelError
from markovfield.factors.factor_graph import FactorGraph
from markovfield.factors.structure import Structure, c_order_strides
from markovfield.structured.core.operators import Operator, entries_of

__all__ = ["Batch", "Factors"]


@dataclass(frozen=True, eq=False)
class Factors:
    """Factors of one kind, of all examples, and how their tables depend on the weights.

    Attributes
    ----------
    scopes
        ``int[n, arity]``: variables, numbered through all examples. Factors of one kind may have tables of different
        shapes.
    operator
        Makes their tables, one after the other, each in C order.
    at
        Where its weights start in the vector of all weights.
    table
        ``int[n]``: which of the tables a factor reads, where several share one; None is each its own. Tables that are
        shared must be of one shape.
    """

    scopes: IntArray
    operator: Operator
    at: int
    table: IntArray | None = None


@dataclass(frozen=True, eq=False)
class Batch:
    """A union of the factor graphs of examples: ``log p(y | x) = score of y in pool(w) - log Z``, example by example.

    Attributes
    ----------
    structure
        Of the union; nothing joins two examples.
    variable_offsets
        ``int64[n_examples + 1]``: the variables of each example.
    labels
        ``int32[n_variables]``: the state of each variable, -1 where it is hidden or not known.
    n_weights
        Length of the vector of weights.
    factors, cells
        Kinds of factors, and where in the pool the cells of each start (with the end as last entry).
    base
        ``float64[n_cells]`` log-potentials that have no weight, or None.
    weights
        ``float64[n_examples]``: how much examples count; None is one each.
    possible
        ``bool[total states]``: the states that a label which is not known may have, variable after variable (see
        `Structure.value_offsets`); None is all.
    wide_inference
        What infers where examples are too wide for exact inference and nobody says: ``"belief_propagation"`` or
        ``"tree_reweighted"``.
    """

    structure: Structure
    variable_offsets: IntArray
    labels: npt.NDArray[np.int32]
    n_weights: int
    factors: tuple[Factors, ...]
    cells: IntArray
    base: FloatArray | None = None
    weights: FloatArray | None = None
    possible: npt.NDArray[np.bool_] | None = None
    wide_inference: str = "belief_propagation"

    @classmethod
    def of(
        cls,
        cardinalities: npt.ArrayLike,
        variable_offsets: npt.ArrayLike,
        factors: Sequence[Factors],
        n_weights: int,
        labels: npt.ArrayLike | None = None,
        **settings: Any,
    ) -> Batch:
        """Join factors of all kinds to one structure.

        Examples
        --------
        >>> import numpy as np
        >>> from markovfield.structured.core.operators import TensorProduct
        >>> nodes = Factors(np.array([[0], [1], [2]]), TensorProduct(3, 2, np.array([[1.0], [2.0], [3.0]])), at=0)
        >>> edges = Factors(np.array([[0, 1]]), TensorProduct(1, 4), at=2, table=np.zeros(1, int))
        >>> batch = Batch.of([2, 2, 2], [0, 2, 3], [nodes, edges], n_weights=6, labels=[0, 0, 1])
        >>> batch
        Batch(2 examples, 3 variables, 4 factors, 6 weights)
        >>> batch.joint_features().tolist()
        [3.0, 3.0, 1.0, 0.0, 0.0, 0.0]
        """
        cards = np.asarray(cardinalities, np.int32)
        starts, parts = [0], []
        for kind in factors:
            sizes = np.prod(cards[kind.scopes].astype(np.int64), axis=1)
            if kind.table is None:
                offsets = np.cumsum(sizes) - sizes
                made = int(sizes.sum())
            else:
                size = int(sizes[0]) if len(sizes) else 1
                if (sizes != size).any():
                    raise ModelError("factors that share tables must have tables of one shape")
                offsets, made = np.asarray(kind.table, np.int64) * size, kind.operator.n_cells
                if len(offsets) and not (offsets.min() >= 0 and offsets.max() + size <= made):
                    raise ModelError(f"a factor reads a table beyond the {made} cells that there are")
            if made != kind.operator.n_cells:
                raise ModelError(f"tables have {made} cells in all, and their operator makes {kind.operator.n_cells}")
            parts.append(starts[-1] + offsets)
            starts.append(starts[-1] + made)
        arity = np.concatenate([np.zeros(1, np.int64), *(np.full(len(f.scopes), f.scopes.shape[1]) for f in factors)])
        scope_offsets = np.cumsum(arity)
        scopes = np.concatenate([np.zeros(0, np.int32), *(f.scopes.ravel() for f in factors)]).astype(np.int32)
        structure = Structure.from_arrays(
            cards,
            scope_offsets,
            scopes,
            np.concatenate([np.zeros(0, np.int64), *parts]),
            c_order_strides(cards, scope_offsets, scopes),
            n_cells=starts[-1],
        )
        n = len(cards)
        known = np.full(n, -1, np.int32) if labels is None else np.ascontiguousarray(labels, np.int32)
        return cls(
            structure,
            np.asarray(variable_offsets, np.int64),
            known,
            n_weights,
            tuple(factors),
            np.array(starts, np.int64),
            **settings,
        )

    def __repr__(self) -> str:
        s = self.structure
        return (
            f"Batch({self.n_examples} example{'s' * (self.n_examples != 1)}, {s.n_variables} variables, "
            f"{s.n_factors} factors, {self.n_weights} weights)"
        )

    @property
    def n_examples(self) -> int:
        """How many examples there are."""
        return len(self.variable_offsets) - 1

    @property
    def details(self) -> dict[str, int]:
        """Sizes, for a report."""
        return {"n_variables": self.structure.n_variables}

    @cached_property
    def is_labelled(self) -> bool:
        """Whether every variable has a label."""
        return bool((self.labels >= 0).all())

    @cached_property
    def example_of_factor(self) -> IntArray:
        """``int64[n_factors]``."""
        s = self.structure
        first = s.scopes[s.scope_offsets[:-1]]
        return np.searchsorted(self.variable_offsets, first, side="right") - 1

    @cached_property
    def example_of_variable(self) -> IntArray:
        """``int64[n_variables]``."""
        return np.repeat(np.arange(self.n_examples), np.diff(self.variable_offsets))

    @cached_property
    def factor_weights(self) -> FloatArray:
        """``float64[n_factors]``: the weight of each factor's example."""
        if self.weights is None:
            return np.ones(self.structure.n_factors)
        return self.weights[self.example_of_factor]

    def pool(self, w: FloatArray) -> FloatArray:
        """``base + A w``: the log-potentials of all cells, read-only."""
        pool = np.empty(self.structure.n_cells) if self.base is None else self.base.copy()
        for kind, start, end in zip(self.factors, self.cells[:-1], self.cells[1:], strict=True):
            made = kind.operator.forward(w[kind.at : kind.at + kind.operator.n_weights])
            if self.base is None:
                pool[start:end] = made
            else:
                pool[start:end] += made
        pool.flags.writeable = False
        return pool

    def adjoint(self, cells: FloatArray) -> FloatArray:
        """``A' cells``: features of counts of cells."""
        features = np.zeros(self.n_weights)
        for kind, start, end in zip(self.factors, self.cells[:-1], self.cells[1:], strict=True):
            features[kind.at : kind.at + kind.operator.n_weights] += kind.operator.adjoint(cells[start:end])
        return features

    def graph(self, w: FloatArray) -> FactorGraph:
        """The union with the log-potentials of some weights."""
        return FactorGraph(self.structure, self.pool(w), marks_hold=True)

    def restricted_graph(self, w: FloatArray) -> FactorGraph:
        """The same in which states that are not `possible` are ruled out."""
        return FactorGraph(self.structure, self.restricted(self.pool(w)), marks_hold=True)

    def restricted(self, pool: FloatArray) -> FloatArray:
        """A pool in which states that are not `possible` are ruled out."""
        if self.possible is None:
            return pool
        pool = pool.copy()
        pool[self._impossible_cells] = -np.inf
        pool.flags.writeable = False
        return pool

    @cached_property
    def _impossible_cells(self) -> IntArray:
        """Cells that stand for a state of a variable which is not possible: each in a table of its own."""
        s = self.structure
        assert self.possible is not None
        single = np.flatnonzero(np.diff(s.scope_offsets) == 1)
        _, copies = np.unique(s.table_offsets[single], return_counts=True)
        own = single if (copies == 1).all() else single[:0]
        table = np.full(s.n_variables, -1, np.int64)
        table[s.scopes[s.scope_offsets[own]]] = s.table_offsets[own]
        variable = np.repeat(np.arange(s.n_variables), s.cardinalities)
        bad = np.flatnonzero(~self.possible)
        if (table[variable[bad]] < 0).any():
            raise ModelError("labels of which some states are possible need factors of single variables, not shared")
        return table[variable[bad]] + bad - s.value_offsets[variable[bad]]

    def cells_read(self, states: npt.NDArray[np.int32]) -> IntArray:
        """``int64[n_factors]``: the cell that each factor reads at some states of all variables."""
        s = self.structure
        if not s.n_factors:
            return np.zeros(0, np.int64)
        steps = s.table_strides * states[s.scopes].astype(np.int64)
        return s.table_offsets + np.add.reduceat(steps, s.scope_offsets[:-1])

    def counts(self, states: npt.NDArray[np.int32] | None = None) -> FloatArray:
        """``float64[n_cells]``: how often some states (the labels when None) read each cell, weighted by example."""
        read = self.cells_read(self.labels if states is None else states)
        given = None if self.weights is None else self.factor_weights
        return np.bincount(read, given, self.structure.n_cells).astype(np.float64)

    def joint_features(self, states: npt.NDArray[np.int32] | None = None) -> FloatArray:
        """``A' counts``: the features of some states (the labels when None), summed over examples."""
        return self.adjoint(self.counts(states))

    def differences(self, states: npt.NDArray[np.int32]) -> Any:
        """``float64[n_examples, n_weights]``, sparse: features of the labels less those of some states."""
        from scipy.sparse import csr_array

        offsets, columns, values = self.difference_rows(states)
        return csr_array((values, columns, offsets), shape=(self.n_examples, self.n_weights))

    def difference_rows(self, states: npt.NDArray[np.int32]) -> tuple[IntArray, IntArray, FloatArray]:
        """The same as plain arrays: offsets, columns in rising order, and values of sparse rows."""
        return self.rows_between(self.cells_read(self.labels), self.cells_read(states))

    def rows_between(self, mine: IntArray, other: IntArray) -> tuple[IntArray, IntArray, FloatArray]:
        """The same of cells that factors read, ``int64[n_factors]`` each, which need not be those of any states."""
        keys, values, first = [np.zeros(0, np.int64)], [np.zeros(0)], 0
        for kind, start in zip(self.factors, self.cells[:-1], strict=True):
            own = slice(first, first + len(kind.scopes))
            first = own.stop
            differ = np.flatnonzero(mine[own] != other[own])
            if not len(differ) or not kind.operator.n_weights:
                continue
            at = self.example_of_factor[own][differ] * self.n_weights + kind.at
            for cells, sign in ((mine, 1.0), (other, -1.0)):
                sizes, columns, parts = entries_of(kind.operator, cells[own][differ] - start)
                keys.append(np.repeat(at, sizes) + columns)
                values.append(sign * parts)
        joined = np.concatenate(keys)
        order = np.argsort(joined, kind="stable")
        joined = joined[order]
        new = np.flatnonzero(np.concatenate([[True], joined[1:] != joined[:-1]])) if len(joined) else order
        sums = np.add.reduceat(np.concatenate(values)[order], new) if len(new) else np.zeros(0)
        kept = sums != 0.0
        rows, columns = np.divmod(joined[new][kept], max(self.n_weights, 1))
        offsets = offsets_of(np.bincount(rows, minlength=self.n_examples))
        return offsets, columns, sums[kept]

    def scores(self, pool: FloatArray, states: npt.NDArray[np.int32] | None = None) -> FloatArray:
        """``float64[n_examples]``: the score of some states (the labels when None) of each example."""
        read = self.cells_read(self.labels if states is None else states)
        return np.bincount(self.example_of_factor, pool[read], self.n_examples).astype(np.float64)

    def split(self, values: npt.NDArray[Any]) -> list[npt.NDArray[Any]]:
        """A vector over all variables, example by example."""
        return np.split(values, self.variable_offsets[1:-1])
