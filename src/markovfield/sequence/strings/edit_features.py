"""What is known of an edit: which letters are linked, which have none, first of a gap or not, doubled or not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from markovfield.arrays import BoolArray, IntArray, offsets_of
from markovfield.structures.alignment.choice_family import AlignmentChoices

__all__ = ["EDITS", "EditFeatures"]

# Rows are letters of the string as it stands, columns those of the word that was meant.
EDITS = (
    "same",
    "different",
    "added_first",
    "added_further",
    "left_out_first",
    "left_out_further",
    "added_doubled",
    "left_out_doubled",
    "frequency",
)


@dataclass(frozen=True)
class EditFeatures:
    """Features of edits between strings over an alphabet; letters that are not in it are one."""

    alphabet: str

    @property
    def n_letters(self) -> int:
        """Letters that are told apart."""
        return len(self.alphabet) + 1

    @cached_property
    def _code(self) -> dict[str, int]:
        return {letter: k + 1 for k, letter in enumerate(self.alphabet)}

    def _codes(self, strings: Sequence[str]) -> IntArray:
        code = self._code
        return np.array([code.get(letter, 0) for string in strings for letter in string], np.int64)

    def terms(
        self, family: AlignmentChoices, strings: Sequence[str], words: Sequence[str], log_shares: Any
    ) -> dict[str, Any]:
        """For each kind of weights a sparse matrix of cells by features; pair p is of strings[p] with words[p]."""
        made: dict[str, list[tuple[IntArray, IntArray]]] = {"edits": [], "pairs": [], "gaps": []}
        self._links(family, strings, words, made)
        for side, texts in enumerate((strings, words)):
            self._gaps(family, side, texts, made)
        sizes = {"edits": len(EDITS), "pairs": self.n_letters**2, "gaps": 2 * self.n_letters}
        found = {}
        for kind, entries in made.items():
            cells, columns = (np.concatenate(parts) for parts in zip(*entries, strict=True))
            values = np.ones(len(cells))
            if kind == "edits":
                cells = np.concatenate([cells, family.choice_cells])
                columns = np.concatenate([columns, np.full(len(words), EDITS.index("frequency"))])
                values = np.concatenate([values, log_shares])
            found[kind] = _sparse(values, cells, columns, (family.n_cells, sizes[kind]))
        return found

    def _links(
        self, family: AlignmentChoices, strings: Sequence[str], words: Sequence[str],
        made: dict[str, list[tuple[IntArray, IntArray]]],
    ) -> None:  # fmt: skip
        rows, columns = family.pairs.rows, family.pairs.columns
        pair, at = _numbered(rows * columns)
        i, j = at // columns[pair], at % columns[pair]
        starts = [offsets_of(size)[:-1] for size in (rows, columns)]
        one, two = starts[0][pair] + i, starts[1][pair] + j
        same = _letters(strings)[one] == _letters(words)[two]
        cells = family.choice_cells[pair] + 1 + at
        made["edits"].append((cells, np.where(same, EDITS.index("same"), EDITS.index("different"))))
        made["pairs"].append((cells, self._codes(strings)[one] * self.n_letters + self._codes(words)[two]))

    def _gaps(
        self, family: AlignmentChoices, side: int, texts: Sequence[str],
        made: dict[str, list[tuple[IntArray, IntArray]]],
    ) -> None:  # fmt: skip
        pairs = family.pairs
        sizes = pairs.columns if side else pairs.rows
        pair, at = _numbered(sizes)
        begin = family.choice_cells + 1 + pairs.rows * pairs.columns + (3 * pairs.rows if side else 0)
        name = ("added", "left_out")[side]
        doubled = _doubled(texts)
        codes = self._codes(texts) + side * self.n_letters
        for further, kind in enumerate(("first", "further")):
            cells = np.asarray(begin[pair] + further * sizes[pair] + at, np.int64)
            made["edits"].append((cells, np.full(len(cells), EDITS.index(f"{name}_{kind}"))))
            made["edits"].append((cells[doubled], np.full(int(doubled.sum()), EDITS.index(f"{name}_doubled"))))
            made["gaps"].append((cells, codes))


def _sparse(values: Any, rows: IntArray, columns: IntArray, shape: tuple[int, int]) -> Any:
    from scipy.sparse import csr_array

    return csr_array((values, (rows, columns)), shape=shape)


def _numbered(sizes: IntArray) -> tuple[IntArray, IntArray]:
    """For each of so many things of each pair: the pair, and its number there."""
    ends = np.cumsum(sizes)
    pair = np.repeat(np.arange(len(sizes)), sizes)
    return pair, np.arange(int(ends[-1]) if len(ends) else 0) - (ends - sizes)[pair]


def _letters(texts: Sequence[str]) -> IntArray:
    return np.frombuffer("".join(texts).encode("utf-32-le", "surrogatepass"), np.uint32).astype(np.int64)


def _doubled(texts: Sequence[str]) -> BoolArray:
    """Which letters stand beside their like."""
    letters = _letters(texts)
    text = np.repeat(np.arange(len(texts)), [len(one) for one in texts])
    equal = (letters[1:] == letters[:-1]) & (text[1:] == text[:-1])
    return np.concatenate([equal, [False]]) | np.concatenate([[False], equal])
