"""Pictures of paths of penalties: a curve for each edge, colours by what is chosen or true."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pytest

import markovfield as mf
from markovfield.plot import _style as style


@pytest.fixture(scope="module")
def learned():
    ring = mf.Ising([(i, (i + 1) % 5) for i in range(5)], coupling=0.4)
    return mf.learn_structure(mf.sample(ring, 800, rng=0), mf.methods.GroupLasso(smallest=0.01))


def test_a_curve_for_each_edge(learned):
    ax = mf.plot.penalty_path(learned)
    path = learned.details
    assert ax.get_xscale() == "log" and ax.get_xlim() == pytest.approx((path.penalties[0], path.penalties[-1]))
    chosen = {frozenset(e) for e in learned.edges}
    for edge, strength, line in zip(path.edges, path.strengths.T, ax.lines, strict=False):
        assert (line.get_color() == style.BLUE) == (frozenset(edge) in chosen)
        drawn = line.get_ydata()
        np.testing.assert_array_equal(np.nan_to_num(drawn), strength)
    assert ax.lines[-1].get_xdata()[0] == path.penalties[path.chosen]
    assert ax.get_title(loc="left").startswith(f"{len(learned.edges)} edges chosen")


def test_against_the_truth(learned):
    true = [(0, 1), (1, 2), (2, 3), (3, 4)]
    _, given = plt.subplots()
    ax = mf.plot.penalty_path(learned.details, truth=true, title="Mine", ax=given)
    assert ax is given and ax.get_title(loc="left") == "Mine"
    colours = {frozenset(e): line.get_color() for e, line in zip(learned.details.edges, ax.lines, strict=False)}
    assert all((colour == style.BLUE) == (set(e) in map(set, true)) for e, colour in colours.items())
    assert colours[frozenset((0, 4))] == style.ORANGE


def test_a_path_of_one_empty_graph():
    lonely = mf.learn_structure({"a": [0, 0, 1, 1], "b": [0, 1, 0, 1]}, "group_lasso")
    assert mf.plot.penalty_path(lonely).get_title(loc="left").startswith("0 edges")


def test_what_cannot_be_drawn():
    with pytest.raises(mf.ModelError, match="draws what GroupLasso or GraphicalLasso learned, got LearnedStructure"):
        mf.plot.penalty_path(mf.learn_structure({"a": [0, 1], "b": [0, 1]}))
