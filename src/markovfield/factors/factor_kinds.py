"""What each kind of factor reads: literals, caps and cells of structured factors, and the checks a structure must pass.

The kinds themselves are numbers that kernels share; they are described in `markovfield.factors.kinds_kernel`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from markovfield.arrays import IntArray
from markovfield.exceptions import ModelError
from markovfield.factors.kinds_kernel import (
    CARDINALITY,
    CLAUSE,
    DISTANCE,
    NOISY_MAX,
    PARITY,
    TABLE,
    cap_of,
    literal_of,
)

if TYPE_CHECKING:
    from markovfield.factors.structure import Structure

__all__ = [
    "CARDINALITY",
    "CLAUSE",
    "DISTANCE",
    "KIND_NAMES",
    "LARGEST_TABLE",
    "NOISY_MAX",
    "PARITY",
    "TABLE",
    "cap_of",
    "caps",
    "cell_reader",
    "cells_reached",
    "check_cells",
    "check_size",
    "holds",
    "literal_of",
    "literals",
    "offset_of_count",
    "table_cells",
]


KIND_NAMES = ("table", "clause", "noisy-max", "cardinality potential", "parity", "distance potential")
LARGEST_TABLE = 2**24
"""The most cells for which the table of a structured factor is written out."""


def holds(literal: Any, states: Any) -> Any:
    """Whether a literal is true in a state, for numbers or arrays that fit each other.

    Examples
    --------
    >>> holds(np.array([1, 1, -2, -2]), np.array([0, 1, 0, 1])).tolist()
    [True, False, False, True]
    """
    return np.where(np.asarray(literal) >= 0, states != literal, states == -literal - 1)


def literals(kind: int, strides: Any) -> Any:
    """The literals in the strides of a clause, a parity or a cardinality potential."""
    return literal_of(strides) if kind == CARDINALITY else strides


def caps(structure: Structure) -> IntArray:
    """``int64[m]``: the last cell of each structured factor, counted from its base; 0 for other kinds."""
    kind, first = structure.kind, structure.scope_offsets[:-1]
    # Without a variable, nothing is counted: only the first cell is read.
    some = structure.scope_offsets[1:] > first
    stride = np.zeros(len(kind), np.int64)
    stride[some] = structure.table_strides[first[some]]
    return np.select(
        [(kind == CLAUSE) | (kind == PARITY), kind == CARDINALITY, kind == DISTANCE],
        [np.ones(len(kind), np.int64), cap_of(stride), stride],
        0,
    )


def offset_of_count(kind: int, cap: int, count: Any) -> Any:
    """The cell, counted from the base, that a factor reads when ``count`` of its literals are true."""
    return count & 1 if kind == PARITY else np.minimum(count, cap)


def table_cells(structure: Structure, factor: int) -> IntArray:
    """Pool index of every cell of a factor, last axis fastest; refused for a noisy-max and for huge structured ones."""
    s = structure
    kind = int(s.kind[factor])
    cards = [int(c) for c in s.cardinalities[s.scope(factor)]]
    base, strides = int(s.table_offsets[factor]), s.strides(factor).tolist()
    if kind == NOISY_MAX:
        raise ModelError(f"factor {factor} is a noisy-max, whose table is not made of cells of the pool: see table()")
    if kind == TABLE:
        flat = np.array([base], np.int64)
        for card, stride in zip(cards, strides, strict=True):
            flat = (flat[:, None] + stride * np.arange(card)).ravel()
        return flat
    check_size(factor, kind, cards)
    if kind == DISTANCE:
        apart = np.abs(np.arange(cards[0])[:, None] - np.arange(cards[1]))
        return base + np.minimum(apart, strides[0]).astype(np.int64).ravel()
    count = np.zeros(1, np.int64)
    for card, stride in zip(cards, strides, strict=True):
        count = (count[:, None] + holds(literals(kind, stride), np.arange(card))).ravel()
    cells: IntArray = base + offset_of_count(kind, int(caps(s)[factor]), count)
    return cells


def check_size(factor: int, kind: int, cards: list[int]) -> None:
    """Raise when the table of a structured factor is too large to be written out."""
    size = math.prod(cards)
    if size > LARGEST_TABLE:
        cells = str(size) if size < 2**53 else f"about 2^{math.log2(size):.0f}"
        raise ModelError(
            f"the table of factor {factor}, a {KIND_NAMES[kind]} of {len(cards)} variables, has {cells} cells, "
            f"more than {LARGEST_TABLE}; inference does without it"
        )


def cell_reader(structure: Structure) -> Callable[[npt.NDArray[Any]], IntArray]:
    """A function from a row of states ``int[n]`` to the cell each factor reads.

    A noisy-max reads no single cell; its entry means nothing.
    """
    s = structure
    m = s.n_factors
    factor = np.repeat(np.arange(m), np.diff(s.scope_offsets))
    kind = s.kind[factor]
    steps = np.where(kind == TABLE, s.table_strides, 0)

    def plain(row: npt.NDArray[Any]) -> IntArray:
        read = np.bincount(factor, weights=steps * row[s.scopes], minlength=m).astype(np.int64)
        return s.table_offsets + read

    if s.is_plain:
        return plain
    literal = np.where(kind == CARDINALITY, literal_of(s.table_strides), s.table_strides)
    counted = np.isin(kind, (CLAUSE, CARDINALITY, PARITY))
    cap, parity = caps(s), s.kind == PARITY
    pairs = np.flatnonzero(s.kind == DISTANCE)
    at = s.scope_offsets[pairs]

    def read(row: npt.NDArray[Any]) -> IntArray:
        x = row[s.scopes]
        true = np.bincount(factor, weights=holds(literal, x) & counted, minlength=m).astype(np.int64)
        cell = plain(row) + np.where(parity, true & 1, np.minimum(true, cap))
        cell[pairs] += np.minimum(np.abs(x[at] - x[at + 1]), cap[pairs])
        return cell

    return read


def check_cells(structure: Structure) -> None:
    """Raise unless every factor is of a known kind and reads cells of the pool only."""
    s = structure
    if not s.n_factors:
        return
    factor = np.repeat(np.arange(s.n_factors), np.diff(s.scope_offsets))
    kind = s.kind[factor]
    unknown = np.flatnonzero((s.kind < TABLE) | (s.kind > DISTANCE))
    if len(unknown):
        raise ModelError(f"factor {unknown[0]} is of kind {s.kind[unknown[0]]}, which there is not")
    own = np.zeros(s.n_factors, np.bool_)
    own[factor[s.scopes == s.child[factor]]] = True
    strange = np.flatnonzero((s.child >= 0) & ~own)
    if len(strange):
        f = int(strange[0])
        raise ModelError(f"factor {f} is a distribution of variable {s.child[f]}, which is not in its scope")
    strided = (kind == TABLE) | (kind == NOISY_MAX)
    if strided.any() and float(np.abs(s.table_strides[strided].astype(np.float64)).max()) > 2.0**40:
        raise ModelError("a table stride is beyond 2^40 cells")
    if not s.is_plain:
        _check_structured(s, factor, kind, caps(s))
    low, high = cells_reached(s)
    bad = np.flatnonzero((low < 0) | (high >= s.n_cells))
    if len(bad):
        f = int(bad[0])
        raise ModelError(f"factor {f} reads cells {low[f]} to {high[f]} of a pool of {s.n_cells} log-potentials")


def cells_reached(structure: Structure) -> tuple[IntArray, IntArray]:
    """``int64[m]`` twice: the first and the last cell that each factor reads."""
    s = structure
    factor = np.repeat(np.arange(s.n_factors), np.diff(s.scope_offsets))
    reach = np.where(s.kind[factor] == TABLE, s.table_strides, 0) * (s.cardinalities[s.scopes].astype(np.int64) - 1)
    low, high = s.table_offsets.copy(), s.table_offsets + caps(s)
    np.add.at(low, factor, np.minimum(reach, 0))
    np.add.at(high, factor, np.maximum(reach, 0))
    for f in np.flatnonzero(s.kind == NOISY_MAX).tolist():
        low[f], high[f] = _reach_of_noisy_max(s, f)
    return low, high


def _check_structured(s: Structure, factor: IntArray, kind: npt.NDArray[Any], cap: IntArray) -> None:
    """Literals on states that there are, and caps that agree."""
    literal = np.where(kind == CARDINALITY, literal_of(s.table_strides), s.table_strides)
    state = np.where(literal >= 0, literal, -(literal + 1))
    counted = np.isin(kind, (CLAUSE, CARDINALITY, PARITY))
    wrong = np.flatnonzero(counted & (state >= s.cardinalities[s.scopes]))
    if len(wrong):
        at = int(wrong[0])
        raise ModelError(f"{KIND_NAMES[kind[at]]} {factor[at]} has a literal on state {state[at]}, which there is not")
    own = np.select([kind == CARDINALITY, kind == DISTANCE], [cap_of(s.table_strides), s.table_strides], 1)
    capped = (kind == CARDINALITY) | (kind == DISTANCE)
    wrong = np.flatnonzero(capped & ((own < 1) | (own != cap[factor])))
    if len(wrong):
        at = int(wrong[0])
        raise ModelError(
            f"factor {factor[at]} is a {KIND_NAMES[kind[at]]}, whose axes must have one and the same cap of at least 1"
        )
    odd = np.flatnonzero((s.kind == DISTANCE) & (np.diff(s.scope_offsets) != 2))
    if len(odd):
        raise ModelError(f"factor {odd[0]} is a distance potential, which needs two variables")


def _reach_of_noisy_max(s: Structure, f: int) -> tuple[int, int]:
    """First and last cell that a noisy-max reads."""
    scope, strides = s.scope(f), s.strides(f)
    if not len(scope) or s.child[f] not in (-1, scope[-1]):
        raise ModelError(f"factor {f} is a noisy-max, whose scope must end with its child")
    rows = np.append(s.cardinalities[scope[:-1]], 1).astype(np.int64)
    last = strides + rows * int(s.cardinalities[scope[-1]]) - 1
    base = int(s.table_offsets[f])
    return base + int(strides.min()), base + int(last.max())
