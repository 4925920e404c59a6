"""The command fit, run as a user runs it."""

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
def ring(tmp_path: Path) -> tuple[Path, Path]:
    """A ring of six two-state variables without numbers, and 300 rows for it."""
    net = mf.MarkovNetwork.from_edges(dict.fromkeys(range(6), 2), [(i, (i + 1) % 6) for i in range(6)])
    model, data = tmp_path / "model.uai", tmp_path / "data.csv"
    mf.io.write_network(net, model)
    rows = np.array(mf.sample(mf.Ising(6, 0.5, periodic=True), 300, rng=0).states)
    data.write_text("\n".join([",".join(map(str, range(6))), *(",".join(map(str, row)) for row in rows.tolist())]))
    return model, data


def test_a_fitted_model_is_written(capsys, ring, tmp_path):
    model, data = ring
    made = tmp_path / "fitted.uai"
    text = run(capsys, "fit", model, "--data", data, "--method", "pl", "--l2", 1, "--out", made)
    assert "pseudo_likelihood (approximate)" in text and "wrote" in text
    fitted = mf.io.read_network(made)
    rows = np.loadtxt(data, int, delimiter=",", skiprows=1)
    direct = mf.fit(mf.io.read_network(model), rows, method=mf.methods.PseudoLikelihood(l2=1.0))
    np.testing.assert_allclose(mf.marginals(fitted).joint([0, 1]), mf.marginals(direct).joint([0, 1]), atol=1e-9)


@pytest.mark.parametrize("method", ["auto", "ml", "ipf", "mpf", "em"])
def test_methods_and_json(capsys, ring, method):
    model, data = ring
    body = json.loads(run(capsys, "fit", model, "-d", data, "-m", method, "--json", "--seed", 0))
    assert body["n_rows"] == 300 and body["n_parameters"] == 12
    assert body["log_likelihood"] == pytest.approx(-1007.9, abs=3)
    assert any("auto took" in note for note in body["notes"]) == (method == "auto")


def test_names_states_weights_and_gaps(capsys, tmp_path):
    net = mf.BayesianNetwork({"rain": ["no", "yes"], "wet": ["no", "yes"]})
    net.add_cpt("rain", [], [0.5, 0.5])
    net.add_cpt("wet", ["rain"], [[0.5, 0.5], [0.5, 0.5]])
    model, data = tmp_path / "net.bif", tmp_path / "data.csv"
    mf.io.write_network(net, model)
    data.write_text("rain,wet,n\nno,no,6\nyes,yes,3\nyes,?,1\n")
    body = json.loads(run(capsys, "fit", model, "-d", data, "--weights", "n", "--json", "--seed", 0))
    assert body["method"] == "expectation_maximization" and body["missing"] == {"wet": 1}


def test_what_is_refused(capsys, ring, tmp_path):
    model, data = ring
    assert "takes no --l2" in run(capsys, "fit", model, "-d", data, "-m", "ipf", "--l2", 1, status=2)
    assert "setting of a method" in run(capsys, "fit", model, "-d", data, "--l2", 1, status=2)
    assert "did you mean" in run(capsys, "fit", model, "-d", data, "-m", "pseudo_likelyhood", status=2)
    other = tmp_path / "other.csv"
    other.write_text("a,b\n0,1\n")
    assert "no column of" in run(capsys, "fit", model, "-d", other, status=2)
    other.write_text("0,1,2,3,4,5\n0,1,0,1,0,7\n")
    assert "'7'" in run(capsys, "fit", model, "-d", other, status=2)
    assert "solver must be one of" in run(capsys, "fit", model, "-d", data, "-m", "ml", "--solver", "newton", status=2)
