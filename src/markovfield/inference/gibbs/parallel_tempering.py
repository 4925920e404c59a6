"""Parallel tempering: replicas at higher temperatures cross barriers, and hand what they find to colder ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, NamedTuple

import numpy as np

from markovfield._validation import check_method
from markovfield.arrays import FloatArray, short_repr
from markovfield.exceptions import ModelError
from markovfield.factors.factor_graph import FactorGraph
from markovfield.inference.core.answers import Marginals, Samples
from markovfield.inference.core.evidence import Evidence
from markovfield.inference.core.running import Running
from markovfield.inference.gibbs.single_site import (
    ALL_CELLS,
    SingleSite,
    check_moves,
    prepare_chains,
    sites_of,
    tables_of,
)
from markovfield.inference.gibbs.single_site_kernel import CONDITIONAL, HEAT_BATH, temper
from markovfield.inference.problem.problem import Problem
from markovfield.inference.sampling.chain_method import LEAST, ChainMethod
from markovfield.inference.sampling.markov_chains import (
    Begun,
    ChainState,
    resolved_burn_in,
    resumed_state,
)
from markovfield.inference.sampling.modes import dispersed_states
from markovfield.inference.sampling.starts import initial_states
from markovfield.kernels.random import streams

__all__ = ["Ladder", "ParallelTempering", "ladder_of"]

BASES = {"gibbs": HEAT_BATH, "metropolis": CONDITIONAL}
TUNING_ROUNDS = 8
# The share of swaps refused that a ladder should have at most; beyond, its hottest replica is made colder.
MOST_REFUSED = 0.6
_NOTHING = np.zeros(0)


class Ladder(NamedTuple):
    """What an answer of parallel tempering says of its replicas.

    ``inverse_temperatures``: ``float64[replicas]``, from 1 down. ``swap_rates``: ``float64[replicas - 1]``, the share
    of swaps between neighbours that happened, over all Markov chains and since their starts; nan where none was tried.
    """

    inverse_temperatures: FloatArray
    swap_rates: FloatArray

    def __repr__(self) -> str:
        return short_repr(self)


def ladder_of(answer: Samples | Marginals) -> Ladder:
    """The temperatures behind an answer of `ParallelTempering`, and how often neighbours swapped."""
    state = answer._state
    if not isinstance(state, ChainState) or not isinstance(state.extra, np.ndarray):
        raise ModelError(f"an answer of {answer.method} with {len(answer)} entries has no ladder of temperatures")
    pairs = len(state.extra) - 1
    counts = state.states[:, state.states.shape[1] - 2 * pairs :].sum(axis=0, dtype=np.int64)
    with np.errstate(invalid="ignore"):
        return Ladder(state.extra, counts[pairs:] / counts[:pairs])


@dataclass(eq=False)
class _Tempered:
    """Sweeps of all replicas of a Markov chain."""

    problem: Problem
    betas: FloatArray
    rule: Any
    every: int
    conditional: ClassVar[bool] = True

    def __post_init__(self) -> None:
        # All replicas together may have as many tables as one chain of another method.
        self.sites = sites_of(self.problem, most_cells=ALL_CELLS // len(self.betas))
        self.set_betas(self.betas)
        # Scores for swaps cost about as much as a sweep.
        one = SingleSite(self.sites, self.tables[0]).sweeps_at_once
        self.sweeps_at_once = max(1, one // (2 * len(self.betas)))

    def set_betas(self, betas: FloatArray) -> None:
        """Change the temperatures."""
        self.betas = betas
        self.tables = np.array([tables_of(self.problem, self.sites, float(beta)) for beta in betas])

    def accumulate(self, states: Any, stream: Any, sweeps: int, sums: FloatArray, rejected: Any = None) -> None:
        """Move on by some sweeps and add up the conditional distributions of the coldest replica."""
        s = self.problem.structure
        rejected = np.zeros(len(self.betas) - 1) if rejected is None else rejected
        temper(
            self.sites, self.tables, self.rule, self.betas, self.every, s.scope_offsets, s.scopes, s.table_offsets,
            s.table_strides, s.value_offsets, s.n_variables, states, stream, sweeps, rejected, sums,
        )  # fmt: skip

    def advance(self, states: Any, stream: Any, sweeps: int) -> None:
        """Move on by some sweeps."""
        self.accumulate(states, stream, sweeps, _NOTHING)


def _spaced(betas: FloatArray, refused: FloatArray) -> FloatArray:
    """Temperatures between which swaps are refused equally often, given how often they are between these.

    What is refused adds up along the ladder about as a length does (Syed, Bouchard-Côté, Deligiannidis and Doucet
    2022): new rungs cut it into equal parts. Where even those would be refused too often, the ladder ends earlier.
    """
    length = np.concatenate([[0.0], np.cumsum(np.maximum(refused, 1e-3))])
    pairs = len(refused)
    end = min(float(length[-1]), MOST_REFUSED * pairs) if length[-1] > 1.2 * MOST_REFUSED * pairs else length[-1]
    spaced: FloatArray = np.interp(np.linspace(0.0, end, pairs + 1), length, betas)
    spaced[0] = 1.0
    return spaced


@dataclass(frozen=True)
class ParallelTempering(ChainMethod):
    """Replicas whose scores are multiplied by inverse temperatures from 1 down to 0, with swaps between neighbours.

    A hot replica passes from one group of likely assignments to another where a cold one would stay for ever; swaps
    are accepted so that each replica keeps its own distribution (Geyer 1991). The coldest one makes the answer. Hard
    zeros stay hard at every temperature, so what single-site moves cannot reach stays out of reach.

    A sweep costs that of `Gibbs` for each replica, and a look at every factor for each swap. `ladder_of` says which
    temperatures an answer had and how often neighbours swapped.

    Parameters
    ----------
    temperatures
        Inverse temperatures, 1 among them, none above it or below 0; None spaces ``n_temperatures`` of them so that
        swaps are refused equally often, by what is seen in the first half of the burn-in.
    n_temperatures
        How many, where they are not given.
    swaps_every
        Sweeps between swaps.
    base
        Moves of each replica: ``"gibbs"``, or ``"metropolis"`` with proposals from the conditional distributions.
    n_chains, burn_in, thinning, sweeps
        As for `Gibbs`; a Markov chain is a whole ladder.

    Examples
    --------
    >>> import markovfield as mf
    >>> net = mf.MarkovNetwork(dict.fromkeys("ABCD", 2))
    >>> _ = net.add_factors([("A", "B"), ("B", "C"), ("C", "D"), ("D", "A")], log_table=[[4.0, 0.0], [0.0, 4.0]])
    >>> answer = mf.marginals(net, method=ParallelTempering(sweeps=1000, n_temperatures=4), rng=0)
    >>> bool(abs(answer["A"][0] - 0.5) < 0.1), ladder_of(answer).swap_rates.shape
    (True, (3,))
    """

    temperatures: Sequence[float] | None = None
    n_temperatures: int = 8
    swaps_every: int = 1
    base: str = "gibbs"
    n_chains: int = 4
    burn_in: int | None = None
    thinning: int = 1
    sweeps: int = 5_000

    name: ClassVar[str] = "parallel_tempering"

    def __post_init__(self) -> None:
        check_method(self, least=LEAST | {"n_temperatures": 2, "swaps_every": 1}, choices={"base": tuple(BASES)})
        if self.temperatures is not None:
            try:
                given = np.asarray(self.temperatures, np.float64)
            except (TypeError, ValueError):
                given = np.zeros(0)
            if given.ndim != 1 or len(np.unique(given)) < 2 or not (given >= 0).all() or given.max(initial=0.0) != 1.0:
                raise ModelError(
                    "temperatures of ParallelTempering must be two or more different inverse temperatures from 0 to 1, "
                    f"1 among them, got {self.temperatures!r}"
                )

    def _ladder(self) -> FloatArray:
        if self.temperatures is not None:
            return np.unique(np.asarray(self.temperatures, np.float64))[::-1].copy()
        return np.linspace(1.0, 0.0, self.n_temperatures)

    def begin(
        self, graph: FactorGraph, evidence: Evidence, rng: np.random.Generator, running: Running, init: Any, kept: int
    ) -> Begun:
        """The ladder with its temperatures, tuned where they are not given: that is part of the burn-in."""
        problem = prepare_chains(graph, evidence)
        rule = BASES[self.base]
        if init is not None:
            old = resumed_state(problem, init, self.n_chains, self.name)
            moves = _Tempered(problem, old.extra, rule, self.swaps_every)
            return Begun(problem, moves, None, 0, moves.betas)
        moves = _Tempered(problem, self._ladder(), rule, self.swaps_every)
        replicas, n = len(moves.betas), problem.structure.n_variables
        found = initial_states(problem, self.n_chains * replicas, rng).reshape(self.n_chains, replicas * n)
        found[:, :n] = dispersed_states(problem, self.n_chains, rng)
        check_moves(problem, found[:, :n], self.name)
        start = np.concatenate([found, np.zeros((self.n_chains, 2 * replicas - 1), np.int32)], axis=1)
        burn_in = resolved_burn_in(self.burn_in, kept)
        if self.temperatures is None:
            burn_in -= _tune(moves, start, burn_in // 2, rng, running)
            start[:, replicas * n :] = 0
        return Begun(problem, moves, start, burn_in, moves.betas)


def _tune(moves: _Tempered, states: Any, sweeps: int, rng: np.random.Generator, running: Running) -> int:
    """Space the temperatures by how often swaps are refused, in a few rounds; the sweeps that were used."""
    stream = streams(rng, len(states))
    step = max(2 * moves.every, sweeps // TUNING_ROUNDS)
    used = 0
    for _ in range(TUNING_ROUNDS):
        rejected = np.zeros((len(states), len(moves.betas) - 1))
        tried = states[:, -2 * rejected.shape[1] : -rejected.shape[1]].sum(axis=0)

        def task(c: int, count: int, rejected: FloatArray = rejected) -> int:
            moves.accumulate(states[c], stream[c], count, _NOTHING, rejected[c])
            return 0

        left = step
        while left:
            count = min(left, moves.sweeps_at_once)
            running.side_by_side([partial(task, c, count) for c in range(len(states))])
            left -= count
        used += step
        tried = states[:, -2 * rejected.shape[1] : -rejected.shape[1]].sum(axis=0) - tried
        moves.set_betas(_spaced(moves.betas, rejected.sum(axis=0) / np.maximum(tried, 1)))
    return min(used, sweeps)
