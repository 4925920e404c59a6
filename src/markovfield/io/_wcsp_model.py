"""What both formats of cost functions build: costs to be minimised become log-potentials to be maximised."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import combinations
from typing import Any

import numpy as np

from markovfield.arrays import FloatArray
from markovfield.exceptions import FormatError, ModelError
from markovfield.models import MarkovNetwork

__all__ = ["LARGEST_EXACT", "CostModel", "cost_from_score", "score_from_cost"]

Blame = Callable[[str], FormatError]

# A file of a few lines may ask for tables of any size: one function, and all together, stop here.
LARGEST_TABLE = 1 << 24
LARGEST_TOTAL = 1 << 25
LARGEST_EXACT = 1 << 53


def score_from_cost(cost: float, *, maximise: bool = False) -> float:
    """The score of an assignment of a cost network: minus its cost, or the value itself where that is maximised.

    Examples
    --------
    >>> score_from_cost(159)
    -159.0
    """
    return float(cost) if maximise else 0.0 - float(cost)


def cost_from_score(score: float, *, maximise: bool = False) -> float:
    """The cost of an assignment from its score: what toulbar2 would report.

    Examples
    --------
    >>> cost_from_score(-159.0)
    159.0
    """
    return float(score) if maximise else 0.0 - float(score)


class CostModel:
    """A Markov network in the making, and how its costs are read.

    Parameters
    ----------
    variables
        Name to number of states or state names, in order.
    top
        The bound that the *sum* of all costs must stay below; with ``maximise`` the one it must stay above.
    signed
        Whether costs may be negative. Then a tuple is forbidden where even the least costs of all other functions leave
        the sum at the bound; otherwise where it reaches the bound by itself.
    """

    def __init__(self, variables: dict[Any, Any], top: float, *, maximise: bool = False, signed: bool = False) -> None:
        self.net = MarkovNetwork(variables)
        self.names = list(variables)
        self.cards = [states if isinstance(states, int) else len(states) for states in variables.values()]
        self.top = top
        self.maximise, self.signed = maximise, signed
        # The cost of what is forbidden whatever the bound is.
        self.forbidden = -np.inf if maximise else np.inf
        self.cells = 0
        self._waiting: list[tuple[list[list[Any]], FloatArray, Blame]] = []

    def shape(self, scope: Sequence[int]) -> tuple[int, ...]:
        """Numbers of states of some variables, by position."""
        return tuple(self.cards[v] for v in scope)

    def check_room(self, scope: Sequence[int], blame: Blame, *, copies: int = 1) -> int:
        """Refuse a table that is too large, before it is made; its cells."""
        size = 1
        for card in self.shape(scope):
            size *= card
        if size > LARGEST_TABLE:
            raise blame(f"a cost function on {len(scope)} variables needs a table of {size:.3g} entries")
        self.cells += size * copies
        if self.cells > LARGEST_TOTAL:
            raise blame(f"the cost functions so far need tables of {self.cells:.3g} entries together")
        return size

    def table(self, scopes: Sequence[Sequence[int]], costs: FloatArray, blame: Blame) -> None:
        """One table on one or more scopes of the same shape; what is forbidden is known when all are there."""
        self._waiting.append(([[self.names[v] for v in scope] for scope in scopes], costs, blame))

    def finish(self) -> MarkovNetwork:
        """The network of all tables: log-potentials are minus the costs, and -inf for what is forbidden."""
        sign = 1.0 if self.maximise else -1.0
        # What each function adds to the sum at best, where that is more than nothing.
        gains = [max(0.0, float((sign * costs).max(initial=-np.inf))) * self.signed for _, costs, _ in self._waiting]
        together = math.fsum(gain * len(scopes) for gain, (scopes, _, _) in zip(gains, self._waiting, strict=True))
        for gain, (scopes, costs, blame) in zip(gains, self._waiting, strict=True):
            scores = sign * costs + 0.0
            others = together - gain
            # Decimal numbers that add up to the bound may miss it by rounding.
            slack = 8.0 * np.finfo(float).eps * (abs(self.top) + together) if others else 0.0
            logs = np.where(scores + others <= sign * self.top + slack, -np.inf, scores)
            try:
                if len(scopes) == 1:
                    self.net.add_factor(scopes[0], log_table=logs)
                else:
                    self.net.add_factors(scopes, log_table=logs)
            except ModelError as error:
                raise blame(str(error)) from None
        return self.net

    def differences(self, scope: Sequence[int], cost: float, blame: Blame) -> None:
        """For each pair of variables with the same state, a cost."""
        tables: dict[tuple[int, ...], FloatArray] = {}
        pairs = list(combinations(scope, 2))
        for pair in pairs:
            shape = self.shape(pair)
            if shape not in tables:
                self.check_room(pair, blame)
                tables[shape] = np.zeros(shape)
                np.fill_diagonal(tables[shape], cost)
        for shape, table in tables.items():
            self.table([pair for pair in pairs if self.shape(pair) == shape], table, blame)
