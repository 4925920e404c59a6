"""Running Markov chains: several at once, from scattered starts, kept, thinned, stopped and resumed."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from markovfield.arrays import States
from markovfield.exceptions import MemoryLimitError, ModelError
from markovfield.inference.core.answers import Samples
from markovfield.inference.core.diagnostics import LEAST_STEPS
from markovfield.inference.core.limits import format_bytes, memory_limit_bytes
from markovfield.inference.core.running import STOPS, Running
from markovfield.inference.problem.feasible import Feasible
from markovfield.inference.problem.problem import Problem
from markovfield.inference.sampling.modes import dispersed_states
from markovfield.inference.sampling.trust import doubts_of, frequencies_of, r_hat_limit, rows_to_see, warn_doubts
from markovfield.kernels.random import streams

__all__ = [
    "ChainState",
    "Chains",
    "Transition",
    "begin",
    "doubt_seed",
    "resolved_burn_in",
    "resumed_state",
    "run_chains",
]

Stream = npt.NDArray[np.uint64]

LEAST_BURN_IN = 100
# Entries of states kept aside before they are written where the user's states go.
BUFFER = 2**21
# Entries of samples up to which `run_chains` looks at them by itself.
MOST_LOOKED_AT = 2**26


class Transition(Protocol):
    """A Markov chain's step, which leaves a problem's distribution as it is.

    Sweeps must be cut anywhere without a difference: advancing by a and then by b sweeps is advancing by a + b. Where
    a chain has more state than one assignment (replicas), ``states`` is longer; its first n entries are the sample.

    Two more methods are used where a transition has them. ``fill(states, stream, thinning, rows)`` advances by
    ``thinning`` sweeps for each of ``rows`` (``int32[k, n]``) and writes the states there. ``accumulate(states, stream,
    sweeps, sums)`` advances and adds to ``sums`` (``float64``, over all states of the problem's variables), after each
    sweep, estimates of their probabilities that are better than "is the present state". ``threaded = True`` says that
    `advance` uses threads itself, so that chains are advanced one after the other.
    """

    @property
    def sweeps_at_once(self) -> int:
        """Sweeps that one call of a kernel may make."""
        ...

    def advance(self, states: States, stream: Stream, sweeps: int) -> None:
        """Move ``states`` (``int32[n]``) and ``stream`` (``uint64[4]``) on, in place, without the GIL."""


@dataclass(frozen=True, eq=False)
class ChainState:
    """Where Markov chains stopped: what `run_chains` goes on from.

    Attributes
    ----------
    states, streams
        ``int32[chains, n or more]`` and ``uint64[chains, 4]``.
    sweeps
        Sweeps of each chain so far.
    cardinalities, evidence, potentials
        Of the problem, to recognise another one by; the last is a digest of its numbers.
    extra
        What else the method needs to go on.
    """

    states: States
    streams: Stream
    sweeps: int
    cardinalities: npt.NDArray[np.int32]
    evidence: npt.NDArray[np.int32]
    potentials: bytes
    extra: Any = None

    @classmethod
    def of(cls, problem: Problem, chains: Chains, extra: Any) -> ChainState:
        """Where these Markov chains of a problem are now."""
        cards, known = problem.structure.cardinalities, problem.evidence.states
        return cls(chains.states, chains.streams, chains.sweeps, cards, known, _digest(problem), extra)


def _digest(problem: Problem) -> bytes:
    """What tells the numbers of two problems of the same shape apart."""
    digest = hashlib.sha256(problem.potentials.log_tables.tobytes())
    digest.update(problem.likelihood.tobytes())
    return digest.digest()


@dataclass(eq=False)
class Chains:
    """Markov chains that advance in step: what is common to drawing samples and to averaging."""

    transition: Any
    states: States
    streams: Stream
    running: Running
    sweeps: int = 0
    complete: bool = True

    def in_step(self, each: Callable[[int], int], sweeps: int) -> BaseException | None:
        """Run ``each(chain)``, which advances it by ``sweeps``, for every Markov chain; undo it where not all could.

        The answer is what stopped the work, if anything did; chains that all came through have then still moved on.
        """
        before = self.states.copy(), self.streams.copy()
        done = np.zeros(len(self.states), np.bool_)

        def task(c: int) -> int:
            each(c)
            done[c] = True
            return 0

        tasks = [partial(task, c) for c in range(len(self.states))]
        stopped: BaseException | None = None
        try:
            if getattr(self.transition, "threaded", False):
                for one in tasks:
                    self.running.alone(one)
            else:
                self.running.side_by_side(tasks)
        except STOPS as error:
            stopped = error
        if done.all():
            self.sweeps += sweeps
        else:
            self.states[:], self.streams[:] = before
        self.complete = bool(done.all())
        return stopped

    def discard(self, sweeps: int) -> None:
        """Advance all Markov chains and keep nothing; what stops this is raised."""
        left = sweeps
        while left:
            step = min(left, max(1, self.transition.sweeps_at_once))

            def each(c: int, step: int = step) -> int:
                self.transition.advance(self.states[c], self.streams[c], step)
                return 0

            stopped = self.in_step(each, step)
            if stopped is not None:
                raise stopped
            left -= step


def resolved_burn_in(burn_in: int | None, kept: int) -> int:
    """Sweeps thrown away: as given, or half as many as are kept, and at least a hundred."""
    return max(LEAST_BURN_IN, kept // 2) if burn_in is None else burn_in


def resumed_state(problem: Problem, init: Any, n_chains: int, method: str) -> ChainState:
    """The state of an earlier answer, checked."""
    state = getattr(init, "_state", None)
    if not isinstance(state, ChainState) or init.method != method:
        raise ModelError(f"init of {method} must be an earlier answer by the same method, with samples in it")
    s = problem.structure
    if not np.array_equal(state.cardinalities, s.cardinalities) or not np.array_equal(
        state.evidence, problem.evidence.states
    ):
        raise ModelError(f"init of {method} must be about the same variables and evidence: start anew without it")
    if len(state.states) != n_chains:
        raise ModelError(f"init of {method} has {len(state.states)} chains and n_chains is {n_chains}: use the same")
    feasible = Feasible.of(problem)
    if any(feasible.score(row[: s.n_variables].astype(np.int64)) == -np.inf for row in state.states):
        raise ModelError(f"init of {method} has chains at hard zeros of this model: start anew without it")
    return state


def begin(
    problem: Problem,
    transition: Transition,
    n_chains: int,
    burn_in: int | None,
    rng: np.random.Generator,
    running: Running,
    init: Any,
    method: str,
    start: States | None,
) -> tuple[Chains, int | None]:
    """Markov chains at their start, or where an earlier answer left them, and how long they must forget it."""
    if init is not None:
        old = resumed_state(problem, init, n_chains, method)
        chains = Chains(transition, old.states.copy(), old.streams.copy(), running, old.sweeps)
        # Chains of other numbers are where these should not be: they are good starts, no more.
        return chains, 0 if old.potentials == _digest(problem) else burn_in
    if start is None:
        start = dispersed_states(problem, n_chains, rng)
    return Chains(transition, start.copy(), streams(rng, n_chains), running), burn_in


def run_chains(
    problem: Problem,
    transition: Transition,
    size: int,
    *,
    n_chains: int,
    burn_in: int | None,
    thinning: int,
    rng: np.random.Generator,
    running: Running,
    init: Samples | None,
    method: str,
    start: States | None = None,
    extra: Any = None,
) -> Samples:
    """Draw ``size`` states of a problem's variables by Markov chains.

    Chain c has the c-th part of ``np.array_split(range(size), n_chains)``. Each has a stream of random numbers of its
    own, so threads make no difference. Stopped by the clock, the callback or the keyboard, the answer has the rows that
    all chains have come to, and ``converged=False``; where there are none, the error is raised. It can be resumed: with
    ``init`` an earlier answer, the chains go on where they stopped, without a burn-in, as if they never had; where the
    model's numbers have changed since then, after the burn-in that was asked for.

    ``start`` are first states, ``int32[n_chains, n or more]``; random ones where None. ``extra`` is kept in the
    answer's state for whoever resumes it.
    """
    _check_room(problem, size)
    chains, burn_in = begin(problem, transition, n_chains, burn_in, rng, running, init, method, start)
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
        _state=ChainState.of(problem, chains, extra) if size else None,
    )
    if stopped is None and out.size <= MOST_LOOKED_AT:
        doubts = _doubts(problem, answer, seen)
        if doubts:
            warn_doubts(method, doubts)
            answer = replace(answer, converged=False)
            answer._cache["doubts"] = tuple(doubts)
    return answer


def doubt_seed(chains: Chains) -> np.random.Generator:
    """Random numbers for looking at Markov chains: theirs, so that the caller's generator is left as it was."""
    return np.random.default_rng(chains.streams[0])


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
