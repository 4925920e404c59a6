"""The score of values of a Gaussian field, some of whose variables may be integrated out."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from markovfield.arrays import FloatArray
from markovfield.gaussian.gaussian_field import GaussianField
from markovfield.inference.gaussian.answers import GaussianDecoding
from markovfield.inference.gaussian.evidence import GaussianEvidence

__all__ = ["decoding_of"]


def decoding_of(
    field: GaussianField,
    known: GaussianEvidence,
    values: FloatArray,
    variables: Sequence[int] | None,
    *,
    method: str,
    seconds: float,
    gap: float = 0.0,
    converged: bool = True,
    iterations: int = 1,
    residuals: tuple[float, ...] = (),
) -> GaussianDecoding:
    """The answer of `decode` with given values: noise counts in the score, and what is not shown is integrated out."""
    shown = tuple(range(field.n_variables)) if variables is None else tuple(variables)
    seen = known.absorbed(field)
    score = known.log_likelihood_constant + float(values @ seen.information - 0.5 * values @ (seen.precision @ values))
    hidden = np.ones(field.n_variables, np.bool_)
    hidden[known.at] = False
    hidden[list(shown)] = False
    if hidden.any():
        values = values.copy()
        at = np.flatnonzero(~hidden)
        inside = ~np.isin(known.seen_at, at)
        seen_inside = (known.seen_at[inside], known.seen[inside], known.variances[inside])
        fixed = GaussianEvidence(at.astype(np.int64), values[at], *seen_inside)
        _, rest, score = fixed.condition(field)
        score += rest.log_partition
        # What was seen with noise of a variable that is now fixed.
        on = ~inside
        off = values[known.seen_at[on]] - known.seen[on]
        score += float(-0.5 * (off**2 / known.variances[on] + np.log(2 * np.pi * known.variances[on])).sum())
        values[hidden] = np.nan
    return GaussianDecoding(
        field=field,
        values=values,
        score=score,
        variables=shown,
        gap=gap,
        # Of an iteration: what doubles lose of a score.
        tolerance=1e-9 * max(1.0, abs(score)) if gap else 0.0,
        method=method,
        converged=converged,
        iterations=iterations,
        residuals=residuals,
        seconds=seconds,
    )
