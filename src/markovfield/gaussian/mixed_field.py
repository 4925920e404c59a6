"""Fields of discrete and real-valued variables: the compiled form of conditional Gaussian models."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from markovfield.arrays import FloatArray, Frozen, IntArray
from markovfield.exceptions import ModelError
from markovfield.frames import Drawn
from markovfield.names import Names, VariableName

__all__ = ["CanonicalFactor", "MixedField"]


@dataclass(frozen=True, eq=False)
class CanonicalFactor(Frozen):
    """``exp(g(d) + h(d).x - x.K(d).x / 2)`` for each configuration d of its discrete variables (Lauritzen 1992).

    Attributes
    ----------
    discrete, continuous
        Positions of variables, in the order of the axes.
    constant, linear, precision
        g ``float64[cards]``, h ``float64[cards, c]`` and K ``float64[cards, c, c]``; -inf in g is impossible.
    child
        The variable that the factor is a conditional distribution of, or -1.
    """

    discrete: tuple[int, ...]
    continuous: tuple[int, ...]
    constant: FloatArray
    linear: FloatArray
    precision: FloatArray
    child: int = -1

    @property
    def scope(self) -> tuple[int, ...]:
        """All its variables."""
        return self.discrete + self.continuous


@dataclass(frozen=True, eq=False, repr=False)
class MixedField(Frozen, Drawn):
    """Factors over discrete and real-valued variables; given the discrete ones, the others are Gaussian.

    Attributes
    ----------
    names
        Names of variables and of states.
    cardinalities
        ``int64[n]``: states of each variable, 0 for real-valued ones.
    factors
        In canonical form.
    """

    names: Names
    cardinalities: IntArray
    factors: tuple[CanonicalFactor, ...]

    answered_by: ClassVar[str] = "markovfield.inference.strong_junction_tree.verbs"

    def _current_names(self) -> Names:
        return self.names

    def _count_states(self, position: int) -> int:
        return int(self.cardinalities[position])

    @property
    def variables(self) -> Sequence[VariableName]:
        """Variable names in position order."""
        return self.names.variables

    @property
    def n_variables(self) -> int:
        """Number of variables."""
        return len(self.cardinalities)

    def is_discrete(self, variable: VariableName) -> bool:
        """Whether a variable has states."""
        return bool(self.cardinalities[self.names.position(variable)])

    def states(self, variable: VariableName) -> tuple[object, ...]:
        """State names of a discrete variable."""
        at = self.names.position(variable)
        if not self.cardinalities[at]:
            raise ModelError(f"variable {variable!r} is real-valued and has no states")
        return tuple(self.names.state_names(at, int(self.cardinalities[at])))

    def __repr__(self) -> str:
        discrete = int(np.count_nonzero(self.cardinalities))
        return f"MixedField({discrete} discrete and {self.n_variables - discrete} real-valued variables)"
