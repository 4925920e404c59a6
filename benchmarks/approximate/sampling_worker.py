"""Runs inside the peers' environment: Gibbs sampling of Bayesian networks, one JSON job a line.

Only the standard library, NumPy and the peers are imported here.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import sys
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # run as a script: for what all benchmarks share
from measure import Policy, measure


class PyAgrum:
    """pyAgrum's GibbsSampling: it averages, and hands out no samples."""

    def __init__(self) -> None:
        import pyagrum as gum

        self.gum = gum
        self.about = f"pyAgrum {gum.__version__}"

    def _engine(self, job: dict[str, Any]) -> Any:
        net = self.gum.loadBN(job["network"])
        engine = self.gum.GibbsSampling(net)
        engine.setEvidence(job["evidence"])
        # An iteration draws every variable once, in order, as a sweep of ours does; nothing else may stop it.
        engine.setNbrDrawnVar(net.size() - len(job["evidence"]))
        engine.setDrawnAtRandom(False)
        engine.setEpsilon(1e-15)
        engine.setMinEpsilonRate(1e-15)
        engine.setPeriodSize(10_000)
        engine.setBurnIn(0)
        engine.setMaxIter(1_000_000_000)
        return engine

    def sweeps(self, job: dict[str, Any]) -> Sequence[float]:
        """Seconds of one sweep that also averages."""
        engine = self._engine(job)
        engine.setMaxTime(job["seconds"])
        start = time.perf_counter()
        engine.makeInference()
        self.found = {"sweeps": engine.nbrIterations()}
        return ((time.perf_counter() - start) / engine.nbrIterations(),)

    def marginals(self, job: dict[str, Any]) -> Sequence[float]:
        """Marginals after so many seconds."""
        engine = self._engine(job)
        engine.setMaxTime(job["seconds"])
        start = time.perf_counter()
        engine.makeInference()
        seconds = time.perf_counter() - start
        self.found = {"values": [engine.posterior(v).tolist() for v in job["variables"]]}
        return (seconds,)


class _Blanket(dict[tuple[int, ...], Any]):
    """Conditional distributions by the states of all other variables, computed when first asked for."""

    def __init__(self, factor: Any, variable: str, others: list[str]) -> None:
        super().__init__()
        scope = factor.scope()
        self.table = np.moveaxis(factor.values, scope.index(variable), -1)
        scope.remove(variable)
        self.places = [others.index(v) for v in scope]

    def __missing__(self, others: tuple[int, ...]) -> Any:
        row = self.table[tuple(others[p] for p in self.places)]
        self[others] = row / row.sum()
        return self[others]


class Pgmpy:
    """pgmpy's GibbsSampling: as it is, and with its conditional distributions handed to it."""

    def __init__(self) -> None:
        warnings.simplefilter("ignore")
        with contextlib.redirect_stderr(open(os.devnull, "w")):
            import pgmpy
            from pgmpy.readwrite import BIFReader
            from pgmpy.sampling import GibbsSampling
        self.reader, self.gibbs = BIFReader, GibbsSampling
        self.about = f"pgmpy {pgmpy.__version__}"

    def _chain(self, job: dict[str, Any]) -> Any:
        from pgmpy.factors import factor_product

        net = self.reader(job["network"]).get_model()
        if not job["helped"]:
            states = float(np.prod([float(net.get_cardinality(v)) for v in net.nodes()]))
            if states > 2**20:
                raise NotImplementedError(f"tables over all {states:.2g} joint states")
            return self.gibbs(net)
        # It lists the joint states of all other variables for every variable: impossible beyond some twenty. Here it
        # gets the same numbers when they are first asked for.
        chain = self.gibbs()
        chain.variables = np.array(net.nodes())
        chain.latents = net.latents
        chain.cardinalities = {v: net.get_cardinality(v) for v in net.nodes()}
        chain.add_variables_from(list(net.nodes()), [chain.cardinalities[v] for v in net.nodes()])
        for v in net.nodes():
            factor = factor_product(*(cpd.to_factor() for cpd in net.cpds if v in cpd.scope()))
            chain.transition_models[v] = _Blanket(factor, v, [u for u in chain.variables if u != v])
        return chain

    def sweeps(self, job: dict[str, Any]) -> Sequence[float]:
        """Seconds of one sweep, which makes one sample."""
        if job["evidence"]:
            raise NotImplementedError("Gibbs sampling given evidence")
        chain = self._chain(job)
        size = job["size"]
        # A random start may be impossible: every table would be zero by zero.
        first = [chain_state(name, state) for name, state in job["start"].items()]
        start = time.perf_counter()
        frame = chain.sample(start_state=first, size=size, seed=1)
        seconds = time.perf_counter() - start
        self.found = {"samples": {v: frame[v].astype(int).tolist() for v in frame.columns}}
        return (seconds / size,)


def chain_state(name: str, state: int) -> Any:
    """pgmpy's pair of a variable and its state."""
    from pgmpy.factors.discrete import State

    return State(name, state)


def answer(peers: dict[str, Any], job: dict[str, Any]) -> dict[str, Any]:
    """Run one job as often as its policy says."""
    name = job["peer"]
    if name not in peers:
        peers[name] = {"pyagrum": PyAgrum, "pgmpy": Pgmpy}[name]()
    peer = peers[name]
    if "task" not in job:
        return {"status": "ok", "about": peer.about}
    if not hasattr(peer, job["task"]):
        raise NotImplementedError(job["task"])
    timing = measure(("seconds",), lambda: getattr(peer, job["task"])(job), Policy(**job["policy"]))
    return {"status": "ok", "found": peer.found, "seconds": timing.least("seconds")}


def main() -> None:
    """Serve jobs until stdin closes."""
    limit = int(sys.argv[1])
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    # Libraries print to stdout (progress bars, warnings): answers go to the real one, the rest to stderr.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    peers: dict[str, Any] = {}
    for line in sys.stdin:
        try:
            found = answer(peers, json.loads(line))
        except NotImplementedError as refusal:
            found = {"status": "not offered", "error": str(refusal)}
        except MemoryError:
            found = {"status": "out of memory"}
        except Exception as error:  # a peer's failure is a result, whatever its type
            found = {"status": "failed", "error": f"{type(error).__name__}: {error}".splitlines()[0][:200]}
        answers.write(json.dumps(found) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
