"""Which hard formulas contradict each other: what they force one after the other, until one of them cannot hold."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from markovfield.factors.factor_kinds import CARDINALITY, CLAUSE

if TYPE_CHECKING:
    from markovfield.factors.factor_graph import FactorGraph
    from markovfield.inference.core.evidence import Evidence
    from markovfield.logic.grounding.assemble import Assembled

__all__ = ["contradiction"]

IntArray = npt.NDArray[np.int64]
# Literals of hard clauses that are looked at, at most; and how many steps are told.
MOST_LITERALS, SHOWN = 2**24, 6


@dataclass
class _Hard:
    """Clauses that must hold: ragged, of atoms with the states that make them true."""

    factors: IntArray
    offsets: IntArray
    atoms: IntArray
    states: IntArray

    def literals(self, i: int) -> Iterator[tuple[int, int]]:
        """Atoms and states of a clause."""
        a, b = int(self.offsets[i]), int(self.offsets[i + 1])
        return zip(self.atoms[a:b].tolist(), self.states[a:b].tolist(), strict=True)


def contradiction(assembled: Assembled, graph: FactorGraph, known: Evidence) -> str:
    """What unit propagation from hard clauses and known states ends in, in words: formulas that cannot all hold.

    Empty where it finds none: a contradiction may need a search.
    """
    states = {v: int(known.states[v]) for v in np.flatnonzero(known.states >= 0).tolist()}
    steps = _propagated(graph, states)
    if not steps:
        return ""
    told = []
    for factor, clause in steps[:SHOWN]:
        rule = assembled.rule_of(factor)
        where = f" ({rule.where})" if rule is not None and rule.where else ""
        told.append(
            f"{clause}, of {rule.formula}{where}" if rule is not None else f"{clause}, as an argument with ! asks"
        )
    more = f"; and {len(steps) - SHOWN} more" if len(steps) > SHOWN else ""
    given = f" where {known.describe(graph.structure)}" if known else ""
    return (
        f"the hard formulas contradict each other, or the evidence{given}: no world has all of {'; '.join(told)}{more}"
    )


def _propagated(graph: FactorGraph, known: Mapping[int, int]) -> list[tuple[int, str]]:
    """Factors with the clauses that lead to one that cannot hold, this one first."""
    hard = _hard_clauses(graph)
    if hard is None:
        return []
    order = np.argsort(hard.atoms, kind="stable")
    owner = np.repeat(np.arange(len(hard.factors)), np.diff(hard.offsets))[order]
    begin = np.searchsorted(hard.atoms[order], np.arange(graph.n_variables + 1))
    state = np.full(graph.n_variables, -1, np.int64)
    reason: dict[int, int] = {}
    waiting: deque[int] = deque()
    for v, s in known.items():
        state[v] = s
        waiting.append(v)
    look: deque[int] = deque(np.flatnonzero(np.diff(hard.offsets) <= 1).tolist())
    while look or waiting:
        if not look:
            v = waiting.popleft()
            look.extend(owner[begin[v] : begin[v + 1]].tolist())
            continue
        i = look.popleft()
        left = []
        for v, s in hard.literals(i):
            if state[v] == s:
                break
            if state[v] < 0:
                left.append((v, s))
                if len(left) > 1:
                    break
        else:
            if not left:
                return _told(graph, hard, reason, i)
            v, s = left[0]
            state[v], reason[v] = s, i
            waiting.append(v)
    return []


def _hard_clauses(graph: FactorGraph) -> _Hard | None:
    """Clauses that are impossible where they are false, and blocks of which one atom is true."""
    s, tables = graph.structure, graph.log_tables
    size = np.diff(s.scope_offsets)
    clauses = np.flatnonzero((s.kind == CLAUSE) & (size > 0))
    clauses = clauses[np.isneginf(tables[s.table_offsets[clauses]])]
    blocks = np.flatnonzero((s.kind == CARDINALITY) & (size > 0))
    exactly = blocks[np.isneginf(tables[s.table_offsets[blocks]])]
    chosen = np.concatenate([clauses, exactly])
    pairs = int((size[blocks] * (size[blocks] - 1) // 2).sum())
    if int(size[chosen].sum()) + 2 * pairs > MOST_LITERALS or not len(chosen):
        return None
    axes = np.repeat(s.scope_offsets[chosen], size[chosen]) + _within(size[chosen])
    # Literals of clauses are -2 (true) and -1 (false); atoms of blocks are counted where they are true.
    states = np.where(np.repeat(s.kind[chosen] == CLAUSE, size[chosen]), -s.table_strides[axes] - 1, 1)
    factors, sizes = [chosen], [size[chosen]]
    atoms, wanted = [s.scopes[axes].astype(np.int64)], [states]
    for f in blocks.tolist():
        own = s.scope(f).astype(np.int64)
        one, other = np.triu_indices(len(own), 1)
        factors.append(np.full(len(one), f))
        sizes.append(np.full(len(one), 2))
        atoms.append(np.stack([own[one], own[other]], axis=1).ravel())
        wanted.append(np.zeros(2 * len(one), np.int64))
    offsets = np.concatenate([[0], np.cumsum(np.concatenate(sizes))])
    return _Hard(np.concatenate(factors), offsets, np.concatenate(atoms), np.concatenate(wanted))


def _within(sizes: IntArray) -> IntArray:
    """Places within ragged rows."""
    starts = np.cumsum(sizes) - sizes
    return np.arange(int(sizes.sum())) - np.repeat(starts, sizes)


def _told(graph: FactorGraph, hard: _Hard, reason: Mapping[int, int], last: int) -> list[tuple[int, str]]:
    """The clauses that led to one that cannot hold, the last first."""
    names = graph.names.variables

    def literal(v: int, s: int) -> str:
        return f"{'' if s else '!'}{names[v]}"

    steps, seen, due = [], {last}, deque([last])
    while due:
        i = due.popleft()
        steps.append((int(hard.factors[i]), " v ".join(literal(v, s) for v, s in hard.literals(i))))
        for v, _ in hard.literals(i):
            why = reason.get(v)
            if why is not None and why not in seen:
                seen.add(why)
                due.append(why)
    return steps
