"""Markov chains of MC-SAT that follow the parameters, for models with formulas of large weight."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from markovfield.arrays import FloatArray
from markovfield.exceptions import ModelError
from markovfield.factors.factor_graph import FactorGraph
from markovfield.factors.structure import Structure
from markovfield.inference.gibbs.single_site import tabulated
from markovfield.inference.satisfiability.slice_kernel import Slice, move_columns
from markovfield.inference.satisfiability.slices import slice_of
from markovfield.inference.satisfiability.solutions_kernel import FIXED

__all__ = ["SliceMoves"]

LEAVES = 512


class SliceMoves:
    """Slices of a structure whose pool changes from step to step.

    Parameters
    ----------
    free
        Positions of the variables that move.
    """

    def __init__(self, structure: Structure, free: npt.NDArray[np.int64]) -> None:
        # Which cell each cell of the plain tables is a copy of.
        cells = FactorGraph(structure, np.arange(structure.n_cells, dtype=np.float64), marks_hold=True)
        tables = tabulated(cells).to_tables()
        if tables.n_variables != structure.n_variables:
            raise ModelError(
                "sampler='mc_sat' takes factors of up to 2^16 cells, and a larger one would need auxiliary variables "
                "here: use sampler='gibbs'"
            )
        self.structure, self.origin = tables.structure, tables.log_tables.astype(np.int64)
        self.fixed = np.ones(structure.n_variables, np.int64)
        self.fixed[free] = 0

    def at(self, pool: FloatArray) -> Slice:
        """Slices at the present numbers; of one thread."""
        found = slice_of(self.structure, pool[self.origin])
        found.variables[:, FIXED] = self.fixed
        return found

    @staticmethod
    def move(found: Slice, columns: npt.NDArray[np.int16], streams: npt.NDArray[np.uint64], sweeps: int) -> None:
        """Move the chain in each column."""
        move_columns(found, LEAVES, columns, streams, sweeps)
