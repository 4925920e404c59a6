"""The best ranking: by a sort where scores allow it, otherwise by an assignment."""

from __future__ import annotations

import numpy as np

from markovfield.arrays import FloatArray, IntArray

__all__ = ["best_order"]

# Relative to the largest score: what a sum of two scores is rounded by, a few times.
ROUNDING = 1e-14


def best_order(scores: FloatArray, unranked: FloatArray | None, copies: int = 1) -> IntArray | None:
    """``int64[k]``: the items at positions 0, 1, ... of the best ranking; None where none is possible.

    Parameters
    ----------
    scores
        ``float64[n, m]``: of item i at position p. The last position is there ``copies`` times.
    unranked
        ``float64[n]``: of items that stand nowhere; None where all stand somewhere.

    Notes
    -----
    Where items can be sorted such that ``s[i, p] + s[j, q] >= s[i, q] + s[j, p]`` for all i before j and p before q
    (Monge's condition, which is enough for neighbours), that order is the best one (Hoffman 1963); products of a score
    of the item and a discount of the position are of this kind (the rearrangement inequality).

    Examples
    --------
    >>> best_order(np.outer([1.0, 3.0, 2.0], [1.0, 0.5]), np.zeros(3)).tolist()
    [1, 2]
    >>> best_order(np.array([[5.0, 4.0], [4.0, 0.0]]), None).tolist()
    [1, 0]
    """
    n, m = scores.shape
    k = m - 1 + copies
    if k > n:
        return None
    table = scores if unranked is None else np.column_stack([scores, unranked])
    if np.isfinite(table).all():
        order = np.argsort(table[:, -1] - table[:, 0], kind="stable")
        ordered = table[order]
        crossed = ordered[:-1, 1:] + ordered[1:, :-1] - ordered[:-1, :-1] - ordered[1:, 1:]
        if crossed.max(initial=0.0) <= ROUNDING * np.abs(table).max(initial=0.0):
            return order[:k]
    return _assigned(scores, unranked, copies)


def _assigned(scores: FloatArray, unranked: FloatArray | None, copies: int) -> IntArray | None:
    from scipy.optimize import linear_sum_assignment

    gains = np.concatenate([scores, np.repeat(scores[:, -1:], copies - 1, axis=1)], axis=1)
    n, k = gains.shape
    if unranked is not None:
        if np.isfinite(unranked).all():
            gains = gains - unranked[:, None]
        else:
            gains = np.concatenate([gains, np.repeat(unranked[:, None], n - k, axis=1)], axis=1)
    try:
        items, positions = linear_sum_assignment(gains, maximize=True)
    except ValueError:
        return None
    found = np.empty(gains.shape[1], np.int64)
    found[positions] = items
    return found[:k]
