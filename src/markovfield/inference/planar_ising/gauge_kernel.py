"""An assignment of low energy for Ising spins, by annealing: where to count the flips of spins from.

Invariant: none but the arrays: any assignment is right, and one of low energy keeps the digits of the Pfaffian. Free to
change: temperatures and sweeps.
"""

from __future__ import annotations

import numpy as np

from markovfield.kernels.compiler import kernel
from markovfield.kernels.random import draw_unit

__all__ = ["anneal"]


@kernel
def anneal(offsets, neighbours, couplings, spins, stream, hottest, coldest, sweeps):
    """Cool the spins from one temperature to the other, in place, and end where no single flip raises the score.

    The neighbours of spin i are ``neighbours[offsets[i] : offsets[i + 1]]``, with their ``couplings``;
    ``spins float64[n]`` is -1 or +1.
    """
    n = len(spins)
    ratio = (coldest / hottest) ** (1.0 / max(sweeps - 1, 1))
    temperature = hottest
    for sweep in range(sweeps + 50):
        moved = False
        for i in range(n):
            field = 0.0
            for x in range(offsets[i], offsets[i + 1]):
                field += couplings[x] * spins[neighbours[x]]
            gain = -2.0 * field * spins[i]
            if gain > 0.0 or (sweep < sweeps and draw_unit(stream) < np.exp(gain / temperature)):
                spins[i] = -spins[i]
                moved = True
        temperature *= ratio
        if sweep >= sweeps and not moved:
            break
