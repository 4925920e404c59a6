"""Slack rescaling: the output of highest ``loss (1 + score - score of the truth)`` by a search over margins.

No dynamic program has products of sums, but decoding with ``lambda * loss`` added to scores finds the corners of all
pairs (loss, score), and every answer bounds them all: no output of loss L scores more than ``value(lambda) - lambda L``
(Choi, Meshi and Srebro 2016). The search goes on where that bound leaves room for a better product; where none is left,
the best that was seen is proven to be the best, and where a lambda tells nothing new, it is not.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from markovfield.arrays import FloatArray
from markovfield.structured.oracles.decoders import Decoder, Rows
from markovfield.structured.oracles.oracles import AdditiveOracle, Oracle

__all__ = ["SlackOracle"]

# Below this share of what is compared, numbers are equal.
EQUAL = 1e-9
# Questions for each example, most of which are settled after five.
MOST_QUESTIONS = 40


class _Search:
    """What is known of the pairs (loss, 1 + score less that of the truth) of one example."""

    def __init__(self, whole: bool) -> None:
        self.whole = whole
        self.points: list[tuple[float, float]] = [(0.0, 1.0)]  # the truth
        self.lines: list[tuple[float, float]] = []
        self.best = 0.0
        self.bound, self.at = np.inf, 0.0

    def learn(self, factor: float, loss: float, height: float) -> bool:
        """An answer to a question; whether its product is the best so far."""
        self.points.append((loss, height))
        self.lines.append((factor, height + factor * loss))
        better = loss * height > self.best
        self.best = max(self.best, loss * height)
        return better

    def next(self, largest: float) -> float | None:
        """The factor to ask next; None where the best is proven, or nothing more can be learnt."""
        factors, values = np.array(self.lines).T
        if self.whole:
            losses = np.arange(1.0, np.floor(largest + EQUAL) + 1.0)
        else:
            cross = [np.array([largest])]
            with np.errstate(divide="ignore", invalid="ignore"):
                cross.append(values / (2.0 * factors))
                cross.append(((values[:, None] - values) / (factors[:, None] - factors)).ravel())
            losses = np.concatenate(cross)
            losses = losses[np.isfinite(losses) & (losses > 0.0) & (losses <= largest)]
        if not len(losses):
            self.bound = self.best
            return None
        products = losses * (values - np.outer(losses, factors)).min(axis=1)
        k = int(products.argmax())
        self.bound, self.at = float(products[k]), float(losses[k])
        if self.proven:
            return None
        below = max((p for p in self.points if p[0] <= self.at), key=lambda p: (p[0], p[1]))
        above = [p for p in self.points if p[0] > self.at]
        if not above:
            # Nothing of a larger loss: how high is this one?
            return float(2.0 * factors.max() + 1.0) if len(self.lines) < MOST_QUESTIONS // 2 else None
        over = min(above, key=lambda p: (p[0], -p[1]))
        factor = max((below[1] - over[1]) / (over[0] - below[0]), 0.0)
        known = np.abs(factors - factor) <= EQUAL * max(1.0, factor)
        return None if known.any() else float(factor)

    @property
    def proven(self) -> bool:
        """Whether nothing can be better than the best."""
        return self.bound <= self.best + EQUAL * max(1.0, abs(self.best))


class SlackOracle(Oracle):
    """Slack rescaling of a loss that adds up; see this file's first lines.

    Attributes
    ----------
    exact
        Whether decoding was exact and every answer so far was proven to be the best.
    """

    # Where no product is above 0, which is that of the truth, any output is as good.
    without_truth = True

    def __init__(self, inner: AdditiveOracle) -> None:
        super().__init__(inner.decoder)
        self.inner, self._proven, self._gap = inner, True, 0.0
        costs = inner.costs
        self._whole = bool((costs == np.round(costs)).all() and (inner.before == np.round(inner.before)).all())
        output = self.decoder.best(np.zeros(self.decoder.n_weights), self._scaled(1e6))
        self._largest = self._loss(output)

    @property
    def exact(self) -> bool:
        """Whether decoding was exact and every answer so far was proven to be the best."""
        return self.decoder.exact and self._proven

    @property
    def sure(self) -> bool:
        """No: each answer is proven, or not."""
        return False

    @property
    def gap(self) -> float:
        """By how much the planes of the last answer could be higher, all together."""
        return self._gap + self.decoder.gap

    def _scaled(self, factors: Any) -> FloatArray:
        spread = np.broadcast_to(np.asarray(factors, np.float64), (self.n_examples,))
        return np.asarray(self.inner.costs * spread[self.decoder.slots])

    def _loss(self, output: Any) -> FloatArray:
        return self.decoder.total(self.inner.costs, output) + self.inner.before

    def planes(self, w: FloatArray, *, losses: bool) -> tuple[Rows, FloatArray]:
        """Planes are scaled by losses: features, and what scores without weights say."""
        if not losses:
            return super().planes(w, losses=False)
        output, cost = self.worst(w)
        rows, base = self.decoder.rows(output), self.decoder.base(output)
        scaled = Rows(rows.offsets, rows.columns, rows.values * np.repeat(cost, np.diff(rows.offsets)))
        return scaled, cost if base is None else cost * (1.0 + base)

    def worst(self, w: FloatArray) -> tuple[Any, FloatArray]:
        """The outputs of highest product, and their losses."""
        decoder: Decoder = self.decoder
        searches = [_Search(self._whole) for _ in range(self.n_examples)]
        factors: list[float | None] = [1.0] * self.n_examples
        found: Any = None
        for _ in range(MOST_QUESTIONS):
            asked = np.array([0.0 if f is None else f for f in factors])
            output = decoder.best(w, self._scaled(asked))
            heights, loss, base = 1.0 - decoder.rows(output).products(w), self._loss(output), decoder.base(output)
            if base is not None:
                heights = heights + base
            better = np.zeros(self.n_examples, np.bool_)
            for i, search in enumerate(searches):
                if factors[i] is not None:
                    better[i] = search.learn(float(asked[i]), float(loss[i]), float(heights[i]))
                    factors[i] = search.next(float(self._largest[i]))
            found = output if found is None else decoder.merged(found, output, better)
            if all(f is None for f in factors):
                break
        self._gap = float(sum(max(s.bound - s.best, 0.0) for s in searches if not s.proven))
        self._proven = self._proven and all(s.proven for s in searches)
        return found, self._loss(found)
