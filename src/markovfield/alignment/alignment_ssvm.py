"""Word alignment learnt from links by margins: a structural SVM on matchings, as an estimator."""

from __future__ import annotations

from typing import Any

from markovfield.alignment.alignment_crf import AlignmentCRF
from markovfield.structured.margin_fit import checked_cost
from markovfield.structured.objectives.hinge import Hinge

__all__ = ["AlignmentSSVM"]


class AlignmentSSVM(AlignmentCRF):
    """Word alignment as matching by a structural SVM (Taskar, Lacoste-Julien and Klein 2005; Murphy 19.7).

    Inputs, outputs and features are those of `AlignmentCRF`. Minimised is ``1/2 |w|^2 + C sum_i hinge_i``, the loss
    being the number of links that only one of both has; decoding is exact.

    Parameters
    ----------
    C
        What hinges cost beside the squares of weights, above 0.
    loss, rescaling
        As those of `Hinge`; `PartLoss` has prices for links that are missing or wrong.
    solver, batch_size, rng, n_jobs
        As those of `markovfield.structured.GraphSSVM`.

    Examples
    --------
    >>> pairs = [("the house".split(), "la maison".split()), ("a house".split(), "une maison".split())]
    >>> pairs += [("the old book".split(), "le vieux livre".split()), ("a book".split(), "un livre".split())]
    >>> links = [[(0, 0), (1, 1)], [(0, 0), (1, 1)], [(0, 0), (1, 1), (2, 2)], [(0, 0), (1, 1)]]
    >>> svm = AlignmentSSVM(1.0, rng=0).fit(pairs, links)
    >>> svm.predict([("the old house".split(), "la vieille maison".split())])
    [[(0, 0), (1, 1), (2, 2)]]
    """

    possible, exact_limit, l1 = "likeliest", 1e5, 0.0

    def __init__(
        self,
        C: float = 1.0,
        *,
        loss: Any = "links",
        rescaling: str = "margin",
        solver: Any = "auto",
        batch_size: int | None = None,
        rng: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.C = C
        self.loss = loss
        self.rescaling = rescaling
        self.solver = solver
        self.batch_size = batch_size
        self.rng = rng
        self.n_jobs = n_jobs

    @property
    def objective(self) -> Hinge:  # type: ignore[override]
        """The hinge."""
        return Hinge(self.loss, self.rescaling)

    @property
    def l2(self) -> float:  # type: ignore[override]
        """``1 / C``."""
        return 1.0 / checked_cost(self.C, "AlignmentSSVM")
