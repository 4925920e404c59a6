"""Planes that are kept, with their masses: what the dual of a structural SVM is made of."""

from __future__ import annotations

from typing import Any

import numpy as np

from markovfield.arrays import FloatArray, IntArray
from markovfield.exceptions import ModelError
from markovfield.learning.max_margin.problem import Planes
from markovfield.learning.max_margin.restraint import Restraint
from markovfield.learning.max_margin.working_set_kernel import (
    AWAY,
    PAIRWISE,
    TOWARD,
    ascend,
    compact,
    insert,
    moved,
    refresh,
)  # fmt: skip

__all__ = ["STEPS", "WorkingSet"]

STEPS = {"pairwise": PAIRWISE, "away": AWAY, "toward": TOWARD}
# Slots that a block has at first, the true output's among them.
ROOM = 4
# Steps of a visit go on until the gap of the block is so small a part of what it was; the other blocks then have more
# to give.
SHARE = 0.05
# A store of features of which less than this part is needed is made anew.
NEEDED = 0.7


class WorkingSet:
    """Planes of all blocks, and the weights that their masses make.

    Memory is that of the features of planes, 12 bytes for each number that is not zero, and of inner products of the
    planes of each block.

    Parameters
    ----------
    costs
        ``float64[n_blocks]``: what the masses of a block add up to.
    steps
        ``"pairwise"``, ``"away"`` or ``"toward"``: how mass is moved.
    restraint
        What is asked of weights beside their squares, or None.

    Attributes
    ----------
    w
        ``sum of mass times features``, and prices where there is a restraint.
    dual
        ``sum of mass times loss - 1/2 |w|^2``; it never falls.
    """

    def __init__(
        self, costs: FloatArray, n_weights: int, steps: str = "pairwise", restraint: Restraint | None = None
    ) -> None:
        n = len(costs)
        self.costs, self._kind = np.array(costs, np.float64), STEPS[steps]
        self.w, self.dual = np.zeros(n_weights), 0.0
        self._restraint, self._prices = restraint, np.zeros(n_weights)
        self._scratch = np.zeros(n_weights)
        # Of each block: slots that are used, slots there are, the first of them, and where inner products start.
        self._layout = np.zeros((4, n), np.int64)
        self._layout[0], self._layout[1] = 1, ROOM
        self._layout[2], self._layout[3] = ROOM * np.arange(n), ROOM**2 * np.arange(n)
        # Of each slot: where features start, how many they are, and for how long it has had no mass.
        self._slots = np.zeros((3, ROOM * n), np.int64)
        self._losses, self.masses = np.zeros(ROOM * n), np.zeros(ROOM * n)
        self.masses[self._layout[2]] = self.costs
        self._gram = np.zeros(ROOM**2 * n)
        self._columns, self._values, self._used = np.zeros(0, np.int32), np.zeros(0), 0

    @property
    def n_planes(self) -> int:
        """Planes that are kept, without those of true outputs."""
        return int(self._layout[0].sum()) - len(self.costs)

    def add(self, planes: Planes, n_steps: int = 0, enough: float = 1e-12) -> tuple[FloatArray, float]:
        """Keep planes that are higher than what their block has, with steps on each block; gaps and the dual's rise.

        A block's gap is its cost times its hinge less what its masses make of it: all gaps together are primal less
        dual, where no steps are made and all planes are of the same weights.
        """
        n = len(planes.blocks)
        self._room(planes.blocks, len(planes.values))
        gaps, rise = np.zeros(n), np.zeros(n)
        self._used = insert(
            planes.blocks, planes.offsets, planes.columns, planes.values, planes.losses, self._layout, self._slots,
            self.masses, self._losses, self._gram, self._columns, self._values, self._used, self.w, self._scratch,
            self.costs, 1e-12, n_steps, SHARE, enough, self._kind, gaps, rise,
        )  # fmt: skip
        return gaps, self._risen(float(rise.sum()))

    def ascend(self, blocks: IntArray, n_steps: int = 20, share: float = SHARE, enough: float = 1e-12) -> float:
        """Steps on some blocks, in their order; the rise of the dual."""
        rise = np.zeros(len(blocks))
        ascend(
            blocks, self._layout, self._slots, self.masses, self._losses, self._gram, self._columns, self._values,
            self.w, self.costs, n_steps, share, enough, self._kind, rise,
        )  # fmt: skip
        return self._risen(float(rise.sum()))

    def _risen(self, rise: float) -> float:
        """Count a rise of the dual, and that of the prices that are then the best; both together."""
        if self._restraint is not None:
            v, square = self.w - self._prices, float(self.w @ self.w)
            self._prices = self._restraint.prices(v)
            np.add(v, self._prices, out=self.w)
            rise += 0.5 * (square - float(self.w @ self.w))
        self.dual += rise
        return rise

    def settle(self, rng: np.random.Generator, least: float, most: int) -> int:
        """Sweeps over all blocks until one raises the dual by less than ``least``, at most so many; how many."""
        for sweep in range(most):
            if self.ascend(rng.permutation(len(self.costs))) <= least:
                return sweep + 1
        return most

    def forget(self, most_age: int) -> None:
        """Drop planes that have had no mass for so many calls of this; where many are gone, work ``w`` out anew."""
        needed = compact(self._layout, self._slots, self.masses, self._losses, self._gram, most_age)
        if needed < NEEDED * self._used:
            self.refresh(needed)

    def refresh(self, needed: int | None = None) -> None:
        """Weights and dual from masses, without what rounding has added up to; the store without what is not needed."""
        size = self._used if needed is None else needed
        columns, values = np.empty(size, np.int32), np.empty(size)
        gain = refresh(
            self._layout, self._slots, self.masses, self._losses, self._columns, self._values, columns, values, self.w
        )
        self._columns, self._values, self._used = columns, values, size
        if self._restraint is not None:
            self._prices = self._restraint.prices(self.w)
            self.w += self._prices
        self.dual = gain - 0.5 * float(self.w @ self.w)

    def state(self) -> dict[str, Any]:
        """All there is, as arrays, to go on from."""
        return {
            "layout": self._layout, "slots": self._slots, "losses": self._losses, "masses": self.masses,
            "gram": self._gram, "columns": self._columns[: self._used], "values": self._values[: self._used],
            "costs": self.costs,
        }  # fmt: skip

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from there; an error where it is of other examples."""
        if not np.array_equal(state["costs"], self.costs):
            raise ModelError("the checkpoint is of other examples, or of another C: remove it")
        names = ("layout", "slots", "losses", "masses", "gram", "columns", "values")
        layout, slots, self._losses, self.masses, self._gram, self._columns, self._values = (
            state[name].copy() for name in names
        )
        self._layout, self._slots, self._used = layout.reshape(4, -1), slots.reshape(3, -1), len(self._values)
        self.refresh()

    def _room(self, blocks: IntArray, n_values: int) -> None:
        """An empty slot for each of some blocks, and room for so many features, twice as much as there was."""
        if self._used + n_values > len(self._values):
            more = max(self._used + n_values, 2 * self._used)
            columns, values = np.zeros(more, np.int32), np.zeros(more)
            columns[: self._used], values[: self._used] = self._columns[: self._used], self._values[: self._used]
            self._columns, self._values = columns, values
        counts, rooms = self._layout[0], self._layout[1]
        if (counts[blocks] < rooms[blocks]).all():
            return
        # All that are nearly full, so that this is seldom done.
        layout = self._layout.copy()
        layout[1] = np.where(4 * counts >= 3 * rooms, 2 * rooms, rooms)
        layout[2] = np.cumsum(layout[1]) - layout[1]
        layout[3] = np.cumsum(layout[1] ** 2) - layout[1] ** 2
        slots, masses, losses = (
            np.zeros((3, int(layout[1].sum())), np.int64), np.zeros(layout[1].sum()), np.zeros(layout[1].sum())
        )  # fmt: skip
        gram = np.zeros(int((layout[1] ** 2).sum()))
        moved(layout, self._layout, slots, self._slots, masses, self.masses, losses, self._losses, gram, self._gram)
        self._layout, self._slots, self.masses, self._losses, self._gram = layout, slots, masses, losses, gram
