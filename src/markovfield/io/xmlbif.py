"""XMLBIF 0.3, the Bayesian networks of JavaBayes, Weka and their peers in XML."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NoReturn
from xml.parsers import expat

from markovfield.exceptions import FormatError, ModelError
from markovfield.files import PathLike
from markovfield.io._families import Families
from markovfield.io._written import WrittenNetwork, numbers_text, written
from markovfield.models import BayesianNetwork
from markovfield.text_files import Source, read_source, write_text

__all__ = ["read_xmlbif", "write_xmlbif"]

# Which elements an element may hold; one without an entry holds text. Depth is bounded by this, whatever the file.
_CHILDREN = {
    "": ("BIF",),
    "BIF": ("NETWORK",),
    "NETWORK": ("NAME", "PROPERTY", "VARIABLE", "DEFINITION"),
    "VARIABLE": ("NAME", "OUTCOME", "PROPERTY"),
    "DEFINITION": ("FOR", "GIVEN", "TABLE", "PROPERTY"),
}
# Characters that no XML file can hold.
_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def read_xmlbif(path: PathLike) -> BayesianNetwork:
    """Read a Bayesian network from an XMLBIF 0.3 file, plain, gzipped or xz-compressed.

    Parameters
    ----------
    path
        The file. Its DTD is passed over; one that declares entities is refused, as no network needs them and
        they can be made to expand without end.

    Returns
    -------
    BayesianNetwork
        Variables in the order of the file; they and their states are named by its words (always ``str``).
        Properties and the name are kept. Rows are rescaled to sum to one; one that is further than 1e-2 from it
        is an error.

    Raises
    ------
    FormatError
        With ``file:line:column``, where the file is no XML or breaks the format.

    Notes
    -----
    A ``TABLE`` runs through the ``GIVEN`` variables in order, the first slowest, and through the ``FOR`` variable
    fastest. Time and memory are linear in the size of the file.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> import markovfield.io as mio
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "rain.xmlbif"
    >>> _ = path.write_text('''<BIF VERSION="0.3"><NETWORK><NAME>weather</NAME>
    ... <VARIABLE TYPE="nature"><NAME>rain</NAME><OUTCOME>no</OUTCOME><OUTCOME>yes</OUTCOME></VARIABLE>
    ... <DEFINITION><FOR>rain</FOR><TABLE>0.8 0.2</TABLE></DEFINITION>
    ... </NETWORK></BIF>''')
    >>> net = mio.read_xmlbif(path)
    >>> net.name, net.cpt("rain").tolist()
    ('weather', [0.8, 0.2])
    """
    return _Reader(read_source(path)).read()


class _Reader:
    def __init__(self, source: Source) -> None:
        self.source = source
        self.families = Families(source, self.fail, "DEFINITION")
        self.parser = expat.ParserCreate()
        self.parser.buffer_text = True
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.EntityDeclHandler = self._entity
        self.parser.SkippedEntityHandler = self._skipped
        self.has_network = False
        self.path = [""]
        self.starts = [0]
        self.text: list[str] = []
        self.inside: dict[str, list[str]] = {}

    def fail(self, at: int, message: str) -> NoReturn:
        """Raise a `FormatError` at a byte of the file, or at its end."""
        raise self.source.error(len(self.source.data.rstrip()) if at < 0 else at, message) from None

    def read(self) -> BayesianNetwork:
        try:
            self.parser.Parse(self.source.data, True)
        except FormatError:
            raise
        except expat.ExpatError as error:
            reason = expat.errors.messages.get(error.code, str(error))
            self.fail(self.parser.ErrorByteIndex, f"this is not well-formed XML: {reason}")
        except (LookupError, ValueError) as error:  # an encoding that is not known, or not a byte to a character
            self.fail(0, f"the encoding of this XML cannot be read: {error}")
        return self.families.network()

    def _entity(self, name: str, *_: object) -> NoReturn:
        self.fail(
            self.parser.CurrentByteIndex,
            f"the file declares the XML entity {name[:30]!r}: no network needs one, and it could expand without end",
        )

    def _skipped(self, name: str, _: object) -> NoReturn:
        self.fail(
            self.parser.CurrentByteIndex, f"the file uses the XML entity {name[:30]!r}, which it does not declare"
        )

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        at, within = self.parser.CurrentByteIndex, self.path[-1]
        allowed = _CHILDREN.get(within, ())
        if tag not in allowed:
            where = f"in {within}" if within else "at the top"
            rule = f"only {', '.join(allowed)}" if allowed else "no element"
            self.fail(at, f"unexpected element {tag[:30]!r}: {where} there may be {rule}")
        if tag == "NETWORK" and self.has_network:
            self.fail(at, "this is the second NETWORK of the file")
        self.has_network |= tag == "NETWORK"
        kind = attributes.get("TYPE", "nature")
        if tag == "VARIABLE" and kind != "nature":
            self.fail(at, f"a variable of type {kind[:30]!r} has no place in a Bayesian network, only of type 'nature'")
        self.path.append(tag)
        self.starts.append(at)
        if tag in ("VARIABLE", "DEFINITION"):
            self.inside = {}
        if tag not in _CHILDREN:
            self.text = []
            self.parser.CharacterDataHandler = self.text.append
            self.parser.CommentHandler = self._comment

    def _comment(self, _: str) -> None:
        self.text.append(" ")  # numbers on both sides of a comment are two numbers

    def _end(self, tag: str) -> None:
        at = self.starts.pop()
        self.path.pop()
        if tag not in _CHILDREN:
            self.parser.CharacterDataHandler = self.parser.CommentHandler = None
            text = "".join(self.text)
            if tag != "PROPERTY":
                text = text.strip()
            if self.path[-1] != "NETWORK":
                self.inside.setdefault(tag, []).append(text)
            elif tag == "NAME":
                if self.families.name is not None:
                    self.fail(at, "this is the second NAME of the network")
                self.families.name = text
            elif text.strip():
                self.families.add_property(None, text)
        elif tag == "VARIABLE":
            self._variable(at)
        elif tag == "DEFINITION":
            self._definition(at)

    def _one(self, at: int, tag: str, block: str) -> str:
        found = self.inside.get(tag, [])
        if len(found) != 1:
            self.fail(at, f"a {block} holds one {tag}, and this one holds {len(found)}")
        return found[0]

    def _keep_properties(self, owner: str) -> None:
        for text in self.inside.get("PROPERTY", ()):
            if text.strip():
                self.families.add_property(owner, text)

    def _variable(self, at: int) -> None:
        name = self._one(at, "NAME", "VARIABLE")
        self.families.add_variable(at, name, self.inside.get("OUTCOME", []))
        self._keep_properties(name)

    def _definition(self, at: int) -> None:
        child = self._one(at, "FOR", "DEFINITION")
        words = self._one(at, "TABLE", "DEFINITION").split()
        self.families.add_table(at, [child, *self.inside.get("GIVEN", [])], words)
        self._keep_properties(child)


def write_xmlbif(net: BayesianNetwork, path: PathLike) -> None:
    """Write a Bayesian network to an XMLBIF 0.3 file.

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
        one, empty, with spaces around it, or with a character that XML does not allow.

    Notes
    -----
    Numbers have up to 17 digits, and `read_xmlbif` gives back exactly the same tables.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> import markovfield as mf
    >>> import markovfield.io as mio
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "coin.xmlbif"
    >>> net = mf.BayesianNetwork({"coin": ["heads", "tails"]})
    >>> net.add_cpt("coin", [], [0.5, 0.5])
    >>> mio.write_xmlbif(net, path)
    >>> mio.read_xmlbif(path).cpt("coin").tolist()
    [0.5, 0.5]
    """
    write_text(path, list(_elements(written(net, "write_xmlbif"))))


def _elements(net: WrittenNetwork) -> Iterator[str]:
    variables = [_name(text, "variable") for text in net.variables]
    name = "" if net.net.name is None else _name(net.net.name, "name of the network")
    # No DTD: there are readers that stop at one.
    yield f'<?xml version="1.0" encoding="UTF-8"?>\n<BIF VERSION="0.3">\n<NETWORK>\n<NAME>{name}</NAME>\n'
    yield _properties(net.properties(None), "")
    for v, variable in enumerate(variables):
        yield f'<VARIABLE TYPE="nature">\n  <NAME>{variable}</NAME>\n'
        for state in net.states[v]:
            yield f"  <OUTCOME>{_name(state, f'state of {net.variables[v]!r}')}</OUTCOME>\n"
        yield f"{_properties(net.properties(v), '  ')}</VARIABLE>\n"
    for v, variable in enumerate(variables):
        yield f"<DEFINITION>\n  <FOR>{variable}</FOR>\n"
        for p in net.parents[v]:
            yield f"  <GIVEN>{variables[p]}</GIVEN>\n"
        yield "  <TABLE>\n"
        for row in net.rows(v):
            yield f"    {numbers_text(row, ' ')}\n"
        yield "  </TABLE>\n</DEFINITION>\n"
    yield "</NETWORK>\n</BIF>\n"


def _escaped(text: str, what: str) -> str:
    if found := _FORBIDDEN.search(text):
        raise ModelError(f"the {what} {text!r} cannot be written to XMLBIF: XML does not allow {found[0]!r}")
    for sign, name in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ("\r", "&#13;")):
        text = text.replace(sign, name)
    return text


def _name(text: str, what: str) -> str:
    if not text or text != text.strip():
        raise ModelError(f"the {what} {text!r} cannot be written to XMLBIF: it is empty or has spaces around it")
    return _escaped(text, what)


def _properties(texts: tuple[str, ...], margin: str) -> str:
    return "".join(f"{margin}<PROPERTY>{_escaped(text, 'property')}</PROPERTY>\n" for text in texts if text.strip())
