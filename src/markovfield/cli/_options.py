"""Options that several commands share."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from markovfield.cli._stdin import model_file
from markovfield.inference.core.registry import ENTRIES

__all__ = [
    "AsJson",
    "Evidence",
    "Explored",
    "Jobs",
    "MemoryLimit",
    "Method",
    "Model",
    "Task",
    "TimeLimit",
    "method_of",
]


class Task(StrEnum):
    """The questions of the UAI competitions."""

    PR = "PR"
    MAR = "MAR"
    MPE = "MPE"
    MAP = "MAP"
    MMAP = "MMAP"


Model = Annotated[
    Path,
    typer.Argument(
        metavar="MODEL",
        callback=model_file,
        help="A .uai, .bif, .xmlbif, Hugin .net, .wcsp, .cfn, .fg or .mln file (also .gz or .xz), an archive of "
        "mf.save, or - for one of these on standard input.",
    ),
]
Explored = Annotated[
    Path,
    typer.Argument(
        metavar="FILE",
        callback=model_file,
        help="A file of a model as other commands take it, an archive of mf.save or an estimator's own, a grammar as "
        "text (.pcfg), or a picture (PNG, JPEG, GIF, BMP, WebP); or - for a model on standard input.",
    ),
]
QueryFile = Annotated[
    Path | None, typer.Option("--query", metavar="FILE", help="For MMAP: a file with a count, then variable indices.")
]
QueryVariables = Annotated[
    list[str] | None,
    typer.Option("-q", "--query-variables", metavar="NAMES", help="For MMAP: names, separated by commas."),
]
Evidence = Annotated[
    list[str] | None,
    typer.Option(
        "-e",
        "--evidence",
        "--observe",
        metavar="NAME=STATE|FILE",
        help="An observed state by name, or a UAI evidence file (variables and states by index); may be repeated.",
    ),
]


def method_of(*verbs: str) -> Any:
    """The option ``--method``, whose help lists the methods that answer some verbs."""
    known = [e.name for e in ENTRIES if e.form == "FactorGraph" and set(verbs) & set(e.verbs)]

    def completed(incomplete: str) -> list[str]:
        return [name for name in ("auto", *known) if name.startswith(incomplete)]

    words = f"auto, {', '.join(known)}."
    return Annotated[str, typer.Option("-m", "--method", metavar="NAME", help=words, autocompletion=completed)]


Method = method_of("marginals")
MemoryLimit = Annotated[str | None, typer.Option(metavar="SIZE", help="Refuse plans that need more memory, like 4GiB.")]
TimeLimit = Annotated[float | None, typer.Option(metavar="SECONDS", help="Stop after so many seconds.")]
Jobs = Annotated[int | None, typer.Option("--n-jobs", metavar="N", help="Threads; all cores when not given.")]
AsJson = Annotated[bool, typer.Option("--json", help="One JSON object on standard output, for machines.")]
Seed = Annotated[int | None, typer.Option(min=0, help="Same seed, same answer.")]
SavedTo = Annotated[Path, typer.Option("-o", "--out", "--output", metavar="FILE", help="Where to save the model.")]
AllVariables = Annotated[bool, typer.Option("--all", help="Show all variables, not only the first 40.")]
Output = Annotated[
    Path | None, typer.Option("-o", "--out", "--output", metavar="FILE", help="Standard output when not given.")
]
L2 = Annotated[float, typer.Option(min=0, help="Penalty on the weights' squares.")]
L1 = Annotated[float, typer.Option(min=0, help="Penalty on the weights' absolute values.")]
WrittenTo = Annotated[
    Path | None,
    typer.Option("-o", "--out", "--output", metavar="FILE", help="Where to write; its ending says the format."),
]
MissingWords = Annotated[
    list[str] | None,
    typer.Option(metavar="TEXT", help="What stands for a missing value; may be repeated. Usual: nothing, ?, NA."),
]
CountColumn = Annotated[str | None, typer.Option(metavar="COLUMN", help="The column that counts rows.")]
LeftOut = Annotated[list[str] | None, typer.Option(metavar="COLUMN", help="A column to leave out; may be repeated.")]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=VALUE", help="A setting of the model, such as connectivity=8; repeatable."),
]
