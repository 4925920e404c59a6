"""Belief propagation: messages between factors and variables; exact in two passes on forests, iterated on cycles."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from markovfield._validation import check_method
from markovfield.arrays import FloatArray, IntArray
from markovfield.exceptions import ModelError
from markovfield.factors.factor_graph import FactorGraph
from markovfield.inference.belief_propagation.beliefs import (
    assignment,
    beliefs,
    bethe,
    components,
    factor_joint,
    pool_counts,
)
from markovfield.inference.belief_propagation.forest import TreeMessages, find_forest, is_forest, tree_joint
from markovfield.inference.belief_propagation.loopy import LoopyMessages, Settings, start_of
from markovfield.inference.belief_propagation.native_forest import (
    is_native_forest,
    native_log_partition,
    native_marginals,
)
from markovfield.inference.core.answers import LogPartition, Marginals
from markovfield.inference.core.convergence import DAMPING, warn_not_converged
from markovfield.inference.core.counts import Rows
from markovfield.inference.core.decodings import Decoding, decoding_of_states
from markovfield.inference.core.evidence import Evidence
from markovfield.inference.core.running import STOPS, Running
from markovfield.inference.problem.problem import Problem, prepare

if TYPE_CHECKING:
    from markovfield.inference.belief_propagation.compiled import CompiledPropagation

__all__ = ["SCHEDULES", "BeliefPropagation"]

SCHEDULES = ("auto", "tree", "synchronous", "sequential", "residual")
# Above this many factors "auto" does not look whether hard zeros and barren variables leave a forest of a cyclic graph.
LOOK = 100_000


class _Compile:
    """``BeliefPropagation.compile(model)``, on the class with default settings or on an object with its own."""

    def __get__(self, method: BeliefPropagation | None, owner: type[BeliefPropagation]) -> Any:
        def compile(model: Any) -> CompiledPropagation:
            """Lay a model out once, for any evidence and for batches of it."""
            from markovfield.inference.belief_propagation.compiled import CompiledPropagation

            return CompiledPropagation(model.compile(), owner() if method is None else method)

        return compile


@dataclass(frozen=True)
class BeliefPropagation:
    """Sum-product and max-product messages on the factor graph (Andres 6.36 to 6.40; seed 001, lecture 5).

    On a forest, messages go once towards the roots and once back: exact, in log space. On any other graph they are
    sent until they converge; `log_partition` is then the Bethe value, which is no bound, and `guarantee` says
    ``"approximate"``. Evidence enters as likelihoods, so nothing is laid out anew for it. Connected components converge
    each for itself (``answer.components``), so a union of many graphs runs as one.

    A sweep costs the sum over tables of their cells; structured factors cost what their kind says. Memory is two
    messages for each edge. Messages are sums of products in scaled linear space; a component in which products might
    vanish runs in log space instead.

    Parameters
    ----------
    schedule
        ``"tree"``: two passes, for forests only. ``"synchronous"``: all factors, then all variables ("flooding"), on
        all threads. ``"sequential"``: variable after variable, forwards and backwards in turn, each using what
        the one before has sent. ``"residual"``: always the message that moves most (Elidan, McGraw and Koller 2006).
        The last two take structured factors in plain tables, which changes no fixed point. ``"auto"``: two passes on a
        forest, otherwise sequential; synchronous where there are structured factors, which is exact too on a forest
        and far faster where they count many variables.
    damping
        Share of the old message that is kept, from 0 to below 1; fixed points stay as they are.
    max_iterations
        Most sweeps; for ``"residual"``, most messages for each edge.
    tolerance
        Converged is when no entry of a message, undamped, would change by more than this in proportion to its size:
        where potentials span many powers of ten, the smallest entry may be the one that matters.

    Examples
    --------
    >>> import markovfield as mf
    >>> net = mf.MarkovNetwork({"A": 2, "B": 2, "C": 2})
    >>> _ = net.add_factors([("A", "B"), ("B", "C")], [[3.0, 1.0], [1.0, 3.0]])
    >>> answer = mf.marginals(net, evidence={"A": 0}, method=mf.methods.BeliefPropagation())
    >>> answer["C"].round(4).tolist(), answer.guarantee
    ([0.625, 0.375], 'exact')
    >>> mf.decode(net, evidence={"A": 1}, method="bp").assignment
    {'A': 1, 'B': 1, 'C': 1}
    >>> _ = net.add_factor(("C", "A"), [[3.0, 1.0], [1.0, 3.0]])
    >>> _ = net.add_factor(["A"], [2.0, 1.0])
    >>> answer = mf.marginals(net, method=mf.methods.BeliefPropagation("synchronous"))
    >>> answer.guarantee, answer.converged
    ('approximate', True)
    """

    schedule: str = "auto"
    damping: float = 0.0
    max_iterations: int = 1000
    tolerance: float = 1e-8

    name: ClassVar[str] = "belief_propagation"
    exact: ClassVar[bool] = False
    verbs: ClassVar[frozenset[str]] = frozenset({"marginals", "decode", "log_partition"})
    abilities: ClassVar[frozenset[str]] = frozenset({"components", "init"})
    compile: ClassVar[_Compile] = _Compile()

    def __post_init__(self) -> None:
        limits = {"damping": 0, "max_iterations": 1}
        check_method(self, least=limits, above={"tolerance": 0}, below={"damping": 1}, choices={"schedule": SCHEDULES})

    def log_partition(
        self, graph: FactorGraph, evidence: Evidence, *, running: Running, init: Any = None
    ) -> LogPartition:
        """log Z by the pass towards the roots alone on a forest; otherwise the Bethe value."""
        if self._is_native(graph, evidence):
            exact = native_log_partition(self, graph, evidence, running)
            if exact is not None:
                return exact
        problem = self._forest_problem(graph, evidence, drop_barren=True)
        start_of(init, graph)
        if problem is not None:
            messages = TreeMessages(problem)
            value = messages.collect(running)
            return LogPartition(
                log_partition=value,
                method=self.name,
                seconds=running.seconds,
                width=messages.forest.width,
            )
        loopy = self._run(graph, evidence, running, init)
        by_component, constant = bethe(loopy, beliefs(loopy, Running(running.n_jobs))[1], Running(running.n_jobs))
        return LogPartition(
            log_partition=float(by_component.sum()) + constant,
            guarantee="approximate",
            method=self.name,
            converged=bool(loopy.converged.all()),
            iterations=int(loopy.iterations.max(initial=0)),
            residuals=tuple(loopy.residuals),
            seconds=running.seconds,
        )

    def marginals(self, graph: FactorGraph, evidence: Evidence, *, running: Running, init: Any = None) -> Marginals:
        """All single marginals; joint distributions of ``targets`` are worked out when they are asked for."""
        if self._is_native(graph, evidence):
            exact = native_marginals(self, graph, evidence, running, loopy_marginals)
            if exact is not None:
                return exact
        problem = self._forest_problem(graph, evidence)
        start_of(init, graph)
        if problem is not None:
            return self._tree_marginals(problem, running)
        loopy = self._run(graph, evidence, running, init)
        return loopy_marginals(self, graph, loopy, running)

    def rows_that_join(self, graph: FactorGraph, clamps: Rows) -> IntArray | None:
        """Rows that leave forests, which are exact, and the others: two kinds; components converge each for itself."""
        if self.schedule not in ("auto", "synchronous", "sequential") or not graph.structure.is_plain:
            return None
        if self.schedule != "auto":
            return np.zeros(len(clamps), np.int64)
        return np.array([is_forest(graph.structure, row) for row in clamps], np.int64)

    def _tree_marginals(self, problem: Problem, running: Running) -> Marginals:
        messages = TreeMessages(problem)
        value = messages.collect(running)
        reduced = messages.distribute(running)
        values = problem.expand(reduced, 0.0)

        def max_marginals() -> FloatArray:
            best = TreeMessages(problem, maximise=True)
            score = best.collect(Running())
            return problem.expand(best.distribute(Running()) + score, -np.inf)

        return Marginals(
            graph=problem.graph,
            values=values,
            log_partition=value,
            log_partition_bounds=(value, value),
            method=self.name,
            seconds=running.seconds,
            width=messages.forest.width,
            _components=lambda: problem.components(*messages.terms),
            _joint=lambda positions: tree_joint(messages, reduced, positions),
            _max_marginals=max_marginals,
            _counts=lambda: problem.counts(messages.counts(Running())),
        )

    def decode(self, graph: FactorGraph, evidence: Evidence, *, running: Running, init: Any = None) -> Decoding:
        """The best assignment on a forest; on a cyclic graph a good one, by max-product, of which nothing is proven."""
        problem = self._forest_problem(graph, evidence)
        if problem is not None:
            messages = TreeMessages(problem, maximise=True)
            try:
                score = messages.collect(running)
                states = problem.states(messages.backtrack(running))
            except STOPS as stop:
                from markovfield.inference.local_search.incumbent import stopped_decoding

                return stopped_decoding(self.name, problem, running, stop)
            return decoding_of_states(
                graph,
                [(states, score)],
                method=self.name,
                seconds=running.seconds,
                width=messages.forest.width,
            )
        loopy = self._run(graph, evidence, running, init, maximise=True)
        chosen, score = assignment(loopy, graph, Running(running.n_jobs))
        if score == -np.inf:
            from markovfield.inference.local_search.incumbent import Incumbent

            # Messages say nothing of constraints between variables that choose at once: look for any that hold.
            possible = Incumbent(prepare(graph, evidence))
            possible.search(np.zeros(int(possible.problem.structure.value_offsets[-1])), Running(running.n_jobs))
            if possible.score > -np.inf:
                chosen, score = possible.states.astype(np.int64), possible.score
        return decoding_of_states(
            graph,
            [(chosen.astype(np.int32), score)],
            gap=np.inf,
            guarantee="lower",
            method=self.name,
            converged=bool(loopy.converged.all()),
            iterations=int(loopy.iterations.max(initial=0)),
            residuals=tuple(loopy.residuals),
            seconds=running.seconds,
        )

    # ---- which way ------------------------------------------------------------------------------------------

    def _is_native(self, graph: FactorGraph, evidence: Evidence) -> bool:
        """Whether messages of structured factors themselves are exact, and their tables large."""
        return self.schedule == "auto" and is_native_forest(graph, evidence)

    def _forest_problem(self, graph: FactorGraph, evidence: Evidence, *, drop_barren: bool = False) -> Problem | None:
        """The reduced problem where two passes solve it; None where messages must be iterated."""
        if self.schedule == "tree":
            return prepare(graph, evidence, drop_barren=drop_barren)
        if self.schedule != "auto":
            return None
        if not is_forest(graph.structure, evidence.states):
            # Hard zeros may decide variables that close cycles, and barren variables may be all that does.
            s = graph.structure
            hopeful = bool((s.child >= 0).any()) if drop_barren else False
            hopeful = hopeful or bool(np.isneginf(graph.log_tables).any())
            if not hopeful or s.n_factors > LOOK:
                return None
        problem = prepare(graph, evidence, drop_barren=drop_barren)
        return problem if find_forest(problem) is not None else None

    def _run(
        self, graph: FactorGraph, evidence: Evidence, running: Running, init: Any, *, maximise: bool = False
    ) -> LoopyMessages:
        if maximise and graph.structure.has_latent:
            raise ModelError(
                "belief_propagation would maximise the contributions of a noisy-max, which must be summed: "
                "use junction_tree"
            )
        s = graph.structure
        alone = s.table_offsets[np.diff(s.scope_offsets) == 0]
        if np.isneginf(graph.log_tables[alone]).any():
            raise evidence.impossible(s)
        plain = s.is_plain
        schedule = self.schedule
        if schedule == "auto":
            schedule = "sequential" if plain else "synchronous"
        start = start_of(init, graph)
        if not plain and schedule in ("sequential", "residual"):
            graph = graph.to_tables()
        if start is not None and start.structure is not graph.structure:
            start = None
        # A damped message moves only by a share of what it lacks.
        settings = Settings(schedule, self.damping, self.max_iterations, self.tolerance * (1.0 - self.damping))
        messages = LoopyMessages(graph, evidence, settings, maximise=maximise, start=start)
        messages.run(running)
        if not messages.converged.all():
            last = messages.residuals[-1] if messages.residuals else np.inf
            warn_not_converged(self.name, int(messages.iterations.max(initial=0)), last, self.tolerance, DAMPING)
        return messages


def loopy_marginals(method: BeliefPropagation, graph: FactorGraph, loopy: LoopyMessages, running: Running) -> Marginals:
    """Converged messages as an answer about the user's graph, of which ``loopy.graph`` may be the plain tables."""
    quiet = Running(running.n_jobs)
    full, terms = beliefs(loopy, quiet)
    by_component, constant = bethe(loopy, terms, quiet)
    values = full[: int(graph.structure.value_offsets[-1])]

    def max_marginals() -> FloatArray:
        best = method._run(graph, loopy.evidence, Running(), None, maximise=True)
        _, score = assignment(best, graph, Running())
        return beliefs(best, Running())[0][: len(values)] + score

    return Marginals(
        graph=graph,
        values=values,
        log_partition=float(by_component.sum()) + constant,
        guarantee="approximate",
        method=method.name,
        converged=bool(loopy.converged.all()),
        iterations=int(loopy.iterations.max(initial=0)),
        residuals=tuple(loopy.residuals),
        seconds=running.seconds,
        _components=lambda: components(loopy, by_component, graph.n_variables),
        _joint=lambda positions: factor_joint(loopy, full, positions),
        _max_marginals=max_marginals,
        _counts=lambda: graph.own_counts(pool_counts(loopy, full, Running())),
        _state=loopy.state(),
    )
