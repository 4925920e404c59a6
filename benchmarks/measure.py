"""Timing policy, tables on stdout and results on disk, shared by every benchmark.

The policy is the same for us and for the peers: repeat until at least `Policy.repeats` runs are made and
`Policy.least` seconds spent, stop when `Policy.most` seconds are gone, and report the median. This file imports
nothing but the standard library, because the peers' workers, which run in another environment, import it too.
"""

from __future__ import annotations

import json
import math
import os
import platform
import shlex
import statistics
import sys
import textwrap
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

__all__ = [
    "Policy",
    "Table",
    "Timing",
    "geometric_mean",
    "machine",
    "measure",
    "memory",
    "milliseconds",
    "reset_peak",
    "save",
]

RESULTS = Path(__file__).parent / "results"
# Every table of this run, in the order of printing: `save` keeps them for the page of the documentation.
PRINTED: list[Table] = []


@dataclass(frozen=True)
class Policy:
    """How long to repeat a measurement."""

    repeats: int = 5
    least: float = 0.25
    most: float = 10.0


@dataclass(frozen=True)
class Timing:
    """Seconds of repeated runs, column by column."""

    columns: tuple[str, ...]
    rows: tuple[tuple[float, ...], ...]

    def median(self, column: str) -> float:
        """Median of one column."""
        at = self.columns.index(column)
        return statistics.median(row[at] for row in self.rows)

    def least(self, column: str) -> float:
        """Minimum of one column."""
        at = self.columns.index(column)
        return min(row[at] for row in self.rows)

    def summary(self) -> dict[str, Any]:
        """Medians and minima by column, and the number of runs."""
        return {
            "runs": len(self.rows),
            "median": {c: self.median(c) for c in self.columns},
            "min": {c: self.least(c) for c in self.columns},
        }


def measure(columns: Sequence[str], once: Callable[[], Sequence[float]], policy: Policy) -> Timing:
    """Call ``once`` (it returns seconds, one per column) as often as the policy says."""
    rows: list[tuple[float, ...]] = []
    started = time.perf_counter()
    while True:
        rows.append(tuple(once()))
        spent = time.perf_counter() - started
        enough = len(rows) >= policy.repeats and spent >= policy.least
        if enough or spent + spent / len(rows) > policy.most:
            return Timing(tuple(columns), tuple(rows))


def geometric_mean(values: Iterable[float]) -> float:
    """Geometric mean; nan of nothing."""
    logs = [math.log(v) for v in values]
    return math.exp(sum(logs) / len(logs)) if logs else math.nan


def milliseconds(seconds: float | None) -> str:
    """Milliseconds with three significant digits."""
    if seconds is None:
        return "-"
    return _digits(1e3 * seconds)


def _digits(value: float) -> str:
    if not math.isfinite(value):
        return "-"
    if value == 0:
        return "0"
    if abs(value) < 1e-3:
        return f"{value:.0e}"
    places = max(0, 2 - math.floor(math.log10(abs(value))))
    return f"{value:,.{min(places, 4)}f}"


class Table:
    """An aligned table that prints each row as it comes, so that a long run can be watched.

    Widths are fixed by the headers and by hints for the first two columns; wider cells push their row.
    """

    def __init__(self, title: str, headers: Sequence[str], *, first: int = 14, second: int = 0, least: int = 8) -> None:
        self.title, self.headers = title, list(headers)
        self.rows: list[list[str]] = []
        self.notes: list[str] = []
        PRINTED.append(self)
        self.widths = [max(least, len(h)) for h in headers]
        self.widths[0] = max(first, len(headers[0]))
        self.widths[1] = max(second, self.widths[1])
        print(f"\n== {title} ==")
        print(self._line(self.headers), flush=True)

    def _line(self, cells: Sequence[str]) -> str:
        first, *rest = zip(cells, self.widths, strict=True)
        return "  ".join([f"{first[0]:<{first[1]}}", *(f"{c:>{w}}" for c, w in rest)]).rstrip()

    def row(self, *cells: Any) -> None:
        """Print a row: floats with three significant digits, None as a dash."""
        shown = []
        for cell in cells:
            if cell is None:
                shown.append("-")
            elif isinstance(cell, float):
                shown.append(_digits(cell))
            else:
                shown.append(str(cell))
        shown += [""] * (len(self.headers) - len(shown))
        self.rows.append(shown)
        print(self._line(shown), flush=True)

    def note(self, text: str) -> None:
        """Print a remark under the table: one thought, however long."""
        self.notes.append(text)
        for line in textwrap.wrap(text, 110, subsequent_indent="  ", break_on_hyphens=False) or [""]:
            print(f"   {line}", flush=True)


def memory(field: str) -> int:
    """Bytes this process holds (``VmRSS``) or held at most since the last `reset_peak` (``VmHWM``); 0 if unknown."""
    try:
        with open("/proc/self/status", encoding="ascii") as lines:
            return next(1024 * int(line.split()[1]) for line in lines if line.startswith(field))
    except OSError:  # not Linux
        return 0


def reset_peak() -> int:
    """Forget the peak so far, and tell what is held now."""
    try:
        with open("/proc/self/clear_refs", "w", encoding="ascii") as control:
            control.write("5")
    except OSError:  # not Linux, or not allowed: the peak since the start is an upper bound
        pass
    return memory("VmRSS")


def machine() -> dict[str, Any]:
    """What the numbers were measured on, and how busy it was."""
    model = platform.processor() or platform.machine()
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            model = next(line.split(":")[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        pass
    return {
        "processor": model,
        "cores": os.cpu_count(),
        "load": os.getloadavg(),
        "python": platform.python_version(),
        "system": platform.platform(),
        "time": time.strftime("%Y-%m-%d %H:%M:%S"),
    }


def command() -> str:
    """The command line of this run, as anybody would type it again."""
    spec = getattr(sys.modules["__main__"], "__spec__", None)
    module = spec.name.removesuffix(".__main__") if spec is not None else Path(sys.argv[0]).stem
    return shlex.join(["python", "-m", module, *sys.argv[1:]])


def save(name: str, results: dict[str, Any]) -> Path:
    """Write results, the tables printed and the command as JSON into ``benchmarks/results/``, which git ignores."""
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{name}.json"

    def plain(value: Any) -> Any:
        if hasattr(value, "tolist"):
            return value.tolist()
        if hasattr(value, "__dataclass_fields__"):
            return asdict(value)
        return str(value)

    tables = [{"title": t.title, "headers": t.headers, "rows": t.rows, "notes": t.notes} for t in PRINTED]
    whole = {"machine": machine(), **results, "tables": tables, "command": command()}
    path.write_text(json.dumps(whole, indent=1, default=plain) + "\n", encoding="utf-8")
    return path
