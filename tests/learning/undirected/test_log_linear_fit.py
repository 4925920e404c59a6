"""Fitting undirected models: moments, gradients, special cases, what is refused; over all registered methods."""

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
from markovfield.learning.registry import registered
from markovfield.learning.undirected.composite_likelihood import BlockObjective, spanning_blocks
from markovfield.learning.undirected.likelihood import Likelihood
from markovfield.learning.undirected.local_objective import LocalObjective
from markovfield.learning.undirected.problem import Problem, cell_counts
from markovfield.learning.undirected.sites_kernel import FLOW, PSEUDO, RATIO
from tests.oracle import Oracle, all_states
from tests.strategies import random_spec

METHODS = sorted({e.name for e in registered() if "fit" in e.verbs and e.form == "LogLinear"})
# Few steps for those that sample, so that all methods can be tried on all models.
QUICK = {
    "stochastic_maximum_likelihood": mf.methods.StochasticMaximumLikelihood(n_steps=40, n_chains=20),
    "contrastive_divergence": mf.methods.ContrastiveDivergence(n_steps=40, n_chains=20),
}
# Methods whose weights make the data win, and say nothing of probabilities.
SEPARATORS = {"max_margin", "voted_perceptron"}
ESTIMATORS = [name for name in METHODS if name not in SEPARATORS]
# What each method can be asked to fit: tables need whole tables of their own.
TABLES_ONLY = {"iterative_proportional_fitting", "closed_form"}


def problem_of(model, rows, **settings):
    return Problem(mf.LogLinear.of(model), encode(rows, model, **settings), Running())


def mixed_network(seed: int) -> mf.MarkovNetwork:
    """Tables, shared tables, clauses, parities, cardinalities and distances."""
    rng = np.random.default_rng(seed)
    net = mf.MarkovNetwork({"A": 2, "B": 3, "C": 2, "D": 2, "E": 3})
    net.add_factor(["A", "B"], log_table=rng.normal(size=(2, 3)))
    net.add_factors([["B", "C"], ["E", "D"]], log_table=rng.normal(size=(3, 2)))
    net.add_factor(["C", "D", "E"], log_table=rng.normal(size=(2, 2, 3)))
    net.add_clause({"A": 1, "C": 0, "D": 1}, weight=0.7)
    net.add_parity({"A": 1, "D": 1}, weight=0.3)
    net.add_potts([["B", "E"]], 0.5, -0.2)
    net.add_cardinality([0.0, 0.3, -0.2], {"A": 1, "C": 1, "D": 1})
    return net


def random_rows(net, n, seed, missing=0.0):
    rng = np.random.default_rng(seed)
    cards = net.compile().structure.cardinalities
    rows = np.stack([rng.integers(0, c, n) for c in cards], axis=1)
    rows[rng.random(rows.shape) < missing] = -1
    return rows


def slopes(objective, theta):
    step = 1e-5 * np.eye(len(theta))
    return np.array([(objective(theta + h)[0] - objective(theta - h)[0]) / 2e-5 for h in step])


def ring(n, states=2):
    return mf.MarkovNetwork.from_edges(dict.fromkeys(range(n), states), [(i, (i + 1) % n) for i in range(n)])


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


class TestMethods:
    @pytest.mark.parametrize("name", METHODS)
    def test_every_method_fits_a_decomposable_network(self, name):
        net = mf.MarkovNetwork.from_edges({"A": 2, "B": 3, "C": 2}, [("A", "B"), ("B", "C")])
        rows = random_rows(net, 200, 27)
        weights = np.ones(200)
        before = net.compile().log_tables.copy()
        fitted = mf.fit(net, rows, method=QUICK.get(name, name), rng=0, weights=weights)
        np.testing.assert_array_equal(net.compile().log_tables, before)
        report = fitted.fit_report
        assert report.method == name and report.n_rows == 200 and report.guarantee in ("exact", "approximate")
        assert np.isfinite(fitted.compile().log_tables[fitted.compile().log_tables > -np.inf]).all()
        assert repr(report).startswith("FitReport: ")
        if name in SEPARATORS:
            assert np.isnan(report.log_likelihood) and any("no estimate" in note for note in report.notes)
            return
        best = mf.fit(net, rows, method="ml").fit_report.log_likelihood
        worst = mf.fit(mf.MarkovNetwork.from_edges({"A": 2, "B": 3, "C": 2}, []), rows, method="ml").fit_report
        assert worst.log_likelihood - 15 < report.log_likelihood <= best + 1e-6

    @pytest.mark.parametrize("name", METHODS)
    def test_twice_the_weight_is_twice_the_rows(self, name):
        if name in QUICK:
            pytest.skip("draws depend on the rows")
        net = mf.MarkovNetwork.from_edges({"A": 2, "B": 2, "C": 2}, ["AB", "BC"])
        rows = random_rows(net, 60, 28)
        one = mf.fit(net, np.concatenate([rows, rows[:20]]), method=name, rng=0)
        two = mf.fit(net, rows, method=name, weights=np.where(np.arange(60) < 20, 2.0, 1.0), rng=0)
        a, b = mf.marginals(one).joint(["A", "B"]), mf.marginals(two).joint(["A", "B"])
        np.testing.assert_allclose(a, b, atol=1e-6)

    @pytest.mark.parametrize("name", sorted(SEPARATORS))
    def test_separators_let_majorities_win(self, name):
        net = mf.MarkovNetwork.from_edges({"A": 2, "B": 3}, [])
        rows = [[1, 2]] * 80 + [[0, 0]] * 20
        assert mf.decode(mf.fit(net, rows, method=name, rng=0)).states.tolist() == [1, 2]

    @pytest.mark.parametrize("name", ESTIMATORS)
    def test_independent_variables_are_frequencies(self, name):
        net = mf.MarkovNetwork.from_edges({"A": 2, "B": 3}, [])
        rows = random_rows(net, 500, 29)
        method = QUICK.get(name, name)
        fitted = mf.fit(net, rows, method=method, rng=0)
        seen = np.bincount(rows[:, 1], minlength=3) / 500
        # A prior and draws move the posterior mean a little.
        tolerance = 0.08 if name in QUICK else 0.01 if name == "bayesian_proportional_fitting" else 1e-6
        np.testing.assert_allclose(mf.marginals(fitted)["B"], seen, atol=tolerance)

    @pytest.mark.parametrize("name", METHODS)
    def test_missing_values_are_summed_out_or_refused(self, name):
        net = mf.MarkovNetwork.from_edges({"A": 2, "B": 2}, ["AB"])
        rows = np.array([[0, 0], [1, 1], [0, -1], [1, 1], [0, 0], [1, 0]])
        method = QUICK.get(name, name)
        takes = {e.name: e.load().missing_values for e in registered() if "fit" in e.verbs and e.form == "LogLinear"}
        if name == "maximum_likelihood" or takes[name]:
            assert mf.fit(net, rows, method=method, rng=0).fit_report.missing == {"B": 1}
            return
        with pytest.raises(mf.ModelError, match="missing values"):
            mf.fit(net, rows, method=method, rng=0)

    def test_stochastic_methods_come_within_their_errors(self):
        truth = mf.Ising((3, 3), coupling=0.3, field=0.2)
        data = mf.sample(truth, 1000, rng=30)
        start = mf.Ising((3, 3), coupling=0.1, field=0.1)
        exact = mf.LogLinear.of(mf.fit(start, data, method="ml")).parameters
        for method in (
            mf.methods.StochasticMaximumLikelihood(n_steps=600),
            mf.methods.ContrastiveDivergence(k=20, n_steps=600),
        ):
            fitted = mf.fit(start, data, method=method, rng=0)
            errors = fitted.fit_report.details.standard_errors
            assert (errors > 0).all() and (errors < 0.02).all()
            assert (np.abs(mf.LogLinear.of(fitted).parameters - exact) < 5 * errors + 1e-3).all()
            again = mf.fit(start, data, method=method, rng=0, n_jobs=1)
            np.testing.assert_array_equal(mf.LogLinear.of(again).parameters, mf.LogLinear.of(fitted).parameters)

    def test_pseudo_likelihood_is_consistent(self):
        """Errors fall as one over the root of the rows."""
        truth = mf.Ising((4, 4), coupling=np.full(24, 0.3), field=np.full((4, 4), 0.1))
        data = np.array(mf.sample(truth, 64_000, rng=31).states)
        errors = []
        for n in (1000, 8000, 64_000):
            parts = [data[a : a + n] for a in range(0, 64_000, n)][:8]
            found = [mf.fit(truth, part, method="pl") for part in parts]
            apart = [mf.LogLinear.of(f).parameters - mf.LogLinear.of(truth).parameters for f in found]
            errors.append(np.sqrt(np.mean(np.square(apart))))
        rate = np.log(errors[0] / errors[2]) / np.log(64)
        assert 0.4 < rate < 0.6

    def test_auto_says_what_it_took_and_why(self):
        small = mf.fit(ring(5), random_rows(ring(5), 50, 32))
        assert small.fit_report.notes[0].startswith("auto took")
        wide = mf.fit(mf.Ising((30, 30), coupling=0.1), mf.sample(mf.Ising((30, 30), coupling=0.1), 20, rng=0))
        assert wide.fit_report.method == "pseudo_likelihood" and "too large" in wide.fit_report.notes[0]
        hopfield = mf.fit(mf.Hopfield(40), np.random.default_rng(0).choice([-1, 1], (5, 40)))
        assert hopfield.fit_report.method == "pseudo_likelihood"

    def test_progress_and_limits(self):
        told = []
        net = ring(6)
        rows = random_rows(net, 100, 33)
        mf.fit(net, rows, method="ml", callback=lambda p: told.append(p.value))
        assert len(told) > 2
        stopped = mf.fit(net, rows, method="pl", callback=lambda p: p.step >= 3)
        assert not stopped.fit_report.converged and "stopped" in stopped.fit_report.message

    @pytest.mark.parametrize("name", METHODS)
    @pytest.mark.parametrize("limit", [{}, {"time_limit": 1e-6}, {"callback": lambda p: True}])
    def test_every_kind_of_model_is_fitted_or_refused(self, name, limit):
        """Whatever the model and however soon it is stopped: a model of finite numbers, or one sentence."""
        clauses = mf.MarkovNetwork(dict.fromkeys("ABC", 2))
        clauses.add_clause({"A": 1, "B": 1}, weight=0.5)
        clauses.add_exactly(1, {"A": 1, "B": 1, "C": 1})
        rng = np.random.default_rng(36)
        models = [
            (ring(3, 3), rng.integers(0, 3, (12, 3))),
            (mf.Ising((2, 3), coupling=np.zeros(7), field=np.zeros((2, 3)), spins="0/1"), rng.integers(0, 2, (12, 6))),
            (mf.Potts((2, 2), 20, coupling=0.1), rng.integers(0, 20, (12, 4))),
            (mf.BoltzmannMachine(3, 1), rng.integers(0, 2, (12, 3))),
            (mf.LogLinear({"A": 2, "B": 2}, [mf.Feature({"A": 1, "B": 1})]), rng.integers(0, 2, (12, 2))),
            (mf.MarkovNetwork.from_edges({"A": 1, "B": 2}, ["AB"]), np.array([[0, 1], [0, 0]])),
            (mf.MarkovNetwork({"A": 2, "B": 2}), rng.integers(0, 2, (12, 2))),
            (clauses, np.eye(3, dtype=int)),
        ]
        for model, rows in models:
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    fitted = mf.fit(model, rows, method=QUICK.get(name, name), rng=0, **limit)
            except (mf.ModelError, TimeoutError, mf.StoppedError):
                continue
            tables = fitted.compile().log_tables
            assert not np.isnan(tables).any() and not (tables == np.inf).any()
            assert type(fitted) is type(model) and fitted.fit_report.method == name

    def test_warm_starts(self):
        net = mf.Ising((4, 4), coupling=np.zeros(24), field=np.zeros((4, 4)))
        data = mf.sample(mf.Ising((4, 4), coupling=0.3, field=0.1), 300, rng=34)
        first = mf.fit(net, data, method="ml")
        again = mf.fit(net, data, method="ml", init=first)
        assert again.fit_report.iterations <= 2
        with pytest.raises(mf.ModelError, match="init of fit must be"):
            mf.fit(net, data, method="ml", init=mf.Ising((4, 4), coupling=0.1))

    @pytest.mark.parametrize("make", [mf.methods.MaximumLikelihood, mf.methods.PseudoLikelihood])
    def test_a_fit_goes_on_from_its_checkpoint(self, make, tmp_path):
        net = mf.Ising((4, 4), coupling=np.zeros(24), field=np.zeros((4, 4)))
        data = mf.sample(mf.Ising((4, 4), coupling=0.3, field=0.1), 300, rng=35)
        whole = mf.fit(net, data, method=make())
        method = make(checkpoint=tmp_path / "fit.mf")
        first = mf.fit(net, data, method=method, callback=lambda p: p.step >= 5)
        assert not first.fit_report.converged and (tmp_path / "fit.mf").exists()
        again = mf.fit(net, data, method=method)
        assert again.fit_report.converged
        np.testing.assert_allclose(again.coupling, whole.coupling, atol=1e-5)

    def test_no_setting_is_ignored_in_silence(self, tmp_path):
        machine, rows = mf.RestrictedBoltzmannMachine(4, 2), np.eye(4, dtype=int)
        training = mf.learning.Training(epochs=2)
        for method in (
            mf.methods.StochasticMaximumLikelihood(n_steps=5),
            mf.methods.ContrastiveDivergence(learning_rate=0.3),
            mf.methods.MinimumProbabilityFlow(solver="lbfgs"),
        ):
            with pytest.raises(mf.ModelError, match="says nothing to a RestrictedBoltzmannMachine"):
                mf.fit(machine, rows, method=method)
        for name in ("StochasticMaximumLikelihood", "ContrastiveDivergence", "MinimumProbabilityFlow"):
            with pytest.raises(mf.ModelError, match="is for Boltzmann machines with hidden units"):
                mf.fit(ring(4), rows, method=getattr(mf.methods, name)(training=training))
        few = mf.methods.StochasticMaximumLikelihood(n_steps=4, n_chains=3)
        assert mf.fit(mf.BoltzmannMachine(20, 2), np.eye(20, dtype=int), method=few, rng=0).fit_report.iterations == 4
        kept = mf.methods.PseudoLikelihood(l2=1.0, checkpoint=tmp_path / "dense.mf")
        mf.fit(mf.Hopfield(4), 2 * rows - 1, method=kept)
        assert (tmp_path / "dense.mf").exists()

    def test_what_is_refused(self):
        net = ring(4)
        with pytest.raises(mf.ModelError, match="does not fit an undirected model"):
            mf.fit(net, random_rows(net, 5, 0), method=mf.methods.DirichletEstimate())
        with pytest.raises(mf.ModelError, match="does not fit a Bayesian network"):
            mf.fit(mf.BayesianNetwork({"A": 2}), {"A": [0]}, method=mf.methods.PseudoLikelihood())
        with pytest.raises(mf.ModelError, match="did you mean 'pseudo_likelihood'"):
            mf.fit(net, random_rows(net, 5, 0), method="pseudo_likelyhood")
        with pytest.raises(mf.ModelError, match="must be at least 0"):
            mf.methods.PseudoLikelihood(l2=-1.0)
        with pytest.raises(mf.ModelError, match="'trees', 'edges' or a list"):
            mf.methods.CompositeLikelihood("chains")
        with pytest.raises(mf.ModelError, match="Penalty, got 3"):
            mf.fit(net, random_rows(net, 5, 0), method=mf.methods.MaximumLikelihood(penalty=3))
        with pytest.raises(mf.ModelError, match="no l1 or l2"):
            mf.fit(mf.BayesianNetwork({"A": 2}), {"A": [0]}, method=mf.methods.MaximumLikelihood(l2=1.0))


class TestModels:
    @pytest.mark.parametrize("name", ["ml", "pl", "mpf"])
    def test_models_come_back_as_they_are(self, name):
        ising = mf.Ising((3, 3), coupling=(0.1, 0.2), field=0.3)
        potts = mf.Potts((3, 3), 3, coupling=0.2, field=np.zeros(3))
        many = mf.Potts((2, 2), 20, coupling=0.2)
        machine = mf.BoltzmannMachine(3)
        for model, data in (
            (ising, mf.sample(ising, 60, rng=0)),
            (potts, mf.sample(potts, 60, rng=0)),
            (many, mf.sample(many, 60, rng=0)),
            (machine, np.random.default_rng(0).integers(0, 2, (60, 3))),
        ):
            fitted = mf.fit(model, data, method=name)
            assert type(fitted) is type(model)
            assert mf.LogLinear.of(fitted).parameters.shape == mf.LogLinear.of(model).parameters.shape
        assert isinstance(mf.fit(ising, mf.sample(ising, 60, rng=0), method=name).coupling, tuple)

    def test_arrays_in_a_models_own_shape(self):
        model = mf.Ising((3, 4), coupling=0.3)
        data = mf.sample(model, 200, rng=0)
        by_states = mf.fit(model, data, method="pl").coupling
        assert mf.fit(model, model.to_spins(data), method="pl").coupling == pytest.approx(by_states)
        assert mf.fit(model, np.array(data.states), method="pl").coupling == pytest.approx(by_states)
        with pytest.raises(mf.ModelError, match=r"need the shape \(rows, 12\)"):
            mf.fit(model, np.zeros((5, 7), int), method="pl")
        with pytest.raises(mf.ModelError, match="must be 0 and 1"):
            mf.fit(mf.BoltzmannMachine(3), np.full((2, 3), 2), method="pl")

    def test_dense_machines_agree_with_their_factor_graphs(self):
        rows = np.random.default_rng(1).integers(0, 2, (80, 5))
        machine = mf.BoltzmannMachine(5)
        dense = mf.fit(machine, rows, method=mf.methods.PseudoLikelihood(l2=1.0))
        general = mf.fit(machine.log_linear(), rows, method=mf.methods.PseudoLikelihood(l2=1.0))
        np.testing.assert_allclose(mf.LogLinear.of(dense).parameters, general.parameters, atol=1e-5)
        memory = mf.fit(mf.Hopfield(5), 2 * rows - 1, method=mf.methods.PseudoLikelihood(l2=1.0))
        general = mf.fit(mf.Hopfield(5).log_linear(), rows, method=mf.methods.PseudoLikelihood(l2=1.0))
        np.testing.assert_allclose(mf.LogLinear.of(memory).parameters, general.parameters, atol=1e-5)

    def test_hopfield_by_likelihood(self):
        patterns = np.random.default_rng(2).choice([-1, 1], (3, 8))
        memory = mf.fit(mf.Hopfield(8), patterns, method=mf.methods.MaximumLikelihood(l2=0.05))
        for pattern in patterns:
            assert (memory.complete(np.where(np.arange(8) < 5, pattern, np.nan), rng=0).state == pattern).all()
