"""Planes that are kept, with their masses: what the dual of a structural SVM is made of."""

from __future__ import annotations

import numpy as np

from markovfield.arrays import FloatArray, IntArray
from markovfield.learning.max_margin.problem import Planes
from markovfield.learning.max_margin.working_set_kernel import ascend

__all__ = ["WorkingSet"]


class WorkingSet:
    """Planes of all blocks, in lists that the kernel follows, and the weights that their masses make.

    Attributes
    ----------
    w
        ``sum of mass times features``.
    dual
        ``sum of mass times loss - 1/2 |w|^2``; it never falls.
    """

    def __init__(self, costs: FloatArray, n_weights: int) -> None:
        n = len(costs)
        self.w, self.dual = np.zeros(n_weights), 0.0
        self.true_masses = np.array(costs, np.float64)
        self.costs = self.true_masses.copy()
        self._heads = np.full(n, -1, np.int64)
        self._scratch = np.zeros(n_weights)
        self.n_planes = 0
        self._block = np.zeros(0, np.int64)
        self._following, self._age = np.zeros(0, np.int64), np.zeros(0, np.int64)
        self._losses, self.masses = np.zeros(0), np.zeros(0)
        self._offsets = np.zeros(1, np.int64)
        self._columns, self._values = np.zeros(0, np.int64), np.zeros(0)

    def add(self, planes: Planes, enough: float = 0.0) -> FloatArray:
        """Keep planes that are higher than what their block has, by more than ``enough``; gaps of their blocks.

        A block's gap is its cost times its hinge less what its masses make of it: all gaps together are primal less
        dual, where all planes are of the same weights.
        """
        heights = np.maximum(planes.heights(self.w), 0.0)
        best, mean = self._summary(planes.blocks)
        gaps = np.asarray(self.costs[planes.blocks] * heights - mean)
        new = np.flatnonzero((heights > best + enough) & (heights > enough))
        sizes = np.diff(planes.offsets)[new]
        n, m = self.n_planes, len(new)
        first, size = int(self._offsets[n]), int(sizes.sum())
        self._room(n + m, first + size)
        where = np.repeat(planes.offsets[new] - (np.cumsum(sizes) - sizes), sizes) + np.arange(size)
        self._columns[first : first + size] = planes.columns[where]
        self._values[first : first + size] = planes.values[where]
        self._offsets[n + 1 : n + m + 1] = first + np.cumsum(sizes)
        self._losses[n : n + m] = planes.losses[new]
        self.masses[n : n + m], self._age[n : n + m] = 0.0, 0
        self._block[n : n + m] = blocks = planes.blocks[new]
        self._following[n : n + m] = self._heads[blocks]
        self._heads[blocks] = np.arange(n, n + m)
        self.n_planes = n + m
        return gaps

    def _summary(self, blocks: IntArray) -> tuple[FloatArray, FloatArray]:
        """The highest plane that some blocks have, and the sum of mass times height of each."""
        n = self.n_planes
        chosen = np.zeros(len(self._heads), np.bool_)
        chosen[blocks] = True
        kept = np.flatnonzero(chosen[self._block[:n]])
        best, mean = np.zeros(len(chosen)), np.zeros(len(chosen))
        if len(kept):
            sizes = np.diff(self._offsets[: n + 1])[kept]
            where = np.repeat(self._offsets[kept] - (np.cumsum(sizes) - sizes), sizes) + np.arange(sizes.sum())
            products = np.concatenate([[0.0], np.cumsum(self.w[self._columns[where]] * self._values[where])])
            ends = np.cumsum(sizes)
            heights = self._losses[kept] - (products[ends] - products[ends - sizes])
            np.maximum.at(best, self._block[kept], heights)
            mean += np.bincount(self._block[kept], self.masses[kept] * heights, len(chosen))
        return best[blocks], mean[blocks]

    def ascend(self, blocks: IntArray, n_steps: int = 3, enough: float = 1e-12) -> float:
        """Steps on some blocks, in their order; the rise of the dual."""
        rise = np.zeros(len(blocks))
        ascend(
            blocks, self._heads, self._following, self._offsets, self._columns, self._values, self._losses,
            self.masses, self.true_masses, self.w, self._scratch, n_steps, enough, rise,
        )  # fmt: skip
        total = float(rise.sum())
        self.dual += total
        return total

    def settle(self, rng: np.random.Generator, share: float, most: int) -> None:
        """Sweeps over all blocks until one raises the dual by less than a share of what the first did."""
        first = 0.0
        for sweep in range(most):
            rise = self.ascend(rng.permutation(len(self._heads)))
            first = rise if sweep == 0 else first
            if rise <= share * first:
                return

    def forget(self, most_age: int) -> None:
        """Drop planes that have had no mass for so many calls of this."""
        n = self.n_planes
        self._age[:n] = np.where(self.masses[:n] > 0.0, 0, self._age[:n] + 1)
        kept = np.flatnonzero(self._age[:n] <= most_age)
        if len(kept) > 0.8 * n:
            return
        sizes = np.diff(self._offsets[: n + 1])[kept]
        where = np.repeat(self._offsets[kept] - (np.cumsum(sizes) - sizes), sizes) + np.arange(sizes.sum())
        self._columns[: len(where)], self._values[: len(where)] = self._columns[where], self._values[where]
        m = self.n_planes = len(kept)
        self._offsets[1 : m + 1] = np.cumsum(sizes)
        for array in (self._block, self._losses, self.masses, self._age):
            array[:m] = array[kept]
        # The lists anew: sorted by block, each follows the one before it.
        self._heads[:] = -1
        order = np.argsort(self._block[:m], kind="stable")
        owners = self._block[order]
        same = np.concatenate([[False], owners[1:] == owners[:-1]]) if m else np.zeros(0, np.bool_)
        self._following[order] = np.where(same, np.concatenate([[-1], order[:-1]]) if m else order, -1)
        self._heads[owners] = order  # the last one of each block stays

    def _room(self, n_planes: int, n_values: int) -> None:
        """Make room, twice as much as there was."""
        if n_planes > len(self._losses):
            more = max(n_planes, 2 * len(self._losses), 64)
            for name in ("_block", "_following", "_age", "_losses", "masses"):
                old = getattr(self, name)
                grown = np.zeros(more, old.dtype)
                grown[: len(old)] = old
                setattr(self, name, grown)
            offsets = np.zeros(more + 1, np.int64)
            offsets[: len(self._offsets)] = self._offsets
            self._offsets = offsets
        if n_values > len(self._values):
            more = max(n_values, 2 * len(self._values), 1024)
            columns, values = np.zeros(more, np.int64), np.zeros(more)
            columns[: len(self._columns)], values[: len(self._values)] = self._columns, self._values
            self._columns, self._values = columns, values
