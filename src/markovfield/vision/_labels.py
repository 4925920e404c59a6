"""What both readers of pictures share: their settings, and labels with a word about what was not finished."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import Any, Self

import numpy as np

from markovfield.arrays import IntArray
from markovfield.exceptions import ModelError
from markovfield.inference.constants.scale import extremes
from markovfield.inference.core.convergence import warn_caller, without_warnings
from markovfield.inference.core.decodings import Decoding

__all__ = ["Settings", "labels_of"]

# A gap above this share of what the labels cost, next to the best of every factor by itself, is far from closed.
FAR = 0.05


class Settings:
    """The fields of a dataclass as parameters."""

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The constructor's parameters, as scikit-learn asks for them."""
        return {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]

    def set_params(self, **parameters: Any) -> Self:
        """Set parameters of the constructor; returns this object."""
        known = self.get_params()
        for name, value in parameters.items():
            if name not in known:
                raise ModelError(f"{type(self).__name__} has no parameter {name!r}; it has {', '.join(known)}")
            setattr(self, name, value)
        return self


def labels_of(decode: Callable[[], Decoding], shape: tuple[int, ...]) -> IntArray:
    """The states of a decoding as ``int64`` of that shape; a warning where it was cut off far from its bound.

    The labels themselves cannot say so. Whoever wants to know more takes the decoding.
    """
    with without_warnings():
        found = decode()
    if not found.converged and not found.optimal:
        cost = float(extremes(found.graph).top.sum()) - found.score
        if not found.gap <= FAR * cost:
            proven = "nothing bounds how far from the best"
            if found.gap < np.inf:
                proven = f"the best may cost {found.gap / cost:.0%} less"
            warn_caller(
                f"these labels are those that {found.method} had when it was stopped, and {proven}: give it more time "
                "or another method, and see decode(...) for the gap"
            )
    return found.states.reshape(shape).astype(np.int64)
