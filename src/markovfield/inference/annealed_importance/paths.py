"""Markov chains that are annealed from a forest of factors to the whole model, and their weights."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property, partial

import numpy as np
import numpy.typing as npt

from markovfield.arrays import FloatArray, offsets_of
from markovfield.exceptions import ModelError
from markovfield.factors.factor_graph import FactorGraph
from markovfield.inference.annealed_importance.annealing_kernel import (
    AnnealedGraph,
    anneal,
    average_conditionals,
    rest_of,
)
from markovfield.inference.constants.scale import extremes
from markovfield.inference.core.diagnostics import error_floor
from markovfield.inference.core.running import STOPS, Running
from markovfield.inference.problem.feasible import Feasible
from markovfield.inference.problem.pairwise import unary_scores
from markovfield.inference.problem.problem import Problem
from markovfield.inference.problem.reduction import zeros_in_factors
from markovfield.inference.sampling.seen_states import PARTS, SEEN_ROWS, covered_weight, missed_by_weighted, weigh_seen
from markovfield.inference.sampling.trust import leeway, swings, warn_doubts
from markovfield.kernels.forest import forest_beliefs, forest_draw, forest_order, spanning_factors
from markovfield.kernels.random import streams

__all__ = ["AnnealedChains", "Base"]


# Chains of a task, and of a wave of tasks: a wave is finished before the next begins, so that there is something to
# answer with when the clock stops it.
GROUP, WAVE = 4, 64
# Nanoseconds for a cell that a Gibbs move reads, roughly, and those between two looks at the clock.
CELL_COST, STEP = 5, 5e7
# What a cell of -inf takes from the score at half the way; it grows as b / (1 - b).
PENALTY = 1.0
# What it takes from factors of the forest at the start.
HEAD_START = 2.0
# Below this share of the chains, or this many (of few chains, half of them), the effective sample size says that the
# weights cannot be trusted.
LEAST_SHARE, LEAST_SIZE = 0.1, 10.0
# Standard errors by which the estimate must be outside of what assignments add up to before it is called wrong.
MISSED = 3.0
REMEDY = (
    "more n_temperatures may help, though seldom where strong factors contradict each other: "
    "use junction_tree or mini_bucket"
)


@dataclass(frozen=True, eq=False)
class Base:
    """A problem, and the forest of its factors that Markov chains start from."""

    problem: Problem
    graph: AnnealedGraph
    uppers: npt.NDArray[np.int64]
    roots: npt.NDArray[np.bool_]
    beliefs: FloatArray
    log_partition: float

    @classmethod
    def of(cls, problem: Problem) -> Base:
        """Take the strongest factors into the forest, one after the other."""
        s, pool = problem.structure, problem.potentials
        arity = np.diff(s.scope_offsets)
        joint = np.flatnonzero(arity > 1)
        # Zeros first, since only the forest takes them as they are; then what pulls strongest.
        strength = pool.high - pool.low + 1e6 * zeros_in_factors(s, pool.log_tables)
        order = joint[np.argsort(-strength[joint], kind="stable")]
        inside = spanning_factors(s.n_variables, s.scope_offsets, s.scopes, order)
        owner = np.repeat(np.arange(s.n_factors, dtype=np.int32), arity)
        slots = np.flatnonzero(arity[owner] > 1)
        slots = slots[np.argsort(s.scopes[slots], kind="stable")]
        factor = owner[slots]
        other = np.full(len(slots), -1, np.int32)
        pair = arity[factor] == 2
        other[pair] = s.scopes[2 * s.scope_offsets[factor[pair]] + 1 - slots[pair]]
        slot_offsets = offsets_of(np.bincount(s.scopes[slots], minlength=s.n_variables))
        unary = unary_scores(problem)[0]
        tempered = (arity > 1) & ~inside
        levels = extremes(FactorGraph(s, pool.log_tables, marks_hold=True)).top.copy()
        # Where the forest is all there is, nothing needs to be crossed.
        levels[~tempered] -= HEAD_START if tempered.any() else np.inf
        graph = AnnealedGraph(
            *(s.cardinalities, s.value_offsets, s.scope_offsets, s.scopes, s.table_offsets, s.table_strides),
            *(pool.log_tables, owner, levels, unary, tempered),
            *(slot_offsets, slots, factor, other),
        )
        uppers, roots = forest_order(s.scope_offsets, s.scopes, slot_offsets, slots, factor, inside)
        beliefs = unary.copy()
        log_partition = float(forest_beliefs(*graph[:9], uppers, roots, beliefs))
        log_partition += float(pool.log_tables[s.table_offsets[arity == 0]].sum())
        if np.isneginf(log_partition):
            raise problem.impossible()
        return cls(problem, graph, uppers, roots, beliefs, log_partition)

    def draw(self, own_streams: npt.NDArray[np.uint64]) -> npt.NDArray[np.int32]:
        """Exact samples of the forest, one for each stream."""
        states = np.zeros((len(own_streams), len(self.roots)), np.int32)
        forest_draw(*self.graph[:9], self.uppers, self.roots, self.beliefs, states, own_streams)
        return states

    @property
    def sweep_cost(self) -> float:
        """Nanoseconds of a Gibbs sweep of one Markov chain, roughly."""
        g = self.graph
        reads = np.diff(g.scope_offsets)[g.slot_factor] + g.cardinalities[g.scopes[g.slots]]
        return CELL_COST * float(reads.sum() + 4 * len(g.unary))


@dataclass(eq=False)
class AnnealedChains:
    """Markov chains that go from the forest to the model."""

    base: Base
    betas: FloatArray
    states: npt.NDArray[np.int32] = field(init=False)
    log_weights: FloatArray = field(init=False)
    streams: npt.NDArray[np.uint64] = field(init=False)
    complete: bool = True
    doubts: tuple[str, ...] = ()

    @property
    def sweeps(self) -> int:
        """Gibbs sweeps of each Markov chain."""
        return len(self.betas) - 1

    def go(self, size: int, rng: np.random.Generator, running: Running) -> None:
        """Take ``size`` Markov chains all the way; stopped early, keep those that have arrived, if any two."""
        self.streams = streams(rng, size)
        self.states = self.base.draw(self.streams)
        self.log_weights = np.full(size, self.base.log_partition)
        with np.errstate(divide="ignore"):
            penalties = PENALTY * self.betas / (1 - self.betas)
        rests = [rest_of(self.base.graph, row) for row in self.states]
        totals = np.array([total for total, _ in rests])
        bads = np.array([bad for _, bad in rests], np.int64)
        at_once = max(1, int(STEP / (GROUP * self.base.sweep_cost + 1)))

        def task(start: int, first: int) -> int:
            part = slice(start, min(start + GROUP, size))
            last = min(first + at_once, self.sweeps)
            anneal(
                self.base.graph,
                self.betas,
                penalties,
                first,
                last,
                self.states[part],
                totals[part],
                bads[part],
                self.log_weights[part],
                self.streams[part],
            )
            return 0

        arrived = 0
        try:
            for wave in range(0, size, WAVE):
                starts = range(wave, min(wave + WAVE, size), GROUP)
                for first in range(0, self.sweeps, at_once):
                    running.side_by_side([partial(task, start, first) for start in starts])
                arrived = min(wave + WAVE, size)
        except STOPS:
            if arrived < 2:
                raise
            self.complete = False
            self.states, self.log_weights = self.states[:arrived], self.log_weights[:arrived]

    def check(self, values: FloatArray | None = None, errors: FloatArray | None = None) -> None:
        """Warn of what speaks against the Markov chains, and keep it in ``doubts``; raise where none has weight.

        ``values`` and ``errors`` are estimates of the problem's marginals; those of the chains' states where None.
        """
        if np.isneginf(self.log_weights).all():
            # The search may prove that there is nothing to be found.
            problem = self.base.problem
            Feasible.of(problem).assignment(np.zeros(int(problem.structure.value_offsets[-1])))
            raise ModelError(
                f"none of the {len(self.log_weights)} chains of annealed_importance ended free of hard zeros: take "
                "more n_temperatures or n_chains, or junction_tree"
            )
        self.doubts = self._doubts(values, errors)
        if self.doubts:
            warn_doubts("annealed_importance", self.doubts, REMEDY)

    def _doubts(self, values: FloatArray | None, errors: FloatArray | None) -> tuple[str, ...]:
        n = len(self.log_weights)
        if not self._trusted:
            return (
                f"the {n} chains of annealed_importance are worth {self.effective_size:.3g} independent samples of "
                "equal weight, so its standard errors cannot be trusted",
            )
        error = self.log_partition_error if n > 1 else 0.0
        room = MISSED * error + 1e-9 * max(1.0, abs(self.log_partition))
        told = f"the estimate of annealed_importance, {self.log_partition:.6g} with a standard error of {error:.2g}, is"
        low, covered = self._seen
        if low > self.log_partition + room:
            return (f"{told} too low: a few assignments add up to {low:.6g} already, so its chains have missed some",)
        if covered > 0.0 and self.log_partition > low - np.log(covered) + room:
            return (
                f"{told} too high: assignments with a share of {covered:.2g} or more of all weight add up to {low:.6g}",
            )
        rng = np.random.default_rng(self.streams[0])
        said = missed_by_weighted(self.base.problem, self.states, self.weights, rng, values, errors)
        return (said,) if said else ()

    @cached_property
    def _seen(self) -> tuple[float, float]:
        """log of the sum over different assignments, those of the Markov chains and those that a search finds: below
        log Z for sure; and a share of all weight that they have at least, by how much of each part of the chains others
        found."""
        rows, weights = self.states[:SEEN_ROWS], self.weights[:SEEN_ROWS]
        rows, weights = rows[weights > 0], weights[weights > 0]
        _, scores = weigh_seen(self.base.problem, rows, np.random.default_rng(self.streams[0]))
        group = np.arange(len(rows)) * PARTS // len(rows)
        covered = covered_weight(rows, group, weights) if len(rows) >= 4 * PARTS else 0.0
        return float(np.logaddexp.reduce(scores)), covered

    @property
    def weights(self) -> FloatArray:
        """Adding up to one."""
        scaled = np.exp(self.log_weights - self.log_weights.max())
        return np.asarray(scaled / scaled.sum())

    @property
    def effective_size(self) -> float:
        """How many samples of equal weight would be as good."""
        return 1.0 / float(np.square(self.weights).sum())

    @property
    def _trusted(self) -> bool:
        n = len(self.log_weights)
        return self.effective_size >= min(0.5 * n, max(LEAST_SIZE, LEAST_SHARE * n))

    @property
    def converged(self) -> bool:
        """Whether all Markov chains arrived and `check` found nothing to speak against them."""
        return self.complete and not self.doubts

    @property
    def log_partition(self) -> float:
        """log of the mean weight."""
        top = float(self.log_weights.max())
        return top + float(np.log(np.exp(self.log_weights - top).mean()))

    @property
    def log_partition_error(self) -> float:
        """Of the log of a mean: the standard error of the mean over the mean.

        Where most Markov chains have the very same weight their scatter says little: the error is then at least an
        `error_floor` for weights that were not seen, times as much as they can differ by.
        """
        n = len(self.log_weights)
        if n < 2:
            return np.nan
        found = float(np.std(n * self.weights, ddof=1) / np.sqrt(n))
        top = float(self.log_weights.max())
        live = self.log_weights[self.log_weights > -np.inf]
        _, equal = np.unique(np.round((live - top) / (1e-9 * max(1.0, abs(top)))), return_counts=True)
        if 2 * int(equal.max()) < n:
            return found
        swing = float(swings(self.base.problem)[self.base.graph.tempered].sum())
        return max(found, min(1.0, float(np.expm1(min(swing, 1.0)))) * error_floor(self.effective_size))

    def averages(self, sweeps: int, running: Running) -> tuple[FloatArray, FloatArray]:
        """Weighted averages of the Markov chains' conditionals over more sweeps, and standard errors (of a ratio).

        They are at least `error_floor`, times `leeway`, for what no chain has come to.

        Stopped early, or started after a stop, the chains that are left take one sweep each.
        """
        weights, graph = self.weights, self.base.graph
        n_values = len(graph.unary)
        # Sums over chains of w p, w^2 p and (w p)^2.
        sums = np.zeros((3, n_values))
        at_once = max(1, int(STEP / (self.base.sweep_cost + 1)))
        for start in range(0, len(weights), GROUP):
            live = [c for c in range(start, min(start + GROUP, len(weights))) if weights[c] > 0]
            totals, counts = np.zeros((len(live), n_values)), np.zeros(len(live))

            def task(k: int, c: int, count: int, totals: FloatArray = totals, counts: FloatArray = counts) -> int:
                means = np.zeros(n_values)
                average_conditionals(graph, count, self.states[c], self.streams[c], means)
                totals[k] += count * means
                counts[k] += count
                return 0

            try:
                for first in range(0, sweeps if self.complete else 0, at_once):
                    count = min(at_once, sweeps - first)
                    running.side_by_side([partial(task, k, c, count) for k, c in enumerate(live)])
            except STOPS:
                self.complete = False
            for k, c in enumerate(live):
                if counts[k] == 0:
                    task(k, c, 1)
                means = totals[k] / counts[k]
                sums[0] += weights[c] * means
                sums[1] += weights[c] ** 2 * means
                sums[2] += (weights[c] * means) ** 2
        values = sums[0]
        variance = sums[2] - 2 * values * sums[1] + values**2 * float(np.square(weights).sum())
        unseen = leeway(self.base.problem) * error_floor(self.effective_size)
        return values, np.maximum(np.sqrt(np.maximum(variance, 0.0)), unseen)
