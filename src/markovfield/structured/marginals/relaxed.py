"""Oracles that overgenerate: fractional outputs, points of the local polytope (Finley and Joachims 2008).

Where decoding is hard, the best point of the local polytope is found by a linear program. It takes in all outputs, so
that the hinge of the relaxation is no less than the true one, planes of fractional points and all; training drives
weights to where the relaxation is tight, as far as that costs little (Meshi et al. 2016).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from markovfield.arrays import FloatArray, IntArray
from markovfield.exceptions import ModelError
from markovfield.inference.core.running import Running
from markovfield.structured.core.batch import Batch
from markovfield.structured.losses.loss import Truth
from markovfield.structured.marginals.polytope import label_cells, polytope_of
from markovfield.structured.oracles.decoders import Rows

__all__ = ["RelaxedDecoder"]

# Cells of a linear program, above which it takes minutes; what is nearer to a whole number is one.
MOST_CELLS, WHOLE = 200_000, 1e-6


class RelaxedDecoder:
    """Points of the local polytope of factor graphs, by linear programs; see `Decoder`.

    An output is ``float64[n_cells]``: marginals of variables, state by state, then those of factors.

    Attributes
    ----------
    n_outputs, n_fractional
        Outputs so far, and how many of them were not whole.
    """

    exact, sure, gap = True, True, 0.0

    def __init__(self, batch: Batch, running: Running) -> None:
        if not isinstance(batch, Batch):
            raise ModelError("relaxed=True is for factor graphs, whose outputs are labels of variables")
        if not batch.is_labelled:
            raise ModelError("max-margin training needs every label; hidden ones are for LatentSSVM or the likelihood")
        s, n = batch.structure, batch.n_examples
        self.batch, self.running = batch, running
        self.n_examples, self.n_weights, self.n_outputs, self.n_fractional = n, batch.n_weights, 0, 0
        self.slots = np.repeat(batch.example_of_variable, s.cardinalities)
        self.truth = Truth(
            batch.labels.astype(np.int64), s.cardinalities.astype(np.int64), batch.example_of_variable, n
        )
        own = replace(batch, weights=None)
        self._polytope = polytope_of([own], [np.zeros(len(self.slots))], np.ones(n), "local", MOST_CELLS)
        self._true, self._example = label_cells(own, self._polytope.losses.shape[0])
        self._columns = self._polytope.features.tocsc()

    def best(self, w: FloatArray, added: FloatArray | None = None) -> FloatArray:
        """The highest point."""
        from scipy.optimize import linprog

        self.running.check()
        p = self._polytope
        scores = p.losses + p.features.T @ w
        if added is not None:
            scores[: len(added)] += added
        found = linprog(-scores, A_eq=p.equations, b_eq=p.right, bounds=(0.0, 1.0), method="highs")
        if found.x is None:
            raise ModelError(f"the linear program of a relaxed oracle was not solved: {found.message}")
        point = np.where(np.abs(found.x - np.round(found.x)) <= WHOLE, np.round(found.x), found.x)
        states = point[: len(self.slots)]
        self.n_outputs += self.n_examples
        self.n_fractional += len(np.unique(self.slots[states != np.round(states)]))
        return point

    def other(self, w: FloatArray, output: FloatArray, which: IntArray) -> FloatArray:
        raise ModelError("relaxed=True needs a loss that adds up, such as 'hamming', and not 'zero_one'")

    def _by_example(self, cells: FloatArray) -> FloatArray:
        return np.bincount(self._example, cells, self.n_examples).astype(np.float64)

    def wrong(self, output: FloatArray) -> npt.NDArray[np.bool_]:
        return self._by_example(np.abs(output - self._true)) > 0.0

    def merged(self, first: FloatArray, second: FloatArray, which: npt.NDArray[np.bool_]) -> FloatArray:
        return np.where(which[self._example], second, first)

    def total(self, slots: FloatArray, output: FloatArray) -> FloatArray:
        return np.bincount(self.slots, slots * output[: len(slots)], self.n_examples).astype(np.float64)

    def rows(self, output: FloatArray) -> Rows:
        from scipy.sparse import csr_array

        change = self._true - output
        differ = np.flatnonzero(change)
        moved = csr_array(
            (change[differ], (self._example[differ], np.arange(len(differ)))), shape=(self.n_examples, len(differ))
        )
        found: Any = csr_array(moved @ self._columns[:, differ].T)
        found.sum_duplicates()
        return Rows.of(found)

    def base(self, output: FloatArray) -> FloatArray | None:
        if self.batch.base is None:
            return None
        return self._by_example(self._polytope.losses * (output - self._true))
