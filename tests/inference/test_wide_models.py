"""Models too wide for exact answers, by ``auto``: bounds on log Z whatever their size, and words on how to get more."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import markovfield as mf
from markovfield.inference import automatic

K, SHAPE = 3, (3, 3)
RNG = np.random.default_rng(2)
FIELD, COUPLING = RNG.normal(size=(*SHAPE, K)), RNG.normal(size=12)


@pytest.fixture
def wide(monkeypatch):
    """Small lattices take the way of large ones: no enumeration, no junction tree."""
    monkeypatch.setattr(automatic, "ENUMERATION_BITS", 1.0)
    monkeypatch.setattr(automatic, "AUTO_WORK_LIMIT", 1.0)


def log_partition(evidence=None, likelihoods=None) -> float:
    """By enumerating all assignments."""
    model = mf.Potts(SHAPE, K, COUPLING, FIELD)
    total = []
    for x in itertools.product(range(K), repeat=9):
        if any(x[v] != state for v, state in (evidence or {}).items()):
            continue
        score = sum(FIELD.reshape(9, K)[v, k] for v, k in enumerate(x))
        score += sum(c for (a, b), c in zip(model.edges.tolist(), COUPLING, strict=True) if x[a] == x[b])
        total.append(score + sum(np.log(p[x[v]]) for v, p in (likelihoods or {}).items()))
    return float(np.logaddexp.reduce(total))


@pytest.mark.parametrize("most_buckets", [0, 5000])
@pytest.mark.parametrize("time_limit", [None, 30.0])
@pytest.mark.parametrize("evidence", [{}, {4: 1}, {0: 2, 8: 0}])
@pytest.mark.parametrize("likelihoods", [{}, {3: [0.2, 0.3, 0.5], 7: [0.7, 0.2, 0.1]}])
def test_bounds_hold_log_z(wide, monkeypatch, most_buckets, time_limit, evidence, likelihoods):
    monkeypatch.setattr(automatic, "MOST_BUCKETS", most_buckets)
    model = mf.Potts(SHAPE, K, COUPLING, FIELD)
    exact, known = log_partition(evidence, likelihoods), {**evidence, **likelihoods}
    answer = mf.marginals(model, known, targets=[[0, 1]], time_limit=time_limit)
    alone = mf.log_partition(model, known, time_limit=time_limit)
    assert answer.method == alone.method == "sandwich"
    for low, high in (answer.log_partition_bounds, alone.log_partition_bounds):
        assert np.isfinite([low, high]).all() and low - 1e-9 <= exact <= high + 1e-9
        assert high - low < 3.0
    assert answer.joint([0, 1]).shape == (K, K)
    for v, state in evidence.items():
        assert answer[v][state] == pytest.approx(1.0)


def test_a_lattice_of_many_sites_has_bounds():
    """More variables than mini-buckets are tried on: it had a value and no bounds."""
    model = mf.Potts((80, 80), 4, 0.8, np.random.default_rng(0).normal(size=(80, 80, 4)))
    answer = mf.marginals(model, {0: 1, 17: [0.1, 0.2, 0.3, 0.4]})
    low, high = answer.log_partition_bounds
    assert answer.method == "sandwich" and answer.converged
    assert np.isfinite([low, high]).all() and low < answer.log_partition < high
    assert high - low < 0.2 * answer.log_partition
    assert [step.method for step in answer.details] == ["mean_field", "tree_reweighted", "belief_propagation"]
    plain = mf.marginals(model, {0: 1, 17: [0.1, 0.2, 0.3, 0.4]}, method="bp")
    assert np.array_equal(plain.values, answer.values)


def test_answers_and_explanations_say_how_to_get_more(wide, monkeypatch):
    model = mf.Potts(SHAPE, K, COUPLING, FIELD)
    told = mf.explain(model)
    assert told.method == "sandwich" and "Sandwich(time_limit=...)" in told.reason
    assert "approximate by mini_bucket, belief_propagation instead" in told.reason
    exact = mf.log_partition(model, method="sandwich")
    assert exact.guarantee == "exact" and "tighter" not in repr(exact)
    monkeypatch.setattr(automatic, "MOST_BUCKETS", 0)
    assert "by mean_field, tree_reweighted, belief_propagation instead" in mf.explain(model).reason
    for verb in (mf.marginals, mf.log_partition):
        assert "tighter: method=mf.methods.Sandwich(time_limit=60)" in repr(verb(model))
