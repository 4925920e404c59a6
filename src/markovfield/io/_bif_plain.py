"""BIF files in the plain layout that most writers use, read at C speed.

Plain means: no quotes, comments, properties or defaults; a table for a variable without parents and one row for each
configuration of them otherwise. All numbers of a file are converted together and all rows checked together, so a
small network costs a few dozen calls. Whatever is not plain, or not right, is left to the careful reader, which
tells where and why. Both are kept: measured on the bnlearn networks this one takes a quarter of the other's time (pigs,
link), half (munin, munin2) or four fifths (mildew).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from itertools import product
from math import prod

import numpy as np

from markovfield.arrays import FloatArray
from markovfield.models import BayesianNetwork
from markovfield.names import VariableName

__all__ = ["SUM_TOLERANCE", "UNNAMED", "read_plain"]

SUM_TOLERANCE = 1e-2
UNNAMED = "unknown"  # what bnlearn and its peers call a network without a name

# Possessive throughout, and what matches no block is taken to the end of the text at once: linear on any input.
_BLOCK = re.compile(
    r"""(?:
    variable\s++([^\s{}]++)\s*+\{\s*+type\s++discrete\s*+\[\s*+(\d++)\s*+\]\s*+\{([^{}]*+)\}\s*+;\s*+\}
    |probability\s*+\(\s*+([^\s(){}|,]++)\s*+\|?+([^(){}|]*+)\)\s*+\{([^{}]*+)\}
    |network\s++([^\s{}]++)\s*+\{\s*+\}
    |(\S.*+)
    )\s*+""",
    re.VERBOSE | re.DOTALL,
)
_ROW_STATES = re.compile(r";\s*+\(\s*+([^()]*+)\)")
_LARGEST = 2.0  # no cell of a row that sums to about one is larger

_Place = tuple[int, int, int]


class _NotPlainError(Exception):
    """The text has something else in it."""


@dataclass
class _Text:
    """What one pass over the blocks finds."""

    name: str | None = None
    states: dict[VariableName, tuple[str, ...]] = field(default_factory=dict)
    blocks: list[tuple[str, str, str]] = field(default_factory=list)


def read_plain(text: str) -> BayesianNetwork | None:
    """The network that a text in the plain layout describes; None when anything about it is unusual or wrong.

    Examples
    --------
    >>> net = read_plain("variable A { type discrete [ 2 ] { x, y }; } probability ( A ) { table 0.25, 0.75; }")
    >>> net.cpt("A").tolist()
    [0.25, 0.75]
    >>> read_plain("variable A { }") is None
    True
    """
    if '"' in text or "//" in text or "/*" in text:
        return None
    try:
        found = _scan(text.strip())
        states = list(found.states.values())
        parents, places, texts = _locate(found, states)
        rows = {width: _distributions(listed, width) for width, listed in texts.items()}
        tables = []
        for (width, first, last), above in zip(places, parents, strict=True):
            if above:
                tables.append(rows[width][first:last].reshape([*[len(states[p]) for p in above], width]))
            else:
                tables.append(rows[width][first])
        # A cycle is a ModelError, hence a ValueError: the careful reader says where it is.
        return BayesianNetwork._from_tables(found.states, parents, tables, name=found.name)
    except (_NotPlainError, KeyError, ValueError):
        return None


def _scan(text: str) -> _Text:
    """Variables with their states, and the three parts of each probability block."""
    found = _Text()
    states, blocks = found.states, found.blocks
    listings: dict[str, tuple[str, ...]] = {}  # many variables have the same states
    for variable, count, listing, child, above, body, network, _ in _BLOCK.findall(text):
        if child:
            blocks.append((child, above, body))
        elif variable:
            own = listings.get(listing)
            if own is None:
                words = [w.strip() for w in listing.split(",")] if "," in listing else listing.split()
                if not words or "" in words or len(set(words)) != len(words):
                    raise _NotPlainError
                own = listings[listing] = tuple(words)
            if variable in states or count != str(len(own)):
                raise _NotPlainError
            states[variable] = own
        elif network and found.name is None:
            found.name = network
        else:
            raise _NotPlainError
    if found.name == UNNAMED:
        found.name = None
    if not states or len(blocks) != len(states):
        raise _NotPlainError
    return found


def _locate(found: _Text, states: list[tuple[str, ...]]) -> tuple[list[list[int]], list[_Place], dict[int, list[str]]]:
    """Parents of each variable, where its rows stand, and the texts of all rows, gathered by their width.

    A place is a width and the range of the variable's rows among those of this width, in C order over the parents.
    """
    position = {variable: i for i, variable in enumerate(found.states)}
    parents: list[list[int]] = [[] for _ in states]
    places: list[_Place] = [(0, 0, 0)] * len(states)
    texts: dict[int, list[str]] = {}
    numberings: dict[tuple[tuple[str, ...], ...], list[str]] = {}
    for child, above, body in found.blocks:
        v = position[child]
        width = len(states[v])
        listed = texts.setdefault(width, [])
        first = len(listed)
        body = body.strip()
        if places[v][0] or body[-1:] != ";":
            raise _NotPlainError
        mine = parents[v] = [position[p] for p in above.replace(",", " ").split()]
        if mine:
            pieces = _ROW_STATES.split(";" + body[:-1])
            given = tuple([states[p] for p in mine])
            # The number of rows is checked before anything of that size is made.
            if pieces[0] or len(pieces) != 2 * prod(map(len, given)) + 1 or len({v, *mine}) <= len(mine):
                raise _NotPlainError
            numbering = numberings.get(given)
            if numbering is None:
                numbering = numberings[given] = list(map(", ".join, product(*given)))
            listed += _in_order(pieces[1::2], pieces[2::2], numbering)
        elif body.startswith("table"):
            listed.append(body[5:-1])
        else:
            raise _NotPlainError
        places[v] = width, first, len(listed)
    return parents, places, texts


def _in_order(keys: list[str], rows: list[str], numbering: list[str]) -> list[str]:
    """Rows in the order of the numbering, each of whose states must mark one of them."""
    if keys == numbering:
        return rows
    if keys[0] not in numbering:  # spaces elsewhere than after a comma
        keys = [", ".join([w.strip() for w in key.split(",")]) for key in keys]
    row_of = dict(zip(keys, rows, strict=True))
    return [row_of[key] for key in numbering]


def _distributions(texts: list[str], width: int) -> FloatArray:
    """The rows of one width, each rescaled to sum to one."""
    # A negative number after each row shows that each has as many numbers as it should.
    listing = " -1 ".join(texts) + " -1"
    words = listing.replace(",", " ").split()
    if len(words) != len(texts) * (width + 1) or words[width :: width + 1].count("-1") != len(texts):
        raise _NotPlainError
    if "_" in listing:  # float() would read 1_0 as ten
        raise _NotPlainError
    # A file says the same few numbers many times, and looking one up is faster than converting it.
    value = {word: float(word) for word in set(words)}
    rows = np.fromiter(map(value.__getitem__, words), np.float64, len(words)).reshape(-1, width + 1)
    cells = rows[:, :width]
    if not (cells.min() >= 0 and max(value.values()) <= _LARGEST):
        raise _NotPlainError
    total = cells.sum(axis=1, keepdims=True)
    if np.abs(total - 1).max() > SUM_TOLERANCE:
        raise _NotPlainError
    return np.asarray(cells / total)
