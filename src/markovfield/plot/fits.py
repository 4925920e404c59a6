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

__all__ = ["fit_history", "margin_history"]

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
    style.check_matplotlib()
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


def margin_history(
    reports: Any, *, against: str = "oracle_calls", title: str | None = None, ax: Axes | None = None
) -> Axes:
    """Draw how max-margin training went: the gap between primal and the best dual, on a log axis.

    The gap is relative to the primal at the end. Where a solver has no dual, it is drawn to the best of all duals;
    where none has any, to the lowest primal.

    Parameters
    ----------
    reports
        A fitted estimator or its ``report_``, or a mapping of labels to several.
    against
        ``"oracle_calls"``, ``"passes"`` or ``"seconds"``.
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
    >>> import numpy as np
    >>> import markovfield as mf
    >>> svm = mf.StructuredClassifier(mf.structured.MulticlassModel(), objective="hinge", rng=0)
    >>> svm = svm.fit(np.array([[0.0], [1.0], [2.0], [3.0]]), ["a", "a", "b", "b"])
    >>> mf.plot.margin_history(svm).get_yscale()
    'log'
    """
    style.check_matplotlib()
    axes = {"oracle_calls": "oracle calls", "passes": "passes", "seconds": "seconds"}
    if against not in axes:
        raise ModelError(f"against must be one of {', '.join(map(repr, axes))}, got {against!r}")
    given = reports if isinstance(reports, Mapping) else {"": reports}
    found = []
    for label, one in given.items():
        report = getattr(one, "report_", one)
        if not getattr(report, "passes", ()):
            raise ModelError(f"the fit {label or type(one).__name__!r} has no passes of max-margin training")
        found.append((str(label) or report.solver, report))
    duals = [one.dual for _, report in found for one in report.passes if np.isfinite(one.dual)]
    primals = [one.primal for _, report in found for one in report.passes if np.isfinite(one.primal)]
    below = max(duals) if duals else min(primals)
    ax = style.new_axes(ax, 6.6, 3.8)
    for i, (label, report) in enumerate(found):
        steps = [(k + 1, one) for k, one in enumerate(report.passes) if np.isfinite(one.primal)]
        at = [k if against == "passes" else getattr(one, against) for k, one in steps]
        best = np.minimum.accumulate([one.primal for _, one in steps])
        gaps = np.maximum((best - below) / max(abs(best[-1]), SMALLEST), SMALLEST) if len(best) else best
        colour = COLOURS[i % len(COLOURS)]
        ax.plot(at, gaps, color=colour, linewidth=1.6, marker="o", markersize=3, label=style.plain(label), zorder=3)
    ax.set_yscale("log")
    if against != "passes" and len(found) > 1:
        ax.set_xscale("log")
    _dress(ax, axes[against], "gap, share of the primal", legend=len(found) > 1)
    label, report = found[0]
    heading = f"{len(found)} fits"
    if len(found) == 1:
        heading = f"{label}: {'converged' if report.converged else 'not converged'} after {report.iterations} passes"
    style.title(ax, title if title is not None else heading)
    return ax
