"""Minus the log-pseudo-likelihood of the pairwise mixed model, as a function of its parameters in one vector."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from markovfield.arrays import FloatArray, IntArray
from markovfield.exceptions import ModelError
from markovfield.learning.mixed.columns import MixedTable
from markovfield.models.mixed.mixed_graphical_model import MixedGraphicalModel
from markovfield.names import VariableName

__all__ = ["MixedProblem"]


@dataclass(frozen=True, eq=False)
class MixedProblem:
    """Data in the shape of the model: real-valued columns standardised, states as indicators.

    Parameters come in one vector: own terms first (linear, diagonal of the precision, fields), then a block for each
    pair, divided by a scale so that ``group_l1 * sqrt(size) * norm`` is the penalty of Lee and Hastie (2013), in which
    every kind of pair has the same chance to come in first.

    Attributes
    ----------
    x, d
        ``float64[rows, p]`` and ``float64[rows, all states]``.
    starts
        Where the indicators of each discrete variable start, and where the last ones end.
    """

    variables: tuple[VariableName, ...]
    states: dict[VariableName, tuple[object, ...]]
    real: tuple[VariableName, ...]
    discrete: tuple[VariableName, ...]
    x: FloatArray
    d: FloatArray
    starts: IntArray
    weights: FloatArray
    middle: FloatArray
    width: FloatArray

    @classmethod
    def of(cls, table: MixedTable) -> MixedProblem:
        """Of complete data without constant columns."""
        real = tuple(v for v in table.variables if v in table.numbers)
        discrete = tuple(v for v in table.variables if v in table.codes)
        share = table.weights / table.weights.sum()
        columns, middle, width = [], [], []
        for v in real:
            m = float(share @ table.numbers[v])
            s = float(np.sqrt(share @ (table.numbers[v] - m) ** 2))
            if s <= 1e-13 * abs(m) or s == 0:
                raise ModelError(f"column {v!r} is constant: leave it out")
            columns.append((table.numbers[v] - m) / s)
            middle.append(m)
            width.append(s)
        blocks = []
        for v in discrete:
            block = np.eye(len(table.states[v]))[table.codes[v]]
            if (share @ block > 0).sum() < 2:
                raise ModelError(f"column {v!r} is constant: leave it out")
            blocks.append(block)
        n = table.n_rows
        return cls(
            table.variables,
            table.states,
            real,
            discrete,
            np.column_stack(columns) if columns else np.zeros((n, 0)),
            np.hstack(blocks) if blocks else np.zeros((n, 0)),
            np.cumsum([0, *(len(table.states[v]) for v in discrete)]),
            table.weights,
            np.array(middle),
            np.array(width),
        )

    def of_rows(self, weights: FloatArray) -> MixedProblem:
        """The same with other weights of the rows."""
        fields = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return MixedProblem(**{**fields, "weights": weights})

    @property
    def sizes(self) -> tuple[int, int]:
        """Numbers of real-valued variables and of all states."""
        return self.x.shape[1], self.d.shape[1]

    @property
    def n_own(self) -> int:
        """Parameters of single variables."""
        p, m = self.sizes
        return 2 * p + m

    @cached_property
    def pairs(self) -> list[tuple[int, int]]:
        """Pairs by position among (real-valued, then discrete) variables."""
        n = len(self.real) + len(self.discrete)
        return [(i, j) for i in range(n) for j in range(i + 1, n)]

    def _cells(self, i: int) -> npt.NDArray[np.int64]:
        """Columns of ``[x, d]`` that belong to a variable."""
        p = len(self.real)
        return np.array([i]) if i < p else p + np.arange(self.starts[i - p], self.starts[i - p + 1])

    @cached_property
    def cells(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64], FloatArray]:
        """Of each parameter of a pair: its row and column in the matrix of all, its group, its scale."""
        share = self.weights / self.weights.sum()
        p = len(self.real)
        spread = [1.0] * p
        for j in range(len(self.discrete)):
            q = share @ self.d[:, self.starts[j] : self.starts[j + 1]]
            spread.append(float(np.sqrt(np.sum(q * (1 - q)))))
        rows, columns, groups, scales = [], [], [], []
        for g, (i, j) in enumerate(self.pairs):
            a, b = self._cells(i), self._cells(j)
            size = len(a) * len(b)
            rows.append(np.repeat(a, len(b)))
            columns.append(np.tile(b, len(a)))
            groups.append(np.full(size, g))
            scales.append(np.full(size, np.sqrt(size) / (spread[i] * spread[j])))
        if not rows:
            empty = np.zeros(0, np.int64)
            return empty, empty, empty, np.zeros(0)
        return np.concatenate(rows), np.concatenate(columns), np.concatenate(groups), np.concatenate(scales)

    def degrees(self, g: int) -> int:
        """Free parameters of a pair."""
        i, j = self.pairs[g]
        a, b = (len(self._cells(k)) for k in (i, j))
        return max(a - 1, 1) * max(b - 1, 1)

    def start(self) -> FloatArray:
        """Own parameters of the independent model; no pairs."""
        p = len(self.real)
        share = self.weights / self.weights.sum()
        own = np.zeros(self.n_own)
        own[p : 2 * p] = 1.0
        q = share @ self.d
        with np.errstate(divide="ignore"):
            own[2 * p :] = np.maximum(np.log(q), -20.0)
        return np.concatenate([own, np.zeros(len(self.cells[0]))])

    def matrix(self, theta: FloatArray) -> FloatArray:
        """Pairs as a symmetric matrix over ``[x, d]``; of two real-valued variables minus the precision's entry."""
        rows, columns, _, scale = self.cells
        n = sum(self.sizes)
        found = np.zeros((n, n))
        found[rows, columns] = theta[self.n_own :] * scale
        return found + found.T

    def __call__(self, theta: FloatArray) -> tuple[float, FloatArray]:
        """Value and gradient, by the weights of the rows; infinite where a variance would be negative."""
        p, m = self.sizes
        linear, own, fields = theta[:p], theta[p : 2 * p], theta[2 * p : self.n_own]
        if not (own > 1e-10).all():
            return np.inf, np.zeros_like(theta)
        rows, columns, _, scale = self.cells
        matrix = self.matrix(theta)
        z = np.hstack([self.x, self.d])
        inputs = z @ matrix
        w = self.weights
        value, slope = 0.0, np.zeros((len(w), p + m))
        gradient = np.zeros_like(theta)
        if p:
            left = self.x * own - (linear + inputs[:, :p])
            error = left / own
            value += float(np.sum(w[:, None] * (0.5 * left * error - 0.5 * np.log(own) + 0.5 * np.log(2 * np.pi))))
            slope[:, :p] = -error * w[:, None]
            gradient[:p] = slope[:, :p].sum(axis=0)
            gradient[p : 2 * p] = w @ (error * self.x - 0.5 * error**2 - 0.5 / own)
        for a, b in zip(self.starts[:-1], self.starts[1:], strict=True):
            scores = fields[a:b] + inputs[:, p + a : p + b]
            scores = scores - scores.max(axis=1, keepdims=True)
            chances = np.exp(scores)
            total = chances.sum(axis=1, keepdims=True)
            truth = self.d[:, a:b]
            value += float(w @ (np.log(total[:, 0]) - np.sum(truth * scores, axis=1)))
            slope[:, p + a : p + b] = (chances / total - truth) * w[:, None]
        gradient[2 * p : self.n_own] = slope[:, p:].sum(axis=0)
        crossed = z.T @ slope
        gradient[self.n_own :] = (crossed[rows, columns] + crossed[columns, rows]) * scale
        return value, gradient

    def model(self, theta: FloatArray) -> MixedGraphicalModel:
        """The model in the units of the data, tables centred."""
        p, _ = self.sizes
        matrix = self.matrix(theta)
        precision = np.diag(theta[p : 2 * p]) - matrix[:p, :p]
        precision = precision / np.outer(self.width, self.width)
        linear = theta[:p] / self.width + precision @ self.middle
        shifts, fields = {}, {}
        for j, v in enumerate(self.discrete):
            block = slice(p + self.starts[j], p + self.starts[j + 1])
            table = matrix[block, :p] / self.width
            # What all states have in common belongs to the linear term.
            linear = linear + table.mean(axis=0)
            shifts[v] = table - table.mean(axis=0)
            fields[v] = theta[2 * p + self.starts[j] : 2 * p + self.starts[j + 1]] - shifts[v] @ self.middle
        couplings = {}
        for j, v in enumerate(self.discrete):
            for r in range(j + 1, len(self.discrete)):
                a, b = (slice(p + self.starts[k], p + self.starts[k + 1]) for k in (j, r))
                table = matrix[a, b]
                if table.any():
                    across, down = table.mean(axis=1), table.mean(axis=0)
                    couplings[v, self.discrete[r]] = table - across[:, None] - down + table.mean()
                    fields[v] = fields[v] + across
                    fields[self.discrete[r]] = fields[self.discrete[r]] + down
        fields = {v: f - f.mean() for v, f in fields.items()}
        known = {v: self.states.get(v) for v in self.variables}
        return MixedGraphicalModel(
            known, precision=precision, linear=linear, shifts=shifts, fields=fields, couplings=couplings
        )
