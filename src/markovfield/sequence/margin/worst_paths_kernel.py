"""Loss-augmented paths of linear chains, and the features that tell them from the truth.

Invariant: scores ``[token * width + label]`` as in `scores_kernel`; what is added is ``[token * n_labels + label]``,
empty where nothing is. A feature's place in the vector of weights is found by ``places`` of the cells of rows and of
transitions, -1 where a cell has no weight. ``scratch`` is zero between calls. Free to change: the order of the columns
of a plane.
"""

from __future__ import annotations

import numpy as np

from markovfield.kernels.compiler import kernel
from markovfield.sequence.chain.paths_kernel import best_path
from markovfield.sequence.chain.scores_kernel import edge_scores, label_scores, mask_scores

__all__ = ["counted_path", "path_differences", "worst_paths"]


@kernel
def worst_paths(
    tokens, edges, offsets, first, last, n_labels, width, row_weights, pair_weights, edge_weights, transitions, masks,
    added, scores, origin, moves, paths, values,
):  # fmt: skip
    """The path of highest score and cost of sequences ``first`` to ``last``; see `best_paths` for the arguments.

    ``added``, ``paths`` and ``values`` start with the first of these sequences.
    """
    best = np.empty(width)
    begin = offsets[first]
    for s in range(first, last):
        a, b = offsets[s], offsets[s + 1]
        values[s - first] = 0.0
        if a == b:
            continue
        label_scores(tokens, a, b, n_labels, width, row_weights, pair_weights, scores)
        if len(added):
            for t in range(a, b):
                for k in range(n_labels):
                    scores[(t - a) * width + k] += added[(t - begin) * n_labels + k]
        mask_scores(masks, a, b, n_labels, width, scores)
        path = paths[a - begin : b - begin]
        if len(edges.offsets):
            edge_scores(edges, a, b, width, transitions, edge_weights, moves)
            values[s - first] = best_path(scores, b - a, n_labels, width, moves, width * width, best, origin, path)
        else:
            values[s - first] = best_path(scores, b - a, n_labels, width, transitions, np.int64(0), best, origin, path)


@kernel
def _put(place, value, scratch, seen, columns, n):
    """Add to a sparse row; its new length. ``columns`` lists the places that ``seen`` marks."""
    if place < 0:
        return n
    if not seen[place]:
        seen[place] = True
        columns[n] = place
        n += 1
    scratch[place] += value
    return n


@kernel
def _token(tokens, t, label, sign, width, places, pair_first, scratch, seen, columns, n):
    """Add the features of a token with some label."""
    for r in range(tokens.row_offsets[t], tokens.row_offsets[t + 1]):
        value = tokens.row_values[r] if len(tokens.row_values) else 1.0
        n = _put(places[np.int64(tokens.rows[r]) * width + label], sign * value, scratch, seen, columns, n)
    for r in range(tokens.pair_offsets[t], tokens.pair_offsets[t + 1]):
        if tokens.pair_label[r] == label:
            value = tokens.pair_values[r] if len(tokens.pair_values) else 1.0
            n = _put(pair_first + np.int64(tokens.pair_weight[r]), sign * value, scratch, seen, columns, n)
    return n


@kernel
def _step(edges, t, cell, sign, places, edge_first, scratch, seen, columns, n):
    """Add the features of the step to a token."""
    n = _put(places[cell], sign, scratch, seen, columns, n)
    if len(edges.offsets):
        for r in range(edges.offsets[t], edges.offsets[t + 1]):
            if edges.cell[r] == cell:
                value = edges.values[r] if len(edges.values) else 1.0
                n = _put(edge_first + np.int64(edges.weight[r]), sign * value, scratch, seen, columns, n)
    return n


@kernel
def path_differences(
    tokens, edges, offsets, first, last, width, row_places, step_places, pair_first, edge_first, truth, paths,
    scratch, seen, ends, columns, values,
):  # fmt: skip
    """Features of the truth less those of paths, one sparse row for each sequence; how long all rows are.

    ``truth`` and ``paths`` start with the first of the sequences ``first`` to ``last``. The row of the i-th ends at
    ``ends[i + 1]``; ``columns`` and ``values`` need room for every reference of a wrong token, twice, and four for its
    steps. Where they have none, nothing but the room that is needed is worked out.
    """
    begin = offsets[first]
    room, n = 0, 0
    for s in range(first, last):
        a, b = offsets[s], offsets[s + 1]
        start = n
        for t in range(a, b):
            i = t - begin
            own, other = truth[i], paths[i]
            moved = t > a and (truth[i - 1] != paths[i - 1] or own != other)
            if not len(columns):
                if own != other:
                    room += 2 * (tokens.row_offsets[t + 1] - tokens.row_offsets[t])
                    room += 2 * (tokens.pair_offsets[t + 1] - tokens.pair_offsets[t])
                if moved:
                    room += 2
                    if len(edges.offsets):
                        room += 2 * (edges.offsets[t + 1] - edges.offsets[t])
                continue
            row = columns[start:]
            n -= start
            if own != other:
                n = _token(tokens, t, own, 1.0, width, row_places, pair_first, scratch, seen, row, n)
                n = _token(tokens, t, other, -1.0, width, row_places, pair_first, scratch, seen, row, n)
            if moved:
                cell = np.int64(truth[i - 1]) * width + own
                n = _step(edges, t, cell, 1.0, step_places, edge_first, scratch, seen, row, n)
                cell = np.int64(paths[i - 1]) * width + other
                n = _step(edges, t, cell, -1.0, step_places, edge_first, scratch, seen, row, n)
            n += start
        if not len(columns):
            continue
        # What cancels is dropped.
        kept = start
        for k in range(start, n):
            place = columns[k]
            if scratch[place] != 0.0:
                columns[kept], values[kept] = place, scratch[place]
                kept += 1
            scratch[place], seen[place] = 0.0, False
        n = kept
        ends[s - first + 1] = n
    return n if len(columns) else room


@kernel
def counted_path(scores, n, n_labels, width, transitions, stride, truth, negative, costs, path):
    """The path of highest score and cost of counts, ``costs[right, predicted]``, inf where not allowed; its value.

    A dynamic program over labels and both counts: time ``n^2 * n_true * n_labels^2``, and as many numbers without one
    factor of ``n_labels``. Labels other than ``negative`` are predicted; they are right where they are the truth.
    """
    n_right = costs.shape[0]
    size = n_right * (n + 1)
    best = np.full((n, n_labels, size), -np.inf)
    origin = np.zeros((n, n_labels, size), np.int32)
    for i in range(n):
        for k in range(n_labels):
            own = scores[i * width + k]
            if own == -np.inf:
                continue
            # How far the counts of a step move: right, then predicted.
            moved = (1 if k != negative else 0) + (n + 1 if k != negative and k == truth[i] else 0)
            if i == 0:
                if moved < size:
                    best[0, k, moved] = own
                continue
            for j in range(n_labels):
                step = own + transitions[(i - 1) * stride + j * width + k]
                if step == -np.inf:
                    continue
                for c in range(size - moved):
                    value = best[i - 1, j, c] + step
                    if value > best[i, k, c + moved]:
                        best[i, k, c + moved] = value
                        origin[i, k, c + moved] = j
    top, label, count = -np.inf, 0, 0
    for k in range(n_labels):
        for c in range(size):
            cost = costs[c // (n + 1), c % (n + 1)]
            if cost == np.inf:
                continue
            if best[n - 1, k, c] + cost > top:
                top, label, count = best[n - 1, k, c] + cost, k, c
    for i in range(n - 1, -1, -1):
        path[i] = label
        before = origin[i, label, count]
        count -= (1 if label != negative else 0) + (n + 1 if label != negative and label == truth[i] else 0)
        label = before
    return top
