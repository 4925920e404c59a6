"""Branch and bound against the oracle, at every stop, and on instances whose optimum is known."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import markovfield as mf
import markovfield.io as mio
from markovfield.inference.branch_and_bound import branch_and_bound
from markovfield.inference.branch_and_bound.branch_and_bound import BranchAndBound
from markovfield.io.wcsp import read_wcsp
from tests.data import data_path
from tests.strategies import Spec, specs_with_evidence

SEARCH = BranchAndBound(max_work=0)
KINDS = pytest.mark.parametrize("kind", ["graph", "forest", "bayesian"])
METHODS = [SEARCH, BranchAndBound(max_work=0, sweeps=0, local_search=0), BranchAndBound()]


def grid(side: int, states: int, seed: int, *, decimals: int | None = None, hard: float = 0.0) -> mf.MarkovNetwork:
    """A frustrated grid: costs in multiples of 10^-decimals, or of nothing; some pairs forbidden."""
    rng = np.random.default_rng(seed)

    def table(*shape: int) -> np.ndarray:
        values = rng.normal(size=shape) * 3
        values = values if decimals is None else np.round(values, decimals)
        return np.where(rng.random(shape) < hard, -np.inf, values) if len(shape) > 1 else values

    names = {(i, j): f"{i},{j}" for i in range(side) for j in range(side)}
    net = mf.MarkovNetwork(dict.fromkeys(names.values(), states))
    for (i, j), name in names.items():
        net.add_factor([name], log_table=table(states))
        for other in ((i + 1, j), (i, j + 1)):
            if other in names:
                net.add_factor([name, names[other]], log_table=table(states, states))
    return net


def check(answer: mf.Decoding, spec: Spec, evidence: dict[int, Any]) -> None:
    oracle = spec.oracle(evidence)
    score = float(oracle.score(spec.states(answer.assignment)))
    assert answer.score == pytest.approx(score, abs=1e-9)
    assert answer.upper_bound >= oracle.best_score - 1e-9
    assert 0.0 <= answer.tolerance < 1e-9
    if answer.optimal:
        assert score == pytest.approx(float(oracle.best_score), abs=1e-9)


@KINDS
@pytest.mark.parametrize("method", METHODS)
@given(data=st.data())
def test_the_best_assignment_is_found_and_proven(kind: str, method: BranchAndBound, data: st.DataObject):
    spec, evidence = data.draw(specs_with_evidence(kind))
    try:
        answer = mf.decode(spec.build(), evidence=spec.named(evidence), method=method)
    except mf.ImpossibleEvidenceError:
        assert spec.oracle(evidence).impossible
        return
    assert answer.optimal and answer.converged and answer.method == "branch_and_bound"
    check(answer, spec, evidence)


@KINDS
@given(data=st.data(), few=st.integers(1, 3))
def test_a_root_in_pieces_is_as_good(kind: str, data: st.DataObject, few: int):
    """Very many variables are made consistent piece by piece, with a look at the clock between."""
    spec, evidence = data.draw(specs_with_evidence(kind))
    if spec.oracle(evidence).impossible:
        return
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(branch_and_bound, "ROOT_VARIABLES", few)
        answer = mf.decode(spec.build(), evidence=spec.named(evidence), method=SEARCH)
    assert answer.optimal and answer.converged
    check(answer, spec, evidence)


def test_a_large_root_looks_at_the_clock(monkeypatch: pytest.MonkeyPatch):
    def told(variables: int) -> int:
        steps: list[int] = []
        monkeypatch.setattr(branch_and_bound, "ROOT_VARIABLES", variables)
        mf.decode(grid(6, 3, 0), method=SEARCH, callback=lambda p: steps.append(p.step))
        return len(steps)

    assert told(9) >= told(36) + 3


@given(data=st.data(), stop=st.integers(1, 6))
def test_stopped_anywhere_the_bounds_bracket_the_best(data: st.DataObject, stop: int):
    spec, evidence = data.draw(specs_with_evidence("graph"))
    try:
        answer = mf.decode(
            spec.build(), evidence=spec.named(evidence), method=SEARCH, callback=lambda p: p.step >= stop
        )
    except mf.ImpossibleEvidenceError:
        assert spec.oracle(evidence).impossible
        return
    except mf.StoppedError:
        return  # it was stopped before any possible assignment was known
    check(answer, spec, evidence)


@pytest.mark.parametrize("seed", range(3))
def test_a_plain_search_that_improves_many_times(seed: int):
    """Without bounds or an assignment to begin with, the root is propagated again after each improvement."""
    rng = np.random.default_rng(seed)
    net = mf.MarkovNetwork(dict.fromkeys(range(10), 5))
    for a in range(10):
        for b in range(a):
            net.add_factor([a, b], log_table=rng.integers(-9, 1, (5, 5)).astype(float))
    seen: list[float | None] = []
    answer = mf.decode(net, method=METHODS[1], callback=lambda p: seen.append(p.value) or False)
    assert answer.optimal and len(set(seen)) > 2
    assert answer.score == mf.decode(net, method="junction_tree").score


@pytest.mark.parametrize("decimals", [None, 0, 2])
def test_a_search_agrees_with_the_junction_tree(decimals: int | None):
    """Frustrated 7 x 7 grids need branching; each stop on the way is bracketed too."""
    net = grid(7, 4, 3, decimals=decimals, hard=0.1)
    best = mf.decode(net, method="junction_tree").score
    answer = mf.decode(net, method=SEARCH)
    assert answer.optimal and answer.iterations > 1
    assert answer.score == pytest.approx(best, abs=1e-9)
    seen = []
    mf.decode(net, method=SEARCH, callback=lambda p: seen.append(p.value) or False)
    values = [value for value in seen if value is not None]
    assert values == sorted(values) and values[-1] == pytest.approx(best, abs=1e-6)
    for stop in range(1, len(seen), max(1, len(seen) // 8)):
        early = mf.decode(net, method=SEARCH, callback=lambda p, stop=stop: p.step >= stop)
        assert early.score <= best + 1e-9 <= early.upper_bound + 2e-9
        assert not early.converged and early.optimal == (early.gap <= early.tolerance)


def test_whole_numbers_stay_exact_and_round_bounds_up():
    net = grid(6, 4, 1, decimals=0)
    answer = mf.decode(net, method=SEARCH)
    assert answer.gap == 0.0 and answer.tolerance == 0.0
    assert answer.score == mf.decode(net, method="junction_tree").score


def test_ctrl_c_and_time_limit_return_the_best_so_far():
    net = grid(14, 8, 2)
    mf.decode(grid(3, 8, 2), method=SEARCH)  # compiled before the clock starts
    answer = mf.decode(net, method=SEARCH, time_limit=0.6)
    assert not answer.converged and 0 < answer.gap < np.inf
    assert answer.score == pytest.approx(float(net.compile().score(answer.assignment)))

    def interrupt(progress: Any) -> bool:
        if progress.step == 12:
            raise KeyboardInterrupt
        return False

    stopped = mf.decode(net, method=SEARCH, callback=interrupt)
    assert not stopped.converged and stopped.upper_bound >= answer.score - 1e-9
    # Two stops of the same search bracket the same number.
    assert stopped.score <= answer.upper_bound + 1e-9


def test_asking_twice_gives_the_same_and_nothing_is_changed():
    graph = grid(6, 3, 5).compile()
    before = graph.log_tables.copy()
    one, two = (mf.decode(graph, method=SEARCH, n_jobs=n) for n in (1, 2))
    assert one.states.tolist() == two.states.tolist() and one.iterations == two.iterations
    np.testing.assert_array_equal(graph.log_tables, before)


def test_parts_that_are_not_connected_are_searched_apart():
    union = mf.FactorGraph.union([grid(5, 4, seed).compile() for seed in range(4)])
    apart = [mf.decode(grid(5, 4, seed), method=SEARCH) for seed in range(4)]
    together = mf.decode(union, method=SEARCH)
    assert together.optimal
    assert together.score == pytest.approx(sum(answer.score for answer in apart), abs=1e-9)
    assert together.iterations <= sum(answer.iterations for answer in apart)


def test_hard_problems_without_any_answer():
    net = mf.MarkovNetwork(dict.fromkeys(range(5), 4))
    net.add_factors([[a, b] for a in range(5) for b in range(a)], np.ones((4, 4)) - np.eye(4))
    with pytest.raises(mf.ImpossibleEvidenceError, match="probability zero"):
        mf.decode(net, method=SEARCH)


def test_what_it_does_not_do_is_said():
    net = grid(2, 2, 0)
    with pytest.raises(mf.ModelError, match="finds one assignment, not the 2 best"):
        mf.decode(net, n_best=2, method=SEARCH)
    with pytest.raises(mf.ModelError, match="decodes all 4 variables, not 1 of them"):
        mf.decode(net, variables=["0,0"], method=SEARCH)
    bayes = mf.BayesianNetwork({"a": 2, "b": 2})
    bayes.add_cpt("a", [], [0.5, 0.5])
    bayes.add_noisy_or("b", ["a"], [0.9])
    with pytest.raises(mf.ModelError, match="would maximise the contributions of a noisy-max"):
        mf.decode(bayes, method=SEARCH)


def reference(name: str) -> float | None:
    """The optimum that the reference data states for a file of cost functions."""
    # toulbar2 counts the least cost of functions of four variables and more in cfn files twice.
    path = data_path("wcsp", "validation", f"{name}.ub")
    return None if name == "alarm" else float(path.read_text())


def instances(largest: int, smallest: int = 0) -> list[Any]:
    folder = data_path("wcsp", "validation")
    files = [p for p in sorted(folder.iterdir()) if re.search(r"\.(wcsp|cfn)(\.[gx]z)?$", p.name)]
    return [
        p for p in files if smallest <= p.stat().st_size < largest and (folder / f"{p.name.split('.')[0]}.ub").exists()
    ]


def test_small_instances_have_their_known_optimum():
    solved = 0
    for path in instances(6_000):
        answer = mf.decode(read_wcsp(path), method=SEARCH, time_limit=600)
        known = reference(path.name.split(".")[0])
        assert answer.optimal, path.name
        assert known is None or -answer.score == pytest.approx(known, abs=1e-6), path.name
        solved += 1
    assert solved > 8


def test_an_instance_whose_root_is_settled_again_and_again():
    """A root propagated after an improvement once left marks of an earlier subtree: costs were no longer kept."""
    path = data_path("wcsp", "examples", "CELAR7-SUB0.wcsp.gz")
    answer = mf.decode(read_wcsp(path), method=SEARCH, time_limit=600)
    assert answer.optimal and answer.score == -10310.0


@pytest.mark.slow
def test_large_instances_have_their_known_optimum():
    """celar6sub0 among them; what is not proven within a minute must at least be bracketed."""
    for path in instances(1 << 30, 6_000):
        answer = mf.decode(read_wcsp(path), method=SEARCH, time_limit=600)
        known = reference(path.name.split(".")[0])
        assert known is not None and -answer.score >= known - 1e-6 and -answer.upper_bound <= known + 1e-6
        if answer.optimal:
            assert -answer.score == pytest.approx(known, abs=1e-6), path.name
        assert answer.optimal or not path.name.startswith("celar6sub0")


def test_every_protein_is_proven():
    index = data_path("INDEX.md").read_text()
    line = index[index.index("log10 max: 1akg") :].split("log10 Z")[0]
    known = {name: float(value) for name, value in re.findall(r"(\d\w{3}) (-?\d+(?:\.\d+)?)", line)}
    files = sorted(data_path("protein_sidechain").glob("*.uai.gz"))
    assert len(files) > 10
    for path in files:
        answer = mf.decode(mio.read_uai(path), method=SEARCH, time_limit=600)
        assert answer.optimal, path.name
        assert answer.score / np.log(10) == pytest.approx(known[path.name[3:7]], abs=2e-6), path.name


@settings(max_examples=5)
@given(seed=st.integers(0, 10**6))
def test_random_dense_models(seed: int):
    """Complete graphs and a factor of three, where consistency is weak and branching deep."""
    rng = np.random.default_rng(seed)
    net = mf.MarkovNetwork(dict.fromkeys(range(9), 3))
    for a in range(9):
        for b in range(a):
            net.add_factor([a, b], log_table=rng.normal(size=(3, 3)))
    net.add_factor([0, 4, 7], log_table=np.where(rng.random((3, 3, 3)) < 0.3, -np.inf, 1.0))
    answer = mf.decode(net, method=SEARCH)
    assert answer.optimal
    assert answer.score == pytest.approx(mf.decode(net, method="junction_tree").score, abs=1e-9)


def test_stopped_with_nothing_possible_known_is_no_answer():
    """Zeros of likelihoods rule out what was filled in: the stop passes, and nothing calls itself optimal."""
    net = mf.MarkovNetwork({"a": 2, "b": 2})
    net.add_parity({"a": 0, "b": 0}, weight=0.5)
    try:
        answer = mf.decode(net, {"a": [0, 0.9]}, method="branch_and_bound", callback=lambda p: True)
    except mf.StoppedError:
        return
    assert np.isfinite(answer.score)


def test_progress_tells_bounds_that_hold():
    rng = np.random.default_rng(4)
    net = mf.MarkovNetwork(dict.fromkeys(range(14), 4))
    for i in range(14):
        for j in range(i):
            net.add_factor([i, j], log_table=-rng.integers(0, 20, size=(4, 4)).astype(float))
    seen: list[mf.answers.Progress] = []
    answer = mf.decode(net, method=BranchAndBound(max_work=0), callback=seen.append)
    bounds = [p.bound for p in seen if p.bound is not None]
    assert answer.optimal and bounds and bounds == sorted(bounds, reverse=True)
    assert min(bounds) >= answer.score - 1e-6
