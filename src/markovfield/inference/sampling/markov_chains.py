"""Markov chains, several at once: from scattered starts, in step, stopped and resumed."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from markovfield.arrays import States
from markovfield.exceptions import ModelError
from markovfield.inference.core.running import STOPS, Running
from markovfield.inference.problem.feasible import Feasible
from markovfield.inference.problem.problem import Problem
from markovfield.inference.sampling.modes import dispersed_states
from markovfield.kernels.random import streams

__all__ = ["Begun", "ChainState", "Chains", "Transition", "begin", "doubt_seed", "resolved_burn_in", "resumed_state"]

Stream = npt.NDArray[np.uint64]

LEAST_BURN_IN = 100


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


@dataclass(frozen=True, eq=False)
class Begun:
    """Markov chains that are set up: how they move, where they start (None where they go on), sweeps to throw away.

    ``start`` are first states, ``int32[n_chains, n or more]``, random ones where None. ``extra`` is kept in answers
    for whoever resumes them.
    """

    problem: Problem
    transition: Transition
    start: States | None
    burn_in: int | None
    extra: Any = None


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
    begun: Begun, method: str, n_chains: int, rng: np.random.Generator, running: Running, init: Any
) -> tuple[Chains, int | None]:
    """Markov chains at their start, or where an earlier answer left them, and how long they must forget it."""
    problem, transition, start = begun.problem, begun.transition, begun.start
    if init is not None:
        old = resumed_state(problem, init, n_chains, method)
        chains = Chains(transition, old.states.copy(), old.streams.copy(), running, old.sweeps)
        # Chains of other numbers are where these should not be: they are good starts, no more.
        return chains, 0 if old.potentials == _digest(problem) else begun.burn_in
    if start is None:
        start = dispersed_states(problem, n_chains, rng)
    return Chains(transition, start.copy(), streams(rng, n_chains), running), begun.burn_in


def doubt_seed(chains: Chains) -> np.random.Generator:
    """Random numbers for looking at Markov chains: theirs, so that the caller's generator is left as it was."""
    return np.random.default_rng(chains.streams[0])
