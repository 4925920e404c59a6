"""Frames in and frames out: answers as tables of pandas and polars, tables as evidence, answers that pickle."""

from __future__ import annotations

import pickle
import sys
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest

import markovfield as mf
from markovfield.frames import fresh_name, html_table, to_frame
from markovfield.inference.core.registry import ENTRIES


@pytest.fixture
def net() -> mf.BayesianNetwork:
    return mf.datasets.sprinkler()


def answers() -> dict[str, object]:
    """One of every kind of answer."""
    net = mf.datasets.sprinkler()
    known = {"wet_grass": "yes"}
    tree = mf.methods.JunctionTree.compile(net)
    graph = net.compile()
    field = mf.GaussianField([[2.0, -1.0], [-1.0, 2.0]], variables=["a", "b"])
    data = mf.sample(net, 200, rng=1)
    fitted = mf.fit(net, data)
    return {
        "marginals": mf.marginals(net, known),
        "log_partition": mf.log_partition(net, known),
        "decoding": mf.decode(net, known, n_best=2),
        "samples": data,
        "weighted": mf.sample(net, 20, known, "likelihood_weighting", rng=1),
        "distribution": mf.query(net, "rain", known, given="sprinkler"),
        "batch": tree.run_batch({"rain": ["yes", None]}),
        "propagation": mf.methods.BeliefPropagation().compile(net).run_batch({"rain": ["yes", None]}),
        "sandwich": mf.marginals(net, method="sandwich"),
        "gibbs": mf.marginals(net, known, method="gibbs", rng=1),
        "counts": mf.expected_counts(graph.structure, graph.log_tables),
        "ranking": mf.analysis.mutual_information(net, "rain"),
        "sensitivity": mf.analysis.sensitivity(net, {"rain": "yes"}, known),
        "fit": fitted.fit_report,
        "structure": mf.learn_structure(data),
        "gaussian marginals": mf.marginals(field, {"a": 1.0}),
        "gaussian decoding": mf.decode(field),
        "gaussian samples": mf.sample(field, 3, rng=1),
        "explanation": mf.explain(net),
        "network": net,
        "graph": graph,
        "field": field,
        "cpdag": mf.graphs.cpdag(net.to_networkx()),
        "ising": mf.Ising((3, 3), 0.2),
    }


ANSWERS = answers()


@pytest.mark.parametrize("name", ANSWERS)
def test_every_answer_is_a_frame_a_table_and_pickles(name: str):
    answer = ANSWERS[name]
    copy = pickle.loads(pickle.dumps(answer))
    assert repr(copy) == repr(answer)
    lines = repr(answer).splitlines()
    assert len(lines) <= 30 and "array(" not in repr(answer) and max(map(len, lines)) <= 160
    one, two = answer.to_frame(), answer.to_frame(backend="polars")  # type: ignore[attr-defined]
    assert isinstance(one, pd.DataFrame) and isinstance(two, pl.DataFrame)
    assert one.shape == two.shape and [str(c) for c in one.columns] == two.columns
    assert copy.to_frame().equals(one)  # type: ignore[attr-defined]
    html = answer._repr_html_()  # type: ignore[attr-defined]
    assert html.startswith(("<table>", "<div>")) and html.endswith(("</table>", "</div>"))


@pytest.mark.parametrize("entry", [e for e in ENTRIES if e.form == "FactorGraph"], ids=lambda e: e.name)
def test_answers_of_every_method_pickle(entry: object):
    net = mf.MarkovNetwork(dict.fromkeys(range(4), 2))
    net.add_factors([[0, 1], [1, 2], [2, 3], [3, 0]], [[3.0, 2.0], [2.0, 3.0]])
    for verb in entry.verbs:  # type: ignore[attr-defined]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                if verb == "sample":
                    answer = mf.sample(net, 8, {0: 1}, entry.name, rng=1)  # type: ignore[attr-defined]
                else:
                    answer = getattr(mf, verb)(net, {0: 1}, method=entry.name)  # type: ignore[attr-defined]
            except (mf.ModelError, ImportError):
                continue
            copy = pickle.loads(pickle.dumps(answer))
            assert copy.to_frame().equals(answer.to_frame())
            if verb == "marginals":
                assert not copy.values.flags.writeable
                _same_deferred(answer, copy)


def _same_deferred(answer: mf.Marginals, copy: mf.Marginals) -> None:
    try:
        expected = answer.joint([1, 2])
    except mf.ModelError:
        with pytest.raises(mf.ModelError):
            copy.joint([1, 2])
        return
    np.testing.assert_allclose(copy.joint([1, 2]), expected, atol=1e-6)


def test_a_copied_graph_is_read_only_and_keeps_what_was_declared(net: mf.BayesianNetwork):
    graph = net.compile()
    mf.marginals(graph)
    broken = graph.with_tables(graph.log_tables + np.arange(len(graph.log_tables)) * 1e-3)
    for one in (graph, broken):
        copy = pickle.loads(pickle.dumps(one))
        assert not copy.log_tables.flags.writeable and not copy.structure.scopes.flags.writeable
        again = copy.with_tables(graph.log_tables).structure
        np.testing.assert_array_equal(again.child, graph.structure.child)


def test_marginals_as_a_frame(net: mf.BayesianNetwork):
    frame = mf.marginals(net, {"wet_grass": "yes"}).to_frame()
    assert list(frame.columns) == ["variable", "state", "probability"]
    found = frame.set_index(["variable", "state"])["probability"]
    assert found["sprinkler", "on"] == pytest.approx(0.4298, abs=1e-4)
    estimated = mf.marginals(net, method="gibbs", rng=1).to_frame()
    assert (estimated["standard_error"] >= 0).all()


def test_decoding_and_samples_as_frames(net: mf.BayesianNetwork):
    best = mf.decode(net, n_best=2)
    frame = best.to_frame()
    assert frame["rank"].tolist() == [1] * 4 + [2] * 4
    assert dict(zip(frame["variable"][:4], frame["state"][:4], strict=True)) == best.assignment
    drawn = mf.sample(net, 50, {"rain": "yes"}, "likelihood_weighting", rng=2)
    table = drawn.to_frame()
    assert table["weight"].sum() == pytest.approx(1.0) and set(table["rain"]) == {"yes"}
    assert mf.fit(net, table, weights="weight").cpt("rain").shape == (2, 2)


def test_names_of_columns_do_not_clash():
    assert fresh_name("weight", ["weight", "weight_"]) == "weight__"
    net = mf.MarkovNetwork({"probability": 2})
    net.add_factor(["probability"], [1.0, 3.0])
    frame = mf.query(net, "probability").to_frame()
    assert frame["probability_"].tolist() == [0.25, 0.75]


def test_polars_has_one_type_in_a_column():
    frame = to_frame({1: ["a", 2, None], "1": [1.0, 2, None]}, "polars")
    assert frame.columns == ["1", "'1'"] and frame["1"].to_list() == ["a", "2", None]


def test_mistakes_about_backends(net: mf.BayesianNetwork, monkeypatch: pytest.MonkeyPatch):
    answer = mf.marginals(net)
    with pytest.raises(mf.ModelError, match="is 'pandas' or 'polars', got 'arrow'"):
        answer.to_frame("arrow")
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(ImportError, match=r'needs polars, which is not installed: pip install "markovfield\[frames\]"'):
        answer.to_frame("polars")


def test_html_is_escaped_and_cut():
    html = html_table("<b>", {f"c{i}": list(range(50)) for i in range(20)})
    assert "&lt;b&gt;" in html and html.count("<tr>") == 22 and "<td>49</td>" not in html


def test_models_are_drawn_or_listed(net: mf.BayesianNetwork, monkeypatch: pytest.MonkeyPatch):
    assert "<svg" in net._repr_html_() and "wet_grass" in net._repr_html_()
    import matplotlib.pyplot as plt

    assert plt.get_fignums() == []
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    table = net._repr_html_()
    assert "<svg" not in table and "off, on" in table and "sprinkler, rain" in table
    assert "<svg" not in mf.Ising((40, 40), 0.2)._repr_html_()


# ---- frames as evidence ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("missing", [None, np.nan, pd.NA])
def test_a_series_is_evidence(net: mf.BayesianNetwork, missing: object):
    series = pd.Series({"wet_grass": "yes", "cloudy": missing}, dtype=object)
    expected = mf.marginals(net, {"wet_grass": "yes"}).values
    np.testing.assert_array_equal(mf.marginals(net, series).values, expected)
    np.testing.assert_array_equal(mf.marginals(net, series.to_frame().T).values, expected)
    one = pl.DataFrame({"wet_grass": ["yes"], "cloudy": [None]})
    np.testing.assert_array_equal(mf.marginals(net, one).values, expected)
    assert mf.query(net, "rain", series).values.shape == (2,)


def test_integers_beside_missing_values_stay_states():
    net = mf.MarkovNetwork({"A": 3, "B": 2})
    net.add_factor(["A", "B"], [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    row = pd.DataFrame({"A": [2, 1], "B": [np.nan, 1]}).iloc[0]
    np.testing.assert_array_equal(mf.marginals(net, row)["A"], [0.0, 0.0, 1.0])


def test_gaussian_evidence_takes_a_series():
    field = mf.GaussianField([[2.0, -1.0], [-1.0, 2.0]], variables=["a", "b"])
    assert mf.marginals(field, pd.Series({"a": 1.0, "b": np.nan}))["b"] == mf.marginals(field, {"a": 1.0})["b"]


def test_mistakes_in_evidence_are_named(net: mf.BayesianNetwork):
    with pytest.raises(mf.ModelError, match="a frame as evidence has one row, this has 2 in column 'rain'"):
        mf.marginals(net, pd.DataFrame({"rain": ["yes", "no"]}))
    with pytest.raises(mf.ModelError, match="there is no variable 'Rain' in the model; did you mean 'rain'"):
        mf.marginals(net, pd.Series({"Rain": "yes"}))
    with pytest.raises(mf.ModelError, match="row 1 of the data has state 'maybe' for variable 'rain'"):
        mf.methods.JunctionTree.compile(net).run_batch(pd.DataFrame({"rain": ["yes", "maybe"]}))
    with pytest.raises(mf.ModelError, match="evidence must be a dict"):
        mf.marginals(net, ["rain"])  # type: ignore[arg-type]


def test_batches_of_frames_are_batches_of_rows(net: mf.BayesianNetwork):
    columns = {"rain": ["yes", None, "no"], "wet_grass": [None, "yes", "yes"]}
    frame = pd.DataFrame(columns)
    rows = np.array([[-1, -1, 1, -1], [-1, -1, -1, 1], [-1, -1, 0, 1]])
    tree = mf.methods.JunctionTree.compile(net)
    for given in (frame, pl.DataFrame(columns), columns, frame.astype("category")):
        np.testing.assert_array_equal(tree.run_batch(given).values, tree.run_batch(rows).values)


# ---- predictions ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["auto", "junction_tree", "variable_elimination", "belief_propagation"])
def test_predictions_are_marginals_row_by_row(net: mf.BayesianNetwork, method: str):
    frame = pd.DataFrame({"sprinkler": ["on", None, "on"], "wet_grass": ["no", "yes", "no"]}, index=[7, 3, 5])
    chain = mf.BayesianNetwork({"a": ["x", "y"], "b": 3})
    chain.add_cpt("a", [], [0.2, 0.8])
    chain.add_cpt("b", ["a"], [[0.1, 0.2, 0.7], [0.3, 0.3, 0.4]])
    for model, table, target in ((net, frame, "rain"), (chain, pd.DataFrame({"b": [2, 0, None]}), "a")):
        if method == "belief_propagation" and model is net:
            continue  # which has a cycle
        found = mf.predict(model, table, target, method)
        assert found.index.equals(table.index)
        for label, row in table.iterrows():
            expected = mf.marginals(model, row)[target]
            columns = [f"P({target}={s})" for s in model.states(target)]
            np.testing.assert_allclose(found.loc[label, columns].to_numpy(float), expected, atol=1e-12)
            assert found.loc[label, target] == model.states(target)[int(np.argmax(expected))]


def test_predictions_without_targets_fill_the_gaps(net: mf.BayesianNetwork):
    frame = mf.sample(net, 40, rng=3).to_frame()
    holed = frame.mask(np.random.default_rng(0).random(frame.shape) < 0.3)
    found = mf.predict(net, holed)
    for name in net:
        seen = holed[name].notna()
        assert (found[name][seen] == holed[name][seen]).all()
    assert (mf.predict(net, frame, "rain")["P(rain=yes)"] < 1).any()  # its own column is not looked at


def test_many_rows_go_through_one_tree(monkeypatch: pytest.MonkeyPatch):
    from markovfield.inference import predict as module

    monkeypatch.setattr(module, "CHUNK", 64)
    net = mf.datasets.alarm_like()
    data = mf.sample(net, 300, rng=1).to_frame("polars").drop("v37", "v36")
    steps: list[mf.answers.Progress] = []
    found = mf.predict(net, data, ["v36", "v37"], callback=steps.append)
    assert isinstance(found, pl.DataFrame) and len(found) == 300 and len(steps) == 5
    row = dict(zip(data.columns, data.row(123), strict=True))
    np.testing.assert_allclose(found.select(pl.col("^P.v37=.*$")).row(123), mf.marginals(net, row)["v37"], atol=1e-12)


def test_predictions_of_impossible_rows(net: mf.BayesianNetwork):
    frame = {"sprinkler": ["on", "off"], "rain": ["yes", "no"], "wet_grass": ["yes", "yes"]}
    with pytest.raises(mf.ImpossibleEvidenceError, match="row 1: sprinkler='off', rain='no', wet_grass='yes'"):
        mf.predict(net, frame, "cloudy")
    for few in (True, False):
        found = mf.predict(net, frame, "cloudy", "auto" if few else "junction_tree", impossible="nan")
        assert np.isnan(found["P(cloudy=no)"][1]) and found["cloudy"].isna().tolist() == [False, True]


def test_mistakes_in_predictions(net: mf.BayesianNetwork):
    full = mf.sample(net, 3, rng=1).to_frame()
    with pytest.raises(mf.ModelError, match="every row shows every variable"):
        mf.predict(net, full)
    with pytest.raises(mf.ModelError, match="there is no variable 'id'"):
        mf.predict(net, full.assign(id=1), "rain")
    with pytest.raises(mf.ModelError, match="needs at least one variable"):
        mf.predict(net, full, [])
    with pytest.raises(mf.ModelError, match="impossible must be 'raise' or 'nan'"):
        mf.predict(net, full, "rain", impossible="skip")
    assert list(mf.predict(net, full[:0], "rain").columns) == ["rain", "P(rain=no)", "P(rain=yes)"]


# ---- models as collections ------------------------------------------------------------------------------------


def test_models_are_collections_of_their_variables():
    linear = mf.LinearGaussianNetwork(["a", "b"])
    for model in (mf.datasets.asia(), mf.datasets.asia().compile(), mf.Potts((2, 3), 3, 0.5), linear):
        assert len(model) == model.n_variables and list(model) == list(model.variables)
        assert next(iter(model)) in model and "nobody" not in model and [] not in model
    empty = mf.MarkovNetwork()
    assert len(empty) == 0 and bool(empty)


def test_reports_of_training_are_a_line_and_a_table():
    tagged = mf.ChainCRF().fit([[["a"], ["b"]]], [["x", "y"]]).report_
    hidden = mf.HMM(n_states=2, rng=0).fit([["a", "b", "a"], ["b", "b"]]).report_
    grammar = mf.PCFG().fit(mf.io.read_trees("(S (A a) (B b))\n(S (A a) (B c))")).report_
    for report, score in ((tagged, "objective"), (hidden, "log_likelihood"), (grammar, "log_likelihood")):
        name = type(report).__name__
        assert repr(report) == f"{name}: {report}" and "\n" not in repr(report)
        assert report.to_frame()[score].tolist() == [getattr(report, score)]
        assert f"{name}: " in report._repr_html_() and "<th>converged</th>" in report._repr_html_()
        assert "white-space: nowrap" in report._repr_html_(), "a headline is one line above a narrow table"
