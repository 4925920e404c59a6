"""Images: pixels, marginals of a lattice model, restored images side by side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from markovfield.exceptions import ModelError
from markovfield.inference.core.answers import Marginals
from markovfield.inference.core.decodings import Decoding
from markovfield.plot import _style as style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["image_grid", "lattice"]


def _pixels(values: Any, shape: tuple[int, int] | None) -> npt.NDArray[np.float64]:
    """An image from an array, from marginals (probability of the last state) or from a decoding (state indices)."""
    if isinstance(values, Marginals):
        last = values.graph.structure.value_offsets[1:] - 1
        pixels = values.values[last]
    elif isinstance(values, Decoding):
        pixels = values.states.astype(np.float64)
    else:
        pixels = np.asarray(values, np.float64)
    if shape is not None:
        if pixels.size != shape[0] * shape[1]:
            raise ModelError(f"an image of shape {shape} needs {shape[0] * shape[1]} values, got {pixels.size}")
        pixels = pixels.reshape(shape)
    if pixels.ndim != 2:
        raise ModelError(f"a lattice needs rows and columns, got shape {pixels.shape}: pass shape=(rows, columns)")
    return pixels


def lattice(
    values: Any,
    shape: tuple[int, int] | None = None,
    *,
    title: str | None = None,
    limits: tuple[float, float] = (0.0, 1.0),
    cmap: str = "gray_r",
    ax: Axes | None = None,
) -> Axes:
    """Draw a lattice as an image, one square for each variable.

    Parameters
    ----------
    values
        ``[rows, columns]`` numbers, or an answer for a model whose variables are pixels in row order: `Marginals` show
        the probability of each pixel's last state, a `Decoding` its state.
    shape
        Rows and columns, where ``values`` does not have them.
    title
        Written above the image.
    limits
        Values drawn white and black.
    cmap
        A matplotlib colour map.
    ax
        Where to draw; a new figure of fitting size when None.

    Examples
    --------
    >>> import markovfield as mf
    >>> net = mf.datasets.ising_denoiser([[0, 1], [1, 1]])
    >>> ax = mf.plot.lattice(mf.marginals(net), shape=(2, 2), title="posterior")
    >>> ax.images[0].get_array().shape
    (2, 2)
    """
    style.check_matplotlib()
    pixels = _pixels(values, shape)
    rows, columns = pixels.shape
    width = 8.0 if columns >= rows else 8.0 * columns / rows
    ax = style.new_axes(ax, max(width, 1.5), max(width * rows / columns, 0.6) + 0.5)
    ax.imshow(pixels, cmap=cmap, vmin=limits[0], vmax=limits[1], interpolation="nearest")
    ax.set_xticks([])
    ax.set_yticks([])
    for spine in ax.spines.values():
        spine.set_color(style.LINE)
        spine.set_linewidth(0.8)
    if title:
        ax.set_title(title, loc="left", fontsize=style.FONT_SIZE + 0.5, color=style.INK, pad=5)
    return ax


def image_grid(
    images: Sequence[Any],
    titles: Sequence[str] | None = None,
    *,
    n_columns: int = 1,
    heading: str | None = None,
    limits: tuple[float, float] = (0.0, 1.0),
    cmap: str = "gray_r",
    width: float = 8.0,
) -> list[Axes]:
    """Draw several images of the same shape in one new figure; returns their axes in order.

    Examples
    --------
    >>> import markovfield as mf
    >>> image = mf.datasets.noisy_letters("FIELD", rng=0)
    >>> axes = mf.plot.image_grid([image.clean, image.noisy], ["clean", "noisy"])
    >>> [ax.get_title(loc="left") for ax in axes]
    ['clean', 'noisy']
    """
    style.check_matplotlib()
    grids = [_pixels(image, None) for image in images]
    if not grids or len({p.shape for p in grids}) > 1:
        raise ModelError("image_grid(images) needs at least one image, all of the same shape")
    if titles is not None and len(titles) != len(grids):
        raise ModelError(f"image_grid has {len(grids)} images and {len(titles)} titles")
    n_rows = -(-len(grids) // n_columns)
    rows, columns = grids[0].shape
    cell = width / n_columns
    height = n_rows * (cell * rows / columns + (0.3 if titles else 0.1)) + (0.5 if heading else 0.0)
    figure, grid = style.pyplot().subplots(
        n_rows, n_columns, figsize=(width, height), layout="constrained", squeeze=False
    )
    figure.get_layout_engine().set(h_pad=0.03, hspace=0.0, w_pad=0.04)
    axes: list[Axes] = list(grid.ravel())
    for i, ax in enumerate(axes):
        if i < len(grids):
            lattice(grids[i], title=titles[i] if titles else None, limits=limits, cmap=cmap, ax=ax)
        else:
            ax.set_axis_off()
    if heading:
        figure.suptitle(heading, x=0.01, ha="left", fontsize=style.TITLE_SIZE, fontweight="bold", color=style.INK)
    return axes[: len(grids)]
