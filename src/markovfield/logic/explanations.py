"""What grounding leaves of a program, told before it is written down, and what a verb would do with it."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np

from markovfield.inference.core.limits import format_bytes
from markovfield.inference.explain import Explanation
from markovfield.logic.grounding.network import Opened
from markovfield.logic.grounding.queries import clause_query, slots_query
from markovfield.logic.grounding.rules import HARD, n_groundings, parts_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from markovfield.logic.grounding.store import Relation

__all__ = ["GroundExplanation", "Sizes", "n_atoms_of", "sizes"]

# Bytes of a ground formula, and of each of its atoms, in a structure.
PER_FORMULA, PER_ATOM = 21, 12


@dataclass(frozen=True)
class Sizes:
    """How much there is to ground.

    Attributes
    ----------
    n_ground_atoms, n_open_atoms
        All ground atoms of the program's predicates; those that the evidence leaves open, at most.
    n_groundings, n_ground_formulas
        All groundings of its formulas; the ground formulas that the evidence leaves open, at most.
    n_bytes
        Memory of their structure.
    """

    n_ground_atoms: float
    n_open_atoms: float
    n_groundings: float
    n_ground_formulas: int
    n_bytes: float


@dataclass(frozen=True, repr=False)
class GroundExplanation(Explanation):
    """What a verb would do on a ground network, and what the evidence leaves of it.

    Attributes
    ----------
    sizes
        Atoms and formulas before and after the evidence; counted by the database where nothing is grounded.
    n_components
        Connected components of the network; -1 where it is not grounded.
    """

    sizes: Sizes
    n_components: int

    @classmethod
    def of(cls, found: Explanation, sizes: Sizes, n_components: int) -> GroundExplanation:
        """An explanation of the factor graph, with what it was made of."""
        own = {field.name: getattr(found, field.name) for field in fields(Explanation)}
        return cls(**own, sizes=sizes, n_components=n_components)

    def rows(self) -> list[tuple[str, str]]:
        """Label and text of each line of the explanation."""
        s, parts = self.sizes, f"; {self.n_components:,} components" if self.n_components >= 0 else ""
        own = [
            ("atoms", f"{s.n_open_atoms:,.0f} open of {s.n_ground_atoms:,.0f}{parts}"),
            ("formulas", f"{s.n_ground_formulas:,} open of {s.n_groundings:,.0f}"),
            ("network", format_bytes(float(np.log2(max(s.n_bytes, 1.0))))),
        ]
        rows = super().rows()
        # Of what is not grounded nobody knows the width.
        return [*rows[:3], *own, *(rows[3:] if self.n_components >= 0 else [])]


def n_atoms_of(relations: Sequence[Relation], functions: Any) -> float:
    """Ground atoms of predicates, not of functions or what stands for parts of formulas."""
    return float(sum(float(r.n_atoms) for r in relations if not r.hidden and r.predicate.name not in functions))


def sizes(given: Opened, *, split: bool) -> Sizes:
    """Count what would be grounded, without fetching any of it."""
    store, total, n_formulas, n_bytes = given.store, 0.0, 0, 0.0
    for i, rule in enumerate(given.program.rules):
        own = given.weights[given.first[i] : given.first[i + 1]]
        if not rule.hard and not own.any():
            continue
        total += n_groundings(store, rule)
        for part in parts_of(store, rule, HARD if rule.hard else given.first[i], split=split):
            if part.truth is None:
                query = clause_query(store, part.clauses[0], part.types, part.bound, part.rule.each)
                sql, axes = query.sql, float(query.n_literals)
                for lit in part.clauses[0]:
                    axes += (
                        float(np.prod([float(store.size(part.bound[name])) for name in lit.some])) if lit.some else 0
                    )
            else:
                assert part.atoms is not None
                sql, axes = (
                    slots_query(store, part.clauses, part.atoms, part.types, part.rule.each),
                    float(len(part.atoms)),
                )
            count = store.count(sql)
            n_formulas += count
            n_bytes += count * (PER_FORMULA + PER_ATOM * axes)
    relations = list(store.relations.values())
    atoms = n_atoms_of(relations, given.program.functions)
    n_open = sum(float(r.n_atoms) - r.n_known for r in relations if not r.closed and not r.hidden)
    return Sizes(atoms, n_open, total, n_formulas, n_bytes)
