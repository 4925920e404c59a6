"""Piecewise training: factors, or trees of them, normalised each by itself (Sutton and McCallum 2005)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from markovfield._validation import check_method
from markovfield.arrays import FloatArray, IntArray, distinct_rows
from markovfield.factors.factor_graph import FactorGraph
from markovfield.factors.remembered import remembered
from markovfield.factors.structure import Structure
from markovfield.inference.core.component_counts import counts_by_component
from markovfield.inference.core.evidence import no_evidence
from markovfield.inference.core.registry import resolve
from markovfield.inference.core.running import Running
from markovfield.structured.core.batch import Batch
from markovfield.structured.core.labels import check_labels
from markovfield.structured.objectives.forests_kernel import grow_part

__all__ = ["Pieces", "Piecewise", "pieces_of"]

PIECES = ("factors", "trees")


@dataclass(frozen=True)
class Piecewise:
    """Minus the log-probability of the labels in a model of pieces that know nothing of each other.

    The graph is cut into pieces, each with copies of its variables, and each piece is summed over exactly. Every term
    of the model's partition function is one of those in the product of the pieces': the sum of the pieces' log Z is an
    upper bound on log Z, so the objective is an upper bound on minus the log-likelihood; it is convex, and needs no
    inference beyond trees. Where the graph is one piece, it is the likelihood. All labels must be known.

    Parameters
    ----------
    pieces
        ``"factors"``: every factor by itself, as cheap as it gets. ``"trees"``: factors of two or more variables are
        parted into forests, as few as a greedy choice finds, and a factor of a single variable is shared equally
        between the forests that have the variable: a tighter bound, summed over by belief propagation.

    Examples
    --------
    >>> import numpy as np
    >>> import markovfield as mf
    >>> x, y = (np.eye(3), [[0, 1], [1, 2], [2, 0]]), ["a", "b", "b"]
    >>> batch = mf.structured.GraphModel(bias=False).shaped([x], [y]).encode([x], [y])
    >>> value, gradient = Piecewise().on(batch, running=Running())(np.zeros(9))
    >>> round(float(value), 4), gradient.shape
    (3.4657, (9,))
    """

    pieces: str = "trees"

    name: ClassVar[str] = "piecewise"

    def __post_init__(self) -> None:
        check_method(self, choices={"pieces": PIECES})

    def on(self, batch: Batch, *, running: Running, rng: Any = None) -> PiecewiseValue:
        """The function of weights."""
        return PiecewiseValue(batch, self.pieces, running)


class Pieces(NamedTuple):
    """A graph of forests: which variable each of its variables is a copy of, and what its further cells are.

    Attributes
    ----------
    structure
        Reads the pool of the whole graph and, behind it, shares of cells of it.
    variable
        ``int64``: the variable that each of its variables is a copy of, in rising order.
    origin, share
        Of the cells behind the pool: the cell that each is a share of, and how much of it.
    """

    structure: Structure
    variable: IntArray
    origin: IntArray
    share: FloatArray

    def pool(self, pool: FloatArray) -> FloatArray:
        """The log-potentials of the pieces."""
        if not len(self.origin):
            return pool
        whole = np.concatenate([pool, self.share * pool[self.origin]])
        whole.flags.writeable = False
        return whole

    def counts(self, counts: FloatArray) -> FloatArray:
        """Counts of cells of the pieces as those of the pool."""
        n = len(counts) - len(self.origin)
        if not len(self.origin):
            return counts
        return counts[:n] + np.bincount(self.origin, self.share * counts[n:], n)


class PiecewiseValue:
    """The objective of a batch and its gradient, as a function of weights.

    Attributes
    ----------
    guarantee
        ``"upper"``: it bounds minus the log-likelihood from above.
    """

    guarantee, converged = "upper", True

    def __init__(self, batch: Batch, pieces: str, running: Running) -> None:
        check_labels(batch, Piecewise.name)
        self.batch = batch
        self.sums = FactorSums(batch) if pieces == "factors" else TreeSums(batch, running)
        counts = batch.counts()
        self._features = batch.adjoint(counts)
        self._constant = 0.0 if batch.base is None else float(batch.base[counts > 0] @ counts[counts > 0])

    def __call__(self, w: FloatArray) -> tuple[float, FloatArray]:
        """The value and the gradient."""
        value, counts = self.sums(self.batch.pool(w))
        return value - self._constant - float(self._features @ w), self.batch.adjoint(counts) - self._features


class FactorSums:
    """log Z of every factor by itself, summed with the weights of their examples, and the expected counts.

    Factors that read the same table are summed over once.
    """

    def __init__(self, batch: Batch) -> None:
        s = batch.structure
        self.n_cells = s.n_cells
        lonely = np.bincount(s.scopes, minlength=s.n_variables) == 0
        of_variable = 1.0 if batch.weights is None else batch.weights[batch.example_of_variable][lonely]
        self._constant = float(np.sum(of_variable * np.log(s.cardinalities[lonely])))
        # For each shape of tables, the cells of each of them, and how much it counts.
        self.tables: list[tuple[IntArray, FloatArray]] = []
        arity = np.diff(s.scope_offsets)
        for n_axes in np.unique(arity).tolist():
            factors = np.flatnonzero(arity == n_axes)
            axes = s.scope_offsets[factors][:, None] + np.arange(n_axes)
            cards, strides = s.cardinalities[s.scopes[axes]], s.table_strides[axes]
            first, which = distinct_rows(s.table_offsets[factors], *strides.T, *cards.T)
            weights: Any = np.bincount(which, batch.factor_weights[factors], len(first))
            shapes, shape = distinct_rows(*cards[first].T)
            for i, at in enumerate(shapes.tolist()):
                own = np.flatnonzero(shape == i)
                states = np.indices(cards[first[at]]).reshape(n_axes, -1)
                cells = s.table_offsets[factors[first[own]]][:, None] + strides[first[own]] @ states
                self.tables.append((cells, weights[own]))

    def __call__(self, pool: FloatArray) -> tuple[float, FloatArray]:
        """The sum of log Z, and of the counts."""
        value, counts = self._constant, np.zeros(self.n_cells)
        for cells, weights in self.tables:
            scores = pool[cells]
            top = scores.max(axis=1, keepdims=True)
            chances = np.exp(scores - top)
            totals = chances.sum(axis=1, keepdims=True)
            value += float(weights @ (top + np.log(totals))[:, 0])
            chances *= weights[:, None] / totals
            counts += np.bincount(cells.ravel(), chances.ravel(), self.n_cells)
        return value, counts


class TreeSums:
    """log Z of every tree of the pieces, summed with the weights of their examples, and the expected counts."""

    def __init__(self, batch: Batch, running: Running) -> None:
        self.weights, self.running = batch.weights, running
        self.pieces = pieces_of(batch.structure)
        self.method = resolve("belief_propagation", "marginals")
        self._offsets = np.searchsorted(self.pieces.variable, batch.variable_offsets)

    def __call__(self, pool: FloatArray) -> tuple[float, FloatArray]:
        """The sum of log Z, and of the counts."""
        s = self.pieces.structure
        graph = FactorGraph(s, self.pieces.pool(pool), marks_hold=True)
        found = counts_by_component(
            self.method, graph, no_evidence(s), self._offsets, running=self.running.quiet, weights=self.weights
        )
        graph.cache.clear()  # what was worked out for it refers to it
        values = found.log_partition if self.weights is None else self.weights * found.log_partition
        return float(values.sum()), self.pieces.counts(found.counts)


def _stretches(starts: IntArray, lengths: IntArray) -> IntArray:
    """``starts[0], starts[0] + 1, ...``, so many from each start."""
    ends = np.cumsum(lengths)
    return np.repeat(starts - ends + lengths, lengths) + np.arange(int(ends[-1]) if len(ends) else 0)


@remembered
def pieces_of(structure: Structure) -> Pieces:
    """The forests of a structure of plain tables; kept with it.

    Examples
    --------
    >>> import markovfield as mf
    >>> net = mf.MarkovNetwork(dict.fromkeys("ABC", 2))
    >>> _ = net.add_factors([("A", "B"), ("B", "C"), ("C", "A")], [[3.0, 1.0], [1.0, 3.0]])
    >>> _ = net.add_factor(["A"], [1.0, 2.0])
    >>> pieces = pieces_of(net.compile().structure)
    >>> pieces.variable.tolist(), pieces.share.tolist()
    ([0, 0, 1, 2, 2], [0.5, 0.5, 0.5, 0.5])
    """
    s = structure
    arity = np.diff(s.scope_offsets)
    part = np.full(s.n_factors, -1, np.int64)
    n_parts, left = 0, int((arity > 1).sum())
    while left:
        left = grow_part(s.scope_offsets, s.scopes, s.n_variables, part, n_parts)
        n_parts += 1
    n_parts = max(1, n_parts)
    large, single = np.flatnonzero(arity > 1), np.flatnonzero(arity == 1)
    axes = _stretches(s.scope_offsets[large], arity[large])
    keys = s.scopes[axes].astype(np.int64) * n_parts + np.repeat(part[large], arity[large])
    # Factors of one variable: a copy in each part that has it; the first part is as good as any where none does.
    variable = s.scopes[s.scope_offsets[single]].astype(np.int64)
    held = np.union1d(keys, variable[~np.isin(variable, s.scopes[axes])] * n_parts)
    first = np.searchsorted(held, np.arange(s.n_variables + 1) * n_parts)
    copies = np.diff(first)[variable]
    own = held[_stretches(first[variable], copies)]
    factor, copies = np.repeat(single, copies), np.repeat(copies, copies)
    tables, strides = s.table_offsets[factor], s.table_strides[s.scope_offsets[factor]]
    # A share of a table has cells of its own, behind the pool.
    shared = np.flatnonzero(copies > 1)
    cards = s.cardinalities[own[shared] // n_parts].astype(np.int64)
    state = _stretches(np.zeros(len(shared), np.int64), cards)
    origin = np.repeat(tables[shared], cards) + np.repeat(strides[shared], cards) * state
    share = np.repeat(1.0 / copies[shared], cards)
    tables[shared], strides[shared] = s.n_cells + np.cumsum(cards) - cards, 1
    # A variable that no factor reads has a copy as well: it adds to log Z.
    lonely = np.flatnonzero(np.bincount(s.scopes, minlength=s.n_variables) == 0)
    copied, scopes = np.unique(np.concatenate([keys, own, lonely * n_parts]), return_inverse=True)
    lengths = np.concatenate([np.zeros(1, np.int64), arity[large], np.ones(len(own), np.int64)])
    cut = Structure.from_arrays(
        s.cardinalities[copied // n_parts],
        np.cumsum(lengths),
        scopes.ravel()[: len(keys) + len(own)],
        np.concatenate([s.table_offsets[large], tables]),
        np.concatenate([s.table_strides[axes], strides]),
        n_cells=s.n_cells + len(origin),
    )
    return Pieces(cut, copied // n_parts, origin, share)
