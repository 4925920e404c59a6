"""The ground formulas that have lost in some world so far, and the factor graph of these alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from markovfield.exceptions import MemoryLimitError
from markovfield.factors.factor_graph import FactorGraph
from markovfield.factors.factor_kinds import CARDINALITY
from markovfield.logic.grounding.assemble import Assembled, assemble
from markovfield.logic.grounding.atoms import AtomNames, AtomStates
from markovfield.logic.grounding.determined import DeterminedBlocks, blocks_of
from markovfield.logic.grounding.ground import Block
from markovfield.logic.grounding.network import Opened, soft_evidence
from markovfield.logic.grounding.relevant import atoms_in
from markovfield.logic.grounding.rules import HARD
from markovfield.names import Names

__all__ = ["ActiveFormulas", "Restricted"]

IntArray = npt.NDArray[np.int64]
# Ground atoms of a predicate with determined arguments, at most.
MOST_DETERMINED = 2**26
_KEY = np.dtype([("a", np.uint64), ("b", np.uint64)])


@dataclass(frozen=True)
class Restricted:
    """What is grounded so far.

    Attributes
    ----------
    graph
        Its factor graph; log-potentials are what a formula loses, so that no score is above that of soft evidence.
    assembled
        What the graph is made of.
    atoms
        Numbers of its variables, rising.
    """

    graph: FactorGraph
    assembled: Assembled
    atoms: IntArray
    blocks: Sequence[Block]
    determined: Sequence[DeterminedBlocks]


class ActiveFormulas:
    """Ground formulas as they come, each once."""

    def __init__(self, given: Opened) -> None:
        self.given = given
        self.soft, _ = soft_evidence(given.store, given.facts)
        self.blocks: list[Block] = []
        self.seen: dict[int, npt.NDArray[np.void]] = {}
        self.n_formulas = 0

    def take(self, formula: int, blocks: Sequence[Block]) -> tuple[float, int]:
        """Add what is new among the ground formulas that a world loses: what they lose in all, and how many are new.

        All groundings that come to the same ground formula lose in the same worlds, so that it comes with all of them,
        when it first does.
        """
        lost, fresh = 0.0, 0
        known = self.seen.get(formula, np.zeros(0, _KEY))
        added = [known]
        for block in blocks:
            soft = block.weight != HARD
            lost += float(np.abs(self.given.weights[block.weight[soft]]) @ block.count[soft])
            if not soft.all():
                lost = np.inf
            keys = _keys(block)
            new = ~np.isin(keys, known)
            if new.any():
                self.blocks.append(block.rows(new))
                added.append(keys[new])
                fresh += int(new.sum())
        if fresh:
            self.seen[formula] = np.unique(np.concatenate(added))
        self.n_formulas += fresh
        return lost, fresh

    def restricted(self, shown: IntArray | None = None) -> Restricted:
        """The factor graph; of the atoms ``shown``, too, where given."""
        store, weights = self.given.store, self.given.weights
        inside = np.union1d(atoms_in(self.blocks, store.n_atoms), self.soft[0])
        determined = blocks_of(store, inside)
        atoms = np.union1d(inside, atoms_in(determined, store.n_atoms))
        if shown is not None:
            atoms = np.union1d(atoms, shown)
        made = assemble(
            self.blocks, determined, self.soft, atoms, len(weights),
            Names(AtomNames(store, atoms), AtomStates(len(atoms))),
        )  # fmt: skip
        tables = made.base + made.operator @ weights
        s = made.structure
        # Those of soft evidence stand last, as do those of determined arguments, whose best is zero.
        formulas = np.arange(s.n_factors) < s.n_factors - len(self.soft[0])
        formulas &= s.kind != CARDINALITY
        cells = np.diff(np.append(np.unique(s.table_offsets), s.n_cells))
        starts, first = np.unique(s.table_offsets, return_index=True)
        best = np.maximum.reduceat(tables, starts) if len(starts) else np.zeros(0)
        tables = tables - np.repeat(np.where(formulas[first], best, 0.0), cells)
        return Restricted(FactorGraph(s, tables, marks_hold=True), made, atoms, self.blocks, determined)

    def defaults(self) -> IntArray:
        """Of every block of atoms one of which is true, the number of one that may be; rising."""
        store = self.given.store
        chosen = [np.zeros(0, np.int64)]
        for relation in store.relations.values():
            if relation.closed or relation.mostly_closed:
                continue
            if relation.predicate.determined and not relation.predicate.at_most_one:
                if relation.n_atoms > MOST_DETERMINED:
                    raise MemoryLimitError(
                        f"predicate {relation.predicate} has {relation.n_atoms} ground atoms, and one of each block of "
                        f"them is true: up to {MOST_DETERMINED} are looked through"
                    )
                every = relation.base + np.arange(relation.n_atoms)
                chosen += [group.atoms[group.offsets[:-1]] for group in blocks_of(store, every)]
        return np.sort(np.concatenate(chosen))


def _keys(block: Block) -> npt.NDArray[np.void]:
    """128 bits for each row by which it is known again: of its weight, its atoms and what it says of them."""
    size = np.diff(block.offsets)
    made = np.zeros(len(block), _KEY)
    place = np.arange(len(block.atoms)) - np.repeat(block.offsets[:-1], size)
    if block.positive is not None:
        code, salt = block.atoms * 2 + block.positive, int(block.flipped)
    else:
        assert block.truth is not None
        # The place of an atom in a table matters, and so does the table.
        code, salt = block.atoms * 64 + place + 2**62, hash(block.truth.tobytes()) & (2**32 - 1)
    for name, seed in (("a", 0x9E3779B97F4A7C15), ("b", 0xC2B2AE3D27D4EB4F)):
        bits = np.append(_mixed(code.astype(np.uint64) + np.uint64(seed)), np.uint64(0))
        total = np.add.reduceat(bits, block.offsets[:-1]) if len(block) else bits[:0]
        total[size == 0] = 0
        about = np.append(block.weight + 1, salt).astype(np.uint64) + np.uint64(seed)
        about = _mixed(about)
        made[name] = total + about[:-1] * np.uint64(3) + about[-1]
    return made


def _mixed(x: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """The finaliser of SplitMix64 (Steele, Lea and Flood 2014)."""
    with np.errstate(over="ignore"):
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return x ^ (x >> np.uint64(31))
