"""EM of linear-Gaussian networks: complete data, a maximum by finite differences, a likelihood that never falls."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import multivariate_normal

import markovfield as mf


def network(weight: float = 0.8) -> mf.LinearGaussianNetwork:
    net = mf.LinearGaussianNetwork()
    net.add_variable("x", bias=1.0, variance=2.0)
    net.add_variable("y", ["x"], [weight], variance=0.5)
    net.add_variable("z", ["x", "y"], [-0.4, 1.0], bias=2.0, variance=1.5)
    return net


def observed(net: mf.LinearGaussianNetwork, rows: np.ndarray) -> float:
    """The log-likelihood of what is seen, row by row."""
    mean, covariance = net.joint()
    total = 0.0
    for row in rows:
        seen = ~np.isnan(row)
        if seen.any():
            total += multivariate_normal(mean[seen], covariance[np.ix_(seen, seen)]).logpdf(row[seen])
    return float(total)


def holes() -> np.ndarray:
    rows = network().sample(150, rng=0)
    rows[np.random.default_rng(1).uniform(size=rows.shape) < 0.25] = np.nan
    return rows


def test_complete_data_are_least_squares() -> None:
    rows = network().sample(200, rng=3)
    plain = mf.fit(network(), rows)
    found = mf.fit(network(), rows, method="em")
    for v in "xyz":
        assert found.cpd(v).weights == pytest.approx(plain.cpd(v).weights)
        assert found.cpd(v).variance == pytest.approx(plain.cpd(v).variance)
    assert found.fit_report.log_likelihood == pytest.approx(plain.fit_report.log_likelihood)


def test_missing_values_end_at_a_maximum() -> None:
    rows = holes()
    found = mf.fit(network(), rows, method=mf.methods.LinearGaussianEM(tolerance=1e-12))
    report = found.fit_report
    assert report.converged and report.missing["x"] == np.isnan(rows[:, 0]).sum()
    assert report.log_likelihood == pytest.approx(observed(found, rows))
    assert (np.diff(report.history) >= -1e-9).all()
    for v in "xyz":
        cpd = found.cpd(v)
        for step in (-1e-3, 1e-3):
            for part in range(len(cpd.weights) + 2):
                weights = list(cpd.weights)
                bias, variance = cpd.bias + step * (part == len(weights)), cpd.variance + step * (part > len(weights))
                if part < len(weights):
                    weights[part] += step
                moved = found.copy()
                moved.add_cpd(v, cpd.parents, weights, bias=bias, variance=variance)
                assert observed(moved, rows) < report.log_likelihood


def test_weights_are_repetitions() -> None:
    rows = holes()[:40]
    times = np.arange(40) % 3 + 1.0
    one = mf.fit(network(), rows, method="em", weights=times)
    two = mf.fit(network(), np.repeat(rows, times.astype(int), axis=0), method="em")
    assert one.cpd("z").weights == pytest.approx(two.cpd("z").weights, abs=1e-4)


def test_errors() -> None:
    rows = holes()
    with pytest.raises(mf.ModelError, match=r"needs complete data: .* linear_gaussian_em takes missing values"):
        mf.fit(network(), rows)
    rows[:, 1] = np.nan
    with pytest.raises(mf.ModelError, match="no value of variable 'y' in any row"):
        mf.fit(network(), rows, method="em")
    with pytest.raises(mf.ModelError, match="needs at least one row"):
        mf.fit(network(), np.zeros((0, 3)), method="em")
