"""The junction tree: exact answers to every question by two passes over a tree of cliques."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from markovfield._validation import check_method
from markovfield.arrays import FloatArray, IntArray, sealed
from markovfield.exceptions import ModelError
from markovfield.factors.factor_graph import FactorGraph
from markovfield.factors.remembered import Shelf
from markovfield.inference.core.answers import LogPartition, Marginals, Samples
from markovfield.inference.core.counts import Counts
from markovfield.inference.core.decodings import Decoding
from markovfield.inference.core.decodings import decoding_of_states as _decoding
from markovfield.inference.core.evidence import Evidence
from markovfield.inference.core.limits import memory_limit_bytes
from markovfield.inference.core.running import Running
from markovfield.inference.junction_tree.ancestral import by_ancestors
from markovfield.inference.junction_tree.clique_queries import (
    best_assignments,
    clique_holding,
    draw_samples,
    joint_of_clique,
)
from markovfield.inference.junction_tree.noisy_max import latent_best, latent_max_marginals
from markovfield.inference.junction_tree.plan import (
    ALMOST_SIMPLICIAL,
    SEARCH_CEILING,
    SIMPLICIAL,
    Plan,
    Tree,
    grow_tree,
    lay_out_tree,
    search_ceiling,
    too_long,
)
from markovfield.inference.junction_tree.propagate import Propagation, propagate
from markovfield.inference.problem.problem import Problem, prepare
from markovfield.kernels.compilations import clock
from markovfield.names import VariableName

if TYPE_CHECKING:
    from markovfield.inference.junction_tree.compiled import CompiledJunctionTree

__all__ = ["JunctionTree"]

_PLANS: Shelf[Plan] = Shelf(16)


class _Compile:
    """``JunctionTree.compile(model)``, on the class with default settings or on an object with its own."""

    def __get__(self, method: JunctionTree | None, owner: type[JunctionTree]) -> Callable[[Any], CompiledJunctionTree]:
        def compile(model: Any) -> CompiledJunctionTree:
            """Plan once, ask often: an object whose ``run(evidence)`` and ``run_batch(rows)`` cost no planning."""
            from markovfield.inference.junction_tree.compiled import CompiledJunctionTree

            return CompiledJunctionTree(model.compile(), owner() if method is None else method)

        return compile


@dataclass(frozen=True)
class JunctionTree:
    """Exact inference on a junction tree (Hugin-style passes; seed 001, lecture 5).

    Cost grows with the states of all cliques together, that is exponentially in the width; memory only with the
    states of the separators, since clique tables are formed in cache and never stored.

    Parameters
    ----------
    memory_limit
        Bytes, or like ``"4GiB"``; None is 8 GiB, or four fifths of the container's memory if that is less. A plan that
        needs more raises `MemoryLimitError` before allocating.
    work_limit
        The most clique states to walk over, all cliques together; a plan with more raises `MemoryLimitError` before it
        runs. None sets no limit; ``method="auto"`` sets one of some tens of seconds.
    order
        Elimination order by variable name; found by search when None. Where some variables must outlive the others
        (those queried together, those maximised in marginal MAP), they are moved behind them, in the order given.
    search
        How long to search for a good order, as a multiple of the default; 0 takes the best of a few greedy ones.
    seed
        Seed of that search: the same seed gives the same tree.
    propagate_zeros, drop_barren, simplicial, almost_simplicial, merge_factors
        Preprocessing steps, each safe to switch off: shrink domains by hard zeros, drop variables of directed models
        that the query does not depend on, the two graph reductions before the search, and combining the factors of a
        large clique in small tables first.

    Examples
    --------
    >>> import markovfield as mf
    >>> net = mf.MarkovNetwork({"A": 2, "B": 2})
    >>> _ = net.add_factor(["A", "B"], [[3.0, 1.0], [1.0, 3.0]])
    >>> answer = mf.marginals(net, evidence={"A": 0}, method=mf.methods.JunctionTree(memory_limit="1GiB"))
    >>> answer["B"].round(4).tolist()
    [0.75, 0.25]
    """

    memory_limit: str | int | None = None
    order: tuple[VariableName, ...] | None = None
    search: float = 1.0
    seed: int = 0
    propagate_zeros: bool = True
    drop_barren: bool = True
    simplicial: bool = True
    almost_simplicial: bool = True
    merge_factors: bool = True
    work_limit: float | None = None

    name: ClassVar[str] = "junction_tree"
    exact: ClassVar[bool] = True
    verbs: ClassVar[frozenset[str]] = frozenset({"sample", "marginals", "decode", "log_partition"})
    abilities: ClassVar[frozenset[str]] = frozenset({"components", "n_best", "marginal_map", "targets"})

    compile: ClassVar[_Compile] = _Compile()

    def __post_init__(self) -> None:
        check_method(self, least={"search": 0, "seed": 0}, above={"work_limit": 0})
        memory_limit_bytes(self.memory_limit)
        if self.order is not None and not isinstance(self.order, tuple):
            object.__setattr__(self, "order", tuple(self.order))

    def counts(
        self,
        graph: FactorGraph,
        clamps: npt.NDArray[np.int32],
        weights: npt.NDArray[np.float64],
        *,
        running: Running,
    ) -> Counts:
        """log Z of each row of clamps, and the weighted sum of their expected counts (see `Counts`)."""
        from markovfield.inference.junction_tree.counts import tree_counts

        return tree_counts(self, graph, clamps, weights, running)

    def tilted(
        self, graph: FactorGraph, evidence: Evidence, losses: FloatArray, offsets: IntArray, *, running: Running
    ) -> FloatArray:
        """Expected counts of each example of a union tilted by a loss (see `TiltingMethod`)."""
        from markovfield.inference.junction_tree.tilted import tilted_counts

        return tilted_counts(self, graph, evidence, losses, offsets, running)

    # ---- planning -------------------------------------------------------------------------------------------------

    def plan(
        self,
        problem: Problem,
        *,
        stage: npt.NDArray[np.int8] | None = None,
        together: Sequence[Sequence[int]] = (),
        running: Running | None = None,
    ) -> Plan:
        """The plan of a problem; kept with the structure it came from, and reused where only cells moved."""
        s = problem.structure
        whole = problem.as_tables.structure
        ceiling = search_ceiling(running)
        key = (
            self,
            ceiling,
            None if stage is None else stage.tobytes(),
            tuple(tuple(t) for t in together),
            s.cardinalities.tobytes(),
            s.scope_offsets.tobytes(),
            s.scopes.tobytes(),
            s.table_strides.tobytes(),
            s.child.tobytes(),
        )
        plan: Plan | None = _PLANS.of(whole).pop(key, None)
        if plan is None:
            tree = self.tree(problem, stage=stage, together=together, ceiling=ceiling, running=running)
            if running is not None:
                running.check()
            if self.work_limit is not None and tree.log2_states > np.log2(self.work_limit):
                raise too_long(tree.width, tree.log2_states, self.work_limit)
            plan = lay_out_tree(s, tree, memory_limit_bytes(self.memory_limit))
        elif plan.structure is not s:
            plan = plan.moved_to(s)
        _PLANS.put(whole, key, plan)
        return plan

    def tree(
        self,
        problem: Problem,
        *,
        stage: npt.NDArray[np.int8] | None = None,
        together: Sequence[Sequence[int]] = (),
        ceiling: float = SEARCH_CEILING,
        running: Running | None = None,
    ) -> Tree:
        """The clique tree of a problem, not yet laid out: what it will cost can be read off."""
        return grow_tree(
            problem.structure,
            stage=stage,
            together=together,
            order=self._order(problem),
            search=self.search,
            seed=self.seed,
            rules=SIMPLICIAL * self.simplicial + ALMOST_SIMPLICIAL * self.almost_simplicial,
            merge=self.merge_factors,
            ceiling=ceiling,
            running=running,
        )

    def _order(self, problem: Problem) -> list[int] | None:
        if self.order is None:
            return None
        given = problem.graph.names.positions(self.order)
        if len(given) != problem.graph.n_variables:
            raise ModelError(f"order names {len(given)} of {problem.graph.n_variables} variables")
        # Auxiliary variables of structured factors are not the user's to order: they go first.
        return [*range(problem.graph.n_variables, problem.structure.n_variables), *given]

    def prepare(
        self,
        graph: FactorGraph,
        evidence: Evidence,
        *,
        drop_barren: bool = False,
        drop_separated: bool = False,
        keep: Any = None,
    ) -> Problem:
        """Reduce a graph under evidence as this method's settings say."""
        return prepare(
            graph,
            evidence,
            propagate_zeros=self.propagate_zeros,
            drop_barren=drop_barren and self.drop_barren,
            drop_separated=drop_separated and self.drop_barren,
            keep=keep,
        )

    # ---- verbs ----------------------------------------------------------------------------------------------------

    def log_partition(self, graph: FactorGraph, evidence: Evidence, *, running: Running) -> LogPartition:
        """log Z by the upward pass alone."""
        problem = self.prepare(graph, evidence, drop_barren=True)
        plan = self.plan(problem, running=running)
        result = propagate(plan, problem, downward=False, running=running)
        return LogPartition(
            log_partition=result.value,
            method=self.name,
            seconds=clock() - running.started,
            width=plan.width,
        )

    def count(self, graph: FactorGraph, evidence: Evidence, *, running: Running | None = None) -> int:
        """How many assignments of a zero-one model are possible; powers of two are the only scaling."""
        problem = self.prepare(graph, evidence)
        return propagate(self.plan(problem, running=running), problem, downward=False, running=running).count()

    def marginals(
        self,
        graph: FactorGraph,
        evidence: Evidence,
        *,
        targets: Sequence[Sequence[int]] = (),
        running: Running,
    ) -> Marginals:
        """All single marginals; ``targets`` are kept together in cliques."""
        problem = self.prepare(graph, evidence)
        if not (targets or evidence or self.order):
            found = by_ancestors(self, problem, running)
            if found is not None:
                return dress(self, problem, None, running, *found)
        free = [[v for v in t if problem.structure.cardinalities[v] > 1] for t in targets]
        plan = self.plan(problem, together=[t for t in free if len(t) > 1], running=running)
        return answer(self, problem, propagate(plan, problem, running=running), running)

    def joint(
        self, graph: FactorGraph, evidence: Evidence, variables: Sequence[int], *, running: Running
    ) -> FloatArray:
        """Joint posterior of a few variables, from the part of the model that it depends on."""
        return self.joint_of(self.prepare_query(graph, evidence, variables), variables, running=running)

    def prepare_query(self, graph: FactorGraph, evidence: Evidence, variables: Sequence[int]) -> Problem:
        """Reduce a graph to what the joint posterior of some variables depends on."""
        keep = np.zeros(graph.n_variables, np.bool_)
        keep[list(variables)] = True
        return self.prepare(graph, evidence, drop_barren=True, drop_separated=True, keep=keep)

    def joint_of(self, problem: Problem, variables: Sequence[int], *, running: Running) -> FloatArray:
        """Joint posterior of a few variables of a problem made ready for them."""
        return _joint(self, problem, None, tuple(variables), running)

    def decode(
        self,
        graph: FactorGraph,
        evidence: Evidence,
        *,
        variables: Sequence[int] | None = None,
        n_best: int = 1,
        running: Running,
    ) -> Decoding:
        """The best assignment, the next best ones, or with ``variables`` the best marginal assignment."""
        everything = variables is None or len(set(variables)) == graph.n_variables
        if everything and graph.structure.has_latent:
            best, width = latent_best(self, graph, evidence, n_best, running)
            seconds = clock() - running.started
            return _decoding(graph, best, variables, method=self.name, seconds=seconds, width=width)
        problem = self.prepare(graph, evidence)
        chosen = stage = None
        if variables is not None:
            chosen = np.zeros(problem.structure.n_variables, np.bool_)
            chosen[list(variables)] = True
            stage = chosen.astype(np.int8)
        plan = self.plan(problem, stage=stage, running=running)
        result = propagate(plan, problem, operation="max", downward=False, decode=chosen, running=running)
        found = best_assignments(result, n_best, chosen)
        return _decoding(
            graph,
            [(problem.states(states), result.value - loss) for states, loss in found],
            variables,
            method=self.name,
            seconds=clock() - running.started,
            width=plan.width,
        )

    def sample(
        self, graph: FactorGraph, size: int, evidence: Evidence, *, rng: np.random.Generator, running: Running
    ) -> Samples:
        """Independent exact samples, drawn from the roots down."""
        problem = self.prepare(graph, evidence)
        plan = self.plan(problem, running=running)
        result = propagate(plan, problem, downward=False, running=running)
        states = problem.states(draw_samples(result, size, rng))
        return Samples(graph=graph, states=states, method=self.name, seconds=clock() - running.started)


def deferred(
    method: JunctionTree, problem: Problem, result: Propagation | None
) -> tuple[Callable[[tuple[int, ...]], FloatArray], Callable[[], FloatArray], Callable[[], FloatArray]]:
    """Joint tables, max-marginals and expected counts, computed when an answer is asked for them."""

    def plan() -> Plan:
        return method.plan(problem) if result is None else result.plan

    def joint(positions: tuple[int, ...]) -> FloatArray:
        return _joint(method, problem, result, positions)

    def max_marginals() -> FloatArray:
        if problem.graph.structure.has_latent:
            return latent_max_marginals(method, problem.graph, problem.evidence)
        best = propagate(plan(), problem, operation="max")
        return problem.expand(best.marginals + best.value, -np.inf)

    def counts() -> FloatArray:
        return problem.counts(propagate(plan(), problem, counts=True).counts)

    return joint, max_marginals, counts


def answer(method: JunctionTree, problem: Problem, result: Propagation, running: Running) -> Marginals:
    """Dress a propagation as the user's answer."""
    values = problem.expand(result.marginals, 0.0)
    return dress(method, problem, result, running, values, result.value, result.plan.width)


def dress(
    method: JunctionTree,
    problem: Problem,
    result: Propagation | None,
    running: Running,
    values: FloatArray,
    log_partition: float,
    width: int,
) -> Marginals:
    """The user's answer; what it is not asked for at once is computed later, from ``result`` or from a new plan."""
    joint, max_marginals, counts = deferred(method, problem, result)
    return Marginals(
        graph=problem.graph,
        values=sealed(values),
        log_partition=log_partition,
        log_partition_bounds=(log_partition, log_partition),
        method=method.name,
        seconds=clock() - running.started,
        width=width,
        _components=None if result is None else result.components,
        _joint=joint,
        _max_marginals=max_marginals,
        _counts=counts,
    )


def _joint(
    method: JunctionTree,
    problem: Problem,
    result: Propagation | None,
    positions: tuple[int, ...],
    running: Running | None = None,
) -> FloatArray:
    """Joint distribution of any variables: from a clique that holds them, else from a plan that keeps them together."""
    cards = problem.structure.cardinalities
    free = [v for v in positions if cards[v] > 1]
    if len(free) == 1:
        result = propagate(method.plan(problem), problem, running=running) if result is None else result
        at = result.plan.value_offsets
        table = result.marginals[at[free[0]] : at[free[0] + 1]]
    elif free:
        clique = None if result is None else clique_holding(result, free)
        if result is None or clique is None:
            plan = method.plan(problem, together=[free])
            result = propagate(plan, problem, running=running)
            clique = clique_holding(result, free)
            assert clique is not None
        table = joint_of_clique(result, clique, free)
    else:
        table = np.ones(())
    return problem.expand_joint(table.reshape([int(cards[v]) for v in positions]), positions)
