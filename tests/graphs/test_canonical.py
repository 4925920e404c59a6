"""Canonical clique potentials of positive distributions."""

from __future__ import annotations

import itertools

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from markovfield.exceptions import ModelError
from markovfield.graphs import JointTable, canonical_potentials, interaction_graph, minimal_undirected_imap
from tests.graphs import independence_cases as cases


@st.composite
def positive_joints(draw):
    """Positive tables of one to four variables of two to four states, and a reference configuration."""
    shape = draw(st.lists(st.integers(1, 4), min_size=1, max_size=4))
    rng = np.random.default_rng(draw(cases.seeds))
    joint = JointTable(np.exp(rng.normal(size=shape)), [f"x{i}" for i in range(len(shape))])
    return joint, {f"x{i}": int(rng.integers(k)) for i, k in enumerate(shape)}


def potential_by_definition(joint, reference, subset):
    """The alternating sum over subsets, one configuration at a time."""
    log_p = np.log(joint.probabilities)
    base = [reference[v] for v in joint.variables]
    axes = [i for i, v in enumerate(joint.variables) if v in subset]
    result = np.zeros([joint.probabilities.shape[i] for i in axes])
    for states in np.ndindex(*result.shape):
        for k in range(len(axes) + 1):
            for inner in itertools.combinations(range(len(axes)), k):
                x = list(base)
                for j in inner:
                    x[axes[j]] = states[j]
                result[states] += (-1) ** (len(axes) - k) * log_p[tuple(x)]
    return result


@given(positive_joints())
@settings(max_examples=60, deadline=None)
def test_potentials_are_the_moebius_inversion_and_add_up_to_log_p(case):
    joint, reference = case
    potentials = canonical_potentials(joint, reference, tolerance=None)
    n = len(joint)
    assert len(potentials) == 2**n
    total = np.zeros(joint.probabilities.shape)
    for subset, table in potentials.items():
        np.testing.assert_allclose(table, potential_by_definition(joint, reference, subset), atol=1e-12)
        axes = [i for i, v in enumerate(joint.variables) if v in subset]
        total = total + cases.spread(table, axes, n)
        for k, i in enumerate(axes):
            assert not np.take(table, reference[joint.variables[i]], axis=k).any()
    np.testing.assert_allclose(total, np.log(joint.probabilities), atol=1e-12)


@given(cases.undirected_graphs(6), cases.seeds)
@settings(max_examples=60, deadline=None, derandomize=True)
def test_only_cliques_of_the_graph_keep_a_potential(graph, seed):
    rng = np.random.default_rng(seed)
    joint = cases.undirected_joint(graph, rng)
    reference = {v: int(rng.integers(2)) for v in graph}
    potentials = canonical_potentials(joint, reference)
    for subset in potentials:
        assert all(graph.has_edge(u, v) for u, v in itertools.combinations(subset, 2))
    found = interaction_graph(joint, reference)
    assert nx.utils.graphs_equal(found, graph)
    assert nx.utils.graphs_equal(minimal_undirected_imap(joint), graph)
    # What is left out was zero: the rest still adds up.
    axes = {v: i for i, v in enumerate(joint.variables)}
    total = sum(cases.spread(t, sorted(axes[v] for v in s), len(axes)) for s, t in potentials.items())
    np.testing.assert_allclose(total, np.log(joint.probabilities) * np.ones_like(total), atol=1e-8)


def test_a_pairwise_model_has_its_own_edges_as_potentials():
    # With state 0 as reference and log-potentials w x_s x_t, the canonical potentials are those of the model.
    weights = {(0, 1): 0.7, (1, 2): -1.1, (0, 3): 0.4}
    log_p = np.zeros((2, 2, 2, 2))
    for x in np.ndindex(2, 2, 2, 2):
        log_p[x] = sum(w * x[s] * x[t] for (s, t), w in weights.items()) + 0.3 * x[2]
    potentials = canonical_potentials(JointTable(np.exp(log_p), range(4)))
    assert set(potentials) == {frozenset(), frozenset({2}), *map(frozenset, weights)}
    for (s, t), w in weights.items():
        np.testing.assert_allclose(potentials[frozenset({s, t})], [[0, 0], [0, w]], atol=1e-14)
    np.testing.assert_allclose(potentials[frozenset({2})], [0, 0.3], atol=1e-14)


def test_sixteen_variables_are_inverted_at_once():
    rng = np.random.default_rng(3)
    log_p = np.zeros((2,) * 16)
    for i in range(15):
        log_p = log_p + cases.spread(rng.normal(size=(2, 2)), [i, i + 1], 16)
    found = interaction_graph(JointTable(np.exp(log_p), range(16)))
    assert nx.utils.graphs_equal(found, nx.path_graph(16))


def test_errors():
    joint = JointTable([[0.5, 0.0], [0.25, 0.25]], ["A", "B"])
    for function in (canonical_potentials, interaction_graph):
        with pytest.raises(ModelError, match=f"{function.__name__} needs a positive distribution, got one with"):
            function(joint)
        with pytest.raises(ModelError, match=r"tolerance of .* must not be negative, got -1"):
            function(joint, tolerance=-1)
        with pytest.raises(ModelError, match="names 'X', which is not a variable of the distribution"):
            function(joint, {"X": 0})
        with pytest.raises(ModelError, match="for 'B' must be an index from 0 to 1, got 2"):
            function(joint, {"B": 2})
        with pytest.raises(ModelError, match="needs a JointTable or a model with compile"):
            function([[0.5, 0.5]])
