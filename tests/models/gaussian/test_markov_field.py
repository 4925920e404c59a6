"""Gaussian priors: ranks and null spaces by dense algebra, Matern fields against their closed forms, meshes."""

from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np
import pytest
from scipy import special

import markovfield as mf
from markovfield.models.gaussian.mesh import TriangleMesh

GMRF = mf.GaussianMarkovField

FIELDS: dict[str, Any] = {
    "rw1 path": (GMRF.lattice(7, kind="rw1", precision=3.0), 6),
    "rw1 torus": (GMRF.lattice((3, 4), kind="rw1", periodic=True), 11),
    "rw2 path": (GMRF.lattice(7, kind="rw2"), 5),
    "rw2 short": (GMRF.lattice(2, kind="rw2"), 0),
    "rw2 circle": (GMRF.lattice(7, kind="rw2", periodic=True), 6),
    "rw2 plane": (GMRF.lattice((4, 5), kind="rw2", precision=2.0), 17),
    "rw2 cylinder": (GMRF.lattice((4, 5), kind="rw2", periodic=(True, False)), 18),
    "rw2 space": (GMRF.lattice((3, 3, 3), kind="rw2"), 23),
    "rw2 graph": (GMRF(nx.petersen_graph(), kind="rw2"), 9),
    "icar parts": (GMRF([("a", "b"), ("b", "c"), ("d", "e")], kind="icar"), 3),
    "car": (GMRF(nx.path_graph(5), kind="car", rho=0.9), 5),
    "car repelled": (GMRF(nx.path_graph(5), kind="car", rho=-0.9), 5),
    "matern 1": (GMRF.lattice((3, 4), kappa=0.5, tau=2.0, alpha=1), 12),
    "matern 3": (GMRF.lattice((3, 4), kappa=0.5, tau=2.0, alpha=3), 12),
    "seasonal": (GMRF.seasonal(14, 4, precision=2.0), 11),
    "product": (GMRF.lattice(4, kind="rw1").product(GMRF.lattice(3, kind="rw2")), 3),
    "space by time": (GMRF.lattice(4, kind="rw1").product(GMRF.lattice((2, 3), kind="car")), 18),
}


@pytest.mark.parametrize("name", FIELDS)
def test_ranks_null_spaces_and_roots(name: str) -> None:
    field, rank = FIELDS[name]
    form = field.compile()
    dense = form.precision.toarray()
    assert form.rank == rank == np.linalg.matrix_rank(dense, tol=1e-9 * max(np.abs(dense).max(), 1.0))
    np.testing.assert_allclose(dense @ field.null_space, 0.0, atol=1e-9)
    np.testing.assert_allclose(field.null_space.T @ field.null_space, np.eye(field.null_space.shape[1]), atol=1e-12)
    np.testing.assert_allclose((form.root.T @ form.root).toarray(), dense, atol=1e-9)
    assert (dense == dense.T).all() and repr(field) and form._repr_html_()


def test_kinds_are_what_they_say() -> None:
    path = nx.path_graph(4)
    laplacian = nx.laplacian_matrix(path).toarray()
    second = np.diff(np.eye(4), 2, axis=0)
    np.testing.assert_allclose(GMRF(path, kind="rw1", precision=2.0).precision.toarray(), 2 * laplacian)
    np.testing.assert_allclose(GMRF.lattice(4, kind="rw2").precision.toarray(), second.T @ second)
    np.testing.assert_allclose(GMRF(path, kind="rw2").precision.toarray(), laplacian @ laplacian)
    adjacency = np.diag(np.diag(laplacian)) - laplacian
    np.testing.assert_allclose(
        GMRF(path, kind="car", rho=0.3, precision=5.0).precision.toarray(),
        5 * (np.diag(np.diag(laplacian)) - 0.3 * adjacency),
    )
    operator = 0.25 * np.eye(4) + laplacian
    found = GMRF(path, kind="matern", kappa=0.5, tau=3.0).precision.toarray()
    np.testing.assert_allclose(found, 9 * operator @ operator)
    weighted = nx.Graph()
    weighted.add_edge("x", "y", w=4.0)
    np.testing.assert_allclose(GMRF(weighted, kind="icar", weights="w").precision.toarray(), [[4, -4], [-4, 4]])


@pytest.mark.parametrize(("dimension", "size", "alpha"), [(1, 400, 1), (1, 400, 2), (2, 160, 2), (2, 160, 3)])
def test_range_and_variance_are_those_of_the_continuous_field(dimension: int, size: int, alpha: int) -> None:
    """On a large torus: the variance, and the correlation (sqrt(8 nu))^nu K_nu(sqrt(8 nu)) / (2^(nu-1) Gamma(nu))."""
    distance, variance = 20, 2.5
    field = GMRF.lattice((size,) * dimension, range=distance, variance=variance, alpha=alpha, periodic=True)
    spectrum = np.fft.fftn(field.compile().stencil).real
    covariance = np.fft.ifftn(1 / spectrum).real
    nu = alpha - dimension / 2
    x = np.sqrt(8 * nu)
    correlation = x**nu * special.kv(nu, x) / (2 ** (nu - 1) * special.gamma(nu))
    here, there = covariance[(0,) * dimension], covariance[(distance,) + (0,) * (dimension - 1)]
    assert here == pytest.approx(variance, rel=0.03)
    assert there / here == pytest.approx(correlation, abs=0.01)
    answer = mf.marginals(field)
    assert answer.variances[0] == pytest.approx(here) and answer.guarantee == "exact"


def test_smoothing_a_walk_is_the_ridge_of_its_differences() -> None:
    """The mode of a second-order walk seen with noise: the smoother of Whittaker and of Hodrick and Prescott."""
    y = np.random.default_rng(0).normal(size=30).cumsum()
    field = GMRF.lattice(30, kind="rw2", precision=10.0)
    second = np.diff(np.eye(30), 2, axis=0)
    expected = np.linalg.solve(np.eye(30) / 0.5 + 10 * second.T @ second, y / 0.5)
    np.testing.assert_allclose(mf.decode(field, y, noise=0.5).values, expected, atol=1e-9)


def test_observing_rows_is_observing_variables() -> None:
    field = GMRF.lattice((3, 4), kind="rw1")
    design = np.zeros((2, 12))
    design[0, 3], design[1, 7] = 1.0, 1.0
    one = mf.marginals(field.observe(design, [1.0, -2.0], [0.1, 0.3]))
    two = mf.marginals(field, {3: (1.0, 0.1), 7: (-2.0, 0.3)})
    np.testing.assert_allclose(one.means, two.means, atol=1e-9)
    np.testing.assert_allclose(one.variances, two.variances, atol=1e-9)
    # A difference of two sites leaves the level open.
    design[1, 3] = -1.0
    assert field.observe(design[1:], [0.5], 1.0).null_space.shape[1] == 1
    form = field.observe(design, [1.0, 0.0], 0.5).compile()
    np.testing.assert_allclose((form.root.T @ form.root).toarray(), form.precision.toarray(), atol=1e-9)


def test_means_and_numbers_that_are_given() -> None:
    field = GMRF.lattice((4, 4), mean=3.0)
    np.testing.assert_allclose(mf.marginals(field).means, 3.0)
    bare = GMRF(nx.path_graph(3))
    assert not bare.has_numbers and bare.edges.tolist() == [[0, 1], [1, 2]]
    with pytest.raises(mf.ModelError, match="is a graph without numbers: give it a kind, or fit it"):
        mf.marginals(bare)
    given = bare.with_precision(np.eye(3) * 2, [2.0, 4.0, 6.0])
    np.testing.assert_allclose(mf.marginals(given).means, [1.0, 2.0, 3.0])
    singular = GMRF.from_precision([[1.0, -1.0], [-1.0, 1.0]], null_space=[[1.0], [1.0]])
    assert mf.marginals(singular, {0: 2.0})[1].mean == pytest.approx(2.0)


def square(n: int) -> TriangleMesh:
    x, y = np.meshgrid(np.linspace(0, 1, n), np.linspace(0, 1, n))
    return TriangleMesh(np.stack([x.ravel(), y.ravel()], axis=1))


def test_finite_elements() -> None:
    mesh = square(9)
    masses, stiffness = mesh.finite_elements()
    assert masses.sum() == pytest.approx(1.0) and mesh.areas.sum() == pytest.approx(1.0)
    np.testing.assert_allclose(stiffness @ np.ones(81), 0.0, atol=1e-12)
    slope = mesh.points @ [2.0, -3.0]
    assert slope @ (stiffness @ slope) == pytest.approx(4 + 9)  # the integral of its squared gradient
    where = np.random.default_rng(0).uniform(size=(20, 2))
    np.testing.assert_allclose(mesh.projector(where) @ slope, where @ [2.0, -3.0])
    assert len(mesh.edges) == 81 + len(mesh.triangles) - 1  # Euler


def test_a_field_on_a_mesh_has_its_variance_and_a_sphere_has_no_border() -> None:
    field = GMRF.on_mesh(square(41), range=0.25, variance=1.5)
    middle = mf.marginals(field)[20 * 41 + 20]
    assert middle.variance == pytest.approx(1.5, rel=0.05)
    from scipy.spatial import ConvexHull

    ball = np.random.default_rng(1).normal(size=(60, 3))
    ball /= np.linalg.norm(ball, axis=1, keepdims=True)
    sphere = GMRF.on_mesh(ball, ConvexHull(ball).simplices, kappa=1.0, tau=1.0, alpha=1)
    assert np.linalg.eigvalsh(sphere.precision.toarray())[0] > 0 and sphere.mesh is not None


def two_parts() -> nx.Graph:
    return nx.Graph([("a", "b"), ("c", "d")])


ERRORS = [
    (lambda: GMRF.lattice(5, kind="rw3"), "one of matern, rw1, rw2, car, icar, got 'rw3'"),
    (lambda: GMRF.lattice(5, kind="rw1", rho=0.5), "kind='rw1' takes precision, not 'rho'"),
    (lambda: GMRF.lattice(5, kind="car", rho=1.0), "needs -1 < rho < 1, got 1.0"),
    (lambda: GMRF.lattice((5, 5), alpha=1), "has no variance in 2 dimensions"),
    (lambda: GMRF.lattice((5, 5), alpha=1.5), "alpha 1, 2, 3 or 4, got 1.5"),
    (lambda: GMRF.lattice((5, 5), range=3, kappa=1.0), "either range and variance or kappa and tau"),
    (lambda: GMRF.lattice((5, 5), range=-3), "range must be"),
    (lambda: GMRF(two_parts(), kind="matern", range=2), "has no lengths to measure a range in"),
    (lambda: GMRF(nx.Graph([("a", "b")]), precision=2.0), r"GaussianMarkovField\(precision=...\) needs a kind"),
    (lambda: GMRF(two_parts(), kind="icar", weights=[1.0, -1.0]), "above zero for each of the 2 edges"),
    (lambda: GMRF(two_parts(), kind="icar", weights="w"), "above zero for each of the 2 edges"),
    (lambda: GMRF.lattice(4, kind="car", mean=[1.0, np.nan, 0, 0]), "mean needs one finite number or 4"),
    (lambda: mf.sample(GMRF(two_parts(), kind="icar"), 1), "leaves 2 directions open"),
    (lambda: GMRF.seasonal(5, 7), "shorter than one period"),
    (lambda: GMRF.lattice(4).constrained({}, 0.0), "a coefficient that is not zero"),
    (lambda: GMRF.lattice(4).constrained([1.0, 2.0]), r"needs 4 finite numbers, got shape \(2,\)"),
    (lambda: GMRF.lattice(4).observe(np.ones((1, 3)), [1.0], 1.0), r"needs \[rows, 4\] and \[rows\]"),
    (lambda: GMRF.lattice(4).observe(np.ones((1, 4)), [1.0], 0.0), "variances above zero"),
    (lambda: GMRF.lattice(4).sum_to_zero().product(GMRF.lattice(3)), "fields without constraints"),
    (lambda: GMRF.from_precision(np.eye(2), null_space=[[1.0], [1.0]]), "does not take to zero"),
    (lambda: GMRF.from_precision(np.eye(2), null_space=[1.0]), r"needs shape \[2, k\]"),
    (lambda: TriangleMesh([[0, 0], [1, 0], [0, 1]], [[0, 1, 3]]), "names a point outside 0 to 2"),
    (lambda: TriangleMesh([[0, 0], [1, 0], [2, 0]], [[0, 1, 2]]), "triangle 0 has no area"),
    (lambda: TriangleMesh([[0, 0], [1, 0], [0, 1], [5, 5]], [[0, 1, 2]]), "point 3 is the corner of no triangle"),
    (lambda: TriangleMesh([[0, 0], [1, np.nan], [0, 1]]), "point 1 is not finite"),
    (lambda: square(3).projector([[2.0, 0.5]]), "point 0 is outside the mesh"),
]


@pytest.mark.parametrize(("call", "message"), ERRORS)
def test_errors(call: Any, message: str) -> None:
    with pytest.raises(mf.ModelError, match=message):
        call()


def test_many_parts_and_large_products_are_refused_before_they_are_made() -> None:
    pairs = np.arange(60_000).reshape(-1, 2)
    with pytest.raises(mf.MemoryLimitError, match="60000 variables in 30000 connected components"):
        GMRF(pairs, kind="icar")
    long = GMRF.lattice(5_000, kind="rw1")
    with pytest.raises(mf.MemoryLimitError, match="leaves 9999 directions open"):
        long.product(long)
