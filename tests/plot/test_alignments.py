"""Links between words, drawn."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import markovfield as mf
from markovfield.alignment import GoldLinks

SOURCE, TARGET = ["the", "old", "house"], ["la", "vieille", "maison", "rouge"]


def test_what_is_drawn() -> None:
    p = np.random.default_rng(0).random((3, 4))
    gold = GoldLinks(frozenset({(0, 0)}), frozenset({(1, 1), (2, 2)}))
    ax = mf.plot.alignment(p, SOURCE, TARGET, links=[(0, 0), (2, 3)], gold=gold, title="links")
    np.testing.assert_array_equal(ax.images[0].get_array(), p)
    assert [t.get_text() for t in ax.get_yticklabels()] == SOURCE
    assert [t.get_text() for t in ax.get_xticklabels()] == TARGET
    assert sorted(map(tuple, ax.collections[0].get_offsets().tolist())) == [(0.0, 0.0), (3.0, 2.0)]
    assert [patch.get_linestyle() for patch in ax.patches] == ["-", ":", ":"]


def test_without_probabilities_and_on_given_axes() -> None:
    ax = mf.plot.alignment(None, SOURCE, TARGET, links=[])
    assert mf.plot.alignment(np.zeros((3, 4)), SOURCE, TARGET, ax=ax) is ax


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"probabilities": np.zeros((4, 3))}, r"for 3 and 4 words, got shape \(4, 3\)"),
        ({"probabilities": None, "gold": [(0, 4)]}, r"pair 0 has 3 source and 4 target words, and a link \(0, 4\)"),
    ],
)
def test_what_is_refused(words: Any, message: str) -> None:
    with pytest.raises(mf.ModelError, match=message):
        mf.plot.alignment(source=SOURCE, target=TARGET, **words)
