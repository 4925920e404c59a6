"""Replicas of a model at several temperatures that move by themselves and trade places.

Invariant: replicas lie coldest first in one row of states, their counters behind them, so that the row and the stream
are all a chain needs to go on; even and odd pairs are swapped in turn.
"""

from __future__ import annotations

import math

import numpy as np

from markovfield.inference.gibbs.single_site_kernel import move_sites, total_score
from markovfield.kernels.compiler import kernel
from markovfield.kernels.random import draw_unit

__all__ = ["temper"]


@kernel
def temper(  # type: ignore[no-untyped-def]
    sites, tables, rule, betas, every, scope_offsets, scopes, table_offsets, table_strides, value_offsets, n, states,
    stream, sweeps, rejected, sums,
):  # fmt: skip
    """Sweeps of all replicas, and after every so many of them swaps of neighbours, even pairs and odd pairs in turn.

    ``states`` has the replicas one after the other, coldest first, each of ``n`` variables; then the sweeps so far, and
    of each pair of neighbours how often a swap was tried and how often it happened. ``tables`` is ``float64[replicas,
    cells]``. ``rejected`` (one entry a pair) gathers the probabilities with which swaps were not to happen. ``sums`` is
    that of `move_sites`, for the coldest.
    """
    replicas = len(betas)
    clock = replicas * n
    work, scores, nothing = np.empty(sites.width), np.empty(replicas), np.empty(0)
    count = len(sites.variable)
    for _ in range(sweeps):
        for r in range(replicas):
            own = states[r * n : (r + 1) * n]
            move_sites(
                sites,
                tables[r],
                rule,
                betas[r],
                np.int64(0),
                count,
                np.bool_(False),
                own,
                stream,
                work,
                sums if r == 0 else nothing,
            )
        # Wraps around after 2^30 sweeps, long before it overflows.
        states[clock] = (states[clock] + 1) % (1 << 30)
        if states[clock] % every != 0:
            continue
        for r in range(replicas):
            scores[r] = total_score(
                scope_offsets, scopes, table_offsets, table_strides, sites.log_tables, sites.unary, value_offsets,
                states[r * n : (r + 1) * n],
            )  # fmt: skip
        for r in range(states[clock] // every % 2, replicas - 1, 2):
            gain = (betas[r] - betas[r + 1]) * (scores[r + 1] - scores[r])
            chance = math.exp(min(gain, 0.0))
            rejected[r] += 1.0 - chance
            states[clock + 1 + r] += 1
            if draw_unit(stream) < chance:
                states[clock + replicas + r] += 1
                scores[r], scores[r + 1] = scores[r + 1], scores[r]
                for v in range(r * n, (r + 1) * n):
                    states[v], states[v + n] = states[v + n], states[v]
