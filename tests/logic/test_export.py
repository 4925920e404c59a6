"""Ground networks in files of other programs: the same log Z and best score when they are read back."""

from __future__ import annotations

import pytest

import markovfield as mf
from markovfield.cli import main
from tests.logic.test_semantics import evidence_text, knowledge_base, random_program

PROGRAM = """p = {Anna, Bob, Carl}
Friends(p, p)
Smokes(p)
Likes(p, thing!)
thing = {Tea, Beer}
1.5 Smokes(x)
1.1 Friends(x, y) => (Smokes(x) <=> Smokes(y))
-0.4 Likes(x, Beer) ^ Smokes(x)
EXIST y Friends(x, y).
"""


@pytest.mark.parametrize("ending", ["uai", "wcsp", "cfn"])
def test_random_programs(ending, tmp_path):
    tried = 0
    for seed in range(40):
        rules, known, closed, determined, soft = random_program(seed)
        try:
            world = knowledge_base(rules, determined).ground(evidence_text(known, soft), closed=closed)
            best = mf.decode(world).score
        except mf.ImpossibleEvidenceError:
            continue
        path = tmp_path / f"model.{ending}"
        mf.write(world.compile(), path, **({} if ending == "uai" else {"decimals": 6}))
        again = mf.read(path)
        scale = 1e6 if ending == "wcsp" else 1.0  # costs there are integers
        # Each factor is rounded by itself.
        close = 1e-9 if ending == "uai" else 1e-6 * (world.compile().n_factors + 1)
        assert mf.decode(again).score / scale == pytest.approx(best, abs=close)
        if ending != "wcsp":
            found = mf.log_partition(again).log_partition
            assert found == pytest.approx(mf.log_partition(world).log_partition, abs=close)
        tried += 1
    assert tried > 20


@pytest.mark.parametrize("ending", ["uai", "wcsp", "cfn"])
def test_by_the_command_line(ending, tmp_path, capsys):
    (tmp_path / "prog.mln").write_text(PROGRAM)
    (tmp_path / "ev.db").write_text("Friends(Anna, Bob)\nSmokes(Anna)\n0.3 Likes(Carl, Tea)\n")
    out = tmp_path / f"model.{ending}"
    words = [str(tmp_path / "prog.mln"), "-e", str(tmp_path / "ev.db"), "--out", str(out)]
    assert main(["logic", "ground", *words, "--decimals", "7"]) == 0
    assert "wrote" in capsys.readouterr().out
    world = mf.logic.read(tmp_path / "prog.mln").ground(tmp_path / "ev.db")
    again, scale = mf.read(out), 1e7 if ending == "wcsp" else 1.0
    assert mf.decode(again).score / scale == pytest.approx(mf.decode(world).score, abs=1e-5)
    if ending != "wcsp":
        assert float(mf.log_partition(again)) == pytest.approx(float(mf.log_partition(world)), abs=1e-5)
