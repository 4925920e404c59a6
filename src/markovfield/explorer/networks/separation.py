"""Whether evidence separates two sets of variables, by which paths it does not, and why, in words."""

from __future__ import annotations

from collections import deque
from itertools import islice, pairwise
from typing import Any

import networkx as nx

import markovfield as mf
from markovfield.exceptions import ModelError
from markovfield.explorer.networks.network import Network

__all__ = ["separation"]

MOST_PATHS, MOST_BLOCKED = 8, 4
# Pieces of paths that are looked at for active ones.
MOST_STEPS = 20_000
# Simple paths are looked at in so large a neighbourhood of the two sets.
LONGEST = 7


def separation(network: Network, asked: dict[str, Any]) -> dict[str, Any]:
    """``{"a": [...], "b": [...], "given": [...]}``: the answer of the graph, active paths, sentences.

    Of the evidence, interventions count, which take the arrows into a variable away and make it known, and likelihoods,
    which are a child that is observed.
    """
    a, b = network.positions(asked.get("a"), "a"), network.positions(asked.get("b"), "b")
    given = network.positions(asked.get("given", []), "given")
    if not a or not b:
        raise ModelError("pick at least one variable for each of the two sets")
    sets = {"A": set(a), "B": set(b), "the given ones": set(given)}
    for (one, these), (two, those) in (
        ((x, sets[x]), (y, sets[y])) for x, y in (("A", "B"), ("A", "the given ones"), ("B", "the given ones"))
    ):
        if shared := these & those:
            raise ModelError(f"{network.shown[min(shared)]!r} is in {one} and among {two}: it can be in one set only")
    known = network.known(asked)
    do = {v: x for v, x in known.do.items() if v not in sets["A"] | sets["B"]}
    given = list(dict.fromkeys([*given, *do]))
    network = network.after(known.do)
    soft = sorted(set(known.likelihoods) - set(given)) if network.directed else []
    graph = network.dag if network.directed else network.primal
    if soft:
        graph = graph.copy()
        graph.add_edges_from((v, network.n + v) for v in soft)
    told = mf.graphs.d_separated if network.directed else mf.graphs.separated
    seen = [*given, *(network.n + v for v in soft)]
    apart = bool(told(graph, set(a), set(b), set(seen)))
    if apart:
        found, why = _simple_paths(network, a, b), _blocked
    else:
        found, why = _active_paths(network, set(a), set(b), set(given), set(soft)), _open
        if not found and (first := mf.graphs.active_path(graph, a, b, seen)) and max(first) < network.n:
            # What the walk gives may pass a node twice; it is shown only where the enumeration gave up before it.
            found = [first]
    return {
        "separated": apart,
        "paths": [
            {"nodes": p, "shown": _shown(network, p), "why": why(network, p, set(given), set(soft))} for p in found
        ],
        "statement": _statement(network, a, b, [v for v in given if v not in do], list(known.do), soft, apart),
    }


def _list(network: Network, those: list[int]) -> str:
    names = [network.shown[v] for v in those]
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _statement(
    network: Network, a: list[int], b: list[int], given: list[int], do: list[int], soft: list[int], apart: bool
) -> str:
    parts = [f"given {_list(network, given)}"] if given else []
    if soft:
        parts.append(f"{'' if given else 'given '}the likelihoods of {_list(network, soft)}")
    condition = f" {' and '.join(parts) or 'while nothing is given'}"
    if do:
        condition += f" after do({', '.join(network.shown[v] for v in do)})"
    if apart:
        kind = "d-separated" if network.directed else "separated"
        return (
            f"{_list(network, a)} and {_list(network, b)} are {kind}{condition}: independent, whatever the numbers are."
        )
    return (
        f"{_list(network, a)} and {_list(network, b)} are not separated{condition}: "
        "the graph allows that they depend on each other."
    )


def _active_paths(network: Network, a: set[int], b: set[int], given: set[int], soft: set[int]) -> list[list[int]]:
    """Active paths without repetition from one of A to one of B through neither, shortest first."""
    opened = given | soft
    if network.directed:
        for v in given | soft:
            opened |= nx.ancestors(network.dag, v)
    graph = network.primal_of_arcs
    found: list[list[int]] = []
    waiting = deque([v] for v in sorted(a))
    for _ in range(MOST_STEPS):
        if not waiting or len(found) == MOST_PATHS:
            break
        path = waiting.popleft()
        for after in sorted(graph.neighbors(path[-1])):
            if after in path or after in a:
                continue
            if len(path) > 1:
                collides = _role(network, path[-2], path[-1], after) == "collider"
                if (path[-1] not in opened) if collides else (path[-1] in given):
                    continue
            if after not in b:
                waiting.append([*path, after])
            elif len(found) < MOST_PATHS:
                found.append([*path, after])
    return found


def _simple_paths(network: Network, a: list[int], b: list[int]) -> list[list[int]]:
    """A few short paths, which something blocks; one that is longer where there are none."""
    found: list[list[int]] = []
    graph = network.primal_of_arcs
    for x in a:
        for y in b:
            if len(found) < MOST_BLOCKED and nx.has_path(graph, x, y):
                for path in islice(nx.shortest_simple_paths(graph, x, y), MOST_BLOCKED - len(found)):
                    if len(path) <= LONGEST:
                        found.append(path)
    if not found:
        joined = ((x, y) for x in a for y in b if nx.has_path(graph, x, y))
        found = [nx.shortest_path(graph, x, y) for x, y in islice(joined, 1)]
    return found


def _role(network: Network, left: int, v: int, right: int) -> str:
    if not network.directed:
        return "edge"
    into = network.dag.has_edge(left, v), network.dag.has_edge(right, v)
    return {(True, True): "collider", (False, False): "fork"}.get(into, "chain")


def _opened_by(network: Network, v: int, given: set[int]) -> int | None:
    """The given variable that opens a collider: itself or a descendant."""
    if v in given:
        return v
    return min(nx.descendants(network.dag, v) & given, default=None)


def _opener(network: Network, v: int, given: set[int], soft: set[int]) -> str | None:
    """What opens a collider, in words."""
    for those, is_given in ((given, "is given"), (soft, "has likelihoods")):
        by = _opened_by(network, v, those)
        if by is not None:
            return f"it {is_given}" if by == v else f"its descendant {network.shown[by]} {is_given}"
    return None


def _open(network: Network, path: list[int], given: set[int], soft: set[int]) -> list[str]:
    """Why each inner variable of an active path lets it through."""
    if len(path) == 2:
        return [f"{network.shown[path[0]]} and {network.shown[path[1]]} are neighbours."]
    why = []
    for left, v, right in zip(path, path[1:], path[2:], strict=False):
        one, name, two = (network.shown[u] for u in (left, v, right))
        role = _role(network, left, v, right)
        if role == "collider":
            opener = _opener(network, v, given, soft)
            why.append(f"{one} → {name} ← {two}: {opener}, so its causes speak of each other (explaining away).")
        elif role == "fork":
            why.append(f"{one} ← {name} → {two}: the common cause {name} is not given.")
        else:
            why.append(f"{name} is not given and passes on what {one} says about {two}.")
    return why


def _blocked(network: Network, path: list[int], given: set[int], soft: set[int]) -> list[str]:
    """What blocks a path: the first variable that does."""
    for left, v, right in zip(path, path[1:], path[2:], strict=False):
        one, name, two = (network.shown[u] for u in (left, v, right))
        role = _role(network, left, v, right)
        if role == "collider" and _opener(network, v, given, soft) is None:
            return [f"{one} → {name} ← {two}: neither {name} nor a descendant of it is given, so it blocks."]
        if role != "collider" and v in given:
            arrow = {"fork": f"{one} ← {name} → {two}", "edge": f"{one} – {name} – {two}"}.get(
                role, f"{one}, {name}, {two} in a row"
            )
            return [f"{arrow}: {name} is given, so nothing passes."]
    return []


def _shown(network: Network, path: list[int]) -> str:
    """A path with its arrows."""
    text = network.shown[path[0]]
    for u, v in pairwise(path):
        arrow = "–" if not network.directed else "→" if network.dag.has_edge(u, v) else "←"
        text += f" {arrow} {network.shown[v]}"
    return text
