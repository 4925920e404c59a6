"""Images drawn by code, and photographs where there are any."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import markovfield as mf
from markovfield.datasets.patterns import binary_patterns, landscape, photograph
from tests.data import data_path


def test_patterns_are_spins_and_differ():
    images = binary_patterns()
    assert images.shape == (7, 50, 50) and images.dtype == np.int8
    assert set(np.unique(images)) == {-1, 1}
    flat = images.reshape(7, -1).astype(float)
    overlap = flat @ flat.T / 2500
    assert np.abs(overlap - np.eye(7)).max() < 0.75
    # Ink and paper both cover a good part.
    assert ((flat > 0).mean(axis=1) > 0.1).all() and ((flat > 0).mean(axis=1) < 0.9).all()
    np.testing.assert_array_equal(binary_patterns(["tree"])[0], images[2])
    assert binary_patterns(["face", "rings"], size=20).shape == (2, 20, 20)


def test_a_landscape_has_every_class():
    scene = landscape(rng=1)
    assert scene.image.shape == (120, 160, 3)
    assert scene.image.min() >= 0.0 and scene.image.max() <= 1.0
    share = np.bincount(scene.labels.ravel()) / scene.labels.size
    assert len(share) == len(scene.classes) == 4 and share.min() > 0.03
    np.testing.assert_array_equal(landscape(rng=1).image, scene.image)
    # Without noise the sky is blue.
    sky = landscape(noise=0.0).image[scene.labels == 0]
    assert (sky.argmax(axis=1) == 2).all()


def test_photographs():
    data_path("images", "horse323_image.png")
    image, mask = photograph("horse323_image.png"), photograph("horse323_mask.png")
    assert image.shape == (*mask.shape, 3) and image.dtype == np.float64
    assert image.min() >= 0.0 and 0.5 < image.max() <= 1.0


def test_a_photograph_given_by_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    plt = pytest.importorskip("matplotlib.pyplot")
    (tmp_path / "images").mkdir()
    plt.imsave(tmp_path / "images" / "grey.png", np.linspace(0, 1, 12).reshape(3, 4), cmap="gray")
    monkeypatch.setenv("MARKOVFIELD_DATA", str(tmp_path))
    assert photograph("grey.png").shape[:2] == (3, 4)
    with pytest.raises(FileNotFoundError, match=r"no image 'other.png' .* set MARKOVFIELD_DATA"):
        photograph("other.png")


def test_what_is_refused():
    with pytest.raises(mf.ModelError, match=r"knows face, house, tree.* not 'cat'"):
        binary_patterns(["cat"])
    with pytest.raises(mf.ModelError, match="at least 8, got 4"):
        binary_patterns(size=4)
    with pytest.raises(mf.ModelError, match="at least 8 rows and columns"):
        landscape((4, 100))
    with pytest.raises(mf.ModelError, match="must be a standard deviation, got -1"):
        landscape(noise=-1)
