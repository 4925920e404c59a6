"""Alphabets, atoms and patterns: a pattern is a row of atoms, each a set of symbols at one place of a word."""

from __future__ import annotations

import string
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from markovfield.exceptions import ModelError

__all__ = ["CLASSES", "PRINTABLE", "Alphabet", "Atom", "Pattern"]

# The 95 characters of printable ASCII.
PRINTABLE = "".join(map(chr, range(32, 127)))
# Classes of characters that are atoms where nothing else is said, by the name that stands in patterns.
CLASSES: Mapping[str, str] = {
    "[a-z]": string.ascii_lowercase,
    "[A-Z]": string.ascii_uppercase,
    "[0-9]": string.digits,
    "[punct]": string.punctuation,
}
BEGIN, END = "<", ">"
_SPECIAL = "[]<>\\"


@dataclass(frozen=True)
class Atom:
    """A set of symbols with a name; bit i of ``members`` says whether symbol i is in it."""

    name: str
    members: int


@dataclass(frozen=True)
class Pattern:
    """Atoms at adjacent places of a word.

    ``<`` is the beginning of a word and stands first if at all; ``>`` is its end and stands last.
    """

    atoms: tuple[Atom, ...]

    @cached_property
    def key(self) -> tuple[int, ...]:
        """What makes two patterns the same: which symbols each place takes."""
        return tuple(atom.members for atom in self.atoms)

    def __len__(self) -> int:
        return len(self.atoms)

    def __str__(self) -> str:
        return "".join(atom.name for atom in self.atoms)


class Alphabet:
    """Characters of words, numbered, with a symbol each for the beginning and the end of a word.

    Parameters
    ----------
    characters
        Each once.
    classes
        Characters by the name of their class, as it stands in patterns: in square brackets. Characters that are not in
        the alphabet are left out, and classes of fewer than two characters or of all of them.

    Examples
    --------
    >>> alphabet = Alphabet("abcXYZ")
    >>> [atom.name for atom in alphabet.atoms]
    ['a', 'b', 'c', 'X', 'Y', 'Z', '[a-z]', '[A-Z]', '<', '>']
    >>> str(alphabet.pattern("<[A-Z]c>")), len(alphabet.pattern("<[A-Z]c>"))
    ('<[A-Z]c>', 4)
    """

    def __init__(self, characters: Iterable[str], classes: Mapping[str, str] = CLASSES) -> None:
        self.characters = "".join(characters)
        n = len(self.characters)
        if not n or len(set(self.characters)) < n:
            raise ModelError("an alphabet needs at least one character, and each once")
        self.code = {c: i for i, c in enumerate(self.characters)}
        self.begin, self.end, self.n_symbols = n, n + 1, n + 2
        atoms = [Atom(f"\\{c}" if c in _SPECIAL else c, 1 << i) for i, c in enumerate(self.characters)]
        for name, members in classes.items():
            if not (len(name) > 2 and name[0] == "[" and name[-1] == "]" and "]" not in name[1:-1]):
                raise ModelError(f"the name of a class of characters stands in square brackets, got {name!r}")
            inside = {self.code[c] for c in members if c in self.code}
            if 1 < len(inside) < n:
                atoms.append(Atom(name, sum(1 << i for i in inside)))
        atoms += [Atom(BEGIN, 1 << self.begin), Atom(END, 1 << self.end)]
        self.atoms = tuple(atoms)
        self.begin_atom, self.end_atom = atoms[-2], atoms[-1]
        self._by_name = {atom.name: atom for atom in atoms}

    @cached_property
    def membership(self) -> npt.NDArray[np.float64]:
        """Entry [a, s] is 1 where symbol s is in atom a."""
        return np.array([self.member(atom) for atom in self.atoms], np.float64)

    def member(self, atom: Atom) -> npt.NDArray[np.bool_]:
        """Which symbols are in an atom."""
        return np.array([atom.members >> s & 1 for s in range(self.n_symbols)], np.bool_)

    def pattern(self, text: str) -> Pattern:
        """A pattern from its text, such as ``"ing>"`` or ``"[a-z][a-z]"``; a backslash makes a character plain."""
        atoms, at = [], 0
        while at < len(text):
            if text[at] == "[":
                width = text.find("]", at) + 1 - at
            else:
                width = 2 if text[at] == "\\" else 1
            name = text[at : at + width] if width > 0 else text[at:]
            atom = self._by_name.get(name)
            if atom is None:
                raise ModelError(f"pattern {text!r}: {name!r} is neither a character nor a class of the alphabet")
            atoms.append(atom)
            at += width
        pattern = Pattern(tuple(atoms))
        if self.begin_atom in pattern.atoms[1:] or self.end_atom in pattern.atoms[:-1]:
            raise ModelError(f"pattern {text!r}: < may only stand first, and > only last")
        if text in {"", BEGIN, END}:
            raise ModelError(f"pattern {text!r} is in every word; it needs a character")
        return pattern
