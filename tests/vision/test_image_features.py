"""Features of pixels and edges against loops over pixels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import markovfield as mf
from markovfield.vision.image_features import (
    DIRECTIONS,
    edge_features,
    grid_edges,
    node_feature_names,
    node_features,
    one_hot_colours,
    stack_images,
)

SIZES = [(3, 4), (1, 5), (6, 1), (1, 1), (5, 5)]


def drawn(channels: int | None = 2, sizes: list[tuple[int, int]] = SIZES, rng: int = 0) -> list[Any]:
    generator = np.random.default_rng(rng)
    return [generator.normal(size=size if channels is None else (*size, channels)) for size in sizes]


def clipped(image: np.ndarray, row: int, column: int) -> np.ndarray:
    rows, columns = image.shape[:2]
    return image[min(max(row, 0), rows - 1), min(max(column, 0), columns - 1)]


def gaussian(scale: float) -> dict[int, float]:
    reach = int(4 * scale + 0.5)
    weights = {d: float(np.exp(-0.5 * (d / scale) ** 2)) for d in range(-reach, reach + 1)}
    return {d: w / sum(weights.values()) for d, w in weights.items()}


def blurred(image: np.ndarray, row: int, column: int, scale: float) -> np.ndarray:
    weights = gaussian(scale)
    return sum(a * b * clipped(image, row + d, column + e) for d, a in weights.items() for e, b in weights.items())


def steepness(image: np.ndarray, row: int, column: int, scale: float) -> np.ndarray:
    """Size of the gradient of the image under the derivative of the Gaussian."""
    weights = gaussian(scale)
    down = right = 0.0
    for d, a in weights.items():
        for e, b in weights.items():
            value = a * b * clipped(image, row + d, column + e) / scale**2
            down, right = down + d * value, right + e * value
    return np.hypot(down, right)


def naive(image: np.ndarray, row: int, column: int, kind: str, scales: list[float], window: int) -> np.ndarray:
    rows, columns = image.shape[:2]
    if kind == "constant":
        return np.ones(1)
    if kind == "values":
        return image[row, column]
    if kind == "position":
        return np.array([2 * (row + 0.5) / rows - 1, 2 * (column + 0.5) / columns - 1])
    if kind == "neighbourhood":
        reach = range(-(window // 2), window // 2 + 1)
        inside = lambda r, c: 0 <= r < rows and 0 <= c < columns  # noqa: E731
        near = [(row + d, column + e) for d in reach for e in reach]
        return np.concatenate([image[r, c] if inside(r, c) else np.zeros(image.shape[2]) for r, c in near])
    found = []
    for scale in scales:
        if kind == "blurred":
            found.append(blurred(image, row, column, scale))
        elif kind == "gradient":
            found.append(steepness(image, row, column, scale))
        else:
            mean = blurred(image, row, column, scale)
            found.append(blurred(image**2, row, column, scale) - mean**2)
    return np.concatenate(found)


KINDS = ["constant", "values", "blurred", "gradient", "variance", "position", "neighbourhood"]


@pytest.mark.parametrize("kinds", [*([kind] for kind in KINDS), ["position", "neighbourhood", "blurred", "constant"]])
@pytest.mark.parametrize("window", [1, 3, 5])
def test_node_features_equal_a_loop(kinds: list[str], window: int):
    images, scales = drawn(), [0.8, 1.7]
    found = node_features(stack_images(images), kinds, scales=scales, window=window)
    wanted = [
        np.concatenate([naive(image, row, column, kind, scales, window) for kind in kinds])
        for image in images
        for row in range(image.shape[0])
        for column in range(image.shape[1])
    ]
    np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-9)
    assert found.shape[1] == len(node_feature_names(2, kinds, scales=scales, window=window))


def test_names_tell_which_pixel():
    names = node_feature_names(2, ["values", "neighbourhood"], window=3)
    assert len(set(names)) == 2 + 18
    image = np.zeros((3, 3, 2))
    image[0, 2, 1] = 1
    row = node_features(stack_images([image]), ["values", "neighbourhood"])[4]
    assert [name for name, value in zip(names, row, strict=True) if value] == ["value 1 at -1,+1"]


def test_images_of_grey_and_bytes():
    grey = drawn(None)
    stacked = stack_images(grey)
    assert stacked.values.shape == (sum(image.size for image in grey), 1)
    for image, again in zip(grey, stacked.split(stacked.values), strict=True):
        np.testing.assert_array_equal(again[..., 0], image)
    assert stack_images([np.array([[255, 51]], np.uint8)]).values.ravel().tolist() == [1.0, 0.2]
    assert stack_images([np.array([[True, False]])]).values.ravel().tolist() == [1.0, 0.0]


@pytest.mark.parametrize("connectivity", [4, 8])
def test_edges_equal_a_loop(connectivity: int):
    edges = grid_edges(SIZES, connectivity)
    wanted, direction, offsets, start = [], [], [0], 0
    for rows, columns in SIZES:
        for k, (down, right) in enumerate(list(DIRECTIONS.values())[: connectivity // 2]):
            for row in range(rows):
                for column in range(columns):
                    if row + down < rows and 0 <= column + right < columns:
                        at = start + row * columns + column
                        wanted.append([at, at + down * columns + right])
                        direction.append(k)
        start += rows * columns
        offsets.append(len(wanted))
    assert edges.ends.tolist() == wanted
    assert edges.direction.tolist() == direction
    assert edges.offsets.tolist() == offsets
    assert (edges.ends[:, 0] < edges.ends[:, 1]).all()


@pytest.mark.parametrize("connectivity", [4, 8])
@pytest.mark.parametrize("beta", [None, 0.3])
@pytest.mark.parametrize("directional", [False, True])
def test_edge_features_equal_a_loop(connectivity: int, beta: float | None, directional: bool):
    images = stack_images([*drawn(), np.zeros((2, 2, 2))])
    edges = grid_edges(images.shapes, connectivity)
    kinds = ["contrast", "values", "constant", "difference"]
    found = edge_features(images, edges, kinds, beta=beta, directional=directional)
    for i in range(len(images.shapes)):
        span = range(edges.offsets[i], edges.offsets[i + 1])
        squared = {
            e: float(((images.values[edges.ends[e, 0]] - images.values[edges.ends[e, 1]]) ** 2).sum()) for e in span
        }
        mean = sum(squared.values()) / len(squared) if squared else 0.0
        for e in span:
            s, t = (images.values[p] for p in edges.ends[e])
            own = beta if beta is not None else 1 / (2 * mean) if mean else 0.0
            plain = np.concatenate([[np.exp(-own * squared[e])], s, t, [1.0], np.abs(s - t)])
            if directional:
                plain = np.kron(np.eye(connectivity // 2)[edges.direction[e]], plain)
            np.testing.assert_allclose(found[e], plain, rtol=1e-12, atol=1e-12)


def test_a_list_is_its_images_one_by_one():
    images = drawn()
    together = stack_images(images)
    edges = grid_edges(together.shapes, 8)
    nodes, pairs = node_features(together, KINDS), edge_features(together, edges)
    for i, image in enumerate(images):
        alone = stack_images([image])
        span = slice(together.offsets[i], together.offsets[i + 1])
        np.testing.assert_allclose(nodes[span], node_features(alone, KINDS), rtol=1e-12)
        own = grid_edges(alone.shapes, 8)
        span = slice(edges.offsets[i], edges.offsets[i + 1])
        np.testing.assert_array_equal(edges.ends[span] - together.offsets[i], own.ends)
        np.testing.assert_allclose(pairs[span], edge_features(alone, own), rtol=1e-12)


def test_one_pixel_has_no_edges_but_features():
    images = stack_images([[[0.5]]])
    edges = grid_edges(images.shapes, 8)
    assert edges.ends.shape == (0, 2) and edge_features(images, edges, directional=True).shape == (0, 8)
    assert np.isfinite(node_features(images, KINDS)).all()


def test_colours_as_channels():
    data = mf.datasets.make_snakes(3, rng=0)
    channels, palette = one_hot_colours(data.images)
    assert palette.shape == (5, 3)
    for code, image in zip(channels, data.images, strict=True):
        assert code.shape == (*image.shape[:2], 5) and (code.sum(axis=2) == 1).all()
        np.testing.assert_array_equal(palette[code.argmax(axis=2)], image)
    other, same = one_hot_colours([np.zeros((2, 2, 3), np.uint8)], palette)
    assert not other[0].any() and same is not None
    with pytest.raises(mf.ModelError, match="at most 256 different colours, got 400"):
        one_hot_colours([np.arange(400).reshape(20, 20)])


@pytest.mark.parametrize(
    ("images", "message"),
    [
        ([], "at least one image, got none"),
        ([np.zeros((2, 2)), np.zeros(3)], r"images\[1\] must be \[rows, columns\].* got shape \(3,\)"),
        ([np.zeros((2, 2)), np.zeros((0, 3))], r"images\[1\] .* with pixels, got shape \(0, 3\)"),
        ([np.zeros((2, 2, 3)), np.zeros((2, 2))], r"images\[1\] must have 3 channels as others have, got 1"),
        ([np.zeros((2, 2)), np.array([[1, 2], [3, np.inf]])], r"images\[1\] .* got inf at row 1, column 1"),
        ([np.array([["a"]])], r"images\[0\] must be numbers"),
    ],
)
def test_images_that_are_refused(images: list[Any], message: str):
    with pytest.raises(mf.ModelError, match=message):
        stack_images(images)


def test_settings_that_are_refused():
    images = stack_images(drawn())
    for kinds in (["colour"], [], "values", ["values", "values"]):
        with pytest.raises(mf.ModelError, match="node_features must be a list of different ones of constant, values"):
            node_features(images, kinds)
    with pytest.raises(mf.ModelError, match="edge_features must be a list"):
        edge_features(images, grid_edges(images.shapes), ["colour"])
    with pytest.raises(mf.ModelError, match="window must be an odd number of pixels, got 2"):
        node_features(images, window=2)
    with pytest.raises(mf.ModelError, match="scales must be positive"):
        node_features(images, scales=[0])
    with pytest.raises(mf.ModelError, match="connectivity must be 4 or 8, got 6"):
        grid_edges(SIZES, 6)
