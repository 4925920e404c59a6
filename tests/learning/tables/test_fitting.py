from __future__ import annotations

import itertools

import numpy as np
import pytest

import markovfield as mf
from markovfield.graphs.decomposable import is_decomposable
from markovfield.inference.core.running import Running
from markovfield.learning.tables.fitting import fit_margins
from markovfield.learning.tables.hull import plan_hull
from tests.learning.tables.naive import fitted, margin, spread


def product(fit, scopes, cards, start=1.0):
    table = np.ones(cards) * start
    for scope, log_factor in zip(scopes, fit.log_factors, strict=True):
        if log_factor is not None:
            table = table * spread(np.exp(log_factor), scope, len(cards))
    # Variables in no scope are uniform, and the factors do not say so.
    return table / np.prod([c for v, c in enumerate(cards) if not any(v in s for s in scopes)])


def random_case(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 6))
    cards = rng.integers(1, 4, n).tolist()
    scopes = [tuple(rng.permutation(n)[: rng.integers(1, n + 1)].tolist()) for _ in range(int(rng.integers(1, 5)))]
    scopes = [s for i, s in enumerate(scopes) if not any(set(s) <= set(t) for j, t in enumerate(scopes) if j < i)]
    return rng, cards, scopes


@pytest.mark.parametrize("seed", range(25))
def test_the_naive_table_is_fitted(seed):
    rng, cards, scopes = random_case(seed)
    data = rng.integers(0, 5, cards).astype(float)
    data.flat[0] = 1.0
    margins = [margin(data, s) for s in scopes]
    fit = fit_margins(cards, scopes, margins, tolerance=1e-11)
    assert fit.converged
    expected = fitted(np.ones(cards), scopes, margins, 2000)
    np.testing.assert_allclose(product(fit, scopes, cards) * data.sum(), expected, atol=1e-6 * data.sum())
    assert not any(np.isnan(f).any() for f in fit.log_factors)


@pytest.mark.parametrize("seed", range(25))
def test_starting_factors_and_structural_zeros_stay(seed):
    rng, cards, scopes = random_case(seed + 100)
    start = rng.random(cards) * (rng.random(cards) < 0.8)
    start.flat[0] = 1.0
    # The margins of a table with the same zeros can be reached.
    data = start * rng.random(cards)
    margins = [margin(data, s) for s in scopes]
    axes = tuple(range(len(cards)))
    fit = fit_margins(
        cards, [axes, *scopes], [None, *margins], starts=[start, *([None] * len(scopes))], tolerance=1e-10
    )
    assert fit.converged and fit.log_factors[0] is None
    found = product(fit, [axes, *scopes], cards, start) * data.sum()
    assert (found[start == 0] == 0).all()
    np.testing.assert_allclose(found, fitted(start, scopes, margins, 3000), atol=1e-6 * data.sum())


def test_in_blocks_as_in_place():
    rng = np.random.default_rng(5)
    scopes = list(itertools.combinations(range(8), 2))
    data = rng.gamma(0.5, size=[2] * 8)
    margins = [margin(data, s) for s in scopes]
    fit = fit_margins([2] * 8, scopes, margins, tolerance=1e-12)
    assert (fit.hull.program[:, 3] >= 0).sum() > 1  # several blocks
    expected = fitted(np.ones([2] * 8), scopes, margins, 500) / data.sum()
    np.testing.assert_allclose(product(fit, scopes, [2] * 8), expected, atol=1e-9)


@pytest.mark.parametrize("seed", range(15))
def test_one_sweep_where_decomposable(seed):
    import networkx as nx

    rng = np.random.default_rng(seed)
    graph = nx.gnp_random_graph(6, 0.45, seed=seed)
    graph = graph if is_decomposable(graph) else mf.graphs.triangulate(graph)
    scopes = [tuple(sorted(c)) for c in nx.find_cliques(graph)]
    data = rng.integers(0, 4, [2] * 6).astype(float)
    data.flat[0] = 1.0
    margins = [margin(data, s) for s in scopes]
    fit = fit_margins([2] * 6, scopes, margins)
    assert fit.hull.decomposable and len(fit.deviations) == 1
    found = product(fit, scopes, [2] * 6) * data.sum()
    for scope, wanted in zip(scopes, margins, strict=True):
        np.testing.assert_allclose(margin(found, scope), wanted, atol=1e-9)


def test_forty_variables_without_a_joint_table():
    # Squares in a row, joined at edges: 2^40 cells, cliques of three.
    n = 40
    scopes = [(v, v + 2) for v in range(n - 2)] + [(v, v + 1) for v in range(0, n, 2)]
    rng = np.random.default_rng(3)
    rows = np.cumsum(rng.random((2000, n)) < 0.3, axis=1) % 2
    margins = [np.histogram2d(rows[:, a], rows[:, b], bins=(2, 2))[0] for a, b in scopes]
    fit = fit_margins([2] * n, scopes, margins, tolerance=1e-11)
    assert fit.converged and not fit.hull.decomposable and max(map(len, fit.hull.cliques)) == 3
    net = mf.MarkovNetwork(dict.fromkeys(range(n), 2))
    for scope, log_factor in zip(scopes, fit.log_factors, strict=True):
        net.add_factor(scope, log_table=log_factor)
    answer = mf.marginals(net, targets=scopes, method="junction_tree")
    assert answer.log_partition == pytest.approx(0.0, abs=1e-9)
    for scope, wanted in zip(scopes, margins, strict=True):
        np.testing.assert_allclose(answer.joint(scope), wanted / 2000, atol=1e-9)


def test_stopped_it_answers_with_what_it_has():
    rng = np.random.default_rng(0)
    scopes = [(0, 1), (1, 2), (0, 2)]
    margins = [margin(rng.random((3, 3, 3)), s) for s in [(0, 1)]] * 3
    told = []
    running = Running(callback=lambda p: told.append(p) or True)
    # Margins that contradict each other are never reached.
    fit = fit_margins([3, 3, 3], scopes, [margins[0], margins[1], margins[2].T], running=running, max_iterations=5000)
    assert not fit.converged and (fit.stopped or fit.stalled)
    assert told or fit.stalled
    assert not any(np.isnan(f).any() for f in fit.log_factors)


def test_a_plan_is_kept():
    scopes = [(0, 1), (1, 2), (0, 2)]
    hull = plan_hull([2, 2, 2], scopes)
    data = np.random.default_rng(1).random((2, 2, 2))
    margins = [margin(data, s) for s in scopes]
    one = fit_margins([2, 2, 2], scopes, margins, hull=hull)
    two = fit_margins([2, 2, 2], scopes, margins)
    assert one.hull is hull
    for a, b in zip(one.log_factors, two.log_factors, strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_hull_too_large_is_refused():
    scopes = list(itertools.combinations(range(60), 2))
    with pytest.raises(mf.MemoryLimitError, match="hull need"):
        plan_hull([2] * 60, scopes)
