"""Scores of labels that are sums of weights of features alone and of pairs of a feature and a label; and the adjoint.

Row r has the features ``features[rows[r] : rows[r + 1]]``; feature f goes with the labels ``labels[starts[f] : starts[f
+ 1]]``, whose weights follow those of the features themselves; label l stands in column ``column[l]`` of the scores, or
in none where that is -1.
"""

from __future__ import annotations

from markovfield.kernels.compiler import kernel

__all__ = ["pair_counts", "pair_scores"]


@kernel
def pair_scores(rows, features, starts, labels, column, n_columns, w, scores):
    """Scores ``[n_rows * n_columns]`` of weights ``w``."""
    n_features = len(starts) - 1
    for r in range(len(rows) - 1):
        own = scores[r * n_columns : (r + 1) * n_columns]
        shared = 0.0
        for x in range(rows[r], rows[r + 1]):
            shared += w[features[x]]
        for c in range(n_columns):
            own[c] = shared
        for x in range(rows[r], rows[r + 1]):
            f = features[x]
            for k in range(starts[f], starts[f + 1]):
                c = column[labels[k]]
                if c >= 0:
                    own[c] += w[n_features + k]


@kernel
def pair_counts(rows, features, starts, labels, column, n_columns, counts, found):
    """Add the features of counts ``[n_rows * n_columns]`` of scores to ``found``."""
    n_features = len(starts) - 1
    for r in range(len(rows) - 1):
        own = counts[r * n_columns : (r + 1) * n_columns]
        shared = 0.0
        used = False
        for c in range(n_columns):
            shared += own[c]
            used = used or own[c] != 0.0
        if not used:
            continue
        for x in range(rows[r], rows[r + 1]):
            f = features[x]
            found[f] += shared
            for k in range(starts[f], starts[f + 1]):
                c = column[labels[k]]
                if c >= 0:
                    found[n_features + k] += own[c]
