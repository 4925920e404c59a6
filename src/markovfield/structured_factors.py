"""Structured factors: kinds whose meaning is far smaller than their table, and how each lowers to small tables.

Exact methods run on the lowered graph. A kind's parameters live in the common pool, and lowering leaves them where
they are, so expected counts of the parameters come out in the original cells.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from markovfield.factor_graph import CLAUSE, TABLE, Structure
from markovfield.names import Names

__all__ = ["lower_structure"]


def lower_structure(structure: Structure) -> tuple[Structure, np.ndarray[Any, np.dtype[np.float64]]]:
    """Replace every structured factor by small tables; also return the constants to append to the pool.

    A clause of k literals becomes a chain of auxiliary binary variables "one of the first i literals is true": k - 1
    constant tables over (previous, variable, next), then the clause's own two cells as a table on the last. Any
    arity costs O(k) cells, and adds at most two to the width.
    """
    builder = _Builder(structure)
    for f in range(structure.n_factors):
        if structure.kind[f] == CLAUSE:
            builder.add_clause(f)
        else:
            scope, strides = structure.scope(f).tolist(), structure.strides(f).tolist()
            builder.add(scope, strides, int(structure.table_offsets[f]), int(structure.child[f]))
    return builder.finish()


class _Builder:
    def __init__(self, structure: Structure) -> None:
        self.structure = structure
        self.cardinalities = structure.cardinalities.tolist()
        self.offsets = [0]
        self.scopes: list[int] = []
        self.strides: list[int] = []
        self.bases: list[int] = []
        self.children: list[int] = []
        self.constants: list[np.ndarray[Any, Any]] = []
        self.n_cells = structure.n_cells
        self.shared: dict[Any, int] = {}

    def add(self, scope: list[int], strides: list[int], base: int, child: int = -1) -> None:
        self.scopes += scope
        self.strides += strides
        self.offsets.append(len(self.scopes))
        self.bases.append(base)
        self.children.append(child)

    def add_constant(self, scope: list[int], allowed: np.ndarray[Any, Any], key: Any) -> None:
        """A 0/-inf table over ``scope``, stored once per ``key``."""
        base = self.shared.get(key)
        if base is None:
            base = self.shared[key] = self.n_cells
            self.constants.append(np.where(allowed, 0.0, -np.inf).ravel())
            self.n_cells += allowed.size
        strides = [1] * len(scope)
        for i in range(len(scope) - 2, -1, -1):
            strides[i] = strides[i + 1] * self.cardinalities[scope[i + 1]]
        self.add(scope, strides, base)

    def auxiliary(self) -> int:
        self.cardinalities.append(2)
        return len(self.cardinalities) - 1

    def add_clause(self, f: int) -> None:
        base = int(self.structure.table_offsets[f])
        scope, literals = self.structure.scope(f).tolist(), self.structure.strides(f).tolist()
        if not scope:
            self.add([], [], base)
            return
        last = -1
        for v, literal in zip(scope, literals, strict=True):
            card = self.cardinalities[v]
            states = np.arange(card)
            holds = (states != literal if literal >= 0 else states == -literal - 1).astype(np.int64)
            fresh = self.auxiliary()
            if last < 0:
                self.add_constant([v, fresh], holds[:, None] == np.arange(2), (card, literal))
            else:
                either = np.arange(2)[:, None] | holds[None, :]
                self.add_constant([last, v, fresh], either[:, :, None] == np.arange(2), (2, card, literal))
            last = fresh
        self.add([last], [1], base)

    def finish(self) -> tuple[Structure, np.ndarray[Any, np.dtype[np.float64]]]:
        s = self.structure
        extra = len(self.cardinalities) - s.n_variables
        taken = set(s.names.variables)
        prefix = "auxiliary"
        while any(isinstance(v, str) and v.startswith(prefix) for v in taken):
            prefix = "_" + prefix
        names = Names([*s.names.variables, *(f"{prefix} {i}" for i in range(extra))], s.names.states)
        lowered = Structure.from_arrays(
            self.cardinalities,
            self.offsets,
            self.scopes,
            self.bases,
            self.strides,
            n_cells=self.n_cells,
            child=self.children,
            kind=np.full(len(self.bases), TABLE),
            names=names,
        )
        return lowered, np.concatenate([np.zeros(0), *self.constants])
