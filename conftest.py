"""What tests and the examples in docstrings share."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator

import pytest

# Tests are of compiled code, also where nothing is compiled yet; tests/kernels/test_interpreter.py is of the other.
os.environ.setdefault("MARKOVFIELD_INTERPRET_SMALL_WORK", "0")
os.environ.setdefault("MARKOVFIELD_ANNOUNCE_COMPILATION", "0")


@pytest.fixture(autouse=True)
def _figures_are_closed() -> Iterator[None]:
    """Pictures drawn by one test are not kept for the next."""
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")
