"""Segments with labels: scores by their definition, texts by plain Python, and everything a fitted model is asked."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array

import markovfield as mf
from markovfield.inference.core.running import Running
from markovfield.sequence.segments.operators import SegmentTokens
from markovfield.sequence.segments.segment_model import SegmentModel
from markovfield.sequence.segments.strings import SegmentTexts
from markovfield.sequence.text.labels import spans
from markovfield.sequence.text.token_features import short_shape
from markovfield.structured.objectives.likelihood import ConditionalLikelihood

X = [
    [{"word": "in", "n": 0.5}, {"word": "New"}, {"word": "York"}, {"word": "City", "n": -1.0}],
    [{"word": "Ana"}, {"word": "saw"}, {"word": "New"}, {"word": "York"}],
    [],
    [{"word": "saw"}],
]
Y = [["O", "B-LOC", "I-LOC", "I-LOC"], ["B-PER", "O", "B-LOC", "I-LOC"], [], ["O"]]


def definition(model, x, segments, w):
    """The score of segments ``(first, stop, label)`` of a sentence by the formula."""
    parts, k, known = model.named_weights(w), model.n_classes, model.known
    names = known.vectoriser.attributes_
    tokens = parts["tokens"].reshape(len(names), -1, k)
    total, before = 0.0, None
    for a, b, label in segments:
        y = model.classes.index(label)
        for t in range(max(a - 1, 0), min(b + 1, len(x))):
            roles = (t == a, a < t < b, t == b - 1, t == a - 1, t == b)
            for role, there in enumerate(roles[: tokens.shape[1]]):
                for key, value in x[t].items():
                    name, size = (f"{key}:{value}", 1.0) if isinstance(value, str) else (key, value)
                    total += there * size * tokens[names.index(name), role, y]
        total += parts["segments"][b - a - 1, y]
        words = [x[t]["word"] for t in range(a, b)]
        for text in ("w:" + " ".join(words), "s:" + " ".join(map(short_shape, words))):
            if text in known.texts.texts:
                total += parts["segments"][known.sizes["max_length"] + known.texts.texts.index(text), y]
        total += parts["first"][0, y] if before is None else parts["transitions"][0, before * k + y]
        before = y
    return total + parts["last"][0, before]


def cut(labels):
    found, done = [], 0
    for kind, a, b in [*spans(labels), ("", len(labels), len(labels))]:
        found += [(t, t + 1, "O") for t in range(done, a)]
        found += [(a, b, kind)] if kind else []
        done = b
    return found


@pytest.mark.parametrize("neighbours", [False, True])
def test_scores_are_those_of_the_definition(neighbours):
    model = SegmentModel(neighbours=neighbours).shaped(X, Y)
    assert model.classes == ("O", "LOC", "PER")
    w = np.random.default_rng(0).normal(size=model.n_weights)
    batch = model.encode(X, Y)
    scores = batch.parts.scores(batch.pool(w))
    for i in (0, 1, 3):
        assert scores[i] == pytest.approx(definition(model, X[i], cut(Y[i]), w))
    assert scores[2] == 0.0
    inputs = model.inputs(X)
    form = model.form(inputs, 0, batch.pool(w))
    for drawn in mf.sample(form, 20, rng=1).structures:
        named = [(a, b, model.classes[y]) for a, b, y in drawn]
        assert all(b - a == 1 for a, b, label in named if label == "O")
        assert form.score(drawn) == pytest.approx(definition(model, X[0], named, w))


def test_the_gradient_of_the_likelihood():
    model = SegmentModel(max_length=2).shaped(X, Y)
    objective = ConditionalLikelihood().on(model.encode(X, Y, [1.0, 2.0, 1.0, 0.5]), running=Running())
    rng = np.random.default_rng(1)
    w = rng.normal(size=model.n_weights)
    _, gradient = objective(w)
    for i in rng.choice(model.n_weights, 25, replace=False):
        step = np.zeros_like(w)
        step[i] = 1e-5
        assert gradient[i] == pytest.approx((objective(w + step)[0] - objective(w - step)[0]) / 2e-5, abs=1e-6)


def test_the_operator_and_its_adjoint():
    rng = np.random.default_rng(0)
    for n, longest, k in [(7, 3, 2), (2, 5, 3), (0, 2, 1)]:
        features = csr_array(rng.normal(size=(n, 4)) * (rng.random((n, 4)) < 0.6))
        for roles in (3, 5):
            operator = SegmentTokens(features, np.array([0, n // 2, n // 2, n]), longest, k, roles)
            w, cells = rng.normal(size=operator.n_weights), rng.normal(size=operator.n_cells)
            assert operator.forward(w) @ cells == pytest.approx(w @ operator.adjoint(cells))


def test_texts_are_found_where_plain_python_finds_them():
    rng = np.random.default_rng(0)
    words = [None if rng.random() < 0.1 else str(rng.choice(["Ab", "cd", "E f", "12"])) for _ in range(60)]
    offsets = np.array([0, 20, 20, 33, 60])
    starts, lengths = np.array([0, 5, 21, 40]), np.array([1, 3, 2, 4])
    known = SegmentTexts.seen(words, starts, lengths, 1)
    for kind, written in (
        ("w", lambda word: word.replace(" ", "_")),
        ("s", lambda word: short_shape(word.replace(" ", "_"))),
    ):
        found = known.find(words, offsets, 4, kind)
        for t in range(60):
            end = offsets[1:][offsets[1:] > t][0]
            for d in range(4):
                inside = words[t : t + d + 1]
                there = t + d < end and None not in inside
                text = f"{kind}:{' '.join(map(written, inside))}" if there else ""
                assert found[t, d] == (known.texts.index(text) if text in known.texts else -1)
    assert len(SegmentTexts([]).find(["a"], np.array([0, 1]), 2, "w")) == 1
    assert SegmentTexts.seen(["a", "a", "b"], np.arange(3), np.ones(3, np.int64), 2).texts == ["w:a", "s:x"]


def test_a_fitted_model_answers(tmp_path):
    crf = mf.SemiMarkovCRF(l2=0.05).fit(X, Y)
    assert crf.predict(X) == Y
    assert crf.score(X, Y) == 1.0
    assert crf.classes_ == ["O", "LOC", "PER"]
    likely = crf.log_likelihood(X, Y)
    assert likely[2] == 0.0
    assert (likely <= 0).all()
    form = crf.form(X[0])
    assert likely[0] == pytest.approx(form.score([(0, 1, 0), (1, 4, 1)]) - float(mf.log_partition(form)))
    whole = crf.predict_marginals(X)[0]["segments"]
    assert whole.shape == (4, 3, 3)
    assert whole[1, 2, 1] == pytest.approx(mf.marginals(form)["segments"][1, 2, 1])
    [first, second] = crf.predict_n_best(X[:1], 2)[0]
    assert first[0] == Y[0]
    assert first[1] >= second[1]
    assert all(len(labels) == 4 for labels in crf.sample(X[:1], 3, rng=0)[0])
    crf.save(tmp_path / "crf.mf")
    again = mf.load(tmp_path / "crf.mf")
    assert again.predict(X) == Y
    np.testing.assert_array_equal(again.log_likelihood(X, Y), likely)


def test_a_chain_is_the_special_case_of_length_one():
    # Chunks of one token, without texts: a label for each token, as ChainCRF has with all pairs; the attributes of a
    # token begin and end its segment, which is one weight in two halves.
    y = [["O", "B-A", "B-B", "O"], ["B-B", "O", "B-A", "B-A"], [], ["O"]]
    model = SegmentModel(texts=False).shaped(X, y)
    w = np.random.default_rng(0).normal(size=model.n_weights)
    w[model.layout["segments"][0]] = w[model.layout["first"][0]] = w[model.layout["last"][0]] = 0.0
    chain = mf.sequence.SkipChainModel(link=None).shaped(X, y)
    parts = model.named_weights(w)
    order = [model.classes.index("O" if label == "O" else label[2:]) for label in chain.classes]
    tokens = parts["tokens"].reshape(-1, 3, 3)
    v = np.concatenate([
        (tokens[:, 0] + tokens[:, 2])[:, order].ravel(),
        parts["transitions"].reshape(3, 3)[np.ix_(order, order)].ravel(),
    ])  # fmt: skip
    values = [
        ConditionalLikelihood().on(one.encode(X, y), running=Running())(weights)[0]
        for one, weights in ((model, w), (chain, v))
    ]
    assert values[0] == pytest.approx(values[1])


def test_lengths_and_labels():
    crf = mf.SemiMarkovCRF(2, l2=0.1).fit(X, Y)
    assert crf.model_.known.sizes["max_length"] == 2
    assert crf.predict(X[:1])[0][1] == "B-LOC"  # three tokens are two segments
    no_outside = mf.SemiMarkovCRF(l2=0.1).fit([X[0][:2]], [["B-A", "B-B"]])
    assert no_outside.predict([X[0][:2]]) == [["B-A", "B-B"]]
    # What is not known at all is still labelled, by the rest.
    assert len(crf.predict([[{"word": "Zürich"}, {"word": "x"}]])[0]) == 2


@pytest.mark.parametrize(
    ("settings", "x", "y", "message"),
    [
        ({}, X[:1], [["O"] * 4], "no segment to learn from"),
        ({}, X[:1], [["O", "B-LOC"]], "4 tokens and 2 labels"),
        ({}, X[:1], [["O", "B-LOC", 3, "O"]], "example 0: labels must be texts"),
        ({}, X[:1], [["O", "B", "I", "O"]], "example 0: labels must be O or have a type"),
        ({"max_length": 0}, X, Y, "max_length of SegmentModel must be at least 1"),
        ({"min_count": 0}, X, Y, "min_count of SegmentModel must be at least 1"),
        ({"word": "lemma"}, X, Y, "no token has a word"),
    ],
)
def test_bad_input_gets_a_sentence(settings, x, y, message):
    with pytest.raises(mf.ModelError, match=message):
        mf.SemiMarkovCRF(**settings).fit(x, y)


def test_labels_that_were_not_seen():
    crf = mf.SemiMarkovCRF(l2=0.1).fit(X, Y)
    with pytest.raises(mf.ModelError, match="example 1: no segment of label 'ORG'"):
        crf.log_likelihood(X[:2], [Y[0], ["B-ORG", "O", "O", "O"]])
    with pytest.raises(mf.ModelError, match="example 0 has 4 tokens and 1 labels"):
        crf.log_likelihood(X[:1], [["O"]])
