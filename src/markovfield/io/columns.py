"""Tables of data in text files: a row of names, then rows of values, between commas, semicolons or tabs."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt

from markovfield.files import PathLike
from markovfield.io._text import Source, read_source

__all__ = ["MISSING", "read_csv"]

MISSING = ("", "?", "NA", "N/A", "NaN", "nan")
_DELIMITERS = ",;\t"
_ROWS_AT_ONCE = 8192


def read_csv(
    path: PathLike, *, delimiter: str | None = None, missing: Sequence[str] = MISSING
) -> dict[str, npt.NDArray[Any]]:
    """Read a table of texts, plain, gzipped or xz-compressed.

    Parameters
    ----------
    path
        The file; its first row holds the names of the columns.
    delimiter
        What separates values; comma, semicolon or tab, whichever the first row has most of, when None.
    missing
        Texts that stand for a missing value, whether quoted or not; give fewer where one of them is a state.

    Returns
    -------
    dict
        Column name to an object array of ``str``, None where missing: data for `fit` and `learn_structure`. Time and
        memory are linear in the file.

    Raises
    ------
    FormatError
        With ``file:line:column``, where a row has more or fewer values than there are names.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "weather.csv"
    >>> _ = path.write_text("rain,wet\\nyes,yes\\nno,?\\n")
    >>> {name: column.tolist() for name, column in read_csv(path).items()}
    {'rain': ['yes', 'no'], 'wet': ['yes', None]}
    """
    source = read_source(path)
    lines = source.text().splitlines(keepends=True)
    if not lines or not lines[0].strip():
        raise source.error(0, "expected a row of column names, found an empty one")
    if delimiter is None:
        delimiter = max(_DELIMITERS, key=lines[0].count)
    # A quoted value may hold line breaks, so that rows are not lines: csv knows both.
    reader = csv.reader(lines, delimiter=delimiter, strict=True)
    try:
        names = [name.strip() for name in next(reader)]
        _check_names(source, names)
        columns: list[list[str]] = [[] for _ in names]
        while rows := list(islice(reader, _ROWS_AT_ONCE)):
            rows = [row for row in rows if row]  # empty lines
            if any(len(row) != len(names) for row in rows):
                _blame(source, lines, delimiter, len(names))
            for column, values in zip(columns, zip(*rows, strict=True), strict=False):
                column.extend(values)
    except csv.Error as error:
        raise source.error(_offset(lines, reader.line_num), f"this row is no CSV: {error}") from None
    absent = dict.fromkeys(missing)
    return {name: _column(values, absent) for name, values in zip(names, columns, strict=True)}


def _column(values: list[str], absent: dict[str, None]) -> npt.NDArray[Any]:
    """Values as objects, one object for each distinct text; what stands for missing becomes None."""
    stripped = {text: text.strip() for text in dict.fromkeys(values)}
    shown = {text: absent.get(short, short) for text, short in stripped.items()}
    result = np.empty(len(values), object)
    result[:] = [shown[text] for text in values]
    return result


def _check_names(source: Source, names: list[str]) -> None:
    if "" in names:
        raise source.error(0, f"column {names.index('') + 1} has no name")
    twice = next((n for i, n in enumerate(names) if n in names[:i]), None)
    if twice is not None:
        raise source.error(0, f"two columns are named {twice[:40]!r}")


def _offset(lines: list[str], line: int) -> int:
    """Byte at which a line, counted from one, starts."""
    return sum(len(text.encode()) for text in lines[: max(line - 1, 0)])


def _blame(source: Source, lines: list[str], delimiter: str, expected: int) -> None:
    reader = csv.reader(lines, delimiter=delimiter)
    before = 0
    for row in reader:
        if row and len(row) != expected:
            raise source.error(
                _offset(lines, before + 1), f"expected {expected} values as there are names, got {len(row)}"
            )
        before = reader.line_num
