"""The states that moves change, and the networks that find the moves."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from markovfield.arrays import IntArray
from markovfield.inference.core.running import Running
from markovfield.inference.graph_cuts.flow_networks import FlowGraph, FlowGrid
from markovfield.inference.graph_cuts.grid_flow_kernel import CELL, CLOSED, EXCESS, LABEL
from markovfield.inference.graph_cuts.max_flow_kernel import lay_arcs
from markovfield.inference.graph_cuts.move_messages_kernel import foretell, sweep
from markovfield.inference.graph_cuts.moves_kernel import (
    choosers,
    expansion,
    gain,
    hopeful,
    refresh,
    repair,
    swap,
    taken,
)
from markovfield.inference.problem.pairs import PairProblem
from markovfield.inference.problem.pairwise import pairwise

__all__ = ["Moves"]

# A gain below this, relative to the numbers it is the difference of, is rounding.
ROUNDING = 1e-12
# Passes of messages forwards and backwards before the first move. Chosen on thirty random images: more lower the cost
# by little, and fewer save little of the time.
SWEEPS = 6
# Numbers that networks kept for all states, and messages, may have: half a gigabyte, and a quarter.
MOST_KEPT, MOST_MESSAGES = 2**26, 2**26
# One variable in so many may be in excess for its surroundings to be repaired instead of the whole network solved.
FEW = 32
# One variable in so many may have changed, or have a neighbour that has, for a network to be brought up to date.
CHANGED = 4
# Cells of tables that messages go through between two looks at the clock.
CELLS = 100_000_000
# Flows that messages foretell are rounded to this many binary digits of the largest score.
DIGITS = 20
# Integer scores up to this have too few digits for integer flows.
COARSE = 16.0


class Moves:
    """The present states and their score, with the best expansion or swap from there.

    Parameters
    ----------
    pairs
        The problem.
    states
        Where to start.
    keep
        Whether to keep a network for each state: for repeated expansions. It takes place only where all pairs are
        finite and there is memory for it.

    Examples
    --------
    >>> import markovfield as mf
    >>> from markovfield.inference.core.evidence import Evidence
    >>> from markovfield.inference.problem.pairs import pair_problem
    >>> graph = mf.Potts((3, 3), n_states=3, coupling=1.0).compile()
    >>> pairs = pair_problem("alpha_expansion", graph, Evidence.parse(graph.structure, None), shrink=False)
    >>> moves = Moves(pairs, np.arange(9) % 3, keep=True)
    >>> moves.expand(2, Running()), moves.states.tolist(), moves.expand(1, Running())
    (True, [2, 2, 2, 2, 2, 2, 2, 2, 2], False)
    """

    def __init__(self, pairs: PairProblem, states: IntArray, *, keep: bool) -> None:
        self.pairs = pairs
        self.states = np.array(states, np.int64)
        self.score = pairs.score(self.states)
        self._moved = self.states.copy()
        n, most = pairs.unary.shape
        low, high = pairs.low, pairs.high
        self._lay_network(n, low, high)
        net = self._network
        self._unary = pairs.unary
        self._tables = (pairs.pool, low, high, pairs.base, pairs.low_stride, pairs.high_stride)
        self._finite = bool(np.isfinite(pairs.pool).all())
        sizes = np.abs(pairs.unary[np.isfinite(pairs.unary)])
        self._scale = max(float(sizes.max(initial=0.0)), float(np.abs(pairs.pool).max(initial=0.0)))
        self._keep = keep and self._finite and most * (len(net.capacity) + len(net.excess)) <= MOST_KEPT
        # The last one is that of swaps.
        rows = most + 1 if self._keep else 1
        self._capacity, self._excess = np.zeros((rows, len(net.capacity))), np.zeros((rows, len(net.excess)))
        # When each variable last changed, and after which move a network, or a pair's choice, is that it has seen.
        self._count, self._stamp = 0, np.zeros(n, np.int64)
        self._since = np.full((most, most), -1)
        self._mark, self._now = np.zeros(n, np.int64), 0
        self._all = np.arange(n, dtype=np.int32)
        self._active, self._stale = self._all.copy(), self._all[:0]
        self._lists = np.empty((4, n), np.int32)
        self.messages, self._grain = np.zeros((0, most), np.float32), 0.0

    def _lay_network(self, n: int, low: IntArray, high: IntArray) -> None:
        width = pairwise(self.pairs.problem.structure).width
        beside = high - low == 1
        if width and np.bincount(2 * low + beside).max(initial=0) <= 1:
            self._network: FlowGrid | FlowGraph = FlowGrid(n // width, width)
            rows, columns = np.divmod(np.arange(n), width)
            self._node = (rows + 1) * (width + 2) + columns + 1
            arcs = np.where(beside, 0, 2)
            self._arcs = np.stack([4 * self._node[low] + arcs, 4 * self._node[high] + arcs + 1], axis=1).ravel()
        else:
            self._network = FlowGraph(n, low, high)
            self._node, self._arcs = np.arange(n), self._network.arcs
        m = len(low)
        self._first, self._incoming = np.empty(n + 1, np.int64), np.empty(2 * m, np.int64)
        self._other, self._twin, self._pair = (np.empty(2 * m, np.int32) for _ in range(3))
        lay_arcs(n, low, high, self._first, self._other, self._twin, self._incoming)
        self._pair[self._incoming] = np.repeat(np.arange(m, dtype=np.int32), 2)
        self._out, self._back = np.empty(2 * m, np.int64), np.empty(2 * m, np.int64)
        self._out[self._incoming] = self._arcs
        self._back[self._incoming] = self._arcs.reshape(-1, 2)[:, ::-1].ravel()

    @property
    def foretells(self) -> bool:
        """Whether messages can foretell flows: all pairs are finite, and there is memory for them."""
        return self._finite and 0 < self._pair.size * self._unary.shape[1] <= MOST_MESSAGES

    def foresee(self, running: Running) -> None:
        """Start from what messages say, if that is better; they also foretell flows."""
        n, most = self._unary.shape
        if not self.foretells:
            return
        pool, low, _, base, p, q = self._tables
        sizes = self.pairs.problem.structure.cardinalities
        messages = np.zeros((len(self._pair), most), np.float32)
        room = np.empty((2, most + 3), np.float32), np.empty((most + 3, most), np.float32)
        states = np.zeros(n, np.int64)
        entries = (self._first, self._pair, self._other, self._twin)
        step = max(1, CELLS // (most * most + 64))
        for i in range(2 * SWEEPS + 1):
            backward, decide = np.bool_(i % 2), np.bool_(i == 2 * SWEEPS)
            for begin in range(0, n, step):
                running.check(self.score)
                end = min(begin + step, n)
                sweep(
                    backward, decide, begin, end, self._unary, sizes, pool, low, base, p, q, *entries, messages, *room,
                    states,
                )  # fmt: skip
        self.foretell(messages)
        self.offer(states)

    def foretell(self, messages: npt.NDArray[np.float32]) -> None:
        """Have flows foretold by messages ``[2 m, most states]``: of each variable in turn, those of its pairs."""
        self.messages, self._grain = messages, self._grain_of_flows()

    @property
    def incoming(self) -> IntArray:
        """``int64[2 m]``: which message each pair has for its lower and for its higher variable."""
        return self._incoming

    def offer(self, states: IntArray) -> bool:
        """Go over to an assignment that others found, if it is better; whether it is."""
        score = self.pairs.score(states)
        if not score > self.score:
            return False
        changed = states != self.states
        self._count += 1
        self._stamp[changed] = self._count
        self.states[:] = self._moved[:] = states
        self.score = score
        return True

    def _grain_of_flows(self) -> float:
        """What flows that are foretold are multiples of: integer scores keep integer flows, which are faster."""
        if self._scale == 0.0:
            return 0.0
        whole = self._scale >= COARSE and all(
            bool((np.rint(x) == x).all()) for x in (self.pairs.pool, self._unary[np.isfinite(self._unary)])
        )
        return 1.0 if whole else float(2.0 ** (np.floor(np.log2(self._scale)) - DIGITS))

    def expand(self, alpha: int, running: Running) -> bool:
        """Make the best expansion of a state; whether it gains."""
        running.check(self.score)
        self._count += 1
        net, kept = self._network, self._keep and self._since[alpha, alpha] >= 0
        row = alpha if self._keep else 0
        net.capacity, net.excess = self._capacity[row], self._excess[row]
        self._stale = net.nodes
        found = self._update(alpha) if kept else -1
        # This move's own changes are still to be made in it.
        self._since[alpha, alpha] = self._count - 1
        if found < 0:
            if not kept:
                net.capacity.fill(0.0)
                if self._grain:
                    incoming = (self._incoming, self.messages, self._grain)
                    foretell(alpha, self.states, self._unary, *self._tables, *incoming, self._arcs, net.capacity)
            expansion(alpha, self.states, self._unary, *self._tables, self._node, self._arcs, net.capacity, net.excess)
            found = hopeful(self._node, net.excess, ROUNDING * self._scale if self._finite else 0.0, self._active)
        if found and self._finite and found * FEW <= len(self.states):
            count = self._mend(found)
            if count >= 0:
                active = self._lists[3, :count]
                self._moved[active] = alpha
                return self._accept(active)
        if found:
            net.run(running, self.score)
            self._keep_flow()
            closed, labels = net.state[CLOSED], net.work[LABEL]
            taken(labels, self._node, closed, -1, alpha, self._all, self._unary, self.states, self._moved)
            return self._accept(self._all)
        return False

    def _keep_flow(self) -> None:
        """Leave in the network what the flow has left of it; other graphs than lattices do so by themselves."""
        net = self._network
        if self._keep and isinstance(net, FlowGrid):
            cells = net.cell.reshape(-1, CELL)
            net.capacity.reshape(-1, 4)[:] = cells[:, :4]
            net.excess[:] = cells[:, EXCESS]

    def _update(self, alpha: int) -> int:
        """Bring a kept network up to date: how many variables gain by moving alone; -1 where too much has changed."""
        net, (pool, low, _, base, p, q) = self._network, self._tables
        self._now += 1
        found: int = refresh(
            alpha, self._since[alpha, alpha], self._stamp, len(self.states) // CHANGED, self.states, self._unary, pool,
            low, base, p, q, self._first, self._pair, self._other, self._out, self._back, self._node, net.capacity,
            net.excess, self._mark, self._now, ROUNDING, self._active,
        )  # fmt: skip
        return found

    def _mend(self, found: int) -> int:
        """Find the move from the variables that gain by it alone: how many move; -1 where that takes too long."""
        net = self._network
        self._now += 1
        count: int
        count, self._now = repair(
            self._active[:found], self._first, self._other, self._out, self._back, self._node, net.capacity, net.excess,
            self._mark, self._now, len(self.states), *self._lists,
        )  # fmt: skip
        return count

    def swap(self, alpha: int, beta: int, running: Running) -> bool:
        """Let the variables in two states choose anew between them; whether that gains."""
        running.check(self.score)
        self._count += 1
        self._now += 1
        net, since = self._network, self._since[alpha, beta]
        count = choosers(
            alpha, beta, since, self._stamp, self.states, self._unary, self._first, self._other, self._mark, self._now,
            self._active,
        )  # fmt: skip
        active = self._active[:count]
        self._since[alpha, beta] = self._count
        if not count:
            return False
        net.capacity, net.excess = self._capacity[-1], self._excess[-1]
        net.clear(self._stale)
        submodular = swap(
            alpha, beta, active, self._first, self._pair, self.states, self._unary, *self._tables, self._incoming,
            self.messages, self._grain, self._node, self._arcs, net.capacity, net.excess,
        )  # fmt: skip
        if not submodular:
            # What was made dearer depends on the states: after a move there may be another.
            self._since[alpha, beta] = self._count - 1
        nodes = net.nodes[active]
        self._stale = nodes
        net.run(running, self.score, nodes)
        closed, labels = net.state[CLOSED], net.work[LABEL]
        taken(labels, self._node, closed, alpha, beta, active, self._unary, self.states, self._moved)
        return self._accept(active)

    def _accept(self, active: npt.NDArray[np.int32]) -> bool:
        """Move some variables if that gains."""
        changed = active[self._moved[active] != self.states[active]]
        if not len(changed):
            return False
        better, size = gain(changed, self._first, self._pair, self.states, self._moved, self._unary, *self._tables)
        if better > ROUNDING * size:
            self._stamp[changed] = self._count
            self.states[changed] = self._moved[changed]
            self.score += better
            return True
        self._moved[changed] = self.states[changed]
        return False
