"""Pictures of lattice models: spins, regions coloured by their size, and films of either."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from markovfield.exceptions import ModelError
from markovfield.plot import _style as style

if TYPE_CHECKING:
    from matplotlib.animation import FuncAnimation
    from matplotlib.axes import Axes

__all__ = ["animate", "regions", "spins"]

DOWN, UNSEEN, UP = "#f4f1ea", "#c9d3dd", "#22384f"


def _square(state: Any, what: str) -> npt.NDArray[Any]:
    array = np.asarray(state)
    if array.ndim != 2 or not array.size:
        raise ModelError(f"{what} needs a lattice of rows and columns, got shape {array.shape}")
    return array


def _canvas(ax: Axes | None, shape: tuple[int, int], title: str | None, size: float) -> Axes:
    """Axes of a fitting shape, without ticks, in a thin frame."""
    rows, columns = shape
    width = size * min(1.0, columns / rows)
    ax = style.new_axes(ax, max(width, 1.5), max(width * rows / columns, 0.6) + (0.4 if title else 0.1))
    ax.set_xticks([])
    ax.set_yticks([])
    for spine in ax.spines.values():
        spine.set_color(style.LINE)
        spine.set_linewidth(0.8)
    if title:
        ax.set_title(title, loc="left", fontsize=style.FONT_SIZE + 0.5, color=style.INK, pad=5)
    return ax


def spins(state: npt.ArrayLike, *, title: str | None = None, ax: Axes | None = None, size: float = 5.0) -> Axes:
    """Draw spins: dark up, light down, grey where there is none yet.

    Parameters
    ----------
    state
        ``[rows, columns]`` of two values, the larger one up, as -1 and +1 or 0 and 1; with -1 present, 0 and nan are
        "none yet".
    title, ax
        Written above; where to draw, a new figure when None.
    size
        Inches of the longer side of a new figure.

    Examples
    --------
    >>> import numpy as np
    >>> from markovfield.plot.fields import spins
    >>> ax = spins(np.where(np.arange(12).reshape(3, 4) % 5 == 0, 1, -1), title="a lattice")
    >>> ax.images[0].get_array().shape
    (3, 4)
    """
    style.check_matplotlib()
    values = _square(state, "spins(state)").astype(np.float64)
    low = -1.0 if np.any(values < 0) else 0.0
    none = np.isnan(values) | ((values == 0) & (low < 0))
    strange = ~none & (values != low) & (values != 1.0)
    if strange.any():
        raise ModelError(f"spins(state) needs -1 and +1, or 0 and 1, got {values[strange][0]:g}; regions draws labels")
    from matplotlib.colors import ListedColormap

    ax = _canvas(ax, values.shape, title, size)
    shown = np.where(none, 1, np.where(values == 1.0, 2, 0))
    ax.imshow(shown, cmap=ListedColormap([DOWN, UNSEEN, UP]), vmin=0, vmax=2, interpolation="nearest")
    return ax


def regions(
    labels: npt.ArrayLike,
    *,
    periodic: bool | Sequence[bool] = False,
    title: str | None = None,
    ax: Axes | None = None,
    size: float = 5.0,
) -> Axes:
    """Draw the regions of a lattice by their size: blue the largest, red the smallest (Murphy, figure 19.8).

    A region is a set of equal labels that hangs together by its sides. Colours go by the log of its size,
    from one site to the whole lattice, so that pictures of one shape can be compared.

    Parameters
    ----------
    labels
        ``[rows, columns]`` of any labels: states of a Potts model, spins, classes of a segmentation.
    periodic
        Whether regions go on over the border, for both axes or each.
    title, ax, size
        As for `spins`.

    Examples
    --------
    >>> from markovfield.plot.fields import regions
    >>> ax = regions([[0, 0, 1], [0, 1, 1], [2, 2, 0]])
    >>> ax.images[0].get_array().round(2).tolist()
    [[0.5, 0.5, 0.5], [0.5, 0.5, 0.5], [0.32, 0.32, 0.0]]
    """
    style.check_matplotlib()
    values = _square(labels, "regions(labels)")
    wraps = (bool(periodic),) * 2 if isinstance(periodic, (bool, np.bool_)) else tuple(bool(p) for p in periodic)
    if len(wraps) != 2:
        raise ModelError(f"regions(periodic=...) is a bool or one for each of two axes, got {periodic!r}")
    area = _areas(values, wraps)
    ax = _canvas(ax, values.shape, title, size)
    shade = np.log(area) / max(np.log(values.size), 1e-9)
    # The very ends of this colour map are nearly black.
    ax.imshow(shade, cmap="turbo_r", vmin=-0.08, vmax=1.08, interpolation="nearest")
    return ax


def _areas(labels: npt.NDArray[Any], periodic: tuple[bool, ...]) -> npt.NDArray[np.int64]:
    """For each site, how many sites its region has."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    site = np.arange(labels.size).reshape(labels.shape)
    ends: list[tuple[npt.NDArray[Any], npt.NDArray[Any]]] = []
    for axis, wrap in enumerate(periodic):
        same = labels == np.roll(labels, -1, axis)
        if not wrap:
            same[(slice(None),) * axis + (-1,)] = False
        ends.append((site[same], np.roll(site, -1, axis)[same]))
    one, two = (np.concatenate([pair[i] for pair in ends]) for i in (0, 1))
    joined = coo_array((np.ones(len(one), np.bool_), (one, two)), shape=(labels.size, labels.size))
    _, region = connected_components(joined, directed=False)
    return np.asarray(np.bincount(region)[region].reshape(labels.shape))


def animate(
    frames: Iterable[npt.ArrayLike],
    path: str | PathLike[str] | None = None,
    *,
    titles: Sequence[str] | None = None,
    seconds: float = 0.1,
    limits: tuple[float, float] | None = None,
    cmap: str | None = None,
    size: float = 4.0,
) -> FuncAnimation:
    """A film of lattices, saved as a GIF where a path is given (by Pillow, which matplotlib brings along).

    Parameters
    ----------
    frames
        ``[rows, columns]`` numbers, all of one shape.
    path
        File to write, ending in ``.gif``; None to write none. In a notebook, ``animation.to_jshtml()`` shows the film.
    titles
        One for each frame.
    seconds
        How long each frame stays.
    limits
        Values of the first and last colour; by default the least and greatest value of all frames.
    cmap
        A matplotlib colour map; None for light to dark as in `spins`.
    size
        Inches of the longer side.

    Returns
    -------
    matplotlib.animation.FuncAnimation
        Keep a reference to it for as long as it is to be shown.

    Examples
    --------
    >>> import numpy as np, tempfile
    >>> from pathlib import Path
    >>> from markovfield.plot.fields import animate
    >>> path = Path(tempfile.mkdtemp()) / "film.gif"
    >>> film = animate([np.eye(4), 1 - np.eye(4)], path, titles=["one", "two"], size=1.5)
    >>> path.stat().st_size > 0
    True
    """
    style.check_matplotlib()
    pictures = [_square(frame, "animate(frames)").astype(np.float64) for frame in frames]
    if not pictures or len({p.shape for p in pictures}) > 1:
        raise ModelError("animate(frames) needs at least one frame, all of the same shape")
    if titles is not None and len(titles) != len(pictures):
        raise ModelError(f"animate has {len(pictures)} frames and {len(titles)} titles")
    if path is not None and not str(path).endswith(".gif"):
        raise ModelError(f"animate(path=...) writes GIF files, got {str(path)!r}")
    from matplotlib.animation import FuncAnimation, PillowWriter
    from matplotlib.colors import LinearSegmentedColormap

    low, high = limits or (min(p.min() for p in pictures), max(p.max() for p in pictures))
    ax = _canvas(None, pictures[0].shape, titles[0] if titles else None, size)
    colours = cmap or LinearSegmentedColormap.from_list("spins", [DOWN, UP])
    image = ax.imshow(pictures[0], cmap=colours, vmin=low, vmax=high, interpolation="nearest")

    def show(i: int) -> list[Any]:
        image.set_data(pictures[i])
        if titles:
            ax.set_title(titles[i], loc="left", fontsize=style.FONT_SIZE + 0.5, color=style.INK, pad=5)
        return [image]

    film = FuncAnimation(ax.figure, show, frames=len(pictures), interval=1000 * seconds)  # type: ignore[arg-type]
    if path is not None:
        film.save(str(path), writer=PillowWriter(fps=max(1, round(1 / seconds))))
    return film
