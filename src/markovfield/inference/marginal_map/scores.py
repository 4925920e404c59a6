"""The marginal score of an assignment: what is left to sum falls into components once these are fixed."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from markovfield.arrays import FloatArray, States
from markovfield.exceptions import ImpossibleEvidenceError, MemoryLimitError
from markovfield.factors.factor_graph import FactorGraph
from markovfield.factors.factor_kinds import TABLE
from markovfield.inference.core.evidence import Evidence
from markovfield.inference.core.running import Running
from markovfield.inference.junction_tree.junction_tree import JunctionTree
from markovfield.inference.marginal_map.reduction import SummedOut, compact, subset, sum_out
from markovfield.inference.mini_bucket.mini_bucket import MiniBucket

__all__ = ["MarginalScores"]

# Cells of a table, and of all tables, up to which a component is summed in NumPy, for all states of a variable at once.
SMALL, SMALL_WORK = 2.0**16, 2.0**20
# Clique states that summing one component once may take: some tenths of a second. Beyond, its sum is bounded.
WORK_LIMIT = 2.0**26
# Sums that are remembered for each component.
REMEMBERED = 2**14


@dataclass(eq=False)
class _Component:
    """Variables to be summed that hang together once the maximised ones are fixed; ``border`` are those they meet."""

    graph: FactorGraph
    evidence: Evidence
    border: npt.NDArray[np.int64]
    known: dict[bytes, tuple[float, bool]] = field(default_factory=dict)
    small: bool = True


class MarginalScores:
    """Scores of assignments of the maximised variables: sums by elimination, or bounds on them from below.

    Parameters
    ----------
    reduced
        The problem; nothing need be left of it to sum.
    running
        Of all that is done here; it may raise.
    """

    def __init__(self, reduced: SummedOut, running: Running) -> None:
        self.graph, self.evidence, self.running = reduced.graph, reduced.evidence, running
        s = reduced.graph.structure
        open_ = np.zeros(s.n_variables, np.bool_)
        open_[reduced.left] = True
        self.open = open_
        owner = np.repeat(np.arange(s.n_factors), np.diff(s.scope_offsets))
        touched = np.zeros(s.n_factors, np.bool_)
        touched[owner[open_[s.scopes]]] = True
        self.fixed = FactorGraph(subset(s, np.flatnonzero(~touched)), reduced.graph.log_tables)
        self.components = list(self._split(reduced, owner, touched))
        self.free = np.flatnonzero((s.cardinalities > 1) & ~open_ & (reduced.evidence.states < 0))
        self.components_of: dict[int, list[_Component]] = {}
        for component in self.components:
            for v in component.border.tolist():
                self.components_of.setdefault(v, []).append(component)
        self.factors_of: dict[int, list[int]] = {}
        self.structured_of: dict[int, FactorGraph] = {}
        f = self.fixed.structure
        owner = np.repeat(np.arange(f.n_factors), np.diff(f.scope_offsets))
        for v in self.free.tolist():
            mine = owner[f.scopes == v]
            self.factors_of[v] = mine[f.kind[mine] == TABLE].tolist()
            other = mine[f.kind[mine] != TABLE]
            if len(other):
                self.structured_of[v] = FactorGraph(subset(f, other), self.fixed.log_tables)

    def _split(
        self, reduced: SummedOut, owner: npt.NDArray[np.int64], touched: npt.NDArray[np.bool_]
    ) -> list[_Component]:
        """Connected components of what is left to sum, with the factors that speak of them."""
        from scipy.sparse import coo_matrix
        from scipy.sparse.csgraph import connected_components

        s = reduced.graph.structure
        n, m = s.n_variables, s.n_factors
        inside = self.open[s.scopes]
        edges = (np.ones(int(inside.sum())), (s.scopes[inside], n + owner[inside]))
        _, label = connected_components(coo_matrix(edges, shape=(n + m, n + m)), directed=False)
        components = []
        for mark in np.unique(label[reduced.left]).tolist():
            factors = np.flatnonzero((label[n:] == mark) & touched)
            graph = compact(reduced.graph, factors)
            met = np.unique(graph.structure.scopes)
            # Variables of other components would each be summed over their states.
            states = np.where(reduced.evidence.states >= 0, reduced.evidence.states, 0).astype(np.int32)
            states[np.flatnonzero(self.open & (label[:n] == mark))] = -1
            components.append(_Component(graph, Evidence(states), met[~self.open[met]].astype(np.int64)))
        return components

    def start(self, states: States) -> States:
        """Given states with those of observed variables put right, and of summed ones at zero."""
        states = np.where(self.evidence.states >= 0, self.evidence.states, states).astype(np.int32)
        states[self.open] = 0
        return states

    def score(self, states: States) -> tuple[float, bool]:
        """The marginal score of an assignment, less the constant, and whether it is exact or a lower bound."""
        value = float(self.fixed.score(states)) + self._likelihood(states)
        exact = True
        for component in self.components:
            if value == -np.inf:
                break
            own, sure = self._sum(component, states)
            value, exact = value + own, exact and sure
        return value, exact

    def _likelihood(self, states: States) -> float:
        return self.evidence.log_likelihood(states)

    def conditional(self, states: States, v: int) -> FloatArray:
        """For each state of a variable, what its factors and components come to, the others as they are."""
        card = int(self.graph.structure.cardinalities[v])
        total = np.zeros(card)
        for f in self.factors_of.get(v, []):
            total += _slice(self.fixed, f, states, v)
        if v in self.structured_of:
            rows = np.repeat(states[None], card, axis=0)
            rows[:, v] = np.arange(card)
            total += self.structured_of[v].score(rows)
        for u, vector in self.evidence.likelihoods:
            if u == v:
                total += vector
        for component in self.components_of.get(v, []):
            total += self._all_states(component, states, v, np.isfinite(total))
        return total

    def _all_states(self, component: _Component, states: States, v: int, wanted: npt.NDArray[np.bool_]) -> FloatArray:
        """Sums of a component for the states of one variable that are wanted."""
        if component.small and len(wanted) > 2:
            maximised = ~self.open
            known = component.evidence.states.copy()
            known[component.border] = states[component.border]
            known[v] = -1
            try:
                found = sum_out(
                    component.graph, Evidence(known), maximised, largest=SMALL, work=SMALL_WORK, running=self.running
                )
            except ImpossibleEvidenceError:
                return np.full(len(wanted), -np.inf)
            if not len(found.left):
                out = np.full(len(wanted), found.constant)
                for f in range(found.graph.n_factors):
                    out += found.graph.table(f) if v in found.graph.structure.scope(f) else 0.0
                return out
            component.small = False
        out = np.full(len(wanted), -np.inf)
        trial = states.copy()
        for k in np.flatnonzero(wanted).tolist():
            trial[v] = k
            out[k] = self._sum(component, trial)[0]
            self.running.check()
        return out

    def _sum(self, component: _Component, states: States) -> tuple[float, bool]:
        """log of the sum over a component, and whether it is exact; else a bound from below."""
        key = states[component.border].tobytes()
        found = component.known.get(key)
        if found is None:
            known = component.evidence.states.copy()
            known[component.border] = states[component.border]
            known.flags.writeable = False
            if len(component.known) >= REMEMBERED:
                component.known.clear()
            found = component.known[key] = self._summed(component, Evidence(known))
        return found

    def _summed(self, component: _Component, known: Evidence) -> tuple[float, bool]:
        try:
            engine = JunctionTree(work_limit=WORK_LIMIT, search=0.0)
            return float(engine.log_partition(component.graph, known, running=self.running)), True
        except ImpossibleEvidenceError:
            return -np.inf, True
        except MemoryLimitError:
            component.small = False
        try:
            with warnings.catch_warnings():
                # A bound holds whether or not it has converged.
                warnings.filterwarnings("ignore", message=".* did not converge")
                bounds = MiniBucket(max_iterations=10).log_partition(component.graph, known, running=self.running)
        except ImpossibleEvidenceError:
            return -np.inf, True
        return bounds.log_partition_bounds[0], bounds.guarantee == "exact"


def _slice(graph: FactorGraph, f: int, states: States, v: int) -> FloatArray:
    """What a plain table comes to for each state of one of its variables, the others as they are."""
    s = graph.structure
    scope, strides = s.scope(f), s.strides(f)
    at = s.table_offsets[f] + (strides * np.where(scope == v, 0, states[scope])).sum()
    return graph.log_tables[at + strides[scope == v].sum() * np.arange(int(s.cardinalities[v]))]
