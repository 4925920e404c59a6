"""Weights of single tokens: the objective by enumeration, its slope by differences, and what they are equal to."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

import markovfield as mf
from markovfield.sequence.chain.crf import ChainCRF
from markovfield.sequence.chain.objective import ChainObjective
from markovfield.sequence.chain.weighted_tokens import Weighted
from tests.sequence.chain.test_chain_crf import EDGES, X, Y

SHORT = [i for i, x in enumerate(X) if 1 <= len(x) <= 4][:6]
SOME, LABELS, STEPS = ([part[i] for i in SHORT] for part in (X, Y, EDGES))
WEIGHTS = [np.random.default_rng(s).integers(0, 4, len(x)).astype(float) for s, x in enumerate(SOME)]


def enumerated(crf: Any, edges: Any) -> float:
    """The sum of -w_t log p(y_t | y_{t-1}, x), from the probabilities of all labellings."""
    total = 0.0
    for x, y, w, e in zip(SOME, LABELS, WEIGHTS, [None] * len(SOME) if edges is None else edges, strict=True):
        listed = [list(p) for p in product(crf.classes_, repeat=len(x))]
        known = {} if e is None else {"edges": [e] * len(listed)}
        shares = np.exp(crf.log_likelihood([x] * len(listed), listed, **known))
        for t in range(len(x)):
            given = [p for p in zip(listed, shares, strict=True) if t == 0 or p[0][t - 1] == y[t - 1]]
            both = sum(share for labels, share in given if labels[t] == y[t])
            total -= w[t] * np.log(both / sum(share for _, share in given))
    return float(total)


@pytest.mark.parametrize("edges", [None, STEPS])
@pytest.mark.parametrize("settings", [{}, {"l1": 0.2}, {"min_count": 2}, {"all_transitions": True}])
def test_the_objective_is_that_of_enumeration(edges: Any, settings: dict[str, Any]):
    crf = ChainCRF(l2=0.3, max_iterations=6, **settings).fit(SOME, LABELS, edges=edges, sample_weight=WEIGHTS)
    w = crf.model_.weights
    expected = enumerated(crf, edges) + 0.15 * w @ w + settings.get("l1", 0.0) * np.abs(w).sum()
    assert crf.report_.objective == pytest.approx(expected, rel=1e-9)
    assert (crf.report_.n_sequences, crf.report_.n_tokens) == (len(SOME), sum(map(len, SOME)))


@pytest.mark.parametrize("edges", [None, STEPS])
def test_its_gradient_is_that_of_differences(edges: Any):
    crf = ChainCRF(max_iterations=2).fit(SOME, LABELS, edges=edges, sample_weight=WEIGHTS)
    data, numbers = crf.vectoriser_.transform(SOME), crf._encoder.transform(LABELS)
    uneven = Weighted(np.concatenate(WEIGHTS), data, numbers)
    from markovfield.sequence.chain.observed_features import observed_features

    own = None if edges is None else crf.edge_vectoriser_.transform(edges)  # type: ignore[union-attr]
    features, counts = observed_features(
        data, numbers, 3, edges=own, token_weights=uneven.states, step_weights=uneven.steps
    )
    steps = None if own is None else uneven.extended(own)
    encoded = features.encode(uneven.extended(data), steps, uneven.masks(data, 3))
    objective = ChainObjective(features, encoded, counts, weights=uneven.weights)
    w = np.random.default_rng(0).normal(size=features.n_features)
    _, gradient = objective(w)
    for i in range(len(w)):
        step = np.zeros(len(w))
        step[i] = 1e-5
        slope = (objective(w + step)[0] - objective(w - step)[0]) / 2e-5
        assert gradient[i] == pytest.approx(slope, abs=1e-6)


def test_what_weights_of_tokens_are_equal_to():
    def fitted(X: Any, Y: Any, **given: Any) -> Any:
        settings = {"class_weight": given.pop("class_weight", None), "l2": 0.5, "tolerance": 1e-12}
        return ChainCRF(**settings).fit(X, Y, **given).model_.weights

    # The same for all tokens of a sequence: the weight of the sequence, and as many copies of it.
    times = [1 + s % 3 for s in range(len(X))]
    by_sequence = fitted(X, Y, sample_weight=times)
    by_token = fitted(X, Y, sample_weight=[[n] * len(x) for n, x in zip(times, X, strict=True)])
    np.testing.assert_array_equal(by_token, by_sequence)
    # A class weight is the weight of every token with that label; both together multiply.
    by_label = {"A": 3.0, "B": 1.0, "C": 0.5}
    named = fitted(X, Y, class_weight=by_label)
    listed = fitted(X, Y, sample_weight=[[by_label[k] for k in own] for own in Y])
    np.testing.assert_array_equal(named, listed)
    both = fitted(X, Y, class_weight=by_label, sample_weight=times)
    listed = fitted(X, Y, sample_weight=[[n * by_label[k] for k in own] for n, own in zip(times, Y, strict=True)])
    np.testing.assert_allclose(both, listed, atol=1e-9)
    # Tokens after which nothing weighs anything might as well not be there, seen attributes aside.
    cut = [min(2, len(x)) for x in X]
    zeros = fitted(X, Y, sample_weight=[[1.0] * n + [0.0] * (len(x) - n) for n, x in zip(cut, X, strict=True)])
    assert np.isfinite(zeros).all() and not np.allclose(zeros, fitted(X, Y))
    assert not np.allclose(named, fitted(X, Y, sample_weight=[np.mean([by_label[k] for k in own]) for own in Y]))


def test_weights_of_a_rare_label_find_more_of_it():
    rng = np.random.default_rng(0)
    X, y = [], []
    for _ in range(200):
        named = rng.random(10) < 0.04
        upper = rng.random(10) < np.where(named, 0.6, 0.1)
        X.append([["bias", "upper"] if u else ["bias"] for u in upper])
        y.append(["B-N" if name else "O" for name in named])
    found = [mf.sequence.token_report(y, ChainCRF(class_weight=weight).fit(X, y).predict(X)).by_label["B-N"].recall
             for weight in (None, {"B-N": 10.0}, "balanced")]  # fmt: skip
    assert found[0] == 0.0 and min(found[1:]) > 0.5


def test_where_tokens_cannot_be_told_apart():
    by_label = {"A": 3.0, "B": 1.0, "C": 0.5}
    means = [np.mean([by_label[k] for k in own]) for own in Y]
    partly = [[None, *own[1:]] for own in Y]
    for settings, labels in (
        ({"solver": "sgd", "rng": 0}, Y),
        ({"order": 2}, Y),
        ({"hidden_states": 2, "rng": 0}, Y),
        ({}, partly),
    ):
        usual = {**settings, "max_iterations": 4}
        if labels is Y:
            a = ChainCRF(class_weight=by_label, **usual).fit(X, labels)
            b = ChainCRF(**usual).fit(X, labels, sample_weight=means)
            np.testing.assert_allclose(a.model_.weights, b.model_.weights, atol=1e-9)
        with pytest.raises(mf.ModelError, match="sample_weight of single tokens needs a batch solver"):
            ChainCRF(**usual).fit(X, labels, sample_weight=[list(range(len(x))) for x in X])
    for wrong in ([1.0], [[1.0]] * len(X), [[-1.0] * len(x) for x in X], "no", [["a"] * len(x) for x in X], 3.0):
        with pytest.raises(mf.ModelError, match="sample_weight needs a finite number from 0 on for each of"):
            ChainCRF().fit(X, Y, sample_weight=wrong)
