"""A discrete model with its plans, and evidence as the browser says it."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from threading import Lock
from typing import Any, TypeVar

import networkx as nx

import markovfield as mf
from markovfield.exceptions import ModelError
from markovfield.explorer.core.subject import Subject
from markovfield.explorer.networks.shown import shown
from markovfield.factors.factor_graph import FactorGraph
from markovfield.inference.junction_tree.compiled import CompiledJunctionTree

__all__ = ["Known", "Network", "compiled", "network_of"]

# A clique tree of so many states answers in well under a second.
MOST_LOG2_STATES = 25.0
# How many networks after interventions keep their plans, and how many drawings are kept.
MOST_PLANS, MOST_DRAWINGS = 8, 24

T = TypeVar("T")


@dataclass(frozen=True)
class Known:
    """What the browser says is known: by position, observed states, likelihoods and interventions."""

    states: dict[int, int] = field(default_factory=dict)
    likelihoods: dict[int, list[float]] = field(default_factory=dict)
    do: dict[int, int] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.states) + len(self.likelihoods)

    def without(self, position: int) -> Known:
        """The same without one piece of evidence."""
        return Known(
            {v: x for v, x in self.states.items() if v != position},
            {v: x for v, x in self.likelihoods.items() if v != position},
            self.do,
        )

    def only(self, positions: set[int]) -> Known:
        """The evidence on some variables alone."""
        return Known(
            {v: x for v, x in self.states.items() if v in positions},
            {v: x for v, x in self.likelihoods.items() if v in positions},
            self.do,
        )


class Memory:
    """The last few things that were made, by key."""

    def __init__(self, most: int) -> None:
        self._most, self._lock = most, Lock()
        self._kept: OrderedDict[Any, Any] = OrderedDict()

    def __len__(self) -> int:
        return len(self._kept)

    def kept(self, key: Any, make: Callable[[], T]) -> T:
        """What ``make`` gives; made again when it was not asked for in a long time."""
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                found: T = self._kept[key]
                return found
        # Not under the lock: two tabs that ask for the same at once do the work twice, and none waits for another's.
        found = make()
        with self._lock:
            self._kept[key] = found
            while len(self._kept) > self._most:
                self._kept.popitem(last=False)
        return found


class Network:
    """A compiled model, its graph, and plans that answer a click at once."""

    def __init__(self, model: Any, graph: FactorGraph) -> None:
        self.model, self.graph = model, graph
        s = graph.structure
        self.names = list(graph.variables)
        self.cardinalities: list[int] = s.cardinalities.tolist()
        self.n = len(self.names)
        self.shown = [shown(name) for name in self.names]
        self.directed = bool(s.n_factors) and sorted(s.child.tolist()) == list(range(s.n_variables))
        self.priors: dict[str, Any] = {}
        self.drawings = Memory(MOST_DRAWINGS)
        self._others = Memory(MOST_PLANS)

    def states(self, v: int) -> list[Any]:
        """Names of a variable's states."""
        return list(self.graph.names.state_names(v, self.cardinalities[v]))

    def named(self, known: Known) -> dict[Any, Any]:
        """Evidence as the verbs take it."""
        found: dict[Any, Any] = {self.names[v]: self.states(v)[x] for v, x in known.states.items()}
        return found | {self.names[v]: list(x) for v, x in known.likelihoods.items()}

    @cached_property
    def arcs(self) -> list[tuple[int, int]]:
        """Of a directed model, pairs of a parent and a child."""
        s = self.graph.structure
        children = s.child.tolist()
        return [(v, c) for f, c in enumerate(children) for v in s.scope(f).tolist() if v != c and c >= 0]

    @cached_property
    def dag(self) -> nx.DiGraph:
        """The directed graph of a Bayesian network, by position."""
        found: nx.DiGraph = nx.DiGraph()
        found.add_nodes_from(range(self.n))
        found.add_edges_from(self.arcs)
        return found

    @cached_property
    def primal(self) -> nx.Graph:
        """The graph that joins variables which share a factor."""
        found: nx.Graph = nx.Graph()
        found.add_nodes_from(range(self.n))
        s = self.graph.structure
        for f in range(s.n_factors):
            scope = sorted(set(s.scope(f).tolist()))
            found.add_edges_from((a, b) for i, b in enumerate(scope) for a in scope[:i])
        return found

    @cached_property
    def edges(self) -> list[tuple[int, int]]:
        """What is drawn: arcs, or pairs that share a factor."""
        return list(dict.fromkeys(self.arcs)) if self.directed else sorted(self.primal.edges)

    @cached_property
    def primal_of_arcs(self) -> nx.Graph:
        """The drawn edges without their directions."""
        return self.dag.to_undirected() if self.directed else self.primal

    @cached_property
    def explanation(self) -> Any:
        """What `marginals` without evidence would do."""
        return mf.explain(self.graph, "marginals")

    @cached_property
    def tree(self) -> CompiledJunctionTree | None:
        """The plan that answers every click, where an exact one is small enough."""
        told = self.explanation
        if told.guarantee != "exact" or told.log2_largest > MOST_LOG2_STATES:
            return None
        found = mf.methods.JunctionTree.compile(self.graph)
        return found if found.plan.log2_states <= MOST_LOG2_STATES else None

    def after(self, do: Mapping[int, int]) -> Network:
        """The network after interventions; plans of the last few are kept."""
        if not do:
            return self
        if not isinstance(self.model, mf.BayesianNetwork):
            raise ModelError("do(...) needs a Bayesian network: other models do not say what causes what")

        def make() -> Network:
            changed = self.model.do({self.names[v]: self.states(v)[x] for v, x in do.items()})
            return Network(changed, changed.compile())

        return self._others.kept(tuple(sorted(do.items())), make)

    @cached_property
    def grid(self) -> tuple[int, int] | None:
        """Rows and columns where the variables are the sites of a lattice, row by row."""
        shape = getattr(self.model, "shape", None)
        if not isinstance(shape, tuple) or len(shape) != 2 or shape[0] * shape[1] != self.n:
            return None
        return int(shape[0]), int(shape[1])

    # ---- what the browser says ------------------------------------------------------------------------------------

    def position(self, value: Any, what: str = "a variable") -> int:
        """A variable's number, checked."""
        # Keys of JSON objects are texts.
        if isinstance(value, str) and value.isdecimal() and len(value) < 10:
            value = int(value)
        if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < self.n:
            raise ModelError(f"{what} is a number from 0 to {self.n - 1}, got {_short(value)}")
        return value

    def positions(self, values: Any, what: str) -> list[int]:
        """Several."""
        if not isinstance(values, list):
            raise ModelError(f"{what} is a list of variables' numbers, got {type(values).__name__}")
        return list(dict.fromkeys(self.position(v, f"an entry of {what}") for v in values))

    def state(self, v: int, value: Any) -> int:
        """A state's number, checked."""
        card = self.cardinalities[v]
        if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < card:
            raise ModelError(f"a state of {self.names[v]!r} is a number from 0 to {card - 1}, got {_short(value)}")
        return value

    def known(self, asked: Mapping[str, Any]) -> Known:
        """Evidence of a request: ``{"evidence": {"states": ..., "likelihoods": ..., "do": ...}}``."""
        given = asked.get("evidence") or {}
        if not isinstance(given, dict) or not all(isinstance(part, dict) for part in given.values()):
            raise ModelError('evidence is an object with "states", "likelihoods" and "do", each an object')
        states = {self.position(v): self.state(self.position(v), x) for v, x in given.get("states", {}).items()}
        do = {self.position(v): self.state(self.position(v), x) for v, x in given.get("do", {}).items()}
        likelihoods = {}
        for v, vector in given.get("likelihoods", {}).items():
            at = self.position(v)
            if not isinstance(vector, list) or not all(type(x) in (int, float) for x in vector):
                raise ModelError(
                    f"the likelihood of variable {self.names[at]!r} is a list of numbers, got {_short(vector)}"
                )
            likelihoods[at] = [float(x) for x in vector]
        if (twice := next((v for v in likelihoods if v in states), None)) is not None:
            raise ModelError(f"variable {self.names[twice]!r} has a state and likelihoods as evidence: give one")
        return Known(states, likelihoods, do)


def _short(value: Any) -> str:
    """What the browser said, as far as an error needs it."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def compiled(subject: Subject) -> FactorGraph | None:
    """The model as a factor graph where it is a discrete one, or None."""

    def make() -> FactorGraph | None:
        model = subject.model
        if isinstance(model, FactorGraph):
            return model
        if not hasattr(model, "compile"):
            return None
        try:
            found = model.compile()
        except ModelError:
            return None
        return found if isinstance(found, FactorGraph) else None

    return subject.kept("factor graph", make)


def network_of(subject: Subject) -> Network:
    """The network that is explored; one for each version of the model."""

    def make() -> Network:
        graph = compiled(subject)
        if graph is None:
            raise ModelError("the model is no discrete network: it does not compile to a factor graph")
        return Network(subject.model, graph)

    return subject.kept("network", make)
