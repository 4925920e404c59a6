"""How long this process has spent compiling kernels, and the line on stderr that says so.

Compilation happens once per machine and can take longer than the work it is for. So it is said when it takes over
two seconds, and `clock`, by which time limits are kept, stands still while it lasts.
"""

from __future__ import annotations

import atexit
import gc
import sys
import threading
import time
from typing import Any

from markovfield import settings

__all__ = ["WATCH", "clock", "compiling", "seconds_compiling"]

PATIENCE = 2.0
"""Seconds of compilation before it is mentioned."""
QUIET = 0.5
"""Seconds without any after which it is said to be done; one call may compile several kernels in a row."""

_PACKAGE = __name__.partition(".")[0]


def _tell(text: str) -> None:
    if sys.stderr is not None:  # as where a program has no console
        sys.stderr.write(text)
        sys.stderr.flush()


class Watch:
    """Told of every function that Numba compiles; callees are compiled within their callers.

    Numba compiles under one lock, so there is one compilation at a time. Meanwhile no garbage is collected: the
    compiler makes many objects and next to no garbage in cycles, and looking for it takes an eighth of the time.
    """

    def __init__(self) -> None:
        # Seconds of compilations that have ended, and when the one going on began: one thing, since threads look at it.
        self.state: tuple[float, float | None] = (0.0, None)
        self.lines = 0  # lines of progress in view, which say it in their own way
        self._depth = 0
        self._collects = False  # whether garbage was collected before
        self._burst = 0.0  # seconds when nothing had been compiled for a while
        self._said = False
        self._timer: threading.Timer | None = None

    def begin(self, function: Any) -> None:
        """A function is going to be compiled; only ours count, and what is compiled for them."""
        if self._depth or function.__module__.partition(".")[0] == _PACKAGE:
            if not self._depth:
                self.state = (self.state[0], time.perf_counter())
                if self._timer is not None:
                    self._timer.cancel()
                self._collects = gc.isenabled()
                gc.disable()
            self._depth += 1
            self._say()

    def end(self) -> None:
        """The last function that was begun is compiled."""
        if not self._depth:
            return
        self._depth -= 1
        self._say()
        if not self._depth:
            if self._collects:
                gc.enable()
            self.state = (self.seconds(), None)
            self._timer = threading.Timer(QUIET, self.end_burst)
            self._timer.daemon = True
            self._timer.start()

    def seconds(self) -> float:
        """So far."""
        total, since = self.state
        return total if since is None else total + time.perf_counter() - since

    def _say(self) -> None:
        quiet = self.lines or not settings.announce_compilation
        if not quiet and not self._said and self.seconds() - self._burst > PATIENCE:
            self._said = True
            _tell(f"{_PACKAGE}: compiling kernels, once per machine ...")

    def end_burst(self) -> None:
        """Nothing more has come: say that it is over."""
        if self._said:
            _tell(f" done in {self.state[0] - self._burst:.0f} s\n")
        self._said = False
        self._burst = self.state[0]


WATCH = Watch()
atexit.register(WATCH.end_burst)


def seconds_compiling() -> float:
    """Seconds that this process has spent compiling kernels so far."""
    return WATCH.seconds()


def compiling() -> bool:
    """Whether a kernel is being compiled at this moment."""
    return WATCH.state[1] is not None


def clock() -> float:
    """Seconds that pass while no kernel is being compiled; what time limits are kept by."""
    return time.perf_counter() - WATCH.seconds()
