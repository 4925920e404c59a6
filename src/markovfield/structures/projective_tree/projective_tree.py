"""Dependency trees without crossing arcs over one sentence."""

from __future__ import annotations

from typing import Any

import numpy.typing as npt

from markovfield.arrays import IntArray
from markovfield.exceptions import ModelError
from markovfield.structures.projective_tree.family import ProjectiveTrees
from markovfield.structures.spanning_tree.arcs import ArcForm

__all__ = ["ProjectiveTree"]


class ProjectiveTree(ArcForm):
    """Dependency trees in which no two arcs cross, the root drawn left of the first word.

    A structure is the list of the heads of words 1, ..., n; with labels, of pairs (head, label).

    Parameters
    ----------
    scores
        ``float[n + 1, n + 1]`` or ``[n + 1, n + 1, labels]``: ``scores[h, m]`` of the arc from head h to modifier m;
        row 0 is the root. Column 0 and the diagonal are not read. -inf rules an arc out.
    single_root
        Whether only one word hangs on the root.

    Examples
    --------
    >>> import numpy as np
    >>> import markovfield as mf
    >>> scores = np.zeros((4, 4))
    >>> scores[0, 2] = scores[2, 1] = 2.0
    >>> trees = mf.structures.ProjectiveTree(scores)
    >>> trees.n_structures()
    7.0
    >>> mf.decode(trees).structure
    [2, 0, 2]
    >>> mf.marginals(trees)["arcs"][2, 1].round(3)
    np.float64(0.925)
    >>> len(mf.decode(trees, n_best=10).n_best)
    7
    """

    family: ProjectiveTrees

    def __init__(self, scores: npt.ArrayLike, *, single_root: bool = True) -> None:
        self._read(scores, ProjectiveTrees, single_root)

    def cells(self, structure: Any) -> IntArray:
        found = super().cells(structure)
        side = self._shape[0]
        ends = [sorted(divmod(int(arc), side)) for arc in found // self.family.n_labels]
        for a, b in ends:
            for c, d in ends:
                if a < c < b < d:
                    raise ModelError(f"arcs of a projective tree do not cross, those of {(a, b)} and {(c, d)} do")
        return found
