"""What is known of a mixed field: states, likelihoods of states, numbers, numbers seen with noise."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from markovfield._validation import number
from markovfield.arrays import FloatArray, IntArray
from markovfield.columns import single_row
from markovfield.exceptions import ModelError
from markovfield.gaussian.mixed_field import MixedField
from markovfield.inference.strong_junction_tree.potential import Potential, table

__all__ = ["MixedEvidence"]


@dataclass(frozen=True, eq=False)
class MixedEvidence:
    """Evidence by position: of each row its states and numbers, and factors for what is not known for sure."""

    states: dict[int, IntArray] = field(default_factory=dict)
    numbers: dict[int, FloatArray] = field(default_factory=dict)
    factors: tuple[Potential, ...] = ()

    @classmethod
    def parse(cls, model: MixedField, evidence: Any, noise: Any = None) -> MixedEvidence:
        """Read a dict from variable to a state, a vector of likelihoods, a number, or a pair of number and variance.

        ``noise`` is the variance of numbers that come without one: for all of them, or a dict by variable.
        """
        if evidence is None:
            return cls()
        row = evidence if isinstance(evidence, Mapping) else single_row(evidence)
        if row is None:
            raise ModelError(f"evidence must be a dict from variable to value, got {type(evidence).__name__}")
        found = cls()
        factors = []
        for variable, value in row.items():
            around = noise.get(variable) if isinstance(noise, Mapping) else noise
            at = model.names.position(variable)
            card = int(model.cardinalities[at])
            several = isinstance(value, list | tuple | np.ndarray) and np.ndim(value) > 0
            if card and several:
                factors.append(_likelihood(variable, at, card, value))
            elif card:
                found.states[at] = np.array([model.names.state(at, value, card)], np.int64)
            elif around is not None and not several:
                factors.append(_noisy(variable, at, (value, around)))
            elif several:
                factors.append(_noisy(variable, at, value))
            else:
                found.numbers[at] = np.array([_finite(variable, value)])
        return cls(found.states, found.numbers, tuple(factors))

    def known(self) -> set[int]:
        """Positions that are known for sure."""
        return {*self.states, *self.numbers}


def _finite(variable: Any, value: Any) -> float:
    try:
        found = float(value)
    except (TypeError, ValueError):
        found = np.nan
    if not np.isfinite(found):
        raise ModelError(f"the evidence of variable {variable!r} must be a finite number, got {value!r}")
    return found


def _likelihood(variable: Any, at: int, card: int, value: Any) -> Potential:
    try:
        found = np.asarray(value, np.float64)
    except (TypeError, ValueError):
        found = np.zeros(0)
    if found.shape != (card,) or not (np.isfinite(found).all() and (found >= 0).all() and found.any()):
        raise ModelError(
            f"the likelihood of variable {variable!r} needs {card} finite numbers of zero or more, not all zero, got "
            f"{value!r}"
        )
    with np.errstate(divide="ignore"):
        return table((at,), np.log(found)[None])


def _noisy(variable: Any, at: int, value: Any) -> Potential:
    if len(value) != 2:
        raise ModelError(f"the evidence of variable {variable!r} is a number, or a pair of number and variance")
    seen = _finite(variable, value[0])
    variance = number(value[1], f"the variance of the evidence of {variable!r}", above=0)
    constant = -0.5 * (seen**2 / variance + np.log(2 * np.pi * variance))
    return Potential((), (at,), np.array([constant]), np.array([[seen / variance]]), np.array([[[1.0 / variance]]]))
