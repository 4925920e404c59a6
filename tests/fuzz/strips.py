"""An oracle for narrow models of many variables: column by column, with every state of a column visited.

Some paths of the library open only for tens of variables (lattice kernels, what ``auto`` does when it does not
enumerate), where visiting every assignment is out of the question. A strip is a model whose variables stand in columns
and whose factors reach over two neighbouring columns at most; sums and maxima over it are products of small matrices.
Like `tests.oracle` it imports nothing of the library and computes in extended precision.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from tests.oracle import Factor, all_states, cell_index

Matrix = np.ndarray


def _add_logs(table: Matrix, axis: int) -> Matrix:
    """Log of the sum of exp along an axis; -inf where all of it is."""
    top = np.maximum(table.max(axis=axis, keepdims=True), np.finfo(float).min)
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(np.exp(table - top).sum(axis=axis)) + top.squeeze(axis))


def _largest(table: Matrix, axis: int) -> Matrix:
    return np.asarray(table.max(axis=axis))


class Strip:
    """What `tests.oracle.Oracle` answers, for a model in columns.

    Parameters
    ----------
    columns
        The variables of each column; together all of them.
    """

    def __init__(
        self,
        cardinalities: Sequence[int],
        factors: Sequence[Factor],
        evidence: Mapping[int, Any],
        columns: Sequence[Sequence[int]],
    ) -> None:
        self.cardinalities, self.columns = list(cardinalities), [list(c) for c in columns]
        self.factors = [(tuple(scope), np.asarray(table, np.float64)) for scope, table in factors]
        self.evidence = dict(evidence)
        self.column = {v: c for c, own in enumerate(self.columns) for v in own}
        self.states = [all_states([self.cardinalities[v] for v in own]) for own in self.columns]

    def _read(self, scope: Sequence[int], table: np.ndarray, columns: Sequence[int]) -> Matrix:
        """A factor's entries for all states of one column, or of two."""
        index: Any = np.zeros((1,) * len(columns), np.int64)
        for v in scope:
            at = columns.index(self.column[v])
            own = self.states[columns[at]][:, self.columns[columns[at]].index(v)]
            index = index * self.cardinalities[v] + np.moveaxis(own.reshape(-1, *[1] * (len(columns) - 1)), 0, at)
        shape = tuple(len(self.states[c]) for c in columns)
        return np.broadcast_to(table.ravel().astype(np.longdouble)[index], shape)

    @cached_property
    def _steps(self) -> tuple[list[Matrix], list[Matrix]]:
        """Scores of the states of each column, and of those of each column with the next."""
        own = [np.zeros(len(s), np.longdouble) for s in self.states]
        between = [
            np.zeros((len(a), len(b)), np.longdouble) for a, b in zip(self.states, self.states[1:], strict=False)
        ]
        evidence = []
        for v, given in self.evidence.items():
            likelihood = np.asarray(given if np.ndim(given) else np.eye(self.cardinalities[v])[given], np.longdouble)
            with np.errstate(divide="ignore"):
                evidence.append(((v,), np.log(likelihood)))
        for scope, table in [*self.factors, *evidence]:
            where = sorted({self.column[v] for v in scope}) or [0]
            if len(where) == 1:
                own[where[0]] += self._read(scope, np.asarray(table), where)
            else:
                assert where[1] == where[0] + 1 and len(where) == 2
                between[where[0]] += self._read(scope, np.asarray(table), where)
        return own, between

    def _passes(self, total: Callable[[Matrix, int], Matrix]) -> tuple[list[Matrix], list[Matrix]]:
        """What comes from the left, unary scores included, and from the right, without them."""
        own, between = self._steps
        left, right = [own[0]], [np.zeros(len(own[-1]), np.longdouble)]
        for step, score in zip(between, own[1:], strict=True):
            left.append(total(left[-1][:, None] + step, 0) + score)
        for step, score in zip(reversed(between), reversed(own[1:]), strict=True):
            right.append(total(step + (score + right[-1])[None, :], 1))
        return left, right[::-1]

    @cached_property
    def _sums(self) -> tuple[list[Matrix], list[Matrix]]:
        return self._passes(_add_logs)

    @cached_property
    def _maxima(self) -> tuple[list[Matrix], list[Matrix]]:
        return self._passes(_largest)

    @cached_property
    def impossible(self) -> bool:
        return bool(self._maxima[0][-1].max() == -np.inf)

    @property
    def best_score(self) -> float:
        return float(self._maxima[0][-1].max())

    @property
    def log_partition(self) -> float:
        return -np.inf if self.impossible else float(_add_logs(self._sums[0][-1], 0))

    def _column_logs(self, c: int) -> Matrix:
        left, right = self._sums
        return np.asarray(left[c] + right[c] - _add_logs(self._sums[0][-1], 0))

    def joint(self, variables: Sequence[int]) -> np.ndarray:
        """Joint distribution of variables of one column."""
        c = self.column[variables[0]]
        p = np.exp(self._column_logs(c))
        return self._gather(variables, c, p / p.sum(), np.add, 0.0)

    def _gather(self, variables: Sequence[int], c: int, values: Matrix, how: Any, start: float) -> np.ndarray:
        result = np.full([self.cardinalities[v] for v in variables], start, np.longdouble)
        at = tuple(self.states[c][:, self.columns[c].index(v)] for v in variables)
        how.at(result, at, values)
        return result.astype(np.float64)

    def marginal(self, variable: int) -> np.ndarray:
        return self.joint([variable])

    def max_marginal(self, variable: int) -> np.ndarray:
        c = self.column[variable]
        left, right = self._maxima
        return self._gather([variable], c, left[c] + right[c], np.maximum, -np.inf)

    def possible(self, variables: Sequence[int]) -> np.ndarray:
        """Which joint states of variables of one column are in some possible assignment."""
        c = self.column[variables[0]]
        left, right = self._maxima
        return np.asarray(self._gather(variables, c, left[c] + right[c], np.maximum, -np.inf) > -np.inf)

    def counts(self, factor: int) -> np.ndarray:
        """Probability that each cell of a factor's table is the one read."""
        scope, table = self.factors[factor]
        where = sorted({self.column[v] for v in scope}) or [0]
        index = self._read(scope, np.arange(table.size), where).astype(np.int64)
        result = np.zeros(table.size, np.longdouble)
        if len(where) == 1:
            np.add.at(result, index, np.exp(self._column_logs(where[0])))
        else:
            (left, right), (own, between), c = self._sums, self._steps, where[0]
            logs = left[c][:, None] + between[c] + (own[c + 1] + right[c + 1])[None, :]
            np.add.at(result, index, np.exp(logs - _add_logs(self._sums[0][-1], 0)))
        return result.reshape(table.shape).astype(np.float64)

    def score(self, assignment: Sequence[int]) -> float:
        """Score of one assignment, with the evidence."""
        row = np.asarray([assignment], np.int64)
        total = np.longdouble(0.0)
        for scope, table in self.factors:
            total += table.ravel().astype(np.longdouble)[cell_index(self.cardinalities, scope, row)[0]]
        for v, given in self.evidence.items():
            if np.ndim(given):
                with np.errstate(divide="ignore"):
                    total += np.log(np.asarray(given, np.longdouble))[row[0, v]]
            elif row[0, v] != given:
                total += -np.inf
        return float(total)

    @property
    def count(self) -> int:
        """Number of possible assignments, in integers."""
        own, between = self._steps
        many = [int(x) for x in np.isfinite(own[0])]
        for step, score in zip(between, own[1:], strict=True):
            free = np.isfinite(step) & np.isfinite(score)[None, :]
            many = [sum(many[a] for a in np.flatnonzero(free[:, b])) for b in range(len(score))]
        return sum(many)
