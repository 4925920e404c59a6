"""Sequential message passing on rectangular lattices, found from the structure by itself."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from markovfield.arrays import FloatArray, IntArray, offsets_of
from markovfield.factors.remembered import remembered
from markovfield.factors.structure import Structure
from markovfield.inference.core.decodings import Decoding
from markovfield.inference.core.running import Running
from markovfield.inference.local_search.incumbent import Incumbent
from markovfield.inference.problem.pairwise import pairwise as pairs_of
from markovfield.inference.problem.pairwise import unary_scores
from markovfield.inference.problem.problem import Problem
from markovfield.inference.trws.lattice_kernel import SAME, STEPS, TABLE, lattice_pass, lattice_round
from markovfield.inference.trws.passes_kernel import PairTables
from markovfield.inference.trws.plan import SequentialPlan, sequential_plan

__all__ = ["LatticeMessages", "find_diagonals"]

# Numbers of messages that one call of the kernel renews.
CHUNK = 2**23
# A table counts as falling by equal steps when no cell is farther off, relative to its largest.
SAME_CELL = 1e-14


@dataclass(frozen=True, eq=False)
class Diagonals:
    """A rectangle of variables row by row, with an edge between all neighbours, cut into diagonals.

    Attributes
    ----------
    starts
        ``int64``: variables before each diagonal.
    place
        ``int64[n]``: where each variable is when they are taken diagonal by diagonal.
    edges
        Two of ``int64``: the edges across and down, those of the plan, and the place of their left or upper end.
    """

    height: int
    width: int
    n_states: int
    starts: IntArray
    place: IntArray
    edges: tuple[tuple[IntArray, IntArray], tuple[IntArray, IntArray]]


@remembered
def find_diagonals(s: Structure) -> Diagonals | None:
    """Whether the variables are a rectangle, two by two or more, all with as many states; kept with the structure."""
    plan = sequential_plan(s)
    n, at = s.n_variables, plan.layout
    m = len(at.pair_table)
    if n < 4 or m < n or (at.pair_table < 0).any() or (s.cardinalities != s.cardinalities[0]).any():
        return None
    low, high = at.scopes[0::2], at.scopes[1::2]
    width = pairs_of(s).width
    if not width or m != (n // width) * (width - 1) + (n // width - 1) * width:
        return None
    height = n // width
    below = high - low == width
    across = ~below
    row, column = np.arange(n) // width, np.arange(n) % width
    diagonal = row + column
    starts = offsets_of(np.bincount(diagonal))
    place = starts[diagonal] + row - np.maximum(0, diagonal - width + 1)
    sides = [(np.flatnonzero(which), place[low[which]]) for which in (across, below)]
    return Diagonals(height, width, int(s.cardinalities[0]), starts, place, (sides[0], sides[1]))


class LatticeMessages:
    """Messages on a lattice, with the same ways as `SequentialMessages`."""

    def __init__(self, problem: Problem, at: Diagonals, edges: list[Any], init: Any) -> None:
        self.problem, self.at = problem, at
        unary, self.constant = unary_scores(problem)
        k, n = at.n_states, len(at.place)
        lengths = np.diff(at.starts)
        diagonal = np.repeat(np.arange(len(lengths)), lengths)
        lane = np.arange(n) - at.starts[diagonal]
        # Where state 0 of each place is; its other states are the diagonal's length apart.
        first = k * at.starts[diagonal] + lane
        self.cells = (first[:, None] + lengths[diagonal][:, None] * np.arange(k))[at.place]
        self.unary = np.empty(n * k)
        self.unary[self.cells.ravel()] = unary
        self.kinds = np.array([kind for kind, *_ in edges])
        self.steps, self.drops = np.zeros((2, n)), np.zeros((2, n))
        self.tables, self.floors = np.zeros((2, k, k)), np.zeros(2)
        for axis, (kind, step, drop, table) in enumerate(edges):
            place = at.edges[axis][1]
            self.steps[axis, place], self.drops[axis, place] = step, drop
            if kind == TABLE:
                self.tables[axis], self.floors[axis] = table, table.min()
            else:
                self.constant += float(table.sum())
        self.messages = np.zeros((2, n * k))
        state = init._state if isinstance(init, Decoding) else None
        if isinstance(state, np.ndarray) and state.shape == self.messages.shape:
            self.messages[:] = state
        self.sums = np.zeros(len(lengths))
        self.backwards = False
        self.value = self.bound = np.inf

    @classmethod
    def fit(
        cls, problem: Problem, plan: SequentialPlan, tables: PairTables, init: Any = None
    ) -> LatticeMessages | None:
        """For a lattice whose edges fall by equal steps, or are multiples of one table along each axis; else None."""
        at = find_diagonals(problem.structure)
        if at is None:
            return None
        edges = [_edges(plan.layout.pair_table[which], tables, at.n_states) for which, _ in at.edges]
        return None if None in [e if e is None else 0 for e in edges] else cls(problem, at, edges, init)

    def run(self, running: Running, best: Incumbent) -> None:
        """One pass, forwards and backwards in turn, gives a bound (``value``); ``bound`` is the lowest so far."""
        at = self.at
        reach = max(1, CHUNK // (2 * at.n_states * min(at.height, at.width)))
        for begin in range(0, len(self.sums), reach):
            if begin:
                running.check(best.score, self.bound)
            lattice_pass(
                at.height, at.width, at.starts, self.unary, self.messages, self.kinds, self.steps, self.drops,
                self.tables, self.floors, np.bool_(self.backwards), begin, min(begin + reach, len(self.sums)),
                self.sums,
            )  # fmt: skip
        self.value = float(self.sums.sum()) + self.constant
        self.bound = min(self.bound, self.value)
        self.backwards = not self.backwards

    def both_ways(self, rows: IntArray, running: Running, best: Incumbent) -> npt.NDArray[np.float32]:
        """One more pass: ``float32[2 m, K]``, what all edges say to both of their variables.

        What edge e of the plan says to its lower variable is row ``rows[2 e]``, to its higher one row
        ``rows[2 e + 1]``.
        """
        at, k = self.at, self.at.n_states
        out, by_place = np.empty((len(rows), k), np.float32), np.empty((len(at.place), k), np.float32)
        for more in (False, True):
            if more:
                self.run(running, best)
            # The last pass was the other way than the one to come; forwards, it spoke to the higher variables.
            side = int(self.backwards)
            for (edges, place), messages in zip(at.edges, self.messages, strict=True):
                for low, high in pairwise(at.starts.tolist()):
                    by_place[low:high] = messages[k * low : k * high].reshape(k, high - low).T
                out[rows[2 * edges + side]] = by_place[place]
        return out

    def rounded(self) -> IntArray:
        """States chosen one after the other against the direction of the last pass."""
        at = self.at
        chosen = np.zeros(len(at.place), np.int64)
        lattice_round(
            at.height, at.width, at.starts, self.unary, self.messages[0], self.messages[1], self.kinds, self.steps,
            self.drops, self.tables, np.bool_(not self.backwards), chosen,
        )  # fmt: skip
        return chosen

    def incoming(self) -> FloatArray:
        """Scores of all states by themselves."""
        return self.unary[self.cells.ravel()]


def _edges(which: IntArray, tables: PairTables, k: int) -> tuple[int, Any, Any, FloatArray] | None:
    """The kind of all edges of an axis, with steps, drops and constants, or one table; None where they have none."""
    distinct, inverse = np.unique(which, return_inverse=True)
    cells = tables.cells[(tables.starts[distinct][:, None] + np.arange(k * k))].reshape(len(distinct), k, k)
    high, low = cells[:, 0, 0], cells.min(axis=(1, 2))
    with np.errstate(invalid="ignore"):
        step = high - cells[:, 0, 1]
    if np.isfinite(low).all() and (step >= 0).all():
        apart = np.abs(np.arange(k)[:, None] - np.arange(k))
        wanted = np.maximum(high[:, None, None] - step[:, None, None] * apart, low[:, None, None])
        room = SAME_CELL * (1.0 + np.abs(cells).max(axis=(1, 2)))
        if (np.abs(cells - wanted).max(axis=(1, 2)) <= room).all():
            drop = high - low
            kind = SAME if (step >= drop).all() else STEPS
            return kind, step[inverse], drop[inverse], high[inverse]
    # One table, or the same times numbers of the edges: the largest of them times at most one.
    largest = int(np.argmax(np.abs(cells).max(axis=(1, 2))))
    table, spread = cells[largest], np.abs(cells).max(axis=(1, 2))
    if len(distinct) == 1:
        return TABLE, 0.0, 1.0, table
    share = spread / spread[largest] if spread[largest] > 0 else np.ones(len(distinct))
    if not np.isfinite(cells).all() or np.abs(cells - share[:, None, None] * table).max() > SAME_CELL * spread[largest]:
        return None
    return TABLE, 0.0, share[inverse], table
