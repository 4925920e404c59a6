"""How large the scores of a graph are, what they are multiples of, and what rounding can make of their sums."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from markovfield.arrays import FloatArray, IntArray
from markovfield.factors.factor_graph import FactorGraph
from markovfield.factors.factor_kinds import NOISY_MAX, TABLE, caps, cell_reader, table_cells
from markovfield.factors.remembered import Told, remembered
from markovfield.factors.structure import Structure
from markovfield.inference.core.evidence import Evidence
from markovfield.kernels.interpreter import CELL, small

__all__ = [
    "EXTREMES",
    "MANY_FACTORS",
    "Extremes",
    "ScoreScale",
    "extremes",
    "few_cells",
    "largest_cell",
    "most_total",
    "own_cells",
    "score_scale",
    "some_extremes",
    "step_among",
]

# Bounds and scores are sums over all factors, of numbers that were moved between them some hundred times: relative to
# the sum of the largest log-potential of each factor they are off by less than this.
SUM_ROUNDING = 2.0**-44
# Cells of all factors together up to which NumPy is quicker than waking a compiled kernel.
FEW_CELLS = 4096
# Graphs of more factors than this are judged by so many of them.
MANY_FACTORS, LOOKED_AT = 2**16, 2**12
# Log-potentials are looked at as integer multiples of 10^0, 10^-1, ... 10^-this.
MOST_DECIMALS = 6
_SAMPLE = 256


@dataclass(frozen=True, eq=False)
class Extremes:
    """Largest and smallest finite log-potential of every factor; both zero for one that has none, and for a noisy-max,
    which reads no cells."""

    top: FloatArray
    low: FloatArray

    @property
    def spread(self) -> FloatArray:
        """The one less the other."""
        return self.top - self.low

    @cached_property
    def total(self) -> float:
        """Sum over the factors of their largest absolute value: no score is larger."""
        with np.errstate(over="ignore"):
            return float(np.maximum(np.abs(self.top), np.abs(self.low)).sum())


@dataclass(frozen=True)
class ScoreScale:
    """What is known of a graph's scores.

    Attributes
    ----------
    total
        No score is larger in absolute value.
    step
        All scores are integer multiples of this; 0.0 where no such number is known.
    """

    total: float
    step: float

    @property
    def slack(self) -> float:
        """How far rounding may put a bound or a score, computed as a sum over the graph, from where it should be."""
        return SUM_ROUNDING * self.total

    def certain(self, gap: float) -> float | None:
        """The gap that a computed one proves where scores have a step: a whole number of steps; None where they do not,
        or where rounding could hide one.

        Examples
        --------
        >>> ScoreScale(1000.0, 1.0).certain(1.7), ScoreScale(1000.0, 0.0).certain(1.7)
        (1.0, None)
        """
        if not self.step or self.slack >= self.step / 4 or not gap < np.inf:
            return None
        return self.step * math.floor((max(gap, 0.0) + self.slack) / self.step)

    def proves(self, gap: float, tolerance: float) -> bool:
        """Whether a computed gap proves a score best: any better one would be a step better, or, where scores have no
        step, better by no more than the tolerance."""
        certain = self.certain(gap)
        return gap <= tolerance if certain is None else certain == 0.0


@remembered
def own_cells(structure: Structure) -> IntArray:
    """``int64[m]``: how many cells from its offset on a structured factor reads; 0 for tables, -1 for a noisy-max."""
    kind = structure.kind
    found = np.zeros(len(kind), np.int64)
    if not structure.is_plain:
        found = np.where(kind == TABLE, 0, caps(structure) + 1)
        # Without a variable only the first cell is read.
        found[(kind != TABLE) & (np.diff(structure.scope_offsets) == 0)] = 1
        found[kind == NOISY_MAX] = -1
    found.flags.writeable = False
    return found


@remembered
def _decided(s: Structure) -> tuple[IntArray, IntArray]:
    """Structured factors all of whose variables have one state, and the one cell that each of them reads."""
    if s.is_plain:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    factor = np.repeat(np.arange(s.n_factors), np.diff(s.scope_offsets))
    choices = np.bincount(factor, s.cardinalities[s.scopes] > 1, s.n_factors)
    factors = np.flatnonzero((choices == 0) & (s.kind != TABLE) & (s.kind != NOISY_MAX))
    return factors, cell_reader(s)(np.zeros(s.n_variables, np.int64))[factors]


@remembered
def few_cells(s: Structure) -> tuple[IntArray, IntArray, IntArray] | None:
    """Of a small structure, the factors that read cells, where their cells start in a list, and the list."""
    own = own_cells(s)
    if s.n_factors > FEW_CELLS or int(own.sum()) > FEW_CELLS:
        return None
    cells, left = [], FEW_CELLS
    factors = np.flatnonzero(own >= 0)
    for f in factors.tolist():
        if own[f]:
            cells.append(s.table_offsets[f] + np.arange(own[f]))
        elif math.prod(s.cardinalities[s.scope(f)].tolist()) > left:
            return None
        else:
            cells.append(table_cells(s, f))
        left -= len(cells[-1])
    starts = np.cumsum([0] + [len(c) for c in cells[:-1]]) if cells else np.zeros(0, np.int64)
    return factors, starts.astype(np.int64), np.concatenate([np.zeros(0, np.int64), *cells])


# Known of a graph before it is looked at, where it was made of another.
EXTREMES: Told[Extremes] = Told()


def extremes(graph: FactorGraph) -> Extremes:
    """The extremes of every factor, found once per graph; time is linear in the cells that factors read, those of a
    run of factors with one table counted once.

    Examples
    --------
    >>> import markovfield as mf
    >>> net = mf.MarkovNetwork({"A": 2, "B": 2})
    >>> _ = net.add_factor(["A", "B"], log_table=[[3.0, -np.inf], [1.0, 2.0]])
    >>> found = extremes(net.compile())
    >>> found.top.tolist(), found.low.tolist(), found.total
    ([3.0], [1.0], 3.0)
    """
    found = EXTREMES.of(graph)
    if found is None:
        found = _extremes(graph, 1)
        EXTREMES.tell(graph, found)
    return found


def some_extremes(graph: FactorGraph) -> Extremes:
    """Those of all factors, or, of a graph of very many, of some thousand spread evenly."""
    m = graph.structure.n_factors
    if m <= MANY_FACTORS or EXTREMES.of(graph) is not None:
        return extremes(graph)
    return _extremes(graph, m // LOOKED_AT)


def _extremes(graph: FactorGraph, every: int) -> Extremes:
    s = graph.structure
    top, low = np.zeros(-(-s.n_factors // every)), np.zeros(-(-s.n_factors // every))
    few = few_cells(s)
    if few is None:
        from markovfield.inference.constants.extremes_kernel import table_extremes

        with small(CELL * s.cells_read):
            table_extremes(
                s.cardinalities, s.scope_offsets, s.scopes, s.table_offsets, s.table_strides, own_cells(s), every,
                graph.log_tables, top, low,
            )  # fmt: skip
    elif len(few[0]):
        values = graph.log_tables[few[2]]
        top[few[0]] = np.maximum.reduceat(values, few[1])
        low[few[0]] = np.minimum.reduceat(np.where(np.isneginf(values), np.inf, values), few[1])
    decided, cells = _decided(s)
    if every == 1 and len(decided):
        values = graph.log_tables[cells]
        top[decided] = low[decided] = np.where(np.isneginf(values), 0.0, values)
    impossible = top < low
    if impossible.any():
        top[impossible] = low[impossible] = 0.0
    return Extremes(top, low)


def most_total(graph: FactorGraph) -> float:
    """No score is larger in absolute value; a rough bound for graphs of very many factors."""
    m = graph.structure.n_factors
    return extremes(graph).total if m <= MANY_FACTORS or EXTREMES.of(graph) is not None else m * largest_cell(graph)


@remembered
def largest_cell(graph: FactorGraph) -> float:
    """The largest absolute value among the finite log-potentials."""
    from markovfield.inference.constants.extremes_kernel import largest_finite

    return float(largest_finite(graph.log_tables))


def step_among(values: FloatArray) -> float:
    """The largest of 1, 0.1, ... 10^-6 that all finite values are integer multiples of; 0.0 where none is.

    Examples
    --------
    >>> step_among(np.array([3.0, -np.inf, 7.0])), step_among(np.array([0.5, 2.25])), step_among(np.log([2.0, 3.0]))
    (1.0, 0.01, 0.0)
    """
    # Most arrays fail at once, in the first few cells or in those that failed before.
    sample = values[:_SAMPLE]
    if not (_whole(sample, MOST_DECIMALS) | _whole(sample, 0)).all():
        return 0.0
    for decimals in range(MOST_DECIMALS + 1):
        if not _whole(sample, decimals).all():
            continue
        whole = _whole(values, decimals)
        if whole.all():
            return 10.0**-decimals
        sample = values[np.flatnonzero(~whole)[:_SAMPLE]]
    return 0.0


def _whole(values: FloatArray, decimals: int) -> npt.NDArray[np.bool_]:
    """Which values read like decimals of so many places; those at the ends of what floats resolve do not."""
    if not decimals:
        return np.equal(np.rint(values), values)
    factor = 10.0**decimals
    near = np.equal(np.rint(values * factor) / factor, values)
    return near & ((np.abs(values) < 2.0**50 / factor) | np.isinf(values))


@remembered
def _score_scale(graph: FactorGraph) -> ScoreScale:
    step = 0.0 if graph.structure.has_latent else step_among(graph.log_tables)
    found = ScoreScale(most_total(graph), step)
    if step and found.certain(0.0) is None:
        found = ScoreScale(extremes(graph).total, step)
    return found


def score_scale(graph: FactorGraph, evidence: Evidence | None = None) -> ScoreScale:
    """The scale of a graph's scores under evidence; found once per graph."""
    found = _score_scale(graph)
    if evidence is None or not evidence.likelihoods:
        return found
    vectors: Any = np.concatenate([vector for _, vector in evidence.likelihoods])
    finite = vectors[np.isfinite(vectors)]
    extra = sum(float(np.abs(v[np.isfinite(v)]).max(initial=0.0)) for _, v in evidence.likelihoods)
    return ScoreScale(found.total + extra, found.step if not finite.any() else 0.0)


def unit_among(*potentials: FloatArray) -> float:
    """What sums of log-potentials are compared in: one, or the largest of them where all are smaller.

    A difference of 10^-9 is rounding among numbers around one, and everything among numbers around 10^-12.

    Examples
    --------
    >>> unit_among(np.array([0.0, -7.0, -np.inf])), unit_among(np.array([0.0, -1e-13]))
    (1.0, 1e-13)
    """
    largest = 0.0
    for array in potentials:
        top, low = float(array.max(initial=0.0)), float(array.min(initial=0.0))
        if low == -np.inf and top < 1.0:
            low = float(array.min(initial=0.0, where=array > -np.inf))
        largest = max(largest, top, -low if low > -np.inf else 0.0)
        if largest >= 1.0:
            return 1.0
    return largest if largest > 0.0 else 1.0
