"""Our side of the comparison: one query from scratch, timed in parts."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import numpy as np

import markovfield as mf
from benchmarks.measure import Policy, Timing, measure
from markovfield.inference.automatic import choose
from markovfield.inference.core.evidence import Evidence
from markovfield.inference.core.running import Running
from markovfield.inference.junction_tree.propagate import propagate
from markovfield.inference.problem.problem import potentials

__all__ = ["PARTS", "forget_plans", "model_seconds", "named_evidence", "plan_of", "time_marginals"]

# What stays with the model between queries: its own numbers in other forms (offsets of states, cardinalities as bits,
# scopes as Python lists), the factors of each variable, where tables have zeros, and the tables in linear space (a
# peer's model holds linear tables, too). Nothing of a plan is among it; anything else that was cached is dropped.
KEPT_WITH_STRUCTURE = {"no_evidence", "as_tables", "reduction", "plain", "value_offsets", "bits", "all bits", "walks"}
KEPT_WITH_GRAPH = {"potentials", "zeros"}

PARTS = ("reduce", "order and layout", "execution", "total", "read")


def forget_plans(graph: mf.FactorGraph) -> None:
    """Drop everything an earlier query left, except what belongs to the model itself."""
    for cache, kept in ((graph.structure.cache, KEPT_WITH_STRUCTURE), (graph.cache, KEPT_WITH_GRAPH)):
        for key in list(cache):
            if key not in kept:
                del cache[key]


def model_seconds(graph: mf.FactorGraph) -> float:
    """Seconds to make what stays with the model, once per model and not part of a query."""
    engine, nothing = mf.methods.JunctionTree(), Evidence.parse(graph.structure, None)
    graph.structure.cache.clear()
    graph.cache.clear()
    start = time.perf_counter()
    potentials(graph.to_tables())
    engine.prepare(graph, nothing)
    first = time.perf_counter() - start
    start = time.perf_counter()
    engine.prepare(graph, nothing)
    return max(0.0, first - (time.perf_counter() - start))


def named_evidence(graph: mf.FactorGraph, evidence: Mapping[int, int]) -> dict[Any, Any]:
    """Evidence by position as a user writes it: names of variables and states."""
    s = graph.structure
    return {s.names.variables[v]: s.names.state_names(v, int(s.cardinalities[v]))[x] for v, x in evidence.items()}


def plan_of(
    graph: mf.FactorGraph, evidence: Mapping[Any, Any] | None, method: mf.methods.JunctionTree | None = None
) -> Any:
    """The plan that a query would run."""
    engine = method or mf.methods.JunctionTree()
    return engine.plan(engine.prepare(graph, Evidence.parse(graph.structure, evidence)))


def time_marginals(
    graph: mf.FactorGraph, evidence: Mapping[Any, Any] | None, policy: Policy, method: Any = "auto"
) -> tuple[Timing, mf.Marginals]:
    """Seconds of `PARTS` of one query from scratch, and its answer.

    ``total`` is a whole `mf.marginals` call and is what ratios are made of; the first three columns come from a
    second run in pieces. ``read`` is looking up every variable's marginal by name.
    """
    known = Evidence.parse(graph.structure, evidence)
    engine = choose(method, "marginals", graph, known)
    answers = []

    def whole() -> tuple[float, float]:
        forget_plans(graph)
        start = time.perf_counter()
        answer = mf.marginals(graph, evidence, method=method)
        done = time.perf_counter()
        for variable in graph.variables:
            answer[variable]
        read = time.perf_counter() - done
        answers[:] = [answer]
        return done - start, read

    def pieces() -> tuple[float, float, float]:
        if not isinstance(engine, mf.methods.JunctionTree):
            forget_plans(graph)
            start = time.perf_counter()
            engine.marginals(graph, known, running=Running())
            return 0.0, 0.0, time.perf_counter() - start
        forget_plans(graph)
        start = time.perf_counter()
        problem = engine.prepare(graph, Evidence.parse(graph.structure, evidence))
        reduced = time.perf_counter()
        plan = engine.plan(problem)
        planned = time.perf_counter()
        propagate(plan, problem, running=Running())
        return reduced - start, planned - reduced, time.perf_counter() - planned

    def once() -> tuple[float, ...]:
        return (*pieces(), *whole())

    timing = measure(PARTS, once, policy)
    return timing, answers[0]


def largest_difference(answer: mf.Marginals, others: list[Any]) -> float:
    """Largest absolute difference of marginals; empty arrays (some peers, observed variables) are passed over."""
    worst = 0.0
    for variable, other in zip(answer.graph.variables, others, strict=True):
        if len(other):
            worst = max(worst, float(np.abs(answer[variable] - other).max()))
    return worst
