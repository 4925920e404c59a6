"""Cost functions that the formats name instead of listing: those that become small exact tables; others are refused."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt

from markovfield.io._wcsp_model import Blame, CostModel

__all__ = ["ARITHMETIC", "Parameters", "add_named"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

# A function of many variables that is neither pairwise nor small enough for one table is refused.
LARGEST_GLOBAL = 1 << 16


class Parameters(ABC):
    """The words after a function's name, read one after the other by whichever format they stand in."""

    @abstractmethod
    def number(self, what: str) -> float:
        """The next parameter as a number."""

    @abstractmethod
    def integer(self, what: str, low: int, high: int) -> int:
        """The next parameter as an integer in a range."""

    @abstractmethod
    def word(self, what: str) -> str:
        """The next parameter as text."""


def _penalty(excess: npt.NDArray[Any], delta: float, forbidden: float) -> FloatArray:
    return np.where(excess <= 0, 0.0, np.where(excess <= delta, excess, forbidden)).astype(float)


def _compare(name: str) -> Callable[[CostModel, Sequence[int], Parameters, Blame], FloatArray]:
    def table(model: CostModel, scope: Sequence[int], given: Parameters, blame: Blame) -> FloatArray:
        constant, delta = given.number("the constant"), given.number("delta")
        a, b = model.shape(scope)
        x, y = np.arange(a)[:, None], np.arange(b)[None, :]
        if name == "=":
            return _penalty(np.abs(y + constant - x), delta, model.forbidden)
        excess = {
            ">=": y + constant - x,
            ">": y + constant + 1 - x,
            "<=": x - constant - y,
            "<": x - constant + 1 - y,
        }[name]
        return _penalty(excess, delta, model.forbidden)

    return table


def _disjunctive(model: CostModel, scope: Sequence[int], given: Parameters, blame: Blame) -> FloatArray:
    cx, cy, penalty = given.number("cstx"), given.number("csty"), given.number("the penalty")
    a, b = model.shape(scope)
    x, y = np.arange(a)[:, None], np.arange(b)[None, :]
    return np.where((x >= y + cy) | (y >= x + cx), 0.0, penalty)


def _special_disjunctive(model: CostModel, scope: Sequence[int], given: Parameters, blame: Blame) -> FloatArray:
    cx, cy, far_x, far_y, cost_x, cost_y = (
        given.number(what) for what in ("cstx", "csty", "xinfty", "yinfty", "costx", "costy")
    )
    a, b = model.shape(scope)
    x, y = np.arange(a)[:, None], np.arange(b)[None, :]
    apart = (x >= y + cy) | (y >= x + cx) | (x >= far_x) | (y >= far_y)
    allowed = (x <= far_x) & (y <= far_y) & apart
    return np.where(allowed, np.where(x == far_x, cost_x, 0.0) + np.where(y == far_y, cost_y, 0.0), model.forbidden)


ARITHMETIC: dict[str, Callable[[CostModel, Sequence[int], Parameters, Blame], FloatArray]] = {
    **{name: _compare(name) for name in (">=", ">", "<=", "<", "=")},
    "disj": _disjunctive,
    "sdisj": _special_disjunctive,
}


def _states(model: CostModel, scope: Sequence[int], name: str, blame: Blame) -> IntArray:
    """Every tuple of a small scope, ``[cells, variables]``."""
    size = 1
    for card in model.shape(scope):
        size *= card
    if size > LARGEST_GLOBAL:
        raise blame(
            f"the global cost function {name!r} on {len(scope)} variables has no small exact form "
            f"(as a table it needs {size:.3g} entries, and at most {LARGEST_GLOBAL} are made)"
        )
    model.check_room(scope, blame)
    return np.indices(model.shape(scope)).reshape(len(scope), -1).T


def _add(model: CostModel, scope: Sequence[int], costs: npt.NDArray[np.floating], blame: Blame) -> None:
    model.table([scope], np.asarray(costs, float).reshape(model.shape(scope)), blame)


def _hard(model: CostModel, cost: float) -> bool:
    return not model.maximise and cost >= model.top


def _all_different(model: CostModel, scope: Sequence[int], given: Parameters, blame: Blame, name: str) -> None:
    how = given.word("var, dec or decbi")
    if how not in ("var", "dec", "decbi"):
        raise blame(f"{name!r} must count by var, dec or decbi, got {how!r}")
    cost = given.number("the cost")
    if _hard(model, cost) or how != "var":
        model.differences(scope, cost, blame)
        return
    states = np.sort(_states(model, scope, name, blame), axis=1)
    distinct = 1 + (np.diff(states, axis=1) != 0).sum(axis=1)
    _add(model, scope, cost * (len(scope) - distinct), blame)


def _global_cardinality(model: CostModel, scope: Sequence[int], given: Parameters, blame: Blame, name: str) -> None:
    how = given.word("var, dec or wdec")
    if how not in ("var", "dec"):
        raise blame(f"the global cost function {name!r} that counts by {how!r} is not supported")
    cost = given.number("the cost")
    n_values = given.integer("the number of values", 0, max(model.shape(scope)))
    bounds = []
    for _ in range(n_values):
        value = given.integer("a value", 0, max(model.shape(scope)) - 1)
        low = given.integer("a lower bound", 0, 1 << 31)
        bounds.append((value, low, given.integer("an upper bound", 0, 1 << 31)))
    states = _states(model, scope, name, blame)
    shortage, excess = np.zeros(len(states)), np.zeros(len(states))
    for value, low, high in bounds:
        count = (states == value).sum(axis=1)
        shortage += np.maximum(low - count, 0)
        excess += np.maximum(count - high, 0)
    violation = np.maximum(shortage, excess) if how == "var" else shortage + excess
    _add(model, scope, np.where(violation > 0, cost * violation, 0.0), blame)


def _clique(model: CostModel, scope: Sequence[int], given: Parameters, blame: Blame, name: str) -> None:
    most = given.integer("the right-hand side", 0, len(scope))
    chosen = []
    for v in scope:
        n = given.integer("the number of values", 0, model.cards[v])
        inside = np.zeros(model.cards[v], bool)
        inside[[given.integer("a value", 0, model.cards[v] - 1) for _ in range(n)]] = True
        chosen.append(inside)
    if most == 1:
        for i, j in combinations(range(len(scope)), 2):
            model.check_room([scope[i], scope[j]], blame)
            _add(model, [scope[i], scope[j]], np.where(np.outer(chosen[i], chosen[j]), model.forbidden, 0.0), blame)
        return
    states = _states(model, scope, name, blame)
    count = sum(chosen[i][states[:, i]].astype(int) for i in range(len(scope)))
    _add(model, scope, np.where(np.asarray(count) > most, model.forbidden, 0.0), blame)


def _knapsack(model: CostModel, scope: Sequence[int], given: Parameters, blame: Blame, name: str) -> None:
    """Sum of weight times state at least the capacity."""
    capacity = given.number("the capacity")
    weights = np.array([given.number("a weight") for _ in scope])
    states = _states(model, scope, name, blame)
    _add(model, scope, np.where(states @ weights >= capacity, 0.0, model.forbidden), blame)


def _maximum(model: CostModel, scope: Sequence[int], given: Parameters, blame: Blame, name: str) -> None:
    """The largest of costs that each variable has by itself."""
    default = given.number("the default cost")
    unary = [np.full(model.cards[v], default) for v in scope]
    for _ in range(given.integer("the number of tuples", 0, sum(model.shape(scope)))):
        i = given.integer("a position in the scope", 0, len(scope) - 1)
        value = given.integer("a value", 0, model.cards[scope[i]] - 1)
        unary[i][value] = given.number("a cost")
    states = _states(model, scope, name, blame)
    _add(model, scope, np.max([unary[i][states[:, i]] for i in range(len(scope))], axis=0), blame)


_GLOBALS = {
    "salldiff": _all_different,
    "sgcc": _global_cardinality,
    "clique": _clique,
    "knapsack": _knapsack,
    "max": _maximum,
}


def add_named(model: CostModel, scope: Sequence[int], name: str, given: Parameters, blame: Blame) -> None:
    """Add the cost function of this name, or say that it is not supported."""
    if name in ARITHMETIC:
        if len(scope) != 2:
            raise blame(f"{name!r} takes two variables, got {len(scope)}")
        model.check_room(scope, blame)
        model.table([scope], ARITHMETIC[name](model, scope, given, blame), blame)
    elif name in _GLOBALS:
        if model.maximise:
            raise blame(f"the global cost function {name!r} is not supported where the sum is maximised")
        if not scope:
            raise blame(f"{name!r} needs a variable")
        _GLOBALS[name](model, scope, given, blame, name)
    else:
        raise blame(f"the global cost function {name[:40]!r} is not supported")
