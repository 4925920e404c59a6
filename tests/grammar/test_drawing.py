"""Pictures of trees: nothing overlaps, every branch is there, any depth."""

from __future__ import annotations

import xml.etree.ElementTree as ET

from hypothesis import given

from markovfield.grammar import Tree
from markovfield.grammar.drawing import layout
from tests.grammar.test_trees import nested, trees


@given(trees())
def test_texts_do_not_overlap_and_parents_stand_in_the_middle(tree: Tree) -> None:
    places, breadth = layout(tree, len, 1.0)
    words = [place for place in places if place.kind == "word"]
    assert tuple(place.text for place in words) == tree.leaves
    for depth in range(1 + max(place.depth for place in places)):
        row = [place for place in places if place.depth == depth]
        edges = [edge for p in row for edge in (p.x - len(p.text) / 2, p.x + len(p.text) / 2)]
        assert edges == sorted(edges)
        assert edges[0] >= -1e-9
        assert edges[-1] <= breadth + 1e-9
    for i, place in enumerate(places):
        below = [p.x for p in places if p.parent == i]
        assert not below or abs(place.x - (below[0] + below[-1]) / 2) < 1e-9


@given(trees())
def test_every_word_and_label_is_in_the_pictures(tree: Tree) -> None:
    texts = [node.label for node in tree] + list(tree.leaves)
    lines = tree.draw().split("\n")
    assert len(lines) % 2 == 1
    assert sorted("".join(lines[::2]).replace(" ", "")) == sorted("".join(texts))
    svg = ET.fromstring(tree._repr_svg_())
    space = "{http://www.w3.org/2000/svg}"
    assert sorted(element.text or "" for element in svg.iter(f"{space}text")) == sorted(texts)
    (path,) = svg.iter(f"{space}path")
    assert path.get("d", "").count("M") == len(texts) - 1


def test_wide_characters_take_two_columns() -> None:
    assert Tree.parse("(S (A 日本) (B c))").draw().split("\n")[-1] == "日本 c".replace(" ", "  ")


def test_markup_is_escaped() -> None:
    assert "&lt;b&gt;&amp;" in Tree("S", ["<b>&"]).to_svg()


def test_deep_trees_are_drawn() -> None:
    deep = nested(3_000)
    assert len(deep.draw().split("\n")) == 2 * 3_001 + 1
    assert deep.to_svg().count("<text") == 3_002
