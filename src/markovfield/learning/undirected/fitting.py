"""What methods of fitting by minimisation share: penalties, where to start, the report."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from markovfield.arrays import FloatArray, IntArray
from markovfield.exceptions import MemoryLimitError, ModelError
from markovfield.factors.factor_graph import FactorGraph
from markovfield.factors.factor_kinds import TABLE, caps
from markovfield.inference.core.evidence import Evidence
from markovfield.inference.core.registry import resolve
from markovfield.learning.core.report import FitReport
from markovfield.learning.solvers.checkpoint import Checkpoint
from markovfield.learning.solvers.lbfgs import LBFGS
from markovfield.learning.solvers.minimum import Minimum
from markovfield.learning.solvers.penalty import Penalty
from markovfield.learning.solvers.solve import solve
from markovfield.learning.undirected.problem import Problem
from markovfield.models import LogLinear
from markovfield.models.log_linear import with_parameters

__all__ = ["checkpoint_of", "fits_exactly", "minimise", "n_free", "penalty_of", "reported"]

# L-BFGS for objectives for each row: moments are matched to about 1e-8.
PRECISE = LBFGS(tolerance=1e-13, gradient_tolerance=3e-8, max_iterations=2000)
# Steps of a pass of the junction tree up to which exact expectations are taken unasked.
MOST_STEPS = 2e8
# A greedy order that takes this many times as many is not likely to be improved enough.
MANY = 100.0


def _cell_owners(model: LogLinear) -> tuple[IntArray, IntArray]:
    """For each cell how many variables the factor has that reads it, and where that factor's cells begin."""
    s = model.base_graph.structure
    arity, base = np.zeros(s.n_cells, np.int64), np.full(s.n_cells, -1, np.int64)
    sizes = np.where(s.kind == TABLE, 0, caps(s) + 1)
    starts, first = np.unique(s.table_offsets, return_index=True)
    ends = np.append(starts[1:], s.n_cells)
    for start, end, f in zip(starts.tolist(), ends.tolist(), first.tolist(), strict=True):
        stop = start + int(sizes[f]) if sizes[f] else end
        arity[start:stop] = s.scope_offsets[f + 1] - s.scope_offsets[f]
        base[start:stop] = start
    return arity, base


def interactions(model: LogLinear) -> IntArray:
    """``int64[k]``: the group of each parameter of a factor with two variables or more, -1 for the others."""
    arity, base = _cell_owners(model)
    rows, columns = model.operator.nonzero()
    group = np.full(len(model.parameters), -1, np.int64)
    joint = arity[rows] >= 2
    group[columns[joint]] = base[rows[joint]]
    _, numbered = np.unique(group[group >= 0], return_inverse=True)
    group[group >= 0] = numbered
    return group


def penalty_of(model: LogLinear, method: Any, total: float) -> Penalty:
    """A method's penalty for each row: ``l2`` on all parameters, ``l1`` and ``group_l1`` on those of interactions."""
    given: Penalty | None = method.penalty
    if given is None:
        given = Penalty(l2=method.l2)
        if method.l1 or method.group_l1:
            group = interactions(model)
            given = replace(given, l1=np.where(group >= 0, method.l1, 0.0), groups=group, group_l1=method.group_l1)
    if not isinstance(given, Penalty):
        raise ModelError(f"penalty of {type(method).__name__} must be a markovfield.learning.Penalty, got {given!r}")
    given.check(len(model.parameters))
    return replace(
        given, l2=np.asarray(given.l2) / total, l1=np.asarray(given.l1) / total, group_l1=given.group_l1 / total
    )


def minimise(method: Any, problem: Problem, objective: Any, start: FloatArray, rng: Any = None) -> Minimum:
    """Minimise a method's objective for each row with its penalty."""
    penalty = penalty_of(problem.model, method, problem.total)
    solver = method.solver
    if solver == "auto":
        solver = "proximal_gradient" if penalty.has_groups else PRECISE
    kept = checkpoint_of(method)
    return solve(objective, start, solver=solver, penalty=penalty, rng=rng, running=problem.running, checkpoint=kept)


def checkpoint_of(method: Any) -> Checkpoint | None:
    """A method's checkpoint, which may be given as the name of its file."""
    kept = method.checkpoint
    return kept if kept is None or isinstance(kept, Checkpoint) else Checkpoint(kept)


def start_of(problem: Problem) -> FloatArray:
    """Where to start: the model's own parameters if it has any, otherwise what is exact for forests.

    For pairs that read tables of their own these are the logarithms of p(s, t) / (p(s) p(t)) and of p(s), the fixed
    point of belief propagation that matches the moments of the data (Wainwright, Jaakkola and Willsky 2003).
    """
    model = problem.model
    k = len(model.parameters)
    if model.parameters.any() or not k or problem.incomplete.n_rows or model.operator.nnz != k:
        return np.array(model.parameters)
    s = model.base_graph.structure
    arity = np.diff(s.scope_offsets)
    whole = len(np.unique(s.table_offsets)) == s.n_factors and s.is_plain
    if not whole or (arity > 2).any() or (model.operator.data != 1).any():
        return np.array(model.parameters)
    single = {int(s.scope(f)[0]): f for f in np.flatnonzero(arity == 1).tolist()}
    if len(single) < s.n_variables:
        return np.array(model.parameters)
    graph = model.base_graph
    tables = np.zeros(s.n_cells)
    logs: dict[int, FloatArray] = {}
    for v, f in single.items():
        counts = problem.counts[graph.cells(f)] + 0.5
        logs[v] = np.log(counts / counts.sum())
        tables[graph.cells(f)] = logs[v]
    for f in np.flatnonzero(arity == 2).tolist():
        a, b = s.scope(f).tolist()
        counts = problem.counts[graph.cells(f)]
        # Smoothed by what independence expects, so that the margins stay as they are.
        counts = counts + np.exp(logs[a][:, None] + logs[b])
        tables[graph.cells(f)] = np.log(counts / counts.sum()) - logs[a][:, None] - logs[b]
    return np.asarray(model.operator.T @ tables)


def n_free(model: LogLinear) -> int:
    """Free parameters: those of a hierarchical model where every table is free, otherwise all there are."""
    s = model.base_graph.structure
    k = len(model.parameters)
    own_tables = len(np.unique(s.table_offsets)) == s.n_factors and s.is_plain and model.operator.nnz == s.n_cells == k
    if not own_tables or (np.diff(s.scope_offsets) > 12).any():
        return k
    # Effects of all subsets of scopes: linear in the factors, of which there may be very many.
    effects: set[tuple[int, ...]] = set()
    for f in range(s.n_factors):
        scope = sorted(set(s.scope(f).tolist()))
        effects |= {tuple(v for i, v in enumerate(scope) if bits >> i & 1) for bits in range(1, 2 ** len(scope))}
    return sum(math.prod(int(s.cardinalities[v]) - 1 for v in effect) for effect in effects)


def fits_exactly(graph: FactorGraph, running: Any) -> bool:
    """Whether a pass of the junction tree is cheap enough to be taken unasked.

    A greedy order decides, but where it comes close: then a longer search may find a good one.
    """
    tree = resolve("junction_tree", "marginals")
    problem = tree.prepare(graph, Evidence.parse(graph.structure, None))
    for search in (0.0, tree.search):
        try:
            steps = replace(tree, search=search).plan(problem, running=running.quiet).operations
        except MemoryLimitError:
            return False
        if steps <= MOST_STEPS or steps > MANY * MOST_STEPS:
            return bool(steps <= MOST_STEPS)
    return False


def reported(method: Any, given: Any, problem: Problem, found: Minimum, **facts: Any) -> Any:
    """The model given, with the parameters found and a report of how."""
    made = with_parameters(given, found.weights)
    notes = (*facts.pop("notes", ()), *problem.notes)
    made.fit_report = FitReport(
        method=method.name,
        n_rows=problem.n_rows,
        total_weight=problem.total,
        n_parameters=n_free(problem.model),
        converged=found.converged,
        iterations=found.iterations,
        evaluations=found.evaluations,
        message=found.message,
        history=tuple(-problem.total * value for value in found.history),
        objective=problem.total * found.value,
        gradient_norm=problem.total * found.gradient_norm,
        seconds=problem.running.seconds,
        notes=notes,
        **facts,
    )
    return made
