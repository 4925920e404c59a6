"""Skip chains: links, and the likelihood against its definition and against the linear chain."""

from __future__ import annotations

from functools import partial
from itertools import pairwise

import numpy as np
import pytest

from markovfield.exceptions import ModelError
from markovfield.inference.core.running import Running
from markovfield.sequence.chain.objective import ChainObjective
from markovfield.sequence.chain.observed_features import observed_features
from markovfield.sequence.conditional.links import equal_pairs, words_of
from markovfield.sequence.conditional.skip_chain import SkipChainModel
from markovfield.sequence.text.token_features import TokenFeatures
from markovfield.structured.objectives.likelihood import ConditionalLikelihood
from tests.sequence.conditional.enumerated import likelihood, slopes

X = [
    [{"word": "Ana", "n": 0.5}, {"word": "saw"}, {"word": "Ana", "n": -1.0}, {"word": "Ana"}, {"word": "saw"}],
    [{"word": "Leo"}, {"word": "and", "n": 2.0}, {"word": "Leo"}],
    [{"word": "saw"}],
]
Y = [["P", "O", "P", "L", "O"], ["L", "O", "P"], ["O"]]
LINKS = {"equal": [[(0, 2), (0, 3), (1, 4)], [(0, 2)], []], "equal_capitalised": [[(0, 2), (0, 3)], [(0, 2)], []]}


def definition(model: SkipChainModel, links: dict, x: list, path: tuple, w: np.ndarray) -> float:
    """The score of labels by the formula: attributes, transitions, links."""
    parts, k = model.named_weights(w), model.n_classes
    vectoriser = model.known.vectoriser
    rows = [dict(zip(d.attributes.tolist(), _values(d), strict=True)) for d in (vectoriser.transform([[t]]) for t in x)]
    total = sum(v * parts["tokens"][a, y] for row, y in zip(rows, path, strict=True) for a, v in row.items())
    total += sum(parts["transitions"][0, a * k + b] for a, b in pairwise(path))
    pairs = [(i, j) for i in range(k) for j in range(i, k)]
    for i, j in links:
        a, b = path[i], path[j]
        where = {
            "symmetric": lambda a=a, b=b: pairs.index((min(a, b), max(a, b))),
            "directed": lambda a=a, b=b: a * k + b,
            "equal": lambda a=a, b=b: 0 if a == b else None,
        }[model.interaction]()
        if where is None:
            continue
        if not model.link_features:
            total += parts["links"][0, where]
            continue
        for attribute in {*rows[i], *rows[j]}:
            total += max(rows[i].get(attribute, 0.0), rows[j].get(attribute, 0.0)) * parts["links"][attribute, where]
    return total


def _values(data) -> list[float]:
    return [1.0] * len(data.attributes) if data.values is None else data.values.tolist()


@pytest.mark.parametrize("hide", [False, True])
@pytest.mark.parametrize("features", [False, True])
@pytest.mark.parametrize("interaction", ["symmetric", "directed", "equal"])
@pytest.mark.parametrize("link", ["equal", "equal_capitalised"])
def test_likelihood_by_definition(link, interaction, features, hide):
    model = SkipChainModel(link, interaction, link_features=features).shaped(X, Y)
    labels = [[None if hide and i % 2 else y for i, y in enumerate(own)] for own in Y]
    w = np.random.default_rng(1).normal(size=model.n_weights)
    objective = ConditionalLikelihood().on(model.encode(X, labels), running=Running(1))
    value, gradient = objective(w)
    known = [[-1 if y is None else model.classes.index(y) for y in own] for own in labels]
    sizes = [[3] * len(x) for x in X]
    by_sentence = dict(zip(map(id, X), LINKS[link], strict=True))

    def expected(v: np.ndarray) -> float:
        return likelihood(lambda x, path, w: definition(model, by_sentence[id(x)], x, path, w), X, sizes, known, v)

    assert value == pytest.approx(expected(w), abs=1e-9)
    assert objective.guarantee == "exact"
    directions, along = slopes(expected, w)
    np.testing.assert_allclose(directions @ gradient, along, atol=1e-6)


@pytest.mark.parametrize("link", [None, lambda sentence: []])
def test_without_links_it_is_the_linear_chain(link):
    model = SkipChainModel(link).shaped(X, Y)
    data = model.known.vectoriser.transform(X)
    labels = model.labels(Y, model.inputs(X))
    features, counts = observed_features(data, labels, 3, all_states=True, all_transitions=True)
    plain = ChainObjective(features, features.encode(data), counts, running=Running(1))
    w = np.random.default_rng(0).normal(size=model.n_weights)
    parts = model.named_weights(w)
    own = np.concatenate([parts["tokens"][features.attributes_and_labels()], parts["transitions"][0]])
    value, gradient = ConditionalLikelihood().on(model.encode(X, Y), running=Running(1))(w)
    expected, slopes = plain(own)
    assert value == pytest.approx(expected, rel=1e-12)
    found = model.named_weights(gradient)
    n = features.n_state_features
    np.testing.assert_allclose(found["tokens"][features.attributes_and_labels()], slopes[:n], atol=1e-10)
    np.testing.assert_allclose(found["transitions"][0], slopes[n:], atol=1e-10)
    if link is not None:
        assert not found["links"].any()


def test_links_of_equal_words_are_bounded():
    words = ["a", "b", "a", "a", None, "a", "a", "b"]
    pairs = partial(equal_pairs, words, np.array([0, 6, 8]), bool)
    assert sorted(map(tuple, pairs(max_links=None, max_distance=None))) == [(0, 2), (0, 3), (0, 5), (2, 5), (3, 5)]
    assert sorted(map(tuple, pairs(max_links=1, max_distance=None))) == [(0, 2), (0, 3), (3, 5)]
    assert sorted(map(tuple, pairs(max_links=None, max_distance=2))) == [(0, 2), (3, 5)]
    assert len(equal_pairs([], np.array([0]), bool, max_links=1, max_distance=None)) == 0


def test_words_are_found_in_every_kind_of_token():
    shown = [["w=Ana", "x"], {"word": "Leo", "b": 1}, "Eva", ["x"]]
    assert words_of([shown], None) == ["Ana", "Leo", "Eva", None]
    assert words_of([[["w=Ana", "form:b=c"]]], "form") == ["b=c"]
    made = TokenFeatures(window=1).transform([["In", "Rome"], ["Rome"]])
    assert words_of(made, None) == ["In", "Rome", "Rome"]


def test_a_rule_gives_links_of_arrays_too():
    arrays = [np.array([[1.0, 0.0], [0.0, 2.0], [1.0, 1.0]]), np.ones((1, 2))]
    model = SkipChainModel(lambda x: [(0, len(x) - 1)] if len(x) > 1 else []).shaped(arrays, [["a", "b", "a"], ["b"]])
    placed = model.inputs(arrays).placed["links"]
    assert placed.scopes.tolist() == [[0, 2]]


def test_outputs_are_lists_of_labels_and_empty_sentences_stay():
    model = SkipChainModel("equal").shaped(X, Y)
    sentences = [X[1], [], X[2]]
    inputs = model.inputs(sentences)
    assert model.outputs(np.array([0, 1, 2, 1], np.int32), inputs) == [["L", "O", "P"], [], ["O"]]
    value, _ = ConditionalLikelihood().on(model.encode(sentences, [Y[1], [], Y[2]]), running=Running(1))(
        np.zeros(model.n_weights)
    )
    assert value == pytest.approx(4 * np.log(3))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"link": "same"}, "link must be 'equal', 'equal_capitalised', a function or None, got 'same'"),
        ({"interaction": "potts"}, "interaction must be one of 'symmetric'"),
        ({"max_links": 0}, "max_links of SkipChainModel must be at least 1, got 0"),
        ({"max_distance": 1}, "max_distance of SkipChainModel must be at least 2, got 1"),
        ({"min_count": True}, "min_count of SkipChainModel must be an integer, got True"),
    ],
)
def test_settings_are_checked(settings, message):
    with pytest.raises(ModelError, match=message):
        SkipChainModel(**settings)


def test_wrong_inputs_are_named():
    model = SkipChainModel("equal")
    with pytest.raises(ModelError, match="sentence 0 is an array, whose tokens have no words"):
        model.shaped([np.ones((2, 2))], [["a", "b"]]).inputs([np.ones((2, 2))])
    with pytest.raises(ModelError, match="no token has a word: none has an attribute named 'form'"):
        SkipChainModel("equal", word="form").shaped(X, Y).inputs(X)
    with pytest.raises(ModelError, match=r"example 0: links\[0\] = \[0, 9\] is out of range: there are 5 nodes"):
        SkipChainModel(lambda x: [(0, 9)]).shaped(X, Y).inputs(X)
    with pytest.raises(ModelError, match="sequences that are encoded have no words"):
        model.shaped(X, Y).inputs(model.shaped(X, Y).known.vectoriser.transform(X))
    with pytest.raises(ModelError, match="example 1: there are 3 variables and 2 labels"):
        model.shaped(X, Y).encode(X, [Y[0], ["P", "O"], Y[2]])
    with pytest.raises(ModelError, match="example 2: label 'X' was not seen in training"):
        model.shaped(X, Y).encode(X, [Y[0], Y[1], ["X"]])
