"""Sums and best paths of hidden Markov models over ragged sequences (Murphy 17.4), in scaled linear space.

Token t sees row ``rows[t]`` of a table of potentials, ``width`` entries for each row: the probabilities of what was
observed given each state, divided by their largest. Categorical observations share rows, one for each symbol; others
have a row for each token. Padding states have a potential of zero. ``known[t]`` is a state that is given, or -1; the
vector is empty where none is.

Messages that become too small are dropped by the machine. The sums are trusted only where that cannot matter: no step
may lose more than a factor of `LEAST_MASS`, and no backward message may exceed `LARGEST`, so that whatever was dropped
below 1e-300 is still nothing when the backward message has multiplied it. Otherwise the answer is nan, and the caller
goes on in log space.
"""

from __future__ import annotations

import math

import numpy as np

from markovfield.kernels.compiler import kernel
from markovfield.kernels.exponential import exp_scalar
from markovfield.kernels.products import TILE, add_outer_tile, dots_block
from markovfield.kernels.simd import BLOCK, add_block, add_dots_block
from markovfield.sequence.chain.paths_kernel import best_path

__all__ = ["gaussian_moments", "gaussian_scores", "hidden_paths", "hidden_posteriors", "hidden_sums", "scale_rows"]

LEAST_MASS, LARGEST = 1e-80, 1e200
# Steps whose expected moves are added up together, while they are still in the nearest cache.
CHUNK = 64


@kernel
def _forward(rows, known, a, b, n_states, width, table, start, transitions, forward):
    """Forward messages of one sequence and the log of their total, or nan.

    A message is scaled by the total of the one before it, so that no step waits for its own sum.
    """
    total, product, inverse = 0.0, 1.0, 1.0
    for i in range(b - a):
        at, base = i * width, np.int64(rows[a + i]) * width
        if i == 0:
            for k in range(width):
                forward[k] = start[k] * table[base + k]
        else:
            for k in range(0, width, BLOCK):
                dots_block(forward, at + k, forward, at - width, transitions, k, width, n_states)
            for k in range(width):
                forward[at + k] *= table[base + k] * inverse
        if len(known) and known[a + i] >= 0:
            for k in range(n_states):
                if k != known[a + i]:
                    forward[at + k] = 0.0
        mass = 0.0
        for k in range(width):
            mass += forward[at + k]
        if not mass > LEAST_MASS:
            return np.nan
        product *= mass
        if product < 1e-200:
            total += math.log(product)
            product = 1.0
        inverse = 1.0 / mass
    return total + math.log(product)


@kernel
def _backward(rows, known, a, b, n_states, width, table, transposed, forward, moves):
    """Turn forward messages into posteriors, and add the outer products of neighbours to ``moves``.

    The expected moves are these times the transition probabilities. False where a message leaves the safe range.
    """
    n = b - a
    incoming = np.empty((CHUNK + 1) * width)  # of tokens low + 1 to high: potential times backward message
    posteriors = np.empty(CHUNK * width)
    backward = np.empty(width)
    last = (n - 1) * width
    mass = 0.0
    for k in range(width):
        mass += forward[last + k]
    inverse = 1.0 / mass
    base = np.int64(rows[b - 1]) * width
    for k in range(width):
        incoming[CHUNK * width + k] = table[base + k] * inverse
        forward[last + k] *= inverse
    if len(known) and known[b - 1] >= 0:
        for k in range(n_states):
            if k != known[b - 1]:
                incoming[CHUNK * width + k] = 0.0
    high = n - 1
    while high > 0:
        low = max(high - CHUNK, 0)
        # What comes in to token i lies at ``(i - high + CHUNK) * width``, so that token ``high`` is always the last.
        for i in range(high - 1, low - 1, -1):
            at, to = i * width, (i + 1 - high + CHUNK) * width
            for k in range(0, width, BLOCK):
                dots_block(backward, k, incoming, to, transposed, k, width, n_states)
            mass = 0.0
            largest = 0.0
            for k in range(width):
                mass += forward[at + k] * backward[k]
                largest = max(largest, backward[k])
            if not (mass > LEAST_MASS and largest < LARGEST * mass):
                return False
            inverse = 1.0 / mass
            base, own = np.int64(rows[a + i]) * width, (i - low) * width
            for k in range(width):
                incoming[to + k] *= inverse
                backward[k] *= inverse
            for k in range(width):
                posteriors[own + k] = forward[at + k] * backward[k]
                incoming[to - width + k] = table[base + k] * backward[k]
            if len(known) and known[a + i] >= 0:
                for k in range(n_states):
                    if k != known[a + i]:
                        incoming[to - width + k] = 0.0
        steps = high - low
        first = (CHUNK + 1 - steps) * width
        for k in range(0, n_states, TILE):
            for j in range(0, width, BLOCK):
                add_outer_tile(
                    moves, k * width + j, width, forward, low * width + k, width, incoming, first + j, width, steps
                )
        for i in range(steps * width):
            forward[low * width + i] = posteriors[i]
        for k in range(width):
            incoming[CHUNK * width + k] = incoming[(CHUNK - steps) * width + k]
        high = low
    return True


@kernel
def hidden_sums(
    rows, known, offsets, first, last, n_states, width, table, start, transitions, transposed, both_ways, forward,
    log_likelihoods, start_counts, move_counts, row_counts,
):  # fmt: skip
    """Log-likelihoods of sequences ``first`` to ``last`` (nan where they left the safe range) and expected counts.

    Without ``both_ways`` only forward messages are sent and nothing is counted. ``row_counts``, laid out as the table,
    may be empty. ``move_counts`` lack the factor of the transition probabilities. ``forward`` is scratch for the
    longest sequence.
    """
    moves = np.zeros(width * width)
    for s in range(first, last):
        a, b = offsets[s], offsets[s + 1]
        log_likelihoods[s] = 0.0
        if a == b:
            continue
        log_likelihoods[s] = _forward(rows, known, a, b, n_states, width, table, start, transitions, forward)
        if math.isnan(log_likelihoods[s]) or not both_ways:
            continue
        for k in range(width * width):
            moves[k] = 0.0
        if not _backward(rows, known, a, b, n_states, width, table, transposed, forward, moves):
            log_likelihoods[s] = np.nan
            continue
        for k in range(width):
            start_counts[k] += forward[k]
        for k in range(width * width):
            move_counts[k] += moves[k]
        if len(row_counts):
            for t in range(a, b):
                base = np.int64(rows[t]) * width
                for k in range(0, width, BLOCK):
                    add_block(row_counts, base + k, 1.0, forward, (t - a) * width + k)


@kernel
def hidden_posteriors(
    rows, known, offsets, first, last, n_states, width, table, start, transitions, transposed, forward,
    log_likelihoods, posteriors,
):  # fmt: skip
    """Posteriors of each token's states, ``posteriors[t * n_states + k]``; log-likelihoods are nan where unsafe."""
    moves = np.zeros(width * width)
    for s in range(first, last):
        a, b = offsets[s], offsets[s + 1]
        log_likelihoods[s] = 0.0
        if a == b:
            continue
        log_likelihoods[s] = _forward(rows, known, a, b, n_states, width, table, start, transitions, forward)
        if math.isnan(log_likelihoods[s]):
            continue
        if not _backward(rows, known, a, b, n_states, width, table, transposed, forward, moves):
            log_likelihoods[s] = np.nan
            continue
        for i in range(b - a):
            for k in range(n_states):
                posteriors[(a + i) * n_states + k] = forward[i * width + k]


@kernel
def hidden_paths(
    rows, known, offsets, first, last, n_states, width, log_table, log_start, log_transitions, scores, origin, paths,
    values,
):  # fmt: skip
    """The likeliest states of every token together (Viterbi), and their log joint probability with what is observed."""
    best = np.empty(width)
    for s in range(first, last):
        a, b = offsets[s], offsets[s + 1]
        values[s] = 0.0
        if a == b:
            continue
        for t in range(a, b):
            at, base = (t - a) * width, np.int64(rows[t]) * width
            for k in range(width):
                scores[at + k] = log_table[base + k]
            if len(known) and known[t] >= 0:
                for k in range(n_states):
                    if k != known[t]:
                        scores[at + k] = -np.inf
        for k in range(width):
            scores[k] += log_start[k]
        values[s] = best_path(scores, b - a, n_states, width, log_transitions, 0, best, origin, paths[a:b])


@kernel
def scale_rows(scores, n, width, shifts):
    """Turn ``n`` rows of logs into numbers whose largest is one; ``shifts`` get the logs taken out, -inf for zeros."""
    for i in range(n):
        at = i * width
        top = -np.inf
        for k in range(width):
            top = max(top, scores[at + k])
        shifts[i] = top
        if top > -np.inf:
            for k in range(width):
                scores[at + k] -= top
    for i in range(n * width):
        scores[i] = exp_scalar(scores[i])


@kernel
def gaussian_scores(values, first, last, d, width, whitening, centres, constants, scores):
    """Log densities of tokens under each state's Gaussian, ``scores[t * width + k]``.

    ``whitening[(i * d + j) * width + k]`` is entry [i, j] of the inverse of the lower Cholesky factor of state k's
    covariance, ``centres[i * width + k]`` that times its mean; ``constants`` are the logs of the normalisers, -inf for
    padding.
    """
    residual = np.empty(width)
    for t in range(first, last):
        at = t * width
        for k in range(width):
            scores[at + k] = constants[k]
        for i in range(d):
            for k in range(width):
                residual[k] = -centres[i * width + k]
            for k in range(0, width, BLOCK):
                add_dots_block(residual, k, values, t * d, 1, whitening, i * d * width + k, width, i + 1)
            for k in range(width):
                scores[at + k] -= 0.5 * residual[k] * residual[k]


@kernel
def gaussian_moments(values, posteriors, first, last, d, width, full, moments):
    """Add posterior-weighted sums of one, of each value and of products of values of tokens ``first`` to ``last``.

    ``moments[c * width + k]`` for state k: cell 0 counts, cells 1 to d are values, the others products, of each pair
    ``i >= j`` where ``full``, else squares.
    """
    cells = len(moments) // width
    products = np.empty(CHUNK * cells)
    for low in range(first, last, CHUNK):
        high = min(low + CHUNK, last)
        for t in range(low, high):
            at = (t - low) * cells
            products[at] = 1.0
            c = at + 1 + d
            for i in range(d):
                x = values[t * d + i]
                products[at + 1 + i] = x
                for j in range(0 if full else i, i + 1):
                    products[c] = x * values[t * d + j]
                    c += 1
        for c in range(cells):
            for k in range(0, width, BLOCK):
                add_dots_block(
                    moments, c * width + k, products, c, cells, posteriors, low * width + k, width, high - low
                )
