"""Decoding by linear and integer programs over the local polytope, solved by HiGHS."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from markovfield.exceptions import ModelError, StoppedError
from markovfield.factor_graph import FactorGraph
from markovfield.inference.answers import Decoding
from markovfield.inference.cycle_cuts import WHOLE, CycleCuts
from markovfield.inference.evidence import Evidence
from markovfield.inference.local_polytope import LocalPolytope, local_polytope
from markovfield.inference.merged_pairs import prepare_merged
from markovfield.inference.relaxed import Incumbent, check_decodes_all, relaxed_decoding
from markovfield.inference.running import Running

__all__ = ["IntegerProgram", "LinearProgram"]

FloatArray = npt.NDArray[np.float64]
# What HiGHS says of a program: solved, or no point satisfies it.
SOLVED, INFEASIBLE = 0, 2
# HiGHS answers within this of the optimum, relative to it (absolutely, below one): its own tolerances, which stay.
SOLVER_TOLERANCE = 1e-6


def _seconds_left(running: Running) -> float | None:
    if running.time_limit is None:
        return None
    return max(0.01, running.time_limit - (time.perf_counter() - running.started))


def _options(running: Running, **more: Any) -> dict[str, Any]:
    left = _seconds_left(running)
    return {"disp": False, **more} if left is None else {"disp": False, "time_limit": left, **more}


@dataclass(frozen=True)
class LinearProgram:
    """The best point of the local polytope (seed 004; Wainwright and Jordan), tightened by cycle inequalities.

    The optimum bounds the best score; where the point is whole it is the best assignment. The bound is computed anew
    from the multipliers, so that it holds whatever the solver's tolerances. Rounds of cycle inequalities then cut off
    points that no mixture of assignments can reach; for binary models of pairs on planar graphs without fields that is
    enough to be exact. The assignment takes each variable's heaviest state and changes single variables for the better.

    For small models: there is a column for every cell of every factor, and the solver, which cannot be interrupted
    but by ``time_limit``, takes from seconds at 10^4 columns to hours at 10^6.

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
    >>> loose = mf.decode(net, method=mf.LinearProgram(cycles=0))
    >>> tight = mf.decode(net, method=mf.LinearProgram())
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
        if self.cycles < 0 or self.cuts < 1 or self.max_columns < 1:
            raise ModelError("cycles of LinearProgram must be at least 0, cuts and max_columns at least 1")

    def decode(
        self,
        graph: FactorGraph,
        evidence: Evidence,
        *,
        variables: Sequence[int] | None = None,
        n_best: int = 1,
        running: Running,
    ) -> Decoding:
        """Solve, round, and tighten as long as that helps."""
        check_decodes_all(self.name, graph, variables, n_best)
        problem = prepare_merged(graph, evidence)
        polytope = local_polytope(self.name, problem, self.max_columns)
        best = Incumbent(problem)
        solved = _Rounds(polytope, best, running)
        try:
            settled = self._rounds(solved, running)
        except (TimeoutError, StoppedError, KeyboardInterrupt):
            settled = False
            if best.score == -np.inf and not solved.bounds:
                raise
        best.search(solved.weights[: polytope.n_states], Running())
        return relaxed_decoding(
            self.name,
            best,
            min(solved.bounds, default=np.inf),
            running,
            variables=variables,
            # The multipliers are exact to the solver's tolerance, and so is the bound they prove.
            tolerance=SOLVER_TOLERANCE * max(1.0, abs(best.score)),
            converged=settled,
            iterations=len(solved.bounds),
            residuals=tuple((-np.diff(solved.bounds)).tolist()),
        )

    def _rounds(self, solved: _Rounds, running: Running) -> bool:
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
        return True


class _Rounds:
    """A linear program that grows by inequalities, its last solution and the bounds so far."""

    def __init__(self, polytope: LocalPolytope, best: Incumbent, running: Running) -> None:
        self.polytope, self.best, self.running = polytope, best, running
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
        from scipy.optimize import linprog

        polytope = self.polytope
        if not polytope.n_columns:
            self.bounds.append(polytope.constant)
            self.best.offer(np.zeros(0, np.int64), self.running)
            return
        limits: dict[str, Any] = {}
        below = None
        if self.rows:
            owner = np.repeat(np.arange(len(self.rows)), [len(c) for c, _, _ in self.rows])
            below = sparse.csr_array(
                (
                    np.concatenate([v for _, v, _ in self.rows]),
                    (owner, np.concatenate([c for c, _, _ in self.rows])),
                ),
                shape=(len(self.rows), polytope.n_columns),
            )
            limits = {"A_ub": -below, "b_ub": -np.array([r for _, _, r in self.rows])}
        answer = linprog(
            -polytope.scores,
            A_eq=self.equations,
            b_eq=self.right,
            bounds=(0, None),
            method="highs",
            options=_options(self.running),
            **limits,
        )
        if answer.status == INFEASIBLE:
            raise polytope.problem.impossible()
        if answer.status != SOLVED or answer.x is None:
            raise TimeoutError(f"HiGHS gave no solution: {answer.message}")
        self.weights = np.asarray(answer.x)
        duals = np.asarray(answer.eqlin.marginals)[polytope.problem.structure.n_variables :]
        scores, less = polytope.scores, 0.0
        if below is not None:
            prices = np.maximum(0.0, -np.asarray(answer.ineqlin.marginals))
            scores = scores + below.T @ prices
            less = float(prices @ np.array([r for _, _, r in self.rows]))
        self.bounds.append(polytope.bound(scores, duals) - less + polytope.constant)
        self.best.offer(polytope.rounded(self.weights), self.running)


@dataclass(frozen=True)
class IntegerProgram:
    """The best assignment by branch and cut over the local polytope (``scipy.optimize.milp``, HiGHS).

    Only the weights of states must be whole; those of cells follow. Exact within the solver's own tolerances: the gap
    is its proven bound less the score, and counts as closed below 10^-6, relative to a score above one. Past
    ``time_limit`` the answer is the best assignment so far with its gap; nothing else interrupts the solver.

    Parameters
    ----------
    relative_gap
        Stop when the proven bound is this near, relative to the score.
    max_columns
        Larger programs are refused.

    Examples
    --------
    >>> import markovfield as mf
    >>> net = mf.MarkovNetwork(dict.fromkeys("ABC", 2))
    >>> _ = net.add_factors([("A", "B"), ("B", "C"), ("C", "A")], log_table=[[0.0, 1.0], [1.0, 0.0]])
    >>> answer = mf.decode(net, method=mf.IntegerProgram())
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
        if not 0 <= self.relative_gap < np.inf or self.max_columns < 1:
            raise ModelError("relative_gap of IntegerProgram must be at least 0, max_columns at least 1")

    def decode(
        self,
        graph: FactorGraph,
        evidence: Evidence,
        *,
        variables: Sequence[int] | None = None,
        n_best: int = 1,
        running: Running,
    ) -> Decoding:
        """Branch and cut."""
        from scipy.optimize import Bounds, LinearConstraint, milp

        check_decodes_all(self.name, graph, variables, n_best)
        problem = prepare_merged(graph, evidence)
        polytope = local_polytope(self.name, problem, self.max_columns)
        running.check()
        best = Incumbent(problem)
        bound, status = polytope.constant, SOLVED
        if polytope.n_columns:
            rows, right = polytope.equations()
            whole = np.zeros(polytope.n_columns)
            whole[: polytope.n_states] = 1
            answer = milp(
                -polytope.scores,
                integrality=whole,
                bounds=Bounds(0, 1),
                constraints=LinearConstraint(rows, right, right),
                options=_options(running, mip_rel_gap=self.relative_gap),
            )
            status = answer.status
            if status == INFEASIBLE:
                raise problem.impossible()
            if answer.x is not None:
                best.offer(polytope.rounded(np.asarray(answer.x)), Running())
            found = answer.get("mip_dual_bound")
            bound += np.inf if found is None else -float(found)
        else:
            best.offer(np.zeros(0, np.int64), Running())
        if best.score == -np.inf and status != SOLVED:
            raise TimeoutError(f"HiGHS found no assignment within the time limit of {running.time_limit} s")
        room = max(SOLVER_TOLERANCE, self.relative_gap) * max(1.0, abs(best.score))
        return relaxed_decoding(
            self.name, best, bound, running, variables=variables, tolerance=room, converged=status == SOLVED
        )
