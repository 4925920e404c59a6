"""Minimum probability flow of a restricted Boltzmann machine: value and gradient over single-bit flips.

Invariant: parameters lie as in `divergence_kernel`. With the hidden units summed out, flipping visible unit i changes
the log-probability of a state by a sum over hidden units of log(off + on * exp(+-w)), where on and off are the hidden
unit's probabilities before: exponentials of weights are had once, and a flip costs products. Free to change: how many
rows go side by side, and how many factors are multiplied before a logarithm is taken.
"""

from __future__ import annotations

import math

import numpy as np

from markovfield.kernels.compiler import kernel
from markovfield.kernels.sigmoid import sigmoid

__all__ = ["add_flow"]

_ROWS = 64
# A factor is within exp(+-|w|); products stay in the range of floats as long as those add up to less.
_RANGE = 600.0


@kernel
def _multiply(product, on, off, x, up, down):
    """Multiply the factors of one hidden unit into the products of all rows."""
    more = down - up
    for r in range(len(product)):
        product[r] *= off[r] + on[r] * (up + x[r] * more)


@kernel
def _add_slopes(total, half, x, on, off, up, down):
    """Add to the hidden unit's slopes of all rows; the sum over rows of what its weight to the flipped unit gets."""
    more = down - up
    own = 0.0
    for r in range(len(total)):
        p = on[r] * (up + x[r] * more)
        after = p / (off[r] + p)
        total[r] += half[r] * (after - on[r])
        own += half[r] * (1.0 - 2.0 * x[r]) * after
    return own


@kernel
def _gains(i, parameters, up, down, x, on, off, product, gain):
    """What flipping unit i adds to the log-probability of each row."""
    n_hidden = len(on)
    most = 0.0
    for j in range(n_hidden):
        most = max(most, abs(parameters[i, j]))
    block = n_hidden if most * n_hidden < _RANGE else max(1, int(_RANGE / most))
    for r in range(len(gain)):
        gain[r] = (1.0 - 2.0 * x[i, r]) * parameters[i, n_hidden]
    for first in range(0, n_hidden, block):
        product[:] = 1.0
        for j in range(first, min(first + block, n_hidden)):
            _multiply(product, on[j], off[j], x[i], up[i, j], down[i, j])
        for r in range(len(gain)):
            gain[r] += math.log(product[r])


@kernel
def add_flow(parameters, inner, up, down, rows, weights, order, gradient):
    """Sum over rows of weight times sum over flips of exp of half the gain in log-probability.

    ``inner`` are the weights W by themselves, ``up`` and ``down`` exp(W) and exp(-W); the gradient is added.
    """
    n_visible, n_hidden = up.shape
    slopes = np.empty((n_visible, n_hidden))
    value = 0.0
    for first in range(0, len(order), _ROWS):
        n = min(_ROWS, len(order) - first)
        x, on, off = np.empty((n_visible, n)), np.empty((n_hidden, n)), np.empty((n_hidden, n))
        total, product, gain, half = np.zeros((n_hidden, n)), np.empty(n), np.empty(n), np.empty(n)
        for r in range(n):
            x[:, r] = rows[order[first + r]]
        np.dot(inner.T, x, on)
        for j in range(n_hidden):
            bias = parameters[n_visible, j]
            for r in range(n):
                z = on[j, r] + bias
                on[j, r] = sigmoid(z)
                off[j, r] = sigmoid(-z)
        for i in range(n_visible):
            _gains(i, parameters, up, down, x, on, off, product, gain)
            own = 0.0
            for r in range(n):
                flow = weights[order[first + r]] * math.exp(0.5 * gain[r])
                value += flow
                half[r] = 0.5 * flow
                own += half[r] * (1.0 - 2.0 * x[i, r])
            gradient[i, n_hidden] += own
            for j in range(n_hidden):
                gradient[i, j] += _add_slopes(total[j], half, x[i], on[j], off[j], up[i, j], down[i, j])
        np.dot(x, total.T, slopes)
        for i in range(n_visible):
            for j in range(n_hidden):
                gradient[i, j] += slopes[i, j]
        for j in range(n_hidden):
            gradient[n_visible, j] += total[j].sum()
    return value
