"""Trees of constituents and charts of span probabilities, read back from the axes."""

from __future__ import annotations

from itertools import combinations

import matplotlib.pyplot as plt
import numpy as np
import pytest

import markovfield as mf
from markovfield import plot
from markovfield.grammar import Tree

TREE = Tree.parse("(S (NP (DT the) (JJ old) (NN man)) (VP (VBD walked) (NP (PRP$ his) (NN $dog$))) (. .))")


def test_every_label_and_word_stands_apart() -> None:
    ax = plot.tree(TREE, title="Parse")
    shown = " ".join(t.get_text().replace("\\", "") for t in ax.texts)
    assert shown == "S NP DT the JJ old NN man VP VBD walked NP PRP$ his NN $dog$ . ."
    assert len(ax.lines) == len(ax.texts) - 1
    assert ax.get_title(loc="left") == "Parse"
    ax.figure.canvas.draw()
    for a, b in combinations([t.get_window_extent() for t in ax.texts], 2):
        assert not a.overlaps(b)


def test_a_tree_shrinks_into_given_axes() -> None:
    _, given = plt.subplots(figsize=(2, 2))
    assert plot.tree(TREE, ax=given) is given
    assert given.texts[0].get_fontsize() < 8


def test_one_cell_for_each_span() -> None:
    rng = np.random.default_rng(0)
    chart = mf.structures.SpanTree(rng.normal(size=(7, 7, 3)))
    found = mf.marginals(chart)["spans"]
    gold = Tree("S", [*TREE.children[0].children, *TREE.children[1:]])  # type: ignore[union-attr]
    ax = plot.spans(found, TREE.leaves, labels=["", "NP", "VP"], gold=gold)
    cells, borders = ax.collections[:2]
    i, j = np.triu_indices(7)
    np.testing.assert_allclose(cells.get_array(), found[i, j, 1:].sum(axis=1))
    assert len(borders.get_paths()) == len(gold.spans())
    whole = cells.get_paths()[6].vertices
    np.testing.assert_allclose(whole[:4].mean(axis=0), [3.0, 3.0])
    likely = (found[i, j, 1:].sum(axis=1) >= 0.5).sum()
    assert len(ax.texts) == likely
    assert {t.get_text() for t in ax.texts} <= {"NP", "VP"}
    assert [t.get_text().replace("\\", "") for t in ax.get_xticklabels()] == list(TREE.leaves)


@pytest.mark.parametrize(
    ("shape", "options", "match"),
    [
        ((2, 2), {}, r"for 7 words, got shape \(2, 2\)"),
        ((7, 7), {"labels": ["A"]}, r"has 1 names for probabilities of shape \(7, 7\)"),
        ((7, 7, 2), {"labels": ["A"]}, "has 1 names"),
        ((7, 7), {"gold": Tree.parse("(A b)")}, "has 1 words, and the sentence has 7"),
    ],
)
def test_what_does_not_fit(shape: tuple[int, ...], options: dict, match: str) -> None:
    with pytest.raises(mf.ModelError, match=match):
        plot.spans(np.zeros(shape), TREE.leaves, **options)
