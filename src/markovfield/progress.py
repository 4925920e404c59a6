"""One line that tells how a long call goes: in a terminal by rich, in a notebook a bar in the output of its cell.

It appears only when somebody has to wait, is never wider than 80 columns, and is gone when the call ends. Where there
is a limit of time, a bar fills as it goes; otherwise nobody knows how much is left, and it only moves. A function that
takes ``callback`` and ``progress`` has it by the decorator `shows_progress`; the command line uses `ProgressLine`
itself.
"""

from __future__ import annotations

import functools
import math
import sys
import threading
import time
from collections.abc import Callable
from html import escape
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from markovfield.kernels.compilations import WATCH, compiling

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["ProgressLine", "fitting", "in_bytes", "memory_used", "shows_progress"]

P = ParamSpec("P")
R = TypeVar("R")

WIDTH = 80
# A spinner and a space before the message; a space and hours, minutes and seconds after it.
BESIDE = 11
BETWEEN = 0.1
# A bar in a terminal, with a space after it, where the line has room for one.
BAR, LEAST_WITH_BAR = 13, 60


class ProgressLine:
    """Context of a long run; its `callback` goes to whoever runs.

    Parameters
    ----------
    what
        What is going on, in a few words.
    console
        Where the line appears, when it is a terminal; standard error when None.
    delay
        Seconds before it does.
    told
        Another callback, which is told as well; its answer is passed on.
    limit
        Seconds that the call may take: what the bar fills by.
    memory
        Whether the memory of the process is told too, where the system says it.
    """

    def __init__(
        self,
        what: str,
        console: Console | None = None,
        *,
        delay: float = 1.0,
        told: Callable[[Any], Any] | None = None,
        limit: float | None = None,
        memory: bool = False,
    ) -> None:
        if console is None:
            from rich.console import Console

            console = Console(stderr=not _in_notebook(), highlight=False)
        self._console = console
        self._what = what
        self._delay = delay
        self._told = told
        self._memory = memory
        self._limit = limit if isinstance(limit, int | float) and 0 < limit < math.inf else None
        self._bar = self._limit is not None and console.width >= LEAST_WITH_BAR
        self._started = 0.0
        self._step = 0
        self._value: float | None = None
        self._bound: float | None = None
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def callback(self, progress: Any) -> bool | None:
        """Told of each step by the library."""
        self._step = int(progress.step)
        self._value, self._bound = progress.value, progress.bound
        return None if self._told is None else self._told(progress)

    def __enter__(self) -> ProgressLine:
        self._started = time.time()
        watch = self._in_cell if _in_notebook() else self._in_terminal if self._console.is_terminal else None
        if watch is not None:
            WATCH.lines += 1
            self._thread = threading.Thread(target=self._watch, args=(watch,), daemon=True)
            self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        if self._thread is not None:
            self._thread.join()
            WATCH.lines -= 1

    def _watch(self, watch: Callable[[], None]) -> None:
        if not self._stop.wait(self._delay):
            watch()

    def _in_terminal(self) -> None:
        from rich.progress import BarColumn, Progress, ProgressColumn, SpinnerColumn, TextColumn, TimeElapsedColumn

        bar: tuple[ProgressColumn, ...] = (BarColumn(bar_width=BAR - 1),) if self._bar else ()
        columns = (SpinnerColumn(), *bar, TextColumn("{task.description}", markup=False), TimeElapsedColumn())
        with Progress(*columns, console=self._console, transient=True) as display:
            task = display.add_task(self.message(), total=self._limit)
            while not self._stop.wait(BETWEEN):
                display.update(task, description=self.message(), completed=self._elapsed())

    def _in_cell(self) -> None:
        from IPython.display import display

        shown = display(self.bundle(), raw=True, display_id=True)
        while not self._stop.wait(5 * BETWEEN):
            shown.update(self.bundle(), raw=True)
        shown.update({"text/plain": "", "text/html": ""}, raw=True)

    def _elapsed(self) -> float:
        return time.time() - self._started

    def bundle(self) -> dict[str, str]:
        """The bar for a notebook, and a line for what shows no HTML; a bar without a value moves by itself."""
        seconds = self._elapsed()
        text = f"{self.message()}, {seconds:.0f} s"
        share = "" if self._limit is None else f' value="{min(seconds / self._limit, 1.0):.3f}"'
        bar = f'<progress max="1"{share} style="width: 16em; vertical-align: middle"></progress>'
        return {"text/plain": text, "text/html": f'<div role="status">{bar} <code>{escape(text)}</code></div>'}

    def message(self) -> str:
        """What is going on, as far as can be told from outside, in as many characters as there is room for."""
        parts = []
        used = memory_used()[0] if self._memory else 0
        if used:
            parts.append(in_bytes(used))
        if compiling():
            parts.append("compiling kernels, once")
        elif self._step:
            parts.append(f"step {self._step}")
            if self._value is not None:
                parts.append(f"value {self._value:.8g}")
            if self._bound is not None and math.isfinite(self._bound):
                if self._value is not None and math.isfinite(self._value):
                    parts.append(f"gap {abs(self._bound - self._value):.4g}")
                parts.append(f"bound {self._bound:.8g}")
        return fitting(self._what, ", ".join(parts), min(WIDTH, self._console.width) - (BAR if self._bar else 0))


def memory_used() -> tuple[int, int]:
    """Bytes of memory that the process has now, and the most it ever had; zero where the system does not say."""
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return 0, 0
    told = {name: rest.split() for name, _, rest in (line.partition(":") for line in lines)}
    now, most = (1024 * int(told[name][0]) if name in told else 0 for name in ("VmRSS", "VmHWM"))
    return now, max(now, most)


def in_bytes(n: float) -> str:
    """A number of bytes in words.

    Examples
    --------
    >>> in_bytes(2_345_678), in_bytes(1.5e9)
    ('2.3 MB', '1.5 GB')
    """
    return f"{n / 1e9:.1f} GB" if n >= 1e9 else f"{n / 1e6:.1f} MB"


def fitting(what: str, told: str, width: int) -> str:
    """``what: told`` beside a spinner and a clock: of what is told, the last parts are left out where need be.

    Examples
    --------
    >>> fitting("training on a_file_with_a_long_name.txt", "iteration 3, loss 1.5, F1 0.5", 60)
    'training...ame.txt: iteration 3, loss 1.5, F1 0.5'
    """
    room = min(WIDTH, width) - BESIDE
    parts = told.split(", ")
    while len(parts) > 1 and len(", ".join(parts)) > room - 12:
        parts.pop()
    told = _shortened(", ".join(parts), room - 8)
    name = _shortened(what, room - len(told) - 2 if told else room)
    return f"{name}: {told}" if told else name


def _shortened(text: str, room: int) -> str:
    """A text with its middle left out where it does not fit."""
    if len(text) <= room:
        return text
    kept = max(room - 3, 2)
    return f"{text[: kept - kept // 2]}...{text[len(text) - kept // 2 :]}"


def _in_notebook() -> bool:
    """Whether the code runs in a cell of a notebook, of whose output a part can be replaced."""
    module = sys.modules.get("IPython")
    shell = None if module is None else module.get_ipython()
    return shell is not None and hasattr(shell, "kernel")


def shows_progress(function: Callable[P, R]) -> Callable[P, R]:
    """Let a function that takes ``callback`` show how it goes when it is called with ``progress=True``.

    Examples
    --------
    >>> @shows_progress
    ... def count(n, *, callback=None, progress=False):
    ...     return n if callback is None else -n
    >>> count(3), count(3, progress=True)
    (3, -3)
    """

    @functools.wraps(function)
    def call(*args: P.args, **settings: P.kwargs) -> R:
        if not settings.get("progress"):
            return function(*args, **settings)
        told: Any = settings.get("callback")
        limit: Any = settings.get("time_limit")
        with ProgressLine(function.__qualname__, told=told, limit=limit) as line:
            settings["callback"] = line.callback
            settings["progress"] = False
            return function(*args, **settings)

    return call
