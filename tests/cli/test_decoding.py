"""The decode command: proofs, gaps, files, JSON, errors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import markovfield as mf
from markovfield.cli import main


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("COLUMNS", "120")

    def call(*words: str) -> tuple[int, str, str]:
        capsys.readouterr()
        status = main(list(words))
        seen = capsys.readouterr()
        return status, seen.out, seen.err

    return call


def network(n: int = 8) -> mf.MarkovNetwork:
    rng = np.random.default_rng(0)
    net = mf.MarkovNetwork(dict.fromkeys(range(n), 3))
    for i in range(n):
        for j in range(i):
            net.add_factor([i, j], log_table=-rng.integers(0, 9, size=(3, 3)).astype(float))
    return net


@pytest.fixture
def wcsp(tmp_path: Path) -> str:
    path = tmp_path / "costs.wcsp"
    mf.io.write_wcsp(network(), path)
    return str(path)


def test_a_cost_network_is_solved(run: Any, wcsp: str):
    best = mf.decode(network()).score
    status, out, err = run("decode", wcsp, "--time-limit", "20", "--json")
    body = json.loads(out)
    assert (status, err) == (0, "") and body["optimal"] and body["gap"] == 0
    assert body["score"] == pytest.approx(best) and body["upper_bound"] == pytest.approx(best)
    assert network().compile().score({int(v): s for v, s in body["assignment"].items()}) == pytest.approx(best)
    status, out, _ = run("decode", wcsp)
    assert status == 0 and "proven optimal" in out and f"score {best:g}" in out


@pytest.mark.parametrize("method", ["branch_and_bound", "trws", "icm", "integer_program", "portfolio"])
def test_methods_and_what_they_prove(run: Any, wcsp: str, method: str):
    best = mf.decode(network()).score
    status, out, _ = run("decode", wcsp, "--method", method, "--json", "--seed", "0", "--time-limit", "20")
    body = json.loads(out)
    assert status == 0 and body["method"] == method
    assert body["upper_bound"] is None or body["upper_bound"] >= best - 1e-6
    assert body["optimal"] == (body["gap"] is not None and body["gap"] <= 1e-6)
    if method == "icm":
        assert "nothing is proven" in run("decode", wcsp, "--method", "icm")[1]


def test_several_best_and_files(run: Any, wcsp: str, tmp_path: Path):
    status, out, _ = run("decode", wcsp, "-n", "3", "--json")
    scores = [s["score"] for s in json.loads(out)["n_best"]]
    assert status == 0 and scores == sorted(scores, reverse=True) and len(scores) == 3
    assert "2. cost" in run("decode", wcsp, "-n", "2")[1]
    solution, result = tmp_path / "best.sol", tmp_path / "best.MPE"
    assert run("decode", wcsp, "-o", str(solution))[0] == 0
    states = np.array(solution.read_text().split(), int)
    assert network().compile().score(states) == pytest.approx(scores[0])
    assert run("decode", wcsp, "-o", str(result))[0] == 0
    assert mf.io.read_uai_result(result).task == "MPE"


def test_marginal_map(run: Any, wcsp: str):
    status, out, _ = run("decode", wcsp, "--variables", "0,3", "--json")
    body = json.loads(out)
    exact = mf.decode(network(), variables=[0, 3])
    assert status == 0 and body["score"] == pytest.approx(exact.score) and set(body["assignment"]) == {"0", "3"}


@pytest.mark.parametrize(
    ("words", "match"),
    [
        (("absent.wcsp",), "there is no file absent.wcsp"),
        (("COSTS", "--method", "tws"), "did you mean 'trws'"),
        (("COSTS", "--method", "icm", "-n", "2"), "not the 2 best"),
        (("COSTS", "-e", "0=7"), "7"),
    ],
)
def test_errors(run: Any, wcsp: str, words: tuple[str, ...], match: str):
    status, out, err = run("decode", *(wcsp if w == "COSTS" else w for w in words))
    assert status == 2 and not out and match in " ".join(err.split())
