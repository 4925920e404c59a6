"""Forests with large cardinality potentials: messages of their own against enumeration, and when auto takes them."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import markovfield as mf
from markovfield.inference.belief_propagation import native_forest

RNG = np.random.default_rng(5)
CARDS = (2, 3, 2, 2, 3, 2, 2, 2)


class Model:
    """Single potentials, a pair, and two counts that share one variable: a forest of eight variables."""

    def __init__(self, *, hard: bool = False) -> None:
        self.single = [np.exp(RNG.normal(size=k)) for k in CARDS]
        self.pair = np.exp(RNG.normal(size=(CARDS[6], CARDS[7])))
        self.first, self.second = RNG.normal(size=6), RNG.normal(size=3)
        if hard:
            self.first[[0, 2]] = self.second[2] = -np.inf
        self.net = mf.MarkovNetwork(dict(enumerate(CARDS)))
        for v, potential in enumerate(self.single):
            self.net.add_factor([v], potential)
        self.net.add_factor([6, 7], self.pair)
        # State 1 of variables 0, 1, 2, and any but state 2 of variable 4.
        self.net.add_cardinality(self.first, {0: 1, 1: 1, 2: 1, 3: 0}, {4: 2})
        self.net.add_cardinality(self.second, {3: 1, 5: 1, 6: 1})

    def weights(self, evidence=None, likelihoods=None) -> np.ndarray:
        """The weight of every assignment, ``float64[cards]``."""
        table = np.zeros(CARDS)
        for x in itertools.product(*map(range, CARDS)):
            if any(x[v] != state for v, state in (evidence or {}).items()):
                continue
            held = [x[0] == 1, x[1] == 1, x[2] == 1, x[3] == 0, x[4] != 2]
            others = [x[3] == 1, x[5] == 1, x[6] == 1]
            score = self.first[sum(held)] + self.second[min(sum(others), 2)]
            table[x] = np.exp(score) * self.pair[x[6], x[7]]
            for v, k in enumerate(x):
                table[x] *= self.single[v][k] * (likelihoods[v][k] if likelihoods and v in likelihoods else 1.0)
        return table


@pytest.fixture(autouse=True)
def small_potentials_count(monkeypatch):
    monkeypatch.setattr(native_forest, "MOST_CELLS", 1.0)
    monkeypatch.setattr("markovfield.inference.automatic.ENUMERATION_BITS", 1.0)


def never(*_):
    raise AssertionError("these factors need no plain tables")


LIKELIHOODS = {1: [0.2, 0.5, 0.3], 5: [0.9, 0.1]}


@pytest.mark.parametrize("method", ["auto", "bp"])
@pytest.mark.parametrize("hard", [False, True])
@pytest.mark.parametrize("evidence", [{}, {0: 1}, {3: 0, 6: 1}, {4: 2, 2: 0, 7: 1}])
@pytest.mark.parametrize("likelihoods", [{}, LIKELIHOODS])
def test_marginals_and_log_partition(monkeypatch, method, hard, evidence, likelihoods):
    model = Model(hard=hard)
    weights = model.weights(evidence, likelihoods)
    graph = model.net.compile()
    monkeypatch.setattr(type(graph), "to_tables", never)
    known = {**evidence, **likelihoods}
    for limit in (None, 60.0):
        answer = mf.marginals(graph, known, method=method, time_limit=limit)
        assert (answer.method, answer.guarantee, answer.converged) == ("belief_propagation", "exact", True)
        value = np.log(weights.sum())
        assert answer.log_partition == pytest.approx(value, abs=1e-10)
        assert answer.log_partition_bounds == (answer.log_partition, answer.log_partition)
        alone = mf.log_partition(graph, known, method=method, time_limit=limit)
        assert alone.guarantee == "exact" and float(alone) == pytest.approx(value, abs=1e-10)
    for v in range(len(CARDS)):
        expected = weights.sum(axis=tuple(a for a in range(len(CARDS)) if a != v)) / weights.sum()
        np.testing.assert_allclose(answer[v], expected, rtol=0, atol=1e-12)
        assert (answer[v][expected == 0] == 0).all()


@pytest.mark.parametrize("positions", [(0, 1), (6, 7), (7, 0), (5, 2, 4), (3,), (0, 3)])
def test_joint_distributions_run_again(positions):
    model = Model(hard=True)
    known = {3: 0, **LIKELIHOODS}
    weights = model.weights({3: 0}, LIKELIHOODS)
    answer = mf.marginals(model.net, known, targets=[list(positions)])
    rest = tuple(a for a in range(len(CARDS)) if a not in positions)
    kept = sorted(positions)
    expected = (weights.sum(axis=rest) / weights.sum()).transpose([kept.index(v) for v in positions])
    np.testing.assert_allclose(answer.joint(list(positions)), expected, rtol=0, atol=1e-12)


def test_counts_and_max_marginals_are_those_of_tables(monkeypatch):
    model = Model()
    native = mf.marginals(model.net, {2: 1})
    monkeypatch.setattr(native_forest, "MOST_CELLS", np.inf)
    tables = mf.marginals(model.net, {2: 1}, method="junction_tree")
    np.testing.assert_allclose(native.expected_counts, tables.expected_counts, rtol=0, atol=1e-10)
    for v in range(len(CARDS)):
        np.testing.assert_allclose(native.max_marginals[v], tables.max_marginals[v], rtol=0, atol=1e-7)


def test_impossible_evidence_is_said():
    net = mf.MarkovNetwork(dict.fromkeys(range(6), 2))
    net.add_exactly(1, dict.fromkeys(range(6), 1))
    net.add_factor([0], [1.0, 2.0])
    assert mf.marginals(net, {0: 1}).log_partition == pytest.approx(np.log(2.0))
    for verb in (mf.marginals, mf.log_partition):
        with pytest.raises(mf.ImpossibleEvidenceError):
            verb(net, {0: 1, 1: 1})


def test_a_cycle_or_a_deep_forest_is_left_to_others(monkeypatch):
    model = Model()
    model.net.add_factor([0, 1], [[2.0, 1.0, 1.0], [1.0, 1.0, 3.0]])
    graph = model.net.compile()
    assert not native_forest.is_native_forest(graph, mf.inference.core.evidence.Evidence.parse(graph.structure, None))
    cyclic = mf.marginals(model.net)
    assert cyclic.method == "junction_tree" and cyclic.guarantee == "exact"
    # Observed, the variable that closes the cycle opens it.
    opened = mf.marginals(model.net, {0: 1})
    exact = mf.marginals(model.net, {0: 1}, method="junction_tree")
    assert (opened.method, opened.guarantee) == ("belief_propagation", "exact")
    assert opened.log_partition == pytest.approx(exact.log_partition, abs=1e-10)
    np.testing.assert_allclose(opened[1], exact[1], rtol=0, atol=1e-12)
    deep = Model()
    monkeypatch.setattr(native_forest, "MOST_SWEEPS", 2)
    answer = mf.marginals(deep.net)
    assert answer.guarantee == "exact"
    assert answer.log_partition == pytest.approx(np.log(deep.weights().sum()), abs=1e-10)


def test_a_count_of_a_thousand(monkeypatch):
    """Against the convolution of all variables one by one; the tables would have two milliards of cells."""
    monkeypatch.setattr(native_forest, "MOST_CELLS", 2.0**22)
    n = 1000
    chances, cells = RNG.uniform(size=n), RNG.normal(size=n + 1)
    net = mf.MarkovNetwork(dict.fromkeys(range(n), 2))
    for v in range(n):
        net.add_factor([v], [1 - chances[v], chances[v]])
    net.add_cardinality(cells, dict.fromkeys(range(n), 1))
    graph = net.compile()
    monkeypatch.setattr(type(graph), "to_tables", never)

    def total(skipped: int | None, shift: int) -> float:
        counts = np.ones(1)
        for v in range(n):
            if v != skipped:
                counts = np.convolve(counts, [1 - chances[v], chances[v]])
        return float(counts @ np.exp(cells[shift : shift + len(counts)]))

    answer = mf.marginals(graph)
    assert (answer.method, answer.guarantee) == ("belief_propagation", "exact")
    assert answer.log_partition == pytest.approx(np.log(total(None, 0)), rel=1e-12)
    for v in (0, 500):
        assert answer[v][1] == pytest.approx(chances[v] * total(v, 1) / total(None, 0), abs=1e-10)
    told = mf.explain(graph, "marginals")
    assert (told.method, told.guarantee, told.fits) == ("belief_propagation", "exact", True)
    assert "count many variables" in told.reason


def test_a_large_count_on_a_wide_lattice_has_messages(monkeypatch):
    """Mini-buckets of its counters in plain tables took minutes."""
    monkeypatch.setattr(native_forest, "MOST_CELLS", 2.0**22)
    n, side = 400, 20
    net = mf.MarkovNetwork(dict.fromkeys(range(n), 2))
    sites = np.arange(n).reshape(side, side)
    pairs = [
        *zip(sites[:-1].flat, sites[1:].flat, strict=True),
        *zip(sites[:, :-1].flat, sites[:, 1:].flat, strict=True),
    ]
    net.add_factors([(int(a), int(b)) for a, b in pairs], [[1.2, 1.0], [1.0, 1.2]])
    net.add_cardinality(RNG.normal(size=n + 1), dict.fromkeys(range(n), 1))
    answer = mf.marginals(net, {0: 1, 5: [0.3, 0.7]})
    assert (answer.method, answer.guarantee, answer.converged) == ("belief_propagation", "approximate", True)
    assert answer[0].tolist() == [0.0, 1.0]


def test_stopping_is_heard():
    with pytest.raises(mf.StoppedError):
        mf.marginals(Model().net, callback=lambda _: True)
