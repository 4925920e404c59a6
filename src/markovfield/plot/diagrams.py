"""Drawings of models and graphs: arcs of a network, the factor graph, the primal graph, mixed graphs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from markovfield.exceptions import ModelError
from markovfield.factors.factor_graph import FactorGraph
from markovfield.inference.verbs import graph_of
from markovfield.plot import _style as style
from markovfield.plot._scatter import scatter
from markovfield.plot._sketch import (
    Layout,
    Sketch,
    check_layout,
    count_of,
    evidence_labels,
    label_spots,
    place,
    sketch_of,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["graph"]

Kind = Literal["auto", "directed", "factor", "primal"]
# Beyond these, nodes are dots without names: in undirected graphs, and in graphs drawn in rows.
MOST_LABELS = 80
MOST_LABELS_IN_ROWS = 300
MOST_FACTORS_DRAWN = 60
# What is larger takes minutes to lay out, and is a blot.
MOST_NODES, MOST_EDGES = 5_000, 20_000
PAD = 8.0
FACTOR_SIDE = 9.0
WEIGHT_FONT = style.FONT_SIZE - 2.0


def graph(
    model: Any,
    *,
    kind: Kind = "auto",
    evidence: Mapping[Any, Any] | None = None,
    layout: Layout = "auto",
    title: str | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw a model or a graph.

    Parameters
    ----------
    model
        A Bayesian or Markov network or anything else that compiles to a factor graph; a linear-Gaussian network (its
        weights stand on the arcs) or a Gaussian field; a networkx graph; a `graphs.MixedGraph`, such as an equivalence
        class of DAGs: its undirected edges have no arrowheads, its bidirected ones two.
    kind
        ``"directed"``: arcs from parents to children, in rows. ``"factor"``: variables, and a black square for each
        factor. ``"primal"``: an edge wherever two variables share a factor. ``"auto"`` takes the first for Bayesian
        networks, the second for small models, else the third. Graphs are drawn as they are.
    evidence
        Observed variables; drawn in orange, with their states.
    layout
        For drawings in rows: ``"graphviz"`` by that program, ``"layered"`` without it, ``"auto"`` with it where it is
        installed. Undirected graphs are laid out by distance, unless one of the first two is asked for, and factor
        graphs always.
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
    style.check_matplotlib()
    if kind not in ("auto", "directed", "factor", "primal"):
        raise ModelError(f"plot.graph(kind=...) is 'auto', 'directed', 'factor' or 'primal', got {kind!r}")
    check_layout(layout)
    sketch = sketch_of(model)
    compiles = isinstance(model, FactorGraph) or hasattr(model, "compile")
    if sketch is not None and kind != "auto":
        # Only arcs are seen without compiling, and only models compile.
        arcs = bool(sketch.kinds) and set(sketch.kinds) == {"->"}
        if kind != "directed" and compiles:
            sketch = None
        elif kind != "directed" or not arcs:
            raise ModelError(f"plot.graph(kind={kind!r}) does not fit a {type(model).__name__}; leave it at 'auto'")
    if sketch is None:
        sketch, compiled = _compiled_sketch(model, kind)
        if sketch is None:
            return _undirected(compiled, kind, evidence, layout, title, ax)
    if not sketch.names:
        raise ModelError(f"plot.graph(model) needs a model with at least one {sketch.member}")
    _check_size(len(sketch.names), len(sketch.edges))
    return _drawn(sketch, evidence, layout, title, ax)


def _check_size(n_nodes: int, n_edges: int) -> None:
    if n_nodes > MOST_NODES or n_edges > MOST_EDGES:
        here = f"{n_nodes:,} nodes" if n_nodes > MOST_NODES else "more edges"
        raise ModelError(
            f"plot.graph draws at most {MOST_NODES:,} nodes and {MOST_EDGES:,} edges, and here are {here}; draw a "
            "part, as a networkx graph"
        )


def _compiled_sketch(model: Any, kind: Kind) -> tuple[Sketch | None, FactorGraph]:
    """The arcs of a factor graph whose factors are conditional distributions, if those are wanted."""
    compiled = graph_of(model)
    s = compiled.structure
    if not s.n_variables:
        raise ModelError("plot.graph(model) needs a model with at least one variable")
    directed = bool(s.n_factors) and sorted(s.child.tolist()) == list(range(s.n_variables))
    if kind == "directed" and not directed:
        raise ModelError("plot.graph(kind='directed') needs one conditional distribution for each variable")
    if kind not in ("auto", "directed") or not directed:
        return None, compiled
    edges = tuple((v, c) for f, c in enumerate(s.child.tolist()) for v in s.scope(f).tolist() if v != c)
    heading = f"Bayesian network: {count_of(s.n_variables, 'variable')}, {count_of(len(edges), 'arc')}"
    return Sketch(tuple(s.names.variables), edges, ("->",) * len(edges), heading), compiled


def _variable(canvas: style.Canvas, at: tuple[float, float], label: str, size: tuple[float, float], seen: bool) -> None:
    fill, edge = (style.ORANGE_PALE, style.ORANGE) if seen else (style.BLUE_PALE, style.BLUE)
    canvas.box(*at, *size, fill=fill, edge=edge, rounding=8.0)
    canvas.text(*at, label)


def _dots(canvas: style.Canvas, places: npt.NDArray[np.float64], seen: set[int]) -> None:
    colours = [style.ORANGE if v in seen else style.BLUE for v in range(len(places))]
    canvas.ax.scatter(places[:, 0], places[:, 1], s=16 * canvas.scale**2, c=colours, zorder=3, linewidths=0)


def _sizes(labels: Iterable[str]) -> list[tuple[float, float]]:
    measured = (style.text_size(label) for label in labels)
    return [(max(w + 2 * PAD, 24.0), h + PAD) for w, h in measured]


def _drawn(
    sketch: Sketch, evidence: Mapping[Any, Any] | None, layout: Layout, title: str | None, ax: Axes | None
) -> Axes:
    labels, seen = evidence_labels(sketch.names, evidence, sketch.position)
    heading = sketch.heading if title is None else title
    if set(sketch.kinds) <= {"--"} and layout == "auto":
        return _scattered(labels, seen, sorted(set(sketch.edges)), 0, heading, ax)
    named = len(labels) <= MOST_LABELS_IN_ROWS
    sizes = _sizes(labels) if named else [(6.0, 6.0)] * len(labels)
    weighted = named and any(sketch.labels)
    gaps = {"gap": 30.0, "row_gap": 46.0} if weighted else {} if named else {"gap": 15.0, "row_gap": 18.0}
    placed = place(sizes, sketch.edges, sketch.kinds, layout, **gaps)
    canvas = style.Canvas.open(ax, placed.width, placed.height, heading)
    for points, arrows in zip(placed.curves, sketch.kinds, strict=True):
        canvas.bezier(points, arrows=arrows, width=1.2 if named else 0.6)
    if not named:
        _dots(canvas, np.array(placed.centres), seen)
        return canvas.ax
    for v, at in enumerate(placed.centres):
        _variable(canvas, at, labels[v], sizes[v], v in seen)
    if weighted:
        room = [tuple(np.add(style.text_size(text or " ", WEIGHT_FONT), (5.0, 2.0))) for text in sketch.labels]
        spots = label_spots(placed.curves, room, list(zip(placed.centres, sizes, strict=True)))
        halo = {"boxstyle": "round,pad=0.12", "facecolor": "white", "edgecolor": "none"}
        for spot, text in zip(spots, sketch.labels, strict=True):
            if text:
                canvas.text(*spot, text, size=WEIGHT_FONT, color=style.MUTED, bbox=halo, zorder=2.5)
    return canvas.ax


def _undirected(
    compiled: FactorGraph,
    kind: Kind,
    evidence: Mapping[Any, Any] | None,
    layout: Layout,
    title: str | None,
    ax: Axes | None,
) -> Axes:
    s = compiled.structure
    n = s.n_variables
    factors = kind == "factor" or (kind == "auto" and n + s.n_factors <= MOST_FACTORS_DRAWN)
    edges: set[tuple[int, int]] = set()
    _check_size(n, 0)
    for f in range(s.n_factors):
        scope = s.scope(f).tolist()
        if factors:
            edges |= {(v, n + f) for v in scope}
        else:
            _check_size(n, len(scope) * (len(scope) - 1) // 2)
            edges |= {(min(a, b), max(a, b)) for i, a in enumerate(scope) for b in scope[:i]}
        _check_size(n, len(edges))
    counted = count_of(s.n_factors, "factor") if factors else count_of(len(edges), "edge")
    kind_name = "Factor graph" if factors else "Primal graph"
    heading = f"{kind_name}: {count_of(n, 'variable')}, {counted}" if title is None else title
    if not factors and layout != "auto":
        sketch = Sketch(tuple(s.names.variables), tuple(sorted(edges)), ("--",) * len(edges), heading)
        return _drawn(sketch, evidence, layout, heading, ax)
    labels, seen = evidence_labels(s.names.variables, evidence, s.names.position)
    return _scattered(labels, seen, sorted(edges), s.n_factors if factors else 0, heading, ax)


def _scattered(
    labels: list[str], seen: set[int], edges: list[tuple[int, int]], n_squares: int, heading: str, ax: Axes | None
) -> Axes:
    """Variables and, numbered after them, squares for factors, laid out by distance and joined by straight lines."""
    n = len(labels)
    total = n + n_squares
    named = n <= MOST_LABELS
    sizes = (_sizes(labels) if named else [(5.0, 5.0)] * n) + [(FACTOR_SIDE, FACTOR_SIDE)] * n_squares
    places, width, height = scatter(total, edges, sizes)
    canvas = style.Canvas.open(ax, width, height, heading)
    from matplotlib.collections import LineCollection

    lines = [(places[a], places[b]) for a, b in edges]
    thin = 1.2 if named else 0.6
    canvas.ax.add_collection(LineCollection(lines, colors=style.LINE, linewidths=thin * canvas.scale, zorder=1))
    if named:
        for v in range(n):
            _variable(canvas, (places[v][0], places[v][1]), labels[v], sizes[v], v in seen)
    else:
        _dots(canvas, places[:n], seen)
    for f in range(n, total):
        canvas.box(places[f, 0], places[f, 1], FACTOR_SIDE, FACTOR_SIDE, fill=style.INK, edge=style.INK, rounding=1.5)
    return canvas.ax
