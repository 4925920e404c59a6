"""The generalised distributive law: what else the sum and the product of a model can mean (seed 004).

Elimination and junction trees only need that "plus" and "times" form a commutative semiring. Each semiring here is one
of three inner algebras (sums in scaled linear space, sums in log space, maxima in log space) and a reading of its
result; `markovfield.analysis.aggregate` runs them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markovfield.exceptions import ModelError

__all__ = [
    "COUNTING",
    "ENTROPY",
    "MAX_PRODUCT",
    "MAX_SUM",
    "MIN_SUM",
    "SUM_PRODUCT",
    "Expectation",
    "KBest",
    "Semiring",
    "by_name",
]


@dataclass(frozen=True)
class Semiring:
    """A commutative semiring over scores: its name, what "plus" and "times" are, what comes out."""

    name: str
    plus: str
    times: str
    result: str


SUM_PRODUCT = Semiring("sum_product", "log(exp a + exp b)", "a + b", "log of the partition function")
MAX_SUM = Semiring("max_sum", "max(a, b)", "a + b", "the best score")
MAX_PRODUCT = Semiring("max_product", "max(a, b)", "a * b", "exp of the best score")
MIN_SUM = Semiring("min_sum", "min(a, b)", "a + b", "the lowest score")
COUNTING = Semiring("counting", "a + b", "a * b", "the number of assignments that no hard constraint excludes")
ENTROPY = Semiring("entropy", "(a + b, r + s)", "(a b, a s + b r)", "entropy of the distribution, in nats")


@dataclass(frozen=True)
class KBest:
    """The k best scores, in falling order: plus merges two sorted lists, times adds them pairwise."""

    k: int
    name: str = "k_best"

    def __post_init__(self) -> None:
        if self.k < 1:
            raise ModelError(f"k must be at least 1, got {self.k}")


@dataclass(frozen=True, eq=False)
class Expectation:
    """The expected sum of a function that adds up over factors; ``values`` gives it for every cell of the pool."""

    values: Sequence[float]
    name: str = "expectation"


_NAMED = {s.name: s for s in (SUM_PRODUCT, MAX_SUM, MAX_PRODUCT, MIN_SUM, COUNTING, ENTROPY)}


def by_name(semiring: str | Semiring | KBest | Expectation) -> Semiring | KBest | Expectation:
    """A semiring from its name; objects are passed through.

    Examples
    --------
    >>> by_name("max_sum").plus
    'max(a, b)'
    """
    if isinstance(semiring, Semiring | KBest | Expectation):
        return semiring
    if not isinstance(semiring, str) or semiring not in _NAMED:
        raise ModelError(
            f"there is no semiring {semiring!r}; choose from {', '.join(_NAMED)}, KBest(k) or Expectation(values)"
        )
    return _NAMED[semiring]
