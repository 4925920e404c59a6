"""Kernels of inputs: the optimum of linear models by inner products, what only a kernel can tell, files, refusals."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics.pairwise import polynomial_kernel, rbf_kernel
from sklearn.svm import SVC

import markovfield as mf
from markovfield.learning.max_margin.block_frank_wolfe import BlockFrankWolfe
from markovfield.learning.max_margin.kernel_expansion import InputKernel, KernelExpansion
from markovfield.learning.max_margin.kernel_frank_wolfe import KernelFrankWolfe

FINE = KernelFrankWolfe(gap=3e-4)


def products(a, b):
    """The linear kernel by its values."""
    return a @ b.T


def sequences(n=25, seed=0):
    """Tokens of three numbers, of which two tell labels, with noise."""
    rng = np.random.default_rng(seed)
    X = [rng.normal(size=(int(rng.integers(1, 6)), 3)) for _ in range(n)]
    return X, [[int(a + 0.5 * rng.normal() > 0) + int(b > 0.7) for a, b, _ in x] for x in X]


def graphs(n=15, seed=0):
    """Rings, and chains with features of edges."""
    rng = np.random.default_rng(seed)
    X, Y = sequences(n, seed)
    made = []
    for x in X:
        edges = np.array([[i, i + 1] for i in range(len(x) - 1)] + [[0, 2]] * (len(x) > 2)).reshape(-1, 2)
        made.append((x, edges, rng.normal(size=(len(edges), 1))))
    return made, Y


@pytest.mark.parametrize("C", [0.1, 3.0])
@pytest.mark.parametrize("size", [None, 4])
def test_inner_products_reach_the_optimum_of_linear_chains(C, size):
    X, Y = sequences()
    linear = mf.ChainSSVM(C, all_states=True, solver=BlockFrankWolfe(gap=1e-5), rng=0).fit(X, Y)
    svm = mf.ChainSSVM(C, kernel=products, solver=FINE, batch_size=size, rng=0).fit(X, Y)
    assert svm.report_.primal == pytest.approx(linear.report_.primal, rel=1e-3)
    assert svm.report_.dual <= linear.report_.primal + 1e-9
    duals = [one.dual for one in svm.report_.passes]
    assert (np.diff(duals) >= -1e-9 * abs(duals[-1])).all()
    agree = np.mean([a == b for one, two in zip(svm.predict(X), linear.predict(X), strict=True)
                     for a, b in zip(one, two, strict=True)])  # fmt: skip
    assert agree > 0.95


@pytest.mark.parametrize("bias", [True, False])
def test_inner_products_reach_the_optimum_of_linear_graphs(bias):
    X, Y = graphs()
    linear = mf.GraphSSVM(1.0, bias=bias, solver=BlockFrankWolfe(gap=1e-5), rng=0).fit(X, Y)
    svm = mf.GraphSSVM(1.0, bias=bias, kernel=products, solver=FINE, rng=0).fit(X, Y)
    assert svm.report_.primal == pytest.approx(linear.report_.primal, rel=1e-3)
    assert svm.report_.dual <= linear.report_.primal + 1e-9
    assert svm.coef_["edges"] == pytest.approx(linear.coef_["edges"], abs=0.05)


def test_sparse_attributes_and_edges_of_chains():
    rng = np.random.default_rng(1)
    X = [[[f"w={rng.integers(6)}", "bias"] for _ in range(4)] for _ in range(20)]
    Y = [[str(int(t[0][2:]) % 2) for t in x] for x in X]
    edges = [[{"step": float(rng.normal())} for _ in x] for x in X]
    linear = mf.ChainSSVM(0.3, all_states=True, solver=BlockFrankWolfe(gap=1e-5), rng=0).fit(X, Y, edges=edges)
    svm = mf.ChainSSVM(0.3, kernel=products, solver=FINE, rng=0).fit(X, Y, edges=edges)
    assert svm.report_.primal == pytest.approx(linear.report_.primal, rel=1e-3)
    assert svm.predict(X, edges=edges) == linear.predict(X, edges=edges)


def test_a_kernel_tells_what_linear_chains_cannot(tmp_path):
    rng = np.random.default_rng(2)

    def drawn(n):
        X = [rng.uniform(-1, 1, size=(8, 2)) for _ in range(n)]
        # The sign of a product: an exclusive or.
        Y = [["odd" if a * b < 0 else "even" for a, b in x] for x in X]
        return X, Y

    (X, Y), (X2, Y2) = drawn(40), drawn(20)
    assert mf.ChainSSVM(10.0, rng=0).fit(X, Y).score(X2, Y2) < 0.65
    for kernel in ("rbf", "poly"):
        svm = mf.ChainSSVM(10.0, kernel=kernel, gamma=2.0, rng=0).fit(X, Y)
        assert svm.report_.converged and svm.report_.gap < 1e-3
        assert svm.score(X2, Y2) > 0.9
    svm.save(tmp_path / "svm.mfz")
    again = mf.load(tmp_path / "svm.mfz")
    assert again.predict(X2) == svm.predict(X2)
    assert again.predict_marginals(X2[:1])[0] == svm.predict_marginals(X2[:1])[0]
    assert again.kernel == "poly"


def test_graphs_with_a_kernel_are_saved_whole(tmp_path):
    rng = np.random.default_rng(3)
    X = [(rng.uniform(-1, 1, size=(6, 2)), [[i, i + 1] for i in range(5)]) for _ in range(40)]
    Y = [np.where(x[:, 0] * x[:, 1] < 0, "odd", "even") for x, _ in X]
    assert mf.GraphSSVM(10.0, rng=0).fit(X, Y).score(X, Y) < 0.7
    svm = mf.GraphSSVM(10.0, kernel="rbf", gamma=3.0, rng=0).fit(X[:30], Y[:30])
    assert svm.score(X[30:], Y[30:]) > 0.85
    svm.save(tmp_path / "svm.mfz")
    again = mf.load(tmp_path / "svm.mfz")
    assert again.score(X, Y) == svm.score(X, Y)
    assert again.decode(X[:3]).scores == pytest.approx(svm.decode(X[:3]).scores)


@pytest.mark.parametrize("solver", ["auto", KernelFrankWolfe(gap=1e-5)])
def test_two_classes_are_the_support_vector_machine_of_scikit_learn(solver, tmp_path):
    rng = np.random.default_rng(4)
    X = rng.uniform(-1, 1, size=(40, 2))
    y = np.where(X[:, 0] * X[:, 1] < 0.1 * rng.normal(size=40), 1, 0)
    # A mirror changes classes, so that the intercept of SVC, which we have not, is 0.
    X, y = np.concatenate([X, X * [-1.0, 1.0]]), np.concatenate([y, 1 - y])
    svm = mf.structured.MulticlassSSVM(5.0, bias=False, kernel="rbf", gamma=2.0, solver=solver, rng=0).fit(X, y)
    # With w_1 = -w_0 = v / 2: |v|^2 / 4 + C sum of hinge(1 - y <v, x>), half of what SVC minimises at 2 C.
    other = SVC(C=10.0, gamma=2.0, kernel="rbf", tol=1e-6).fit(X, y)
    assert other.intercept_ == pytest.approx(0.0, abs=1e-4)
    a = other.dual_coef_[0]
    square = a @ rbf_kernel(other.support_vectors_, gamma=2.0) @ a
    hinges = np.maximum(0.0, 1.0 - np.where(y == 1, 1, -1) * other.decision_function(X)).sum()
    assert svm.report_.primal == pytest.approx(0.25 * square + 5.0 * hinges, rel=1.5e-3)
    assert svm.report_.solver == ("class_ascent" if solver == "auto" else "kernel_frank_wolfe")
    svm.save(tmp_path / "svm.mfz")
    assert (mf.load(tmp_path / "svm.mfz").predict(X) == svm.predict(X)).all()


def test_kernels_are_those_of_scikit_learn():
    a, b = np.random.default_rng(0).normal(size=(2, 5, 3))
    assert InputKernel("rbf", 0.7)(a, b) == pytest.approx(rbf_kernel(a, b, gamma=0.7))
    assert InputKernel("poly", 0.7)(a, b) == pytest.approx(polynomial_kernel(a, b, degree=3, gamma=0.7, coef0=1.0))
    scale = InputKernel.of("rbf", "scale", a, 0.0, "this").gamma
    assert scale == pytest.approx(1.0 / (3 * a.var()))


def test_blocks_that_are_not_kept_change_nothing():
    X, Y = sequences(12)
    settings = {"kernel": "rbf", "batch_size": 3, "rng": 0}
    one = mf.ChainSSVM(**settings).fit(X, Y)
    other = mf.ChainSSVM(solver=KernelFrankWolfe(memory_limit=1), **settings).fit(X, Y)
    assert one.report_.primal == other.report_.primal and one.report_.solver == "kernel_frank_wolfe"


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"kernel": "cubic"}, "kernel of ChainSSVM must be one of 'linear', 'rbf', 'poly'"),
        ({"kernel": "rbf", "gamma": -1.0}, "gamma of ChainSSVM"),
        ({"kernel": "rbf", "l1": 0.1}, "ChainSSVM with a kernel takes no l1: leave it 0.0, got 0.1"),
        ({"kernel": "rbf", "hidden_states": 2}, "takes no hidden_states"),
        ({"kernel": "rbf", "min_count": 2}, "takes no min_count"),
        ({"kernel": "rbf", "solver": "subgradient"}, "solver of ChainSSVM with a kernel must be 'auto'"),
        ({"solver": KernelFrankWolfe()}, "KernelFrankWolfe is for estimators with a kernel"),
        ({"kernel": lambda a, b: np.zeros((1, 2))}, "the kernel must give shape"),
        ({"kernel": lambda a, b: -products(a, b)}, "the kernel is no inner product"),
    ],
)
def test_what_does_not_go_with_a_kernel_is_refused(settings, said):
    X, Y = sequences(5)
    with pytest.raises(mf.ModelError, match=said):
        mf.ChainSSVM(rng=0, **settings).fit(X, Y)


def test_a_file_whose_support_vectors_do_not_fit_is_refused():
    about, arrays = {"kernel": "rbf", "gamma": 1.0, "constant": 0.0, "shape": [2, 3]}, {"support": np.zeros(6)}
    with pytest.raises(mf.FormatError, match="its support vectors do not fit"):
        KernelExpansion.restored(about, {**arrays, "dual_coef": np.zeros(5)}, 2)
    with pytest.raises(mf.FormatError, match="its support vectors are not those of a kernel"):
        KernelExpansion.restored({**about, "kernel": "eval"}, {**arrays, "dual_coef": np.zeros(4)}, 2)


def test_more_refusals(tmp_path):
    X, Y = sequences(5)
    with pytest.raises(mf.ModelError, match="ChainSSVM with a kernel takes no development set"):
        mf.ChainSSVM(kernel="rbf").fit(X, Y, X, Y)
    pairs, labels = graphs(5)
    with pytest.raises(mf.ModelError, match="GraphSSVM with a kernel takes no associative: leave it False, got True"):
        mf.GraphSSVM(kernel="rbf", associative=True, interaction="equal").fit(pairs, labels)
    with pytest.raises(mf.ModelError, match="GraphSSVM with a kernel takes no development set"):
        mf.GraphSSVM(kernel="rbf").fit(pairs, labels, X_dev=pairs, y_dev=labels)
    for svm, data in ((mf.ChainSSVM(kernel=products), (X, Y)), (mf.GraphSSVM(kernel=products), (pairs, labels))):
        with pytest.raises(mf.ModelError, match="a kernel that is a function cannot be saved"):
            svm.fit(*data).save(tmp_path / "svm.mfz")
