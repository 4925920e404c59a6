"""Samples of Markov chains: rows kept so many sweeps apart, and what makes them doubtful."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from markovfield.arrays import States
from markovfield.exceptions import MemoryLimitError
from markovfield.inference.core.answers import Samples
from markovfield.inference.core.diagnostics import LEAST_STEPS
from markovfield.inference.core.limits import format_bytes, memory_limit_bytes
from markovfield.inference.core.running import Running
from markovfield.inference.problem.problem import Problem
from markovfield.inference.sampling.markov_chains import Begun, Chains, ChainState, begin, resolved_burn_in
from markovfield.inference.sampling.trust import doubts_of, frequencies_of, r_hat_limit, rows_to_see, warn_doubts

__all__ = ["run_chains"]

# Entries of states kept aside before they are written where the user's states go.
BUFFER = 2**21
# Entries of samples up to which `run_chains` looks at them by itself.
MOST_LOOKED_AT = 2**26


def run_chains(
    begun: Begun,
    size: int,
    method: str,
    n_chains: int,
    thinning: int,
    *,
    rng: np.random.Generator,
    running: Running,
    init: Samples | None,
) -> Samples:
    """Draw ``size`` states of a problem's variables by Markov chains.

    Chain c has the c-th part of ``np.array_split(range(size), n_chains)``. Each has a stream of random numbers of its
    own, so threads make no difference. Stopped by the clock, the callback or the keyboard, the answer has the rows that
    all chains have come to, and ``converged=False``; where there are none, the error is raised. It can be resumed: with
    ``init`` an earlier answer, the chains go on where they stopped, without a burn-in, as if they never had; where the
    model's numbers have changed since then, after the burn-in that was asked for.
    """
    problem = begun.problem
    _check_room(problem, size)
    chains, burn_in = begin(begun, method, n_chains, rng, running, init)
    lengths = [size // n_chains + (c < size % n_chains) for c in range(n_chains)]
    burn_in = resolved_burn_in(burn_in, max(lengths) * thinning) if size else 0
    chains.discard(burn_in)
    rows, seen, stopped = _draw(problem, chains, lengths, thinning)
    if stopped is not None and not rows:
        raise stopped
    out = np.concatenate(rows) if len(rows) != 1 else rows[0]
    out.flags.writeable = False
    answer = Samples(
        graph=problem.graph,
        states=out,
        guarantee="approximate",
        method=method,
        seconds=running.seconds,
        n_chains=n_chains,
        iterations=chains.sweeps,
        converged=stopped is None,
        _state=ChainState.of(problem, chains, begun.extra) if size else None,
    )
    if stopped is None and out.size <= MOST_LOOKED_AT:
        doubts = _doubts(problem, answer, seen)
        if doubts:
            warn_doubts(method, doubts)
            answer = replace(answer, converged=False)
            answer._cache["doubts"] = tuple(doubts)
    return answer


def _doubts(problem: Problem, answer: Samples, seen: list[States]) -> list[str]:
    """Reasons not to believe the Markov chains behind samples; none where they are too short to tell."""
    steps = len(answer) // max(1, answer.n_chains)
    if steps < LEAST_STEPS:
        return []
    doubts = []
    limit = r_hat_limit(answer.n_chains, steps // 2)
    if answer.r_hat > limit:
        doubts.append(f"the chains do not agree, with a largest split R-hat of {answer.r_hat:.3g} above {limit:.3g}")
    if seen and min(map(len, seen)) >= LEAST_STEPS:
        rng = np.random.default_rng(answer._state.streams[0])
        doubts += doubts_of(problem, seen, *frequencies_of(problem, seen), rng)
    return doubts


def _check_room(problem: Problem, size: int) -> None:
    """Refuse more rows than memory holds, before anything is drawn."""
    n = problem.graph.n_variables
    needed, limit = 4.0 * size * n, memory_limit_bytes(None)
    if needed > limit:
        raise MemoryLimitError(
            f"{size} samples of {n} variables need {format_bytes(np.log2(needed))}, while the limit is "
            f"{format_bytes(np.log2(limit))}: draw fewer, or ask mf.marginals, which averages without keeping them"
        )


def _draw(
    problem: Problem, chains: Chains, lengths: list[int], thinning: int
) -> tuple[list[States], list[States], BaseException | None]:
    """The rows of each Markov chain, and some of them as the problem has them; stopped, as many of each as all have."""
    n, own = problem.structure.n_variables, problem.graph.n_variables
    out = np.empty((sum(lengths), own), np.int32)
    begins = np.concatenate([[0], np.cumsum(lengths)[:-1]]).astype(np.int64).tolist()
    at_once = max(1, chains.transition.sweeps_at_once)
    most = max(1, min(at_once // thinning, BUFFER // max(1, n)))
    fill = getattr(chains.transition, "fill", None)
    row, waited = 0, 0
    room = rows_to_see(problem)
    apart = -(-sum(lengths) // room) if room else 0
    seen: list[list[States]] = [[] for _ in lengths]
    stopped: BaseException | None = None
    last_row = chains.states.copy(), chains.streams.copy(), chains.sweeps
    while row < max(lengths, default=0):
        if thinning <= at_once:
            count, step = min(most, max(lengths) - row), thinning
        else:
            count, step = 1, min(at_once, thinning - waited)
        whole = thinning <= at_once or waited + step == thinning

        def each(c: int, row: int = row, count: int = count, step: int = step, whole: bool = whole) -> int:
            count = min(count, lengths[c] - row)
            if count <= 0:
                return 0
            states, stream = chains.states[c], chains.streams[c]
            block = np.empty((count, n), np.int32)
            if fill is not None:
                fill(states, stream, step, block)
            else:
                for k in range(count):
                    chains.transition.advance(states, stream, step)
                    block[k] = states[:n]
            if whole:
                out[begins[c] + row : begins[c] + row + count] = problem.states(block)
                if apart:
                    seen[c].append(block[(-row) % apart :: apart].copy())
            return 0

        stopped = chains.in_step(each, count * step)
        if chains.complete:
            waited = 0 if whole else waited + step
            row += count if whole else 0
            if whole and thinning > at_once:
                last_row = chains.states.copy(), chains.streams.copy(), chains.sweeps
        if stopped is not None:
            break
    if waited:
        # Whoever resumes goes on from the last row that was kept.
        chains.states[:], chains.streams[:], chains.sweeps = last_row
    if row >= max(lengths, default=0):
        return [out], [np.concatenate(parts) for parts in seen if parts], None
    kept = [out[b : b + min(row, k)] for b, k in zip(begins, lengths, strict=True)]
    return (kept if row else []), [], stopped
