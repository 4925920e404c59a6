"""Boltzmann machines with a training of their own among the methods for all undirected models."""

from __future__ import annotations

from typing import Any

import numpy as np

from markovfield.exceptions import ModelError
from markovfield.inference.core.running import Running
from markovfield.learning.boltzmann.dense import fit_boltzmann
from markovfield.learning.boltzmann.training import fit_rbm
from markovfield.learning.boltzmann.updates import Training
from markovfield.learning.core.data import DataTable
from markovfield.models import BoltzmannMachine, RestrictedBoltzmannMachine

__all__ = ["fit_layers"]


def fit_layers(
    method: Any,
    model: RestrictedBoltzmannMachine | BoltzmannMachine,
    table: DataTable,
    kind: str,
    k: int,
    *,
    rng: np.random.Generator,
    running: Running,
) -> RestrictedBoltzmannMachine | BoltzmannMachine:
    """A new machine trained layer by layer, or unit by unit where all are joined, by the method's settings for that."""
    if method.l1 or method.group_l1 or method.penalty is not None:
        raise ModelError(f"weights of a {type(model).__name__} take an l2 in {method.name!r}, no other penalty")
    missing = np.flatnonzero((table.codes[: model.n_visible] < 0).any(axis=1))
    if len(missing):
        raise ModelError(
            f"method {method.name!r} needs complete visible units, but {table.variables[int(missing[0])]!r} has "
            "missing values; fit the log-linear form, model.log_linear()"
        )
    training = method.training or (Training(batch_size=None) if kind == "mpf" else Training(k=k))
    settings = {name: getattr(training, name) for name in training.__dataclass_fields__}
    settings |= {"kind": kind, "l2": method.l2 or training.l2}
    rows = table.codes[: model.n_visible].T
    if isinstance(model, BoltzmannMachine):
        return fit_boltzmann(model, rows, weights=table.weights, rng=rng, running=running, **settings)
    return fit_rbm(model, rows, weights=table.weights, rng=rng, running=running, **settings)
