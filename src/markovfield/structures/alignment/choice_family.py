"""One of several pairs of sequences, and its alignment, for many instances."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Self

import numpy as np

from markovfield.arrays import FloatArray, IntArray, offsets_of
from markovfield.inference.core.running import Running
from markovfield.structures.alignment.family import MonotoneAlignments
from markovfield.structures.core.family import Family, Parts, Sums

__all__ = ["AlignmentChoices"]


@dataclass(frozen=True, eq=False)
class AlignmentChoices(Family):
    """Instances that choose one of their pairs and align it.

    Cells of an instance: for each pair one for choosing it, then those of its alignments.

    Attributes
    ----------
    pairs
        All pairs of all instances.
    choices
        ``int64[n + 1]``: where the pairs of each instance begin.
    """

    pairs: MonotoneAlignments
    choices: IntArray

    name: ClassVar[str] = "alignment_choice"

    @classmethod
    def of(cls, pairs: MonotoneAlignments, choices: IntArray) -> Self:
        """Instances whose pairs begin at some places."""
        starts = np.asarray(choices, np.int64)
        return cls(pairs.cell_offsets[starts] + starts, pairs, starts)

    @cached_property
    def choice_cells(self) -> IntArray:
        """``int64[pairs]``: the cell of choosing each pair."""
        return self.pairs.cell_offsets[:-1] + np.arange(self.pairs.n_instances)

    @cached_property
    def pair_cells(self) -> IntArray:
        """The cell of each cell of `pairs`."""
        n = self.pairs.n_instances
        return np.arange(self.pairs.n_cells) + np.repeat(np.arange(1, n + 1), np.diff(self.pairs.cell_offsets))

    @cached_property
    def instance_of(self) -> IntArray:
        """``int64[pairs]``: the instance of each pair."""
        return np.repeat(np.arange(self.n_instances), np.diff(self.choices))

    def work(self) -> FloatArray:
        total = np.concatenate([[0.0], np.cumsum(self.pairs.work())])
        return np.diff(total[self.choices])

    def sums(
        self, pool: FloatArray, *, counts: bool = False, weights: FloatArray | None = None, running: Running
    ) -> Sums:
        chosen = pool[self.choice_cells]
        # What cannot be chosen, as when the right one is known, needs no sums.
        alive = np.flatnonzero(chosen > -np.inf)
        some = len(alive) < len(chosen)
        pairs, where = self.pairs.select(alive) if some else (self.pairs, np.arange(0))
        cells = self.pair_cells[where] if some else self.pair_cells
        own = pairs.sums(pool[cells], counts=counts, running=running)
        logs = np.full(len(chosen), -np.inf)
        logs[alive] = own.log_partition + chosen[alive]
        top = np.full(self.n_instances, -np.inf)
        np.maximum.at(top, self.instance_of, logs)
        shares = np.exp(logs - np.where(np.isneginf(top), 0.0, top)[self.instance_of])
        totals = np.bincount(self.instance_of, shares, self.n_instances)
        with np.errstate(divide="ignore"):
            log_z = top + np.log(totals)
        if not counts:
            return Sums(log_z)
        assert own.counts is not None
        factors = 1.0 / np.where(totals > 0, totals, 1.0)
        shares *= (factors if weights is None else factors * np.asarray(weights, np.float64))[self.instance_of]
        found = np.zeros(self.n_cells)
        found[self.choice_cells] = shares
        found[cells] = own.counts * np.repeat(shares[alive], np.diff(pairs.cell_offsets))
        return Sums(log_z, found)

    def _joined(self, pair: int, cells: IntArray) -> IntArray:
        """The cells of choosing a pair and of its alignment."""
        return np.concatenate([self.choice_cells[pair : pair + 1], self.pair_cells[cells]])

    def maxima(self, pool: FloatArray, *, running: Running) -> Parts:
        own = pool[self.pair_cells]
        best = self.pairs.maxima(own, running=running)
        scores = best.scores(own) + pool[self.choice_cells]
        scores[np.diff(best.offsets) == 0] = -np.inf
        found: list[IntArray] = []
        for first, last in zip(self.choices[:-1].tolist(), self.choices[1:].tolist(), strict=True):
            pair = first + int(np.argmax(scores[first:last])) if last > first else -1
            none = pair < 0 or np.isneginf(scores[pair])
            found.append(np.zeros(0, np.int64) if none else self._joined(pair, best.of(pair)))
        return Parts.joined(found)

    def draws(self, pool: FloatArray, size: int, *, rng: np.random.Generator, running: Running) -> Parts:
        sums = self.sums(pool, counts=True, running=running)
        assert sums.counts is not None
        shares = sums.counts[self.choice_cells]
        drawn = self.pairs.draws(pool[self.pair_cells], size, rng=rng, running=running)
        found: list[IntArray] = []
        for i, (first, last) in enumerate(zip(self.choices[:-1].tolist(), self.choices[1:].tolist(), strict=True)):
            if np.isneginf(sums.log_partition[i]):
                found += [np.zeros(0, np.int64)] * size
                continue
            own = shares[first:last]
            chosen = first + rng.choice(last - first, size=size, p=own / own.sum())
            found += [self._joined(pair, drawn.of(pair * size + s)) for s, pair in enumerate(chosen.tolist())]
        return Parts.joined(found)

    def best(self, pool: FloatArray, n: int, *, running: Running) -> list[list[IntArray]]:
        own = self.pairs.best(pool[self.pair_cells], n, running=running)
        found: list[list[IntArray]] = []
        for first, last in zip(self.choices[:-1].tolist(), self.choices[1:].tolist(), strict=True):
            joined = [self._joined(pair, cells) for pair in range(first, last) for cells in own[pair]]
            scored = sorted(((float(pool[cells].sum()), k) for k, cells in enumerate(joined)), reverse=True)
            found.append([joined[k] for score, k in scored[:n] if score > -np.inf])
        return found

    def _require(self, pool: FloatArray, instance: int, cells: IntArray) -> None:
        own = slice(int(self.choices[instance]), int(self.choices[instance + 1]))
        begins = self.choice_cells[own]
        for cell in cells.tolist():
            pair = own.start + int(np.searchsorted(begins, cell, "right")) - 1
            others = begins[np.arange(own.start, own.stop) != pair]
            pool[others] = -np.inf
            if cell != self.choice_cells[pair]:
                within = np.array([cell - pair - 1])
                pool[self.pair_cells] = self.pairs.conditioned(
                    pool[self.pair_cells], pair, within, np.zeros(0, np.int64)
                )

    def _chosen(self, instances: IntArray) -> Self:
        ranges = [np.arange(self.choices[i], self.choices[i + 1]) for i in instances.tolist()]
        pairs, _ = self.pairs.select(np.concatenate([np.zeros(0, np.int64), *ranges]))
        return type(self).of(pairs, offsets_of([len(own) for own in ranges]))
