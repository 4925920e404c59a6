"""What planar elimination needs to know of a graph before it sees any couplings."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from markovfield.kernels.planar_layout import cut_faces, edge_nodes, orient, region_tree

__all__ = ["PlanarPlan", "lay_out"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
LEAF = 6
"""Faces of the smallest regions."""


@dataclass(frozen=True, eq=False)
class PlanarPlan:
    """A connected plane graph with its faces cut into small pieces, and the order in which they are merged.

    Edges are the graph's own ``n_own`` first, then edges of coupling zero: those that connect its components, and the
    chords that cut its faces.

    Attributes
    ----------
    tails
        ``int64[2 edges]``: the vertex each dart leaves.
    sign
        ``float64[edges]``: Kasteleyn's signs.
    above, order
        A spanning tree: the dart from the parent to each vertex (-1 at the root), and the vertices from the root on.
    face_offsets, face_darts, corners
        The darts of each piece of a face, in the order of the merging; the same as a table padded with -1.
    children, leaf_faces, edge_offsets, node_edges
        The tree of regions, see `markovfield.kernels.planar_pfaffian.eliminate`.
    """

    n_vertices: int
    n_own: int
    tails: IntArray
    sign: FloatArray
    above: IntArray
    order: IntArray
    face_offsets: IntArray
    face_darts: npt.NDArray[np.int32]
    corners: IntArray
    children: npt.NDArray[np.int32]
    leaf_faces: IntArray
    edge_offsets: IntArray
    node_edges: IntArray

    @property
    def n_edges(self) -> int:
        """Edges with those of coupling zero."""
        return len(self.sign)


def _components(n: int, first: IntArray, second: IntArray) -> IntArray:
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    ones = np.ones(len(first), np.int8)
    return np.asarray(connected_components(coo_array((ones, (first, second)), shape=(n, n)), directed=False)[1])


def _connected(n: int, tails: IntArray, around: IntArray) -> tuple[IntArray, IntArray]:
    """Join the components by edges, one after the other: a drawing without crossings stays one."""
    label = _components(n, tails[::2], tails[1::2])
    representative = np.unique(label, return_index=True)[1]
    if len(representative) < 2:
        return tails, around
    some = np.full(n, -1, np.int64)
    some[tails] = np.arange(len(tails))
    ends = np.stack([representative[:-1], representative[1:]], axis=1).reshape(-1)
    added = np.concatenate([around, np.empty(len(ends), np.int64)])
    for x, u in enumerate(ends.tolist(), len(tails)):
        d = some[u]
        if d < 0:
            added[x] = some[u] = x
        else:
            added[x], added[d] = added[d], x
    return np.concatenate([tails, ends]), added


def lay_out(n: int, first: IntArray, second: IntArray, around: IntArray) -> PlanarPlan:
    """Plan a plane graph; ``around`` is its rotation (`markovfield.graphs.planar.planar_rotation`)."""
    n_own = len(first)
    tails = np.stack([first, second], axis=1).reshape(-1).astype(np.int64)
    tails, around = _connected(n, tails, around)
    darts = np.arange(len(tails))
    face_offsets, face_darts, tails = cut_faces(around[darts ^ 1], tails)
    n_faces, n_edges = len(face_offsets) - 1, len(tails) // 2
    sign, above, order = orient(n, face_offsets, face_darts, tails)
    face = np.empty(len(tails), np.int64)
    sizes = np.diff(face_offsets)
    face[face_darts] = np.repeat(np.arange(n_faces), sizes)
    placed, children, ranges = region_tree(face_offsets, face[face_darts ^ 1], LEAF)
    # From here on faces are named by their place in the order of the regions.
    position = np.empty(n_faces, np.int64)
    position[placed] = np.arange(n_faces)
    by_place = np.argsort(position[face[face_darts]], kind="stable")
    face_darts = face_darts[by_place]
    sizes = sizes[placed]
    face_offsets = np.concatenate([[0], np.cumsum(sizes)])
    corners = np.full((n_faces, int(sizes.max(initial=1))), -1, np.int64)
    corners[np.repeat(np.arange(n_faces), sizes), np.arange(len(face_darts)) - np.repeat(face_offsets[:-1], sizes)] = (
        face_darts
    )
    node = edge_nodes(position[face[::2]], position[face[1::2]], children, ranges)
    node_edges = np.argsort(node, kind="stable")
    edge_offsets = np.concatenate([[0], np.cumsum(np.bincount(node, minlength=len(children)))])
    assert n_edges == len(node)
    return PlanarPlan(
        n,
        n_own,
        tails,
        sign,
        above,
        order,
        face_offsets,
        face_darts,
        corners,
        children,
        ranges,
        edge_offsets,
        node_edges,
    )
