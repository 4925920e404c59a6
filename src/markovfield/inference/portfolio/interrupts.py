"""Ctrl-C while members are at work, each of which would answer it with what it has."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["interrupts"]


@contextmanager
def interrupts(quit: threading.Event) -> Iterator[threading.Event]:
    """Notices Ctrl-C, which a method answers with what it has, so that the next one is not begun."""
    seen = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield seen
        return
    usual = signal.getsignal(signal.SIGINT)
    if not callable(usual):
        yield seen
        return

    def note(number: int, frame: Any) -> None:
        seen.set()
        quit.set()
        usual(number, frame)

    signal.signal(signal.SIGINT, note)
    try:
        yield seen
    finally:
        signal.signal(signal.SIGINT, usual)
