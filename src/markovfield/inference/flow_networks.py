"""Networks whose largest flow is wanted: any sparse graph, and rectangles of which the kernel knows the neighbours."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from markovfield.inference.running import Running
from markovfield.kernels.grid_flow import (
    BUCKET,
    CLOSED,
    FLOW_ROWS,
    LABEL,
    NO_PARENT,
    PARENT,
    clear_grid,
    grow_grid,
    plant,
    push_neighbours,
)
from markovfield.kernels.max_flow import (
    ARC_TO_PARENT,
    ENDLESS,
    GRAPH_ROWS,
    NO_ARC,
    clear_graph,
    grow_graph,
    lay_arcs,
    plant_graph,
)

__all__ = ["FlowGraph", "FlowGrid", "Network", "lattice_width"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
# Work of one call of a kernel, about a tenth of a second.
BUDGET = 10_000_000


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
        """Find the largest flow; stopped on the way, `flow` tells how much has gone so far.

        ``value`` is what a callback is told of the work that this is part of. Nodes beside ``nodes``, where these are
        given, must be clear.
        """
        self.start(self.nodes if nodes is None else nodes)
        while not self.done:
            if running is not None:
                running.check(value)
            self.flow += self.step()
        return self.flow

    def source_side(self) -> npt.NDArray[np.bool_]:
        """``bool[n]``: the nodes on the source's side of a smallest cut; of some cut where the work is not done."""
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

    ``capacity`` and ``excess`` have a rim of nodes around the rectangle, which must stay zero.

    Attributes
    ----------
    planes
        ``float64[height, width, 4]``, a view of ``capacity``: to the right, to the left, down, up.
    own
        ``float64[height, width]``, a view of ``excess``.

    Examples
    --------
    >>> net = FlowGrid(1, 3)
    >>> net.planes[0, :2, 0] = 2.0, 5.0
    >>> net.own[0] = 4.0, 0.0, -3.0
    >>> net.run(), net.source_side().tolist()
    (2.0, [True, False, False])
    """

    def __init__(self, height: int, width: int) -> None:
        self.shape = (height, width)
        self.steps = np.array([1, -1, width + 2, -width - 2])
        n = (height + 2) * (width + 2)
        self.capacity, self.excess = np.zeros(4 * n), np.zeros(n)
        self.planes = self.capacity.reshape(height + 2, width + 2, 4)[1:-1, 1:-1]
        self.own = self.excess.reshape(height + 2, width + 2)[1:-1, 1:-1]
        self.work, self.tags = np.empty((FLOW_ROWS, n), np.int32), np.empty((2, n), np.int8)
        self.work[LABEL], self.work[BUCKET], self.tags[PARENT] = 0, -1, NO_PARENT
        self.nodes = np.arange(n, dtype=np.int32).reshape(height + 2, width + 2)[1:-1, 1:-1].ravel()
        self.state = np.zeros(8, np.int64)
        self.flow = 0.0

    def start(self, nodes: npt.NDArray[np.int32]) -> None:
        """Begin with the present capacities, what neighbours can exchange, and no trees."""
        self.flow = float(push_neighbours(nodes, self.steps, self.capacity, self.excess))
        plant(nodes, self.excess, self.work, self.tags, self.state)

    def step(self) -> float:
        """Go on for about a tenth of a second; the flow that this added."""
        return float(grow_grid(self.steps, self.capacity, self.excess, self.work, self.tags, self.state, BUDGET))

    def clear(self, nodes: npt.NDArray[np.int32]) -> None:
        """Take some nodes out again: no excess, no capacities, no place in a tree."""
        clear_grid(nodes, self.capacity, self.excess, self.work, self.tags)

    def labels(self) -> npt.NDArray[np.int32]:
        """Of every node: positive in the source's tree, negative in the sink's, zero in neither."""
        height, width = self.shape
        return self.work[LABEL].reshape(height + 2, width + 2)[1:-1, 1:-1].reshape(-1)


def lattice_width(n: int, low: npt.NDArray[Any], high: npt.NDArray[Any]) -> int:
    """The width of a rectangle of ``n`` nodes, row by row, in which all pairs ``low < high`` are neighbours; 0 if none.

    Examples
    --------
    >>> lattice_width(6, np.array([0, 1, 0, 2]), np.array([1, 2, 3, 5]))
    3
    """
    if not len(low):
        return 0
    apart = high - low
    width = int(apart.max())
    beside = apart == 1
    if width < 2 or n % width or not (beside | (apart == width)).all() or (low[beside] % width == width - 1).any():
        return 0
    return width
