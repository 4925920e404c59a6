"""Dependency trees as arcs and matrices of arc probabilities, read back from the axes."""

from __future__ import annotations

from itertools import combinations

import matplotlib.pyplot as plt
import numpy as np
import pytest

import markovfield as mf
from markovfield import plot
from markovfield.plot import _style as style

WORDS = ["A", "hearing", "is", "scheduled", "on", "the", "$issue$", "today", "."]
TREE = [
    (2, "det"), (4, "nsubj"), (4, "aux"), (0, "root"), (7, "case"), (7, "det"), (2, "nmod"), (4, "tmod"), (4, "punct"),
]  # fmt: skip


def test_an_arrow_for_each_word() -> None:
    gold = [2, 4, 4, 0, 7, 7, 4, 4, 4]
    ax = plot.arcs(TREE, WORDS, tags=["X"] * 9, gold=gold, title="Parse")
    assert len(ax.patches) == 9
    shown = [text.get_text().replace("\\", "") for text in ax.texts]
    assert sorted(shown) == sorted(["root", *WORDS, *["X"] * 9, *(label for _, label in TREE)])
    orange = [i for i, patch in enumerate(ax.patches) if patch.get_edgecolor()[0] > 0.5]
    assert orange == [6]
    assert ax.get_title(loc="left") == "Parse"
    ax.figure.canvas.draw()
    for a, b in combinations([t.get_window_extent() for t in ax.texts], 2):
        assert not a.overlaps(b)


def test_arcs_point_from_heads_to_modifiers() -> None:
    ax = plot.arcs([2, 0, 2], ["old", "men", "ran"])
    x = {text.get_text(): text.get_position()[0] for text in ax.texts}
    ends = [(patch._path_original.vertices[0, 0], patch._path_original.vertices[-1, 0]) for patch in ax.patches]  # type: ignore[attr-defined]
    for (start, end), (head, word) in zip(ends, [("men", "old"), ("root", "men"), ("men", "ran")], strict=True):
        assert start == pytest.approx(x[head], abs=5)
        assert end == pytest.approx(x[word], abs=5)
    # Longer arcs are above those that they cover.
    tops = [patch._path_original.vertices[:, 1].max() for patch in ax.patches]  # type: ignore[attr-defined]
    assert tops[1] > tops[0]


def test_likely_arcs_are_darker_and_axes_may_be_given() -> None:
    shares = np.zeros((4, 4, 2))
    shares[2, 1] = 0.25, 0.25
    shares[0, 2] = 1.0, 0.0
    _, given = plt.subplots(figsize=(2, 2))
    ax = plot.arcs([2, 0, 2], ["old", "men", "ran"], probabilities=shares, ax=given)
    assert ax is given
    assert [patch.get_alpha() for patch in ax.patches] == pytest.approx([0.6, 1.0, 0.2])


def test_matrix_of_probabilities() -> None:
    rng = np.random.default_rng(0)
    trees = mf.structures.SpanningTree(rng.normal(size=(4, 4, 2)))
    found = mf.marginals(trees)["arcs"]
    ax = plot.arc_probabilities(found, ["a", "b$", "c"], gold=[2, 0, 2], title="Arcs")
    shown = np.asarray(ax.images[0].get_array())
    np.testing.assert_allclose(shown, found.sum(axis=2)[:, 1:])
    np.testing.assert_allclose(shown.sum(axis=0), 1.0)
    assert [tuple(patch.get_xy()) for patch in ax.patches] == [(-0.5, 1.5), (0.5, -0.5), (1.5, 1.5)]
    assert ax.patches[0].get_edgecolor()[:3] == plt.matplotlib.colors.to_rgb(style.ORANGE)  # type: ignore[attr-defined]
    assert [t.get_text() for t in ax.get_yticklabels()] == ["root", "a", "b\\$", "c"]


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda: plot.arcs([2, 0], ["a"]), r"tree must have a head from 0 to 1 for each of 1 words, got \[2, 0\]"),
        (lambda: plot.arcs([0, 5], ["a", "b"]), "tree must have a head from 0 to 2"),
        (lambda: plot.arcs([0], ["a"], gold=[0, 1]), "gold must have a head"),
        (lambda: plot.arcs([0], ["a"], probabilities=np.ones((3, 3))), r"for 1 words, got shape \(3, 3\)"),
        (lambda: plot.arc_probabilities(np.ones(4), ["a"]), r"plot.arc_probabilities takes .* got shape \(4,\)"),
    ],
)
def test_what_is_refused(call: object, match: str) -> None:
    with pytest.raises(mf.ModelError, match=match):
        call()  # type: ignore[operator]
