"""Raking: a table or a network moved to given margins, as little as possible (in relative entropy)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from markovfield._validation import number, whole_number
from markovfield.arrays import FloatArray, short_repr
from markovfield.exceptions import ModelError
from markovfield.frames import OneRow
from markovfield.inference.core.running import Running
from markovfield.learning.tables.fitting import MarginFit, fit_margins
from markovfield.models import MarkovNetwork
from markovfield.names import Names

__all__ = ["Raking", "rake"]

# Margins may differ by rounding, as a share of their total; tables up to this size are asked of a linear program.
ROUNDING = 1e-6
MOST_CELLS = 2**14

Margins = Mapping[Any, npt.ArrayLike] | Iterable[tuple[Any, npt.ArrayLike]]


@dataclass(frozen=True, eq=False, repr=False)
class Raking(OneRow):
    """What raking gave.

    Attributes
    ----------
    table
        ``float64[...]`` like the table given, with the margins asked for; None where a network was given.
    network
        The network given with one factor more for each margin; None where a table was given.
    converged, iterations, deviation
        Whether all margins are within the tolerance, after how many sweeps, and the largest difference left, as a share
        of the total.
    message
        A sentence about it.
    """

    table: FloatArray | None
    network: MarkovNetwork | None
    converged: bool
    iterations: int
    deviation: float
    message: str = ""

    _row = ("converged", "iterations", "deviation", "message")
    __repr__ = short_repr


def rake(
    start: Any,
    margins: Margins,
    *,
    tolerance: float = 1e-8,
    max_iterations: int = 10_000,
    time_limit: float | None = None,
) -> Raking:
    """Fit a table, or the distribution of a network, to given margins by iterative proportional fitting.

    The odds ratios of the start that no margin speaks of stay as they are; so do its zeros. Of all tables with these
    margins the answer is the one of least relative entropy to the start.

    Parameters
    ----------
    start
        An array of counts or weights, not negative, with one axis a variable; or a `MarkovNetwork` (or anything that
        compiles to a factor graph), whose joint table is never made.
    margins
        A dict, or pairs, from variables to a table: an axis number or a variable's name, or several of them in the
        order of the table's axes. For a network they are divided by their total.
    tolerance
        Largest difference of a margin, as a share of the total.
    max_iterations, time_limit
        Most sweeps, and seconds.

    Returns
    -------
    Raking

    Examples
    --------
    >>> import numpy as np
    >>> seed = np.array([[40.0, 30, 20, 10], [35, 50, 100, 75], [30, 80, 70, 120], [20, 30, 40, 50]])
    >>> raked = rake(seed, {0: [150, 300, 400, 150], 1: [200, 300, 400, 100]})
    >>> raked.table.round(2)[0].tolist(), raked.table.sum(axis=0).round(6).tolist()
    ([64.56, 46.23, 35.38, 3.82], [200.0, 300.0, 400.0, 100.0])
    """
    number(tolerance, "tolerance of rake", least=0)
    whole_number(max_iterations, "max_iterations of rake", 1)
    running = Running(time_limit=time_limit)
    if not hasattr(start, "compile"):
        return _rake_table(start, margins, tolerance, max_iterations, running)
    graph = start.compile().to_tables()
    s, given = graph.structure, start.compile().structure
    names, cards = given.names, [int(c) for c in s.cardinalities]
    scopes, tables, _ = _read(margins, names, [int(c) for c in given.cardinalities], shares=True)
    own = [tuple(s.scope(f).tolist()) for f in range(s.n_factors)]
    logs = [graph.table(f) for f in range(s.n_factors)]
    # Potentials of at most one; what that leaves out is taken off again below.
    tops = [float(t.max(initial=-np.inf)) if t.max(initial=-np.inf) > -np.inf else 0.0 for t in logs]
    factors = [np.exp(t - top) for t, top in zip(logs, tops, strict=True)]
    found = fit_margins(
        cards,
        [*own, *scopes],
        [*([None] * len(own)), *tables],
        starts=[*factors, *([None] * len(scopes))],
        tolerance=tolerance,
        max_iterations=max_iterations,
        running=running,
    )
    named = [[names.variables[v] for v in scope] for scope in scopes]
    _check_reached(found, scopes, names, tables, len(own))
    made = MarkovNetwork.from_factor_graph(start.compile())
    for i, (scope, log_factor) in enumerate(zip(named, found.log_factors[len(own) :], strict=True)):
        assert log_factor is not None
        made.add_factor(scope, log_table=log_factor - (sum(tops) if i == 0 else 0.0))
    return Raking(None, made, found.converged, len(found.deviations), _last(found), _said(found))


def _rake_table(
    start: npt.ArrayLike, margins: Margins, tolerance: float, max_iterations: int, running: Running
) -> Raking:
    try:
        table = np.array(start, np.float64)
    except (TypeError, ValueError) as error:
        raise ModelError(f"rake(start, margins) needs an array of numbers or a model: {error}") from error
    if not table.size or not np.isfinite(table).all() or table.min() < 0 or not table.any():
        raise ModelError("the table to rake must hold finite numbers, none negative and not all zero")
    names = Names(range(table.ndim))
    scopes, tables, total = _read(margins, names, list(table.shape))
    axes = tuple(range(table.ndim))
    found = fit_margins(
        table.shape,
        [axes, *scopes],
        [None, *tables],
        starts=[table, *([None] * len(scopes))],
        tolerance=tolerance,
        max_iterations=max_iterations,
        running=running,
    )
    _check_reached(found, scopes, names, tables, 1)
    if found.stalled and table.size <= MOST_CELLS and not _feasible(table > 0, scopes, tables):
        raise ModelError(
            f"no table with these zeros has these margins: after {len(found.deviations)} sweeps they are still "
            f"{_last(found) * total:.4g} of {total:.6g} apart"
        )
    made = table.copy()
    for scope, log_factor in zip(scopes, found.log_factors[1:], strict=True):
        assert log_factor is not None
        order = sorted(range(len(scope)), key=lambda i: scope[i])
        made *= np.exp(log_factor).transpose(order).reshape([table.shape[v] if v in scope else 1 for v in axes])
    made *= total
    return Raking(made, None, found.converged, len(found.deviations), _last(found), _said(found))


def _read(
    margins: Margins, names: Names, cards: Sequence[int], *, shares: bool = False
) -> tuple[list[tuple[int, ...]], list[FloatArray], float]:
    """Scopes by position, tables, and their total; margins that contradict each other are an error."""
    pairs = list(margins.items() if isinstance(margins, Mapping) else margins)
    if not pairs:
        raise ModelError("rake(start, margins) needs at least one margin")
    scopes, tables = [], []
    for variables, values in pairs:
        several = isinstance(variables, Iterable) and not isinstance(variables, str)
        scope = tuple(names.position(v) for v in (variables if several else [variables]))
        shape = tuple(cards[v] for v in scope)
        table = np.array(values, np.float64)
        if table.shape != shape or len(set(scope)) < len(scope):
            raise ModelError(f"the margin of {variables!r} needs a table of shape {shape}, got {table.shape}")
        if not np.isfinite(table).all() or table.min(initial=0) < 0 or not table.any():
            raise ModelError(f"the margin of {variables!r} must hold finite numbers, none negative and not all zero")
        scopes.append(scope)
        tables.append(table / table.sum() if shares else table)
    total = float(tables[0].sum())
    for j in range(1, len(scopes)):
        for i in range(j):
            _check_agreement((scopes[i], tables[i]), (scopes[j], tables[j]), names, total)
    return scopes, tables, total


def _check_agreement(
    first: tuple[tuple[int, ...], FloatArray], second: tuple[tuple[int, ...], FloatArray], names: Names, total: float
) -> None:
    common = [v for v in first[0] if v in second[0]]
    sums = []
    for scope, table in (first, second):
        kept = [v for v in scope if v in common]
        left = table.sum(axis=tuple(i for i, v in enumerate(scope) if v not in common))
        sums.append(np.asarray(left).transpose([kept.index(v) for v in common]))
    difference = np.abs(sums[0] - sums[1])
    worst = tuple(int(i) for i in np.unravel_index(int(difference.argmax()), difference.shape))
    if difference[worst] <= ROUNDING * total:
        return
    scopes = [[names.variables[v] for v in scope] for scope, _ in (first, second)]
    about = f"about {[names.variables[v] for v in common]!r} at {list(worst)!r}" if common else "about the total"
    raise ModelError(
        f"the margins of {scopes[0]!r} and {scopes[1]!r} disagree {about}: {sums[0][worst]:.8g} and "
        f"{sums[1][worst]:.8g}"
    )


def _check_reached(
    found: MarginFit, scopes: Sequence[Sequence[int]], names: Names, tables: Sequence[FloatArray], before: int
) -> None:
    """Raise where a margin shall be positive and no cell can make it so."""
    if found.unreachable is None:
        return
    g, cell = found.unreachable[0] - before, found.unreachable[1]
    # The cell is counted along rising axes.
    order = sorted(range(len(scopes[g])), key=lambda i: scopes[g][i])
    rising = np.unravel_index(cell, [tables[g].shape[i] for i in order])
    own = [int(rising[order.index(i)]) for i in range(len(order))]
    raise ModelError(
        f"the margin of {[names.variables[v] for v in scopes[g]]!r} at {own!r} shall be {tables[g][tuple(own)]:.6g}, "
        "but every cell there is zero in the start or by other margins"
    )


def _feasible(support: npt.NDArray[np.bool_], scopes: Sequence[Sequence[int]], tables: Sequence[FloatArray]) -> bool:
    """Whether any table with this support has these margins: a linear program."""
    from scipy.optimize import linprog
    from scipy.sparse import csr_array

    cells = np.argwhere(support)
    rows, wanted, start = [], [], 0
    for scope, table in zip(scopes, tables, strict=True):
        rows.append(start + np.ravel_multi_index(tuple(cells[:, v] for v in scope), table.shape))
        wanted.append(table.ravel() / table.sum())
        start += table.size
    columns = np.tile(np.arange(len(cells)), len(rows))
    design = csr_array((np.ones(len(columns)), (np.concatenate(rows), columns)), shape=(start, len(cells)))
    answer = linprog(np.zeros(len(cells)), A_eq=design, b_eq=np.concatenate(wanted), bounds=(0, None))
    return bool(answer.status != 2)


def _last(found: MarginFit) -> float:
    return float(found.deviations[-1]) if len(found.deviations) else math.nan


def _said(found: MarginFit) -> str:
    if found.stopped is not None:
        return f"stopped: {found.stopped}"
    if found.stalled:
        return "the margins no longer come nearer: with the zeros of the start they may contradict each other"
    return "" if found.converged else "the margins are not reached yet: allow more sweeps (max_iterations)"
