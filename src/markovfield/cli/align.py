"""Word alignment from files: train on sentence pairs, write links, score them."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from types import SimpleNamespace
from typing import Annotated, Any

import typer
from rich.text import Text

import markovfield as mf
from markovfield.alignment.links import SYMMETRISATIONS, gold_tables
from markovfield.cli import _options as options
from markovfield.cli import _report as report
from markovfield.cli._errors import CommandError
from markovfield.cli._reading import check_place, writing
from markovfield.progress import ProgressLine

__all__ = ["app"]

app = typer.Typer(help="Links between the words of sentence pairs: train, predict, eval.")


class Kind(StrEnum):
    """Models of alignments."""

    IBM1 = "ibm1"
    IBM2 = "ibm2"
    HMM = "hmm"
    CRF = "crf"


class Format(StrEnum):
    """Files of links."""

    PHARAOH = "pharaoh"
    WA = "wa"


Source = Annotated[Path, typer.Argument(metavar="SOURCE", help="Sentences, one on each line.")]
Target = Annotated[Path, typer.Argument(metavar="TARGET", help="Their translations, line by line.")]
ModelFile = Annotated[Path, typer.Argument(metavar="MODEL", help="A model that `align train` saved.")]
Tokenise = Annotated[
    str | None,
    typer.Option(metavar="LANG,LANG", help="Tell words from signs first; languages of both sides, such as en,fr."),
]
Normalise = Annotated[bool, typer.Option("--normalise", help="Small letters and no accents.")]
Threshold = Annotated[
    float | None,
    typer.Option(min=0, max=1, help="All links of at least such a probability instead of the best alignment."),
]


@app.command()
def train(
    source: Source,
    target: Target,
    output: options.SavedTo,
    model: Annotated[Kind, typer.Option("-m", "--model", case_sensitive=False, help="What is learnt.")] = Kind.HMM,
    links: Annotated[
        Path | None, typer.Option(metavar="FILE", help="For crf: links of the sentence pairs, in either format.")
    ] = None,
    corpus: Annotated[
        tuple[Path, Path] | None,
        typer.Option(metavar="SOURCE TARGET", help="For crf: more sentence pairs, without links, to count words in."),
    ] = None,
    iterations: Annotated[int, typer.Option(min=1, help="Of EM, for ibm1, ibm2 and hmm.")] = 5,
    symmetrisation: Annotated[
        str, typer.Option(metavar="NAME", help=f"How two directions are made one: {', '.join(SYMMETRISATIONS)}.")
    ] = "grow_diag_final",
    one_way: Annotated[
        bool, typer.Option("--one-way", help="Only targets given sources, not both directions.")
    ] = False,
    objective: Annotated[str, typer.Option(metavar="NAME", help="For crf: likelihood or hinge.")] = "likelihood",
    l2: Annotated[float, typer.Option(min=0, help="For crf: penalty on the weights' squares.")] = 1.0,
    tokenise: Tokenise = None,
    normalise: Normalise = False,
    seed: options.Seed = None,
    time_limit: options.TimeLimit = None,
    n_jobs: options.Jobs = None,
    as_json: options.AsJson = False,
) -> None:
    """Learn from sentence pairs, and from links where the model is crf, and save the model."""
    check_place(output)
    out, err = report.consoles()
    if (model is Kind.CRF) != (links is not None):
        raise CommandError("a crf learns from --links FILE, and nothing else takes any")
    if corpus is not None and model is not Kind.CRF:
        raise CommandError("--corpus is for crf: other models learn from SOURCE and TARGET alone")
    pairs = _pairs(source, target, tokenise, normalise)
    words: dict[str, Any] = {"time_limit": time_limit}
    estimator: Any
    if links is not None:
        gold = mf.io.read_links(links, n_pairs=len(pairs))
        estimator = mf.AlignmentCRF(objective=objective, l2=l2, rng=seed, n_jobs=n_jobs)
        words["corpus"] = None if corpus is None else _pairs(*corpus, tokenise, normalise)
        arguments: tuple[Any, ...] = (pairs, gold)
    else:
        kind = {Kind.IBM1: mf.alignment.IBM1, Kind.IBM2: mf.alignment.IBM2, Kind.HMM: mf.alignment.HMMAligner}[model]
        estimator = kind(iterations, n_jobs=n_jobs)
        if not one_way:
            estimator = mf.alignment.SymmetricAligner(estimator, symmetrisation=symmetrisation)
        arguments = (pairs,)
    with ProgressLine(f"training on {source.name}", err) as waiting:
        estimator.fit(*arguments, callback=waiting.callback, **words)
    with writing(output):
        estimator.save(output)
    sides = ("forward_", "backward_") if isinstance(estimator, mf.alignment.SymmetricAligner) else ("",)
    fits = [SimpleNamespace(fit_report=getattr(estimator, side, estimator).report_) for side in sides]
    if as_json:
        report.write_json(out, {"model": model.value, "fits": [report.fit_json(fit) for fit in fits]})
        return
    for side, fit in zip(sides, fits, strict=True):
        report.fit_lines(out, fit, f"{source.name}{', ' if side else ''}{side.removesuffix('_')}")
    report.wrote(out, output)


@app.command()
def predict(
    model: ModelFile,
    source: Source,
    target: Target,
    output: Annotated[Path, typer.Option("-o", "--out", "--output", metavar="FILE", help="A file of links.")],
    format: Annotated[Format, typer.Option(case_sensitive=False, help="Of the file.")] = Format.PHARAOH,
    threshold: Threshold = None,
    tokenise: Tokenise = None,
    normalise: Normalise = False,
    as_json: options.AsJson = False,
) -> None:
    """Write the links of sentence pairs."""
    check_place(output)
    out, err = report.consoles()
    estimator = _loaded(model)
    pairs = _pairs(source, target, tokenise, normalise)
    with ProgressLine(f"aligning {source.name}", err):
        found = estimator.predict(pairs, threshold=threshold)
    with writing(output):
        mf.io.write_links(output, found, format=format.value)
    n_links = sum(map(len, found))
    if as_json:
        report.write_json(out, {"n_pairs": len(pairs), "n_links": n_links, "output": str(output)})
        return
    out.print(Text(f"{n_links} links in {len(pairs)} sentence pairs"))
    report.wrote(out, output)


@app.command("eval")
def evaluate(
    model: ModelFile,
    source: Source,
    target: Target,
    links: Annotated[Path, typer.Argument(metavar="LINKS", help="Gold links, in either format.")],
    threshold: Threshold = None,
    tokenise: Tokenise = None,
    normalise: Normalise = False,
    as_json: options.AsJson = False,
) -> None:
    """Compare the links of a model with gold ones: alignment error rate, precision, recall."""
    out, err = report.consoles()
    estimator = _loaded(model)
    pairs = _pairs(source, target, tokenise, normalise)
    gold = mf.io.read_links(links, n_pairs=len(pairs))
    for k, (own, pair) in enumerate(zip(gold, pairs, strict=True)):
        gold_tables(own, k, *map(len, pair))
    with ProgressLine(f"aligning {source.name}", err):
        found = mf.alignment.alignment_report(gold, estimator.predict(pairs, threshold=threshold))
    if as_json:
        report.write_json(out, found.to_dict())
        return
    out.print(Text(str(found)), soft_wrap=True)


def _pairs(source: Path, target: Path, tokenise: str | None, normalise: bool) -> list[tuple[list[str], list[str]]]:
    languages = None if tokenise is None else tuple(tokenise.split(","))
    if languages is not None and len(languages) != 2:
        raise CommandError(f"--tokenise wants the languages of both sides, such as en,fr, got {tokenise!r}")
    return mf.io.read_sentence_pairs(source, target, tokenise=languages, normalise=normalise)


def _loaded(path: Path) -> Any:
    from markovfield.alignment.aligner import Aligner

    found = mf.load(path)
    if not isinstance(found, Aligner | mf.alignment.SymmetricAligner | mf.AlignmentCRF):
        raise CommandError(f"{path} holds a {type(found).__name__}, not a model of `markovfield align train`")
    return found
