"""Counts of components that have been met: exact keys in a ring of bytes, the oldest entries making room.

A learned clause may carry what one component of a formula implies into another. Where one turns out to have no model,
what was counted in those beside it since the branch began may be wrong (their product is not: it is zero), so
entries can be taken back in the order they came: the newest first.
"""

from __future__ import annotations

import numpy as np

from markovfield.inference.model_counting.state_kernel import (
    FIRST_BYTE,
    HITS,
    LAST_BYTE,
    NEWEST,
    OLDEST,
    STORED,
    TIGHT,
    WORK,
)
from markovfield.kernels.compiler import kernel

__all__ = ["encode", "find", "forget_since", "move", "residual", "store"]


@kernel
def residual(f, s, table):  # type: ignore[no-untyped-def]
    """The cell of a table at the states that are decided, and whether all are."""
    scopes, strides, group_offsets, values = f.scopes, f.strides, f.group_offsets, s.values
    cell, complete = f.bases[table], True
    for k in range(f.scope_offsets[table], f.scope_offsets[table + 1]):
        g = scopes[k]
        first, end = group_offsets[g], group_offsets[g + 1]
        if end - first == 1:
            if values[2 * first] == 0:
                complete = False
            elif values[2 * first] > 0:
                cell += strides[k]
        else:
            known = False
            for v in range(first, end):
                if values[2 * v] > 0:
                    cell += strides[k] * (v - first)
                    known = True
                    break
            complete = complete and known
    return cell, complete


@kernel
def _write(key, at, number):  # type: ignore[no-untyped-def]
    """Append a number, seven bits to a byte."""
    while number >= 128:
        key[at] = np.uint8((number & 127) | 128)
        number >>= 7
        at += 1
    key[at] = np.uint8(number)
    return at + 1


@kernel
def encode(f, s, component):  # type: ignore[no-untyped-def]
    """Write the key of a component and its hash: variables, clauses, tables with what is decided of them."""
    key, data = s.key, s.data
    start = s.component_starts[component]
    at = np.int64(0)
    for part in range(3):
        size = s.component_sizes[component, part]
        at = _write(key, at, size)
        before = np.int64(0)
        for k in range(start, start + size):
            at = _write(key, at, np.int64(data[k]) - before)
            before = np.int64(data[k])
            if part == 2:
                cell, _ = residual(f, s, before)
                at = _write(key, at, cell)
        start += size
    value = np.uint64(1469598103934665603)
    for k in range(at):
        value = (value ^ np.uint64(key[k])) * np.uint64(1099511628211)
        value ^= value >> np.uint64(29)
    s.scalars[WORK] += at >> 2
    return at, np.int64(value >> np.uint64(1))


@kernel
def find(s, length, value):  # type: ignore[no-untyped-def]
    """The slot whose key is the one just written, or -1."""
    slot = np.int64(s.buckets[value % len(s.buckets)])
    while slot >= 0:
        if s.slot_hashes[slot] == value and s.slot_lengths[slot] == length:
            begin = s.slot_bytes[slot] % len(s.pool)
            same, pool, key = True, s.pool, s.key
            for k in range(length):
                if pool[begin + k] != key[k]:
                    same = False
                    break
            if same:
                s.scalars[HITS] += 1
                return slot
        slot = np.int64(s.slot_next[slot])
    return slot


@kernel
def _forget_oldest(s):  # type: ignore[no-untyped-def]
    """Drop the oldest entry, which stands last in its list."""
    scalars = s.scalars
    slot = scalars[OLDEST] % len(s.slot_next)
    bucket = s.slot_hashes[slot] % len(s.buckets)
    if s.buckets[bucket] == slot:
        s.buckets[bucket] = s.slot_next[slot]
    else:
        other = s.buckets[bucket]
        while s.slot_next[other] != slot:
            other = s.slot_next[other]
        s.slot_next[other] = s.slot_next[slot]
    scalars[OLDEST] += 1
    if scalars[OLDEST] < scalars[NEWEST]:
        scalars[FIRST_BYTE] = s.slot_bytes[scalars[OLDEST] % len(s.slot_next)]
    else:
        scalars[FIRST_BYTE] = scalars[LAST_BYTE]


@kernel
def forget_since(s, newest):  # type: ignore[no-untyped-def]
    """Drop the entries from number ``newest`` on; each stands first in its list."""
    scalars = s.scalars
    newest = max(newest, scalars[OLDEST])
    while scalars[NEWEST] > newest:
        scalars[NEWEST] -= 1
        slot = scalars[NEWEST] % len(s.slot_next)
        s.buckets[s.slot_hashes[slot] % len(s.buckets)] = s.slot_next[slot]
        scalars[LAST_BYTE] = s.slot_bytes[slot]


@kernel
def store(s, length, value, mantissa, exponent, residues, node):  # type: ignore[no-untyped-def]
    """Keep a number under the key just written."""
    scalars = s.scalars
    size = len(s.pool)
    if 4 * length > size:
        return
    at = scalars[LAST_BYTE]
    if at % size + length > size:
        # Keys do not wrap around.
        at += size - at % size
    while scalars[OLDEST] < scalars[NEWEST] and (
        at + length - scalars[FIRST_BYTE] > size or scalars[NEWEST] - scalars[OLDEST] >= len(s.slot_next)
    ):
        scalars[TIGHT] = 1
        _forget_oldest(s)
    begin = at % size
    s.pool[begin : begin + length] = s.key[:length]
    slot = scalars[NEWEST] % len(s.slot_next)
    bucket = value % len(s.buckets)
    s.slot_bytes[slot], s.slot_lengths[slot], s.slot_hashes[slot] = at, length, value
    s.slot_mantissas[slot], s.slot_exponents[slot] = mantissa, exponent
    for k in range(len(residues)):
        s.slot_residues[slot, k] = residues[k]
    if len(s.slot_nodes):
        s.slot_nodes[slot] = node
    s.slot_next[slot] = s.buckets[bucket]
    s.buckets[bucket] = slot
    scalars[NEWEST] += 1
    scalars[STORED] += 1
    scalars[LAST_BYTE] = at + length
    if scalars[NEWEST] - scalars[OLDEST] == 1:
        scalars[FIRST_BYTE] = at


@kernel
def move(s, larger):  # type: ignore[no-untyped-def]
    """Copy the cache into a larger one, which is empty; entries keep their numbers, from which slots are counted."""
    scalars = s.scalars
    at = np.int64(0)
    for number in range(scalars[OLDEST], scalars[NEWEST]):
        slot, place = number % len(s.slot_next), number % len(larger.slot_next)
        length = s.slot_lengths[slot]
        begin = s.slot_bytes[slot] % len(s.pool)
        larger.pool[at : at + length] = s.pool[begin : begin + length]
        larger.slot_bytes[place], larger.slot_lengths[place] = at, length
        larger.slot_hashes[place] = s.slot_hashes[slot]
        larger.slot_mantissas[place], larger.slot_exponents[place] = s.slot_mantissas[slot], s.slot_exponents[slot]
        larger.slot_residues[place] = s.slot_residues[slot]
        if len(s.slot_nodes):
            larger.slot_nodes[place] = s.slot_nodes[slot]
        bucket = s.slot_hashes[slot] % len(larger.buckets)
        larger.slot_next[place] = larger.buckets[bucket]
        larger.buckets[bucket] = place
        at += length
    scalars[FIRST_BYTE], scalars[LAST_BYTE] = 0, at
