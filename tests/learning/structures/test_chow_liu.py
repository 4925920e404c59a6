"""Chow-Liu trees: the best of all trees, their directions, forests, and the tree of a classifier."""

from __future__ import annotations

import itertools

import networkx as nx
import numpy as np
import pytest

import markovfield as mf
from markovfield.learning.core.data import DataTable, encode
from markovfield.learning.structure import learn_structure
from markovfield.learning.structures.chow_liu import ChowLiu, mutual_informations
from markovfield.learning.structures.scores import structure_score
from tests.learning.structures.test_hill_climbing import drawn


def information_by_rows(table: DataTable, u: int, v: int, given: int | None = None) -> float:
    """Mutual information from relative frequencies, over the rows that have all of the variables."""
    members = [u, v] if given is None else [u, v, given]
    rows = [tuple(r) for r in table.codes[members].T.tolist() if min(r) >= 0]
    total = 0.0
    for x, y, *z in set(rows):
        n = rows.count((x, y, *z))
        n_x = sum(r[0] == x and list(r[2:]) == z for r in rows)
        n_y = sum(r[1] == y and list(r[2:]) == z for r in rows)
        n_z = sum(list(r[2:]) == z for r in rows)
        total += n / len(rows) * np.log(n * n_z / (n_x * n_y))
    return total


@pytest.mark.parametrize("missing", [0.0, 0.1])
@pytest.mark.parametrize("given", [None, 2])
def test_mutual_informations(missing, given):
    table = drawn(1, n=5, rows=120)
    codes = table.codes.copy()
    codes[np.random.default_rng(0).random(codes.shape) < missing] = -1
    table = DataTable(table.variables, table.states, codes)
    found = mutual_informations(table, given)
    np.testing.assert_array_equal(found, found.T)
    for u, v in itertools.combinations(range(5), 2):
        expected = 0.0 if given in (u, v) else information_by_rows(table, u, v, given)
        assert found[u, v] == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_the_best_of_all_trees_of_five_variables(seed):
    table = drawn(seed, n=5, rows=300)
    best = -np.inf
    for code in itertools.product(range(5), repeat=3):
        tree = nx.relabel_nodes(nx.from_prufer_sequence(list(code)), dict(enumerate(table.variables)))
        directed = nx.bfs_tree(tree, table.variables[0])
        best = max(best, structure_score(directed, table, "log_likelihood"))
    learned = learn_structure(table, "chow_liu")
    assert learned.score == pytest.approx(best, rel=1e-12)
    assert nx.is_arborescence(learned.dag) and learned.dag.in_degree("v0") == 0
    empty = structure_score(nx.DiGraph(), table, "log_likelihood")
    assert empty + sum(m.gain for m in learned.history) == pytest.approx(best, rel=1e-12)


def test_any_root_gives_an_equivalent_tree():
    table = drawn(2, n=6)
    first = learn_structure(table, ChowLiu())
    for root in table.variables:
        other = learn_structure(table, ChowLiu(root=root))
        assert other.dag.in_degree(root) == 0 and other.cpdag == first.cpdag
        assert other.score == pytest.approx(first.score, rel=1e-12)


def test_a_forest_where_little_is_shared():
    rng = np.random.default_rng(0)
    a, c = rng.integers(2, size=(2, 4000))
    data = {"A": a, "B": a ^ (rng.random(4000) < 0.1), "C": c, "D": c ^ (rng.random(4000) < 0.1)}
    learned = learn_structure(data, ChowLiu(min_information=0.01))
    assert set(learned.arcs) == {("A", "B"), ("C", "D")}
    assert set(learn_structure(data, ChowLiu(root="D", min_information=0.01)).arcs) == {("A", "B"), ("D", "C")}
    assert len(learn_structure(data, ChowLiu()).arcs) == 3


def test_a_classifier_with_a_tree():
    table = drawn(4, n=6, rows=500)
    learned = learn_structure(table, ChowLiu(class_variable="v3", root="v5"))
    others = [v for v in table.variables if v != "v3"]
    assert all(learned.dag.has_edge("v3", v) for v in others)
    tree = learned.dag.subgraph(others)
    assert nx.is_arborescence(tree) and tree.in_degree("v5") == 0
    weights = nx.Graph()
    for u, v in itertools.combinations(others, 2):
        pair = table.variables.index(u), table.variables.index(v)
        weights.add_edge(u, v, weight=information_by_rows(table, *pair, given=3))
    best = nx.maximum_spanning_tree(weights).size("weight")
    assert sum(m.gain for m in learned.history) / table.n_rows == pytest.approx(best, rel=1e-9)


def test_missing_values_are_left_out_pair_by_pair():
    data = {"A": [0, 0, 1, 1, None] * 5, "B": [0, 0, 1, 1, 0] * 5, "C": [0, 1, None, 1, 0] * 5}
    learned = learn_structure(data, "chow_liu")
    assert ("A", "B") in learned.arcs and learned.score is None
    assert mutual_informations(encode(data))[0, 1] == pytest.approx(np.log(2))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"root": "Z"}, "no variable 'Z'"),
        ({"root": "v1", "class_variable": "v1"}, "root and class_variable of ChowLiu are both 'v1'"),
        ({"min_information": -1.0}, "min_information of ChowLiu must be at least 0"),
    ],
)
def test_settings_are_checked(settings, message):
    with pytest.raises(mf.ModelError, match=message):
        learn_structure(drawn(0), ChowLiu(**settings))
