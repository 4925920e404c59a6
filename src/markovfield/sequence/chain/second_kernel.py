"""Linear chains of second order, where triples of neighbouring labels count: sums and best paths over pairs of labels.

Messages are tables over the labels of two neighbouring tokens, ``[i * width + j]`` for label j after label i. A table
``triples[(i * width + j) * width + k]`` holds what label k after j after i adds or multiplies, with the transition
from j to k in it; the step to a sequence's second token has ``transitions`` alone. Scaling is that of `sums_kernel`.

Invariant: the layouts above; padding labels have a potential of zero. The cost is O(K^3) for each token, whatever the
features.
"""

from __future__ import annotations

import math

import numpy as np

from markovfield.kernels.compiler import kernel
from markovfield.kernels.simd import BLOCK, add_dots_block, max_sums_block
from markovfield.sequence.chain.scores_kernel import add_posteriors, label_scores, mask_scores
from markovfield.sequence.chain.sums_kernel import LARGEST, SMALLEST, TINY, expected_scores, to_potentials

__all__ = ["best_second_paths", "second_forward", "sum_second_chains", "write_second_posteriors"]


@kernel
def _possible(potentials, forward, t, j, k, n_labels, width, transitions, triples):
    """Whether labels j and k can follow each other at tokens t - 1 and t, after what came before."""
    if t == 1:
        return potentials[j] > 0.0 and transitions[j * width + k] > 0.0
    cells = width * width
    for i in range(n_labels):
        if forward[(t - 1) * cells + i * width + j] > 0.0 and triples[(i * width + j) * width + k] > 0.0:
            return True
    return False


@kernel
def second_forward(potentials, n, n_labels, width, transitions, triples, forward):
    """Forward messages over pairs of labels, each adding up to one; the sum of the logs of their scales, or nan.

    That of tokens t - 1 and t is at ``t * width * width``. A single token has its potentials at the start.
    """
    cells = width * width
    total = 0.0
    for t in range(min(1, n - 1), n):
        at = t * cells
        for c in range(cells):
            forward[at + c] = 0.0
        if n == 1:
            for k in range(n_labels):
                forward[k] = potentials[k]
        elif t == 1:
            for j in range(n_labels):
                for k in range(n_labels):
                    c = j * width + k
                    forward[at + c] = potentials[j] * transitions[c] * potentials[width + k]
        else:
            for j in range(n_labels):
                for k in range(0, width, BLOCK):
                    add_dots_block(
                        forward, at + j * width + k, forward, at - cells + j, width, triples, j * width + k, cells,
                        n_labels,
                    )  # fmt: skip
                for k in range(width):
                    forward[at + j * width + k] *= potentials[t * width + k]
        mass = 0.0
        for c in range(cells):
            mass += forward[at + c]
        if not (mass > SMALLEST and mass < LARGEST):
            return np.nan
        total += math.log(mass)
        inverse = 1.0 / mass
        for c in range(cells):
            forward[at + c] *= inverse
        for j in range(n_labels):
            for k in range(n_labels):
                small = n > 1 and forward[at + j * width + k] < TINY and potentials[t * width + k] > 0.0
                if small and _possible(potentials, forward, t, j, k, n_labels, width, transitions, triples):
                    return np.nan
    return total


@kernel
def second_posteriors(potentials, n, n_labels, width, transposed, forward, incoming, scale, first_counts):
    """Turn potentials into posteriors of labels, from the last token back; False where a message leaves the range.

    ``transposed[(k * width + j) * width + i]`` is a triple. ``incoming`` ends as ``scale`` times what comes in from
    behind. ``first_counts`` gain the posterior of the first two labels.
    """
    cells = width * width
    if n == 1:
        for k in range(width):
            potentials[k] = forward[k]
        return True
    backward = np.empty(cells)  # columns first
    for c in range(cells):
        backward[c] = 1.0
    for t in range(n - 1, 0, -1):
        at = t * cells
        for j in range(n_labels):
            for k in range(width):
                incoming[at + j * width + k] = potentials[t * width + k] * backward[k * width + j]
        for j in range(width):
            total = 0.0
            for i in range(n_labels):
                total += forward[at + i * width + j] * backward[j * width + i]
            potentials[t * width + j] = total
        if t == 1:
            break
        for c in range(cells):
            backward[c] = 0.0
        for j in range(n_labels):
            for i in range(0, width, BLOCK):
                add_dots_block(
                    backward, j * width + i, incoming, at + j * width, 1, transposed, j * width + i, cells, n_labels
                )
        mass = 0.0
        for i in range(n_labels):
            for j in range(n_labels):
                mass += forward[at - cells + i * width + j] * backward[j * width + i]
        if not (mass > SMALLEST and mass < LARGEST):
            return False
        inverse = 1.0 / mass
        for c in range(cells):
            backward[c] *= inverse
        for c in range(n_labels * width):
            incoming[at + c] *= inverse * scale
    for i in range(width):
        total = 0.0
        for j in range(n_labels):
            total += forward[cells + i * width + j] * backward[j * width + i]
        potentials[i] = total
        for j in range(n_labels):
            first_counts[i * width + j] += scale * forward[cells + i * width + j] * backward[j * width + i]
    return True


@kernel
def _add_triples(n, n_labels, width, forward, incoming, triple_counts):
    """Add the products of forward messages and what comes in behind them: triples but for their own potentials."""
    if n < 3:
        return
    cells = width * width
    for i in range(n_labels):
        for j in range(n_labels):
            for k in range(0, width, BLOCK):
                add_dots_block(
                    triple_counts, (i * width + j) * width + k, forward, cells + i * width + j, cells, incoming,
                    2 * cells + j * width + k, cells, n - 2,
                )  # fmt: skip


@kernel
def sum_second_chains(
    tokens, offsets, first, last, weights, n_labels, width, row_weights, pair_weights, transitions, triples, transposed,
    masks, row_counts, pair_counts, first_counts, triple_counts, scores, forward, incoming, log_partitions,
):  # fmt: skip
    """log Z and expected counts of sequences ``first`` to ``last``; how many underflowed (their log Z is nan)."""
    failed = 0
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
        value = shift + second_forward(scores, n, n_labels, width, transitions, triples, forward)
        log_partitions[s] = value
        if math.isnan(value) or not second_posteriors(
            scores, n, n_labels, width, transposed, forward, incoming, scale, first_counts
        ):
            log_partitions[s] = np.nan
            failed += 1
            continue
        _add_triples(n, n_labels, width, forward, incoming, triple_counts)
        add_posteriors(tokens, a, b, width, scores, scale, row_counts, pair_counts)
    return failed


@kernel
def write_second_posteriors(
    tokens, offsets, first, last, n_labels, width, row_weights, pair_weights, transitions, triples, transposed,
    log_transitions, log_triples, masks, scores, forward, incoming, posteriors, log_partitions, entropies,
):  # fmt: skip
    """Posteriors of every token's labels, ``posteriors[t * n_labels + label]``, log Z and entropy of each sequence."""
    cells = width * width
    first_counts, triple_counts = np.empty(cells), np.empty(cells * width)
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
        value = second_forward(scores, n, n_labels, width, transitions, triples, forward)
        log_partitions[s] = shift + value
        for c in range(cells):
            first_counts[c] = 0.0
        if math.isnan(value) or not second_posteriors(
            scores, n, n_labels, width, transposed, forward, incoming, 1.0, first_counts
        ):
            log_partitions[s] = np.nan
            continue
        for c in range(cells * width):
            triple_counts[c] = 0.0
        _add_triples(n, n_labels, width, forward, incoming, triple_counts)
        expected = 0.0
        for c in range(cells):
            if first_counts[c] > 0.0:
                expected += first_counts[c] * log_transitions[c]
        for c in range(cells * width):
            p = triple_counts[c] * triples[c]
            if p > 0.0:
                expected += p * log_triples[c]
        for i in range(n):
            for k in range(n_labels):
                posteriors[(a + i) * n_labels + k] = scores[i * width + k]
        label_scores(tokens, a, b, n_labels, width, row_weights, pair_weights, scores)
        entropies[s] = value - expected - expected_scores(scores, a, n, n_labels, width, posteriors, masks)


@kernel
def best_second_paths(
    tokens, offsets, first, last, n_labels, width, row_weights, pair_weights, transitions, triples, masks, scores,
    origin, paths, values,
):  # fmt: skip
    """The best label of every token and the score of each sequence, -inf where none is allowed.

    ``transitions`` and ``triples`` are logs. ``origin`` is scratch of ``width * width`` entries for each token of the
    longest sequence.
    """
    cells = width * width
    best, came = np.empty(cells), np.empty(cells)  # came: columns first
    for s in range(first, last):
        a, b = offsets[s], offsets[s + 1]
        n = b - a
        values[s] = 0.0
        if n == 0:
            continue
        label_scores(tokens, a, b, n_labels, width, row_weights, pair_weights, scores)
        mask_scores(masks, a, b, n_labels, width, scores)
        top, label, before = -np.inf, 0, 0
        for k in range(n_labels):
            if n == 1 and scores[k] > top:
                top, label = scores[k], k
        for t in range(1, n):
            at = t * cells
            for c in range(cells):
                best[c] = -np.inf
                origin[at + c] = 0
            for j in range(n_labels):
                if t == 1:
                    for k in range(n_labels):
                        best[j * width + k] = scores[j] + transitions[j * width + k]
                else:
                    own = origin[at : at + cells]
                    for k in range(0, width, BLOCK):
                        max_sums_block(
                            best, j * width + k, own, came, j * width, triples, j * width + k, cells, n_labels
                        )
            for k in range(n_labels):
                for j in range(n_labels):
                    came[k * width + j] = best[j * width + k] + scores[t * width + k]
        for k in range(n_labels):
            for j in range(n_labels):
                if n > 1 and came[k * width + j] > top:
                    top, label, before = came[k * width + j], k, j
        values[s] = top
        for t in range(n - 1, -1, -1):
            paths[a + t] = label
            if t > 1:
                label, before = before, origin[t * cells + before * width + label]
            else:
                label = before
