"""Mean field: a lower bound on log Z from distributions that factorise over clusters of variables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from markovfield._validation import check_method
from markovfield.arrays import FloatArray, IntArray
from markovfield.exceptions import ModelError, StoppedError
from markovfield.factors.factor_graph import FactorGraph
from markovfield.inference.core.answers import Components, LogPartition, Marginals
from markovfield.inference.core.convergence import how_it_went, warn_caller, warn_not_converged
from markovfield.inference.core.counts import Rows
from markovfield.inference.core.evidence import Evidence
from markovfield.inference.core.running import Running
from markovfield.inference.mean_field.clusters import STRUCTURES, cluster_layout, clusters_of
from markovfield.inference.mean_field.mean_field_kernel import (
    ClusterLayout,
    evidence_bound,
    fill_parts,
    pool_counts,
    update_clusters,
)
from markovfield.inference.problem.feasible import BUDGET, Feasible
from markovfield.inference.problem.problem import Problem, component_labels, prepare
from markovfield.names import VariableName

__all__ = ["MeanField"]

# Cells of work between two looks at the clock.
GRAIN = 2.0**24
# From so many variables on, connected components come to an end each for itself.
LARGE = 64
# How much likelier than the next each state is at the start.
TILT = 1.001


@dataclass(frozen=True)
class MeanField:
    """A lower bound on log Z: the best expected score plus entropy of a distribution that factorises.

    One cluster of variables after the other takes its best distribution given all others, so the bound never falls. It
    is computed exactly at the distribution reached, so it holds after any number of iterations. Hard zeros are never
    given probability: the start is an assignment that a search finds, and as many states around it as fit together.
    In a large graph, connected components come to an end each for itself.

    A sweep costs the cells of each factor once for each cluster that it reaches into.

    Parameters
    ----------
    structure
        ``"naive"``: every variable a cluster by itself. ``"chains"`` or ``"trees"``: linear chains or trees of the
        factor graph, within which inference is exact. Or disjoint sets of variable names, each without a cycle inside
        it; variables in none are clusters by themselves.
    restarts
        How many starts; the best bound counts. All but the first are random, so that with one, the default, the
        answer is the same every time.
    start
        The first: ``"uniform"`` over the states, but for a slight tilt towards earlier ones, since a symmetric model
        would never leave a uniform distribution; or ``"random"``.
    max_iterations, tolerance
        Sweeps for each start; the largest change of a probability at which they end.

    Examples
    --------
    >>> import markovfield as mf
    >>> net = mf.MarkovNetwork(dict.fromkeys("ABC", 2))
    >>> _ = net.add_factors([("A", "B"), ("B", "C"), ("C", "A")], [[3.0, 1.0], [1.0, 3.0]])
    >>> naive = mf.log_partition(net, method=mf.methods.MeanField())
    >>> trees = mf.log_partition(net, method=mf.methods.MeanField(structure="trees"))
    >>> round(float(naive), 3), round(float(trees), 3), naive.guarantee
    (3.747, 3.871, 'lower')
    """

    structure: str | Sequence[Sequence[VariableName]] = "naive"
    restarts: int = 1
    start: str = "uniform"
    max_iterations: int = 200
    tolerance: float = 1e-6

    name: ClassVar[str] = "mean_field"
    exact: ClassVar[bool] = False
    verbs: ClassVar[frozenset[str]] = frozenset({"marginals", "log_partition"})
    abilities: ClassVar[frozenset[str]] = frozenset({"components", "init", "rng"})

    def __post_init__(self) -> None:
        least, words = {"restarts": 1, "max_iterations": 1}, {"start": ("uniform", "random")}
        check_method(self, least=least, above={"tolerance": 0}, choices=words)
        if isinstance(self.structure, str) and self.structure not in STRUCTURES:
            known = ", ".join(repr(s) for s in STRUCTURES)
            raise ModelError(f"structure of MeanField must be {known} or sets of variables, got {self.structure!r}")

    def log_partition(
        self,
        graph: FactorGraph,
        evidence: Evidence,
        *,
        running: Running,
        init: Marginals | None = None,
        rng: np.random.Generator | None = None,
    ) -> LogPartition:
        """The bound alone."""
        run = self._run(prepare(graph, evidence, drop_barren=init is None), running, init, rng)
        if run.value == -np.inf:
            _warn_of_nothing_found()
        elif not run.converged:
            warn_not_converged(self.name, len(run.residuals), run.last_residual, self.tolerance)
        return LogPartition(
            log_partition=run.value,
            guarantee="lower",
            **how_it_went(self.name, run, running),
        )

    def marginals(
        self,
        graph: FactorGraph,
        evidence: Evidence,
        *,
        running: Running,
        init: Marginals | None = None,
        rng: np.random.Generator | None = None,
    ) -> Marginals:
        """The marginals of the best distribution found, and the bound it gives."""
        problem = prepare(graph, evidence)
        run = self._run(problem, running, init, rng)
        if run.value == -np.inf:
            _warn_of_nothing_found()
        elif not run.converged:
            warn_not_converged(self.name, len(run.residuals), run.last_residual, self.tolerance)
        values = problem.expand(run.values, 0.0)
        return Marginals(
            graph=graph,
            values=values,
            log_partition=run.value,
            guarantee="lower",
            log_partition_bounds=(run.value, np.inf),
            **how_it_went(self.name, run, running),
            _components=run.components,
            _joint=run.joint,
            _counts=lambda: problem.counts(run.counts()),
        )

    def rows_that_join(self, graph: FactorGraph, clamps: Rows) -> IntArray | None:
        """All of them, where there is one start, the same for all, and clusters are not named."""
        if self.restarts > 1 or self.start == "random" or not isinstance(self.structure, str):
            return None
        return np.zeros(len(clamps), np.int64)

    def _run(self, problem: Problem, running: Running, init: Marginals | None, rng: np.random.Generator | None) -> _Run:
        layout = cluster_layout(problem, clusters_of(problem, self.structure))
        run = _Run(self, problem, layout)
        generator = np.random.default_rng(rng)
        feasible = Feasible.of(problem)
        try:
            for attempt in range(self.restarts):
                running.check(run.value)
                random = attempt > 0 or self.start == "random"
                values = None
                if attempt == 0 and init is not None:
                    values = _values_of(problem, init)
                    if not run.possible(values):
                        values = None
                if values is None:
                    values = _start(problem, feasible, generator if random else None)
                if values is not None:
                    run.ascend(values, running)
        except (TimeoutError, StoppedError):
            run.stopped()
        return run


def _warn_of_nothing_found() -> None:
    warn_caller(
        f"mean_field found no assignment free of hard zeros in {BUDGET} steps back, so its bound is -inf and its "
        "marginals are uniform; junction_tree would settle it"
    )


def _start(problem: Problem, feasible: Feasible, rng: np.random.Generator | None) -> FloatArray | None:
    """Probabilities of every variable's states with no mass on a hard zero; None where no assignment was found."""
    s = problem.structure
    n_values = int(s.value_offsets[-1])
    if rng is None:
        values = TILT ** (np.repeat(s.value_offsets[:-1], s.cardinalities) - np.arange(float(n_values)))
    else:
        values = rng.exponential(size=n_values)
    order = np.arange(s.n_variables) if rng is None else rng.permutation(s.n_variables)
    if feasible.hard.any():
        states = feasible.assignment(values)
        if states is None:
            return None
        values *= feasible.support(states, order)
    return _normalised(s, values)


def _normalised(s: Any, values: FloatArray) -> FloatArray:
    if not len(values):
        return values
    totals = np.add.reduceat(values, s.value_offsets[:-1])
    result: FloatArray = values / np.repeat(totals, s.cardinalities)
    return result


def _values_of(problem: Problem, init: Any) -> FloatArray:
    """The marginals of an earlier answer, on the states that are left."""
    s, graph = problem.structure, problem.graph
    if not isinstance(init, Marginals) or not np.array_equal(
        init.graph.structure.cardinalities, graph.structure.cardinalities
    ):
        raise ModelError("init of mean_field must be an earlier answer to marginals about the same variables")
    as_tables = problem.as_tables.structure
    full = np.ones(int(as_tables.value_offsets[-1]))
    full[: len(init.values)] = init.values
    if problem.reduced is not None:
        full = full[np.repeat(as_tables.value_offsets[:-1], s.cardinalities) + problem.reduced.states]
    # A variable whose old states are all gone starts anew.
    totals = np.add.reduceat(full, s.value_offsets[:-1]) if len(full) else full
    return _normalised(s, np.where(np.repeat(totals, s.cardinalities) > 0, full, 1.0))


@dataclass(eq=False)
class _Run:
    """The best distribution so far over all starts."""

    method: MeanField
    problem: Problem
    layout: ClusterLayout
    residuals: list[float] = field(default_factory=list)
    converged: bool = False
    value: float = -np.inf

    def __post_init__(self) -> None:
        s, at = self.problem.structure, self.layout
        self.values = _normalised(s, np.ones(int(s.value_offsets[-1])))
        self.parts = np.empty(int(at.cell_offsets[-1]))
        fill_parts(at, self.values, self.parts)
        self.terms = np.empty(s.n_factors + s.n_variables)
        self._work = np.empty(len(self.parts)), np.empty(len(self.values)), np.empty(int(at.message_offsets[-1]))
        cost = 20.0 * len(at.part_factor) + 4.0 * float(np.diff(at.cell_offsets).sum())
        n_clusters = len(at.cluster_offsets) - 1
        pieces = max(1, min(n_clusters, int(np.ceil(cost / GRAIN))))
        self.borders = np.linspace(0, n_clusters, pieces + 1).astype(np.int64).tolist()
        self.unfinished: tuple[FloatArray, FloatArray] | None = None

    def bound(self, values: FloatArray, parts: FloatArray) -> float:
        """Expected score plus entropy, which is at most log Z."""
        evidence_bound(
            self.layout, self.problem.potentials.log_tables, self.problem.likelihood, values, parts, self.terms
        )
        return float(self.terms.sum())

    def possible(self, values: FloatArray) -> bool:
        """Whether independent variables with these probabilities avoid all hard zeros."""
        parts = np.empty(len(self.parts))
        fill_parts(self.layout, values, parts)
        return self.bound(values, parts) > -np.inf

    def ascend(self, values: FloatArray, running: Running) -> None:
        """Update cluster after cluster until probabilities converge; keep the result if it is the best so far."""
        parts = np.empty(len(self.parts))
        fill_parts(self.layout, values, parts)
        self.unfinished = values, parts
        converged = False
        tables, held, messages = self._work
        component, active = self._components_of_clusters()
        for _ in range(self.method.max_iterations):
            old = values.copy()
            moving = active[component]
            for begin, end in zip(self.borders[:-1], self.borders[1:], strict=True):
                if not update_clusters(
                    self.layout, begin, end, moving, self.problem.potentials.log_tables, self.problem.likelihood,
                    values, parts, tables, held, messages,
                ):  # fmt: skip
                    raise self.problem.impossible()
                running.check(self.value)
            changes = self._changes(np.abs(values - old), component, len(active))
            self.residuals.append(float(changes.max(initial=0.0)))
            active &= changes > self.method.tolerance
            if not active.any():
                converged = True
                break
        self.unfinished = None
        self._keep(values, parts, converged)

    def _components_of_clusters(self) -> tuple[IntArray, npt.NDArray[np.bool_]]:
        """The connected component of each cluster, and that all of them move; small graphs are taken as one.

        So is everything where a user's own clusters might join components.
        """
        at = self.layout
        if self.problem.structure.n_variables < LARGE or not isinstance(self.method.structure, str):
            return np.zeros(len(at.cluster_offsets) - 1, np.int64), np.ones(1, np.bool_)
        label, n = component_labels(self.problem.as_tables.structure)
        return label[at.cluster_variables[at.cluster_offsets[:-1]]].astype(np.int64), np.ones(n, np.bool_)

    def _changes(self, moved: FloatArray, component: IntArray, n: int) -> FloatArray:
        """The largest change of a probability in each component."""
        if n == 1 or not len(moved):
            return np.full(n, moved.max(initial=0.0))
        at = self.layout
        changes = np.zeros(n)
        owner = np.repeat(component, np.diff(at.cluster_offsets))
        np.maximum.at(changes, owner, np.maximum.reduceat(moved, at.value_offsets[:-1])[at.cluster_variables])
        return changes

    def _keep(self, values: FloatArray, parts: FloatArray, converged: bool) -> None:
        bound = self.bound(values, parts)
        if bound > self.value:
            self.value, self.values, self.parts, self.converged = bound, values, parts, converged

    def stopped(self) -> None:
        """Past a time limit: whatever the present start has reached counts as well."""
        if self.unfinished is not None:
            self._keep(*self.unfinished, False)
        self.converged = False

    @property
    def last_residual(self) -> float:
        """The largest change of a probability in the last sweep."""
        return self.residuals[-1] if self.residuals else float("inf")

    def components(self) -> Components:
        """The connected components, each with its own bound."""
        self.bound(self.values, self.parts)
        m, sweeps = self.problem.structure.n_factors, max(1, len(self.residuals))
        return self.problem.components(self.terms[:m], self.terms[m:], converged=self.converged, iterations=sweeps)

    def counts(self) -> FloatArray:
        """Expected counts of the reduced pool under the factorised distribution."""
        counts = np.zeros(len(self.problem.potentials.log_tables))
        pool_counts(self.layout, self.parts, counts)
        return counts

    def joint(self, positions: tuple[int, ...]) -> FloatArray:
        """Joint distribution: a product over clusters, of variables that share a factor where they share a cluster."""
        s, at = self.problem.structure, self.layout
        owner = np.empty(s.n_variables, np.int64)
        owner[at.cluster_variables] = np.repeat(np.arange(len(at.cluster_offsets) - 1), np.diff(at.cluster_offsets))
        free = [v for v in dict.fromkeys(positions) if s.cardinalities[v] > 1]
        table, axes = np.ones(()), []
        for c in dict.fromkeys(owner[free].tolist()):
            members = [v for v in free if owner[v] == c]
            table = np.multiply.outer(table, self._within(members))
            axes += members
        table = table.transpose([axes.index(v) for v in free])
        table = table.reshape([int(s.cardinalities[v]) for v in positions])
        return self.problem.expand_joint(table, positions)

    def _within(self, members: list[int]) -> FloatArray:
        s, at = self.problem.structure, self.layout
        if len(members) == 1:
            return self.values[s.value_offsets[members[0]] : s.value_offsets[members[0] + 1]]
        for p in at.cluster_parts.tolist():
            scope = at.member_variable[at.member_offsets[p] : at.member_offsets[p + 1]].tolist()
            if set(members) <= set(scope):
                cells = self.parts[at.cell_offsets[p] : at.cell_offsets[p + 1]]
                table = cells.reshape([int(s.cardinalities[v]) for v in scope])
                table = table.sum(axis=tuple(a for a, v in enumerate(scope) if v not in members))
                kept = [v for v in scope if v in members]
                return table.transpose([kept.index(v) for v in members])
        names = ", ".join(repr(self.problem.graph.variables[v]) for v in members)
        raise ModelError(
            f"mean_field has a joint distribution of variables of one cluster only where a factor holds them, "
            f"not of {names}: use junction_tree"
        )
