"""CRFsuite's data files: a label and its attributes on each line, a blank line after each sequence."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from markovfield.exceptions import ModelError
from markovfield.files import PathLike
from markovfield.io.conll import line_start
from markovfield.sequence.text._encoding import careful_pairs
from markovfield.text_files import Source, read_source, write_text

__all__ = ["CrfsuiteItems", "read_crfsuite_items", "write_crfsuite_items"]

# A name and, after a colon that is not escaped, a value; a backslash escapes a backslash or a colon.
_ESCAPE = re.compile(r"\\([\\:])")
_SPLIT = re.compile(r"((?:[^\\:]|\\.|\\$)*+)(?::(.*))?", re.DOTALL)
_WEIGHT = "@weight"

Token = list[str] | dict[str, float]


@dataclass(frozen=True)
class CrfsuiteItems:
    """Sequences as CRFsuite's files hold them.

    Attributes
    ----------
    X
        For each sequence its tokens: a list of attributes where all have the value one, otherwise a dict to values.
    y
        For each sequence its labels.
    weights
        For each sequence its weight: one unless the file says ``@weight``.
    """

    X: list[list[Token]]
    y: list[list[str]]
    weights: list[float]


def read_crfsuite_items(path: PathLike) -> CrfsuiteItems:
    """Read a file for CRFsuite, plain, gzipped or xz-compressed.

    A line is a label, then attributes, separated by tabs. An attribute may have a value after a colon; colons and
    backslashes in names are escaped by a backslash. A field that starts with ``#`` makes the rest of its line a
    comment. A line ``@weight:2`` before a sequence gives it a weight.

    Raises
    ------
    FormatError
        With ``file:line:column``, where a value is no finite number.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "train.crfsuite"
    >>> _ = path.write_text("B-NP\\tw=He\\tbias\\nB-VP\\tw=ran\\tlength:0.5\\n")
    >>> items = read_crfsuite_items(path)
    >>> items.X
    [[['w=He', 'bias'], {'w=ran': 1.0, 'length': 0.5}]]
    >>> items.y
    [['B-NP', 'B-VP']]
    """
    source = read_source(path)
    items = CrfsuiteItems([], [], [])
    tokens: list[Token] = []
    labels: list[str] = []
    weight = 1.0
    shared: dict[str, str] = {}
    lines = source.text().split("\n")
    for number, line in enumerate([*lines, ""]):
        line = line.removesuffix("\r")
        if not line:
            if labels:
                items.X.append(tokens)
                items.y.append(labels)
                items.weights.append(weight)
            tokens, labels, weight = [], [], 1.0
            continue
        fields = [field for field in line.split("\t") if field]
        if "#" in line:
            fields = _uncommented(fields)
        if not fields:
            continue
        if fields[0].startswith("@"):
            weight = _weight(fields[0], source, number)
            continue
        label, *names = fields
        labels.append(_name(label, source, number)[0])
        if ":" in line or "\\" in line:
            tokens.append(_token(names, source, number))
        else:
            # Equal attributes become one object: less to hold, and quicker to look up later.
            tokens.append([shared.setdefault(name, name) for name in names])
    return items


def write_crfsuite_items(
    path: PathLike,
    X: Iterable[Sequence[Any]],
    y: Iterable[Sequence[str]],
    *,
    weights: Iterable[float] | None = None,
) -> None:
    """Write sequences of tokens, in any of the forms that models take, and their labels, for CRFsuite to read.

    The file takes its place only once complete, and is compressed where its name ends in ``.gz`` or ``.xz``.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "train.crfsuite"
    >>> write_crfsuite_items(path, [[{"word": "He", "length": 2}]], [["B-NP"]])
    >>> path.read_text()
    'B-NP\\tword\\\\:He\\tlength:2\\n\\n'
    """
    write_text(path, _pieces(list(X), list(y), None if weights is None else list(weights)))


def _pieces(X: list[Sequence[Any]], y: list[Sequence[str]], weights: list[float] | None) -> Iterator[str]:
    if len(X) != len(y) or (weights is not None and len(weights) != len(X)):
        raise ModelError(
            f"write_crfsuite_items: there are {len(X)} sequences, labels for {len(y)} and "
            f"{'no' if weights is None else len(weights)} weights"
        )
    for s, (sequence, labels) in enumerate(zip(X, y, strict=True)):
        if len(sequence) != len(labels):
            raise ModelError(f"sequence {s} has {len(sequence)} tokens and {len(labels)} labels")
        if not len(sequence):
            raise ModelError(f"write_crfsuite_items: sequence {s} has no tokens, which CRFsuite's files cannot show")
        lines = [f"{_WEIGHT}:{_number(weights[s])}"] if weights is not None and weights[s] != 1 else []
        for t, (token, label) in enumerate(zip(sequence, labels, strict=True)):
            where = f"token {t} of sequence {s}"
            if label.startswith("@"):
                raise ModelError(
                    f"{where} has the label {label!r}; CRFsuite takes what starts with @ for a declaration"
                )
            fields = [_escaped(label, where)]
            for name, value in careful_pairs(token, where):
                fields.append(_escaped(name, where) + ("" if value == 1 else f":{_number(value)}"))
            lines.append("\t".join(fields))
        yield "\n".join(lines) + "\n\n"


def _number(value: float) -> str:
    return repr(int(value)) if float(value).is_integer() and abs(value) < 1e15 else repr(float(value))


def _escaped(text: str, where: str) -> str:
    if not text or text.startswith("#") or any(sign in text for sign in "\t\n\r"):
        raise ModelError(
            f"{where} has the text {text[:40]!r}, which CRFsuite's files cannot hold: it is empty, starts with # "
            "or has a tab or a line break"
        )
    return text.replace("\\", "\\\\").replace(":", "\\:")


def _uncommented(fields: list[str]) -> list[str]:
    at = next((i for i, field in enumerate(fields) if field.startswith("#")), len(fields))
    return fields[:at]


def _name(field: str, source: Source, line: int) -> tuple[str, str | None]:
    match = _SPLIT.fullmatch(field)
    if match is None:
        raise source.error(line_start(source, line), f"expected an attribute, got {field[:40]!r}")
    return _ESCAPE.sub(r"\1", match[1]), match[2]


def _token(fields: list[str], source: Source, line: int) -> Token:
    names: list[str] = []
    values: list[float] = []
    for field in fields:
        name, value = _name(field, source, line)
        names.append(name)
        values.append(1.0 if not value else _value(value, field, source, line))
    if all(value == 1 for value in values):
        return names
    token: dict[str, float] = {}
    for name, number in zip(names, values, strict=True):
        token[name] = token.get(name, 0.0) + number
    return token


def _value(text: str, field: str, source: Source, line: int) -> float:
    try:
        number = float(text) if "_" not in text else math.nan
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise source.error(
            line_start(source, line),
            f"expected a finite number after the colon of {field[:40]!r}; escape others as \\:",
        )
    return number


def _weight(field: str, source: Source, line: int) -> float:
    name, value = _name(field, source, line)
    if name != _WEIGHT or not value:
        raise source.error(line_start(source, line), f"the only declaration is @weight:NUMBER, got {field[:40]!r}")
    return _value(value, field, source, line)
