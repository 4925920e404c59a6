"""Couplings and fields of an Ising model from samples: inversions of mean-field theory, and pseudo-likelihood."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from markovfield._validation import number
from markovfield.arrays import FloatArray
from markovfield.exceptions import ModelError
from markovfield.learning.core.data import DataTable
from markovfield.learning.structures.coded_rows import CodedRows
from markovfield.learning.structures.regressions import Regressions, one_blas_thread
from markovfield.models import Ising

__all__ = ["inverse_ising"]

METHODS = ("pseudo_likelihood", "mean_field", "tap", "independent_pair", "small_correlation")
GROWTH = 0.05
"""A coupling that grows by this while the gradient falls from a thousandth of a row to next to nothing has no end."""


def inverse_ising(
    samples: Any,
    method: str = "pseudo_likelihood",
    *,
    weights: npt.ArrayLike | None = None,
    smoothing: float = 0.0,
    penalty: float = 0.0,
) -> Ising:
    """Couplings of all pairs of spins, and their fields, from samples.

    Parameters
    ----------
    samples
        ``[rows, n]`` of -1 and +1, or `Samples` of variables of two states, the second of which is +1.
    method
        ``"pseudo_likelihood"``: consistent, the error falls as one over the square root of the rows (Murphy 19.5.4).
        The others read couplings off means m and correlations C in O(n^3), and keep an error of their own however many
        rows there are, small for weak couplings (Roudi, Aurell and Hertz 2009): ``"mean_field"``, J = -(C^-1);
        ``"tap"``, with Onsager's reaction term, -(C^-1) = J + 2 J^2 m m'; ``"independent_pair"``, each pair as if it
        were alone; ``"small_correlation"``, Sessak and Monasson's sum of loops and pairs.
    weights
        How often each row counts.
    smoothing
        Rows of fair and independent spins that means and correlations are mixed with: wanted where a spin never flips
        or a pair never differs. Not for pseudo-likelihood.
    penalty
        Of pseudo-likelihood, on the sum of absolute couplings, as for `GroupLasso`.

    Returns
    -------
    Ising
        On the complete graph of sites 0, 1, ....

    Examples
    --------
    >>> import markovfield as mf
    >>> chain = mf.Ising([(0, 1), (1, 2)], coupling=0.5)
    >>> spins = chain.to_spins(mf.sample(chain, 20_000, rng=0))
    >>> inverse_ising(spins).edge_couplings.round(1).tolist()
    [0.5, -0.0, 0.5]
    """
    if method not in METHODS:
        raise ModelError(f"method of inverse_ising must be one of {', '.join(map(repr, METHODS))}, got {method!r}")
    number(smoothing, "smoothing", least=0)
    number(penalty, "penalty", least=0)
    spins = _spins(samples)
    rows, n = spins.shape
    w = np.ones(rows) if weights is None else np.asarray(weights, np.float64)
    if w.shape != (rows,) or not (np.isfinite(w).all() and (w >= 0).all() and w.any()):
        raise ModelError(f"weights need one number of at least 0 for each of the {rows} rows, and not all may be 0")
    if method == "pseudo_likelihood":
        with one_blas_thread():
            couplings, fields = _pseudo_likelihood(spins, w, float(penalty))
    else:
        total = w.sum() + smoothing
        means = w @ spins / total
        moments = (spins * w[:, None]).T @ spins / total
        np.fill_diagonal(moments, 1.0)
        couplings, fields = _inverted(method, means, moments)
    first, second = np.triu_indices(n, 1)
    pairs = np.column_stack([first, second]).tolist()
    return Ising(pairs, coupling=couplings[first, second], field=dict(enumerate(fields.tolist())))


def _spins(samples: Any) -> FloatArray:
    if hasattr(samples, "states") and hasattr(samples, "graph"):
        if (samples.graph.structure.cardinalities != 2).any():
            raise ModelError("inverse_ising needs samples of variables of two states each")
        return 2.0 * np.asarray(samples.states, np.float64) - 1.0
    try:
        spins = np.asarray(samples, np.float64)
    except (TypeError, ValueError):
        raise ModelError("inverse_ising needs an array [rows, n] of -1 and +1") from None
    if spins.ndim != 2 or not len(spins) or spins.shape[1] < 2:
        raise ModelError(f"inverse_ising needs rows of at least two spins, [rows, n], got shape {spins.shape}")
    if not (np.abs(spins) == 1).all():
        raise ModelError("inverse_ising needs spins -1 and +1, and got other numbers")
    return spins


def _pseudo_likelihood(spins: FloatArray, weights: FloatArray, penalty: float) -> tuple[FloatArray, FloatArray]:
    n = spins.shape[1]
    codes = ((spins.T + 1) / 2).astype(np.int16)
    rows = CodedRows.of(DataTable(tuple(range(n)), ((-1, 1),) * n, codes, weights), "inverse_ising")
    if len(rows.kept) < n:
        lost = next(v for v in range(n) if v not in rows.kept)
        raise ModelError(f"spin {lost} never flips, so its field has no finite estimate: leave it out")
    fit = Regressions(rows, tolerance=1e-3 / weights.sum())
    grown = np.zeros(1)
    for tolerance in (1e-3, 1e-7):
        before = fit.coupling.copy()
        fit.tolerance = tolerance / weights.sum()
        if penalty:
            fit.minimise(penalty)
        else:
            fit.minimise_within(~np.eye(n, dtype=np.bool_), 0.0)
            grown = np.abs(fit.coupling - before)
    couplings = fit.coupling / 2
    if not fit.converged or grown.max() > GROWTH:
        raise ModelError(
            "the pseudo-likelihood of these samples has no finite maximum (a spin is certain given the others): "
            "give more samples or a penalty"
        )
    return couplings, fit.own / np.sqrt(2.0)


def _inverted(method: str, m: FloatArray, moments: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Couplings and fields from means and second moments."""
    n = len(m)
    if (np.abs(m) >= 1).any():
        raise ModelError(f"spin {int(np.argmax(np.abs(m)))} never flips: leave it out, or give smoothing")
    off = ~np.eye(n, dtype=np.bool_)
    couplings = np.zeros((n, n))
    if method != "independent_pair":
        correlations = moments - np.outer(m, m)
        if np.linalg.cond(correlations) > 1e12:
            raise ModelError("the correlations of these samples have no inverse: give more samples, or smoothing")
        inverse = np.linalg.inv(correlations)
        couplings[off] = -inverse[off]
    if method == "tap":
        both = np.outer(m, m)
        under = 1.0 - 8.0 * both * inverse
        if (under[off] < 0).any():
            raise ModelError(
                "the TAP equations have no real solution for these correlations, which are too strong: "
                "take another method"
            )
        # The root that goes over into the mean-field one where means vanish, written without cancellation.
        couplings[off] = (-2.0 * inverse / (1.0 + np.sqrt(np.maximum(under, 0.0))))[off]
    if method in ("independent_pair", "small_correlation"):
        pair, pair_fields = _pairs(m, moments)
        if method == "independent_pair":
            alone = np.arctanh(m)
            return pair, pair_fields.sum(axis=1) - (n - 2) * alone
        spread = np.outer(1 - m**2, 1 - m**2)
        couplings[off] += (pair - correlations / np.where(off, spread - correlations**2, 1.0))[off]
    fields = np.arctanh(m) - couplings @ m
    if method == "tap":
        fields += m * (couplings**2 @ (1 - m**2))
    return couplings, fields


def _pairs(m: FloatArray, moments: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Coupling of each pair of spins were it alone, and the field of the first of them then."""
    up, down = m[:, None], m[None, :]
    logs = {}
    for s in (-1, 1):
        for t in (-1, 1):
            cells = 1 + s * up + t * down + s * t * moments
            np.fill_diagonal(cells, 1.0)
            if (cells <= 1e-12).any():
                i, j = (int(x) for x in np.argwhere(cells <= 1e-12)[0])
                raise ModelError(f"spins {i} and {j} are never {s:+d} and {t:+d}: give more samples, or smoothing")
            logs[s, t] = np.log(cells)
    pair = (logs[1, 1] + logs[-1, -1] - logs[1, -1] - logs[-1, 1]) / 4
    fields = (logs[1, 1] + logs[1, -1] - logs[-1, 1] - logs[-1, -1]) / 4
    np.fill_diagonal(pair, 0.0)
    np.fill_diagonal(fields, 0.0)
    return pair, fields
