"""The command line against the library: answers, JSON, result files, exit codes, one-sentence errors."""

from __future__ import annotations

import gzip
import io
import json
import math
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

import markovfield as mf
from markovfield.cli import main
from markovfield.inference.core.running import Progress
from markovfield.names import distinct_texts
from markovfield.progress import ProgressLine

BIF = """
network alarm { }
variable burglary { type discrete [ 2 ] { no, yes }; }
variable quake { type discrete [ 2 ] { no, yes }; }
variable alarm { type discrete [ 3 ] { silent, short, long }; }
probability ( burglary ) { table 0.95, 0.05; }
probability ( quake ) { table 0.9, 0.1; }
probability ( alarm | burglary, quake ) {
  (no, no) 1.0, 0.0, 0.0;
  (yes, no) 0.2, 0.3, 0.5;
  (no, yes) 0.4, 0.4, 0.2;
  (yes, yes) 0.1, 0.2, 0.7;
}
"""
FIELDS = {"task", "guarantee", "method", "seconds", "width", "converged"}


@pytest.fixture
def bif(tmp_path: Path) -> str:
    path = tmp_path / "alarm.bif"
    path.write_text(BIF)
    return str(path)


@pytest.fixture
def uai(tmp_path: Path) -> str:
    path = tmp_path / "grid.uai"
    rng = np.random.default_rng(0)
    net = mf.MarkovNetwork(dict.fromkeys(range(6), 2))
    for a, b in [(0, 1), (1, 2), (3, 4), (4, 5), (0, 3), (1, 4), (2, 5)]:
        net.add_factor([a, b], rng.random((2, 2)) + 0.1)
    mf.io.write_uai(net, path)
    return str(path)


@pytest.fixture
def evidence(tmp_path: Path) -> str:
    path = tmp_path / "grid.uai.evid"
    path.write_text("2  0 1  5 0\n")
    return str(path)


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("COLUMNS", "120")

    def call(*words: str) -> tuple[int, str, str]:
        capsys.readouterr()
        status = main(list(words))
        seen = capsys.readouterr()
        return status, seen.out, seen.err

    return call


def assert_sentence(err: str) -> str:
    """One line on standard error, no traceback."""
    assert err.startswith("error: ") and err.count("\n") == 1 and "Traceback" not in err
    return err.removeprefix("error: ").strip()


# ---- infer --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["auto", "junction_tree", "variable_elimination", "enumeration"])
def test_pr(run: Any, uai: str, evidence: str, method: str):
    status, out, err = run("infer", uai, "--evidence", evidence, "--task", "PR", "--method", method, "--json")
    body = json.loads(out)
    expected = float(mf.log_partition(mf.io.read_uai(uai), {0: 1, 5: 0})) / math.log(10)
    assert (status, err) == (0, "")
    assert set(body) == FIELDS | {"log10_partition", "log10_partition_bounds"}
    assert body["task"] == "PR" and body["guarantee"] == "exact"
    assert body["log10_partition"] == pytest.approx(expected)
    assert body["seconds"] >= 0
    assert body["method"] == ("enumeration" if method == "auto" else method)
    assert body["width"] is None if body["method"] == "enumeration" else body["width"] >= 1


def test_mar(run: Any, uai: str, evidence: str):
    status, out, _ = run("infer", uai, "--evidence", evidence, "--json")
    body = json.loads(out)
    answer = mf.marginals(mf.io.read_uai(uai), {0: 1, 5: 0})
    assert status == 0
    assert set(body) == FIELDS | {"log10_partition", "log10_partition_bounds", "marginals"}
    assert body["task"] == "MAR"
    for v in range(6):
        assert body["marginals"][str(v)] == pytest.approx(dict(zip("01", answer[v], strict=True)))


@pytest.mark.parametrize("task", ["MPE", "MAP", "mpe"])
def test_mpe(run: Any, uai: str, evidence: str, task: str):
    status, out, _ = run("infer", uai, "--evidence", evidence, "--task", task, "--json")
    body = json.loads(out)
    answer = mf.decode(mf.io.read_uai(uai), {0: 1, 5: 0})
    assert status == 0
    assert set(body) == FIELDS | {"log10_score", "score", "upper_bound", "gap", "optimal", "assignment"}
    assert body["task"] == task.upper()
    assert body["assignment"] == {str(v): s for v, s in answer.assignment.items()}
    assert body["log10_score"] == pytest.approx(answer.score / math.log(10))


def test_mmap(run: Any, uai: str, evidence: str, tmp_path: Path):
    query = tmp_path / "grid.uai.query"
    query.write_text("2 4 2")
    words = ("infer", uai, "--evidence", evidence, "--task", "MMAP", "--json")
    by_file, by_name = run(*words, "--query", str(query)), run(*words, "--query-variables", "4,2")
    answer = mf.decode(mf.io.read_uai(uai), {0: 1, 5: 0}, variables=[4, 2])
    for status, out, _ in (by_file, by_name):
        body = json.loads(out)
        assert status == 0
        assert body["assignment"] == {str(v): s for v, s in answer.assignment.items()}
        assert body["log10_score"] == pytest.approx(answer.score / math.log(10))


def test_named_evidence(run: Any, bif: str):
    status, out, _ = run("infer", bif, "-e", "alarm=long", "-e", "quake=no", "--json")
    body = json.loads(out)
    assert status == 0
    assert body["marginals"]["burglary"] == pytest.approx({"no": 0.0, "yes": 1.0})
    assert body["marginals"]["alarm"]["long"] == 1.0
    assert body["log10_partition"] == pytest.approx(math.log10(0.05 * 0.9 * 0.5))


def test_evidence_by_index_for_a_named_model(run: Any, bif: str, tmp_path: Path):
    file = tmp_path / "alarm.evid"
    file.write_text("1 2 2")
    status, out, _ = run("infer", bif, "--evidence", str(file), "--task", "MPE", "--json")
    assert status == 0
    assert json.loads(out)["assignment"] == {"burglary": "yes", "quake": "no", "alarm": "long"}


def test_odd_names(run: Any, tmp_path: Path):
    net = mf.MarkovNetwork({"a=b": ["x", "x=y"], 1: [10, 20], "1": 2, "c,d": 2})
    net.add_factor(["a=b", 1], [[1, 2], [3, 4]])
    path = tmp_path / "odd.mf"
    mf.save(net, path)
    status, out, _ = run("infer", str(path), "-e", "a=b=x=y", "--json")
    body = json.loads(out)
    assert status == 0
    assert set(body["marginals"]) == {"a=b", "1", "'1'", "c,d"}
    assert body["marginals"]["1"] == pytest.approx({"10": 3 / 7, "20": 4 / 7})
    status, out, _ = run("infer", str(path), "--task", "MMAP", "-q", "c,d", "-q", "a=b", "--json")
    assert set(json.loads(out)["assignment"]) == {"c,d", "a=b"}
    assert distinct_texts([1, 2]) == ["1", "2"]


@pytest.mark.parametrize("ending", [".gz", ".xz"])
def test_compressed_models(run: Any, bif: str, ending: str):
    import lzma

    data = Path(bif).read_bytes()
    packed = Path(bif + ending)
    packed.write_bytes(gzip.compress(data) if ending == ".gz" else lzma.compress(data))
    assert run("infer", str(packed), "--task", "PR")[0] == 0


@pytest.mark.parametrize("task", ["PR", "MAR", "MPE", "MAP", "MMAP"])
def test_result_files_can_be_read_back(run: Any, uai: str, evidence: str, tmp_path: Path, task: str):
    target = tmp_path / "result"
    words = ["infer", uai, "--evidence", evidence, "--task", task, "-o", str(target)]
    status, out, _ = run(*words, *(["-q", "4,2"] if task == "MMAP" else []))
    assert status == 0 and "wrote" in out
    result = mf.io.read_uai_result(target)
    graph, known = mf.io.read_uai(uai), {0: 1, 5: 0}
    assert result.task == task
    if task == "PR":
        assert result.log10_partition == pytest.approx(float(mf.log_partition(graph, known)) / math.log(10))
    elif task == "MAR":
        np.testing.assert_allclose(np.concatenate(result.marginals), mf.marginals(graph, known).values)
    elif task == "MMAP":
        answer = mf.decode(graph, known, variables=[4, 2])
        assert result.states.tolist() == [answer[4], answer[2]]
    else:
        assert result.states.tolist() == mf.decode(graph, known).states.tolist()


def test_tables_for_people(run: Any, bif: str):
    status, out, err = run("infer", bif, "-e", "quake=yes")
    assert (status, err) == (0, "")
    assert "burglary" in out and "observed" in out and "0.9500" in out
    assert "log10 Z = -1" in out and "exact" in out and "enumeration" in out
    status, out, _ = run("infer", bif, "--task", "MPE", "--method", "jt")
    assert "Likeliest assignment" in out and "silent" in out and "width 2" in out
    status, out, _ = run("infer", bif, "--task", "PR")
    assert out.startswith("log10 Z = ") and out.count("\n") == 1


def test_long_tables_are_cut(run: Any, tmp_path: Path):
    path = tmp_path / "long.uai"
    mf.io.write_uai(mf.MarkovNetwork(dict.fromkeys(range(45), 2)), path)
    for task in ("MAR", "MPE"):
        out = run("infer", str(path), "--task", task)[1]
        assert "... and 5 more variables; --all shows them" in out
        assert "more variables" not in run("infer", str(path), "--task", task, "--all")[1]


def test_markup_in_names_is_left_alone(run: Any, tmp_path: Path):
    path = tmp_path / "markup.mf"
    mf.save(mf.MarkovNetwork({"[red]x": ["[b]", "c"]}), path)
    out = run("infer", str(path))[1]
    assert "[red]x" in out and "[b] 0.5" in out


# ---- failures -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "status", "sentence"),
    [
        (["infer", "MODEL", "-e", "alarm=loud"], 2, "has no state 'loud'; its states are 'silent'"),
        (["infer", "MODEL", "-e", "alrm=long"], 2, "no variable 'alrm' in the model; did you mean 'alarm'?"),
        (["infer", "MODEL", "-e", "alarm"], 2, "written NAME=STATE, got 'alarm'"),
        (["infer", "MODEL", "-e", "alarm=long", "-e", "alarm=short"], 2, "observed in two states"),
        (["infer", "MODEL", "--method", "junction"], 2, "no method 'junction' for 'marginals': choose from auto"),
        (["infer", "MODEL", "--task", "SUM"], 2, "SUM"),
        (["infer", "MODEL", "--task", "MMAP"], 2, "task MMAP needs --query or --query-variables"),
        (["infer", "MODEL", "--task", "MMAP", "-q", "nobody"], 2, "no variable 'nobody' in the model"),
        (["infer", "MODEL", "--task", "MMAP", "-q", "alarm,alarm"], 2, "named twice"),
        (["infer", "MODEL", "-q", "alarm"], 2, "--query belongs to task MMAP, the task is MAR"),
        (["infer", "MODEL", "--memory-limit", "lots"], 2, "memory_limit must be a number of bytes"),
        (["infer", "MODEL", "--n-jobs", "0"], 2, "n_jobs must be at least 1"),
        (["infer", "MODEL", "--time-limit", "-1"], 2, "time_limit must be positive"),
        (["infer", "MODEL", "-o", "FOLDER/none/result"], 2, "cannot write"),
        (["infer", "MODEL", "--evidence", "FOLDER/none"], 2, "there is no file"),
        (["infer", "FOLDER/none.uai"], 2, "there is no file"),
        (["infer", "FOLDER"], 2, "is a folder, not a file"),
        (["infer", "MODEL", "--colour"], 2, "--colour"),
        (["infer"], 2, "MODEL"),
        (["guess"], 2, "'guess'"),
        (["explain", "MODEL", "--task", "MMAP"], 2, "task MMAP needs --query or --query-variables"),
        (["explain", "MODEL", "--task", "BEST"], 2, "PR, MAR, MPE, MMAP and SAMPLE, got 'BEST'"),
        (["sample", "MODEL", "--size", "-1"], 2, "--size"),
        (["infer", "MODEL", "-e", "burglary=no", "-e", "quake=no", "-e", "alarm=long"], 1, "probability zero"),
        (["infer", "MODEL", "--method", "jt", "--memory-limit", "10"], 1, "memory_limit is 10 bytes"),
        (["infer", "MODEL", "--method", "jt", "--time-limit", "1e-9"], 1, "no answer within the time limit"),
    ],
)
@pytest.mark.parametrize("as_json", [False, True])
def test_failures(run: Any, bif: str, tmp_path: Path, words: list[str], status: int, sentence: str, as_json: bool):
    words = [w.replace("MODEL", bif).replace("FOLDER", str(tmp_path)) for w in words]
    got, out, err = run(*words, *(["--json"] if as_json and words[0] != "sample" else []))
    assert got == status
    assert out == ""
    assert sentence in assert_sentence(err)


def test_malformed_files(run: Any, tmp_path: Path, bif: str):
    bad = tmp_path / "bad.uai"
    bad.write_text("MARKOV\n2\n2 2\n1\n2 0 1\n4\n1 2 x 4\n")
    status, _, err = run("infer", str(bad))
    assert status == 2 and assert_sentence(err).startswith(f"{bad}:7:5: ")
    other = tmp_path / "notes.txt"
    other.write_text("hello")
    status, _, err = run("infer", str(other))
    assert status == 2 and "or an archive written by save" in assert_sentence(err)
    archive = tmp_path / "model.mf"
    archive.write_bytes(b"PK\x03\x04 and nothing more")
    status, _, err = run("infer", str(archive))
    assert status == 2 and str(archive) in assert_sentence(err)
    for text, words in [("1 7 0", "observes variable 7"), ("1 0 5", "in state 5"), ("2 0", "2 observed variables")]:
        file = tmp_path / "bad.evid"
        file.write_text(text)
        status, _, err = run("infer", bif, "--evidence", str(file))
        assert status == 2 and words in assert_sentence(err)
    query = tmp_path / "bad.query"
    query.write_text("1 9")
    status, _, err = run("infer", bif, "--task", "MMAP", "--query", str(query))
    assert status == 2 and "asks for variable 9" in assert_sentence(err)


def test_interruption(run: Any, bif: str, monkeypatch: pytest.MonkeyPatch):
    def stop(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(mf, "marginals", stop)
    assert run("infer", bif) == (130, "", "error: stopped\n")


def test_out_of_memory(run: Any, bif: str, monkeypatch: pytest.MonkeyPatch):
    def fail(*_: Any, **__: Any) -> None:
        raise MemoryError

    monkeypatch.setattr(mf, "marginals", fail)
    assert run("infer", bif) == (1, "", "error: the computation ran out of memory\n")


def test_a_bug_keeps_its_traceback(bif: str, monkeypatch: pytest.MonkeyPatch):
    def fail(*_: Any, **__: Any) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(mf, "marginals", fail)
    with pytest.raises(ZeroDivisionError):
        main(["infer", bif])


# ---- explain, sample, the rest ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("task", "verb"), [("MAR", "marginals"), ("pr", "log_partition"), ("SAMPLE", "sample")])
def test_explain(run: Any, bif: str, task: str, verb: str):
    words = ("explain", bif, "--task", task, "--method", "junction_tree", "-e", "quake=no")
    status, out, _ = run(*words)
    assert status == 0
    expected = mf.explain(mf.io.read_bif(bif), verb, evidence={"quake": "no"}, method="junction_tree")
    for label, _ in expected.rows():
        assert label in out
    status, out, _ = run(*words, "--json")
    assert status == 0
    assert json.loads(out) == expected.to_dict()


def test_explain_of_marginal_map(run: Any, bif: str):
    words = ("explain", bif, "--task", "MMAP", "-q", "quake", "--method", "junction_tree", "--json")
    status, out, _ = run(*words)
    assert status == 0
    expected = mf.explain(mf.io.read_bif(bif), "decode", method="junction_tree", variables=["quake"])
    assert json.loads(out) == expected.to_dict()


def test_explain_says_what_does_not_fit(run: Any, bif: str):
    status, out, _ = run("explain", bif, "--method", "junction_tree", "--memory-limit", "10", "--json")
    assert status == 0
    assert json.loads(out)["fits"] is False


def test_sample(run: Any, bif: str, tmp_path: Path):
    status, out, _ = run("sample", bif, "--size", "50", "--seed", "1", "-e", "quake=yes")
    lines = out.splitlines()
    assert status == 0
    assert lines[0] == "burglary,quake,alarm" and len(lines) == 51
    assert all(line.split(",")[1] == "yes" for line in lines[1:])
    assert out == run("sample", bif, "--size", "50", "--seed", "1", "-e", "quake=yes")[1]
    target = tmp_path / "drawn.csv"
    status, nothing, err = run("sample", bif, "-n", "50", "--seed", "1", "-e", "quake=yes", "-o", str(target))
    assert (status, nothing) == (0, "") and "wrote 50 samples" in err
    assert target.read_text() == out


def test_many_samples_and_none(run: Any, bif: str):
    assert len(run("sample", bif, "-n", "10000")[1].splitlines()) == 10001
    assert run("sample", bif, "-n", "0")[1] == "burglary,quake,alarm\n"


def test_help_and_version(run: Any):
    assert run("--version") == (0, f"markovfield {mf.__version__}\n", "")
    for words in ([], ["--help"], ["infer", "-h"], ["explain", "--help"], ["sample", "-h"], ["demo", "--help"]):
        status, out, _ = run(*words)
        assert status == 0 and "Usage" in out


def test_the_installed_command():
    code = "import sys; from markovfield.cli import main; sys.exit(main())"
    done = subprocess.run(
        [sys.executable, "-c", code, "infer", "none.uai"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "error: there is no file none.uai\n"


def test_a_reader_who_has_seen_enough(bif: str):
    code = "import sys; from markovfield.cli import main; sys.exit(main())"
    command = [sys.executable, "-c", code, "sample", bif, "-n", "50000"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stderr is not None
        assert process.stdout.readline() == "burglary,quake,alarm\n"
        process.stdout.close()
        assert process.stderr.read() == ""


# ---- progress -----------------------------------------------------------------------------------------------------


def waiting(terminal: bool, delay: float) -> str:
    buffer = io.StringIO()
    with ProgressLine("work", Console(file=buffer, force_terminal=terminal, width=80), delay=delay) as shown:
        shown.callback(Progress(3, 0.1))
        time.sleep(0.3)
    return buffer.getvalue()


def test_progress_is_for_people_who_wait():
    assert "work: step 3" in waiting(True, 0.0) or "compiling" in waiting(True, 0.0)
    assert waiting(True, 5.0) == ""
    assert waiting(False, 0.0) == ""


@pytest.mark.parametrize("method", ["bp", "trw", "meanfield", "minibucket", "gbp"])
def test_approximate_methods_say_what_they_promise(run: Any, uai: str, method: str):
    status, out, _ = run("infer", uai, "--task", "PR", "--method", method, "--json")
    body = json.loads(out)
    exact = json.loads(run("infer", uai, "--task", "PR", "--method", "enumeration", "--json")[1])["log10_partition"]
    low, high = body["log10_partition_bounds"]
    assert status == 0 and (low is None or low <= exact + 1e-9) and (high is None or high >= exact - 1e-9)
    status, out, _ = run("infer", uai, "--task", "PR", "--method", method)
    assert status == 0 and body["guarantee"] in out
