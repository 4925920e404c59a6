"""Whether anybody still waits for the answer to a call: long work asks now and then, and stops."""

from __future__ import annotations

from contextvars import ContextVar
from threading import Event
from typing import Any

__all__ = ["STOP", "nobody_waits"]

STOP: ContextVar[Event | None] = ContextVar("stop", default=None)


def nobody_waits(progress: Any = None) -> bool:
    """True once the browser has given the call up; a ``callback`` as the verbs take it."""
    stop = STOP.get()
    return stop is not None and stop.is_set()
