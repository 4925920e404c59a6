"""Joint counts of families of variables, the sufficient statistics of everything learned from complete data."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from markovfield.arrays import FloatArray
from markovfield.exceptions import MemoryLimitError, ModelError
from markovfield.inference.core.limits import format_bytes, memory_limit_bytes
from markovfield.inference.core.running import Running
from markovfield.learning.core.data import DataTable

__all__ = ["family_counts"]


STEP_CELLS = 2**24
"""Cells of data read in one task; at about 1 ns each this keeps the time between two looks at the clock short."""


def _check_families(table: DataTable, families: Sequence[Sequence[int]]) -> None:
    cells = 0
    for family in families:
        if len(set(family)) != len(family) or not all(0 <= v < table.n_variables for v in family):
            raise ModelError(
                f"a family is distinct positions from 0 to {table.n_variables - 1}, got {list(map(int, family))}"
            )
        size = math.prod(len(table.states[v]) for v in family)
        cells += size
        if size >= 2**31 or cells * 8 > memory_limit_bytes(None):
            names = [table.variables[v] for v in family]
            raise MemoryLimitError(
                f"the joint counts of {names!r} need {format_bytes(math.log2(8 * cells))}, "
                f"more than the limit of {format_bytes(math.log2(memory_limit_bytes(None)))}"
            )


def family_counts(
    table: DataTable,
    families: Sequence[Sequence[int]],
    *,
    n_jobs: int | None = None,
    running: Running | None = None,
) -> list[FloatArray]:
    """How often the variables of each family take each of their joint states.

    Parameters
    ----------
    table
        The data; a row with a missing member is left out of that family's counts.
    families
        Positions of the variables of each family, in axis order.
    n_jobs
        Threads; None is all cores. The counts do not depend on it, to the last bit.
    running
        Time limit and callback of a longer computation that this is a part of; it then rules the threads too.

    Returns
    -------
    list of ndarray
        ``float64[cardinalities of the family]``: entry [i, j, ...] is the (weighted) number of rows. Time is about
        1 ns for each row and member, memory that of the tables.

    Examples
    --------
    >>> from markovfield.learning.core.data import encode
    >>> table = encode({"A": [0, 1, 1, 1], "B": ["x", "x", "y", None]})
    >>> [counts.tolist() for counts in family_counts(table, [[0], [0, 1]])]
    [[1.0, 3.0], [[1.0, 0.0], [1.0, 1.0]]]
    """
    from markovfield.learning.core.counting_kernel import count_families

    _check_families(table, families)
    running = Running(n_jobs=n_jobs) if running is None else running
    shapes = [tuple(len(table.states[v]) for v in family) for family in families]
    sizes = [math.prod(shape) for shape in shapes]
    cards = table.cardinalities
    weights = np.zeros(0) if table.weights is None else table.weights.view()
    # The kernel is compiled for read-only codes and weights; an empty array must look the same.
    weights.flags.writeable = False
    outs = [np.zeros(sum(sizes[f] for f in group)) for group in _groups(table, families)]
    rows = max(1, min(table.n_rows, 2**20))
    for first in range(0, table.n_rows, rows):
        last = min(first + rows, table.n_rows)
        tasks: list[Callable[[], int]] = []
        for group, out in zip(_groups(table, families), outs, strict=True):
            tasks.append(_task(count_families, table, weights, cards, families, sizes, group, first, last, out))
        running.side_by_side(tasks)
    result: list[FloatArray] = []
    for group, out in zip(_groups(table, families), outs, strict=True):
        start = 0
        for f in group:
            result.append(out[start : start + sizes[f]].reshape(shapes[f]))
            start += sizes[f]
    return result


def _groups(table: DataTable, families: Sequence[Sequence[int]]) -> list[range]:
    """Runs of families of about `STEP_CELLS` cells of data: a cut that does not depend on the number of threads."""
    rows = max(1, min(table.n_rows, 2**20))
    limit = max(1, min(STEP_CELLS, rows * sum(len(f) + 1 for f in families) // 8))
    groups, first, cost = [], 0, 0
    for f, family in enumerate(families):
        cost += rows * (len(family) + 1)
        if cost >= limit:
            groups.append(range(first, f + 1))
            first, cost = f + 1, 0
    if first < len(families):
        groups.append(range(first, len(families)))
    return groups


def _task(
    count: Any,
    table: DataTable,
    weights: FloatArray,
    cards: npt.NDArray[np.int32],
    families: Sequence[Sequence[int]],
    sizes: Sequence[int],
    group: range,
    first: int,
    last: int,
    out: FloatArray,
) -> Callable[[], int]:
    offsets = np.cumsum([0, *(len(families[f]) for f in group)], dtype=np.int64)
    members = np.array([v for f in group for v in families[f]], np.int32)
    tables = np.cumsum([0, *(sizes[f] for f in group)], dtype=np.int64)

    def run() -> int:
        count(table.codes, weights, cards, offsets, members, tables, first, last, out)
        return 0

    return run
