"""Finding a directed cycle among parents given by position."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

__all__ = ["find_cycle"]


def find_cycle(parents: Sequence[Sequence[int]] | Mapping[int, Sequence[int]], n: int) -> list[int] | None:
    """Positions along a directed cycle, from parent to child and back to the first; None when there is none.

    ``parents[v]`` are the parents of variable v (a mapping may leave out roots). Time is linear in the arcs.

    Examples
    --------
    >>> find_cycle([[], [0], [1]], 3) is None
    True
    >>> find_cycle([[2], [0], [1]], 3)
    [0, 1, 2, 0]
    """
    above = [parents.get(v, ()) for v in range(n)] if isinstance(parents, Mapping) else parents
    # Most networks are written with parents first: then there is nothing to search.
    if all(p < v for v, those in enumerate(above) for p in those):
        return None
    # Depth first with a stack of our own, so that long chains do not meet the recursion limit.
    colour = [0] * n
    for start in range(n):
        if colour[start]:
            continue
        colour[start] = 1
        path, stack = [start], [iter(above[start])]
        while stack:
            for p in stack[-1]:
                if colour[p] == 1:
                    return [*path[path.index(p) :], p][::-1]
                if not colour[p]:
                    colour[p] = 1
                    path.append(p)
                    stack.append(iter(above[p]))
                    break
            else:
                colour[path.pop()] = 2
                stack.pop()
    return None
