"""One sentence for every iteration that ended before it converged."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

__all__ = ["DAMPING", "warn_not_converged", "without_warnings"]

DAMPING = "more damping or max_iterations may help"
"""Advice for methods that have both."""

_silent: ContextVar[bool] = ContextVar("silent", default=False)


@contextmanager
def without_warnings() -> Iterator[None]:
    """Inside, nothing is said of what did not converge: for a method that runs others and answers for them itself."""
    token = _silent.set(True)
    try:
        yield
    finally:
        _silent.reset(token)


def warn_not_converged(
    method: str,
    iterations: int,
    residual: float,
    tolerance: float,
    advice: str = "more max_iterations may help",
) -> None:
    """Issue scikit-learn's ``ConvergenceWarning``: an unsettled answer is never silent, and never an error."""
    if _silent.get():
        return
    from sklearn.exceptions import ConvergenceWarning

    warnings.warn(
        f"{method} did not converge in {iterations} iterations: the last change was {residual:.3g}, "
        f"above the tolerance of {tolerance:.3g}; {advice}",
        ConvergenceWarning,
        stacklevel=4,
    )
