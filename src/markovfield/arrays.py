"""Types of the arrays that go around, one alias each; and objects whose arrays nobody may change."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

__all__ = [
    "BoolArray",
    "FloatArray",
    "Frozen",
    "IntArray",
    "States",
    "distinct_rows",
    "log_sum",
    "offsets_of",
    "sealed",
    "short_repr",
]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]
States = npt.NDArray[np.int32]


class Frozen:
    """A dataclass of arrays that nobody may write through, which is so of its copies too: pickle would forget it.

    (To a compiler, an array that may be written is another type: a kernel would be compiled anew for a copy.)
    What is kept in a field named ``cache`` or ``_cache`` is not pickled; nor is what is not a field.
    """

    def __getstate__(self) -> dict[str, Any]:
        kept = (f.name for f in fields(self) if f.name not in _CACHES)  # type: ignore[arg-type]
        return {name: getattr(self, name) for name in kept}

    def __setstate__(self, state: dict[str, Any]) -> None:
        _freeze(tuple(state.values()))
        empty = {f.name: {} for f in fields(self) if f.name in _CACHES}  # type: ignore[arg-type, var-annotated]
        self.__dict__.update(state | empty)


_CACHES = ("cache", "_cache")


def _freeze(values: tuple[Any, ...]) -> None:
    for value in values:
        if isinstance(value, np.ndarray):
            value.flags.writeable = False
        elif type(value) is tuple:
            _freeze(value)


def offsets_of(lengths: npt.ArrayLike) -> IntArray:
    """``int64[n + 1]``: where stretches of these lengths begin that follow each other, and where the last one ends.

    Examples
    --------
    >>> offsets_of([2, 0, 3]).tolist()
    [0, 2, 2, 5]
    """
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths, dtype=np.int64)])


A = TypeVar("A", bound=npt.NDArray[Any])


def sealed(array: A) -> A:
    """The same array, which nobody can write through any more."""
    array.flags.writeable = False
    return array


def log_sum(values: FloatArray, axis: int | tuple[int, ...]) -> FloatArray:
    """log of the sum of exponentials along axes, without overflow; -inf where all are.

    Examples
    --------
    >>> log_sum(np.array([[0.0, np.log(2.0)], [-np.inf, -np.inf]]), 1).round(4).tolist()
    [1.0986, -inf]
    """
    most = np.max(values, axis=axis, keepdims=True)
    safe = np.where(np.isfinite(most), most, 0.0)
    with np.errstate(divide="ignore"):
        found = np.log(np.sum(np.exp(values - safe), axis=axis))
    return np.asarray(found + np.squeeze(safe, axis=axis))


def distinct_rows(*columns: npt.NDArray[Any]) -> tuple[IntArray, IntArray]:
    """Of rows given as columns: one place of each distinct row, in lexical order, and which of them every row is.

    `numpy.unique` of a matrix does the same, many times slower.

    Examples
    --------
    >>> first, which = distinct_rows(np.array([2, 1, 2]), np.array([0, 5, 0]))
    >>> first.tolist(), which.tolist()
    ([1, 0], [1, 0, 1])
    """
    order = np.lexsort(columns[::-1])
    new = np.zeros(len(order), np.bool_)
    new[:1] = True
    for column in columns:
        new[1:] |= column[order[1:]] != column[order[:-1]]
    which = np.empty(len(order), np.int64)
    which[order] = np.cumsum(new) - 1
    return order[new], which


def short_repr(thing: Any) -> str:
    """The repr of a dataclass or a named tuple in which larger arrays are their type and shape.

    Examples
    --------
    >>> from typing import NamedTuple
    >>> class Picture(NamedTuple):
    ...     pixels: Any
    ...     name: str
    ...     __repr__ = short_repr
    >>> Picture(np.zeros((20, 30)), "grey")
    Picture(pixels=float64[20, 30], name='grey')
    """
    names = thing._fields if hasattr(thing, "_fields") else [f.name for f in fields(thing) if f.repr]
    return f"{type(thing).__name__}({', '.join(f'{name}={_shown(getattr(thing, name))}' for name in names)})"


def _shown(value: Any) -> str:
    if isinstance(value, np.ndarray) and value.size > 8:
        return f"{value.dtype}{list(value.shape)}"
    if isinstance(value, np.ndarray):
        text = repr(value.tolist())
        return text if len(text) <= 60 else f"{value.dtype}{list(value.shape)}"
    if isinstance(value, (tuple, list)) and any(isinstance(x, np.ndarray) for x in value):
        return f"{len(value)} x {_shown(value[0])}"
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
