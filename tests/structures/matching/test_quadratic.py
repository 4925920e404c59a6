"""Scores of pairs of links: sizes that are decoded and not summed, evidence on pairs, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import quadratic_assignment

import markovfield as mf
from markovfield.exceptions import ModelError

Matching = mf.structures.Matching


def flows(n, seed):
    """A quadratic assignment problem: flows between rows and distances between columns, as pairs of links."""
    rng = np.random.default_rng(seed)
    flow, distance = rng.integers(0, 5, (n, n)), rng.integers(0, 5, (n, n))
    cost = np.zeros((n, n, n, n))
    for i, j, k, m in np.ndindex(n, n, n, n):
        cost[i, j, k, m] = flow[i, k] * distance[j, m]
    pairs = {
        ((i, j), (k, m)): -float(cost[i, j, k, m] + cost[k, m, i, j])
        for i, j, k, m in np.ndindex(n, n, n, n)
        if i < k and j != m
    }
    links = -np.array([[cost[i, j, i, j] for j in range(n)] for i in range(n)], np.float64)
    return Matching(links, pairs=pairs), flow, distance


@pytest.mark.parametrize("seed", range(3))
def test_quadratic_assignment(seed):
    form, flow, distance = flows(5, seed)
    found = mf.decode(form)
    assert found.optimal
    columns = [j for _, j in found.structure]
    assert found.score == pytest.approx(-float((flow * distance[np.ix_(columns, columns)]).sum()))
    # A heuristic never does better.
    assert quadratic_assignment(flow, distance).fun >= -found.score - 1e-9


def test_evidence_on_pairs():
    rng = np.random.default_rng(1)
    pairs = {((0, 0), (1, 1)): 1.0, ((0, 1), (2, 2)): -2.0}
    form = Matching(rng.normal(size=(3, 3)), pairs=pairs)
    answer = mf.marginals(form)
    assert answer["pairs"].shape == (2,)
    assert mf.probability(form, {"pairs": {((0, 0), (1, 1)): True}}) == pytest.approx(answer["pairs"][0])
    both = {"links": {(0, 0): True, (1, 1): True}}
    assert mf.probability(form, both) == pytest.approx(answer["pairs"][0])
    assert mf.probability(form, {"pairs": {((0, 0), (1, 1)): False}}) == pytest.approx(1.0 - answer["pairs"][0])
    assert repr(form) == "Matching of 3 rows and 3 columns, 2 pairs of links"


def test_large_ones_are_decoded_and_not_summed():
    rng = np.random.default_rng(0)
    form = Matching(rng.normal(size=(12, 12)), pairs={((0, 0), (1, 1)): 5.0, ((2, 3), (4, 5)): 4.0})
    assert mf.decode(form).optimal
    with pytest.raises(ModelError, match="12 x 12 links have more than 50000"):
        mf.log_partition(form)
    with pytest.raises(ModelError, match="go through all of them"):
        mf.sample(form, 2, rng=0)


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        ([((0, 0), (1, 1))], "pairs must be a dict"),
        ({((0, 0), (5, 1)): 1.0}, "rows below 2 and columns below 2"),
        ({((0, 0), (0, 0)): 1.0}, "a pair is of two links"),
        ({(0, 1): 1.0}, "a pair is of two links"),
        ({((0, 0), (1, 1)): 1.0, ((1, 1), (0, 0)): 2.0}, "twice"),
        ({((0, 0), (1, 1)): np.nan}, "scores of pairs must be numbers"),
    ],
)
def test_pairs_that_are_refused(pairs, message):
    with pytest.raises(ModelError, match=message):
        Matching(np.zeros((2, 2)), pairs=pairs)


def test_evidence_that_is_refused():
    form = Matching(np.zeros((2, 2)), pairs={((0, 0), (1, 1)): 1.0})
    with pytest.raises(ModelError, match="there is no pair of links"):
        mf.decode(form, {"pairs": {((0, 1), (1, 0)): True}})
    with pytest.raises(ModelError, match="evidence names 'pairs'"):
        mf.decode(Matching(np.zeros((2, 2))), {"pairs": {((0, 1), (1, 0)): True}})
