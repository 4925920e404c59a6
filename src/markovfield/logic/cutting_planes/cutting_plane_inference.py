"""The method: ground what the best world so far loses, find a best world of what is grounded, and again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
import numpy.typing as npt

from markovfield._validation import check_method
from markovfield.exceptions import ImpossibleEvidenceError, MemoryLimitError, ModelError
from markovfield.inference.core.decodings import Decoding, decoding_of_states
from markovfield.inference.core.evidence import Evidence
from markovfield.inference.core.method import MethodLike
from markovfield.inference.core.registry import resolve
from markovfield.inference.core.running import STOPS, Running
from markovfield.inference.junction_tree.junction_tree import JunctionTree
from markovfield.inference.local_search.icm import ICM
from markovfield.inference.satisfiability.max_walk_sat import MaxWalkSAT
from markovfield.inference.verbs import decode
from markovfield.logic.cutting_planes.active import ActiveFormulas, Restricted
from markovfield.logic.cutting_planes.clause_program import solved_program
from markovfield.logic.cutting_planes.violated import Losses
from markovfield.logic.grounding.asked import query_atoms
from markovfield.logic.grounding.contradictions import contradiction
from markovfield.logic.grounding.network import Opened

__all__ = ["CuttingPlaneInference"]

IntArray = npt.NDArray[np.int64]
# States, a bound on the best score, its tolerance, and what stopped the search.
_Solved = tuple[IntArray, float, float, BaseException | None]
# Solvers that are no methods of `decode`.
OWN_SOLVERS = ("auto", "clause_program")
# Clique states of a junction tree that is preferred to the integer program.
TREE_WORK = 2.0**24
# The share of a time limit within which a proof is looked for; better worlds are, in the rest.
PROOF_SHARE = 0.6


class Lazy(Protocol):
    """A program and its evidence, not grounded (`LazyNetwork`)."""

    split: bool

    def opened(self) -> Opened:
        """Both in a database; who asks closes it."""
        ...


@dataclass(frozen=True)
class CuttingPlaneInference:
    """The likeliest world of a `LazyNetwork` with a proof, grounding only what some world on the way violates
    (Riedel 2008).

    Whatever the weights' signs, hard formulas included: a world loses the weight of a formula that is false, or that is
    true where its weight is negative. What the best world of the ground formulas so far loses elsewhere is grounded
    next. Its score among them bounds the best score from above, so that the gap is known all along, and zero when
    nothing new is lost.

    Stopped by ``time_limit``, by the callback or by Ctrl-C, the answer is the best world so far with its gap. Where
    nothing is proven after the most part of a time limit, `MaxWalkSAT` looks for better worlds in what is left of it,
    and what its worlds lose is grounded in turn.

    Parameters
    ----------
    solver
        How a best world of what is grounded is found: ``"clause_program"``, an integer program with a variable for each
        atom and one for each formula's loss, solved by HiGHS; a method of `decode` (one without a proof leaves a gap);
        or ``"auto"``: a junction tree where that is small, else the clause program.
    max_clauses
        More ground formulas than this are refused.

    Examples
    --------
    >>> import markovfield as mf
    >>> kb = mf.MarkovLogic('''
    ...     person = {1, ..., 200}
    ...     Friends(person, person)
    ...     Smokes(person)
    ...     1.1  Friends(x, y) ^ Smokes(x) => Smokes(y)
    ...     0.2  !Smokes(x)
    ... ''')
    >>> lazy = kb.lazy("Friends(1, 2) Friends(2, 3) Smokes(1)", query=["Smokes(2)", "Smokes(3)"], closed=["Friends"])
    >>> answer = mf.decode(lazy, method=mf.methods.CuttingPlaneInference())
    >>> answer["Smokes(3)"], answer.optimal, answer.graph.n_factors
    (True, True, 4)
    """

    solver: MethodLike = "auto"
    max_clauses: int = 50_000_000

    name: ClassVar[str] = "cutting_plane_inference"
    exact: ClassVar[bool] = True
    verbs: ClassVar[frozenset[str]] = frozenset({"decode"})
    abilities: ClassVar[frozenset[str]] = frozenset({"rng"})

    def __post_init__(self) -> None:
        check_method(self, least={"max_clauses": 1})
        if self.solver not in OWN_SOLVERS:
            resolve(self.solver, "decode")

    def decode(self, network: Lazy, evidence: Any = None, *, running: Running, rng: np.random.Generator) -> Decoding:
        """Ground and solve in turn."""
        if not hasattr(network, "opened"):
            raise ModelError(
                "cutting_plane_inference grounds as it goes, and takes a network that is not written down: "
                "kb.lazy(evidence, query) gives one"
            )
        given = network.opened()
        try:
            return _Search(self, network, given, running, rng).run()
        finally:
            given.store.close()


class _Search:
    """The best world and the least bound so far."""

    def __init__(
        self, method: CuttingPlaneInference, network: Lazy, given: Opened, running: Running, rng: np.random.Generator
    ) -> None:
        self.method, self.given, self.rng = method, given, rng
        self.whole, self.running = running, running.within(PROOF_SHARE)
        self.active = ActiveFormulas(given)
        self.losses = Losses(given, split=network.split, limit=method.max_clauses)
        self.defaults = self.active.defaults()
        self.true: IntArray | None = None
        self.score, self.bound, self.tolerance = -np.inf, np.inf, 0.0
        self.rounds = 0

    def run(self) -> Decoding:
        """Rounds until nothing new is lost, or somebody wishes to stop."""
        stop: BaseException | None = None
        try:
            while self.round():
                self.running.check(self.score, self.bound)
        except STOPS as wish:
            stop = wish
        except SystemError as error:
            # What a compiled kernel makes of Ctrl-C.
            if not isinstance(error.__cause__ or error.__context__, KeyboardInterrupt):
                raise
            stop = KeyboardInterrupt()
        if isinstance(stop, TimeoutError):
            self.walk()
        if self.true is None:
            if isinstance(stop, TimeoutError) and self.whole.time_limit is not None:
                raise TimeoutError(f"no answer within the time limit of {self.whole.time_limit:g} s")
            if stop is None:
                stop = TimeoutError(
                    f"the solver {self.method.solver!r} found no world that satisfies the hard formulas: 'auto' does"
                )
            raise stop
        return self.answer(self.true, stop is None or self.proven)

    @property
    def proven(self) -> bool:
        """Whether the bound says that there is no better world."""
        return self.bound - self.score <= self.tolerance

    def round(self) -> bool:
        """Solve, look at what the solution loses, ground that; whether there is more to do."""
        self.rounds += 1
        found = self.active.restricted()
        states, bound, tolerance, stop = self.solve(found)
        if bound < self.bound:
            self.bound, self.tolerance = bound, tolerance
        fresh = self.look(found, states)
        if stop is not None:
            raise stop
        return fresh > 0 and not self.proven

    def walk(self) -> None:
        """While time is left: worlds of what is grounded by MaxWalkSAT, and what these lose is grounded in turn."""
        try:
            while self.whole.still and not self.proven:
                found, before, here = self.active.restricted(), self.score, None
                if self.true is not None:
                    start = np.isin(found.atoms, self.true).astype(np.int32)
                    here = decoding_of_states(found.graph, [(start, before)], method=self.method.name)
                nothing = Evidence.parse(found.graph.structure, None)
                answer = MaxWalkSAT().decode(found.graph, nothing, running=self.whole.quiet, init=here, rng=self.rng)
                fresh = self.look(found, answer.states.astype(np.int64))
                self.whole.check(self.score, self.bound)
                if not fresh and self.score <= before:
                    return
        except (*STOPS, ImpossibleEvidenceError, ModelError, MemoryLimitError):
            return

    def look(self, found: Restricted, states: IntArray) -> int:
        """Score the world of these states, ground what it loses; how many ground formulas are new."""
        true = found.atoms[states == 1]
        others = self.defaults[~np.isin(self.defaults, found.atoms)]
        true = np.union1d(true, others)
        lost, fresh = 0.0, 0
        for formula, blocks in self.losses.of(true):
            more, new = self.active.take(formula, blocks)
            lost, fresh = lost + more, fresh + new
            if self.active.n_formulas > self.method.max_clauses:
                raise MemoryLimitError(
                    f"{self.active.n_formulas} ground formulas are violated on the way, more than max_clauses="
                    f"{self.method.max_clauses}"
                )
        atoms, p = self.active.soft
        score = float(np.log(np.where(np.isin(atoms, true), p, 1.0 - p)).sum()) - lost
        if score > self.score:
            self.score, self.true = score, true
        return fresh

    def solve(self, found: Restricted) -> _Solved:
        """The best states of what is grounded, a bound on their score, its tolerance, and what stopped the search."""
        graph, running = found.graph, self.running.quiet
        if not graph.n_variables:
            return np.zeros(0, np.int64), 0.0, 0.0, None
        nothing = Evidence.parse(graph.structure, None)
        try:
            if self.method.solver not in OWN_SOLVERS:
                answer = decode(
                    graph, method=self.method.solver, rng=self.rng, n_jobs=running.n_jobs,
                    time_limit=running.seconds_left,
                )  # fmt: skip
            elif self.method.solver == "clause_program":
                return self.program(found, nothing)
            else:
                try:
                    answer = JunctionTree(search=0, work_limit=TREE_WORK).decode(graph, nothing, running=running)
                except MemoryLimitError:
                    return self.program(found, nothing)
        except ImpossibleEvidenceError:
            told = contradiction(found.assembled, graph, nothing)
            raise ImpossibleEvidenceError(told or "the hard formulas contradict each other, or the evidence") from None
        rounding = 8.0 * np.finfo(float).eps * max(1.0, abs(answer.score)) * max(1, graph.n_factors)
        return answer.states.astype(np.int64), answer.upper_bound, answer.tolerance + rounding, None

    def program(self, found: Restricted, nothing: Evidence) -> _Solved:
        """By the integer program; where it was stopped before it had a world, one that no single change betters."""
        states, bound, tolerance, stop = solved_program(found, self.given.weights, self.active.soft, self.running)
        if states is None:
            states = ICM().decode(found.graph, nothing, running=Running(), rng=self.rng).states.astype(np.int64)
        return states, bound, tolerance, stop

    def answer(self, true: IntArray, finished: bool) -> Decoding:
        """The best world so far, as states of what was grounded and of what was asked for."""
        shown = query_atoms(self.given.store, self.given.asked)
        found = self.active.restricted(shown)
        states = np.isin(found.atoms, true).astype(np.int32)
        gap = float(max(0.0, self.bound - self.score))
        return decoding_of_states(
            found.graph,
            [(states, self.score)],
            gap=gap,
            tolerance=float(self.tolerance),
            guarantee="exact" if gap <= self.tolerance < np.inf else "lower",
            method=self.method.name,
            converged=finished,
            iterations=self.rounds,
            seconds=self.running.seconds,
        )
