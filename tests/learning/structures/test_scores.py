"""Scores of structures: against direct formulas, equivalence, fast paths against slow ones."""

from __future__ import annotations

import itertools
import math

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import gammaln

import markovfield as mf
from markovfield.graphs.equivalence import cpdag
from markovfield.learning.core.data import DataTable, encode
from markovfield.learning.structures import local_scores
from markovfield.learning.structures.local_scores import LocalScores
from markovfield.learning.structures.scores import AIC, BIC, K2, BDeu, LogLikelihood, resolve_score, structure_score


def random_table(seed: int, cards, rows: int, *, weighted: bool = False) -> DataTable:
    rng = np.random.default_rng(seed)
    codes = np.empty((len(cards), rows), np.int16)
    for v, card in enumerate(cards):  # each depends on the one before, so that scores differ
        noise = rng.integers(card, size=rows)
        codes[v] = np.where(rng.random(rows) < 0.6, codes[v - 1] % card if v else noise, noise)
    weights = rng.random(rows) + 0.5 if weighted else None
    return DataTable(tuple("ABCDEFGH"[: len(cards)]), tuple(tuple(range(c)) for c in cards), codes, weights)


def by_formula(table: DataTable, name: str, child: int, parents, ess: float = 10.0) -> float:
    """The textbook formulas, row by row and configuration by configuration."""
    weights = np.ones(table.n_rows) if table.weights is None else table.weights
    counts: dict[tuple, np.ndarray] = {}
    states = len(table.states[child])
    for r in range(table.n_rows):
        j = tuple(table.codes[p, r] for p in parents)
        counts.setdefault(j, np.zeros(states))[table.codes[child, r]] += weights[r]
    configurations = math.prod(len(table.states[p]) for p in parents)
    if name in ("bdeu", "k2"):
        a = ess / (configurations * states) if name == "bdeu" else 1.0
        return sum(
            gammaln(states * a) - gammaln(states * a + n.sum()) + (gammaln(a + n) - gammaln(a)).sum()
            for n in counts.values()
        )
    fit = sum(x * math.log(x / n.sum()) for n in counts.values() for x in n if x)
    parameters = configurations * (states - 1)
    return fit - {"bic": 0.5 * math.log(weights.sum()), "aic": 1.0, "log_likelihood": 0.0}[name] * parameters


NAMES = ["bic", "aic", "bdeu", "k2", "log_likelihood"]


@pytest.mark.parametrize("name", NAMES)
@given(
    seed=st.integers(0, 2**32 - 1), cards=st.lists(st.integers(1, 4), min_size=2, max_size=5), weighted=st.booleans()
)
def test_local_scores_follow_the_formulas(name, seed, cards, weighted):
    table = random_table(seed, cards, 40, weighted=weighted)
    scores = LocalScores(table, name)
    for child in range(len(cards)):
        others = [v for v in range(len(cards)) if v != child]
        for size in range(len(others) + 1):
            for parents in itertools.combinations(others, size):
                expected = by_formula(table, name, child, parents)
                assert scores.local(child, parents[::-1]) == pytest.approx(expected, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("weighted", [False, True])
def test_additions_and_deletions_agree_with_local_scores(name, weighted):
    # Eight variables, the groups of candidates span several tables, more than one block of rows.
    table = random_table(1, [3, 4, 2, 5, 3, 7, 6, 4], 5000, weighted=weighted)
    fast = LocalScores(table, name)
    for child, parents in [(0, []), (3, [1]), (5, [6, 0]), (2, [5, 3, 6, 7, 1])]:
        added = fast.additions(child, parents)
        for v in range(8):
            if v == child or v in parents:
                assert math.isnan(added[v])
            else:
                assert added[v] == pytest.approx(LocalScores(table, name).local(child, [*parents, v]), rel=1e-12)
        removed = LocalScores(table, name).deletions(child, parents)
        for p, value in zip(parents, removed, strict=True):
            without = [q for q in parents if q != p]
            assert value == pytest.approx(LocalScores(table, name).local(child, without), rel=1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_many_parents_are_numbered_as_they_occur(name):
    table = random_table(2, [4, 5, 6, 5, 4, 6, 3], 300)  # 14,400 configurations of six parents, at most 300 occur
    expected = by_formula(table, name, 6, range(6))
    scores = LocalScores(table, name)
    assert scores.local(6, range(6)) == pytest.approx(expected, rel=1e-9)
    assert scores.additions(6, range(5))[5] == pytest.approx(expected, rel=1e-9)
    assert scores.deletions(6, range(6))[2] == pytest.approx(by_formula(table, name, 6, [0, 1, 3, 4, 5]), rel=1e-9)


@pytest.mark.parametrize("weighted", [False, True])
def test_equal_rows_are_counted_once(weighted):
    table = random_table(3, [2, 3, 2], 3000, weighted=weighted)
    scores = LocalScores(table, "bdeu")
    assert scores._data.n_rows <= 12 < table.n_rows
    assert scores.local(2, [0, 1]) == pytest.approx(by_formula(table, "bdeu", 2, [0, 1]), rel=1e-9)


def all_dags(nodes):
    pairs = list(itertools.combinations(nodes, 2))
    for kinds in itertools.product(range(3), repeat=len(pairs)):
        dag = nx.DiGraph()
        dag.add_nodes_from(nodes)
        dag.add_edges_from((a, b) if kind == 1 else (b, a) for (a, b), kind in zip(pairs, kinds, strict=True) if kind)
        if nx.is_directed_acyclic_graph(dag):
            yield dag


@pytest.mark.parametrize("name", ["bic", "aic", "bdeu", "log_likelihood"])
def test_equivalent_structures_have_equal_scores(name):
    table = random_table(4, [2, 3, 2, 2], 200)
    classes: dict = {}
    for dag in all_dags(table.variables):
        classes.setdefault(cpdag(dag), []).append(structure_score(dag, table, name))
    assert len(classes) == 185
    for values in classes.values():
        assert max(values) - min(values) < 1e-9 * abs(values[0])


def test_k2_tells_equivalent_structures_apart():
    table = random_table(4, [2, 3], 200)
    one, other = nx.DiGraph([("A", "B")]), nx.DiGraph([("B", "A")])
    assert abs(structure_score(one, table, "k2") - structure_score(other, table, "k2")) > 1e-3


def test_score_of_a_network_and_by_name():
    data = {"A": ["x", "y", "x", "y"], "B": ["u", "u", "v", "u"]}
    net = mf.BayesianNetwork({"B": ["u", "v"], "A": ["x", "y"]})
    net.set_parents("A", ["B"])
    table = encode(data)
    expected = by_formula(table, "bic", 0, [1]) + by_formula(table, "bic", 1, [])
    assert structure_score(net, data) == pytest.approx(expected)
    assert BIC().local(table, "A", ["B"]) == pytest.approx(by_formula(table, "bic", 0, [1]))
    cache = LocalScores(table, BDeu(3.0))
    assert BDeu(3.0).local(cache, "B", ["A"]) == pytest.approx(by_formula(table, "bdeu", 1, [0], 3.0))
    assert AIC().local(cache, "B", ["A"]) == pytest.approx(by_formula(table, "aic", 1, [0]))


def test_threads_do_not_change_a_bit(monkeypatch):
    monkeypatch.setattr(local_scores, "THREADED", 0)
    table = random_table(5, [3, 4, 2, 5, 3, 7, 6, 4], 4000)
    one, three = (LocalScores(table, "bdeu", running=local_scores.Running(n_jobs=j)) for j in (1, 3))
    np.testing.assert_array_equal(one.additions(0, [2]), three.additions(0, [2]))
    monkeypatch.setattr(local_scores, "THREADED", 2**40)
    np.testing.assert_array_equal(one.additions(0, [2]), LocalScores(table, "bdeu").additions(0, [2]))


def test_names_of_scores():
    assert resolve_score("BIC") == BIC() and resolve_score(K2) == K2() and resolve_score(BDeu(2)) == BDeu(2)
    assert resolve_score("log_likelihood") == LogLikelihood()
    with pytest.raises(mf.ModelError, match=r"no score 'bdue': choose from bic, .*; did you mean 'bdeu'"):
        resolve_score("bdue")
    with pytest.raises(mf.ModelError, match="score must be a name or a score object, got int"):
        resolve_score(3)  # type: ignore[arg-type]
    with pytest.raises(mf.ModelError, match="equivalent_sample_size of BDeu must be positive"):
        BDeu(0)


def test_missing_values_are_refused():
    table = encode({"A": [0, 1, 1], "B": ["x", None, "y"]})
    with pytest.raises(mf.ModelError, match="variable 'B' is missing in row 1; impute it, or keep the complete rows"):
        LocalScores(table)


def test_unknown_variables():
    with pytest.raises(mf.ModelError, match="no variable 'Z' in the model"):
        structure_score(nx.DiGraph([("Z", "A")]), {"A": [0, 1]})
