"""Answers for people (tables) and for machines (one JSON object)."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table
from rich.text import Text

from markovfield.factors.factor_graph import FactorGraph
from markovfield.inference.core.answers import LogPartition, Marginals
from markovfield.inference.core.decodings import Decoding, Solution
from markovfield.names import distinct_texts

__all__ = [
    "assignment_table",
    "consoles",
    "distribution_json",
    "distribution_table",
    "explanation_table",
    "fit_json",
    "fit_lines",
    "learnt_json",
    "learnt_table",
    "marginals_table",
    "ranking_table",
    "score_text",
    "summary",
    "to_json",
    "write_json",
    "wrote",
]

ROWS_SHOWN = 40
STATES_SHOWN = 6
LOG_10 = math.log(10)


def consoles() -> tuple[Console, Console]:
    """Standard output and standard error, looked up at each call so that redirection is seen."""
    return Console(highlight=False), Console(stderr=True, highlight=False)


def _state_keys(graph: FactorGraph, position: int) -> list[str]:
    return distinct_texts(graph.names.state_names(position, int(graph.structure.cardinalities[position])))


def _number(value: float) -> float | None:
    """JSON has no infinity: what has none is null."""
    return float(value) if math.isfinite(value) else None


def to_json(task: str, answer: LogPartition | Marginals | Decoding, sign: int = 0) -> dict[str, Any]:
    """One object for an answer, with the fields that its task has; ``sign`` makes a cost of a score (`cost_sign`)."""
    body: dict[str, Any] = {"task": task}
    if isinstance(answer, Decoding):
        body |= _solution_json(answer.n_best[0], sign) | {
            "log10_score": _number(answer.score / LOG_10),
            "upper_bound": _number(answer.upper_bound),
            "gap": _number(answer.gap),
            "optimal": answer.optimal,
        }
        if sign:
            body["cost_bound"] = _number(0.0 + sign * answer.upper_bound)
        if len(answer.n_best) > 1:
            body["n_best"] = [_solution_json(solution, sign) for solution in answer.n_best]
    else:
        body["log10_partition"] = _number(answer.log_partition / LOG_10)
        body["log10_partition_bounds"] = [_number(bound / LOG_10) for bound in answer.log_partition_bounds]
    if isinstance(answer, Marginals):
        names = distinct_texts(list(answer))
        body["marginals"] = {
            text: dict(zip(_state_keys(answer.graph, i), answer[name].tolist(), strict=True))
            for i, (text, name) in enumerate(zip(names, answer, strict=True))
        }
    body |= {
        "guarantee": answer.guarantee,
        "method": answer.method,
        "converged": answer.converged,
        "seconds": answer.seconds,
        "width": answer.width if answer.width >= 0 else None,
    }
    return body


def _solution_json(solution: Solution, sign: int) -> dict[str, Any]:
    names = distinct_texts(list(solution.assignment))
    cost = {"cost": _number(0.0 + sign * solution.score)} if sign else {}
    assignment = dict(zip(names, map(_plain, solution.assignment.values()), strict=True))
    return {"score": _number(solution.score), **cost, "assignment": assignment}


def score_text(score: float, sign: int) -> str:
    """A score; where the model is one of costs, the cost as well."""
    return f"cost {0.0 + sign * score:.10g}, score {score:.10g}" if sign else f"score {score:.10g}"


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


def wrote(console: Console, path: Path) -> None:
    """The last line, where a file was written."""
    console.print(Text(f"wrote {path}", style="dim"), soft_wrap=True)


def _decoding_summary(answer: Decoding, sign: int) -> Text:
    line = Text(score_text(answer.score, sign), style="bold")
    if not sign:
        line.append(f" (log10 {answer.score / LOG_10:.8g})", style="dim")
    if answer.optimal:
        line.append("   proven optimal", style="green")
    elif math.isfinite(answer.gap):
        bound = f"cost at least {-answer.upper_bound:.10g}" if sign < 0 else f"at most {answer.upper_bound:.10g}"
        line.append(f"   {bound}, gap {answer.gap:.4g}", style="yellow")
    else:
        line.append("   nothing is proven of it", style="yellow")
    return line.append(f"   {_how(answer)}", style="dim")


def _how(answer: LogPartition | Marginals | Decoding) -> str:
    width = [f"width {answer.width}"] if answer.width >= 0 else []
    return ", ".join([answer.method, *width, f"{answer.seconds:.3g} s"])


def summary(answer: LogPartition | Marginals | Decoding, sign: int = 0) -> Text:
    """One line: the number, its guarantee, the method, the width, the seconds."""
    if isinstance(answer, Decoding):
        return _decoding_summary(answer, sign)
    line = Text(f"log10 Z = {answer.log_partition / LOG_10:.8g}", style="bold")
    colour = "green" if answer.guarantee == "exact" else "yellow"
    line.append(f"   {answer.guarantee}", style=colour)
    low, high = answer.log_partition_bounds
    if -math.inf < low < high < math.inf:
        line.append(f" within [{low / LOG_10:.8g}, {high / LOG_10:.8g}]", style=colour)
    if not answer.converged:
        line.append(", not converged", style=colour)
    return line.append(f"   {_how(answer)}", style="dim")


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


def distribution_table(console: Console, answer: Any) -> None:
    """Every configuration with its probability as a bar."""
    given = f" given {', '.join(map(str, answer.given))}" if answer.given else ""
    _title(console, f"Posterior of {', '.join(map(str, answer.variables))}{given}")
    table = _table(*map(str, (*answer.given, *answer.variables)), "probability", "")
    table.columns[-2].justify = "right"
    for states, p in answer.items():
        possible = math.isfinite(p)
        shown = Text(f"{p:.6f}") if possible else Text("impossible", style="dim")
        table.add_row(*(Text(str(s)) for s in states), shown, Text(_bar(p) if possible else "", style="blue"))
    console.print(table)
    console.print(Text(f"{answer.guarantee}   {answer.method}, {answer.seconds:.3g} s", style="dim"))


def ranking_table(console: Console, ranking: Any, most: int = 15) -> None:
    """What would tell most, with bars relative to the first."""
    _title(console, f"Ranking by {ranking.quantity}")
    table = _table("variable", "value", "")
    table.columns[1].justify = "right"
    rows = ranking.top(most)
    top = rows[0][1] if rows and rows[0][1] > 0 else 1.0
    for name, value in rows:
        table.add_row(Text(str(name), style="bold"), Text(f"{value:.6f}"), Text(_bar(value / top), style="blue"))
    console.print(table)
    if len(ranking) > len(rows):
        console.print(Text(f"... and {len(ranking) - len(rows)} more variables", style="dim"))


def distribution_json(answer: Any, ranking: Any = None) -> dict[str, Any]:
    """One object for a query's answer."""
    axes = (*answer.given, *answer.variables)
    names = distinct_texts(axes)
    body: dict[str, Any] = {
        "variables": distinct_texts(answer.variables),
        "given": distinct_texts(answer.given),
        "probabilities": [
            {**dict(zip(names, map(_plain, states), strict=True)), "probability": _number(p)}
            for states, p in answer.items()
        ],
        "guarantee": answer.guarantee,
        "method": answer.method,
        "seconds": answer.seconds,
    }
    if ranking is not None:
        body["mutual_information"] = dict(
            zip(distinct_texts([v for v, _ in ranking]), [x for _, x in ranking], strict=True)
        )
    return body


def fit_json(model: Any) -> dict[str, Any]:
    """One object for a fit: how it went and how well the model describes its data."""
    fit = model.fit_report
    return {
        "log_likelihood": _number(fit.log_likelihood),
        "bic": _number(fit.bic),
        "objective": None if fit.objective is None else _number(fit.objective),
        "gradient_norm": None if fit.gradient_norm is None else _number(fit.gradient_norm),
        "guarantee": fit.guarantee,
        "n_rows": fit.n_rows,
        "missing": {str(v): n for v, n in fit.missing.items()},
        "n_parameters": fit.n_parameters,
        "method": fit.method,
        "converged": fit.converged,
        "iterations": fit.iterations,
        "message": fit.message,
        "notes": list(fit.notes),
        "seconds": fit.seconds,
    }


def fit_lines(console: Console, model: Any, name: str) -> None:
    """How the fit went, and what its report notes."""
    fit = model.fit_report
    gaps = f", {sum(fit.missing.values())} values missing" if fit.missing else ""
    _title(console, f"{name}: {fit.n_parameters} parameters fitted to {fit.n_rows} rows{gaps}")
    if fit.log_likelihood == fit.log_likelihood:
        console.print(Text(f"log-likelihood {fit.log_likelihood:.8g}   BIC {fit.bic:.8g}", style="bold"))
    if fit.objective is not None and fit.objective == fit.objective:
        console.print(Text(f"{fit.objective_name}: {fit.objective:.8g}"))
    steps = f", {fit.iterations} iteration{'s' * (fit.iterations != 1)}" if fit.iterations > 1 else ""
    console.print(Text(f"{fit.method} ({fit.guarantee}){steps}, {fit.seconds:.3g} s", style="dim"))
    for note in fit.notes:
        console.print(Text(note, style="dim"), soft_wrap=True)
    if not fit.converged:
        console.print(Text(f"not converged: {fit.message}", style="yellow"), soft_wrap=True)


def learnt_json(network: Any, found: Any = None) -> dict[str, Any]:
    """One object for a learnt network: its arcs and how well it fits."""
    fit = network.fit_report
    body: dict[str, Any] = {
        "variables": distinct_texts(network.variables),
        "arcs": [[_plain(a), _plain(b)] for a, b in network.arcs],
        "log_likelihood": _number(fit.log_likelihood),
        "bic": _number(fit.bic),
        "n_rows": fit.n_rows,
        "missing": {str(v): n for v, n in fit.missing.items()},
        "n_parameters": fit.n_parameters,
        "method": fit.method,
        "converged": fit.converged,
        "iterations": fit.iterations,
        "seconds": fit.seconds,
    }
    if found is not None:
        body["structure"] = {"method": found.method, "score": found.score, "seconds": found.seconds}
    return body


def learnt_table(console: Console, network: Any, found: Any = None) -> None:
    """The arcs, child by child, and how well the network fits."""
    _title(console, f"Bayesian network: {network.n_variables} variables, {len(network.arcs)} arcs")
    table = _table("variable", "states", "parents")
    table.columns[1].justify = "right"
    for v in list(network.variables)[:ROWS_SHOWN]:
        parents = ", ".join(map(str, network.parents(v)))
        table.add_row(Text(str(v), style="bold"), str(network.cardinality(v)), Text(parents or "-"))
    console.print(table)
    if network.n_variables > ROWS_SHOWN:
        console.print(Text(f"... and {network.n_variables - ROWS_SHOWN} more variables", style="dim"))
    fit = network.fit_report
    if found is not None:
        score = "" if found.score is None else f", score {found.score:.8g}"
        console.print(Text(f"structure: {found.method}{score}, {found.seconds:.3g} s", style="dim"))
    line = Text(f"log-likelihood {fit.log_likelihood:.8g}", style="bold")
    steps = f", {fit.iterations} iterations" if fit.history else ""
    gaps = f", {sum(fit.missing.values())} values missing" if fit.missing else ""
    line.append(
        f"   BIC {fit.bic:.8g}   {fit.n_parameters} parameters, {fit.n_rows} rows{gaps}, {fit.method}{steps}",
        style="dim",
    )
    console.print(line)
    if not fit.converged:
        console.print(Text(f"not converged: {fit.message}", style="yellow"))
