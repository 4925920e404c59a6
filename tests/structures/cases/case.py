"""What the conformance suite needs of a form."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Case:
    """A form with random scores, and its structures enumerated by code that shares nothing with it.

    Attributes
    ----------
    name
        Of the test.
    make
        From a generator to a form, small: at most a few thousand structures.
    enumerate
        From that form to all its possible structures with their scores, ``[(structure, score), ...]``, the structure as
        ``form.structure`` writes it; those with a score of -inf may be left out. Computed from ``form.given_scores``,
        what the user gave, or whatever else the case keeps; never from the pool.
    key
        From a structure to something hashable.
    exact_sums
        Whether log Z is exact at this size.
    """

    name: str
    make: Callable[[np.random.Generator], Any]
    enumerate: Callable[[Any], list[tuple[Any, float]]]
    key: Callable[[Any], Any] = lambda structure: tuple(map(tuple, structure))
    exact_sums: bool = True
