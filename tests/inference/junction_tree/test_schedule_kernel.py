"""Parts of a clique tree: each a whole subtree that is cheap enough below one that is not."""

from __future__ import annotations

import numpy as np
import pytest

from markovfield.inference.junction_tree.schedule_kernel import split_tree


@pytest.mark.parametrize("grain", [0.0, 1.0, 4.0, 1e9])
@pytest.mark.parametrize("seed", range(8))
def test_parts(seed: int, grain: float):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 30))
    parent = np.array([-1 if c == 0 or rng.random() < 0.1 else rng.integers(0, c) for c in range(n)])
    cost = rng.random(n) + 0.1
    kept = cost.copy()
    part, count = split_tree(parent, cost, grain)
    np.testing.assert_array_equal(cost, kept)
    below = [kept[c] for c in range(n)]
    for c in range(n - 1, -1, -1):
        if parent[c] >= 0:
            below[parent[c]] += below[c]
    number = 0
    for c in range(n):
        p = parent[c]
        if p >= 0 and below[p] <= grain:
            assert part[c] == part[p] > 0, "inside a part"
        elif below[c] <= grain:
            number += 1
            assert part[c] == number
        else:
            assert part[c] == 0
    assert count == number
