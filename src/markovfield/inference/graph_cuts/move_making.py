"""Move making: expansions and swaps, each the best of exponentially many moves, found by a cut (Boykov et al. 2001)."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import ClassVar

import numpy as np

from markovfield._validation import check_method
from markovfield.arrays import IntArray
from markovfield.exceptions import ModelError
from markovfield.factors.factor_graph import FactorGraph
from markovfield.inference.core.convergence import warn_not_converged
from markovfield.inference.core.decodings import Decoding, decoding_of_states
from markovfield.inference.core.evidence import Evidence
from markovfield.inference.core.running import STOPS, Running
from markovfield.inference.graph_cuts.move_networks import Moves
from markovfield.inference.problem.feasible import BUDGET, Feasible
from markovfield.inference.problem.pairs import PairProblem, pair_problem
from markovfield.inference.problem.problem import prepare

__all__ = ["AlphaBetaSwap", "AlphaExpansion", "first_states", "states_by_merit"]


@dataclass(frozen=True)
class _MoveMaking:
    """Moves from assignment to assignment, one after the other, until none of a whole cycle improves."""

    max_iterations: int = 100

    name: ClassVar[str]
    exact: ClassVar[bool] = False
    needs: ClassVar[str] = "pairwise"
    verbs: ClassVar[frozenset[str]] = frozenset({"decode"})
    abilities: ClassVar[frozenset[str]] = frozenset({"init"})

    def __post_init__(self) -> None:
        check_method(self, least={"max_iterations": 1})

    def decode(
        self, graph: FactorGraph, evidence: Evidence, *, running: Running, init: Decoding | None = None
    ) -> Decoding:
        """An assignment that no such move improves."""
        pairs = pair_problem(self.name, graph, evidence, shrink=False)
        order = states_by_merit(pairs)
        expanding = isinstance(self, AlphaExpansion)
        cycle = [(-1, beta) for beta in order] if expanding else list(combinations(order, 2))
        moves = Moves(pairs, first_states(self.name, pairs, init, order), keep=expanding)
        converged = False
        stopped = False
        residuals: list[float] = []
        # Moves tried since the last one that changed anything: when all have been, none is left.
        idle, n_moves = 0, len(cycle)
        try:
            if init is None:
                moves.foresee(running)
            if init is None and not expanding:
                # Swaps alone rarely leave where they start: one cycle of expansions is a cheap better one.
                for beta in order:
                    moves.expand(beta, running)
            while not converged and len(residuals) < self.max_iterations:
                before = moves.score
                for alpha, beta in cycle:
                    improved = moves.expand(beta, running) if expanding else moves.swap(alpha, beta, running)
                    idle = 0 if improved else idle + 1
                    if idle >= n_moves:
                        break
                converged = idle >= n_moves
                residuals.append(moves.score - before)
        except STOPS:
            stopped = True
        if not converged and not stopped:
            warn_not_converged(self.name, len(residuals), residuals[-1], 0.0)
        problem = pairs.problem
        return decoding_of_states(
            graph,
            [(problem.states(moves.states), pairs.score(moves.states))],
            gap=np.inf,
            guarantee="lower",
            method=self.name,
            converged=converged,
            iterations=len(residuals),
            residuals=tuple(residuals),
            seconds=running.seconds,
        )


@dataclass(frozen=True)
class AlphaExpansion(_MoveMaking):
    """Change to the best assignment in which any variables take one state and the others stay, state after state.

    One such move is a maximum flow (Boykov, Veksler and Zabih 2001). The score never falls, and at the end no single
    expansion improves it, as long as the pairs' costs are a metric (Potts, truncated linear): only then is every
    expansion a cut. Where a pair breaks that (truncated quadratic), its part of the move is made dearer until it is one
    (Rother, Kumar, Kolmogorov and Blake 2005): moves still never worsen, but good ones may be missed; `AlphaBetaSwap`
    asks for less. Nothing bounds the gap to the best score, which is reported as infinite.

    For variables of any number of states, joined in pairs; hard zeros are welcome. Without ``init`` it starts from what
    six passes of messages choose, as in `TRWS` at K^2 for every pair (K where it is Potts); they also foretell most of
    the flows. With hard zeros it starts from the better of each variable's best unary state and one for all. A cycle
    costs one maximum flow for each state; the number of cycles is small, mostly below ten. Networks are kept from cycle
    to cycle, and later moves look only at what has changed since. That takes 7 K numbers for each variable of a
    lattice; from half a gigabyte on, and with hard zeros, every move starts anew. Rectangular lattices have a kernel of
    their own.

    Parameters
    ----------
    max_iterations
        Cycles over all states.

    Examples
    --------
    >>> import markovfield as mf
    >>> net = mf.MarkovNetwork(dict.fromkeys(range(4), 3))
    >>> _ = net.add_potts([[0, 1], [1, 2], [2, 3]], 1.0, 0.0)
    >>> _ = net.add_factor([0], log_table=[0.0, 0.4, 1.5])
    >>> _ = net.add_factor([3], log_table=[0.0, 0.4, 0.3])
    >>> answer = mf.decode(net, method=AlphaExpansion())
    >>> list(answer.assignment.values()), round(answer.score, 3)
    ([2, 2, 2, 2], 4.8)
    """

    name: ClassVar[str] = "alpha_expansion"


@dataclass(frozen=True)
class AlphaBetaSwap(_MoveMaking):
    """Change to the best assignment in which the variables in two states choose anew between them, pair after pair.

    Every such move is a cut where the pairs' costs are a semi-metric: equal states cost nothing and different ones
    something (truncated quadratic costs are one, which is where this is the better choice; Boykov, Veksler and Zabih
    2001). The score never falls; at the end no single swap improves it. Other pairs are handled as by `AlphaExpansion`,
    and like there nothing bounds the gap.

    Without ``init`` it starts from one cycle of expansions. A cycle costs a maximum flow for each two states; later
    ones leave out every connected component of the variables in two states that is as it was when these last chose.

    Parameters
    ----------
    max_iterations
        Cycles over all pairs of states.

    Examples
    --------
    >>> import markovfield as mf
    >>> net = mf.MarkovNetwork(dict.fromkeys(range(3), 4))
    >>> _ = net.add_truncated([[0, 1], [1, 2]], 0.5, 4.0, power=2)
    >>> _ = net.add_factor([0], log_table=[0.0, 0.0, 0.0, 3.0])
    >>> answer = mf.decode(net, method=AlphaBetaSwap())
    >>> list(answer.assignment.values()), answer.score
    ([3, 3, 3], 3.0)
    """

    name: ClassVar[str] = "alpha_beta_swap"


def states_by_merit(pairs: PairProblem) -> list[int]:
    """States that are good for many variables first: measured, that ends at better scores than their own order."""
    least = pairs.unary[pairs.unary > -np.inf].min(initial=0.0)
    order: list[int] = np.argsort(-np.maximum(pairs.unary, least).sum(axis=0)).tolist()
    return order


def first_states(method: str, pairs: PairProblem, init: Decoding | None, order: list[int]) -> IntArray:
    """States to start from, free of hard zeros: an earlier answer's, or the better of each variable's best unary state
    and one and the same for all.
    """
    problem = pairs.problem
    n = problem.graph.n_variables
    states = np.argmax(pairs.unary, axis=1)
    if init is not None:
        if not isinstance(init, Decoding) or len(init.states) != n:
            raise ModelError(f"init of {method} must be an earlier decoding of the same variables")
        usable = (problem.structure.cardinalities[:n] > 1) & (init.states >= 0)
        usable &= init.states < problem.structure.cardinalities[:n]
        states[:n][usable] = init.states[usable]
    else:
        same = np.where(pairs.unary[:, order[0]] > -np.inf, order[0], states)
        states = max(states, same, key=pairs.score)
    if pairs.score(states) > -np.inf:
        return states
    preference = pairs.unary.copy()
    preference[np.arange(len(states)), states] += 1.0
    inside = np.arange(pairs.unary.shape[1]) < problem.structure.cardinalities[:, None]
    if np.isneginf(problem.likelihood).any():
        # Likelihoods that rule states out are no factors: the search sees them where they shrink domains.
        small = prepare(problem.as_tables, problem.evidence)
        found = Feasible.of(small).assignment(np.zeros(int(small.structure.value_offsets[-1])))
        if found is not None and small.reduced is not None:
            found = small.reduced.states[small.reduced.state_offsets[:-1] + found].astype(np.int64)
    else:
        found = Feasible.of(problem).assignment(preference[inside])
    if found is None or pairs.score(found) == -np.inf:
        raise ModelError(
            f"no assignment free of hard zeros was found in {BUDGET} steps back: use junction_tree to decode"
        )
    return found
