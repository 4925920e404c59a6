"""The page of lattices: frames over a websocket, and in a browser."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import numpy as np
import pytest

import markovfield as mf
from tests.explorer.streaming import ask, converse, eventually, say, streaming_threads, until

STARTED = Callable[..., Any]


def read(frame: bytes) -> tuple[dict[str, Any], np.ndarray]:
    length = int.from_bytes(frame[:4], "little")
    return json.loads(frame[4 : 4 + length]), np.frombuffer(frame[4 + length :], np.uint8)


def test_it_is_offered_for_lattices_only(explorer: STARTED):
    def pages(model):
        return [p["name"] for p in ask(explorer(model), "explorer", "subject")["pages"]]

    assert "lattice" in pages(mf.Ising((16, 16), 0.3, periodic=True))
    assert "lattice" in pages(mf.Potts((4, 6), 3, 0.3))
    assert "lattice" not in pages(mf.Ising([(0, 1)], 0.3))
    assert "lattice" not in pages(mf.datasets.sprinkler())


def test_it_starts_as_the_model_is(explorer: STARTED):
    started = ask(explorer(mf.Potts((40, 40), 3, 0.8, periodic=True)), "lattice", "start")
    assert started["settings"] | {"kind": "potts", "states": 3, "size": 40, "temperature": 1.25} == started["settings"]
    assert len(started["curves"]["energy"]) == len(started["curves"]["temperature"])


def test_every_word_is_answered_by_a_frame(explorer: STARTED):
    with converse(explorer(mf.Ising((16, 16), 0.5, periodic=True)), "lattice", "frames") as socket:
        told, states = read(say(socket, settings={}, sweeps=0))
        assert told["sweeps"] == 0 and len(states) == 256
        told, _ = read(say(socket, settings={"temperature": 3.0, "method": "wolff"}, sweeps=0))
        assert told["settings"]["temperature"] == 3.0 and told["settings"]["method"] == "wolff"
        told, states = read(say(socket, settings={"size": 512, "kind": "potts", "states": 5}, sweeps=1))
        assert len(states) == 512 * 512 and states.max() < 5
        for wrong, message in [
            ({"settings": {"size": 10**6}}, "size of a live lattice must be"),
            ({"settings": []}, "settings of a lattice must be a JSON object"),
            ({"settings": {"<b>": 1}}, "no setting '<b>'"),
            ({"settings": {"rng": 1}}, "no setting 'rng'"),
            ({"sweeps": 10**9}, "sweeps of a frame must be"),
        ]:
            assert message in say(socket, **wrong)["error"]
        assert len(say(socket, sweeps=0)) > 512 * 512


def test_nothing_runs_when_the_tab_is_closed(explorer: STARTED):
    started = explorer(mf.Ising((16, 16), 0.5, periodic=True))
    before = len(streaming_threads())
    with ExitStack() as stack:
        for _ in range(12):
            say(stack.enter_context(converse(started, "lattice", "frames")), sweeps=1)
        assert len(streaming_threads()) == before + 12
        # Calls are answered all the while.
        assert ask(started, "lattice", "start")["settings"]["size"] == 16
    assert eventually(lambda: len(streaming_threads()) == before)


def test_closing_the_explorer_ends_its_streams(explorer: STARTED):
    started = explorer(mf.Ising((16, 16), 0.5, periodic=True))
    before = len(streaming_threads())
    with converse(started, "lattice", "frames") as socket:
        say(socket, sweeps=1)
        started.close()
        assert eventually(lambda: len(streaming_threads()) <= before)


@pytest.mark.browser
def test_it_moves_cools_and_stops(explorer: STARTED, visit: Callable[..., Any]):
    before = len(streaming_threads())
    page = visit(explorer(mf.Ising((32, 32), 0.4, periodic=True)), hash="#lattice")
    sweeps = "Number(document.querySelector('canvas').dataset.sweeps)"
    until(page, f"{sweeps} > 5")
    page.get_by_label("Temperature", exact=True).evaluate(
        "e => { e.value = 1.2; e.dispatchEvent(new Event('input')); }"
    )
    until(page, "document.querySelector('canvas').dataset.temperature == '1.2'")
    until(page, "document.querySelector('#facts').textContent.includes('±')")
    page.get_by_label("Moves", exact=True).select_option("wolff")
    page.get_by_label("Side", exact=True).select_option("64")
    until(page, "document.querySelector('canvas').width == 64")
    page.locator("#play").focus()
    page.keyboard.press("Enter")
    assert page.locator("#play").inner_text() == "Run"
    page.get_by_role("button", name="Start anew").click()
    until(page, f"{sweeps} === 0")
    page.get_by_role("button", name="One sweep").click()
    until(page, f"{sweeps} === 1")
    page.get_by_label("Model", exact=True).select_option("potts")
    page.get_by_role("combobox", name="States").select_option("5")
    until(page, "!document.querySelector('#facts').textContent.includes('Onsager')")
    assert page.locator(".chart").count() == 4
    with page.expect_download() as saved:
        page.get_by_label("Save states as PNG").click()
    assert saved.value.path().read_bytes().startswith(b"\x89PNG")
    page.close()
    assert eventually(lambda: len(streaming_threads()) == before)


@pytest.mark.browser
def test_it_fits_a_phone(explorer: STARTED, visit: Callable[..., Any]):
    page = visit(explorer(mf.Ising((32, 32), 0.4, periodic=True)), width=390, height=800, hash="#lattice")
    page.wait_for_selector(".chart")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
