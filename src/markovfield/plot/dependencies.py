"""Drawings of dependency trees, arcs over words, and of the probabilities of arcs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from markovfield.exceptions import ModelError
from markovfield.plot import _style as style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["arc_probabilities", "arcs"]

GAP = 14.0
# Height of an arc of the lowest level, and of each that arcs below it push up.
LEVEL = 26.0
ROOT = "root"


def arcs(
    tree: Sequence[Any],
    words: Sequence[str],
    *,
    tags: Sequence[str] | None = None,
    probabilities: Any = None,
    gold: Sequence[Any] | None = None,
    title: str = "",
    ax: Axes | None = None,
) -> Axes:
    """Draw a dependency tree: an arrow from every head over the words to its modifier.

    Parameters
    ----------
    tree
        Heads of the n words, 0 being the root, or pairs (head, label); labels stand on their arcs.
    words, tags
        The n words, and what stands below them.
    probabilities
        ``float[n + 1, n + 1]``, or ``[n + 1, n + 1, labels]``, which are added up: arcs are then the paler the less
        likely they are.
    gold
        Another tree; arcs that it has not are drawn in orange.
    title
        Stands above the tree.
    ax
        Where to draw; a new figure of fitting size when None.

    Returns
    -------
    Axes
        ``ax.patches`` holds an arrow for each word, in the order of words.

    Examples
    --------
    >>> import markovfield as mf
    >>> ax = mf.plot.arcs([(2, "nsubj"), (0, "root")], ["Rain", "fell"])
    >>> [text.get_text() for text in ax.texts]
    ['root', 'Rain', 'fell', 'nsubj', 'root']
    """
    style.check_matplotlib()
    from matplotlib.patches import FancyArrowPatch
    from matplotlib.path import Path

    n = len(words)
    heads, labels = _tree(tree, n, "tree")
    right = heads if gold is None else _tree(gold, n, "gold")[0]
    shares = np.ones((n + 1, n + 1)) if probabilities is None else _matrix(probabilities, n, "arcs")
    names = [ROOT, *words]
    below = ["", *(tags if tags is not None else [""] * n)]
    places = _places(names, below, heads, labels)
    levels = _levels(heads)
    text_height = style.text_size("X")[1]
    floor = text_height * (2.2 if tags is not None else 1.1)
    tall = floor + LEVEL * max(levels) + text_height
    canvas = style.Canvas.open(ax, places[-1] + style.text_size(names[-1])[0] / 2, tall, title)
    for x, name, tag in zip(places, names, below, strict=True):
        canvas.text(x, floor - 0.55 * text_height, name, color=style.MUTED if x == places[0] else style.INK)
        if tag:
            canvas.text(x, 0.45 * text_height, tag, color=style.MUTED, size=style.FONT_SIZE - 2)
    # Arcs at one word leave it side by side, those that go furthest in its middle.
    for word, (head, label, level) in enumerate(zip(heads, labels, levels, strict=True), 1):
        wrong = right[word - 1] != head
        towards = 1.0 if head < word else -1.0
        start, end = places[head] + 4.0 * towards, places[word] - 0.5 * towards
        top, bend = floor + LEVEL * level, min(9.0, abs(end - start) / 2) * towards
        corners = [
            (start, floor), (start, top), (start, top), (start + bend, top),
            (end - bend, top), (end, top), (end, top), (end, floor),
        ]  # fmt: skip
        codes = [Path.MOVETO, *[Path.CURVE4] * 3, Path.LINETO, *[Path.CURVE4] * 3]
        colour = style.ORANGE if wrong else style.BLUE
        share = float(np.clip(shares[head, word], 0.0, 1.0))
        canvas.ax.add_patch(
            FancyArrowPatch(
                path=Path(corners, codes),
                arrowstyle="-|>",
                mutation_scale=9.0 * canvas.scale,
                linewidth=1.3 * canvas.scale,
                color=colour,
                alpha=0.2 + 0.8 * share,
                shrinkA=0,
                shrinkB=0,
            )
        )
        if label is not None:
            box = {"facecolor": "white", "edgecolor": "none", "pad": 0.6}
            canvas.text((start + end) / 2, top, label, size=style.FONT_SIZE - 2, color=colour, bbox=box)
    return canvas.ax


def arc_probabilities(
    probabilities: Any,
    words: Sequence[str],
    *,
    gold: Sequence[Any] | None = None,
    title: str = "Probabilities of arcs",
    ax: Axes | None = None,
) -> Axes:
    """Draw how likely words are the heads of others: a column for each word, whose entries sum to one.

    Parameters
    ----------
    probabilities
        ``float[n + 1, n + 1]``: entry [h, m] that h is the head of m, 0 being the root; or ``[n + 1, n + 1, labels]``,
        whose labels are added up.
    words
        The n words.
    gold
        Heads, or pairs (head, label), whose cells get an orange border.
    title
        Stands above the matrix.
    ax
        Where to draw; a new figure of fitting size when None.

    Returns
    -------
    Axes
        ``ax.images[0]`` holds heads by modifiers.

    Examples
    --------
    >>> import numpy as np, markovfield as mf
    >>> trees = mf.structures.SpanningTree(np.zeros((3, 3)))
    >>> ax = mf.plot.arc_probabilities(mf.marginals(trees)["arcs"], ["Rain", "fell"])
    >>> ax.images[0].get_array().tolist()
    [[0.5, 0.5], [0.0, 0.5], [0.5, 0.0]]
    """
    style.check_matplotlib()
    from matplotlib.colors import LinearSegmentedColormap
    from matplotlib.patches import Rectangle

    n = len(words)
    values = _matrix(probabilities, n, "arc_probabilities")[:, 1:]
    side = max(0.24, min(0.5, 10.0 / (n + 1)))
    widest = max(style.text_size(word)[0] for word in [ROOT, *words]) / style.POINTS_PER_INCH
    ax = style.new_axes(ax, side * n + widest + 1.5, side * (n + 1) + widest + 0.8)
    colours = LinearSegmentedColormap.from_list("arcs", ["#f4f7fa", "#9cc3e6", style.BLUE, "#173a63"])
    image = ax.imshow(values, cmap=colours, vmin=0.0, vmax=1.0, aspect="equal")
    if gold is not None:
        for word, head in enumerate(_tree(gold, n, "gold")[0]):
            ax.add_patch(Rectangle((word - 0.5, head - 0.5), 1, 1, fill=False, edgecolor=style.ORANGE, linewidth=1.6))
    size = min(style.FONT_SIZE, 0.8 * side * style.POINTS_PER_INCH)
    ax.set_xticks(range(n), [style.plain(word) for word in words], rotation=60, ha="right", rotation_mode="anchor")
    ax.set_yticks(range(n + 1), [ROOT, *(style.plain(word) for word in words)])
    ax.set_ylabel("head", fontsize=style.FONT_SIZE, color=style.MUTED)
    ax.tick_params(length=0, labelsize=size, labelcolor=style.INK)
    for line in ax.spines.values():
        line.set_visible(False)
    bar = ax.figure.colorbar(image, ax=ax, shrink=0.7, pad=0.02)
    bar.outline.set_visible(False)  # type: ignore[operator]
    bar.ax.tick_params(labelsize=style.FONT_SIZE - 2, labelcolor=style.MUTED, length=0)
    style.title(ax, title)
    return ax


def _tree(tree: Sequence[Any], n: int, argument: str) -> tuple[list[int], list[str | None]]:
    """Heads and labels, where they fit the words."""
    pairs = [entry if isinstance(entry, tuple | list) else (entry, None) for entry in tree]
    if len(pairs) != n or not all(len(pair) == 2 and 0 <= int(pair[0]) <= n for pair in pairs):
        raise ModelError(f"plot.arcs: {argument} must have a head from 0 to {n} for each of {n} words, got {tree!r}")
    return [int(head) for head, _ in pairs], [None if label is None else str(label) for _, label in pairs]


def _matrix(probabilities: Any, n: int, function: str) -> Any:
    values = np.asarray(probabilities, np.float64)
    if values.ndim not in (2, 3) or values.shape[:2] != (n + 1, n + 1):
        raise ModelError(
            f"plot.{function} takes probabilities float[n + 1, n + 1] or float[n + 1, n + 1, labels] for {n} words, "
            f"got shape {values.shape}"
        )
    return values if values.ndim == 2 else values.sum(axis=2)


def _places(
    names: Sequence[str], below: Sequence[str], heads: Sequence[int], labels: Sequence[str | None]
) -> list[float]:
    """Middles of words, the root first; neighbours have room for the label of an arc between them."""
    widths = [max(style.text_size(a)[0], style.text_size(b)[0]) for a, b in zip(names, below, strict=True)]
    found = [widths[0] / 2]
    for k in range(1, len(names)):
        room = (widths[k - 1] + widths[k]) / 2 + GAP
        for word, other in ((k, k - 1), (k - 1, k)):
            if word and heads[word - 1] == other and (label := labels[word - 1]) is not None:
                room = max(room, style.text_size(label, style.FONT_SIZE - 2)[0] + 26.0)
        found.append(found[-1] + room)
    return found


def _levels(heads: Sequence[int]) -> list[int]:
    """How high the arc of each word is: above all arcs that it covers, or shares a place with and is longer than."""
    ends = [tuple(sorted((head, word))) for word, head in enumerate(heads, 1)]
    levels = [1] * len(ends)
    order = sorted(range(len(ends)), key=lambda k: ends[k][1] - ends[k][0])
    done: list[int] = []
    for k in order:
        a, b = ends[k]
        levels[k] = 1 + max((levels[j] for j in done if ends[j][0] < b and a < ends[j][1]), default=0)
        done.append(k)
    return levels
