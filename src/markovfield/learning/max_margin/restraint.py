"""What is asked of weights beside their squares: an l1 penalty, and that some are not negative.

Both have a dual that is a vector of *prices* within a box. With v for what masses of planes make, the least of
``1/2 |w|^2 - <w, v> + sum_j l1_j |w_j|``, w_j being at least 0 where that is asked for, is at ``w = v + prices``. The
prices are -v as far as the box allows: from -l1 to l1, or to infinity. So the dual of the whole is ``sum of mass times
loss - 1/2 |v + prices|^2``: for ascent over blocks, the prices are one block more.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from markovfield.arrays import FloatArray

__all__ = ["Restraint"]


class Restraint(NamedTuple):
    """An l1 penalty on weights, and which of them are at least 0.

    Attributes
    ----------
    l1
        ``float64[n_weights]``: what a unit of each costs.
    nonnegative
        ``bool[n_weights]``.

    Examples
    --------
    >>> restraint = Restraint(np.array([0.5, 0.5, 0.0]), np.array([False, False, True]))
    >>> (restraint.prices(np.array([2.0, 0.2, -1.0])) + [2.0, 0.2, -1.0]).tolist()
    [1.5, 0.0, 0.0]
    """

    l1: FloatArray
    nonnegative: npt.NDArray[np.bool_]

    @classmethod
    def of(cls, l1: float, n_weights: int) -> Restraint | None:
        """One l1 for all weights; None where it is 0."""
        return cls(np.full(n_weights, l1), np.zeros(n_weights, np.bool_)) if l1 else None

    def prices(self, v: FloatArray) -> FloatArray:
        """What is added to what masses make."""
        return np.clip(-v, -self.l1, np.where(self.nonnegative, np.inf, self.l1))

    def cost(self, w: FloatArray) -> float:
        """What weights cost beside their squares."""
        return float(self.l1 @ np.abs(w))
