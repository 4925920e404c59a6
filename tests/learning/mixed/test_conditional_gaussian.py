"""Fits of conditional Gaussian networks: closed form against plain regressions, EM against its own likelihood."""

from __future__ import annotations

import numpy as np
import pytest

import markovfield as mf
from tests.inference.strong_junction_tree.mixed_oracle import conditioned, random_network


def drawn_from(net, size, seed):
    return mf.sample(net, size, rng=seed).to_dict()


def same_structure(net):
    empty = mf.ConditionalGaussianNetwork({v: net.cardinality(v) or None for v in net})
    for v in net:
        empty.set_parents(v, net.parents(v))
    return empty


def log_likelihood(net, data):
    """Row by row, by enumeration of what is not known."""
    total = 0.0
    for row in range(len(next(iter(data.values())))):
        known = {v: c[row] for v, c in data.items() if not (c[row] is None or c[row] != c[row])}
        total += np.logaddexp.reduce([p[1] for p in conditioned(net, known)])
    return total


@pytest.mark.parametrize("weighted", [False, True])
def test_complete_data_are_counts_and_regressions(weighted):
    net = random_network(np.random.default_rng(1), 2, 3, 2)
    data = drawn_from(net, 400, 2)
    weights = np.random.default_rng(3).integers(1, 3, 400) if weighted else np.ones(400, int)
    fitted = mf.fit(same_structure(net), data, weights=weights if weighted else None)
    rows = {v: np.repeat(c, weights) for v, c in data.items()}
    for v in net.discrete:
        above = net.parents(v)
        for cell in np.ndindex(*(net.cardinality(p) for p in above)):
            kept = np.all([rows[p] == k for p, k in zip(above, cell, strict=True)], axis=0) | (len(above) == 0)
            share = np.bincount(np.atleast_1d(rows[v][kept]).ravel(), minlength=net.cardinality(v))
            np.testing.assert_allclose(fitted.cpt(v)[cell], share / share.sum(), atol=1e-12)
    for v in net.continuous:
        cpd = fitted.cpd(v)
        for cell in np.ndindex(*cpd.bias.shape):
            kept = (
                np.all([rows[p] == k for p, k in zip(cpd.discrete, cell, strict=True)], axis=0)
                | np.zeros(len(rows[v]), bool)
                | (len(cell) == 0)
            )
            x = np.column_stack([np.ones(kept.sum()), *(rows[p][kept] for p in cpd.continuous)])
            solved, *_ = np.linalg.lstsq(x, rows[v][kept], rcond=None)
            assert cpd.bias[cell] == pytest.approx(solved[0], abs=1e-8)
            np.testing.assert_allclose(cpd.weights[cell], solved[1:], atol=1e-8)
            assert cpd.variance[cell] == pytest.approx(np.mean((rows[v][kept] - x @ solved) ** 2), rel=1e-8)
    assert fitted.fit_report.log_likelihood == pytest.approx(log_likelihood(fitted, rows), rel=1e-9)
    assert fitted.fit_report.method == "conditional_gaussian_ml" and fitted.fit_report.converged


def holes(data, rng, share):
    made = {}
    for v, column in data.items():
        gone = rng.random(len(column)) < share
        made[v] = [None if g else x for x, g in zip(column.tolist(), gone.tolist(), strict=True)]
    return made


def test_em_climbs_the_likelihood_of_what_was_seen():
    rng = np.random.default_rng(4)
    net = random_network(rng, 2, 2, 2)
    data = holes(drawn_from(net, 120, 5), rng, 0.25)
    method = mf.methods.ConditionalGaussianEM(tolerance=1e-9, max_iterations=150)
    fitted = mf.fit(same_structure(net), data, method=method, rng=0)
    report = fitted.fit_report
    assert (np.diff(report.history) >= -1e-7).all()
    assert report.log_likelihood == pytest.approx(log_likelihood(fitted, data), rel=1e-9)
    assert report.log_likelihood > log_likelihood(net, data)
    assert report.missing["x0"] == sum(v is None for v in data["x0"])
    # Where it ended, no small change of a bias or a variance gains anything.
    for v in net.continuous:
        cpd = fitted.cpd(v)
        for name in ("bias", "variance"):
            values = []
            for step in (1e-4, -1e-4):
                moved = fitted.copy()
                given = {"bias": cpd.bias, "variance": cpd.variance}
                given[name] = given[name] * (1 + step)
                moved.add_cpd(v, fitted.parents(v), cpd.weights, **given)
                values.append(mf.learning.conditional_log_likelihood(moved, data))
            assert abs(values[0] - values[1]) / 2e-4 < 0.5


def test_em_on_complete_data_is_the_closed_form():
    net = random_network(np.random.default_rng(6), 2, 2, 2)
    data = drawn_from(net, 300, 7)
    first = mf.fit(same_structure(net), data)
    second = mf.fit(same_structure(net), data, method="conditional_gaussian_em")
    for v in net.continuous:
        np.testing.assert_allclose(first.cpd(v).bias, second.cpd(v).bias, atol=1e-8)
        np.testing.assert_allclose(first.cpd(v).variance, second.cpd(v).variance, atol=1e-8)
    assert second.fit_report.log_likelihood == pytest.approx(first.fit_report.log_likelihood)


def test_what_data_do_not_tell():
    net = mf.ConditionalGaussianNetwork({"d": ["a", "b", "c"], "e": 2, "x": None, "y": None})
    for v, above in (("d", []), ("e", ["d"]), ("x", ["d"]), ("y", ["x"])):
        net.set_parents(v, above)
    data = {"d": ["a", "b", "a", "b"], "e": [0, 1, 0, 0], "x": [0.0, 1.0, 2.0, 4.0], "y": [1.0, 3.0, 2.0, 2.5]}
    fitted = mf.fit(net, data)
    assert len(fitted.fit_report.notes) == 2 and fitted.cpt("e")[2].tolist() == [0.5, 0.5]
    assert fitted.cpd("x").bias[2] == pytest.approx(1.75)
    for change, message in (
        ({"x": [0.0, 1.0, 0.0, 4.0]}, "variance of 'x' given d=a is zero"),
        ({"x": [1.0] * 4}, "variance of 'x' given d=a is zero|linearly dependent"),
        ({"x": ["?"] * 4}, "'x' must hold numbers only, got '\\?'"),
        ({"d": ["a", "b", "a", "z"]}, "'z'"),
        ({"x": [1.0] * 3}, "different numbers of rows"),
    ):
        with pytest.raises(mf.ModelError, match=message):
            mf.fit(net, data | change)
    with pytest.raises(mf.ModelError, match="complete data: 'x' is missing in row 1"):
        mf.fit(net, data | {"x": [0.0, None, 2.0, 4.0]}, method="conditional_gaussian_ml")
    with pytest.raises(mf.ModelError, match="at least one row"):
        mf.fit(net, {"d": [], "x": []})
    with pytest.raises(mf.ModelError, match="takes a dict of columns or a data frame"):
        mf.fit(net, 3)
    with pytest.raises(mf.ModelError, match="weights need 4 finite numbers"):
        mf.fit(net, data, weights=[1.0, -1.0, 1.0, 1.0])
