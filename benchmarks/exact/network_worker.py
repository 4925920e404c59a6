"""Runs inside the peers' environment: parsing, learning and querying Bayesian networks, one JSON job a line.

What is timed is what a user repeats; the data are loaded before the clock starts. Only the standard library, NumPy,
pandas and the peers are imported here.
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


def _frame(path: str, missing: str | None = None) -> Any:
    """The data as a frame of texts; ``missing`` stands for values that are not there."""
    import pandas as pd

    with np.load(path, allow_pickle=False) as arrays:
        columns = {name: arrays[name].astype(object) for name in arrays.files}
    frame = pd.DataFrame(columns)
    return frame if missing is None else frame.mask(frame == "", missing)


class PyAgrum:
    """pyAgrum: its BIF reader, BNLearner, LazyPropagation."""

    def __init__(self) -> None:
        import pyagrum as gum

        self.gum = gum
        self.about = f"pyAgrum {gum.__version__}, {gum.getNumberOfThreads()} threads"

    def parse(self, job: dict[str, Any]) -> Sequence[float]:
        """Read a BIF file."""
        start = time.perf_counter()
        self.gum.loadBN(job["network"])
        return (time.perf_counter() - start,)

    def parameters(self, job: dict[str, Any]) -> Sequence[float]:
        """Tables from complete data: from a frame of texts, and counting alone."""
        net, frame = self._prepared(job)
        start = time.perf_counter()
        learner = self.gum.BNLearner(frame, net)
        learner.useSmoothingPrior(1e-3)  # without it a configuration that never occurs is an error
        ready = time.perf_counter()
        learner.learnParameters(net.dag())
        done = time.perf_counter()
        return done - start, done - ready

    def em(self, job: dict[str, Any]) -> Sequence[float]:
        """Seconds of one EM iteration."""
        net, frame = self._prepared(job, "?")
        learner = self.gum.BNLearner(frame, net, ["?"])
        learner.useSmoothingPrior(1e-3)
        learner.useEM(1e-12)
        learner.EMsetMaxIter(job["iterations"])
        start = time.perf_counter()
        learner.learnParameters(net.dag())
        return ((time.perf_counter() - start) / max(learner.EMnbrIterations(), 1),)

    def query(self, job: dict[str, Any]) -> Sequence[float]:
        """Seconds of one query: the mean over all; the fastest of three ways is what counts."""
        net = self._network(job)
        best, found = np.inf, []
        for way in ("lazy, new", "lazy, again", "elimination"):
            values = []
            engine = None
            start = time.perf_counter()
            for target, evidence in job["queries"]:
                if engine is None or way != "lazy, again":
                    cls = self.gum.VariableElimination if way == "elimination" else self.gum.LazyPropagation
                    engine = cls(net)
                engine.eraseAllTargets()
                engine.setEvidence(evidence)
                engine.addTarget(target)
                engine.makeInference()
                values.append(engine.posterior(target).tolist())
            seconds = (time.perf_counter() - start) / len(values)
            if seconds < best:
                best, found = seconds, values
        self.found = found
        return (best,)

    def structure(self, job: dict[str, Any]) -> Sequence[float]:
        """Greedy hill climbing by BIC; from a frame, and searching alone."""
        net, frame = self._prepared(job)
        start = time.perf_counter()
        learner = self.gum.BNLearner(frame, net)
        learner.useGreedyHillClimbing()
        learner.useScoreBIC()
        ready = time.perf_counter()
        dag = learner.learnDAG()
        done = time.perf_counter()
        self.found = [[learner.nameFromId(a), learner.nameFromId(b)] for a, b in dag.arcs()]
        return done - start, done - ready

    def sample(self, job: dict[str, Any]) -> Sequence[float]:
        """Draw samples."""
        net = self._network(job)
        generator = self.gum.BNDatabaseGenerator(net)
        start = time.perf_counter()
        generator.drawSamples(job["size"])
        return (time.perf_counter() - start,)

    def _network(self, job: dict[str, Any]) -> Any:
        return self.gum.loadBN(job["network"])

    def _prepared(self, job: dict[str, Any], missing: str | None = None) -> tuple[Any, Any]:
        net = self._network(job)
        frame = _frame(job["data"], missing)
        return net, frame[[n for n in net.names() if n in frame.columns]]


class Pgmpy:
    """pgmpy: BIFReader, MaximumLikelihoodEstimator, ExpectationMaximization, VariableElimination."""

    def __init__(self) -> None:
        with contextlib.redirect_stderr(open(os.devnull, "w")):
            import pgmpy
            from pgmpy.estimators import (
                BIC,
                ExpectationMaximization,
                HillClimbSearch,
                MaximumLikelihoodEstimator,
            )
            from pgmpy.inference import VariableElimination
            from pgmpy.models import DiscreteBayesianNetwork
            from pgmpy.readwrite import BIFReader
            from pgmpy.sampling import BayesianModelSampling
        warnings.simplefilter("ignore")
        self.reader, self.likelihood, self.expectation = BIFReader, MaximumLikelihoodEstimator, ExpectationMaximization
        self.climb, self.bic, self.elimination = HillClimbSearch, BIC, VariableElimination
        self.network, self.sampling = DiscreteBayesianNetwork, BayesianModelSampling
        self.about = f"pgmpy {pgmpy.__version__}"

    def parse(self, job: dict[str, Any]) -> Sequence[float]:
        """Read a BIF file."""
        start = time.perf_counter()
        self.reader(job["network"]).get_model()
        return (time.perf_counter() - start,)

    def parameters(self, job: dict[str, Any]) -> Sequence[float]:
        """Tables from complete data: from a frame of texts."""
        net = self._network(job)
        frame = _frame(job["data"])
        bare = self.network()
        bare.add_nodes_from(net.nodes())
        bare.add_edges_from(net.edges())
        start = time.perf_counter()
        self.likelihood(bare, frame).get_parameters(n_jobs=1)
        seconds = time.perf_counter() - start
        return seconds, seconds

    def em(self, job: dict[str, Any]) -> Sequence[float]:
        """Seconds of one EM iteration; it knows hidden variables, not missing values."""
        hidden = job["hidden"]
        if not hidden:
            raise NotImplementedError("pgmpy's EM takes hidden variables only")
        net = self._network(job)
        frame = _frame(job["data"]).drop(columns=hidden)
        bare = self.network(net.edges(), latents=set(hidden))
        cards = {h: net.get_cardinality(h) for h in hidden}
        start = time.perf_counter()
        self.expectation(bare, frame).get_parameters(
            latent_card=cards, max_iter=job["iterations"], atol=1e-300, n_jobs=1, show_progress=False
        )
        return ((time.perf_counter() - start) / job["iterations"],)

    def query(self, job: dict[str, Any]) -> Sequence[float]:
        """Seconds of one query: the mean over all."""
        net = self._network(job)
        engine = self.elimination(net)
        found = []
        start = time.perf_counter()
        for target, evidence in job["queries"]:
            answer = engine.query([target], evidence=evidence, show_progress=False)
            found.append([float(answer.get_value(**{target: s})) for s in net.states[target]])
        self.found = found
        return ((time.perf_counter() - start) / len(found),)

    def structure(self, job: dict[str, Any]) -> Sequence[float]:
        """Hill climbing by BIC."""
        frame = _frame(job["data"])
        start = time.perf_counter()
        dag = self.climb(frame).estimate(scoring_method=self.bic(frame), show_progress=False)
        seconds = time.perf_counter() - start
        self.found = [list(edge) for edge in dag.edges()]
        return seconds, seconds

    def sample(self, job: dict[str, Any]) -> Sequence[float]:
        """Draw samples."""
        net = self._network(job)
        start = time.perf_counter()
        self.sampling(net).forward_sample(size=job["size"], show_progress=False)
        return (time.perf_counter() - start,)

    def _network(self, job: dict[str, Any]) -> Any:
        return self.reader(job["network"]).get_model()


COLUMNS = {"parameters": ("seconds", "alone"), "structure": ("seconds", "alone")}


def answer(peers: dict[str, Any], job: dict[str, Any]) -> dict[str, Any]:
    """Run one job as often as its policy says."""
    name = job["peer"]
    if name not in peers:
        peers[name] = {"pyagrum": PyAgrum, "pgmpy": Pgmpy}[name]()
    peer = peers[name]
    if "task" not in job:
        return {"status": "ok", "about": peer.about}
    peer.found = None
    columns = COLUMNS.get(job["task"], ("seconds",))
    run = getattr(peer, job["task"])
    timing = measure(columns, lambda: run(job), Policy(**job["policy"]))
    return {"status": "ok", "found": peer.found, **{c: timing.median(c) for c in columns}}


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
