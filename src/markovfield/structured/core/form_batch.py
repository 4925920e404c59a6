"""Examples whose outputs are structures (trees, segmentations, alignments): a family and a linear operator."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from markovfield.arrays import FloatArray, IntArray
from markovfield.inference.core.running import Running
from markovfield.structured.core.operators import Operator, rows_of
from markovfield.structures.core.family import Family, Parts, Sums

__all__ = ["Block", "FormBatch"]


class Block(NamedTuple):
    """Scores that some weights make: ``pool[cells] += operator(w[at : at + n_weights])``.

    Attributes
    ----------
    name
        Of the template whose weights they are.
    operator
        From weights to as many cells; see `markovfield.structured.LinearTerms`.
    cells
        A slice of the pool, or ``int64[operator.n_cells]``: the cell of each number; None is the whole pool.
    """

    name: str
    operator: Operator
    cells: slice | IntArray | None = None


@dataclass(frozen=True, eq=False)
class FormBatch:
    """Examples as one family, with the operator that takes weights to scores, and their outputs where known.

    Attributes
    ----------
    family
        The structures that each example may have; nothing of scores.
    blocks, starts
        Parts of the operator, and where the weights of each begin.
    parts
        The cells of the outputs; None where they are not known, or hidden (then ``mask`` says what is).
    base
        ``float64[n_cells]``: scores without weights, or None.
    weights
        ``float64[n_examples]``: how much examples count; None is one each.
    mask
        ``float64[n_cells]`` of 0 and -inf, or None: added to scores, it leaves the structures that go with the outputs,
        where these leave something open.
    clamped
        The structures that go with the outputs, as a family with the same cells, where no mask can say which they are;
        or None.
    counted
        ``bool[n_cells]``: the cells whose parts count in losses; None is all that belong to one example.
    """

    family: Family
    blocks: tuple[Block, ...]
    starts: tuple[int, ...]
    n_weights: int
    parts: Parts | None = None
    base: FloatArray | None = None
    weights: FloatArray | None = None
    mask: FloatArray | None = None
    clamped: Family | None = None
    counted: npt.NDArray[np.bool_] | None = None

    def __repr__(self) -> str:
        n = self.n_examples
        return (
            f"FormBatch({n} example{'s' * (n != 1)}, {self.family.name}, {self.family.n_cells} cells, "
            f"{self.n_weights} weights)"
        )

    @property
    def n_examples(self) -> int:
        """How many examples there are."""
        return self.family.n_instances

    @property
    def details(self) -> dict[str, int]:
        """Sizes, for a report."""
        return {"n_cells": self.family.n_cells}

    @property
    def hidden(self) -> bool:
        """Whether it is known which structures go with the outputs, where these are hidden."""
        return self.mask is not None or self.clamped is not None

    @cached_property
    def _whole(self) -> bool:
        """Whether the first block fills the pool."""
        return self.base is None and bool(self.blocks) and self.blocks[0].cells is None

    def pool(self, w: FloatArray) -> FloatArray:
        """``base + A w``: the scores of all parts."""
        pool = np.zeros(self.family.n_cells) if self.base is None else self.base.copy()
        for i, (block, at) in enumerate(zip(self.blocks, self.starts, strict=True)):
            made = block.operator.forward(w[at : at + block.operator.n_weights])
            if i == 0 and self._whole:
                pool = np.ascontiguousarray(made, np.float64)
            elif block.cells is None:
                pool += made
            elif isinstance(block.cells, slice):
                pool[block.cells] += made
            else:
                np.add.at(pool, block.cells, made)
        return pool

    def adjoint(self, cells: FloatArray) -> FloatArray:
        """``A' cells``: features of counts of cells."""
        features = np.zeros(self.n_weights)
        for block, at in zip(self.blocks, self.starts, strict=True):
            own = cells if block.cells is None else cells[block.cells]
            features[at : at + block.operator.n_weights] += block.operator.adjoint(own)
        return features

    def sums(self, pool: FloatArray, *, clamped: bool = False, running: Running) -> Sums:
        """log Z of every example and expected counts of all, weighted; of structures that go with the outputs alone."""
        family = self.family
        if clamped:
            assert self.hidden
            pool = pool if self.mask is None else pool + self.mask
            family = self.family if self.clamped is None else self.clamped
        return family.sums(pool, counts=True, weights=self.weights, running=running)

    def decode(self, pool: FloatArray, *, loss: FloatArray | None = None, running: Running) -> Parts:
        """The structures of highest score, ``loss[cell]`` being added to scores."""
        return self.family.maxima(pool if loss is None else pool + loss, running=running)

    def joint_features(self, parts: Parts | None = None) -> FloatArray:
        """``A' counts``: the features of some structures (the outputs when None), summed over examples, weighted."""
        chosen: Any = self.parts if parts is None else parts
        return self.adjoint(chosen.counts(self.family.n_cells, self.weights))

    def differences(self, parts: Parts) -> Any:
        """``float64[n_examples, n_weights]``, sparse: features of the outputs less those of other structures."""
        from scipy.sparse import csr_array

        assert self.parts is not None
        n, shape = self.n_examples, (self.n_examples, self.family.n_cells)
        counts = csr_array((np.ones(len(self.parts.cells)), self.parts.cells, self.parts.offsets), shape=shape)
        counts = counts - csr_array((np.ones(len(parts.cells)), parts.cells, parts.offsets), shape=shape)
        counts.sum_duplicates()
        counts.eliminate_zeros()
        example, cells = np.repeat(np.arange(n), np.diff(counts.indptr)), counts.indices.astype(np.int64)
        found = csr_array((n, self.n_weights))
        for (order, place), block, at in zip(self._places, self.blocks, self.starts, strict=True):
            # The numbers of a block that go to each cell.
            first, last = np.searchsorted(order, cells), np.searchsorted(order, cells, "right")
            many = last - first
            which = np.repeat(first - (np.cumsum(many) - many), many) + np.arange(many.sum())
            rows = rows_of(block.operator, place[which])
            spread = csr_array(
                (np.repeat(counts.data, many), (np.repeat(example, many), np.arange(len(which)))),
                shape=(n, len(which)),
            )
            made = spread @ rows
            found = found + csr_array((made.data, made.indices + at, made.indptr), shape=found.shape)
        return found

    @cached_property
    def _places(self) -> list[tuple[IntArray, IntArray]]:
        """For each block its cells in order, and which number of the block goes to each."""
        found = []
        for block in self.blocks:
            cells = np.arange(self.family.n_cells)
            own = cells if block.cells is None else cells[block.cells]
            order = np.argsort(own, kind="stable")
            found.append((own[order], order))
        return found
