"""Neighbourhood selection: conditions of every regression, scikit-learn, recovery, rules."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import markovfield as mf
from markovfield.exceptions import ModelError
from markovfield.learning.gaussian.neighbourhood_kernel import regress_all
from markovfield.learning.gaussian.neighbourhood_selection import NeighbourhoodSelection
from tests.learning.gaussian.test_graphical_lasso import pairs_of, twenty  # noqa: F401
from tests.learning.gaussian.test_lasso_solver import covariance


@given(st.integers(1, 8), st.integers(0, 10**6), st.floats(0.01, 1.0))
def test_the_conditions_of_every_regression_hold(n, seed, penalty):
    s = covariance(n, seed)
    slopes = np.random.default_rng(seed).uniform(-0.1, 0.1, (n, n)) * (1 - np.eye(n))
    assert regress_all(s, penalty, 0, n, 1e-11, 100_000, slopes) == 0
    assert (np.diag(slopes) == 0).all()
    for j, b in enumerate(slopes):
        gradient = s[j] - s @ b
        others = np.arange(n) != j
        there = (b != 0) & others
        assert np.abs(gradient[there] - penalty * np.sign(b[there])).max(initial=0.0) <= 1e-8
        assert np.abs(gradient[others]).max(initial=0.0) <= penalty + 1e-8


def test_scikit_learn_has_the_same_slopes(twenty):  # noqa: F811
    from sklearn.linear_model import Lasso

    _, _, rows = twenty
    values = np.array(list(rows.values())).T
    values = (values - values.mean(axis=0)) / values.std(axis=0)
    learned = mf.learn_structure(rows, method=NeighbourhoodSelection(penalty=0.1, tolerance=1e-10))
    for j in (0, 7):
        others = np.delete(np.arange(20), j)
        theirs = Lasso(alpha=0.1, tol=1e-10, fit_intercept=False).fit(values[:, others], values[:, j])
        assert np.abs(learned.details["slopes"][j, others] - theirs.coef_).max() <= 1e-6


def test_the_graph_is_found_and_fitted(twenty):  # noqa: F811
    _, graph, rows = twenty
    learned = mf.learn_structure(rows, method="neighbourhood_selection")
    assert pairs_of(learned.graph) == pairs_of(graph)
    assert "the penalty was" in learned.notes[0]
    fitted = mf.fit(learned.to_network(), rows)
    assert fitted.fit_report.details.degrees_of_freedom == 190 - 30
    # The weights are shrunk partial correlations.
    x = fitted.precision.toarray()
    at = {v: i for i, v in enumerate(fitted.variables)}
    for a, b, w in learned.graph.edges(data="weight"):
        full = -x[at[a], at[b]] / math.sqrt(x[at[a], at[a]] * x[at[b], at[b]])
        assert 0 < w / full < 1.05
    either = mf.learn_structure(rows, method=NeighbourhoodSelection(penalty=0.03, rule="or"))
    both = mf.learn_structure(rows, method=NeighbourhoodSelection(penalty=0.03, rule="and"))
    assert pairs_of(both.graph) < pairs_of(either.graph)
    assert either.to_frame()["weight"].abs().max() < 1


def test_what_does_not_end_says_so(twenty):  # noqa: F811
    _, _, rows = twenty
    learned = mf.learn_structure(rows, method=NeighbourhoodSelection(penalty=0.01, max_iterations=1))
    assert (learned.converged, learned.stopped) == (False, "max_iterations")
    with pytest.raises(ModelError, match="rule of NeighbourhoodSelection must be 'and' or 'or'"):
        NeighbourhoodSelection(rule="xor")
    with pytest.raises(ModelError, match="learns a graph without numbers"):
        _ = learned.precision
