"""Messages on rectangular lattices of binary variables, in planes; found from the structure by itself."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt

from markovfield.arrays import FloatArray, IntArray
from markovfield.factors.remembered import remembered
from markovfield.factors.structure import Structure
from markovfield.inference.belief_propagation.lattice_kernel import lattice_chains, lattice_rows
from markovfield.inference.belief_propagation.layout import LoopyGraph, Numbers, Unary, loopy_graph
from markovfield.inference.core.running import Running
from markovfield.inference.problem.pairwise import pairwise

__all__ = ["Lattice", "Planes", "find_lattice", "fits"]

# Below this many variables the planes gain nothing.
SMALLEST = 64
# Ratios of a table's cells, and of a variable's unary potentials, must stay far from overflow in a product of five.
TABLE_SPREAD, UNARY_SPREAD = 50.0, 300.0
# Work of a task, in variables.
ROWS_WORK = 2**14


@dataclass(frozen=True, eq=False)
class Lattice:
    """A rectangle of variables row by row, pairs between neighbours.

    Attributes
    ----------
    edge
        ``int64[4, n]``: the edge on which each variable has messages from the left, the right, above, below; -1 where
        none.
    flipped
        ``bool[m]``: factors whose first axis is the right or lower variable.
    pair
        ``int64[2, n]``: the factor to the right of each variable, and that below it; -1 where none.
    """

    height: int
    width: int
    edge: IntArray
    flipped: npt.NDArray[np.bool_]
    pair: IntArray


@remembered
def find_lattice(s: Structure) -> Lattice | None:
    """Whether all factors of two variables join neighbours of one rectangle; the answer is kept with the structure."""
    g = loopy_graph(s)
    n, m = s.n_variables, len(g.factors)
    if n < SMALLEST or not m or g.n_tables < m or len(g.layout.edge_variable) != 2 * m:
        return None
    if (s.cardinalities != 2).any() or (np.diff(g.layout.factor_offsets) != 2).any():
        return None
    view = pairwise(s)
    low, width, flipped = view.low, view.width, view.turned
    if not width:
        return None
    down = view.high - low == width
    pair = np.full((2, n), -1, np.int64)
    pair[0, low[~down]] = np.flatnonzero(~down)
    pair[1, low[down]] = np.flatnonzero(down)
    if np.count_nonzero(pair >= 0) < m:
        return None  # two factors on one pair
    edge = np.full((4, n), -1, np.int64)
    for axis, step in ((0, 1), (1, width)):
        at = np.flatnonzero(pair[axis] >= 0)
        f = pair[axis, at]
        edge[2 * axis, at + step] = 2 * f + np.where(flipped[f], 0, 1)
        edge[2 * axis + 1, at] = 2 * f + np.where(flipped[f], 1, 0)
    return Lattice(n // width, width, edge, flipped, pair)


class Planes:
    """The messages of a lattice as ratios, two buffers of four planes."""

    def __init__(self, lattice: Lattice, g: LoopyGraph, known: Numbers, unary: Unary) -> None:
        shape = (lattice.height, lattice.width)
        self.lattice = lattice
        logs = np.clip(_difference(unary.log.reshape(-1, 2)), -UNARY_SPREAD, UNARY_SPREAD)
        self.unary = np.exp(logs).reshape(shape)
        first, second = g.layout.table_strides[0::2], g.layout.table_strides[1::2]
        step = np.where(lattice.flipped, second, first)
        stride = np.where(lattice.flipped, first, second)
        self.across = self._tables(0, g.layout.table_offsets, step, stride, known.linear)
        self.down = self._tables(1, g.layout.table_offsets, step, stride, known.linear)
        self.now, self.next = np.ones((4, *shape)), np.ones((4, *shape))
        rows = max(1, -(-ROWS_WORK // lattice.width))
        self.tasks = [(a, min(a + rows, lattice.height)) for a in range(0, lattice.height, rows)]

    def _tables(self, axis: int, base: IntArray, step: IntArray, stride: IntArray, pool: FloatArray) -> FloatArray:
        """Three planes of cells over the first cell; one row of them where all factors read the same table."""
        f = self.lattice.pair[axis]
        there = f >= 0
        whole = there.reshape(self.lattice.height, self.lattice.width)
        inner = whole[:, :-1] if axis == 0 else whole[:-1]
        tied = inner.all() and all(len(np.unique(x[f[there]])) == 1 for x in (base, step, stride))
        at = f[there][:1] if tied else f[there]
        corner = pool[base[at]]
        cells = [pool[base[at] + x] / corner for x in (stride[at], step[at], step[at] + stride[at])]
        if tied:
            return np.repeat(np.array(cells).reshape(3, 1, 1), self.lattice.width, axis=2)
        planes = np.ones((3, len(f)))
        for k, x in enumerate(cells):
            planes[k, there] = x
        return planes.reshape(3, self.lattice.height, self.lattice.width)

    def read(self, messages: FloatArray) -> None:
        """Take over messages that lie edge by edge."""
        for d in range(4):
            there = self.lattice.edge[d] >= 0
            e = self.lattice.edge[d][there]
            plane = self.now[d].reshape(-1)
            plane[there] = messages[2 * e + 1] / messages[2 * e]

    def write(self, messages: FloatArray) -> None:
        """Put the messages back edge by edge, each summing to one."""
        for d in range(4):
            there = self.lattice.edge[d] >= 0
            e = self.lattice.edge[d][there]
            ratio = self.now[d].reshape(-1)[there]
            messages[2 * e] = 1.0 / (1.0 + ratio)
            messages[2 * e + 1] = ratio / (1.0 + ratio)

    def sweep(self, damping: float, maximise: np.bool_, running: Running) -> float:
        """Every message once; how far the one that changed most moved."""
        moved = np.zeros(len(self.tasks))

        def rows(i: int) -> int:
            moved[i] = lattice_rows(
                *self.tasks[i], self.unary, self.across, self.down, self.now, self.next, damping, maximise
            )
            return 0

        running.side_by_side([partial(rows, i) for i in range(len(self.tasks))])
        self.now, self.next = self.next, self.now
        return float(moved.max())

    def sweep_rows(self, upwards: bool, damping: float, maximise: np.bool_, running: Running) -> float:
        """Every message once, row after row, each row a linear chain; how far the one that changed most moved."""
        moved = 0.0
        for a, b in reversed(self.tasks) if upwards else self.tasks:
            running.check()
            tables = (self.unary, self.across, self.down)
            moved = max(moved, lattice_chains(a, b, np.bool_(upwards), *tables, self.now, damping, maximise))
        return moved


def _difference(pairs: FloatArray) -> FloatArray:
    """Second less first entry, of which not both are -inf."""
    with np.errstate(invalid="ignore"):
        return pairs[:, 1] - pairs[:, 0]


def fits(known: Numbers, unary: Unary) -> bool:
    """Whether ratios of these numbers are far enough from overflow; zeros in tables are none."""
    if known.floor > 0.0 or known.widest > TABLE_SPREAD:
        return False
    apart = np.abs(_difference(unary.log.reshape(-1, 2)))
    return bool(((apart <= UNARY_SPREAD) | np.isinf(apart)).all())
