"""Constants as numbers, ground atoms as numbers, and the evidence as tables of a relational database."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from markovfield.exceptions import MemoryLimitError, ModelError
from markovfield.extras import check_installed
from markovfield.logic.language.evidence import Facts
from markovfield.logic.language.program import Predicate, Program

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

__all__ = ["Relation", "Store", "connect"]

MOST_ATOMS = 2**61
# Atoms of a predicate that is closed but for some.
MOST_CLOSED = 2**26
IntArray = npt.NDArray[np.int64]


@dataclass
class Relation:
    """A predicate in a store.

    Attributes
    ----------
    table
        Its table: columns ``a0, a1, ...`` and ``t``, what is known of its atoms; true atoms only where it is closed.
    closed
        Whether atoms that are not in the table are false.
    base, strides
        The number of an atom is ``base`` plus, over its arguments, stride times constant.
    n_known
        Rows of the table.
    hidden
        Whether it only stands for part of a formula.
    mostly_closed
        Whether it is closed but for some atoms (of soft evidence); the others are in the table as false.
    """

    predicate: Predicate
    table: str
    closed: bool
    sizes: tuple[int, ...]
    base: int
    strides: tuple[int, ...]
    n_known: int = 0
    hidden: bool = False
    mostly_closed: bool = False

    @property
    def n_atoms(self) -> int:
        """Number of ground atoms."""
        return int(np.prod([float(s) for s in self.sizes])) if self.sizes else 1


class Store:
    """A program's constants and a database's atoms, in tables of numbers.

    No text of a program or a database is ever part of a query: constants, predicates and types are numbers there.
    """

    def __init__(self, program: Program, facts: Facts, closed: Mapping[str, bool], memory_limit: str | None) -> None:
        self.program = program
        self.constants: dict[str, list[str]] = {}
        self.index: dict[str, dict[str, int]] = {}
        for kind, names in _constants(program, facts).items():
            self.constants[kind] = list(names)
            self.index[kind] = {name: i for i, name in enumerate(names)}
        self.relations: dict[str, Relation] = {}
        self.n_atoms = 0
        self.connection = connect(memory_limit)
        left_open = {name: rows for name, rows in facts.left_open.items() if closed[name]}
        for predicate in program.predicates.values():
            self.add(predicate, closed[predicate.name] and predicate.name not in left_open)
        for function in program.functions.values():
            self.add(Predicate(function.name, (*function.types, function.value), True), True)
        for name, atoms in facts.atoms.items():
            self._insert(self.relations[name], list(atoms), np.fromiter(atoms.values(), np.bool_, len(atoms)))
        for name, open_rows in left_open.items():
            self._close_others(self.relations[name], list(open_rows))
        for name, values in facts.values.items():
            rows = [(*args, value) for args, value in values.items()]
            self._insert(self.relations[name], rows, np.ones(len(rows), np.bool_))

    def size(self, kind: str) -> int:
        """Number of constants of a type."""
        return len(self.constants[kind])

    def add(self, predicate: Predicate, closed: bool, *, hidden: bool = False) -> Relation:
        """Make a predicate known; an empty table."""
        sizes = tuple(self.size(kind) for kind in predicate.types)
        count = 1
        strides = []
        for size in reversed(sizes):
            strides.append(count)
            count *= size
        if self.n_atoms + count > MOST_ATOMS:
            raise ModelError(
                f"predicate {predicate.name} has {' x '.join(map(str, sizes))} ground atoms, more than can be numbered"
            )
        table = f"k{len(self.relations)}"
        found = Relation(predicate, table, closed, sizes, self.n_atoms, tuple(reversed(strides)), hidden=hidden)
        self.n_atoms += count
        self.relations[predicate.name] = found
        columns = "".join(f"a{i} BIGINT, " for i in range(len(sizes)))
        self.connection.execute(f"CREATE TABLE {table} ({columns}t BOOLEAN)")
        return found

    def numbers(self, kinds: Sequence[str], rows: Sequence[tuple[str, ...]]) -> list[IntArray]:
        """Columns of constants as numbers."""
        return [
            np.fromiter((self.index[kind][row[i]] for row in rows), np.int64, len(rows)) for i, kind in enumerate(kinds)
        ]

    def _insert(self, relation: Relation, rows: Sequence[tuple[str, ...]], truth: npt.NDArray[np.bool_]) -> None:
        columns = self.numbers(relation.predicate.types, rows)
        if relation.closed:
            columns, truth = [c[truth] for c in columns], truth[truth]
        self.insert(relation, columns, truth)

    def _close_others(self, relation: Relation, left: Sequence[tuple[str, ...]]) -> None:
        """Atoms of a predicate that is closed but for some: all that are neither known nor among these are false."""
        if relation.n_atoms > MOST_CLOSED:
            raise MemoryLimitError(
                f"predicate {relation.predicate.name} is closed but for {len(left)} atoms, and has "
                f"{relation.n_atoms:.3g}: up to {MOST_CLOSED} are written down; leave it open"
            )
        relation.mostly_closed = True
        columns = self.numbers(relation.predicate.types, left)
        own = sum((c * s for c, s in zip(columns, relation.strides, strict=True)), np.zeros(len(left), np.int64))
        told = self.known(relation)[0] - relation.base
        others = np.setdiff1d(np.arange(relation.n_atoms), np.concatenate([own, told]))
        values = [others // s % n for s, n in zip(relation.strides, relation.sizes, strict=True)]
        self.insert(relation, values, np.zeros(len(others), np.bool_))

    def insert(self, relation: Relation, columns: Sequence[IntArray], truth: npt.NDArray[np.bool_]) -> None:
        """Add rows to a relation's table."""
        if not len(truth):
            return
        new = {f"a{i}": column for i, column in enumerate(columns)} | {"t": truth}
        self.connection.register("new_rows", new)
        try:
            self.connection.execute(f"INSERT INTO {relation.table} SELECT * FROM new_rows")
        finally:
            self.connection.unregister("new_rows")
        relation.n_known += len(truth)

    def known(self, relation: Relation) -> tuple[IntArray, npt.NDArray[np.bool_]]:
        """Numbers of the atoms of a relation that are known, rising, and whether they are true."""
        terms = " + ".join(f"a{i} * {stride}" for i, stride in enumerate(relation.strides)) or "0"
        found = self.fetch(f"SELECT CAST({relation.base} + {terms} AS BIGINT) AS a, t FROM {relation.table} ORDER BY a")
        return np.asarray(np.ma.getdata(found["a"]), np.int64), np.asarray(np.ma.getdata(found["t"]), np.bool_)

    def fetch(self, query: str) -> dict[str, npt.NDArray[Any]]:
        """The answer of a query as arrays."""
        return dict(self.connection.execute(query).fetchnumpy())

    def count(self, query: str) -> int:
        """How many rows a query has."""
        row = self.connection.execute(f"SELECT count(*) FROM ({query})").fetchone()
        return int(row[0]) if row else 0

    def atom(self, number: int) -> tuple[str, tuple[str, ...]]:
        """Predicate and constants of an atom's number."""
        for relation in self.relations.values():
            at = number - relation.base
            if 0 <= at < relation.n_atoms:
                return relation.predicate.name, tuple(
                    self.constants[kind][at // stride % size]
                    for kind, stride, size in zip(
                        relation.predicate.types, relation.strides, relation.sizes, strict=True
                    )
                )
        raise ModelError(f"there is no ground atom {number}")

    def close(self) -> None:
        """Give the database's memory back."""
        self.connection.close()


def connect(memory_limit: str | None) -> DuckDBPyConnection:
    """An empty database in memory, which can reach no file but what it spills to."""
    check_installed("Markov logic", "duckdb")
    import duckdb

    # What does not fit into memory goes to a folder that the database makes when it needs one.
    spill = Path(tempfile.gettempdir()) / f"markovfield-{os.getpid()}-{os.urandom(4).hex()}"
    connection = duckdb.connect(":memory:", config={"temp_directory": str(spill)})
    connection.execute("SET enable_external_access = false")
    connection.execute("SET preserve_insertion_order = false")
    if memory_limit is not None:
        connection.execute("SET memory_limit = ?", [memory_limit])
    return connection


def _constants(program: Program, facts: Facts) -> dict[str, dict[str, None]]:
    """The constants of every type: declared, in formulas, in the evidence."""
    found = {kind: dict(names) for kind, names in program.domains.items()}
    for predicate in program.predicates.values():
        for kind in predicate.types:
            found.setdefault(kind, {})
    for kind, constants in facts.constants.items():
        if kind not in found:
            raise ModelError(f"the evidence declares constants of type {kind}, which no predicate has")
        found[kind].update(constants)

    def take(kinds: Sequence[str], rows: Iterable[tuple[str, ...]]) -> None:
        rows = list(rows)
        for i, kind in enumerate(kinds):
            found[kind].update(dict.fromkeys(row[i] for row in rows))

    for told in (facts.atoms, facts.probabilities, facts.unknown):
        for name, rows in told.items():
            take(program.predicates[name].types, rows)
    for name, values in facts.values.items():
        function = program.functions[name]
        take((*function.types, function.value), ((*args, value) for args, value in values.items()))
    return found
