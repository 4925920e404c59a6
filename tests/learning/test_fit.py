"""The verb fit: every registered method, and what each estimates."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import markovfield as mf
from markovfield.inference.core.registry import methods
from tests.data import data_path
from tests.oracle import Oracle
from tests.strategies import Spec, random_spec, specs

FIT = sorted(methods("fit", "BayesianNetwork"))


def drawn(spec: Spec, size: int, seed: int) -> np.ndarray:
    return mf.sample(spec.build(), size, method="enumeration", rng=seed).states


def with_holes(rows: np.ndarray, share: float, seed: int) -> np.ndarray:
    holes = rows.copy()
    holes[np.random.default_rng(seed).random(rows.shape) < share] = -1
    return holes


def observed_log_likelihood(net: mf.BayesianNetwork, rows: np.ndarray) -> float:
    """Brute force, row by row, through the oracle."""
    names = list(net.variables)
    cards = [net.cardinality(v) for v in names]
    factors = []
    for v in names:
        with np.errstate(divide="ignore"):
            factors.append(([*(names.index(p) for p in net.parents(v)), names.index(v)], np.log(net.cpt(v))))
    seen = (({v: int(x) for v, x in enumerate(row) if x >= 0}) for row in rows)
    return sum(Oracle(cards, factors, evidence).log_partition for evidence in seen)


class TestEveryMethod:
    """Conformance: a method that is registered for fit is tested here."""

    @pytest.mark.parametrize("method", FIT)
    def test_gives_a_new_network_with_a_report(self, method: str):
        spec = random_spec(3, "bayesian")
        net, rows = spec.build(), drawn(spec, 300, 0)
        before = [net.cpt(v) for v in net.variables]
        kept = rows.copy()
        fitted = mf.fit(net, rows, method=method, rng=0)
        assert fitted is not net and net.fit_report is None
        for v, table in zip(net.variables, before, strict=True):
            np.testing.assert_array_equal(net.cpt(v), table)
            assert fitted.parents(v) == net.parents(v) and fitted.states(v) == net.states(v)
            np.testing.assert_allclose(fitted.cpt(v).sum(axis=-1), 1.0, atol=1e-12)
        np.testing.assert_array_equal(rows, kept)
        report = fitted.fit_report
        assert report.method == method and report.n_rows == 300 and report.total_weight == 300
        assert report.log_likelihood == pytest.approx(observed_log_likelihood(fitted, rows), rel=1e-9)
        assert report.log_likelihood == pytest.approx(mf.learning.log_likelihood(fitted, rows), rel=1e-12)
        assert method in repr(report) and report.bic < report.log_likelihood and report.aic < report.log_likelihood

    @pytest.mark.parametrize("method", FIT)
    @settings(max_examples=15, deadline=None)
    @given(spec=specs("bayesian"), seed=st.integers(0, 1000))
    def test_weights_are_repetitions(self, method: str, spec: Spec, seed: int):
        rows = drawn(spec, 30, seed)
        weights = np.random.default_rng(seed).integers(0, 4, 30)
        if not weights.any():
            return
        start = spec.build()
        one = mf.fit(start, rows, method=method, weights=weights, rng=0)
        other = mf.fit(start, np.repeat(rows, weights, axis=0), method=method, rng=0)
        for v in start.variables:
            np.testing.assert_allclose(one.cpt(v), other.cpt(v), atol=1e-9)

    @pytest.mark.parametrize("method", FIT)
    def test_same_answer_on_any_number_of_threads_and_twice(self, method: str):
        spec = random_spec(11, "bayesian")
        net, rows = spec.build(), drawn(spec, 5000, 1)
        if methods("fit", "BayesianNetwork")[method].missing_values:
            rows = with_holes(rows, 0.2, 3)
        fits = [mf.fit(net, rows, method=method, rng=5, n_jobs=n) for n in (1, 2, 2)]
        for v in net.variables:
            np.testing.assert_array_equal(fits[0].cpt(v), fits[1].cpt(v))
            np.testing.assert_array_equal(fits[1].cpt(v), fits[2].cpt(v))

    @pytest.mark.parametrize("method", FIT)
    def test_needs_no_tables_to_begin_with(self, method: str):
        net = mf.BayesianNetwork({"a": ["x", "y"], "b": 3})
        net.set_parents("b", ["a"])
        data = {"a": ["x", "x", "y", "y"], "b": [0, 1, 2, 2]}
        fitted = mf.fit(net, data, method=method, rng=0)
        assert fitted.cpt("b").shape == (2, 3)
        assert fitted.cpt("b")[1].argmax() == 2

    @pytest.mark.parametrize("method", FIT)
    def test_fixed_tables_stay(self, method: str):
        spec = random_spec(5, "bayesian")
        net, rows = spec.build(), drawn(spec, 50, 0)
        chosen = type(methods("fit", "BayesianNetwork")[method]())(fixed=(net.variables[0],))
        fitted = mf.fit(net, rows, method=chosen, rng=0)
        np.testing.assert_allclose(fitted.cpt(net.variables[0]), net.cpt(net.variables[0]), atol=1e-12)


class TestCounting:
    @settings(max_examples=25, deadline=None)
    @given(spec=specs("bayesian"), seed=st.integers(0, 1000))
    def test_maximum_likelihood_is_relative_frequency(self, spec: Spec, seed: int):
        rows = drawn(spec, 40, seed)
        net = spec.build()
        fitted = mf.fit(net, rows)
        assert fitted.fit_report.method == "maximum_likelihood"
        names = list(net.variables)
        for v in names:
            family = [*(names.index(p) for p in net.parents(v)), names.index(v)]
            counts = np.zeros([spec.cardinalities[u] for u in family])
            for row in rows:
                counts[tuple(row[family])] += 1
            total = counts.sum(axis=-1, keepdims=True)
            expected = np.where(total > 0, counts / np.where(total > 0, total, 1), 1 / counts.shape[-1])
            np.testing.assert_allclose(fitted.cpt(v), expected, atol=1e-12)
            np.testing.assert_array_equal(fitted.fit_report.statistics[v], counts)

    @pytest.mark.parametrize(
        ("prior", "expected"),
        [
            ("k2", [[3 / 5, 1 / 5, 1 / 5], [1 / 4, 1 / 4, 2 / 4]]),
            # A sample of three spread over six cells: half a row in each.
            ("bdeu", [[2.5 / 3.5, 0.5 / 3.5, 0.5 / 3.5], [0.5 / 2.5, 0.5 / 2.5, 1.5 / 2.5]]),
            (0.5, [[2.5 / 3.5, 0.5 / 3.5, 0.5 / 3.5], [0.5 / 2.5, 0.5 / 2.5, 1.5 / 2.5]]),
            ({"b": [[0, 1, 0], [1, 0, 1]]}, [[2 / 3, 1 / 3, 0], [1 / 3, 0, 2 / 3]]),
        ],
    )
    def test_dirichlet_adds_its_counts(self, prior, expected):
        net = mf.BayesianNetwork({"a": 2, "b": 3})
        net.set_parents("b", ["a"])
        method = mf.methods.DirichletEstimate(prior=prior, equivalent_sample_size=3.0)
        fitted = mf.fit(net, {"a": [0, 0, 1], "b": [0, 0, 2]}, method=method)
        np.testing.assert_allclose(fitted.cpt("b"), expected, atol=1e-12)

    def test_counting_finds_alarm_again_with_error_falling_as_the_root_of_n(self):
        net = mf.io.read_bif(data_path("bif", "alarm.bif.gz"))
        rows = mf.sample(net, 256_000, rng=0).states
        parents = mf.marginals(net)
        errors = []
        for n in (1000, 4000, 16_000, 64_000, 256_000):
            fitted = mf.fit(
                net, rows[:n], method=mf.methods.DirichletEstimate(prior="bdeu", equivalent_sample_size=1.0)
            )
            errors.append(weighted_error(net, fitted, parents))
        slopes = np.diff(np.log(errors)) / np.log(4)
        # The error's own noise is some per cent; -1/2 in the mean.
        assert np.mean(slopes) == pytest.approx(-0.5, abs=0.06)
        assert errors[-1] < 0.005


def weighted_error(net: mf.BayesianNetwork, fitted: mf.BayesianNetwork, answer: mf.Marginals) -> float:
    """Root mean square error of table rows, each weighted by how often its parents' states occur."""
    total = 0.0
    for v in net.variables:
        above = net.parents(v)
        weight = answer.joint(list(above)) if above else np.ones(())
        total += float((weight[..., None] * (fitted.cpt(v) - net.cpt(v)) ** 2).sum())
    return float(np.sqrt(total / net.n_variables))


class TestExpectationMaximization:
    @settings(max_examples=20, deadline=None)
    @given(spec=specs("bayesian"), seed=st.integers(0, 1000))
    def test_the_likelihood_never_falls_and_is_what_the_report_says(self, spec: Spec, seed: int):
        rows = with_holes(drawn(spec, 40, seed), 0.3, seed)
        method = mf.methods.ExpectationMaximization(max_iterations=12, restarts=2, tolerance=0.0)
        fitted = mf.fit(bare(spec.build()), rows, method=method, rng=seed)
        history = fitted.fit_report.history
        assert all(b >= a - 1e-9 * abs(a) for a, b in pairwise(history))
        assert history[-1] == pytest.approx(observed_log_likelihood(fitted, rows), rel=1e-8, abs=1e-8)
        assert max(fitted.fit_report.restarts) == history[-1]

    @settings(max_examples=10, deadline=None)
    @given(spec=specs("bayesian"), seed=st.integers(0, 1000))
    def test_with_a_prior_the_posterior_never_falls(self, spec: Spec, seed: int):
        rows = with_holes(drawn(spec, 30, seed), 0.4, seed)
        method = mf.methods.ExpectationMaximization(max_iterations=10, prior="k2", tolerance=0.0)
        history = mf.fit(bare(spec.build()), rows, method=method, rng=seed).fit_report.history
        assert all(b >= a - 1e-9 * abs(a) for a, b in pairwise(history))

    @settings(max_examples=15, deadline=None)
    @given(spec=specs("bayesian"), seed=st.integers(0, 1000))
    def test_expected_statistics_agree_with_the_oracle(self, spec: Spec, seed: int):
        rows = with_holes(drawn(spec, 12, seed), 0.4, seed)
        net = spec.build()
        found = mf.learning.sufficient_statistics(net, rows)
        expected = np.zeros(spec.n_cells)
        for row in rows:
            expected += spec.pool_counts(spec.oracle({v: int(x) for v, x in enumerate(row) if x >= 0}))
        np.testing.assert_allclose(found.counts, expected, atol=1e-8)
        np.testing.assert_allclose(found.mean, expected / len(rows), atol=1e-8)
        assert found.log_likelihood == pytest.approx(observed_log_likelihood(net, rows), rel=1e-9, abs=1e-9)

    def test_complete_data_is_counted_in_one_step(self):
        spec = random_spec(2, "bayesian")
        rows = drawn(spec, 500, 0)
        em = mf.fit(bare(spec.build()), rows, method="em", rng=0)
        ml = mf.fit(spec.build(), rows, method="ml")
        for v in ml.variables:
            seen = ml.fit_report.statistics[v].sum(axis=-1) > 0
            np.testing.assert_allclose(em.cpt(v)[seen], ml.cpt(v)[seen], atol=1e-12)
        assert em.fit_report.iterations <= 3

    def test_a_hidden_class_is_found(self):
        """Naive Bayes with its class wholly hidden: EM comes as near as the true parameters."""
        rng = np.random.default_rng(0)
        truth = mf.BayesianNetwork({"class": 2} | {f"x{i}": 2 for i in range(8)})
        truth.add_cpt("class", [], [0.3, 0.7])
        for i in range(8):
            truth.add_cpt(
                f"x{i}", ["class"], [[0.9, 0.1], [0.2, 0.8]] if rng.random() < 0.5 else [[0.15, 0.85], [0.7, 0.3]]
            )
        data = {name: column for name, column in mf.sample(truth, 4000, rng=1).to_dict().items() if name != "class"}
        fitted = mf.fit(bare(truth), data, method=mf.methods.ExpectationMaximization(restarts=4), rng=2)
        report = fitted.fit_report
        assert report.converged and len(report.restarts) == 4
        assert report.log_likelihood >= mf.learning.log_likelihood(truth, data)
        assert np.sort(fitted.cpt("class")) == pytest.approx([0.3, 0.7], abs=0.03)

    def test_em_finds_alarm_again_with_error_falling_as_the_root_of_n(self):
        net = mf.io.read_bif(data_path("bif", "alarm.bif.gz"))
        parents = mf.marginals(net)
        rows = with_holes(mf.sample(net, 64_000, rng=3).states, 0.1, 4)
        errors = []
        for n in (1000, 8000, 64_000):
            method = mf.methods.ExpectationMaximization(prior="bdeu", equivalent_sample_size=1.0, max_iterations=30)
            errors.append(weighted_error(net, mf.fit(bare(net), rows[:n], method=method, rng=0), parents))
        slopes = np.diff(np.log(errors)) / np.log(8)
        assert np.mean(slopes) == pytest.approx(-0.5, abs=0.08)
        assert errors[-1] < 0.01

    def test_a_noisy_or_is_learnt_through_its_own_parameters(self):
        names = [f"cause {i}" for i in range(6)]
        truth = mf.BayesianNetwork(dict.fromkeys([*names, "effect"], 2))
        for name in names:
            truth.add_cpt(name, [], [0.6, 0.4])
        strengths = [0.1, 0.3, 0.5, 0.7, 0.8, 0.9]
        truth.add_noisy_or("effect", names, strengths, leak=0.05)
        rows = mf.sample(truth, 40_000, rng=0).states
        start = truth.copy()
        start.add_noisy_or("effect", names, [0.5] * 6, leak=0.5)
        fitted = mf.fit(start, rows, method=mf.methods.ExpectationMaximization(tolerance=1e-9))
        assert fitted.fit_report.method == "expectation_maximization"
        table = fitted.cpt("effect")
        for i, strength in enumerate(strengths):
            alone = [0] * 6
            alone[i] = 1
            assert table[(*alone, 1)] == pytest.approx(1 - (1 - strength) * 0.95, abs=0.03)
        history = fitted.fit_report.history
        assert all(b >= a - 1e-9 * abs(a) for a, b in pairwise(history))

    def test_auto_takes_em_where_values_are_missing(self):
        net = mf.BayesianNetwork({"a": 2})
        assert mf.fit(net, {"a": [0, 1]}).fit_report.method == "maximum_likelihood"
        assert mf.fit(net, {"a": [0, None]}, rng=0).fit_report.method == "expectation_maximization"

    def test_stopped_early_it_gives_what_it_has(self):
        spec = random_spec(8, "bayesian")
        rows = with_holes(drawn(spec, 200, 0), 0.4, 0)
        seen = []

        def stop(progress: mf.answers.Progress) -> bool:
            if progress.value is not None:
                seen.append(progress.value)
            return len(seen) == 3

        fitted = mf.fit(bare(spec.build()), rows, method="em", rng=0, callback=stop)
        report = fitted.fit_report
        assert not report.converged and "callback" in report.message and list(report.history) == seen
        assert "not converged" in repr(report)
        with pytest.raises(mf.StoppedError, match="callback"):
            mf.fit(bare(spec.build()), rows, method="em", rng=0, callback=lambda _: True)

    def test_an_answer_that_has_not_converged_is_not_silent(self):
        spec = random_spec(8, "bayesian")
        rows = with_holes(drawn(spec, 200, 0), 0.4, 0)
        with pytest.warns(UserWarning, match="expectation_maximization did not converge in 1 iterations"):
            fitted = mf.fit(
                bare(spec.build()), rows, method=mf.methods.ExpectationMaximization(max_iterations=1), rng=0
            )
        assert fitted.fit_report.iterations == 1 and len(fitted.fit_report.history) == 2

    def test_one_iteration_is_one_step_of_each(self):
        net = mf.BayesianNetwork({"a": 2})
        with pytest.warns(UserWarning, match="did not converge"):
            fitted = mf.fit(net, {"a": [0, 1, 1]}, method=mf.methods.ExpectationMaximization(max_iterations=1), rng=0)
        np.testing.assert_allclose(fitted.cpt("a"), [1 / 3, 2 / 3])

    def test_only_what_can_move_is_a_parameter(self):
        net = mf.BayesianNetwork({"a": 2, "b": 2, "c": 2})
        for v in "ab":
            net.add_cpt(v, [], [0.5, 0.5])
        net.add_noisy_or("c", ["a", "b"], [0.5, 0.5], leak=0.1)
        rows = np.random.default_rng(0).integers(0, 2, (50, 3))
        assert mf.fit(net, rows, method="em").fit_report.n_parameters == 5
        plain = mf.BayesianNetwork({"a": 2, "b": 2})
        plain.add_cpt("a", [], [0.5, 0.5])
        plain.add_cpt("b", ["a"], [[0.5, 0.5], [0.5, 0.5]])
        for method in (mf.methods.MaximumLikelihood(fixed=("a",)), mf.methods.ExpectationMaximization(fixed=("a",))):
            assert mf.fit(plain, rows[:, :2], method=method).fit_report.n_parameters == 2

    def test_init_is_where_it_starts(self):
        spec = random_spec(8, "bayesian")
        rows = with_holes(drawn(spec, 300, 0), 0.3, 0)
        first = mf.fit(bare(spec.build()), rows, method=mf.methods.ExpectationMaximization(max_iterations=20), rng=0)
        second = mf.fit(
            bare(spec.build()), rows, method=mf.methods.ExpectationMaximization(max_iterations=5), init=first
        )
        assert second.fit_report.history[0] == pytest.approx(first.fit_report.history[-1], rel=1e-12)


def bare(net: mf.BayesianNetwork) -> mf.BayesianNetwork:
    """The structure without the numbers."""
    empty = net.copy()
    for v in net.variables:
        empty.set_parents(v, list(net.parents(v)))
    return empty


class TestErrors:
    def test_bad_models_and_methods(self):
        net = mf.BayesianNetwork({"a": ["x", "y"], "b": 2})
        with pytest.raises(mf.ModelError, match="takes a BayesianNetwork"):
            mf.fit(object(), {"a": [0]})
        with pytest.raises(mf.ModelError, match="did you mean 'dirichlet'"):
            mf.fit(net, {"a": ["x"], "b": [0]}, method="dirichlett")
        with pytest.raises(mf.ModelError, match="at least one row"):
            mf.fit(net, {"a": [], "b": []})
        with pytest.raises(mf.ModelError, match="'b' has missing values; use method 'expectation_maximization'"):
            mf.fit(net, {"a": ["x"], "b": [None]}, method="ml")
        with pytest.raises(mf.ModelError, match="'z'"):
            mf.fit(net, {"a": ["z"], "b": [0]})
        with pytest.raises(mf.ModelError, match="prior must be"):
            mf.fit(net, {"a": ["x"], "b": [0]}, method=mf.methods.DirichletEstimate(prior="flat"))
        with pytest.raises(mf.ModelError, match="not negative"):
            mf.fit(net, {"a": ["x"], "b": [0]}, method=mf.methods.DirichletEstimate(prior=-1.0))
        with pytest.raises(mf.ModelError, match="need shape"):
            mf.fit(net, {"a": ["x"], "b": [0]}, method=mf.methods.DirichletEstimate(prior={"a": [1.0, 1.0, 1.0]}))
        with pytest.raises(mf.ModelError, match="cannot be fixed"):
            mf.fit(net, {"a": ["x"], "b": [0]}, method=mf.methods.MaximumLikelihood(fixed=("a",)))
        with pytest.raises(mf.ModelError, match="restarts of ExpectationMaximization must be at least 1"):
            mf.methods.ExpectationMaximization(restarts=0)
        with pytest.raises(mf.ModelError, match="tolerance of ExpectationMaximization must be a number"):
            mf.methods.ExpectationMaximization(tolerance="x")
        with pytest.raises(mf.ModelError, match="weights are zero in every row"):
            mf.fit(net, {"a": ["x"], "b": [0]}, weights=[0.0])
        with pytest.raises(mf.ModelError, match="column 'A' and none for the variable 'a'"):
            mf.fit(net, {"A": ["x"], "b": [0]})
        with pytest.raises(mf.ModelError, match="which is a variable of the network"):
            mf.fit(net, {"a": ["x"], "b": [0]}, weights="b")
        with pytest.raises(mf.ModelError, match="could be the number of a state or the truth"):
            mf.fit(mf.BayesianNetwork({"e": [True, False]}), {"e": [1, 0]})
        with pytest.raises(mf.ModelError, match="init of fit"):
            mf.fit(net, {"a": ["x"], "b": [0]}, init=mf.BayesianNetwork({"a": 2}))

    def test_a_row_the_start_rules_out_is_named(self):
        net = mf.BayesianNetwork({"a": ["x", "y"], "b": 2})
        net.add_cpt("a", [], [1.0, 0.0])
        net.add_cpt("b", ["a"], [[0.5, 0.5], [0.5, 0.5]])
        with pytest.raises(mf.ImpossibleEvidenceError, match="a='y'; start from tables without zeros"):
            mf.fit(net, {"a": ["y"], "b": [None]}, method="em")

    def test_a_cycle_is_printed(self):
        net = mf.BayesianNetwork({"a": 2, "b": 2})
        net.set_parents("a", ["b"])
        net.set_parents("b", ["a"])
        with pytest.raises(mf.ModelError, match=r"directed cycle: '[ab]' -> '[ab]' -> '[ab]'"):
            mf.fit(net, {"a": [0], "b": [1]})
