"""The line that tells how a long call goes: who may see it, how wide it is, and that every verb has one."""

from __future__ import annotations

import inspect
import io
import sys
import time
import types
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from rich.console import Console

import markovfield as mf
from markovfield.progress import ProgressLine, shows_progress

VERBS = [
    mf.marginals,
    mf.log_partition,
    mf.decode,
    mf.sample,
    mf.probability,
    mf.expected_counts,
    mf.query,
    mf.predict,
    mf.fit,
    mf.learn_structure,
    mf.analysis.mutual_information,
    mf.analysis.value_of_information,
    mf.analysis.sensitivity,
    mf.ImageSegmentation.fit,
    mf.ImageSegmentation.predict,
    mf.ImageSegmentation.predict_marginals,
    mf.StereoMatching.predict,
    mf.StereoMatching.predict_marginals,
]


@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb.__qualname__)
def test_every_verb_shows_progress_when_asked(verb: Any):
    known = inspect.signature(verb).parameters
    for name in ("time_limit", "callback", "progress"):
        assert known[name].kind is inspect.Parameter.KEYWORD_ONLY
    assert known["progress"].default is False and hasattr(verb, "__wrapped__")


@pytest.mark.parametrize("what", ["x", "decoding " + "long_name_of_a_file" * 9])
@pytest.mark.parametrize("width", [40, 80, 200])
def test_the_line_fits(what: str, width: int):
    line = ProgressLine(what, Console(file=io.StringIO(), force_terminal=True, width=width))
    assert len(line.message()) <= min(width, 80) - 11
    for value, bound in [(None, None), (-1.23456789e-300, 1.2345678e300), (-np.inf, np.inf), (1.0, None)]:
        line.callback(mf.answers.Progress(10**12, 1.0, value, bound))
        assert len(line.message()) <= min(width, 80) - 11 and "step 1000000000000" in line.message()


def test_what_is_told():
    line = ProgressLine("decode", Console(file=io.StringIO(), width=80))
    line.callback(mf.answers.Progress(7, 1.0, -12.5, -10.0))
    assert line.message() == "decode: step 7, value -12.5, gap 2.5, bound -10"


def wait_for(seen: Callable[[], bool]) -> None:
    """Until it is so: the line is drawn by another thread."""
    for _ in range(1000):
        if seen():
            return
        time.sleep(0.02)


def test_a_terminal_is_clean_after_it():
    buffer = io.StringIO()
    with ProgressLine("work", Console(file=buffer, force_terminal=True, width=80), delay=0.0) as line:
        line.callback(mf.answers.Progress(3, 0.1))
        wait_for(lambda: "step 3" in buffer.getvalue())
    assert "step 3" in buffer.getvalue() and buffer.getvalue().rstrip().endswith("\x1b[2K")


def test_a_notebook_shows_it_in_its_cell(monkeypatch: pytest.MonkeyPatch):
    shown: list[str] = []

    class Handle:
        def update(self, data: dict[str, str], raw: bool) -> None:
            shown.append(data["text/plain"])

    def display(data: dict[str, str], raw: bool, display_id: bool) -> Handle:
        shown.append(data["text/plain"])
        return Handle()

    python = types.ModuleType("IPython")
    python.get_ipython = lambda: types.SimpleNamespace(kernel=True)  # type: ignore[attr-defined]
    python.display = types.ModuleType("IPython.display")  # type: ignore[attr-defined]
    python.display.display = display  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "IPython", python)
    monkeypatch.setitem(sys.modules, "IPython.display", python.display)
    with ProgressLine("marginals", Console(file=io.StringIO(), width=80), delay=0.0) as line:
        line.callback(mf.answers.Progress(3, 0.1))
        wait_for(lambda: bool(shown))
    assert shown[0].startswith("marginals") and shown[-1] == ""


def test_the_bar_fills_where_there_is_a_limit():
    console = Console(file=io.StringIO(), force_terminal=True, width=80)
    with ProgressLine("decode <b>", console, delay=60.0) as line:
        html = line.bundle()["text/html"]
        assert '<progress max="1" style' in html and "decode &lt;b&gt;, 0 s" in html
    with ProgressLine("decode", console, delay=60.0, limit=1e-9) as line:
        assert '<progress max="1" value="1.000" style' in line.bundle()["text/html"]
        line.callback(mf.answers.Progress(10**12, 1.0, -1.23456789e-300, 1.2345678e300))
        assert len(line.message()) <= 80 - 11 - 13


def test_a_terminal_has_a_bar_where_there_is_a_limit():
    buffer = io.StringIO()
    console = Console(file=buffer, force_terminal=True, width=80)
    with ProgressLine("work", console, delay=0.0, limit=1e-9) as line:
        line.callback(mf.answers.Progress(3, 0.1))
        wait_for(lambda: "━" * 12 in buffer.getvalue())
    assert "━" * 12 in buffer.getvalue()


def executed(*cells: str) -> list[Any]:
    """Outputs of cells in a real notebook."""
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    client = nbclient.NotebookClient(book, timeout=300, kernel_name="python3")
    sent: list[Any] = []
    keep = client.process_message

    def process(message: Any, cell: Any, index: int) -> Any:
        if message["msg_type"] in ("display_data", "update_display_data"):
            sent.append(message["content"]["data"])
        return keep(message, cell, index)

    client.process_message = process
    client.execute()
    return [sent, [cell.outputs for cell in book.cells]]


def test_a_real_notebook_shows_a_bar_when_asked_and_only_then():
    work = """
import time
import markovfield as mf
from markovfield import progress
progress.ProgressLine.__init__.__kwdefaults__["delay"] = 0.0

@progress.shows_progress
def work(*, callback=None, progress=False, time_limit=None):
    for step in range(1, 4):
        if callback is not None:
            callback(mf.answers.Progress(step, 0.1 * step, -1.0 * step, 0.0))
            time.sleep(0.7)
    return step
"""
    net = "mf.marginals(mf.datasets.sprinkler())"
    sent, outputs = executed(work, "work()", "work(progress=True)", "work(progress=True, time_limit=60)", net)
    assert [one["data"]["text/plain"] for one in outputs[1]] == ["3"], "nothing is shown unasked"
    bars = [one["text/html"] for one in sent]
    assert bars and "<progress" in bars[0] and any("step 2" in bar for bar in bars) and any("value=" in b for b in bars)
    for shown in outputs[2:4]:
        assert [one.get("output_type") for one in shown] == ["display_data", "execute_result"]
        assert shown[0]["data"] == {"text/plain": "", "text/html": ""}, "the bar is gone when the work is done"
    assert outputs[4][0]["data"]["text/html"].startswith("<table>")


def test_a_callback_is_still_told_and_may_stop():
    net = mf.datasets.alarm_like()
    told: list[mf.answers.Progress] = []
    mf.marginals(net, method="junction_tree", callback=told.append, progress=True)
    assert told
    with pytest.raises(mf.StoppedError, match="stopped by the callback"):
        mf.marginals(net, method="junction_tree", callback=lambda _: True, progress=True)

    @shows_progress
    def never(*, callback: Any = None, progress: bool = False) -> Any:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        never(progress=True)


def test_verbs_answer_the_same_with_progress():
    net, known = mf.datasets.asia(), {"dysp": "yes"}
    for ask in (mf.marginals, mf.log_partition, mf.decode):
        assert ask(net, known, progress=True).to_frame().iloc[:, 0].equals(ask(net, known).to_frame().iloc[:, 0])
    one = mf.analysis.sensitivity(net, {"lung": "yes"}, known, progress=True, time_limit=60)
    assert one.probability == mf.probability(net, {"lung": "yes"}, known, progress=True, time_limit=60)
    assert mf.analysis.mutual_information(net, "lung", progress=True, time_limit=60).top(1)[0][0] == "either"


def test_warnings_name_the_line_that_called():
    net = mf.MarkovNetwork(dict.fromkeys(range(4), 2))
    net.add_factors([[0, 1], [1, 2], [2, 3], [3, 0], [0, 2]], [[1.0, 9.0], [5.0, 1.0]])
    short = mf.methods.BeliefPropagation(max_iterations=1, tolerance=1e-12)
    for progress in (False, True):
        with pytest.warns(UserWarning, match="did not converge") as found:
            mf.marginals(net, method=short, progress=progress)
        assert found[0].filename == __file__


# ---- estimators of vision -------------------------------------------------------------------------------------


def picture() -> np.ndarray:
    truth = (np.arange(24) > 11).astype(int) * np.ones((20, 1), int)
    return truth + np.random.default_rng(0).normal(scale=0.4, size=truth.shape)


def test_segmentation_that_is_stopped_keeps_what_it_has():
    image, told = picture(), []

    def stop(progress: mf.answers.Progress) -> bool:
        told.append(progress)
        return progress.value is not None  # after the first iteration

    with pytest.warns(UserWarning, match="kept the densities of 1 iterations of EM: stopped by the callback"):
        found = mf.ImageSegmentation(2, rng=0).fit(image, callback=stop)
    assert not found.converged_ and found.n_iter_ == 1 and told
    with pytest.warns(UserWarning, match="no answer within the time limit of 1e-09 s"):
        found = mf.ImageSegmentation(2, rng=0).fit(image, time_limit=1e-9)
    assert found.predict(image, "graph_cut").shape == image.shape


def test_segmentation_tells_its_objective():
    told: list[float | None] = []
    found = mf.ImageSegmentation(2, rng=0).fit(picture(), callback=lambda p: told.append(p.value), progress=True)
    assert set(told) >= set(found.objective_[:-1])
    seen: list[mf.answers.Progress] = []
    found.predict(picture(), "trws", time_limit=60, callback=seen.append)
    assert seen


def test_stereo_takes_a_callback_and_a_limit():
    scene = np.random.default_rng(0).random((10, 20))
    told: list[mf.answers.Progress] = []
    model = mf.StereoMatching(3)
    found = model.predict(scene, np.roll(scene, -2, axis=1), "trws", callback=told.append, time_limit=60, progress=True)
    assert told and found.shape == scene.shape
