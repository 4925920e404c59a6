"""Generalised belief propagation: exact where proven, Bethe where regions are factors, far closer on lattices."""

from __future__ import annotations

import warnings
from itertools import combinations, product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning

import markovfield as mf
from markovfield.inference.core.evidence import Evidence
from markovfield.inference.generalized_bp.generalized_bp import GeneralizedBP
from markovfield.inference.generalized_bp.regions import cycle_regions, region_graph, scope_regions
from tests.strategies import Spec, specs, specs_with_evidence

SPIN = np.array([-1.0, 1.0])


def grid_edges(rows: int, columns: int, wrap: bool = False) -> list[tuple[int, int]]:
    edges = []
    for i, j in product(range(rows), range(columns)):
        if wrap or j + 1 < columns:
            edges.append((i * columns + j, i * columns + (j + 1) % columns))
        if wrap or i + 1 < rows:
            edges.append((i * columns + j, (i + 1) % rows * columns + j))
    return edges


def ising(seed: int, n: int, coupling: float, field: float = 0.25) -> mf.MarkovNetwork:
    """An n x n grid with couplings of both signs."""
    rng = np.random.default_rng(seed)
    net = mf.MarkovNetwork(dict.fromkeys(range(n * n), 2))
    for v in range(n * n):
        net.add_factor([v], log_table=rng.uniform(-field, field) * SPIN)
    for edge in grid_edges(n, n):
        net.add_factor(edge, log_table=rng.uniform(-coupling, coupling) * np.outer(SPIN, SPIN))
    return net


def pairwise_bp(net: mf.MarkovNetwork, sweeps: int = 4000, damping: float = 0.5) -> tuple[np.ndarray, float, float]:
    """Loopy belief propagation on pairs and single variables, in NumPy alone: marginals, Bethe log Z, last change."""
    graph = net.compile()
    n = graph.n_variables
    unary = np.zeros((n, 2))
    pairs: dict[tuple[int, int], np.ndarray] = {}
    for f in range(graph.n_factors):
        scope = graph.structure.scope(f).tolist()
        table = graph.log_tables[graph.cells(f)]
        if len(scope) == 1:
            unary[scope[0]] += table
        else:
            pairs[scope[0], scope[1]] = pairs.get((scope[0], scope[1]), 0.0) + table
    tables = {
        **{(i, j): np.exp(t) for (i, j), t in pairs.items()},
        **{(j, i): np.exp(t.T) for (i, j), t in pairs.items()},
    }
    near: dict[int, list[int]] = {v: [j for i, j in tables if i == v] for v in range(n)}
    message = {arc: np.full(2, 0.5) for arc in tables}
    local = np.exp(unary)
    change = np.inf
    for _ in range(sweeps):
        change = 0.0
        for (i, j), table in tables.items():
            into = local[i] * np.prod([message[k, i] for k in near[i] if k != j], axis=0)
            new = into @ table
            new = message[i, j] ** damping * (new / new.sum()) ** (1 - damping)
            new /= new.sum()
            change = max(change, float(np.abs(new - message[i, j]).max()))
            message[i, j] = new
        if change < 1e-10:
            break
    single = np.array([local[v] * np.prod([message[k, v] for k in near[v]], axis=0) for v in range(n)])
    single /= single.sum(axis=1, keepdims=True)
    value = float((single * (unary - (1 - np.array([[len(near[v])] for v in range(n)])) * np.log(single))).sum())
    for (i, j), log_table in pairs.items():
        left = local[i] * np.prod([message[k, i] for k in near[i] if k != j], axis=0)
        right = local[j] * np.prod([message[k, j] for k in near[j] if k != i], axis=0)
        belief = left[:, None] * np.exp(log_table) * right[None, :]
        belief /= belief.sum()
        value += float((belief * (log_table - np.log(belief))).sum())
    return single, value, change


def run(spec: Spec, evidence: dict[int, Any], method: GeneralizedBP, **more: Any) -> mf.Marginals:
    return mf.marginals(spec.build(), evidence=spec.named(evidence), method=method, **more)


class TestRegionGraphs:
    @settings(max_examples=60)
    @given(st.lists(st.sets(st.integers(0, 8), min_size=1, max_size=5), min_size=1, max_size=9))
    def test_intersections_and_counting_numbers(self, sets: list[set[int]]):
        """Closed under intersection, and everything counts once."""
        graph = region_graph([tuple(s) for s in sets])
        outer = [frozenset(r) for r in graph.outer]
        assert {s for s in map(frozenset, sets) if not any(s < t for t in sets)} == set(outer)
        closed = set(outer)
        while True:
            more = {a & b for a, b in combinations(closed, 2)} - closed - {frozenset()}
            if not more:
                break
            closed |= more
        assert {frozenset(r) for r in graph.regions} == closed
        count = dict(zip(map(frozenset, graph.inner), graph.counting.tolist(), strict=True))
        for region in closed:
            assert sum(count.get(other, 1) for other in closed if region <= other) == 1
        for b, region in enumerate(graph.inner):
            around = graph.holders[graph.holder_offsets[b] : graph.holder_offsets[b + 1]]
            assert set(around.tolist()) == {r for r, o in enumerate(outer) if set(region) <= o}

    @settings(max_examples=100)
    @given(st.lists(st.sets(st.integers(0, 7), min_size=1, max_size=4), min_size=1, max_size=7))
    def test_junction_trees_are_known(self, sets: list[set[int]]):
        """Against the largest spanning tree: it is a junction tree if any is (its separators add up to the excess)."""
        graph = region_graph([tuple(s) for s in sets])
        outer = [frozenset(r) for r in graph.outer]
        weight = 0
        tree = {r: r for r in range(len(outer))}

        def root(r: int) -> int:
            while tree[r] != r:
                r = tree[r]
            return r

        for a, b in sorted(combinations(range(len(outer)), 2), key=lambda ab: -len(outer[ab[0]] & outer[ab[1]])):
            if root(a) != root(b):
                tree[root(a)] = root(b)
                weight += len(outer[a] & outer[b])
        excess = sum(map(len, outer)) - len(frozenset().union(*outer))
        assert graph.is_junction_tree == (weight == excess)

    def test_squares_of_a_lattice(self):
        structure = ising(0, 5, 1.0).compile().structure
        cycles = cycle_regions(structure, 6, 4096)
        assert cycles == [(5 * i + j, 5 * i + j + 1, 5 * i + j + 5, 5 * i + j + 6) for i in range(4) for j in range(4)]
        graph = region_graph([*cycles, *scope_regions(structure)])
        # 16 squares, 24 edges inside and 9 vertices inside: 16 - 24 + 9 = 1.
        assert (len(graph.outer), len(graph.inner)) == (16, 33)
        assert sorted(set(graph.counting.tolist())) == [-1, 1] and graph.counting.sum() == 1 - 16

    def test_a_torus_leaves_one_square_out(self):
        net = mf.MarkovNetwork(dict.fromkeys(range(30), 2))
        net.add_factors(grid_edges(6, 5, wrap=True), [[2.0, 1.0], [1.0, 2.0]])
        assert len(cycle_regions(net.compile().structure, 4, 4096)) == 29

    def test_a_complete_graph_gets_the_triangles_of_one_vertex(self):
        net = mf.MarkovNetwork(dict.fromkeys(range(7), 2))
        net.add_factors(list(combinations(range(7), 2)), [[2.0, 1.0], [1.0, 2.0]])
        assert cycle_regions(net.compile().structure, 6, 4096) == [(0, i, j) for i, j in combinations(range(1, 7), 2)]

    def test_limits_on_cycles(self):
        structure = ising(0, 3, 1.0).compile().structure
        assert cycle_regions(structure, 3, 4096) == []
        assert cycle_regions(structure, 4, 15) == []

    def test_the_regions_of_a_query(self):
        net = ising(0, 3, 1.0)
        graph = net.compile()
        method = GeneralizedBP()
        assert len(method.region_graph(graph, Evidence.parse(graph.structure, None)).outer) == 4
        # Without its middle the grid is a ring of eight: one region, or its eight edges.
        without = Evidence.parse(graph.structure, {4: 0})
        assert method.region_graph(graph, without).outer == ((0, 1, 2, 3, 5, 6, 7, 8),)
        assert len(GeneralizedBP(max_cycle=7).region_graph(graph, without).outer) == 8


class TestExact:
    @pytest.mark.parametrize("scale", [1.5, 300.0])
    @settings(max_examples=40)
    @given(data=st.data())
    def test_forests(self, scale: float, data: Any):
        spec, evidence = data.draw(specs_with_evidence("forest", scale=scale))
        self.check(spec, evidence, GeneralizedBP())

    @settings(max_examples=30)
    @given(specs_with_evidence("graph"))
    def test_cliques_of_a_junction_tree(self, case: tuple[Spec, dict[int, Any]]):
        """Elimination cliques as regions: exact for any graph, hard zeros included."""
        spec, evidence = case
        near: dict[int, set[int]] = {v: {v} for v in range(spec.n_variables)}
        for scope, _ in spec.factors:
            for v in scope:
                near[v] |= set(scope)
        cliques = []
        for v in range(spec.n_variables):
            cliques.append(tuple(sorted(near[v])))
            for u in near.pop(v) - {v}:
                near[u] = (near[u] | set(cliques[-1])) - {v}
        named = tuple(tuple(spec.labels[v] for v in c) for c in cliques)
        self.check(spec, evidence, GeneralizedBP(regions=named), clauses=False)

    def check(self, spec: Spec, evidence: dict[int, Any], method: GeneralizedBP, clauses: bool = True) -> None:
        oracle = spec.oracle(evidence)
        if oracle.impossible:
            with pytest.raises(mf.ImpossibleEvidenceError):
                run(spec, evidence, method)
            return
        answer = run(spec, evidence, method)
        if not clauses and (answer.graph.structure.kind != 0).any():
            return  # auxiliary variables are not among the cliques: no claim
        assert answer.guarantee == "exact" and answer.converged
        assert answer.log_partition_bounds == (answer.log_partition, answer.log_partition)
        np.testing.assert_allclose(answer.log_partition, oracle.log_partition, rtol=1e-11, atol=1e-9)
        value = mf.log_partition(spec.build(), evidence=spec.named(evidence), method=method)
        assert value.guarantee == "exact"
        np.testing.assert_allclose(float(value), oracle.log_partition, rtol=1e-11, atol=1e-9)
        for v, label in enumerate(spec.labels):
            expected = oracle.marginal(v)
            np.testing.assert_allclose(answer[label], expected, atol=1e-9)
            assert (answer[label][expected == 0] == 0).all() and (answer[label][expected > 1e-290] > 0).all()
        np.testing.assert_allclose(answer.expected_counts, spec.pool_counts(oracle), atol=1e-9)

    @settings(max_examples=15)
    @given(specs_with_evidence("forest", hard=False), st.integers(0, 2**16))
    def test_joints_on_forests(self, case: tuple[Spec, dict[int, Any]], seed: int):
        """Inside a region, and outside by conditioning."""
        spec, evidence = case
        oracle = spec.oracle(evidence)
        if oracle.impossible:
            return
        wanted = np.random.default_rng(seed).permutation(spec.n_variables)[:3].tolist()
        answer = run(spec, evidence, GeneralizedBP())
        np.testing.assert_allclose(answer.joint([spec.labels[v] for v in wanted]), oracle.joint(wanted), atol=1e-8)

    def test_a_ring_of_four_is_one_region(self):
        net = mf.MarkovNetwork(dict.fromkeys("ABCD", 3))
        rng = np.random.default_rng(0)
        for pair in ("AB", "BC", "CD", "DA"):
            net.add_factor(list(pair), log_table=rng.normal(size=(3, 3)))
        answer = mf.marginals(net, method=GeneralizedBP())
        assert answer.guarantee == "exact" and answer.width == 3
        np.testing.assert_allclose(answer.values, mf.marginals(net, method="enumeration").values, atol=1e-12)
        assert mf.marginals(net, method=GeneralizedBP(regions="factors")).guarantee == "approximate"


class TestApproximate:
    @pytest.mark.parametrize("seed", range(3))
    def test_factors_as_regions_are_belief_propagation(self, seed: int):
        net = ising(seed, 4, 0.7)
        single, value, change = pairwise_bp(net)
        assert change < 1e-10
        answer = mf.marginals(net, method=GeneralizedBP(regions="factors", tolerance=1e-9, max_iterations=5000))
        assert answer.guarantee == "approximate" and answer.converged
        assert answer.log_partition_bounds == (-np.inf, np.inf)
        np.testing.assert_allclose(answer.values.reshape(-1, 2), single, atol=1e-6)
        assert answer.log_partition == pytest.approx(value, abs=1e-7)
        exact = mf.marginals(net, method="junction_tree")
        assert abs(value - exact.log_partition) > 1e-4  # so that the above is not trivially so

    @pytest.mark.parametrize(("coupling", "factor"), [(0.5, 20.0), (1.0, 10.0), (2.0, 2.0)])
    def test_closer_than_belief_propagation_on_frustrated_grids(self, coupling: float, factor: float):
        ours, theirs, partition = [], [], []
        for seed in range(6):
            net = ising(seed, 8, coupling)
            exact = mf.marginals(net, method="junction_tree")
            answer = mf.marginals(net, method=GeneralizedBP())
            assert answer.converged
            single, value, _ = pairwise_bp(net, sweeps=300)
            ours.append(np.abs(answer.values - exact.values).mean())
            theirs.append(np.abs(single.ravel() - exact.values).mean())
            partition.append(abs(answer.log_partition - exact.log_partition) < abs(value - exact.log_partition))
        assert all(a < b for a, b in zip(ours, theirs, strict=True))
        assert factor * np.median(ours) < np.median(theirs)
        assert all(partition)

    @settings(max_examples=40)
    @given(specs_with_evidence("graph"))
    @pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
    def test_zeros_are_never_false(self, case: tuple[Spec, dict[int, Any]]):
        """Whatever the graph: distributions, no possible state lost, impossible only when it is."""
        spec, evidence = case
        oracle = spec.oracle(evidence)
        try:
            answer = run(spec, evidence, GeneralizedBP(max_iterations=200))
        except mf.ImpossibleEvidenceError:
            assert oracle.impossible
            return
        assert np.isfinite(answer.log_partition) or oracle.impossible
        for v, label in enumerate(spec.labels):
            assert answer[label].sum() == pytest.approx(1.0)
            if not oracle.impossible:
                assert (answer[label][oracle.marginal(v) > 1e-200] > 0).all()
        if answer.guarantee == "exact":
            assert answer.log_partition == pytest.approx(oracle.log_partition, abs=1e-8)

    @settings(max_examples=20)
    @given(specs("graph", hard=False), st.randoms(use_true_random=False))
    def test_counts_are_the_gradient(self, spec: Spec, random: Any):
        """Where it has converged, the counts are the derivatives of its own log Z, tied tables included."""
        method = GeneralizedBP(tolerance=1e-11, max_iterations=400)
        graph = spec.build().compile()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            answer = mf.marginals(graph, method=method)
            if not answer.converged or not spec.n_cells:
                return
            cell = random.randrange(spec.n_cells)
            moved = []
            for sign in (1, -1):
                tables = graph.log_tables.copy()
                tables[cell] += sign * 1e-5
                moved.append(mf.marginals(graph.with_tables(tables), method=method, init=answer))
        if all(m.converged for m in moved):
            slope = (moved[0].log_partition - moved[1].log_partition) / 2e-5
            assert slope == pytest.approx(answer.expected_counts[cell], abs=1e-5)

    def test_joint_of_a_square(self):
        net = ising(3, 4, 1.0)
        answer = mf.marginals(net, method=GeneralizedBP())
        exact = mf.marginals(net, method="junction_tree", targets=[[5, 0, 4, 1]])
        table = answer.joint([5, 0, 4, 1])
        assert table.sum() == pytest.approx(1.0)
        independent = np.einsum("a,b,c,d->abcd", *(exact[v] for v in (5, 0, 4, 1)))
        error = np.abs(table - exact.joint([5, 0, 4, 1])).max()
        assert error < 0.05 * np.abs(independent - exact.joint([5, 0, 4, 1])).max()
        np.testing.assert_allclose(table.sum(axis=(1, 2, 3)), answer[5], atol=1e-6)
        far = answer.joint([0, 15])
        np.testing.assert_allclose(far, exact.joint([0, 15]), atol=1e-2)
        np.testing.assert_allclose(far.sum(axis=1), answer[0], atol=1e-12)


class TestRunning:
    def test_a_start_from_an_earlier_answer(self):
        net = ising(0, 8, 1.0)
        cold = mf.marginals(net, method=GeneralizedBP())
        warm = mf.marginals(net, method=GeneralizedBP(), init=cold)
        assert warm.iterations < 0.5 * cold.iterations
        np.testing.assert_allclose(warm.values, cold.values, atol=1e-5)
        # Evidence takes one variable out: the other messages still help, and zeros are not carried over.
        from_hard = mf.marginals(net, evidence={9: 1, 3: [0.0, 1.0]}, method=GeneralizedBP())
        other = mf.marginals(net, method=GeneralizedBP(), init=from_hard)
        np.testing.assert_allclose(other.values, cold.values, atol=1e-4)

    def test_a_start_from_something_else(self):
        net = ising(0, 3, 1.0)
        with pytest.raises(
            mf.ModelError, match="starts from an answer of generalized_bp: init is one of junction_tree"
        ):
            mf.marginals(net, method=GeneralizedBP(), init=mf.marginals(net, method="junction_tree"))

    def test_plans_are_reused_for_evidence_of_one_shape(self):
        net = ising(1, 5, 1.0)
        graph = net.compile()
        first, second, again = (mf.marginals(graph, evidence={7: s}, method=GeneralizedBP()) for s in (0, 1, 0))
        assert first._state.plan is second._state.plan
        np.testing.assert_array_equal(first.values, again.values)
        for state, answer in ((0, first), (1, second)):
            exact = mf.marginals(net, evidence={7: state}, method="junction_tree")
            np.testing.assert_allclose(answer.values, exact.values, atol=2e-2)

    def test_too_few_sweeps_are_a_warning(self):
        with pytest.warns(ConvergenceWarning, match="generalized_bp did not converge in 3 iterations"):
            answer = mf.marginals(ising(0, 6, 1.0), method=GeneralizedBP(max_iterations=3))
        assert not answer.converged and answer.iterations == len(answer.residuals) == 3
        assert answer.guarantee == "approximate"
        with pytest.warns(ConvergenceWarning):
            stopped = mf.log_partition(ising(0, 6, 1.0), method=GeneralizedBP(), callback=lambda p: p.step >= 2)
        assert stopped.iterations == 2 and not stopped.converged

    def test_an_unsettled_junction_tree_is_not_called_exact(self):
        net = mf.MarkovNetwork(dict.fromkeys(range(6), 2))
        net.add_factors([(i, i + 1) for i in range(5)], [[2.0, 1.0], [1.0, 3.0]])
        with pytest.warns(ConvergenceWarning):
            answer = mf.marginals(net, method=GeneralizedBP(max_iterations=1))
        assert answer.guarantee == "approximate" and answer.log_partition_bounds == (-np.inf, np.inf)

    def test_residuals_fall(self):
        answer = mf.marginals(ising(2, 8, 1.0), method=GeneralizedBP())
        assert answer.residuals[-1] <= 1e-6 < answer.residuals[0]

    def test_settings_are_checked(self):
        for bad, message in (
            ({"regions": "squares"}, "regions of GeneralizedBP must be"),
            ({"damping": 1.0}, "damping of GeneralizedBP must be"),
            ({"tolerance": 0.0}, "tolerance of GeneralizedBP must be positive"),
            ({"max_iterations": 0}, "max_iterations of GeneralizedBP must be at least 1, got 0"),
        ):
            with pytest.raises(mf.ModelError, match=message):
                GeneralizedBP(**bad)
        with pytest.raises(mf.ModelError, match="nobody"):
            mf.marginals(ising(0, 2, 1.0), method=GeneralizedBP(regions=(("nobody",),)))

    def test_memory_is_refused_before_it_is_taken(self):
        net = mf.MarkovNetwork(dict.fromkeys(range(40), 2))
        net.add_factors([(i, i + 1) for i in range(39)], [[2.0, 1.0], [1.0, 3.0]])
        with pytest.raises(mf.MemoryLimitError, match=r"1 outer regions, the largest of 2\^40.0 states"):
            mf.marginals(net, method=GeneralizedBP(regions=(tuple(range(40)),)))

    def test_joints_that_would_take_too_many_runs(self):
        net = mf.MarkovNetwork(dict.fromkeys(range(15), 2))
        net.add_factors([(i, i + 1) for i in range(14)], [[2.0, 1.0], [1.0, 3.0]])
        answer = mf.marginals(net, method=GeneralizedBP())
        with pytest.raises(mf.ModelError, match="name them as a region"):
            answer.joint(list(range(14)))


def test_joints_of_a_proven_answer_are_exact_however_few_sweeps_it_took():
    """By symmetry one sweep gives the marginals; runs for the states of a joint distribution need more."""
    net = mf.MarkovNetwork(dict.fromkeys("abcde", 2))
    for (u, v), coupling in {"ab": 0.0, "bc": 218.0, "cd": -177.0, "de": -57.0}.items():
        net.add_factor([u, v], log_table=[[coupling, 0.0], [0.0, coupling]])
    answer = mf.marginals(net, method=GeneralizedBP(max_iterations=1))
    assert answer.guarantee == "exact"
    np.testing.assert_allclose(answer.joint(["e", "b", "a"]), mf.marginals(net).joint(["e", "b", "a"]), atol=1e-12)
