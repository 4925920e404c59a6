"""Packages that come with an extra, and the one sentence that is said where one of them is missing."""

from __future__ import annotations

import sys
from importlib.util import find_spec

__all__ = ["EXTRAS", "check_installed", "installed", "missing"]

# The extra of pyproject.toml by the name that is imported.
EXTRAS = {
    "matplotlib": "plot",
    "PIL": "plot",
    "pandas": "frames",
    "polars": "frames",
    "lark": "logic",
    "duckdb": "logic",
    "pytoulbar2": "exact",
    "cotengra": "exact",
    "clarabel": "qp",
    "starlette": "explore",
    "uvicorn": "explore",
    "websockets": "explore",
}


def installed(package: str) -> bool:
    """Whether a package can be imported.

    Examples
    --------
    >>> installed("numpy"), installed("no_such_package")
    (True, False)
    """
    if package in sys.modules:
        return sys.modules[package] is not None
    return find_spec(package) is not None


def missing(what: str, package: str, instead: str = "") -> ImportError:
    """The error for what needs a package that is not there.

    Examples
    --------
    >>> print(missing("Markov logic", "duckdb"))
    Markov logic needs duckdb, which is not installed: pip install "markovfield[logic]"
    """
    remedy = f'pip install "markovfield[{EXTRAS[package]}]"' + (f", or {instead}" if instead else "")
    return ImportError(f"{what} needs {package}, which is not installed: {remedy}", name=package)


def check_installed(what: str, *packages: str, instead: str = "") -> None:
    """Raise that error unless all packages can be imported; ``instead`` is another way that needs none of them."""
    for package in packages:
        if not installed(package):
            raise missing(what, package, instead)
