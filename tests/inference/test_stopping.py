"""Whatever decodes can be stopped: the answer is the best so far and true in all it says, or a clear error."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import markovfield as mf
from markovfield.inference.automatic import ONE_PASS, decoders
from markovfield.inference.branch_and_bound.toulbar2 import installed
from markovfield.inference.core.evidence import Evidence
from markovfield.inference.core.registry import methods
from markovfield.inference.core.running import Running
from markovfield.inference.linear_programming import highs
from markovfield.inference.linear_programming.linear_program import IntegerProgram, LinearProgram
from tests.inference.relaxations import StopAfter, glass

NAMES = ("auto", *methods("decode"))
STOPS: dict[str, Any] = {"time": lambda: {"time_limit": 1e-6}}
for _calls in (1, 2, 5):
    STOPS[f"call {_calls}"] = lambda calls=_calls: {"callback": StopAfter(calls)}
    STOPS[f"Ctrl-C {_calls}"] = lambda calls=_calls: {"callback": StopAfter(calls, interrupt=True)}

pytestmark = pytest.mark.filterwarnings("ignore:.*did not converge")


@cache
def model(name: str) -> tuple[mf.FactorGraph, float]:
    """A lattice that takes the method some steps, as large as the method takes, and its best score."""
    sizes = {"graph_cut": (12, 12, 2), "enumeration": (3, 3, 3)}
    net, _ = glass(np.random.default_rng(3), *sizes.get(name, (12, 12, 3)))
    graph = net.compile()
    return graph, mf.decode(graph, method="junction_tree").score


def check_best_so_far(answer: mf.Decoding, graph: mf.FactorGraph, best: float) -> None:
    room = 1e-6 * abs(best)
    assert answer.score == pytest.approx(graph.score(answer.assignment), abs=1e-9 * abs(best))
    assert answer.score <= best + room
    assert answer.upper_bound >= best - room
    if answer.optimal:
        assert answer.score >= best - room
    if answer.score < best - room:
        assert answer.gap > answer.tolerance


@pytest.mark.parametrize("stop", STOPS)
@pytest.mark.parametrize("name", NAMES)
def test_stopped_decoding(name: str, stop: str) -> None:
    if name == "toulbar2" and not installed():
        pytest.skip("pytoulbar2 is not installed")
    graph, best = model(name)
    try:
        answer = mf.decode(graph, method=name, rng=0, **STOPS[stop]())
    except (TimeoutError, mf.StoppedError) as error:
        assert name in ONE_PASS
        assert re.fullmatch(  # noqa: PT017
            rf"(no answer within the time limit of 1e-06 s|stopped by the callback): {name} has no assignment "
            r"before it is finished; method 'auto' answers with the best so far",
            str(error),
        )
    except KeyboardInterrupt:
        assert name in ONE_PASS
        assert "Ctrl-C" in stop
    else:
        check_best_so_far(answer, graph, best)
        if stop == "time" and name not in ("enumeration", "graph_cut", "icm", "simulated_annealing"):
            assert not answer.converged


@pytest.mark.parametrize("stop", STOPS)
def test_stopped_decoding_of_a_forest(stop: str) -> None:
    net = mf.MarkovNetwork(dict.fromkeys(range(300), 3))
    rng = np.random.default_rng(0)
    for i in range(299):
        net.add_factor([i, i + 1], log_table=rng.normal(size=(3, 3)))
    graph = net.compile()
    best = mf.decode(graph, method="junction_tree").score
    for name in ("auto", "belief_propagation"):
        check_best_so_far(mf.decode(graph, method=name, **STOPS[stop]()), graph, best)


def test_the_n_best_have_no_best_so_far() -> None:
    graph, _ = model("auto")
    with pytest.raises(TimeoutError, match=r"no answer within the time limit of 1e-06 s$"):
        mf.decode(graph, method="junction_tree", time_limit=1e-6, n_best=2)


@cache
def marginal_model() -> tuple[mf.FactorGraph, list[int], float]:
    """A lattice, variables of it, and their best marginal score."""
    graph = glass(np.random.default_rng(3), 8, 8, 3)[0].compile()
    sought = list(range(0, 64, 5))
    return graph, sought, mf.decode(graph, variables=sought, method="junction_tree").score


@pytest.mark.parametrize("stop", STOPS)
@pytest.mark.parametrize("name", ["auto", "marginal_search"])
def test_stopped_marginal_map(name: str, stop: str) -> None:
    graph, sought, best = marginal_model()
    answer = mf.decode(graph, variables=sought, method=name, rng=0, **STOPS[stop]())
    own = float(mf.log_partition(graph, answer.assignment, method="junction_tree"))
    assert list(answer.assignment) == sought
    assert answer.score <= own + 1e-8
    if answer.score_guarantee == "exact":
        assert answer.score == pytest.approx(own)
    assert answer.upper_bound >= best - 1e-8
    assert not answer.optimal or answer.score == pytest.approx(best)


def test_marginal_map_by_one_pass_says_what_would_answer() -> None:
    graph, sought, _ = marginal_model()
    with pytest.raises(TimeoutError, match="'auto' answers with the best so far"):
        mf.decode(graph, variables=sought, method="junction_tree", time_limit=1e-6)


def test_hard_constraints_that_no_quick_search_satisfies() -> None:
    # Nothing is possible, and only a finished method could know: the wish to stop is what is left to say.
    net = mf.MarkovNetwork(dict.fromkeys(range(7), 6))
    for i in range(7):
        for j in range(i):
            net.add_factor([i, j], 1.0 - np.eye(6))
    for name in ("auto", "mini_bucket", "integer_program", "belief_propagation"):
        with pytest.raises((mf.StoppedError, mf.ImpossibleEvidenceError)):
            mf.decode(net, method=name, callback=StopAfter(1))


# ---- HiGHS in another process -----------------------------------------------------------------------------------


@pytest.fixture
def elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every program goes to the other process."""
    monkeypatch.setattr(highs, "AT_ONCE_COLUMNS", 0)


@pytest.mark.usefixtures("elsewhere")
def test_the_other_process_gives_the_same_answers() -> None:
    net, _ = glass(np.random.default_rng(2), 5, 5, 3)
    best = mf.decode(net, method="junction_tree").score
    for method in (LinearProgram(), IntegerProgram()):
        answer = mf.decode(net, method=method, time_limit=60)
        assert answer.optimal
        assert answer.converged
        assert answer.score == pytest.approx(best)
    bad = mf.MarkovNetwork(dict.fromkeys("ABC", 2))
    bad.add_factors([("A", "B"), ("B", "C"), ("C", "A")], np.ones((2, 2)) - np.eye(2))
    for cycles in (IntegerProgram(), LinearProgram()):
        with pytest.raises(mf.ImpossibleEvidenceError, match="probability zero to every assignment"):
            mf.decode(bad, method=cycles)


def hard() -> tuple[mf.FactorGraph, float]:
    """A model that takes HiGHS far longer than any of these tests, and a score that an assignment of it has."""
    net, _ = glass(np.random.default_rng(1), 16, 16, 4)
    graph = net.compile()
    return graph, mf.decode(graph, method="tabu_search", rng=0).score


def test_a_long_integer_program_keeps_to_its_time_limit() -> None:
    graph, reached = hard()
    answer = mf.decode(graph, method=IntegerProgram(), time_limit=1.5)  # hours without the limit
    assert not answer.converged
    assert answer.score == pytest.approx(graph.score(answer.assignment))
    assert reached - 1e-6 <= answer.upper_bound


@pytest.mark.skipif(sys.platform == "win32", reason="Ctrl-C is a signal to one process")
@pytest.mark.parametrize("method", [IntegerProgram(), LinearProgram()], ids=["integer", "linear"])
def test_ctrl_c_while_highs_works(method: Any) -> None:
    graph, reached = hard()
    ready = threading.Event()

    def press() -> None:
        ready.wait(10)
        time.sleep(0.9)
        os.kill(os.getpid(), signal.SIGINT)

    presser = threading.Thread(target=press)
    presser.start()
    try:
        answer = mf.decode(graph, method=method, callback=lambda _: ready.set())
    finally:
        presser.join()
    assert not answer.converged
    assert answer.score == pytest.approx(graph.score(answer.assignment))
    assert reached - 1e-6 <= answer.upper_bound


@pytest.mark.skipif(sys.platform == "win32", reason="a killed process is told by a signal")
def test_a_solver_ends_with_whoever_started_it(tmp_path: Path) -> None:
    """Also where that was killed, and could stop nobody."""
    sleeper = tmp_path / "sleeper.py"
    sleeper.write_text("import time\nprint('up', flush=True)\ntime.sleep(600)")
    code = (
        "import subprocess, sys, time; from markovfield.inference.core._end_with_parent import command;"
        f"child = subprocess.Popen(command({str(sleeper)!r}), stdout=subprocess.PIPE, start_new_session=True);"
        "child.stdout.readline(); print(child.pid, flush=True); time.sleep(600)"
    )
    parent = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    assert parent.stdout is not None
    child = int(parent.stdout.readline())
    os.kill(child, 0)  # there
    parent.kill()
    parent.wait()
    for _ in range(600):
        try:
            os.kill(child, 0)
        except ProcessLookupError:
            return
        if Path(f"/proc/{child}/stat").exists() and Path(f"/proc/{child}/stat").read_text().split()[2] == "Z":
            return  # ended, and nobody has looked yet
        time.sleep(0.1)
    os.kill(child, signal.SIGKILL)
    pytest.fail("the child outlived its parent by a minute")


@pytest.mark.usefixtures("elsewhere")
def test_a_worker_that_dies_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    broken = tmp_path / "worker.py"
    broken.write_text("raise SystemExit('out of luck')")
    monkeypatch.setattr(highs, "_WORKER", broken)
    with pytest.raises(RuntimeError, match="HiGHS ended without an answer: out of luck"):
        mf.decode(glass(np.random.default_rng(2), 3, 3, 2)[0], method=IntegerProgram())


def test_bounds_are_read_off_what_highs_prints(tmp_path: Any) -> None:
    log = tmp_path / "log"
    log.write_text(
        "Src  Proc. InQueue |  Leaves   Expl. | BestBound       BestSol              Gap |   Cuts\n"
        " z       0       0         0   0.00%   -inf            0                  Large        0\n"
        " R       0       0         0   0.00%   -104947.25      -88426            18.68%        0\n"
        "         911     150     361   0.00%   -104933.5       -103295            1.60%      934\n"
    )
    assert highs._bound_in(log) == pytest.approx(-104933.5, rel=2e-8)
    assert highs._bound_in(log) < -104933.5
    log.write_text("Presolving model\n")
    assert highs._bound_in(log) == -np.inf


def test_a_stop_that_was_caught_is_remembered() -> None:
    running = Running()
    running.check()
    running.remember(KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        running.check()


def test_ctrl_c_inside_a_kernel_is_ctrl_c(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compiled code turns it into a SystemError; one that has another cause stays what it is."""

    def interrupted(cause: BaseException) -> Any:
        def plan(*_: Any, **__: Any) -> Any:
            raise SystemError("returned a result with an exception set") from cause

        return plan

    model = mf.Ising((14, 14), coupling=-1.0, field=0.1)
    monkeypatch.setattr("markovfield.inference.verbs.candidates", interrupted(KeyboardInterrupt()))
    answer = mf.decode(model)
    assert not answer.converged and np.isfinite(answer.score)
    monkeypatch.setattr("markovfield.inference.verbs.candidates", interrupted(ValueError()))
    with pytest.raises(SystemError):
        mf.decode(model)


def test_auto_does_not_plan_a_tree_for_longer_than_it_has() -> None:
    model = mf.Ising((150, 150), coupling=np.random.default_rng(0).normal(), field=0.1)
    graph = model.compile()
    known = Evidence.parse(graph.structure, None)
    names = [method.name for method in decoders(graph, known, True, None, 0.5)]
    assert names == ["portfolio"] or names[0] == "graph_cut"
