"""The command that decodes: the likeliest assignment of a model or a cost network, against the clock."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

import markovfield as mf
from markovfield.cli import _options as options
from markovfield.cli import _report as report
from markovfield.cli._errors import CommandError
from markovfield.cli._reading import check_place, configured_method, read_evidence, read_query, writing
from markovfield.io.networks import cost_sign
from markovfield.progress import ProgressLine
from markovfield.text_files import write_text

__all__ = ["decode"]


def decode(
    model: options.Model,
    evidence: options.Evidence = None,
    query_variables: Annotated[
        list[str] | None,
        typer.Option("-q", "--variables", metavar="NAMES", help="Decode these only, the others summed (marginal MAP)."),
    ] = None,
    method: options.method_of("decode") = "auto",  # type: ignore[valid-type]
    n_best: Annotated[int, typer.Option("-n", "--n-best", min=1, help="How many best assignments to list.")] = 1,
    time_limit: Annotated[
        float | None, typer.Option(metavar="SECONDS", help="Answer after so many seconds with the best so far.")
    ] = None,
    memory_limit: options.MemoryLimit = None,
    seed: options.Seed = None,
    n_jobs: options.Jobs = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o", "--out", "--output", metavar="FILE", help="Write a UAI MPE result, or a toulbar2 .sol file."
        ),
    ] = None,
    as_json: options.AsJson = False,
    everything: options.AllVariables = False,
) -> None:
    """The likeliest assignment, its score, and how far from the best it can be.

    Ctrl-C gives the best assignment so far. Of wcsp and cfn files the cost is told as well: minus the score.
    """
    check_place(output)
    if output is not None and output.suffix == ".sol" and query_variables:
        raise CommandError("a .sol file holds all variables: leave --variables out, or write a UAI result")
    out, err = report.consoles()
    with ProgressLine(f"decoding {model.name}", err, limit=time_limit) as waiting:
        graph = mf.io.read_network(model).compile()
        known = read_evidence(graph, evidence)
        positions = read_query(graph, None, query_variables) if query_variables else None
        chosen = configured_method(method, "decode", graph, known, memory_limit)
        answer = mf.decode(
            graph,
            known,
            variables=None if positions is None else [graph.variables[v] for v in positions],
            n_best=n_best,
            method=chosen,
            rng=seed,
            n_jobs=n_jobs,
            time_limit=time_limit,
            callback=waiting.callback,
        )
    if output is not None:
        with writing(output):
            _write(output, answer, positions)
    sign = cost_sign(model)
    if as_json:
        report.write_json(out, report.to_json("MPE" if positions is None else "MMAP", answer, sign))
        return
    title = "Likeliest assignment" if positions is None else "Likeliest assignment of the query"
    report.assignment_table(out, answer, known, title, everything=everything)
    for rank, solution in enumerate(answer.n_best[1:], 2):
        differs = [f"{v}={s}" for v, s in solution.assignment.items() if answer.assignment[v] != s]
        more = f" and {len(differs) - 8} more" if len(differs) > 8 else ""
        out.print(
            Text(f"{rank}. {report.score_text(solution.score, sign)}: {', '.join(differs[:8])}{more}"), soft_wrap=True
        )
    out.print(report.summary(answer, sign))
    if output is not None:
        report.wrote(out, output)


def _write(path: Path, answer: mf.Decoding, positions: list[int] | None) -> None:
    """A UAI result, or, by the ending ``.sol``, a line of state indices as toulbar2 writes it."""
    if path.suffix == ".sol":
        write_text(path, [" ".join(str(int(s)) for s in answer.states), "\n"])
        return
    mf.io.write_uai_result(path, "MPE" if positions is None else "MMAP", answer, query=positions)
