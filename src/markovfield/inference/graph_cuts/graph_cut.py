"""Graph cuts: the best assignment of binary models of attractive pairs, and roof duality for all others."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from markovfield._validation import check_method
from markovfield.arrays import BoolArray
from markovfield.exceptions import ModelError
from markovfield.factors.factor_graph import FactorGraph
from markovfield.inference.constants.scale import score_scale
from markovfield.inference.core.decodings import Decoding, decoding_of_states
from markovfield.inference.core.evidence import Evidence
from markovfield.inference.core.running import STOPS, Running
from markovfield.inference.graph_cuts.flow_networks import FlowGraph, Network
from markovfield.inference.graph_cuts.max_flow_kernel import balance
from markovfield.inference.graph_cuts.penalties import Penalties, penalties_of
from markovfield.inference.local_search.incumbent import ScoreUnits
from markovfield.inference.problem.feasible import BUDGET, Feasible
from markovfield.inference.problem.pairs import PairProblem, pair_problem

__all__ = ["GraphCut", "is_submodular"]

# Flow and cut are sums over the whole graph, rounded in different orders: how far apart, relative to the score, still
# counts as equal.
SAME = 1e-9
# Shares of the open variables that are held in turn while the others are improved.
HELD = (0.5, 0.3, 0.15)
# An odd number near 2^32 over the golden ratio: its multiples, modulo 2^32, are spread evenly.
SPREAD = 2654435769


@dataclass(frozen=True)
class GraphCut:
    """The best assignment of variables of two states, joined in pairs, by a maximum flow.

    Sources: Greig, Porteous and Seheult (1989); Kolmogorov and Zabih (2004) for what a cut can minimise.

    Where every pair prefers equal states (a submodular model), or would after the two states of some variables are
    exchanged, a minimum cut is a best assignment, and the answer is optimal. For all other models the flow through a
    graph with two nodes for each variable gives an upper bound, that of roof duality (Hammer, Hansen and Simeone 1984),
    and the states of some variables, which are proven to be those of a best assignment; the others are completed by
    rounds of the same computation with some of them held (Rother, Kolmogorov, Lempitsky and Szummer 2007), and by local
    search. Hard zeros are capacities without limit.

    Time is that of a maximum flow: in practice little more than linear in the pairs. Large rectangular lattices are
    worked on in slabs of rows, on ``n_jobs`` threads; the answer does not depend on how many. A time limit gives the
    assignment and the bound reached by then. Capacities are float64 (in lattices, integers of 32 bits where all
    are): the flow and the cut it proves are both computed, and ``tolerance``, 1e-9 of the score without its constants,
    is what rounding may make of their difference; where scores are integers nothing is left to it.

    Parameters
    ----------
    persistency
        Without it, models that no exchange of states makes submodular are refused.
    improve
        Rounds of improvement for variables that roof duality leaves open.

    Examples
    --------
    >>> import markovfield as mf
    >>> net = mf.MarkovNetwork(dict.fromkeys("ABC", 2))
    >>> _ = net.add_factors([("A", "B"), ("B", "C"), ("C", "A")], [[3.0, 1.0], [1.0, 3.0]])
    >>> _ = net.add_factor(["A"], [1.0, 4.0])
    >>> answer = mf.decode(net, method=GraphCut())
    >>> answer.assignment, answer.optimal, answer.persistent.tolist()
    ({'A': 1, 'B': 1, 'C': 1}, True, [True, True, True])
    """

    persistency: bool = True
    improve: int = 12

    name: ClassVar[str] = "graph_cut"
    exact: ClassVar[bool] = False
    needs: ClassVar[str] = "binary pairwise"
    verbs: ClassVar[frozenset[str]] = frozenset({"decode"})
    abilities: ClassVar[frozenset[str]] = frozenset({"init"})

    def __post_init__(self) -> None:
        check_method(self, least={"improve": 0})

    def decode(
        self, graph: FactorGraph, evidence: Evidence, *, running: Running, init: Decoding | None = None
    ) -> Decoding:
        """A best assignment, or a good one with the bound of roof duality."""
        pairs = pair_problem(self.name, graph, evidence, shrink=True)
        _check_binary(pairs)
        penalties = penalties_of(pairs)
        run = _Run(pairs, penalties)
        converged = True
        try:
            if not run.by_cut(running):
                if not self.persistency:
                    raise ModelError(
                        "the model is not submodular, whatever states are exchanged, and GraphCut(persistency=False) "
                        "takes no other: allow persistency, or use tree_reweighted"
                    )
                run.by_roof(running)
        except STOPS:
            converged = False
        if not run.proven.all():
            try:
                run.complete(init, self.improve if converged else 0, running)
            except STOPS:
                converged = False
        return run.answer(self.name, converged, running)


def _check_binary(pairs: PairProblem) -> None:
    s = pairs.problem.structure
    wide = np.flatnonzero(s.cardinalities > 2)
    if len(wide):
        v = int(wide[0])
        named = f"variable {s.names.variables[v]!r}" if v < pairs.problem.graph.n_variables else "an auxiliary variable"
        raise ModelError(
            f"graph_cut takes variables of two states, and {named} has {s.cardinalities[v]}: use alpha_expansion"
        )


def _exchange(penalties: Penalties) -> npt.NDArray[np.int8] | None:
    """Variables whose states to exchange so that every pair prefers equal ones; None where no choice does."""
    n, repels = penalties.n_variables, penalties.repels
    colour = np.zeros(n, np.int8)
    if repels.any():
        graph = FlowGraph(n, penalties.low, penalties.high)
        sign = np.empty(len(graph.arcs), np.int8)
        sign[graph.arcs] = np.repeat(np.where(repels, -1, 1), 2)
        if not balance(graph.first, graph.head, sign, colour, np.empty(n, np.int64)):
            return None
    return colour


def is_submodular(graph: FactorGraph, evidence: Evidence) -> bool:
    """Whether a graph cut solves this model exactly: two states, pairs, submodular after exchanging states.

    Examples
    --------
    >>> import markovfield as mf
    >>> graph = mf.Ising((3, 3), coupling=-1.0, field=0.5).compile()
    >>> is_submodular(graph, Evidence.parse(graph.structure, None))
    True
    >>> graph = mf.Ising([(0, 1), (1, 2), (2, 0)], coupling=-1.0).compile()
    >>> is_submodular(graph, Evidence.parse(graph.structure, None))
    False
    """
    if graph.structure.has_latent:
        return False
    try:
        pairs = pair_problem("graph_cut", graph, evidence, shrink=True)
        _check_binary(pairs)
    except ModelError:
        return False
    return _exchange(penalties_of(pairs)) is not None


class _Run:
    """States found so far, and what is proven of them."""

    def __init__(self, pairs: PairProblem, penalties: Penalties) -> None:
        self.pairs, self.penalties = pairs, penalties
        self.units = ScoreUnits.of(pairs.problem)
        n = pairs.n_variables
        alone = np.bincount(penalties.low, minlength=n) + np.bincount(penalties.high, minlength=n) == 0
        self.fixed = pairs.problem.structure.cardinalities == 1
        self.states = (penalties.excess > 0).astype(np.int64)
        self.proven = alone
        self.paid = 0.0
        self.rounds = 1

    def _push(self, network: Network, share: float, running: Running) -> None:
        """Find the maximum flow; what has gone when it is stopped is a bound as well."""
        try:
            network.run(running)
        finally:
            self.paid = share * network.flow
        if network.endless:
            raise self.pairs.problem.impossible()

    def by_cut(self, running: Running) -> bool:
        """Solve the model by one cut, where exchanging states makes it submodular; whether it does."""
        penalties, n = self.penalties, self.penalties.n_variables
        colour = _exchange(penalties)
        if colour is None:
            return False
        if colour.any():
            penalties = penalties.flipped(colour > 0)
        network = penalties.network()
        try:
            self._push(network, 1.0, running)
        finally:
            self.states = (network.source_side() ^ (colour > 0)).astype(np.int64)
            self.states[self.fixed] = 0
        self.proven = np.ones(n, np.bool_)
        return True

    def by_roof(self, running: Running) -> None:
        """The bound of roof duality, and the states it proves."""
        n = self.penalties.n_variables
        network = self.penalties.doubled()
        self._push(network, 0.5, running)
        labelled, states = _read_off(network, n)
        labelled &= ~self.fixed
        self.proven |= labelled
        self.states[labelled] = states[labelled]

    def complete(self, init: Decoding | None, rounds: int, running: Running) -> None:
        """States for the variables that are not proven: given ones or a search's, then rounds of improvement."""
        pairs, penalties = self.pairs, self.penalties
        feasible = Feasible.of(pairs.problem)
        states = self.states.copy()
        if init is not None:
            given = _states_of(pairs, init)
            states[~self.proven] = given[~self.proven]
        if penalties.penalty(states) == np.inf:
            preference = np.zeros(int(pairs.problem.structure.value_offsets[-1]))
            preference[pairs.problem.structure.value_offsets[:-1] + states] = 1.0
            found = feasible.assignment(preference)
            if found is None:
                raise ModelError(
                    f"no assignment free of hard zeros was found in {BUDGET} steps back: use junction_tree to decode"
                )
            states = np.where(self.proven, states, found)
        self.states = feasible.climbed(states)
        least = penalties.penalty(self.states)
        scale = score_scale(pairs.problem.graph, pairs.problem.evidence)
        for k in range(rounds):
            if scale.proves(least - self.paid, SAME * max(self.units.unit, abs(least))):
                break
            running.check()
            self.rounds += 1
            again = self._improved(k, running)
            if not np.array_equal(again, self.states):
                again = feasible.climbed(again)
            penalty = penalties.penalty(again)
            if penalty <= least:
                self.states, least = again, penalty

    def _improved(self, k: int, running: Running) -> npt.NDArray[np.int64]:
        """Hold some of the open variables, and take over what roof duality then says of the others: never worse."""
        mixed = (np.arange(len(self.states), dtype=np.uint64) + np.uint64(1)) * np.uint64(SPREAD + 2 * k * SPREAD)
        mixed ^= mixed >> np.uint64(29)
        share = (mixed * np.uint64(SPREAD)) % np.uint64(2**32) / 2**32
        rest, free = self.penalties.held(self.proven | (share < HELD[k % len(HELD)]), self.states)
        network = rest.doubled()
        network.run(running)
        labelled, states = _read_off(network, len(free))
        again = self.states.copy()
        again[free[labelled]] = states[labelled]
        return again

    def answer(self, method: str, converged: bool, running: Running) -> Decoding:
        """Dress what was found as the user's answer."""
        problem = self.pairs.problem
        score = self.pairs.score(self.states)
        gap = max(0.0, self.penalties.penalty(self.states) - self.paid)
        tolerance = SAME * self.units.size(score)
        persistent = self.proven[: problem.graph.n_variables] | (gap <= tolerance)
        persistent.flags.writeable = False
        found = decoding_of_states(
            problem.graph,
            [(problem.states(self.states), score)],
            gap=gap,
            tolerance=tolerance,
            guarantee="exact" if gap <= tolerance else "lower",
            method=method,
            converged=converged,
            iterations=self.rounds,
            seconds=running.seconds,
        )
        return replace(found, persistent=persistent)


def _read_off(network: FlowGraph, n: int) -> tuple[BoolArray, npt.NDArray[np.int64]]:
    """Which variables a minimum cut of the doubled network labels (both of its nodes agree), and their states."""
    side = network.source_side()
    labelled: BoolArray = side[:n] != side[n:]
    return labelled, side[:n].astype(np.int64)


def _states_of(pairs: PairProblem, init: Any) -> npt.NDArray[np.int64]:
    """The states of an earlier answer among those left; the first where an old one is gone."""
    problem = pairs.problem
    n = problem.graph.n_variables
    if not isinstance(init, Decoding) or len(init.states) != n:
        raise ModelError("init of graph_cut must be an earlier decoding of the same variables")
    given = np.zeros(pairs.n_variables, np.int64)
    for v in range(n):
        if problem.reduced is None:
            state = int(init.states[v])
            given[v] = state if 0 <= state < problem.structure.cardinalities[v] else 0
        else:
            r = problem.reduced
            possible = r.states[r.state_offsets[v] : r.state_offsets[v + 1]].tolist()
            given[v] = possible.index(init.states[v]) if init.states[v] in possible else 0
    return given
