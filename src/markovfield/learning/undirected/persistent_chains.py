"""Stochastic maximum likelihood, also called persistent contrastive divergence (Murphy, algorithm 19.1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from markovfield._validation import check_method
from markovfield.inference.core.running import Running
from markovfield.learning.boltzmann.updates import Training
from markovfield.learning.core.data import DataTable
from markovfield.learning.solvers.penalty import Penalty
from markovfield.learning.undirected.layers import changed_settings, fit_layers, no_training
from markovfield.learning.undirected.stochastic import SAMPLERS, fit_stochastic
from markovfield.models import BoltzmannMachine, RestrictedBoltzmannMachine

__all__ = ["StochasticMaximumLikelihood"]

# A Boltzmann machine with hidden units of more than this many in all is trained by products of matrices.
MANY = 20


@dataclass(frozen=True)
class StochasticMaximumLikelihood:
    """Climb along the features of the data less those of Markov chains that run on while the parameters move.

    Younes (1989): the chains take a few Gibbs sweeps a step, from where they were, and stay close to the model as long
    as steps are small. Rates fall as Robbins and Monro ask, and parameters are averaged over the last half of the
    steps (Polyak and Ruppert), so that what is left is Monte Carlo error; ``fit_report.details`` has its standard
    errors. Missing values and hidden variables are drawn by chains of their own, given what is seen (19.48). A step
    costs one sweep of all chains, whatever the number of rows.

    Parameters
    ----------
    n_steps, n_chains, sweeps
        Steps, chains, and Gibbs sweeps of each chain in a step.
    learning_rate, decay, power
        Step t is ``learning_rate / (1 + t / decay) ** power``, in units of one over each feature's variance. With a
        power above 1/2 and at most 1, steps sum to infinity and their squares do not (Robbins and Monro).
    l2, l1, group_l1, penalty
        As for `MaximumLikelihood`.
    training
        For a `RestrictedBoltzmannMachine`, whose layers are summed or drawn at once: mini-batches, learning rate,
        momentum and epochs, in place of all of the above but ``l2`` and ``sweeps``. A `BoltzmannMachine` with
        hidden units is trained likewise, unit by unit, where it is given one, or has more than 20 units and
        nothing else is set.

    sampler
        How chains move: ``"gibbs"``, one variable at a time, or ``"mc_sat"``, by slices (`MCSAT`), which also leave
        what formulas of large or infinite weight hold fast; each sweep costs more.

    Examples
    --------
    >>> import markovfield as mf
    >>> data = mf.sample(mf.Ising((6, 6), coupling=0.3), 500, rng=0)
    >>> method = mf.methods.StochasticMaximumLikelihood(n_steps=300)
    >>> fitted = mf.fit(mf.Ising((6, 6), coupling=0.0), data, method=method, rng=0)
    >>> bool(abs(fitted.coupling - 0.3) < 0.03)
    True
    """

    n_steps: int = 1000
    n_chains: int = 100
    sweeps: int = 1
    learning_rate: float = 0.15
    decay: float = 50.0
    power: float = 0.6
    l2: float = 0.0
    l1: float = 0.0
    group_l1: float = 0.0
    penalty: Penalty | None = None
    training: Training | None = None
    sampler: str = "gibbs"

    name: ClassVar[str] = "stochastic_maximum_likelihood"
    exact: ClassVar[bool] = False
    verbs: ClassVar[frozenset[str]] = frozenset({"fit"})
    missing_values: ClassVar[bool] = True
    meaning: ClassVar[str] = "the maximum of the likelihood up to Monte Carlo error, as far as the chains have mixed"

    def __post_init__(self) -> None:
        least = {"n_steps": 2, "n_chains": 1, "sweeps": 1, "l2": 0, "l1": 0, "group_l1": 0}
        check_method(
            self, least=least, above={"learning_rate": 0, "decay": 0, "power": 0.5}, choices={"sampler": SAMPLERS}
        )

    def fit(self, model: Any, table: DataTable, *, rng: np.random.Generator, running: Running) -> Any:
        """A new model with the estimated parameters."""
        joined = isinstance(model, BoltzmannMachine) and (self.training is not None or self._by_units(model, table))
        if joined or isinstance(model, RestrictedBoltzmannMachine):
            return fit_layers(self, model, table, "pcd", self.sweeps, rng=rng, running=running)
        no_training(self, model)
        return fit_stochastic(self, model, table, persistent=True, rng=rng, running=running)

    def _by_units(self, model: BoltzmannMachine, table: DataTable) -> bool:
        """Whether products of matrices do, and are worth it: many units, no gaps in what is seen, no other settings."""
        plain = not changed_settings(self, {"l2", "sweeps"})
        return (
            plain and model.n_hidden > 0 and model.n_units > MANY and bool((table.codes[: model.n_visible] >= 0).all())
        )
