"""Binary models of pairs as penalties that a cut can pay, with hard zeros as penalties without limit."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from markovfield.arrays import BoolArray, FloatArray, IntArray
from markovfield.inference.graph_cuts.flow_networks import FlowGraph, FlowGrid, Network
from markovfield.inference.graph_cuts.moves_kernel import preferences
from markovfield.inference.problem.pairs import PairProblem
from markovfield.inference.problem.pairwise import lattice_width, pairwise

__all__ = ["Penalties", "penalties_of"]

# A preference for equal or different states below this, relative to the costs it is the difference of, is rounding.
ROUNDING = 1e-13


@dataclass(frozen=True, eq=False)
class Penalties:
    """A constant less penalties of at least zero: the score of every assignment of variables of two states.

    A variable pays ``excess`` in state 0 where that is positive, and ``-excess`` in state 1 where it is negative. A
    pair pays ``first_only`` where its first variable is in state 1 and its second in state 0, and likewise for the
    others. Of `first_only` and `second_only` on one side and `both` and `neither` on the other, only one side is above
    zero: the pair prefers equal states or different ones.

    Attributes
    ----------
    low, high
        ``int64[m]``: the variables of each pair, ``low < high``, no pair twice.
    """

    low: IntArray
    high: IntArray
    excess: FloatArray
    first_only: FloatArray
    second_only: FloatArray
    both: FloatArray
    neither: FloatArray

    @property
    def n_variables(self) -> int:
        """How many variables there are."""
        return len(self.excess)

    @property
    def repels(self) -> BoolArray:
        """Which pairs prefer different states."""
        return (self.both > 0) | (self.neither > 0)

    def penalty(self, states: npt.NDArray[np.int64]) -> float:
        """What an assignment pays."""
        on = states > 0
        unary = np.where(on, np.maximum(-self.excess, 0.0), np.maximum(self.excess, 0.0))
        a, b = on[self.low], on[self.high]
        pair = np.where(
            a, np.where(b, self.both, self.first_only), np.where(b, self.second_only, self.neither)
        )  # fmt: skip
        return float(unary.sum() + pair.sum())

    def flipped(self, flip: BoolArray) -> Penalties:
        """The same model with the two states of some variables exchanged."""
        a, b = flip[self.low], flip[self.high]
        cells = np.stack([self.neither, self.second_only, self.first_only, self.both])
        at = np.arange(len(self.low))
        turned = [cells[k ^ (2 * a + b), at] for k in range(4)]
        return replace(
            self,
            excess=np.where(flip, -self.excess, self.excess),
            neither=turned[0],
            second_only=turned[1],
            first_only=turned[2],
            both=turned[3],
        )

    def network(self) -> Network:
        """The network whose cuts pay what assignments pay; no pair may repel. State 1 is the source's side."""
        width = lattice_width(self.n_variables, self.low, self.high)
        if width and np.isfinite(self.excess).all():
            grid = FlowGrid(self.n_variables // width, width)
            grid.excess_plane[:] = self.excess.reshape(grid.shape)
            beside = self.high - self.low == 1
            for axis, where in ((0, beside), (2, ~beside)):
                rows, columns = np.divmod(self.low[where], width)
                grid.planes[rows, columns, axis] = self.first_only[where]
                rows, columns = np.divmod(self.high[where], width)
                grid.planes[rows, columns, axis + 1] = self.second_only[where]
            return grid
        graph = FlowGraph(self.n_variables, self.low, self.high)
        graph.excess[:] = self.excess
        graph.capacity[graph.arcs[0::2]] = self.first_only
        graph.capacity[graph.arcs[1::2]] = self.second_only
        return graph

    def doubled(self) -> FlowGraph:
        """The network of roof duality: node v for "state 1" and node n + v for "state 0", each penalty twice."""
        n, repels = self.n_variables, self.repels
        low, high = self.low[~repels], self.high[~repels]
        i, j = self.low[repels], self.high[repels]
        tails = np.concatenate([low, n + low, i, j])
        heads = np.concatenate([high, n + high, n + j, n + i])
        graph = FlowGraph(2 * n, tails, heads)
        first, second = self.first_only[~repels], self.second_only[~repels]
        both, neither = self.both[repels], self.neither[repels]
        graph.excess[:] = np.concatenate([self.excess, -self.excess])
        graph.capacity[graph.arcs[0::2]] = np.concatenate([first, second, both, both])
        graph.capacity[graph.arcs[1::2]] = np.concatenate([second, first, neither, neither])
        return graph

    def held(self, hold: BoolArray, states: npt.NDArray[np.int64]) -> tuple[Penalties, IntArray]:
        """The penalties of the other variables while some are held in their states, and which those others are."""
        free = np.flatnonzero(~hold)
        label = np.full(self.n_variables, -1, np.int64)
        label[free] = np.arange(len(free))
        on = states > 0
        excess = self.excess.copy()
        cells = (self.neither, self.second_only, self.first_only, self.both)
        for own, other, own_bit, other_bit in ((self.low, self.high, 2, 1), (self.high, self.low, 1, 2)):
            at = np.flatnonzero(~hold[own] & hold[other])
            known = np.where(on[other[at]], other_bit, 0)
            stay = np.choose(known, [c[at] for c in cells])
            move = np.choose(known | own_bit, [c[at] for c in cells])
            # A state that a hard zero rules out pays without limit; never both, with others in possible states.
            np.add.at(excess, own[at], stay - move)
        inside = ~hold[self.low] & ~hold[self.high]
        rest = Penalties(
            label[self.low[inside]], label[self.high[inside]], excess[free], self.first_only[inside],
            self.second_only[inside], self.both[inside], self.neither[inside],
        )  # fmt: skip
        return rest, free


def _merged(pairs: PairProblem) -> tuple[IntArray, IntArray, FloatArray]:
    """Each pair once, with its four costs ``[4, m]`` in the order 00, 01, 10, 11."""
    pool, base, one, two = pairs.pool, pairs.base, pairs.low_stride, pairs.high_stride
    costs = -np.stack([pool[base], pool[base + two], pool[base + one], pool[base + one + two]])
    n = pairs.n_variables
    unique, inverse = np.unique(pairs.low * n + pairs.high, return_inverse=True)
    merged = np.stack([np.bincount(inverse.reshape(-1), c, len(unique)) for c in costs]).astype(np.float64)
    return unique // n, unique % n, merged


def _twice(pairs: PairProblem) -> bool:
    """Whether some pair has two factors."""
    low, high, n = pairs.low, pairs.high, pairs.n_variables
    if pairwise(pairs.problem.structure).width:
        # Neighbours of a lattice have small numbers of their own, so that nothing has to be sorted.
        return bool(np.bincount(2 * low + (high - low > 1)).max(initial=0) > 1)
    return len(np.unique(low * n + high)) < len(low)


def penalties_of(pairs: PairProblem) -> Penalties:
    """Write a problem of binary variables as penalties; raises `ImpossibleEvidenceError` where pairs contradict.

    Time and memory are linear in the factors, but for sorting them where the graph is no lattice.

    Examples
    --------
    >>> import markovfield as mf
    >>> from markovfield.inference.core.evidence import Evidence
    >>> from markovfield.inference.problem.pairs import pair_problem
    >>> net = mf.MarkovNetwork({"A": 2, "B": 2})
    >>> _ = net.add_factor(["A", "B"], log_table=[[1.0, -1.0], [-1.0, 1.0]])
    >>> graph = net.compile()
    >>> penalties = penalties_of(pair_problem("graph_cut", graph, Evidence.parse(graph.structure, None), shrink=True))
    >>> penalties.first_only.tolist(), penalties.second_only.tolist(), penalties.both.tolist()
    ([2.0], [2.0], [0.0])
    """
    unary = np.zeros((pairs.n_variables, 2))
    free = pairs.problem.structure.cardinalities > 1
    if pairs.unary.shape[1] == 2:
        unary[free] = -pairs.unary[free]
    if _twice(pairs):
        return _hard_penalties(pairs, unary)
    excess, apart = unary[:, 0] - unary[:, 1], np.empty(len(pairs.low))
    where = (pairs.low, pairs.high, pairs.base, pairs.low_stride, pairs.high_stride)
    if not preferences(pairs.pool, *where, ROUNDING, apart, excess):
        return _hard_penalties(pairs, unary)
    low, high = pairs.low, pairs.high
    keep = apart != 0
    if not keep.all():
        low, high, apart = low[keep], high[keep], apart[keep]
    equal = np.maximum(apart, 0.0)
    different = np.maximum(-apart, 0.0)
    return Penalties(low, high, excess, equal, equal, different, different)


def _hard_penalties(pairs: PairProblem, unary: FloatArray) -> Penalties:
    """The penalties of pairs with hard zeros, or with several factors; ``unary`` has the costs of single states."""
    low, high, costs = _merged(pairs)
    if not np.isfinite(costs).all():
        low, high, costs, unary = _forced(pairs, low, high, costs, unary)
    finite = np.isfinite(costs)
    plain = finite.all(axis=0)
    a, b, c, d = costs
    apart = np.zeros(len(low))
    with np.errstate(invalid="ignore"):
        apart[plain] = ((b + c - a - d) / 2)[plain]
        apart[plain & (np.abs(apart) <= ROUNDING * np.abs(costs).sum(axis=0))] = 0.0
        of_low, of_high = (c + d - a - b) / 2, (b + d - a - c) / 2
    first_only, second_only = np.maximum(apart, 0.0), np.maximum(apart, 0.0)
    both, neither = np.maximum(-apart, 0.0), np.maximum(-apart, 0.0)
    for cells, penalty in zip(finite, (neither, second_only, first_only, both), strict=True):
        penalty[~cells] = np.inf
    for e in np.flatnonzero(~plain).tolist():
        of_low[e], of_high[e] = _unary_parts(*costs[:, e].tolist())
    n = pairs.n_variables
    excess = unary[:, 0] - unary[:, 1] - np.bincount(low, of_low, n) - np.bincount(high, of_high, n)
    keep = (first_only > 0) | (second_only > 0) | (both > 0) | (neither > 0)
    return Penalties(low[keep], high[keep], excess, first_only[keep], second_only[keep], both[keep], neither[keep])


def _unary_parts(a: float, b: float, c: float, d: float) -> tuple[float, float]:
    """What each variable of a pair with hard zeros pays in state 1 by itself; every state has a possible partner."""
    if np.isinf(b) and np.isinf(c):
        return d - a, 0.0
    if np.isinf(a) and np.isinf(d):
        return c - b, 0.0
    if np.isinf(c):
        return d - b, b - a
    if np.isinf(b):
        return c - a, d - c
    if np.isinf(a):
        return d - b, d - c
    return c - a, b - a


def _forced(
    pairs: PairProblem, low: IntArray, high: IntArray, costs: FloatArray, unary: FloatArray
) -> tuple[IntArray, IntArray, FloatArray, FloatArray]:
    """Pairs that, taken together, rule a state out become costs of single variables."""
    a, b, c, d = np.isinf(costs)
    forced = (a & b) | (c & d) | (a & c) | (b & d)
    unary = unary.copy()
    for e in np.flatnonzero(forced).tolist():
        table = costs[:, e].reshape(2, 2)
        i, j = int(low[e]), int(high[e])
        for axis, v, other in ((0, i, j), (1, j, i)):
            rows = table if axis == 0 else table.T
            ruled = np.isinf(rows).all(axis=1)
            if ruled.all():
                raise pairs.problem.impossible()
            if ruled.any():
                unary[v, int(np.argmax(ruled))] = np.inf
                unary[other] += rows[int(np.argmin(ruled))]
                break
    if np.isinf(unary.min(axis=1)).any():
        raise pairs.problem.impossible()
    keep = ~forced
    return low[keep], high[keep], costs[:, keep], unary
