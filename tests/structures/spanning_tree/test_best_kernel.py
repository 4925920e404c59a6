"""The best arborescence against networkx, and bounds on larger ones."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest

from markovfield.inference.core.running import Running
from markovfield.structures.spanning_tree.family import SpanningTrees


def best_by_networkx(scores):
    graph = nx.DiGraph()
    n = len(scores)
    for h in range(n):
        for m in range(1, n):
            if h != m and np.isfinite(scores[h, m]):
                graph.add_edge(h, m, weight=float(scores[h, m]))
    try:
        return sum(w for _, _, w in nx.maximum_spanning_arborescence(graph, preserve_attrs=True).edges(data="weight"))
    except nx.NetworkXException:
        return -np.inf


def best_single(scores):
    found = -np.inf
    for r in range(1, len(scores)):
        one = scores.copy()
        one[0] = -np.inf
        one[0, r] = scores[0, r]
        found = max(found, best_by_networkx(one) if np.isfinite(scores[0, r]) else -np.inf)
    return found


@pytest.mark.parametrize("single", [True, False])
@pytest.mark.parametrize("n", [6, 14])
def test_the_best_is_that_of_networkx(single, n):
    rng = np.random.default_rng(n)
    tables = rng.integers(-5, 6, (12, n + 1, n + 1)).astype(float)  # many cycles, many ties
    tables[rng.random(tables.shape) < 0.5] = -np.inf
    tables[:3, 0] += 40.0  # the root is wanted everywhere
    family = SpanningTrees.of([n] * len(tables), single_root=single)
    parts = family.maxima(tables.ravel(), running=Running())
    for i, scores in enumerate(tables):
        expected = best_single(scores) if single else best_by_networkx(scores)
        cells = parts.of(i)
        assert (tables.ravel()[cells].sum() if len(cells) else -np.inf) == expected
        heads = (cells - family.cell_offsets[i]) // (n + 1)
        if len(cells):
            assert sorted((cells - family.cell_offsets[i]) % (n + 1)) == list(range(1, n + 1))
            assert not single or (heads == 0).sum() == 1
