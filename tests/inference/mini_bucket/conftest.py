"""Warnings about convergence are no news in these tests."""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    """Few iterations are asked for on purpose."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="mini_bucket did not converge")
        yield
