"""What a weighted model counter reads and writes: a formula with weights, and the state of a search.

Literals are ``2 * variable`` (true) and ``2 * variable + 1`` (false). Numbers are pairs: a mantissa in [0.5, 1), or 0,
and an exponent of two, so that no product over- or underflows.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from markovfield.kernels.compiler import kernel

__all__ = ["Formula", "State", "add", "multiply"]

Array = npt.NDArray[Any]

# Places in `State.scalars`.
(LEVEL, MODE, TRAIL, HEAD, COMPONENTS, DATA, OLDEST, NEWEST, FIRST_BYTE, LAST_BYTE, LEARNED, ARENA, UNITS, CONFLICT,
 CONFLICT_PAIR, DECISIONS, CONFLICTS, HITS, STORED, WORK, HASTY, LABEL,
 TIGHT, NOTES, TRACE, NODES) = range(26)  # fmt: skip
N_SCALARS = 26
# Modes: what comes next at the present level.
ASSIGN, DESCEND, END, ZERO, FINISHED = range(5)
# Reasons of literals: a clause, a pair as ``-2`` less its other literal, or none.
NO_REASON = -1
# What there is of conflicts.
NO_CONFLICT, PAIR_CONFLICT = -1, -2


class Formula(NamedTuple):
    """Clauses and tables over Boolean variables, with weights.

    A model variable of two states is one Boolean; one of more states is a group of neighbouring Booleans, one for each
    state, of which clauses let exactly one be true.

    Attributes
    ----------
    clause_offsets, clause_literals
        Clauses of three literals and more.
    pair_offsets, pair_literals
        For each literal, the other literals of its clauses of two.
    held_offsets, held
        For each variable, the long clauses that hold it.
    scope_offsets, scopes, strides, bases
        Tables: the groups of each, the strides of its axes, the cell of its first state.
    cell_mantissas, cell_exponents
        Weights of the cells, at most one.
    read_offsets, read
        For each variable, the tables that read it.
    group_offsets, group_of
        The Booleans of each group; one alone stands for two states.
    mantissas, exponents
        Weights of the literals.
    log2_totals
        For each variable log2 of the weights of both its literals; of one in a larger group, of being true.
    merit
        What the search adds to a variable's score: those near the root of a clique tree come first.
    prefers
        For each variable the literal that is tried first.
    """

    clause_offsets: Array
    clause_literals: Array
    pair_offsets: Array
    pair_literals: Array
    held_offsets: Array
    held: Array
    scope_offsets: Array
    scopes: Array
    strides: Array
    bases: Array
    cell_mantissas: Array
    cell_exponents: Array
    read_offsets: Array
    read: Array
    group_offsets: Array
    group_of: Array
    mantissas: Array
    exponents: Array
    log2_totals: Array
    merit: Array
    prefers: Array


class State(NamedTuple):
    """Where a search stands.

    Attributes
    ----------
    values
        ``int8`` by literal: 1 true, -1 false, 0 open.
    trail, reasons, levels
        Literals in the order they became true, and by variable why and at which level.
    arena, starts, lengths
        Literals of the long clauses, then of the learned ones; the first two of each are watched.
    watch_heads, watch_next
        Lists of watches by literal: node ``2 * clause + place``.
    units
        Learned clauses of one literal.
    activity, frequency
        By variable: how often it took part in conflicts lately; in how many open clauses it was last seen.
    data, component_starts, component_sizes
        Components: variables, clauses and tables in rising order, one after the other; three sizes each.
    level_numbers, level_mantissas, level_exponents, level_logs
        By level; see the places below.
    level_residues, primes
        The same numbers modulo primes, where a count is wanted to the last digit.
    pool, slot_bytes, slot_lengths, slot_hashes, slot_next, slot_mantissas, slot_exponents, slot_residues, buckets
        The cache: keys in a ring of bytes, entries in a ring of slots, lists of slots by hash.
    notes, trace, nodes, shares, slot_nodes
        Where marginals are wanted, else of length zero: what the open branches have met so far; the same of those that
        are done; for each component counted its two branches in there and their shares; the component of each
        slot.
    seen, labels, clause_labels, table_labels, stack, key, learnt
        Scratch.
    """

    scalars: Array
    values: Array
    trail: Array
    reasons: Array
    levels: Array
    arena: Array
    starts: Array
    lengths: Array
    watch_heads: Array
    watch_next: Array
    units: Array
    activity: Array
    frequency: Array
    data: Array
    component_starts: Array
    component_sizes: Array
    level_numbers: Array
    level_mantissas: Array
    level_exponents: Array
    level_logs: Array
    level_residues: Array
    primes: Array
    pool: Array
    slot_bytes: Array
    slot_lengths: Array
    slot_hashes: Array
    slot_next: Array
    slot_mantissas: Array
    slot_exponents: Array
    slot_residues: Array
    buckets: Array
    notes: Array
    trace: Array
    nodes: Array
    shares: Array
    slot_nodes: Array
    seen: Array
    labels: Array
    clause_labels: Array
    table_labels: Array
    stack: Array
    key: Array
    learnt: Array


# Places in a row of `State.level_numbers`: the literal decided on, which of both branches, the trail's length before,
# the component that is split, the first of those it was split into, how many these were, the cache's newest slot
# before, whether something was left out, why the second branch's literal holds, the length of the components' data
# before, that of the notes, where both branches stand in the trace.
(DECISION, BRANCH, BEFORE, WHOLE, FIRST_COMPONENT, N_COMPONENTS, CACHED, OPEN, CAUSE, ROOM, NOTED, RECORD,
 SECOND_RECORD) = range(13)  # fmt: skip
N_NUMBERS = 13
# Places in rows of mantissas, exponents, logs and residues: the branches that are done, the present one so far.
SUM, PRODUCT = 0, 1


@kernel
def multiply(mantissa, exponent, other, by):  # type: ignore[no-untyped-def]
    """The product of two numbers."""
    m = mantissa * other
    if m == 0.0:
        return 0.0, np.int64(0)
    e = np.int64(exponent + by)
    # Both factors are in [0.5, 1), so one doubling is enough.
    if m < 0.5:
        return m * 2.0, e - 1
    if m >= 1.0:
        return m * 0.5, e + 1
    return m, e


@kernel
def add(mantissa, exponent, other, by):  # type: ignore[no-untyped-def]
    """The sum of two numbers."""
    if mantissa == 0.0:
        return other, np.int64(by)
    if other == 0.0:
        return mantissa, np.int64(exponent)
    if exponent < by:
        mantissa, exponent, other, by = other, by, mantissa, exponent
    gap = exponent - by
    m, e = mantissa, np.int64(exponent)
    if gap < 1100:
        m += other * 2.0 ** np.float64(-gap)
    if m >= 1.0:
        return m * 0.5, e + 1
    return m, e
