"""The body of one BIF ``probability`` block on its way to a table."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from math import prod
from typing import NoReturn

import numpy as np

from markovfield.arrays import FloatArray
from markovfield.exceptions import ModelError
from markovfield.io._bif_plain import SUM_TOLERANCE

__all__ = ["Body"]


@dataclass
class Body:
    """The statements between the braces, whose variable and parents are known.

    Parameters
    ----------
    text, offset
        The body and where it starts in the file.
    child, parents
        The variable and its parents with their states: name of a state to its index.
    fail
        Raises a `FormatError` at a position in the file.
    words
        Splits a list of states, given how many there should be.
    spare_cells
        How many cells a default may fill: they do not stand in the file, so its size does not bound them.
    """

    text: str
    offset: int
    child: tuple[str, dict[str, int]]
    parents: list[tuple[str, dict[str, int]]]
    fail: Callable[[int, str], NoReturn]
    words: Callable[[str, int], list[str]]
    spare_cells: int
    statements: list[str] = field(default_factory=list)
    filled_cells: int = 0
    properties: list[str] = field(default_factory=list)

    def table(self) -> FloatArray:
        """The table, parents' axes first; rows may come in any order, and a default fills the gaps."""
        self.statements = self.text.split(";")
        last = len(self.statements) - 1
        if self.statements[last].strip():
            self._fail(last, "this row does not end with ';'")
        width = len(self.child[1])
        rows: list[int] = []
        cells: list[str] = []
        whole: FloatArray | None = None
        default: FloatArray | None = None
        for i in range(last):
            statement = self.statements[i].strip()
            if statement.startswith("("):
                key, _, tail = statement.rpartition(")")
                rows.append(self._row(i, key[1:]))
                cells += self._cells(i, tail, width)
            elif statement.startswith("table") and whole is None:
                whole = self._whole(i, statement[5:])
            elif statement.startswith("default") and default is None:
                default = self._numbers(self._cells(i, statement[7:], width), [i])
            elif statement.startswith("property"):
                self.properties.append(statement[8:])
            else:
                self._fail(i, f"expected (states), one table or one default, got {statement[:30]!r}")
        if whole is None:
            values = self._numbers(cells, range(last)).reshape(-1, width)
            whole = self._assemble(rows, values, default)
        elif rows or default is not None:
            self._fail(0, f"the block of {self.child[0]!r} mixes a whole table with rows or a default")
        try:
            return whole.reshape([len(index) for _, index in self.parents] + [width])
        except ValueError:
            raise ModelError(
                f"variable {self.child[0]!r} has {len(self.parents)} parents, more than NumPy has axes"
            ) from None

    def _fail(self, statement: int, message: str, within: int | None = None) -> NoReturn:
        piece = self.statements[statement]
        if within is None:
            within = len(piece) - len(piece.lstrip())
        self.fail(self.offset + sum(len(s) + 1 for s in self.statements[:statement]) + within, message)

    def _row(self, statement: int, key: str) -> int:
        """Number of the row a list of parents' states stands for (C order)."""
        names = self.words(key, len(self.parents))
        if len(names) != len(self.parents):
            self._fail(
                statement,
                f"{self.child[0]!r} has {len(self.parents)} parents, this row names {len(names)} states",
            )
        row = 0
        for name, (parent, index) in zip(names, self.parents, strict=True):
            position = index.get(name)
            if position is None:
                self._fail(statement, f"parent {parent!r} of {self.child[0]!r} has no state {name[:30]!r}")
            row = row * len(index) + position
        return row

    def _cells(self, statement: int, listing: str, count: int) -> list[str]:
        cells = listing.replace(",", " ").split()
        if len(cells) != count:
            self._fail(statement, f"expected {_shown(count)} probabilities of {self.child[0]!r}, got {len(cells)}")
        if "_" in listing:  # float() would read 1_0 as ten
            self._fail(statement, "a probability is written without '_'")
        return cells

    def _numbers(self, cells: list[str], statements: Iterable[int]) -> FloatArray:
        try:
            return np.fromiter(map(float, cells), np.float64, len(cells))
        except ValueError:
            for i in statements:
                self._blame(i)
            raise

    def _blame(self, statement: int) -> None:
        """Raise at the first word of a statement's values that is no number."""
        piece = self.statements[statement]
        start = re.compile(r"\s*(?:\(.*\)|table|default|property.*)", re.DOTALL).match(piece)
        for word in re.compile(r"[^\s,]+").finditer(piece, start.end() if start else 0):
            try:
                float(word.group())
            except ValueError:
                self._fail(statement, f"expected a probability, got {word.group()[:30]!r}", word.start())

    def _whole(self, statement: int, listing: str) -> FloatArray:
        """A ``table`` of all cells: the variable slowest, or fastest if only that sums to one."""
        rows, width = prod(len(index) for _, index in self.parents), len(self.child[1])
        values = self._numbers(self._cells(statement, listing, rows * width), [statement])
        slowest, fastest = values.reshape(width, rows).T, values.reshape(rows, width)
        if _off(slowest) > SUM_TOLERANCE >= _off(fastest):
            return fastest
        return np.ascontiguousarray(slowest)

    def _assemble(self, rows: list[int], values: FloatArray, default: FloatArray | None) -> FloatArray:
        n_rows, given = prod(len(index) for _, index in self.parents), set(rows)
        name = self.child[0]
        if len(given) != len(rows):
            at = [i for i, s in enumerate(self.statements) if s.lstrip().startswith("(")]
            seen: set[int] = set()
            for i, row in zip(at, rows, strict=True):
                if row in seen:
                    self._fail(i, f"the block of {name!r} gives these parents' states twice")
                seen.add(row)
        if len(given) < n_rows:
            if default is None:
                row = next(r for r in range(len(given) + 1) if r not in given)
                self._fail(0, f"the block of {name!r} has no row ({self._states(row)}) and no default")
            self.filled_cells = n_rows * len(default)
            if self.filled_cells > self.spare_cells:
                self._fail(0, f"the default of {name!r} would fill {_shown(n_rows)} rows, too many for this file")
        # Only now is n_rows known to be bounded by what the file holds.
        table = np.empty((n_rows, values.shape[1]))
        if default is not None:
            table[:] = default
        table[rows] = values
        return table

    def _states(self, row: int) -> str:
        """The parents' states of a row, as they stand in the file."""
        names = []
        for _, index in reversed(self.parents):
            row, state = divmod(row, len(index))
            names.append(list(index)[state])
        return ", ".join(reversed(names))


def _off(rows: FloatArray) -> float:
    """How far the worst row is from summing to one."""
    return float(np.abs(rows.sum(axis=1) - 1).max())


def _shown(count: int) -> str:
    """A count that may be too long to print."""
    return str(count) if count < 10**12 else f"about 2^{count.bit_length()}"
