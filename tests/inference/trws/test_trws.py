"""Sequential tree-reweighted max-product against the oracle, the linear program, and itself on lattices."""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import markovfield as mf
from markovfield.inference.core.evidence import Evidence
from markovfield.inference.core.running import Running
from markovfield.inference.linear_programming.linear_program import LinearProgram
from markovfield.inference.local_search.incumbent import Incumbent
from markovfield.inference.problem.merged_pairs import prepare_merged
from markovfield.inference.trws.lattice import LatticeMessages
from markovfield.inference.trws.plan import sequential_plan
from markovfield.inference.trws.trws import TRWS, SequentialMessages
from tests.inference.relaxations import StopAfter, check, decoded, frustrated_lattice, lattice
from tests.oracle import Oracle
from tests.strategies import Spec, specs, specs_with_evidence

EXAMPLES = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
SEEDS = st.integers(0, 2**32 - 1)
FORMS = pytest.mark.parametrize("form", ["potts", "steps", "table", "scaled"])


@pytest.mark.parametrize("kind", ["graph", "forest", "bayesian"])
@EXAMPLES
@given(data=st.data())
def test_brackets_the_best_score(kind: str, data: st.DataObject) -> None:
    spec, evidence = data.draw(specs_with_evidence(kind))
    answer = decoded(spec, evidence, TRWS())
    if answer is not None and kind == "forest":
        assert answer.optimal and answer.guarantee == "exact"


@EXAMPLES
@given(specs("forest", clauses=True))
def test_structured_factors_of_a_forest_are_exact(spec: Spec) -> None:
    answer = decoded(spec, {}, TRWS())
    assert answer is None or answer.optimal


def passes(graph: mf.FactorGraph, how_many: int) -> list[float]:
    """The bound after each pass, as it comes."""
    problem = prepare_merged(graph, Evidence.parse(graph.structure, None))
    plan = sequential_plan(problem.structure)
    values = []
    with plan.tables(problem.potentials.log_tables) as tables:
        found = LatticeMessages.fit(problem, plan, tables) or SequentialMessages(problem, plan, tables)
        for _ in range(how_many):
            found.run(Running(), Incumbent(problem))
            values.append(found.value)
    return values


@EXAMPLES
@given(specs("graph"))
def test_the_bound_never_rises(spec: Spec) -> None:
    oracle = spec.oracle()
    if oracle.impossible:
        return
    values = np.array(passes(spec.build().compile(), 12))
    room = 1e-9 * max(1.0, abs(oracle.best_score))
    assert (np.diff(values) <= room).all()
    assert values.min() >= oracle.best_score - room


@FORMS
def test_the_bound_never_rises_on_a_lattice(form: str) -> None:
    values = np.array(passes(lattice(np.random.default_rng(3), 9, 7, 4, form), 30))
    assert (np.diff(values) <= 1e-9 * abs(values[0])).all()


@FORMS
@pytest.mark.parametrize("shape", [(2, 2, 2), (3, 7, 3), (6, 2, 4), (131, 3, 2), (4, 140, 3)])
def test_diagonals_do_what_rows_do(form: str, shape: tuple[int, int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    graph = lattice(np.random.default_rng(7), *shape, form, turned=shape[0] % 2 == 1)
    fit: Any = LatticeMessages.fit
    used = []

    def noted(*given: Any) -> Any:
        used.append(fit(*given))
        return used[-1]

    monkeypatch.setattr(LatticeMessages, "fit", noted)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*did not converge.*")
        one = mf.decode(graph, method=TRWS(max_iterations=20))
        monkeypatch.setattr(LatticeMessages, "fit", lambda *_: None)
        two = mf.decode(graph, method=TRWS(max_iterations=20))
    assert used[0] is not None
    assert one.upper_bound == pytest.approx(two.upper_bound, rel=1e-12)
    assert one.score == pytest.approx(two.score, rel=1e-12)
    assert one.iterations == two.iterations


@settings(max_examples=25, deadline=None)
@given(SEEDS)
def test_meets_the_linear_program_on_binary_models(seed: int) -> None:
    # Fixed points are optimal there (Kolmogorov and Wainwright 2005); for more states they may be above.
    net, _ = frustrated_lattice(np.random.default_rng(seed), 3, 4, 2)
    ours = mf.decode(net, method=TRWS(tolerance=1e-10, max_iterations=5000))
    theirs = mf.decode(net, method=LinearProgram(cycles=0))
    assert theirs.upper_bound - 1e-6 <= ours.upper_bound <= theirs.upper_bound + 1e-3


@settings(max_examples=25, deadline=None)
@given(SEEDS)
def test_is_never_below_the_linear_program(seed: int) -> None:
    rng = np.random.default_rng(seed)
    net, factors = frustrated_lattice(rng, 2, 4, 3)
    ours = mf.decode(net, method=TRWS())
    theirs = mf.decode(net, method=LinearProgram(cycles=0))
    check(ours, Oracle([3] * 8, factors), [ours.assignment[v] for v in range(8)])
    assert ours.upper_bound >= theirs.upper_bound - 1e-6


@pytest.mark.parametrize("form", ["linear", "quadratic", "other", "one_sided"])
def test_tables_of_many_states(form: str) -> None:
    # From 64 states on, what falls by steps or squares goes by distance transforms; sizes may differ.
    rng = np.random.default_rng(5)
    cards = {"A": 70, "B": 66, "C": 70}
    apart = np.abs(np.arange(70)[:, None] - np.arange(70))
    table = {
        "linear": -np.minimum(0.2 * apart, 3.0),
        "quadratic": -np.minimum(0.05 * apart**2, 4.0),
        "other": -np.minimum(np.sqrt(apart), 3.0),
        "one_sided": -0.1 * np.maximum(0, np.arange(70)[:, None] - np.arange(70)),
    }[form]
    net = mf.MarkovNetwork(cards)
    for name, card in cards.items():
        net.add_factor([name], log_table=2.0 * rng.normal(size=card))
    for one, two in (("A", "B"), ("B", "C"), ("C", "A")):
        net.add_factor([one, two], log_table=table[: cards[one], : cards[two]])
    answer = mf.decode(net, method=TRWS())
    exact = mf.decode(net, method="junction_tree")
    assert answer.score <= exact.score + 1e-9 <= answer.upper_bound + 2e-9
    # Forests of such tables are exact, so the messages are.
    chain = mf.MarkovNetwork(cards)
    for one, two in (("A", "B"), ("B", "C")):
        chain.add_factor([one, two], log_table=table[: cards[one], : cards[two]])
    for name, card in cards.items():
        chain.add_factor([name], log_table=2.0 * rng.normal(size=card))
    best = mf.decode(chain, method=TRWS())
    assert best.optimal
    assert best.score == pytest.approx(mf.decode(chain, method="junction_tree").score, abs=1e-9)


def frustrated() -> mf.MarkovNetwork:
    return frustrated_lattice(np.random.default_rng(2), 6, 6, 3)[0]


def test_stopped_answers_with_what_there_is() -> None:
    net = frustrated()
    full = mf.decode(net, method=TRWS())
    assert not full.optimal  # otherwise this test says nothing
    for interrupt in (False, True):
        answer = mf.decode(net, method=TRWS(), callback=StopAfter(8, interrupt=interrupt))
        assert not answer.converged
        assert full.upper_bound <= answer.upper_bound < np.inf
        assert answer.score > -np.inf
    hardly = mf.decode(net, method=TRWS(), callback=StopAfter(1))
    assert hardly.gap == np.inf and not hardly.optimal
    larger = lattice(np.random.default_rng(4), 60, 60, 8, "potts")
    # The callback takes its time, so that the clock runs out on the fastest machine, after some iterations on any.
    method = TRWS(tolerance=0.0, max_iterations=10**6)
    timed = mf.decode(larger, method=method, time_limit=0.5, callback=lambda p: time.sleep(0.02))
    assert not timed.converged and timed.upper_bound < np.inf


def test_progress_tells_score_and_bound() -> None:
    told = []
    mf.decode(frustrated(), method=TRWS(), callback=lambda p: told.append((p.value, p.bound)) and None)
    bounds = [bound for _, bound in told if bound is not None and np.isfinite(bound)]
    assert len(bounds) > 5 and (np.diff(bounds) <= 0).all()
    assert all(value <= bound + 1e-9 for value, bound in told if value is not None and bound is not None)


@pytest.mark.parametrize("make", [frustrated, lambda: lattice(np.random.default_rng(1), 8, 8, 4, "potts")])
def test_goes_on_from_an_earlier_answer(make: Any) -> None:
    model = make()
    with pytest.warns(UserWarning, match="did not converge"):
        first = mf.decode(model, method=TRWS(max_iterations=3))
    more = mf.decode(model, method=TRWS(), init=first)
    alone = mf.decode(model, method=TRWS())
    assert more.upper_bound <= first.upper_bound + 1e-9
    assert more.score >= first.score
    assert more.iterations < alone.iterations
    given = mf.decode(model, method=TRWS(), init=alone.assignment)
    assert given.score >= alone.score - 1e-9
    with pytest.raises(mf.ModelError, match="init must be an earlier Decoding"):
        mf.decode(model, method=TRWS(), init=3)


def test_the_plan_stays_with_the_structure() -> None:
    graph = frustrated().compile()
    mf.decode(graph, method=TRWS())
    plan = sequential_plan(graph.structure)
    other = mf.decode(graph.with_tables(-graph.log_tables), method=TRWS())
    assert sequential_plan(graph.structure) is plan
    fresh = frustrated().compile()
    assert other.score == mf.decode(fresh.with_tables(-fresh.log_tables), method=TRWS()).score


def test_hard_zeros() -> None:
    net = mf.MarkovNetwork(dict.fromkeys("ABC", 3))
    net.add_factors([("A", "B"), ("B", "C"), ("C", "A")], np.ones((3, 3)) - np.eye(3))
    net.add_factor(["A"], log_table=[0.0, 1.0, 2.0])
    answer = mf.decode(net, method=TRWS())
    assert answer.optimal and answer.score == 2.0 and len(set(answer.assignment.values())) == 3
    # Two colours for a triangle: every factor has its states, all together have none.
    bad = mf.MarkovNetwork(dict.fromkeys("ABC", 2))
    bad.add_factors([("A", "B"), ("B", "C"), ("C", "A")], np.ones((2, 2)) - np.eye(2))
    with pytest.raises(mf.ImpossibleEvidenceError, match="probability zero to every assignment"):
        mf.decode(bad, method=TRWS())


def test_several_factors_on_a_pair_may_rule_out_states() -> None:
    net = mf.MarkovNetwork({"A": 3, "B": 3})
    net.add_factor(["A", "B"], [[1, 1, 0], [0, 0, 1], [1, 1, 1]])
    net.add_factor(["B", "A"], np.transpose([[0, 0, 1], [1, 1, 0], [0, 2, 3]]))
    answer = mf.decode(net, method=TRWS())
    assert answer.optimal and answer.assignment == {"A": 2, "B": 2}
    net.add_factor(["A"], [1, 1, 0])
    with pytest.raises(mf.ImpossibleEvidenceError, match="even without evidence"):
        mf.decode(net, method=TRWS())


def test_small_models() -> None:
    single = mf.MarkovNetwork({"A": 3})
    single.add_factor(["A"], log_table=[0.0, 2.0, 1.0])
    answer = mf.decode(single, method=TRWS())
    assert (answer.assignment, answer.score, answer.optimal) == ({"A": 1}, 2.0, True)
    empty = mf.decode(mf.MarkovNetwork({"A": 1, "B": 2}), method=TRWS())
    assert (empty.score, empty.optimal) == (0.0, True)
    net = frustrated()
    known = mf.decode(net, dict.fromkeys(range(36), 1), method=TRWS())
    assert known.optimal and set(known.assignment.values()) == {1}


def test_what_it_refuses() -> None:
    net = frustrated()
    with pytest.raises(mf.ModelError, match="trws finds one assignment, not the 2 best"):
        mf.decode(net, method=TRWS(), n_best=2)
    with pytest.raises(mf.ModelError, match="trws decodes all 36 variables, not 2 of them"):
        mf.decode(net, method=TRWS(), variables=[0, 1])
    noisy = mf.BayesianNetwork({"A": 2, "B": 2, "C": 2})
    noisy.add_cpt("A", [], [0.5, 0.5])
    noisy.add_cpt("B", [], [0.5, 0.5])
    noisy.add_noisy_or("C", ["A", "B"], [0.5, 0.2])
    with pytest.raises(mf.ModelError, match="noisy-max, which must be summed"):
        mf.decode(noisy, method=TRWS())
    with pytest.raises(mf.ModelError, match="max_iterations of TRWS must be at least 1, got 0"):
        TRWS(max_iterations=0)
    with pytest.raises(mf.ModelError, match="tolerance of TRWS must be at least 0, got -1"):
        TRWS(tolerance=-1)
