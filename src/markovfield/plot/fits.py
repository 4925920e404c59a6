"""How a fit went: what was maximised, iteration by iteration."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from markovfield.exceptions import ModelError
from markovfield.plot import _style as style
from markovfield.plot.convergence import COLOURS, _dress

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["fit_history"]

# A gap to the best of this share of the whole is drawn at the bottom of the axis: logs have no zero.
SMALLEST = 1e-12


def fit_history(reports: Any, *, title: str | None = None, ax: Axes | None = None) -> Axes:
    """Draw how far each iteration of a fit was from where it ended, on a log axis.

    A filled circle at the end of a curve says that the fit converged there, a cross that it did not.

    Parameters
    ----------
    reports
        A fitted model or its ``fit_report``, or a mapping of labels to several.
    title
        Replaces the title.
    ax
        Where to draw; a new figure when None.

    Returns
    -------
    Axes
        ``ax.lines`` starts with one curve for each fit, in order.

    Examples
    --------
    >>> import markovfield as mf
    >>> ring = mf.MarkovNetwork.from_edges(dict.fromkeys("ABC", 2), ["AB", "BC", "CA"])
    >>> fitted = mf.fit(ring, [[0, 0, 1], [1, 1, 0], [0, 1, 1], [1, 1, 1]], method=mf.methods.MaximumLikelihood(l2=1.0))
    >>> mf.plot.fit_history(fitted).get_yscale()
    'log'
    """
    given = reports if isinstance(reports, Mapping) else {"": reports}
    curves = []
    for label, one in given.items():
        report = getattr(one, "fit_report", one)
        values = np.asarray(getattr(report, "history", ()), np.float64)
        if not len(values):
            raise ModelError(f"the fit {label or getattr(report, 'method', '')!r} has no history: it did not iterate")
        curves.append((str(label) or report.method, values, bool(report.converged), report))
    ax = style.new_axes(ax, 6.6, 3.8)
    for i, (label, values, converged, _) in enumerate(curves):
        colour = COLOURS[i % len(COLOURS)]
        gaps = np.maximum(values.max() - values, SMALLEST * max(1.0, abs(values.max())))
        ax.plot(np.arange(1, len(gaps) + 1), gaps, color=colour, linewidth=1.6, label=style.plain(label), zorder=3)
        marker: dict[str, Any] = {"marker": "o"} if converged else {"marker": "x", "mew": 1.8}
        ax.plot([len(gaps)], gaps[-1:], color=colour, linestyle="none", markersize=6, zorder=4, **marker)
    ax.set_yscale("log")
    _dress(ax, "iteration", "below the best", legend=len(curves) > 1)
    label, values, converged, report = curves[0]
    heading = f"{len(curves)} fits"
    if len(curves) == 1:
        heading = f"{label}: {'converged' if converged else 'not converged'} after {report.iterations} iterations"
    style.title(ax, title if title is not None else heading)
    return ax
