"""Evidence as likelihoods of variables' states: entering observed states, and going to linear space.

Invariant: flat over all states, -1 for a variable that is not observed; what was taken out of the likelihoods is
returned, so that log Z stays exact.
"""

from __future__ import annotations

import math

import numpy as np

from markovfield.kernels.compiler import kernel
from markovfield.kernels.exponential import exp_scalar

__all__ = ["enter_states", "scale_likelihoods"]

LOWEST = -650.0
"""A log-likelihood this far below the variable's largest is lost in linear space."""


@kernel
def enter_states(states, value_offsets, likelihood, active):
    """Rule out, in a log-likelihood over all states, every state but the observed one; -1 is not observed.

    A state of -2 is one that hard zeros exclude: everything is ruled out. Returns whether every variable with a
    likelihood still has a possible state.
    """
    possible = True
    for v in range(len(states)):
        start, stop = value_offsets[v], value_offsets[v + 1]
        if states[v] != -1:
            active[v] = True
            for i in range(start, stop):
                if i - start != states[v]:
                    likelihood[i] = -np.inf
        if active[v]:
            top = -np.inf
            for i in range(start, stop):
                top = max(top, likelihood[i])
            possible = possible and top > -np.inf
    return possible


@kernel
def scale_likelihoods(likelihood, value_offsets, active, linear, low):
    """Likelihoods in linear space, each variable's largest one; log2 of each variable's smallest positive one.

    Returns the log of what was taken out of them all, -inf when a variable has no possible state, and whether every
    supported state survived.
    """
    taken, safe = 0.0, True
    for v in range(len(active)):
        start, stop = value_offsets[v], value_offsets[v + 1]
        if not active[v]:
            for i in range(start, stop):
                linear[i] = 1.0
            continue
        top, bottom = -np.inf, np.inf
        for i in range(start, stop):
            top = max(top, likelihood[i])
            if likelihood[i] > -np.inf:
                bottom = min(bottom, likelihood[i])
        if top == -np.inf:
            return -np.inf, safe
        taken += top
        safe = safe and bottom - top > LOWEST
        low[v] = (bottom - top) / math.log(2.0)
        for i in range(start, stop):
            linear[i] = exp_scalar(likelihood[i] - top)
    return taken, safe
