"""Run a model in any semiring: one elimination or junction tree, read in another algebra."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from markovfield import semirings
from markovfield.exceptions import ImpossibleEvidenceError, ModelError
from markovfield.factor_graph import FactorGraph
from markovfield.inference.answers import Marginals
from markovfield.inference.evidence import Evidence
from markovfield.inference.registry import resolve
from markovfield.inference.running import Running
from markovfield.inference.verbs import graph_of

__all__ = ["aggregate"]


def aggregate(
    model: Any,
    semiring: str | semirings.Semiring | semirings.KBest | semirings.Expectation = "sum_product",
    evidence: Mapping[Any, Any] | None = None,
    method: Any = "junction_tree",
) -> Any:
    """Combine all assignments consistent with the evidence in a semiring.

    Parameters
    ----------
    semiring
        ``"sum_product"`` gives log Z, ``"max_sum"`` the best score, ``"max_product"`` its exp, ``"min_sum"`` the lowest
        score, ``"counting"`` the number of assignments of nonzero potential, ``"entropy"`` the entropy in nats,
        ``KBest(k)`` a tuple of the k best scores, ``Expectation(values)`` the expected sum of the cells' values.
    method
        Any exact method that has what the semiring needs.

    Examples
    --------
    >>> import markovfield as mf
    >>> net = mf.MarkovNetwork({"A": 2, "B": 2})
    >>> _ = net.add_factor(["A", "B"], [[1.0, 0.0], [1.0, 3.0]])
    >>> mf.aggregate(net, "counting")
    3
    >>> [round(x, 4) for x in mf.aggregate(net, mf.semirings.KBest(2))]
    [1.0986, 0.0]
    """
    graph = graph_of(model)
    known = Evidence.parse(graph.structure, evidence)
    ring = semirings.by_name(semiring)
    running = Running()
    if graph.structure.has_latent and ring in (semirings.ENTROPY, semirings.COUNTING, semirings.MIN_SUM):
        raise ModelError(
            f"the semiring {ring.name!r} needs factors whose table is made of cells, and a noisy-max is a sum over "
            "contributions: give its variable the expanded table, add_cpt(v, net.parents(v), net.cpt(v))"
        )
    if isinstance(ring, semirings.Expectation):
        values = np.asarray(ring.values, np.float64)
        if values.shape != (graph.structure.n_cells,):
            raise ModelError(f"values need one number per cell, shape ({graph.structure.n_cells},), got {values.shape}")
        counts = _marginals(method, graph, known).expected_counts
        return float(counts[counts > 0] @ values[counts > 0])
    if isinstance(ring, semirings.KBest):
        found = resolve(method, "decode").decode(graph, known, variables=None, n_best=ring.k, running=running)
        return tuple(s.score for s in found.n_best)
    if ring is semirings.ENTROPY:
        return _entropy(_marginals(method, graph, known), known)
    if ring is semirings.COUNTING:
        return _count(method, graph, known)
    if ring is semirings.SUM_PRODUCT:
        return float(resolve(method, "log_partition").log_partition(graph, known, running=running))
    if ring is semirings.MIN_SUM:
        return _lowest(method, graph, known)
    best = resolve(method, "decode").decode(graph, known, variables=None, n_best=1, running=running).score
    return float(math.exp(best)) if ring is semirings.MAX_PRODUCT else float(best)


def _marginals(method: Any, graph: FactorGraph, evidence: Evidence) -> Marginals:
    found: Marginals = resolve(method, "marginals").marginals(graph, evidence, targets=(), running=Running())
    return found


def _entropy(answer: Marginals, evidence: Evidence) -> float:
    """log Z less the expected score."""
    tables = answer.graph.log_tables
    counts = answer.expected_counts
    expected = float(counts[counts > 0] @ tables[counts > 0])
    offsets = answer.graph.structure.value_offsets
    for v, vector in evidence.likelihoods:
        p = answer.values[offsets[v] : offsets[v + 1]]
        expected += float(p[p > 0] @ vector[p > 0])
    return answer.log_partition - expected


def _supported(evidence: Evidence, sign: float = 0.0) -> Evidence:
    """Likelihoods as 0 and -inf (``sign=0``) or negated."""
    changed = tuple(
        (
            v,
            np.where(
                vector == -np.inf,
                -np.inf if sign == 0.0 else 0.0,
                sign * np.where(vector == -np.inf, 0.0, vector),
            ),
        )
        for v, vector in evidence.likelihoods
    )
    return Evidence(evidence.states, changed)


def _count(method: Any, graph: FactorGraph, evidence: Evidence) -> int:
    """Sum-product over zero-one potentials; powers of two are the only scaling, so counts below 2^53 are exact."""
    support = graph.with_tables(np.where(graph.log_tables == -np.inf, -np.inf, 0.0))
    known = _supported(evidence)
    chosen = resolve(method, "log_partition")
    try:
        if hasattr(chosen, "count"):
            return int(chosen.count(support, known))
        value = float(chosen.log_partition(support, known, running=Running()))
    except ImpossibleEvidenceError:
        return 0
    if value > 709.0:
        raise ModelError(f"there are e^{value:.6g} assignments, more than a float can hold; take log_partition")
    return round(math.exp(value))


def _lowest(method: Any, graph: FactorGraph, evidence: Evidence) -> float:
    """The best score of the negated model; a hard zero within reach makes it -inf."""
    from markovfield.inference.reduction import reduce, zeros_in_factors

    lowered = graph.lower()
    states = np.full(lowered.n_variables, -1, np.int32)
    states[: graph.n_variables] = evidence.states
    # Constant tables of lowered clauses are structure, not potentials: only the model's own cells count.
    original = graph.reads_own_cells()
    reduced = reduce(lowered.structure, lowered.log_tables, states, propagate_zeros=False)
    zeros = zeros_in_factors(reduced.structure, reduced.log_tables)
    if (zeros & original[reduced.factors]).any() or any((x == -np.inf).any() for _, x in evidence.likelihoods):
        return -math.inf
    negated = graph.with_tables(np.where(graph.log_tables == -np.inf, 0.0, -graph.log_tables))
    found = resolve(method, "decode").decode(
        negated, _supported(evidence, -1.0), variables=None, n_best=1, running=Running()
    )
    return -float(found.score)
