"""Belief propagation step by step, for showing on small models; the verbs have kernels of their own."""

from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np

import markovfield as mf
from markovfield.arrays import FloatArray
from markovfield.exceptions import ModelError
from markovfield.explorer.networks.network import Network
from markovfield.explorer.networks.shown import shown
from markovfield.explorer.networks.structure import by_distance
from markovfield.inference.core.convergence import without_warnings
from markovfield.inference.core.evidence import Evidence

__all__ = ["messages", "residuals"]

MOST_VARIABLES, MOST_FACTORS, MOST_CELLS, MOST_SWEEPS = 40, 80, 4096, 50
TOLERANCE = 1e-9

Edge = tuple[int, int]


class _Propagation:
    """Messages between variables and the factors around them, each normalised: to sum or, of maxima, to peak at one."""

    def __init__(self, network: Network, asked: dict[str, Any], maximise: bool) -> None:
        known = network.known(asked)
        world = network.after(known.do)
        graph = world.graph.to_tables()
        s = graph.structure
        if s.n_variables > MOST_VARIABLES or s.n_factors > MOST_FACTORS:
            raise ModelError(
                f"messages are shown for at most {MOST_VARIABLES} variables and {MOST_FACTORS} factors, "
                f"this model has {s.n_variables} and {s.n_factors}"
            )
        evidence = Evidence.parse(world.graph.structure, world.named(known))
        self.maximise = maximise
        self.names = [shown(v) for v in graph.variables]
        self.cards: list[int] = s.cardinalities.tolist()
        self.scopes: list[list[int]] = [s.scope(f).tolist() for f in range(s.n_factors)]
        if any(len(set(scope)) < len(scope) for scope in self.scopes):
            raise ModelError("messages are shown for factors that name no variable twice")
        self.tables: list[FloatArray] = []
        for f in range(s.n_factors):
            table = graph.table(f)
            if table.size > MOST_CELLS:
                raise ModelError(f"messages are shown for tables of at most {MOST_CELLS} cells, one has {table.size}")
            top = table.max(initial=-np.inf)
            self.tables.append(np.exp(table - top) if top > -np.inf else np.zeros_like(table))
        # What is known of a variable is a factor of its own, which sends and receives nothing.
        self.own: list[FloatArray] = [np.ones(card) for card in self.cards]
        for v, state in enumerate(evidence.states.tolist()):
            if state >= 0:
                self.own[v] = np.eye(self.cards[v])[state]
        for v, logs in evidence.likelihoods:
            self.own[v] = self.own[v] * np.exp(logs - logs.max())
        self.around: list[list[int]] = [[] for _ in self.cards]
        for f, scope in enumerate(self.scopes):
            for v in scope:
                self.around[v].append(f)
        pairs = [(v, f) for f, scope in enumerate(self.scopes) for v in scope]
        self.to_factor: dict[Edge, FloatArray] = {(v, f): self._normal(np.ones(self.cards[v])) for v, f in pairs}
        self.to_variable: dict[Edge, FloatArray] = {(f, v): self._normal(np.ones(self.cards[v])) for v, f in pairs}

    def _normal(self, values: FloatArray) -> FloatArray:
        total = float(values.max() if self.maximise else values.sum())
        return values / total if total > 0 else values

    def from_variable(self, v: int, f: int) -> FloatArray:
        """The product of what else the variable heard."""
        product = self.own[v].copy()
        for other in self.around[v]:
            if other != f:
                product *= self.to_variable[other, v]
        return self._normal(product)

    def from_factor(self, f: int, v: int) -> FloatArray:
        """The table times the other messages, with the other variables summed out or maximised over."""
        table, scope = self.tables[f], self.scopes[f]
        for axis, u in enumerate(scope):
            if u != v:
                shape = [1] * table.ndim
                shape[axis] = -1
                table = table * self.to_factor[u, f].reshape(shape)
        others = tuple(axis for axis, u in enumerate(scope) if u != v)
        return self._normal(table.max(axis=others) if self.maximise else table.sum(axis=others))

    def beliefs(self) -> list[FloatArray]:
        """The product of all that each variable heard."""
        return [self._normal(self.from_variable(v, -1)) for v in range(len(self.cards))]

    def factor_graph(self) -> nx.Graph:
        """Variables by number, factors after them."""
        n = len(self.cards)
        found: nx.Graph = nx.Graph()
        found.add_nodes_from(range(n + len(self.scopes)))
        found.add_edges_from((v, n + f) for f, scope in enumerate(self.scopes) for v in scope)
        return found

    def send(self, source: int, target: int) -> tuple[dict[str, Any], float]:
        """One message, sent; and how far it is from the one before."""
        n = len(self.cards)
        if source < n:
            key, store, values = (source, target - n), self.to_factor, self.from_variable(source, target - n)
        else:
            key, store, values = (source - n, target), self.to_variable, self.from_factor(source - n, target)
        moved = float(np.abs(values - store[key]).max())
        store[key] = values
        return {"from": source, "to": target, "values": values, "moved": moved}, moved


def _two_passes(graph: nx.Graph) -> list[Edge]:
    """Messages of a forest in the order in which each is sent once: to the roots, and back."""
    upwards: list[Edge] = []
    for component in nx.connected_components(graph):
        root = min(nx.center(graph.subgraph(component)))
        upwards += [(child, parent) for parent, child in reversed(list(nx.bfs_edges(graph, root)))]
    return upwards + [(b, a) for a, b in reversed(upwards)]


def messages(network: Network, asked: dict[str, Any]) -> dict[str, Any]:
    """A drawing of the factor graph, and steps of messages with the beliefs after each.

    On forests a step is one message, in two passes; on others a sweep of all messages at once.
    """
    algebra, sweeps = asked.get("algebra", "sum"), asked.get("sweeps", 20)
    if algebra not in ("sum", "max"):
        raise ModelError(f"algebra must be 'sum' or 'max', got {algebra!r}")
    if type(sweeps) is not int or not 1 <= sweeps <= MOST_SWEEPS:
        raise ModelError(f"sweeps is a number from 1 to {MOST_SWEEPS}, got {sweeps!r}")
    run = _Propagation(network, asked, algebra == "max")
    graph, n = run.factor_graph(), len(run.cards)
    forest = not graph.edges or nx.is_forest(graph)
    steps: list[dict[str, Any]] = [{"messages": [], "beliefs": run.beliefs(), "residual": None}]
    converged = forest
    if forest:
        for source, target in _two_passes(graph):
            message, moved = run.send(source, target)
            steps.append({"messages": [message], "beliefs": run.beliefs(), "residual": moved})
    else:
        for _ in range(sweeps):
            sent = []
            for half in (range(n), range(n, n + len(run.scopes))):
                sent += [run.send(u, w) for u in half for w in sorted(graph.neighbors(u))]
            residual = max(moved for _, moved in sent)
            steps.append({"messages": [m for m, _ in sent], "beliefs": run.beliefs(), "residual": residual})
            if residual < TOLERANCE:
                converged = True
                break
    sizes = [(max(44.0, 8.4 * min(len(name), 18) + 18), 48.0) for name in run.names] + [(14.0, 14.0)] * len(run.scopes)
    placed = by_distance(sizes, list(graph.edges))
    return {
        "forest": forest,
        "converged": converged,
        "names": run.names,
        "scopes": run.scopes,
        "centres": placed.centres,
        "sizes": sizes,
        "width": placed.width,
        "height": placed.height,
        "steps": steps,
    }


def residuals(network: Network, asked: dict[str, Any]) -> dict[str, Any]:
    """How far loopy belief propagation moves in each sweep, by the library's own method."""
    known = network.known(asked)
    damping = asked.get("damping", 0.0)
    if type(damping) not in (int, float) or not 0 <= damping < 1:
        raise ModelError(f"damping is a number from 0 to less than 1, got {damping!r}")
    world = network.after(known.do)
    method = mf.methods.BeliefPropagation(schedule="synchronous", damping=float(damping), max_iterations=200)
    with without_warnings():  # the page says itself whether it converged
        found = mf.marginals(world.graph, world.named(known), method=method)
    return {
        "residuals": found.residuals,
        "converged": found.converged,
        "iterations": found.iterations,
        "guarantee": found.guarantee,
        "bethe": found.log_partition,
    }
