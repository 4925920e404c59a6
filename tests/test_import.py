"""Importing the package costs little more than NumPy."""

from __future__ import annotations

import subprocess
import sys

HEAVY = ["numba", "scipy", "networkx", "sklearn", "matplotlib", "pandas", "torch", "rich", "typer"]


def run(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_nothing_heavy_is_loaded():
    found = run(f"import sys, markovfield; print([m for m in {HEAVY!r} if m in sys.modules])")
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
