"""What planar elimination needs to know of a graph before it sees any couplings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from markovfield.arrays import FloatArray, IntArray, offsets_of
from markovfield.inference.planar_ising.layout_kernel import cut_faces, edge_nodes, orient, region_tree

__all__ = ["PlanarPlan", "lay_out"]

LEAF = 6
"""Faces of the smallest regions."""


@dataclass(frozen=True, eq=False)
class PlanarPlan:
    """A connected graph on the plane or a torus, its faces cut into small pieces, and the order to merge them in.

    Edges are the graph's own first, then edges of coupling zero: those that a torus lacks, those that connect
    components, and the chords that cut faces.

    Attributes
    ----------
    tails
        ``int64[2 edges]``: the vertex each dart leaves.
    signs
        ``float64[1 or 4, edges]``: Kasteleyn's signs; on a torus there are four ways to choose them.
    above, order
        A spanning tree: the dart from the parent to each vertex (-1 at the root), and the vertices from the root on.
    face_offsets, face_darts, corners
        The darts of each piece of a face, in the order of the merging; the same as a table padded with -1.
    children, leaf_faces, edge_offsets, node_edges
        The tree of regions, see `markovfield.inference.planar_ising.pfaffian_kernel.eliminate`.
    """

    n_vertices: int
    tails: IntArray
    signs: FloatArray
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
        return len(self.tails) // 2


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


def lay_out(n: int, first: IntArray, second: IntArray, around: IntArray, loops: Sequence[IntArray] = ()) -> PlanarPlan:
    """Plan a graph; ``around`` is its rotation (`markovfield.graphs.planar.planar_rotation`).

    ``loops`` are the edges of two closed ways around a torus. Every way to cut edges such that each face has an even
    number of them is a term of the Pfaffian, and on a torus that includes some that do not cut the vertices in two:
    those cross a loop an odd number of times. Turning the signs of a loop turns the signs of such terms.
    """
    tails = np.stack([first, second], axis=1).reshape(-1).astype(np.int64)
    tails, around = _connected(n, tails, around)
    darts = np.arange(len(tails))
    face_offsets, face_darts, tails = cut_faces(around[darts ^ 1], tails)
    n_faces, n_edges = len(face_offsets) - 1, len(tails) // 2
    sign, above, order = orient(n, face_offsets, face_darts, tails)
    signs = sign[None]
    for loop in loops:
        turned = signs.copy()
        turned[:, loop] *= -1.0
        signs = np.concatenate([signs, turned])
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
    face_offsets = offsets_of(sizes)
    corners = np.full((n_faces, int(sizes.max(initial=1))), -1, np.int64)
    corners[np.repeat(np.arange(n_faces), sizes), np.arange(len(face_darts)) - np.repeat(face_offsets[:-1], sizes)] = (
        face_darts
    )
    node = edge_nodes(position[face[::2]], position[face[1::2]], children, ranges)
    node_edges = np.argsort(node, kind="stable")
    edge_offsets = offsets_of(np.bincount(node, minlength=len(children)))
    assert n_edges == len(node)
    return PlanarPlan(
        n,
        tails,
        signs,
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
