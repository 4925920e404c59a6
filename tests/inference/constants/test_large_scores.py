"""Scores with large constants: what is called optimal is, bounds hold, and scores are exact, for every decoder."""

from __future__ import annotations

import math
import warnings
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import markovfield as mf
from markovfield.inference.core.registry import methods
from tests.oracle import all_states, cell_index

Factors = list[tuple[tuple[int, ...], np.ndarray]]
# Seconds for those who would go on looking for a proof; what they have by then must be as true.
LIMITED = {"portfolio": 1.0, "simulated_annealing": 1.0, "subgraph_search": 1.0}
DECODERS = sorted(set(methods("decode")) - {"marginal_search"})


class Model:
    """A model of a few variables, with all scores as exact fractions."""

    def __init__(self, cards: list[int], factors: Factors, tied: bool = False) -> None:
        self.cards, self.factors = cards, factors
        self.net = mf.MarkovNetwork(dict(enumerate(cards)))
        if tied:
            by_table: dict[bytes, tuple[np.ndarray, list[tuple[int, ...]]]] = {}
            for scope, table in factors:
                by_table.setdefault(repr(table.shape).encode() + table.tobytes(), (table, []))[1].append(scope)
            for table, scopes in by_table.values():
                self.net.add_factors(scopes, log_table=table)
        else:
            for scope, table in factors:
                self.net.add_factor(list(scope), log_table=table)

    def scores(self) -> list[Fraction | None]:
        """Of every assignment, last variable fastest; None where it is ruled out."""
        states = all_states(self.cards)
        read = [table.ravel()[cell_index(self.cards, scope, states)].tolist() for scope, table in self.factors]
        exact = []
        for row in zip(*read, strict=True):
            exact.append(None if -math.inf in row else sum(map(Fraction, row), Fraction(0)))
        return exact


def structure(rng: np.random.Generator, shape: str) -> tuple[list[int], list[tuple[int, ...]]]:
    """Cardinalities and scopes of two variables and more."""
    if shape == "grid":
        cells = [(3 * i + j, 3 * i + j + step) for i in range(3) for j in range(3) for step in (1, 3)]
        return [2] * 9, [(a, b) for a, b in cells if b < 9 and (b - a == 3 or a % 3 < 2)]
    if shape == "lattice":
        cells = [(3 * i + j, 3 * i + j + step) for i in range(2) for j in range(3) for step in (1, 3)]
        return [3] * 6, [(a, b) for a, b in cells if b < 6 and (b - a == 3 or a % 3 < 2)]
    n = 6
    cards = rng.integers(1, 4, n).tolist()
    scopes = [tuple(rng.permutation(n)[:2].tolist()) for _ in range(8)]
    if shape == "higher":
        scopes += [tuple(rng.permutation(n)[:3].tolist()) for _ in range(2)]
    return cards, scopes


def base_model(rng: np.random.Generator, shape: str, whole: bool, hard: bool) -> tuple[list[int], Factors]:
    cards, scopes = structure(rng, shape)
    factors: Factors = []
    shared = None
    for scope in [*((v,) for v in range(len(cards))), *scopes]:
        size = tuple(cards[v] for v in scope)
        table = rng.integers(-9, 10, size).astype(float) if whole else rng.normal(size=size)
        if shape in ("grid", "lattice") and len(scope) == 2:
            # One table for all edges, as on images.
            shared = table if shared is None else shared
            table = shared
        if hard and len(scope) > 1:
            table = np.where(rng.random(size) < 0.15, -np.inf, table)
        factors.append((scope, table))
    return cards, factors


def with_constants(
    rng: np.random.Generator, cards: list[int], factors: Factors, where: str, constant: float
) -> Factors:
    """The same differences between scores with numbers of the size of a constant in some tables."""
    factors = list(factors)
    unary = [f for f, (scope, _) in enumerate(factors) if len(scope) == 1]
    larger = [f for f, (scope, _) in enumerate(factors) if len(scope) > 1]
    if where in ("one", "sites", "pairs"):
        chosen = {"one": unary[:1], "sites": unary, "pairs": larger}[where]
        for f in chosen:
            factors[f] = factors[f][0], factors[f][1] + constant
    elif where == "rows":
        # What a table adds for the states of one of its variables, that variable's own takes away.
        for f in larger:
            scope, table = factors[f]
            part = constant * rng.integers(-2, 3, cards[scope[0]])
            factors[f] = scope, table + part.reshape([-1] + [1] * (len(scope) - 1))
            factors[scope[0]] = (scope[0],), factors[scope[0]][1] - part
    else:
        # Two factors on the same variables that cancel.
        for f in larger:
            scope, table = factors[f]
            part = constant * rng.integers(-2, 3, table.shape)
            factors[f] = scope, table + part
            factors.append((scope, -part))
    return factors


def ask(model: Model, method: str, **keywords: Any) -> mf.Decoding | None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return mf.decode(model.net, method=method, rng=0, time_limit=LIMITED.get(method), **keywords)
        except mf.ImpossibleEvidenceError:
            raise
        except (mf.ModelError, mf.MemoryLimitError):
            return None


def check(model: Model, answer: mf.Decoding, spread: float) -> None:
    scores = model.scores()
    best = max(s for s in scores if s is not None)
    own = scores[int(np.ravel_multi_index(answer.states, model.cards))]
    assert own is not None
    room = Fraction(answer.tolerance)
    assert Fraction(answer.score) == Fraction(float(own)), "the score is the assignment's, rounded once"
    # What floats of the score's size cannot tell apart is all that constants may add.
    assert answer.tolerance <= 2e-6 * max(1.0, spread) + 4 * math.ulp(abs(float(best)))
    if answer.optimal:
        assert best - own <= room
    if answer.gap < math.inf:
        assert Fraction(answer.upper_bound) >= best - room
    if all(float(table[np.isfinite(table)].sum()).is_integer() for _, table in model.factors) and abs(best) < 2**53:
        assert not answer.optimal or own == best
        assert answer.upper_bound >= best


PLACES = ["one", "sites", "pairs", "rows", "cancel"]


@pytest.mark.parametrize("method", DECODERS)
@pytest.mark.parametrize("where", PLACES)
def test_whole_numbers_are_exact_whatever_is_added(where: str, method: str):
    for seed, (shape, constant) in enumerate([("grid", 1e9), ("lattice", 1e6), ("graph", 1e12), ("higher", 1e3)]):
        rng = np.random.default_rng([seed, PLACES.index(where)])
        cards, factors = base_model(rng, shape, True, hard=seed % 2 == 1)
        spread = sum(float(np.ptp(t[np.isfinite(t)])) for _, t in factors if np.isfinite(t).any())
        model = Model(cards, with_constants(rng, cards, factors, where, constant), tied=shape in ("grid", "lattice"))
        if all(score is None for score in model.scores()):
            continue
        answer = ask(model, method)
        if answer is not None:
            check(model, answer, spread)


@pytest.mark.parametrize("method", DECODERS)
@pytest.mark.parametrize("where", ["one", "sites", "pairs"])
def test_other_numbers_within_a_tolerance_that_knows_no_constants(where: str, method: str):
    for seed, (shape, constant) in enumerate([("grid", 1e9), ("graph", 1e6), ("higher", -1e9)]):
        rng = np.random.default_rng([seed, 7, PLACES.index(where)])
        cards, factors = base_model(rng, shape, False, hard=seed == 1)
        spread = sum(float(np.ptp(t[np.isfinite(t)])) for _, t in factors if np.isfinite(t).any())
        model = Model(cards, with_constants(rng, cards, factors, where, constant), tied=shape == "grid")
        if all(score is None for score in model.scores()):
            continue
        answer = ask(model, method)
        if answer is not None:
            check(model, answer, spread)


@pytest.mark.parametrize("method", DECODERS)
def test_decimals_under_evidence(method: str):
    """What evidence leaves of a factor is a constant as well; decimals are compared in integer multiples of a step."""
    for seed, (shape, parts, constant) in enumerate([("grid", 10, 1e6), ("higher", 100, -1e9), ("lattice", 7, 1e3)]):
        rng = np.random.default_rng([seed, 11])
        cards, factors = base_model(rng, shape, True, hard=False)
        factors = [(scope, table / parts) for scope, table in factors]
        spread = sum(float(np.ptp(table)) for _, table in factors)
        # The observed variable's row of one factor costs 10^7 more.
        scope, table = factors[-1]
        state = int(rng.integers(cards[scope[0]]))
        row = np.zeros(cards[scope[0]])
        row[state] = -1e7
        factors[-1] = scope, table + row.reshape([-1] + [1] * (len(scope) - 1))
        model = Model(cards, with_constants(rng, cards, factors, "sites", constant))
        answer = ask(model, method, evidence={scope[0]: state})
        if answer is not None:
            assert answer.states[scope[0]] == state
            known = np.where(np.arange(cards[scope[0]]) == state, 0.0, -np.inf)
            model.factors.append(((scope[0],), known))
            check(model, answer, spread)
