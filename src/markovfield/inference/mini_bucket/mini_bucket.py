"""Weighted mini-bucket elimination: bounds on log Z and on the best score whose tightness is paid for in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, ClassVar, TypeVar

import numpy as np
import numpy.typing as npt

from markovfield._validation import check_method
from markovfield.arrays import FloatArray
from markovfield.exceptions import MemoryLimitError, ModelError, StoppedError
from markovfield.factors.factor_graph import FactorGraph
from markovfield.factors.remembered import Shelf
from markovfield.inference.core.answers import Guarantee, LogPartition, Marginals
from markovfield.inference.core.convergence import warn_not_converged
from markovfield.inference.core.decodings import Decoding, decoding_of_states
from markovfield.inference.core.evidence import Evidence
from markovfield.inference.core.limits import memory_limit_bytes
from markovfield.inference.core.running import STOPS, Running
from markovfield.inference.local_search.incumbent import stopped_decoding
from markovfield.inference.mini_bucket.bounds import Buckets, Tightened
from markovfield.inference.mini_bucket.cutset import Cutset
from markovfield.inference.mini_bucket.plan import BucketPlan, Fill, find_fill, order_by_mini_buckets, plan_buckets
from markovfield.inference.mini_bucket.search import Search
from markovfield.inference.problem.problem import Problem, prepare
from markovfield.names import VariableName

__all__ = ["MiniBucket"]

T = TypeVar("T")
_PLANS: Shelf[Any] = Shelf(8)
_FILLS: Shelf[Fill] = Shelf(8)
# Mini-buckets of many-valued variables stop at this many states unless i_bound asks for more.
LEAST_STATES = 2.0**16
# Orders of more variables than this are made once only; others again, with cuts of this size in view, too.
MORE_ORDERS = 50_000
SMALL = 2
# The share of the time after which an upper bound is not tightened any more.
UPPER_SHARE = 0.6
# Iterations after which one way to cut is taken and the others are dropped.
PROBE = 8


@dataclass(frozen=True)
class MiniBucket:
    """Weighted mini-bucket elimination with moment matching: upper and lower bounds (Liu and Ihler 2011).

    Variables are eliminated one by one. Where the functions that meet in a variable's bucket would make too large a
    table, they are cut into mini-buckets, each eliminated by itself by a power sum; Hoelder's inequality makes the
    result an upper bound on log Z when the weights of a variable are positive and sum to one, and a lower bound when
    all but one are negative. Potential is moved between the mini-buckets of a variable until they agree on what they
    have in common, and weight along with it: every iteration leaves true bounds, each tighter than before. Where no
    bucket is cut the answer is exact.

    Hard zeros make the lower bound of negative weights weak, so a second one is taken as well: some variables are fixed
    at likely values, such that the others can be summed exactly within the same ``i_bound``. The better of both counts.

    Time and memory are linear in the states of all mini-buckets, at most ``max_states`` for each.

    Parameters
    ----------
    i_bound
        A mini-bucket has at most ``i_bound + 1`` variables (its message, at most ``i_bound``); a single factor may have
        more. From the width of the order on, answers are exact. Several orders, and smaller mini-buckets, are tried
        for a few iterations each, and the best taken.
    max_states
        And at most this many states; None is 2^16, or ``2**(i_bound + 1)`` if that is more, which binary models never
        feel.
    max_iterations
        Of tightening, for each bound; 0 is one pass that matches moments on its way.
    tolerance
        Tightening ends when an iteration gains less than this, in nats.
    memory_limit
        Bytes, or like ``"4GiB"``; None is 8 GiB, or four fifths of the container's memory if that is less. A plan that
        needs more raises `MemoryLimitError` before allocating.
    order
        Elimination order by variable name; when None several are made, and the best taken.
    search, seed
        How long to search for a better order than the greedy ones, as a multiple of what exact methods would take, and
        the seed of that search.

    Examples
    --------
    >>> from itertools import combinations
    >>> import markovfield as mf
    >>> net = mf.MarkovNetwork(dict.fromkeys("ABCD", 2))
    >>> _ = net.add_factors(combinations("ABCD", 2), [[2.0, 1.0], [1.0, 3.0]])
    >>> exact = float(mf.log_partition(net))
    >>> answer = mf.log_partition(net, method=mf.methods.MiniBucket(i_bound=1))
    >>> low, high = answer.log_partition_bounds
    >>> low < exact < high, answer.guarantee
    (True, 'upper')
    >>> bool(np.isclose(float(mf.log_partition(net, method=mf.methods.MiniBucket(i_bound=3))), exact))
    True
    """

    i_bound: int = 10
    max_states: int | None = None
    max_iterations: int = 100
    tolerance: float = 1e-3
    memory_limit: str | int | None = None
    order: tuple[VariableName, ...] | None = None
    search: float = 0.0
    seed: int = 0

    name: ClassVar[str] = "mini_bucket"
    exact: ClassVar[bool] = False
    verbs: ClassVar[frozenset[str]] = frozenset({"marginals", "decode", "log_partition"})
    abilities: ClassVar[frozenset[str]] = frozenset({"init"})

    def __post_init__(self) -> None:
        if self.order is not None and not isinstance(self.order, tuple):
            object.__setattr__(self, "order", tuple(self.order))
        least = {"i_bound": 1, "max_iterations": 0, "max_states": 1, "search": 0, "seed": 0, "tolerance": 0}
        check_method(self, least=least)
        memory_limit_bytes(self.memory_limit)

    # ---- planning -------------------------------------------------------------------------------------------------

    @property
    def most_states(self) -> float:
        """How many states a mini-bucket may have."""
        if self.max_states is not None:
            return float(self.max_states)
        return max(LEAST_STATES, 2.0 ** (self.i_bound + 1))

    def plans(self, problem: Problem, running: Running, most: int | None = None) -> tuple[BucketPlan, ...]:
        """A few ways to cut, ``most`` at most; kept with the structure they came from."""
        settings = (self.i_bound, self.most_states, self.memory_limit, most)
        return self._kept(_PLANS, problem, settings, lambda: self._make_plans(problem, running, most))

    def fill(self, problem: Problem) -> Fill:
        """The order of exact elimination; kept likewise."""
        return self._kept(_FILLS, problem, (), lambda: self._find_fill(problem))

    def _kept(self, shelf: Shelf[T], problem: Problem, settings: tuple[Any, ...], make: Callable[[], T]) -> T:
        s = problem.structure
        key = (
            (*settings, self.order, self.search, self.seed),
            s.cardinalities.tobytes(),
            s.scope_offsets.tobytes(),
            s.scopes.tobytes(),
            s.table_strides.tobytes(),
            problem.active.tobytes(),
        )
        return shelf.get(problem.as_tables.structure, key, make)

    def log2_cells(self, graph: FactorGraph, evidence: Evidence) -> float:
        """log2 of the cells of all mini-buckets, in the order of exact elimination: what one pass walks over."""
        problem = prepare(graph, evidence)
        plan = plan_buckets(
            problem.structure,
            problem.active,
            self.fill(problem).order,
            i_bound=self.i_bound,
            max_states=self.most_states,
            memory_limit=np.inf,
            running=Running(),
        )
        return float(np.log2(max(1, plan.layout.table_offsets[-1])))

    def _find_fill(self, problem: Problem) -> Fill:
        return find_fill(problem.structure, self._order(problem), self.search, self.seed)

    def _make_plans(self, problem: Problem, running: Running, most: int | None) -> tuple[BucketPlan, ...]:
        s = problem.structure
        limits: dict[str, Any] = {
            "max_states": self.most_states,
            "memory_limit": memory_limit_bytes(self.memory_limit),
        }
        plans: list[BucketPlan] = []
        refusal: MemoryLimitError | None = None
        for order, i_bound in islice(self._orders(problem, self.fill(problem), running), most):
            try:
                plans.append(plan_buckets(s, problem.active, order, i_bound=i_bound, running=running, **limits))
            except MemoryLimitError as error:
                refusal = refusal or error
                continue
            if not plans[-1].n_split:
                return (plans[-1],)
        if refusal is not None and not plans:
            raise refusal
        return tuple(plans)

    def _orders(self, problem: Problem, fill: Fill, running: Running) -> Iterator[tuple[npt.NDArray[np.int64], int]]:
        """Orders and bounds on cuts to try: the order of exact elimination, and those made with cuts in view.

        Larger mini-buckets fill in more, so now and then an order for small ones, or small ones themselves, do better.
        """
        yield fill.order, self.i_bound
        if self.order is None and len(fill.order) <= MORE_ORDERS:
            yield order_by_mini_buckets(problem.structure, self.i_bound, self.most_states, running), self.i_bound
            if self.i_bound > SMALL:
                small = order_by_mini_buckets(problem.structure, SMALL, self.most_states, running)
                yield small, self.i_bound
                yield small, SMALL

    def _order(self, problem: Problem) -> list[int] | None:
        if self.order is None:
            return None
        given = problem.graph.names.positions(self.order)
        if len(set(given)) != problem.graph.n_variables:
            raise ModelError(f"order names {len(set(given))} of {problem.graph.n_variables} variables")
        # Auxiliary variables of structured factors are not the user's to order: they go first.
        return [*range(problem.graph.n_variables, problem.structure.n_variables), *given]

    # ---- verbs ----------------------------------------------------------------------------------------------------

    def log_partition(
        self, graph: FactorGraph, evidence: Evidence, *, running: Running, init: Any = None
    ) -> LogPartition:
        """Upper bound on log Z, with the lower one beside it."""
        buckets, upper = self._upper(prepare(graph, evidence, drop_barren=init is None), running, init)
        lower, powers = self._lower(buckets, upper, running)
        return LogPartition(
            log_partition=upper.bound,
            bounds=(min(lower, upper.bound), upper.bound),
            **self._details(buckets.plan, upper, powers, running),
        )

    def marginals(self, graph: FactorGraph, evidence: Evidence, *, running: Running, init: Any = None) -> Marginals:
        """Derivatives of the upper bound as approximate marginals, and both bounds on log Z."""
        problem = prepare(graph, evidence)
        buckets, upper = self._upper(problem, running, init)
        lower, powers = self._lower(buckets, upper, running)
        buckets.forward(upper.shifts, upper.weights, Running())
        buckets.backward(upper.weights, Running())
        beliefs = buckets.marginals(upper.weights)
        values = problem.expand(beliefs, 0.0)

        def joint(positions: tuple[int, ...]) -> FloatArray:
            return _joint(buckets, beliefs, positions)

        def counts() -> FloatArray:
            return problem.counts(buckets.counts())

        return Marginals(
            graph=graph,
            values=values,
            log_partition=upper.bound,
            log_partition_bounds=(min(lower, upper.bound), upper.bound),
            _joint=joint,
            _counts=counts,
            _state=(buckets.plan.key, upper.shifts, upper.weights),
            **self._details(buckets.plan, upper, powers, running),
        )

    def _details(self, plan: BucketPlan, upper: Tightened, lower: Tightened | None, running: Running) -> dict[str, Any]:
        guarantee: Guarantee = "upper" if plan.n_split else "exact"
        converged = upper.converged and (lower is None or lower.converged)
        if not converged:
            slower = lower if upper.converged and lower is not None else upper
            last = slower.gains[-1] if slower.gains else np.inf
            warn_not_converged(self.name, len(slower.gains), last, self.tolerance)
        return {
            "guarantee": guarantee,
            "method": self.name,
            "converged": converged,
            "iterations": len(upper.gains),
            "residuals": upper.gains,
            "seconds": running.seconds,
            "width": plan.width,
        }

    def best_buckets(
        self, problem: Problem, temperature: float, running: Running, init: Any = None
    ) -> tuple[Buckets, Tightened]:
        """Of the ways to cut, the one whose bound is lowest after a few iterations, and where those ended.

        At temperature 0 (maxima) one pass decides. With ``init`` the mini-buckets are those of the earlier answer.
        """
        # One pass of maxima says too little of the later ways, which are for small mini-buckets.
        plans = self.plans(problem, running, 2 if temperature == 0.0 else None)
        if init is not None:
            plans = tuple(p for p in plans if _earlier(init)[0] == p.key)
            if not plans:
                raise ModelError("init of mini_bucket comes from a model or settings with other mini-buckets")
        best: tuple[BucketPlan, Tightened] | None = None
        for plan in plans:
            try:
                # Tables are not kept: those of two ways to cut would take twice the memory that was promised.
                found = self._start(Buckets(problem, plan, running), temperature, running, init)
            except STOPS as stop:
                # Decoding, which alone asks at temperature 0, answers Ctrl-C with what it has.
                if best is None or (temperature and isinstance(stop, KeyboardInterrupt)):
                    raise
                running.remember(stop)
                break
            if best is None or found.bound < best[1].bound:
                best = plan, found
        assert best is not None
        return Buckets(problem, best[0]), best[1]

    def _start(self, buckets: Buckets, temperature: float, running: Running, init: Any) -> Tightened:
        """A first bound, and at a positive temperature the first iterations."""
        weights = buckets.shares()
        bound, shifts = buckets.match(weights, temperature, running)
        if bound == -np.inf:
            raise buckets.problem.impossible()
        if temperature == 0.0:
            return Tightened(bound, shifts, weights, (), not buckets.plan.n_split)
        if init is not None:
            _, moved, given = _earlier(init)
            start = buckets.forward(moved, given, running)
            if start <= bound:
                bound, shifts, weights = start, moved, given
            else:
                bound = buckets.forward(shifts, weights, running)
        return buckets.tighten(
            shifts,
            weights,
            sign=-1.0,
            max_iterations=min(PROBE, self.max_iterations),
            tolerance=self.tolerance,
            running=running,
            bound=bound,
        )

    def _upper(self, problem: Problem, whole: Running, init: Any) -> tuple[Buckets, Tightened]:
        """The upper bound, tightened for a part of the time: the lower one needs some, too."""
        buckets, first = self.best_buckets(problem, 1.0, whole, init)
        running = whole
        if whole.time_limit is not None:
            running = replace(whole, time_limit=UPPER_SHARE * whole.time_limit, _stops=[])
        left = self.max_iterations - len(first.gains)
        if first.converged or not left:
            return buckets, first
        try:
            found = buckets.tighten(
                first.shifts,
                first.weights,
                sign=-1.0,
                max_iterations=left,
                tolerance=self.tolerance,
                running=running,
            )
        except (TimeoutError, StoppedError):
            return buckets, first
        return buckets, replace(found, gains=first.gains + found.gains)

    def _lower(self, buckets: Buckets, upper: Tightened, running: Running) -> tuple[float, Tightened | None]:
        """The better of both lower bounds, and the one of negative weights (None where nothing was cut)."""
        if not buckets.plan.n_split:
            return upper.bound, None
        best = -np.inf
        try:
            best = self.cutset(buckets, upper.shifts, upper.weights, running).bound()
            shifts, weights = buckets.lower_start(upper)
            powers = buckets.tighten(
                shifts,
                weights,
                sign=1.0,
                max_iterations=self.max_iterations,
                tolerance=self.tolerance,
                running=running,
            )
        except (TimeoutError, StoppedError):
            return best, Tightened(-np.inf, upper.shifts, upper.weights, (), False)
        return max(best, powers.bound), powers

    def cutset(
        self,
        buckets: Buckets,
        shifts: FloatArray,
        weights: FloatArray,
        running: Running,
        states: npt.NDArray[np.int32] | None = None,
    ) -> Cutset:
        """Variables to fix, at given states or those read off the buckets, chosen by what shifts and weights say."""
        problem = buckets.problem
        buckets.forward(shifts, weights, running)
        if states is None:
            states = problem.states(buckets.decode())
        buckets.backward(weights, running)
        return Cutset(
            problem,
            self.fill(problem),
            states,
            problem.expand(buckets.marginals(weights), 0.0),
            i_bound=self.i_bound,
            max_states=self.most_states,
            memory_limit=self.memory_limit,
            running=running,
        )

    def decode(self, graph: FactorGraph, evidence: Evidence, *, running: Running, init: Any = None) -> Decoding:
        """An assignment read off the buckets, and how far from the best score it can be."""
        if init is not None:
            raise ModelError("mini_bucket decodes from the start and takes no init; it does for marginals")
        problem = prepare(graph, evidence)
        try:
            search = Search(self, problem, running)
        except STOPS as stop:
            return stopped_decoding(self.name, problem, running, stop)
        search.cool()
        if search.score == -np.inf and search.stop is not None:
            quick = stopped_decoding(self.name, problem, running, search.stop)
            return replace(quick, gap=max(0.0, search.bound - quick.score))
        gap = max(0.0, search.bound - search.score)
        converged = search.converged or search.close
        if not converged:
            last = search.gains[-1] if search.gains else np.inf
            warn_not_converged(self.name, len(search.gains), last, self.tolerance)
        return decoding_of_states(
            graph,
            [(search.states, search.score)],
            gap=gap,
            tolerance=search.tolerance,
            guarantee="exact" if search.close else "lower",
            method=self.name,
            converged=converged,
            iterations=len(search.gains),
            residuals=tuple(search.gains),
            seconds=running.seconds,
            width=search.buckets.plan.width,
        )


def _earlier(init: Any) -> tuple[bytes, FloatArray, FloatArray]:
    """What an earlier answer moved; zeros of its tables need not be zeros of these, so what they barred is freed."""
    state = getattr(init, "_state", None)
    if getattr(init, "method", None) != MiniBucket.name or state is None:
        raise ModelError("init of mini_bucket must be an answer of mf.marginals by mini_bucket")
    key, shifts, weights = state
    return key, np.where(np.isneginf(shifts), 0.0, shifts), weights.copy()


def _joint(buckets: Buckets, beliefs: FloatArray, positions: tuple[int, ...]) -> FloatArray:
    """Belief of some variables, from a mini-bucket that holds them."""
    problem = buckets.problem
    s = problem.structure
    free = [v for v in positions if s.cardinalities[v] > 1]
    if len(free) == 1:
        table = beliefs[s.value_offsets[free[0]] : s.value_offsets[free[0] + 1]]
    elif free:
        found = buckets.joint(free)
        if found is None:
            names = ", ".join(repr(problem.graph.variables[v]) for v in positions)
            raise ModelError(f"no mini-bucket holds {names} together: raise i_bound or ask junction_tree")
        table = found
    else:
        table = np.ones(())
    return problem.expand_joint(table.reshape([int(s.cardinalities[v]) for v in positions]), positions)
