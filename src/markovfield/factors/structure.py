"""The structure of a factor graph: everything but the numbers, frozen.

A factor reads the pool through a base offset and one stride per axis, so that many factors can share one table,
and so that fixing a variable, or naming one twice in a scope, only changes an offset or a stride. What is derived from
a structure is kept with it (`remembered`), so that a step of learning, which only changes numbers, plans nothing."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from markovfield.arrays import FloatArray, Frozen, offsets_of
from markovfield.exceptions import ModelError
from markovfield.factors.conditional_marks import DECLARED, sound_marks
from markovfield.factors.factor_kinds import (
    NOISY_MAX,
    TABLE,
    check_cells,
)
from markovfield.names import Names

__all__ = ["IntArray", "Structure", "c_order_strides", "frozen"]


IntArray = npt.NDArray[np.integer[Any]]


def frozen(array: npt.ArrayLike, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """A contiguous array of the dtype that nobody can write through (copied only when it must be)."""
    result = np.ascontiguousarray(array, dtype=dtype)
    if result.flags.writeable:
        if not isinstance(array, (list, tuple)) and np.may_share_memory(result, np.asarray(array)):
            result = result.copy()
        result.flags.writeable = False
    return result


@dataclass(frozen=True, eq=False, repr=False)
class Structure(Frozen):
    """Which variables there are, which factors join them, and where each factor's cells lie in the pool.

    Parameters
    ----------
    cardinalities
        ``int32[n]``, the number of states of each variable.
    scope_offsets, scopes
        ``int64[m + 1]`` and ``int32[k]``: the variables of factor f are
        ``scopes[scope_offsets[f]:scope_offsets[f + 1]]``, in axis order.
    table_offsets, table_strides
        ``int64[m]`` and ``int64[k]``: the cell of a configuration is the factor's offset plus, over its axes,
        stride times state.
    n_cells
        Length of the pool of log-potentials.
    child
        ``int32[m]``: the variable a factor is a conditional distribution of (it sums to one over that variable for
        every state of the others), or -1. A `FactorGraph` keeps the marks that are true of its tables.
    kind
        ``int8[m]``: `TABLE` or a structured kind, as `markovfield.factors.kinds_kernel` describes them.
    names
        Names of variables and states; they never enter a kernel.
    """

    cardinalities: npt.NDArray[np.int32]
    scope_offsets: npt.NDArray[np.int64]
    scopes: npt.NDArray[np.int32]
    table_offsets: npt.NDArray[np.int64]
    table_strides: npt.NDArray[np.int64]
    n_cells: int
    child: npt.NDArray[np.int32]
    kind: npt.NDArray[np.int8]
    names: Names
    cache: dict[Any, Any] = field(default_factory=dict, repr=False, init=False)

    def __repr__(self) -> str:
        n, m = self.n_variables, self.n_factors
        return f"Structure({n} variable{'s' * (n != 1)}, {m} factor{'s' * (m != 1)}, {self.n_cells} cells)"

    def __getstate__(self) -> dict[str, Any]:
        return super().__getstate__() | {"declared": DECLARED.of(self)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        declared = state.pop("declared")
        super().__setstate__(state)
        if declared is not None:
            DECLARED.tell(self, declared)

    @classmethod
    def from_arrays(
        cls,
        cardinalities: npt.ArrayLike,
        scope_offsets: npt.ArrayLike,
        scopes: npt.ArrayLike,
        table_offsets: npt.ArrayLike,
        table_strides: npt.ArrayLike | None = None,
        *,
        n_cells: int,
        child: npt.ArrayLike | None = None,
        kind: npt.ArrayLike | None = None,
        names: Names | None = None,
    ) -> Structure:
        """Check the arrays, merge axes that name the same variable, and freeze them.

        ``table_strides=None`` means C order (last axis fastest) for every factor.
        """
        cards = frozen(cardinalities, np.int32)
        offsets = frozen(scope_offsets, np.int64)
        flat = frozen(scopes, np.int32)
        bases = frozen(table_offsets, np.int64)
        n, m = len(cards), len(bases)
        if cards.ndim != 1 or (n and cards.min() < 1):
            raise ModelError("cardinalities must be a vector of counts of at least one")
        if len(offsets) != m + 1 or offsets[0] != 0 or offsets[-1] != len(flat) or np.any(np.diff(offsets) < 0):
            raise ModelError(f"scope_offsets must rise from 0 to {len(flat)} in {m + 1} entries")
        if len(flat) and (flat.min() < 0 or flat.max() >= n):
            raise ModelError(f"a scope names variable {flat.max() if flat.min() >= 0 else flat.min()} of {n}")
        if table_strides is None:
            strides = c_order_strides(cards, offsets, flat)
        else:
            strides = np.array(table_strides, dtype=np.int64)
        if len(strides) != len(flat):
            raise ModelError(f"table_strides needs one entry per axis, {len(flat)}, got {len(strides)}")
        kinds = np.zeros(m, np.int8) if kind is None else np.array(kind, np.int8)
        children = np.full(m, -1, np.int32) if child is None else np.array(child, np.int32)
        if len(kinds) != m or len(children) != m:
            raise ModelError(f"child and kind need one entry per factor, {m}")
        if len(children) and not (children.min() >= -1 and children.max() < n):
            raise ModelError(f"a factor is marked as a distribution of variable {children.max()} of {n}")
        repeated = _factors_with_repeats(offsets, flat)
        if repeated:
            from markovfield.factors.to_tables import merge_repeated_axes

            offsets, flat, strides, bases, kinds = merge_repeated_axes(offsets, flat, strides, bases, kinds, repeated)
        structure = cls(
            cards,
            frozen(offsets, np.int64),
            frozen(flat, np.int32),
            frozen(bases, np.int64),
            frozen(strides, np.int64),
            int(n_cells),
            frozen(children, np.int32),
            frozen(kinds, np.int8),
            names if names is not None else Names(range(n)),
        )
        check_cells(structure)
        sound = sound_marks(n, structure.scope_offsets, structure.scopes, structure.child)
        if not np.array_equal(sound, structure.child):
            structure = replace(structure, child=frozen(sound, np.int32))
        return structure

    @property
    def n_variables(self) -> int:
        """Number of variables."""
        return len(self.cardinalities)

    @property
    def n_factors(self) -> int:
        """Number of factors."""
        return len(self.table_offsets)

    @cached_property
    def value_offsets(self) -> npt.NDArray[np.int64]:
        """``int64[n + 1]``: where each variable's states start in a vector over all variables' states."""
        offsets = offsets_of(self.cardinalities)
        offsets.flags.writeable = False
        return offsets

    @cached_property
    def cells_read(self) -> float:
        """Cells of all factors' tables, each counted as often as factors read it; factors of other kinds are small."""
        cells = np.zeros(len(self.scopes) + 1)
        np.cumsum(np.log2(self.cardinalities[self.scopes]), out=cells[1:])
        logs = cells[self.scope_offsets[1:]] - cells[self.scope_offsets[:-1]]
        return float(np.exp2(np.minimum(logs[self.kind == TABLE], 60.0)).sum())

    @cached_property
    def is_plain(self) -> bool:
        """Whether every factor is a plain table."""
        return not np.any(self.kind != TABLE)

    @property
    def declared(self) -> Structure:
        """The structure with all marks that its model set; this may keep only those that its tables bear out."""
        found = DECLARED.of(self)
        return self if found is None else found

    @cached_property
    def is_marked(self) -> bool:
        """Whether some factor is a conditional distribution."""
        return bool(np.any(self.child >= 0))

    @cached_property
    def has_latent(self) -> bool:
        """Whether a factor sums over contributions that no variable of the model shows (a noisy-max).

        Then the auxiliary variables of the graph of tables may be summed out, but not maximised.
        """
        return bool(np.any(self.kind == NOISY_MAX))

    @cached_property
    def as_tables(self) -> tuple[Structure, FloatArray, npt.NDArray[np.int64]]:
        """An equivalent structure of plain tables, the cells it appends to the pool, and which cells those copy."""
        from markovfield.factors.to_tables import tables_of_structure

        return tables_of_structure(self)

    def scope(self, factor: int) -> npt.NDArray[np.int32]:
        """Positions of a factor's variables, in axis order."""
        return self.scopes[self.scope_offsets[factor] : self.scope_offsets[factor + 1]]

    def strides(self, factor: int) -> npt.NDArray[np.int64]:
        """Pool strides of a factor's axes; a structured kind keeps its literals, caps or blocks there."""
        return self.table_strides[self.scope_offsets[factor] : self.scope_offsets[factor + 1]]


def c_order_strides(
    cardinalities: npt.NDArray[np.int32], scope_offsets: npt.NDArray[np.int64], scopes: npt.NDArray[np.int32]
) -> npt.NDArray[np.int64]:
    """Strides of tables stored with the last axis fastest, for all factors at once."""
    strides = np.ones(len(scopes), np.int64)
    cards = cardinalities[scopes].astype(np.int64)
    arity = np.diff(scope_offsets)
    # One vectorised step per axis position counted from the end: few steps, however many factors.
    for back in range(2, int(arity.max(initial=0)) + 1):
        at = scope_offsets[1:][arity >= back] - back
        strides[at] = strides[at + 1] * cards[at + 1]
    return strides


def _factors_with_repeats(offsets: npt.NDArray[np.int64], scopes: npt.NDArray[np.int32]) -> set[int]:
    """Factors whose scope names a variable twice."""
    factor = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    order = np.lexsort((scopes, factor))
    owner, variable = factor[order], scopes[order]
    same = (owner[1:] == owner[:-1]) & (variable[1:] == variable[:-1])
    return set(owner[1:][same].tolist())
