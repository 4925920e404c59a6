"""Importing the package costs little more than NumPy."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = ["numba", "scipy", "networkx", "sklearn", "matplotlib", "pandas", "torch", "rich", "typer"]


def run(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_nothing_heavy_is_loaded():
    found = run(f"import sys, markovfield; print([m for m in {HEAVY!r} if m in sys.modules])")
    assert found == "[]"


def test_the_command_line_loads_nothing_that_help_does_not_need():
    heavy = [name for name in HEAVY if name not in {"rich", "typer", "numba", "scipy"}] + ["scipy.stats"]
    found = run(f"import sys, markovfield.cli.app; print([m for m in {heavy!r} if m in sys.modules])")
    assert found == "[]"


def test_building_a_model_loads_nothing_heavy():
    code = (
        "import sys, markovfield as mf; net = mf.MarkovNetwork({'A': 2, 'B': 2});"
        "net.add_factor(['A', 'B'], [[1, 2], [3, 4]]); net.compile();"
        f"print([m for m in {HEAVY!r} if m in sys.modules])"
    )
    assert run(code) == "[]"


def test_a_textbook_model_never_pays_for_the_compiler():
    code = (
        "import sys, markovfield as mf; net = mf.MarkovNetwork({'A': 2, 'B': 2});"
        "net.add_factor(['A', 'B'], [[1, 2], [3, 4]]); mf.marginals(net); mf.decode(net);"
        "print('numba' in sys.modules)"
    )
    assert run(code) == "False"


def test_importing_costs_less_than_numpy():
    """A few hundredths of a second beside a tenth; CPU time, as a ratio, whatever else the machine does."""
    clock = "time.process_time()"
    code = f"import time; a = {clock}; import numpy; b = {clock}; import markovfield; print(({clock} - b) / (b - a))"
    assert min(float(run(code)) for _ in range(5)) < 1.0


def test_every_public_name_resolves():
    code = "import markovfield as mf; print([n for n in mf.__all__ if getattr(mf, n, None) is None])"
    assert run(code) == "[]"


def test_an_unknown_name():
    code = "import markovfield as mf\ntry: mf.nothing\nexcept AttributeError as error: print(error)"
    assert run(code) == "module 'markovfield' has no attribute 'nothing'"


@pytest.mark.parametrize(
    ("name", "place"),
    [
        ("JunctionTree", "methods"),
        ("read_uai", "io"),
        ("read_network", "io"),
        ("spans", "sequence"),
        ("EditModel", "sequence"),
        ("Counts", "answers"),
        ("Progress", "answers"),
    ],
)
def test_a_name_that_moved_tells_where_it_is(name: str, place: str):
    code = f"import markovfield as mf\ntry: getattr(mf, {name!r})\nexcept AttributeError as error: print(error)"
    assert run(code) == f"mf.{name} is mf.{place}.{name}"


def test_every_name_of_every_namespace_resolves():
    code = (
        "import markovfield as mf\nfrom markovfield._exports import EXPORTS, names_in\n"
        "spaces = [n for n, m in EXPORTS.items() if m == 'markovfield.' + n]\n"
        "bad = [(s, n) for s in spaces for n in names_in(s) if not hasattr(getattr(mf, s), n)]\n"
        "print(len(EXPORTS) - len(spaces), bad)"
    )
    count, _, missing = run(code).partition(" ")
    assert missing == "[]" and int(count) <= 70


def test_listing_a_namespace_imports_nothing_heavy():
    code = "import sys, markovfield as mf; dir(mf), dir(mf.sequence), dir(mf.learning); print('numba' in sys.modules)"
    assert run(code) == "False"


def test_names_can_be_imported_from_their_namespace():
    code = "from markovfield.methods import TRWS; from markovfield.sequence import TokenFeatures; print(TRWS.__name__)"
    assert run(code) == "TRWS"
