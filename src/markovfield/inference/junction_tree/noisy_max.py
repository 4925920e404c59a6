"""The likeliest assignment where a factor sums over contributions that nobody sees (noisy-or, noisy-max).

On the graph of tables the auxiliary contributions must be summed and only the model's own variables maximised: marginal
MAP, which a junction tree answers by summing first. For a noisy-max of many parents that order would build its table.
Then a bound decides. With C_i(x, k) the log-probability that parent i in state x contributes at most k, and
D_i(x, k) = C_i(x, k) - C_i(x, k - 1), the log-table is

    log T(x, k) = sum_i C_i(x_i, k) + f(sum_i D_i(x_i, k)),   f(s) = log(1 - exp(-s)),

and f is concave: each tangent gives an upper bound that is a sum over single parents, so a graph of pairwise tables
(parent, child) with no auxiliary variable. Branch and bound on it proves which assignments are the best.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from markovfield.arrays import FloatArray
from markovfield.exceptions import ImpossibleEvidenceError, ModelError
from markovfield.factors.factor_graph import FactorGraph
from markovfield.factors.factor_kinds import NOISY_MAX, TABLE
from markovfield.factors.remembered import remembered
from markovfield.factors.structure import Structure
from markovfield.inference.core.evidence import Evidence
from markovfield.inference.core.running import Running
from markovfield.inference.junction_tree.clique_queries import best_assignments
from markovfield.inference.junction_tree.plan import grow_tree
from markovfield.inference.junction_tree.propagate import propagate

if TYPE_CHECKING:
    from markovfield.inference.junction_tree.junction_tree import JunctionTree

__all__ = ["latent_best", "latent_max_marginals"]

Found = list[tuple[npt.NDArray[np.int32], float]]

# Up to this many states (log2) the auxiliary variables are summed out in one tree; a second or so of work.
TREE_BITS = 24.0
FIRST_STEPS, NEXT_STEPS = 40, 6
# How far, as a factor, one step may move the point where a tangent touches.
FARTHEST = 10.0
# How many candidates are listed in the first set, and in each of the others.
FIRST_LISTED, NEXT_LISTED = 256, 32
MOST_SETS = 2000
# Beyond, 1 - exp(-s) is one in floating point.
LARGEST_SUM = 700.0
SMALLEST_SUM = 1e-9


def latent_best(
    method: JunctionTree, graph: FactorGraph, evidence: Evidence, n_best: int, running: Running
) -> tuple[Found, int]:
    """The best assignments of a graph with latent contributions, their scores, and the width of the tree used."""
    problem = method.prepare(graph, evidence)
    own = np.zeros(problem.structure.n_variables, np.bool_)
    own[: graph.n_variables] = True
    stage = own.astype(np.int8)
    if grow_tree(problem.structure, stage=stage, search=0.0).log2_states > TREE_BITS:
        return _by_bounds(method, graph, evidence, n_best, running)
    plan = method.plan(problem, stage=stage)
    result = propagate(plan, problem, operation="max", downward=False, decode=own, running=running)
    found = best_assignments(result, n_best, own)
    return [(problem.states(states), result.value - loss) for states, loss in found], plan.width


def latent_max_marginals(method: JunctionTree, graph: FactorGraph, evidence: Evidence) -> FloatArray:
    """The best score with each state of each variable: one decoding for every state the best assignment lacks."""
    offsets = graph.structure.value_offsets
    out = np.full(int(offsets[-1]), -np.inf)
    [(best, score)], _ = latent_best(method, graph, evidence, 1, Running())
    out[offsets[:-1] + best] = score
    for v in np.flatnonzero(evidence.states < 0).tolist():
        for state in range(int(graph.structure.cardinalities[v])):
            if state == best[v]:
                continue
            clamped = evidence.states.copy()
            clamped[v] = state
            clamped.flags.writeable = False
            try:
                known = Evidence(clamped, evidence.likelihoods)
                out[offsets[v] + state] = latent_best(method, graph, known, 1, Running())[0][0][1]
            except ImpossibleEvidenceError:
                pass
    return out


def _by_bounds(
    method: JunctionTree, graph: FactorGraph, evidence: Evidence, n_best: int, running: Running
) -> tuple[Found, int]:
    """Branch and bound, the set of the highest bound first.

    In each set of assignments the tangents are fitted to it, and its candidates listed in falling order of the bound.
    The set is done when the bound falls below the best scores known; otherwise a variable of the noisy-max whose
    bound is loosest splits it.
    """
    search = _Search(method, graph, evidence, n_best, running)
    heap: list[tuple[float, int, dict[int, int], FloatArray]] = [(-np.inf, 0, {}, np.ones(search.relaxed.n_tangents))]
    sets = 1
    while heap and -heap[0][0] > search.floor:
        _, _, clamps, tangents = heapq.heappop(heap)
        count = max(NEXT_LISTED if clamps else FIRST_LISTED, 2 * n_best)
        try:
            bound, tangents = search.fit_tangents(clamps, tangents)
            if bound <= search.floor:
                continue
            rows, bounds, _ = search.candidates(clamps, tangents, count)
        except ImpossibleEvidenceError:
            continue
        if not search.best:
            # Nothing possible among the likeliest candidates: is anything? An error when not.
            method.log_partition(graph, evidence, running=running)
        if len(rows) < count or bounds[-1] <= search.floor:
            continue
        split = search.relaxed.loosest(rows[0], tangents, set(clamps) | search.observed)
        if split is None:  # everything the bound depends on is fixed: it is no bound but the score itself
            search.candidates(clamps, tangents, n_best)
            continue
        for state in range(int(graph.structure.cardinalities[split])):
            heapq.heappush(heap, (-min(bound, float(bounds[0])), sets, {**clamps, split: state}, tangents))
            sets += 1
        if sets > MOST_SETS:
            gap = -heap[0][0] - search.floor
            raise ModelError(
                f"junction_tree split the assignments into {sets} sets and cannot prove which is the likeliest (a gap "
                f"of {gap:.3g} is left): a noisy-max of many parents sums over contributions that are not decoded; "
                "give more evidence, or name fewer variables to decode"
            )
    if not search.best:
        raise evidence.impossible(graph.structure)
    return [(np.array(row, np.int32), score) for row, score in search.best.items()], search.width


class _Search:
    """The relaxed graph asked about sets of assignments, and the best true scores seen so far."""

    def __init__(
        self, method: JunctionTree, graph: FactorGraph, evidence: Evidence, n_best: int, running: Running
    ) -> None:
        self.graph, self.evidence, self.n_best, self.running = graph, evidence, n_best, running
        self.relaxed = _relaxed(graph)
        self.engine = replace(method, order=None)  # the relaxed graph is named by positions
        self.observed = set(np.flatnonzero(evidence.states >= 0).tolist())
        self.best: dict[tuple[int, ...], float] = {}
        self.width = -1

    @property
    def floor(self) -> float:
        """What a set's bound must exceed to matter: the last of the best scores, with room for rounding."""
        if len(self.best) < self.n_best:
            return -np.inf
        last = list(self.best.values())[-1]
        return last + 1e-11 * max(1.0, abs(last))

    def candidates(
        self, clamps: dict[int, int], tangents: FloatArray, count: int
    ) -> tuple[Any, FloatArray, FloatArray]:
        """The best assignments of the relaxed graph in a set: states, bounds, true scores."""
        self.running.check()
        # As likelihoods, clamps leave the structure as it is, so that its plan serves every set.
        fixed = [(v, self._only(v, state)) for v, state in clamps.items()]
        known = Evidence(self.evidence.states, (*self.evidence.likelihoods, *fixed))
        found = self.engine.decode(self.relaxed.graph(tangents), known, n_best=count, running=Running())
        self.width = found.width
        rows = np.array([[s.assignment[v] for v in self.relaxed.variables] for s in found.n_best], np.int32)
        scores: FloatArray = self.graph.score(rows)
        for v, vector in self.evidence.likelihoods:
            scores = scores + vector[rows[:, v]]
        for row, score in zip(rows.tolist(), scores.tolist(), strict=True):
            if score > -np.inf:
                self.best[tuple(row)] = score
        self.best = dict(sorted(self.best.items(), key=lambda item: -item[1])[: self.n_best])
        return rows, np.array([s.score for s in found.n_best]), scores

    def _only(self, variable: int, state: int) -> FloatArray:
        vector = np.full(int(self.graph.structure.cardinalities[variable]), -np.inf)
        vector[state] = 0.0
        return vector

    def fit_tangents(self, clamps: dict[int, int], tangents: FloatArray) -> tuple[float, FloatArray]:
        """Lower the bound of a set: it is convex in the slopes, so each tangent moves towards the maximiser's sum.

        Any tangents give a bound; the lowest seen is kept.
        """
        bound, fitted = np.inf, tangents
        for step in range(NEXT_STEPS if clamps else FIRST_STEPS):
            rows, bounds, scores = self.candidates(clamps, tangents, 1)
            if bounds[0] < bound:
                bound, fitted = float(bounds[0]), tangents
            if bound <= max(self.floor, float(scores[0]) + 1e-11 * abs(float(scores[0]))):
                break
            sums, active = self.relaxed.sums(rows[0])
            share = 1.0 / (1.0 + 0.5 * step)
            towards = np.clip(sums, tangents / FARTHEST, tangents * FARTHEST)
            moved = np.clip(tangents ** (1.0 - share) * towards**share, SMALLEST_SUM, LARGEST_SUM)
            tangents = np.where(active, moved, tangents)
        return bound, fitted


class _Relaxed:
    """A graph whose noisy-max factors are replaced by pairwise tables, an upper bound for any tangents."""

    def __init__(self, graph: FactorGraph) -> None:
        s = graph.structure
        self.original = graph
        self.variables = range(s.n_variables)
        self.noisy = np.flatnonzero(s.kind == NOISY_MAX).tolist()
        scopes = [s.scope(f).tolist() for f in range(s.n_factors) if s.kind[f] != NOISY_MAX]
        strides = [s.strides(f).tolist() for f in range(s.n_factors) if s.kind[f] != NOISY_MAX]
        bases = s.table_offsets[s.kind != NOISY_MAX].tolist()
        kinds = s.kind[s.kind != NOISY_MAX].tolist()
        cells = s.n_cells
        self.pieces: list[tuple[list[int], list[FloatArray], list[FloatArray], slice]] = []
        at = 0
        for f in self.noisy:
            scope = s.scope(f).tolist()
            k = int(s.cardinalities[scope[-1]])
            blocks, leak = graph.noisy_max(f)
            below = [np.logaddexp.accumulate(b, axis=-1) for b in [*blocks, leak.reshape(1, k)]]
            self.pieces.append((scope, below, [_rises(c) for c in below], slice(at, at + k)))
            at += k
            for p, table in zip([*scope[:-1], None], below, strict=True):
                scopes.append([scope[-1]] if p is None else [p, scope[-1]])
                strides.append([1] if p is None else [k, 1])
                bases.append(cells)
                kinds.append(TABLE)
                cells += table.size
        self.n_tangents = at
        self.structure = Structure.from_arrays(
            s.cardinalities,
            np.cumsum([0, *(len(scope) for scope in scopes)]),
            [v for scope in scopes for v in scope],
            bases,
            [x for stride in strides for x in stride],
            n_cells=cells,
            kind=kinds,
        )

    def graph(self, tangents: FloatArray) -> FactorGraph:
        """The relaxed graph whose tangents touch f at these sums, one for each noisy-max and state of its child."""
        pool: list[FloatArray] = [self.original.log_tables]
        for _, below, rises, mine in self.pieces:
            slope, constant, ceiling = _lines(tangents[mine])
            for i, (c, d) in enumerate(zip(below, rises, strict=True)):
                table = c + slope * np.minimum(d, ceiling)
                pool.append((table + constant if i == len(below) - 1 else table).ravel())
        return FactorGraph(self.structure, np.concatenate(pool))

    def loosest(self, row: npt.NDArray[np.int32], tangents: FloatArray, fixed: set[int]) -> int | None:
        """The variable to split by: a free one of the noisy-max whose line is furthest above f at this assignment."""
        sums, _ = self.sums(row)
        choice, worst = None, -np.inf
        for scope, _, rises, mine in self.pieces:
            free = [i for i, v in enumerate(scope) if v not in fixed]
            if not free:
                continue
            k = int(row[scope[-1]])
            slope, constant, _ = _lines(tangents[mine])
            total = min(float(sums[mine.start + k]), LARGEST_SUM)
            value = np.log(-np.expm1(-total)) if total > 0 else -np.inf
            loose = float(slope[k] * total + constant[k] - value) if k else 0.0
            if loose > worst:
                worst = loose
                # The child first; then the parent whose state moves the sum most.
                spread = [
                    np.inf if i == len(scope) - 1 else float(np.ptp(np.minimum(rises[i], LARGEST_SUM))) for i in free
                ]
                choice = scope[free[int(np.argmax(spread))]]
        return choice

    def sums(self, row: Sequence[int] | npt.NDArray[Any]) -> tuple[FloatArray, npt.NDArray[np.bool_]]:
        """The argument of f in each noisy-max for this assignment, and which tangents the assignment uses."""
        out, active = np.ones(self.n_tangents), np.zeros(self.n_tangents, np.bool_)
        for scope, _, rises, mine in self.pieces:
            k = int(row[scope[-1]])
            states = [*(int(row[v]) for v in scope[:-1]), 0]
            out[mine.start + k] = sum(float(d[x, k]) for d, x in zip(rises, states, strict=True))
            active[mine.start + k] = k > 0
        return out, active


def _lines(touch: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Slopes and constants of the tangents that touch f at these sums, one for each state of a child.

    Also where each line reaches zero: f stays below, so no single sum need count for more. The first state has no f.
    """
    value = np.log(-np.expm1(-touch))
    slope = 1.0 / np.expm1(touch)
    ceiling = touch - value / slope
    slope[0] = 0.0
    constant = value - slope * touch
    constant[0] = 0.0
    return slope, constant, ceiling


def _rises(below: FloatArray) -> FloatArray:
    """D(x, k) = C(x, k) - C(x, k - 1); zero in the first column and where both are -inf."""
    out = np.zeros_like(below)
    before, after = below[:, :-1], below[:, 1:]
    known = after > -np.inf
    out[:, 1:][known] = np.maximum(after[known] - before[known], 0.0)
    return out


@remembered
def _relaxed(graph: FactorGraph) -> _Relaxed:
    """Made once for each graph."""
    return _Relaxed(graph)
