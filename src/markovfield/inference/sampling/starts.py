"""First states of Markov chains: scattered, and free of hard zeros."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from markovfield.arrays import States
from markovfield.exceptions import ImpossibleEvidenceError, ModelError
from markovfield.inference.core.evidence import Evidence
from markovfield.inference.core.running import Running
from markovfield.inference.problem.feasible import BUDGET, Feasible
from markovfield.inference.problem.problem import Problem

__all__ = ["initial_states", "reduced_rows"]

# Rows drawn forward in the hope that some meet the evidence.
TRIES = 1024


def initial_states(problem: Problem, n: int, rng: np.random.Generator) -> States:
    """``int32[n, variables]``: random starts free of hard zeros, scattered so that Markov chains can disagree.

    Without hard zeros every state is as likely as any other. With them, a search prefers states at random and keeps
    domains consistent; where it gives up, directed models are drawn parents first until the evidence is met. Where that
    fails too a `ModelError` says so, and where the search proves that there is no assignment, an
    `ImpossibleEvidenceError`. The problem must be prepared with its zeros propagated, those of likelihoods too.

    Examples
    --------
    >>> import markovfield as mf
    >>> from markovfield.inference.problem.problem import prepare
    >>> from markovfield.inference.core.evidence import Evidence
    >>> net = mf.MarkovNetwork({"A": 2, "B": 2})
    >>> _ = net.add_factor(["A", "B"], [[1.0, 0.0], [0.0, 1.0]])
    >>> graph = net.compile()
    >>> problem = prepare(graph, Evidence.parse(graph.structure, None))
    >>> np.unique(initial_states(problem, 20, np.random.default_rng(0)), axis=0).tolist()
    [[0, 0], [1, 1]]
    """
    s = problem.structure
    if np.isneginf(problem.likelihood).any():
        raise ModelError("a likelihood of zero rules a state out: prepare the problem with propagate_zeros")
    feasible = Feasible.of(problem)
    states = np.empty((n, s.n_variables), np.int32)
    if not feasible.hard.any():
        for row in states:
            row[:] = rng.random(s.n_variables) * s.cardinalities
        return states
    for row in states:
        found = feasible.assignment(rng.random(int(s.value_offsets[-1])))
        if found is None:
            forward = _forward_starts(problem, feasible, n, rng)
            if forward is not None:
                return forward
            raise ModelError(
                f"no start free of hard zeros was found in {BUDGET} steps back, so no chain can begin: "
                "use junction_tree"
            )
        row[:] = found
    return states


def reduced_rows(problem: Problem, rows: npt.NDArray[np.int32]) -> States:
    """Rows of the graph of tables's states as those of the reduced problem; -1 for a state that was ruled out."""
    if problem.reduced is None:
        return rows
    s, full = problem.structure, problem.as_tables.structure.value_offsets
    place = np.full(int(full[-1]), -1, np.int32)
    at = np.repeat(full[:-1], s.cardinalities) + problem.reduced.states
    place[at] = np.arange(len(at)) - np.repeat(s.value_offsets[:-1], s.cardinalities)
    return place[full[:-1] + rows]


def _forward_starts(problem: Problem, feasible: Feasible, n: int, rng: np.random.Generator) -> States | None:
    """Starts of a directed model, drawn parents before children; None where it is none or no row meets the evidence."""
    from markovfield.inference.sampling.forward import draw_weighted

    as_tables = problem.as_tables
    clamps = np.full(as_tables.n_variables, -1, np.int32)
    clamps[: len(problem.evidence.states)] = problem.evidence.states
    try:
        drawn = draw_weighted(as_tables, TRIES, Evidence(clamps, ()), rng, Running())
    except (ModelError, ImpossibleEvidenceError):
        return None
    rows = drawn.states if drawn.log_weights is None else drawn.states[np.isfinite(drawn.log_weights)]
    rows = reduced_rows(problem, rows)
    found = [
        row for row in rows.astype(np.int32) if (row >= 0).all() and feasible.score(row.astype(np.int64)) > -np.inf
    ]
    if not found:
        return None
    return np.array([found[k % len(found)] for k in range(n)], np.int32)
