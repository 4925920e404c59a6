"""Curves of a fit that runs: over a websocket, and in a browser that stops it."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from typing import Any

import pytest

import markovfield as mf
from markovfield.inference.core.running import Progress
from tests.explorer.streaming import ask, converse, eventually, streaming_threads, until

STARTED = Callable[..., Any]
X, Y = [[["w=a"], ["w=b"]], [["w=b"], ["w=a"]]], [["A", "B"], ["B", "A"]]


def test_a_log_is_explored_while_the_program_goes_on():
    log = mf.explorer.TrainingLog()
    with mf.explore(log, open_browser=False) as explorer:
        pages = ask(explorer, "explorer", "subject")["pages"]
        assert pages == [{"name": "training", "title": "Training"}]
        fitted = mf.ChainCRF(l2=0.5).fit(X, Y, callback=log)
        with converse(explorer, "training", "curves") as socket:
            told = json.loads(socket.recv(timeout=240))
            (run,) = told["runs"]
            assert [p[2] for p in run["points"] if p[2] is not None] == pytest.approx(fitted.report_.history)
            assert told["order"] == [run["number"]] and not told["stopping"]
            log.begin("<b>again</b>")
            assert json.loads(socket.recv(timeout=240))["runs"][0]["name"] == "<b>again</b>"
            # Only what has changed is sent again.
            log(Progress(1, 0.1, 5.0, 4.0))
            (run,) = json.loads(socket.recv(timeout=240))["runs"]
            assert run["points"] == [[1, 0.1, 5.0, 4.0]]
            ask(explorer, "training", "stop")
            assert json.loads(socket.recv(timeout=240))["stopping"]
            assert log(Progress(2, 0.2, 3.0, 4.0)) is True
            assert json.loads(socket.recv(timeout=240))["runs"][0]["stopped"]


def test_its_thread_ends_with_the_tab(explorer: STARTED):
    before = len(streaming_threads())
    started = explorer(mf.explorer.TrainingLog())
    with converse(started, "training", "curves") as socket:
        told = json.loads(socket.recv(timeout=240))
        assert told.pop("quiet") >= 0
        assert told == {"runs": [], "order": [], "stopping": False}
        assert len(streaming_threads()) == before + 1
    assert eventually(lambda: len(streaming_threads()) == before)


def climb(log: Any, started: threading.Event, ended: threading.Event) -> None:
    """A fit that never ends by itself."""
    step = 0
    log.begin("<img src=x onerror=alert(1)>")
    while not ended.wait(0.005):
        step += 1
        started.set()
        if log(Progress(step, 0.01 * step, 10.0 + 90.0 / step, 9.0)):
            break
    ended.set()


@pytest.mark.browser
@pytest.mark.parametrize(("width", "theme"), [(1280, "light"), (390, "dark")])
def test_curves_grow_and_the_button_stops_the_fit(explorer: STARTED, visit: STARTED, width: int, theme: str):
    log, started, ended = mf.explorer.TrainingLog(), threading.Event(), threading.Event()
    fit = threading.Thread(target=climb, args=(log, started, ended), daemon=True)
    opened = explorer(log)
    page, other = (visit(opened, width=width, theme=theme) for _ in range(2))
    try:
        assert "callback=log" in page.locator("pre").inner_text()
        fit.start()
        steps = "Number(document.querySelector('#page').dataset.steps)"
        until(page, f"{steps} > 3")
        grown = page.evaluate(steps)
        until(page, f"{steps} > {grown}")
        assert "<img src=x onerror=alert(1)>" in page.get_by_label("Runs").inner_text()
        page.get_by_label("Scale", exact=True).select_option("log")
        page.get_by_label("Part", exact=True).select_option("tail")
        page.get_by_label("Along", exact=True).select_option("seconds")
        until(page, "document.querySelectorAll('.curve.bound').length === 1")
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        page.locator("#stop").focus()
        page.keyboard.press("Enter")
        assert ended.wait(240)
        for tab in (page, other):
            until(tab, "document.querySelector('#state').textContent === 'stopped'")
        with page.expect_download() as saved:
            page.get_by_label("Save objective as SVG").click()
        assert "<svg" in saved.value.path().read_text()
    finally:
        ended.set()
