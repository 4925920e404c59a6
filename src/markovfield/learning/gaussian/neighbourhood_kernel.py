"""Lasso regressions of each variable on all others, from the correlations alone, by coordinate descent."""

import numpy as np

from markovfield.kernels.compiler import kernel

__all__ = ["regress_all"]


@kernel
def regress_all(s, penalty, first, last, tolerance, sweeps, slopes):
    """Minimise ``b.S b / 2 - s_j.b + penalty |b|_1`` over the others' slopes, for j from ``first`` to ``last``.

    Rows of ``slopes`` are where each search starts and what it finds. Between sweeps over all variables, those that are
    not zero are gone over by themselves. A search ends when no derivative is further from where it should be than
    ``tolerance``; returns how many did not within ``sweeps``.
    """
    n = len(s)
    gradient = np.empty(n)
    active = np.empty(n, np.int64)
    lost = 0
    for j in range(first, last):
        b = slopes[j]
        for k in range(n):
            gradient[k] = s[j, k]
        for i in range(n):
            if b[i] != 0.0:
                for k in range(n):
                    gradient[k] -= b[i] * s[i, k]
        ended = False
        spent = 0
        while spent < sweeps and not ended:
            worst = 0.0
            found = 0
            for i in range(n):
                if i == j:
                    continue
                z = gradient[i] + s[i, i] * b[i]
                goal = (z - penalty if z > penalty else (z + penalty if z < -penalty else 0.0)) / s[i, i]
                change = goal - b[i]
                if change != 0.0:
                    b[i] = goal
                    for k in range(n):
                        gradient[k] -= change * s[i, k]
                    worst = max(worst, abs(change) * s[i, i])
                if goal != 0.0:
                    active[found] = i
                    found += 1
            spent += 1
            ended = worst <= tolerance
            while worst > tolerance and spent < sweeps:
                worst = 0.0
                for a in range(found):
                    i = active[a]
                    z = gradient[i] + s[i, i] * b[i]
                    goal = (z - penalty if z > penalty else (z + penalty if z < -penalty else 0.0)) / s[i, i]
                    change = goal - b[i]
                    if change != 0.0:
                        b[i] = goal
                        for k in range(n):
                            gradient[k] -= change * s[i, k]
                        worst = max(worst, abs(change) * s[i, i])
                spent += 1
        if not ended:
            lost += 1
    return lost
