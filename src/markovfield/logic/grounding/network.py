"""From a program and its evidence to a ground network, step by step."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from markovfield.logic.grounding.asked import WeightKey, closed_predicates, predicate_of, query_atoms, weights_of
from markovfield.logic.grounding.assemble import Assembled, assemble
from markovfield.logic.grounding.atoms import AtomNames, AtomStates
from markovfield.logic.grounding.determined import DeterminedBlocks, blocks_of, complete
from markovfield.logic.grounding.ground import Block, Tally, ground_part
from markovfield.logic.grounding.relevant import atoms_in, connected_to
from markovfield.logic.grounding.rules import n_groundings, parts_of
from markovfield.logic.grounding.store import Store
from markovfield.logic.language.evidence import Facts
from markovfield.logic.language.program import Program
from markovfield.names import Names

__all__ = ["Grounded", "Opened", "ground_network", "opened", "soft_evidence"]

IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Opened:
    """A program and its evidence in a database.

    Attributes
    ----------
    asked, closed
        Texts of the query, None where everything is asked for; predicate to whether it is closed.
    weights, keys, first
        Weights of all rules one behind the other, which they are, and where each rule's begin.
    """

    program: Program
    facts: Facts
    asked: tuple[str, ...] | None
    closed: dict[str, bool]
    store: Store
    weights: npt.NDArray[np.float64]
    keys: list[WeightKey]
    first: list[int]


@dataclass(frozen=True)
class Grounded:
    """What `ground_network` finds; see `GroundNetwork`."""

    assembled: Assembled
    tallies: dict[int, Tally]
    satisfied: npt.NDArray[np.float64]
    settled: float


def opened(
    program: Program,
    learned: Mapping[WeightKey, float],
    facts: Facts,
    asked: tuple[str, ...] | None,
    closed: Iterable[str] | None,
    memory_limit: str | None,
) -> Opened:
    """Put constants and evidence into tables, and what follows from them at once."""
    names = None if asked is None else {predicate_of(program, text) for text in asked}
    is_closed = closed_predicates(program, facts, names, closed)
    store = Store(program, facts, is_closed, memory_limit)
    try:
        complete(store)
        weights, keys, first = weights_of(program, learned, store)
    except BaseException:
        store.close()
        raise
    return Opened(program, facts, asked, is_closed, store, weights, keys, first)


def ground_network(given: Opened, *, split: bool, keep_all: bool, max_clauses: int) -> Grounded:
    """Ground all rules, leave out what the query does not depend on, and assemble the factor graph."""
    store, weights, first = given.store, given.weights, given.first
    blocks: list[Block] = []
    tallies: dict[int, Tally] = {}
    left = max_clauses
    for i, rule in enumerate(given.program.rules):
        own = weights[first[i] : first[i + 1]]
        if not rule.hard and not keep_all and not own.any():
            continue
        tally = tallies.setdefault(i, Tally(n_groundings(store, rule)))
        for part in parts_of(store, rule, -1 if rule.hard else first[i], split=split):
            # What defines quantified parts is no grounding of the rule.
            new = ground_part(store, part, left, tally if rule.hard or part.weight >= 0 else Tally())
            left -= sum(len(block) for block in new)
            blocks += new
    satisfied = _satisfied(len(weights), first, tallies, blocks)
    soft, settled = soft_evidence(store, given.facts)
    wanted = query_atoms(store, given.asked)
    determined = blocks_of(store, np.concatenate([atoms_in(blocks, store.n_atoms), soft[0], wanted]))
    if given.asked is not None:
        atoms = atoms_in([*blocks, *determined], store.n_atoms)
        if len(atoms):
            blocks, determined = connected_to(wanted, blocks, determined, atoms)
    atoms = _variables(blocks, determined, store.n_atoms, wanted, soft[0], given.asked is None)
    inside = np.isin(soft[0], atoms)
    variables = AtomNames(store, atoms)
    assembled = assemble(
        blocks, determined, (soft[0][inside], soft[1][inside]), atoms, len(weights),
        Names(variables, AtomStates(len(atoms))),
    )  # fmt: skip
    return Grounded(assembled, tallies, satisfied, settled)


def soft_evidence(store: Store, facts: Facts) -> tuple[tuple[IntArray, npt.NDArray[np.float64]], float]:
    """Numbers and probabilities of atoms with soft evidence; and what those add that are known all the same."""
    numbers, values = [np.zeros(0, np.int64)], [np.zeros(0)]
    settled = 0.0
    for name, rows in facts.probabilities.items():
        relation = store.relations[name]
        columns = store.numbers(relation.predicate.types, list(rows))
        own = sum((c * s for c, s in zip(columns, relation.strides, strict=True)), np.full(len(rows), relation.base))
        probability = np.fromiter(rows.values(), np.float64, len(rows))
        known, truth = store.known(relation)
        at = np.minimum(np.searchsorted(known, own), max(len(known) - 1, 0))
        there = known[at] == own if len(known) else np.zeros(len(own), np.bool_)
        told = truth[at[there]]
        settled += float(np.log(np.where(told, probability[there], 1.0 - probability[there])).sum())
        numbers.append(own[~there])
        values.append(probability[~there])
    return (np.concatenate(numbers), np.concatenate(values)), settled


def _variables(
    blocks: Sequence[Block],
    determined: Sequence[DeterminedBlocks],
    n_atoms: int,
    wanted: IntArray,
    soft: IntArray,
    everything: bool,
) -> IntArray:
    atoms = np.union1d(atoms_in([*blocks, *determined], n_atoms), wanted)
    return np.union1d(atoms, soft) if everything else atoms


def _satisfied(
    n_weights: int, first: Sequence[int], tallies: Mapping[int, Tally], blocks: Sequence[Block]
) -> npt.NDArray[np.float64]:
    """``float64[n_weights]``: how many groundings the evidence satisfies; nan where a rule was not grounded."""
    found = np.full(n_weights, np.nan)
    for i, tally in tallies.items():
        own = range(first[i], first[i + 1])
        for w in own:
            found[w] = tally.total / len(own) - tally.violations.get(w, 0.0)
    for block in blocks:
        soft = block.weight >= 0
        found -= np.bincount(block.weight[soft], block.count[soft], n_weights)
    return found
