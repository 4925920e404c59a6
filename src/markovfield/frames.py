"""Answers as data frames of pandas or polars, and as tables in a notebook: one place for all of them.

A class whose contents are a table says what its columns are (`Tabular._columns`), and has `to_frame` and a table in
notebooks by that. Neither library is imported before a frame is asked for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from importlib import import_module
from io import BytesIO
from itertools import islice
from typing import Any, ClassVar

import numpy as np

from markovfield._exports import EXPORTS
from markovfield.exceptions import ModelError
from markovfield.extras import missing
from markovfield.names import Variables, distinct_texts

__all__ = ["Drawn", "OneRow", "Tabular", "drawing", "fresh_name", "html_table", "to_frame"]

BACKENDS = ("pandas", "polars")
SHOWN_ROWS, SHOWN_COLUMNS, SHOWN_STATES = 20, 12, 6
# A larger graph is not drawn unasked: it takes long, and names no longer fit.
MOST_DRAWN = 60
# No text makes a table wider than a screen; the frame has all of it.
LONGEST_TEXT = 120
# A headline is one line, also above a narrow table.
_CAPTION = '<caption style="white-space: nowrap; text-align: left">'
_STYLE = "background:linear-gradient(90deg,#9ecae1 {0:.0f}%,transparent {0:.0f}%)"


def to_frame(columns: Mapping[Any, Any], backend: str = "pandas", index: Any = None) -> Any:
    """Columns by name as a frame of pandas or of polars.

    Polars names columns by text and keeps one type in each: there, numbers as names become text, and so does what is in
    a column of several types.

    Examples
    --------
    >>> to_frame({"variable": ["A", "B"], "probability": [0.25, 0.75]}, "polars").shape
    (2, 2)
    """
    if backend not in BACKENDS:
        raise ModelError(f"to_frame(backend=...) is 'pandas' or 'polars', got {backend!r}")
    try:
        library = import_module(backend)
    except ImportError:
        raise missing(f"to_frame(backend={backend!r})", backend) from None
    if backend == "pandas":
        return library.DataFrame(dict(columns), index=index)
    return library.DataFrame(dict(zip(distinct_texts(list(columns)), map(_one_type, columns.values()), strict=True)))


def _one_type(column: Any) -> Any:
    if isinstance(column, np.ndarray) and column.dtype.kind in "biuf":
        return column
    values = [v.item() if isinstance(v, np.generic) else v for v in column]
    kinds = set(map(type, values)) - {type(None)}
    return values if len(kinds) < 2 or kinds == {int, float} else [v if v is None else str(v) for v in values]


def fresh_name(name: str, taken: Sequence[Any]) -> str:
    """A column's name that no variable has: underscores are put after it until none does."""
    while name in taken:
        name += "_"
    return name


def html_table(headline: str, columns: Mapping[Any, Any], rows: int = SHOWN_ROWS) -> str:
    """The first rows of some columns as an HTML table under a headline; probabilities have a bar behind them.

    Examples
    --------
    >>> html_table("Coin", {"state": ["heads"]})
    '<table>...Coin</caption><tr><th>state</th></tr><tr><td>heads</td></tr></table>'
    """
    shown = dict(list(columns.items())[:SHOWN_COLUMNS])
    wide = len(shown) < len(columns)
    head = "".join(f"<th>{escape(str(name))}</th>" for name in shown) + "<th>...</th>" * wide
    body = []
    for row in zip(*(list(column[: rows + 1]) for column in shown.values()), strict=True):
        cells = (_cell(str(name), value) for name, value in zip(shown, row, strict=True))
        body.append(f"<tr>{''.join(cells)}{'<td>...</td>' * wide}</tr>")
    if len(body) > rows:
        body[-1] = f"<tr>{'<td>...</td>' * (len(shown) + wide)}</tr>"
    return f"<table>{_CAPTION}{escape(_shortened(headline))}</caption><tr>{head}</tr>{''.join(body)}</table>"


def _shortened(text: str) -> str:
    return text if len(text) <= LONGEST_TEXT else f"{text[: LONGEST_TEXT - 3]}..."


def _cell(name: str, value: Any) -> str:
    if not isinstance(value, (float, np.floating)):
        return f"<td>{escape(_shortened(str(value)))}</td>"
    if (name == "probability" or name.startswith("P(")) and 0 <= value <= 1:
        return f'<td style="{_STYLE.format(100 * value)}">{value:.4g}</td>'
    return f"<td>{value:.6g}</td>"


class Tabular:
    """What can be seen as a table: a frame, a table in a notebook, a picture."""

    __slots__ = ()

    def _columns(self, limit: int | None = None) -> dict[Any, Any]:
        """The columns by name; with a limit, at least so many of their rows, where there are as many."""
        raise NotImplementedError

    def _picture(self) -> str:
        """What a notebook shows instead of a table; nothing where there is no such picture."""
        return ""

    def _html_columns(self, limit: int) -> dict[Any, Any]:
        """What a notebook shows, where that is not the frame."""
        return self._columns(limit)

    def to_frame(self, backend: str = "pandas") -> Any:
        """The answer as a frame of ``"pandas"`` or ``"polars"``.

        Examples
        --------
        >>> import markovfield as mf
        >>> net = mf.MarkovNetwork({"coin": ["heads", "tails"]})
        >>> _ = net.add_factor(["coin"], [3.0, 1.0])
        >>> mf.marginals(net).to_frame()
          variable  state  probability
        0     coin  heads         0.75
        1     coin  tails         0.25
        """
        return to_frame(self._columns(), backend)

    def plot(self, **settings: Any) -> Any:
        """Draw the answer by what it is: `markovfield.plot.answer` of it.

        Examples
        --------
        >>> import markovfield as mf
        >>> mf.marginals(mf.datasets.sprinkler()).plot(title="Before anything is seen").get_title(loc="left")
        'Before anything is seen'
        """
        # By its public name: plots are far above answers.
        return import_module(EXPORTS["plot"]).answer(self, **settings)

    def _repr_html_(self) -> str:
        return self._picture() or html_table(repr(self).partition("\n")[0], self._html_columns(SHOWN_ROWS + 1))


class OneRow(Tabular):
    """A report whose table has one row: the attributes that it lists."""

    __slots__ = ()
    _row: ClassVar[tuple[str, ...]] = ()

    def _columns(self, limit: int | None = None) -> dict[Any, Any]:
        return {name: [getattr(self, name)] for name in self._row}


class Drawn(Variables, Tabular):
    """A model: a collection of its variables by name, a drawing in a notebook, a table of variables as a frame."""

    def _count_states(self, position: int) -> int:
        """How many states a variable has; 0 where it has none to count."""
        return 0

    def _columns(self, limit: int | None = None) -> dict[Any, Any]:
        names = self._current_names()
        columns: dict[Any, Any] = {"variable": list(islice(self, limit))}
        counts = [self._count_states(v) for v in range(len(columns["variable"]))]
        if any(counts):
            columns["states"] = [_states(names.state_names(v, n)) for v, n in enumerate(counts)]
        if hasattr(self, "parents"):
            columns["parents"] = [", ".join(map(str, self.parents(v))) for v in columns["variable"]]
        return columns

    def _picture(self) -> str:
        return drawing(self, len(self))


def _states(names: Sequence[Any]) -> str:
    return ", ".join(map(str, names[:SHOWN_STATES])) + (", ..." if len(names) > SHOWN_STATES else "")


def drawing(graph: Any, size: int, kind: str = "graph") -> str:
    """What `markovfield.plot.graph` draws, as SVG; nothing for large graphs and where matplotlib is not installed."""
    if not 0 < size <= MOST_DRAWN:
        return ""
    try:
        # By its public name: plots are far above models.
        axes = getattr(import_module(EXPORTS["plot"]), kind)(graph)
    except (ImportError, ModelError):
        return ""
    library, stream = import_module("matplotlib"), BytesIO()
    with library.rc_context({"svg.fonttype": "none"}):
        axes.figure.savefig(stream, format="svg", bbox_inches="tight", metadata={"Date": None})
    import_module("matplotlib.pyplot").close(axes.figure)
    return f"<div>{stream.getvalue().decode().partition('?>')[2].partition('>')[2].strip()}</div>"
