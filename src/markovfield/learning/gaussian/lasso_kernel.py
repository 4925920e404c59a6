"""Graphical lasso by proximal Newton steps: looking over a matrix for what may move, and coordinate descent on that.

The quadratic model of minus the log-likelihood at the precision X, whose inverse is W, has the Hessian W x W. Its
derivative for the entry [i, j] of a step D is ``w_j . (D w_i)``: for one i the vector ``t = D w_i`` is formed once from
the few entries of D, and a change of D[i, j] changes two of its numbers. So a coordinate costs one product of two
vectors, and no dense matrix is kept up to date (Hsieh et al. 2014 keep D W).
"""

import numpy as np

from markovfield.kernels.compiler import kernel

__all__ = ["components", "descend", "mirror", "pattern", "scan"]

TILE = 32
LANES = 8


@kernel
def components(s, penalty, weights, label):
    """Connected components of the pairs whose covariance exceeds their penalty: blocks of the minimum (Witten et al.).

    ``label`` gets the first variable of each one's component; returns the number of pairs.
    """
    n = len(s)
    step = 1 if len(weights) > 1 else 0
    for i in range(n):
        label[i] = i
    found = 0
    for i in range(n):
        for j in range(i + 1, n):
            if abs(s[i, j]) <= penalty * weights[step * i, step * j]:
                continue
            found += 1
            a, b = i, j
            while label[a] != a:
                label[a] = label[label[a]]
                a = label[a]
            while label[b] != b:
                label[b] = label[label[b]]
                b = label[b]
            if a != b:
                label[max(a, b)] = min(a, b)
    for i in range(n):
        label[i] = label[label[i]]
    return found


@kernel
def mirror(matrix):
    """Copy the upper triangle onto the lower one, in tiles that stay in cache."""
    n = len(matrix)
    for a in range(0, n, TILE):
        for b in range(a, n, TILE):
            for i in range(a, min(a + TILE, n)):
                for j in range(max(b, i + 1), min(b + TILE, n)):
                    matrix[j, i] = matrix[i, j]


@kernel
def scan(s, w, x, penalty, weights, diagonal, rows, columns):
    """Entries on and above the diagonal that are not zero, or will not stay so; how far X is from the minimum.

    ``weights`` are those of the penalty, or a single one; ``diagonal`` is the penalty's factor there. Returns how many
    entries were found, row by row, and the first and about the second-order part of the duality gap: what is lost where
    X is not zero and the derivative less than the penalty, and where W is further from S than the dual problem allows.
    """
    n = len(s)
    step = 1 if len(weights) > 1 else 0
    found, slack, excess = 0, 0.0, 0.0
    for i in range(n):
        for j in range(i, n):
            g = s[i, j] - w[i, j]
            value = x[i, j]
            if i == j:
                bound = penalty * diagonal * weights[step * i, step * i]
            else:
                bound = penalty * weights[step * i, step * j]
            over = abs(g) - bound
            if value == 0.0 and over <= 0.0:
                continue
            rows[found], columns[found] = i, j
            found += 1
            times = 1.0 if i == j else 2.0
            if over > 0.0:
                excess += 0.5 * times * over * over * x[i, i] * x[j, j]
                g = bound if g > 0.0 else -bound
            slack += times * (abs(value) * bound + value * g)
    return found, slack, excess


@kernel
def pattern(rows, columns, found, starts, every, twins):
    """A symmetric sparse matrix, row by row, from its entries on and above the diagonal in the same order.

    ``every`` gets the columns, ``twins`` the place of each entry's mirror image; each row has its lower entries first.
    """
    n = len(starts) - 1
    for i in range(n + 1):
        starts[i] = 0
    for e in range(found):
        starts[rows[e] + 1] += 1
        if rows[e] != columns[e]:
            starts[columns[e] + 1] += 1
    for i in range(n):
        starts[i + 1] += starts[i]
    following = starts[:n].copy()
    for e in range(found):
        i, j = rows[e], columns[e]
        a = following[i]
        following[i] += 1
        every[a], twins[a] = j, a
        if i != j:
            b = following[j]
            following[j] += 1
            every[b], twins[b] = i, a
            twins[a] = b


@kernel
def descend(s, w, x, penalty, weights, diagonal, starts, columns, twins, d, sweeps, share):
    """Coordinate descent on the quadratic model; ``d`` is the step, by entries of a symmetric sparse matrix.

    Row i has its entries from ``starts[i]`` on, as `pattern` made them. Ends after ``sweeps``, or when a sweep moves no
    more than ``share`` of what the first did. Returns the sweeps made. The vectors t of eight rows are formed together.
    """
    n = len(s)
    step = 1 if len(weights) > 1 else 0
    lanes = np.empty((n, LANES))
    t = np.empty((LANES, n))
    used = np.zeros(n, np.bool_)
    sums = np.empty(LANES)
    first = 0.0
    for turn in range(sweeps):
        moved = 0.0
        for top in range(0, n, LANES):
            wide = min(LANES, n - top)
            for k in range(n):
                for b in range(LANES):
                    lanes[k, b] = w[top + b, k] if b < wide else 0.0
            for k in range(n):
                sums[:] = 0.0
                if used[k]:
                    for e in range(starts[k], starts[k + 1]):
                        at = columns[e]
                        for b in range(LANES):
                            sums[b] += d[e] * lanes[at, b]
                for b in range(wide):
                    t[b, k] = sums[b]
            for i in range(top, top + wide):
                wi, ti = w[i], t[i - top]
                for e in range(starts[i], starts[i + 1]):
                    j = columns[e]
                    if j < i:
                        continue
                    wj = w[j]
                    b = s[i, j] - w[i, j]
                    for k in range(n):
                        b += wj[k] * ti[k]
                    c = x[i, j] + d[e]
                    if i == j:
                        a = wi[i] * wi[i]
                        bound = penalty * diagonal * weights[step * i, step * i]
                    else:
                        a = wi[j] * wi[j] + wi[i] * wj[j]
                        bound = penalty * weights[step * i, step * j]
                    z = c - b / a
                    cut = bound / a
                    goal = z - cut if z > cut else (z + cut if z < -cut else 0.0)
                    change = goal - c
                    if change == 0.0:
                        continue
                    moved += a * change * change
                    d[e] += change
                    used[i] = True
                    for lane in range(wide):
                        t[lane, i] += change * lanes[j, lane]
                    if i != j:
                        d[twins[e]] += change
                        used[j] = True
                        for lane in range(wide):
                            t[lane, j] += change * lanes[i, lane]
        if turn == 0:
            first = moved
        if moved <= share * share * first:
            return turn + 1
    return sweeps
