"""Explorers to ask by HTTP, and a browser to click in them."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import markovfield as mf

CHROMIUM = ("chromium", "chromium-browser", "google-chrome")
# A headless browser that asks nobody anything but what it is told to.
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@pytest.fixture
def explorer() -> Iterator[Callable[..., Any]]:
    """``explorer(model)`` starts one, which is closed when the test ends."""
    pytest.importorskip("uvicorn", reason="the explorer's extra is not installed")
    opened = []

    def start(model: Any) -> Any:
        opened.append(mf.explore(model, open_browser=False, block=False))
        return opened[-1]

    yield start
    for one in opened:
        one.close()


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    """A browser; the test is skipped where there is none."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    path = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, CHROMIUM)), None)
    with playwright.sync_playwright() as started:
        path = path or started.chromium.executable_path
        if not os.path.exists(path):
            pytest.skip("there is no Chromium, neither on the path nor one that playwright installed")
        browser = started.chromium.launch(executable_path=path, args=FLAGS, timeout=240_000)
        yield browser
        browser.close()


@pytest.fixture
def visit(chromium: Any) -> Iterator[Callable[..., Any]]:
    """``visit(explorer)`` opens its page in a tab of its own.

    The test fails by errors in the console, but for requests that the server refuses where ``refusals`` are expected,
    and by any request that goes elsewhere.
    """
    contexts, said, elsewhere = [], [], []

    def open_page(
        explorer: Any,
        *,
        width: int = 1280,
        height: int = 800,
        theme: str = "light",
        hash: str = "",
        refusals: bool = False,
        **settings: Any,
    ) -> Any:
        context = chromium.new_context(viewport={"width": width, "height": height}, color_scheme=theme, **settings)
        contexts.append(context)
        # For what never comes; where kernels are compiled on a busy machine, what does come may take long.
        context.set_default_timeout(240_000)
        page = context.new_page()
        own = (explorer.url, explorer.url.replace("http", "ws", 1), "blob:", "data:")

        def hear(message: Any) -> None:
            refused = refusals and "the server responded with a status of 400" in message.text
            if message.type in ("error", "warning") and not refused:
                said.append(message.text)

        page.on("console", hear)
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on("dialog", lambda dialog: said.append(f"a dialog: {dialog.message}"))
        context.on("request", lambda asked: None if asked.url.startswith(own) else elsewhere.append(asked.url))
        page.on("websocket", lambda opened: None if opened.url.startswith(own) else elsewhere.append(opened.url))
        page.goto(explorer.url + hash)
        page.wait_for_selector("html[data-ready=yes]")
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert said == []
    assert elsewhere == []
