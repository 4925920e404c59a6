"""Newton's method for the precision on a given graph, its steps by conjugate gradients on the entries that are free."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from markovfield.arrays import FloatArray, IntArray
from markovfield.inference.core.running import Running
from markovfield.learning.gaussian.conjugate_gradients import conjugate_gradients
from markovfield.learning.gaussian.lasso_kernel import pattern
from markovfield.learning.gaussian.lasso_solver import cholesky, inverse_of

__all__ = ["maximise", "newton_on_graph"]

SUFFICIENT = 1e-3
SHORTEST = 2.0**-30
ROUNDING = 1e-13


def newton_on_graph(
    s: FloatArray,
    edges: IntArray,
    *,
    start: FloatArray | None = None,
    tolerance: float = 1e-12,
    max_iterations: int = 100,
    running: Running | None = None,
) -> tuple[FloatArray, int, bool, list[float]]:
    """Minimise ``-log det X + tr(S X)`` over matrices X with entries on the diagonal and on ``edges``, ``int64[m, 2]``.

    Ends when the squared Newton decrement, about twice what the objective still lacks, is at most the tolerance.
    Returns the precision, the steps made, whether they ended, and minus half the objective after each. Where there is
    no minimum, X grows without bound and the steps do not end. A product with the Hessian takes about 2 n (n + 2 m)
    operations, a step some dozens of them and the n^3 of two factorisations.
    """
    n = len(s)
    pairs = np.sort(np.asarray(edges, np.int64).reshape(-1, 2), axis=1)
    own = np.arange(n)
    rows, columns = np.concatenate([own, pairs[:, 0]]), np.concatenate([own, pairs[:, 1]])
    order = np.lexsort((columns, rows))
    size = n + 2 * len(pairs)
    starts, every, twins = np.empty(n + 1, np.int64), np.empty(size, np.int64), np.empty(size, np.int64)
    pattern(rows[order].astype(np.int32), columns[order].astype(np.int32), len(order), starts, every, twins)
    at = np.repeat(own, np.diff(starts)), every
    upper = np.where(at[0] <= at[1], np.arange(size), twins)
    x = np.diag(1 / np.diag(s)) if start is None else start.copy()
    factor = cholesky(x)
    if factor is None:
        x = np.diag(1 / np.diag(s))
        factor = np.sqrt(x)
    there, history, before = s[at][upper], [], math.inf
    value = _value(factor, there, x[at])
    for turn in range(max_iterations):
        w = inverse_of(factor)
        history.append(-0.5 * value)
        if running is not None:
            running.check(history[-1])
        d = conjugate_gradients(w, w[at] - there, at, (starts, every, twins))[upper]
        decrement = float((w[at] - there) @ d)
        # Below rounding steps are taken on trust, as long as they come nearer.
        if decrement <= tolerance or (decrement <= ROUNDING and decrement > 0.1 * before):
            return x, turn, True, history
        before = decrement
        moved = _moved(x, at, d, value, decrement, there)
        if moved is None:
            return x, turn, False, history
        factor, value = moved
    return x, max_iterations, False, history


def _value(factor: FloatArray, s: FloatArray, x: FloatArray) -> float:
    return -2 * float(np.log(np.diag(factor)).sum()) + float(s @ x)


def _moved(
    x: FloatArray, at: Any, d: FloatArray, value: float, decrement: float, s: FloatArray
) -> tuple[FloatArray, float] | None:
    """Take the step, shortened until the objective falls enough: the new factor and objective, or None."""
    old = x[at]
    # The length that is safe for any self-concordant function, halved towards where one is too long.
    length = 1.0
    while length >= SHORTEST:
        x[at] = old + length * d
        factor = cholesky(x)
        if factor is not None:
            new = _value(factor, s, x[at])
            if new <= value - SUFFICIENT * length * decrement + ROUNDING * max(1.0, abs(value)):
                return factor, new
        length /= 2
    x[at] = old
    return None


def maximise(s: FloatArray, graph: Any, tolerance: float, most: int, running: Running | None) -> Any:
    """The same for a networkx graph of positions, each connected component by itself."""
    import networkx as nx

    n = len(s)
    x = np.zeros((n, n))
    iterations, converged, history = 1, True, []
    for component in nx.connected_components(graph):
        block = np.array(sorted(component), np.int64)
        if len(block) == 1:
            x[block[0], block[0]] = 1 / s[block[0], block[0]]
            continue
        place = {v: k for k, v in enumerate(block.tolist())}
        edges = np.array([(place[a], place[b]) for a, b in graph.subgraph(component).edges()], np.int64)
        part = np.ascontiguousarray(s[np.ix_(block, block)])
        found, steps, ended, values = newton_on_graph(
            part, edges, tolerance=tolerance, max_iterations=most, running=running
        )
        x[np.ix_(block, block)] = found
        iterations, converged = max(iterations, steps), converged and ended
        history = values if len(block) == n else []
    return x, iterations, converged, history
