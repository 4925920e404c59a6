"""Notebooks: every public answer, model and report has a table or a drawing, a frame, a picture and a short text."""

from __future__ import annotations

import pickle
from importlib import import_module
from typing import Any

import matplotlib as mpl
import networkx as nx
import numpy as np
import pandas as pd
import polars as pl
import pytest

import markovfield as mf
from markovfield._exports import EXPORTS, NAMESPACES, names_in
from markovfield.frames import html_table
from markovfield.plot.answers import DRAWN
from tests.displayed import REASONS, SHOWN, network, reason

mpl.use("Agg")
import matplotlib.pyplot as plt


def public_classes() -> dict[str, tuple[str, type]]:
    """Every public class but errors and methods, by name: its namespace and itself."""
    places = {n: ("", m) for n, m in EXPORTS.items() if m != f"markovfield.{n}"}
    for space in (*NAMESPACES, "datasets", "io", "plot", "semirings"):
        places |= {n: (space, m) for n, m in names_in(space).items() if n not in places}
    found = {n: (space, getattr(import_module(m), n)) for n, (space, m) in places.items()}
    return {
        n: (space, kind)
        for n, (space, kind) in found.items()
        if isinstance(kind, type) and not issubclass(kind, BaseException)
    }


CLASSES = public_classes()


def test_every_public_class_is_shown_or_has_a_reason():
    silent = [name for name, (space, kind) in CLASSES.items() if name not in SHOWN and not reason(space, name, kind)]
    assert not silent, "tests/displayed.py needs one of each, or the reason why it is not shown"
    wrong = [name for name in (*REASONS, *SHOWN) if name not in CLASSES]
    assert not wrong, "no public class has this name"
    assert not set(REASONS) & set(SHOWN)


def test_what_is_tabular_is_tested():
    tabular = {name for name, (space, kind) in CLASSES.items() if hasattr(kind, "to_frame") and hasattr(kind, "plot")}
    forms = {name for name in tabular if issubclass(CLASSES[name][1], mf.structures.StructureForm)}
    assert tabular - set(SHOWN) - set(REASONS) <= forms


@pytest.mark.parametrize("name", SHOWN)
def test_it_has_a_frame_a_table_a_picture_and_a_text(name: str):
    answer = SHOWN[name]()
    assert type(answer).__name__ == name
    lines = repr(answer).splitlines()
    assert lines and len(lines) <= 30 and "array(" not in repr(answer) and max(map(len, lines)) <= 200
    assert " object at 0x" not in repr(answer)
    one, two = answer.to_frame(), answer.to_frame("polars")
    assert isinstance(one, pd.DataFrame) and isinstance(two, pl.DataFrame) and one.shape == two.shape
    html = answer._repr_html_()
    assert html.startswith(("<table", "<div")) and html.endswith(("</table>", "</div>")) and len(html) < 200_000
    ax = answer.plot()
    ax.figure.canvas.draw()
    assert ax.figure.get_size_inches().max() < 40
    drawn = ax.lines or ax.patches or ax.images or ax.texts or ax.tables or ax.collections
    assert drawn, "an empty picture"
    plt.close("all")


@pytest.mark.parametrize("name", ["EntityReport", "Completion", "MonteCarlo", "SensitivityCurve", "Tree", "JointTable"])
def test_what_became_a_table_still_pickles(name: str):
    answer = SHOWN[name]()
    copy = pickle.loads(pickle.dumps(answer))
    assert copy.to_frame().equals(answer.to_frame())


def test_names_in_the_list_of_drawings_are_classes():
    inner = {"Drawn"}
    assert set(DRAWN) - inner <= set(CLASSES)


# ---- what is drawn ----------------------------------------------------------------------------------------------


def test_bounds_are_drawn_where_they_are():
    answer = mf.log_partition(mf.Ising((3, 3), 0.2), method="mean_field")
    ax = answer.plot()
    low, high = answer.log_partition_bounds
    ends = ax.lines[0].get_xdata()
    assert ends[0] == pytest.approx(low) and high == np.inf and ends[1] > answer.log_partition
    assert ax.lines[2].get_marker() == ">"
    plt.close("all")


def test_weighted_samples_are_drawn_by_their_weights():
    known = {"wet_grass": "yes"}
    drawn = mf.sample(network(), 4000, known, "likelihood_weighting", rng=1)
    ax = drawn.plot()
    names = [label.get_text() for label in ax.get_yticklabels()]
    found = ax.patches[names.index("rain, yes")].get_width()
    assert found == pytest.approx(mf.marginals(network(), known).probability_of("rain", "yes"), abs=0.05)
    plt.close("all")


def test_tables_choose_bars_curves_or_cells():
    bars = mf.plot.table({"name": ["a", "b$x$"], "score": [1.0, -2.0]})
    assert [p.get_width() for p in bars.patches] == [1.0, -2.0]
    curves = mf.plot.table({"step": [2, 1, 1, 2], "series": ["x", "x", "y", "y"], "mean": [1.0, 2.0, 3.0, 4.0]})
    assert [line.get_ydata().tolist() for line in curves.lines] == [[2.0, 1.0], [3.0, 4.0]]
    cells = mf.plot.table({"what": ["method"], "answer": ["junction tree"]})
    assert len(cells.tables) == 1
    many = mf.plot.table({"name": [str(i) for i in range(99)], "score": np.arange(99.0)})
    assert len(many.patches) == 30 and "first 30 of 99" in many.get_title(loc="left")
    plt.close("all")


def test_figures_of_different_units_share_no_axis():
    """Bars of a log-likelihood beside a number of rows say nothing; shares have one scale."""
    cells = mf.plot.table({"n_rows": [200], "log_likelihood": [-389.25], "seconds": [0.5]})
    assert not cells.patches
    texts = [cell.get_text().get_text() for cell in cells.tables[0].get_celld().values()]
    assert {"n rows", "200", "log likelihood", "-389.2"} <= set(texts)
    shares = mf.plot.table({"n_links": [1], "precision": [0.5], "recall": [0.25], "degrees_of_freedom": [1]})
    assert [p.get_width() for p in shares.patches] == [0.5, 0.25]
    assert [label.get_text() for label in shares.get_yticklabels()] == ["precision", "recall"]
    assert [text.get_text() for text in shares.texts] == ["0.5", "0.25"]
    plt.close("all")


def test_titles_are_whole():
    for name, title in {
        "JointGraphs": "JointGraphs(2001: 0 edges, 2002: 0 edges)",
        "Distribution": "P(rain | sprinkler), exact, enumeration",
        "StructureSamples": "3 structures (exact), ranking",
        "AlignmentReport": "AlignmentReport",
    }.items():
        ax = SHOWN[name]().plot()
        assert ax.get_title(loc="left") == title
        ax.figure.canvas.draw()
        box = ax._left_title.get_window_extent()
        assert box.x1 <= ax.figure.bbox.x1 and box.y1 <= ax.figure.bbox.y1
        plt.close("all")


def test_draws_of_numbers_and_states_are_drawn_by_variable():
    drawn = mf.sample(mf.GaussianField([[4.0]], variables=["a"]), 2000, rng=0)
    (bar,) = drawn.plot().containers
    reach = bar.lines[2][0].get_segments()[0][:, 0]
    assert reach.tolist() == pytest.approx([-1.0, 1.0], abs=0.1)
    ax = SHOWN["MixedSamples"]().plot()
    assert [p.get_width() for p in ax.patches[:2]] == [0.75, 0.25] and len(ax.get_yticklabels()) == 4
    plt.close("all")


def test_a_picture_ends_somewhere():
    chain = nx.DiGraph([(f"node {i}", f"node {i + 1}") for i in range(120)])
    ax = mf.plot.graph(chain)
    assert max(ax.figure.get_size_inches()) <= 40.0 and ax.texts[0].get_fontsize() < 10
    plt.close("all")
    with pytest.raises(mf.ModelError, match=r"draws at most 5,000 nodes .*, and here are 10,000 nodes; draw a part"):
        mf.Ising((100, 100), 0.2).plot()
    with pytest.raises(mf.ModelError, match=r"and here are more edges"):
        mf.Hopfield(300).plot()
    with pytest.raises(mf.ModelError, match=r"at least one node"):
        mf.plot.graph(nx.Graph())


def test_a_large_matrix_is_cut():
    ax = mf.learning.GaussianMoments(np.eye(60), 99).plot()
    assert ax.images[0].get_array().shape == (40, 40) and "first 40 of 60" in ax.get_title(loc="left")
    plt.close("all")


def test_long_texts_are_cut_in_tables():
    html = html_table("x" * 500, {"name": ["y" * 500]})
    assert len(html) < 500 and html.count("...") == 2


def test_spread_is_two_deviations():
    ax = mf.marginals(mf.GaussianField([[4.0]], variables=["a"])).plot()
    (bar,) = ax.containers
    reach = bar.lines[2][0].get_segments()[0][:, 0]
    assert reach.tolist() == pytest.approx([-1.0, 1.0])
    plt.close("all")


def test_mistakes_in_plots_are_named():
    with pytest.raises(mf.ModelError, match=r"plot\.answer draws answers, reports and models, got dict"):
        mf.plot.answer({})
    with pytest.raises(
        mf.ModelError, match=r"plot.table\(value=...\) is a column of numbers, one of \['score'\], got 'x'"
    ):
        mf.plot.table({"score": [1.0]}, value="x")
    with pytest.raises(mf.ModelError, match=r"plot.table needs columns by name, or an answer with to_frame\(\)"):
        mf.plot.table({})


def test_long_tables_are_cut_and_escaped(monkeypatch: Any):
    net = mf.MarkovNetwork({f"<b>{i}": ["<i>", "&"] for i in range(60)})
    for name in net:
        net.add_factor([name], [1.0, 2.0])
    html = mf.marginals(net)._repr_html_()
    assert "<b>" not in html and "&lt;b&gt;0" in html and html.count("<tr>") == 22
