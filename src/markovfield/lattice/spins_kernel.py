"""Ising models on lattices of one to three axes, any couplings and fields: checkerboard heat-bath and Metropolis.

A lattice is ``layers x rows x columns``, with a side of one for axes that it lacks; sites are in row order. Every axis
is treated as periodic: where it is free, the coupling from its last site to its first is zero.
"""

from __future__ import annotations

import numpy as np

from markovfield.inference.gibbs.single_site_kernel import WILLING
from markovfield.kernels.compiler import kernel
from markovfield.kernels.exponential import exp_scalar
from markovfield.lattice.random_kernel import UNIT, fill_words

__all__ = ["advance_spins"]

_ELEVEN = np.uint64(11)
# exp stays finite, and a probability of exp(-700) is never met.
_MOST = 700.0


@kernel
def _pull_across(spins, couplings, field, row, up, down, pull):
    """What the layers before and after add to the field of a row's sites."""
    n = len(pull)
    above, below, own = spins[up : up + n], spins[down : down + n], field[row : row + n]
    weight, weight_above = couplings[0, row : row + n], couplings[0, up : up + n]
    for k in range(n):
        pull[k] = own[k] + weight[k] * below[k] + weight_above[k] * above[k]


@kernel
def _pull_rows(spins, couplings, row, before, after, pull):
    """What the rows before and after in the same layer add."""
    n = len(pull)
    above, below = spins[before : before + n], spins[after : after + n]
    weight, weight_above = couplings[1, row : row + n], couplings[1, before : before + n]
    for k in range(n):
        pull[k] += weight[k] * below[k] + weight_above[k] * above[k]


@kernel
def _pull_along(spins, couplings, row, pull):
    """What the neighbours in the row itself add."""
    n = len(pull)
    own, weight = spins[row : row + n], couplings[2, row : row + n]
    for k in range(1, n - 1):
        pull[k] += weight[k] * own[k + 1] + weight[k - 1] * own[k - 1]
    pull[0] += weight[0] * own[min(1, n - 1)] + weight[n - 1] * own[n - 1]
    if n > 1:
        pull[n - 1] += weight[n - 1] * own[0] + weight[n - 2] * own[n - 2]


@kernel
def _flip(spins, row, start, pull, words, ratio, sign, metropolis):
    """Update every other site of a row: flip with probability r / (1 + r), or `WILLING` min(1, r), r being its odds."""
    n = (len(pull) - start + 1) // 2
    own = spins[row : row + len(pull)]
    most, rest, willing = (0.0, 0.0, WILLING) if metropolis else (_MOST, 1.0, 1.0)
    # One thing to a loop, so that all but those over every other site run in vectors.
    for q in range(n):
        ratio[q] = -2.0 * own[start + 2 * q] * pull[start + 2 * q]
    for q in range(n):
        ratio[q] = exp_scalar(min(ratio[q], most))
    for q in range(n):
        u = np.float64(words[q] >> _ELEVEN) * UNIT
        sign[q] = -1 if u * (1.0 + rest * ratio[q]) < willing * ratio[q] else 1
    for q in range(n):
        own[start + 2 * q] *= sign[q]


@kernel
def _score(spins, field, row, start, pull):
    """Log-potentials of a row: all pairs of every other site, and the fields of all."""
    own, fields = spins[row : row + len(pull)], field[row : row + len(pull)]
    total, net = 0.0, 0
    for k in range(len(pull)):
        total += own[k] * fields[k]
        net += own[k]
    for k in range(start, len(pull), 2):
        total += own[k] * (pull[k] - fields[k])
    return total, net


@kernel
def advance_spins(spins, shape, couplings, field, streams, metropolis, span, every, scores, nets):
    """Update layers for some half-sweeps, first colour first.

    Parameters
    ----------
    spins
        ``int8[n]``, -1 or +1.
    couplings
        ``float64[3, n]``: along each axis, from a site to the next.
    field
        ``float64[n]``.
    streams
        ``uint64[layers, 4, lanes]``.
    span
        First and last layer at the first half-sweep, what each grows by with every half-sweep, how many half-sweeps,
        and sweeps already made of those that ``scores`` are for.
    every, scores, nets
        ``float64[measurements, layers]`` and ``int64[measurements, layers]``: log-potentials and sums of spins.
    """
    layers, rows, n = shape[0], shape[1], shape[2]
    lanes = streams.shape[2]
    words = np.empty(-(-((n + 1) // 2) // lanes) * lanes, np.uint64)
    pull, ratio, sign = np.empty(n), np.empty((n + 1) // 2), np.empty((n + 1) // 2, np.int8)
    for step in range(span[4]):
        colour, sweep = step & 1, span[5] + (step >> 1) + 1
        for layer in range(span[0] + step * span[2], span[1] + step * span[3]):
            g = layer % layers
            before, after = (g - 1) % layers * rows * n, (g + 1) % layers * rows * n
            total, net = 0.0, 0
            for j in range(rows):
                row, start = (g * rows + j) * n, (g + j + colour) & 1
                _pull_across(spins, couplings, field, row, before + j * n, after + j * n, pull)
                if rows > 1:
                    first = g * rows
                    _pull_rows(spins, couplings, row, (first + (j - 1) % rows) * n, (first + (j + 1) % rows) * n, pull)
                _pull_along(spins, couplings, row, pull)
                fill_words(streams, g, words, (n - start + 1) // 2)
                _flip(spins, row, start, pull, words, ratio, sign, metropolis)
                if colour and sweep % every == 0:
                    more, up = _score(spins, field, row, start, pull)
                    total += more
                    net += up
            if colour and sweep % every == 0:
                scores[sweep // every - 1, g], nets[sweep // every - 1, g] = total, net
