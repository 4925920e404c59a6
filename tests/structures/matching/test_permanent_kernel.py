"""Permanents: closed forms, larger sizes, bad input; programs with fertilities and with pairs of links."""

from __future__ import annotations

from itertools import permutations, product
from math import comb, factorial, perm

import numpy as np
import pytest

import markovfield as mf
from markovfield.structures.matching.assignment import best_program


@pytest.mark.parametrize("n", [1, 3, 6, 10])
def test_numbers_of_perfect_matchings_are_factorials(n):
    assert mf.structures.Matching(np.zeros((n, n))).n_structures() == factorial(n)


def test_numbers_of_other_matchings():
    assert mf.structures.Matching(np.zeros((3, 7))).n_structures() == perm(7, 3)
    some = sum(comb(4, k) * comb(6, k) * factorial(k) for k in range(5))
    assert mf.structures.Matching(np.zeros((4, 6)), unmatched=0.0).n_structures() == some
    # Each row any two of five columns, or one, or none; columns as many as there are rows.
    assert mf.structures.Matching(np.zeros((3, 5)), unmatched=0.0, fertility=(2, 3)).n_structures() == 16**3


def test_derangements():
    scores = np.zeros((9, 9))
    np.fill_diagonal(scores, -np.inf)
    assert mf.structures.Matching(scores).n_structures() == 133496


def test_a_permanent_by_its_definition():
    table = np.random.default_rng(0).random((6, 6))
    permanent = sum(np.prod(table[np.arange(6), list(p)]) for p in permutations(range(6)))
    assert np.exp(float(mf.log_partition(mf.structures.Matching(np.log(table))))) == pytest.approx(permanent)


def test_long_and_narrow_is_exact():
    scores = np.random.default_rng(1).normal(0, 3, (60, 4))
    answer = mf.marginals(mf.structures.Matching(scores, unmatched=0.0))
    assert answer.guarantee == "exact"
    np.testing.assert_allclose(answer["links"].sum(axis=0) + answer["unmatched_columns"], 1.0, atol=1e-9)
    turned = mf.marginals(mf.structures.Matching(scores.T, unmatched=0.0))
    np.testing.assert_allclose(turned["links"].T, answer["links"], atol=1e-12)


def test_pairs_of_links_by_brute_force():
    rng = np.random.default_rng(2)
    for _ in range(5):
        links, rows, columns = rng.normal(size=(3, 3)), rng.normal(size=3), rng.normal(size=3)
        pairs = np.array([(i, j, i + 1, j + 1) for i in range(2) for j in range(2)])
        scores = rng.normal(0, 2, len(pairs))
        best = -np.inf
        for bits in product([0, 1], repeat=9):
            chosen = np.array(bits).reshape(3, 3)
            if chosen.sum(axis=0).max() > 1 or chosen.sum(axis=1).max() > 1:
                continue
            total = (chosen * links).sum() + rows[chosen.sum(axis=1) == 0].sum()
            total += columns[chosen.sum(axis=0) == 0].sum()
            total += sum(s for (i, j, k, l), s in zip(pairs, scores, strict=True) if chosen[i, j] and chosen[k, l])
            best = max(best, total)
        ones = np.ones(3, np.int64)
        found = best_program(links, rows, columns, row_limits=ones, column_limits=ones, pairs=pairs, pair_scores=scores)
        assert found is not None
        assert found[1] == pytest.approx(best)
        assert found[2] >= best - 1e-6


def test_bad_input_gets_a_sentence():
    make = mf.structures.Matching
    for scores, settings, message in (
        (np.zeros((3, 2)), {}, "3 rows cannot all have one of 2 columns"),
        (np.zeros((0, 0)), {}, "a row or a column"),
        (np.zeros(3), {}, "2 axes"),
        (np.zeros((2, 2)), {"unmatched": np.zeros(3)}, "a number or 2 of them"),
        (np.zeros((2, 2)), {"unmatched": (1.0, 2.0, 3.0)}, "a pair"),
        (np.zeros((2, 2)), {"fertility": -1}, "whole number from 0"),
        (np.zeros((2, 2)), {"fertility": 1.5}, "whole number from 0"),
    ):
        with pytest.raises(mf.ModelError, match=message):
            make(scores, **settings)
    form = make(np.zeros((2, 3)), unmatched=0.0)
    with pytest.raises(mf.ModelError, match="more links than it may have"):
        form.score([(0, 1), (1, 1)])
    with pytest.raises(mf.ModelError, match="unmatched_rows are 0 to 1"):
        mf.decode(form, {"unmatched_rows": {2: True}})
    assert mf.decode(form, {"unmatched_rows": {1: True}, "links": {(0, 2): True}}).structure == [(0, 2)]
    large = np.zeros((40, 40))
    with pytest.raises(mf.ModelError, match="draws of matchings with 40 x 40"):
        mf.sample(make(large), 1, rng=0)
    with pytest.raises(mf.ModelError, match="fertilities need tables"):
        mf.log_partition(make(large, fertility=2))
