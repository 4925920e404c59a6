"""Paths of CTC with any labels: a symbol for each frame, chosen by itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from markovfield.arrays import FloatArray, IntArray, offsets_of
from markovfield.inference.core.running import Running
from markovfield.structures.core.family import Edge, Family, Parts, Sums
from markovfield.structures.core.k_best import k_best

__all__ = ["FreePaths", "keep_symbols"]


@dataclass(frozen=True, eq=False)
class FreePaths(Family):
    """Every path through frames; cells of an instance are frames x symbols, as those of `CTCPaths`."""

    frames: IntArray
    n_symbols: int
    blank: int

    name: ClassVar[str] = "ctc"

    @classmethod
    def of(cls, frames: IntArray, n_symbols: int, blank: int = 0) -> Self:
        """Sequences of some numbers of frames."""
        lengths = np.asarray(frames, np.int64)
        return cls(offsets_of(lengths * n_symbols), lengths, n_symbols, blank)

    def _sequence(self) -> IntArray:
        """The sequence of each frame."""
        return np.repeat(np.arange(self.n_instances), self.frames)

    def sums(
        self, pool: FloatArray, *, counts: bool = False, weights: FloatArray | None = None, running: Running
    ) -> Sums:
        table = pool.reshape(-1, self.n_symbols)
        top = table.max(axis=1, initial=-np.inf)
        numbers = np.exp(table - np.where(np.isneginf(top), 0.0, top)[:, None])
        totals = numbers.sum(axis=1)
        with np.errstate(divide="ignore"):
            each = top + np.log(totals)
        found = np.concatenate([[0.0], np.cumsum(np.where(np.isneginf(each), 0.0, each))])
        log_z = np.diff(found[offsets_of(self.frames)])
        of_frame = self._sequence()
        log_z[of_frame[np.isneginf(each)]] = -np.inf
        if not counts:
            return Sums(log_z)
        share = np.ones(self.n_instances) if weights is None else np.array(weights, np.float64)
        share = np.where(np.isneginf(log_z), 0.0, share)[of_frame] / np.where(totals > 0, totals, 1.0)
        return Sums(log_z, (numbers * share[:, None]).ravel())

    def _parts(self, chosen: IntArray, size: int) -> Parts:
        """Paths given as ``int64[frames, size]``: the symbol of each; all of a sequence are -1 where it has none."""
        of_frame, frame = self._sequence(), np.arange(len(chosen))
        cells = np.where(chosen >= 0, frame[:, None] * self.n_symbols + chosen, -1)
        order = np.lexsort((np.tile(frame, size), np.repeat(np.arange(size), len(frame)), np.tile(of_frame, size)))
        offsets = offsets_of(np.repeat(self.frames, size))
        return Parts(offsets, cells.T.ravel()[order]).possible()

    def _impossible(self, pool: FloatArray) -> IntArray:
        """For each frame whether its sequence has a frame without a symbol."""
        none = np.isneginf(pool.reshape(-1, self.n_symbols)).all(axis=1)
        of_frame = self._sequence()
        bad = np.zeros(self.n_instances, bool)
        bad[of_frame[none]] = True
        return np.asarray(bad[of_frame])

    def maxima(self, pool: FloatArray, *, running: Running) -> Parts:
        chosen = pool.reshape(-1, self.n_symbols).argmax(axis=1)
        return self._parts(np.where(self._impossible(pool), -1, chosen)[:, None], 1)

    def draws(self, pool: FloatArray, size: int, *, rng: np.random.Generator, running: Running) -> Parts:
        table = pool.reshape(-1, self.n_symbols)
        numbers = np.exp(table - np.maximum(table.max(axis=1, initial=-np.inf), -1e300)[:, None])
        levels = np.cumsum(numbers, axis=1)
        at = rng.random((len(table), size)) * levels[:, -1:]
        chosen = np.array([np.searchsorted(row, own, side="right") for row, own in zip(levels, at, strict=True)])
        chosen = np.minimum(chosen.reshape(len(table), size), self.n_symbols - 1)
        return self._parts(np.where(self._impossible(pool)[:, None], -1, chosen), size)

    def best(self, pool: FloatArray, n: int, *, running: Running) -> list[list[IntArray]]:
        return [self._best_of(pool, i, n, running) for i in range(self.n_instances)]

    def _best_of(self, pool: FloatArray, instance: int, n: int, running: Running) -> list[IntArray]:
        begin, end = int(self.cell_offsets[instance]), int(self.cell_offsets[instance + 1])
        rest = np.cumsum(pool[begin:end].reshape(-1, self.n_symbols).max(axis=1)[::-1])[::-1].tolist()
        length = len(rest)

        def edges(t: int) -> list[Edge]:
            tails = (t + 1,) if t + 1 < length else ()
            cells = range(begin + t * self.n_symbols, begin + (t + 1) * self.n_symbols)
            return [Edge(tails, (cell,)) for cell in cells]

        return k_best(0, edges, lambda t: float(rest[t]), pool, n, running) if length else []

    def _require(self, pool: FloatArray, instance: int, cells: IntArray) -> None:
        keep_symbols(pool[self.cell_offsets[instance] :], cells - self.cell_offsets[instance], self.n_symbols)

    def _chosen(self, instances: IntArray) -> Self:
        return type(self).of(self.frames[instances], self.n_symbols, self.blank)


def keep_symbols(pool: FloatArray, cells: IntArray, n_symbols: int) -> None:
    """Rule out all other symbols in the frames of these cells; the first frame begins where the pool does."""
    for cell in cells.tolist():
        frame = pool[cell - cell % n_symbols :][:n_symbols]
        frame[np.arange(n_symbols) != cell % n_symbols] = -np.inf
