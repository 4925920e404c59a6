"""HMM: sums against enumeration and the junction tree, learning, filtering, gaps, saving, errors."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

import markovfield as mf
from markovfield.exceptions import FormatError, ImpossibleEvidenceError, ModelError
from markovfield.files import read_archive
from markovfield.inference.core.running import Running
from markovfield.sequence.hmm.hmm import HMM
from markovfield.sequence.hmm.model import NONE_KNOWN
from markovfield.sequence.hmm.training import learning

K, V = 3, 4


def random_hmm(seed: int, *, k: int = K, v: int = V, zeros: bool = False, d: int | None = None) -> HMM:
    """A model of random probabilities; some transitions and emissions may be zero."""
    rng = np.random.default_rng(seed)
    moves, shown = rng.dirichlet(np.ones(k), k), rng.dirichlet(np.ones(v), k)
    if zeros:
        for table in (moves, shown):
            table[rng.random(table.shape) < 0.3] = 0.0
            table[:, 0] += 0.1
            table /= table.sum(axis=1, keepdims=True)
    if d is None:
        return HMM.from_parameters(rng.dirichlet(np.ones(k)), moves, shown)
    root = rng.normal(size=(k, d, d))
    covariances = root @ root.transpose(0, 2, 1) + 0.3 * np.eye(d)
    return HMM.from_parameters(rng.dirichlet(np.ones(k)), moves, (3 * rng.normal(size=(k, d)), covariances))


def densities(hmm: HMM, x: Any) -> np.ndarray:
    """Probabilities of each token given each state, straight from the parameters."""
    e = hmm.emissions_
    if e.kind == "categorical":
        columns = {symbol: e.probabilities[:, i] for i, symbol in enumerate(e.symbols)}
        return np.array([np.ones(e.n_states) if t is None else columns[t] for t in x])
    rows = []
    for value in np.asarray(x, float):
        if np.isnan(value).any():
            rows.append(np.ones(e.n_states))
            continue
        own = []
        for mean, covariance in zip(e.means, e.covariances, strict=True):
            left = value - mean
            power = left @ np.linalg.solve(covariance, left)
            own.append(np.exp(-0.5 * power) / np.sqrt(np.linalg.det(2 * np.pi * covariance)))
        rows.append(np.array(own))
    return np.array(rows)


def enumerated(hmm: HMM, x: Any, fixed: list | None = None) -> tuple[list, np.ndarray]:
    """Every sequence of states, and its joint probability with the observations."""
    shown = densities(hmm, x)
    paths = list(itertools.product(range(len(hmm.start_)), repeat=len(shown)))
    values = []
    for path in paths:
        p = hmm.start_[path[0]] * shown[0, path[0]]
        for t in range(1, len(path)):
            p *= hmm.transitions_[path[t - 1], path[t]] * shown[t, path[t]]
        if fixed is not None and any(f is not None and f != s for f, s in zip(fixed, path, strict=True)):
            p = 0.0
        values.append(p)
    return paths, np.array(values)


def marginals_of(paths: list, values: np.ndarray, k: int) -> np.ndarray:
    table = np.zeros((len(paths[0]), k))
    for path, p in zip(paths, values, strict=True):
        table[np.arange(len(path)), list(path)] += p
    return table / values.sum()


def sequences(hmm: HMM, seed: int, gaps: bool) -> list:
    """Sequences that the model can show, of lengths 1 to 5, some with missing observations."""
    rng = np.random.default_rng(seed)
    X, _ = hmm.sample([1, 4, 5, 3], rng=rng)
    if not gaps:
        return X
    if hmm.emissions_.kind == "categorical":
        return [[None if rng.random() < 0.3 else t for t in x] for x in X]
    for x in X:
        x[rng.random(len(x)) < 0.3] = np.nan
    return X


class TestAgainstEnumeration:
    @settings(max_examples=30, deadline=None)
    @given(
        st.integers(0, 10**6), st.sampled_from([None, 1, 2]), st.booleans(), st.booleans(), st.sampled_from([2, 3, 9])
    )
    def test_sums_posteriors_and_paths(self, seed: int, d: int | None, gaps: bool, zeros: bool, k: int) -> None:
        hmm = random_hmm(seed, d=d, zeros=zeros, k=k)
        X = sequences(hmm, seed, gaps)
        X = [x[:3] if k == 9 else x for x in X]
        tables, sums, found = hmm.predict_proba(X), hmm.log_likelihood(X), hmm.predict(X)
        for x, table, total, path in zip(X, tables, sums, found, strict=True):
            paths, values = enumerated(hmm, x)
            assert total == pytest.approx(np.log(values.sum()), abs=1e-9)
            np.testing.assert_allclose(table, marginals_of(paths, values, k), atol=1e-10)
            assert values[paths.index(tuple(path))] == pytest.approx(values.max(), rel=1e-9)

    @settings(max_examples=20, deadline=None)
    @given(st.integers(0, 10**6), st.sampled_from([None, 2]), st.booleans())
    def test_expected_counts(self, seed: int, d: int | None, zeros: bool) -> None:
        hmm = random_hmm(seed, d=d, zeros=zeros)
        X = sequences(hmm, seed, gaps=True)
        expected = hmm.model_.expected(hmm.emissions_.encode(X))
        moves, start, shown = np.zeros((K, K)), np.zeros(K), np.zeros(K)
        for x in X:
            paths, values = enumerated(hmm, x)
            for path, p in zip(paths, values / values.sum(), strict=True):
                start[path[0]] += p
                for i, j in itertools.pairwise(path):
                    moves[i, j] += p
                for t, state in enumerate(path):
                    gone = x[t] is None if d is None else np.isnan(x[t]).any()
                    shown[state] += 0.0 if gone else p
        np.testing.assert_allclose(expected.moves, moves, atol=1e-10)
        np.testing.assert_allclose(expected.start, start, atol=1e-10)
        width = hmm.model_.width
        table = expected.emissions.reshape(-1, width)[:, :K]
        np.testing.assert_allclose(table[:-1].sum(axis=0) if d is None else table[0], shown, atol=1e-10)

    def test_known_labels_clamp(self) -> None:
        hmm = random_hmm(5)
        X, fixed = [[0, 1, 2, 1], [3, 0]], [[None, 2, None, 0], [1, None]]
        joint = hmm.log_likelihood(X, fixed)
        for x, own, table, total, path in zip(
            X, fixed, hmm.predict_proba(X, fixed=fixed), joint, hmm.predict(X, fixed=fixed), strict=True
        ):
            paths, values = enumerated(hmm, x, own)
            assert total == pytest.approx(np.log(values.sum()))
            np.testing.assert_allclose(table, marginals_of(paths, values, K), atol=1e-12)
            assert tuple(path) == paths[int(values.argmax())]

    def test_junction_tree_says_the_same(self) -> None:
        for d in (None, 2):
            hmm = random_hmm(8, d=d)
            x = hmm.sample(70, rng=1)[0][0]
            answer = mf.marginals(hmm.to_factor_graph(x), method="junction_tree")
            assert answer.log_partition == pytest.approx(hmm.log_likelihood([x])[0])
            np.testing.assert_allclose(hmm.predict_proba([x])[0], np.array([answer[t] for t in range(70)]), atol=1e-10)
            best = mf.decode(hmm.to_factor_graph(x)).assignment
            assert hmm.predict([x])[0] == [best[t] for t in range(70)]

    def test_posterior_draws_follow_the_posterior(self) -> None:
        hmm = random_hmm(2)
        x = [0, 1, 3]
        paths, values = enumerated(hmm, x)
        values = values / values.sum()
        drawn = hmm.sample_posterior([x], 4000, rng=0)[0]
        counts = np.array([drawn.count(list(path)) for path in paths])
        # Pearson's statistic: the probability of a false alarm is about 1e-4 for a fixed seed.
        used = values * 4000 >= 1
        statistic = float(((counts - 4000 * values) ** 2 / (4000 * values))[used].sum())
        n = int(used.sum())
        assert statistic < n + 4.5 * np.sqrt(2 * n)


class TestRange:
    def test_a_long_sequence_neither_underflows_nor_drifts(self) -> None:
        hmm = random_hmm(3)
        x = hmm.sample(5000, rng=0)[0][0]
        observed = hmm.emissions_.encode([x])
        total, own, _ = hmm.model_._in_logs(observed, NONE_KNOWN, 0)
        assert hmm.log_likelihood([x])[0] == pytest.approx(total, rel=1e-12)
        np.testing.assert_allclose(hmm.predict_proba([x])[0], own[:, :K], atol=1e-9)

    def test_evidence_that_scaled_messages_lose_is_found_in_log_space(self) -> None:
        # Two states that never change; 50 symbols speak for the first by 1e10 each, then 100 for the second. The
        # forward message of the second is zero in floating point long before it is needed.
        tiny = 1e-10
        hmm = HMM.from_parameters([0.5, 0.5], np.eye(2), [[1 - tiny, tiny], [tiny, 1 - tiny]])
        x = [0] * 50 + [1] * 100
        np.testing.assert_allclose(hmm.predict_proba([x])[0][:, 1], 1.0, atol=1e-12)
        assert hmm.log_likelihood([x])[0] == pytest.approx(np.log(0.5) + 50 * np.log(tiny) + 100 * np.log(1 - tiny))
        assert hmm.predict([x]) == [[1] * 150]
        expected = hmm.model_.expected(hmm.emissions_.encode([x, x[::-1]]))
        np.testing.assert_allclose(expected.moves, [[0, 0], [0, 298]], atol=1e-9)
        assert np.isfinite(expected.log_likelihoods).all()

    def test_observations_far_from_every_mean(self) -> None:
        hmm = HMM.from_parameters([0.5, 0.5], [[0.9, 0.1], [0.1, 0.9]], ([[0.0], [1.0]], [[[1e-4]], [[1e-4]]]))
        x = np.array([[500.0], [-300.0], [0.4]])
        graph = mf.marginals(hmm.to_factor_graph(x), method="junction_tree")
        assert hmm.log_likelihood([x])[0] == pytest.approx(graph.log_partition, rel=1e-12)
        np.testing.assert_allclose(hmm.predict_proba([x])[0], [graph[t] for t in range(3)], atol=1e-9)

    def test_impossible_sequences(self) -> None:
        hmm = HMM.from_parameters([1.0, 0.0], [[0.5, 0.5], [0.0, 1.0]], [[1.0, 0.0], [0.0, 1.0]])
        assert hmm.log_likelihood([[1, 0], [0, 1]])[0] == -np.inf
        for ask in (hmm.predict, hmm.predict_proba):
            with pytest.raises(ImpossibleEvidenceError, match="sequence 1 has probability zero"):
                ask([[0, 1], [1, 0]])

    def test_threads_do_not_change_answers(self) -> None:
        X, _ = random_hmm(1, k=5, d=2).sample([700] * 30, rng=0)
        one, many = (HMM(5, "gaussian", n_jobs=n, rng=0, restarts=1, max_iterations=5).fit(X) for n in (1, 4))
        np.testing.assert_array_equal(one.transitions_, many.transitions_)
        np.testing.assert_array_equal(one.emissions_.covariances, many.emissions_.covariances)
        np.testing.assert_array_equal(one.log_likelihood(X), many.log_likelihood(X))


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
    def test_integers_in_arrays(self, symbols: list) -> None:
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


class TestFiltering:
    @pytest.mark.parametrize("d", [None, 2])
    def test_equals_forward_messages(self, d: int | None) -> None:
        hmm = random_hmm(9, d=d)
        x = sequences(hmm, 3, gaps=True)[2]
        watch = hmm.filter()
        for t in range(len(x)):
            found = watch.update(x[t] if d is None or not np.isnan(x[t]).any() else None)
            paths, values = enumerated(hmm, x[: t + 1])
            np.testing.assert_allclose(found, marginals_of(paths, values, K)[-1], atol=1e-12)
            assert watch.log_likelihood == pytest.approx(np.log(values.sum()))
            ahead = found @ hmm.transitions_ @ hmm.transitions_
            np.testing.assert_allclose(watch.predict(2), ahead, atol=1e-12)
        assert watch.n_seen == 5

    def test_fixed_lag_is_smoothing_within_the_lag(self) -> None:
        hmm = random_hmm(10)
        x = hmm.sample(12, rng=0)[0][0]
        whole, short = hmm.filter(lag=20), hmm.filter(lag=3)
        for t, symbol in enumerate(x):
            whole.update(symbol)
            short.update(symbol)
            smoothed = hmm.predict_proba([x[: t + 1]])[0]
            np.testing.assert_allclose(whole.smoothed(), smoothed, atol=1e-12)
            np.testing.assert_allclose(short.smoothed(), smoothed[-4:], atol=1e-12)

    def test_before_anything_is_seen(self) -> None:
        hmm = random_hmm(10)
        watch = hmm.filter()
        np.testing.assert_allclose(watch.predict(1), hmm.start_)
        np.testing.assert_allclose(watch.predict(3), hmm.start_ @ hmm.transitions_ @ hmm.transitions_)
        watch.update(0)
        np.testing.assert_allclose(watch.reset().posterior, hmm.start_)
        assert watch.smoothed().shape == (0, K)

    def test_impossible_observations_change_nothing(self) -> None:
        watch = HMM.from_parameters([1.0, 0.0], [[1.0, 0.0], [0.0, 1.0]], [[1.0, 0.0], [0.0, 1.0]]).filter()
        watch.update(0)
        with pytest.raises(ImpossibleEvidenceError, match="observation 1 has probability zero after the 1 before it"):
            watch.update(1)
        assert watch.n_seen == 1
        np.testing.assert_array_equal(watch.posterior, [1.0, 0.0])


class TestSaving:
    @pytest.mark.parametrize("emissions", ["categorical", "gaussian"])
    def test_comes_back_the_same(self, tmp_path: Any, emissions: str) -> None:
        X, y = random_hmm(3, d=None if emissions == "categorical" else 2).sample([9, 7], rng=0)
        hmm = HMM(emissions=emissions).fit(X, [[f"s{k}" for k in labels] for labels in y])
        hmm.save(tmp_path / "a.mf")
        back = read_archive(tmp_path / "a.mf", 1, HMM.from_archive)
        assert back.classes_ == hmm.classes_
        assert back.report_ == hmm.report_
        assert back.predict(X) == hmm.predict(X)
        np.testing.assert_array_equal(back.log_likelihood(X), hmm.log_likelihood(X))
        assert back.get_params() == hmm.get_params()

    def test_damaged_files(self, tmp_path: Any) -> None:
        random_hmm(3).save(tmp_path / "a.mf")

        def changed(about: dict, arrays: dict) -> HMM:
            arrays["transitions"] = arrays["transitions"] * 2
            return HMM.from_archive(about, arrays)

        with pytest.raises(FormatError, match="transitions are not probabilities"):
            read_archive(tmp_path / "a.mf", 1, changed)
        whole = (tmp_path / "a.mf").read_bytes()
        (tmp_path / "a.mf").write_bytes(whole[: len(whole) // 2])
        with pytest.raises(FormatError, match="cannot be loaded"):
            read_archive(tmp_path / "a.mf", 1, HMM.from_archive)

    def test_labels_that_cannot_be_saved(self, tmp_path: Any) -> None:
        hmm = HMM().fit([["a", "b"]], [[(1, 2), (3, 4)]])
        with pytest.raises(ModelError, match=r"label \(1, 2\) cannot be saved"):
            hmm.save(tmp_path / "a.mf")


class TestBadInput:
    @pytest.mark.parametrize(
        ("settings", "message"),
        [
            ({"emissions": "poisson"}, "emissions must be one of categorical, gaussian, got 'poisson'"),
            ({"covariance": "tied"}, "covariance must be one of full, diag, spherical"),
            ({"unknown": "drop"}, "unknown must be one of smooth"),
            ({"n_states": 0}, "n_states must be an integer from 1 on, got 0"),
            ({"restarts": 1.5}, "restarts must be an integer from 1 on"),
            ({"smoothing": -1.0}, "smoothing must be a number from 0 on"),
            ({"regularisation": None}, "regularisation must be a number from 0 on"),
        ],
    )
    def test_settings(self, settings: dict, message: str) -> None:
        with pytest.raises(ModelError, match=message):
            HMM(**{"n_states": 2, **settings}).fit([[0, 1]])

    @pytest.mark.parametrize(
        ("X", "y", "message"),
        [
            ("abc", None, "X must be a list of sequences, got str"),
            ([], None, "there is no observation to learn from"),
            ([[None, float("nan")]], None, "everything in it is missing"),
            ([[["a"]]], None, "observations must be hashable symbols"),
            ([np.zeros((2, 2), int)], None, "sequence 0 is an array of 2 dimensions"),
            ([3], None, "sequence 0 must be a list of symbols, got 3"),
            ([[0, 1]], [["a", "b", "a"]], "sequence 0"),
            ([[0, 1]], [], "1 sequences need as many lists of labels, got 0"),
            ([[0, 1]], [[None, None]], "y has no label that is known"),
            ([[0, 1]], [["a", "a"]], "n_states is 2 and y has 1 labels"),
        ],
    )
    def test_symbols(self, X: Any, y: Any, message: str) -> None:
        with pytest.raises(ModelError, match=message):
            HMM(2).fit(X, y)

    @pytest.mark.parametrize(
        ("X", "message"),
        [
            ([[[0.0, 1.0], [np.nan, 2.0]]], r"token 1 of sequence 0 is \[nan, 2.0\]: observations must be finite"),
            ([[[0.0], [np.inf]]], "token 1 of sequence 0"),
            ([[[0.0]], [[0.0, 1.0]]], "sequence 1 has 2 numbers for each token, and the model has 1"),
            ([["a"]], "sequence 0 is no array of numbers"),
            ([[[np.nan]]], "everything in X is missing"),
            ([[[1.0]]], "2 states need at least as many observations, got 1"),
        ],
    )
    def test_vectors(self, X: Any, message: str) -> None:
        with pytest.raises(ModelError, match=message):
            HMM(2, "gaussian").fit(X)

    def test_without_states(self) -> None:
        with pytest.raises(ModelError, match="give the number of states"):
            HMM().fit([[0, 1]])

    def test_singular_covariances(self) -> None:
        with pytest.raises(ModelError, match="regularisation above 0"):
            HMM(emissions="gaussian", regularisation=0.0).fit([[[1.0], [1.0], [2.0]]], [["a", "a", "b"]])
        hmm = HMM(emissions="gaussian").fit([[[1.0], [1.0], [2.0]]], [["a", "a", "b"]])
        assert hmm.predict([[[1.1], [1.9]]]) == [["a", "b"]]

    @pytest.mark.parametrize(
        ("parameters", "message"),
        [
            (([0.5, 0.6], np.eye(2), np.eye(2)), "start must be probabilities"),
            (([0.5, 0.5], np.eye(3), np.eye(2)), r"transitions of shape \(2, 2\), got \(3, 3\)"),
            (([0.5, 0.5], np.eye(2), np.eye(3)), r"emissions of shape \(2, 3\), got \(3, 3\)"),
            (([0.5, 0.5], np.eye(2), (np.zeros((2, 2)), np.zeros((2, 2)))), r"means of shape \(2, d\)"),
        ],
    )
    def test_given_parameters(self, parameters: tuple, message: str) -> None:
        with pytest.raises(ModelError, match=message):
            HMM.from_parameters(*parameters)

    def test_other_questions(self) -> None:
        hmm = random_hmm(0)
        with pytest.raises(ModelError, match="lag must be an integer from 0 on, got -1"):
            hmm.filter(lag=-1)
        with pytest.raises(ModelError, match="steps must be an integer from 0 on"):
            hmm.filter().predict(0.5)
        with pytest.raises(ModelError, match="lengths must be integers from 0 on"):
            hmm.sample(-2)
        with pytest.raises(ModelError, match="an empty sequence has no factor graph"):
            hmm.to_factor_graph([])
        with pytest.raises(ModelError, match="different lengths"):
            hmm.score([[0, 1]], [[0]])
        with pytest.raises(ModelError, match="as many different labels in sorted order"):
            HMM.from_parameters([0.5, 0.5], np.eye(2), np.eye(2), labels=["b", "a"])
        assert hmm.predict([[], [0]])[0] == []
        assert hmm.predict_proba([[]])[0].shape == (0, K)
