"""Ascent of the dual of multiclass SVMs, an example at a time (Crammer and Singer 2001; Keerthi et al. 2008).

Example i has masses over all classes, its own among them, that add up to its cost, and the weights are
``W = sum_i x_i (cost_i e_{y_i} - masses_i)'``. With all others fixed, the dual is a quadratic of the masses of one
example whose curvature is ``|x_i|^2`` in every direction: the best masses are what is nearest, on the simplex of size
cost, to ``masses + (losses + scores) / |x|^2``.

Invariant: masses are at least 0 and add up to costs, and the dual never falls. Free to change: the order of examples.
"""

from __future__ import annotations

import numpy as np

from markovfield.kernels.compiler import kernel

# Masses that move by a smaller part of the cost stay.
SAME = 1e-14

__all__ = ["dense_sweep", "gram_sweep", "hinges", "onto_simplex", "sparse_sweep"]


@kernel
def onto_simplex(values, size, scratch):
    """The point nearest to some values among those that are at least 0 and add up to ``size``, in place.

    The level that is taken off is found by dropping, again and again, values below it (Michelot 1986).
    """
    n = len(values)
    total = 0.0
    for k in range(n):
        scratch[k] = values[k]
        total += values[k]
    level, left = (total - size) / n, n
    while True:
        kept, total = 0, 0.0
        for k in range(left):
            if scratch[k] > level:
                scratch[kept] = scratch[k]
                total += scratch[k]
                kept += 1
        if kept in (left, 0):
            break
        left = kept
        level = (total - size) / left
    for k in range(n):
        values[k] = max(values[k] - level, 0.0)


@kernel
def _new_masses(scores, label, losses, masses, square, cost, found, scratch):
    """Masses of the greatest dual, into ``found``; by which part of the cost they are others."""
    n = len(scores)
    if square > 0.0:
        for k in range(n):
            found[k] = masses[k] + (losses[label, k] + scores[k]) / square
        onto_simplex(found, cost, scratch)
    else:
        # Nothing is known of the example: all mass to the class of greatest loss.
        best = 0
        for k in range(n):
            if losses[label, k] > losses[label, best]:
                best = k
        for k in range(n):
            found[k] = 0.0
        found[best] = cost
    change = 0.0
    for k in range(n):
        change = max(change, abs(found[k] - masses[k]))
    return change / cost


@kernel
def sparse_sweep(order, offsets, columns, values, labels, losses, costs, squares, masses, w, moved):
    """Some examples once, in their order. Inputs are sparse rows; ``w`` is ``float64[n_features, n_classes]``.

    Which part of its cost the k-th example moved is put into ``moved[k]``.
    """
    n_classes = masses.shape[1]
    scores, found, scratch = np.empty(n_classes), np.empty(n_classes), np.empty(n_classes)
    for position in range(len(order)):
        i = order[position]
        moved[position] = 0.0
        if costs[i] <= 0.0:
            continue
        scores[:] = 0.0
        for j in range(offsets[i], offsets[i + 1]):
            row, x = columns[j], values[j]
            for k in range(n_classes):
                scores[k] += x * w[row, k]
        moved[position] = _new_masses(scores, labels[i], losses, masses[i], squares[i], costs[i], found, scratch)
        if moved[position] > SAME:
            for k in range(n_classes):
                scores[k] = masses[i, k] - found[k]
                masses[i, k] = found[k]
            for j in range(offsets[i], offsets[i + 1]):
                row, x = columns[j], values[j]
                for k in range(n_classes):
                    w[row, k] += x * scores[k]


@kernel
def dense_sweep(order, inputs, labels, losses, costs, squares, masses, w, moved):
    """The same of inputs as a matrix."""
    n_classes = masses.shape[1]
    scores, found, scratch = np.empty(n_classes), np.empty(n_classes), np.empty(n_classes)
    for position in range(len(order)):
        i = order[position]
        moved[position] = 0.0
        if costs[i] <= 0.0:
            continue
        scores[:] = 0.0
        for j in range(inputs.shape[1]):
            x = inputs[i, j]
            if x != 0.0:
                for k in range(n_classes):
                    scores[k] += x * w[j, k]
        moved[position] = _new_masses(scores, labels[i], losses, masses[i], squares[i], costs[i], found, scratch)
        if moved[position] > SAME:
            for k in range(n_classes):
                scores[k] = masses[i, k] - found[k]
                masses[i, k] = found[k]
            for j in range(inputs.shape[1]):
                x = inputs[i, j]
                if x != 0.0:
                    for k in range(n_classes):
                        w[j, k] += x * scores[k]


@kernel
def gram_sweep(order, gram, scores, labels, losses, costs, masses):
    """Examples of a block by their inner products ``float64[n, n]``; their scores are kept up to date."""
    n, n_classes = masses.shape
    found, scratch = np.empty(n_classes), np.empty(n_classes)
    for i in order:
        if costs[i] <= 0.0:
            continue
        if _new_masses(scores[i], labels[i], losses, masses[i], gram[i, i], costs[i], found, scratch) > SAME:
            for k in range(n_classes):
                found[k], masses[i, k] = masses[i, k] - found[k], found[k]
            for j in range(n):
                for k in range(n_classes):
                    scores[j, k] += gram[j, i] * found[k]


@kernel
def hinges(scores, labels, losses, found):
    """``max_k (loss + score of k) - score of the label`` of each example."""
    for i in range(len(labels)):
        best = -np.inf
        for k in range(scores.shape[1]):
            best = max(best, losses[labels[i], k] + scores[i, k])
        found[i] = best - scores[i, labels[i]]
