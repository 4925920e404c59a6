"""Parsing from files: learn a grammar from trees, parse sentences, score parses as evalb does."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text
from typer.core import TyperGroup

from markovfield.cli import _options as options
from markovfield.cli import _report as report
from markovfield.cli._errors import CommandError
from markovfield.cli._reading import check_place, writing
from markovfield.cli._stdin import data_file
from markovfield.progress import ProgressLine

__all__ = ["app"]

DEFAULT = "predict"
# What evalb tells.
FIGURES = (
    "precision",
    "recall",
    "f1",
    "complete_match",
    "average_crossing",
    "no_crossing",
    "two_or_less_crossing",
    "tagging_accuracy",
    "n_true",
    "n_found",
    "n_correct",
    "n_errors",
    "n_skipped",
)
# A file with this ending is a grammar as text.
TEXT = ".pcfg"


class _Group(TyperGroup):
    """``parse FILE`` is short for ``parse predict FILE``."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if args and args[0] not in self.commands and args[0] not in ctx.help_option_names:
            args = [DEFAULT, *args]
        return super().parse_args(ctx, args)


app = typer.Typer(
    cls=_Group,
    help="Trees of sentences by a grammar: train, predict (also without this word: parse FILE), eval.",
)


class Direction(StrEnum):
    """How trees are made binary."""

    RIGHT = "right"
    LEFT = "left"
    HEAD = "head"


class Unknown(StrEnum):
    """What words are that were never seen."""

    CLASSES = "classes"
    ONE = "one"
    NONE = "none"


ModelFile = Annotated[
    Path, typer.Option("-m", "--model", metavar="FILE", help="What `parse train` saved, or a grammar as text.")
]
Trees = Annotated[
    Path,
    typer.Argument(
        metavar="TREES",
        callback=data_file,
        help="Trees in brackets, as in the Penn Treebank (also .gz or .xz); - for standard input.",
    ),
]
SkipErrors = Annotated[bool, typer.Option("--skip-errors", help="Leave out trees that cannot be read, and say so.")]
Mbr = Annotated[
    bool, typer.Option("--mbr", help="The tree of highest expected F1 of brackets, not the most probable one.")
]


@app.command()
def train(
    trees: Trees,
    output: Annotated[
        Path,
        typer.Option(
            "-o",
            "--out",
            "--output",
            metavar="FILE",
            help=f"Where to save the grammar; as text where it ends in {TEXT}.",
        ),
    ],
    direction: Annotated[
        Direction, typer.Option(case_sensitive=False, help="From which side trees are made binary.")
    ] = Direction.RIGHT,
    horizontal: Annotated[
        str, typer.Option(metavar="N", help="How many siblings the labels of new nodes remember, or all.")
    ] = "1",
    vertical: Annotated[int, typer.Option(min=1, metavar="N", help="1: plain labels; 2: with their parent; ...")] = 2,
    unknown: Annotated[
        Unknown, typer.Option(case_sensitive=False, help="Unknown words: by how they are written, all alike, or none.")
    ] = Unknown.CLASSES,
    rare_count: Annotated[
        int, typer.Option(min=0, metavar="N", help="Words seen at most so often tell what unknown words are like.")
    ] = 1,
    smoothing: Annotated[
        float, typer.Option(min=0, help="Added to the counts of words, by tags of their class.")
    ] = 0.0,
    skip_errors: SkipErrors = False,
    as_json: options.AsJson = False,
) -> None:
    """Read a probabilistic grammar off trees and save it."""
    import markovfield as mf

    check_place(output)
    out, err = report.consoles()
    if horizontal != "all" and not horizontal.isdecimal():
        raise CommandError(f"--horizontal must be a number from 0 on, or all, got {horizontal!r}")
    with ProgressLine(f"training on {trees.name}", err):
        given = _trees(trees, skip_errors, err)
        grammar = mf.PCFG(
            direction=direction.value,
            horizontal=None if horizontal == "all" else int(horizontal),
            vertical=vertical,
            unknown=unknown.value,
            rare_count=rare_count,
            smoothing=smoothing,
        ).fit(given)
    with writing(output):
        if output.suffix == TEXT:
            from markovfield.text_files import write_text

            write_text(output, [grammar.to_text()])
        else:
            grammar.save(output)
    model = grammar.model_
    size = {
        "n_trees": len(given),
        "n_symbols": len(model.grammar.symbols),
        "n_rules": model.grammar.table.n_rules,
        "n_words": len(model.lexicon.words),
        "log_likelihood": grammar.report_.log_likelihood,
        "seconds": grammar.report_.seconds,
    }
    if as_json:
        report.write_json(out, {"model": str(output), **size})
        return
    out.print(Text(f"log-likelihood {size['log_likelihood']:.8g}", style="bold"))
    out.print(
        f"{size['n_trees']} trees, {size['n_symbols']} symbols, {size['n_rules']} rules, {size['n_words']} words",
        soft_wrap=True,
    )
    report.wrote(out, output)


@app.command(DEFAULT)
def predict(
    sentences: Annotated[
        Path,
        typer.Argument(
            metavar="SENTENCES",
            callback=data_file,
            help="A sentence on each line, words separated by spaces (also .gz or .xz); - for standard input.",
        ),
    ],
    model: ModelFile,
    tagged: Annotated[bool, typer.Option("--tagged", help="Words have their tags: dog/NN.")] = False,
    n_best: Annotated[
        int, typer.Option(min=1, metavar="N", help="The N best trees, each after a line '# rank log-probability'.")
    ] = 1,
    mbr: Mbr = False,
    flat: Annotated[bool, typer.Option("--flat", help="A flat tree where there is no parse.")] = False,
    max_words: Annotated[int | None, typer.Option(min=1, metavar="N", help="Longer sentences get no parse.")] = None,
    output: options.Output = None,
    time_limit: options.TimeLimit = None,
    n_jobs: options.Jobs = None,
    as_json: options.AsJson = False,
) -> None:
    """Write the tree of each sentence on its line; the line is empty where there is no parse."""
    from markovfield.text_files import read_source, write_text

    if n_best > 1 and (mbr or flat):
        raise CommandError("--n-best goes neither with --mbr nor with --flat")
    if as_json and output is not None:
        raise CommandError("--json goes to standard output: leave --out out")
    check_place(output)
    out, err = report.consoles()
    with ProgressLine(f"parsing {sentences.name}", err) as waiting:
        parser = _loaded(model, n_jobs)
        lines = [_sentence(line, tagged) for line in read_source(sentences).text().splitlines()]
        where = [i for i, line in enumerate(lines) if line]
        if not where:
            raise CommandError(f"{sentences} has no sentence")
        short = [i for i in where if flat or max_words is None or len(lines[i]) <= max_words]
        words = [lines[i] for i in short]
        found: list[list[tuple[Any, float]]] = [[] for _ in lines]
        if n_best > 1:
            ranked: Iterable[Any] = (
                (parser.n_best(one, n_best) for one in words)
                if hasattr(parser, "n_best")
                else parser.predict_n_best(words, n_best)
            )
            for i, own in zip(short, ranked, strict=True):
                found[i] = own
        else:
            given = {"decision": "mbr" if mbr else "map", "time_limit": time_limit, "callback": waiting.callback}
            answer = parser.decode(words, **given, **({"fallback": "flat", "max_words": max_words} if flat else {}))
            for i, tree, score in zip(short, answer.labels, answer.scores.tolist(), strict=True):
                found[i] = [] if tree is None else [(tree, score)]
    if as_json:
        report.write_json(out, _as_json(lines, found, n_best, mbr))
    else:
        pieces = list(_ranked(found) if n_best > 1 else (f"{own[0][0] if own else ''}\n" for own in found))
        if output is not None:
            with writing(output):
                write_text(output, pieces)
        else:
            for piece in pieces:
                out.file.write(piece)
    if none := [i + 1 for i in where if not found[i]]:
        some = ", ".join(map(str, none[:10])) + (", ..." if len(none) > 10 else "")
        line = f"{len(none)} of {len(where)} sentences have no parse: line{'s' if len(none) > 1 else ''} {some}"
        err.print(Text(line, style="yellow"), soft_wrap=True)


@app.command("eval")
def evaluate(
    trees: Trees,
    model: ModelFile,
    words: Annotated[bool, typer.Option("--words", help="Parse words alone; otherwise with the trees' tags.")] = False,
    mbr: Mbr = False,
    max_words: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Leave longer sentences out, as with 40.")
    ] = None,
    skip_errors: SkipErrors = False,
    n_jobs: options.Jobs = None,
    as_json: options.AsJson = False,
) -> None:
    """Parse the sentences of trees and score the brackets as evalb does."""
    from markovfield.grammar.scoring import bracket_report

    out, err = report.consoles()
    with ProgressLine(f"scoring {trees.name}", err) as waiting:
        parser = _loaded(model, n_jobs)
        gold = [t for t in _trees(trees, skip_errors, err) if max_words is None or len(t.leaves) <= max_words]
        if not gold:
            raise CommandError(f"{trees} has no tree of at most {max_words} words")
        given = [tree.leaves if words else tree.pos for tree in gold]
        answer = parser.decode(given, decision="mbr" if mbr else "map", callback=waiting.callback)
    found = bracket_report(gold, answer.labels)
    if not as_json:
        out.print(Text(str(found)))
        return
    body = {"n_sentences": len(gold), **{name: getattr(found, name) for name in FIGURES}, "seconds": answer.seconds}
    report.write_json(out, body)


def _trees(path: Path, skip_errors: bool, err: Any) -> list[Any]:
    """The trees of a file, at least one."""
    from markovfield.io.trees import read_trees

    skipped: list[Any] | None = [] if skip_errors else None
    found = read_trees(path, skipped=skipped)
    if skipped:
        err.print(Text(f"left out {len(skipped)} trees, the first: {skipped[0]}", style="yellow"), soft_wrap=True)
    if not found:
        raise CommandError(f"{path} has no trees")
    return found


def _loaded(path: Path, n_jobs: int | None) -> Any:
    """A parser: an archive, or a grammar as text."""
    import markovfield as mf
    from markovfield.grammar.parser import TreeParser

    with path.open("rb") as stream:
        archive = stream.read(2) == b"PK"
    found = mf.load(path) if archive else mf.PCFG.from_text(path)
    if not isinstance(found, mf.PCFG | TreeParser):
        raise CommandError(f"{path} holds a {type(found).__name__}, which is no parser")
    found.n_jobs = n_jobs
    return found


def _sentence(line: str, tagged: bool) -> list[Any]:
    """The words of a line, with their tags where they have some."""
    words: list[Any] = line.split()
    if not tagged:
        return words
    pairs = [word.rpartition("/") for word in words]
    for word, (before, _, tag) in zip(words, pairs, strict=True):
        if not before or not tag:
            raise CommandError(f"--tagged wants words with tags, as dog/NN, got {word!r}")
    return [(word, tag) for word, _, tag in pairs]


def _ranked(found: Iterable[list[tuple[Any, float]]]) -> Iterator[str]:
    """The n best trees of each sentence, and an empty line after them."""
    for own in found:
        yield from (f"# {rank} {score:.8g}\n{tree}\n" for rank, (tree, score) in enumerate(own, 1))
        yield "\n"


def _as_json(lines: list[Any], found: list[list[tuple[Any, float]]], n_best: int, mbr: bool) -> dict[str, Any]:
    name = "expected_f1" if mbr else "log_probability"

    def one(tree: Any, score: float) -> dict[str, Any]:
        return {"tree": str(tree), name: score if math.isfinite(score) else None}

    if n_best > 1:
        return {"n_best": [[one(*pair) for pair in own] for own in found]}
    scores = [own[0][1] if own and math.isfinite(own[0][1]) else None for own in found]
    unparsed = sum(bool(line) and not own for line, own in zip(lines, found, strict=True))
    trees = [str(own[0][0]) if own else None for own in found]
    return {"trees": trees, name: scores, "n_unparsed": unparsed}
