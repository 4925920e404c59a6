"""`markovfield structured`: train, predict, eval."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from markovfield.cli.app import run
from markovfield.exceptions import FormatError, ModelError
from markovfield.structured.examples import read_examples


def call(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = run(["structured", *words])
    said = capsys.readouterr()
    return code, said.out, said.err


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    np.savez(tmp_path / "rows.npz", X=X, y=np.where(X[:, 0] > 0, "right", "left"))
    return tmp_path / "rows.npz"


def test_train_predict_and_eval(rows: Path, tmp_path: Path, capsys: Any) -> None:
    model, out = str(tmp_path / "m.mf"), str(tmp_path / "p.npz")
    code, said, _ = call(capsys, "train", str(rows), "--model", "multiclass", "-o", model, "--l2", "0.1")
    assert code == 0
    assert "wrote" in said
    code, said, _ = call(capsys, "eval", model, str(rows), "--json")
    assert code == 0
    assert json.loads(said)["accuracy"] > 0.95
    code, said, _ = call(capsys, "predict", model, str(rows), "-o", out, "--marginals")
    assert code == 0
    found = np.load(out)
    assert set(found["y"]) == {"left", "right"}
    assert np.allclose(found["marginals"].sum(axis=1), 1.0)


def test_eval_counts_known_labels_of_as_many_examples(tmp_path: Path, capsys: Any) -> None:
    rng = np.random.default_rng(3)
    y = rng.integers(0, 2, (4, 3, 3))
    X = y + 0.1 * rng.normal(size=y.shape)
    model, data = str(tmp_path / "g.mf"), tmp_path / "images.npz"
    np.savez(data, X=X, y=y)
    assert (
        call(capsys, "train", str(data), "--model", "grid", "-o", model, "--set", "unknown=-1", "--l2", "0.1")[0] == 0
    )
    np.savez(data, X=X, y=np.where(np.arange(3) < 2, y, -1))
    code, said, _ = call(capsys, "eval", model, str(data), "--json")
    scores = json.loads(said)
    assert (code, scores["n_labels"], scores["accuracy"], scores["whole_outputs_right"]) == (0, 24, 1.0, 1.0)
    for labels, message in ((y[:3], "X has 4 examples and y has 3"), (np.full_like(y, -1), "no label that is known")):
        np.savez(data, X=X, y=labels)
        code, _, err = call(capsys, "eval", model, str(data))
        assert code == 2
        assert message in err


def test_images_of_many_sizes_and_graphs(tmp_path: Path, capsys: Any) -> None:
    rng = np.random.default_rng(1)
    shapes = np.array([[3, 4], [2, 5]])
    y = rng.integers(0, 2, 22)
    np.savez(tmp_path / "images.npz", X=y[:, None] + 0.1 * rng.normal(size=(22, 1)), shapes=shapes, y=y)
    model = str(tmp_path / "g.mf")
    code, _, err = call(
        capsys, "train", str(tmp_path / "images.npz"), "--model", "grid", "-o", model, "--set", "connectivity=8"
    )
    assert code == 0, err
    code, _, _ = call(capsys, "predict", model, str(tmp_path / "images.npz"), "-o", str(tmp_path / "p.npz"))
    assert code == 0
    assert np.load(tmp_path / "p.npz")["shapes"].tolist() == shapes.tolist()
    graphs = {"X": rng.normal(size=(5, 2)), "node_offsets": [0, 2, 5], "edges": [[0, 1], [0, 1], [1, 2]]}
    np.savez(tmp_path / "graphs.npz", **graphs, edge_offsets=[0, 1, 3], y=[0, 1, 1, 0, 1])
    code, _, err = call(capsys, "train", str(tmp_path / "graphs.npz"), "--model", "graph", "-o", model)
    assert code == 0, err
    code, said, _ = call(capsys, "eval", model, str(tmp_path / "graphs.npz"))
    assert code == 0
    assert "of 5 labels right" in said


def test_a_taxonomy_comes_from_a_file(tmp_path: Path, capsys: Any) -> None:
    X = np.eye(4)
    np.savez(tmp_path / "d.npz", X=X, y=[0, 1, 2, 3])
    (tmp_path / "t.json").write_text(json.dumps({"0": "low", "1": "low", "2": "high", "3": "high"}))
    words = ["train", str(tmp_path / "d.npz"), "--model", "hierarchy", "-o", str(tmp_path / "h.mf")]
    assert call(capsys, *words)[0] == 2
    code, _, err = call(capsys, *words, "--taxonomy", str(tmp_path / "t.json"))
    assert code == 0, err


def test_mistakes_are_one_sentence(rows: Path, tmp_path: Path, capsys: Any) -> None:
    model = str(tmp_path / "m.mf")
    for words, message in [
        (["train", str(rows), "--model", "grid", "-o", model], "images are X[n, rows, columns]"),
        (
            ["train", str(rows), "--model", "multiclass", "-o", model, "--set", "biass=1"],
            "--set knows batch_size, bias",
        ),
        (["train", str(rows), "--model", "multiclass", "-o", model, "--set", "bias"], "--set wants NAME=VALUE"),
        (["train", str(rows), "--model", "multiclass", "-o", model, "--objective", "x"], "objective must be one of"),
        (["train", str(tmp_path / "none.npz"), "--model", "multiclass", "-o", model], "there is no file"),
    ]:
        code, _, err = call(capsys, *words)
        assert code == 2
        assert message in err
        assert err.count("\n") <= 3
    assert not Path(model).exists()


def test_files_are_read_without_trust(tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    path.write_bytes(b"no archive")
    with pytest.raises(FormatError, match=r"no \.npz archive"):
        read_examples(path, "grid")
    np.savez(path, X=np.array([{"a": 1}], dtype=object))
    with pytest.raises(FormatError, match="plain arrays"):
        read_examples(path, "grid")
    np.savez(path, X=np.zeros((4, 1)), shapes=np.array([[2, 3]]))
    with pytest.raises(FormatError, match="shapes say 6 pixels, and X has 4"):
        read_examples(path, "grid")
    np.savez(path, X=np.zeros((4, 1)), node_offsets=[0, 5], edges=np.zeros((0, 2), int), edge_offsets=[0, 0])
    with pytest.raises(FormatError, match="node_offsets must rise from 0 to 4"):
        read_examples(path, "graph")
    np.savez(path, Z=np.zeros(3))
    with pytest.raises(FormatError, match="has no array 'X'; it has Z"):
        read_examples(path, "graph")
    np.savez(path, X=np.zeros((3, 1)))
    with pytest.raises(ModelError, match="a model is one of"):
        read_examples(path, "tree")
