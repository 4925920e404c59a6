"""What every query atom changes in the number of true groundings of a conjunction, counted by a database.

Only conjunctions of positive literals are counted, by joins over atoms that are true; negative literals follow from
them (``n(A and not B) = n(A) - n(A and B)``), so that all signs of a clause cost what one costs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations

import numpy as np
import numpy.typing as npt

from markovfield.logic.grounding.store import connect
from markovfield.logic.language.evidence import Facts
from markovfield.logic.language.program import Predicate
from markovfield.logic.structure.clauses import Conjunction, Part, PartTerm, canonical, components, types_of_variables
from markovfield.logic.world import GroundNetwork

__all__ = ["Counts", "TooManyGroundingsError"]

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]
# Atoms, and what each changes.
Changes = tuple[IntArray, FloatArray]


class TooManyGroundingsError(Exception):
    """A join may have more rows than were allowed; the search goes on without this clause."""


class Counts:
    """Worlds in a database: all that is true in them, and their constants.

    Attributes
    ----------
    truth
        Whether each query atom is true, all worlds one behind the other.
    world, predicate
        The world of each query atom; which of the query predicates it is of.
    n_queries
        How often the database was asked.
    """

    def __init__(
        self,
        predicates: Mapping[str, Predicate],
        grounds: Sequence[GroundNetwork],
        worlds: Sequence[Facts],
        query: Sequence[str],
        max_groundings: float,
    ) -> None:
        self.predicates, self.query, self.max_groundings = predicates, list(query), max_groundings
        self.names = [ground.atoms for ground in grounds]
        self.n_worlds = len(grounds)
        lengths = [len(names) for names in self.names]
        self.first = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)]).astype(np.int64)
        self.truth = np.zeros(int(self.first[-1]), np.bool_)
        self.world = np.repeat(np.arange(self.n_worlds), lengths)
        self.predicate = np.full(int(self.first[-1]), -1, np.int64)
        self.kinds = sorted({kind for p in predicates.values() for kind in p.types})
        self.codes: dict[str, dict[str, int]] = {kind: {} for kind in self.kinds}
        self.local: list[dict[str, IntArray]] = []
        self.sizes = {kind: np.zeros(self.n_worlds) for kind in self.kinds}
        self.n_queries = 0
        self._changes: dict[Conjunction, Changes] = {}
        self._totals: dict[Conjunction, FloatArray] = {}
        self._degrees: dict[tuple[str, tuple[int, ...]], float] = {}
        self.connection = connect(None)
        self.table = {name: f"k{i}" for i, name in enumerate(predicates)}
        self.domain = {kind: f"d{i}" for i, kind in enumerate(self.kinds)}
        self._fill(worlds)

    def close(self) -> None:
        """Give the database's memory back."""
        self.connection.close()

    def _fill(self, worlds: Sequence[Facts]) -> None:
        """Tables of true atoms and of constants; the truth of query atoms."""
        for names in self.names:
            for kind in self.kinds:
                for constant in names.constants.get(kind, ()):
                    self.codes[kind].setdefault(constant, len(self.codes[kind]))
        domains: dict[str, list[IntArray]] = {kind: [] for kind in self.kinds}
        atoms: dict[str, list[IntArray]] = {name: [] for name in self.predicates}
        for w, (names, facts) in enumerate(zip(self.names, worlds, strict=True)):
            local = {}
            for kind in self.kinds:
                own = np.array([self.codes[kind][c] for c in names.constants.get(kind, ())], np.int64)
                local[kind] = np.full(len(self.codes[kind]), -1, np.int64)
                local[kind][own] = np.arange(len(own))
                self.sizes[kind][w] = len(own)
                domains[kind].append(np.column_stack([np.full(len(own), w), own]))
            self.local.append(local)
            for name, predicate in self.predicates.items():
                rows = [args for args, truth in facts.atoms.get(name, {}).items() if truth]
                columns = [
                    np.fromiter((self.codes[kind][row[i]] for row in rows), np.int64, len(rows))
                    for i, kind in enumerate(predicate.types)
                ]
                atoms[name].append(np.column_stack([np.full(len(rows), w), *columns]))
        self._make("worlds", [np.arange(self.n_worlds)[:, None]], [])
        for kind in self.kinds:
            self._make(self.domain[kind], domains[kind], ["c"])
        for name, parts in atoms.items():
            self._make(self.table[name], parts, [f"a{i}" for i in range(len(self.predicates[name].types))])
        for q, name in enumerate(self.query):
            for w, names in enumerate(self.names):
                relation = names.by_name[name]
                inside = (names.numbers >= relation.base) & (names.numbers < relation.base + relation.n_atoms)
                self.predicate[self.first[w] : self.first[w + 1]][inside] = q
            rows_ = np.concatenate(atoms[name])
            self.truth[self._positions(name, rows_[:, 0], list(rows_[:, 1:].T))] = True

    def _make(self, table: str, parts: Sequence[IntArray], columns: Sequence[str]) -> None:
        rows = np.concatenate(parts).astype(np.int64)
        named = {name: np.ascontiguousarray(rows[:, i]) for i, name in enumerate(["w", *columns])}
        self.connection.register("new_rows", named)
        self.connection.execute(f"CREATE TABLE {table} AS SELECT * FROM new_rows")
        self.connection.unregister("new_rows")

    def _positions(self, name: str, world: IntArray, columns: Sequence[IntArray]) -> IntArray:
        """Where atoms are among the query atoms; those that are not are left out by a position of -1."""
        found = np.full(len(world), -1, np.int64)
        for w, names in enumerate(self.names):
            at = np.flatnonzero(world == w)
            if not len(at):
                continue
            relation = names.by_name[name]
            number = np.full(len(at), relation.base, np.int64)
            there = np.ones(len(at), np.bool_)
            for kind, stride, column in zip(relation.predicate.types, relation.strides, columns, strict=True):
                code = self.local[w][kind][column[at]]
                there &= code >= 0
                number += code * stride
            place = np.minimum(np.searchsorted(names.numbers, number), max(len(names.numbers) - 1, 0))
            there &= names.numbers[place] == number if len(names.numbers) else False
            found[at[there]] = place[there] + self.first[w]
        return found

    def changes(self, parts: Conjunction) -> Changes:
        """How many more groundings of a conjunction are true where a query atom is, than where it is not.

        All other atoms are as in the data. Atoms that change nothing are left out.
        """
        negative = [part for part in parts if not part.positive]
        base = [part for part in parts if part.positive]
        types = types_of_variables(parts, self.predicates)
        found = []
        for n in range(len(negative) + 1):
            for chosen in combinations(negative, n):
                now = [*base, *(part._replace(positive=True) for part in chosen)]
                at, value = self._product(components(now))
                lost = set(types) - {v for part in now for v in part.variables}
                for v in lost:
                    value = value * self.sizes[types[v]][self.world[at]]
                found.append((at, -value if n % 2 else value))
        return _summed(found)

    def _product(self, parts: Sequence[Conjunction]) -> Changes:
        """Changes of positive conjunctions that share no variable: the number of groundings is the product."""
        own = [self._of_connected(canonical(one)) for one in parts]
        if len(own) == 1:
            return own[0]
        if not own:
            return np.zeros(0, np.int64), np.zeros(0)
        at = np.unique(np.concatenate([one for one, _ in own]))
        high, low = np.ones(len(at)), np.ones(len(at))
        for one, (atoms, value) in zip(parts, own, strict=True):
            change = np.zeros(len(at))
            change[np.searchsorted(at, atoms)] = value
            total = self.totals(canonical(one))[self.world[at]]
            high *= total + np.where(self.truth[at], 0.0, change)
            low *= total - np.where(self.truth[at], change, 0.0)
        return at, high - low

    def _of_connected(self, parts: Conjunction) -> Changes:
        known = self._changes.get(parts)
        if known is None:
            pieces = []
            for pivot, part in enumerate(parts):
                if part.predicate in self.query:
                    pieces += [self._counted(*one) for one in _merges(parts, pivot)]
            known = self._changes[parts] = _summed(pieces)
        return known

    def _counted(self, pivot: Part, others: Sequence[Part], apart: Sequence[Part]) -> Changes:
        """Groundings of the others for each atom of the pivot, those that meet it left out."""
        query = _Join(self, others)
        kinds = self.predicates[pivot.predicate].types
        columns = [query.place(term, kind) for term, kind in zip(pivot.terms, kinds, strict=True)]
        for part in apart:
            pairs = list(zip(pivot.terms, part.terms, strict=True))
            if any(isinstance(a, str) and isinstance(b, str) and a != b for a, b in pairs):
                continue
            differ = [
                f"{query.place(a, kind)} <> {query.place(b, kind)}"
                for (a, b), kind in zip(pairs, kinds, strict=True)
                if a != b
            ]
            if not differ:
                return np.zeros(0, np.int64), np.zeros(0)
            query.where.append(f"({' OR '.join(differ)})")
        names = [f"p{i}" for i in range(len(columns))]
        chosen = ", ".join(["w0.w AS w", *(f"{c} AS {n}" for c, n in zip(columns, names, strict=True))])
        grouped = ", ".join(["w", *names])
        rows = self._fetch(f"SELECT {grouped}, count(*) AS n FROM (SELECT {chosen} {query.sql}) GROUP BY {grouped}")
        at = self._positions(pivot.predicate, rows["w"], [rows[n] for n in names])
        keep = at >= 0
        return at[keep], rows["n"][keep].astype(np.float64)

    def totals(self, parts: Conjunction) -> FloatArray:
        """``float64[worlds]``: how many groundings of a positive conjunction are true in the data."""
        known = self._totals.get(parts)
        if known is None:
            query = _Join(self, parts)
            rows = self._fetch(f"SELECT w, count(*) AS n FROM (SELECT w0.w AS w {query.sql}) GROUP BY w")
            known = np.zeros(self.n_worlds)
            known[rows["w"]] = rows["n"]
            self._totals[parts] = known
        return known

    def _fetch(self, sql: str) -> dict[str, IntArray]:
        self.n_queries += 1
        rows = self.connection.execute(sql).fetchnumpy()
        return {name: np.asarray(np.ma.getdata(column), np.int64) for name, column in rows.items()}

    def degree(self, name: str, bound: tuple[int, ...]) -> float:
        """The most true atoms of a predicate in one world that agree in some arguments."""
        key = (name, bound)
        if key not in self._degrees:
            grouped = ", ".join(["w", *(f"a{i}" for i in bound)])
            rows = self._fetch(f"SELECT count(*) AS n FROM {self.table[name]} GROUP BY {grouped}")
            self._degrees[key] = float(rows["n"].max(initial=0))
        return self._degrees[key]


class _Join:
    """A join of tables of true atoms, with the constants of variables that are in none."""

    def __init__(self, counts: Counts, parts: Sequence[Part]) -> None:
        self.counts = counts
        self.tables = ["worlds w0"]
        self.where: list[str] = []
        self.column: dict[int, str] = {}
        self.rows = float(counts.n_worlds)
        left = list(dict.fromkeys(parts))
        while left:
            # The one that multiplies the rows least comes next.
            sized = [(counts.degree(part.predicate, self._bound(part)), i) for i, part in enumerate(left)]
            size, i = min(sized)
            self._add(left.pop(i), size)

    @property
    def sql(self) -> str:
        """The part behind SELECT."""
        if self.rows > self.counts.max_groundings:
            raise TooManyGroundingsError
        return f"FROM {', '.join(self.tables)} WHERE {' AND '.join(self.where) or 'TRUE'}"

    def _bound(self, part: Part) -> tuple[int, ...]:
        return tuple(i for i, t in enumerate(part.terms) if isinstance(t, str) or t in self.column)

    def _add(self, part: Part, size: float) -> None:
        row = f"t{len(self.tables)}"
        self.tables.append(f"{self.counts.table[part.predicate]} {row}")
        self.where.append(f"{row}.w = w0.w")
        self.rows *= size
        for i, (term, kind) in enumerate(zip(part.terms, self.counts.predicates[part.predicate].types, strict=True)):
            if isinstance(term, int) and term not in self.column:
                self.column[term] = f"{row}.a{i}"
            else:
                self.where.append(f"{row}.a{i} = {self.place(term, kind)}")

    def place(self, term: PartTerm, kind: str) -> str:
        """A term as an expression; a variable that no table has ranges over its constants."""
        if isinstance(term, str):
            return str(self.counts.codes[kind].get(term, -1))
        if term not in self.column:
            row = f"t{len(self.tables)}"
            self.tables.append(f"{self.counts.domain[kind]} {row}")
            self.where.append(f"{row}.w = w0.w")
            self.column[term] = f"{row}.c"
            self.rows *= float(self.counts.sizes[kind].max(initial=0.0))
        return self.column[term]


def _merges(parts: Conjunction, pivot: int) -> Iterator[tuple[Part, list[Part], list[Part]]]:
    """Which literals may be the same atom as one of them, the pivot, which is to be the first of these.

    For each way: the pivot with variables made equal accordingly, the literals that must be true, and those of them
    that must be other atoms.
    """
    alike = [i for i, part in enumerate(parts) if part.predicate == parts[pivot].predicate and i != pivot]
    later = [i for i in alike if i > pivot]
    for n in range(len(later) + 1):
        for merged in combinations(later, n):
            names = _unified(parts, [pivot, *merged])
            if names is None:
                continue
            others = [part.renamed(names) for i, part in enumerate(parts) if i != pivot and i not in merged]
            apart = [parts[i].renamed(names) for i in alike if i not in merged]
            yield parts[pivot].renamed(names), others, apart


def _unified(parts: Conjunction, same: Sequence[int]) -> dict[int, PartTerm] | None:
    """What variables become where some literals are one atom; None where they cannot be."""
    names: dict[int, PartTerm] = {}

    def root(term: PartTerm) -> PartTerm:
        while isinstance(term, int) and term in names:
            term = names[term]
        return term

    first = parts[same[0]]
    for i in same[1:]:
        for one, other in zip(first.terms, parts[i].terms, strict=True):
            a, b = root(one), root(other)
            if a == b:
                continue
            if isinstance(a, int):
                names[a] = b
            elif isinstance(b, int):
                names[b] = a
            else:
                return None
    return {v: root(v) for v in names}


def _summed(found: Sequence[Changes]) -> Changes:
    """Changes of one atom added up; what comes to nothing is left out."""
    if not found:
        return np.zeros(0, np.int64), np.zeros(0)
    at, inverse = np.unique(np.concatenate([one for one, _ in found]), return_inverse=True)
    value = np.bincount(inverse, np.concatenate([v for _, v in found]), len(at))
    keep = value != 0.0
    return at[keep], value[keep]
