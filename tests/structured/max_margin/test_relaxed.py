"""Oracles that overgenerate: fractional outputs by linear programs, and bounds by messages (dual losses)."""

from __future__ import annotations

import numpy as np
import pytest

import markovfield as mf
from markovfield.inference.core.running import Running
from markovfield.learning.max_margin.block_frank_wolfe import BlockFrankWolfe
from markovfield.learning.max_margin.cutting_plane import CuttingPlane
from markovfield.learning.max_margin.dual_loss import DualLossPrimalWeights
from markovfield.learning.max_margin.max_margin_network import MaxMarginMarkovNetwork
from markovfield.structured.marginals.dual_losses import DualLosses
from markovfield.structured.oracles.problem import MarginProblem

ALL = [[i, j] for i in range(4) for j in range(i)]
PATH = [[0, 1], [1, 2], [2, 3]]
TABLE = [[0, 1, 2], [1, 0, 0.5], [3, 1, 0]]


def graphs(edges, n=6, seed=0):
    rng = np.random.default_rng(seed)
    return [(rng.normal(size=(4, 2)), edges) for _ in range(n)], [rng.integers(0, 3, 4) for _ in range(n)]


def fitted(data, solver, l2=0.3, **hinge):
    model = mf.structured.GraphModel()
    objective = mf.methods.Hinge(**hinge)
    return mf.StructuredClassifier(model, objective=objective, solver=solver, l2=l2, rng=0).fit(*data)


@pytest.mark.parametrize("loss", ["hamming", TABLE], ids=["hamming", "table"])
def test_fractional_planes_reach_the_optimum_of_the_relaxed_program(loss):
    data = graphs(ALL)
    program = fitted(data, MaxMarginMarkovNetwork(relaxation="local"), loss=loss).report_
    exact = fitted(data, BlockFrankWolfe(gap=1e-4), loss=loss).report_
    for solver in (BlockFrankWolfe(gap=1e-4), CuttingPlane(gap=1e-3)):
        found = fitted(data, solver, loss=loss, relaxed=True).report_
        assert found.converged
        assert found.dual <= program.primal * (1 + 1e-6)
        assert found.primal >= program.primal * (1 - 1e-6)
        # All outputs are among the points of the relaxation.
        assert found.primal >= exact.dual
        assert "overgenerates" in found.notes[0]
        assert "outputs were fractional" in found.notes[0]


def test_on_trees_no_output_is_fractional():
    data = graphs(PATH)
    exact = fitted(data, BlockFrankWolfe(gap=1e-5)).report_
    relaxed = fitted(data, BlockFrankWolfe(gap=1e-5), relaxed=True).report_
    assert relaxed.primal == pytest.approx(exact.primal, rel=2e-5)
    assert "0 of " in relaxed.notes[0]


def problem(data, **hinge):
    model = mf.structured.GraphModel().shaped(*data)
    batch = model.encode(*data)
    return MarginProblem([mf.methods.Hinge(**hinge).on(batch, running=Running())], np.ones(len(data[0])), 15)


@pytest.mark.parametrize("edges", [PATH, ALL], ids=["path", "all"])
def test_bounds_by_messages_go_to_those_of_the_linear_program(edges):
    data = graphs(edges)
    w = np.random.default_rng(1).normal(size=15)
    relaxed = problem(data, relaxed=True).planes(w, 0).heights(w)
    true = problem(data).planes(w, 0).heights(w)
    assert (true <= relaxed + 1e-7).all()
    dual = DualLosses(problem(data), Running())
    for temperature in (1.0, 0.1, 0.01, 1e-3):
        _, heights = dual.bounds(w, 0, 300, temperature)
        assert (heights >= relaxed - 1e-6).all()
    np.testing.assert_allclose(heights, relaxed, rtol=1e-2)


def test_slopes_of_smoothed_bounds():
    data = graphs(ALL)
    rng = np.random.default_rng(1)
    w, temperature = rng.normal(size=15), 0.3
    batch = mf.structured.GraphModel().shaped(*data).encode(*data)
    dual = DualLosses(problem(data), Running())
    slope, _ = dual.bounds(w, 0, 5, temperature)
    messages, s = dual._messages[0], batch.structure

    def smooth(w):
        pool, total = batch.pool(w), 0.0
        for f in range(s.n_factors):
            shape = tuple(s.cardinalities[s.scope(f)])
            cells = s.table_offsets[f] + np.tensordot(s.strides(f), np.indices(shape), 1)
            value = pool[cells]
            for axis, k in enumerate(range(s.scope_offsets[f], s.scope_offsets[f + 1])):
                own = messages._messages[messages._offsets[k] :][: shape[axis]]
                value = value - own.reshape([-1 if i == axis else 1 for i in range(len(shape))])
            total += temperature * np.logaddexp.reduce(value.ravel() / temperature)
        return total - batch.scores(pool).sum()

    step = 1e-5
    for _ in range(3):
        way = rng.normal(size=15)
        assert (smooth(w + step * way) - smooth(w - step * way)) / (2 * step) == pytest.approx(-slope @ way, rel=1e-4)


def test_dual_losses_come_near_the_relaxation():
    data = graphs(ALL, n=8)
    program = fitted(data, MaxMarginMarkovNetwork(relaxation="local"), l2=3.0).report_.primal
    found = fitted(data, DualLossPrimalWeights(passes=400), l2=3.0)
    assert program * (1 - 1e-6) <= found.report_.primal <= 1.02 * program
    assert found.report_.solver == "dual_loss"
    assert not found.report_.converged
    named = mf.GraphSSVM(1 / 3, solver="dual_loss", rng=0).fit(*data)
    assert named.report_.primal >= program * (1 - 1e-6)
    stopped = mf.GraphSSVM(1.0, solver="dual_loss", rng=0).fit(*data, callback=lambda p: p.step > 20)
    assert "callback" in stopped.report_.message
    assert np.isfinite(stopped.weights_).all()


def test_what_is_refused():
    data = graphs(ALL, n=2)
    for solver, hinge, message in (
        ("auto", {"relaxed": True, "rescaling": "slack"}, "fractional outputs have no slack"),
        ("auto", {"relaxed": True, "loss": "zero_one"}, "relaxed=True needs a loss that adds up"),
        ("auto", {"relaxed": True, "decoding": "trws"}, "leave decoding 'auto'"),
        ("excessive_gap", {"relaxed": True}, "takes no relaxed=True"),
        ("dual_loss", {"relaxed": True}, "no relaxed=True"),
        ("dual_loss", {"loss": "zero_one"}, "needs a loss that adds up"),
        ("dual_loss", {"nonnegative": ("edges",)}, "DualLossPrimalWeights knows no l1"),
    ):
        with pytest.raises(mf.ModelError, match=message):
            fitted(data, solver, **hinge)
    tokens = [[["w=a"], ["w=b"]]] * 2
    with pytest.raises(mf.ModelError, match="is for factor graphs"):
        mf.ChainSSVM(solver="dual_loss").fit(tokens, [["A", "B"]] * 2)
    with pytest.raises(mf.ModelError, match="temperature"):
        DualLossPrimalWeights(temperature=0.0)
