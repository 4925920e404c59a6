"""Stereo matching: costs are their definition, the field is Murphy's 19.68 to 19.70, known disparities come back."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import markovfield as mf
from markovfield.datasets.stereo import random_dots, stereo_pair
from markovfield.factors.factor_kinds import DISTANCE
from markovfield.inference.graph_cuts.move_making import AlphaBetaSwap, AlphaExpansion
from markovfield.vision.stereo import StereoMatching, disparity_error
from tests.data import data_path
from tests.oracle import Oracle


def views(rows: int, columns: int, channels: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    shape = (rows, columns) if channels == 0 else (rows, columns, channels)
    return rng.random(shape), rng.random(shape)


def half_pixel_range(row: np.ndarray, x: int) -> tuple[float, float]:
    near = [row[x], (row[x] + row[max(x - 1, 0)]) / 2, (row[x] + row[min(x + 1, len(row) - 1)]) / 2]
    return min(near), max(near)


def pixel_cost(model: StereoMatching, left: np.ndarray, right: np.ndarray, y: int, x: int, d: int) -> float:
    """The cost of one pixel by itself, channel by channel."""
    total = 0.0
    for c in range(left.shape[2]):
        a, b = left[y, x, c], right[y, x - d, c]
        if model.data == "absolute":
            total += abs(a - b) / model.noise
        elif model.data == "squared":
            total += (a - b) ** 2 / (2 * model.noise**2)
        else:
            low_b, high_b = half_pixel_range(right[y, :, c], x - d)
            low_a, high_a = half_pixel_range(left[y, :, c], x)
            total += min(max(0.0, a - high_b, low_b - a), max(0.0, b - high_a, low_a - b)) / model.noise
    return min(total / left.shape[2], model.data_truncation)


def slow_costs(model: StereoMatching, left: np.ndarray, right: np.ndarray) -> np.ndarray:
    left, right = (v.reshape(*v.shape[:2], -1) for v in (left, right))
    rows, columns = left.shape[:2]
    out = np.full((rows, columns, model.max_disparity + 1), np.nan)
    half = model.window // 2
    for y in range(rows):
        for x in range(columns):
            for d in range(min(x, model.max_disparity) + 1):
                around = [
                    pixel_cost(model, left, right, v, u, d)
                    for v in range(max(0, y - half), min(rows, y + half + 1))
                    for u in range(max(d, x - half), min(columns, x + half + 1))
                ]
                out[y, x, d] = np.mean(around)
    missing = model.data_truncation if np.isfinite(model.data_truncation) else np.nanmean(out)
    return np.where(np.isnan(out), missing, out)


@pytest.mark.parametrize("channels", [0, 3])
@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"data": "squared", "noise": 0.4, "data_truncation": np.inf},
        {"data": "birchfield_tomasi", "noise": 0.1},
        {"window": 3, "noise": 0.2},
        {"window": 5, "data": "birchfield_tomasi", "data_truncation": np.inf},
    ],
)
def test_costs_are_their_definition(settings: dict[str, Any], channels: int):
    left, right = views(5, 7, channels, 0)
    model = StereoMatching(4, **settings)
    found = model.costs(left, right)
    assert found.shape == (5, 7, 5)
    np.testing.assert_allclose(found, slow_costs(model, left, right), atol=1e-12)


def test_bytes_count_as_255ths():
    left, right = (np.rint(255 * v).astype(np.uint8) for v in views(3, 6, 3, 1))
    model = StereoMatching(3, contrast=1.0)
    whole, parts = model.to_factor_graph(left, right), model.to_factor_graph(left / 255.0, right / 255.0)
    np.testing.assert_allclose(whole.log_tables, parts.log_tables, atol=1e-12)


def pair_cost(model: StereoMatching, a: int, b: int) -> float:
    d = abs(a - b)
    return {
        "gaussian": d**2,
        "truncated_quadratic": min(d**2, model.truncation**2),
        "truncated_linear": min(d, model.truncation),
        "potts": float(d > 0),
    }[model.smoothness]


@pytest.mark.parametrize("smoothness", ["gaussian", "truncated_quadratic", "truncated_linear", "potts"])
@pytest.mark.parametrize(("truncation", "contrast"), [(1.5, 0.0), (2.0, 0.0), (0.4, 0.7)])
def test_the_field_is_its_definition(smoothness: str, truncation: float, contrast: float):
    left, right = views(2, 4, 0, 2)
    model = StereoMatching(
        3, smoothness=smoothness, weight=0.7, truncation=truncation, contrast=contrast, noise=0.2, window=3
    )
    costs = slow_costs(model, left, right).reshape(8, 4)
    factors: list[Any] = [((s,), -costs[s]) for s in range(8)]
    edges = [(s, t) for s in range(8) for t in range(s + 1, 8) if abs(s // 4 - t // 4) + abs(s % 4 - t % 4) == 1]
    squared = np.array([(left.flat[s] - left.flat[t]) ** 2 for s, t in edges])
    # Weights give way in steps of a 32nd.
    weights = 0.7 * np.rint(32 * np.exp(-contrast * squared / (2 * squared.mean()))) / 32
    for (s, t), weight in zip(edges, weights, strict=True):
        factors.append(((s, t), -weight * np.array([[pair_cost(model, a, b) for b in range(4)] for a in range(4)])))
    truth = Oracle([4] * 8, factors)
    graph = model.to_factor_graph(left, right)
    rows = np.random.default_rng(0).choice(len(truth.states), 400, replace=False)
    np.testing.assert_allclose(graph.score(truth.states[rows]), truth.scores[rows].astype(float), atol=1e-9)
    found = model.predict(left, right)
    assert found.shape == (2, 4) and found.dtype == np.int64
    assert graph.score(found.ravel()) == pytest.approx(float(truth.scores.max()))
    probabilities = model.predict_marginals(left, right)
    assert probabilities.shape == (2, 4, 4)
    for s in (0, 3, 6):
        np.testing.assert_allclose(probabilities[s // 4, s % 4], truth.marginal(s), atol=1e-9)


@pytest.mark.parametrize("smoothness", ["gaussian", "truncated_quadratic", "truncated_linear", "potts"])
def test_many_disparities_make_distance_potentials_with_the_same_scores(smoothness: str):
    left, right = views(3, 60, 0, 3)
    model = StereoMatching(40, smoothness=smoothness, truncation=3.3, contrast=0.5)
    graph = model.to_factor_graph(left, right)
    m = 3 * 59 + 2 * 60
    assert (graph.structure.kind[:m] == DISTANCE).all()
    rng = np.random.default_rng(4)
    states = rng.integers(0, 41, (6, 180))
    costs = model.costs(left, right).reshape(180, 41)
    at = np.arange(180).reshape(3, 60)
    down = np.stack([at[:-1].ravel(), at[1:].ravel()], axis=1)
    across = np.stack([at[:, :-1].ravel(), at[:, 1:].ravel()], axis=1)
    edges = np.concatenate([down, across])
    squared = (left.ravel()[edges[:, 0]] - left.ravel()[edges[:, 1]]) ** 2
    weights = model.weight * np.rint(32 * np.exp(-0.5 * squared / (2 * squared.mean()))) / 32
    for row in states:
        pairs = sum(w * pair_cost(model, row[s], row[t]) for w, (s, t) in zip(weights, edges.tolist(), strict=True))
        expected = -costs[np.arange(180), row].sum() - pairs
        assert float(graph.score(row)) == pytest.approx(expected)


def test_no_prior_is_the_best_cost_of_each_pixel():
    left, right = views(4, 9, 3, 5)
    model = StereoMatching(4, weight=0.0, data_truncation=np.inf)
    np.testing.assert_array_equal(model.predict(left, right), model.costs(left, right).argmin(axis=2))


@pytest.mark.parametrize(
    ("smoothness", "method"),
    [
        ("truncated_linear", AlphaExpansion()),
        ("truncated_quadratic", AlphaBetaSwap()),
        ("potts", AlphaExpansion()),
        ("truncated_quadratic", mf.methods.BeliefPropagation(max_iterations=60, damping=0.3, tolerance=1e-2)),
    ],
)
@pytest.mark.filterwarnings("ignore:.*did not converge")
def test_known_disparities_come_back(smoothness: str, method: Any):
    pair = random_dots((30, 50), (2, 5), noise=0.05, rng=6)
    model = StereoMatching(8, smoothness=smoothness, noise=0.07)
    alone = disparity_error(model.costs(pair.left, pair.right).argmin(axis=2), pair.disparity, threshold=0.5)
    found = disparity_error(model.predict(pair.left, pair.right, method), pair.disparity, threshold=0.5)
    assert found < 0.03
    assert alone > 0.2


@pytest.mark.filterwarnings("ignore:.*did not converge")
def test_the_gaussian_prior_blurs_jumps():
    pair = random_dots((30, 50), (2, 8), noise=0.03, rng=7)
    errors = []
    for smoothness in ("gaussian", "truncated_quadratic"):
        model = StereoMatching(10, smoothness=smoothness, weight=0.4, noise=0.05)
        answer = model.predict_marginals(
            pair.left, pair.right, mf.methods.BeliefPropagation(max_iterations=40, tolerance=1e-3)
        )
        errors.append(disparity_error(answer.argmax(axis=2), pair.disparity))
    assert errors[1] < 0.02
    assert errors[0] > 3 * errors[1] and errors[0] > 0.04


def test_tsukuba():
    data_path("stereo", "tsukuba", "im2.png")
    pair = stereo_pair("tsukuba", step=2)
    model = StereoMatching(pair.max_disparity, smoothness="truncated_linear", weight=1.2, data="birchfield_tomasi")
    graph = model.to_factor_graph(pair.left, pair.right)
    alone = model.costs(pair.left, pair.right).argmin(axis=2)
    answer = mf.decode(graph, method=AlphaExpansion())
    found = answer.states.reshape(alone.shape)
    # At half size an error of half a disparity is one of the whole image's.
    errors = [disparity_error(x, pair.disparity, threshold=0.5) for x in (alone, found)]
    assert errors[1] < 0.08
    assert errors[0] > 0.3
    assert answer.score > float(graph.score(alone.ravel()))


def test_disparity_error():
    truth = np.array([[1.0, 2.0, np.nan], [4.0, 5.0, 6.0]])
    found = np.array([[1, 3, 9], [4, 7, 8]])
    assert disparity_error(found, truth) == pytest.approx(2 / 5)
    assert disparity_error(found, truth, threshold=0.5) == pytest.approx(3 / 5)
    assert disparity_error(found, truth, threshold=2) == 0.0
    grey = np.where(np.isnan(truth), 0, 16 * truth)
    assert disparity_error(found, grey, scale=16) == pytest.approx(2 / 5)


def test_the_manners_of_scikit_learn():
    from sklearn.base import clone

    model = StereoMatching(9, weight=2.0, window=3)
    assert clone(model).get_params() == model.get_params()
    assert model.set_params(contrast=1.0) is model and model.contrast == 1.0
    with pytest.raises(mf.ModelError, match="has no parameter 'sigma'; it has max_disparity, smoothness"):
        model.set_params(sigma=1)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"max_disparity": 0}, r"max_disparity=...\) must be an integer of at least 1, got 0"),
        ({"max_disparity": 2.5}, r"max_disparity=...\) must be an integer of at least 1, got 2.5"),
        ({"smoothness": "huber"}, r"smoothness=...\) must be one of 'gaussian', .* got 'huber'"),
        ({"weight": -1.0}, r"weight=...\) must be a number of at least zero, got -1"),
        ({"truncation": 0}, r"truncation=...\) must be above zero"),
        ({"data": "census"}, r"data=...\) must be one of 'absolute', .* got 'census'"),
        ({"noise": 0.0}, r"noise=...\) must be a number above zero"),
        ({"data_truncation": np.nan}, r"data_truncation=...\) must be above zero, got nan"),
        ({"window": 4}, r"window=...\) must be an odd number of at least 1, got 4"),
        ({"contrast": -0.1}, r"contrast=...\) must be a number of at least zero"),
    ],
)
def test_settings_that_are_refused(settings: dict[str, Any], message: str):
    with pytest.raises(mf.ModelError, match=message):
        StereoMatching(**({"max_disparity": 3} | settings)).to_factor_graph(*views(4, 8, 0, 0))


def test_views_that_are_refused():
    left, right = views(4, 8, 3, 0)
    model = StereoMatching(3)
    with pytest.raises(mf.ModelError, match=r"one shape, got \(4, 8, 3\) on the left and \(4, 7, 3\) on the right"):
        model.predict(left, right[:, 1:])
    with pytest.raises(mf.ModelError, match=r"one shape, got \(4, 8\) on the left and \(4, 8, 3\)"):
        model.costs(left[..., 0], right)
    with pytest.raises(mf.ModelError, match=r"a view is \[rows, columns\] or .* got shape \(8,\)"):
        model.costs(left[0, :, 0], right[0, :, 0])
    with pytest.raises(mf.ModelError, match=r"a view is .* got shape \(0, 8, 3\)"):
        model.costs(left[:0], right[:0])
    with pytest.raises(mf.ModelError, match="finite numbers, from 0 to 1, or bytes"):
        model.costs(np.where(left > 0.9, np.nan, left), right)
    with pytest.raises(mf.ModelError, match="max_disparity 8 needs views of more columns than that, got 8"):
        StereoMatching(8).costs(left, right)
    with pytest.raises(mf.ModelError, match=r"need one shape, got \(4, 8\) and \(4, 7\)"):
        disparity_error(np.zeros((4, 8)), np.zeros((4, 7)))
    with pytest.raises(mf.ModelError, match="no pixel's true disparity is known"):
        disparity_error(np.zeros((4, 8)), np.zeros((4, 8)), scale=4)
    with pytest.raises(mf.ModelError, match=r"scale=...\) must be a number above zero, got 0"):
        disparity_error(np.zeros((4, 8)), np.zeros((4, 8)), scale=0)


def test_decode_says_how_good_the_labels_are():
    pair = random_dots((24, 40), noise=0.1, rng=0)
    model = StereoMatching(pair.max_disparity, smoothness="truncated_linear")
    found = model.decode(pair.left, pair.right, "fusion_moves")
    assert isinstance(found, mf.Decoding) and found.gap < np.inf and found.converged
    labels = model.predict(pair.left, pair.right, "fusion_moves")
    np.testing.assert_array_equal(labels, found.states.reshape(24, 40))
    assert found.score == pytest.approx(float(model.to_factor_graph(pair.left, pair.right).score(found.states)))


@pytest.mark.parametrize(
    ("method", "says"),
    [
        (mf.methods.TRWS(max_iterations=1), r"trws had when it was stopped, and the best may cost \d+% less"),
        (mf.methods.BeliefPropagation(max_iterations=1), "nothing bounds how far from the best"),
    ],
)
def test_labels_that_are_not_final_say_so_once(method: Any, says: str):
    rng = np.random.default_rng(0)
    left, right = rng.random((12, 30)), rng.random((12, 30))
    model = StereoMatching(6, weight=3.0)
    with pytest.warns(UserWarning, match=says) as told:
        model.predict(left, right, method)
    assert len(told) == 1
    with pytest.warns(UserWarning, match="did not converge in 1 iterations"):
        found = model.decode(left, right, method)
    assert not found.converged


@pytest.mark.filterwarnings("error")
def test_labels_of_a_picture_by_auto_are_said_without_a_warning():
    pair = random_dots((60, 80), noise=0.1, rng=1)
    model = StereoMatching(pair.max_disparity)
    found = model.decode(pair.left, pair.right)
    assert found.method == "portfolio" and found.gap <= 0.02 * abs(found.score)
    expansion = disparity_error(model.predict(pair.left, pair.right, "alpha_expansion"), pair.disparity)
    assert disparity_error(found.states.reshape(60, 80), pair.disparity) <= expansion + 0.01
