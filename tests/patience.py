"""Bounds on work that tell linear from quadratic, and nothing of the machine they run on."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def patience(seconds: float = 100.0) -> Iterator[None]:
    """Fails where the block takes this many CPU seconds of its process.

    That is far beyond what it takes on a slow and busy machine, and far below what a step more in the order of growth
    would take: inputs are made large enough for that.
    """
    started = time.process_time()
    yield
    spent = time.process_time() - started
    assert spent < seconds, f"{spent:.0f} CPU seconds"
