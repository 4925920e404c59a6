"""Weighted model counting: exact sums of models full of hard zeros, and brackets where the time does not suffice."""

from __future__ import annotations

import math
import warnings
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from markovfield._validation import check_method
from markovfield.arrays import FloatArray
from markovfield.exceptions import ImpossibleEvidenceError, MemoryLimitError, StoppedError
from markovfield.factors.factor_graph import FactorGraph
from markovfield.factors.remembered import remembered
from markovfield.inference.core.answers import LogPartition, Marginals
from markovfield.inference.core.evidence import Evidence
from markovfield.inference.core.limits import memory_limit_bytes
from markovfield.inference.core.running import Running
from markovfield.inference.model_counting.exact_counts import chinese_remainder, primes_above
from markovfield.inference.model_counting.formula import Encoding, encode
from markovfield.inference.model_counting.search import CHUNK, CountingSearch
from markovfield.inference.problem.problem import Problem, prepare
from markovfield.inference.problem.reduction import hard_zeros
from markovfield.kernels.compilations import clock

__all__ = ["ModelCounting", "is_hard"]

# Of a time limit: what the search may take, so that the rest suffices for bounds from mini-buckets; and what it takes
# where the rest would not suffice, at so many seconds for each factor.
SEARCH_SHARE, WHOLE_SHARE, BUCKET_SECONDS = 0.6, 0.95, 1e-3
# Steps that a search in haste may take to find a model for everything that is open.
HASTY_STEPS = 2 * CHUNK
# The cache may take this share of the memory limit.
CACHE_SHARE = 0.25
# Mini-buckets of more variables are not planned.
MOST_BUCKETS = 5_000
# The share of factors with zeros from which a model is one for counting, and how many factors are looked at one by one.
HARD_SHARE, MOST_FACTORS = 0.5, 200_000


@remembered
def is_hard(graph: FactorGraph) -> bool:
    """Whether most factors that join variables have hard zeros, and a search is worth trying.

    Examples
    --------
    >>> import markovfield as mf
    >>> net = mf.MarkovNetwork({"A": 2, "B": 2})
    >>> _ = net.add_factor(["A", "B"], [[1.0, 1.0], [1.0, 0.0]])
    >>> is_hard(net.compile())
    True
    """
    as_tables = graph.to_tables()
    s = as_tables.structure
    if graph.structure.has_latent or s.n_factors > MOST_FACTORS:
        return False
    joins = graph.reads_own_cells() & (np.diff(s.scope_offsets) > 1)
    return bool(joins.any() and hard_zeros(as_tables)[joins].mean() >= HARD_SHARE)


def _has_time_for_buckets(graph: FactorGraph, running: Running) -> bool:
    """Whether what a search leaves of the time limit is enough to plan mini-buckets and to pass over them."""
    s = graph.to_tables().structure
    if s.n_variables > MOST_BUCKETS:
        return False
    return running.time_limit is None or (1.0 - SEARCH_SHARE) * running.time_limit > BUCKET_SECONDS * s.n_factors


@dataclass(frozen=True)
class ModelCounting:
    """Weighted model counting by search (sharpSAT, Thurley 2006; Cachet, Sang and others 2004).

    Hard zeros become clauses, variables of several states one Boolean for each state. The search branches on a
    variable, propagates units, splits what is left into components that share no variable, and counts each once: counts
    are kept in a cache. Conflicts are learned from. Variables near the root of a clique tree come first, the more so
    the narrower the tree is (Korhonen and Jaervisalo 2021). Potentials other than zero and one are weights of literals
    and tables. Exact at widths far beyond that of a junction tree where clauses decide much; where potentials have no
    zeros take a junction tree.

    Stopped by the time limit, by ``max_steps`` or by the callback it answers with bounds: the lower one is the sum of
    what was counted, and of models found in haste for what was not; the upper one is the better of what the search has
    left open and of `MiniBucket`.

    Parameters
    ----------
    max_steps
        Literals, clauses and cells to look at, some 10^8 a second; None is no limit but that of time.
    memory_limit
        Bytes, or like ``"4GiB"``; None is 8 GiB, or four fifths of the container's memory if that is less. A quarter
        of it is for the cache, which forgets the oldest counts where it is full.
    i_bound
        Of the mini-buckets that bound a sum from above which was not counted to the end.

    Examples
    --------
    >>> import markovfield as mf
    >>> net = mf.MarkovNetwork(dict.fromkeys(range(100), 2))
    >>> for i in range(99):
    ...     _ = net.add_factor([i, i + 1], [[1, 1], [1, 0]])
    >>> round(float(mf.log_partition(net, method="model_counting")), 6)
    48.278887
    >>> mf.analysis.aggregate(net, "counting", method="model_counting")
    927372692193078999176
    """

    max_steps: int | None = None
    memory_limit: str | int | None = None
    i_bound: int = 10

    name: ClassVar[str] = "model_counting"
    exact: ClassVar[bool] = True
    verbs: ClassVar[frozenset[str]] = frozenset({"marginals", "log_partition"})
    abilities: ClassVar[frozenset[str]] = frozenset()

    def __post_init__(self) -> None:
        check_method(self, least={"max_steps": 1, "i_bound": 1})
        memory_limit_bytes(self.memory_limit)

    def log_partition(self, graph: FactorGraph, evidence: Evidence, *, running: Running) -> LogPartition:
        """log Z, or bounds on it."""
        problem = prepare(graph, evidence, drop_barren=True)
        encoding = encode(problem)
        search = CountingSearch(encoding, CACHE_SHARE * memory_limit_bytes(self.memory_limit))
        others = _has_time_for_buckets(graph, running)
        done = self._search(search, running, SEARCH_SHARE if others else WHOLE_SHARE)
        low, high = (x + encoding.log_scale for x in search.bounds())
        if done and low == -math.inf:
            raise problem.impossible()
        if not done:
            search.run(HASTY_STEPS, hasty=True)
            found = [x + encoding.log_scale for x in search.bounds()]
            low, high = max(low, found[0]), min(high, found[1])
            if others:
                found = list(self._mini_buckets(graph, evidence, running))
                low, high = max(low, found[0]), min(high, found[1])
            # Two ways to the same number differ by rounding, and only that can make bounds cross.
            low, high = min(low, high), max(low, high)
        return LogPartition(
            log_partition=low if low > -math.inf else high,
            guarantee="exact" if done else "lower" if low > -math.inf else "upper",
            bounds=(low, high),
            method=self.name,
            converged=done,
            iterations=search.decisions,
            seconds=running.seconds,
            width=encoding.width,
        )

    def marginals(self, graph: FactorGraph, evidence: Evidence, *, running: Running) -> Marginals:
        """All single marginals, read off the trace of the count; joint ones are counted when asked for.

        A count that was not finished has none: it raises `TimeoutError`.
        """
        problem = prepare(graph, evidence)
        encoding = encode(problem)
        memory = CACHE_SHARE * memory_limit_bytes(self.memory_limit)
        search = CountingSearch(encoding, memory, trace=True)
        if not self._search(search, running):
            raise TimeoutError("the models were not counted in time, and without that there are no marginals")
        value = search.bounds()[0] + encoding.log_scale
        if value == -math.inf:
            raise problem.impossible()
        values = problem.expand(_marginals_of_states(problem, encoding, search.masses()), 0.0)
        return Marginals(
            graph=graph,
            values=values,
            log_partition=value,
            log_partition_bounds=(value, value),
            method=self.name,
            iterations=search.decisions,
            seconds=running.seconds,
            width=encoding.width,
            _joint=lambda positions: self._joint(graph, evidence, positions),
        )

    def _joint(self, graph: FactorGraph, evidence: Evidence, positions: tuple[int, ...]) -> FloatArray:
        """A joint distribution: one count for each of its cells that the evidence allows."""
        shape = [int(graph.structure.cardinalities[v]) for v in positions]
        logs = np.full(shape, -np.inf)
        for cell in np.ndindex(*shape):
            states = evidence.states.copy()
            if any(states[v] not in (-1, i) for v, i in zip(positions, cell, strict=True)):
                continue
            states[list(positions)] = cell
            states.flags.writeable = False
            with suppress(ImpossibleEvidenceError):
                answer = replace(self, max_steps=None).log_partition(
                    graph, Evidence(states, evidence.likelihoods), running=Running()
                )
                logs[cell] = float(answer)
        table = np.exp(logs - logs.max())
        return np.asarray(table / table.sum())

    def _search(self, search: CountingSearch, running: Running, share: float = 1.0) -> bool:
        """Search until all is counted or something says stop, for at most that share of the time limit."""
        limit = math.inf if running.time_limit is None else share * running.time_limit
        steps = math.inf if self.max_steps is None else self.max_steps
        with suppress(TimeoutError, StoppedError):
            while search.steps < steps and running.seconds < limit:
                running.check()
                if search.run(int(min(CHUNK, steps - search.steps))):
                    return True
        return False

    def _mini_buckets(self, graph: FactorGraph, evidence: Evidence, running: Running) -> tuple[float, float]:
        """Bounds from mini-buckets, if they come in time."""
        from markovfield.inference.mini_bucket.mini_bucket import MiniBucket

        left = None
        if running.time_limit is not None:
            left = 0.9 * (running.time_limit - running.seconds)
            if left <= 0.0:
                return -math.inf, math.inf
        buckets = MiniBucket(i_bound=self.i_bound, memory_limit=self.memory_limit)
        rest = replace(running, time_limit=left, started=clock())
        with suppress(TimeoutError, StoppedError, MemoryLimitError), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return buckets.log_partition(graph, evidence, running=rest).log_partition_bounds
        return -math.inf, math.inf

    def count(self, graph: FactorGraph, evidence: Evidence, *, running: Running | None = None) -> int:
        """How many assignments of a zero-one model are possible, to the last digit."""
        problem = prepare(graph, evidence)
        encoding = encode(problem)
        memory = CACHE_SHARE * memory_limit_bytes(self.memory_limit)
        search = CountingSearch(encoding, memory)
        running = running or Running()
        if not self._search(search, running):
            raise TimeoutError(f"the models were not counted within max_steps, {self.max_steps} steps")
        bits = search.bounds()[0] / math.log(2.0)
        if bits == -math.inf:
            return 0
        # A count of n bits is known from its remainders by primes whose product has more.
        primes = primes_above(int(bits) + 2)
        again = CountingSearch(encoding, memory, primes)
        self._search(again, running)
        return chinese_remainder(again.residues(), primes)


def _marginals_of_states(problem: Problem, encoding: Encoding, masses: FloatArray) -> FloatArray:
    """Probabilities of the states of the reduced variables from those of the literals."""
    s, offsets = problem.structure, encoding.formula.group_offsets
    values = np.ones(int(s.value_offsets[-1]))
    for g, v in enumerate(np.flatnonzero(s.cardinalities > 1).tolist()):
        first, end = offsets[g : g + 2].tolist()
        own = masses[2 * first : 2 * end].reshape(-1, 2)
        found = own[0, ::-1] if end - first == 1 else own[:, 0]
        values[s.value_offsets[v] : s.value_offsets[v + 1]] = found / found.sum()
    return values
