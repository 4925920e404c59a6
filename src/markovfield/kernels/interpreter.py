"""A kernel as plain Python, where compiling it would take far longer than the answer.

A first exact query compiles 160 functions, nearly a minute; on a network of fifty variables the same functions run as
plain Python in half a second. So who calls kernels says how much work there is (`small`), and a kernel that nobody has
compiled on this machine is then run as it stands: its code with every compiled callee replaced by that callee's code.
What Python spends this way is counted, and when it nears what compiling would have cost, kernels are compiled.

Plain Python must never answer anything else than compiled code does. Two things could differ. Numba computes with
integers of 64 bits where NumPy would keep the 32 of an array: an overflow is an error here. And Python raises where
compiled code goes on (division by zero). After any error the arrays are put back as they were, and the kernel is
compiled. Sums are added in another order, so results differ by rounding.
"""

from __future__ import annotations

import math
import os
import threading
import time
from collections.abc import Callable
from types import CellType, FunctionType, TracebackType
from typing import Any

import numpy as np

from markovfield import settings

__all__ = ["CELL", "either", "interpretable", "interpreted", "is_small", "small"]

STEPS = 1e7
"""The most work that is left to plain Python: operations of a clique tree, a tenth of a microsecond each."""
CELL = 50.0
"""Steps to look at one cell of a table by itself."""
SECONDS = 20.0
"""What plain Python may spend in a process before kernels are compiled: less than compiling them costs."""

_LOCAL = threading.local()
_PYTHON: dict[int, tuple[Any, Callable[..., Any]]] = {}
_NAMESPACES: dict[str, dict[str, Any]] = {}
_TWINS: dict[int, tuple[Any, Callable[..., Any]]] = {}
_spent = [0.0]


class small:
    """``with small(work):`` tells kernels called in it how many steps they have to do.

    Examples
    --------
    >>> from markovfield.kernels.interpreter import small
    >>> with small(1000):
    ...     pass
    """

    __slots__ = ("_before", "_work")

    def __init__(self, work: float) -> None:
        self._work = work

    def __enter__(self) -> None:
        self._before = getattr(_LOCAL, "work", math.inf)
        _LOCAL.work = self._work

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _LOCAL.work = self._before


def is_small() -> bool:
    """Whether who called has little work: too little for threads, too."""
    return getattr(_LOCAL, "work", math.inf) <= STEPS


def either(python: Callable[..., Any], make: Callable[[], Any]) -> Any:
    """What ``make`` gives in compiled code, ``python`` where kernels run as plain Python."""
    import numba  # textbook models are answered without it

    if numba.config.DISABLE_JIT:  # type: ignore[attr-defined]
        return python
    made = make()
    _PYTHON[id(made)] = (made, python)
    return made


def interpretable(compiled: Any) -> Any:
    """A dispatcher that looks, before it compiles for arguments it has not seen, whether plain Python would do."""
    compile_for = compiled._compile_for_args

    def choose(*arguments: Any, **keywords: Any) -> Any:
        if not is_small() or _spent[0] >= SECONDS or not settings.interpret_small_work or _on_disk(compiled):
            return compile_for(*arguments, **keywords)
        return lambda *again: _run(compiled, compile_for, again)

    compiled._compile_for_args = choose
    return compiled


def _on_disk(compiled: Any) -> bool:
    """Whether an earlier process has compiled a kernel; then loading it takes no time."""
    path = getattr(getattr(compiled._cache, "_cache_file", None), "_index_path", None)
    return path is None or os.path.exists(path)


def _run(compiled: Any, compile_for: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    started = time.thread_time()
    arrays = list(_arrays(arguments))
    before = [a.copy() for a in arrays]
    try:
        with np.errstate(over="raise", under="ignore", divide="ignore", invalid="ignore"):
            answer = interpreted(compiled)(*arguments)
    except Exception:
        for array, old in zip(arrays, before, strict=True):
            array[...] = old
        compile_for(*arguments)
        return compiled(*arguments)
    _spent[0] += time.thread_time() - started
    return answer


def _arrays(values: Any) -> Any:
    """The arrays that a kernel could write into, in nested tuples as well."""
    for value in values:
        if isinstance(value, np.ndarray):
            if value.flags.writeable:
                yield value
        elif isinstance(value, tuple):
            yield from _arrays(value)


def interpreted(compiled: Any) -> Callable[..., Any]:
    """The plain Python function of a kernel, calling the plain Python functions of all kernels below it."""
    if id(compiled) in _PYTHON:
        return _PYTHON[id(compiled)][1]
    if id(compiled) not in _TWINS:
        python = compiled.py_func
        closure = python.__closure__ and tuple(CellType(_plain(cell.cell_contents)) for cell in python.__closure__)
        twin = FunctionType(python.__code__, _namespace(python), python.__name__, python.__defaults__, closure or ())
        _TWINS[id(compiled)] = (compiled, twin)
    return _TWINS[id(compiled)][1]


def _namespace(python: Any) -> dict[str, Any]:
    """The globals of a kernel's module, with plain Python in place of what is compiled."""
    module: str = python.__module__
    if module not in _NAMESPACES:
        names = _NAMESPACES[module] = dict(python.__globals__)  # known before it is filled: kernels call each other
        for name, value in python.__globals__.items():
            names[name] = _plain(value)
    return _NAMESPACES[module]


def _plain(value: Any) -> Any:
    if value is math:
        return _MATH
    if id(value) in _PYTHON or (hasattr(value, "py_func") and hasattr(value, "_compile_for_args")):
        return interpreted(value)
    return value


class _Math:
    """``math`` as compiled code has it: logarithms of zero are -inf, and NumPy's integers are integers."""

    def __getattr__(self, name: str) -> Any:
        return getattr(math, name)

    @staticmethod
    def log(x: float) -> float:
        return math.log(x) if x != 0.0 else -math.inf

    @staticmethod
    def log2(x: float) -> float:
        return math.log2(x) if x != 0.0 else -math.inf

    @staticmethod
    def log1p(x: float) -> float:
        return math.log1p(x) if x != -1.0 else -math.inf

    @staticmethod
    def ldexp(x: float, exponent: int) -> float:
        return math.ldexp(x, int(exponent))


_MATH = _Math()
