"""Names of the sites of a lattice: numbers in row order, and indices such as ``(3, 4)``, without a table of either."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from markovfield.names import Names

__all__ = ["GridNames"]


@dataclass(frozen=True, eq=False)
class GridNames(Names):
    """Sites 0, 1, ... of a lattice in row order (last axis fastest), which are also called by their indices.

    Examples
    --------
    >>> names = GridNames(range(6), shape=(2, 3))
    >>> names.position((1, 0)), names.position(3), (2, 0) in names
    (3, 3, False)
    """

    shape: tuple[int, ...] = ()

    def _find(self, variable: Any) -> int | None:
        if not isinstance(variable, tuple):
            return super()._find(variable)
        if len(variable) != len(self.shape):
            return None
        at = 0
        for i, length in zip(variable, self.shape, strict=True):
            if not isinstance(i, (int, np.integer)) or isinstance(i, bool) or not 0 <= i < length:
                return None
            at = at * length + int(i)
        return at

    def _unknown_variable(self, variable: object) -> str:
        if isinstance(variable, tuple):
            return f"there is no site {variable!r} in a lattice of shape {self.shape}"
        return super()._unknown_variable(variable)
