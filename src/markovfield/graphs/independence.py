"""Statements of conditional independence, and whether a graph or a distribution makes them."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Hashable, Iterator
from dataclasses import dataclass
from math import comb
from typing import Any

import numpy as np

from markovfield.exceptions import ModelError
from markovfield.graphs._nodes import check_dag, check_mixed, disjoint_sets, is_graph, kind_of
from markovfield.graphs._walks import ancestral_set, moral_reach, plain_walk, trail_walk
from markovfield.graphs.chain_graphs import check_chain_graph
from markovfield.graphs.joint_table import JointTable, as_joint_table

__all__ = ["Independence", "all_pairs", "dependence", "independent", "n_all_pairs", "statement_test"]

Test = Callable[[Collection[Any], Collection[Any], Collection[Any]], bool]


@dataclass(frozen=True, eq=False, repr=False)
class Independence:
    """The statement that a and b are independent given a third set; the same with a and b exchanged.

    Parameters
    ----------
    a, b, given
        Collections of nodes; a str or an int stands for itself.

    Examples
    --------
    >>> statement = Independence("A", ["B", "D"], {"C"})
    >>> statement
    A ⊥ B, D | C
    >>> statement == Independence({"D", "B"}, {"A"}, {"C"})
    True
    """

    a: frozenset[Any]
    b: frozenset[Any]
    given: frozenset[Any]

    def __init__(self, a: Any, b: Any, given: Any = ()) -> None:
        for name, nodes in (("a", a), ("b", b), ("given", given)):
            single = isinstance(nodes, str) or not isinstance(nodes, Collection)
            object.__setattr__(self, name, frozenset((nodes,) if single else nodes))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Independence) and self._content() == other._content()

    def __hash__(self) -> int:
        return hash(self._content())

    def _content(self) -> tuple[frozenset[Any], frozenset[Any]]:
        return frozenset((self.a, self.b)), self.given

    def __repr__(self) -> str:
        statement = f"{_shown(self.a)} ⊥ {_shown(self.b)}"
        return f"{statement} | {_shown(self.given)}" if self.given else statement


def _shown(nodes: Collection[Hashable]) -> str:
    try:
        ordered: list[Any] = sorted(nodes)  # type: ignore[type-var]
    except TypeError:
        ordered = sorted(nodes, key=str)
    return ", ".join(map(str, ordered)) if ordered else "∅"


def independent(source: Any, a: Any, b: Any, given: Any = (), *, tolerance: float = 1e-9) -> bool:
    """Whether a graph says, or a distribution has, that two sets of variables are independent given a third.

    Parameters
    ----------
    source
        A graph, read by the rule for its kind (`separated`, `d_separated`, `m_separated`, `chain_separated`), or a
        distribution: a `JointTable` or a model of at most ``2**20`` joint states.
    a, b, given
        A node or a collection of nodes each, disjoint, as in `separated`.
    tolerance
        The largest `dependence` of a distribution that counts as none.

    Returns
    -------
    bool

    Examples
    --------
    >>> import networkx as nx
    >>> independent(nx.DiGraph([("A", "C"), ("B", "C")]), "A", "B")
    True
    >>> joint = JointTable([[[0.25, 0.0], [0.0, 0.25]], [[0.0, 0.25], [0.25, 0.0]]], ["A", "B", "C"])
    >>> independent(joint, "A", "B"), independent(joint, "A", "B", given="C")
    (True, False)
    """
    known = source if is_graph(source) else as_joint_table(source, "independent")
    sets = disjoint_sets(known, a, b, given, "independent")
    return statement_test(known, tolerance, "independent")(*sets)


def dependence(distribution: Any, a: Any, b: Any, given: Any = ()) -> float:
    """How far two sets of variables are from independent given a third.

    The largest abs(p(a, b | c) - p(a | c) p(b | c)) over all their configurations with p(c) > 0.

    Parameters
    ----------
    distribution
        A `JointTable` or a model of at most ``2**20`` joint states.
    a, b, given
        A variable or a collection of variables each, disjoint.

    Returns
    -------
    float
        A few times 1e-16 where they are independent. Costs the size of the joint table.

    Examples
    --------
    >>> round(dependence(JointTable([[0.4, 0.1], [0.1, 0.4]], ["A", "B"]), "A", "B"), 12)
    0.15
    """
    joint = as_joint_table(distribution, "dependence")
    return _dependence(joint, *disjoint_sets(joint, a, b, given, "dependence"))


def _dependence(joint: JointTable, a: Collection[Any], b: Collection[Any], given: Collection[Any]) -> float:
    table = joint.grouped(tuple(a), tuple(b), tuple(given))
    weight = table.sum(axis=(0, 1))
    table = table[:, :, weight > 0] / weight[weight > 0]
    return float(np.abs(table - table.sum(axis=1)[:, None] * table.sum(axis=0)[None]).max())


def statement_test(source: Any, tolerance: float, caller: str) -> Test:
    """A function of three disjoint sets, in which the checks of the graph are already done."""
    if isinstance(source, JointTable):
        if not tolerance >= 0:
            raise ModelError(f"tolerance of {caller} must not be negative, got {tolerance}")
        return lambda a, b, given: _dependence(source, a, b, given) <= tolerance
    kind = kind_of(source, caller)
    if kind == "undirected":
        return lambda a, b, given: plain_walk(source.adj, a, b, given)[0] is None
    if kind == "directed" or source.bidirected.size():
        mixed = None if kind == "directed" else check_mixed(source, caller, without="undirected")
        arrows = source if mixed is None else mixed.directed
        siblings = None if mixed is None else mixed.bidirected.adj
        check_dag(arrows, caller)
        return lambda a, b, given: trail_walk(arrows.pred, arrows.succ, siblings, a, b, given)[0] is None
    chain, components = check_chain_graph(source, caller)
    holder = {v: component for component in components for v in component}
    pred, succ, lines = chain.directed.pred, chain.directed.succ, chain.undirected.adj

    def test(a: Collection[Any], b: Collection[Any], given: Collection[Any]) -> bool:
        kept = ancestral_set(itertools.chain(a, b, given), pred, lines)
        reached = moral_reach(pred, succ, lines, holder.__getitem__, kept, a, given)
        return reached.isdisjoint(b)

    return test


def n_all_pairs(n: int, max_given: int | None = None) -> int:
    """How many statements about a pair there are: pairs of n nodes times sets of the others up to a size."""
    top = max(n - 2, 0) if max_given is None else min(max_given, max(n - 2, 0))
    return comb(n, 2) * sum(comb(max(n - 2, 0), k) for k in range(top + 1))


def all_pairs(nodes: Collection[Any], max_given: int | None = None) -> Iterator[tuple[Any, Any, tuple[Any, ...]]]:
    """Every pair of nodes with every set of other nodes up to a size, small sets first."""
    for a, b in itertools.combinations(nodes, 2):
        rest = [v for v in nodes if v not in (a, b)]
        top = len(rest) if max_given is None else min(max_given, len(rest))
        for k in range(top + 1):
            for given in itertools.combinations(rest, k):
                yield a, b, given
