"""Where reference data lies; tests that need it skip with a reason, but fail in continuous integration."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

__all__ = ["data_path", "data_root"]


def data_root() -> Path | None:
    """The folder of reference data: ``MARKOVFIELD_DATA``, or ``../shared/data`` next to the repository."""
    given = os.environ.get("MARKOVFIELD_DATA")
    root = Path(given) if given else Path(__file__).resolve().parents[2] / "shared" / "data"
    return root if root.is_dir() else None


def data_path(*parts: str) -> Path:
    """Path of a file or folder of the reference data; absent, the test skips (fails when ``CI=true``)."""
    root = data_root()
    path = root.joinpath(*parts) if root is not None else None
    if path is not None and path.exists():
        return path
    reason = f"reference data {'/'.join(parts) or 'folder'} not found; set MARKOVFIELD_DATA"
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)
