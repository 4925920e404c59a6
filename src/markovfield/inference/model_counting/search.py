"""A model counter's search as an object: run for some steps, bounds where it stands, run on."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from markovfield.exceptions import MemoryLimitError
from markovfield.inference.model_counting.cache_kernel import move
from markovfield.inference.model_counting.flow_kernel import flow
from markovfield.inference.model_counting.formula import Encoding
from markovfield.inference.model_counting.search_kernel import LONGER_TRACE, MORE_ROOM, begin, bounds, count
from markovfield.inference.model_counting.state_kernel import (
    ARENA,
    DECISIONS,
    HASTY,
    LEARNED,
    N_NUMBERS,
    N_SCALARS,
    SUM,
    TIGHT,
    UNITS,
    WORK,
    State,
)

__all__ = ["CountingSearch"]

# Steps of one kernel call, under a fifth of a second.
CHUNK = 5_000_000
# Learned clauses, their literals and clauses of one literal that there is room for.
CLAUSES, LITERALS, SINGLE = 60_000, 2_000_000, 10_000
# Bytes that an entry of the cache takes beside its key, and how many entries and bytes of keys there are at first.
ENTRY, FIRST_SLOTS, FIRST_BYTES = 64, 2**15, 2**22


class CountingSearch:
    """Counts a formula's weighted models.

    ``primes`` are moduli in which the number is kept as well; with ``trace`` marginals can be had of what was counted.
    """

    def __init__(self, encoding: Encoding, memory: float, primes: tuple[int, ...] = (), *, trace: bool = False) -> None:
        self.formula = f = encoding.formula
        self.memory = memory
        n, m, t = len(f.group_of), len(f.clause_offsets) - 1, len(f.bases)
        u = len(encoding.units)
        at = len(f.clause_literals)
        arena = np.zeros(at + u + LITERALS, np.int32)
        arena[:at], arena[at : at + u] = f.clause_literals, encoding.units
        starts, lengths = np.zeros(m + u + CLAUSES, np.int64), np.ones(m + u + CLAUSES, np.int32)
        starts[:m], lengths[:m] = f.clause_offsets[:-1], np.diff(f.clause_offsets)
        starts[m : m + u] = np.arange(at, at + u)
        scalars, units = np.zeros(N_SCALARS, np.int64), np.zeros(u + SINGLE, np.int64)
        units[:u] = np.arange(m, m + u)
        scalars[LEARNED], scalars[ARENA], scalars[UNITS] = m + u, at + u, u
        p = len(primes)
        self.state = State(
            scalars=scalars,
            values=np.zeros(2 * n, np.int8),
            trail=np.zeros(n + 1, np.int64),
            reasons=np.full(n, -1, np.int64),
            levels=np.zeros(n, np.int64),
            arena=arena,
            starts=starts,
            lengths=lengths,
            watch_heads=np.full(2 * n, -1, np.int64),
            watch_next=np.full(2 * len(starts), -1, np.int64),
            units=units,
            activity=np.zeros(n),
            frequency=np.zeros(n),
            data=np.zeros(8 * (n + m + t) + 1024, np.int32),
            component_starts=np.zeros(4 * n + 1024, np.int64),
            component_sizes=np.zeros((4 * n + 1024, 3), np.int64),
            level_numbers=np.zeros((n + 2, N_NUMBERS), np.int64),
            level_mantissas=np.zeros((n + 2, 2)),
            level_exponents=np.zeros((n + 2, 2), np.int64),
            level_logs=np.zeros((n + 2, 2)),
            level_residues=np.zeros((n + 2, 2, p), np.int64),
            primes=np.array(primes, np.int64),
            **_cache(FIRST_SLOTS, FIRST_BYTES, p, trace),
            notes=np.zeros(2 * n + 1024 if trace else 0, np.int64),
            trace=np.zeros(8 * n + 1024 if trace else 0, np.int64),
            nodes=np.zeros((1024 if trace else 0, 2), np.int64),
            shares=np.zeros((1024 if trace else 0, 2)),
            seen=np.zeros(n, np.bool_),
            labels=np.zeros(n, np.int64),
            clause_labels=np.zeros(m, np.int64),
            table_labels=np.zeros(t, np.int64),
            stack=np.zeros(n + 1, np.int64),
            key=np.zeros(10 * (n + m + 2 * t) + 64, np.uint8),
            learnt=np.zeros(n + 2, np.int64),
        )
        begin(f, self.state)

    @property
    def steps(self) -> int:
        """Steps of work done: literals, clauses and cells that were looked at."""
        return int(self.state.scalars[WORK])

    @property
    def decisions(self) -> int:
        """How often a variable was branched on."""
        return int(self.state.scalars[DECISIONS])

    def run(self, steps: int, hasty: bool = False) -> bool:
        """Search on for about so many steps; whether everything is counted.

        In haste every component that is open gets the first models that are found: nothing more is counted exactly,
        and the search soon ends with bounds.
        """
        self.state.scalars[HASTY] = hasty
        end = self.steps + steps
        while True:
            status = count(self.formula, self.state, end - self.steps)
            if status == MORE_ROOM:
                self._more_room()
            elif status == LONGER_TRACE:
                self._longer_trace()
            elif status == 1 or self.steps >= end:
                break
        if self.state.scalars[TIGHT]:
            self._larger_cache()
        return bool(status == 1)

    def bounds(self) -> tuple[float, float]:
        """Logs of what is proven of the sum: a lower and an upper bound, equal where everything is counted."""
        low, high = bounds(self.formula, self.state)  # type: ignore[misc]
        return low * math.log(2.0), high * math.log(2.0)

    def residues(self) -> list[int]:
        """The sum modulo each prime, when everything is counted."""
        found: list[int] = self.state.level_residues[0, SUM].tolist()
        return found

    def masses(self) -> npt.NDArray[np.float64]:
        """Probabilities of all literals, when everything is counted with a trace."""
        found = np.zeros(2 * len(self.formula.group_of))
        flow(self.formula, self.state, found)
        return found

    def _longer_trace(self) -> None:
        """Twice the room for the trace, where that is within the memory."""
        s = self.state
        if 2 * (s.trace.nbytes + s.nodes.nbytes + s.shares.nbytes) > self.memory:
            raise MemoryLimitError(
                f"the trace of a count, from which marginals are read, has more than {len(s.nodes)} components and "
                "does not fit: raise memory_limit, or ask for log_partition"
            )
        self.state = s._replace(
            notes=np.concatenate([s.notes, np.zeros_like(s.notes)]),
            trace=np.concatenate([s.trace, np.zeros_like(s.trace)]),
            nodes=np.concatenate([s.nodes, np.zeros_like(s.nodes)]),
            shares=np.concatenate([s.shares, np.zeros_like(s.shares)]),
        )

    def _more_room(self) -> None:
        """Twice the room for components."""
        s = self.state
        self.state = s._replace(
            data=np.concatenate([s.data, np.zeros_like(s.data)]),
            component_starts=np.concatenate([s.component_starts, np.zeros_like(s.component_starts)]),
            component_sizes=np.concatenate([s.component_sizes, np.zeros_like(s.component_sizes)]),
        )

    def _larger_cache(self) -> None:
        """Four times the cache, where that is within the memory; else the oldest entries go on making room."""
        s = self.state
        slots, size, p = 4 * len(s.slot_next), 4 * len(s.pool), len(s.primes)
        # Old and new stand side by side while one is copied.
        if 1.25 * (slots * (ENTRY + 8 * p) + size) > self.memory:
            return
        larger = s._replace(**_cache(slots, size, p, bool(len(s.slot_nodes))))
        move(s, larger)
        larger.scalars[TIGHT] = 0
        self.state = larger


def _cache(slots: int, size: int, primes: int, trace: bool) -> dict[str, Any]:
    """The arrays of an empty cache."""
    return {
        "pool": np.empty(size, np.uint8),
        "slot_bytes": np.empty(slots, np.int64),
        "slot_lengths": np.empty(slots, np.int64),
        "slot_hashes": np.empty(slots, np.int64),
        "slot_next": np.full(slots, -1, np.int64),
        "slot_mantissas": np.empty(slots),
        "slot_exponents": np.empty(slots, np.int64),
        "slot_residues": np.empty((slots, primes), np.int64),
        "slot_nodes": np.empty(slots if trace else 0, np.int64),
        "buckets": np.full(slots, -1, np.int64),
    }
