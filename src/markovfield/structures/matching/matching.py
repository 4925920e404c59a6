"""Matchings of the rows with the columns of one table of scores."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from markovfield.arrays import FloatArray, IntArray
from markovfield.exceptions import ModelError
from markovfield.structures.core.form import StructureForm, listed, place, score_array
from markovfield.structures.matching.family import Matchings
from markovfield.structures.matching.quadratic import QuadraticMatchings

__all__ = ["Matching"]

KINDS = ("links", "unmatched_rows", "unmatched_columns", "absent")


class Matching(StructureForm):
    """Matchings: every row has a link to a column of its own, or stays alone.

    A structure is a list of links ``(row, column)``, by rows.

    Parameters
    ----------
    scores
        ``float[m, n]``: of linking row i with column j; -inf rules a link out.
    unmatched
        None: every row has a link (and with as many columns, every column). Otherwise the score of a row or column
        that has none: a number, or a pair ``(rows, columns)`` of numbers or arrays; -inf for those that must have one.
    fertility
        How many links a row and a column may have at most: a number, or a pair ``(rows, columns)`` of numbers or
        arrays. 0 is a row that stays alone.
    pairs
        Scores of pairs of links, ``{((i, j), (k, l)): score}``, which count where both links are there: quadratic
        assignment. -inf rules a pair out.

    Notes
    -----
    The best, the n best and, where the tables of the shorter side fit (20 columns or so), sums and draws are exact.
    Larger sums are Bethe's lower bound with an upper bound beside it (``guarantee == "lower"``); larger draws, and
    larger sums with fertilities, are refused. With scores of pairs the best is an integer program (HiGHS, proven
    optimal, in exponential time at worst), and sums and draws go through all matchings, 50,000 at most.

    Examples
    --------
    >>> import markovfield as mf
    >>> mf.structures.Matching(np.zeros((4, 4))).n_structures()
    24.0
    >>> scores = np.array([[2.0, 1.9], [1.0, -1.0]])
    >>> mf.decode(mf.structures.Matching(scores)).structure
    [(0, 1), (1, 0)]
    >>> mf.decode(mf.structures.Matching(scores, unmatched=0.5)).structure
    [(0, 0)]
    >>> mf.marginals(mf.structures.Matching(scores))["links"].round(3).tolist()
    [[0.13, 0.87], [0.87, 0.13]]
    >>> mf.decode(mf.structures.Matching(scores, pairs={((0, 0), (1, 1)): 3.0})).structure
    [(0, 0), (1, 1)]
    """

    parts: ClassVar[tuple[str, ...]] = KINDS[:3]
    family: Matchings

    def __init__(
        self,
        scores: npt.ArrayLike,
        *,
        unmatched: Any = None,
        fertility: Any = 1,
        pairs: Mapping[tuple[tuple[int, int], tuple[int, int]], float] | None = None,
    ) -> None:
        links = score_array(scores, "scores of links", 2)
        m, n = links.shape
        if m + n == 0:
            raise ModelError("a matching needs a row or a column at least, got none")
        limits = [_limits(one, size, side) for one, size, side in zip(_pair(fertility), (m, n), SIDES, strict=True)]
        plain = all((one == 1).all() for one in limits)
        if unmatched is None:
            if plain and m > n:
                raise ModelError(f"{m} rows cannot all have one of {n} columns: give scores of unmatched rows")
            rows, columns = np.full(m, -np.inf), np.full(n, -np.inf if m == n and plain else 0.0)
        else:
            rows, columns = (
                _alone(one, size, side) for one, size, side in zip(_pair(unmatched), (m, n), SIDES, strict=True)
            )
        own = ((limits[0], limits[1]),)
        if pairs:
            joined, scored = _joined(pairs, m, n)
            self.family = QuadraticMatchings.joined(np.array([m]), np.array([n]), own, (joined,))
            self.parts = (*KINDS[:3], "pairs")  # type: ignore[misc]
            self.pool = np.concatenate([links.ravel(), rows, columns, np.zeros(m * n), scored])
            return
        self.family = Matchings.of(np.array([m]), np.array([n]), None if plain else own)
        self.pool = np.concatenate([links.ravel(), rows, columns, *([] if plain else [np.zeros(m * n)])])

    def __repr__(self) -> str:
        rows, columns = int(self.family.rows[0]), int(self.family.columns[0])
        joined = isinstance(self.family, QuadraticMatchings) and len(self.family.pairs[0])
        return f"Matching of {rows} rows and {columns} columns{f', {joined} pairs of links' if joined else ''}"

    def shaped(self, values: FloatArray) -> dict[str, FloatArray]:
        """Values of links ``[row, column]``, of rows and columns without one, and of pairs in the order given."""
        shown = dict(zip(KINDS[:3], (one.copy() for one in self.family.split(0, values)[:3]), strict=True))
        if isinstance(self.family, QuadraticMatchings):
            shown["pairs"] = self.family.pair_values(0, values).copy()
        return shown

    def cell(self, part: str, index: tuple[Any, ...]) -> int:
        m, n = int(self.family.rows[0]), int(self.family.columns[0])
        if part == "pairs":
            assert isinstance(self.family, QuadraticMatchings)
            found = self.family.pairs[0].tolist()
            numbers = place(index)
            if len(numbers) != 1 or not 0 <= numbers[0] < len(found):
                wanted = [number for link in index for number in place(link)]
                if wanted not in found:
                    raise ModelError(
                        f"there is no pair of links {index}: a pair is ((row, column), (row, column)), or its number "
                        f"below {len(found)}"
                    )
                numbers = (found.index(wanted),)
            return self.family.n_cells - len(found) + numbers[0]
        where = place(index)
        if part == "links":
            if not (len(where) == 2 and 0 <= where[0] < m and 0 <= where[1] < n):
                raise ModelError(f"a link is (row, column) with rows below {m} and columns below {n}, got {index}")
            return where[0] * n + where[1]
        size = m if part == "unmatched_rows" else n
        if not (len(where) == 1 and 0 <= where[0] < size):
            raise ModelError(f"{part} are 0 to {size - 1}, got {index}")
        return m * n + (0 if part == "unmatched_rows" else m) + where[0]

    def structure(self, cells: IntArray) -> list[tuple[int, int]]:
        m, n = int(self.family.rows[0]), int(self.family.columns[0])
        return [(int(c) // n, int(c) % n) for c in np.sort(cells[cells < m * n])]

    def cells(self, structure: Any) -> IntArray:
        m, n = int(self.family.rows[0]), int(self.family.columns[0])
        links = np.zeros((m, n), bool)
        for link in listed(structure, (2,), "links (row, column)"):
            self.cell("links", link)
            if links[link]:
                raise ModelError(f"link {link} stands twice in {list(structure)}")
            links[link] = True
        limits = (np.ones(m), np.ones(n)) if self.family.limits is None else self.family.limits[0]
        if (links.sum(axis=1) > limits[0]).any() or (links.sum(axis=0) > limits[1]).any():
            raise ModelError(f"a row or column has more links than it may have in {list(structure)}")
        return self.family.cells_of(0, links)


SIDES = ("rows", "columns")


def _joined(given: Any, m: int, n: int) -> tuple[IntArray, FloatArray]:
    """Pairs of links as rows and columns, and their scores."""
    if not isinstance(given, Mapping):
        raise ModelError(f"pairs must be a dict {{((i, j), (k, l)): score}}, got {type(given).__name__}")
    found, seen = [], set()
    for pair in given:
        flat = np.asarray(pair)
        fits = flat.shape == (2, 2) and flat.dtype.kind in "iu" and (flat >= 0).all() and (flat < [m, n]).all()
        if not fits or (flat[0] == flat[1]).all():
            raise ModelError(
                f"a pair is of two links ((i, j), (k, l)) with rows below {m} and columns below {n}, got {pair}"
            )
        links = frozenset(map(tuple, flat.tolist()))
        if links in seen:
            raise ModelError(f"pairs has {pair} twice")
        seen.add(links)
        found.append(flat.ravel())
    return np.array(found, np.int64), score_array(list(given.values()), "scores of pairs", 1)


def _pair(given: Any) -> tuple[Any, Any]:
    if not isinstance(given, tuple):
        return given, given
    if len(given) != 2:
        raise ModelError(f"scores of the unmatched, and fertilities, are one or a pair (rows, columns), got {given!r}")
    return given


def _alone(given: Any, size: int, side: str) -> FloatArray:
    array = score_array(given, f"scores of unmatched {side}", np.ndim(given))
    if array.ndim > 1 or (array.ndim == 1 and len(array) != size):
        raise ModelError(f"scores of unmatched {side} must be a number or {size} of them, got shape {array.shape}")
    return np.broadcast_to(array, size)


def _limits(given: Any, size: int, side: str) -> IntArray:
    array = np.asarray(given)
    if array.dtype.kind not in "iu" or array.ndim > 1 or (array < 0).any() or (array.ndim and len(array) != size):
        raise ModelError(f"fertility of {side} must be a whole number from 0, or {size} of them, got {given!r}")
    return np.ascontiguousarray(np.broadcast_to(array, size).astype(np.int64))
