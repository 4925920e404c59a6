"""Dependency trees with crossing arcs over one sentence."""

from __future__ import annotations

import numpy.typing as npt

from markovfield.structures.spanning_tree.arcs import ArcForm
from markovfield.structures.spanning_tree.family import SpanningTrees

__all__ = ["SpanningTree"]


class SpanningTree(ArcForm):
    """Dependency trees in which arcs may cross (non-projective): every word has a head, and heads lead to the root.

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
    >>> trees = mf.structures.SpanningTree(scores)
    >>> trees.n_structures()  # n^(n - 1), Cayley's trees with a root
    9.0
    >>> mf.decode(trees).structure
    [2, 0, 1]
    >>> mf.marginals(trees)["arcs"][2, 1].round(3)
    np.float64(0.904)
    >>> mf.decode(trees, {"arcs": {(2, 1): False}}, n_best=2).n_best[0].structure
    [3, 0, 2]
    """

    family: SpanningTrees

    def __init__(self, scores: npt.ArrayLike, *, single_root: bool = True) -> None:
        self._read(scores, SpanningTrees, single_root)
