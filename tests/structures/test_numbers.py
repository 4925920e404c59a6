"""What every form must show: numbers of structures in closed form, and words for input that makes no sense."""

from __future__ import annotations

from math import comb, factorial

import networkx as nx
import numpy as np
import pytest

import markovfield as mf

s = mf.structures


@pytest.mark.parametrize("n", range(1, 11))
def test_binary_trees_are_catalan(n):
    catalan = comb(2 * n - 2, n - 1) // n
    assert s.SpanTree(np.zeros((n, n, 1))).n_structures() == catalan
    assert s.SpanTree(np.zeros((n, n, 2))).n_structures() == catalan * 2 ** (2 * n - 1)
    words = [{"w": 0.0}] * n
    assert s.Chart(words, {("S", "S", "S"): 0.0, ("S", "w"): 0.0}).n_structures() == catalan


@pytest.mark.parametrize("n", range(1, 11))
def test_dependency_trees_are_cayley_and_fuss_catalan(n):
    scores = np.zeros((n + 1, n + 1))
    # Of n + 1 nodes without a root there are (n + 1)^(n - 1), and each hangs from node 0 in one way.
    assert s.SpanningTree(scores, single_root=False).n_structures() == pytest.approx((n + 1) ** (n - 1), rel=1e-12)
    assert s.SpanningTree(scores).n_structures() == pytest.approx(n ** (n - 1), rel=1e-12)
    assert s.ProjectiveTree(scores).n_structures() == comb(3 * n - 2, n - 1) // n
    assert s.ProjectiveTree(scores, single_root=False).n_structures() == comb(3 * n + 1, n) // (3 * n + 1)


@pytest.mark.parametrize("seed", range(3))
def test_spanning_trees_of_a_graph_are_kirchhoffs(seed):
    graph = nx.gnp_random_graph(8, 0.6, seed=seed)
    if not nx.is_connected(graph):
        pytest.skip("no tree")
    scores = np.where(nx.to_numpy_array(graph) > 0, 0.0, -np.inf)
    minor = nx.laplacian_matrix(graph).toarray()[1:, 1:].astype(float)
    found = s.SpanningTree(scores, single_root=False).n_structures()
    assert found == pytest.approx(np.linalg.det(minor), rel=1e-9)


@pytest.mark.parametrize("n", range(1, 10))
def test_other_numbers(n):
    assert s.Matching(np.zeros((n, n))).n_structures() == factorial(n)
    assert s.Ranking(np.zeros(n)).n_structures() == factorial(n)
    assert s.SemiMarkov(np.zeros((n, n, 1))).n_structures() == 2 ** (n - 1)
    assert s.MonotoneAlignment(np.zeros((n, n + 1))).n_structures() == comb(2 * n + 1, n)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: s.SpanningTree(np.zeros((3, 4))), "must be square"),
        (lambda: s.ProjectiveTree(np.zeros((4, 3))), "must be square"),
        (lambda: s.SpanTree(np.zeros((3, 4, 1))), "must be square"),
        (lambda: s.SpanTree(np.zeros((0, 0, 1))), "a word and a label at least"),
        (lambda: s.SpanningTree(np.zeros((1, 1))), "the root, a word and a label at least"),
        (lambda: s.SemiMarkov(np.zeros((0, 2, 1))), "a position, a length and a label at least"),
        (lambda: s.SemiMarkov(np.zeros((4, 2, 2))).score([(0, 3, 0), (3, 4, 0)]), "at most 2 positions"),
        (lambda: s.Chart([], {("S", "S", "S"): 0.0}), "at least one"),
        (lambda: s.MonotoneAlignment(np.zeros((0, 0))), "a row or a column at least"),
        (lambda: s.Matching(np.zeros((0, 0))), "a row or a column at least"),
        (lambda: s.Ranking(np.zeros(0)), "an item and a position at least"),
        (lambda: s.CTC(np.zeros((2, 3)), [1, 1]), "2 labels need 3 frames at least, got 2"),
        (lambda: s.AlignmentChoice([]), "one MonotoneAlignment or more"),
        (lambda: s.SpanningTree(np.full((3, 3), np.nan)), "numbers or -inf, got nan"),
    ],
)
def test_input_that_makes_no_sense(make, message):
    with pytest.raises(mf.ModelError, match=message):
        make()
