"""Conjugate gradients for several right-hand sides at once, with a preconditioner; and a stochastic log determinant."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from markovfield.arrays import FloatArray
from markovfield.inference.core.running import Running

__all__ = ["circulant", "jacobi", "lanczos_log_determinants", "solve"]

Preconditioner = Callable[[FloatArray], FloatArray]


def jacobi(diagonal: FloatArray) -> Preconditioner:
    """Division by the diagonal."""
    inverse = (1.0 / diagonal)[:, None]
    return lambda x: x * inverse


def circulant(precision: Any, shape: tuple[int, ...]) -> Preconditioner | None:
    """Solves with the row of a site in the middle of a lattice as if it stood everywhere on a torus.

    None where that is not positive definite, or the lattice is not the whole of the matrix.
    """
    from scipy import fft

    n = precision.shape[0]
    if int(np.prod(shape)) != n:
        return None
    middle = tuple(length // 2 for length in shape)
    at = int(np.ravel_multi_index(middle, shape))
    row = precision[:, [at]].toarray().reshape(shape)
    # What was seen varies from site to site: the mean of the diagonal stands for it.
    row[middle] += float(precision.diagonal().mean()) - row[middle]
    stencil = np.roll(row, [-m for m in middle], axis=tuple(range(len(shape))))
    axes = tuple(range(1, len(shape) + 1))
    eigenvalues = fft.fftn(stencil).real
    if not eigenvalues.min() > 1e-12 * eigenvalues.max():
        return None
    half = eigenvalues[..., : shape[-1] // 2 + 1]

    def apply(x: FloatArray) -> FloatArray:
        images = np.ascontiguousarray(x.T).reshape(-1, *shape)
        solved = fft.irfftn(fft.rfftn(images, axes=axes) / half, shape, axes=axes)
        return np.asarray(solved.reshape(-1, n).T)

    return apply


def solve(
    matrix: Any,
    right: FloatArray,
    preconditioner: Preconditioner,
    *,
    tolerance: float,
    max_iterations: int,
    running: Running,
) -> tuple[FloatArray, FloatArray, int]:
    """``matrix^-1 right``, the residuals by column as shares of the right-hand sides, and the iterations.

    ``right`` is ``float64[n, k]``; each column has its own step lengths, and all go on until the slowest is done.
    """
    x = np.zeros_like(right)
    residual = right.copy()
    size = np.sqrt((right**2).sum(axis=0))
    size[size == 0] = 1.0
    z = preconditioner(residual)
    direction = z.copy()
    old = (residual * z).sum(axis=0)
    iterations = 0
    error = np.sqrt((residual**2).sum(axis=0)) / size
    while iterations < max_iterations and error.max(initial=0.0) > tolerance:
        running.check()
        moved = matrix @ direction
        curvature = (direction * moved).sum(axis=0)
        step = np.divide(old, curvature, out=np.zeros_like(old), where=curvature > 0)
        x += step * direction
        residual -= step * moved
        z = preconditioner(residual)
        new = (residual * z).sum(axis=0)
        direction *= np.divide(new, old, out=np.zeros_like(new), where=old > 0)
        direction += z
        old = new
        iterations += 1
        error = np.sqrt((residual**2).sum(axis=0)) / size
    # The residual that was carried along drifts from the true one.
    return x, np.sqrt(((right - matrix @ x) ** 2).sum(axis=0)) / size, iterations


def lanczos_log_determinants(
    matrix: Any, n_probes: int, steps: int, rng: np.random.Generator, running: Running
) -> FloatArray:
    """``float64[n_probes]``, each with the log determinant as its mean but for the error of quadrature.

    Stochastic Lanczos quadrature (Ubaru, Chen and Saad 2017) of the matrix scaled to a unit diagonal, with probes of
    random signs.
    """
    from scipy import linalg, sparse

    n = matrix.shape[0]
    scale = np.sqrt(matrix.diagonal())
    divide = sparse.diags_array(1 / scale)
    scaled = sparse.csr_array(divide @ matrix @ divide)
    estimates = np.empty(n_probes)
    steps = min(steps, n)
    for probe in range(n_probes):
        running.check()
        v = rng.integers(0, 2, n) * 2.0 - 1.0
        v /= np.sqrt(n)
        before = np.zeros(n)
        alphas, betas, beta = [], [], 0.0
        for _ in range(steps):
            w = scaled @ v - beta * before
            alpha = float(v @ w)
            w -= alpha * v
            alphas.append(alpha)
            beta = float(np.sqrt(w @ w))
            if beta <= 1e-12:
                break
            betas.append(beta)
            before, v = v, w / beta
        values, vectors = linalg.eigh_tridiagonal(alphas, betas[: len(alphas) - 1])
        # The quadrature is of a positive matrix; rounding may put a node below zero.
        estimates[probe] = n * float((vectors[0] ** 2 * np.log(np.maximum(values, 1e-300))).sum())
    return estimates + 2 * float(np.log(scale).sum())
