"""From a decoding to a picture of labels, with a word about what was not finished."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from markovfield.arrays import IntArray
from markovfield.inference.constants.scale import extremes
from markovfield.inference.core.convergence import warn_caller, without_warnings
from markovfield.inference.core.decodings import Decoding

__all__ = ["labels_of"]

# A gap above this share of what the labels cost, next to the best of every factor by itself, is far from closed.
FAR = 0.05


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
