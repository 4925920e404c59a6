"""Generalised belief propagation: messages between regions, for graphs with many short cycles."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from markovfield._validation import check_method
from markovfield.arrays import FloatArray
from markovfield.exceptions import ImpossibleEvidenceError, ModelError, StoppedError
from markovfield.factors.factor_graph import FactorGraph
from markovfield.factors.remembered import Shelf
from markovfield.inference.core.answers import LogPartition, Marginals
from markovfield.inference.core.convergence import DAMPING, how_it_went, warn_not_converged
from markovfield.inference.core.evidence import Evidence
from markovfield.inference.core.limits import memory_limit_bytes
from markovfield.inference.core.running import Running
from markovfield.inference.generalized_bp.layout import RegionPlan, lay_out_regions
from markovfield.inference.generalized_bp.messages_kernel import (
    add_region_counts,
    fill_potentials,
    kikuchi,
    region_values,
    sweep,
)
from markovfield.inference.generalized_bp.regions import RegionGraph, cycle_regions, region_graph, scope_regions
from markovfield.inference.problem.problem import Problem, prepare
from markovfield.names import VariableName

__all__ = ["GeneralizedBP"]

NAMED_REGIONS = ("auto", "factors")
# Regions that form a junction tree are run until nothing moves any more: their answer is called exact.
EXACT_TOLERANCE, ROUNDING = 1e-10, 1e-14
# Sweeps within which messages on a tree of regions come to their end.
SWEEPS_ON_TREES = 1000
# Without a residual smaller by PROGRESS in so many checks, the concave part of the free energy is held fixed for four
# times as many sweeps, up to MOST_INNER or until the residual fell to a share INNER_CONVERGED: a double loop, which
# descends however the couplings conflict.
PROGRESS, PATIENCE, MOST_INNER, INNER_CONVERGED = 0.95, 30, 64, 0.3
# Most runs that a joint distribution outside the regions may take.
MOST_RUNS = 4096
_PLANS: Shelf[RegionPlan] = Shelf(8)


@dataclass(frozen=True)
class GeneralizedBP:
    """Belief propagation between regions (Kikuchi's cluster variation method; Yedidia, Freeman and Weiss).

    The outer regions, their intersections and counting numbers give an approximation of the free energy. With the
    squares of a lattice as regions it is far closer than the Bethe approximation of belief propagation, above all where
    couplings conflict. `log_partition` is the (negative) Kikuchi free energy and no bound. It is exact, and called so,
    when the outer regions form a junction tree, as they do whenever the factor graph is a forest.

    Messages between outer regions and intersections look for a minimum. Where counting numbers are negative the
    entropy is replaced by its tangent at the last belief, so that each sweep works on a convex problem (the double loop
    of Heskes, Albers and Kappen, with as few inner sweeps as do): it converges where plain message passing runs in
    circles. A sweep costs the states of each outer region times the intersections inside it; memory is the states of
    all regions.

    Parameters
    ----------
    regions
        ``"auto"``: the factors' scopes and short cycles (squares of a lattice, triangles of a denser graph).
        ``"factors"``: the scopes alone, which is belief propagation when no two share more than one variable. Or sets
        of variable names; scopes inside none of them are added.
    max_cycle, max_states
        Variables and joint states of the longest cycle that ``"auto"`` takes as a region.
    max_iterations, tolerance
        Sweeps, and how far the beliefs of an outer region and of one inside it may differ, in any probability.
    damping
        Share of the old log-message that is kept. There is little need for it.
    memory_limit
        Bytes, or like ``"4GiB"``; None is 8 GiB, or four fifths of the container's memory if that is less.

    Examples
    --------
    >>> import markovfield as mf
    >>> net = mf.MarkovNetwork(dict.fromkeys("ABCD", 2))
    >>> _ = net.add_factors([("A", "B"), ("B", "C"), ("C", "D")], [[3.0, 1.0], [1.0, 3.0]])
    >>> _ = net.add_factor(["D", "A"], [[1.0, 3.0], [3.0, 1.0]])
    >>> answer = mf.marginals(net, evidence={"A": 0}, method=GeneralizedBP())
    >>> answer["C"].round(4).tolist(), answer.guarantee
    ([0.5, 0.5], 'exact')
    """

    regions: str | tuple[tuple[VariableName, ...], ...] = "auto"
    max_cycle: int = 8
    max_states: int = 4096
    max_iterations: int = 3000
    tolerance: float = 1e-6
    damping: float = 0.0
    memory_limit: str | int | None = None

    name: ClassVar[str] = "generalized_bp"
    exact: ClassVar[bool] = False
    verbs: ClassVar[frozenset[str]] = frozenset({"marginals", "log_partition"})
    abilities: ClassVar[frozenset[str]] = frozenset({"init"})

    def __post_init__(self) -> None:
        least = {"max_cycle": 0, "max_states": 1, "max_iterations": 1, "damping": 0}
        check_method(self, least=least, above={"tolerance": 0}, below={"damping": 1})
        memory_limit_bytes(self.memory_limit)
        if isinstance(self.regions, str):
            if self.regions not in NAMED_REGIONS:
                raise ModelError(
                    f"regions of GeneralizedBP must be 'auto', 'factors' or sets of variables, got {self.regions!r}"
                )
        else:
            object.__setattr__(self, "regions", tuple(tuple(r) for r in self.regions))

    def region_graph(self, graph: FactorGraph, evidence: Evidence) -> RegionGraph:
        """The regions that a query under some evidence would use; variables by position, auxiliary ones last."""
        return self._plan(prepare(graph, evidence)).graph

    def log_partition(
        self, graph: FactorGraph, evidence: Evidence, *, running: Running, init: Any = None
    ) -> LogPartition:
        """The Kikuchi approximation of log Z."""
        run = _Run(self, prepare(graph, evidence, drop_barren=True), init, running)
        return LogPartition(
            log_partition=run.log_partition,
            guarantee="exact" if run.proven else "approximate",
            **how_it_went(self.name, run, running),
            width=run.width,
        )

    def marginals(self, graph: FactorGraph, evidence: Evidence, *, running: Running, init: Any = None) -> Marginals:
        """All single marginals; joint distributions are read off regions, or worked out by conditioning."""
        problem = prepare(graph, evidence)
        run = _Run(self, problem, init, running)
        values = problem.expand(run.values(), 0.0)
        value = run.log_partition
        return Marginals(
            graph=graph,
            values=values,
            log_partition=value,
            guarantee="exact" if run.proven else "approximate",
            log_partition_bounds=(value, value) if run.proven else (-np.inf, np.inf),
            **how_it_went(self.name, run, running),
            width=run.width,
            _joint=lambda positions: _joint(self, run, values, positions),
            _counts=lambda: problem.counts(run.counts()),
            _state=_State(run.plan, run.messages, run.inner),
        )

    def _plan(self, problem: Problem) -> RegionPlan:
        """The regions of a problem laid out; kept with the structure it came from, for all evidence of one shape."""
        s = problem.structure
        shape = (s.cardinalities.tobytes(), s.scope_offsets.tobytes(), s.scopes.tobytes())
        key = (self.regions, self.max_cycle, self.max_states, self.memory_limit, *shape)
        return _PLANS.get(problem.as_tables.structure, key, lambda: self._make_plan(problem))

    def _make_plan(self, problem: Problem) -> RegionPlan:
        s = problem.structure
        outer: list[tuple[int, ...]] = []
        if self.regions == "auto":
            outer = cycle_regions(s, self.max_cycle, self.max_states)
        elif not isinstance(self.regions, str):
            given = [problem.graph.names.positions(r) for r in self.regions]
            outer = [tuple(v for v in r if s.cardinalities[v] > 1) for r in given]
        found = region_graph([*outer, *scope_regions(s)])
        return lay_out_regions(s, found, memory_limit_bytes(self.memory_limit))


@dataclass(frozen=True, eq=False)
class _State:
    """What a warm start of a later run needs."""

    plan: RegionPlan
    messages: FloatArray
    inner: FloatArray


class _Run:
    """One run of the messages: beliefs, log Z and how it went."""

    def __init__(self, method: GeneralizedBP, problem: Problem, init: Any, running: Running) -> None:
        self.problem = problem
        self.plan = plan = method._plan(problem)
        # The plan may have been made for evidence under which the tables lay elsewhere.
        s = problem.structure
        self.tables = plan.tables._replace(table_offsets=s.table_offsets, table_strides=s.table_strides)
        self.potentials = np.empty(plan.n_outer_cells)
        fill_potentials(plan.layout, self.tables, problem.potentials.log_tables, problem.likelihood, self.potentials)
        self.messages, self.reference = _start(plan, init)
        self.log_beliefs = np.empty(plan.n_outer_cells)
        self.inner = np.zeros(plan.n_inner_cells)
        self.residuals: list[float] = []
        self.converged = self._iterate(method, running)
        self.proven = self.converged and plan.graph.is_junction_tree
        self.beliefs = np.empty(plan.n_outer_cells)
        value = kikuchi(
            plan.layout,
            plan.graph.counting,
            self.potentials,
            self.messages,
            self.log_beliefs,
            self.inner,
            self.beliefs,
        )
        self.log_partition = float(value) + _constant(problem, plan.tables.variable_home)
        if self.log_partition == -np.inf:
            raise problem.impossible()
        self.width = max((len(r) for r in plan.graph.outer), default=1) - 1

    def _iterate(self, method: GeneralizedBP, running: Running) -> bool:
        """Sweep until nothing moves; whether that came about."""
        plan = self.plan
        exact = plan.graph.is_junction_tree
        tolerance = max(EXACT_TOLERANCE, self._rounding()) if exact else method.tolerance
        counting = plan.graph.counting.astype(np.float64)
        # On a junction tree the counting numbers themselves converge in a few sweeps.
        raised = np.maximum(counting, 1.0 - plan.holders if exact else 0.0)
        most, inside, inner_converged, first, best, waited, converged = 1, 0, False, 0.0, np.inf, 0, False
        try:
            while not converged and len(self.residuals) < method.max_iterations:
                inside += 1
                residual = float(
                    sweep(
                        plan.layout,
                        plan.backward if len(self.residuals) % 2 else plan.forward,
                        plan.holders + raised,
                        raised - counting,
                        np.bool_(inside >= most or inner_converged),
                        np.bool_(exact),
                        1.0 - method.damping,
                        self.potentials,
                        self.messages,
                        self.log_beliefs,
                        self.inner,
                        self.reference,
                    )
                )
                if residual < 0:
                    raise self.problem.impossible()
                self.residuals.append(residual)
                # Only after the reference has moved does the distance show whether all has converged.
                if inside == 1:
                    first = residual
                    converged = residual <= tolerance
                    best, waited = (residual, 0) if residual < PROGRESS * best else (best, waited + 1)
                    if waited >= PATIENCE:
                        raised, most = np.maximum(counting, 0.0), min(4 * most, MOST_INNER)
                        best, waited = residual, 0
                inside = 0 if inside >= most or inner_converged else inside
                inner_converged = inside > 0 and residual <= max(INNER_CONVERGED * first, 0.1 * tolerance)
                running.check(residual)
        except (TimeoutError, StoppedError):
            # What there is is an answer too, and says that it has not converged.
            pass
        if not converged:
            warn_not_converged(method.name, len(self.residuals), self.residuals[-1], tolerance, DAMPING)
        return converged

    def _rounding(self) -> float:
        """What logs as large as these can be trusted to."""
        return ROUNDING * float(np.abs(self.potentials[np.isfinite(self.potentials)]).max(initial=0.0))

    def values(self) -> FloatArray:
        """Marginals of all reduced variables, one after the other."""
        values = np.empty(int(self.problem.structure.value_offsets[-1]))
        region_values(self.plan.layout, self.tables, self.plan.value_map, self.beliefs, values)
        return values

    def counts(self) -> FloatArray:
        """Expected counts of the reduced pool's cells."""
        counts = np.zeros(len(self.problem.potentials.log_tables))
        add_region_counts(self.plan.layout, self.tables, self.beliefs, counts)
        return counts

    def region_belief(self, region: int) -> FloatArray:
        """Belief of an outer region, axes by rising variable."""
        first, last = self.plan.layout.cell_offsets[region : region + 2]
        shape = self.problem.structure.cardinalities[list(self.plan.graph.outer[region])]
        return self.beliefs[first:last].reshape(shape)


def _start(plan: RegionPlan, init: Any) -> tuple[FloatArray, FloatArray]:
    """Messages and inner beliefs to start from: those of an earlier answer where both have them, else flat ones."""
    messages, inner = np.zeros(plan.n_messages), np.zeros(plan.n_inner_cells)
    if init is None:
        return messages, inner
    state = getattr(init, "_state", None)
    if not isinstance(state, _State):
        raise ModelError("generalized_bp starts from an answer of generalized_bp: init is " + _kind(init))
    old = state.plan
    for values, before, keys, known in (
        (messages, state.messages, _message_keys(plan), _message_keys(old)),
        (inner, state.inner, _inner_keys(plan), _inner_keys(old)),
    ):
        if old is plan:
            values[:] = before
        else:
            where = dict(known)
            for key, here in keys:
                if key in where:
                    values[here] = before[where[key]]
        # A zero was a zero of other tables or other evidence.
        values[np.isneginf(values)] = 0.0
    return messages, inner


def _kind(init: Any) -> str:
    return f"one of {init.method}" if hasattr(init, "method") else f"a {type(init).__name__}"


def _message_keys(plan: RegionPlan) -> list[tuple[tuple[Any, ...], slice]]:
    """Every message by its two regions and its length, and where it lies."""
    at, graph = plan.layout.message_offsets.tolist(), plan.graph
    parts = np.repeat(np.arange(len(graph.inner)), np.diff(graph.holder_offsets)).tolist()
    return [
        ((graph.inner[b], graph.outer[r], at[e + 1] - at[e]), slice(at[e], at[e + 1]))
        for e, (b, r) in enumerate(zip(parts, graph.holders.tolist(), strict=True))
    ]


def _inner_keys(plan: RegionPlan) -> list[tuple[tuple[Any, ...], slice]]:
    """Every inner region by its variables and its size, and where its cells lie."""
    at = plan.layout.inner_offsets.tolist()
    return [((r, at[b + 1] - at[b]), slice(at[b], at[b + 1])) for b, r in enumerate(plan.graph.inner)]


def _constant(problem: Problem, home: npt.NDArray[np.int64]) -> float:
    """log of what no region holds: factors without variables, likelihoods of variables without a ``home``."""
    s = problem.structure
    value = float(problem.potentials.log_tables[s.table_offsets[np.diff(s.scope_offsets) == 0]].sum())
    if len(problem.likelihood):
        value += float(problem.likelihood[s.value_offsets[:-1][home < 0]].sum())
    if value == -np.inf:
        raise problem.impossible()
    return value


def _joint(method: GeneralizedBP, run: _Run, values: FloatArray, positions: tuple[int, ...]) -> FloatArray:
    """Joint distribution of some variables: from a region that holds them, else by conditioning."""
    problem, cards = run.problem, run.problem.structure.cardinalities
    free = [v for v in positions if cards[v] > 1]
    region = run.plan.region_holding(free) if free else None
    if not free:
        table = np.ones([1] * len(positions))
    elif region is None:
        return _by_conditioning(method, run, values, positions)
    else:
        axes = {v: a for a, v in enumerate(run.plan.graph.outer[region])}
        belief = run.region_belief(region)
        belief = belief.sum(axis=tuple(a for v, a in axes.items() if v not in free))
        kept = [v for v in axes if v in free]
        table = belief.transpose([kept.index(v) for v in free]).reshape([int(cards[v]) for v in positions])
    return problem.expand_joint(table, positions)


def _by_conditioning(method: GeneralizedBP, run: _Run, values: FloatArray, positions: tuple[int, ...]) -> FloatArray:
    """p(all but the last) times p(last | all but the last), a run for each state of all but the last."""
    graph, evidence = run.problem.graph, run.problem.evidence
    if run.proven:
        # What is called exact must be: on a tree of regions a few sweeps suffice, however few were asked for.
        method = replace(method, max_iterations=max(method.max_iterations, SWEEPS_ON_TREES), damping=0.0)
    *first, last = positions
    before = _joint(method, run, values, tuple(first))
    if before.size > MOST_RUNS:
        raise ModelError(
            f"no region of generalized_bp holds all {len(positions)} variables of the joint distribution, and "
            f"conditioning would take {before.size} runs: name them as a region"
        )
    result = np.zeros((*before.shape, int(graph.structure.cardinalities[last])))
    start, stop = graph.structure.value_offsets[last : last + 2]
    for states in product(*(range(k) for k in before.shape)):
        if before[states] > 0:
            clamped = evidence.states.copy()
            clamped[first] = states
            clamped.setflags(write=False)
            try:
                given = method.marginals(graph, Evidence(clamped, evidence.likelihoods), running=Running())
            except ImpossibleEvidenceError:
                continue
            result[states] = before[states] * given.values[start:stop]
    total = result.sum()
    if not total > 0:
        raise evidence.impossible(graph.structure)
    result /= total
    return result
