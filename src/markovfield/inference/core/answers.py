"""What the verbs answer: immutable numbers that say how they were got and how far they can be trusted."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from markovfield.arrays import FloatArray, Frozen
from markovfield.exceptions import ModelError
from markovfield.factors.factor_graph import FactorGraph
from markovfield.frames import Tabular, fresh_name
from markovfield.inference.core.diagnostics import MonteCarlo
from markovfield.names import VariableName

__all__ = ["Answer", "ByComponent", "Components", "Guarantee", "LogPartition", "Marginals", "Samples"]

Guarantee = Literal["exact", "upper", "lower", "approximate"]


@dataclass(frozen=True, eq=False, kw_only=True)
class Answer(Frozen, Tabular):
    """The header of every answer, whatever it is an answer about: by whom, how far it can be trusted, in what time.

    What was asked for is the payload, which each form of model has of its own (`Marginals` and `Decoding` of factor
    graphs, `GaussianMarginals` of Gaussian fields, ...).

    Attributes
    ----------
    method
        The name of the method that answered.
    guarantee
        ``"exact"``, ``"upper"``, ``"lower"`` or ``"approximate"``.
    converged, iterations, residuals
        Whether a method that iterates came to an end, after how many steps, and how far each of them still moved.
    seconds
        Wall-clock time.
    """

    method: str
    guarantee: Guarantee = "exact"
    converged: bool = True
    iterations: int = 1
    residuals: tuple[float, ...] = ()
    seconds: float = 0.0


@dataclass(frozen=True, eq=False, kw_only=True)
class LogPartition(Answer):
    """log Z alone, with its guarantee; ``float(answer)`` is the number.

    Attributes
    ----------
    standard_error
        Of a statistical estimate of `log_partition`; None where it is no such thing.
    """

    log_partition: float
    width: int = -1
    bounds: tuple[float, float] | None = None
    standard_error: float | None = None

    @property
    def log_partition_bounds(self) -> tuple[float, float]:
        """Proven (lower, upper) bounds: what the guarantee says of `log_partition`, or both where both are known."""
        if self.bounds is not None:
            return self.bounds
        low = self.log_partition if self.guarantee in ("exact", "lower") else -np.inf
        high = self.log_partition if self.guarantee in ("exact", "upper") else np.inf
        return low, high

    def _columns(self, limit: int | None = None) -> dict[Any, Any]:
        low, high = self.log_partition_bounds
        return {
            "log_partition": [self.log_partition],
            "lower": [low],
            "upper": [high],
            "guarantee": [self.guarantee],
            "method": [self.method],
            "seconds": [self.seconds],
        }

    def __float__(self) -> float:
        return self.log_partition

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> npt.NDArray[Any]:
        return np.array(self.log_partition, dtype)

    def __repr__(self) -> str:
        return _partition_line(self)


def _partition_line(answer: LogPartition | Marginals) -> str:
    """log Z, what it promises, the bounds where they say more, and by whom in what time."""
    by = f"{answer.method}, {answer.seconds:.3g} s"
    if np.isnan(answer.log_partition):
        return f"log Z not estimated, {by}" if answer.converged else f"log Z not estimated, not converged, {by}"
    error = answer.standard_error if isinstance(answer, LogPartition) else answer.log_partition_error
    around = "" if error is None else f" +- {error:.2g}"
    low, high = answer.log_partition_bounds
    both = f", within [{low:.6g}, {high:.6g}]" if -np.inf < low < high < np.inf else ""
    ended = "" if answer.converged else ", not converged"
    promise = f"{answer.guarantee}{both}{ended}"
    return f"log Z = {answer.log_partition:.6g}{around} ({promise}), {by}"


@dataclass(frozen=True, eq=False, repr=False)
class Components(Frozen):
    """The connected components of a graph, whatever is observed in it, as a method saw them.

    Attributes
    ----------
    component
        ``int32[n]``: the component of each variable.
    log_partition, converged, iterations
        ``float64``, ``bool`` and ``int64``, one entry for each component; log Z of the whole is their sum, plus that of
        factors of no variable.
    """

    component: npt.NDArray[np.int32]
    log_partition: FloatArray
    converged: npt.NDArray[np.bool_]
    iterations: npt.NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.log_partition)

    def __repr__(self) -> str:
        return f"Components({len(self)}, {int(self.converged.sum())} of them converged)"


def _itself(components: Components) -> Components:
    return components


@dataclass(frozen=True, eq=False, kw_only=True)
class ByComponent(Answer):
    """An answer about a graph that may be a union of many: log Z of each connected component, where it is known.

    Attributes
    ----------
    components
        The connected components of the graph, each with its own log Z and convergence; None from methods that do not
        tell them apart.
    """

    _components: Callable[[], Components] | None = field(default=None, repr=False)
    _cache: dict[Any, Any] = field(default_factory=dict, init=False, repr=False)

    @property
    def components(self) -> Components | None:
        """The connected components of the graph, each with its own log Z; worked out when asked for."""
        if self._components is None:
            return None
        if "components" not in self._cache:
            self._cache["components"] = self._components()
        found: Components = self._cache["components"]
        return found

    def __getstate__(self) -> dict[str, Any]:
        kept = self.components
        return super().__getstate__() | {"_components": None if kept is None else partial(_itself, kept)}


@dataclass(frozen=True, eq=False, kw_only=True)
class Marginals(ByComponent):
    """Probabilities of every variable's states, and log Z with its guarantee.

    The marginals are exact if and only if ``guarantee == "exact"``, which speaks of `log_partition`.

    Attributes
    ----------
    values
        ``float64[sum of cardinalities]``: the marginals of all variables, one after the other.
    log_partition
        log of the sum over assignments consistent with the evidence of exp(score); nan from methods that do not
        estimate it.
    log_partition_error
        Its standard error where it is a statistical estimate, else None.
    log_partition_bounds
        Proven (lower, upper) bounds; both equal `log_partition` when exact.
    width
        Size of the largest clique less one, or -1 where it has no meaning.
    components
        The connected components of the graph, each with its own log Z and convergence; None from methods that do not
        tell them apart.
    monte_carlo
        For estimates from samples: their standard errors, effective sample sizes and R-hat; else None.
    """

    graph: FactorGraph
    values: FloatArray
    log_partition: float
    log_partition_bounds: tuple[float, float] = (-np.inf, np.inf)
    width: int = -1
    monte_carlo: MonteCarlo | None = None
    log_partition_error: float | None = None
    _joint: Callable[[tuple[int, ...]], FloatArray] | None = field(default=None, repr=False)
    _max_marginals: Callable[[], FloatArray] | None = field(default=None, repr=False)
    _counts: Callable[[], FloatArray] | None = field(default=None, repr=False)
    _state: Any = field(default=None, repr=False)
    _again: Callable[[], Marginals] | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        self.values.flags.writeable = False

    def __getstate__(self) -> dict[str, Any]:
        # What is computed later is not data: a copy asks the model again for it (`_deferred`). Nor can it go on.
        return super().__getstate__() | dict.fromkeys(("_joint", "_max_marginals", "_counts", "_state"))

    def _deferred(self, name: str, what: str) -> Callable[..., Any]:
        """The function behind joints, max-marginals or counts: this answer's own or, of a copy, one that asks anew."""
        found = getattr(self, name)
        if found is None and self._again is not None:
            if "again" not in self._cache:
                self._cache["again"] = self._again()
            found = getattr(self._cache["again"], name)
        if found is None:
            raise ModelError(f"method {self.method!r} has no {what}; ask junction_tree for them")
        result: Callable[..., Any] = found
        return result

    def _slice(self, values: FloatArray, position: int) -> FloatArray:
        offsets = self.graph.structure.value_offsets
        return values[offsets[position] : offsets[position + 1]]

    def __getitem__(self, variable: VariableName) -> FloatArray:
        """Probabilities of the variable's states, in state order."""
        return self._slice(self.values, self.graph.names.position(variable))

    def __iter__(self) -> Iterator[VariableName]:
        return iter(self.graph.variables)

    def __len__(self) -> int:
        return self.graph.n_variables

    def keys(self) -> Sequence[VariableName]:
        """Variable names in position order."""
        return self.graph.variables

    def items(self) -> Iterator[tuple[VariableName, FloatArray]]:
        """Pairs of a variable's name and its probabilities."""
        return ((name, self._slice(self.values, i)) for i, name in enumerate(self.graph.variables))

    def __contains__(self, variable: object) -> bool:
        return variable in self.graph.names

    def probability_of(self, variable: VariableName, state: Any) -> float:
        """Probability of one named state of one variable."""
        s = self.graph.structure
        position = s.names.position(variable)
        index = s.names.state(position, state, int(s.cardinalities[position]))
        return float(self._slice(self.values, position)[index])

    def standard_error(self, variable: VariableName) -> FloatArray:
        """Standard errors of the variable's probabilities: zero where they are no statistical estimates."""
        if self.monte_carlo is None:
            return np.zeros(len(self[variable]))
        return self._slice(self.monte_carlo.standard_errors, self.graph.names.position(variable))

    def joint(self, variables: Sequence[VariableName]) -> FloatArray:
        """Joint distribution of several variables, axes in the order asked.

        Read off a clique that holds them all; when there is none, the query is run anew with them kept together.
        """
        positions = tuple(self.graph.names.positions(variables))
        joint: FloatArray = self._deferred("_joint", "joint distributions")(positions)
        return joint

    def mpm(self) -> dict[VariableName, Any]:
        """Maximiser of the posterior marginals: the likeliest state of each variable on its own."""
        s = self.graph.structure
        result = {}
        for i, name in enumerate(s.names.variables):
            best = int(np.argmax(self._slice(self.values, i)))
            result[name] = s.names.state_names(i, int(s.cardinalities[i]))[best]
        return result

    @property
    def max_marginals(self) -> dict[VariableName, FloatArray]:
        """For every state of every variable, the best score of an assignment that has it (a log-potential)."""
        if "max" not in self._cache:
            self._cache["max"] = self._deferred("_max_marginals", "max-marginals")()
        return {name: self._slice(self._cache["max"], i) for i, name in enumerate(self.graph.variables)}

    @property
    def expected_counts(self) -> FloatArray:
        """For every cell of the pool, how often it is read in expectation: the gradient of `log_partition`."""
        if "counts" not in self._cache:
            self._cache["counts"] = self._deferred("_counts", "expected counts")()
        counts: FloatArray = self._cache["counts"]
        return counts

    def factor_marginal(self, factor: int) -> FloatArray:
        """Joint distribution of a factor's variables, shaped like its table."""
        scope = self.graph.structure.scope(factor).tolist()
        return self.joint([self.graph.variables[v] for v in scope])

    def _rows(self, limit: int = 20) -> list[tuple[str, str]]:
        s = self.graph.structure
        rows = []
        for i in range(min(limit, s.n_variables)):
            states = s.names.state_names(i, int(s.cardinalities[i]))
            p = self._slice(self.values, i)
            shown = "  ".join(f"{state}: {value:.4g}" for state, value in list(zip(states, p, strict=True))[:6])
            rows.append((str(s.names.variables[i]), shown + ("  ..." if len(p) > 6 else "")))
        return rows

    def _columns(self, limit: int | None = None) -> dict[Any, Any]:
        s = self.graph.structure
        n = s.n_variables if limit is None else min(limit, s.n_variables)
        cards, end = s.cardinalities[:n].tolist(), int(s.value_offsets[n])
        columns: dict[Any, Any] = {
            "variable": [name for name, card in zip(s.names.variables, cards, strict=False) for _ in range(card)],
            "state": [state for i, card in enumerate(cards) for state in s.names.state_names(i, card)],
            "probability": self.values[:end],
        }
        if self.monte_carlo is not None:
            columns["standard_error"] = self.monte_carlo.standard_errors[:end]
        return columns

    def _html_columns(self, limit: int) -> dict[Any, Any]:
        rows = self._rows(limit)
        return {"variable": [name for name, _ in rows], "probabilities": [shown for _, shown in rows]}

    def __repr__(self) -> str:
        rows = self._rows()
        wide = max((len(name) for name, _ in rows), default=0)
        lines = [f"Marginals of {len(self)} variables: {_partition_line(self)}"]
        lines += [f"  {name:<{wide}}  {shown}" for name, shown in rows]
        if len(self) > len(rows):
            lines.append(f"  ... and {len(self) - len(rows)} more")
        return "\n".join(lines)


@dataclass(frozen=True, eq=False, kw_only=True)
class Samples(Answer):
    """Assignments drawn from a model.

    Attributes
    ----------
    states
        ``int32[size, n]`` state indices, one row a sample, one column a variable. The rows of a Markov chain follow
        each other in the order in which they were drawn, chain after chain.
    log_weights
        ``float64[size]``, the log of what each sample weighs, up to a constant; None where all weigh the same.
    n_chains
        0 where the rows are independent draws; otherwise the Markov chains behind them, whose rows are correlated.
        Their lengths differ by at most one, the longer ones first.
    iterations
        Sweeps of each chain, with those thrown away.
    converged
        False where a chain was stopped before its time, or where something speaks against what was drawn:
        ``monte_carlo.doubts`` says what. Few rows tell little, and True says only that nothing was found.
    log_partition, log_partition_error
        An estimate of log Z and its standard error, where the method makes one; otherwise nan.
    """

    graph: FactorGraph
    states: npt.NDArray[np.int32]
    log_weights: FloatArray | None = None
    n_chains: int = 0
    log_partition: float = np.nan
    log_partition_error: float = np.nan
    _state: Any = field(default=None, repr=False)
    _cache: dict[Any, Any] = field(default_factory=dict, init=False, repr=False)

    def __len__(self) -> int:
        return len(self.states)

    def __getitem__(self, variable: VariableName) -> npt.NDArray[Any]:
        """The variable's column: state names where it has any, state indices otherwise."""
        s = self.graph.structure
        position = s.names.position(variable)
        column = self.states[:, position]
        names = s.names.states.get(position)
        if names is None:
            return column
        values = np.empty(len(names), object)
        values[:] = names
        return values[column]

    @property
    def weights(self) -> FloatArray:
        """``float64[size]``: what each sample weighs, adding up to one."""
        if self.log_weights is None:
            return np.full(len(self), 1.0 / max(1, len(self)))
        scaled = np.exp(self.log_weights - self.log_weights.max(initial=-np.inf))
        return np.asarray(scaled / max(1.0, scaled.sum()))

    @property
    def chains(self) -> list[npt.NDArray[np.int32]]:
        """The rows of each Markov chain; of independent draws, all rows as one."""
        return np.array_split(self.states, max(1, self.n_chains))

    @property
    def monte_carlo(self) -> MonteCarlo:
        """Standard errors, effective sample sizes and split R-hat of the frequency of every variable's states."""
        if "monte_carlo" not in self._cache:
            from markovfield.inference.core.diagnostics import diagnose

            self._cache["monte_carlo"] = diagnose(self)
        found: MonteCarlo = self._cache["monte_carlo"]
        return found

    @property
    def effective_sample_size(self) -> float:
        """How many independent samples of equal weight would be as good.

        1 / sum of squared weights for independent draws; for Markov chains, that of the state estimated worst, and nan
        where chains are too short to tell.
        """
        if not len(self):
            return 0.0
        if self.n_chains:
            sizes = self.monte_carlo.effective_sample_sizes
            return float(np.nanmin(sizes)) if np.isfinite(sizes).any() else np.nan
        return 1.0 / float(np.square(self.weights).sum())

    @property
    def r_hat(self) -> float:
        """The largest split R-hat of a state: above about 1.01, Markov chains have not mixed. nan if unknown."""
        r_hats = self.monte_carlo.r_hats
        return float(np.max(r_hats[~np.isnan(r_hats)], initial=-np.inf)) if (~np.isnan(r_hats)).any() else np.nan

    def frequencies(self, variable: VariableName) -> tuple[FloatArray, FloatArray]:
        """Estimated probabilities of a variable's states, and their standard errors, in state order.

        Weighted samples give weighted frequencies, whose error is that of a ratio of averages; the errors of Markov
        chains allow for what each draw remembers of the last. No error is zero where more than one state is possible:
        what never came up may still come.
        """
        s = self.graph.structure
        position = s.names.position(variable)
        if not len(self):
            raise ModelError(f"there are no samples to estimate the probabilities of {variable!r} from")
        card, at = int(s.cardinalities[position]), s.value_offsets[position]
        probabilities: FloatArray = np.bincount(self.states[:, position], self.weights, card).astype(np.float64)
        return probabilities, self.monte_carlo.standard_errors[at : at + card]

    def to_dict(self) -> dict[VariableName, npt.NDArray[Any]]:
        """Columns by variable name."""
        return {name: self[name] for name in self.graph.variables}

    def _columns(self, limit: int | None = None) -> dict[Any, Any]:
        columns: dict[Any, Any] = {name: column[:limit] for name, column in self.to_dict().items()}
        if self.log_weights is not None:
            columns[fresh_name("weight", list(columns))] = self.weights[:limit]
        return columns

    def __repr__(self) -> str:
        chains = f", {self.n_chains} chain{'s' * (self.n_chains != 1)}" if self.n_chains else ""
        return f"Samples({len(self)} of {self.graph.n_variables} variables, {self.guarantee}, {self.method}{chains})"
