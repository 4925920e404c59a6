"""One sentence for every iteration that ended before it converged."""

from __future__ import annotations

import warnings

__all__ = ["DAMPING", "warn_not_converged"]

DAMPING = "more damping or max_iterations may help"
"""Advice for methods that have both."""


def warn_not_converged(
    method: str,
    iterations: int,
    residual: float,
    tolerance: float,
    advice: str = "more max_iterations may help",
) -> None:
    """Issue scikit-learn's ``ConvergenceWarning``: an unsettled answer is never silent, and never an error."""
    from sklearn.exceptions import ConvergenceWarning

    warnings.warn(
        f"{method} did not converge in {iterations} iterations: the last change was {residual:.3g}, "
        f"above the tolerance of {tolerance:.3g}; {advice}",
        ConvergenceWarning,
        stacklevel=4,
    )
