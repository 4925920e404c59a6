"""Pictures of lattices: spins, regions by size, films."""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest
from PIL import Image

import markovfield as mf
from markovfield.plot.fields import _areas, animate, regions, spins


def shown(ax: plt.Axes) -> np.ndarray:
    return np.asarray(ax.images[0].get_array())


def colours(ax: plt.Axes) -> np.ndarray:
    image = ax.images[0]
    return image.cmap(image.norm(image.get_array()))[..., :3]


def test_spins_are_light_and_dark():
    state = np.array([[-1, 1], [0, 1]])
    ax = spins(state, title="spins")
    assert shown(ax).tolist() == [[0, 2], [1, 2]]
    assert ax.get_title(loc="left") == "spins"
    light = colours(ax).sum(axis=-1)
    assert light[0, 1] < light[1, 0] < light[0, 0]
    # Without -1, zero is down; nan is none yet in either.
    assert shown(spins(np.array([[0, 1, np.nan]]))).tolist() == [[0, 2, 1]]
    assert shown(spins(np.array([[True, False]]))).tolist() == [[2, 0]]
    _, ax = plt.subplots()
    assert spins(state, ax=ax) is ax


def flood(labels: np.ndarray, periodic: tuple[bool, bool]) -> np.ndarray:
    """Sizes of regions by walking."""
    rows, columns = labels.shape
    size = np.zeros(labels.shape, int)
    for start in np.ndindex(rows, columns):
        found, edge = {start}, [start]
        while edge:
            r, c = edge.pop()
            for dr, dc in ((0, 1), (1, 0), (0, -1), (-1, 0)):
                to = [r + dr, c + dc]
                for axis, length in enumerate((rows, columns)):
                    if periodic[axis]:
                        to[axis] %= length
                site = (to[0], to[1])
                inside = 0 <= to[0] < rows and 0 <= to[1] < columns
                if inside and site not in found and labels[site] == labels[start]:
                    found.add(site)
                    edge.append(site)
        size[start] = len(found)
    return size


@pytest.mark.parametrize("periodic", [(False, False), (True, False), (True, True)])
def test_sizes_of_regions(periodic: tuple[bool, bool]):
    labels = np.random.default_rng(0).integers(0, 3, (9, 12))
    np.testing.assert_array_equal(_areas(labels, periodic), flood(labels, periodic))


def test_large_regions_are_blue_and_small_ones_red():
    labels = np.zeros((20, 20), int)
    labels[5, 5] = 1
    ax = regions(labels, title="regions")
    red, _, blue = colours(ax)[5, 5]
    assert red > 2 * blue
    red, _, blue = colours(ax)[0, 0]
    assert blue > 2 * red
    # One label everywhere, and labels that are not numbers.
    assert shown(regions(np.zeros((4, 4)))).max() == pytest.approx(1.0)
    assert len(np.unique(shown(regions([["a", "a"], ["b", "c"]])))) == 2
    assert shown(regions([[7]])).tolist() == [[0.0]]


def test_a_film_is_written(tmp_path: Path):
    rng = np.random.default_rng(0)
    frames = [rng.integers(0, 2, (12, 16)) for _ in range(4)]
    path = tmp_path / "film.gif"
    animate(frames, path, titles=[f"sweep {i}" for i in range(4)], seconds=0.05)
    with Image.open(path) as film:
        assert film.format == "GIF" and film.n_frames == 4
        assert film.width > film.height * 0.9
        first = np.asarray(film.convert("L"))
        film.seek(2)
        assert (np.asarray(film.convert("L")) != first).mean() > 0.1


def test_what_is_refused(tmp_path: Path):
    with pytest.raises(mf.ModelError, match=r"spins\(state\) needs a lattice of rows and columns, got shape \(3,\)"):
        spins([1, -1, 1])
    with pytest.raises(mf.ModelError, match=r"needs -1 and \+1, or 0 and 1, got 2; regions draws labels"):
        spins([[0, 2]])
    with pytest.raises(mf.ModelError, match=r"regions\(labels\) needs a lattice"):
        regions(np.zeros((2, 2, 2)))
    with pytest.raises(mf.ModelError, match="one for each of two axes"):
        regions(np.zeros((2, 2)), periodic=(True, True, True))
    with pytest.raises(mf.ModelError, match="all of the same shape"):
        animate([np.zeros((2, 2)), np.zeros((3, 2))])
    with pytest.raises(mf.ModelError, match="at least one frame"):
        animate([])
    with pytest.raises(mf.ModelError, match="2 frames and 1 titles"):
        animate([np.zeros((2, 2))] * 2, titles=["one"])
    with pytest.raises(mf.ModelError, match=r"writes GIF files, got .*film.mp4"):
        animate([np.zeros((2, 2))], tmp_path / "film.mp4")
