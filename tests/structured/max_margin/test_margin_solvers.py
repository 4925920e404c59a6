"""Solvers of structural SVMs on models: one optimum, confirmed by the program over marginals; relaxations bound it."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array

from markovfield.exceptions import ModelError
from markovfield.inference.core.running import Running
from markovfield.learning.max_margin.block_frank_wolfe import BlockFrankWolfe
from markovfield.learning.max_margin.cutting_plane import CuttingPlane
from markovfield.learning.max_margin.dual_extragradient import DualExtragradient
from markovfield.learning.max_margin.excessive_gap import ExcessiveGap
from markovfield.learning.max_margin.exponentiated_gradient import ExponentiatedGradient
from markovfield.learning.max_margin.frank_wolfe import FrankWolfe
from markovfield.learning.max_margin.max_margin_network import MaxMarginMarkovNetwork
from markovfield.structured import MulticlassCRF
from markovfield.structured.margin_training import margin_solver, multiclass_data
from markovfield.structured.marginals.shards import MarginalShards
from markovfield.structured.models.graph import GraphModel
from markovfield.structured.models.multiclass import MulticlassModel
from markovfield.structured.objectives.hinge import Hinge
from markovfield.structured.oracles.problem import MarginProblem
from tests.structured.test_form_estimator import Spans, data

SOLVERS = [
    BlockFrankWolfe(gap=1e-3),
    BlockFrankWolfe(gap=1e-3, steps="away", sampling="gap", sweeps=0),
    CuttingPlane("n", gap=1e-3),
    CuttingPlane("one", gap=1e-3),
    CuttingPlane("one", gap=1e-3, level=0.5),
    FrankWolfe(gap=1e-3, max_passes=20_000),
    ExponentiatedGradient(gap=1e-3),
    DualExtragradient(gap=1e-3, max_passes=5000),
    ExcessiveGap(gap=1e-3),
]


def graphs(shape, n=8, seed=0):
    """Chains, trees, cycles with a chord, or grids of three labels (two on grids), with noise."""
    rng = np.random.default_rng(seed)
    labels = 2 if shape == "grid" else 3
    X, Y = [], []
    for _ in range(n):
        if shape == "grid":
            size, cells = 9, np.arange(9).reshape(3, 3)
            edges = [*zip(cells[:, :-1].ravel(), cells[:, 1:].ravel(), strict=True)]
            edges += [*zip(cells[:-1].ravel(), cells[1:].ravel(), strict=True)]
        else:
            size = 4 if shape == "loops" else int(rng.integers(1, 5))
            edges = [(j, j + 1) for j in range(size - 1)]
            if shape == "trees":
                edges = [(int(rng.integers(0, j)), j) for j in range(1, size)]
            if shape == "loops":
                edges += [(0, 3), (0, 2)]
        y = rng.integers(0, labels, size)
        X.append((np.eye(labels)[y] + rng.normal(0, 0.9, (size, labels)), np.array(edges).reshape(-1, 2)))
        Y.append(y)
    Y[0][: min(labels, len(Y[0]))] = np.arange(labels)[: len(Y[0])]
    return X, Y


def made(kind, alike=True, size=3):
    """A problem of some kind; examples cost the same or not."""
    if kind == "spans":
        X, Y = data(6)
        model = Spans()
    elif kind == "multiclass":
        rng = np.random.default_rng(0)
        X, Y, model = rng.normal(size=(20, 3)), rng.integers(0, 3, 20), MulticlassModel()
    else:
        X, Y = graphs(kind)
        model = GraphModel(interaction="directed")
    model = model.shaped(X, Y)
    n = len(X)
    costs = np.full(n, 0.3) if alike else np.linspace(0.1, 0.6, n)
    parts = [slice(a, a + size) for a in range(0, n, size)]
    oracles = [Hinge().on(model.encode(X[part], Y[part]), running=Running()) for part in parts]
    return MarginProblem(oracles, costs, model.n_weights)


def run(solver, problem, seed=0, **running):
    return margin_solver(solver).run(problem, rng=np.random.default_rng(seed), running=Running(**running))


@pytest.fixture(scope="module")
def optima():
    """The optimum of each problem, and by the program over marginals where there is one."""
    found = {}
    for kind in ("chains", "trees", "loops", "multiclass", "spans"):
        for alike in (True, False):
            best = run(CuttingPlane("one", gap=1e-7), made(kind, alike))
            assert best.converged
            found[kind, alike] = best.dual, best.primal
    return found


@pytest.mark.parametrize("solver", SOLVERS, ids=repr)
@pytest.mark.parametrize("kind", ["chains", "trees", "loops", "multiclass", "spans"])
def test_all_solvers_find_one_optimum(solver, kind, optima):
    for alike in (True, False):
        low, high = optima[kind, alike]
        # Solvers that take all examples at a time lose nothing by large shards.
        blocks = isinstance(solver, BlockFrankWolfe | ExponentiatedGradient)
        found = run(solver, made(kind, alike, size=3 if blocks else 100))
        assert found.converged, found.message
        assert found.gap <= 1e-3
        assert low - 1e-9 <= found.primal <= high * (1 + 1e-3) + 1e-9
        assert found.dual <= high + 1e-9
        for one in found.history:
            assert not one.dual > high + 1e-7
            assert not one.primal < low - 1e-7


@pytest.mark.parametrize("alike", [True, False])
@pytest.mark.parametrize("kind", ["chains", "trees", "loops", "multiclass"])
def test_the_program_over_marginals_confirms_it(kind, alike, optima):
    pytest.importorskip("clarabel", reason="the program needs the extra qp")
    _, high = optima[kind, alike]
    found = run(MaxMarginMarkovNetwork(), made(kind, alike))
    assert found.converged
    assert found.relaxed == pytest.approx(high, rel=1e-5)
    assert found.primal == pytest.approx(high, rel=1e-5)
    local = run(MaxMarginMarkovNetwork("local"), made(kind, alike))
    if kind != "loops":
        assert local.relaxed == pytest.approx(found.relaxed, rel=1e-6)
        assert local.converged


@pytest.mark.parametrize("kind", ["grid", "loops"])
def test_a_relaxed_program_bounds_the_optimum_from_above(kind):
    """Exact optimum <= primal at the relaxed weights <= relaxed optimum, as there are more points in its polytope."""
    pytest.importorskip("clarabel", reason="the program needs the extra qp")
    exact = run(MaxMarginMarkovNetwork(), made(kind))
    relaxed = run(MaxMarginMarkovNetwork("local"), made(kind))
    assert exact.converged
    assert np.isnan(relaxed.dual)
    assert not relaxed.converged
    assert exact.relaxed <= relaxed.primal * (1 + 1e-7)
    assert relaxed.primal <= relaxed.relaxed * (1 + 1e-7)
    # Where cycles are odd, fractional marginals pay: the bounds are not all equal.
    assert kind == "grid" or relaxed.relaxed > exact.relaxed * (1 + 1e-4)
    assert exact.primal == pytest.approx(run(BlockFrankWolfe(gap=1e-6), made(kind)).primal, rel=1e-5)


@pytest.mark.parametrize("kind", ["chains", "loops", "multiclass", "spans"])
def test_moments_are_slopes_of_log_partitions(kind):
    """By finite differences: the slope by weights is features with a minus, and heights are expected."""
    problem = MarginalShards(made(kind, alike=False), Running(), "test")
    rng = np.random.default_rng(0)
    w, direction = rng.normal(size=problem.n_weights), rng.normal(size=problem.n_weights)
    for shard in range(len(problem.shards)):
        found = problem.moments(problem.cells(w, shard), shard)
        up, down = (
            problem.moments(problem.cells(w + step * direction, shard), shard).log_partition for step in (1e-5, -1e-5)
        )
        assert (up - down) / 2e-5 == pytest.approx(-found.features @ direction, rel=1e-5, abs=1e-7)
        # Cold distributions are at the highest planes.
        cold = problem.moments(1e4 * problem.cells(w, shard), shard)
        planes = problem.planes(w, shard)
        features, loss = planes.summed(problem.n_weights, problem.costs[planes.blocks])
        np.testing.assert_allclose(cold.features, features, atol=1e-6)
        assert cold.loss == pytest.approx(loss, abs=1e-6)


@pytest.mark.parametrize("alike", [True, False])
@pytest.mark.parametrize("loss", ["hamming", [[0, 1, 2], [0.5, 0, 1], [3, 1, 0]]], ids=["hamming", "table"])
@pytest.mark.parametrize("sparse", [False, True])
def test_classes_are_ascended_by_themselves(alike, loss, sparse):
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(20, 3)), rng.integers(0, 3, 20)
    model = MulticlassModel().shaped(X, Y)
    X = csr_array(X) if sparse else X
    costs = np.full(20, 0.3) if alike else np.linspace(0.0, 0.6, 20)
    oracles = [Hinge(loss).on(model.encode(X[a : a + 7], Y[a : a + 7]), running=Running()) for a in (0, 7, 14)]
    problem = MarginProblem(oracles, costs, model.n_weights)
    data = multiclass_data(problem)
    assert data is not None
    found = run("auto", problem)
    best = run(BlockFrankWolfe(gap=1e-6), problem)
    assert found.converged
    assert best.dual - 1e-9 <= found.primal <= best.primal * (1 + 1e-3)
    w = found.weights
    value = 0.5 * w @ w
    for shard, blocks in enumerate(problem.shards):
        value += costs[blocks] @ np.maximum(problem.planes(w, shard).heights(w), 0.0)
    assert found.primal == pytest.approx(value)


@pytest.mark.parametrize("seed", range(4))
def test_exponentiated_gradients_come_back_from_corners(seed):
    """First steps leave an output with a mass of exp(-40): until it is back, only rounding changes the dual."""
    X, y = np.array([[0.0], [1.0], [2.0], [3.0]]), ["a", "a", "b", "b"]
    solver = ExponentiatedGradient(gap=1e-2)
    report = MulticlassCRF(objective="hinge", solver=solver, l2=0.1, rng=seed).fit(X, y).report_
    assert report.converged and report.dual == pytest.approx(3.25, rel=1e-2)


def test_other_problems_are_not_taken_for_classes():
    for kind in ("chains", "loops", "spans"):
        assert multiclass_data(made(kind)) is None
        assert run("auto", made(kind)).n_planes > 0
    oracle = made("multiclass").oracles[0]
    normalised = MarginProblem(
        [Hinge("zero_one").on(oracle.decoder.batch, running=Running())], np.ones(3), oracle.decoder.n_weights
    )
    assert multiclass_data(normalised) is None


MARGINALS = [s for s in SOLVERS if margin_solver(s) is not s]


@pytest.mark.parametrize("solver", [*MARGINALS, MaxMarginMarkovNetwork()], ids=repr)
def test_what_stops_them_leaves_weights(solver):
    if solver.name == "max_margin_network":
        pytest.importorskip("clarabel", reason="the program needs the extra qp")
    for after in (1, 3, 20):
        steps = []
        found = run(solver, made("chains"), callback=lambda p, s=steps, n=after: s.append(p) or len(s) >= n)
        assert np.isfinite(found.weights).all()
        assert len(found.weights) == made("chains").n_weights
        assert "callback" in found.message or len(steps) < after
    found = run(solver, made("chains"), time_limit=1e-9)
    assert "time limit" in found.message


def test_what_is_refused(monkeypatch):
    problem = made("chains")
    batch = problem.oracles[0].decoder.batch
    zero_one = MarginProblem([Hinge("zero_one").on(batch, running=Running())], np.ones(3), problem.n_weights)
    with pytest.raises(ModelError, match="'exponentiated_gradient' needs a loss that adds up"):
        run(ExponentiatedGradient(), zero_one)
    with pytest.raises(ModelError, match="is for factor graphs"):
        run(MaxMarginMarkovNetwork(), made("spans"))
    with pytest.raises(ModelError, match="max_cells of MaxMarginMarkovNetwork is 10"):
        run(MaxMarginMarkovNetwork(max_cells=10), problem)
    monkeypatch.setitem(__import__("sys").modules, "clarabel", None)
    with pytest.raises(ImportError, match=r'pip install "markovfield\[qp\]"'):
        run(MaxMarginMarkovNetwork(), problem)
