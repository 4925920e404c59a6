"""Links between words of two sentences: gold ones, sure or possible; two directions made one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from markovfield._validation import number
from markovfield.arrays import BoolArray, FloatArray
from markovfield.exceptions import ModelError

__all__ = ["SYMMETRISATIONS", "GoldLinks", "gold_links", "gold_tables", "links_above", "symmetrised"]

Link = tuple[int, int]
SYMMETRISATIONS = ("intersection", "union", "grow_diag", "grow_diag_final", "grow_diag_final_and")
_NEIGHBOURS = ((-1, 0), (0, -1), (1, 0), (0, 1), (-1, -1), (-1, 1), (1, -1), (1, 1))


class GoldLinks(NamedTuple):
    """The links of a sentence pair as annotators see them, ``(source position, target position)`` from 0.

    Attributes
    ----------
    sure
        Links that must be there.
    possible
        Links that may be there; sure ones are possible, whether they stand here or not.
    """

    sure: frozenset[Link]
    possible: frozenset[Link] = frozenset()

    @property
    def allowed(self) -> frozenset[Link]:
        """Sure and possible links together."""
        return self.sure | self.possible


def gold_links(links: Any, k: int = 0) -> GoldLinks:
    """The links of pair ``k``: a `GoldLinks`, a pair (sure, possible) of sets, or links that are all sure."""
    try:
        if isinstance(links, GoldLinks) or (
            isinstance(links, tuple) and len(links) == 2 and all(isinstance(own, set | frozenset) for own in links)
        ):
            return GoldLinks(*(frozenset((int(i), int(j)) for i, j in own) for own in links))
        return GoldLinks(frozenset((int(i), int(j)) for i, j in links))
    except (TypeError, ValueError):
        raise ModelError(f"the links of pair {k} must be (source position, target position), got {links!r}") from None


def gold_tables(links: Any, k: int, n: int, m: int) -> tuple[BoolArray, BoolArray]:
    """``bool[n, m]`` of sure links and of all that are allowed; errors name the pair."""
    given = gold_links(links, k)
    sure, allowed = np.zeros((n, m), np.bool_), np.zeros((n, m), np.bool_)
    for table, own in ((sure, given.sure), (allowed, given.allowed)):
        for i, j in own:
            if not (0 <= i < n and 0 <= j < m):
                raise ModelError(f"pair {k} has {n} source and {m} target words, and a link ({i}, {j})")
            table[i, j] = True
    return sure, allowed


def links_above(matrices: Iterable[FloatArray], threshold: float) -> list[list[Link]]:
    """For each matrix of probabilities the links that have at least so much."""
    least = number(threshold, "threshold", least=0.0)
    return [[(i, j) for i, j in np.argwhere(matrix >= least).tolist()] for matrix in matrices]


def symmetrised(forward: Iterable[Link], backward: Iterable[Link], how: str = "grow_diag_final") -> list[Link]:
    """Links of both directions made one (Och and Ney 2003; Koehn, Och and Marcu 2003).

    Parameters
    ----------
    forward, backward
        Links ``(i, j)`` of a model of targets given sources, and of one of sources given targets; in both, i is the
        source position.
    how
        ``"intersection"``, ``"union"``; ``"grow_diag"`` adds to the intersection links of the union that touch one of
        it, also at corners, and bring a word that has none; ``"grow_diag_final"`` then links words that have still
        none, ``"grow_diag_final_and"`` only where both have none.

    Examples
    --------
    >>> symmetrised([(0, 0), (1, 1), (1, 2)], [(0, 0), (1, 1), (3, 3)], "grow_diag")
    [(0, 0), (1, 1), (1, 2)]
    >>> symmetrised([(0, 0), (1, 1), (1, 2)], [(0, 0), (1, 1), (3, 3)])
    [(0, 0), (1, 1), (1, 2), (3, 3)]
    """
    one, other = set(forward), set(backward)
    if how == "intersection":
        return sorted(one & other)
    if how == "union":
        return sorted(one | other)
    if how not in SYMMETRISATIONS:
        raise ModelError(f"symmetrisation must be one of {', '.join(map(repr, SYMMETRISATIONS))}, got {how!r}")
    both, found = one | other, one & other
    rows, columns = {i for i, _ in found}, {j for _, j in found}

    def add(link: Link) -> None:
        found.add(link)
        rows.add(link[0])
        columns.add(link[1])

    waiting: Sequence[Link] = sorted(found)
    while waiting:
        new = []
        for i, j in waiting:
            for di, dj in _NEIGHBOURS:
                link = (i + di, j + dj)
                if link in both and link not in found and (link[0] not in rows or link[1] not in columns):
                    add(link)
                    new.append(link)
        waiting = sorted(new)
    if how != "grow_diag":
        for own in (one, other):
            for i, j in sorted(own - found):
                free = i not in rows, j not in columns
                if all(free) if how.endswith("_and") else any(free):
                    add((i, j))
    return sorted(found)
