"""Drawings of trees of constituents, and of the probabilities that words are one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from markovfield.exceptions import ModelError
from markovfield.grammar.drawing import layout
from markovfield.grammar.trees import Tree
from markovfield.plot import _style as style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["spans", "tree"]

GAP = 12.0
LEVEL = 36.0
# From this probability on a span is named.
NAMED = 0.5
MOST_NAMED = 30


def tree(tree: Tree, *, title: str = "", ax: Axes | None = None) -> Axes:
    """Draw a tree of constituents.

    Parameters
    ----------
    tree
        Labels in blue, tags in grey, words in black.
    title
        Stands above the tree.
    ax
        Where to draw; a new figure of fitting size when None.

    Returns
    -------
    Axes
        One text for each label and word, in points.

    Examples
    --------
    >>> import markovfield as mf
    >>> ax = mf.plot.tree(mf.grammar.Tree.parse("(NP (DT the) (NN dog))"))
    >>> [text.get_text() for text in ax.texts]
    ['NP', 'DT', 'the', 'NN', 'dog']
    """
    style.check_matplotlib()
    places, width = layout(tree, lambda text: style.text_size(text, bold=True)[0] + 2.0, GAP)
    text_height = style.text_size("X")[1]
    height = LEVEL * max(place.depth for place in places) + text_height
    canvas = style.Canvas.open(ax, width, height, title)
    colours = {"label": style.BLUE, "tag": style.MUTED, "word": style.INK}
    for place in places:
        y = height - text_height / 2 - LEVEL * place.depth
        if place.parent >= 0:
            above = places[place.parent]
            top = height - text_height / 2 - LEVEL * above.depth - 0.6 * text_height
            ends = [place.x, above.x], [y + 0.55 * text_height, top]
            canvas.ax.plot(*ends, color=style.LINE, linewidth=1.2 * canvas.scale, zorder=2, solid_capstyle="round")
        weight = "bold" if place.kind == "label" else "normal"
        canvas.text(place.x, y, place.text, color=colours[place.kind], fontweight=weight, va="center_baseline")
    return canvas.ax


def spans(
    probabilities: Any,
    words: Sequence[str],
    *,
    labels: Sequence[str] | None = None,
    gold: Tree | None = None,
    title: str = "Probabilities of spans",
    ax: Axes | None = None,
) -> Axes:
    """Draw how likely runs of words are constituents: a chart, with the words below and the whole sentence on top.

    Parameters
    ----------
    probabilities
        ``float[n, n]``: entry [i, j] that words i to j, both included, are a constituent; or ``float[n, n, labels]``
        with a probability for each label, which are added up.
    words
        The n words.
    labels
        Names of labels; likely spans are then named (in sentences of up to 30 words). An empty name counts for nothing.
    gold
        A tree whose constituents get an orange border.
    title
        Stands above the chart.
    ax
        Where to draw; a new figure of fitting size when None.

    Returns
    -------
    Axes
        ``ax.collections[0]`` holds one cell for each span, in the order of starts, then ends.

    Examples
    --------
    >>> import numpy as np, markovfield as mf
    >>> chart = mf.structures.SpanTree(np.zeros((3, 3, 1)))
    >>> ax = mf.plot.spans(mf.marginals(chart)["spans"], ["old", "men", "ran"])
    >>> len(ax.collections[0].get_array())
    6
    """
    style.check_matplotlib()
    from matplotlib.collections import PolyCollection
    from matplotlib.colors import LinearSegmentedColormap

    values = np.asarray(probabilities, np.float64)
    n = len(words)
    if values.ndim not in (2, 3) or values.shape[:2] != (n, n):
        raise ModelError(f"plot.spans takes float[n, n] or float[n, n, labels] for {n} words, got shape {values.shape}")
    names = None if labels is None else list(labels)
    if names is not None and (values.ndim != 3 or values.shape[2] != len(names)):
        raise ModelError(f"plot.spans(labels=...) has {len(names)} names for probabilities of shape {values.shape}")
    if gold is not None and len(gold.leaves) != n:
        raise ModelError(f"plot.spans(gold=...) has {len(gold.leaves)} words, and the sentence has {n}")
    if values.ndim == 3 and names is not None:
        values = values[:, :, [bool(name) for name in names]]
        names = [name for name in names if name]
    total = values if values.ndim == 2 else values.sum(axis=2)
    starts, ends = np.triu_indices(n)
    # The cell of words i to j is a diamond over their middle, as high as they are many.
    middles = np.stack([(starts + ends) / 2, (ends - starts) / 2], axis=1)
    corners = np.array([[-0.5, 0.0], [0.0, -0.5], [0.5, 0.0], [0.0, 0.5]]) * 0.96
    side = max(0.34, min(0.75, 12.0 / n))
    widest = max(style.text_size(word)[0] for word in words) / style.POINTS_PER_INCH
    slanted = widest > side
    below = 0.75 * widest if slanted else 0.0
    given, ax = ax, style.new_axes(ax, max(3.6, side * n + 1.4), max(2.4, side * n / 2 + 1.2 + below), title)
    colours = LinearSegmentedColormap.from_list("spans", [style.PALE, "#9cc3e6", style.BLUE, "#173a63"])
    cells = PolyCollection(list(middles[:, None, :] + corners), array=total[starts, ends], cmap=colours)
    cells.set_clim(0.0, 1.0)
    ax.add_collection(cells)
    if gold is not None:
        wanted = [((i + j - 1) / 2, (j - 1 - i) / 2) for _, i, j in gold.spans()]
        borders = PolyCollection(list(np.array(wanted)[:, None, :] + corners), facecolors="none")
        borders.set(edgecolor=style.ORANGE, linewidth=1.8, zorder=3)
        ax.add_collection(borders)
    if names and n <= MOST_NAMED:
        _name(ax, middles, values[starts, ends], total[starts, ends], names, side)
    ax.set_xlim(-0.6, n - 0.4)
    ax.set_ylim(-0.6, (n - 1) / 2 + 0.6)
    ax.set_aspect("equal")
    ax.set_yticks([])
    ax.set_xticks(range(n), [style.plain(word) for word in words], rotation=45 if slanted else 0)
    ax.tick_params(axis="x", length=0, labelsize=style.FONT_SIZE, labelcolor=style.INK)
    if slanted:
        for label in ax.get_xticklabels():
            label.set(ha="right", rotation_mode="anchor")
    for line in ax.spines.values():
        line.set_visible(False)
    bar = ax.figure.colorbar(cells, ax=ax, shrink=0.7, pad=0.02)
    bar.outline.set_visible(False)  # type: ignore[operator]
    bar.ax.tick_params(labelsize=style.FONT_SIZE - 2, labelcolor=style.MUTED, length=0)
    style.title(ax, title)
    if given is None:
        # Axes of a fixed aspect beside a scale of colours find their places at the second drawing only.
        ax.figure.draw_without_rendering()  # type: ignore[union-attr]
    return ax


def _name(ax: Axes, middles: Any, values: Any, total: Any, names: list[str], side: float) -> None:
    for (x, y), own, p in zip(middles, values, total, strict=True):
        if p >= NAMED:
            name = style.plain(names[int(np.argmax(own))])
            size = min(style.FONT_SIZE - 1.5, 0.62 * side * style.POINTS_PER_INCH / max(2, len(name)) * 1.5)
            colour = "white" if p > 0.6 else style.INK
            ax.text(x, y, name, ha="center", va="center", fontsize=size, color=colour, zorder=4)
