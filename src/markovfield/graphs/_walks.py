"""Walks through graphs that conditioning leaves open; every one visits each node and edge a bounded number of times."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

__all__ = ["ancestral_set", "moral_reach", "path_to", "plain_walk", "trail_walk"]

Previous = dict[Any, Any]


def ancestral_set(nodes: Iterable[Any], *before: Mapping[Any, Iterable[Any]]) -> set[Any]:
    """Nodes and all from which they are reached: the closure under each of the adjacencies (parents, neighbours)."""
    found = set(nodes)
    stack = list(found)
    while stack:
        v = stack.pop()
        for adjacency in before:
            for u in adjacency[v]:
                if u not in found:
                    found.add(u)
                    stack.append(u)
    return found


def plain_walk(
    adjacency: Mapping[Any, Iterable[Any]], sources: Iterable[Any], targets: Collection[Any], given: Collection[Any]
) -> tuple[Any, Previous]:
    """Breadth-first from the sources around ``given``: the first target met (or None) and who found whom."""
    previous: Previous = dict.fromkeys(sources)
    queue = deque(previous)
    while queue:
        v = queue.popleft()
        for u in adjacency[v]:
            if u not in previous and u not in given:
                previous[u] = v
                if u in targets:
                    return u, previous
                queue.append(u)
    return None, previous


def trail_walk(
    parents: Mapping[Any, Iterable[Any]],
    children: Mapping[Any, Iterable[Any]],
    siblings: Mapping[Any, Iterable[Any]] | None,
    sources: Iterable[Any],
    targets: Collection[Any],
    given: Collection[Any],
) -> tuple[Any, Previous]:
    """Breadth-first along trails that ``given`` does not block (Bayes ball).

    A state is a node and whether the trail entered it through an arrowhead. Where it also leaves against an arrowhead
    the node is a collider, open when it or a descendant is given; any other node is open when it is not given. A
    shortest trail of states repeats no node: where it would, the trail can be cut short, since a node from which a
    trail runs down to an open collider is itself an ancestor of ``given``.

    Returns
    -------
    The first state met at a target (or None) and the state before each state.
    """
    opened = ancestral_set(given, parents)
    previous: Previous = {(v, False): None for v in sources}
    queue = deque(previous)
    while queue:
        state = queue.popleft()
        v, entered_at_head = state
        steps: list[tuple[Any, bool]] = []
        if v not in given:
            steps += [(u, True) for u in children[v]]
        if v in opened if entered_at_head else v not in given:
            steps += [(u, False) for u in parents[v]]
            if siblings is not None:
                steps += [(u, True) for u in siblings[v]]
        for step in steps:
            if step not in previous:
                previous[step] = state
                if step[0] in targets:
                    return step, previous
                queue.append(step)
    return None, previous


def path_to(end: Any, previous: Previous) -> list[Any]:
    """The walk that ended at ``end``, from its source."""
    path = [end]
    while previous[path[-1]] is not None:
        path.append(previous[path[-1]])
    return path[::-1]


def moral_reach(
    parents: Mapping[Any, Iterable[Any]],
    children: Mapping[Any, Iterable[Any]],
    neighbours: Mapping[Any, Iterable[Any]] | None,
    component: Callable[[Any], Collection[Any]],
    kept: Collection[Any],
    sources: Iterable[Any],
    given: Collection[Any],
) -> set[Any]:
    """Nodes joined to the sources around ``given`` in the moralised graph on ``kept``, without building it.

    All parents of a component (a node of a DAG, a chain component of a chain graph) are married. Each component's
    parents are listed once, by the first of them that is reached, so that large families cost no more than their edges.
    """
    found = set(sources)
    stack = list(found)
    married: set[Any] = set()
    while stack:
        v = stack.pop()
        around = list(parents[v])
        if neighbours is not None:
            around += neighbours[v]
        for child in children[v]:
            if child in kept:
                around.append(child)
                if child not in married:
                    members = component(child)
                    married.update(members)
                    for member in members:
                        around += parents[member]
        for u in around:
            if u not in found and u not in given:
                found.add(u)
                stack.append(u)
    return found
