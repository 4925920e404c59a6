"""Expected counts of many rows of clamps, asked of a method in as few calls as it takes.

Rows differ in what is clamped, not in the graph. Where a method tells connected components apart, copies of the graph,
one for each row, are components of one union (`markovfield.inference.core.component_counts`), which is laid out once.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from markovfield._validation import generator_of
from markovfield.arrays import FloatArray, IntArray, offsets_of
from markovfield.exceptions import ImpossibleEvidenceError, ModelError
from markovfield.factors.factor_graph import FactorGraph
from markovfield.factors.remembered import Shelf
from markovfield.factors.structure import Structure
from markovfield.inference.core.component_counts import counts_by_component
from markovfield.inference.core.counts import Counts, CountsMethod, JoiningMethod, Rows, row_by_row, together
from markovfield.inference.core.evidence import Evidence, rows
from markovfield.inference.core.method import InferenceMethod
from markovfield.inference.core.running import Running
from markovfield.kernels.compilations import clock

__all__ = ["counts_of"]

# Variables, and factors of three or more, of a union: enough that what a call costs by itself does not count, and so
# few that messages stay in the cache.
UNION_NODES = 2048

_COPIES: Shelf[Structure] = Shelf(4)


def counts_of(
    method: InferenceMethod,
    graph: FactorGraph,
    clamps: npt.ArrayLike | None,
    weights: npt.ArrayLike | None,
    *,
    n_samples: int,
    rng: Any,
    running: Running,
) -> Counts:
    """Expected counts by any method; see `markovfield.expected_counts`."""
    s = graph.structure
    one = clamps is None or np.ndim(clamps) < 2  # type: ignore[arg-type]
    given = Evidence.from_clamps(s, clamps).states[None] if one else rows(s, clamps)  # type: ignore[arg-type]
    weight = np.ones(len(given)) if weights is None else np.ascontiguousarray(np.atleast_1d(weights), np.float64)
    if weight.shape != (len(given),):
        raise ModelError(f"expected_counts needs one weight for each of {len(given)} rows, got shape {weight.shape}")
    if not np.isfinite(weight).all():
        raise ModelError("the weights of expected_counts must be finite")
    started = clock()
    if isinstance(method, CountsMethod):
        answer = method.counts(graph, given, weight, running=running)
    else:
        answer = _joined(method, graph, given, weight, n_samples, generator_of(rng), running)
    value: Any = answer.log_partition
    if one:
        value = float(np.asarray(value)[0])
        if value == -np.inf:
            raise Evidence(given[0]).impossible(s)
    return Counts(
        log_partition=value,
        counts=answer.counts,
        standard_errors=answer.standard_errors,
        _components=answer._components,
        method=answer.method,
        guarantee=answer.guarantee,
        converged=answer.converged,
        iterations=answer.iterations,
        seconds=clock() - started,
    )


def _joined(
    method: InferenceMethod,
    graph: FactorGraph,
    clamps: Rows,
    weights: FloatArray,
    n_samples: int,
    rng: Any,
    running: Running,
) -> Counts:
    """Rows that do not disturb each other, together; the others one by one."""
    s = graph.structure
    nodes = s.n_variables + int(np.count_nonzero(np.diff(s.scope_offsets) > 2))
    at_once = UNION_NODES // max(1, nodes)
    # A hard zero may empty one row, or leave it of another shape; then each has to be looked at.
    hopeful = min(at_once, len(clamps)) > 1 and not np.isneginf(graph.log_tables).any()
    labels = method.rows_that_join(graph, clamps) if hopeful and isinstance(method, JoiningMethod) else None
    if labels is None:
        return row_by_row(method, graph, clamps, weights, n_samples, rng, running)
    found = []
    for label in np.unique(labels):
        which = np.flatnonzero(labels == label)
        for begin in range(0, len(which), at_once):
            some = which[begin : begin + at_once]
            found.append((some, _side_by_side(method, graph, clamps[some], weights[some], n_samples, rng, running)))
    values, guarantee = np.empty(len(clamps)), found[0][1].guarantee
    for some, answer in found:
        values[some] = answer.log_partition
        guarantee = together(guarantee, answer.guarantee)
    return Counts(
        log_partition=values,
        counts=np.sum([answer.counts for _, answer in found], axis=0),
        method=method.name,
        guarantee=guarantee,
        converged=all(answer.converged for _, answer in found),
        iterations=max(answer.iterations for _, answer in found),
    )


def _side_by_side(
    method: InferenceMethod,
    graph: FactorGraph,
    clamps: Rows,
    weights: FloatArray,
    n_samples: int,
    rng: Any,
    running: Running,
) -> Counts:
    """One question about as many copies of the graph as there are rows."""
    n, s = len(clamps), graph.structure
    if n == 1:
        return row_by_row(method, graph, clamps, weights, n_samples, rng, running)
    union = FactorGraph(_COPIES.get(s, n, lambda: _copies(s, n)), graph.log_tables)
    offsets = s.n_variables * np.arange(n + 1)
    known = Evidence(np.ascontiguousarray(clamps.reshape(-1)))
    try:
        found = counts_by_component(method, union, known, offsets, weights=weights, running=running, rng=rng)
    except ImpossibleEvidenceError:
        return row_by_row(method, graph, clamps, weights, n_samples, rng, running)
    finally:
        union.cache.clear()  # what was worked out for it refers to it
    answer = found.answer
    return Counts(
        log_partition=found.log_partition,
        counts=found.counts,
        method=method.name,
        guarantee=answer.guarantee,
        converged=answer.converged,
        iterations=answer.iterations,
    )


def _copies(s: Structure, n: int) -> Structure:
    """``n`` graphs of one structure side by side, which read the same cells."""
    copy: IntArray = np.arange(n)
    scopes = s.scopes.astype(np.int64) + (s.n_variables * copy)[:, None]
    child = np.where(s.child >= 0, s.child + (s.n_variables * copy)[:, None], -1)
    return Structure.from_arrays(
        np.tile(s.cardinalities, n),
        offsets_of(np.tile(np.diff(s.scope_offsets), n)),
        scopes.reshape(-1),
        np.tile(s.table_offsets, n),
        np.tile(s.table_strides, n),
        n_cells=s.n_cells,
        child=child.reshape(-1),
        kind=np.tile(s.kind, n),
    )
