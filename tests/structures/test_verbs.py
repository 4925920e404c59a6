"""Verbs of structures beyond what every form is held to: events, and answers before anything is compiled."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

import markovfield as mf
from markovfield.exceptions import ModelError

# A process that finds nothing compiled asks every form everything, and compiles nothing.
SCRIPT = """
import numpy as np
import markovfield as mf
from markovfield.kernels import compilations
from tests.structures.test_conformance import CASES

for case in CASES:
    form = case.make(np.random.default_rng(0))
    answer = mf.marginals(form)
    best = mf.decode(form, n_best=3)
    print(case.name, round(float(answer), 8), [round(float(v.sum()), 8) for v in answer.values.values()])
    print([case.key(one.structure) for one in best.n_best], mf.decode(form).score.__round__(8), form.n_structures())
    print(case.key(mf.decode(form, loss="parts").structure))
    if answer.guarantee == "exact":
        print([case.key(one) for one in mf.sample(form, 5, rng=0).structures])
if cold:
    assert compilations.seconds_compiling() == 0.0, "plain Python gave up"
"""


def _printed(cold: bool, **environment: str) -> str:
    code = f"cold = {cold}\n{SCRIPT}"
    done = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, **environment}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_small_structures_are_answered_for_before_anything_is_compiled(tmp_path):
    plain = _printed(True, NUMBA_CACHE_DIR=str(tmp_path), MARKOVFIELD_INTERPRET_SMALL_WORK="1")
    assert plain == _printed(False, MARKOVFIELD_INTERPRET_SMALL_WORK="0")


def test_the_probability_of_parts():
    rng = np.random.default_rng(0)
    trees = mf.structures.SpanningTree(rng.normal(size=(5, 5)))
    arcs = mf.marginals(trees)["arcs"]
    assert mf.probability(trees, {"arcs": {(2, 1): True}}) == pytest.approx(arcs[2, 1])
    assert mf.probability(trees, {"arcs": {(2, 1): False}}) == pytest.approx(1.0 - arcs[2, 1])
    # The rule of products, and what cannot be.
    both = {"arcs": {(2, 1): True, (3, 2): True}}
    given = mf.probability(trees, {"arcs": {(3, 2): True}}, {"arcs": {(2, 1): True}})
    assert mf.probability(trees, both) == pytest.approx(arcs[2, 1] * given)
    assert mf.probability(trees, {"arcs": {(2, 1): True}}, {"arcs": {(1, 2): True}}) == 0.0
    assert mf.probability(trees, {"arcs": {(2, 1): True}}, {"arcs": {(2, 1): False}}) == 0.0
    assert mf.probability(trees, {}) == 1.0
    segments = mf.structures.SemiMarkov(rng.normal(size=(4, 2, 2)), rng.normal(size=(2, 2)))
    p = mf.marginals(segments)["segments"]
    assert mf.probability(segments, {"segments": {(1, 1, 0): True}}) == pytest.approx(p[1, 1, 0])


def test_probabilities_that_are_not_there():
    trees = mf.structures.SpanningTree(np.zeros((3, 3)))
    with pytest.raises(ModelError, match="evidence names 'arc'"):
        mf.probability(trees, {"arc": {(0, 1): True}})
    with pytest.raises(ModelError, match=r"must be True or False, got 1\.5"):
        mf.probability(trees, {"arcs": {(0, 1): 1.5}})
    with pytest.raises(ModelError, match="of this Matching are bounds"):
        mf.probability(mf.structures.Matching(np.zeros((30, 30))), {"links": {(0, 1): True}})
