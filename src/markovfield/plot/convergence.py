"""How methods that iterate converged: residuals sweep by sweep, and bounds on log Z as they close."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from markovfield.exceptions import ModelError
from markovfield.plot import _style as style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["bounds", "residuals"]

COLOURS = (style.BLUE, style.ORANGE, style.GREEN, "#8a5fb0", "#b8433f", "#5c7c8a", "#b59a2d")
# Below this a residual is drawn at the bottom of the axis: logs have no zero.
SMALLEST = 1e-16


def residuals(
    answers: Any,
    *,
    tolerance: float | None = None,
    title: str | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw the residuals of one or several answers against their iterations, on a log axis.

    A filled circle at the end of a curve says that the method converged there, a cross that it did not.

    Parameters
    ----------
    answers
        An answer of a method that iterates; several in a sequence (called by their methods); or a mapping from labels
        to answers. Plain sequences of residuals will do as well.
    tolerance
        Draws a line there.
    title
        Replaces the title.
    ax
        Where to draw; a new figure when None.

    Returns
    -------
    Axes
        ``ax.lines`` starts with one curve for each answer, in order.

    Examples
    --------
    >>> import markovfield as mf
    >>> from markovfield.plot.convergence import residuals
    >>> ax = residuals({"damped": [1.0, 0.1, 0.01], "plain": [1.0, 2.0, 1.0]}, tolerance=0.05)
    >>> ax.get_yscale(), len(ax.lines[0].get_ydata())
    ('log', 3)
    """
    style.check_matplotlib()
    curves = [(label, *_curve(label, answer)) for label, answer in _labelled(answers)]
    ax = style.new_axes(ax, 6.6, 3.8)
    floor = min((float(v.min()) for _, v, _ in curves), default=1.0)
    for (label, values, _), colour in zip(curves, _colours(len(curves)), strict=True):
        ax.plot(np.arange(1, len(values) + 1), values, color=colour, linewidth=1.6, label=style.plain(label), zorder=3)
    for (_, values, converged), colour in zip(curves, _colours(len(curves)), strict=True):
        if converged is not None:
            marker: dict[str, Any] = {"marker": "o", "markersize": 5.5}
            if not converged:
                marker = {"marker": "x", "markersize": 7.0, "mew": 1.8}
            ax.plot([len(values)], values[-1:], color=colour, linestyle="none", zorder=4, **marker)
    ax.set_yscale("log")
    if tolerance is not None:
        ax.axhline(tolerance, color=style.MUTED, linewidth=1.0, linestyle=(0, (4, 3)), zorder=2)
        ax.annotate(
            "tolerance",
            (1.0, tolerance),
            xycoords=("axes fraction", "data"),
            xytext=(-2, 3),
            textcoords="offset points",
            ha="right",
            fontsize=style.FONT_SIZE - 1.5,
            color=style.MUTED,
        )
        floor = min(floor, tolerance)
    ax.set_ylim(bottom=0.5 * floor)
    ax.set_xlim(left=0.0 if max(len(v) for _, v, _ in curves) > 1 else 0.5)
    _dress(ax, "iteration", "residual", legend=len(curves) > 1)
    style.title(ax, title if title is not None else _heading(curves))
    return ax


def bounds(
    history: Any,
    *,
    exact: float | None = None,
    title: str | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw lower and upper bounds on log Z as they close, with the room between them shaded.

    Parameters
    ----------
    history
        An answer of `Sandwich` (its steps are named at the axis), or a sequence with a pair (lower, upper) for each
        iteration, such as the bounds that mini-buckets of growing ``i_bound`` gave. An infinite bound is not drawn.
    exact
        log Z where it is known: draws a line there.
    title
        Replaces the title.
    ax
        Where to draw; a new figure when None.

    Returns
    -------
    Axes
        ``ax.lines[0]`` is the upper bound, ``ax.lines[1]`` the lower one.

    Examples
    --------
    >>> import markovfield as mf
    >>> from markovfield.plot.convergence import bounds
    >>> ax = bounds([(-3.0, 5.0), (-1.0, 2.0), (0.0, 1.0)], exact=0.5)
    >>> ax.lines[0].get_ydata().tolist()
    [5.0, 2.0, 1.0]
    """
    style.check_matplotlib()
    pairs, names = _history(history)
    low, high = (np.where(np.isfinite(side), side, np.nan) for side in pairs.T)
    at = np.arange(1, len(pairs) + 1)
    ax = style.new_axes(ax, 6.6, 3.8)
    few: dict[str, Any] = {"marker": "o", "markersize": 4.5} if len(pairs) <= 40 else {}
    ax.plot(at, high, color=style.ORANGE, linewidth=1.6, label="upper bound", zorder=3, **few)
    ax.plot(at, low, color=style.BLUE, linewidth=1.6, label="lower bound", zorder=3, **few)
    ax.fill_between(at, low, high, color=style.PALE, zorder=1, linewidth=0)
    if exact is not None:
        ax.axhline(exact, color=style.INK, linewidth=1.0, linestyle=(0, (4, 3)), label="log Z", zorder=2)
    if names:
        slanted: dict[str, Any] = {"rotation": 30, "ha": "right"} if len(names) > 3 else {}
        ax.set_xticks(at, [style.plain(n) for n in names], **slanted)
    _dress(ax, "" if names else "iteration", "log Z", legend=True)
    width = pairs[-1, 1] - pairs[-1, 0]
    known = (f", {width:.3g} apart" if width > 0 else ", which meet") if np.isfinite(width) else ""
    style.title(ax, title if title is not None else f"Bounds on log Z{known}")
    return ax


def _labelled(answers: Any) -> list[tuple[str, Any]]:
    """Pairs of a label and an answer, or a sequence of numbers."""
    if isinstance(answers, Mapping):
        found = [(str(label), answer) for label, answer in answers.items()]
    elif hasattr(answers, "residuals") or _is_numbers(answers):
        found = [(getattr(answers, "method", "residual"), answers)]
    else:
        found = [(getattr(a, "method", f"{i + 1}"), a) for i, a in enumerate(answers)]
    if not found:
        raise ModelError("plot.residuals needs at least one answer")
    return found


def _is_numbers(value: Any) -> bool:
    return isinstance(value, Sequence | np.ndarray) and len(value) > 0 and np.isscalar(value[0])


def _curve(label: str, answer: Any) -> tuple[Any, bool | None]:
    """The residuals of an answer, and whether it converged (None for plain numbers)."""
    values = np.asarray(getattr(answer, "residuals", answer), np.float64)
    if values.ndim != 1 or not len(values):
        raise ModelError(f"the answer {label!r} has no residuals: its method did not iterate")
    return np.maximum(values, SMALLEST), getattr(answer, "converged", None)


def _heading(curves: list[tuple[str, Any, bool | None]]) -> str:
    known = [converged for _, _, converged in curves if converged is not None]
    if not known:
        return "Residuals"
    if len(curves) == 1:
        label, values, converged = curves[0]
        return f"{label}: {'converged' if converged else 'not converged'} after {len(values)} iterations"
    return f"Residuals, {sum(known)} of {len(known)} converged"


def _history(history: Any) -> tuple[Any, list[str]]:
    """Pairs of bounds ``[n, 2]``, and the names of the steps where they have any."""
    names: list[str] = []
    pairs = history
    if hasattr(history, "details"):
        # Steps before the first bound have nothing to show.
        shown = [step for step in history.details if np.isfinite(step.best).any()]
        pairs, names = [step.best for step in shown], [step.method for step in shown]
    elif hasattr(history, "log_partition_bounds"):
        pairs, names = [history.log_partition_bounds], [history.method]
    try:
        array = np.asarray(pairs, np.float64)
    except (TypeError, ValueError):
        raise ModelError("plot.bounds needs an answer of sandwich, or pairs (lower, upper)") from None
    if array.ndim != 2 or array.shape[1] != 2 or not len(array):
        raise ModelError(f"plot.bounds needs an answer of sandwich, or pairs (lower, upper), got shape {array.shape}")
    return array, names


def _colours(n: int) -> list[str]:
    return [COLOURS[i % len(COLOURS)] for i in range(n)]


def _dress(ax: Axes, x: str, y: str, *, legend: bool) -> None:
    """The common look of curves: a pale grid, two spines, small text."""
    ax.grid(color=style.PALE, linewidth=1, zorder=0)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        ax.spines[side].set_color(style.LINE)
    ax.tick_params(length=0, labelsize=style.FONT_SIZE - 1.5, labelcolor=style.MUTED)
    ax.tick_params(which="minor", length=0)
    ax.set_xlabel(x, fontsize=style.FONT_SIZE, color=style.INK)
    ax.set_ylabel(y, fontsize=style.FONT_SIZE, color=style.INK)
    if legend:
        ax.legend(frameon=False, fontsize=style.FONT_SIZE - 1.5, labelcolor=style.INK, handlelength=1.6)
