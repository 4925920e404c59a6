"""Networks whose maximum flow is wanted: any sparse graph, and rectangles of which the kernel knows the neighbours."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from markovfield.arrays import FloatArray, IntArray
from markovfield.inference.core.running import Running
from markovfield.inference.graph_cuts.grid_flow_kernel import (
    CELL,
    CLOSED,
    LABEL,
    LIST_ROWS,
    NO_PARENT,
    PARENT,
    PENDING,
    PENDING_COUNT,
    STATES,
    STOPPED,
    TREE,
    clear_grid,
    grow_grid,
    join,
    load,
    plant,
)
from markovfield.inference.graph_cuts.max_flow_kernel import (
    ARC_TO_PARENT,
    BUCKET,
    ENDLESS,
    GRAPH_ROWS,
    NO_ARC,
    clear_graph,
    grow_graph,
    lay_arcs,
    plant_graph,
)

__all__ = ["FlowGraph", "FlowGrid", "Network"]

# Work of one call of a kernel, about a tenth of a second.
BUDGET = 10_000_000
# Into how many slabs of rows a rectangle is cut, one number after the other; whatever the number of threads, so that
# answers do not depend on it. Fewer where slabs would be lower than SLAB_ROWS, one for less than SLAB_NODES.
SLABS = (8, 2, 1)
SLAB_ROWS, SLAB_NODES = 16, 40_000
# Nodes whose numbers are looked at first: where they are not whole, cells are floats from the start.
LOOKED_AT = 64
# At which sum of both trees' levels, relative to a slab's height, to go on in fewer slabs.
REACHES = 1.5


class Network(Protocol):
    """Nodes between a source and a sink. Positive ``excess`` comes from the source, negative goes to the sink.

    Attributes
    ----------
    flow
        What has gone from the source to the sink so far: never more than any cut lets through.
    done
        Whether no path is left.
    """

    excess: FloatArray
    capacity: FloatArray
    flow: float
    state: IntArray
    workers: Running = Running()

    @property
    def done(self) -> bool:
        """Whether the flow is the largest there is."""
        return bool(self.state[CLOSED] != 0)

    @property
    def endless(self) -> bool:
        """Whether every cut is infinite."""
        return bool(self.state[CLOSED] == ENDLESS)

    nodes: npt.NDArray[np.int32]

    @abstractmethod
    def start(self, nodes: npt.NDArray[np.int32]) -> None:
        """Begin with the present capacities and no trees."""

    @abstractmethod
    def clear(self, nodes: npt.NDArray[np.int32]) -> None:
        """Take some nodes out again: no excess, no capacities, no place in a tree."""

    @abstractmethod
    def step(self) -> float:
        """Go on for about a tenth of a second; the flow that this added."""

    @abstractmethod
    def labels(self) -> npt.NDArray[np.int32]:
        """Of every node: positive in the source's tree, negative in the sink's, zero in neither."""

    def run(
        self,
        running: Running | None = None,
        value: float | None = None,
        nodes: npt.NDArray[np.int32] | None = None,
    ) -> float:
        """Find the maximum flow; stopped on the way, `flow` tells how much has gone so far.

        ``value`` is what a callback is told of the work that this is part of. Nodes beside ``nodes``, where these are
        given, must be clear.
        """
        self.workers = Running(None if running is None else running.n_jobs)
        self.start(self.nodes if nodes is None else nodes)
        while not self.done:
            if running is not None:
                running.check(value)
            self.flow += self.step()
        return self.flow

    def source_side(self) -> npt.NDArray[np.bool_]:
        """``bool[n]``: the nodes on the source's side of a minimum cut; of some cut where the work is not done."""
        side: npt.NDArray[np.bool_] = self.labels() >= 0 if self.state[CLOSED] < 0 else self.labels() > 0
        return side


class FlowGraph(Network):
    """Any sparse graph, a pair of opposite arcs between each of two nodes.

    Attributes
    ----------
    arcs
        ``int64[2 m]``: where in ``capacity`` the arcs of pair ``e`` are, there (``2 e``) and back (``2 e + 1``).

    Examples
    --------
    >>> net = FlowGraph(3, np.array([0, 1]), np.array([1, 2]))
    >>> net.capacity[net.arcs] = [2.0, 0.0, 5.0, 0.0]
    >>> net.excess[:] = [4.0, 0.0, -3.0]
    >>> net.run(), net.source_side().tolist()
    (2.0, [True, False, False])
    """

    def __init__(self, n: int, tails: IntArray, heads: IntArray) -> None:
        m = len(tails)
        self.first = np.empty(n + 1, np.int64)
        self.head, self.sister = np.empty(2 * m, np.int32), np.empty(2 * m, np.int32)
        self.arcs = np.empty(2 * m, np.int64)
        lay_arcs(n, tails, heads, self.first, self.head, self.sister, self.arcs)
        self.capacity, self.excess = np.zeros(2 * m), np.zeros(n)
        self.work = np.empty((GRAPH_ROWS, n), np.int32)
        self.work[[LABEL, BUCKET, ARC_TO_PARENT]] = np.array([0, -1, NO_ARC], np.int32)[:, None]
        self.nodes = np.arange(n, dtype=np.int32)
        self.state = np.zeros(8, np.int64)
        self.flow = 0.0

    def start(self, nodes: npt.NDArray[np.int32]) -> None:
        """Begin with the present capacities and no trees."""
        self.flow = 0.0
        plant_graph(nodes, self.excess, self.work, self.state)

    def step(self) -> float:
        """Go on for about a tenth of a second; the flow that this added."""
        return float(
            grow_graph(
                self.first, self.head, self.sister, self.capacity, self.excess, self.work, self.state, BUDGET
            )
        )  # fmt: skip

    def clear(self, nodes: npt.NDArray[np.int32]) -> None:
        """Take some nodes out again: no excess, no capacities, no place in a tree."""
        clear_graph(nodes, self.first, self.capacity, self.excess, self.work)

    def labels(self) -> npt.NDArray[np.int32]:
        """Of every node: positive in the source's tree, negative in the sink's, zero in neither."""
        return self.work[LABEL]


class FlowGrid(Network):
    """A rectangle of nodes row by row, each joined to its four neighbours.

    ``capacity`` and ``excess`` have a rim of nodes around the rectangle, which must stay zero. What is left of them is
    kept apart, in 32 bits where all are integers, so that they stay as they are.

    Slabs of rows are worked on side by side with nothing flowing between them, as long as paths are shorter than a
    slab is high. Slabs in which no path is left are joined by twos, trees and all; where some path is left, all trees
    are planted anew in fewer slabs, and at last in one.

    Parameters
    ----------
    slabs
        How many slabs to have, one number after the other: falling powers of two, the last 1. By default as many as
        the size calls for.

    Attributes
    ----------
    planes
        ``float64[height, width, 4]``, a view of ``capacity``: to the right, to the left, down, up.
    excess_plane
        ``float64[height, width]``, a view of ``excess``.

    Examples
    --------
    >>> net = FlowGrid(1, 3)
    >>> net.planes[0, :2, 0] = 2.0, 5.0
    >>> net.excess_plane[0] = 4.0, 0.0, -3.0
    >>> net.run(), net.source_side().tolist()
    (2.0, [True, False, False])
    """

    def __init__(self, height: int, width: int, slabs: tuple[int, ...] | None = None) -> None:
        self.shape = (height, width)
        self.steps = CELL * np.array([1, -1, width + 2, -width - 2])
        n = (height + 2) * (width + 2)
        self.capacity, self.excess = np.zeros(4 * n), np.zeros(n)
        self.planes = self.capacity.reshape(height + 2, width + 2, 4)[1:-1, 1:-1]
        self.excess_plane = self.excess.reshape(height + 2, width + 2)[1:-1, 1:-1]
        self.cell: npt.NDArray[Any] = _cells(n, np.int32)
        self.lists, self.bucket = np.empty(LIST_ROWS * n, np.int32), np.full(n, -1, np.int32)
        self.nodes = np.arange(n, dtype=np.int32).reshape(height + 2, width + 2)[1:-1, 1:-1].ravel()
        self.state = np.zeros(STATES, np.int64)
        self.flow = 0.0
        rows, self.least = (SLAB_ROWS, SLAB_NODES) if slabs is None else (1, 0)
        large = height * width >= self.least
        self.slabs = tuple(k for k in slabs or SLABS if k == 1 or (large and height >= k * rows))
        self.stage = 0
        self.parts: list[_Part] = []

    def start(self, nodes: npt.NDArray[np.int32]) -> None:
        """Begin with the present capacities, what neighbours can exchange, and no trees."""
        self.state[:] = 0
        self.active, self.stage = nodes, 0 if len(nodes) >= self.least else len(self.slabs) - 1
        self.parts = self._cut()
        few = self.excess[nodes[:LOOKED_AT]]
        if self.cell.dtype == np.int32 and not np.array_equal(few, np.rint(few)):
            self.cell = _cells(len(self.excess), np.float64)  # seen at once: nothing is loaded twice
        if not self._load():
            self.cell = _cells(len(self.excess), np.float64)
            self._load()

    def _cut(self) -> list[_Part]:
        """The slabs of the present stage."""
        height, count = self.shape[0], self.slabs[self.stage]
        return [self._part(height * i // count, height * (i + 1) // count) for i in range(count)]

    def _part(self, top: int, bottom: int) -> _Part:
        """Rows ``top`` to ``bottom``, with lists of their own."""
        wide = self.shape[1] + 2
        low, high = (top + 1) * wide, (bottom + 1) * wide
        first, last = np.searchsorted(self.active, [low, high])
        work = self.lists[LIST_ROWS * low : LIST_ROWS * high].reshape(LIST_ROWS, high - low)
        return _Part(top, bottom, self.active[first:last], work, self.bucket[low:high], np.zeros(STATES, np.int64))

    def _load(self) -> bool:
        """Fill the cells, let flow what neighbours can exchange, and plant; whether all numbers fit."""
        wide = self.shape[1] + 2

        def task(part: _Part) -> tuple[float, bool]:
            low, high = CELL * (part.top + 1) * wide, CELL * (part.bottom + 1) * wide
            found: tuple[float, bool] = load(
                part.nodes, wide, low, high, self._reach(part), self.steps, self.capacity, self.excess, self.cell,
                part.work, part.state,
            )  # fmt: skip
            return found

        found = self._side_by_side(task)
        self.flow = float(sum(flow for flow, _ in found))
        return self.cell.dtype == np.float64 or not any(wrong for _, wrong in found)

    def _reach(self, part: _Part) -> int:
        """At which sum of levels to stop."""
        return int(REACHES * (part.bottom - part.top)) if len(self.parts) > 1 else len(self.excess) + 2

    def _side_by_side(self, task: Callable[[_Part], Any]) -> list[Any]:
        """Do something for every part, on threads."""
        found: list[Any] = [None] * len(self.parts)

        def one(k: int) -> int:
            found[k] = task(self.parts[k])
            return 0

        self.workers.side_by_side([partial(one, k) for k in range(len(self.parts))])
        return found

    def step(self) -> float:
        """Go on for about a tenth of a second; the flow that this added."""

        def task(part: _Part) -> float:
            if part.state[CLOSED]:
                return 0.0
            return float(grow_grid(self.steps, self.cell, part.work, part.bucket, part.state, BUDGET))

        added = float(sum(self._side_by_side(task)))
        closed = [int(part.state[CLOSED]) for part in self.parts]
        if all(closed):
            if len(closed) == 1:
                self.state[CLOSED] = closed[0]
            elif STOPPED in closed:
                self._fewer()
            else:
                self._join()
        return added

    def _open(self, part: _Part) -> None:
        """Let flow cross the upper border of a part."""
        height, width = self.shape
        cells, given = (x.reshape(height + 2, width + 2, -1) for x in (self.cell, self.capacity))
        cells[part.top, :, 2] = given[part.top, :, 2]
        cells[part.top + 1, :, 3] = given[part.top + 1, :, 3]

    def _fewer(self) -> None:
        """Plant all trees anew in fewer slabs."""
        self.stage += 1
        before, self.parts = self.parts, self._cut()
        tops = {part.top for part in self.parts}
        for part in before:
            if part.top not in tops:
                self._open(part)
        self._side_by_side(lambda part: plant(part.nodes, self._reach(part), self.cell, part.work, part.state))

    def _join(self) -> None:
        """Join parts by twos, with their trees."""
        joined: list[_Part] = []
        for upper, lower in zip(self.parts[::2], self.parts[1::2], strict=True):
            pending = [
                [part.work[PENDING + side, : part.state[PENDING_COUNT + side]].copy() for part in (upper, lower)]
                for side in range(2)
            ]
            part = self._part(upper.top, lower.bottom)
            for side in range(2):
                both = np.concatenate(pending[side])
                part.work[PENDING + side, : len(both)] = both
                part.state[PENDING_COUNT + side] = len(both)
            self._open(lower)
            border = self.nodes[(lower.top - 1) * self.shape[1] : lower.top * self.shape[1]]
            join(border, self.steps, self.cell, part.work, part.state)
            joined.append(part)
        self.parts = joined

    def clear(self, nodes: npt.NDArray[np.int32]) -> None:
        """Take some nodes out again: no excess, no capacities, no place in a tree."""
        clear_grid(nodes, self.capacity, self.excess, self.cell)

    @property
    def work(self) -> npt.NDArray[np.int32]:
        """``int32[1, n]``: the labels, rim included, in the same place as those of a `FlowGraph`."""
        return self.cell[TREE::CELL].astype(np.int32)[None]

    def labels(self) -> npt.NDArray[np.int32]:
        """Of every node: positive in the source's tree, negative in the sink's, zero in neither."""
        height, width = self.shape
        return self.work[LABEL].reshape(height + 2, width + 2)[1:-1, 1:-1].reshape(-1)


@dataclass(eq=False)
class _Part:
    """Rows of a rectangle that are worked on by themselves, with the lists this takes."""

    top: int
    bottom: int
    nodes: npt.NDArray[np.int32]
    work: npt.NDArray[np.int32]
    bucket: npt.NDArray[np.int32]
    state: IntArray


def _cells(n: int, kind: type) -> npt.NDArray[Any]:
    """Clear cells, none of them across two cache lines."""
    size = CELL * n * np.dtype(kind).itemsize
    room = np.zeros(size + 64, np.uint8)
    start = -room.ctypes.data % 64
    cell: npt.NDArray[Any] = room[start : start + size].view(kind)
    cell[PARENT::CELL] = NO_PARENT
    return cell
