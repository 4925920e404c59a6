"""Sequence labelling from files: train a linear-chain CRF, tag, score, and look inside."""

from __future__ import annotations

import time
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

from markovfield.cli import _crf_report as tables
from markovfield.cli import _options as options
from markovfield.cli import _report as report
from markovfield.cli._crf_files import (
    LEFT_OUT,
    chain_of,
    check_some,
    lines_of,
    read_file,
    scores_of,
    tagged,
    tagged_json,
    tagged_n_best,
    train_on_columns,
    train_on_items,
)
from markovfield.cli._errors import INTERRUPTED, CommandError
from markovfield.cli._reading import check_place, writing
from markovfield.cli._stdin import data_file
from markovfield.progress import ProgressLine

if TYPE_CHECKING:
    from markovfield.sequence.chain.crf import ChainCRF
    from markovfield.sequence.tagger import ChainTagger

__all__ = ["app"]

# What the library says of a training that Ctrl-C ended; it keeps the weights.
STOPPED = "interrupted"

app = typer.Typer(help="Label sequences with a linear-chain conditional random field: train, tag, eval, show.")


class Format(StrEnum):
    """Kinds of files to learn from."""

    CONLL = "conll"
    CRFSUITE = "crfsuite"


ModelFile = Annotated[Path, typer.Option("-m", "--model", metavar="FILE", help="The model.")]
Encoding = Annotated[str, typer.Option(metavar="NAME", help="Of the text in columns, such as latin-1.")]
Tokens = Annotated[
    Path,
    typer.Argument(
        metavar="DATA",
        callback=data_file,
        help="A token on each line and a blank line after each sentence: columns, or CRFsuite's items where the model "
        "learnt from those (also .gz or .xz); - for standard input.",
    ),
]


Template = Annotated[
    Path | None,
    typer.Option(
        "-t", "--template", metavar="FILE", help="A template of CRF++ or Wapiti; words, affixes and shapes without."
    ),
]
FileFormat = Annotated[
    Format,
    typer.Option("--format", case_sensitive=False, help="conll: columns. crfsuite: a label and attributes."),
]
Columns = Annotated[
    str | None,
    typer.Option(metavar="NAMES", help=f"Names of the columns, like word,pos,chunk; {LEFT_OUT} leaves one out."),
]
Label = Annotated[str, typer.Option(metavar="COLUMN", help="The column of labels, by name or number.")]
Dev = Annotated[Path | None, typer.Option(metavar="FILE", help="A development set, to see how well training goes.")]
EarlyStopping = Annotated[
    int | None, typer.Option(min=1, metavar="N", help="Stop after N iterations without a better score on it.")
]
Metric = Annotated[
    str, typer.Option(metavar="NAME", help="What early stopping looks at: accuracy, f1 of chunks, or auto.")
]
Solver = Annotated[str, typer.Option(metavar="NAME", help="lbfgs, owlqn, sgd, adagrad, perceptron, pa, pa2 or arow.")]
MaxIterations = Annotated[int | None, typer.Option(min=1, metavar="N", help="Iterations, or passes.")]
MinCount = Annotated[int, typer.Option(min=0, metavar="N", help="Leave out features seen less often.")]
Constraints = Annotated[
    str | None, typer.Option(metavar="SCHEME", help="Only valid chunks: iob1, iob2, iobes or bilou.")
]
Verbose = Annotated[bool, typer.Option("-v", "--verbose", help="A line on standard error for each iteration.")]


@app.command()
def train(
    data: Tokens,
    model: Annotated[Path, typer.Option("-m", "--model", metavar="FILE", help="Where to save the model.")],
    template: Template = None,
    file_format: FileFormat = Format.CONLL,
    columns: Columns = None,
    label: Label = "-1",
    dev: Dev = None,
    early_stopping: EarlyStopping = None,
    early_stopping_metric: Metric = "auto",
    l1: options.L1 = 0.0,
    l2: options.L2 = 1.0,
    solver: Solver = "lbfgs",
    max_iterations: MaxIterations = None,
    min_count: MinCount = 1,
    constraints: Constraints = None,
    order: Annotated[int, typer.Option(min=1, max=2, help="2 for weights of triples of labels.")] = 1,
    seed: options.Seed = None,
    encoding: Encoding = "utf-8",
    time_limit: options.TimeLimit = None,
    n_jobs: options.Jobs = None,
    verbose: Verbose = False,
    as_json: options.AsJson = False,
) -> None:
    """Learn from labelled sequences. Ctrl-C stops and saves the weights so far: under the model's name or, where there
    is a model already, next to it as FILE.partial."""
    from markovfield.sequence.chain.crf import ChainCRF

    out, err = report.consoles()
    check_place(model)
    if early_stopping is not None and dev is None:
        raise CommandError("--early-stopping needs a development set: give one with --dev")
    crf = ChainCRF(
        l2,
        l1,
        solver=solver,
        max_iterations=max_iterations,
        min_count=min_count,
        early_stopping=early_stopping,
        early_stopping_metric=early_stopping_metric,
        constraints=constraints,
        order=order,
        rng=seed,
        n_jobs=n_jobs,
        verbose=True,
    )
    with tables.TrainingLine(err, f"training on {data.name}", verbose=verbose):
        if file_format is Format.CRFSUITE:
            if template is not None or columns is not None:
                raise CommandError("--template and --columns are for files of columns, not for --format crfsuite")
            found = train_on_items(crf, data, dev, time_limit)
        else:
            found = train_on_columns(crf, data, dev, template, columns, label, encoding, time_limit)
    crf = chain_of(found)
    stopped = not crf.report_.converged and crf.report_.message == STOPPED
    if stopped and model.exists():
        # A whole model is worth more than half of one.
        model = model.with_name(f"{model.name}.partial")
    with writing(model):
        found.save(model)
    scores = None if dev is None else scores_of(found, *read_file(found, dev, encoding))
    if as_json:
        body = {"model": str(model), "interrupted": stopped, **_size(found, model), **crf.report_.to_dict()}
        report.write_json(out, {**body, "dev": None if scores is None else tables.score_json(*scores)})
    else:
        _trained_table(out, found, model, scores)
    if stopped:
        line = f"stopped: saved the weights of {crf.n_iter_} iterations to {model}"
        err.print(Text(line, style="yellow"), soft_wrap=True)
        raise typer.Exit(INTERRUPTED)


def _size(model: ChainTagger | ChainCRF, path: Path) -> dict[str, Any]:
    crf = chain_of(model)
    return {
        "n_labels": len(crf.classes_),
        "n_attributes": crf.vectoriser_.n_attributes_,
        "bytes": path.stat().st_size,
    }


def _trained_table(out: Console, model: ChainTagger | ChainCRF, path: Path, scores: tuple[Any, Any] | None) -> None:
    about, size = chain_of(model).report_, _size(model, path)
    out.print(Text(f"objective {about.objective:.8g}", style="bold"), Text(_how(about), style="dim"), soft_wrap=True)
    if not about.converged:
        out.print(Text(about.ending, style="dim" if about.kept else "yellow"), soft_wrap=True)
    out.print(
        f"{about.n_sequences} sequences, {about.n_tokens} tokens, {size['n_labels']} labels, "
        f"{size['n_attributes']} attributes, {about.n_active} of {about.n_features} weights not zero",
        soft_wrap=True,
    )
    out.print(Text(tables.features_line(model)), soft_wrap=True)
    if scores is not None:
        tokens, entities = scores
        chunks = "" if entities is None else f", F1 {100 * entities.f1:.2f}"
        out.print(Text(f"development set: token accuracy {100 * tokens.accuracy:.2f} %{chunks}", style="bold"))
    out.print(Text(f"wrote {path} ({size['bytes'] / 1e6:.2f} MB)", style="dim"), soft_wrap=True)


def _how(about: Any) -> str:
    return f"  {about.solver}, {about.iterations} iterations, {about.seconds:.3g} s"


@app.command()
def tag(
    data: Tokens,
    model: ModelFile,
    marginals: Annotated[
        bool, typer.Option("--marginals", help="Also every label with its probability, as label/probability.")
    ] = False,
    n_best: Annotated[
        int, typer.Option(min=1, metavar="N", help="The N best labellings, each after a line '# rank probability'.")
    ] = 1,
    output: options.Output = None,
    encoding: Encoding = "utf-8",
    n_jobs: options.Jobs = None,
    as_json: options.AsJson = False,
) -> None:
    """Write each token's columns and its predicted label; a column of labels may be there or not."""
    from markovfield.sequence.tagger import load_chain
    from markovfield.text_files import write_text

    if marginals and n_best > 1:
        raise CommandError("--marginals and --n-best do not go together")
    if as_json and output is not None:
        raise CommandError("--json goes to standard output: leave --out out")
    check_place(output)
    out, err = report.consoles()
    with ProgressLine(f"tagging {data.name}", err):
        found = load_chain(model)
        chain_of(found).n_jobs = n_jobs
        X, _ = read_file(found, data, encoding, whole=True)
        if as_json:
            report.write_json(out, tagged_json(found, X, n_best, marginals=marginals))
            return
        given = lines_of(found, data, X)
        lazy = tagged_n_best(found, X, given, n_best) if n_best > 1 else tagged(found, X, given, marginals=marginals)
        pieces = list(lazy)
        if output is not None:
            with writing(output):
                write_text(output, pieces)
            return
    for piece in pieces:
        out.file.write(piece)


@app.command("eval")
def evaluate(
    data: Tokens,
    model: ModelFile,
    encoding: Encoding = "utf-8",
    n_jobs: options.Jobs = None,
    as_json: options.AsJson = False,
) -> None:
    """Score a model on labelled sequences: token accuracy, and chunks as conlleval scores them."""
    from markovfield.sequence.tagger import load_chain

    out, err = report.consoles()
    with ProgressLine(f"scoring {data.name}", err):
        found = load_chain(model)
        chain_of(found).n_jobs = n_jobs
        X, labels = read_file(found, data, encoding)
        if labels is None:
            raise CommandError(f"{data} has {len(X.names)} columns and none of labels, which scoring needs")
        check_some(data, len(labels))
        started = time.perf_counter()
        tokens, entities = scores_of(found, X, labels)
        seconds = time.perf_counter() - started
    unknown = sorted({str(x) for sentence in labels for x in sentence} - {str(x) for x in found.classes_})
    if as_json:
        body = {**tables.score_json(tokens, entities), "unknown_labels": unknown, "seconds": seconds}
        report.write_json(out, body)
        return
    if entities is not None:
        tables.entity_table(out, entities)
    else:
        tables.token_table(out, tokens)
    if unknown:
        out.print(Text(f"labels that the model does not know: {', '.join(unknown)}", style="yellow"), soft_wrap=True)


@app.command()
def show(
    model: ModelFile,
    top: Annotated[int, typer.Option(min=1, metavar="N", help="How many transitions, and how many features.")] = 20,
    label: Annotated[str | None, typer.Option(metavar="LABEL", help="Only what speaks for or against it.")] = None,
    as_json: options.AsJson = False,
) -> None:
    """Show a model's settings, its size, its strongest transitions and features."""
    from markovfield.sequence.tagger import load_chain

    out, err = report.consoles()
    with ProgressLine(f"reading {model.name}", err):
        found = load_chain(model)
        crf = chain_of(found)
        if label is not None and label not in map(str, crf.classes_):
            raise CommandError(f"the model has no label {label!r}; it has {', '.join(map(str, crf.classes_))}")
        moves = tables.strongest(crf.transition_features_, top, label)
        states = tables.strongest(crf.state_features_, top, label)
    changed = {k: v for k, v in crf.get_params().items() if v != getattr(type(crf)(), k)}
    size, about = _size(found, model), crf.report_
    if as_json:
        training = {k: v for k, v in about.to_dict().items() if k not in ("history", "accuracies", "f1_scores")}
        body = {
            "class": type(found).__name__,
            "labels": crf.classes_,
            **size,
            "n_features": crf.model_.features.n_features,
            "settings": {k: v for k, v in crf.get_params().items() if k != "n_jobs"},
            "features": tables.features_json(found),
            "training": training,
            "transitions": [{"from": str(a), "to": str(b), "weight": w} for (a, b), w in moves],
            "states": [{"attribute": a, "label": str(k), "weight": w} for (a, k), w in states],
        }
        report.write_json(out, body)
        return
    out.print(Text(f"{type(found).__name__}: {', '.join(map(str, crf.classes_))}", style="bold"), soft_wrap=True)
    out.print(Text(tables.features_line(found)), soft_wrap=True)
    listed = ", ".join(f"{name}={value!r}" for name, value in changed.items())
    out.print(Text(f"settings: {listed or 'all as they come'}"), soft_wrap=True)
    out.print(
        f"{size['n_labels']} labels, {size['n_attributes']} attributes, {crf.model_.features.n_features} weights, "
        f"{size['bytes'] / 1e6:.2f} MB",
        soft_wrap=True,
    )
    out.print(Text(str(about), style="dim"), soft_wrap=True)
    tables.weights_table(out, "Transitions", ("from", "to"), moves)
    tables.weights_table(out, "Features", ("attribute", "label"), states)
