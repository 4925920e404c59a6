"""What a linear chain has learnt: a map of its transitions, and the attributes that speak most for each label."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from markovfield.exceptions import ModelError
from markovfield.plot import _style as style
from markovfield.sequence.interface.weights_report import WeightsReport

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["chain_weights"]

# Numbers are written into cells up to so many labels; beyond, colours alone speak.
MOST_NUMBERS = 16
FOR, AGAINST = style.BLUE, style.ORANGE
CELL, LINE = 0.42, 0.19


def chain_weights(crf: Any, *, top: int = 5, labels: list[Any] | None = None, title: str | None = None) -> list[Axes]:
    """Draw the weights of a fitted linear chain: transitions as a heat map, strongest attributes of labels as bars.

    Parameters
    ----------
    crf
        A fitted `ChainCRF`, or what its ``explain_weights`` gave.
    top
        Attributes of each label, those furthest from zero.
    labels
        Which labels to show, in this order; None is all.
    title
        Replaces the title.

    Returns
    -------
    list of Axes
        The map first, then the bars, one bar for every attribute shown.

    Examples
    --------
    >>> from markovfield.plot.chain_weights import chain_weights
    >>> from markovfield.sequence.interface.weights_report import weights_report
    >>> report = weights_report(["N", "V"], {("N", "V"): 1.5, ("V", "V"): -0.5}, {("dog", "N"): 2.0}, 3)
    >>> heat, bars = chain_weights(report)
    >>> heat.images[0].get_array().shape, len(bars.patches)
    ((2, 2), 1)
    """
    style.check_matplotlib()
    report = crf if isinstance(crf, WeightsReport) else crf.explain_weights(top)
    shown = list(report.labels) if labels is None else list(labels)
    unknown = [label for label in shown if label not in report.labels]
    if unknown or not shown:
        raise ModelError(f"chain_weights: {unknown[:1] or 'no labels'} is none of the {len(report.labels)} labels")
    place = [report.labels.index(label) for label in shown]
    table = report.transitions[np.ix_(place, place)]
    listed = [(label, sorted(report.states[label], key=lambda x: -abs(x[1]))[:top]) for label in shown]
    lines = sum(max(len(attributes), 1) + 1 for _, attributes in listed)
    longest = max((style.text_size(str(label))[0] for label in shown), default=20.0) / style.POINTS_PER_INCH
    n = len(shown)
    size = max(n * CELL, 2.0)
    height = max(size + longest + 0.9, lines * LINE + 0.9)
    figure, (heat, bars) = style.pyplot().subplots(
        1, 2, figsize=(size + longest + 4.6, height), width_ratios=[size + longest, 4.2], layout="constrained"
    )
    _map(heat, table, [style.plain(_name(label)) for label in shown])
    _bars(bars, listed)
    heading = title if title is not None else f"Weights of a chain of {len(report.labels)} labels"
    figure.suptitle(
        style.plain(heading), x=0.01, ha="left", fontsize=style.TITLE_SIZE, fontweight="bold", color=style.INK
    )
    return [heat, bars]


def _name(label: Any) -> str:
    return "/".join(map(str, label)) if isinstance(label, tuple) else str(label)


def _map(ax: Axes, table: Any, names: list[str]) -> None:
    """Transitions from the label on the left to that above."""
    from matplotlib.colors import LinearSegmentedColormap

    colours = LinearSegmentedColormap.from_list("for and against", [AGAINST, "#ffffff", FOR])
    reach = float(np.abs(table).max(initial=0.0)) or 1.0
    ax.imshow(table, cmap=colours, vmin=-reach, vmax=reach, interpolation="nearest")
    small = style.FONT_SIZE - 1.5
    ax.set_xticks(range(len(names)), names, rotation=90, fontsize=small, color=style.INK)
    ax.set_yticks(range(len(names)), names, fontsize=small, color=style.INK)
    ax.xaxis.tick_top()
    ax.xaxis.set_label_position("top")
    ax.set_anchor("N")
    ax.tick_params(length=0)
    ax.set_xlabel("to", fontsize=small, color=style.MUTED)
    ax.set_ylabel("from", fontsize=small, color=style.MUTED)
    for spine in ax.spines.values():
        spine.set_color(style.LINE)
    if len(names) > MOST_NUMBERS:
        return
    for i, row in enumerate(table):
        for j, weight in enumerate(row):
            if weight:
                strong = abs(weight) > 0.6 * reach
                colour = "#ffffff" if strong else style.INK
                ax.text(
                    j,
                    i,
                    f"{round(weight, 1) + 0.0:.1f}",
                    ha="center",
                    va="center",
                    fontsize=style.FONT_SIZE - 3,
                    color=colour,
                )


def _bars(ax: Axes, listed: list[tuple[Any, list[tuple[str, float]]]]) -> None:
    """Attributes under their labels, a bar to the right where they speak for one and to the left against it."""
    reach = max((abs(weight) for _, attributes in listed for _, weight in attributes), default=1.0)
    at = 0
    for label, attributes in listed:
        ax.text(
            -1.05 * reach,
            at,
            style.plain(_name(label)),
            fontsize=style.FONT_SIZE - 0.5,
            fontweight="bold",
            color=style.INK,
            va="center",
        )
        at += 1
        for attribute, weight in sorted(attributes, key=lambda x: -x[1]):
            ax.barh(at, weight, height=0.72, color=FOR if weight > 0 else AGAINST)
            side = -1.0 if weight > 0 else 1.0
            ax.annotate(
                style.plain(attribute if len(attribute) <= 32 else attribute[:31] + "…"),
                (0.0, at),
                xytext=(4 * side, 0),
                textcoords="offset points",
                ha="right" if weight > 0 else "left",
                va="center",
                fontsize=style.FONT_SIZE - 2.5,
                color=style.MUTED,
            )
            at += 1
        at += 0 if attributes else 1
    ax.set_ylim(at - 0.3, -0.8)
    ax.set_xlim(-1.1 * reach, 1.1 * reach)
    ax.axvline(0.0, color=style.LINE, linewidth=0.8)
    ax.set_yticks([])
    ax.tick_params(labelsize=style.FONT_SIZE - 2, colors=style.MUTED)
    for side_name in ("top", "right", "left"):
        ax.spines[side_name].set_visible(False)
    ax.spines["bottom"].set_color(style.LINE)
    ax.set_xlabel("weight", fontsize=style.FONT_SIZE - 1.5, color=style.MUTED)
