"""The oracle itself: checked against hand-computed numbers and against plain loops."""

from __future__ import annotations

import ast
import math
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given

from tests.oracle import Impossible, Oracle, all_states, literal_table
from tests.strategies import Spec, random_evidence, random_spec, specs

# Two coins and "they agree with odds three to one".
PAIR = ([2, 2], [((0,), np.log([1.0, 2.0])), ((0, 1), np.log([[3.0, 1.0], [1.0, 3.0]]))])


def test_numbers_worked_out_by_hand():
    oracle = Oracle(*PAIR)
    # Weights 3, 1, 2, 6: Z = 12.
    assert oracle.log_partition == pytest.approx(math.log(12), abs=1e-14)
    np.testing.assert_allclose(oracle.marginal(0), [4 / 12, 8 / 12])
    np.testing.assert_allclose(oracle.marginal(1), [5 / 12, 7 / 12])
    np.testing.assert_allclose(oracle.joint([1, 0]), np.array([[3, 2], [1, 6]]) / 12)
    np.testing.assert_allclose(oracle.counts(1), np.array([[3, 1], [2, 6]]) / 12)
    assert oracle.best_score == pytest.approx(math.log(6))
    assert oracle.maximisers() == {(1, 1)}
    np.testing.assert_allclose(np.exp(oracle.n_best(3)), [6, 3, 2])
    assert oracle.lowest_score == pytest.approx(0.0)
    np.testing.assert_allclose(np.exp(oracle.max_marginal(1)), [3, 6])
    assert oracle.count == 4
    p = np.array([3, 1, 2, 6]) / 12
    assert oracle.entropy == pytest.approx(-(p * np.log(p)).sum())
    assert oracle.probability({0: [1], 1: [0, 1]}) == pytest.approx(8 / 12)
    score, best = oracle.marginal_map([0])
    assert score == pytest.approx(math.log(8)) and best == {(1,)}
    assert oracle.expectation([np.array([0.0, 1.0]), np.zeros((2, 2))]) == pytest.approx(8 / 12)


def test_evidence_hard_and_virtual():
    assert Oracle(*PAIR, {0: 0}).log_partition == pytest.approx(math.log(4))
    np.testing.assert_allclose(Oracle(*PAIR, {0: 0}).marginal(1), [0.75, 0.25])
    virtual = Oracle(*PAIR, {1: np.array([2.0, 0.0])})
    assert virtual.log_partition == pytest.approx(math.log(10))
    np.testing.assert_allclose(virtual.marginal(0), [0.6, 0.4])


def test_marginal_map_is_not_map():
    # The best pair is (0, 0) with 4, but summed over the second variable state 1 wins 3 + 3 to 4 + 0.
    oracle = Oracle([2, 2], [((0, 1), np.log([[4.0, 1e-300], [3.0, 3.0]]))])
    assert oracle.maximisers() == {(0, 0)}
    assert oracle.marginal_map([0])[1] == {(1,)}


def test_a_repeated_variable_reads_the_diagonal():
    oracle = Oracle([2], [((0, 0), np.log([[1.0, 50.0], [70.0, 3.0]]))])
    assert oracle.log_partition == pytest.approx(math.log(4))
    np.testing.assert_allclose(oracle.counts(0), [[0.25, 0], [0, 0.75]])


@pytest.mark.parametrize("scale", [1000.0, -1000.0])
def test_extreme_potentials(scale: float):
    oracle = Oracle([2, 2], [((0,), np.array([scale, scale + 1])), ((1,), np.array([scale, -np.inf]))])
    assert oracle.log_partition == pytest.approx(2 * scale + math.log1p(math.e), abs=1e-9)
    np.testing.assert_allclose(oracle.marginal(0), np.array([1, math.e]) / (1 + math.e), rtol=1e-14)


def test_impossible():
    oracle = Oracle([2], [((0,), np.array([-np.inf, 0.0]))], {0: 0})
    assert oracle.impossible and oracle.log_partition == -np.inf and oracle.count == 0
    with pytest.raises(Impossible):
        oracle.marginal(0)


def test_more_axes_than_numpy_has():
    cards = [1] * 70 + [2, 3]
    oracle = Oracle(cards, [(range(72), np.log(np.arange(1.0, 7.0)))])
    assert oracle.log_partition == pytest.approx(math.log(21))
    np.testing.assert_allclose(oracle.joint([71, 70]), np.arange(1.0, 7.0).reshape(2, 3).T / 21)


def test_empty_model():
    assert Oracle([], []).log_partition == 0.0
    assert Oracle([], [((), np.array(1.5))]).log_partition == 1.5


def test_literal_table():
    # x = 2 or not y = 0
    expected = [[False, True], [False, True], [True, True]]
    assert literal_table([3, 2], [(0, 2, True), (1, 0, False)]).tolist() == expected


def slow_scores(spec: Spec, evidence: dict) -> dict[tuple[int, ...], float]:
    result = {}
    for x in product(*(range(c) for c in spec.cardinalities)):
        score = math.fsum(float(table[tuple(x[v] for v in scope)]) for scope, table in spec.factors)
        for v, e in evidence.items():
            weight = float(e[x[v]]) if np.ndim(e) else float(x[v] == e)
            score += math.log(weight) if weight > 0 else -math.inf
        result[x] = score
    return result


@pytest.mark.parametrize("seed", range(8))
def test_against_plain_loops(seed: int):
    spec = random_spec(seed)
    if math.prod(spec.cardinalities) > 2000:
        pytest.skip("too many states for plain loops")
    evidence = random_evidence(seed, spec)
    oracle = spec.oracle(evidence)
    scores = slow_scores(spec, evidence)
    assert [tuple(row) for row in all_states(spec.cardinalities).tolist()] == list(scores)
    np.testing.assert_allclose(oracle.scores.astype(float), list(scores.values()), rtol=0, atol=1e-12)
    finite = [s for s in scores.values() if s > -math.inf]
    if not finite:
        assert oracle.impossible
        return
    total = math.fsum(math.exp(s) for s in finite)
    assert oracle.log_partition == pytest.approx(math.log(total), abs=1e-12)
    for v, card in enumerate(spec.cardinalities):
        expected = [math.fsum(math.exp(s) for x, s in scores.items() if x[v] == k) / total for k in range(card)]
        np.testing.assert_allclose(oracle.marginal(v), expected, rtol=1e-12, atol=1e-300)


@given(specs())
def test_strategies_keep_their_bounds(spec: Spec):
    assert 1 <= spec.n_variables <= 12
    assert np.prod(spec.cardinalities) <= 20_000
    assert max(spec.cardinalities) <= 5
    assert spec.build().compile().structure.n_cells == spec.n_cells


def test_strategies_reach_every_feature():
    seen = set()
    for seed in range(300):
        spec = random_spec(seed)
        used = {v for scope, _ in spec.factors for v in scope}
        seen |= {"isolated"} if used < set(range(spec.n_variables)) else set()
        for scope, table in spec.factors:
            seen.add(f"arity {len(scope)}")
            seen |= {"repeat"} if len(set(scope)) < len(scope) else set()
            seen |= {"hard"} if np.isneginf(table).any() else set()
        seen |= {f"card {c}" for c in spec.cardinalities}
        seen |= {type(op).__name__ for op in spec.operations}
        seen |= {"tied"} if any(len(getattr(op, "scopes", ())) > 1 for op in spec.operations) else set()
        evidence = random_evidence(seed, spec)
        seen |= {"virtual" if np.ndim(e) else "given" for e in evidence.values()}
        seen |= {"impossible"} if np.prod(spec.cardinalities) < 50 and spec.oracle(evidence).impossible else set()
    wanted = {"isolated", "repeat", "hard", "tied", "Clause", "Table", "virtual", "given", "impossible"}
    wanted |= {f"arity {k}" for k in range(5)} | {f"card {k}" for k in range(1, 6)}
    assert wanted <= seen


def test_the_oracle_imports_nothing_of_the_library():
    tree = ast.parse((Path(__file__).parent / "oracle.py").read_text())
    modules = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            modules |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            modules.add((node.module or ".").split(".")[0] if not node.level else ".")
    assert modules <= {"__future__", "collections", "functools", "itertools", "math", "numpy"}
