"""Newton directions for entries of a precision: conjugate gradients with the Hessian ``D -> W D W`` on a pattern."""

from __future__ import annotations

from typing import Any

import numpy as np

from markovfield.arrays import BoolArray, FloatArray
from markovfield.learning.gaussian.graph_maximum_kernel import hessian_product

__all__ = ["conjugate_gradients"]


def conjugate_gradients(
    w: FloatArray,
    residual: FloatArray,
    at: Any,
    layout: tuple[Any, ...],
    *,
    inside: BoolArray | None = None,
    most: int | None = None,
    share: float | None = None,
) -> FloatArray:
    """Solve ``W D W = residual`` on a symmetric pattern, or on the entries of it that are ``inside``.

    ``at`` are rows and columns of the entries, ``layout`` is that of `lasso_kernel.pattern`. Scaled by the Hessian's
    diagonal; ends when the residual has fallen to ``share`` of itself, in that scale. None: to a share that falls with
    the residual itself, so that Newton's last steps double the digits.
    """
    i, j = at
    scale = np.where(i == j, w[i, i] ** 2, w[i, i] * w[j, j] + w[i, j] ** 2)
    d, r = np.zeros(len(residual)), residual.copy()
    z = r / scale
    p, rho = z.copy(), float(r @ z)
    wanted = (min(0.01, rho) if share is None else share**2) * rho
    product = np.empty(len(r))
    starts, columns, twins = layout
    for _ in range(2 * len(r) + 20 if most is None else most):
        if rho <= wanted or rho == 0.0:
            break
        hessian_product(w, starts, columns, twins, p, product)
        curved = float(p @ product)
        if curved <= 0.0:
            break
        step = rho / curved
        d += step * p
        r -= step * product
        if inside is not None:
            r[~inside] = 0.0
        z = r / scale
        before, rho = rho, float(r @ z)
        p = z + rho / before * p
    return d
