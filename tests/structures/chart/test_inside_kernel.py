"""Sums of charts: closed forms, cyclic unary rules, scores of any size, and bad input."""

from __future__ import annotations

from math import comb, exp, log

import numpy as np
import pytest

import markovfield as mf
from markovfield.inference.core.running import Running
from markovfield.structures.chart.family import Charts


def reference(words, rules, start, unary_depth=0):
    """log Z by plain recursion over widths, chains of unary rules cut off at some depth."""
    n = len(words)
    symbols = {s for rule in rules for s in rule} | {s for word in words for s in word}
    chart = {}
    for width in range(1, n + 1):
        for i in range(n - width + 1):
            base = dict.fromkeys(symbols, -np.inf)
            if width == 1:
                base.update(words[i])
            for rule, score in rules.items():
                if len(rule) == 3:
                    for k in range(i + 1, i + width):
                        found = score + chart[i, k][rule[1]] + chart[k, i + width][rule[2]]
                        base[rule[0]] = np.logaddexp(base[rule[0]], found)
            closed = dict(base)
            for _ in range(unary_depth):
                step = dict(base)
                for rule, score in rules.items():
                    if len(rule) == 2:
                        step[rule[0]] = np.logaddexp(step[rule[0]], score + closed[rule[1]])
                closed = step
            chart[i, i + width] = closed
    return chart[0, n][start]


@pytest.mark.parametrize("n", [1, 2, 5, 12, 20])
def test_numbers_of_trees_are_those_of_catalan(n):
    chart = mf.structures.Chart([{"X": 0.0}] * n, {("X", "X", "X"): 0.0})
    assert chart.n_structures() == comb(2 * n - 2, n - 1) // n


CYCLE = {
    ("S", "A", "B"): -0.3,
    ("A", "B"): log(0.5),
    ("B", "A"): log(0.4),
    ("B", "S"): log(0.2),
    ("S", "B"): log(0.3),
    ("S", "S"): log(0.1),
    ("A", "A", "A"): -1.0,
}


def test_a_cycle_of_unary_rules_is_a_geometric_series():
    chart = mf.structures.Chart([{"B": 0.0}], {("A", "B"): log(0.5), ("B", "A"): log(0.4)})
    assert float(mf.log_partition(chart)) == pytest.approx(log(0.5 / (1 - 0.2)))
    rules = mf.marginals(chart)["rules"]
    np.testing.assert_allclose(rules, [1.25, 0.25])  # expected numbers of times round
    assert mf.decode(chart).structure == ("A", ("B", 0))
    four = mf.decode(chart, n_best=4).n_best
    assert [one.score for one in four] == pytest.approx([log(0.5) + k * log(0.2) for k in range(4)])
    drawn = mf.sample(chart, 4000, rng=0)
    np.testing.assert_allclose(drawn["rules"], [1.25, 0.25], atol=0.05)


@pytest.mark.parametrize("n", [1, 3, 4])
def test_cyclic_unary_rules(n):
    words = [{"A": 0.2, "B": -0.4}] * n
    chart = mf.structures.Chart(words, CYCLE)
    assert float(mf.log_partition(chart)) == pytest.approx(reference(words, CYCLE, "S", 200), abs=1e-10)
    counts = mf.marginals(chart)["rules"]
    for i, rule in enumerate(CYCLE):
        steps = []
        for step in (1e-5, -1e-5):
            moved = mf.structures.Chart(words, CYCLE | {rule: CYCLE[rule] + step})
            steps.append(float(mf.log_partition(moved)))
        assert counts[i] == pytest.approx((steps[0] - steps[1]) / 2e-5, abs=1e-7)
    best = mf.decode(chart)
    assert best.score == pytest.approx(mf.decode(chart, n_best=3).n_best[0].score)
    assert chart.score(best.structure) == pytest.approx(best.score)
    drawn = mf.sample(chart, 3000, rng=1)["rules"]
    np.testing.assert_allclose(drawn, counts, atol=0.15)


def test_sums_without_limit_are_an_error():
    grows = {("A", "B"): log(0.5), ("B", "A"): log(2.0)}
    chart = mf.structures.Chart([{"B": 0.0}], grows)
    with pytest.raises(mf.ModelError, match="sums over chains of unary rules have no limit"):
        mf.log_partition(chart)
    with pytest.raises(mf.ModelError, match="maxima over chains of unary rules have no limit"):
        mf.decode(chart)


@pytest.mark.parametrize("spread", [1.0, 40.0, 400.0])
def test_scores_of_any_size(spread):
    rng = np.random.default_rng(int(spread))
    names = ["S", "A", "B"]
    rules = {(a, b, c): rng.normal(0, spread) for a in names for b in names for c in names if rng.random() < 0.5}
    rules |= {("S", "A", "B"): 0.0, ("A", "B", "A"): -3 * spread, ("S", "A"): rng.normal(0, spread)}
    words = [{name: rng.normal(0, spread) for name in names} for _ in range(7)]
    chart = mf.structures.Chart(words, rules, start="S")
    assert float(mf.log_partition(chart)) == pytest.approx(reference(words, rules, "S", 1), rel=1e-12)
    answer = mf.marginals(chart)
    np.testing.assert_allclose(np.einsum("iis->i", answer["spans"]), 1.0, rtol=1e-9)
    assert answer["spans"].sum() == pytest.approx(2 * 7 - 1)


def test_what_no_linear_number_can_hold():
    # The only tree uses a symbol that is 1e-400 times less likely than another one over the same words.
    rules = {("S", "A", "A"): 0.0, ("B", "A", "A"): 0.0, ("C", "A", "A"): -900.0, ("T", "C", "C"): 0.0}
    chart = mf.structures.Chart([{"A": 0.0}] * 4, rules, start="T")
    assert float(mf.log_partition(chart)) == pytest.approx(-1800.0)
    assert mf.marginals(chart)["rules"].tolist() == pytest.approx([0.0, 0.0, 2.0, 1.0])


def test_nothing_is_lost_from_a_batch():
    good = mf.structures.Chart([{"A": 0.0}, {"A": 0.0}], {("S", "A", "A"): -0.5})
    family = Charts.of(np.array([2, 3, 0, 2]), good.family.rules)
    pool = np.concatenate([good.pool[:1], np.zeros(7)])
    sums = family.sums(pool, counts=True, running=Running())
    np.testing.assert_allclose(sums.log_partition, [-0.5, -np.inf, -np.inf, -0.5])
    assert sums.counts.tolist() == [2.0, 1.0, 1.0, 0.0, 0.0, 0.0, 1.0, 1.0]
    assert np.diff(family.maxima(pool, running=Running()).offsets).tolist() == [3, 0, 0, 3]
    assert np.diff(family.draws(pool, 2, rng=np.random.default_rng(0), running=Running()).offsets).tolist() == [
        3, 3, 0, 0, 0, 0, 3, 3,
    ]  # fmt: skip
    assert [len(one) for one in family.best(pool, 2, running=Running())] == [1, 0, 0, 1]


def test_bad_input_gets_a_sentence():
    words, rules = [{"A": 0.0}, {"A": 0.0}], {("S", "A", "A"): 0.0}
    for bad, message in (
        (([], rules), "words must be"),
        (("ab", rules), "words must be"),
        ((["a"], rules), "word 0 must be a dict"),
        (([{"A": np.nan}], rules), "scores of word 0"),
        ((words, {}), "rules must be a dict"),
        ((words, {("S", "A", "A", "A"): 0.0}), "a rule is"),
        ((words, {("S", "A", "A"): "x"}), "scores of rules"),
    ):
        with pytest.raises(mf.ModelError, match=message):
            mf.structures.Chart(*bad)
    with pytest.raises(mf.ModelError, match="one word; give it with that word"):
        mf.structures.Chart(words, rules, spans={(0, 0, "A"): 1.0})
    with pytest.raises(mf.ModelError, match="at least one of each"):
        mf.structures.Chart.dense(np.zeros((1, 3, 3)), np.zeros((2, 1)), np.zeros(1))
    chart = mf.structures.Chart(words, rules)
    for tree, message in (
        (("S", ("A", 0), ("A", 2)), "in order"),
        (("A", 0), "at its top"),
        (("S", ("A", 0), ("B", 1)), "no symbol"),
        (("S", ("A", 0)), "no rule"),
        ("S", "a tree is"),
        (("S", 0, 1), "a tree is"),
    ):
        with pytest.raises(mf.ModelError, match=message):
            chart.score(tree)
    for evidence, message in (
        ({(0, 2, "S"): True}, "a span is"),
        ({(0, 1, "A"): True}, "a binary rule makes"),
        ({(0, 0, "S"): True}, "a word can be"),
    ):
        with pytest.raises(mf.ModelError, match=message):
            mf.decode(chart, {"spans": evidence})
    with pytest.raises(mf.ModelError, match="not require one"):
        mf.decode(chart, {"rules": {("S", "A", "A"): True}})
    with pytest.raises(mf.ImpossibleEvidenceError):
        mf.decode(chart, {"rules": {("S", "A", "A"): False}})
    assert repr(chart) == "Chart of 2 words, 2 symbols, 1 rules"
    assert exp(float(mf.log_partition(chart, {"spans": {(0, 1, "S"): True}}))) == pytest.approx(1.0)
