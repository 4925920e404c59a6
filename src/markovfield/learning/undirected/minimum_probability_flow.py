"""Minimum probability flow (Sohl-Dickstein, Battaglino and DeWeese 2011; a row of Murphy's table 19.1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from markovfield.inference.core.running import Running
from markovfield.learning.boltzmann.updates import Training
from markovfield.learning.core.data import DataTable
from markovfield.learning.undirected.layers import fit_layers, no_training
from markovfield.learning.undirected.local_fit import LocalFit, fit_local
from markovfield.learning.undirected.sites_kernel import FLOW
from markovfield.models import RestrictedBoltzmannMachine

__all__ = ["MinimumProbabilityFlow"]


@dataclass(frozen=True)
class MinimumProbabilityFlow(LocalFit):
    """The parameters under which least probability flows from the data to states one change away, at the start.

    Minimised is the sum over rows, variables and their other states of exp((score of the change - score of the row) /
    2): convex, consistent, and without log Z. It needs complete data; costs are those of `PseudoLikelihood`.

    Parameters
    ----------
    l2, l1, group_l1, penalty, solver, checkpoint
        As for `MaximumLikelihood`.
    training
        For a `RestrictedBoltzmannMachine`, whose layers are summed or drawn at once: mini-batches, learning rate,
        momentum and epochs, in place of all of the above but ``l2``.

    Examples
    --------
    >>> import markovfield as mf
    >>> data = mf.sample(mf.Ising((8, 8), coupling=0.3), 500, rng=0)
    >>> fitted = mf.fit(mf.Ising((8, 8), coupling=0.0), data, method="minimum_probability_flow")
    >>> round(fitted.coupling, 2)
    0.3
    """

    training: Training | None = None

    name: ClassVar[str] = "minimum_probability_flow"

    def fit(self, model: Any, table: DataTable, *, rng: np.random.Generator, running: Running) -> Any:
        """A new model with the estimated parameters."""
        if isinstance(model, RestrictedBoltzmannMachine):
            return fit_layers(self, model, table, "mpf", 1, rng=rng, running=running)
        no_training(self, model)
        return fit_local(self, model, table, FLOW, "minimum probability flow, with penalties", rng, running)
