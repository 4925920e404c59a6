"""Conversations with an explorer without a browser, and the threads that hold them."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest

# Seconds: only for what never comes.
PATIENCE = 240.0


def patient() -> Any:
    """httpx whose requests wait for a busy machine; the test is skipped where there is none."""
    httpx = pytest.importorskip("httpx")
    waiting = {name: partial(getattr(httpx, name), timeout=PATIENCE) for name in ("get", "post", "request", "Client")}
    return SimpleNamespace(ConnectError=httpx.ConnectError, **waiting)


def converse(explorer: Any, page: str, stream: str) -> Any:
    """A websocket to a stream of a page."""
    client = pytest.importorskip("websockets.sync.client")
    return client.connect(
        f"ws{explorer.url[4:]}streams/{page}/{stream}", max_size=2**24, proxy=None, open_timeout=PATIENCE
    )


def say(socket: Any, **message: Any) -> Any:
    """Say something, and what is answered: bytes, or what JSON holds."""
    socket.send(json.dumps(message))
    answer = socket.recv(timeout=240)
    return answer if isinstance(answer, bytes) else json.loads(answer)


def ask(explorer: Any, page: str, call: str, **asked: Any) -> Any:
    """The answer to a call, with its status where that is not 200."""
    httpx = pytest.importorskip("httpx")
    reply = httpx.post(f"{explorer.url}api/{page}/{call}", json=asked, timeout=240)
    return reply.json() if reply.status_code == 200 else (reply.status_code, reply.json()["error"])


def streaming_threads() -> list[threading.Thread]:
    """Threads that hold a conversation."""
    return [t for t in threading.enumerate() if t.name == "markovfield-stream"]


def eventually(holds: Callable[[], bool], seconds: float = PATIENCE) -> bool:
    """Whether something comes true, looked at until it does; the time is only for what never does."""
    ends = time.monotonic() + seconds
    while time.monotonic() < ends:
        if holds():
            return True
        time.sleep(0.02)
    return holds()


def until(page: Any, holds: str) -> None:
    """Wait until an expression is true in a page (its policy forbids what Playwright's own wait would do)."""
    for _ in range(2400):
        if page.evaluate(holds):
            return
        page.wait_for_timeout(100)
    raise AssertionError(f"never came true in the page: {holds}")
