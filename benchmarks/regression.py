"""Did a change make something slower? A set of ratios between two checkouts, measured in turn on the same machine.

``python -m benchmarks.regression /path/to/old/checkout`` times every row in both, by processes that alternate, and
prints new over old: the least of all repetitions of all rounds, because what else the machine does only ever adds time.
``--rows tiny,exact`` takes some; ``--cold`` measures what compiling from an empty cache costs instead.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

__all__ = ["main"]

ROOT = Path(__file__).resolve().parent.parent
Call = Callable[[], Any]


def _named(name: str) -> Any:
    """A method's class, wherever this version keeps it."""
    import markovfield as mf

    return getattr(getattr(mf, "methods", mf), name)


def _tiny() -> dict[str, Call]:
    import markovfield as mf

    net = mf.MarkovNetwork(dict.fromkeys(range(8), 2))
    for i in range(7):
        net.add_factor([i, i + 1], [[2, 1], [1, 2]])
    graph = net.compile()
    # Models are asked what they are before graphs are: both are timed.
    return {
        "marginals of 8 variables": lambda: mf.marginals(graph),
        "decode of 8 variables": lambda: mf.decode(graph),
        "marginals of a model of 8 variables": lambda: mf.marginals(net),
        "query of a model of 8 variables": lambda: mf.query(net, 7, {0: 1}),
    }


def _layered(width: int, depth: int, states: int) -> Any:
    """A Bayesian network of layers, each variable with two parents in the layer above."""
    import numpy as np

    import markovfield as mf

    rng = np.random.default_rng(3)
    net = mf.BayesianNetwork()
    names = [[f"x{d}_{w}" for w in range(width)] for d in range(depth)]
    for d, layer in enumerate(names):
        for w, name in enumerate(layer):
            parents = [names[d - 1][w], names[d - 1][(w + 1) % width]] if d else []
            table = rng.dirichlet(np.ones(states), size=(states,) * len(parents))
            net.add_variable(name, states)
            net.add_cpt(name, parents, table)
    return net


def _exact() -> dict[str, Call]:
    import markovfield as mf

    net = _layered(7, 20, 3)
    graph = net.compile()
    names = list(net.variables)

    def anew() -> Any:
        return mf.marginals(_layered(7, 20, 3), method="junction_tree")

    return {
        "junction tree, planned": lambda: mf.marginals(graph, method="junction_tree"),
        "junction tree, built and planned anew": anew,
        "query": lambda: mf.query(net, names[-1], evidence={names[0]: 0}),
    }


def _lattices() -> dict[str, Call]:
    import numpy as np

    import markovfield as mf

    rng = np.random.default_rng(0)
    ising = mf.Ising((300, 300), 0.3, rng.normal(size=(300, 300)) / 5).compile()
    potts = mf.Potts((80, 80), 8, 0.6, rng.normal(size=(80, 80, 8))).compile()
    small = mf.Ising((40, 40), 0.3, rng.normal(size=(40, 40)) / 5).compile()
    loopy = _named("BeliefPropagation")("synchronous", max_iterations=50, tolerance=1e-300)
    return {
        "belief propagation, 300 x 300": lambda: mf.marginals(ising, method=loopy),
        "graph cut, 300 x 300": lambda: mf.decode(ising, method="graph_cut"),
        "expansion, 80 x 80 x 8": lambda: mf.decode(potts, method="alpha_expansion"),
        "TRW-S, 80 x 80 x 8": lambda: mf.decode(potts, method=_named("TRWS")(max_iterations=50)),
        "mini-buckets, 40 x 40": lambda: mf.log_partition(small, method=_named("MiniBucket")(i_bound=8)),
        "Gibbs, 40 x 40": lambda: mf.sample(small, 1000, method="gibbs", rng=0),
        "mean field, 300 x 300": lambda: mf.marginals(ising, method="mean_field"),
    }


def _chains() -> dict[str, Call]:
    import numpy as np

    import markovfield as mf

    rng = np.random.default_rng(2)
    tags = [rng.integers(0, 12, rng.integers(5, 30)) for _ in range(1500)]
    tokens = [[[f"w={rng.integers(0, 50) + 40 * t}", f"u={rng.integers(0, 900)}"] for t in row] for row in tags]
    labels = [[f"L{t}" for t in row] for row in tags]
    chain = mf.ChainCRF(max_iterations=30)
    return {
        "ChainCRF.fit": lambda: chain.fit(tokens, labels),
        "ChainCRF.predict": lambda: chain.predict(tokens),
    }


ROWS: dict[str, Callable[[], dict[str, Call]]] = {
    "tiny": _tiny,
    "exact": _exact,
    "lattices": _lattices,
    "chains": _chains,
}


def _measure(rows: list[str], seconds: float) -> dict[str, float]:
    """The least time of each row, in this process; with no seconds to repeat, the processor time of the first call."""
    warnings.simplefilter("ignore")
    found: dict[str, float] = {}
    for row in rows:
        for name, call in ROWS[row]().items():
            began = time.process_time()
            call()
            if seconds == 0:
                found[name] = time.process_time() - began
                continue
            ends, best = time.perf_counter() + seconds, float("inf")
            while time.perf_counter() < ends or best == float("inf"):
                start = time.perf_counter()
                call()
                best = min(best, time.perf_counter() - start)
            found[name] = best
    return found


def _ask(checkout: Path, rows: str, seconds: float, cache: str | None = None) -> dict[str, float]:
    """Measure another checkout with this very file."""
    environment = dict(os.environ, PYTHONPATH=str(checkout / "src"))
    if cache is not None:
        environment["NUMBA_CACHE_DIR"] = cache
    command = [sys.executable, str(Path(__file__).resolve()), "--worker", "--rows", rows, "--seconds", str(seconds)]
    done = subprocess.run(command, env=environment, cwd=checkout, capture_output=True, text=True, check=True)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> None:
    """Compare this checkout with another."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.regression", description=__doc__)
    parser.add_argument("old", nargs="?", type=Path, help="a checkout of the older version")
    parser.add_argument("--rows", default=",".join(ROWS))
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=1.0, help="how long a row is repeated in a round")
    parser.add_argument("--cold", action="store_true", help="processor seconds of first calls, from an empty cache")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.worker:
        sys.stdout.write(json.dumps(_measure(given.rows.split(","), given.seconds)) + "\n")
        return
    if given.old is None:
        parser.error("which older checkout?")
    best: list[dict[str, float]] = [{}, {}]
    for _ in range(1 if given.cold else given.rounds):
        for which, checkout in enumerate((given.old.resolve(), ROOT)):
            for row in given.rows.split(","):
                if given.cold:
                    with tempfile.TemporaryDirectory() as folder:
                        found = _ask(checkout, row, 0, folder)
                else:
                    found = _ask(checkout, row, given.seconds)
                for name, seconds in found.items():
                    best[which][name] = min(seconds, best[which].get(name, float("inf")))
    unit, scale = ("s of processor", 1.0) if given.cold else ("ms", 1e3)
    print(f"{'row':42s} {'old':>12s} {'new':>12s}  new/old   ({unit})")
    for name in best[1]:
        old, new = best[0][name], best[1][name]
        print(f"{name:42s} {old * scale:12.3f} {new * scale:12.3f} {new / old:8.3f}")


if __name__ == "__main__":
    main()
