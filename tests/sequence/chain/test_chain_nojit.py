"""The chain kernels as plain Python: the JIT off, so that bounds are checked and coverage sees them."""

from __future__ import annotations

import os
import subprocess
import sys

SCRIPT = """
import warnings
import numpy as np
from markovfield.sequence.chain.crf import ChainCRF

warnings.simplefilter("ignore", RuntimeWarning)
X = [[["a", "b"], ["b", "only"]], [["a"], ["c"], ["a", "b"]], [["c"]]]
y = [["A", "B"], ["A", "C", "A"], ["C"]]
E = [[["e"], ["e"]], [["e"], ["f"], ["e"]], [["f"]]]
for settings, edges in [({}, None), ({}, E), ({"order": 2}, None), ({"hidden_states": 2, "rng": 0}, None)]:
    crf = ChainCRF(max_iterations=3, n_jobs=1, **settings).fit(X, y, edges=edges)
    total = -crf.log_likelihood(X, y, edges=edges).sum() + 0.5 * crf.model_.weights @ crf.model_.weights
    assert abs(total - crf.report_.objective) < 1e-9
    assert [len(p) for p in crf.predict(X, edges=edges)] == [2, 3, 1]
    for table in crf.predict_proba(X, edges=edges):
        assert np.allclose(table.sum(axis=1), 1.0)
    best = crf.predict_n_best(X, 2, edges=edges)
    assert all(len(b) == 2 and b[0][1] >= b[1][1] for b in best)
    assert len(crf.sample(X, 2, rng=0, edges=edges)) == 3
    assert (crf.entropy(X, edges=edges) > 0).all()
for solver in ("sgd", "adagrad", "perceptron", "pa", "pa2", "arow"):
    for edges in (None, E):
        crf = ChainCRF(solver=solver, rng=0, max_iterations=2, step=0.1).fit(X, y, edges=edges)
        assert np.isfinite(crf.model_.weights).all()
print("as one")
"""


def test_kernels_run_without_the_jit():
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    done = subprocess.run([sys.executable, "-c", SCRIPT], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "as one"
