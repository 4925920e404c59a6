"""Layouts by graphviz: what is asked of the program, how its answer is read, and what happens when it fails."""

from __future__ import annotations

import stat
import sys
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
from matplotlib.patches import FancyArrowPatch

import markovfield as mf
from markovfield import plot
from markovfield.plot._graphviz import find_dot, graphviz

# Puts node i at (i, 2 i) inches and draws edges as one straight piece; nodes and edges are listed backwards.
STAND_IN = """
import re, sys
text = sys.stdin.read()
open(sys.argv[0] + ".asked", "w").write(" ".join(sys.argv[1:]) + "\\n" + text)
nodes = sorted({int(i) for i in re.findall(r"^n(\\d+) \\[", text, re.M)}, reverse=True)
print("graph 1", len(nodes), 2 * len(nodes))
for i in nodes:
    print(f'node n{i} {i} {2 * i} 0.5 0.25 "" solid box black lightgrey')
for a, b in reversed(re.findall(r"^n(\\d+) -> n(\\d+);", text, re.M)):
    a, b = int(a), int(b)
    points = [f"{a + (b - a) * t / 3} {2 * (a + (b - a) * t / 3)}" for t in range(4)]
    print(f"edge n{a} n{b} 4 {' '.join(points)} solid black")
print("stop")
"""


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Put a program called dot on an otherwise empty path."""

    def write(source: str) -> Path:
        program = tmp_path / "dot"
        program.write_text(f"#!{sys.executable}\n{source}")
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
        monkeypatch.setenv("PATH", str(tmp_path))
        return program

    return write


@pytest.fixture
def nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))


def test_the_layout_is_read_in_points(install):
    program = install(STAND_IN)
    centres, curves, width, height = graphviz([(36.0, 18.0)] * 3, [(0, 2), (1, 2), (0, 2)], layers=True)
    assert centres == [(0.0, 0.0), (72.0, 144.0), (144.0, 288.0)]
    assert (width, height) == (216.0, 432.0)
    np.testing.assert_allclose(curves[1], [(72.0, 144.0), (96.0, 192.0), (120.0, 240.0), (144.0, 288.0)])
    assert curves[0] == curves[2] and curves[0][0] == (0.0, 0.0)
    asked = Path(f"{program}.asked").read_text()
    assert asked.startswith("-Kdot -Tplain\ndigraph") and "n0 [width=0.5000 height=0.2500];" in asked
    graphviz([(36.0, 18.0)] * 2, [(0, 1)], layers=False)
    assert Path(f"{program}.asked").read_text().startswith("-Kneato")


def test_auto_takes_graphviz_where_it_is_installed(install):
    program = install(STAND_IN)
    ax = plot.graph(mf.datasets.diagnosis_network())
    assert Path(f"{program}.asked").exists()
    assert len([p for p in ax.patches if isinstance(p, FancyArrowPatch)]) == 16
    assert ax.texts[1].get_position() == (72.0, 144.0)
    Path(f"{program}.asked").unlink()
    again = plot.graph(mf.datasets.diagnosis_network(), layout="layered")
    assert not Path(f"{program}.asked").exists()
    assert again.texts[1].get_position() != (72.0, 144.0)


def test_auto_does_without_graphviz(nowhere: None):
    assert find_dot() is None
    ax = plot.graph(nx.DiGraph([("a", "b")]))
    assert [t.get_text() for t in ax.texts] == ["a", "b"]


def test_graphviz_must_be_there_when_asked_for(nowhere: None):
    with pytest.raises(mf.ModelError, match="needs the program dot of graphviz, which is not on the path"):
        plot.graph(nx.DiGraph([("a", "b")]), layout="graphviz")


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("import sys; print('syntax error', file=sys.stderr); sys.exit(3)", "failed with code 3: syntax error"),
        ("import sys; sys.exit(1)", "failed with code 1: it did not say why"),
        ("print('graph 1 2')", "cannot be read"),
        ("print('graph 1 2 2'); print('node n0 x 1'); print('stop')", "cannot be read"),
        ("print('graph 1 2 2')", "cannot be read"),
        ("print('graph 1 1 1\\nnode n0 0 0\\nnode n1 0 0\\nedge n0 n1 3 0 0 1 1 2 2')", "an edge has 3 points"),
        ("print('graph 1 1 1\\nnode n0 0 0\\nnode n1 0 0\\nedge n0 n1 99999999 0 0')", "an edge has 1 points"),
        ("print('node \"n0')", "cannot be read"),
    ],
)
def test_a_failing_program_is_one_sentence_when_asked_for_and_silent_otherwise(install, source: str, message: str):
    install(source)
    graph = nx.DiGraph([("a", "b")])
    with pytest.raises(mf.ModelError, match=message):
        plot.graph(graph, layout="graphviz")
    assert [t.get_text() for t in plot.graph(graph).texts] == ["a", "b"]


def test_a_hanging_program_is_stopped(install):
    install("import time; time.sleep(60)")
    with pytest.raises(mf.ModelError, match=r"did not finish a layout of 2 nodes in 0\.3 s"):
        graphviz([(36.0, 18.0)] * 2, [(0, 1)], layers=True, time_limit=0.3)


def test_a_program_that_cannot_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    program = tmp_path / "dot"
    program.write_text("#!/nonexistent/interpreter\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(mf.ModelError, match="could not be run"):
        graphviz([(36.0, 18.0)], [], layers=True)
