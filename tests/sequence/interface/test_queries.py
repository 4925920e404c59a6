"""Every sequence model answers the same questions in the same shapes: against enumeration of a factor graph."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

import markovfield as mf
from markovfield.sequence import HMM, MEMM, ChainCRF
from tests.sequence.chain.test_chain_crf import X, Y

WORDS = [[str(token["shown"]) for token in x] for x in X]
MODELS: dict[str, tuple[Any, list[Any]]] = {
    "first": (ChainCRF(max_iterations=8), X),
    "second": (ChainCRF(max_iterations=8, order=2), X),
    "memm": (MEMM(max_iterations=8), X),
    "memm with steps": (MEMM(max_iterations=8, attribute_transitions=True), X),
    "hmm": (HMM(smoothing=0.5), WORDS),
    "gaussian": (HMM(emissions="gaussian"), [np.array([[float(w)] for w in x]) + 0.1 for x in WORDS]),
}


@pytest.fixture(params=MODELS, scope="module")
def fitted(request: pytest.FixtureRequest) -> tuple[Any, list[Any]]:
    model, data = MODELS[request.param]
    chosen = [i for i, x in enumerate(X) if 2 <= len(x) <= 4][:4]
    return model.fit(data, Y), [data[i] for i in chosen]


def enumerated(model: Any, x: Any, masks: list[set[str]]) -> tuple[list[tuple[str, ...]], np.ndarray]:
    """All labellings that masks leave, and their probabilities given them, from the sequence as a factor graph."""
    graph = model.to_factor_graph(x)
    listed = [y for y in product(model.classes_, repeat=len(x)) if all(k in m for k, m in zip(y, masks, strict=True))]
    scores = np.array([float(graph.score(dict(enumerate(y)))) for y in listed])
    shares = np.exp(scores - scores.max())
    return listed, shares / shares.sum()


def masks_of(n: int, known: dict[str, Any]) -> list[set[str]]:
    every = [{"A", "B", "C"} for _ in range(n)]
    for t, label in enumerate(known.get("fixed", [[None] * n])[0]):
        if label is not None:
            every[t] &= {label}
    for t, labels in enumerate(known.get("allowed", [[None] * n])[0]):
        if labels is not None:
            every[t] &= set(labels)
    return every


def knowledge(n: int) -> list[dict[str, Any]]:
    return [
        {},
        {"fixed": [["B", *[None] * (n - 1)]]},
        {"allowed": [[None, {"A", "C"}, *[None] * (n - 2)]]},
        {"fixed": [["C", *[None] * (n - 1)]], "allowed": [[None, ["B", "A"], *[("A", "B")] * (n - 2)]]},
    ]


def test_answers_are_those_of_enumeration(fitted: tuple[Any, list[Any]]):
    model, sequences = fitted
    for x in sequences:
        n = len(x)
        for known in knowledge(n):
            listed, shares = enumerated(model, x, masks_of(n, known))
            order = np.argsort(-shares)
            at = np.array([[model.classes_.index(k) for k in y] for y in listed])
            tables = np.array([np.bincount(at[:, t], shares, 3) for t in range(n)])
            np.testing.assert_allclose(model.predict_proba([x], **known)[0], tables, atol=1e-9)
            assert model.predict([x], **known)[0] == list(listed[order[0]])
            marginals = model.predict_marginals([x], **known)[0]
            np.testing.assert_allclose([[row[k] for k in model.classes_] for row in marginals], tables, atol=1e-9)
            best = model.predict_n_best([x], 4, **known)[0]
            assert [labels for labels, _ in best] == [list(listed[i]) for i in order[:4]]
            np.testing.assert_allclose([p for _, p in best], shares[order[:4]], rtol=1e-7)
            entropy = -float((shares * np.log(shares)).sum())
            assert model.entropy([x], **known)[0] == pytest.approx(entropy, abs=1e-9)
            mpm = [model.classes_[k] for k in tables.argmax(axis=1)]
            assert model.predict_mpm([x], **known)[0] == mpm
            expected = n - tables.max(axis=1).sum()
            assert model.expected_loss([x], **known)[0] == pytest.approx(expected, abs=1e-9)
            drawn = model.sample_posterior([x], 2000, 0, **known)[0]
            seen = np.array([[np.mean([y[t] == k for y in drawn]) for k in model.classes_] for t in range(n)])
            np.testing.assert_allclose(seen, tables, atol=5 * 0.5 / np.sqrt(2000))


def test_shapes_of_many_sequences(fitted: tuple[Any, list[Any]]):
    model, sequences = fitted
    lengths = [len(x) for x in sequences]
    masks = [np.ones((n, 3), bool) for n in lengths]
    masks[0][:, model.classes_.index("A")] = False
    found = model.predict(sequences, allowed=masks)
    assert "A" not in found[0] and list(map(len, found)) == lengths
    assert found[1:] == model.predict(sequences)[1:]
    nothing: list[Any] = [None] * len(sequences)
    assert model.predict(sequences, allowed=nothing, fixed=nothing) == model.predict(sequences)
    assert [len(best) for best in model.predict_n_best(sequences, 3, allowed=masks)] == [3] * len(sequences)
    assert model.entropy(sequences, allowed=masks).shape == (len(sequences),)
    assert model.predict_single(sequences[0]) == model.predict(sequences)[0]
    assert model.predict_marginals_single(sequences[0]) == model.predict_marginals(sequences)[0]
    assert model.predict([]) == [] and model.predict_proba([]) == [] and model.predict_n_best([], 2) == []
    assert model.predict([[]], fixed=[[]]) == [[]] or model.emissions == "gaussian"


def test_what_is_wrong_with_masks(fitted: tuple[Any, list[Any]]):
    model, sequences = fitted
    x, n = sequences[0], len(sequences[0])
    for wrong, message in (
        ([], "1 sequences need as many lists of labels, got 0"),
        ([[None] * (n + 1)], f"sequence 0 has {n} tokens and {n + 1} entries"),
        ([["A"] * n], "token 0 of sequence 0 needs a set of labels or None, got 'A'"),
        ([[{"Q"}] + [None] * (n - 1)], "token 0 of sequence 0 names the label 'Q', which is not known"),
        ([np.ones((n, 2), bool)], "sequence 0 needs an array of shape"),
    ):
        with pytest.raises(mf.ModelError, match=message):
            model.predict([x], allowed=wrong)
    for question in (model.predict, model.predict_proba, model.predict_n_best, model.entropy):
        with pytest.raises(mf.ImpossibleEvidenceError, match="sequence 0 has"):
            question([x], allowed=[[set()] + [None] * (n - 1)])
    with pytest.raises(mf.ImpossibleEvidenceError, match="sequence 0 has"):
        model.sample_posterior([x], 3, allowed=[[{"A"}] + [None] * (n - 1)], fixed=[["B"] + [None] * (n - 1)])
    with pytest.raises(TypeError):
        model.predict([x], permitted=[[None] * n])


def test_masks_with_constraints_and_hidden_states():
    y = [[{"A": "B-X", "B": "I-X", "C": "O"}[label] for label in own] for own in Y]
    for settings in ({"constraints": "iob2"}, {"hidden_states": 2, "rng": 0}, {"constraints": "iob2", "order": 2}):
        crf = ChainCRF(max_iterations=5, **settings).fit(X, y)
        x = next(x for x in X if len(x) == 4)
        allowed = [[{"B-X", "I-X"}, None, {"O", "I-X"}, {"I-X"}]]
        found = crf.predict_n_best([x], 50, allowed=allowed)[0]
        for labels, _ in found:
            assert labels[0] != "O" and labels[2] != "B-X" and labels[3] == "I-X"
            if "constraints" in settings:
                assert labels[0] == "B-X" and labels[2] == "I-X" and labels[1] != "O"
        if settings.get("hidden_states", 1) == 1:
            assert sum(p for _, p in found) == pytest.approx(1.0)
        table = crf.predict_proba([x], allowed=allowed)[0]
        np.testing.assert_allclose(table.sum(axis=1), 1.0)
        assert table[3, crf.classes_.index("I-X")] == pytest.approx(1.0)


def test_weights_by_name():
    memm = MODELS["memm"][0].fit(X, Y)
    report = memm.explain_weights(3)
    assert report.labels == ("A", "B", "C") and report.transitions.shape == (3, 3)
    assert {name for name, _ in memm.state_features_} <= set(memm.attributes_)
    hmm = MODELS["hmm"][0].fit(WORDS, Y)
    report = hmm.explain_weights(2)
    np.testing.assert_allclose(np.exp(report.transitions), hmm.transitions_)
    table = hmm.emissions_.probabilities[:, : len(hmm.emissions_.symbols)]
    ratio = np.log(table / table.mean(axis=0))
    expected = {(str(s), k): ratio[i, j] for i, k in enumerate("ABC") for j, s in enumerate(hmm.emissions_.symbols)}
    for label, listed in report.states.items():
        assert len(listed) == 2
        for symbol, weight in listed:
            assert weight == pytest.approx(expected[symbol, label])
    with pytest.raises(mf.ModelError, match="explain_weights is for symbols"):
        MODELS["gaussian"][0].fit(MODELS["gaussian"][1], Y).explain_weights()


def test_greedy_labels_know_nothing_of_masks():
    memm = MEMM(max_iterations=5, decoding="greedy").fit(X, Y)
    with pytest.raises(mf.ModelError, match="greedy decoding knows no labels"):
        memm.predict(X[:1], fixed=[[None] * len(X[0])])
    assert memm.predict(X[:1], decoding="viterbi", fixed=[["A"] + [None] * (len(X[0]) - 1)])[0][0] == "A"
    for model, x in ((memm, X[:1]), (MODELS["hmm"][0].fit(WORDS, Y), WORDS[:1])):
        with pytest.raises(mf.ModelError, match="takes no edges"):
            model.predict_proba(x, edges=[[[]]])


@pytest.mark.parametrize("question", ["predict", "predict_proba", "predict_marginals", "predict_n_best", "entropy"])
def test_a_mistyped_keyword_is_told_by_its_name(question):
    crf = mf.ChainCRF().fit([[["a"], ["b"]]], [["X", "Y"]])
    with pytest.raises(
        TypeError, match="no keyword 'fixd': the keywords are edges, fixed, allowed; did you mean 'fixed'"
    ):
        getattr(crf, question)([[["a"]]], fixd=None)
