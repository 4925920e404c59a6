"""The command fit: parameters of a model of any kind, from a table."""

from __future__ import annotations

import dataclasses
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
from markovfield.cli._reading import check_place, writing
from markovfield.cli._stdin import data_file
from markovfield.io.columns import MISSING
from markovfield.io.networks import check_ending
from markovfield.learning.registry import registered, resolve
from markovfield.progress import ProgressLine

__all__ = ["configured_fit", "fit"]


def fit(
    model: options.Model,
    data: Annotated[
        Path,
        typer.Option(
            "-d", "--data", metavar="DATA", callback=data_file, help="A CSV file with a row of names, or - for stdin."
        ),
    ],
    method: Annotated[
        str, typer.Option("-m", "--method", metavar="NAME", help="auto, ml, pl, ipf, closed_form, sml, cd, em, ...")
    ] = "auto",
    l2: Annotated[float | None, typer.Option(min=0, help="Penalty on squares of parameters.")] = None,
    l1: Annotated[float | None, typer.Option(min=0, help="Penalty on absolute values, of interactions.")] = None,
    group_l1: Annotated[float | None, typer.Option(min=0, help="Penalty on norms of tables of interactions.")] = None,
    solver: Annotated[str | None, typer.Option(metavar="NAME", help="lbfgs, steepest_descent, ...")] = None,
    inference: Annotated[
        str | None, typer.Option(metavar="NAME", help="Where the likelihood's expectations come from.")
    ] = None,
    weights: options.CountColumn = None,
    hidden: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="A variable without a column; may be repeated.")
    ] = None,
    missing: options.MissingWords = None,
    seed: options.Seed = None,
    time_limit: options.TimeLimit = None,
    n_jobs: options.Jobs = None,
    output: options.WrittenTo = None,
    as_json: options.AsJson = False,
) -> None:
    """Fit the parameters of a model to a table of data; arcs and factors stay as they are."""
    check_place(output)
    if output is not None:
        check_ending(output)
    out, err = report.consoles()
    with ProgressLine(f"fitting {model.name}", err, limit=time_limit) as waiting:
        network = mf.io.read_network(model)
        directed = isinstance(network, mf.BayesianNetwork)
        given = {"l2": l2, "l1": l1, "group_l1": group_l1, "solver": solver, "inference": inference}
        chosen = configured_fit(method, "BayesianNetwork" if directed else "LogLinear", given)
        columns = _columns(data, MISSING if missing is None else tuple(missing), network, weights)
        with warnings.catch_warnings(record=True) as doubts:
            warnings.simplefilter("always")
            fitted = mf.fit(
                network,
                columns,
                method=chosen,
                weights=weights,
                hidden=[_named(network, name) for name in hidden or ()],
                rng=seed,
                n_jobs=n_jobs,
                time_limit=time_limit,
                callback=waiting.callback,
            )
    for doubt in doubts:
        err.print(Text(f"warning: {doubt.message}", style="yellow"), soft_wrap=True)
    if output is not None:
        with writing(output):
            mf.io.write_network(fitted, output)
    if as_json:
        report.write_json(out, report.fit_json(fitted))
        return
    report.fit_lines(out, fitted, model.name)
    if output is not None:
        report.wrote(out, output)


def configured_fit(method: str, form: str, given: dict[str, Any]) -> Any:
    """The method by its name, with the settings that were given; one it does not have is refused by name."""
    settings = {name: value for name, value in given.items() if value is not None}
    if method == "auto":
        if settings:
            name = next(iter(settings)).replace("_", "-")
            raise CommandError(f"--{name} is a setting of a method: name it with --method, as in --method ml or pl")
        return method
    found = resolve(method, "fit", form)
    fields = {f.name for f in dataclasses.fields(found)}
    strange = next((name for name in settings if name not in fields), None)
    if strange is not None:
        takers = [e.name for e in registered() if e.form == form and "fit" in e.verbs]
        able = [n for n in takers if strange in {f.name for f in dataclasses.fields(resolve(n, "fit", form))}]
        hint = f"; {', '.join(able)} take it" if able else ""
        raise CommandError(f"method {found.name} takes no --{strange.replace('_', '-')}{hint}")
    return dataclasses.replace(found, **settings)


def _named(network: Any, text: str) -> Any:
    """A variable by the text of its name."""
    return next((v for v in network.variables if str(v) == text), text)


def _columns(data: Path, missing: tuple[str, ...], network: Any, weights: str | None) -> dict[Any, Any]:
    """Columns by the model's own names, values by its own states where they read alike."""
    columns = dict(mf.io.read_csv(data, missing=()))
    names, found = network._current_names(), {}
    by_text = {str(v): (i, v) for i, v in enumerate(network.variables)}
    for text, column in columns.items():
        if text == weights or text not in by_text:
            found[text] = column
            continue
        position, name = by_text[text]
        states = {str(s): s for s in names.state_names(position, network._count_states(position))}
        gaps = [gap for gap in missing if gap not in states]
        column[np.isin(column, gaps)] = None
        found[name] = np.array([states.get(value, value) for value in column], dtype=object)
    if not any(text in by_text for text in columns):
        raise CommandError(
            f"no column of {data} is a variable of the model: columns {', '.join(list(columns)[:6])}; variables "
            f"{', '.join(list(by_text)[:6])}{', ...' if len(by_text) > 6 else ''}"
        )
    return found
