"""Marginals sink by sink: the same as those of the whole network."""

from __future__ import annotations

import numpy as np
import pytest

import markovfield as mf
from markovfield.inference.junction_tree import ancestral


def random_network(seed: int, deterministic: bool = False) -> mf.BayesianNetwork:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 9))
    cards = rng.integers(1, 4, size=n)
    net = mf.BayesianNetwork({f"x{v}": int(cards[v]) for v in range(n)})
    for v in range(n):
        parents = [p for p in range(v) if rng.random() < 0.35][:3]
        table = rng.random([*(int(cards[p]) for p in parents), int(cards[v])]) + 1e-3
        if deterministic:
            table = (table == table.max(axis=-1, keepdims=True)).astype(float)
        net.add_cpt(f"x{v}", [f"x{p}" for p in parents], table / table.sum(axis=-1, keepdims=True))
    return net


@pytest.fixture
def always(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Take the ancestors' way on every network it fits; the list grows with each use."""
    used: list[int] = []
    monkeypatch.setattr(ancestral, "FEWEST_CELLS", 0)
    monkeypatch.setattr(ancestral, "NANOSECONDS_PER_SINK", 0.0)
    usual = ancestral.sinks
    monkeypatch.setattr(ancestral, "sinks", lambda structure: used.append(1) or usual(structure))
    return used


@pytest.mark.parametrize("deterministic", [False, True])
@pytest.mark.parametrize("seed", range(12))
def test_agrees_with_enumeration(seed: int, deterministic: bool, always: list[int]):
    net = random_network(seed, deterministic)
    ours = mf.marginals(net, method="junction_tree")
    theirs = mf.marginals(net, method="enumeration")
    assert always, "the way was not taken"
    np.testing.assert_allclose(ours.values, theirs.values, rtol=0, atol=1e-12)
    assert ours.log_partition == pytest.approx(0.0, abs=1e-12) and ours.guarantee == "exact"
    names = list(net.variables)[:2]
    np.testing.assert_allclose(ours.joint(names), theirs.joint(names), rtol=0, atol=1e-12)
    np.testing.assert_allclose(ours.expected_counts, theirs.expected_counts, rtol=0, atol=1e-12)


def test_evidence_and_undirected_factors_go_the_usual_way(always: list[int]):
    net = random_network(3)
    mf.marginals(net, evidence={"x0": 0}, method="junction_tree")
    assert not always
    field = mf.MarkovNetwork({"A": 2, "B": 2})
    field.add_factor(["A", "B"], [[3.0, 1.0], [1.0, 3.0]])
    assert ancestral.sinks(field.compile().structure) is None
    assert mf.marginals(field, method="junction_tree")["A"].tolist() == [0.5, 0.5]


def test_sinks_are_nobodys_parents():
    net = mf.BayesianNetwork({"a": 2, "b": 2, "c": 2})
    net.add_cpt("a", [], [0.5, 0.5])
    net.add_cpt("b", ["a"], [[0.5, 0.5], [0.1, 0.9]])
    net.add_cpt("c", ["a"], [[0.5, 0.5], [0.1, 0.9]])
    assert ancestral.sinks(net.compile().structure).tolist() == [1, 2]
