"""What the verbs answer about Gaussian fields: means and variances, the mode, draws."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from markovfield._validation import number
from markovfield.arrays import FloatArray
from markovfield.exceptions import ModelError
from markovfield.gaussian.gaussian_field import GaussianField
from markovfield.inference.core.answers import Answer, Guarantee
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
        The field of the variables that are not known, with what was seen with noise multiplied into it.
    means, variances
        ``float64[n]`` in position order; the variance of what was observed is zero.
    mean_errors, variance_errors
        ``float64[n]``, standard errors of estimated means and variances; None where they are no estimates.
    log_partition
        log of the integral of exp(score) over the variables that were not observed; nan where it was not estimated.
    guarantees
        ``"means"``, ``"variances"`` and ``"log_partition"``: how far each can be trusted.
    log_partition_error
        Standard error of an estimated `log_partition`; None where it is no estimate.
    """

    field: GaussianField
    posterior: GaussianField
    means: FloatArray
    variances: FloatArray
    log_partition: float
    means_guarantee: Guarantee = "exact"
    variances_guarantee: Guarantee = "exact"
    mean_errors: FloatArray | None = None
    variance_errors: FloatArray | None = None
    log_partition_error: float | None = None

    @property
    def guarantees(self) -> dict[str, Guarantee]:
        """How far each quantity can be trusted."""
        return {
            "means": self.means_guarantee,
            "variances": self.variances_guarantee,
            "log_partition": self.guarantee,
        }

    @property
    def log_partition_bounds(self) -> tuple[float, float]:
        """Proven (lower, upper) bounds: both are `log_partition` where that is exact."""
        low = self.log_partition if self.guarantee in ("exact", "lower") else -np.inf
        high = self.log_partition if self.guarantee in ("exact", "upper") else np.inf
        return low, high

    def _shaped(self, values: FloatArray) -> FloatArray:
        shape = getattr(self.field, "shape", None)
        return values if shape is None else values.reshape(shape)

    @property
    def mean(self) -> FloatArray:
        """The means in the shape of the lattice; `means` where the field is not on one."""
        return self._shaped(self.means)

    @property
    def variance(self) -> FloatArray:
        """The variances in the shape of the lattice; `variances` where the field is not on one."""
        return self._shaped(self.variances)

    def __getitem__(self, variable: VariableName) -> Normal:
        at = self.field.names.position(variable)
        return Normal(float(self.means[at]), float(self.variances[at]))

    def __iter__(self) -> Iterator[VariableName]:
        return iter(self.field.variables)

    def __len__(self) -> int:
        return self.field.n_variables

    def joint(self, variables: Sequence[VariableName]) -> GaussianField:
        """The joint distribution of several variables that were not observed, in the order asked; exact."""
        names = [self.field.variables[i] for i in self.field.names.positions(variables)]
        return self.posterior.marginal(names)

    def intervals(self, level: float = 0.95) -> FloatArray:
        """``float64[n, 2]``: central intervals that hold each variable with a probability of ``level``.

        Examples
        --------
        >>> import markovfield as mf
        >>> field = mf.GaussianField([[4.0]], [8.0])
        >>> mf.marginals(field).intervals(0.95).round(2).tolist()
        [[1.02, 2.98]]
        """
        from scipy.special import ndtri

        level = number(level, "intervals(level)", above=0)
        if level >= 1:
            raise ModelError(f"intervals(level) must be between zero and one, got {level}")
        half = float(ndtri(0.5 + level / 2)) * np.sqrt(self.variances)
        return np.stack([self.means - half, self.means + half], axis=1)

    def _columns(self, limit: int | None = None) -> dict[Any, Any]:
        shown = slice(0, limit)
        names = list(self.field.variables[shown])
        columns = {"variable": names, "mean": self.means[shown], "variance": self.variances[shown]}
        for name, errors in (("mean_error", self.mean_errors), ("variance_error", self.variance_errors)):
            if errors is not None:
                columns[name] = errors[shown]
        return columns

    def __repr__(self) -> str:
        by = f"{self.method}, {self.seconds:.3g} s"
        lines = [f"Marginals of {len(self)} variables: {self._log_z()}, {by}"]
        shown = list(self.field.variables[:SHOWN])
        wide = max((len(str(v)) for v in shown), default=0)
        lines += [f"  {v!s:<{wide}}  {self[v].mean:.6g} +- {np.sqrt(self[v].variance):.4g}" for v in shown]
        if len(self) > len(shown):
            lines.append(f"  ... and {len(self) - len(shown)} more")
        return "\n".join(lines)

    def _log_z(self) -> str:
        others = {w: g for w, g in self.guarantees.items() if w != "log_partition" and g != self.guarantee}
        said = "; ".join([self.guarantee, *(f"{w} {g}" for w, g in others.items())])
        if np.isnan(self.log_partition):
            said = "; ".join(f"{w} {g}" for w, g in self.guarantees.items() if w != "log_partition")
            return f"log Z not estimated ({said})"
        error = "" if self.log_partition_error is None else f" +- {self.log_partition_error:.2g}"
        return f"log Z = {self.log_partition:.6g}{error} ({said}{'' if self.converged else ', not converged'})"


@dataclass(frozen=True, eq=False, kw_only=True)
class GaussianDecoding(Answer):
    """The most likely values, which are the means, and their score.

    Attributes
    ----------
    values
        ``float64[n]`` in position order; nan for variables that were integrated out.
    score
        ``eta.x - x.Lambda.x / 2`` at these values, and the log-likelihood of what was seen with noise; with variables
        integrated out, log of the integral.
    gap
        How far the score may be from the best: zero of exact methods, a bound from the residual of iterative ones.
    tolerance
        How much of a gap still counts as optimal.
    """

    field: GaussianField
    values: FloatArray
    score: float
    variables: tuple[int, ...]
    gap: float = 0.0
    tolerance: float = 0.0

    @property
    def assignment(self) -> dict[VariableName, float]:
        """The value of each decoded variable."""
        return {self.field.variables[v]: float(self.values[v]) for v in self.variables}

    @property
    def optimal(self) -> bool:
        """Whether this is the mode, of which a Gaussian has one: the gap is within the tolerance."""
        return self.gap <= self.tolerance

    @property
    def value(self) -> FloatArray:
        """The values in the shape of the lattice; `values` where the field is not on one."""
        shape = getattr(self.field, "shape", None)
        return self.values if shape is None else self.values.reshape(shape)

    def __getitem__(self, variable: VariableName) -> float:
        return self.assignment[variable]

    def _columns(self, limit: int | None = None) -> dict[Any, Any]:
        named = list(self.assignment.items())[:limit]
        return {"variable": [name for name, _ in named], "value": [value for _, value in named]}

    def __repr__(self) -> str:
        best = "optimal" if self.optimal else f"gap {self.gap:.3g}"
        lines = [f"Decoding: score {self.score:.6g} ({best}), {self.method}, {self.seconds:.3g} s"]
        shown = list(self.assignment.items())
        lines += [f"  {name}: {value:.6g}" for name, value in shown[:SHOWN]]
        if len(shown) > SHOWN:
            lines.append(f"  ... and {len(shown) - SHOWN} more")
        return "\n".join(lines)


@dataclass(frozen=True, eq=False, kw_only=True)
class GaussianSamples(Answer):
    """Draws: ``values`` is ``float64[size, n]``, what was observed the same in every row.

    Attributes
    ----------
    n_chains
        Markov chains that the rows are from, one after the other; 0 where rows are independent.
    """

    field: GaussianField
    values: FloatArray
    n_chains: int = 0

    @property
    def images(self) -> FloatArray:
        """The draws in the shape of the lattice, ``[size, *shape]``."""
        shape = getattr(self.field, "shape", None)
        return self.values if shape is None else self.values.reshape(len(self.values), *shape)

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
