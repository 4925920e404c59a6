from __future__ import annotations

import numpy as np
import pytest

import markovfield as mf
from tests.learning.tables.naive import fitted


def test_table_and_margins_in_any_order_of_axes():
    rng = np.random.default_rng(0)
    start, wanted = rng.random((2, 3, 4)), rng.random((2, 3, 4)) * 50
    margins = {(2, 0): wanted.sum(axis=1).T, 1: wanted.sum(axis=(0, 2))}
    raked = mf.learning.rake(start, margins, tolerance=1e-12)
    assert raked.converged and raked.network is None
    np.testing.assert_allclose(raked.table, fitted(start, [(2, 0), (1,)], list(margins.values()), 300), rtol=1e-8)
    # Odds ratios that no margin speaks of are those of the start.
    ratio = raked.table / start
    ratio /= ratio[:, :1]
    np.testing.assert_allclose(ratio, np.broadcast_to(ratio[:1, :, :1], ratio.shape), rtol=1e-9)


def test_network():
    rng = np.random.default_rng(1)
    net = mf.MarkovNetwork(dict.fromkeys("ABCDE", 2))
    for a, b in ("AB", "BC", "CD", "DE", "EA"):
        net.add_factor([a, b], rng.random((2, 2)) + 0.1)
    start = mf.learning.fitted_table(net)
    margins = {"A": [3, 1], ("C", "B"): [[1.0, 2.0], [3.0, 4.0]]}
    raked = mf.learning.rake(net, margins, tolerance=1e-12)
    shares = [np.array([0.75, 0.25]), np.array([[0.1, 0.2], [0.3, 0.4]])]
    expected = fitted(start, [(0,), (2, 1)], shares, 300)
    np.testing.assert_allclose(mf.learning.fitted_table(raked.network), expected, atol=1e-10)
    assert mf.log_partition(raked.network).log_partition == pytest.approx(0.0, abs=1e-9)
    assert len(net.compile().structure.table_offsets) == 5  # the network given stays as it is


def test_network_with_structured_factors():
    net = mf.MarkovNetwork(dict.fromkeys("ABC", 2))
    net.add_clause({"A": 1, "B": 1, "C": 1})
    raked = mf.learning.rake(net, {"A": [0.9, 0.1], "B": [0.5, 0.5]}, tolerance=1e-11)
    table = mf.learning.fitted_table(raked.network)
    assert table[0, 0, 0] == 0
    np.testing.assert_allclose(table.sum(axis=(1, 2)), [0.9, 0.1], atol=1e-9)
    np.testing.assert_allclose(table.sum(axis=(0, 2)), [0.5, 0.5], atol=1e-9)


@pytest.mark.parametrize(
    ("start", "margins", "message"),
    [
        (np.ones((2, 2)), {0: [5, 5], 1: [4, 5]}, "disagree about the total: 10 and 9"),
        (np.ones((2, 2)), {(0, 1): [[1, 2], [3, 4]], 1: [5, 5]}, r"disagree about \[1\] at \[0\]: 4 and 5"),
        ([[1, 0], [0, 1]], {0: [3, 7], 1: [6, 4]}, "no table with these zeros has these margins"),
        ([[1, 1], [0, 0]], {0: [3, 7], 1: [6, 4]}, r"margin of \[0\] at \[1\] shall be 7, but every cell"),
        (np.ones((2, 2)), {0: [1, 2, 3]}, r"needs a table of shape \(2,\), got \(3,\)"),
        (np.ones((2, 2)), {0: [1, -2]}, "none negative"),
        (np.ones((2, 2)), {}, "at least one margin"),
        (np.zeros((2, 2)), {0: [1, 1]}, "not all zero"),
        ("text", {0: [1, 1]}, "needs an array of numbers or a model"),
    ],
)
def test_errors(start, margins, message):
    with pytest.raises(mf.ModelError, match=message):
        mf.learning.rake(start, margins)


def test_unfinished_work_says_so():
    rng = np.random.default_rng(2)
    wanted = rng.random((3, 3, 3))
    margins = {(0, 1): wanted.sum(axis=2), (1, 2): wanted.sum(axis=0), (0, 2): wanted.sum(axis=1)}
    raked = mf.learning.rake(np.ones((3, 3, 3)), margins, max_iterations=1)
    assert not raked.converged and "max_iterations" in raked.message and raked.iterations == 1


def test_margins_reached_only_in_the_limit_are_no_contradiction():
    """The only table with these margins has a zero where the start has none."""
    raked = mf.learning.rake([[1.0, 1.0], [1.0, 0.0]], {0: [1, 1], 1: [1, 1]}, tolerance=1e-3)
    assert raked.converged
    np.testing.assert_allclose(raked.table, [[0, 1], [1, 0]], atol=3e-3)
