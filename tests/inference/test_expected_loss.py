"""Answers of least expected loss speak of the expected loss, not of a bound on the score."""

from __future__ import annotations

import numpy as np
import pytest

import markovfield as mf


def model() -> mf.MarkovNetwork:
    """The best assignment is not the one that is least often wrong."""
    net = mf.MarkovNetwork({"A": 2, "B": 3})
    net.add_factor(["A", "B"], [[0.35, 0.0, 0.0], [0.05, 0.3, 0.3]])
    return net


def test_nothing_bounds_a_score_that_was_not_maximised():
    """The score was called optimal, and its own upper bound, although a better assignment exists."""
    net = model()
    best = mf.decode(net)
    answer = mf.decode(net, loss="hamming")
    assert answer.assignment == {"A": 1, "B": 0} and best.assignment == {"A": 0, "B": 0}
    assert answer.score < best.score
    assert answer.upper_bound == np.inf and answer.gap == np.inf
    assert answer.objective == "expected_loss" and best.objective == "score" and best.expected_loss is None
    assert answer.optimal and answer.guarantee == "exact"
    assert answer.expected_loss == pytest.approx((1 - 0.65) + (1 - 0.4))
    assert answer.score == pytest.approx(np.log(0.05))
    assert repr(answer).startswith("Decoding: expected loss 0.95 (the least), score -2.99573")


def test_matrices_count_as_given_and_other_variables_as_wrong_or_right():
    cost = np.array([[0.0, 1.0], [5.0, 0.0]])
    answer = mf.decode(model(), loss={"A": cost})
    p = np.array([0.35, 0.65])
    assert answer.expected_loss == pytest.approx((p @ cost).min() + 1 - 0.4)
    some = mf.decode(model(), loss="hamming", variables=["A"])
    assert some.expected_loss == pytest.approx(0.35) and some.states.tolist() == [1, -1]
    assert some.score == pytest.approx(np.log(0.65)) and some.optimal


def test_approximate_marginals_prove_nothing():
    field = mf.Ising((3, 3), coupling=0.6, field=0.1)
    for method in ("belief_propagation", "mean_field", "tree_reweighted"):
        answer = mf.decode(field, loss="hamming", method=method)
        assert not answer.optimal and answer.guarantee == "approximate" and answer.upper_bound == np.inf
        assert "least by approximate marginals" in repr(answer)
    exact = mf.decode(field, loss="hamming", method="junction_tree")
    assert exact.optimal and 0 < exact.expected_loss < 4.5
