"""`markovfield align`: train, predict, eval."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import markovfield as mf
from markovfield.cli.app import run


def call(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = run(["align", *words])
    said = capsys.readouterr()
    return code, said.out, said.err


@pytest.fixture
def texts(tmp_path: Path) -> tuple[str, str, str]:
    rng = np.random.default_rng(0)
    words = rng.integers(0, 15, (40, 4)).tolist()
    paths = [tmp_path / name for name in ("x.e", "x.f", "x.wa")]
    paths[0].write_text("".join(" ".join(f"e{k}" for k in row) + "\n" for row in words))
    paths[1].write_text("".join(" ".join(f"f{k}" for k in row[::-1]) + "\n" for row in words))
    mf.io.write_links(paths[2], [[(i, 3 - i) for i in range(4)] for _ in words], format="wa")
    return str(paths[0]), str(paths[1]), str(paths[2])


@pytest.mark.parametrize(
    "words", [["-m", "ibm1"], ["-m", "ibm2", "--one-way"], ["--symmetrisation", "union"], ["-m", "crf"]]
)
def test_train_predict_and_eval(texts: Any, words: list[str], tmp_path: Path, capsys: Any) -> None:
    source, target, links = texts
    model, out = str(tmp_path / "m.mf"), str(tmp_path / "out.txt")
    more = ["--links", links, "--corpus", source, target] if "crf" in words else ["--iterations", "8"]
    code, said, err = call(capsys, "train", source, target, "-o", model, *words, *more)
    assert code == 0, err
    assert "wrote" in said
    code, said, _ = call(capsys, "eval", model, source, target, links, "--json")
    assert code == 0
    found = json.loads(said)
    assert found["n_pairs"] == 40 and found["n_sure"] == 160 and found["error_rate"] < 0.2
    code, said, _ = call(capsys, "eval", model, source, target, links, "--threshold", "0.4")
    assert code == 0 and said.startswith("AER ")
    for format in ("pharaoh", "wa"):
        code, said, _ = call(capsys, "predict", model, source, target, "-o", out, "--format", format)
        assert code == 0 and "in 40 sentence pairs" in said
        pairs = mf.io.read_sentence_pairs(source, target)
        expected = [frozenset(own) for own in mf.load(model).predict(pairs)]
        assert [own.sure for own in mf.io.read_links(out, n_pairs=40)] == expected


def test_text_as_it_was_written(tmp_path: Path, capsys: Any) -> None:
    (tmp_path / "a").write_text("The dog, Mr. Roy.\n")
    (tmp_path / "b").write_text("L'été, M. Roy.\n", encoding="utf-8")
    files = [str(tmp_path / "a"), str(tmp_path / "b")]
    model = str(tmp_path / "m.mf")
    code, said, err = call(
        capsys, "train", *files, "-o", model, "--one-way", "--tokenise", "en,fr", "--normalise", "--json"
    )
    assert code == 0, err
    assert json.loads(said)["fits"][0]["method"] == "em"
    assert mf.load(model).table_.target.words == ["le", "ete", ",", "m.", "roy", "."]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["-m", "crf"], "a crf learns from --links FILE"),
        (["-m", "hmm", "--links", "LINKS"], "a crf learns from --links FILE"),
        (["-m", "hmm", "--corpus", "SOURCE", "TARGET"], "--corpus is for crf"),
        (["--tokenise", "en"], "--tokenise wants the languages of both sides, such as en,fr, got 'en'"),
        (["--symmetrisation", "both"], "symmetrisation must be one of"),
    ],
)
def test_mistakes_in_training(texts: Any, words: list[str], message: str, tmp_path: Path, capsys: Any) -> None:
    names = dict(zip(("SOURCE", "TARGET", "LINKS"), texts, strict=True))
    given = [names.get(word, word) for word in words]
    code, _, err = call(capsys, "train", *texts[:2], "-o", str(tmp_path / "m.mf"), *given)
    assert code == 2 and message in " ".join(err.split())


def test_other_mistakes(texts: Any, tmp_path: Path, capsys: Any) -> None:
    source, target, _ = texts
    model = tmp_path / "net.mfz"
    mf.save(mf.datasets.sprinkler(), model)
    code, _, err = call(capsys, "predict", str(model), source, target, "-o", str(tmp_path / "x"))
    assert code == 2 and "holds a BayesianNetwork, not a model of `markovfield align train`" in " ".join(err.split())
    short = tmp_path / "short"
    short.write_text("one\n")
    code, _, err = call(capsys, "train", source, str(short), "-o", str(model))
    assert code == 2 and "the file ends after 1 sentences" in " ".join(err.split())
    call(capsys, "train", source, target, "-o", str(model), "-m", "ibm1")
    (tmp_path / "far.wa").write_text("1 9 1 S\n")
    code, _, err = call(capsys, "eval", str(model), source, target, str(tmp_path / "far.wa"))
    assert code == 2 and "pair 0 has 4 source and 4 target words, and a link (8, 0)" in " ".join(err.split())
