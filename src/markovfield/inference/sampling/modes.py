"""Likely assignments, found by climbing from many places: where Markov chains start, and what they are held against."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from markovfield.arrays import FloatArray, States
from markovfield.exceptions import ImpossibleEvidenceError, ModelError
from markovfield.inference.problem.feasible import Feasible
from markovfield.inference.problem.problem import Problem
from markovfield.inference.sampling.starts import initial_states

__all__ = ["dispersed_states", "find_modes", "scores_of"]

# Random assignments that climb; with hard zeros each needs a search, so there are fewer.
CLIMBS, HARD_CLIMBS = 32, 8
# Factors whose best cells are starts of climbs, cells of each, and the most cells a factor may have for it.
BEST_FACTORS, BEST_CELLS, MOST_CELLS = 16, 3, 2**12
# Modes whose images (all states shifted or mirrored) climb too: symmetric models have their other modes there.
IMAGES = 8
# Axes of factors and variables beyond which nothing is searched: climbing would cost as much as sampling does.
MOST_AXES = 2**13
# Modes this far (a log) below the best weigh less than what some ten thousand draws can tell from nothing.
NEAR = 10.0
# Random starts that are tried in place of one that climbs to a mode of no weight.
TRIES = 8


def scores_of(problem: Problem, rows: npt.NDArray[np.integer[Any]]) -> FloatArray:
    """Sums of log-potentials and log-likelihoods of assignments ``int[rows, n]`` of a problem.

    Examples
    --------
    >>> import markovfield as mf
    >>> from markovfield.inference.core.evidence import Evidence
    >>> from markovfield.inference.problem.problem import prepare
    >>> net = mf.MarkovNetwork({"A": 2, "B": 2})
    >>> _ = net.add_factor(["A", "B"], log_table=[[1.0, 2.0], [3.0, 4.0]])
    >>> graph = net.compile()
    >>> problem = prepare(graph, Evidence.parse(graph.structure, {"B": [1.0, 1.0]}))
    >>> scores_of(problem, np.array([[0, 1], [1, 0]])).tolist()
    [2.0, 3.0]
    """
    s = problem.structure
    sums = np.zeros((len(rows), len(s.scopes) + 1), np.int64)
    np.cumsum(s.table_strides * rows[:, s.scopes], axis=1, out=sums[:, 1:])
    cells = s.table_offsets + sums[:, s.scope_offsets[1:]] - sums[:, s.scope_offsets[:-1]]
    total: FloatArray = problem.potentials.log_tables[cells].sum(axis=1)
    if len(problem.likelihood):
        total += problem.likelihood[s.value_offsets[:-1] + rows].sum(axis=1)
    return total


def _best_cells(problem: Problem, rng: np.random.Generator) -> States:
    """Random assignments that read one of the best cells of a strong factor: modes as narrow as a needle have one."""
    s, pool = problem.structure, problem.potentials
    arity = np.diff(s.scope_offsets)
    joint = np.flatnonzero(arity > 1)
    chosen = joint[np.argsort(pool.low[joint] - pool.high[joint], kind="stable")][:BEST_FACTORS]
    rows = []
    for f in chosen.tolist():
        scope, strides = s.scope(f), s.strides(f)
        shape = s.cardinalities[scope]
        if len(set(scope.tolist())) < len(scope) or float(np.prod(shape.astype(np.float64))) > MOST_CELLS:
            continue
        flat = np.array([s.table_offsets[f]])
        for card, stride in zip(shape.tolist(), strides.tolist(), strict=True):
            flat = (flat[:, None] + stride * np.arange(card)).ravel()
        for cell in np.argsort(-pool.log_tables[flat], kind="stable")[:BEST_CELLS].tolist():
            row = rng.integers(0, s.cardinalities)
            row[scope] = np.unravel_index(cell, shape)
            rows.append(row)
    return np.array(rows, np.int32).reshape(len(rows), s.n_variables)


def find_modes(
    problem: Problem, rng: np.random.Generator, visited: npt.NDArray[np.integer[Any]] | None = None
) -> tuple[States, FloatArray]:
    """Assignments that no change of one variable betters, ``int32[k, n]``, the best first, and their scores.

    Climbs start from random assignments, from the best cells of the strongest factors, from ``visited`` ones, and from
    the images of what they find when all states are shifted alike or mirrored. There are none where the problem is too
    large for this to be cheap. Nothing says that all modes are found.

    Examples
    --------
    >>> import markovfield as mf
    >>> from markovfield.inference.core.evidence import Evidence
    >>> from markovfield.inference.problem.problem import prepare
    >>> net = mf.MarkovNetwork(dict.fromkeys("ABC", 2))
    >>> _ = net.add_factors([("A", "B"), ("B", "C")], log_table=[[20.0, 0.0], [0.0, 21.0]])
    >>> graph = net.compile()
    >>> found, scores = find_modes(prepare(graph, Evidence.parse(graph.structure, None)), np.random.default_rng(0))
    >>> found.tolist(), scores.tolist()
    ([[1, 1, 1], [0, 0, 0]], [42.0, 40.0])
    """
    s = problem.structure
    nothing = np.zeros((0, s.n_variables), np.int32), np.zeros(0)
    if len(s.scopes) + s.n_variables > MOST_AXES:
        return nothing
    feasible = Feasible.of(problem)
    try:
        starts = initial_states(problem, HARD_CLIMBS if feasible.hard.any() else CLIMBS, rng)
    except (ModelError, ImpossibleEvidenceError):
        starts = rng.integers(0, s.cardinalities, (CLIMBS, s.n_variables)).astype(np.int32)
    given = [starts, _best_cells(problem, rng)] + ([] if visited is None else [visited])
    found, scores = _climbed(problem, feasible, np.concatenate(given))
    images = [s.cardinalities - 1 - found[:IMAGES]]
    images += [(found[:IMAGES] + k) % s.cardinalities for k in range(1, min(8, int(s.cardinalities.max(initial=1))))]
    more, more_scores = _climbed(problem, feasible, np.concatenate(images))
    found, first = np.unique(np.concatenate([found, more]), axis=0, return_index=True)
    scores = np.concatenate([scores, more_scores])[first]
    order = np.argsort(-scores, kind="stable")
    return found[order], scores[order]


def _climbed(problem: Problem, feasible: Feasible, rows: npt.NDArray[Any]) -> tuple[States, FloatArray]:
    """The modes above each row, without those that are ruled out."""
    rows = np.unique(rows.astype(np.int64), axis=0)
    tops = np.array([feasible.climbed(row) for row in rows], np.int32).reshape(rows.shape)
    tops = np.unique(tops, axis=0)
    scores = scores_of(problem, tops)
    possible = scores > -np.inf
    tops, scores = tops[possible], scores[possible]
    order = np.argsort(-scores, kind="stable")
    return tops[order], scores[order]


def dispersed_states(problem: Problem, n: int, rng: np.random.Generator) -> States:
    """``int32[n, variables]``: starts of Markov chains that are meant to disagree until they have mixed.

    Up to half of them (at least two) are modes of some weight, as far from each other as `find_modes` has them. The
    others are random, and from places from which a climb ends in a mode of some weight too: one that has none would
    hold a chain where it does not belong. Models too large for a search have random starts alone.

    Examples
    --------
    >>> import markovfield as mf
    >>> from markovfield.inference.core.evidence import Evidence
    >>> from markovfield.inference.problem.problem import prepare
    >>> net = mf.MarkovNetwork(dict.fromkeys("ABC", 2))
    >>> _ = net.add_factors([("A", "B"), ("B", "C")], log_table=[[20.0, 0.0], [0.0, 20.0]])
    >>> graph = net.compile()
    >>> problem = prepare(graph, Evidence.parse(graph.structure, None))
    >>> sorted(dispersed_states(problem, 2, np.random.default_rng(0)).tolist())
    [[0, 0, 0], [1, 1, 1]]
    """
    random = initial_states(problem, n, rng)
    found, scores = find_modes(problem, rng) if n > 1 else (random[:0], np.zeros(0))
    if not len(found):
        return random
    near = found[scores >= scores[0] - NEAR]
    cold = [0]
    apart = (near != near[0]).sum(axis=1)
    while len(cold) < min(max(2, n // 2), len(near)):
        cold.append(int(np.argmax(apart)))
        apart = np.minimum(apart, (near != near[cold[-1]]).sum(axis=1))
    random[: len(cold)] = near[cold]
    feasible = Feasible.of(problem)
    for c in range(len(cold), n):
        for _ in range(TRIES):
            if feasible.score(feasible.climbed(random[c].astype(np.int64))) >= scores[0] - NEAR:
                break
            random[c] = initial_states(problem, 1, rng)[0]
    return random
