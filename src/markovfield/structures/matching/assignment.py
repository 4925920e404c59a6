"""The best matching: an assignment problem, or an integer program where rows have several links or pairs count."""

from __future__ import annotations

import numpy as np

from markovfield.arrays import BoolArray, FloatArray, IntArray
from markovfield.exceptions import ModelError

__all__ = ["best_assignment", "best_program"]


def best_assignment(links: FloatArray, rows: FloatArray, columns: FloatArray) -> BoolArray | None:
    """Which links the best matching has, with at most one for each row and column; None where none is possible.

    Examples
    --------
    >>> best_assignment(np.array([[1.0, 3.0], [0.0, 2.5]]), np.zeros(2), np.zeros(2)).astype(int).tolist()
    [[1, 0], [0, 1]]
    """
    from scipy.optimize import linear_sum_assignment

    m, n = links.shape
    if np.isneginf(rows).all() and np.isneginf(columns).all():
        table = links
        if m != n:
            return None
    elif np.isfinite(columns).all():
        # Columns without a link are the rule, and links pay for taking one; each row may stay alone.
        table = np.concatenate([links - columns, np.full((m, m), -np.inf)], axis=1)
        table[np.arange(m), n + np.arange(m)] = rows
    else:
        table = np.full((m + n, n + m), -np.inf)
        table[:m, :n] = links
        table[np.arange(m), n + np.arange(m)] = rows
        table[m + np.arange(n), np.arange(n)] = columns
        table[m:, n:] = 0.0
    found = np.zeros((m, n), bool)
    if not m:
        return found if np.isfinite(columns).all() else None
    try:
        i, j = linear_sum_assignment(table, maximize=True)
    except ValueError:
        return None
    real = (i < m) & (j < n)
    found[i[real], j[real]] = True
    return found


def best_program(
    links: FloatArray,
    rows: FloatArray,
    columns: FloatArray,
    *,
    forced: BoolArray | None = None,
    row_limits: IntArray,
    column_limits: IntArray,
    pairs: IntArray | None = None,
    pair_scores: FloatArray | None = None,
    time_limit: float | None = None,
) -> tuple[BoolArray, float, float] | None:
    """The same by an integer program (HiGHS): links, their score, and a proven upper bound; None where impossible.

    Parameters
    ----------
    forced
        Links that must be there.
    row_limits, column_limits
        How many links each may have.
    pairs
        ``int64[p, 4]``: rows and columns of two links (i, j, k, l), whose score counts where both are there.
    """
    from scipy import optimize, sparse

    m, n = links.shape
    p = 0 if pairs is None else len(pairs)
    x = np.arange(m * n).reshape(m, n)
    size = m * n + m + n + p
    gains = np.concatenate([links.ravel(), rows, columns, np.zeros(0) if pair_scores is None else pair_scores])
    low, high = np.zeros(size), np.ones(size)
    high[np.isneginf(gains)] = 0.0
    if forced is not None:
        if (high[: m * n][forced.ravel()] == 0).any():
            return None
        low[: m * n][forced.ravel()] = 1.0
    entries: list[tuple[IntArray, IntArray]] = []  # variables of a constraint and their factors
    lower: list[float] = []
    upper: list[float] = []

    def constrain(variables: IntArray, factors: IntArray, least: float, most: float) -> None:
        entries.append((variables, factors))
        lower.append(least)
        upper.append(most)

    for lines, limits, first in ((x, row_limits, m * n), (x.T, column_limits, m * n + m)):
        for k, line in enumerate(lines):
            limit = int(limits[k])
            constrain(line, np.ones(len(line), np.int64), -np.inf, limit)
            # Alone if and only if there is no link: limit * (1 - alone) >= links >= 1 - alone.
            both, ones = np.append(line, first + k), np.ones(len(line) + 1, np.int64)
            constrain(both, ones, 1.0, np.inf)
            constrain(both, np.append(ones[:-1], limit), -np.inf, limit)
    if pairs is not None:
        for k, (i, j, a, b) in enumerate(pairs.tolist()):
            own, one, other = m * n + m + n + k, x[i, j], x[a, b]
            constrain(np.array([own, one]), np.array([1, -1]), -np.inf, 0.0)
            constrain(np.array([own, other]), np.array([1, -1]), -np.inf, 0.0)
            constrain(np.array([own, one, other]), np.array([1, -1, -1]), -1.0, np.inf)
    constraint = np.repeat(np.arange(len(entries)), [len(e[0]) for e in entries])
    matrix = sparse.csr_array(
        (np.concatenate([e[1] for e in entries]), (constraint, np.concatenate([e[0] for e in entries]))),
        shape=(len(entries), size),
    )
    finite = np.where(np.isfinite(gains), gains, 0.0)
    found = optimize.milp(
        -finite,
        integrality=np.ones(size),
        bounds=optimize.Bounds(low, high),
        constraints=optimize.LinearConstraint(matrix, np.array(lower), np.array(upper)),
        # Without this, what is within a ten-thousandth of the best counts as the best.
        options={"mip_rel_gap": 0.0, **({} if time_limit is None else {"time_limit": time_limit})},
    )
    if found.status == 2:
        return None
    if found.x is None:
        raise ModelError(f"HiGHS found no matching in time: {found.message}")
    chosen = found.x.round()
    bound = -found.mip_dual_bound if found.mip_dual_bound is not None else -found.fun
    return chosen[: m * n].reshape(m, n) > 0, float(chosen @ finite), float(bound)
