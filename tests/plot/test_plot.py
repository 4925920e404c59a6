"""Pictures: what is on them, counted and read back from the axes."""

from __future__ import annotations

import sys
from itertools import combinations

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.patches import Ellipse, FancyArrowPatch, FancyBboxPatch

import markovfield as mf
from markovfield import datasets, plot

SEEN = {"room": "cold", "noise": "rattling"}


@pytest.fixture(scope="module")
def net() -> mf.BayesianNetwork:
    return datasets.diagnosis_network()


@pytest.fixture(scope="module")
def grid() -> mf.MarkovNetwork:
    return datasets.ising_denoiser(np.eye(4, 5))


def texts(ax: plt.Axes) -> list[str]:
    return [t.get_text() for t in ax.texts]


def patches(ax: plt.Axes, kind: type) -> list:
    return [p for p in ax.patches if isinstance(p, kind)]


def assert_apart(boxes: list) -> None:
    for a, b in combinations(boxes, 2):
        assert not a.overlaps(b), (a, b)


# ---- bars ---------------------------------------------------------------------------------------------------------


def test_one_bar_for_each_state(net: mf.BayesianNetwork):
    answer = mf.marginals(net, SEEN)
    ax = plot.marginals(answer, ["filter", "heating"])
    assert len(ax.containers) == 1
    widths = [bar.get_width() for bar in ax.containers[0]]
    np.testing.assert_allclose(widths, [*answer["filter"], *answer["heating"]])
    assert [t.get_text() for t in ax.get_yticklabels()] == ["clean", "clogged", "full", "reduced", "none"]
    assert {"filter", "heating"} <= set(texts(ax))
    assert "exact" in ax.get_title(loc="left")


def test_a_prior_doubles_the_bars(net: mf.BayesianNetwork):
    before = mf.marginals(net)
    ax = plot.marginals(mf.marginals(net, SEEN), ["filter"], prior=before, labels=("now", "then"))
    np.testing.assert_allclose([bar.get_width() for bar in ax.containers[1]], before["filter"])
    assert [t.get_text() for t in ax.get_legend().get_texts()] == ["now", "then"]


def test_observed_variables_have_their_colour(net: mf.BayesianNetwork):
    ax = plot.marginals(mf.marginals(net, SEEN), ["room", "filter"], evidence=SEEN)
    colours = [bar.get_facecolor() for bar in ax.containers[0]]
    assert colours[0] == colours[2] != colours[3] == colours[4]


def test_all_variables_of_a_small_model_and_some_of_a_large_one(net: mf.BayesianNetwork):
    ax = plot.marginals(mf.marginals(net))
    assert len(ax.containers[0]) == 27
    many = mf.MarkovNetwork(dict.fromkeys(range(50), 2))
    ax = plot.marginals(mf.marginals(many, method="junction_tree"))
    assert len(ax.containers[0]) == 60
    assert "first 30 of 50" in ax.get_title(loc="left")


def test_bars_into_given_axes(net: mf.BayesianNetwork):
    _, ax = plt.subplots()
    assert plot.marginals(mf.marginals(net), ["filter"], ax=ax, title="Mine") is ax
    assert ax.get_title(loc="left") == "Mine"
    assert len(plt.get_fignums()) == 1


def test_bars_of_nothing(net: mf.BayesianNetwork):
    answer = mf.marginals(net)
    with pytest.raises(mf.ModelError, match="at least one variable"):
        plot.marginals(answer, [])
    with pytest.raises(mf.ModelError, match="no variable 'filtre' in the model; did you mean 'filter'"):
        plot.marginals(answer, ["filtre"])


# ---- graphs -------------------------------------------------------------------------------------------------------


def test_a_bayesian_network_has_arrows(net: mf.BayesianNetwork):
    ax = plot.graph(net, evidence=SEEN)
    assert len(patches(ax, FancyBboxPatch)) == 12
    assert len(patches(ax, FancyArrowPatch)) == 16
    assert {"weather", "room\n= cold", "noise\n= rattling"} <= set(texts(ax))
    assert_apart([p.get_extents() for p in patches(ax, FancyBboxPatch)])


def test_a_factor_graph_has_squares(net: mf.BayesianNetwork):
    ax = plot.graph(net, kind="factor")
    assert len(patches(ax, FancyBboxPatch)) == 24
    assert len(ax.collections[0].get_segments()) == 28
    assert_apart([p.get_extents() for p in patches(ax, FancyBboxPatch)])


def test_a_primal_graph(grid: mf.MarkovNetwork):
    ax = plot.graph(grid, kind="primal")
    assert len(ax.collections[0].get_segments()) == 31
    assert "20 variables, 31 edges" in ax.get_title(loc="left")
    assert sorted(texts(ax), key=int) == [str(i) for i in range(20)]
    assert_apart([p.get_extents() for p in patches(ax, FancyBboxPatch)])


def test_a_lattice_is_drawn_without_a_crossing(grid: mf.MarkovNetwork):
    segments = plot.graph(grid, kind="primal").collections[0].get_segments()

    def side(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> float:
        return float(np.sign((b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])))

    for (a, b), (c, d) in combinations(segments, 2):
        if any(np.allclose(p, q) for p in (a, b) for q in (c, d)):
            continue
        assert side(a, b, c) * side(a, b, d) > 0 or side(c, d, a) * side(c, d, b) > 0


def test_separate_parts_stand_apart():
    loose = mf.MarkovNetwork(dict.fromkeys("ABCDEF", 2))
    loose.add_factors([["A", "B"], ["C", "D"]], np.ones((2, 2)))
    ax = plot.graph(loose)
    assert set(texts(ax)) == set("ABCDEF")
    assert_apart([p.get_extents() for p in patches(ax, FancyBboxPatch)])


def test_a_large_graph_is_drawn_as_dots():
    large = datasets.ising_denoiser(np.zeros((10, 30)))
    ax = plot.graph(large)
    assert not texts(ax)
    assert len(ax.collections[1].get_offsets()) == 300


def test_names_are_no_mathematics():
    ax = plot.graph(mf.MarkovNetwork({"$a_1$": 2, "b$": 2}))
    ax.figure.canvas.draw()
    assert len(texts(ax)) == 2


def test_kinds_of_graph(net: mf.BayesianNetwork, grid: mf.MarkovNetwork):
    with pytest.raises(mf.ModelError, match="'auto', 'directed', 'factor' or 'primal', got 'tree'"):
        plot.graph(net, kind="tree")  # type: ignore[arg-type]
    with pytest.raises(mf.ModelError, match="one conditional distribution for each variable"):
        plot.graph(grid, kind="directed")
    with pytest.raises(mf.ModelError, match="at least one variable"):
        plot.graph(mf.MarkovNetwork())


# ---- junction trees -----------------------------------------------------------------------------------------------


def test_cliques_and_separators(net: mf.BayesianNetwork):
    ax = plot.junction_tree(net)
    cliques, separators = patches(ax, Ellipse), patches(ax, FancyBboxPatch)
    assert len(separators) == len(cliques) - 1
    assert len(texts(ax)) == len(cliques) + len(separators)
    mentioned = {name for text in texts(ax) for name in text.replace("\n", " ").split(", ")}
    assert {name.strip() for name in mentioned} >= set(net.variables)
    assert_apart([p.get_extents() for p in cliques + separators])


def test_every_family_has_a_clique(net: mf.BayesianNetwork):
    ax = plot.junction_tree(net)
    sets = [set(t.replace(",\n", ", ").split(", ")) for t in texts(ax)]
    for name in net.variables:
        assert any({name, *net.parents(name)} <= s for s in sets)


def test_evidence_leaves_the_tree(net: mf.BayesianNetwork):
    words = " ".join(texts(plot.junction_tree(net, SEEN)))
    assert "room" not in words and "noise" not in words and "compressor" in words


def test_text_lies_within_its_ellipse(net: mf.BayesianNetwork):
    ax = plot.junction_tree(net)
    renderer = ax.figure.canvas.get_renderer()
    labels = [t for t in ax.texts if t.get_color() != ax.texts[0].get_color() or t.get_fontsize() > 9]
    for ellipse in patches(ax, Ellipse):
        box = ellipse.get_window_extent(renderer)
        inside = [t for t in labels if box.contains(*t.get_window_extent(renderer).get_points().mean(axis=0))]
        assert len(inside) == 1
        text = inside[0].get_window_extent(renderer)
        assert box.x0 < text.x0 and text.x1 < box.x1 and box.y0 < text.y0 and text.y1 < box.y1


def test_a_chosen_order_and_given_axes():
    chain = mf.MarkovNetwork(dict.fromkeys("ABCD", 2))
    chain.add_factors([["A", "B"], ["B", "C"], ["C", "D"]], np.ones((2, 2)))
    _, ax = plt.subplots()
    assert plot.junction_tree(chain, method=mf.methods.JunctionTree(order=("A", "B", "C", "D")), ax=ax, title="T") is ax
    assert sorted(texts(ax)) == ["A, B", "B", "B, C", "C", "C, D"]


def test_a_forest_has_no_separator_between_its_trees():
    loose = mf.MarkovNetwork(dict.fromkeys("ABCD", 2))
    loose.add_factors([["A", "B"], ["C", "D"]], np.ones((2, 2)))
    ax = plot.junction_tree(loose)
    assert sorted(texts(ax)) == ["A, B", "C, D"]


def test_a_tree_too_large_to_draw():
    with pytest.raises(mf.ModelError, match="at most 120 can be drawn"):
        plot.junction_tree(datasets.ising_denoiser(np.zeros((4, 60))))


# ---- images -------------------------------------------------------------------------------------------------------


def test_images_of_answers():
    noisy = np.eye(3, 4)
    net = datasets.ising_denoiser(noisy)
    answer = mf.marginals(net)
    ax = plot.lattice(answer, (3, 4), title="ink")
    np.testing.assert_allclose(ax.images[0].get_array()[2, 1], answer[9][1])
    ax = plot.lattice(mf.decode(net), (3, 4))
    assert set(np.unique(ax.images[0].get_array())) <= {0.0, 1.0}
    with pytest.raises(mf.ModelError, match=r"shape \(2, 2\) needs 4 values, got 12"):
        plot.lattice(answer, (2, 2))
    with pytest.raises(mf.ModelError, match="pass shape="):
        plot.lattice(answer)


def test_several_images():
    axes = plot.image_grid([np.zeros((2, 3))] * 3, ["a", "b", "c"], n_columns=2, heading="H")
    assert [ax.get_title(loc="left") for ax in axes] == ["a", "b", "c"]
    with pytest.raises(mf.ModelError, match="2 images and 1 titles"):
        plot.image_grid([np.zeros((2, 3))] * 2, ["a"])
    with pytest.raises(mf.ModelError, match="all of the same shape"):
        plot.image_grid([np.zeros((2, 3)), np.zeros((3, 2))])


# ---- without matplotlib -------------------------------------------------------------------------------------------


def test_a_missing_matplotlib_is_one_sentence(monkeypatch: pytest.MonkeyPatch):
    answer = mf.marginals(mf.MarkovNetwork({"A": 2}))
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r'pip install "markovfield\[plot\]"'):
        plot.marginals(answer)
