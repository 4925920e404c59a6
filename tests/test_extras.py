"""What needs an extra that is not installed says so in one sentence, with the command that installs it."""

from __future__ import annotations

import inspect
import re
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

import markovfield as mf
from markovfield.cli import main
from markovfield.extras import EXTRAS, check_installed, installed, missing

ROOT = Path(__file__).resolve().parents[1]
DISTRIBUTIONS = {"PIL": "matplotlib"}  # pillow comes with matplotlib
SAID = r'needs \w+, which is not installed: pip install "markovfield\[{}\]"'


def without(monkeypatch: pytest.MonkeyPatch, extra: str) -> None:
    for package, belongs in EXTRAS.items():
        if belongs == extra:
            monkeypatch.setitem(sys.modules, package, None)


def test_packages_are_those_of_the_extras():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    for package, extra in EXTRAS.items():
        assert any(re.match(DISTRIBUTIONS.get(package, package) + r"\b", text) for text in extras[extra]), package


@pytest.mark.parametrize("name", mf.plot.__all__)
def test_every_picture_says_what_it_needs(name: str, monkeypatch: pytest.MonkeyPatch):
    without(monkeypatch, "plot")
    draw = getattr(mf.plot, name)
    wanted = [p for p in inspect.signature(draw).parameters.values() if p.default is p.empty and p.kind < 2]
    with pytest.raises(ImportError, match=SAID.format("plot")):
        draw(*[object()] * len(wanted))  # before it looks at anything


@pytest.mark.parametrize(
    ("extra", "ask"),
    [
        ("plot", lambda net: mf.marginals(net).plot()),
        ("plot", lambda net: net.plot()),
        ("logic", lambda net: mf.MarkovLogic("P(x)  1 P(x)")),
        ("logic", lambda net: mf.MarkovLogic("P(x)").ground("P(A)")),
        ("exact", lambda net: mf.decode(net, method="toulbar2")),
        ("exact", lambda net: mf.graphs.elimination_order(mf.graphs.moralize(net.to_networkx()), method="cotengra")),
        ("explore", lambda net: mf.explore(net, open_browser=False)),
    ],
)
def test_calls_say_what_they_need(extra: str, ask: Any, monkeypatch: pytest.MonkeyPatch):
    without(monkeypatch, extra)
    with pytest.raises(ImportError, match=SAID.format(extra)):
        ask(mf.datasets.asia())


@pytest.mark.parametrize(
    ("extra", "line"),
    [
        ("plot", "demo"),
        ("plot", "draw asia.bif --out x.svg"),
        ("plot", "lattice ising --size 8 --out x.png"),
        ("plot", "lattice ising --size 8 --out x.gif"),
        ("logic", "logic infer p.mln"),
        ("exact", "decode asia.bif --method toulbar2"),
        ("explore", "explore asia.bif --no-browser"),
    ],
)
def test_commands_say_what_they_need(
    extra: str, line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
):
    monkeypatch.chdir(tmp_path)
    mf.write(mf.datasets.asia(), "asia.bif")
    Path("p.mln").write_text("Smokes(person)\n1 Smokes(x)\n")
    without(monkeypatch, extra)
    assert main(line.split()) == 1
    shown = capsys.readouterr()
    assert not shown.out and shown.err.count("\n") == 1
    assert re.search(SAID.format(extra), shown.err)
    assert len(list(tmp_path.iterdir())) == 2


def test_a_package_that_is_there():
    assert installed("numpy") and installed("json") and not installed("no_such_package_at_all")
    check_installed("nothing", "numpy")
    assert missing("a thing", "lark", "do without").name == "lark"
    assert str(missing("a thing", "lark", "do without")).endswith('"markovfield[logic]", or do without')
