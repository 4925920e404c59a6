"""Roots of a posterior's precision, from which draws are made without factoring it."""

from __future__ import annotations

from typing import Any

import numpy as np

from markovfield.exceptions import ModelError
from markovfield.gaussian.constrained_field import ConstrainedField
from markovfield.gaussian.gaussian_field import GaussianField
from markovfield.inference.gaussian.evidence import GaussianEvidence

__all__ = ["dominance_root", "posterior_root"]


def dominance_root(precision: Any) -> Any | None:
    """``R`` with ``R'R`` a diagonally dominant matrix: a row for each entry and one for each site; None of others."""
    from scipy import sparse

    n = precision.shape[0]
    entries = sparse.coo_array(sparse.triu(precision, 1))
    i, j = entries.coords
    strength = np.abs(entries.data)
    own = precision.diagonal() - np.bincount(i, strength, minlength=n) - np.bincount(j, strength, minlength=n)
    if own.min(initial=0.0) < -1e-12 * precision.diagonal().max(initial=0.0):
        return None
    m, half = len(strength), np.sqrt(strength)
    values = np.concatenate([half, np.sign(entries.data) * half, np.sqrt(np.maximum(own, 0.0))])
    rows = np.concatenate([np.arange(m), np.arange(m), m + np.arange(n)])
    return sparse.csr_array((values, (rows, np.concatenate([i, j, np.arange(n)]))), shape=(m + n, n))


def posterior_root(field: GaussianField, known: GaussianEvidence, free: Any, rest: GaussianField, method: str) -> Any:
    """A root of the precision that the evidence leaves: the prior's, and a row for each site seen with noise."""
    from scipy import sparse

    if isinstance(field, ConstrainedField) and field.root is not None:
        parts = [field.root]
        if len(known.seen_at):
            m = len(known.seen_at)
            weights = 1 / np.sqrt(known.variances)
            parts.append(sparse.csr_array((weights, (np.arange(m), known.seen_at)), shape=(m, field.n_variables)))
        root = sparse.csr_array(sparse.vstack(parts)) if len(parts) > 1 else parts[0]
        return root if len(free) == field.n_variables else root[:, free]
    found = dominance_root(rest.precision)
    if found is None:
        raise ModelError(
            f"{method} draws by a root of the precision, which is known of GaussianMarkovField and of diagonally "
            "dominant matrices, not of this one: use sparse_cholesky"
        )
    return found
