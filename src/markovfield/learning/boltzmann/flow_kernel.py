"""Minimum probability flow of a restricted Boltzmann machine: value and gradient over single-bit flips.

Invariant: parameters lie as in `divergence_kernel`. With the hidden units summed out, flipping visible unit i changes
the log-probability of a state by a sum over hidden units of log(off + on * exp(+-w)), where on and off are the hidden
unit's probabilities before: exponentials of weights are had once, and a flip costs products. Free to change: how many
factors are multiplied before a logarithm is taken.
"""

from __future__ import annotations

import math

from markovfield.kernels.compiler import kernel
from markovfield.kernels.sigmoid import sigmoid

__all__ = ["add_flow"]

_BLOCK = 16
_LEAST, _MOST = 1e-150, 1e150


@kernel
def _log_product(on, off, powers):
    """The log of the product of off + on * powers, which may be far outside the range of floats."""
    total, product = 0.0, 1.0
    for first in range(0, len(on), _BLOCK):
        part = 1.0
        for j in range(first, min(first + _BLOCK, len(on))):
            part *= off[j] + on[j] * powers[j]
        product *= part
        if not _LEAST < product < _MOST:
            total += math.log(product)
            product = 1.0
    return total + math.log(product)


@kernel
def add_flow(parameters, up, down, rows, weights, order, scratch, gradient):
    """Sum over rows of weight times sum over flips of exp of half the gain in log-probability.

    ``up`` and ``down`` are exp(W) and exp(-W), ``scratch`` is ``float64[3, n_hidden]``; the gradient is added.
    """
    n_visible, n_hidden = up.shape
    on, off, total = scratch[0], scratch[1], scratch[2]
    biases = gradient[n_visible]
    value = 0.0
    for r in order:
        row = rows[r]
        on[:] = parameters[n_visible, :n_hidden]
        for i in range(n_visible):
            if row[i] > 0.5:
                w = parameters[i]
                for j in range(n_hidden):
                    on[j] += w[j]
        for j in range(n_hidden):
            z = on[j]
            on[j] = sigmoid(z)
            off[j] = sigmoid(-z)
            total[j] = 0.0
        for i in range(n_visible):
            sign = 1.0 if row[i] < 0.5 else -1.0
            powers = up[i] if sign > 0.0 else down[i]
            gain = sign * parameters[i, n_hidden] + _log_product(on, off, powers)
            flow = weights[r] * math.exp(0.5 * gain)
            value += flow
            half = 0.5 * flow
            own = gradient[i]
            own[n_hidden] += half * sign
            for j in range(n_hidden):
                p = on[j] * powers[j]
                after = p / (off[j] + p)
                total[j] += half * (after - on[j])
                own[j] += half * sign * after
        for i in range(n_visible):
            if row[i] > 0.5:
                own = gradient[i]
                for j in range(n_hidden):
                    own[j] += total[j]
        for j in range(n_hidden):
            biases[j] += total[j]
    return value
