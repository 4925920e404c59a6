"""The posterior of parameters: against quadrature, and its two ways against each other."""

from __future__ import annotations

import numpy as np
import pytest

import markovfield as mf


def test_one_parameter_against_quadrature():
    model = mf.Ising((3, 3), coupling=0.0)
    data = mf.sample(mf.Ising((3, 3), coupling=0.4), 30, rng=0)
    grid = np.linspace(-0.5, 1.5, 801)
    logs = np.array(
        [
            sum(model.with_parameters([w]).compile().score(data.states))
            - 30 * float(mf.log_partition(model.with_parameters([w])))
            - 0.5 * 2.0 * w * w
            + 0.5 * np.log(2.0 / (2 * np.pi))
            for w in grid
        ]
    )
    weight = np.exp(logs - logs.max())
    evidence = logs.max() + np.log(np.trapezoid(weight, grid))
    mean = (weight * grid).sum() / weight.sum()
    spread = np.sqrt((weight * (grid - mean) ** 2).sum() / weight.sum())
    laplace = mf.learning.parameter_posterior(model, data, l2=2.0, rng=1)
    assert laplace.log_evidence == pytest.approx(evidence, abs=0.02)
    assert laplace.mode[0] == pytest.approx(grid[np.argmax(logs)], abs=0.003)
    assert laplace.standard_deviations[0] == pytest.approx(spread, rel=0.05)
    chain = mf.learning.parameter_posterior(model, data, l2=2.0, method="hmc", draws=2000, rng=2)
    assert chain.mean[0] == pytest.approx(mean, abs=4 * spread / np.sqrt(500))
    assert chain.standard_deviations[0] == pytest.approx(spread, rel=0.1)
    assert 0.5 < chain.acceptance <= 1.0


def test_several_parameters_and_missing_values():
    model = mf.Ising((2, 3), coupling=np.zeros(7), field=np.zeros((2, 3)))
    rows = np.array(mf.sample(mf.Ising((2, 3), coupling=0.5), 80, rng=3).states)
    rows[::7, 2] = -1
    answer = mf.learning.parameter_posterior(model, rows, l2=1.0, draws=400, rng=4)
    assert answer.covariance.shape == (13, 13)
    np.testing.assert_allclose(answer.samples.std(axis=0), answer.standard_deviations, rtol=0.25)
    fitted = mf.fit(model, rows, method=mf.methods.MaximumLikelihood(l2=1.0))
    np.testing.assert_allclose(mf.LogLinear.of(fitted).parameters, answer.mode, atol=1e-5)
    assert len(answer.models(5)) == 5 and isinstance(answer.models(1)[0], mf.Ising)
    chain = mf.learning.parameter_posterior(model, rows, l2=1.0, method="hmc", draws=600, rng=5)
    np.testing.assert_allclose(chain.mean, answer.mode, atol=0.12)


def test_what_is_refused():
    model = mf.Ising((2, 2), coupling=0.0)
    with pytest.raises(mf.ModelError, match="'laplace' or 'hmc'"):
        mf.learning.parameter_posterior(model, np.ones((2, 4), int), method="gibbs")
    with pytest.raises(mf.ModelError, match="l2"):
        mf.learning.parameter_posterior(model, np.ones((2, 4), int), l2=0.0)
    with pytest.raises(mf.ModelError, match="at most 2000 parameters"):
        mf.learning.parameter_posterior(mf.BoltzmannMachine(70), np.ones((2, 70), int))
