"""Kernels as plain Python: the answers of compiled code, and compiled code wherever plain Python cannot do it."""

import os
import subprocess
import sys

import numpy as np
import pytest

from markovfield import settings
from markovfield.kernels import interpreter
from markovfield.kernels.compiler import kernel

# A process that finds nothing compiled: every verb on random models, against enumeration, and nothing is compiled.
SCRIPT = """
import numpy as np
import markovfield as mf
from markovfield.kernels import compilations, interpreter

rng = np.random.default_rng(1)
for trial in range(12):
    n = 5 + trial % 3
    cards = {f"x{i}": int(rng.integers(2, 4)) for i in range(n)}
    net = mf.MarkovNetwork(cards)
    for f in range(n + 2):
        scope = [f"x{i}" for i in rng.choice(n, int(rng.integers(1, 4)), replace=False)]
        table = rng.normal(size=[cards[v] for v in scope]) * 10.0 ** rng.integers(-1, 2)
        table[rng.random(table.shape) < (0.1 if trial % 2 else 0.0)] = -np.inf
        net.add_factor(scope, log_table=table)
    if trial % 4 == 3:
        net.add_clause({"x0": 1, "x1": 0}, {"x2": 1}, weight=1.5)
    best = mf.decode(net, method="enumeration").assignment
    for evidence in (None, {"x0": best["x0"]}, {"x1": rng.random(cards["x1"]) + 0.1}):
        exact = mf.marginals(net, evidence, method="enumeration")
        ours = mf.marginals(net, evidence, method="junction_tree")
        assert np.isclose(exact.log_partition, ours.log_partition, rtol=1e-12, atol=1e-9)
        assert np.allclose(exact.values, ours.values, atol=1e-9)
        assert np.allclose(exact.joint(["x0", "x2"]), ours.joint(["x0", "x2"]), atol=1e-9)
        found = mf.decode(net, evidence, n_best=3, method="junction_tree").n_best
        scores = [s.score for s in mf.decode(net, evidence, n_best=3, method="enumeration").n_best]
        assert np.allclose(scores, [s.score for s in found], rtol=1e-12, atol=1e-9)
        assert len(mf.sample(net, 20, evidence, "junction_tree", rng=0)) == 20
    rows = np.full((3, n), -1)
    batch = mf.methods.JunctionTree.compile(net).run_batch(rows)
    assert np.allclose(batch.values[1], mf.marginals(net, method="enumeration").values, atol=1e-9)
assert compilations.seconds_compiling() == 0.0, "plain Python gave up"
assert interpreter._spent[0] > 0.0
print(mf.sample(net, 20, method="junction_tree", rng=0).states.tolist())
"""


def _python(code, **environment):
    everything = {**os.environ, **environment}
    done = subprocess.run([sys.executable, "-c", code], env=everything, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done


def test_a_machine_without_compiled_kernels_gets_the_same_answers(tmp_path):
    cold = _python(SCRIPT, NUMBA_CACHE_DIR=str(tmp_path), MARKOVFIELD_INTERPRET_SMALL_WORK="1")
    assert not cold.stderr
    # Draws too: the streams are the same.
    only_draws = SCRIPT.replace("assert compilations", "# ").replace("assert interpreter", "# ")
    assert cold.stdout == _python(only_draws, MARKOVFIELD_INTERPRET_SMALL_WORK="0").stdout


@kernel
def _product(numbers, log):
    log[0] += 1
    total = numbers[0]
    for i in range(1, len(numbers)):
        total *= numbers[i]
    return total


@kernel
def _inverse(x, log):
    log[0] += 1
    total = 0.0
    if x > 1.0:
        total += x
    return 1.0 / total


@kernel
def _twice(numbers, log):
    log[0] += 1
    return _product(numbers, log) * 2


@pytest.fixture
def cold(monkeypatch):
    monkeypatch.setattr(settings, "interpret_small_work", True)
    monkeypatch.setattr(interpreter, "_on_disk", lambda compiled: False)
    monkeypatch.setattr(interpreter, "_spent", [0.0])


def test_small_work_is_not_compiled(cold):
    log = np.zeros(1, np.int64)
    with interpreter.small(10.0):
        assert _twice(np.array([2, 3], np.int16), log) == 12
    assert log[0] == 2
    assert not _twice.overloads
    assert not _product.overloads
    assert interpreter._spent[0] > 0.0


def test_an_overflow_is_not_an_answer(cold):
    log = np.zeros(1, np.int64)
    with interpreter.small(10.0):
        assert _product(np.array([2**20, 2**20], np.int32), log) == 2**40
    assert log[0] == 1, "what plain Python wrote before it gave up was not put back"
    assert len(_product.overloads) == 1


def test_division_by_zero_is_what_compiled_code_makes_of_it(cold):
    log = np.zeros(1, np.int64)
    with interpreter.small(10.0):
        assert _inverse(0.5, log) == np.inf
    assert log[0] == 1


def test_large_work_and_a_spent_budget_are_compiled(cold, monkeypatch):
    log = np.zeros(1, np.int64)
    with interpreter.small(10.0 * interpreter.STEPS):
        _product(np.array([2, 3], np.uint8), log)
    assert len(_product.signatures) == len(_product.overloads) >= 1
    before = len(_product.overloads)
    monkeypatch.setattr(interpreter, "_spent", [interpreter.SECONDS])
    with interpreter.small(10.0):
        _product(np.array([2, 3], np.uint16), log)
    assert len(_product.overloads) == before + 1


def test_small_work_ends_with_its_block():
    assert not interpreter.is_small()
    with interpreter.small(1.0):
        assert interpreter.is_small()
        with interpreter.small(1e12):
            assert not interpreter.is_small()
        assert interpreter.is_small()
    assert not interpreter.is_small()
