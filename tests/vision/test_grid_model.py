"""The grid as a conditional model: against enumeration, graphs written by hand, and turned images."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest

import markovfield as mf
from markovfield.inference.core.running import Running
from markovfield.structured.models.graph import GraphModel
from markovfield.structured.objectives.likelihood import ConditionalLikelihood
from markovfield.vision.grid_model import GridModel
from markovfield.vision.image_features import DIRECTIONS, edge_features, grid_edges, node_features, stack_images

SIZES = [(2, 3), (1, 4), (3, 1), (1, 1)]


def drawn(
    sizes: list[tuple[int, int]] = SIZES, *, classes: int = 3, channels: int = 2, rng: int = 0
) -> tuple[Any, Any]:
    generator = np.random.default_rng(rng)
    images = [generator.normal(size=(*size, channels)) for size in sizes]
    labels = [generator.integers(classes, size=size) for size in sizes]
    labels[0].flat[:classes] = range(classes)
    return images, labels


def value_of(model: GridModel, images: Any, labels: Any, w: np.ndarray, method: str = "junction_tree") -> Any:
    objective = ConditionalLikelihood(method).on(model.encode(images, labels), running=Running(1))
    return objective(w)


MODELS = [
    GridModel(),
    GridModel(connectivity=8, edge_features="constant"),
    GridModel(directional=True, edge_features="values", node_features=("neighbourhood",)),
    GridModel(connectivity=8, directional=True, interaction="equal", beta=0.4),
    GridModel(edge_features="binned", n_bins=3, interaction="distance", truncation=1),
    GridModel(connectivity=8, edge_features="binned", n_bins=2, directional=True),
    GridModel(edge_features=["contrast", "difference"], node_features=("constant", "blurred", "gradient", "position")),
    GridModel(edge_features=None, node_features=("values", "variance")),
    GridModel(edge_features="values", node_features="multi_scale", scales=(0.7,)),
]


def naive_score(model: GridModel, named: dict[str, Any], image: np.ndarray, states: Any) -> float:
    """The score of labels by loops over pixels and over pairs of them."""
    rows, columns = image.shape[:2]
    kinds = model.node_features
    if isinstance(kinds, str):
        kinds = [kinds] if kinds == "values" else ["values", "blurred", "gradient", "variance", "position"]
        kinds = ["constant", *kinds]
    found = node_features(stack_images([image]), kinds, scales=model.scales, window=model.window)
    total = sum(float(found[p] @ named["pixels"][:, y]) for p, y in enumerate(states))
    pairs = []
    for p in range(rows * columns):
        for name, (down, right) in list(DIRECTIONS.items())[: model.connectivity // 2]:
            row, column = p // columns + down, p % columns + right
            if row < rows and 0 <= column < columns:
                pairs.append((name, p, row * columns + column))
    pixels = image.reshape(rows * columns, -1)
    squared = [float(((pixels[s] - pixels[t]) ** 2).sum()) for _, s, t in pairs]
    for (name, s, t), d in zip(pairs, squared, strict=True):
        if model.edge_features is None:
            continue
        weights = named[name if model.directional else "edges"]
        contrast = np.exp(-(model.beta * d if model.beta is not None else d / (2 * np.mean(squared))))
        parts = {"constant": [1.0], "contrast": [contrast], "difference": np.abs(pixels[s] - pixels[t])}
        parts["values"] = np.concatenate([pixels[s], pixels[t]])
        if model.edge_features == "binned":
            features = np.eye(model.n_bins)[min(int(contrast * model.n_bins), model.n_bins - 1)]
        elif isinstance(model.edge_features, str):
            names = dict.fromkeys(["constant", model.edge_features])
            features = np.concatenate([parts[kind] for kind in names])
        else:
            features = np.concatenate([parts[kind] for kind in model.edge_features])
        a, b = states[s], states[t]
        how = model.interaction or ("directed" if weights.shape[1] == 9 else "symmetric")
        column = {
            "directed": 3 * a + b,
            "symmetric": [(0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2)].index((min(a, b), max(a, b))),
            "equal": 0,
            "distance": min(abs(a - b), model.truncation),
        }[how]
        if how != "equal" or a == b:
            total += float(features @ weights[:, column])
    return total


@pytest.mark.parametrize("model", MODELS, ids=range(len(MODELS)))
def test_the_likelihood_is_that_of_enumeration_and_its_gradient_of_differences(model: GridModel):
    images, labels = drawn()
    model = model.shaped(images, labels)
    w = np.random.default_rng(1).normal(size=model.n_weights)
    value, gradient = value_of(model, images, labels, w)
    named = model.named_weights(w)
    total = 0.0
    for image, label in zip(images, labels, strict=True):
        scores = [naive_score(model, named, image, states) for states in product(range(3), repeat=label.size)]
        total += np.logaddexp.reduce(scores) - naive_score(model, named, image, label.ravel())
    assert value == pytest.approx(total, rel=1e-10)
    for way in np.random.default_rng(2).normal(size=(3, len(w))):
        up, down = (value_of(model, images, labels, w + step * way)[0] for step in (1e-5, -1e-5))
        assert gradient @ way == pytest.approx((up - down) / 2e-5, rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("directional", [False, True])
@pytest.mark.parametrize("kinds", [["constant", "contrast"], ["values"]])
def test_a_grid_is_a_graph_with_its_features(directional: bool, kinds: list[str]):
    images, labels = drawn()
    model = GridModel(8, edge_features=kinds, directional=directional, interaction="directed").shaped(images, labels)
    graphs = []
    for image in images:
        one = stack_images([image])
        edges = grid_edges(one.shapes, 8)
        features = edge_features(one, edges, kinds)
        typed: dict[str, Any] = {"edges": (edges.ends, features)}
        if directional:
            typed = {}
            for number, name in enumerate(("right", "down", "down right", "down left")):
                own = edges.direction == number
                typed[name] = (edges.ends[own], features[own])
        graphs.append((node_features(one), typed))
    other = GraphModel(interaction="directed", bias=False).shaped(graphs, labels)
    rng = np.random.default_rng(0)
    parts = {name: rng.normal(size=shape) for name, (_, shape) in model.layout.items()}
    w = np.concatenate([part.ravel() for part in parts.values()])
    named = {"nodes" if name == "pixels" else name: part for name, part in parts.items()}
    v = np.concatenate([named[name].ravel() for name in other.layout])
    found, gradient = value_of(model, images, labels, w)
    objective = ConditionalLikelihood("junction_tree").on(other.encode(graphs, labels), running=Running(1))
    again, slope = objective(v)
    assert found == pytest.approx(again, rel=1e-12)
    mine, theirs = model.named_weights(gradient), other.named_weights(slope)
    for name, part in mine.items():
        np.testing.assert_allclose(part, theirs["nodes" if name == "pixels" else name], rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("kind", ["contrast", "values", "binned"])
def test_turning_images_turns_directions(kind: str):
    """Transposed, right is down; the second diagonal's ends change places. Features in a wrong channel show here."""
    images, labels = drawn([(3, 4), (2, 2)])
    model = GridModel(8, edge_features=kind, directional=True, node_features=("constant", "values"))
    model = model.shaped(images, labels)
    rng = np.random.default_rng(3)
    w = rng.normal(size=model.n_weights)
    named = model.named_weights(w)
    turned = dict(named) | {"right": named["down"], "down": named["right"]}
    left = named["down left"].reshape(-1, 3, 3).transpose(0, 2, 1)
    if kind == "values":
        left = left[[0, 3, 4, 1, 2]]
    turned["down left"] = left
    v = np.concatenate([turned[name].ravel() for name in model.layout])
    flipped = [image.transpose(1, 0, 2) for image in images], [label.T for label in labels]
    assert value_of(model, images, labels, w)[0] == pytest.approx(value_of(model, *flipped, v)[0], rel=1e-10)
    assert value_of(model, images, labels, v)[0] != pytest.approx(value_of(model, *flipped, v)[0], rel=1e-3)


@pytest.mark.parametrize("model", MODELS, ids=range(len(MODELS)))
def test_many_images_are_each_by_itself(model: GridModel):
    images, labels = drawn()
    model = model.shaped(images, labels)
    w = np.random.default_rng(5).normal(size=model.n_weights)
    together = value_of(model, images, labels, w)
    alone = [value_of(model, [image], [label], w) for image, label in zip(images, labels, strict=True)]
    assert together[0] == pytest.approx(sum(value for value, _ in alone), rel=1e-12)
    np.testing.assert_allclose(together[1], sum(slope for _, slope in alone), rtol=1e-9, atol=1e-10)
    inputs = model.inputs(images)
    for i, image in enumerate(images):
        part, own = model.encode_inputs(inputs.example(i)), model.encode([image])
        np.testing.assert_allclose(part.pool(w), own.pool(w), rtol=1e-12)
        assert part.structure.scopes.tolist() == own.structure.scopes.tolist()
        assert (
            model.outputs(np.zeros(image.shape[0] * image.shape[1], np.int32), inputs.example(i))[0].shape
            == image.shape[:2]
        )


def test_scores_of_others_get_a_weight_each():
    images, labels = drawn()
    rng = np.random.default_rng(0)
    scores = [rng.normal(size=(*label.shape, 3, 2)) for label in labels]
    X = list(zip(images, scores, strict=True))
    model = GridModel(node_features=("constant",)).shaped(X, labels)
    assert model.layout["scores"][1] == (2, 1)
    w = np.zeros(model.n_weights)
    w[model.layout["scores"][0]] = 2.0, -1.0
    pool = model.encode(X, labels).pool(w)
    wanted = np.concatenate([(score @ [2.0, -1.0]).ravel() for score in scores])
    np.testing.assert_allclose(pool[len(wanted) : 2 * len(wanted)], wanted)
    _, gradient = value_of(model, X, labels, w)
    step = np.zeros(len(w))
    step[model.layout["scores"][0].start] = 1e-5
    up, down = value_of(model, X, labels, w + step)[0], value_of(model, X, labels, w - step)[0]
    assert gradient[model.layout["scores"][0].start] == pytest.approx((up - down) / 2e-5, rel=1e-6)
    only = GridModel(node_features=None, edge_features=None).shaped(X, labels)
    assert only.n_weights == 2 and only.feature_names() == []
    np.testing.assert_allclose(only.encode(X).pool(np.array([2.0, -1.0]))[len(wanted) :], wanted)
    single = [(image, score[..., 0]) for image, score in X]
    assert GridModel().shaped(single, labels).layout["scores"][1] == (1, 1)
    for bad, message in [
        ([X[0], images[1]], r"images\[1\] must be a pair"),
        ([(images[0], scores[1])], r"scores of images\[0\] must be of shape \(2, 3, 3\)"),
        ([X[0], (images[1], np.full((1, 4, 3, 2), np.nan))], r"scores of images\[1\] must be finite, and 24 are not"),
        ([single[0]], r"images\[0\] must come with 2 scores of each class, got 1"),
        ([images[0]], "images came with scores in training"),
    ]:
        with pytest.raises(mf.ModelError, match=message):
            model.encode(bad)


def test_unknown_pixels():
    images, labels = drawn()
    hidden = [label.copy() for label in labels]
    hidden[0][1, 2] = -1
    model = GridModel(unknown=-1).shaped(images, hidden)
    assert model.classes == (0, 1, 2)
    batch = model.encode(images, hidden)
    assert (batch.labels == -1).sum() == 1
    w = np.random.default_rng(0).normal(size=model.n_weights)
    value, _ = value_of(model, images, hidden, w)
    options = []
    for state in range(3):
        filled = [label.copy() for label in hidden]
        filled[0][1, 2] = state
        options.append(-value_of(model, images, filled, w)[0])
    assert value == pytest.approx(-np.logaddexp.reduce(options), rel=1e-10)


def test_labels_of_other_values_come_back():
    images, labels = drawn()
    names = [np.array(["sky", "sea", "sand"])[label] for label in labels]
    model = GridModel().shaped(images, names)
    assert model.classes == ("sand", "sea", "sky")
    inputs = model.inputs(images)
    again = model.outputs(model.labels(names, inputs), inputs)
    assert all((a == b).all() for a, b in zip(again, names, strict=True))
    with pytest.raises(mf.ModelError, match="needs labels that are integers"):
        replace(model, interaction="distance").templates()
    spread = [np.array([0, 2, 7])[label] for label in labels]
    far = GridModel(interaction="distance", truncation=4, edge_features="constant").shaped(images, spread)
    table = far.encode(images).pool(np.arange(far.n_weights, dtype=float))[-9:].reshape(3, 3)
    first = far.layout["edges"][0].start
    assert (table - first).tolist() == [[0, 2, 4], [2, 0, 4], [4, 4, 0]]


def test_what_is_refused():
    images, labels = drawn()
    model = GridModel().shaped(images, labels)
    for X, Y, message in [
        (images, [*labels[:2], labels[2].T, labels[3]], r"labels\[2\] must be 3 x 1 as images\[2\] is, got \(1, 3\)"),
        (images, [labels[0] + 1, *labels[1:]], "example 0: label 3 was not seen in training"),
        ([images[0], images[1][..., 0]], labels[:2], r"images\[1\] must have 2 channels as others have, got 1"),
        ([images[0], np.full((1, 4, 2), np.nan)], labels[:2], r"images\[1\] needs pixels that are finite"),
        ([images[0], np.zeros((0, 4, 2))], labels[:2], r"images\[1\] .* with pixels, got shape \(0, 4, 2\)"),
        (images[:2], labels[:1], "X has 2 examples and y has 1"),
        ([], [], "no examples"),
    ]:
        with pytest.raises(mf.ModelError, match=message):
            model.encode(X, Y)
    with pytest.raises(mf.ModelError, match="at least two different labels"):
        GridModel().shaped(images, [np.zeros(label.shape, int) for label in labels])
    for settings, message in [
        ({"connectivity": 6}, "connectivity of GridModel must be 4 or 8, got 6"),
        ({"node_features": ["colour"]}, "node_features of GridModel must be a list"),
        ({"edge_features": "colour"}, "edge_features of GridModel must be a list"),
        ({"edge_features": []}, "edge_features of GridModel must be a list"),
        ({"interaction": "any"}, "interaction of GridModel must be one of 'symmetric'"),
        ({"n_bins": 0}, "n_bins of GridModel must be at least 1, got 0"),
        ({"truncation": 1.5}, "truncation of GridModel must be an integer"),
        ({"beta": -1}, "beta of GridModel"),
        ({"window": 2}, "window must be an odd number"),
    ]:
        with pytest.raises(mf.ModelError, match=message):
            GridModel(**settings)
