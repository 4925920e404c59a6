"""Queries of Gaussian fields: some variables jointly, perhaps as a regression on others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from markovfield.arrays import FloatArray, Frozen
from markovfield.exceptions import ModelError
from markovfield.frames import Tabular
from markovfield.gaussian.gaussian_field import GaussianField
from markovfield.inference.core.method import MethodLike
from markovfield.inference.core.running import Running
from markovfield.inference.gaussian.evidence import GaussianEvidence
from markovfield.names import VariableName

__all__ = ["GaussianDistribution", "query"]


@dataclass(frozen=True, eq=False, kw_only=True)
class GaussianDistribution(Frozen, Tabular):
    """The joint normal distribution of some variables, given others as numbers to come.

    Attributes
    ----------
    variables, given
        What it is of, and what it is conditional on beyond the evidence.
    bias, weights
        The mean is ``bias + weights @ x`` for values x of ``given``: ``float64[k]`` and ``float64[k, m]``.
    covariance
        ``float64[k, k]``, whatever the values are.
    """

    variables: tuple[VariableName, ...]
    given: tuple[VariableName, ...]
    bias: FloatArray
    weights: FloatArray
    covariance: FloatArray
    guarantee: str = "exact"
    method: str = "sparse_cholesky"
    seconds: float = 0.0

    def mean(self, values: Mapping[VariableName, float] | None = None) -> FloatArray:
        """``float64[k]``, at values of what it is conditional on."""
        values = values or {}
        if set(values) != set(self.given):
            raise ModelError(f"the mean needs a value for each of {list(self.given)!r}, got {list(values)!r}")
        return self.bias + self.weights @ np.array([float(values[v]) for v in self.given])

    def _columns(self, limit: int | None = None) -> dict[Any, Any]:
        shown = slice(0, limit)
        columns: dict[Any, Any] = {"variable": list(self.variables[shown]), "bias": self.bias[shown]}
        columns |= {f"weight of {name}": self.weights[shown, i] for i, name in enumerate(self.given)}
        return columns | {"variance": np.diag(self.covariance)[shown]}

    def __repr__(self) -> str:
        given = f" given {', '.join(map(str, self.given))}" if self.given else ""
        lines = [f"Normal distribution of {len(self.variables)} variables{given} ({self.guarantee}), {self.method}"]
        for i, name in enumerate(self.variables[:20]):
            terms = "".join(f" {w:+.6g} {g}" for w, g in zip(self.weights[i], self.given, strict=True))
            lines.append(f"  {name}: {self.bias[i]:.6g}{terms} +- {np.sqrt(self.covariance[i, i]):.4g}")
        return "\n".join(lines)


def query(
    field: GaussianField, targets: Any, evidence: Any, noise: Any, given: Any, method: MethodLike, running: Running
) -> GaussianDistribution:
    """The joint of the targets; with ``given``, their regression on it."""
    if method not in ("auto", "sparse_cholesky", "cholesky"):
        raise ModelError(f"query of a Gaussian field is answered by sparse_cholesky, got {method!r}")
    wanted, conditions = ([x] if isinstance(x, (str, int, np.integer)) else list(x) for x in (targets, given))
    if not wanted:
        raise ModelError("query(model, targets) needs at least one target")
    known = GaussianEvidence.parse(field, evidence, noise)
    at = field.names.positions([*wanted, *conditions])
    for position in at:
        if position in known.at:
            raise ModelError(f"variable {field.variables[position]!r} is known, so it has no distribution")
    names = [field.variables[i] for i in at]
    _, rest, _ = known.condition(field)
    joint = rest.marginal(names)
    k = len(wanted)
    inner = joint.precision.toarray()
    covariance = np.linalg.inv(inner[:k, :k])
    weights = -covariance @ inner[:k, k:]
    return GaussianDistribution(
        variables=tuple(names[:k]),
        given=tuple(names[k:]),
        bias=covariance @ joint.information[:k],
        weights=weights,
        covariance=(covariance + covariance.T) / 2,
        seconds=running.seconds,
    )
