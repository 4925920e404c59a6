"""Tree-blocked Gibbs sampling: blocks of variables without a cycle, each drawn as a whole."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from markovfield.inference.gibbs.tree_blocks_kernel import BlockModel, draw_trees
from markovfield.inference.problem.domains_kernel import factors_of_variables
from markovfield.inference.problem.merged_pairs import merge_pairs
from markovfield.inference.problem.problem import Problem

__all__ = ["TreeBlocks"]

# Nanoseconds of work in one call.
GRAIN = 8e7
_NOTHING = np.zeros(0)


@dataclass(eq=False)
class TreeBlocks:
    """Sweeps that cut the free variables into random blocks, trees in the factor graph, and draw each exactly.

    A block is grown from the variables in random order, each taken unless it closes a cycle; what is left makes the
    next block. On a tree one block is all of it, and every sweep an independent sample. Drawing a block is forward
    filtering and backward sampling over its factors (Hamze and de Freitas 2004): time is their cells. Tables on the
    same two variables are added up first, since two of them would be a cycle.
    """

    model: BlockModel
    sweeps_at_once: int
    conditional: ClassVar[bool] = True

    @classmethod
    def of(cls, problem: Problem) -> TreeBlocks:
        """Lay a problem out."""
        s, log_tables = merge_pairs(problem.structure, problem.potentials.log_tables)
        offsets, factors = factors_of_variables(s.n_variables, s.scope_offsets, s.scopes)
        arity = np.diff(s.scope_offsets)
        logs = np.zeros(len(s.scopes) + 1)
        np.cumsum(np.log2(s.cardinalities[s.scopes].astype(np.float64)), out=logs[1:])
        cells = np.rint(np.exp2(np.diff(logs[s.scope_offsets]))).astype(np.int64)
        limits = np.array([arity.max(initial=0), cells.max(initial=1)], np.int64)
        free = np.flatnonzero(s.cardinalities > 1).astype(np.int32)
        model = BlockModel(
            s.cardinalities, s.scope_offsets, s.scopes, s.table_offsets, s.table_strides,
            log_tables, offsets, factors, s.value_offsets, np.asarray(problem.likelihood), free,
            limits,
        )  # fmt: skip
        cost = 100.0 * len(free) + 100.0 * float(arity.sum()) + 20.0 * float(cells.sum())
        return cls(model, max(1, int(GRAIN / max(1.0, cost))))

    def advance(self, states: npt.NDArray[np.int32], stream: Any, sweeps: int) -> None:
        """Move on by some sweeps."""
        draw_trees(self.model, states, stream, sweeps, _NOTHING)

    def accumulate(self, states: npt.NDArray[np.int32], stream: Any, sweeps: int, sums: Any) -> None:
        """Add up the distributions that variables were drawn from."""
        draw_trees(self.model, states, stream, sweeps, sums)
