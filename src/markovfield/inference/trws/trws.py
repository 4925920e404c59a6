"""Sequential tree-reweighted max-product (TRW-S): a bound on the best score that never rises, and good assignments."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from markovfield._validation import check_method
from markovfield.arrays import FloatArray
from markovfield.factors.factor_graph import FactorGraph
from markovfield.inference.core.convergence import warn_not_converged
from markovfield.inference.core.decodings import Decoding
from markovfield.inference.core.evidence import Evidence
from markovfield.inference.core.running import STOPS, Running
from markovfield.inference.local_search.incumbent import Incumbent, relaxed_decoding
from markovfield.inference.problem.merged_pairs import prepare_merged
from markovfield.inference.problem.pairwise import unary_scores
from markovfield.inference.problem.problem import Problem
from markovfield.inference.trws.lattice import LatticeMessages
from markovfield.inference.trws.passes_kernel import PairTables, round_states, run_pass
from markovfield.inference.trws.plan import SequentialPlan, sequential_plan

__all__ = ["TRWS"]

# Cells that one call of the kernel goes over: a tenth of a second or so.
CHUNK = 2**26
# So many iterations in a row must gain next to nothing before the bound counts as converged.
PATIENCE = 3
# With more states than this, rounding and climbing cost many passes, and are done less often.
SMALL = 2**16


class SequentialMessages:
    """The messages of a prepared problem, the passes that improve them, and the bound they give."""

    def __init__(self, problem: Problem, plan: SequentialPlan, tables: PairTables, init: Any = None) -> None:
        self.problem, self.plan, self.tables = problem, plan, tables
        self.unary, self.constant = unary_scores(problem)
        n = problem.structure.n_variables
        self.messages = np.zeros(plan.n_messages)
        state = init._state if isinstance(init, Decoding) else None
        if isinstance(state, np.ndarray) and state.shape == self.messages.shape:
            self.messages[:] = state
        self.shift = np.zeros(len(plan.layout.table_offsets))
        self.kept = np.zeros(n)
        self.free = np.zeros(n, np.bool_)
        self.states = np.zeros(n, np.int64)
        self.scratch = np.zeros(n, np.int64)
        # Three vectors of states, and what a distance transform takes.
        self.work = np.zeros(12 * (plan.most_states + 2))
        self.backwards = False
        self.first = True
        self.value = self.bound = np.inf

    def run(self, running: Running, best: Incumbent) -> None:
        """One pass, forwards and backwards in turn, gives a bound (``value``); ``bound`` is the lowest so far."""
        plan = self.plan
        layout = plan.layout if self.first else plan.later
        low, high = (0 if self.first else plan.n_peeled), len(plan.order)
        while low < high:
            # Backwards the pieces are taken from the end.
            if self.backwards:
                cut = int(np.searchsorted(plan.work, plan.work[high] - CHUNK))
                begin, end = max(low, min(cut, high - 1)), high
                high = begin
            else:
                cut = int(np.searchsorted(plan.work, plan.work[low] + CHUNK))
                begin, end = low, min(high, max(cut, low + 1))
                low = end
            run_pass(
                layout, self.tables, self.problem.potentials.log_tables, plan.order, begin, end,
                np.bool_(self.backwards), self.unary, self.messages, self.shift, self.kept, self.free, self.scratch,
                self.work,
            )  # fmt: skip
            if low < high:
                running.check(best.score, self.bound)
        self.value = float(self.kept.sum()) + float(self.shift.sum()) + self.constant
        self.bound = min(self.bound, self.value)
        self.first = False
        self.backwards = not self.backwards

    def rounded(self) -> npt.NDArray[np.int64]:
        """States chosen one after the other against the direction of the last pass, leaves last."""
        plan = self.plan
        leaves, rest = plan.order[: plan.n_peeled], plan.order[plan.n_peeled :]
        # ``backwards`` is the direction of the pass to come.
        sequence = np.concatenate([rest[::-1] if self.backwards else rest, leaves[::-1]])
        self.free[:] = False
        round_states(
            plan.layout, self.tables, self.problem.potentials.log_tables, sequence, self.unary, self.messages,
            self.free, self.states, self.scratch, self.work,
        )  # fmt: skip
        self.free[:] = False
        return self.states

    def incoming(self) -> FloatArray:
        """Unary scores of all states plus the incoming messages."""
        layout = self.plan.layout
        incoming = self.unary.copy()
        sizes = np.diff(layout.message_offsets)
        at = np.repeat(self.problem.structure.value_offsets[layout.scopes] - layout.message_offsets[:-1], sizes)
        np.add.at(incoming, at + np.arange(len(self.messages)), self.messages)
        return incoming


@dataclass(frozen=True)
class TRWS:
    """Sequential tree-reweighted max-product (Kolmogorov 2006): a bound that never rises, and rounding.

    Messages go through the variables in order, forwards and backwards; they move the score between factors and
    variables so that the sum of all their maxima, which bounds every score, falls towards the optimum of the local
    relaxation (`LinearProgram` without cycles), though it may stop above it. On forests one pass is exact. Factors of
    three or more variables take part as they are, structured ones in plain tables. Assignments come from
    choosing states one after the other given those already chosen, after passes 1, 2, 4, 8 and then every 16 (on large
    models 1, 8, 32 and then every 128), and from changing single variables for the better.

    An iteration (a pass forwards and one backwards) costs, for each factor, its cells times its variables; tables of
    two variables that are constant off a band (Potts, truncated linear or quadratic) cost the band, from 64 states on
    O(K). Rectangular lattices are found by themselves and take whole diagonals at once, with Potts and truncated linear
    edges at O(K). Memory is that of the messages and of the distinct tables. All of it runs in one thread.

    Parameters
    ----------
    max_iterations
        Iterations at most.
    tolerance
        Stop when three iterations in a row lower the bound by less than this, relative to the bound.

    Examples
    --------
    >>> import markovfield as mf
    >>> model = mf.Ising((4, 4), coupling=1.0, field=0.1)
    >>> answer = mf.decode(model, method=mf.methods.TRWS())
    >>> round(answer.score, 6), round(answer.upper_bound, 6), answer.optimal
    (25.6, 25.6, True)
    """

    max_iterations: int = 1000
    tolerance: float = 1e-7

    name: ClassVar[str] = "trws"
    exact: ClassVar[bool] = False
    verbs: ClassVar[frozenset[str]] = frozenset({"decode"})
    abilities: ClassVar[frozenset[str]] = frozenset({"init"})

    def __post_init__(self) -> None:
        check_method(self, least={"max_iterations": 1, "tolerance": 0})

    def decode(self, graph: FactorGraph, evidence: Evidence, *, running: Running, init: Any = None) -> Decoding:
        """Pass messages until the bound meets the score or converges; ``init`` is a warm start."""
        problem = prepare_merged(graph, evidence)
        plan = sequential_plan(problem.structure)
        best = Incumbent(problem)
        with plan.tables(problem.potentials.log_tables) as tables:
            found = LatticeMessages.fit(problem, plan, tables, init) or SequentialMessages(problem, plan, tables, init)
            bounds: list[float] = []
            stopped: BaseException | None = None
            converged = False
            try:
                if init is not None:
                    best.offer_given(init, running)
                converged = self._iterate(found, best, bounds, running)
            except STOPS as stop:
                stopped = stop
            quiet = Running()
            if not bounds:
                # Stopped in its first pass: without a whole pass there is no bound.
                found.bound = np.inf
            if best.score == -np.inf:
                best.offer(found.rounded(), quiet)
                best.search(found.incoming(), quiet)
        if best.score == -np.inf and stopped is not None:
            raise stopped
        falls = -np.diff(bounds)
        if not converged and stopped is None:
            last = float(falls[-1]) if len(falls) else np.inf
            warn_not_converged(self.name, len(bounds), last, self.tolerance * max(1.0, abs(found.bound)))
        messages = found.messages
        messages.flags.writeable = False
        return relaxed_decoding(
            self.name,
            best,
            found.bound,
            running,
            converged=converged,
            iterations=len(bounds),
            residuals=tuple(falls.tolist()),
            _state=messages,
        )

    def _iterate(
        self, found: SequentialMessages | LatticeMessages, best: Incumbent, bounds: list[float], running: Running
    ) -> bool:
        """Whether the bound met the score or converged within the iterations allowed."""
        idle, small = 0, len(found.unary) < SMALL
        for iteration in range(self.max_iterations):
            for half in range(2):
                running.check(best.score, found.bound)
                before = found.bound
                found.run(running, best)
                passes = 2 * iteration + half + 1
                if passes in (1, 2, 4, 8) or passes % 16 == 0 if small else passes in (1, 8, 32) or passes % 128 == 0:
                    best.offer(found.rounded(), running)
                    if best.meets(found.bound):
                        bounds.append(found.bound)
                        return True
                if half == 0:
                    start = before
            bounds.append(found.bound)
            room = max(self.tolerance * max(1.0, abs(found.bound)), 0.0)
            idle = idle + 1 if start - found.bound <= room else 0
            if idle >= PATIENCE:
                break
        best.offer(found.rounded(), running)
        return idle >= PATIENCE
