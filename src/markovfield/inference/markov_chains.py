"""Running Markov chains: several at once, from scattered starts, kept, thinned, stopped and resumed."""

from __future__ import annotations

import hashlib
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from markovfield.exceptions import MemoryLimitError, ModelError, StoppedError
from markovfield.inference.answers import Marginals, Samples
from markovfield.inference.chain_starts import initial_states
from markovfield.inference.diagnostics import LEAST_STEPS, MonteCarlo, summarise
from markovfield.inference.feasible import Feasible
from markovfield.inference.limits import format_bytes, memory_limit_bytes
from markovfield.inference.problem import Problem
from markovfield.inference.running import Running
from markovfield.kernels.random import streams

__all__ = [
    "ChainState",
    "Transition",
    "check_settings",
    "estimate",
    "initial_states",
    "resolved_burn_in",
    "resumed_state",
    "run_chains",
]

States = npt.NDArray[np.int32]
Stream = npt.NDArray[np.uint64]
FloatArray = npt.NDArray[np.float64]
STOPPED = (TimeoutError, StoppedError, KeyboardInterrupt)
LEAST_BURN_IN = 100
# Entries of states kept aside before they are written where the user's states go.
BUFFER = 2**21
# Batches of a chain whose averages are kept: as many as fit in this many numbers, within limits; even.
BATCH_NUMBERS = 2**25
MOST_BATCHES, FEWEST_BATCHES = 128, 8
# Above this split R-hat an estimate is said not to have converged.
R_HAT_LIMIT = 1.1
# Rows of each chain from which `run_chains` looks at R-hat by itself, and entries up to which it does.
LEAST_ROWS, MOST_LOOKED_AT = 100, 2**26


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

    sweeps_at_once: int

    def advance(self, states: States, stream: Stream, sweeps: int) -> None:
        """Move ``states`` (``int32[n]``) and ``stream`` (``uint64[4]``) on, in place, without the GIL."""


@dataclass(frozen=True, eq=False)
class ChainState:
    """Where chains stopped: what `run_chains` goes on from.

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
        """Where these chains of a problem are now."""
        cards, known = problem.structure.cardinalities, problem.evidence.states
        return cls(chains.states, chains.streams, chains.sweeps, cards, known, _digest(problem), extra)


def _digest(problem: Problem) -> bytes:
    """What tells the numbers of two problems of the same shape apart."""
    digest = hashlib.sha256(problem.potentials.log_tables.tobytes())
    digest.update(problem.likelihood.tobytes())
    return digest.digest()


@dataclass(eq=False)
class Chains:
    """Chains that advance in step: what is common to drawing samples and to averaging."""

    transition: Any
    states: States
    streams: Stream
    running: Running
    sweeps: int = 0
    complete: bool = True

    def in_step(self, each: Callable[[int], int], sweeps: int) -> BaseException | None:
        """Run ``each(chain)``, which advances it by ``sweeps``, for every chain; undo it all where not all could.

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
        except STOPPED as error:
            stopped = error
        if done.all():
            self.sweeps += sweeps
        else:
            self.states[:], self.streams[:] = before
        self.complete = bool(done.all())
        return stopped

    def discard(self, sweeps: int) -> None:
        """Advance all chains and keep nothing; what stops this is raised."""
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


def check_settings(method: Any) -> None:
    """Raise where the settings that all chains share make no sense."""
    name = type(method).__name__
    for setting, least in (("n_chains", 1), ("thinning", 1), ("sweeps", 1), ("burn_in", 0)):
        value = getattr(method, setting, None)
        if value is None and setting in ("burn_in", "sweeps"):
            continue
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
            raise ModelError(f"{setting} of {name} must be a whole number of at least {least}, got {value!r}")


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


def _begin(
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
    """Chains at their start, or where an earlier answer left them, and how long they must forget it."""
    if init is not None:
        old = resumed_state(problem, init, n_chains, method)
        chains = Chains(transition, old.states.copy(), old.streams.copy(), running, old.sweeps)
        # Chains of other numbers are where these should not be: they are good starts, no more.
        return chains, 0 if old.potentials == _digest(problem) else burn_in
    if start is None:
        start = initial_states(problem, n_chains, rng)
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
    chains, burn_in = _begin(problem, transition, n_chains, burn_in, rng, running, init, method, start)
    lengths = [size // n_chains + (c < size % n_chains) for c in range(n_chains)]
    burn_in = resolved_burn_in(burn_in, max(lengths) * thinning) if size else 0
    chains.discard(burn_in)
    rows, stopped = _draw(problem, chains, lengths, thinning)
    if stopped is not None and not rows:
        raise stopped
    out = np.concatenate(rows) if len(rows) != 1 else rows[0]
    out.flags.writeable = False
    answer = Samples(
        graph=problem.graph,
        states=out,
        guarantee="approximate",
        method=method,
        seconds=time.perf_counter() - running.started,
        n_chains=n_chains,
        iterations=chains.sweeps,
        converged=stopped is None,
        _state=ChainState.of(problem, chains, extra) if size else None,
    )
    # Looking at the chains costs about as much as a few sweeps; where rows are very many it is left to who asks.
    if stopped is None and LEAST_ROWS * n_chains <= size and out.size <= MOST_LOOKED_AT and answer.r_hat > R_HAT_LIMIT:
        _warn_apart(method, answer.r_hat)
        answer = replace(answer, converged=False)
    return answer


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
) -> tuple[list[States], BaseException | None]:
    """The rows of each chain; where the work was stopped, as many of each as all have."""
    n, own = problem.structure.n_variables, problem.graph.n_variables
    out = np.empty((sum(lengths), own), np.int32)
    begins = np.concatenate([[0], np.cumsum(lengths)[:-1]]).astype(np.int64).tolist()
    at_once = max(1, chains.transition.sweeps_at_once)
    most = max(1, min(at_once // thinning, BUFFER // max(1, n)))
    fill = getattr(chains.transition, "fill", None)
    row, waited = 0, 0
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
        return [out], None
    kept = [out[b : b + min(row, k)] for b, k in zip(begins, lengths, strict=True)]
    return (kept if row else []), stopped


def estimate(
    problem: Problem,
    transition: Transition,
    *,
    sweeps: int,
    n_chains: int,
    burn_in: int | None,
    rng: np.random.Generator,
    running: Running,
    method: str,
    start: States | None = None,
    init: Samples | Marginals | None = None,
    extra: Any = None,
) -> Marginals:
    """Estimate the marginals of a problem's variables by Markov chains, keeping averages of batches only.

    Batches double in length as the chains go on, so that the work may be stopped at any time; memory is that of at most
    128 numbers for each chain and state. Standard errors come from the batches' averages as `effective_sample_size`
    has it, so that both what batches remember and what chains disagree about counts. Effective sample sizes say how
    many independent draws would estimate a probability as well: infinitely many where every conditional distribution
    was the same, and as many as there were sweeps where a state never came up or always did. R-hat is that of the
    states' indicators; where it is above 1.1, the answer is not converged and a warning says so.

    With ``init``, an earlier answer to `sample` or `marginals`, the chains go on from where it left them; only the new
    sweeps count. ``start`` and ``extra`` are as for `run_chains`.
    """
    s = problem.structure
    chains, burn_in = _begin(problem, transition, n_chains, burn_in, rng, running, init, method, start)
    chains.discard(resolved_burn_in(burn_in, sweeps))
    batches = _Batches(chains, int(s.value_offsets[-1]), s.value_offsets[:-1].copy())
    stopped = batches.run(sweeps)
    if stopped is not None and not batches.filled:
        raise stopped
    values, errors, sizes, r_hats = batches.summary()
    single = np.repeat(s.cardinalities == 1, s.cardinalities)
    count = float(n_chains * batches.sweeps)
    values[single], errors[single], sizes[single], r_hats[single] = 1.0, 0.0, count, np.nan
    expanded = [problem.expand(*pair) for pair in ((values, 0.0), (errors, 0.0), (sizes, count), (r_hats, np.nan))]
    for array in expanded:
        array.flags.writeable = False
    worst = float(np.max(r_hats[~np.isnan(r_hats)], initial=1.0))
    # With too few batches nothing can be said, which is not the same as nothing being wrong.
    known = bool(np.isfinite(errors).all())
    if stopped is None and worst > R_HAT_LIMIT:
        _warn_apart(method, worst)
    return Marginals(
        graph=problem.graph,
        values=expanded[0],
        log_partition=np.nan,
        guarantee="approximate",
        method=method,
        converged=stopped is None and worst <= R_HAT_LIMIT and known,
        iterations=chains.sweeps,
        seconds=time.perf_counter() - running.started,
        monte_carlo=MonteCarlo(expanded[1], expanded[2], expanded[3], int(count), n_chains),
        _state=ChainState.of(problem, chains, extra),
    )


def _warn_apart(method: str, r_hat: float) -> None:
    from sklearn.exceptions import ConvergenceWarning

    warnings.warn(
        f"the chains of {method} do not agree: the largest split R-hat is {r_hat:.3g}, above {R_HAT_LIMIT}; "
        "more sweeps, larger moves (Gibbs(scan='trees'), ParallelTempering) or junction_tree may help",
        ConvergenceWarning,
        stacklevel=7,
    )


class _Batches:
    """Averages of batches of sweeps, ``float64[chains, batches, states]``; two become one when there is no room."""

    def __init__(self, chains: Chains, n_values: int, value_offsets: npt.NDArray[np.int64]) -> None:
        room = BATCH_NUMBERS // max(1, n_values * len(chains.states))
        self.room = max(FEWEST_BATCHES, min(MOST_BATCHES, room // 2 * 2))
        self.chains, self.value_offsets = chains, value_offsets
        self.means = np.zeros((len(chains.states), self.room, n_values))
        self.length, self.filled, self.inside = 1, 0, 0

    @property
    def sweeps(self) -> int:
        """Sweeps averaged over, of each chain."""
        return self.length * self.filled + self.inside

    def run(self, sweeps: int) -> BaseException | None:
        """Advance all chains; the answer is what stopped them early, if anything did."""
        n = len(self.value_offsets)
        transition = self.chains.transition
        accumulate = getattr(transition, "accumulate", None)
        at_once = max(1, transition.sweeps_at_once)
        while self.sweeps < sweeps:
            if self.filled == self.room:
                self._merge()
            step = min(sweeps - self.sweeps, at_once, self.length * (self.room - self.filled) - self.inside)
            added = np.zeros((len(self.chains.states), -(-(self.inside + step) // self.length), self.means.shape[2]))

            def each(c: int, step: int = step, added: FloatArray = added) -> int:
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
                    b, inside = b + 1, 0
                return 0

            stopped = self.chains.in_step(each, step)
            if self.chains.complete:
                self.means[:, self.filled : self.filled + added.shape[1]] += added / self.length
                inside = self.inside + step
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
        with np.errstate(divide="ignore", invalid="ignore"):
            sizes = np.where(spread > 0.0, spread / variance, float(len(full) * self.sweeps))
            halves = self.filled // 2
            parts = np.concatenate([full[:, :halves].mean(axis=1), full[:, -halves:].mean(axis=1)])
            within = (parts * (1.0 - parts)).mean(axis=0)
            between = parts.var(axis=0, ddof=1)
            r_hats = np.where(between > 0.0, np.sqrt(1.0 + between / within), np.where(within > 0.0, 1.0, np.nan))
        return values, np.sqrt(variance), sizes, r_hats
