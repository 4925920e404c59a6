"""Distributions of one variable given its parents: tables and noisy-max, and what is refused of each."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

from markovfield.arrays import FloatArray
from markovfield.exceptions import ModelError
from markovfield.factors.to_tables import noisy_max_table
from markovfield.names import Names, VariableName

__all__ = ["MOST_CELLS", "NoisyMax", "check_noisy_max", "check_noisy_or", "check_table", "numbers", "tabulate"]

MOST_CELLS = 2**24
_TOLERANCE = 1e-2


@dataclass(frozen=True, eq=False)
class NoisyMax:
    """A child that is the largest of independent contributions, one from each parent and one from nobody.

    Attributes
    ----------
    blocks
        For each parent ``float64[its states, K]``: entry [x, k] is the probability that it contributes state k of
        the child when it is in state x.
    leak
        ``float64[K]``: the contribution that is there without any parent.
    """

    blocks: tuple[FloatArray, ...]
    leak: FloatArray

    @property
    def size(self) -> int:
        """Number of parameters, which is the number of pool cells."""
        return sum(b.size for b in self.blocks) + self.leak.size

    @property
    def table_size(self) -> int:
        """Number of cells of the table it stands for."""
        return math.prod(len(b) for b in self.blocks) * len(self.leak)

    def table(self) -> FloatArray:
        """The table it stands for: parents' axes first, the child's last."""
        with np.errstate(divide="ignore"):
            table = np.exp(noisy_max_table([np.log(b) for b in self.blocks], np.log(self.leak)))
        table /= table.sum(axis=-1, keepdims=True)
        shape = (*(len(b) for b in self.blocks), len(self.leak))
        return table.reshape(shape) if len(shape) <= 64 else table


def _configuration(names: Names, scope: Sequence[int], index: Sequence[int], cardinalities: Sequence[int]) -> str:
    """Where in a table, by names: ``rain='yes', wind='low'``."""
    return ", ".join(
        f"{names.variables[v]}={names.state_names(v, cardinalities[v])[int(i)]!r}"
        for v, i in zip(scope, index, strict=True)
    )


def numbers(table: npt.ArrayLike, what: str) -> FloatArray:
    """A copy as floats, or an error that says of what."""
    try:
        return np.array(table, np.float64)
    except (TypeError, ValueError) as error:
        raise ModelError(f"{what} needs numbers in rows of equal length: {error}") from error


def check_table(
    values: FloatArray, names: Names, scope: Sequence[int], cardinalities: Sequence[int], what: str, tolerance: float
) -> FloatArray:
    """Rows (last axis) rescaled to sum to one; errors name the offending configuration by its states."""
    if not (values >= 0).all():
        at = np.argwhere(~(values >= 0))[0].tolist()
        raise ModelError(
            f"{what} has a negative probability or one that is not a number: {values[tuple(at)]:.6g} for "
            f"{_configuration(names, scope[-1:], at[-1:], cardinalities)}" + _given(names, scope, at, cardinalities)
        )
    total = values.sum(axis=-1, keepdims=True)
    off = np.abs(total - 1)
    if not ((off <= tolerance) & (total > 0)).all():
        row = np.unravel_index(int(np.argmax(off)), total.shape)
        raise ModelError(
            f"a row of {what} sums to {total[row]:.6g}, not to one" + _given(names, scope, list(row), cardinalities)
        )
    return np.asarray(values / total)


def _given(names: Names, scope: Sequence[int], at: Sequence[Any], cardinalities: Sequence[int]) -> str:
    if len(scope) == 1:
        return ""
    return f", given {_configuration(names, scope[:-1], at[:-1], cardinalities)}"


def tabulate(
    names: Names,
    scope: Sequence[int],
    cardinalities: Sequence[int],
    function: Callable[..., Any],
) -> FloatArray:
    """The table of a child (last in ``scope``) that is a function of its parents' states."""
    child = scope[-1]
    variable, card = names.variables[child], cardinalities[child]
    shape = [cardinalities[v] for v in scope]
    if math.prod(shape) > MOST_CELLS:
        raise ModelError(
            f"the table of {variable!r} would have {math.prod(shape)} cells, more than {MOST_CELLS}: "
            "split the function into steps with variables in between"
        )
    rows = np.zeros((math.prod(shape[:-1]), card))
    every = product(*(names.state_names(v, cardinalities[v]) for v in scope[:-1]))
    for row, states in zip(rows, every, strict=True):
        try:
            value = function(*states)
        except TypeError as error:
            shown = ", ".join(repr(s) for s in states)
            raise ModelError(f"the function of {variable!r} does not take ({shown}): {error}") from error
        try:
            row[names.state(child, value, card)] = 1.0
        except ModelError as error:
            shown = ", ".join(repr(s) for s in states)
            raise ModelError(f"the function of {variable!r} answers {value!r} to ({shown}): {error}") from None
    return rows.reshape(shape)


def _by_parent(given: Any, parents: Sequence[VariableName], what: str) -> list[Any]:
    """One entry for each parent, from a sequence in their order or a mapping by their names."""
    if isinstance(given, Mapping):
        missing = [p for p in parents if p not in given]
        extra = [p for p in given if p not in parents]
        if missing or extra:
            wrong = f"nothing for {missing[0]!r}" if missing else f"{extra[0]!r}, which is no parent"
            raise ModelError(f"{what} must name each of its {len(parents)} parents, got {wrong}")
        return [given[p] for p in parents]
    if not hasattr(given, "__iter__"):
        raise ModelError(f"{what} needs one entry for each of its {len(parents)} parents, got {given!r}")
    entries = list(given)
    if len(entries) != len(parents):
        raise ModelError(f"{what} needs one entry for each of its {len(parents)} parents, got {len(entries)}")
    return entries


def _probability(value: Any, what: str) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not 0.0 <= number <= 1.0:
        raise ModelError(f"{what} must be a probability, got {value!r}")
    return number


def check_noisy_or(
    names: Names, scope: Sequence[int], cardinalities: Sequence[int], probabilities: Any, leak: Any
) -> NoisyMax:
    """A noisy-or of binary variables as the noisy-max it is."""
    variable = names.variables[scope[-1]]
    for v in scope:
        if cardinalities[v] != 2:
            raise ModelError(
                f"a noisy-or takes variables of two states, and {names.variables[v]!r} has {cardinalities[v]}: "
                "take add_noisy_max"
            )
    parents = [names.variables[p] for p in scope[:-1]]
    given = _by_parent(probabilities, parents, f"the noisy-or of {variable!r}")
    on = [
        _probability(p, f"what parent {q!r} gives the noisy-or of {variable!r}")
        for p, q in zip(given, parents, strict=True)
    ]
    base = _probability(leak, f"the leak of the noisy-or of {variable!r}")
    return NoisyMax(tuple(np.array([[1.0, 0.0], [1.0 - p, p]]) for p in on), np.array([1.0 - base, base]))


def check_noisy_max(
    names: Names, scope: Sequence[int], cardinalities: Sequence[int], tables: Any, leak: Any
) -> NoisyMax:
    """A noisy-max from one table per parent and the leak; rows are rescaled to sum to one."""
    child = scope[-1]
    variable, card = names.variables[child], cardinalities[child]
    parents = [names.variables[p] for p in scope[:-1]]
    blocks = []
    for p, table in zip(scope[:-1], _by_parent(tables, parents, f"the noisy-max of {variable!r}"), strict=True):
        what = f"the noisy-max table of {variable!r} for parent {names.variables[p]!r}"
        values, shape = numbers(table, what), (cardinalities[p], card)
        if values.shape != shape:
            raise ModelError(f"{what} needs shape {shape}, got {values.shape}")
        blocks.append(check_table(values, names, [p, child], cardinalities, what, _TOLERANCE))
    what = f"the leak of the noisy-max of {variable!r}"
    base = np.eye(card)[0] if leak is None else numbers(leak, what)
    if base.shape != (card,):
        raise ModelError(f"{what} needs shape ({card},), got {base.shape}")
    return NoisyMax(tuple(blocks), check_table(base, names, [child], cardinalities, what, _TOLERANCE))
