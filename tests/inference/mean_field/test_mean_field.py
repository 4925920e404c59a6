"""The mean-field bound against the brute-force oracle: below log Z at every step, never falling, exact on trees."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning

import markovfield as mf
from markovfield.factors.factor_graph import FactorGraph
from markovfield.inference.core.evidence import Evidence
from markovfield.inference.mean_field.clusters import clusters_of
from markovfield.inference.mean_field.mean_field import MeanField
from markovfield.inference.problem import feasible
from markovfield.inference.problem.feasible import Feasible
from markovfield.inference.problem.problem import prepare
from tests.strategies import Spec, Table, specs, specs_with_evidence

STRUCTURES = pytest.mark.parametrize("structure", ["naive", "chains", "trees"])
TOLERANCE = 1e-9
seeds = st.integers(0, 2**32 - 1)
quiet = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def slack(log_partition: float) -> float:
    """What rounding may take: sums of potentials, relative once they are large."""
    return TOLERANCE * max(1.0, abs(log_partition))


def frustrated(seed: int, *, triples: bool = True, hard: bool = True, scale: float = 1.5, density: float = 0.6) -> Spec:
    """A dense graph of five to eight variables with couplings of both signs, a few triples, a few hard zeros."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(5, 9))
    cards = tuple(int(c) for c in rng.integers(2, 4, size=n))
    scopes: list[tuple[int, ...]] = [p for p in itertools.combinations(range(n), 2) if rng.random() < density]
    scopes += [(v,) for v in range(n)]
    if triples:
        scopes += [tuple(rng.permutation(n)[:3].tolist()) for _ in range(2)]
    operations = []
    for scope in scopes:
        table = rng.normal(scale=scale, size=[cards[v] for v in scope])
        if hard and len(scope) > 1 and rng.random() < 0.3:
            table[rng.random(table.shape) < 0.2] = -np.inf
        operations.append(Table((scope,), table))
    return Spec(cards, tuple(operations), tuple(f"x{i}" for i in range(n)))


def grid(n: int, coupling: float, seed: int, *, attractive: bool = False) -> FactorGraph:
    """A binary grid with random fields."""
    rng = np.random.default_rng(seed)
    net = mf.MarkovNetwork(dict.fromkeys(range(n * n), 2))
    for v in range(n * n):
        net.add_factor([v], log_table=rng.uniform(-0.5, 0.5, 2))
        for u in ([v + 1] if (v + 1) % n else []) + ([v + n] if v + n < n * n else []):
            w = rng.uniform(0 if attractive else -coupling, coupling)
            net.add_factor([v, u], log_table=[[w, -w], [-w, w]])
    return net.compile()


def ask(spec: Spec, evidence: dict[int, Any] | None = None, rng: int = 0, **options: Any) -> Any:
    return mf.marginals(spec.build(), spec.named(evidence or {}), method=MeanField(**options), rng=rng)


def prepared(spec: Spec, evidence: dict[int, Any] | None = None) -> Any:
    graph = spec.build().compile()
    return prepare(graph, Evidence.parse(graph.structure, spec.named(evidence or {})))


def check_bound(spec: Spec, evidence: dict[int, Any], **options: Any) -> None:
    """The bound after one sweep, after two, ...: below log Z, rising, finite."""
    oracle = spec.oracle(evidence)
    if oracle.impossible:
        with pytest.raises(mf.ImpossibleEvidenceError):
            ask(spec, evidence, **options)
        return
    exact = oracle.log_partition
    last = -np.inf
    for iterations in (1, 2, 3, 6, 200):
        answer = ask(spec, evidence, restarts=1, max_iterations=iterations, **options)
        value = answer.log_partition
        assert answer.guarantee == "lower" and answer.log_partition_bounds == (value, np.inf)
        assert last - slack(exact) <= value <= exact + slack(exact)
        assert np.isfinite(value) and np.isfinite(answer.values).all()
        for v, label in enumerate(spec.labels):
            assert answer[label].sum() == pytest.approx(1.0)
            # A state that is impossible has no probability, under any distribution that avoids the hard zeros.
            assert (answer[label][np.isneginf(oracle.max_marginal(v))] == 0).all()
        last = value


@quiet
@STRUCTURES
class TestBound:
    @given(seed=seeds)
    def test_holds_and_rises_on_frustrated_models(self, structure: str, seed: int):
        check_bound(frustrated(seed), {}, structure=structure)

    @given(case=specs_with_evidence("graph"))
    def test_holds_and_rises_for_every_model(self, structure: str, case: tuple[Spec, dict]):
        check_bound(*case, structure=structure)

    @settings(max_examples=20)
    @given(case=specs_with_evidence("bayesian"))
    def test_holds_for_directed_models(self, structure: str, case: tuple[Spec, dict]):
        check_bound(*case, structure=structure)

    @settings(max_examples=20)
    @given(case=specs_with_evidence("graph", scale=1000.0))
    def test_holds_for_extreme_potentials(self, structure: str, case: tuple[Spec, dict]):
        check_bound(*case, structure=structure, start="random")

    @settings(max_examples=15)
    @given(seed=seeds)
    def test_is_the_bound_of_the_distribution_answered(self, structure: str, seed: int):
        """Expected score plus entropy, from the joint distribution written out over all assignments."""
        spec = frustrated(seed, triples=False)
        oracle = spec.oracle()
        if oracle.impossible:
            return
        answer = ask(spec, structure=structure)
        q = np.ones(len(oracle.states))
        cluster = clusters_of(prepared(spec), structure)
        # A tree's distribution: pairs in a factor of its own over what the pairs share.
        degree = np.zeros(spec.n_variables)
        for scope, _ in spec.factors:
            if len(scope) == 2 and cluster[scope[0]] == cluster[scope[1]]:
                joint = answer.joint([spec.labels[v] for v in scope])
                q *= joint[tuple(oracle.states[:, list(scope)].T)]
                degree[list(scope)] += 1
        for v, label in enumerate(spec.labels):
            with np.errstate(divide="ignore"):
                q *= np.where(q > 0, answer[label][oracle.states[:, v]] ** (1 - degree[v]), 0.0)
        assert q.sum() == pytest.approx(1.0)
        held = q > 0
        bound = float((q[held] * (oracle.scores[held].astype(float) - np.log(q[held]))).sum())
        assert answer.log_partition == pytest.approx(bound, abs=1e-8)


@STRUCTURES
def test_structured_factors(structure: str):
    """A noisy-or and a clause, as small tables with auxiliary variables: hard zeros all over."""
    bayes = mf.BayesianNetwork({"A": 2, "B": 2, "C": 2})
    bayes.add_cpt("A", [], [0.3, 0.7])
    bayes.add_cpt("B", ["A"], [[0.4, 0.6], [0.8, 0.2]])
    bayes.add_noisy_or("C", ["A", "B"], [0.8, 0.6], leak=0.1)
    net = mf.MarkovNetwork(dict.fromkeys(range(12), 2))
    net.add_clause(dict.fromkeys(range(12), 1), weight=2.0)
    net.add_clause(dict.fromkeys(range(5), 0), dict.fromkeys(range(7, 10), 1), weight=np.inf)
    for model, evidence in ((bayes, {"C": 1}), (net, {})):
        exact = float(mf.log_partition(model, evidence, method="junction_tree"))
        answer = mf.marginals(model, evidence, method=MeanField(structure=structure, restarts=5), rng=0)
        assert -np.inf < answer.log_partition <= exact + TOLERANCE
        assert answer.expected_counts.shape == model.compile().log_tables.shape


class TestStructure:
    @given(specs_with_evidence("forest"))
    def test_trees_are_exact_on_forests(self, case: tuple[Spec, dict]):
        spec, evidence = case
        oracle = spec.oracle(evidence)
        if oracle.impossible:
            return
        answer = ask(spec, evidence, structure="trees")
        assert answer.log_partition == pytest.approx(oracle.log_partition, rel=1e-11, abs=TOLERANCE)
        assert answer.converged
        for v, label in enumerate(spec.labels):
            np.testing.assert_allclose(answer[label], oracle.marginal(v), rtol=0, atol=TOLERANCE)
        np.testing.assert_allclose(answer.expected_counts, spec.pool_counts(oracle), rtol=0, atol=TOLERANCE)

    @pytest.mark.parametrize("density", [0.25, 0.6])
    def test_structured_is_better_on_average(self, density: float):
        gaps: dict[str, list[float]] = {"naive": [], "chains": [], "trees": []}
        for seed in range(40):
            spec = frustrated(seed, hard=False, scale=0.8, density=density)
            exact = spec.oracle().log_partition
            for structure, found in gaps.items():
                found.append(exact - ask(spec, structure=structure).log_partition)
        naive, chains, trees = (float(np.mean(gaps[s])) for s in ("naive", "chains", "trees"))
        assert trees <= chains < 0.9 * naive
        if density < 0.5:
            assert trees < chains

    @pytest.mark.parametrize("attractive", [True, False])
    def test_chains_halve_the_gap_on_grids(self, attractive: bool):
        graph = grid(6, 0.7, 4, attractive=attractive)
        exact = float(mf.log_partition(graph, method="junction_tree"))
        naive, chains = (
            float(mf.log_partition(graph, method=MeanField(structure=s), rng=1)) for s in ("naive", "chains")
        )
        assert naive < chains < exact and exact - chains < 0.7 * (exact - naive)

    @settings(max_examples=30)
    @given(specs("graph"))
    def test_clusters_are_trees_and_chains_are_paths(self, spec: Spec):
        """Counted on the factor graph of each cluster: nodes less edges is the number of connected pieces."""
        try:
            problem = prepared(spec)
        except mf.ImpossibleEvidenceError:
            return
        s = problem.structure
        for structure in ("chains", "trees"):
            cluster = clusters_of(problem, structure)
            for c in range(int(cluster.max()) + 1):
                members = np.flatnonzero(cluster == c)
                scopes = [[v for v in s.scope(f) if cluster[v] == c] for f in range(s.n_factors)]
                scopes = [scope for scope in scopes if len(scope) > 1]
                # Connected, since clusters grow one by one; so this is a tree exactly when the count is one.
                assert len(members) + len(scopes) - sum(map(len, scopes)) == 1
                if structure == "chains":
                    assert all(len(scope) == 2 for scope in scopes)
                    assert np.bincount(np.concatenate([*scopes, []]).astype(int), minlength=1).max() <= 2

    def test_given_sets(self):
        net = mf.MarkovNetwork(dict.fromkeys("ABCD", 2))
        net.add_factors([("A", "B"), ("B", "C"), ("C", "D"), ("D", "A")], [[3.0, 1.0], [1.0, 3.0]])
        exact = float(mf.log_partition(net))
        given = float(mf.log_partition(net, method=MeanField(structure=[["A", "B"], ["D", "C"]]), rng=0))
        naive = float(mf.log_partition(net, method=MeanField(), rng=0))
        assert naive < given < exact
        # With A known the rest is a path, whichever set it is in.
        known = mf.log_partition(net, {"A": 1}, method=MeanField(structure=[["B", "C", "D"]]), rng=0)
        assert float(known) == pytest.approx(float(mf.log_partition(net, {"A": 1})), abs=TOLERANCE)

    @pytest.mark.parametrize(
        ("structure", "message"),
        [
            ([["A", "B", "C", "D"]], "holds a cycle of the factor graph, through variable"),
            ([["A", "B"], ["B", "C"]], "variable 'B' is in two of the sets"),
            ([["A", "X"]], "X"),
        ],
    )
    def test_wrong_sets_are_refused(self, structure: Any, message: str):
        net = mf.MarkovNetwork(dict.fromkeys("ABCD", 2))
        net.add_factors([("A", "B"), ("B", "C"), ("C", "D"), ("D", "A")], [[3.0, 1.0], [1.0, 3.0]])
        with pytest.raises(mf.ModelError, match=message):
            mf.log_partition(net, method=MeanField(structure=structure))


class TestHardZeros:
    @given(specs_with_evidence("graph"), seeds)
    def test_the_search_finds_an_assignment_or_proves_there_is_none(self, case: tuple[Spec, dict], seed: int):
        spec, evidence = case
        oracle = spec.oracle(evidence)
        try:
            problem = prepared(spec, evidence)
            search = Feasible.of(problem)
            rng = np.random.default_rng(seed)
            states = search.assignment(rng.normal(size=int(problem.structure.value_offsets[-1])))
        except mf.ImpossibleEvidenceError:
            assert oracle.impossible
            return
        assert states is not None
        score = oracle.score(problem.states(states))
        assert score > -np.inf and search.score(states) == pytest.approx(score)
        # Every combination of the states around it is possible, and no further state fits.
        inside = search.support(states, rng.permutation(problem.structure.n_variables))
        s = problem.structure
        sets = [np.flatnonzero(inside[s.value_offsets[v] : s.value_offsets[v + 1]]) for v in range(s.n_variables)]
        if np.prod([float(len(x)) for x in sets]) <= 3000:
            for combination in itertools.product(*sets):
                assert search.score(np.array(combination, np.int64)) > -np.inf

    def test_a_colouring_keeps_what_freedom_it_can(self):
        """A cycle of five, three colours, neighbours different: 30 colourings, and a bound above a single one's."""
        net = mf.MarkovNetwork(dict.fromkeys(range(5), 3))
        net.add_factors([(i, (i + 1) % 5) for i in range(5)], 1.0 - np.eye(3))
        for structure in ("naive", "trees"):
            value = float(mf.log_partition(net, method=MeanField(structure=structure, restarts=5), rng=0))
            assert np.log(2) - TOLERANCE <= value <= np.log(30) + TOLERANCE

    def test_an_impossible_model_is_proven_so(self):
        net = mf.MarkovNetwork(dict.fromkeys("ABC", 2))
        net.add_factors([("A", "B"), ("B", "C"), ("C", "A")], [[0, 1], [1, 0]])
        with pytest.raises(mf.ImpossibleEvidenceError):
            mf.log_partition(net, method=MeanField())

    def test_giving_up_is_said(self, monkeypatch: pytest.MonkeyPatch):
        """Nine pigeons in eight holes: no search proves it within a few steps back."""
        monkeypatch.setattr(feasible, "BUDGET", 5)
        net = mf.MarkovNetwork(dict.fromkeys(range(9), 8))
        net.add_factors(list(itertools.combinations(range(9), 2)), 1.0 - np.eye(8))
        with pytest.warns(ConvergenceWarning, match="no assignment free of hard zeros"):
            answer = mf.marginals(net, method=MeanField())
        assert answer.log_partition == -np.inf and not answer.converged
        assert answer.log_partition_bounds == (-np.inf, np.inf)
        np.testing.assert_allclose(answer.values, 1 / 8)

    def test_products_that_underflow_do_not_hide_a_zero(self):
        """A ruled-out cell of three variables, each in that state with probability e^-300 or so."""
        net = mf.MarkovNetwork(dict.fromkeys("ABC", 2))
        table = np.zeros((2, 2, 2))
        table[1, 1, 1] = -np.inf
        net.add_factor(["A", "B", "C"], log_table=table)
        for name in "ABC":
            net.add_factor([name], log_table=[0.0, -300.0])
        exact = float(mf.log_partition(net, method="enumeration"))
        answer = mf.marginals(net, method=MeanField(), rng=0)
        assert exact - 1e-9 <= answer.log_partition <= exact + TOLERANCE
        assert min(answer[name][1] for name in "ABC") == 0.0


class TestAnswers:
    @settings(max_examples=20)
    @given(seeds)
    def test_joints_and_counts_are_those_of_the_distribution(self, seed: int):
        spec = frustrated(seed, hard=False)
        answer = ask(spec, {0: 1}, structure="trees")
        counts = np.zeros(spec.n_cells)
        at = 0
        for scope, table in spec.factors:
            joint = answer.joint([spec.labels[v] for v in scope])
            counts[at : at + table.size] = joint.ravel()
            at += table.size
            for axis, v in enumerate(scope):
                others = tuple(a for a in range(len(scope)) if a != axis)
                np.testing.assert_allclose(joint.sum(axis=others), answer[spec.labels[v]], atol=1e-9)
        np.testing.assert_allclose(answer.expected_counts, counts, atol=1e-9)

    def test_counts_are_the_gradient_of_the_settled_bound(self):
        graph = frustrated(5, hard=False, scale=0.4).build().compile()
        method = MeanField(restarts=1, tolerance=1e-12, max_iterations=5000)
        answer = mf.marginals(graph, method=method)
        direction = np.random.default_rng(0).normal(size=graph.structure.n_cells)
        ahead, behind = (
            float(mf.log_partition(graph.with_tables(graph.log_tables + s * 1e-4 * direction), method=method))
            for s in (1, -1)
        )
        assert (ahead - behind) / 2e-4 == pytest.approx(answer.expected_counts @ direction, rel=1e-5)

    def test_joints_within_a_cluster_need_a_factor(self):
        net = mf.MarkovNetwork(dict.fromkeys("ABC", 2))
        net.add_factors([("A", "B"), ("B", "C")], [[3.0, 1.0], [1.0, 2.0]])
        answer = mf.marginals(net, method=MeanField(structure="trees"))
        with pytest.raises(mf.ModelError, match="not of 'A', 'C'"):
            answer.joint(["A", "C"])
        naive = mf.marginals(net, method=MeanField())
        np.testing.assert_allclose(naive.joint(["C", "A"]), np.outer(naive["C"], naive["A"]))

    def test_the_same_seed_gives_the_same_answer(self):
        spec = frustrated(9)
        one, two = (ask(spec, rng=7, start="random", restarts=4) for _ in range(2))
        assert one.log_partition == two.log_partition and (one.values == two.values).all()

    def test_symmetric_models_leave_the_uniform_distribution(self):
        """Without fields it is stationary, and far from the best."""
        net = mf.MarkovNetwork(dict.fromkeys(range(8), 2))
        net.add_factors(list(itertools.combinations(range(8), 2)), [[2.0, 1.0], [1.0, 2.0]])
        uniform = 8 * np.log(2) + 14 * np.log(2)
        for options in ({}, {"start": "random"}):
            answer = mf.log_partition(net, method=MeanField(**options), rng=0)
            assert uniform + 1.0 < float(answer) < float(mf.log_partition(net))

    def test_more_starts_are_never_worse(self):
        spec = frustrated(23, scale=3.0)
        one, many = ask(spec), ask(spec, restarts=10)
        assert one.log_partition < many.log_partition <= spec.oracle().log_partition + TOLERANCE

    def test_without_a_seed_the_default_is_the_same_every_time(self):
        model = frustrated(9).build()
        one, two = (mf.marginals(model, method=MeanField()) for _ in range(2))
        assert (one.values == two.values).all()

    def test_starts_from_an_earlier_answer(self):
        graph = grid(8, 0.7, 1)
        method = MeanField(restarts=1)
        cold = mf.marginals(graph, method=method)
        warm = mf.marginals(graph, init=cold, method=method)
        assert warm.iterations <= 2 < cold.iterations
        assert warm.log_partition >= cold.log_partition - 1e-9
        observed = mf.marginals(graph, {0: 1}, init=cold, method=method)
        assert observed[0].tolist() == [0.0, 1.0]
        with pytest.raises(mf.ModelError, match="about the same variables"):
            mf.marginals(grid(7, 0.7, 1), init=cold, method=method)

    @settings(max_examples=20)
    @given(seeds)
    def test_a_start_on_hard_zeros_is_replaced(self, seed: int):
        spec = frustrated(seed)
        if spec.oracle().impossible:
            return
        soft = mf.marginals(
            spec.build().compile().with_tables(np.maximum(spec.build().compile().log_tables, -1.0)), method=MeanField()
        )
        answer = mf.marginals(spec.build(), init=soft, method=MeanField(max_iterations=1000))
        assert -np.inf < answer.log_partition <= spec.oracle().log_partition + TOLERANCE

    def test_unsettled_probabilities_are_said(self):
        with pytest.warns(ConvergenceWarning, match="mean_field did not converge in 1 iterations"):
            answer = ask(frustrated(1, hard=False), restarts=1, max_iterations=1)
        assert not answer.converged

    @quiet
    @STRUCTURES
    def test_a_callback_stops_it_with_a_bound(self, structure: str):
        graph = grid(6, 1.0, 2)
        exact = float(mf.log_partition(graph, method="junction_tree"))
        answer = mf.log_partition(
            graph, method=MeanField(structure=structure), rng=0, callback=lambda progress: progress.step >= 3
        )
        assert not answer.converged and -np.inf < float(answer) <= exact

    def test_degenerate_models(self):
        assert mf.marginals(mf.MarkovNetwork(), method=MeanField()).log_partition == 0.0
        net = mf.MarkovNetwork({"A": 3, "B": 1})
        net.add_factor([], log_table=-700.5)
        answer = mf.marginals(net, method=MeanField())
        assert answer.log_partition == pytest.approx(np.log(3) - 700.5)
        np.testing.assert_allclose(answer.expected_counts, [1.0])
        net.add_factor([], 0.0)
        with pytest.raises(mf.ImpossibleEvidenceError):
            mf.marginals(net, method=MeanField())

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"structure": "stars"}, "structure of MeanField must be 'naive', 'chains', 'trees' or sets"),
            ({"start": "zero"}, "start of MeanField must be 'uniform' or 'random'"),
            ({"restarts": 0}, "restarts of MeanField must be at least 1, got 0"),
            ({"tolerance": -1.0}, "tolerance of MeanField must be positive"),
        ],
    )
    def test_wrong_settings_are_refused(self, options: dict[str, Any], message: str):
        with pytest.raises(mf.ModelError, match=message):
            MeanField(**options)

    def test_clusters_too_large_for_memory_are_refused(self, monkeypatch: pytest.MonkeyPatch):
        from markovfield.inference.mean_field import clusters

        monkeypatch.setattr(clusters, "memory_limit_bytes", lambda limit: 100.0)
        net = mf.MarkovNetwork(dict.fromkeys("AB", 10))
        net.add_factor(["A", "B"], np.ones((10, 10)))
        with pytest.raises(mf.MemoryLimitError, match="structure='naive'"):
            mf.log_partition(net, method=MeanField(structure="trees"))
