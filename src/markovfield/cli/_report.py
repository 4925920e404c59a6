"""Answers for people (tables) and for machines (one JSON object)."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table
from rich.text import Text

from markovfield.factor_graph import FactorGraph
from markovfield.inference.answers import Decoding, LogPartition, Marginals

__all__ = [
    "assignment_table",
    "explanation_table",
    "keys",
    "marginals_table",
    "summary",
    "to_json",
    "write_json",
]

ROWS_SHOWN = 40
STATES_SHOWN = 6
LOG_10 = math.log(10)


def keys(names: Sequence[Any]) -> list[str]:
    """Names as distinct texts: where a number and its text are both names, the text is quoted.

    Examples
    --------
    >>> keys(["A", 1, "1"])
    ['A', '1', "'1'"]
    """
    texts = [str(n) for n in names]
    if len(set(texts)) == len(texts):
        return texts
    numbers = {str(n) for n in names if not isinstance(n, str)}
    return [repr(n) if isinstance(n, str) and n in numbers else str(n) for n in names]


def _state_keys(graph: FactorGraph, position: int) -> list[str]:
    return keys(graph.names.state_names(position, int(graph.structure.cardinalities[position])))


def _number(value: float) -> float | None:
    """JSON has no infinity: what has none is null."""
    return float(value) if math.isfinite(value) else None


def to_json(task: str, answer: LogPartition | Marginals | Decoding) -> dict[str, Any]:
    """One object for an answer, with the fields that its task has."""
    body: dict[str, Any] = {"task": task}
    if isinstance(answer, Decoding):
        names = keys(list(answer.assignment))
        body["log10_score"] = _number(answer.score / LOG_10)
        body["assignment"] = dict(zip(names, map(_plain, answer.assignment.values()), strict=True))
    else:
        body["log10_partition"] = _number(answer.log_partition / LOG_10)
    if isinstance(answer, Marginals):
        names = keys(list(answer))
        body["marginals"] = {
            text: dict(zip(_state_keys(answer.graph, i), answer[name].tolist(), strict=True))
            for i, (text, name) in enumerate(zip(names, answer, strict=True))
        }
    body |= {
        "guarantee": answer.guarantee,
        "method": answer.method,
        "seconds": answer.seconds,
        "width": answer.width if answer.width >= 0 else None,
    }
    return body


def _plain(state: Any) -> Any:
    if state is None or isinstance(state, str | bool | int):
        return state
    if isinstance(state, float):
        return _number(state)
    return state.item() if isinstance(state, np.generic) else str(state)


def write_json(console: Console, body: Mapping[str, Any]) -> None:
    """The object on one line of standard output, never wrapped or coloured."""
    cleaned = {k: _number(v) if isinstance(v, float) else v for k, v in body.items()}
    text = json.dumps(cleaned, allow_nan=False, ensure_ascii=False, default=_plain)
    console.file.write(text + "\n")


def summary(answer: LogPartition | Marginals | Decoding) -> Text:
    """One line: the number, its guarantee, the method, the width, the seconds."""
    if isinstance(answer, Decoding):
        headline = f"log10 score = {answer.score / LOG_10:.8g}"
    else:
        headline = f"log10 Z = {answer.log_partition / LOG_10:.8g}"
    line = Text(headline, style="bold")
    colour = "green" if answer.guarantee == "exact" else "yellow"
    line.append(f"   {answer.guarantee}", style=colour)
    rest = [answer.method, *([f"width {answer.width}"] if answer.width >= 0 else []), f"{answer.seconds:.3g} s"]
    line.append("   " + ", ".join(rest), style="dim")
    return line


def _table(*columns: str) -> Table:
    table = Table(header_style="dim", box=None, pad_edge=False)
    for column in columns:
        table.add_column(column)
    return table


def _title(console: Console, text: str) -> None:
    # Not the table's own title, which would be wrapped to the width of a narrow table.
    console.print(Text(text, style="bold"))


def _more(console: Console, shown: int, total: int) -> None:
    if shown < total:
        console.print(Text(f"... and {total - shown} more variables; --all shows them", style="dim"))


def marginals_table(console: Console, answer: Marginals, observed: Mapping[Any, Any], *, everything: bool) -> None:
    """The likeliest state of each variable, its probability as a bar, and the others."""
    total = len(answer)
    shown = total if everything else min(total, ROWS_SHOWN)
    _title(console, "Marginals")
    table = _table("variable", "likeliest", "", "probability", "all states")
    table.columns[3].justify = "right"
    for i, name in enumerate(list(answer)[:shown]):
        p = answer[name]
        states = [str(s) for s in answer.graph.names.state_names(i, len(p))]
        best = int(np.argmax(p))
        listed = "  ".join(f"{s} {v:.4f}" for s, v in list(zip(states, p.tolist(), strict=True))[:STATES_SHOWN])
        if len(states) > STATES_SHOWN:
            listed += f"  ... ({len(states)} states)"
        known = name in observed
        table.add_row(
            Text(str(name), style="bold"),
            Text(states[best], style="yellow" if known else ""),
            Text("observed", style="yellow") if known else Text(_bar(float(p[best])), style="blue"),
            Text(f"{p[best]:.4f}"),
            Text(listed, style="dim"),
        )
    console.print(table)
    _more(console, shown, total)


def _bar(value: float, width: int = 8) -> str:
    """A bar in eighths of a character."""
    eighths = round(max(0.0, min(1.0, value)) * width * 8)
    return "█" * (eighths // 8) + " ▏▎▍▌▋▊▉"[eighths % 8].strip()


def assignment_table(
    console: Console, answer: Decoding, observed: Mapping[Any, Any], title: str, *, everything: bool
) -> None:
    """The state of each decoded variable."""
    items = list(answer.assignment.items())
    shown = len(items) if everything else min(len(items), ROWS_SHOWN)
    _title(console, title)
    table = _table("variable", "state", "")
    for name, state in items[:shown]:
        note = Text("observed", style="yellow") if name in observed else Text("")
        table.add_row(Text(str(name), style="bold"), Text(str(state)), note)
    console.print(table)
    _more(console, shown, len(items))


def explanation_table(console: Console, explanation: Any) -> None:
    """What a verb would do, a line for each thing to know."""
    _title(console, f"What {explanation.verb} would do")
    table = _table("", "")
    table.show_header = False
    for label, text in explanation.rows():
        warn = not explanation.fits and label in ("memory", "reason")
        table.add_row(Text(label, style="bold"), Text(text, style="yellow" if warn else ""))
    console.print(table)
