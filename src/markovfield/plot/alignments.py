"""Drawings of the links between the words of two sentences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from markovfield.alignment.links import gold_tables
from markovfield.exceptions import ModelError
from markovfield.plot import _style as style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["alignment"]

SIDE = 0.3


def alignment(
    probabilities: Any,
    source: Sequence[str],
    target: Sequence[str],
    *,
    links: Any = None,
    gold: Any = None,
    title: str = "Probabilities of links",
    ax: Axes | None = None,
) -> Axes:
    """Draw how likely the words of two sentences are linked: source words on the left, target words below.

    Parameters
    ----------
    probabilities
        ``float[source words, target words]``, from 0 to 1; None draws none.
    source, target
        The words.
    links
        Links ``(i, j)`` that were found: dots.
    gold
        A `GoldLinks`, or links that are all sure: orange borders, solid for sure links and dotted for possible ones.
    title
        Stands above.
    ax
        Where to draw; a new figure of fitting size when None.

    Returns
    -------
    Axes
        ``ax.images[0]`` has the probabilities, ``ax.collections[0]`` the dots where links were given.

    Examples
    --------
    >>> import numpy as np, markovfield as mf
    >>> ax = mf.plot.alignment(np.eye(2), ["the", "dog"], ["le", "chien"], links=[(0, 0), (1, 1)])
    >>> ax.images[0].get_array().shape, len(ax.collections[0].get_offsets())
    ((2, 2), 2)
    """
    style.check_matplotlib()
    from matplotlib.colors import LinearSegmentedColormap
    from matplotlib.patches import Rectangle

    n, m = len(source), len(target)
    values = np.zeros((n, m)) if probabilities is None else np.asarray(probabilities, np.float64)
    if values.shape != (n, m) or not n or not m:
        raise ModelError(
            f"plot.alignment takes float[source words, target words] for {n} and {m} words, got shape {values.shape}"
        )
    widths = [max(style.text_size(word)[0] for word in words) / style.POINTS_PER_INCH for words in (source, target)]
    # Target words stand slanted, source words lie.
    ax = style.new_axes(ax, SIDE * m + widths[0] + 1.0, SIDE * n + 0.75 * widths[1] + 0.6)
    colours = LinearSegmentedColormap.from_list("links", ["#f6f8fa", "#9cc3e6", style.BLUE, "#173a63"])
    picture = ax.imshow(values, cmap=colours, vmin=0.0, vmax=1.0, interpolation="nearest", aspect="equal")
    ax.set_xticks(np.arange(m + 1) - 0.5, minor=True)
    ax.set_yticks(np.arange(n + 1) - 0.5, minor=True)
    ax.grid(which="minor", color="white", linewidth=1.0)
    if gold is not None:
        sure, allowed = gold_tables(gold, 0, n, m)
        for i, j in np.argwhere(allowed).tolist():
            box = Rectangle((j - 0.42, i - 0.42), 0.84, 0.84, fill=False, edgecolor=style.ORANGE, zorder=3)
            box.set(linewidth=1.8 if sure[i, j] else 1.2, linestyle="-" if sure[i, j] else ":")
            ax.add_patch(box)
    if links is not None:
        found, _ = gold_tables(links, 0, n, m)
        at = np.argwhere(found)
        shades = np.where(values[found][:, None] > 0.4, "white", style.INK).ravel().tolist()
        ax.scatter(at[:, 1], at[:, 0], s=18.0, c=shades, zorder=4, linewidths=0)
    ax.set_xticks(range(m), [style.plain(word) for word in target], rotation=45)
    ax.set_yticks(range(n), [style.plain(word) for word in source])
    ax.tick_params(which="both", length=0, labelsize=style.FONT_SIZE, labelcolor=style.INK)
    for label in ax.get_xticklabels():
        label.set(ha="right", rotation_mode="anchor")
    for line in ax.spines.values():
        line.set_visible(False)
    if probabilities is not None:
        bar = ax.figure.colorbar(picture, ax=ax, shrink=0.7, pad=0.02)
        bar.outline.set_visible(False)  # type: ignore[operator]
        bar.ax.tick_params(labelsize=style.FONT_SIZE - 2, labelcolor=style.MUTED, length=0)
    style.title(ax, title)
    return ax
