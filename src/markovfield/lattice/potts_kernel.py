"""Potts models on lattices of one to three axes: heat-bath and Metropolis, in checkerboard or typewriter order.

Lattices are laid out as in `lattice_spins`; states are bytes below 255. A coupling that is the same along an axis, and
a field that is the same at all sites, are given once: a step of zero makes every site read them. The states of all
neighbours of a row are gathered first; then one function without calls runs over the row (a call that is given arrays
costs as much as a draw).
"""

from __future__ import annotations

import math

import numpy as np

from markovfield.inference.gibbs.single_site_kernel import WILLING
from markovfield.kernels.compiler import kernel
from markovfield.lattice.random_kernel import UNIT, fill_words

__all__ = [
    "EXCESS",
    "LOGS",
    "METROPOLIS",
    "WEIGHTS",
    "advance_potts",
    "measure_layers",
    "measure_uniform",
    "typewriter_potts",
]

# How a state is drawn: by what neighbours add to weights of one, by weights, by logs, or by a move that may be refused.
EXCESS, WEIGHTS, LOGS, METROPOLIS = 0, 1, 2, 3
# The state of a neighbour that is not there.
NOBODY = 255
_ELEVEN = np.uint64(11)
_MOST_NEIGHBOURS = 6


@kernel
def _gather(states, shape, ring, g, j, start, stride, near, where):
    """States of the neighbours of every other (or every) site of a row; their axes and where their edges start.

    With a stride of one, only the neighbours that come later along an axis. Those along the row come last.
    """
    layers, rows, n = shape[0], shape[1], shape[2]
    row, m, forward = (g * rows + j) * n, (n - start + stride - 1) // stride, stride == 1
    found = 0
    for axis in range(2):
        length, at, far = (layers, g, rows * n) if axis == 0 else (rows, j, n)
        for later in range(np.int64(forward), 2):
            other = at + 1 if later else at - 1
            if other < 0 or other >= length:
                if not ring[axis]:
                    continue
                other = (other + length) % length
            first = row + (other - at) * far
            there = states[first : first + n]
            for h in range(m):
                near[found, h] = there[start + stride * h]
            where[0, found], where[1, found] = axis, row if later else first
            found += 1
    own, last = states[row : row + n], start + stride * (m - 1)
    if not forward:
        for h in range(1 if start == 0 else 0, m):
            near[found, h] = own[start + stride * h - 1]
        if start == 0:
            near[found, 0] = own[n - 1] if ring[2] else NOBODY
        where[0, found], where[1, found] = 2, row - 1
        found += 1
    for h in range(m - 1 if last == n - 1 else m):
        near[found, h] = own[start + stride * h + 1]
    if last == n - 1 and m:
        near[found, m - 1] = own[0] if ring[2] else NOBODY
    where[0, found], where[1, found] = 2, row
    return found + 1


@kernel
def _row_excess(states, row, start, n, near, where, found, n_states, factors, added, totals, words):
    """Draw states that weigh one each, and more by each neighbour that has them.

    Neighbours are taken one after the other: each adds (its factor - 1) times what its state has got from those
    before it. So a draw falls into the part that all states share or to one neighbour, and nothing depends on K.
    """
    m = (n - start + 1) // 2
    whole = np.float64(n_states)
    for h in range(m):
        totals[h] = whole
    for q in range(found):
        more = factors[where[0, q]] - 1.0
        for h in range(m):
            added[q, h] = more if near[q, h] != NOBODY else 0.0
        for r in range(q):
            factor = factors[where[0, r]]
            for h in range(m):
                added[q, h] *= factor if near[r, h] == near[q, h] else 1.0
        for h in range(m):
            totals[h] += added[q, h]
    for h in range(m):
        totals[h] *= np.float64(words[h] >> _ELEVEN) * UNIT
    own = states[row + start : row + n]
    for h in range(m):
        x, chosen = totals[h], np.int64(min(totals[h], whole - 1.0 + UNIT))
        for q in range(found):
            if x >= whole and near[q, h] != NOBODY:
                chosen = np.int64(near[q, h])
            x -= added[q, h]
        own[2 * h] = chosen


@kernel
def _row_weights(states, row, start, n, near, where, found, base, factors, weights, words):
    """Draw states by weight: what the field gives them times the factors of neighbours that have them."""
    n_states = len(base)
    for k in range(start, n, 2):
        for s in range(n_states):
            weights[s] = base[s]
        for q in range(found):
            s = np.int64(near[q, (k - start) // 2])
            if s != NOBODY:
                weights[s] *= factors[where[0, q]]
        total = 0.0
        for s in range(n_states):
            total += weights[s]
        x = np.float64(words[(k - start) // 2] >> _ELEVEN) * UNIT * total
        chosen = n_states - 1
        for s in range(n_states - 1):
            x -= weights[s]
            if x < 0:
                chosen = s
                break
        states[row + k] = chosen


@kernel
def _row_logs(states, row, start, n, near, where, found, couplings, field, logs, words):
    """Draw states by the exponentials of their log-weights, whatever these are."""
    n_states = field.shape[1]
    step, own = np.int64(couplings.shape[1] > 1), np.int64(field.shape[0] > 1)
    for k in range(start, n, 2):
        for s in range(n_states):
            logs[s] = field[(row + k) * own, s]
        for q in range(found):
            s = np.int64(near[q, (k - start) // 2])
            if s != NOBODY:
                edge = where[1, q] + k + (n if where[1, q] + k < row and where[0, q] == 2 else 0)
                logs[s] += couplings[where[0, q], edge * step]
        top = -np.inf
        for s in range(n_states):
            top = max(top, logs[s])
        total = 0.0
        for s in range(n_states):
            logs[s] = math.exp(logs[s] - top)
            total += logs[s]
        x = np.float64(words[(k - start) // 2] >> _ELEVEN) * UNIT * total
        chosen = n_states - 1
        for s in range(n_states - 1):
            x -= logs[s]
            if x < 0:
                chosen = s
                break
        states[row + k] = chosen


@kernel
def _row_moves(states, row, start, n, near, where, found, couplings, field, words):
    """Metropolis moves to one of the other states, each as likely to be tried."""
    n_states = field.shape[1]
    step, own = np.int64(couplings.shape[1] > 1), np.int64(field.shape[0] > 1)
    at = 0
    for k in range(start, n, 2):
        old = np.int64(states[row + k])
        new = min(np.int64(np.float64(words[at] >> _ELEVEN) * UNIT * (n_states - 1)), n_states - 2)
        if new >= old:
            new += 1
        u = np.float64(words[at + 1] >> _ELEVEN) * UNIT
        at += 2
        gain = field[(row + k) * own, new] - field[(row + k) * own, old]
        for q in range(found):
            s = np.int64(near[q, (k - start) // 2])
            if s in (new, old):
                edge = where[1, q] + k + (n if where[1, q] + k < row and where[0, q] == 2 else 0)
                weight = couplings[where[0, q], edge * step]
                gain += weight if s == new else -weight
        if u < WILLING * (1.0 if gain >= 0.0 else math.exp(gain)):
            states[row + k] = new


@kernel
def _measure_row(states, row, start, stride, n, near, where, found, couplings, field, tallies, at, g):
    """Log-potentials of a row: those of all its sites, and of the pairs that were gathered."""
    step, own = np.int64(couplings.shape[1] > 1), np.int64(field.shape[0] > 1)
    total = 0.0
    for k in range(n):
        s = np.int64(states[row + k])
        tallies[at, g, s] += 1
        total += field[(row + k) * own, s]
    for q in range(found):
        for k in range(start, n, stride):
            if near[q, (k - start) // stride] == states[row + k]:
                edge = where[1, q] + k + (n if where[1, q] + k < row and where[0, q] == 2 else 0)
                total += couplings[where[0, q], edge * step]
    return total


@kernel
def advance_potts(
    states, shape, ring, couplings, field, base, factors, streams, mode, span, every, scores, tallies
):  # fmt: skip
    """Update layers for some half-sweeps, first colour first.

    Parameters
    ----------
    states
        ``uint8[n]``.
    ring
        ``bool[3]``: whether each axis is periodic.
    couplings, field
        ``float64[3, n or 1]`` along each axis from a site to the next; ``float64[n or 1, n_states]``.
    base, factors
        ``float64[n_states]`` and ``float64[3]``: the weight that the field gives each state, and what a neighbour along
        each axis multiplies that of its own state by. Read by `WEIGHTS` and `EXCESS`, which need one coupling for each
        axis and one field; the latter takes no field, and couplings that are not negative.
    streams
        ``uint64[layers, 4, lanes]``.
    span
        First and last layer at the first half-sweep, what each grows by with every half-sweep, how many half-sweeps,
        and sweeps already made of those that ``scores`` are for.
    every, scores, tallies
        ``float64[measurements, layers]`` and ``int64[measurements, layers, n_states]``: log-potentials, and how many
        sites are in each state (zero before).
    """
    layers, rows, n = shape[0], shape[1], shape[2]
    lanes, per_site = streams.shape[2], 2 if mode == METROPOLIS else 1
    words = np.empty(-(-per_site * n // lanes) * lanes, np.uint64)
    logs, totals, added = np.empty(field.shape[1]), np.empty(n), np.empty((_MOST_NEIGHBOURS, n))
    near, where = np.empty((_MOST_NEIGHBOURS, n), np.uint8), np.empty((2, _MOST_NEIGHBOURS), np.int64)
    two = np.int64(2)  # a literal would compile a copy of what it is given to
    for stage in range(span[4]):
        colour, sweep = stage & 1, span[5] + (stage >> 1) + 1
        for layer in range(span[0] + stage * span[2], span[1] + stage * span[3]):
            g = layer % layers
            total = 0.0
            for j in range(rows):
                row, start = (g * rows + j) * n, (g + j + colour) & 1
                found = _gather(states, shape, ring, g, j, start, two, near, where)
                fill_words(streams, g, words, per_site * ((n - start + 1) // 2))
                if mode == EXCESS:
                    _row_excess(
                        states, row, start, n, near, where, found, field.shape[1], factors, added, totals, words
                    )  # fmt: skip
                elif mode == WEIGHTS:
                    _row_weights(states, row, start, n, near, where, found, base, factors, logs, words)
                elif mode == LOGS:
                    _row_logs(states, row, start, n, near, where, found, couplings, field, logs, words)
                else:
                    _row_moves(states, row, start, n, near, where, found, couplings, field, words)
                if colour and sweep % every == 0:
                    at = sweep // every - 1
                    total += _measure_row(
                        states, row, start, two, n, near, where, found, couplings, field, tallies, at, g
                    )
            if colour and sweep % every == 0:
                scores[sweep // every - 1, g] = total


@kernel
def measure_layers(states, shape, ring, couplings, field, first, last, at, scores, tallies):
    """Log-potentials and states of some layers as they are; all pairs from a site onwards along an axis."""
    rows, n = shape[1], shape[2]
    near, where = np.empty((_MOST_NEIGHBOURS, n), np.uint8), np.empty((2, _MOST_NEIGHBOURS), np.int64)
    zero, one = np.int64(0), np.int64(1)
    for g in range(first, last):
        total = 0.0
        for j in range(rows):
            row = (g * rows + j) * n
            found = _gather(states, shape, ring, g, j, zero, one, near, where)
            total += _measure_row(states, row, zero, one, n, near, where, found, couplings, field, tallies, at, g)
        scores[at, g] = total


@kernel
def _alike(one, other):
    """How many sites of two rows are in the same state."""
    found = np.int64(0)
    for k in range(len(one)):
        found += np.int64(one[k] == other[k])
    return found


@kernel
def measure_uniform(states, shape, ring, couplings, field, first, last, at, scores, tallies):
    """As `measure_layers` where couplings differ by axis only and fields not at all: rows are compared as wholes."""
    layers, rows, n = shape[0], shape[1], shape[2]
    n_states = field.shape[1]
    for g in range(first, last):
        total = 0.0
        for j in range(rows):
            row = (g * rows + j) * n
            own = states[row : row + n]
            total += couplings[2, 0] * _alike(own[: n - 1], own[1:])
            if ring[2] and own[n - 1] == own[0]:
                total += couplings[2, 0]
            if j + 1 < rows or ring[1]:
                other = (g * rows + (j + 1) % rows) * n
                total += couplings[1, 0] * _alike(own, states[other : other + n])
            if g + 1 < layers or ring[0]:
                other = ((g + 1) % layers * rows + j) * n
                total += couplings[0, 0] * _alike(own, states[other : other + n])
            if n_states == 2:
                ups = np.int64(0)
                for k in range(n):
                    ups += own[k]
                tallies[at, g, 0] += n - ups
                tallies[at, g, 1] += ups
            else:
                for k in range(n):
                    tallies[at, g, own[k]] += 1
        for s in range(n_states):
            total += tallies[at, g, s] * field[0, s]
        scores[at, g] = total


@kernel
def typewriter_potts(states, shape, ring, couplings, field, streams, mode, sweeps):
    """Update all sites in row order, one after the other; arguments as for `advance_potts`, `LOGS` or `METROPOLIS`."""
    layers, rows, n = shape[0], shape[1], shape[2]
    n_states, lanes = field.shape[1], streams.shape[2]
    step, own = np.int64(couplings.shape[1] > 1), np.int64(field.shape[0] > 1)
    words, logs = np.empty(-(-2 * n // lanes) * lanes, np.uint64), np.empty(n_states)
    strides = (rows * n, n, 1)
    for _ in range(sweeps):
        for g in range(layers):
            for j in range(rows):
                fill_words(streams, g, words, 2 * n)
                for k in range(n):
                    site = (g * rows + j) * n + k
                    for s in range(n_states):
                        logs[s] = field[site * own, s]
                    for axis in range(3):
                        at = g if axis == 0 else (j if axis == 1 else k)
                        length = shape[axis]
                        if at + 1 < length or ring[axis]:
                            other = site + ((at + 1) % length - at) * strides[axis]
                            logs[states[other]] += couplings[axis, site * step]
                        if at > 0 or ring[axis]:
                            other = site + ((at - 1 + length) % length - at) * strides[axis]
                            logs[states[other]] += couplings[axis, other * step]
                    u = np.float64(words[2 * k] >> _ELEVEN) * UNIT
                    if mode == METROPOLIS:
                        old = np.int64(states[site])
                        new = min(np.int64(u * (n_states - 1)), n_states - 2)
                        if new >= old:
                            new += 1
                        v = np.float64(words[2 * k + 1] >> _ELEVEN) * UNIT
                        if v < WILLING * math.exp(min(logs[new] - logs[old], 0.0)):
                            states[site] = new
                        continue
                    top, total, chosen = -np.inf, 0.0, n_states - 1
                    for s in range(n_states):
                        top = max(top, logs[s])
                    for s in range(n_states):
                        logs[s] = math.exp(logs[s] - top)
                        total += logs[s]
                    x = u * total
                    for s in range(n_states - 1):
                        x -= logs[s]
                        if x < 0:
                            chosen = s
                            break
                    states[site] = chosen
