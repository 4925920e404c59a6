"""What `.ci/wheel-test` asks of an installed wheel, in an environment without extras and without this checkout."""

from __future__ import annotations

import math
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import markovfield as mf


def without_extras() -> None:
    """Everything that needs an extra names the command that installs it, in one sentence."""
    net, program = mf.datasets.asia(), mf.MarkovLogic
    asked: dict[str, list[Callable[[], Any]]] = {
        "plot": [
            lambda: mf.plot.graph(net),
            lambda: mf.plot.spins([[1, -1]]),
            lambda: mf.marginals(net).plot(),
            lambda: mf.learn_structure({"a": [0, 1] * 9, "b": [0, 1] * 9}).plot(),
        ],
        "logic": [lambda: program("P(x)  1 P(x)"), lambda: program("P(x)").ground("P(A)")],
        "exact": [
            lambda: mf.decode(net, method="toulbar2"),
            lambda: mf.graphs.elimination_order(mf.graphs.moralize(net.to_networkx()), method="cotengra"),
        ],
        "explore": [lambda: mf.explore(net, open_browser=False)],
    }
    for extra, calls in asked.items():
        for call in calls:
            said = ""
            try:
                call()
            except ImportError as error:
                said = str(error)
            assert f'not installed: pip install "markovfield[{extra}]"' in said, said or f"{extra} is installed here"
    assert net._repr_html_().startswith("<table>"), "without matplotlib a model is a table"


def mistyped() -> None:
    """So do the commands, before they work for long."""
    from markovfield.cli import main as command

    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        mf.write(mf.datasets.asia(), "asia.bif")
        Path("p.mln").write_text("Smokes(person)\n1 Smokes(x)\n")
        for line in (
            "demo",
            "draw asia.bif --out x.png",
            "lattice ising --size 8 --out x.png",
            "logic infer p.mln",
            "decode asia.bif --method toulbar2",
            "explore asia.bif --no-browser",
        ):
            assert command(line.split()) == 1, line
        assert sorted(os.listdir(".")) == ["asia.bif", "p.mln"]
        os.chdir("/")


def main() -> None:
    folder = Path(mf.__file__).parent
    assert folder.parent.name == "site-packages", f"not the wheel, but {folder}"
    assert (folder / "py.typed").is_file() and (folder / "__init__.pyi").is_file()
    assert (folder / "explorer" / "static" / "index.html").is_file(), "the page of the explorer was left out"
    for name in mf.__all__:
        getattr(mf, name)
    net = mf.MarkovNetwork({"rain": ["no", "yes"], "wet": ["no", "yes"]})
    net.add_factor(["rain"], [4, 1])
    net.add_factor(["rain", "wet"], [[9, 1], [1, 9]])
    answer = mf.marginals(net, {"wet": "yes"}, method="junction_tree")
    assert math.isclose(answer.probability_of("rain", "yes"), 9 / 13), answer
    assert mf.decode(net, method="junction_tree").assignment == {"rain": "no", "wet": "no"}
    without_extras()
    mistyped()
    versions = {name: getattr(sys.modules.get(name), "__version__", "-") for name in ("numpy", "scipy", "numba")}
    sys.stdout.write(f"markovfield {mf.__version__} with {versions}\n")


if __name__ == "__main__":
    main()
