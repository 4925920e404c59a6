"""Linear chains that are normalised locally: the label of a token given that of the one before it (Murphy 19.66).

Tokens, rows, pairs and edges are those of `sequence.chain.scores_kernel`. ``transitions`` are logs, flat, ``width`` by
``width``.

Invariant: each token's probabilities add up to one given the label before it; the first token has no label before it
and no transition. Modes are the constants below.
"""

from __future__ import annotations

import math

import numpy as np

from markovfield.kernels.compiler import kernel
from markovfield.kernels.exponential import exp_scalar
from markovfield.kernels.simd import BLOCK, add_block, add_dots_block, max_sums_block
from markovfield.sequence.chain.scores_kernel import add_posteriors, label_scores

__all__ = ["filter_local", "follow_local", "sum_local"]

GREEDY, BEST = 0, 1
_NO_LABEL = -1


@kernel
def _add_step(edges, t, before, width, edge_weights, transitions, scores, at):
    """Add what the label before says to the scores of a token's labels."""
    for k in range(0, width, BLOCK):
        add_block(scores, at + k, 1.0, transitions, before * width + k)
    if len(edges.offsets):
        for r in range(edges.offsets[t], edges.offsets[t + 1]):
            if edges.cell[r] // width == before:
                value = edges.values[r] if len(edges.values) else 1.0
                scores[at + edges.cell[r] - before * width] += value * edge_weights[edges.weight[r]]


@kernel
def _normalise(scores, at, width):
    """Turn scores into probabilities; the log of their sum."""
    top = -np.inf
    for k in range(width):
        top = max(top, scores[at + k])
    total = 0.0
    for k in range(width):
        scores[at + k] = exp_scalar(scores[at + k] - top)
        total += scores[at + k]
    inverse = 1.0 / total
    for k in range(width):
        scores[at + k] *= inverse
    return top + math.log(total)


@kernel
def _local_shares(edges, a, b, labels, width, edge_weights, transitions, scores):
    """Turn scores of tokens into probabilities given the labels before; the log-probability of the labels."""
    value = 0.0
    for t in range(a, b):
        at = (t - a) * width
        if t > a:
            _add_step(edges, t, np.int64(labels[t - 1]), width, edge_weights, transitions, scores, at)
        top = -np.inf
        for k in range(width):
            top = max(top, scores[at + k])
        for k in range(width):
            scores[at + k] -= top
        value += scores[at + labels[t]]
    # One long loop: a loop over the few labels of a token would not vectorise well.
    for i in range((b - a) * width):
        scores[i] = exp_scalar(scores[i])
    product = 1.0
    for t in range(a, b):
        at, total = (t - a) * width, 0.0
        for k in range(width):
            total += scores[at + k]
        inverse = 1.0 / total
        for k in range(width):
            scores[at + k] *= inverse
        product *= total
        if product > 1e200:
            value -= math.log(product)
            product = 1.0
    return value - math.log(product)


@kernel
def sum_local(
    tokens, edges, offsets, first, last, labels, n_labels, width, row_weights, pair_weights, edge_weights, transitions,
    scores, row_counts, pair_counts, edge_counts, transition_counts, log_likelihoods,
):  # fmt: skip
    """The log-probability of the labels of sequences ``first`` to ``last``, and expected counts given each token's
    label before; the counts may be empty. ``scores`` is scratch for the longest sequence."""
    for s in range(first, last):
        a, b = offsets[s], offsets[s + 1]
        label_scores(tokens, a, b, n_labels, width, row_weights, pair_weights, scores)
        log_likelihoods[s] = _local_shares(edges, a, b, labels, width, edge_weights, transitions, scores)
        if not len(transition_counts):
            continue
        for t in range(a + 1, b):
            at, before = (t - a) * width, np.int64(labels[t - 1])
            for k in range(0, width, BLOCK):
                add_block(transition_counts, before * width + k, 1.0, scores, at + k)
            if len(edges.offsets):
                for r in range(edges.offsets[t], edges.offsets[t + 1]):
                    if edges.cell[r] // width == before:
                        value = edges.values[r] if len(edges.values) else 1.0
                        p = scores[at + edges.cell[r] - before * width]
                        edge_counts[edges.weight[r]] += value * p
        add_posteriors(tokens, a, b, width, scores, 1.0, row_counts, pair_counts)


@kernel
def _step_logs(edges, t, n_labels, width, edge_weights, transitions, scores, at, moves):
    """Write the log-probability of label j after label i at token t, ``moves[i * width + j]``."""
    work = np.empty(width)
    for i in range(n_labels):
        for k in range(width):
            work[k] = scores[at + k]
        _add_step(edges, t, np.int64(i), width, edge_weights, transitions, work, 0)
        for k in range(width):
            moves[i * width + k] = work[k]
        total = _normalise(work, 0, width)
        for k in range(width):
            moves[i * width + k] -= total


@kernel
def follow_local(
    tokens, edges, offsets, first, last, n_labels, width, row_weights, pair_weights, edge_weights, transitions, mode,
    scores, origin, paths, values,
):  # fmt: skip
    """Labels of every token and the log-probability of each sequence's.

    ``mode`` is `GREEDY`, each token the likeliest label after the one chosen before it, or `BEST`, the likeliest labels
    together (Viterbi). ``scores`` and ``origin`` are scratch for the longest sequence.
    """
    moves = np.full(width * width, -np.inf)
    best = np.empty(width)
    for s in range(first, last):
        a, b = offsets[s], offsets[s + 1]
        values[s] = 0.0
        if a == b:
            continue
        label_scores(tokens, a, b, n_labels, width, row_weights, pair_weights, scores)
        before = np.int64(_NO_LABEL)
        for t in range(a, b):
            at = (t - a) * width
            if t == a or mode == GREEDY:
                if t > a:
                    _add_step(edges, t, before, width, edge_weights, transitions, scores, at)
                for k in range(width):
                    best[k] = scores[at + k]
                total = _normalise(best, 0, width)
                before = np.int64(0)
                for k in range(width):
                    scores[at + k] -= total
                    if scores[at + k] > scores[at + before]:
                        before = np.int64(k)
                if mode == GREEDY:
                    paths[t] = before
                    values[s] += scores[at + before]
                continue
            _step_logs(edges, t, n_labels, width, edge_weights, transitions, scores, at, moves)
            own = origin[at : at + width]
            for k in range(width):
                best[k] = -np.inf
                own[k] = 0
            for k in range(0, width, BLOCK):
                max_sums_block(best, k, own, scores, at - width, moves, k, width, n_labels)
            for k in range(width):
                scores[at + k] = best[k]
        if mode == GREEDY:
            continue
        at = (b - 1 - a) * width
        label = 0
        for k in range(n_labels):
            if scores[at + k] > scores[at + label]:
                label = k
        values[s] = scores[at + label]
        for t in range(b - 1, a - 1, -1):
            paths[t] = label
            if t > a:
                label = origin[(t - a) * width + label]


@kernel
def filter_local(
    tokens, edges, offsets, first, last, n_labels, width, row_weights, pair_weights, edge_weights, transitions, scores,
    posteriors,
):  # fmt: skip
    """Probabilities of each token's labels, ``posteriors[t * n_labels + label]``: what comes later says nothing."""
    moves = np.zeros(width * width)
    message, ahead = np.zeros(width), np.zeros(width)
    for s in range(first, last):
        a, b = offsets[s], offsets[s + 1]
        label_scores(tokens, a, b, n_labels, width, row_weights, pair_weights, scores)
        for t in range(a, b):
            at = (t - a) * width
            if t == a:
                _normalise(scores, at, width)
                for k in range(width):
                    message[k] = scores[at + k]
            else:
                _step_logs(edges, t, n_labels, width, edge_weights, transitions, scores, at, moves)
                for c in range(n_labels * width):
                    moves[c] = exp_scalar(moves[c])
                for k in range(width):
                    ahead[k] = 0.0
                for k in range(0, width, BLOCK):
                    add_dots_block(ahead, k, message, 0, 1, moves, k, width, n_labels)
                for k in range(width):
                    message[k] = ahead[k]
            for k in range(n_labels):
                posteriors[t * n_labels + k] = message[k]
