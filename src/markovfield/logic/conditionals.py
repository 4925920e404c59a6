"""Conditional probabilities as weighted formulas: what tied Bayesian networks are made of."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from markovfield.exceptions import ModelError
from markovfield.logic.language.program import Rule
from markovfield.logic.language.reader import formula_of
from markovfield.logic.language.syntax import And, Constant, Formula, Implies, Not, free_variables, substitute

__all__ = ["conditional_rules"]

# How far from one probabilities may sum.
ROUNDING = 1e-6
Weights = dict[tuple[str, ...], float]


def conditional_rules(
    child: str, given: str, probability: float | Mapping[tuple[str, ...], float]
) -> Iterator[tuple[Rule, Weights]]:
    """Rules that say ``P(child | given)``, each with its weights where it has several.

    A weight is the log of a probability; zero and one are hard formulas.
    """
    head, own = formula_of(child)
    condition, others = formula_of(given) if given.strip() else (None, ())
    each = (*others, *(name for name in own if name not in others))
    if not isinstance(probability, Mapping):
        if each:
            raise ModelError(f"P({child} | {given}) has + variables, and needs a probability for each of their values")
        p = _checked(probability, child, given)
        for sign, value in ((True, p), (False, 1.0 - p)):
            literal: Formula = head if sign else Not(head)
            if value == 0.0:
                yield Rule(_unless(condition, literal), hard=True), {}
            elif value < 1.0:
                yield Rule(_both(condition, literal), float(np.log(value))), {}
        return
    if not each:
        raise ModelError(f"P({child} | {given}) has no + variables, and needs one probability")
    table = {(key,) if isinstance(key, str) else tuple(key): value for key, value in probability.items()}
    sums: dict[tuple[str, ...], float] = {}
    weights: Weights = {}
    inner = [i for i, name in enumerate(each) if condition is not None and name in free_variables(condition)]
    for key, value in table.items():
        if len(key) != len(each):
            raise ModelError(f"P({child} | {given}) is given for {key}, and has the + variables {', '.join(each)}")
        p = _checked(value, child, given)
        group = tuple(key[i] for i in inner)
        sums[group] = sums.get(group, 0.0) + p
        if p == 0.0:
            constants = {name: Constant(value) for name, value in zip(each, key, strict=True)}
            yield Rule(substitute(_unless(condition, head), dict(constants)), hard=True), {}
        else:
            weights[key] = float(np.log(p))
    for group, total in sums.items():
        if abs(total - 1.0) > ROUNDING:
            raise ModelError(f"P({child} | {given}) sums to {total:g} for {', '.join(group) or 'all values'}, not to 1")
    yield Rule(_both(condition, head), 0.0, each=each), weights


def _both(condition: Formula | None, head: Formula) -> Formula:
    return head if condition is None else And((condition, head))


def _unless(condition: Formula | None, head: Formula) -> Formula:
    return Not(head) if condition is None else Implies(condition, Not(head))


def _checked(p: float, child: str, given: str) -> float:
    if not isinstance(p, int | float | np.number) or isinstance(p, bool) or not 0.0 <= p <= 1.0:
        raise ModelError(f"P({child} | {given}) must be a probability, got {p!r}")
    return float(p)
