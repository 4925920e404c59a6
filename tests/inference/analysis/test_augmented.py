"""Loss-augmented and diverse decoding against enumeration."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import markovfield as mf
from tests.strategies import Spec, specs


@settings(max_examples=30, deadline=None)
@given(specs(), st.integers(0, 2**16))
def test_added_unaries_are_added(spec: Spec, seed: int):
    oracle = spec.oracle()
    if oracle.impossible:
        return
    rng = np.random.default_rng(seed)
    decoder = mf.analysis.AugmentedDecoder(spec.build())
    for scale in (0.0, 1.0, 3.0):
        unaries = scale * rng.normal(size=sum(spec.cardinalities))
        joint = oracle.scores.reshape(spec.cardinalities).astype(np.float64)
        at = 0
        for v, card in enumerate(spec.cardinalities):
            shape = [card if u == v else 1 for u in range(spec.n_variables)]
            joint += unaries[at : at + card].reshape(shape)
            at += card
        answer = decoder.decode(unaries)
        room = 1e-7 * (1 + abs(joint.max()))
        assert answer.score == pytest.approx(joint.max(), abs=room)
        assert joint[tuple(spec.states(answer.assignment))] == pytest.approx(joint.max(), abs=room)
    best = decoder.decode().score
    top = float(oracle.best_score)
    assert best == pytest.approx(top, abs=1e-7 * (1 + abs(top)))


def test_nothing_is_planned_twice_and_the_model_stays():
    rng = np.random.default_rng(0)
    graph = mf.Ising((8, 8), coupling=0.3, field=0.1).compile()
    before = graph.log_tables.copy()
    decoder = mf.analysis.AugmentedDecoder(graph, method="junction_tree")
    decoder.decode(rng.normal(size=128))
    kept = set(decoder._structure.cache)
    for _ in range(5):
        decoder.decode(rng.normal(size=128))
    assert set(decoder._structure.cache) == kept
    np.testing.assert_array_equal(graph.log_tables, before)
    doubled = decoder.decode(log_tables=2 * graph.log_tables).score
    assert doubled == pytest.approx(2 * mf.decode(graph).score)


def test_hamming_loss():
    net = mf.MarkovNetwork({"a": ["x", "y"], "b": 3})
    net.add_factor(["a", "b"], np.ones((2, 3)))
    decoder = mf.analysis.AugmentedDecoder(net)
    assert decoder.hamming({"a": "y"}, 2.0).tolist() == [2.0, 0.0, 0.0, 0.0, 0.0]
    assert decoder.hamming([0, 2]).tolist() == [0.0, 1.0, 1.0, 1.0, 0.0]
    assert decoder.decode(decoder.hamming([0, 2])).score == pytest.approx(2.0)
    with pytest.raises(mf.ModelError, match="got nan"):
        decoder.decode(np.full(5, np.nan))


def test_diverse_assignments_are_what_they_maximise():
    rng = np.random.default_rng(1)
    net = mf.MarkovNetwork(dict.fromkeys(range(6), 3))
    for i in range(6):
        net.add_factor([i, (i + 1) % 6], log_table=rng.normal(size=(3, 3)))
    graph = net.compile()
    joint = np.array([graph.score(np.array(s)) for s in np.ndindex(*[3] * 6)])
    states = np.array(list(np.ndindex(*[3] * 6)))
    found = mf.analysis.diverse_best(net, 4, penalty=0.5)
    penalties = np.zeros(len(joint))
    for answer in found:
        assert answer.score == pytest.approx(graph.score(answer.states))
        at = int(np.flatnonzero((states == answer.states).all(axis=1))[0])
        assert (joint - penalties)[at] == pytest.approx((joint - penalties).max())
        penalties += 0.5 * (states == answer.states).sum(axis=1)
    assert found[0].optimal and not found[1].optimal
    assert len({a.states.tobytes() for a in found}) == 4
    for bad, match in [({"n": 0, "penalty": 1.0}, "n must be"), ({"n": 2, "penalty": 0.0}, "penalty must be")]:
        with pytest.raises(mf.ModelError, match=match):
            mf.analysis.diverse_best(net, **bad)


def test_earlier_answers_keep_their_graph():
    """They shared one buffer, and the score of an answer's own graph changed with the next decoding."""
    net = mf.MarkovNetwork({"a": 2, "b": 2})
    net.add_factor(["a", "b"], log_table=[[0.0, 0.0], [0.0, 1.0]])
    decoder = mf.analysis.AugmentedDecoder(net)
    first = decoder.decode([5.0, 0.0, 5.0, 0.0])
    assert first.graph.score(first.states) == first.score == 10.0
    second = decoder.decode([0.0, 7.0, 0.0, 0.0], log_tables=np.array([0.0, 0.0, 0.0, 3.0]))
    assert first.graph.score(first.states) == 10.0
    assert second.graph.score(second.states) == second.score == 10.0
    third = decoder.decode()
    assert third.score == 3.0 and second.graph.score(second.states) == 10.0
    given = np.array([0.0, 0.0, 0.0, 4.0])
    fourth = decoder.decode(log_tables=given)
    given[:] = 0.0
    assert fourth.graph.score(fourth.states) == 4.0 == decoder.decode().score


def test_unaries_must_be_numbers():
    decoder = mf.analysis.AugmentedDecoder(mf.Ising((2, 2), 1.0))
    with pytest.raises(mf.ModelError, match="must be numbers, got nan"):
        decoder.decode(np.full(8, np.nan))
