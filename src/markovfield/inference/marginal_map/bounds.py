"""Upper bounds on marginal MAP by weighted mini-buckets: power sums of weight one for sums, near zero for maxima."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from markovfield.arrays import FloatArray
from markovfield.exceptions import MemoryLimitError, StoppedError
from markovfield.factors.factor_graph import FactorGraph
from markovfield.inference.core.limits import format_bytes, memory_limit_bytes
from markovfield.inference.core.running import Running
from markovfield.inference.junction_tree.plan import find_order
from markovfield.inference.marginal_map.reduction import SummedOut, assemble
from markovfield.inference.mini_bucket.bounds import Buckets
from markovfield.inference.mini_bucket.plan import BucketPlan, plan_buckets
from markovfield.inference.problem.problem import Problem, prepare

__all__ = ["I_BOUNDS", "MixedBuckets"]

# Sizes of mini-buckets; taken is the largest that makes few enough cells in all.
I_BOUNDS = (3, 4, 6, 8, 10, 12, 14)
LEAST_STATES = 2.0**16
# The weights of maxima start at one and fall by this factor; so many iterations of tightening at each.
COOLING, COOLINGS, ITERATIONS = 0.4, 8, 8


class MixedBuckets:
    """Mini-buckets of a marginal MAP problem: what is summed is eliminated first (Liu and Ihler 2013).

    A power sum of any positive weight is at least the maximum, so every stage of cooling bounds the best marginal
    score from above, and the last one has maxima.

    Parameters
    ----------
    i_bounds, most_cells
        Sizes of mini-buckets to choose from, rising, and how many cells they may have together: the largest that fits
        is taken, or else the smallest.
    """

    def __init__(
        self,
        reduced: SummedOut,
        i_bounds: Sequence[int],
        most_cells: float,
        memory_limit: str | int | None,
        running: Running,
    ) -> None:
        self.reduced, self.running = reduced, running
        self.problem = prepare(reduced.graph, reduced.evidence)
        s = self.problem.structure
        summed = np.zeros(s.n_variables, np.bool_)
        summed[reduced.left] = True
        self.plan = _plan(self.problem, summed, i_bounds, most_cells, memory_limit_bytes(memory_limit), running)
        self.buckets = Buckets(self.problem, self.plan)
        counts = np.diff(self.plan.layout.bucket_offsets)
        # Of each mini-bucket: whether its variable is summed.
        self.summed = np.repeat(summed[self.plan.order], counts)
        self.bound = np.inf
        self.weights = self.buckets.shares()
        self.shifts = np.zeros(len(self.buckets.moments))

    def start(self) -> None:
        """A first bound: that of sums over everything."""
        self.bound, self.shifts = self.buckets.match(self.weights, 1.0, self.running)
        if self.bound == -np.inf:
            raise self.problem.impossible()

    def cool(self, running: Running) -> None:
        """Tighten while the weights of maxima fall; stopped, the bound so far stands."""
        temperature = 1.0
        weights = self.weights
        try:
            if self.plan.n_split:
                for _ in range(COOLINGS):
                    temperature *= COOLING
                    found = self.buckets.tighten(
                        self.shifts,
                        np.where(self.summed, weights, temperature * self.buckets.shares()),
                        sign=-1.0,
                        max_iterations=ITERATIONS,
                        tolerance=1e-3,
                        running=running,
                    )
                    self.shifts, weights = found.shifts, found.weights
                    self.bound = min(self.bound, found.bound)
                    self._look(weights, running)
            else:
                self._look(weights, running)
        except (TimeoutError, StoppedError):
            # What has been moved stays moved: any shifts and weights give a bound.
            pass

    def _look(self, weights: FloatArray, running: Running) -> None:
        """The bound of maxima."""
        self.weights = np.where(self.summed, weights, 0.0)
        self.bound = min(self.bound, self.buckets.forward(self.shifts, self.weights, running))

    def states(self) -> npt.NDArray[np.int32]:
        """States read off the buckets, after `cool`."""
        self.buckets.forward(self.shifts, self.weights, Running())
        return self.problem.states(self.buckets.decode())

    def relaxed(self) -> FactorGraph:
        """Plain MAP whose scores are upper bounds of the marginal ones: what the summed buckets send, as tables."""
        self.buckets.forward(self.shifts, self.weights, Running())
        lay, order = self.plan.layout, self.plan.order
        parent = np.full(len(self.summed), -1, np.int64)
        parent[lay.children] = np.repeat(np.arange(len(self.summed)), np.diff(lay.child_offsets))
        tables = []
        constant = 0.0
        for k in np.flatnonzero(self.summed).tolist():
            if parent[k] >= 0 and self.summed[parent[k]]:
                continue
            axes = slice(int(lay.axis_offsets[k]) + 1, int(lay.axis_offsets[k + 1]))
            scope = order[lay.axis_variable[axes]]
            table = self.buckets.messages[lay.message_offsets[k] : lay.message_offsets[k + 1]]
            if not len(scope):
                constant += float(table[0])
                continue
            tables.append(self._on_all_states(scope, table.reshape(lay.axis_card[axes])))
        graph = self.reduced.graph
        s = graph.structure
        open_ = np.zeros(s.n_variables, np.bool_)
        open_[self.reduced.left] = True
        owner = np.repeat(np.arange(s.n_factors), np.diff(s.scope_offsets))
        kept = np.ones(s.n_factors, np.bool_)
        kept[owner[open_[s.scopes]]] = False
        cards = np.where(open_, 1, s.cardinalities).astype(np.int64)
        self.constant = constant
        return assemble(graph, np.flatnonzero(kept), tables, cards)

    def _on_all_states(self, scope: npt.NDArray[np.int64], table: FloatArray) -> tuple[tuple[int, ...], FloatArray]:
        """A message over possible states, put among all states of its variables."""
        reduced, cards = self.problem.reduced, self.problem.as_tables.structure.cardinalities
        table = table.copy()
        if reduced is not None and tuple(cards[scope]) != table.shape:
            out = np.full(tuple(cards[scope]), -np.inf)
            at = [reduced.states[reduced.state_offsets[v] : reduced.state_offsets[v + 1]] for v in scope.tolist()]
            out[np.ix_(*at)] = table
            table = out
        order = np.argsort(scope, kind="stable")
        return tuple(scope[order].tolist()), np.ascontiguousarray(table.transpose(order))


def _plan(
    problem: Problem,
    summed: npt.NDArray[np.bool_],
    i_bounds: Sequence[int],
    most_cells: float,
    memory_limit: float,
    running: Running,
) -> BucketPlan:
    """The largest mini-buckets whose cells are few enough; summed variables are eliminated first."""
    s = problem.structure
    order, _, _, log2_states = find_order(s, stage=(~summed).astype(np.int8), search=0.0)
    if log2_states == np.inf and not len(order):
        degree = np.bincount(s.scopes, minlength=s.n_variables)
        free = np.flatnonzero(s.cardinalities > 1)
        order = free[np.lexsort((degree[free], ~summed[free]))]
    plans: dict[int, BucketPlan] = {}

    def cells(i_bound: int) -> float:
        running.check()
        plans[i_bound] = plan_buckets(
            s,
            problem.active,
            np.asarray(order, np.int64),
            i_bound=i_bound,
            max_states=max(LEAST_STATES, 2.0 ** (i_bound + 1)),
            memory_limit=np.inf,
            running=running,
        )
        return float(plans[i_bound].layout.table_offsets[-1])

    # Of the smallest at least; cells grow with the size, nearly always.
    fits = max(1, bisect_right(i_bounds, most_cells, key=cells)) if len(i_bounds) > 1 else 1
    i_bound = i_bounds[fits - 1]
    if i_bound not in plans:
        cells(i_bound)
    plan = plans[i_bound]
    if plan.log2_bytes > np.log2(memory_limit):
        raise MemoryLimitError(
            f"mini-buckets of at most {plan.width + 1} variables need about {format_bytes(plan.log2_bytes)}, while "
            f"memory_limit is {format_bytes(np.log2(memory_limit))}: raise memory_limit"
        )
    return plan
