"""Potentials that underflow, overflow or have more axes than NumPy allows: no false zero, no nan."""

from __future__ import annotations

import numpy as np
import pytest

import markovfield as mf
from tests.conformance.asking import (
    GENERAL,
    TOLERANCE,
    Refused,
    ask,
    check_counts,
    check_marginals,
    close,
    close_logs,
    exact,
    for_exact,
)
from tests.oracle import Oracle
from tests.strategies import (
    Clause,
    Spec,
    Table,
)


def hidden_chain(n: int, span: float) -> tuple[mf.MarkovNetwork, list[np.ndarray], float]:
    """A chain whose factors each span e^span, with marginals by a forward-backward pass in logs."""
    rng = np.random.default_rng(n)
    tables = [span * (rng.random((2, 2)) - 0.5) for _ in range(n - 1)]
    net = mf.MarkovNetwork(dict.fromkeys(range(n), 2))
    for i, table in enumerate(tables):
        net.add_factor([i, i + 1], log_table=table)
    forward, backward = [np.zeros(2)], [np.zeros(2)]
    for table in tables:
        forward.append(np.logaddexp.reduce(forward[-1][:, None] + table, axis=0))
    for table in reversed(tables):
        backward.append(np.logaddexp.reduce(table + backward[-1][None, :], axis=1))
    log_partition = float(np.logaddexp.reduce(forward[-1]))
    marginals = [np.exp(f + b - log_partition) for f, b in zip(forward, reversed(backward), strict=True)]
    return net, marginals, log_partition


class TestRange:
    @for_exact("marginals")
    @pytest.mark.parametrize(("n", "span"), [(12, 250.0), (60, 250.0), (60, 1500.0), (400, 250.0)])
    def test_chains_that_underflow_by_products(self, method: str, n: int, span: float):
        if method == "enumeration" and n > 12:
            pytest.skip("too many joint states to enumerate")
        net, marginals, log_partition = hidden_chain(n, span)
        answer = mf.marginals(net, method=method)
        np.testing.assert_allclose(answer.log_partition, log_partition, rtol=1e-12)
        for v in range(n):
            close(answer[v], marginals[v])
            assert (answer[v][marginals[v] > 1e-290] > 0).all()

    @for_exact("marginals")
    def test_support_that_survives_by_a_thread(self, method: str):
        """Every factor prefers 0 by e^250 and a last one forbids it: all ones, not "impossible"."""
        n = 14
        net = mf.MarkovNetwork(dict.fromkeys(range(n), 2))
        net.add_factors([(i, i + 1) for i in range(n - 1)], log_table=[[250.0, -np.inf], [-np.inf, 0.0]])
        for i in range(n):
            net.add_factor([i], log_table=[250.0, 0.0])
        net.add_factor([n - 1], [0, 1])
        answer = mf.marginals(net, method=method)
        assert answer.log_partition == pytest.approx(0.0, abs=TOLERANCE)
        for v in range(n):
            np.testing.assert_array_equal(answer[v], [0.0, 1.0])

    @for_exact("marginals")
    @pytest.mark.parametrize("turn", [False, True])
    def test_two_worlds_far_apart(self, method: str, turn: bool):
        """Separate tables look harmless, but only their product decides between e^-2500 and e^-2501."""
        n = 11
        net = mf.MarkovNetwork(dict.fromkeys(range(n), 2))
        net.add_factors([(i, i + 1) for i in range(n - 1)], log_table=[[-250.0, -np.inf], [-np.inf, -250.1]])
        for i in range(n):
            net.add_factor([i], log_table=[0.0, 0.1] if turn else [0.1, 0.0])
        answer = mf.marginals(net, method=method)
        scores = [-2500.0 + (0 if turn else 1.1), -2501.0 + (1.1 if turn else 0)]
        total = np.logaddexp(*scores)
        assert answer.log_partition == pytest.approx(total, rel=1e-12)
        close(answer[5], np.exp(np.array(scores) - total))

    @for_exact("marginals")
    def test_joints_have_no_false_zeros(self, method: str):
        """One spare cell of e^60 scales nine tables down; the joint's cell of 1e-98 must survive that."""
        ruled_out = -np.inf
        high = np.zeros((3, 3, 2))
        high[0, 2, 0], high[2, 2, 0] = 60.0, -60.0
        factors = [
            ((2, 0), np.zeros((3, 2))),
            ((2, 2, 0), high),
            ((1, 2), np.array([[ruled_out, 0, ruled_out], [0, ruled_out, 0]])),
            ((1,), np.array([0.0, -21.51])),
            ((0,), np.zeros(2)),
            ((1,), np.array([0.0, -47.642])),
            ((0,), np.array([-47.642, 0.0])),
            ((1, 0), np.array([[0.0, 0.0], [-47.642, 0.0]])),
            ((2,), np.zeros(3)),
        ]
        spec = Spec((2, 2, 3), tuple(Table((scope,), table) for scope, table in factors), ("a", "b", "c"))
        try:
            answer = ask("marginals", method, spec, {})
        except Refused:
            return
        np.testing.assert_allclose(answer.joint(["a", "c"]), spec.oracle().joint([0, 2]), rtol=1e-9)

    @for_exact("marginals")
    def test_a_scale_that_eats_the_range(self, method: str):
        """A spare cell of e^90 pushes products of ten tables to the edge of floating point: no nan, no zero."""
        x = -np.inf
        wide = [
            [[[x, x, 0, 0], [0, 0, 0, x]], [[x, x, x, 0], [x, 0, 0, x]], [[x, 0, 0, x], [0, 0, 0, x]]],
            [[[x, 0, x, 0], [0, x, x, x]], [[0, 0, x, x], [x, x, x, 0]], [[0, 0, 0, 0], [x, 0, 0, 0]]],
            [[[x, x, 0, 0], [x, 0, x, 0]], [[x, 0, x, x], [x, x, 0, 0]], [[x, 0, x, x], [0, x, x, x]]],
        ]
        spare = np.zeros((3, 3, 3))
        spare[1, 1, 0] = 90.0
        factors = [
            ((4, 4, 2, 0), np.array(wide, float)),
            ((3, 3, 3), spare),
            ((4,), np.zeros(3)),
            ((2, 2), np.array([[-80.0, x], [x, 0.0]])),
            ((4,), np.array([-30.0, 0.0, x])),
            ((4,), np.array([-30.0, 0.0, x])),
            ((4, 0), np.array([[0, -30.0, 0, x], [0, 0, 0, 0], [x, 0, 0, 40.0]])),
            ((2, 3), np.array([[0, 0, x], [0, 0, 0]])),
        ]
        operations = [Table((scope,), table) for scope, table in factors]
        clause = Clause(((0, 1, True), (1, 1, True), (4, 0, False)), -0.75)
        spec = Spec((4, 2, 2, 3, 3), (*operations, clause), ("a", "b", "c", "d", "e"))
        try:
            answer = ask("marginals", method, spec, {0: 1})
        except Refused:
            return
        check_marginals(answer, spec, spec.oracle({0: 1}), total=TOLERANCE)
        check_counts(answer, spec, spec.oracle({0: 1}))

    @for_exact("marginals")
    def test_more_axes_than_numpy_has(self, method: str):
        """One factor on 70 variables, most with one state; and a clique of 67 through pairwise factors."""
        cards = [1] * 70
        for v in (0, 13, 40, 69):
            cards[v] = 2
        rng = np.random.default_rng(0)
        table = rng.normal(size=16)
        pairs = [(u, v) for u in range(0, 70, 3) for v in range(u + 1, 70, 3)]
        factors = [(list(range(70)), table)]
        factors += [([u, v], rng.normal(size=(cards[u], cards[v]))) for u, v in pairs]
        net = mf.MarkovNetwork(dict(enumerate(cards)))
        for scope, values in factors:
            net.add_factor(scope, log_table=values)
        oracle = Oracle(cards, factors)
        try:
            answer = mf.marginals(net, method=method)
        except mf.ModelError:
            assert method not in GENERAL
            return
        close_logs(answer.log_partition, oracle.log_partition)
        for v in range(70):
            close(answer[v], oracle.marginal(v))
        close(answer.joint([69, 0, 40]), oracle.joint([69, 0, 40]))
        best = mf.decode(net, method=method if method in exact("decode") else "junction_tree")
        close_logs(best.score, oracle.best_score)

    @for_exact("marginals")
    def test_a_wide_clique_of_single_states(self, method: str):
        """A hundred variables of one state in one factor, joined to a chain of two-state ones."""
        cards = [1] * 100 + [2] * 6
        net = mf.MarkovNetwork(dict(enumerate(cards)))
        net.add_factor(range(103), log_table=np.arange(8.0) / 3)
        for i in range(102, 105):
            net.add_factor([i, i + 1], [[2, 1], [1, 4]])
        oracle = Oracle(
            cards,
            [
                (range(103), np.arange(8.0) / 3),
                *(((i, i + 1), np.log([[2.0, 1.0], [1.0, 4.0]])) for i in range(102, 105)),
            ],
        )
        answer = mf.marginals(net, method=method)
        close_logs(answer.log_partition, oracle.log_partition)
        for v in (0, 99, 100, 101, 102, 105):
            close(answer[v], oracle.marginal(v))
