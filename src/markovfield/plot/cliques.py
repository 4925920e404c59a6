"""Drawings of junction trees: cliques as ellipses, separators on the edges between them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from markovfield.exceptions import ModelError
from markovfield.inference.core.evidence import Evidence
from markovfield.inference.junction_tree.junction_tree import JunctionTree
from markovfield.inference.verbs import graph_of
from markovfield.plot import _style as style
from markovfield.plot._trees import tidy_forest

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["junction_tree"]

MOST_CLIQUES = 120
GAP = 20.0
LEVEL_GAP = 22.0
SEPARATOR_FONT = style.FONT_SIZE - 1.5
CLIQUE_WIDTH = 105.0
SEPARATOR_WIDTH = 85.0


def junction_tree(
    model: Any,
    evidence: Mapping[Any, Any] | None = None,
    *,
    method: JunctionTree | None = None,
    title: str | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw the tree of cliques that exact inference runs on.

    Parameters
    ----------
    model
        Anything that compiles to a factor graph; its tree may have at most 120 cliques.
    evidence
        Observed variables; they are absorbed, so that the tree is that of the others.
    method
        The `JunctionTree` whose plan is drawn; the default one when None.
    title
        Replaces the title, which otherwise gives the width.
    ax
        Where to draw; a new figure of fitting size when None.

    Returns
    -------
    Axes
        One ellipse for each clique and one box for each separator, in points.

    Examples
    --------
    >>> import markovfield as mf
    >>> net = mf.MarkovNetwork({"A": 2, "B": 2, "C": 2})
    >>> _ = net.add_factors([["A", "B"], ["B", "C"]], [[2.0, 1.0], [1.0, 2.0]])
    >>> ax = mf.plot.junction_tree(net)
    >>> sorted(text.get_text() for text in ax.texts)
    ['A, B', 'B', 'B, C']
    """
    style.check_matplotlib()
    engine = JunctionTree() if method is None else method
    compiled = graph_of(model)
    problem = engine.prepare(compiled, Evidence.parse(compiled.structure, evidence))
    plan = engine.plan(problem)
    if plan.n_cliques > MOST_CLIQUES:
        raise ModelError(
            f"the junction tree has {plan.n_cliques} cliques, and at most {MOST_CLIQUES} can be drawn legibly"
        )
    # Structured factors bring auxiliary variables, which have no names.
    known = compiled.variables
    cliques = [sorted(c) for c in plan.cliques()]
    names = [[str(known[v]) if v < len(known) else f"aux{v - len(known)}" for v in c] for c in cliques]
    edges = [(int(p), c) for c, p in enumerate(plan.layout.parent.tolist()) if p >= 0]
    separators = {
        (p, c): [name for v, name in zip(cliques[c], names[c], strict=True) if v in cliques[p]] for p, c in edges
    }
    if title is None:
        title = f"Junction tree: {_count(len(cliques), 'clique')}, width {plan.width}"
    return _draw(names, separators, title, ax)


def _count(n: int, noun: str) -> str:
    return f"{n} {noun}{'s' * (n != 1)}"


def _wrap(names: list[str], size: float, most: float) -> str:
    """Names over the fewest lines that are at most ``most`` points wide, as even as they can be."""
    widths = [style.text_size(name + ", ", size)[0] + 0.35 * size for name in names]

    def fill(limit: float) -> list[list[str]]:
        lines: list[list[str]] = []
        room = -1.0
        for name, width in zip(names, widths, strict=True):
            if width > room:
                lines.append([])
                room = limit
            lines[-1].append(name)
            room -= width
        return lines

    widest = max(widths)
    n_lines = len(fill(max(most, widest)))
    # The narrowest limit that needs no more lines: lengths of stretches of consecutive names are all it can be.
    stretches = {sum(widths[i:j]) + 1e-6 for i in range(len(names)) for j in range(i + 1, len(names) + 1)}
    limit = min(s for s in stretches if s >= widest and len(fill(s)) <= n_lines)
    return ",\n".join(", ".join(line) for line in fill(limit))


def _rooted(n: int, edges: list[tuple[int, int]]) -> tuple[list[int], dict[int, list[int]]]:
    """The forest hung from its centres, which makes it least deep."""
    import networkx as nx

    drawn = nx.Graph()
    drawn.add_nodes_from(range(n))
    drawn.add_edges_from(edges)
    roots: list[int] = []
    children: dict[int, list[int]] = {}
    for component in sorted(nx.connected_components(drawn), key=lambda c: (-len(c), min(c))):
        part = drawn.subgraph(component)
        root = min(nx.center(part))
        roots.append(root)
        children |= {v: sorted(below) for v, below in nx.bfs_successors(part, root)}
    return roots, children


def _draw(names: list[list[str]], separators: dict[tuple[int, int], list[str]], title: str, ax: Axes | None) -> Axes:
    roots, children = _rooted(len(names), list(separators))
    labels = [_wrap(n, style.FONT_SIZE, CLIQUE_WIDTH) for n in names]
    # An ellipse around text: its corners may come near the rim, since lines are rarely all of full length.
    sizes = []
    for label in labels:
        w, h = style.text_size(label)
        stretch = 1.12 if "\n" not in label else 1.3
        sizes.append((stretch * w + 16, stretch * h + 12))
    above = {c: p for p, below in children.items() for c in below}
    shared_labels: dict[int, str] = {}
    boxes: dict[int, tuple[float, float]] = {}
    for c, p in above.items():
        shared = separators.get((p, c), separators.get((c, p), []))
        label = _wrap(shared, SEPARATOR_FONT, SEPARATOR_WIDTH) if shared else ""
        w, h = style.text_size(label or " ", SEPARATOR_FONT)
        shared_labels[c] = label
        boxes[c] = (w + 10, h + 5)
    downwards = _layout(roots, children, sizes, boxes, vertical=True)
    sideways = _layout(roots, children, sizes, boxes, vertical=False)
    vertical = abs(downwards[2] / downwards[3] - 1.6) <= abs(sideways[2] / sideways[3] - 1.6)
    centres, boxes_at, width, height = downwards if vertical else sideways
    canvas = style.Canvas.open(ax, width, height, title)
    for c, p in above.items():
        canvas.curve([centres[p], boxes_at[c], centres[c]], vertical=vertical)
        label = shared_labels[c]
        if label:
            canvas.box(*boxes_at[c], *boxes[c], fill="white", edge=style.GREEN, rounding=2.0)
            canvas.text(*boxes_at[c], label, size=SEPARATOR_FONT, color=style.GREEN)
    for v, label in enumerate(labels):
        canvas.ellipse(*centres[v], *sizes[v], fill=style.BLUE_PALE, edge=style.BLUE)
        canvas.text(*centres[v], label)
    return canvas.ax


Placed = tuple[dict[int, tuple[float, float]], dict[int, tuple[float, float]], float, float]


def _layout(
    roots: list[int],
    children: dict[int, list[int]],
    sizes: list[tuple[float, float]],
    boxes: dict[int, tuple[float, float]],
    *,
    vertical: bool,
) -> Placed:
    """Centres of cliques and of the separators above them: each separator stands right over its child."""
    across, along = (0, 1) if vertical else (1, 0)
    breadth = {v: max(size[across], boxes[v][across] if v in boxes else 0.0) for v, size in enumerate(sizes)}
    place, depth, total = tidy_forest(roots, children, breadth, gap=GAP)
    levels = max(depth.values(), default=0) + 1
    thick = [max(sizes[v][along] for v in depth if depth[v] == d) for d in range(levels)]
    box = [max((boxes[v][along] for v in depth if depth[v] == d and v in boxes), default=0.0) for d in range(levels)]
    start, at = [], 0.0
    for d in range(levels):
        at += (box[d] + 2 * LEVEL_GAP) if d else 0.0
        start.append(at)
        at += thick[d]
    centres, boxes_at = {}, {}
    for v, d in depth.items():
        middle = start[d] + thick[d] / 2
        centres[v] = (place[v], at - middle) if vertical else (middle, total - place[v])
        if v in boxes:
            before = start[d] - LEVEL_GAP - box[d] / 2
            boxes_at[v] = (place[v], at - before) if vertical else (before, total - place[v])
    return centres, boxes_at, *((total, at) if vertical else (at, total))
