"""Triangle meshes: finite elements for the Matern equation, and where points lie in a mesh."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from markovfield.arrays import FloatArray, Frozen, IntArray
from markovfield.exceptions import ModelError
from markovfield.models.gaussian.precisions import Prior, squared

__all__ = ["TriangleMesh"]

BLOCK = 2**22
"""Points times triangles that are looked at together."""


@dataclass(frozen=True, eq=False, init=False)
class TriangleMesh(Frozen):
    """A mesh of triangles, in the plane or on a surface in space.

    Parameters
    ----------
    points
        ``float64[n, 2]`` or ``[n, 3]``: its corners, which are the variables of a field on it.
    triangles
        ``int[m, 3]``: positions of the corners of each; ``scipy.spatial.Delaunay(points).simplices`` will do. None
        makes them so (points in the plane).

    Examples
    --------
    >>> import numpy as np
    >>> mesh = TriangleMesh([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    >>> mesh.n_points, round(float(mesh.areas.sum()), 6)
    (4, 1.0)
    >>> mesh.projector([[0.5, 0.5], [1.0, 0.0]]).toarray()[1].tolist()
    [0.0, 1.0, 0.0, 0.0]
    """

    points: FloatArray
    triangles: IntArray

    def __init__(self, points: npt.ArrayLike, triangles: npt.ArrayLike | None = None) -> None:
        at = np.array(points, np.float64)
        if at.ndim != 2 or at.shape[1] not in (2, 3) or len(at) < 3:
            raise ModelError(f"TriangleMesh(points) needs shape [n, 2] or [n, 3] with n >= 3, got {at.shape}")
        if not np.isfinite(at).all():
            raise ModelError(f"TriangleMesh(points): point {int(np.argwhere(~np.isfinite(at))[0, 0])} is not finite")
        if triangles is None:
            from scipy.spatial import Delaunay

            if at.shape[1] != 2:
                raise ModelError("TriangleMesh(triangles) can be left out of points in the plane only")
            triangles = Delaunay(at).simplices
        corners = np.array(triangles)
        if corners.ndim != 2 or corners.shape[1] != 3 or not np.issubdtype(corners.dtype, np.integer):
            raise ModelError(f"TriangleMesh(triangles) needs integers of shape [m, 3], got {corners.shape}")
        if corners.size and (corners.min() < 0 or corners.max() >= len(at)):
            raise ModelError(f"TriangleMesh(triangles) names a point outside 0 to {len(at) - 1}")
        for array in (at, corners):
            array.flags.writeable = False
        object.__setattr__(self, "points", at)
        object.__setattr__(self, "triangles", corners.astype(np.int64))
        flat = np.flatnonzero(self.areas <= 1e-14 * self.areas.max(initial=0.0))
        if len(flat):
            raise ModelError(f"TriangleMesh(triangles): triangle {int(flat[0])} has no area")
        lonely = np.setdiff1d(np.arange(len(at)), corners)
        if len(lonely):
            raise ModelError(f"TriangleMesh(points): point {int(lonely[0])} is the corner of no triangle")

    @property
    def n_points(self) -> int:
        """Number of points."""
        return len(self.points)

    @property
    def areas(self) -> FloatArray:
        """``float64[m]``: the area of each triangle."""
        a, b, c = (self.points[self.triangles[:, i]] for i in range(3))
        one, two = b - a, c - a
        square = (one**2).sum(1) * (two**2).sum(1) - (one * two).sum(1) ** 2
        return np.asarray(0.5 * np.sqrt(np.maximum(square, 0.0)))

    @property
    def edges(self) -> IntArray:
        """``int64[k, 2]``: pairs of points that share a triangle, each once."""
        pairs = np.concatenate([self.triangles[:, [0, 1]], self.triangles[:, [1, 2]], self.triangles[:, [0, 2]]])
        return np.unique(np.sort(pairs, axis=1), axis=0)

    def finite_elements(self) -> tuple[FloatArray, Any]:
        """Masses ``float64[n]`` (lumped) and the stiffness ``[n, n]`` of piecewise linear functions."""
        from scipy import sparse

        n, areas = self.n_points, self.areas
        masses = np.bincount(self.triangles.ravel(), np.repeat(areas / 3, 3), minlength=n).astype(np.float64)
        corner = [self.points[self.triangles[:, i]] for i in range(3)]
        # The side opposite to each corner; gradients are at right angles to it.
        side = [corner[(i + 2) % 3] - corner[(i + 1) % 3] for i in range(3)]
        rows, columns, values = [], [], []
        for i in range(3):
            for j in range(3):
                rows.append(self.triangles[:, i])
                columns.append(self.triangles[:, j])
                values.append((side[i] * side[j]).sum(1) / (4 * areas))
        place = (np.concatenate(rows), np.concatenate(columns))
        stiffness = sparse.csc_array((np.concatenate(values), place), shape=(n, n))
        return masses, sparse.csc_array((stiffness + stiffness.T) / 2)

    def matern(self, alpha: int, kappa: float, tau: float) -> Prior:
        """``tau^2 K C^-1 K`` with ``K = kappa^2 C + G``, or ``tau^2 K`` for alpha = 1 (Lindgren et al. 2011)."""
        from scipy import sparse

        if alpha not in (1, 2):
            raise ModelError(f"a Matern field on a mesh has alpha 1 or 2, got {alpha}")
        masses, stiffness = self.finite_elements()
        operator = sparse.csr_array(sparse.diags_array(kappa**2 * masses) + stiffness)
        nothing = np.zeros((self.n_points, 0))
        if alpha == 1:
            return Prior(sparse.csc_array(operator) * tau**2, None, nothing)
        root = sparse.csr_array(sparse.diags_array(tau / np.sqrt(masses)) @ operator)
        return Prior(squared(root), root, nothing)

    def projector(self, points: npt.ArrayLike) -> Any:
        """Weights of the corners at other points, sparse ``[rows, n]``: a field's value there is ``A @ x``."""
        from scipy import sparse

        at = np.array(points, np.float64)
        if at.ndim != 2 or at.shape[1] != 2 or self.points.shape[1] != 2:
            raise ModelError(f"TriangleMesh.projector(points) needs points in the plane, got shape {at.shape}")
        origin, *others = (self.points[self.triangles[:, i]] for i in range(3))
        inverse = np.linalg.inv(np.stack([o - origin for o in others], axis=2))
        found = np.full(len(at), -1)
        weights = np.zeros((len(at), 3))
        step = max(1, BLOCK // max(len(self.triangles), 1))
        for start in range(0, len(at), step):
            off = at[start : start + step, None] - origin
            local = np.einsum("mij,pmj->pmi", inverse, off)
            all_three = np.concatenate([1 - local.sum(-1, keepdims=True), local], axis=-1)
            least = all_three.min(-1)
            best = least.argmax(1)
            rows = np.arange(len(best))
            found[start : start + step] = np.where(least[rows, best] > -1e-9, best, -1)
            weights[start : start + step] = all_three[rows, best]
        outside = np.flatnonzero(found < 0)
        if len(outside):
            raise ModelError(f"TriangleMesh.projector(points): point {int(outside[0])} is outside the mesh")
        weights = np.maximum(weights, 0.0)
        columns = self.triangles[found].ravel()
        return sparse.csr_array(
            (weights.ravel(), (np.repeat(np.arange(len(at)), 3), columns)), shape=(len(at), self.n_points)
        )

    def __repr__(self) -> str:
        return f"TriangleMesh({self.n_points} points, {len(self.triangles)} triangles)"
