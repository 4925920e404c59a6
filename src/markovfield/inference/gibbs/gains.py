"""Gibbs sampling of models with wide or many structured factors, which are read as they are."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from markovfield.arrays import FloatArray, States
from markovfield.factors.factor_graph import FactorGraph
from markovfield.factors.factor_kinds import DISTANCE, NOISY_MAX, TABLE
from markovfield.inference.core.answers import Marginals
from markovfield.inference.core.diagnostics import MonteCarlo, error_floor
from markovfield.inference.core.evidence import Evidence
from markovfield.inference.core.running import Running
from markovfield.inference.gibbs.gains_kernel import gain_sweeps
from markovfield.inference.local_search.local_search import LocalSearch
from markovfield.inference.local_search.local_search_kernel import fill_gains
from markovfield.inference.sampling.averages import Batches
from markovfield.inference.sampling.markov_chains import Chains, resolved_burn_in
from markovfield.inference.sampling.trust import LEAST_EFFECTIVE, R_HAT_LIMIT, warn_doubts
from markovfield.kernels.random import streams

__all__ = ["GainSites", "gain_marginals", "keeps_gains", "soft_formulas"]

# Cells of a structured factor that is not written out; factors for each variable from which gains are kept at hand.
WIDE, DENSE = 2.0**16, 20
# Look-ups of one call of a kernel.
GRAIN = 2**22
# Sweeps after which gains are computed anew, against rounding.
RENEWED = 1000
_NOTHING = np.zeros(0)


def soft_formulas(graph: FactorGraph) -> int:
    """How many clauses, counts of true literals and parities a model has; none where anything is ruled out.

    Distances (Potts, truncated) are no formulas: lattices of them have methods of their own.
    """
    s = graph.structure
    if s.is_plain or (s.kind == NOISY_MAX).any() or s.has_latent or np.isneginf(graph.log_tables).any():
        return 0
    return int(np.count_nonzero((s.kind != TABLE) & (s.kind != DISTANCE)))


def keeps_gains(graph: FactorGraph, evidence: Evidence) -> bool:
    """Whether chains of a model are better run on gains: structured factors, wide or many, and nothing ruled out."""
    s = graph.structure
    if not soft_formulas(graph) or any(np.isneginf(vector).any() for _, vector in evidence.likelihoods):
        return False
    structured = (s.kind != TABLE) & (s.kind != DISTANCE)
    widest = int(np.diff(s.scope_offsets)[structured].max(initial=0))
    return 2.0**widest > WIDE or s.n_factors > DENSE * s.n_variables


@dataclass(eq=False)
class GainSites:
    """Sweeps over single sites of a graph of any factors."""

    search: LocalSearch
    # Of each chain, known by where its random numbers lie: states, sums, gains; and sweeps since they were computed.
    _kept: dict[int, tuple[Any, ...]] = field(default_factory=dict)
    _past: dict[int, int] = field(default_factory=dict)

    @property
    def sweeps_at_once(self) -> int:
        """As many as take about a tenth of a second where few variables move."""
        return max(1, GRAIN // max(1, self.search.graph.n_variables))

    def advance(self, states: States, stream: Any, sweeps: int) -> None:
        """Move on by some sweeps."""
        self.accumulate(states, stream, sweeps, _NOTHING)

    def accumulate(self, states: States, stream: Any, sweeps: int, sums: FloatArray) -> None:
        """Add up the conditional probabilities of every sweep."""
        found = self.search
        key = stream.ctypes.data
        kept, past = self._kept.get(key), self._past.get(key, 0)
        if kept is None or past > RENEWED or not np.array_equal(kept[0], states):
            own, past = states.astype(np.int64), 0
            kept = own, np.zeros_like(found.totals), np.empty_like(found.soft), np.empty_like(found.hard)
            fill_gains(found.factors, found.likelihood, kept[0], kept[1], kept[2], kept[3], np.zeros(2))
            self._kept[key] = kept
        gain_sweeps(found.factors, stream, kept[0], kept[1], kept[2], kept[3], sweeps, sums)
        self._past[key] = past + sweeps
        states[:] = kept[0]


def gain_marginals(
    method: Any, graph: FactorGraph, evidence: Evidence, *, running: Running, rng: np.random.Generator
) -> Marginals:
    """Averages of conditional probabilities over Markov chains, with standard errors, as `estimate` has them."""
    s = graph.structure
    starts = (rng.random((method.n_chains, s.n_variables)) * s.cardinalities).astype(np.int32)
    search = LocalSearch(graph, evidence, starts[0])
    # Random states may be far from all that is likely, and each sweep changes little: climb from them.
    for row in starts:
        search.move_to(row.astype(np.int64))
        search.climb(rng.permutation(s.n_variables), running)
        row[:] = search.states
    transition = GainSites(search)
    chains = Chains(transition, starts, streams(rng, method.n_chains), running)
    chains.discard(resolved_burn_in(method.burn_in, method.sweeps))
    batches = Batches(chains, int(s.value_offsets[-1]), s.value_offsets[:-1].copy(), 0)
    stopped = batches.run(method.sweeps)
    if stopped is not None and not batches.filled:
        raise stopped
    values, errors, sizes, r_hats = batches.summary()
    known = np.repeat((evidence.states >= 0) | (s.cardinalities == 1), s.cardinalities)
    count = float(method.n_chains * batches.sweeps)
    sizes[known], r_hats[known] = count, np.nan
    least = float(np.min(sizes[errors > 0.0], initial=count))
    # Conditional probabilities tell of states that never came up: each has its own draws.
    errors = np.maximum(errors, error_floor(np.minimum(sizes, count)) * np.sqrt(values * (1.0 - values)))
    errors[known] = 0.0
    doubts: list[str] = []
    if stopped is None:
        worst = float(np.max(r_hats[~np.isnan(r_hats)], initial=1.0))
        if not np.isfinite(errors).all():
            doubts.append(f"{batches.sweeps} sweeps are too few to tell an error from")
        if worst > R_HAT_LIMIT:
            doubts.append(f"the chains do not agree, with a largest split R-hat of {worst:.3g} above {R_HAT_LIMIT}")
        elif least < LEAST_EFFECTIVE:
            doubts.append(f"the sweeps are worth {least:.3g} independent draws, fewer than {LEAST_EFFECTIVE:g}")
        if doubts:
            warn_doubts(method.name, doubts)
    for array in (values, errors, sizes, r_hats):
        array.flags.writeable = False
    return Marginals(
        graph=graph,
        values=values,
        log_partition=np.nan,
        guarantee="approximate",
        method=method.name,
        converged=stopped is None and not doubts,
        iterations=chains.sweeps,
        seconds=running.seconds,
        monte_carlo=MonteCarlo(errors, sizes, r_hats, int(count), method.n_chains, tuple(doubts)),
    )
