"""Text files of rows: tables of data; sentence pairs, line by line, and the links between their words."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt

from markovfield.alignment.formats import links_of_text, text_of_links
from markovfield.alignment.links import GoldLinks
from markovfield.alignment.sentences import normalised, tokenised
from markovfield.exceptions import FormatError
from markovfield.files import PathLike
from markovfield.text_files import Source, read_source, write_text

__all__ = ["MISSING", "read_csv", "read_links", "read_sentence_pairs", "write_links"]

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


def read_sentence_pairs(
    source: PathLike,
    target: PathLike,
    *,
    tokenise: tuple[str, str] | None = None,
    normalise: bool = False,
    n_pairs: int | None = None,
) -> list[tuple[list[str], list[str]]]:
    """Read sentence pairs from two files of as many lines, plain, gzipped or xz-compressed.

    Parameters
    ----------
    source, target
        Files with a sentence on each line, words between spaces.
    tokenise
        Languages of both where words are still to be told from signs, such as ``("en", "fr")``; see
        `markovfield.alignment.tokenised`. None takes what stands between spaces.
    normalise
        Whether words come in small letters and without accents.
    n_pairs
        Only so many, from the first one.

    Raises
    ------
    FormatError
        With ``file:line:column``, where a file ends before the other one, or a sentence has no words.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (folder / "x.e").write_text("The clerk\\n")
    >>> _ = (folder / "x.f").write_text("L'employé\\n", encoding="utf-8")
    >>> _ = (folder / "x.f").write_text("L'employé\\n", encoding="utf-8")
    >>> read_sentence_pairs(folder / "x.e", folder / "x.f", tokenise=("en", "fr"), normalise=True)
    [(['the', 'clerk'], ['le', 'employe'])]
    """
    names, sides = [os.fspath(source), os.fspath(target)], []
    for k, name in enumerate(names):
        lines = read_source(name).text().split("\n")
        if lines[-1] == "":
            lines.pop()
        sides.append([line.split() if tokenise is None else tokenised(line, tokenise[k]) for line in lines[:n_pairs]])
    if len(sides[0]) != len(sides[1]):
        short = int(len(sides[1]) < len(sides[0]))
        raise FormatError(
            f"{names[short]}:{len(sides[short]) + 1}:1: the file ends after {len(sides[short])} sentences, and "
            f"{names[1 - short]} has {len(sides[1 - short])}"
        )
    for name, sentences in zip(names, sides, strict=True):
        empty = next((k for k, words in enumerate(sentences) if not words), None)
        if empty is not None:
            raise FormatError(f"{name}:{empty + 1}:1: this sentence has no words")
    if normalise:
        known = {word: normalised(word) for sentences in sides for words in sentences for word in words}
        sides = [[[known[word] for word in words] for words in sentences] for sentences in sides]
    return list(zip(*sides, strict=True))


def read_links(path: PathLike, *, format: str | None = None, n_pairs: int | None = None) -> list[GoldLinks]:
    """Read the links of sentence pairs, plain, gzipped or xz-compressed.

    Parameters
    ----------
    path
        The file.
    format
        ``"wa"``: lines ``pair source target S|P`` numbered from 1, as in the shared task of NAACL 2003;
        ``"pharaoh"``: a line of links ``source-target`` for each pair, numbered from 0. None finds out.
    n_pairs
        How many pairs there are, where the last ones have no links.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "x.wa"
    >>> _ = path.write_text("1 1 1 S\\n1 2 1 P\\n")
    >>> read_links(path, n_pairs=1)
    [GoldLinks(sure=frozenset({(0, 0)}), possible=frozenset({(1, 0)}))]
    """
    return links_of_text(read_source(path).text(), os.fspath(path), format=format, n_pairs=n_pairs)


def write_links(path: PathLike, links: Iterable[Any], *, format: str = "pharaoh") -> None:
    """Write the links of sentence pairs; compressed when the name ends in ``.gz`` or ``.xz``. See `read_links`."""
    write_text(path, list(text_of_links(links, format)))
