"""Structural SVMs from files: train one on sequences, matrices, images or graphs, predict, score."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer
from rich.text import Text

import markovfield as mf
from markovfield.cli import _options as options
from markovfield.cli import _report as report
from markovfield.cli import structured
from markovfield.cli._crf_files import check_some
from markovfield.cli._errors import CommandError
from markovfield.cli._reading import check_place, writing
from markovfield.progress import ProgressLine
from markovfield.structured.examples import read_examples

if TYPE_CHECKING:
    from markovfield.sequence.margin.chain_ssvm import ChainSSVM

__all__ = ["app"]

app = typer.Typer(help="Structural SVMs of sequences, matrices, images and graphs: train, predict, eval.")


class Kind(StrEnum):
    """What the examples of a file are."""

    CHAIN = "chain"
    GRID = "grid"
    GRAPH = "graph"
    MULTICLASS = "multiclass"
    MULTI_LABEL = "multi_label"


ESTIMATORS = {
    Kind.CHAIN: ("sequence", "ChainSSVM"),
    Kind.GRID: ("vision", "GridSSVM"),
    Kind.GRAPH: ("structured", "GraphSSVM"),
    Kind.MULTICLASS: ("structured", "MulticlassSSVM"),
    Kind.MULTI_LABEL: ("structured", "MultiLabelSSVM"),
}
Data = Annotated[
    Path,
    typer.Argument(metavar="DATA", help="An .npz file with arrays X and y; for chains lines of CRFsuite's items."),
]
ModelFile = Annotated[Path, typer.Argument(metavar="MODEL", help="A model that `ssvm train` saved.")]


@app.command()
def train(
    data: Data,
    model: Annotated[Kind, typer.Option("-m", "--model", case_sensitive=False, help="What the examples are.")],
    output: options.SavedTo,
    cost: Annotated[float, typer.Option("-C", "--cost", help="What hinges cost beside the squares of weights.")] = 1.0,
    loss: Annotated[str, typer.Option(metavar="NAME", help="hamming, zero_one or f1.")] = "hamming",
    rescaling: Annotated[str, typer.Option(metavar="NAME", help="margin or slack.")] = "margin",
    solver: Annotated[
        str, typer.Option(metavar="NAME", help="auto, block_frank_wolfe, cutting_plane, subgradient, perceptron, ...")
    ] = "auto",
    dev: Annotated[Path | None, typer.Option(metavar="FILE", help="Examples to watch the loss of.")] = None,
    early_stopping: Annotated[
        int | None, typer.Option(min=1, metavar="PASSES", help="Stop after so many without a lower loss of --dev.")
    ] = None,
    settings: options.Settings = None,
    seed: options.Seed = None,
    time_limit: options.TimeLimit = None,
    n_jobs: options.Jobs = None,
    as_json: options.AsJson = False,
) -> None:
    """Learn from labelled examples and save the model."""
    check_place(output)
    if early_stopping is not None and dev is None:
        raise CommandError("--early-stopping needs a development set: give one with --dev")
    out, err = report.consoles()
    X, y = _read(data, model, "learn from")
    given = dict(structured.setting(text) for text in settings or ())
    space, name = ESTIMATORS[model]
    kind = getattr(getattr(mf, space), name)
    shared = {"C": cost, "loss": loss, "rescaling": rescaling, "solver": solver, "early_stopping": early_stopping}
    svm = structured.made(kind, model, given, shared, rng=seed, n_jobs=n_jobs)
    watched = {} if dev is None else dict(zip(("X_dev", "y_dev"), _read(dev, model, "compare with"), strict=True))
    with ProgressLine(f"training on {data.name}", err) as waiting:
        svm.fit(X, y, **watched, time_limit=time_limit, callback=waiting.callback)
    with writing(output):
        svm.save(output)
    if as_json:
        report.write_json(out, {"model": str(output), **svm.report_.to_dict()})
        return
    out.print(Text(repr(svm.report_)), soft_wrap=True)
    report.wrote(out, output)


@app.command()
def predict(
    model: ModelFile,
    data: Data,
    output: Annotated[
        Path,
        typer.Option("-o", "--out", "--output", metavar="FILE", help="An .npz file with y; for chains a label a line."),
    ],
    time_limit: options.TimeLimit = None,
    as_json: options.AsJson = False,
) -> None:
    """Predict outputs and write them."""
    chain = _chain(model)
    if chain is None:
        structured.predict(model, data, output, time_limit=time_limit, as_json=as_json)
        return
    check_place(output)
    out, _ = report.consoles()
    X, _ = _read(data, Kind.CHAIN, None)
    labels = chain.predict(X)
    with writing(output):
        output.write_text("".join("\n".join(map(str, one)) + "\n\n" for one in labels), encoding="utf-8")
    if as_json:
        report.write_json(out, {"n_examples": len(labels), "guarantee": "exact"})
        return
    out.print(Text(f"{len(labels)} sequences; wrote {output}", style="dim"), soft_wrap=True)


@app.command("eval")
def evaluate(model: ModelFile, data: Data, as_json: options.AsJson = False) -> None:
    """Compare predictions with the outputs in a file."""
    chain = _chain(model)
    if chain is None:
        structured.evaluate(model, data, as_json=as_json)
        return
    X, y = _read(data, Kind.CHAIN, "compare with")
    right = [
        np.array([str(a) == b for a, b in zip(*both, strict=True)]) for both in zip(y, chain.predict(X), strict=True)
    ]
    structured.write_scores(right, "exact", as_json=as_json)


def _chain(path: Path) -> ChainSSVM | None:
    """The model, where it is one of sequences."""
    from markovfield.sequence.margin.chain_ssvm import ChainSSVM

    found = mf.load(path)
    return found if isinstance(found, ChainSSVM) else None


def _read(path: Path, kind: Kind, wanted: str | None) -> tuple[Any, Any]:
    """Examples of a file; ``wanted`` says what outputs are for, where there must be some."""
    if kind is Kind.CHAIN:
        from markovfield.io.crfsuite_items import read_crfsuite_items

        items = read_crfsuite_items(path)
        check_some(path, len(items.X))
        return items.X, items.y
    X, y = read_examples(path, kind.value)
    if y is None and wanted is not None:
        raise CommandError(f"{path} has no array y to {wanted}")
    return X, y if y is None or kind is not Kind.MULTICLASS else np.asarray(y)
