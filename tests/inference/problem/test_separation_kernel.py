"""What a query depends on, against paths in networkx."""

from __future__ import annotations

from itertools import combinations

import networkx as nx
import numpy as np
import pytest

from markovfield.inference.problem.separation_kernel import drop_separated
from tests.inference.problem.test_domains_kernel import plain_tables
from tests.kernels.arrays import flat


@pytest.mark.parametrize("seed", range(20))
def test_only_what_paths_of_free_variables_reach_is_kept(seed: int):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 10))
    scopes = [rng.permutation(n)[: rng.integers(1, 4)].tolist() for _ in range(int(rng.integers(0, 9)))]
    model = flat([2] * n, [(s, np.zeros([2] * len(s))) for s in scopes])
    sizes = rng.integers(1, 3, n).astype(np.int32)
    before = sizes.copy()
    keep = rng.random(n) < 0.3
    alive = rng.random(len(scopes)) < 0.8
    was_alive = alive.copy()
    domains, barren = np.full(2 * n, 1, np.int32), np.zeros(n, np.bool_)
    dropped = drop_separated(plain_tables(model), keep, sizes, domains, alive, barren)
    graph = nx.Graph()
    graph.add_nodes_from(v for v in range(n) if before[v] > 1)
    for f, scope in enumerate(scopes):
        free = [v for v in scope if before[v] > 1]
        if was_alive[f]:
            graph.add_edges_from(combinations(free, 2))
    reached: set[int] = set()
    for v in np.flatnonzero(keep & (before > 1)).tolist():
        reached |= nx.node_connected_component(graph, v)
    for v in range(n):
        gone = before[v] > 1 and v not in reached
        assert barren[v] == gone and sizes[v] == (1 if gone else before[v])
        assert domains[2 * v] == (0 if gone else 1)
    assert dropped == barren.sum()
    for f, scope in enumerate(scopes):
        assert alive[f] == (was_alive[f] and bool(reached & set(scope)))
