"""HiGHS, through ``scipy.optimize``, run so that a time limit, a callback and Ctrl-C are heeded while it works."""

from __future__ import annotations

import re
import subprocess
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from markovfield.arrays import FloatArray
from markovfield.exceptions import StoppedError
from markovfield.inference.core._end_with_parent import command
from markovfield.inference.core.running import STOPS, Running
from markovfield.inference.linear_programming._highs_worker import run_highs

__all__ = ["Highs", "Solved"]

# What HiGHS says of a program: solved, or no point satisfies it. Anything else is out of time.
SOLVED, INFEASIBLE = 0, 2
# A program of at most so many columns is first tried in this process for so long: most are done by then, before
# another process would have started. Nothing can interrupt HiGHS here, so the wait must be short.
AT_ONCE_COLUMNS, AT_ONCE_SECONDS = 20_000, 0.4
# Seconds between looks at the other process, and how long it may take to say what it has when its time is up.
_POLL, _GRACE = 0.05, 0.3
_WORKER = Path(__file__).with_name("_highs_worker.py")
# A row of the table that HiGHS prints while it branches: BestBound stands after the share of leaves explored.
_ROW = re.compile(r"^.{0,3}\s*\d+\s+\d+\s+\d+\s+[\d.]+%\s+(-?\d[\d.]*(?:e[+-]?\d+)?)\s", re.MULTILINE)


@dataclass(frozen=True, eq=False)
class Solved:
    """What HiGHS found: the best point (None without one), a proven lower bound on the costs where integers are
    asked for, multipliers where they are not, and what stopped it (None where it was done)."""

    status: int
    point: FloatArray | None
    bound: float
    equal_prices: FloatArray
    below_prices: FloatArray
    stop: BaseException | None = None


class Highs:
    """Minimise ``costs @ x`` where ``equal @ x`` is ``equal_right`` and ``x`` at least 0, one program after another.

    Where ``whole`` marks columns, those are 0 or 1 and all others at most 1.
    """

    def __init__(self, running: Running) -> None:
        self.running = running
        self.elsewhere = False

    def solve(
        self,
        costs: FloatArray,
        equal: tuple[Any, FloatArray],
        *,
        below: tuple[Any, FloatArray] | None = None,
        whole: FloatArray | None = None,
        relative_gap: float = 0.0,
    ) -> Solved:
        """Solve, here where that is quick, else in another process, which is ended on the first wish to stop."""
        program: dict[str, Any] = {
            "costs": costs,
            "whole": np.zeros(0) if whole is None else whole,
            "relative_gap": np.float64(relative_gap),
        }
        for name, rows in (("equal", equal), ("below", below)):
            program[f"{name}_right"] = np.zeros(0) if rows is None else rows[1]
            if rows is not None:
                matrix = rows[0]
                program |= {f"{name}_data": matrix.data, f"{name}_indices": matrix.indices}
                program[f"{name}_indptr"] = matrix.indptr
        first = None
        try:
            self.running.check()
            if not self.elsewhere and len(costs) <= AT_ONCE_COLUMNS:
                left = self._seconds_left()
                found = run_highs(program, min(AT_ONCE_SECONDS, left))
                first = _read(found)
                if first.status in (SOLVED, INFEASIBLE):
                    return first
                # The check raises where it was the limit itself that ended this.
                self.running.check()
            # Where one program took long, the next of the same model will.
            self.elsewhere = True
            return _better(self._in_other_process(program), first)
        except STOPS as stop:
            return _better(_nothing(stop), first)

    def _seconds_left(self) -> float:
        limit = self.running.time_limit
        if limit is None:
            return np.inf
        return max(0.01, limit - (self.running.seconds))

    def _in_other_process(self, program: dict[str, Any]) -> Solved:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            np.savez(folder / "program.npz", **program)
            left = self._seconds_left()
            # When it was started, too: until it solves anything it has spent some of the time.
            limits = [str(left), str(time.time())] if np.isfinite(left) else []
            with open(folder / "log", "wb") as log, open(folder / "messages", "wb") as messages:
                # A session of its own: Ctrl-C is for this process to handle.
                process = subprocess.Popen(
                    command(_WORKER, name, *limits), stdout=log, stderr=messages, start_new_session=True
                )
            stop: BaseException | None = None
            try:
                while process.poll() is None:
                    with suppress(subprocess.TimeoutExpired):
                        process.wait(_POLL)
                    self.running.check()
            except (StoppedError, KeyboardInterrupt) as wish:
                stop = wish
            except TimeoutError as late:
                # It has the same limit, and is about to say what it has.
                stop = late
                with suppress(subprocess.TimeoutExpired):
                    process.wait(_GRACE)
            finally:
                process.kill()
                process.wait()
            result = folder / "result.npz"
            if result.exists():
                with np.load(result, allow_pickle=False) as data:
                    return _read(dict(data), stop)
            if stop is None:
                said = (folder / "messages").read_text(errors="replace").strip().splitlines()
                raise RuntimeError(f"HiGHS ended without an answer: {said[-1] if said else 'it said nothing'}")
            return _nothing(stop, _bound_in(folder / "log"))


def _nothing(stop: BaseException, bound: float = -np.inf) -> Solved:
    return Solved(-1, None, bound, np.zeros(0), np.zeros(0), stop)


def _read(found: dict[str, Any], stop: BaseException | None = None) -> Solved:
    status = int(found["status"])
    if status not in (SOLVED, INFEASIBLE) and stop is None:
        stop = TimeoutError(f"HiGHS gave no solution: {found['message']}")
    nothing = np.zeros(0)
    return Solved(
        status,
        found.get("x"),
        float(found.get("bound", -np.inf)),
        found.get("equal_prices", nothing),
        found.get("below_prices", nothing),
        None if status in (SOLVED, INFEASIBLE) else stop,
    )


def _better(last: Solved, first: Solved | None) -> Solved:
    """The last word, with what the first try found where that is better."""
    if first is None or last.stop is None:
        return last
    point = first.point if last.point is None else last.point
    return Solved(last.status, point, max(last.bound, first.bound), last.equal_prices, last.below_prices, last.stop)


def _bound_in(log: Path) -> float:
    """The last bound that HiGHS printed before it was ended, less what its digits leave open."""
    rows = _ROW.findall(log.read_text(errors="replace"))
    if not rows:
        return -np.inf
    # It prints nine digits at least (and drops zeros at the end).
    bound = float(rows[-1])
    return bound - 1e-8 * abs(bound)
