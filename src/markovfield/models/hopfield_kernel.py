"""Iterated conditional modes on a fully connected network of spins: neuron after neuron takes its likelier state.

Invariant: ``fields`` are ``weights @ states`` plus biases before and after every call; weights are symmetric with a
zero diagonal. The order of visits is the caller's.
"""

from __future__ import annotations

import numpy as np

from markovfield.kernels.compiler import kernel

__all__ = ["update_units"]


@kernel
def update_units(weights, fields, states, order, start, stop):  # type: ignore[no-untyped-def]
    """Visit the neurons ``order[start:stop]``; returns how many changed.

    ``states`` are -1 or +1, or 0 for a neuron that has not been visited yet. ``fields`` are ``weights @ states`` plus
    the biases, and are kept so: a visit costs O(1), a change O(n). A field of zero leaves a state as it is, so the
    energy falls with every change but that of a neuron not visited before, which then becomes -1 (Murphy, below 19.21).
    """
    changed = 0
    for at in range(start, stop):
        unit = order[at]
        now = states[unit]
        new = now
        if fields[unit] > 0.0:
            new = 1.0
        elif fields[unit] < 0.0 or now == 0.0:
            new = -1.0
        if new != now:
            step = new - now
            states[unit] = new
            changed += 1
            # The weights are symmetric: the row that lies together is the column.
            for other in range(len(fields)):
                fields[other] += step * weights[unit, other]
    return np.int64(changed)
