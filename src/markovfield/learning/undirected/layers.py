"""Boltzmann machines with a training of their own among the methods for all undirected models."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np

from markovfield.exceptions import ModelError
from markovfield.inference.core.running import Running
from markovfield.learning.boltzmann.dense import fit_boltzmann
from markovfield.learning.boltzmann.training import fit_rbm
from markovfield.learning.boltzmann.updates import Training
from markovfield.learning.core.data import DataTable
from markovfield.models import BoltzmannMachine, RestrictedBoltzmannMachine

__all__ = ["changed_settings", "fit_layers", "no_training"]


def changed_settings(method: Any, but: set[str]) -> list[str]:
    """Settings of a method, but for some, that are not what they are by default."""
    plain = type(method)()
    names = [field.name for field in fields(method) if field.name not in but]
    return [name for name in names if getattr(method, name) != getattr(plain, name)]


def no_training(method: Any, model: Any) -> None:
    """Raise where a training is given for a model that is not trained by one."""
    if method.training is not None:
        raise ModelError(
            f"training of {type(method).__name__} is for Boltzmann machines with hidden units, and says nothing to "
            f"this {type(model).__name__}"
        )


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
    unused = changed_settings(method, {"l2", "training", "sweeps", "k", "l1", "group_l1", "penalty"})
    if unused:
        raise ModelError(
            f"{unused[0]} of {type(method).__name__} says nothing to a {type(model).__name__}, which is trained by "
            "mini-batches: give training=markovfield.learning.Training(...)"
        )
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
