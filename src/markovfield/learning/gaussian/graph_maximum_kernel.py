"""The Hessian of a Gaussian's log-likelihood on a graph, times a vector: ``W D W`` on the entries of a sparse D."""

import numpy as np

from markovfield.kernels.compiler import kernel

__all__ = ["hessian_product"]

LANES = 8


@kernel
def hessian_product(w, starts, columns, twins, d, out):
    """``out[e] = w_i . (D w_j)`` for every entry e = [i, j] of a symmetric sparse matrix, as `lasso_kernel.pattern`
    lays it out; eight rows of ``W D`` are formed together.
    """
    n = len(starts) - 1
    lanes = np.empty((n, LANES))
    t = np.empty((LANES, n))
    sums = np.empty(LANES)
    for top in range(0, n, LANES):
        wide = min(LANES, n - top)
        for k in range(n):
            for b in range(LANES):
                lanes[k, b] = w[top + b, k] if b < wide else 0.0
        for k in range(n):
            sums[:] = 0.0
            for e in range(starts[k], starts[k + 1]):
                at = columns[e]
                for b in range(LANES):
                    sums[b] += d[e] * lanes[at, b]
            for b in range(wide):
                t[b, k] = sums[b]
        for i in range(top, top + wide):
            ti = t[i - top]
            for e in range(starts[i], starts[i + 1]):
                j = columns[e]
                if j < i:
                    continue
                wj = w[j]
                total = 0.0
                for k in range(n):
                    total += wj[k] * ti[k]
                out[e] = total
                out[twins[e]] = total
