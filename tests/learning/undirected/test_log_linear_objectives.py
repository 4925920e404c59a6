"""Objectives of undirected learning: gradients by differences, moments, special cases, brute force."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import markovfield as mf
from markovfield.inference.core.registry import resolve
from markovfield.inference.core.running import Running
from markovfield.learning.core.data import encode
from markovfield.learning.undirected.composite_likelihood import BlockObjective, spanning_blocks
from markovfield.learning.undirected.likelihood import Likelihood
from markovfield.learning.undirected.local_objective import LocalObjective
from markovfield.learning.undirected.problem import cell_counts
from markovfield.learning.undirected.sites_kernel import FLOW, PSEUDO, RATIO
from tests.learning.undirected.log_linear_cases import mixed_network, problem_of, random_rows, ring, slopes
from tests.oracle import Oracle, all_states
from tests.strategies import random_spec


class TestObjectives:
    @pytest.mark.parametrize("missing", [0.0, 0.2])
    def test_the_gradient_of_the_likelihood(self, missing):
        net = mixed_network(0)
        problem = problem_of(net, random_rows(net, 50, 1, missing), weights=np.linspace(0.5, 2, 50))
        objective = Likelihood(problem, resolve("junction_tree", "marginals"))
        theta = np.random.default_rng(2).normal(size=len(problem.model.parameters))
        np.testing.assert_allclose(objective(theta)[1], slopes(objective, theta), atol=2e-9)

    @pytest.mark.parametrize("loss", [PSEUDO, RATIO, FLOW])
    def test_the_gradients_of_local_losses(self, loss):
        net = mixed_network(3)
        problem = problem_of(net, random_rows(net, 60, 4), weights=np.linspace(0.5, 2, 60))
        objective = LocalObjective(problem, loss)
        theta = np.random.default_rng(5).normal(size=len(problem.model.parameters))
        np.testing.assert_allclose(objective(theta)[1], slopes(objective, theta), atol=3e-9)

    @pytest.mark.parametrize("method", ["belief_propagation", "tree_reweighted"])
    def test_the_gradients_of_surrogates(self, method):
        model = mf.Ising((3, 3), coupling=np.full(12, 0.2), field=np.full((3, 3), 0.1))
        problem = problem_of(model, mf.sample(model, 40, rng=0))
        settings = {"tolerance": 1e-13, "max_iterations": 5000}
        name = "BeliefPropagation" if method == "belief_propagation" else "TreeReweighted"
        objective = Likelihood(problem, getattr(mf.methods, name)(**settings))
        theta = 0.3 * np.random.default_rng(6).normal(size=21)
        np.testing.assert_allclose(objective(theta)[1], slopes(objective, theta), atol=2e-6)

    def test_the_gradient_of_the_composite_likelihood(self):
        net = mixed_network(7)
        problem = problem_of(net, random_rows(net, 30, 8))
        for blocks in ([[0, 1], [1, 2, 3], [4]], spanning_blocks(problem)):
            objective = BlockObjective(problem, blocks)
            theta = np.random.default_rng(9).normal(size=len(problem.model.parameters))
            np.testing.assert_allclose(objective(theta)[1], slopes(objective, theta), atol=2e-9)

    def test_composite_likelihood_joins_the_others(self):
        net = mixed_network(10)
        problem = problem_of(net, random_rows(net, 30, 11))
        theta = np.random.default_rng(12).normal(size=len(problem.model.parameters))
        single, whole = BlockObjective(problem, [[v] for v in range(5)]), BlockObjective(problem, [list(range(5))])
        assert single(theta)[0] == pytest.approx(LocalObjective(problem, PSEUDO)(theta)[0], rel=1e-12)
        exact = Likelihood(problem, resolve("junction_tree", "marginals"))(theta)[0]
        assert whole(theta)[0] == pytest.approx(exact, rel=1e-12)

    @given(st.integers(0, 10**6))
    def test_local_losses_against_the_oracle(self, seed):
        spec = random_spec(seed, hard=False, scale=1.0)
        net = spec.build()
        graph = net.compile()
        if (graph.structure.kind == 2).any() or graph.n_variables == 0:
            return
        oracle = Oracle(spec.cardinalities, spec.factors)
        states = all_states(spec.cardinalities)
        score = np.asarray(graph.score(states))
        rng = np.random.default_rng(seed)
        picked = rng.integers(0, len(states), 7)
        problem = problem_of(graph, states[picked])
        log_p = dict(zip(map(tuple, states.tolist()), score.tolist(), strict=True))
        expected = np.zeros(3)
        for row in states[picked].tolist():
            for v, card in enumerate(spec.cardinalities):
                others = np.array([log_p[(*row[:v], k, *row[v + 1 :])] for k in range(card)])
                chance = np.exp(others - np.logaddexp.reduce(others))
                seen = np.eye(card)[row[v]]
                expected += [
                    -np.log(chance[row[v]]),
                    0.5 * np.square(chance - seen).sum(),
                    np.exp((others - others[row[v]]) / 2).sum() - 1,
                ]
        model = mf.LogLinear.of(graph)
        found = [LocalObjective(problem, loss)(model.parameters)[0] * 7 for loss in (PSEUDO, RATIO, FLOW)]
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)
        exact = -Likelihood(problem, resolve("junction_tree", "marginals"))(model.parameters)[0] * 7
        assert exact == pytest.approx(float(score[picked].sum() - 7 * oracle.log_partition), rel=1e-9, abs=1e-9)

    def test_cases_do_not_depend_on_how_rows_are_collapsed(self, monkeypatch):
        net = mixed_network(13)
        rows = random_rows(net, 200, 14)
        theta = np.random.default_rng(15).normal(size=len(mf.LogLinear.of(net).parameters))
        first = LocalObjective(problem_of(net, rows), PSEUDO)(theta)
        monkeypatch.setattr("markovfield.learning.undirected.local_objective.TABLE_SHARE", -10)
        second = LocalObjective(problem_of(net, rows), PSEUDO)(theta)
        assert first[0] == pytest.approx(second[0], rel=1e-12)
        np.testing.assert_allclose(first[1], second[1], atol=1e-12)

    def test_counts_by_kernel_and_by_columns(self, monkeypatch):
        net = ring(6, 3)
        table = encode(random_rows(net, 100, 16), net, weights=np.linspace(0, 1, 100))
        structure = net.compile().structure
        one = cell_counts(structure, table, Running())
        monkeypatch.setattr("markovfield.learning.undirected.problem.FEW_FACTORS", 0)
        np.testing.assert_allclose(cell_counts(structure, table, Running()), one, rtol=1e-12)


class TestLikelihood:
    @pytest.mark.parametrize("states", [2, 3])
    def test_moments_match_at_the_optimum(self, states):
        net = ring(5, states)
        rows = random_rows(net, 400, 17)
        fitted = mf.fit(net, rows, method="maximum_likelihood")
        problem = problem_of(net, rows)
        expected = mf.expected_counts(problem.structure, fitted.compile().log_tables).counts
        np.testing.assert_allclose(expected, problem.counts / 400, atol=1e-6)
        report = fitted.fit_report
        assert report.converged and report.guarantee == "exact" and report.gradient_norm / 400 < 1e-6
        assert report.n_parameters == 5 * (states - 1) + 5 * (states - 1) ** 2
        score = fitted.compile().score(rows) - float(mf.log_partition(fitted))
        assert report.log_likelihood == pytest.approx(float(score.sum()))

    def test_a_tree_is_fitted_in_closed_form(self):
        net = mf.MarkovNetwork.from_edges({"A": 2, "B": 3, "C": 2}, [("A", "B"), ("B", "C")])
        rows = random_rows(net, 300, 18)
        fitted = mf.fit(net, rows, method="ml")
        joint = mf.marginals(fitted).joint(["A", "B"])
        seen = np.zeros((2, 3))
        np.add.at(seen, (rows[:, 0], rows[:, 1]), 1 / 300)
        np.testing.assert_allclose(joint, seen, atol=1e-7)

    @pytest.mark.parametrize("seed", range(4))
    def test_proportional_fitting_likelihood_and_formula_agree(self, seed):
        """On decomposable graphs all three are one, and proportional fitting needs one sweep."""
        rng = np.random.default_rng(seed)
        cliques = [(0, 1, 2)] + [(int(rng.integers(0, v)), v) for v in range(3, 6)]
        net = mf.MarkovNetwork({v: int(rng.integers(2, 4)) for v in range(6)})
        for clique in cliques:
            net.add_unknown(clique)
        rows = random_rows(net, 500, seed)
        fits = [mf.fit(net, rows, method=name) for name in ("ipf", "closed_form", "ml")]
        assert fits[0].fit_report.iterations == 1
        for clique in cliques:
            joints = [mf.marginals(fitted).joint(clique) for fitted in fits]
            np.testing.assert_allclose(joints[1], joints[0], atol=1e-9)
            np.testing.assert_allclose(joints[2], joints[0], atol=1e-6)
        values = [fitted.fit_report.log_likelihood for fitted in fits]
        assert values == pytest.approx([values[0]] * 3, abs=1e-5)

    def test_features_tied_across_places(self):
        truth = mf.LogLinear(
            dict.fromkeys(range(5), 2),
            [mf.Feature([0, 1], [[1, 0], [0, 1]], places=[[i, i + 1] for i in range(1, 4)], name="agree"), [0]],
            parameters=[0.8, 0.0, 0.5],
        )
        data = mf.sample(truth, 4000, rng=19)
        start = truth.with_parameters(np.zeros(3))
        fitted = mf.fit(start, data, method="ml")
        assert fitted.parameters[0] == pytest.approx(0.8, abs=0.08)
        moments = mf.learning.empirical_moments(fitted, data)
        np.testing.assert_allclose(mf.learning.expected_moments(fitted), moments, atol=1e-7)
        assert mf.learning.expected_moments(start)[0] == pytest.approx(2.0)

    def test_missing_values_by_gradients_and_by_em(self):
        truth = mixed_network(20)
        rows = np.array(mf.sample(truth, 300, rng=21).states)
        rows[np.random.default_rng(22).random(rows.shape) < 0.15] = -1
        start = mf.MarkovNetwork.from_factor_graph(
            truth.compile().with_tables(np.zeros(truth.compile().structure.n_cells))
        )
        gradient = mf.fit(start, rows, method="ml")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            em = mf.fit(
                start, rows, method=mf.methods.ExpectationMaximization(max_iterations=60, tolerance=1e-9), rng=0
            )
        assert em.fit_report.log_likelihood == pytest.approx(gradient.fit_report.log_likelihood, abs=0.05)
        history = np.array(em.fit_report.history)
        assert (np.diff(history) >= -1e-9).all()

    def test_hidden_variables(self):
        """A hidden variable makes its children dependent, which no edge between them would explain otherwise."""
        truth = mf.MarkovNetwork.from_edges({"H": 2, "A": 2, "B": 2, "C": 2}, [("H", v) for v in "ABC"])
        for f in range(4, 7):
            assert truth.compile().structure.scope(f)[0] == 0
        tables = truth.compile().log_tables.copy()
        for f in range(4, 7):
            tables[truth.compile().cells(f)] = [[1.5, 0], [0, 1.5]]
        data = mf.sample(truth.compile().with_tables(tables), 500, rng=23)
        frame = {v: data.states[:, 1 + i] for i, v in enumerate("ABC")}
        em = mf.fit(truth, frame, method=mf.methods.ExpectationMaximization(restarts=3), hidden=["H"], rng=0)
        rng = np.random.default_rng(1)
        started = mf.LogLinear.of(truth).with_parameters(0.3 * rng.normal(size=20))
        ml = mf.fit(started, frame, method="ml", hidden=["H"])
        free = mf.fit(mf.MarkovNetwork(dict.fromkeys("ABC", 2)), frame, method="ml")
        assert em.fit_report.log_likelihood == pytest.approx(ml.fit_report.log_likelihood, abs=0.5)
        assert ml.fit_report.log_likelihood > free.fit_report.log_likelihood + 50

    def test_bounds_and_approximations_say_what_they_are(self):
        model = mf.Ising((4, 4), coupling=0.3)
        data = mf.sample(model, 200, rng=24)
        exact = mf.fit(mf.Ising((4, 4), coupling=0.0), data, method="ml").fit_report
        said = {}
        for name in ("tree_reweighted", "belief_propagation", "mean_field"):
            method = mf.methods.MaximumLikelihood(inference=name)
            said[name] = mf.fit(mf.Ising((4, 4), coupling=0.0), data, method=method).fit_report
            assert said[name].guarantee == "approximate"
        assert said["tree_reweighted"].log_likelihood <= exact.log_likelihood
        assert "lower bound" in said["tree_reweighted"].notes[0]
        assert said["mean_field"].log_likelihood >= exact.log_likelihood - 1e-6
        with pytest.raises(mf.ModelError, match="StochasticMaximumLikelihood"):
            mf.fit(model, data, method=mf.methods.MaximumLikelihood(inference="gibbs"))

    def test_penalties(self):
        model = mf.Ising((3, 3), coupling=np.zeros(12), field=np.zeros((3, 3)))
        data = mf.sample(mf.Ising((3, 3), coupling=0.4, field=0.1), 300, rng=25)
        plain = mf.fit(model, data, method="ml")
        shrunk = mf.fit(model, data, method=mf.methods.MaximumLikelihood(l2=50.0))
        assert np.abs(shrunk.coupling).sum() < np.abs(plain.coupling).sum()
        sparse = mf.fit(model, data, method=mf.methods.MaximumLikelihood(l1=1e4))
        assert (sparse.coupling == 0).all() and (sparse.field != 0).any()
        grouped = mf.fit(ring(4), random_rows(ring(4), 200, 26), method=mf.methods.PseudoLikelihood(group_l1=1e4))
        tables = grouped.compile()
        assert all((tables.table(f) == 0).all() for f in range(4, 8))
        prior = mf.learning.Penalty(l2=1e6, mean=0.7)
        held = mf.fit(model, data, method=mf.methods.MaximumLikelihood(penalty=prior))
        np.testing.assert_allclose(mf.LogLinear.of(held).parameters, 0.7, atol=0.01)

    def test_structural_zeros_stay(self):
        net = mf.MarkovNetwork({"A": 2, "B": 2})
        net.add_factor(["A", "B"], log_table=[[0.0, 0.0], [-np.inf, 0.0]])
        fitted = mf.fit(net, [[0, 0], [0, 1], [1, 1], [1, 1]], method="ml")
        np.testing.assert_allclose(
            np.exp(fitted.compile().table(0) - float(mf.log_partition(fitted))), [[0.25, 0.25], [0, 0.5]], atol=1e-7
        )
        for name in ("pseudo_likelihood", "ml", "mpf"):
            with pytest.raises(mf.ModelError, match="rules out A=1, B=0, which the data have 1 times"):
                mf.fit(net, [[1, 0], [0, 0]], method=name)

    def test_a_likelihood_without_a_maximum_is_diagnosed(self):
        net = ring(4)
        rows = np.array([[0, 0, 1, 0], [0, 1, 1, 1], [0, 0, 0, 1]])
        fitted = mf.fit(net, rows, method="ml")
        assert np.isfinite(fitted.compile().log_tables).all()
        assert any("never changes" in note for note in fitted.fit_report.notes)
        assert mf.fit(net, rows, method=mf.methods.MaximumLikelihood(l2=1.0)).fit_report.converged
