"""Sums over all label sequences of a linear chain: log Z, posteriors of labels, expected transitions (Murphy 19.6.1).

Scaled linear space: potentials of a token are divided by their largest, forward messages add up to one, and the logs of
the scales are carried along. Padding labels have a potential of zero throughout.

No path that counts is ever lost: a potential or a forward message that is possible, yet below `TINY` beside the largest
of its token, makes the answer nan, and the sequence is to be done in log space (see `logs_kernel`). What backward
messages lose has a posterior below the smallest float.

Loops that add up write nothing else: where one does, the compiler asks at run time whether arrays overlap before it
adds several numbers at once, and the order of the sum would depend on where arrays happen to lie.
"""

from __future__ import annotations

import math

import numpy as np

from markovfield.kernels.compiler import kernel
from markovfield.kernels.exponential import exp_scalar
from markovfield.kernels.products import TILE, add_outer_tile
from markovfield.kernels.simd import BLOCK, product_block, scale_block
from markovfield.sequence.chain.blocks_kernel import dots_row, scale_row, shift_row, times_dots_row, top_of_row
from markovfield.sequence.chain.scores_kernel import (
    add_edges,
    add_posteriors,
    edge_potentials,
    label_scores,
    mask_scores,
    step_posteriors,
)

__all__ = [
    "add_moves",
    "chain_forward",
    "chain_posteriors",
    "expected_scores",
    "sum_chains",
    "to_potentials",
    "write_posteriors",
]

SMALLEST, LARGEST = 1e-290, 1e290
# A product of scales within these may be multiplied by one more.
SMALL, LARGE = 1e-15, 1e15
TINY = 1e-200
LOG_TINY = -460.0


@kernel
def to_potentials(scores, n, width):
    """Turn the scores of ``n`` tokens into potentials whose largest is one; the sum of the logs taken out.

    nan where a token has no label left, or a possible label whose potential would be tiny.
    """
    shift = 0.0
    for i in range(n):
        at = i * width
        top = top_of_row(scores, at, width)
        if top == -np.inf:
            return np.nan
        if shift_row(scores, at, width, top, LOG_TINY):
            return np.nan
        shift += top
    # One long loop: a loop over the few labels of a token would not vectorise well.
    for i in range(n * width):
        scores[i] = exp_scalar(scores[i])
    return shift


@kernel
def chain_forward(potentials, n, n_labels, width, transitions, stride, forward):
    """Forward messages, each adding up to one; the sum of the logs of their scales, or nan where one underflows.

    The transitions of step i start at ``(i - 1) * stride``: zero where all steps have the same.
    """
    total, scales = 0.0, 1.0
    for i in range(n):
        at = i * width
        mass = 0.0
        if i == 0:
            for k in range(width):
                forward[k] = potentials[k]
            for k in range(width):
                mass += forward[k]
        else:
            mass = times_dots_row(
                forward, at, potentials, at, forward, at - width, transitions, (i - 1) * stride, width, n_labels
            )
        if not (mass > SMALLEST and mass < LARGEST):
            return np.nan
        # One logarithm for many tokens.
        scales *= mass
        if scales < SMALL or scales > LARGE:
            total += math.log(scales)
            scales = 1.0
        if scale_row(forward, at, width, 1.0 / mass, potentials, at, TINY):
            for k in range(n_labels):
                if forward[at + k] < TINY and potentials[at + k] > 0.0:
                    # A true zero only where no label before it is possible and may come before it.
                    for j in range(n_labels):
                        if i == 0 or (
                            forward[at - width + j] > 0.0 and transitions[(i - 1) * stride + j * width + k] > 0.0
                        ):
                            return np.nan
    return total + math.log(scales)


@kernel
def chain_posteriors(potentials, n, n_labels, width, transposed, moves, forward, incoming, scale):
    """Turn potentials into posteriors, from the last token back; False where a message leaves the range of numbers.

    ``transposed`` are the transitions of every step, columns first; where ``moves`` is not empty, it has those of each
    step instead, rows first. ``incoming`` is scratch, as large as ``forward``: it ends as ``scale`` times what comes in
    from behind, such that the posterior of two neighbouring labels is the product of the forward message of the
    first, the transition and what comes in to the second.
    """
    backward = np.empty(width)
    last = (n - 1) * width
    for k in range(width):
        incoming[last + k] = potentials[last + k]
        potentials[last + k] = forward[last + k]
    for i in range(n - 2, -1, -1):
        at, after = i * width, (i + 1) * width
        mass = 0.0
        if len(moves):
            for k in range(width):
                backward[k] = 0.0
            for k in range(n_labels):
                own = (i * width + k) * width
                total = 0.0
                for j in range(width):
                    total += moves[own + j] * incoming[after + j]
                backward[k] = total
                mass += forward[at + k] * total
        else:
            mass = dots_row(backward, 0, forward, at, incoming, after, transposed, 0, width, n_labels)
        if not (mass > SMALLEST and mass < LARGEST):
            return False
        inverse = 1.0 / mass
        for k in range(0, width, BLOCK):
            scale_block(incoming, after + k, inverse * scale)
            product_block(incoming, at + k, inverse, potentials, at + k, backward, k)
            product_block(potentials, at + k, inverse, forward, at + k, backward, k)
    return True


@kernel
def add_moves(n, n_labels, width, forward, incoming, transition_counts):
    """Add the outer products of forward messages and what comes in behind them.

    The expected transitions are these times the transition potentials, cell by cell, which is left to the end of all
    sequences.
    """
    for k in range(0, width, TILE):
        for j in range(0, width, BLOCK):
            add_outer_tile(
                transition_counts, k * width + j, width, forward, k, width, incoming, width + j, width, n - 1
            )


@kernel
def sum_chains(
    tokens, edges, offsets, first, last, weights, n_labels, width, row_weights, pair_weights, edge_weights, transitions,
    transposed, masks, row_counts, pair_counts, edge_counts, transition_counts, scores, forward, incoming, moves,
    log_partitions,
):  # fmt: skip
    """log Z and expected counts of sequences ``first`` to ``last``; how many underflowed (their log Z is nan).

    ``scores``, ``forward``, ``incoming`` and (where there are ``edges``) ``moves`` are scratch for the longest
    sequence. ``weights`` are those of sequences, or empty: sequences of weight zero are left out, and get a log Z of
    zero. ``masks`` rule out labels, see `mask_scores`.
    """
    failed = 0
    with_edges = len(edges.offsets) > 0
    sums = np.zeros(width * width)
    for s in range(first, last):
        a, b = offsets[s], offsets[s + 1]
        n = b - a
        scale = weights[s] if len(weights) else 1.0
        log_partitions[s] = 0.0
        if n == 0 or scale == 0.0:
            continue
        label_scores(tokens, a, b, n_labels, width, row_weights, pair_weights, scores)
        mask_scores(masks, a, b, n_labels, width, scores)
        shift = to_potentials(scores, n, width)
        if with_edges:
            edge_potentials(edges, a, b, width, transitions, edge_weights, 1.0, sums, moves)
            value = chain_forward(scores, n, n_labels, width, moves, width * width, forward)
        else:
            value = chain_forward(scores, n, n_labels, width, transitions, np.int64(0), forward)
        log_partitions[s] = shift + value
        if math.isnan(log_partitions[s]) or not chain_posteriors(
            scores, n, n_labels, width, transposed, moves, forward, incoming, scale
        ):
            log_partitions[s] = np.nan
            failed += 1
            continue
        if with_edges:
            step_posteriors(n, n_labels, width, forward, incoming, moves, transition_counts)
            add_edges(edges, a, b, width, moves, edge_counts)
        else:
            add_moves(n, n_labels, width, forward, incoming, transition_counts)
        add_posteriors(tokens, a, b, width, scores, scale, row_counts, pair_counts)
    return failed


@kernel
def expected_scores(scores, first, n, n_labels, width, posteriors, masks):
    """The expected sum of the scores of ``n`` tokens, each less the largest of its token, as in `to_potentials`.

    Leaving out the largest both here and in log Z keeps what cancels small, whatever the size of scores.
    """
    mask_scores(masks, first, first + n, n_labels, width, scores)
    total = 0.0
    for i in range(n):
        top = top_of_row(scores, i * width, width)
        for k in range(n_labels):
            p = posteriors[(first + i) * n_labels + k]
            if p > 0.0:
                total += p * (scores[i * width + k] - top)
    return total


@kernel
def write_posteriors(
    tokens, edges, offsets, first, last, n_labels, width, row_weights, pair_weights, edge_weights, transitions,
    transposed, log_transitions, masks, scores, forward, incoming, moves, posteriors, log_partitions, entropies,
):  # fmt: skip
    """Posteriors of every token's labels, ``posteriors[t * n_labels + label]``, log Z and entropy of each sequence.

    The entropy of a sequence is its log Z less its expected score. log Z is nan where a sequence underflowed.
    """
    with_edges = len(edges.offsets) > 0
    counts, sums = np.empty(width * width), np.zeros(width * width)
    edge_counts = np.zeros(len(edge_weights))
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
        if with_edges:
            edge_potentials(edges, a, b, width, transitions, edge_weights, 1.0, sums, moves)
            value = chain_forward(scores, n, n_labels, width, moves, width * width, forward)
        else:
            value = chain_forward(scores, n, n_labels, width, transitions, np.int64(0), forward)
        log_partitions[s] = shift + value
        if math.isnan(log_partitions[s]) or not chain_posteriors(
            scores, n, n_labels, width, transposed, moves, forward, incoming, 1.0
        ):
            log_partitions[s] = np.nan
            continue
        for k in range(width * width):
            counts[k] = 0.0
        expected = 0.0
        if with_edges:
            step_posteriors(n, n_labels, width, forward, incoming, moves, counts)
            add_edges(edges, a, b, width, moves, edge_counts)
            for r in range(edges.offsets[a + 1], edges.offsets[b]):
                w = edges.weight[r]
                expected += edge_counts[w] * edge_weights[w]
                edge_counts[w] = 0.0  # an edge that comes again has been counted whole
        else:
            add_moves(n, n_labels, width, forward, incoming, counts)
            for k in range(n_labels * width):
                counts[k] *= transitions[k]
        for i in range(n):
            for k in range(n_labels):
                posteriors[(a + i) * n_labels + k] = scores[i * width + k]
        for k in range(n_labels):
            for j in range(n_labels):
                p = counts[k * width + j]
                if p > 0.0:
                    expected += p * log_transitions[k * width + j]
        label_scores(tokens, a, b, n_labels, width, row_weights, pair_weights, scores)
        entropies[s] = value - expected - expected_scores(scores, a, n, n_labels, width, posteriors, masks)
