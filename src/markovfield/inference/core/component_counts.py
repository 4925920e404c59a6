"""log Z of each example of a union of many, and the expected counts of all of them together.

Conditional models are learned from unions: the factor graphs of all examples side by side, one range of variables for
each. Inference sees one graph; whoever weighs or scores examples needs the log Z of each of them. Methods that tell
connected components apart (`Components`) answer in one call; the others are asked example by example.
"""

from __future__ import annotations

from typing import Any, NamedTuple, cast

import numpy as np
import numpy.typing as npt

from markovfield._validation import generator_of
from markovfield.arrays import FloatArray, IntArray, distinct_rows
from markovfield.exceptions import ModelError
from markovfield.factors.factor_graph import FactorGraph
from markovfield.factors.factor_kinds import cells_reached
from markovfield.factors.remembered import Shelf
from markovfield.factors.structure import Structure
from markovfield.inference.core.answers import ByComponent, Marginals
from markovfield.inference.core.counts import Counts, CountsMethod, is_sampler, row_by_row, together
from markovfield.inference.core.evidence import Evidence
from markovfield.inference.core.method import InferenceMethod, MarginalsMethod, taken
from markovfield.inference.core.running import Running

__all__ = ["Apart", "ComponentCounts", "Part", "counts_by_component", "parts_of", "set_apart"]


class ComponentCounts(NamedTuple):
    """What `counts_by_component` answers.

    Attributes
    ----------
    log_partition
        ``float64[n_examples]``; nan from methods that only sample.
    counts
        ``float64[cells]``: expected counts, summed over the examples.
    answer
        With the guarantee, and to start the next call from (``init``).
    """

    log_partition: FloatArray
    counts: FloatArray
    answer: ByComponent


class Part(NamedTuple):
    """One example by itself: its structure, and the stretch of the pool that it reads."""

    structure: Structure
    first_cell: int
    last_cell: int


class Apart(NamedTuple):
    """A union in which examples that are marked differently share no cells.

    ``origin`` is the cell of the union that each cell is a copy of, ``marks`` the mark of the examples that read it.
    """

    structure: Structure
    origin: IntArray
    marks: FloatArray

    def joined(self, cells: FloatArray, n_cells: int) -> FloatArray:
        """Values of cells, added up in the cells that they are copies of."""
        total: FloatArray = np.bincount(self.origin, cells, n_cells).astype(np.float64)
        return total


_APART: Shelf[Apart] = Shelf(2)
_OWNERS: Shelf[IntArray] = Shelf(2)
_PARTS: Shelf[tuple[Part, ...]] = Shelf(2)


def counts_by_component(
    method: InferenceMethod,
    graph: FactorGraph,
    evidence: Evidence,
    variable_offsets: npt.ArrayLike,
    *,
    running: Running,
    weights: npt.ArrayLike | None = None,
    init: ByComponent | None = None,
    n_samples: int = 2000,
    rng: Any = None,
) -> ComponentCounts:
    """log Z of each example of a union given the evidence, and the expected counts of all of them.

    Where examples of different weights share cells, inference runs on a copy of the union in which they do not.

    Parameters
    ----------
    method
        A method object of `marginals` or `sample`.
    variable_offsets
        ``int64[n_examples + 1]``: example i has the variables ``variable_offsets[i]`` to ``variable_offsets[i + 1]``,
        which may be none, one or several connected components; no factor may join two examples.
    weights
        ``float64[n_examples]``: how much the counts of each example weigh; None is one each. log Z is never weighted.
    init
        The answer of an earlier call about the same structure, for methods that can start from one.
    n_samples, rng
        For methods that sample.

    Examples
    --------
    >>> import markovfield as mf
    >>> from markovfield.inference.core.registry import resolve
    >>> net = mf.MarkovNetwork(dict.fromkeys("ABC", 2))
    >>> _ = net.add_factor(["A", "B"], [[3.0, 1.0], [1.0, 3.0]])
    >>> _ = net.add_factor(["C"], [1.0, 4.0])
    >>> graph = net.compile()
    >>> evidence = Evidence.parse(graph.structure, {"A": 0})
    >>> tree = resolve("junction_tree", "marginals")
    >>> found = counts_by_component(tree, graph, evidence, [0, 2, 3], running=Running())
    >>> np.exp(found.log_partition).round(3).tolist(), found.counts.round(3).tolist()
    ([4.0, 5.0], [0.75, 0.25, 0.0, 0.0, 0.2, 0.8])
    """
    s = graph.structure
    offsets = np.ascontiguousarray(variable_offsets, np.int64)
    owner = _owner(s, offsets)
    n = len(offsets) - 1
    if weights is not None:
        given = np.ascontiguousarray(weights, np.float64)
        if given.shape != (n,) or not np.isfinite(given).all():
            raise ModelError(f"weights of examples must be {n} finite numbers, got shape {given.shape}")
        keywords = {"running": running, "init": init, "n_samples": n_samples, "rng": rng}
        if not len(given) or (given == given[0]).all():
            found = counts_by_component(method, graph, evidence, offsets, **keywords)
            return found._replace(counts=found.counts * (given[0] if len(given) else 1.0))
        apart = set_apart(s, offsets, given)
        copy = FactorGraph(apart.structure, graph.log_tables[apart.origin])
        found = counts_by_component(method, copy, evidence, offsets, **keywords)
        copy.cache.clear()  # what was worked out for it refers to it
        return found._replace(counts=apart.joined(apart.marks * found.counts, s.n_cells))
    if is_sampler(method):
        if evidence.likelihoods:
            raise ModelError(f"counts of examples by {method.name}, which samples, take observed states only")
        drawn = row_by_row(method, graph, evidence.states[None], np.ones(1), n_samples, generator_of(rng), running)
        if drawn.log_partition[0] == -np.inf:
            raise evidence.impossible(s)
        return ComponentCounts(np.full(n, np.nan), drawn.counts, drawn)
    if n > 1 and "components" not in method.abilities:
        return _one_by_one(method, graph, evidence, offsets, running, rng)
    answer: Counts | Marginals
    if isinstance(method, CountsMethod) and not evidence.likelihoods:
        answer = row = method.counts(graph, evidence.states[None], np.ones(1), running=running)
        if row.log_partition[0] == -np.inf:
            raise evidence.impossible(s)
        counts = row.counts
    else:
        extra = taken(method, init=init, rng=generator_of(rng) if "rng" in method.abilities else None)
        answer = marginals = cast("MarginalsMethod", method).marginals(graph, evidence, running=running, **extra)
        counts = marginals.expected_counts
    if n == 1:
        return ComponentCounts(np.array([float(np.sum(answer.log_partition))]), counts, answer)
    parts = answer.components
    assert parts is not None
    example = np.zeros(len(parts), np.int64)
    example[parts.component] = owner
    values: FloatArray = np.bincount(example, parts.log_partition, n).astype(np.float64)
    return ComponentCounts(values, counts, answer)


def _owner(s: Structure, offsets: IntArray) -> IntArray:
    return _OWNERS.get(s, offsets.tobytes(), lambda: _owners(s, offsets))


def _owners(s: Structure, offsets: IntArray) -> IntArray:
    """``int64[n]``: the example of each variable; raises where a factor joins two examples, or is in none."""
    n = s.n_variables
    if offsets.ndim != 1 or not len(offsets) or offsets[0] != 0 or offsets[-1] != n or (np.diff(offsets) < 0).any():
        raise ModelError(f"variable_offsets must rise from 0 to {n}, the number of variables, got {offsets.tolist()}")
    owner = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    arity = np.diff(s.scope_offsets)
    if len(offsets) > 2 and (arity == 0).any():
        raise ModelError(f"factor {int(np.argmin(arity))} has no variable, so it belongs to no example of the union")
    example = owner[s.scopes]
    apart = np.flatnonzero(example != np.repeat(example[s.scope_offsets[:-1][arity > 0]], arity[arity > 0]))
    if len(apart):
        f = int(np.searchsorted(s.scope_offsets, apart[0], side="right") - 1)
        raise ModelError(f"factor {f} joins variables of examples {sorted(set(owner[s.scope(f)].tolist()))}")
    return owner


def set_apart(structure: Structure, variable_offsets: npt.ArrayLike, marks: npt.ArrayLike) -> Apart:
    """A copy of each table for each mark (one number an example) of the examples that read it; kept with the structure.

    Memory is that of the tables, each as often as there are marks that read it.
    """
    offsets, given = np.ascontiguousarray(variable_offsets, np.int64), np.ascontiguousarray(marks, np.float64)
    return _APART.get(
        structure,
        (offsets.tobytes(), given.tobytes()),
        lambda: _set_apart(structure, _owner(structure, offsets), given),
    )


def _set_apart(s: Structure, owner: IntArray, marks: FloatArray) -> Apart:
    values, group = np.unique(marks, return_inverse=True)
    if len(values) < 2:
        return Apart(s, np.arange(s.n_cells), np.full(s.n_cells, marks[0] if len(marks) else 0.0))
    low, high = cells_reached(s)
    of_factor = np.zeros(s.n_factors, np.int64)
    some = np.diff(s.scope_offsets) > 0
    of_factor[some] = group[owner[s.scopes[s.scope_offsets[:-1][some]]]]
    tables, table = distinct_rows(low, high, of_factor)
    sizes = high[tables] - low[tables] + 1
    starts = np.cumsum(sizes) - sizes
    origin = np.repeat(low[tables] - starts, sizes) + np.arange(int(sizes.sum()))
    structure = Structure.from_arrays(
        s.cardinalities,
        s.scope_offsets,
        s.scopes,
        starts[table] + s.table_offsets - low,
        s.table_strides,
        n_cells=len(origin),
        child=s.child,
        kind=s.kind,
        names=s.names,
    )
    return Apart(structure, origin, np.repeat(values[of_factor[tables]], sizes))


def parts_of(structure: Structure, variable_offsets: npt.ArrayLike) -> tuple[Part, ...]:
    """The examples of a union, each by itself; kept with the structure."""
    s, offsets = structure, np.ascontiguousarray(variable_offsets, np.int64)

    def make() -> tuple[Part, ...]:
        owner = _owner(s, offsets)
        low, high = cells_reached(s)
        some = np.diff(s.scope_offsets) > 0
        example = np.full(s.n_factors, 0)
        example[some] = owner[s.scopes[s.scope_offsets[:-1][some]]]
        order = np.argsort(example, kind="stable")
        starts = np.searchsorted(example[order], np.arange(len(offsets)))
        pairs = zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True)
        ends = offsets.tolist()
        return tuple(_part(s, order[a:b], ends[i], ends[i + 1], low, high) for i, (a, b) in enumerate(pairs))

    return _PARTS.get(s, offsets.tobytes(), make)


def _part(s: Structure, factors: IntArray, begin: int, end: int, low: IntArray, high: IntArray) -> Part:
    first = int(low[factors].min(initial=s.n_cells))
    last = max(first, int(high[factors].max(initial=-1)) + 1)
    arity = np.diff(s.scope_offsets)[factors]
    ends = np.cumsum(arity)
    axes = np.repeat(s.scope_offsets[factors] - (ends - arity), arity) + np.arange(int(arity.sum()))
    child = s.child[factors]
    structure = Structure.from_arrays(
        s.cardinalities[begin:end],
        np.concatenate([np.zeros(1, np.int64), ends]),
        s.scopes[axes] - begin,
        s.table_offsets[factors] - first,
        s.table_strides[axes],
        n_cells=last - first,
        child=np.where(child >= 0, child - begin, -1),
        kind=s.kind[factors],
    )
    return Part(structure, first, last)


def _one_by_one(
    method: InferenceMethod, graph: FactorGraph, evidence: Evidence, offsets: IntArray, running: Running, rng: Any
) -> ComponentCounts:
    """The same by one question for each example."""
    counts = np.zeros(graph.structure.n_cells)
    values = np.zeros(len(offsets) - 1)
    extra = taken(method, rng=generator_of(rng) if "rng" in method.abilities else None)
    guarantee: Any = "exact"
    converged, iterations = True, 0
    for i, part in enumerate(parts_of(graph.structure, offsets)):
        running.check()
        begin, end = int(offsets[i]), int(offsets[i + 1])
        if begin == end:
            continue
        tables = graph.log_tables[part.first_cell : part.last_cell]
        likelihoods = tuple((v - begin, x) for v, x in evidence.likelihoods if begin <= v < end)
        known = Evidence(evidence.states[begin:end], likelihoods)
        single = FactorGraph(part.structure, tables)
        answer = cast("MarginalsMethod", method).marginals(single, known, running=running.quiet, **extra)
        values[i] = answer.log_partition
        counts[part.first_cell : part.last_cell] += answer.expected_counts
        single.cache.clear()
        guarantee = together(guarantee, answer.guarantee)
        converged, iterations = converged and answer.converged, max(iterations, answer.iterations)
    found = Counts(
        log_partition=float(values.sum()),
        counts=counts,
        method=method.name,
        guarantee=guarantee,
        converged=converged,
        iterations=iterations,
        seconds=running.seconds,
    )
    return ComponentCounts(values, counts, found)
