"""Maximum pseudo-likelihood: each variable given all others (Murphy 19.49, Besag 1975)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from markovfield.inference.core.running import Running
from markovfield.learning.core.data import DataTable
from markovfield.learning.undirected.dense_spins import dense_model, fit_dense
from markovfield.learning.undirected.local_fit import LocalFit, fit_local
from markovfield.learning.undirected.sites_kernel import PSEUDO

__all__ = ["PseudoLikelihood"]


@dataclass(frozen=True)
class PseudoLikelihood(LocalFit):
    """The parameters that make each variable most likely given all others, with no log Z to compute.

    Minimised is ``-sum over rows and variables of log p(y_v | rest) + l1 |w|_1 + (l2/2) |w|^2``: convex, and consistent
    where the model is right, with larger standard errors than maximum likelihood; equal to it for independent variables
    (and for Gaussian fields). It needs complete data. Where a neighbour predicts a variable perfectly, other
    influences are not learned (Murphy 19.5.4), and without a penalty the optimum is at infinity; the report says so.

    An evaluation costs the distinct configurations of each variable's neighbours, at most the rows, times its factors
    and states. Fully connected machines (`Hopfield`, `BoltzmannMachine` without hidden units) take two products of
    matrices, or less where there are fewer patterns than neurons.

    Parameters
    ----------
    l2, l1, group_l1, penalty, solver, checkpoint
        As for `MaximumLikelihood`.

    Examples
    --------
    >>> import markovfield as mf
    >>> truth = mf.Ising((8, 8), coupling=0.3)
    >>> data = mf.sample(truth, 500, rng=0)
    >>> fitted = mf.fit(mf.Ising((8, 8), coupling=0.0), data, method=mf.methods.PseudoLikelihood())
    >>> round(fitted.coupling, 2)
    0.3
    """

    name: ClassVar[str] = "pseudo_likelihood"

    def fit(self, model: Any, table: DataTable, *, rng: np.random.Generator, running: Running) -> Any:
        """A new model with the estimated parameters."""
        if dense_model(model) and not (self.l1 or self.group_l1 or self.penalty is not None):
            return fit_dense(self, model, table, running=running)
        return fit_local(self, model, table, PSEUDO, "minus the log-pseudo-likelihood, with penalties", rng, running)
