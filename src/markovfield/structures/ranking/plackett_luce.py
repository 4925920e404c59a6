"""Plackett and Luce's distribution of rankings: the first is chosen, then the second of those left, and so on."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from markovfield._validation import generator_of, whole_number
from markovfield.arrays import FloatArray, IntArray
from markovfield.exceptions import ModelError
from markovfield.frames import Tabular
from markovfield.structures.core.form import listed, score_array

__all__ = ["PlackettLuce"]

# Items whose subsets are gone through for exact probabilities of positions.
MOST_ITEMS = 18


class PlackettLuce(Tabular):
    """Rankings by choices: each next item is one of those left, with probabilities in proportion to exp(score).

    It is no form with scores of parts, as what a choice costs depends on all that was chosen before; but it needs no
    sum over rankings: the probability of one is a product of softmaxes, and draws are exact at any size, where those of
    `Ranking` are not to be had.

    Parameters
    ----------
    scores
        ``float[n]``: finite scores of items.
    top
        How many are ranked; all when None.

    Notes
    -----
    A draw sorts scores with Gumbel noise added (Yellott 1977), ``n log n``. Probabilities of positions go through all
    subsets of at most ``top`` items, and are exact; above 18 items they are refused, and draws can estimate them.

    Examples
    --------
    >>> choices = PlackettLuce([2.0, 0.0, 1.0])
    >>> choices.decode()
    [0, 2, 1]
    >>> round(choices.log_probability([0, 2, 1]), 4)
    -0.7209
    >>> choices.positions().round(2).tolist()
    [[0.67, 0.28, 0.05], [0.09, 0.21, 0.7], [0.24, 0.51, 0.24]]
    >>> choices.sample(2, rng=0).shape
    (2, 3)
    """

    def __init__(self, scores: npt.ArrayLike, *, top: int | None = None) -> None:
        self.scores: FloatArray = score_array(scores, "scores of items", 1)
        n = len(self.scores)
        if not n or not np.isfinite(self.scores).all():
            raise ModelError(f"PlackettLuce needs finite scores of one item at least, got {n} scores")
        self.top = n if top is None else whole_number(top, "top", 1, n)

    def _columns(self, limit: int | None = None) -> dict[Any, Any]:
        return {"item": list(range(len(self.scores)))[:limit], "score": self.scores[:limit]}

    def __repr__(self) -> str:
        return f"PlackettLuce of the first {self.top} of {len(self.scores)} items"

    def decode(self) -> list[int]:
        """The most probable ranking: by falling scores."""
        return [int(i) for i in np.argsort(-self.scores, kind="stable")[: self.top]]

    def log_probability(self, ranking: Any) -> float:
        """Of a ranking: ``top`` different items, the first one first."""
        order, left = self._steps(ranking)
        return float(np.sum(self.scores[order] - left))

    def gradient(self, ranking: Any) -> FloatArray:
        """``float64[n]``: the derivative of the log-probability of a ranking by the scores."""
        order, left = self._steps(ranking)
        n, k = len(self.scores), self.top
        last = np.full(n, k)  # the last step at which an item was still there, plus one
        last[order] = np.arange(1, k + 1)
        there = np.arange(k)[None, :] < last[:, None]
        logs = np.where(there, self.scores[:, None] - left[None, :], -np.inf)
        found = -np.exp(logs).sum(axis=1)
        found[order] += 1.0
        return np.asarray(found)

    def _steps(self, ranking: Any) -> tuple[IntArray, FloatArray]:
        """The items, checked, and at each step the log of the sum over all that are left."""
        order = np.array([i for (i,) in listed(ranking, (1,), "items")], np.int64)
        n, k = len(self.scores), self.top
        if len(order) != k or len(set(order.tolist())) != k or not ((order >= 0) & (order < n)).all():
            raise ModelError(f"a ranking has {k} different items from 0 to {n - 1}, got {order.tolist()}")
        rest = np.setdiff1d(np.arange(n), order)
        backwards = np.concatenate([self.scores[rest], self.scores[order[::-1]]])
        sums = np.logaddexp.accumulate(backwards)[::-1]
        return order, sums[:k]

    def sample(self, size: int, *, rng: Any = None) -> IntArray:
        """``int64[size, top]``: independent draws, exact."""
        n = whole_number(size, "size", 0)
        noisy = self.scores + generator_of(rng).gumbel(size=(n, len(self.scores)))
        return np.argsort(-noisy, axis=1)[:, : self.top]

    def positions(self) -> FloatArray:
        """``float64[n, top]``: the probability of item i at position p, exactly."""
        n = len(self.scores)
        if n > MOST_ITEMS:
            raise ModelError(
                f"probabilities of positions go through all subsets of items, for {MOST_ITEMS} items at most, got {n}: "
                "estimate them from draws"
            )
        weights = np.exp(self.scores - self.scores.max())
        members = (np.arange(2**n)[:, None] >> np.arange(n)) & 1
        left = (1 - members) @ weights
        sizes = members.sum(axis=1)
        chosen = np.zeros(2**n)  # the probability that a set is the first of its size
        chosen[0] = 1.0
        found = np.zeros((n, self.top))
        for p in range(self.top):
            sets = np.flatnonzero(sizes == p)
            for i in range(n):
                own = sets[members[sets, i] == 0]
                moved = chosen[own] * weights[i] / left[own]
                found[i, p] = moved.sum()
                chosen[own | (1 << i)] += moved
        return found
