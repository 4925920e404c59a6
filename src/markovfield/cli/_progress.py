"""A spinner with a step counter, shown only to people and only when they have to wait."""

from __future__ import annotations

import math
import sys
import threading
import time
from pathlib import Path
from types import TracebackType
from typing import Any

from rich.console import Console
from rich.progress import Progress as Display
from rich.progress import SpinnerColumn, TextColumn, TimeElapsedColumn

__all__ = ["Waiting"]


class Waiting:
    """Context of a long run; its `callback` goes to a verb.

    After ``delay`` seconds, and only when the console is a terminal, a spinner appears; it is gone when the run ends.
    """

    def __init__(self, console: Console, what: str, *, delay: float = 1.0) -> None:
        self._console = console
        self._what = what
        self._delay = delay
        self._started = 0.0
        self._step = 0
        self._value: float | None = None
        self._bound: float | None = None
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def callback(self, progress: Any) -> None:
        """Told of each step by the library."""
        self._step = int(progress.step)
        self._value, self._bound = progress.value, progress.bound

    def __enter__(self) -> Waiting:
        self._started = time.time()
        if self._console.is_terminal:
            self._thread = threading.Thread(target=self._watch, daemon=True)
            self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        if self._thread is not None:
            self._thread.join()

    def _watch(self) -> None:
        if self._stop.wait(self._delay):
            return
        columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
        with Display(*columns, console=self._console, transient=True) as display:
            task = display.add_task(self.message())
            while not self._stop.wait(0.1):
                display.update(task, description=self.message())

    def message(self) -> str:
        """What is going on, as far as can be told from outside."""
        if self._compiling():
            return f"{self._what}: compiling kernels, once"
        if not self._step:
            return self._what
        parts = [f"{self._what}: step {self._step}"]
        if self._value is not None:
            parts.append(f"value {self._value:.8g}")
        if self._bound is not None and math.isfinite(self._bound):
            parts.append(f"bound {self._bound:.8g}")
            if self._value is not None and math.isfinite(self._value):
                parts.append(f"gap {abs(self._bound - self._value):.4g}")
        return ", ".join(parts)

    def _compiling(self) -> bool:
        """Whether the compiler's cache is still being filled."""
        numba = sys.modules.get("numba")
        folder = Path(str(getattr(getattr(numba, "config", None), "CACHE_DIR", "")))
        if numba is None or not folder.name:
            return False
        try:
            changed = max(p.stat().st_mtime for p in (folder, *folder.iterdir()))
        except (OSError, ValueError):
            return True
        return changed >= self._started
