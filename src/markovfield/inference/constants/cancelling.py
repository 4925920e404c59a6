"""Log-potentials that cancel between factors, added up exactly before a decoder sees them.

A table of two variables may hold +10^9 wherever the first is in some state, and another factor take it away again. No
constant taken out of either helps: what depends on one variable alone must be moved to that variable's unary table, and
tables on the same variables added up.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from markovfield.arrays import FloatArray, offsets_of
from markovfield.factors.factor_graph import FactorGraph
from markovfield.factors.factor_kinds import TABLE
from markovfield.factors.lattice import inherit_lattice
from markovfield.factors.structure import Structure

__all__ = ["collect_unary_parts"]

# It is a matter of Python loops over factors: larger models are left as they are.
MOST_FACTORS, MOST_CELLS = 50_000, 2**21


def collect_unary_parts(graph: FactorGraph) -> tuple[FactorGraph, float] | None:
    """A graph with the same scores but for a constant, which is returned too: one factor for all tables on the same
    variables, less what depends on a single one of them, and one for each variable; None for models too large.

    Sums that cancel are exact, and every log-potential is rounded once. Structured factors and conditional
    distributions stay as they are.

    Examples
    --------
    >>> import markovfield as mf
    >>> net = mf.MarkovNetwork({"A": 2, "B": 2})
    >>> _ = net.add_factor(["A", "B"], log_table=[[1e9, 1e9 + 3], [0.0, 1.0]])
    >>> _ = net.add_factor(["A"], log_table=[0.0, 1e9])
    >>> collected, constant = collect_unary_parts(net.compile())
    >>> collected.table(0).tolist(), collected.table(1).tolist(), collected.table(2).tolist(), constant
    ([[-2.0, 0.0], [0.0, 0.0]], [0.0, -2.0], [-1.0, 0.0], 1000000003.0)
    """
    s = graph.structure
    plain = (s.kind == TABLE) & (s.child < 0)
    arity = np.diff(s.scope_offsets)
    sizes = np.ones(s.n_factors)
    np.multiply.at(sizes, np.repeat(np.arange(s.n_factors), arity), s.cardinalities[s.scopes].astype(float))
    if s.n_factors > MOST_FACTORS or sizes[plain].sum() > MOST_CELLS:
        return None
    groups: dict[tuple[int, ...], list[int]] = {}
    for f in np.flatnonzero(plain & (arity > 0)).tolist():
        groups.setdefault(tuple(sorted(s.scope(f).tolist())), []).append(f)
    unary: dict[int, list[FloatArray]] = {}
    pool, end = [graph.log_tables], s.n_cells
    scopes: list[tuple[int, ...]] = []
    offsets: list[int] = []
    known: dict[Any, tuple[int, list[FloatArray]]] = {}
    for scope, members in groups.items():
        if len(scope) == 1:
            unary.setdefault(scope[0], []).extend(graph.table(f) for f in members)
            continue
        key = tuple(_key(s, f, scope) for f in members)
        if key not in known:
            table, parts = _peeled([_sorted_table(graph, f) for f in members])
            known[key] = end, parts
            pool.append(table.ravel())
            end += table.size
        at, parts = known[key]
        scopes.append(scope)
        offsets.append(at)
        for v, part in zip(scope, parts, strict=True):
            unary.setdefault(v, []).append(part)
    constants = []
    for v, vectors in unary.items():
        vector, constant = _total(vectors)
        constants.append(constant)
        pool.append(vector)
        scopes.append((v,))
        offsets.append(end)
        end += len(vector)
    kept = np.flatnonzero(~plain | (arity == 0))
    return _graph(graph, kept, scopes, offsets, np.concatenate(pool)), math.fsum(constants)


def _graph(
    graph: FactorGraph, kept: Any, scopes: list[tuple[int, ...]], offsets: list[int], pool: FloatArray
) -> FactorGraph:
    """The new factors, their axes in rising order and their tables in C order, and those kept."""
    s = graph.structure
    strides: list[int] = []
    for scope in scopes:
        cards = s.cardinalities[list(scope)].tolist()
        strides += [math.prod(cards[a + 1 :]) for a in range(len(cards))]
    axes = [s.scope(f) for f in kept.tolist()]
    counts = [len(scope) for scope in scopes] + [len(a) for a in axes]
    structure = Structure.from_arrays(
        s.cardinalities,
        offsets_of(counts),
        np.concatenate([np.array([v for scope in scopes for v in scope], np.int32), *axes]),
        np.concatenate([np.array(offsets, np.int64), s.table_offsets[kept]]),
        np.concatenate([np.array(strides, np.int64), *(s.strides(f) for f in kept.tolist())]),
        n_cells=len(pool),
        child=np.concatenate([np.full(len(scopes), -1, np.int32), s.child[kept]]),
        kind=np.concatenate([np.full(len(scopes), TABLE, np.int8), s.kind[kept]]),
        names=s.names,
    )
    pool.flags.writeable = False
    return FactorGraph(inherit_lattice(structure, s), pool)


def _key(s: Structure, factor: int, scope: tuple[int, ...]) -> Any:
    """What two factors have in common when their tables, axes in rising order of variables, are the same cells."""
    strides = dict(zip(s.scope(factor).tolist(), s.strides(factor).tolist(), strict=True))
    return (
        int(s.table_offsets[factor]),
        tuple(strides[v] for v in scope),
        tuple(s.cardinalities[list(scope)].tolist()),
    )


def _sorted_table(graph: FactorGraph, factor: int) -> FloatArray:
    scope = graph.structure.scope(factor)
    return graph.table(factor).reshape(graph.structure.cardinalities[scope]).transpose(np.argsort(scope))


def _peeled(tables: list[FloatArray]) -> tuple[FloatArray, list[FloatArray]]:
    """The sum of tables less the largest of every row along every axis, and those.

    Numbers are carried as a leading part and a rest, so that what cancels leaves no rounding behind.
    """
    hard = np.logical_or.reduce([np.isneginf(table) for table in tables])
    lead, rest = np.zeros(tables[0].shape), np.zeros(tables[0].shape)
    for table in tables:
        lead, rest = _plus(lead, rest, np.where(hard, 0.0, table))
    parts = []
    for axis in range(lead.ndim):
        others = tuple(a for a in range(lead.ndim) if a != axis)
        part = np.where(hard, -np.inf, lead).max(axis=others)
        # A row without a possible cell says so itself.
        part[np.isneginf(part)] = 0.0
        lead, rest = _plus(lead, rest, -np.expand_dims(part, others))
        parts.append(part)
    return np.where(hard, -np.inf, lead + rest), parts


def _plus(lead: FloatArray, rest: FloatArray, more: FloatArray) -> tuple[FloatArray, FloatArray]:
    """A sum of two numbers in two parts (Knuth's two-sum): nothing is lost but what the second part cannot hold."""
    total = lead + more
    back = total - lead
    lost = (lead - (total - back)) + (more - back)
    return total, rest + lost


def _total(vectors: list[FloatArray]) -> tuple[FloatArray, float]:
    """The sum of some vectors less its largest, exact but for one rounding of each entry; and that largest."""
    columns = np.stack(vectors).T.tolist()
    sums = [math.fsum(column) if -math.inf not in column else -math.inf for column in columns]
    top = max(sums)
    if top == -math.inf:
        return np.array(sums), 0.0
    less = [s if s == -math.inf else math.fsum([*column, -top]) for s, column in zip(sums, columns, strict=True)]
    return np.array(less), top
