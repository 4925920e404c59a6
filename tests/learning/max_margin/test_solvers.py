"""Solvers of structural SVMs on planes that are all known: one optimum, which a QP confirms, bounds, and stops."""

from __future__ import annotations

import numpy as np
import pytest

from markovfield.exceptions import ModelError
from markovfield.inference.core.running import Running
from markovfield.learning.max_margin.block_frank_wolfe import BlockFrankWolfe
from markovfield.learning.max_margin.cutting_plane import CuttingPlane
from markovfield.learning.max_margin.frank_wolfe import FrankWolfe
from markovfield.learning.max_margin.perceptron import StructuredPerceptron
from markovfield.learning.max_margin.subgradient import Subgradient
from tests.learning.max_margin.problems import Listed, listed, separable

WITH_GAPS = [
    *(
        BlockFrankWolfe(gap=1e-5, steps=steps, sampling=sampling, sweeps=sweeps, max_passes=3000)
        for steps in ("pairwise", "away")
        for sampling, sweeps in (("permuted", 0), ("permuted", 10), ("gap", 0), ("gap", 5))
    ),
    BlockFrankWolfe(gap=1e-3, averaged=True, sweeps=0),
    BlockFrankWolfe(gap=1e-3, averaged=True, sampling="gap"),
    BlockFrankWolfe(gap=1e-3, steps="toward", max_passes=20_000, sweeps=0, check_every=20),
    CuttingPlane("n", gap=1e-5),
    CuttingPlane("n", gap=1e-5, keep=2),
    CuttingPlane("one", gap=1e-5),
    CuttingPlane("one", gap=1e-5, keep=5),
    CuttingPlane("one", gap=1e-5, level=0.3),
    CuttingPlane("one", gap=1e-5, level=0.8),
    FrankWolfe(gap=1e-3, max_passes=20_000),
]
solvers = pytest.mark.parametrize("solver", WITH_GAPS, ids=repr)


def run(solver, problem, seed=0, **running):
    return solver.run(problem, rng=np.random.default_rng(seed), running=Running(**running))


@solvers
@pytest.mark.parametrize("seed", range(3))
def test_all_solvers_find_the_optimum_of_the_qp(solver, seed):
    problem = listed(seed, size=1 + seed)
    best, w = problem.optimum()
    found = run(solver, problem)
    assert found.converged, found.message
    assert found.primal == pytest.approx(problem.primal(found.weights))
    assert found.dual - 1e-7 <= best <= found.primal + 1e-7
    assert found.gap <= solver.gap
    assert found.primal - best <= solver.gap * found.primal + 1e-7
    # The primal is strongly convex: weights are as near as values are.
    assert 0.5 * np.sum((found.weights - w) ** 2) <= found.primal - best + 1e-6
    duals = np.array([one.dual for one in found.history])
    assert (np.diff(duals) >= -1e-9).all()
    assert all(not one.primal < duals.max() - 1e-9 for one in found.history)


@pytest.mark.parametrize("averaged", [True, False])
@pytest.mark.parametrize("projected", [True, False])
def test_subgradients_reach_it_too(averaged, projected):
    problem = listed(1)
    best, _ = problem.optimum()
    found = run(Subgradient(passes=3000, averaged=averaged, projected=projected, check_every=50), problem)
    assert best - 1e-7 <= found.primal <= (1 + 1e-3 if averaged else 1 + 1e-2) * best
    assert found.primal == pytest.approx(problem.primal(found.weights))
    assert np.isnan(found.dual)
    assert not found.converged


def test_the_ball_of_subgradients_holds_the_optimum():
    for seed in range(5):
        problem = listed(seed)
        _, w = problem.optimum()
        assert w @ w <= problem.primal(np.zeros(len(w))) + 1e-8


@pytest.mark.parametrize("seed", range(4))
def test_the_bound_on_mistakes_of_the_perceptron(seed):
    problem, margin = separable(seed)
    found = run(StructuredPerceptron(passes=500, averaged=False), problem, seed)
    assert found.message == "a pass without a mistake"
    radius = max(np.linalg.norm(a, axis=1).max() for a in problem.features)
    assert 0 < found.radius <= radius + 1e-12
    assert sum(found.mistakes) <= (found.radius / margin) ** 2
    assert found.mistakes[-1] == 0
    assert all((a @ found.weights > 0).all() for a in problem.features)
    averaged = run(StructuredPerceptron(passes=500), problem, seed)
    assert np.mean([(a @ averaged.weights > 0).all() for a in problem.features]) > 0.9


def test_averages_of_the_perceptron_are_those_of_all_steps():
    problem, _ = separable(2)
    w, every = np.zeros(problem.n_weights), []
    rng = np.random.default_rng(0)
    for _ in range(2):
        for shard in rng.permutation(len(problem.shards)):
            planes = problem.planes(w, shard, losses=False)
            w = w + np.bincount(planes.columns, planes.values, len(w))
            every.append(w)
    found = run(StructuredPerceptron(passes=2), problem, 0)
    assert 0 not in found.mistakes[:1]
    # The weights before the first example count as one more.
    np.testing.assert_allclose(found.weights, np.sum(every, axis=0) / (len(every) + 1), atol=1e-12)


def test_margins_that_are_infused_are_as_large_as_losses():
    problem, _ = separable(0)
    problem.costs[:] = 1e6
    found = run(StructuredPerceptron(passes=2000, averaged=False, margin_infused=True), problem)
    heights = [(b - a @ found.weights).max() for a, b in zip(problem.features, problem.losses, strict=True)]
    assert max(heights) < 0.05


STOPPED = [*WITH_GAPS[:2], *WITH_GAPS[8:], Subgradient(), StructuredPerceptron(), StructuredPerceptron(averaged=False)]


@pytest.mark.parametrize("solver", STOPPED, ids=repr)
@pytest.mark.parametrize("after", [1, 2, 12])
def test_what_stops_them_leaves_weights(solver, after):
    steps = []
    found = run(solver, listed(3, size=2), callback=lambda p: steps.append(p) or len(steps) >= after)
    assert "callback" in found.message
    assert found.weights.shape == (6,)
    assert np.isfinite(found.weights).all()
    assert not found.converged
    found = run(solver, listed(3, size=2, interrupt=after))
    assert "keyboard" in found.message
    assert found.weights.shape == (6,)
    assert np.isfinite(found.weights).all()
    found = run(solver, listed(3, size=2), time_limit=1e-9)
    assert "time limit" in found.message
    assert found.weights.shape == (6,)


def test_a_problem_that_costs_nothing():
    problem = Listed([np.ones((1, 2))], [np.zeros(1)], np.ones(1))
    for solver in WITH_GAPS:
        found = run(solver, problem)
        assert found.converged
        assert found.primal == 0.0
        assert not found.weights.any()


def test_fewer_calls_than_one_slack_and_than_subgradients():
    """The order of the table of rates: blocks by themselves need the fewest calls."""
    problem = listed(0, n=40, n_weights=10, size=1)
    best, _ = problem.optimum()

    def calls(solver):
        found = run(solver, problem)
        return next(one.oracle_calls for one in found.history if one.primal <= 1.01 * best)

    block = calls(BlockFrankWolfe(gap=1e-3, check_every=1))
    assert block < calls(CuttingPlane("one", gap=1e-3))
    assert block < calls(Subgradient(passes=100, check_every=1))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: BlockFrankWolfe(steps="forward"), "steps of BlockFrankWolfe must be"),
        (lambda: BlockFrankWolfe(sampling="size"), "sampling of BlockFrankWolfe must be"),
        (lambda: BlockFrankWolfe(gap=-1.0), "gap of BlockFrankWolfe must be at least 0"),
        (lambda: CuttingPlane("two"), "'n' or 'one'"),
        (lambda: CuttingPlane("one", level=1.0), "level of CuttingPlane must be below 1"),
        (lambda: CuttingPlane("n", level=0.5), "is for slack='one'"),
        (lambda: FrankWolfe(max_passes=0), "max_passes of FrankWolfe must be at least 1"),
        (lambda: Subgradient(passes=0), "passes of Subgradient must be at least 1"),
    ],
)
def test_what_is_refused(make, message):
    with pytest.raises(ModelError, match=message):
        make()


def test_losses_that_are_not_numbers_are_caught():
    problem = Listed([np.ones((1, 2))], [np.array([np.inf])], np.ones(1))
    with pytest.raises(ModelError, match="not a finite number"):
        run(BlockFrankWolfe(), problem)
