"""HMM: sums against enumeration and the junction tree, long chains, filtering, gaps."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import markovfield as mf
from markovfield.exceptions import ImpossibleEvidenceError
from markovfield.sequence.hmm.hmm import HMM
from markovfield.sequence.hmm.model import NONE_KNOWN
from tests.sequence.hmm.enumeration import K, enumerated, marginals_of, random_hmm, sequences


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
