"""Weighted model counting: exact sums of models full of hard zeros, and brackets where the time does not suffice."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from markovfield._validation import check_method
from markovfield.exceptions import StoppedError
from markovfield.factor_graph import FactorGraph
from markovfield.inference.answers import LogPartition
from markovfield.inference.counting_formula import Encoding, encode
from markovfield.inference.evidence import Evidence
from markovfield.inference.limits import memory_limit_bytes
from markovfield.inference.problem import Problem, prepare
from markovfield.inference.running import Running
from markovfield.kernels.model_counting_search import MORE_ROOM, begin, bounds, count
from markovfield.kernels.model_counting_state import (
    ARENA,
    HASTY,
    LEARNED,
    N_NUMBERS,
    N_SCALARS,
    SUM,
    UNITS,
    WORK,
    State,
)

__all__ = ["ModelCounting"]

# Steps of one kernel call, under a fifth of a second.
CHUNK = 5_000_000


class Search:
    """A search that can be stopped and taken up again."""

    def __init__(self, encoding: Encoding, memory: float, primes: tuple[int, ...] = ()) -> None:
        self.formula = f = encoding.formula
        n, m = len(f.group_of), len(f.clause_offsets) - 1
        t = len(f.bases)
        learned, n_units = 60_000, len(encoding.units)
        arena = np.zeros(len(f.clause_literals) + 2_000_000, np.int32)
        arena[: len(f.clause_literals)] = f.clause_literals
        starts, lengths = np.zeros(m + n_units + learned, np.int64), np.zeros(m + n_units + learned, np.int32)
        starts[:m], lengths[:m] = f.clause_offsets[:-1], np.diff(f.clause_offsets)
        scalars = np.zeros(N_SCALARS, np.int64)
        units = np.zeros(n_units + 10_000, np.int64)
        at = len(f.clause_literals)
        arena[at : at + n_units] = encoding.units
        starts[m : m + n_units], lengths[m : m + n_units] = np.arange(at, at + n_units), 1
        units[:n_units] = np.arange(m, m + n_units)
        scalars[LEARNED], scalars[ARENA], scalars[UNITS] = m + n_units, at + n_units, n_units
        p = len(primes)
        slots = int(min(2**24, max(1024, memory / (8 * p + 150))))
        size = n + m + t
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
            data=np.zeros(8 * size + 1024, np.int32),
            component_starts=np.zeros(4 * n + 1024, np.int64),
            component_sizes=np.zeros((4 * n + 1024, 3), np.int64),
            level_numbers=np.zeros((n + 2, N_NUMBERS), np.int64),
            level_mantissas=np.zeros((n + 2, 2)),
            level_exponents=np.zeros((n + 2, 2), np.int64),
            level_logs=np.zeros((n + 2, 2)),
            level_residues=np.zeros((n + 2, 2, p), np.int64),
            primes=np.array(primes, np.int64),
            pool=np.empty(int(max(2**16, memory / 2)), np.uint8),
            slot_bytes=np.empty(slots, np.int64),
            slot_lengths=np.empty(slots, np.int64),
            slot_hashes=np.empty(slots, np.int64),
            slot_next=np.full(slots, -1, np.int64),
            slot_mantissas=np.empty(slots),
            slot_exponents=np.empty(slots, np.int64),
            slot_residues=np.empty((slots, p), np.int64),
            buckets=np.full(slots, -1, np.int64),
            seen=np.zeros(n, np.bool_),
            labels=np.zeros(n, np.int64),
            clause_labels=np.zeros(m, np.int64),
            table_labels=np.zeros(t, np.int64),
            stack=np.zeros(n + 1, np.int64),
            key=np.zeros(10 * (n + m + 2 * t) + 64, np.uint8),
            learnt=np.zeros(n + 2, np.int64),
        )
        begin(self.formula, self.state)

    def run(self, steps: int) -> bool:
        """Search on for about so many steps; whether everything is counted."""
        end = int(self.state.scalars[WORK]) + steps
        while self.state.scalars[WORK] < end:
            status = count(self.formula, self.state, end - int(self.state.scalars[WORK]))
            if status == 1:
                return True
            if status == MORE_ROOM:
                self._grow()
        return False

    def _grow(self) -> None:
        """Twice the room for components."""
        s = self.state
        self.state = s._replace(
            data=np.concatenate([s.data, np.zeros_like(s.data)]),
            component_starts=np.concatenate([s.component_starts, np.zeros_like(s.component_starts)]),
            component_sizes=np.concatenate([s.component_sizes, np.zeros_like(s.component_sizes)]),
        )
