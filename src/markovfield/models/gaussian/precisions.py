"""Sparse precisions of Gaussian priors, with what they leave open and a root of each.

A root ``R`` has ``R'R = Q``: white noise times ``R'`` has covariance ``Q``, which is all that draws by solving need.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from markovfield._validation import number, whole_number
from markovfield.arrays import FloatArray, IntArray
from markovfield.exceptions import MemoryLimitError, ModelError

__all__ = [
    "KINDS",
    "Prior",
    "car",
    "first_order_walk",
    "graph_second_order",
    "lattice_second_order",
    "matern",
    "matern_numbers",
    "seasonal",
]

KINDS = ("matern", "rw1", "rw2", "car", "icar")
MOST_OPEN = 2**27
"""Numbers in the columns of a null space: variables times directions. A gigabyte."""


@dataclass(frozen=True, eq=False)
class Prior:
    """A precision, a root of it, and orthonormal columns of what it leaves open."""

    precision: Any
    root: Any
    null_space: FloatArray


def incidence(n: int, edges: IntArray, weights: FloatArray, sign: float = -1.0) -> Any:
    """One row ``sqrt(w) (x_i - x_j)`` for each edge, sparse ``[edges, n]``."""
    from scipy import sparse

    m = len(edges)
    strength = np.sqrt(weights)
    rows = np.repeat(np.arange(m), 2)
    values = np.stack([strength, sign * strength], axis=1).ravel()
    return sparse.csr_array((values, (rows, edges.ravel())), shape=(m, n))


def squared(root: Any) -> Any:
    """``R'R``, symmetric to the last bit."""
    from scipy import sparse

    product = sparse.csc_array(root.T @ root)
    return sparse.csc_array((product + product.T) / 2)


def component_levels(n: int, edges: IntArray, what: str) -> FloatArray:
    """One column for each connected component, constant on it: ``float64[n, components]``."""
    from scipy import sparse
    from scipy.sparse.csgraph import connected_components

    links = sparse.coo_array((np.ones(len(edges)), (edges[:, 0], edges[:, 1])), shape=(n, n))
    count, which = connected_components(links, directed=False)
    if n * count > MOST_OPEN:
        raise MemoryLimitError(
            f"{what} of {n} variables in {count} connected components leaves the level of each of them open, which "
            f"takes {8 * n * count / 1e9:.3g} GB: join the components, or write a field for each"
        )
    levels = np.zeros((n, count))
    levels[np.arange(n), which] = 1.0 / np.sqrt(np.bincount(which, minlength=count))[which]
    return levels


def first_order_walk(n: int, edges: IntArray, weights: FloatArray, precision: float, kind: str) -> Prior:
    """Differences along edges are independent: ``Q = precision * Laplacian`` (Rue and Held 3.3; Besag's ICAR)."""
    root = incidence(n, edges, precision * weights)
    return Prior(squared(root), root, component_levels(n, edges, f"kind={kind!r}"))


def graph_second_order(n: int, edges: IntArray, weights: FloatArray, precision: float) -> Prior:
    """``Q = precision * Laplacian^2`` on any graph: each variable less the mean of its neighbours."""
    laplacian = squared(incidence(n, edges, weights))
    root = laplacian * math.sqrt(precision)
    return Prior(squared(root), root, component_levels(n, edges, "kind='rw2'"))


def _difference(length: int, periodic: bool, order: int) -> Any:
    """First or second differences along one axis, ``[rows, length]``."""
    from scipy import sparse

    weights = [-1.0, 1.0] if order == 1 else [1.0, -2.0, 1.0]
    rows = length if periodic else max(length - order, 0)
    at = np.arange(rows)[:, None] + np.arange(order + 1)
    values = np.tile(weights, (rows, 1))
    place = (np.repeat(np.arange(rows), order + 1), at.ravel() % max(length, 1))
    return sparse.csr_array((values.ravel(), place), shape=(rows, length))


def _along(shape: tuple[int, ...], parts: dict[int, Any]) -> Any:
    """A Kronecker product with these matrices along some axes, identities along the others."""
    from scipy import sparse

    result = sparse.csr_array(np.ones((1, 1)))
    for axis, length in enumerate(shape):
        result = sparse.kron(result, parts.get(axis, sparse.eye_array(length)), format="csr")
    return result


def lattice_second_order(shape: tuple[int, ...], periodic: tuple[bool, ...], precision: float) -> Prior:
    """Second differences along each axis and mixed ones along two: a thin plate (Rue and Held 3.4, Terzopoulos).

    Leaves open the level, and the slope along each axis that is not periodic.
    """
    from scipy import sparse

    axes = range(len(shape))
    once = [_difference(length, wrap, 1) for length, wrap in zip(shape, periodic, strict=True)]
    rows = [_along(shape, {a: _difference(shape[a], periodic[a], 2)}) for a in axes]
    rows += [math.sqrt(2.0) * _along(shape, {a: once[a], b: once[b]}) for a in axes for b in axes if a < b]
    root = sparse.csr_array(sparse.vstack(rows)) * math.sqrt(precision)
    n = math.prod(shape)
    columns = [np.ones(n)]
    for a in axes:
        if not periodic[a] and shape[a] > 1:
            columns.append(np.broadcast_to(np.arange(shape[a]).reshape([-1 if b == a else 1 for b in axes]), shape))
    basis = np.linalg.qr(np.stack([np.ravel(c) for c in columns], axis=1))[0]
    return Prior(squared(root), root, basis)


def car(n: int, edges: IntArray, weights: FloatArray, precision: float, rho: float, names: Any) -> Prior:
    """``Q = precision (D - rho W)``: proper for ``-1 < rho < 1`` (Besag 1974)."""
    from scipy import sparse

    if not -1 < rho < 1:
        raise ModelError(f"kind='car' needs -1 < rho < 1, got {rho}: kind='icar' is the limit at 1")
    degree = np.bincount(edges.ravel(), np.repeat(weights, 2), minlength=n)
    if (degree == 0).any():
        alone = names[int(np.argmin(degree))]
        raise ModelError(f"kind='car' leaves variable {alone!r} without neighbours, and so without a variance")
    pairs = incidence(n, edges, precision * abs(rho) * weights, -1.0 if rho >= 0 else 1.0)
    own = sparse.diags_array(np.sqrt(precision * (1 - abs(rho)) * degree))
    root = sparse.csr_array(sparse.vstack([pairs, own]))
    return Prior(squared(root), root, np.zeros((n, 0)))


def matern_numbers(
    dimension: int | None,
    alpha: int,
    distance: float | None,
    variance: float | None,
    kappa: float | None,
    tau: float | None,
) -> tuple[float, float]:
    """``kappa`` and ``tau`` of a Matern field from its range and variance (Lindgren, Rue and Lindstrom 2011).

    With ``nu = alpha - d/2``: the range ``sqrt(8 nu) / kappa`` is where the correlation is about 0.13, and the variance
    ``Gamma(nu) / (Gamma(alpha) (4 pi)^(d/2) kappa^(2 nu) tau^2)``; in the plane with alpha = 2 that is sqrt(8) / kappa
    and ``1 / (4 pi kappa^2 tau^2)``.
    """
    if kappa is not None or tau is not None:
        if distance is not None or variance is not None:
            raise ModelError("kind='matern' takes either range and variance or kappa and tau")
        return (
            number(1.0 if kappa is None else kappa, "kappa", above=0),
            number(1.0 if tau is None else tau, "tau", above=0),
        )
    if dimension is None:
        raise ModelError("kind='matern' on a graph has no lengths to measure a range in: give kappa and tau")
    nu = alpha - dimension / 2
    if nu <= 0:
        raise ModelError(
            f"kind='matern' with alpha={alpha} has no variance in {dimension} dimensions: take alpha="
            f"{dimension // 2 + 1} or more, or give kappa and tau"
        )
    distance = number(10.0 if distance is None else distance, "range", above=0)
    variance = number(1.0 if variance is None else variance, "variance", above=0)
    found = math.sqrt(8 * nu) / distance
    ratio = math.gamma(nu) / (math.gamma(alpha) * (4 * math.pi) ** (dimension / 2))
    return found, math.sqrt(ratio / (found ** (2 * nu) * variance))


def matern(n: int, edges: IntArray, weights: FloatArray, alpha: int, kappa: float, tau: float) -> Prior:
    """``Q = tau^2 K^alpha`` with ``K = kappa^2 + Laplacian``: the equation on a lattice with steps of one."""
    from scipy import sparse

    alpha = whole_number(alpha, "alpha", 1)
    pairs = incidence(n, edges, weights)
    operator = sparse.csr_array(sparse.eye_array(n) * kappa**2 + pairs.T @ pairs)
    root = sparse.csr_array(
        sparse.eye_array(n) if alpha % 2 == 0 else sparse.vstack([kappa * sparse.eye_array(n), pairs])
    )
    for _ in range(alpha // 2):
        root = sparse.csr_array(root @ operator)
    root = root * tau
    return Prior(squared(root), root, np.zeros((n, 0)))


def seasonal(n: int, period: int, precision: float) -> Prior:
    """Sums over one period are independent and close to zero (Rue and Held 3.4.3); of rank n - period + 1."""
    from scipy import sparse

    n, period = whole_number(n, "seasonal(n)", 1), whole_number(period, "period", 2)
    if period > n:
        raise ModelError(f"seasonal(n={n}, period={period}) is shorter than one period")
    rows = n - period + 1
    at = np.arange(rows)[:, None] + np.arange(period)
    values = np.full(rows * period, math.sqrt(number(precision, "precision", above=0)))
    root = sparse.csr_array((values, (np.repeat(np.arange(rows), period), at.ravel())), shape=(rows, n))
    # Sequences that repeat and sum to zero over a period.
    phase = np.arange(n) % period
    patterns = (phase[:, None] == np.arange(1, period)).astype(float) - (phase == 0)[:, None]
    return Prior(squared(root), root, np.linalg.qr(patterns)[0])
