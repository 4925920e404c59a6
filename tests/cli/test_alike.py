"""What means one thing in every command: evidence, JSON, standard input, costs, the methods that help lists."""

from __future__ import annotations

import gzip
import io
import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import typer

import markovfield as mf
from markovfield.cli import main
from markovfield.cli.app import app
from markovfield.inference.core.registry import ENTRIES
from markovfield.io.networks import cost_sign, ending_of_text

COMMANDS = {f"{c.name}": c for c in typer.main.get_command(app).commands.values()}  # type: ignore[attr-defined]
for group in ("align", "crf", "gaussian", "logic", "parse", "ssvm", "structured"):
    COMMANDS |= {f"{group} {c.name}": c for c in COMMANDS.pop(group).commands.values()}  # type: ignore[attr-defined]
NO_ANSWER = {"demo", "explore", "help"}


def option(command: Any, name: str) -> Any:
    return next((p for p in command.params if name in p.opts), None)


@pytest.mark.parametrize("name", sorted(COMMANDS.keys() - NO_ANSWER))
def test_json_is_one_flag(name: str):
    found = option(COMMANDS[name], "--json")
    assert found.is_flag and found.help == "One JSON object on standard output, for machines."


def test_evidence_is_one_option():
    real = ("gaussian query", "gaussian sample")  # which take numbers
    atoms = ("logic infer", "logic ground")  # which take databases of atoms
    found = {name: option(c, "--evidence") for name, c in COMMANDS.items() if option(c, "--evidence")}
    assert found[real[0]].help == found[real[1]].help and found[atoms[0]].help == found[atoms[1]].help
    found = {name: found[name] for name in found if name not in (*real, *atoms)}
    assert set(found) == {"infer", "explain", "decode", "sample", "query", "draw"}
    assert len({(tuple(p.opts), p.help, p.metavar, p.multiple) for p in found.values()}) == 1


@pytest.mark.parametrize(("name", "verb"), [("decode", "decode"), ("sample", "sample"), ("query", "marginals")])
def test_help_lists_the_methods(name: str, verb: str):
    listed = option(COMMANDS[name], "--method").help.rstrip(".").split(", ")
    assert listed == ["auto", *(e.name for e in ENTRIES if verb in e.verbs and e.form == "FactorGraph")]


@pytest.fixture
def asia(tmp_path: Path) -> str:
    path = tmp_path / "asia.bif"
    mf.write(mf.datasets.asia(), path)
    return str(path)


@pytest.fixture
def costs(tmp_path: Path) -> str:
    net = mf.MarkovNetwork({0: 3, 1: 3, 2: 2})
    net.add_factor([0, 1], log_table=-np.array([[4.0, 5.0, 9.0], [5.0, 7.0, 3.0], [9.0, 6.0, 8.0]]))
    net.add_factor([1, 2], log_table=-np.array([[1.0, 2.0], [4.0, 3.0], [5.0, 9.0]]))
    path = tmp_path / "costs.wcsp"
    mf.write(net, path)
    return str(path)


def asked(capsys: Any, *words: str, status: int = 0) -> Any:
    assert main(list(words)) == status
    out, err = capsys.readouterr()
    return (json.loads(out) if "--json" in words else out) if status == 0 else err


def test_evidence_by_name_and_by_file_everywhere(capsys: Any, asia: str, tmp_path: Path):
    file = tmp_path / "e.evid"
    file.write_text("1 6 1")
    for command in (("infer", asia), ("query", asia, "-t", "lung"), ("explain", asia)):
        by_file = asked(capsys, *command, "--evidence", str(file), "--json")
        for flag in ("-e", "--evidence", "--observe"):
            by_name = asked(capsys, *command, flag, "xray=yes", "--json")
            assert {k: v for k, v in by_name.items() if k != "seconds"} == {
                k: v for k, v in by_file.items() if k != "seconds"
            }
    both = asked(capsys, "decode", asia, "-e", str(file), "-e", "smoke=yes", "--json")["assignment"]
    assert both["xray"] == both["smoke"] == "yes"
    said = asked(capsys, "decode", asia, "-e", str(file), "-e", "xray=no", status=2)
    assert "variable 'xray' is observed in two states, 'yes' and 'no'" in said
    assert "an observation is written NAME=STATE, got 'xray'" in asked(capsys, "decode", asia, "-e", "xray", status=2)
    assert "there is no file nowhere.evid" in asked(capsys, "decode", asia, "-e", "nowhere.evid", status=2)


def test_costs_stand_beside_scores(capsys: Any, costs: str, tmp_path: Path):
    for command in (("decode", costs), ("infer", costs, "--task", "MPE")):
        body = asked(capsys, *command, "--json")
        assert (body["cost"], body["score"], body["cost_bound"]) == (5.0, -5.0, 5.0)
        assert "cost 5, score -5   proven optimal" in asked(capsys, *command)
    listed = asked(capsys, "decode", costs, "-n", "2", "--json")["n_best"]
    assert [s["cost"] for s in listed] == [5.0, 6.0]
    graph = mf.read(costs).compile()
    assert [graph.score([int(x) for x in s["assignment"].values()]) for s in listed] == [-5.0, -6.0]
    upwards = tmp_path / "up.cfn"
    upwards.write_text(
        '{"problem": {"name": "p", "mustbe": ">-9"}, "variables": {"a": 2}, "functions": {"f": {"scope": ["a"], '
        '"costs": [3, 5]}}}'
    )
    assert cost_sign(upwards) == 1 and asked(capsys, "decode", str(upwards), "--json")["cost"] == 5.0
    assert "cost" not in asked(capsys, "infer", costs, "--task", "MAR", "--json")


@pytest.mark.parametrize("ending", [".bif", ".xmlbif", ".net", ".uai", ".wcsp", ".cfn", ".mfz"])
def test_a_model_on_standard_input(capsys: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, ending: str):
    path = tmp_path / f"net{ending}"
    mf.write(mf.datasets.sprinkler(), path, **({"decimals": 3} if ending in (".wcsp", ".cfn") else {}))
    assert ending_of_text(path) == ending
    expected = asked(capsys, "decode", str(path), "--json")
    for data in (path.read_bytes(), gzip.compress(path.read_bytes()))[: 1 if ending == ".mfz" else 2]:
        give(monkeypatch, data)
        found = asked(capsys, "decode", "-", "--json")
        assert found["assignment"] == expected["assignment"] and found["score"] == expected["score"]


@pytest.mark.parametrize(
    ("text", "ending"),
    [
        ("2\n1\n2\n2\n", ".fg"),
        ("// a comment\n\n/* two\nlines */ network x {\n", ".bif"),
        ("% a comment\nclass x\n{\n", ".net"),
        ("\ufeffnet {}", ".net"),
        ("bayes\n1\n", ".uai"),
    ],
)
def test_formats_by_how_they_begin(tmp_path: Path, text: str, ending: str):
    path = tmp_path / "x"
    path.write_text(text, encoding="utf-8")
    assert ending_of_text(path) == ending


def give(monkeypatch: pytest.MonkeyPatch, data: bytes) -> None:
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(data)))


def test_data_on_standard_input(capsys: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    give(monkeypatch, b"a,b\nx,1\nx,1\ny,2\ny,2\n")
    assert asked(capsys, "learn", "-", "--json")["n_rows"] == 4
    words = b"dog N\nruns V\n\ncat N\nruns V\n\n"
    model = str(tmp_path / "m.mf")
    give(monkeypatch, words)
    asked(capsys, "crf", "train", "-", "-m", model)
    give(monkeypatch, words)
    assert asked(capsys, "crf", "tag", "-", "-m", model, "--json")["labels"] == [["N", "V"], ["N", "V"]]
    give(monkeypatch, words)
    body = asked(capsys, "crf", "tag", "-", "-m", model, "--json", "--marginals")
    assert body["marginals"][0][0]["N"] > 0.5
    give(monkeypatch, words)
    best = asked(capsys, "crf", "tag", "-", "-m", model, "--json", "--n-best", "2")["n_best"][0]
    assert best[0]["labels"] == ["N", "V"] and best[0]["probability"] > best[1]["probability"]


def test_mistakes_on_standard_input(capsys: Any, monkeypatch: pytest.MonkeyPatch):
    give(monkeypatch, b"nonsense")
    assert "error: stdin:1:1: this is no model: expected a .bif" in asked(capsys, "infer", "-", status=2)
    give(monkeypatch, b"")
    assert "there is nothing on standard input" in asked(capsys, "infer", "-", status=2)
    give(monkeypatch, b"network broken {")
    assert asked(capsys, "infer", "-", status=2).startswith("error: stdin.bif:1:1: ")


def test_samples_as_json(capsys: Any, asia: str, tmp_path: Path):
    body = asked(capsys, "sample", asia, "-n", "3", "--seed", "1", "--json", "-e", "smoke=yes")
    assert body["samples"]["smoke"] == ["yes"] * 3 and body["size"] == 3 and body["weights"] is None
    target = tmp_path / "x.csv"
    body = asked(capsys, "sample", asia, "-n", "3", "--json", "-o", str(target))
    assert "samples" not in body and body["output"] == str(target) and target.exists()
    chains = asked(capsys, "sample", asia, "-n", "400", "--method", "likelihood_weighting", "--json", "-e", "dysp=yes")
    assert sum(chains["weights"]) == pytest.approx(1.0)


def test_a_picture_as_json(capsys: Any, asia: str, tmp_path: Path):
    target = tmp_path / "x.svg"
    assert asked(capsys, "draw", asia, "-o", str(target), "--json") == {"output": str(target), "kind": "auto"}
