"""Model counting: against the oracle and closed forms; brackets that hold wherever the search is stopped."""

from __future__ import annotations

import math
from itertools import combinations, pairwise
from typing import Any

import numpy as np
import pytest

import markovfield as mf
from markovfield.inference.core.evidence import Evidence
from markovfield.inference.model_counting.exact_counts import chinese_remainder, count_by_elimination, primes_above
from markovfield.inference.model_counting.formula import encode
from markovfield.inference.model_counting.model_counting import is_hard
from markovfield.inference.model_counting.search import CountingSearch
from markovfield.inference.model_counting.tables_kernel import nogoods
from markovfield.inference.problem.problem import prepare
from tests.oracle import Oracle

STEPS = (1, 30, 100, 300, 1000, 3000)


def hard_model(rng: np.random.Generator) -> tuple[mf.MarkovNetwork, Oracle]:
    """Tables with many zeros, some of ones and zeros only, on variables of one to four states, often in parts."""
    n = int(rng.integers(2, 9))
    cards = rng.integers(1, 5 if n < 7 else 3, n).tolist()
    net = mf.MarkovNetwork(dict(enumerate(cards)))
    factors = []
    for _ in range(int(rng.integers(1, 9))):
        scope = rng.choice(n, int(rng.integers(1, min(n, 4) + 1)), replace=False).tolist()
        shape = [cards[v] for v in scope]
        table = rng.random(shape) * (rng.random(shape) < 0.65)
        if rng.random() < 0.4:
            table = (table > 0).astype(float)
        if rng.random() < 0.2:
            table = table * 10.0 ** rng.integers(-250, 250, shape)
        with np.errstate(divide="ignore"):
            factors.append((tuple(scope), np.log(table)))
        net.add_factor(scope, table)
    return net, Oracle(cards, factors)


def random_clauses(rng: np.random.Generator, n: int, m: int, k: int = 3) -> mf.MarkovNetwork:
    """Clauses of k literals as tables with one zero."""
    net = mf.MarkovNetwork(dict.fromkeys(range(n), 2))
    for _ in range(m):
        table = np.ones([2] * k)
        table[tuple(rng.integers(0, 2, k))] = 0.0
        net.add_factor(rng.choice(n, k, replace=False).tolist(), table)
    return net


def colouring(edges: Any, n: int, colours: int) -> mf.MarkovNetwork:
    net = mf.MarkovNetwork(dict.fromkeys(range(n), colours))
    net.add_factors(list(edges), 1.0 - np.eye(colours))
    return net


def grid(rows: int, columns: int) -> list[tuple[int, int]]:
    cells = np.arange(rows * columns).reshape(rows, columns)
    along = np.stack([cells[:, :-1].ravel(), cells[:, 1:].ravel()], 1)
    down = np.stack([cells[:-1].ravel(), cells[1:].ravel()], 1)
    return [(int(a), int(b)) for a, b in np.concatenate([along, down])]


@pytest.mark.parametrize("seed", range(60))
def test_sums_of_models_with_zeros(seed: int) -> None:
    rng = np.random.default_rng(seed)
    net, oracle = hard_model(rng)
    if oracle.log_partition == -np.inf:
        with pytest.raises(mf.ImpossibleEvidenceError):
            mf.log_partition(net, method="model_counting")
        return
    answer = mf.log_partition(net, method="sharp_sat")
    assert (answer.method, answer.guarantee, answer.converged) == ("model_counting", "exact", True)
    assert float(answer) == pytest.approx(oracle.log_partition, rel=1e-11, abs=1e-9)
    assert mf.aggregate(net, "counting", method="dpll") == oracle.count


@pytest.mark.parametrize("seed", range(60))
def test_marginals_of_models_with_zeros(seed: int) -> None:
    rng = np.random.default_rng(seed)
    net, oracle = hard_model(rng)
    if oracle.log_partition == -np.inf:
        with pytest.raises(mf.ImpossibleEvidenceError):
            mf.marginals(net, method="model_counting")
        return
    answer = mf.marginals(net, method="model_counting")
    assert answer.guarantee == "exact"
    assert answer.log_partition == pytest.approx(oracle.log_partition, rel=1e-11, abs=1e-9)
    for v in range(len(answer)):
        np.testing.assert_allclose(answer[v], oracle.marginal(v), atol=1e-9)


@pytest.mark.parametrize("seed", range(6))
def test_marginals_beside_a_junction_tree(seed: int) -> None:
    """Enough components for hits, conflicts and components without a model; every trace outgrows its first arrays."""
    rng = np.random.default_rng(seed)
    net = random_clauses(rng, 34, 95)
    for v in range(0, 34, 3):
        net.add_factor([v], rng.random(2) + 0.05)
    net.add_factor([1, 2], rng.random((2, 2)))
    expected = mf.marginals(net, {4: 1}, method="junction_tree")
    found = mf.marginals(net, {4: 1}, method="model_counting")
    np.testing.assert_allclose(found.values, expected.values, atol=1e-9)
    np.testing.assert_allclose(found.joint([3, 8]), expected.joint([3, 8]), atol=1e-9)


def test_marginals_of_a_count_that_was_not_finished() -> None:
    net = random_clauses(np.random.default_rng(3), 70, 200)
    with pytest.raises(TimeoutError, match="the models were not counted in time, and without that there are no"):
        mf.marginals(net, method=mf.ModelCounting(max_steps=1000))


def test_a_trace_that_does_not_fit() -> None:
    graph = random_clauses(np.random.default_rng(5), 60, 150).compile()
    encoding = encode(prepare(graph, Evidence.parse(graph.structure, None)))
    search = CountingSearch(encoding, 1e5, trace=True)
    with pytest.raises(mf.MemoryLimitError, match="the trace of a count, from which marginals are read, has more"):
        search.run(10**9)


@pytest.mark.parametrize("seed", range(60))
def test_brackets_hold_wherever_the_search_stops(seed: int) -> None:
    rng = np.random.default_rng(seed)
    net, oracle = hard_model(rng)
    truth = oracle.log_partition
    slack = 1e-9 * max(1.0, abs(truth)) if truth > -np.inf else 0.0
    for steps in STEPS:
        try:
            answer = mf.log_partition(net, method=mf.ModelCounting(max_steps=steps))
        except mf.ImpossibleEvidenceError:
            assert truth == -np.inf
            continue
        low, high = answer.log_partition_bounds
        assert low - slack <= truth <= high + slack
        assert float(answer) in (low, high)
        if answer.guarantee == "exact":
            assert low == high
        else:
            assert not answer.converged


@pytest.mark.parametrize("seed", range(12))
def test_brackets_of_a_search_alone(seed: int) -> None:
    """Without mini-buckets: after every few steps, and again when it ends in haste."""
    rng = np.random.default_rng(seed)
    net = random_clauses(rng, 16, 36)
    graph = net.compile()
    truth = float(mf.log_partition(graph, method="junction_tree"))
    encoding = encode(prepare(graph, Evidence.parse(graph.structure, None)))
    stops = 0
    for steps in range(1, 4000, 97):
        search = CountingSearch(encoding, 1e6)
        if search.run(steps):
            break
        for hasty in (False, True):
            if hasty:
                search.run(10**6, hasty=True)
            low, high = (x + encoding.log_scale for x in search.bounds())
            assert low - 1e-9 <= truth <= high + 1e-9
        assert low > -np.inf, "a search in haste ends with a model of everything"
        stops += 1
    assert stops > 3


def test_a_search_that_is_taken_up_again_comes_to_the_same() -> None:
    graph = random_clauses(np.random.default_rng(5), 40, 90).compile()
    encoding = encode(prepare(graph, Evidence.parse(graph.structure, None)))
    whole, pieces = CountingSearch(encoding, 1e6), CountingSearch(encoding, 1e6)
    assert whole.run(10**9)
    lows = []
    while not pieces.run(1000):
        lows.append(pieces.bounds()[0])
    assert pieces.bounds() == whole.bounds()
    assert len(lows) > 5
    assert max(lows) <= whole.bounds()[0] + 1e-9
    assert whole.bounds()[0] == pytest.approx(float(mf.log_partition(graph, method="junction_tree")), abs=1e-9)


def test_a_cache_that_is_too_small_forgets_and_stays_right(monkeypatch: pytest.MonkeyPatch) -> None:
    from markovfield.inference.model_counting import search as counting_search

    monkeypatch.setattr(counting_search, "FIRST_SLOTS", 8)
    monkeypatch.setattr(counting_search, "FIRST_BYTES", 512)
    graph = random_clauses(np.random.default_rng(6), 40, 80).compile()
    truth = float(mf.log_partition(graph, method="junction_tree"))
    encoding = encode(prepare(graph, Evidence.parse(graph.structure, None)))
    for memory in (0.0, 1e5):
        search = CountingSearch(encoding, memory)
        while not search.run(20_000):
            pass
        assert search.bounds()[0] == pytest.approx(truth, abs=1e-9)
        assert (len(search.state.pool) > 512) == (memory > 0)


def test_learned_clauses_are_forgotten_and_the_sum_stays_right(monkeypatch: pytest.MonkeyPatch) -> None:
    from markovfield.inference.model_counting import search as counting_search

    monkeypatch.setattr(counting_search, "CLAUSES", 40)
    for seed in range(4):
        graph = random_clauses(np.random.default_rng(seed), 30, 110).compile()
        encoding = encode(prepare(graph, Evidence.parse(graph.structure, None)))
        search = CountingSearch(encoding, 1e6)
        assert search.run(10**9)
        assert search.bounds()[0] == pytest.approx(float(mf.log_partition(graph, method="junction_tree")), abs=1e-9)


@pytest.mark.parametrize("seed", range(8))
def test_clauses_near_the_threshold(seed: int) -> None:
    """Few models, many conflicts, many components without a model: what is learned must not spoil the cache."""
    net = random_clauses(np.random.default_rng(100 + seed), 30, 110)
    try:
        truth = float(mf.log_partition(net, method="junction_tree"))
    except mf.ImpossibleEvidenceError:
        with pytest.raises(mf.ImpossibleEvidenceError):
            mf.log_partition(net, method="model_counting")
        return
    assert float(mf.log_partition(net, method="model_counting")) == pytest.approx(truth, abs=1e-9)


@pytest.mark.parametrize("seed", range(15))
def test_evidence_hard_and_soft(seed: int) -> None:
    rng = np.random.default_rng(seed)
    net = random_clauses(rng, 12, 20)
    soft = rng.random(2) * (1.0, float(rng.random() < 0.5))
    evidence = {0: int(rng.integers(0, 2)), 1: soft, 2: rng.random(2)}
    try:
        truth = float(mf.log_partition(net, evidence, method="enumeration"))
    except mf.ImpossibleEvidenceError:
        with pytest.raises(mf.ImpossibleEvidenceError):
            mf.log_partition(net, evidence, method="model_counting")
        return
    assert float(mf.log_partition(net, evidence, method="model_counting")) == pytest.approx(truth, abs=1e-9)


def test_structured_factors() -> None:
    net = mf.MarkovNetwork(dict.fromkeys(range(12), 2))
    net.add_clause(dict.fromkeys(range(6), 1))
    net.add_clause({0: 1}, {5: 1, 7: 1}, weight=1.5)
    net.add_parity(dict.fromkeys(range(4, 10), 1))
    net.add_cardinality([-np.inf, 1.0, 2.0, 1.0, -np.inf], dict.fromkeys(range(6, 12), 1))
    for evidence in ({}, {0: 1, 6: 0}, {5: [0.2, 0.9]}):
        truth = float(mf.log_partition(net, evidence, method="enumeration"))
        assert float(mf.log_partition(net, evidence, method="model_counting")) == pytest.approx(truth, abs=1e-9)


def test_wide_beyond_junction_trees() -> None:
    """A grid of 3 colours joined by clauses over far pairs: refused by a tree of small work, counted all the same."""
    net = random_clauses(np.random.default_rng(2), 70, 300)
    refused = mf.JunctionTree(work_limit=2.0**20)
    with pytest.raises(mf.MemoryLimitError):
        mf.log_partition(net, method=refused)
    answer = mf.log_partition(net, method="model_counting")
    assert answer.guarantee == "exact"
    assert answer.width > 20


# ---- counts to the last digit -------------------------------------------------------------------------------------

COUNTERS = ["junction_tree", "variable_elimination", "model_counting"]


def fibonacci(n: int) -> int:
    a, b = 0, 1
    for _ in range(n):
        a, b = b, a + b
    return a


@pytest.mark.parametrize("method", [*COUNTERS, "belief_propagation"])
def test_chains_without_two_neighbouring_ones(method: str) -> None:
    for n in (10, 75, 78, 100, 400):
        net = mf.MarkovNetwork(dict.fromkeys(range(n), 2))
        net.add_factors(pairwise(range(n)), [[1.0, 1.0], [1.0, 0.0]])
        found = mf.aggregate(net, "counting", method=method)
        assert type(found) is int
        assert found == fibonacci(n + 2)


@pytest.mark.parametrize("method", COUNTERS)
def test_colourings(method: str) -> None:
    def count(edges: Any, n: int, colours: int) -> int:
        found = mf.aggregate(colouring(edges, n, colours), "counting", method=method)
        assert type(found) is int
        return found

    for n in (5, 60, 101):
        cycle = [(i, (i + 1) % n) for i in range(n)]
        assert count(cycle, n, 3) == 2**n + (-1) ** n * 2
        assert count(cycle, n, 5) == 4**n + (-1) ** n * 4
    tree = [(i, (i - 1) // 2) for i in range(1, 90)]
    assert count(tree, 90, 4) == 4 * 3**89
    for n in (4, 6):
        assert count(combinations(range(n), 2), n, 7) == math.perm(7, n)


@pytest.mark.parametrize("method", COUNTERS)
def test_independent_sets_of_ladders(method: str) -> None:
    """With a(0) = 1, a(1) = 3 and a(n) = 2 a(n-1) + a(n-2)."""
    for n in (3, 60):
        net = mf.MarkovNetwork(dict.fromkeys(range(2 * n), 2))
        net.add_factors(grid(2, n), [[1.0, 1.0], [1.0, 0.0]])
        a, b = 1, 3
        for _ in range(n - 1):
            a, b = b, 2 * b + a
        assert mf.aggregate(net, "counting", method=method) == b


def test_counts_with_evidence_and_parts() -> None:
    """Two chains and free variables of one and of three states; evidence hard and soft, of which only zeros matter."""
    n = 80
    net = mf.MarkovNetwork({**dict.fromkeys(range(2 * n), 2), "one": 1, "free": 3})
    for start in (0, n):
        net.add_factors(pairwise(range(start, start + n)), [[0.5, 2.0], [7.0, 0.0]])
    evidence = {0: 1, n: [0.3, 0.0], "free": [0.2, 0.0, 0.5]}
    expected = fibonacci(n) * fibonacci(n + 1) * 2
    for method in COUNTERS:
        assert mf.aggregate(net, "counting", evidence, method=method) == expected


def test_counting_refuses_what_was_not_counted() -> None:
    net = colouring([(0, 1), (1, 2), (0, 2)], 3, 3)
    with pytest.raises(mf.ModelError, match="counting needs an exact method, and belief_propagation answered with"):
        mf.aggregate(net, "counting", method="belief_propagation")


def test_elimination_modulo_primes_in_few_lanes(monkeypatch: pytest.MonkeyPatch) -> None:
    from markovfield.inference.model_counting import exact_counts

    graph = colouring(grid(4, 10), 40, 4).compile()
    problem = prepare(graph, Evidence.parse(graph.structure, None))
    whole = count_by_elimination(problem, 81)
    monkeypatch.setattr(exact_counts, "MOST_CELLS", 2**11)
    assert count_by_elimination(problem, 81) == whole
    assert math.log(whole) == pytest.approx(float(mf.log_partition(graph)), rel=1e-12)
    monkeypatch.setattr(exact_counts, "MOST_CELLS", 2**5)
    with pytest.raises(mf.MemoryLimitError, match="counting to the last digit needs cliques of"):
        count_by_elimination(problem, 81)
    net = mf.MarkovNetwork(dict.fromkeys(range(60), 2))
    net.add_factors(combinations(range(8), 2), [[1.0, 1.0], [1.0, 0.0]])
    assert mf.aggregate(net, "counting") == 9 * 2**52


def test_primes_and_remainders() -> None:
    for bits in (1, 31, 100, 1000):
        primes = primes_above(bits)
        assert math.prod(primes) >= 2**bits
        assert len(set(primes)) == len(primes)
        for p in primes[:3]:
            assert all(p % d for d in range(2, 50_000))
        number = 2**bits - 12345 % 2**bits
        assert chinese_remainder([number % p for p in primes], primes) == number


# ---- parts --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(20))
def test_nogoods_cover_the_zeros_and_nothing_else(seed: int) -> None:
    rng = np.random.default_rng(seed)
    sizes = rng.integers(2, 4, int(rng.integers(1, 5)))
    cells = np.where(rng.random(int(np.prod(sizes))) < 0.5, -np.inf, 0.0)
    covered = np.zeros(sizes.tolist(), bool)
    for row in nogoods(cells, sizes):  # type: ignore[attr-defined]
        covered[tuple(slice(None) if i < 0 else i for i in row.tolist())] = True
    np.testing.assert_array_equal(covered.ravel(), np.isneginf(cells))


def test_which_models_are_for_counting() -> None:
    assert is_hard(random_clauses(np.random.default_rng(0), 10, 5).compile())
    soft = mf.MarkovNetwork(dict.fromkeys(range(3), 2))
    soft.add_factors([(0, 1), (1, 2)], [[2.0, 1.0], [1.0, 2.0]])
    soft.add_factor([0], [1.0, 0.0])
    assert not is_hard(soft.compile())


def test_auto_counts_where_a_tree_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    from markovfield.inference import automatic

    net = random_clauses(np.random.default_rng(2), 70, 300)
    monkeypatch.setattr(automatic, "AUTO_WORK_LIMIT", 2.0**20)
    told = mf.explain(net, "log_partition")
    assert told.method == "model_counting"
    assert told.guarantee == "see its answer"
    assert "full of hard zeros" in told.reason
    answer = mf.log_partition(net)
    assert (answer.method, answer.guarantee) == ("model_counting", "exact")
    assert mf.marginals(net).method == "model_counting"
    monkeypatch.setattr(automatic, "COUNTING_STEPS", 3000)
    stopped = mf.log_partition(net)
    low, high = stopped.log_partition_bounds
    assert stopped.guarantee == "lower"
    assert low <= float(answer) <= high < 70 * math.log(2.0)


def test_stopping_by_the_callback() -> None:
    net = random_clauses(np.random.default_rng(3), 70, 200)
    answer = mf.log_partition(net, method="model_counting", callback=lambda progress: True)
    low, high = answer.log_partition_bounds
    assert not answer.converged
    assert -np.inf < low <= high <= 70 * math.log(2.0) + 1e-9


# ---- the lowest score ---------------------------------------------------------------------------------------------


def test_a_clause_that_evidence_satisfies_cannot_be_violated() -> None:
    net = mf.MarkovNetwork(dict.fromkeys("ABC", 2))
    net.add_clause({"A": 1, "B": 1, "C": 1})
    assert mf.aggregate(net, "min_sum") == -np.inf
    assert mf.aggregate(net, "min_sum", {"A": 1}) == 0.0
    assert mf.aggregate(net, "min_sum", {"A": 0}) == -np.inf
    assert mf.aggregate(net, "min_sum", {"A": 0, "B": 0, "C": 1}) == 0.0
    net.add_factor(["B"], [2.0, 5.0])
    assert mf.aggregate(net, "min_sum", {"A": 1}) == pytest.approx(math.log(2.0))


def test_counts_within_reach_of_evidence() -> None:
    net = mf.MarkovNetwork(dict.fromkeys(range(6), 2))
    net.add_cardinality([-np.inf, -np.inf, 2.0, 3.0, 4.0, -np.inf], dict.fromkeys(range(6), 1))
    assert mf.aggregate(net, "min_sum", {0: 1, 1: 1}) == -np.inf
    assert mf.aggregate(net, "min_sum", {0: 1, 1: 1, 2: 0, 3: 0}) == 2.0


@pytest.mark.parametrize("seed", range(40))
def test_lowest_scores_by_enumeration(seed: int) -> None:
    rng = np.random.default_rng(seed)
    net = mf.MarkovNetwork(dict.fromkeys(range(6), 2))
    for _ in range(4):
        scope = rng.choice(6, 3, replace=False).tolist()
        net.add_clause({v: int(rng.integers(0, 2)) for v in scope}, weight=np.inf if rng.random() < 0.5 else 0.7)
    table = rng.random((2, 2)) * (rng.random((2, 2)) < 0.8)
    net.add_factor([0, 1], table)
    evidence = {v: int(rng.integers(0, 2)) for v in range(6) if rng.random() < 0.6}
    graph = net.compile()
    rows = np.indices([2] * 6).reshape(6, -1).T
    agrees = np.all([rows[:, v] == i for v, i in evidence.items()], axis=0) if evidence else np.ones(64, bool)
    expected = float(graph.score(rows[agrees]).min())
    assert mf.aggregate(net, "min_sum", evidence) == pytest.approx(expected)


@pytest.mark.parametrize("steps", [1, 2, 3])
def test_bounds_of_two_ways_to_the_same_number_do_not_cross(steps: int) -> None:
    inf = math.inf
    net = mf.MarkovNetwork({"x0": 2, "x1": 4})
    net.add_factor(["x1", "x1"], log_table=[[-inf, 0, 0, 0], [0, -inf, 0, 0], [0, 0, 0, 0], [0, 0, 0, -inf]])
    table = [[[0, 0], [0, 0], [-0.033, 0], [0, 0]], [[0, 0], [0, 0], [0, 1.051], [0, 0]]]
    net.add_factor(["x0", "x1", "x0"], log_table=table)
    net.add_truncated([["x0", "x1"], ["x1", "x0"]], 2.0, 2.0, power=1)
    low, high = mf.log_partition(net, method=mf.ModelCounting(max_steps=steps)).log_partition_bounds
    assert low <= high
