"""Least squares for linear-Gaussian networks: the estimate is the maximum of the likelihood."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import markovfield as mf
from markovfield.learning.directed.linear_gaussian import least_squares
from markovfield.models.gaussian_network import LinearGaussianNetwork


@pytest.fixture
def net() -> LinearGaussianNetwork:
    net = LinearGaussianNetwork()
    net.add_variable("c", ["a", "b"], [0.5, -2.0], bias=300.0, variance=0.25)
    net.add_variable("a", bias=1e4, variance=4.0)
    net.add_variable("b", ["a"], [1e-3], variance=2.0)
    return net


def test_the_estimate_comes_close_as_data_grow(net: LinearGaussianNetwork):
    structure = LinearGaussianNetwork.from_networkx(net.to_networkx())
    errors = []
    for size in (400, 40_000):
        fitted = least_squares(structure, net.sample(size, rng=1))
        wrong = np.subtract(fitted.cpd("c").weights, net.cpd("c").weights)
        errors.append(np.abs(wrong).max())
        assert fitted.cpd("c").variance == pytest.approx(0.25, rel=6 * np.sqrt(2 / size))
        assert fitted.variables == net.variables and fitted.parents("c") == ("a", "b")
    # Standard errors are 0.5 / (2 sqrt(size)) and 0.5 / (1.4 sqrt(size)); beyond six of them once in 10^9 runs.
    assert errors[0] < 6 * 0.36 / 20 and errors[1] < 6 * 0.36 / 200


@given(st.integers(0, 2**32))
@settings(max_examples=25)
def test_no_neighbour_has_a_higher_likelihood(seed: int):
    rng = np.random.default_rng(seed)
    net = LinearGaussianNetwork(["a", "b", "c"])
    net.set_parents("c", ["b", "a"])
    net.set_parents("b", ["a"])
    data = rng.normal(size=(12, 3)) @ rng.normal(size=(3, 3)) + rng.normal(size=3)
    counts = rng.integers(0, 4, 12) + 0.5
    best = least_squares(net, data, weights=counts)
    top = counts @ best.log_density(data)
    for v in net.variables:
        cpd = best.cpd(v)
        for step in (-1e-3, 1e-3):
            other = best.copy()
            other.add_cpd(v, cpd.parents, cpd.weights, bias=cpd.bias + step, variance=cpd.variance)
            assert counts @ other.log_density(data) < top
            other.add_cpd(v, cpd.parents, cpd.weights, bias=cpd.bias, variance=cpd.variance * (1 + step))
            assert counts @ other.log_density(data) < top
            for i in range(len(cpd.parents)):
                moved = np.array(cpd.weights)
                moved[i] += step
                other.add_cpd(v, cpd.parents, moved, bias=cpd.bias, variance=cpd.variance)
                assert counts @ other.log_density(data) < top


def test_weights_are_counts(net: LinearGaussianNetwork):
    data = net.sample(30, rng=0)
    counts = np.arange(30) % 3
    one = least_squares(net, data, weights=counts)
    other = least_squares(net, np.repeat(data, counts, axis=0))
    for v in net.variables:
        assert one.cpd(v).weights == pytest.approx(other.cpd(v).weights)
        assert one.cpd(v).variance == pytest.approx(other.cpd(v).variance)


def test_the_report_has_the_likelihood(net: LinearGaussianNetwork):
    data = net.sample(30, rng=0)
    counts = np.arange(30) % 3
    fitted = mf.fit(net, data, weights=counts)
    report = fitted.fit_report
    assert report.log_likelihood == pytest.approx(counts @ fitted.log_density(data))
    assert (report.method, report.n_rows, report.total_weight, report.n_parameters) == ("least_squares", 30, 30, 9)
    columns = {v: data[:, i] for i, v in enumerate(net.variables)} | {"times": counts}
    named = mf.fit(net, columns, weights="times", method="least_squares")
    assert named.cpd("c") == fitted.cpd("c")
    with pytest.raises(mf.ModelError, match="no column for variable 'often'"):
        mf.fit(net, columns, weights="often")
    assert net.fit_report is None


def test_an_exact_fit_has_no_noise():
    net = LinearGaussianNetwork(["a", "b"])
    net.set_parents("b", ["a"])
    fitted = least_squares(net, {"a": [-1.0, 1.0], "b": [-2.0, 2.0]})
    assert fitted.cpd("b").weights == pytest.approx((2.0,))
    assert fitted.cpd("b").variance == pytest.approx(0.0, abs=1e-30)
    assert fitted.fit_report.log_likelihood > 30


def test_columns_of_many_kinds(net: LinearGaussianNetwork):
    data = net.sample(50, rng=0)
    columns = {v: data[:, i].tolist() for i, v in enumerate(net.variables)}
    structured = np.array([tuple(row) for row in data], dtype=[(str(v), float) for v in net.variables])
    for given_as in (columns | {"other": ["text"] * 50}, structured):
        assert least_squares(net, given_as).cpd("c") == least_squares(net, data).cpd("c")


def test_data_refused(net: LinearGaussianNetwork):
    data = net.sample(20, rng=0)
    data[7, 1] = np.nan
    with pytest.raises(mf.ModelError, match="needs complete data: 'a' is missing in row 7"):
        least_squares(net, data)
    columns = {v: data[:, i] for i, v in enumerate(net.variables)}
    with pytest.raises(mf.ModelError, match="needs complete data: 'a' is missing in row 2"):
        least_squares(net, columns | {"a": np.ma.masked_equal(np.arange(20), 2)})
    with pytest.raises(mf.ModelError, match="'a' is infinite in row 0"):
        least_squares(net, columns | {"a": np.full(20, np.inf)})
    with pytest.raises(mf.ModelError, match="no column for variable 'c'"):
        least_squares(net, {"a": [1.0], "b": [1.0]})
    with pytest.raises(mf.ModelError, match="column 'a' must hold numbers only"):
        least_squares(net, columns | {"a": ["x"] * 20})
    with pytest.raises(mf.ModelError, match="column 'a' has 3 rows, where column 'c' has 20"):
        least_squares(net, columns | {"a": [1.0, 2.0, 3.0]})
    with pytest.raises(mf.ModelError, match="column 'a' must be one-dimensional"):
        least_squares(net, columns | {"a": np.zeros((20, 2))})
    with pytest.raises(mf.ModelError, match=r"needs shape \[rows, 3\], got \(20, 2\)"):
        least_squares(net, data[:, :2])
    with pytest.raises(mf.ModelError, match="at least one row"):
        least_squares(net, data[:0])
    with pytest.raises(mf.ModelError, match="needs 20 finite numbers"):
        least_squares(net, net.sample(20, rng=0), weights=np.zeros(20))


def test_weights_that_data_cannot_tell(net: LinearGaussianNetwork):
    a = np.arange(10.0)
    with pytest.raises(mf.ModelError, match=r"weights of \['a', 'b'\] on 'c': .* linearly dependent \(rank 1 of 2\)"):
        least_squares(net, {"a": a, "b": 2 * a, "c": a})
    with pytest.raises(mf.ModelError, match=r"weight of 'a' on '.': its column is constant"):
        least_squares(net, {"a": np.ones(10), "b": a, "c": a})


@pytest.mark.parametrize("value", [0.1, 1.0, 7.3])
@pytest.mark.parametrize("rows", [5, 10, 50, 1000])
def test_a_constant_column_is_always_seen(value: float, rows: int):
    net = mf.LinearGaussianNetwork()
    net.add_variable("a")
    net.add_variable("b", ["a"], [1.0])
    data = {"a": np.full(rows, value), "b": np.random.default_rng(0).normal(size=rows)}
    with pytest.raises(mf.ModelError, match="its column is constant"):
        mf.fit(net, data)
