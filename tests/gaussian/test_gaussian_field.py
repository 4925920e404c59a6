"""Gaussian fields: every answer against the dense formulas of NumPy."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse, stats

import markovfield as mf
from markovfield.gaussian.gaussian_field import GaussianField


@st.composite
def fields(draw: st.DrawFn, least: int = 1) -> GaussianField:
    """Random sparse precisions, positive definite by diagonal dominance, in very different units."""
    n = draw(st.integers(least, 7))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    matrix = np.triu(rng.normal(size=(n, n)) * (rng.random((n, n)) < draw(st.floats(0, 1))), 1)
    matrix += matrix.T
    matrix += np.diag(np.abs(matrix).sum(axis=1) + rng.uniform(0.1, 2, n))
    units = 10.0 ** rng.integers(-3, 4, n)
    names = draw(st.sampled_from([None, [f"v{i}" for i in range(n)]]))
    return GaussianField(matrix * units[:, None] * units, rng.normal(size=n) * units, names)


def dense(field: GaussianField) -> tuple[np.ndarray, np.ndarray]:
    covariance = np.linalg.inv(field.precision.toarray())
    return covariance @ field.information, covariance


def lattice(rows: int, columns: int) -> sparse.csc_array:
    """Precision of a first-order field on a lattice, with a little weight on the diagonal."""

    def path(n: int) -> sparse.csc_array:
        return sparse.diags_array([-np.ones(n - 1), 2 * np.ones(n), -np.ones(n - 1)], offsets=[-1, 0, 1])

    n = rows * columns
    both = sparse.kron(sparse.eye_array(rows), path(columns)) + sparse.kron(path(rows), sparse.eye_array(columns))
    return sparse.csc_array(both + 0.01 * sparse.eye_array(n))


# ---- moments ------------------------------------------------------------------------------------------------------


@given(fields())
def test_moments_are_those_of_the_inverse(field: GaussianField):
    mean, covariance = dense(field)
    scale = np.sqrt(np.diag(covariance))
    np.testing.assert_allclose(field.mean / scale, mean / scale, atol=1e-9)
    np.testing.assert_allclose(
        field.covariance / scale / scale[:, None], covariance / scale / scale[:, None], atol=1e-9
    )
    np.testing.assert_allclose(field.variances, np.diag(covariance), rtol=1e-9)


@given(fields())
def test_the_density_is_normalised_as_scipy_says(field: GaussianField):
    mean, covariance = dense(field)
    points = mean + np.random.default_rng(0).normal(size=(4, len(mean))) * np.sqrt(np.diag(covariance))
    # In units of the standard deviations, or SciPy takes the covariance for a singular one.
    scale = np.sqrt(np.diag(covariance))
    standard = stats.multivariate_normal(np.zeros(len(mean)), covariance / scale / scale[:, None])
    expected = standard.logpdf((points - mean) / scale) - np.log(scale).sum()
    np.testing.assert_allclose(field.log_density(points), np.atleast_1d(expected), rtol=1e-8, atol=1e-7)
    named = dict(zip(field.variables, points[0].tolist(), strict=True))
    assert field.log_density(named) == pytest.approx(field.log_density(points[0]))


@given(fields())
def test_there_and_back_through_the_moments(field: GaussianField):
    again = GaussianField.from_moments(field.mean, field.covariance, field.variables)
    scale = np.sqrt(field.precision.diagonal())
    back, forth = (f.precision.toarray() / scale / scale[:, None] for f in (again, field))
    np.testing.assert_allclose(back, forth, atol=1e-8)
    np.testing.assert_allclose(again.information / scale, field.information / scale, atol=1e-7)
    assert list(again.variables) == list(field.variables)


def test_log_partition_of_one_variable():
    field = GaussianField([[4.0]], [2.0])
    assert field.log_partition == pytest.approx(0.5 * np.log(2 * np.pi / 4) + 2.0**2 / (2 * 4))


# ---- marginals and conditionals -----------------------------------------------------------------------------------


@given(fields(least=2), st.data())
def test_marginal_is_a_block_of_the_covariance(field: GaussianField, data: st.DataObject):
    kept = data.draw(st.lists(st.sampled_from(list(field.variables)), min_size=1, unique=True))
    at = [list(field.variables).index(v) for v in kept]
    mean, covariance = dense(field)
    part = field.marginal(kept)
    assert list(part.variables) == kept
    scale = np.sqrt(np.diag(covariance)[at])
    np.testing.assert_allclose(part.mean / scale, mean[at] / scale, atol=1e-8)
    block = covariance[np.ix_(at, at)] / scale / scale[:, None]
    np.testing.assert_allclose(part.covariance / scale / scale[:, None], block, atol=1e-8)


@given(fields(least=2), st.data())
def test_condition_is_the_gaussian_formula(field: GaussianField, data: st.DataObject):
    known = data.draw(st.lists(st.sampled_from(list(field.variables)), min_size=1, unique=True))
    b = [list(field.variables).index(v) for v in known]
    a = [i for i in range(field.n_variables) if i not in b]
    mean, covariance = dense(field)
    x = mean[b] + np.linspace(-1, 1, len(b)) * np.sqrt(np.diag(covariance)[b])
    rest = field.condition(dict(zip(known, x.tolist(), strict=True)))
    gain = np.linalg.solve(covariance[np.ix_(b, b)], covariance[np.ix_(b, a)]).T
    scale = np.sqrt(np.diag(covariance)[a])
    np.testing.assert_allclose(rest.mean / scale, (mean[a] + gain @ (x - mean[b])) / scale, atol=1e-7)
    expected = covariance[np.ix_(a, a)] - gain @ covariance[np.ix_(b, a)]
    np.testing.assert_allclose(rest.covariance / scale / scale[:, None], expected / scale / scale[:, None], atol=1e-7)
    assert list(rest.variables) == [field.variables[i] for i in a]


@given(fields(least=2))
def test_the_chain_rule_of_densities(field: GaussianField):
    first, *others = field.variables
    point = dict.fromkeys(field.variables, 0.3)
    expected = field.marginal([first]).log_density({first: 0.3})
    expected += field.condition({first: 0.3}).log_density(dict.fromkeys(others, 0.3))
    assert field.log_density(point) == pytest.approx(float(expected), rel=1e-8, abs=1e-7)


def test_everything_known_leaves_an_empty_field():
    field = GaussianField(np.eye(2), variables=["a", "b"])
    empty = field.condition({"a": 1.0, "b": 2.0})
    assert empty.n_variables == 0 and empty.log_partition == 0.0 and empty.mean.shape == (0,)
    assert empty.covariance.shape == (0, 0) and empty.sample(3, rng=0).shape == (3, 0)
    assert field.condition({}).n_variables == 2


def test_a_marginal_joins_only_what_the_others_joined():
    # Two paths 0-1-2 and 3-4-5: taking out 1 joins 0 and 2, and nothing else.
    path = np.eye(3) * 2 - np.eye(3, k=1) - np.eye(3, k=-1)
    field = GaussianField(np.kron(np.eye(2), path)).marginal([0, 2, 3, 4, 5])
    assert {frozenset(e) for e in field.markov_graph().edges} == {frozenset(e) for e in [(0, 2), (3, 4), (4, 5)]}


# ---- samples ------------------------------------------------------------------------------------------------------


def assert_moments(drawn: np.ndarray, mean: np.ndarray, covariance: np.ndarray) -> None:
    """Whitened samples have mean 0 and covariance I.

    With another seed each number would be beyond 5.5 standard errors once in 2.6e7 draws, so that 30 of them raise
    a false alarm about once in a million runs.
    """
    size = len(drawn)
    white = np.linalg.solve(np.linalg.cholesky(covariance), (drawn - mean).T)
    assert np.abs(white.mean(axis=1) * np.sqrt(size)).max() < 5.5
    error = (white @ white.T / size - np.eye(len(mean))) * np.sqrt(size)
    np.fill_diagonal(error, np.diag(error) / np.sqrt(2))
    assert np.abs(error).max() < 5.5


def test_samples_have_the_moments():
    rng = np.random.default_rng(5)
    root = rng.normal(size=(5, 5))
    field = GaussianField(root @ root.T + 0.2 * np.eye(5), rng.normal(size=5))
    assert_moments(field.sample(200_000, rng=1), field.mean, field.covariance)
    np.testing.assert_array_equal(field.sample(3, rng=7), field.sample(3, rng=7))
    with pytest.raises(mf.ModelError, match="size\\) must not be negative, got -1"):
        field.sample(-1)


def test_samples_of_a_permuted_lattice_have_the_moments():
    # The fill-reducing order is far from the order of the variables here.
    field = GaussianField(lattice(2, 3)[::-1][:, ::-1])
    assert_moments(field.sample(100_000, rng=2), np.zeros(6), field.covariance)


# ---- independence -------------------------------------------------------------------------------------------------


@given(fields(least=3))
def test_missing_edges_are_independences_given_the_rest(field: GaussianField):
    graph = field.markov_graph()
    for a in field.variables:
        for b in field.variables:
            if a != b:
                rest = [v for v in field.variables if v not in (a, b)]
                assert field.independent(a, b, rest) == (not graph.has_edge(a, b))


@given(fields(least=3))
@settings(max_examples=40)
def test_separation_is_independence(field: GaussianField):
    graph = field.markov_graph()
    a, b, *rest = field.variables
    for cut in range(len(rest) + 1):
        known = rest[:cut]
        separated = not nx.has_path(graph.subgraph(set(field.variables) - set(known)), a, b)
        if separated:
            assert field.independent(a, b, known)
    without = field.covariance_graph()
    assert field.independent(a, b) == (not without.has_edge(a, b))


def test_sets_are_independent_when_all_pairs_are():
    field = GaussianField(np.kron(np.eye(2), [[2.0, 1.0], [1.0, 2.0]]), variables=list("abcd"))
    assert field.independent(["a", "b"], ["c", "d"]) and not field.independent(["a", "c"], ["b", "d"])
    assert field.independent([], ["a"]) and field.independent("a", ["c", "d"], given="b")
    with pytest.raises(mf.ModelError, match="without common members"):
        field.independent("a", "b", given=["a"])
    with pytest.raises(mf.ModelError, match="no variable 'e'"):
        field.independent("a", "e")


def test_graphs_carry_the_numbers():
    field = GaussianField([[2.0, -1.0, 0], [-1, 2, 0], [0, 0, 1]], [1.0, 2.0, 3.0], ["a", "b", "c"])
    graph = field.to_networkx()
    assert graph.edges["a", "b"]["precision"] == -1.0 and graph.number_of_edges() == 1
    assert graph.nodes["c"] == {"precision": 1.0, "information": 3.0}
    assert repr(field) == "GaussianField(3 variables, 1 edge)"
    assert set(field.covariance_graph().edges) == {("a", "b")}


# ---- large and sparse ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(1, 1200), (35, 40)])
def test_variances_of_a_large_field_without_its_covariance(shape: tuple[int, int]):
    field = GaussianField(lattice(*shape))
    found = field.variances
    assert "covariance" not in field._cache
    np.testing.assert_allclose(found, np.diag(field.covariance), rtol=1e-10)


def test_a_hundred_thousand_variables():
    rows, columns = 250, 400
    field = GaussianField(lattice(rows, columns), np.ones(rows * columns))
    residual = field.precision @ field.mean - 1.0
    assert np.abs(residual).max() < 1e-9
    rest = field.condition(dict.fromkeys(range(0, rows * columns, 3), 1.0))
    assert rest.n_variables == rows * columns - len(range(0, rows * columns, 3))
    assert np.isfinite(rest.mean).all()
    pair = field.marginal([0, 1])
    np.testing.assert_allclose(pair.mean, field.mean[:2], rtol=1e-8)
    with pytest.raises(mf.MemoryLimitError, match="100000 variables is a dense matrix of 80 GB"):
        _ = field.covariance


# ---- what is refused ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("precision", "message"),
    [
        ([[1.0, 2.0], [2.0, 1.0]], "not positive definite: its smallest eigenvalue is -1"),
        ([[1.0, 1.0], [1.0, 1.0]], "not positive definite"),
        ([[0.0, 1.0], [1.0, 0.0]], "diagonal entry of variable 'a' is 0"),
        ([[1.0, 0.5], [0.4, 1.0]], r"symmetric, but entries \[[01], [01]\] and"),
        ([[1.0, np.nan], [np.nan, 1.0]], "not a finite number"),
        ([[1.0, 0.0]], r"square matrix, got shape \(1, 2\)"),
        ([["x"]], "matrix of numbers"),
        (np.eye(3), "needs 2 names|3 names, got 2"),
    ],
)
def test_precisions_refused(precision: object, message: str):
    with pytest.raises(mf.ModelError, match=message):
        GaussianField(precision, variables=["a", "b"])


def test_a_large_indefinite_precision_is_refused():
    matrix = lattice(40, 40).tolil()
    matrix[7, 8] = matrix[8, 7] = 30.0
    with pytest.raises(mf.ModelError, match="the precision is not positive definite"):
        GaussianField(matrix)


def test_arguments_refused():
    field = GaussianField(np.eye(2), variables=["a", "b"])
    with pytest.raises(mf.ModelError, match=r"information=...\) needs shape \(2,\), got \(3,\)"):
        GaussianField(np.eye(2), [1, 2, 3])
    with pytest.raises(mf.ModelError, match="names a variable twice"):
        GaussianField(np.eye(2), variables=["a", "a"])
    with pytest.raises(mf.ModelError, match=r"write \['ab'\]"):
        GaussianField(np.eye(2), variables="ab")
    with pytest.raises(mf.ModelError, match="covariance\\) is not positive definite"):
        GaussianField.from_moments([0, 0], [[1, 1], [1, 1]])
    with pytest.raises(mf.ModelError, match="variable 'a' takes finite numbers, got nan"):
        field.condition({"a": np.nan})
    with pytest.raises(mf.ModelError, match="variable 'a' takes finite numbers, got 'high'"):
        field.condition({"a": "high"})
    with pytest.raises(mf.ModelError, match="no variable 'c'"):
        field.condition({"c": 0.0})
    with pytest.raises(mf.ModelError, match=r"marginal\(variables\) is a sequence"):
        field.marginal("a")
    with pytest.raises(mf.ModelError, match="named twice"):
        field.marginal(["a", "a"])
    with pytest.raises(mf.ModelError, match="and 'b' has none"):
        field.log_density({"a": 0.0})
    with pytest.raises(mf.ModelError, match=r"shape \[rows, 2\], got \(3,\)"):
        field.log_density([0, 0, 0])


def test_inputs_are_copied_and_the_field_is_frozen():
    matrix, vector = lattice(2, 2), np.ones(4)
    field = GaussianField(matrix, vector)
    matrix.data[:] = 0.0
    vector[:] = 5.0
    assert field.precision[0, 0] == 4.01 and field.information[0] == 1.0
    for array in (field.precision.data, field.information, field.mean, field.covariance, field.variances):
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0.0
    with pytest.raises(AttributeError):
        field.information = vector  # type: ignore[misc]
