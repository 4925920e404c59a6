"""Matchings in which pairs of links have scores, too: quadratic assignment (Lacoste-Julien et al. 2006)."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import ClassVar, Self

import numpy as np

from markovfield.arrays import BoolArray, FloatArray, IntArray, offsets_of
from markovfield.exceptions import ModelError
from markovfield.inference.core.running import Running
from markovfield.structures.core.family import Parts, Sums
from markovfield.structures.matching.assignment import best_program
from markovfield.structures.matching.family import Matchings
from markovfield.structures.matching.sums import Instance

__all__ = ["QuadraticMatchings", "all_matchings"]

# Matchings that are gone through for a sum, at most.
MOST = 50_000


@dataclass(frozen=True, eq=False, kw_only=True)
class QuadraticMatchings(Matchings):
    """Matchings of rows with columns that score by pairs of links beside links.

    Cells of an instance: those of `Matchings` with fertilities, then its pairs. The best is an integer program
    (HiGHS), proven optimal; sums go through all matchings, as long as these are few.

    Attributes
    ----------
    pairs
        For each instance ``int64[p, 4]``: rows and columns of two links, (i, j, k, l).
    """

    pairs: tuple[IntArray, ...]

    name: ClassVar[str] = "quadratic_matching"

    @classmethod
    def joined(
        cls,
        rows: IntArray,
        columns: IntArray,
        limits: tuple[tuple[IntArray, IntArray], ...],
        pairs: tuple[IntArray, ...],
    ) -> Self:
        """Instances of some numbers of rows, columns, links that these may have, and pairs of links."""
        m, n = np.asarray(rows, np.int64), np.asarray(columns, np.int64)
        cells = 2 * m * n + m + n + np.array([len(own) for own in pairs], np.int64)
        return cls(offsets_of(cells), m, n, limits, pairs=pairs)

    def split(self, instance: int, values: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        *first, absent = super().split(instance, values)
        return first[0], first[1], first[2], absent[: first[0].size]

    def pair_values(self, instance: int, values: FloatArray) -> FloatArray:
        """A view of the values of pairs."""
        return values[self._first_pair(instance) : int(self.cell_offsets[instance + 1])]

    def _first_pair(self, instance: int) -> int:
        return int(self.cell_offsets[instance + 1]) - len(self.pairs[instance])

    def cells_of(self, instance: int, links: BoolArray) -> IntArray:
        i, j, k, m = self.pairs[instance].T
        both = np.flatnonzero(links[i, j] & links[k, m])
        return np.concatenate([super().cells_of(instance, links), self._first_pair(instance) + both])

    def _best_of(self, i: int, pool: FloatArray) -> BoolArray | None:
        one, _ = self.instance(i, pool)
        best = best_program(
            one.links,
            one.rows,
            one.columns,
            forced=one.forced,
            row_limits=one.row_limits,
            column_limits=one.column_limits,
            pairs=self.pairs[i],
            pair_scores=self.pair_values(i, pool),
        )
        return None if best is None else best[0]

    def _all(self, i: int, pool: FloatArray) -> tuple[list[IntArray], FloatArray]:
        """The cells and scores of all matchings that are possible."""
        one, _ = self.instance(i, pool)
        found = all_matchings(one, MOST)
        if found is None:
            size = " x ".join(map(str, one.links.shape))
            raise ModelError(
                f"sums over matchings that score by pairs go through all of them, and {size} links have more than "
                f"{MOST}: decode them, or rule out links"
            )
        cells = [self.cells_of(i, links) for links in found]
        scores = np.array([pool[own].sum() for own in cells])
        kept = np.flatnonzero(scores > -np.inf)
        return [cells[k] for k in kept.tolist()], scores[kept]

    def sums(
        self, pool: FloatArray, *, counts: bool = False, weights: FloatArray | None = None, running: Running
    ) -> Sums:
        log_z = np.full(self.n_instances, -np.inf)
        expected = np.zeros(self.n_cells if counts else 0)
        for i in range(self.n_instances):
            running.check()
            cells, scores = self._all(i, pool)
            if not cells:
                continue
            log_z[i] = np.logaddexp.reduce(scores)
            if counts:
                share = np.exp(scores - log_z[i]) * (1.0 if weights is None else float(weights[i]))
                np.add.at(expected, np.concatenate(cells), np.repeat(share, [len(own) for own in cells]))
        return Sums(log_z, expected if counts else None)

    def draws(self, pool: FloatArray, size: int, *, rng: np.random.Generator, running: Running) -> Parts:
        found: list[IntArray] = []
        for i in range(self.n_instances):
            running.check()
            cells, scores = self._all(i, pool)
            if not cells:
                found += [np.zeros(0, np.int64)] * size
                continue
            p = np.exp(scores - np.logaddexp.reduce(scores))
            found += [cells[k] for k in rng.choice(len(cells), size, p=p / p.sum()).tolist()]
        return Parts.joined(found)

    def _require(self, pool: FloatArray, instance: int, cells: IntArray) -> None:
        first = self._first_pair(instance)
        i, j, k, m = self.pairs[instance][cells[cells >= first] - first].T
        n, begin = int(self.columns[instance]), int(self.cell_offsets[instance])
        links = np.concatenate([cells[cells < first], begin + i * n + j, begin + k * n + m])
        super()._require(pool, instance, np.unique(links))

    def _chosen(self, instances: IntArray) -> Self:
        assert self.limits is not None
        limits = tuple(self.limits[i] for i in instances.tolist())
        pairs = tuple(self.pairs[i] for i in instances.tolist())
        return type(self).joined(self.rows[instances], self.columns[instances], limits, pairs)


def all_matchings(one: Instance, most: int) -> BoolArray | None:
    """``bool[k, m, n]``: all matchings with possible links, row by row; None where they are more than ``most``.

    Examples
    --------
    >>> ones = np.ones(2, np.int64)
    >>> len(all_matchings(Instance(np.zeros((2, 2)), np.zeros((2, 2), bool), ones, ones, ones, ones), 10))
    7
    """
    m, n = one.links.shape
    found = np.zeros((1, m, n), np.bool_)
    for i in range(m):
        may = np.flatnonzero(~np.isneginf(one.links[i]))
        choices = [c for size in range(int(one.row_limits[i]) + 1) for c in combinations(may.tolist(), size)]
        grown = []
        for chosen in choices:
            row = np.zeros(n, np.bool_)
            row[list(chosen)] = True
            if (one.forced[i] & ~row).any():
                continue
            fits = (found.sum(axis=1) + row <= one.column_limits).all(axis=1)
            new = found[fits].copy()
            new[:, i] = row
            grown.append(new)
            if sum(map(len, grown)) > most:
                return None
        found = np.concatenate(grown) if grown else found[:0]
    return found
