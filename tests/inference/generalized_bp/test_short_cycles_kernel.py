"""Chordless cycles against networkx."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest

from markovfield.inference.generalized_bp.short_cycles_kernel import take_cycles


def rows(graph: nx.Graph) -> tuple[np.ndarray, np.ndarray]:
    lists = [sorted(graph[v]) for v in range(len(graph))]
    neighbours = np.array([u for own in lists for u in own], np.int64)
    return np.concatenate([[0], np.cumsum([len(x) for x in lists])]), neighbours


def found(graph: nx.Graph, length: int, *, cards=None, most: float = np.inf, work: int = 10**6, covered=None) -> list:
    offsets, neighbours = rows(graph)
    cards = np.full(len(graph), 2) if cards is None else cards
    covered = np.zeros(len(neighbours), np.bool_) if covered is None else covered
    flat = take_cycles(offsets, neighbours, cards, length, most, covered, np.array([work]))
    return flat.reshape(-1, length).tolist()


def edges_of(cycle: list[int]) -> set[frozenset[int]]:
    return {frozenset(pair) for pair in zip(cycle, [*cycle[1:], cycle[0]], strict=True)}


@pytest.mark.parametrize("length", [3, 4, 5, 6])
@pytest.mark.parametrize("seed", range(8))
def test_cycles_without_chords_that_bring_an_edge(seed: int, length: int):
    graph = nx.gnp_random_graph(9, 0.4, seed=seed)
    possible = {frozenset(map(frozenset, edges_of(c))) for c in nx.chordless_cycles(graph, length) if len(c) == length}
    cycles = found(graph, length)
    seen: set[frozenset[int]] = set()
    for cycle in cycles:
        edges = edges_of(cycle)
        assert frozenset(edges) in possible
        assert edges - seen, "a cycle with nothing new"
        assert cycle[0] == min(cycle) and cycle[1] < cycle[-1]
        seen |= edges
    assert cycles == sorted(cycles)
    assert seen == {edge for cycle in possible for edge in cycle}, "an edge of some cycle is in none that was taken"


def test_cycles_of_too_many_states_are_left():
    graph = nx.cycle_graph(4)
    assert found(graph, 4, cards=np.array([2, 3, 2, 3]), most=36.0) == [[0, 1, 2, 3]]
    assert found(graph, 4, cards=np.array([2, 3, 2, 3]), most=35.0) == []


def test_what_is_covered_brings_nothing_and_work_ends_the_search():
    graph = nx.complete_graph(4)
    covered = np.ones(12, np.bool_)
    assert found(graph, 3, covered=covered) == []
    assert found(graph, 3, work=1) == []
