"""The commands query, learn and draw, run as a user runs them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import markovfield as mf
from markovfield.cli import main
from tests.data import data_path


@pytest.fixture
def network(tmp_path: Path) -> Path:
    net = mf.BayesianNetwork({"rain": ["no", "yes"], "wet": ["no", "yes"], "slip": ["no", "yes"]})
    net.add_cpt("rain", [], [0.8, 0.2])
    net.add_cpt("wet", ["rain"], [[0.9, 0.1], [0.2, 0.8]])
    net.add_cpt("slip", ["wet"], [[0.99, 0.01], [0.7, 0.3]])
    path = tmp_path / "rain.bif"
    mf.io.write_bif(net, path)
    return path


def run(capsys: pytest.CaptureFixture[str], *words: object, status: int = 0) -> str:
    assert main([str(w) for w in words]) == status
    captured = capsys.readouterr()
    return captured.out if status == 0 else captured.err


class TestQuery:
    def test_a_posterior_for_people(self, network: Path, capsys: pytest.CaptureFixture[str]):
        text = run(capsys, "query", network, "--target", "rain", "--evidence", "wet=yes")
        assert "Posterior of rain" in text and "0.666667" in text and "exact" in text

    def test_a_posterior_for_machines(self, network: Path, capsys: pytest.CaptureFixture[str]):
        text = run(capsys, "query", network, "-t", "rain,slip", "-e", "wet=yes", "--json")
        body = json.loads(text)
        assert body["variables"] == ["rain", "slip"]
        both = {(row["rain"], row["slip"]): row["probability"] for row in body["probabilities"]}
        assert both["yes", "yes"] == pytest.approx(2 / 3 * 0.3)

    def test_conditions_interventions_and_what_to_look_at_next(self, network: Path, capsys: pytest.CaptureFixture[str]):
        body = json.loads(run(capsys, "query", network, "-t", "rain", "-g", "wet", "--json"))
        assert len(body["probabilities"]) == 4 and body["given"] == ["wet"]
        body = json.loads(run(capsys, "query", network, "-t", "rain", "--do", "wet=yes", "--json"))
        assert body["probabilities"][1]["probability"] == pytest.approx(0.2)
        text = run(capsys, "query", network, "-t", "rain", "--informative")
        assert "mutual information" in text and text.index("wet ") < text.index("slip ")

    def test_alarm_as_the_manual_has_it(self, capsys: pytest.CaptureFixture[str]):
        body = json.loads(
            run(capsys, "query", data_path("bif", "alarm.bif.gz"), "--target", "HR", "--evidence", "CVP=LOW", "--json")
        )
        net = mf.io.read_bif(data_path("bif", "alarm.bif.gz"))
        expected = mf.marginals(net, {"CVP": "LOW"})["HR"]
        np.testing.assert_allclose([row["probability"] for row in body["probabilities"]], expected, atol=1e-9)

    @pytest.mark.parametrize(
        ("words", "message"),
        [
            (("--target", "rian"), "did you mean 'rain'"),
            (("--target", "rain", "-e", "wet=maybe"), "no state 'maybe'"),
            (("--target", "rain", "-e", "wet"), "NAME=STATE"),
            (("--target", "rain", "-e", "wet=yes,slip=no"), "one variable at a time"),
            (("--target", "rain,wet", "--informative"), "one target"),
            ((), "target"),
        ],
    )
    def test_mistakes(self, network: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], message: str):
        text = run(capsys, "query", network, *words, status=2)
        assert message in " ".join(text.split()) and text.count("\n") == 1


class TestLearn:
    def test_a_network_from_a_table(self, network: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
        table, made = tmp_path / "data.csv", tmp_path / "learnt.bif"
        run(capsys, "sample", network, "-n", 4000, "--seed", 1, "-o", table)
        text = run(capsys, "learn", table, "--structure", "hillclimb", "--out", made)
        assert "Bayesian network: 3 variables, 2 arcs" in text and "log-likelihood" in text and "wrote" in text
        learnt = mf.io.read_bif(made)
        assert mf.probability(learnt, {"rain": "yes"}, {"wet": "yes"}) == pytest.approx(2 / 3, abs=0.05)

    @pytest.mark.parametrize("structure", ["chow_liu", "pc", "none"])
    @pytest.mark.parametrize("ending", [".bif", ".xmlbif", ".net", ".mfz", ".bif.gz"])
    def test_other_structures_and_formats(
        self, network: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], structure: str, ending: str
    ):
        table, made = tmp_path / "data.csv", tmp_path / f"learnt{ending}"
        run(capsys, "sample", network, "-n", 2000, "--seed", 2, "-o", table)
        body = json.loads(run(capsys, "learn", table, "--structure", structure, "-o", made, "--json"))
        assert len(body["arcs"]) == (0 if structure == "none" else 2)
        assert body["n_rows"] == 2000 and body["method"] == "maximum_likelihood"
        text = run(capsys, "query", made, "-t", "rain")
        assert "Posterior of rain" in text

    def test_undirected_structures_are_no_networks(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
        table = tmp_path / "data.csv"
        table.write_text("rain,wet\nyes,yes\nno,no\nno,yes\n")
        text = run(capsys, "learn", table, "--structure", "nodewise", status=2)
        assert "nodewise finds edges, not the arcs of a Bayesian network: hill_climbing, chow_liu, pc" in text

    def test_tables_alone_with_missing_values_and_weights(
        self, network: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ):
        table = tmp_path / "data.csv"
        table.write_text("rain,wet,n\nyes,?,10\nyes,yes,5\nno,no,30\n?,yes,5\n")
        body = json.loads(run(capsys, "learn", table, "--network", network, "--weights", "n", "--json", "--seed", 0))
        assert body["method"] == "expectation_maximization" and body["converged"] and body["n_rows"] == 4
        assert body["missing"] == {"rain": 1, "wet": 1, "slip": 4}

    def test_what_is_missing_is_said(self, network: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
        table = tmp_path / "data.csv"
        table.write_text("rain,wet\nyes,?\nyes,yes\n")
        assert main(["learn", str(table), "--network", str(network), "--seed", "0"]) == 0
        said = capsys.readouterr()
        assert "warning: no row of the data has a value for 'slip'" in said.err and "networks.py" not in said.err
        assert "'wet' has 1 missing values and nowhere the state 'no'" in said.err
        assert "3 values missing" in " ".join(said.out.split())

    def test_a_state_is_not_missing_because_of_its_name(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
        table, model = tmp_path / "data.csv", tmp_path / "net.bif"
        table.write_text("harm,x\nNone,1\nMild,2\nNA,1\n")
        body = json.loads(run(capsys, "learn", table, "--structure", "none", "--json", "-o", model))
        assert body["method"] == "expectation_maximization" and mf.io.read_bif(model).states("harm") == ("Mild", "None")
        run(capsys, "learn", table, "--structure", "none", "--missing", "", "-o", model)
        assert mf.io.read_bif(model).states("harm") == ("Mild", "NA", "None")
        body = json.loads(run(capsys, "learn", table, "--network", model, "--json"))
        assert body["method"] == "maximum_likelihood"

    def test_mistakes(self, tmp_path: Path, network: Path, capsys: pytest.CaptureFixture[str]):
        table = tmp_path / "data.csv"
        table.write_text("rain,wet\nyes,yes\nno,no\n")
        text = run(capsys, "learn", table, "--network", network, "--structure", "pc", status=2)
        assert "brings its own arcs" in text
        assert "no column 'x'" in run(capsys, "learn", table, "--ignore", "x", status=2)
        assert "choose from" in run(capsys, "learn", table, "--structure", "magic", status=2)
        assert "names that end in .bif" in run(capsys, "learn", table, "-o", tmp_path / "x.txt", status=2)
        assert "no file" in run(capsys, "learn", tmp_path / "none.csv", status=2)
        table.write_text("rain,wet\nperhaps,yes\n")
        text = run(capsys, "learn", table, "--network", network, status=2)
        assert "'perhaps'" in text and "'rain'" in text


class TestDraw:
    @pytest.mark.parametrize("kind", ["auto", "directed", "factor", "primal", "junction_tree", "posteriors"])
    @pytest.mark.parametrize("ending", [".svg", ".png"])
    def test_a_picture(self, network: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str, ending: str):
        pytest.importorskip("matplotlib")
        picture = tmp_path / f"picture{ending}"
        run(capsys, "draw", network, "-o", picture, "--kind", kind, "-e", "wet=yes")
        start = picture.read_bytes()[:200]
        assert start.startswith(b"\x89PNG") if ending == ".png" else b"<?xml" in start

    def test_mistakes(self, network: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
        assert "ends in .png" in run(capsys, "draw", network, "-o", tmp_path / "x.txt", status=2)
        assert "--kind is one of" in run(capsys, "draw", network, "-o", tmp_path / "x.svg", "--kind", "nice", status=2)
        assert "cannot write" in run(capsys, "draw", network, "-o", tmp_path / "no" / "x.svg", status=2)


def test_the_module_ends_with_the_commands_status(tmp_path: Path):
    words = [sys.executable, "-m", "markovfield", "query", str(tmp_path / "none.bif"), "--target", "x"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 2 and "there is no file" in done.stderr
