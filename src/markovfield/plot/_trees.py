"""Tidy drawings of trees. Sizes are in points."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import TypeVar

__all__ = ["tidy_forest"]

Node = TypeVar("Node", bound=Hashable)


def tidy_forest(
    roots: Sequence[Node], children: Mapping[Node, Sequence[Node]], breadth: Mapping[Node, float], *, gap: float
) -> tuple[dict[Node, float], dict[Node, int], float]:
    """Places across and depths of the nodes of trees standing side by side.

    Each parent stands over the middle of its children, subtrees next to each other as close as their outlines allow.

    Returns
    -------
    place, depth, total
        Centre of each node across, its depth, and the whole breadth.
    """
    place: dict[Node, float] = {}
    depth: dict[Node, int] = {}
    order: list[Node] = []
    stack = [(root, 0) for root in reversed(roots)]
    while stack:
        v, d = stack.pop()
        depth[v] = d
        order.append(v)
        stack += [(c, d + 1) for c in reversed(list(children.get(v, ())))]
    # Outline of a subtree: per depth, leftmost and rightmost extent relative to its root's centre.
    outlines: dict[Node, list[tuple[float, float]]] = {}
    shift: dict[Node, float] = {}
    for v in reversed(order):
        own = (-breadth[v] / 2, breadth[v] / 2)
        below = list(children.get(v, ()))
        at, merged = _pack([outlines.pop(c) for c in below], gap)
        middle = (at[0] + at[-1]) / 2 if at else 0.0
        for c, where in zip(below, at, strict=True):
            shift[c] = where - middle
        outlines[v] = [own, *((low - middle, high - middle) for low, high in merged)]
    at, merged = _pack([outlines[r] for r in roots], gap)
    left = min((low for low, _ in merged), default=0.0)
    for r, where in zip(roots, at, strict=True):
        shift[r] = where - left
    above = {c: v for v in order for c in children.get(v, ())}
    for v in order:
        place[v] = shift[v] + (place[above[v]] if v in above else 0.0)
    return place, depth, max((high for _, high in merged), default=0.0) - left


def _pack(outlines: list[list[tuple[float, float]]], gap: float) -> tuple[list[float], list[tuple[float, float]]]:
    """Put outlines side by side, each as far left as it goes; their places and the outline of all."""
    at: list[float] = []
    merged: list[tuple[float, float]] = []
    for outline in outlines:
        where = max((right + gap - low for (_, right), (low, _) in zip(merged, outline, strict=False)), default=0.0)
        at.append(where)
        for d, (low, high) in enumerate(outline):
            if d < len(merged):
                merged[d] = (merged[d][0], where + high)
            else:
                merged.append((where + low, where + high))
    return at, merged
