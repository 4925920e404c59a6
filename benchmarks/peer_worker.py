"""Runs inside the peers' environment: reads jobs from stdin, one JSON object a line, and answers each with one.

A job names a peer, a network (an npz file of tables, see `benchmarks.data.Network.export`), evidence by position,
a time policy and where to write the marginals. The model is built outside the clock; what is timed is what a user
repeats for every question. Only the standard library, NumPy and the peers are imported here.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import resource
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from measure import (
    Policy,
    measure,
    memory,
    reset_peak,
)  # run as a script, so this folder is on the path and the package is not

Network = tuple[list[int], list[list[int]], list[Any]]
Marginals = list[Any]


def _load(path: str) -> Network:
    with np.load(path) as arrays:
        cards = arrays["cardinalities"].tolist()
        bounds, flat = arrays["parent_offsets"], arrays["parents"]
        cells, tables = arrays["table_offsets"], arrays["tables"]
        parents = [flat[bounds[v] : bounds[v + 1]].tolist() for v in range(len(cards))]
        cpts = [
            tables[cells[v] : cells[v + 1]].reshape([cards[p] for p in parents[v]] + [cards[v]])
            for v in range(len(cards))
        ]
    return cards, parents, cpts


class PyAgrum:
    """LazyPropagation, two threads as by default on two cores."""

    def __init__(self) -> None:
        import pyagrum as gum

        self.gum = gum
        self.about = f"pyAgrum {gum.__version__}, LazyPropagation, {gum.getNumberOfThreads()} threads"

    def build(self, network: Network) -> Any:
        """The network by hand: its BIF reader refuses some state names."""
        cards, parents, cpts = network
        net = self.gum.BayesNet()
        for v, card in enumerate(cards):
            net.add(self.gum.LabelizedVariable(f"v{v}", "", card))
        for v, above in enumerate(parents):
            # Its tables run first-variable-fastest with the child first, so arcs are added last parent first.
            for p in reversed(above):
                net.addArc(p, v)
            net.cpt(v).fillWith(cpts[v].ravel().tolist())
        return net

    def ways(
        self, net: Any, evidence: dict[int, int]
    ) -> dict[str, Callable[[float], tuple[Sequence[float], Marginals]]]:
        """Ways to compute all marginals; each returns seconds (total first) and the marginals."""

        def lazy(_: float) -> tuple[Sequence[float], Marginals]:
            t0 = time.perf_counter()
            engine = self.gum.LazyPropagation(net)
            if evidence:
                engine.setEvidence(evidence)
            engine.makeInference()
            t1 = time.perf_counter()
            found = [engine.posterior(v) for v in range(net.size())]
            t2 = time.perf_counter()
            self.probability = engine.evidenceProbability() if evidence else 1.0
            return (t2 - t0, t1 - t0, t2 - t1, time.perf_counter() - t2 if evidence else 0.0), found

        return {"lazy": lazy}

    columns = ("total", "makeInference", "posteriors", "log evidence")

    def arrays(self, found: Marginals) -> list[Any]:
        """The marginals as arrays."""
        return [p.toarray() for p in found]

    def log_evidence(self) -> float | None:
        """log of the evidence's probability, from the last query."""
        return math.log(self.probability) if self.probability > 0 else -math.inf


class Pgmpy:
    """VariableElimination variable by variable, and without evidence also a calibrated junction tree."""

    columns = ("total",)

    def __init__(self) -> None:
        with contextlib.redirect_stderr(open(os.devnull, "w")):
            import pgmpy
            from pgmpy.factors.discrete import TabularCPD
            from pgmpy.inference import BeliefPropagation, VariableElimination
            from pgmpy.models import DiscreteBayesianNetwork

        self.table, self.network = TabularCPD, DiscreteBayesianNetwork
        self.elimination, self.propagation = VariableElimination, BeliefPropagation
        self.about = f"pgmpy {pgmpy.__version__}, the faster of VariableElimination and BeliefPropagation"

    def build(self, network: Network) -> Any:
        """The network, variables named v0, v1, ..."""
        cards, parents, cpts = network
        net = self.network()
        net.add_nodes_from(f"v{v}" for v in range(len(cards)))
        net.add_edges_from((f"v{p}", f"v{v}") for v, above in enumerate(parents) for p in above)
        for v, above in enumerate(parents):
            values = np.ascontiguousarray(cpts[v].reshape(-1, cards[v]).T)
            given = {"evidence": [f"v{p}" for p in above], "evidence_card": [cards[p] for p in above]} if above else {}
            net.add_cpds(self.table(f"v{v}", cards[v], values, **given))
        return net

    def ways(
        self, net: Any, evidence: dict[int, int]
    ) -> dict[str, Callable[[float], tuple[Sequence[float], Marginals]]]:
        """Ways to compute all marginals; each returns seconds (total first) and the marginals."""
        known = {f"v{v}": x for v, x in evidence.items()}
        names = [f"v{v}" for v in range(len(net.nodes()))]

        def eliminate(deadline: float) -> tuple[Sequence[float], Marginals]:
            start = time.perf_counter()
            engine = self.elimination(net)
            found = []
            for name in names:
                if name not in known:
                    found.append(engine.query([name], evidence=known, show_progress=False).values)
                else:
                    found.append(None)
                if time.perf_counter() > deadline:
                    raise TimeoutError(f"{len(found)} of {len(names)} variables")
            return (time.perf_counter() - start,), found

        def calibrate(_: float) -> tuple[Sequence[float], Marginals]:
            start = time.perf_counter()
            engine = self.propagation(net)
            engine.calibrate()
            holders: dict[str, Any] = {}
            for clique, belief in engine.get_clique_beliefs().items():
                for name in clique:
                    if name not in holders or belief.values.size < holders[name].values.size:
                        holders[name] = belief
            found = []
            for name in names:
                belief = holders[name]
                rest = [other for other in belief.variables if other != name]
                alone = belief.marginalize(rest, inplace=False) if rest else belief
                found.append(alone.values / alone.values.sum())
            return (time.perf_counter() - start,), found

        return {"elimination": eliminate} if known else {"elimination": eliminate, "propagation": calibrate}

    def arrays(self, found: Marginals) -> list[Any]:
        """The marginals as arrays; None for observed variables."""
        return found

    def log_evidence(self) -> float | None:
        """Not offered."""
        return None


class _Worker:
    def __init__(self) -> None:
        self.peers: dict[str, Any] = {}
        self.built: tuple[str, str, Any] | None = None

    def answer(self, job: dict[str, Any]) -> dict[str, Any]:
        """Run one job: load a peer, build a network, or answer a query."""
        name = job["peer"]
        if name not in self.peers:
            self.peers[name] = {"pyagrum": PyAgrum, "pgmpy": Pgmpy}[name]()
        peer = self.peers[name]
        if "network" not in job:
            return {"status": "ok", "about": peer.about}
        if self.built is None or self.built[:2] != (name, job["network"]):
            self.built = None
            self.built = (name, job["network"], peer.build(_load(job["network"])))
        if "way" not in job:
            return {"status": "ok"}
        return self._query(peer, self.built[2], job)

    def _query(self, peer: Any, net: Any, job: dict[str, Any]) -> dict[str, Any]:
        evidence = {int(v): int(x) for v, x in job["evidence"].items()}
        run = peer.ways(net, evidence).get(job["way"])
        if run is None:
            return {"status": "not offered"}
        found: list[Any] = []

        def once() -> Sequence[float]:
            seconds, found[:] = run(time.perf_counter() + job["cap"])
            return seconds

        before = reset_peak()
        try:
            timing = measure(peer.columns, once, Policy(**job["policy"]))
        except TimeoutError as stopped:
            return {"status": "timeout", "reached": str(stopped)}
        answer: dict[str, Any] = {"status": "ok", "seconds": timing.median("total"), **timing.summary()}
        answer["memory"] = memory("VmHWM") - before
        rows = [np.full(0, np.nan) if a is None else np.asarray(a).ravel() for a in peer.arrays(found)]
        np.savez(job["out"], values=np.concatenate(rows), lengths=[len(r) for r in rows])
        answer["log_evidence"] = peer.log_evidence()
        return answer


def serve(worker: Any) -> None:
    """Answer jobs, one JSON object a line, until stdin closes; the limit on memory is the first argument."""
    limit = int(sys.argv[1])
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    # Libraries print to stdout (progress bars, warnings): answers go to the real one, the rest to stderr.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for line in sys.stdin:
        try:
            answer = worker.answer(json.loads(line))
        except MemoryError:
            answer = {"status": "out of memory"}
        except Exception as error:  # a peer's failure is a result, whatever its type
            text = f"{type(error).__name__}: {error}".splitlines()[0][:200]
            full = "memory" in text.lower() or "bad_alloc" in text
            answer = {"status": "out of memory" if full else "failed", "error": text}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


if __name__ == "__main__":
    serve(_Worker())
