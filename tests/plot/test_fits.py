"""Pictures of fits."""

from __future__ import annotations

import numpy as np
import pytest

import markovfield as mf


def test_one_fit_and_several():
    ring = mf.MarkovNetwork.from_edges(dict.fromkeys(range(5), 2), [(i, (i + 1) % 5) for i in range(5)])
    rows = np.random.default_rng(0).integers(0, 2, (50, 5))
    fits = {name: mf.fit(ring, rows, method=name) for name in ("maximum_likelihood", "pseudo_likelihood")}
    axes = fits["maximum_likelihood"].fit_report.plot()
    assert axes.get_title(loc="left") or axes.get_title()
    gaps = axes.lines[0].get_ydata()
    assert (np.diff(gaps) <= 1e-12).all() and len(gaps) == fits["maximum_likelihood"].fit_report.iterations
    both = mf.plot.fit_history(fits)
    assert len(both.lines) == 4 and len(both.get_legend().get_texts()) == 2
    closed = mf.fit(mf.MarkovNetwork.from_edges({0: 2, 1: 2}, [(0, 1)]), rows[:, :2], method="closed_form")
    with pytest.raises(mf.ModelError, match="did not iterate"):
        mf.plot.fit_history(closed)
