"""Dual decomposition: subproblems that are easy by themselves, drawn together by multipliers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from markovfield._validation import check_method
from markovfield.arrays import FloatArray
from markovfield.exceptions import ModelError
from markovfield.factors.factor_graph import FactorGraph
from markovfield.inference.core.convergence import warn_not_converged
from markovfield.inference.core.decodings import Decoding
from markovfield.inference.core.evidence import Evidence
from markovfield.inference.core.running import STOPS, Running
from markovfield.inference.dual_decomposition.subproblems import Factors, Forests, Subproblems
from markovfield.inference.local_search.incumbent import Incumbent, relaxed_decoding
from markovfield.inference.problem.merged_pairs import prepare_merged

__all__ = ["DualDecomposition"]

# Iterations between two bounds, candidates and changes of the penalty.
EVERY = 10
# Rounds of the active set of one quadratic program in one iteration.
ROUNDS = 20


class _Copies:
    """Multipliers of all copies, the consensus, the bound and the best assignment."""

    def __init__(self, parts: Subproblems, best: Incumbent, running: Running, init: Any) -> None:
        self.parts, self.best, self.running = parts, best, running
        value, unary = parts.value, parts.unary
        self.many = np.bincount(value, minlength=len(unary)).astype(np.float64)
        self.share = np.where(self.many > 0, unary / np.maximum(1.0, self.many), 0.0)[value]
        owner = np.repeat(np.arange(parts.structure.n_variables), parts.structure.cardinalities)
        alone = np.where(self.many > 0, -np.inf, unary)
        tops = np.full(parts.structure.n_variables, -np.inf)
        np.maximum.at(tops, owner, alone)
        # Variables in no subproblem take their best state.
        self.constant = parts.constant + float(tops[tops > -np.inf].sum())
        self.multipliers = np.zeros(len(value))
        state = getattr(init, "_state", None)
        if isinstance(state, np.ndarray) and state.shape == self.multipliers.shape:
            self.multipliers[:] = state
        self.copies = np.zeros(len(value))
        self.mean = np.zeros(len(unary))
        self.bound, self.iterations = np.inf, 0
        self.bounds: list[float] = []

    def center(self) -> None:
        """Make the multipliers of each state's copies add up to zero: rounding must not loosen the bound."""
        total = np.bincount(self.parts.value, self.multipliers, len(self.many))
        self.multipliers -= (total / np.maximum(1.0, self.many))[self.parts.value]

    def average(self) -> FloatArray:
        """The mean of the copies of each state."""
        return np.bincount(self.parts.value, self.copies, len(self.many)) / np.maximum(1.0, self.many)

    def measure(self) -> float:
        """The bound that the present multipliers prove; the copies become each subproblem's best."""
        value = self.parts.best(self.share + self.multipliers, self.copies, self.running) + self.constant
        self.bound = min(self.bound, value)
        self.bounds.append(self.bound)
        return value


@dataclass(frozen=True)
class DualDecomposition:
    """Dual decomposition into factors or forests, by AD3 or by subgradients (seed 004; Martins et al. 2015).

    Each factor (or forest) is maximised by itself over its own copies of its variables; multipliers draw the copies
    together. The subproblems' best scores add up to an upper bound whatever the multipliers are, and its minimum is
    the optimum of the local relaxation (`LinearProgram` without cycles). Clauses, cardinality potentials and parities
    are subproblems as they are, at the cost of sorting their variables, so that hard logical constraints over many
    variables cost no more than their length. The assignment takes each variable's heaviest state and changes single
    variables for the better.

    Parameters
    ----------
    algorithm
        ``"ad3"``: the alternating direction method of multipliers, whose quadratic subproblems are solved by active
        sets of configurations; it converges to the optimum and says when it is there. ``"subgradient"``: only the best
        configuration of each subproblem is needed; cheaper iterations, far more of them.
    subproblems
        ``"factors"``, or, for subgradients, ``"trees"``: forests that share out the factors, structured ones as tables.
    max_iterations, tolerance
        AD3 ends when copies differ from their mean, and the mean from the last one, by less (root mean square);
        subgradients when their step is that small.
    penalty
        First penalty of AD3; None is a tenth of the spread of the scores. It adapts by itself.

    Examples
    --------
    >>> import markovfield as mf
    >>> net = mf.MarkovNetwork(dict.fromkeys("ABCD", 2))
    >>> _ = net.add_factor(["A"], log_table=[0.0, 1.0])
    >>> _ = net.add_factor(["B"], log_table=[0.0, 1.5])
    >>> _ = net.add_exactly(1, dict.fromkeys("ABCD", 1))
    >>> answer = mf.decode(net, method=mf.methods.DualDecomposition())
    >>> answer.assignment, answer.optimal
    ({'A': 0, 'B': 1, 'C': 0, 'D': 0}, True)
    """

    algorithm: str = "ad3"
    subproblems: str = "factors"
    max_iterations: int = 2000
    tolerance: float = 1e-6
    penalty: float | None = None

    name: ClassVar[str] = "dual_decomposition"
    exact: ClassVar[bool] = False
    verbs: ClassVar[frozenset[str]] = frozenset({"decode"})
    abilities: ClassVar[frozenset[str]] = frozenset({"init"})

    def __post_init__(self) -> None:
        words = {"algorithm": ("ad3", "subgradient"), "subproblems": ("factors", "trees")}
        above, below = {"tolerance": 0, "penalty": 0}, {"penalty": np.inf}
        check_method(self, least={"max_iterations": 1}, above=above, below=below, choices=words)
        if self.algorithm == "ad3" and self.subproblems == "trees":
            raise ModelError("subproblems='trees' of DualDecomposition needs algorithm='subgradient'")

    def decode(self, graph: FactorGraph, evidence: Evidence, *, running: Running, init: Any = None) -> Decoding:
        """Draw the copies together until they agree; ``init`` is a warm start from its multipliers."""
        problem = prepare_merged(graph, evidence)
        best = Incumbent(problem)
        parts: Subproblems = Factors(problem) if self.subproblems == "factors" else Forests(problem)
        found = _Copies(parts, best, running, init)
        stopped: BaseException | None = None
        converged, residual = False, np.inf
        try:
            if init is not None:
                best.offer_given(init, running)
            solve = self._ad3 if self.algorithm == "ad3" else self._subgradient
            converged, residual = solve(found)
        except STOPS as stop:
            stopped = stop
        quiet = Running()
        if best.score == -np.inf:
            parts.offer(found.mean, best, quiet)
            best.search(np.zeros(int(problem.structure.value_offsets[-1])), quiet)
        if best.score == -np.inf and stopped is not None:
            raise stopped
        if stopped is None and not converged:
            warn_not_converged(self.name, found.iterations, residual, self.tolerance)
        multipliers = found.multipliers
        multipliers.flags.writeable = False
        return relaxed_decoding(
            self.name,
            best,
            found.bound,
            running,
            converged=converged,
            iterations=found.iterations,
            residuals=tuple((-np.diff(found.bounds)).tolist()),
            _state=multipliers,
        )

    def _first_penalty(self, found: _Copies) -> float:
        if self.penalty is not None:
            return self.penalty
        tables = [found.parts.unary, found.best.problem.potentials.log_tables]
        spread = [float(np.ptp(t[np.isfinite(t)])) for t in tables if np.isfinite(t).any()]
        return 0.1 * max(spread, default=0.0) or 0.1

    def _ad3(self, found: _Copies) -> tuple[bool, float]:
        parts = found.parts
        assert isinstance(parts, Factors)
        penalty = self._first_penalty(found)
        value = parts.value
        found.measure()
        mean = found.average()
        for iteration in range(1, self.max_iterations + 1):
            found.iterations = iteration
            found.running.check(found.best.score, found.bound)
            parts.quadratic(found.share + found.multipliers, mean[value], penalty, ROUNDS, found.copies, found.running)
            before, mean = mean, found.average()
            found.mean = mean
            apart = found.copies - mean[value]
            found.multipliers -= penalty * apart
            size = max(1, len(value))
            primal = float(np.sqrt(np.square(apart).sum() / size))
            dual = float(np.sqrt((found.many * np.square(mean - before)).sum() / size))
            # Where the penalty is large, copies hardly move before they agree: residuals are compared as forces.
            converged = max(primal, max(1.0, penalty) * dual) < self.tolerance
            if iteration % EVERY == 0 or converged or iteration == self.max_iterations:
                found.center()
                parts.offer(mean, found.best, found.running)
                found.measure()
                if found.best.meets(found.bound) or converged:
                    return True, max(primal, dual)
                if primal > 5 * dual:
                    penalty *= 2.0
                elif dual > 5 * primal:
                    penalty /= 2.0
        return False, max(primal, dual)

    def _subgradient(self, found: _Copies) -> tuple[bool, float]:
        value = found.parts.value
        eagerness, patience, step = 1.0, 0, np.inf
        trace = np.zeros(len(found.many))
        for iteration in range(1, self.max_iterations + 1):
            found.iterations = iteration
            found.running.check(found.best.score, found.bound)
            before = found.bound
            now = found.measure()
            found.mean = found.average()
            trace = 0.9 * trace + 0.1 * found.mean
            apart = found.copies - found.mean[value]
            norm = float(np.square(apart).sum())
            if iteration == 1 or iteration % EVERY == 0 or norm == 0:
                found.parts.offer(found.mean, found.best, found.running)
                found.parts.offer(trace, found.best, found.running)
            if norm == 0 or found.best.meets(found.bound):
                return True, 0.0
            # Polyak's step aims at the best score known; less eagerly each time the bound stands still.
            patience = 0 if found.bound < before - 1e-9 * max(1.0, abs(before)) else patience + 1
            if patience == EVERY:
                eagerness, patience = 0.7 * eagerness, 0
            goal = found.best.score if found.best.score > -np.inf else now - np.sqrt(norm)
            step = eagerness * max(now - goal, 1e-12) / norm
            found.multipliers -= step * apart
            found.center()
            if step * np.sqrt(norm / max(1, len(value))) < self.tolerance:
                return True, step
        found.measure()
        return False, step
