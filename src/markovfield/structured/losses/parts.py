"""Losses of structures: parts that only one of two has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from markovfield._validation import check_method
from markovfield.arrays import FloatArray
from markovfield.structured.losses.loss import Loss, TrueParts

__all__ = ["PartLoss"]


@dataclass(frozen=True)
class PartLoss(Loss):
    """Parts that one structure has and the other has not: labelled spans, arcs, links, segments.

    By name, ``"spans"`` and ``"links"`` count both (brackets that are missing or wrong; links on which two alignments
    disagree), and ``"arcs"`` only wrong ones, as each word has one head.

    Parameters
    ----------
    missing, wrong
        What each true part that is not there costs, and each that is there and not true.
    normalised
        Whether to divide by the number of true parts.

    Examples
    --------
    >>> import numpy as np
    >>> truth = TrueParts(np.array([1, 3]), np.zeros(4, int), np.ones(4, bool), 1)
    >>> added, before = PartLoss(missing=2.0).part_costs(truth)
    >>> added.tolist(), before.tolist()
    ([1.0, -2.0, 1.0, -2.0], [4.0])
    """

    missing: float = 1.0
    wrong: float = 1.0
    normalised: bool = False

    name: ClassVar[str] = "parts"

    def __post_init__(self) -> None:
        check_method(self, least={"missing": 0.0, "wrong": 0.0})

    def part_costs(self, truth: TrueParts) -> tuple[FloatArray, FloatArray]:
        # All true parts are missing until a structure has them.
        cells = truth.cells[truth.counted[truth.cells]]
        many = np.bincount(truth.examples[cells], minlength=truth.n_examples)
        added = np.where(truth.counted, self.wrong, 0.0)
        added[cells] = -self.missing
        before = self.missing * many.astype(np.float64)
        if self.normalised:
            share = 1.0 / np.maximum(many, 1)
            return np.where(truth.counted, added * share[truth.examples], 0.0), before * share
        return added, before
