"""Cost networks: moves keep every assignment's cost, bounds never exceed the best, scales are exact where they say."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import markovfield as mf
from markovfield.inference.branch_and_bound.consistency_kernel import BOUND, CUT, LIMIT
from markovfield.inference.branch_and_bound.costs import CostNetwork, Costs, cost_scale
from markovfield.inference.branch_and_bound.root_kernel import dominate, pass_messages
from markovfield.inference.branch_and_bound.search_kernel import BEST, Search
from markovfield.inference.branch_and_bound.search_kernel import propagate_root as propagate
from markovfield.inference.core.evidence import Evidence
from markovfield.inference.problem.problem import prepare
from tests.strategies import Spec, specs


def propagate_root(layout, board) -> bool:
    """Consistency at the root, by the search's own kernel."""
    n, values = len(layout.value_offsets) - 1, int(layout.value_offsets[-1])
    owner = np.repeat(np.arange(n), np.diff(layout.value_offsets))
    owner.flags.writeable = False
    levels = [np.zeros(n + 1, np.int64) for _ in range(4)]
    return propagate(layout, board, Search(np.zeros(values + 1, np.int64), *levels, owner, np.full(n, -1)))


def costs_of(spec: Spec) -> Costs | None:
    graph = spec.build().compile()
    try:
        return Costs.of(prepare(graph, Evidence.parse(graph.structure, None)))
    except mf.ImpossibleEvidenceError:
        return None


def networks(costs: Costs) -> list[CostNetwork]:
    found = []
    for network in costs.networks():
        if isinstance(network, CostNetwork):
            network.board.registers[BEST] = network.board.registers[CUT] = network.total + 1
            found.append(network)
    return found


def cost(network: CostNetwork, states: np.ndarray) -> int | None:
    """The cost of an assignment as the board has it now, from the board's arrays alone; None where it is forbidden."""
    net, board = network.layout, network.board
    state = board.state
    for v, a in enumerate(states):
        if board.place[net.value_offsets[v] + a] >= state[net.at_size + v]:
            return None
    total = int(state[BOUND])
    free = set(board.free[: state[net.at_free]].tolist())
    for v in free:
        total += int(state[net.at_unary + net.value_offsets[v] + states[v]])
    for e in range(len(net.edge_base)):
        i, j = net.half_node[2 * e], net.half_node[2 * e + 1]
        if i not in free or j not in free:
            continue
        x, y = states[i], states[j]
        one = net.costs[net.edge_base[e] + net.half_stride[2 * e] * x + net.half_stride[2 * e + 1] * y]
        if one >= LIMIT:
            return None
        total += int(one - state[net.message_at[2 * e] + x] - state[net.message_at[2 * e + 1] + y])
    for f in range(len(net.function_cells) - 1):
        first, last = net.function_cells[f], net.function_cells[f + 1]
        scope = net.scopes[net.scope_offsets[f] : net.scope_offsets[f + 1]]
        table = net.cell_states[net.axis_at[f] : net.axis_at[f + 1]].reshape(len(scope), last - first)
        live = np.zeros(last - first, bool)
        live[board.cells[first : first + state[net.at_count + f]]] = True
        at = np.flatnonzero((table == states[scope][:, None]).all(axis=0) & live)
        if not len(at):
            return None
        total += int(state[net.at_cell + first + at[0]])
    return total


def drawn_states(network: CostNetwork, seed: int) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    cards = np.diff(network.layout.value_offsets)
    return [rng.integers(0, cards) for _ in range(30)]


@given(spec=specs("graph"), seed=st.integers(0, 100))
def test_moves_keep_every_cost_and_bounds_bracket(spec: Spec, seed: int):
    costs = costs_of(spec)
    if costs is None:
        return
    try:
        found = networks(costs)
    except mf.ImpossibleEvidenceError:
        assert spec.oracle().impossible
        return
    oracle = spec.oracle()
    for network in found:
        assignments = drawn_states(network, seed)
        before = [cost(network, states) for states in assignments]
        bounds = [int(network.board.state[BOUND])]
        fine = True
        for step in range(4):
            if step % 2:
                for forward in (np.bool_(True), np.bool_(False)):
                    fine = fine and pass_messages(network.layout, network.board, forward, 0, 10**9) >= 0
                network.board.arc[:] = network.board.function[:] = True
            fine = fine and propagate_root(network.layout, network.board)
            if not fine:
                assert oracle.impossible
                break
            bounds.append(int(network.board.state[BOUND]))
            for states, cost_before in zip(assignments, before, strict=True):
                now = cost(network, states)
                # A state may be found to be impossible; what is left costs what it did.
                assert now == cost_before or now is None
                if now is None and cost_before is not None:
                    assert cost_before > network.total or oracle.impossible or not _possible(costs, network, states)
        assert bounds == sorted(bounds)
        assert all(c is None or bounds[-1] <= c for c in before)


def _possible(costs: Costs, network: CostNetwork, states: np.ndarray) -> bool:
    """Whether an assignment with one of these states at each removed value of the component exists: never, if gone."""
    board, net = network.board, network.layout
    removed = [
        (v, a) for v, a in enumerate(states) if board.place[net.value_offsets[v] + a] >= board.state[net.at_size + v]
    ]
    cells_gone = not removed
    return cells_gone and cost(network, states) is not None


@given(spec=specs("graph"))
def test_the_root_bound_is_below_the_best_cost(spec: Spec):
    oracle = spec.oracle()
    costs = costs_of(spec)
    if costs is None or oracle.impossible:
        return
    bound = 0
    for network in costs.networks():
        if isinstance(network, CostNetwork):
            network.board.registers[BEST] = network.board.registers[CUT] = network.total + 1
            assert propagate_root(network.layout, network.board)
            for k in range(6):
                assert pass_messages(network.layout, network.board, np.bool_(k % 2 == 0), 0, 10**9) >= 0
            bound += int(network.board.state[BOUND])
        else:
            single, best = network
            bound += int(costs.unary[costs.problem.structure.value_offsets[single] + best].sum())
    s = costs.problem.structure
    pool = costs.problem.potentials.log_tables
    constant = float(pool[s.table_offsets[np.diff(s.scope_offsets) == 0]].sum())
    assert constant + costs.scale.score(bound) >= oracle.best_score - 1e-9 - costs.rounding


@given(spec=specs("graph", clauses=False))
def test_dominance_keeps_a_best_assignment(spec: Spec):
    costs = costs_of(spec)
    oracle = spec.oracle()
    if costs is None or oracle.impossible:
        return
    graph = costs.problem.graph
    for network in networks(costs):
        start, removed = dominate(network.layout, network.board, 0, 10**9)
        assert start == network.n_variables
        net, board = network.layout, network.board
        allowed = np.ones(int(graph.structure.cardinalities.sum()), bool)
        reduced = np.zeros(int(costs.problem.structure.value_offsets[-1]))
        for i, v in enumerate(network.variables.tolist()):
            card = int(net.value_offsets[i + 1] - net.value_offsets[i])
            for a in range(card):
                if board.place[net.value_offsets[i] + a] >= board.state[net.at_size + i]:
                    reduced[costs.problem.structure.value_offsets[v] + a] = 1.0
        allowed &= costs.problem.expand(reduced, 0.0) == 0.0
        states, offsets = oracle.states, graph.structure.value_offsets
        keep = np.ones(len(states), bool)
        for v in range(spec.n_variables):
            keep &= allowed[offsets[v] + states[:, v]]
        assert oracle.scores[keep].max() == pytest.approx(oracle.best_score, abs=1e-9)
        assert removed >= 0


def test_two_equal_states_one_is_removed():
    net = mf.MarkovNetwork({"a": 3, "b": 2})
    net.add_factor(["a", "b"], log_table=[[-1, -2], [-1, -2], [0, -5]])
    graph = net.compile()
    (network,) = networks(Costs.of(prepare(graph, Evidence.parse(graph.structure, None))))
    _, removed = dominate(network.layout, network.board, 0, 10**9)
    # Of a's equal states one stands in for the other; b = 0 is never worse than b = 1.
    assert removed >= 2
    assert network.board.state[network.layout.at_size + 1] == 1


def test_scales():
    assert cost_scale(np.array([-1.0, -3.0]), 5).unit == 1.0
    assert cost_scale(np.array([-1.125, -np.inf]), 5).unit == 0.001
    assert cost_scale(np.zeros(3), 5).exact
    scale = cost_scale(np.log(np.array([0.1, 0.7])), 5)
    assert not scale.exact and scale.unit < 1e-14
    logs = np.log(np.array([0.1, 0.7, 0.2]))
    whole = scale.costs(logs)
    assert ((-whole * scale.unit >= logs) & (-whole * scale.unit < logs + scale.unit)).all()
    # Numbers too large to have a common decimal unit are rounded, and sums of all still fit.
    big = cost_scale(np.array([-1e300, -0.5]), 1000)
    assert not big.exact and 1000 * 1e300 / big.unit < LIMIT
    exact = cost_scale(np.array([-(2.0**40), -1.0]), 1000)
    assert exact.exact and exact.parts < 1024


def test_a_factor_with_too_many_cells_is_refused():
    net = mf.MarkovNetwork(dict.fromkeys("abc", 8))
    net.add_factor(["a", "b", "c"], log_table=np.zeros((8, 8, 8)))
    graph = net.compile()
    with pytest.raises(mf.ModelError, match=r"a factor of 3 variables has 2\^9.0 cells, and the search takes at most"):
        Costs.of(prepare(graph, Evidence.parse(graph.structure, None)), max_factor_cells=100)
