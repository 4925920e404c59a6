"""A linear-Gaussian network: each variable a weighted sum of its parents, plus Gaussian noise."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from markovfield._validation import generator_of
from markovfield.arrays import FloatArray
from markovfield.exceptions import MemoryLimitError, ModelError
from markovfield.frames import Drawn
from markovfield.gaussian.gaussian_field import GaussianField
from markovfield.models._cycles import find_cycle
from markovfield.names import Names, VariableName, check_name

if TYPE_CHECKING:
    import networkx as nx

__all__ = ["GaussianCPD", "LinearGaussianNetwork"]


MOST_DENSE = 10_000


@dataclass(frozen=True)
class GaussianCPD:
    """``x ~ N(bias + weights . parents, variance)``; weights in the order of the parents."""

    parents: tuple[VariableName, ...]
    weights: tuple[float, ...]
    bias: float
    variance: float


class LinearGaussianNetwork(Drawn):
    """Variables and linear-Gaussian conditional distributions, mutable while being written.

    Variables may be written in any order; a parent may be named before it is added.

    Parameters
    ----------
    variables
        Names to begin with, without distributions: `set_parents` and `add_cpd` give them the rest.

    Examples
    --------
    The chain of Murphy's exercise 19.2c:

    >>> import markovfield as mf
    >>> net = mf.LinearGaussianNetwork()
    >>> net.add_variable("x1")
    >>> net.add_variable("x2", ["x1"], [1.0])
    >>> net.add_variable("x3", ["x2"], [1.0])
    >>> mean, covariance = net.joint()
    >>> covariance.tolist()
    [[1.0, 1.0, 1.0], [1.0, 2.0, 2.0], [1.0, 2.0, 3.0]]
    >>> net.compile().precision.toarray().tolist()
    [[2.0, -1.0, 0.0], [-1.0, 2.0, -1.0], [0.0, -1.0, 1.0]]
    """

    def __init__(self, variables: Iterable[VariableName] = ()) -> None:
        # None: a variable of which only the name is known. A distribution is missing where only parents were set.
        self._parents: dict[VariableName, tuple[VariableName, ...] | None] = {}
        self._cpds: dict[VariableName, GaussianCPD] = {}
        self._compiled: GaussianField | None = None
        self.fit_report: Any = None
        """What `mf.fit` says of how it found the numbers; None for a network written by hand."""
        if isinstance(variables, str):
            raise ModelError(f"LinearGaussianNetwork(variables) is a sequence of names; write [{variables!r}]")
        for name in variables:
            self._declare(name)

    def __repr__(self) -> str:
        n, arcs = len(self._parents), len(self.arcs)
        return f"LinearGaussianNetwork({n} variable{'s' * (n != 1)}, {arcs} arc{'s' * (arcs != 1)})"

    # ---- writing --------------------------------------------------------------------------------------------------

    def _declare(self, name: VariableName) -> VariableName:
        name = check_name(name)
        if name in self._parents:
            raise ModelError(f"there is already a variable {name!r}")
        self._parents[name] = None
        self._compiled = None
        return name

    def add_variable(
        self,
        name: VariableName,
        parents: Sequence[VariableName] = (),
        weights: npt.ArrayLike = (),
        *,
        bias: float = 0.0,
        variance: float = 1.0,
    ) -> None:
        """Add a variable and its distribution given its parents, which may be added later."""
        cpd = _cpd(check_name(name), parents, weights, bias, variance)
        self._cpds[self._declare(name)] = cpd
        self._parents[check_name(name)] = cpd.parents

    def add_cpd(
        self,
        variable: VariableName,
        parents: Sequence[VariableName] = (),
        weights: npt.ArrayLike = (),
        *,
        bias: float = 0.0,
        variance: float = 1.0,
    ) -> None:
        """Give a variable its distribution, in place of the one it had."""
        variable = self._known(variable)
        cpd = _cpd(variable, parents, weights, bias, variance)
        self._cpds[variable], self._parents[variable] = cpd, cpd.parents
        self._compiled = None

    def set_parents(self, variable: VariableName, parents: Sequence[VariableName]) -> None:
        """Give a variable its parents only; the numbers are to come from `add_cpd` or from data."""
        variable = self._known(variable)
        self._parents[variable] = _parent_names(variable, parents)
        self._cpds.pop(variable, None)
        self._compiled = None

    def _known(self, variable: VariableName) -> VariableName:
        if isinstance(variable, np.integer):
            variable = int(variable)
        try:
            if variable in self._parents:
                return variable
        except TypeError:
            pass
        return self.variables[self._current_names().position(variable)]

    def _current_names(self) -> Names:
        return Names(self.variables)

    def copy(self) -> LinearGaussianNetwork:
        """A network that can be written on without changing this one."""
        twin = LinearGaussianNetwork()
        twin._parents, twin._cpds, twin._compiled = dict(self._parents), dict(self._cpds), self._compiled
        twin.fit_report = self.fit_report
        return twin

    # ---- reading --------------------------------------------------------------------------------------------------

    @property
    def variables(self) -> tuple[VariableName, ...]:
        """Variable names in the order they were added."""
        return tuple(self._parents)

    @property
    def n_variables(self) -> int:
        """Number of variables."""
        return len(self._parents)

    @property
    def arcs(self) -> tuple[tuple[VariableName, VariableName], ...]:
        """Pairs of a parent and its child."""
        return tuple((p, v) for v, above in self._parents.items() for p in above or ())

    def parents(self, variable: VariableName) -> tuple[VariableName, ...]:
        """Parents of a variable, in the order of its weights."""
        return self._parents[self._known(variable)] or ()

    def children(self, variable: VariableName) -> tuple[VariableName, ...]:
        """Children of a variable, in the order of `variables`."""
        variable = self._known(variable)
        return tuple(v for v, above in self._parents.items() if variable in (above or ()))

    def cpd(self, variable: VariableName) -> GaussianCPD:
        """The distribution of a variable given its parents."""
        variable = self._known(variable)
        if variable not in self._cpds:
            raise ModelError(f"variable {variable!r} has no distribution: add_cpd gives it weights and a variance")
        return self._cpds[variable]

    def order(self) -> list[VariableName]:
        """The variables with every parent before its children, otherwise in the order they were added."""
        for child, above in self._parents.items():
            for p in above or ():
                if p not in self._parents:
                    raise ModelError(f"variable {child!r} has a parent {p!r} that is not in the network")
        children: dict[VariableName, list[VariableName]] = {v: [] for v in self._parents}
        waiting = {v: len(above or ()) for v, above in self._parents.items()}
        for p, v in self.arcs:
            children[p].append(v)
        ready = [v for v, count in waiting.items() if not count]
        for v in ready:  # grows while it is read
            for child in children[v]:
                waiting[child] -= 1
                if not waiting[child]:
                    ready.append(child)
        if len(ready) < len(self._parents):
            names = self.variables
            at = {v: i for i, v in enumerate(names)}
            cycle = find_cycle([[at[p] for p in above or ()] for above in self._parents.values()], len(names))
            shown = " -> ".join(repr(names[i]) for i in cycle or ())
            raise ModelError(f"the network has a directed cycle: {shown}")
        return ready

    def _arrays(self) -> tuple[list[int], list[npt.NDArray[np.int64]], list[FloatArray], FloatArray, FloatArray]:
        """By position: topological order, parents, weights; biases and variances."""
        at = {v: i for i, v in enumerate(self._parents)}
        order = [at[v] for v in self.order()]
        cpds = [self.cpd(v) for v in self._parents]
        above = [np.array([at[p] for p in c.parents], np.int64) for c in cpds]
        weights = [np.array(c.weights, np.float64) for c in cpds]
        return order, above, weights, np.array([c.bias for c in cpds]), np.array([c.variance for c in cpds])

    # ---- conversions ----------------------------------------------------------------------------------------------

    def joint(self) -> tuple[FloatArray, FloatArray]:
        """Mean ``float64[n]`` and covariance ``float64[n, n]``, in the order of `variables`.

        With ``x = W x + b + e``: the mean is ``(I - W)^-1 b`` and the covariance ``(I - W)^-1 D (I - W)^-T``. Arcs
        times n operations for the inverse, n^3 for the product; refused beyond 10,000 variables. A variance may be
        zero.
        """
        n = self.n_variables
        if n > MOST_DENSE:
            raise MemoryLimitError(
                f"the covariance of {n} variables is a dense matrix of {8 * n * n / 1e9:.3g} GB; compile() is sparse"
            )
        order, above, weights, bias, variance = self._arrays()
        mean, spread = bias.copy(), np.eye(n)
        for v in order:
            mean[v] += weights[v] @ mean[above[v]]
            spread[v] += weights[v] @ spread[above[v]]
        scaled = spread * np.sqrt(variance)
        return mean, scaled @ scaled.T

    def compile(self) -> GaussianField:
        """The undirected Gaussian in information form, without inverting anything.

        The precision is ``(I - W)' D^-1 (I - W)``, the information ``(I - W)' D^-1 b``: nonzeros only where the
        moral graph has an edge. Linear in the sum of squared family sizes.
        """
        if self._compiled is None:
            from scipy import sparse

            _, above, weights, bias, variance = self._arrays()
            self._check_noise(variance, "precision matrix: use joint(), or condition on it")
            n = self.n_variables
            rows = np.repeat(np.arange(n), [len(a) for a in above])
            columns = np.concatenate([np.zeros(0, np.int64), *above])
            values = np.concatenate([np.zeros(0), *weights])
            residual = sparse.eye_array(n, format="csr") - sparse.csr_array((values, (rows, columns)), shape=(n, n))
            towards = sparse.csr_array(residual.T) * (1.0 / variance)
            precision = sparse.csc_array(towards @ residual)
            # Products of floats need not be symmetric to the last bit.
            precision = sparse.csc_array((precision + precision.T) / 2)
            self._compiled = GaussianField.trusted(precision, towards @ bias, Names(self.variables))
        return self._compiled

    def to_information(self) -> GaussianField:
        """The same as `compile`."""
        return self.compile()

    def _check_noise(self, variance: FloatArray, what: str) -> None:
        fixed = np.flatnonzero(variance == 0)
        if len(fixed):
            raise ModelError(f"variable {self.variables[fixed[0]]!r} has variance 0, so the network has no {what}")

    @classmethod
    def from_moments(
        cls,
        mean: npt.ArrayLike,
        covariance: npt.ArrayLike,
        variables: Iterable[VariableName] | None = None,
        *,
        order: Sequence[VariableName] | None = None,
        tolerance: float = 1e-9,
    ) -> LinearGaussianNetwork:
        """The network of a Gaussian along an order: each variable regressed on those before it.

        The weights are those of the Cholesky factor of the covariance (Murphy 19.4.4.1), and the arcs those of the
        minimal I-map for the order: a weight whose standardised value (times the parent's standard deviation, by the
        child's) is at most ``tolerance`` is dropped.

        Parameters
        ----------
        mean, covariance
            ``float64[n]`` and ``float64[n, n]``, positive definite.
        variables
            Names in the order of the matrix; ``0 .. n-1`` when None.
        order
            The same names, parents before children; the order of the matrix when None.
        """
        # Reading it as a field checks shapes, symmetry, definiteness and names.
        field = GaussianField.from_moments(mean, covariance, variables)
        names = field.names
        at = list(range(field.n_variables)) if order is None else names.positions(list(order))
        if len(at) != field.n_variables:
            raise ModelError(
                f"LinearGaussianNetwork.from_moments(order=...) needs all {field.n_variables} variables, got {len(at)}"
            )
        dense = np.asarray(covariance, np.float64)[np.ix_(at, at)]
        centre = np.asarray(mean, np.float64)[at]
        factor = np.linalg.cholesky((dense + dense.T) / 2)
        deviation = np.diag(factor)
        weights = np.eye(len(at)) - np.linalg.inv(factor / deviation)
        scale = np.sqrt(np.diag(dense))
        weights[np.abs(weights) * scale <= tolerance * scale[:, None]] = 0.0
        net = cls(names.variables)
        for i, position in enumerate(at):
            above = np.flatnonzero(weights[i, :i])
            net.add_cpd(
                names.variables[position],
                [names.variables[at[j]] for j in above],
                weights[i, above],
                bias=float(centre[i] - weights[i, above] @ centre[above]),
                variance=float(deviation[i] ** 2),
            )
        return net

    def to_networkx(self) -> nx.DiGraph:
        """The directed graph; nodes carry ``bias`` and ``variance``, arcs carry ``weight``, where there are any."""
        import networkx as nx

        graph = nx.DiGraph()
        for v in self._parents:
            cpd = self._cpds.get(v)
            graph.add_node(v, **({} if cpd is None else {"bias": cpd.bias, "variance": cpd.variance}))
        for v, above in self._parents.items():
            cpd = self._cpds.get(v)
            for i, p in enumerate(above or ()):
                graph.add_edge(p, v, **({} if cpd is None else {"weight": cpd.weights[i]}))
        return graph

    @classmethod
    def from_networkx(cls, graph: nx.DiGraph) -> LinearGaussianNetwork:
        """Read a directed graph; a variable whose arcs all carry ``weight`` gets its numbers, others parents only.

        ``bias`` and ``variance`` of a node are 0 and 1 where it has none.
        """
        net = cls(graph.nodes)
        for v, data in graph.nodes(data=True):
            above = list(graph.predecessors(v))
            given = [graph.edges[p, v].get("weight") for p in above]
            if any(w is None for w in given):
                net.set_parents(v, above)
            else:
                net.add_cpd(v, above, given, bias=data.get("bias", 0.0), variance=data.get("variance", 1.0))
        return net

    # ---- asking ---------------------------------------------------------------------------------------------------

    def sample(self, size: int, rng: int | np.random.Generator | None = None) -> FloatArray:
        """Draw ``float64[size, n]`` by ancestral sampling, columns in the order of `variables`."""
        if size < 0:
            raise ModelError(f"LinearGaussianNetwork.sample(size) must not be negative, got {size}")
        order, above, weights, bias, variance = self._arrays()
        drawn = generator_of(rng).standard_normal((size, self.n_variables)) * np.sqrt(variance) + bias
        for v in order:
            if len(above[v]):
                drawn[:, v] += drawn[:, above[v]] @ weights[v]
        return drawn

    def log_density(self, x: npt.ArrayLike | Mapping[VariableName, Any]) -> Any:
        """Log density at ``float64[n]``, at each row of ``float64[rows, n]``, or at a mapping from names to numbers."""
        _, above, weights, bias, variance = self._arrays()
        self._check_noise(variance, "density")
        if isinstance(x, Mapping):
            missing = [v for v in self.variables if v not in x]
            if missing:
                raise ModelError(f"log_density(x) needs a value of every variable, and {missing[0]!r} has none")
            x = [float(x[v]) for v in self.variables]
        points = np.asarray(x, np.float64)
        if points.ndim not in (1, 2) or points.shape[-1] != self.n_variables:
            raise ModelError(f"log_density(x) needs shape [rows, {self.n_variables}], got {points.shape}")
        residual = points - bias
        for v in range(self.n_variables):
            residual[..., v] -= points[..., above[v]] @ weights[v]
        return -0.5 * np.sum(residual**2 / variance + np.log(2 * np.pi * variance), axis=-1)

    def do(self, interventions: Mapping[VariableName, float]) -> LinearGaussianNetwork:
        """The network after setting variables from outside: they lose their parents and have variance 0."""
        changed = self.copy()
        changed.fit_report = None
        for variable, value in interventions.items():
            changed.add_cpd(variable, bias=value, variance=0.0)
        return changed


def _parent_names(variable: VariableName, parents: Sequence[VariableName]) -> tuple[VariableName, ...]:
    if isinstance(parents, str):
        raise ModelError(f"the parents of {variable!r} are a sequence of variable names; write [{parents!r}]")
    above = tuple(check_name(p) for p in parents)
    if len(set(above)) != len(above):
        raise ModelError(f"a variable is named twice in {list(parents)!r}")
    if variable in above:
        raise ModelError(f"variable {variable!r} cannot be its own parent")
    return above


def _cpd(
    variable: VariableName,
    parents: Sequence[VariableName],
    weights: npt.ArrayLike,
    bias: float,
    variance: float,
) -> GaussianCPD:
    above = _parent_names(variable, parents)
    try:
        slopes, constant, noise = np.array(weights, np.float64), float(bias), float(variance)
    except (TypeError, ValueError) as error:
        raise ModelError(f"weights, bias and variance of {variable!r} must be numbers: {error}") from error
    if slopes.shape != (len(above),):
        raise ModelError(f"variable {variable!r} has {len(above)} parents and weights of shape {slopes.shape}")
    if not np.isfinite([*slopes, constant]).all():
        raise ModelError(f"the weights and the bias of {variable!r} must be finite")
    if not 0 <= noise < np.inf:
        raise ModelError(f"the variance of {variable!r} must be zero or more and finite, got {variance!r}")
    return GaussianCPD(above, tuple(slopes.tolist()), constant, noise)
