"""Undirected drawings: places by graph distance, stretched until no two boxes touch. Sizes in points."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["scatter"]

# Beyond these, the costlier layout is given up, and boxes, which are then dots, may touch.
MOST_STRESS = 150
MOST_APART = 80
PIVOTS = 60


def scatter(
    n: int, edges: list[tuple[int, int]], sizes: list[tuple[float, float]]
) -> tuple[npt.NDArray[np.float64], float, float]:
    """Places in points by networkx's layouts, stretched until no two boxes touch."""
    import networkx as nx

    drawn = nx.Graph()
    drawn.add_nodes_from(range(n))
    drawn.add_edges_from(edges)
    components: list[npt.NDArray[np.float64]] = []
    members: list[list[int]] = []
    for component in sorted(nx.connected_components(drawn), key=lambda c: (-len(c), min(c))):
        nodes = sorted(component)
        component = drawn.subgraph(nodes)
        found = _pivot_scaling(component, nodes)
        if 2 < len(nodes) <= MOST_STRESS:
            # Stress alone falls into twisted local optima; from here it only evens out the distances.
            start = dict(zip(nodes, found, strict=True))
            refined = nx.kamada_kawai_layout(component, pos=start)
            found = np.array([refined[v] for v in nodes])
        # Layouts are free up to reflection: let the first nodes stand at the upper left.
        rank = np.arange(len(nodes)) - (len(nodes) - 1) / 2
        found = found * np.where(rank @ found < 0, -1.0, 1.0) * np.array([1.0, -1.0])
        components.append(_stretch(found, [sizes[v] for v in nodes]))
        members.append(nodes)
    return _side_by_side(components, members, sizes)


def _pivot_scaling(component: Any, nodes: list[int]) -> npt.NDArray[np.float64]:
    """Multidimensional scaling of graph distances to some pivots (Brandes and Pich 2006); linear in the graph."""
    import networkx as nx

    if len(nodes) == 1:
        return np.zeros((1, 2))
    nearest = np.full(len(nodes), np.inf)
    columns = []
    pivot = 0
    for _ in range(min(len(nodes), PIVOTS)):
        reached = nx.single_source_shortest_path_length(component, nodes[pivot])
        columns.append([float(reached[v]) for v in nodes])
        nearest = np.minimum(nearest, columns[-1])
        pivot = int(np.argmax(nearest))
    squared = np.array(columns).T ** 2
    centred = squared - squared.mean(axis=0) - squared.mean(axis=1, keepdims=True) + squared.mean()
    _, _, axes = np.linalg.svd(centred, full_matrices=False)
    places = -0.5 * centred @ axes[:2].T
    places = np.hstack([places, np.zeros((len(nodes), 2 - places.shape[1]))])
    scale = float(np.abs(places).max()) or 1.0
    # Twins, which have equal distances to all others, must not coincide.
    jitter = np.random.default_rng(0).normal(scale=1e-3, size=places.shape)
    return places / scale + jitter


def _stretch(places: npt.NDArray[np.float64], sizes: list[tuple[float, float]]) -> npt.NDArray[np.float64]:
    """The least uniform scale at which boxes, with a little air, do not overlap."""
    if len(places) == 1:
        return np.zeros((1, 2))
    box = np.array(sizes) + np.array([14.0, 12.0])
    room = (box[:, None, :] + box[None, :, :]) / 2
    away = np.abs(places[:, None, :] - places[None, :, :])
    away[np.arange(len(places)), np.arange(len(places))] = np.inf
    with np.errstate(divide="ignore", invalid="ignore"):
        needed = np.min(np.where(away > 0, room / away, np.inf), axis=2)
    apart = float(np.max(np.where(np.isfinite(needed), needed, 0.0)))
    # Dots may touch: a large graph must stay on a page.
    extent = float(np.ptp(places, axis=0).max()) or 1.0
    limit = 1400.0 if len(places) <= MOST_APART else 700.0
    return places * min(apart, limit / extent)


def _side_by_side(
    components: list[npt.NDArray[np.float64]], members: list[list[int]], sizes: list[tuple[float, float]]
) -> tuple[npt.NDArray[np.float64], float, float]:
    """Components in rows of about the width of the largest one."""
    gap = 24.0
    boxes = []
    for component, nodes in zip(components, members, strict=True):
        half = np.array([sizes[v] for v in nodes]) / 2
        low, high = (component - half).min(axis=0), (component + half).max(axis=0)
        component -= low
        boxes.append(high - low)
    area = sum((w + gap) * (h + gap) for w, h in boxes)
    limit = max([w for w, _ in boxes] + [1.4 * float(np.sqrt(area))])
    places = np.zeros((sum(len(m) for m in members), 2))
    x = y = tall = width = 0.0
    for component, nodes, (w, h) in zip(components, members, boxes, strict=True):
        if x and x + w > limit:
            x, y, tall = 0.0, y + tall + gap, 0.0
        places[nodes] = component + np.array([x, y])
        x, tall = x + w + gap, max(tall, h)
        width = max(width, x - gap)
    return places, float(width), float(y + tall)
