"""How edges come into a sparse graph as the penalty falls."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from markovfield.exceptions import ModelError
from markovfield.learning.gaussian.lasso_path import GaussianPath
from markovfield.learning.structures.penalty_path import PenaltyPath
from markovfield.plot import _style as style
from markovfield.plot.convergence import _dress

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["penalty_path"]


def penalty_path(learned: Any, *, truth: Any = None, title: str | None = None, ax: Axes | None = None) -> Axes:
    """Draw the strength of every edge against the penalty, which falls to the right, with the number of edges above.

    Parameters
    ----------
    learned
        What `GroupLasso` or `GraphicalLasso` learned, or its ``details``. Edges of the chosen graph are blue, others
        grey; a dashed line stands at the chosen penalty.
    truth
        A graph, or pairs of variables, to compare with: its edges are blue then, all others orange.
    title
        Replaces the title.
    ax
        Where to draw; a new figure when None.

    Returns
    -------
    Axes
        ``ax.lines`` starts with one curve for each edge of ``details.edges``, in order.

    Examples
    --------
    >>> import markovfield as mf
    >>> from markovfield.plot.penalties import penalty_path
    >>> ring = mf.Ising([(0, 1), (1, 2), (2, 3), (3, 0)], coupling=0.5)
    >>> learned = mf.learn_structure(mf.sample(ring, 500, rng=0), method="group_lasso")
    >>> ax = penalty_path(learned, truth=ring.edges.tolist())
    >>> ax.get_xscale(), len(ax.lines) >= 4
    ('log', True)
    """
    style.check_matplotlib()
    path = getattr(learned, "details", learned)
    if not isinstance(path, PenaltyPath | GaussianPath):
        raise ModelError(
            f"plot.penalty_path draws what GroupLasso or GraphicalLasso learned, got {type(learned).__name__}"
        )
    if truth is None:
        edges = getattr(learned, "edges", None) if learned is not path else None
        blue = {frozenset(e) for e in (edges if edges is not None else _chosen(path))}
    else:
        blue = {frozenset(e) for e in (truth.edges if hasattr(truth, "edges") else truth)}
    other = style.LINE if truth is None else style.ORANGE
    ax = style.new_axes(ax, 6.6, 4.0)
    for edge, strength in zip(path.edges, path.strengths.T, strict=True):
        inside = frozenset(edge) in blue
        # An edge starts at the last penalty without it.
        known = strength != 0
        known[:-1] |= known[1:]
        values = np.where(known, strength, np.nan)
        colour, width = (style.BLUE, 1.3) if inside else (other, 0.9)
        ax.plot(path.penalties, values, color=colour, linewidth=width, zorder=3 if inside else 2)
    ax.axhline(0.0, color=style.LINE, linewidth=0.8, zorder=1)
    ax.axvline(path.penalties[path.chosen], color=style.INK, linewidth=1.0, linestyle=(0, (4, 3)), zorder=1)
    if len(path.penalties) > 1:
        ax.set_xscale("log")
        ax.set_xlim(path.penalties[0], path.penalties[-1])
        inside_axis = _ticks(path.penalties[-1], path.penalties[0])
        ax.set_xticks(inside_axis, [f"{t:g}" for t in inside_axis])
        ax.minorticks_off()
    _dress(ax, "penalty", "strength of edge", legend=False)
    marks = np.unique(np.linspace(0, len(path.penalties) - 1, 7).astype(int))
    above = ax.secondary_xaxis("top")
    above.set_xticks(path.penalties[marks], [str(n) for n in path.n_edges[marks]])
    above.minorticks_off()
    above.tick_params(length=0, labelsize=style.FONT_SIZE - 1.5, labelcolor=style.MUTED)
    above.spines["top"].set_visible(False)
    n = path.n_edges[path.chosen] if learned is path else len(learned.edges)
    style.title(ax, title if title is not None else f"{n} edges chosen; how many at each penalty, above")
    return ax


def _ticks(low: float, high: float) -> list[float]:
    """Round numbers between two: one, two and five of each power of ten, more where these would be fewer than three."""
    found: list[float] = []
    for digits in ((1, 2, 5), (1, 1.5, 2, 3, 4, 5, 6, 8), [d / 10 for d in range(10, 100)]):
        found = [t for e in range(-12, 13) for d in digits if low <= (t := d * 10.0**e) <= high]
        if len(found) >= 3:
            break
    return found[:: max(1, len(found) // 10)]


def _chosen(path: Any) -> list[Any]:
    """The edges of a path at its chosen penalty."""
    return [edge for edge, there in zip(path.edges, path.strengths[path.chosen] != 0, strict=True) if there]
