"""Loopy belief propagation against a NumPy flooding of its own, on forests against the oracle, and across schedules."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning

import markovfield as mf
from markovfield.factors.factor_graph import FactorGraph
from markovfield.factors.structure import Structure
from tests.oracle import Oracle
from tests.strategies import Spec, Table, specs_with_evidence

ITERATED = ("synchronous", "sequential", "residual")
TOLERANCE = 1e-9


def bp(schedule: str, **more: Any) -> mf.methods.BeliefPropagation:
    return mf.methods.BeliefPropagation(schedule, **{"tolerance": 1e-13, "max_iterations": 5000, **more})


class Flooding:
    """Sum-product by dictionaries of messages, written without the library; the Bethe value from beliefs alone."""

    def __init__(self, cards: list[int], factors: list[tuple[tuple[int, ...], np.ndarray]], evidence: dict[int, Any]):
        self.cards = cards
        # Evidence as further factors of one variable.
        self.factors = list(factors)
        for v, given_ in evidence.items():
            vector = np.eye(cards[v])[given_] if np.ndim(given_) == 0 else np.asarray(given_, float)
            with np.errstate(divide="ignore"):
                self.factors.append(((v,), np.log(vector)))
        self.edges = [(f, v) for f, (scope, _) in enumerate(self.factors) for v in scope]

    def run(self, sweeps: int = 3000, tolerance: float = 1e-14) -> Flooding:
        down = {edge: np.ones(self.cards[edge[1]]) / self.cards[edge[1]] for edge in self.edges}
        for _ in range(sweeps):
            up = self.up(down)
            new = {}
            for f, v in self.edges:
                scope, table = self.factors[f]
                weights = np.exp(table)
                for axis, u in enumerate(scope):
                    if u != v:
                        weights = weights * up[f, u].reshape([-1 if a == axis else 1 for a in range(len(scope))])
                message = weights.sum(axis=tuple(a for a, u in enumerate(scope) if u != v))
                new[f, v] = message / message.sum()
            moved = max((np.abs(new[e] - down[e]).max() for e in self.edges), default=0.0)
            down = new
            if moved < tolerance:
                break
        self.down, self.moved = down, moved
        return self

    def up(self, down: dict) -> dict:
        out = {}
        for f, v in self.edges:
            message = np.ones(self.cards[v])
            for g, u in self.edges:
                if u == v and g != f:
                    message = message * down[g, u]
            out[f, v] = message / message.sum()
        return out

    def beliefs(self) -> list[np.ndarray]:
        result = []
        for v, card in enumerate(self.cards):
            b = np.ones(card)
            for f, u in self.edges:
                if u == v:
                    b = b * self.down[f, u]
            result.append(b / b.sum())
        return result

    def joint(self, f: int) -> np.ndarray:
        up = self.up(self.down)
        scope, table = self.factors[f]
        b = np.exp(table)
        for axis, u in enumerate(scope):
            b = b * up[f, u].reshape([-1 if a == axis else 1 for a in range(len(scope))])
        return b / b.sum()

    def bethe(self) -> float:
        """Expected log-potentials and entropies of factors, less the entropies of variables counted too often."""
        total = 0.0
        for f, (_, table) in enumerate(self.factors):
            b = self.joint(f)
            keep = b > 0
            total += float((b[keep] * (table[keep] - np.log(b[keep]))).sum())
        for v, b in enumerate(self.beliefs()):
            degree = sum(u == v for _, u in self.edges)
            keep = b > 0
            total += (degree - 1) * float((b[keep] * np.log(b[keep])).sum())
        return total


def cyclic(rng: np.random.Generator, *, scale: float = 0.4, zeros: float = 0.0, n: int = 7) -> Spec:
    """A connected cyclic model of factors of two to four variables, with unary ones, one table used twice."""
    cards = rng.integers(2, 4, n)
    operations: list[Any] = [Table(((v,),), rng.normal(size=cards[v])) for v in range(n) if v % 3]
    pairs = [(v, (v + 1) % n) for v in range(n)] + [(0, n // 2)]
    scopes = [*pairs, tuple(rng.permutation(n)[:3].tolist()), tuple(rng.permutation(n)[:4].tolist())]
    for scope in scopes:
        table = scale * rng.normal(size=cards[list(scope)])
        if zeros:
            table = np.where(rng.random(table.shape) < zeros, -np.inf, table)
            table[(0,) * len(scope)] = 0.1  # all zeros is always possible
        operations.append(Table((scope,), table))
    same = [v for v in range(n) if cards[v] == cards[0]]
    if len(same) > 2:
        tied = ((same[0], same[1]), (same[1], same[2]))
        operations.append(Table(tied, scale * rng.normal(size=(cards[0], cards[0]))))
    return Spec(tuple(cards.tolist()), tuple(operations), tuple(f"x{i}" for i in range(n)))


def evidence_for(spec: Spec, rng: np.random.Generator) -> dict[int, Any]:
    likelihood = rng.random(spec.cardinalities[1])
    likelihood[0] = 0.5
    return {0: 0, 1: likelihood} if rng.random() < 0.7 else {}


def grid(height: int, width: int, states: int, seed: int = 0, scale: float = 0.5, tied: bool = False) -> FactorGraph:
    """A lattice with a table for each edge, or one for all, and a unary factor on each variable."""
    rng = np.random.default_rng(seed)
    at = np.arange(height * width).reshape(height, width)
    pairs = np.concatenate(
        [np.stack([at[:, :-1], at[:, 1:]], -1).reshape(-1, 2), np.stack([at[:-1], at[1:]], -1).reshape(-1, 2)]
    )
    m, n, cells = len(pairs), height * width, states * states
    bases = np.zeros(m, np.int64) if tied else cells * np.arange(m)
    n_pair_cells = cells if tied else cells * m
    structure = Structure.from_arrays(
        np.full(n, states),
        np.concatenate([2 * np.arange(m + 1), 2 * m + 1 + np.arange(n)]),
        np.concatenate([pairs.ravel(), np.arange(n)]),
        np.concatenate([bases, n_pair_cells + states * np.arange(n)]),
        n_cells=n_pair_cells + n * states,
    )
    return FactorGraph(structure, scale * rng.normal(size=structure.n_cells))


class TestAgainstNumPy:
    @pytest.mark.parametrize("schedule", ITERATED)
    @settings(max_examples=15, deadline=None)
    @given(seed=st.integers(0, 2**16), zeros=st.sampled_from([0.0, 0.2]), damping=st.sampled_from([0.0, 0.4]))
    def test_beliefs_and_bethe_value(self, schedule: str, seed: int, zeros: float, damping: float):
        rng = np.random.default_rng(seed)
        spec = cyclic(rng, zeros=zeros)
        evidence = evidence_for(spec, rng)
        reference = Flooding(list(spec.cardinalities), spec.factors, evidence).run()
        if reference.moved > 1e-14:
            return
        method = bp(schedule, damping=damping)
        answer = mf.marginals(spec.build(), evidence=spec.named(evidence), method=method)
        assert answer.converged and answer.guarantee == "approximate"
        for label, belief in zip(spec.labels, reference.beliefs(), strict=True):
            np.testing.assert_allclose(answer[label], belief, rtol=0, atol=TOLERANCE)
            assert (answer[label][belief == 0] == 0).all()
        assert answer.log_partition == pytest.approx(reference.bethe(), abs=1e-9)
        alone = mf.log_partition(spec.build(), evidence=spec.named(evidence), method=method)
        assert float(alone) == pytest.approx(answer.log_partition, abs=1e-12)
        scopes = [set(scope) for scope, _ in spec.factors]
        for f, (scope, _) in enumerate(spec.factors):
            if scopes.index(set(scope)) < f:
                continue  # read off the first factor of its kind
            joint = answer.joint([spec.labels[v] for v in scope])
            np.testing.assert_allclose(joint, reference.joint(f), rtol=0, atol=TOLERANCE)

    @pytest.mark.parametrize("seed", range(4))
    def test_counts_are_the_gradient_of_the_bethe_value(self, seed: int):
        rng = np.random.default_rng(seed)
        spec = cyclic(rng)
        evidence = spec.named(evidence_for(spec, rng))
        graph = spec.build().compile()
        answer = mf.marginals(graph, evidence=evidence, method=bp("sequential"))
        assert answer.converged
        direction = rng.normal(size=len(graph.log_tables))
        step = 1e-4
        values = [
            float(mf.log_partition(graph.with_tables(graph.log_tables + d * direction), evidence, bp("sequential")))
            for d in (-step, step)
        ]
        slope = (values[1] - values[0]) / (2 * step)
        assert answer.expected_counts @ direction == pytest.approx(slope, abs=1e-6)
        assert answer.expected_counts.sum() == pytest.approx(len(spec.factors), abs=1e-9)

    @pytest.mark.parametrize("schedule", ITERATED)
    def test_log_space_says_the_same(self, schedule: str):
        """Adding a constant so large that linear space gives up must change nothing but log Z."""
        graph = cyclic(np.random.default_rng(5)).build().compile()
        far = graph.log_tables.copy()
        first = graph.cells(graph.n_factors - 1)
        far[first.ravel()] -= 2000.0
        plain = mf.marginals(graph, method=bp(schedule))
        logs = mf.marginals(graph.with_tables(far), method=bp(schedule))
        np.testing.assert_allclose(logs.values, plain.values, rtol=0, atol=1e-9)
        tied = int((graph.structure.table_offsets == graph.structure.table_offsets[-1]).sum())
        assert logs.log_partition == pytest.approx(plain.log_partition - 2000.0 * tied, rel=1e-12)
        np.testing.assert_allclose(logs.expected_counts, plain.expected_counts, rtol=0, atol=1e-9)


class TestForests:
    """The iterated schedules know nothing of trees, and must find the exact answer all the same."""

    @pytest.mark.parametrize("schedule", ITERATED)
    @settings(max_examples=40, deadline=None)
    @given(case=specs_with_evidence("forest"))
    def test_agree_with_the_oracle(self, schedule: str, case: tuple[Spec, dict]):
        spec, evidence = case
        check_forest(spec, evidence, bp(schedule))

    @pytest.mark.parametrize("schedule", ITERATED)
    @settings(max_examples=20, deadline=None)
    @given(case=specs_with_evidence("forest", scale=400.0))
    def test_extreme_potentials(self, schedule: str, case: tuple[Spec, dict]):
        spec, evidence = case
        check_forest(spec, evidence, bp(schedule))


def check_forest(spec: Spec, evidence: dict[int, Any], method: mf.methods.BeliefPropagation) -> None:
    oracle = spec.oracle(evidence)
    model, known = spec.build(), spec.named(evidence)
    if oracle.impossible:
        for verb in (mf.log_partition, mf.marginals, mf.decode):
            with pytest.raises(mf.ImpossibleEvidenceError):
                verb(model, evidence=known, method=method)
        return
    answer = mf.marginals(model, evidence=known, method=method)
    assert answer.converged
    assert answer.log_partition == pytest.approx(oracle.log_partition, rel=1e-11, abs=1e-9)
    for v, label in enumerate(spec.labels):
        np.testing.assert_allclose(answer[label], oracle.marginal(v), rtol=0, atol=TOLERANCE)
        assert (answer[label][oracle.marginal(v) == 0] == 0).all(), "an impossible state is possible"
        assert (answer[label][oracle.marginal(v) > 1e-290] > 0).all(), "a possible state is not"
    np.testing.assert_allclose(answer.expected_counts, spec.pool_counts(oracle), rtol=0, atol=TOLERANCE)
    best = mf.decode(model, evidence=known, method=method)
    assert best.score == pytest.approx(oracle.best_score, rel=1e-11, abs=1e-9)
    assert oracle.score(spec.states(best.assignment)) == pytest.approx(oracle.best_score, rel=1e-11, abs=1e-9)
    maxima = answer.max_marginals
    for v, label in enumerate(spec.labels):
        np.testing.assert_allclose(maxima[label], oracle.max_marginal(v), rtol=1e-11, atol=1e-9)


class TestRunning:
    def test_a_warm_start_needs_no_more_sweeps(self):
        graph = grid(12, 12, 3)
        cold = mf.marginals(graph, method=bp("synchronous", tolerance=1e-10))
        again = mf.marginals(graph, method=bp("synchronous", tolerance=1e-10), init=cold)
        assert cold.iterations > 5 and again.iterations <= 2
        np.testing.assert_allclose(again.values, cold.values, atol=1e-9)
        other = mf.marginals(graph, {5: 1}, method=bp("synchronous", tolerance=1e-10), init=cold)
        fresh = mf.marginals(graph, {5: 1}, method=bp("synchronous", tolerance=1e-10))
        np.testing.assert_allclose(other.values, fresh.values, atol=1e-8)

    def test_a_warm_start_forgets_the_zeros_of_other_evidence(self):
        spec = cyclic(np.random.default_rng(2), zeros=0.2)
        model = spec.build()
        first = mf.marginals(model, {"x2": 0}, method=bp("synchronous"))
        for state in range(spec.cardinalities[2]):
            if not spec.oracle({2: state}).impossible:
                warm = mf.marginals(model, {"x2": state}, method=bp("synchronous"), init=first)
                cold = mf.marginals(model, {"x2": state}, method=bp("synchronous"))
                np.testing.assert_allclose(warm.values, cold.values, atol=1e-8)

    def test_init_must_fit(self):
        graph, other = grid(3, 3, 2), grid(3, 4, 2)
        answer = mf.marginals(graph, method=bp("synchronous"))
        with pytest.raises(mf.ModelError, match=r"init .* is an answer about another structure"):
            mf.marginals(other, method=bp("synchronous"), init=answer)
        with pytest.raises(mf.ModelError, match="must be Marginals it answered before, got Marginals of junction_tree"):
            mf.marginals(graph, method=bp("synchronous"), init=mf.marginals(graph, method="junction_tree"))

    @pytest.mark.parametrize("schedule", ITERATED)
    def test_no_convergence_is_a_warning(self, schedule: str):
        rng = np.random.default_rng(0)
        net = mf.MarkovNetwork(dict.fromkeys(range(8), 2))
        for a in range(8):
            net.add_factor([a], log_table=rng.normal(size=2))
            for b in range(a):
                strength = 3.0 * rng.normal()
                net.add_factor([a, b], log_table=[[strength, -strength], [-strength, strength]])
        with pytest.warns(ConvergenceWarning, match="belief_propagation did not converge in 50 iterations"):
            answer = mf.marginals(net, method=mf.methods.BeliefPropagation(schedule, max_iterations=50))
        assert not answer.converged and len(answer.residuals) == 50 and answer.residuals[-1] > 1e-3
        assert np.isfinite(answer.log_partition) and not answer.components.converged.any()
        assert (np.abs(answer.values.reshape(8, 2).sum(axis=1) - 1) < 1e-12).all()

    @pytest.mark.parametrize("schedule", ITERATED)
    def test_stopped_early_it_answers_with_what_it_has(self, schedule: str):
        graph = grid(30, 30, 2, scale=1.5)
        with pytest.warns(ConvergenceWarning):
            answer = mf.marginals(graph, method=bp(schedule), callback=lambda p: p.step > 3)
        assert not answer.converged
        np.testing.assert_allclose(answer.values.reshape(-1, 2).sum(axis=1), 1.0, atol=1e-12)

    @pytest.mark.parametrize("states", [2, 5])
    def test_threads_change_no_bit(self, states: int):
        graph = grid(60, 70, states)
        one = mf.marginals(graph, method=bp("synchronous", tolerance=1e-6), n_jobs=1)
        three = mf.marginals(graph, method=bp("synchronous", tolerance=1e-6), n_jobs=3)
        np.testing.assert_array_equal(one.values, three.values)
        assert one.log_partition == three.log_partition and one.residuals == three.residuals

    def test_settings_are_checked(self):
        for more, message in (
            ({"schedule": "sideways"}, "schedule .* must be 'auto', 'tree', 'synchronous'"),
            ({"damping": 1.0}, r"damping .* below 1, got 1\.0"),
            ({"tolerance": 0.0}, "tolerance .* positive"),
            ({"max_iterations": 0}, "max_iterations .* at least 1"),
        ):
            with pytest.raises(mf.ModelError, match=message):
                mf.methods.BeliefPropagation(**more)

    def test_a_joint_across_factors_is_refused(self):
        answer = mf.marginals(grid(3, 3, 2), method=bp("synchronous"))
        assert answer.joint([1, 0]).shape == (2, 2)
        with pytest.raises(mf.ModelError, match=r"no factor holds \[0, 8\] together"):
            answer.joint([0, 8])

    def test_impossible_is_found_where_arc_consistency_finds_it(self):
        net = mf.MarkovNetwork(dict.fromkeys("ABC", 3))
        for pair in ("AB", "BC", "CA"):
            net.add_factor(list(pair), log_table=np.where(np.arange(3)[:, None] < np.arange(3), 0.0, -np.inf))
        for schedule in ITERATED:
            with pytest.raises(mf.ImpossibleEvidenceError, match="even without evidence"):
                mf.marginals(net, method=mf.methods.BeliefPropagation(schedule))


class TestUnions:
    @pytest.mark.parametrize("schedule", ["synchronous", "sequential"])
    def test_a_union_is_its_components(self, schedule: str):
        graphs = [cyclic(np.random.default_rng(s), zeros=0.1 * (s % 3 == 1)).build().compile() for s in range(12)]
        # One component that linear space cannot hold must not disturb the others.
        graphs.append(graphs[0].with_tables(graphs[0].log_tables * 1500.0))
        union = FactorGraph.union(graphs)
        method = mf.methods.BeliefPropagation(schedule, tolerance=1e-9, max_iterations=200, damping=0.2)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            whole = mf.marginals(union, method=method)
            single = [mf.marginals(g, method=method) for g in graphs]
        np.testing.assert_array_equal(whole.values, np.concatenate([a.values for a in single]))
        assert len(whole.components) == len(graphs)
        np.testing.assert_allclose(whole.components.log_partition, [a.log_partition for a in single], rtol=1e-12)
        assert whole.components.converged.tolist() == [a.converged for a in single]
        assert whole.components.iterations.tolist() == [a.iterations for a in single]
        counts = np.concatenate([a.expected_counts for a in single])
        np.testing.assert_allclose(whole.expected_counts, counts, atol=1e-12)


class TestDecode:
    @pytest.mark.parametrize("schedule", ITERATED)
    @pytest.mark.parametrize("seed", range(5))
    def test_an_attractive_grid_is_decoded(self, schedule: str, seed: int):
        """Max-product with choices one after the other; the score is that of the assignment, nothing is proven."""
        rng = np.random.default_rng(seed)
        net = mf.MarkovNetwork(dict.fromkeys(range(12), 2))
        factors = []
        for v in range(12):
            unary = rng.normal(size=2)
            net.add_factor([v], log_table=unary)
            factors.append(((v,), unary))
            for u in (v + 1,) * (v % 4 < 3) + (v + 4,) * (v < 8):
                table = 0.4 * np.eye(2)
                net.add_factor([v, u], log_table=table)
                factors.append(((v, u), table))
        oracle = Oracle([2] * 12, factors, {3: 1})
        best = mf.decode(net, {3: 1}, method=mf.methods.BeliefPropagation(schedule, damping=0.3))
        assert best.score == pytest.approx(oracle.best_score)
        assert oracle.score([best[v] for v in range(12)]) == pytest.approx(best.score)
        assert best.gap == np.inf and not best.optimal and best.converged

    def test_ties_are_broken_alike_on_a_cycle(self):
        net = mf.MarkovNetwork(dict.fromkeys(range(6), 2))
        net.add_factors([(i, (i + 1) % 6) for i in range(6)], log_table=[[0.0, -np.inf], [-np.inf, 0.0]])
        best = mf.decode(net, method=mf.methods.BeliefPropagation("synchronous"))
        assert len(set(best.assignment.values())) == 1 and best.score == 0.0


@pytest.mark.parametrize("schedule", ["synchronous", "sequential", "residual"])
def test_decoding_is_scored_on_the_users_graph(schedule: str):
    """Auxiliary variables of a structured factor may disagree; the assignment is none the worse for it."""
    rng = np.random.default_rng(1)
    net = mf.MarkovNetwork(dict.fromkeys(range(4), 2))
    for v in range(4):
        net.add_factor([v], log_table=rng.normal(size=2) * 0.5)
    net.add_at_most_one({1: 1, 2: 1, 0: 1}, {3: 0}, weight=-0.4)
    net.add_factor([0, 1, 2], log_table=rng.normal(size=(2, 2, 2)))
    method = mf.methods.BeliefPropagation(schedule)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        answer = mf.decode(net, method=method)
        top = mf.marginals(net, method=method).max_marginals
    assert np.isfinite(answer.score) and answer.score == pytest.approx(net.compile().score(answer.assignment))
    assert all(np.isfinite(values).any() for values in top.values())


@pytest.mark.parametrize("schedule", ["auto", "synchronous", "sequential", "residual"])
def test_a_constant_zero_rules_everything_out(schedule: str):
    net = mf.MarkovNetwork({0: 2, 1: 2})
    net.add_factor([0, 1], [[1.0, 2.0], [3.0, 1.0]])
    net.add_factor([], log_table=-np.inf)
    with pytest.raises(mf.ImpossibleEvidenceError, match="probability zero"):
        mf.marginals(net, method=mf.methods.BeliefPropagation(schedule))
    with pytest.raises(mf.ImpossibleEvidenceError, match="probability zero"):
        mf.decode(net, method=mf.methods.BeliefPropagation(schedule))


@pytest.mark.parametrize("schedule", ["synchronous", "sequential", "residual"])
def test_messages_that_diverge_are_not_called_impossible(schedule: str):
    """Without damping, logs of messages double with every pass here: after a thousand they would be minus infinity."""
    inf = np.inf
    net = mf.MarkovNetwork({"x0": 4, "x1": 2, "x2": 2, "x3": 2, "x4": 2, "x6": 2, "x7": 3})
    net.add_factor(["x0"], log_table=[2.0, -inf, 0.0, 0.0])
    net.add_factor(["x1", "x3", "x6"], log_table=[[[0, 0], [0, 0]], [[0, -inf], [0, 0]]])
    table = [
        [[[0, 0], [0, 0]], [[0, -inf], [-inf, 1]], [[-inf, -inf], [1, -inf]], [[-inf, -inf], [1, -2]]],
        [[[-1, -inf], [-inf, -inf]], [[-inf, -inf], [-3, 2]], [[-inf, -1], [-inf, 2]], [[-1, -inf], [-inf, -inf]]],
        [[[0, -1], [-inf, 1]], [[2, 2], [1, -inf]], [[-inf, -inf], [-1, -inf]], [[-inf, 1], [-1, 0]]],
    ]
    scopes = [["x7", "x0", "x6", "x6"], ["x7", "x0", "x1", "x4"], ["x7", "x0", "x2", "x3"], ["x7", "x0", "x6", "x2"]]
    net.add_factors(scopes, log_table=table)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        answer = mf.marginals(net, {"x1": 1, "x6": 1}, method=mf.methods.BeliefPropagation(schedule=schedule))
    assert answer.guarantee == "approximate"
    for name in net.variables:
        assert answer[name].sum() == pytest.approx(1.0)
