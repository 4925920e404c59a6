"""What both formats of cost functions build: costs to be minimised become log-potentials to be maximised."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt

from markovfield.exceptions import FormatError, ModelError
from markovfield.models import MarkovNetwork

__all__ = ["LARGEST_EXACT", "CostModel", "cost_from_score", "score_from_cost"]

FloatArray = npt.NDArray[np.float64]
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
        The cost from which on a tuple is forbidden; with ``maximise`` the value down to which it is.
    """

    def __init__(self, variables: dict[Any, Any], top: float, *, maximise: bool = False) -> None:
        self.net = MarkovNetwork(variables)
        self.names = list(variables)
        self.cards = [states if isinstance(states, int) else len(states) for states in variables.values()]
        self.top = top
        self.maximise = maximise
        self.cells = 0

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

    def logs(self, costs: FloatArray) -> FloatArray:
        """Log-potentials: -cost, and -inf from the top on."""
        if self.maximise:
            return np.where(costs <= self.top, -np.inf, costs)
        return np.where(costs >= self.top, -np.inf, 0.0 - costs)

    def table(self, scopes: Sequence[Sequence[int]], costs: FloatArray, blame: Blame) -> None:
        """One table on one or more scopes of the same shape."""
        named = [[self.names[v] for v in scope] for scope in scopes]
        try:
            if len(named) == 1:
                self.net.add_factor(named[0], log_table=self.logs(costs))
            else:
                self.net.add_factors(named, log_table=self.logs(costs))
        except ModelError as error:
            raise blame(str(error)) from None

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
