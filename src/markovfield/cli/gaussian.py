"""The commands of real-valued data: gaussian fit, learn, query, sample and forecast, on CSV files and archives."""

from __future__ import annotations

import csv
import dataclasses
import io
from collections.abc import Iterator
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
from markovfield.cli._reading import check_place, writing
from markovfield.cli._stdin import data_file
from markovfield.learning.registry import registered, resolve
from markovfield.progress import ProgressLine
from markovfield.text_files import write_text

__all__ = ["app"]

app = typer.Typer(help="Models of numbers: fit, learn a graph, query, sample, forecast series.")

ROWS_SHOWN = 40
# What methods of real-valued data read.
FORMS = ("GaussianMoments", "MixedTable")

Data = Annotated[
    Path,
    typer.Argument(metavar="DATA", callback=data_file, help="A CSV file with a row of names, or - for standard input."),
]
Archive = Annotated[
    Path, typer.Argument(metavar="MODEL", help="An archive of gaussian fit, gaussian learn or mf.save.")
]
Out = Annotated[
    Path | None, typer.Option("-o", "--out", "--output", metavar="FILE", help="Where to write the model (an archive).")
]
Rows = Annotated[Path | None, typer.Option("-o", "--out", "--output", metavar="FILE", help="A CSV file to write.")]
Known = Annotated[
    list[str] | None,
    typer.Option(
        "-e", "--evidence", "--observe", metavar="NAME=VALUE", help="A number, or a state by name; may be repeated."
    ),
]
Ignore = options.LeftOut


def _columns(data: Path, ignore: list[str] | None) -> dict[str, Any]:
    """Columns of numbers where all values that are there are numbers; texts, None where missing, otherwise."""
    found: dict[str, Any] = {}
    for name, column in mf.io.read_csv(data).items():
        try:
            found[name] = np.array([np.nan if v is None else float(v) for v in column])
        except ValueError:
            found[name] = column
    for name in ignore or ():
        if name not in found:
            raise CommandError(f"{data} has no column {name!r} to ignore")
        del found[name]
    return found


def _pairs(words: list[str] | None, option: str, columns: dict[str, Any]) -> list[tuple[str, str]]:
    found = []
    for word in words or ():
        parts = [part.strip() for part in word.split(",")]
        if len(parts) != 2 or not all(parts):
            raise CommandError(f"{option} takes two names separated by a comma, got {word!r}")
        for name in parts:
            if name not in columns:
                raise CommandError(f"{option} {word}: the data has no column {name!r}")
        found.append((parts[0], parts[1]))
    return found


def _save(model: Any, output: Path | None, out: Any) -> None:
    if output is not None:
        with writing(output):
            mf.save(model, output)
        report.wrote(out, output)


@app.command()
def fit(
    data: Data,
    edge: Annotated[
        list[str] | None, typer.Option("--edge", metavar="A,B", help="An edge of the graph; may be repeated.")
    ] = None,
    arc: Annotated[
        list[str] | None, typer.Option("--arc", metavar="PARENT,CHILD", help="An arc of a network; may be repeated.")
    ] = None,
    ignore: Ignore = None,
    output: Out = None,
    as_json: options.AsJson = False,
) -> None:
    """Fit a Gaussian model: covariance selection on a graph of edges, or a network of arcs by least squares."""
    check_place(output)
    if edge and arc:
        raise CommandError("give edges (a graph) or arcs (a network), not both")
    out, err = report.consoles()
    with ProgressLine(f"fitting {data.name}", err):
        columns = _columns(data, ignore)
        arcs = _pairs(arc, "--arc", columns)
        made: Any
        if arcs:
            net = mf.LinearGaussianNetwork(columns)
            for name in columns:
                net.set_parents(name, [a for a, b in arcs if b == name])
            made = model = mf.fit(net, columns)
        else:
            import networkx as nx

            graph = nx.Graph()
            graph.add_nodes_from(columns)
            graph.add_edges_from(_pairs(edge, "--edge", columns))
            made = mf.fit(mf.GaussianMarkovField(graph), columns)
            model = made.compile()
    if as_json:
        report.write_json(out, {**report.fit_json(made), "variables": list(columns), **_numbers_json(model)})
    else:
        report.fit_lines(out, made, str(data))
        _table_of_numbers(out, model)
    _save(model, output, err)


def _numbers_json(model: Any) -> dict[str, Any]:
    if isinstance(model, mf.LinearGaussianNetwork):
        return {"regressions": {str(v): dataclasses.asdict(model.cpd(v)) for v in model.variables}}
    return {"mean": model.mean.tolist(), "precision": model.precision.toarray().tolist()}


def _table_of_numbers(out: Any, model: Any) -> None:
    table = Table(header_style="dim", box=None, pad_edge=False)
    if isinstance(model, mf.LinearGaussianNetwork):
        for name in ("variable", "regression", "variance"):
            table.add_column(name)
        for v in list(model.variables)[:ROWS_SHOWN]:
            cpd = model.cpd(v)
            terms = [f"{w:.4g} {p}" for w, p in zip(cpd.weights, cpd.parents, strict=True)]
            table.add_row(Text(str(v), style="bold"), " + ".join([f"{cpd.bias:.4g}", *terms]), f"{cpd.variance:.4g}")
    else:
        for name in ("variable", "mean", "deviation"):
            table.add_column(name)
        deviations = np.sqrt(model.variances)
        for v, m, s in list(zip(model.variables, model.mean, deviations, strict=True))[:ROWS_SHOWN]:
            table.add_row(Text(str(v), style="bold"), f"{m:.6g}", f"{s:.4g}")
    out.print(table)


@app.command()
def learn(
    data: Data,
    method: Annotated[
        str,
        typer.Option("-m", "--method", metavar="NAME", help="graphical_lasso, mixed_group_lasso (states too), ..."),
    ] = "graphical_lasso",
    penalty: Annotated[float | None, typer.Option(help="One penalty, in place of a choice on a path.")] = None,
    selection: Annotated[str | None, typer.Option(metavar="NAME", help="ebic, cv, stability (of some).")] = None,
    ignore: Ignore = None,
    seed: options.Seed = None,
    time_limit: options.TimeLimit = None,
    output: Out = None,
    as_json: options.AsJson = False,
) -> None:
    """Learn which variables depend on each other given all others."""
    check_place(output)
    chosen = _method(method, {"penalty": penalty, "selection": selection})
    out, err = report.consoles()
    with ProgressLine(f"learning from {data.name}", err, limit=time_limit) as waiting:
        columns = _columns(data, ignore)
        running: dict[str, Any] = {"time_limit": time_limit, "callback": waiting.callback}
        learned = mf.learn_structure(columns, method=chosen, rng=seed, **running)
        assert isinstance(learned, mf.learning.LearnedGraph)
    weights = [learned.graph.edges[e].get("weight") for e in learned.edges]
    if as_json:
        edges = [[a, b, w] for (a, b), w in zip(learned.edges, weights, strict=True)]
        body = {"variables": list(learned.variables), "edges": edges, "score": learned.score}
        body |= {"score_name": learned.score_name, "converged": learned.converged, "notes": list(learned.notes)}
        report.write_json(out, {**body, "method": learned.method, "seconds": learned.seconds})
    else:
        out.print(Text(repr(learned), style="bold"), soft_wrap=True)
        table = Table("edge", "weight", header_style="dim", box=None, pad_edge=False)
        for (a, b), w in list(zip(learned.edges, weights, strict=True))[:ROWS_SHOWN]:
            table.add_row(f"{a} - {b}", "" if w is None else f"{w:.4g}")
        out.print(table)
        if len(learned.edges) > ROWS_SHOWN:
            out.print(Text(f"... and {len(learned.edges) - ROWS_SHOWN} more edges; --json has all", style="dim"))
        for note in learned.notes:
            out.print(Text(note, style="dim"), soft_wrap=True)
    _save(_model_of(learned), output, err) if output is not None else None


def _method(name: str, settings: dict[str, Any]) -> Any:
    known = {e.name: e for e in registered() if "learn_structure" in e.verbs and e.form in FORMS}
    aliases = {alias: e for e in known.values() for alias in e.aliases}
    entry = known.get(name, aliases.get(name))
    if entry is None:
        raise CommandError(f"--method of gaussian learn is one of {', '.join(known)}, got {name!r}")
    given = {key: value for key, value in settings.items() if value is not None}
    made = resolve(name, "learn_structure", entry.form)
    missing = given.keys() - {f.name for f in dataclasses.fields(made)}
    if missing:
        raise CommandError(f"method {entry.name!r} has no setting {min(missing)!r}")
    return dataclasses.replace(made, **given)


def _model_of(learned: Any) -> Any:
    if learned.gaussian is not None:
        return learned.gaussian
    model = getattr(learned.details, "refitted", None)
    if model is None:
        raise CommandError(f"method {learned.method!r} learns a graph without numbers: gaussian fit --edge fits one")
    return model


def _loaded(path: Path) -> Any:
    model = mf.load(path)
    form = model.compile() if hasattr(model, "compile") else model
    if type(form).__name__ not in ("GaussianField", "ConstrainedField", "MixedField"):
        raise CommandError(f"{path} holds a {type(model).__name__}, which has no real-valued variables")
    return model


def _evidence(form: Any, words: list[str] | None) -> dict[Any, Any]:
    found: dict[Any, Any] = {}
    texts = {str(v): v for v in form.variables}
    for word in words or ():
        name, sign, value = word.partition("=")
        if not sign:
            raise CommandError(f"evidence is NAME=VALUE, got {word!r}")
        variable = texts.get(name, name)
        at = form.names.position(variable)
        cards = getattr(form, "cardinalities", None)
        if cards is not None and cards[at]:
            states = {str(s): s for s in form.names.state_names(at, int(cards[at]))}
            if value not in states:
                raise CommandError(f"variable {name!r} has no state {value!r}; its states are {', '.join(states)}")
            found[variable] = states[value]
            continue
        try:
            found[variable] = float(value)
        except ValueError:
            raise CommandError(f"the evidence of {name!r} must be a number, got {value!r}") from None
    return found


@app.command()
def query(
    model: Archive,
    evidence: Known = None,
    variables: Annotated[
        list[str] | None, typer.Option("-q", "--variables", metavar="NAME", help="Show only these; may be repeated.")
    ] = None,
    level: Annotated[float, typer.Option(help="Probability of the interval that is shown.")] = 0.95,
    as_json: options.AsJson = False,
) -> None:
    """Means, deviations and intervals given numbers that are known; probabilities of states, where there are any."""
    if not 0 < level < 1:
        raise CommandError(f"--level is a probability between 0 and 1, got {level}")
    from scipy.special import ndtri

    out, err = report.consoles()
    with ProgressLine(f"reading {model.name}", err):
        loaded = _loaded(model)
        form = loaded.compile() if hasattr(loaded, "compile") else loaded
        known = _evidence(form, evidence)
        texts = {str(v): v for v in form.variables}
        for name in variables or ():
            form.names.position(texts.get(name, name))
        answer = mf.marginals(form, known)
    shown = [texts[name] for name in variables] if variables else list(form.variables)
    half = float(ndtri(0.5 + level / 2))
    body: dict[str, Any] = {}
    table = Table(
        "variable", "mean", "deviation", f"{level:.0%} interval", header_style="dim", box=None, pad_edge=False
    )
    for v in shown:
        found: Any = answer[v]
        if isinstance(found, np.ndarray):
            states = form.names.state_names(form.names.position(v), len(found))
            body[str(v)] = dict(zip(map(str, states), found.tolist(), strict=True))
            listed = "  ".join(f"{s} {p:.4f}" for s, p in zip(states, found, strict=True))
            row = (listed, "", "known" if v in known else "")
        else:
            s = float(np.sqrt(found.variance))
            body[str(v)] = {"mean": found.mean, "variance": found.variance}
            mixture = getattr(found, "mixture", False)
            if mixture:
                body[str(v)]["mixture"] = True
            span = f"{found.mean - half * s:.6g} to {found.mean + half * s:.6g}"
            said = "known" if v in known else "a mixture" if mixture else span
            row = (f"{found.mean:.6g}", f"{s:.4g}", said)
        table.add_row(Text(str(v), style="bold"), *row)
    if as_json:
        about = {"log_partition": answer.log_partition, "guarantee": answer.guarantee, "method": answer.method}
        report.write_json(out, {"marginals": body, **about, "seconds": answer.seconds})
        return
    out.print(table)
    said = f"log Z {answer.log_partition:.8g}   {answer.guarantee}   {answer.method}, {answer.seconds:.3g} s"
    out.print(Text(said, style="dim"))


@app.command()
def sample(
    model: Archive,
    size: Annotated[int, typer.Option("-n", "--size", min=0, help="How many.")] = 1000,
    evidence: Known = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Same seed, same samples.")] = None,
    output: Rows = None,
    as_json: options.AsJson = False,
) -> None:
    """Draw rows given numbers that are known: CSV with a row of names."""
    check_place(output)
    out, err = report.consoles()
    with ProgressLine(f"sampling {model.name}", err):
        loaded = _loaded(model)
        form = loaded.compile() if hasattr(loaded, "compile") else loaded
        drawn: Any = mf.sample(form, size, _evidence(form, evidence), rng=seed)
    columns = {str(v): drawn[v].tolist() for v in form.variables}
    if as_json:
        body = {"size": size, "samples": columns if output is None else None, "guarantee": drawn.guarantee}
        report.write_json(out, {**body, "method": drawn.method, "seconds": drawn.seconds})
    _write(columns, output, out, err, quiet=as_json)


def _write(columns: dict[str, list[Any]], output: Path | None, out: Any, err: Any, *, quiet: bool) -> None:
    if output is not None:
        with writing(output):
            write_text(output, _csv(columns))
        rows = len(next(iter(columns.values()), []))
        err.print(Text(f"wrote {rows} rows to {output}", style="dim"), soft_wrap=True)
    elif not quiet:
        for piece in _csv(columns):
            out.file.write(piece)


def _csv(columns: dict[str, list[Any]]) -> Iterator[str]:
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*columns.values(), strict=True))
    yield buffer.getvalue()


@app.command()
def forecast(
    data: Data,
    steps: Annotated[int, typer.Option("-n", "--steps", min=1, help="How many time steps ahead.")] = 10,
    order: Annotated[
        str, typer.Option(metavar="N", help="How many steps back weights reach, or aic, bic, hqic, fpe to choose.")
    ] = "bic",
    most: Annotated[int, typer.Option("--max-order", min=1, help="Of a choice.")] = 8,
    penalty: Annotated[float, typer.Option(min=0, help="Of the sum of absolute weights.")] = 0.0,
    level: Annotated[float, typer.Option(help="Probability of each band.")] = 0.95,
    ignore: Ignore = None,
    save: Annotated[Path | None, typer.Option("--model", metavar="FILE", help="Where to write the model.")] = None,
    output: Rows = None,
    as_json: options.AsJson = False,
) -> None:
    """Forecast series, the rows of a table in order of time, by a vector autoregression."""
    check_place(output)
    check_place(save)
    out, err = report.consoles()
    with ProgressLine(f"fitting {data.name}", err):
        columns = _columns(data, ignore)
        lags = _order(order, columns, most)
        model = mf.VectorAutoregression(lags, penalty=penalty).fit(columns)
        ahead = model.forecast(steps, level=level)
    table = ahead._columns()
    if as_json:
        about = {"order": lags, "level": level, "stable": model.is_stable}
        rows = [dict(zip(table, values, strict=True)) for values in zip(*map(list, table.values()), strict=True)]
        report.write_json(out, {**about, **report.fit_json(model), "forecast": rows})
    _write({name: list(values) for name, values in table.items()}, output, out, err, quiet=as_json)
    if not as_json:
        edges = model.granger_graph() if not penalty and len(columns) > 1 else model.chain_graph()
        causes = ", ".join(f"{a} -> {b}" for a, b in edges.directed.edges()) or "none"
        stable = "stable" if model.is_stable else "not stable"
        err.print(Text(f"order {lags}, {stable}; the past of one helps another: {causes}", style="dim"), soft_wrap=True)
    _save(model, save, err)


def _order(order: str, columns: dict[str, Any], most: int) -> int:
    if order.isdecimal():
        return int(order)
    if order not in ("aic", "bic", "hqic", "fpe"):
        raise CommandError(f"--order is a number, or one of aic, bic, hqic and fpe, got {order!r}")
    rows = len(next(iter(columns.values()), ()))
    fits = max((rows - 2) // (len(columns) + 1) - 1, 1)
    return max(mf.VectorAutoregression.select_order(columns, min(most, fits)).best(order), 1)
