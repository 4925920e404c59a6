"""The pool of log-potentials in linear space, and how far each factor's potentials are spread.

Invariant: one shift for the whole pool; `linear_pool` says whether a supported cell was lost, and then callers stay in
log space.

Evidence as likelihoods of variables' states: entering observed states, and going to linear space.

Invariant: flat over all states, -1 for a variable that is not observed; what was taken out of the likelihoods is
returned, so that log Z stays exact.
"""

from __future__ import annotations

import math

import numpy as np

from markovfield.kernels.compiler import kernel
from markovfield.kernels.exponential import exp_scalar, fill_exp

__all__ = ["enter_states", "factor_ranges", "linear_pool", "same_table", "scale_likelihoods"]


@kernel
def linear_pool(log_tables, out):
    """Write exp(log_tables - shift) to ``out``; returns the shift and whether no supported cell was lost.

    The shift is the pool's maximum, or zero where that is small anyway: conditional probabilities stay as they are.
    """
    top, bottom = -np.inf, np.inf
    for i in range(len(log_tables)):
        x = log_tables[i]
        top = max(top, x)
        if x > -np.inf:
            bottom = min(bottom, x)
    shift = top if (top > 30.0 or top < -30.0) and top > -np.inf else 0.0
    fill_exp(out, log_tables, shift)
    return shift, bottom - shift > -650.0


@kernel
def factor_ranges(cardinalities, scope_offsets, scopes, table_offsets, table_strides, pool):
    """log2 of each factor's smallest positive and largest potential (both 0 for one that is zero everywhere)."""
    m = len(table_offsets)
    low, high = np.zeros(m), np.zeros(m)
    widest = 1
    for f in range(m):
        widest = max(widest, scope_offsets[f + 1] - scope_offsets[f])
    counter = np.zeros(widest, np.int64)
    for f in range(m):
        start, stop = scope_offsets[f], scope_offsets[f + 1]
        if f and same_table(f, scope_offsets, scopes, cardinalities, table_offsets, table_strides):
            low[f], high[f] = low[f - 1], high[f - 1]
            continue
        smallest, largest = np.inf, 0.0
        at = table_offsets[f]
        inner_card, inner_stride = 1, 0
        if stop > start and table_strides[stop - 1] != 0:
            inner_card, inner_stride = cardinalities[scopes[stop - 1]], table_strides[stop - 1]
        n_outer = max(0, stop - start - 1)
        counter[:n_outer] = 0
        while True:
            for j in range(inner_card):
                x = pool[at + j * inner_stride]
                largest = max(largest, x)
                if x > 0.0:
                    smallest = min(smallest, x)
            a = n_outer - 1
            while a >= 0:
                if table_strides[start + a] == 0:
                    # Every state of this axis reads the same cells.
                    a -= 1
                    continue
                counter[a] += 1
                at += table_strides[start + a]
                if counter[a] < cardinalities[scopes[start + a]]:
                    break
                at -= table_strides[start + a] * counter[a]
                counter[a] = 0
                a -= 1
            if a < 0:
                break
        if largest > 0.0:
            low[f], high[f] = math.log2(smallest), math.log2(largest)
    return low, high


@kernel
def same_table(f, scope_offsets, scopes, cardinalities, table_offsets, table_strides):
    """Whether factor f reads the very cells of the factor before it (tied tables come in runs)."""
    if table_offsets[f] != table_offsets[f - 1]:
        return False
    width = scope_offsets[f + 1] - scope_offsets[f]
    if width != scope_offsets[f] - scope_offsets[f - 1]:
        return False
    for i in range(width):
        here, before = scope_offsets[f] + i, scope_offsets[f - 1] + i
        if table_strides[here] != table_strides[before]:
            return False
        if cardinalities[scopes[here]] != cardinalities[scopes[before]]:
            return False
    return True


LOWEST = -650.0
"""A log-likelihood this far below the variable's largest is lost in linear space."""


@kernel
def enter_states(states, value_offsets, likelihood, active):
    """Rule out, in a log-likelihood over all states, every state but the observed one; -1 is not observed.

    A state of -2 is one that hard zeros exclude: everything is ruled out. Returns whether every variable with a
    likelihood still has a possible state.
    """
    possible = True
    for v in range(len(states)):
        start, stop = value_offsets[v], value_offsets[v + 1]
        if states[v] != -1:
            active[v] = True
            for i in range(start, stop):
                if i - start != states[v]:
                    likelihood[i] = -np.inf
        if active[v]:
            top = -np.inf
            for i in range(start, stop):
                top = max(top, likelihood[i])
            possible = possible and top > -np.inf
    return possible


@kernel
def scale_likelihoods(likelihood, value_offsets, active, linear, low):
    """Likelihoods in linear space, each variable's largest one; log2 of each variable's smallest positive one.

    Returns the log of what was taken out of them all, -inf when a variable has no possible state, and whether every
    supported state survived.
    """
    taken, safe = 0.0, True
    for v in range(len(active)):
        start, stop = value_offsets[v], value_offsets[v + 1]
        if not active[v]:
            for i in range(start, stop):
                linear[i] = 1.0
            continue
        top, bottom = -np.inf, np.inf
        for i in range(start, stop):
            top = max(top, likelihood[i])
            if likelihood[i] > -np.inf:
                bottom = min(bottom, likelihood[i])
        if top == -np.inf:
            return -np.inf, safe
        taken += top
        safe = safe and bottom - top > LOWEST
        low[v] = (bottom - top) / math.log(2.0)
        for i in range(start, stop):
            linear[i] = exp_scalar(likelihood[i] - top)
    return taken, safe
