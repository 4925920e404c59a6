"""The tree-reweighted bound against the brute-force oracle: it holds at every step, and is exact on forests."""

from __future__ import annotations

import itertools
import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from sklearn.exceptions import ConvergenceWarning

import markovfield as mf
from markovfield.factors.factor_graph import FactorGraph
from markovfield.inference.tree_reweighted import messages as reweighted_messages
from markovfield.inference.tree_reweighted.tree_reweighted import TreeReweighted
from tests.inference.mean_field.test_mean_field import TOLERANCE, frustrated, grid, quiet, seeds, slack
from tests.oracle import Oracle
from tests.strategies import Spec, specs, specs_with_evidence


def ask(spec: Spec, evidence: dict[int, Any] | None = None, **options: Any) -> Any:
    return mf.marginals(spec.build(), spec.named(evidence or {}), method=TreeReweighted(**options))


def probabilities(answer: Any) -> tuple[np.ndarray, np.ndarray, int, int]:
    """Edge probabilities, the edges' nodes, how many nodes and components there are."""
    pairs = answer._state.pairs
    return answer._state.trees.probabilities, pairs.layout.half_node.reshape(-1, 2), pairs.n_nodes, pairs.n_components


def check_polytope(answer: Any) -> None:
    """Probabilities of edges of spanning forests: their sum, and no set of nodes with more than a tree in it."""
    rho, ends, n, components = probabilities(answer)
    assert (rho > 0).all() and (rho <= 1).all()
    assert rho.sum() == pytest.approx(n - components, abs=1e-9)
    if n <= 12:
        for size in range(2, n + 1):
            for nodes in itertools.combinations(range(n), size):
                inside = np.isin(ends, nodes).all(axis=1)
                assert rho[inside].sum() <= size - 1 + 1e-9


def check_bound(spec: Spec, evidence: dict[int, Any], **options: Any) -> None:
    """The bound after one sweep, after two, ..., and at the end; no number that is none."""
    oracle = spec.oracle(evidence)
    exact = oracle.log_partition
    for iterations in (1, 2, 5, 200):
        seen: list[float] = []
        try:
            answer = mf.marginals(
                spec.build(),
                spec.named(evidence),
                method=TreeReweighted(max_iterations=iterations, **options),
                callback=lambda progress, seen=seen: seen.append(progress.value),
            )
        except mf.ImpossibleEvidenceError:
            assert oracle.impossible
            return
        assert answer.guarantee == "upper" and answer.log_partition_bounds == (-np.inf, answer.log_partition)
        assert np.isfinite(answer.values).all() and np.isfinite(answer.log_partition)
        for label in spec.labels:
            assert answer[label].sum() == pytest.approx(1.0)
        if not oracle.impossible:
            assert seen and min([*seen, answer.log_partition]) >= exact - slack(exact)
            assert answer.iterations == len(answer.residuals)


@quiet
class TestBound:
    @given(seeds)
    def test_holds_at_every_step_on_frustrated_models(self, seed: int):
        check_bound(frustrated(seed), {})

    @given(specs_with_evidence("graph"))
    def test_holds_for_every_model(self, case: tuple[Spec, dict]):
        check_bound(*case)

    @settings(max_examples=20)
    @given(specs_with_evidence("bayesian"))
    def test_holds_for_directed_models(self, case: tuple[Spec, dict]):
        check_bound(*case)

    @settings(max_examples=20)
    @given(specs_with_evidence("graph", scale=1000.0))
    def test_holds_for_extreme_potentials(self, case: tuple[Spec, dict]):
        check_bound(*case)

    @settings(max_examples=10)
    @given(seeds)
    def test_holds_while_trees_are_optimised(self, seed: int):
        check_bound(frustrated(seed), {}, trees="optimised", frank_wolfe_iterations=5)

    @settings(max_examples=10)
    @given(seeds)
    def test_holds_with_damping(self, seed: int):
        check_bound(
            frustrated(seed), {1: 0, 2: np.array([0.3, 0.9, 0.0])[: frustrated(seed).cardinalities[2]]}, damping=0.4
        )

    def test_holds_for_structured_factors(self):
        """A noisy-or and long clauses, as small tables with auxiliary variables."""
        bayes = mf.BayesianNetwork({"A": 2, "B": 2, "C": 2, "D": 2})
        bayes.add_cpt("A", [], [0.3, 0.7])
        bayes.add_cpt("B", ["A"], [[0.4, 0.6], [0.8, 0.2]])
        bayes.add_noisy_or("C", ["A", "B"], [0.8, 0.6], leak=0.1)
        bayes.add_noisy_or("D", ["A", "B", "C"], [0.3, 0.5, 0.9])
        evidence = {"C": 1, "D": 0}
        exact = float(mf.log_partition(bayes, evidence, method="junction_tree"))
        answer = mf.marginals(bayes, evidence, method=TreeReweighted())
        assert exact - TOLERANCE <= answer.log_partition < exact + 1.0
        assert len(answer.values) == 8 and answer.expected_counts.shape == bayes.compile().log_tables.shape
        net = mf.MarkovNetwork(dict.fromkeys(range(30), 2))
        net.add_clause(dict.fromkeys(range(30), 1), weight=2.0)
        net.add_clause(dict.fromkeys(range(5), 0), dict.fromkeys(range(20, 25), 1), weight=np.inf)
        exact = float(mf.log_partition(net, method="junction_tree"))
        assert exact - TOLERANCE <= float(mf.log_partition(net, method=TreeReweighted())) < exact + 5.0

    def test_messages_that_would_not_settle_are_damped(self, monkeypatch: pytest.MonkeyPatch):
        """Three variables with strong ties to 27 others: without damping messages swing to and fro for ever."""
        rng = np.random.default_rng(0)
        net = mf.MarkovNetwork(dict.fromkeys(range(30), 2))
        for u, v in itertools.product(range(3), range(3, 30)):
            net.add_factor([u, v], log_table=rng.normal(scale=8.0, size=(2, 2)))
        exact = float(mf.log_partition(net, method="junction_tree"))
        ours = mf.log_partition(net, method=TreeReweighted(max_iterations=1000))
        monkeypatch.setattr(reweighted_messages, "STRONGEST_DAMPING", 0.0)
        swinging = mf.log_partition(net, method=TreeReweighted(max_iterations=1000))
        assert ours.residuals[-1] < 1e-2 and swinging.residuals[-1] > 1.0
        assert exact - TOLERANCE <= float(ours) < float(swinging) - 50.0

    def test_log_partition_is_the_same_number(self):
        spec = frustrated(3)
        answer = mf.log_partition(spec.build(), method=TreeReweighted())
        assert float(answer) == pytest.approx(ask(spec).log_partition, abs=1e-12)
        assert answer.guarantee == "upper" and answer.log_partition_bounds == (-np.inf, float(answer))

    def test_settled_messages_give_a_better_bound_than_none(self):
        spec = frustrated(11, hard=False)
        early, late = ask(spec, max_iterations=1), ask(spec, tolerance=1e-8, max_iterations=2000)
        assert late.converged and late.log_partition < early.log_partition - 1e-3


class TestForests:
    @given(specs_with_evidence("forest"))
    def test_are_exact(self, case: tuple[Spec, dict]):
        spec, evidence = case
        oracle = spec.oracle(evidence)
        if oracle.impossible:
            with pytest.raises(mf.ImpossibleEvidenceError):
                ask(spec, evidence)
            return
        answer = ask(spec, evidence)
        assert answer.log_partition == pytest.approx(oracle.log_partition, rel=1e-11, abs=TOLERANCE)
        assert answer.converged and answer.iterations <= 2
        for v, label in enumerate(spec.labels):
            np.testing.assert_allclose(answer[label], oracle.marginal(v), rtol=0, atol=TOLERANCE)
        np.testing.assert_allclose(answer.expected_counts, spec.pool_counts(oracle), rtol=0, atol=TOLERANCE)
        rho, *_ = probabilities(answer)
        assert (rho == 1.0).all()

    def test_optimising_has_nothing_to_do(self):
        net = mf.MarkovNetwork(dict.fromkeys("ABC", 2))
        net.add_factors([("A", "B"), ("B", "C")], [[3.0, 1.0], [1.0, 3.0]])
        answer = mf.marginals(net, method=TreeReweighted(trees="optimised"))
        assert answer.log_partition == pytest.approx(np.log(2 * 16)) and len(answer._state.trees) == 1


@quiet
class TestTrees:
    @settings(max_examples=25)
    @given(seeds)
    def test_optimised_is_never_looser_and_stays_in_the_polytope(self, seed: int):
        spec = frustrated(seed)
        try:
            even = ask(spec)
        except mf.ImpossibleEvidenceError:
            return
        best = ask(spec, trees="optimised", frank_wolfe_iterations=6)
        assert best.log_partition <= even.log_partition
        check_polytope(even)
        check_polytope(best)

    @pytest.mark.parametrize("attractive", [True, False])
    def test_optimised_is_much_tighter_on_grids(self, attractive: bool):
        graph = grid(6, 1.0, 5, attractive=attractive)
        exact = float(mf.log_partition(graph, method="junction_tree"))
        even = float(mf.log_partition(graph, method=TreeReweighted()))
        best = float(mf.log_partition(graph, method=TreeReweighted(trees="optimised")))
        assert exact < best < exact + 0.8 * (even - exact)

    @pytest.mark.parametrize("n", [3, 5, 10])
    def test_edges_of_a_cycle_appear_alike_and_bridges_always(self, n: int):
        net = mf.MarkovNetwork(dict.fromkeys(range(n + 2), 2))
        cycle = [(i, (i + 1) % n) for i in range(n)]
        net.add_factors([*cycle, (0, n), (n, n + 1)], [[2.0, 1.0], [1.0, 2.0]])
        rho, ends, *_ = probabilities(mf.marginals(net, method=TreeReweighted()))
        nodes = mf.marginals(net, method=TreeReweighted())._state.pairs.variable_node
        bridge = np.isin(ends, nodes[n:]).any(axis=1)
        assert (rho[bridge] == 1.0).all() and bridge.sum() == 2
        np.testing.assert_allclose(rho[~bridge], (n - 1) / n, atol=1 / 64)

    def test_given_trees_are_the_mixture(self):
        net = mf.MarkovNetwork(dict.fromkeys("ABCD", 2))
        square = [("A", "B"), ("B", "C"), ("C", "D"), ("D", "A")]
        rng = np.random.default_rng(0)
        tables = [rng.normal(size=(2, 2)) for _ in square]
        for pair, table in zip(square, tables, strict=True):
            net.add_factor(pair, log_table=table)
        trees = [square[:3], square[1:]]
        answer = mf.marginals(net, method=TreeReweighted(trees=trees, tree_weights=[3.0, 1.0]))
        rho, ends, *_ = probabilities(answer)
        node = answer._state.pairs.variable_node
        by_pair = {tuple(sorted(e)): r for e, r in zip(ends.tolist(), rho.tolist(), strict=True)}
        ours = [by_pair[tuple(sorted((int(node["ABCD".index(u)]), int(node["ABCD".index(v)]))))] for u, v in square]
        np.testing.assert_allclose(ours, [0.75, 1.0, 1.0, 0.25])
        exact = Oracle([2] * 4, list(zip([(0, 1), (1, 2), (2, 3), (3, 0)], tables, strict=True))).log_partition
        assert answer.log_partition >= exact - TOLERANCE
        # Evidence dissolves edges that are then passed over.
        observed = mf.marginals(net, {"A": 1}, method=TreeReweighted(trees=trees))
        assert observed.log_partition == pytest.approx(float(mf.log_partition(net, {"A": 1})), abs=TOLERANCE)

    def test_given_trees_fill_up_what_cannot_be_named(self):
        spec = frustrated(2, hard=False)
        pairs = ask(spec)._state.pairs
        node_label = {int(node): label for node, label in zip(pairs.variable_node, spec.labels, strict=False)}
        ends = pairs.layout.half_node.reshape(-1, 2).tolist()
        named = [(node_label[a], node_label[b]) for a, b in ends if a in node_label and b in node_label]
        trees = [[pair] for pair in named]
        answer = ask(spec, trees=trees)
        check_polytope(answer)
        assert answer.log_partition >= spec.oracle().log_partition - TOLERANCE

    @pytest.mark.parametrize(
        ("trees", "message"),
        [
            ([[("A", "B"), ("B", "C"), ("C", "A")]], "tree 0 of the spanning trees given has a cycle"),
            ([[("A", "D")]], r"tree 0 has the edge \('A', 'D'\), and no factor is on these two variables alone"),
            ([[("A", "B"), ("B", "C"), ("C", "D")]], "none of the spanning trees given has the edge between"),
        ],
    )
    def test_wrong_trees_are_refused(self, trees: Any, message: str):
        net = mf.MarkovNetwork(dict.fromkeys("ABCD", 2))
        net.add_factors([("A", "B"), ("B", "C"), ("C", "A"), ("C", "D")], [[2.0, 1.0], [1.0, 2.0]])
        with pytest.raises(mf.ModelError, match=message):
            mf.log_partition(net, method=TreeReweighted(trees=trees))


class TestPseudoMarginals:
    @settings(max_examples=15)
    @given(seeds)
    def test_are_the_gradient_of_the_settled_bound(self, seed: int):
        """The derivative of the bound by a potential is its pseudo-marginal, as log Z's is its marginal."""
        spec = frustrated(seed, hard=False, scale=0.5)
        graph = spec.build().compile()
        method = TreeReweighted(tolerance=1e-10, max_iterations=5000)
        answer = mf.marginals(graph, method=method)
        direction = np.random.default_rng(seed).normal(size=graph.structure.n_cells)
        step = 1e-4
        ahead, behind = (
            float(mf.log_partition(graph.with_tables(graph.log_tables + sign * step * direction), method=method))
            for sign in (1, -1)
        )
        assert (ahead - behind) / (2 * step) == pytest.approx(answer.expected_counts @ direction, rel=1e-5, abs=1e-5)

    @settings(max_examples=15)
    @given(seeds)
    def test_of_factors_agree_with_those_of_variables(self, seed: int):
        spec = frustrated(seed, hard=False, scale=0.7)
        answer = ask(spec, {0: 1}, tolerance=1e-9, max_iterations=5000)
        for scope, _ in spec.factors:
            joint = answer.joint([spec.labels[v] for v in scope])
            assert joint.shape == tuple(spec.cardinalities[v] for v in scope)
            for axis, v in enumerate(scope):
                others = tuple(a for a in range(len(scope)) if a != axis)
                np.testing.assert_allclose(joint.sum(axis=others), answer[spec.labels[v]], atol=1e-6)
            np.testing.assert_allclose(answer.joint([spec.labels[v] for v in scope[::-1]]), joint.T, atol=1e-12)

    def test_joints_across_factors_are_refused(self):
        net = mf.MarkovNetwork(dict.fromkeys("ABC", 2))
        net.add_factors([("A", "B"), ("B", "C")], [[3.0, 1.0], [1.0, 3.0]])
        answer = mf.marginals(net, method=TreeReweighted())
        with pytest.raises(mf.ModelError, match=r"variables of one factor only, not of 'A', 'C'"):
            answer.joint(["A", "C"])

    def test_counts_of_tied_tables_add_up(self):
        net = mf.MarkovNetwork(dict.fromkeys("ABCD", 2))
        pairs = [("A", "B"), ("B", "C"), ("C", "D"), ("D", "A"), ("A", "C")]
        net.add_factors(pairs, [[2.0, 1.0], [0.5, 2.0]])
        answer = mf.marginals(net, method=TreeReweighted())
        together = sum(answer.joint(pair) for pair in pairs)
        np.testing.assert_allclose(answer.expected_counts.reshape(2, 2), together, atol=1e-9)


class TestHardZeros:
    def test_factors_on_the_same_pair_exclude_states_together(self):
        """Each factor alone leaves every state possible; both leave only some, and the neighbours feel it."""
        net = mf.MarkovNetwork({"A": 3, "B": 3, "C": 2, "D": 2})
        net.add_factor(["A", "B"], [[1, 1, 0], [1, 0, 1], [0, 1, 1]])
        net.add_factor(["B", "A"], [[1, 0, 1], [0, 1, 1], [1, 1, 0]])
        net.add_factors([("B", "C"), ("A", "D")], [[1, 2], [3, 4], [5, 6]])
        net.add_factor(["C", "D"], [[2, 1], [1, 3]])
        exact = float(mf.log_partition(net, method="enumeration"))
        answer = mf.marginals(net, method=TreeReweighted())
        assert answer.log_partition >= exact - TOLERANCE
        assert np.isfinite(answer.values).all()

    def test_contradiction_on_one_pair_is_certain(self):
        net = mf.MarkovNetwork({"A": 2, "B": 2})
        net.add_factor(["A", "B"], [[1, 0], [0, 1]])
        net.add_factor(["A", "B"], [[0, 1], [1, 0]])
        with pytest.raises(mf.ImpossibleEvidenceError, match="even without evidence"):
            mf.log_partition(net, method=TreeReweighted())

    def test_contradiction_around_a_cycle_still_has_a_finite_bound(self):
        """Three variables of two states that must all differ: arc-consistent, and impossible."""
        net = mf.MarkovNetwork(dict.fromkeys("ABC", 2))
        net.add_factors([("A", "B"), ("B", "C"), ("C", "A")], [[0, 1], [1, 0]])
        answer = mf.marginals(net, method=TreeReweighted())
        assert np.isfinite(answer.log_partition) and np.isfinite(answer.values).all()

    def test_zero_likelihoods_shrink_domains(self):
        net = mf.MarkovNetwork(dict.fromkeys("ABC", 3))
        net.add_factors([("A", "B"), ("B", "C"), ("C", "A")], 1.0 + 5 * np.eye(3))
        evidence = {"A": [0.0, 0.5, 2.0], "B": [1.0, 0.0, 0.0]}
        answer = mf.marginals(net, evidence, method=TreeReweighted())
        assert answer["A"][0] == 0.0 and answer["B"].tolist() == [1.0, 0.0, 0.0]
        # B is known, so what is left is a tree.
        assert answer.log_partition == pytest.approx(float(mf.log_partition(net, evidence)), abs=TOLERANCE)
        net.add_factor(["A"], [1.0, 0.0, 1.0])
        with pytest.raises(mf.ImpossibleEvidenceError, match=r"A~\[0, 1, 0\]"):
            mf.marginals(net, {"A": [0.0, 1.0, 0.0]}, method=TreeReweighted())


@quiet
class TestDecoding:
    @given(specs_with_evidence("graph"))
    def test_bound_and_score(self, case: tuple[Spec, dict]):
        spec, evidence = case
        oracle = spec.oracle(evidence)
        try:
            answer = mf.decode(spec.build(), spec.named(evidence), method=TreeReweighted())
        except mf.ImpossibleEvidenceError:
            assert oracle.impossible
            return
        assert oracle.score(spec.states(answer.assignment)) == pytest.approx(answer.score)
        assert answer.upper_bound >= oracle.best_score - slack(oracle.best_score)
        if answer.optimal:
            assert answer.score == pytest.approx(oracle.best_score, rel=1e-8, abs=1e-8)

    @settings(max_examples=20)
    @given(specs("forest"))
    def test_forests_are_optimal(self, spec: Spec):
        if not spec.oracle().impossible:
            assert mf.decode(spec.build(), method=TreeReweighted()).optimal

    def test_attractive_grids_are_optimal(self):
        graph = grid(6, 1.0, 3, attractive=True)
        best = mf.decode(graph, method="junction_tree")
        answer = mf.decode(graph, method=TreeReweighted(max_iterations=1000))
        assert answer.score == pytest.approx(best.score) and answer.gap < 0.05

    def test_refusals(self):
        net = mf.MarkovNetwork(dict.fromkeys("AB", 2))
        net.add_factor(["A", "B"], [[2.0, 1.0], [1.0, 2.0]])
        with pytest.raises(mf.ModelError, match="finds one assignment, not the 2 best"):
            mf.decode(net, n_best=2, method=TreeReweighted())
        with pytest.raises(mf.ModelError, match="decodes all 2 variables, not 1"):
            mf.decode(net, variables=["A"], method=TreeReweighted())
        with pytest.raises(mf.ModelError, match="takes no init"):
            mf.decode(net, init=mf.marginals(net, method=TreeReweighted()), method=TreeReweighted())
        bayes = mf.BayesianNetwork({"A": 2, "B": 2, "C": 2})
        bayes.add_cpt("A", [], [0.3, 0.7])
        bayes.add_cpt("B", [], [0.4, 0.6])
        bayes.add_noisy_or("C", ["A", "B"], [0.8, 0.6])
        with pytest.raises(mf.ModelError, match="contributions of a noisy-max"):
            mf.decode(bayes, method=TreeReweighted())


@quiet
class TestRunning:
    def test_unsettled_messages_are_said_and_the_bound_holds(self):
        spec = frustrated(4, scale=3.0)
        with pytest.warns(ConvergenceWarning, match="tree_reweighted did not converge in 2 iterations"):
            answer = ask(spec, max_iterations=2, tolerance=1e-12)
        assert not answer.converged and answer.iterations == 2
        assert answer.log_partition >= spec.oracle().log_partition - TOLERANCE

    def test_settled_messages_warn_of_nothing(self):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert ask(frustrated(4, hard=False, scale=0.5), max_iterations=2000).converged

    def test_a_callback_stops_it_with_a_bound(self):
        graph = grid(6, 1.0, 2)
        exact = float(mf.log_partition(graph, method="junction_tree"))
        answer = mf.log_partition(graph, method=TreeReweighted(), callback=lambda progress: progress.step >= 1)
        assert not answer.converged and exact <= float(answer) < np.inf

    def test_a_time_limit_stops_it_with_a_bound(self):
        graph = grid(6, 1.0, 2)
        answer = mf.log_partition(graph, method=TreeReweighted(), time_limit=1e-6)
        assert not answer.converged and answer.iterations == 0
        assert float(mf.log_partition(graph, method="junction_tree")) <= float(answer) < np.inf

    def test_the_optimiser_can_be_stopped_between_two_trees(self):
        graph = grid(6, 2.0, 2)
        exact = float(mf.log_partition(graph, method="junction_tree"))
        method = TreeReweighted(trees="optimised", tolerance=1e-15, max_iterations=100)
        # Ten looks at the clock for the even trees, three for each step after that.
        values = [
            float(mf.log_partition(graph, method=method, callback=lambda progress, last=last: progress.step >= last))
            for last in (11, 20, 40)
        ]
        assert values[0] > values[1] > values[2] > exact

    def test_starts_from_an_earlier_answer(self):
        graph = grid(8, 0.7, 1)
        method = TreeReweighted(tolerance=1e-8)
        cold = mf.marginals(graph, method=method)
        moved = graph.with_tables(graph.log_tables * 1.001)
        warm, again = mf.marginals(moved, init=cold, method=method), mf.marginals(moved, method=method)
        assert warm.iterations < again.iterations
        assert warm.log_partition == pytest.approx(again.log_partition, abs=1e-9)
        with pytest.raises(mf.ModelError, match="another graph, or other variables observed"):
            mf.marginals(grid(7, 0.7, 1), init=cold, method=method)
        with pytest.raises(mf.ModelError, match="must be an earlier answer of tree_reweighted"):
            mf.marginals(graph, init=mf.marginals(graph, method="junction_tree"), method=method)

    def test_is_deterministic_and_changes_nothing_given(self):
        graph = frustrated(8).build().compile()
        before = graph.log_tables.copy()
        one, two = (mf.marginals(graph, method=TreeReweighted(trees="optimised")) for _ in range(2))
        assert one.log_partition == two.log_partition and (one.values == two.values).all()
        np.testing.assert_array_equal(graph.log_tables, before)

    def test_components_are_those_of_each_graph(self):
        graphs = [frustrated(seed, hard=False, scale=0.4).build().compile() for seed in range(4)]
        together = mf.marginals(FactorGraph.union(graphs), method=TreeReweighted())
        assert together.converged and together.components.converged.all()
        alone = [mf.marginals(g, method=TreeReweighted()) for g in graphs]
        values = []
        for i, graph in enumerate(graphs):
            found = {int(together.components.component[j]) for j, v in enumerate(together) if v.startswith(f"{i}/")}
            values.append(sum(together.components.log_partition[c] for c in found))
            first = f"{i}/{graph.variables[0]}"
            np.testing.assert_allclose(together[first], alone[i][graph.variables[0]], atol=1e-5)
        for ours, theirs in zip(values, alone, strict=True):
            assert ours == pytest.approx(theirs.log_partition, abs=1e-6)
        assert together.log_partition == pytest.approx(together.components.log_partition.sum())

    @pytest.mark.parametrize("n_trees", [1, 3, 40])
    def test_a_number_of_trees(self, n_trees: int):
        """At least so many, all edges covered, and a bound."""
        spec = frustrated(3)
        answer = mf.marginals(spec.build(), method=TreeReweighted(n_trees=n_trees))
        rho, *_ = probabilities(answer)
        assert len(answer._state.trees) >= n_trees and (rho > 0).all()
        assert answer.log_partition >= spec.oracle().log_partition - 1e-9

    def test_degenerate_models(self):
        assert mf.marginals(mf.MarkovNetwork(), method=TreeReweighted()).log_partition == 0.0
        net = mf.MarkovNetwork({"A": 3, "B": 1})
        net.add_factor([], log_table=-700.5)
        answer = mf.marginals(net, method=TreeReweighted())
        assert answer.log_partition == pytest.approx(np.log(3) - 700.5)
        np.testing.assert_allclose(answer["A"], 1 / 3)
        np.testing.assert_allclose(answer.expected_counts, [1.0])
        net.add_factor([], 0.0)
        with pytest.raises(mf.ImpossibleEvidenceError):
            mf.marginals(net, method=TreeReweighted())


class TestSettings:
    def test_large_factors_are_refused(self):
        net = mf.MarkovNetwork(dict.fromkeys("ABCDE", 3))
        net.add_factor(list("ABCDE"), np.ones([3] * 5))
        with pytest.raises(mf.ModelError, match=r"factor over 'A', 'B', 'C', 'D', \.\.\. has 243 cells.*at most 100"):
            mf.log_partition(net, method=TreeReweighted(max_factor_cells=100))
        assert float(mf.log_partition(net, method=TreeReweighted())) == pytest.approx(5 * np.log(3))

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"trees": "some"}, "trees of TreeReweighted must be 'uniform', 'optimised' or"),
            ({"trees": []}, "must not be empty"),
            ({"tree_weights": [1.0]}, "go with trees that are given"),
            ({"n_trees": 0}, "n_trees of TreeReweighted must be an integer of at least 1, got 0"),
            ({"trees": [[("A", "B")]], "n_trees": 2}, "goes with trees that are not given"),
            ({"trees": [[("A", "B")]], "tree_weights": [1.0, 2.0]}, "must be 1 positive numbers"),
            ({"trees": [[("A", "B")]], "tree_weights": [-1.0]}, "must be 1 positive numbers"),
            ({"damping": 1.0}, "damping of TreeReweighted must be below 1"),
            ({"max_iterations": 0}, "max_iterations of TreeReweighted must be at least 1"),
            ({"tolerance": 0.0}, "tolerance of TreeReweighted must be positive"),
        ],
    )
    def test_wrong_ones_are_refused(self, options: dict[str, Any], message: str):
        with pytest.raises(mf.ModelError, match=message):
            TreeReweighted(**options)
