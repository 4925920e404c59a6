"""Pseudo-likelihood of binary variables as logistic regression (Murphy 19.49; Richardson and Domingos 2006).

The log-odds of a variable given all others is linear in the parameters: what each cell's count changes by when the
variable turns true, times A. For few rows and many factors with tied parameters, as ground formulas of Markov logic
are, these differences are taken once, and an evaluation no longer grows with the factors.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from markovfield.arrays import FloatArray, IntArray
from markovfield.exceptions import ModelError
from markovfield.factors.factor_kinds import CARDINALITY, CLAUSE, PARITY, TABLE, caps, holds, literal_of
from markovfield.factors.structure import Structure
from markovfield.learning.undirected.problem import Problem

__all__ = ["Differences", "cell_changes"]

# Rows and parameters up to which differences are taken, and are told apart one from the other.
MOST_ROWS, MOST_PARAMETERS, MOST_CELLS = 16, 4096, 2**26


class Differences:
    """Minus the log-pseudo-likelihood, per row, and its gradient.

    Attributes
    ----------
    features, offsets
        Distinct changes of the log-odds by the parameters, ``[cases, k]``, and what is fixed of them.
    true, false
        How often (weighted) a variable with these odds is true, or false.
    """

    def __init__(self, problem: Problem) -> None:
        model, s = problem.model, problem.structure
        self.total = problem.total
        weights = problem.complete.weights
        every = np.ones(problem.complete.n_rows) if weights is None else weights
        parts, offsets, truth, counts = [], [], [], []
        base = model.base_graph.log_tables
        for row, weight in zip(problem.complete.codes.T, every.tolist(), strict=True):
            change, fixed = cell_changes(s, np.asarray(row, np.int64), base)
            if np.isnan(fixed).any():
                raise ModelError("the model gives probability zero to the data whatever a single variable is")
            wrong = np.where(row == 1, fixed == -np.inf, fixed == np.inf)
            if wrong.any():
                name = model.variables[int(np.flatnonzero(wrong)[0])]
                raise ModelError(
                    f"the model gives probability zero to the data: a hard constraint on {name!r} is violated"
                )
            free = np.isfinite(fixed)  # what hard constraints decide has probability one
            parts.append((change @ model.operator)[free])
            offsets.append(fixed[free])
            truth.append(row[free] == 1)
            counts.append(np.full(int(free.sum()), weight))
        from scipy.sparse import vstack

        self._merge(csr_array(vstack(parts, format="csr")), *map(np.concatenate, (offsets, truth, counts)))

    @staticmethod
    def apply(problem: Problem) -> bool:
        """Whether a model is of binary variables and has more factors than is worth going through each time."""
        s = problem.structure
        return (
            not s.is_plain
            and problem.complete.n_rows <= MOST_ROWS
            and len(problem.model.parameters) <= MOST_PARAMETERS
            and bool((s.cardinalities == 2).all())
            and bool(np.isin(s.kind, (TABLE, CLAUSE, CARDINALITY, PARITY)).all())
        )

    def _merge(
        self, features: csr_array, offsets: FloatArray, truth: npt.NDArray[np.bool_], counts: FloatArray
    ) -> None:
        """Cases that have the same odds, once."""
        if features.shape[0] * features.shape[1] <= MOST_CELLS:
            rows = np.column_stack([features.toarray(), offsets])
            found, inverse = np.unique(rows, axis=0, return_inverse=True)
            inverse = inverse.ravel()
            self.features: Any = np.ascontiguousarray(found[:, :-1])
            self.offsets = found[:, -1]
        else:
            self.features, self.offsets, inverse = features, offsets, np.arange(len(offsets))
        self.true = np.bincount(inverse, counts * truth, len(self.offsets))
        self.false = np.bincount(inverse, counts * ~truth, len(self.offsets))

    def __call__(self, parameters: FloatArray) -> tuple[float, FloatArray]:
        """Value and gradient."""
        odds = self.features @ parameters + self.offsets
        value = float(self.true @ np.logaddexp(0.0, -odds) + self.false @ np.logaddexp(0.0, odds))
        share = 0.5 * (1.0 + np.tanh(0.5 * odds))
        slope = self.features.T @ ((self.true + self.false) * share - self.true)
        return value / self.total, np.asarray(slope) / self.total


def cell_changes(s: Structure, x: IntArray, base: FloatArray) -> tuple[csr_array, FloatArray]:
    """How counts of cells change when a variable turns from false to true, ``[n, cells]``; and how ``base`` does."""
    factor = np.repeat(np.arange(s.n_factors), np.diff(s.scope_offsets))
    kind, state = s.kind[factor], x[s.scopes]
    literal = np.where(kind == CARDINALITY, literal_of(s.table_strides), s.table_strides)
    counted = kind != TABLE
    here = holds(literal, state) & counted
    total = np.bincount(factor, here, s.n_factors).astype(np.int64)[factor] - here
    cap, parity = caps(s)[factor], kind == PARITY
    if_true, if_false = total + holds(literal, 1), total + holds(literal, 0)
    true = np.where(parity, if_true & 1, np.minimum(if_true, cap))
    false = np.where(parity, if_false & 1, np.minimum(if_false, cap))
    read = np.bincount(factor, np.where(counted, 0, s.table_strides) * state, s.n_factors).astype(np.int64)[factor]
    true = s.table_offsets[factor] + np.where(counted, true, read + s.table_strides * (1 - state))
    false = s.table_offsets[factor] + np.where(counted, false, read - s.table_strides * state)
    moves = np.flatnonzero(true != false)
    variable = s.scopes[moves]
    n = s.n_variables
    ones = np.ones(len(moves))
    rows = np.concatenate([variable, variable])
    cells = np.concatenate([true[moves], false[moves]])
    change = csr_array((np.concatenate([ones, -ones]), (rows, cells)), shape=(n, s.n_cells))
    low, high = base[false[moves]], base[true[moves]]
    with np.errstate(invalid="ignore"):
        step = np.where((low == -np.inf) & (high == -np.inf), 0.0, high - low)
    fixed = np.zeros(n)
    finite = np.isfinite(step)
    fixed += np.bincount(variable[finite], step[finite], n)
    up, down = np.zeros(n, np.bool_), np.zeros(n, np.bool_)
    up[variable[step == np.inf]] = True
    down[variable[step == -np.inf]] = True
    fixed[up], fixed[down] = np.inf, -np.inf
    fixed[up & down] = np.nan
    return change, fixed
