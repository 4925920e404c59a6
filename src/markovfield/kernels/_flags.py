"""One decorator for every kernel: the compiler flags live here and nowhere else.

Numba's on-disk cache does not notice when a *callee in another file* changes, so the cache directory is keyed by
a hash of all kernel sources.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, ParamSpec, TypeVar, cast

import numba

__all__ = ["kernel"]

P = ParamSpec("P")
R = TypeVar("R")

# Re-association and fused multiply-add let sums vectorise. The flags that assume "no inf, no nan" stay off: -inf
# is how a hard constraint is written.
FAST_MATH = {"reassoc", "contract", "arcp", "nsz"}


def _cache_directory() -> str:
    digest = hashlib.sha256()
    folder = Path(__file__).parent
    for path in sorted(folder.glob("*.py")):
        digest.update(path.read_bytes())
    if "NUMBA_CACHE_DIR" in os.environ:
        base = Path(os.environ["NUMBA_CACHE_DIR"])
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "markovfield"
    return str(base / digest.hexdigest()[:16])


numba.config.CACHE_DIR = _cache_directory()  # type: ignore[attr-defined]


def kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compile ``function`` with Numba: no GIL, cached on disk, no Python objects."""
    compiled: Any = numba.njit(nogil=True, cache=True, fastmath=FAST_MATH, error_model="numpy")(function)
    return cast(Callable[P, R], compiled)
