"""markovfield logic: infer, learn, ground, and what is said when something is wrong."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from markovfield.cli import main
from markovfield.progress import ProgressLine

PROGRAM = "p = {Anna, Bob}\nFriends(p, p)\nSmokes(p)\n1.5 Smokes(x)\n1.1 Friends(x, y) => (Smokes(x) <=> Smokes(y))\n"


@pytest.fixture
def files(tmp_path, monkeypatch):
    (tmp_path / "smokers.mln").write_text(PROGRAM)
    (tmp_path / "facts.db").write_text("Friends(Anna, Bob)\nSmokes(Anna)\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_infer(files, capsys):
    assert main(["logic", "infer", "smokers.mln", "-e", "facts.db", "-q", "Smokes", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["guarantee"] == "exact"
    assert found["marginals"]["Smokes(Bob)"]["True"] == pytest.approx(0.9309, abs=1e-4)
    assert main(["logic", "infer", "smokers.mln", "-e", "facts.db", "-q", "Smokes"]) == 0
    assert "Smokes(Bob)" in capsys.readouterr().out
    assert main(["logic", "infer", "smokers.mln", "-e", "facts.db", "-q", "Smokes", "--map", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["assignment"] == {"Smokes(Bob)": True}


def test_only_what_was_asked_for_is_shown(files, capsys):
    (files / "ill.mln").write_text(PROGRAM + "Ill(p)\n1 Smokes(x) => Ill(x)\n")
    assert main(["logic", "infer", "ill.mln", "-e", "facts.db", "-q", "Ill(Bob)", "--closed", "Friends"]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in shown if "(" in line and line.split()[1:2] and "0." in line.split()[1]] == [
        "Ill(Bob)"
    ]


def test_likeliest_worlds_by_cutting_planes(files, capsys):
    asked = ["logic", "infer", "smokers.mln", "-e", "facts.db", "-q", "Smokes", "--map", "--method", "cutting_planes"]
    assert main([*asked, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["assignment"] == {"Smokes(Bob)": True} and found["optimal"] and found["n_ground_formulas"] <= 2
    assert main(asked) == 0
    assert "ground formulas were needed" in capsys.readouterr().out


def test_ground_and_learn(files, capsys):
    assert main(["logic", "ground", "smokers.mln", "-e", "facts.db", "-q", "Smokes", "-o", "m.uai"]) == 0
    assert "1 ground atoms" in capsys.readouterr().out and (files / "m.uai").exists()
    asked = ["-q", "Smokes", "-m", "pseudo_likelihood", "--l2", "1", "-o", "out.mln"]
    assert main(["logic", "learn", "smokers.mln", "facts.db", *asked]) == 0
    capsys.readouterr()
    assert main(["logic", "infer", "out.mln", "-e", "facts.db", "-q", "Smokes", "--json"]) == 0


def test_weights_for_constants_are_learned_and_written(files, capsys):
    (files / "words.mln").write_text("Has(p, word)\nTopic(p)\nHas(x, +w) => Topic(x)\n")
    (files / "seen.db").write_text("Has(A, Ball) Topic(A) Has(B, Vote) Has(C, Ball) Topic(C) Has(D, Vote)\n")
    asked = ["-q", "Topic", "--closed", "Has", "-m", "pl", "--l2", "0.1", "-o", "out.mln"]
    assert main(["logic", "learn", "words.mln", "seen.db", *asked]) == 0
    shown = capsys.readouterr().out
    assert "Has(x, Ball) => Topic(x)" in shown and "Has(x, Vote) => Topic(x)" in shown
    (files / "new.db").write_text("Has(N, Ball) Has(M, Vote)\n")
    assert main(["logic", "infer", "out.mln", "-e", "new.db", "-q", "Topic", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["marginals"]
    assert found["Topic(N)"]["True"] > 0.7 and found["Topic(M)"]["True"] < 0.6


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the system does not say how much memory is used")
def test_memory_is_shown(files, capsys):
    asked = ["smokers.mln", "-e", "facts.db", "-q", "Smokes"]
    for words in (["infer", *asked], ["infer", *asked, "--map", "-m", "cpi"], ["ground", *asked]):
        assert main(["logic", *words]) == 0
        assert re.search(r"peak memory \d+\.\d [MG]B", capsys.readouterr().out)
    line = ProgressLine("grounding smokers.mln", memory=True)
    assert re.search(r"grounding smokers.mln: \d+\.\d [MG]B", line.message())


def test_clauses_are_learned(files, capsys):
    (files / "only.mln").write_text("Friends(p, p)\nSmokes(p)\nIll(p)\n")
    people = [f"Smokes(A{i})" + (f" Ill(A{i})" if i % 7 else "") for i in range(30)]
    (files / "seen.db").write_text(
        " ".join(people) + " !Smokes(B1) " + " ".join(f"!Ill(C{i})" for i in range(30)) + "\n"
    )
    asked = ["-q", "Ill", "--structure", "--max-length", "2", "--penalty", "3", "--l2", "0.5", "-o", "out.mln"]
    assert main(["logic", "learn", "only.mln", "seen.db", *asked]) == 0
    shown = capsys.readouterr().out
    assert "Smokes(x) => Ill(x)" in shown or "Ill(x) => Smokes(x)" in shown
    assert "clauses were tried" in shown
    assert main(["logic", "learn", "only.mln", "seen.db", *asked, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["method"] == "clause_search" and found["steps"][0]["kind"] == "add"
    assert main(["logic", "infer", "out.mln", "-e", "seen.db", "-q", "Ill", "--json"]) == 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["infer", "no.mln"], "there is no file no.mln"),
        (["infer", "smokers.mln", "-e", "no.db"], "there is no file no.db"),
        (["infer", "smokers.mln", "-q", "Smoke"], "names no predicate of the program: Friends, Smokes"),
        (["infer", "smokers.mln", "--method", "nope"], "nope"),
        (["infer", "smokers.mln", "--method", "cpi"], "cpi finds the likeliest world: give --map"),
        (["learn", "smokers.mln", "facts.db", "-o", "x.mln", "--l2", "1"], "--l2 is a setting of a method"),
        (["learn", "smokers.mln", "facts.db", "-o", "x.mln", "--max-length", "2"], "--max-length is of new clauses"),
        (["learn", "smokers.mln", "facts.db", "-o", "x.mln", "--structure", "--hidden", "Smokes"], "--hidden is for"),
        (["learn", "smokers.mln", "facts.db", "-o", "x.mln", "--structure", "--closed", "Smokes"], "--closed is for"),
        (
            ["learn", "smokers.mln", "facts.db", "-o", "x.mln", "--structure", "-m", "pc"],
            "has the method clause_search",
        ),
    ],
)
def test_mistakes_get_a_sentence(files, capsys, words, message):
    assert main(["logic", *words]) != 0
    assert message in capsys.readouterr().err
