"""What data lack is counted, and warned of where it looks like a mistake."""

from __future__ import annotations

import io
import warnings

import numpy as np
import pytest

import markovfield as mf
from markovfield.learning.core.missing import READ_AS_MISSING

pandas = pytest.importorskip("pandas")


def three_states() -> mf.BayesianNetwork:
    net = mf.BayesianNetwork({"drug": ["A", "B", "None"], "well": ["no", "yes"]})
    net.set_parents("well", ["drug"])
    return net


CSV = "drug,well\n" + "A,no\nB,yes\nNone,yes\n" * 20


def test_a_state_that_pandas_reads_as_missing_is_warned_of():
    frame = pandas.read_csv(io.StringIO(CSV))
    with pytest.warns(mf.MissingDataWarning, match=r"'drug' has 20 missing.*'None'.*keep_default_na=False") as told:
        fitted = mf.fit(three_states(), frame, rng=0)
    assert len(told) == 1 and told[0].filename == __file__
    assert fitted.fit_report.missing == {"drug": 20}
    assert "20 of 'drug' missing" in repr(fitted.fit_report)
    assert fitted.cpt("drug")[2] < 0.01
    whole = pandas.read_csv(io.StringIO(CSV), keep_default_na=False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fitted = mf.fit(three_states(), whole)
    assert fitted.cpt("drug").tolist() == pytest.approx([1 / 3] * 3)
    assert fitted.fit_report.missing == {} and "missing" not in repr(fitted.fit_report)


def test_the_list_is_that_of_pandas():
    for text in sorted(READ_AS_MISSING):
        assert pandas.read_csv(io.StringIO(f"a,b\n{text},1\n"))["a"].isna().all(), text


@pytest.mark.parametrize("states", [["x", "y", "z"], [0, 1, 2], [False, True]])
def test_a_state_that_never_comes_up_beside_holes(states):
    net = mf.BayesianNetwork({"a": states})
    net.set_parents("a", [])
    with pytest.warns(mf.MissingDataWarning, match="nowhere the state"):
        mf.fit(net, {"a": [states[0], None, states[0]]}, rng=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error", mf.MissingDataWarning)
        # Nothing is missing; or nothing unseen.
        mf.fit(net, {"a": [states[0], states[0]]}, rng=0)
        mf.fit(net, {"a": [*states, None]}, rng=0)


@pytest.mark.parametrize(
    "data",
    [
        {"well": ["no", "yes", "yes"]},
        {"well": ["no", "yes", "yes"], "drug": [None] * 3},
        pandas.DataFrame({"well": ["no", "yes", "yes"]}),
        np.array([[-1, 0], [-1, 1], [-1, 1]]),
    ],
)
def test_a_forgotten_column_is_warned_of_and_a_hidden_variable_is_not(data):
    with pytest.warns(mf.MissingDataWarning, match=r"no row of the data has a value for 'drug'.*hidden=\['drug'\]"):
        fitted = mf.fit(three_states(), data, rng=0)
    assert fitted.fit_report.missing == {"drug": 3} and "'drug' hidden" in repr(fitted.fit_report)
    with warnings.catch_warnings():
        warnings.simplefilter("error", mf.MissingDataWarning)
        meant = mf.fit(three_states(), data, hidden=["drug"], rng=0)
    assert np.array_equal(meant.cpt("drug"), fitted.cpt("drug"))


def test_many_forgotten_columns_are_one_warning():
    net = mf.BayesianNetwork({f"v{i}": 2 for i in range(9)})
    for i in range(9):
        net.set_parents(f"v{i}", [])
    with pytest.warns(mf.MissingDataWarning, match="'v1', 'v2', 'v3', 'v4', 'v5' and 3 more") as told:
        mf.fit(net, {"v0": [0, 1]}, rng=0)
    assert len(told) == 1


@pytest.mark.parametrize(
    ("hidden", "match"),
    [
        ("drug", r"hidden=...\) must be a list of variables, got 'drug'"),
        (3, r"hidden=...\) must be a list of variables, got 3"),
        (["dose"], "names 'dose', which is no variable of the network"),
        (["well"], "names 'well', which the data has values for"),
    ],
)
def test_wrong_hidden_variables(hidden, match):
    with pytest.raises(mf.ModelError, match=match):
        mf.fit(three_states(), {"well": ["no", "yes"]}, hidden=hidden, rng=0)


def test_missing_values_count_with_weights_and_priors():
    net = three_states()
    data = {"drug": ["A", None, "None", "B"], "well": ["no", "yes", None, None], "n": [1.0, 2.0, 3.0, 4.0]}
    with warnings.catch_warnings():
        warnings.simplefilter("error", mf.MissingDataWarning)
        fitted = mf.fit(net, data, mf.methods.ExpectationMaximization(prior="k2"), weights="n", rng=0)
    assert fitted.fit_report.missing == {"drug": 1, "well": 2} and fitted.fit_report.total_weight == 10.0
