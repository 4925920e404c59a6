"""Hill climbing: optima of small problems, constraints, stopping, and the same answer every time."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest

import markovfield as mf
from markovfield.learning.core.data import DataTable
from markovfield.learning.structure import learn_structure
from markovfield.learning.structures.hill_climbing import HillClimbing
from markovfield.learning.structures.scores import structure_score
from tests.learning.structures.test_scores import all_dags


def drawn(seed: int, n: int = 4, rows: int = 400, cards=(2, 3)) -> DataTable:
    """Rows drawn from a random network."""
    rng = np.random.default_rng(seed)
    card = rng.integers(cards[0], cards[1] + 1, size=n)
    codes = np.zeros((n, rows), np.int16)
    for v in range(n):
        parents = [p for p in range(v) if rng.random() < 0.5]
        shape = [card[p] for p in parents]
        cpt = rng.dirichlet(np.full(card[v], 0.5), size=shape)
        rows_of = cpt[tuple(codes[p] for p in parents)] if parents else np.tile(cpt, (rows, 1))
        codes[v] = (rng.random(rows)[:, None] > np.cumsum(rows_of, axis=1)[:, :-1]).sum(axis=1)
    order = rng.permutation(n)
    return DataTable(tuple(f"v{i}" for i in range(n)), tuple(tuple(range(card[v])) for v in order), codes[order])


@pytest.mark.parametrize("score", ["bic", "bdeu"])
def test_finds_the_best_of_all_structures_of_four_variables(score):
    found = 0
    for seed in range(20):
        table = drawn(seed)
        best = max(structure_score(dag, table, score) for dag in all_dags(table.variables))
        learned = learn_structure(table, HillClimbing(score=score))
        assert learned.score <= best + 1e-9 * abs(best)
        found += learned.score >= best - 1e-9 * abs(best)
    assert found == 20


def test_the_score_is_that_of_the_structure_and_of_the_history():
    table = drawn(7, n=8, rows=1000)
    for method in (HillClimbing(), HillClimbing(score="k2", restarts=3), HillClimbing(tabu=0, reinsertions=0)):
        learned = learn_structure(table, method, rng=1)
        assert nx.is_directed_acyclic_graph(learned.dag)
        assert learned.score == pytest.approx(structure_score(learned.dag, table, method.score), rel=1e-12)
        empty = structure_score(nx.DiGraph(), table, method.score)
        assert empty + sum(m.gain for m in learned.history) == pytest.approx(learned.score, rel=1e-12)
        replayed = nx.DiGraph()
        replayed.add_nodes_from(table.variables)
        for move in learned.history:
            if move.kind == "add":
                replayed.add_edge(move.parent, move.child)
            else:
                replayed.remove_edge(move.parent, move.child)
            if move.kind == "reverse":
                replayed.add_edge(move.child, move.parent)
            assert nx.is_directed_acyclic_graph(replayed)
        assert set(replayed.edges) == set(learned.dag.edges)


def test_plain_climbing_only_climbs_and_more_search_never_does_worse():
    for seed in range(6):
        table = drawn(seed, n=9, rows=800)
        plain = learn_structure(table, HillClimbing(tabu=0, reinsertions=0))
        assert all(m.gain > 0 for m in plain.history)
        tabu = learn_structure(table, HillClimbing(reinsertions=0))
        full = learn_structure(table, HillClimbing())
        more = learn_structure(table, HillClimbing(restarts=4), rng=seed)
        assert plain.score <= tabu.score + 1e-6 and tabu.score <= full.score + 1e-6 and full.score <= more.score + 1e-6


def test_a_local_optimum_has_no_better_neighbour():
    table = drawn(11, n=5, rows=300)
    learned = learn_structure(table, HillClimbing(score="aic"))
    dag = learned.dag
    for a in dag:
        for b in dag:
            if a == b:
                continue
            changed = nx.DiGraph(dag)
            if changed.has_edge(a, b):
                changed.remove_edge(a, b)
                assert structure_score(changed, table, "aic") <= learned.score + 1e-6
                changed.add_edge(b, a)
            else:
                changed.add_edge(a, b)
            if nx.is_directed_acyclic_graph(changed):
                assert structure_score(changed, table, "aic") <= learned.score + 1e-6


@pytest.mark.parametrize("seed", range(5))
def test_constraints_are_kept(seed):
    table = drawn(seed, n=7, rows=600)
    free = learn_structure(table)
    busy = max(table.variables, key=free.dag.in_degree)
    forbidden = list(free.dag.in_edges(busy))
    required = [("v5", "v1"), ("v1", "v0")]
    forbidden = [arc for arc in forbidden if arc not in required]
    method = HillClimbing(max_parents=2, required=required, forbidden=forbidden, restarts=2)
    learned = learn_structure(table, method, rng=0)
    assert nx.is_directed_acyclic_graph(learned.dag)
    assert max(d for _, d in learned.dag.in_degree) <= 2
    assert set(required) <= set(learned.dag.edges) and not set(forbidden) & set(learned.dag.edges)


def test_a_start_is_started_from():
    table = drawn(3, n=6)
    start = nx.DiGraph([("v0", "v1"), ("v2", "v1")])
    stay = learn_structure(table, HillClimbing(start=start, max_iterations=0))
    assert set(stay.arcs) == set(start.edges) and not stay.converged and stay.stopped == "max_iterations"
    assert stay.score == pytest.approx(structure_score(start, table))
    net = mf.BayesianNetwork(dict.fromkeys(table.variables, 2))
    net.set_parents("v1", ["v0", "v2"])
    again = learn_structure(table, HillClimbing(start=net, max_iterations=0))
    assert set(again.arcs) == set(start.edges)
    assert learn_structure(table, HillClimbing(start=start)).score >= stay.score


def test_the_same_answer_every_time(monkeypatch):
    from markovfield.learning.structures import local_scores

    monkeypatch.setattr(local_scores, "THREADED", 0)
    table = drawn(5, n=10, rows=3000)
    runs = [learn_structure(table, HillClimbing(restarts=2), rng=3, n_jobs=j) for j in (1, 2, 3, 1)]
    for other in runs[1:]:
        assert other.history == runs[0].history and other.score == runs[0].score


def test_weights_count_as_rows():
    table = drawn(6, n=5, rows=200)
    rng = np.random.default_rng(0)
    times = rng.integers(0, 4, size=200)
    repeated = DataTable(table.variables, table.states, np.repeat(table.codes, times, axis=1))
    weighted = DataTable(table.variables, table.states, table.codes, times.astype(float))
    one, other = learn_structure(repeated), learn_structure(weighted)
    assert one.score == pytest.approx(other.score, rel=1e-12)
    assert one.cpdag == other.cpdag


def test_stopping_keeps_the_best_so_far():
    table = drawn(8, n=9, rows=2000)
    whole = learn_structure(table)
    assert whole.converged and whole.stopped is None
    some = learn_structure(table, callback=lambda progress: progress.step > 12)
    assert not some.converged and some.stopped == "the callback"
    assert some.dag.number_of_edges() > 0 and some.score < whole.score
    late = learn_structure(table, time_limit=1e-9)
    assert not late.converged and late.stopped == "the time limit" and late.dag.number_of_edges() == 0
    assert "stopped by the time limit" in repr(late)

    def interrupt(progress: mf.answers.Progress) -> bool:
        if progress.step > 12:
            raise KeyboardInterrupt
        return False

    assert learn_structure(table, callback=interrupt).stopped == "the keyboard"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"score": "bci"}, "no score 'bci'"),
        ({"tabu": -1}, "tabu of HillClimbing must be at least 0, got -1"),
        ({"restarts": 1.5}, "restarts of HillClimbing must be an integer"),
        ({"max_parents": -1}, "max_parents of HillClimbing must be at least 0"),
        ({"perturbation": 0}, "perturbation of HillClimbing must be at least 1"),
        ({"tolerance": -1.0}, "tolerance of HillClimbing must be at least 0"),
        ({"required": [("v0", "v9")]}, "no variable 'v9'"),
        ({"required": [("v0", "v0")]}, "required has an arc from 'v0' to itself"),
        ({"required": ["v0"]}, r"required must be pairs \(parent, child\), got 'v0'"),
        ({"required": [("v0", "v1")], "forbidden": [("v0", "v1")]}, "from 'v0' to 'v1' is forbidden, but required"),
        ({"required": [("v0", "v1")], "start": [("v1", "v0")]}, "form a directed cycle: 'v0' -> 'v1' -> 'v0'"),
        ({"required": [("v0", "v1"), ("v2", "v1")], "max_parents": 1}, "max_parents is 1, .* give 'v1' 2 parents"),
    ],
)
def test_settings_are_checked(settings, message):
    with pytest.raises(mf.ModelError, match=message):
        learn_structure(drawn(0), HillClimbing(**settings))
