"""Markov logic from files: infer probabilities or the likeliest world, learn weights, write the ground network."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.table import Table
from rich.text import Text

import markovfield as mf
from markovfield.cli import _options as options
from markovfield.cli import _report as report
from markovfield.cli._errors import CommandError
from markovfield.cli._reading import check_place, configured_method, writing
from markovfield.cli.fitting import configured_fit
from markovfield.progress import ProgressLine, in_bytes, memory_used

__all__ = ["app"]

app = typer.Typer(help="Markov logic: weighted formulas and a database: infer, learn, ground.")

SHOWN = 40
CUTTING_PLANES = ("cutting_plane_inference", "cutting_planes", "cpi")
ProgramFile = Annotated[Path, typer.Argument(metavar="PROGRAM", help="A program (.mln): types, predicates, formulas.")]
Database = Annotated[
    Path | None, typer.Option("-e", "--evidence", metavar="FILE", help="A database of ground atoms (.db).")
]
Query = Annotated[
    list[str] | None,
    typer.Option("-q", "--query", metavar="ATOMS", help="Asked for: 'Smokes', 'advisedBy(x, Ann)'; repeatable."),
]
Closed = Annotated[
    list[str] | None,
    typer.Option("--closed", metavar="NAME", help="False where the database is silent; repeatable."),
]


@app.command()
def infer(
    program: ProgramFile,
    evidence: Database = None,
    query: Query = None,
    closed: Closed = None,
    best: Annotated[bool, typer.Option("--map", help="The likeliest world in place of probabilities.")] = False,
    method: options.method_of("marginals", "decode") = "auto",  # type: ignore[valid-type]
    memory_limit: options.MemoryLimit = None,
    time_limit: options.TimeLimit = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Same seed, same answer.")] = None,
    n_jobs: options.Jobs = None,
    as_json: options.AsJson = False,
    everything: Annotated[bool, typer.Option("--all", help="Show all atoms, not only the first 40.")] = False,
) -> None:
    """Probabilities of the atoms that are asked for, or the likeliest world."""
    out, err = report.consoles()
    with ProgressLine(f"grounding {program.name}", err, limit=time_limit, memory=True) as waiting:
        running: dict[str, Any] = {"n_jobs": n_jobs, "time_limit": time_limit, "rng": seed}
        if method in CUTTING_PLANES:
            if not best:
                raise CommandError(f"{method} finds the likeliest world: give --map")
            lazy = mf.logic.read(program).lazy(evidence, query or None, closed=closed or None)
            answer = mf.decode(lazy, method=method, callback=waiting.callback, **running)
            _show_lazily(out, answer, everything, as_json)
            return
        world = _ground(program, evidence, query, closed)
        verb = "decode" if best else "marginals"
        graph = world.compile()
        chosen = configured_method(method, verb, graph, {}, memory_limit)
        verb_of: Any = mf.decode if best else mf.marginals
        answer = verb_of(world, method=chosen, callback=waiting.callback, **running)
    if as_json:
        found = report.to_json("MPE" if best else "MAR", answer)
        report.write_json(out, {**found, "n_ground_formulas": graph.n_factors, "log_constant": world.log_constant})
        return
    chosen_atoms = np.flatnonzero(world.asked).tolist()
    if best:
        rows = [(world.atoms[at], 1.0 if answer.states[at] else 0.0) for at in chosen_atoms]
    else:
        rows = [(name, float(answer[name][1])) for name in (world.atoms[at] for at in chosen_atoms)]
    _show(out, rows, best, everything)
    out.print(Text(repr(world), style="dim"), soft_wrap=True)
    out.print(report.summary(answer))
    _show_memory(out)


def _show_memory(out: Any) -> None:
    """The most memory that the process had, where the system says it."""
    most = memory_used()[1]
    if most:
        out.print(Text(f"peak memory {in_bytes(most)}", style="dim"))


def _show(out: Any, rows: list[tuple[str, float]], best: bool, everything: bool) -> None:
    """Atoms with their probabilities, or whether they are true, the likeliest first."""
    rows.sort(key=lambda row: -row[1])
    table = Table(box=None, header_style="bold")
    table.add_column("atom")
    table.add_column("true" if best else "probability", justify="right")
    for name, p in rows if everything else rows[:SHOWN]:
        table.add_row(Text(name), ("yes" if p else "no") if best else f"{p:.4f}")
    out.print(table)
    if not everything and len(rows) > SHOWN:
        out.print(Text(f"... and {len(rows) - SHOWN} more atoms (--all shows them)", style="dim"))


def _show_lazily(out: Any, answer: Any, everything: bool, as_json: bool) -> None:
    """The likeliest world of a network that was not grounded as a whole."""
    n = answer.graph.n_factors
    if as_json:
        report.write_json(out, {**report.to_json("MPE", answer), "n_ground_formulas": n})
        return
    rows = [(name, float(truth)) for name, truth in answer.assignment.items() if not name.startswith("_")]
    _show(out, rows, True, everything)
    out.print(Text(f"{n:,} ground formulas were needed, in {answer.iterations} rounds", style="dim"))
    out.print(report.summary(answer))
    _show_memory(out)


@app.command()
def learn(
    program: ProgramFile,
    databases: Annotated[list[Path], typer.Argument(metavar="DATABASE", help="Databases, each a world of its own.")],
    output: Annotated[
        Path, typer.Option("-o", "--out", "--output", metavar="FILE", help="Where to write the program.")
    ],
    query: Query = None,
    closed: Closed = None,
    hidden: Annotated[
        list[str] | None, typer.Option("--hidden", metavar="NAME", help="A predicate that nobody has seen; repeatable.")
    ] = None,
    method: Annotated[
        str, typer.Option("-m", "--method", metavar="NAME", help="auto, maximum_likelihood, pseudo_likelihood, ...")
    ] = "auto",
    l2: Annotated[float | None, typer.Option(min=0, help="Penalty on the weights' squares.")] = None,
    structure: Annotated[
        bool, typer.Option("--structure", help="Add clauses that the databases show; weights by pseudo-likelihood.")
    ] = False,
    max_length: Annotated[int | None, typer.Option(min=1, help="Literals of a new clause.")] = None,
    max_variables: Annotated[int | None, typer.Option(min=1, help="Variables of a new clause.")] = None,
    penalty: Annotated[float | None, typer.Option(min=0, help="What a literal of a new clause costs.")] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Same seed, same answer.")] = None,
    time_limit: options.TimeLimit = None,
    n_jobs: options.Jobs = None,
    as_json: options.AsJson = False,
    everything: Annotated[bool, typer.Option("--all", help="Show all formulas, not only the first 40.")] = False,
) -> None:
    """Learn the weights of a program's formulas, and with --structure new clauses, and write the program with them."""
    check_place(output)
    out, err = report.consoles()
    kb = mf.logic.read(program)
    new = {"max_length": max_length, "max_variables": max_variables, "penalty": penalty}
    running: dict[str, Any] = {"n_jobs": n_jobs, "time_limit": time_limit}
    search = _clause_search(method, hidden, closed, {"l2": l2, **new}) if structure else None
    if search is None:
        for name, value in new.items():
            if value is not None:
                raise CommandError(f"--{name.replace('_', '-')} is of new clauses, which --structure looks for")
        chosen = configured_fit(method, "LogLinear", {"l2": l2})
    with ProgressLine(f"learning {program.name}", err, limit=time_limit, memory=True) as waiting:
        running["callback"] = waiting.callback
        if search is not None:
            fitted = kb.learn_structure(list(databases), query, search, rng=seed, **running)
        else:
            fitted = kb.fit(
                list(databases), query, chosen, hidden=hidden or (), closed=closed or None, rng=seed, **running
            )
    with writing(output):
        fitted.write(output)
    if as_json:
        found = report.fit_json(fitted)
        if structure and fitted.fit_report is not None:
            found["steps"] = [vars(step) for step in fitted.fit_report.details.steps]
        report.write_json(out, found)
        return
    table = Table(box=None, header_style="bold")
    table.add_column("weight", justify="right")
    table.add_column("formula")
    written = mf.logic.read(output).rules  # weights for constants as formulas of their own
    for rule in written if everything else written[:SHOWN]:
        table.add_row("hard" if rule.hard else f"{rule.weight or 0.0:.4g}", Text(str(rule.formula)))
    out.print(table)
    if not everything and len(written) > SHOWN:
        out.print(Text(f"... and {len(written) - SHOWN} more formulas (--all shows them)", style="dim"))
    report.fit_lines(out, fitted, program.name)
    out.print(Text(f"wrote {output}", style="dim"), soft_wrap=True)
    _show_memory(out)


def _clause_search(method: str, hidden: list[str] | None, closed: list[str] | None, settings: dict[str, Any]) -> Any:
    """The search of clauses with the settings that were given."""
    if closed:
        raise CommandError("--structure takes all that is not asked for as given: --closed is for weights")
    if hidden:
        raise CommandError("--structure learns from what is seen: --hidden is for weights")
    if method not in ("auto", "clause_search"):
        raise CommandError(f"--structure has the method clause_search, got {method!r}")
    return mf.methods.ClauseSearch(**{name: value for name, value in settings.items() if value is not None})


@app.command()
def ground(
    program: ProgramFile,
    evidence: Database = None,
    query: Query = None,
    closed: Closed = None,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--out", "--output", metavar="FILE", help="Write the network (.uai, .wcsp, .cfn, ...)."),
    ] = None,
    decimals: Annotated[int, typer.Option(min=0, help="Of the costs in .wcsp and .cfn files.")] = 6,
    as_json: options.AsJson = False,
) -> None:
    """Count what a program grounds to, rule by rule, and write the ground network."""
    check_place(output)
    out, err = report.consoles()
    with ProgressLine(f"grounding {program.name}", err, memory=True):
        world = _ground(program, evidence, query, closed)
        if output is not None:
            with writing(output):
                rounding = {"decimals": decimals} if output.suffix in (".wcsp", ".cfn") else {}
                mf.write(world.compile(), output, **rounding)
    columns = world._columns()
    if as_json:
        rows = [dict(zip(columns, map(_plain, row), strict=True)) for row in zip(*columns.values(), strict=True)]
        s = world.compile().structure
        report.write_json(
            out, {"n_atoms": s.n_variables, "n_ground_formulas": s.n_factors, "seconds": world.seconds, "rules": rows}
        )
        return
    table = Table(box=None, header_style="bold")
    for name in columns:
        table.add_column(name, justify="left" if name == "rule" else "right")
    for row in zip(*columns.values(), strict=True):
        table.add_row(*(Text(cell if isinstance(cell, str) else f"{cell:,.6g}") for cell in row))
    out.print(table)
    out.print(Text(repr(world), style="dim"), soft_wrap=True)
    if output is not None:
        out.print(Text(f"wrote {output}", style="dim"), soft_wrap=True)
    _show_memory(out)


def _plain(cell: Any) -> Any:
    return cell if isinstance(cell, str) else float(np.asarray(cell))


def _ground(program: Path, evidence: Path | None, query: list[str] | None, closed: list[str] | None) -> Any:
    return mf.logic.read(program).ground(evidence, query or None, closed=closed or None)
