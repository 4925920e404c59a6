"""The kernels as plain Python: the JIT off, on tiny models, so that bounds are checked and coverage sees them."""

import os
import subprocess
import sys

SCRIPT = """
import warnings
import numpy as np
import markovfield as mf

warnings.simplefilter("ignore", RuntimeWarning)
rng = np.random.default_rng(0)
net = mf.MarkovNetwork({"A": 2, "B": ["low", "mid", "high"], "C": 2, "D": 3, "E": 2})
for scope in (["A", "B"], ["B", "C"], ["C", "D"], ["D", "A"], ["E"]):
    shape = [len(net.compile().names.state_names(net.variables.index(v), c)) for v, c in zip(scope, [
        {"A": 2, "B": 3, "C": 2, "D": 3, "E": 2}[v] for v in scope])]
    table = rng.normal(size=shape)
    net.add_factor(scope, log_table=np.where(rng.random(shape) < 0.1, -np.inf, table))
net.add_clause({"A": 1, "B": "mid"}, {"C": 1}, weight=1.5)
for evidence in (None, {"C": 1}, {"B": [0.2, 0.3, 0.5]}):
    exact = mf.marginals(net, evidence, method="enumeration")
    ours = mf.marginals(net, evidence, method="junction_tree")
    assert abs(exact.log_partition - ours.log_partition) < 1e-9
    assert np.allclose(exact.values, ours.values, atol=1e-9)
    assert np.allclose(exact.expected_counts, ours.expected_counts, atol=1e-9)
    best = mf.decode(net, evidence, n_best=3, method="enumeration")
    found = mf.decode(net, evidence, n_best=3, method="junction_tree")
    assert np.allclose([s.score for s in best.n_best], [s.score for s in found.n_best])
    assert len(mf.sample(net, 3, evidence, "junction_tree", rng=0)) == 3
tree = mf.methods.JunctionTree.compile(net)
rows = np.full((2, 5), -1)
rows[1, 2] = 1
batch = tree.run_batch(rows)
assert np.allclose(batch.values[1], tree.run({"C": 1}).values)
from markovfield.gaussian import sparse_cholesky
sparse_cholesky.MOST_DENSE = sparse_cholesky.MOST_FULL = 0
path = 2.1 * np.eye(5) - np.eye(5, k=1) - np.eye(5, k=-1)
grid = np.kron(path, np.eye(4)) + np.kron(np.eye(5), path[:4, :4])
field = mf.GaussianField(grid, np.ones(20))
assert field.plan.method == "minimum degree"
assert np.allclose(field.variances, np.diag(np.linalg.inv(grid)))
assert np.allclose(field.mean, np.linalg.solve(grid, np.ones(20)))
assert np.allclose(field.covariance, np.linalg.inv(grid))
print("as one")
"""


def test_kernels_run_without_the_jit():
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    done = subprocess.run([sys.executable, "-c", SCRIPT], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "as one"
