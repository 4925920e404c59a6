"""Sums by products of matrices against those rule by rule, which enumeration checks; and when they are given up."""

from __future__ import annotations

import numpy as np
import pytest

import markovfield as mf
from markovfield.inference.core.running import Running
from markovfield.structures.chart.family import Charts
from markovfield.structures.chart.rules import RuleTable


def grammar(rng, phrases, words, *, share=1.0, shared=0, unary=True):
    """Symbols: phrases, then words, of which the first ``shared`` are phrases, too; then the start."""
    children = phrases + words - shared
    rules = np.array([(a, b, c) for a in range(phrases) for b in range(children) for c in range(children)])
    rules = rules[rng.permutation(len(rules))[: max(1, int(share * len(rules)))]]
    tokens = np.concatenate([np.arange(shared), np.arange(phrases, children)])
    starts = np.array([(children, a) for a in range(children)]) if unary else np.zeros((0, 2), np.int64)
    return RuleTable(children + 1, rules, starts, tokens, children if unary else 0)


def both_ways(table, lengths, pool, spans, weights):
    """Sums by both kernels, from the same scores."""
    found = []
    for dense in (True, False):
        own = RuleTable(table.n_symbols, table.binary, table.unary, table.tokens, table.start)
        if not dense:
            own.dense.__dict__["fits"] = False
        family = Charts.of(lengths, own, spans=spans)
        assert own.dense.fits == dense
        found.append(family.sums(pool, counts=True, weights=weights, running=Running(n_jobs=1)))
    return found


@pytest.mark.parametrize("spans", [False, True])
@pytest.mark.parametrize("ruled_out", [0.0, 0.3])
@pytest.mark.parametrize(
    "shape", [(1, 1, 0, True), (2, 3, 0, True), (5, 3, 2, True), (6, 2, 1, False), (9, 5, 0, False)]
)
def test_same_sums_and_counts(shape, spans, ruled_out):
    rng = np.random.default_rng(sum(shape))
    phrases, words, shared, unary = shape
    table = grammar(rng, phrases, words, share=0.9, shared=shared, unary=unary)
    lengths = np.array([1, 2, 3, 4, 5, 9, 0, 14])
    pool = rng.normal(0, 2, Charts.of(lengths, table, spans=spans).n_cells)
    pool[rng.random(len(pool)) < ruled_out] = -np.inf
    weights = rng.random(len(lengths))
    one, two = both_ways(table, lengths, pool, spans, weights)
    np.testing.assert_allclose(one.log_partition, two.log_partition, rtol=1e-12)
    np.testing.assert_allclose(one.counts, two.counts, atol=1e-10)


@pytest.mark.parametrize("scale", [30.0, 300.0])
def test_numbers_that_are_too_small_are_given_up(scale):
    rng = np.random.default_rng(1)
    table = grammar(rng, 3, 2)
    lengths = np.array([6, 12])
    pool = rng.normal(0, scale, Charts.of(lengths, table, spans=True).n_cells)
    one, two = both_ways(table, lengths, pool, True, np.ones(2))
    np.testing.assert_allclose(one.log_partition, two.log_partition, rtol=1e-12)
    np.testing.assert_allclose(one.counts, two.counts, atol=1e-9)


def test_one_sentence_given_up_leaves_the_others():
    rng = np.random.default_rng(2)
    table = grammar(rng, 3, 2)
    lengths = np.array([5, 5, 5])
    family = Charts.of(lengths, table)
    pool = rng.normal(size=family.n_cells)
    pool[family.cell_offsets[1] : family.cell_offsets[2]] *= 400.0
    one, two = both_ways(table, lengths, pool, False, np.array([1.0, 2.0, 3.0]))
    np.testing.assert_allclose(one.log_partition, two.log_partition, rtol=1e-12)
    np.testing.assert_allclose(one.counts, two.counts, atol=1e-9)


def test_which_grammars_are_dense():
    rng = np.random.default_rng(3)
    assert grammar(rng, 3, 2).dense.fits
    assert not grammar(rng, 3, 2, share=0.1).dense.fits
    around = RuleTable(
        3, np.array([(0, a, b) for a in range(3) for b in range(3)]), np.array([(0, 1)]), np.array([2]), 0
    )
    assert not around.dense.fits


def test_threads_change_nothing():
    rng = np.random.default_rng(4)
    scores, words = rng.normal(size=(8, 20, 20)), rng.normal(size=(25, 12))
    form = mf.structures.Chart.dense(scores, words, rng.normal(size=8))
    family, where = form.family.select(np.zeros(30, np.int64))
    one, two = (family.sums(form.pool[where], counts=True, running=Running(n_jobs=k)) for k in (1, 2))
    np.testing.assert_array_equal(one.counts, two.counts)


def test_catalan_numbers_by_products():
    for n, trees in ((1, 1), (2, 1), (5, 14), (12, 58786)):
        form = mf.structures.Chart.dense(np.zeros((1, 2, 2)), np.zeros((n, 1)), np.zeros(1))
        if n > 1:
            assert form.n_structures() == trees
