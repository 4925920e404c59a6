"""The table of a variable that is eliminated from a subgraph: factors and messages added into it.

The variable's own states are slowest, those of its separator follow in the order of elimination, the last one fastest.
Free to change: `INNER`, the cells that are added in one go."""

from __future__ import annotations

from markovfield.inference.local_search.subgraphs_kernel import HELD, ONE, SIX
from markovfield.kernels.bitsets import lowest_bit
from markovfield.kernels.compiler import kernel

__all__ = ["INNER", "separate", "table_of"]


# Cells of the inner loop that adds one table to another.
INNER = 64


@kernel
def _split_factor(at, f, v, turn, place, rank, axis, states, strides):
    """Where a factor lies given what is held, and its strides along the axes of the table of v.

    The answer is its first cell, how many of the separator it has, and the last of those; -1 in place of the count
    where it belongs to an earlier table.
    """
    base = at.table_offsets[f]
    found, last = 0, 0
    for p in range(at.scope_offsets[f], at.scope_offsets[f + 1]):
        u, stride = at.scopes[p], at.table_strides[p]
        if u == v:
            strides[0] = stride
            continue
        j = place[u]
        if j < 0 or rank[j] == HELD:
            base += stride * states[u]
        elif rank[j] < turn:
            return base, -1, 0
        else:
            found += 1
            last = axis[j]
            strides[last] = stride
    return base, found, last


@kernel
def _add(source, base, d, cards, strides, cells, inner, outer):
    """Add a table to ``cells``: ``cards`` and ``strides`` of their d + 1 axes, the last one fastest."""
    n, first, aligned = 1, d + 1, True
    inner[0] = 0
    while first > 0 and n * cards[first - 1] <= INNER:
        first -= 1
        aligned = aligned and strides[first] == n
        for k in range(cards[first] - 1, -1, -1):
            for i in range(n):
                inner[k * n + i] = inner[i] + k * strides[first]
        n *= cards[first]
    m = 1
    outer[0] = base
    while first > 0:
        first -= 1
        for k in range(cards[first] - 1, -1, -1):
            for i in range(m):
                outer[k * m + i] = outer[i] + k * strides[first]
        m *= cards[first]
    if aligned:
        for h in range(m):
            to, start = h * n, outer[h]
            for i in range(n):
                cells[to + i] += source[start + i]
    else:
        for h in range(m):
            to, start = h * n, outer[h]
            for i in range(n):
                cells[to + i] += source[start + inner[i]]


@kernel
def separate(at, region, t, i, words, cards):
    """List a member's separator in the order of elimination; how many."""
    rows, rank = region.rows, region.rank
    separators, axis = t.separators, t.axis
    d = 0
    cards[0] = at.cardinalities[region.members[i]]
    for w in range(words):
        word = rows[i, w]
        while word != 0:
            j = (w << SIX) + lowest_bit(word)
            word &= word - ONE
            b = d
            while b > 0 and rank[separators[i, b - 1]] > rank[j]:
                separators[i, b] = separators[i, b - 1]
                b -= 1
            separators[i, b] = j
            d += 1
    for b in range(d):
        j = separators[i, b]
        axis[j] = b + 1
        cards[b + 1] = at.cardinalities[region.members[j]]
    t.n_separators[i] = d
    return d


@kernel
def _expand(d, cards, pair_starts, pairs, cells):
    """From a table over the own states alone to one over all axes, adding what pairs say."""
    size = cards[0]
    for b in range(1, d + 1):
        card, block, start = cards[b], size // cards[0], pair_starts[b]
        for own in range(cards[0] - 1, -1, -1):
            row = start + own * card
            for i in range((own + 1) * block - 1, own * block - 1, -1):
                value = cells[i]
                for k in range(card - 1, -1, -1):
                    cells[i * card + k] = value + pairs[row + k]
        size *= card


@kernel
def table_of(at, region, t, i, turn, d, cards, states):
    """Fill ``cells`` with the table of a member."""
    place, rank, v = region.place, region.rank, region.members[i]
    cells, pairs, pair_starts, strides, axis = t.cells, t.pairs, t.pair_starts, t.strides, t.axis
    card = cards[0]
    size, total = card, 0
    for b in range(1, d + 1):
        pair_starts[b] = total
        total += card * cards[b]
        size *= cards[b]
    for c in range(total):
        pairs[c] = 0.0
    for k in range(card):
        cells[k] = at.unary[at.value_offsets[v] + k]
    wide = 0
    for x in range(at.variable_offsets[v], at.variable_offsets[v + 1]):
        base, found, last = _split_factor(at, at.variable_factors[x], v, turn, place, rank, axis, states, strides)
        if found == 0:
            for k in range(card):
                cells[k] += at.pool[base + k * strides[0]]
        elif found == 1:
            to = pair_starts[last]
            for k in range(card):
                for y in range(cards[last]):
                    pairs[to + k * cards[last] + y] += at.pool[base + k * strides[0] + y * strides[last]]
        elif found > 1:
            wide += 1
    _expand(d, cards, pair_starts, pairs, cells)
    if wide:
        for x in range(at.variable_offsets[v], at.variable_offsets[v + 1]):
            for b in range(1, d + 1):
                strides[b] = 0
            base, found, _ = _split_factor(at, at.variable_factors[x], v, turn, place, rank, axis, states, strides)
            if found > 1:
                _add(at.pool, base, d, cards, strides, cells, t.inner, t.outer)
    c = t.child[i]
    while c >= 0:
        for b in range(1, d + 1):
            strides[b] = 0
        step = 1
        for b in range(t.n_separators[c] - 1, 0, -1):
            j = t.separators[c, b]
            strides[axis[j]] = step
            step *= at.cardinalities[region.members[j]]
        strides[0] = step
        _add(t.messages, t.starts[c], d, cards, strides, cells, t.inner, t.outer)
        c = t.sibling[c]
    return size
