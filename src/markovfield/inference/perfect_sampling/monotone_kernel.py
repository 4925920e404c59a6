"""Coupling from the past, for spins that pull each other the same way or for bonds (Propp and Wilson 1996).

Invariant: sweeps of one block always use the same draws, and sweeps of one chain and of two consume them alike: without
that samples would not be exact. Free to change: how work is counted.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from markovfield.inference.perfect_sampling.random_cluster_kernel import colour_clusters, sweep_bonds, sweep_bonds_both
from markovfield.kernels.compiler import kernel
from markovfield.kernels.random import draw_bits, draw_unit
from markovfield.kernels.union_find import flatten, unite

__all__ = ["DONE", "MORE", "NOT_MET", "Past", "SpinGraph", "perfect", "signed_sets"]

DONE, MORE, NOT_MET = 0, 1, 2
# Entries of ``Past.at``.
_SAMPLE, _LEVEL, _BLOCK, _LEFT, _MET, _BEGUN, _LOWEST, _SWEEPS, _WORK = 0, 1, 2, 3, 4, 5, 6, 7, 8


class SpinGraph(NamedTuple):
    """Spins 0 and 1 with log-odds of 1, given the others, of ``odds[i]`` plus a ``pull >= 0`` for each 1 beside it.

    ``other`` and ``pull`` list each pair twice, those of spin i from ``offsets[i]`` to ``offsets[i + 1]``.
    """

    odds: Any
    offsets: Any
    other: Any
    pull: Any


class Past(NamedTuple):
    """Where a run of `perfect` has come to, so that it can be cut into calls.

    Attributes
    ----------
    at
        ``int64[9]``, zeros at the start.
    seeds
        ``uint64[levels, 4]``: the stream of each block of sweeps. Block 0 is the last sweep, block b the 2^(b - 1)
        sweeps before the last 2^(b - 1).
    stream
        ``uint64[4]``: the stream of the present block.
    top, bottom
        ``int8``: the Markov chains that started from all ones and all zeros; of spins, or of bonds.
    """

    at: Any
    seeds: Any
    stream: Any
    top: Any
    bottom: Any

    @property
    def sweeps(self) -> int:
        """Sweeps so far, over all samples and levels."""
        return int(self.at[_SWEEPS])


@kernel
def signed_sets(n, first, second, negative):
    """Sets of signed spins ``int32[2 n]``, i and its opposite n + i, joined by pairs that say which signs go together.

    Where a spin and its opposite are in one set, the pairs contradict each other: the model is frustrated.
    """
    parent = np.empty(2 * n, np.int32)
    for i in range(2 * n):
        parent[i] = i
    for e in range(len(first)):
        i, j = first[e], second[e]
        turn = n if negative[e] else 0
        unite(parent, i, j + turn)
        unite(parent, i + n, j + n - turn)
    flatten(parent)
    return parent


@kernel
def _logistic(stream):
    """A draw from the logistic distribution: log-odds above it say 1."""
    u = draw_unit(stream)
    return math.log(u / (1.0 - u)) if u > 0.0 else -np.inf


@kernel
def _sweep_both(graph, top, bottom, stream):
    """One heat-bath sweep of both Markov chains with the same draws; answers how many spins differ."""
    apart = 0
    for i in range(len(top)):
        high = graph.odds[i]
        low = high
        for h in range(graph.offsets[i], graph.offsets[i + 1]):
            j = graph.other[h]
            high += graph.pull[h] * top[j]
            low += graph.pull[h] * bottom[j]
        draw = _logistic(stream)
        top[i] = high > draw
        bottom[i] = low > draw
        apart += top[i] != bottom[i]
    return apart


@kernel
def _sweep(graph, spins, stream):
    """One heat-bath sweep of one Markov chain, with the draws that `_sweep_both` would use."""
    for i in range(len(spins)):
        odds = graph.odds[i]
        for h in range(graph.offsets[i], graph.offsets[i + 1]):
            odds += graph.pull[h] * spins[graph.other[h]]
        spins[i] = odds > _logistic(stream)


@kernel
def _start_level(past, level):
    """Put both Markov chains at time -2^level."""
    past.at[_LEVEL] = level
    past.at[_MET] = 0
    for i in range(len(past.top)):
        past.top[i] = 1
        past.bottom[i] = 0
    _start_block(past, level)


@kernel
def _start_block(past, block):
    past.at[_BLOCK] = block
    past.at[_LEFT] = 1 if block == 0 else np.int64(1) << (block - 1)
    for k in range(4):
        past.stream[k] = past.seeds[block, k]


@kernel
def _sweep_past(spins, bonds, past):
    """One sweep of the Markov chains, which are of bonds where there are any; answers the work done."""
    met = past.at[_MET] != 0
    if len(bonds.first):
        if met:
            return sweep_bonds(bonds, past.top, past.stream)
        different, work = sweep_bonds_both(bonds, past.top, past.bottom, past.stream)
    else:
        work = len(spins.odds) + len(spins.other)
        if met:
            _sweep(spins, past.top, past.stream)
            return work
        different = _sweep_both(spins, past.top, past.bottom, past.stream)
    past.at[_MET] = different == 0
    return work


@kernel
def perfect(spins, bonds, budget, streams, past, states):
    """Draw exact samples into ``states`` (``int32[size, n]``), one for each of ``streams``, until ``budget`` is used.

    Both Markov chains start 2^level sweeps in the past; where they have not met at time zero, they start twice as far
    back, with new draws for the earlier sweeps and the same ones for the later. The state at time zero is the same for
    every start that is far enough back, so a level that served the last sample is a good start for the next.

    Answers `DONE`, `MORE` (call again) or `NOT_MET` where the levels were not enough. The budget is of pairs looked at.
    """
    at = past.at
    levels = len(past.seeds)
    while at[_SAMPLE] < len(streams):
        sample = at[_SAMPLE]
        if at[_BEGUN] == 0:
            for b in range(levels):
                for k in range(4):
                    past.seeds[b, k] = draw_bits(streams[sample])
                past.seeds[b, 0] |= np.uint64(1)
            _start_level(past, at[_LOWEST])
            at[_BEGUN] = 1
        while at[_LEFT] > 0:
            if budget <= 0:
                return MORE
            work = _sweep_past(spins, bonds, past)
            at[_LEFT] -= 1
            at[_SWEEPS] += 1
            at[_WORK] += work
            budget -= work
        if at[_BLOCK] > 0:
            _start_block(past, at[_BLOCK] - 1)
        elif at[_MET]:
            if len(bonds.first):
                colour_clusters(bonds, past.top, streams[sample], states[sample])
            else:
                for i in range(len(past.top)):
                    states[sample, i] = past.top[i]
            at[_LOWEST] = max(0, at[_LEVEL] - 1)
            at[_BEGUN] = 0
            at[_SAMPLE] += 1
        elif at[_LEVEL] + 1 < levels:
            _start_level(past, at[_LEVEL] + 1)
        else:
            return NOT_MET
    return DONE
