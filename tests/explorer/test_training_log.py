"""What a fit tells, kept for whoever watches."""

import threading

import numpy as np
import pytest

import markovfield as mf
from markovfield.exceptions import ModelError
from markovfield.explorer.works import training_log
from markovfield.explorer.works.training_log import MOST_POINTS, MOST_RUNS, TrainingLog
from markovfield.inference.core.running import Progress


def test_a_fit_is_a_curve():
    log = TrainingLog()
    X, y = [[["w=a"], ["w=b"]], [["w=b"], ["w=a"]]], [["A", "B"], ["B", "A"]]
    fitted = mf.ChainCRF(l2=0.5).fit(X, y, callback=log.callback)
    (run,) = log.told()["runs"]
    values = [point[2] for point in run["points"] if point[2] is not None]
    assert values == pytest.approx(fitted.report_.history)
    mf.ChainCRF(l2=0.5).fit(X, y, callback=log.callback)
    assert [run["name"] for run in log.told()["runs"]] == ["run 1", "run 2"]


def test_every_tagger_tells_its_objective():
    X, y = [[["w=a"], ["w=b"]], [["w=b"], ["w=a"]]], [["A", "B"], ["B", "A"]]
    for fit in (
        lambda told: mf.MEMM().fit(X, y, callback=told),
        lambda told: mf.HMM(2, rng=0).fit([["a", "b", "a"], ["b", "b"]], callback=told),
        lambda told: mf.ChainCRF(solver="adagrad", rng=0).fit(X, y, callback=told),
        lambda told: mf.SemiMarkovCRF().fit(X, [["O", "B-X"], ["B-X", "O"]], callback=told),
    ):
        log = TrainingLog()
        fit(log.callback)
        assert any(point[2] is not None for point in log.told()["runs"][-1]["points"])


def test_a_fit_stops_when_asked():
    log = TrainingLog()
    log.begin("<b>first</b>")
    log.ask_to_stop()
    assert log.told()["stopping"]
    assert log.callback(Progress(1, 0.0, 1.0)) is True
    log.begin("second")
    assert log.callback(Progress(1, 0.0, 1.0)) is None
    assert [run["name"] for run in log.told()["runs"]] == ["<b>first</b>", "second"]


def test_it_tells_how_long_nothing_was_heard(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(training_log.time, "monotonic", lambda: now[0])
    log = TrainingLog()
    log(Progress(1, 0.0, 1.0))
    now[0] += 50
    # A fit that is at its end says nothing more, and a page that is opened later has to know.
    assert log.told()["quiet"] == 50
    log(Progress(2, 0.0, 1.0))
    assert log.told()["quiet"] == 0


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_real_fit_that_is_stopped_keeps_what_it_has():
    X, y = [[["w=a"], ["w=b"]], [["w=b"], ["w=a"]]], [["A", "B"], ["B", "A"]]
    whole = TrainingLog()
    mf.ChainCRF(l2=0.1).fit(X, y, callback=whole)
    log = TrainingLog()

    def told(progress):
        stop = log(progress)
        log.ask_to_stop()  # as the button does, after the first step
        return stop

    crf = mf.ChainCRF(l2=0.1).fit(X, y, callback=told)
    (run,) = log.told()["runs"]
    assert run["stopped"] and run["steps"] < whole.told()["runs"][0]["steps"]
    assert crf.predict(X)[0] in ([a, b] for a in "AB" for b in "AB")


def test_points_are_thinned_and_the_last_one_stays():
    log, n = TrainingLog(), 10 * MOST_POINTS
    for step in range(1, n + 1):
        log.callback(Progress(step, float(step), -float(step)))
    (run,) = log.told()["runs"]
    steps = [point[0] for point in run["points"]]
    assert len(steps) <= MOST_POINTS + 1 and steps[-1] == n and run["steps"] == n
    gaps = np.diff(steps[:-1])
    assert (gaps == gaps[0]).all()


def test_old_runs_are_forgotten():
    log = TrainingLog()
    for _ in range(MOST_RUNS + 5):
        log.callback(Progress(1, 0.0))
    runs = log.told()["runs"]
    assert len(runs) == MOST_RUNS and runs[-1]["name"] == f"run {MOST_RUNS + 5}"


def test_numbers_that_are_none_are_none():
    log = TrainingLog()
    log.callback(Progress(1, 0.5, float("nan"), float("inf")))
    assert log.told()["runs"][0]["points"] == [[1.0, 0.5, None, None]]
    with pytest.raises(ModelError, match="is told a Progress with a step, got 3"):
        log.callback(3)


def test_waiting_ends_with_what_is_new():
    log = TrainingLog()
    assert not log.wait(0, 0.0)
    found = []
    waiter = threading.Thread(target=lambda: found.append(log.wait(0, 60.0)))
    waiter.start()
    log.callback(Progress(1, 0.0))
    waiter.join(60.0)
    assert found == [True]
    version = log.version
    assert log.told(version)["runs"] == [] and log.told(version - 1)["runs"]
    with pytest.raises(ModelError, match="since must be an integer"):
        log.told("x")
