"""Piecewise training: factors, or trees of them, normalised each by itself (Sutton and McCallum 2005)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from markovfield._validation import check_method
from markovfield.arrays import FloatArray, IntArray
from markovfield.factors.factor_graph import FactorGraph
from markovfield.factors.remembered import Shelf
from markovfield.factors.structure import Structure
from markovfield.inference.core.component_counts import counts_by_component
from markovfield.inference.core.evidence import no_evidence
from markovfield.inference.core.registry import resolve
from markovfield.inference.core.running import Running
from markovfield.structured.core.batch import Batch
from markovfield.structured.objectives.forests_kernel import grow_part
from markovfield.structured.objectives.labels import check_labels

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
    """A graph of pieces: which variable each of its variables is a copy of, and what its further cells are.

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
        self.batch, self.running = batch, running
        self.pieces = pieces_of(batch.structure, pieces)
        self.method = resolve("belief_propagation", "marginals")
        self._offsets = np.searchsorted(self.pieces.variable, batch.variable_offsets)
        counts = batch.counts()
        self._features = batch.adjoint(counts)
        self._constant = 0.0 if batch.base is None else float(batch.base[counts > 0] @ counts[counts > 0])

    def __call__(self, w: FloatArray) -> tuple[float, FloatArray]:
        """The value and the gradient."""
        batch, pieces = self.batch, self.pieces
        graph = FactorGraph(pieces.structure, pieces.pool(batch.pool(w)), marks_hold=True)
        found = counts_by_component(
            self.method, graph, no_evidence(pieces.structure), self._offsets,
            running=self.running.quiet, weights=batch.weights,
        )  # fmt: skip
        values = found.log_partition if batch.weights is None else batch.weights * found.log_partition
        value = float(values.sum()) - self._constant - float(self._features @ w)
        return value, batch.adjoint(pieces.counts(found.counts)) - self._features


_PIECES: Shelf[Pieces] = Shelf(2)


def pieces_of(structure: Structure, pieces: str) -> Pieces:
    """The pieces of a structure of plain tables: every factor by itself, or forests; kept with it.

    Examples
    --------
    >>> import markovfield as mf
    >>> net = mf.MarkovNetwork(dict.fromkeys("ABC", 2))
    >>> _ = net.add_factors([("A", "B"), ("B", "C"), ("C", "A")], [[3.0, 1.0], [1.0, 3.0]])
    >>> _ = net.add_factor(["A"], [1.0, 2.0])
    >>> structure = net.compile().structure
    >>> pieces_of(structure, "factors").variable.tolist(), pieces_of(structure, "trees").variable.tolist()
    ([0, 0, 0, 1, 1, 2, 2], [0, 0, 1, 2, 2])
    >>> pieces_of(structure, "trees").share.tolist()
    [0.5, 0.5, 0.5, 0.5]
    """
    return _PIECES.get(structure, pieces, lambda: (_by_factors if pieces == "factors" else _by_trees)(structure))


def _copies(
    s: Structure, keys: IntArray, n_parts: int, arity: IntArray, tables: Any, strides: Any, n_cells: int
) -> Any:
    """Factors on copies of variables, ``keys = variable * n_parts + part`` for each axis, and what those are copies of.

    A variable that no factor reads has a copy as well: it adds to log Z.
    """
    lonely = np.flatnonzero(np.bincount(s.scopes, minlength=s.n_variables) == 0)
    copies, scopes = np.unique(np.concatenate([keys, lonely * n_parts]), return_inverse=True)
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(arity)])
    cards = s.cardinalities[copies // n_parts]
    structure = Structure.from_arrays(cards, offsets, scopes.ravel()[: len(keys)], tables, strides, n_cells=n_cells)
    return structure, copies // n_parts


def _stretches(starts: IntArray, lengths: IntArray) -> IntArray:
    """``starts[0], starts[0] + 1, ...``, so many from each start."""
    ends = np.cumsum(lengths)
    return np.repeat(starts - ends + lengths, lengths) + np.arange(int(ends[-1]) if len(ends) else 0)


def _by_factors(s: Structure) -> Pieces:
    arity, n = np.diff(s.scope_offsets), max(1, s.n_factors)
    keys = s.scopes.astype(np.int64) * n + np.repeat(np.arange(s.n_factors), arity)
    structure, variable = _copies(s, keys, n, arity, s.table_offsets, s.table_strides, s.n_cells)
    return Pieces(structure, variable, np.zeros(0, np.int64), np.zeros(0))


def _by_trees(s: Structure) -> Pieces:
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
    structure, copied = _copies(
        s,
        np.concatenate([keys, own]),
        n_parts,
        np.concatenate([arity[large], np.ones(len(own), np.int64)]),
        np.concatenate([s.table_offsets[large], tables]),
        np.concatenate([s.table_strides[axes], strides]),
        s.n_cells + len(origin),
    )
    return Pieces(structure, copied, origin, share)
