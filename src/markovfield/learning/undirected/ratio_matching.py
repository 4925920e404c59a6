"""Ratio matching: the squared error of each full conditional (Hyvarinen 2007)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from markovfield.inference.core.running import Running
from markovfield.learning.core.data import DataTable
from markovfield.learning.undirected.local_fit import LocalFit, fit_local
from markovfield.learning.undirected.sites_kernel import RATIO

__all__ = ["RatioMatching"]


@dataclass(frozen=True)
class RatioMatching(LocalFit):
    """The parameters whose full conditionals are closest to what was seen, in squares.

    Minimised is the sum over rows and variables of half the squared distance between p(. | rest) and the state seen:
    for two states (1 - p(y_v | rest))^2, which is Hyvarinen's ratio matching. It is consistent like pseudo-likelihood
    and less moved by outliers, but not convex. It needs complete data; costs are those of `PseudoLikelihood`.

    Parameters
    ----------
    l2, l1, group_l1, penalty, solver, checkpoint
        As for `MaximumLikelihood`.

    Examples
    --------
    >>> import markovfield as mf
    >>> data = mf.sample(mf.Ising((8, 8), coupling=0.3), 500, rng=0)
    >>> fitted = mf.fit(mf.Ising((8, 8), coupling=0.0), data, method="ratio_matching")
    >>> round(fitted.coupling, 2)
    0.3
    """

    name: ClassVar[str] = "ratio_matching"

    def fit(self, model: Any, table: DataTable, *, rng: np.random.Generator, running: Running) -> Any:
        """A new model with the estimated parameters."""
        return fit_local(self, model, table, RATIO, "squared errors of full conditionals", rng, running)
