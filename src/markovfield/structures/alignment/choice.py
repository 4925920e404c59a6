"""One of several pairs of sequences, and its alignment."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from markovfield.arrays import FloatArray, IntArray
from markovfield.exceptions import ModelError
from markovfield.structures.alignment.choice_family import AlignmentChoices
from markovfield.structures.alignment.family import MonotoneAlignments
from markovfield.structures.alignment.monotone import MonotoneAlignment
from markovfield.structures.core.form import StructureForm, place, score_array

__all__ = ["AlignmentChoice"]


class AlignmentChoice(StructureForm):
    """A choice of one of several pairs of sequences, each with all its alignments: which word was it, and how misspelt?

    A structure is ``(choice, links)``. The probability of a choice is that of all its alignments together.

    Parameters
    ----------
    alignments
        The alignments of each pair, all with the same ``free_ends`` and ``band``.
    scores
        ``float[n]``: of choosing each of them; 0 when None.

    Examples
    --------
    >>> import markovfield as mf
    >>> def pair(a, b):
    ...     equal = np.array([[x == y for y in b] for x in a])
    ...     return mf.structures.MonotoneAlignment(2.0 * equal - 2.0, row_gap=-1.5, column_gap=-1.5)
    >>> words = mf.structures.AlignmentChoice([pair("gril", word) for word in ("girl", "grill", "grind")])
    >>> mf.decode(words).structure
    (1, [(0, 0), (1, 1), (2, 2), (3, 3)])
    >>> mf.marginals(words)["choices"].round(2).tolist()
    [0.21, 0.68, 0.11]
    """

    parts: ClassVar[tuple[str, ...]] = ("choices", "links")
    family: AlignmentChoices

    def __init__(self, alignments: Sequence[MonotoneAlignment], scores: npt.ArrayLike | None = None) -> None:
        forms = list(alignments)
        if not forms or not all(isinstance(form, MonotoneAlignment) for form in forms):
            raise ModelError("a choice is between one MonotoneAlignment or more")
        families = [form.family for form in forms]
        settings = {(own.free_rows, own.free_columns, own.band) for own in families}
        if len(settings) > 1:
            raise ModelError("alignments to choose from must have the same free_ends and band")
        own = score_array(np.zeros(len(forms)) if scores is None else scores, "scores of choices", 1)
        if len(own) != len(forms):
            raise ModelError(f"there are {len(forms)} alignments to choose from and {len(own)} scores")
        free_rows, free_columns, band = settings.pop()
        sizes = np.concatenate([one.rows for one in families]), np.concatenate([one.columns for one in families])
        pairs = MonotoneAlignments.of(*sizes, free_rows=free_rows, free_columns=free_columns, band=band)
        self.family = AlignmentChoices.of(pairs, np.array([0, len(forms)]))
        self.pool = np.empty(self.family.n_cells)
        self.pool[self.family.choice_cells] = own
        self.pool[self.family.pair_cells] = np.concatenate([form.pool for form in forms])

    def __repr__(self) -> str:
        return f"AlignmentChoice of {self.family.pairs.n_instances} pairs"

    def alignment(self, choice: int) -> MonotoneAlignment:
        """One of the pairs, as a form of its own."""
        family, where = self.family.pairs.select(np.array([choice]))
        return MonotoneAlignment.of(family, self.pool[self.family.pair_cells[where]])

    def shaped(self, values: FloatArray) -> dict[str, FloatArray]:
        pairs = self.family.pairs
        links = np.zeros((pairs.n_instances, int(pairs.rows.max()), int(pairs.columns.max())))
        own = values[self.family.pair_cells]
        for p, (m, n) in enumerate(zip(pairs.rows.tolist(), pairs.columns.tolist(), strict=True)):
            begin = int(pairs.cell_offsets[p])
            links[p, :m, :n] = own[begin : begin + m * n].reshape(m, n)
        return {"choices": values[self.family.choice_cells].copy(), "links": links}

    def cell(self, part: str, index: tuple[int, ...]) -> int:
        pairs = self.family.pairs
        where = place(index)
        size = 1 if part == "choices" else 3
        if len(where) != size or not 0 <= where[0] < pairs.n_instances:
            what = "a choice is" if part == "choices" else "a link is (choice, row, column) with a choice"
            raise ModelError(f"{what} from 0 to {pairs.n_instances - 1}, got {index}")
        if part == "choices":
            return int(self.family.choice_cells[where[0]])
        m, n = int(pairs.rows[where[0]]), int(pairs.columns[where[0]])
        if not (0 <= where[1] < m and 0 <= where[2] < n):
            raise ModelError(f"links of choice {where[0]} have rows below {m} and columns below {n}, got {index}")
        return int(self.family.pair_cells[pairs.cell_offsets[where[0]] + where[1] * n + where[2]])

    def structure(self, cells: IntArray) -> tuple[int, list[tuple[int, int]]]:
        choice = int(np.searchsorted(self.family.choice_cells, np.min(cells), "right")) - 1
        n, at = int(self.family.pairs.columns[choice]), int(self.family.choice_cells[choice]) + 1
        links = int(self.family.pairs.rows[choice]) * n
        own = np.sort(cells - at)
        return choice, [(int(c) // n, int(c) % n) for c in own[(own >= 0) & (own < links)]]

    def cells(self, structure: Any) -> IntArray:
        if not isinstance(structure, tuple | list) or len(structure) != 2:
            raise ModelError(f"a structure is a pair (choice, links), got {structure!r}")
        choice, links = structure
        first = self.cell("choices", (choice,))
        own = self.alignment(int(choice)).cells(links)
        return np.concatenate([[first], first + 1 + own])
