"""log Z of each example of a union: by enumeration of each example, over methods, with evidence."""

from __future__ import annotations

import pickle
import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import markovfield as mf
from markovfield.factors.factor_graph import FactorGraph
from markovfield.factors.structure import Structure
from markovfield.inference.core.component_counts import ComponentCounts, counts_by_component, parts_of
from markovfield.inference.core.counts import resolve_counts
from markovfield.inference.core.evidence import Evidence
from markovfield.inference.core.running import Running
from tests.strategies import Cpt, Spec, random_evidence, random_spec, specs_with_evidence

Example = tuple[Spec, dict[int, Any]]


def in_scope(spec: Spec) -> Spec:
    """Without factors of no variable, which belong to no example."""
    kept = []
    for op in spec.operations:
        literals, scopes = getattr(op, "literals", None), getattr(op, "scopes", None)
        if isinstance(op, Cpt) or literals or (scopes and all(scopes)):
            kept.append(op)
    return Spec(spec.cardinalities, tuple(kept), spec.labels)


class Union:
    """Models side by side, with evidence about each."""

    def __init__(self, examples: list[Example]) -> None:
        self.examples = [(in_scope(spec), evidence) for spec, evidence in examples]
        self.graph = FactorGraph.union(spec.build().compile() for spec, _ in self.examples)
        self.offsets = np.cumsum([0] + [spec.n_variables for spec, _ in self.examples])
        states, likelihoods = np.full(self.offsets[-1], -1, np.int32), []
        for i, (_, evidence) in enumerate(self.examples):
            for v, known in evidence.items():
                if np.ndim(known) == 0:
                    states[self.offsets[i] + v] = known
                else:
                    with np.errstate(divide="ignore"):
                        likelihoods.append((int(self.offsets[i]) + v, np.log(known)))
        states.flags.writeable = False
        self.evidence = Evidence(states, tuple(likelihoods))
        self.oracles = [spec.oracle(evidence) for spec, evidence in self.examples]
        self.possible = not any(oracle.impossible for oracle in self.oracles)

    def ask(self, method: Any, **keywords: Any) -> ComponentCounts:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return counts_by_component(
                resolve_counts(method), self.graph, self.evidence, self.offsets, running=Running(), **keywords
            )

    def check(self, method: Any) -> ComponentCounts | None:
        """What every method must say: sums that fit, and per example what it guarantees."""
        try:
            found = self.ask(method)
        except (mf.ModelError, mf.ImpossibleEvidenceError):
            return None
        values, counts, answer = found
        whole = float(np.sum(answer.log_partition))
        if np.isfinite(whole):
            assert values.sum() == pytest.approx(whole, rel=1e-12, abs=1e-9)
        truth = np.array([oracle.log_partition for oracle in self.oracles])
        if answer.guarantee == "exact":
            np.testing.assert_allclose(values, truth, atol=1e-8)
            at = 0
            for (spec, _), oracle in zip(self.examples, self.oracles, strict=True):
                own = counts[at : at + spec.n_cells]
                np.testing.assert_allclose(own, spec.pool_counts(oracle), atol=1e-8)
                at += spec.n_cells
        elif answer.guarantee == "upper":
            assert (values >= truth - 1e-7).all()
        elif answer.guarantee == "lower":
            assert (values <= truth + 1e-7).all()
        return found


@settings(max_examples=60, deadline=None)
@given(st.lists(specs_with_evidence(), min_size=1, max_size=3))
def test_graphs_by_every_method_that_tells_components_apart(examples: list[Example]):
    union = Union(examples)
    if not union.possible:
        with pytest.raises(mf.ImpossibleEvidenceError):
            union.ask("junction_tree")
        return
    exact = union.check("junction_tree")
    assert exact is not None and exact.answer.guarantee == "exact"
    for method in ("belief_propagation", "tree_reweighted", "mean_field"):
        union.check(method)


@settings(max_examples=60, deadline=None)
@given(st.lists(specs_with_evidence("forest", clauses=True), min_size=1, max_size=3))
def test_forests_are_exact_by_messages(examples: list[Example]):
    union = Union(examples)
    if union.possible:
        found = union.check("belief_propagation")
        assert found is not None and found.answer.guarantee == "exact"
        assert len(found.answer.components) >= len(union.examples)


@settings(max_examples=30, deadline=None)
@given(st.lists(specs_with_evidence("bayesian"), min_size=1, max_size=3))
def test_bayesian_networks(examples: list[Example]):
    union = Union(examples)
    if union.possible:
        for method in ("junction_tree", "belief_propagation", "mean_field"):
            union.check(method)


@pytest.mark.parametrize("method", ["enumeration", "variable_elimination", "mini_bucket", "generalized_bp", "sandwich"])
@pytest.mark.parametrize("seed", range(4))
def test_methods_without_components_are_asked_one_by_one(method: str, seed: int):
    specs = [random_spec(10 * seed + i, hard=False) for i in range(3)]
    union = Union([(spec, random_evidence(seed, spec, virtual=False)) for spec in specs])
    found = union.check(method)
    assert found is not None and found.answer.components is None


@pytest.mark.parametrize("method", ["junction_tree", "belief_propagation", "tree_reweighted", "mean_field"])
@pytest.mark.parametrize("seed", range(6))
def test_pools_that_linear_space_shifts_and_likelihoods(method: str, seed: int):
    """Log-potentials above 30 are shifted for all factors at once, and in log space not at all."""
    specs = [random_spec(10 * seed + i, hard=False, scale=60.0 if seed % 2 else 15.0) for i in range(3)]
    union = Union([(spec, random_evidence(seed, spec)) for spec in specs])
    if union.possible:
        union.check(method)


@settings(max_examples=40, deadline=None)
@given(specs_with_evidence(), st.lists(st.integers(0, 3), min_size=1, max_size=4))
def test_weights_where_examples_share_all_cells(example: Example, weights: list[int]):
    """The same pool for all examples, each with its own evidence: counts weighted as if one by one."""
    spec = in_scope(example[0])
    whole = spec.build().compile()
    s, n = whole.structure, len(weights)
    structure = Structure.from_arrays(
        np.tile(s.cardinalities, n),
        np.concatenate([[0], *(s.scope_offsets[1:] + i * len(s.scopes) for i in range(n))]),
        np.concatenate([s.scopes + i * s.n_variables for i in range(n)]),
        np.tile(s.table_offsets, n),
        np.tile(s.table_strides, n),
        n_cells=s.n_cells,
        kind=np.tile(s.kind, n),
    )
    known = [{v: x for v, x in example[1].items() if np.ndim(x) == 0 and i % 2} for i in range(n)]
    states = np.full(structure.n_variables, -1)
    for i, row in enumerate(known):
        for v, state in row.items():
            states[i * s.n_variables + v] = state
    oracles = [spec.oracle(row) for row in known]
    if any(oracle.impossible for oracle in oracles):
        return
    found = counts_by_component(
        resolve_counts("junction_tree"),
        FactorGraph(structure, whole.log_tables),
        Evidence.from_clamps(structure, states),
        np.arange(n + 1) * s.n_variables,
        weights=np.array(weights, float),
        running=Running(),
    )
    np.testing.assert_allclose(found.log_partition, [oracle.log_partition for oracle in oracles], atol=1e-8)
    wanted = sum(weight * spec.pool_counts(oracle) for weight, oracle in zip(weights, oracles, strict=True))
    np.testing.assert_allclose(found.counts, wanted, atol=1e-8)


@pytest.mark.parametrize("method", ["gibbs", "likelihood_weighting", "annealed_importance"])
def test_samplers_know_no_log_partition(method: str):
    net = mf.BayesianNetwork({"A": 2, "B": 2})
    net.add_cpt("A", [], [0.3, 0.7])
    net.add_cpt("B", [], [0.5, 0.5])
    graph = net.compile()
    evidence = Evidence.parse(graph.structure, {"B": 1})
    values, counts, answer = counts_by_component(
        resolve_counts(method), graph, evidence, [0, 1, 2], running=Running(), rng=0, n_samples=4000
    )
    assert np.isnan(values).all() and len(values) == 2
    np.testing.assert_allclose(counts, [0.3, 0.7, 0.0, 1.0], atol=0.05)
    assert answer.standard_errors is not None
    virtual = Evidence.parse(graph.structure, {"B": [0.5, 1.0]})
    with pytest.raises(mf.ModelError, match="which samples, take observed states only"):
        counts_by_component(resolve_counts(method), graph, virtual, [0, 1, 2], running=Running())


def grids(n: int, seed: int = 0) -> tuple[FactorGraph, list[int]]:
    """So many 4 x 4 grids of three states."""
    rng = np.random.default_rng(seed)
    parts = []
    for _ in range(n):
        net = mf.MarkovNetwork({(4 * i + j): 3 for i in range(4) for j in range(4)})
        for v in range(16):
            net.add_factor([v], log_table=rng.normal(size=3))
            if v % 4 < 3:
                net.add_factor([v, v + 1], log_table=0.7 * rng.normal(size=(3, 3)))
            if v < 12:
                net.add_factor([v, v + 4], log_table=0.7 * rng.normal(size=(3, 3)))
        parts.append(net.compile())
    return FactorGraph.union(parts), [16 * i for i in range(n + 1)]


@pytest.mark.parametrize("method", ["belief_propagation", "tree_reweighted", "mean_field"])
@pytest.mark.parametrize("clamped", [False, True])
def test_a_warm_start_ends_at_the_same_fixed_point_in_fewer_steps(method: str, clamped: bool):
    graph, offsets = grids(5)
    chosen = resolve_counts(method)
    states = np.full(graph.n_variables, -1)
    if clamped:
        states[::16] = 1
    evidence = Evidence.from_clamps(graph.structure, states)
    first = counts_by_component(chosen, graph, evidence, offsets, running=Running())
    step = 1e-3 * np.random.default_rng(1).normal(size=graph.structure.n_cells)
    moved = graph.with_tables(graph.log_tables + step)
    cold = counts_by_component(chosen, moved, evidence, offsets, running=Running())
    warm = counts_by_component(chosen, moved, evidence, offsets, running=Running(), init=first.answer)
    assert warm.answer.iterations < cold.answer.iterations
    tolerance = 100 * chosen.tolerance
    np.testing.assert_allclose(warm.log_partition, cold.log_partition, atol=tolerance)
    np.testing.assert_allclose(warm.counts, cold.counts, atol=tolerance)


@pytest.mark.parametrize("method", ["belief_propagation", "tree_reweighted", "mean_field", "junction_tree"])
def test_large_unions_do_not_depend_on_threads_nor_on_their_size(method: str):
    """Components run side by side, and come to an end each for itself."""
    graph, offsets = grids(300)
    s = graph.structure
    chosen = resolve_counts(method if method != "tree_reweighted" else mf.methods.TreeReweighted(n_trees=4))
    free = Evidence.parse(s, None)
    found = [counts_by_component(chosen, graph, free, offsets, running=Running(n_jobs=jobs)) for jobs in (1, 2)]
    np.testing.assert_array_equal(found[0].log_partition, found[1].log_partition)
    np.testing.assert_array_equal(found[0].counts, found[1].counts)
    half = FactorGraph(*_first(graph, 150))
    alone = counts_by_component(chosen, half, Evidence.parse(half.structure, None), offsets[:151], running=Running())
    np.testing.assert_allclose(found[0].log_partition[:150], alone.log_partition, rtol=1e-12)
    np.testing.assert_allclose(found[0].counts[: len(alone.counts)], alone.counts, atol=1e-12)


def _first(graph: FactorGraph, n: int) -> tuple[Structure, Any]:
    """The first so many examples."""
    s = graph.structure
    m, v = n * s.n_factors // 300, n * 16
    cells = n * s.n_cells // 300
    axes = s.scope_offsets[m]
    structure = Structure.from_arrays(
        s.cardinalities[:v],
        s.scope_offsets[: m + 1],
        s.scopes[:axes],
        s.table_offsets[:m],
        s.table_strides[:axes],
        n_cells=cells,
    )
    return structure, graph.log_tables[:cells]


def test_empty_examples_and_several_components_in_one():
    net = mf.MarkovNetwork(dict.fromkeys("ABCD", 2))
    net.add_factor(["A", "B"], [[3.0, 1.0], [1.0, 3.0]])
    net.add_factor(["D"], [1.0, 4.0])
    graph = net.compile()
    free = Evidence.parse(graph.structure, None)
    for method in ("junction_tree", "belief_propagation", "tree_reweighted", "mean_field", "enumeration"):
        found = counts_by_component(resolve_counts(method), graph, free, [0, 0, 3, 3, 4], running=Running())
        wanted = [1.0, 16.0, 1.0, 5.0]
        if found.answer.guarantee == "exact":
            np.testing.assert_allclose(np.exp(found.log_partition), wanted)
        else:
            np.testing.assert_allclose(np.exp(found.log_partition)[[0, 2, 3]], np.array(wanted)[[0, 2, 3]])


def test_what_is_refused():
    net = mf.MarkovNetwork(dict.fromkeys("ABC", 2))
    net.add_factor(["A", "B"], [[3.0, 1.0], [1.0, 3.0]])
    graph = net.compile()
    free, tree = Evidence.parse(graph.structure, None), resolve_counts("junction_tree")
    with pytest.raises(mf.ModelError, match=r"factor 0 joins variables of examples \[0, 1\]"):
        counts_by_component(tree, graph, free, [0, 1, 3], running=Running())
    with pytest.raises(mf.ModelError, match="variable_offsets must rise from 0 to 3"):
        counts_by_component(tree, graph, free, [0, 4], running=Running())
    with pytest.raises(mf.ModelError, match="weights of examples must be 2 finite numbers"):
        counts_by_component(tree, graph, free, [0, 2, 3], weights=[1.0], running=Running())
    net.add_factor([], 2.0)
    graph = net.compile()
    free = Evidence.parse(graph.structure, None)
    with pytest.raises(mf.ModelError, match="factor 1 has no variable, so it belongs to no example"):
        counts_by_component(tree, graph, free, [0, 2, 3], running=Running())
    assert counts_by_component(tree, graph, free, [0, 3], running=Running()).log_partition == pytest.approx(np.log(32))


def test_parts_read_their_stretch_of_the_pool():
    graph, offsets = grids(3)
    for part in parts_of(graph.structure, offsets):
        assert part.structure.n_variables == 16 and part.last_cell - part.first_cell == part.structure.n_cells
    assert parts_of(graph.structure, offsets) is parts_of(graph.structure, offsets)


@pytest.mark.parametrize("method", ["junction_tree", "belief_propagation"])
def test_components_survive_a_copy(method: str):
    graph, _ = grids(2)
    answer = mf.marginals(graph, method=method)
    copy = pickle.loads(pickle.dumps(answer))
    np.testing.assert_array_equal(copy.components.log_partition, answer.components.log_partition)
    assert answer.components.log_partition.sum() == pytest.approx(answer.log_partition)
