"""BIF, the Bayesian network interchange format of JavaBayes, bnlearn and pgmpy."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import product

from markovfield.exceptions import ModelError
from markovfield.files import PathLike
from markovfield.io._bif_careful import CarefulReader
from markovfield.io._bif_plain import UNNAMED, read_plain
from markovfield.io._written import WrittenNetwork, numbers_text, written
from markovfield.models import BayesianNetwork
from markovfield.text_files import read_source, write_text

__all__ = ["read_bif", "write_bif"]

_BARE = re.compile(r'[^\s{}()\[\],;|"]++')
_WHOLE_STRINGS = re.compile(r'(?:[^";{}\n]|"[^"\n]*+")*+')


def read_bif(path: PathLike) -> BayesianNetwork:
    """Read a Bayesian network from a BIF file, plain, gzipped or xz-compressed.

    Parameters
    ----------
    path
        The file. Blocks may come in any order.

    Returns
    -------
    BayesianNetwork
        Variables in the order of the file; they and their states are named by its words (always ``str``). The
        parents' axes of a table are in the order of its ``probability`` block. Rows are rescaled to sum to
        one; one that is further than 1e-2 from it is an error. ``net.name`` is the name of the network (None
        for ``unknown``, which writers put where there is none), ``net.properties`` holds the texts of its
        properties, those of a ``probability`` block under its variable.

    Raises
    ------
    FormatError
        With ``file:line:column``, where the file breaks the format.

    Notes
    -----
    Time and memory are linear in the size of the file. A ``table`` of a variable with parents runs through
    the variable's states slowest, then the parents in order, the last one fastest; where only the opposite
    reading (the variable fastest) gives distributions, as some writers have it, that one is taken. (pgmpy
    and pyAgrum take the first order unseen.)

    Examples
    --------
    >>> import tempfile, pathlib
    >>> import markovfield.io as mio
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "rain.bif"
    >>> _ = path.write_text('''
    ... variable rain { type discrete [ 2 ] { no, yes }; }
    ... variable wet { type discrete [ 2 ] { no, yes }; }
    ... probability ( rain ) { table 0.8, 0.2; }
    ... probability ( wet | rain ) { (no) 0.9, 0.1; (yes) 0.2, 0.8; }
    ... ''')
    >>> net = mio.read_bif(path)
    >>> net
    BayesianNetwork(2 variables, 1 arc)
    >>> net.cpt("wet").tolist()
    [[0.9, 0.1], [0.2, 0.8]]
    """
    source = read_source(path)
    net = read_plain(source.text())
    return CarefulReader(source).read() if net is None else net


def write_bif(net: BayesianNetwork, path: PathLike) -> None:
    """Write a Bayesian network to a BIF file, in the layout of the bnlearn repository.

    Parameters
    ----------
    net
        The network. Variables and states that are no ``str`` are written as their text, and read back as that. A
        noisy-or or noisy-max is written as its table, which may have up to 2^20 cells.
    path
        Where to write; compressed when the name ends in ``.gz`` or ``.xz``. The file takes this name only once it is
        complete and on the disk.

    Raises
    ------
    ModelError
        When a variable has no distribution, there is a cycle, or a name cannot be written: the same text as another
        one, empty, or with a double quote or an end of line in it.

    Notes
    -----
    Numbers have up to 17 digits, and `read_bif` gives back exactly the same tables. Names are quoted only where the
    format needs it. A network without a name is called ``unknown``, as other programs have it.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> import markovfield as mf
    >>> import markovfield.io as mio
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "coin.bif"
    >>> net = mf.BayesianNetwork({"coin": ["heads", "tails"]})
    >>> net.add_cpt("coin", [], [0.5, 0.5])
    >>> mio.write_bif(net, path)
    >>> print(path.read_text())
    network unknown {
    }
    variable coin {
      type discrete [ 2 ] { heads, tails };
    }
    probability ( coin ) {
      table 0.5, 0.5;
    }
    <BLANKLINE>
    """
    write_text(path, list(_blocks(written(net, "write_bif"))))


def _blocks(net: WrittenNetwork) -> Iterator[str]:
    variables = [_quoted(text, "variable") for text in net.variables]
    states = [
        [_quoted(text, f"state of {v!r}") for text in own] for v, own in zip(net.variables, net.states, strict=True)
    ]
    name = UNNAMED if net.net.name is None else _quoted(net.net.name, "name of the network")
    yield f"network {name} {{\n{_properties(net.properties(None))}}}\n"
    for v, variable in enumerate(variables):
        listing = ", ".join(states[v])
        yield f"variable {variable} {{\n  type discrete [ {len(states[v])} ] {{ {listing} }};\n"
        yield f"{_properties(net.properties(v))}}}\n"
    for v, variable in enumerate(variables):
        rows, above = net.rows(v), net.parents[v]
        if not above:
            yield f"probability ( {variable} ) {{\n  table {numbers_text(rows[0], ', ')};\n}}\n"
            continue
        yield f"probability ( {variable} | {', '.join(variables[p] for p in above)} ) {{\n"
        for given, row in zip(product(*(states[p] for p in above)), rows, strict=True):
            yield f"  ({', '.join(given)}) {numbers_text(row, ', ')};\n"
        yield "}\n"


def _quoted(text: str, what: str) -> str:
    if _BARE.fullmatch(text) and "//" not in text and "/*" not in text:
        return text
    if not text or '"' in text or "\n" in text:
        raise ModelError(f"the {what} {text!r} cannot be written to BIF: it is empty, or has a quote or an end of line")
    return f'"{text}"'


def _properties(texts: Sequence[str]) -> str:
    return "".join(f"  property {_property(text)} ;\n" for text in texts)


def _property(text: str) -> str:
    """A property without quotes around it where it can do without: there are readers that stop at them."""
    outside = text.split('"')[::2]
    comment = any(mark in piece for piece in outside for mark in ("//", "/*"))
    one_string = text.count('"') == 2 and text[0] == text[-1] == '"'
    if text and text == text.strip() and _WHOLE_STRINGS.fullmatch(text) and not comment and not one_string:
        return text
    if '"' in text or "\n" in text:
        raise ModelError(
            f"the property {text!r} cannot be written to BIF: it has an end of line, or quotes in the wrong places"
        )
    return f'"{text}"'
