"""Moves of one variable at a time: layout of conditional distributions, heat bath, Metropolis, coloured shards.

A site is a free variable at its place in the scan. Sites with a small Markov blanket have their conditional
distributions in tables, cumulated and indexed by the states of the blanket: a move is then a few products, one random
number and one look-up. Other sites add up the log-potentials of their factors.

Replicas of a model at several temperatures that move by themselves and trade places.

Invariant: replicas lie coldest first in one row of states, their counters behind them, so that the row and the stream
are all a chain needs to go on; even and odd pairs are swapped in turn.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from markovfield.kernels.compiler import kernel
from markovfield.kernels.random import draw_bits, draw_index, draw_unit

__all__ = [
    "CONDITIONAL",
    "DIRECT",
    "HEAT_BATH",
    "LINEAR",
    "UNIFORM",
    "WILLING",
    "Sites",
    "advance_colours",
    "advance_shard",
    "advance_sites",
    "blankets",
    "colour_sites",
    "fill_rows",
    "fill_tables",
    "move_sites",
    "shard_seeds",
    "temper",
    "total_score",
]


HEAT_BATH, UNIFORM, CONDITIONAL = np.int64(0), np.int64(1), np.int64(2)
# In place of where a site's table starts: it has none, and its log-odds are linear; or its factors must be added up.
LINEAR, DIRECT = -2, -1
# What Metropolis probabilities of acceptance are multiplied by. Were moves that cost nothing always made, sites scanned
# in order would be turned in step with each other: such chains are periodic, or never come to some of the states.
WILLING = 15.0 / 16.0


class Sites(NamedTuple):
    """What single-site moves read.

    ``variable``, ``card``, ``value``: of each site, its variable, states and place among all states. ``table``: where
    its cumulated conditionals start, or `LINEAR` or `DIRECT`. ``link_offsets``,
    ``link_variable``, ``link_stride``: its blanket, and what
    a state there adds to the place in ``table``. ``weight`` (of links), ``bias``: log-odds of the second state of a
    `LINEAR` site. ``entry_offsets``: its factors, each with ``entry_base``,
    ``entry_stride`` (of the site's own axis) and, from ``other_offsets``, the other axes. ``unary``: log-likelihood of
    every state, or empty. ``width``: the most states of a site.
    """

    variable: Any
    card: Any
    value: Any
    table: Any
    link_offsets: Any
    link_variable: Any
    link_stride: Any
    weight: Any
    bias: Any
    entry_offsets: Any
    entry_base: Any
    entry_stride: Any
    other_offsets: Any
    other_variable: Any
    other_stride: Any
    unary: Any
    log_tables: Any
    width: Any


@kernel
def blankets(variable, entry_offsets, other_offsets, other_variable, n):  # type: ignore[no-untyped-def]
    """The other variables in the factors of each site, each once: offsets and variables."""
    seen = np.full(n, -1, np.int64)
    offsets = np.zeros(len(variable) + 1, np.int64)
    for i in range(len(variable)):
        count = 0
        for k in range(other_offsets[entry_offsets[i]], other_offsets[entry_offsets[i + 1]]):
            if seen[other_variable[k]] != i:
                seen[other_variable[k]] = i
                count += 1
        offsets[i + 1] = offsets[i] + count
    links = np.empty(offsets[-1], np.int32)
    seen[:] = -1
    for i in range(len(variable)):
        at = offsets[i]
        for k in range(other_offsets[entry_offsets[i]], other_offsets[entry_offsets[i + 1]]):
            if seen[other_variable[k]] != i:
                seen[other_variable[k]] = i
                links[at] = other_variable[k]
                at += 1
    return offsets, links


@kernel
def colour_sites(variable, link_offsets, link_variable, n):  # type: ignore[no-untyped-def]
    """A colour of each site, greedily in order, so that no two in one factor share one."""
    colour = np.full(n, -1, np.int64)
    out = np.empty(len(variable), np.int64)
    taken = np.full(len(variable) + 1, -1, np.int64)
    for i in range(len(variable)):
        for k in range(link_offsets[i], link_offsets[i + 1]):
            c = colour[link_variable[k]]
            if c >= 0:
                taken[c] = i
        c = 0
        while taken[c] == i:
            c += 1
        colour[variable[i]] = out[i] = c
    return out


@kernel
def _conditional(  # type: ignore[no-untyped-def]
    i, card, value, entry_offsets, entry_base, entry_stride, other_offsets, other_variable, other_stride, unary,
    log_tables, beta, states, cumulated,
):  # fmt: skip
    """Cumulated probabilities of a site's states given the others, in ``cumulated``: all but the last, which is one."""
    for k in range(card):
        cumulated[k] = unary[value + k] if len(unary) else 0.0
    for e in range(entry_offsets[i], entry_offsets[i + 1]):
        cell = entry_base[e]
        for j in range(other_offsets[e], other_offsets[e + 1]):
            cell += other_stride[j] * states[other_variable[j]]
        for k in range(card):
            cumulated[k] += log_tables[cell + k * entry_stride[e]]
    top = -np.inf
    for k in range(card):
        top = max(top, cumulated[k])
    if top == -np.inf:
        top = 0.0  # states that no chain can come to; what is written there does not matter
    total = 0.0
    for k in range(card):
        # A hard zero stays one at every temperature.
        total += math.exp(beta * (cumulated[k] - top)) if cumulated[k] > -np.inf else 0.0
        cumulated[k] = total
    for k in range(card - 1):
        cumulated[k] = cumulated[k] / total if cumulated[k] < total else 1.0


@kernel
def fill_tables(sites, cardinalities, beta, cumulated):  # type: ignore[no-untyped-def]
    """The tables of all sites that have one, at inverse temperature ``beta``."""
    states = np.zeros(len(cardinalities), np.int32)
    work = np.empty(sites.width)
    for i in range(len(sites.variable)):
        at = sites.table[i]
        if at < 0:
            continue
        first, last, steps = sites.link_offsets[i], sites.link_offsets[i + 1], sites.card[i] - 1
        for j in range(first, last):
            states[sites.link_variable[j]] = 0
        while True:
            _conditional(
                i, sites.card[i], sites.value[i], sites.entry_offsets, sites.entry_base, sites.entry_stride,
                sites.other_offsets, sites.other_variable, sites.other_stride, sites.unary, sites.log_tables, beta,
                states, work,
            )  # fmt: skip
            for k in range(steps):
                cumulated[at + k] = work[k]
            # The blanket's next configuration, last variable fastest as its strides have it.
            at += steps
            j = last - 1
            while j >= first:
                u = sites.link_variable[j]
                states[u] += 1
                if states[u] < cardinalities[u]:
                    break
                states[u] = 0
                j -= 1
            if j < first:
                break


@kernel
def _pick(cumulated, at, card, u):  # type: ignore[no-untyped-def]
    """The state where u falls: counted rather than searched for, since a guess of where to stop is often wrong."""
    state = 0
    for k in range(card - 1):
        state += u >= cumulated[at + k]
    return state


@kernel
def _chance(cumulated, at, card, k):  # type: ignore[no-untyped-def]
    """The probability of state k."""
    above = cumulated[at + k] if k < card - 1 else 1.0
    return above - (cumulated[at + k - 1] if k > 0 else 0.0)


@kernel
def _metropolis(cumulated, at, card, old, rule, stream):  # type: ignore[no-untyped-def]
    """A state other than the old one, proposed and accepted (never for sure: see `WILLING`), or the old one."""
    before = _chance(cumulated, at, card, np.int64(old))
    if card == 2 or rule == UNIFORM:
        k = 1 - old if card == 2 else draw_index(stream, card - 1)
        if card > 2 and k >= old:
            k += 1
        after = _chance(cumulated, at, card, k)
        # By a ratio of at most one, which also lets go of a state whose own probability was rounded to zero.
        ratio = 1.0 if after >= before else after / before
        return k if after > 0.0 and draw_unit(stream) < WILLING * ratio else old
    # From the conditional without the old state (Liu 1996): it leaves more often than a heat bath does.
    rest = 1.0 - before
    u = draw_unit(stream) * rest
    k = np.int64(-1)
    for j in range(card):
        if j != old:
            chance = _chance(cumulated, at, card, j)
            if chance > 0.0:
                k = np.int64(j)
                if u < chance:
                    break
                u -= chance
    if k < 0:
        return old
    others = 1.0 - _chance(cumulated, at, card, k)
    ratio = 1.0 if rest >= others else rest / others
    return k if draw_unit(stream) < WILLING * ratio else old


@kernel
def _odds(i, link_offsets, link_variable, weight, bias, beta, states):  # type: ignore[no-untyped-def]
    """The probability of the first of two states, whose log-odds are linear in the states of the blanket."""
    field = bias[i]
    for j in range(link_offsets[i], link_offsets[i + 1]):
        field += weight[j] * states[link_variable[j]]
    return 1.0 / (1.0 + math.exp(beta * field))


@kernel
def _draw(cumulated, at, card, old, rule, stream):  # type: ignore[no-untyped-def]
    """A new state by any of the rules."""
    if rule == HEAT_BATH:
        return _pick(cumulated, at, card, draw_unit(stream))
    return _metropolis(cumulated, at, card, old, rule, stream)


@kernel
def move_sites(sites, cumulated, rule, beta, begin, end, at_random, states, stream, work, sums):  # type: ignore[no-untyped-def]
    """Move the sites from ``begin`` to ``end`` in order, or as many of all at random.

    Unless it is empty, the conditional distributions they were drawn from are added to ``sums``. Arrays are taken out
    of the tuple once, since doing so for every move would cost more than the move.
    """
    variable, cards, values, tables = sites.variable, sites.card, sites.value, sites.table
    link_offsets, link_variable, link_stride = sites.link_offsets, sites.link_variable, sites.link_stride
    weight, bias = sites.weight, sites.bias
    entry_offsets, entry_base, entry_stride = sites.entry_offsets, sites.entry_base, sites.entry_stride
    other_offsets, other_variable, other_stride = sites.other_offsets, sites.other_variable, sites.other_stride
    unary, log_tables = sites.unary, sites.log_tables
    n, summing, front, heat_bath = len(variable), len(sums) > 0, np.int64(0), rule == HEAT_BATH
    for turn in range(begin, end):
        i = draw_index(stream, n) if at_random else np.int64(turn)
        at = tables[i]
        card, v = cards[i], variable[i]
        if at >= 0:
            for j in range(link_offsets[i], link_offsets[i + 1]):
                at += link_stride[j] * states[link_variable[j]]
            if heat_bath:
                states[v] = _pick(cumulated, at, card, draw_unit(stream))
            else:
                states[v] = _metropolis(cumulated, at, card, np.int64(states[v]), rule, stream)
            if summing:
                for k in range(card):
                    sums[values[i] + k] += _chance(cumulated, at, card, np.int64(k))
            continue
        if at == LINEAR:
            work[0] = _odds(i, link_offsets, link_variable, weight, bias, beta, states)
        else:
            _conditional(
                i, card, values[i], entry_offsets, entry_base, entry_stride, other_offsets, other_variable,
                other_stride, unary, log_tables, beta, states, work,
            )  # fmt: skip
        states[v] = _draw(work, front, card, np.int64(states[v]), rule, stream)
        if summing:
            for k in range(card):
                sums[values[i] + k] += _chance(work, front, card, np.int64(k))


@kernel
def advance_sites(sites, cumulated, rule, scan, beta, states, stream, sweeps, sums):  # type: ignore[no-untyped-def]
    """Sweeps over all sites: in order, or (``scan`` true) each at a random one.

    ``sums`` is empty, or over all states: an estimate of their probabilities is added after every sweep. In order, that
    is the conditional distribution each site was drawn from; at random, the state it has.
    """
    n = len(sites.variable)
    work, nothing = np.empty(sites.width), np.empty(0)
    local = stream.copy()
    for _ in range(sweeps):
        move_sites(sites, cumulated, rule, beta, np.int64(0), n, scan, states, local, work, nothing if scan else sums)
        if scan and len(sums):
            for i in range(n):
                sums[sites.value[i] + states[sites.variable[i]]] += 1.0
    for k in range(4):
        stream[k] = local[k]


@kernel
def fill_rows(sites, cumulated, rule, scan, beta, states, stream, thinning, rows):  # type: ignore[no-untyped-def]
    """``thinning`` sweeps before each row; then the states are written there."""
    nothing = np.empty(0)
    for r in range(rows.shape[0]):
        advance_sites(sites, cumulated, rule, scan, beta, states, stream, thinning, nothing)
        for v in range(rows.shape[1]):
            rows[r, v] = states[v]


@kernel
def shard_seeds(stream, seeds):  # type: ignore[no-untyped-def]
    """A seed for every shard of a sweep, from the Markov chain's stream."""
    for k in range(len(seeds)):
        seeds[k] = draw_bits(stream)


@kernel
def advance_shard(sites, cumulated, rule, begin, end, seed, states, sums):  # type: ignore[no-untyped-def]
    """Move the sites of a shard, with random numbers of its own."""
    work = np.empty(sites.width)
    stream = np.empty(4, np.uint64)
    z = seed
    for k in range(4):
        # Words of SplitMix64 (Steele, Lea and Flood 2014).
        z += np.uint64(0x9E3779B97F4A7C15)
        y = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        y = (y ^ (y >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        stream[k] = y ^ (y >> np.uint64(31))
    move_sites(sites, cumulated, rule, 1.0, begin, end, np.bool_(False), states, stream, work, sums)


@kernel
def advance_colours(sites, cumulated, rule, begins, ends, states, stream, sweeps, sums):  # type: ignore[no-untyped-def]
    """Sweeps shard after shard, each with a seed from the Markov chain's stream: as on threads, without them."""
    seeds = np.empty(len(begins), np.uint64)
    for _ in range(sweeps):
        shard_seeds(stream, seeds)
        for k in range(len(begins)):
            advance_shard(sites, cumulated, rule, begins[k], ends[k], seeds[k], states, sums)


@kernel
def total_score(scope_offsets, scopes, table_offsets, table_strides, log_tables, unary, value_offsets, states):  # type: ignore[no-untyped-def]
    """Sum of the log-potentials and log-likelihoods of an assignment."""
    total = 0.0
    for f in range(len(table_offsets)):
        cell = table_offsets[f]
        for k in range(scope_offsets[f], scope_offsets[f + 1]):
            cell += table_strides[k] * states[scopes[k]]
        total += log_tables[cell]
    if len(unary):
        for v in range(len(states)):
            total += unary[value_offsets[v] + states[v]]
    return total


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
