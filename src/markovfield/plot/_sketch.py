"""What there is to draw, whatever kind of graph or model it comes from, and where its parts go."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from itertools import combinations
from typing import Any, Literal

import numpy as np

from markovfield.exceptions import ModelError
from markovfield.factors.factor_graph import FactorGraph
from markovfield.gaussian.gaussian_field import GaussianField
from markovfield.gaussian.mixed_field import MixedField
from markovfield.models.gaussian.markov_field import GaussianMarkovField
from markovfield.models.gaussian_network import LinearGaussianNetwork
from markovfield.models.mixed.mixed_graphical_model import MixedGraphicalModel
from markovfield.names import Names
from markovfield.plot._graphviz import find_dot, graphviz
from markovfield.plot._layered import layered
from markovfield.plot._scatter import scatter

__all__ = [
    "Layout",
    "Placed",
    "Sketch",
    "check_layout",
    "count_of",
    "evidence_labels",
    "label_spots",
    "place",
    "sketch_of",
]

Layout = Literal["auto", "layered", "graphviz"]
Point = tuple[float, float]

ARROW, LINE, BOTH = "->", "--", "<->"


@dataclass(frozen=True)
class Sketch:
    """Names of nodes, and edges between their positions with a kind (``->``, ``--`` or ``<->``) and a label each."""

    names: tuple[Any, ...]
    edges: tuple[tuple[int, int], ...]
    kinds: tuple[str, ...]
    heading: str
    labels: tuple[str, ...] = ()
    member: str = "variable"
    _at: dict[Any, int] = field(default_factory=dict, repr=False)

    def position(self, name: Any) -> int:
        """Position of a node by its name."""
        if not self._at:
            self._at.update({v: i for i, v in enumerate(self.names)})
        if name in self._at:
            return self._at[name]
        if self.member == "variable":
            return Names(self.names).position(name)  # which knows how to say that it is not there
        raise ModelError(f"there is no node {name!r} in the graph")


def count_of(n: int, noun: str) -> str:
    """So many, in the singular or the plural."""
    return f"{n} {noun}{'s' * (n != 1)}"


def _sketch(
    names: Sequence[Any], pairs: Sequence[tuple[Any, Any]], kinds: Sequence[str], noun: str, labels: Sequence[str] = ()
) -> Sketch:
    at = {v: i for i, v in enumerate(names)}
    unknown = next((v for pair in pairs for v in pair if v not in at), None)
    if unknown is not None:
        raise ModelError(f"an edge ends at {unknown!r}, which is not a node of the graph")
    edges = tuple((at[a], at[b]) for a, b in pairs)
    words = {ARROW: "arc", LINE: "edge", BOTH: "bidirected edge"}
    if len(set(kinds)) > 1:
        words[LINE] = "undirected edge"
    found = [count_of(kinds.count(k), word) for k, word in words.items() if k in kinds]
    member = "node" if "graph" in noun else "variable"
    counts = ", ".join([count_of(len(names), member), *found])
    return Sketch(tuple(names), edges, tuple(kinds), f"{noun}: {counts}", tuple(labels), member)


def sketch_of(model: Any) -> Sketch | None:
    """The sketch of a graph or of a model that shows its arcs; None for what has to be compiled first."""
    if isinstance(model, LinearGaussianNetwork):
        pairs = list(model.arcs)
        graph = model.to_networkx()
        labels = [f"{w:.3g}" if (w := graph.edges[pair].get("weight")) is not None else "" for pair in pairs]
        return _sketch(model.variables, pairs, [ARROW] * len(pairs), "Linear-Gaussian network", labels)
    if isinstance(model, GaussianField):
        entries = model.precision.tocoo()
        names = model.variables
        pairs = [(names[i], names[j]) for i, j in zip(*entries.coords, strict=True) if i < j]
        return _sketch(names, pairs, [LINE] * len(pairs), "Gaussian field")
    if isinstance(model, FactorGraph):
        return None
    if isinstance(model, GaussianMarkovField):
        model = model.to_networkx()
    if isinstance(model, MixedGraphicalModel | MixedField):
        form = model.compile() if isinstance(model, MixedGraphicalModel) else model
        joined = dict.fromkeys(pair for factor in form.factors for pair in combinations(sorted(factor.scope), 2))
        pairs = [(form.variables[a], form.variables[b]) for a, b in joined]
        return _sketch(list(form.variables), pairs, [LINE] * len(pairs), "Mixed field")
    if all(hasattr(model, part) for part in ("directed", "bidirected", "undirected")):
        kinds = {"directed": ARROW, "undirected": LINE, "bidirected": BOTH}
        found = [(pair, kind) for part, kind in kinds.items() for pair in getattr(model, part).edges()]
        return _sketch(list(model.directed), [p for p, _ in found], [k for _, k in found], "Mixed graph")
    if callable(getattr(model, "is_directed", None)) and hasattr(model, "edges"):
        pairs = [(a, b) for a, b in model.edges() if a != b]
        directed = model.is_directed()
        noun = "Directed graph" if directed else "Undirected graph"
        return _sketch(list(model), pairs, [ARROW if directed else LINE] * len(pairs), noun)
    if hasattr(model, "arcs") and hasattr(model, "variables"):
        return _sketch(model.variables, list(model.arcs), [ARROW] * len(model.arcs), "Bayesian network")
    return None


@dataclass(frozen=True)
class Placed:
    """Centres of the nodes and Bezier control points of the edges, within ``0..width`` and ``0..height``."""

    centres: list[Point]
    curves: list[list[Point]]
    width: float
    height: float


def check_layout(layout: str) -> None:
    """An error unless the layout is one there is."""
    if layout not in ("auto", "layered", "graphviz"):
        raise ModelError(f"layout=... is 'auto', 'layered' or 'graphviz', got {layout!r}")


def place(
    sizes: Sequence[tuple[float, float]],
    edges: Sequence[tuple[int, int]],
    kinds: Sequence[str],
    layout: Layout = "auto",
    **gaps: float,
) -> Placed:
    """Where to put boxes of given sizes: in rows when there are arrows (or when asked), else by distance."""
    check_layout(layout)
    rows = any(kind != LINE for kind in kinds) or layout == "layered"
    if layout == "graphviz":
        return Placed(*graphviz(sizes, edges, layers=rows, **gaps))
    if layout == "auto" and rows and find_dot() is not None:
        try:
            return Placed(*graphviz(sizes, edges, layers=True, **gaps))
        except ModelError:
            pass  # the layout below needs no program
    if not rows:
        places, width, height = scatter(len(sizes), sorted({(min(e), max(e)) for e in edges}), list(sizes))
        centres = [(float(x), float(y)) for x, y in places]
        return Placed(centres, [_segment(centres[a], centres[b]) for a, b in edges], width, height)
    downwards = _downwards(len(sizes), edges, kinds)
    parents: dict[int, list[int]] = {}
    for a, b in dict.fromkeys(downwards):
        parents.setdefault(b, []).append(a)
    found = layered(sizes, parents, **gaps)
    curves, drawn = [], dict.fromkeys(downwards, 0)
    for edge, pair in zip(edges, downwards, strict=True):
        curve = _bowed(found.curves[pair], drawn[pair])
        drawn[pair] += 1
        curves.append(curve if pair == tuple(edge) else curve[::-1])
    return Placed([found.centres[v] for v in range(len(sizes))], curves, found.width, found.height)


def _segment(a: Point, b: Point) -> list[Point]:
    return [
        a,
        (a[0] + (b[0] - a[0]) / 3, a[1] + (b[1] - a[1]) / 3),
        (b[0] - (b[0] - a[0]) / 3, b[1] - (b[1] - a[1]) / 3),
        b,
    ]


def _bowed(curve: list[Point], times: int) -> list[Point]:
    """A second edge between the same nodes goes round the first."""
    if not times:
        return list(curve)
    inner = range(1, len(curve) - 1)
    return [(x + times * (20.0 if i in inner else 6.0), y) for i, (x, y) in enumerate(curve)]


def _downwards(n: int, edges: Sequence[tuple[int, int]], kinds: Sequence[str]) -> list[tuple[int, int]]:
    """Every edge from its upper to its lower end: arrows down as far as there is no cycle, others as they fit."""
    children: list[list[int]] = [[] for _ in range(n)]
    near: list[set[int]] = [set() for _ in range(n)]
    waiting = [0] * n
    for (a, b), kind in zip(edges, kinds, strict=True):
        near[a].add(b)
        near[b].add(a)
        if kind == ARROW:
            children[a].append(b)
            waiting[b] += 1
    touched = [0] * n
    rank: dict[int, int] = {}
    heap = [(waiting[v], 0, v) for v in range(n)]
    heapify(heap)
    while heap:
        # In a cycle, the node with the fewest arrows still to come goes first.
        v = heappop(heap)[2]
        if v in rank:
            continue
        rank[v] = len(rank)
        for w in children[v]:
            waiting[w] -= 1
        for w in near[v]:
            touched[w] += 1
            if w not in rank:  # its key only ever falls, so what was pushed before comes later
                heappush(heap, (waiting[w], -touched[w], w))
    return [(a, b) if rank[a] < rank[b] else (b, a) for a, b in edges]


def label_spots(
    curves: Sequence[Sequence[Point]],
    sizes: Sequence[tuple[float, float]],
    boxes: Sequence[tuple[Point, tuple[float, float]]],
) -> list[Point]:
    """On each curve a point where a label of given size hides no box and no earlier label, if there is one."""
    taken: list[tuple[float, float, float, float]] = [(x, y, w, h) for (x, y), (w, h) in boxes]
    spots = []
    for curve, (width, height) in zip(curves, sizes, strict=True):
        best, least = curve[0], np.inf
        for step in (0.5, 0.42, 0.58, 0.34, 0.66, 0.26, 0.74, 0.18, 0.82):
            x, y = _along(curve, step)
            overlap = 0.0
            for u, v, w, h in taken:
                across, down = (width + w) / 2 - abs(x - u), (height + h) / 2 - abs(y - v)
                overlap += max(across, 0.0) * max(down, 0.0)
            if overlap < least:
                best, least = (x, y), overlap
            if not overlap:
                break
        spots.append(best)
        taken.append((*best, width, height))
    return spots


def _along(curve: Sequence[Point], share: float) -> Point:
    """Point of a Bezier curve at a share of its pieces."""
    pieces = (len(curve) - 1) // 3
    k = min(int(share * pieces), pieces - 1)
    t = share * pieces - k
    weights = np.array([(1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t**2 * (1 - t), t**3])
    x, y = weights @ np.array(curve[3 * k : 3 * k + 4])
    return float(x), float(y)


def evidence_labels(
    names: Sequence[Any], evidence: Mapping[Any, Any] | None, position: Any
) -> tuple[list[str], set[int]]:
    """Labels of the nodes, with the state below the name where it is known, and the positions of those."""
    labels = [str(v) for v in names]
    seen = set()
    for name, state in (evidence or {}).items():
        i = position(name)
        labels[i] = f"{name}\n= {state}"
        seen.add(i)
    return labels, seen
