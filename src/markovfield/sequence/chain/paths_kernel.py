"""Label sequences of a linear chain: the best, the n best, and draws.

Invariant: scores ``[token * width + label]``, transitions ``[before * width + after]`` in logs, one table for all steps
(a stride of 0) or one for each; of equal paths the one with the lower labels wins at each step.
"""

from __future__ import annotations

import math

import numpy as np

from markovfield.kernels.compiler import kernel
from markovfield.kernels.random import draw_unit
from markovfield.kernels.simd import BLOCK, max_sums_block
from markovfield.sequence.chain.scores_kernel import edge_scores, label_scores, mask_scores
from markovfield.sequence.chain.sums_kernel import chain_forward, to_potentials

__all__ = ["best_path", "best_paths", "draw_paths", "n_best_paths"]


@kernel
def best_path(scores, n, n_labels, width, transitions, stride, best, origin, path):
    """The best labels of one chain, written to the start of ``path``, and their score; -inf where none is allowed.

    ``transitions`` are logs; those of step i start at ``(i - 1) * stride``. ``scores`` of tokens become the best scores
    of what ends there; ``best`` and ``origin`` are scratch.
    """
    for i in range(1, n):
        at = i * width
        for k in range(width):
            best[k] = -np.inf
            origin[at + k] = 0
        own, start = origin[at : at + width], (i - 1) * stride
        for k in range(0, width, BLOCK):
            max_sums_block(best, k, own, scores, at - width, transitions, start + k, width, n_labels)
        for k in range(width):
            scores[at + k] += best[k]
    at = (n - 1) * width
    top, label = -np.inf, 0
    for k in range(n_labels):
        if scores[at + k] > top:
            top, label = scores[at + k], k
    for i in range(n - 1, -1, -1):
        path[i] = label
        if i:
            label = origin[i * width + label]
    return top


@kernel
def best_paths(
    tokens, edges, offsets, first, last, n_labels, width, row_weights, pair_weights, edge_weights, transitions, masks,
    scores, origin, moves, paths, values,
):  # fmt: skip
    """The best label of every token (Viterbi) and the score of each sequence, -inf where none is allowed.

    ``transitions`` are logs, ``width`` by ``width``; ``masks`` rule out labels, see `mask_scores`. ``scores``,
    ``origin`` and (where there are ``edges``) ``moves`` are scratch for the longest sequence.
    """
    best = np.empty(width, scores.dtype)
    for s in range(first, last):
        a, b = offsets[s], offsets[s + 1]
        values[s] = 0.0
        if a == b:
            continue
        label_scores(tokens, a, b, n_labels, width, row_weights, pair_weights, scores)
        mask_scores(masks, a, b, n_labels, width, scores)
        if len(edges.offsets):
            edge_scores(edges, a, b, width, transitions, edge_weights, moves)
            values[s] = best_path(scores, b - a, n_labels, width, moves, width * width, best, origin, paths[a:b])
        else:
            values[s] = best_path(scores, b - a, n_labels, width, transitions, np.int64(0), best, origin, paths[a:b])


@kernel
def _into(values, origins, at, count, limit, value, origin):
    """Insert into a falling list of at most ``limit``; its new length."""
    if count == limit and value <= values[at + count - 1]:
        return count
    if count < limit:
        count += 1
    i = count - 1
    while i > 0 and values[at + i - 1] < value:
        values[at + i] = values[at + i - 1]
        origins[at + i] = origins[at + i - 1]
        i -= 1
    values[at + i] = value
    origins[at + i] = origin
    return count


@kernel
def n_best_paths(scores, n, n_labels, width, transitions, stride, limit, paths, values):
    """The ``limit`` best label sequences of one chain, in falling order; how many there are.

    ``scores[n * width]`` are those of tokens. ``paths[limit, n]``. The transitions of step i start at
    ``(i - 1) * stride``. Every label of every token keeps its own list of
    the best ways to come there, so that time grows with ``n * n_labels^2 * limit``.
    """
    best = np.full(n * n_labels * limit, -np.inf)
    origins = np.zeros(n * n_labels * limit, np.int64)
    counts = np.zeros(n * n_labels, np.int64)
    for k in range(n_labels):
        value = scores[k]
        if value > -np.inf:
            best[k * limit] = value
            counts[k] = 1
    for i in range(1, n):
        for k in range(n_labels):
            own = scores[i * width + k]
            if own == -np.inf:
                continue
            cell = i * n_labels + k
            for j in range(n_labels):
                step = transitions[(i - 1) * stride + j * width + k] + own
                if step == -np.inf:
                    continue
                before = (i - 1) * n_labels + j
                for r in range(counts[before]):
                    value = best[before * limit + r] + step
                    held = counts[cell]
                    counts[cell] = _into(best, origins, cell * limit, held, limit, value, j * limit + r)
                    if held == limit and value <= best[cell * limit + limit - 1]:
                        break  # what follows in this list is no better
    ends = np.full(limit, -np.inf)
    tails = np.zeros(limit, np.int64)
    found = 0
    for k in range(n_labels):
        cell = (n - 1) * n_labels + k
        for r in range(counts[cell]):
            value = best[cell * limit + r]
            if value > -np.inf:
                found = _into(ends, tails, 0, found, limit, value, k * limit + r)
    for rank in range(found):
        values[rank] = ends[rank]
        at = tails[rank]
        for i in range(n - 1, -1, -1):
            k = at // limit
            paths[rank, i] = k
            at = origins[(i * n_labels + k) * limit + at % limit]
    return found


@kernel
def draw_paths(scores, n, n_labels, width, transitions, stride, stream, forward, paths):
    """Draw label sequences of one chain: filter forward, sample backward; False where numbers leave their range.

    ``transitions`` are potentials, not logs; ``scores`` become potentials. ``paths[size, n]``. The transitions of
    step i start at ``(i - 1) * stride``.
    """
    if math.isnan(to_potentials(scores, n, width)):
        return False
    if not chain_forward(scores, n, n_labels, width, transitions, stride, forward) > -np.inf:
        return False
    chances = np.empty(n_labels)
    for row in range(paths.shape[0]):
        after = -1
        for i in range(n - 1, -1, -1):
            total = 0.0
            for k in range(n_labels):
                p = forward[i * width + k]
                if after >= 0:
                    p *= transitions[i * stride + k * width + after]
                total += p
                chances[k] = total
            u = draw_unit(stream) * total
            label = 0
            while label < n_labels - 1 and u >= chances[label]:
                label += 1
            while label > 0 and chances[label] == chances[label - 1]:
                label -= 1  # a rounding can step past the last label that is possible
            paths[row, i] = label
            after = label
    return True
