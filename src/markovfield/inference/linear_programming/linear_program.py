"""Decoding by linear and integer programs over the local polytope, solved by HiGHS."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from markovfield._validation import check_method
from markovfield.arrays import FloatArray
from markovfield.factors.factor_graph import FactorGraph
from markovfield.inference.core.decodings import Decoding
from markovfield.inference.core.evidence import Evidence
from markovfield.inference.core.running import STOPS, Running
from markovfield.inference.linear_programming.cycle_cuts import WHOLE, CycleCuts
from markovfield.inference.linear_programming.highs import INFEASIBLE, Highs
from markovfield.inference.linear_programming.local_polytope import LocalPolytope, local_polytope
from markovfield.inference.local_search.incumbent import Incumbent, relaxed_decoding
from markovfield.inference.problem.merged_pairs import prepare_merged

__all__ = ["IntegerProgram", "LinearProgram"]

# HiGHS answers within this of the optimum, relative to it (absolutely, below one): its own tolerances, which stay.
SOLVER_TOLERANCE = 1e-6
# Largest scores of this size are handed to HiGHS as they are.
USUAL = (0.1, 1e4)


def _scale(scores: FloatArray) -> float:
    """A power of two by which to divide scores that HiGHS, whose tolerances are absolute, would take for zero, or lose
    its own sense of proportion over; 1.0 for the usual ones."""
    largest = float(np.abs(scores).max(initial=0.0))
    return 1.0 if largest == 0 or USUAL[0] <= largest <= USUAL[1] else float(np.exp2(np.floor(np.log2(largest))))


@dataclass(frozen=True)
class LinearProgram:
    """The best point of the local polytope (seed 004; Wainwright and Jordan), tightened by cycle inequalities.

    The optimum bounds the best score; where the point is integral it is the best assignment. The bound is computed anew
    from the multipliers, so that it holds whatever the solver's tolerances. Rounds of cycle inequalities then cut off
    points that no mixture of assignments can reach; for binary models of pairs on planar graphs without fields that is
    enough to be exact. The assignment takes each variable's heaviest state and changes single variables for the better.

    For small models: there is a column for every cell of every factor, and the solver takes from seconds at 10^4
    columns to hours at 10^6. Stopped by ``time_limit``, by the callback or by Ctrl-C, the answer is the best assignment
    so far with the best bound so far.

    Parameters
    ----------
    cycles
        Rounds of cycle inequalities at most; 0 is the local polytope alone.
    cuts
        Inequalities added in one round at most.
    max_columns
        Larger programs are refused.

    Examples
    --------
    >>> import markovfield as mf
    >>> net = mf.MarkovNetwork(dict.fromkeys("ABC", 2))
    >>> _ = net.add_factors([("A", "B"), ("B", "C"), ("C", "A")], log_table=[[0.0, 1.0], [1.0, 0.0]])
    >>> loose = mf.decode(net, method=mf.methods.LinearProgram(cycles=0))
    >>> tight = mf.decode(net, method=mf.methods.LinearProgram())
    >>> round(loose.upper_bound, 6), round(tight.upper_bound, 6), tight.optimal
    (3.0, 2.0, True)
    """

    cycles: int = 20
    cuts: int = 200
    max_columns: int = 500_000

    name: ClassVar[str] = "linear_program"
    exact: ClassVar[bool] = False
    verbs: ClassVar[frozenset[str]] = frozenset({"decode"})
    abilities: ClassVar[frozenset[str]] = frozenset()

    def __post_init__(self) -> None:
        check_method(self, least={"cycles": 0, "cuts": 1, "max_columns": 1})

    def decode(self, graph: FactorGraph, evidence: Evidence, *, running: Running) -> Decoding:
        """Solve, round, and tighten as long as that helps."""
        problem = prepare_merged(graph, evidence)
        polytope = local_polytope(self.name, problem, self.max_columns)
        best = Incumbent(problem)
        solved = _Rounds(polytope, best, running)
        stop: BaseException | None = None
        try:
            self._rounds(solved, running)
        except STOPS as wish:
            stop = wish
            best.offer(polytope.rounded(polytope.scores), Running())
        best.search(solved.weights[: polytope.n_states], Running())
        if stop is not None and best.score == -np.inf:
            raise stop
        return relaxed_decoding(
            self.name,
            best,
            min(solved.bounds, default=polytope.plain_bound),
            running,
            # The multipliers are exact to the solver's tolerance, and so is the bound they prove.
            tolerance=SOLVER_TOLERANCE * best.size,
            converged=stop is None,
            iterations=len(solved.bounds),
            residuals=tuple((-np.diff(solved.bounds)).tolist()),
        )

    def _rounds(self, solved: _Rounds, running: Running) -> None:
        solved.solve()
        cuts = CycleCuts(solved.polytope) if self.cycles and not solved.whole else None
        for _ in range(self.cycles):
            if cuts is None or solved.whole or solved.best.meets(min(solved.bounds)):
                break
            found = cuts.find(solved.weights, self.cuts)
            running.check(solved.best.score, min(solved.bounds))
            if not found:
                break
            solved.rows += found
            solved.solve()


class _Rounds:
    """A linear program that grows by inequalities, its last solution and the bounds so far."""

    def __init__(self, polytope: LocalPolytope, best: Incumbent, running: Running) -> None:
        self.polytope, self.best, self.running = polytope, best, running
        self.highs = Highs(running)
        self.scale = _scale(polytope.scores)
        self.equations, self.right = polytope.equations()
        self.rows: list[Any] = []
        self.bounds: list[float] = []
        self.weights = np.zeros(polytope.n_columns)

    @property
    def whole(self) -> bool:
        """Whether the last solution is an assignment."""
        states = self.weights[: self.polytope.n_states]
        return bool(((states < WHOLE) | (states > 1 - WHOLE)).all())

    def solve(self) -> None:
        """Solve with all inequalities so far; a bound from the multipliers, a candidate from the weights."""
        from scipy import sparse

        polytope = self.polytope
        if not polytope.n_columns:
            self.bounds.append(polytope.constant)
            self.best.offer(np.zeros(0, np.int64), self.running)
            return
        below, limits = None, None
        if self.rows:
            owner = np.repeat(np.arange(len(self.rows)), [len(c) for c, _, _ in self.rows])
            below = sparse.csr_array(
                (
                    np.concatenate([v for _, v, _ in self.rows]),
                    (owner, np.concatenate([c for c, _, _ in self.rows])),
                ),
                shape=(len(self.rows), polytope.n_columns),
            )
            limits = -below, -np.array([r for _, _, r in self.rows])
        answer = self.highs.solve(-polytope.scores / self.scale, (self.equations, self.right), below=limits)
        if answer.stop is not None:
            raise answer.stop
        if answer.status == INFEASIBLE or answer.point is None:
            raise polytope.problem.impossible()
        self.weights = answer.point
        duals = self.scale * answer.equal_prices[polytope.problem.structure.n_variables :]
        scores, less = polytope.scores, 0.0
        if below is not None:
            prices = self.scale * np.maximum(0.0, -answer.below_prices)
            scores = scores + below.T @ prices
            less = float(prices @ np.array([r for _, _, r in self.rows]))
        self.bounds.append(polytope.bound(scores, duals) - less + polytope.constant)
        self.best.offer(polytope.rounded(self.weights), self.running)


@dataclass(frozen=True)
class IntegerProgram:
    """The best assignment by branch and cut over the local polytope (``scipy.optimize.milp``, HiGHS).

    Only the weights of states must be integers; those of cells follow. Exact within the solver's own tolerances, 10^-6
    of the score without its constants: they are part of the gap, and `Decoding.tolerance` is as much. Where scores are
    integers and the tolerances are far below one, the answer is exact.

    Past ``time_limit`` the answer is the solver's best assignment so far with its bound. A solver that runs longer than
    a moment runs in another process, which the callback or Ctrl-C end at once: the answer is then the bound it had
    printed, and the best assignment of its first moments and of an own search.

    Parameters
    ----------
    relative_gap
        Stop when the proven bound is this near, relative to the score; `Decoding.optimal` asks for more.
    max_columns
        Larger programs are refused.

    Examples
    --------
    >>> import markovfield as mf
    >>> net = mf.MarkovNetwork(dict.fromkeys("ABC", 2))
    >>> _ = net.add_factors([("A", "B"), ("B", "C"), ("C", "A")], log_table=[[0.0, 1.0], [1.0, 0.0]])
    >>> answer = mf.decode(net, method=mf.methods.IntegerProgram())
    >>> answer.score, answer.optimal
    (2.0, True)
    """

    relative_gap: float = 0.0
    max_columns: int = 500_000

    name: ClassVar[str] = "integer_program"
    exact: ClassVar[bool] = True
    verbs: ClassVar[frozenset[str]] = frozenset({"decode"})
    abilities: ClassVar[frozenset[str]] = frozenset()

    def __post_init__(self) -> None:
        check_method(self, least={"relative_gap": 0, "max_columns": 1}, below={"relative_gap": np.inf})

    def decode(self, graph: FactorGraph, evidence: Evidence, *, running: Running) -> Decoding:
        """Branch and cut."""
        problem = prepare_merged(graph, evidence)
        polytope = local_polytope(self.name, problem, self.max_columns)
        best = Incumbent(problem)
        bound, margin, stop = polytope.constant, 0.0, None
        if polytope.n_columns:
            whole = np.zeros(polytope.n_columns)
            whole[: polytope.n_states] = 1
            scale = _scale(polytope.scores)
            answer = Highs(running).solve(
                -polytope.scores / scale, polytope.equations(), whole=whole, relative_gap=self.relative_gap
            )
            stop = answer.stop
            if answer.status == INFEASIBLE:
                raise problem.impossible()
            if answer.point is not None:
                best.offer(polytope.rounded(answer.point), Running())
            bound -= scale * answer.bound
            # HiGHS prunes what is better by less than its tolerances, and says nothing of it in its bound.
            if np.isfinite(bound):
                margin = SOLVER_TOLERANCE * max(scale, min(abs(bound), scale * abs(answer.bound)))
                bound += margin
        else:
            best.offer(np.zeros(0, np.int64), Running())
        if stop is not None:
            best.offer(polytope.rounded(polytope.scores), Running())
            best.search(polytope.scores[: polytope.n_states], Running())
            bound = min(bound, polytope.plain_bound)
            if best.score == -np.inf:
                raise stop
        return relaxed_decoding(self.name, best, bound, running, tolerance=1.005 * margin, converged=stop is None)
