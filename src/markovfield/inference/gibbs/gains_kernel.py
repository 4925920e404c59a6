"""Gibbs sweeps in which what every change would gain is kept at hand.

A variable that stays where it is costs its states, whatever its factors; one that moves costs what its factors hold.
"""

from __future__ import annotations

import math

import numpy as np

from markovfield.inference.local_search.local_search_kernel import change
from markovfield.kernels.compiler import kernel
from markovfield.kernels.random import draw_unit

__all__ = ["gain_sweeps"]


@kernel
def gain_sweeps(at, stream, states, totals, soft, hard, sweeps, sums):
    """So many sweeps over all free variables; conditional probabilities are added to ``sums`` unless it is empty."""
    for _ in range(sweeps):
        for v in range(len(states)):
            base, card = at.value_offsets[v], at.cardinalities[v]
            if at.fixed[v]:
                if len(sums):
                    sums[base + states[v]] += 1.0
                continue
            top, total = soft[base], 0.0
            for k in range(1, card):
                top = max(top, soft[base + k])
            for k in range(card):
                total += math.exp(soft[base + k] - top)
            u = draw_unit(stream) * total
            chosen, found = np.int64(0), False
            for k in range(card):
                weight = math.exp(soft[base + k] - top)
                if len(sums):
                    sums[base + k] += weight / total
                if not found and weight > 0.0:
                    chosen, found = np.int64(k), u < weight
                    u -= weight
            if chosen != states[v]:
                change(at, v, chosen, states, totals, soft, hard)
