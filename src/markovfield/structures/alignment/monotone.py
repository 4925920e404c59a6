"""Alignments without crossings of two sequences."""

from __future__ import annotations

import itertools
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from markovfield._validation import number
from markovfield.arrays import FloatArray, IntArray
from markovfield.exceptions import ModelError
from markovfield.structures.alignment.family import MonotoneAlignments
from markovfield.structures.core.form import StructureForm, listed, place, score_array

__all__ = ["MonotoneAlignment"]

FREE = {"none": (False, False), "rows": (True, False), "columns": (False, True), "both": (True, True)}
GAPS = ("opens", "extends", "ends")


class MonotoneAlignment(StructureForm):
    """Alignments of two sequences in which links do not cross: edit distance, pair HMM, Needleman-Wunsch, Gotoh.

    A structure is a list of links ``(row, column)`` that rise in both; it may be empty. Rows and columns without a link
    are gaps. A gap of k rows costs an opening for its first row and an extension for each of the others. There are
    ``C(m + n, m)`` alignments, all counted once.

    Parameters
    ----------
    scores
        ``float[m, n]``: of linking row i with column j (the same letter, or a substitution); -inf rules a link out.
    row_gap, column_gap
        Score of a row (a column) without a link: a number, an array with one for each, or a pair ``(first of a gap,
        each further one)`` of those.
    free_ends
        Whose gaps before the first and after the last link cost nothing: ``"none"`` (global alignment), ``"columns"``
        or ``"rows"`` (semi-global: a short sequence of rows within long columns, or the other way round), ``"both"``
        (local, Smith and Waterman 1981).
    band
        From the first link to the last a path stays so near the diagonal: after i of m rows it is within ``band`` of
        column ``i n / m``.

    Examples
    --------
    The edit distance of two words is the best score with a penalty of 1 for each edit:

    >>> import markovfield as mf
    >>> equal = np.array([[a == b for b in "kitten"] for a in "sitting"])
    >>> words = mf.structures.MonotoneAlignment(equal - 1.0, row_gap=-1.0, column_gap=-1.0)
    >>> mf.decode(words).score
    -3.0
    >>> mf.decode(words).structure[:3]
    [(0, 0), (1, 1), (2, 2)]
    >>> words.n_structures()
    1716.0
    """

    parts: ClassVar[tuple[str, ...]] = (
        "links",
        *(f"{side}_{kind}" for side in ("row", "column") for kind in GAPS),
    )
    family: MonotoneAlignments

    def __init__(
        self,
        scores: npt.ArrayLike,
        *,
        row_gap: Any = 0.0,
        column_gap: Any = 0.0,
        free_ends: str = "none",
        band: float | None = None,
    ) -> None:
        links = score_array(scores, "scores of links", 2)
        if free_ends not in FREE:
            raise ModelError(f"free_ends must be one of {', '.join(map(repr, FREE))}, got {free_ends!r}")
        if band is not None and not number(band, "band") >= 0:
            raise ModelError(f"band must not be negative, got {band}")
        m, n = links.shape
        if m + n == 0:
            raise ModelError("an alignment needs a row or a column at least, got none")
        free_rows, free_columns = FREE[free_ends]
        self.family = MonotoneAlignments.of(
            np.array([m]), np.array([n]), free_rows=free_rows, free_columns=free_columns, band=band
        )
        rows, columns = _gap(row_gap, m, "row_gap"), _gap(column_gap, n, "column_gap")
        self.pool = np.concatenate([links.ravel(), *rows, np.zeros(m), *columns, np.zeros(n)])

    def __repr__(self) -> str:
        return f"MonotoneAlignment of {int(self.family.rows[0])} rows and {int(self.family.columns[0])} columns"

    def shaped(self, values: FloatArray) -> dict[str, FloatArray]:
        m, n, at = int(self.family.rows[0]), int(self.family.columns[0]), self.family.places(0)
        found = {"links": values[: at.rows].reshape(m, n).copy()}
        for side, begin, size in (("row", at.rows, m), ("column", at.columns, n)):
            for k, kind in enumerate(GAPS):
                found[f"{side}_{kind}"] = values[begin + k * size : begin + (k + 1) * size].copy()
        return found

    def cell(self, part: str, index: tuple[int, ...]) -> int:
        m, n, at = int(self.family.rows[0]), int(self.family.columns[0]), self.family.places(0)
        where = place(index)
        if part == "links":
            if not (len(where) == 2 and 0 <= where[0] < m and 0 <= where[1] < n):
                raise ModelError(f"a link is (row, column) with rows below {m} and columns below {n}, got {index}")
            return where[0] * n + where[1]
        side, kind = part.split("_")
        begin, size = (at.rows, m) if side == "row" else (at.columns, n)
        if not (len(where) == 1 and 0 <= where[0] < size):
            raise ModelError(f"{part} are those of {side}s 0 to {size - 1}, got {index}")
        return begin + GAPS.index(kind) * size + where[0]

    def structure(self, cells: IntArray) -> list[tuple[int, int]]:
        n, at = int(self.family.columns[0]), self.family.places(0)
        return [(int(c) // n, int(c) % n) for c in sorted(cells[cells < at.rows])]

    def cells(self, structure: Any) -> IntArray:
        links = [(i, j) for i, j in listed(structure, (2,), "links (row, column)")]
        for link in links:
            self.cell("links", link)
        if any(a[0] >= b[0] or a[1] >= b[1] for a, b in itertools.pairwise(links)):
            raise ModelError(f"links of an alignment must rise in rows and columns, got {links}")
        return self.family.cells_of(0, links)


def _gap(given: Any, n: int, what: str) -> list[FloatArray]:
    """Scores of the first of a gap and of further ones, for each place."""
    pair = given if isinstance(given, tuple) else (given, given)
    if len(pair) != 2:
        raise ModelError(f"{what} must be a score or a pair (first of a gap, further ones), got {len(pair)} of them")
    found = []
    for one in pair:
        array = score_array(one, what, np.ndim(one))
        if array.ndim > 1 or (array.ndim == 1 and len(array) != n):
            raise ModelError(f"{what} must be a number or an array of {n} numbers, got shape {array.shape}")
        found.append(np.broadcast_to(array, n))
    return found
