"""Sums of numbers that are kept as logs.

Invariant: -inf is zero, and sums of zeros are zero. Free to change: the order of addition.
"""

from __future__ import annotations

import math

import numpy as np

from markovfield.kernels.compiler import kernel
from markovfield.kernels.exponential import exp_scalar

__all__ = ["log_add", "log_sum"]


@kernel
def log_add(a, b):
    """log(exp(a) + exp(b)); either or both may be -inf."""
    high, low = max(a, b), min(a, b)
    return high if low == -np.inf else high + math.log1p(exp_scalar(low - high))


@kernel
def log_sum(values, begin, end):
    """log of the sum of exp over ``values[begin:end]``; -inf of nothing."""
    top = -np.inf
    for i in range(begin, end):
        top = max(top, values[i])
    if top == -np.inf:
        return top
    total = 0.0
    for i in range(begin, end):
        total += exp_scalar(values[i] - top)
    return top + math.log(total)
