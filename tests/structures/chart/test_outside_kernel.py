"""Expected numbers of nodes, and sums over long sentences."""

from __future__ import annotations

import numpy as np
import pytest

import markovfield as mf
from markovfield.inference.core.running import Running
from markovfield.structures.chart.family import Charts


def test_nodes_are_counted_however_they_are_made():
    rules = {("S", "A", "A"): 0.1, ("A", "A", "A"): -0.4, ("A", "S"): -1.0, ("S", "A"): -0.7}
    chart = mf.structures.Chart([{"A": 0.0}] * 4, rules)
    log_z, nodes, tokens = chart.family.nodes(chart.pool, 0)
    np.testing.assert_allclose(tokens, 1.0)
    drawn = mf.sample(chart, 4000, rng=3)
    counts = np.zeros((4, 4, 2))

    def count(tree):
        if isinstance(tree[1], int):
            first = last = tree[1]
        else:
            spans = [count(below) for below in tree[1:]]
            first, last = spans[0][0], spans[-1][1]
        counts[first, last, chart.symbols.index(tree[0])] += 1
        return first, last

    for tree in drawn.structures:
        count(tree)
    assert log_z == pytest.approx(float(mf.log_partition(chart)))
    np.testing.assert_allclose(counts[np.triu_indices(4)] / 4000, nodes, atol=0.1)


def test_long_sentences_and_weights():
    rng = np.random.default_rng(0)
    table = mf.structures.Chart([{"A": 0.0}], {("A", "A", "A"): 0.0, ("A", "B", "A"): 0.0, ("B", "A", "A"): 0.0})
    family = Charts.of(np.array([150, 20]), table.family.rules)
    pool = rng.normal(0, 10, family.n_cells)
    weights = np.array([2.0, 0.5])
    sums = family.sums(pool, counts=True, weights=weights, running=Running(n_jobs=1))
    assert sums.counts[:3].sum() == pytest.approx(weights @ (family.lengths - 1))
    assert sums.counts[3:].sum() == pytest.approx(weights @ family.lengths)
    again = family.sums(pool, counts=True, weights=weights, running=Running(n_jobs=2))
    assert (again.counts == sums.counts).all()
