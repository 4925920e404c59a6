"""One reader and one writer for all formats, chosen by the ending of a file's name."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from typing import Any

from markovfield.exceptions import FormatError, ModelError
from markovfield.factors.factor_graph import FactorGraph
from markovfield.files import PathLike
from markovfield.io.ad3 import read_ad3
from markovfield.io.archive import load, save
from markovfield.io.bif import read_bif, write_bif
from markovfield.io.hugin import read_hugin, write_hugin
from markovfield.io.uai import read_uai, write_uai
from markovfield.io.wcsp import read_wcsp, write_wcsp
from markovfield.io.xmlbif import read_xmlbif, write_xmlbif
from markovfield.models import BayesianNetwork, MarkovNetwork
from markovfield.text_files import read_source

__all__ = ["READABLE", "check_ending", "cost_sign", "ending_of_text", "read", "read_network", "write", "write_network"]

Model = FactorGraph | MarkovNetwork | BayesianNetwork


def _read_logic(path: PathLike) -> Any:
    from markovfield.logic.markov_logic import read

    return read(path)


def _write_logic(program: Any, path: PathLike) -> None:
    if not hasattr(program, "to_text"):
        raise ModelError(f"a .mln file holds a MarkovLogic, got {type(program).__name__}")
    program.write(path)


_READERS: dict[str, Callable[[PathLike], Any]] = {
    ".bif": read_bif,
    ".xmlbif": read_xmlbif,
    ".bifxml": read_xmlbif,
    ".xml": read_xmlbif,
    ".net": read_hugin,
    ".uai": read_uai,
    ".wcsp": read_wcsp,
    ".cfn": read_wcsp,
    ".fg": read_ad3,
    ".mln": _read_logic,
}
_WRITERS: dict[str, Callable[..., None]] = {
    ".bif": write_bif,
    ".xmlbif": write_xmlbif,
    ".bifxml": write_xmlbif,
    ".xml": write_xmlbif,
    ".net": write_hugin,
    ".uai": write_uai,
    ".wcsp": write_wcsp,
    ".cfn": write_wcsp,
    ".mln": _write_logic,
    ".mfz": save,
}
_COMPRESSED = (".gz", ".xz")
_BEGINNINGS = (
    (r"<", ".xmlbif"),
    (r"network\b", ".bif"),
    (r"(net|class)\b", ".net"),
    (r"(?i:markov|bayes)\b", ".uai"),
    (r"\{", ".cfn"),
    (r"\S+[ \t]+\d+[ \t]+\d+[ \t]+\d+[ \t]+\d+", ".wcsp"),
    (r"\d+\s", ".fg"),
)

READABLE = (
    "a .bif, .xmlbif, .bifxml, .xml, .net, .uai, .wcsp, .cfn, .fg or .mln file (.gz or .xz as well), or an archive "
    "written by save"
)


def _ending(path: PathLike) -> str:
    name = os.fspath(path).lower()
    for packed in _COMPRESSED:
        name = name.removesuffix(packed)
    return os.path.splitext(name)[1]


def read_network(path: PathLike) -> Any:
    """Read a model from a file of any format the library knows; ``mf.read`` is the same.

    Parameters
    ----------
    path
        A file whose name ends in ``.bif``, ``.xmlbif``, ``.bifxml``, ``.xml``, ``.net``, ``.uai``, ``.wcsp``,
        ``.cfn``, ``.fg`` (AD3's) or ``.mln``, then perhaps in ``.gz`` or ``.xz``; or an archive written by `save`,
        by any name.

    Returns
    -------
    BayesianNetwork, FactorGraph, MarkovNetwork or MarkovLogic
        A `BayesianNetwork` from BIF, XMLBIF and Hugin files, a `FactorGraph` from UAI files, a `MarkovNetwork`
        from wcsp, cfn and fg files, a `MarkovLogic` from mln files, from an archive what was saved.

    Raises
    ------
    FormatError
        When the file is none of these, or breaks its format.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> import markovfield as mf
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "coin.net"
    >>> net = mf.BayesianNetwork({"coin": ["heads", "tails"]})
    >>> net.add_cpt("coin", [], [0.5, 0.5])
    >>> mf.write(net, path)
    >>> mf.read(path)
    BayesianNetwork(1 variable, 0 arcs)
    """
    reader = _READERS.get(_ending(path))
    if reader is None:
        with open(path, "rb") as stream:
            start = stream.read(2)
        if start != b"PK":
            raise FormatError(f"{os.fspath(path)}:1:1: this is no model: expected {READABLE}")
        reader = load
    return reader(path)


def write_network(net: Model, path: PathLike, **settings: Any) -> None:
    """Write a model in the format that the ending of the file's name says; ``mf.write`` is the same.

    Parameters
    ----------
    net
        A `BayesianNetwork`; for ``.uai``, ``.wcsp``, ``.cfn`` and ``.mfz`` (the library's archive) also another model.
    path
        Where to write: ``.bif``, ``.xmlbif``, ``.bifxml``, ``.xml``, ``.net``, ``.uai``, ``.wcsp``, ``.cfn`` or
        ``.mfz``; all but the last compressed when ``.gz`` or ``.xz`` follows.
    settings
        Of the format's own writer, such as ``decimals`` of `write_wcsp`.

    Raises
    ------
    ModelError
        For another ending, or a model that the format cannot hold.
    """
    check_ending(path)
    _WRITERS[_ending(path)](net, path, **settings)


def ending_of_text(path: PathLike) -> str:
    """The ending that a model would have by how its text begins, compressed or not; for a model without a name."""
    data = read_source(path).data
    if data[:2] == b"PK":
        return ".mfz"
    text = data[:4096].decode("utf-8", "replace").lstrip("\ufeff")
    text = re.sub(r"\A(\s+|//[^\n]*\n|%[^\n]*\n|/\*.*?\*/)*", "", text, flags=re.DOTALL)
    for pattern, ending in _BEGINNINGS:
        if re.match(pattern, text):
            return ending
    raise FormatError(f"{os.fspath(path)}:1:1: this is no model: expected {READABLE}")


def cost_sign(path: PathLike) -> int:
    """What makes a cost of a score: -1 for files of costs, 1 where they are maximised, 0 for files without costs."""
    ending = _ending(path)
    if ending == ".cfn" and re.search(r'mustbe"?\s*:\s*"?\s*>', read_source(path).text()):
        return 1
    return -1 if ending in (".wcsp", ".cfn") else 0


def check_ending(path: PathLike) -> None:
    """Raise where `write_network` would not know the format that a file's name asks for."""
    if _ending(path) not in _WRITERS:
        raise ModelError(f"models are written to names that end in {', '.join(_WRITERS)}, got {os.fspath(path)!r}")


# The same, by the names that people try first.
read, write = read_network, write_network
