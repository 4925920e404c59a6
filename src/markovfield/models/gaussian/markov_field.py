"""`GaussianMarkovField`: Gaussian priors on lattices, graphs, meshes and time, as a user writes them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from markovfield._validation import number
from markovfield.arrays import FloatArray, IntArray
from markovfield.exceptions import MemoryLimitError, ModelError
from markovfield.frames import Drawn
from markovfield.gaussian.constrained_field import ConstrainedField
from markovfield.gaussian.gaussian_field import GaussianField
from markovfield.gaussian.grid_names import GridNames
from markovfield.gaussian.subspace import SMALL
from markovfield.models._sites import sites_of
from markovfield.models.gaussian import precisions
from markovfield.models.gaussian.kinds import edge_weights, prior_of
from markovfield.models.gaussian.mesh import TriangleMesh
from markovfield.models.gaussian.precisions import KINDS, MOST_OPEN, Prior
from markovfield.names import Names, VariableName

if TYPE_CHECKING:
    import networkx as nx

__all__ = ["GaussianMarkovField"]


class GaussianMarkovField(Drawn):
    """A Gaussian Markov random field on a lattice or any graph (Murphy 19.4.4; Rue and Held 2005).

    Every change gives a new field. Without ``kind`` it is the graph alone, whose numbers come from data (`fit`) or by
    `with_precision`.

    Parameters
    ----------
    graph
        A networkx graph, pairs of names, or the shape of a lattice. Sites of a lattice are 0, 1, ... in row order, and
        also go by their indices, ``(3, 4)``.
    kind
        ``"matern"``, ``"rw1"``, ``"rw2"``, ``"car"`` or ``"icar"``: see `lattice` for what they mean and take.
    periodic
        Whether a lattice's last site is next to its first: for all axes, or for each.
    weights
        ``float64[edges]``: of the edges in the order of ``edges``, or the name of an edge attribute; one when None.
    mean
        One number, or ``float64[n]``.

    Examples
    --------
    >>> import markovfield as mf
    >>> walk = mf.GaussianMarkovField([("a", "b"), ("b", "c")], kind="rw1", precision=4.0)
    >>> walk
    GaussianMarkovField(3 variables, rw1, intrinsic of rank 2)
    >>> answer = mf.marginals(walk, {"a": 1.0, "c": 3.0})
    >>> answer["b"]
    Normal(mean=2.0, variance=0.125)
    """

    fit_report: Any = None
    mesh: TriangleMesh | None = None

    def __init__(
        self,
        graph: Any,
        *,
        kind: str | None = None,
        periodic: bool | Sequence[bool] = False,
        weights: npt.ArrayLike | str | None = None,
        mean: npt.ArrayLike = 0.0,
        **parameters: Any,
    ) -> None:
        sites = sites_of(graph, periodic, "GaussianMarkovField")
        self._names = Names(sites.variables) if sites.shape is None else GridNames(sites.variables, shape=sites.shape)
        self._edges, self._shape, self._kind = sites.edges, sites.shape, kind or ""
        self._form: ConstrainedField | None = None
        if kind is None:
            if parameters:
                raise ModelError(f"GaussianMarkovField({next(iter(parameters))}=...) needs a kind: {', '.join(KINDS)}")
            return
        prior = prior_of(sites, kind, edge_weights(graph, weights, sites), parameters)
        self._give(prior, mean, all(sites.periodic) and sites.shape is not None and weights is None)

    def _give(self, prior: Prior, mean: npt.ArrayLike, stationary: bool = False) -> None:
        """Take numbers."""
        n = len(self._names.variables)
        stencil = prior.precision[:, [0]].toarray().reshape(self._shape) if stationary and self._shape else None
        self._form = ConstrainedField(
            prior.precision,
            _information(prior.precision, mean, n, self._shape),
            self._names,
            null_space=prior.null_space,
            shape=self._shape,
            stencil=stencil,
            root=prior.root,
        )

    @classmethod
    def _made(cls, names: Names, edges: IntArray, shape: tuple[int, ...] | None, kind: str) -> GaussianMarkovField:
        made = object.__new__(cls)
        made._names, made._edges, made._shape, made._kind, made._form = names, edges, shape, kind, None
        return made

    def _with(self, form: ConstrainedField) -> GaussianMarkovField:
        made = GaussianMarkovField._made(self._names, self._edges, self._shape, self._kind)
        made._form, made.mesh = form, self.mesh
        return made

    # ---- builders ---------------------------------------------------------------------------------------------------

    @classmethod
    def lattice(
        cls,
        shape: int | tuple[int, ...],
        kind: str = "matern",
        *,
        periodic: bool | Sequence[bool] = False,
        mean: npt.ArrayLike = 0.0,
        **parameters: Any,
    ) -> GaussianMarkovField:
        """A prior on a lattice of one to three axes, with steps of one.

        * ``"matern"``: ``Q = tau^2 (kappa^2 + L)^alpha``, ``L`` the Laplacian of the lattice (Lindgren et al. 2011).
          Takes ``range`` (where the correlation has fallen to about 0.13) and ``variance``, by default 10 and 1, or
          ``kappa`` and ``tau``; and ``alpha`` (2). In the plane with alpha 2, range = sqrt(8) / kappa and variance =
          1 / (4 pi kappa^2 tau^2). These are those of the continuous field: sites near a border that is not periodic
          vary up to twice (in a corner four times) as much, and ranges of a few sites are off by some per cent.
        * ``"rw1"``, ``"icar"``: differences of neighbours are N(0, 1 / precision); the level is left open.
        * ``"rw2"``: second differences are; level and slopes are left open. In the plane a thin plate.
        * ``"car"``: ``Q = precision (D - rho W)``, ``D`` the number of neighbours, -1 < rho < 1 (0.99).

        Examples
        --------
        >>> import markovfield as mf
        >>> field = mf.GaussianMarkovField.lattice((64, 64), kind="matern", range=8, periodic=True)
        >>> answer = mf.marginals(field, evidence={(3, 4): 1.2}, noise=0.1)
        >>> answer.mean.shape, bool(0.5 < answer[(3, 4)].mean < 1.2)
        ((64, 64), True)
        """
        where = (shape,) if isinstance(shape, (int, np.integer)) else shape
        return cls(where, kind=kind, periodic=periodic, mean=mean, **parameters)

    @classmethod
    def on_graph(cls, graph: Any, kind: str = "icar", **parameters: Any) -> GaussianMarkovField:
        """A prior on a networkx graph or a list of pairs: the same as ``GaussianMarkovField(graph, kind=...)``.

        ``"rw2"`` on a graph is ``precision * L^2``, which leaves the level of each connected component open;
        ``"matern"`` takes ``kappa`` and ``tau`` there, since a graph has no lengths.
        """
        return cls(graph, kind=kind, **parameters)

    @classmethod
    def on_mesh(
        cls,
        points: npt.ArrayLike | TriangleMesh,
        triangles: npt.ArrayLike | None = None,
        *,
        range: float | None = None,
        variance: float | None = None,
        alpha: int = 2,
        kappa: float | None = None,
        tau: float | None = None,
        mean: npt.ArrayLike = 0.0,
    ) -> GaussianMarkovField:
        """A Matern field on a triangle mesh by finite elements; its variables are the points of the mesh.

        ``points`` and ``triangles`` are those of a `TriangleMesh` (or one itself), which stays with the field: a value
        seen anywhere else is ``field.observe(field.mesh.projector(where), y, noise)``.

        Examples
        --------
        >>> import markovfield as mf
        >>> import numpy as np
        >>> field = mf.GaussianMarkovField.on_mesh(np.random.default_rng(0).uniform(size=(50, 2)), range=0.5)
        >>> seen = field.observe(field.mesh.projector([[0.5, 0.5]]), [2.0], 0.01)
        >>> at_point = field.mesh.projector([[0.5, 0.5]]) @ mf.marginals(seen).means
        >>> bool(1.9 < at_point[0] < 2.0)
        True
        """
        mesh = points if isinstance(points, TriangleMesh) else TriangleMesh(points, triangles)
        prior = mesh.matern(alpha, *precisions.matern_numbers(2, alpha, range, variance, kappa, tau))
        made = cls._made(Names(_numbers(mesh.n_points)), mesh.edges, None, "matern")
        made.mesh = mesh
        made._give(prior, mean)
        return made

    @classmethod
    def seasonal(cls, n: int, period: int, *, precision: float = 1.0) -> GaussianMarkovField:
        """A sequence whose sums over each period are N(0, 1 / precision): of rank n - period + 1.

        Examples
        --------
        >>> import markovfield as mf
        >>> mf.GaussianMarkovField.seasonal(36, 12)
        GaussianMarkovField(36 variables, seasonal, lattice 36, intrinsic of rank 25)
        """
        return cls._fromprior_of(precisions.seasonal(n, period, precision), (n,), "seasonal")

    @classmethod
    def _fromprior_of(cls, prior: Prior, shape: tuple[int, ...], kind: str) -> GaussianMarkovField:
        made = cls._made(GridNames(_numbers(math.prod(shape)), shape=shape), _pairs(prior.precision), shape, kind)
        made._give(prior, 0.0)
        return made

    @classmethod
    def from_precision(
        cls,
        precision: Any,
        *,
        variables: Sequence[VariableName] | None = None,
        mean: npt.ArrayLike = 0.0,
        null_space: npt.ArrayLike | None = None,
    ) -> GaussianMarkovField:
        """A field with a given precision, dense or sparse; what it leaves open must be told, ``float64[n, k]``."""
        from markovfield.gaussian.gaussian_field import _names, _symmetric_sparse

        matrix = _symmetric_sparse(precision, "GaussianMarkovField.from_precision(precision)")
        n = matrix.shape[0]
        names = _names(variables, n, "GaussianMarkovField.from_precision(variables=...)")
        opened = np.zeros((n, 0)) if null_space is None else np.asarray(null_space, np.float64)
        if opened.ndim != 2 or len(opened) != n:
            raise ModelError(f"from_precision(null_space=...) needs shape [{n}, k], got {opened.shape}")
        if opened.shape[1]:
            opened = np.linalg.qr(opened)[0]
            if np.abs(matrix @ opened).max() > 1e-8 * max(np.abs(matrix.data).max(initial=0.0), 1e-300):
                raise ModelError("from_precision(null_space=...) has a column that the precision does not take to zero")
        made = cls._made(names, _pairs(matrix), None, "")
        made._give(Prior(matrix, None, opened), mean)
        return made

    def product(self, other: GaussianMarkovField) -> GaussianMarkovField:
        """The field of pairs of sites whose precision is the Kronecker product: space by time, say.

        Sites are in row order, those of ``other`` fastest; the shape is both shapes in turn. What either leaves open is
        open for every site of the other.

        Examples
        --------
        >>> import markovfield as mf
        >>> time = mf.GaussianMarkovField.lattice(10, kind="rw1")
        >>> space = mf.GaussianMarkovField.lattice((4, 5), kind="matern", range=4)
        >>> time.product(space)
        GaussianMarkovField(200 variables, rw1 x matern, lattice 10 x 4 x 5, intrinsic of rank 180)
        """
        from scipy import sparse

        one, two = self.compile(), other.compile()
        if one.constraints.shape[0] or two.constraints.shape[0]:
            raise ModelError("product(other) is of fields without constraints: add them to the product")
        if np.any(one.information) or np.any(two.information):
            raise ModelError("product(other) is of fields with mean zero")
        n, k = (one.n_variables, two.n_variables), (one.null_space.shape[1], two.null_space.shape[1])
        count = k[0] * n[1] + k[1] * n[0] - k[0] * k[1]
        if count * n[0] * n[1] > MOST_OPEN:
            raise MemoryLimitError(
                f"the product of fields of {n[0]} and {n[1]} variables leaves {count} directions open, which take "
                f"{8 * count * n[0] * n[1] / 1e9:.3g} GB: make the intrinsic one proper, by kind='car' or 'matern'"
            )
        # What the first leaves open at any site of the other; the rest of the first by what the other leaves open.
        rest = np.linalg.qr(one.null_space, mode="complete")[0][:, k[0] :] if k[1] else np.zeros((n[0], 0))
        opened = np.hstack([np.kron(one.null_space, np.eye(n[1])), np.kron(rest, two.null_space)])
        root = None
        if one.root is not None and two.root is not None:
            root = sparse.csr_array(sparse.kron(one.root, two.root))
        precision = sparse.csc_array(sparse.kron(one.precision, two.precision))
        shape = (self._shape or (n[0],)) + (other._shape or (n[1],))
        names = GridNames(_numbers(n[0] * n[1]), shape=shape)
        made = self._made(names, _pairs(precision), shape, f"{self._kind or 'field'} x {other._kind or 'field'}")
        made._give(Prior(precision, root, opened), 0.0, one.stencil is not None and two.stencil is not None)
        return made

    # ---- changes ----------------------------------------------------------------------------------------------------

    def with_precision(
        self, precision: Any, information: npt.ArrayLike | None = None, *, null_space: npt.ArrayLike | None = None
    ) -> GaussianMarkovField:
        """The same sites with these numbers, ``[n, n]`` and ``float64[n]``: what `fit` gives."""
        made = self._made(self._names, self._edges, self._shape, "")
        opened = None if null_space is None else np.asarray(null_space, np.float64)
        plain = GaussianField(precision, information) if opened is None else None
        if plain is not None and plain.n_variables != len(self._names.variables):
            raise ModelError(f"with_precision() needs shape [{len(self)}, {len(self)}], got {plain.precision.shape}")
        matrix, vector = (precision, information) if plain is None else (plain.precision, plain.information)
        made._form = ConstrainedField(matrix, vector, self._names, null_space=opened, shape=self._shape)
        return made

    def constrained(
        self, coefficients: Mapping[VariableName, float] | npt.ArrayLike, value: float = 0.0
    ) -> GaussianMarkovField:
        """The field where a sum of variables times coefficients has a value (conditioning by kriging).

        ``coefficients`` are a dict from names, or ``float64[n]``, which may have the shape of the lattice.

        Examples
        --------
        >>> import markovfield as mf
        >>> field = mf.GaussianMarkovField.from_precision([[1.0, 0.0], [0.0, 1.0]], variables=["a", "b"])
        >>> mf.marginals(field.constrained({"a": 1.0, "b": 1.0}, 4.0))["a"]
        Normal(mean=2.0, variance=0.5)
        """
        from scipy import sparse

        form = self.compile()
        n = form.n_variables
        if isinstance(coefficients, Mapping):
            at = form.names.positions(list(coefficients))
            values = np.array([number(v, f"the coefficient of {k!r}") for k, v in coefficients.items()])
            row = sparse.csr_array((values, (np.zeros(len(at), np.int64), at)), shape=(1, n))
        else:
            dense = np.asarray(coefficients, np.float64)
            if dense.shape not in ((n,), self._shape) or not np.isfinite(dense).all():
                raise ModelError(f"constrained(coefficients) needs {n} finite numbers, got shape {dense.shape}")
            row = sparse.csr_array(dense.reshape(1, n))
        if not row.nnz or not np.any(row.data):
            raise ModelError("constrained(coefficients) needs a coefficient that is not zero")
        sides = np.append(form.values, number(value, "constrained(value)"))
        return self._with(form.changed(constraints=sparse.vstack([form.constraints, row]), values=sides))

    def sum_to_zero(self, *, trends: bool = False) -> GaussianMarkovField:
        """The field with a sum of zero over each connected component, which is what an intrinsic field of one needs.

        With ``trends`` it is at right angles to all that it leaves open: to slopes as well, of ``"rw2"``.
        """
        from scipy import sparse

        form = self.compile()
        rows = form.null_space.T
        if not trends or not len(rows):
            levels = precisions.component_levels(form.n_variables, self._edges, "sum_to_zero()")
            rows = (levels.T > 0).astype(np.float64)
        both = sparse.vstack([form.constraints, sparse.csr_array(rows)])
        return self._with(form.changed(constraints=both, values=np.append(form.values, np.zeros(len(rows)))))

    def observe(self, design: Any, y: npt.ArrayLike, noise: npt.ArrayLike) -> GaussianMarkovField:
        """The field after seeing ``y = design @ x + e``: rows of a matrix in place of single variables.

        Parameters
        ----------
        design
            ``[rows, n]``, dense or sparse.
        y, noise
            ``float64[rows]``, and the variance of ``e``: one number or ``float64[rows]``.
        """
        from scipy import sparse

        form = self.compile()
        matrix = sparse.csr_array(design)
        seen = np.asarray(y, np.float64)
        if matrix.shape != (len(seen), form.n_variables) or seen.ndim != 1:
            raise ModelError(
                f"observe(design, y) needs [rows, {form.n_variables}] and [rows], got {matrix.shape} and {seen.shape}"
            )
        variance = np.broadcast_to(np.asarray(noise, np.float64), seen.shape)
        if not (np.isfinite(seen).all() and np.isfinite(matrix.data).all() and (variance > 0).all()):
            raise ModelError("observe(design, y, noise) needs finite numbers, and variances above zero")
        weighted = sparse.csr_array(sparse.diags_array(1 / np.sqrt(variance)) @ matrix)
        precision = sparse.csc_array(form.precision + precisions.squared(weighted))
        information = form.information + weighted.T @ (seen / np.sqrt(variance))
        opened = form.null_space
        if opened.shape[1]:
            # Directions that no row sees.
            values, right = np.linalg.eigh(opened.T @ precisions.squared(weighted) @ opened)
            scale = max(np.abs(weighted.data).max(initial=0.0), 1e-300) ** 2
            opened = opened @ right[:, values <= SMALL * scale]
        root = None if form.root is None else sparse.csr_array(sparse.vstack([form.root, weighted]))
        changed = form.changed(precision=precision, information=information, null_space=opened, stencil=None, root=root)
        made = self._with(changed)
        made._edges = _pairs(precision)
        return made

    # ---- reading ----------------------------------------------------------------------------------------------------

    def _current_names(self) -> Names:
        return self._names

    @property
    def variables(self) -> Sequence[VariableName]:
        """Variable names in position order."""
        return self._names.variables

    @property
    def n_variables(self) -> int:
        """Number of variables."""
        return len(self._names.variables)

    @property
    def edges(self) -> IntArray:
        """``int64[m, 2]``: positions of the ends of each edge of the graph it was written on."""
        return self._edges

    @property
    def shape(self) -> tuple[int, ...] | None:
        """Of the lattice; None where it is on another graph."""
        return self._shape

    @property
    def kind(self) -> str:
        """What it was made as."""
        return self._kind

    @property
    def has_numbers(self) -> bool:
        """Whether it has a precision, or is a graph to be fitted."""
        return self._form is not None

    @property
    def precision(self) -> Any:
        """The precision matrix, sparse ``[n, n]``."""
        return self.compile().precision

    @property
    def null_space(self) -> FloatArray:
        """``float64[n, k]``, orthonormal: directions that the precision leaves open."""
        return self.compile().null_space

    def compile(self) -> ConstrainedField:
        """The form that the verbs take."""
        if self._form is None:
            raise ModelError(
                "this GaussianMarkovField is a graph without numbers: give it a kind, or fit it to data with mf.fit"
            )
        return self._form

    def to_networkx(self) -> nx.Graph:
        """Its graph."""
        import networkx as nx

        graph = nx.Graph()
        graph.add_nodes_from(self.variables)
        names = self.variables
        graph.add_edges_from((names[i], names[j]) for i, j in self._edges.tolist())
        return graph

    def __repr__(self) -> str:
        n = self.n_variables
        said = [f"{n} variable{'s' * (n != 1)}"]
        said += [self._kind] if self._kind else []
        said += [f"lattice {' x '.join(map(str, self._shape))}"] if self._shape else []
        if self._form is None:
            said.append(f"{len(self._edges)} edges, without numbers")
        else:
            k, m = self._form.null_space.shape[1], self._form.constraints.shape[0]
            said += [f"intrinsic of rank {self._form.rank}"] if k else []
            said += [f"{m} constraint{'s' * (m != 1)}"] if m else []
        return f"GaussianMarkovField({', '.join(said)})"


_numbers = range  # `range` is a keyword of `on_mesh`


def _information(precision: Any, mean: npt.ArrayLike, n: int, shape: tuple[int, ...] | None) -> FloatArray:
    try:
        given = np.asarray(mean, np.float64)
    except (TypeError, ValueError):
        given = np.array(np.nan)
    if given.shape not in ((), (n,), shape) or not np.isfinite(given).all():
        raise ModelError(f"mean needs one finite number or {n} of them, got {mean!r}")
    if not given.any():
        return np.zeros(n)
    return np.asarray(precision @ np.broadcast_to(given.ravel() if given.ndim else given, n))


def _pairs(precision: Any) -> IntArray:
    """Positions of the ends of each edge of a precision."""
    entries = precision.tocoo()
    i, j = entries.coords
    keep = i < j
    return np.stack([i[keep], j[keep]], axis=1).astype(np.int64)
