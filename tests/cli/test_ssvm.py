"""`markovfield ssvm`: train, predict, eval."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from markovfield.cli.app import run


def call(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = run(["ssvm", *words])
    said = capsys.readouterr()
    return code, said.out, said.err


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    np.savez(tmp_path / "rows.npz", X=X, y=np.where(X[:, 0] > 0, "right", "left"))
    return tmp_path / "rows.npz"


def test_rows(rows: Path, tmp_path: Path, capsys: Any) -> None:
    model, out = str(tmp_path / "m.mf"), str(tmp_path / "p.npz")
    code, said, err = call(capsys, "train", str(rows), "-m", "multiclass", "-o", model, "-C", "10", "--seed", "0")
    assert code == 0, err
    assert "primal" in said
    assert "C = 10" in said
    code, said, _ = call(capsys, "eval", model, str(rows), "--json")
    assert code == 0
    assert json.loads(said)["accuracy"] > 0.95
    code, _, _ = call(capsys, "predict", model, str(rows), "-o", out)
    assert code == 0
    assert set(np.load(out)["y"]) == {"left", "right"}
    code, said, _ = call(
        capsys,
        "train",
        str(rows),
        "-m",
        "multiclass",
        "-o",
        model,
        "--dev",
        str(rows),
        "--early-stopping",
        "2",
        "--json",
    )
    assert code == 0
    body = json.loads(said)
    assert body["dual"] <= body["primal"]
    assert len(body["development"]) > 0


def test_sequences(tmp_path: Path, capsys: Any) -> None:
    data, model, out = tmp_path / "items.txt", str(tmp_path / "m.mf"), tmp_path / "labels.txt"
    data.write_text("PRP\tw=he\tupper\nVBZ\tw=runs\n\nPRP\tw=she\tupper\nVBD\tw=ran\n\n" * 3)
    code, said, err = call(capsys, "train", str(data), "--model", "chain", "-o", model, "--set", "all_transitions=true")
    assert code == 0, err
    assert "converged" in said
    code, _, _ = call(capsys, "predict", model, str(data), "-o", str(out))
    assert code == 0
    assert out.read_text().split("\n")[:3] == ["PRP", "VBZ", ""]
    code, said, _ = call(capsys, "eval", model, str(data))
    assert code == 0
    assert "1.0000 of 12 labels right" in said


def test_what_is_refused(rows: Path, tmp_path: Path, capsys: Any) -> None:
    model = str(tmp_path / "m.mf")
    bare = tmp_path / "bare.npz"
    np.savez(bare, X=np.zeros((3, 2)))
    words = ("-m", "multiclass", "-o", model)
    for given, message in (
        ((str(rows), *words, "-C", "0"), "C of MulticlassSSVM must be a number greater than 0"),
        ((str(rows), *words, "--loss", "tea"), "loss must be one of"),
        ((str(rows), *words, "--solver", "lbfgs"), "solver of a hinge"),
        ((str(rows), *words, "--early-stopping", "2"), "--early-stopping needs a development set"),
        ((str(rows), *words, "--set", "tea=1"), "--set knows"),
        ((str(bare), *words), "no array y to learn from"),
    ):
        code, _, err = call(capsys, "train", *given)
        assert code != 0
        assert message in " ".join(err.split())
