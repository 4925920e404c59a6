"""The order kernels against elimination with sets, and against the best order of small graphs."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from markovfield.graphs.elimination.orders_kernel import eliminate, search_order, search_order_balanced
from tests.graphs import reference
from tests.patience import patience

EFFORTS = [0.0, 2e5]
RULES = [0, 1, 2, 3]


@st.composite
def models(draw, max_variables=14, max_arity=4, max_stage=2):
    """Cardinalities, scopes and stages."""
    n = draw(st.integers(1, max_variables))
    cards = draw(st.lists(st.sampled_from([1, 2, 2, 3, 5]), min_size=n, max_size=n))
    scope = st.lists(st.integers(0, n - 1), min_size=1, max_size=min(n, max_arity), unique=True)
    scopes = draw(st.lists(scope, max_size=2 * n))
    stages = draw(st.lists(st.integers(0, max_stage), min_size=n, max_size=n))
    return cards, scopes, stages


def search(cards, scopes, stages=None, effort=0.0, seed=0, rules=3):
    stage = np.array([0] * len(cards) if stages is None else stages, np.int8)
    return search_order(*reference.arrays(cards, scopes), stage, effort, seed, rules)


def width(result):
    return int(np.diff(result[1]).max(initial=0))


def assert_valid(cards, scopes, stages, result):
    order, starts, higher, log2_states = result
    assert (order.dtype, starts.dtype, higher.dtype) == (np.int32, np.int64, np.int32)
    order = order.tolist()
    assert sorted(order) == [v for v, card in enumerate(cards) if card > 1]
    assert [stages[v] for v in order] == sorted(stages[v] for v in order)
    expected = reference.eliminate(reference.primal_graph(cards, scopes), order)
    position = {v: i for i, v in enumerate(order)}
    assert starts[0] == 0 and starts[-1] == len(higher) and len(starts) == len(order) + 1
    for i, above in enumerate(expected):
        mine = higher[starts[i] : starts[i + 1]].tolist()
        assert mine == sorted(above, key=position.__getitem__)
    cliques = reference.maximal_cliques(order, expected)
    assert log2_states == pytest.approx(reference.log2_states(cards, cliques), abs=1e-9)


@given(models(), st.sampled_from(EFFORTS), st.sampled_from(RULES), st.integers(0, 5))
@settings(max_examples=300, deadline=None)
def test_an_order_is_a_permutation_with_its_fill_cost_and_stages(model, effort, rules, seed):
    cards, scopes, stages = model
    assert_valid(cards, scopes, stages, search(cards, scopes, stages, effort, seed, rules))


@pytest.mark.parametrize("seed", range(6))
def test_larger_models_of_several_words(seed):
    rng = np.random.default_rng(seed)
    n = 150
    cards = rng.integers(1, 5, n).tolist()
    scopes = [rng.choice(n, rng.integers(1, 5), replace=False).tolist() for _ in range(n)]
    stages = rng.integers(0, 3, n).tolist() if seed % 2 else [0] * n
    for effort in (0.0, 3e6):
        assert_valid(cards, scopes, stages, search(cards, scopes, stages, effort, seed))


@given(models(), st.randoms(use_true_random=False))
@settings(max_examples=100, deadline=None)
def test_eliminating_in_a_given_order(model, random):
    cards, scopes, _ = model
    order = [v for v, card in enumerate(cards) if card > 1]
    random.shuffle(order)
    starts, higher, log2_states = eliminate(*reference.arrays(cards, scopes), np.array(order, np.int32))
    assert_valid(cards, scopes, [0] * len(cards), (np.array(order, np.int32), starts, higher, log2_states))


@given(models(max_variables=8, max_stage=0), st.sampled_from(RULES))
@settings(max_examples=150, deadline=None)
def test_never_better_than_the_best_and_the_best_with_effort(model, rules):
    """With effort the width is the best one, reductions or not: the safe rules rule nothing out."""
    cards, scopes, _ = model
    best = reference.best_heaviest(cards, reference.primal_graph(cards, scopes))
    for effort in (0.0, 1e6):
        order, starts, higher, log2_states = search(cards, scopes, effort=effort, rules=rules)
        card = np.array(cards)
        cliques = [card[v] * card[higher[starts[i] : starts[i + 1]]].prod() for i, v in enumerate(order)]
        heaviest = max(cliques, default=1)
        assert heaviest >= best
        assert 2**log2_states >= best * (1 - 1e-9) or not cliques
        if effort:
            # The sum is minimised, not the maximum: it can pay to allow a heavier clique, but never twice as heavy.
            assert heaviest <= 2 * best


@given(models(max_variables=9, max_stage=0))
@settings(max_examples=150, deadline=None)
def test_reductions_alone_keep_the_least_width(model):
    """After the reductions, the best order of what is left is still a best order of the whole."""
    from markovfield.graphs.elimination.orders_kernel import _dense, _heaviest_factor
    from markovfield.graphs.elimination.reduce_kernel import reduce_graph
    from markovfield.graphs.elimination.sparse_kernel import primal_graph

    cards, scopes, _ = model
    graph = reference.primal_graph(cards, scopes)
    members = np.array(sorted(graph), np.int32)
    if not len(members):
        return
    given_arrays = reference.arrays(cards, scopes)
    offsets, neighbours = primal_graph(*given_arrays)
    stage = np.zeros(len(cards), np.int8)
    rows, state = _dense(given_arrays[0], stage, offsets, neighbours, members, np.full(len(cards), -1, np.int32))
    taken = np.empty(len(members), np.int64)
    count = reduce_graph(rows, state, 3, _heaviest_factor(*given_arrays), taken)
    best = reference.best_heaviest(cards, graph)
    heaviest = 1
    for v in members[taken[:count]].tolist():
        above = graph.pop(v)
        heaviest = max(heaviest, int(np.prod([cards[u] for u in (v, *above)])))
        for u in above:
            graph[u] |= above - {u}
            graph[u].discard(v)
    assert max(heaviest, reference.best_heaviest(cards, graph)) == best


def test_trees_have_width_one_and_cycles_two():
    for seed in range(5):
        edges = list(nx.random_labeled_tree(60, seed=seed).edges)
        assert width(search([2] * 60, edges)) == 1
    for n in (3, 4, 17, 200):
        assert width(search([2] * n, [(i, (i + 1) % n) for i in range(n)])) == 2
    assert width(search([2] * 5, [])) == 0


@pytest.mark.parametrize("k", [3, 5, 8, 12])
def test_grids(k):
    assert k <= width(search([2] * k * k, reference.grid(k, k))) <= 1.4 * k
    assert width(search([2] * k * k, reference.grid(k, k), effort=2e7)) <= k + 2


@pytest.mark.parametrize("seed", range(5))
def test_chordal_graphs_get_no_fill(seed):
    rng = np.random.default_rng(seed)
    n = 80
    scopes = [[0]]
    for v in range(1, n):
        parent = scopes[rng.integers(len(scopes))]
        scopes.append([v, *rng.choice(parent, rng.integers(1, min(len(parent), 6) + 1), replace=False).tolist()])
    names = rng.permutation(n)
    scopes = [[int(names[v]) for v in scope] for scope in scopes]
    cards = rng.integers(2, 5, n).tolist()
    n_edges = sum(len(s) for s in reference.primal_graph(cards, scopes).values()) // 2
    assert len(search(cards, scopes, rules=1)[2]) == n_edges
    assert len(search(cards, scopes, rules=3)[2]) == n_edges


def test_the_same_call_gives_the_same_order():
    rng = np.random.default_rng(3)
    scopes = [rng.choice(60, 3, replace=False).tolist() for _ in range(70)]
    first = search([2, 3] * 30, scopes, effort=2e6, seed=5)
    again = search([2, 3] * 30, scopes, effort=2e6, seed=5)
    assert all(np.array_equal(a, b) for a, b in zip(first, again, strict=True))


def test_effort_never_hurts_and_pays_on_a_hard_graph():
    scopes = list(nx.random_regular_graph(4, 120, seed=1).edges)
    costs = [search([2] * 120, scopes, effort=effort)[3] for effort in (0.0, 1e6, 1e8)]
    assert costs[1] <= costs[0] and costs[2] <= costs[0] - 1


def test_a_balanced_search_stops_when_the_order_is_cheap():
    scopes = reference.grid(10, 10)
    stage = np.zeros(100, np.int8)
    given_arrays = reference.arrays([2] * 100, scopes)
    cheap = search_order_balanced(*given_arrays, stage, 1e9, 1.0, np.inf, 0, 3)
    assert_valid([2] * 100, scopes, [0] * 100, cheap)
    with patience():
        search_order_balanced(*given_arrays, stage, 1e12, 1.0, np.inf, 0, 3)


def test_nothing_is_searched_where_the_first_order_is_the_best():
    """Chordal graphs, whatever the effort: a complete one, and cliques along a path."""

    def check() -> None:
        raise AssertionError("there was a search")

    for scopes in ([list(range(40))], [list(range(i, i + 30)) for i in range(30)]):
        given_arrays = reference.arrays([2] * 60, scopes)
        found = search_order_balanced(*given_arrays, np.zeros(60, np.int8), 1e15, 1.0, np.inf, 0, 3, check=check)
        assert width(found) == max(map(len, scopes)) - 1
    hard = reference.arrays([2] * 100, reference.grid(10, 10))
    with pytest.raises(AssertionError, match="there was a search"):
        search_order_balanced(*hard, np.zeros(100, np.int8), 1e15, 1.0, np.inf, 0, 3, check=check)


def test_read_only_arguments_are_as_good_and_arguments_are_not_written():
    given_arrays = (*reference.arrays([2] * 16, reference.grid(4, 4)), np.zeros(16, np.int8))
    copies = [a.copy() for a in given_arrays]
    first = search_order(*given_arrays, 1e5, 0, 3)
    assert all(np.array_equal(a, b) for a, b in zip(copies, given_arrays, strict=True))
    for a in copies:
        a.flags.writeable = False
    assert np.array_equal(search_order(*copies, 1e5, 0, 3)[0], first[0])


def test_a_million_variable_chain_is_linear():
    n = 10**6
    offsets = np.arange(0, 2 * n - 1, 2)
    scopes = np.stack([np.arange(n - 1), np.arange(1, n)], 1).astype(np.int32).ravel()
    arguments = np.full(n, 2, np.int32), offsets, scopes, np.zeros(n, np.int8)
    search_order(np.full(3, 2, np.int32), offsets[:3], scopes[:4], np.zeros(3, np.int8), 0.0, 0, 3)
    with patience():
        result = search_order(*arguments, 0.0, 0, 3)
    assert width(result) == 1 and result[3] == pytest.approx(np.log2(4 * (n - 1)))


def test_components_too_large_for_a_bit_matrix():
    """Long thin graphs are swept from end to end; the local search works on them too."""
    rows, columns = 1500, 7
    cards = [2] * (rows * columns + 9)
    scopes = [
        *reference.grid(rows, columns),
        *[(rows * columns + i, rows * columns + j) for i in range(9) for j in range(i)],
    ]
    result = search(cards, scopes)
    assert_valid(cards[: len(cards)], scopes, [0] * len(cards), result)
    assert width(result) <= 8
    assert search(cards, scopes, effort=3e7)[3] < result[3]
    stages = [v % 3 == 0 for v in range(len(cards))]
    few = [*scopes[:3], *scopes[-36:]]
    assert_valid(cards, few, stages, search(cards, few, stages))


def test_a_large_component_is_given_up_at_the_limit():
    graph = nx.random_regular_graph(3, 10_000, seed=0)
    arguments = (*reference.arrays([2] * 10_000, list(graph.edges)), np.zeros(10_000, np.int8))
    order, starts, higher, log2_states = search_order_balanced(*arguments, 0.0, np.inf, 60.0, 0, 3)
    assert len(order) == len(higher) == 0 and starts.tolist() == [0] and log2_states == np.inf


def test_minimum_weight_of_large_components_keeps_stages_and_fill():
    from markovfield.graphs.elimination.large_kernel import order_large
    from markovfield.graphs.elimination.sparse_kernel import primal_graph, symbolic_elimination

    rng = np.random.default_rng(0)
    for trial in range(20):
        graph = nx.gnm_random_graph(40, 50, seed=trial)
        cards = rng.integers(2, 4, 40).astype(np.int32)
        stage = rng.integers(0, 1 + trial % 2 * 2, 40).astype(np.int8)
        cards.flags.writeable = stage.flags.writeable = False  # as models have them
        scopes = [list(edge) for edge in graph.edges]
        offsets, neighbours = primal_graph(*reference.arrays(cards.tolist(), scopes))
        order = np.arange(40, dtype=np.int32)
        heaviest = order_large(cards, stage, offsets, neighbours, order, 40, np.inf)
        result = order, *symbolic_elimination(cards, offsets, neighbours, order)
        assert_valid(cards.tolist(), scopes, stage.tolist(), result)
        assert heaviest >= result[3] - np.log2(40) - 1e-3
