from __future__ import annotations

import numpy as np
import pytest

import markovfield as mf
from tests.learning.tables.naive import fitted, margin
from tests.oracle import Oracle

HANDS = {"sex": [0, 0, 1, 1], "hand": [0, 1, 0, 1], "n": [43, 9, 44, 4]}


def data_of(counts, names):
    """One row for each cell of a table of counts, zeros included."""
    states = np.indices(counts.shape).reshape(counts.ndim, -1)
    return {v: states[i] for i, v in enumerate(names)} | {"n": counts.ravel()}


def test_handedness():
    """Murphy 19.5.7.1."""
    net = mf.MarkovNetwork.from_generators({"sex": 2, "hand": 2}, "sex/hand")
    made = mf.fit(net, HANDS, method="ipf", weights="n")
    found = mf.learning.fitted_table(made, total=100)
    np.testing.assert_allclose(found, [[45.24, 6.76], [41.76, 6.24]], atol=1e-10)
    report = made.fit_report
    assert report.converged and report.iterations == 1 and report.guarantee == "exact"
    assert report.n_parameters == 2 and report.total_weight == 100 and report.method == "iterative_proportional_fitting"


@pytest.mark.parametrize("seed", range(8))
def test_likelihood_is_that_of_the_oracle_and_moments_match(seed):
    rng = np.random.default_rng(seed)
    cards = {"A": 2, "B": 3, "C": 2, "D": 2}
    counts = rng.poisson(2.0, list(cards.values())).astype(float)
    generators = ["AB/BC/CD/DA", "all 2-way", "ABC/BCD/AD", "AB/C"][seed % 4]
    net = mf.MarkovNetwork.from_generators(cards, generators)
    data = data_of(counts, "ABCD")
    made = mf.fit(net, data, mf.methods.IterativeProportionalFitting(tolerance=1e-12), weights="n")
    graph = made.compile()
    s = graph.structure
    scopes = [tuple(s.scope(f).tolist()) for f in range(s.n_factors)]
    oracle = Oracle(list(cards.values()), [(scope, graph.table(f)) for f, scope in enumerate(scopes)])
    joint = oracle.joint([0, 1, 2, 3])
    for scope in scopes:
        np.testing.assert_allclose(margin(joint, scope), margin(counts, scope) / counts.sum(), atol=1e-8)
    seen = counts > 0
    assert made.fit_report.log_likelihood == pytest.approx(float(counts[seen] @ np.log(joint[seen])), rel=1e-9)


def test_unary_factors_inside_edges_are_one():
    net = mf.MarkovNetwork.from_edges({"A": 2, "B": 2, "C": 2}, [("A", "B"), ("B", "C"), ("A", "C")])
    counts = np.random.default_rng(0).integers(1, 9, (2, 2, 2)).astype(float)
    made = mf.fit(net, data_of(counts, "ABC"), "ipf", weights="n")
    graph = made.compile()
    assert all((graph.table(f) == 0).all() for f in range(3))
    expected = fitted(
        np.ones((2, 2, 2)), [(0, 1), (1, 2), (0, 2)], [margin(counts, s) for s in ((0, 1), (1, 2), (0, 2))], 500
    )
    np.testing.assert_allclose(mf.learning.fitted_table(made, counts.sum()), expected, atol=1e-5)
    assert made.fit_report.n_parameters == 6


def test_structural_zeros_stay_and_are_not_observed():
    """Quasi-independence of a table without a diagonal."""
    net = mf.MarkovNetwork({"A": 3, "B": 3})
    net.add_unknown(["A"])
    net.add_unknown(["B"])
    net.add_factor(["A", "B"], 1.0 - np.eye(3))
    with_pair = mf.MarkovNetwork.from_factor_graph(net.compile())
    counts = np.array([[0.0, 10, 4], [6, 0, 8], [3, 12, 0]])
    made = mf.fit(with_pair, data_of(counts, "AB"), "ipf", weights="n")
    # The pair is a generator here: every cell that is allowed is fitted.
    np.testing.assert_allclose(mf.learning.fitted_table(made, counts.sum()), counts, atol=1e-8)
    wrong = counts + np.eye(3)
    with pytest.raises(mf.ModelError, match="rules out A=0, B=0, which the data has 1 times"):
        mf.fit(with_pair, data_of(wrong, "AB"), "ipf", weights="n")


def test_zeros_of_a_smaller_factor_reach_its_generator():
    net = mf.MarkovNetwork({"A": 2, "B": 3})
    net.add_factor(["B"], [1.0, 0.0, 1.0])
    net.add_unknown(["A", "B"])
    counts = np.array([[1.0, 0, 2], [3, 0, 4]])
    made = mf.fit(net, data_of(counts, "AB"), "ipf", weights="n")
    np.testing.assert_allclose(mf.learning.fitted_table(made, 10), counts, atol=1e-9)
    assert not np.isnan(made.compile().log_tables).any()


def test_sampling_zeros_are_fitted_by_zero_and_told():
    net = mf.MarkovNetwork.from_generators({"A": 2, "B": 2, "C": 2}, "AB/BC/AC")
    counts = np.arange(8.0).reshape(2, 2, 2)
    counts[0, 0] = 0.0
    made = mf.fit(net, data_of(counts, "ABC"), "ipf", weights="n")
    table = mf.learning.fitted_table(made, counts.sum())
    assert (table[0, 0] == 0).all() and not np.isnan(made.compile().log_tables).any()
    assert "1 cell of the margins were never observed" in made.fit_report.notes[0]
    fit = made.fit_report.details.goodness_of_fit
    # Two cells are impossible; on the other six the six parameters are one too many.
    assert fit.degrees_of_freedom == 0 and fit.plain_degrees_of_freedom == 1


def test_missing_values_and_shared_tables_are_refused():
    net = mf.MarkovNetwork.from_generators({"A": 2, "B": 2}, "AB")
    with pytest.raises(mf.ModelError, match="'B' has missing values"):
        mf.fit(net, {"A": [0, 1, 0], "B": [0, None, 1]}, "ipf")
    tied = mf.MarkovNetwork(dict.fromkeys("ABC", 2))
    tied.add_factors([["A", "B"], ["B", "C"]], np.ones((2, 2)))
    with pytest.raises(mf.ModelError, match="share parameters"):
        mf.fit(tied, {v: [0, 1] for v in "ABC"}, "ipf")
    hard = mf.MarkovNetwork(dict.fromkeys("ABC", 2))
    hard.add_clause({"A": 1, "B": 1})
    with pytest.raises(mf.ModelError, match="structured factors"):
        mf.fit(hard, {v: [0, 1] for v in "ABC"}, "ipf")
    with pytest.raises(mf.ModelError, match="at least one factor"):
        mf.fit(mf.MarkovNetwork({"A": 2}), {"A": [0, 1]}, "ipf")


def test_few_sweeps_say_so():
    rng = np.random.default_rng(1)
    counts = rng.poisson(4.0, (2, 3, 2)).astype(float)
    net = mf.MarkovNetwork.from_generators({"A": 2, "B": 3, "C": 2}, "all 2-way")
    made = mf.fit(net, data_of(counts, "ABC"), mf.methods.IterativeProportionalFitting(max_iterations=1), weights="n")
    assert not made.fit_report.converged and made.fit_report.guarantee == "approximate"
    assert "margins agree to" in made.fit_report.message


def test_settings():
    with pytest.raises(mf.ModelError, match="max_iterations"):
        mf.methods.IterativeProportionalFitting(max_iterations=0)


def test_variables_without_a_factor_are_uniform():
    net = mf.MarkovNetwork.from_generators({"A": 2, "B": 4}, "A")
    made = mf.fit(net, {"A": [0, 1, 1, 1], "B": [0, 1, 2, 2]}, "ipf")
    expected = np.log(0.25) + 3 * np.log(0.75) - 4 * np.log(4)
    assert made.fit_report.log_likelihood == pytest.approx(expected)
    assert made.fit_report.details.goodness_of_fit.log_likelihood == pytest.approx(expected)


def test_stopped_by_the_callback_it_answers_with_what_it_has(monkeypatch):
    from markovfield.learning.tables import fitting

    monkeypatch.setattr(fitting, "CHUNK", 1.0)
    counts = np.random.default_rng(1).poisson(4.0, (2, 3, 2)).astype(float)
    net = mf.MarkovNetwork.from_generators({"A": 2, "B": 3, "C": 2}, "all 2-way")
    told = []

    def stop(progress):
        told.append(progress.value)
        return sum(value is not None for value in told) == 2

    report = mf.fit(net, data_of(counts, "ABC"), "ipf", weights="n", callback=stop).fit_report
    assert not report.converged and report.message.startswith("stopped (stopped by the callback)")
    assert np.isfinite(report.log_likelihood)


def test_a_factor_graph_is_fitted_like_its_network():
    counts = np.random.default_rng(3).poisson(4.0, (2, 3)).astype(float)
    net = mf.MarkovNetwork.from_generators({"A": 2, "B": 3}, "AB")
    one = mf.fit(net, data_of(counts, "AB"), "ipf", weights="n")
    other = mf.fit(net.compile(), data_of(counts, "AB"), "ipf", weights="n")
    np.testing.assert_array_equal(one.compile().log_tables, other.compile().log_tables)


def test_a_second_fit_plans_nothing(monkeypatch):
    from markovfield.learning.tables import model_tables

    counts = np.random.default_rng(3).poisson(4.0, (2, 3)).astype(float)
    net = mf.MarkovNetwork.from_generators({"A": 2, "B": 3}, "A/B")
    first = mf.fit(net, data_of(counts, "AB"), "ipf", weights="n")
    monkeypatch.setattr(model_tables, "plan_hull", None)
    again = mf.fit(net, data_of(counts, "AB"), "ipf", weights="n")
    np.testing.assert_array_equal(first.compile().log_tables, again.compile().log_tables)


def quasi_independence(mask):
    base = mf.MarkovNetwork({"A": 3, "B": 3})
    base.add_factor(["B", "A"], mask.T)
    return mf.LogLinear({"A": 3, "B": 3}, [["A"], ["B"]], base=base)


def test_quasi_independence():
    """Margins are fitted on a table without a diagonal; the structural zeros are in the base of the model."""
    mask = 1.0 - np.eye(3)
    counts = np.array([[0.0, 10, 4], [6, 0, 8], [3, 12, 0]])
    made = mf.fit(quasi_independence(mask), data_of(counts, "AB"), "ipf", weights="n")
    expected = fitted(mask, [(0,), (1,)], [counts.sum(axis=1), counts.sum(axis=0)], 2000)
    np.testing.assert_allclose(mf.learning.fitted_table(made, 43), expected, atol=1e-5)
    best = mf.fit(quasi_independence(mask), data_of(counts, "AB"), "maximum_likelihood", weights="n")
    report = made.fit_report
    assert isinstance(made, mf.LogLinear) and report.converged and report.iterations > 1
    assert report.log_likelihood == pytest.approx(best.fit_report.log_likelihood, rel=1e-9)
    fit = report.details.goodness_of_fit
    seen = counts > 0
    assert fit.deviance == pytest.approx(
        2 * float((counts[seen] * np.log(counts[seen] / expected[seen])).sum()), abs=1e-5
    )
    # (3 - 1)^2 - 3 (Agresti, square tables).
    assert fit.degrees_of_freedom == 1
    with pytest.raises(mf.ModelError, match="rules out B=0, A=0, which the data has 1 times"):
        mf.fit(quasi_independence(mask), data_of(counts + np.eye(3), "AB"), "ipf", weights="n")
    for method in ("closed_form", "bayesian_ipf"):
        with pytest.raises(mf.ModelError, match="base measure"):
            mf.fit(quasi_independence(mask), data_of(counts, "AB"), method, weights="n")


def test_a_base_measure_with_numbers():
    rng = np.random.default_rng(5)
    start = rng.random((3, 3)) + 0.1
    counts = rng.poisson(5.0, (3, 3)) + 1.0
    made = mf.fit(quasi_independence(start), data_of(counts, "AB"), "ipf", weights="n")
    expected = fitted(start, [(0,), (1,)], [counts.sum(axis=1), counts.sum(axis=0)], 500)
    np.testing.assert_allclose(mf.learning.fitted_table(made, counts.sum()), expected, rtol=1e-6)
    best = mf.fit(quasi_independence(start), data_of(counts, "AB"), "maximum_likelihood", weights="n")
    assert made.fit_report.log_likelihood == pytest.approx(best.fit_report.log_likelihood, rel=1e-9)
    assert made.fit_report.details.goodness_of_fit.log_likelihood == pytest.approx(made.fit_report.log_likelihood)


def test_features_and_infinite_parameters_are_refused():
    agree = mf.Feature(["A", "B"], lambda a, b: float(a == b))
    with pytest.raises(mf.ModelError, match="this model has features"):
        mf.fit(mf.LogLinear({"A": 2, "B": 2}, [agree]), {"A": [0, 1], "B": [0, 1]}, "ipf")
    with pytest.raises(mf.ModelError, match="A=1 was never observed"):
        mf.fit(mf.LogLinear({"A": 2, "B": 2}, [["A"], ["B"]]), {"A": [0, 0], "B": [0, 1]}, "ipf")
