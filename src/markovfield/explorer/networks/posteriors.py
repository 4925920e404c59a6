"""Marginals with their guarantee, what each piece of evidence contributes, and whether the pieces agree."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import markovfield as mf
from markovfield.exceptions import MemoryLimitError, ModelError, StoppedError
from markovfield.explorer.core.stopping import nobody_waits
from markovfield.explorer.networks.network import Known, Network
from markovfield.inference.core.answers import Marginals
from markovfield.inference.core.registry import ENTRIES

__all__ = ["METHODS", "chosen_method", "conflict", "contributions", "known_methods", "marginals", "posteriors"]

# Methods that the page offers beside the plan; the rest would need settings.
METHODS = ("auto", "junction_tree", "belief_propagation", "tree_reweighted", "mean_field", "gibbs", "sandwich")
TIME_LIMIT = 60.0


def chosen_method(asked: dict[str, Any]) -> str:
    """The method that a request names, checked."""
    method = asked.get("method", "auto")
    if method not in METHODS:
        raise ModelError(f"method must be one of {', '.join(METHODS)}, got {method!r}")
    return str(method)


def marginals(network: Network, known: Known, method: str = "auto") -> Marginals:
    """The answer of the verb: by the plan that is kept, by what the verb would take, or by a method of choice."""
    world = network.after(known.do)
    evidence = world.named(known)
    if method in ("auto", "junction_tree"):
        tree = world.tree
        if tree is not None:
            return tree.run(evidence)
    found = mf.marginals(world.graph, evidence, method=method, time_limit=TIME_LIMIT, callback=nobody_waits)
    if nobody_waits():
        raise StoppedError("the browser has given this question up")
    return found


def prior_of(network: Network, known: Known, method: str = "auto") -> Marginals:
    """The answer without evidence, in the world after the same interventions; computed once."""
    world = network.after(known.do)
    if method not in world.priors:
        world.priors[method] = marginals(world, Known(), method)
    return world.priors[method]


def posteriors(network: Network, asked: dict[str, Any]) -> dict[str, Any]:
    """Marginals of all variables, log P(evidence) where it means something, guarantee, bounds and conflict."""
    known, method = network.known(asked), chosen_method(asked)
    answer = marginals(network, known, method) if len(known) else prior_of(network, known, method)
    low, high = answer.log_partition_bounds
    told: dict[str, Any] = {
        "values": answer.values,
        "method": answer.method,
        "guarantee": answer.guarantee,
        "converged": answer.converged,
        "iterations": answer.iterations,
        "log_partition": answer.log_partition,
        "bounds": [low, high],
        "error": answer.log_partition_error,
        "seconds": answer.seconds,
        "width": answer.width,
        "standard_errors": None if answer.monte_carlo is None else answer.monte_carlo.standard_errors,
        "doubts": [] if answer.monte_carlo is None else list(answer.monte_carlo.doubts),
    }
    if len(known):
        told |= _evidence(network, known, method, answer)
    return told


def _evidence(network: Network, known: Known, method: str, answer: Marginals) -> dict[str, Any]:
    """How probable the evidence is, and its conflict; neither where the method has no answer without evidence."""
    try:
        prior = prior_of(network, known, method)
    except StoppedError:
        raise
    except (ModelError, MemoryLimitError, TimeoutError):
        return {"log_evidence": None, "conflict": None}
    # On one scale: log Z without evidence by the same method.
    log_evidence = answer.log_partition - prior.log_partition
    return {"log_evidence": log_evidence, "conflict": conflict(network, known, prior, log_evidence)}


def _own_probability(network: Network, known: Known, prior: Marginals, v: int) -> float:
    """The probability of one piece of evidence alone."""
    own = prior[network.names[v]]
    if v in known.states:
        return float(own[known.states[v]])
    return float(np.dot(own, known.likelihoods[v]))


def conflict(network: Network, known: Known, prior: Marginals, log_evidence: float) -> float | None:
    """log2 of the product of P(e_i) over P(e) (Jensen): above zero where the pieces speak against each other."""
    if len(known) < 2 or not math.isfinite(log_evidence):
        return None
    own = [_own_probability(network, known, prior, v) for v in (*known.states, *known.likelihoods)]
    if min(own) <= 0:
        return None
    return (sum(map(math.log, own)) - log_evidence) / math.log(2)


def _log_odds(p: float) -> float | None:
    return math.log(p / (1 - p)) if 0 < p < 1 else None


def contributions(network: Network, asked: dict[str, Any]) -> dict[str, Any]:
    """How far each piece of evidence moves the log-odds of a state, given the others; and the conflict it makes."""
    known = network.known(asked)
    target = network.position(asked.get("target"), "the target")
    state = network.state(target, asked.get("state"))
    method, name = chosen_method(asked), network.names[target]
    prior = prior_of(network, known, method)
    full = marginals(network, known, method)
    rows = []
    for v in (*known.states, *known.likelihoods):
        if v == target:
            continue
        left_out = marginals(network, known.without(v), method)
        alone = marginals(network, known.only({v}), method)
        p, q, r = (float(a[name][state]) for a in (full, left_out, alone))
        own = _own_probability(network, known, prior, v)
        given = full.log_partition - left_out.log_partition
        rows.append(
            {
                "variable": v,
                "without": q,
                "alone": r,
                "given_others": _difference(_log_odds(p), _log_odds(q)),
                "by_itself": _difference(_log_odds(r), _log_odds(float(prior[name][state]))),
                "surprise": (math.log(own) - given) / math.log(2) if own > 0 and math.isfinite(given) else None,
            }
        )
    rows.sort(key=lambda row: -abs(row["given_others"] if row["given_others"] is not None else math.inf))
    return {
        "before": float(prior[name][state]),
        "after": float(full[name][state]),
        "guarantee": full.guarantee,
        "rows": rows,
    }


def _difference(a: float | None, b: float | None) -> float | None:
    return None if a is None or b is None else a - b


def known_methods() -> list[str]:
    """Those of `METHODS` that there are, for the page's list."""
    there = {entry.name for entry in ENTRIES if "marginals" in entry.verbs}
    return [name for name in METHODS if name == "auto" or name in there]
