"""One variable at a time, given all others: scores of its states, local losses and their gradients, Gibbs sweeps.

The scores of a variable's states are the sums of what its factors say; their softmax is its full conditional. Pseudo-
likelihood, ratio matching and minimum probability flow are losses of these scores alone, and a Gibbs sweep draws from
them: one function serves all.

Invariant: states are ``int16[variables, rows]``; a variable that stands twice in a factor is listed once with it. Cases
of a variable are rows that differ in what its neighbours are; they are handled in order, so that sums do not depend on
threads. Measured: about 3 ns for each case, factor and state where the pool stays in cache.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from markovfield.factors.kinds_kernel import CARDINALITY, DISTANCE, PARITY, TABLE
from markovfield.kernels.compiler import kernel
from markovfield.kernels.random import draw_unit

__all__ = ["FLOW", "PSEUDO", "RATIO", "SiteLayout", "count_cells", "gibbs_sweeps", "local_loss"]

# Which local loss: minus the log of the conditional; its squared error; minimum probability flow.
PSEUDO, RATIO, FLOW = 0, 1, 2


class SiteLayout(NamedTuple):
    """Factors of any kind but a noisy-max, and those of each variable.

    The factors of variable v are ``incident[incident_offsets[v] : incident_offsets[v + 1]]``; beside each, for tables,
    the stride of v's own axis, and from ``other_offsets`` on the other variables with their strides.
    """

    cardinalities: npt.NDArray[np.int32]
    scope_offsets: npt.NDArray[np.int64]
    scopes: npt.NDArray[np.int32]
    kind: npt.NDArray[np.int8]
    caps: npt.NDArray[np.int64]
    table_offsets: npt.NDArray[np.int64]
    table_strides: npt.NDArray[np.int64]
    incident_offsets: npt.NDArray[np.int64]
    incident: npt.NDArray[np.int32]
    own_strides: npt.NDArray[np.int64]
    other_offsets: npt.NDArray[np.int64]
    others: npt.NDArray[np.int32]
    other_strides: npt.NDArray[np.int64]


@kernel
def _true(kind, stride, state):
    """Whether a literal is true in a state."""
    literal = stride
    if kind == CARDINALITY:
        literal = literal - (((literal + 2147483648) >> 32) << 32)
    return state != literal if literal >= 0 else state == -literal - 1


@kernel
def _structured_rest(at, f, v, states, row):
    """What the other variables of a structured factor add: the other's state, or how many of their literals hold."""
    kind = at.kind[f]
    rest = np.int64(0)
    for p in range(at.scope_offsets[f], at.scope_offsets[f + 1]):
        u = at.scopes[p]
        if u != v:
            state = np.int64(states[u, row])
            rest = state if kind == DISTANCE else rest + _true(kind, at.table_strides[p], state)
    return rest


@kernel
def _structured_cell(at, f, v, rest, state):
    """The cell that a structured factor reads when v is in this state and the others add ``rest``."""
    kind, cell = at.kind[f], at.table_offsets[f]
    if kind == DISTANCE:
        return cell + min(abs(rest - state), at.caps[f])
    true = rest
    for p in range(at.scope_offsets[f], at.scope_offsets[f + 1]):
        if at.scopes[p] == v:
            true += _true(kind, at.table_strides[p], state)
    return cell + (true & 1 if kind == PARITY else min(true, at.caps[f]))


@kernel
def _table_rests(first, last, incident, bases, other_offsets, others, other_strides, states, row, rests):
    """For each factor of a variable the cell of its state 0, as if it were a table."""
    for j in range(first, last):
        cell = bases[incident[j]]
        for p in range(other_offsets[j], other_offsets[j + 1]):
            cell += other_strides[p] * states[others[p], row]
        rests[j - first] = cell


@kernel
def _table_scores(first, last, pool, own_strides, rests, n, scores):
    """Add the log-potentials of tables to the scores of each state."""
    for j in range(first, last):
        cell, stride = rests[j - first], own_strides[j]
        for k in range(n):
            scores[k] += pool[cell + stride * k]


@kernel
def _structured_scores(at, pool, v, states, row, rests, scores):
    """Log-potentials of each state of v, where some factors are structured."""
    first = at.incident_offsets[v]
    for j in range(first, at.incident_offsets[v + 1]):
        f = at.incident[j]
        if at.kind[f] == TABLE:
            for k in range(at.cardinalities[v]):
                scores[k] += pool[rests[j - first] + at.own_strides[j] * k]
        else:
            rest = rests[j - first] = _structured_rest(at, f, v, states, row)
            for k in range(at.cardinalities[v]):
                scores[k] += pool[_structured_cell(at, f, v, rest, k)]


@kernel
def _softmax(scores, n, out):
    """Probabilities from scores; the log of their sum."""
    top = scores[0]
    for k in range(1, n):
        top = max(top, scores[k])
    total = 0.0
    for k in range(n):
        out[k] = math.exp(scores[k] - top)
        total += out[k]
    for k in range(n):
        out[k] /= total
    return top + math.log(total)


@kernel
def _slopes(loss, n, weights, start, scores, chance, log_sum, slope):
    """A case's loss, and its derivative by the scores."""
    total = 0.0
    for k in range(n):
        slope[k] = 0.0
    for k in range(n):
        weight = weights[start + k]
        if weight == 0.0:
            continue
        if loss == PSEUDO:
            total += weight * (log_sum - scores[k])
            for i in range(n):
                slope[i] += weight * chance[i]
            slope[k] -= weight
        elif loss == RATIO:
            # Half the squared distance of the conditional from the state seen.
            inner = 0.0
            for i in range(n):
                apart = chance[i] - (1.0 if i == k else 0.0)
                total += 0.5 * weight * apart * apart
                inner += apart * chance[i]
            for i in range(n):
                apart = chance[i] - (1.0 if i == k else 0.0)
                slope[i] += weight * chance[i] * (apart - inner)
        else:
            for i in range(n):
                if i != k:
                    flow = weight * math.exp(min(0.5 * (scores[i] - scores[k]), 700.0))
                    total += flow
                    slope[i] += 0.5 * flow
                    slope[k] -= 0.5 * flow
    return total


@kernel
def local_loss(at, plain, pool, states, first, last, case_offsets, case_rows, weight_offsets, weights, loss, gradient):
    """The loss of variables ``first .. last - 1``, summed over cases; adds its derivative by the pool to ``gradient``.

    Cases of variable v are rows ``case_rows[case_offsets[v] : case_offsets[v + 1]]``; the weights of its states in each
    case lie from ``weight_offsets[v]`` on, states fastest. ``plain``: whether all factors are tables.
    """
    # Arrays by name: fields of a tuple would be counted as references at every use.
    incident_offsets, incident, bases, own_strides = at.incident_offsets, at.incident, at.table_offsets, at.own_strides
    other_offsets, others, other_strides, cards = at.other_offsets, at.others, at.other_strides, at.cardinalities
    most, widest = 1, 1
    for v in range(first, last):
        most = max(most, incident_offsets[v + 1] - incident_offsets[v])
        widest = max(widest, cards[v])
    rests = np.empty(most, np.int64)
    scores, chance, slope = np.empty(widest), np.empty(widest), np.empty(widest)
    total = 0.0
    for v in range(first, last):
        n, begin, end = cards[v], incident_offsets[v], incident_offsets[v + 1]
        for c in range(case_offsets[v], case_offsets[v + 1]):
            row = case_rows[c]
            for k in range(n):
                scores[k] = 0.0
            _table_rests(begin, end, incident, bases, other_offsets, others, other_strides, states, row, rests)
            if plain:
                _table_scores(begin, end, pool, own_strides, rests, n, scores)
            else:
                _structured_scores(at, pool, v, states, row, rests, scores)
            log_sum = _softmax(scores, n, chance)
            start = weight_offsets[v] + (c - case_offsets[v]) * n
            total += _slopes(loss, n, weights, start, scores, chance, log_sum, slope)
            for j in range(begin, end):
                rest, stride = rests[j - begin], own_strides[j]
                if plain or at.kind[incident[j]] == TABLE:
                    for k in range(n):
                        gradient[rest + stride * k] += slope[k]
                else:
                    for k in range(n):
                        gradient[_structured_cell(at, incident[j], v, rest, k)] += slope[k]
    return total


@kernel
def gibbs_sweeps(at, plain, pool, states, free, sweeps, random):
    """So many sweeps of Gibbs sampling over the variables ``free``, for every row, each with its own random stream."""
    incident_offsets, incident, bases, own_strides = at.incident_offsets, at.incident, at.table_offsets, at.own_strides
    other_offsets, others, other_strides, cards = at.other_offsets, at.others, at.other_strides, at.cardinalities
    most, widest = 1, 1
    for v in free:
        most = max(most, incident_offsets[v + 1] - incident_offsets[v])
        widest = max(widest, cards[v])
    rests = np.empty(most, np.int64)
    scores, chance = np.empty(widest), np.empty(widest)
    for row in range(states.shape[1]):
        stream = random[row]
        for _ in range(sweeps):
            for v in free:
                n, begin, end = cards[v], incident_offsets[v], incident_offsets[v + 1]
                for k in range(n):
                    scores[k] = 0.0
                _table_rests(begin, end, incident, bases, other_offsets, others, other_strides, states, row, rests)
                if plain:
                    _table_scores(begin, end, pool, own_strides, rests, n, scores)
                else:
                    _structured_scores(at, pool, v, states, row, rests, scores)
                _softmax(scores, n, chance)
                drawn = draw_unit(stream)
                k = 0
                while k < n - 1 and drawn >= chance[k]:
                    drawn -= chance[k]
                    k += 1
                while chance[k] == 0.0 and k > 0:  # rounding must not draw what cannot be
                    k -= 1
                states[v, row] = k


@kernel
def count_cells(at, states, weights, first, last, counts):
    """Add to ``counts`` how often rows ``first .. last - 1`` read each cell; weights may be empty for ones."""
    for f in range(len(at.kind)):
        begin, end, kind = at.scope_offsets[f], at.scope_offsets[f + 1], at.kind[f]
        for row in range(first, last):
            rest = np.int64(0)
            for p in range(begin, end):
                state = np.int64(states[at.scopes[p], row])
                if kind == TABLE:
                    rest += at.table_strides[p] * state
                elif kind == DISTANCE:
                    rest = abs(rest - state)
                else:
                    rest += _true(kind, at.table_strides[p], state)
            if kind == PARITY:
                rest &= 1
            elif kind != TABLE:
                rest = min(rest, at.caps[f])
            counts[at.table_offsets[f] + rest] += weights[row] if len(weights) else 1.0
