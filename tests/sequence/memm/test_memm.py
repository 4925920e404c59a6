"""MEMM: against enumeration, the junction tree, finite differences and logistic regression; decoding, saving."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV

import markovfield as mf
from markovfield.exceptions import ModelError
from markovfield.files import read_archive
from markovfield.sequence.chain.crf import ChainCRF
from markovfield.sequence.chain.training import penalised
from markovfield.sequence.memm.local_chain import LocalChain, LocalObjective
from markovfield.sequence.memm.local_chain_kernel import BEST, GREEDY
from markovfield.sequence.memm.memm import MEMM
from tests.sequence.chain.test_chain_crf import toy
from tests.sequence.chains import Chains, random_chains

X, Y = toy()


def local_probabilities(chains: Chains, s: int) -> tuple[np.ndarray, np.ndarray]:
    """Probabilities of the first label, and of each label given the one before, straight from the weights."""
    scores, moves = chains.scores(s), chains.moves(s)

    def shares(rows: np.ndarray) -> np.ndarray:
        e = np.exp(rows - rows.max(axis=-1, keepdims=True))
        return e / e.sum(axis=-1, keepdims=True)

    steps = moves + scores[1:, None, :] if len(scores) > 1 else moves
    return shares(scores[:1])[0], shares(steps) if len(steps) else steps


def enumerated(chains: Chains, s: int) -> tuple[list, np.ndarray]:
    """Every label sequence and its probability."""
    first, steps = local_probabilities(chains, s)
    paths = list(itertools.product(range(chains.n_labels), repeat=len(steps) + 1))
    values = [first[p[0]] * np.prod([steps[i, p[i], p[i + 1]] for i in range(len(steps))]) for p in paths]
    return paths, np.array(values)


SHAPES = st.tuples(st.integers(0, 10**6), st.sampled_from([2, 3, 9]), st.booleans(), st.booleans())


class TestAgainstEnumeration:
    @settings(max_examples=25, deadline=None)
    @given(SHAPES)
    def test_probabilities_and_paths(self, shape: tuple) -> None:
        seed, k, valued, edges = shape
        lengths = [1, 3, 2] if k == 9 else [1, 5, 4]
        chains = random_chains(np.random.default_rng(seed), lengths, k, valued=valued, edges=edges)
        model, data = LocalChain(chains.features, chains.weights), chains.encoded()
        tables = model.posteriors(data)
        best, values = model.decode(data, BEST)
        greedy, sure = model.decode(data, GREEDY)
        sums = model.log_likelihoods(data, chains.labels)
        for s in range(3):
            paths, shares = enumerated(chains, s)
            span = chains.span(s)
            assert shares.sum() == pytest.approx(1.0)
            by_token = np.zeros((len(paths[0]), k))
            for path, p in zip(paths, shares, strict=True):
                by_token[np.arange(len(path)), list(path)] += p
            np.testing.assert_allclose(tables[span], by_token, atol=1e-11)
            assert values[s] == pytest.approx(np.log(shares.max()), abs=1e-9)
            assert shares[paths.index(tuple(best[span]))] == pytest.approx(shares.max())
            assert sums[s] == pytest.approx(np.log(shares[paths.index(tuple(chains.labels[span]))]), abs=1e-9)
            first, steps = local_probabilities(chains, s)
            path = [int(first.argmax())]
            for step in steps:
                path.append(int(step[path[-1]].argmax()))
            assert greedy[span].tolist() == path
            assert sure[s] == pytest.approx(np.log(shares[paths.index(tuple(path))]), abs=1e-9)

    @settings(max_examples=15, deadline=None)
    @given(SHAPES, st.floats(0.0, 2.0))
    def test_gradient_by_finite_differences(self, shape: tuple, l2: float) -> None:
        seed, k, valued, edges = shape
        chains = random_chains(np.random.default_rng(seed), [4, 1, 0, 3], k, valued=valued, edges=edges)
        objective = penalised(LocalObjective(chains.features, chains.encoded(), chains.labels, chains.counts), l2)
        w = chains.weights
        value, gradient = objective(w)
        gradient = gradient.copy()
        sums = LocalChain(chains.features, w).log_likelihoods(chains.encoded(), chains.labels)
        assert value == pytest.approx(0.5 * l2 * w @ w - sums.sum())
        rng = np.random.default_rng(seed)
        for _ in range(5):
            direction = rng.normal(size=len(w))
            h = 1e-5
            slope = (objective(w + h * direction)[0] - objective(w - h * direction)[0]) / (2 * h)
            assert slope == pytest.approx(gradient @ direction, rel=1e-5, abs=1e-5)

    def test_scores_beyond_the_range_of_exponentials(self) -> None:
        chains = random_chains(np.random.default_rng(3), [5, 4], 3, valued=True, scale=400.0)
        model, data = LocalChain(chains.features, chains.weights), chains.encoded()
        tables = model.posteriors(data)
        assert np.isfinite(model.log_likelihoods(data, model.decode(data, BEST)[0])).all()
        for s in range(2):
            paths, shares = enumerated(chains, s)
            by_token = np.zeros((len(paths[0]), 3))
            for path, p in zip(paths, shares, strict=True):
                by_token[np.arange(len(path)), list(path)] += p
            np.testing.assert_allclose(tables[chains.span(s)], by_token, atol=1e-9)


class TestFitting:
    @pytest.mark.parametrize("more", [False, True])
    def test_junction_tree_says_the_same(self, more: bool) -> None:
        memm = MEMM(l2=0.5, attribute_transitions=more).fit(X, Y)
        for x in [x for x in X if len(x) > 3][:3]:
            graph = memm.to_factor_graph(x)
            answer = mf.marginals(graph, method="junction_tree")
            assert answer.log_partition == pytest.approx(0.0, abs=1e-12)
            own = memm.predict_proba([x])[0]
            np.testing.assert_allclose(own, [answer[t] for t in range(len(x))], atol=1e-12)
            best = mf.decode(graph).assignment
            assert memm.predict([x])[0] == [best[t] for t in range(len(x))]

    def test_without_transitions_it_is_logistic_regression(self) -> None:
        rng = np.random.default_rng(0)
        sequences = [rng.normal(size=(n, 4)) for n in (5, 8, 1, 20, 6)]
        labels = [
            [int(k) for k in (x[:, 0] + 0.5 * rng.normal(size=len(x)) > 0) + 1 * (x[:, 1] > 0.5)] for x in sequences
        ]
        memm = MEMM(l2=2.0, transitions=False, all_states=True, tolerance=1e-12, period=3).fit(sequences, labels)
        # scikit-learn minimises C * loss + |w|^2 / 2.
        peer = LogisticRegression(C=0.5, fit_intercept=False, tol=1e-10, max_iter=1000)
        peer.fit(np.concatenate(sequences), np.concatenate(labels))
        np.testing.assert_allclose(
            np.concatenate(memm.predict_proba(sequences)), peer.predict_proba(np.concatenate(sequences)), atol=1e-5
        )
        assert np.concatenate(memm.predict(sequences)).tolist() == peer.predict(np.concatenate(sequences)).tolist()

    def test_transitions_help_and_fit_better(self) -> None:
        plain, chained = (MEMM(l2=0.1, transitions=t).fit(X, Y) for t in (False, True))
        full = MEMM(l2=0.1, attribute_transitions=True).fit(X, Y)
        sums = [m.log_likelihood(X, Y).sum() for m in (plain, chained, full)]
        assert sums[0] < sums[1] < sums[2]
        assert chained.report_.objective == pytest.approx(
            -sums[1] + 0.05 * float(chained.model_.weights @ chained.model_.weights)
        )
        assert (np.diff(chained.report_.history) <= 0).all()

    def test_l1_leaves_few_weights(self) -> None:
        dense, sparse = MEMM(l2=0.1).fit(X, Y), MEMM(l2=0.0, l1=3.0).fit(X, Y)
        assert sparse.report_.n_active < dense.report_.n_active == dense.report_.n_features

    def test_threads_do_not_change_answers(self) -> None:
        many, labels = toy(3000)
        one, two = (MEMM(n_jobs=n, max_iterations=5).fit(many, labels) for n in (1, 4))
        np.testing.assert_array_equal(one.model_.weights, two.model_.weights)
        assert one.predict(many) == two.predict(many)

    def test_scikit_learns_manners(self) -> None:
        search = GridSearchCV(MEMM(), {"l2": [0.1, 10.0]}, cv=3).fit(X, Y)
        assert search.best_score_ > 0.6
        assert clone(MEMM(l2=3.0, decoding="greedy")).decoding == "greedy"
        memm = MEMM(decoding="greedy").fit(X, Y)
        assert memm.predict(X) == memm.predict(X, decoding="greedy")
        right = [a == b for p, q in zip(memm.predict(X), Y, strict=True) for a, b in zip(p, q, strict=True)]
        assert memm.score(X, Y) == pytest.approx(np.mean(right))
        table = memm.predict_proba(X[:1])[0]
        assert memm.predict_marginals(X[:1])[0][0] == dict(zip("ABC", table[0].tolist(), strict=True))
        assert memm.predict_mpm(X[:1])[0] == [memm.classes_[k] for k in table.argmax(axis=1)]

    def test_label_bias(self) -> None:
        # Two paths of states that share their last letter; the first letter does not tell them apart, and the second
        # comes too late for a model that is normalised locally.
        corpus = ["rib"] * 15 + ["rob"] * 5
        states = {"rib": list("123"), "rob": list("453")}
        words, labels = [list(word) for word in corpus], [states[word] for word in corpus]
        memm, crf = MEMM(l2=0.1).fit(words, labels), ChainCRF(l2=0.1).fit(words, labels)
        assert crf.predict([list("rob")]) == [states["rob"]]
        assert memm.predict([list("rob")]) == [states["rib"]]
        first = [memm.predict_proba([list(word)])[0][0] for word in ("rib", "rob", "rxx")]
        np.testing.assert_array_equal(first[0], first[1])
        np.testing.assert_array_equal(first[0], first[2])


class TestSavingAndErrors:
    @pytest.mark.parametrize("more", [False, True])
    def test_comes_back_the_same(self, tmp_path: Any, more: bool) -> None:
        memm = MEMM(l2=0.3, attribute_transitions=more).fit(X, Y)
        memm.save(tmp_path / "a.mf")
        back = read_archive(tmp_path / "a.mf", 1, MEMM.from_archive)
        assert back.predict(X) == memm.predict(X)
        assert back.report_ == memm.report_
        assert back.get_params() == memm.get_params()
        np.testing.assert_array_equal(back.log_likelihood(X, Y), memm.log_likelihood(X, Y))

    @pytest.mark.parametrize(
        ("settings", "message"),
        [
            ({"decoding": "beam"}, "decoding must be one of greedy, viterbi, got 'beam'"),
            ({"l2": -1}, "l2 must be a number from 0 on, got -1"),
            ({"l1": "much"}, "l1 must be a number from 0 on"),
            ({"max_iterations": 0}, "max_iterations must be an integer from 1 on"),
            ({"min_count": -1}, "min_count must be an integer from 0 on"),
        ],
    )
    def test_settings(self, settings: dict, message: str) -> None:
        with pytest.raises(ModelError, match=message):
            MEMM(**settings).fit(X, Y)

    def test_data(self) -> None:
        memm = MEMM().fit(X, Y)
        with pytest.raises(ModelError, match="sequence 0"):
            MEMM().fit(X, [Y[0] + ["A"], *Y[1:]])
        with pytest.raises(ModelError, match="label None, none of the 3 that are known"):
            MEMM().fit(X, [[None] * len(Y[0]), *Y[1:]])
        with pytest.raises(ModelError, match="there are no labels to learn from"):
            MEMM().fit([], [])
        with pytest.raises(ModelError, match="decoding must be one of"):
            memm.predict(X, decoding="beam")
        with pytest.raises(ModelError, match="has the label 'Z'"):
            memm.log_likelihood([X[0]], [["Z"] * len(X[0])])
        with pytest.raises(ModelError, match="an empty sequence has no factor graph"):
            memm.to_factor_graph([])
        with pytest.raises(ModelError, match="different lengths"):
            memm.score(X[:1], [[]])
        assert memm.predict([[], X[0]])[0] == []

    def test_stops_at_the_time_limit(self) -> None:
        with pytest.raises(TimeoutError, match="time limit"):
            MEMM().fit(X, Y, time_limit=1e-9)
