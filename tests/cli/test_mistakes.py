"""The command line as somebody mistypes it: one clear sentence, the right exit code, nothing lost."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import markovfield as mf
from markovfield.cli import main
from markovfield.lattice.simulation import LatticeSimulation

MODEL = "MARKOV\n2\n2 2\n1\n2 0 1\n4\n1 2 3 4\n"


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Obey a line of words in a folder with a few files."""
    (tmp_path / "m.uai").write_text(MODEL)
    (tmp_path / "words.txt").write_text("the D\ndog N\n\na D\ncat N\n")
    (tmp_path / "t.csv").write_text("A,B\n0,1\n1,0\n1,1\n0,0\n")
    (tmp_path / "folder.png").mkdir()
    monkeypatch.chdir(tmp_path)

    def call(line: str) -> tuple[int, str, str]:
        status = main(line.split())
        out, err = capsys.readouterr()
        return status, out, err

    return call


@pytest.mark.parametrize(
    ("line", "status", "said"),
    [
        # A remedy is something that this command has.
        (
            "lattice ising --size 33 --method gibbs",
            2,
            "sides of even length for it, got 33: take another --size, --free, or --m",
        ),
        (
            "lattice potts --size 32x33 --method metropolis",
            2,
            "metropolis updates a checkerboard, and periodic borders need",
        ),
        ("lattice ising --size 2", 2, "sides of at least 3, got 2: take --free"),
        ("lattice ising --size 8 --time-limit 0", 2, "--time-limit must be positive, got 0"),
        ("lattice ising --size 8 --time-limit nan", 2, "--time-limit must be positive, got nan"),
        ("lattice ising --size 8 --coupling nan", 2, "coupling=...) must be finite numbers, got nan"),
        ("lattice ising --size 8 --n-jobs 0", 2, "n_jobs must be at least 1, got 0"),
        ("infer m.uai --task PRR", 2, "error: invalid value for '--task': 'PRR' is not one of"),
        ("lattice ising --siz 8", 2, "no such option: --siz"),
        ("lattice ising --size 8 --out x.bmp", 2, "the output's name ends in .png"),
        # What cannot be written is said before the work.
        ("lattice ising --size 8 --out none/x.png", 2, "cannot write none/x.png: there is no folder none"),
        ("lattice ising --size 8 --out folder.png", 2, "cannot write folder.png: it is a folder"),
        ("sample m.uai --out none/x.csv", 2, "cannot write none/x.csv: there is no folder none"),
        ("decode m.uai --out none/x", 2, "cannot write none/x: there is no folder none"),
        ("infer m.uai --out none/x", 2, "cannot write none/x: there is no folder none"),
        ("draw m.uai --out none/x.png", 2, "cannot write none/x.png: there is no folder none"),
        ("learn t.csv --out none/x.bif", 2, "cannot write none/x.bif: there is no folder none"),
        ("learn t.csv --out x.foo", 2, "models are written to names that end in .bif"),
        ("crf train words.txt -m none/x", 2, "cannot write none/x: there is no folder none"),
        ("decode m.uai -q 0 --out x.sol", 2, "a .sol file holds all variables"),
        # Numbers out of range, words that are none.
        ("sample m.uai -n -5", 2, "greater than or equal to 0"),
        ("sample m.uai -n 100000000000", 1, "ran out of memory: unable to allocate 745. GiB"),
        ("sample m.uai --memory-limit 0", 2, "memory_limit must be a number of bytes or like '4GiB', got '0'"),
        ("decode m.uai --time-limit -1", 2, "time_limit must be positive, got -1.0"),
        ("decode m.uai --method gibs", 2, "there is no method 'gibs' for 'decode'"),
        ("crf train words.txt -m x --encoding nonsense", 2, "there is no text encoding 'nonsense'"),
        ("crf train words.txt -m x --format crfsuite", 2, "words.txt has no attributes: lines of --format crfsuite"),
        ("crf train words.txt -m x --time-limit nan", 2, "time_limit must be a number, got nan"),
        ("learn t.csv --structure pc --alpha nan", 2, "alpha of PC must be a number, got nan"),
    ],
)
def test_one_sentence(run: Any, tmp_path: Path, line: str, status: int, said: str) -> None:
    before = sorted(p.name for p in tmp_path.iterdir())
    got, out, err = run(line)
    assert (got, out) == (status, "")
    assert err.startswith("error: ")
    assert said in err
    assert err.count("\n") == 1
    assert sorted(p.name for p in tmp_path.iterdir()) == before


@pytest.mark.parametrize("name", ["x.PNG", "x.svg", "x.gif", "x.NPZ"])
def test_endings_in_any_case(run: Any, tmp_path: Path, name: str) -> None:
    assert run(f"lattice ising --size 8 --sweeps 5 --seed 1 --frames 2 --out {name}")[0] == 0
    assert (tmp_path / name).stat().st_size > 0


@pytest.mark.parametrize("line", ["lattice ising --size 8 --sweeps 5 --out x.png", "draw m.uai --out x.png"])
def test_pictures_are_written_whole_or_not_at_all(
    run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str
) -> None:
    pytest.importorskip("matplotlib")
    from matplotlib.figure import Figure

    def half(self: Any, stream: Any, **_: Any) -> None:
        stream.write(b"half")
        raise OSError(28, "No space left on device")

    (tmp_path / "x.png").write_bytes(b"old")
    monkeypatch.setattr(Figure, "savefig", half)
    status, _, err = run(line)
    assert status == 2
    assert "cannot write x.png: no space left on device" in err
    assert (tmp_path / "x.png").read_bytes() == b"old"
    assert not list(tmp_path.glob(".*.tmp"))


class Interrupted(LatticeSimulation):
    """A simulation in whose second run Ctrl-C is pressed, after some sweeps."""

    def run(self, sweeps: int, **keywords: Any) -> Any:
        self.runs = getattr(self, "runs", 0) + 1
        if self.runs == 2:
            super().run(sweeps // 2)
            raise KeyboardInterrupt
        return super().run(sweeps, **keywords)


@pytest.mark.parametrize("name", ["x.npz", "x.gif"])
def test_ctrl_c_keeps_what_a_lattice_has(run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr(mf, "LatticeSimulation", Interrupted)
    line = f"lattice ising --size 8 --sweeps 100 --seed 1 --frames 3 --out {name}"
    status, out, err = run(line)
    assert status == 130
    assert "energy a site" in out
    assert f"wrote {name}" in out
    # In the second of ten turns; or in the second of ten turns of the first frame.
    made = 10 + 5 if name == "x.npz" else 5 + 2
    assert f"stopped after {made} of 100 sweeps" in err
    if name == "x.npz":
        assert len(np.load(tmp_path / name)["sweep"]) == made
        assert "the first 5 not measured" in " ".join(out.split())
    # A second time there is a whole file, as far as anybody knows.
    assert run(line)[0] == 130
    stem, ending = name.split(".")
    assert (tmp_path / f"{stem}.partial.{ending}").exists()
