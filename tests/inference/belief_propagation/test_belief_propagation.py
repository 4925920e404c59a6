"""Belief propagation on forests against the brute-force oracle, and what it refuses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import markovfield as mf
from markovfield.factors.factor_graph import FactorGraph
from markovfield.factors.structure import Structure
from markovfield.inference.belief_propagation import forest as tree_propagation
from tests.oracle import Oracle
from tests.patience import patience
from tests.strategies import Clause, Spec, Table, specs, specs_with_evidence

TOLERANCE = 1e-9
TREE = mf.methods.BeliefPropagation("tree")


def close_logs(ours: Any, theirs: Any) -> None:
    ours, theirs = np.asarray(ours, float), np.asarray(theirs, float)
    np.testing.assert_array_equal(np.isneginf(ours), np.isneginf(theirs))
    finite = np.isfinite(theirs)
    np.testing.assert_allclose(ours[finite], theirs[finite], rtol=1e-11, atol=TOLERANCE)


def check_everything(spec: Spec, evidence: dict[int, Any]) -> None:
    """log Z, marginals, max-marginals, counts, factor marginals, decoding; or the refusal of the evidence."""
    oracle = spec.oracle(evidence)
    model, known = spec.build(), spec.named(evidence)
    if oracle.impossible:
        for verb in (mf.log_partition, mf.marginals, mf.decode):
            with pytest.raises(mf.ImpossibleEvidenceError):
                verb(model, evidence=known, method="belief_propagation")
        return
    answer = mf.marginals(model, evidence=known, method="belief_propagation")
    close_logs(answer.log_partition, oracle.log_partition)
    close_logs(float(mf.log_partition(model, evidence=known, method="bp")), oracle.log_partition)
    for v, label in enumerate(spec.labels):
        np.testing.assert_allclose(answer[label], oracle.marginal(v), rtol=0, atol=TOLERANCE)
        assert (answer[label][oracle.marginal(v) == 0] == 0).all()
        close_logs(answer.max_marginals[label], oracle.max_marginal(v))
    np.testing.assert_allclose(answer.expected_counts, spec.pool_counts(oracle), rtol=0, atol=TOLERANCE)
    for scope, _ in spec.factors:
        if 0 < len(scope) <= 3:
            once = list(dict.fromkeys(scope))[::-1]
            joint = answer.joint([spec.labels[v] for v in once])
            np.testing.assert_allclose(joint, oracle.joint(once), rtol=0, atol=TOLERANCE)
    best = mf.decode(model, evidence=known, method="bp")
    close_logs(best.score, oracle.best_score)
    close_logs(oracle.score(spec.states(best.assignment)), oracle.best_score)
    assert answer.guarantee == "exact" and best.optimal


class TestForests:
    @given(specs_with_evidence("forest"))
    def test_agree_with_the_oracle(self, case: tuple[Spec, dict]):
        check_everything(*case)

    @settings(max_examples=20)
    @given(specs_with_evidence("forest", scale=1000.0))
    def test_extreme_potentials(self, case: tuple[Spec, dict]):
        check_everything(*case)

    @settings(max_examples=20)
    @given(specs("forest", hard=False), st.integers(0, 2**16))
    def test_joints_across_factors(self, spec: Spec, seed: int):
        wanted = np.random.default_rng(seed).permutation(spec.n_variables)[:3].tolist()
        joint = mf.marginals(spec.build(), method="bp").joint([spec.labels[v] for v in wanted])
        np.testing.assert_allclose(joint, spec.oracle().joint(wanted), rtol=0, atol=TOLERANCE)

    @given(st.data())
    def test_clauses_on_variables_of_their_own(self, data: Any):
        """In plain tables a clause is a chain of auxiliary variables: a tree when its variables meet nowhere else."""
        cards = tuple(data.draw(st.lists(st.integers(2, 3), min_size=2, max_size=6)))
        cut = data.draw(st.integers(1, len(cards)))
        operations: list[Any] = []
        for part in (range(cut), range(cut, len(cards))):
            literals = tuple((v, data.draw(st.integers(0, cards[v] - 1)), data.draw(st.booleans())) for v in part)
            operations.append(Clause(literals, data.draw(st.sampled_from([1.25, -0.75, np.inf]))))
        rng = np.random.default_rng(data.draw(st.integers(0, 2**16)))
        operations += [Table(((v,),), rng.normal(size=card)) for v, card in enumerate(cards)]
        spec = Spec(cards, tuple(operations), tuple(f"x{i}" for i in range(len(cards))))
        check_everything(spec, {0: data.draw(st.integers(0, cards[0] - 1))} if data.draw(st.booleans()) else {})

    def test_wide_factors_and_high_degrees(self):
        """One factor of five axes, and a variable in thirty factors."""
        rng = np.random.default_rng(3)
        cards = [3, 2, 3, 2, 4, *[2] * 6]
        factors: list[Any] = [((4, 0, 2, 1, 3), rng.normal(size=(4, 3, 3, 2, 2)))]
        factors += [((leaf, 2), rng.normal(size=(2, 3))) for leaf in range(5, 11)]
        factors += [((2,), rng.normal(size=3)) for _ in range(24)]
        spec = Spec(tuple(cards), tuple(Table((scope,), t) for scope, t in factors), tuple(range(11)))
        check_everything(spec, {})
        check_everything(spec, {4: 1, 2: np.array([0.2, 0.0, 0.7])})

    def test_evidence_can_cut_the_cycle(self):
        net = mf.MarkovNetwork(dict.fromkeys("ABC", 2))
        rng = np.random.default_rng(0)
        tables = [rng.normal(size=(2, 2)) for _ in range(3)]
        for pair, table in zip(("AB", "BC", "CA"), tables, strict=True):
            net.add_factor(list(pair), log_table=table)
        oracle = Oracle([2] * 3, list(zip([(0, 1), (1, 2), (2, 0)], tables, strict=True)), {1: 1})
        answer = mf.marginals(net, evidence={"B": 1}, method="bp")
        np.testing.assert_allclose(answer["C"], oracle.marginal(2), atol=TOLERANCE)

    def test_barren_variables_of_a_directed_model_close_no_cycle(self):
        net = mf.BayesianNetwork({"A": 2, "B": 2, "C": 2})
        net.add_cpt("A", [], [0.3, 0.7])
        net.add_cpt("B", ["A"], [[0.1, 0.9], [0.5, 0.5]])
        net.add_cpt("C", ["A", "B"], [[[0.1, 0.9], [0.5, 0.5]], [[0.2, 0.8], [0.4, 0.6]]])
        value = float(mf.log_partition(net, evidence={"B": 0}, method="bp"))
        assert value == pytest.approx(np.log(0.3 * 0.1 + 0.7 * 0.5))

    def test_ties_decode_consistently(self):
        """Equal scores for 00 and 11: choosing each variable by its own max-marginal could mix them."""
        net = mf.MarkovNetwork(dict.fromkeys(range(6), 2))
        net.add_factors([(i, i + 1) for i in range(5)], log_table=[[0.0, -np.inf], [-np.inf, 0.0]])
        best = mf.decode(net, method="bp")
        assert len(set(best.assignment.values())) == 1 and best.score == 0.0


class TestExtremes:
    @pytest.mark.parametrize("sign", [1.0, -1.0])
    def test_potentials_of_e_to_the_thousand(self, sign: float):
        n = 500
        net = mf.MarkovNetwork(dict.fromkeys(range(n), 2))
        net.add_factors([(i, i + 1) for i in range(n - 1)], log_table=[[sign * 1000.0, -np.inf], [0.0, sign * 1000.0]])
        answer = mf.marginals(net, method="bp")
        # From ones to zeros at most once: two assignments at the top, n - 1 one potential lower.
        constant, stepped = (n - 1) * sign * 1000.0, (n - 2) * sign * 1000.0
        total = np.logaddexp(constant + np.log(2.0), stepped + np.log(n - 1.0))
        assert answer.log_partition == pytest.approx(total, rel=1e-13)
        if sign > 0:
            np.testing.assert_allclose(answer[n // 2], [0.5, 0.5], atol=1e-12)
        else:
            # The step is equally likely at each of n - 1 places.
            assert answer[0][1] == pytest.approx(1.0, abs=1e-12)
            np.testing.assert_allclose(answer[100][1], 399 / 499, atol=1e-9)

    def test_a_state_only_products_make_unlikely(self):
        """Each factor alone looks harmless; the other world is e^-2500 away and must still be possible."""
        net = mf.MarkovNetwork(dict.fromkeys(range(11), 2))
        net.add_factors([(i, i + 1) for i in range(10)], log_table=[[0.0, -np.inf], [-np.inf, -250.0]])
        answer = mf.marginals(net, method="bp")
        assert answer.log_partition == pytest.approx(0.0, abs=1e-12)
        assert answer.max_marginals[5][1] == pytest.approx(-2500.0)
        best = mf.decode(net, evidence={10: 1}, method="bp")
        assert best.score == pytest.approx(-2500.0) and best[0] == 1


class TestRefusals:
    def test_a_cycle(self):
        net = mf.MarkovNetwork(dict.fromkeys("ABCDE", 2))
        for a, b in ("AB", "BC", "CD", "DB", "DE"):
            net.add_factor([a, b], [[2, 1], [1, 2]])
        for verb in (mf.marginals, mf.decode, mf.log_partition):
            with pytest.raises(mf.ModelError, match=r"variable '[BCD]' lies on a cycle .* or junction_tree"):
                verb(net, method=TREE)
            assert verb(net, method="bp").guarantee == ("lower" if verb is mf.decode else "approximate")

    def test_two_factors_on_one_pair_are_a_cycle(self):
        net = mf.MarkovNetwork(dict.fromkeys("ABC", 2))
        net.add_factor(["A", "B"], [[2, 1], [1, 2]])
        net.add_factor(["B", "C"], [[2, 1], [1, 2]])
        net.add_factor(["C", "B"], [[2, 1], [1, 2]])
        with pytest.raises(mf.ModelError, match=r"variable '[BC]' lies on a cycle"):
            mf.marginals(net, method=TREE)

    @pytest.mark.parametrize("seed", range(20))
    def test_a_cycle_through_clauses_names_a_variable_of_the_model(self, seed: int):
        rng = np.random.default_rng(seed)
        names = [f"x{i}" for i in range(7)]
        net = mf.MarkovNetwork(dict.fromkeys(names, 2))
        shared = rng.permutation(7)[:2]
        rest = rng.permutation([v for v in range(7) if v not in shared])
        for part in (rest[:2], rest[2:]):
            scope = rng.permutation([*shared, *part])
            net.add_clause({names[v]: 1 for v in scope}, {}, weight=1.5)
        with pytest.raises(mf.ModelError, match="lies on a cycle") as error:
            mf.marginals(net, method=TREE)
        assert any(f"'{names[v]}'" in str(error.value) for v in shared)

    def test_n_best_and_marginal_map(self):
        net = mf.MarkovNetwork(dict.fromkeys("AB", 2))
        net.add_factor(["A", "B"], [[2, 1], [1, 3]])
        with pytest.raises(
            mf.ModelError, match="belief_propagation finds one assignment, not the 3 best: use junction_tree"
        ):
            mf.decode(net, n_best=3, method="bp")
        with pytest.raises(mf.ModelError, match=r"not 1 of them .* use junction_tree"):
            mf.decode(net, variables=["A"], method="bp")
        named = mf.decode(net, variables=["B", "A"], method="bp")
        assert list(named.assignment.items()) == [("B", 1), ("A", 1)]

    def test_a_table_larger_than_memory(self, monkeypatch: pytest.MonkeyPatch):
        """Refused before the work space is allocated; strides of zero make a large table of one cell."""
        monkeypatch.setattr(tree_propagation, "memory_limit_bytes", lambda limit: 10_000.0)
        s = Structure.from_arrays([2] * 12, [0, 12], range(12), [0], [0] * 12, n_cells=1)
        with pytest.raises(mf.MemoryLimitError, match=r"factor 0 has a table of 2\^12\.0 cells"):
            mf.marginals(FactorGraph(s, np.zeros(1)), method="bp")


def chain(n: int, card: int) -> FactorGraph:
    """A chain with one tied pair table and a unary factor on each variable."""
    pairs = np.stack([np.arange(n - 1), np.arange(1, n)], axis=1).ravel()
    arity = np.repeat([2, 1], [n - 1, n])
    bases = np.concatenate([np.zeros(n - 1, np.int64), card * card + card * np.arange(n)])
    structure = Structure.from_arrays(
        np.full(n, card),
        np.concatenate([[0], np.cumsum(arity)]),
        np.concatenate([pairs, np.arange(n)]),
        bases,
        n_cells=card * card + card * n,
    )
    return FactorGraph(structure, np.random.default_rng(0).normal(size=structure.n_cells))


class TestLong:
    def test_a_long_chain(self):
        """Linear time and no recursion; log Z by a scan in scaled linear space."""
        small = chain(100, 3)  # compiles
        mf.marginals(small, method="bp")
        mf.decode(small, method="bp")
        n = 300_000
        graph = chain(n, 3)
        with patience():
            answer = mf.marginals(graph, method="bp")
            best = mf.decode(graph, method="bp")
        pair, unary = np.exp(graph.log_tables[:9].reshape(3, 3)), np.exp(graph.log_tables[9:].reshape(n, 3))
        assert best.score == pytest.approx(float(graph.score(best.states)), rel=1e-12)
        sums = answer.values.reshape(n, 3).sum(axis=1)
        np.testing.assert_allclose(sums, 1.0, rtol=0, atol=1e-12)
        log_scales = np.empty(n)
        forward = np.ones(3)
        for i in range(n):
            forward = (forward if i == 0 else forward @ pair) * unary[i]
            log_scales[i] = forward.sum()
            forward = forward / log_scales[i]
        assert answer.log_partition == pytest.approx(float(np.log(log_scales).sum()), rel=1e-13)
        np.testing.assert_allclose(answer[n - 1], forward, rtol=0, atol=1e-12)

    def test_a_star_of_many_leaves(self):
        """Every leaf's message is the sum of all others': linear, not quadratic, in the degree."""
        n = 200_000
        net_scopes = np.stack([np.zeros(n - 1, np.int64), np.arange(1, n)], axis=1).ravel()
        s = Structure.from_arrays(np.full(n, 2), 2 * np.arange(n), net_scopes, np.zeros(n - 1, np.int64), n_cells=4)
        graph = FactorGraph(s, np.log([3.0, 1.0, 1.0, 3.0]))
        with patience():
            answer = mf.marginals(graph, method="bp")
        assert answer.log_partition == pytest.approx(np.log(2) + (n - 1) * np.log(4.0), rel=1e-12)
        np.testing.assert_allclose(answer[n // 2], [0.5, 0.5], atol=1e-9)

    def test_pieces_do_not_change_the_answer(self, monkeypatch: pytest.MonkeyPatch):
        whole = mf.marginals(chain(2000, 3), method="bp")
        monkeypatch.setattr(tree_propagation, "GRAIN", 1000.0)
        steps: list[int] = []
        cut = mf.marginals(chain(2000, 3), method="bp", callback=lambda p: steps.append(p.step))
        assert len(steps) > 50
        np.testing.assert_array_equal(whole.values, cut.values)
        np.testing.assert_array_equal(whole.expected_counts, cut.expected_counts)
        assert mf.decode(chain(2000, 3), method="bp").score == pytest.approx(max(whole.max_marginals[7]))
        with pytest.raises(mf.StoppedError):
            mf.marginals(chain(2000, 3), method="bp", callback=lambda p: p.step > 3)
