"""Two-dimensional Ising models of uniform coupling, 64 spins to a word: checkerboard heat-bath and Metropolis.

The two colours of the checkerboard are two planes. Row i of the plane of colour c holds the sites
j = 2 k + ((i + c) & 1); site k is bit ``k // n`` of word ``k % n``, n being the words of a row. So the neighbours of a
word's 64 spins are whole words: above, below and at its own place in the other plane, and the word before or after that
one. Only at the ends of a row do bits move. Bits that pad a row are updated with the rest and never read.

A random number is compared with a threshold bit by bit, for 64 lanes at once: a lane is decided by the first bit in
which they differ. After `BITS` rounds, the one lane in 2^BITS that is not decided yet compares 64 further bits. The
thresholds have 64 bits: probabilities are exact to 2^-64.

Rows are gathered to layers of about `WORDS` words. Each layer has its own xoshiro256++ streams, one for each word and
one for single sites, so that no result depends on the order in which layers are updated, nor on threads.

Invariant: the planes, and which stream a word draws from. `WORDS` and `BITS` are free to change, but simulations then
draw other numbers from the same seed.
"""

from __future__ import annotations

import numpy as np

from markovfield.kernels.compiler import kernel
from markovfield.lattice.random_kernel import next_word

__all__ = ["AXES", "BITS", "COUNTS", "FIVE", "THREE", "WORDS", "advance_bits", "pack_bits", "unpack_bits"]

WORDS = 64
BITS = 10
_HALF = BITS // 2
# What a sweep counts in each layer: spins up, unlike pairs along the columns, unlike pairs along the rows.
COUNTS = 3
# Rows of the working space: masks of five classes, the spins that a comparison flips, the lanes left undecided.
_SPINS, _UNDECIDED = 5 * WORDS, 6 * WORDS
# How neighbours are classed: by how far they pull, whichever way; by how many are up (or unlike the site itself); by
# the pull along columns, then along rows.
THREE, FIVE, AXES = 0, 1, 2
# Where in the planes a layer's own words and their neighbours are.
UP, DOWN, HERE, OWN = 0, 1, 2, 3

_ZERO, _ONE, _SIXTY_THREE = np.uint64(0), np.uint64(1), np.uint64(63)
_M1, _M2, _M4 = np.uint64(0x5555555555555555), np.uint64(0x3333333333333333), np.uint64(0x0F0F0F0F0F0F0F0F)
_BYTES, _TWO, _FOUR, _TOP_BYTE = np.uint64(0x0101010101010101), np.uint64(2), np.uint64(4), np.uint64(56)


@kernel
def pack_bits(spins, planes, n):
    """Put spins ``uint8[height, width]`` (1 is up) into the planes ``uint64[2 * (height + 2) * n]``, which are zero."""
    height, width = spins.shape
    plane = (height + 2) * n
    for i in range(height):
        for j in range(width):
            if spins[i, j]:
                k = j >> 1
                planes[((i + j) & 1) * plane + (i + 1) * n + k % n] |= _ONE << np.uint64(k // n)


@kernel
def unpack_bits(planes, n, spins):
    """The other way: spins from the planes."""
    height, width = spins.shape
    plane = (height + 2) * n
    for i in range(height):
        for j in range(width):
            k = j >> 1
            spins[i, j] = (planes[((i + j) & 1) * plane + (i + 1) * n + k % n] >> np.uint64(k // n)) & _ONE


@kernel
def _ones(x):
    """How many bits of a word are set; the compiler knows this pattern as one instruction."""
    x -= (x >> _ONE) & _M1
    x = (x & _M2) + ((x >> _TWO) & _M2)
    x = (x + (x >> _FOUR)) & _M4
    return np.int64((x * _BYTES) >> _TOP_BYTE)


@kernel
def _class_three(planes, places, beside, space, at, n):
    """The majority of four neighbours, and masks: pulls of four, of two, of nothing."""
    up, down = planes[places[UP] + at : places[UP] + at + n], planes[places[DOWN] + at : places[DOWN] + at + n]
    here, side = planes[places[HERE] + at : places[HERE] + at + n], beside[at : at + n]
    for w in range(n):
        a, b, c, d = up[w], down[w], here[w], side[w]
        v2, v1, h2, h1 = a & b, a ^ b, c & d, c ^ d
        odd = v1 ^ h1
        even = (v1 & h1) | ((v2 ^ h2) & ~odd)
        space[w] = ~(odd | even)
        space[WORDS + w] = odd
        space[2 * WORDS + w] = even
        space[_SPINS + w] = (v2 & (c | d)) | (h2 & (a | b))


@kernel
def _class_five(planes, places, beside, space, at, n, relative):
    """Masks of zero to four neighbours up or, with ``relative``, unlike the site, which is flipped then."""
    up, down = planes[places[UP] + at : places[UP] + at + n], planes[places[DOWN] + at : places[DOWN] + at + n]
    here, side = planes[places[HERE] + at : places[HERE] + at + n], beside[at : at + n]
    own = planes[places[OWN] + at : places[OWN] + at + n]
    for w in range(n):
        base = own[w] & relative
        a, b, c, d = up[w] ^ base, down[w] ^ base, here[w] ^ base, side[w] ^ base
        v2, v1, h2, h1 = a & b, a ^ b, c & d, c ^ d
        odd = v1 ^ h1
        three = odd & (v2 | h2)
        two = (v1 & h1) | ((v2 ^ h2) & ~odd)
        four = v2 & h2
        space[w] = ~(odd | two | four)
        space[WORDS + w] = odd & ~three
        space[2 * WORDS + w] = two
        space[3 * WORDS + w] = three
        space[4 * WORDS + w] = four
        space[_SPINS + w] = base


@kernel
def _class_axes(planes, places, beside, space, at, n):
    """The pull along the column or, where that is nothing, along the row; masks of what the row adds to it."""
    up, down = planes[places[UP] + at : places[UP] + at + n], planes[places[DOWN] + at : places[DOWN] + at + n]
    here, side = planes[places[HERE] + at : places[HERE] + at + n], beside[at : at + n]
    for w in range(n):
        a, b, c, d = up[w], down[w], here[w], side[w]
        v1, h1 = a ^ b, c ^ d
        space[w] = ~(v1 | h1 | (a ^ c))
        space[WORDS + w] = ~v1 & h1
        space[2 * WORDS + w] = ~(v1 | h1) & (a ^ c)
        space[3 * WORDS + w] = v1 & ~h1
        space[4 * WORDS + w] = v1 & h1
        space[_SPINS + w] = (a & ~v1) | (c & v1)


@kernel
def _draw(singles, g):
    """64 bits of a layer's stream for single sites; no view of the row is made, which would cost more than the draw."""
    r, singles[g, 0], singles[g, 1], singles[g, 2], singles[g, 3] = next_word(
        singles[g, 0], singles[g, 1], singles[g, 2], singles[g, 3]
    )
    return r


@kernel
def _compare_three(space, all_streams, at, t, edge, n):
    """Flip, in each lane, where a random number is below the threshold of its class."""
    streams = all_streams[at : at + 4 * WORDS]
    t0, t1, t2 = t[edge, 0], t[edge, 1], t[edge, 2]
    for w in range(n):
        m0, m1, m2 = space[w], space[WORDS + w], space[2 * WORDS + w]
        s0, s1, s2, s3 = streams[w], streams[WORDS + w], streams[2 * WORDS + w], streams[3 * WORDS + w]
        undecided, below = ~_ZERO, _ZERO
        for k in range(_HALF):  # constants, so that these loops are unrolled and the outer one runs in vectors
            r, s0, s1, s2, s3 = next_word(s0, s1, s2, s3)
            bit = _SIXTY_THREE - np.uint64(k)
            # Zero less a bit is a word full of it.
            threshold = m0 & (_ZERO - ((t0 >> bit) & _ONE))
            threshold |= m1 & (_ZERO - ((t1 >> bit) & _ONE))
            threshold |= m2 & (_ZERO - ((t2 >> bit) & _ONE))
            decided = (r ^ threshold) & undecided
            below |= decided & threshold
            undecided &= ~decided
        for k in range(_HALF, BITS):
            r, s0, s1, s2, s3 = next_word(s0, s1, s2, s3)
            bit = _SIXTY_THREE - np.uint64(k)
            # Zero less a bit is a word full of it.
            threshold = m0 & (_ZERO - ((t0 >> bit) & _ONE))
            threshold |= m1 & (_ZERO - ((t1 >> bit) & _ONE))
            threshold |= m2 & (_ZERO - ((t2 >> bit) & _ONE))
            decided = (r ^ threshold) & undecided
            below |= decided & threshold
            undecided &= ~decided
        streams[w], streams[WORDS + w], streams[2 * WORDS + w], streams[3 * WORDS + w] = s0, s1, s2, s3
        space[_SPINS + w] ^= below
        space[_UNDECIDED + w] = undecided


@kernel
def _compare_five(space, all_streams, at, t, edge, n):
    """The same for five classes."""
    streams = all_streams[at : at + 4 * WORDS]
    t0, t1, t2, t3, t4 = t[edge, 0], t[edge, 1], t[edge, 2], t[edge, 3], t[edge, 4]
    for w in range(n):
        m0, m1, m2 = space[w], space[WORDS + w], space[2 * WORDS + w]
        m3, m4 = space[3 * WORDS + w], space[4 * WORDS + w]
        s0, s1, s2, s3 = streams[w], streams[WORDS + w], streams[2 * WORDS + w], streams[3 * WORDS + w]
        undecided, below = ~_ZERO, _ZERO
        for k in range(_HALF):  # constants, so that these loops are unrolled and the outer one runs in vectors
            r, s0, s1, s2, s3 = next_word(s0, s1, s2, s3)
            bit = _SIXTY_THREE - np.uint64(k)
            threshold = m0 & (_ZERO - ((t0 >> bit) & _ONE))
            threshold |= m1 & (_ZERO - ((t1 >> bit) & _ONE))
            threshold |= m2 & (_ZERO - ((t2 >> bit) & _ONE))
            threshold |= m3 & (_ZERO - ((t3 >> bit) & _ONE))
            threshold |= m4 & (_ZERO - ((t4 >> bit) & _ONE))
            decided = (r ^ threshold) & undecided
            below |= decided & threshold
            undecided &= ~decided
        for k in range(_HALF, BITS):
            r, s0, s1, s2, s3 = next_word(s0, s1, s2, s3)
            bit = _SIXTY_THREE - np.uint64(k)
            threshold = m0 & (_ZERO - ((t0 >> bit) & _ONE))
            threshold |= m1 & (_ZERO - ((t1 >> bit) & _ONE))
            threshold |= m2 & (_ZERO - ((t2 >> bit) & _ONE))
            threshold |= m3 & (_ZERO - ((t3 >> bit) & _ONE))
            threshold |= m4 & (_ZERO - ((t4 >> bit) & _ONE))
            decided = (r ^ threshold) & undecided
            below |= decided & threshold
            undecided &= ~decided
        streams[w], streams[WORDS + w], streams[2 * WORDS + w], streams[3 * WORDS + w] = s0, s1, s2, s3
        space[_SPINS + w] ^= below
        space[_UNDECIDED + w] = undecided


@kernel
def _finish(space, t, edge, classes, singles, g, n):
    """Decide the lanes that are left by 64 further bits."""
    for w in range(n):
        left = space[_UNDECIDED + w]
        while left:
            lane = left & (_ZERO - left)
            left ^= lane
            threshold = _ZERO
            for k in range(classes):
                if space[k * WORDS + w] & lane:
                    threshold = t[edge, k]
            if _draw(singles, g) < threshold << np.uint64(BITS):
                space[_SPINS + w] ^= lane


@kernel
def _fill_beside(planes, here, odd, even_rows, beside, rows, n, half, periodic):
    """The other neighbour along the row, for rows of n words: to the left in even rows, to the right in odd ones.

    All words are the next or the last one but those at the ends of rows, which are repaired afterwards: so the loop
    over words is one, and runs in vectors, however short the rows.
    """
    end, lane = (half - 1) % n, _ONE << np.uint64((half - 1) // n)
    before, after = planes[here - 1 : here - 1 + rows * n], planes[here + 1 : here + 1 + rows * n]
    even = even_rows[odd]
    for w in range(rows * n):
        beside[w] = (before[w] & even[w]) | (after[w] & ~even[w])
    for at in range(0, rows * n, n):
        if odd:
            start = before[at + 1]
            beside[at + n - 1] = start >> _ONE
            if periodic:
                beside[at + end] = (beside[at + end] & ~lane) | (lane if start & _ONE else _ZERO)
        else:
            beside[at] = after[at + n - 2] << _ONE
            if periodic and planes[here + at + end] & lane:
                beside[at] |= _ONE
        odd = 1 - odd


@kernel
def _spin(word, lane):
    """One bit of a word as -1 or +1."""
    return np.int64(1) if word & lane else np.int64(-1)


@kernel
def _ends(planes, places, beside, fresh, odd, rows, n, width, top, bottom, table, relative, singles, g):
    """Update the sites that lack a neighbour along their row, one by one.

    Even rows begin with one that has none at its side; and one row's end, of either the even or the odd ones, has none
    at its own place (if the width is odd) or at its side.
    """
    end = (width + 1) // 2 - 1
    for row in range(0, rows * n, n):
        for last in range(2):
            is_missing = odd == 0 if last == 0 or width & 1 else odd == 1
            if not is_missing:
                continue
            k = end if last else 0
            w, lane = row + k % n, _ONE << np.uint64(k // n)
            v, h = np.int64(0), np.int64(0)
            if not top:
                v += _spin(planes[places[UP] + w], lane)
            if not bottom:
                v += _spin(planes[places[DOWN] + w], lane)
            if last and width & 1:
                h += _spin(beside[w], lane)
            else:
                h += _spin(planes[places[HERE] + w], lane)
            spin = _spin(planes[places[OWN] + w], lane) if relative else np.int64(1)
            r, singles[g, 0], singles[g, 1], singles[g, 2], singles[g, 3] = next_word(
                singles[g, 0], singles[g, 1], singles[g, 2], singles[g, 3]
            )
            below = r < table[spin * v + 2, spin * h + 2]
            is_up = (spin > 0) != below if relative else below
            fresh[w] = (fresh[w] & ~lane) | (lane if is_up else _ZERO)
        odd = 1 - odd


@kernel
def _count(planes, places, beside, masks, parity, n, top, bottom, out, at, g):
    """Spins up and unlike pairs of a layer, all pairs being those of its sites of the second colour."""
    up, down = planes[places[UP] : places[UP] + n], planes[places[DOWN] : places[DOWN] + n]
    here, own = planes[places[HERE] : places[HERE] + n], planes[places[OWN] : places[OWN] + n]
    real, paired, other, first = masks[parity, 0], masks[parity, 1], masks[parity, 2], masks[parity, 3]
    ups, columns, rows = 0, 0, 0
    for w in range(n):
        ups += _ones(own[w] & real[w]) + _ones(here[w] & first[w])
        rows += _ones((own[w] ^ here[w]) & paired[w]) + _ones((own[w] ^ beside[w]) & other[w])
    if not top:
        for w in range(n):
            columns += _ones((own[w] ^ up[w]) & real[w])
    if not bottom:
        for w in range(n):
            columns += _ones((own[w] ^ down[w]) & real[w])
    out[at, g, 0], out[at, g, 1], out[at, g, 2] = ups, columns, rows


@kernel
def _copy(out, at, words, first, n):
    """out[at + w] = words[first + w] for n words."""
    there, here = out[at : at + n], words[first : first + n]
    for w in range(n):
        there[w] = here[w]


@kernel
def advance_bits(planes, starts, streams, singles, table, thresholds, masks, how, span, every, out):
    """Update layers for some half-sweeps, first colour first.

    Parameters
    ----------
    planes
        ``uint64[2 * (height + 2) * n]``: a row of each plane has n words; the first and the last of the rows are copies
        of those at the other end where the columns are periodic, and zero where they are not.
    starts
        ``int64[layers + 1]``: the first row of each layer. Where columns are free, the first and the last row are
        layers of their own.
    streams, singles
        ``uint64[layers * segments * 4 * WORDS]`` and ``uint64[layers, 4]``.
    table
        ``uint64[5, 5]``: thresholds by the sums of the neighbours along columns and rows, each from -2 to 2: of being
        up, or, where updates are relative, of flipping by the sums times the spin itself.
    thresholds
        ``uint64[2, 5]``: those of the classes, inside and in the first and last row of free columns.
    masks
        ``uint64[2, 4, words]`` by the parity of a layer's first row in the second colour: sites of that colour, those
        with the neighbour at their own place, those with the other one along the row; sites of the first colour.
    how
        Classes inside, classes at free ends of columns, relative, n, width, columns periodic, rows periodic.
    span
        First and last layer at the first half-sweep, what each grows by with every half-sweep, how many half-sweeps,
        and sweeps already made of those that ``out`` is for.
    every, out
        ``int64[measurements, layers, COUNTS]``: counts of every so many sweeps.
    """
    relative, n, width, round_columns, round_rows = how[2] != 0, how[3], how[4], how[5] != 0, how[6] != 0
    layers, height, half = len(starts) - 1, starts[-1], (width + 1) // 2
    longest, plane, base = masks.shape[2], (height + 2) * n, ~_ZERO if relative else _ZERO
    bundle = len(streams) // layers
    even_rows = np.zeros((2, longest), np.uint64)
    for w in range(longest):
        even_rows[(w // n) & 1, w] = ~_ZERO
    zero, spins_at = np.int64(0), np.int64(_SPINS)  # literals would compile a copy of what they are given to
    beside, fresh = np.empty(longest, np.uint64), np.empty(longest, np.uint64)
    space, places = np.zeros(7 * WORDS, np.uint64), np.zeros(4, np.int64)
    for step in range(span[4]):
        colour, sweep = step & 1, span[5] + (step >> 1) + 1
        for layer in range(span[0] + step * span[2], span[1] + step * span[3]):
            g = layer % layers
            first, rows = starts[g], starts[g + 1] - starts[g]
            words, odd = rows * n, (first + colour) & 1
            here = (1 - colour) * plane + (first + 1) * n
            places[OWN], places[HERE] = colour * plane + (first + 1) * n, here
            places[UP], places[DOWN] = here - n, here + n
            top, bottom = not round_columns and first == 0, not round_columns and first + rows == height
            edge = np.int64(top or bottom)
            kind = how[edge]
            # A missing row is stood in for by one that adds nothing new: that opposite it, the spins themselves, or
            # spins down, each with thresholds that know of it.
            if top and (relative or kind == AXES):
                places[UP] = places[OWN] if relative else places[DOWN]
            if bottom and (relative or kind == AXES):
                places[DOWN] = places[OWN] if relative else places[UP]
            _fill_beside(planes, here, odd, even_rows, beside, rows, n, half, round_rows)
            for a in range(0, words, WORDS):
                m, at = min(WORDS, words - a), g * bundle + 4 * a
                if kind == THREE:
                    _class_three(planes, places, beside, space, a, m)
                    _compare_three(space, streams, at, thresholds, edge, m)
                else:
                    if kind == FIVE:
                        _class_five(planes, places, beside, space, a, m, base)
                    else:
                        _class_axes(planes, places, beside, space, a, m)
                    _compare_five(space, streams, at, thresholds, edge, m)
                _finish(space, thresholds, edge, 3 if kind == THREE else 5, singles, g, m)
                _copy(fresh, a, space, spins_at, m)
            if not round_rows:
                _ends(planes, places, beside, fresh, odd, rows, n, width, top, bottom, table, relative, singles, g)
            _copy(planes, places[OWN], fresh, zero, words)
            if round_columns and first == 0:
                _copy(planes, (colour + 1) * plane - n, fresh, zero, n)
            if round_columns and first + rows == height:
                _copy(planes, colour * plane, fresh, words - n, n)
            if colour and sweep % every == 0:
                at = sweep // every - 1
                _count(planes, places, beside, masks, (first + 1) & 1, words, top, bottom, out, at, g)
