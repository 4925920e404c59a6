"""Run a model in any semiring: one elimination or junction tree, read in another algebra."""

from __future__ import annotations

import math
from collections.abc import Mapping
from importlib import import_module
from typing import Any

import numpy as np

from markovfield import semirings
from markovfield.exceptions import ImpossibleEvidenceError, MemoryLimitError, ModelError
from markovfield.factors.factor_graph import FactorGraph
from markovfield.inference.constants.decoding import factor_constants, taken_out
from markovfield.inference.constants.sums import centre_sums
from markovfield.inference.core.answers import Marginals
from markovfield.inference.core.evidence import Evidence
from markovfield.inference.core.method import MethodLike, Question
from markovfield.inference.core.registry import resolve
from markovfield.inference.core.running import Running
from markovfield.inference.verbs import Callback, answered_by, decode, form_of, graph_of, log_partition
from markovfield.progress import shows_progress

__all__ = ["aggregate"]

# Counts below this are integers in floats; those below the second survive a logarithm and its rounding.
EXACT_FLOATS, EXACT_LOGS = 2**53, 2.0**40


@shows_progress
def aggregate(
    model: Any,
    semiring: str | semirings.Semiring | semirings.KBest | semirings.Expectation = "sum_product",
    evidence: Mapping[Any, Any] | None = None,
    method: MethodLike = "junction_tree",
    *,
    n_jobs: int | None = None,
    time_limit: float | None = None,
    callback: Callback | None = None,
    progress: bool = False,
) -> Any:
    """Combine all assignments consistent with the evidence in a semiring.

    Parameters
    ----------
    semiring
        ``"sum_product"`` gives log Z, ``"max_sum"`` the best score, ``"max_product"`` its exp, ``"min_sum"`` the lowest
        score (-inf where an assignment has potential zero), ``"counting"`` the number of assignments of nonzero
        potential, to the last digit at any size, ``"entropy"`` the entropy in nats,
        ``KBest(k)`` a tuple of the k best scores, ``Expectation(values)`` the expected sum of the cells' values.
    method
        Any exact method that has what the semiring needs. Structures (`markovfield.structures`) have their own.
    n_jobs, time_limit, callback, progress
        As for `markovfield.marginals`.

    Examples
    --------
    >>> import markovfield as mf
    >>> net = mf.MarkovNetwork({"A": 2, "B": 2})
    >>> _ = net.add_factor(["A", "B"], [[1.0, 0.0], [1.0, 3.0]])
    >>> mf.analysis.aggregate(net, "counting")
    3
    >>> [round(x, 4) for x in mf.analysis.aggregate(net, mf.semirings.KBest(2))]
    [1.0986, 0.0]
    """
    ring = semirings.by_name(semiring)
    running = Running(n_jobs, time_limit, callback)
    common: Any = {"n_jobs": n_jobs, "time_limit": time_limit, "callback": callback}
    own = getattr(import_module(answered_by(form_of(model)) or __name__), "aggregate", None)
    if own not in (None, aggregate):  # structures have dynamic programs of their own
        chosen = "auto" if method == "junction_tree" else method
        return own(model, ring, Question(evidence, chosen, None, None, running))  # type: ignore[misc]
    graph = graph_of(model)
    known = Evidence.parse(graph.structure, evidence)
    if graph.structure.has_latent and ring in (semirings.ENTROPY, semirings.COUNTING, semirings.MIN_SUM):
        raise ModelError(
            f"the semiring {ring.name!r} needs factors whose table is made of cells, and a noisy-max is a sum over "
            "contributions: give its variable the expanded table, add_cpt(v, net.parents(v), net.cpt(v))"
        )
    if isinstance(ring, semirings.Expectation):
        values = np.asarray(ring.values, np.float64)
        if values.shape != (graph.structure.n_cells,):
            raise ModelError(f"values need one number per cell, shape ({graph.structure.n_cells},), got {values.shape}")
        counts = _marginals(method, centre_sums(graph).view, known, running).expected_counts
        return float(counts[counts > 0] @ values[counts > 0])
    if isinstance(ring, semirings.KBest):
        found = decode(graph, known, n_best=ring.k, method=resolve(method, "decode"), **common)
        return tuple(s.score for s in found.n_best)
    if ring is semirings.ENTROPY:
        # A constant in the scores changes no probability, and costs digits: the best of every factor goes, where
        # factors that share cells agree on it.
        constants = factor_constants(graph)
        taken = taken_out(graph, np.where(np.isfinite(constants), constants, 0.0))
        view = centre_sums(graph).view if taken is None else taken[0]
        return _entropy(_marginals(method, view, known, running), known)
    if ring is semirings.COUNTING:
        return _count(method, graph, known, running)
    if ring is semirings.SUM_PRODUCT:
        return float(log_partition(graph, known, resolve(method, "log_partition"), **common))
    if ring is semirings.MIN_SUM:
        return _lowest(method, graph, known, common)
    best = decode(graph, known, method=resolve(method, "decode"), **common).score
    if ring is not semirings.MAX_PRODUCT:
        return float(best)
    if best > 709.7:
        raise ModelError(f"the largest product is e^{best:.6g}, more than a float can hold; take 'max_sum'")
    return float(math.exp(best))


def _marginals(method: MethodLike, graph: FactorGraph, evidence: Evidence, running: Running) -> Marginals:
    found: Marginals = resolve(method, "marginals").marginals(graph, evidence, running=running)
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


def _count(method: MethodLike, graph: FactorGraph, evidence: Evidence, running: Running) -> int:
    """Sum-product over zero-one potentials, in floats up to what they hold, else in integers modulo primes."""
    support = graph.with_tables(np.where(graph.log_tables == -np.inf, -np.inf, 0.0))
    known = _supported(evidence)
    chosen = resolve(method, "log_partition")
    try:
        if hasattr(chosen, "count"):
            # Powers of two are the only scaling, so counts of up to 53 bits are exact.
            count = int(chosen.count(support, known, running=running))
            if count < EXACT_FLOATS or chosen.name == "model_counting":
                return count
            return _exact_count(support, known, count.bit_length() + 1, running)
        answer = chosen.log_partition(support, known, running=running)
    except ImpossibleEvidenceError:
        return 0
    if answer.guarantee != "exact":
        raise ModelError(
            f"counting needs an exact method, and {answer.method} answered with guarantee {answer.guarantee!r}: take "
            "'junction_tree' or 'model_counting'"
        )
    value = float(answer)
    if value > math.log(EXACT_LOGS):
        return _exact_count(support, known, int(value / math.log(2.0)) + 2, running)
    return round(math.exp(value))


def _exact_count(support: FactorGraph, evidence: Evidence, bits: int, running: Running) -> int:
    """A count of at most so many bits to the last digit; where cliques are too large for that, by search."""
    from markovfield.inference.model_counting.exact_counts import count_by_elimination
    from markovfield.inference.model_counting.model_counting import ModelCounting
    from markovfield.inference.problem.problem import prepare

    try:
        return count_by_elimination(prepare(support, evidence), bits, running=running)
    except MemoryLimitError:
        return ModelCounting().count(support, evidence, running=running)


def _reaches_zero(graph: FactorGraph, evidence: Evidence) -> bool:
    """Whether some assignment that agrees with the observed states reads a cell of -inf.

    Other factors' zeros do not count: only what the tables of clauses and counts exclude by their construction.
    """
    from markovfield.inference.problem.reduction import reduce, zeros_in_factors

    if any((x == -np.inf).any() for _, x in evidence.likelihoods):
        return True
    hard = graph.log_tables == -np.inf
    as_tables = graph.with_tables(np.where(hard, 0.0, graph.log_tables)).to_tables()
    states = np.full(as_tables.n_variables, -1, np.int32)
    states[: graph.n_variables] = evidence.states
    reduced = reduce(as_tables.structure, as_tables.log_tables, states)
    marked = graph.with_tables(np.where(hard, -np.inf, 0.0)).to_tables().log_tables
    zeros = zeros_in_factors(reduced.structure, np.concatenate([marked, marked[reduced.cell_origin]]))
    return bool((zeros & graph.reads_own_cells()[reduced.factors]).any())


def _lowest(method: MethodLike, graph: FactorGraph, evidence: Evidence, common: dict[str, Any]) -> float:
    """The lowest score of all assignments that agree with the evidence: the best of the negated model.

    It is -inf where one of them has potential zero.
    """
    if _reaches_zero(graph, evidence):
        return -math.inf
    negated = graph.with_tables(np.where(graph.log_tables == -np.inf, 0.0, -graph.log_tables))
    return -float(decode(negated, _supported(evidence, -1.0), method=resolve(method, "decode"), **common).score)
