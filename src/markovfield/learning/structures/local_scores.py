"""Local scores of one table of data, counted together where that saves passes over the rows, and remembered."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from markovfield.arrays import FloatArray
from markovfield.exceptions import MemoryLimitError, ModelError
from markovfield.inference.core.running import Running
from markovfield.learning.core.data import DataTable
from markovfield.learning.structures.scores import Score, resolve_score

__all__ = ["LocalScores"]

Key = tuple[int, tuple[int, ...]]

THREADED = 2**22
"""Fewer rows times candidates than this and one thread is faster than two."""


def _distinct(table: DataTable) -> DataTable:
    """The table with equal rows as one row of their weight, where that makes it several times shorter."""
    tried = min(table.n_rows, 4096)
    if table.n_rows < 1000 or 3 * table.rows(np.arange(tried)).distinct().n_rows > tried:
        return table
    shorter = table.distinct()
    return table if 3 * shorter.n_rows > table.n_rows else shorter


class LocalScores:
    """Local scores of one table of data, by position, counted when first asked for and remembered.

    Parameters
    ----------
    table
        Complete data; a missing value is an error.
    score
        A score or its name.
    running
        Threads, time limit and callback. Scores do not depend on the number of threads.

    Examples
    --------
    >>> from markovfield.learning.core.data import encode
    >>> scores = LocalScores(encode({"A": [0, 0, 1, 1], "B": [0, 1, 0, 1], "C": [0, 0, 1, 1]}), "aic")
    >>> [round(float(s), 3) for s in scores.additions(2, [])]
    [-2.0, -4.773, nan]
    """

    def __init__(self, table: DataTable, score: str | Score = "bic", *, running: Running | None = None) -> None:
        if table.has_missing:
            v = int(np.argmax((table.codes < 0).any(axis=1)))
            row = int(np.argmax(table.codes[v] < 0))
            raise ModelError(
                f"scores of structures need complete data, but variable {table.variables[v]!r} is missing "
                f"in row {row}; impute it, or keep the complete rows only (drop_missing=True)"
            )
        if table.weights is not None and table.total_weight <= 1.0 < table.n_rows:
            raise ModelError(
                f"weights count rows, and these add up to {table.total_weight:.3g} for {table.n_rows} rows: no score "
                "could tell structures apart; multiply them by the number of rows"
            )
        self.table = table
        self.score = resolve_score(score)
        self.running = Running() if running is None else running
        self._data = _distinct(table)
        weights = np.zeros(0) if self._data.weights is None else self._data.weights.view()
        weights.flags.writeable = False
        self._weights = weights
        self._cards: list[int] = table.cardinalities.tolist()
        self._local: dict[Key, float] = {}
        self._additions: dict[Key, FloatArray] = {}
        self._base: tuple[Key, npt.NDArray[np.int32], int] | None = None

    def _key(self, child: int, parents: Sequence[int]) -> Key:
        return child, tuple(sorted(parents))

    def _less_penalty(self, fit: float, child: int, parents: Sequence[int]) -> float:
        states = self._cards[child]
        configurations = math.prod(float(self._cards[p]) for p in parents)
        return fit - self.score.penalty(configurations * (states - 1), self.table.total_weight)

    def _base_cells(self, key: Key) -> tuple[npt.NDArray[np.int32], int]:
        """Number of the parents' configuration times the child's states plus its state; how many configurations."""
        if self._base is not None and self._base[0] == key:
            return self._base[1], self._base[2]
        child, parents = key
        rows = self._data.n_rows
        configurations = 1
        base: npt.NDArray[np.int64] = np.zeros(rows, np.int64)
        for p in parents:
            base *= self._cards[p]
            base += self._data.codes[p]
            configurations *= self._cards[p]
            if configurations > max(rows, 64):  # more than can occur: number only those that do
                found, inverse = np.unique(base, return_inverse=True)
                base, configurations = inverse.ravel().astype(np.int64), max(len(found), 1)
        states = self._cards[child]
        if configurations * states * max(self._cards) >= 2**31:
            raise MemoryLimitError(
                f"the joint counts of {self.table.variables[child]!r} and {len(parents)} parents "
                f"have more than 2^31 cells"
            )
        cells = (base * states + self._data.codes[child]).astype(np.int32)
        self._base = key, cells, configurations
        return cells, configurations

    def local(self, child: int, parents: Sequence[int] = ()) -> float:
        """Score of one child given its parents, whatever their order. One pass over the rows for each member."""
        key = self._key(child, parents)
        found = self._local.get(key)
        if found is None:
            from markovfield.learning.structures.family_scores_kernel import fit_of_table

            counts, configurations = self._counts(key)
            found = self._local[key] = self._fit(fit_of_table, counts, configurations, key)
        return found

    def _counts(self, key: Key) -> tuple[FloatArray, int]:
        base, configurations = self._base_cells(key)
        weights = self._data.weights
        counts = np.bincount(base, weights, configurations * self._cards[key[0]])
        return counts.astype(np.float64), configurations

    def _fit(self, fit_of_table: Any, counts: FloatArray, configurations: int, key: Any) -> float:
        child, parents = key
        states = self._cards[child]
        prior = self.score.prior(math.prod(float(self._cards[p]) for p in parents), states)
        return self._less_penalty(float(fit_of_table(counts, configurations, states, 1, prior)), child, parents)

    def deletions(self, child: int, parents: Sequence[int]) -> FloatArray:
        """Score of the child without each of its parents in turn, in their order: one pass over the rows for all."""
        from markovfield.learning.structures.family_scores_kernel import fit_of_table

        key = self._key(child, parents)
        cards = [self._cards[p] for p in key[1]]
        table: FloatArray | None = None
        result = np.empty(len(parents))
        for i, p in enumerate(parents):
            without = self._key(child, [q for q in parents if q != p])
            if without not in self._local and math.prod(cards) <= max(self._data.n_rows, 64):
                if table is None:
                    table = self._counts(key)[0].reshape(*cards, self._cards[child])
                counts = table.sum(axis=key[1].index(p)).ravel()
                configurations = len(counts) // self._cards[child]
                self._local[without] = self._fit(fit_of_table, counts, configurations, without)
            result[i] = self.local(*without)
        return result

    def additions(self, child: int, parents: Sequence[int] = ()) -> FloatArray:
        """``float64[n_variables]``: score of the child with each variable as one more parent, nan where it has it.

        All are counted together, in a fraction of a nanosecond for each row and candidate.
        """
        key = self._key(child, parents)
        found = self._additions.get(key)
        if found is None:
            found = self._additions[key] = self._count_additions(key)
        return found

    def _count_additions(self, key: Key) -> FloatArray:
        from markovfield.learning.structures.family_scores_kernel import score_additions

        child, parents = key
        base, configurations = self._base_cells(key)
        states = self._cards[child]
        candidates = [v for v in range(len(self._cards)) if v != child and v not in parents]
        product = math.prod(float(self._cards[p]) for p in parents)
        priors = np.array([self.score.prior(product * self._cards[c], states) for c in candidates])
        fits = np.empty(len(candidates))
        offsets = self._groups(configurations * states, candidates)
        # The cut into groups and tasks depends on the data only, never on the number of threads.
        big = self._data.n_rows * len(candidates) >= THREADED
        per_task = -(-(len(offsets) - 1) // 8) if big else max(1, len(offsets) - 1)

        def task(first: int, last: int) -> int:
            low, high = offsets[first], offsets[last]
            score_additions(
                self._data.codes,
                self._weights,
                self.table.cardinalities,
                base,
                configurations,
                states,
                np.array([o - low for o in offsets[first : last + 1]], np.int64),
                np.array(candidates[low:high], np.int32),
                priors[low:high],
                fits[low:high],
            )
            return 0

        cuts = [(f, min(f + per_task, len(offsets) - 1)) for f in range(0, len(offsets) - 1, per_task)]
        if len(cuts) == 1:
            task(*cuts[0])
        else:
            self.running.side_by_side([lambda cut=cut: task(*cut) for cut in cuts])  # type: ignore[misc]
        result = np.full(len(self._cards), np.nan)
        per_parameter = product * (states - 1)
        for c, fit in zip(candidates, fits.tolist(), strict=True):
            result[c] = fit - self.score.penalty(per_parameter * self._cards[c], self.table.total_weight)
        result.flags.writeable = False
        return result

    def _groups(self, cells: int, candidates: Sequence[int]) -> list[int]:
        """Where runs of candidates that are counted jointly begin: as many as keep their table small."""
        from markovfield.learning.core.counting_kernel import SMALL

        offsets, size = [0], cells
        for i, c in enumerate(candidates):
            if i > offsets[-1] and size * self._cards[c] > SMALL:
                offsets.append(i)
                size = cells
            size *= self._cards[c]
        return [*offsets, len(candidates)] if candidates else [0]

    def total(self, parents: Sequence[Sequence[int]]) -> float:
        """Score of a whole structure, given the parents of each variable."""
        return math.fsum(self.local(v, above) for v, above in enumerate(parents))
