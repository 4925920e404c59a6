"""The commands of real-valued data, run as a user runs them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import markovfield as mf
from markovfield.cli import main


def run(capsys: pytest.CaptureFixture[str], *words: object, status: int = 0) -> str:
    assert main([str(word) for word in words]) == status
    captured = capsys.readouterr()
    return captured.out if status == 0 else captured.err


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A chain a - b - c, and a state that goes with a."""
    rng = np.random.default_rng(0)
    a = rng.normal(size=400)
    b = a + 0.5 * rng.normal(size=400)
    c = 2 - b + 0.5 * rng.normal(size=400)
    kind = np.where(a + 0.3 * rng.normal(size=400) > 0, "high", "low")
    path = tmp_path / "data.csv"
    columns = (a.tolist(), b.tolist(), c.tolist(), kind.tolist())
    rows = [",".join(map(str, row)) for row in zip(*columns, strict=True)]
    path.write_text("\n".join(["a,b,c,kind", *rows]))
    return path


def test_fit_query_and_sample(capsys, data, tmp_path):
    model = tmp_path / "model.mfz"
    text = run(capsys, "gaussian", "fit", data, "--edge", "a,b", "--edge", "b,c", "--ignore", "kind", "-o", model)
    assert "3 variables" in text or "400 rows" in text
    columns = {n: np.array(c, float) for n, c in mf.io.read_csv(data).items() if n != "kind"}
    field = mf.load(model)
    np.testing.assert_allclose(field.mean, [columns[v].mean() for v in "abc"], atol=1e-9)
    assert field.precision[0, 2] == 0
    body = json.loads(run(capsys, "gaussian", "query", model, "-e", "a=1.5", "--json"))
    expected = mf.marginals(field, {"a": 1.5})["c"]
    assert body["marginals"]["c"] == pytest.approx({"mean": expected.mean, "variance": expected.variance})
    shown = run(capsys, "gaussian", "query", model, "-e", "a=1.5", "-q", "a", "-q", "c")
    assert "known" in shown and "95% interval" in shown and "b " not in shown.splitlines()[1]
    out = tmp_path / "rows.csv"
    run(capsys, "gaussian", "sample", model, "-n", 5, "-e", "b=0.5", "--seed", 0, "-o", out)
    drawn = mf.io.read_csv(out)
    assert list(drawn) == ["a", "b", "c"] and set(drawn["b"]) == {"0.5"} and len(drawn["a"]) == 5
    assert run(capsys, "gaussian", "sample", model, "-n", 2, "--seed", 0).count("\n") == 3
    body = json.loads(run(capsys, "gaussian", "sample", model, "-n", 2, "--json"))
    assert len(body["samples"]["a"]) == 2 and body["guarantee"] == "exact"


def test_fit_a_network(capsys, data):
    body = json.loads(
        run(capsys, "gaussian", "fit", data, "--arc", "a,b", "--arc", "b,c", "--ignore", "kind", "--json")
    )
    columns = {n: np.array(c, float) for n, c in mf.io.read_csv(data).items() if n != "kind"}
    slope = np.polyfit(columns["a"], columns["b"], 1)
    assert body["regressions"]["b"]["weights"] == pytest.approx([slope[0]]) and body["n_rows"] == 400
    assert "2" in run(capsys, "gaussian", "fit", data, "--arc", "a,b", "--ignore", "kind")


def test_learn(capsys, data, tmp_path):
    model = tmp_path / "learned.mfz"
    body = json.loads(run(capsys, "gaussian", "learn", data, "--ignore", "kind", "--json"))
    assert [e[:2] for e in body["edges"]] == [["a", "b"], ["b", "c"]]
    text = run(capsys, "gaussian", "learn", data, "--ignore", "kind", "--penalty", 0.1, "-o", model)
    assert "a - b" in text and isinstance(mf.load(model), mf.GaussianField)
    text = run(capsys, "gaussian", "learn", data, "-m", "mixed_group_lasso", "-o", model)
    assert "a - kind" in text
    found = json.loads(run(capsys, "gaussian", "query", model, "-e", "kind=high", "-e", "c=0", "--json"))
    assert found["marginals"]["kind"] == {"high": 1.0, "low": 0.0}
    assert "high 1.0000" in run(capsys, "gaussian", "query", model, "-e", "kind=high")


def test_forecast(capsys, tmp_path):
    true = mf.VectorAutoregression.from_parameters([[[0.6, 0.3], [0.0, 0.5]]], variables=["x", "y"])
    series = true.simulate(300, rng=0)
    path, model = tmp_path / "series.csv", tmp_path / "var.mfz"
    pairs = zip(series["x"].tolist(), series["y"].tolist(), strict=True)
    path.write_text("\n".join(["x,y", *(f"{a!r},{b!r}" for a, b in pairs)]))
    body = json.loads(run(capsys, "gaussian", "forecast", path, "-n", 3, "--order", 1, "--json", "--model", model))
    expected = mf.VectorAutoregression(1).fit(series).forecast(3)
    assert [r["mean"] for r in body["forecast"]] == pytest.approx(expected.mean.ravel().tolist())
    assert body["order"] == 1 and body["stable"] and mf.load(model).order == 1
    assert main(["gaussian", "forecast", str(path), "-n", "2"]) == 0
    captured = capsys.readouterr()
    assert captured.out.startswith("step,series,mean,lower,upper\n1,x,") and "y -> x" in captured.err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["fit", "{data}"], "'kind' must hold numbers only|column 'kind'"),
        (["fit", "{data}", "--edge", "a"], "two names separated by a comma, got 'a'"),
        (["fit", "{data}", "--edge", "a,q"], "the data has no column 'q'"),
        (["fit", "{data}", "--edge", "a,b", "--arc", "a,b"], "not both"),
        (["fit", "{data}", "--ignore", "q"], "has no column 'q' to ignore"),
        (["learn", "{data}", "-m", "pc"], "--method of gaussian learn is one of .*graphical_lasso.*, got 'pc'"),
        (["learn", "{data}", "-m", "mgm", "--selection", "aic"], "must be 'ebic', 'cv' or None"),
        (["query", "{asia}"], "holds a BayesianNetwork, which has no real-valued variables"),
        (["query", "nowhere.mfz"], "there is no file nowhere.mfz"),
        (["query", "{model}", "-e", "a"], "evidence is NAME=VALUE, got 'a'"),
        (["query", "{model}", "-e", "a=x"], "the evidence of 'a' must be a number, got 'x'"),
        (["query", "{model}", "-e", "z=1"], "no variable 'z'"),
        (["query", "{model}", "--level", "2"], "between 0 and 1"),
        (["forecast", "{data}", "--order", "many"], "--order is a number"),
        (["forecast", "{data}"], "'kind' must hold numbers only"),
    ],
)
def test_mistakes_are_answered_in_a_sentence(capsys, data, tmp_path, words, message):
    import re

    mf.save(mf.datasets.asia(), tmp_path / "asia.mfz")
    mf.save(mf.GaussianField(np.eye(2), None, ["a", "b"]), tmp_path / "model.mfz")
    places = {"data": data, "asia": tmp_path / "asia.mfz", "model": tmp_path / "model.mfz"}
    told = run(capsys, "gaussian", *(w.format(**places) for w in words), status=2)
    assert told.startswith("error: ") and re.search(message, told), told


def test_help(capsys):
    for name in ("fit", "learn", "query", "sample", "forecast"):
        assert "--json" in run(capsys, "gaussian", name, "--help")
