"""A brute-force oracle: it visits every assignment and imports nothing of the library under test.

Variables are positions ``0 .. n-1``. A factor is a pair ``(scope, log_table)``; the axes of the table follow
the scope, last axis fastest, and a variable may be named twice. A table of more than 64 axes is given flat.
Sums run in extended precision, shifted by the largest score, so potentials of e^1000 and e^-1000 do no harm.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from itertools import product

import numpy as np

Factor = tuple[Sequence[int], np.ndarray]
Evidence = Mapping[int, "int | np.ndarray"]


class Impossible(ArithmeticError):
    """The evidence has probability zero, so nothing can be conditioned on it."""


def all_states(cardinalities: Sequence[int]) -> np.ndarray:
    """Every assignment, ``int64[product of cardinalities, n]``, last variable fastest."""
    total = 1
    for card in cardinalities:
        total *= int(card)
    states = np.empty((total, len(cardinalities)), np.int64)
    rest = np.arange(total)
    for v in range(len(cardinalities) - 1, -1, -1):
        states[:, v] = rest % cardinalities[v]
        rest = rest // cardinalities[v]
    return states


def cell_index(cardinalities: Sequence[int], scope: Sequence[int], states: np.ndarray) -> np.ndarray:
    """Flat index, last axis fastest, of the cell each assignment reads in a table over ``scope``."""
    index = np.zeros(len(states), np.int64)
    for v in scope:
        index = index * cardinalities[v] + states[:, v]
    return index


class Oracle:
    """All answers about a product of factors, given evidence, by visiting every assignment.

    Parameters
    ----------
    cardinalities
        Number of states of each variable.
    factors
        Pairs of scope and table of log-potentials.
    evidence
        Position to state index, or to a vector of likelihoods (at least zero, not logs).
    """

    def __init__(self, cardinalities: Sequence[int], factors: Iterable[Factor], evidence: Evidence | None = None):
        self.cardinalities = [int(c) for c in cardinalities]
        self.factors = [(tuple(scope), np.asarray(table, np.float64)) for scope, table in factors]
        self.evidence = dict(evidence or {})
        for scope, table in self.factors:
            size = 1
            for v in scope:
                size *= self.cardinalities[v]
            assert table.size == size, f"table of {table.size} cells over {scope}"
        self.states = all_states(self.cardinalities)

    @cached_property
    def allowed(self) -> np.ndarray:
        """Which assignments agree with the hard evidence."""
        keep = np.ones(len(self.states), bool)
        for v, given in self.evidence.items():
            if np.ndim(given) == 0:
                keep &= self.states[:, v] == given
        return keep

    @cached_property
    def scores(self) -> np.ndarray:
        """Log-potential of every assignment with the evidence; -inf where it is ruled out."""
        total = np.zeros(len(self.states), np.longdouble)
        for scope, table in self.factors:
            total += table.ravel().astype(np.longdouble)[cell_index(self.cardinalities, scope, self.states)]
        for v, given in self.evidence.items():
            if np.ndim(given) == 1:
                likelihood = np.asarray(given, np.longdouble)
                with np.errstate(divide="ignore"):
                    total += np.log(likelihood)[self.states[:, v]]
        total[~self.allowed] = -np.inf
        return total

    # Sums

    @cached_property
    def impossible(self) -> bool:
        """Whether every assignment is ruled out."""
        return not bool(np.isfinite(self.scores).any())

    @cached_property
    def _weights(self) -> tuple[np.ndarray, np.longdouble, np.longdouble]:
        if self.impossible:
            raise Impossible("the evidence has probability zero")
        top = self.scores.max()
        weights = np.exp(self.scores - top)
        return weights, weights.sum(), top

    @cached_property
    def probabilities(self) -> np.ndarray:
        """Probability of every assignment."""
        weights, total, _ = self._weights
        return weights / total

    @property
    def log_partition(self) -> float:
        """log of the sum of exp(score); -inf when impossible."""
        if self.impossible:
            return -np.inf
        _, total, top = self._weights
        return float(top + np.log(total))

    def _sum_by(self, weights: np.ndarray, variables: Sequence[int]) -> np.ndarray:
        shape = [self.cardinalities[v] for v in variables]
        size = int(np.prod([1, *shape]))
        result = np.zeros(size, np.longdouble)
        np.add.at(result, cell_index(self.cardinalities, variables, self.states), weights)
        return result.reshape(shape) if len(shape) <= 64 else result

    def joint(self, variables: Sequence[int]) -> np.ndarray:
        """Joint distribution of some variables, axes in the order given."""
        return self._sum_by(self.probabilities, variables).astype(np.float64)

    def marginal(self, variable: int) -> np.ndarray:
        """Distribution of one variable."""
        return self.joint([variable])

    @property
    def marginals(self) -> list[np.ndarray]:
        """Distribution of each variable."""
        return [self.marginal(v) for v in range(len(self.cardinalities))]

    def counts(self, factor: int) -> np.ndarray:
        """Probability that each cell of a factor's table is the one read, shaped like the table."""
        scope, table = self.factors[factor]
        # A repeated variable leaves the cells off the diagonal at zero.
        result = np.zeros(table.size, np.longdouble)
        np.add.at(result, cell_index(self.cardinalities, scope, self.states), self.probabilities)
        return result.reshape(table.shape).astype(np.float64)

    def expectation(self, values: Sequence[np.ndarray]) -> float:
        """Expected sum over factors of ``values[f]`` (shaped like each table) at the cell read."""
        total = np.zeros(len(self.states), np.longdouble)
        for (scope, _), table in zip(self.factors, values, strict=True):
            total += np.ravel(table).astype(np.longdouble)[cell_index(self.cardinalities, scope, self.states)]
        support = self.probabilities > 0
        return float((self.probabilities[support] * total[support]).sum())

    @property
    def entropy(self) -> float:
        """Entropy of the distribution in nats."""
        p = self.probabilities[self.probabilities > 0]
        return float(-(p * np.log(p)).sum())

    def probability(self, event: Mapping[int, Iterable[int]]) -> float:
        """Probability that each named variable is in its set of states."""
        inside = np.ones(len(self.states), bool)
        for v, states in event.items():
            inside &= np.isin(self.states[:, v], list(states))
        return float(self.probabilities[inside].sum())

    # Extremes

    @property
    def best_score(self) -> float:
        """The largest score; -inf when impossible."""
        return float(self.scores.max())

    def score(self, assignment: Sequence[int]) -> float:
        """Score of one assignment, with the evidence."""
        at = cell_index(self.cardinalities, range(len(self.cardinalities)), np.asarray([assignment], np.int64))
        return float(self.scores[at[0]])

    def maximisers(self, tolerance: float = 1e-9) -> set[tuple[int, ...]]:
        """All assignments within ``tolerance`` of the best score."""
        near = self.scores >= self.scores.max() - tolerance
        return {tuple(int(s) for s in row) for row in self.states[near]}

    def n_best(self, k: int) -> list[float]:
        """The k largest scores in falling order (fewer when fewer assignments are possible)."""
        finite = np.sort(self.scores[np.isfinite(self.scores)])[::-1]
        return [float(s) for s in finite[:k]]

    @property
    def lowest_score(self) -> float:
        """The smallest finite score among the possible assignments; +inf when there are none."""
        finite = self.scores[np.isfinite(self.scores)]
        return float(finite.min()) if len(finite) else np.inf

    def max_marginal(self, variable: int) -> np.ndarray:
        """For each state of a variable, the best score of an assignment that has it."""
        result = np.full(self.cardinalities[variable], -np.inf, np.longdouble)
        np.maximum.at(result, self.states[:, variable], self.scores)
        return result.astype(np.float64)

    def marginal_map(self, variables: Sequence[int], tolerance: float = 1e-9) -> tuple[float, set[tuple[int, ...]]]:
        """Best log of the summed potential of a configuration of ``variables``, and every one near it."""
        weights, _, top = self._weights
        summed = self._sum_by(weights, variables)
        with np.errstate(divide="ignore"):
            logs = np.log(summed) + top
        best = logs.max()
        near = np.argwhere(logs >= best - tolerance)
        return float(best), {tuple(int(s) for s in row) for row in near}

    @property
    def count(self) -> int:
        """Number of assignments with a potential above zero."""
        return int(np.isfinite(self.scores).sum())


def literal_table(cardinalities: Sequence[int], literals: Sequence[tuple[int, int, bool]]) -> np.ndarray:
    """Truth table of a clause: a literal is (axis, state, whether having the state satisfies it)."""
    table = np.zeros(tuple(cardinalities), bool)
    for states in product(*(range(c) for c in cardinalities)):
        table[states] = any((states[axis] == state) == positive for axis, state, positive in literals)
    return table
