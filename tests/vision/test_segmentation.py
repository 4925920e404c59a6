"""Segmentation: the model is Murphy's 19.23, densities are what pixels say, EM climbs, labels come back."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import markovfield as mf
from markovfield.vision.segmentation import ImageSegmentation
from tests.oracle import Oracle


def stripes(rows: int, columns: int, n_classes: int) -> np.ndarray:
    return np.repeat(np.arange(columns) * n_classes // columns, rows).reshape(columns, rows).T


def noisy(truth: np.ndarray, colours: np.ndarray, scale: float, seed: int) -> np.ndarray:
    clean = colours[truth]
    return clean + np.random.default_rng(seed).normal(scale=scale, size=clean.shape)


def few_labels(truth: np.ndarray, each: int, seed: int) -> np.ndarray:
    labels = np.full(truth.shape, -1)
    rng = np.random.default_rng(seed)
    for k in np.unique(truth):
        at = rng.choice(np.flatnonzero(truth == k), each, replace=False)
        labels.flat[at] = k
    return labels


def log_normal(x: np.ndarray, mean: np.ndarray, covariance: np.ndarray) -> float:
    apart = x - mean
    form = apart @ np.linalg.inv(covariance) @ apart
    return float(-0.5 * form - 0.5 * np.log(np.linalg.det(2 * np.pi * covariance)))


@pytest.mark.parametrize(("connectivity", "contrast"), [(4, 0.0), (8, 0.0), (4, 1.5), (8, 0.7)])
def test_the_posterior_is_its_definition(connectivity: int, contrast: float):
    image = np.random.default_rng(0).normal(size=(3, 3, 2))
    labels = np.array([[0, 1, -1], [1, 0, -1], [2, 2, -1]])
    model = ImageSegmentation(3, 0.8, connectivity=connectivity, contrast=contrast).fit(image, labels)
    densities = model.observation_
    factors: list[Any] = []
    flat = image.reshape(9, 2)
    for s in range(9):
        own = [log_normal(flat[s], densities.means[k], densities.covariances[k]) for k in range(3)]
        factors.append(((s,), np.array(own)))
    pairs = []
    for s in range(9):
        for t in range(s + 1, 9):
            apart = np.hypot(s // 3 - t // 3, s % 3 - t % 3)
            if apart <= (1.0 if connectivity == 4 else 1.5):
                pairs.append((s, t, apart, ((flat[s] - flat[t]) ** 2).sum()))
    mean = np.mean([d for *_, d in pairs])
    for s, t, apart, d in pairs:
        factors.append(((s, t), 0.8 / apart * np.exp(-contrast * d / (2 * mean)) * np.eye(3)))
    truth = Oracle([3] * 9, factors)
    graph = model.to_factor_graph(image)
    np.testing.assert_allclose(graph.score(truth.states[:500]), truth.scores[:500].astype(float), atol=1e-9)
    found = model.predict(image)
    assert graph.score(found.ravel()) == pytest.approx(float(truth.scores.max()))
    probabilities = model.predict_marginals(image)
    assert probabilities.shape == (3, 3, 3)
    for s in range(9):
        np.testing.assert_allclose(probabilities[s // 3, s % 3], truth.marginal(s), atol=1e-9)


def test_gaussians_from_labelled_pixels():
    truth = stripes(20, 30, 3)
    colours = np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0]])
    image = noisy(truth, colours, 0.2, 1)
    model = ImageSegmentation(3, shrinkage=0.0).fit(image, truth)
    for k in range(3):
        np.testing.assert_allclose(model.observation_.means[k], image[truth == k].mean(axis=0), atol=1e-12)
        own = np.cov(image[truth == k], rowvar=False, bias=True)
        np.testing.assert_allclose(model.observation_.covariances[k], own, atol=1e-6)
    # One pixel of each class: the covariance is the whole image's.
    model = ImageSegmentation(3, shrinkage=4.0).fit(image, few_labels(truth, 1, 0))
    whole = np.cov(image.reshape(-1, 2), rowvar=False, bias=True)
    np.testing.assert_allclose(model.observation_.covariances[1], whole * 4 / 5, atol=1e-5)
    assert (model.n_iter_, model.converged_) == (0, True)


def test_histograms_from_labelled_pixels():
    rng = np.random.default_rng(2)
    image = rng.random((30, 40))
    labels = (image > 0.5).astype(int)
    model = ImageSegmentation(observation="histogram", n_bins=4, shrinkage=1e-3).fit(image, labels)
    density = np.exp(model.observation_.log_density(np.array([[0.1], [0.4], [0.6], [0.9], [7.0]])))
    # Each class is even over its half, where the density is two; outside the grid is its border.
    np.testing.assert_allclose(density[:2, 0], 2.0, rtol=0.2)
    np.testing.assert_allclose(density[2:, 1], 2.0, rtol=0.2)
    assert density[0, 1] < 1e-3 and density[3, 0] < 1e-3 and density[4, 1] == density[3, 1]
    width = np.ptp(image) / 4
    grid = image.min() + width * (np.arange(4)[:, None] + 0.5)
    np.testing.assert_allclose((np.exp(model.observation_.log_density(grid)) * width).sum(axis=0), 1.0)


@pytest.mark.parametrize("observation", ["gaussian", "histogram"])
def test_few_labels_are_enough(observation: str):
    truth = stripes(40, 60, 3)
    colours = np.array([[0.1, 0.2, 0.8], [0.3, 0.7, 0.2], [0.8, 0.6, 0.4]])
    image = noisy(truth, colours, 0.3, 3)
    labels = few_labels(truth, 30, 4)
    model = ImageSegmentation(3, 1.5, observation, n_bins=3, shrinkage=5.0).fit(image, labels)
    method = mf.methods.BeliefPropagation(max_iterations=200, damping=0.2)
    found = model.predict(image, method, labels=labels)
    alone = ImageSegmentation(3, 0.0, observation, n_bins=3, shrinkage=5.0).fit(image, labels).predict(image, method)
    assert (found != truth).mean() < 0.02 < (alone != truth).mean()
    np.testing.assert_array_equal(found[labels >= 0], labels[labels >= 0])
    assert model.score(image, truth, method) > 0.98
    by_marginals = model.predict_marginals(image, method).argmax(axis=-1)
    assert (by_marginals != truth).mean() < 0.02


@pytest.mark.parametrize("observation", ["gaussian", "histogram"])
@pytest.mark.parametrize("inference", ["junction_tree", mf.methods.MeanField(tolerance=1e-9, max_iterations=2000)])
def test_em_climbs(observation: str, inference: Any):
    truth = stripes(5, 40, 2)
    image = noisy(truth, np.array([0.0, 1.0]), 0.5, 5)
    model = ImageSegmentation(2, 0.7, observation, inference=inference, tolerance=0.0, max_iterations=12, rng=0)
    model.fit(image)
    assert model.n_iter_ >= 4
    assert (np.diff(model.objective_) > -1e-6).all()
    assert model.objective_[-1] > model.objective_[0] + 0.1


def test_unsupervised_finds_the_classes_by_brightness():
    truth = stripes(30, 45, 3)
    image = noisy(truth, np.array([0.9, 0.1, 0.5]), 0.12, 6)
    model = ImageSegmentation(3, 1.0, rng=1).fit(image)
    np.testing.assert_allclose(model.observation_.means.ravel(), [0.1, 0.5, 0.9], atol=0.02)
    assert model.converged_ and model.n_iter_ < 30
    found = model.predict(image, "bp")
    assert (found != np.array([2, 0, 1])[truth]).mean() < 0.01


def test_pixels_that_are_not_known():
    truth = stripes(8, 20, 2)
    image = noisy(truth, np.array([0.0, 1.0]), 0.3, 7)
    image[2:5, 3:6] = np.nan
    model = ImageSegmentation(2, 1.0, contrast=0.5).fit(image, np.where(np.isnan(image), 0, truth))
    probabilities = model.predict_marginals(image)
    assert np.isfinite(probabilities).all()
    assert (model.predict(image) != truth).mean() < 0.02
    unary = model.to_factor_graph(image).log_tables[-2 * truth.size :].reshape(8, 20, 2)
    assert not unary[2:5, 3:6].any() and (np.abs(unary).sum(axis=-1) > 0).sum() == 160 - 9
    assert ImageSegmentation(2, rng=0, max_iterations=3).fit(image).observation_.means.shape == (2, 1)


def test_small_and_flat_images():
    flat = np.ones((4, 5))
    model = ImageSegmentation().fit(flat, np.where(np.arange(20).reshape(4, 5) < 2, [[0, 1, 0, 0, 0]], -1))
    assert model.predict(flat).shape == (4, 5)
    for connectivity in (4, 8):
        row = ImageSegmentation(connectivity=connectivity).fit([[0.0, 1.0, 2.0]], [[0, -1, 1]])
        assert row.predict([[0.0, 1.0, 2.0]])[0, [0, 2]].tolist() == [0, 1]
        assert row.predict([[1.9]]).shape == (1, 1)


def test_the_manners_of_scikit_learn():
    from sklearn.base import clone

    model = ImageSegmentation(4, coupling=2.0, rng=3)
    assert clone(model).get_params() == model.get_params()
    assert model.set_params(contrast=1.0) is model and model.contrast == 1.0
    assert "coupling=2.0" in repr(model)
    with pytest.raises(mf.ModelError, match="has no parameter 'sigma'; it has n_classes, coupling"):
        model.set_params(sigma=1)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_classes": 1}, r"n_classes=...\) must be at least 2, got 1"),
        ({"coupling": np.inf}, "a finite number, got inf"),
        ({"observation": "poisson"}, "'gaussian' or 'histogram', got 'poisson'"),
        ({"connectivity": 6}, "4 or 8, got 6"),
        ({"contrast": -1.0}, r"contrast=...\) must be at least zero"),
        ({"n_bins": 1}, r"n_bins=...\) must be at least 2"),
        ({"shrinkage": -1.0}, r"shrinkage=...\) must be at least zero"),
        ({"max_iterations": 0}, r"max_iterations=...\) must be at least 1"),
    ],
)
def test_settings_that_are_refused(settings: dict[str, Any], message: str):
    with pytest.raises(mf.ModelError, match=message):
        ImageSegmentation(**settings).fit(np.eye(3), np.eye(3, dtype=int))


def test_what_is_refused():
    model = ImageSegmentation()
    image = np.random.default_rng(0).random((3, 4))
    with pytest.raises(mf.ModelError, match=r"not fitted yet; call fit\(image, labels\)"):
        model.predict(image)
    with pytest.raises(mf.ModelError, match=r"got shape \(4,\)"):
        model.fit(image[0])
    with pytest.raises(mf.ModelError, match=r"labels must have the image's shape \(3, 4\), got \(4, 3\)"):
        model.fit(image, np.zeros((4, 3)))
    with pytest.raises(mf.ModelError, match=r"-1 \(none\) or classes 0 to 1, got 2"):
        model.fit(image, np.full((3, 4), 2))
    with pytest.raises(mf.ModelError, match="no pixel of class 1; label at least one of each"):
        model.fit(image, np.zeros((3, 4), int))
    with pytest.raises(mf.ModelError, match="finite numbers, or nan"):
        model.fit(np.full((3, 4), np.inf))
    with pytest.raises(mf.ModelError, match="pixels that are not nan"):
        model.fit(np.full((3, 4), np.nan))
    with pytest.raises(mf.ModelError, match="an image of 1 different colours cannot start 2 classes"):
        model.fit(np.ones((3, 4)))
    with pytest.raises(mf.ModelError, match="lower n_bins or take observation='gaussian'"):
        ImageSegmentation(observation="histogram", n_bins=64).fit(np.random.default_rng(0).random((3, 4, 4)))
    model.fit(image, (image > 0.5).astype(int))
    with pytest.raises(mf.ModelError, match="fitted to images of 1 channels, got one of 3"):
        model.predict(np.zeros((3, 4, 3)))


def test_few_sweeps_in_each_step_of_em_end_where_many_do():
    rng = np.random.default_rng(4)
    truth = (np.indices((40, 50)).sum(axis=0) // 23) % 3
    image = np.array([0.0, 1.0, 2.2])[truth] + rng.normal(scale=0.5, size=truth.shape)
    # A few pixels whose colours rule all classes but one out, so far that messages in linear space would vanish.
    image[::13, ::17] += 20.0
    quick = ImageSegmentation(3, 1.0, rng=0).fit(image)
    whole = mf.methods.BeliefPropagation(max_iterations=50, tolerance=1e-3)
    slow = ImageSegmentation(3, 1.0, rng=0, inference=whole).fit(image)
    assert quick.converged_
    assert quick.objective_[-1] == pytest.approx(slow.objective_[-1], abs=2e-4 * image.size)
    np.testing.assert_allclose(quick.observation_.means, slow.observation_.means, atol=0.02)
    assert (quick.predict(image) != slow.predict(image)).mean() < 0.01


def test_decode_of_an_image_keeps_known_labels():
    rng = np.random.default_rng(5)
    truth = (np.arange(30) // 11)[None, :] * np.ones((20, 1), int)
    image = truth + rng.normal(scale=0.4, size=truth.shape)
    model = ImageSegmentation(3, 1.0).fit(image, truth)
    labels = np.full(truth.shape, -1)
    labels[3:6, 3:6] = 2
    found = model.decode(image, "fusion_moves", labels=labels)
    assert found.gap < np.inf
    picture = found.states.reshape(truth.shape)
    assert (picture[labels >= 0] == 2).all()
    np.testing.assert_array_equal(model.predict(image, "fusion_moves", labels=labels), picture)
