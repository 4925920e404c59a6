"""Expected counts by every method that has them: exact ones by the oracle, others as gradients of their log Z."""

from __future__ import annotations

import subprocess
import sys
import warnings
from typing import Any

import numpy as np
import pytest

import markovfield as mf
from markovfield.inference.core.counts import counts_of_samples
from markovfield.inference.core.registry import methods
from tests.oracle import Oracle

# Tied tables, a factor of three variables, one state ruled out.
CARDS = [2, 3, 2, 2]
PAIR = np.array([[0.3, -0.8], [0.1, 0.9]])
TRIPLE = np.log(np.arange(1.0, 13.0).reshape(2, 3, 2))
UNARY = np.array([0.2, -0.4, 0.7])


def model() -> mf.MarkovNetwork:
    net = mf.MarkovNetwork(dict(enumerate(CARDS)))
    net.add_factors([(0, 2), (2, 3)], log_table=PAIR)
    net.add_factor([0, 1, 2], log_table=TRIPLE)
    net.add_factor([1], log_table=UNARY)
    return net


def expected(clamps: list[int]) -> tuple[float, np.ndarray]:
    """By brute force: log Z, and how often each cell is read."""
    factors = [((0, 2), PAIR), ((2, 3), PAIR), ((0, 1, 2), TRIPLE), ((1,), UNARY)]
    oracle = Oracle(CARDS, factors, {v: s for v, s in enumerate(clamps) if s >= 0})
    counts = [oracle.counts(f) for f in range(4)]
    pool = [counts[0] + counts[1], counts[2], counts[3]]
    return oracle.log_partition, np.concatenate([c.ravel() for c in pool])


def with_counts() -> list[str]:
    """Methods of marginals whose answers have counts, on this model."""
    found = []
    for name in methods("marginals"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                mf.marginals(model(), method=name, rng=0).expected_counts  # noqa: B018
            except mf.ModelError:
                continue
        found.append(name)
    return found


def sampling() -> list[str]:
    return sorted(n for n, m in methods("sample").items() if not getattr(m, "needs", ""))


def ask(method: Any, clamps: Any = None, weights: Any = None, tables: Any = None, **keywords: Any) -> mf.answers.Counts:
    graph = model().compile()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pool = graph.log_tables if tables is None else tables
        return mf.expected_counts(graph.structure, pool, clamps, method, weights=weights, **keywords)


def test_many_methods_have_counts():
    expected = {"junction_tree", "enumeration", "variable_elimination", "belief_propagation", "tree_reweighted"}
    assert expected | {"mean_field", "mini_bucket", "generalized_bp", "sandwich"} <= set(with_counts())


@pytest.mark.parametrize("method", ["junction_tree", "enumeration", "variable_elimination"])
@pytest.mark.parametrize("clamps", [[-1, -1, -1, -1], [1, -1, -1, 0], [-1, 2, 1, -1], [0, 0, 0, 0]])
def test_exact_counts(method: str, clamps: list[int]):
    answer = ask(method, clamps)
    value, counts = expected(clamps)
    assert answer.guarantee == "exact" and answer.standard_errors is None
    assert answer.log_partition == pytest.approx(value, abs=1e-10)
    np.testing.assert_allclose(answer.counts, counts, atol=1e-10)


@pytest.mark.parametrize("method", ["junction_tree", "enumeration", "belief_propagation"])
def test_rows_are_summed_with_their_weights(method: str):
    rows, weights = [[-1, -1, -1, -1], [1, -1, -1, 0], [0, 1, -1, -1]], [1.0, 0.0, 2.5]
    answer = ask(method, rows, weights)
    single = [ask(method, row) for row in rows]
    np.testing.assert_allclose(answer.log_partition, [a.log_partition for a in single], atol=1e-10)
    np.testing.assert_allclose(
        answer.counts, sum(w * a.counts for w, a in zip(weights, single, strict=True)), atol=1e-9
    )


@pytest.mark.parametrize("method", with_counts())
def test_counts_are_the_gradient_of_the_methods_own_log_z(method: str):
    """For fixed points of messages and for bounds alike, by finite differences; mini-buckets move with the tables."""
    if method in {"mini_bucket", "sandwich"}:
        pytest.skip("how mini-buckets are shifted and cut depends on the tables, and their counts hold that fixed")
    tight: Any = {
        "belief_propagation": lambda: mf.methods.BeliefPropagation(tolerance=1e-13, max_iterations=5000),
        "tree_reweighted": lambda: mf.methods.TreeReweighted(
            tolerance=1e-13, max_iterations=5000, optimise_trees=False
        ),
        "mean_field": lambda: mf.methods.MeanField(tolerance=1e-14, max_iterations=20000),
        "generalized_bp": lambda: mf.methods.GeneralizedBP(tolerance=1e-13, max_iterations=5000),
    }.get(method, lambda: method)
    try:
        chosen = tight()
    except TypeError:
        chosen = method
    graph = model().compile()
    answer = ask(chosen)
    step = 1e-5
    for cell in range(len(graph.log_tables)):
        moved = []
        for sign in (1, -1):
            tables = graph.log_tables.copy()
            tables[cell] += sign * step
            moved.append(ask(chosen, tables=tables).log_partition)
        assert answer.counts[cell] == pytest.approx((moved[0] - moved[1]) / (2 * step), abs=2e-5)


@pytest.mark.parametrize("method", sampling())
def test_counts_from_samples_are_within_their_errors(method: str):
    try:
        answer = ask(method, rng=3, n_samples=3000)
    except mf.ModelError as refusal:
        pytest.skip(f"{method} refuses this model: {refusal}")
    _, counts = expected([-1] * 4)
    if answer.standard_errors is None:
        np.testing.assert_allclose(answer.counts, counts, atol=1e-9)
        return
    assert (answer.standard_errors > 0).all()
    assert (np.abs(answer.counts - counts) <= 6 * answer.standard_errors).all()
    assert np.median(answer.standard_errors) < 0.05


def test_weighted_samples_have_weighted_counts():
    drawn = mf.sample(model(), 400, method="gibbs", rng=0)
    heavy = np.where(drawn.states[:, 0] == 1, 0.0, -np.inf)
    weighted = mf.Samples(graph=drawn.graph, states=drawn.states, method="gibbs", log_weights=heavy)
    counts, _ = counts_of_samples(weighted)
    plain, _ = counts_of_samples(
        mf.Samples(graph=drawn.graph, states=drawn.states[drawn.states[:, 0] == 1], method="gibbs")
    )
    np.testing.assert_allclose(counts, plain, atol=1e-12)


def test_impossible_rows():
    net = mf.MarkovNetwork({0: 2, 1: 2})
    net.add_factor([0, 1], [[1.0, 0.0], [2.0, 3.0]])
    graph = net.compile()
    for method in ("junction_tree", "enumeration"):
        with pytest.raises(mf.ImpossibleEvidenceError):
            mf.expected_counts(graph.structure, graph.log_tables, [0, 1], method=method)
        many = mf.expected_counts(graph.structure, graph.log_tables, [[0, 1], [1, -1]], method=method)
        assert many.log_partition[0] == -np.inf
        np.testing.assert_allclose(many.counts, [0, 0, 0.4, 0.6])


def test_mistakes():
    with pytest.raises(mf.ModelError, match="one weight for each of 2 rows"):
        ask("junction_tree", [[-1] * 4, [0] * 4], [1.0])
    with pytest.raises(mf.ModelError, match="must be finite"):
        ask("junction_tree", None, [np.nan])
    with pytest.raises(mf.ModelError, match="there is no method 'junction_treee'"):
        ask("junction_treee")
    with pytest.raises(mf.ModelError, match="no expected counts"):
        ask("model_counting")


def test_expectation_maximisation_takes_any_method_of_counts():
    from markovfield.inference.core.running import Running
    from markovfield.learning.core.data import encode
    from markovfield.learning.directed.statistics import Observations

    net = mf.BayesianNetwork({"A": 2, "B": 2})
    net.add_cpt("A", [], [0.6, 0.4])
    net.add_cpt("B", ["A"], [[0.9, 0.1], [0.2, 0.8]])
    graph = net.compile()
    table = encode({"A": [0, None, 1, None], "B": [1, 1, None, 0]}, net)
    exact = Observations(graph, table, Running()).expect(graph.log_tables)
    for method in ("enumeration", "belief_propagation"):
        other = Observations(graph, table, Running(), method).expect(graph.log_tables)
        np.testing.assert_allclose(other.counts, exact.counts, atol=1e-9)
        assert other.log_likelihood == pytest.approx(exact.log_likelihood)


def test_asking_by_name_loads_only_that_method():
    code = (
        "import sys, markovfield as mf\n"
        "net = mf.MarkovNetwork({0: 2, 1: 2}); net.add_factor([0, 1], [[1.0, 2.0], [3.0, 4.0]])\n"
        "graph = net.compile()\n"
        "mf.expected_counts(graph.structure, graph.log_tables, method='enumeration')\n"
        "print('numba' in sys.modules, any('gibbs' in name for name in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]
