"""Precisions of lattices, the same for us and for the peers; NumPy and SciPy only, as workers import it too."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

__all__ = ["lattice"]


def lattice(side: int, kind: str) -> Any:
    """``"car"``: Laplacian of a square lattice and 0.01 on the diagonal; ``"spde"``: (Laplacian + 0.1)^2."""
    degree = np.full(side, 2.0)
    degree[[0, -1]] = 1.0
    off = -np.ones(side - 1)
    path = sparse.diags([off, degree, off], [-1, 0, 1])
    one = sparse.identity(side)
    found = sparse.kron(path, one) + sparse.kron(one, path)
    found = found + (0.01 if kind == "car" else 0.1) * sparse.identity(side * side)
    found = sparse.csc_matrix(found @ found if kind == "spde" else found)
    found.eliminate_zeros()
    found.sort_indices()
    return found
