"""Gaussian fields in information form: the compiled form of models with real-valued variables.

``p(x)`` is proportional to ``exp(eta.x - x.Lambda.x / 2)`` (Murphy 19.27), with a sparse precision matrix ``Lambda``
and an information vector ``eta``. A zero of the precision is a missing edge (Murphy 19.28).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from markovfield._validation import generator_of
from markovfield.arrays import FloatArray, Frozen, IntArray, sealed
from markovfield.exceptions import MemoryLimitError, ModelError
from markovfield.frames import Drawn
from markovfield.gaussian.dense_factor import dense_inverse
from markovfield.gaussian.sparse_cholesky import CholeskyPlan, SelectedInverse, SparseFactor, analyse
from markovfield.names import Names, VariableName, check_name

if TYPE_CHECKING:
    import networkx as nx

__all__ = ["GaussianField"]


# A dense matrix of this order takes 800 MB.
MOST_DENSE = 10_000
# Up to here an error about a dense matrix says its smallest eigenvalue.
MOST_INVERTED = 1_000
# Columns solved for at once where the number of right-hand sides is not small.
BLOCK = 256


def _guard_dense(n: int, what: str) -> None:
    if n > MOST_DENSE:
        raise MemoryLimitError(
            f"{what} of {n} variables is a dense matrix of {8 * n * n / 1e9:.3g} GB, more than the "
            f"{8 * MOST_DENSE**2 / 1e9:.3g} GB allowed; ask for fewer variables by marginal(variables)"
        )


def _symmetric_sparse(matrix: Any, what: str) -> Any:
    """A finite symmetric matrix, dense or sparse, as CSC without stored zeros, or one sentence on what is wrong."""
    from scipy import sparse

    try:
        result = sparse.csc_array(matrix if sparse.issparse(matrix) else np.asarray(matrix, np.float64), dtype=float)
    except (TypeError, ValueError) as error:
        raise ModelError(f"{what} needs a matrix of numbers: {error}") from error
    if result.ndim != 2 or result.shape[0] != result.shape[1]:
        raise ModelError(f"{what} must be a square matrix, got shape {result.shape}")
    if not np.isfinite(result.data).all():
        raise ModelError(f"{what} has an entry that is not a finite number")
    largest = np.abs(result.data).max(initial=0.0)
    unequal = abs(result - result.T)
    if unequal.nnz and unequal.max() > 1e-9 * largest:
        i, j = (int(a[np.argmax(unequal.tocoo().data)]) for a in unequal.tocoo().coords)
        raise ModelError(f"{what} must be symmetric, but entries [{i}, {j}] and [{j}, {i}] differ")
    result = sparse.csc_array((result + result.T) / 2) if unequal.nnz else result.copy()
    result.eliminate_zeros()
    result.sort_indices()
    return result


@dataclass(frozen=True, eq=False, init=False)
class GaussianField(Drawn, Frozen):
    """A multivariate Gaussian given by its precision matrix and information vector, frozen.

    Parameters
    ----------
    precision
        ``[n, n]``, symmetric and positive definite, dense or sparse; kept as a SciPy CSC array without stored zeros.
    information
        ``float64[n]``, the precision times the mean; zero when None.
    variables
        Names of the variables in position order; ``0 .. n-1`` when None.

    Notes
    -----
    A sparse factorisation, made once and kept, answers all questions. For a planar lattice of n variables it takes
    about n^1.5 operations and n log n memory; 10^5 variables take about a tenth of a second, 10^6 two. The order of
    elimination and the layout are planned once for all fields with the same zeros. Dense matrices are made only by
    `covariance` and `covariance_graph`, which stop at 10,000 variables.

    Examples
    --------
    >>> import numpy as np
    >>> import markovfield as mf
    >>> field = mf.GaussianField([[2.0, -1.0, 0.0], [-1.0, 2.0, -1.0], [0.0, -1.0, 1.0]], variables=["a", "b", "c"])
    >>> field.covariance.round(6).tolist()
    [[1.0, 1.0, 1.0], [1.0, 2.0, 2.0], [1.0, 2.0, 3.0]]
    >>> field.independent("a", "c"), field.independent("a", "c", given=["b"])
    (False, True)
    >>> field.condition({"a": 1.0}).mean.round(6).tolist()
    [1.0, 1.0]
    """

    precision: Any
    information: FloatArray
    names: Names
    _cache: dict[str, Any] = field(default_factory=dict, repr=False)

    def __init__(
        self,
        precision: Any,
        information: npt.ArrayLike | None = None,
        variables: Iterable[VariableName] | None = None,
    ) -> None:
        matrix = _symmetric_sparse(precision, "GaussianField(precision=...)")
        n = matrix.shape[0]
        vector = np.zeros(n) if information is None else _vector(information, n, "GaussianField(information=...)")
        self._set(matrix, vector, _names(variables, n, "GaussianField(variables=...)"))
        self._factor()

    def _set(self, precision: Any, information: FloatArray, names: Names) -> None:
        for array in (precision.data, precision.indices, precision.indptr, information):
            array.flags.writeable = False
        object.__setattr__(self, "precision", precision)
        object.__setattr__(self, "information", information)
        object.__setattr__(self, "names", names)
        object.__setattr__(self, "_cache", {})

    @classmethod
    def trusted(cls, precision: Any, information: FloatArray, names: Names) -> GaussianField:
        """A field from a sparse precision known to be symmetric and positive definite, without a check or a copy."""
        made = object.__new__(cls)
        matrix = precision.tocsc()
        matrix.eliminate_zeros()
        matrix.sort_indices()
        made._set(matrix, information, names)
        return made

    @classmethod
    def from_moments(
        cls,
        mean: npt.ArrayLike,
        covariance: npt.ArrayLike,
        variables: Iterable[VariableName] | None = None,
        *,
        tolerance: float = 1e-10,
    ) -> GaussianField:
        """The field with a mean and a dense covariance: one inversion, of about n^3 operations.

        Inversion leaves no exact zeros, so a partial correlation of at most ``tolerance`` becomes a missing edge.
        """
        what = "GaussianField.from_moments(covariance)"
        matrix = _symmetric_sparse(covariance, what)
        n = matrix.shape[0]
        _guard_dense(n, "the covariance")
        names = _names(variables, n, "GaussianField.from_moments(variables=...)")
        at = _vector(mean, n, "GaussianField.from_moments(mean)")
        precision = dense_inverse(matrix.toarray())
        if precision is None:
            raise ModelError(f"{what} is not positive definite{_culprit(matrix, names)}")
        scale = np.sqrt(np.diag(precision))
        weak = np.abs(precision) <= tolerance * scale[:, None] * scale
        precision[weak & ~np.eye(n, dtype=bool)] = 0.0
        from scipy import sparse

        return cls.trusted(sparse.csc_array(precision), precision @ at, names)

    # ---- what it is -----------------------------------------------------------------------------------------------

    def _current_names(self) -> Names:
        return self.names

    @property
    def variables(self) -> Sequence[VariableName]:
        """Variable names in position order."""
        return self.names.variables

    @property
    def n_variables(self) -> int:
        """Number of variables."""
        return len(self.information)

    def __repr__(self) -> str:
        n, edges = self.n_variables, (self.precision.nnz - self.n_variables) // 2
        return f"GaussianField({n} variable{'s' * (n != 1)}, {edges} edge{'s' * (edges != 1)})"

    def _factor(self) -> SparseFactor:
        if "factor" not in self._cache:
            limit = self._cache.get("memory_limit")
            self._cache["factor"] = self.plan.factorise(
                self.precision.data, names=self.names.variables, memory_limit=limit
            )
        return self._cache["factor"]

    @property
    def plan(self) -> CholeskyPlan:
        """Order, fill, memory and operations of a factorisation, from the pattern alone; remembered with the pattern.

        Examples
        --------
        >>> import markovfield as mf
        >>> mf.GaussianField([[2.0, -1.0], [-1.0, 2.0]]).plan.fill
        3
        """
        return analyse(self.precision, coordinates=self._cache.get("coordinates"))

    def allow(self, memory_limit: float) -> None:
        """Refuse at once a factor that needs more bytes than this, and make one that needs less than this."""
        self.plan.check_memory(memory_limit)
        self._cache["memory_limit"] = memory_limit

    @property
    def factor(self) -> SparseFactor:
        """The sparse Cholesky factor of the precision: solves, determinant, draws, entries of the inverse."""
        return self._factor()

    @property
    def mean(self) -> FloatArray:
        """``float64[n]``, by one sparse solve."""
        if "mean" not in self._cache:
            self._cache["mean"] = sealed(self._factor().solve(self.information))
        return self._cache["mean"]

    @property
    def covariance(self) -> FloatArray:
        """``float64[n, n]``, dense; refused beyond 10,000 variables."""
        if "covariance" not in self._cache:
            _guard_dense(self.n_variables, "the covariance")
            inverse = self._factor().columns(range(self.n_variables))
            self._cache["covariance"] = sealed((inverse + inverse.T) / 2)
        return self._cache["covariance"]

    @property
    def variances(self) -> FloatArray:
        """``float64[n]``, the diagonal of the covariance, without the rest of it where the field is large."""
        return self._selected().diagonal

    def _selected(self) -> SelectedInverse:
        if "selected" not in self._cache:
            found = self._factor().selected_inverse()
            sealed(found.diagonal), sealed(found.on_pattern)
            self._cache["selected"] = found
        return self._cache["selected"]

    @property
    def neighbour_covariance(self) -> Any:
        """The covariance where the precision has entries, as a SciPy CSC array; nothing dense is made.

        ``(dLambda * neighbour_covariance).sum()`` is the change of log det with the precision.

        Examples
        --------
        >>> import markovfield as mf
        >>> field = mf.GaussianField([[2.0, -1.0, 0.0], [-1.0, 2.0, -1.0], [0.0, -1.0, 1.0]])
        >>> field.neighbour_covariance.toarray().round(6).tolist()
        [[1.0, 1.0, 0.0], [1.0, 2.0, 2.0], [0.0, 2.0, 3.0]]
        """
        return _like(self.precision, self._selected().on_pattern)

    @property
    def log_partition(self) -> float:
        """log of the integral of ``exp(eta.x - x.Lambda.x / 2)``."""
        n = self.n_variables
        quadratic = float(self.information @ self.mean)
        return 0.5 * (n * float(np.log(2 * np.pi)) - self._factor().log_determinant + quadratic)

    def log_density(self, x: npt.ArrayLike | Mapping[VariableName, Any]) -> Any:
        """Log density at a point, or at each of several.

        Parameters
        ----------
        x
            ``float64[n]`` or ``float64[rows, n]`` in position order, or a mapping from every name to a number.
        """
        points = self._points(x)
        score = points @ self.information - 0.5 * np.sum(points * (self.precision @ points.T).T, axis=-1)
        return score - self.log_partition

    def _points(self, x: npt.ArrayLike | Mapping[VariableName, Any]) -> FloatArray:
        if isinstance(x, Mapping):
            missing = [v for v in self.variables if v not in x]
            if missing:
                raise ModelError(f"log_density(x) needs a value of every variable, and {missing[0]!r} has none")
            at = [self.names.position(v) for v in x]
            values = np.empty(self.n_variables)
            values[at] = [_number(v, value) for v, value in x.items()]
            return values
        points = np.asarray(x, np.float64)
        if points.ndim not in (1, 2) or points.shape[-1] != self.n_variables:
            raise ModelError(f"log_density(x) needs shape [rows, {self.n_variables}], got {points.shape}")
        return points

    # ---- what can be asked ----------------------------------------------------------------------------------------

    def condition(self, evidence: Mapping[VariableName, Any]) -> GaussianField:
        """The field of the other variables once some are known.

        In information form this only drops rows: ``Lambda_aa`` stays, ``eta_a`` loses ``Lambda_ab x_b``. Linear in
        the size of the precision.
        """
        at = self.names.positions(list(evidence))
        known = np.array([_number(v, value) for v, value in evidence.items()], np.float64)
        free = np.setdiff1d(np.arange(self.n_variables), at)
        return self.part(free, self.information[free] - self.precision[free][:, at] @ known)

    def part(self, free: IntArray, information: FloatArray) -> GaussianField:
        """The field of some positions, in order, with their block of the precision and another information vector."""
        named = self.variables
        names = Names(tuple(named[i] for i in free.tolist()))
        rest = GaussianField.trusted(self.precision[free][:, free], information, names)
        places = self._coordinates()
        if places is not None:
            rest._cache["coordinates"] = places[free]
        return rest

    def _coordinates(self) -> IntArray | None:
        """Where variables lie on a lattice, found by their neighbours' numbers; None where they do not."""
        if "coordinates" not in self._cache:
            from markovfield.gaussian.fill_reducing import find_lattice

            self._cache["coordinates"] = find_lattice(self.precision.indptr, self.precision.indices)
        return self._cache["coordinates"]

    def marginal(self, variables: Iterable[VariableName]) -> GaussianField:
        """The field of some variables, in the order asked, the others integrated out (a Schur complement).

        Costs one factorisation of the others and one solve for each variable kept that has a neighbour among them;
        kept variables that reach each other through the others become neighbours.
        """
        from scipy import sparse

        kept = self.names.positions(_listed(variables, "marginal(variables)"))
        names = Names(tuple(self.variables[i] for i in kept))
        gone = np.setdiff1d(np.arange(self.n_variables), kept)
        inner = self.precision[kept][:, kept]
        if not len(gone):
            return GaussianField.trusted(inner, self.information[kept], names)
        cross = self.precision[gone][:, kept].tocsc()
        rim = np.flatnonzero(np.diff(cross.indptr))
        _guard_dense(len(rim), "the marginal")
        factor = _factorise(self.precision[gone][:, gone].tocsc(), Names([self.variables[i] for i in gone]))
        vector = self.information[kept] - cross.T @ factor.solve(self.information[gone])
        towards = cross[:, rim]
        fill = np.empty((len(rim), len(rim)))
        for start in range(0, len(rim), BLOCK):
            columns = towards[:, np.arange(start, min(start + BLOCK, len(rim)))].toarray()
            fill[:, start : start + BLOCK] = towards.T @ factor.solve(columns)
        i, j = np.nonzero(fill)
        symmetric = (fill[i, j] + fill[j, i]) / 2
        lost = sparse.csc_array((symmetric, (rim[i], rim[j])), shape=inner.shape)
        return GaussianField.trusted(sparse.csc_array(inner - lost), vector, names)

    def sample(self, size: int, rng: int | np.random.Generator | None = None) -> FloatArray:
        """Draw ``float64[size, n]``, exact: white noise through the sparse factor."""
        if size < 0:
            raise ModelError(f"GaussianField.sample(size) must not be negative, got {size}")
        white = generator_of(rng).standard_normal((size, self.n_variables))
        # One draw after the other, so that a larger size begins with the same draws.
        return np.ascontiguousarray(self._factor().upper_solve(white.T).T) + self.mean

    def independent(
        self,
        a: VariableName | Iterable[VariableName],
        b: VariableName | Iterable[VariableName],
        given: VariableName | Iterable[VariableName] = (),
        *,
        tolerance: float = 1e-9,
    ) -> bool:
        """Whether two sets of variables are independent given a third, by the numbers of this field.

        They are if every partial correlation of one of ``a`` with one of ``b`` given ``given`` is at most
        ``tolerance``, about what rounding leaves of a zero.
        """
        sets = [_listed(s, f"independent({name})", single=True) for s, name in ((a, "a"), (b, "b"), (given, "given"))]
        left, right, known = (self.names.positions(s) for s in sets)
        if len({*left, *right, *known}) != len(left) + len(right) + len(known):
            raise ModelError("independent(a, b, given) needs three sets of variables without common members")
        if not left or not right:
            return True
        rest = np.setdiff1d(np.arange(self.n_variables), known)
        # Taking the known out of the precision is conditioning on them; the values do not matter.
        factor = _factorise(self.precision[rest][:, rest].tocsc(), Names([self.variables[i] for i in rest]))
        at = np.searchsorted(rest, [*left, *right])
        block = factor.columns(at.tolist())[at]
        deviation = np.sqrt(np.diag(block))
        cut = len(left)
        correlation = block[:cut, cut:] / deviation[:cut, None] / deviation[cut:]
        return bool(np.abs(correlation).max() <= tolerance)

    # ---- graphs ---------------------------------------------------------------------------------------------------

    def markov_graph(self) -> nx.Graph:
        """The undirected graph of the nonzeros of the precision: its separations are independences (19.28)."""
        import networkx as nx

        graph = nx.Graph()
        graph.add_nodes_from(self.variables)
        entries = self.precision.tocoo()
        for i, j in zip(*(axis.tolist() for axis in entries.coords), strict=True):
            if i < j:
                graph.add_edge(self.variables[i], self.variables[j])
        return graph

    def covariance_graph(self, *, tolerance: float = 1e-9) -> nx.Graph:
        """The graph of the nonzeros of the covariance: unconnected variables are marginally independent.

        Its edges are to be read as bidirected (Murphy 19.4.4.1). A correlation of at most ``tolerance`` is none.
        """
        import networkx as nx

        deviation = np.sqrt(self.variances)
        correlation = self.covariance / deviation[:, None] / deviation
        graph = nx.Graph()
        graph.add_nodes_from(self.variables)
        rows, columns = np.nonzero(np.triu(np.abs(correlation) > tolerance, 1))
        names = self.variables
        graph.add_edges_from((names[i], names[j]) for i, j in zip(rows.tolist(), columns.tolist(), strict=True))
        return graph

    def to_networkx(self) -> nx.Graph:
        """The Markov graph with its numbers: ``precision`` on nodes and edges, ``information`` on nodes."""
        graph = self.markov_graph()
        diagonal = self.precision.diagonal()
        for i, name in enumerate(self.variables):
            graph.nodes[name].update(precision=float(diagonal[i]), information=float(self.information[i]))
        entries = self.precision.tocoo()
        for i, j, value in zip(*entries.coords, entries.data.tolist(), strict=True):
            if i < j:
                graph.edges[self.variables[i], self.variables[j]]["precision"] = value
        return graph


def _factorise(precision: Any, names: Names) -> SparseFactor:
    return analyse(precision).factorise(precision.data, names=names.variables)


def _like(matrix: Any, values: FloatArray) -> Any:
    """Other values on the pattern of a sparse matrix."""
    from scipy import sparse

    return sparse.csc_array((values, matrix.indices, matrix.indptr), matrix.shape)


def _vector(values: npt.ArrayLike, n: int, what: str) -> FloatArray:
    try:
        vector = np.array(values, np.float64)
    except (TypeError, ValueError) as error:
        raise ModelError(f"{what} needs numbers: {error}") from error
    if vector.shape != (n,):
        raise ModelError(f"{what} needs shape ({n},), got {vector.shape}")
    if not np.isfinite(vector).all():
        raise ModelError(f"{what} has an entry that is not a finite number")
    return vector


def _number(variable: VariableName, value: Any) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = np.nan
    if not np.isfinite(number):
        raise ModelError(f"variable {variable!r} takes finite numbers, got {value!r}")
    return number


def _names(variables: Iterable[VariableName] | None, n: int, what: str) -> Names:
    if variables is None:
        return Names(range(n))
    names = tuple(check_name(v) for v in _listed(variables, what))
    if len(names) != n:
        raise ModelError(f"{what} needs {n} names, got {len(names)}")
    if len(set(names)) != n:
        raise ModelError(f"{what} names a variable twice")
    return Names(names)


def _listed(variables: Any, what: str, *, single: bool = False) -> list[Any]:
    """Names as a list; one bare name counts as a list of itself only when ``single``."""
    if isinstance(variables, (str, int, np.integer)):
        if single:
            return [variables]
        raise ModelError(f"{what} is a sequence of variable names; write [{variables!r}]")
    return list(variables)


def _culprit(matrix: Any, names: Names) -> str:
    """What can be said of a matrix that is not positive definite, for the end of an error."""
    diagonal = matrix.diagonal()
    bad = np.flatnonzero(diagonal <= 0)
    if len(bad):
        return f": its diagonal entry of variable {names.variables[bad[0]]!r} is {diagonal[bad[0]]:.6g}"
    if matrix.shape[0] <= MOST_INVERTED:
        return f": its smallest eigenvalue is {np.linalg.eigvalsh(matrix.toarray())[0]:.3g}"
    return ""
