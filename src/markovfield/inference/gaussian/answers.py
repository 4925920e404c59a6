"""What the verbs answer about Gaussian fields: means and variances, the mode, draws."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from markovfield.arrays import FloatArray
from markovfield.gaussian.gaussian_field import GaussianField
from markovfield.inference.core.answers import Answer
from markovfield.names import VariableName

__all__ = ["GaussianDecoding", "GaussianMarginals", "GaussianSamples", "Normal"]

SHOWN = 20


class Normal(NamedTuple):
    """A normal distribution; the variance of what was observed is zero."""

    mean: float
    variance: float


@dataclass(frozen=True, eq=False, kw_only=True)
class GaussianMarginals(Answer):
    """The normal distribution of every variable given the evidence, and log Z.

    Attributes
    ----------
    field
        The model as it was asked about.
    posterior
        The field of the variables that were not observed.
    means, variances
        ``float64[n]`` in position order.
    log_partition
        log of the integral of exp(score) over the variables that were not observed.
    """

    field: GaussianField
    posterior: GaussianField
    means: FloatArray
    variances: FloatArray
    log_partition: float

    @property
    def log_partition_bounds(self) -> tuple[float, float]:
        """Both are `log_partition`, which is exact."""
        return self.log_partition, self.log_partition

    def __getitem__(self, variable: VariableName) -> Normal:
        at = self.field.names.position(variable)
        return Normal(float(self.means[at]), float(self.variances[at]))

    def __iter__(self) -> Iterator[VariableName]:
        return iter(self.field.variables)

    def __len__(self) -> int:
        return self.field.n_variables

    def joint(self, variables: Sequence[VariableName]) -> GaussianField:
        """The joint distribution of several variables that were not observed, in the order asked."""
        return self.posterior.marginal(variables)

    def _columns(self, limit: int | None = None) -> dict[Any, Any]:
        shown = slice(0, limit)
        names = list(self.field.variables[shown])
        return {"variable": names, "mean": self.means[shown], "variance": self.variances[shown]}

    def __repr__(self) -> str:
        by = f"{self.method}, {self.seconds:.3g} s"
        lines = [f"Marginals of {len(self)} variables: log Z = {self.log_partition:.6g} ({self.guarantee}), {by}"]
        shown = list(self.field.variables[:SHOWN])
        wide = max((len(str(v)) for v in shown), default=0)
        lines += [f"  {v!s:<{wide}}  {self[v].mean:.6g} +- {np.sqrt(self[v].variance):.4g}" for v in shown]
        if len(self) > len(shown):
            lines.append(f"  ... and {len(self) - len(shown)} more")
        return "\n".join(lines)


@dataclass(frozen=True, eq=False, kw_only=True)
class GaussianDecoding(Answer):
    """The most likely values, which are the means, and their score.

    Attributes
    ----------
    values
        ``float64[n]`` in position order; nan for variables that were integrated out.
    score
        ``eta.x - x.Lambda.x / 2`` at these values; with variables integrated out, log of the integral.
    """

    field: GaussianField
    values: FloatArray
    score: float
    variables: tuple[int, ...]

    @property
    def assignment(self) -> dict[VariableName, float]:
        """The value of each decoded variable."""
        return {self.field.variables[v]: float(self.values[v]) for v in self.variables}

    @property
    def optimal(self) -> bool:
        """Always: a Gaussian has one mode."""
        return True

    @property
    def gap(self) -> float:
        """Nothing lies between the score and the best."""
        return 0.0

    def __getitem__(self, variable: VariableName) -> float:
        return self.assignment[variable]

    def _columns(self, limit: int | None = None) -> dict[Any, Any]:
        named = list(self.assignment.items())[:limit]
        return {"variable": [name for name, _ in named], "value": [value for _, value in named]}

    def __repr__(self) -> str:
        lines = [f"Decoding: score {self.score:.6g} (optimal), {self.method}, {self.seconds:.3g} s"]
        shown = list(self.assignment.items())
        lines += [f"  {name}: {value:.6g}" for name, value in shown[:SHOWN]]
        if len(shown) > SHOWN:
            lines.append(f"  ... and {len(shown) - SHOWN} more")
        return "\n".join(lines)


@dataclass(frozen=True, eq=False, kw_only=True)
class GaussianSamples(Answer):
    """Independent draws: ``values`` is ``float64[size, n]``, what was observed the same in every row."""

    field: GaussianField
    values: FloatArray

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, variable: VariableName) -> FloatArray:
        column: FloatArray = self.values[:, self.field.names.position(variable)]
        return column

    def to_dict(self) -> dict[VariableName, Any]:
        """Columns by variable name."""
        return {name: self[name] for name in self.field.variables}

    def _columns(self, limit: int | None = None) -> dict[Any, Any]:
        return {name: column[:limit] for name, column in self.to_dict().items()}

    def __repr__(self) -> str:
        return f"GaussianSamples({len(self)} of {self.field.n_variables} variables, {self.guarantee}, {self.method})"
