"""Messages and statistics of structured factors against sums and maxima over the whole table."""

from __future__ import annotations

import time
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from markovfield.factors.dispatch_kernel import (
    structured_factor_messages,
    structured_statistics,
    structured_work_size,
)
from markovfield.factors.kinds_kernel import CARDINALITY, CLAUSE, DISTANCE, NOISY_MAX, PARITY, cap_of, literal_of

NAMES = {CLAUSE: "clause", CARDINALITY: "cardinality", PARITY: "parity", DISTANCE: "distance", NOISY_MAX: "noisy-max"}


@dataclass(frozen=True)
class Case:
    """One factor with the messages that reach it."""

    kind: int
    cards: np.ndarray
    strides: np.ndarray
    pool: np.ndarray
    base: int
    incoming: np.ndarray

    def messages(self, maximise: bool) -> tuple[float, list[np.ndarray]]:
        """What the kernels say: the total and the message to each variable."""
        work = np.full(structured_work_size(self.kind, len(self.cards), self.cards, self.strides), np.nan)
        outgoing = np.full(len(self.incoming), np.nan)
        before = self.incoming.copy()
        total = structured_factor_messages(
            self.kind, len(self.cards), self.cards, self.strides, self.pool, self.base, self.incoming, outgoing,
            np.bool_(maximise), work,
        )  # fmt: skip
        np.testing.assert_array_equal(self.incoming, before)
        return total, np.split(outgoing, np.cumsum(self.cards)[:-1]) if len(self.cards) else []

    def statistics(self) -> tuple[float, np.ndarray]:
        work = np.full(structured_work_size(self.kind, len(self.cards), self.cards, self.strides), np.nan)
        counts = np.zeros(len(self.pool))
        total = structured_statistics(
            self.kind, len(self.cards), self.cards, self.strides, self.pool, self.base, self.incoming, counts, work
        )
        return total, counts

    # Straight from the definitions.

    def cell(self, states: tuple[int, ...]) -> int:
        if self.kind == DISTANCE:
            return self.base + min(abs(states[0] - states[1]), int(self.strides[0]))
        counter = self.kind == CARDINALITY
        true = 0
        for x, stride in zip(states, self.strides.tolist(), strict=True):
            literal = literal_of(stride) if counter else stride
            true += x != literal if literal >= 0 else x == -literal - 1
        if counter:
            return self.base + (min(true, cap_of(int(self.strides[0]))) if len(states) else 0)
        return self.base + (true % 2 if self.kind == PARITY else min(true, 1))

    def table(self) -> np.ndarray:
        table = np.empty(tuple(self.cards), np.longdouble)
        k = int(self.cards[-1]) if len(self.cards) else 0
        for states in product(*(range(c) for c in self.cards)):
            if self.kind != NOISY_MAX:
                table[states] = self.pool[self.cell(states)]
                continue
            rows = [self.base + s + k * x for s, x in zip(self.strides, (*states[:-1], 0), strict=True)]
            total = np.longdouble(-np.inf)
            for drawn in product(range(k), repeat=len(rows)):
                if max(drawn) == states[-1]:
                    total = np.logaddexp(total, sum(self.pool[r + j] for r, j in zip(rows, drawn, strict=True)))
            table[states] = total
        return table

    def along(self, axis: int) -> np.ndarray:
        part = np.split(self.incoming, np.cumsum(self.cards)[:-1])[axis].astype(np.longdouble)
        return part.reshape([-1 if a == axis else 1 for a in range(len(self.cards))])

    def whole(self, without: int = -1) -> np.ndarray:
        """The table plus all messages, or all but one."""
        total = self.table()
        for axis in range(len(self.cards)):
            if axis != without:
                total = total + self.along(axis)
        return total


def reduced(values: np.ndarray, maximise: bool, axis: tuple[int, ...] | None = None) -> Any:
    top = values.max(axis=axis, keepdims=True)
    if maximise:
        return np.squeeze(top, axis=axis)
    safe = np.where(np.isneginf(top), 0.0, top)
    with np.errstate(divide="ignore"):
        logs = np.log(np.exp(values - safe).sum(axis=axis, keepdims=True)) + safe
    return np.squeeze(logs, axis=axis)


def check(case: Case, *, tolerance: float = 1e-9) -> None:
    table = case.table()
    sums = [False] if case.kind == NOISY_MAX else [False, True]
    for maximise in sums:
        total, found = case.messages(maximise)
        expected = float(reduced(case.whole(), maximise))
        assert total == expected or total == pytest.approx(expected, abs=tolerance, rel=1e-11)
        for axis, message in enumerate(found):
            others = tuple(a for a in range(len(case.cards)) if a != axis)
            wanted = reduced(case.whole(axis), maximise, others)
            top = wanted.max()
            wanted = (wanted - (0.0 if np.isneginf(top) else top)).astype(float)
            np.testing.assert_allclose(message, wanted, atol=tolerance, rtol=1e-10)
            assert np.isneginf(top) or message.max() == 0.0
    if case.kind == NOISY_MAX:
        return
    total, counts = case.statistics()
    whole = case.whole()
    value = reduced(whole, False)
    expected_counts = np.zeros(len(case.pool))
    if np.isfinite(value):
        for states in np.ndindex(*table.shape):
            expected_counts[case.cell(states)] += float(np.exp(whole[states] - value))
    np.testing.assert_allclose(counts, expected_counts, atol=tolerance)
    assert total == float(value) or total == pytest.approx(float(value), abs=tolerance, rel=1e-11)


def incoming_messages(rng: np.random.Generator, size: int, scale: float, zeros: float) -> np.ndarray:
    values = scale * rng.normal(size=size)
    return np.where(rng.random(size) < zeros, -np.inf, values)


@st.composite
def cases(draw: Any, kind: int) -> Case:
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    zeros = draw(st.sampled_from([0.0, 0.2, 0.6]))
    if kind == DISTANCE:
        cards = np.array(draw(st.tuples(st.integers(1, 9), st.integers(1, 9))))
        cap = draw(st.integers(1, 9))
        strides, cells = np.array([cap, cap]), cap + 1
    elif kind == NOISY_MAX:
        k = draw(st.integers(1, 3))
        parents = draw(st.lists(st.integers(1, 3), max_size=3))
        cards = np.array([*parents, k])
        sizes = [*(c * k for c in parents), k]
        strides, cells = np.cumsum([0, *sizes[:-1]]), sum(sizes)
    else:
        cards = np.array(draw(st.lists(st.integers(1, 4), max_size=6)), np.int64)
        strides = np.array([draw(st.integers(-c, c - 1)) for c in cards.tolist()], np.int64)
        cells = 2
        if kind == CARDINALITY:
            cap = draw(st.integers(1, 20))
            strides, cells = strides + (cap << 32), cap + 1
    base = draw(st.integers(0, 3))
    pool = rng.normal(size=base + cells + 1) * 3
    pool[rng.random(len(pool)) < draw(st.sampled_from([0.0, 0.3]))] = -np.inf
    scale = draw(st.sampled_from([1.0, 20.0, 400.0]))
    incoming = incoming_messages(rng, int(cards.sum()), scale, zeros)
    return Case(kind, cards.astype(np.int64), strides.astype(np.int64), pool, base, incoming)


@pytest.mark.parametrize("kind", NAMES, ids=NAMES.get)
@given(data=st.data())
@settings(max_examples=60, deadline=None)
def test_messages_and_statistics(kind: int, data: Any):
    check(data.draw(cases(kind)))


@pytest.mark.parametrize("seed", range(30))
def test_statistics_are_the_gradient_of_the_total(seed: int):
    rng = np.random.default_rng(seed)
    kind = list(NAMES)[seed % len(NAMES)]
    if kind == DISTANCE:
        cards, strides, cells = [5, 4], [3, 3], 4
    elif kind == NOISY_MAX:
        cards, strides, cells = [2, 3, 3], [0, 6, 15], 18
    else:
        cards, strides, cells = [2, 3, 2, 4], [0, -2, -1, 3], 2
        if kind == CARDINALITY:
            strides, cells = [s + (3 << 32) for s in strides], 4
    pool = rng.normal(size=cells)
    incoming = rng.normal(size=sum(cards))
    arrays = np.array(cards, np.int64), np.array(strides, np.int64)
    _, counts = Case(kind, *arrays, pool, 0, incoming).statistics()
    for i in range(cells):
        step = np.zeros(cells)
        step[i] = 1e-5
        up, down = (Case(kind, *arrays, pool + s, 0, incoming).messages(False)[0] for s in (step, -step))
        assert counts[i] == pytest.approx((up - down) / 2e-5, abs=1e-8)


def distance(cells: np.ndarray, cards: tuple[int, int], incoming: np.ndarray) -> Case:
    cap = len(cells) - 1
    return Case(DISTANCE, np.array(cards), np.array([cap, cap]), np.asarray(cells, float), 0, incoming)


SHAPES = {
    "linear": lambda d, cap: -0.4 * np.minimum(d, cap - 0.5),
    "untruncated linear": lambda d, cap: -0.4 * d,
    "steep linear": lambda d, cap: 7.0 - 60.0 * d,
    "flat": lambda d, cap: 0.0 * d,
    "rising": lambda d, cap: 0.4 * d,
    "quadratic": lambda d, cap: -0.07 * np.minimum(d**2, cap**2 - 0.5),
    "falls at the end": lambda d, cap: np.where(d < cap, -0.1 * d, -50.0),
    "rises at the end": lambda d, cap: np.where(d < cap, -0.4 * d, 3.0),
    "far above at the end": lambda d, cap: np.where(d < cap, -0.4 * d, 900.0),
    "hard at the end": lambda d, cap: np.where(d < cap, -0.1 * d, -np.inf),
    "hard at the start": lambda d, cap: np.where(d > 0, -0.1 * d, -np.inf),
    "any": lambda d, cap: np.sin(d * 1.7),
}


@pytest.mark.parametrize("cap", [1, 2, 5, 20, 27, 45])
@pytest.mark.parametrize("shape", SHAPES)
def test_distances_of_every_shape(shape: str, cap: int):
    """Long enough for blocks to be cut, with a different number of states on either side."""
    rng = np.random.default_rng(cap)
    for cards in ((60, 60), (60, 31), (13, 60), (21, 22)):
        for scale, zeros in ((1.0, 0.0), (5.0, 0.5), (300.0, 0.1)):
            incoming = incoming_messages(rng, sum(cards), scale, zeros)
            check(distance(SHAPES[shape](np.arange(cap + 1.0), cap), cards, incoming))


def test_rare_states_are_not_lost():
    """A message 800 below the largest survives where all that is larger is forbidden."""
    incoming = np.array([0.0, -800.0, -810.0, 0.0, 0.0, 0.0])
    _, (_, back) = distance(np.array([-np.inf, 0.0]), (3, 3), incoming[::-1].copy()).messages(False)
    np.testing.assert_allclose(back, [0.0, 0.0, 0.0], atol=1e-12)
    _, (to_first, _) = distance(np.array([-np.inf, 0.0]), (3, 3), np.roll(incoming, 3)).messages(False)
    np.testing.assert_allclose(to_first, [-800.0 + np.log1p(np.exp(-10.0)), 0.0, 0.0], rtol=1e-14)
    clause = Case(
        CLAUSE, np.array([2, 2]), np.array([0, 0]), np.array([-np.inf, 0.0]), 0, np.array([0, -800.0, 0, -900])
    )
    total, (first, _) = clause.messages(False)
    assert total == pytest.approx(-800.0, rel=1e-14)
    np.testing.assert_allclose(first, [-900.0, 0.0], rtol=1e-14)


@pytest.mark.parametrize("seed", range(12))
def test_maxima_by_sorting(seed: int):
    """Thirty literals, against a maximum over every count: the best of c is the sum of the c largest gains."""
    rng = np.random.default_rng(seed)
    n, cap = 30, int(rng.integers(17, 31))
    incoming = incoming_messages(rng, 2 * n, 3.0, (0.0, 0.1)[seed % 2])
    if seed == 5:
        incoming[4:6] = -np.inf  # one variable for which nothing is possible
    pool = rng.normal(size=cap + 1) * 4
    case = Case(CARDINALITY, np.full(n, 2), np.full(n, cap << 32), pool, 0, incoming)
    total, found = case.messages(True)
    pairs = incoming.reshape(n, 2)

    def best(chosen: np.ndarray) -> np.ndarray:
        """By the number of true literals among the chosen, one variable after the other."""
        scores = np.full(n + 1, -np.inf)
        scores[0] = 0.0
        for false, true in chosen:
            scores[1:] = np.maximum(scores[1:] + false, scores[:-1] + true)
            scores[0] += false
        return scores

    def potential(extra: int, scores: np.ndarray) -> float:
        return float(max(pool[min(c + extra, cap)] + s for c, s in enumerate(scores)))

    expected = potential(0, best(pairs))
    assert total == expected or total == pytest.approx(expected, abs=1e-9)
    for i in range(n):
        others = best(np.delete(pairs, i, axis=0))
        wanted = np.array([potential(0, others), potential(1, others)])
        np.testing.assert_allclose(found[i], wanted - (wanted.max() if wanted.max() > -np.inf else 0), atol=1e-9)


def test_a_noisy_max_has_no_maxima():
    case = Case(NOISY_MAX, np.array([2, 2]), np.array([0, 4]), np.zeros(6), 0, np.zeros(4))
    total, found = case.messages(True)
    assert np.isnan(total) and all(np.isnan(m).all() for m in found)


def seconds(case: Case, maximise: bool, repeats: int = 7) -> float:
    """The shortest of a few runs."""
    work = np.empty(structured_work_size(case.kind, len(case.cards), case.cards, case.strides))
    outgoing = np.empty(len(case.incoming))
    times = []
    for _ in range(repeats):
        started = time.process_time()
        structured_factor_messages(
            case.kind, len(case.cards), case.cards, case.strides, case.pool, case.base, case.incoming, outgoing,
            np.bool_(maximise), work,
        )  # fmt: skip
        times.append(time.process_time() - started)
    return min(times)


@pytest.mark.parametrize("maximise", [False, True], ids=["sum", "max"])
@pytest.mark.parametrize("what", ["potts", "linear", "half linear", "quadratic"])
def test_time_is_linear_in_the_states(what: str, maximise: bool):
    rng = np.random.default_rng(0)

    def made(k: int) -> Case:
        # A truncation that does not grow with K, but for "half linear", and quadratic maxima, where it may.
        grows = what == "half linear" or (what == "quadratic" and maximise)
        cap = 1 if what == "potts" else k // 2 if grows else 30
        d = np.arange(cap + 1.0)
        cells = -1e-3 * d if what != "quadratic" else -1e-7 * d**2
        return distance(cells, (k, k), rng.normal(size=2 * k))

    # Sixteen times the states: sixteen times the time, where a table would take 256 times.
    short, long = seconds(made(1024), maximise), seconds(made(16 * 1024), maximise)
    assert long < 60 * short


@pytest.mark.parametrize("maximise", [False, True], ids=["sum", "max"])
@pytest.mark.parametrize("kind", [CLAUSE, PARITY, CARDINALITY], ids=NAMES.get)
def test_a_thousand_variables(kind: int, maximise: bool):
    """Milliseconds, where a table would have 2^1000 cells; independent variables have a closed form."""
    rng = np.random.default_rng(1)
    n = 1000
    odds = rng.normal(size=n) - 4.0
    incoming = np.stack([np.zeros(n), odds], axis=1).ravel()
    # Clause: some is true. Parity: an odd number is. Cardinality: exactly one is.
    pool = np.array([-np.inf, 0.0, -np.inf])[: 3 if kind == CARDINALITY else 2]
    strides = np.full(n, (2 << 32) if kind == CARDINALITY else 0)
    case = Case(kind, np.full(n, 2), strides, pool, 0, incoming)
    total, found = case.messages(maximise)
    p = np.exp(odds)
    if kind == CARDINALITY:
        expected = odds.max() if maximise else np.log(p.sum())
        rest = (np.sort(odds)[-2] if odds[0] == odds.max() else odds.max()) if maximise else np.log(p[1:].sum())
        assert found[0][0] - found[0][1] == pytest.approx(rest, abs=1e-9)
    elif maximise:
        assert (odds < 0).all()
        expected = odds.max()
    elif kind == PARITY:
        expected = np.log1p(p).sum() + np.log(0.5 - 0.5 * np.prod((1 - p) / (1 + p)))
    else:
        expected = np.log(np.prod(1 + p) - 1.0)
    assert total == pytest.approx(expected, abs=1e-9)
    assert seconds(case, maximise) < 0.02


def test_a_full_cardinality_of_a_thousand_variables():
    rng = np.random.default_rng(2)
    n = 1000
    case = Case(
        CARDINALITY, np.full(n, 2), np.full(n, n << 32), rng.normal(size=n + 1), 0, rng.normal(size=2 * n)
    )  # fmt: skip
    assert seconds(case, False, 3) < 1.0
    assert seconds(case, True, 3) < 0.02
