"""How much memory a computation may take: fixed defaults, so that the same call always takes the same method."""

from __future__ import annotations

import re
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

from markovfield._validation import number
from markovfield.exceptions import ModelError

__all__ = ["DEFAULT_MEMORY_LIMIT", "format_bytes", "memory_limit_bytes"]

DEFAULT_MEMORY_LIMIT = 8 * 2**30
_UNITS = {
    "": 0,
    "b": 0,
    "k": 10,
    "kib": 10,
    "kb": 10,
    "m": 20,
    "mib": 20,
    "mb": 20,
    "g": 30,
    "gib": 30,
    "gb": 30,
}
_UNITS |= {"t": 40, "tib": 40, "tb": 40}


@lru_cache(maxsize=1)
def _container_limit() -> int | None:
    """The memory limit of the control group this process runs in, where one is set."""
    for path in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        try:
            text = Path(path).read_text().strip()
        except OSError:
            continue
        if text.isdigit() and int(text) < 2**60:
            return int(text)
    return None


def memory_limit_bytes(limit: str | int | float | None) -> float:
    """Read a limit such as ``"4GiB"`` or a number of bytes; None is 8 GiB, or four fifths of the container's memory.

    Examples
    --------
    >>> memory_limit_bytes("1.5 GiB")
    1610612736.0
    """
    if limit is None:
        container = _container_limit()
        return float(min(DEFAULT_MEMORY_LIMIT, 0.8 * container if container else DEFAULT_MEMORY_LIMIT))
    if isinstance(limit, str):
        match = re.fullmatch(r"\s*([0-9.]+)\s*([a-zA-Z]*)\s*", limit)
        if match and match[2].lower() in _UNITS:
            with suppress(ValueError):
                size = float(match[1]) * 2.0 ** _UNITS[match[2].lower()]
                if size > 0:
                    return size
        raise ModelError(f"memory_limit must be a number of bytes or like '4GiB', got {limit!r}")
    return number(limit, "memory_limit", above=0)


def format_bytes(log2_bytes: float) -> str:
    """A size given as log2 of bytes, in words.

    Examples
    --------
    >>> format_bytes(31)
    '2 GiB'
    >>> format_bytes(300)
    '2^300 bytes'
    """
    if log2_bytes > 60:
        return f"2^{log2_bytes:.0f} bytes"
    for power, unit in ((50, "PiB"), (40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")):
        if log2_bytes >= power:
            return f"{2.0 ** (log2_bytes - power):.3g} {unit}"
    return f"{2.0**log2_bytes:.0f} bytes"
