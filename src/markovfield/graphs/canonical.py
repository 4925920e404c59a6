"""Hammersley and Clifford made concrete: the canonical clique potentials of a positive distribution."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from markovfield.exceptions import ModelError
from markovfield.graphs.joint_table import JointTable, as_joint_table

if TYPE_CHECKING:
    import networkx as nx

__all__ = ["canonical_potentials", "interaction_graph"]


def canonical_potentials(
    distribution: Any, reference: Mapping[Any, int] | None = None, *, tolerance: float | None = 1e-9
) -> dict[frozenset[Any], npt.NDArray[np.float64]]:
    """Log-potentials of sets of variables that add up to log p, by Moebius inversion (Caetano, lecture 4).

    The potential of a set A is the sum, over its subsets B, of log p of the configuration that agrees with x on B and
    with the reference elsewhere, with a minus where B lacks an odd number of A's variables. It is zero where a variable
    of A is in its reference state, and zero altogether where A is not a clique of a graph to which the positive
    distribution is Markov: what is left is a product of clique potentials (Murphy 19.3).

    Parameters
    ----------
    distribution
        A `JointTable` or a model of at most ``2**20`` joint states, without zeros.
    reference
        Index of the reference state of each variable; 0 where not given.
    tolerance
        Potentials with no entry above it in size are left out, except the constant of the empty set; None keeps all
        ``2**n``. Rounding leaves up to about ``2**n`` times 1e-15 of a potential that is zero.

    Returns
    -------
    dict
        From a frozenset of variables to ``float64``, with one axis for each of them in the order of the distribution's
        variables. Found with one subtraction per entry of the joint table and variable.

    Examples
    --------
    >>> joint = JointTable([[0.4, 0.1], [0.1, 0.4]], ["A", "B"])
    >>> potentials = canonical_potentials(joint)
    >>> print(potentials[frozenset("AB")].round(3))
    [[0.    0.   ]
     [0.    2.773]]
    """
    joint = as_joint_table(distribution, "canonical_potentials")
    if tolerance is not None and not tolerance >= 0:
        raise ModelError(f"tolerance of canonical_potentials must not be negative, got {tolerance}")
    states = _reference(joint, reference, "canonical_potentials")
    effects = _effects(joint, states, "canonical_potentials")
    n = len(joint)
    if tolerance is None:
        kept = [axes for k in range(n + 1) for axes in itertools.combinations(range(n), k)]
    else:
        kept = _interacting(effects, states, tolerance)
    potentials = {}
    for axes in kept:
        block = effects[tuple(slice(None) if i in axes else states[i] for i in range(n))].copy()
        # Along an axis of the set, the reference state holds the potential of a smaller set.
        for k, i in enumerate(axes):
            block[(slice(None),) * k + (states[i],)] = 0.0
        potentials[frozenset(joint.variables[i] for i in axes)] = block
    return potentials


def interaction_graph(
    distribution: Any, reference: Mapping[Any, int] | None = None, *, tolerance: float = 1e-9
) -> nx.Graph:
    """The graph that joins the variables of every canonical potential that is not zero.

    The distribution factorises over its cliques, and over those of no graph with fewer edges: for a positive
    distribution it is `minimal_undirected_imap`, found from potentials instead of tests.

    Parameters
    ----------
    distribution, reference, tolerance
        As in `canonical_potentials`.

    Returns
    -------
    networkx.Graph

    Examples
    --------
    >>> import markovfield as mf
    >>> net = mf.MarkovNetwork({"A": 2, "B": 2, "C": 2})
    >>> _ = net.add_factor(["A", "B"], [[3.0, 1.0], [1.0, 3.0]])
    >>> _ = net.add_factor(["B", "C"], [[3.0, 1.0], [1.0, 2.0]])
    >>> sorted(interaction_graph(net).edges)
    [('A', 'B'), ('B', 'C')]
    """
    import networkx as nx

    joint = as_joint_table(distribution, "interaction_graph")
    if not tolerance >= 0:
        raise ModelError(f"tolerance of interaction_graph must not be negative, got {tolerance}")
    states = _reference(joint, reference, "interaction_graph")
    graph = nx.Graph()
    graph.add_nodes_from(joint.variables)
    for axes in _interacting(_effects(joint, states, "interaction_graph"), states, tolerance):
        graph.add_edges_from(itertools.combinations([joint.variables[i] for i in axes], 2))
    return graph


def _reference(joint: JointTable, reference: Mapping[Any, int] | None, caller: str) -> list[int]:
    states = [0] * len(joint)
    for variable, state in (reference or {}).items():
        if variable not in joint:
            raise ModelError(f"reference of {caller} names {variable!r}, which is not a variable of the distribution")
        axis = joint.variables.index(variable)
        if not 0 <= state < joint.probabilities.shape[axis]:
            top = joint.probabilities.shape[axis] - 1
            raise ModelError(f"reference of {caller} for {variable!r} must be an index from 0 to {top}, got {state!r}")
        states[axis] = int(state)
    return states


def _effects(joint: JointTable, states: list[int], caller: str) -> npt.NDArray[np.float64]:
    """One table with all potentials: cell x holds that of the variables not in their reference state, at x."""
    if not joint.is_positive:
        raise ModelError(f"{caller} needs a positive distribution, got one with configurations of probability zero")
    effects = np.log(joint.probabilities)
    for axis, state in enumerate(states):
        base = np.take(effects, [state], axis=axis)
        effects = effects - base
        effects[(slice(None),) * axis + (slice(state, state + 1),)] = base
    return effects


def _interacting(effects: npt.NDArray[np.float64], states: list[int], tolerance: float) -> list[tuple[int, ...]]:
    """Sets of axes whose potential exceeds the tolerance somewhere, smaller sets first, and the empty set."""
    cells = np.argwhere(np.abs(effects) > tolerance)
    members = np.unique(cells != np.array(states, np.intp), axis=0) if cells.size else np.zeros((0, len(states)), bool)
    found = {tuple(np.flatnonzero(row).tolist()) for row in members}
    return sorted(found | {()}, key=lambda axes: (len(axes), axes))
