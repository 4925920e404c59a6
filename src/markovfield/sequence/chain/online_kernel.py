"""Passes of the online solvers of a linear chain: one sequence at a time, touching only the weights of its features.

Weights have the layout of `scores_kernel`; ``row_mask`` and ``move_mask`` are one where a cell of a row or a transition
has a feature, and zero where its weight must stay zero.

Invariant: a pass goes through sequences in the order given, one after the other, so that it can be repeated.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from markovfield.kernels.compiler import kernel
from markovfield.kernels.simd import BLOCK, add_masked_block
from markovfield.sequence.chain.paths_kernel import best_path
from markovfield.sequence.chain.scores_kernel import edge_potentials, edge_scores, label_scores, step_posteriors
from markovfield.sequence.chain.sums_kernel import add_moves, chain_forward, chain_posteriors, to_potentials

__all__ = ["Scratch", "Weights", "adagrad_pass", "margin_pass", "sgd_pass"]


class Weights(NamedTuple):
    """Numbers for every feature: weights, or sums of squares, laid out alike."""

    rows: np.ndarray
    pairs: np.ndarray
    moves: np.ndarray
    edges: np.ndarray


class Scratch(NamedTuple):
    """Space for the longest sequence; ``steps`` is empty where there are no edges."""

    scores: np.ndarray
    forward: np.ndarray
    incoming: np.ndarray
    steps: np.ndarray
    transitions: np.ndarray
    transposed: np.ndarray
    counts: np.ndarray


@kernel
def _gradient(tokens, edges, a, b, labels, n_labels, width, weights, scale, scratch):
    """Minus the log-probability of a sequence's labels, and its gradient by the scores of tokens and of steps.

    Weights count ``scale`` times. The gradient of tokens' scores ends in ``scratch.scores``, that of transitions in
    ``scratch.counts``, that of the steps' own in ``scratch.steps``. nan where numbers leave their range.
    """
    n, cells = b - a, width * width
    scores, forward, incoming, counts = scratch.scores, scratch.forward, scratch.incoming, scratch.counts
    label_scores(tokens, a, b, n_labels, width, weights.rows, weights.pairs, scores)
    top = -np.inf
    for c in range(cells):
        top = max(top, weights.moves[c])
    own = 0.0
    for i in range(n):
        for k in range(n_labels):
            scores[i * width + k] *= scale
        own += scores[i * width + labels[a + i]]
        if i > 0:
            own += scale * (weights.moves[labels[a + i - 1] * width + labels[a + i]] - top)
    for k in range(width):
        for j in range(width):
            p = math.exp(scale * (weights.moves[k * width + j] - top))
            scratch.transitions[k * width + j] = p
            scratch.transposed[j * width + k] = p
    shift = to_potentials(scores, n, width)
    if len(edges.offsets):
        for c in range(cells):
            counts[c] = 0.0
        edge_potentials(edges, a, b, width, scratch.transitions, weights.edges, scale, counts, scratch.steps)
        for t in range(a + 1, b):
            c = labels[t - 1] * width + labels[t]
            for r in range(edges.offsets[t], edges.offsets[t + 1]):
                if edges.cell[r] == c:
                    own += scale * (edges.values[r] if len(edges.values) else 1.0) * weights.edges[edges.weight[r]]
        value = chain_forward(scores, n, n_labels, width, scratch.steps, cells, forward)
    else:
        value = chain_forward(scores, n, n_labels, width, scratch.transitions, np.int64(0), forward)
    if math.isnan(shift + value) or not chain_posteriors(
        scores, n, n_labels, width, scratch.transposed, scratch.steps, forward, incoming, 1.0
    ):
        return np.nan
    for c in range(cells):
        counts[c] = 0.0
    if len(edges.offsets):
        step_posteriors(n, n_labels, width, forward, incoming, scratch.steps, counts)
    else:
        add_moves(n, n_labels, width, forward, incoming, counts)
        for c in range(cells):
            counts[c] *= scratch.transitions[c]
    for i in range(n):
        scores[i * width + labels[a + i]] -= 1.0
        if i > 0:
            c = labels[a + i - 1] * width + labels[a + i]
            counts[c] -= 1.0
            if len(edges.offsets):
                scratch.steps[(i - 1) * cells + c] -= 1.0
    return shift + value - own


@kernel
def sgd_pass(
    tokens, edges, offsets, order, labels, sequence_weights, n_labels, width, weights, row_mask, move_mask, state,
    rate, decay, scratch,
):  # fmt: skip
    """Stochastic gradient descent over sequences in an order; the sum of their losses, nan where numbers overflow.

    ``state`` holds the scale of the weights (they count that many times, so that shrinking all of them is one
    multiplication) and the steps so far: step t moves by ``rate / (1 + rate * decay * t)``, and shrinks by ``decay``
    times as much.
    """
    total = 0.0
    for index in range(len(order)):
        s = order[index]
        a, b = offsets[s], offsets[s + 1]
        if a == b:
            continue
        loss = _gradient(tokens, edges, a, b, labels, n_labels, width, weights, state[0], scratch)
        if math.isnan(loss):
            return np.nan
        weight = sequence_weights[s] if len(sequence_weights) else 1.0
        total += weight * loss
        step = rate / (1.0 + rate * decay * state[1])
        state[0] *= 1.0 - step * decay
        state[1] += 1.0
        gain = -step * weight / state[0]
        for t in range(a, b):
            at = (t - a) * width
            for r in range(tokens.row_offsets[t], tokens.row_offsets[t + 1]):
                base = np.int64(tokens.rows[r]) * width
                value = gain * (tokens.row_values[r] if len(tokens.row_values) else 1.0)
                for k in range(0, width, BLOCK):
                    add_masked_block(weights.rows, base + k, value, scratch.scores, at + k, row_mask)
            for r in range(tokens.pair_offsets[t], tokens.pair_offsets[t + 1]):
                value = gain * (tokens.pair_values[r] if len(tokens.pair_values) else 1.0)
                weights.pairs[tokens.pair_weight[r]] += value * scratch.scores[at + tokens.pair_label[r]]
            if len(edges.offsets) and t > a:
                own = (t - a - 1) * width * width
                for r in range(edges.offsets[t], edges.offsets[t + 1]):
                    value = gain * (edges.values[r] if len(edges.values) else 1.0)
                    weights.edges[edges.weight[r]] += value * scratch.steps[own + edges.cell[r]]
        for c in range(width * width):
            if move_mask[c]:
                weights.moves[c] += gain * scratch.counts[c]
    return total


@kernel
def _adapt(weights, squares, i, gradient, rate):
    """One weight's own step: the rate over the root of the sum of its squared gradients so far."""
    squares[i] += gradient * gradient
    weights[i] -= rate * gradient / math.sqrt(squares[i] + 1e-12)


@kernel
def adagrad_pass(
    tokens, edges, offsets, order, labels, sequence_weights, n_labels, width, weights, squares, shares, row_mask,
    move_mask, rate, scratch,
):  # fmt: skip
    """AdaGrad over sequences in an order; the sum of their losses, nan where numbers overflow.

    ``shares`` are what every reference to a feature pays of its l2 penalty: the penalty over the references, so that
    all together pay it once and only the weights of a sequence's own features move.
    """
    total = 0.0
    for index in range(len(order)):
        s = order[index]
        a, b = offsets[s], offsets[s + 1]
        if a == b:
            continue
        loss = _gradient(tokens, edges, a, b, labels, n_labels, width, weights, 1.0, scratch)
        if math.isnan(loss):
            return np.nan
        weight = sequence_weights[s] if len(sequence_weights) else 1.0
        total += weight * loss
        for t in range(a, b):
            at = (t - a) * width
            for r in range(tokens.row_offsets[t], tokens.row_offsets[t + 1]):
                row = np.int64(tokens.rows[r])
                value = weight * (tokens.row_values[r] if len(tokens.row_values) else 1.0)
                for k in range(n_labels):
                    c = row * width + k
                    if row_mask[c]:
                        g = value * scratch.scores[at + k] + shares.rows[row] * weights.rows[c]
                        _adapt(weights.rows, squares.rows, c, g, rate)
            for r in range(tokens.pair_offsets[t], tokens.pair_offsets[t + 1]):
                p = tokens.pair_weight[r]
                value = weight * (tokens.pair_values[r] if len(tokens.pair_values) else 1.0)
                g = value * scratch.scores[at + tokens.pair_label[r]] + shares.pairs[p] * weights.pairs[p]
                _adapt(weights.pairs, squares.pairs, p, g, rate)
            if len(edges.offsets) and t > a:
                own = (t - a - 1) * width * width
                for r in range(edges.offsets[t], edges.offsets[t + 1]):
                    e = edges.weight[r]
                    value = weight * (edges.values[r] if len(edges.values) else 1.0)
                    g = value * scratch.steps[own + edges.cell[r]] + shares.edges[e] * weights.edges[e]
                    _adapt(weights.edges, squares.edges, e, g, rate)
        for c in range(width * width):
            if move_mask[c]:
                g = weight * scratch.counts[c] + shares.moves[0] * weights.moves[c]
                _adapt(weights.moves, squares.moves, c, g, rate)
    return total


@kernel
def _touch(cell, value, delta, touched, n):
    """Add to a cell of a sparse difference; how many cells it has now."""
    if value != 0.0:
        if not delta.mark[cell]:
            delta.mark[cell] = 1
            touched[n] = cell
            n += 1
        delta.value[cell] += value
    return n


class Delta(NamedTuple):
    """A sparse vector over the cells of flat weights: values, and one where a cell is in the list of those touched."""

    value: np.ndarray
    mark: np.ndarray


@kernel
def _difference(tokens, edges, a, b, labels, path, width, starts, mask, delta, touched):
    """The features of the true labels less those of a path, as cells of the flat weights; how many there are."""
    n = 0
    for t in range(a, b):
        good, bad = labels[t], path[t - a]
        if good != bad:
            for r in range(tokens.row_offsets[t], tokens.row_offsets[t + 1]):
                base = np.int64(tokens.rows[r]) * width
                value = tokens.row_values[r] if len(tokens.row_values) else 1.0
                if mask[base + good]:
                    n = _touch(base + good, value, delta, touched, n)
                if mask[base + bad]:
                    n = _touch(base + bad, -value, delta, touched, n)
            for r in range(tokens.pair_offsets[t], tokens.pair_offsets[t + 1]):
                value = tokens.pair_values[r] if len(tokens.pair_values) else 1.0
                cell = starts[0] + np.int64(tokens.pair_weight[r])
                if tokens.pair_label[r] == good:
                    n = _touch(cell, value, delta, touched, n)
                elif tokens.pair_label[r] == bad:
                    n = _touch(cell, -value, delta, touched, n)
        if t > a:
            right = labels[t - 1] * width + labels[t]
            wrong = path[t - a - 1] * width + path[t - a]
            if right != wrong:
                if mask[starts[1] + right]:
                    n = _touch(starts[1] + right, 1.0, delta, touched, n)
                if mask[starts[1] + wrong]:
                    n = _touch(starts[1] + wrong, -1.0, delta, touched, n)
                if len(edges.offsets):
                    for r in range(edges.offsets[t], edges.offsets[t + 1]):
                        value = edges.values[r] if len(edges.values) else 1.0
                        cell = starts[2] + np.int64(edges.weight[r])
                        if edges.cell[r] == right:
                            n = _touch(cell, value, delta, touched, n)
                        elif edges.cell[r] == wrong:
                            n = _touch(cell, -value, delta, touched, n)
    return n


@kernel
def margin_pass(
    tokens, edges, offsets, order, labels, sequence_weights, n_labels, width, starts, flat, mask, sums, variances, kind,
    margin, step, state, delta, touched, scratch, best, origin, path,
):  # fmt: skip
    """Perceptron (kind 0), passive-aggressive I and II (1, 2) or AROW (3) over sequences in an order; their losses.

    ``flat`` holds all weights: rows, then from ``starts`` on pairs, transitions and edges. The perceptron moves by the
    features of the true labels less those of the best path; the others only as far as needed for a margin of one
    (``margin`` 0) or of the root of the number of wrong labels (1). With the number itself (2), they also move where
    the best path is right but some other comes within its margin.
    ``sums`` gain each move times the number of sequences before it, from which the average of all weights so far
    follows. ``state`` is that number.
    """
    total = 0.0
    rows, pairs = flat[: starts[0]], flat[starts[0] : starts[1]]
    moves, edge_weights = flat[starts[1] : starts[2]], flat[starts[2] :]
    for index in range(len(order)):
        s = order[index]
        a, b = offsets[s], offsets[s + 1]
        n = b - a
        state[0] += 1.0
        if n == 0:
            continue
        label_scores(tokens, a, b, n_labels, width, rows, pairs, scratch.scores)
        own = 0.0
        for i in range(n):
            own += scratch.scores[i * width + labels[a + i]]
            if i > 0:
                own += moves[labels[a + i - 1] * width + labels[a + i]]
            if kind > 0 and margin == 2:
                for k in range(n_labels):
                    if k != labels[a + i]:
                        scratch.scores[i * width + k] += 1.0
        if len(edges.offsets):
            edge_scores(edges, a, b, width, moves, edge_weights, scratch.steps)
            for i in range(1, n):
                c = labels[a + i - 1] * width + labels[a + i]
                own += scratch.steps[(i - 1) * width * width + c] - moves[c]
            top = best_path(scratch.scores, n, n_labels, width, scratch.steps, width * width, best, origin, path)
        else:
            top = best_path(scratch.scores, n, n_labels, width, moves, np.int64(0), best, origin, path)
        weight = sequence_weights[s] if len(sequence_weights) else 1.0
        loss = top - own
        wrong = 0
        for i in range(n):
            if path[i] != labels[a + i]:
                wrong += 1
        if wrong == 0 or weight == 0.0:
            continue
        if margin < 2:
            loss += math.sqrt(wrong) if margin == 1 else 1.0
        total += weight * (float(wrong) if kind == 0 else loss)
        m = _difference(tokens, edges, a, b, labels, path, width, starts, mask, delta, touched)
        size = 0.0
        for i in range(m):
            d = delta.value[touched[i]]
            size += d * d * (variances[touched[i]] if kind == 3 else 1.0)
        if kind == 0:
            move = weight
        elif kind == 1:
            move = min(step * weight, loss / size) if size > 0.0 else 0.0
        elif kind == 2:
            move = loss / (size + 0.5 / (step * weight))
        else:
            move = loss / (size + 1.0 / (step * weight))
        for i in range(m):
            c = touched[i]
            d = delta.value[c]
            delta.value[c] = 0.0
            delta.mark[c] = 0
            if kind == 3:
                flat[c] += move * variances[c] * d
                variances[c] = 1.0 / (1.0 / variances[c] + d * d * step * weight)
            else:
                flat[c] += move * d
                sums[c] += (state[0] - 1.0) * move * d
    return total
