"""Structured kinds of factor through the builder, the factor graph and the exact methods, against expanded tables."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import markovfield as mf
import markovfield.io as mio
from markovfield.factors import factor_kinds
from markovfield.factors import kinds_kernel as kinds
from markovfield.factors.factor_graph import FactorGraph
from markovfield.factors.factor_kinds import CARDINALITY, CLAUSE, DISTANCE, PARITY, TABLE
from markovfield.factors.structure import Structure
from tests.oracle import Oracle
from tests.patience import patience
from tests.strategies import (
    Apart,
    Counted,
    Drawn,
    Spec,
    Table,
    _log_table,
    _scope,
    _structured,
    build_evidence,
    random_spec,
    specs_with_evidence,
)

METHODS = ["enumeration", "junction_tree", "variable_elimination"]


@st.composite
def structured_specs(draw: Any, hard: bool = True) -> tuple[Spec, dict[int, Any]]:
    """A few variables, one to four structured factors, some unary ones, evidence."""
    choose = Drawn(draw)
    cards = tuple((2, 3, 2, 4, 1)[choose.integer(0, 4)] for _ in range(choose.integer(2, 6)))
    operations = []
    for _ in range(choose.integer(1, 4)):
        scope = _scope(choose, cards, choose.integer(1, 5), distinct=True)
        operations.append(_structured(choose, cards, scope, hard))
    for v in range(len(cards)):
        if choose.integer(0, 1):
            operations.append(Table(((v,),), _log_table(choose, (cards[v],), 1.5, hard)))
    spec = Spec(cards, tuple(operations), tuple(f"x{i}" for i in range(len(cards))))
    return spec, build_evidence(choose, spec)


class TestInference:
    @pytest.mark.parametrize("method", METHODS)
    @given(case=structured_specs())
    @settings(max_examples=60, deadline=None)
    def test_every_answer(self, method: str, case: tuple[Spec, dict]):
        spec, evidence = case
        net, oracle = spec.build(), spec.oracle(evidence)
        named = spec.named(evidence)
        if oracle.impossible:
            with pytest.raises(mf.ImpossibleEvidenceError):
                mf.marginals(net, named, method=method)
            return
        answer = mf.marginals(net, named, method=method)
        assert answer.log_partition == pytest.approx(oracle.log_partition, abs=1e-9)
        for v, label in enumerate(spec.labels):
            np.testing.assert_allclose(answer[label], oracle.marginal(v), atol=1e-9)
        np.testing.assert_allclose(answer.expected_counts, spec.pool_counts(oracle), atol=1e-9)
        for v, label in enumerate(spec.labels):
            np.testing.assert_allclose(answer.max_marginals[label], oracle.max_marginal(v), atol=1e-9)
        decoded = mf.decode(net, named, n_best=4, method=method)
        np.testing.assert_allclose([s.score for s in decoded.n_best], oracle.n_best(4), atol=1e-9)
        assert tuple(spec.states(decoded.assignment)) in oracle.maximisers()

    @given(case=structured_specs(hard=False))
    @settings(max_examples=25, deadline=None)
    def test_counts_are_the_gradient_of_log_z(self, case: tuple[Spec, dict]):
        spec, evidence = case
        graph = spec.build().compile()
        s = graph.structure
        counts = mf.marginals(graph, spec.named(evidence), method="junction_tree").expected_counts

        def log_z(pool: np.ndarray) -> float:
            moved = graph.with_tables(pool)
            factors = [(s.scope(f).tolist(), moved.table(f)) for f in range(s.n_factors)]
            return Oracle(s.cardinalities.tolist(), factors, evidence).log_partition

        for cell in range(min(s.n_cells, 12)):
            step = np.zeros(s.n_cells)
            step[cell] = 1e-5
            slope = (log_z(graph.log_tables + step) - log_z(graph.log_tables - step)) / 2e-5
            assert counts[cell] == pytest.approx(slope, abs=1e-7)

    @given(case=structured_specs())
    @settings(max_examples=40, deadline=None)
    def test_tables_scores_unions_and_round_trips(self, case: tuple[Spec, dict], tmp_path_factory):
        spec, _ = case
        net, oracle = spec.build(), spec.oracle()
        graph = net.compile()
        for f, (scope, table) in enumerate(spec.factors):
            order = [scope.index(v) for v in graph.structure.scope(f).tolist()]  # positive literals come first
            np.testing.assert_array_equal(graph.table(f), table.transpose(order))
        scores = oracle.scores.astype(float)
        np.testing.assert_allclose(graph.score(oracle.states), scores, atol=1e-12)
        together = FactorGraph.union([graph, graph])
        both = np.hstack([oracle.states, oracle.states[::-1]])
        np.testing.assert_allclose(together.score(both), scores + scores[::-1], atol=1e-12)
        path = tmp_path_factory.mktemp("kinds") / "model.mfz"
        for model in (net, graph, mf.MarkovNetwork.from_factor_graph(graph)):
            mio.save(model, path)
            again = mio.load(path).compile()
            for name in ("kind", "scopes", "scope_offsets", "table_offsets", "table_strides"):
                np.testing.assert_array_equal(getattr(again.structure, name), getattr(graph.structure, name))
            np.testing.assert_array_equal(again.log_tables, graph.log_tables)

    @pytest.mark.parametrize("seed", range(4))
    def test_beside_a_noisy_max(self, seed: int):
        """Whose contributions are summed while the counters of the other kinds are maximised."""
        rng = np.random.default_rng(seed)
        directed = mf.BayesianNetwork({**dict.fromkeys(range(4), 2), "y": 3})
        for i in range(4):
            directed.add_cpt(i, [], rng.dirichlet([1, 1]))
        directed.add_noisy_max("y", range(4), [rng.dirichlet(np.ones(3), 2) for _ in range(4)], [0.8, 0.1, 0.1])
        net = directed.to_markov_network()
        net.add_potts([[0, 1], [1, 2]], 1.0)
        net.add_parity({0: 1, 3: 1}, weight=1.3)
        net.add_exactly(2, dict.fromkeys(range(4), 1), weight=0.7)
        net.add_truncated([["y", 0]], 0.5, 2, power=2)
        graph = net.compile()
        s = graph.structure
        oracle = Oracle(s.cardinalities.tolist(), [(s.scope(f).tolist(), graph.table(f)) for f in range(s.n_factors)])
        for method in METHODS:
            found = mf.decode(net, n_best=5, method=method)
            np.testing.assert_allclose([x.score for x in found.n_best], oracle.n_best(5), atol=1e-9)
            answer = mf.marginals(net, method=method)
            assert answer.log_partition == pytest.approx(oracle.log_partition, abs=1e-9)
            np.testing.assert_allclose(answer.max_marginals["y"], oracle.max_marginal(4), atol=1e-9)

    def test_aggregates(self):
        """Counting, entropy and the lowest score read the factors' own cells."""
        net = mf.MarkovNetwork(dict.fromkeys("ABCD", 3))
        net.add_truncated([["A", "B"], ["B", "C"]], 0.7, 2)
        net.add_parity({"A": 0, "C": 1, "D": 2}, weight=0.4)
        net.add_exactly(1, {"A": 1, "B": 1, "D": 1})
        graph = net.compile()
        factors = [(graph.structure.scope(f).tolist(), graph.table(f)) for f in range(graph.n_factors)]
        oracle = Oracle([3] * 4, factors)
        assert mf.analysis.aggregate(net, "counting") == oracle.count
        assert mf.analysis.aggregate(net, "entropy") == pytest.approx(oracle.entropy)
        soft = FactorGraph(graph.structure, np.where(np.isneginf(graph.log_tables), -9.0, graph.log_tables))
        factors = [(graph.structure.scope(f).tolist(), soft.table(f)) for f in range(graph.n_factors)]
        assert mf.analysis.aggregate(soft, "min_sum") == pytest.approx(Oracle([3] * 4, factors).lowest_score)


class TestBuilder:
    """Predicates written in Python decide what the tables must be."""

    @pytest.mark.parametrize("weight", [np.inf, 1.5, -2.0])
    @pytest.mark.parametrize(
        ("method", "arguments", "predicate"),
        [
            ("or", {}, any),
            ("and", {}, all),
            ("clause", {}, any),
            ("parity", {}, lambda t: sum(t) % 2 == 1),
            ("parity", {"odd": False}, lambda t: sum(t) % 2 == 0),
            ("at_most_one", {}, lambda t: sum(t) <= 1),
            *(("exactly", {"k": k}, lambda t, k=k: sum(t) == k) for k in range(5)),
        ],
    )
    def test_weighted(self, method: str, arguments: dict, predicate: Any, weight: float):
        cards = {"A": 2, "B": ["x", "y", "z"], "C": 2, "D": 3}
        net = mf.MarkovNetwork(cards)
        positive, negative = {"A": 1, "B": "z"}, {"C": 1, "D": 0}
        getattr(net, f"add_{method}")(**arguments, positive=positive, negative=negative, weight=weight)
        table = net.compile().table(0)
        yes, no = (0.0, -np.inf) if weight == np.inf else (weight, 0.0)
        for a, b, c, d in product(range(2), range(3), range(2), range(3)):
            truth = (a == 1, b == 2, c != 1, d != 0)
            assert table[a, b, c, d] == (yes if predicate(truth) else no)

    @pytest.mark.parametrize("size", [2, 3, 4])
    def test_cardinality(self, size: int):
        net = mf.MarkovNetwork(dict.fromkeys("ABC", 2))
        potentials = np.arange(size) ** 2.0
        assert net.add_cardinality(potentials, {"A": 1, "C": 0}, {"B": 1}) == 0
        table = net.compile().table(0)  # its axes are A, C, B
        for a, b, c in product(range(2), repeat=3):
            assert table[a, c, b] == potentials[min((a == 1) + (c == 0) + (b != 1), size - 1)]

    def test_potts_and_truncated(self):
        net = mf.MarkovNetwork({"A": 4, "B": 4, "C": 6})
        assert net.add_potts([["A", "B"], ["B", "C"]], 1.5, -0.5) == range(2)
        assert net.add_truncated([["A", "C"]], 0.5, 2.5) == range(2, 3)
        assert net.add_truncated([["C", "A"]], 0.5, 5, power=2) == range(3, 4)
        assert net.add_truncated([["A", "B"]], -1.0, power=2) == range(4, 5)
        assert net.add_truncated([["A", "B"]], 2.0, 0.25) == range(5, 6)
        assert net.add_potts([], 1.0) == range(6, 6)
        graph = net.compile()
        a, c = np.arange(4.0), np.arange(6.0)
        np.testing.assert_array_equal(graph.table(0), np.where(np.eye(4), 1.5, -0.5))
        np.testing.assert_array_equal(graph.table(1), np.where(np.eye(4, 6), 1.5, -0.5))
        np.testing.assert_array_equal(graph.table(2), -0.5 * np.minimum(abs(a[:, None] - c), 2.5))
        np.testing.assert_array_equal(graph.table(3), -0.5 * np.minimum((c[:, None] - a) ** 2, 5))
        np.testing.assert_array_equal(graph.table(4), (a[:, None] - a) ** 2)
        np.testing.assert_array_equal(graph.table(5), -0.5 * (1 - np.eye(4)))
        assert graph.structure.n_cells == 2 + 4 + 4 + 4 + 2

    @pytest.mark.parametrize(
        ("method", "arguments", "message"),
        [
            ("potts", ([["A"]], 1.0), "a Potts factor joins two variables, got a scope of 1"),
            ("potts", ([["A", "X"]], 1.0), "no variable 'X'"),
            ("potts", (["AB"], 1.0), r"a scope is a sequence of variable names; write \['AB'\]"),
            ("potts", ([["A", "B"]], np.nan), "a Potts factor has a log-potential that is not a number below"),
            ("potts", ([["A", "B"]], np.inf), "a Potts factor has a log-potential that is not a number below"),
            ("truncated", ([["A", "B"]], np.inf), "a truncated factor needs a finite weight, got inf"),
            ("truncated", ([["A", "B"]], 1.0, 0.0), "needs a truncation above zero, got 0.0"),
            ("truncated", ([["A", "B"]], 1.0, np.nan), "needs a truncation above zero, got nan"),
            ("parity", ({"A": 1}, {"A": 0}), "a parity names the variable 'A' twice"),
            ("parity", (["A"],), "a parity takes mappings of variables to states, got list"),
            ("at_most_one", ({"A": 5},), "state index 5 of variable 'A'"),
            ("at_most_one", ({"A": 1}, {"A": 1}), "an at-most-one names the variable 'A' twice"),
            ("exactly", (3, {"A": 1, "B": 1}), "of 2 literals exactly 0 to 2 can hold, got 3"),
            ("exactly", (-1, {"A": 1}), "of 1 literals exactly 0 to 1 can hold, got -1"),
            ("exactly", (1.0, {"A": 1}), "exactly 0 to 1 can hold, got 1.0"),
            ("cardinality", ([1.0], {"A": 1}), r"on 1 literals needs a vector of 2 to 2 .*, got shape \(1,\)"),
            ("cardinality", ([1.0, 2.0, 3.0], {"A": 1}), r"2 to 2 log-potentials, got shape \(3,\)"),
            ("cardinality", ([[1.0, 2.0]], {"A": 1}), r"got shape \(1, 2\)"),
            ("cardinality", (["x", "y"], {"A": 1}), "a cardinality potential needs a vector of numbers"),
            ("cardinality", ([0.0, np.inf], {"A": 1}), "a log-potential that is not a number below"),
        ],
    )  # fmt: skip
    def test_refusals(self, method: str, arguments: tuple, message: str):
        net = mf.MarkovNetwork({"A": 2, "B": 2})
        with pytest.raises(mf.ModelError, match=message):
            getattr(net, f"add_{method}")(*arguments)
        assert net.compile().n_factors == 0 and net.compile().structure.n_cells == 0

    def test_more_refusals(self):
        net = mf.MarkovNetwork({"A": 2, "B": 2})
        with pytest.raises(mf.ModelError, match="a truncated factor has a power of 1 or 2, got 3"):
            net.add_truncated([["A", "B"]], 1.0, power=3)
        for method in ("or", "and", "parity", "at_most_one"):
            with pytest.raises(mf.ModelError, match="takes a weight that is a number or \\+inf, got -inf"):
                getattr(net, f"add_{method}")({"A": 1}, weight=-np.inf)
        with pytest.raises(mf.ModelError, match="takes a weight that is a number or \\+inf, got nan"):
            net.add_exactly(1, {"A": 1}, weight=np.nan)

    def test_nothing_to_count(self):
        """Of no literals, none holds."""
        net = mf.MarkovNetwork({"A": 2})
        net.add_cardinality([2.0])
        net.add_exactly(0, weight=3.0)
        net.add_at_most_one(weight=4.0)
        net.add_parity(odd=False, weight=5.0)
        net.add_and(weight=6.0)
        for method in METHODS:
            assert float(mf.log_partition(net, method=method)) == pytest.approx(20.0 + np.log(2))
        assert net.compile().score({"A": 0}) == 20.0

    def test_many_pairs_share_two_cells(self):
        n = 300
        net = mf.MarkovNetwork(dict.fromkeys(range(n * n), 3))
        right = [(i, i + 1) for i in range(n * n) if (i + 1) % n]
        down = [(i, i + n) for i in range(n * (n - 1))]
        added = net.add_potts(right + down, 0.8)
        graph = net.compile()
        assert len(added) == graph.n_factors == 2 * n * (n - 1) and graph.structure.n_cells == 2
        states = np.random.default_rng(0).integers(0, 3, (n, n))
        equal = (states[:, 1:] == states[:, :-1]).sum() + (states[1:] == states[:-1]).sum()
        assert graph.score(states.ravel()) == pytest.approx(0.8 * equal)


class TestStructure:
    def test_kernels_and_structures_agree_on_the_kinds(self):
        for name in ("TABLE", "CLAUSE", "NOISY_MAX", "CARDINALITY", "PARITY", "DISTANCE"):
            assert getattr(factor_kinds, name) == getattr(kinds, name)
        assert len(factor_kinds.KIND_NAMES) == DISTANCE + 1

    @pytest.mark.parametrize("cap", [1, 2, 7, 2**31 - 1])
    @pytest.mark.parametrize("literal", [-(2**31), -3, -1, 0, 1, 2**31 - 2])
    def test_caps_and_literals_share_a_stride(self, cap: int, literal: int):
        stride = np.array([(cap << 32) + literal])
        assert kinds.cap_of(stride).tolist() == [cap] and kinds.literal_of(stride).tolist() == [literal]
        assert (kinds.cap_of(int(stride[0])), kinds.literal_of(int(stride[0]))) == (cap, literal)

    @pytest.mark.parametrize(
        ("kind", "scope", "strides", "n_cells", "message"),
        [
            (PARITY, [0, 1], [0, 3], 2, "parity 0 has a literal on state 3, which there is not"),
            (PARITY, [0, 1], [0, -4], 2, "parity 0 has a literal on state 3, which there is not"),
            (PARITY, [0, 1], [0, 0], 1, "factor 0 reads cells 0 to 1 of a pool of 1"),
            (PARITY, [0, 0], [0, 0], 2, "factor 0 is a parity, in which a variable may occur only once"),
            (CARDINALITY, [0, 1], [2 << 32, (2 << 32) + 3], 3, "cardinality potential 0 has a literal on state 3"),
            (CARDINALITY, [0, 1], [2 << 32, 1 << 32], 3, "whose axes must have one and the same cap of at least 1"),
            (CARDINALITY, [0, 1], [0, 0], 3, "cardinality potential, whose axes must have one and the same cap"),
            (CARDINALITY, [0, 1], [-1 << 32, -1 << 32], 3, "one and the same cap of at least 1"),
            (CARDINALITY, [0, 1], [3 << 32, 3 << 32], 3, "factor 0 reads cells 0 to 3 of a pool of 3"),
            (CARDINALITY, [1, 1], [1 << 32, 1 << 32], 3, "cardinality potential, in which a variable may occur only"),
            (DISTANCE, [0, 1], [1, 2], 3, "distance potential, whose axes must have one and the same cap"),
            (DISTANCE, [0, 1], [0, 0], 3, "one and the same cap of at least 1"),
            (DISTANCE, [0, 1], [3, 3], 3, "factor 0 reads cells 0 to 3 of a pool of 3"),
            (DISTANCE, [0], [1], 2, "factor 0 is a distance potential, which needs two variables"),
            (DISTANCE, [0, 1, 2], [1, 1, 1], 2, "factor 0 is a distance potential, which needs two variables"),
            (DISTANCE, [0, 1, 1], [1, 1, 1], 2, "distance potential, in which a variable may occur only once"),
        ],
    )
    def test_refusals(self, kind: int, scope: list[int], strides: list[int], n_cells: int, message: str):
        with pytest.raises(mf.ModelError, match=message):
            Structure.from_arrays([3, 3, 3], [0, len(scope)], scope, [0], strides, n_cells=n_cells, kind=[kind])

    def test_a_variable_is_at_no_distance_from_itself(self):
        net = mf.MarkovNetwork({"A": 3})
        net.add_potts([["A", "A"]], 1.5)
        graph = net.compile()
        assert graph.structure.kind.tolist() == [TABLE] and graph.table(0) == 1.5
        assert float(mf.log_partition(net)) == pytest.approx(1.5 + np.log(3))

    def test_huge_tables_are_refused(self):
        net = mf.MarkovNetwork(dict.fromkeys(range(1000), 2))
        net.add_clause(dict.fromkeys(range(1000), 1))
        net.add_parity(dict.fromkeys(range(30), 1))
        graph = net.compile()
        with pytest.raises(mf.ModelError, match=r"factor 0, a clause of 1000 variables, has about 2\^1000 cells"):
            graph.table(0)
        with pytest.raises(mf.ModelError, match="factor 1, a parity of 30 variables, has 1073741824 cells"):
            graph.cells(1)

    def test_tables_cost_memory_linear_in_the_variables(self):
        n = 500
        net = mf.MarkovNetwork(dict.fromkeys(range(n), 2))
        everything = dict.fromkeys(range(n), 1)
        net.add_parity(everything)
        net.add_exactly(3, everything)
        net.add_exactly(n - 3, everything)
        net.add_at_most_one(everything)
        net.add_potts([(i, i + 1) for i in range(n - 1)], 1.0)
        graph = net.compile()
        assert graph.structure.n_cells == 2 + 5 + 5 + 3 + 2
        as_tables = graph.to_tables().structure
        # One constant for each kind and literal, shared by the whole chain.
        assert as_tables.n_cells < 400 and as_tables.n_factors < 6 * n + 9


class TestAThousandVariables:
    """One factor on a thousand independent variables, through the exact engine: closed forms."""

    n = 1000
    log_odds = np.random.default_rng(7).normal(size=n) - 3.0

    def network(self) -> mf.MarkovNetwork:
        net = mf.MarkovNetwork(dict.fromkeys(range(self.n), 2))
        for i, w in enumerate(self.log_odds):
            net.add_factor([i], log_table=[0.0, w])
        return net

    def check(self, net: mf.MarkovNetwork, log_z: float, first: float) -> None:
        mf.log_partition(net, method="junction_tree")  # compiled and planned
        with patience():
            answer = mf.marginals(net, method="junction_tree")
        assert answer.log_partition == pytest.approx(log_z, abs=1e-8)
        assert answer[0][1] == pytest.approx(first, abs=1e-10)

    def test_or_and_parity(self):
        w = np.exp(self.log_odds)
        net = self.network()
        net.add_or(dict.fromkeys(range(self.n), 1))
        z = np.prod(1 + w) - 1
        self.check(net, np.log(z), w[0] * np.prod(1 + w[1:]) / z)
        net = self.network()
        net.add_parity(dict.fromkeys(range(self.n), 1), weight=2.0)
        # With sign-flipped weights, odd sets count negatively.
        whole, signed = np.prod(1 + w), np.prod(1 - w)
        z = (whole + signed) / 2 + np.exp(2.0) * (whole - signed) / 2
        rest, signed = np.prod(1 + w[1:]), np.prod(1 - w[1:])
        self.check(net, np.log(z), w[0] * ((rest - signed) / 2 + np.exp(2.0) * (rest + signed) / 2) / z)
        net = self.network()
        net.add_and({}, dict.fromkeys(range(1, self.n), 1))
        self.check(net, np.log1p(w[0]), w[0] / (1 + w[0]))

    def test_counts(self):
        w = np.exp(self.log_odds)
        pairs = (w.sum() ** 2 - (w**2).sum()) / 2
        everything = dict.fromkeys(range(self.n), 1)
        for add, z, first in (
            (lambda net: net.add_exactly(1, everything), w.sum(), w[0]),
            (lambda net: net.add_exactly(self.n - 1, dict.fromkeys(range(self.n), 0)), w.sum(), w[0]),
            (lambda net: net.add_at_most_one(everything), 1 + w.sum(), w[0]),
            (lambda net: net.add_exactly(2, everything), pairs, w[0] * (w.sum() - w[0])),
        ):
            net = self.network()
            add(net)
            self.check(net, np.log(z), first / z)
        best = mf.decode(net, method="junction_tree")
        assert best.score == pytest.approx(np.sort(self.log_odds)[-2:].sum())


def test_the_strategies_draw_every_kind():
    """What the conformance tests meet: every builder's method, and shared pairs."""
    seen = set()
    for seed in range(400):
        for op in random_spec(seed).operations:
            if isinstance(op, Counted):
                seen.add(op.what)
            elif isinstance(op, Apart):
                seen.add(("potts", "", "truncated")[len(op.numbers) - 2 + (len(op.numbers) == 3)])
    assert seen == {"parity", "and", "at_most_one", "exactly", "cardinality", "potts", "truncated"}


@pytest.mark.parametrize(
    ("kind", "strides", "message"),
    [
        (CARDINALITY, [1 << 50, 1 << 50], "a factor reads outside the pool"),
        (CARDINALITY, [(1 << 32) + 5, 1 << 32], "a factor reads outside the pool"),
        (CARDINALITY, [1 << 32, 2 << 32], "one and the same cap"),
        (PARITY, [0, -7], "a factor reads outside the pool"),
        (DISTANCE, [2**62, 2**62], "a factor reads outside the pool"),
        (DISTANCE, [-1, -1], "a factor reads outside the pool"),
        (DISTANCE, [1, 2], "one and the same cap"),
        (6, [0, 0], "a kind of factor that this version does not know"),
        (-1, [0, 0], "a kind of factor that this version does not know"),
    ],
)
def test_damaged_archives(kind: int, strides: list[int], message: str, tmp_path: Path):
    good = Structure.from_arrays([3, 3], [0, 2], [0, 1], [0], [0, 0], n_cells=4, kind=[CLAUSE])
    bad = Structure(
        good.cardinalities, good.scope_offsets, good.scopes, good.table_offsets, np.array(strides), 4,
        good.child, np.array([kind], np.int8), good.names,
    )  # fmt: skip
    mio.save(FactorGraph(bad, np.zeros(4)), tmp_path / "model.mfz")
    with pytest.raises(mf.FormatError, match=message):
        mio.load(tmp_path / "model.mfz")


@given(case=specs_with_evidence("forest", clauses=True))
@settings(max_examples=60, deadline=None)
def test_belief_propagation_is_exact_on_forests_of_every_kind(case: tuple[Spec, dict]):
    spec, evidence = case
    net, oracle, named = spec.build(), spec.oracle(evidence), spec.named(evidence)
    if oracle.impossible:
        with pytest.raises(mf.ImpossibleEvidenceError):
            mf.marginals(net, named, method="belief_propagation")
        return
    answer = mf.marginals(net, named, method="belief_propagation")
    assert answer.log_partition == pytest.approx(oracle.log_partition, abs=1e-8)
    for v, label in enumerate(spec.labels):
        np.testing.assert_allclose(answer[label], oracle.marginal(v), atol=1e-8)
    np.testing.assert_allclose(answer.expected_counts, spec.pool_counts(oracle), atol=1e-8)
    assert mf.decode(net, named, method="belief_propagation").score == pytest.approx(oracle.best_score, abs=1e-8)
