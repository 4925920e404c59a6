"""Bounds from mini-buckets, tightened by moving potential and weight between the mini-buckets of a variable."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from markovfield.arrays import FloatArray
from markovfield.exceptions import StoppedError
from markovfield.inference.core.running import Running
from markovfield.inference.mini_bucket.layout_kernel import directions, exclude, step
from markovfield.inference.mini_bucket.mini_bucket_kernel import (
    add_factor_beliefs,
    backward,
    bucket_marginals,
    decode_buckets,
    fill_bases,
    forward,
    match_forward,
)
from markovfield.inference.mini_bucket.plan import BucketPlan
from markovfield.inference.problem.problem import Problem

__all__ = ["Buckets", "Tightened"]

# A step is taken when the bound gains this share of what its slope promises; below the least length none is left.
ENOUGH = 1e-2
SHORTEST, LONGEST = 2.0**-8, 16.0
# The negative weights that a lower bound starts from, times the mini-buckets of a variable.
NEGATIVE = 3.0


@dataclass(frozen=True, eq=False)
class Tightened:
    """Where an iteration ended: the bound, what was moved to reach it, and the gain of each iteration."""

    bound: float
    shifts: FloatArray
    weights: FloatArray
    gains: tuple[float, ...]
    converged: bool


class Buckets:
    """The tables, messages and beliefs of one problem on one plan."""

    def __init__(self, problem: Problem, plan: BucketPlan, running: Running | None = None) -> None:
        s, lay = problem.structure, plan.layout
        m = s.n_factors
        pool = np.concatenate([problem.potentials.log_tables, problem.likelihood])
        starts = np.concatenate([s.table_offsets, s.n_cells + s.value_offsets[:-1]])
        self.problem, self.plan = problem, plan
        self.layout = lay._replace(factor_base=starts[plan.factors].astype(np.int64))
        self.constant = float(pool[s.table_offsets[plan.constants]].sum())
        fixed = np.flatnonzero(problem.active & (s.cardinalities == 1))
        self.constant += float(problem.likelihood[s.value_offsets[fixed]].sum()) if len(fixed) else 0.0
        assert m + s.n_variables == len(starts)
        self.bases = np.empty(int(lay.table_offsets[-1]))
        self.tables = np.empty_like(self.bases)
        self.messages = np.empty(int(lay.message_offsets[-1]))
        self.beliefs = np.empty_like(self.messages)
        self.moments = np.zeros(int(lay.shift_offsets[-1]))
        self.moves = np.zeros_like(self.moments)
        self.entropies = np.zeros(len(lay.table_offsets) - 1)
        self.weight_moves = np.zeros_like(self.entropies)
        for piece in plan.pieces:
            if running is not None and piece is not plan.pieces[0]:
                running.check()
            fill_bases(self.layout, *piece, pool, self.bases)

    def shares(self) -> FloatArray:
        """Equal shares of every bucket's weight for its mini-buckets."""
        counts = np.diff(self.layout.bucket_offsets)
        return np.repeat(1.0 / counts, counts)

    def match(self, shares: FloatArray, temperature: float, running: Running) -> tuple[float, FloatArray]:
        """One pass that matches moments on its way: the bound, and what was moved."""
        shifts = np.zeros(len(self.moments))
        total = self.constant
        for piece in self.plan.pieces:
            running.check()
            total += match_forward(
                self.layout, *piece, self.bases, shifts, shares, temperature, self.messages, self.tables
            )
        return total, shifts

    def forward(self, shifts: FloatArray, weights: FloatArray, running: Running) -> float:
        """The bound; tables are formed anew."""
        total = self.constant
        for piece in self.plan.pieces:
            running.check()
            total += forward(self.layout, *piece, self.bases, shifts, weights, self.messages, self.tables)
        return total

    def backward(self, weights: FloatArray, running: Running) -> None:
        """Beliefs in place of tables, after `forward` with the same weights."""
        for piece in reversed(self.plan.pieces):
            running.check()
            backward(
                self.layout,
                *piece,
                weights,
                self.messages,
                self.tables,
                self.beliefs,
                self.moments,
                self.entropies,
            )

    def marginals(self, weights: FloatArray) -> FloatArray:
        """Beliefs of all reduced states, after `backward`."""
        s = self.problem.structure
        values = np.ones(int(s.value_offsets[-1]))
        at = s.value_offsets[:-1][self.plan.order]
        bucket_marginals(self.layout, weights, self.tables, values, at)
        return values

    def counts(self) -> FloatArray:
        """Derivatives of the bound by the cells of the reduced pool, after `backward`."""
        s = self.problem.structure
        counts = np.zeros(len(self.problem.potentials.log_tables) + int(s.value_offsets[-1]))
        add_factor_beliefs(self.layout, self.tables, counts)
        np.add.at(counts, s.table_offsets[self.plan.constants], 1.0)
        return counts[: len(self.problem.potentials.log_tables)]

    def joint(self, variables: Sequence[int]) -> FloatArray | None:
        """Belief of several free variables, after `backward`, where one mini-bucket holds them all."""
        lay = self.layout
        place = {int(v): i for i, v in enumerate(self.plan.order)}
        wanted = [place[v] for v in variables]
        owner = np.repeat(np.arange(len(self.entropies)), np.diff(lay.axis_offsets))
        held = np.bincount(owner[np.isin(lay.axis_variable, wanted)], minlength=len(self.entropies))
        holding = np.flatnonzero(held == len(wanted))
        if not len(holding):
            return None
        k = int(holding[0])
        axes = slice(int(lay.axis_offsets[k]), int(lay.axis_offsets[k + 1]))
        scope = lay.axis_variable[axes].tolist()
        table = self.tables[lay.table_offsets[k] : lay.table_offsets[k + 1]].reshape(lay.axis_card[axes])
        table = table.sum(axis=tuple(a for a, v in enumerate(scope) if v not in wanted))
        kept = [v for v in scope if v in wanted]
        return np.asarray(table.transpose([kept.index(v) for v in wanted]))

    def decode(self) -> npt.NDArray[np.int64]:
        """States of the reduced problem chosen greedily, after `forward`."""
        places = np.zeros(len(self.plan.order), np.int64)
        decode_buckets(self.layout, self.tables, places)
        states = np.zeros(self.problem.structure.n_variables, np.int64)
        states[self.plan.order] = places
        return states

    def lower_start(self, upper: Tightened) -> tuple[FloatArray, FloatArray]:
        """Where a lower bound starts: nothing moved but what the upper one found impossible, one weight positive.

        The bound is not concave; large weights, and no shifts from elsewhere, were the best of the starts tried.
        """
        lay = self.layout
        zeros = np.add.reduceat(np.isneginf(self.bases).astype(np.int64), lay.table_offsets[:-1])
        weights = np.ones(len(self.entropies))
        for b in np.flatnonzero(np.diff(lay.bucket_offsets) > 1).tolist():
            first, last = int(lay.bucket_offsets[b]), int(lay.bucket_offsets[b + 1])
            # Hard zeros do no harm under the positive weight.
            positive = first + int(np.argmax(zeros[first:last]))
            weights[first:last] = -NEGATIVE / (last - first)
            weights[positive] = 1.0 + NEGATIVE * (last - first - 1) / (last - first)
        shifts = np.where(np.isneginf(upper.shifts), -np.inf, 0.0)
        exclude(lay, weights, shifts)
        return shifts, weights

    def tighten(
        self,
        shifts: FloatArray,
        weights: FloatArray,
        *,
        sign: float,
        max_iterations: int,
        tolerance: float,
        running: Running,
        bound: float | None = None,
        move_weights: bool = True,
    ) -> Tightened:
        """Lower an upper bound (``sign`` -1) or raise a lower one (+1) step by step; every step leaves a true bound.

        Ends when a step gains less than ``tolerance``, or when time is up.
        """
        if bound is None:
            bound = self.forward(shifts, weights, running)
        gains: list[float] = []
        length = 1.0
        self.weight_moves[:] = 0.0
        converged = not np.isfinite(bound) or self.plan.n_split == 0
        new_shifts, new_weights = np.empty_like(shifts), np.empty_like(weights)
        try:
            while not converged and len(gains) < max_iterations:
                self.backward(weights, running)
                slope = directions(
                    self.layout,
                    weights,
                    self.moments,
                    self.entropies,
                    self.moves,
                    self.weight_moves,
                    np.bool_(move_weights),
                )
                gain = 0.0
                while length >= SHORTEST:
                    step(self.layout, length, shifts, self.moves, weights, self.weight_moves, new_shifts, new_weights)
                    trial = self.forward(new_shifts, new_weights, running)
                    gain = sign * (trial - bound)
                    if gain >= ENOUGH * length * sign * slope:
                        break
                    length *= 0.5
                    gain = 0.0
                if length >= SHORTEST:
                    bound = trial
                    shifts, new_shifts = new_shifts, shifts
                    weights, new_weights = new_weights, weights
                gains.append(gain)
                converged = gain < tolerance
                length = min(2.0 * length, LONGEST)
        except (TimeoutError, StoppedError) as stop:
            running.remember(stop)
            converged = False
        return Tightened(bound, shifts, weights, tuple(gains), converged)
