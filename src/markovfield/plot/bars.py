"""Bars of posterior probabilities."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from markovfield.exceptions import ModelError
from markovfield.inference.core.answers import Marginals
from markovfield.names import VariableName
from markovfield.plot import _style as style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["marginals"]

MOST_VARIABLES = 30
ROW_INCHES = 0.27
BLOCK_GAP = 0.55


def marginals(
    answer: Marginals,
    variables: Sequence[VariableName] | None = None,
    *,
    prior: Marginals | None = None,
    evidence: Mapping[Any, Any] | None = None,
    labels: tuple[str, str] = ("posterior", "prior"),
    title: str | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw the probabilities of variables' states as bars.

    Parameters
    ----------
    answer
        What `mf.marginals` said.
    variables
        Which variables, from the top down; all when None (the first 30 of a larger model).
    prior
        Another answer for the same model, drawn below each bar in grey for comparison.
    evidence
        Observed variables; their bars are orange.
    labels
        What the legend calls ``answer`` and ``prior``.
    title
        Replaces the title, which otherwise says how far the numbers can be trusted.
    ax
        Where to draw; a new figure of fitting size when None.

    Returns
    -------
    Axes
        ``ax.containers[0]`` holds the bars of ``answer``, one for each state; ``ax.containers[1]`` those of ``prior``.

    Examples
    --------
    >>> import markovfield as mf
    >>> net = mf.datasets.diagnosis_network()
    >>> seen = {"room": "cold", "noise": "rattling"}
    >>> after = mf.marginals(net, evidence=seen)
    >>> ax = mf.plot.marginals(after, ["filter", "compressor"], prior=mf.marginals(net))
    >>> len(ax.containers[0])
    4
    """
    style.check_matplotlib()
    structure = answer.graph.structure
    names = structure.names
    shown = list(names.variables)[:MOST_VARIABLES] if variables is None else list(variables)
    if not shown:
        raise ModelError("plot.marginals(variables=...) needs at least one variable")
    positions = names.positions(shown)
    observed = set(names.positions(list(evidence or {})))
    heights, texts, values, before, colours, centres = [], [], [], [], [], []
    y = 0.0
    for name, v in zip(shown, positions, strict=True):
        states = names.state_names(v, int(structure.cardinalities[v]))
        centres.append(y + (len(states) - 1) / 2)
        for state, value in zip(states, answer[name].tolist(), strict=True):
            heights.append(y)
            texts.append(style.plain(state))
            values.append(value)
            colours.append(style.ORANGE if v in observed else style.BLUE)
            y += 1.0
        if prior is not None:
            before += prior[name].tolist()
        y += BLOCK_GAP
    # Also checks that a prior speaks of the same variables.
    if prior is not None and len(before) != len(values):
        raise ModelError("plot.marginals(prior=...) must be an answer for a model with the same states")
    ax = style.new_axes(ax, 6.6, (1.25 if prior is not None else 1.0) + ROW_INCHES * (y - BLOCK_GAP))
    _draw(ax, np.array(heights), values, before, colours, labels)
    _label(ax, heights, texts, [str(n) for n in shown], centres)
    heading = title if title is not None else _heading(answer, len(shown), prior is not None)
    style.title(ax, heading)
    return ax


def _heading(answer: Marginals, shown: int, compared: bool) -> str:
    total = len(answer)
    part = f", first {shown} of {total} variables" if shown < total and shown == MOST_VARIABLES else ""
    return f"{'Prior and posterior' if compared else 'Marginals'} ({answer.guarantee}{part})"


def _draw(
    ax: Axes, y: Any, values: list[float], before: list[float], colours: list[str], labels: tuple[str, str]
) -> None:
    compared = bool(before)
    ax.barh(
        y - (0.13 if compared else 0.0),
        values,
        height=0.46 if compared else 0.66,
        color=colours,
        zorder=3,
        label=labels[0],
    )
    if compared:
        ax.barh(y + 0.24, before, height=0.2, color=style.LINE, zorder=3, label=labels[1])
    for at, value in zip(y.tolist(), values, strict=True):
        ax.annotate(
            f"{value:.3f}",
            (value, at - (0.13 if compared else 0.0)),
            xytext=(4, 0),
            textcoords="offset points",
            va="center",
            fontsize=style.FONT_SIZE - 1.5,
            color=style.INK,
            zorder=4,
        )
    ax.set_xlim(0, 1.09)
    ax.set_ylim(float(y[-1]) + 0.75, -0.75)
    ax.set_xticks([0, 0.25, 0.5, 0.75, 1.0], ["0", "0.25", "0.5", "0.75", "1"])
    ax.tick_params(axis="x", length=0, labelsize=style.FONT_SIZE - 1.5, labelcolor=style.MUTED)
    ax.grid(axis="x", color=style.PALE, linewidth=1, zorder=0)
    for side in ("top", "right", "bottom"):
        ax.spines[side].set_visible(False)
    ax.spines["left"].set_color(style.LINE)
    if compared:
        from matplotlib.patches import Patch

        handles = [Patch(color=style.BLUE, label=labels[0]), Patch(color=style.LINE, label=labels[1])]
        if style.ORANGE in colours:
            handles.insert(1, Patch(color=style.ORANGE, label="observed"))
        ax.legend(
            handles=handles,
            loc="upper left",
            bbox_to_anchor=(0.0, 0.0),
            ncols=len(handles),
            frameon=False,
            fontsize=style.FONT_SIZE - 1.5,
            handlelength=1.0,
            borderaxespad=2.4,
            borderpad=0.0,
            columnspacing=1.2,
        )


def _label(ax: Axes, heights: list[float], states: list[str], names: list[str], centres: list[float]) -> None:
    """State names at the axis, variable names in bold to their left."""
    size = style.FONT_SIZE - 0.5
    ax.set_yticks(heights, states)
    ax.tick_params(axis="y", length=0, labelsize=size, labelcolor=style.INK)
    widest = max(style.text_size(s, size)[0] for s in states)
    for name, centre in zip(names, centres, strict=True):
        ax.annotate(
            style.plain(name),
            (0, centre),
            xycoords=("axes fraction", "data"),
            xytext=(-widest - 16, 0),
            textcoords="offset points",
            ha="right",
            va="center",
            fontweight="bold",
            fontsize=style.FONT_SIZE,
            color=style.INK,
        )
