"""The pairwise view of a structure: its factors by how many variables they have, pairs by their ends, and the lattice.

Worked out once and kept with the structure; every method that treats unary and pairwise factors apart from others reads
it here: relaxations, cuts and moves, branch and bound, sequential and lattice messages. Of plain tables only.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from markovfield.arrays import BoolArray, FloatArray, IntArray, offsets_of
from markovfield.factors.factor_kinds import TABLE
from markovfield.factors.lattice import lattice_of
from markovfield.factors.remembered import remembered
from markovfield.factors.structure import Structure
from markovfield.inference.problem.problem import Problem

__all__ = ["Pairwise", "add_unary", "lattice_width", "of_free", "pairwise", "shorter_side", "unary_scores"]


@dataclass(frozen=True, eq=False)
class Pairwise:
    """Unary, pairwise and larger factors of a structure, in the order of its factors.

    Attributes
    ----------
    arity
        ``int64[m]``: how many variables each factor has.
    constants, unary, pairs, large
        The factors of none, one, two, and three or more variables.
    low, high
        ``int64[pairs]``: the two variables of each pair, the lower position first.
    low_stride, high_stride
        ``int64[pairs]``: the steps of the table along them.
    turned
        ``bool[pairs]``: whether the table's first axis is that of ``high``.
    """

    structure: Structure
    arity: IntArray
    constants: IntArray
    unary: IntArray
    pairs: IntArray
    large: IntArray
    low: IntArray
    high: IntArray
    low_stride: IntArray
    high_stride: IntArray
    turned: BoolArray

    @cached_property
    def unary_cells(self) -> tuple[IntArray, IntArray]:
        """Of every cell of every unary table, its place among all variables' states, and where it is in the pool."""
        s = self.structure
        unary = self.unary[s.kind[self.unary] == TABLE]
        axis = s.scope_offsets[unary]
        variable = s.scopes[axis]
        counts = s.cardinalities[variable].astype(np.int64)
        owner = np.repeat(np.arange(len(unary)), counts)
        state = np.arange(len(owner)) - (np.cumsum(counts) - counts)[owner]
        place = s.value_offsets[variable][owner] + state
        return place, s.table_offsets[unary][owner] + s.table_strides[axis][owner] * state

    @cached_property
    def width(self) -> int:
        """The width of the lattice, row by row, whose neighbours all pairs join; 0 where they join others.

        The model may have told it; otherwise it is found from the positions of the pairs.
        """
        told = lattice_of(self.structure)
        if told is not None and told.rectangle:
            return told.rectangle[1] if (self.high - self.low > 1).any() else 0
        return lattice_width(self.structure.n_variables, self.low, self.high)

    @cached_property
    def shorter_side(self) -> int:
        """The shorter side of a rectangle of all variables, row by row, all of whose neighbours are pairs; 0 if none.

        No junction tree has a smaller width. Other pairs, such as diagonal neighbours, may be there as well.
        """
        n, told = self.structure.n_variables, lattice_of(self.structure)
        if told is not None and told.rectangle and len(self.low) == 2 * n - sum(told.rectangle):
            return min(told.rectangle)
        return shorter_side(n, self.low, self.high)

    @cached_property
    def joined(self) -> tuple[IntArray, IntArray]:
        """The pairs of variables that some factor joins, each once, in rising order: ``low < high``."""
        n = max(self.structure.n_variables, 1)
        key = np.unique(self.low * n + self.high)
        return key // n, key % n

    @cached_property
    def incidence(self) -> tuple[IntArray, IntArray]:
        """Where the pairs of each variable start in a list, and the list: twice the pair, plus one at its high end."""
        ends = np.stack([self.low, self.high], axis=1).ravel()
        starts = offsets_of(np.bincount(ends, minlength=self.structure.n_variables))
        return starts, np.argsort(ends, kind="stable")


@remembered
def pairwise(structure: Structure) -> Pairwise:
    """The pairwise view of a structure of plain tables.

    Examples
    --------
    >>> import markovfield as mf
    >>> net = mf.MarkovNetwork({"A": 2, "B": 2, "C": 2})
    >>> _ = net.add_factors([("B", "A"), ("B", "C")], [[1.0, 2.0], [3.0, 4.0]])
    >>> view = pairwise(net.compile().structure)
    >>> view.low.tolist(), view.high.tolist(), view.turned.tolist()
    ([0, 1], [1, 2], [True, False])
    >>> starts, incident = view.incidence
    >>> starts.tolist(), incident.tolist()
    ([0, 1, 3, 4], [0, 1, 2, 3])
    """
    s = structure
    arity = np.diff(s.scope_offsets)
    pairs = np.flatnonzero(arity == 2)
    axis = s.scope_offsets[pairs]
    low, high = s.scopes[axis].astype(np.int64), s.scopes[axis + 1].astype(np.int64)
    one, two = s.table_strides[axis], s.table_strides[axis + 1]
    turned = low > high
    if turned.any():
        low, high = np.where(turned, high, low), np.where(turned, low, high)
        one, two = np.where(turned, two, one), np.where(turned, one, two)
    none, single, large = (np.flatnonzero(which) for which in (arity == 0, arity == 1, arity > 2))
    return Pairwise(s, arity, none, single, pairs, large, low, high, one, two, turned)


def of_free(structure: Structure, free: BoolArray) -> Structure:
    """The structure without the axes of variables that are not free, which count as in their first states.

    Itself where there are none. Of structured factors only the variables are right.

    Examples
    --------
    >>> import markovfield as mf
    >>> net = mf.MarkovNetwork({"A": 1, "B": 2, "C": 2})
    >>> _ = net.add_factor(["A", "B", "C"], [[[1.0, 2.0], [3.0, 4.0]]])
    >>> s = net.compile().structure
    >>> pairwise(of_free(s, s.cardinalities > 1)).low.tolist()
    [1]
    """
    s = structure
    keep = free[s.scopes]
    if keep.all():
        return s
    offsets = offsets_of(keep)[s.scope_offsets]
    kept = (offsets, s.scopes[keep], s.table_offsets, s.table_strides[keep])
    return Structure(s.cardinalities, *kept, s.n_cells, s.child, np.zeros_like(s.kind), s.names)


def lattice_width(n: int, low: IntArray, high: IntArray) -> int:
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


def shorter_side(n: int, low: IntArray, high: IntArray) -> int:
    """The shorter side of a rectangle of ``n`` nodes, row by row, whose neighbours are all among the pairs; 0 if none.

    Examples
    --------
    >>> shorter_side(6, np.array([0, 1, 3, 4, 0, 1, 2, 0]), np.array([1, 2, 4, 5, 3, 4, 5, 5]))
    2
    """
    apart = high - low
    lengths, counts = np.unique(apart, return_counts=True)
    for width in lengths[(lengths > 1) & (counts >= n - lengths)].tolist():
        if n % width:
            continue
        beside = np.zeros((2, n), np.bool_)
        beside[0, low[(apart == 1) & (low % width < width - 1)]] = True
        beside[1, low[apart == width]] = True
        if beside.sum() == n - n // width + n - width:
            return min(width, n // width)
    return 0


def add_unary(s: Structure, log_tables: FloatArray, scores: FloatArray) -> None:
    """Add the tables of single variables to ``scores``, a number for each state of every variable."""
    place, cell = pairwise(s).unary_cells
    np.add.at(scores, place, log_tables[cell])


def unary_scores(problem: Problem) -> tuple[FloatArray, float]:
    """The log-potentials of every variable's states by itself, likelihoods included, and the constant factors' sum."""
    s, pool = problem.structure, problem.potentials.log_tables
    view = pairwise(s)
    scores = problem.likelihood.copy() if len(problem.likelihood) else np.zeros(int(s.value_offsets[-1]))
    axis = s.scope_offsets[view.unary]
    variable, k = s.scopes[axis], int(s.cardinalities.max(initial=1))
    if (s.cardinalities == k).all() and np.bincount(variable).max(initial=0) <= 1:
        cells = s.table_offsets[view.unary][:, None] + s.table_strides[axis][:, None] * np.arange(k)
        scores.reshape(-1, k)[variable] += pool[cells]
    else:
        add_unary(s, pool, scores)
    return scores, float(pool[s.table_offsets[view.constants]].sum())
