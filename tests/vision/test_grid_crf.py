"""The estimator of labels of pixels: snakes and stripes learned, probabilities, errors that name the image."""

from __future__ import annotations

import warnings
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import markovfield as mf
from markovfield.structured.core.inference import convex_inference
from markovfield.structured.objectives.likelihood import ConditionalLikelihood
from markovfield.vision.grid_model import GridModel
from markovfield.vision.image_features import one_hot_colours

BP = mf.methods.BeliefPropagation(max_iterations=30, tolerance=1e-3)


def stripes(n: int, *, noise: float = 0.7, rng: int = 0) -> tuple[Any, Any]:
    """Images of two classes in vertical bands, of different sizes, each pixel noisy."""
    generator = np.random.default_rng(rng)
    labels = []
    for _ in range(n):
        rows, columns = generator.integers(5, 9, 2)
        labels.append(np.repeat((np.arange(columns) // 3 % 2)[None], rows, axis=0))
    return [label + generator.normal(scale=noise, size=label.shape) for label in labels], labels


def test_edges_are_worth_something():
    images, labels = stripes(12)
    tests, truth = stripes(8, rng=1)
    alone = mf.GridCRF(edge_features=None, l2=0.1).fit(images, labels)
    joint = mf.GridCRF(edge_features="constant", directional=True, l2=0.1).fit(images, labels)
    assert joint.report_.converged and joint.report_.guarantee == "exact"
    assert joint.score(tests, truth) > alone.score(tests, truth) + 0.05
    assert joint.report_.log_likelihood > alone.report_.log_likelihood
    # Down, labels agree; to the right they may change.
    down, right = (joint.coef_[name].reshape(2, 2) for name in ("down", "right"))
    assert np.trace(down) - down[0, 1] - down[1, 0] > np.trace(right) - right[0, 1] - right[1, 0]


def test_training_ends_where_the_gradient_vanishes():
    images, labels = stripes(6)
    for settings in (
        {},
        {"connectivity": 8, "edge_features": "binned", "interaction": "equal"},
        {"objective": "likelihood"},
    ):
        crf = mf.GridCRF(l2=0.5, **settings).fit(images, labels)
        batch = crf.model_.encode(images, labels)
        value = mf.structured.ConditionalLikelihood().on(batch, running=_running())(crf.weights_)
        slope = value[1] + 0.5 * crf.weights_
        assert np.linalg.norm(slope) < 1e-3 * max(1.0, np.linalg.norm(value[1]))
        assert value[0] + 0.25 * crf.weights_ @ crf.weights_ == pytest.approx(crf.report_.objective, rel=1e-9)


def _running() -> Any:
    from markovfield.inference.core.running import Running

    return Running(1)


def test_neighbours_that_attract_each_other_do_not_mislead_training():
    """Too wide for exact inference: loopy messages have several fixed points here, and training by them gets stuck."""
    rng = np.random.default_rng(0)
    row, column = np.mgrid[:28, :30]
    labels = [(np.hypot(row - r, column - c) < 9).astype(int) for r, c in ((10, 12), (17, 18), (14, 9))]
    images = [label + rng.normal(scale=1.0, size=label.shape) for label in labels]
    joint = mf.GridCRF(edge_features="constant").fit(images[:2], labels[:2])
    assert "tree_reweighted" in joint.report_.notes[0] and joint.report_.converged
    alone = mf.GridCRF(edge_features=None).fit(images[:2], labels[:2])
    assert alone.score(images[2:], labels[2:]) < 0.78
    assert joint.score(images[2:], labels[2:]) > 0.93
    # Prediction takes the same messages.
    assert joint.marginals(images[2:]).method == "tree_reweighted"
    sure = [np.abs(p[..., 1] - 0.5) > 0.4 for p in joint.predict_marginals(images)]
    right = [p.argmax(axis=2) == y for p, y in zip(joint.predict_marginals(images), labels, strict=True)]
    assert np.mean(np.concatenate([r[s] for r, s in zip(right, sure, strict=True)])) > 0.97


def test_the_convex_bound_of_an_image_is_the_same_alone_and_among_others():
    rng = np.random.default_rng(4)
    images = [rng.normal(size=shape) for shape in ((5, 6), (9, 7), (4, 4))]
    labels = [rng.integers(0, 3, image.shape) for image in images]
    model = GridModel().shaped(images, labels)
    w = rng.normal(size=model.n_weights)

    def value(images: list[Any], labels: list[Any]) -> tuple[float, np.ndarray]:
        return ConditionalLikelihood(convex_inference()).on(model.encode(images, labels), running=_running())(w)

    whole, slope = value(images * 30, labels * 30)
    single = [value([image], [label]) for image, label in zip(images, labels, strict=True)]
    assert whole == pytest.approx(30 * sum(one for one, _ in single), rel=1e-9)
    np.testing.assert_allclose(slope, 30 * sum(gradient for _, gradient in single), rtol=1e-8, atol=1e-8)


def test_snakes_are_solved_by_edges_that_see_both_ends():
    drawn, test = mf.datasets.make_snakes(60, length=5, rng=0), mf.datasets.make_snakes(40, length=5, rng=1)
    images, palette = one_hot_colours(drawn.images)
    unseen, _ = one_hot_colours(test.images, palette)
    scores = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for edges in (None, "constant", "values"):
            crf = mf.GridCRF(edge_features=edges, directional=True, inference=BP, l2=0.1)
            scores[edges] = crf.fit(images, drawn.labels).score(unseen, test.labels)
    assert scores[None] < 0.87 < scores["constant"] < 0.95
    assert scores["values"] > 0.99


def test_probabilities_and_entropies_have_the_shape_of_images():
    images, labels = stripes(4)
    crf = mf.GridCRF(l2=1.0).fit(images, labels)
    probabilities, entropies = crf.predict_marginals(images), crf.predict_entropy(images)
    for image, p, h in zip(images, probabilities, entropies, strict=True):
        assert p.shape == (*image.shape, 2) and h.shape == image.shape
        np.testing.assert_allclose(p.sum(axis=2), 1.0)
        np.testing.assert_allclose(h, -(p * np.log(p)).sum(axis=2), rtol=1e-9)
    graph = crf.model_.encode(images[:1]).graph(crf.weights_)
    np.testing.assert_allclose(probabilities[0].ravel(), mf.marginals(graph).values, rtol=1e-8)
    mpm = crf.predict(images, decision="mpm")
    assert all((a == p.argmax(axis=2)).all() for a, p in zip(mpm, probabilities, strict=True))


def test_known_pixels_stay_and_others_follow():
    images, labels = stripes(6, noise=0.5)
    crf = mf.GridCRF(edge_features="constant", l2=0.1, unknown=-1).fit(images, labels)
    fixed = np.full(labels[0].shape, -1)
    fixed[2, 1] = 1
    found = crf.predict(images[:1], fixed=[fixed])[0]
    assert found[2, 1] == 1
    p = crf.predict_marginals(images[:1], fixed=[fixed])[0]
    assert p[2, 1].tolist() == [0.0, 1.0]
    assert crf.predict_entropy(images[:1], fixed=[fixed])[0][2, 1] == 0.0
    assert p[2, 2, 1] > crf.predict_marginals(images[:1])[0][2, 2, 1]


def test_pixels_without_labels_are_summed_over():
    images, labels = stripes(6, noise=0.4)
    partly = [label.copy() for label in labels]
    for i, label in enumerate(partly):
        label[i % 2 :: 2] = 255
    crf = mf.GridCRF(l2=0.5, unknown=255).fit(images, partly)
    assert crf.classes_ == [0, 1]
    assert crf.score(images, labels) > 0.9
    # The score is over known pixels only.
    assert crf.score(images, partly) == pytest.approx(
        np.mean([np.mean((a == y)[y < 255]) for a, y in zip(crf.predict(images), partly, strict=True)]), abs=0.05
    )


def test_images_in_any_order_and_number():
    images, labels = stripes(5)
    crf = mf.GridCRF(l2=1.0).fit(images, labels)
    whole = crf.predict_marginals(images)
    for i in (3, 0):
        np.testing.assert_allclose(crf.predict_marginals([images[i]])[0], whole[i], rtol=1e-9)
    turned = mf.GridCRF(l2=1.0).fit(images[::-1], labels[::-1])
    np.testing.assert_allclose(turned.weights_, crf.weights_, rtol=1e-3, atol=1e-4)


def test_saved_and_loaded_it_answers_the_same(tmp_path: Path):
    images, labels = stripes(4)
    scores = [np.dstack([-image, image]) for image in images]
    pairs = list(zip(images, scores, strict=True))
    names = [np.array(["back", "front"])[label] for label in labels]
    for X, y, settings in [
        (
            images,
            labels,
            {"connectivity": 8, "edge_features": ["contrast", "difference"], "node_features": "multi_scale"},
        ),
        (pairs, names, {"edge_features": "binned", "directional": True, "scales": (0.5,), "unknown": "none"}),
    ]:
        crf = mf.GridCRF(l2=2.0, **settings).fit(X, y)
        path = tmp_path / "grid.mfz"
        mf.save(crf, path)
        again = mf.load(path)
        assert isinstance(again, mf.GridCRF) and again.classes_ == crf.classes_
        for a, b in zip(again.predict_marginals(X), crf.predict_marginals(X), strict=True):
            np.testing.assert_array_equal(a, b)
        assert all((a == b).all() for a, b in zip(again.predict(X), crf.predict(X), strict=True))


def test_the_estimator_is_one_of_scikit_learn():
    from sklearn.base import clone

    crf = mf.GridCRF(connectivity=8, edge_features="binned", l2=3.0)
    assert clone(crf).get_params() == crf.get_params()
    assert isinstance(crf._model(), GridModel)
    model = crf._model()
    settings = {f.name: getattr(model, f.name) for f in fields(model) if f.name != "shape"}
    assert settings.items() <= crf.get_params().items()
    with pytest.raises(Exception, match="not fitted"):
        crf.predict([np.zeros((2, 2))])


def test_errors_name_the_image():
    images, labels = stripes(3)
    crf = mf.GridCRF()
    for X, y, message in [
        ([images[0], images[1][0]], labels[:2], r"images\[1\] must be \[rows, columns\]"),
        ([images[0], images[1] * np.nan], labels[:2], r"images\[1\] needs pixels that are finite numbers, got nan"),
        ([images[0], images[1][:0]], labels[:2], r"images\[1\] .* with pixels, got shape \(0, "),
        (images[:2], [labels[0], labels[1][:, 1:]], r"labels\[1\] must be \d x \d as images\[1\] is"),
        (images[:2], labels[:1], "X has 2 examples and y has 1"),
        (images, [np.zeros_like(label) for label in labels], "at least two different labels"),
        ([], [], "no examples"),
        (images[0], labels[0], r"images\[0\] must be \[rows, columns\]"),
    ]:
        with pytest.raises(mf.ModelError, match=message):
            crf.fit(X, y)
    crf.fit(images, labels)
    for X, message in [
        ([images[0], np.zeros((3, 3, 3))], r"images\[1\] must have 1 channels as others have, got 3"),
        ([np.full((2, 2), np.inf)], r"images\[0\] needs pixels that are finite numbers, got inf"),
    ]:
        with pytest.raises(mf.ModelError, match=message):
            crf.predict(X)
