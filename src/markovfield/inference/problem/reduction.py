"""Reducing a problem before it is solved: absorb evidence, use hard zeros, drop barren variables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from markovfield.arrays import BoolArray, FloatArray, offsets_of, sealed
from markovfield.exceptions import ModelError
from markovfield.factors.factor_graph import FactorGraph
from markovfield.factors.factor_kinds import TABLE
from markovfield.factors.lattice import inherit_lattice
from markovfield.factors.remembered import remembered
from markovfield.factors.structure import Structure
from markovfield.inference.problem.domains_kernel import (
    CHANGED,
    IMPOSSIBLE,
    UNCHANGED,
    PlainTables,
    factors_of_variables,
    factors_with_zeros,
    shrink_domains,
)
from markovfield.inference.problem.reduction_kernel import build_reduced
from markovfield.inference.problem.separation_kernel import drop_separated as _drop_separated
from markovfield.kernels.interpreter import CELL, small

__all__ = ["Reduced", "hard_zeros", "reduce", "zeros_in_factors"]


# "Not given", in the one type the kernels are compiled for.
_NONE = sealed(np.zeros(0, np.bool_))
_NO_CELLS = sealed(np.zeros(0, np.int64))


@dataclass(frozen=True, eq=False)
class Reduced:
    """A problem with fewer states, axes and factors, and the way back to the original one.

    Attributes
    ----------
    structure
        The reduced problem. Variables keep their positions; ``names`` is the original object, whose state
        names speak of the *original* states.
    log_tables
        The pool it reads: the original array itself, or that with compact copies appended.
    state_offsets, states
        ``states[state_offsets[v] : state_offsets[v + 1]]`` are the original states of variable v that are
        still possible, in increasing order: state j of the reduced problem is the j-th of them.
    cell_origin
        ``int64``: the original cell of each cell appended to the pool.
    factors
        ``int32``: the original factor of each factor left.
    barren
        ``bool[n]``: variables dropped because the query does not depend on them; they show one state, 0.
    impossible
        A domain became empty: the evidence, or the model, has probability zero. Everything else then
        describes the original problem.
    """

    structure: Structure
    log_tables: FloatArray
    state_offsets: npt.NDArray[np.int64]
    states: npt.NDArray[np.int32]
    cell_origin: npt.NDArray[np.int64]
    factors: npt.NDArray[np.int32]
    barren: BoolArray
    impossible: bool


class _Index(NamedTuple):
    """What depends on the structure only; kept in its cache."""

    tables: PlainTables
    states: npt.NDArray[np.int32]
    factors: npt.NDArray[np.int32]
    not_barren: BoolArray


@remembered
def _index(structure: Structure) -> _Index:
    assert not np.any(structure.kind != TABLE), "call to_tables() first: reduction works on plain tables"
    s, n = structure, structure.n_variables
    variable_offsets, variable_factors = factors_of_variables(n, s.scope_offsets, s.scopes)
    width_at = offsets_of(s.cardinalities[s.scopes])
    tables = PlainTables(
        s.cardinalities,
        s.scope_offsets,
        s.scopes,
        s.table_offsets,
        s.table_strides,
        s.child,
        sealed(variable_offsets),
        sealed(variable_factors),
        s.value_offsets,
        int(np.diff(s.scope_offsets).max(initial=0)),
        int(np.diff(width_at[s.scope_offsets]).max(initial=0)),
    )
    states = np.arange(s.value_offsets[-1]) - np.repeat(s.value_offsets[:-1], s.cardinalities)
    factors = np.arange(s.n_factors, dtype=np.int32)
    return _Index(tables, sealed(states.astype(np.int32)), sealed(factors), sealed(np.zeros(n, np.bool_)))


def _argument(array: npt.ArrayLike, dtype: Any) -> npt.NDArray[Any]:
    """A contiguous read-only array: the one type the kernels are compiled for."""
    result = np.ascontiguousarray(array, dtype)
    if result.flags.writeable:
        result = result.view()
        result.setflags(write=False)
    return result


def _check_length(name: str, array: npt.NDArray[Any], length: int) -> None:
    if array.shape != (length,):
        raise ModelError(f"{name} must have shape ({length},), got {array.shape}")


@remembered
def hard_zeros(graph: FactorGraph) -> BoolArray:
    """``bool[m]``: which factors of a graph of plain tables have a cell of -inf."""
    return zeros_in_factors(graph.structure, graph.log_tables)


def zeros_in_factors(structure: Structure, log_tables: FloatArray) -> BoolArray:
    """Which factors have a cell of -inf, ``bool[m]``; depends on the tables, not on the evidence.

    Examples
    --------
    >>> import markovfield as mf
    >>> net = mf.MarkovNetwork({"A": 2, "B": 2})
    >>> _ = net.add_factor(["A", "B"], [[3.0, 1.0], [1.0, 3.0]])
    >>> _ = net.add_factor(["A"], [0.0, 1.0])
    >>> graph = net.compile()
    >>> zeros_in_factors(graph.structure, graph.log_tables).tolist()
    [False, True]
    """
    s = structure
    tables = _argument(log_tables, np.float64)
    _check_length("log_tables", tables, s.n_cells)
    with small(CELL * s.cells_read):
        return sealed(factors_with_zeros(_index(s).tables, tables))


def reduce(
    structure: Structure,
    log_tables: FloatArray,
    evidence_states: npt.NDArray[np.int32],
    *,
    propagate_zeros: bool = True,
    drop_barren: bool = False,
    drop_separated: bool = False,
    keep: BoolArray | None = None,
    has_zeros: BoolArray | None = None,
    possible: BoolArray | None = None,
) -> Reduced:
    """Absorb evidence, remove states that hard zeros exclude, drop barren variables.

    An observed variable, and one left with a single state, has cardinality one and is in no scope. A state
    survives when every factor on its variable has a cell above -inf with it and with surviving states on the
    other axes (generalised arc consistency): no state of positive probability is removed, and on forests no
    other is kept. Domains whose states are evenly spaced become an offset and a stride; a factor on any other
    shrunk domain gets a compact copy of its cells, last axis fastest, at the end of the pool. The partition
    function is unchanged.

    Parameters
    ----------
    structure, log_tables
        Plain tables only: see `FactorGraph.to_tables`.
    evidence_states
        ``int32[n]``, -1 where nothing is observed.
    propagate_zeros
        Shrink domains by hard zeros. Without it `Reduced.impossible` is never set.
    drop_barren
        Drop unobserved variables that occur only in their own conditional distribution, repeatedly.
    drop_separated
        Then drop everything that the evidence separates from the variables of ``keep``. The partition function is then
        that of what is left: posteriors of those variables are unchanged, the probability of the evidence is not known.
    keep
        ``bool[n]``: variables never dropped as barren (query targets, variables with likelihoods).
    has_zeros
        What `zeros_in_factors` answers for these tables, to spare looking for zeros again.
    possible
        ``bool`` over all states: those that likelihoods leave possible. Heeded with ``propagate_zeros`` only.

    Returns
    -------
    Reduced
        With the very objects given when there is nothing to reduce. Time is linear in the axes and, for each
        look at a factor with zeros, at most its arity times its cells.

    Examples
    --------
    >>> import markovfield as mf
    >>> net = mf.MarkovNetwork({"A": 2, "B": 3, "C": 3})
    >>> _ = net.add_factor(["A", "B"], [[1.0, 0.0, 1.0], [1.0, 1.0, 1.0]])
    >>> _ = net.add_factor(["B", "C"], [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    >>> graph = net.compile()
    >>> reduced = reduce(graph.structure, graph.log_tables, np.array([0, -1, -1], np.int32))
    >>> reduced.structure.cardinalities.tolist(), reduced.states.tolist()
    ([1, 2, 2], [0, 0, 2, 0, 2])
    """
    s = structure
    index = _index(s)
    tables = _argument(log_tables, np.float64)
    evidence = _argument(evidence_states, np.int32)
    keeps = _NONE if keep is None else _argument(keep, np.bool_)
    zeros = _NONE if has_zeros is None else _argument(has_zeros, np.bool_)
    allowed = _NONE if possible is None else _argument(possible, np.bool_)
    # Kernels do not check bounds.
    _check_length("log_tables", tables, s.n_cells)
    _check_length("evidence_states", evidence, len(s.cardinalities))
    if keep is not None:
        _check_length("keep", keeps, len(s.cardinalities))
    if has_zeros is not None:
        _check_length("has_zeros", zeros, len(s.table_offsets))
    if possible is not None:
        _check_length("possible", allowed, int(s.value_offsets[-1]))
    status, domain_sizes, domains, alive, barren = shrink_domains(
        index.tables, tables, evidence, allowed, zeros, keeps, propagate_zeros, drop_barren
    )
    if drop_separated and status != IMPOSSIBLE and status >= 0:
        separated = _drop_separated(index.tables, keeps, domain_sizes, domains, alive, barren)
        status = CHANGED if separated else status
    if status in (UNCHANGED, IMPOSSIBLE):
        empty = status == IMPOSSIBLE
        return Reduced(s, log_tables, s.value_offsets, index.states, _NO_CELLS, index.factors, index.not_barren, empty)
    if status < 0:
        v = -status - 1
        raise ModelError(
            f"the evidence on variable {s.names.variables[v]!r} is state {int(evidence[v])}, "
            f"outside 0 to {int(s.cardinalities[v]) - 1}"
        )
    built = build_reduced(index.tables, tables, domain_sizes, domains, alive)
    scope_offsets, scopes, bases, strides, child, factors, state_offsets, states, pool, origin = map(sealed, built)
    kind = s.kind if len(child) == len(s.kind) else s.kind[: len(child)]
    n_cells = s.n_cells + len(origin)
    cards = sealed(domain_sizes)
    reduced = inherit_lattice(Structure(cards, scope_offsets, scopes, bases, strides, n_cells, child, kind, s.names), s)
    held = pool if len(pool) else log_tables
    return Reduced(reduced, held, state_offsets, states, origin, factors, sealed(barren), False)
