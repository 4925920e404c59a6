"""Trees as pictures of characters and as SVG, by the standard library alone; `markovfield.plot.tree` has axes."""

from __future__ import annotations

from collections.abc import Callable
from html import escape
from typing import NamedTuple
from unicodedata import east_asian_width

from markovfield.grammar.trees import Tree

__all__ = ["Placed", "drawn_svg", "drawn_text", "layout"]


class Placed(NamedTuple):
    """A label or a word and where it stands.

    Attributes
    ----------
    text
        The label or the word.
    kind
        ``"label"``, ``"tag"`` or ``"word"``.
    x
        The middle of the text across.
    depth
        How far below the root.
    parent
        Position of the parent among all; -1 for the root.
    """

    text: str
    kind: str
    x: float
    depth: int
    parent: int


def layout(tree: Tree, width: Callable[[str], float], gap: float) -> tuple[list[Placed], float]:
    """Places of all labels and words, parents before children; and the breadth of the whole.

    Each label stands over the middle between its first and its last child; subtrees stand side by side. Linear time.
    """
    nodes: list[tuple[Tree | str, int, int]] = []
    below: list[list[int]] = []
    stack: list[tuple[Tree | str, int, int]] = [(tree, 0, -1)]
    while stack:
        node, depth, parent = stack.pop()
        at = len(nodes)
        nodes.append((node, depth, parent))
        below.append([])
        if parent >= 0:
            below[parent].append(at)
        if isinstance(node, Tree):
            stack.extend((child, depth + 1, at) for child in reversed(node.children))
    texts = [node.label if isinstance(node, Tree) else node for node, _, _ in nodes]
    # Of each subtree: its breadth, the middle of its label, and where it begins in its parent's.
    breadth, middle, offset = ([0.0] * len(nodes) for _ in range(3))
    for i in range(len(nodes) - 1, -1, -1):
        own = width(texts[i])
        total = -gap
        for child in below[i]:
            offset[child] = total + gap
            total = offset[child] + breadth[child]
        ends = [offset[child] + middle[child] for child in below[i][:1] + below[i][-1:]]
        centre = sum(ends) / 2 if ends else own / 2
        shift = max(0.0, own / 2 - centre)
        for child in below[i]:
            offset[child] += shift
        middle[i] = centre + shift
        breadth[i] = max(total + shift, middle[i] + own / 2)
    found = []
    for i, (node, depth, parent) in enumerate(nodes):
        offset[i] += offset[parent] if parent >= 0 else 0.0
        kind = "word" if isinstance(node, str) else "tag" if node.is_preterminal else "label"
        found.append(Placed(texts[i], kind, offset[i] + middle[i], depth, parent))
    return found, breadth[0]


def drawn_text(tree: Tree) -> str:
    """A tree as lines of characters; see `Tree.draw`."""
    places, _ = layout(tree, _columns, 2)
    xs = [int(place.x - 0.5) for place in places]
    rows: list[dict[int, str]] = [{} for _ in range(2 * max(place.depth for place in places) + 1)]
    # Directions that the lines of a cell go: 1 up, 2 down, 4 left, 8 right.
    arms: list[dict[int, int]] = [{} for _ in rows]
    for place, x in zip(places, xs, strict=True):
        start = x - (_columns(place.text) - 1) // 2
        for character in place.text:
            rows[2 * place.depth][start] = character
            start += _columns(character)
        if place.parent >= 0:
            line, top = arms[2 * place.depth - 1], xs[place.parent]
            line[top] = line.get(top, 0) | 1
            line[x] = line.get(x, 0) | 2
            for column in range(min(x, top), max(x, top)):
                line[column] = line.get(column, 0) | 8
                line[column + 1] = line.get(column + 1, 0) | 4
    for row, line in zip(rows, arms, strict=True):
        row.update((column, _BOX[which]) for column, which in line.items())
    return "\n".join(_joined(row) for row in rows)


_BOX = dict(enumerate(" │││─┘┐┤─└┌├─┴┬┼"))


def _columns(text: str) -> int:
    """How many columns a terminal gives a text: two to wide characters."""
    return len(text) if text.isascii() else sum(1 + (east_asian_width(c) in "WF") for c in text)


def _joined(row: dict[int, str]) -> str:
    pieces, at = [], 0
    for column in sorted(row):
        pieces.append(" " * (column - at) + row[column])
        at = column + _columns(row[column])
    return "".join(pieces)


# Sizes of the SVG in pixels: a character of the font, a level, the text's height, the margin around everything.
_CHARACTER, _LEVEL, _HEIGHT, _MARGIN = 7.3, 44.0, 14.0, 10.0
_COLOURS = {"label": "#2b6cb0", "tag": "#6b7885", "word": "#1f2a36"}


def drawn_svg(tree: Tree) -> str:
    """A tree as SVG; see `Tree.to_svg`."""
    places, breadth = layout(tree, lambda text: _CHARACTER * _columns(text), 1.6 * _CHARACTER)
    depth = max(place.depth for place in places)
    wide, high = breadth + 2 * _MARGIN, _LEVEL * depth + _HEIGHT + 2 * _MARGIN
    lines, texts = [], []
    for place in places:
        x, y = _MARGIN + place.x, _MARGIN + _HEIGHT / 2 + _LEVEL * place.depth
        if place.parent >= 0:
            above = places[place.parent]
            top = _MARGIN + above.x, _MARGIN + _HEIGHT / 2 + _LEVEL * above.depth + _HEIGHT * 0.62
            lines.append(f"M{top[0]:.1f} {top[1]:.1f}L{x:.1f} {y - _HEIGHT * 0.66:.1f}")
        weight = ' font-weight="600"' if place.kind == "label" else ""
        texts.append(f'<text x="{x:.1f}" y="{y:.1f}" fill="{_COLOURS[place.kind]}"{weight}>{escape(place.text)}</text>')
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{wide:.0f}" height="{high:.0f}" '
        f'viewBox="0 0 {wide:.1f} {high:.1f}" font-family="DejaVu Sans Mono, Menlo, Consolas, monospace" '
        f'font-size="12" text-anchor="middle" dominant-baseline="central">'
        f'<path d="{"".join(lines)}" fill="none" stroke="#9aa7b3" stroke-width="1.2"/>{"".join(texts)}</svg>'
    )
