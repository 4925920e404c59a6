"""What a world loses: ground formulas that are false though their weights are positive, or true though negative."""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from markovfield.logic.grounding.cubes import cubes_of
from markovfield.logic.grounding.ground import Block, Tally, ground_part
from markovfield.logic.grounding.network import Opened
from markovfield.logic.grounding.queries import losing_query
from markovfield.logic.grounding.rules import HARD, Part, parts_of
from markovfield.logic.language.normal_forms import Clause, Literal

__all__ = ["Losses"]

IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True)
class _Asked:
    """A formula, where its groundings lose (clauses that are false there, with the types of their own variables), and
    the weights for which that is so."""

    part: Part
    clauses: list[tuple[Clause, dict[str, str]]]
    chosen: str


class Losses:
    """Asks the database of a program what a world loses.

    Parameters
    ----------
    given
        The program and its evidence.
    split
        As for `MarkovLogic.ground`.
    limit
        More ground formulas than this at once are refused.
    """

    def __init__(self, given: Opened, *, split: bool, limit: int) -> None:
        self.given, self.limit = given, limit
        store, weights = given.store, given.weights
        self.asked: list[_Asked] = []
        for i, rule in enumerate(given.program.rules):
            own = weights[given.first[i] : given.first[i + 1]]
            if rule.hard or own.any():
                for part in parts_of(store, rule, HARD if rule.hard else given.first[i], split=split):
                    self.asked += _sides(part, own)
        # Hidden predicates are known by now.
        self.world = copy(store)
        self.world.relations = {
            name: replace(relation, closed=True, table=f"w{i}")
            for i, (name, relation) in enumerate(store.relations.items())
        }
        self._imagine(np.zeros(0, np.int64), everything=True)

    def _imagine(self, true: IntArray, *, everything: bool) -> None:
        """Put a world into tables: what the evidence says is true, and the atoms ``true`` (numbers, rising)."""
        connection = self.given.store.connection
        for name, relation in self.given.store.relations.items():
            if relation.closed and not everything:
                continue
            columns = [f"a{i}" for i in range(len(relation.sizes))]
            sql = f"SELECT {', '.join([*columns, 't'])} FROM {relation.table} WHERE t"
            low, high = np.searchsorted(true, [relation.base, relation.base + relation.n_atoms])
            own = true[low:high] - relation.base
            if len(own):
                values = [own // s % n for s, n in zip(relation.strides, relation.sizes, strict=True)]
                connection.register("imagined", dict(zip(columns, values, strict=True)) | {"n": own})
                sql += f" UNION ALL SELECT {', '.join([*columns, 'TRUE'])} FROM imagined"
            connection.execute(f"CREATE OR REPLACE TEMP TABLE {self.world.relations[name].table} AS {sql}")
            if len(own):
                connection.unregister("imagined")

    def of(self, true: IntArray) -> Iterator[tuple[int, list[Block]]]:
        """For each formula its number, and the ground formulas that lose in the world of these true atoms."""
        self._imagine(true, everything=False)
        for i, asked in enumerate(self.asked):
            part = asked.part
            values = losing_query(self.world, asked.clauses, part.types, part.bound, part.rule.each, asked.chosen)
            yield i, ground_part(self.given.store, part, self.limit, Tally(), values)


def _sides(part: Part, weights: npt.NDArray[np.float64]) -> Iterator[_Asked]:
    """Where a formula loses: where it is false, for positive weights, where it is true, for negative ones."""
    if part.weight == HARD:
        yield _Asked(part, [(part.clauses[0], {})], "")
        return
    if not part.clauses[0] or (part.truth is not None and part.truth.all() == part.truth.any()):
        return  # the same in all worlds
    for positive in (True, False):
        chosen = np.flatnonzero(weights > 0 if positive else weights < 0)
        if not len(chosen):
            continue
        # Formulas have no "+" variables where they have one weight, and nobody looks at this then.
        listed = f"SELECT unnest([{', '.join(map(str, chosen.tolist()))}])" if part.rule.each else ""
        if positive:
            yield _Asked(part, [(clause, {}) for clause in part.clauses], listed)
        else:
            yield _Asked(part, _negated(part), listed)


def _negated(part: Part) -> list[tuple[Clause, dict[str, str]]]:
    """Clauses of the negation of a part."""
    if part.truth is None:
        # A literal for each; "for some value" becomes "for all", whose variables are like any others.
        return [
            ((Literal(lit.atom, not lit.positive),), {name: part.bound[name] for name in lit.some})
            for lit in part.clauses[0]
        ]
    assert part.atoms is not None
    return [
        (tuple(Literal(part.atoms[axis], value == 0) for axis, value in cube.items()), {})
        for cube in cubes_of(part.truth)
    ]
