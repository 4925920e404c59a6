"""Models of pairs that are Ising or Potts models at heart, as couplings and fields."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from markovfield.arrays import FloatArray, IntArray
from markovfield.factors.remembered import remembered
from markovfield.factors.structure import Structure
from markovfield.inference.problem.pairwise import Pairwise, of_free, pairwise
from markovfield.inference.problem.problem import Problem

__all__ = ["PottsModel", "SpinModel", "potts_model", "spin_model"]

# Entries of a table that differ by less than this, relative to the largest, count as equal.
SAME = 1e-12


@dataclass(frozen=True, eq=False)
class SpinModel:
    """A problem whose free variables all have two states, joined in pairs: every such model is an Ising model.

    The score of an assignment is ``constant + sum coupling[e] s_i s_j + sum field[i] s_i``, where the spin of a
    variable is -1 in its first state and +1 in its second (Murphy 19.17 and exercise 19.5).

    Attributes
    ----------
    variables
        ``int64[n]``: the variable of the problem behind each spin (those with one state have none).
    constant
        -inf where what is observed is impossible.
    first, second
        ``int64[m]``: the spins of each pair, ``first < second``, no pair twice, none with a coupling of zero.
    """

    problem: Problem
    variables: IntArray
    first: IntArray
    second: IntArray
    coupling: FloatArray
    field: FloatArray
    constant: float

    @property
    def n_spins(self) -> int:
        """How many variables are free."""
        return len(self.variables)


@dataclass(frozen=True, eq=False)
class PottsModel:
    """A problem whose pairs only ask whether two states are the same (Murphy 19.22), with any potentials of one.

    The score is ``constant + sum coupling[e] [y_i = y_j] + sum unary[i, y_i]``.

    Attributes
    ----------
    variables, first, second
        As for `SpinModel`.
    n_states
        States of every free variable.
    unary
        ``float64[n, n_states]``; -inf where a state is ruled out.
    """

    problem: Problem
    variables: IntArray
    n_states: int
    first: IntArray
    second: IntArray
    coupling: FloatArray
    unary: FloatArray
    constant: float


@remembered
def _view(structure: Structure) -> Pairwise:
    """The pairwise view of what is free: variables of one state may be left in scopes."""
    return pairwise(of_free(structure, structure.cardinalities > 1))


def _unary(problem: Problem, variables: IntArray, card: int) -> tuple[FloatArray, float]:
    """Potentials of single free variables ``[n, card]``, and the constant of all other factors of at most one."""
    view = _view(problem.structure)
    s, pool = view.structure, problem.potentials.log_tables
    constant = float(pool[s.table_offsets[view.constants]].sum())
    unary = np.zeros((s.n_variables, card))
    axis = s.scope_offsets[view.unary]
    states = np.arange(card)
    cells = s.table_offsets[view.unary][:, None] + s.table_strides[axis][:, None] * states
    np.add.at(unary, s.scopes[axis], pool[cells])
    if len(problem.likelihood):
        many = s.cardinalities > 1
        starts = s.value_offsets[:-1]
        unary[many] += problem.likelihood[starts[many][:, None] + states]
        constant += float(problem.likelihood[starts[~many]].sum())
    return unary[variables], constant


def _pairs(problem: Problem, variables: IntArray) -> tuple[IntArray, IntArray, IntArray, IntArray, IntArray]:
    """Factors of two variables: both spins, base and strides."""
    view = _view(problem.structure)
    s = view.structure
    label = np.full(s.n_variables, -1, np.int64)
    label[variables] = np.arange(len(variables))
    first = s.scope_offsets[view.pairs]
    base, one, two = s.table_offsets[view.pairs], s.table_strides[first], s.table_strides[first + 1]
    return label[s.scopes[first]], label[s.scopes[first + 1]], base, one, two


def _merged(i: IntArray, j: IntArray, n: int, coupling: FloatArray) -> tuple[IntArray, IntArray, FloatArray]:
    """Each pair once, lower spin first, couplings added up, zeros dropped."""
    key, inverse = np.unique(np.minimum(i, j) * max(n, 1) + np.maximum(i, j), return_inverse=True)
    total = np.bincount(inverse, coupling, len(key)).astype(np.float64)
    key, total = key[total != 0], total[total != 0]
    return key // max(n, 1), key % max(n, 1), total


def _free(problem: Problem) -> tuple[IntArray, int] | None:
    """Free variables and their common number of states; None where they differ or a factor joins three or more."""
    s = problem.structure
    if len(_view(s).large):
        return None
    variables = np.flatnonzero(s.cardinalities > 1)
    cards = s.cardinalities[variables]
    if len(cards) and cards.min() != cards.max():
        return None
    return variables, int(cards[0]) if len(cards) else 2


def spin_model(problem: Problem) -> SpinModel | None:
    """Write a prepared problem as spins; None where a free variable has more than two states, a factor joins three or
    more, or a potential of -inf is left. Time and memory are linear in the factors.

    Examples
    --------
    >>> import markovfield as mf
    >>> from markovfield.inference.core.evidence import Evidence
    >>> from markovfield.inference.problem.problem import prepare
    >>> net = mf.MarkovNetwork({"A": 2, "B": 2})
    >>> _ = net.add_factor(["A", "B"], log_table=[[1.0, -1.0], [-1.0, 1.0]])
    >>> graph = net.compile()
    >>> spin_model(prepare(graph, Evidence.parse(graph.structure, None))).coupling.tolist()
    [1.0]
    """
    free = _free(problem)
    if free is None or free[1] != 2:
        return None
    variables = free[0]
    n = len(variables)
    unary, constant = _unary(problem, variables, 2)
    i, j, base, one, two = _pairs(problem, variables)
    pool = problem.potentials.log_tables
    a, b, c, d = pool[base], pool[base + two], pool[base + one], pool[base + one + two]
    if not np.isfinite(unary).all() or not all(np.isfinite(x).all() for x in (a, b, c, d)):
        return None
    # A table as constant + (a unary part for either spin) + coupling s t.
    field = (unary[:, 1] - unary[:, 0]) / 2
    field += np.bincount(i, (c + d - a - b) / 4, n) + np.bincount(j, (b + d - a - c) / 4, n)
    first, second, coupling = _merged(i, j, n, (a + d - b - c) / 4)
    constant += float(unary.sum() / 2 + (a + b + c + d).sum() / 4)
    return SpinModel(problem, variables, first, second, coupling, field, constant)


def potts_model(problem: Problem) -> PottsModel | None:
    """Write a prepared problem as a Potts model; None where free variables differ in their number of states, a factor
    joins three or more, or a pair's table asks for more than whether the states are the same.

    Two states never ask for more than that and fields, but such models are better served by `spin_model`.
    """
    free = _free(problem)
    if free is None:
        return None
    variables, card = free
    unary, constant = _unary(problem, variables, card)
    i, j, base, one, two = _pairs(problem, variables)
    # Ties: each distinct table is looked at once.
    keys, inverse = np.unique(np.stack([base, one, two], axis=1), axis=0, return_inverse=True)
    inverse = inverse.reshape(-1)
    rows, columns = np.arange(card)[:, None], np.arange(card)[None, :]
    same, other = np.zeros(len(keys)), np.zeros(len(keys))
    off = ~np.eye(card, dtype=np.bool_)
    for k, (at, row, column) in enumerate(keys.tolist()):
        table = problem.potentials.log_tables[at + row * rows + column * columns]
        if not np.isfinite(table).all():
            return None
        room = SAME * max(1.0, float(np.abs(table).max()))
        if np.ptp(np.diagonal(table)) > room or np.ptp(table[off]) > room:
            return None
        same[k], other[k] = table[0, 0], table[0, 1]
    first, second, coupling = _merged(i, j, len(variables), (same - other)[inverse])
    constant += float(other[inverse].sum())
    return PottsModel(problem, variables, card, first, second, coupling, unary, constant)
