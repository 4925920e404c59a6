"""The local polytope of a problem as sparse rows and columns: what linear programs over it are made of.

A column is the weight of a state of a variable, or of a cell above -inf of a factor of two or more. The weights of a
variable add up to one, and those of a factor's cells that agree with a state add up to the weight of the state. The
vertices with integers are the assignments; where there are others, the optimum bounds the best score from above.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from markovfield.arrays import FloatArray, IntArray
from markovfield.exceptions import ModelError
from markovfield.inference.problem.pairwise import unary_scores
from markovfield.inference.problem.problem import Problem
from markovfield.inference.trws.plan import sequential_plan

__all__ = ["LocalPolytope", "local_polytope"]


@dataclass(frozen=True, eq=False)
class LocalPolytope:
    """Columns and rows; scores are maximised.

    Attributes
    ----------
    scores
        ``float64[columns]``: of every state of every variable, at the structure's ``value_offsets``, then of the cells
        of one factor after the other.
    constant
        Score of the factors that have no variable left.
    block_offsets
        Where each variable's and then each factor's columns start: the weights of a block add up to one.
    scopes
        The variables of each factor of two or more.
    cell_states
        ``int64[axes, cells]`` for each factor: the state of each axis in each of its cells.
    marginal
        Sparse ``[axes' states, columns]``: the rows that must come out at zero.
    """

    problem: Problem
    scores: FloatArray
    constant: float
    block_offsets: IntArray
    scopes: tuple[IntArray, ...]
    cell_states: tuple[IntArray, ...]
    marginal: Any

    @property
    def n_columns(self) -> int:
        """How many columns there are."""
        return len(self.scores)

    @property
    def n_states(self) -> int:
        """How many of them are states of variables."""
        return int(self.problem.structure.value_offsets[-1])

    def equations(self) -> tuple[Any, FloatArray]:
        """All rows that must hold with equality, and their right-hand sides."""
        from scipy import sparse

        s = self.problem.structure
        n = s.n_variables
        owner = np.repeat(np.arange(n), s.cardinalities)
        sums = sparse.csr_array((np.ones(self.n_states), (owner, np.arange(self.n_states))), shape=(n, self.n_columns))
        rows = sparse.vstack([sums, self.marginal], format="csr")
        return rows, np.concatenate([np.ones(n), np.zeros(self.marginal.shape[0])])

    def bound(self, scores: FloatArray, duals: FloatArray) -> float:
        """An upper bound on the best score from any multipliers of the marginal rows, however rounded."""
        moved = scores + self.marginal.T @ duals
        return float(np.maximum.reduceat(moved, self.block_offsets[:-1]).sum()) if len(moved) else 0.0

    @property
    def plain_bound(self) -> float:
        """The bound that needs no multipliers: every variable and every factor at its own best."""
        return self.bound(self.scores, np.zeros(self.marginal.shape[0])) + self.constant

    def rounded(self, weights: FloatArray) -> IntArray:
        """The heaviest state of each variable."""
        s = self.problem.structure
        owner = np.repeat(np.arange(s.n_variables), s.cardinalities)
        order = np.lexsort((-weights[: self.n_states], owner))
        best: IntArray = order[s.value_offsets[:-1]] - s.value_offsets[:-1]
        return best


def _check_size(name: str, problem: Problem, scopes: list[IntArray], most: int) -> None:
    """Refuse before anything is written out."""
    cards = problem.structure.cardinalities.astype(np.float64)
    columns = cards.sum() + sum(float(np.prod(cards[scope])) for scope in scopes)
    if columns > most:
        raise ModelError(
            f"the linear program of {name} would have {columns:.4g} columns, and at most {most} are allowed: raise "
            "max_columns, or use trws or dual_decomposition, which bound the same optimum in little memory"
        )


def local_polytope(name: str, problem: Problem, max_columns: int) -> LocalPolytope:
    """Write out the polytope of a prepared problem; refused beyond ``max_columns`` cells and states."""
    from scipy import sparse

    s, pool = problem.structure, problem.potentials.log_tables
    plan = sequential_plan(s)
    at = plan.layout
    cards = s.cardinalities.astype(np.int64)
    scopes = [at.scopes[a:b] for a, b in zip(at.scope_offsets[:-1], at.scope_offsets[1:], strict=True)]
    _check_size(name, problem, scopes, max_columns)
    unary, constant = unary_scores(problem)
    scores, states, sizes = [unary], [], []
    with plan.tables(pool) as pairs:
        for f, scope in enumerate(scopes):
            t = int(at.pair_table[f])
            shape = tuple(cards[scope].tolist())
            if t >= 0:
                start = int(pairs.starts[t])
                table = pairs.cells[start : start + shape[0] * shape[1]].copy()
            else:
                cells = np.full(1, at.table_offsets[f])
                first = int(at.scope_offsets[f])
                for k, card in enumerate(shape):
                    cells = (cells[:, None] + at.table_strides[first + k] * np.arange(card)).ravel()
                table = pool[cells]
            kept = np.flatnonzero(table > -np.inf)
            if not len(kept):
                raise problem.impossible()
            scores.append(table[kept])
            states.append(np.stack(np.unravel_index(kept, shape)).astype(np.int64))
            sizes.append(len(kept))
    offsets = np.concatenate([s.value_offsets, s.value_offsets[-1] + np.cumsum(np.array(sizes, np.int64))])
    rows, columns, values, n_rows = [], [], [], 0
    for f, scope in enumerate(scopes):
        cells = np.arange(offsets[s.n_variables + f], offsets[s.n_variables + f + 1])
        for k, v in enumerate(scope.tolist()):
            card = int(cards[v])
            rows += [n_rows + states[f][k], n_rows + np.arange(card)]
            columns += [cells, s.value_offsets[v] + np.arange(card)]
            values += [np.ones(len(cells)), np.full(card, -1.0)]
            n_rows += card
    nothing = np.zeros(0, np.int64)
    marginal = sparse.csr_array(
        (
            np.concatenate([np.zeros(0), *values]),
            (np.concatenate([nothing, *rows]), np.concatenate([nothing, *columns])),
        ),
        shape=(n_rows, int(offsets[-1])),
    )
    # The weights of a block sum to one: its best is a constant, which the solver's tolerances need not see.
    flat = np.concatenate(scores)
    best = np.maximum.reduceat(flat, offsets[:-1]) if len(flat) else np.zeros(0)
    flat = flat - np.repeat(best, np.diff(offsets))
    constant += float(best.sum())
    return LocalPolytope(problem, flat, constant, offsets, tuple(scopes), tuple(states), marginal)
