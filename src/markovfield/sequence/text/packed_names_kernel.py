"""Numbers of names by a hash table over their bytes: no Python object for a name that is looked up.

Invariant: texts lie one after the other, each with a zero byte after it. A slot is zero where it is empty; otherwise
its lower half is a number plus one, and its upper half that of the name's hash.
"""

from __future__ import annotations

import numpy as np

from markovfield.kernels.compiler import kernel

__all__ = ["fill_slots", "look_up"]

# FNV-1a, 64 bits wide.
_START, _PRIME = np.uint64(0xCBF29CE484222325), np.uint64(0x100000001B3)
_HALF = np.uint64(32)
_LOWER = np.uint64(0xFFFFFFFF)
_NONE, _ONE = np.uint64(0), np.uint64(1)


@kernel
def _hashed(text, at):
    """The hash of the text at a place, and the place of the zero after it."""
    h = _START
    while text[at] != 0:
        h = (h ^ np.uint64(text[at])) * _PRIME
        at += 1
    # The last bytes have not reached the upper bits yet, nor the upper bits the lower ones.
    h ^= h >> _HALF
    h *= _PRIME
    return h ^ (h >> _HALF), at


@kernel
def _in_slots(h, slot, slots):
    """The first number from a slot on whose name may have this hash, or -1."""
    mask = np.uint64(len(slots) - 1)
    while slots[slot] != _NONE:
        if (slots[slot] ^ h) & ~_LOWER == _NONE:
            return np.int64(slots[slot] & _LOWER) - 1
        slot = (slot + _ONE) & mask
    return -1


@kernel
def fill_slots(text, starts, slots):
    """Enter names, which are all different; ``starts[i]`` is where name i begins. The slots are a power of two.

    Returns where the last one ended: before the end of ``text`` if a name has a zero of its own.
    """
    mask = np.uint64(len(slots) - 1)
    at = 0
    for i in range(len(starts)):
        starts[i] = at
        h, at = _hashed(text, at)
        slot = h & mask
        while slots[slot] != _NONE:
            slot = (slot + _ONE) & mask
        slots[slot] = (h & ~_LOWER) | np.uint64(i + 1)
        at += 1
    return at


@kernel
def look_up(text, known, starts, slots, numbers):
    """The number of each text, -1 where it is not ``known``; returns where the last one ended, as `fill_slots` does.

    Hashes first, then slots, then what is written there: a loop of one kind of step runs ahead of the memory it reads.
    """
    n, mask = len(numbers), np.uint64(len(slots) - 1)
    hashes = np.empty(n, np.uint64)
    at = 0
    for i in range(n):
        hashes[i], at = _hashed(text, at)
        at += 1
    for i in range(n):
        numbers[i] = _in_slots(hashes[i], hashes[i] & mask, slots)
    at = 0
    for i in range(n):
        first, slot = at, hashes[i] & mask
        while True:
            at = first
            begin = starts[numbers[i]] if numbers[i] >= 0 else 0
            while text[at] != 0 and (numbers[i] < 0 or text[at] == known[begin + at - first]):
                at += 1
            if numbers[i] < 0 or text[at] == known[begin + at - first]:
                break
            # Another name of the same hash, as far as slots hold it: go on behind it.
            while np.int64(slots[slot] & _LOWER) - 1 != numbers[i]:
                slot = (slot + _ONE) & mask
            slot = (slot + _ONE) & mask
            numbers[i] = _in_slots(hashes[i], slot, slots)
        at += 1
    return at
