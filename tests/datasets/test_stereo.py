"""Pairs of views: dots with known disparities, and the Middlebury pairs where they lie."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import markovfield as mf
from markovfield.datasets.stereo import random_dots, stereo_pair
from tests.data import data_path


def test_dots_match_where_the_disparity_says():
    pair = random_dots((24, 40), (1, 4, 7), noise=0.0, rng=0)
    assert pair.left.shape == pair.right.shape == pair.disparity.shape == (24, 40)
    assert pair.max_disparity == 7
    known = np.isfinite(pair.disparity)
    assert set(np.unique(pair.disparity[known])) == {1.0, 4.0, 7.0}
    row, column = np.nonzero(known)
    at = column - pair.disparity[known].astype(int)
    np.testing.assert_array_equal(pair.left[row, column], pair.right[row, at])
    # No two pixels of the left are one on the right, and what is not known is hidden: most is known.
    assert len(set(zip(row.tolist(), at.tolist(), strict=True))) == len(row)
    assert 0.75 < known.mean() < 1.0
    # The nearest square hides what is left of it, never the other way round.
    assert known[12, 15:25].all()


def test_dots_have_noise_and_a_seed():
    clean, noisy, again = (random_dots(noise=n, rng=3) for n in (0.0, 0.1, 0.1))
    np.testing.assert_array_equal(noisy.left, again.left)
    assert 0.06 < np.std(noisy.right - clean.right) < 0.11
    assert noisy.left.min() >= 0.0 and noisy.left.max() <= 1.0


@pytest.mark.parametrize(
    ("name", "shape", "largest"), [("tsukuba", (288, 384), 14), ("venus", (383, 434), 20), ("teddy", (375, 450), 53)]
)
def test_middlebury_pairs(name: str, shape: tuple[int, int], largest: int):
    data_path("stereo", name, "im2.png")
    pair = stereo_pair(name)
    assert pair.left.shape == pair.right.shape == (*shape, 3)
    assert pair.disparity.shape == shape and pair.max_disparity == largest
    assert pair.left.min() >= 0.0 and 0.5 < pair.left.max() <= 1.0
    # Views agree far better at the true disparities than at the same ones the other way.
    known = np.isfinite(pair.disparity)
    rows, columns = np.nonzero(known)
    shift = np.rint(pair.disparity[known]).astype(int)
    inside = (columns - shift >= 0) & (columns + shift < shape[1])
    rows, columns, shift = rows[inside], columns[inside], shift[inside]
    apart = [np.abs(pair.left[rows, columns] - pair.right[rows, columns + s]).mean() for s in (-shift, shift)]
    assert apart[0] < 0.5 * apart[1]


def test_half_size():
    data_path("stereo", "tsukuba", "im2.png")
    whole, half = stereo_pair("tsukuba"), stereo_pair("tsukuba", step=2)
    assert half.left.shape == (144, 192, 3) and half.max_disparity == 7
    np.testing.assert_allclose(half.left[3, 5], whole.left[6:8, 10:12].mean(axis=(0, 1)))
    np.testing.assert_array_equal(half.disparity, whole.disparity[::2, ::2] / 2)


def test_images_given_by_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    image = pytest.importorskip("PIL.Image")
    folder = tmp_path / "stereo" / "cones"
    folder.mkdir(parents=True)
    rng = np.random.default_rng(0)
    colour = rng.integers(0, 256, (6, 9, 3), np.uint8)
    grey = np.zeros((6, 9), np.uint8)
    grey[:, 4:] = 8
    monkeypatch.setenv("MARKOVFIELD_DATA", str(tmp_path))
    with pytest.raises(FileNotFoundError, match=r"no image cones/im2 .* set MARKOVFIELD_DATA .* random_dots\(\)"):
        stereo_pair("cones")
    image.fromarray(colour).save(folder / "im2.ppm")
    image.fromarray(colour[:, ::-1]).save(folder / "im6.png")
    image.fromarray(grey).save(folder / "disp2.pgm")
    pair = stereo_pair("cones")
    np.testing.assert_allclose(pair.left * 255, colour)
    np.testing.assert_allclose(pair.right * 255, colour[:, ::-1])
    assert np.isnan(pair.disparity[:, :4]).all() and (pair.disparity[:, 4:] == 2.0).all()
    image.fromarray(colour[:4]).save(folder / "im6.png")
    with pytest.raises(mf.ModelError, match=r"'cones' must be of one size, got \(6, 9\), \(4, 9\), \(6, 9\)"):
        stereo_pair("cones")


def test_what_is_refused():
    with pytest.raises(mf.ModelError, match=r"knows tsukuba, venus, .* not 'art'"):
        stereo_pair("art")
    with pytest.raises(mf.ModelError, match=r"step=...\) must be at least 1, got 0"):
        stereo_pair(step=0)
    with pytest.raises(mf.ModelError, match=r"at least 8 rows and columns, got \(4, 90\)"):
        random_dots((4, 90))
    with pytest.raises(mf.ModelError, match=r"rise from at least 0 to below 15, .* got \(3, 2\)"):
        random_dots((20, 30), (3, 2))
    with pytest.raises(mf.ModelError, match=r"got \(2, 20\)"):
        random_dots((20, 30), (2, 20))
    with pytest.raises(mf.ModelError, match="must be a standard deviation, got -1"):
        random_dots(noise=-1)
