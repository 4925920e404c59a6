"""Drawings of a network and what its graph says: blankets, neighbourhoods, moral graph, cliques, elimination."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations
from typing import Any

import networkx as nx

import markovfield as mf
from markovfield.exceptions import ModelError
from markovfield.explorer.networks.apart import apart
from markovfield.explorer.networks.network import Network
from markovfield.explorer.networks.shown import shown
from markovfield.plot._sketch import Placed, place

__all__ = [
    "blanket",
    "by_distance",
    "describe",
    "drawing",
    "elimination",
    "junction_tree",
    "moral_edges",
    "neighbourhood",
]

# Sizes of boxes in points, as `graph.js` draws them.
LETTER, PAD, LINE, MOST_LETTERS = 7.2, 22.0, 28.0, 24
BARS_WIDTH, BAR, MOST_BARS = 186.0, 18.0, 8
MOST_DRAWN, MOST_CLIQUES, MOST_ELIMINATED = 1500, 1500, 1200
LAYOUTS = ("layered", "force", "grid")
# Boxes laid out by distance cover at most this share of the drawing.
DENSEST = 0.22
ORDERS = ("auto", "min_fill", "min_weight", "min_degree")


def describe(network: Network, methods: list[str]) -> dict[str, Any]:
    """Variables with their states, edges, and what an exact answer would cost."""
    told = network.explanation
    return {
        "variables": [
            {"name": name, "states": [shown(x) for x in network.states(v)]} for v, name in enumerate(network.shown)
        ],
        "directed": network.directed,
        "causal": isinstance(network.model, mf.BayesianNetwork),
        "layouts": [x for x in LAYOUTS if x != "grid" or network.grid is not None],
        "edges": network.edges,
        "factors": network.graph.n_factors,
        "exact": network.tree is not None,
        "plan": [list(row) for row in told.rows()],
        "methods": methods,
        "most_drawn": MOST_DRAWN,
    }


def _width(text: str) -> float:
    """About how wide a bold text is: capitals are wider than small letters, and ideographs than both."""
    return sum(LETTER * (1.9 if x > "\u2e7f" else 1.3 if x.isupper() or x in "_mw%@" else 1.1) for x in text)


def _sizes(network: Network, nodes: Sequence[int], style: str) -> list[tuple[float, float]]:
    found = []
    for v in nodes:
        wide = _width(network.shown[v][:MOST_LETTERS]) + PAD
        if style == "bars":
            rows = min(network.cardinalities[v], MOST_BARS)
            found.append((max(wide, BARS_WIDTH), LINE + BAR * rows + 6.0))
        else:
            found.append((max(wide, 44.0), LINE))
    return found


def drawing(network: Network, asked: dict[str, Any]) -> dict[str, Any]:
    """Centres, sizes and Bezier curves, y downwards, and how many neighbours of each are not drawn."""
    nodes = network.positions(asked.get("nodes", list(range(network.n))), "nodes")
    style, layout, moral = asked.get("style", "names"), asked.get("layout", "layered"), bool(asked.get("moral", False))
    if style not in ("names", "bars"):
        raise ModelError(f"style must be 'names' or 'bars', got {style!r}")
    if layout not in LAYOUTS:
        raise ModelError(f"layout must be one of {', '.join(LAYOUTS)}, got {layout!r}")
    if layout == "grid" and network.grid is None:
        raise ModelError("only models of a lattice can be drawn as a grid")
    if not nodes or len(nodes) > MOST_DRAWN:
        raise ModelError(f"a drawing has 1 to {MOST_DRAWN} variables, asked for {len(nodes)}: take a neighbourhood")
    # Whoever is set by intervention has no parents that it could marry.
    do = network.known(asked).do if moral else {}
    return network.drawings.kept(
        (tuple(nodes), style, layout, moral, tuple(sorted(do.items()))),
        lambda: _drawn(network, nodes, style, layout, moral_edges(network.after(do)) if moral else []),
    )


def _grid(network: Network, nodes: list[int], sizes: list[tuple[float, float]]) -> Placed:
    """Sites of a lattice where they are."""
    assert network.grid is not None
    columns = network.grid[1]
    wide, high = max(w for w, _ in sizes) + 34.0, max(h for _, h in sizes) + 34.0
    rows, places = [v // columns for v in nodes], [v % columns for v in nodes]
    top, left = min(rows), min(places)
    width, height = (max(places) - left + 1) * wide, (max(rows) - top + 1) * high
    centres = [((x - left + 0.5) * wide, height - (y - top + 0.5) * high) for y, x in zip(rows, places, strict=True)]
    return Placed(centres, [], width, height)


def by_distance(sizes: list[tuple[float, float]], pairs: list[tuple[int, int]]) -> Placed:
    """The layout by distance, blown up until the boxes have room, and pushed apart until none lies on another."""
    placed = place(sizes, pairs, ["--"] * len(pairs))
    covered = sum(w * h for w, h in sizes) / max(placed.width * placed.height, 1.0)
    by = max(1.0, math.sqrt(covered / DENSEST)) if len(sizes) > 1 else 1.0
    centres, (width, height) = apart([(x * by, y * by) for x, y in placed.centres], sizes)
    return Placed(centres, [], width, height)


def _drawn(network: Network, nodes: list[int], style: str, layout: str, moral: list[tuple[int, int]]) -> dict[str, Any]:
    at = {v: i for i, v in enumerate(nodes)}
    edges = [(a, b) for a, b in network.edges if a in at and b in at]
    married = [(a, b) for a, b in moral if a in at and b in at]
    sizes = _sizes(network, nodes, style)
    pairs = [(at[a], at[b]) for a, b in edges]
    if layout == "layered":
        kinds = ["->" if network.directed else "--"] * len(pairs)
        placed = place(sizes, pairs, kinds, "layered", gap=18.0, row_gap=44.0)
    elif layout == "grid":
        placed = _grid(network, nodes, sizes)
    else:
        placed = by_distance(sizes, pairs)
    height = placed.height
    curves = [[(x, height - y) for x, y in curve] for curve in placed.curves]
    near = network.primal_of_arcs
    return {
        "nodes": nodes,
        "centres": [(x, height - y) for x, y in placed.centres],
        "sizes": sizes,
        "edges": edges,
        "curves": curves if layout == "layered" else None,
        "married": married,
        "beyond": [sum(u not in at for u in near.neighbors(v)) for v in nodes],
        "width": placed.width,
        "height": height,
    }


def moral_edges(network: Network) -> list[tuple[int, int]]:
    """Edges of the moral graph that are no arcs: parents that a child marries."""
    if not network.directed:
        return []
    moral = mf.graphs.moralize(network.dag)
    return [(a, b) for a, b in moral.edges if not network.dag.has_edge(a, b) and not network.dag.has_edge(b, a)]


def blanket(network: Network, asked: dict[str, Any]) -> dict[str, Any]:
    """The Markov blanket of a variable, by role; an intervention takes the parents away."""
    v = network.position(asked.get("variable"))
    network = network.after(network.known(asked).do)
    if not network.directed:
        near = sorted(network.primal.neighbors(v))
        return {"blanket": near, "parents": [], "children": [], "spouses": []}
    dag = network.dag
    found = sorted(mf.graphs.markov_blanket(dag, v))
    parents, children = sorted(dag.predecessors(v)), sorted(dag.successors(v))
    spouses = [u for u in found if u not in parents and u not in children]
    return {"blanket": found, "parents": parents, "children": children, "spouses": spouses}


def neighbourhood(network: Network, asked: dict[str, Any]) -> dict[str, Any]:
    """A variable with its Markov blanket, or with all within some steps; nearest first, at most so many.

    Variables that were opened bring all their neighbours along.
    """
    v = network.position(asked.get("variable"))
    hops, most = asked.get("hops", 1), asked.get("most", 150)
    opened = network.positions(asked.get("opened", []), "opened")
    if hops == "blanket":
        nodes = [v, *blanket(network, {"variable": v, "evidence": asked.get("evidence")})["blanket"]]
        most = len(nodes)
    elif type(hops) is not int or not 1 <= hops <= 99 or type(most) is not int or not 1 <= most <= MOST_DRAWN:
        raise ModelError(f"hops is 'blanket' or a number from 1 to 99, and most one from 1 to {MOST_DRAWN}")
    else:
        nodes = list(nx.single_source_shortest_path_length(network.primal_of_arcs, v, cutoff=hops))
    further = [w for u in opened for w in (u, *sorted(network.primal_of_arcs.neighbors(u)))]
    shown = list(dict.fromkeys([*nodes[:most], *further]))[:MOST_DRAWN]
    return {"nodes": shown, "left_out": len(set(nodes) - set(shown))}


def junction_tree(network: Network, asked: dict[str, Any]) -> dict[str, Any]:
    """Cliques and separators of the tree that exact inference runs on, laid out."""
    network = network.after(network.known(asked).do)
    return network.drawings.kept("junction tree", lambda: _junction_tree(network))


def _junction_tree(network: Network) -> dict[str, Any]:
    tree = network.tree
    if tree is None:
        raise ModelError("the junction tree of this model is too large: " + network.explanation.reason)
    n = network.n
    cliques = [sorted(c) for c in tree.plan.cliques()]
    if len(cliques) > MOST_CLIQUES:
        sizes = sorted((len(c) for c in cliques), reverse=True)
        raise ModelError(
            f"the junction tree has {len(cliques)} cliques, the largest of {sizes[0]} variables; "
            f"at most {MOST_CLIQUES} can be drawn"
        )
    parent = tree.plan.layout.parent.tolist()
    edges = [(int(p), c) for c, p in enumerate(parent) if p >= 0]
    labels = [", ".join(network.shown[v] for v in c if v < n) for c in cliques]
    states = [_product(network, c) for c in cliques]
    boxes = [(min(max(LETTER * 0.92 * len(text) + PAD, 150.0), 260.0), 44.0) for text in labels]
    placed = place(boxes, edges, ["->"] * len(edges), "layered", gap=16.0, row_gap=64.0)
    height = placed.height
    return {
        "cliques": [[v for v in c if v < n] for c in cliques],
        "states": states,
        "centres": [(x, height - y) for x, y in placed.centres],
        "sizes": boxes,
        "edges": edges,
        "separators": [sorted(set(cliques[a]) & set(cliques[b]) & set(range(n))) for a, b in edges],
        "curves": [[(x, height - y) for x, y in curve] for curve in placed.curves],
        "width": placed.width,
        "height": height,
        "treewidth": tree.plan.width,
        "log2_states": tree.plan.log2_states,
    }


def _product(network: Network, clique: Sequence[int]) -> int:
    found = 1
    for v in clique:
        if v < network.n:
            found *= network.cardinalities[v]
    return found


def elimination(network: Network, asked: dict[str, Any]) -> dict[str, Any]:
    """An elimination order step by step: the clique that each step makes, the edges that it fills in, the width."""
    method = asked.get("order", "min_fill")
    if method not in ORDERS:
        raise ModelError(f"order must be one of {', '.join(ORDERS)}, got {method!r}")
    network = network.after(network.known(asked).do)
    if network.n > MOST_ELIMINATED:
        raise ModelError(f"elimination is shown for at most {MOST_ELIMINATED} variables, the model has {network.n}")
    graph = network.primal.copy()
    cards = dict(enumerate(network.cardinalities))
    steps, width = [], 0
    for v in mf.graphs.elimination_order(graph, cards, method=method):
        near = sorted(graph.neighbors(v))
        fill = [(a, b) for a, b in combinations(near, 2) if not graph.has_edge(a, b)]
        graph.add_edges_from(fill)
        graph.remove_node(v)
        width = max(width, len(near))
        steps.append(
            {"variable": v, "clique": near, "fill": fill, "states": _product(network, [v, *near]), "width": width}
        )
    return {"steps": steps, "width": width, "fill": sum(len(step["fill"]) for step in steps)}
