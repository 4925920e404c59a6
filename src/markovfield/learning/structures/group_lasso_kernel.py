"""Full conditionals of a pairwise model: their losses, and coordinate descent on penalised quadratic models.

A variable of K states is coded by its row of an orthonormal contrast matrix ``C[K, a]``, a = K - 1, whose columns add
up to zero. The parameters of node s are ``theta_s[f, a]``: its own term first, then a row for each column of each of
its neighbours; all nodes lie one after another in one array. A group is a block of these: rows ``first`` onwards of
node s and, where both directions share their numbers, the transposed block from row ``second`` of node t (-1: no such
block)."""

from __future__ import annotations

import math

import numpy as np

from markovfield.kernels.compiler import kernel
from markovfield.kernels.exponential import exp_scalar
from markovfield.kernels.logarithm import log_scalar

__all__ = ["descend", "group_norms", "group_slopes", "node_terms"]

# Rows at a time: what a node of some ten neighbours reads of them stays in the fastest cache.
CHUNK = 256


@kernel
def _binary_terms(scores, codes, weights, residuals, curvatures):
    """`_terms` of two states: the log-odds are the square root of 2 times the score."""
    root = math.sqrt(2.0)
    total = 0.0
    for r in range(len(codes)):
        margin = root * scores[r] * (2.0 * codes[r] - 1.0)
        small = exp_scalar(-abs(margin))
        total += weights[r] * (log_scalar(1.0 + small) + max(-margin, 0.0))
        right = 1.0 / (1.0 + small)  # probability of the likelier state
        wrong = right * small
        missed = wrong if margin >= 0.0 else right
        residuals[r] = root * weights[r] * missed * (2.0 * codes[r] - 1.0)
        curvatures[r] = 2.0 * weights[r] * right * wrong
    return total


@kernel
def _terms(scores, codes, weights, contrasts, low, high, residuals, curvatures):
    """Minus the log-probability of a variable's states in rows ``low`` to ``high``, and its derivatives by the scores.

    ``scores[:, r]`` and ``curvatures[:, r]`` are of row ``low + r``: log-potentials are ``contrasts @ scores``, second
    derivatives by scores i <= j come in row order. ``residuals``, of all rows, are minus the first derivatives. The
    scores are overwritten.
    """
    a, n = len(scores), high - low
    if a == 1:
        return _binary_terms(
            scores[0, :n], codes[low:high], weights[low:high], residuals[0, low:high], curvatures[0, :n]
        )
    # States outside, rows inside: the loops over rows are vectorised.
    p, top, mass = np.empty((a + 1, n)), np.full(n, -np.inf), np.zeros(n)
    for x in range(a + 1):
        line = p[x]
        line[:] = 0.0
        for i in range(a):
            value, score = contrasts[x, i], scores[i]
            for r in range(n):
                line[r] += value * score[r]
        for r in range(n):
            top[r] = max(top[r], line[r])
    total = 0.0
    for r in range(n):
        total += weights[low + r] * (top[r] - p[codes[low + r], r])
    for x in range(a + 1):
        line = p[x]
        for r in range(n):
            line[r] = exp_scalar(line[r] - top[r])
            mass[r] += line[r]
    for r in range(n):
        total += weights[low + r] * log_scalar(mass[r])
        mass[r] = 1.0 / mass[r]
    for x in range(a + 1):
        line = p[x]
        for r in range(n):
            line[r] *= mass[r]
    for i in range(a):
        means = scores[i]  # no longer needed
        means[:n] = 0.0
        for x in range(a + 1):
            value, line = contrasts[x, i], p[x]
            for r in range(n):
                means[r] += value * line[r]
        for r in range(n):
            residuals[i, low + r] = weights[low + r] * (contrasts[codes[low + r], i] - means[r])
    at = 0
    for i in range(a):
        for j in range(i, a):
            curvature, first, second = curvatures[at], scores[i], scores[j]
            for r in range(n):
                curvature[r] = -first[r] * second[r]
            for x in range(a + 1):
                value, line = contrasts[x, i] * contrasts[x, j], p[x]
                if value != 0.0:
                    for r in range(n):
                        curvature[r] += value * line[r]
            for r in range(n):
                curvature[r] *= weights[low + r]
            at += 1
    return total


@kernel
def _products(left, columns, features, low, high, square):
    """Add the products of rows of ``left`` with columns of the features (the first is one) to a symmetric matrix.

    Four columns at a time: a row of ``left`` is then read once for four products.
    """
    n = high - low
    for i in range(len(left)):
        row = left[i]
        total = 0.0
        for r in range(n):
            total += row[r]
        square[i, 0] += total
        j = 1
        while j + 3 <= i:
            p, q = features[columns[j - 1], low:high], features[columns[j], low:high]
            u, v = features[columns[j + 1], low:high], features[columns[j + 2], low:high]
            a, b, c, d = 0.0, 0.0, 0.0, 0.0
            for r in range(n):
                a += row[r] * p[r]
                b += row[r] * q[r]
                c += row[r] * u[r]
                d += row[r] * v[r]
            square[i, j] += a
            square[i, j + 1] += b
            square[i, j + 2] += c
            square[i, j + 3] += d
            j += 4
        while j <= i:
            p = features[columns[j - 1], low:high]
            a = 0.0
            for r in range(n):
                a += row[r] * p[r]
            square[i, j] += a
            j += 1


@kernel
def node_terms(features, columns, theta, codes, weights, contrasts, residuals, slope, hessian):
    """The loss of one node, its gradient and its Hessian.

    Parameters
    ----------
    features
        ``float64[D, n]``: contrasts of all variables.
    columns
        ``int64[f - 1]``: which of them the node reads.
    theta
        ``float64[f, a]``: its parameters.
    codes, weights
        ``int16[n]`` and ``float64[n]``: its states, and how often each row counts.
    contrasts
        ``float64[a + 1, a]``: row x scores give the log-potential of state x.
    residuals
        ``float64[a, n]``, written: minus the derivatives by the scores.
    slope
        ``float64[f, a]``, written: the gradient.
    hessian
        ``float64[f, a, f, a]``, written.
    """
    n = features.shape[1]
    f, a = theta.shape
    scores, curvatures = np.empty((a, CHUNK)), np.empty((a * (a + 1) // 2, CHUNK))
    left = np.empty((f, CHUNK))
    squares = np.zeros((a * (a + 1) // 2, f, f))
    slope[:] = 0.0
    total = 0.0
    for low in range(0, n, CHUNK):
        high = min(low + CHUNK, n)
        m = high - low
        for i in range(a):
            line = scores[i]
            for r in range(m):
                line[r] = theta[0, i]
            for j in range(1, f):
                column, value = features[columns[j - 1], low:high], theta[j, i]
                for r in range(m):
                    line[r] += value * column[r]
        total += _terms(scores, codes, weights, contrasts, low, high, residuals, curvatures)
        for i in range(a):
            line = residuals[i, low:high]
            for r in range(m):
                slope[0, i] -= line[r]
            for j in range(1, f):
                column = features[columns[j - 1], low:high]
                value = 0.0
                for r in range(m):
                    value += line[r] * column[r]
                slope[j, i] -= value
        for pair in range(len(curvatures)):
            line = curvatures[pair]
            for r in range(m):
                left[0, r] = line[r]
            for j in range(1, f):
                column, row = features[columns[j - 1], low:high], left[j]
                for r in range(m):
                    row[r] = line[r] * column[r]
            _products(left, columns, features, low, high, squares[pair])
    pair = 0
    for i in range(a):
        for j in range(i, a):
            for x in range(f):
                for y in range(x + 1):
                    value = squares[pair, x, y]
                    hessian[x, i, y, j] = hessian[y, i, x, j] = value
                    hessian[x, j, y, i] = hessian[y, j, x, i] = value
            pair += 1
    return total


@kernel
def group_norms(theta, starts, widths, groups, norms):
    """Frobenius norm of each group's block."""
    for g in range(len(groups)):
        a, b = widths[groups[g, 0]], widths[groups[g, 1]]
        at = starts[groups[g, 0]] + groups[g, 2] * a
        total = 0.0
        for i in range(a * b):
            total += theta[at + i] * theta[at + i]
        norms[g] = math.sqrt(total)


@kernel
def group_slopes(theta, slope, starts, widths, groups, penalties, ridges):
    """The largest norm of a smallest subgradient: of the groups, and of the nodes' own terms.

    ``slope`` is the gradient of the loss. Zero groups may have a gradient up to their penalty; of others it must cancel
    the penalty's.
    """
    worst = 0.0
    for s in range(len(widths)):
        total = 0.0
        for i in range(starts[s], starts[s] + widths[s]):
            total += (slope[i] + ridges[s] * theta[i]) ** 2
        worst = max(worst, math.sqrt(total))
    for g in range(len(groups)):
        s, t, first, second = groups[g, 0], groups[g, 1], groups[g, 2], groups[g, 3]
        a, b = widths[s], widths[t]
        at, other = starts[s] + first * a, starts[t] + second * b
        norm = 0.0
        for i in range(a * b):
            norm += theta[at + i] ** 2
        norm = math.sqrt(norm)
        pull = penalties[g] / norm if norm > 0.0 else 0.0
        total = 0.0
        for j in range(b):
            for i in range(a):
                here = at + j * a + i
                value = slope[here] + pull * theta[here]
                if second >= 0:
                    value += slope[other + i * b + j]
                total += value * value
        total = math.sqrt(total)
        worst = max(worst, total if norm > 0.0 else total - penalties[g])
    return worst


@kernel
def _move(start, size, first, count, change, hessian, at, slope):
    """Add ``hessian[:, first : first + count] @ change`` of a node to its slope; the matrix is symmetric."""
    for i in range(count):
        if change[i] != 0.0:
            row = at + (first + i) * size
            for j in range(size):
                slope[start + j] += change[i] * hessian[row + j]


@kernel
def _own_terms(theta, slope, hessian, starts, sizes, places, widths, ridges, change):
    """One step on each node's own term; the largest change of a gradient."""
    largest = 0.0
    for s in range(len(widths)):
        a, at, size = widths[s], starts[s], sizes[s]
        bound = 0.0
        for i in range(a):
            total = 0.0
            for j in range(a):
                total += abs(hessian[places[s] + i * size + j])
            bound = max(bound, total)
        bound += ridges[s]
        if bound <= 0.0:
            continue
        for i in range(a):
            change[i] = -(slope[at + i] + ridges[s] * theta[at + i]) / bound
            theta[at + i] += change[i]
            largest = max(largest, abs(change[i]) * bound)
        _move(at, size, 0, a, change, hessian, places[s], slope)
    return largest


@kernel
def _bounds(hessian, sizes, places, widths, groups, bounds):
    """A bound on the curvature of each group: the largest sum of a row of its block of the Hessian."""
    for g in range(len(groups)):
        s, t, first, second = groups[g, 0], groups[g, 1], groups[g, 2], groups[g, 3]
        a, b = widths[s], widths[t]
        most = 0.0
        for i in range(a * b):
            total = 0.0
            for j in range(a * b):
                total += abs(hessian[places[s] + (first * a + i) * sizes[s] + first * a + j])
            most = max(most, total)
        bounds[g] = most
        if second >= 0:
            most = 0.0
            for i in range(a * b):
                total = 0.0
                for j in range(a * b):
                    total += abs(hessian[places[t] + (second * b + i) * sizes[t] + second * b + j])
                most = max(most, total)
            bounds[g] += most


@kernel
def descend(theta, slope, hessian, starts, sizes, places, widths, groups, penalties, ridges, tolerance, most_sweeps):
    """Minimise a quadratic model of the loss plus penalties of groups, by coordinate descent, in place.

    Parameters
    ----------
    theta, slope
        ``float64``: parameters, and the model's gradient there without penalties; both are kept up to date.
    hessian
        ``float64``: for each node s a matrix of ``sizes[s]`` squared, from ``places[s]``.
    starts, sizes, widths
        Of each node: where its parameters begin, how many they are, and a.
    groups
        ``int64[g, 4]``: nodes s and t, rows ``first`` and ``second`` (see the module).
    penalties, ridges
        Weight of each group's norm; twice the weight of the square of each node's own term.
    tolerance
        Stop when no step changes a gradient by more.

    Returns
    -------
    int
        Sweeps made. Groups that are zero are looked at after the others have settled.
    """
    widest = 1
    for s in range(len(widths)):
        widest = max(widest, widths[s])
    change, turned, wanted = np.empty(widest * widest), np.empty(widest * widest), np.empty(widest * widest)
    bounds = np.empty(len(groups))
    _bounds(hessian, sizes, places, widths, groups, bounds)
    active = np.ones(len(groups), np.bool_)
    every = True
    for sweep in range(most_sweeps):
        largest = _own_terms(theta, slope, hessian, starts, sizes, places, widths, ridges, change)
        for g in range(len(groups)):
            if not (every or active[g]) or bounds[g] <= 0.0:
                continue
            s, t, first, second = groups[g, 0], groups[g, 1], groups[g, 2], groups[g, 3]
            a, b, bound = widths[s], widths[t], bounds[g]
            at, other = starts[s] + first * a, starts[t] + second * b
            norm = 0.0
            for j in range(b):
                for i in range(a):
                    here = at + j * a + i
                    value = bound * theta[here] - slope[here]
                    if second >= 0:
                        value -= slope[other + i * b + j]
                    wanted[j * a + i] = value
                    norm += value * value
            norm = math.sqrt(norm)
            scale = (1.0 - penalties[g] / norm) / bound if norm > penalties[g] else 0.0
            moved = 0.0
            for j in range(b):
                for i in range(a):
                    here = at + j * a + i
                    step = scale * wanted[j * a + i] - theta[here]
                    change[j * a + i] = step
                    turned[i * b + j] = step
                    moved = max(moved, abs(step))
                    theta[here] += step
                    if second >= 0:
                        theta[other + i * b + j] = theta[here]
            active[g] = scale > 0.0
            if moved > 0.0:
                largest = max(largest, moved * bound)
                _move(starts[s], sizes[s], first * a, a * b, change, hessian, places[s], slope)
                if second >= 0:
                    _move(starts[t], sizes[t], second * b, a * b, turned, hessian, places[t], slope)
        if largest <= tolerance:
            if every:
                return sweep + 1
            every = True
        else:
            every = False
    return most_sweeps
