"""The files that are handed out: a fixed table, so that no path of a request ever reaches the file system."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable

__all__ = ["asset_table"]

TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
}


@cache
def asset_table() -> dict[str, tuple[bytes, str]]:
    """Path below ``static`` to content and type."""
    table: dict[str, tuple[bytes, str]] = {}

    def enter(folder: Traversable, before: str) -> None:
        for item in folder.iterdir():
            if item.is_dir():
                enter(item, f"{before}{item.name}/")
                continue
            kind = TYPES.get(item.name[item.name.rfind(".") :])
            if kind is not None:
                table[before + item.name] = (item.read_bytes(), kind)

    enter(files("markovfield.explorer") / "static", "")
    return table
