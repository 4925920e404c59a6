"""Averages over Markov chains as they go: marginals with their errors, of batches that double in length."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from markovfield.arrays import FloatArray, States
from markovfield.inference.core.answers import Marginals, Samples
from markovfield.inference.core.diagnostics import LEAST_STEPS, MonteCarlo, error_floor, own_draws, summarise
from markovfield.inference.core.running import Running
from markovfield.inference.sampling.markov_chains import (
    Begun,
    Chains,
    ChainState,
    begin,
    doubt_seed,
    resolved_burn_in,
)
from markovfield.inference.sampling.trust import (
    LEAST_EFFECTIVE,
    R_HAT_LIMIT,
    doubts_of,
    leeway,
    rows_to_see,
    warn_doubts,
)

__all__ = ["Batches", "estimate"]

# Batches of a chain whose averages are kept: as many as fit in this many numbers, within limits; even.
BATCH_NUMBERS = 2**25
MOST_BATCHES, FEWEST_BATCHES = 128, 8


def estimate(
    begun: Begun,
    sweeps: int,
    method: str,
    n_chains: int,
    *,
    rng: np.random.Generator,
    running: Running,
    init: Samples | Marginals | None = None,
) -> Marginals:
    """Estimate the marginals of a problem's variables by Markov chains, keeping averages of batches only.

    Batches double in length as the chains go on, so that the work may be stopped at any time; memory is that of at most
    128 numbers for each chain and state. Standard errors come from the batches' averages as `effective_sample_size`
    has it, so that both what batches remember and what chains disagree about counts; they are at least `error_floor`,
    for what the chains may not have come to, times `leeway` where conditional distributions are averaged. Effective
    sample sizes say how many independent draws would estimate a probability as well: infinitely many where every
    conditional distribution was the same, and as many as there were sweeps where a state never came up or always did.

    The answer has converged where the split R-hat of every state is at most 1.01, every effective sample size at least
    400, and `doubts_of` finds nothing; otherwise a warning says why, and ``monte_carlo.doubts`` keeps the reasons.

    With ``init``, an earlier answer to `sample` or `marginals`, the chains go on from where it left them; only the new
    sweeps count. A transition with ``conditional = True`` averages conditional distributions; one with ``even = True``
    has estimates that are equal by symmetry, and then exact.
    """
    problem, transition = begun.problem, begun.transition
    s = problem.structure
    chains, burn_in = begin(begun, method, n_chains, rng, running, init)
    chains.discard(resolved_burn_in(burn_in, sweeps))
    batches = Batches(chains, int(s.value_offsets[-1]), s.value_offsets[:-1].copy(), rows_to_see(problem))
    stopped = batches.run(sweeps)
    if stopped is not None and not batches.filled:
        raise stopped
    values, errors, sizes, r_hats = batches.summary()
    single = np.repeat(s.cardinalities == 1, s.cardinalities)
    count = float(n_chains * batches.sweeps)
    sizes[single], r_hats[single] = count, np.nan
    scattered = errors > 0.0
    least = float(np.min(sizes[scattered], initial=count))
    known = bool(np.isfinite(errors).all())
    # Conditional distributions that are averaged can be wrong only by as much as they can vary; counts by anything.
    room = np.ones(len(values))
    if getattr(transition, "even", False):
        room[~scattered] = 0.0
    elif getattr(transition, "conditional", False):
        room = leeway(problem)
    errors = np.maximum(errors, room * error_floor(own_draws(values, sizes, least, count)))
    values[single], errors[single] = 1.0, 0.0
    doubts: list[str] = []
    if stopped is None:
        worst = float(np.max(r_hats[~np.isnan(r_hats)], initial=1.0))
        if not known:
            doubts.append(f"{batches.sweeps} sweeps are too few to tell an error from")
        if worst > R_HAT_LIMIT:
            doubts.append(f"the chains do not agree, with a largest split R-hat of {worst:.3g} above {R_HAT_LIMIT}")
        elif least < LEAST_EFFECTIVE and (room[~single] > 0.0).any():
            doubts.append(f"the sweeps are worth {least:.3g} independent draws, fewer than {LEAST_EFFECTIVE:g}")
        if known and len(values) and batches.seen[0]:
            seen, even = batches.rows()
            doubts += doubts_of(problem, seen, values, errors, doubt_seed(chains), even)
        if doubts:
            warn_doubts(method, doubts)
    expanded = [problem.expand(*pair) for pair in ((values, 0.0), (errors, 0.0), (sizes, count), (r_hats, np.nan))]
    for array in expanded:
        array.flags.writeable = False
    return Marginals(
        graph=problem.graph,
        values=expanded[0],
        log_partition=np.nan,
        guarantee="approximate",
        method=method,
        converged=stopped is None and not doubts,
        iterations=chains.sweeps,
        seconds=running.seconds,
        monte_carlo=MonteCarlo(expanded[1], expanded[2], expanded[3], int(count), n_chains, tuple(doubts)),
        _state=ChainState.of(problem, chains, begun.extra),
    )


class Batches:
    """Averages of batches of sweeps, ``float64[chains, batches, states]``; two become one when there is no room."""

    def __init__(self, chains: Chains, n_values: int, value_offsets: npt.NDArray[np.int64], to_see: int) -> None:
        room = BATCH_NUMBERS // max(1, n_values * len(chains.states))
        self.room = max(FEWEST_BATCHES, min(MOST_BATCHES, room // 2 * 2))
        self.chains, self.value_offsets = chains, value_offsets
        self.means = np.zeros((len(chains.states), self.room, n_values))
        self.length, self.filled, self.inside = 1, 0, 0
        # States at the ends of batches: of each chain, with the sweep each is of; and how many there may be.
        self.seen: list[list[States]] = [[] for _ in chains.states]
        self.seen_at: list[int] = []
        self.to_see = to_see // max(1, len(chains.states))

    @property
    def sweeps(self) -> int:
        """Sweeps averaged over, of each Markov chain."""
        return self.length * self.filled + self.inside

    def run(self, sweeps: int) -> BaseException | None:
        """Advance all Markov chains; the answer is what stopped them early, if anything did."""
        n = len(self.value_offsets)
        transition = self.chains.transition
        accumulate = getattr(transition, "accumulate", None)
        at_once = max(1, transition.sweeps_at_once)
        while self.sweeps < sweeps:
            if self.filled == self.room:
                self._merge()
            step = min(sweeps - self.sweeps, at_once, self.length * (self.room - self.filled) - self.inside)
            visited: list[list[States]] = [[] for _ in self.seen]
            added = np.zeros((len(self.chains.states), -(-(self.inside + step) // self.length), self.means.shape[2]))

            def each(c: int, step: int = step, added: FloatArray = added, visited: list[Any] = visited) -> int:
                states, stream = self.chains.states[c], self.chains.streams[c]
                b, inside = 0, self.inside
                while step:
                    count = min(step, self.length - inside)
                    if accumulate is not None:
                        accumulate(states, stream, count, added[c, b])
                    else:
                        for _ in range(count):
                            transition.advance(states, stream, 1)
                            added[c, b, self.value_offsets + states[:n]] += 1.0
                    step -= count
                    if inside + count == self.length and self.to_see:
                        visited[c].append(states[:n].copy())
                    b, inside = b + 1, 0
                return 0

            stopped = self.chains.in_step(each, step)
            if self.chains.complete:
                self.means[:, self.filled : self.filled + added.shape[1]] += added / self.length
                inside = self.inside + step
                for kept, new in zip(self.seen, visited, strict=True):
                    kept.extend(new)
                self.seen_at += [self.length * (self.filled + 1 + k) for k in range(len(visited[0]))]
                self.filled, self.inside = self.filled + inside // self.length, inside % self.length
            if stopped is not None:
                return stopped if self.sweeps < sweeps else None
        return None

    def _merge(self) -> None:
        half = self.room // 2
        for b in range(half):
            self.means[:, b] = (self.means[:, 2 * b] + self.means[:, 2 * b + 1]) / 2
        self.means[:, half:] = 0.0
        self.length, self.filled = 2 * self.length, half

    def rows(self) -> tuple[list[States], npt.NDArray[np.int64]]:
        """Some states of each Markov chain, in order, and which of them are at even distances."""
        at = np.array(self.seen_at)
        kept = np.arange(len(at))
        while len(kept) > self.to_see:
            kept = kept[1::2]
        even = np.flatnonzero(at % self.length == 0)
        kept = np.union1d(kept, even)
        rows = [np.array(part, np.int32)[kept] for part in self.seen]
        return rows, np.searchsorted(kept, even)

    def summary(self) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Probabilities, standard errors, effective sample sizes and split R-hat of every state."""
        used = self.filled + (self.inside > 0)
        # The batch that has only begun counts by what it has.
        values = self.means[:, :used].mean(axis=0).sum(axis=0) * self.length / self.sweeps
        full = self.means[:, : self.filled]
        nothing = np.full(len(values), np.nan)
        if self.filled < LEAST_STEPS:
            return values, nothing, nothing.copy(), nothing.copy()
        variance = summarise(full)[:, 2]
        spread = np.maximum(values * (1.0 - values), 0.0)
        # Averages that differ by rounding alone are equal.
        exact = variance <= (1e-15 * np.maximum(values, 1e-300)) ** 2
        variance[exact] = 0.0
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            sizes = np.where(spread > 0.0, spread / variance, float(len(full) * self.sweeps))
            halves = self.filled // 2
            parts = np.concatenate([full[:, :halves].mean(axis=1), full[:, -halves:].mean(axis=1)])
            within = (parts * (1.0 - parts)).mean(axis=0)
            between = parts.var(axis=0, ddof=1)
            r_hats = np.where(between > 0.0, np.sqrt(1.0 + between / within), np.where(within > 0.0, 1.0, np.nan))
        return values, np.sqrt(variance), sizes, r_hats
