"""Random regions of a graph that can be eliminated within a width: a region is grown, and what makes it wide is held.

A region is a list of variables, ``members``; the place of each in it is ``place``. Its graph is a bit matrix ``rows``
over places. After `cut`, row i holds the separator of member i: what is joined to it when its turn in ``order`` comes.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from markovfield.kernels.bitsets import lowest_bit
from markovfield.kernels.compiler import kernel
from markovfield.kernels.random import draw_index

__all__ = ["HELD", "Region", "cut", "grow"]

ONE = np.uint64(1)
SIX = np.int64(6)
LOW = np.int64(63)
LEVELS = 128
HELD = -1
"""The rank of a member that is not eliminated."""


class Region(NamedTuple):
    """Scratch of a region of at most m members.

    ``members``: ``int64[n]``, the first of them in the region. ``place``: ``int64[n]``, -1 outside. ``rows``:
    ``uint64[m, words]``. ``bits``: of each member, log2 of the cells of its table when it is eliminated. ``order``:
    members from the first that is eliminated. ``rank``: their place in it, or `HELD`. ``shelves``: members
    still in the graph by the size of their tables, ``filled`` of them; ``spot``: the shelf of each and where on it.
    """

    members: Any
    place: Any
    rows: Any
    bits: Any
    order: Any
    rank: Any
    shelves: Any
    filled: Any
    spot: Any


@kernel
def grow(neighbour_offsets, neighbours, free, most, stream, members, place):
    """Make a region of at most ``most`` variables around a random one; how many it has.

    It grows by a random one of its neighbours at a time, and starts again elsewhere where it has none.
    """
    most = min(most, len(free))
    done, seen = 0, 0
    while done < most:
        if done == seen:
            v = free[draw_index(stream, len(free))]
            while place[v] >= 0:
                v = free[draw_index(stream, len(free))]
            members[seen] = v
            place[v] = 0
            seen += 1
        i = done + draw_index(stream, seen - done)
        v = members[i]
        members[i] = members[done]
        members[done] = v
        place[v] = done
        done += 1
        for p in range(neighbour_offsets[v], neighbour_offsets[v + 1]):
            u = neighbours[p]
            if place[u] < 0:
                place[u] = 0
                members[seen] = u
                seen += 1
    for i in range(done, seen):
        place[members[i]] = -1
    return done


@kernel
def _clique_bits(logs, members, rows, words, i):
    """Log2 of the joint states of a member and its neighbours."""
    total = logs[members[i]]
    for w in range(words):
        word = rows[i, w]
        while word != 0:
            total += logs[members[(w << SIX) + lowest_bit(word)]]
            word &= word - ONE
    return total


@kernel
def _level(bits):
    """Integer that sorts members by the size of their tables, in half bits."""
    return min(np.int64(np.ceil(2.0 * bits - 1e-9)), LEVELS - 1)


@kernel
def _put(i, level, shelves, filled, spot):
    """Put a member on the shelf of its level."""
    spot[i, 0], spot[i, 1] = level, filled[level]
    shelves[level, filled[level]] = i
    filled[level] += 1


@kernel
def _take(i, shelves, filled, spot):
    """Take a member off its shelf."""
    level, at = spot[i, 0], spot[i, 1]
    filled[level] -= 1
    last = shelves[level, filled[level]]
    shelves[level, at] = last
    spot[last, 1] = at


@kernel
def _begin(neighbour_offsets, neighbours, logs, count, region):
    """The graph of a region, and its members on shelves."""
    members, place, rows, bits = region.members, region.place, region.rows, region.bits
    words = (count + 63) >> 6
    for level in range(LEVELS):
        region.filled[level] = 0
    for i in range(count):
        for w in range(words):
            rows[i, w] = 0
        v = members[i]
        total = logs[v]
        for p in range(neighbour_offsets[v], neighbour_offsets[v + 1]):
            u = neighbours[p]
            j = place[u]
            if j >= 0:
                rows[i, j >> SIX] |= ONE << np.uint64(j & LOW)
                total += logs[u]
        bits[i] = total
        _put(i, _level(total), region.shelves, region.filled, region.spot)


@kernel
def cut(neighbour_offsets, neighbours, logs, count, width, work, stream, region):
    """Choose an elimination order of a region, holding members so that no table has more than 2^width cells.

    One of the members with the smallest tables is next; where that is too large, one of those with the largest is held.
    Once all tables together have ``work`` cells, all others are held. How many are eliminated.
    """
    members, rows, bits, order, rank = region.members, region.rows, region.bits, region.order, region.rank
    shelves, filled, spot = region.shelves, region.filled, region.spot
    _begin(neighbour_offsets, neighbours, logs, count, region)
    words = (count + 63) >> 6
    widest = _level(width)
    done, end, cells, low, high = 0, count, 0.0, 0, LEVELS - 1
    while done < end:
        while filled[low] == 0:
            low += 1
        taken = low <= widest and cells < work
        level = low
        if not taken:
            high = LEVELS - 1
            while filled[high] == 0:
                high -= 1
            level = high
        i = shelves[level, draw_index(stream, filled[level])]
        _take(i, shelves, filled, spot)
        if taken:
            cells += 2.0 ** bits[i]
            rank[i] = done
            order[done] = i
            done += 1
        else:
            end -= 1
            rank[i] = HELD
            order[end] = i
        own_word, own_bit = i >> SIX, ONE << np.uint64(i & LOW)
        for w in range(words):
            word = rows[i, w]
            while word != 0:
                j = (w << SIX) + lowest_bit(word)
                word &= word - ONE
                if taken:
                    for x in range(words):
                        rows[j, x] |= rows[i, x]
                    rows[j, j >> SIX] &= ~(ONE << np.uint64(j & LOW))
                rows[j, own_word] &= ~own_bit
                bits[j] = _clique_bits(logs, members, rows, words, j)
                _take(j, shelves, filled, spot)
                level = _level(bits[j])
                _put(j, level, shelves, filled, spot)
                low = min(low, level)
    # Who was held after its neighbour was eliminated is still in that neighbour's row.
    for a in range(done, count):
        i = order[a]
        own_word, own_bit = i >> SIX, ONE << np.uint64(i & LOW)
        for b in range(done):
            rows[order[b], own_word] &= ~own_bit
    return done
