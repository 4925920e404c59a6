"""Factorial chains: the likelihood against its definition, labels in every form, one layer as the linear chain."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from markovfield.exceptions import ModelError
from markovfield.inference.core.running import Running
from markovfield.sequence.conditional.factorial_chain import FactorialChainModel
from markovfield.sequence.conditional.skip_chain import SkipChainModel
from markovfield.structured.objectives.likelihood import ConditionalLikelihood
from tests.sequence.conditional.enumerated import likelihood, slopes

X = [[["w=the", "b"], ["w=dog"], ["w=ran", "b"]], [["w=ran"], ["w=dog", "b"]]]
LAYERS = ["tag", "chunk", "name"]
Y = [
    {"tag": ["D", "N", "V"], "chunk": ["B", "I", "O"], "name": ["n", "n", "y"]},
    {"tag": ["V", "N"], "chunk": ["O", "B"], "name": ["y", "n"]},
]


def definition(model: FactorialChainModel, x: list, path: tuple, w: np.ndarray) -> float:
    """The score of labels by the formula: each layer's chain, and pairs of layers at each token."""
    parts, depth, names = model.named_weights(w), len(model.layers), model.known.vectoriser.attributes_
    total = 0.0
    for t, token in enumerate(x):
        states = path[t * depth : (t + 1) * depth]
        for layer, name in enumerate(model.layers):
            k = len(model.classes[layer])
            total += sum(parts[name][names.index(text), states[layer]] for text in token)
            if t:
                total += parts[f"{name} transitions"][0, path[(t - 1) * depth + layer] * k + states[layer]]
        for layer in range(depth - 1):
            table = parts[f"{model.layers[layer]} with {model.layers[layer + 1]}"]
            cell = states[layer] * len(model.classes[layer + 1]) + states[layer + 1]
            rows = [names.index(text) for text in token] if model.pair_features else [0]
            total += sum(table[row, cell] for row in rows)
            if model.across and t:
                before = parts[f"{model.layers[layer]} before {model.layers[layer + 1]}"]
                cell = path[(t - 1) * depth + layer] * len(model.classes[layer + 1]) + states[layer + 1]
                total += before[0, cell]
    return total


def check_slopes(gradient: np.ndarray, expected: Callable[[np.ndarray], float], w: np.ndarray) -> None:
    """All slopes where outputs are few, and those in some directions where a sum over outputs takes long."""
    if len(w) < 30:
        directions, along = slopes(expected, w)
        np.testing.assert_allclose(directions @ gradient, along, atol=1e-6)
    for direction in np.random.default_rng(0).normal(size=(4, len(w))):
        step = 1e-5 * direction
        found = (expected(w + step) - expected(w - step)) / 2e-5
        assert gradient @ direction == pytest.approx(found, abs=1e-5)


@pytest.mark.parametrize("across", [False, True])
@pytest.mark.parametrize("pair_features", [False, True])
@pytest.mark.parametrize("depth", [1, 2, 3])
def test_likelihood_by_definition(depth, pair_features, across):
    layers = LAYERS[:depth]
    labels = [{name: y[name] for name in layers} for y in Y]
    model = FactorialChainModel(layers, across, pair_features).shaped(X, labels)
    w = np.random.default_rng(depth).normal(size=model.n_weights)
    batch = model.encode(X, labels)
    objective = ConditionalLikelihood().on(batch, running=Running(1))
    value, gradient = objective(w)
    sizes = [[len(c) for c in model.classes] * len(x) for x in X]
    known = [part.tolist() for part in batch.split(batch.labels)]

    def expected(v: np.ndarray) -> float:
        return likelihood(lambda x, path, w: definition(model, x, path, w), X, sizes, known, v)

    assert value == pytest.approx(expected(w), abs=1e-9)
    assert objective.guarantee == "exact"
    check_slopes(gradient, expected, w)


def test_a_layer_that_is_left_out_is_summed_over():
    model = FactorialChainModel(LAYERS).shaped(X, Y)
    partly = [{"tag": Y[0]["tag"]}, {**Y[1], "chunk": [None, "B"]}]
    batch = model.encode(X, partly)
    w = np.random.default_rng(5).normal(size=model.n_weights)
    value, gradient = ConditionalLikelihood().on(batch, running=Running(1))(w)
    sizes = [[3, 3, 2] * len(x) for x in X]
    known = [part.tolist() for part in batch.split(batch.labels)]
    assert known == [[0, -1, -1, 1, -1, -1, 2, -1, -1], [2, -1, 1, 1, 0, 0]]

    def expected(v: np.ndarray) -> float:
        return likelihood(lambda x, path, w: definition(model, x, path, w), X, sizes, known, v)

    assert value == pytest.approx(expected(w), abs=1e-9)
    check_slopes(gradient, expected, w)


def test_labels_come_as_dicts_or_as_tables():
    model = FactorialChainModel(LAYERS).shaped(X, Y)
    tables = [list(zip(*(y[name] for name in LAYERS), strict=True)) for y in Y]
    arrays = [np.array(table) for table in tables]
    expected = model.encode(X, Y).labels
    for given in (tables, arrays):
        assert (model.encode(X, given).labels == expected).all()
        assert model.shaped(X, given).classes == model.classes
    assert model.outputs(expected, model.inputs(X)) == Y


def test_one_layer_is_the_linear_chain():
    one = FactorialChainModel(["tag"]).shaped(X, [{"tag": y["tag"]} for y in Y])
    chain = SkipChainModel(None).shaped(X, [y["tag"] for y in Y])
    w = np.random.default_rng(3).normal(size=one.n_weights)
    found = ConditionalLikelihood().on(one.encode(X, [{"tag": y["tag"]} for y in Y]), running=Running(1))(w)
    expected = ConditionalLikelihood().on(chain.encode(X, [y["tag"] for y in Y]), running=Running(1))(w)
    assert found[0] == pytest.approx(expected[0], abs=1e-10)
    np.testing.assert_allclose(found[1], expected[1], atol=1e-10)
    assert one.encode(X, [[[a] for a in y["tag"]] for y in Y]).labels.tolist() == [0, 1, 2, 2, 1]


def test_empty_sentences_stay():
    model = FactorialChainModel(LAYERS).shaped(X, Y)
    given = [Y[0], {}, Y[1], []]
    batch = model.encode([X[0], [], X[1], []], given)
    assert batch.n_examples == 4
    states = model.outputs(batch.labels, model.inputs([X[0], [], X[1], []]))
    nothing = {name: [] for name in LAYERS}
    assert states == [Y[0], nothing, Y[1], nothing]


def test_wrong_settings_and_labels_are_named():
    for layers in ([], ["a", "a"], "tag", [1]):
        with pytest.raises(ModelError, match="layers must be different names, at least one"):
            FactorialChainModel(layers)
    model = FactorialChainModel(["tag", "chunk"])
    with pytest.raises(ModelError, match="example 0: there is no layer 'name'"):
        model.shaped(X, Y)
    with pytest.raises(ModelError, match=r"example 0: token 0 has 3 labels where there are 2 layers"):
        model.shaped(X, [[("D", "B", "n")], []])
    with pytest.raises(ModelError, match=r"example 1: its layers have different numbers of labels, \[1, 2\]"):
        model.shaped(X, [{"tag": ["D"]}, {"tag": ["D"], "chunk": ["B", "O"]}])
    with pytest.raises(ModelError, match="layer 'chunk': there must be at least two different labels"):
        model.shaped(X, [{"tag": ["D", "N", "V"], "chunk": ["O"] * 3}, {"tag": ["V", "N"]}])
    two = [{name: y[name] for name in ("tag", "chunk")} for y in Y]
    with pytest.raises(ModelError, match="layer 'tag': example 1: label 'X' was not seen in training"):
        model.shaped(X, two).encode(X, [two[0], {"tag": ["X", "N"]}])
    with pytest.raises(ModelError, match="layer 'tag': example 1: there are 2 variables and 1 labels"):
        model.shaped(X, two).encode(X, [two[0], {"tag": ["N"], "chunk": ["B"]}])
