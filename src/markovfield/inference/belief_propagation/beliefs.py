"""What converged messages say: beliefs, the Bethe free energy, joint distributions in factors, counts, assignments."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from markovfield.arrays import FloatArray
from markovfield.exceptions import ModelError
from markovfield.factors.factor_graph import FactorGraph
from markovfield.inference.belief_propagation.beliefs_kernel import decide, factor_terms, loopy_counts, variable_terms
from markovfield.inference.belief_propagation.forest import factor_holding
from markovfield.inference.belief_propagation.loopy import LoopyMessages
from markovfield.inference.core.answers import Components
from markovfield.inference.core.running import Running

__all__ = ["assignment", "beliefs", "bethe", "components", "factor_joint", "pool_counts"]


def _all(tasks: list[Callable[[], Any]], running: Running) -> None:
    def quiet(task: Callable[[], Any]) -> int:
        task()
        return 0

    running.side_by_side([partial(quiet, task) for task in tasks])


def beliefs(messages: LoopyMessages, running: Running) -> tuple[FloatArray, FloatArray]:
    """Beliefs of all states (max-marginals less the best, in maxima), and the log of each variable's total."""
    m, g = messages, messages.g
    values, terms = np.empty(int(g.layout.value_offsets[-1])), np.empty(m.graph.n_variables)
    _all(
        [
            partial(
                variable_terms, g.layout, *piece, m.unary.log, m.unary.linear, m.unary.scales, m.factor_to_variable,
                g.component, m.in_logs, m.maximise, values, terms,
            )
            for piece in g.variable_tasks
        ],
        running,
    )  # fmt: skip
    return values, terms


def bethe(messages: LoopyMessages, terms: FloatArray, running: Running) -> tuple[FloatArray, float]:
    """The negative Bethe free energy of each connected component, and the sum of factors of no variable.

    Sum over variables of log Z_v, over factors of log Z_f, less over edges log Z_e, where Z_v, Z_f and Z_e are the
    totals of what meets there: any scaling of the messages cancels, and at a fixed point this is the Bethe value.
    """
    m, g = messages, messages.g
    of_factors = np.empty(len(g.factors))
    sent = (m.variable_to_factor, m.factor_to_variable, g.component, m.in_logs, of_factors)
    pools = (m.known.linear, m.graph.log_tables, m.known.shift)
    tasks: list[Callable[[], Any]] = [partial(factor_terms, g.layout, *piece, *pools, *sent) for piece in g.table_tasks]
    for a, b in g.structured_tasks:
        from markovfield.inference.belief_propagation.structured_kernel import structured_terms

        piece = (g.n_tables + a, g.n_tables + b)
        tasks.append(partial(structured_terms, g.layout, *piece, g.kind, m.graph.log_tables, *sent))
    _all(tasks, running)
    value: FloatArray = np.bincount(g.component, terms, g.n_components).astype(np.float64)
    first = g.layout.edge_variable[g.layout.factor_offsets[:-1]]
    value += np.bincount(g.component[first], of_factors, g.n_components)
    return value, float(m.graph.log_tables[g.constants].sum())


def components(messages: LoopyMessages, value: FloatArray, n_variables: int) -> Components:
    """The connected components as the answer shows them."""
    return Components(messages.g.component[:n_variables], value, messages.converged, messages.iterations)


def _logs(messages: LoopyMessages, values: FloatArray) -> FloatArray:
    """A copy of messages as logs, whatever space their component ran in."""
    with np.errstate(divide="ignore"):
        logs = np.log(values, where=~messages.g.by_component(messages.in_logs), out=values.copy())
    return logs


def factor_joint(messages: LoopyMessages, values: FloatArray, positions: tuple[int, ...]) -> FloatArray:
    """Joint belief of variables that lie in one factor (Andres 6.40), axes in the order asked."""
    m, g, s = messages, messages.g, messages.graph.structure
    distinct = list(dict.fromkeys(positions))
    if len(distinct) == 1:
        return values[s.value_offsets[distinct[0]] : s.value_offsets[distinct[0] + 1]].copy()
    if not distinct:
        return np.ones(())
    factor = factor_holding(g.layout, distinct)
    if factor is None:
        names = [s.names.variables[v] for v in distinct]
        raise ModelError(f"no factor holds {names!r} together, so belief_propagation has no joint belief of them")
    first, last = int(g.layout.factor_offsets[factor]), int(g.layout.factor_offsets[factor + 1])
    scope = g.layout.edge_variable[first:last].tolist()
    offsets = g.layout.message_offsets
    table = m.graph.table(int(g.factors[factor])).copy()
    logs = bool(m.in_logs[g.component[scope[0]]])
    for axis in range(last - first):
        message = m.variable_to_factor[offsets[first + axis] : offsets[first + axis + 1]]
        if not logs:
            with np.errstate(divide="ignore"):
                message = np.log(message)
        shape = [1] * len(scope)
        shape[axis] = -1
        table += message.reshape(shape)
    table = np.exp(table - table.max())
    table /= table.sum()
    table = table.sum(axis=tuple(a for a, v in enumerate(scope) if v not in distinct))
    kept = [v for v in scope if v in distinct]
    return np.ascontiguousarray(table.transpose([kept.index(v) for v in distinct]))


def pool_counts(messages: LoopyMessages, values: FloatArray, running: Running) -> FloatArray:
    """Expected count of every pool cell, tied factors added up."""
    m, g = messages, messages.g
    counts = np.zeros(m.graph.structure.n_cells)
    np.add.at(counts, g.constants, 1.0)
    for piece in g.table_tasks:
        running.check()
        loopy_counts(
            g.layout, *piece, m.known.linear, m.graph.log_tables, m.variable_to_factor, g.component, m.in_logs, counts
        )
    for a, b in g.structured_tasks:
        from markovfield.inference.belief_propagation.structured_kernel import structured_counts

        piece = (g.n_tables + a, g.n_tables + b)
        structured_counts(
            g.layout, *piece, g.kind, m.graph.log_tables, m.variable_to_factor, g.component, m.in_logs, counts
        )
    offsets = g.layout.value_offsets
    cards = np.diff(offsets)[g.unary_variable]
    which = np.repeat(np.arange(len(cards)), cards)
    state = np.arange(len(which)) - np.repeat(np.cumsum(cards) - cards, cards)
    cells = g.unary_offset[which] + g.unary_stride[which] * state
    np.add.at(counts, cells, values[offsets[g.unary_variable[which]] + state])
    return counts


def assignment(messages: LoopyMessages, graph: FactorGraph, running: Running) -> tuple[npt.NDArray[np.int64], float]:
    """States by max-product: the better of each variable's own best and of choices made one after the other.

    Judged by the score of the user's own variables: where ``messages`` ran on the plain tables of ``graph``,
    auxiliary variables that disagree would rule out a good assignment.
    """
    m, g = messages, messages.g
    values, _ = beliefs(m, running)
    offsets = g.layout.value_offsets
    n = m.graph.n_variables
    best = np.zeros(n, np.int64)
    top = np.maximum.reduceat(values, offsets[:-1]) if n else values
    at = np.flatnonzero(values == np.repeat(top, np.diff(offsets)))
    owner = np.searchsorted(offsets, at, side="right") - 1
    best[owner[::-1]] = (at - offsets[owner])[::-1]
    chosen = np.zeros(n, np.int64)
    sent, scratch = _logs(m, m.variable_to_factor), np.empty(len(m.factor_to_variable))
    for piece in g.variable_tasks:
        running.check()
        if g.n_tables == len(g.factors):
            decide(g.layout, g.order, *piece, m.graph.log_tables, m.unary.log, sent, scratch, chosen)
        else:
            from markovfield.inference.belief_propagation.structured_kernel import decide_structured

            decide_structured(
                g.layout, g.order, *piece, g.n_tables, g.kind, m.graph.log_tables, m.unary.log, sent, scratch, chosen
            )
    own = graph.n_variables
    seen = m.evidence.states[:own]
    fixed = np.flatnonzero(seen >= 0)

    def score(states: npt.NDArray[np.int64]) -> float:
        if (states[fixed] != seen[fixed]).any():
            return -np.inf
        return float(graph.score(states)) + m.evidence.log_likelihood(states)

    found = [(states, score(states)) for states in (chosen[:own], best[:own])]
    return max(found, key=lambda pair: pair[1])
