"""Side chains of proteins as pairwise Markov random fields (Yanover and Weiss), from the reference data."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from markovfield.arrays import IntArray, short_repr
from markovfield.datasets.reference import reference_path
from markovfield.exceptions import ModelError
from markovfield.factors.factor_graph import FactorGraph
from markovfield.io.uai import read_uai
from markovfield.io.uai_results import read_uai_result

__all__ = ["SideChains", "side_chains"]

MODEL, ANSWER = ".uai.gz", ".uai.MAP"


class SideChains(NamedTuple):
    """A protein: its ``name``, its ``model``, and the likeliest ``states``, ``int64[n]``, where they are known.

    A variable is an amino acid of the backbone, a state one of the shapes (rotamers) that its side chain may take.
    """

    name: str
    model: FactorGraph
    states: IntArray | None

    def __repr__(self) -> str:
        return short_repr(self)


def side_chains(names: Iterable[str] | None = None) -> list[SideChains]:
    """Read proteins (Murphy 19.6.2.6) of the UAI 2008 evaluation from the reference data, folder ``protein_sidechain``.

    Parameters
    ----------
    names
        As ``"pdb2erl"``; None for all that are in the folder, by name.

    Examples
    --------
    >>> try:
    ...     proteins = side_chains()
    ... except FileNotFoundError:
    ...     proteins = []
    >>> all(len(protein.states) == protein.model.structure.n_variables for protein in proteins)
    True
    """
    folder = reference_path("protein_sidechain")
    there = sorted(path.name.removesuffix(MODEL) for path in folder.iterdir() if path.name.endswith(MODEL))
    found = []
    for name in there if names is None else names:
        if name not in there:
            raise ModelError(f"side_chains(names=...) finds {', '.join(there) or 'nothing'}, not {name!r}")
        answer = folder / f"{name}{ANSWER}"
        states = read_uai_result(answer).states if answer.is_file() else None
        found.append(SideChains(name, read_uai(folder / f"{name}{MODEL}"), states))
    return found
