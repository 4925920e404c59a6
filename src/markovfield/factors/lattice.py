"""The lattice whose sites the variables of a structure are, as the model says that made it.

A model that knows its lattice tells its structure so; structures made from that one whose variables stay where they are
inherit it. Whoever asks is told nothing of other structures, and looks at the positions of their pairs.
"""

from __future__ import annotations

from typing import NamedTuple

from markovfield.factors.remembered import Told
from markovfield.factors.structure import Structure

__all__ = ["Lattice", "inherit_lattice", "lattice_of", "tell_lattice"]


class Lattice(NamedTuple):
    """A lattice whose sites are numbered row by row, last axis fastest.

    Attributes
    ----------
    shape
        Its lengths.
    periodic
        For each axis, whether its ends are neighbours.
    """

    shape: tuple[int, ...]
    periodic: tuple[bool, ...]

    @property
    def rectangle(self) -> tuple[int, int] | None:
        """Height and width, where it is a rectangle of two rows and two columns or more, not periodic; else None."""
        lengths = [length for length in self.shape if length > 1]
        return (lengths[0], lengths[1]) if len(lengths) == 2 and not any(self.periodic) else None


_LATTICE: Told[Lattice] = Told()


def tell_lattice(structure: Structure, shape: tuple[int, ...], periodic: tuple[bool, ...]) -> None:
    """Say of a new structure that its variables are the sites of a lattice, and its pairs the neighbours.

    Examples
    --------
    >>> import markovfield as mf
    >>> lattice_of(mf.Ising((2, 3)).compile().structure)
    Lattice(shape=(2, 3), periodic=(False, False))
    """
    _LATTICE.tell(structure, Lattice(shape, periodic))


def lattice_of(structure: Structure) -> Lattice | None:
    """The lattice of a structure, where its model told one. Of its pairs, evidence may have taken some away."""
    return _LATTICE.of(structure)


def inherit_lattice(structure: Structure, origin: Structure) -> Structure:
    """The structure, which has the variables of the other and its pairs or some of them, with the same lattice."""
    found = _LATTICE.of(origin)
    if found is not None and structure is not origin and structure.n_variables == origin.n_variables:
        _LATTICE.tell(structure, found)
    return structure
