"""What a new user waits for: the first calls on a machine where no kernel is compiled yet.

Each row is a new process with an empty cache; its calls follow each other in that process. ``python -m
benchmarks.first_call [--root OTHER_CHECKOUT]`` measures another version by the same questions.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.measure import Table, save

__all__ = ["main"]

ROOT = Path(__file__).resolve().parent.parent

_NETWORK = """
rng = np.random.default_rng(0)
net = mf.BayesianNetwork({f"x{i}": int(rng.integers(2, 5)) for i in range(56)})
names = list(net.variables)
for i, name in enumerate(names):
    near, many = np.arange(max(0, i - 8), i), min(i, int(rng.integers(0, 4)))
    above = [names[j] for j in sorted(rng.choice(near, many, replace=False))] if many else []
    shape = [net.cardinality(v) for v in [*above, name]]
    table = rng.gamma(1.0, size=shape)
    net.add_cpt(name, above, table / table.sum(axis=-1, keepdims=True))
"""

# Questions in the order of a first session; a network of the size of hailfinder, 56 variables.
SESSIONS = {
    "network of 56 variables": (
        _NETWORK,
        [
            ("marginals", "mf.marginals(net)"),
            ("decode", "mf.decode(net)"),
            ("sample", "mf.sample(net, 100, rng=0)"),
            ("marginals given evidence", "mf.marginals(net, {'x55': 0})"),
            ("sensitivity", "mf.analysis.sensitivity(net, {'x0': 0}, {'x55': 0})"),
        ],
    ),
    "chain CRF": (
        """
rng = np.random.default_rng(0)
X = [[{"word": f"w{rng.integers(500)}", "bias": 1.0} for _ in range(10)] for _ in range(200)]
y = [[f"L{rng.integers(5)}" for _ in x] for x in X]
""",
        [("fit", "crf = mf.ChainCRF().fit(X, y)"), ("predict", "crf.predict(X)")],
    ),
    "lattice of 64 x 64": (
        """
field = np.random.default_rng(0).normal(size=(64, 64))
model = mf.Ising((64, 64), coupling=0.5, field=field)
""",
        [("decode by a cut", "mf.decode(model, method='graph_cut')"), ("decode", "mf.decode(model)")],
    ),
    "Potts lattice of 32 x 32": (
        """
field = np.random.default_rng(0).normal(size=(32, 32, 4))
model = mf.Potts((32, 32), 4, coupling=0.5, field=field)
""",
        [
            ("decode by expansion", "mf.decode(model, method='alpha_expansion')"),
            ("marginals by messages", "mf.marginals(model, method='bp')"),
        ],
    ),
}

_RUN = """
import json, time, warnings
warnings.simplefilter("ignore")
start = time.process_time(), time.perf_counter()
import numpy as np, markovfield as mf
{setup}
rows = []
for name, code in {calls!r}:
    before = time.process_time(), time.perf_counter()
    exec(code)
    rows.append((name, time.process_time() - before[0], time.perf_counter() - before[1]))
print(json.dumps(rows))
"""


def measure(setup: str, calls: list[tuple[str, str]], root: Path, cache: str) -> list[tuple[str, float, float]]:
    """CPU and wall seconds of each call, in a new process that finds its kernels in ``cache``."""
    environment = {**os.environ, "PYTHONPATH": str(root / "src"), "NUMBA_CACHE_DIR": cache}
    done = subprocess.run(
        [sys.executable, "-c", _RUN.format(setup=setup, calls=calls)],
        env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        raise SystemExit(done.stderr)
    rows: list[tuple[str, float, float]] = json.loads(done.stdout.splitlines()[-1])
    return rows


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", type=Path, default=ROOT)
    root = parser.parse_args().root
    columns = ("call", "CPU s, nothing compiled", "wall s", "CPU s, compiled", "wall s")
    table = Table("First calls of a process", columns, first=46)
    for what, (setup, calls) in SESSIONS.items():
        with tempfile.TemporaryDirectory() as cache:
            cold = measure(setup, calls, root, cache)
            os.environ["MARKOVFIELD_INTERPRET_SMALL_WORK"] = "0"
            measure(setup, calls, root, cache)
            warm = measure(setup, calls, root, cache)
            del os.environ["MARKOVFIELD_INTERPRET_SMALL_WORK"]
        for (name, cpu, wall), (_, warm_cpu, warm_wall) in zip(cold, warm, strict=True):
            table.row(f"{what}: {name}", cpu, wall, warm_cpu, warm_wall)
    save("first_call", {})


if __name__ == "__main__":
    main()
