"""An l1 and weights that are not negative: the optimum of a QP, duals below primals, refusals; checkpoints."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csc_matrix, diags

from markovfield.exceptions import ModelError
from markovfield.inference.core.running import Running
from markovfield.learning.max_margin.block_frank_wolfe import BlockFrankWolfe
from markovfield.learning.max_margin.cutting_plane import CuttingPlane
from markovfield.learning.max_margin.frank_wolfe import FrankWolfe
from markovfield.learning.max_margin.perceptron import StructuredPerceptron
from markovfield.learning.max_margin.restraint import Restraint
from markovfield.learning.max_margin.subgradient import Subgradient
from markovfield.learning.solvers.checkpoint import Checkpoint
from tests.learning.max_margin.problems import listed

WITH_GAPS = [
    BlockFrankWolfe(gap=1e-5, max_passes=3000),
    BlockFrankWolfe(gap=1e-3, steps="toward", sweeps=0, averaged=True, max_passes=20_000, check_every=20),
    BlockFrankWolfe(gap=1e-5, steps="away", sampling="gap", max_passes=3000),
    CuttingPlane("n", gap=1e-4),
]


def optimum(problem):
    """By clarabel, with u >= |w| beside the weights and the slacks."""
    clarabel = pytest.importorskip("clarabel", reason="the check needs the extra qp")
    n, m, (l1, nonnegative) = problem.n_weights, len(problem.costs), problem.restraint
    one, none = np.eye(n), np.zeros((n, n))
    rows = [np.hstack([-a, 0 * a, -np.eye(m)[[i] * len(a)]]) for i, a in enumerate(problem.features)]
    rows += [
        np.hstack([np.zeros((m, 2 * n)), -np.eye(m)]), np.hstack([one, -one, np.zeros((n, m))]),
        np.hstack([-one, -one, np.zeros((n, m))]), np.hstack([-one, none, np.zeros((n, m))])[nonnegative],
    ]  # fmt: skip
    A = np.vstack(rows)
    b = np.concatenate([*(-own for own in problem.losses), np.zeros(m + 2 * n + nonnegative.sum())])
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    P = diags(np.concatenate([np.ones(n), np.zeros(n + m)])).tocsc()
    cones = [clarabel.NonnegativeConeT(len(b))]
    solved = clarabel.DefaultSolver(
        P, np.concatenate([np.zeros(n), l1, problem.costs]), csc_matrix(A), b, cones, settings
    ).solve()
    assert str(solved.status) == "Solved"
    return solved.obj_val


def restrained(seed, kind):
    problem = listed(seed, size=1 + seed)
    n = problem.n_weights
    l1 = np.full(n, 0.2) * (np.arange(n) != 1) if "l1" in kind else np.zeros(n)
    problem.restraint = Restraint(l1, (np.arange(n) < 3) & ("positive" in kind))
    return problem


def run(solver, problem, **running):
    return solver.run(problem, rng=np.random.default_rng(0), running=Running(**running))


@pytest.mark.parametrize("kind", ["l1", "positive", "l1 and positive"])
@pytest.mark.parametrize("solver", WITH_GAPS, ids=repr)
@pytest.mark.parametrize("seed", range(2))
def test_the_optimum_is_that_of_the_qp(solver, kind, seed):
    problem = restrained(seed, kind)
    best, found = optimum(problem), run(solver, problem)
    assert found.converged, found.message
    assert found.primal == pytest.approx(problem.primal(found.weights))
    assert found.dual - 1e-7 <= best <= found.primal + 1e-7
    assert found.gap <= solver.gap
    assert all(not one.dual > one.primal + 1e-9 for one in found.history)
    assert (found.weights[problem.restraint.nonnegative] >= 0).all()


@pytest.mark.parametrize("kind", ["l1", "positive"])
def test_subgradients_come_near(kind):
    problem = restrained(0, kind)
    found = run(Subgradient(passes=1500), problem)
    assert (found.weights[problem.restraint.nonnegative] >= 0).all()
    assert optimum(problem) <= found.primal <= 1.03 * optimum(problem)


@pytest.mark.parametrize("solver", [CuttingPlane("one"), FrankWolfe(), StructuredPerceptron()], ids=repr)
def test_other_solvers_refuse(solver):
    with pytest.raises(ModelError, match="knows no l1 and no weights that must not be negative"):
        run(solver, restrained(0, "l1"))


@pytest.mark.parametrize("kind", [None, "l1 and positive"])
def test_training_goes_on_from_a_checkpoint(kind, tmp_path):
    def problem():
        return listed(1, size=2) if kind is None else restrained(1, kind)

    kept = Checkpoint(tmp_path / "state.mfz", seconds=0.0)
    whole = run(BlockFrankWolfe(gap=1e-6, max_passes=3000), problem())
    first = run(BlockFrankWolfe(gap=1e-6, max_passes=2, sweeps=0, checkpoint=kept), problem())
    assert not first.converged
    interrupted = problem()
    # Stopped in the midst of a pass, it goes on as well.
    interrupted.interrupt = 20
    run(BlockFrankWolfe(gap=1e-6, max_passes=3000, checkpoint=kept), interrupted)
    found = run(BlockFrankWolfe(gap=1e-6, max_passes=3000, checkpoint=kept), problem())
    assert found.converged
    assert [one.dual for one in found.history[: len(first.history)]] == [one.dual for one in first.history]
    assert found.primal == pytest.approx(whole.primal, rel=1e-5)
    again = run(BlockFrankWolfe(gap=1e-6, max_passes=3000, checkpoint=kept), problem())
    assert again.converged
    other = problem()
    other.features = [2 * a for a in other.features]
    with pytest.raises(ModelError, match="belongs to another objective"):
        run(BlockFrankWolfe(checkpoint=kept), other)
    other.costs = 2 * other.costs
    with pytest.raises(ModelError, match="of other examples, or of another C"):
        run(BlockFrankWolfe(checkpoint=kept), other)
