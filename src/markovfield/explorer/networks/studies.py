"""The longer questions: best assignments, what to observe next, sensitivity, what a verb would do."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import markovfield as mf
from markovfield.exceptions import MemoryLimitError, ModelError
from markovfield.explorer.core.stopping import nobody_waits
from markovfield.explorer.networks.network import Known, Network
from markovfield.explorer.networks.posteriors import chosen_method, marginals
from markovfield.explorer.networks.shown import shown
from markovfield.factors.factor_graph import FactorGraph
from markovfield.inference.core.convergence import without_warnings
from markovfield.inference.core.evidence import Evidence

__all__ = ["best", "observe_next", "plan", "tornado"]

TIME_LIMIT = 60.0
MOST_BEST, MOST_ROWS = 20, 40
# Entries of tables that are looked through for those that can move.
MOST_ENTRIES = 4000
VERBS = ("marginals", "decode", "sample", "log_partition")


def _count(asked: dict[str, Any], name: str, most: int, default: int) -> int:
    value = asked.get(name, default)
    if type(value) is not int or not 1 <= value <= most:
        raise ModelError(f"{name} is a number from 1 to {most}, got {value!r}")
    return value


def best(network: Network, asked: dict[str, Any]) -> dict[str, Any]:
    """The n best assignments, their scores and, where log Z is exact, their probabilities given the evidence."""
    known, count = network.known(asked), _count(asked, "n_best", MOST_BEST, 1)
    world = network.after(known.do)
    variables = network.positions(asked.get("variables", []), "variables")
    if known_twice := [v for v in variables if v in known.states]:
        raise ModelError(f"{network.names[known_twice[0]]!r} is observed: pick variables that are not")
    named = [network.names[v] for v in variables] or None
    if named and count > 1:
        raise ModelError("n best are assignments of all variables: ask for one assignment of some")
    limits: dict[str, Any] = {"time_limit": TIME_LIMIT, "callback": nobody_waits}
    refused = False
    try:
        found = mf.decode(world.graph, world.named(known), variables=named, n_best=count, **limits)
    except MemoryLimitError:
        if count == 1:
            raise
        # Several need exact inference; one has approximate methods as well.
        refused = True
        found = mf.decode(world.graph, world.named(known), **limits)
    log_z = None
    if world.tree is not None:
        log_z = marginals(network, known).log_partition
    return {
        "variables": sorted(variables) or list(range(network.n)),
        "method": found.method,
        "guarantee": found.guarantee,
        "optimal": found.optimal,
        "gap": found.gap,
        "seconds": found.seconds,
        "refused": refused,
        "solutions": [
            {
                "states": one.states,
                "score": one.score,
                "log_probability": None if log_z is None else min(0.0, one.score - log_z),
            }
            for one in found.n_best
        ],
    }


def observe_next(network: Network, asked: dict[str, Any]) -> dict[str, Any]:
    """What observing each variable would tell about a target, in bits, and be worth for a decision."""
    known = network.known(asked)
    target = network.position(asked.get("target"), "the target")
    world = network.after(known.do)
    evidence, name = world.named(known), network.names[target]
    exact = world.tree is not None or mf.explain(world.graph, evidence=evidence).guarantee == "exact"
    # Where nothing exact fits, "auto" of these rankings would refuse.
    fits: Any = "auto" if exact else mf.methods.BeliefPropagation()
    if world.tree is not None:
        fits = mf.methods.JunctionTree()
    with without_warnings():
        told = mf.analysis.mutual_information(
            world.graph, name, evidence=evidence, method=fits, time_limit=TIME_LIMIT, callback=nobody_waits
        )
        # Without a table of utilities: what it is worth for a guess, 1 for a right one and 0 for a wrong one.
        utility = asked.get("utility") or np.eye(network.cardinalities[target]).tolist()
        worth = mf.analysis.value_of_information(
            world.graph, name, utility, evidence=evidence, method=fits, time_limit=TIME_LIMIT, callback=nobody_waits
        )
    rows = [
        {"variable": world.graph.names.position(v), "bits": x / math.log(2), "value": worth[v]}
        for v, x in told.top(MOST_ROWS)
    ]
    return {"rows": rows, "ranked": len(told), "guarantee": "exact" if exact else "approximate"}


def tornado(network: Network, asked: dict[str, Any]) -> dict[str, Any]:
    """The entries of tables that a posterior answers to most: what it becomes when their odds halve and double."""
    known, count = network.known(asked), _count(asked, "count", MOST_ROWS, 12)
    factor = asked.get("factor", 2.0)
    if type(factor) not in (int, float) or not 1 < factor <= 1e6:
        raise ModelError(f"factor is a number above 1 by which odds change, got {factor!r}")
    target = network.position(asked.get("target"), "the target")
    state = network.state(target, asked.get("state"))
    if target in known.states:
        raise ModelError(f"the target {network.names[target]!r} is observed: nothing can change it")
    world = network.after(known.do)
    graph, evidence = _with_children(world, known)
    found = mf.analysis.sensitivity(
        graph,
        {network.names[target]: network.states(target)[state]},
        evidence,
        time_limit=TIME_LIMIT,
        callback=nobody_waits,
    )
    rows: list[dict[str, Any]] = []
    told: set[Any] = set()
    added = set(graph.variables[network.n :])
    for entry in found.top(MOST_ENTRIES):
        # The odds of what is certain neither halve nor double.
        if entry.variable in added or not 0 < entry.value < 1:
            continue
        # The two entries of a row of two states are one number.
        row = (entry.variable, tuple(entry.given.items()))
        if len(rows) == count or (row in told and found.derivatives[entry.variable].shape[-1] == 2):
            continue
        told.add(row)
        curve = found.curve(entry.variable, entry.state, entry.given)
        low, high = (_moved(entry.value, by) for by in (1 / factor, factor))
        rows.append(
            {
                "variable": world.graph.names.position(entry.variable),
                "state": shown(entry.state),
                "given": {shown(k): shown(x) for k, x in entry.given.items()},
                "entry": entry.value,
                "derivative": entry.derivative,
                "entries": [low, high],
                "low": float(curve(low)),
                "high": float(curve(high)),
            }
        )
    return {"probability": found.probability, "rows": rows, "factor": factor}


def _with_children(world: Network, known: Known) -> tuple[FactorGraph, dict[Any, Any]]:
    """The network with an observed child of two states in the place of each likelihood, and the evidence as states."""
    evidence = world.named(Known(known.states))
    if not known.likelihoods:
        return world.graph, evidence
    Evidence.parse(world.graph.structure, world.named(known))  # whether they are likelihoods
    if not world.directed:
        raise ModelError("sensitivity needs a Bayesian network: one conditional distribution for each variable")
    model = mf.BayesianNetwork.from_factor_graph(world.graph)
    for v, vector in known.likelihoods.items():
        seen = np.array(vector) / max(vector)
        child = f"likelihood of {v}"
        while child in world.names:
            child += "'"
        model.add_variable(child, 2)
        model.add_cpt(child, [world.names[v]], np.stack([1 - seen, seen], axis=1))
        evidence[child] = 1
    return model.compile(), evidence


def _moved(p: float, by: float) -> float:
    """A probability whose odds are multiplied; zero and one stay."""
    return p * by / (1 - p + p * by)


def plan(network: Network, asked: dict[str, Any]) -> dict[str, Any]:
    """What a verb would do with this evidence: method, reason, width, bytes, operations.

    A method of choice is one for marginals; the other verbs choose for themselves.
    """
    known, verb = network.known(asked), asked.get("verb", "marginals")
    if verb not in VERBS:
        raise ModelError(f"verb must be one of {', '.join(VERBS)}, got {verb!r}")
    method = chosen_method(asked) if verb == "marginals" else "auto"
    world = network.after(known.do)
    told = mf.explain(world.graph, verb, evidence=world.named(known), method=method)
    return {"rows": told.rows(), **told.to_dict()}
