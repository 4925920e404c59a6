"""Standard input in place of a file, by the name ``-``: put into a file of its own, since files are read twice."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from markovfield.cli._errors import CommandError

__all__ = ["data_file", "model_file", "without_folder"]

# Kept until the process ends, or standard input is read again.
_folders: list[TemporaryDirectory[str]] = []


def data_file(path: Path | None) -> Path | None:
    """The file itself; for ``-``, one that holds what standard input has."""
    if path is None or str(path) != "-":
        return path
    data = sys.stdin.buffer.read()
    if not data:
        raise CommandError("there is nothing on standard input, or it was read already")
    while _folders:
        _folders.pop().cleanup()
    _folders.append(TemporaryDirectory(prefix="markovfield-"))
    file = Path(_folders[0].name) / "stdin"
    file.write_bytes(data)
    return file


def model_file(path: Path | None) -> Path | None:
    """The same for a model, whose format is told by how the text begins."""
    file = data_file(path)
    if file is None or file == path:
        return file
    from markovfield.io.networks import ending_of_text

    ending = ending_of_text(file)
    return file.rename(file.with_name(f"stdin{ending}"))


def without_folder(sentence: str) -> str:
    """A sentence in which standard input is called that."""
    for folder in _folders:
        sentence = sentence.replace(folder.name + os.sep, "")
    return sentence
