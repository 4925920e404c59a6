"""What a ``fit`` tells its callback, kept for whoever watches: a few thousand points at most, however long it goes."""

from __future__ import annotations

import math
import threading
import time
from typing import Any

from markovfield._validation import whole_number
from markovfield.exceptions import ModelError

__all__ = ["TrainingLog"]

MOST_POINTS, MOST_RUNS = 2000, 20


class TrainingLog:
    """Values of an objective (and bounds) over the steps of one ``fit`` after another.

    The log itself goes into ``fit(..., callback=log)`` of anything that takes a callback. A run whose steps begin anew
    is another curve. Points are thinned evenly once there are too many; the last one always stays. With
    ``markovfield.explore(log)`` the curves grow in a browser, which can also stop the ``fit``.

    Examples
    --------
    >>> import markovfield as mf
    >>> log = mf.explorer.TrainingLog()
    >>> X, y = [[["w=the"], ["w=dog"]]], [["D", "N"]]
    >>> with mf.explore(log, open_browser=False):
    ...     crf = mf.ChainCRF(l2=0.1).fit(X, y, callback=log)
    >>> log.told()["runs"][0]["steps"] > 1
    True

    Or told by hand:

    >>> from markovfield.inference.core.running import Progress
    >>> log = TrainingLog()
    >>> for step in range(1, 4):
    ...     _ = log(Progress(step, 0.1 * step, 10.0 / step))
    >>> log.told()["runs"][-1]["points"][-1][2]
    3.3333333333333335
    """

    def __init__(self) -> None:
        self._lock = threading.Condition()
        self._runs: list[dict[str, Any]] = []
        self._version = 0
        self._stop = False
        self._heard = time.monotonic()

    def __call__(self, progress: Any) -> bool | None:
        """The same as `callback`."""
        return self.callback(progress)

    def callback(self, progress: Any) -> bool | None:
        """Told of each step; answers true, which ends the ``fit``, where somebody asked to stop."""
        point = [_finite(getattr(progress, name, None)) for name in ("step", "seconds", "value", "bound")]
        if point[0] is None:
            raise ModelError(f"a training log is told a Progress with a step, got {progress!r:.80}")
        with self._lock:
            last = self._runs[-1] if self._runs else None
            if last is None or (last["points"] and point[0] <= last["last"][0]):
                self._start_run()
                self._stop = False
            self._add(self._runs[-1], point)
            self._version += 1
            self._runs[-1]["stopped"] = self._stop
            self._heard = time.monotonic()
            self._lock.notify_all()
            return True if self._stop else None

    def begin(self, name: str) -> None:
        """Name the run that comes next."""
        with self._lock:
            self._start_run(str(name)[:200])
            self._stop = False
            self._heard = time.monotonic()
            self._version += 1
            self._lock.notify_all()

    def ask_to_stop(self) -> None:
        """Let the next call of `callback` end the run."""
        with self._lock:
            self._stop = True
            self._version += 1
            self._lock.notify_all()

    @property
    def version(self) -> int:
        """A number that grows with whatever is told."""
        return self._version

    def wait(self, version: int, seconds: float) -> bool:
        """Whether there is something newer than a version, waiting for it so long at most."""
        with self._lock:
            return self._lock.wait_for(lambda: self._version > version, seconds)

    def told(self, since: Any = 0) -> dict[str, Any]:
        """All runs with points ``[step, seconds, value, bound]``; none where nothing is newer than a version.

        A number that there is not is None. ``quiet``: seconds since the last step.
        """
        since = whole_number(since, "since", 0)
        with self._lock:
            runs = [
                {key: r[key] for key in ("name", "number", "stopped")} | {"points": _with_last(r), "steps": r["count"]}
                for r in self._runs
            ]
            return {
                "version": self._version,
                "runs": runs if self._version > since or not since else [],
                "stopping": self._stop,
                "quiet": time.monotonic() - self._heard,
            }

    def _start_run(self, name: str = "") -> None:
        if self._runs and not self._runs[-1]["points"]:
            self._runs.pop()
        number = self._runs[-1]["number"] + 1 if self._runs else 1
        fresh: dict[str, Any] = {
            "name": name or f"run {number}",
            "number": number,
            "points": [],
            "every": 1,
            "count": 0,
        }
        self._runs.append({**fresh, "stopped": False})
        del self._runs[:-MOST_RUNS]

    @staticmethod
    def _add(run: dict[str, Any], point: list[float | None]) -> None:
        run["last"] = point
        if run["count"] % run["every"] == 0:
            run["points"].append(point)
            if len(run["points"]) > MOST_POINTS:
                run["points"], run["every"] = run["points"][::2], 2 * run["every"]
        run["count"] += 1


def _with_last(run: dict[str, Any]) -> list[list[float | None]]:
    points: list[list[float | None]] = list(run["points"])
    return points if not points or points[-1] is run["last"] else [*points, run["last"]]


def _finite(value: Any) -> float | None:
    try:
        found = float(value)
    except (TypeError, ValueError):
        return None
    return found if math.isfinite(found) else None
