"""What tests and the examples in docstrings share."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def _figures_are_closed() -> Iterator[None]:
    """Pictures drawn by one test are not kept for the next."""
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")
