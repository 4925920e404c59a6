"""The best upper and lower bound on log Z that can be had within a time: bounding methods run in turn."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from markovfield._validation import check_method
from markovfield.exceptions import ModelError, StoppedError
from markovfield.factor_graph import FactorGraph
from markovfield.inference.answers import Guarantee, LogPartition, Marginals
from markovfield.inference.evidence import Evidence
from markovfield.inference.registry import resolve
from markovfield.inference.running import Progress, Running

__all__ = ["BoundStep", "Sandwich", "SandwichLogPartition", "SandwichMarginals"]

FloatArray = npt.NDArray[np.float64]
Verb = Literal["marginals", "log_partition"]
BOUNDING = ("junction_tree", "mean_field", "tree_reweighted", "mini_bucket")
# Multiply-adds of a junction tree in a second, cautiously.
OPERATIONS_PER_SECOND = 3e8
# Mini-buckets grow from FIRST_BOUND by GROWTH while what is left is SLOWER times what the last ones took.
FIRST_BOUND, GROWTH, SLOWER = 2, 2, 1.5
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
        ``"exact"``, ``"bounded"``, or why there is no bound: ``"too large"``, ``"too slow"``, ``"out of time"``,
        ``"refused"``, ``"not there"``.
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
    """A line for each run: who, what it proved, when."""
    wide = max((len(step.method) for step in details), default=0)
    lines = []
    for step in details:
        low, high = step.bounds
        lines.append(f"  {step.method:<{wide}}  {step.outcome:<11} [{low:.6g}, {high:.6g}] after {step.seconds:.3g} s")
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

    The methods are run in turn, each with its share of the time that is left: a junction tree when it is predicted to
    fit (then the bounds meet), mean field for a lower bound, tree-reweighted propagation for an upper one, and
    mini-buckets of growing ``i_bound`` for both. A method that needs too much memory or time is passed over.
    `log_partition` is the middle of the bounds, or the one bound there is; single marginals are those of the method
    with the lowest upper bound. ``answer.details`` lists every run.

    Parameters
    ----------
    time_limit
        Seconds in all; the verb's own ``time_limit`` counts too when it is shorter. How tight the bounds get depends on
        the machine; that they hold does not.
    methods
        Names or method objects. One that has an ``i_bound`` is run with 2, 4, 6, ... while time lasts.
    tolerance
        Bounds nearer to each other than this, relative to log Z, are called equal.

    Examples
    --------
    >>> import markovfield as mf
    >>> net = mf.MarkovNetwork({"A": 2, "B": 2})
    >>> _ = net.add_factor(["A", "B"], [[3.0, 1.0], [1.0, 3.0]])
    >>> answer = mf.log_partition(net, method=mf.Sandwich(time_limit=1.0))
    >>> answer.guarantee, [step.method for step in answer.details]
    ('exact', ['junction_tree'])
    """

    time_limit: float = 10.0
    methods: tuple[Any, ...] = BOUNDING
    tolerance: float = 1e-9

    name: ClassVar[str] = "sandwich"
    exact: ClassVar[bool] = False
    verbs: ClassVar[frozenset[str]] = frozenset({"marginals", "log_partition"})
    abilities: ClassVar[frozenset[str]] = frozenset({"rng"})

    def __post_init__(self) -> None:
        check_method(self, least={"tolerance": 0}, above={"time_limit": 0})
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
            converged=search.converged,
            iterations=len(search.steps),
            seconds=time.perf_counter() - running.started,
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
        chosen = search.chosen
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
            converged=search.converged,
            iterations=len(search.steps),
            seconds=time.perf_counter() - running.started,
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
    upper_of_chosen: float = np.inf
    converged: bool = True
    width: int = -1
    stopped: bool = False
    error: Exception | None = None

    def run(self) -> None:
        """Run the methods until bounds meet or time is out; raises when no method gave anything."""
        n = len(self.sandwich.methods)
        for i, given in enumerate(self.sandwich.methods):
            if not self._go_on():
                break
            method = self._resolve(given)
            if method is None:
                continue
            if hasattr(method, "i_bound"):
                self._grow(method)
            else:
                self._one(method, method.name, self.left() if method.exact else self.left() / (n - i))
        if self.chosen is None:
            raise self.error or TimeoutError(f"no bound within the time limit of {self.limit:g} s")

    @property
    def limit(self) -> float:
        """Seconds in all."""
        return min(self.sandwich.time_limit, self.running.time_limit or np.inf)

    def left(self) -> float:
        """Seconds left."""
        return self.limit - (time.perf_counter() - self.running.started)

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
        """Mini-buckets of more and more variables."""
        bound, last = FIRST_BOUND, 0.0
        while self._go_on() and bound <= max(self.graph.n_variables, FIRST_BOUND):
            if SLOWER * last > self.left() or (self.steps and self.steps[-1].outcome == "too large"):
                break
            started = time.perf_counter()
            if not self._one(replace(method, i_bound=bound), f"{method.name}({bound})", self.left()):
                break
            last = time.perf_counter() - started
            bound += GROWTH

    def _one(self, method: Any, label: str, seconds: float) -> bool:
        """Run one method for at most some seconds; whether it gave a bound."""
        try:
            slow = self._prediction(method, seconds) if method.exact else ""
            if slow:
                self._record(label, "too slow", why=slow)
                return False
            running = Running(self.running.n_jobs, max(seconds, 1e-3 if self.bounded else GRACE), self._callback())
            extra: dict[str, Any] = {"rng": self.rng} if "rng" in method.abilities and self.rng is not None else {}
            if self.verb == "marginals":
                extra["targets"] = self.targets
            with warnings.catch_warnings():
                # A bound holds whether or not the method that gave it has settled.
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
        if self.chosen is None or proven or high < self.upper_of_chosen:
            self.chosen, self.upper_of_chosen, self.width = answer, high, answer.width
        self.converged = proven or (self.converged and answer.converged)
        useful = bool(proven or low > -np.inf or high < np.inf)
        self._record(label, "exact" if proven else "bounded" if useful else "refused", (low, high))
        return useful

    def _record(
        self,
        label: str,
        outcome: str,
        bounds: tuple[float, float] = (-np.inf, np.inf),
        *,
        why: str = "",
        error: Exception | None = None,
    ) -> None:
        seconds = time.perf_counter() - self.running.started
        self.error = self.error or error
        self.steps.append(BoundStep(label, outcome, bounds, self.best, seconds, str(error) if error else why))

    def conclusion(self) -> tuple[float, Guarantee]:
        """log Z and what is known of it."""
        low, high = self.best
        if self.chosen.guarantee == "exact":
            return self.chosen.log_partition, "exact"
        if np.isinf(low) and np.isinf(high):
            return self.chosen.log_partition, "approximate"
        if np.isinf(low):
            return high, "upper"
        if np.isinf(high):
            return low, "lower"
        return 0.5 * (low + high), "exact" if self.met() else "approximate"
