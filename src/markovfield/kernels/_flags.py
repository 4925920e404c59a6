"""One decorator for every kernel: the compiler flags live here and nowhere else.

Numba's on-disk cache does not notice when a *callee in another file* changes, so each module's cache directory is
keyed by a hash of its source and of every kernel module it imports.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any, ParamSpec, TypeVar, cast

import numba

__all__ = ["kernel"]

P = ParamSpec("P")
R = TypeVar("R")

_FOLDER = Path(__file__).parent

# Re-association and fused multiply-add let sums vectorise. The flags that assume "no inf, no nan" stay off: -inf
# is how a hard constraint is written.
FAST_MATH = {"reassoc", "contract", "arcp", "nsz"}


@lru_cache
def _sources(module: str) -> frozenset[str]:
    """A kernel module and every kernel module it imports, directly or not."""
    text = (_FOLDER / f"{module}.py").read_text()
    found = {module}
    for imported in re.findall(r"^from markovfield\.kernels\.(\w+) import", text, re.MULTILINE):
        found |= _sources(imported)
    return frozenset(found)


@lru_cache
def _cache_directory(module: str) -> str:
    """Where a module's compiled kernels are kept: a folder named by all the source they were compiled from."""
    digest = hashlib.sha256()
    for source in ["_flags", *sorted(_sources(module))]:
        digest.update((_FOLDER / f"{source}.py").read_bytes())
    if "NUMBA_CACHE_DIR" in os.environ:
        base = Path(os.environ["NUMBA_CACHE_DIR"])
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "markovfield"
    return str(base / f"{module}-{digest.hexdigest()[:16]}")


def kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compile ``function`` with Numba: no GIL, cached on disk, no Python objects."""
    config: Any = numba.config
    usual = config.CACHE_DIR
    config.CACHE_DIR = _cache_directory(function.__module__.rpartition(".")[2])
    try:
        compiled: Any = numba.njit(nogil=True, cache=True, fastmath=FAST_MATH, error_model="numpy")(function)
    finally:
        config.CACHE_DIR = usual
    return cast(Callable[P, R], compiled)
