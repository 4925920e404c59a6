"""How a long computation is run: on how many threads, for how long, and who is told of its progress."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from functools import cache

from markovfield._validation import number, whole_number
from markovfield.exceptions import ModelError, StoppedError
from markovfield.kernels.compilations import clock
from markovfield.kernels.interpreter import is_small

__all__ = ["STOPS", "Progress", "Running"]

# What ends a computation from outside: a method that has something to show catches it and answers.
STOPS = (TimeoutError, StoppedError, KeyboardInterrupt)


@cache
def _threads(jobs: int, process: int) -> ThreadPoolExecutor:
    """Threads that stay: starting them anew would cost more than a small task. A forked process needs its own."""
    return ThreadPoolExecutor(jobs, thread_name_prefix="markovfield")


@dataclass(frozen=True)
class Progress:
    """What a callback is told: steps done (of how many is not always known), the seconds since the start, and, where
    the method has them, the objective so far and a bound on the best there is."""

    step: int
    seconds: float
    value: float | None = None
    bound: float | None = None


@dataclass(frozen=True)
class Running:
    """Keywords common to every verb.

    Parameters
    ----------
    n_jobs
        Threads; None is all cores. Results do not depend on it.
    time_limit
        Seconds, looked at between steps of about 0.2 s; past it exact methods raise `TimeoutError`. While kernels are
        being compiled, which happens once per machine, the clock stands still.
    callback
        Called between steps with a `Progress`; a true answer stops the work with `StoppedError`.
    """

    n_jobs: int | None = None
    time_limit: float | None = None
    callback: Callable[[Progress], bool | None] | None = None
    # Looked up at each call, so that a test can put another clock in its place.
    started: float = field(default_factory=lambda: clock())  # noqa: PLW0108
    _steps: list[int] = field(default_factory=lambda: [0])
    _stops: list[BaseException] = field(default_factory=list)

    def __post_init__(self) -> None:
        if self.n_jobs is not None and whole_number(self.n_jobs, "n_jobs") < 1:
            raise ModelError(f"n_jobs must be at least 1, got {self.n_jobs}")
        if self.time_limit is not None and not number(self.time_limit, "time_limit") > 0:
            raise ModelError(f"time_limit must be positive, got {self.time_limit}")
        if self.callback is not None and not callable(self.callback):
            raise ModelError(f"callback must be a function of a Progress, got {self.callback!r}")

    def check(self, value: float | None = None, bound: float | None = None) -> None:
        """Between two steps: tell the callback, and stop when it or the clock says so."""
        if self._stops:
            raise self._stops[0]
        self._steps[0] += 1
        seconds = self.seconds
        if self.callback is not None and self.callback(Progress(self._steps[0], seconds, value, bound)):
            raise StoppedError("stopped by the callback")
        if self.time_limit is not None and seconds > self.time_limit:
            raise TimeoutError(f"no answer within the time limit of {self.time_limit:g} s")

    @property
    def seconds(self) -> float:
        """Since the start, without what kernels took to compile."""
        return clock() - self.started

    def within(self, share: float) -> Running:
        """The same, with only so much of the time that is left."""
        if self.time_limit is None:
            return self
        spent = self.seconds
        return replace(self, time_limit=max(spent + share * (self.time_limit - spent), 1e-9))

    @property
    def seconds_left(self) -> float | None:
        """What is left of the time limit, never nothing; None without one."""
        if self.time_limit is None:
            return None
        return max(self.time_limit - self.seconds, 1e-9)

    @property
    def still(self) -> bool:
        """Whether there is time left, and nobody has asked to stop."""
        return not self._stops and (self.time_limit is None or self.seconds <= self.time_limit)

    def remember(self, stop: BaseException) -> None:
        """Every later check raises what a part of the work has caught, so that the whole stops too.

        The clock and most callbacks would say it again; Ctrl-C does not.
        """
        self._stops.append(stop)

    @property
    def quiet(self) -> Running:
        """The same clock and threads, without the callback: for steps within a step."""
        return self if self.callback is None else replace(self, callback=None)

    def alone(self, task: Callable[[], int]) -> int:
        """One step."""
        self.check()
        return task()

    def side_by_side(self, tasks: Sequence[Callable[[], int]]) -> int:
        """Run tasks on threads (kernels release the GIL); the first status that is not zero, in task order."""
        if not tasks:
            return 0
        jobs = 1 if is_small() else min(len(tasks), self.n_jobs or os.cpu_count() or 1)
        if jobs == 1:
            for task in tasks:
                status = self.alone(task)
                if status:
                    return status
            return 0
        futures = [_threads(jobs, os.getpid()).submit(task) for task in tasks]
        statuses = []
        try:
            for future in futures:
                statuses.append(future.result())
                self.check()
        except BaseException:
            for future in futures:
                future.cancel()
            wait(futures)
            raise
        return next((s for s in statuses if s), 0)
