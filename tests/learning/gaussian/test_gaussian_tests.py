"""Fisher's z: published partial correlations, regressions as an oracle, levels under independence, graphs."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import markovfield as mf
from markovfield.exceptions import ModelError
from markovfield.graphs import MixedGraph
from markovfield.learning.gaussian.independence import correlation_tests, gaussian_independence
from markovfield.learning.gaussian.moments import GaussianMoments
from tests.data import data_path


def test_partial_correlations_of_the_mathematics_marks_are_the_published_ones():
    tests = correlation_tests(pd.read_csv(data_path("tables", "mathmark.csv")))
    # Whittaker (1990), table 1.1.2, to two digits.
    published = {
        ("mechanics", "vectors"): 0.33,
        ("mechanics", "algebra"): 0.23,
        ("mechanics", "analysis"): 0.00,
        ("mechanics", "statistics"): 0.02,
        ("vectors", "algebra"): 0.28,
        ("vectors", "analysis"): 0.08,
        ("vectors", "statistics"): 0.02,
        ("algebra", "analysis"): 0.43,
        ("algebra", "statistics"): 0.36,
        ("analysis", "statistics"): 0.25,
    }
    at = {v: i for i, v in enumerate(tests.variables)}
    for (a, b), value in published.items():
        assert abs(tests.correlations[at[a], at[b]]) == pytest.approx(value, abs=0.0051)
    plain = tests.graph(level=0.05, correction="none")
    assert {frozenset(e) for e in plain.edges} == {frozenset(e) for e, r in published.items() if r > 0.2}
    assert set(tests.graph().edges) < set(plain.edges)
    assert len(tests.to_frame()) == 10


def test_one_test_is_that_of_the_residuals_and_of_all_pairs():
    rng = np.random.default_rng(0)
    values = rng.standard_normal((60, 4)) @ rng.standard_normal((4, 4))
    one = gaussian_independence(values, 0, 1, [2, 3])
    known = np.column_stack([np.ones(60), values[:, 2:]])
    left = [values[:, v] - known @ np.linalg.lstsq(known, values[:, v], rcond=None)[0] for v in (0, 1)]
    r = np.corrcoef(left)[0, 1]
    assert one.correlation == pytest.approx(r)
    assert one.statistic == pytest.approx(math.sqrt(60 - 2 - 3) * math.atanh(r))
    assert one.p_value == pytest.approx(2 * stats.norm.sf(abs(one.statistic)))
    assert one.low < r < one.high
    every = correlation_tests(values)
    assert every.correlations[0, 1] == pytest.approx(r)
    assert every.p_values[0, 1] == pytest.approx(one.p_value)
    alone = gaussian_independence(values, 0, 1)
    assert alone.correlation == pytest.approx(np.corrcoef(values.T)[0, 1])
    assert correlation_tests(values, "nothing").statistics[1, 0] == pytest.approx(alone.statistic)
    assert one.to_frame().shape == (1, 5)


def test_the_level_is_kept_where_variables_are_independent():
    rng = np.random.default_rng(1)
    p = np.concatenate(
        [correlation_tests(rng.standard_normal((25, 6))).p_values[np.triu_indices(6, 1)] for _ in range(200)]
    )
    # 3000 tests: three standard errors of a share of 0.05 are 0.012.
    assert (p <= 0.05).mean() == pytest.approx(0.05, abs=0.015)
    assert stats.kstest(p, "uniform").pvalue > 1e-4


def test_graphs_agree_with_separation_in_the_graphs_they_came_from():
    """A chain and a collider: zeros of the precision and of the covariance, and what `mf.graphs` says of each."""
    rng = np.random.default_rng(2)
    noise = rng.standard_normal((3, 4000))
    chain = {"a": noise[0], "b": noise[0] + noise[1], "c": noise[0] + noise[1] + noise[2]}
    undirected = correlation_tests(chain).graph(0.001)
    assert mf.graphs.separated(undirected, "a", "c", ["b"])
    assert not mf.graphs.separated(undirected, "a", "c")
    u, v = rng.standard_normal((2, 4000))
    causes = {"a": u + noise[0], "b": u + v + noise[1], "c": v + noise[2]}
    bidirected = correlation_tests(causes, "nothing").graph(0.001)
    assert bidirected == MixedGraph("abc", bidirected=[("a", "b"), ("b", "c")])
    assert mf.graphs.m_separated(bidirected, "a", "c")
    assert not mf.graphs.m_separated(bidirected, "a", "c", ["b"])
    assert gaussian_independence(causes, "a", "c").p_value > 0.001
    assert gaussian_independence(causes, "a", "c", ["b"]).p_value < 1e-10


def test_certain_dependence_has_no_probability():
    values = np.column_stack([np.arange(10.0), np.arange(10.0)])
    assert gaussian_independence(values, 0, 1).p_value == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize(
    ("act", "match"),
    [
        (lambda d: correlation_tests(d, "all"), "given of correlation_tests is 'rest' or 'nothing'"),
        (lambda d: correlation_tests(d[:5]), r"given 2 variables needs more than 5 rows, got 5"),
        (lambda d: correlation_tests(np.column_stack([d, d[:, 0]])), "correlation matrix is not positive definite"),
        (
            lambda d: gaussian_independence(np.column_stack([d, d[:, 0]]), 1, 2, [0, 4]),
            "of what is given is not positive",
        ),
        (lambda d: gaussian_independence(d, 0, 0), r"needs different variables, got \[0, 0\]"),
        (lambda d: gaussian_independence(d, 0, 9), "no column for variable 9"),
        (lambda d: correlation_tests(d).rejected(correction="fdr"), "correction of tests is 'holm' or 'none'"),
        (lambda d: correlation_tests(d).rejected(0.0), "level must be a number greater than 0"),
    ],
)
def test_what_is_wrong_is_said(act, match):
    with pytest.raises(ModelError, match=match):
        act(np.random.default_rng(0).standard_normal((30, 4)))


def test_moments_are_enough():
    moments = GaussianMoments([[1.0, 0.5], [0.5, 1.0]], 53)
    assert correlation_tests(moments).statistics[0, 1] == pytest.approx(math.sqrt(50) * math.atanh(0.5))
    assert "2 variables given rest, 1 pairs dependent" in repr(correlation_tests(moments))
