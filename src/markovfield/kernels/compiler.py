"""One decorator for every kernel: the compiler flags live here and nowhere else.

Numba's on-disk cache does not notice when a *callee in another file* changes, so each module's cache directory is
named by a hash of its code and of every module of ours that it imports, directly or not. Compiled kernels are found
by that content alone: checkouts with the same code share them, wherever they lie, and new comments compile nothing.
"""

from __future__ import annotations

import ast
import atexit
import hashlib
import os
import re
import shutil
import time
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any, ParamSpec, TypeVar, cast

import numba
from numba.core import caching, event

from markovfield.kernels.compilations import WATCH
from markovfield.kernels.interpreter import interpretable

__all__ = ["kernel", "sweep"]

P = ParamSpec("P")
R = TypeVar("R")

_PACKAGE = __name__.partition(".")[0]
_ROOT = Path(__file__).resolve().parents[1]

# Re-association and fused multiply-add let sums vectorise. The flags that assume "no inf, no nan" stay off: -inf
# is how a hard constraint is written.
OPTIONS: dict[str, Any] = {
    "nogil": True,
    "cache": True,
    "fastmath": {"reassoc", "contract", "arcp", "nsz"},
    "error_model": "numpy",
}
# How kernels are compiled and run, none of which changes what they are compiled to.
_MACHINERY = frozenset({"compiler", "compilations", "interpreter"})

# Folders of kernels that no process has asked for in so many days are removed, when others are compiled.
KEPT_DAYS = 30.0
_FOLDER = re.compile(r"\w+-[0-9a-f]{16}")

_FUNCTIONS = re.compile(r"^(?=@|def |class )", re.MULTILINE)
_PROSE = re.compile(r'^[ \t]*(?:#.*|[rR]?"""(?:.|\n)*?""")\n+', re.MULTILINE)


def _file(module: str) -> Path | None:
    """The file of a module of this package; None for other names (of functions, say)."""
    path = _ROOT.joinpath(*module.split(".")[1:])
    candidates = (path.with_suffix(".py"), path / "__init__.py")
    return next((found for found in candidates if found.is_file()), None)


def _imported(source: str, package: str) -> Iterator[str]:
    """Dotted names that a kernel file imports; of ``from a import b`` both ``a`` and ``a.b``.

    Only what stands above the first function is parsed, which is where kernel files have all their imports (a test sees
    to that): parsing whole files would take longer than loading what was compiled from them.
    """
    for node in ast.walk(ast.parse(_FUNCTIONS.split(source, maxsplit=1)[0])):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                above = package.split(".")[: len(package.split(".")) - node.level + 1]
                base = ".".join([*above, *([base] if base else [])])
            yield base
            yield from (f"{base}.{alias.name}" for alias in node.names)


@lru_cache
def _sources(module: str) -> frozenset[Path]:
    """The file of a module, and those of all modules of this package that it imports, directly or not."""
    found: set[Path] = set()
    waiting = [module]
    while waiting:
        name = waiting.pop()
        path = _file(name) if name.partition(".")[0] == _PACKAGE else None
        if path is None or path in found or (path.parent.name == "kernels" and path.stem in _MACHINERY):
            continue
        found.add(path)
        package = name if path.name == "__init__.py" else name.rpartition(".")[0]
        waiting += _imports_of(path, package)
    return frozenset(found)


@lru_cache
def _imports_of(path: Path, package: str) -> tuple[str, ...]:
    return tuple(_imported(path.read_text(), package))


@lru_cache
def _code(path: Path) -> bytes:
    """A file without its comments and docstrings: new prose compiles nothing anew."""
    return _PROSE.sub("", path.read_text()).encode()


@lru_cache
def _cache_directory(module: str) -> str:
    """Where a module's compiled kernels are kept: a folder named by all the source they were compiled from."""
    options = [(name, sorted(value) if isinstance(value, set) else value) for name, value in OPTIONS.items()]
    digest = hashlib.sha256(repr(options).encode())
    for path in sorted(_sources(module)):
        digest.update(str(path.relative_to(_ROOT)).encode() + b"\0" + _code(path) + b"\0")
    folder = _base() / f"{module.rpartition('.')[2]}-{digest.hexdigest()[:16]}"
    try:
        if folder.stat().st_mtime < time.time() - 86400.0:
            os.utime(folder)  # in use: `sweep` looks at this
    except OSError:
        pass  # not there yet, or not ours to touch
    return str(folder)


def _base() -> Path:
    if "NUMBA_CACHE_DIR" in os.environ:
        return Path(os.environ["NUMBA_CACHE_DIR"])
    return Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "markovfield"


def sweep(base: Path | None = None) -> list[Path]:
    """Remove folders of compiled kernels that nobody has used for a month; the ones removed."""
    old = time.time() - 86400.0 * KEPT_DAYS
    removed = []
    try:
        for folder in sorted((_base() if base is None else base).iterdir()):
            if _FOLDER.fullmatch(folder.name) and folder.is_dir() and folder.stat().st_mtime < old:
                shutil.rmtree(folder, ignore_errors=True)
                removed.append(folder)
    except OSError:
        pass  # another process sweeps too
    return removed


# Numba 0.60 and 0.61 have no setting for it: there, every checkout compiles for itself.
_Provided: Any = getattr(caching, "UserProvidedCacheLocator", None)
if _Provided is not None:

    class SharedLocator(_Provided):  # type: ignore[misc]
        """Finds compiled kernels by the content of their source, which the directory's name stands for."""

        @classmethod
        def get_suitable_cache_subpath(cls, py_file: str) -> str:
            """The same for every place that the source may lie at."""
            return "compiled"

        def get_source_stamp(self) -> str:
            """The content, which the directory's name tells already."""
            return "by content"

        def get_disambiguator(self) -> str:
            """Nothing: names are unique in a file, and lines move with the prose above them."""
            return "kernel"


class _Listener(event.Listener):  # type: ignore[misc]
    def on_start(self, what: Any) -> None:
        WATCH.begin(what.data["dispatcher"].py_func)

    def on_end(self, what: Any) -> None:
        WATCH.end()


event.register("numba:compile", _Listener())


@atexit.register
def _sweep_after_compiling() -> None:
    if WATCH.seconds():
        sweep()


def kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compile ``function`` with Numba: no GIL, cached on disk, no Python objects."""
    config: Any = numba.config
    usual = config.CACHE_DIR, getattr(config, "CACHE_LOCATOR_CLASSES", None)
    config.CACHE_DIR = _cache_directory(function.__module__)
    if _Provided is not None and usual[1] is not None:
        config.CACHE_LOCATOR_CLASSES = f"{__name__}.SharedLocator,InTreeCacheLocator,UserWideCacheLocator"
    try:
        compiled: Any = numba.njit(**OPTIONS)(function)
    finally:
        config.CACHE_DIR = usual[0]
        if usual[1] is not None:
            config.CACHE_LOCATOR_CLASSES = usual[1]
    return cast(Callable[P, R], compiled if config.DISABLE_JIT else interpretable(compiled))
