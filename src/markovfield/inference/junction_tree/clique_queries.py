"""Answers read off a propagated clique tree: joint tables, best and next best assignments, samples."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from markovfield.arrays import FloatArray
from markovfield.inference.junction_tree.propagate import Propagation
from markovfield.inference.junction_tree.queries_kernel import backtrack, draw, residual_table, second_best
from markovfield.kernels.interpreter import small

__all__ = ["best_assignments", "clique_holding", "draw_samples", "joint_of_clique"]

SAMPLE_BATCH = 2**22
TABLE_LIMIT = 2**22


def clique_holding(propagation: Propagation, variables: Sequence[int]) -> int | None:
    """The smallest clique that holds all the variables (reduced positions), or None."""
    lay = propagation.plan.layout
    count = np.zeros(propagation.plan.n_cliques, np.int64)
    owner = np.repeat(np.arange(len(count)), np.diff(lay.axis_offsets))
    for v in variables:
        count[owner[lay.axis_variable == v]] += 1
    holding = np.flatnonzero(count == len(variables))
    return int(holding[np.argmin(lay.size[holding])]) if len(holding) else None


def joint_of_clique(propagation: Propagation, clique: int, variables: Sequence[int]) -> FloatArray:
    """Joint distribution of some of a clique's variables, axes in the order asked."""
    lay = propagation.plan.layout
    axes = lay.axis_variable[lay.axis_offsets[clique] : lay.axis_offsets[clique + 1]].tolist()
    table = propagation.belief(clique)
    table = table.sum(axis=tuple(i for i, v in enumerate(axes) if v not in variables))
    kept = [v for v in axes if v in variables]
    return np.ascontiguousarray(table.transpose([kept.index(v) for v in variables]))


def _decoded_cliques(propagation: Propagation, decode: npt.NDArray[np.bool_] | None) -> npt.NDArray[np.bool_]:
    lay = propagation.plan.layout
    if decode is None:
        return np.ones(propagation.plan.n_cliques, np.bool_)
    return decode[lay.axis_variable[lay.axis_offsets[:-1]]]


def best_assignments(
    propagation: Propagation, n_best: int, decode: npt.NDArray[np.bool_] | None = None
) -> list[tuple[npt.NDArray[np.int64], float]]:
    """The best assignments (reduced states) and how far each falls below the best, in falling order of score.

    Lawler's partition over the cliques in preorder: having an assignment, the rest of its set is cut by the first
    clique that leaves its residual state. With the upward messages known, the best of each piece is local: what the
    clique loses against its message, since everything below is free again. Each further assignment costs one walk
    over the residual states.
    """
    with small(n_best * propagation.plan.operations):
        return _best_assignments(propagation, n_best, decode)


def _best_assignments(
    p: Propagation, n_best: int, decode: npt.NDArray[np.bool_] | None
) -> list[tuple[npt.NDArray[np.int64], float]]:
    lay = p.plan.layout
    cliques = _decoded_cliques(p, decode)
    shared = (p.pool, p.message, p.likelihood, p.active, p.needed)
    states = np.zeros(p.plan.structure.n_variables, np.int64)
    backtrack(lay, 0, cliques, *shared, states)
    found = [(states, 0.0)]
    heap: list[tuple[float, int, int, int, frozenset[int], float]] = []
    ticket = 0
    # What each assignment left behind: the clique it deviates at, what was excluded there, the loss above it.
    origin: list[tuple[int, frozenset[int], float]] = [(-1, frozenset(), 0.0)]
    while len(found) < n_best:
        parent = len(found) - 1
        states, loss = found[parent]
        clique, excluded, above = origin[parent]
        losses = np.full(p.plan.n_cliques, np.inf)
        second_best(lay, clique + 1, *shared, states, losses)
        losses[~cliques] = np.inf
        wanted = n_best - len(found)
        candidates = np.flatnonzero(np.isfinite(losses))
        if len(candidates) > wanted:
            candidates = candidates[np.argpartition(losses[candidates], wanted - 1)[:wanted]]
        for c in sorted(candidates.tolist()):
            taken = _residual_number(p, c, states)
            heapq.heappush(heap, (loss + float(losses[c]), ticket, parent, c, frozenset([taken]), loss))
            ticket += 1
        if clique >= 0:
            barred = excluded | {_residual_number(p, clique, states)}
            drop = _next_residual(p, clique, states, barred)[1]
            if np.isfinite(drop):
                heapq.heappush(heap, (above + drop, ticket, parent, clique, barred, above))
                ticket += 1
        if not heap:
            break
        total, _, source, clique, excluded, above = heapq.heappop(heap)
        fresh = found[source][0].copy()
        residual, _ = _next_residual(p, clique, fresh, excluded)
        _assign(p, clique, residual, fresh)
        backtrack(lay, clique + 1, cliques, *shared, fresh)
        found.append((fresh, total))
        origin.append((clique, excluded, above))
    return found


def _residual_axes(propagation: Propagation, clique: int) -> tuple[list[int], list[int]]:
    lay = propagation.plan.layout
    start = int(lay.axis_offsets[clique])
    stop = start + int(lay.n_residual[clique])
    return lay.axis_variable[start:stop].tolist(), lay.axis_card[start:stop].tolist()


def _residual_number(propagation: Propagation, clique: int, states: npt.NDArray[np.int64]) -> int:
    number = 0
    for v, card in zip(*_residual_axes(propagation, clique), strict=True):
        number = number * card + int(states[v])
    return number


def _assign(propagation: Propagation, clique: int, number: int, states: npt.NDArray[np.int64]) -> None:
    for v, card in reversed(list(zip(*_residual_axes(propagation, clique), strict=True))):
        number, states[v] = divmod(number, card)


def _next_residual(
    p: Propagation, clique: int, states: npt.NDArray[np.int64], excluded: frozenset[int]
) -> tuple[int, float]:
    """The best residual state of a clique that is not excluded, and what it loses against the best of all."""
    lay = p.plan.layout
    scores = np.empty(int(lay.size[clique] // lay.separator_size[clique]))
    residual_table(lay, clique, states, p.pool, p.message, p.likelihood, p.active, p.needed, scores)
    best = scores.max()
    scores[list(excluded)] = -np.inf
    choice = int(np.argmax(scores))
    return choice, float(best - scores[choice])


def draw_samples(propagation: Propagation, size: int, rng: np.random.Generator) -> npt.NDArray[Any]:
    """Independent samples (reduced states), ``int64[size, n]``."""
    p = propagation
    states = np.zeros((size, p.plan.structure.n_variables), np.int64)
    n = p.plan.n_cliques
    if not n:
        return states
    step = max(1, SAMPLE_BATCH // n)
    for start in range(0, size, step):
        part = states[start : start + step]
        uniforms = rng.random((len(part), n)).T.copy()
        with small(p.plan.operations + 10.0 * part.size):
            draw(
                p.plan.layout, uniforms, p.log_space, p.pool, p.problem.potentials.high, p.message, p.likelihood,
                p.active, p.needed, part, TABLE_LIMIT,
            )  # fmt: skip
    return states
