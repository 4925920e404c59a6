"""Posterior panels: the bars are the probabilities, the panels do not overlap."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch, Rectangle

import markovfield as mf
from markovfield import datasets, plot
from markovfield.plot import _style as style
from tests.data import data_path

SEEN = {"room": "cold", "noise": "rattling"}


@pytest.fixture(scope="module")
def net() -> mf.BayesianNetwork:
    return datasets.diagnosis_network()


def bars(ax: plt.Axes) -> list[Rectangle]:
    return [p for p in ax.patches if isinstance(p, Rectangle) and p.get_gid() == "bar"]


def shares(ax: plt.Axes) -> list[float]:
    """Lengths of the bars as shares of their tracks."""
    tracks = {}
    for p in ax.patches:
        if isinstance(p, Rectangle) and p.get_gid() != "bar":
            tracks[p.get_xy()] = p.get_width()
    return [bar.get_width() / tracks[bar.get_xy()] for bar in bars(ax)]


def boxes(ax: plt.Axes) -> list:
    """Outlines of the panels: each node has one, and a second one for its head."""
    return [p.get_extents() for p in ax.patches if isinstance(p, FancyBboxPatch)][::2]


def texts(ax: plt.Axes) -> list[str]:
    return [t.get_text() for t in ax.texts]


def test_the_bars_are_the_posterior(net: mf.BayesianNetwork):
    answer = mf.marginals(net, SEEN)
    ax = plot.posteriors(net, SEEN)
    np.testing.assert_allclose(shares(ax), answer.values, atol=1e-9)
    assert len(boxes(ax)) == 12
    assert len([p for p in ax.patches if isinstance(p, FancyArrowPatch)]) == 16
    for a, b in combinations(boxes(ax), 2):
        assert not a.overlaps(b)
    assert ax.get_title(loc="left") == "Posterior given 2 observed variables (exact)"
    assert set(net.variables) <= set(texts(ax)) and "rattling" in texts(ax)


def test_an_answer_in_place_of_evidence(net: mf.BayesianNetwork):
    answer = mf.marginals(net, SEEN)
    one = plot.posteriors(net, answer, evidence=SEEN, title="Mine")
    assert shares(one) == shares(plot.posteriors(net, SEEN))
    assert one.get_title(loc="left") == "Mine"


def test_observed_variables_have_their_colour(net: mf.BayesianNetwork):
    ax = plot.posteriors(net, SEEN)
    orange = [bar for bar in bars(ax) if bar.get_facecolor() == plt.matplotlib.colors.to_rgba(style.ORANGE)]
    assert len(orange) == sum(len(mf.marginals(net)[v]) for v in SEEN)
    assert sum(bar.get_width() > 0 for bar in orange) == 2


def test_a_prior_is_a_line_across_each_bar(net: mf.BayesianNetwork):
    before = mf.marginals(net)
    ax = plot.posteriors(net, SEEN, prior=before)
    assert len(ax.lines) == len(before.values)
    assert "upright lines: prior" in ax.get_title(loc="left")
    for bar, line, value in zip(bars(ax), ax.lines, before.values, strict=True):
        track = next(p for p in ax.patches if isinstance(p, Rectangle) and p.get_xy() == bar.get_xy())
        assert (line.get_xdata()[0] - bar.get_x()) / track.get_width() == pytest.approx(value)


def test_some_variables_with_the_arcs_among_them(net: mf.BayesianNetwork):
    ax = plot.posteriors(net, variables=["heating", "room", "weather"])
    assert len(boxes(ax)) == 3
    inside = {"heating", "room", "weather"}
    arcs = sum(p in inside for v in inside for p in net.parents(v))
    assert len([p for p in ax.patches if isinstance(p, FancyArrowPatch)]) == arcs > 0
    assert ax.get_title(loc="left") == "Marginals (exact)"


def test_an_undirected_model_has_no_heads():
    chain = mf.MarkovNetwork(dict.fromkeys("ABC", 2))
    chain.add_factors([["A", "B"], ["B", "C"]], [[2.0, 1.0], [1.0, 2.0]])
    ax = plot.posteriors(chain, {"A": 1})
    lines = [p for p in ax.patches if isinstance(p, FancyArrowPatch)]
    assert [type(p.get_arrowstyle()).__name__ for p in lines] == ["Curve", "Curve"]


def test_many_states_show_the_likeliest():
    net = mf.BayesianNetwork({"X": [f"s{i}" for i in range(9)]})
    net.add_cpt("X", [], np.array([1, 9, 2, 8, 3, 7, 4, 6, 5]) / 45)
    ax = plot.posteriors(net, max_states=4)
    assert texts(ax) == ["X", "s1", "20%", "s3", "18%", "s5", "16%", "6 more"]
    assert len(bars(plot.posteriors(net, max_states=9))) == 9


def test_no_false_certainty():
    net = mf.BayesianNetwork({"X": ["no", "yes"], "Y": ["no", "yes"]})
    net.add_cpt("X", [], [0.9999, 0.0001])
    net.add_cpt("Y", [], [1.0, 0.0])
    assert [t for t in texts(plot.posteriors(net)) if "%" in t] == [">99%", "<1%", "100%", "0%"]


def test_alarm_is_legible(tmp_path: Path):
    net = mf.io.read_bif(data_path("bif", "alarm.bif.gz"))
    ax = plot.posteriors(net, {"CVP": "LOW", "HR": "HIGH"})
    assert len(boxes(ax)) == 37 and len(bars(ax)) == 105
    for a, b in combinations(boxes(ax), 2):
        assert not a.overlaps(b)
    width, height = ax.figure.get_size_inches()
    assert width < 20 and height < 20
    # No text leaves its panel.
    renderer = ax.figure.canvas.get_renderer()
    frames = [p.get_window_extent(renderer) for p in ax.patches if isinstance(p, FancyBboxPatch)][::2]
    for text in ax.texts:
        extent = text.get_window_extent(renderer)
        assert any(
            f.x0 <= extent.x0 and extent.x1 <= f.x1 and f.y0 - 1 <= extent.y0 and extent.y1 <= f.y1 + 1 for f in frames
        )
    ax.figure.savefig(tmp_path / "alarm.svg")
    assert (tmp_path / "alarm.svg").read_text().lstrip().startswith("<?xml")


def test_panels_into_given_axes(net: mf.BayesianNetwork):
    _, ax = plt.subplots(figsize=(4, 3))
    assert plot.posteriors(net, ax=ax) is ax
    assert max(t.get_fontsize() for t in ax.texts) < 8
    assert len(plt.get_fignums()) == 1


def test_panels_refused(net: mf.BayesianNetwork):
    with pytest.raises(mf.ModelError, match="takes evidence once"):
        plot.posteriors(net, SEEN, evidence=SEEN)
    with pytest.raises(mf.ModelError, match=r"max_states=...\) must be at least 1, got 0"):
        plot.posteriors(net, max_states=0)
    other = mf.MarkovNetwork({"A": 2})
    with pytest.raises(mf.ModelError, match=r"given\) must be an answer for the model that is drawn"):
        plot.posteriors(net, mf.marginals(other))
    with pytest.raises(mf.ModelError, match=r"prior=...\) must be an answer for the model"):
        plot.posteriors(net, prior=mf.marginals(other))
    with pytest.raises(mf.ModelError, match="draws 1 to 150 variables, got 200; choose some"):
        plot.posteriors(mf.MarkovNetwork(dict.fromkeys(range(200), 2)))
    with pytest.raises(mf.ModelError, match="no variable 'rom' in the model; did you mean 'room'"):
        plot.posteriors(net, variables=["rom"])
    with pytest.raises(mf.ModelError, match=r"layout=... is 'auto', 'layered' or 'graphviz', got 'circle'"):
        plot.posteriors(net, layout="circle")  # type: ignore[arg-type]
