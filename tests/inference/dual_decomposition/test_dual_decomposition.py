"""Dual decomposition against the oracle, the linear program, and a general solver of its quadratic programs."""

from __future__ import annotations

import itertools
import time
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import markovfield as mf
from markovfield.inference.core.evidence import Evidence
from markovfield.inference.core.running import Running
from markovfield.inference.dual_decomposition.dual_decomposition import DualDecomposition
from markovfield.inference.dual_decomposition.subproblems import Factors, Forests
from markovfield.inference.linear_programming.linear_program import LinearProgram
from markovfield.inference.problem.merged_pairs import prepare_merged
from tests.data import data_path
from tests.inference.relaxations import StopAfter, decoded, frustrated_lattice
from tests.strategies import specs_with_evidence

EXAMPLES = settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])
WAYS = [
    DualDecomposition(),
    DualDecomposition(algorithm="subgradient", max_iterations=300),
    DualDecomposition(algorithm="subgradient", subproblems="trees", max_iterations=300),
]


@pytest.mark.parametrize("method", WAYS, ids=["ad3", "subgradient", "trees"])
@pytest.mark.parametrize("kind", ["graph", "forest", "bayesian"])
@EXAMPLES
@given(data=st.data())
def test_brackets_the_best_score(kind: str, method: DualDecomposition, data: st.DataObject) -> None:
    spec, evidence = data.draw(specs_with_evidence(kind))
    answer = decoded(spec, evidence, method)
    if answer is not None and kind == "forest" and method.algorithm == "ad3":
        assert answer.upper_bound <= spec.oracle(evidence).best_score + 1e-4


@pytest.mark.parametrize("n_states", [2, 3])
@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
@example(seed=4949)  # The penalty grows, and copies hardly move long before they agree.
def test_comes_to_the_optimum_of_the_linear_program(n_states: int, seed: int) -> None:
    net, _ = frustrated_lattice(np.random.default_rng(seed), 3, 4, n_states)
    wanted = mf.decode(net, method=LinearProgram(cycles=0)).upper_bound
    found = mf.decode(net, method=DualDecomposition(max_iterations=20_000))
    assert found.converged
    assert wanted - 1e-6 <= found.upper_bound <= wanted + 1e-4


def test_subgradients_come_near_it() -> None:
    net, _ = frustrated_lattice(np.random.default_rng(5), 4, 4, 3)
    wanted = mf.decode(net, method=LinearProgram(cycles=0)).upper_bound
    for subproblems in ("factors", "trees"):
        method = DualDecomposition(algorithm="subgradient", subproblems=subproblems, max_iterations=3000)
        found = mf.decode(net, method=method)
        assert wanted - 1e-6 <= found.upper_bound <= wanted + 0.02


def kinds() -> dict[str, mf.MarkovNetwork]:
    """A factor of every kind, alone on its variables."""
    rng = np.random.default_rng(0)
    cards = {"A": 2, "B": 3, "C": 2, "D": 2}
    some, negated = {"A": 1, "B": 2, "C": 0}, {"D": 1}
    nets = {name: mf.MarkovNetwork(cards) for name in ("table", "clause", "exactly", "cardinality", "parity", "potts")}
    nets["table"].add_factor(["A", "B", "D"], log_table=rng.normal(size=(2, 3, 2)))
    nets["clause"].add_clause(some, negated, weight=1.5)
    nets["exactly"].add_exactly(2, some, negated)
    nets["cardinality"].add_cardinality([0.0, 1.0, -1.0, 0.5], some, negated)
    nets["parity"].add_parity(some, negated, weight=2.0)
    nets["potts"].add_truncated([["A", "B"]], 0.7, 2.0)
    return nets


@pytest.mark.parametrize("kind", list(kinds()))
def test_quadratic_programs_and_best_configurations(kind: str) -> None:
    from scipy.optimize import minimize

    graph = kinds()[kind].compile()
    parts = Factors(prepare_merged(graph, Evidence.parse(graph.structure, None)))
    s = parts.structure
    scope = parts.layout.scopes.tolist()
    cards = [int(s.cardinalities[v]) for v in scope]
    configurations = list(itertools.product(*(range(c) for c in cards)))
    table = graph.table(0).ravel()
    possible = np.flatnonzero(np.isfinite(table))
    starts = np.concatenate([[0], np.cumsum(cards)])
    rng = np.random.default_rng(1)
    for trial in range(6):
        scores, penalty = rng.normal(size=len(parts.value)), float(0.2 + trial)
        aims = np.concatenate([rng.dirichlet(np.ones(c)) for c in cards])
        ones = np.zeros((len(possible), len(scores)))
        for row, cell in enumerate(possible):
            ones[row, starts[:-1] + np.array(configurations[cell])] = 1.0
        values = table[possible] + ones @ scores
        copies = np.zeros(len(scores))
        assert parts.best(scores, copies, Running()) == pytest.approx(values.max(), abs=1e-12)
        assert copies.tolist() == ones[values.argmax()].tolist()

        def loss(
            mixture: Any, values: Any = values, ones: Any = ones, penalty: float = penalty, aims: Any = aims
        ) -> float:
            return float(-values @ mixture + 0.5 * penalty * np.square(mixture @ ones - aims).sum())

        # Kept configurations carry over from the trial before, as they do from iteration to iteration.
        parts.quadratic(scores, aims, penalty, 100, copies, Running())
        n = int(parts.counts[0])
        kept = parts.kept[: n * len(cards)].reshape(n, len(cards))
        mixture = np.zeros(len(possible))
        for weight, row in zip(parts.weights[:n], kept.tolist(), strict=True):
            mixture[possible.tolist().index(configurations.index(tuple(row)))] += weight
        assert mixture.sum() == pytest.approx(1.0) and mixture.min() >= 0
        assert copies == pytest.approx(mixture @ ones, abs=1e-9)
        start = np.full(len(possible), 1.0 / len(possible))
        best = minimize(
            loss, start, bounds=[(0, 1)] * len(start), constraints={"type": "eq", "fun": lambda x: x.sum() - 1}
        )
        assert loss(mixture) <= best.fun + 1e-6


def test_constraints_over_many_variables() -> None:
    rng = np.random.default_rng(8)
    n, k = 200, 37
    gains = rng.normal(size=n)
    net = mf.MarkovNetwork(dict.fromkeys(range(n), 2))
    for v in range(n):
        net.add_factor([v], log_table=[0.0, gains[v]])
    net.add_exactly(k, dict.fromkeys(range(n), 1))
    answer = mf.decode(net, method=DualDecomposition())
    assert answer.optimal
    assert answer.score == pytest.approx(np.sort(gains)[-k:].sum(), abs=1e-9)
    assert sum(answer.assignment.values()) == k


def test_an_assignment_problem_is_exact() -> None:
    # Rows and columns of a matrix each choose one cell: the relaxation has whole vertices only.
    from scipy.optimize import linear_sum_assignment

    n = 6
    gains = np.random.default_rng(3).normal(size=(n, n))
    net = mf.MarkovNetwork({(i * n + j): 2 for i in range(n) for j in range(n)})
    for i in range(n):
        for j in range(n):
            net.add_factor([i * n + j], log_table=[0.0, gains[i, j]])
        net.add_exactly(1, dict.fromkeys([i * n + j for j in range(n)], 1))
        net.add_exactly(1, dict.fromkeys([j * n + i for j in range(n)], 1))
    answer = mf.decode(net, method=DualDecomposition())
    rows, columns = linear_sum_assignment(gains, maximize=True)
    assert answer.upper_bound == pytest.approx(gains[rows, columns].sum(), abs=1e-4)
    assert answer.score == pytest.approx(gains[rows, columns].sum(), abs=1e-9)


def test_forests_share_out_the_factors() -> None:
    net, _ = frustrated_lattice(np.random.default_rng(0), 4, 5, 2)
    graph = net.compile()
    forests = Forests(prepare_merged(graph, Evidence.parse(graph.structure, None)))
    sizes = [len(part.table_offsets) for part in forests.structures]
    assert sum(sizes) == 31 and sizes[0] == 19  # a spanning tree comes first
    assert forests.structures is Forests(prepare_merged(graph, Evidence.parse(graph.structure, None))).structures


def test_reference_instances() -> None:
    # The best scores, in powers of ten, are those of the index of the reference data.
    for name, best in (("grid4x4", 44.324972), ("grid3x3", 22.823422), ("smokers_10", 157.214601)):
        model = mf.io.read_uai(data_path("uai_small", f"{name}.uai"))
        answer = mf.decode(model, method=DualDecomposition())
        assert answer.upper_bound / np.log(10) >= best - 1e-5
        assert answer.score / np.log(10) == pytest.approx(best, abs=1e-5)


def test_stopped_answers_with_what_there_is() -> None:
    net, _ = frustrated_lattice(np.random.default_rng(2), 6, 6, 3)
    for algorithm in ("ad3", "subgradient"):
        method = DualDecomposition(algorithm=algorithm, tolerance=1e-12)
        for interrupt in (False, True):
            answer = mf.decode(net, method=method, callback=StopAfter(40, interrupt=interrupt))
            assert not answer.converged and answer.score < answer.upper_bound < np.inf
    # The callback takes its time, so that the clock runs out on the fastest machine, after some iterations on any.
    method = DualDecomposition(tolerance=1e-14, max_iterations=10**7)
    timed = mf.decode(net, method=method, time_limit=0.5, callback=lambda p: time.sleep(0.02))
    assert not timed.converged and timed.upper_bound < np.inf


def test_goes_on_from_an_earlier_answer() -> None:
    net, _ = frustrated_lattice(np.random.default_rng(2), 5, 5, 3)
    with pytest.warns(UserWarning, match="did not converge"):
        first = mf.decode(net, method=DualDecomposition(max_iterations=30))
    more = mf.decode(net, method=DualDecomposition(), init=first)
    assert more.score >= first.score and more.upper_bound <= first.upper_bound + 1e-6


def test_small_models_and_impossible_ones() -> None:
    single = mf.MarkovNetwork({"A": 3, "B": 1})
    single.add_factor(["A"], log_table=[0.0, 2.0, 1.0])
    for method in WAYS:
        answer = mf.decode(single, method=method)
        assert (answer.assignment["A"], answer.score, answer.optimal) == (1, 2.0, True)
        bad = mf.MarkovNetwork(dict.fromkeys("ABC", 2))
        bad.add_factors([("A", "B"), ("B", "C"), ("C", "A")], np.ones((2, 2)) - np.eye(2))
        with pytest.raises(mf.ImpossibleEvidenceError, match="probability zero to every assignment"):
            mf.decode(bad, method=method)


def test_what_it_refuses() -> None:
    with pytest.raises(
        mf.ModelError, match="algorithm of DualDecomposition must be 'ad3' or 'subgradient', got 'adam'"
    ):
        DualDecomposition(algorithm="adam")
    with pytest.raises(mf.ModelError, match="must be 'factors' or 'trees', got 'cliques'"):
        DualDecomposition(subproblems="cliques")
    with pytest.raises(mf.ModelError, match="needs algorithm='subgradient'"):
        DualDecomposition(subproblems="trees")
    with pytest.raises(mf.ModelError, match="penalty of DualDecomposition must be positive, got 0"):
        DualDecomposition(penalty=0.0)
    with pytest.raises(mf.ModelError, match="max_iterations of DualDecomposition must be at least 1"):
        DualDecomposition(max_iterations=0)
    net, _ = frustrated_lattice(np.random.default_rng(2), 2, 2, 2)
    with pytest.raises(mf.ModelError, match="dual_decomposition finds one assignment, not the 3 best"):
        mf.decode(net, method=DualDecomposition(), n_best=3)
