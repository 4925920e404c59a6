"""Names of ground atoms, made when they are asked for: a world of millions has no list of texts."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from markovfield.logic.grounding.store import Relation, Store
from markovfield.logic.language.grammar import unquoted

__all__ = ["AtomNames", "AtomStates", "atom_text", "parts_of_atom"]

_PLAIN = re.compile(r"[\w.'+-]+")
_ATOM = re.compile(r'\s*([^\W\d][\w\'-]*)\s*(?:\(\s*((?:"(?:[^"\\]|\\.)*"|[^"])*?)\s*\))?\s*')
_ARGUMENT = re.compile(r'"(?:[^"\\]|\\.)*"|[^",]+')


def atom_text(name: str, args: Sequence[str]) -> str:
    """How a ground atom is written: ``Friends(Anna,Bob)``; constants that are no words are in quotation marks."""
    if not args:
        return name
    shown = (a if _PLAIN.fullmatch(a) else '"' + a.replace("\\", "\\\\").replace('"', '\\"') + '"' for a in args)
    return f"{name}({','.join(shown)})"


def parts_of_atom(text: str) -> tuple[str, list[tuple[str, bool]] | None] | None:
    """An atom's predicate and arguments, each with whether it stood in quotation marks; None of what is no atom.

    The arguments are None where there are no brackets.
    """
    found = _ATOM.fullmatch(text)
    if found is None:
        return None
    if found[2] is None:
        return found[1], None
    args = [a.strip() for a in _ARGUMENT.findall(found[2])]
    return found[1], [(unquoted(a), True) if a.startswith('"') else (a, False) for a in args if a]


class AtomNames(Sequence[str]):
    """The names of the atoms that are variables of a ground network, in rising order of their numbers."""

    def __init__(self, store: Store, numbers: npt.NDArray[np.int64]) -> None:
        self.constants, self.codes = store.constants, store.index
        self.relations = sorted(store.relations.values(), key=lambda r: r.base)
        self.by_name = {r.predicate.name: r for r in self.relations}
        self.numbers = numbers
        self._bases = np.array([r.base for r in self.relations], np.int64)

    def __len__(self) -> int:
        return len(self.numbers)

    @overload
    def __getitem__(self, at: int) -> str: ...
    @overload
    def __getitem__(self, at: slice) -> list[str]: ...
    def __getitem__(self, at: Any) -> Any:
        if isinstance(at, slice):
            return [self._text(int(n)) for n in self.numbers[at]]
        return self._text(int(self.numbers[at]))

    def __iter__(self) -> Iterator[str]:
        return (self._text(int(n)) for n in self.numbers)

    def __contains__(self, name: object) -> bool:
        return self.find(name) is not None

    def _text(self, number: int) -> str:
        relation = self.relations[int(np.searchsorted(self._bases, number, "right")) - 1]
        return atom_text(relation.predicate.name, self._arguments(relation, number))

    def _arguments(self, relation: Relation, number: int) -> list[str]:
        at = number - relation.base
        triples = zip(relation.predicate.types, relation.strides, relation.sizes, strict=True)
        return [self.constants[kind][at // stride % size] for kind, stride, size in triples]

    def find(self, name: object) -> int | None:
        """Position of an atom by its name; spaces do not matter."""
        number = self.number(name)
        if number is None:
            return None
        at = int(np.searchsorted(self.numbers, number))
        return at if at < len(self.numbers) and self.numbers[at] == number else None

    def position_of(self, name: str, args: Sequence[str]) -> int | None:
        """Position of an atom by its predicate and constants."""
        relation = self.by_name[name]
        number = relation.base
        for arg, kind, stride in zip(args, relation.predicate.types, relation.strides, strict=True):
            constant = self.codes[kind].get(arg)
            if constant is None:
                return None
            number += constant * stride
        at = int(np.searchsorted(self.numbers, number))
        return at if at < len(self.numbers) and self.numbers[at] == number else None

    def number(self, name: object) -> int | None:
        """The number of a ground atom; None where there is no such predicate or constant."""
        found = parts_of_atom(name) if isinstance(name, str) else None
        relation = self.by_name.get(found[0]) if found else None
        args = (found[1] or []) if found else []
        if relation is None or len(args) != len(relation.sizes):
            return None
        number = relation.base
        for (arg, _), kind, stride in zip(args, relation.predicate.types, relation.strides, strict=True):
            constant = self.codes[kind].get(arg)
            if constant is None:
                return None
            number += constant * stride
        return number


class AtomStates(Mapping[int, tuple[Any, ...]]):
    """State names of ground atoms: all are False and True."""

    def __init__(self, n: int) -> None:
        self.n = n

    def __getitem__(self, at: int) -> tuple[Any, ...]:
        if not 0 <= at < self.n:
            raise KeyError(at)
        return (False, True)

    def __iter__(self) -> Iterator[int]:
        return iter(range(self.n))

    def __len__(self) -> int:
        return self.n
