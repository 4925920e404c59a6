"""The pages, one module each; the package's docstring says how one is added."""

from __future__ import annotations

from importlib import import_module

from markovfield.explorer.core.page import Page

__all__ = ["PAGES", "all_pages"]

PAGES = ("logic", "network", "lattice", "picture", "stereo", "tagger", "parses", "training")


def all_pages() -> list[Page]:
    """All pages, in the order of their tabs."""
    return [import_module(f"{__name__}.{name}").PAGE for name in PAGES]
