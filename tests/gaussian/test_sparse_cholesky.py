"""The sparse Cholesky engine against dense linear algebra, on patterns of every kind."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

import markovfield as mf
from markovfield.gaussian import sparse_cholesky
from markovfield.gaussian.dense_kernel import factor_panel, subtract_product
from markovfield.gaussian.fill_reducing import find_lattice, find_order
from markovfield.gaussian.sparse_cholesky import CholeskyPlan, SparseFactor, analyse


@pytest.fixture(autouse=True)
def sparse_at_any_size(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Small matrices would be left to LAPACK, which is the reference here."""
    monkeypatch.setattr(sparse_cholesky, "MOST_DENSE", 0)
    monkeypatch.setattr(sparse_cholesky, "MOST_FULL", 0)
    sparse_cholesky._PLANS.clear()
    yield
    sparse_cholesky._PLANS.clear()


def dominant(n: int, density: float, seed: int) -> sparse.csc_array:
    """A random sparse positive definite matrix."""
    rng = np.random.default_rng(seed)
    upper = np.triu(rng.normal(size=(n, n)) * (rng.random((n, n)) < density), 1)
    matrix = upper + upper.T
    return csc(matrix + np.diag(np.abs(matrix).sum(axis=1) + rng.uniform(0.1, 2, n)))


def csc(matrix: np.ndarray) -> sparse.csc_array:
    found = sparse.csc_array(matrix)
    found.sort_indices()
    return found


def lattice(shape: tuple[int, ...], power: int = 1) -> sparse.csc_array:
    """Laplacian of a lattice with a little on the diagonal, or its square."""
    total = sparse.csc_array((1, 1))
    for length in shape:
        degree = np.full(length, 2.0)
        degree[[0, -1]] -= 1
        off = -np.ones(length - 1)
        path = sparse.diags_array([off, degree, off], offsets=[-1, 0, 1])
        total = sparse.kron(total, sparse.eye_array(length)) + sparse.kron(sparse.eye_array(total.shape[0]), path)
    total = sparse.csc_array(total + 0.1 * sparse.eye_array(total.shape[0]))
    return csc((total @ total if power == 2 else total).toarray())


def check(matrix: sparse.csc_array, plan: CholeskyPlan) -> SparseFactor:
    """Everything a factor answers, against dense linear algebra."""
    n = matrix.shape[0]
    factor = plan.factorise(matrix.data)
    inverse = np.linalg.inv(matrix.toarray())
    size = np.abs(inverse).max()
    assert factor.log_determinant == pytest.approx(np.linalg.slogdet(matrix.toarray())[1], rel=1e-10, abs=1e-9 * n)
    rng = np.random.default_rng(0)
    for shape in ((n,), (n, 1), (n, 3), (n, 37)):
        right = rng.normal(size=shape)
        np.testing.assert_allclose(factor.solve(right), inverse @ right, atol=1e-9 * size * n)
        np.testing.assert_allclose(factor.upper_solve(factor.lower_solve(right)), inverse @ right, atol=1e-9 * size * n)
    root = factor.upper_solve(np.eye(n))
    np.testing.assert_allclose(root @ root.T, inverse, atol=1e-9 * size)
    found = factor.selected_inverse()
    columns = np.repeat(np.arange(n), np.diff(matrix.indptr))
    scale = np.sqrt(np.diag(inverse))
    np.testing.assert_allclose(found.diagonal, np.diag(inverse), rtol=1e-9)
    allowed = 1e-9 * (scale[matrix.indices] * scale[columns])
    assert (np.abs(found.on_pattern - inverse[matrix.indices, columns]) <= allowed).all()
    return factor


@given(st.integers(1, 60), st.floats(0, 1), st.integers(0, 2**32))
@settings(max_examples=60)
def test_random_patterns(n: int, density: float, seed: int):
    matrix = dominant(n, density**3, seed)
    plan = analyse(matrix)
    assert sorted(plan.order.tolist()) == list(range(n))
    check(matrix, plan)


@given(st.integers(1, 40), st.integers(0, 2**32))
@settings(max_examples=30)
def test_any_order_gives_the_same_answers(n: int, seed: int):
    matrix = dominant(n, 0.1, seed)
    order = np.random.default_rng(seed).permutation(n)
    plan = analyse(matrix, order=order)
    assert plan.method == "given order"
    check(matrix, plan)


@pytest.mark.parametrize(
    ("shape", "power"), [((1, 50), 1), ((50, 1), 2), ((17, 23), 1), ((17, 23), 2), ((5, 6, 7), 1), ((300,), 1)]
)
def test_lattices_by_degree_and_by_halves(shape: tuple[int, ...], power: int, monkeypatch: pytest.MonkeyPatch):
    matrix = lattice(shape, power)
    monkeypatch.setattr("markovfield.gaussian.fill_reducing.LEAST_DISSECTED", 10**9)
    by_degree = CholeskyPlan(matrix, None, None)
    monkeypatch.setattr("markovfield.gaussian.fill_reducing.LEAST_DISSECTED", 0)
    coordinates = np.stack(np.unravel_index(np.arange(matrix.shape[0]), shape), axis=1)
    by_halves = CholeskyPlan(matrix, coordinates, None)
    assert by_degree.method == "minimum degree"
    for plan in (by_degree, by_halves):
        check(matrix, plan)
        # What is predicted is what the elimination does.
        assert plan.fill == eliminated_entries(matrix, plan.order)


def eliminated_entries(matrix: sparse.csc_array, order: np.ndarray) -> int:
    """Entries of the factor, by eliminating one variable after the other."""
    joined = (matrix.toarray() != 0)[np.ix_(order, order)]
    total = 0
    for j in range(len(joined)):
        later = j + 1 + np.flatnonzero(joined[j + 1 :, j])
        joined[np.ix_(later, later)] = True
        total += 1 + len(later)
    return total


def test_forests_have_no_fill():
    rng = np.random.default_rng(3)
    n = 400
    parents = [int(rng.integers(0, j)) for j in range(1, n)]
    upper = sparse.coo_array((np.ones(n - 1), (parents, range(1, n))), shape=(n, n))
    matrix = csc((upper + upper.T + 30 * sparse.eye_array(n)).toarray())
    plan = analyse(matrix)
    assert plan.fill == 2 * n - 1
    check(matrix, plan)


def test_components_stars_and_single_variables():
    star = np.eye(300) * 2.0
    star[0, 1:] = star[1:, 0] = 0.05
    check(csc(star), analyse(csc(star)))
    blocks = np.kron(np.eye(5), np.array([[2.0, 1, 0], [1, 2, 0], [0, 0, 1]]))
    check(csc(blocks), analyse(csc(blocks)))
    check(csc(np.array([[4.0]])), analyse(csc(np.array([[4.0]]))))
    empty = analyse(sparse.csc_array((0, 0))).factorise([])
    assert empty.log_determinant == 0.0 and empty.solve(np.zeros((0, 2))).shape == (0, 2)
    assert empty.selected_inverse().diagonal.shape == (0,)


def test_stored_zeros_are_part_of_the_pattern():
    matrix = csc(np.array([[2.0, 1.0, 9.0], [1.0, 2.0, 1.0], [9.0, 1.0, 2.0]]))
    matrix.data[matrix.data == 9.0] = 0.0
    found = analyse(matrix).factorise(matrix.data).selected_inverse().on_pattern
    np.testing.assert_allclose(found.reshape(3, 3), np.linalg.inv(matrix.toarray()))


def test_entries_that_cancel_are_still_visited():
    # Eliminating the first variable cancels the edge between the next two exactly.
    matrix = np.eye(6) * 4.0
    for i, j, value in [(0, 1, 2.0), (0, 2, 2.0), (1, 2, 1.0), (1, 3, 1.0), (2, 4, 1.0), (3, 5, 1.0), (4, 5, 1.0)]:
        matrix[i, j] = matrix[j, i] = value
    check(csc(matrix), analyse(csc(matrix), order=range(6)))


def test_very_different_units():
    matrix = dominant(40, 0.1, 5).toarray()
    units = 10.0 ** np.random.default_rng(5).integers(-60, 60, 40)
    scaled = csc(matrix * units[:, None] * units)
    inverse = np.linalg.inv(matrix) / units / units[:, None]
    factor = analyse(scaled).factorise(scaled.data)
    np.testing.assert_allclose(factor.selected_inverse().diagonal, np.diag(inverse), rtol=1e-9)
    expected = np.linalg.slogdet(matrix)[1] + 2 * np.log(units).sum()
    assert factor.log_determinant == pytest.approx(expected, rel=1e-12)


def test_the_selected_inverse_is_the_gradient_of_the_log_determinant():
    matrix = lattice((6, 7))
    plan = analyse(matrix)
    direction = np.random.default_rng(2).normal(size=matrix.nnz)
    mirror = sparse.csc_array((np.arange(matrix.nnz), matrix.indices, matrix.indptr)).T.tocsc()
    mirror.sort_indices()
    direction = direction + direction[mirror.data]
    step = 1e-5
    ahead, behind = (plan.factorise(matrix.data + s * direction).log_determinant for s in (step, -step))
    gradient = plan.factorise(matrix.data).selected_inverse().on_pattern
    size = np.linalg.norm(gradient) * np.linalg.norm(direction)
    assert (ahead - behind) / (2 * step) == pytest.approx(float(gradient @ direction), abs=1e-7 * size)


def test_published_values_of_a_lattice():
    # A conditional autoregression on 300 x 300: log det and mean variance as CHOLMOD and selinv have them.
    degree = np.full(300, 2.0)
    degree[[0, -1]] = 1.0
    path = sparse.diags_array([-np.ones(299), degree, -np.ones(299)], offsets=[-1, 0, 1])
    one = sparse.eye_array(300)
    matrix = sparse.csc_array(sparse.kron(path, one) + sparse.kron(one, path) + 0.01 * sparse.eye_array(90_000))
    matrix.sort_indices()
    plan = analyse(matrix)
    assert "lattice of 300 x 300" in plan.method
    factor = plan.factorise(matrix.data)
    assert factor.log_determinant == pytest.approx(105110.550693, abs=1e-6)
    assert factor.selected_inverse().diagonal.mean() == pytest.approx(0.657894437145, abs=1e-11)
    assert analyse(matrix.copy()) is plan


# ---- orders ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("shape", "power"), [((9, 13), 1), ((9, 13), 2), ((6, 7, 8), 1)])
def test_lattices_are_recognised(shape: tuple[int, ...], power: int):
    matrix = lattice(shape, power)
    found = find_lattice(matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32))
    expected = np.stack(np.unravel_index(np.arange(matrix.shape[0]), shape), axis=1)
    np.testing.assert_array_equal(found, expected)


def test_what_is_no_lattice():
    for matrix in (lattice((40,)), dominant(40, 0.2, 0), csc(np.eye(5))):
        assert find_lattice(matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32)) is None


def test_a_lattice_with_gaps_is_still_cut_in_halves(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("markovfield.gaussian.fill_reducing.LEAST_DISSECTED", 100)
    monkeypatch.setattr(sparse_cholesky, "MOST_DENSE", 0)
    field = mf.GaussianField(lattice((20, 25)), np.ones(500))
    known = np.random.default_rng(0).choice(500, 60, replace=False).tolist()
    rest = field.condition(dict.fromkeys(known, 1.0))
    assert "lattice of 20 x 25" in rest.factor.plan.method
    free = np.setdiff1d(np.arange(500), known)
    inner = field.precision.toarray()[np.ix_(free, free)]
    np.testing.assert_allclose(rest.variances, np.diag(np.linalg.inv(inner)), rtol=1e-9)


def test_minimum_degree_has_little_fill():
    matrix = lattice((60, 60))
    order = find_order(matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32), None).order
    ours = analyse(matrix, order=order).fill
    # A reference that does not share its code: SciPy's multiple minimum degree.
    from scipy.sparse.linalg import splu

    theirs = splu(matrix, "MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True}).L.nnz
    assert ours < 1.2 * theirs


# ---- dense blocks ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("k", "r"), [(1, 0), (3, 5), (8, 8), (13, 20), (70, 9), (130, 61)])
def test_panels(k: int, r: int):
    m = k + r
    width = -(-m // 8) * 8
    root = np.random.default_rng(k).normal(size=(m, m + 3))
    matrix = root @ root.T
    panel = np.zeros(k * width + 64)
    panel[: k * width].reshape(k, width)[:, :m] = np.triu(matrix)[:k]
    assert factor_panel(panel, 0, width, k, m, np.zeros(k), np.zeros(8)) == -1
    found = np.triu(panel[: k * width].reshape(k, width)[:, :m])
    np.testing.assert_allclose(found, np.linalg.cholesky(matrix).T[:k], rtol=1e-8, atol=1e-9)
    assert not panel[: k * width].reshape(k, width)[:, m:].any()


@given(st.integers(1, 30), st.integers(1, 60), st.integers(0, 40), st.booleans())
@settings(max_examples=40)
def test_products(rows: int, columns: int, steps: int, transposed: bool):
    rng = np.random.default_rng(rows)
    wide = -(-columns // 8) * 8
    left = rng.normal(size=(steps, rows) if transposed else (rows, steps))
    right = np.zeros((steps, wide))
    right[:, :columns] = rng.normal(size=(steps, columns))
    out = np.zeros((rows, wide))
    flat = np.append(left.ravel(), 0.0)
    strides = (1, rows) if transposed else (steps, 1)
    subtract_product(
        out.reshape(-1), 0, wide, flat, 0, *strides, np.append(right.ravel(), np.zeros(64)), 0, wide, rows, columns,
        steps, False,
    )  # fmt: skip
    np.testing.assert_allclose(out, -(left.T if transposed else left) @ right, atol=1e-12)


# ---- what is refused ------------------------------------------------------------------------------------------------


def test_indefinite_matrices_name_a_variable_and_a_direction():
    matrix = lattice((9, 9)).toarray()
    matrix[40, 41] = matrix[41, 40] = 30.0
    names = [f"v{i}" for i in range(81)]
    least = np.linalg.eigvalsh(matrix)[0]
    with pytest.raises(
        mf.ModelError, match=rf"smallest eigenvalue is {least:.3g}, and variable 'v\d+' has no positive"
    ):
        analyse(csc(matrix)).factorise(csc(matrix).data, names=names)


def test_large_indefinite_matrices_bound_the_eigenvalue(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sparse_cholesky, "MOST_LISTED", 10)
    rng = np.random.default_rng(8)
    for seed in range(20):
        matrix = dominant(50, 0.08, seed).toarray()
        i, j = rng.choice(50, 2, replace=False)
        matrix[i, j] = matrix[j, i] = 40.0
        least = np.linalg.eigvalsh(matrix)[0]
        with pytest.raises(mf.ModelError, match="smallest eigenvalue is at most -") as caught:
            analyse(csc(matrix)).factorise(csc(matrix).data)
        bound = float(str(caught.value).split("at most ")[1].split(",")[0])
        # A Rayleigh quotient: negative, and not below the eigenvalue (it is printed to three digits).
        assert least * 1.01 <= bound < 0


def test_singular_matrices_are_refused():
    walk = lattice((12,)).toarray() - 0.1 * np.eye(12)
    with pytest.raises(mf.ModelError, match="not positive definite"):
        analyse(csc(walk)).factorise(csc(walk).data)
    missing = csc(np.array([[1.0, 0.5], [0.5, 0.0]]))
    with pytest.raises(mf.ModelError, match="diagonal entry of variable 1 is 0"):
        analyse(missing).factorise(missing.data)


def test_arguments_refused():
    matrix = lattice((4, 4))
    plan = analyse(matrix)
    with pytest.raises(mf.ModelError, match=r"needs the 64 entries of the pattern, got shape \(3,\)"):
        plan.factorise([1, 2, 3])
    with pytest.raises(mf.ModelError, match="symmetric pattern"):
        analyse(csc(np.array([[1.0, 1.0], [0.0, 1.0]])))
    with pytest.raises(mf.ModelError, match="permutation of the 16 positions"):
        analyse(matrix, order=[0] * 16)
    with pytest.raises(mf.ModelError, match=r"16 variables needs as many rows, got shape \(3,\)"):
        plan.factorise(matrix.data).solve(np.ones(3))


def test_memory_is_refused_before_it_is_allocated():
    # A complete graph of many hubs: small to write down, far too large to factor.
    n, hubs = 30_000, 40
    rng = np.random.default_rng(0)
    rows = np.repeat(np.arange(n), hubs)
    ends = rng.integers(0, n, n * hubs)
    upper = sparse.coo_array((np.ones(n * hubs), (rows, ends)), shape=(n, n)).tocsc()
    matrix = sparse.csc_array(upper + upper.T + sparse.eye_array(n))
    matrix.sort_indices()
    plan = analyse(matrix, order=range(n))
    assert plan.fill > 2e8 and "entries of the factor" in plan.describe()
    with pytest.raises(mf.MemoryLimitError, match=r"needs .* GiB, more than the memory limit of 1 GiB"):
        plan.factorise(matrix.data, memory_limit=2**30)
