"""Splitting what is left of a formula into components that share no variable, and looking each up.

Invariant: members of a component are in rising order, since they are the key under which its count is kept; those of a
level lie on a stack, which a step back cuts.
"""

from __future__ import annotations

import numpy as np

from markovfield.inference.model_counting.cache_kernel import encode, find, residual
from markovfield.inference.model_counting.state_kernel import (
    COMPONENTS,
    DATA,
    FIRST_COMPONENT,
    LABEL,
    LEVEL,
    N_COMPONENTS,
    NOTES,
    PRODUCT,
    WHOLE,
    WORK,
    add,
    multiply,
)
from markovfield.kernels.compiler import kernel

__all__ = ["bound", "note", "split"]

# Labels of what is not in a component: not looked at yet, satisfied or decided.
UNSEEN, DONE = -1, -2


@kernel
def note(s, number):  # type: ignore[no-untyped-def]
    """Keep in mind what the present branch has met, where marginals are wanted.

    With n variables: a literal that holds; ``2 * n`` plus a variable that is free; ``3 * n`` plus a component.
    """
    if len(s.notes):
        s.notes[s.scalars[NOTES]] = number
        s.scalars[NOTES] += 1


@kernel
def _times(s, level, mantissa, exponent):  # type: ignore[no-untyped-def]
    """Multiply the present branch's number."""
    m, e = multiply(s.level_mantissas[level, PRODUCT], s.level_exponents[level, PRODUCT], mantissa, np.int64(exponent))
    s.level_mantissas[level, PRODUCT], s.level_exponents[level, PRODUCT] = m, e
    s.level_logs[level, PRODUCT] += np.log2(mantissa) + exponent if mantissa > 0.0 else -np.inf


@kernel
def _reach(labels, stack, v, label, filled):  # type: ignore[no-untyped-def]
    """Put an open variable into a component, once."""
    if labels[v] == UNSEEN:
        labels[v] = label
        stack[filled] = v
        filled += 1
    return filled


@kernel
def _flood(f, s, start, label):  # type: ignore[no-untyped-def]
    """Everything that open clauses and tables join with a variable: how many variables, clauses and tables."""
    values, labels, stack, clause_labels, table_labels = s.values, s.labels, s.stack, s.clause_labels, s.table_labels
    pair_offsets, pair_literals, held_offsets, held = f.pair_offsets, f.pair_literals, f.held_offsets, f.held
    clause_offsets, clause_literals, read_offsets, read = f.clause_offsets, f.clause_literals, f.read_offsets, f.read
    frequencies = s.frequency
    filled, done = np.int64(0), np.int64(0)
    filled = _reach(labels, stack, start, label, filled)
    n_clauses, n_tables, work = np.int64(0), np.int64(0), np.int64(0)
    while done < filled:
        v = stack[done]
        done += 1
        frequency = 0
        for literal in range(2 * v, 2 * v + 2):
            begin, end = pair_offsets[literal], pair_offsets[literal + 1]
            work += end - begin
            for k in range(begin, end):
                other = pair_literals[k]
                if values[other] == 0:
                    frequency += 1
                    filled = _reach(labels, stack, other >> 1, label, filled)
        for k in range(held_offsets[v], held_offsets[v + 1]):
            clause = held[k]
            work += 1
            if clause_labels[clause] == UNSEEN:
                begin, end = clause_offsets[clause], clause_offsets[clause + 1]
                satisfied = False
                for i in range(begin, end):
                    if values[clause_literals[i]] > 0:
                        satisfied = True
                        break
                work += end - begin
                if satisfied:
                    clause_labels[clause] = DONE
                else:
                    clause_labels[clause] = label
                    n_clauses += 1
                    for i in range(begin, end):
                        if values[clause_literals[i]] == 0:
                            filled = _reach(labels, stack, clause_literals[i] >> 1, label, filled)
            if clause_labels[clause] == label:
                frequency += 1
        for k in range(read_offsets[v], read_offsets[v + 1]):
            table = read[k]
            if table_labels[table] == UNSEEN:
                table_labels[table] = label
                n_tables += 1
                for i in range(f.scope_offsets[table], f.scope_offsets[table + 1]):
                    g = f.scopes[i]
                    for u in range(f.group_offsets[g], f.group_offsets[g + 1]):
                        work += 1
                        if values[2 * u] == 0:
                            filled = _reach(labels, stack, u, label, filled)
            if table_labels[table] == label:
                frequency += 1
        frequencies[v] = frequency
    s.scalars[WORK] += work
    return filled, n_clauses, n_tables


@kernel
def _open(f, s, level, whole):  # type: ignore[no-untyped-def]
    """Mark what of a component is still open, and multiply in the weights of what is not."""
    start = s.component_starts[whole]
    n_variables, n_clauses, n_tables = s.component_sizes[whole]
    data, values, labels, clause_labels = s.data, s.values, s.labels, s.clause_labels
    mantissas, exponents = f.mantissas, f.exponents
    for k in range(start, start + n_variables):
        v = data[k]
        if values[2 * v] == 0:
            labels[v] = UNSEEN
        else:
            labels[v] = DONE
            literal = 2 * v if values[2 * v] > 0 else 2 * v + 1
            note(s, literal)
            if mantissas[literal] != 0.5 or exponents[literal] != 1:
                _times(s, level, mantissas[literal], exponents[literal])
    start += n_variables
    for k in range(start, start + n_clauses):
        clause_labels[data[k]] = UNSEEN
    start += n_clauses
    for k in range(start, start + n_tables):
        cell, complete = residual(f, s, s.data[k])
        s.table_labels[s.data[k]] = DONE if complete else UNSEEN
        if complete:
            _times(s, level, f.cell_mantissas[cell], f.cell_exponents[cell])
    s.scalars[WORK] += n_variables + n_clauses + 4 * n_tables


@kernel
def _sort(s, whole, first, count, base):  # type: ignore[no-untyped-def]
    """Hand the members of a component to those it is split into, in rising order; labels say to which."""
    begin = s.component_starts[whole]
    at = s.scalars[DATA]
    for c in range(first, first + count):
        s.component_starts[c] = at
        at += s.component_sizes[c].sum()
    s.scalars[DATA] = at
    # The stack is free: how far each component is filled.
    fill, data = s.stack, s.data
    labels, clause_labels, table_labels = s.labels, s.clause_labels, s.table_labels
    for c in range(count):
        fill[c] = s.component_starts[first + c]
    for part in range(3):
        size = s.component_sizes[whole, part]
        for k in range(begin, begin + size):
            member = data[k]
            if part == 0:
                label = labels[member]
            elif part == 1:
                label = clause_labels[member]
            else:
                label = table_labels[member]
            if label >= base:
                data[fill[label - base]] = member
                fill[label - base] += 1
        begin += size


@kernel
def split(f, s):  # type: ignore[no-untyped-def]
    """Split the present level's component; False where one of these is known to have no model.

    Decided weights, lone variables and components found in the cache are multiplied into the level's product at once;
    the others are stacked.
    """
    scalars = s.scalars
    level = scalars[LEVEL]
    whole = s.level_numbers[level, WHOLE]
    first = scalars[COMPONENTS]
    s.level_numbers[level, FIRST_COMPONENT] = first
    s.level_numbers[level, N_COMPONENTS] = 0
    _open(f, s, level, whole)
    start, data, labels = s.component_starts[whole], s.data, s.labels
    # Labels are never used twice: what stands in a clause that was satisfied long ago is no component's of today.
    count, base = np.int64(0), scalars[LABEL]
    for k in range(start, start + s.component_sizes[whole, 0]):
        v = data[k]
        if labels[v] != UNSEEN:
            continue
        n_variables, n_clauses, n_tables = _flood(f, s, v, base + count)
        if n_variables == 1 and n_clauses == 0 and n_tables == 0:
            s.labels[v] = DONE
            m, e = add(f.mantissas[2 * v], f.exponents[2 * v], f.mantissas[2 * v + 1], f.exponents[2 * v + 1])
            _times(s, level, m, e)
            note(s, 2 * len(f.group_of) + v)
            for p in range(len(s.primes)):
                s.level_residues[level, PRODUCT, p] = 2 * s.level_residues[level, PRODUCT, p] % s.primes[p]
            continue
        sizes = s.component_sizes[first + count]
        sizes[0], sizes[1], sizes[2] = n_variables, n_clauses, n_tables
        count += 1
    scalars[LABEL] = base + count
    _sort(s, whole, first, count, base)
    s.level_numbers[level, N_COMPONENTS] = count
    kept = first
    for c in range(first, first + count):
        length, value = encode(f, s, c)
        slot = find(s, length, value)
        if slot >= 0:
            if s.slot_mantissas[slot] == 0.0:
                return False
            _times(s, level, s.slot_mantissas[slot], s.slot_exponents[slot])
            if len(s.slot_nodes):
                note(s, 3 * len(f.group_of) + s.slot_nodes[slot])
            for p in range(len(s.primes)):
                s.level_residues[level, PRODUCT, p] = (
                    s.level_residues[level, PRODUCT, p] * s.slot_residues[slot, p] % s.primes[p]
                )
        else:
            s.component_starts[kept] = s.component_starts[c]
            for part in range(3):
                s.component_sizes[kept, part] = s.component_sizes[c, part]
            kept += 1
    scalars[COMPONENTS] = kept
    return True


@kernel
def bound(f, s, component):  # type: ignore[no-untyped-def]
    """log2 of an upper bound on a component's number: every variable by itself, every table at its largest."""
    start = s.component_starts[component]
    total, inside, group = 0.0, 0.0, np.int64(-1)
    for k in range(start, start + s.component_sizes[component, 0]):
        v = s.data[k]
        g = f.group_of[v]
        if f.group_offsets[g + 1] - f.group_offsets[g] == 1:
            total += f.log2_totals[v]
            continue
        if g != group and group >= 0:
            total += np.log2(inside)
            inside = 0.0
        group = g
        inside += 2.0 ** f.log2_totals[v]
    return total + np.log2(inside) if group >= 0 else total
