"""The way from what a file says to a Bayesian network, shared by the readers of BIF, XMLBIF and Hugin files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import NoReturn

import numpy as np

from markovfield.arrays import FloatArray
from markovfield.exceptions import FormatError, ModelError
from markovfield.io._bif_plain import UNNAMED
from markovfield.models import BayesianNetwork
from markovfield.text_files import Source

__all__ = ["Families"]

_MOST_AXES = 64
Table = Callable[[], FloatArray]


@dataclass
class Families:
    """Variables, tables and properties as they are met; the network comes last, as variables may be declared late.

    ``fail`` raises a `FormatError` at a position of the file, whatever positions are to the reader; -1 is its end.
    """

    source: Source
    fail: Callable[[int, str], NoReturn]
    block: str
    name: str | None = None
    states: dict[str, list[str]] = field(default_factory=dict)
    tables: list[tuple[int, list[str], Table]] = field(default_factory=list)
    properties: dict[str | None, list[str]] = field(default_factory=dict)

    def add_variable(self, at: int, name: str, states: Sequence[str]) -> None:
        """Declare a variable with its states."""
        if not name:
            self.fail(at, "this variable has no name")
        if name in self.states:
            self.fail(at, f"variable {name!r} is declared twice")
        if not states:
            self.fail(at, f"variable {name!r} has no states")
        if len(set(states)) != len(states):
            last = {state: i for i, state in enumerate(states)}
            twice = next(s for i, s in enumerate(states) if last[s] != i)
            self.fail(at, f"state {twice!r} of variable {name!r} is listed twice")
        self.states[name] = list(states)

    def add_property(self, owner: str | None, text: str) -> None:
        """Keep a property of a variable, or of the network."""
        self.properties.setdefault(owner, []).append(text)

    def add_table(self, at: int, family: list[str], words: list[str]) -> None:
        """Note a table: the variable first in ``family``, then its parents; its cells with the variable fastest."""
        self.tables.append((at, family, lambda: self._values(at, family, words)))

    def network(self) -> BayesianNetwork:
        """Check all that was noted and make it a network."""
        if not self.states:
            self.fail(-1, "the file declares no variable")
        net = BayesianNetwork(self.states)
        for at, family, table in self.tables:
            self._add_cpt(net, at, family, table)
        for name in self.states:
            if not net.has_cpt(name):
                self.fail(-1, f"variable {name!r} has no {self.block}")
        try:
            net._check_acyclic()
        except ModelError as error:
            raise FormatError(f"{self.source.name}:1:1: {error}") from None
        net.name = None if self.name in ("", UNNAMED) else self.name
        net.properties = {owner: tuple(texts) for owner, texts in self.properties.items()}
        return net

    def _add_cpt(self, net: BayesianNetwork, at: int, family: list[str], table: Table) -> None:
        if not family:
            self.fail(at, f"this {self.block} names no variable")
        for name in family:
            if name not in self.states:
                self.fail(at, f"there is no variable {name[:30]!r} for this {self.block}")
        child, parents = family[0], family[1:]
        if len(set(family)) != len(family):
            self.fail(at, f"a variable is named twice in the {self.block} of {child!r}")
        if net.has_cpt(child):
            self.fail(at, f"variable {child!r} has two {self.block}s")
        try:
            with np.errstate(over="ignore", invalid="ignore"):  # sums of huge numbers, which are errors anyway
                net.add_cpt(child, parents, table())
        except ModelError as error:
            self.fail(at, str(error))

    def _values(self, at: int, family: list[str], words: list[str]) -> FloatArray:
        child, parents = family[0], family[1:]
        try:
            value = {word: _number(word) for word in set(words)}
        except ValueError:
            wrong = next(w for w in words if not _is_number(w))
            self.fail(at, f"expected a probability of {child!r}, got {wrong[:30]!r}")
        shape = [len(self.states[v]) for v in [*parents, child]]
        if prod(shape) != len(words):
            needed = str(prod(shape)) if prod(shape) < 10**12 else "far more"
            self.fail(at, f"expected {needed} probabilities of {child!r}, got {len(words)}")
        if len(shape) > _MOST_AXES:
            self.fail(at, f"variable {child!r} has {len(parents)} parents, more than NumPy has axes")
        return np.fromiter(map(value.__getitem__, words), np.float64, len(words)).reshape(shape)


def _number(word: str) -> float:
    if "_" in word:  # float() would read 1_0 as ten
        raise ValueError(word)
    return float(word)


def _is_number(word: str) -> bool:
    try:
        _number(word)
    except ValueError:
        return False
    return True
