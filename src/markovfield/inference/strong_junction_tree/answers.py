"""What the verbs answer about mixed fields."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from dataclasses import field as setting
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from markovfield.arrays import FloatArray, Frozen, IntArray
from markovfield.exceptions import ModelError
from markovfield.frames import Tabular, fresh_name
from markovfield.gaussian.mixed_field import MixedField
from markovfield.inference.core.answers import Answer
from markovfield.names import VariableName

__all__ = ["MixedDecoding", "MixedJoint", "MixedMarginals", "MixedSamples", "Mixture", "Moments"]

SHOWN = 20


class Moments(NamedTuple):
    """Mean and variance of a real-valued variable, exact; ``mixture`` says whether its density may be no Gaussian."""

    mean: float
    variance: float
    mixture: bool


@dataclass(frozen=True, eq=False, repr=False)
class Mixture(Frozen, Tabular):
    """A density that is a sum of Gaussians, one for each configuration of some discrete variables.

    Attributes
    ----------
    variables
        These discrete variables.
    weights, means, variances
        ``float64[components]``: of the configurations that are possible, the last variable fastest.
    """

    variables: tuple[VariableName, ...]
    weights: FloatArray
    means: FloatArray
    variances: FloatArray

    def __len__(self) -> int:
        return len(self.weights)

    def density(self, x: npt.ArrayLike) -> FloatArray:
        """The density at numbers of any shape."""
        away = np.asarray(x, np.float64)[..., None] - self.means
        each = np.exp(-0.5 * away**2 / self.variances) / np.sqrt(2 * np.pi * self.variances)
        return np.asarray(each @ self.weights)

    def cumulative(self, x: npt.ArrayLike) -> FloatArray:
        """The probability of a smaller number."""
        from scipy.special import ndtr

        away = np.asarray(x, np.float64)[..., None] - self.means
        return np.asarray(ndtr(away / np.sqrt(self.variances)) @ self.weights)

    def _columns(self, limit: int | None = None) -> dict[Any, Any]:
        shown = slice(0, limit)
        return {"weight": self.weights[shown], "mean": self.means[shown], "variance": self.variances[shown]}

    def __repr__(self) -> str:
        return f"Mixture({len(self)} component{'s' * (len(self) != 1)} by {', '.join(map(repr, self.variables))})"


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class MixedJoint(Frozen, Tabular):
    """Several variables together: exact probabilities, and exact means and covariances for each configuration.

    Attributes
    ----------
    discrete, continuous
        The variables, each kind in the order asked.
    probability
        ``float64[cards]``; a number (an array without axes) where no discrete variable was asked for.
    mean, covariance
        ``float64[cards, c]`` and ``float64[cards, c, c]`` of the real-valued variables given the states of the others.
    mixture
        Whether these may be moments of a mixture rather than of a Gaussian.
    """

    discrete: tuple[VariableName, ...]
    continuous: tuple[VariableName, ...]
    probability: FloatArray
    mean: FloatArray
    covariance: FloatArray
    mixture: bool

    def _columns(self, limit: int | None = None) -> dict[Any, Any]:
        cells = list(np.ndindex(self.probability.shape))[:limit]
        columns: dict[Any, Any] = {name: [cell[i] for cell in cells] for i, name in enumerate(self.discrete)}
        columns[fresh_name("probability", self.discrete)] = [float(self.probability[cell]) for cell in cells]
        return columns | {
            f"mean of {v}": [float(self.mean[c][i]) for c in cells] for i, v in enumerate(self.continuous)
        }

    def __repr__(self) -> str:
        names = ", ".join(map(repr, (*self.discrete, *self.continuous)))
        return f"MixedJoint({names}{', moments of a mixture' * self.mixture})"


@dataclass(frozen=True, eq=False, kw_only=True)
class MixedMarginals(Answer):
    """Probabilities of discrete variables' states, means and variances of real-valued ones, and log Z; all exact.

    Attributes
    ----------
    field
        The model as it was asked about.
    probabilities
        ``float64[cards]`` of each discrete variable, by position.
    means, variances
        ``float64[n]``, nan for discrete variables; the variance of what is known is zero.
    log_partition
        log Z; for a network, the log-density of the evidence.
    """

    field: MixedField
    probabilities: Mapping[int, FloatArray]
    means: FloatArray
    variances: FloatArray
    log_partition: float
    width: int = -1
    asked: Any = setting(default=None, repr=False)

    @property
    def log_partition_bounds(self) -> tuple[float, float]:
        """Both are `log_partition`, which is exact."""
        return self.log_partition, self.log_partition

    def __getitem__(self, variable: VariableName) -> Any:
        """Probabilities of a discrete variable's states, or `Moments` of a real-valued one."""
        at = self.field.names.position(variable)
        if at in self.probabilities:
            return self.probabilities[at]
        known = self.variances[at] == 0
        return Moments(float(self.means[at]), float(self.variances[at]), not known and self.asked.is_mixture(at))

    def __iter__(self) -> Iterator[VariableName]:
        return iter(self.field.variables)

    def __len__(self) -> int:
        return self.field.n_variables

    def probability_of(self, variable: VariableName, state: Any) -> float:
        """The probability of one state."""
        at = self.field.names.position(variable)
        if at not in self.probabilities:
            raise ModelError(f"variable {variable!r} is real-valued and has no states")
        p = self.probabilities[at]
        return float(p[self.field.names.state(at, state, len(p))])

    def joint(self, variables: Sequence[VariableName]) -> MixedJoint:
        """Several variables that are not known, together: the tree is run again so that one clique holds them."""
        found: MixedJoint = self.asked.joint(self.field.names.positions(variables))
        return found

    def mixture(self, variable: VariableName) -> Mixture:
        """The density of a real-valued variable as it is: the tree is run again, with this one integrated last."""
        found: Mixture = self.asked.mixture(self.field.names.position(variable))
        return found

    def _columns(self, limit: int | None = None) -> dict[Any, Any]:
        rows: list[tuple[Any, Any, float, float]] = []
        for at, name in enumerate(self.field.variables):
            if at in self.probabilities:
                states = self.field.names.state_names(at, len(self.probabilities[at]))
                rows += [(name, s, float(p), np.nan) for s, p in zip(states, self.probabilities[at], strict=True)]
            else:
                rows.append((name, None, float(self.means[at]), float(self.variances[at])))
        shown = rows[:limit]
        return {
            "variable": [r[0] for r in shown],
            "state": [r[1] for r in shown],
            "probability": [r[2] if r[1] is not None else np.nan for r in shown],
            "mean": [r[2] if r[1] is None else np.nan for r in shown],
            "variance": [r[3] for r in shown],
        }

    def __repr__(self) -> str:
        by = f"{self.method}, {self.seconds:.3g} s"
        lines = [f"Marginals of {len(self)} variables: log Z = {self.log_partition:.6g} ({self.guarantee}), {by}"]
        names = list(self.field.variables[:SHOWN])
        wide = max((len(str(v)) for v in names), default=0)
        for at, name in enumerate(names):
            if at in self.probabilities:
                p = self.probabilities[at]
                states = self.field.names.state_names(at, len(p))
                text = "  ".join(f"{s} {x:.4f}" for s, x in zip(states, p.tolist(), strict=True))
            else:
                text = f"{self.means[at]:.6g} +- {np.sqrt(self.variances[at]):.4g}"
            lines.append(f"  {name!s:<{wide}}  {text}")
        if len(self) > len(names):
            lines.append(f"  ... and {len(self) - len(names)} more")
        return "\n".join(lines)


@dataclass(frozen=True, eq=False, kw_only=True)
class MixedDecoding(Answer):
    """The outcome of the highest density, or the likeliest states of some discrete variables; proven either way.

    Attributes
    ----------
    assignment
        A state or a number for each decoded variable.
    score
        log of the density (in the units of the real-valued variables, which decide between configurations too); of
        discrete variables alone, log of the sum over all others. Evidence included.
    """

    field: MixedField
    assignment: Mapping[VariableName, Any]
    score: float

    @property
    def optimal(self) -> bool:
        """Always: maxima are exact, of numbers first and of states then."""
        return True

    @property
    def gap(self) -> float:
        """Nothing lies between the score and the best."""
        return 0.0

    def __getitem__(self, variable: VariableName) -> Any:
        return self.assignment[variable]

    def _columns(self, limit: int | None = None) -> dict[Any, Any]:
        named = list(self.assignment.items())[:limit]
        return {"variable": [name for name, _ in named], "value": [value for _, value in named]}

    def __repr__(self) -> str:
        lines = [f"Decoding: score {self.score:.6g} (optimal), {self.method}, {self.seconds:.3g} s"]
        lines += [f"  {name}: {value}" for name, value in list(self.assignment.items())[:SHOWN]]
        if len(self.assignment) > SHOWN:
            lines.append(f"  ... and {len(self.assignment) - SHOWN} more")
        return "\n".join(lines)


@dataclass(frozen=True, eq=False, kw_only=True)
class MixedSamples(Answer):
    """Independent draws: state numbers and real numbers by position, ``size`` of each."""

    field: MixedField
    states: Mapping[int, IntArray]
    numbers: Mapping[int, FloatArray]
    size: int

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, variable: VariableName) -> npt.NDArray[Any]:
        """The variable's column: numbers, or states by name."""
        at = self.field.names.position(variable)
        if at in self.numbers:
            return self.numbers[at]
        named = self.field.names.states.get(at)
        if named is None:
            return self.states[at]
        values = np.empty(len(named), object)
        values[:] = named
        column: npt.NDArray[Any] = values[self.states[at]]
        return column

    def to_dict(self) -> dict[VariableName, Any]:
        """Columns by variable name."""
        return {name: self[name] for name in self.field.variables}

    def _columns(self, limit: int | None = None) -> dict[Any, Any]:
        return {name: column[:limit] for name, column in self.to_dict().items()}

    def __repr__(self) -> str:
        return f"MixedSamples({len(self)} of {self.field.n_variables} variables, {self.guarantee}, {self.method})"
