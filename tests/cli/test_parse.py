"""`markovfield parse`: train, predict, eval."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import markovfield as mf
from markovfield.cli.app import run
from tests.grammar.test_pcfg import TEXT, TREES


def call(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = run(["parse", *words])
    said = capsys.readouterr()
    return code, said.out, said.err


@pytest.fixture
def trees(tmp_path: Path) -> Path:
    mf.io.write_trees(tmp_path / "trees.mrg", TREES)
    return tmp_path / "trees.mrg"


@pytest.fixture
def model(tmp_path: Path) -> Path:
    mf.PCFG.from_trees(TREES, vertical=1).save(tmp_path / "grammar.mf")
    return tmp_path / "grammar.mf"


@pytest.fixture
def sentences(tmp_path: Path) -> Path:
    path = tmp_path / "sentences.txt"
    path.write_text("the dog ran .\n\n. . .\nKim saw the cat with the dog .\n", encoding="utf-8")
    return path


def test_train_and_parse(trees: Path, sentences: Path, tmp_path: Path, capsys: Any):
    model = tmp_path / "m.mf"
    code, said, _ = call(capsys, "train", str(trees), "--out", str(model), "--vertical", "1", "--horizontal", "all")
    assert code == 0 and "6 trees" in said and f"wrote {model}" in said
    assert mf.load(model).get_params()["horizontal"] is None
    code, said, err = call(capsys, str(sentences), "--model", str(model))
    lines = said.split("\n")
    # Lines keep their place, whether they are empty or have no parse.
    assert code == 0 and len(lines) == 5
    assert lines[0] == "(S (NP (DT the) (NN dog)) (VP (VBD ran)) (. .))"
    assert lines[1] == lines[2] == lines[4] == "" and lines[3].startswith("(S (NP (NNP Kim))")
    assert "1 of 3 sentences have no parse: line 3" in err
    longer = call(capsys, "predict", str(sentences), "--model", str(model))
    assert longer == (code, said, err)
    assert call(capsys, "--model", str(model), str(sentences)) == longer
    file = tmp_path / "out.txt"
    assert call(capsys, str(sentences), "-m", str(model), "-o", str(file))[0] == 0
    assert file.read_text(encoding="utf-8") == said


def test_flat_trees_and_mbr(sentences: Path, model: Path, capsys: Any):
    code, said, err = call(capsys, str(sentences), "-m", str(model), "--flat")
    assert code == 0 and said.split("\n")[2] == "(S (. .) (. .) (. .))" and err == ""
    code, said, _ = call(capsys, str(sentences), "-m", str(model), "--mbr", "--json")
    body = json.loads(said)
    assert body["n_unparsed"] == 1 and body["trees"][1] is None and 0.5 < body["expected_f1"][0] <= 1.0


def test_long_lines(sentences: Path, model: Path, capsys: Any):
    for more in ([], ["--n-best", "2"]):
        _, said, err = call(capsys, str(sentences), "-m", str(model), "--max-words", "4", *more)
        assert "the" in said and "Kim" not in said
        assert "2 of 3 sentences have no parse: lines 3, 4" in err
    said = call(capsys, str(sentences), "-m", str(model), "--max-words", "4", "--flat")[1]
    assert said.split("\n")[3].startswith("(S (NNP Kim) (VBD saw) (DT the) (NN cat) (IN with)")


def test_json_and_the_n_best(sentences: Path, model: Path, capsys: Any):
    grammar = mf.load(model)
    body = json.loads(call(capsys, str(sentences), "-m", str(model), "--json")[1])
    assert [tree is None for tree in body["trees"]] == [False, True, True, False]
    assert body["log_probability"][0] == pytest.approx(grammar.decode([["the", "dog", "ran", "."]]).scores[0])
    body = json.loads(call(capsys, str(sentences), "-m", str(model), "--n-best", "3", "--json")[1])
    wanted = grammar.n_best(["Kim", "saw", "the", "cat", "with", "the", "dog", "."], 3)
    assert [one["tree"] for one in body["n_best"][3]] == [str(tree) for tree, _ in wanted]
    assert body["n_best"][1] == body["n_best"][2] == []
    said = call(capsys, str(sentences), "-m", str(model), "--n-best", "2")[1]
    first, *rest = said.split("\n\n")
    last = "".join(rest).strip().split("\n")
    assert first.startswith("# 1 -") and [line[:5] for line in last[::2]] == ["# 1 -", "# 2 -"]
    assert [mf.grammar.Tree.parse(line) for line in last[1::2]] == [tree for tree, _ in wanted[:2]]


def test_given_tags(tmp_path: Path, model: Path, capsys: Any):
    path = tmp_path / "tagged.txt"
    path.write_text("Xyz/NNP and/or/VBD ./.\n", encoding="utf-8")
    code, said, _ = call(capsys, str(path), "-m", str(model), "--tagged")
    assert code == 0 and said == "(S (NP (NNP Xyz)) (VP (VBD and/or)) (. .))\n"
    path.write_text("Xyz NNP\n", encoding="utf-8")
    code, _, err = call(capsys, str(path), "-m", str(model), "--tagged")
    assert code == 2 and "--tagged wants words with tags, as dog/NN, got 'Xyz'" in err


def test_eval(trees: Path, model: Path, capsys: Any):
    grammar = mf.load(model)
    code, said, _ = call(capsys, "eval", str(trees), "-m", str(model))
    assert code == 0 and said.strip() == str(grammar.report(TREES))
    body = json.loads(call(capsys, "eval", str(trees), "-m", str(model), "--json", "--mbr", "--max-words", "6")[1])
    few = [tree for tree in TREES if len(tree.leaves) <= 6]
    assert body["n_sentences"] == len(few) < len(TREES)
    assert body["f1"] == grammar.report(few, decision="mbr").f1
    words = json.loads(call(capsys, "eval", str(trees), "-m", str(model), "--json", "--words")[1])
    assert words["tagging_accuracy"] == grammar.report([t.leaves for t in TREES], TREES).tagging_accuracy


def test_grammars_as_text(trees: Path, tmp_path: Path, capsys: Any):
    path, text = tmp_path / "s.txt", tmp_path / "g.txt"
    path.write_text("he saw the dog\n", encoding="utf-8")
    text.write_text(TEXT, encoding="utf-8")
    code, said, _ = call(capsys, str(path), "-m", str(text))
    assert code == 0 and said.startswith("(S (NP he)")
    written = tmp_path / "g.pcfg"
    assert call(capsys, "train", str(trees), "-o", str(written))[0] == 0
    assert mf.PCFG.from_text(written).to_text() == mf.PCFG.from_trees(TREES).to_text()
    text.write_text("S -> 'a\n", encoding="utf-8")
    code, _, err = call(capsys, str(path), "-m", str(text))
    assert code == 2 and "g.txt:1:6: the word 'a does not end with the quote" in err


def test_other_parsers(trees: Path, tmp_path: Path, capsys: Any):
    spans = mf.grammar.SpanParser(min_count=1, min_word_count=1, l2=0.1, rng=0).fit(TREES)
    model, path = tmp_path / "spans.mf", tmp_path / "tagged.txt"
    spans.save(model)
    path.write_text(" ".join(f"{w}/{t}" for w, t in TREES[0].pos) + "\n", encoding="utf-8")
    code, said, _ = call(capsys, str(path), "-m", str(model), "--tagged")
    assert code == 0 and said == f"{TREES[0]}\n"
    assert call(capsys, str(path), "-m", str(model), "--tagged", "--n-best", "2")[1].startswith("# 1 ")
    assert json.loads(call(capsys, "eval", str(trees), "-m", str(model), "--json")[1])["f1"] == 1.0


def test_mistakes(trees: Path, sentences: Path, model: Path, tmp_path: Path, capsys: Any):
    broken = tmp_path / "broken.mrg"
    broken.write_text("(S (NP (NN rain)) (VP (VBD fell)))\n(S (NP\n(S (VP (VB Go)))\n", encoding="utf-8")
    out = str(tmp_path / "x.mf")
    code, _, err = call(capsys, "train", str(broken), "-o", out)
    assert code == 2 and "broken.mrg:2:4" in err
    code, said, err = call(capsys, "train", str(broken), "-o", out, "--skip-errors")
    assert code == 0 and "2 trees" in said and "left out 1 trees, the first: " in err
    empty = tmp_path / "empty.txt"
    empty.write_text("\n\n", encoding="utf-8")
    assert "has no sentence" in call(capsys, str(empty), "-m", str(model))[2]
    assert "has no trees" in call(capsys, "train", str(empty), "-o", out)[2]
    assert (
        "--horizontal must be a number from 0 on"
        in call(capsys, "train", str(trees), "-o", out, "--horizontal", "x")[2]
    )
    for words in (["--n-best", "2", "--mbr"], ["--n-best", "2", "--flat"]):
        assert "--n-best goes neither" in call(capsys, str(sentences), "-m", str(model), *words)[2]
    assert "leave --out out" in call(capsys, str(sentences), "-m", str(model), "--json", "-o", out)[2]
    hmm = mf.HMM(2, rng=0).fit(["abab"])
    hmm.save(out)
    assert "holds a HMM, which is no parser" in call(capsys, str(sentences), "-m", out)[2]
    broken.write_text("(S (NP (NN rain)) (VP (VBD fell)))", encoding="utf-8")
    said = call(capsys, "eval", str(broken), "-m", str(model), "--max-words", "1")[2]
    assert "has no tree of at most 1 words" in said
    assert call(capsys, str(sentences), "-m", "nowhere.mf")[0] == 2
