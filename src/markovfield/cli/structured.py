"""Structured prediction from files: train a conditional model of matrices, images or graphs, predict, score."""

from __future__ import annotations

import json
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer
from rich.text import Text

import markovfield as mf
from markovfield.cli import _options as options
from markovfield.cli import _report as report
from markovfield.cli._errors import CommandError
from markovfield.cli._reading import check_place, writing
from markovfield.progress import ProgressLine
from markovfield.structured.core.reading import example_count
from markovfield.structured.examples import read_examples, write_outputs

if TYPE_CHECKING:
    from markovfield.structured.estimator import StructuredEstimator

__all__ = ["app", "evaluate", "made", "predict", "setting", "write_scores"]

app = typer.Typer(help="Conditional models of matrices, images and graphs: train, predict, eval.")


class Kind(StrEnum):
    """Models of examples in a file."""

    GRID = "grid"
    GRAPH = "graph"
    MULTICLASS = "multiclass"
    HIERARCHY = "hierarchy"
    MULTI_LABEL = "multi_label"


ESTIMATORS = {
    Kind.GRID: "GridCRF",
    Kind.GRAPH: "GraphCRF",
    Kind.MULTICLASS: "MulticlassCRF",
    Kind.HIERARCHY: "HierarchicalClassifier",
    Kind.MULTI_LABEL: "MultiLabelCRF",
}
# Estimators of other commands whose examples are the same.
ALIKE = {
    "GridSSVM": Kind.GRID,
    "GraphSSVM": Kind.GRAPH,
    "MulticlassSSVM": Kind.MULTICLASS,
    "MultiLabelSSVM": Kind.MULTI_LABEL,
}
Data = Annotated[Path, typer.Argument(metavar="DATA", help="An .npz file with arrays X and y (see the documentation).")]
ModelFile = Annotated[Path, typer.Argument(metavar="MODEL", help="A model that `structured train` saved.")]


@app.command()
def train(
    data: Data,
    model: Annotated[Kind, typer.Option("-m", "--model", case_sensitive=False, help="What the examples are.")],
    output: options.SavedTo,
    objective: Annotated[
        str, typer.Option(metavar="NAME", help="likelihood, pseudo_likelihood, piecewise, expected_loss, ...")
    ] = "likelihood",
    inference: Annotated[
        str, typer.Option(metavar="NAME", help="auto, junction_tree, belief_propagation, tree_reweighted, ...")
    ] = "auto",
    solver: Annotated[
        str, typer.Option(metavar="NAME", help="auto, lbfgs, steepest_descent, sgd, adagrad, adam.")
    ] = "auto",
    l2: options.L2 = 1.0,
    l1: options.L1 = 0.0,
    settings: options.Settings = None,
    taxonomy: Annotated[
        Path | None, typer.Option(metavar="FILE", help="For hierarchy: JSON, the parent of each class and inner node.")
    ] = None,
    seed: options.Seed = None,
    time_limit: options.TimeLimit = None,
    n_jobs: options.Jobs = None,
    as_json: options.AsJson = False,
) -> None:
    """Learn from labelled examples and save the model."""
    check_place(output)
    out, err = report.consoles()
    X, y = read_examples(data, model.value)
    if y is None:
        raise CommandError(f"{data} has no array y: there is nothing to learn from")
    given = dict(setting(text) for text in settings or ())
    if (model is Kind.HIERARCHY) != (taxonomy is not None):
        raise CommandError("a hierarchy needs --taxonomy FILE, and nothing else takes one")
    if taxonomy is not None:
        given["taxonomy"] = _taxonomy(taxonomy, y)
    kind = getattr(mf, ESTIMATORS[model])
    shared = {"objective": objective, "inference": inference, "solver": solver, "l2": l2, "l1": l1}
    estimator = made(kind, model, given, shared, rng=seed, n_jobs=n_jobs)
    with ProgressLine(f"training on {data.name}", err) as waiting:
        estimator.fit(X, y, time_limit=time_limit, callback=waiting.callback)
    with writing(output):
        estimator.save(output)
    fitted = SimpleNamespace(fit_report=estimator.report_)
    if as_json:
        report.write_json(out, report.fit_json(fitted))
        return
    report.fit_lines(out, fitted, data.name)
    report.wrote(out, output)


@app.command()
def predict(
    model: ModelFile,
    data: Data,
    output: Annotated[
        Path, typer.Option("-o", "--out", "--output", metavar="FILE", help="An .npz file: y, with marginals if asked.")
    ],
    marginals: Annotated[bool, typer.Option("--marginals", help="Also write the probabilities of all labels.")] = False,
    time_limit: options.TimeLimit = None,
    as_json: options.AsJson = False,
) -> None:
    """Predict outputs and write them beside how far they can be trusted."""
    check_place(output)
    out, err = report.consoles()
    estimator = _loaded(model)
    X, _ = read_examples(data, _kind(estimator).value)
    with ProgressLine(f"predicting {data.name}", err) as waiting:
        found = estimator.decode(X, time_limit=time_limit, callback=waiting.callback)
        shares = estimator.predict_marginals(X) if marginals else None
    with writing(output):
        write_outputs(output, found.labels, shares)
    if as_json:
        gap = float(found.gap) if np.isfinite(found.gap) else None
        report.write_json(
            out, {"n_examples": len(found.scores), "guarantee": found.guarantee, "gap": gap, "method": found.method}
        )
        return
    out.print(Text(repr(found)), soft_wrap=True)
    report.wrote(out, output)


@app.command("eval")
def evaluate(model: ModelFile, data: Data, as_json: options.AsJson = False) -> None:
    """Compare predictions with the outputs in a file."""
    _, err = report.consoles()
    estimator = _loaded(model)
    X, y = read_examples(data, _kind(estimator).value)
    if y is None:
        raise CommandError(f"{data} has no array y to compare with")
    example_count(X, y)
    with ProgressLine(f"predicting {data.name}", err) as waiting:
        found = estimator.decode(X, callback=waiting.callback)
    inputs, model_ = estimator.model_.inputs(X), estimator.model_
    truth, ours = (model_.visible_labels(labels, inputs) for labels in (y, found.labels))
    if not (truth >= 0).any():
        raise CommandError(f"{data} has no label that is known to compare with")
    each = zip(*(np.split(labels, inputs.variable_offsets[1:-1]) for labels in (truth, ours)), strict=True)
    write_scores([(own == guess)[own >= 0] for own, guess in each], found.guarantee, as_json=as_json)


def write_scores(right: Sequence[Any], guarantee: str, *, as_json: bool) -> None:
    """How many labels and outputs are right; ``right`` says it of each label that is known, example by example."""
    out, _ = report.consoles()
    flat = np.concatenate(right)
    whole = float(np.mean([own.all() for own in right]))
    scores = {
        "n_examples": len(right),
        "n_labels": len(flat),
        "accuracy": float(np.mean(flat)),
        "whole_outputs_right": whole,
        "guarantee": guarantee,
    }
    if as_json:
        report.write_json(out, scores)
        return
    out.print(
        Text(
            f"{scores['accuracy']:.4f} of {len(flat)} labels right, {whole:.4f} of {len(right)} outputs right as wholes"
        ),
        soft_wrap=True,
    )


def _loaded(path: Path) -> StructuredEstimator:
    from markovfield.structured.estimator import StructuredEstimator

    found = mf.load(path)
    if not isinstance(found, StructuredEstimator):
        raise CommandError(f"{path} holds a {type(found).__name__}, not a model of `markovfield structured train`")
    return found


def _kind(estimator: StructuredEstimator) -> Kind:
    name = type(estimator).__name__
    if name in ALIKE:
        return ALIKE[name]
    for kind, known in ESTIMATORS.items():
        if known == name:
            return kind
    raise CommandError(f"a {name} has examples that no .npz file holds: use it from Python")


def made(kind: Any, model: StrEnum, given: dict[str, Any], shared: dict[str, Any], **words: Any) -> Any:
    """The estimator with what options and ``--set`` say; ``given`` has the latter."""
    try:
        return kind(**given, **shared, **words)
    except TypeError:
        known = sorted({*kind._get_param_names()} - {*shared, *words, "taxonomy"})
        raise CommandError(f"--set knows {', '.join(known)} for {model.value}, got {', '.join(given)}") from None


def setting(text: str) -> tuple[str, Any]:
    """``name=value``; the value as JSON where it is JSON, else as text."""
    name, sign, value = text.partition("=")
    if not sign or not name:
        raise CommandError(f"--set wants NAME=VALUE, got {text!r}")
    try:
        return name.replace("-", "_"), json.loads(value)
    except json.JSONDecodeError:
        return name.replace("-", "_"), value


def _taxonomy(path: Path, y: Any) -> dict[Any, Any]:
    """Parents by class: JSON has texts for names, labels may be numbers."""
    try:
        given = json.loads(path.read_text(encoding="utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise CommandError(f"{path} is no JSON: {error}") from None
    if not isinstance(given, dict):
        raise CommandError(f"{path} must hold an object: the parent of each class")
    own = {str(label): label for label in np.unique(y).tolist()}
    return {own.get(child, child): own.get(str(parent), parent) for child, parent in given.items()}
