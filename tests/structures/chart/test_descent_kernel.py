"""Trees read off charts: relations to other models, and draws that do not depend on threads."""

from __future__ import annotations

import numpy as np
import pytest

import markovfield as mf
from markovfield.inference.core.running import Running
from markovfield.structures.chart.family import Charts


def test_a_chain_is_a_grammar_that_branches_to_the_right():
    rng = np.random.default_rng(0)
    n, k = 6, 3
    unary, moves = rng.normal(size=(n, k)), rng.normal(size=(k, k))
    # Rest i: from here on, the first word's state is i.
    rules = {("S", f"rest{a}"): 0.0 for a in range(k)} | {(f"rest{a}", f"state{a}"): 0.0 for a in range(k)}
    rules |= {(f"rest{a}", f"state{a}", f"rest{b}"): moves[a, b] for a in range(k) for b in range(k)}
    chart = mf.structures.Chart([{f"state{a}": row[a] for a in range(k)} for row in unary], rules)
    network = mf.MarkovNetwork()
    for i in range(n):
        network.add_variable(i, k)
        network.add_factor([i], np.exp(unary[i]))
    for i in range(n - 1):
        network.add_factor([i, i + 1], np.exp(moves))
    answer, other = mf.marginals(chart), mf.marginals(network)
    assert answer.log_partition == pytest.approx(other.log_partition)
    spans = answer["spans"]
    columns = [chart.symbols.index(f"state{a}") for a in range(k)]
    for i in range(n):
        np.testing.assert_allclose(spans[i, i, columns], other[i], atol=1e-9)
    best, tree = mf.decode(network).assignment, mf.decode(chart).structure[1]
    states = []
    while True:
        states.append(int(tree[1][0][-1]))
        if len(tree) == 2:
            break
        tree = tree[2]
    assert states == [best[i] for i in range(n)]


def test_draws_do_not_depend_on_threads():
    rules = {("A", "A", "A"): 0.0, ("A", "A"): -1.0}
    table = mf.structures.Chart([{"A": 0.0}], rules)
    family = Charts.of(np.full(300, 12), table.family.rules)
    pool = np.concatenate([table.pool[:2], np.zeros(3600)])
    one = family.draws(pool, 40, rng=np.random.default_rng(0), running=Running(n_jobs=1))
    two = family.draws(pool, 40, rng=np.random.default_rng(0), running=Running(n_jobs=2))
    assert (one.cells == two.cells).all() and (one.offsets == two.offsets).all()
    assert np.bincount(one.cells)[1] / 12000 == pytest.approx(23 * np.exp(-1) / (1 - np.exp(-1)), rel=0.05)


def test_conditioned_trees_have_what_is_required():
    chart = mf.structures.Chart([{"A": 0.0}] * 6, {("A", "A", "A"): 0.0})
    drawn = mf.sample(chart, 50, {"spans": {(1, 3, "A"): True, (0, 3, "A"): False}}, rng=0)
    cells = [set(chart.cells(tree).tolist()) for tree in drawn.structures]
    assert all(chart.cell("spans", (1, 3, "A")) in own for own in cells)
    assert not any(chart.cell("spans", (0, 3, "A")) in own for own in cells)
