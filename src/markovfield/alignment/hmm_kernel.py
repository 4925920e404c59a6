"""The hidden Markov model of alignments (Vogel, Ney and Tillmann 1996): a link depends on the one before it.

The state after a target word is the source position that was linked last, or 0 where none was yet: position i is state
i + 1. A target word without a source word leaves the state as it is. ``moves`` holds for every number of source words n
a matrix ``[n + 1, n]`` of probabilities of the next position. Invariant: forward values of a target word sum to one.
"""

from __future__ import annotations

import math

import numpy as np

from markovfield.alignment.translation_kernel import gather
from markovfield.kernels.compiler import kernel

__all__ = ["hmm_best", "hmm_expectations", "jump_moves", "jump_step"]


@kernel
def _forward(block, nulls, moves, none, n, m, forward, reached, scales):
    """``forward[j + 1, state]``: probability of the state given the words so far; answers the log-likelihood.

    ``reached[j, i]`` is its part that comes to position i with this word, and did not stay there.
    """
    forward[0, : n + 1] = 0.0
    forward[0, 0] = 1.0
    log_likelihood = 0.0
    real = np.empty(n)
    for j in range(m):
        real[:] = 0.0
        for state in range(n + 1):
            mass = forward[j, state]
            if mass > 0.0:
                for i in range(n):
                    real[i] += mass * moves[state, i]
        after = forward[j + 1]
        total = 0.0
        for state in range(n + 1):
            after[state] = none * nulls[j] * forward[j, state]
            if state > 0:
                reached[j, state - 1] = (1.0 - none) * block[j, state - 1] * real[state - 1]
                after[state] += reached[j, state - 1]
            total += after[state]
        if not total > 0.0:
            return -np.inf
        scales[j] = 1.0 / total
        for state in range(n + 1):
            after[state] *= scales[j]
        for i in range(n):
            reached[j, i] *= scales[j]
        log_likelihood += math.log(total)
    return log_likelihood


@kernel
def hmm_expectations(
    pairs, table, moves, move_starts, null_probability, first, last, expected, posteriors, log_likelihoods
):
    """Expected counts of sentence pairs ``first`` to ``last``, added to ``expected``.

    ``expected`` is (pairs of words, target words after none, moves); arrays of length 0 are not wanted.
    """
    source_offsets, _, target_offsets, targets, cell_offsets, cells = pairs
    pair_counts, null_counts, move_counts = expected
    rows, columns = 0, 0
    for s in range(first, last):
        rows = max(rows, target_offsets[s + 1] - target_offsets[s])
        columns = max(columns, source_offsets[s + 1] - source_offsets[s])
    block, nulls, scales = np.empty((rows, columns)), np.empty(rows), np.empty(rows)
    forward, backward, before = np.empty((rows + 1, columns + 1)), np.empty(columns + 1), np.empty(columns + 1)
    reached, arrived, links = np.empty((rows, columns)), np.empty(columns), np.zeros((columns + 1, columns))
    for s in range(first, last):
        n, m = source_offsets[s + 1] - source_offsets[s], target_offsets[s + 1] - target_offsets[s]
        none = null_probability if null_probability >= 0.0 else 1.0 / (n + 1)
        own = moves[move_starts[n] : move_starts[n + 1]].reshape((n + 1, n))
        impossible = gather(pairs, table, s, block, nulls)
        log_likelihoods[s] = _forward(block, nulls, own, none, n, m, forward, reached, scales)
        at = cell_offsets[s]
        if log_likelihoods[s] == -np.inf:
            if len(posteriors):
                posteriors[at : at + n * m] = 0.0
            continue
        if impossible:
            log_likelihoods[s] = -np.inf
        backward[: n + 1] = 1.0
        links[: n + 1, :n] = 0.0
        for j in range(m - 1, -1, -1):
            place = at + j * n
            # What arrives at a position: its word, and everything after it.
            for i in range(n):
                arrived[i] = scales[j] * (1.0 - none) * block[j, i] * backward[i + 1]
            stays = scales[j] * none * nulls[j]
            absent = 0.0
            for state in range(n + 1):
                total = 0.0
                mass = forward[j, state]
                absent += mass * stays * backward[state]
                for i in range(n):
                    total += own[state, i] * arrived[i]
                for i in range(n):
                    links[state, i] += mass * arrived[i]
                before[state] = total + stays * backward[state]
            for i in range(n):
                p = reached[j, i] * backward[i + 1]
                if len(pair_counts):
                    pair_counts[cells[place + i]] += p
                if len(posteriors):
                    posteriors[place + i] = p
            if len(null_counts):
                null_counts[targets[target_offsets[s] + j]] += absent
            backward[: n + 1] = before[: n + 1]
        if len(move_counts):
            for state in range(n + 1):
                for i in range(n):
                    move_counts[move_starts[n] + state * n + i] += links[state, i] * own[state, i]


@kernel
def hmm_best(pairs, table, moves, move_starts, null_probability, first, last, best):
    """``best[t]``: source positions of the likeliest alignment as a whole (Viterbi), -1 for none."""
    source_offsets, _, target_offsets, _, _, _ = pairs
    rows, columns = 0, 0
    for s in range(first, last):
        rows = max(rows, target_offsets[s + 1] - target_offsets[s])
        columns = max(columns, source_offsets[s + 1] - source_offsets[s])
    block, nulls = np.empty((rows, columns)), np.empty(rows)
    came, real = np.empty((rows, columns + 1), np.int64), np.empty((rows, columns + 1), np.bool_)
    for s in range(first, last):
        n, m = source_offsets[s + 1] - source_offsets[s], target_offsets[s + 1] - target_offsets[s]
        none = null_probability if null_probability >= 0.0 else 1.0 / (n + 1)
        own = moves[move_starts[n] : move_starts[n + 1]].reshape((n + 1, n))
        gather(pairs, table, s, block, nulls)
        score = np.zeros(n + 1)
        score[0] = 1.0
        for j in range(m):
            after, top = np.zeros(n + 1), 0.0
            for state in range(n + 1):
                after[state] = none * nulls[j] * score[state]
                came[j, state], real[j, state] = state, False
            for i in range(n):
                reached, origin = 0.0, 0
                for state in range(n + 1):
                    value = score[state] * own[state, i]
                    if value > reached:
                        reached, origin = value, state
                reached *= (1.0 - none) * block[j, i]
                if reached > after[i + 1]:
                    after[i + 1] = reached
                    came[j, i + 1], real[j, i + 1] = origin, True
            for state in range(n + 1):
                top = max(top, after[state])
            score = after / top if top > 0.0 else after
        state = np.argmax(score)
        for j in range(m - 1, -1, -1):
            best[target_offsets[s] + j] = state - 1 if real[j, state] else -1
            state = came[j, state]


@kernel
def jump_moves(jumps, starts, move_starts, moves):
    """Fill ``moves``: a jump from position i to k has weight ``jumps[k - i + widest]``, the first one ``starts[k]``.

    Jumps that are wider share the last weight; all are normalised over the positions there are.
    """
    widest, furthest = len(jumps) // 2, len(starts) - 1
    for n in range(1, len(move_starts) - 1):
        if move_starts[n + 1] == move_starts[n]:
            continue
        for state in range(n + 1):
            at, total = move_starts[n] + state * n, 0.0
            for i in range(n):
                if state == 0:
                    moves[at + i] = starts[min(i, furthest)]
                else:
                    moves[at + i] = jumps[min(max(i - state + 1, -widest), widest) + widest]
                total += moves[at + i]
            for i in range(n):
                moves[at + i] /= total


@kernel
def jump_step(move_starts, counts, moves, jumps, starts):
    """One step of minorisation for the weights of jumps: what was counted over what the normalisers ask for.

    The expected log-likelihood is ``sum n_d log c_d - sum N log(sum of the c within reach)``; bounding the second part
    from below by its tangent gives an update in closed form that never lowers it (Hunter 2004). Changes both weights.
    """
    widest, furthest = len(jumps) // 2, len(starts) - 1
    seen, asked = np.zeros(len(jumps)), np.zeros(len(jumps))
    seen_first, asked_first = np.zeros(len(starts)), np.zeros(len(starts))
    for n in range(1, len(move_starts) - 1):
        if move_starts[n + 1] == move_starts[n]:
            continue
        for state in range(n + 1):
            at, total = move_starts[n] + state * n, 0.0
            for i in range(n):
                total += counts[at + i]
            for i in range(n):
                # moves are c / (sum of c): their share of the normaliser by the weight itself.
                if state == 0:
                    d = min(i, furthest)
                    seen_first[d] += counts[at + i]
                    asked_first[d] += total * moves[at + i] / starts[d]
                else:
                    d = min(max(i - state + 1, -widest), widest) + widest
                    seen[d] += counts[at + i]
                    asked[d] += total * moves[at + i] / jumps[d]
    for d in range(len(jumps)):
        if asked[d] > 0.0:
            jumps[d] = max(seen[d] / asked[d], 1e-12)
    for d in range(len(starts)):
        if asked_first[d] > 0.0:
            starts[d] = max(seen_first[d] / asked_first[d], 1e-12)
