"""Arguments that the others determine: of the atoms of a block exactly one is true (``type!``), or at most one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from markovfield.exceptions import ImpossibleEvidenceError
from markovfield.logic.grounding.store import Relation, Store

__all__ = ["DeterminedBlocks", "blocks_of", "complete"]

IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True)
class DeterminedBlocks:
    """Blocks of atoms, ragged, one of which is true at most, or exactly."""

    offsets: IntArray
    atoms: IntArray
    exactly: bool

    def __len__(self) -> int:
        return len(self.offsets) - 1


def complete(store: Store) -> None:
    """What follows for the other atoms of a block where one is known to be true: they are false."""
    for relation in store.relations.values():
        if not relation.predicate.determined:
            continue
        arity = len(relation.sizes)
        keys = [i for i in range(arity) if i not in relation.predicate.determined]
        same = " AND ".join(f"a.a{i} = b.a{i}" for i in keys) or "TRUE"
        other = " OR ".join(f"a.a{i} <> b.a{i}" for i in relation.predicate.determined)
        sql = (
            f"SELECT a.* FROM {relation.table} a, {relation.table} b WHERE a.t AND b.t AND {same} AND ({other}) LIMIT 1"
        )
        row = store.connection.execute(sql).fetchone()
        if row is not None:
            names = [store.constants[kind][row[i]] for i, kind in enumerate(relation.predicate.types)]
            raise ImpossibleEvidenceError(
                f"{relation.predicate.name}({', '.join(names)}) is true, and so is another atom, where "
                f"{relation.predicate} allows one"
            )
        if relation.closed:
            continue
        if not relation.predicate.at_most_one and not relation.mostly_closed:
            _check_some_open(store, relation, keys)
        values = [f"a.a{i}" if i in keys else f"r{i}.c" for i in range(arity)]
        ranges = [f"range({relation.sizes[i]}) r{i}(c)" for i in relation.predicate.determined]
        known = " AND ".join(f"q.a{i} = {value}" for i, value in enumerate(values))
        sql = (
            f"SELECT {', '.join(f'{v} AS a{i}' for i, v in enumerate(values))}, FALSE AS t FROM {relation.table} a "
            f"CROSS JOIN {' CROSS JOIN '.join(ranges)} WHERE a.t "
            f"AND NOT EXISTS (SELECT 1 FROM {relation.table} q WHERE {known})"
        )
        store.connection.execute(f"CREATE OR REPLACE TEMP TABLE implied AS {sql}")
        count = store.count("SELECT * FROM implied")
        if count:
            store.connection.execute(f"INSERT INTO {relation.table} SELECT * FROM implied")
            relation.n_known += count


def _check_some_open(store: Store, relation: Relation, keys: list[int]) -> None:
    """Raise where all atoms of a block are known to be false."""
    total = int(np.prod([relation.sizes[i] for i in relation.predicate.determined]))
    by = ", ".join(f"a{i}" for i in keys)
    group = f" GROUP BY {by}" if by else ""
    columns = ", ".join(f"any_value(a{i})" for i in range(len(relation.sizes)))
    sql = f"SELECT {columns} FROM {relation.table} WHERE NOT t{group} HAVING count(*) = {total} LIMIT 1"
    row = store.connection.execute(sql).fetchone()
    if row is not None and row[0] is not None:
        names = [store.constants[kind][row[i]] for i, kind in enumerate(relation.predicate.types)]
        raise ImpossibleEvidenceError(
            f"all atoms like {relation.predicate.name}({', '.join(names)}) are false, where {relation.predicate} asks "
            "for one that is true"
        )


def blocks_of(store: Store, atoms: IntArray) -> list[DeterminedBlocks]:
    """The blocks that any of the atoms is in, without what is known to be false."""
    found = []
    for relation in store.relations.values():
        if not relation.predicate.determined or relation.closed:
            continue
        own = atoms[(atoms >= relation.base) & (atoms < relation.base + relation.n_atoms)] - relation.base
        if not len(own):
            continue
        first = own.copy()
        for i in relation.predicate.determined:
            first -= (own // relation.strides[i] % relation.sizes[i]) * relation.strides[i]
        first = np.unique(first)
        offsets = np.zeros(1, np.int64)
        for i in relation.predicate.determined:
            offsets = (offsets[:, None] + np.arange(relation.sizes[i]) * relation.strides[i]).ravel()
        members = first[:, None] + offsets
        # Where one is known to be true, `complete` has made the others false: nothing is left to say.
        known, truth = store.known(relation)
        known = known - relation.base
        members = members[~np.isin(members, known[truth]).any(axis=1)]
        if not len(members):
            continue
        keep = ~np.isin(members, known[~truth])
        # Of a closed predicate nobody says that its evidence is complete: none may be true.
        exactly = not relation.predicate.at_most_one and not relation.mostly_closed
        size = keep.sum(axis=1)
        bounds = np.zeros(len(members) + 1, np.int64)
        np.cumsum(size, out=bounds[1:])
        found.append(DeterminedBlocks(bounds, relation.base + members[keep], exactly))
    return found
