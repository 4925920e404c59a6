"""Runs inside a peer's environment: what its user writes to have the gradient of a CRF, and how long an epoch takes.

A job names a peer, a way, an npz file with ``unary`` (examples, variables, states), ``pairs`` (edges, 2; the same graph
for all examples) and ``pair_tables`` (examples, edges, states, states), all logs, and a time policy. An epoch turns the
tables of all examples into the probabilities of all states and of all pairs of states of an edge, which are the
expected counts that a likelihood's gradient is made of; features, weights and the peer's graph, which does not change
from epoch to epoch, are outside the clock. No peer here computes counts of pairs by itself: they are read from its
messages or from its cliques. Only the standard library, NumPy and the peers are imported here.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # run as a script: for what all benchmarks share
from measure import Policy, measure, memory, reset_peak
from peer_worker import serve

Epoch = Callable[[], tuple[Any, Any]]
# PGMax computes in float32 and stops after a number of sweeps that the user gives: as many as bring the largest change
# of a message of all examples under this, at most so many.
CHANGE, SWEEPS = 1e-4, 200


class PGMax:
    """Loopy propagation in JAX on the CPU, both cores, compiled as a whole with `jax.jit`.

    ``vmap`` batches the graph of one example over all examples, as PGMax's own examples do; ``union`` is one graph
    with the variables of all of them; ``loop`` calls the compiled function of one example after the other.
    """

    ways = ("vmap", "union", "loop")

    def __init__(self) -> None:
        from importlib.metadata import version

        import jax

        self.jax = jax
        self.about = f"PGMax {version('pgmax')} on JAX {jax.__version__}, CPU, float32"

    def epoch(self, way: str, arrays: dict[str, Any]) -> tuple[Epoch, dict[str, Any]]:
        """The function of an epoch, compiled, and what is to be told of it."""
        jax, jnp = self.jax, self.jax.numpy
        unary = np.asarray(arrays["unary"], np.float32)
        tables = np.asarray(arrays["pair_tables"], np.float32)
        pairs = arrays["pairs"]
        shape = tables.shape
        if way == "union":
            n = unary.shape[1]
            pairs = (pairs[None] + n * np.arange(len(unary))[:, None, None]).reshape(-1, 2)
            unary, tables = unary.reshape(1, -1, unary.shape[2]), tables.reshape(1, -1, *shape[2:])
        one, needed = self._one(pairs, unary.shape[1], unary.shape[2])
        unary, tables = jax.device_put(unary), jax.device_put(tables)
        sweeps = max(needed(u, t) for u, t in zip(unary, tables, strict=True))
        compiled = jax.jit(one(sweeps) if way == "loop" else jax.vmap(one(sweeps)))

        def epoch() -> tuple[Any, Any]:
            if way == "loop":
                parts = [compiled(u, t) for u, t in zip(unary, tables, strict=True)]
                found = tuple(jnp.stack(part) for part in zip(*parts, strict=True))
            else:
                found = compiled(unary, tables)
            jax.block_until_ready(found)
            return found[0].reshape(shape[0], -1, shape[2]), found[1].reshape(shape)

        return epoch, {"sweeps": sweeps}

    def _one(self, pairs: Any, n: int, states: int) -> tuple[Callable[[int], Any], Callable[[Any, Any], int]]:
        """Functions of one graph: marginals after so many sweeps, and how many sweeps it takes."""
        from pgmax import fgraph, fgroup, infer, vgroup

        jax, jnp = self.jax, self.jax.numpy
        variables = vgroup.NDVarArray(num_states=states, shape=(n,))
        graph = fgraph.FactorGraph(variable_groups=variables)
        group = fgroup.PairwiseFactorGroup(
            variables_for_factors=[[variables[int(a)], variables[int(b)]] for a, b in pairs],
            log_potential_matrix=np.zeros((len(pairs), states, states)),
        )
        graph.add_factors(group)
        inferer = infer.build_inferer(graph.bp_state, backend="bp")
        first, second = jnp.asarray(pairs[:, 0]), jnp.asarray(pairs[:, 1])

        def start(unary: Any, tables: Any) -> Any:
            return inferer.init(log_potentials_updates={group: tables}, evidence_updates={variables: unary})

        def marginals(sweeps: int) -> Any:
            def run(unary: Any, tables: Any) -> tuple[Any, Any]:
                done = inferer.run(start(unary, tables), num_iters=sweeps, damping=0.0, temperature=1.0)
                beliefs = inferer.get_beliefs(done)[variables]
                to_first, to_second = jnp.moveaxis(done.ftov_msgs.reshape(-1, 2, states), 1, 0)
                joint = tables + (beliefs[first] - to_first)[:, :, None] + (beliefs[second] - to_second)[:, None, :]
                return jax.nn.softmax(beliefs, -1), jax.nn.softmax(joint, (-2, -1))

            return run

        step = jax.jit(lambda state: inferer.run_with_diffs(state, 1, damping=0.0, temperature=1.0))

        def needed(unary: Any, tables: Any) -> int:
            state = start(unary, tables)
            for sweeps in range(1, SWEEPS + 1):
                state, change = step(state)
                if change[0] < CHANGE:
                    return sweeps
            return SWEEPS

        return marginals, needed


class Pgmpy:
    """Exact calibration, example by example: pgmpy has no batches and no messages that iterate.

    The junction tree is made once for the graph; an epoch writes the tables of an example into its cliques,
    calibrates, and reads the cliques. ``rebuild`` makes the network and its tree anew each time, which is what its
    interface suggests.
    """

    ways = ("tree", "rebuild")

    def __init__(self) -> None:
        with contextlib.redirect_stderr(open(os.devnull, "w")):
            import pgmpy
            from pgmpy.factors.discrete import DiscreteFactor
            from pgmpy.inference import BeliefPropagation
            from pgmpy.models import DiscreteMarkovNetwork, JunctionTree
        self.factor, self.propagation = DiscreteFactor, BeliefPropagation
        self.network, self.tree = DiscreteMarkovNetwork, JunctionTree
        self.about = f"pgmpy {pgmpy.__version__}, BeliefPropagation on a junction tree, float64"

    def _network(self, unary: Any, pairs: Any, tables: Any) -> Any:
        n, states = unary.shape
        net = self.network()
        net.add_nodes_from(range(n))
        net.add_edges_from(pairs.tolist())
        net.add_factors(*(self.factor([v], [states], np.exp(unary[v])) for v in range(n)))
        pairwise = zip(pairs.tolist(), tables, strict=True)
        net.add_factors(*(self.factor(pair, [states] * 2, np.exp(table)) for pair, table in pairwise))
        return net

    def epoch(self, way: str, arrays: dict[str, Any]) -> tuple[Epoch, dict[str, Any]]:
        """The function of an epoch, and what is to be told of it."""
        unary, pairs, tables = arrays["unary"], arrays["pairs"], arrays["pair_tables"]
        states = unary.shape[2]
        shape = self._network(unary[0], pairs, tables[0]).to_junction_tree()
        cliques = [tuple(clique) for clique in shape.nodes()]
        scopes = [(v,) for v in range(unary.shape[1])] + [tuple(pair) for pair in pairs.tolist()]
        home = [min((c for c in cliques if set(scope) <= set(c)), key=len) for scope in scopes]

        def calibrated(example: int) -> Any:
            if way == "rebuild":
                engine = self.propagation(self._network(unary[example], pairs, tables[example]))
            else:
                values = {clique: np.zeros((states,) * len(clique)) for clique in cliques}
                logs = [*unary[example], *tables[example]]
                for scope, clique, log in zip(scopes, home, logs, strict=True):
                    order = sorted(range(len(scope)), key=lambda i, s=scope, c=clique: c.index(s[i]))
                    sizes = [states if v in scope else 1 for v in clique]
                    values[clique] += np.transpose(log, order).reshape(sizes)
                tree = self.tree()
                tree.add_nodes_from(cliques)
                tree.add_edges_from(shape.edges())
                tree.add_factors(*(self.factor(c, [states] * len(c), np.exp(t)) for c, t in values.items()))
                engine = self.propagation(tree)
            engine.calibrate()
            return engine.get_clique_beliefs()

        def epoch() -> tuple[Any, Any]:
            singles, doubles = np.empty_like(unary), np.empty_like(tables)
            for example in range(len(unary)):
                beliefs = calibrated(example)
                for i, (scope, clique) in enumerate(zip(scopes, home, strict=True)):
                    belief = beliefs[next(c for c in beliefs if set(c) == set(clique))]
                    names = list(belief.variables)
                    others = tuple(k for k, v in enumerate(names) if v not in scope)
                    kept = [v for v in names if v in scope]
                    alone = np.transpose(belief.values.sum(axis=others), [kept.index(v) for v in scope])
                    alone = alone / alone.sum()
                    if len(scope) == 1:
                        singles[example, scope[0]] = alone
                    else:
                        doubles[example, i - unary.shape[1]] = alone
            return singles, doubles

        return epoch, {"cliques": len(cliques), "largest": max(map(len, cliques))}


PEERS = {"pgmax": PGMax, "pgmpy": Pgmpy}


class Worker:
    """Peers that were asked for."""

    def __init__(self) -> None:
        self.peers: dict[str, Any] = {}

    def answer(self, job: dict[str, Any]) -> dict[str, Any]:
        """Say what a peer is, or time its epochs."""
        name = job["peer"]
        if name not in self.peers:
            self.peers[name] = PEERS[name]()
        peer = self.peers[name]
        if "model" not in job:
            return {"status": "ok", "about": peer.about}
        with np.load(job["model"]) as file:
            arrays = {key: file[key] for key in file.files}
        before = reset_peak()
        started = time.perf_counter()
        epoch, about = peer.epoch(job["way"], arrays)
        built, used = time.perf_counter(), time.process_time()
        found = list(epoch())  # compiles
        first = (time.perf_counter() - built, time.process_time() - used)
        policy = Policy(**job["policy"])
        seconds, cpu = first

        def once() -> tuple[float, float]:
            began, used = time.perf_counter(), time.process_time()
            found[:] = epoch()
            return time.perf_counter() - began, time.process_time() - used

        if first[0] < 2 * policy.most:
            timing = measure(("wall", "cpu"), once, policy)
            seconds, cpu = timing.least("wall"), timing.least("cpu")
        np.savez(job["out"], unary=np.asarray(found[0], np.float64), pairs=np.asarray(found[1], np.float64))
        used_most = memory("VmHWM") - before
        about |= {"build": built - started, "first": first[0], "memory": used_most}
        return {"status": "ok", "seconds": seconds, "cpu": cpu, **about}


if __name__ == "__main__":
    serve(Worker())
