"""Drawings of graphs that are no models, and of Gaussian models."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import matplotlib.pyplot as plt
import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

import markovfield as mf
from markovfield import plot
from markovfield.gaussian.gaussian_field import GaussianField
from markovfield.models.gaussian_network import LinearGaussianNetwork
from markovfield.plot._sketch import _downwards, label_spots, place
from tests.data import data_path


class Mixed:
    """What a mixed graph shows of itself: three graphs on the same nodes."""

    def __init__(self, directed: list, undirected: list = (), bidirected: list = ()) -> None:
        nodes = dict.fromkeys(v for pair in [*directed, *undirected, *bidirected] for v in pair)
        self.directed, self.undirected, self.bidirected = nx.DiGraph(), nx.Graph(), nx.Graph()
        for graph, pairs in ((self.directed, directed), (self.undirected, undirected), (self.bidirected, bidirected)):
            graph.add_nodes_from(nodes)
            graph.add_edges_from(pairs)


def texts(ax: plt.Axes) -> list[str]:
    return [t.get_text() for t in ax.texts]


def arrows(ax: plt.Axes) -> list[str]:
    styles = {"Curve": "--", "CurveFilledB": "->", "CurveFilledAB": "<->"}
    return sorted(styles[type(p.get_arrowstyle()).__name__] for p in ax.patches if isinstance(p, FancyArrowPatch))


def test_a_directed_graph():
    ax = plot.graph(nx.DiGraph([("a", "b"), ("b", "c"), ("a", "c")]), evidence={"a": 1})
    assert texts(ax) == ["a\n= 1", "b", "c"]
    assert arrows(ax) == ["->"] * 3
    assert ax.get_title(loc="left") == "Directed graph: 3 nodes, 3 arcs"


def test_arrows_of_a_cycle_keep_their_direction():
    graph = nx.DiGraph([(1, 2), (2, 3), (3, 1), (3, 3), (2, 1)])
    ax = plot.graph(graph)
    at = {int(t.get_text()): np.array(t.get_position()) for t in ax.texts}
    found = set()
    for p in ax.patches:
        if isinstance(p, FancyArrowPatch):
            ends = p._path_original.vertices[[0, -1]]
            found.add(tuple(min(at, key=lambda v, e=e: np.linalg.norm(at[v] - e)) for e in ends))
    assert found == {(1, 2), (2, 3), (3, 1), (2, 1)}


def test_an_undirected_graph():
    ax = plot.graph(nx.path_graph(4))
    assert len(ax.collections[0].get_segments()) == 3 and not arrows(ax)
    assert ax.get_title(loc="left") == "Undirected graph: 4 nodes, 3 edges"
    assert arrows(plot.graph(nx.path_graph(4), layout="layered")) == ["--"] * 3


def test_a_mixed_graph_has_heads_as_its_edges_have():
    graph = Mixed([("A", "C"), ("B", "C")], [("A", "D"), ("D", "E")], [("B", "E"), ("A", "C")])
    ax = plot.graph(graph)
    assert arrows(ax) == sorted(["->"] * 2 + ["--"] * 2 + ["<->"] * 2)
    assert ax.get_title(loc="left") == "Mixed graph: 5 nodes, 2 arcs, 2 undirected edges, 2 bidirected edges"
    # The two edges of one pair do not cover each other.
    paths = [p._path_original.vertices for p in ax.patches if isinstance(p, FancyArrowPatch)]
    for one, other in combinations(paths, 2):
        assert one.shape != other.shape or not np.allclose(one, other, atol=3)


def test_a_class_of_equivalent_graphs():
    ax = plot.graph(mf.graphs.cpdag(nx.DiGraph([("A", "C"), ("B", "C"), ("D", "E")])))
    assert arrows(ax) == ["--", "->", "->"]


def test_a_structure_without_tables():
    net = mf.BayesianNetwork({"a": 2, "b": 2, "c": 3})
    net.set_parents("c", ["a", "b"])
    ax = plot.graph(net, evidence={"a": 1})
    assert texts(ax) == ["a\n= 1", "b", "c"] and arrows(ax) == ["->"] * 2


def test_a_linear_gaussian_network_has_its_weights_on_the_arcs():
    net = LinearGaussianNetwork()
    net.add_variable("x")
    net.add_variable("y", ["x"], [0.5])
    net.add_variable("z", ["x", "y"], [-1.25, 3e-7])
    ax = plot.graph(net)
    assert texts(ax) == ["x", "y", "z", "0.5", "-1.25", "3e-07"]
    assert ax.get_title(loc="left") == "Linear-Gaussian network: 3 variables, 3 arcs"
    renderer = ax.figure.canvas.get_renderer()
    boxes = [p.get_window_extent(renderer) for p in ax.patches if isinstance(p, FancyBboxPatch)]
    labels = [t.get_window_extent(renderer) for t in ax.texts[3:]]
    for a, b in combinations(boxes + labels, 2):
        assert not a.overlaps(b)
    structure = LinearGaussianNetwork(["x", "y"])
    structure.set_parents("y", ["x"])
    assert texts(plot.graph(structure)) == ["x", "y"]


def test_a_gaussian_field_is_its_markov_graph():
    ax = plot.graph(GaussianField([[2, -1, 0], [-1, 2, -1], [0, -1, 2]], variables=list("abc")))
    assert len(ax.collections[0].get_segments()) == 2
    assert ax.get_title(loc="left") == "Gaussian field: 3 variables, 2 edges"


@pytest.mark.parametrize("name", ["asia", "sachs", "alarm", "hepar2"])
def test_reference_networks(name: str, tmp_path: Path):
    net = mf.io.read_bif(data_path("bif", f"{name}.bif.gz"))
    ax = plot.graph(net, layout="layered")
    boxes = [p.get_extents() for p in ax.patches if isinstance(p, FancyBboxPatch)]
    assert len(boxes) == len(net.variables)
    assert len(arrows(ax)) == sum(len(net.parents(v)) for v in net.variables)
    for a, b in combinations(boxes, 2):
        assert not a.overlaps(b)
    ax.figure.savefig(tmp_path / "drawing.svg")
    assert "<svg" in (tmp_path / "drawing.svg").read_text()


def test_a_large_directed_graph_is_drawn_as_dots():
    graph = nx.DiGraph([((v - 1) // 2, v) for v in range(1, 401)])
    ax = plot.graph(graph, evidence={7: 0})
    assert not texts(ax) and len(ax.collections[0].get_offsets()) == 401
    assert len(arrows(ax)) == 400


def test_graphs_refused():
    with pytest.raises(mf.ModelError, match="at least one node"):
        plot.graph(nx.DiGraph())
    with pytest.raises(mf.ModelError, match=r"kind='primal'\) does not fit a DiGraph; leave it at 'auto'"):
        plot.graph(nx.DiGraph([("a", "b")]), kind="primal")
    with pytest.raises(mf.ModelError, match=r"kind='directed'\) does not fit a Graph"):
        plot.graph(nx.path_graph(3), kind="directed")
    with pytest.raises(mf.ModelError, match="no node 'z' in the graph"):
        plot.graph(nx.DiGraph([("a", "b")]), evidence={"z": 1})
    with pytest.raises(mf.ModelError, match="no variable 'rom' in the model; did you mean 'room'"):
        plot.graph(mf.datasets.diagnosis_network(), evidence={"rom": "cold"})
    with pytest.raises(mf.ModelError, match=r"layout=... is 'auto', 'layered' or 'graphviz', got 'dot'"):
        plot.graph(nx.DiGraph([("a", "b")]), layout="dot")  # type: ignore[arg-type]
    with pytest.raises(mf.ModelError, match=r"layout=... is 'auto', 'layered' or 'graphviz', got 'dot'"):
        plot.graph(mf.MarkovNetwork({"A": 2}), layout="dot")  # type: ignore[arg-type]
    with pytest.raises(mf.ModelError, match="expected a model with a compile"):
        plot.graph(7)
    net = LinearGaussianNetwork()
    net.add_variable("y", ["later"], [1.0])
    with pytest.raises(mf.ModelError, match="an edge ends at 'later', which is not a node"):
        plot.graph(net)


@given(st.data())
@settings(deadline=None, max_examples=40)
def test_any_mixture_of_edges_finds_its_place(data: st.DataObject):
    n = data.draw(st.integers(1, 6))
    pairs = st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)).filter(lambda p: p[0] != p[1])
    edges = data.draw(st.lists(pairs, max_size=9)) if n > 1 else []
    kinds = [data.draw(st.sampled_from(["->", "--", "<->"])) for _ in edges]
    down = _downwards(n, edges, kinds)
    assert nx.is_directed_acyclic_graph(nx.DiGraph(down))
    only_arrows = [e for e, k in zip(edges, kinds, strict=True) if k == "->"]
    if nx.is_directed_acyclic_graph(nx.DiGraph(only_arrows)):
        assert {e for e, k in zip(down, kinds, strict=True) if k == "->"} == set(only_arrows)
    placed = place([(30.0, 20.0)] * n, edges, kinds, "layered")
    for (a, b), curve in zip(edges, placed.curves, strict=True):
        for end, v in ((curve[0], a), (curve[-1], b)):
            # A repeated edge leaves beside the first.
            assert abs(end[1] - placed.centres[v][1]) < 12 and abs(end[0] - placed.centres[v][0]) < 15 + 6 * len(edges)


def test_labels_avoid_boxes_and_each_other():
    line = [(0.0, 0.0), (0.0, 30.0), (0.0, 70.0), (0.0, 100.0)]
    spots = label_spots([line, line], [(20.0, 10.0)] * 2, [((0.0, 50.0), (10.0, 20.0))])
    (_, first), (_, second) = spots
    assert abs(first - 50) >= 15 and abs(second - 50) >= 15 and abs(first - second) >= 10
