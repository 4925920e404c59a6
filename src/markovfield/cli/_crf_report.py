"""What the commands of `markovfield crf` show: progress of training, tables, JSON."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from markovfield.progress import fitting

if TYPE_CHECKING:
    from markovfield.sequence.chain.crf import ChainCRF
    from markovfield.sequence.tagger import ChainTagger
    from markovfield.sequence.text.entities import EntityReport, Score, TokenReport

__all__ = [
    "TrainingLine",
    "are_chunks",
    "entity_table",
    "features_json",
    "features_line",
    "score_json",
    "strongest",
    "token_table",
    "weights_table",
]

Rows = list[tuple[tuple[Any, ...], float]]


class TrainingLine(io.TextIOBase):
    """Context of a training; takes the lines that the library prints for each iteration.

    On a terminal the last one stands next to a spinner; when asked for, each goes to standard error to stay. Standard
    output is left to results.
    """

    def __init__(self, console: Console, what: str, *, verbose: bool) -> None:
        self._console = console
        self._what = what
        self._verbose = verbose
        self._stack = contextlib.ExitStack()
        self._display: Progress | None = None

    def __enter__(self) -> TrainingLine:
        self._stack.enter_context(contextlib.redirect_stdout(self))
        if self._console.is_terminal and not self._verbose:
            columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
            # rich would put itself between the library and this object.
            aside = {"redirect_stdout": False, "redirect_stderr": False}
            self._display = self._stack.enter_context(
                Progress(*columns, console=self._console, transient=True, **aside)  # type: ignore[arg-type]
            )
            self._display.add_task(self._what)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def writable(self) -> bool:
        """Lines may be written."""
        return True

    def write(self, text: str) -> int:
        """Show a line."""
        line = " ".join(text.split())
        if line and self._verbose:
            self._console.print(Text(text.rstrip("\n"), style="dim"), soft_wrap=True)
        elif line and self._display is not None:
            self._display.update(self._display.task_ids[0], description=fitting(self._what, line, self._console.width))
        return len(text)


def _table(*columns: str, right: Sequence[int] = ()) -> Table:
    table = Table(header_style="dim", box=None, pad_edge=False)
    for i, column in enumerate(columns):
        table.add_column(column, justify="right" if i in right else "left")
    return table


def are_chunks(labels: Sequence[Any]) -> bool:
    """Whether labels mark chunks, as ``B-NP`` and ``O`` do, and are not parts of speech, say."""
    parts = [str(label).partition("-") for label in labels]
    marked = [prefix in tuple("BIESLU") and (bool(kind) or not dash) for prefix, dash, kind in parts]
    outside = [str(label) == "O" for label in labels]
    return any(marked) and all(a or b for a, b in zip(marked, outside, strict=True))


def _scored(score: Score) -> dict[str, Any]:
    names = ("precision", "recall", "f1", "n_true", "n_found", "n_correct")
    return {name: getattr(score, name) for name in names}


def score_json(tokens: TokenReport, entities: EntityReport | None) -> dict[str, Any]:
    """One object for scores of tokens and, where labels mark chunks, of those."""
    body: dict[str, Any] = {
        "n_tokens": tokens.n_tokens,
        "accuracy": tokens.accuracy,
        "macro_f1": tokens.macro_f1,
        "labels": {str(label): _scored(score) for label, score in tokens.by_label.items()},
        "entities": None,
    }
    if entities is not None:
        by_type = {kind: _scored(score) for kind, score in entities.by_type.items()}
        body["entities"] = {**_scored(entities), "by_type": by_type}
    return body


def _percentages(score: Score) -> list[str]:
    return [f"{100 * x:.2f}" for x in (score.precision, score.recall, score.f1)]


def entity_table(console: Console, report: EntityReport) -> None:
    """What the CoNLL shared tasks' scorer prints, as a table: percentages, overall and by type."""
    # The first line is the scorer's own, word for word.
    console.print(Text(str(report).partition("\n")[0], style="bold"), soft_wrap=True)
    table = _table("type", "precision %", "recall %", "F1", "true", "found", right=range(1, 6))
    rows = {"all": report, **report.by_type}
    for name, score in rows.items():
        style = "bold" if score is report else ""
        cells = [*_percentages(score), str(score.n_true), str(score.n_found)]
        table.add_row(Text(name, style=style), *(Text(cell, style=style) for cell in cells))
    console.print(table)
    console.print(Text(f"token accuracy {100 * report.accuracy:.2f} %"))


def token_table(console: Console, report: TokenReport) -> None:
    """Percentages for each label, and over all tokens."""
    console.print(Text(f"{report.n_tokens} tokens, {report.n_correct} with the right label", style="bold"))
    table = _table("label", "precision %", "recall %", "F1", "true", "found", right=range(1, 6))
    for label, score in report.by_label.items():
        table.add_row(Text(str(label)), *_percentages(score), str(score.n_true), str(score.n_found))
    console.print(table)
    console.print(Text(f"token accuracy {100 * report.accuracy:.2f} %, macro F1 {100 * report.macro_f1:.2f}"))


def features_json(model: ChainTagger | ChainCRF) -> dict[str, Any]:
    """Where a model's attributes come from."""
    made = getattr(model, "features_", None)
    if made is None:
        return {"kind": "attributes"}
    body = {"columns": list(model.columns_), "label": model.label_}  # type: ignore[union-attr]
    if hasattr(made, "rules"):
        return {"kind": "template", "dialect": made.dialect, "template": [rule.text for rule in made.rules], **body}
    settings = made.get_params()
    lists = settings.pop("gazetteers") or {}
    return {"kind": "token_features", **settings, "gazetteers": {k: len(v) for k, v in lists.items()}, **body}


def features_line(model: ChainTagger | ChainCRF) -> str:
    """The same for people, on one line."""
    about = features_json(model)
    if about["kind"] == "attributes":
        return "attributes as files give them (CRFsuite's format)"
    columns = ", ".join(about["columns"])
    if about["kind"] == "template":
        return f"{about['dialect']} template of {len(about['template'])} rules on columns {columns}"
    return f"TokenFeatures(window={about['window']}, affixes={about['affixes']}) on columns {columns}"


def strongest(weights: Mapping[tuple[Any, ...], float], top: int, label: str | None = None) -> Rows:
    """The entries furthest from zero, those that speak for something first; only of one label, where given."""
    chosen = [item for item in weights.items() if label is None or _name(item[0][-1]) == label]
    kept = sorted(chosen, key=lambda item: -abs(item[1]))[:top]
    return sorted(kept, key=lambda item: -item[1])


def _name(label: Any) -> str:
    """A label; a hidden state is a pair of its label and a number."""
    return f"{label[0]}/{label[1]}" if isinstance(label, tuple) else str(label)


def weights_table(console: Console, title: str, columns: Sequence[str], rows: Rows) -> None:
    """Weights with bars, blue for and red against."""
    if not rows:
        return
    console.print()
    console.print(Text(title, style="bold"))
    table = _table("weight", "", *columns, right=(0,))
    top = max(abs(weight) for _, weight in rows) or 1.0
    for names, weight in rows:
        bar = Text("█" * max(1, round(8 * abs(weight) / top)), style="blue" if weight > 0 else "red")
        table.add_row(f"{weight:.3f}", bar, *(Text(_name(name)) for name in names))
    console.print(table)
