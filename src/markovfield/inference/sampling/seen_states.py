"""A check that Markov chains found where the weight is: assignments come up as often as their scores ask for."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from markovfield.arrays import FloatArray
from markovfield.inference.core.diagnostics import error_floor
from markovfield.inference.problem.problem import Problem
from markovfield.inference.sampling.modes import find_modes, scores_of
from markovfield.inference.sampling.reachability_kernel import hard_components

__all__ = ["PARTS", "SEEN_ROWS", "covered_weight", "missed_by_weighted", "missed_weight", "weigh_seen"]

Rows = npt.NDArray[np.integer[Any]]
# Rows that are looked at, and entries of all of them (axes that they read) up to which they are.
SEEN_ROWS, MOST_READ = 4096, 2**21
# Rows that climb, and modes whose neighbours are weighed too.
CLIMBING_ROWS, NEIGHBOURS = 32, 16
# Parts that independent rows are cut into, to see how much of what one has the others have.
PARTS = 4
# Connected components up to which each is looked at by itself.
MOST_COMPONENTS = 16
# Standard errors that an estimate may be off before it is said to be.
ALLOWED = 5.0


def weigh_seen(problem: Problem, rows: Rows, rng: np.random.Generator) -> tuple[Rows, FloatArray]:
    """Different assignments, of the rows and of a search, and their scores."""
    s = problem.structure
    pick = np.unique(np.linspace(0, len(rows) - 1, CLIMBING_ROWS).astype(np.int64))
    modes, _ = find_modes(problem, rng, rows[pick])
    parts = [rows, modes]
    others = s.cardinalities - 1
    variable = np.repeat(np.arange(s.n_variables), others)
    step = 1 + np.arange(len(variable)) - np.repeat(np.cumsum(others) - others, others)
    most = MOST_READ // max(1, len(variable) * (len(s.scopes) + s.n_variables))
    for mode in modes[: min(NEIGHBOURS, most)]:
        beside = np.repeat(mode[None], len(variable), axis=0)
        beside[np.arange(len(variable)), variable] = (mode[variable] + step) % s.cardinalities[variable]
        parts.append(beside)
    every = np.unique(np.concatenate(parts).astype(np.int64), axis=0)
    scores = scores_of(problem, every)
    return every[scores > -np.inf], scores[scores > -np.inf]


def covered_weight(rows: Rows, group: npt.NDArray[np.int64], weights: FloatArray) -> float:
    """A cautious estimate of the probability of all assignments seen: how much of each group the others have seen.

    Groups must be independent, as Markov chains are. Where they have not mixed, each has assignments of its own, and
    the answer is small; where there are very many assignments, it is near zero, and nothing can be said.
    """
    _, index = np.unique(rows, axis=0, return_inverse=True)
    index = np.ravel(index)
    n = int(group.max()) + 1
    seen = np.zeros((n, int(index.max()) + 1), np.bool_)
    seen[group, index] = True
    elsewhere = seen.sum(axis=0)[index] > 1
    share = np.bincount(group, weights * elsewhere, n) / np.maximum(np.bincount(group, weights, n), 1e-300)
    middle = float(share.mean())
    # What groups differ by, of which there are few, and what as many independent draws would.
    spread = max(5 * float(share.std(ddof=1)) / np.sqrt(n), 4 * np.sqrt((1 - middle) / len(rows)))
    return max(0.0, middle - spread - 4.0 / len(rows))


def _components(problem: Problem) -> list[npt.NDArray[np.int64]]:
    """The free variables of each connected component, if there are few: independent ones are better looked at alone."""
    s = problem.structure
    component = hard_components(s.scope_offsets, s.scopes, np.ones(s.n_factors, np.bool_), s.n_variables)
    free = np.flatnonzero(s.cardinalities > 1)
    labels = np.unique(component[free])
    return [free[component[free] == label] for label in labels] if len(labels) <= MOST_COMPONENTS else [free]


def _bounds(
    problem: Problem,
    members: npt.NDArray[np.int64],
    rows: Rows,
    every: Rows,
    group: npt.NDArray[np.int64],
    weights: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """Bounds on the marginals of a component's variables, by what its assignments weigh; over the problem's states."""
    s = problem.structure
    n_values = int(s.value_offsets[-1])
    covered = covered_weight(rows[:, members], group, weights)
    if covered <= 0.0:
        return np.zeros(n_values), np.ones(n_values)
    # The others stay as they are in one assignment: they add the same to all scores.
    different = np.unique(every[:, members], axis=0)
    whole = np.repeat(rows[[int(weights.argmax())]].astype(np.int64), len(different), axis=0)
    whole[:, members] = different
    scores = scores_of(problem, whole)
    if scores.max() == -np.inf:
        # None of what was seen is possible, and nothing can be told from it.
        return np.zeros(n_values), np.ones(n_values)
    probability = np.exp(scores - scores.max())
    probability /= probability.sum()
    share = _shares(problem, whole, probability)
    return covered * share, 1.0 - covered * (1.0 - share)


def _shares(problem: Problem, rows: Rows, weights: FloatArray) -> FloatArray:
    """What the rows with each state of each variable weigh together."""
    s = problem.structure
    places, each = (s.value_offsets[:-1] + rows).ravel(), np.repeat(weights, s.n_variables)
    return np.bincount(places, each, int(s.value_offsets[-1])).astype(np.float64)


def missed_by_weighted(
    problem: Problem,
    rows: Rows,
    weights: FloatArray,
    rng: np.random.Generator,
    values: FloatArray | None = None,
    errors: FloatArray | None = None,
) -> str:
    """`missed_weight` of independent rows with weights that add up to one, cut into a few parts.

    ``values`` and ``errors`` are weighted frequencies and their standard errors where None.
    """
    if values is None or errors is None:
        values, squares = (_shares(problem, rows, w) for w in (weights, weights**2))
        total = float(np.square(weights).sum())
        variance = squares * (1 - values) ** 2 + (total - squares) * values**2
        errors = np.maximum(np.sqrt(np.maximum(variance, 0.0)), error_floor(1.0 / total))
    kept = slice(None, SEEN_ROWS)
    group = np.arange(len(rows))[kept] * PARTS // len(rows[kept])
    return missed_weight(problem, rows[kept], group, values, errors, rng, weights[kept])


def missed_weight(
    problem: Problem,
    rows: Rows,
    group: npt.NDArray[np.int64],
    values: FloatArray,
    errors: FloatArray,
    rng: np.random.Generator,
    weights: FloatArray | None = None,
) -> str:
    """What is wrong with estimates of a problem's marginals, in a sentence, by the scores of assignments seen.

    Scores say how much two assignments weigh beside each other, exactly. Where the assignments seen have nearly all the
    probability (`covered_weight`), their weights bound every marginal; so do modes that a search finds and the sampler
    did not. An estimate outside of these bounds by more than its standard errors is wrong. Connected components are
    looked at one by one. Models with very many likely assignments pass: there, one assignment seen says nothing of
    another.

    Parameters
    ----------
    rows, group, weights
        Assignments, the Markov chain (or other independent part) each is of, and what each weighs.
    values, errors
        Estimated probabilities of all states of the problem, and their standard errors.
    """
    s = problem.structure
    if len(rows) < 2 or not len(values) or group.max() < 1 or len(s.scopes) * len(rows) > MOST_READ:
        return ""
    weights = np.ones(len(rows)) if weights is None else weights
    low, high = np.zeros(len(values)), np.ones(len(values))
    every, _ = weigh_seen(problem, rows, rng)
    for members in _components(problem):
        places = np.repeat(np.isin(np.arange(s.n_variables), members), s.cardinalities)
        found = _bounds(problem, members, rows, every, group, weights)
        low[places], high[places] = found[0][places], found[1][places]
    with np.errstate(invalid="ignore"):
        short, over = low - values - ALLOWED * errors, values - high - ALLOWED * errors
    off = np.maximum(short, over)
    at = int(np.nanargmax(off)) if not np.isnan(off).all() else 0
    if not off[at] > 1e-9:
        return ""
    v = int(np.searchsorted(s.value_offsets, at, "right")) - 1
    where = "a state of an auxiliary variable"
    if v < problem.graph.n_variables:
        kept = problem.states(np.where(np.arange(s.n_variables) == v, at - s.value_offsets[v], 0))
        names = problem.graph.names
        card = int(problem.graph.structure.cardinalities[v])
        where = f"{names.variables[v]!r} = {names.state_names(v, card)[int(kept[v])]!r}"
    side, bound = ("at least", low[at]) if short[at] > over[at] else ("at most", high[at])
    return (
        f"likely assignments did not come up as often as their scores ask for: {where} has a probability of "
        f"{side} {bound:.4g}, and the estimate is {values[at]:.4g} with a standard error of {errors[at]:.2g}"
    )
