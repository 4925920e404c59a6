"""What models of one variable for each site of a lattice or graph have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from markovfield.arrays import FloatArray, IntArray
from markovfield.exceptions import ModelError
from markovfield.factors.factor_graph import FactorGraph
from markovfield.frames import Drawn
from markovfield.models._sites import Sites
from markovfield.names import Names, VariableName

__all__ = ["SiteModel"]

# What `compile` has read, or will: changed later it would be ignored.
FIXED = ("coupling", "edge_couplings", "field", "spins")


class SiteModel(Drawn, ABC):
    """Sites, and a number for each edge between them; what a state means is left to the model."""

    _sites: Sites
    _compiled: FactorGraph | None
    coupling: Any
    edge_couplings: FloatArray
    field: Any

    def __setattr__(self, name: str, value: Any) -> None:
        if name in FIXED and name in vars(self):
            made = type(self).__name__
            given = "coupling" if name == "edge_couplings" else name
            raise ModelError(f"{name} of {made} is fixed once the model is made: write {made}(..., {given}=...) anew")
        super().__setattr__(name, value)

    def _told(self) -> str:
        sites = f"{self.n_variables} sites" if self.shape is None else f"{' x '.join(map(str, self.shape))} sites"
        return f"{sites}, {len(self.edges)} edges"

    def _count_states(self, position: int) -> int:
        return self.n_states

    def _current_names(self) -> Names:
        return self._sites.names

    @property
    def shape(self) -> tuple[int, ...] | None:
        """Lengths of the lattice; None for other graphs."""
        return self._sites.shape

    @property
    def periodic(self) -> tuple[bool, ...]:
        """For each axis of the lattice whether its ends are neighbours; empty for other graphs."""
        return self._sites.periodic

    @property
    def variables(self) -> Sequence[VariableName]:
        """Names of the sites in position order."""
        return self._sites.variables

    @property
    def n_variables(self) -> int:
        """Number of sites."""
        return self._sites.n

    @property
    @abstractmethod
    def n_states(self) -> int:
        """Number of states of each site."""

    @property
    def edges(self) -> IntArray:
        """``int64[m, 2]``: positions of the sites that each edge joins; along the first axis of a lattice first."""
        return self._sites.edges

    def site(self, *indices: int) -> VariableName:
        """The name of the site at these indices of the lattice."""
        if self.shape is None:
            raise ModelError(f"site(...) takes indices of a lattice, and this {type(self).__name__} is on a graph")
        return self.variables[self._sites.position(indices, type(self).__name__)]

    @abstractmethod
    def compile(self) -> FactorGraph:
        """Freeze into a `FactorGraph`, once."""
