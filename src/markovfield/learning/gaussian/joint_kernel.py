"""Coordinate descent for several precisions that share a graph: all classes' entries of a pair at once."""

import numpy as np

from markovfield.kernels.compiler import kernel

__all__ = ["descend_jointly"]


@kernel
def _shrunk(a, z, penalty, group, goal):
    """Minimise ``sum a t^2 / 2 - z t + penalty |t|_1 + group |t|_2``: zero, or u r / (a r + group) with r its length.

    The length is where ``sum (u / (a r + group))^2`` is one, u being z moved towards zero by the penalty; Newton steps
    from the left come to it without passing it, since the sum falls and is convex.
    """
    square, largest = 0.0, 0.0
    for k in range(len(a)):
        u = z[k] - penalty if z[k] > penalty else (z[k] + penalty if z[k] < -penalty else 0.0)
        goal[k] = u
        square += u * u
        largest = max(largest, a[k])
    if square <= group * group:
        for k in range(len(a)):
            goal[k] = 0.0
        return
    r = (np.sqrt(square) - group) / largest
    if group > 0.0:
        for _ in range(60):
            value, slope = -1.0, 0.0
            for k in range(len(a)):
                below = a[k] * r + group
                share = goal[k] * goal[k] / (below * below)
                value += share
                slope -= 2.0 * share * a[k] / below
            if value <= 1e-15 or slope == 0.0:
                break
            r -= value / slope
    for k in range(len(a)):
        goal[k] = goal[k] * r / (a[k] * r + group) if group > 0.0 else goal[k] / a[k]


@kernel
def descend_jointly(s, w, x, shares, penalty, group, starts, columns, twins, d, sweeps, part):
    """As `lasso_kernel.descend`, for matrices ``[classes, n, n]`` and a step ``d[classes, entries]``."""
    count, n = len(s), s.shape[1]
    t = np.empty((count, n))
    a, z, goal = np.empty(count), np.empty(count), np.empty(count)
    first = 0.0
    for turn in range(sweeps):
        moved = 0.0
        for i in range(n):
            for c in range(count):
                for k in range(n):
                    total = 0.0
                    for e in range(starts[k], starts[k + 1]):
                        total += d[c, e] * w[c, i, columns[e]]
                    t[c, k] = total
            for e in range(starts[i], starts[i + 1]):
                j = columns[e]
                if j < i:
                    continue
                for c in range(count):
                    wj, tc = w[c, j], t[c]
                    b = s[c, i, j] - w[c, i, j]
                    for k in range(n):
                        b += wj[k] * tc[k]
                    a[c] = w[c, i, i] ** 2 if i == j else w[c, i, j] ** 2 + w[c, i, i] * w[c, j, j]
                    z[c] = shares[c] * (a[c] * (x[c, i, j] + d[c, e]) - b)
                    a[c] *= shares[c]
                if i == j:
                    for c in range(count):
                        goal[c] = z[c] / a[c]
                else:
                    _shrunk(a, z, penalty, group, goal)
                for c in range(count):
                    change = goal[c] - x[c, i, j] - d[c, e]
                    if change == 0.0:
                        continue
                    moved += a[c] * change * change
                    d[c, e] += change
                    t[c, i] += change * w[c, i, j]
                    if i != j:
                        d[c, twins[e]] += change
                        t[c, j] += change * w[c, i, i]
        if turn == 0:
            first = moved
        if moved <= part * part * first:
            return turn + 1
    return sweeps
