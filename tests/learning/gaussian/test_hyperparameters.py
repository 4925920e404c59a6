"""Hyperparameters of Gaussian priors: dense densities, finite differences, recovery."""

from __future__ import annotations

import numpy as np
import pytest

import markovfield as mf
from markovfield.exceptions import ModelError
from markovfield.learning.gaussian.hyperparameters import MarginalEvidence, fit_hyperparameters


def matern(range, variance):
    return mf.GaussianMarkovField.lattice((6, 7), range=range, variance=variance)


def walk(precision):
    return mf.GaussianMarkovField.lattice(30, kind="rw2", precision=precision)


def test_the_density_is_the_dense_one():
    y = np.random.default_rng(0).standard_normal(42)
    y[[3, 17]] = np.nan
    value, _ = MarginalEvidence(matern, ("range", "variance", "noise"), y)(np.log([4.0, 1.5, 0.3]))
    seen = np.isfinite(y)
    sigma = np.linalg.inv(matern(4.0, 1.5).precision.toarray())[np.ix_(seen, seen)] + 0.3 * np.eye(40)
    _, log_det = np.linalg.slogdet(2 * np.pi * sigma)
    assert value == pytest.approx(-0.5 * (log_det + y[seen] @ np.linalg.solve(sigma, y[seen])))


def test_of_an_intrinsic_prior_it_is_the_density_of_what_the_prior_holds():
    y = np.random.default_rng(1).standard_normal(30).cumsum()
    value, _ = MarginalEvidence(walk, ("precision", "noise"), y)(np.log([2.0, 0.4]))
    form = walk(2.0).compile()
    opened = form.null_space
    # Contrasts that the open directions do not reach, and for the rest the limit of ever wider priors.
    sigma = np.linalg.pinv(form.precision.toarray(), hermitian=True) + 0.4 * np.eye(30)
    inside = opened.T @ np.linalg.inv(sigma) @ opened
    k = np.linalg.inv(sigma) - np.linalg.inv(sigma) @ opened @ np.linalg.solve(inside, opened.T @ np.linalg.inv(sigma))
    log_det = np.linalg.slogdet(sigma)[1] + np.linalg.slogdet(inside)[1]
    assert value == pytest.approx(-0.5 * (log_det + y @ k @ y + 28 * np.log(2 * np.pi)))


@pytest.mark.parametrize(
    ("build", "names", "at", "n"),
    [(matern, ("range", "variance", "noise"), [4.0, 1.5, 0.3], 42), (walk, ("precision", "noise"), [2.0, 0.4], 30)],
)
def test_the_gradient_is_that_of_finite_differences(build, names, at, n):
    y = np.random.default_rng(2).standard_normal(n)
    y[5] = np.nan
    evidence = MarginalEvidence(build, names, y)
    point = np.log(at)
    _, gradient = evidence(point)
    for i in range(len(at)):
        shift = np.zeros(len(at))
        shift[i] = 1e-4
        slope = (evidence(point + shift)[0] - evidence(point - shift)[0]) / 2e-4
        assert gradient[i] == pytest.approx(slope, rel=1e-5, abs=1e-5)


def test_parameters_are_found_within_their_intervals():
    field = mf.GaussianMarkovField.lattice((24, 24), kind="car", rho=0.9, precision=2.0)
    rng = np.random.default_rng(3)
    y = field.compile().sample(1, rng=4).reshape(24, 24) + np.sqrt(0.1) * rng.standard_normal((24, 24))

    def build(precision):
        return mf.GaussianMarkovField.lattice((24, 24), kind="car", rho=0.9, precision=precision)

    found = fit_hyperparameters(build, y, {"precision": 1.0}, noise=0.5)
    assert found.converged
    assert (
        np.abs(MarginalEvidence(build, ("precision", "noise"), y.ravel())(np.log(list(found.values.values())))[1]).max()
        < 0.1
    )
    # Three times the standard error, so that another draw passes as well.
    for name, truth in (("precision", 2.0), ("noise", 0.1)):
        low, high = (np.log(x) for x in found.intervals[name])
        assert abs(np.log(truth) - (low + high) / 2) < 4 * (high - low) / 3.92
    assert found.field.precision.diagonal()[30] == pytest.approx(4 * found.values["precision"], rel=0.01)
    assert found.to_frame()["parameter"].tolist() == ["precision", "noise"]
    smooth = mf.marginals(found.field, evidence=y, noise=found.values["noise"])
    assert smooth.mean.shape == (24, 24)
    assert repr(found).startswith("Hyperparameters(precision ")


@pytest.mark.parametrize(
    ("act", "match"),
    [
        (lambda: fit_hyperparameters(walk, np.zeros(7), {"precision": 1.0}), r"needs shape \(30,\), got \(7,\)"),
        (lambda: fit_hyperparameters(walk, ["a"] * 30, {"precision": 1.0}), "needs numbers"),
        (lambda: fit_hyperparameters(walk, np.full(30, np.inf), {"precision": 1.0}), "infinite value"),
        (lambda: fit_hyperparameters(walk, {0: 1.0, 1: 2.0}, {"precision": 1.0}), "2 values observed, too few"),
        (lambda: fit_hyperparameters(walk, np.zeros(30), {"precision": 0.0}), r"start\['precision'\] must be"),
        (lambda: fit_hyperparameters(walk, np.zeros(30), {"noise": 1.0}), "give noise="),
        (
            lambda: fit_hyperparameters(
                lambda precision: walk(precision).sum_to_zero(), np.ones(30), {"precision": 1.0}
            ),
            "mean zero without constraints",
        ),
    ],
)
def test_what_is_wrong_is_said(act, match):
    with pytest.raises(ModelError, match=match):
        act()
