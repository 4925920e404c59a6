"""Any table of an answer as a picture: bars, points with errors, curves, or the cells themselves."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from markovfield.exceptions import ModelError
from markovfield.plot import _style as style
from markovfield.plot.convergence import COLOURS, _dress

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["table"]

MOST_ROWS, MOST_CURVES, MOST_CELLS = 30, 10, 24
# Columns that rows follow one another by: what depends on them is a curve.
ORDERED = ("step", "order", "pass", "iteration", "sweep", "penalty", "penalties", "lag", "position", "entry")
# Columns that a bar stands for before any other, the foremost first.
MAIN = (
    "probability",
    "average_precision",
    "mean",
    "derivative",
    "gain",
    "log_partition",
    "score",
    "value",
    "f1",
    "weight",
    "effective_sample_size",
)
# What goes with the mean or the value of a row, and is never drawn by itself.
BESIDE = ("variance", "standard_error", "mean_error", "variance_error", "lower", "upper", "standard_deviation")
# Figures of a report that are shares, and so have one scale.
SHARES = re.compile(r"precision|recall|f1|accuracy|error_rate|match|[ul]as\b|[ul]as_|no_crossing")
ROW_INCHES = 0.27
WIDEST_LABEL, WIDEST_CELL = 40, 80


def table(
    columns: Any, *, value: str | None = None, title: str | None = None, ax: Axes | None = None, limit: int = MOST_ROWS
) -> Axes:
    """Draw a table of numbers by what its columns are.

    Rows that follow one another by a number (steps, penalties, passes) are curves, one for each name beside it, with a
    band where bounds or variances are given. Other rows are bars, or points with two standard deviations to each side.
    A table without numbers is shown as it is.

    Parameters
    ----------
    columns
        Columns by name, or anything with ``to_frame``: every answer has it.
    value
        The column that is drawn; when None, the one that matters most (a probability, a mean, a score).
    title
        Stands above.
    ax
        Where to draw; a new figure of fitting size when None.
    limit
        How many rows bars and cells are drawn for.

    Returns
    -------
    Axes
        ``ax.patches`` has a bar for each row, or ``ax.lines`` a curve for each name.

    Examples
    --------
    >>> import markovfield as mf
    >>> ax = mf.plot.table({"city": ["Bonn", "York"], "score": [0.25, 0.75]})
    >>> len(ax.patches)
    2
    """
    style.check_matplotlib()
    found = _read(columns)
    if not found:
        raise ModelError("plot.table needs columns by name, or an answer with to_frame(), got nothing")
    numbers = {name: _numbers(column) for name, column in found.items()}
    numeric = [str(name) for name, column in numbers.items() if column is not None]
    if value is not None and value not in numeric:
        raise ModelError(f"plot.table(value=...) is a column of numbers, one of {numeric}, got {value!r}")
    if not numeric:
        return _cells(found, title, ax, limit)
    named = {str(name): column for name, column in found.items()}
    series = {str(name): column for name, column in numbers.items() if column is not None}
    along = next((name for name in ORDERED if name in series and name != value), None)
    if along is not None and len(numeric) > 1 and len(np.unique(series[along])) > 1:
        return _curves(named, series, along, value, title, ax)
    return _bars(named, series, value or next((n for n in MAIN if n in series), numeric[-1]), title, ax, limit)


def _read(columns: Any) -> dict[Any, list[Any]]:
    """The columns as lists, of whatever has columns."""
    if hasattr(columns, "_columns"):
        columns = columns._columns()
    elif not isinstance(columns, Mapping) and hasattr(columns, "to_frame"):
        columns = columns.to_frame()
    return {name: list(column) for name, column in dict(columns).items()}


def _numbers(column: list[Any]) -> Any:
    """A column as numbers, or None where it has names."""
    if any(isinstance(v, bool | np.bool_ | str | tuple | list) for v in column):
        return None
    try:
        return np.array([np.nan if v is None else v for v in column], np.float64)
    except (TypeError, ValueError):
        return None


def _whole(column: Any) -> bool:
    return bool(np.isfinite(column).all() and (column == np.round(column)).all())


def _shown(texts: list[Any], most: int = WIDEST_LABEL) -> str:
    text = ", ".join(", ".join(map(str, v)) if isinstance(v, tuple) else str(v) for v in texts if v not in (None, ""))
    return text if len(text) <= most else text[: most - 3] + "..."


def _spread(series: dict[str, Any], value: str, rows: Any) -> Any:
    """How far each row reaches below and above its value, ``[2, rows]``; None where nothing says so."""
    if "lower" in series and "upper" in series and value in ("mean", "value", "probability"):
        at = series[value][rows]
        return np.maximum(np.stack([at - series["lower"][rows], series["upper"][rows] - at]), 0.0)
    for name, scale in (("standard_error", False), ("standard_deviation", False), ("variance", True)):
        if name in series and value in ("mean", "probability") and (name != "variance" or value == "mean"):
            half = np.sqrt(series[name][rows]) if scale else series[name][rows]
            return 2 * np.stack([half, half])
    return None


def _bars(
    named: dict[str, list[Any]], series: dict[str, Any], value: str, title: str | None, ax: Axes | None, limit: int
) -> Axes:
    one = len(series[value]) == 1 and len(series) > 2
    if one and (value != "mean" or _spread(series, value, slice(0, 1)) is None):
        return _figures(series, title, ax)
    texts = [
        name for name, column in named.items() if name not in series and not isinstance(column[0], bool | np.bool_)
    ]
    # Whole numbers are names where nothing else is: a row's place in a table.
    beside = texts or [name for name in series if name not in (value, *BESIDE) and _whole(series[name])][:3]
    x = series[value][:limit]
    labels = [_shown([named[name][i] for name in beside]) or str(i) for i in range(len(x))]
    more = len(series[value]) - len(x)
    heading = title or style.plain(value.replace("_", " "))
    heading += f" (first {len(x)} of {len(x) + more})" * (more > 0)
    ax = style.new_axes(ax, 6.6, 1.1 + ROW_INCHES * max(len(x), 1), heading)
    y, spread = np.arange(len(x)), _spread(series, value, slice(0, limit))
    if value == "mean" and spread is not None:
        ax.errorbar(x, y, xerr=spread, fmt="o", color=style.BLUE, ecolor=style.LINE, capsize=3, markersize=4, zorder=3)
    else:
        error = {} if spread is None else {"xerr": spread, "error_kw": {"ecolor": style.MUTED, "capsize": 2}}
        colours = [style.ORANGE if v < 0 else style.BLUE for v in x]
        ax.barh(y, np.where(np.isfinite(x), x, 0.0), height=0.66, color=colours, zorder=3, **error)
        ax.axvline(0.0, color=style.LINE, linewidth=1, zorder=2)
        if spread is None:
            _numbered(ax, x)
    ax.set_yticks(y, [style.plain(label) for label in labels])
    ax.set_ylim(max(len(x), 1) - 0.4, -0.6)
    _dress(ax, style.plain(value.replace("_", " ")), "", legend=False)
    ax.grid(axis="x", color=style.PALE, linewidth=1, zorder=0)
    style.title(ax, heading)
    return ax


def _numbered(ax: Axes, x: Any) -> None:
    """The number of each bar at its end, away from zero."""
    for at, v in enumerate(x):
        if np.isfinite(v):
            said: dict[str, Any] = {"xytext": (-4 if v < 0 else 4, 0), "textcoords": "offset points", "va": "center"}
            ax.annotate(_number(v), (v, at), ha="right" if v < 0 else "left", fontsize=8, color=style.MUTED, **said)
    ax.margins(x=0.12)


def _number(value: float) -> str:
    whole = value == round(value) if abs(value) < 1e5 else abs(value) < 1e15
    return f"{value:,.0f}" if whole else f"{value:.4g}"


def _figures(series: dict[str, Any], title: str | None, ax: Axes | None) -> Axes:
    """The figures of a report of one row: bars of its shares, and cells where there are none, as scales differ."""
    row = {name: float(column[0]) for name, column in series.items() if np.isfinite(column[0])}
    shares = {name: v for name, v in row.items() if 0 <= v <= 1 and not name.startswith("n_") and SHARES.search(name)}
    chosen = shares if len(shares) > 1 else row
    names: list[Any] = [name.replace("_", " ") for name in chosen]
    if chosen is row:
        return _cells({"what": names, "value": list(map(_number, row.values()))}, title, ax, MOST_ROWS)
    columns = {"what": names, "value": list(chosen.values())}
    return _bars(columns, {"value": np.array(columns["value"])}, "value", title, ax, MOST_ROWS)


def _curves(
    named: dict[str, list[Any]],
    series: dict[str, Any],
    along: str,
    value: str | None,
    title: str | None,
    ax: Axes | None,
) -> Axes:
    texts = [name for name in named if name not in series]
    drawn = [value] if value else [n for n in series if n != along and n not in BESIDE]
    main = next((n for n in MAIN if n in drawn), None)
    if texts and len(drawn) > 1:
        drawn = [main or drawn[-1]]
    keys = list(zip(*(named[name] for name in texts), strict=True)) if texts else [()] * len(series[along])
    ax = style.new_axes(ax, 6.6, 3.8)
    chosen = list(dict.fromkeys(keys))[:MOST_CURVES]
    for i, (key, what) in enumerate((key, what) for key in chosen for what in drawn):
        rows = np.flatnonzero([k == key for k in keys])
        rows = rows[np.argsort(series[along][rows], kind="stable")]
        label = ", ".join([*map(str, key), *([what.replace("_", " ")] if len(drawn) > 1 else [])])
        colour, x, y = COLOURS[i % len(COLOURS)], series[along][rows], series[what][rows]
        ax.plot(x, y, color=colour, linewidth=1.6, label=style.plain(label), zorder=3)
        spread = _spread(series, what, rows)
        if spread is not None:
            ax.fill_between(x, y - spread[0], y + spread[1], color=colour, alpha=0.15, linewidth=0, zorder=2)
    if along in ("penalty", "penalties") and series[along].min() > 0:
        ax.set_xscale("log")
        ax.tick_params(axis="x", which="minor", labelsize=style.FONT_SIZE - 2)
    elif _whole(series[along]):
        ax.locator_params(axis="x", integer=True)
    several = len(chosen) * len(drawn) > 1
    _dress(ax, style.plain(along), "" if len(drawn) > 1 else style.plain(drawn[0].replace("_", " ")), legend=several)
    more = len(set(keys)) - len(chosen)
    heading = title or f"by {style.plain(along)}"
    style.title(ax, heading + (f" (first {len(chosen)} of {len(chosen) + more})" if more else ""))
    return ax


def _cells(found: dict[Any, list[Any]], title: str | None, ax: Axes | None, limit: int) -> Axes:
    """Cells of text, where there are no numbers to draw."""
    most = max(WIDEST_LABEL, WIDEST_CELL // max(len(found) - 1, 1))
    rows = [[_shown([v], most) for v in row] for row in zip(*found.values(), strict=True)]
    shown, more = rows[: min(limit, MOST_CELLS)], max(0, len(rows) - min(limit, MOST_CELLS))
    names = [str(name) for name in found]
    wide = [max(style.text_size(t)[0] for t in column) for column in zip(names, *shown, strict=True)]
    heading = (title or "") + f" (first {len(shown)} of {len(shown) + more})" * (more > 0)
    ax = style.new_axes(ax, max(3.0, sum(wide) / 72 + 0.35 * len(wide)), 0.7 + ROW_INCHES * (len(shown) + 1), heading)
    ax.set_axis_off()
    drawn = ax.table(
        cellText=[[style.plain(t) for t in row] for row in shown] or [[""] * len(names)],
        colLabels=[style.plain(n) for n in names],
        colWidths=[w / sum(wide) for w in wide],
        cellLoc="left",
        loc="upper center",
        edges="horizontal",
    )
    drawn.auto_set_font_size(False)
    drawn.set_fontsize(style.FONT_SIZE - 1)
    for cell in drawn.get_celld().values():
        cell.set_edgecolor(style.PALE)
    style.title(ax, heading)
    return ax
