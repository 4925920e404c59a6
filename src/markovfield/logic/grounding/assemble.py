"""From arrays of ground formulas to a factor graph: one structure, a pool in which equal weights share their cells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from markovfield.factors.factor_kinds import CARDINALITY, CLAUSE, TABLE
from markovfield.factors.structure import Structure, frozen
from markovfield.logic.grounding.determined import DeterminedBlocks
from markovfield.logic.grounding.ground import Block
from markovfield.logic.grounding.rules import HARD
from markovfield.logic.language.program import Rule
from markovfield.models.log_linear import sparse_operator
from markovfield.names import Names

if TYPE_CHECKING:
    from scipy.sparse import csr_array

__all__ = ["Assembled", "assemble"]

IntArray = npt.NDArray[np.int64]
# A clause's literals: a positive one holds in state 1, a negative one in state 0.
POSITIVE, NEGATIVE = -2, -1


@dataclass(frozen=True)
class Assembled:
    """A structure, the log-potentials that are no weight's, and the operator from weights to cells.

    ``rules`` says of its factors in turn how many are of which rule.
    """

    structure: Structure
    base: npt.NDArray[np.float64]
    operator: csr_array
    rules: tuple[tuple[int, Rule | None], ...]

    def rule_of(self, factor: int) -> Rule | None:
        """The rule that a factor is a ground formula of; None of soft evidence and of determined arguments."""
        for count, rule in self.rules:
            if factor < count:
                return rule
            factor -= count
        return None


class _Pool:
    """Cells as they are handed out, with what weights contribute to them."""

    def __init__(self) -> None:
        self.size = 0
        self.base: list[tuple[IntArray, float]] = []
        self.fixed: list[tuple[IntArray, npt.NDArray[np.float64]]] = []
        self.rows: list[IntArray] = []
        self.columns: list[IntArray] = []
        self.values: list[npt.NDArray[np.float64]] = []

    def tables(self, weight: IntArray, count: npt.NDArray[np.float64], truth: npt.NDArray[np.bool_]) -> IntArray:
        """For each factor the offset of its cells; factors of the same weight and count share them."""
        keys = np.stack([weight.astype(np.float64), count], axis=1)
        if len(keys) and (keys == keys[0]).all():
            found, inverse = keys[:1], np.zeros(len(keys), np.int64)
        else:
            found, inverse = np.unique(keys, axis=0, return_inverse=True)
            inverse = inverse.ravel()
        starts = self.size + np.arange(len(found), dtype=np.int64) * len(truth)
        self.size += len(found) * len(truth)
        hard = found[:, 0] == HARD
        cells = starts[hard, None] + np.flatnonzero(~truth)
        self.base.append((cells.ravel(), -np.inf))
        earning = np.flatnonzero(truth)
        cells = starts[~hard, None] + earning
        self.rows.append(cells.ravel())
        self.columns.append(np.repeat(found[~hard, 0].astype(np.int64), len(earning)))
        self.values.append(np.repeat(found[~hard, 1], len(earning)))
        return starts[inverse]

    def constants(self, values: npt.NDArray[np.float64]) -> IntArray:
        """Cells with fixed log-potentials; where they begin."""
        at = self.size + np.arange(len(values), dtype=np.int64)
        self.size += len(values)
        self.fixed.append((at, values))
        return at


def assemble(
    blocks: Sequence[Block],
    determined: Sequence[DeterminedBlocks],
    soft: tuple[IntArray, npt.NDArray[np.float64]],
    atoms: IntArray,
    n_weights: int,
    names: Names,
) -> Assembled:
    """The factor graph of ground formulas, over ``atoms`` (numbers, rising), which are its variables in this order."""
    pool = _Pool()
    sizes, scopes, strides, offsets, kinds = [], [], [], [], []

    def add(size: IntArray, scope: IntArray, stride: IntArray, offset: IntArray, kind: int) -> None:
        sizes.append(size)
        scopes.append(np.searchsorted(atoms, scope).astype(np.int32))
        strides.append(stride)
        offsets.append(offset)
        kinds.append(np.full(len(size), kind, np.int8))

    for block in blocks:
        size = np.diff(block.offsets)
        if block.positive is not None:
            truth = np.array([block.flipped, not block.flipped])
            stride = np.where(block.positive, POSITIVE, NEGATIVE)
            add(size, block.atoms, stride, pool.tables(block.weight, block.count, truth), CLAUSE)
        elif block.truth is not None:
            k = int(size[0])
            stride = np.tile(2 ** np.arange(k - 1, -1, -1, dtype=np.int64), len(size))
            add(size, block.atoms, stride, pool.tables(block.weight, block.count, block.truth), TABLE)
    for group in determined:
        # Counts of true atoms 0, 1, 2 and more.
        cells = pool.constants(np.array([-np.inf if group.exactly else 0.0, 0.0, -np.inf]))
        stride = np.full(len(group.atoms), (2 << 32) + POSITIVE, np.int64)
        add(np.diff(group.offsets), group.atoms, stride, np.full(len(group), cells[0]), CARDINALITY)
    if len(soft[0]):
        odds = np.zeros((len(soft[0]), 2))
        odds[:, 0], odds[:, 1] = np.log1p(-soft[1]), np.log(soft[1])
        cells = pool.constants(odds.ravel())
        ones = np.ones(len(soft[0]), np.int64)
        add(ones, soft[0], ones, cells[::2], TABLE)
    rules = tuple((len(block), block.rule) for block in blocks)
    return Assembled(*_built(pool, sizes, scopes, strides, offsets, kinds, len(atoms), n_weights, names), rules)


def _built(
    pool: _Pool,
    sizes: list[IntArray],
    scopes: list[npt.NDArray[np.int32]],
    strides: list[IntArray],
    offsets: list[IntArray],
    kinds: list[npt.NDArray[np.int8]],
    n: int,
    n_weights: int,
    names: Names,
) -> tuple[Structure, npt.NDArray[np.float64], csr_array]:
    def join(parts: Sequence[npt.NDArray[np.generic]], dtype: npt.DTypeLike) -> npt.NDArray[np.generic]:
        return np.concatenate([np.zeros(0, dtype), *parts]).astype(dtype, copy=False)

    size = join(sizes, np.int64)
    bounds = np.zeros(len(size) + 1, np.int64)
    np.cumsum(size, out=bounds[1:])
    # What grounding gives is well formed, so that the checks of `from_arrays`, a sort of all axes, are spared.
    structure = Structure(
        frozen(np.full(n, 2, np.int32), np.int32),
        frozen(bounds, np.int64),
        frozen(join(scopes, np.int32), np.int32),
        frozen(join(offsets, np.int64), np.int64),
        frozen(join(strides, np.int64), np.int64),
        pool.size,
        frozen(np.full(len(size), -1, np.int32), np.int32),
        frozen(join(kinds, np.int8), np.int8),
        names,
    )
    base = np.zeros(pool.size)
    for cells, value in pool.base:
        base[cells] = value
    for cells, values in pool.fixed:
        base[cells] = values
    operator = sparse_operator(pool.rows, pool.columns, pool.values, (pool.size, n_weights))
    return structure, base, operator
