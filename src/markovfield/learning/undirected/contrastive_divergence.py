"""Contrastive divergence (Hinton 2002; a row of Murphy's table 19.1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from markovfield._validation import check_method
from markovfield.inference.core.running import Running
from markovfield.learning.boltzmann.updates import Training
from markovfield.learning.core.data import DataTable
from markovfield.learning.solvers.penalty import Penalty
from markovfield.learning.undirected.layers import fit_layers, no_training
from markovfield.learning.undirected.stochastic import SAMPLERS, fit_stochastic
from markovfield.models import RestrictedBoltzmannMachine

__all__ = ["ContrastiveDivergence"]


@dataclass(frozen=True)
class ContrastiveDivergence:
    """Climb along the features of the data less those of chains started at the data, after ``k`` Gibbs sweeps.

    Cheap, and biased: what the chains cannot reach in k sweeps is never unlearned, so that probability may stay far
    from the data, and the fixed point is not the maximum of the likelihood (it is as k grows). `k=1` follows the
    gradient of pseudo-likelihood in expectation where one variable is updated at random (Hyvarinen 2006).

    Parameters
    ----------
    k
        Gibbs sweeps of each chain.
    n_steps, n_chains, learning_rate, decay, power, l2, l1, group_l1, penalty
        As for `StochasticMaximumLikelihood`; each step starts from ``n_chains`` rows drawn from the data.
    training
        For a `RestrictedBoltzmannMachine`, whose layers are summed or drawn at once: mini-batches, learning rate,
        momentum and epochs, in place of all of the above but ``l2`` and ``k``.

    sampler
        How chains move: ``"gibbs"``, one variable at a time, or ``"mc_sat"``, by slices (`MCSAT`), which also leave
        what formulas of large or infinite weight hold fast; each sweep costs more.

    Examples
    --------
    >>> import markovfield as mf
    >>> data = mf.sample(mf.Ising((6, 6), coupling=0.3), 500, rng=0)
    >>> method = mf.methods.ContrastiveDivergence(k=5, n_steps=300)
    >>> fitted = mf.fit(mf.Ising((6, 6), coupling=0.0), data, method=method, rng=0)
    >>> bool(abs(fitted.coupling - 0.3) < 0.03)
    True
    """

    k: int = 1
    n_steps: int = 1000
    n_chains: int = 100
    learning_rate: float = 0.15
    decay: float = 50.0
    power: float = 0.6
    l2: float = 0.0
    l1: float = 0.0
    group_l1: float = 0.0
    penalty: Penalty | None = None
    training: Training | None = None
    sampler: str = "gibbs"

    name: ClassVar[str] = "contrastive_divergence"
    exact: ClassVar[bool] = False
    verbs: ClassVar[frozenset[str]] = frozenset({"fit"})
    missing_values: ClassVar[bool] = True
    meaning: ClassVar[str] = "contrastive divergence is biased: its fixed point is not the maximum of the likelihood"

    def __post_init__(self) -> None:
        least = {"k": 1, "n_steps": 2, "n_chains": 1, "l2": 0, "l1": 0, "group_l1": 0}
        check_method(
            self, least=least, above={"learning_rate": 0, "decay": 0, "power": 0.5}, choices={"sampler": SAMPLERS}
        )

    @property
    def sweeps(self) -> int:
        """Gibbs sweeps of each chain in a step: k."""
        return self.k

    def fit(self, model: Any, table: DataTable, *, rng: np.random.Generator, running: Running) -> Any:
        """A new model with the estimated parameters."""
        if isinstance(model, RestrictedBoltzmannMachine):
            return fit_layers(self, model, table, "cd", self.k, rng=rng, running=running)
        no_training(self, model)
        return fit_stochastic(self, model, table, persistent=False, rng=rng, running=running)
