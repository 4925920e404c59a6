"""Runs inside a peer's environment: builds the model of a job, times loopy sweeps, answers with one JSON object a line.

A job names a peer and an npz file: ``cardinalities``, and either ``pairs`` with ``pair_tables`` and ``unary`` (logs),
or ``triples`` with ``triple_tables`` and ``unary``, or, for Bayesian networks, ``parents`` and ``cpts`` (a row each,
padded by -1 and 0). The time of a sweep is that of a long run less that of a short one, the best of a few each, over
the difference of their sweeps, so that what is done once does not count. Only the standard library, NumPy and the
peers are imported here.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

FEW, MANY = 2, 10


def sweep(seconds: Callable[[int], float], repeats: int) -> float:
    """Seconds a sweep."""
    long = min(seconds(MANY) for _ in range(repeats))
    return (long - min(seconds(FEW) for _ in range(repeats))) / (MANY - FEW)


def pgmax(arrays: dict[str, Any]) -> dict[str, Any]:
    """PGMax on the CPU, in float32 as it works by default; temperature one is sum-product."""
    import jax
    from pgmax import fgraph, fgroup, infer, vgroup

    started = time.perf_counter()
    cards = arrays["cardinalities"]
    variables = vgroup.NDVarArray(num_states=int(cards[0]), shape=(len(cards),))
    graph = fgraph.FactorGraph(variable_groups=variables)
    if "pairs" in arrays:
        group = fgroup.PairwiseFactorGroup(
            variables_for_factors=[[variables[int(a)], variables[int(b)]] for a, b in arrays["pairs"]],
            log_potential_matrix=arrays["pair_tables"],
        )
    else:
        states = int(cards[0])
        configurations = np.stack(np.meshgrid(*[np.arange(states)] * 3, indexing="ij"), -1).reshape(-1, 3)
        group = fgroup.EnumFactorGroup(
            variables_for_factors=[[variables[int(v)] for v in scope] for scope in arrays["triples"]],
            factor_configs=configurations,
            log_potentials=arrays["triple_tables"].reshape(len(arrays["triples"]), -1),
        )
    graph.add_factors(group)
    inferer = infer.build_inferer(graph.bp_state, backend="bp")
    start = inferer.init(evidence_updates={variables: arrays["unary"]})
    built = time.perf_counter() - started

    def run(sweeps: int) -> tuple[float, Any]:
        began = time.perf_counter()
        done = inferer.run(start, num_iters=sweeps, damping=0.0, temperature=1.0)
        jax.block_until_ready(done.ftov_msgs)
        return time.perf_counter() - began, done

    for sweeps in (FEW, MANY):
        _, done = run(sweeps)  # compiles
    best = sweep(lambda sweeps: run(sweeps)[0], 2)
    beliefs = infer.get_marginals(inferer.get_beliefs(done))[variables]
    return {"seconds": best, "build": built, "values": np.asarray(beliefs, np.float64).ravel()}


def pyagrum(arrays: dict[str, Any]) -> dict[str, Any]:
    """LoopyBeliefPropagation of pyAgrum, which takes Bayesian networks only: seconds until it has settled."""
    import pyagrum as gum

    if "cpts" not in arrays:
        return {"status": "not offered", "error": "pyAgrum's loopy propagation takes Bayesian networks only"}
    started = time.perf_counter()
    net = gum.BayesNet()
    for v, card in enumerate(arrays["cardinalities"]):
        net.add(gum.LabelizedVariable(f"v{v}", "", int(card)))
    for v, (row, cpt) in enumerate(zip(arrays["parents"], arrays["cpts"], strict=True)):
        parents = [int(p) for p in row if p >= 0]
        for p in parents:
            net.addArc(p, v)
        table = cpt[: 2 ** (len(parents) + 1)]
        names = [f"v{p}" for p in parents]
        for i in range(2 ** len(parents)):
            state = {name: (i >> (len(parents) - 1 - k)) & 1 for k, name in enumerate(names)}
            net.cpt(v)[state] = table[2 * i : 2 * i + 2].tolist()
    built = time.perf_counter() - started

    best = float("inf")
    for _ in range(3):
        engine = gum.LoopyBeliefPropagation(net)
        engine.setEpsilon(1e-10)
        engine.setEvidence({f"v{v}": int(x) for v, x in enumerate(arrays["evidence"]) if x >= 0})
        began = time.perf_counter()
        engine.makeInference()
        best = min(best, time.perf_counter() - began)
    values = [engine.posterior(v).tolist() for v in range(len(arrays["cardinalities"]))]
    return {"seconds": best, "build": built, "values": np.array(values).ravel()}


def pgmpy(arrays: dict[str, Any]) -> dict[str, Any]:
    """What pgmpy calls belief propagation is a junction tree, or messages on a tree; neither iterates."""
    import pgmpy

    return {
        "status": "not offered",
        "error": f"pgmpy {pgmpy.__version__} passes messages on trees and junction trees only, none that iterate",
    }


def main() -> None:
    """Answer jobs until the input ends."""
    limit = int(sys.argv[1])
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    for line in sys.stdin:
        job = json.loads(line)
        try:
            with np.load(job["model"]) as file:
                arrays = {name: file[name] for name in file.files}
            found = {"status": "ok", **globals()[job["peer"]](arrays)}
            if "values" in found:
                np.save(job["out"], found.pop("values"))
        except MemoryError:
            found = {"status": "out of memory"}
        except Exception as error:
            found = {"status": "error", "error": f"{type(error).__name__}: {str(error)[:120]}"}
        print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
