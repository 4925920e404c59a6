"""Every answer has a picture: which function draws what, by the class of the answer."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from markovfield._exports import EXPORTS
from markovfield.exceptions import ModelError
from markovfield.inference.core.batches import MarginalsBatch
from markovfield.plot import _style as style
from markovfield.plot._sketch import count_of
from markovfield.plot.bars import marginals
from markovfield.plot.convergence import _dress
from markovfield.plot.diagrams import graph
from markovfield.plot.fields import spins
from markovfield.plot.fits import fit_history, margin_history
from markovfield.plot.penalties import penalty_path
from markovfield.plot.tables import MOST_ROWS, ROW_INCHES, table

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["answer"]

MOST_COLUMNS = 40
LONGEST_TITLE = 48


def answer(answer: Any, **settings: Any) -> Axes:
    """Draw any answer, report or model, by what it is; `answer.plot()` is the same.

    Models and learned graphs are drawn as graphs, marginals as bars, samples by how often states came up, batches as a
    map of probabilities, fits by their iterations, everything else by its table (`table`).

    Parameters
    ----------
    answer
        What a verb, an estimator or an analysis gave.
    **settings
        ``title``, ``ax``, and what the function that draws it takes besides.

    Examples
    --------
    >>> import markovfield as mf
    >>> net = mf.datasets.sprinkler()
    >>> mf.plot.answer(mf.log_partition(net)).get_xlabel()
    'log Z'
    """
    style.check_matplotlib()
    for kind in type(answer).__mro__:
        draw = DRAWN.get(kind.__name__)
        if draw is not None:
            return draw(answer, **settings)
    if not hasattr(answer, "to_frame"):
        raise ModelError(f"plot.answer draws answers, reports and models, got {type(answer).__name__}")
    settings.setdefault("title", style.plain(_headline(repr(answer).partition("\n")[0])))
    return table(answer, **settings)


def _headline(text: str) -> str:
    """A text that fits above a picture: what is too long ends at a colon or a comma, or names the class alone."""
    text = re.sub(r", [\d.e-]+ s$", "", text)  # seconds are not what it is about
    before = text.partition(": ")[0]
    if before.count("(") == before.count(")"):
        text = before
    if len(text) <= LONGEST_TITLE:
        return text
    name, _, inner = text.partition("(")
    if "=" in inner[:LONGEST_TITLE]:  # fields of a dataclass
        return name
    words = text[:LONGEST_TITLE].rpartition(", ")[0]
    return words + ", ...)" * (words.count("(") > words.count(")")) if words else name[:LONGEST_TITLE]


def _interval(answer: Any, *, title: str | None = None, ax: Axes | None = None) -> Axes:
    """log Z, and what is proven of it."""
    low, high = answer.log_partition_bounds
    at = float(answer.log_partition)
    ax = style.new_axes(ax, 6.6, 1.6)
    reach = max([abs(b - at) for b in (low, high) if np.isfinite(b)], default=0.0) or max(1.0, 0.1 * abs(at))
    ends = [b if np.isfinite(b) else at + sign * 1.6 * reach for b, sign in ((low, -1), (high, 1))]
    ax.plot(ends, [0, 0], color=style.BLUE, linewidth=5, alpha=0.35, solid_capstyle="butt", zorder=2)
    for bound, end, marker in ((low, ends[0], "<"), (high, ends[1], ">")):
        ax.plot([end], [0], marker="|" if np.isfinite(bound) else marker, color=style.BLUE, markersize=12, zorder=3)
    ax.plot([at], [0], "o", color=style.ORANGE, markersize=8, zorder=4)
    ax.annotate(f"{at:.6g}", (at, 0), xytext=(0, 10), textcoords="offset points", ha="center", fontsize=style.FONT_SIZE)
    ax.set_yticks([])
    ax.set_ylim(-1, 1.4)
    ax.margins(x=0.08)
    _dress(ax, "log Z", "", legend=False)
    style.title(ax, title if title is not None else f"log Z ({answer.guarantee}, {answer.method})")
    return ax


def _decoding(answer: Any, *, title: str | None = None, ax: Axes | None = None) -> Axes:
    """Scores of the best assignments, and the bound on the best there is."""
    found = list(getattr(answer, "n_best", ()) or [answer])[:MOST_ROWS]
    names = [", ".join(f"{v}={s}" for v, s in list(_assignment(one).items())[:4]) for one in found]
    rows = [f"{i}. {name[:44]}{'...' * (len(name) > 44)}" for i, name in enumerate(names, 1)]
    scores = np.array([float(one.score) for one in found])
    ax = style.new_axes(ax, 6.6, 1.1 + ROW_INCHES * len(found))
    y, bound = np.arange(len(found)), getattr(answer, "upper_bound", None)
    ax.plot(scores, y, "o", color=style.BLUE, markersize=6, zorder=3)
    if bound is not None and np.isfinite(bound):
        ax.axvline(float(bound), color=style.ORANGE, linewidth=1.6, zorder=2)
    ax.set_yticks(y, [style.plain(row) for row in rows])
    ax.set_ylim(len(found) - 0.4, -0.6)
    ax.margins(x=0.15)
    _dress(ax, "score (the line: what is proven of the best)" if bound is not None else "score", "", legend=False)
    ax.grid(axis="x", color=style.PALE, linewidth=1, zorder=0)
    told = "optimal" if answer.optimal else f"gap {answer.gap:.3g}"
    style.title(ax, title if title is not None else f"Decoding ({told}, {answer.method})")
    return ax


def _assignment(one: Any) -> dict[Any, Any]:
    return dict(one.assignment) if hasattr(one, "assignment") else {"structure": one.structure}


def _samples(answer: Any, *, title: str | None = None, ax: Axes | None = None) -> Axes:
    """How often states came up, with two standard errors (of independent draws)."""
    columns: dict[str, list[Any]] = {"variable": [], "state": [], "probability": [], "standard_error": []}
    n, weights, s = float(max(len(answer), 1)), None, answer.graph.structure
    if answer.log_weights is not None and len(answer):
        weights = np.exp(answer.log_weights - answer.log_weights.max())
        n = float(weights.sum() ** 2 / np.square(weights).sum())
    for v, name in enumerate(list(answer.graph.variables)[:MOST_ROWS]):
        cards = int(s.cardinalities[v])
        counts = np.bincount(answer.states[:, v], weights=weights, minlength=cards)
        shares = counts / max(float(counts.sum()), 1e-300)
        columns["variable"] += [name] * cards
        columns["state"] += [str(state) for state in s.names.state_names(v, cards)]
        columns["probability"] += shares.tolist()
        columns["standard_error"] += np.sqrt(shares * (1 - shares) / n).tolist()
    heading = f"{count_of(len(answer), 'sample')} ({answer.guarantee}, {answer.method})"
    return table(columns, title=heading if title is None else title, ax=ax)


def _batch(answer: MarginalsBatch, *, title: str | None = None, ax: Axes | None = None) -> Axes:
    """Probabilities of states as a map: a row for each row of evidence."""
    values = np.asarray(answer.values)[:MOST_COLUMNS, :MOST_COLUMNS]
    s = answer.graph.structure
    states = [s.names.state_names(v, int(k)) for v, k in enumerate(s.cardinalities[:MOST_COLUMNS])]
    labels = [f"{v}={k}" for v, named in zip(answer, states, strict=False) for k in named][:MOST_COLUMNS]
    return _map(values, labels, list(range(len(values))), title or f"{len(answer.values)} rows of evidence", ax)


def _map(values: Any, columns: list[Any], rows: list[Any], title: str, ax: Axes | None) -> Axes:
    """A map of numbers from 0 (white) to 1 (blue)."""
    tall, wide = values.shape
    ax = style.new_axes(ax, 2.0 + 0.3 * wide, 1.6 + 0.3 * tall, title)
    image = ax.imshow(values, cmap="Blues", vmin=0, vmax=max(1.0, float(np.nanmax(values, initial=0.0))), aspect="auto")
    ax.set_xticks(range(wide), [style.plain(c) for c in columns], rotation=90, fontsize=style.FONT_SIZE - 2)
    ax.set_yticks(range(tall), [style.plain(r) for r in rows], fontsize=style.FONT_SIZE - 2)
    ax.figure.colorbar(image, ax=ax, shrink=0.8)
    style.title(ax, title)
    return ax


def _graph(answer: Any, **settings: Any) -> Axes:
    """The graph of a model or of a learned structure."""
    for name in ("dag", "graph", "chain_graph"):
        found = getattr(answer, name, None)
        if found is not None and type(answer).__name__ in ("LearnedStructure", "LearnedGraph", "VectorAutoregression"):
            return graph(found() if callable(found) else found, **settings)
    return graph(answer, **settings)


def _history(answer: Any, **settings: Any) -> Axes:
    """Iterations of a fit, where it has any."""
    if len(getattr(answer, "history", ())):
        return fit_history(answer, **settings)
    return table(answer, **{"title": f"{answer.method}, {count_of(answer.n_rows, 'row')}", **settings})


def _parts(answer: Any, **settings: Any) -> Axes:
    """How likely each part of a structure is."""
    return table(answer, **{"title": f"Marginals of parts ({answer.guarantee}, {answer.method})", **settings})


def _mixed(answer: Any, *, title: str | None = None, ax: Axes | None = None) -> Axes:
    """Marginals of variables with states and of real-valued ones."""
    heading = f"Marginals ({answer.guarantee}, {answer.method})"
    return _bars_and_spreads(answer._columns(), heading if title is None else title, ax)


def _mixed_draws(answer: Any, *, title: str | None = None, ax: Axes | None = None) -> Axes:
    """How often states came up, and where real-valued variables lie."""
    names = ("variable", "state", "probability", "mean", "variance")
    columns: dict[str, list[Any]] = {name: [] for name in names}
    for variable, column in answer._columns().items():
        values = np.asarray(column)
        if not answer.field.is_discrete(variable):
            found = [(variable, None, np.nan, values.mean(), values.var())] if len(values) else []
        else:
            shares = Counter(values.tolist())
            found = [(variable, state, n / len(values), np.nan, np.nan) for state, n in sorted(shares.items(), key=str)]
        for row in found:
            for name, value in zip(names, row, strict=True):
                columns[name].append(value)
    heading = f"{count_of(len(answer), 'sample')} ({answer.guarantee}, {answer.method})"
    return _bars_and_spreads(columns, heading if title is None else title, ax)


def _bars_and_spreads(columns: dict[str, Any], title: str, ax: Axes | None) -> Axes:
    """Bars for states; mean and standard deviation in words for real-valued variables."""
    ax = table(columns, title=title, ax=ax, value="probability")
    rows = zip(*(list(columns[n])[:MOST_ROWS] for n in ("probability", "mean", "variance")), strict=True)
    for y, (p, mean, variance) in enumerate(rows):
        if np.isnan(p):
            ax.annotate(
                f"{mean:.4g} \u00b1 {np.sqrt(variance):.3g}", (0.01, y), va="center", fontsize=style.FONT_SIZE - 1
            )
    return ax


def _path(answer: Any, **settings: Any) -> Axes:
    return table(answer, value="ebic", **settings)


def _joint(answer: Any, *, title: str | None = None, ax: Axes | None = None) -> Axes:
    """Correlations of real-valued variables."""
    names = list(answer.variables)
    covariance = np.asarray(answer.covariance)[:MOST_COLUMNS, :MOST_COLUMNS]
    deviations = np.sqrt(np.maximum(np.diag(covariance), 1e-300))
    shown, more = names[:MOST_COLUMNS], f" (first {MOST_COLUMNS} of {len(names)})" * (len(names) > MOST_COLUMNS)
    heading = title if title is not None else f"Correlations{more}"
    drawn = _map(covariance / np.outer(deviations, deviations), shown, shown, heading, ax)
    drawn.images[0].set(cmap="RdBu_r", clim=(-1, 1))
    return drawn


def _draws(answer: Any, *, title: str | None = None, ax: Axes | None = None) -> Axes:
    """Means of real-valued draws, with two standard deviations to each side."""
    columns: dict[str, list[Any]] = {"variable": [], "mean": [], "standard_deviation": []}
    for name, column in answer._columns().items():
        values = np.asarray(column, np.float64)
        columns["variable"].append(name)
        columns["mean"].append(float(values.mean()) if len(values) else np.nan)
        columns["standard_deviation"].append(float(values.std()))
    heading = f"{count_of(len(answer), 'sample')} ({answer.guarantee}, {answer.method})"
    return table(columns, title=heading if title is None else title, ax=ax)


def _lattice(answer: Any, **settings: Any) -> Axes:
    """What a simulation looks like now."""
    return import_module(EXPORTS["plot"]).lattice(answer.state, **settings)  # type: ignore[no-any-return]


def _tree(answer: Any, **settings: Any) -> Axes:
    return import_module(EXPORTS["plot"]).tree(answer, **settings)  # type: ignore[no-any-return]


def _completion(answer: Any, **settings: Any) -> Axes:
    """Spins of a pattern, as an image where it is one."""
    state = np.asarray(answer.state)
    return spins(state if state.ndim == 2 else np.atleast_2d(state), **settings)


# By the name of the class, so that nothing is imported before it is drawn; a class is drawn like what it descends from.
DRAWN: dict[str, Callable[..., Axes]] = {
    "Completion": _completion,
    "Decoding": _decoding,
    "Drawn": _graph,
    "FitReport": _history,
    "GaussianDistribution": _joint,
    "GaussianMoments": _joint,
    "GaussianPath": penalty_path,
    "GaussianSamples": _draws,
    "LatticeSimulation": _lattice,
    "LearnedGraph": _graph,
    "LearnedStructure": _graph,
    "LogPartition": _interval,
    "MarginReport": margin_history,
    "Marginals": marginals,
    "MarginalsBatch": _batch,
    "MixedGraph": _graph,
    "MixedMarginals": _mixed,
    "MixedPath": _path,
    "MixedSamples": _mixed_draws,
    "PenaltyPath": penalty_path,
    "Samples": _samples,
    "StructureDecoding": _decoding,
    "StructureMarginals": _parts,
    "Tree": _tree,
    "VectorAutoregression": _graph,
}
