"""Curves of residuals and of bounds show the numbers they are given."""

from __future__ import annotations

import warnings

import matplotlib.pyplot as plt
import numpy as np
import pytest

import markovfield as mf
from markovfield import plot
from markovfield.inference.generalized_bp.generalized_bp import GeneralizedBP
from markovfield.inference.sandwich import BoundStep, SandwichLogPartition


@pytest.fixture(scope="module")
def answers() -> dict[str, mf.Marginals]:
    rng = np.random.default_rng(0)
    net = mf.MarkovNetwork(dict.fromkeys(range(16), 2))
    for v in range(16):
        for u in ([v + 1] if v % 4 < 3 else []) + ([v + 4] if v < 12 else []):
            net.add_factor([v, u], log_table=rng.normal(size=(2, 2)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        short = mf.marginals(net, method=GeneralizedBP(max_iterations=5))
    return {"all": mf.marginals(net, method=GeneralizedBP()), "short": short}


def labels(ax: plt.Axes) -> list[str]:
    legend = ax.get_legend()
    return [] if legend is None else [t.get_text() for t in legend.get_texts()]


def test_one_answer(answers: dict[str, mf.Marginals]):
    answer = answers["all"]
    ax = plot.residuals(answer, tolerance=1e-6)
    np.testing.assert_array_equal(ax.lines[0].get_ydata(), answer.residuals)
    np.testing.assert_array_equal(ax.lines[0].get_xdata(), np.arange(1, answer.iterations + 1))
    assert ax.get_yscale() == "log" and labels(ax) == []
    assert ax.get_title(loc="left") == f"generalized_bp: converged after {answer.iterations} iterations"
    assert ax.get_ylim()[0] < min(answer.residuals)
    assert "tolerance" in [t.get_text() for t in ax.texts]


def test_convergence_is_marked(answers: dict[str, mf.Marginals]):
    ax = plot.residuals(answers)
    assert labels(ax) == ["all", "short"]
    ends = {line.get_xdata()[0]: line.get_marker() for line in ax.lines[2:]}
    assert ends == {answers["all"].iterations: "o", 5: "x"}
    assert ax.get_title(loc="left") == "Residuals, 1 of 2 converged"
    assert labels(plot.residuals(list(answers.values()))) == ["generalized_bp", "generalized_bp"]


def test_plain_numbers_have_no_mark():
    ax = plot.residuals([1.0, 0.1, 0.0], title="Mine")
    assert len(ax.lines) == 1 and ax.get_title(loc="left") == "Mine"
    assert (ax.lines[0].get_ydata() > 0).all()  # a log axis has no zero


def test_bounds_of_a_sandwich():
    best = [(-np.inf, np.inf), (-np.inf, 9.0), (2.0, 9.0), (2.0, 4.5), (2.5, 4.0)]
    names = ["junction_tree", "tree_reweighted", "mean_field", "mini_bucket(2)", "mini_bucket(4)"]
    steps = tuple(BoundStep(n, "bounded", b, b, 1.0) for n, b in zip(names, best, strict=True))
    answer = SandwichLogPartition(log_partition=3.25, guarantee="approximate", method="sandwich", details=steps)
    ax = plot.bounds(answer, exact=3.0)
    assert ax.lines[0].get_ydata().tolist() == [9.0, 9.0, 4.5, 4.0]
    low = ax.lines[1].get_ydata()
    assert np.isnan(low[0]) and low[1:].tolist() == [2.0, 2.0, 2.5]
    assert [t.get_text() for t in ax.get_xticklabels()] == names[1:]
    assert ax.lines[2].get_ydata()[0] == 3.0
    assert ax.get_title(loc="left") == "Bounds on log Z, 1.5 apart"
    assert labels(ax) == ["upper bound", "lower bound", "log Z"]


def test_bounds_of_a_history():
    ax = plot.bounds(np.array([[0.0, 3.0], [1.0, 2.0]]))
    assert ax.get_xlabel() == "iteration" and ax.lines[0].get_xdata().tolist() == [1, 2]
    assert ax.get_title(loc="left") == "Bounds on log Z, 1 apart"
    assert plot.bounds([(0.0, 3.0), (1.0, 1.0)]).get_title(loc="left") == "Bounds on log Z, which meet"
    _, given = plt.subplots()
    assert plot.bounds([(0.0, 1.0)], ax=given) is given


def test_what_cannot_be_drawn():
    net = mf.MarkovNetwork({"A": 2})
    with pytest.raises(mf.ModelError, match="'enumeration' has no residuals"):
        plot.residuals(mf.marginals(net, method="enumeration"))
    with pytest.raises(mf.ModelError, match="at least one answer"):
        plot.residuals({})
    with pytest.raises(mf.ModelError, match=r"pairs \(lower, upper\), got shape \(3,\)"):
        plot.bounds([1.0, 2.0, 3.0])
    with pytest.raises(mf.ModelError, match="pairs"):
        plot.bounds("no")
