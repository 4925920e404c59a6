"""Hugin .net files of Bayesian networks."""

from __future__ import annotations

import re
from collections.abc import Iterator

from markovfield.exceptions import ModelError
from markovfield.files import PathLike
from markovfield.io._hugin_reader import (
    NAME_ATTRIBUTE,
    PROPERTY_ATTRIBUTE,
    HuginReader,
    is_value,
)
from markovfield.io._written import WrittenNetwork, numbers_text, written
from markovfield.models import BayesianNetwork
from markovfield.text_files import read_source, write_text

__all__ = ["read_hugin", "write_hugin"]

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*+")
_NOT_IN_IDENTIFIER = re.compile(r"[^A-Za-z0-9_]")
_ATTRIBUTE = re.compile(r"([A-Za-z_][A-Za-z0-9_]*+) = (.+)", re.DOTALL)
_OURS = ("states", "name", NAME_ATTRIBUTE, PROPERTY_ATTRIBUTE)
_ESCAPES = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t", "\r": "\\r"})


def read_hugin(path: PathLike) -> BayesianNetwork:
    """Read a Bayesian network from a Hugin ``.net`` file, plain, gzipped or xz-compressed.

    Parameters
    ----------
    path
        The file: discrete chance nodes with plain tables, in a ``net`` or one ``class``. Decision, utility, function
        and continuous nodes, experience tables and tables given by expressions are refused.

    Returns
    -------
    BayesianNetwork
        Variables in the order of the file; they and their states are named by its words (always ``str``). Other
        attributes (label, position, ...) are kept as properties, ``key = value``. Rows are rescaled to sum to one;
        one that is further than 1e-2 from it is an error.

    Raises
    ------
    FormatError
        With ``file:line:column``, where the file breaks the format or holds what is refused.

    Notes
    -----
    The ``data`` of a potential run through the parents in order, the first slowest, and through the variable itself
    fastest; how they are put in parentheses does not matter. Time and memory are linear in the size of the file.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> import markovfield.io as mio
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "rain.net"
    >>> _ = path.write_text('''net { }
    ... node rain { states = ("no" "yes"); label = "Rain?"; }
    ... node wet { states = ("no" "yes"); }
    ... potential (rain) { data = (0.8 0.2); }
    ... potential (wet | rain) { data = ((0.9 0.1) (0.2 0.8)); }''')
    >>> net = mio.read_hugin(path)
    >>> net.cpt("wet").tolist()
    [[0.9, 0.1], [0.2, 0.8]]
    >>> net.properties["rain"]
    ('label = "Rain?"',)
    """
    return HuginReader(read_source(path)).read()


def write_hugin(net: BayesianNetwork, path: PathLike) -> None:
    """Write a Bayesian network to a Hugin ``.net`` file.

    Parameters
    ----------
    net
        The network. Variables and states that are no ``str`` are written as their text, and read back as that; a
        variable whose name is no identifier gets one, and keeps its name in an attribute of our own. A
        noisy-or or noisy-max is written as its table, which may have up to 2^20 cells.
    path
        Where to write; compressed when the name ends in ``.gz`` or ``.xz``. The file takes this name only once it is
        complete and on the disk.

    Raises
    ------
    ModelError
        When a variable has no distribution, there is a cycle, or a name is empty or the same text as another one.

    Notes
    -----
    Numbers have up to 17 digits, and `read_hugin` gives back exactly the same tables. Properties of the form
    ``key = value`` are written as attributes, others in an attribute of our own.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> import markovfield as mf
    >>> import markovfield.io as mio
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "coin.net"
    >>> net = mf.BayesianNetwork({"coin": ["heads", "tails"]})
    >>> net.add_cpt("coin", [], [0.5, 0.5])
    >>> mio.write_hugin(net, path)
    >>> mio.read_hugin(path).cpt("coin").tolist()
    [0.5, 0.5]
    """
    write_text(path, list(_blocks(written(net, "write_hugin"))))


def _blocks(net: WrittenNetwork) -> Iterator[str]:
    identifiers = _identifiers(net.variables)
    name = "" if net.net.name is None else f"  name = {_string(net.net.name)};\n"
    yield f"net\n{{\n{name}{_attributes(net.properties(None))}}}\n"
    for v, variable in enumerate(net.variables):
        if not variable or "" in net.states[v]:
            raise ModelError(f"the variable {variable!r} cannot be written to Hugin: it or a state has an empty name")
        states = " ".join(map(_string, net.states[v]))
        yield f"node {identifiers[v]}\n{{\n  states = ({states});\n"
        if identifiers[v] != variable:
            yield f"  {NAME_ATTRIBUTE} = {_string(variable)};\n"
        yield f"{_attributes(net.properties(v))}}}\n"
    for v, identifier in enumerate(identifiers):
        given = "".join(f" {identifiers[p]}" for p in net.parents[v])
        yield f"potential ({identifier}{' |' * bool(given)}{given})\n{{\n  data = "
        yield from _data(net, v)
        yield ";\n}\n"


def _data(net: WrittenNetwork, v: int) -> Iterator[str]:
    """The rows of a table, with a pair of parentheses for every state of every parent."""
    sizes = [len(net.states[p]) for p in net.parents[v]]
    for i, row in enumerate(net.rows(v)):
        opened, closed = "(" * _rolled_over(i, sizes), ")" * _rolled_over(i + 1, sizes)
        line = "\n          " if i else ""
        yield f"{line}{opened}({numbers_text(row, ' ')}){closed}"


def _rolled_over(row: int, sizes: list[int]) -> int:
    """How many parents, from the last on, are at their first state in a row."""
    level = 0
    for size in reversed(sizes):
        row, state = divmod(row, size)
        if state:
            break
        level += 1
    return level


def _identifiers(variables: list[str]) -> list[str]:
    """For each variable an identifier that no other one has: itself where it is one."""
    taken = {v for v in variables if _IDENTIFIER.fullmatch(v)}
    identifiers = []
    for i, variable in enumerate(variables):
        identifier = variable
        if variable not in taken:
            identifier = f"v{i}_{_NOT_IN_IDENTIFIER.sub('_', variable)}"
            while identifier in taken:
                identifier += "_"
            taken.add(identifier)
        identifiers.append(identifier)
    return identifiers


def _string(text: str) -> str:
    return f'"{text.translate(_ESCAPES)}"'


def _attributes(texts: tuple[str, ...]) -> str:
    return "".join(f"  {_attribute(text)};\n" for text in texts)


def _attribute(text: str) -> str:
    found = _ATTRIBUTE.fullmatch(text)
    if found and found[1] not in _OURS and is_value(found[2]):
        return text
    return f"{PROPERTY_ATTRIBUTE} = {_string(text)}"
