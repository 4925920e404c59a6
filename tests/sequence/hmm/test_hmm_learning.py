"""HMM: learning by counting and by expectation maximisation."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from markovfield.exceptions import ModelError
from markovfield.inference.core.running import Running
from markovfield.sequence.hmm.hmm import HMM
from markovfield.sequence.hmm.training import learning
from tests.sequence.hmm.enumeration import K, V, enumerated, random_hmm


class TestCounting:
    X = (["the", "dog", "runs"], ["dogs", "run"], ["the", "dog"])
    Y = (["D", "N", "V"], ["N", "V"], ["D", "N"])

    def test_maximum_likelihood_is_relative_frequencies(self) -> None:
        hmm = HMM(smoothing=0.0).fit(self.X, self.Y)
        assert hmm.classes_ == ["D", "N", "V"]
        np.testing.assert_allclose(hmm.start_, [2 / 3, 1 / 3, 0])
        # No verb is followed by anything: its row is even.
        np.testing.assert_allclose(hmm.transitions_, [[0, 1, 0], [0, 0, 1], [1 / 3, 1 / 3, 1 / 3]])
        e = hmm.emissions_
        assert e.probabilities[1, e.symbols.index("dog")] == pytest.approx(2 / 3)
        assert hmm.report_.method == "counting"
        joint = 2 / 3 * 1 * 1 * 1 * 2 / 3 * 0.5
        assert hmm.log_likelihood([self.X[0]], [self.Y[0]])[0] == pytest.approx(np.log(joint))

    def test_laplace_adds_one(self) -> None:
        hmm = HMM().fit(self.X, self.Y)
        np.testing.assert_allclose(hmm.start_, [3 / 6, 2 / 6, 1 / 6])
        np.testing.assert_allclose(hmm.transitions_[0], [1 / 5, 3 / 5, 1 / 5])
        # Five words and one column for all others.
        np.testing.assert_allclose(hmm.emissions_.probabilities[0, -1], 1 / 8)
        assert hmm.predict([["the", "cat"]]) == [["D", "N"]]

    def test_unknown_symbols(self) -> None:
        rare = HMM(unknown="rare", smoothing=0.5).fit(self.X, self.Y)
        # Seen once: "dogs" by N, "run" and "runs" by V; columns for five words and the unknown.
        share = [(0 + 0.5) / (2 + 0 + 3), (1 + 0.5) / (3 + 1 + 3), (2 + 0.5) / (2 + 2 + 3)]
        np.testing.assert_allclose(rare.emissions_.probabilities[:, -1], share)
        np.testing.assert_allclose(rare.emissions_.probabilities.sum(axis=1), 1.0)
        gone = HMM(unknown="missing").fit(self.X, self.Y)
        np.testing.assert_allclose(gone.predict_proba([["the", "?"]])[0], gone.predict_proba([["the", None]])[0])
        with pytest.raises(ModelError, match="'cat' was not seen in training; unknown='smooth'"):
            HMM(unknown="error").fit(self.X, self.Y).predict([["cat"]])
        with pytest.raises(ModelError, match="emission_smoothing above 0"):
            HMM(smoothing=0.0).fit(self.X, self.Y).predict([["cat"]])

    @pytest.mark.parametrize("symbols", [[0, 1, 2], [-3, 7, 5], [0, 10**12, 5]])
    def test_whole_numbers_in_arrays(self, symbols: list) -> None:
        X = [np.array(symbols), np.array([symbols[2], symbols[2]])]
        y = [["a", "b", "c"], ["c", "c"]]
        hmm = HMM(symbols=symbols, unknown="missing").fit(X, y)
        lists = [x.tolist() for x in X]
        assert HMM(symbols=symbols).fit(X, y).emissions_.symbols == tuple(symbols)
        np.testing.assert_array_equal(hmm.emissions_.encode(X).rows, [0, 1, 2, 2, 2])
        np.testing.assert_array_equal(hmm.emissions_.encode(lists).rows, [0, 1, 2, 2, 2])
        for unseen in (-99, 3, 10**13):
            np.testing.assert_array_equal(hmm.emissions_.encode([np.array([symbols[1], unseen])]).rows, [1, 3])

    def test_gaussians_are_means_and_covariances(self) -> None:
        rng = np.random.default_rng(0)
        X, y = [1e6 + rng.normal(size=(40, 2)) @ [[1, 0.5], [0, 2]] for _ in range(3)], []
        for x in X:
            y.append(["b" if row[0] > 1e6 else "a" for row in x])
        points, names = np.concatenate(X), np.concatenate(y)
        for covariance in ("full", "diag", "spherical"):
            hmm = HMM(emissions="gaussian", covariance=covariance, regularisation=0.0).fit(X, y)
            for k, name in enumerate("ab"):
                own = points[names == name]
                np.testing.assert_allclose(hmm.emissions_.means[k], own.mean(axis=0), rtol=1e-12)
                true = np.cov(own.T, bias=True)
                if covariance != "full":
                    true = np.diag(np.diag(true))
                if covariance == "spherical":
                    true = np.eye(2) * np.trace(true) / 2
                np.testing.assert_allclose(hmm.emissions_.covariances[k], true, rtol=1e-9, atol=1e-9)

    def test_scikit_learns_manners(self) -> None:
        X, y = list(self.X) * 3, list(self.Y) * 3
        search = GridSearchCV(HMM(), {"smoothing": [0.1, 1.0]}, cv=3).fit(X, y)
        assert search.best_score_ == 1.0
        assert clone(HMM(3, smoothing=0.5)).smoothing == 0.5
        assert HMM().fit(X, y).score(X, y) == 1.0
        assert HMM(2, rng=0).fit(X).score(X) == pytest.approx(HMM(2, rng=0).fit(X).log_likelihood(X).sum())


class TestBaumWelch:
    @pytest.mark.parametrize("emissions", ["categorical", "gaussian"])
    @pytest.mark.parametrize("prior", [False, True])
    def test_the_objective_never_falls(self, emissions: str, prior: bool) -> None:
        X, _ = random_hmm(4, d=None if emissions == "categorical" else 2).sample([60] * 8, rng=0)
        if prior:
            priors = {"smoothing": 0.3, "regularisation": 0.1}
        else:
            priors = {"smoothing": 0.0, "regularisation": 0.0}
        for seed, covariance in enumerate(("full", "diag", "spherical")):
            hmm = HMM(3, emissions, covariance=covariance, rng=seed, restarts=1, max_iterations=1, **priors).fit(X)
            observed = hmm.emissions_.encode(X)
            scales = {name: priors[name] for name in ("smoothing", "regularisation")}
            task = learning(observed, None, Running(), emission_smoothing=None, **scales)
            model, values = hmm.model_, []
            for _ in range(40):
                expected = model.expected(observed)
                values.append(task.objective(model, expected))
                if not prior:
                    assert values[-1] == pytest.approx(model.log_likelihoods(observed).sum(), rel=1e-12)
                model = task.maximised(model, expected)
            # Rounding in sums of 480 tokens, whose log-likelihood is of the order of 1000.
            assert (np.diff(values) >= -1e-9).all()
            assert values[-1] > values[0] + 1

    def test_reports_what_it_did(self) -> None:
        X, _ = random_hmm(4).sample([60] * 8, rng=0)
        hmm = HMM(3, rng=0, restarts=3, tolerance=1e-4).fit(X)
        report = hmm.report_
        assert (report.method, report.restarts, report.converged) == ("baum_welch", 3, True)
        assert len(report.history) == report.iterations + 1 == hmm.n_iter_ + 1
        assert report.log_likelihood == pytest.approx(hmm.log_likelihood(X).sum(), rel=1e-12)
        assert "log-likelihood" in str(report)
        short = HMM(3, rng=0, restarts=3, tolerance=1e-4, max_iterations=5).fit(X).report_
        assert (short.iterations, short.converged) == (5, False)
        assert short.log_likelihood < report.log_likelihood

    def test_one_iteration_is_the_textbook_one(self) -> None:
        hmm = random_hmm(6)
        X = [[0, 1, 3, 2], [2, 2, 0]]
        moves, shown, start = np.zeros((K, K)), np.zeros((K, V)), np.zeros(K)
        for x in X:
            paths, values = enumerated(hmm, x)
            for path, p in zip(paths, values / values.sum(), strict=True):
                start[path[0]] += p
                for t, state in enumerate(path):
                    shown[state, x[t]] += p
                    if t:
                        moves[path[t - 1], state] += p
        hmm.set_params(warm_start=True, max_iterations=1, tolerance=0.0).fit(X)
        np.testing.assert_allclose(hmm.start_, start / 2, atol=1e-12)
        np.testing.assert_allclose(hmm.transitions_, moves / moves.sum(axis=1, keepdims=True), atol=1e-12)
        np.testing.assert_allclose(hmm.emissions_.probabilities, shown / shown.sum(axis=1, keepdims=True), atol=1e-12)

    def test_recovers_gaussians_that_made_the_data(self) -> None:
        true = HMM.from_parameters(
            [0.6, 0.3, 0.1],
            [[0.9, 0.05, 0.05], [0.1, 0.8, 0.1], [0.2, 0.1, 0.7]],
            ([[0.0, 0.0], [4.0, 0.0], [0.0, 5.0]], [np.eye(2), [[1.0, 0.5], [0.5, 1.0]], 0.5 * np.eye(2)]),
        )
        X, y = true.sample([400] * 15, rng=0)
        hmm = HMM(3, "gaussian", rng=1).fit(X)
        order = [int(np.argmin(((hmm.emissions_.means - m) ** 2).sum(axis=1))) for m in true.emissions_.means]
        assert sorted(order) == [0, 1, 2]
        # 6000 tokens: standard errors are below 0.015 for transitions and 0.04 for means; the bounds are four of them.
        np.testing.assert_allclose(hmm.transitions_[np.ix_(order, order)], true.transitions_, atol=0.06)
        np.testing.assert_allclose(hmm.emissions_.means[order], true.emissions_.means, atol=0.16)
        np.testing.assert_allclose(hmm.emissions_.covariances[order], true.emissions_.covariances, atol=0.2)
        named = {state: name for name, state in enumerate(order)}
        right = [named[a] == b for p, q in zip(hmm.predict(X), y, strict=True) for a, b in zip(p, q, strict=True)]
        assert np.mean(right) > 0.97

    def test_recovers_symbols_that_made_the_data(self) -> None:
        true = HMM.from_parameters(
            [0.5, 0.5], [[0.9, 0.1], [0.2, 0.8]], [[0.7, 0.2, 0.05, 0.05], [0.05, 0.05, 0.3, 0.6]], symbols=list("abcd")
        )
        X, _ = true.sample([500] * 16, rng=0)
        hmm = HMM(2, rng=0, unknown="error").fit(X)
        order = np.argsort(-hmm.emissions_.probabilities[:, 0])
        # 8000 tokens, of which some leave the state open: standard errors are below 0.012; the bound is four of them.
        np.testing.assert_allclose(hmm.transitions_[np.ix_(order, order)], true.transitions_, atol=0.05)
        np.testing.assert_allclose(hmm.emissions_.probabilities[order], true.emissions_.probabilities, atol=0.05)
        assert hmm.report_.log_likelihood >= true.log_likelihood(X).sum()

    def test_partly_labelled_sequences(self) -> None:
        true = random_hmm(11, d=1)
        X, y = true.sample([50] * 20, rng=0)
        rng = np.random.default_rng(0)
        some = [[label if rng.random() < 0.2 else None for label in labels] for labels in y]
        some[3] = None
        hmm = HMM(emissions="gaussian").fit(X, some)
        assert hmm.report_.method == "baum_welch"
        assert (np.diff(hmm.report_.history) >= 0).all()
        assert hmm.classes_ == [0, 1, 2]
        given = [labels if labels is not None else [None] * 50 for labels in some]
        assert hmm.report_.log_likelihood == pytest.approx(hmm.log_likelihood(X, given).sum(), rel=1e-12)
        # Where a label is known the posterior is certain of it.
        table = hmm.predict_proba(X, fixed=given)[0]
        known = [t for t, label in enumerate(given[0]) if label is not None]
        np.testing.assert_allclose(table[known, [given[0][t] for t in known]], 1.0)
        # What labels say breaks the symmetry of states: the fitted means are those of the labels.
        by_label = [
            np.mean([v for x, q in zip(X, y, strict=True) for v, b in zip(x, q, strict=True) if b == k])
            for k in range(3)
        ]
        assert [int(np.argmin(abs(hmm.emissions_.means[:, 0] - m))) for m in by_label] == [0, 1, 2]

    def test_stops_when_told(self) -> None:
        X, _ = random_hmm(1).sample([80] * 10, rng=0)
        seen = []
        hmm = HMM(3, rng=0, restarts=1, tolerance=0.0).fit(X, callback=lambda p: seen.append(p) or len(seen) > 6)
        assert not hmm.report_.converged
        assert "callback" in hmm.report_.message
        np.testing.assert_allclose(hmm.transitions_.sum(axis=1), 1.0)

    def test_hmmlearn_makes_the_same_step(self) -> None:
        theirs = pytest.importorskip("hmmlearn.hmm")
        ours = random_hmm(7, d=2)
        X, _ = ours.sample([100, 50], rng=0)
        peer = theirs.GaussianHMM(
            K, "full", init_params="", n_iter=1, min_covar=0.0, covars_prior=0.0, covars_weight=0.0
        )
        peer.startprob_, peer.transmat_ = ours.start_, ours.transitions_
        peer.means_, peer.covars_ = ours.emissions_.means, ours.emissions_.covariances
        flat = np.concatenate(X)
        assert peer.score(flat, [100, 50]) == pytest.approx(ours.log_likelihood(X).sum())
        np.testing.assert_allclose(
            np.concatenate(ours.predict_proba(X)), peer.predict_proba(flat, [100, 50]), atol=1e-9
        )
