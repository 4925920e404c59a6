"""Options that several commands share."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

__all__ = [
    "AsJson",
    "EvidenceFile",
    "Jobs",
    "MemoryLimit",
    "Method",
    "Model",
    "Observed",
    "Task",
    "TimeLimit",
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
        metavar="MODEL", help="A .uai, .bif, .xmlbif or Hugin .net file (also .gz or .xz), or an archive of mf.save."
    ),
]
QueryFile = Annotated[
    Path | None, typer.Option("--query", metavar="FILE", help="For MMAP: a file with a count, then variable indices.")
]
QueryVariables = Annotated[
    list[str] | None,
    typer.Option("-q", "--query-variables", metavar="NAMES", help="For MMAP: names, separated by commas."),
]
EvidenceFile = Annotated[
    Path | None,
    typer.Option("--evidence", metavar="FILE", help="UAI evidence file: variables and states by index."),
]
Observed = Annotated[
    list[str] | None,
    typer.Option("-e", "--observe", metavar="NAME=STATE", help="An observed state by name; may be repeated."),
]
Method = Annotated[
    str, typer.Option(metavar="NAME", help="auto, junction_tree, bp, trw, meanfield, minibucket, gbp, sandwich, ...")
]
MemoryLimit = Annotated[str | None, typer.Option(metavar="SIZE", help="Refuse plans that need more memory, like 4GiB.")]
TimeLimit = Annotated[float | None, typer.Option(metavar="SECONDS", help="Give up after so many seconds.")]
Jobs = Annotated[int | None, typer.Option("--n-jobs", metavar="N", help="Threads; all cores when not given.")]
AsJson = Annotated[bool, typer.Option("--json", help="One JSON object on standard output, for machines.")]
