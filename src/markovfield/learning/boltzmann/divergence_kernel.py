"""Mini-batches of contrastive divergence and stochastic maximum likelihood for restricted Boltzmann machines.

Invariant: a machine is one matrix ``[n_visible + 1, n_hidden + 1]``, the weights with the visible biases as last column
and the hidden biases as last row, so that layers whose last unit is always one have their biases in the same product;
the last entry of all is zero and means nothing. Free to change: the order in which random numbers are used.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from markovfield.kernels.compiler import kernel
from markovfield.kernels.random_lanes import draw_words
from markovfield.kernels.sigmoid import sigmoid

__all__ = [
    "AVERAGED",
    "DECAY",
    "FROM",
    "MOMENTUM",
    "RATE",
    "SLOWING",
    "UPDATES",
    "Layers",
    "Machine",
    "train_batches",
    "update",
]

# Places of the numbers that steer: the learning rate, what each update adds to its divisor, momentum, the penalty over
# rows, updates so far, the update that averaging begins after, how many were averaged.
RATE, SLOWING, MOMENTUM, DECAY, UPDATES, FROM, AVERAGED = range(7)


class Machine(NamedTuple):
    """Parameters and what follows them, each ``float[n_visible + 1, n_hidden + 1]``."""

    parameters: Any
    velocity: Any
    average: Any
    gradient: Any


class Layers(NamedTuple):
    """Units of a mini-batch: the Markov chains first, then the rows of data.

    Attributes
    ----------
    visible, hidden
        ``float[chains + batch, n_visible + 1]`` and ``float[chains + batch, n_hidden + 1]``; last column one.
    chains
        ``float[chains, n_hidden + 1]``: hidden units that persist.
    uniforms
        Random whole numbers from 0 to ``top`` as floats, as many as a layer of the chains has units.
    words, state
        Random bits, and the generator's lanes.
    """

    visible: Any
    hidden: Any
    chains: Any
    uniforms: Any
    words: Any
    state: Any


@kernel
def _draw(probabilities, out, layers, shift, top):
    """Units of one with the probabilities given; the last of each row is always one."""
    rows, width = probabilities.shape
    n = rows * width
    draw_words(layers.state, layers.words, (n + 1) // 2)
    halves = layers.words.view(np.uint32)
    uniforms = layers.uniforms
    for i in range(n):
        uniforms[i] = np.int32(halves[i] >> shift)
    for r in range(rows):
        p, o, u = probabilities[r], out[r], uniforms[r * width : (r + 1) * width]
        for j in range(width - 1):
            o[j] = 1.0 if u[j] < p[j] * top else 0.0
        o[width - 1] = 1.0


@kernel
def _squash(layer):
    rows, width = layer.shape
    for r in range(rows):
        row = layer[r]
        for j in range(width - 1):
            row[j] = sigmoid(row[j])
        row[width - 1] = 1.0


@kernel
def update(machine, steering, scalars):
    """Add the gradient, which has the learning rate in it already, to what went on; average where it is time to."""
    parameters, velocity, average, gradient = machine
    n_visible, n_hidden = parameters.shape[0] - 1, parameters.shape[1] - 1
    scalars[0] = steering[MOMENTUM]
    scalars[1] = steering[DECAY] * steering[RATE] / (1.0 + steering[SLOWING] * steering[UPDATES])
    momentum, decay = scalars[0], scalars[1]
    steering[UPDATES] += 1.0
    gradient[n_visible, n_hidden] = 0.0
    for i in range(n_visible + 1):
        p, v, g = parameters[i], velocity[i], gradient[i]
        if decay != 0.0 and i < n_visible:
            for j in range(n_hidden):
                g[j] -= decay * p[j]
        if momentum != 0.0:
            for j in range(n_hidden + 1):
                v[j] = momentum * v[j] + g[j]
                p[j] += v[j]
        else:
            for j in range(n_hidden + 1):
                p[j] += g[j]
    if steering[UPDATES] > steering[FROM]:
        steering[AVERAGED] += 1.0
        scalars[2] = 1.0 / steering[AVERAGED]
        share = scalars[2]
        for i in range(n_visible + 1):
            p, a = parameters[i], average[i]
            for j in range(n_hidden + 1):
                a[j] += share * (p[j] - a[j])


@kernel
def train_batches(rows, weights, order, batch, machine, layers, steering, scalars, k, persistent, shift):
    """Go through the rows in the order given, ``batch`` at a time, and update after each.

    ``scalars`` are of the type of the parameters, to compute in it; the last is 2 to the power 32 - ``shift``.
    """
    parameters, gradient = machine.parameters, machine.gradient
    n_visible, n_hidden = parameters.shape[0] - 1, parameters.shape[1] - 1
    top = scalars[3]
    for first in range(0, len(order), batch):
        n = min(batch, len(order) - first)
        m = len(layers.chains) if persistent else n
        visible, hidden, chains = layers.visible[: m + n], layers.hidden[: m + n], layers.chains[:m]
        for r in range(n):
            visible[m + r, :n_visible] = rows[order[first + r]]
            visible[m + r, n_visible] = 1.0
        np.dot(visible[m:], parameters, hidden[m:])
        _squash(hidden[m:])
        if not persistent:
            _draw(hidden[m:], chains, layers, shift, top)
        for step in range(k):
            if step:
                _draw(hidden[:m], chains, layers, shift, top)
            np.dot(chains, parameters.T, visible[:m])
            _squash(visible[:m])
            _draw(visible[:m], visible[:m], layers, shift, top)
            np.dot(visible[:m], parameters, hidden[:m])
            _squash(hidden[:m])
        if persistent:
            _draw(hidden[:m], chains, layers, shift, top)
        rate = steering[RATE] / (1.0 + steering[SLOWING] * steering[UPDATES])
        for r in range(m + n):
            scalars[0] = -rate / m if r < m else rate * weights[order[first + r - m]] / n
            scale, row = scalars[0], hidden[r]
            for j in range(n_hidden + 1):
                row[j] *= scale
        np.dot(visible.T, hidden, gradient)
        update(machine, steering, scalars)
