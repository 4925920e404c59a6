"""PC: its tests of independence, and the classes it recovers from large samples of faithful networks."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from scipy.stats import chi2_contingency

import markovfield as mf
from markovfield.graphs.equivalence import cpdag
from markovfield.learning.core.counting import family_counts
from markovfield.learning.core.data import encode
from markovfield.learning.structure import learn_structure
from markovfield.learning.structures.pc import PC, independence_test


@pytest.mark.parametrize(("test", "lambda_"), [("g2", "log-likelihood"), ("chi2", "pearson")])
def test_statistics_agree_with_scipy(test, lambda_):
    rng = np.random.default_rng(0)
    counts = rng.integers(1, 30, size=(4, 3, 2))
    expected = [chi2_contingency(c, correction=False, lambda_=lambda_) for c in counts]
    found = independence_test(counts, test)
    assert found.statistic == pytest.approx(sum(e.statistic for e in expected))
    assert found.degrees == 8
    single = independence_test(counts[0], test)
    assert single.p_value == pytest.approx(expected[0].pvalue, rel=1e-9)


@pytest.mark.parametrize("test", ["g2", "chi2"])
def test_states_that_do_not_occur_have_no_degrees_of_freedom(test):
    small = np.array([[20, 5], [4, 30]])
    padded = np.zeros((3, 4, 3))
    padded[1][np.ix_([0, 2], [1, 2])] = small
    assert independence_test(padded, test) == pytest.approx(independence_test(small, test))
    assert independence_test([[3, 4], [0, 0]], test) == (pytest.approx(0.0), 0, 1.0)


def test_independent_p_values_are_spread_evenly():
    rng = np.random.default_rng(1)
    p = [
        independence_test(np.histogram2d(*rng.integers([[3], [4]], size=(2, 500)), [3, 4])[0]).p_value
        for _ in range(400)
    ]
    assert 0.02 < np.mean(np.array(p) < 0.05) < 0.09 and 0.4 < np.median(p) < 0.6


def faithful(dag: nx.DiGraph, seed: int) -> mf.BayesianNetwork:
    """A network on a DAG in which every parent matters a good deal."""
    rng = np.random.default_rng(seed)
    net = mf.BayesianNetwork(dict.fromkeys(dag, 3))
    for v in nx.topological_sort(dag):
        parents = list(dag.predecessors(v))
        net.add_cpt(v, parents, rng.dirichlet(np.full(3, 0.7), size=[3] * len(parents)))
    return net


DAGS = {
    "chain": [("A", "B"), ("B", "C"), ("C", "D")],
    "collider": [("A", "C"), ("B", "C"), ("C", "D")],
    "diamond": [("A", "B"), ("A", "C"), ("B", "D"), ("C", "D")],
    "asia-like": [("a", "t"), ("s", "l"), ("s", "b"), ("t", "e"), ("l", "e"), ("e", "x"), ("e", "d"), ("b", "d")],
}


@pytest.mark.parametrize("test", ["g2", "chi2"])
@pytest.mark.parametrize("name", DAGS)
def test_recovers_the_class_from_a_large_sample(name, test):
    dag = nx.DiGraph(DAGS[name])
    for seed in (1, 2):
        samples = mf.sample(faithful(dag, seed), 100_000, rng=seed)
        learned = learn_structure(samples, PC(alpha=1e-4, test=test))
        assert learned.cpdag == cpdag(dag)
        assert cpdag(learned.dag) == cpdag(dag)
        table = encode(samples)
        assert set(learned.separating_sets) == {frozenset(p) for p in nx.complement(dag.to_undirected()).edges}
        for pair, given in learned.separating_sets.items():
            family = [table.variables.index(v) for v in (*given, *pair)]
            assert independence_test(family_counts(table, [family])[0], test).p_value > 1e-4


def test_hill_climbing_finds_the_same_classes():
    for name, arcs in DAGS.items():
        samples = mf.sample(faithful(nx.DiGraph(arcs), 1), 100_000, rng=1)
        assert learn_structure(samples, "hill_climbing").cpdag == cpdag(nx.DiGraph(arcs)), name


def test_the_order_of_variables_does_not_change_adjacencies():
    samples = mf.sample(faithful(nx.DiGraph(DAGS["asia-like"]), 3), 2000, rng=0).to_dict()
    skeletons = []
    for seed in range(4):
        order = np.random.default_rng(seed).permutation(list(samples)).tolist()
        learned = learn_structure({v: samples[v] for v in order}, PC(alpha=0.05))
        skeletons.append({frozenset(arc) for arc in learned.arcs})
    assert all(s == skeletons[0] for s in skeletons)


def test_max_given_limits_the_sets():
    samples = mf.sample(faithful(nx.DiGraph(DAGS["chain"]), 1), 20_000, rng=0)
    none = learn_structure(samples, PC(max_given=0))
    assert all(not s for s in none.separating_sets.values())
    assert none.dag.number_of_edges() > learn_structure(samples, PC()).dag.number_of_edges()


def test_missing_values_are_left_out_test_by_test():
    rng = np.random.default_rng(0)
    a, c = rng.integers(2, size=(2, 3000)).astype(object)
    b = (a + (rng.random(3000) < 0.1)) % 2
    b[::7] = None
    learned = learn_structure({"A": a, "B": b, "C": c}, PC(alpha=0.001))
    assert learned.cpdag.skeleton().has_edge("A", "B") and learned.dag.number_of_edges() == 1


def test_stopping_raises():
    samples = mf.sample(faithful(nx.DiGraph(DAGS["diamond"]), 1), 500, rng=0)
    with pytest.raises(TimeoutError, match="time limit"):
        learn_structure(samples, "pc", time_limit=1e-9)
    with pytest.raises(mf.StoppedError, match="callback"):
        learn_structure(samples, "pc", callback=lambda progress: True)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"alpha": 0}, "alpha of PC must be positive, got 0"),
        ({"alpha": 1.0}, "alpha of PC must be below 1, got 1.0"),
        ({"max_given": -1}, "max_given of PC must be at least 0"),
        ({"test": "z"}, "test of PC must be 'g2' or 'chi2', got 'z'"),
    ],
)
def test_settings_are_checked(settings, message):
    with pytest.raises(mf.ModelError, match=message):
        PC(**settings)
