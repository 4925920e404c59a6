"""Rows of a directed model against a loop that reads the tables."""

from __future__ import annotations

import numpy as np
import pytest

from markovfield.inference.sampling.forward_kernel import draw_forward

CARDS = [3, 2, 20, 4]
PARENTS = [[], [0], [0, 1], [2]]
ORDER = [0, 1, 2, 3]


def tables(seed: int) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [rng.dirichlet(np.ones(CARDS[v]), [CARDS[p] for p in PARENTS[v]]) for v in ORDER]


def draw(cpts: list[np.ndarray], uniforms: np.ndarray, clamped: list[int], weighted: list[bool]) -> tuple:
    steps = [int(np.prod(t.shape[axis + 1 :])) for t in cpts for axis in range(t.ndim - 1)]
    states = np.full((4, uniforms.shape[1]), -1, np.int32)
    log_weights = np.zeros(uniforms.shape[1])
    with np.errstate(divide="ignore"):
        draw_forward(
            np.array(ORDER),
            np.concatenate([[0], np.cumsum([len(p) for p in PARENTS])]),
            np.array([u for p in PARENTS for u in p]),
            np.array(steps),
            np.concatenate([[0], np.cumsum([t.size for t in cpts])])[:-1],
            np.array(CARDS, np.int32),
            np.concatenate([t.cumsum(axis=-1).ravel() for t in cpts]),
            np.concatenate([np.log(t).ravel() for t in cpts]),
            np.array(clamped, np.int32),
            np.array(weighted),
            uniforms,
            states,
            log_weights,
        )
    return states, log_weights


@pytest.mark.parametrize("clamped", [[-1] * 4, [-1, 1, -1, 2]])
def test_states_and_weights(clamped: list[int]):
    cpts = tables(1)
    rng = np.random.default_rng(0)
    uniforms = rng.random((4, 500))
    weighted = [False, True, False, False]
    states, log_weights = draw(cpts, uniforms, clamped, weighted)
    for row in range(500):
        weight = 0.0
        own: list[int] = []
        for v in ORDER:
            p = cpts[v][tuple(own[u] for u in PARENTS[v])]
            if clamped[v] >= 0:
                own.append(clamped[v])
                weight += np.log(p[clamped[v]]) if weighted[v] else 0.0
            else:
                own.append(int(np.searchsorted(np.cumsum(p), uniforms[v, row], side="right")))
        assert states[:, row].tolist() == own
        assert log_weights[row] == pytest.approx(weight, abs=1e-12)


def test_draws_at_the_edges_stay_in_range():
    states, _ = draw(tables(2), np.array([[0.0, 1.0 - 2.0**-53]] * 4), [-1] * 4, [False] * 4)
    assert states[:, 0].tolist() == [0] * 4
    assert states[:, 1].tolist() == [card - 1 for card in CARDS]
