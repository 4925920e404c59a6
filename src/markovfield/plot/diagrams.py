"""Drawings of models: arcs of a Bayesian network, the factor graph, the primal graph."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from markovfield.exceptions import ModelError
from markovfield.factor_graph import FactorGraph
from markovfield.inference.verbs import graph_of
from markovfield.plot import _style as style
from markovfield.plot._layouts import layered

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["graph"]

Kind = Literal["auto", "directed", "factor", "primal"]
# Beyond these, nodes are dots without names, and the costlier layout is given up.
MOST_LABELS = 80
MOST_STRESS = 150
PIVOTS = 60
MOST_FACTORS_DRAWN = 60
PAD = 8.0
FACTOR_SIDE = 9.0


def graph(
    model: Any,
    *,
    kind: Kind = "auto",
    evidence: Mapping[Any, Any] | None = None,
    title: str | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw a model.

    Parameters
    ----------
    model
        Anything that compiles to a factor graph.
    kind
        ``"directed"``: arcs from parents to children, in rows. ``"factor"``: variables, and a black square for each
        factor. ``"primal"``: an edge wherever two variables share a factor. ``"auto"`` takes the first for Bayesian
        networks, the second for small models, else the third.
    evidence
        Observed variables; drawn in orange, with their states.
    title
        Replaces the title.
    ax
        Where to draw; a new figure of fitting size when None.

    Returns
    -------
    Axes
        In points, y upwards.

    Examples
    --------
    >>> import markovfield as mf
    >>> ax = mf.plot.graph(mf.datasets.diagnosis_network())
    >>> "heating" in [text.get_text() for text in ax.texts]
    True
    """
    compiled = graph_of(model)
    s = compiled.structure
    if not s.n_variables:
        raise ModelError("plot.graph(model) needs a model with at least one variable")
    directed = bool(s.n_factors) and sorted(s.child.tolist()) == list(range(s.n_variables))
    if kind == "auto":
        small = s.n_variables + s.n_factors <= MOST_FACTORS_DRAWN
        kind = "directed" if directed else "factor" if small else "primal"
    if kind not in ("directed", "factor", "primal"):
        raise ModelError(f"plot.graph(kind=...) is 'auto', 'directed', 'factor' or 'primal', got {kind!r}")
    if kind == "directed" and not directed:
        raise ModelError("plot.graph(kind='directed') needs one conditional distribution for each variable")
    seen = set(s.names.positions(list(evidence or {})))
    labels = [str(v) for v in s.names.variables]
    for name, state in (evidence or {}).items():
        labels[s.names.position(name)] = f"{name}\n= {state}"
    if kind == "directed":
        return _directed(compiled, labels, seen, title, ax)
    return _undirected(compiled, labels, seen, kind == "factor", title, ax)


def _variable(canvas: style.Canvas, at: tuple[float, float], label: str, size: tuple[float, float], seen: bool) -> None:
    fill, edge = (style.ORANGE_PALE, style.ORANGE) if seen else (style.BLUE_PALE, style.BLUE)
    canvas.box(*at, *size, fill=fill, edge=edge, rounding=8.0)
    canvas.text(*at, label)


def _sizes(labels: Iterable[str]) -> list[tuple[float, float]]:
    measured = (style.text_size(label) for label in labels)
    return [(max(w + 2 * PAD, 24.0), h + PAD) for w, h in measured]


def _directed(compiled: FactorGraph, labels: list[str], seen: set[int], title: str | None, ax: Axes | None) -> Axes:
    s = compiled.structure
    parents: dict[int, list[int]] = {}
    for f, child in enumerate(s.child.tolist()):
        parents[child] = [v for v in s.scope(f).tolist() if v != child]
    sizes = _sizes(labels)
    placed = layered(sizes, parents)
    arcs = sum(len(p) for p in parents.values())
    heading = f"Bayesian network: {s.n_variables} variables, {arcs} arcs" if title is None else title
    canvas = style.Canvas.open(ax, placed.width, placed.height, heading)
    for route in placed.routes.values():
        canvas.curve(route, vertical=True, arrow=True)
    for v, at in placed.centres.items():
        _variable(canvas, at, labels[v], sizes[v], v in seen)
    return canvas.ax


def _undirected(
    compiled: FactorGraph, labels: list[str], seen: set[int], factors: bool, title: str | None, ax: Axes | None
) -> Axes:
    s = compiled.structure
    n = s.n_variables
    edges: set[tuple[int, int]] = set()
    for f in range(s.n_factors):
        scope = s.scope(f).tolist()
        if factors:
            edges |= {(v, n + f) for v in scope}
        else:
            edges |= {(min(a, b), max(a, b)) for i, a in enumerate(scope) for b in scope[:i]}
    total = n + s.n_factors if factors else n
    named = n <= MOST_LABELS
    sizes = (_sizes(labels) if named else [(5.0, 5.0)] * n) + [(FACTOR_SIDE, FACTOR_SIDE)] * (total - n)
    places, width, height = _scatter(total, sorted(edges), sizes)
    kind = "Factor graph" if factors else "Primal graph"
    counted = f"{s.n_factors} factors" if factors else f"{len(edges)} edges"
    heading = f"{kind}: {n} variables, {counted}" if title is None else title
    canvas = style.Canvas.open(ax, width, height, heading)
    from matplotlib.collections import LineCollection

    lines = [(places[a], places[b]) for a, b in sorted(edges)]
    thin = 1.2 if named else 0.6
    canvas.ax.add_collection(LineCollection(lines, colors=style.LINE, linewidths=thin * canvas.scale, zorder=1))
    if named:
        for v in range(n):
            _variable(canvas, (places[v][0], places[v][1]), labels[v], sizes[v], v in seen)
    else:
        colours = [style.ORANGE if v in seen else style.BLUE for v in range(n)]
        canvas.ax.scatter(places[:n, 0], places[:n, 1], s=16 * canvas.scale**2, c=colours, zorder=3, linewidths=0)
    for f in range(n, total):
        canvas.box(places[f, 0], places[f, 1], FACTOR_SIDE, FACTOR_SIDE, fill=style.INK, edge=style.INK, rounding=1.5)
    return canvas.ax


def _scatter(
    n: int, edges: list[tuple[int, int]], sizes: list[tuple[float, float]]
) -> tuple[npt.NDArray[np.float64], float, float]:
    """Places in points by networkx's layouts, stretched until no two boxes touch."""
    import networkx as nx

    drawn = nx.Graph()
    drawn.add_nodes_from(range(n))
    drawn.add_edges_from(edges)
    parts: list[npt.NDArray[np.float64]] = []
    members: list[list[int]] = []
    for component in sorted(nx.connected_components(drawn), key=lambda c: (-len(c), min(c))):
        nodes = sorted(component)
        part = drawn.subgraph(nodes)
        found = _pivot_scaling(part, nodes)
        if 2 < len(nodes) <= MOST_STRESS:
            # Stress alone falls into twisted local optima; from here it only evens out the distances.
            start = dict(zip(nodes, found, strict=True))
            refined = nx.kamada_kawai_layout(part, pos=start)
            found = np.array([refined[v] for v in nodes])
        # Layouts are free up to reflection: let the first nodes stand at the upper left.
        rank = np.arange(len(nodes)) - (len(nodes) - 1) / 2
        found = found * np.where(rank @ found < 0, -1.0, 1.0) * np.array([1.0, -1.0])
        parts.append(_stretch(found, [sizes[v] for v in nodes]))
        members.append(nodes)
    return _side_by_side(parts, members, sizes)


def _pivot_scaling(part: Any, nodes: list[int]) -> npt.NDArray[np.float64]:
    """Multidimensional scaling of graph distances to some pivots (Brandes and Pich 2006); linear in the graph."""
    import networkx as nx

    if len(nodes) == 1:
        return np.zeros((1, 2))
    nearest = np.full(len(nodes), np.inf)
    columns = []
    pivot = 0
    for _ in range(min(len(nodes), PIVOTS)):
        reached = nx.single_source_shortest_path_length(part, nodes[pivot])
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
    limit = 1400.0 if len(places) <= MOST_LABELS else 700.0
    return places * min(apart, limit / extent)


def _side_by_side(
    parts: list[npt.NDArray[np.float64]], members: list[list[int]], sizes: list[tuple[float, float]]
) -> tuple[npt.NDArray[np.float64], float, float]:
    """Components in rows of about the width of the largest one."""
    gap = 24.0
    boxes = []
    for part, nodes in zip(parts, members, strict=True):
        half = np.array([sizes[v] for v in nodes]) / 2
        low, high = (part - half).min(axis=0), (part + half).max(axis=0)
        part -= low
        boxes.append(high - low)
    area = sum((w + gap) * (h + gap) for w, h in boxes)
    limit = max([w for w, _ in boxes] + [1.4 * float(np.sqrt(area))])
    places = np.zeros((sum(len(m) for m in members), 2))
    x = y = tall = width = 0.0
    for part, nodes, (w, h) in zip(parts, members, boxes, strict=True):
        if x and x + w > limit:
            x, y, tall = 0.0, y + tall + gap, 0.0
        places[nodes] = part + np.array([x, y])
        x, tall = x + w + gap, max(tall, h)
        width = max(width, x - gap)
    return places, float(width), float(y + tall)
