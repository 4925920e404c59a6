"""The structured perceptron (Collins 2002), averaged, and its margin-infused relative (Crammer et al. 2006)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from markovfield._validation import check_method
from markovfield.inference.core.running import STOPS, Running
from markovfield.learning.max_margin.problem import HingeProblem, MarginMinimum, Watch, only_squares

__all__ = ["StructuredPerceptron"]


@dataclass(frozen=True)
class StructuredPerceptron:
    """Features of the truth less those of the best output are added wherever they differ.

    On data that some weights of length 1 separate by a margin m, with differences of features no longer than R, the
    plain perceptron makes at most (R / m)^2 mistakes, whatever their order. There is no regularisation: costs do not
    matter, but for the largest step of ``margin_infused``.

    Parameters
    ----------
    passes
        Over all examples; it ends earlier where a pass makes no mistake.
    averaged
        Whether the weights are the average over all examples seen.
    margin_infused
        Whether steps are as small as they can be for the truth to win by its loss (at most the cost of the example);
        the oracle then is loss-augmented.

    Notes
    -----
    What it ends with says how many mistakes each pass made, and R, as ``mistakes`` and ``radius``.

    Examples
    --------
    >>> import markovfield as mf
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], ["a", "a", "b", "b"]
    >>> svm = mf.MulticlassCRF(objective="hinge", solver=StructuredPerceptron(50, averaged=False), rng=0).fit(X, y)
    >>> svm.predict(X).tolist()
    ['a', 'a', 'b', 'b']
    """

    passes: int = 10
    averaged: bool = True
    margin_infused: bool = False

    name: ClassVar[str] = "perceptron"

    def __post_init__(self) -> None:
        check_method(self, least={"passes": 1})

    def run(self, problem: HingeProblem, *, rng: np.random.Generator, running: Running) -> MarginMinimum:
        """Train; what stops it ends it with the weights so far."""
        only_squares(problem, "StructuredPerceptron")
        watch = Watch(problem, running)
        w, total, seen = np.zeros(problem.n_weights), np.zeros(problem.n_weights), 0
        mistakes: list[int] = []
        radius = 0.0
        message = "as many passes as were asked for"
        try:
            for _ in range(self.passes):
                wrong = 0
                for shard in rng.permutation(len(problem.shards)).tolist():
                    planes = watch.planes(w, shard, losses=self.margin_infused)
                    for k in range(len(planes.blocks)):
                        part = slice(planes.offsets[k], planes.offsets[k + 1])
                        columns, values = planes.columns[part], planes.values[part]
                        seen += 1
                        step, square = 1.0, float(values @ values)
                        if not square:
                            continue
                        radius = max(radius, np.sqrt(square))
                        if self.margin_infused:
                            height = planes.losses[k] - float(w[columns] @ values)
                            step = min(max(height, 0.0) / square, problem.costs[planes.blocks[k]])
                        wrong += 1
                        w[columns] += step * values
                        # The average over all that follow, worked out at the end.
                        total[columns] += seen * step * values
                mistakes.append(wrong)
                watch.note(np.nan, np.nan)
                if not wrong:
                    message = "a pass without a mistake"
                    break
        except STOPS as stop:
            message = str(stop) or "stopped by the keyboard"
        watch.weights = w - total / (seen + 1.0) if self.averaged and seen else w
        watch.primal = np.nan
        return watch.ended(np.nan, -1.0, message, mistakes=tuple(mistakes), radius=radius)
