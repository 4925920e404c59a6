"""The polytope of the marginals of a batch of factor graphs, as sparse equations (Taskar et al. 2003; Sontag 2013)."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import Any

import networkx as nx
import numpy as np

from markovfield.arrays import FloatArray, IntArray
from markovfield.exceptions import ModelError
from markovfield.factors.structure import Structure
from markovfield.graphs.junction_trees import junction_tree
from markovfield.learning.max_margin.max_margin_network import Polytope
from markovfield.structured.core.batch import Batch
from markovfield.structured.core.operators import rows_of

__all__ = ["label_cells", "polytope_of"]

Scope = tuple[int, ...]


class _Regions:
    """Tables of marginals over sets of variables, one after the other in C order, and what they must agree on."""

    def __init__(self, s: Structure, regions: Iterable[Scope], joints: Iterable[tuple[Scope, Scope]]) -> None:
        self._cards = s.cardinalities.astype(np.int64)
        self.starts: dict[Scope, int] = {}
        self.size = 0
        for region in regions:
            if region not in self.starts:
                self.starts[region] = self.size
                self.size += int(np.prod(self._cards[list(region)]))
        self.joints = list(joints)

    def onto(self, region: Scope, part: Scope) -> IntArray:
        """For each cell of a region's table, the cell that it adds to in the table of a part of it."""
        shape = self._cards[list(region)]
        states = np.indices(tuple(shape)).reshape(len(region), -1)
        found = np.zeros(int(np.prod(shape)), np.int64)
        for v in part:
            found = found * self._cards[v] + states[region.index(v)]
        return found

    def cells(self, region: Scope) -> IntArray:
        """Positions of the marginals of a region."""
        return self.starts[region] + np.arange(int(np.prod(self._cards[list(region)])))


def polytope_of(
    batches: list[Batch], added: list[FloatArray], costs: FloatArray, relaxation: str, max_cells: int
) -> Polytope:
    """Marginals of all examples of all batches; ``added`` are losses of the states of variables of each."""
    from scipy.sparse import block_diag, csc_matrix, hstack

    parts, first = [], 0
    for batch, own in zip(batches, added, strict=True):
        parts.append(_of_batch(batch, own, costs[first : first + batch.n_examples], relaxation, max_cells))
        first += batch.n_examples
    return Polytope(
        csc_matrix(hstack([part.features for part in parts])),
        np.sum([part.truth for part in parts], axis=0),
        np.concatenate([part.losses for part in parts]),
        sum(part.constant for part in parts),
        block_diag([part.equations for part in parts], format="csc"),
        np.concatenate([part.right for part in parts]),
        all(part.tight for part in parts),
    )


def _of_batch(batch: Batch, added: FloatArray, costs: FloatArray, relaxation: str, max_cells: int) -> Polytope:
    s, scopes = batch.structure, _scopes(batch.structure)
    regions, tight = _cliques(s, scopes) if relaxation == "cliques" else _local(s, scopes)
    if regions.size > max_cells:
        raise ModelError(f"marginals have {regions.size} cells, and max_cells of MaxMarginMarkovNetwork is {max_cells}")
    homes = _homes(regions)
    equations, right = _equations(batch, regions, costs)
    features, losses = _linear(batch, regions, homes, scopes, added)
    read = batch.cells_read(batch.labels)
    spread = np.bincount(read, costs[batch.example_of_factor], s.n_cells).astype(np.float64)
    constant = 0.0 if batch.base is None else float(costs @ batch.scores(batch.base))
    return Polytope(features, batch.adjoint(spread), losses, -constant, equations, right, tight)


def label_cells(batch: Batch, n_cells: int) -> tuple[FloatArray, IntArray]:
    """The point of the labels of a batch in its local polytope, and the example of each cell."""
    s = batch.structure
    regions, _ = _local(s, _scopes(s))
    point, example = np.zeros(n_cells), np.empty(n_cells, np.int64)
    for region in regions.starts:
        own, shape = regions.cells(region), tuple(s.cardinalities[list(region)])
        point[own[np.ravel_multi_index(tuple(batch.labels[list(region)]), shape)]] = 1.0
        example[own] = batch.example_of_variable[region[0]]
    return point, example


def _scopes(s: Structure) -> list[Scope]:
    return [tuple(s.scopes[a:b].tolist()) for a, b in pairwise(s.scope_offsets.tolist())]


def _cliques(s: Structure, scopes: list[Scope]) -> tuple[_Regions, bool]:
    """The cliques of a junction tree, which agree on separators."""
    graph: Any = nx.Graph()
    graph.add_nodes_from(range(s.n_variables))
    for scope in scopes:
        graph.add_edges_from((a, b) for a in scope for b in scope if a < b)
    tree = junction_tree(graph)
    return _Regions(
        s, (tuple(sorted(clique)) for clique in tree), ((tuple(sorted(a)), tuple(sorted(b))) for a, b in tree.edges)
    ), True  # fmt: skip


def _local(s: Structure, scopes: list[Scope]) -> tuple[_Regions, bool]:
    """Factors, which agree with the variables that they have."""
    wide = sorted({tuple(sorted(scope)) for scope in scopes if len(set(scope)) > 1})
    joints = [(scope, (v,)) for scope in wide for v in scope]
    graph: Any = nx.Graph()
    graph.add_edges_from((scope, v) for scope in wide for v in scope)
    tight = not len(graph) or nx.is_forest(graph)
    return _Regions(s, [*((v,) for v in range(s.n_variables)), *wide], joints), tight


def _homes(regions: _Regions) -> dict[int, list[Scope]]:
    """The regions of each variable."""
    found: dict[int, list[Scope]] = {}
    for region in regions.starts:
        for v in region:
            found.setdefault(v, []).append(region)
    return found


def _equations(batch: Batch, regions: _Regions, costs: FloatArray) -> tuple[Any, FloatArray]:
    """Every region adds up to the cost of its example, and joined ones have the same marginals in common."""
    from scipy.sparse import coo_matrix

    rows, columns, values = [], [], []
    right: list[float] = []
    for region in regions.starts:
        own = regions.cells(region)
        rows.append(np.full(len(own), len(right)))
        columns.append(own)
        values.append(np.ones(len(own)))
        right.append(float(costs[batch.example_of_variable[region[0]]]))
    height = len(right)
    for a, b in regions.joints:
        common = tuple(v for v in a if v in b)
        if not common:
            continue
        for region, sign in ((a, 1.0), (b, -1.0)):
            onto = regions.onto(region, common)
            rows.append(height + onto)
            columns.append(regions.cells(region))
            values.append(np.full(len(onto), sign))
        height += int(onto.max()) + 1
    shape = (height, regions.size)
    made = coo_matrix((np.concatenate(values), (np.concatenate(rows), np.concatenate(columns))), shape=shape).tocsr()
    return made, np.concatenate([right, np.zeros(height - len(right))])


def _linear(
    batch: Batch, regions: _Regions, homes: dict[int, list[Scope]], scopes: list[Scope], added: FloatArray
) -> tuple[Any, FloatArray]:
    """What marginals add to features, and to losses with scores that have no weight."""
    from scipy.sparse import coo_matrix, csr_matrix

    s = batch.structure
    cells, marginals = [], []
    losses = np.zeros(regions.size)
    for v in range(s.n_variables):
        region = min(homes[v], key=len)
        onto = regions.onto(region, (v,))
        losses[regions.cells(region)] += added[s.value_offsets[v] + onto]
    for i, scope in enumerate(scopes):
        region = min((r for r in homes[scope[0]] if set(scope) <= set(r)), key=len)
        table = regions.onto(region, tuple(dict.fromkeys(scope)))
        # Cells by strides, which need not be those of C order.
        states = np.stack(np.unravel_index(table, tuple(s.cardinalities[list(dict.fromkeys(scope))])))
        place = {v: k for k, v in enumerate(dict.fromkeys(scope))}
        strides = s.table_strides[s.scope_offsets[i] : s.scope_offsets[i + 1]]
        read = s.table_offsets[i] + sum(stride * states[place[v]] for stride, v in zip(strides, scope, strict=True))
        cells.append(np.asarray(read, np.int64))
        marginals.append(regions.cells(region))
    if not cells:
        return csr_matrix((batch.n_weights, regions.size)), losses
    reading = coo_matrix(
        (np.ones(sum(map(len, cells))), (np.concatenate(cells), np.concatenate(marginals))),
        shape=(s.n_cells, regions.size),
    ).tocsr()
    if batch.base is not None:
        if np.isneginf(batch.base).any():
            raise ModelError("MaxMarginMarkovNetwork takes no model that rules outputs out")
        losses += reading.T @ batch.base
    features = csr_matrix((batch.n_weights, regions.size))
    for kind, start, end in zip(batch.factors, batch.cells[:-1], batch.cells[1:], strict=True):
        if not kind.operator.n_weights:
            continue
        made = csr_matrix(rows_of(kind.operator, np.arange(end - start)))
        placed = csr_matrix((made.data, made.indices + kind.at, made.indptr), shape=(end - start, batch.n_weights))
        features = features + placed.T @ reading[start:end]
    return features, losses
