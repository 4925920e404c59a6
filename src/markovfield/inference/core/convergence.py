"""One sentence for every iteration that ended before it converged."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Protocol

from markovfield.inference.core.running import Running

__all__ = ["DAMPING", "Iterated", "how_it_went", "warn_caller", "warn_not_converged", "without_warnings"]

DAMPING = "more damping or max_iterations may help"
"""Advice for methods that have both."""

_silent: ContextVar[bool] = ContextVar("silent", default=False)


class Iterated(Protocol):
    """A run that iterates: whether it has converged, and how much each iteration changed."""

    converged: bool
    residuals: list[float]


def how_it_went(method: str, run: Iterated, running: Running) -> dict[str, Any]:
    """What an answer says of the run behind it."""
    return {
        "method": method,
        "converged": run.converged,
        "iterations": len(run.residuals),
        "residuals": tuple(run.residuals),
        "seconds": running.seconds,
    }


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
    warn_caller(
        f"{method} did not converge in {iterations} iterations: the last change was {residual:.3g}, "
        f"above the tolerance of {tolerance:.3g}; {advice}"
    )


def warn_caller(message: str, category: type[Warning] | None = None) -> None:
    """Issue a warning, scikit-learn's ``ConvergenceWarning`` unless another is named, at the line that called the
    library, however deep this is in it."""
    if category is None:
        from sklearn.exceptions import ConvergenceWarning

        category = ConvergenceWarning
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "markovfield":
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)
