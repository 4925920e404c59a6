"""Oracles: the most violated output of every example, by what its loss is made of."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from markovfield.arrays import FloatArray
from markovfield.exceptions import ModelError
from markovfield.structured.losses.counts import CountLoss
from markovfield.structured.losses.labels import ZeroOne
from markovfield.structured.losses.loss import Loss, Truth
from markovfield.structured.oracles.decoders import Decoder, Rows

__all__ = ["AdditiveOracle", "CountOracle", "Oracle", "SecondBestOracle", "count_costs", "oracle_of"]


class Oracle:
    """Planes of some examples: features of the truth less those of an output, and the loss of the output.

    Attributes
    ----------
    decoder
        What finds outputs.
    without_truth
        Whether the truth is not among the outputs it chooses from, so that all of these can be worse.
    """

    without_truth: ClassVar[bool] = False

    def __init__(self, decoder: Decoder) -> None:
        self.decoder = decoder

    @property
    def n_examples(self) -> int:
        """How many examples there are."""
        return self.decoder.n_examples

    @property
    def exact(self) -> bool:
        """Whether every answer so far was proven to be the best."""
        return self.decoder.exact

    @property
    def sure(self) -> bool:
        """Whether every answer is the best, without a proof for each."""
        return self.decoder.sure

    @property
    def gap(self) -> float:
        """By how much the planes of the last answer could be higher, all together."""
        return self.decoder.gap

    def planes(self, w: FloatArray, *, losses: bool) -> tuple[Rows, FloatArray]:
        """The highest planes; without ``losses`` those of the outputs of highest score."""
        output, cost = self.worst(w) if losses else (self.decoder.best(w), np.zeros(self.n_examples))
        base = self.decoder.base(output)
        return self.decoder.rows(output), cost if base is None else cost + base

    def worst(self, w: FloatArray) -> tuple[Any, FloatArray]:
        """The outputs of highest score and loss, and their losses."""
        raise NotImplementedError


class AdditiveOracle(Oracle):
    """Losses that add up over variables or parts: costs are added to scores, as exact as decoding is."""

    def __init__(self, decoder: Decoder, costs: FloatArray, before: FloatArray | None = None) -> None:
        super().__init__(decoder)
        self.costs, self.before = costs, np.zeros(decoder.n_examples) if before is None else before

    def worst(self, w: FloatArray) -> tuple[Any, FloatArray]:
        output = self.decoder.best(w, self.costs)
        return output, self.decoder.total(self.costs, output) + self.before


class SecondBestOracle(Oracle):
    """The zero-one loss: the best output, or the second best where the best is the truth."""

    without_truth = True

    def worst(self, w: FloatArray) -> tuple[Any, FloatArray]:
        output = self.decoder.best(w)
        right = np.flatnonzero(~self.decoder.wrong(output))
        if len(right):
            output = self.decoder.other(w, output, right)
        return output, self.decoder.wrong(output).astype(np.float64)


class CountOracle(Oracle):
    """Losses of counts: the decoder finds the best output for every pair of counts."""

    without_truth = True

    def __init__(self, decoder: Any, loss: CountLoss) -> None:
        super().__init__(decoder)
        self.loss, self._search = loss, decoder.by_counts(loss)

    def worst(self, w: FloatArray) -> tuple[Any, FloatArray]:
        output = self._search(w)
        return output, count_costs(self.loss, self.decoder.truth, output)


def count_costs(loss: CountLoss, truth: Truth, states: Any) -> FloatArray:
    """``float64[n_examples]``: a loss of counts at some states."""
    positive = truth.labels != loss.negative
    n_true = np.bincount(truth.examples, positive, truth.n_examples).astype(np.int64)
    predicted = np.bincount(truth.examples, states != loss.negative, truth.n_examples).astype(np.int64)
    right = np.bincount(truth.examples, positive & (states == truth.labels), truth.n_examples).astype(np.int64)
    return np.array(
        [loss.costs(t, n)[r, p] for t, n, r, p in zip(n_true, truth.lengths, right, predicted, strict=True)]
    )


def oracle_of(loss: Loss, decoder: Decoder) -> Oracle:
    """The oracle of a loss for margins that are as large as losses; an error in one sentence where there is none."""
    if isinstance(loss, ZeroOne):
        return SecondBestOracle(decoder)
    of_variables = isinstance(decoder.truth, Truth)
    if isinstance(loss, CountLoss):
        if not hasattr(decoder, "by_counts") or not of_variables:
            raise ModelError(
                f"loss {loss.name!r} is for labels of variables; structures have loss='hamming' or PartLoss"
            )
        return CountOracle(decoder, loss)
    if of_variables:
        costs = loss.state_costs(decoder.truth)
        if costs is None:
            raise ModelError(f"loss {loss.name!r} is for parts of structures; labels have loss='hamming' or a table")
        return AdditiveOracle(decoder, costs)
    found = loss.part_costs(decoder.truth)
    if found is None:
        raise ModelError(f"loss {loss.name!r} does not add up over parts, so that structures cannot be decoded with it")
    return AdditiveOracle(decoder, *found)
