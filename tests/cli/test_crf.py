"""`markovfield crf`: train, tag, eval and show on small files, their JSON, errors and exit codes."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

import markovfield as mf
from markovfield.cli import main
from markovfield.cli._crf_report import TrainingLine, are_chunks
from markovfield.io.conll import read_conll, write_conll
from markovfield.io.crfsuite_items import write_crfsuite_items
from markovfield.sequence.chain.crf import ChainCRF
from markovfield.sequence.chain.training import SOLVERS
from markovfield.sequence.chain.watch import Watch
from markovfield.sequence.tagger import ChainTagger, load_chain
from markovfield.sequence.text.entities import entity_report

TEMPLATE = "U0:%x[0,0]\nU1:%x[0,1]\nU2:%x[-1,1]/%x[0,1]\nB\n"
Rows = list[list[tuple[str, ...]]]


def sentences(n: int, seed: int) -> Rows:
    """Determiners, adjectives, nouns and verbs in noun and verb phrases, with words that tell too little."""
    rng = np.random.default_rng(seed)
    words = {"DT": ["the", "a"], "JJ": ["old", "wet", "run"], "NN": ["dog", "run", "sea"], "VB": ["sees", "run"]}
    result = []
    for _ in range(n):
        tags = []
        for _ in range(int(rng.integers(1, 4))):
            tags += ["DT"] * int(rng.integers(0, 2)) + ["JJ"] * int(rng.integers(0, 3)) + ["NN", "VB"]
        rows: list[tuple[str, ...]] = []
        for t, tag in enumerate(tags):
            starts = tag == "VB" or t == 0 or tags[t - 1] == "VB"
            label = ("B-" if starts else "I-") + ("VP" if tag == "VB" else "NP")
            rows.append((str(rng.choice(words[tag])), tag if rng.random() < 0.8 else "XX", label))
        result.append(rows)
    return result


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files to learn from, and a model."""
    path = tmp_path_factory.mktemp("crf")
    train, test = sentences(40, 0), sentences(20, 1)
    write_conll(path / "train.txt", train)
    write_conll(path / "test.txt", test)
    write_conll(path / "words.txt", [[row[:2] for row in sentence] for sentence in test])
    for name, rows in (("train", train), ("test", test)):
        X = [[[f"w={row[0]}", f"p={row[1]}"] for row in sentence] for sentence in rows]
        write_crfsuite_items(path / f"{name}.items", X, [[row[2] for row in sentence] for sentence in rows])
    (path / "chunk.tpl").write_text(TEMPLATE)
    assert main(["crf", "train", *(str(path / n) for n in ("train.txt",)), *options(path)]) == 0
    return path


def options(path: Path, name: str = "model.mf") -> list[str]:
    return ["--template", str(path / "chunk.tpl"), "--model", str(path / name)]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("COLUMNS", "120")

    def call(*words: str | Path) -> tuple[int, str, str]:
        capsys.readouterr()
        status = main(["crf", *map(str, words)])
        seen = capsys.readouterr()
        return status, seen.out, seen.err

    return call


def assert_sentence(err: str) -> str:
    assert err.startswith("error: ") and err.count("\n") == 1 and "Traceback" not in err
    return err.removeprefix("error: ").strip()


# ---- train --------------------------------------------------------------------------------------------------------


def test_train_saves_what_the_library_would(run: Any, folder: Path, tmp_path: Path):
    model = tmp_path / "m.mf"
    words = ("train", folder / "train.txt", "--template", folder / "chunk.tpl", "--model", model, "--json")
    status, out, err = run(*words, "--l2", "0.5", "--dev", folder / "test.txt")
    body = json.loads(out)
    corpus, test = read_conll(folder / "train.txt"), read_conll(folder / "test.txt")
    expected = ChainTagger(TEMPLATE, crf=ChainCRF(0.5)).fit(corpus)
    assert (status, err) == (0, "")
    assert body["objective"] == pytest.approx(expected.report_.objective)
    assert body["converged"] and not body["interrupted"] and body["solver"] == "lbfgs"
    assert body["n_labels"] == 3 and body["bytes"] == model.stat().st_size and body["model"] == str(model)
    assert len(body["history"]) == len(body["accuracies"]) == body["iterations"]
    assert body["n_sequences"] == 40 and body["n_attributes"] == expected.crf_.vectoriser_.n_attributes_
    assert body["dev"]["accuracy"] == pytest.approx(expected.score(test))
    assert ChainTagger.load(model).predict(test) == expected.predict(test)


def test_train_for_people(run: Any, folder: Path, tmp_path: Path):
    model = tmp_path / "m.mf"
    words = ("train", folder / "train.txt", "--model", model, "--max-iterations", "3")
    status, out, err = run(*words, "--dev", folder / "test.txt", "--verbose")
    assert status == 0
    assert "not converged: 3 iterations" in out and f"wrote {model}" in out and "40 sequences" in out
    assert "TokenFeatures(window=2, affixes=3) on columns 0, 1" in out
    assert "development set: token accuracy" in out and "F1" in out
    lines = err.splitlines()
    assert len(lines) == 3 and all("objective" in line and "accuracy" in line for line in lines)


def test_settings_reach_the_chain_and_the_file(run: Any, folder: Path, tmp_path: Path):
    model = tmp_path / "m.mf"
    settings = {"l1": 0.2, "l2": 0.3, "min_count": 2, "max_iterations": 4, "constraints": "iob2", "rng": 5, "order": 2}
    words = ["train", folder / "train.txt", "--template", folder / "chunk.tpl", "--model", model]
    for name, value in settings.items():
        words += [f"--{'seed' if name == 'rng' else name.replace('_', '-')}", str(value)]
    assert run(*words, "--n-jobs", "1")[0] == 0
    body = json.loads(run("show", "--model", model, "--json")[1])
    assert settings.items() <= body["settings"].items()
    assert body["training"]["solver"] == "owlqn" and body["training"]["iterations"] <= 4


@pytest.mark.parametrize("solver", SOLVERS)
def test_every_solver_is_named_and_runs(run: Any, folder: Path, tmp_path: Path, solver: str):
    assert solver in run("train", "--help")[1]
    model = tmp_path / "m.mf"
    status, out, _ = run(
        *("train", folder / "train.txt", *options(folder)[:2], "--model", model, "--solver", solver, "--seed", "0"),
        *("--max-iterations", "5", "--json"),
    )
    assert status == 0 and json.loads(out)["solver"] == solver


def test_named_columns_labels_anywhere_and_columns_left_out(run: Any, folder: Path, tmp_path: Path):
    rows = [[(c, a, "junk", b) for a, b, c in sentence] for sentence in sentences(20, 2)]
    train, model = tmp_path / "t.txt", tmp_path / "m.mf"
    write_conll(train, rows, delimiter="\t")
    words = ("train", train, "--model", model, "--columns", "chunk,word,_,pos", "--label", "chunk")
    assert run(*words)[0] == 0
    body = json.loads(run("show", "--model", model, "--json")[1])
    assert body["features"]["columns"] == ["word", "pos"] and body["features"]["label"] == "chunk"
    assert run("eval", train, "--model", model)[0] == 0
    unlabelled = tmp_path / "u.txt"
    write_conll(unlabelled, [[row[1:] for row in sentence] for sentence in rows], delimiter="\t")
    status, out, _ = run("tag", unlabelled, "--model", model)
    predicted = [line.split("\t")[-1] for line in out.splitlines() if line]
    assert status == 0 and set(predicted) <= {"B-NP", "I-NP", "B-VP"}
    assert out.splitlines()[0].split("\t")[:3] == list(rows[0][0][1:])
    assert run("train", train, "--model", model, "--label", "0")[0] == 0
    assert json.loads(run("show", "--model", model, "--json")[1])["features"]["label"] == "0"


def test_early_stopping(run: Any, folder: Path, tmp_path: Path):
    model = tmp_path / "m.mf"
    words = ("train", folder / "train.txt", *options(folder)[:2], "--model", model, "--l2", "0", "--json")
    status, out, _ = run(*words, "--dev", folder / "test.txt", "--early-stopping", "2")
    body = json.loads(out)
    kept = body["kept"] - 1
    assert status == 0 and 0 <= kept < body["iterations"] == len(body["f1_scores"])
    assert body["objective"] == body["history"][kept]
    assert body["dev"]["accuracy"] == pytest.approx(body["accuracies"][kept])
    said = run(*words[:-3], "--l2", "10", "--dev", folder / "test.txt", "--early-stopping", "1")[1]
    assert "early stopping after" in said and "not converged" not in said and "callback" not in said
    assert "--dev" in assert_sentence(run(*words, "--early-stopping", "2")[2])


@pytest.fixture
def interrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C in the third iteration."""
    original = Watch.__call__

    def call(self: Watch, iteration: int, value: float, weights: Any) -> bool:
        if iteration == 3:
            raise KeyboardInterrupt
        return original(self, iteration, value, weights)

    monkeypatch.setattr(Watch, "__call__", call)


@pytest.mark.usefixtures("interrupted")
@pytest.mark.parametrize("solver", ["lbfgs", "perceptron"])
def test_an_interrupted_training_keeps_its_weights(run: Any, folder: Path, tmp_path: Path, solver: str):
    model = tmp_path / "m.mf"
    words = ("train", folder / "train.txt", *options(folder)[:2], "--model", model, "--solver", solver, "--seed", "1")
    status, out, err = run(*words, "--json")
    body = json.loads(out)
    assert status == 130 and body["interrupted"] and body["iterations"] in (2, 3)
    assert f"saved the weights of {body['iterations']} iterations to {model}" in err
    assert ChainTagger.load(model).report_.iterations == body["iterations"]


@pytest.mark.usefixtures("interrupted")
def test_an_interrupted_training_leaves_a_whole_model_alone(run: Any, folder: Path, tmp_path: Path):
    model, whole = tmp_path / "m.mf", (folder / "model.mf").read_bytes()
    model.write_bytes(whole)
    status, _, err = run("train", folder / "train.txt", *options(folder)[:2], "--model", model)
    partial = tmp_path / "m.mf.partial"
    assert status == 130 and str(partial) in err
    assert model.read_bytes() == whole and load_chain(partial).classes_ == load_chain(model).classes_


def test_nothing_is_written_before_the_first_iteration(
    run: Any, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    model = tmp_path / "m.mf"
    model.write_bytes(b"precious")

    def fit(*args: Any, **keywords: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(ChainCRF, "fit", fit)
    status, out, err = run("train", folder / "train.txt", *options(folder)[:2], "--model", model)
    assert (status, out, err) == (130, "", "error: stopped\n")
    assert os.listdir(tmp_path) == ["m.mf"] and model.read_bytes() == b"precious"


def test_a_failed_save_leaves_the_old_model(run: Any, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    model = tmp_path / "m.mf"
    model.write_bytes(b"precious")

    def replace(*args: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", replace)
    status, _, err = run("train", folder / "train.txt", *options(folder)[:2], "--model", model)
    assert status == 2 and assert_sentence(err) == f"cannot write {model}: no space left on device"
    assert os.listdir(tmp_path) == ["m.mf"] and model.read_bytes() == b"precious"


# ---- tag ----------------------------------------------------------------------------------------------------------


def test_tag_adds_a_column(run: Any, folder: Path, tmp_path: Path):
    tagger, corpus = ChainTagger.load(folder / "model.mf"), read_conll(folder / "test.txt")
    status, out, err = run("tag", folder / "test.txt", "--model", folder / "model.mf")
    assert (status, err) == (0, "")
    saved = tmp_path / "out.txt.gz"
    assert run("tag", folder / "words.txt", "--model", folder / "model.mf", "--output", saved) == (0, "", "")
    (tmp_path / "seen.txt").write_text(out)
    with_labels, without = read_conll(tmp_path / "seen.txt"), read_conll(saved)
    assert with_labels.column(3) == without.column(2) == tagger.predict(corpus)
    assert with_labels.drop(3)[0] == corpus[0]


def test_marginals_of_every_label(run: Any, folder: Path):
    tagger, corpus = ChainTagger.load(folder / "model.mf"), read_conll(folder / "words.txt")
    status, out, _ = run("tag", folder / "words.txt", "--model", folder / "model.mf", "--marginals")
    expected = np.concatenate(tagger.predict_proba(corpus))
    rows = [line.split(" ") for line in out.splitlines() if line]
    assert status == 0 and [cell.split("/")[0] for cell in rows[0][3:]] == tagger.classes_
    assert np.allclose([[float(cell.split("/")[1]) for cell in row[3:]] for row in rows], expected, atol=1e-6)


def test_n_best(run: Any, folder: Path):
    tagger, corpus = ChainTagger.load(folder / "model.mf"), read_conll(folder / "words.txt")
    status, out, _ = run("tag", folder / "words.txt", "--model", folder / "model.mf", "--n-best", "3")
    blocks = [block.split("\n") for block in out.strip().split("\n\n")]
    expected = [found for sentence in tagger.predict_n_best(corpus, 3) for found in sentence]
    assert status == 0 and len(blocks) == len(expected)
    for (head, *rows), (labels, probability) in zip(blocks, expected, strict=True):
        assert head.startswith("# ") and float(head.split()[2]) == pytest.approx(probability, abs=1e-6)
        assert [row.split(" ")[2] for row in rows] == labels
    status, _, err = run("tag", folder / "words.txt", "--model", folder / "model.mf", "--n-best", "2", "--marginals")
    assert status == 2 and "do not go together" in assert_sentence(err)


def test_every_line_is_tagged(run: Any, folder: Path, tmp_path: Path):
    data = tmp_path / "d.txt"
    data.write_text("-DOCSTART- XX\n\nthe\tDT\ndog\tNN\n".replace("\t", " "))
    status, out, _ = run("tag", data, "--model", folder / "model.mf")
    assert status == 0 and [line.split(" ")[0] for line in out.splitlines() if line] == ["-DOCSTART-", "the", "dog"]
    data.write_text("\n\n")
    assert run("tag", data, "--model", folder / "model.mf") == (0, "", "")


# ---- eval ---------------------------------------------------------------------------------------------------------


def test_eval_is_the_library_s_report(run: Any, folder: Path):
    tagger, corpus = ChainTagger.load(folder / "model.mf"), read_conll(folder / "test.txt")
    expected = entity_report(corpus["2"], tagger.predict(corpus))
    status, out, err = run("eval", folder / "test.txt", "--model", folder / "model.mf", "--json")
    body = json.loads(out)
    assert (status, err) == (0, "")
    assert set(body) == {"n_tokens", "accuracy", "macro_f1", "labels", "entities", "unknown_labels", "seconds"}
    assert body["accuracy"] == pytest.approx(expected.accuracy) and body["unknown_labels"] == []
    assert body["entities"]["f1"] == pytest.approx(expected.f1)
    assert body["entities"]["by_type"]["NP"]["n_true"] == expected.by_type["NP"].n_true
    status, out, _ = run("eval", folder / "test.txt", "--model", folder / "model.mf")
    assert status == 0 and out.splitlines()[0] == str(expected).splitlines()[0]
    assert f"{100 * expected.f1:.2f}" in out and f"token accuracy {100 * expected.accuracy:.2f} %" in out


def test_eval_of_parts_of_speech(run: Any, folder: Path, tmp_path: Path):
    rows = [[row[:2] for row in sentence] for sentence in sentences(20, 3)]
    write_conll(tmp_path / "t.txt", rows)
    model = tmp_path / "m.mf"
    assert run("train", tmp_path / "t.txt", "--model", model)[0] == 0
    status, out, _ = run("eval", tmp_path / "t.txt", "--model", model)
    assert status == 0 and "macro F1" in out and "DT" in out and "phrases" not in out
    assert json.loads(run("eval", tmp_path / "t.txt", "--model", model, "--json")[1])["entities"] is None


def test_labels_that_the_model_does_not_know(run: Any, folder: Path, tmp_path: Path):
    data = tmp_path / "d.txt"
    data.write_text("the DT B-NP\ndog NN I-XP\n")
    status, out, _ = run("eval", data, "--model", folder / "model.mf")
    assert status == 0 and "labels that the model does not know: I-XP" in out
    assert json.loads(run("eval", data, "--model", folder / "model.mf", "--json")[1])["unknown_labels"] == ["I-XP"]


def test_which_labels_are_chunks():
    assert are_chunks(["B-NP", "I-NP", "O"]) and are_chunks(["S-X", "O"]) and are_chunks(["B", "I"])
    assert not are_chunks(["NN", "VB"]) and not are_chunks(["B-NP", "NN"]) and not are_chunks(["O"])
    assert not are_chunks(["B-", "I-"]) and not are_chunks([1, 2])


# ---- show ---------------------------------------------------------------------------------------------------------


def test_show(run: Any, folder: Path):
    crf = ChainTagger.load(folder / "model.mf").crf_
    status, out, err = run("show", "--model", folder / "model.mf", "--top", "3", "--json")
    body = json.loads(out)
    assert (status, err) == (0, "")
    assert body["class"] == "ChainTagger" and body["labels"] == crf.classes_ and body["n_labels"] == 3
    assert body["features"] == {
        "kind": "template",
        "dialect": "crf++",
        "template": TEMPLATE.split(),
        "columns": ["0", "1"],
        "label": "2",
    }
    assert len(body["transitions"]) == len(body["states"]) == 3
    heaviest = max(crf.state_features_.items(), key=lambda item: abs(item[1]))
    listed = {(row["attribute"], row["label"]): row["weight"] for row in body["states"]}
    assert listed[heaviest[0]] == pytest.approx(heaviest[1])
    status, out, _ = run("show", "--model", folder / "model.mf", "--label", "B-VP")
    assert status == 0 and "Transitions" in out and "Features" in out and "crf++ template of 4 rules" in out
    assert "I-NP  I-NP" not in out


# ---- CRFsuite's items -----------------------------------------------------------------------------------------------


def test_items(run: Any, folder: Path, tmp_path: Path):
    model = tmp_path / "m.mf"
    words = ("train", folder / "train.items", "--format", "crfsuite", "--model", model)
    status, out, _ = run(*words, "--dev", folder / "test.items")
    assert status == 0 and "attributes as files give them" in out
    crf = load_chain(model)
    assert isinstance(crf, ChainCRF) and crf.classes_ == mf.load(model).classes_
    status, out, _ = run("tag", folder / "test.items", "--model", model)
    assert status == 0 and len(out.splitlines()) == len((folder / "test.items").read_text().splitlines())
    assert {line for line in out.splitlines() if line} <= set(crf.classes_)
    assert json.loads(run("eval", folder / "test.items", "--model", model, "--json")[1])["accuracy"] > 0.8
    assert json.loads(run("show", "--model", model, "--json")[1])["features"] == {"kind": "attributes"}
    status, _, err = run("tag", folder / "test.txt", "--model", model)
    assert status == 2 and "has no attributes: the model learnt from CRFsuite's files" in assert_sentence(err)
    status, _, err = run(*words, "--template", folder / "chunk.tpl")
    assert status == 2 and "--format crfsuite" in assert_sentence(err)


def test_weights_of_items(run: Any, tmp_path: Path):
    data, model = tmp_path / "t.items", tmp_path / "m.mf"
    data.write_text("@weight:3\nA\tx\n\nB\tx\n")
    assert run("train", data, "--format", "crfsuite", "--model", model)[0] == 0
    found = load_chain(model)
    assert found.predict_proba([[["x"]]])[0][0, 0] > 0.6


# ---- errors -------------------------------------------------------------------------------------------------------


def test_errors_are_one_sentence(run: Any, folder: Path, tmp_path: Path):
    ragged, empty, narrow = tmp_path / "ragged.txt", tmp_path / "empty.txt", tmp_path / "narrow.txt"
    ragged.write_text("the DT B-NP\ndog I-NP\n")
    empty.write_text("\n\n")
    narrow.write_text("the\n")
    bad_template = tmp_path / "bad.tpl"
    bad_template.write_text("U0:%x[0,0]\nX1\n")
    far = tmp_path / "far.tpl"
    far.write_text("U0:%x[0,7]\n")
    truncated = tmp_path / "short.mf"
    truncated.write_bytes((folder / "model.mf").read_bytes()[:2000])
    other = tmp_path / "coin.mf"
    mf.save(mf.MarkovNetwork({"a": 2}), other)
    train, model = folder / "train.txt", ("--model", folder / "model.mf")
    new = ("--model", tmp_path / "new.mf")
    cases = [
        (("train", tmp_path / "none.txt", *new), f"there is no file {tmp_path / 'none.txt'}"),
        (("train", train, *new, "--template", tmp_path / "none.tpl"), "there is no file"),
        (("train", train, *new, "--dev", tmp_path / "none.txt"), "there is no file"),
        (("train", ragged, *new), f"{ragged}:2:1: expected 3 columns, got 2"),
        (("train", train, *new, "--columns", "word,chunk"), f"{train}:1:1: expected 2 columns, got 3"),
        (("train", train, *new, "--columns", "word,pos,pos"), "different names"),
        (("train", train, *new, "--label", "ner"), "there is no column 'ner'"),
        (("train", train, *new, "--label", "7"), "there is no column 7"),
        (("train", empty, *new), "holds no sequences"),
        (("train", empty, *new, "--format", "crfsuite"), "holds no sequences"),
        (("train", narrow, *new), "no columns to read beside the labels"),
        (("train", train, *new, "--template", bad_template), f"{bad_template}:2:1"),
        (("train", train, *new, "--template", far), "asks for column 7"),
        (("train", train, *new, "--solver", "newton"), "solver must be one of"),
        (("train", train, *new, "--solver", "sgd", "--order", "2"), "order=2 needs a batch solver"),
        (("train", train, *new, "--constraints", "iob9"), "scheme must be one of"),
        (("train", train, *new, "--label", "1", "--constraints", "iob2"), "is none of scheme 'iob2'"),
        (("train", train, *new, "--dev", narrow), "with the labels in column '2'; got 1 column: 0"),
        (("train", train, "--model", tmp_path / "no" / "m.mf"), "there is no folder"),
        (("train", train, "--model", tmp_path), "it is a folder"),
        (("train", train), "missing option"),
        (("tag", train, "--model", tmp_path / "none.mf"), "there is no file"),
        (("tag", train, "--model", train), "cannot be loaded"),
        (("tag", train, "--model", truncated), "cannot be loaded"),
        (("eval", train, "--model", other), "it holds a MarkovNetwork, expected a ChainTagger or ChainCRF"),
        (("tag", narrow, *model), "this tagger reads the 2 columns 0, 1"),
        (("eval", folder / "words.txt", *model), "none of labels"),
        (("eval", empty, *model), "holds no sequences"),
        (("show", *model, "--label", "B-XP"), "the model has no label 'B-XP'"),
    ]
    for words, expected in cases:
        status, out, err = run(*words)
        assert (status, out) == (2, ""), words
        assert expected in assert_sentence(err), words
    assert not (tmp_path / "new.mf").exists()


def test_a_time_limit_that_is_too_short(run: Any, folder: Path, tmp_path: Path):
    model = tmp_path / "m.mf"
    status, _, err = run("train", folder / "train.txt", "--model", model, "--time-limit", "1e-9")
    assert status == 1 and "time limit" in assert_sentence(err) and not model.exists()


# ---- progress -----------------------------------------------------------------------------------------------------


def test_the_line_of_the_last_iteration_is_shown_to_people(tmp_path: Path):
    with (tmp_path / "seen").open("w") as stream:
        console = Console(file=stream, force_terminal=True, width=120)
        with TrainingLine(console, "training", verbose=False) as line:
            sys.stdout.write("iteration    7  objective 1.5  accuracy 0.9\n")
            assert line._display is not None
            assert line._display.tasks[0].description == "training: iteration 7 objective 1.5 accuracy 0.9"
    with (tmp_path / "seen").open("w") as stream, TrainingLine(Console(file=stream), "training", verbose=False):
        sys.stdout.write("iteration 7\n")
    assert (tmp_path / "seen").read_text() == ""
