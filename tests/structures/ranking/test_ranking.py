"""Rankings: counts, sorts against assignments, bounds of large sums, Plackett and Luce by enumeration, errors."""

from __future__ import annotations

from itertools import permutations
from math import comb, factorial, perm

import numpy as np
import pytest

import markovfield as mf
from markovfield.inference.core.running import Running
from markovfield.structures.ranking.family import Rankings
from markovfield.structures.ranking.order import _assigned, best_order

Ranking, PlackettLuce = mf.structures.Ranking, mf.structures.PlackettLuce


@pytest.mark.parametrize("n", [1, 2, 5, 9, 12])
def test_there_are_as_many_as_there_should(n):
    assert Ranking(np.zeros(n)).n_structures() == factorial(n)
    assert Ranking(np.zeros((n, n))).n_structures() == factorial(n)
    for k in {1, (n + 1) // 2, n}:
        assert Ranking(np.zeros(n), top=k).n_structures() == perm(n, k)
        assert Ranking(np.zeros(n), top=k, ordered=False).n_structures() == comb(n, k)


def test_sets_are_elementary_symmetric_polynomials_at_any_size():
    rng = np.random.default_rng(0)
    scores = rng.normal(size=300)
    form = Ranking(scores, top=40, ordered=False)
    # The coefficients of prod (1 + x exp(s)), up to the 40th, in logs.
    logs = np.full(41, -np.inf)
    logs[0] = 0.0
    for score in scores:
        logs[1:] = np.logaddexp(logs[1:], logs[:-1] + score)
    answer = mf.marginals(form)
    assert answer.guarantee == "exact"
    assert answer.log_partition == pytest.approx(logs[40], rel=1e-12)
    assert answer["positions"].sum() == pytest.approx(40)
    assert mf.decode(form).structure == sorted(np.argsort(-scores)[:40].tolist())
    assert len(set(mf.sample(form, 1, rng=0).structures[0])) == 40


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(("n", "k"), [(7, 7), (9, 4), (6, 1)])
def test_a_sort_finds_what_the_assignment_does(seed, n, k):
    rng = np.random.default_rng(seed)
    discounts = np.sort(rng.random(k))[::-1]
    scores = np.outer(rng.normal(size=n), discounts)
    alone = np.zeros(n) if k < n else None
    sorted_, assigned = best_order(scores, alone), _assigned(scores, alone, 1)
    assert scores[sorted_, range(k)].sum() == pytest.approx(scores[assigned, range(k)].sum(), abs=1e-12)
    # Ties, and scores where a sort is wrong.
    for other in (np.round(scores), rng.normal(size=(n, k))):
        best, wanted = best_order(other, alone), _assigned(other, alone, 1)
        assert len(set(best.tolist())) == k
        assert other[best, range(k)].sum() == pytest.approx(other[wanted, range(k)].sum(), abs=1e-12)


def test_large_lists_are_sorted():
    rng = np.random.default_rng(1)
    scores = rng.normal(size=2000)
    form = Ranking(scores, top=500)
    assert mf.decode(form).structure == np.argsort(-scores)[:500].tolist()


@pytest.mark.parametrize("top", [None, 4])
@pytest.mark.parametrize("ordered", [True, False])
def test_bounds_hold_where_tables_do_not_fit(top, ordered):
    rng = np.random.default_rng(2)
    form = Ranking(rng.normal(size=7), top=top, ordered=ordered)
    small = Rankings.of(form.family.items, form.family.top, ordered=ordered, exact_limit=1.0)
    exact = float(mf.log_partition(form))
    form.family = small
    answer = mf.marginals(form)
    lower, upper = answer.log_partition_bounds
    assert answer.guarantee == "lower"
    assert lower == answer.log_partition
    assert lower <= exact + 1e-9
    assert exact <= upper + 1e-9
    k = int(small.top[0])
    np.testing.assert_allclose(answer["positions"].sum(), k, atol=1e-6)
    if len(answer["unranked"]):
        np.testing.assert_allclose(answer["positions"].sum(axis=1) + answer["unranked"], 1.0, atol=1e-6)
    with pytest.raises(mf.ModelError, match=r"draws of rankings of \d of 7 items need tables .* PlackettLuce"):
        mf.sample(form, 3, rng=0)


def test_large_permutations_have_bounds():
    answer = mf.log_partition(Ranking(np.linspace(0, 1, 60)))
    lower, upper = answer.log_partition_bounds
    best = mf.decode(Ranking(np.linspace(0, 1, 60))).score
    assert lower <= best + sum(np.log(np.arange(1, 61)))
    assert 0 < upper - lower < 40


def test_several_lists_at_once():
    rng = np.random.default_rng(3)
    family = Rankings.of(np.array([3, 5]), np.array([2, 5]))
    pool = rng.normal(size=family.n_cells)
    sums = family.sums(pool, counts=True, weights=np.array([2.0, 0.5]), running=Running())
    for i, weight in enumerate((2.0, 0.5)):
        own, where = family.select(np.array([i]))
        alone = own.sums(pool[where], counts=True, running=Running())
        assert sums.log_partition[i] == pytest.approx(alone.log_partition[0])
        np.testing.assert_allclose(sums.counts[where], weight * alone.counts)


@pytest.mark.parametrize("top", [None, 2])
def test_plackett_luce_by_enumeration(top):
    rng = np.random.default_rng(4)
    scores = rng.normal(0, 1.5, 5)
    choices = PlackettLuce(scores, top=top)
    k, weights = choices.top, np.exp(scores)
    positions, total, best = np.zeros((5, k)), 0.0, -np.inf
    drawn = choices.sample(20000, rng=0)
    frequent = {tuple(row): count for row, count in zip(*np.unique(drawn, axis=0, return_counts=True), strict=True)}
    for ranking in permutations(range(5), k):
        p, left = 1.0, set(range(5))
        for item in ranking:
            p *= weights[item] / sum(weights[j] for j in left)
            left.remove(item)
        assert np.exp(choices.log_probability(ranking)) == pytest.approx(p)
        positions[list(ranking), range(k)] += p
        total += p
        best = max(best, p)
        assert abs(frequent.get(ranking, 0) / 20000 - p) <= 5 * np.sqrt(p * (1 - p) / 20000) + 1e-3
    assert total == pytest.approx(1.0)
    assert np.exp(choices.log_probability(choices.decode())) == pytest.approx(best)
    np.testing.assert_allclose(choices.positions(), positions, atol=1e-12)
    ranking, step = choices.decode()[::-1], 1e-6
    for i in range(5):
        up, down = (PlackettLuce(scores + s * np.eye(5)[i], top=top).log_probability(ranking) for s in (step, -step))
        assert choices.gradient(ranking)[i] == pytest.approx((up - down) / (2 * step), abs=1e-7)


def test_what_is_wrong_is_said():
    with pytest.raises(mf.ModelError, match=r"n items, or of n items at k positions, got shape \(2, 2, 2\)"):
        Ranking(np.zeros((2, 2, 2)))
    with pytest.raises(mf.ModelError, match="an item and a position at least"):
        Ranking([])
    with pytest.raises(mf.ModelError, match="2 items cannot fill 3 positions"):
        Ranking(np.zeros((2, 3)))
    with pytest.raises(mf.ModelError, match="top must be from 1 to 3, got 4"):
        Ranking(np.zeros(3), top=4)
    with pytest.raises(mf.ModelError, match="top must be an integer of at least 1"):
        Ranking(np.zeros(3), top=0)
    with pytest.raises(mf.ModelError, match="numbers or -inf, got nan at"):
        Ranking([0.0, np.nan])
    with pytest.raises(mf.ModelError, match="discounts are needed for 3 positions, got 2"):
        Ranking(np.zeros(3), discounts=[1.0, 0.5])
    with pytest.raises(mf.ModelError, match="discounts must be finite"):
        Ranking(np.zeros(1), discounts=[-np.inf])
    with pytest.raises(mf.ModelError, match="discounts are for scores of items"):
        Ranking(np.zeros((3, 3)), discounts=[1.0, 0.5, 0.2])
    with pytest.raises(mf.ModelError, match="a set of items has scores of items"):
        Ranking(np.zeros((3, 2)), ordered=False)
    form = Ranking(np.zeros(4), top=2)
    with pytest.raises(mf.ModelError, match=r"2 different items from 0 to 3, got \[1, 1\]"):
        form.score([1, 1])
    with pytest.raises(mf.ModelError, match="unranked items are 0 to 3"):
        mf.decode(form, {"unranked": {7: True}})
    with pytest.raises(mf.ModelError, match="all items are ranked"):
        mf.decode(Ranking(np.zeros(2)), {"unranked": {0: True}})
    with pytest.raises(mf.ModelError, match="instance 1: top must be from 1 to its 2 items, got 3"):
        Rankings.of(np.array([4, 2]), np.array([3, 3]))
    with pytest.raises(mf.ModelError, match="finite scores of one item at least"):
        PlackettLuce([])
    with pytest.raises(mf.ModelError, match="for 18 items at most, got 19"):
        PlackettLuce(np.zeros(19)).positions()
    with pytest.raises(mf.ModelError, match=r"3 different items from 0 to 2, got \[0, 1\]"):
        PlackettLuce(np.zeros(3)).log_probability([0, 1])


def test_evidence_of_unranked_items():
    form = Ranking([3.0, 2.0, 1.0, 0.0], top=2, ordered=False)
    assert mf.decode(form, {"unranked": {0: True}}).structure == [1, 2]
    assert mf.decode(form, {"unranked": {3: False}}).structure == [0, 3]
    assert mf.decode(form, {"positions": {(3, 0): True, (0, 0): False}}).structure == [1, 3]
