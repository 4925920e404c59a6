"""Forests with large cardinality potentials: exact by messages of the potentials themselves, without their tables.

A potential of how many of n variables hold, with a cap of c, is a chain of counters in plain tables, of some n c^2
cells; its own messages take O(n c). Where the factor graph is a forest, messages that are all sent at once are those of
two passes after as many sweeps as the forest is deep, and a sweep later they do not move any more.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from markovfield.arrays import FloatArray
from markovfield.exceptions import ImpossibleEvidenceError, MemoryLimitError
from markovfield.factors.factor_graph import FactorGraph
from markovfield.factors.factor_kinds import CARDINALITY, TABLE, caps
from markovfield.factors.remembered import remembered
from markovfield.factors.structure import Structure
from markovfield.inference.belief_propagation.beliefs import beliefs, bethe
from markovfield.inference.belief_propagation.edges_kernel import factor_sizes
from markovfield.inference.belief_propagation.forest import is_forest
from markovfield.inference.belief_propagation.loopy import LoopyMessages, Settings
from markovfield.inference.core.answers import LogPartition, Marginals
from markovfield.inference.core.evidence import Evidence
from markovfield.inference.core.running import Running

if TYPE_CHECKING:
    from markovfield.inference.belief_propagation.belief_propagation import BeliefPropagation

__all__ = ["has_large_counts", "is_native_forest", "message_cells", "native_log_partition", "native_marginals"]

# Cells of counters in plain tables, some tens of milliseconds, above which messages of the potentials are sent instead.
MOST_CELLS = 2.0**22
# Sweeps after which a forest is too deep for that, and a change of messages that is rounding.
MOST_SWEEPS, ROUNDING = 100, 1e-14
# Runs that one joint distribution may take.
MOST_RUNS = 2**12


@remembered
def message_cells(s: Structure) -> FloatArray:
    """``float64[m]``: what the messages of each factor take: cells of tables, n (c + 1) of cardinality potentials."""
    arity = np.diff(s.scope_offsets)
    cells = factor_sizes(s.cardinalities, s.scope_offsets, s.scopes)
    return np.where(s.kind == TABLE, cells, arity * (caps(s) + 1.0))


@remembered
def _counter_cells(s: Structure) -> float:
    """Cells that cardinality potentials have in plain tables, about."""
    counted = s.kind == CARDINALITY
    return float((2.0 * np.diff(s.scope_offsets)[counted] * (caps(s)[counted] + 1.0) ** 2).sum())


def has_large_counts(s: Structure) -> bool:
    """Whether cardinality potentials would be large in plain tables."""
    return not s.is_plain and _counter_cells(s) > MOST_CELLS


def is_native_forest(graph: FactorGraph, evidence: Evidence) -> bool:
    """Whether a graph is a forest under the evidence, with potentials that would be large in plain tables."""
    return has_large_counts(graph.structure) and is_forest(graph.structure, evidence.states)


def _messages(graph: FactorGraph, evidence: Evidence, running: Running) -> LoopyMessages | None:
    """Messages that do not move any more; None where the forest is too deep."""
    s = graph.structure
    alone = s.table_offsets[np.diff(s.scope_offsets) == 0]
    if np.isneginf(graph.log_tables[alone]).any():
        raise evidence.impossible(s)
    messages = LoopyMessages(graph, evidence, Settings("synchronous", 0.0, MOST_SWEEPS, ROUNDING))
    messages.run(running)
    if messages.converged.all():
        return messages
    running.check()
    return None


def native_log_partition(
    method: BeliefPropagation, graph: FactorGraph, evidence: Evidence, running: Running
) -> LogPartition | None:
    """log Z, exactly, or None where the forest is too deep."""
    messages = _messages(graph, evidence, running)
    if messages is None:
        return None
    quiet = Running(running.n_jobs)
    by_component, constant = bethe(messages, beliefs(messages, quiet)[1], quiet)
    return LogPartition(
        log_partition=float(by_component.sum()) + constant,
        method=method.name,
        iterations=int(messages.iterations.max(initial=0)),
        seconds=running.seconds,
    )


def native_marginals(
    method: BeliefPropagation,
    graph: FactorGraph,
    evidence: Evidence,
    running: Running,
    answer_of: Callable[[BeliefPropagation, FactorGraph, LoopyMessages, Running], Marginals],
) -> Marginals | None:
    """All single marginals, exactly, or None where the forest is too deep."""
    messages = _messages(graph, evidence, running)
    if messages is None:
        return None
    answer = answer_of(method, graph, messages, running)
    value = answer.log_partition

    def joint(positions: tuple[int, ...]) -> FloatArray:
        return _joint(method, graph, evidence, value, list(dict.fromkeys(positions)))

    return replace(answer, guarantee="exact", log_partition_bounds=(value, value), _joint=joint)


def _joint(
    method: BeliefPropagation, graph: FactorGraph, evidence: Evidence, log_partition: float, positions: list[int]
) -> FloatArray:
    """A joint distribution, axes in the order asked: one run for each state of all but the last variable."""
    cards = [int(c) for c in graph.structure.cardinalities[positions]]
    if not positions:
        return np.ones(())
    runs = int(np.prod([float(c) for c in cards[:-1]]))
    if runs > MOST_RUNS:
        names = [graph.variables[v] for v in positions]
        raise MemoryLimitError(f"a joint distribution of {names!r} would take {runs} runs, more than {MOST_RUNS}")
    table = np.zeros(cards)
    for chosen in itertools.product(*map(range, cards[:-1])):
        states = evidence.states.copy()
        if any(states[v] not in (-1, k) for v, k in zip(positions, chosen, strict=False)):
            continue
        states[positions[:-1]] = chosen
        states.flags.writeable = False
        try:
            found: Any = method.marginals(graph, Evidence(states, evidence.likelihoods), running=Running())
        except ImpossibleEvidenceError:
            continue
        table[chosen] = np.exp(found.log_partition - log_partition) * found[graph.variables[positions[-1]]]
    return table / table.sum()
