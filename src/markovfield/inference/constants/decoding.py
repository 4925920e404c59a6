"""Decoding without the constants of a model: each table less its best, and answers that speak of the model again.

A best score of 10^9 + 7 says nothing of how well it must be computed: the seven does. Whatever a decoder compares, it
compares relative to the scores it sees, so it is given a *view* of the graph whose tables have had their constants
taken out, and its answer gets them back at the end, the score added up anew.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from markovfield.arrays import FloatArray
from markovfield.exceptions import ModelError
from markovfield.factors.factor_graph import FactorGraph
from markovfield.factors.factor_kinds import NOISY_MAX, cell_reader
from markovfield.factors.remembered import remembered
from markovfield.inference.constants.cancelling import collect_unary_parts
from markovfield.inference.constants.scale import (
    EXTREMES,
    MANY_FACTORS,
    Extremes,
    extremes,
    few_cells,
    largest_cell,
    most_total,
    own_cells,
    score_scale,
    some_extremes,
)
from markovfield.inference.core.decodings import Decoding
from markovfield.inference.core.evidence import Evidence
from markovfield.inference.core.running import Progress, Running

__all__ = ["Centred", "centre", "factor_constants", "taken_out"]

# Constants are taken out where they outweigh what is left by so much, or where one of them is so large.
OUTWEIGH, LARGE_CONSTANT = 8.0, 2.0**16
# Tables that differ by so much within are looked at for what cancels between them, and replaced where this share or
# less of all differences is left.
LARGE_SPREAD, WORTH = 2.0**20, 0.9
# Scores of so many factors are not added up number by number.
MANY = 2**14


@dataclass(frozen=True, eq=False)
class Centred:
    """A graph and the view of it that is decoded.

    Attributes
    ----------
    view
        A graph of the same variables whose scores are lower by ``constant``; the graph itself where it has no
        constants to speak of.
    """

    graph: FactorGraph
    view: FactorGraph
    constant: float

    def running(self, running: Running) -> Running:
        """For whoever decodes the view: the callback is told scores of the graph."""
        callback, constant = running.callback, self.constant
        if callback is None or not constant:
            return running

        def tell(progress: Progress) -> bool | None:
            value, bound = progress.value, progress.bound
            return callback(
                replace(
                    progress,
                    value=None if value is None else value + constant,
                    bound=None if bound is None else bound + constant,
                )
            )

        return replace(running, callback=tell)

    def answer(self, found: Decoding, evidence: Evidence) -> Decoding:
        """An answer about the view as one about the graph.

        The score is that of the graph, rounded once. Where all scores are integer multiples of a step, a bound less
        than a step above a score proves it, and nothing less does; otherwise the tolerance is at least what rounding
        can make of a sum over the view. Where floats are too coarse for the score itself, gap and tolerance say so.
        """
        whole = bool((found.states >= 0).all()) and not self.graph.structure.has_latent
        found = self._claims(found, evidence, whole)
        if self.view is self.graph:
            return found
        scores: list[float] = []
        lost = 0.0
        for solution in found.n_best:
            score, rest = self._score(solution.states, evidence) if whole else (solution.score + self.constant, 0.0)
            lost = rest if not scores else lost
            scores.append(score)
        gap, tolerance = found.gap, found.tolerance
        if gap < np.inf:
            outward = _outward(scores[0], gap, lost)
            gap, tolerance = outward, tolerance + max(0.0, outward - gap)
        return replace(
            found,
            graph=self.graph,
            score=scores[0],
            gap=gap,
            tolerance=tolerance,
            n_best=tuple(
                replace(solution, graph=self.graph, score=score)
                for solution, score in zip(found.n_best, scores, strict=True)
            ),
        )

    def _claims(self, found: Decoding, evidence: Evidence, whole: bool) -> Decoding:
        """Gap and tolerance that hold whatever rounding did."""
        scale = score_scale(self.view, evidence)
        gap, tolerance, persistent = found.gap, found.tolerance, found.persistent
        certain = scale.certain(gap) if whole else None
        if certain is not None:
            # Of decimals, a solver may tell no finer than the tolerance it states.
            gap, tolerance = certain, 0.0 if scale.step == 1.0 else max(scale.slack, tolerance)
        elif gap < np.inf:
            gap, tolerance = gap if gap <= tolerance else gap + scale.slack, max(tolerance, scale.slack)
        if gap > tolerance and found.optimal:
            persistent = None
        if gap <= tolerance and persistent is not None and not persistent.all():
            persistent = np.ones(len(persistent), np.bool_)
            persistent.flags.writeable = False
        # The score of an assignment is never above the best: without a proof it is a lower bound on that.
        guarantee = "exact" if gap <= tolerance < np.inf else "lower"
        return found.changed(gap=gap, tolerance=tolerance, guarantee=guarantee, persistent=persistent)

    def _score(self, states: npt.NDArray[Any], evidence: Evidence) -> tuple[float, float]:
        """The score of an assignment, rounded once, and what the rounding lost."""
        cells = self.graph.log_tables[cell_reader(self.graph.structure)(states)]
        parts = [float(vector[states[v]]) for v, vector in evidence.likelihoods]
        whole = np.rint(cells)
        if len(cells) > MANY and float(np.abs(whole).sum()) < 2.0**52:
            # Whole parts add up exactly, and what is left of each is at most a half.
            parts += [float(whole.sum()), float((cells - whole).sum())]
        else:
            parts += cells.tolist()
        score = math.fsum(parts)
        return score, math.fsum([*parts, -score]) if math.isfinite(score) else 0.0


def _outward(score: float, gap: float, lost: float) -> float:
    """The least gap that, added to a score as floats add, is no less than score and gap and what the score lost."""
    reached = score + gap
    while math.isfinite(reached) and math.fsum([score, gap, lost, -reached]) > 0:
        reached = math.nextafter(reached, math.inf)
    return gap if reached == score + gap else reached - score


@remembered
def centre(graph: FactorGraph) -> Centred:
    """Take the constants out of a graph's tables; found once per graph, in time linear in the cells that are read.

    Tables keep their place in the pool, so that the view has the graph's structure and its plans. Conditional
    distributions and the cells of a noisy-max, which are probabilities, stay as they are.

    Examples
    --------
    >>> import markovfield as mf
    >>> net = mf.MarkovNetwork({"A": 2})
    >>> _ = net.add_factor(["A"], log_table=[1e9, 1e9 + 2.0])
    >>> found = centre(net.compile())
    >>> found.view.log_tables.tolist(), found.constant
    ([-2.0, 0.0], 1000000002.0)
    """
    _check_sums(graph)
    return _centre(graph)


def _check_sums(graph: FactorGraph) -> None:
    """Refuse log-potentials whose sum may overflow: nothing could be compared."""
    if not most_total(graph) < 1e307:
        found = extremes(graph)
        largest = float(np.maximum(np.abs(found.top), np.abs(found.low)).max())
        raise ModelError(
            f"log-potentials of up to {largest:.3g} in {graph.structure.n_factors} factors add up to "
            "more than a float holds: scale them down"
        )


def _worth_it(constants: FloatArray, spread: FloatArray) -> bool:
    """Whether constants are so large, by themselves or beside what is left, that they should go."""
    sizes = np.abs(constants)
    return float(sizes.sum()) > OUTWEIGH * float(spread.sum()) or float(sizes.max(initial=0.0)) >= LARGE_CONSTANT


def _centre(graph: FactorGraph) -> Centred:
    if graph.structure.n_factors > MANY_FACTORS and largest_cell(graph) < min(LARGE_CONSTANT, LARGE_SPREAD / 2):
        # Very many factors and no large number among them: a sample tells whether constants outweigh the rest.
        some = some_extremes(graph)
        if not _worth_it(some.top, some.spread):
            return Centred(graph, graph, 0.0)
    constants, spread = factor_constants(graph), extremes(graph).spread
    left = float(spread.sum())
    wide = float(spread.max(initial=0.0)) >= LARGE_SPREAD
    if not wide and not _worth_it(constants, spread):
        return Centred(graph, graph, 0.0)
    collected = None
    if wide and not graph.structure.has_latent:
        collected = collect_unary_parts(graph)
        if collected is not None and float(extremes(collected[0]).spread.sum()) <= WORTH * left:
            other = taken_out(collected[0], factor_constants(collected[0]))
            if other is not None:
                return Centred(graph, other[0], math.fsum([collected[1], other[1]]))
    taken = taken_out(graph, constants)
    if taken is None and not graph.structure.has_latent:
        # Factors share cells and differ in their constants: each gets cells of its own.
        collected = collected or collect_unary_parts(graph)
        taken = None if collected is None else taken_out(collected[0], factor_constants(collected[0]))
        if collected is not None and taken is not None:
            taken = taken[0], math.fsum([collected[1], taken[1]])
    return Centred(graph, graph, 0.0) if taken is None else Centred(graph, *taken)


def factor_constants(graph: FactorGraph) -> FloatArray:
    """What to take out of every factor: its best, but nothing out of a conditional distribution."""
    top, child = extremes(graph).top, graph.structure.child
    return np.where(child >= 0, 0.0, top) if child.max(initial=-1) >= 0 else top


def taken_out(graph: FactorGraph, constants: FloatArray) -> tuple[FactorGraph, float] | None:
    """The graph with a constant less in all cells of each factor; None where factors that share a cell differ."""
    s = graph.structure
    shift = np.full(s.n_cells, np.nan)
    for f in np.flatnonzero(s.kind == NOISY_MAX).tolist() if s.has_latent else ():
        # Its blocks, one for each parent and the leak, as a parent of one state has it.
        starts = s.table_offsets[f] + s.strides(f)
        cards = s.cardinalities[s.scope(f)].astype(np.int64)
        for start, card in zip(starts.tolist(), [*cards[:-1].tolist(), 1], strict=True):
            shift[start : start + card * int(cards[-1])] = 0.0
    few = few_cells(s)
    if few is None:
        from markovfield.inference.constants.extremes_kernel import take_out

        agreed = bool(
            take_out(
                s.cardinalities, s.scope_offsets, s.scopes, s.table_offsets, s.table_strides, own_cells(s),
                constants, shift,
            )
        )  # fmt: skip
    else:
        factors, starts, cells = few
        each = np.repeat(constants[factors], np.diff(np.append(starts, len(cells))))
        agreed = bool((np.isnan(shift[cells]) | (shift[cells] == each)).all())
        shift[cells] = each
        agreed = agreed and bool((shift[cells] == each).all())
    if not agreed:
        return None
    # What no factor reads must not weigh with what is read.
    pool = np.where(np.isnan(shift), 0.0, graph.log_tables - shift)
    pool.flags.writeable = False
    view = graph.with_tables(pool)
    EXTREMES.tell(view, Extremes(extremes(graph).top - constants, extremes(graph).low - constants))
    return view, float(constants.sum())
