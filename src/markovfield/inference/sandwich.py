"""The best upper and lower bound on log Z that can be had within a time: bounding methods run in turn."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal

import numpy as np

from markovfield._validation import check_method
from markovfield.exceptions import ModelError, StoppedError
from markovfield.factors.factor_graph import FactorGraph
from markovfield.inference.core.answers import Guarantee, LogPartition, Marginals
from markovfield.inference.core.evidence import Evidence
from markovfield.inference.core.method import taken
from markovfield.inference.core.registry import resolve
from markovfield.inference.core.running import Progress, Running
from markovfield.kernels.compilations import clock

__all__ = ["BoundStep", "Sandwich", "SandwichLogPartition", "SandwichMarginals"]

Verb = Literal["marginals", "log_partition"]
BOUNDING = ("junction_tree", "mean_field", "tree_reweighted", "mini_bucket")
# Multiply-adds of a junction tree in a second, cautiously.
OPERATIONS_PER_SECOND = 3e8
# Mini-buckets start at FIRST_BOUND, for FIRST_ITERATIONS, so that there are bounds at once. The next ones have their
# own i_bound, or the largest below it with at most so many cells for each second left, over which some hundred passes
# fit; beyond they grow by GROWTH while what is left is SLOWER times what the last ones took.
FIRST_BOUND, FIRST_ITERATIONS, GROWTH, CELLS_PER_SECOND, SLOWER = 2, 10, 2, 5e5, 1.5
# Beside mini-buckets, which tighten most in most models, another method gets at most this share of the time left.
SHARE = 0.15
# Seconds from which on a junction tree's order is searched for.
SEARCHING = 8.0
# Seconds that making orders for mini-buckets takes for each variable, about.
PLANNING = 1e-3
# Passes over all mini-buckets that a run of them takes at most: both bounds, every step tried.
PASSES = 700.0
# Marginals that differ by more than FAR on average are of different modes; by less than SAME, of the same mini-buckets.
# Estimates may be NEAR times as far from large mini-buckets as small ones are, and their log Z outside the bounds by
# OUTSIDE of the distance between these; bounds within CLOSE nats of each other need no estimate. Chosen on a third of
# the UAI-2014 instances, looked at on the others.
FAR, SAME, NEAR, OUTSIDE, CLOSE = 0.2, 1e-4, 2.0, 0.25, 0.1
# Bounds that differ by no more than this, relative to log Z, are the same number.
ROUNDING = 1e-9
# Seconds a method gets where the time is out and no bound is known yet.
GRACE = 0.5


@dataclass(frozen=True)
class BoundStep:
    """One run of one method.

    Attributes
    ----------
    method
        Its name, with the ``i_bound`` that mini-buckets were run with.
    outcome
        ``"exact"``, ``"bounded"``, ``"estimated"`` for marginals without a bound, or why there is nothing: ``"too
        large"``, ``"too slow"``, ``"out of time"``, ``"refused"``, ``"not there"``.
    bounds
        What this run proved.
    best
        The best bounds so far, this run included.
    seconds
        Since the start.
    why
        What a method that gave no bound said.
    """

    method: str
    outcome: str
    bounds: tuple[float, float]
    best: tuple[float, float]
    seconds: float
    why: str = ""


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class SandwichLogPartition(LogPartition):
    """log Z between two bounds; ``details`` tells how each method did."""

    details: tuple[BoundStep, ...] = ()

    def __repr__(self) -> str:
        return "\n".join([super().__repr__(), *_lines(self.details)])


def _lines(details: tuple[BoundStep, ...]) -> list[str]:
    """A line for each run: who, what it proved, when; and how to get more where bounds have not met."""
    wide = max((len(step.method) for step in details), default=0)
    lines = []
    for step in details:
        low, high = step.bounds
        lines.append(f"  {step.method:<{wide}}  {step.outcome:<11} [{low:.6g}, {high:.6g}] after {step.seconds:.3g} s")
    if details and details[-1].best[0] < details[-1].best[1]:
        lines.append("  tighter: method=mf.methods.Sandwich(time_limit=60), or as many seconds as there are")
    return lines


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class SandwichMarginals(Marginals):
    """Marginals, log Z between two bounds; ``details`` tells how each method did."""

    details: tuple[BoundStep, ...] = ()

    def __repr__(self) -> str:
        return "\n".join([super().__repr__(), *_lines(self.details)])


@dataclass(frozen=True)
class Sandwich:
    """The best upper and lower bounds on log Z within a time budget, from several methods.

    The methods are run in turn: a junction tree when it is predicted to fit (then the bounds meet), small mini-buckets
    for first bounds on both sides, mean field for a lower bound and tree-reweighted propagation for an upper one, each
    for a small share of the time, and mini-buckets as large as the time left allows. A method that needs too much
    memory or time is passed over. ``answer.details`` lists every run.

    `log_partition` is the middle of the bounds, or the one bound there is. Single marginals are those of the method
    with the lowest upper bound, unless a method that bounds nothing, such as belief propagation, is among the
    ``methods``: its marginals and log Z are taken where it has converged, its log Z is about within the bounds, and its
    marginals are not far from those of the best bound, compared with those of the smallest mini-buckets.

    Parameters
    ----------
    time_limit
        Seconds in all; the verb's own ``time_limit`` counts too when it is shorter. How tight the bounds get depends on
        the machine; that they hold does not. None sets no limit, and mini-buckets do not grow beyond their own
        ``i_bound``.
    methods
        Names or method objects. One that has an ``i_bound`` is run with 2 first, and after all others with its own or
        as much of that as the time allows, then with 2 more at a time.
    tolerance
        Bounds nearer to each other than this, relative to log Z, end the run; exact are only those that differ by
        rounding.
    work_limit
        Cells that mini-buckets may walk over, by prediction: those that would take more, but for the first and
        smallest, are not begun, whatever the time. With ``time_limit=None`` the answer does not depend on the machine.

    Examples
    --------
    >>> import markovfield as mf
    >>> net = mf.MarkovNetwork({"A": 2, "B": 2})
    >>> _ = net.add_factor(["A", "B"], [[3.0, 1.0], [1.0, 3.0]])
    >>> answer = mf.log_partition(net, method=mf.methods.Sandwich(time_limit=1.0))
    >>> answer.guarantee, [step.method for step in answer.details]
    ('exact', ['junction_tree'])
    """

    time_limit: float | None = 10.0
    methods: tuple[Any, ...] = BOUNDING
    tolerance: float = 1e-9
    work_limit: float | None = None

    name: ClassVar[str] = "sandwich"
    exact: ClassVar[bool] = False
    verbs: ClassVar[frozenset[str]] = frozenset({"marginals", "log_partition"})
    abilities: ClassVar[frozenset[str]] = frozenset({"rng", "targets"})

    def __post_init__(self) -> None:
        check_method(self, least={"tolerance": 0}, above={"time_limit": 0, "work_limit": 0})
        if isinstance(self.methods, str) or not len(self.methods):
            raise ModelError(f"methods of Sandwich must be a tuple of methods, got {self.methods!r}")
        object.__setattr__(self, "methods", tuple(self.methods))

    def log_partition(
        self,
        graph: FactorGraph,
        evidence: Evidence,
        *,
        running: Running,
        rng: np.random.Generator | None = None,
    ) -> SandwichLogPartition:
        """Bounds on log Z, and their middle."""
        search = _Search(self, "log_partition", graph, evidence, running, rng)
        search.run()
        value, guarantee = search.conclusion()
        return SandwichLogPartition(
            log_partition=value,
            guarantee=guarantee,
            bounds=search.best,
            method=self.name,
            converged=search.converged or search.better_estimate is not None,
            iterations=len(search.steps),
            seconds=running.seconds,
            width=search.width,
            details=tuple(search.steps),
        )

    def marginals(
        self,
        graph: FactorGraph,
        evidence: Evidence,
        *,
        targets: Sequence[Sequence[int]] = (),
        running: Running,
        rng: np.random.Generator | None = None,
    ) -> SandwichMarginals:
        """Bounds on log Z, and the marginals of the method with the lowest upper one."""
        search = _Search(self, "marginals", graph, evidence, running, rng, targets)
        search.run()
        value, guarantee = search.conclusion()
        chosen = search.chosen if search.better_estimate is None else search.better_estimate
        if guarantee == "exact" and chosen.guarantee != "exact":
            # Equal bounds prove log Z; marginals are only near then.
            guarantee = "approximate"
        return SandwichMarginals(
            graph=graph,
            values=chosen.values,
            log_partition=value,
            guarantee=guarantee,
            log_partition_bounds=search.best,
            method=self.name,
            converged=search.converged or search.better_estimate is not None,
            iterations=len(search.steps),
            seconds=running.seconds,
            width=search.width,
            details=tuple(search.steps),
            _joint=chosen._joint,
            _max_marginals=chosen._max_marginals,
            _counts=chosen._counts,
        )


@dataclass(eq=False)
class _Search:
    """The bounds so far, and who gave them."""

    sandwich: Sandwich
    verb: Verb
    graph: FactorGraph
    evidence: Evidence
    running: Running
    rng: np.random.Generator | None
    targets: Sequence[Sequence[int]] = ()
    best: tuple[float, float] = (-np.inf, np.inf)
    steps: list[BoundStep] = field(default_factory=list)
    chosen: Any = None
    estimate: Any = None
    smallest: Any = None
    upper_of_chosen: float = np.inf
    converged: bool = True
    width: int = -1
    stopped: bool = False
    error: Exception | None = None

    def run(self) -> None:
        """Run the methods until bounds meet or time is out; raises when no method gave anything."""
        methods = [m for m in (self._resolve(given) for given in self.sandwich.methods) if m is not None]
        growing = [m for m in methods if hasattr(m, "i_bound")]
        others = [m for m in methods if not hasattr(m, "i_bound") and not m.exact]
        for method in methods:
            if method.exact and self._go_on():
                # A search for a better order takes up to two seconds.
                quick = hasattr(method, "search") and self.left() < SEARCHING
                self._one(replace(method, search=0.0) if quick else method, method.name, self.left())
        # Orders for very many variables would take all the time.
        early = self.graph.n_variables * PLANNING <= self.left() / 2
        for method in growing:
            if early and self._go_on():
                self._first(method)
        for i, method in enumerate(others):
            if self._go_on():
                share = 1.0 / (len(others) - i)
                self._one(method, method.name, self.left() * (min(share, SHARE) if growing else share))
        for method in growing:
            if not early and self._go_on():
                self._first(method)
            self._grow(method)
        if self.chosen is None:
            self.chosen = self.estimate
        if self.chosen is None:
            raise self.error or TimeoutError(f"no bound within the time limit of {self.limit:g} s")

    @property
    def limit(self) -> float:
        """Seconds in all."""
        own = np.inf if self.sandwich.time_limit is None else self.sandwich.time_limit
        return min(own, self.running.time_limit or np.inf)

    def left(self) -> float:
        """Seconds left."""
        return self.limit - (self.running.seconds)

    def met(self) -> bool:
        """Whether the bounds have met."""
        low, high = self.best
        return np.isfinite(high) and high - low <= self.sandwich.tolerance * max(1.0, abs(high))

    @property
    def bounded(self) -> bool:
        """Whether a bound is known at all."""
        return bool(np.isfinite(self.best).any())

    def _go_on(self) -> bool:
        proven = self.chosen is not None and self.chosen.guarantee == "exact"
        # Planning can use up the time: somebody must have given a bound before it counts.
        late = self.left() <= 0 and self.bounded
        return not (proven or self.stopped or late or (self.met() and self.verb == "log_partition"))

    def _resolve(self, given: Any) -> Any:
        try:
            return resolve(given, self.verb)
        except ModelError as error:
            # A default that is not there is passed over; a name that the user gave is an error.
            if self.sandwich.methods != BOUNDING:
                raise
            self._record(str(given), "not there", error=error)
            return None

    def _grow(self, method: Any) -> None:
        """Mini-buckets as large as there is time for, then a few variables more at a time."""
        bound = self._fitting(method)
        while self._go_on() and bound is not None:
            started = clock()
            if not self._bucket(method, bound):
                break
            seconds = clock() - started
            most = self.graph.n_variables
            if SLOWER * seconds > self.left() or self.left() == np.inf or bound >= most:
                break
            bound = min(bound + GROWTH, most)
            if not self._affordable(method, bound, np.inf):
                break

    def _fitting(self, method: Any) -> int | None:
        """The largest ``i_bound`` up to the method's own that the time and the work allow, beyond the first."""
        most = max(self.graph.n_variables, FIRST_BOUND)
        if method.i_bound <= FIRST_BOUND:
            return FIRST_BOUND + GROWTH if most > FIRST_BOUND and self.left() < np.inf else None
        for bound in range(min(method.i_bound, most), FIRST_BOUND, -GROWTH):
            if self._affordable(method, bound, CELLS_PER_SECOND * self.left()):
                return bound
        return None

    def _bucket(self, method: Any, bound: int, **changed: Any) -> bool:
        """One run of mini-buckets; whether it gave a bound."""
        given = self._one(replace(method, i_bound=bound, **changed), f"{method.name}({bound})", self.left())
        return given and self.steps[-1].outcome != "too large"

    def _first(self, method: Any) -> None:
        """Small mini-buckets, for a moment."""
        few = (
            {"max_iterations": min(FIRST_ITERATIONS, method.max_iterations)}
            if hasattr(method, "max_iterations")
            else {}
        )
        self._bucket(method, FIRST_BOUND, **few)

    def _affordable(self, method: Any, bound: int, cells: float) -> bool:
        """Whether mini-buckets of this size are within the work limit, and have so many cells at most."""
        if not hasattr(method, "log2_cells"):
            return True
        limit = np.inf if self.sandwich.work_limit is None else self.sandwich.work_limit
        if min(limit, cells) == np.inf:
            return True
        needed = replace(method, i_bound=bound).log2_cells(self.graph, self.evidence)
        return bool(needed <= np.log2(min(limit / PASSES, max(cells, 1.0))))

    def _one(self, method: Any, label: str, seconds: float) -> bool:
        """Run one method for at most some seconds; whether it gave a bound."""
        try:
            slow = self._prediction(method, seconds) if method.exact else ""
            if slow:
                self._record(label, "too slow", why=slow)
                return False
            least = 1e-3 if self.bounded else GRACE
            given = None if seconds == np.inf else max(seconds, least)
            running = Running(self.running.n_jobs, given, self._callback())
            extra: dict[str, Any] = {"rng": self.rng} if "rng" in method.abilities and self.rng is not None else {}
            if self.verb == "marginals":
                extra |= taken(method, targets=self.targets)
            with warnings.catch_warnings():
                # A bound holds whether or not the method that gave it has converged.
                warnings.filterwarnings("ignore", message=".* did not converge")
                answer = getattr(method, self.verb)(self.graph, self.evidence, running=running, **extra)
        except MemoryError as error:
            self._record(label, "too large", error=error)
        except (TimeoutError, StoppedError) as error:
            self._record(label, "out of time", error=error)
        except ModelError as error:
            self._record(label, "refused", error=error)
        else:
            return self._take(label, answer)
        return False

    def _prediction(self, method: Any, seconds: float) -> str:
        """Why an exact method would take too long, or nothing; raises where it would need too much memory."""
        if not hasattr(method, "plan"):
            return ""
        problem = method.prepare(self.graph, self.evidence, drop_barren=self.verb == "log_partition")
        needed = method.plan(problem, running=Running(time_limit=max(seconds, 1e-3))).operations / OPERATIONS_PER_SECOND
        return f"predicted to take {needed:.3g} s" if needed > seconds else ""

    def _callback(self) -> Callable[[Progress], bool] | None:
        if self.running.callback is None:
            return None
        user = self.running.callback

        def told(progress: Progress) -> bool:
            self.stopped |= bool(user(progress))
            return self.stopped

        return told

    def _take(self, label: str, answer: Any) -> bool:
        low, high = answer.log_partition_bounds
        if answer.guarantee in ("exact", "lower"):
            low = max(low, answer.log_partition)
        if answer.guarantee in ("exact", "upper"):
            high = min(high, answer.log_partition)
        proven = answer.guarantee == "exact"
        best = (low, high) if proven else (max(self.best[0], low), min(self.best[1], high))
        if best[0] > best[1]:
            # They have met, up to rounding.
            middle = 0.5 * (best[0] + best[1])
            best = (middle, middle)
        self.best = best
        if low == -np.inf and high == np.inf:
            self.estimate = answer if self.estimate is None else self.estimate
            self._record(label, "estimated")
            return True
        if self.smallest is None and f"({FIRST_BOUND})" in label:
            self.smallest = answer
        if self.chosen is None or proven or high < self.upper_of_chosen:
            self.chosen, self.upper_of_chosen, self.width = answer, high, answer.width
        self.converged = proven or (self.converged and answer.converged)
        self._record(label, "exact" if proven else "bounded", (low, high))
        return True

    @property
    def better_estimate(self) -> Any:
        """The answer of a method that bounds nothing, where it is to be trusted more than that of the best bound.

        Marginals of mini-buckets come nearer to the truth as they grow. Messages about as near to the large ones as the
        small ones are may be ahead of them (noisy-or networks, some pedigrees). Those that are not have converged on
        something else (frustrated models).
        """
        low, high = self.best
        answer = self.estimate
        if answer is None or self.chosen.guarantee == "exact" or not answer.converged:
            return None
        beyond = max(low - answer.log_partition, answer.log_partition - high)
        if high - low < CLOSE or not (beyond <= 0 or beyond <= OUTSIDE * (high - low)):
            return None
        if self.verb == "marginals" and self.chosen is not answer:
            now = self.chosen.values
            apart = float(np.abs(answer.values - now).mean())
            grown = float(np.abs(self.smallest.values - now).mean()) if self.smallest is not None else 0.0
            if apart > FAR or (grown > SAME and apart > NEAR * grown):
                return None
        return answer

    def _record(
        self,
        label: str,
        outcome: str,
        bounds: tuple[float, float] = (-np.inf, np.inf),
        *,
        why: str = "",
        error: Exception | None = None,
    ) -> None:
        seconds = self.running.seconds
        self.error = self.error or error
        self.steps.append(BoundStep(label, outcome, bounds, self.best, seconds, str(error) if error else why))

    def conclusion(self) -> tuple[float, Guarantee]:
        """log Z and what is known of it."""
        low, high = self.best
        if self.chosen.guarantee == "exact":
            return self.chosen.log_partition, "exact"
        if self.better_estimate is not None:
            return float(np.clip(self.better_estimate.log_partition, low, high)), "approximate"
        if np.isinf(low) and np.isinf(high):
            return self.chosen.log_partition, "approximate"
        if np.isinf(low):
            return high, "upper"
        if np.isinf(high):
            return low, "lower"
        # Near enough to stop, by what was asked for, need not be exact.
        exact = high - low <= min(self.sandwich.tolerance, ROUNDING) * max(1.0, abs(high))
        return 0.5 * (low + high), "exact" if exact else "approximate"
