"""Neighbourhood selection: the neighbours of each variable by a lasso regression on all others."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from markovfield._validation import check_method
from markovfield.arrays import FloatArray
from markovfield.inference.core.limits import memory_limit_bytes
from markovfield.inference.core.running import Running
from markovfield.kernels.interpreter import CELL, small
from markovfield.learning.core.learned_graph import LearnedGraph
from markovfield.learning.gaussian.learned import learned_graph
from markovfield.learning.gaussian.moments import GaussianMoments, guard_dense, read_moments
from markovfield.learning.gaussian.neighbourhood_kernel import regress_all

__all__ = ["NeighbourhoodSelection"]

# Multiplications in one call of the kernel, between which the clock is looked at.
CHUNK = 3e8


@dataclass(frozen=True)
class NeighbourhoodSelection:
    """The graph of a Gaussian by a lasso regression of each variable on all others (Meinshausen and Buehlmann 2006).

    Each standardised variable j has slopes b that minimise half the mean squared residual plus ``penalty`` times the
    sum of their absolute values; its neighbours are where they are not zero. The regressions need not agree, which
    ``rule`` settles. No precision comes of it: `markovfield.fit` of ``to_network()`` gives one.

    Parameters
    ----------
    penalty
        On the scale of correlations; None takes that of `level`.
    level
        The probability, at most and for many rows, of joining two variables that no path joins: the penalty is
        ``z / sqrt(rows)``, z the quantile that a normal variate exceeds with probability ``level / (2 variables^2)``.
    rule
        ``"and"``: edges where each is among the other's neighbours; ``"or"``: where one is.
    tolerance
        How far a derivative may be from where it should, as a correlation.
    max_iterations
        Sweeps of one regression.
    memory_limit
        For dense matrices: three of n by n numbers are kept.

    Examples
    --------
    >>> import numpy as np
    >>> import markovfield as mf
    >>> x = np.random.default_rng(0).standard_normal((500, 5))
    >>> for v in range(1, 5):
    ...     x[:, v] += 0.5 * x[:, v - 1]
    >>> rows = dict(zip("abcde", x.T))
    >>> mf.learn_structure(rows, method="neighbourhood_selection").edges
    (('a', 'b'), ('b', 'c'), ('c', 'd'), ('d', 'e'))
    """

    name: ClassVar[str] = "neighbourhood_selection"
    form: ClassVar[str] = "GaussianMoments"
    verbs: ClassVar[frozenset[str]] = frozenset({"learn_structure"})

    penalty: float | None = None
    level: float = 0.05
    rule: Literal["and", "or"] = "and"
    tolerance: float = 1e-8
    max_iterations: int = 10_000
    memory_limit: str | float | None = None

    def __post_init__(self) -> None:
        check_method(
            self,
            least={"max_iterations": 1},
            above={"penalty": 0, "level": 0, "tolerance": 0},
            below={"penalty": math.inf, "level": 1},
            choices={"rule": ("and", "or")},
        )
        memory_limit_bytes(self.memory_limit)

    def learn(self, data: Any, *, weights: Any, running: Running, rng: np.random.Generator) -> LearnedGraph:
        """Fit all regressions, join the neighbourhoods."""
        moments = read_moments(data, weights=weights, what=self.name)
        n = moments.n_variables
        guard_dense(n, "NeighbourhoodSelection", 3, self.memory_limit)
        penalty = self._penalty(moments) if self.penalty is None else self.penalty
        slopes, lost = np.zeros((n, n)), 0
        s = moments.correlation
        with small(CELL * n**2 * 20):
            step = max(1, int(CHUNK / (20.0 * n * n)))
            for first in range(0, n, step):
                running.check()
                last = min(first + step, n)
                lost += regress_all(s, penalty, first, last, self.tolerance, self.max_iterations, slopes)
        return self._answer(moments, slopes, penalty, lost)

    def _penalty(self, moments: GaussianMoments) -> float:
        from scipy.special import ndtri

        n = moments.n_variables
        return -float(ndtri(self.level / (2.0 * n * n))) / math.sqrt(moments.n_rows)

    def _answer(self, moments: GaussianMoments, slopes: FloatArray, penalty: float, lost: int) -> LearnedGraph:
        there = slopes != 0
        joined = np.triu(there & there.T if self.rule == "and" else there | there.T, 1)
        pairs = np.argwhere(joined).tolist()
        both = slopes * slopes.T
        # The geometric mean of the two slopes of standardised variables is a partial correlation.
        strength = [float(np.sign(slopes[a, b] + slopes[b, a]) * math.sqrt(max(both[a, b], 0.0))) for a, b in pairs]
        if self.rule == "or":
            strength = [
                w if both[a, b] > 0 else float(slopes[a, b] + slopes[b, a]) / 2
                for (a, b), w in zip(pairs, strength, strict=True)
            ]
        s = moments.correlation
        value = 0.5 * float(((slopes @ s) * slopes).sum() - 2 * (slopes * s).sum()) + penalty * float(
            np.abs(slopes).sum()
        )
        names = moments.variables
        return learned_graph(
            moments,
            None,
            [(names[a], names[b]) for a, b in pairs],
            strength,
            method=self.name,
            score=-value - 0.5 * moments.n_variables,
            score_name="minus the objective",
            converged=not lost,
            stopped="max_iterations" if lost else None,
            notes=(f"the penalty was {penalty:.4g}",),
            details={"penalty": penalty, "slopes": slopes},
        )
