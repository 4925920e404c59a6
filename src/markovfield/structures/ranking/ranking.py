"""Rankings of the items of one list."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from markovfield._validation import whole_number
from markovfield.arrays import FloatArray, IntArray
from markovfield.exceptions import ModelError
from markovfield.structures.core.form import StructureForm, listed, place, score_array
from markovfield.structures.ranking.family import Rankings

__all__ = ["Ranking"]


class Ranking(StructureForm):
    """Rankings of items: permutations, the first k in order, or the first k as a set.

    A structure is a list of items, the first position first; a set is sorted. There are ``n!`` permutations,
    ``n! / (n - k)!`` lists of k items and ``C(n, k)`` sets.

    Parameters
    ----------
    scores
        ``float[n]``: of items; the score of a ranking is the sum of ``scores[item] * discounts[position]``. Or
        ``float[n, k]``: of item i at position p, for k positions; -inf rules one out.
    discounts
        ``float[k]``: what positions count, with scores of items. ``1 / log2(2 + p)`` when None, as in discounted
        cumulative gain.
    top
        How many items are ranked: all for which there are positions when None. What is not ranked scores 0.
    ordered
        False, with scores of items: only which items are the first ``top`` counts, as in precision at k, and each
        scores what it scores.

    Notes
    -----
    The best is found by sorting where that is right (always with discounts that fall, and for sets) and by an
    assignment otherwise, so it and the n best are exact at any size. Sums and draws are exact for about 20 positions,
    and for sets of any size; above that log Z is a lower bound with an upper bound beside it (``guarantee ==
    "lower"``), as for `Matching`, and draws are refused: `PlackettLuce` draws at any size from another distribution.

    Examples
    --------
    >>> import markovfield as mf
    >>> mf.structures.Ranking(np.zeros(5)).n_structures()
    120.0
    >>> ranking = mf.structures.Ranking([0.2, 1.5, 0.7, -1.0], top=2)
    >>> mf.decode(ranking).structure
    [1, 2]
    >>> mf.marginals(ranking)["positions"].round(2).tolist()
    [[0.19, 0.25], [0.47, 0.3], [0.28, 0.31], [0.06, 0.13]]
    >>> pairs = mf.structures.Ranking([0.2, 1.5, 0.7, -1.0], top=2, ordered=False)
    >>> [one.structure for one in mf.decode(pairs, n_best=3).n_best]
    [[1, 2], [0, 1], [0, 2]]
    """

    parts: ClassVar[tuple[str, ...]] = ("positions", "unranked")
    family: Rankings

    def __init__(
        self,
        scores: npt.ArrayLike,
        *,
        discounts: npt.ArrayLike | None = None,
        top: int | None = None,
        ordered: bool = True,
    ) -> None:
        given = score_array(scores, "scores of items", np.ndim(scores))
        if given.ndim not in (1, 2):
            raise ModelError(f"scores must be those of n items, or of n items at k positions, got shape {given.shape}")
        n = len(given)
        most = n if given.ndim == 1 or not ordered else given.shape[1]
        if n == 0 or most == 0:
            raise ModelError(f"a ranking needs an item and a position at least, got scores of shape {given.shape}")
        if most > n:
            raise ModelError(f"{n} items cannot fill {most} positions")
        k = most if top is None else whole_number(top, "top", 1)
        if k > most:
            raise ModelError(f"top must be from 1 to {most}, got {top}")
        if not ordered:
            if given.ndim != 1 or discounts is not None:
                raise ModelError("a set of items has scores of items, one for each, and no discounts")
            table = given[:, None]
        elif given.ndim == 2:
            if discounts is not None:
                raise ModelError("discounts are for scores of items, not for those of items at positions")
            table = given[:, :k]
        else:
            table = _discounted(given, discounts, k)
        self.family = Rankings.of(np.array([n]), np.array([k]), ordered=ordered)
        self.pool = np.concatenate([np.ascontiguousarray(table).ravel(), np.zeros(n if k < n else 0)])

    def __repr__(self) -> str:
        k, n = int(self.family.top[0]), int(self.family.items[0])
        what = f"{n} items" if k == n else f"the first {k} of {n} items"
        return f"Ranking of {what}" + ("" if self.family.ordered else ", as a set")

    def shaped(self, values: FloatArray) -> dict[str, FloatArray]:
        positions, unranked = self.family.split(0, values)
        return {"positions": positions.copy(), "unranked": unranked.copy()}

    def cell(self, part: str, index: tuple[int, ...]) -> int:
        n, m = int(self.family.items[0]), self.family.positions(0)
        where = place(index)
        if part == "positions":
            if not (len(where) == 2 and 0 <= where[0] < n and 0 <= where[1] < m):
                raise ModelError(
                    f"a part is (item, position) with items below {n} and positions below {m}, got {index}"
                )
            return where[0] * m + where[1]
        if int(self.family.top[0]) == n:
            raise ModelError("all items are ranked: none is unranked")
        if not (len(where) == 1 and 0 <= where[0] < n):
            raise ModelError(f"unranked items are 0 to {n - 1}, got {index}")
        return n * m + where[0]

    def structure(self, cells: IntArray) -> list[int]:
        n, m = int(self.family.items[0]), self.family.positions(0)
        item, position = np.divmod(np.sort(cells[cells < n * m]), m)
        return [int(i) for i in item[np.argsort(position, kind="stable")]]

    def cells(self, structure: Any) -> IntArray:
        n, k = int(self.family.items[0]), int(self.family.top[0])
        ranked = [i for (i,) in listed(structure, (1,), "items")]
        if len(ranked) != k or len(set(ranked)) != k or not all(0 <= i < n for i in ranked):
            raise ModelError(f"a ranking has {k} different items from 0 to {n - 1}, got {ranked}")
        places = np.full(n, -1, np.int64)
        places[ranked] = np.arange(k) if self.family.ordered else 0
        return self.family.cells_of(0, places)


def _discounted(scores: FloatArray, discounts: Any, k: int) -> FloatArray:
    """Products of scores and discounts; -inf stays what it is."""
    if discounts is None:
        falling = 1.0 / np.log2(2.0 + np.arange(k))
    else:
        falling = score_array(discounts, "discounts", 1)
        if len(falling) < k:
            raise ModelError(f"discounts are needed for {k} positions, got {len(falling)}: give more, or a smaller top")
        if not np.isfinite(falling).all():
            raise ModelError("discounts must be finite")
    ruled_out = np.isneginf(scores)
    table = np.outer(np.where(ruled_out, 0.0, scores), falling[:k])
    table[ruled_out] = -np.inf
    return table
