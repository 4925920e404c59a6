"""What is known of a Gaussian field: values of variables, and values seen with noise.

Evidence is a dict from variable to a number, or to a pair of a number and the variance it was seen with; or an array
with one entry for each variable, nan where nothing was seen, which may have the shape of the lattice. ``noise`` is the
variance of all that has none of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from markovfield.arrays import FloatArray, IntArray
from markovfield.columns import single_row
from markovfield.exceptions import ModelError
from markovfield.gaussian.constrained_field import ConstrainedField
from markovfield.gaussian.gaussian_field import GaussianField

__all__ = ["GaussianEvidence"]


@dataclass(frozen=True, eq=False)
class GaussianEvidence:
    """Values of some variables, and of some the likelihood ``N(value; x, variance)``.

    Attributes
    ----------
    at, values
        Positions of variables that are known, and their values.
    seen_at, seen, variances
        Positions of variables that were seen with noise, what was seen, and the variance of the noise.
    """

    at: IntArray
    values: FloatArray
    seen_at: IntArray
    seen: FloatArray
    variances: FloatArray

    @classmethod
    def parse(cls, field: GaussianField, evidence: Any, noise: Any = None) -> GaussianEvidence:
        """Read what a user gave."""
        if isinstance(evidence, GaussianEvidence):
            return evidence
        if evidence is None:
            return cls._sorted(np.zeros(0, np.int64), np.zeros(0), np.zeros(0))
        if isinstance(evidence, np.ndarray) and evidence.dtype.kind in "fiu":
            return cls._from_array(field, evidence, noise)
        row = evidence if isinstance(evidence, Mapping) else single_row(evidence)
        if row is None:
            raise ModelError(
                "evidence must be a dict from variable to a number, or an array with nan where nothing was seen, got "
                f"{type(evidence).__name__}"
            )
        at = np.empty(len(row), np.int64)
        values, variances = np.empty(len(row)), np.empty(len(row))
        default = _default_noise(noise, list(row))
        for i, (variable, value) in enumerate(row.items()):
            at[i] = field.names.position(variable)
            values[i], variances[i] = _entry(variable, value, default.get(variable, 0.0))
        if len(np.unique(at)) < len(at):
            twice = field.variables[int(at[np.argmax(np.bincount(at)[at])])]
            raise ModelError(f"the evidence names variable {twice!r} twice")
        return cls._sorted(at, values, variances)

    @classmethod
    def _from_array(cls, field: GaussianField, array: Any, noise: Any) -> GaussianEvidence:
        shape = getattr(field, "shape", None)
        if array.shape not in ((field.n_variables,), shape):
            other = "" if shape is None else f" or {shape}"
            raise ModelError(f"evidence as an array needs shape ({field.n_variables},){other}, got {array.shape}")
        flat = array.astype(np.float64).ravel()
        at = np.flatnonzero(~np.isnan(flat))
        if np.isinf(flat).any():
            name = field.variables[int(np.argmax(np.isinf(flat)))]
            raise ModelError(f"the evidence of variable {name!r} must be a finite number, got inf")
        if isinstance(noise, np.ndarray) and noise.ndim:
            if noise.shape != array.shape:
                raise ModelError(f"noise as an array needs the shape of the evidence, {array.shape}, got {noise.shape}")
            variances = noise.astype(np.float64).ravel()[at]
            bad = ~(np.isfinite(variances) & (variances >= 0))
            if bad.any():
                name = field.variables[int(at[np.argmax(bad)])]
                raise ModelError(f"the noise of variable {name!r} must be a variance of zero or more")
        else:
            variances = np.full(len(at), _variance("noise", noise))
        return cls._sorted(at, flat[at], variances)

    @classmethod
    def _sorted(cls, at: IntArray, values: FloatArray, variances: FloatArray) -> GaussianEvidence:
        order = np.argsort(at)
        at, values, variances = at[order], values[order], variances[order]
        hard = variances == 0
        return cls(at[hard], values[hard], at[~hard], values[~hard], variances[~hard])

    @property
    def empty(self) -> bool:
        """Whether nothing is known."""
        return not len(self.at) and not len(self.seen_at)

    def filled(self, n: int) -> FloatArray:
        """``float64[n]``: what is known, zeros elsewhere."""
        whole = np.zeros(n)
        whole[self.at] = self.values
        return whole

    @cached_property
    def log_likelihood_constant(self) -> float:
        """What the noise contributes to log Z beside the numbers that it puts into the field."""
        return float(-0.5 * (self.seen**2 / self.variances + np.log(2 * np.pi * self.variances)).sum())

    def absorbed(self, field: GaussianField) -> GaussianField:
        """The field with what was seen with noise multiplied into it."""
        if not len(self.seen_at):
            return field
        from scipy import sparse

        weight = np.zeros(field.n_variables)
        weight[self.seen_at] = 1.0 / self.variances
        information = field.information.copy()
        information[self.seen_at] += self.seen / self.variances
        precision = field.precision + sparse.diags_array(weight, format="csc")
        if isinstance(field, ConstrainedField):
            return field.observed(precision, information, self.seen_at)
        return GaussianField.trusted(precision, information, field.names)

    def condition(self, field: GaussianField) -> tuple[IntArray, GaussianField, float]:
        """Positions of what is not known, its field, and what to add to the field's log Z."""
        n = field.n_variables
        seen = self.absorbed(field)
        extra = self.log_likelihood_constant
        if not len(self.at):
            return np.arange(n), seen, extra
        whole = self.filled(n)
        extra += float(whole @ seen.information - 0.5 * whole @ (seen.precision @ whole))
        mask = np.ones(n, np.bool_)
        mask[self.at] = False
        free = np.flatnonzero(mask)
        rows = seen.precision[free]
        information = seen.information[free] - rows[:, self.at] @ self.values
        seen._cache.setdefault("coordinates", field._coordinates())  # by which a factorisation is planned
        rest = seen.part(free, information)
        if isinstance(seen, ConstrainedField):
            rest = seen.restricted(rest, free, self.at, self.values)
        return free, rest, extra


def _default_noise(noise: Any, variables: list[Any]) -> dict[Any, float]:
    if isinstance(noise, Mapping):
        return {v: _variance(f"the noise of variable {v!r}", x) for v, x in noise.items()}
    if isinstance(noise, np.ndarray) and noise.ndim:
        raise ModelError(
            "noise is one variance, or a dict from variable to its own; an array goes with evidence as one"
        )
    return dict.fromkeys(variables, _variance("noise", noise))


def _variance(what: str, value: Any) -> float:
    if value is None:
        return 0.0
    try:
        variance = float(value)
    except (TypeError, ValueError):
        variance = np.nan
    if not 0 <= variance < np.inf:
        raise ModelError(f"{what} must be a variance of zero or more, got {value!r}")
    return variance


def _entry(variable: Any, value: Any, noise: float) -> tuple[float, float]:
    """A number and the variance it was seen with."""
    shown = value
    if isinstance(value, tuple) and len(value) == 2:
        value, noise = value[0], _variance(f"the noise of variable {variable!r}", value[1])
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = np.nan
    if not np.isfinite(number):
        raise ModelError(f"the evidence of variable {variable!r} must be a finite number, got {shown!r}")
    return number, noise
