"""The commands, and the one place where failures become a sentence and an exit code."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

import markovfield as mf
from markovfield.cli import _options as options
from markovfield.cli import _report as report
from markovfield.cli import (
    align,
    crf,
    decoding,
    exploring,
    fitting,
    gaussian,
    logic,
    networks,
    parse,
    sampling,
    ssvm,
    structured,
)
from markovfield.cli._errors import FAILED, INTERRUPTED, OK, CommandError, explained
from markovfield.cli._reading import check_place, configured_method, read_evidence, read_query, writing
from markovfield.cli._stdin import without_folder
from markovfield.cli.manual import group_alone, help_, obeying, with_examples
from markovfield.cli.warmup import warmup
from markovfield.io.networks import cost_sign
from markovfield.progress import ProgressLine

__all__ = ["app", "run"]

app = typer.Typer(
    name="markovfield",
    help="Probabilistic graphical models: ask a model for probabilities, for the likeliest outcome, for samples.",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

VERB_OF_TASK = {"PR": "log_partition", "MAR": "marginals", "MPE": "decode", "MMAP": "decode"}


def _version(asked: bool) -> None:
    if asked:
        report.consoles()[0].print(f"markovfield {mf.__version__}")
        raise typer.Exit(OK)


@app.callback()
def _common(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    pass


@app.command()
def infer(
    model: options.Model,
    evidence: options.Evidence = None,
    task: Annotated[
        options.Task,
        typer.Option(
            case_sensitive=False,
            metavar="TASK",
            help="PR: log10 of the partition function. MAR: marginals. MPE (or MAP): likeliest assignment. "
            "MMAP: likeliest assignment of the query variables.",
        ),
    ] = options.Task.MAR,
    query: options.QueryFile = None,
    query_variables: options.QueryVariables = None,
    method: options.method_of("marginals", "decode", "log_partition") = "auto",  # type: ignore[valid-type]
    memory_limit: options.MemoryLimit = None,
    time_limit: options.TimeLimit = None,
    n_jobs: options.Jobs = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--out", "--output", metavar="FILE", help="Write a UAI result file.")
    ] = None,
    as_json: options.AsJson = False,
    everything: options.AllVariables = False,
) -> None:
    """Answer a question about a model: PR, MAR, MPE or MMAP."""
    check_place(output)
    kind = "MPE" if task is options.Task.MAP else task.value
    _check_query(kind, query, query_variables)
    out, err = report.consoles()
    with ProgressLine(f"{task.value} of {model.name}", err, limit=time_limit) as waiting:
        graph = mf.io.read_network(model).compile()
        known = read_evidence(graph, evidence)
        positions = read_query(graph, query, query_variables) if kind == "MMAP" else None
        chosen = configured_method(method, VERB_OF_TASK[kind], graph, known, memory_limit)
        running: dict[str, Any] = {"n_jobs": n_jobs, "time_limit": time_limit, "callback": waiting.callback}
        answer: Any
        if kind == "PR":
            answer = mf.log_partition(graph, known, chosen, **running)
        elif kind == "MAR":
            answer = mf.marginals(graph, known, method=chosen, **running)
        else:
            names = None if positions is None else [graph.variables[v] for v in positions]
            answer = mf.decode(graph, known, variables=names, method=chosen, **running)
    if output is not None:
        with writing(output):
            mf.io.write_uai_result(output, task.value, answer, query=positions)
    sign = cost_sign(model)
    if as_json:
        report.write_json(out, report.to_json(task.value, answer, sign))
        return
    if kind == "MAR":
        report.marginals_table(out, answer, known, everything=everything)
    elif kind != "PR":
        title = "Likeliest assignment" if kind == "MPE" else "Likeliest assignment of the query"
        report.assignment_table(out, answer, known, title, everything=everything)
    out.print(report.summary(answer, sign))
    if output is not None:
        report.wrote(out, output)


def _check_query(task: str, query: Path | None, query_variables: list[str] | None) -> None:
    """A query belongs to MMAP, and MMAP needs one."""
    if task == "MMAP" and query is None and not query_variables:
        raise CommandError("task MMAP needs --query or --query-variables")
    if task != "MMAP" and (query is not None or query_variables):
        raise CommandError(f"--query belongs to task MMAP, the task is {task}")


@app.command()
def explain(
    model: options.Model,
    evidence: options.Evidence = None,
    task: Annotated[
        str, typer.Option(metavar="TASK", help="PR, MAR, MPE, MMAP or SAMPLE: the question to be planned.")
    ] = "MAR",
    query: options.QueryFile = None,
    query_variables: options.QueryVariables = None,
    method: options.method_of("marginals", "decode", "log_partition", "sample") = "auto",  # type: ignore[valid-type]
    memory_limit: options.MemoryLimit = None,
    as_json: options.AsJson = False,
) -> None:
    """Tell which method would answer, why, and what it would cost; nothing large is allocated."""
    verb = {**VERB_OF_TASK, "MAP": "decode", "SAMPLE": "sample"}.get(task.upper())
    if verb is None:
        raise CommandError(f"explain knows the tasks PR, MAR, MPE, MMAP and SAMPLE, got {task!r}")
    _check_query(task.upper(), query, query_variables)
    out, err = report.consoles()
    with ProgressLine(f"planning {model.name}", err):
        graph = mf.io.read_network(model).compile()
        known = read_evidence(graph, evidence)
        chosen = configured_method(method, verb, graph, known, memory_limit)
        names = None
        if task.upper() == "MMAP":
            names = [graph.variables[v] for v in read_query(graph, query, query_variables)]
        explanation = mf.explain(graph, verb, evidence=known, method=chosen, variables=names)
    if as_json:
        report.write_json(out, explanation.to_dict())
    else:
        report.explanation_table(out, explanation)


app.command()(decoding.decode)
app.command()(sampling.sample)
app.command()(sampling.lattice)
app.command()(warmup)

app.command()(exploring.explore)

app.command()(networks.query)
app.command()(networks.learn)
app.command()(fitting.fit)
app.command()(networks.draw)

app.add_typer(crf.app, name="crf")
app.add_typer(parse.app, name="parse")
app.add_typer(ssvm.app, name="ssvm")
app.add_typer(structured.app, name="structured")
app.add_typer(align.app, name="align")
app.add_typer(logic.app, name="logic")
app.add_typer(gaussian.app, name="gaussian")


@app.command()
def demo(
    output: Annotated[Path, typer.Option("-o", "--output", metavar="DIR", help="Where the pictures go.")] = Path(
        "markovfield-demo"
    ),
    quick: Annotated[bool, typer.Option(help="A smaller image.")] = False,
) -> None:
    """A tour in three chapters: a diagnosis, a noisy image, a junction tree. Writes pictures and a page."""
    from markovfield.cli.demo.tour import tour

    out, err = report.consoles()
    tour(output, out, err, quick=quick)


app.command("help")(help_)
with_examples(app)


def run(arguments: Sequence[str]) -> int:
    """Obey a command line; the exit code. Only interruption and our own bugs come out as exceptions."""
    try:
        command, words = obeying(app), list(arguments)
        if group_alone(command, words):
            words.append("--help")
        returned = command(words, prog_name="markovfield", standalone_mode=False)
        sys.stdout.flush()
    except BrokenPipeError:
        # Whoever read our output has seen enough; keep the interpreter from complaining at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    except Exception as error:
        found = explained(error)
        if found is None:
            raise
        sentence, status = found
        told = without_folder(" ".join(sentence.split()))
        line = Text("error: ", style="bold red").append(told, style="not bold default")
        report.consoles()[1].print(line, soft_wrap=True)
        return status
    if returned == INTERRUPTED:  # Typer catches Ctrl-C
        raise KeyboardInterrupt
    return returned if isinstance(returned, int) else OK
