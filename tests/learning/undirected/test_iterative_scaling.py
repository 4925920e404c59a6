from __future__ import annotations

import numpy as np
import pytest

import markovfield as mf

CARDS = {"A": 2, "B": 3, "C": 2}
ROWS = np.random.default_rng(0).integers(0, [2, 3, 2], (200, 3))
ROWS[:80, 2] = np.minimum(ROWS[:80, 1], 1)


def features():
    return [
        mf.Feature(["A", "B"], lambda a, b: float(a == b) - 0.5 * (a > b), name="ab"),
        mf.Feature(["B", "C"], lambda b, c: 2.0 * b * c, name="bc"),
        ["A"],
        ["C"],
    ]


@pytest.mark.parametrize("variant", ["gis", "iis"])
def test_equals_maximum_likelihood_and_never_falls(variant):
    model = mf.LogLinear(CARDS, features())
    made = mf.fit(model, ROWS, mf.methods.IterativeScaling(variant, tolerance=1e-9))
    best = mf.fit(model, ROWS, "maximum_likelihood")
    report = made.fit_report
    np.testing.assert_allclose(mf.learning.fitted_table(made), mf.learning.fitted_table(best), atol=1e-7)
    assert report.converged and report.guarantee == "exact" and np.isfinite(made.parameters).all()
    assert min(np.diff(report.history)) > -1e-9 * abs(report.log_likelihood)
    assert report.log_likelihood == pytest.approx(best.fit_report.log_likelihood, rel=1e-10)


@pytest.mark.parametrize("variant", ["gis", "iis"])
def test_tied_features_of_an_ising_model(variant):
    data = mf.sample(mf.Ising((3, 3), coupling=0.4), 300, rng=1)
    made = mf.fit(mf.Ising((3, 3), coupling=0.0), data, mf.methods.IterativeScaling(variant))
    best = mf.fit(mf.Ising((3, 3), coupling=0.0), data, "maximum_likelihood")
    assert made.coupling == pytest.approx(best.coupling, abs=1e-5)


def test_tables_as_by_proportional_fitting():
    net = mf.MarkovNetwork.from_generators(CARDS, "AB/BC/AC")
    made = mf.fit(net, ROWS, mf.methods.IterativeScaling(tolerance=1e-8))
    np.testing.assert_allclose(
        mf.learning.fitted_table(made), mf.learning.fitted_table(mf.fit(net, ROWS, "ipf")), atol=1e-6
    )


def test_improved_steps_are_larger():
    model = mf.LogLinear(
        CARDS, [mf.Feature(["A", "B"], lambda a, b: 1.0 * a * b), mf.Feature(["C"], lambda c: 1.0 * c)]
    )
    slow, fast = (mf.fit(model, ROWS, mf.methods.IterativeScaling(v)).fit_report.iterations for v in ("gis", "iis"))
    assert fast < slow


@pytest.mark.parametrize("variant", ["gis", "iis"])
def test_features_that_never_occur_stay_finite_and_are_told(variant):
    model = mf.LogLinear({"A": 2, "B": 2}, [["A"], ["B"]])
    made = mf.fit(model, [[0, 0], [0, 1]], mf.methods.IterativeScaling(variant, tolerance=1e-6, max_iterations=300))
    assert np.isfinite(made.parameters).all()
    assert any("1 feature never occurs" in note for note in made.fit_report.notes)


def test_limits():
    model = mf.LogLinear(dict.fromkeys(range(20), 2), [[0, 1]])
    rows = np.zeros((3, 20), int)
    with pytest.raises(mf.ModelError, match="enumerates at most 65536"):
        mf.fit(model, rows, mf.methods.IterativeScaling("iis"))
    with pytest.raises(mf.ModelError, match="variant"):
        mf.methods.IterativeScaling("sgd")
    small = mf.LogLinear({"A": 2, "B": 2}, [["A"]])
    with pytest.raises(mf.ModelError, match="missing values"):
        mf.fit(small, {"A": [0, 1, None], "B": [0, 1, 1]}, "iterative_scaling")
    few = mf.fit(mf.LogLinear(CARDS, features()), ROWS, mf.methods.IterativeScaling(max_iterations=2)).fit_report
    assert not few.converged and few.iterations == 2
