"""Commands for Bayesian networks: ask one, learn one, draw one."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.text import Text

import markovfield as mf
from markovfield.cli import _options as options
from markovfield.cli import _report as report
from markovfield.cli._errors import CommandError
from markovfield.cli._reading import check_place, read_evidence, read_query, save_picture, writing
from markovfield.cli._stdin import data_file
from markovfield.extras import check_installed
from markovfield.io.columns import MISSING
from markovfield.io.networks import check_ending
from markovfield.learning.registry import resolve
from markovfield.progress import ProgressLine

__all__ = ["draw", "learn", "query"]

NO_STRUCTURE = "none"
STRUCTURES = "hill_climbing, chow_liu, pc"
PICTURES = (".png", ".svg", ".pdf")

Out = options.WrittenTo


def query(
    model: options.Model,
    target: Annotated[
        list[str], typer.Option("-t", "--target", metavar="NAMES", help="Variables to ask for, jointly.")
    ],
    evidence: options.Evidence = None,
    given: Annotated[
        list[str] | None,
        typer.Option("-g", "--given", metavar="NAMES", help="Condition on these, for each of their states."),
    ] = None,
    do: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=STATE", help="Set a variable by intervention; may be repeated."),
    ] = None,
    informative: Annotated[
        bool, typer.Option("--informative", help="Also rank what would tell most about the target.")
    ] = False,
    method: options.Method = "auto",
    time_limit: options.TimeLimit = None,
    n_jobs: options.Jobs = None,
    as_json: options.AsJson = False,
) -> None:
    """The posterior of a few variables, given what is observed."""
    out, err = report.consoles()
    ranking = None
    with ProgressLine(f"query of {model.name}", err, limit=time_limit) as waiting:
        network = mf.io.read_network(model)
        graph = network.compile()
        if do:
            if not isinstance(network, mf.BayesianNetwork):
                raise CommandError(f"--do needs a Bayesian network, and {model} is none")
            network = network.do(read_evidence(graph, do))
            graph = network.compile()
        known = read_evidence(graph, evidence)
        targets = [graph.variables[v] for v in read_query(graph, None, target)]
        conditions = [graph.variables[v] for v in read_query(graph, None, given)]
        answer = mf.query(
            graph,
            targets,
            known,
            given=conditions,
            method=method,
            n_jobs=n_jobs,
            time_limit=time_limit,
            callback=waiting.callback,
        )
        if informative:
            if len(targets) != 1:
                raise CommandError(f"--informative ranks for one target, got {len(targets)}")
            ranking = mf.analysis.mutual_information(graph, targets[0], evidence=known, method=method)
    if as_json:
        report.write_json(out, report.distribution_json(answer, ranking))
        return
    report.distribution_table(out, answer)
    if ranking is not None:
        report.ranking_table(out, ranking)


def learn(
    data: Annotated[
        Path,
        typer.Argument(
            metavar="DATA",
            callback=data_file,
            help="A CSV file with a row of names (also .gz or .xz), or - for one on standard input.",
        ),
    ],
    structure: Annotated[
        str | None,
        typer.Option(metavar="NAME", help=f"How to find the arcs: {STRUCTURES}; {NO_STRUCTURE} leaves them out."),
    ] = None,
    network: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Keep this network's arcs and states, fit its tables only.")
    ] = None,
    score: Annotated[str, typer.Option(metavar="NAME", help="Score of hill climbing: bic, aic, bdeu or k2.")] = "bic",
    max_parents: Annotated[int | None, typer.Option(min=0, help="Most parents of a variable in hill climbing.")] = None,
    alpha: Annotated[float, typer.Option(help="Significance level of the PC algorithm's tests.")] = 0.05,
    estimate: Annotated[
        str, typer.Option(metavar="NAME", help="auto, maximum_likelihood, dirichlet or expectation_maximization.")
    ] = "auto",
    weights: options.CountColumn = None,
    ignore: options.LeftOut = None,
    missing: options.MissingWords = None,
    seed: options.Seed = None,
    time_limit: options.TimeLimit = None,
    n_jobs: options.Jobs = None,
    output: Out = None,
    as_json: options.AsJson = False,
) -> None:
    """Learn a Bayesian network from a table: its arcs, then its tables."""
    check_place(output)
    if output is not None:
        check_ending(output)
    out, err = report.consoles()
    with ProgressLine(f"learning from {data.name}", err, limit=time_limit) as waiting:
        bare: Any = None
        if network is not None:
            if structure is not None:
                raise CommandError("--network brings its own arcs: leave --structure out")
            bare = mf.io.read_network(network)
            if not isinstance(bare, mf.BayesianNetwork):
                raise CommandError(f"{network} is no Bayesian network")
        columns = _columns(data, MISSING if missing is None else tuple(missing), bare)
        for name in ignore or ():
            if name not in columns:
                raise CommandError(f"{data} has no column {name!r} to ignore")
            del columns[name]
        running: dict[str, Any] = {"n_jobs": n_jobs, "time_limit": time_limit, "callback": waiting.callback}
        found = None
        table = mf.learning.encode(columns, bare, weights=weights)
        if bare is None:
            if structure != NO_STRUCTURE:
                chosen = _structure_method(structure or "hill_climbing", score, max_parents, alpha)
                found = mf.learn_structure(table.complete_rows(), method=chosen, rng=seed, **running)
                if not isinstance(found, mf.LearnedStructure):
                    raise CommandError(f"{found.method} finds edges, not the arcs of a Bayesian network: {STRUCTURES}")
            bare = found.to_network() if found is not None else _independent(table)
        with warnings.catch_warnings(record=True) as doubts:
            warnings.simplefilter("always")
            learnt = mf.fit(bare, table, method=estimate, rng=seed, **running)
    for doubt in doubts:
        err.print(Text(f"warning: {doubt.message}", style="yellow"), soft_wrap=True)
    if output is not None:
        with writing(output):
            mf.io.write_network(learnt, output)
    if as_json:
        report.write_json(out, report.learnt_json(learnt, found))
        return
    report.learnt_table(out, learnt, found)
    if output is not None:
        report.wrote(out, output)


def _columns(data: Path, missing: tuple[str, ...], network: Any) -> dict[str, Any]:
    """The columns of a file; what a given network calls a state is never taken for missing."""
    columns: dict[str, Any] = dict(mf.io.read_csv(data, missing=()))
    for name, column in columns.items():
        known = network is not None and name in network.variables
        states = {str(s) for s in network.states(name)} if known else set()
        gaps = [text for text in missing if text not in states]
        column[np.isin(column, gaps)] = None
    return columns


def _structure_method(name: str, score: str, max_parents: int | None, alpha: float) -> Any:
    method = resolve(name, "learn_structure", "DataTable")
    if isinstance(method, mf.methods.HillClimbing):
        return mf.methods.HillClimbing(score=score, max_parents=max_parents)
    return mf.methods.PC(alpha=alpha) if isinstance(method, mf.methods.PC) else method


def _independent(table: mf.learning.DataTable) -> mf.BayesianNetwork:
    net = mf.BayesianNetwork(dict(zip(table.variables, table.states, strict=True)))
    for v in table.variables:
        net.set_parents(v, [])
    return net


def draw(
    model: options.Model,
    output: Annotated[
        Path, typer.Option("-o", "--out", "--output", metavar="FILE", help="The picture: .svg, .png or .pdf.")
    ],
    kind: Annotated[
        str,
        typer.Option(
            metavar="KIND",
            help="auto, directed, factor, primal, junction_tree, or posteriors (bars of probabilities on the graph).",
        ),
    ] = "auto",
    evidence: options.Evidence = None,
    title: Annotated[str | None, typer.Option(help="Replaces the title.")] = None,
    as_json: options.AsJson = False,
) -> None:
    """Draw a model as a picture."""
    if output.suffix.lower() not in PICTURES:
        raise CommandError(f"a picture's name ends in {', '.join(PICTURES)}, got {output.name!r}")
    kinds = ("auto", "directed", "factor", "primal", "junction_tree", "posteriors")
    if kind not in kinds:
        raise CommandError(f"--kind is one of {', '.join(kinds)}, got {kind!r}")
    check_place(output)
    check_installed("a picture", "matplotlib")
    out, err = report.consoles()
    with ProgressLine(f"drawing {model.name}", err):
        network = mf.io.read_network(model)
        known = read_evidence(network.compile(), evidence)
        axes: Any
        if kind == "junction_tree":
            axes = mf.plot.junction_tree(network, title=title)
        elif kind == "posteriors":
            axes = mf.plot.posteriors(network, evidence=known, title=title)
        else:
            axes = mf.plot.graph(network, kind=kind, evidence=known, title=title)  # type: ignore[arg-type]
        with writing(output):
            save_picture(axes.figure, output)
    if as_json:
        report.write_json(out, {"output": str(output), "kind": kind})
        return
    report.wrote(out, output)
