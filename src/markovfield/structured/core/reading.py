"""Reading inputs and outputs: checks that name the example where something is wrong."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt

from markovfield.arrays import FloatArray, IntArray
from markovfield.exceptions import ModelError

__all__ = [
    "encoded_labels",
    "example_count",
    "feature_rows",
    "known_classes",
    "numbered_from",
    "pairs_of",
    "some_examples",
]


def example_count(X: Any, Y: Any = None) -> int:
    """How many examples there are; an error where X and Y do not have as many, or none."""
    try:
        n = X.shape[0] if hasattr(X, "shape") else len(X)
    except TypeError:
        raise ModelError(f"X must be a list of examples, got {type(X).__name__}") from None
    if isinstance(X, str | bytes | Mapping):
        raise ModelError(f"X must be a list of examples, got {type(X).__name__}")
    if n == 0:
        raise ModelError("X holds no examples")
    if Y is not None:
        try:
            m = Y.shape[0] if hasattr(Y, "shape") else len(Y)
        except TypeError:
            raise ModelError(f"y must be a list with an entry for each example, got {type(Y).__name__}") from None
        if m != n:
            raise ModelError(f"X has {n} examples and y has {m}")
    return int(n)


def some_examples(values: Any, part: slice) -> Any:
    """Some of the examples."""
    return values[part] if hasattr(values, "shape") or isinstance(values, list | tuple) else list(values)[part]


@contextmanager
def numbered_from(first: int) -> Iterator[None]:
    """Errors of a part of the examples, which begins with example ``first``, say the numbers these have among all."""
    try:
        yield
    except ModelError as error:
        if not first:
            raise
        told = re.sub(r"\b(example |images\[|labels\[)(\d+)", lambda m: f"{m[1]}{int(m[2]) + first}", str(error))
        raise ModelError(told) from None


def feature_rows(values: Any, index: int, what: str, n_features: int | None = None, n_rows: int | None = None) -> Any:
    """Features of one example as ``float64[rows, features]``, dense or sparse."""
    from scipy.sparse import csr_array, issparse

    array: Any
    try:
        array = csr_array(values, dtype=np.float64) if issparse(values) else np.asarray(values, np.float64)
    except (TypeError, ValueError):
        raise ModelError(f"example {index}: {what} must be numbers, a row for each") from None
    if array.ndim != 2:
        raise ModelError(f"example {index}: {what} must be a matrix, a row for each, got shape {array.shape}")
    if n_rows is not None and array.shape[0] != n_rows:
        raise ModelError(f"example {index}: {what} must have {n_rows} rows, got {array.shape[0]}")
    if n_features is not None and array.shape[1] != n_features:
        raise ModelError(f"example {index}: {what} must have {n_features} columns as in training, got {array.shape[1]}")
    finite = np.isfinite(array.data if issparse(array) else array)
    if not finite.all():
        raise ModelError(f"example {index}: {what} must be finite, and {int((~finite).sum())} are not")
    return array


def pairs_of(edges: Any, n_nodes: int, index: int, what: str = "edges") -> IntArray:
    """Edges of one example as ``int64[m, 2]``, within its nodes."""
    array = np.asarray(edges)
    if array.size == 0:
        return np.zeros((0, 2), np.int64)
    if array.dtype.kind not in "iu" or array.ndim != 2 or array.shape[1] != 2:
        raise ModelError(
            f"example {index}: {what} must be pairs of node numbers, int[m, 2], "
            f"got shape {array.shape} of {array.dtype}"
        )
    array = array.astype(np.int64)
    bad = np.flatnonzero(((array < 0) | (array >= n_nodes)).any(axis=1))
    if len(bad):
        raise ModelError(
            f"example {index}: {what}[{bad[0]}] = {array[bad[0]].tolist()} is out of range: there are {n_nodes} nodes"
        )
    loops = np.flatnonzero(array[:, 0] == array[:, 1])
    if len(loops):
        raise ModelError(f"example {index}: {what}[{loops[0]}] joins node {int(array[loops[0], 0])} to itself")
    return array


def _flat(y: Any, index: int) -> npt.NDArray[Any]:
    """Labels of one example as a vector of objects or of their own type."""
    try:
        array = np.asarray(y)
    except ValueError:
        raise ModelError(f"example {index}: labels must be a list, a label for each variable") from None
    if array.dtype.kind == "U" and isinstance(y, list | tuple) and not all(isinstance(label, str) for label in y):
        array = np.asarray(y, object)  # numbers beside texts stay numbers
    if array.dtype.kind not in "biufUSO":
        raise ModelError(f"example {index}: labels must be numbers or text, got {array.dtype}")
    return array.ravel()


def known_classes(Y: Any, unknown: Any = None) -> tuple[Any, ...]:
    """The labels that occur in outputs, sorted, None and ``unknown`` left out; at least two."""
    found: set[Any] = set()
    for i, y in enumerate(Y):
        flat = _flat(y, i)
        if flat.dtype.kind == "f":
            if not np.isfinite(flat).all():
                bad = "nan" if np.isnan(flat).any() else "infinite"
                raise ModelError(f"example {i}: a label is {bad}; write None for a label that is not known")
            if (flat == np.round(flat)).all():
                flat = flat.astype(np.int64)
        found |= set(flat.tolist() if flat.dtype.kind == "O" else np.unique(flat).tolist())
    found -= {None, unknown}
    if len(found) < 2:
        seen = f"only {next(iter(found))!r}" if found else "none"
        raise ModelError(f"there must be at least two different labels to tell apart; y has {seen}")
    try:
        return tuple(sorted(found))
    except TypeError:
        return tuple(sorted(found, key=lambda label: (type(label).__name__, str(label))))


def encoded_labels(Y: Any, lengths: IntArray, classes: Sequence[Any], unknown: Any = None) -> npt.NDArray[np.int32]:
    """Labels of all examples as states, -1 for None and ``unknown``."""
    position = {label: i for i, label in enumerate(classes)} | {None: -1, unknown: -1}
    parts: list[FloatArray | IntArray] = []
    for i, (y, length) in enumerate(zip(Y, np.asarray(lengths).tolist(), strict=True)):
        flat = _flat(y, i)
        if len(flat) != length:
            raise ModelError(f"example {i}: there are {length} variables and {len(flat)} labels")
        try:
            if flat.dtype.kind == "O":
                states = np.array([position[label] for label in flat.tolist()], np.int64)
            else:
                own, where = np.unique(flat, return_inverse=True)
                states = np.array([position[label] for label in own.tolist()], np.int64)[where.ravel()]
        except (KeyError, TypeError):
            new = next(label for label in flat.tolist() if label not in position)
            raise ModelError(f"example {i}: label {new!r} was not seen in training") from None
        parts.append(states)
    return np.concatenate([np.zeros(0, np.int64), *parts]).astype(np.int32)
