"""Jumps: their probabilities, and steps that never lower the expected log-likelihood."""

from __future__ import annotations

import numpy as np

from markovfield.alignment.hmm_kernel import jump_moves, jump_step


def places(lengths: list[int]) -> np.ndarray:
    there = np.zeros(max(lengths) + 1, np.int64)
    for n in lengths:
        there[n] = n * (n + 1)
    return np.concatenate([[0], np.cumsum(there)])


def test_moves_are_jumps_within_reach() -> None:
    rng = np.random.default_rng(0)
    jumps, starts, at = rng.random(5) + 0.1, rng.random(3) + 0.1, places([1, 4])
    moves = np.empty(int(at[-1]))
    jump_moves(jumps, starts, at, moves)
    np.testing.assert_allclose(moves[at[1] : at[2]], 1.0)
    own = moves[at[4] : at[5]].reshape(5, 4)
    np.testing.assert_allclose(own.sum(axis=1), 1.0)
    first = starts[[0, 1, 2, 2]]
    np.testing.assert_allclose(own[0], first / first.sum())
    for i in range(4):
        weights = jumps[[max(-2, min(2, k - i)) + 2 for k in range(4)]]
        np.testing.assert_allclose(own[i + 1], weights / weights.sum())


def test_steps_rise_to_a_maximum() -> None:
    rng = np.random.default_rng(1)
    jumps, starts, at = np.ones(7), np.ones(4), places([2, 3, 6])
    counts = rng.random(int(at[-1]))
    moves = np.empty(len(counts))
    jump_moves(jumps, starts, at, moves)
    values = [counts @ np.log(moves)]
    for _ in range(300):
        jump_step(at, counts, moves, jumps, starts)
        jump_moves(jumps, starts, at, moves)
        values.append(counts @ np.log(moves))
    assert (np.diff(values) >= -1e-10).all() and values[-1] > values[0]
    # No other weights are better.
    for k in range(7):
        for factor in (0.99, 1.01):
            other = jumps.copy()
            other[k] *= factor
            jump_moves(other, starts, at, moves)
            assert counts @ np.log(moves) <= values[-1] + 1e-9
