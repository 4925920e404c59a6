"""Sums over all label sequences of a chain: log Z, posteriors of labels, expected transitions (Murphy 19.6.1).

Scaled linear space: potentials of a token are divided by their largest, forward messages add up to one, and the logs of
the scales are carried along. Padding labels have a potential of zero throughout.
"""

from __future__ import annotations

import math

import numpy as np

from markovfield.kernels._flags import kernel
from markovfield.kernels.chain_scores import add_posteriors, label_scores, mask_scores
from markovfield.kernels.exponential import exp_scalar
from markovfield.kernels.vector_blocks import BLOCK, add_dots_block

__all__ = ["chain_forward", "chain_posteriors", "sum_chains", "to_potentials", "write_posteriors"]

SMALLEST = 1e-290


@kernel
def to_potentials(scores, n, width):
    """Turn the scores of ``n`` tokens into potentials whose largest is one; the sum of the logs taken out.

    nan where a token has no label left.
    """
    shift = 0.0
    for i in range(n):
        at = i * width
        top = -np.inf
        for k in range(width):
            top = max(top, scores[at + k])
        if top == -np.inf:
            return np.nan
        for k in range(width):
            scores[at + k] -= top
        shift += top
    # One long loop: a loop over the few labels of a token would not vectorise well.
    for i in range(n * width):
        scores[i] = exp_scalar(scores[i])
    return shift


@kernel
def chain_forward(potentials, n, n_labels, width, transitions, forward):
    """Forward messages, each adding up to one; the sum of the logs of their scales, or nan where one underflows."""
    total = 0.0
    for i in range(n):
        at = i * width
        mass = 0.0
        if i == 0:
            for k in range(width):
                forward[k] = potentials[k]
                mass += forward[k]
        else:
            for k in range(width):
                forward[at + k] = 0.0
            for k in range(0, width, BLOCK):
                add_dots_block(forward, at + k, forward, at - width, 1, transitions, k, width, n_labels)
            for k in range(width):
                forward[at + k] *= potentials[at + k]
                mass += forward[at + k]
        if not mass > SMALLEST:
            return np.nan
        total += math.log(mass)
        inverse = 1.0 / mass
        for k in range(width):
            forward[at + k] *= inverse
    return total


@kernel
def chain_posteriors(potentials, n, n_labels, width, transposed, forward, incoming, transition_counts, scale):
    """Turn potentials into posteriors, from the last token back.

    ``incoming`` is scratch, as large as ``forward``. ``transition_counts`` gain ``scale`` times the outer products of
    forward messages and what comes in from behind: the expected transitions are these times the transition
    potentials, cell by cell, which is left to the end of all sequences. Every message is divided by the mass it
    meets, so that none leaves the range of numbers.
    """
    backward = np.empty(width)
    last = (n - 1) * width
    for k in range(width):
        incoming[last + k] = potentials[last + k]
        potentials[last + k] = forward[last + k]
    for i in range(n - 2, -1, -1):
        at = i * width
        for k in range(width):
            backward[k] = 0.0
        for k in range(0, width, BLOCK):
            add_dots_block(backward, k, incoming, at + width, 1, transposed, k, width, n_labels)
        mass = 0.0
        for k in range(width):
            mass += forward[at + k] * backward[k]
        inverse = 1.0 / mass
        for k in range(width):
            incoming[at + width + k] *= inverse * scale
            backward[k] *= inverse
        for k in range(width):
            incoming[at + k] = potentials[at + k] * backward[k]
        for k in range(width):
            potentials[at + k] = forward[at + k] * backward[k]
    for k in range(n_labels):
        for j in range(0, width, BLOCK):
            add_dots_block(transition_counts, k * width + j, forward, k, width, incoming, width + j, width, n - 1)


@kernel
def sum_chains(
    tokens, offsets, first, last, weights, n_labels, width, row_weights, pair_weights, transitions, transposed,
    masks, row_counts, pair_counts, transition_counts, scores, forward, incoming, log_partitions,
):  # fmt: skip
    """log Z and expected counts of sequences ``first`` to ``last``; how many underflowed (their log Z is nan).

    ``scores``, ``forward`` and ``incoming`` are scratch for the longest sequence. ``weights`` are those of sequences,
    or empty; ``masks`` rule out labels, see `mask_scores`.
    """
    failed = 0
    for s in range(first, last):
        a, b = offsets[s], offsets[s + 1]
        n = b - a
        if n == 0:
            log_partitions[s] = 0.0
            continue
        label_scores(tokens, a, b, n_labels, width, row_weights, pair_weights, scores)
        mask_scores(masks, a, b, n_labels, width, scores)
        shift = to_potentials(scores, n, width)
        value = chain_forward(scores, n, n_labels, width, transitions, forward)
        log_partitions[s] = shift + value
        if math.isnan(value):
            failed += 1
            continue
        scale = weights[s] if len(weights) else 1.0
        chain_posteriors(scores, n, n_labels, width, transposed, forward, incoming, transition_counts, scale)
        add_posteriors(tokens, a, b, width, scores, scale, row_counts, pair_counts)
    return failed


@kernel
def write_posteriors(
    tokens, offsets, first, last, n_labels, width, row_weights, pair_weights, transitions, transposed, log_transitions,
    masks, scores, forward, incoming, posteriors, log_partitions, entropies,
):  # fmt: skip
    """Posteriors of every token's labels, ``posteriors[t * n_labels + label]``, log Z and entropy of each sequence.

    The entropy of a sequence is its log Z less its expected score. log Z is nan where a sequence underflowed.
    """
    moves = np.empty(width * width)
    for s in range(first, last):
        a, b = offsets[s], offsets[s + 1]
        n = b - a
        log_partitions[s] = 0.0
        entropies[s] = 0.0
        if n == 0:
            continue
        label_scores(tokens, a, b, n_labels, width, row_weights, pair_weights, scores)
        mask_scores(masks, a, b, n_labels, width, scores)
        shift = to_potentials(scores, n, width)
        value = chain_forward(scores, n, n_labels, width, transitions, forward)
        log_partitions[s] = shift + value
        if math.isnan(value):
            continue
        for k in range(width * width):
            moves[k] = 0.0
        chain_posteriors(scores, n, n_labels, width, transposed, forward, incoming, moves, 1.0)
        for i in range(n):
            for k in range(n_labels):
                posteriors[(a + i) * n_labels + k] = scores[i * width + k]
        expected = 0.0
        for k in range(n_labels):
            for j in range(n_labels):
                p = moves[k * width + j] * transitions[k * width + j]
                if p > 0.0:
                    expected += p * log_transitions[k * width + j]
        label_scores(tokens, a, b, n_labels, width, row_weights, pair_weights, scores)
        for i in range(n):
            for k in range(n_labels):
                expected += posteriors[(a + i) * n_labels + k] * scores[i * width + k]
        entropies[s] = shift + value - expected
