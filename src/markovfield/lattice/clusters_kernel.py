"""Cluster moves of Potts models on lattices: Swendsen-Wang, Wolff, and regions of equal states.

Lattices are laid out as in `lattice_spins`. Clusters are trees of sites in which a parent never has the larger number,
so that the root of a cluster is its first site, however its parts were joined: slabs of layers can be joined side by
side, and no draw depends on how many slabs there were. A move adds one number, modulo the number of states, to all
states of a cluster; so negative couplings between two states, which join sites that are unlike, are no special case.
"""

from __future__ import annotations

import math

import numpy as np

from markovfield.kernels.compiler import kernel
from markovfield.kernels.random import draw_bits, draw_index, draw_unit
from markovfield.lattice.random_kernel import UNIT, fill_words

__all__ = ["advance_wolff", "apply_shifts", "draw_shifts", "join_border", "join_slab", "label_regions", "sum_fields"]

_ELEVEN = np.uint64(11)


@kernel
def _draw_bonds(own, others, words, couplings, thresholds, at, step, axis, bits):
    """Set a bit where a site has a bond to the one beside it in ``others``: it agrees with the coupling, and a draw."""
    if step == 0:
        alike, threshold = couplings[0] >= 0.0, thresholds[0]
        for k in range(len(others)):
            bits[k] |= np.uint8(((own[k] == others[k]) == alike) & (words[k] < threshold)) << axis
        return
    for k in range(len(others)):
        like = couplings[at + k * step] >= 0.0
        bond = ((own[k] == others[k]) == like) & (words[k] < thresholds[at + k * step])
        bits[k] |= np.uint8(bond) << axis


@kernel
def join_slab(states, shape, ring, couplings, thresholds, streams, first, last, parent, bonds):
    """Draw the bonds from each site of some layers onwards, and join the sites of these layers that they connect.

    Parameters
    ----------
    couplings, thresholds
        ``float64[3, n or 1]``, of which the sign is read, and ``uint64[3, n or 1]``: the probability of a bond between
        sites that agree with the coupling, times 2^64.
    streams
        ``uint64[layers, 4, lanes]``.
    parent, bonds
        ``int32[n]`` and ``uint8[n]``, which are filled; bonds into the next layer, bit 0, are joined by
        `join_border` where that layer is not one of these.
    """
    layers, rows, n = shape[0], shape[1], shape[2]
    lanes, step = streams.shape[2], np.int64(thresholds.shape[1] > 1)
    words, joined = np.empty(-(-n // lanes) * lanes, np.uint64), np.empty(3 * n + 1, np.int64)
    for site in range(first * rows * n, last * rows * n):
        parent[site] = site
    for g in range(first, last):
        for j in range(rows):
            row, found = (g * rows + j) * n, 0
            own, bits = states[row : row + n], bonds[row : row + n]
            bits[:] = 0
            for axis in range(3):
                at = g if axis == 0 else (j if axis == 1 else 0)
                if at + 1 == shape[axis] and not ring[axis]:
                    continue
                onwards = rows * n if axis == 0 else (n if axis == 1 else 1)
                # Back to the first layer or row from the last; along a row that is its last site's, below.
                beyond = row + onwards * (1 if axis == 2 or at + 1 < shape[axis] else 1 - shape[axis])
                count = n - 1 if axis == 2 else n
                fill_words(streams, g, words, n)
                _draw_bonds(own, states[beyond : beyond + count], words, couplings[axis], thresholds[axis],
                            row * step, step, axis, bits)  # fmt: skip
                if axis == 2 and ring[2]:
                    _draw_bonds(own[n - 1 :], states[row : row + 1], words[n - 1 :], couplings[2], thresholds[2],
                                (row + n - 1) * step, step, axis, bits[n - 1 :])  # fmt: skip
                if axis == 0 and (g + 1 == last or g + 1 == layers):
                    continue
                # Which sites to join, listed without a branch that nobody can foretell.
                for k in range(n):
                    joined[found] = 3 * k + axis
                    found += (bits[k] >> axis) & 1
            for e in range(found):
                k, axis = joined[e] // 3, joined[e] % 3
                a = row + k
                if axis == 2:
                    b = a + 1 if k + 1 < n else row
                elif axis == 1:
                    b = a + n if j + 1 < rows else a - n * (rows - 1)
                else:
                    b = a + rows * n
                while parent[a] != a:
                    parent[a] = parent[parent[a]]
                    a = parent[a]
                while parent[b] != b:
                    parent[b] = parent[parent[b]]
                    b = parent[b]
                parent[max(a, b)] = min(a, b)


@kernel
def join_border(shape, layer, parent, bonds):
    """Join a layer to the next by the bonds between them."""
    layers, size = shape[0], shape[1] * shape[2]
    onwards = size if layer + 1 < layers else -size * (layers - 1)
    for site in range(layer * size, (layer + 1) * size):
        if bonds[site] & 1:
            a, b = site, site + onwards
            while parent[a] != a:
                parent[a] = parent[parent[a]]
                a = parent[a]
            while parent[b] != b:
                parent[b] = parent[parent[b]]
                b = parent[b]
            parent[max(a, b)] = min(a, b)


@kernel
def sum_fields(states, parent, field, sums):
    """For the roots, the field of their clusters' sites if all states had something added: ``float64[n, n_states]``."""
    n_states, own = field.shape[1], np.int64(field.shape[0] > 1)
    for site in range(len(states)):
        root = parent[site]
        # Parents come first and are roots by now, so that one step gets there.
        root = parent[root]
        parent[site] = root
        if root == site:
            for s in range(n_states):
                sums[site, s] = 0.0
        for s in range(n_states):
            sums[root, s] += field[site * own, (np.int64(states[site]) + s) % n_states]


@kernel
def draw_shifts(shape, n_states, parent, sums, streams, first, last, shift):
    """For the roots in some layers, what is added to the states of their clusters; no sums: all equally likely."""
    layer, lanes, weighted = shape[1] * shape[2], streams.shape[2], len(sums) > 0
    words = np.empty(-(-layer // lanes) * lanes, np.uint64)
    for g in range(first, last):
        fill_words(streams, g, words, layer)
        for k in range(layer):
            site = g * layer + k
            if parent[site] != site:
                continue
            u = np.float64(words[k] >> _ELEVEN) * UNIT
            if not weighted:
                shift[site] = min(np.int64(u * n_states), n_states - 1)
                continue
            top, total, chosen = -np.inf, 0.0, n_states - 1
            for s in range(n_states):
                top = max(top, sums[site, s])
            for s in range(n_states):
                sums[site, s] = math.exp(sums[site, s] - top)
                total += sums[site, s]
            x = u * total
            for s in range(n_states - 1):
                x -= sums[site, s]
                if x < 0:
                    chosen = s
                    break
            shift[site] = chosen


@kernel
def apply_shifts(states, shape, n_states, parent, shift, first, last):
    """Add to the states of some layers what their roots drew."""
    layer = shape[1] * shape[2]
    for site in range(first * layer, last * layer):
        root = parent[site]
        while parent[root] != root:
            root = parent[root]
        new = np.int64(states[site]) + shift[root]
        states[site] = new - n_states if new >= n_states else new


@kernel
def advance_wolff(states, shape, ring, couplings, thresholds, field, stream, clusters, mark, stack):
    """Grow clusters from random sites, one after the other, and move each as a whole.

    ``mark`` is ``int32[n]`` with the number of the last cluster that a site was in, which goes on from that in its last
    entry, ``mark[n]``; ``stack`` is ``int32[n]``. A field has a say when a cluster is complete: its move is then
    accepted with the Metropolis probability.
    """
    layers, rows, n = shape[0], shape[1], shape[2]
    n_states, step, own = field.shape[1], np.int64(thresholds.shape[1] > 1), np.int64(field.shape[0] > 1)
    strides, size = (rows * n, n, 1), layers * rows * n
    for _ in range(clusters):
        mark[size] += 1
        number = mark[size]
        shift = 1 + draw_index(stream, n_states - 1)
        stack[0] = draw_index(stream, size)
        mark[stack[0]] = number
        read, grown, gain = 0, 1, 0.0
        while read < grown:
            site = np.int64(stack[read])
            read += 1
            state = np.int64(states[site])
            gain += field[site * own, (state + shift) % n_states] - field[site * own, state]
            for axis in range(3):
                length = shape[axis]
                at = site // strides[axis] % length
                for later in range(2):
                    edge_of = at + 1 == length if later else at == 0
                    if edge_of and not ring[axis]:
                        continue
                    if later:
                        other = site + strides[axis] * (1 - length if edge_of else 1)
                    else:
                        other = site + strides[axis] * (length - 1 if edge_of else -1)
                    if mark[other] == number:
                        continue
                    edge = (site if later else other) * step
                    like = couplings[axis, edge] >= 0.0
                    if (states[other] == state) == like and draw_bits(stream) < thresholds[axis, edge]:
                        mark[other] = number
                        stack[grown] = other
                        grown += 1
        if gain >= 0.0 or draw_unit(stream) < math.exp(gain):
            for q in range(grown):
                states[stack[q]] = (np.int64(states[stack[q]]) + shift) % n_states


@kernel
def label_regions(states, shape, ring, parent):
    """Connected regions of equal states: ``parent`` becomes the first site of each site's region."""
    layers, rows, n = shape[0], shape[1], shape[2]
    for site in range(len(states)):
        parent[site] = site
    for g in range(layers):
        for j in range(rows):
            for k in range(n):
                site = (g * rows + j) * n + k
                for axis in range(3):
                    at = g if axis == 0 else (j if axis == 1 else k)
                    stride = rows * n if axis == 0 else (n if axis == 1 else 1)
                    length = shape[axis]
                    if at + 1 == length and not ring[axis]:
                        continue
                    other = site + stride if at + 1 < length else site - stride * (length - 1)
                    if states[other] != states[site]:
                        continue
                    a, b = site, other
                    while parent[a] != a:
                        parent[a] = parent[parent[a]]
                        a = parent[a]
                    while parent[b] != b:
                        parent[b] = parent[parent[b]]
                        b = parent[b]
                    parent[max(a, b)] = min(a, b)
    for site in range(len(states)):
        parent[site] = parent[parent[site]]
