"""Fitting undirected models: moments, gradients, special cases, what is refused; over all registered methods."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import markovfield as mf
from markovfield.learning.registry import registered
from tests.learning.undirected.log_linear_cases import random_rows, ring

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
