"""Mini-batches of stochastic maximum likelihood for Boltzmann machines whose units are all joined (Murphy 19.48).

Invariant: a machine is one symmetric matrix ``[n + 1, n + 1]`` with zeros on its diagonal, weights and, as last row and
column, biases: a unit that is always one. States are ``[n + 1, chains]``, so that one unit of all Markov chains lies
together. Free to change: the order in which units are visited.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from markovfield.kernels.compiler import kernel
from markovfield.kernels.random_lanes import draw_words
from markovfield.kernels.sigmoid import sigmoid
from markovfield.learning.boltzmann.divergence_kernel import RATE, SLOWING, UPDATES, update

__all__ = ["Units", "sweep_units", "train_dense"]


class Units(NamedTuple):
    """States, and room for random numbers.

    Attributes
    ----------
    seen
        ``float[n + 1, n_rows]``: visible units as in the data, hidden ones as last drawn.
    free
        ``float[n + 1, chains]``: persistent Markov chains.
    field
        Room for one unit of all chains.
    words, state
        Random bits, as many as units of all chains need, and the generator's lanes.
    """

    seen: Any
    free: Any
    field: Any
    words: Any
    state: Any


@kernel
def sweep_units(parameters, states, field, first, last, words, state, shift, top):
    """Draw units ``first`` to ``last``, one after the other, given all others."""
    chains = states.shape[1]
    draw_words(state, words, ((last - first) * chains + 1) // 2)
    halves = words.view(np.uint32)
    at = 0
    for s in range(first, last):
        np.dot(parameters[s], states, field)
        unit = states[s]
        for c in range(chains):
            field[c] = sigmoid(field[c]) * top
        for c in range(chains):
            unit[c] = 1.0 if np.int32(halves[at + c] >> shift) < field[c] else 0.0
        at += chains


@kernel
def _add_products(states, weights, gradient, product):
    """Add the sum over chains of each pair of units, weighted."""
    scaled = np.empty_like(states)
    for s in range(len(states)):
        for c in range(states.shape[1]):
            scaled[s, c] = states[s, c] * weights[c]
    np.dot(scaled, states.T, product)
    for s in range(len(states)):
        for t in range(len(states)):
            gradient[s, t] += product[s, t]


@kernel
def train_dense(units, weights, order, batch, n_visible, machine, product, steering, scalars, sweeps, shift):
    """Go through the rows in the order given, ``batch`` at a time, and update after each.

    ``scalars`` are of the type of the parameters; the last is 2 to the power 32 - ``shift``.
    """
    parameters, gradient, free = machine.parameters, machine.gradient, units.free
    n, m = len(parameters) - 1, free.shape[1]
    top = scalars[3]
    share = np.empty(max(batch, m), parameters.dtype)
    for first in range(0, len(order), batch):
        size = min(batch, len(order) - first)
        clamped = np.empty((n + 1, size), parameters.dtype)
        for r in range(size):
            clamped[:, r] = units.seen[:, order[first + r]]
        for _ in range(sweeps):
            sweep_units(parameters, clamped, units.field[:size], n_visible, n, units.words, units.state, shift, top)
            sweep_units(parameters, free, units.field[:m], 0, n, units.words, units.state, shift, top)
        rate = steering[RATE] / (1.0 + steering[SLOWING] * steering[UPDATES])
        for r in range(size):
            units.seen[:, order[first + r]] = clamped[:, r]
            share[r] = rate * weights[order[first + r]] / size
        gradient[:] = 0.0
        _add_products(clamped, share, gradient, product)
        share[:m] = -rate / m
        _add_products(free, share, gradient, product)
        # Products of matrices are symmetric up to rounding only: either half will do, as long as both agree.
        for s in range(n + 1):
            gradient[s, s] = 0.0
            for t in range(s):
                gradient[t, s] = gradient[s, t]
        update(machine, steering, scalars)
