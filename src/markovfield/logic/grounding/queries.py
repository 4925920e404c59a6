"""Clauses to SQL. Queries are made of numbers and of names that are made here; no text of a user is part of them."""

from __future__ import annotations

import math
from dataclasses import dataclass

from markovfield.exceptions import MemoryLimitError
from markovfield.logic.grounding.store import Relation, Store
from markovfield.logic.language.normal_forms import Clause, Literal
from markovfield.logic.language.syntax import Atom, Constant, Equal, Term, Variable

__all__ = ["ClauseQuery", "clause_query", "losing_query", "slots_query", "violation_query"]

ABSENT, TRUE, FALSE = -1, -2, -3
# Some minutes of the database.
MOST_COMBINATIONS = 2**37


@dataclass(frozen=True)
class ClauseQuery:
    """A clause's ground clauses that the evidence leaves open.

    Attributes
    ----------
    sql
        Columns ``w`` (which of its weights), ``c0, c1, ...`` (literals: twice the number of the atom, and one more
        where it is positive; -1 where it is known to be false), ``m`` (how many groundings give this clause).
    n_literals
        Number of columns ``c``.
    some
        For each literal under "exists" the query of its atoms: columns ``i`` (row of `sql`, which has a column ``i``
        then, and is a table ``found``) and ``c``.
    """

    sql: str
    n_literals: int
    some: tuple[str, ...]


class _Writer:
    """Expressions for the variables of one clause."""

    def __init__(self, store: Store, types: dict[str, str], bound: dict[str, str]) -> None:
        self.store, self.types, self.bound = store, types, bound
        self.column = {name: f"v{i}" for i, name in enumerate(types)}

    def code(self, term: Term, kind: str, prefix: str = "b.") -> str:
        """A term as an expression over the bindings."""
        if isinstance(term, Constant):
            return str(self.store.index[kind][term.name])
        assert isinstance(term, Variable)
        return f"{prefix}{self.column[term.name]}"

    def number(self, atom: Atom, relation: Relation, prefix: str = "b.", own: dict[str, str] | None = None) -> str:
        """The number of an atom as an expression."""
        terms = [str(relation.base)]
        for term, kind, stride in zip(atom.args, relation.predicate.types, relation.strides, strict=True):
            inside = isinstance(term, Variable) and own is not None and term.name in own
            text = (
                own[term.name]
                if inside and own is not None and isinstance(term, Variable)
                else self.code(term, kind, prefix)
            )
            terms.append(text if stride == 1 else f"{text} * {stride}")
        return f"CAST({' + '.join(terms)} AS BIGINT)"

    def matches(
        self, atom: Atom, relation: Relation, row: str, skip: tuple[str, ...] = (), prefix: str = "b."
    ) -> list[str]:
        """That a row of a relation's table is the atom; variables in ``skip`` may have any value."""
        found: list[str] = []
        first: dict[str, int] = {}
        for i, (term, kind) in enumerate(zip(atom.args, relation.predicate.types, strict=True)):
            if isinstance(term, Variable) and term.name in skip:
                if term.name in first:
                    found.append(f"{row}.a{i} = {row}.a{first[term.name]}")
                first.setdefault(term.name, i)
            else:
                found.append(f"{row}.a{i} = {self.code(term, kind, prefix)}")
        return found

    def equal(self, atom: Equal, prefix: str = "b.") -> tuple[str, str]:
        """Both sides of an equality."""
        kind = ""
        for term in (atom.left, atom.right):
            if isinstance(term, Variable):
                kind = self.types[term.name]
        if not kind:  # two constants: the same or not, whatever their type
            return repr(int(atom.left == atom.right)), "1"
        return tuple(self._side(term, kind, prefix) for term in (atom.left, atom.right))  # type: ignore[return-value]

    def _side(self, term: Term, kind: str, prefix: str) -> str:
        if isinstance(term, Constant):
            return str(self.store.index[kind].get(term.name, -1))
        return self.code(term, kind, prefix)


def _all(conditions: list[str]) -> str:
    return " AND ".join(conditions) or "TRUE"


def bindings(writer: _Writer, clause: Clause) -> str:
    """Values of all variables for which closed predicates and equalities do not make the clause true.

    Columns ``v0, v1, ...`` in the order of the types.
    """
    store = writer.store
    tables: list[str] = []
    where: list[str] = []
    place: dict[str, str] = {}
    for lit in clause:
        relation = store.relations[lit.atom.predicate] if isinstance(lit.atom, Atom) else None
        if relation is not None and relation.closed and not lit.positive and not lit.some:
            row = f"j{len(tables)}"
            tables.append(f"{relation.table} {row}")
            assert isinstance(lit.atom, Atom)
            for i, (term, kind) in enumerate(zip(lit.atom.args, relation.predicate.types, strict=True)):
                if isinstance(term, Variable):
                    if term.name in place:
                        where.append(f"{row}.a{i} = {place[term.name]}")
                    place.setdefault(term.name, f"{row}.a{i}")
                else:
                    where.append(f"{row}.a{i} = {writer.code(term, kind)}")
    unlimited = [name for name in writer.types if name not in place]
    combinations = math.prod(store.size(writer.types[name]) for name in unlimited)
    if combinations > MOST_COMBINATIONS:
        text = " v ".join(f"{'' if lit.positive else '!'}{lit.atom}" for lit in clause)
        raise MemoryLimitError(
            f"the clause {text} has {combinations:.3g} combinations of constants for {', '.join(unlimited)}, which no "
            "known atoms limit: up to 2^37 are gone through"
        )
    for name, kind in writer.types.items():
        if name not in place:
            row = f"r{len(tables)}"
            tables.append(f"range({store.size(kind)}) {row}(c)")
            place[name] = f"{row}.c"
    chosen = [f"{place[name]} AS {column}" for name, column in writer.column.items() if name in place]
    inner = f"SELECT {', '.join(chosen) or '0 AS nothing'} FROM {' CROSS JOIN '.join(tables) or 'range(1)'}"
    if where:
        inner += f" WHERE {_all(where)}"
    outer = [_not_satisfied(writer, lit) for lit in clause]
    outer = [text for text in outer if text]
    return f"SELECT b.* FROM ({inner}) b WHERE {_all(outer)}" if outer else inner


def _undecided(writer: _Writer, clause: Clause, values: str) -> str:
    """Of some values of the variables, those that `bindings` has too."""
    where = [_not_satisfied(writer, lit) for lit in clause]
    for lit in clause:
        relation = writer.store.relations[lit.atom.predicate] if isinstance(lit.atom, Atom) else None
        if relation is not None and relation.closed and not lit.positive and not lit.some:
            assert isinstance(lit.atom, Atom)
            match = _all(writer.matches(lit.atom, relation, "q"))
            where.append(f"EXISTS (SELECT 1 FROM {relation.table} q WHERE {match})")
    return f"SELECT b.* FROM ({values}) b WHERE {_all([text for text in where if text])}"


def _not_satisfied(writer: _Writer, lit: Literal) -> str:
    """That closed predicates, equalities and known atoms under "exists" do not make a literal true, or ""."""
    if isinstance(lit.atom, Equal):
        left, right = writer.equal(lit.atom)
        return f"{left} <> {right}" if lit.positive else f"{left} = {right}"
    relation = writer.store.relations[lit.atom.predicate]
    if relation.closed and (lit.positive or lit.some):
        match = _all(writer.matches(lit.atom, relation, "q", lit.some))
        if lit.positive:
            return f"NOT EXISTS (SELECT 1 FROM {relation.table} q WHERE {match})"
        total = 1
        for name in lit.some:
            total *= writer.store.size(writer.bound[name])
        return f"(SELECT count(*) FROM {relation.table} q WHERE {match}) = {total}"
    if lit.some and relation.n_known:
        match = _all([*writer.matches(lit.atom, relation, "q", lit.some), "q.t" if lit.positive else "NOT q.t"])
        return f"NOT EXISTS (SELECT 1 FROM {relation.table} q WHERE {match})"
    return ""


def clause_query(
    store: Store,
    clause: Clause,
    types: dict[str, str],
    bound: dict[str, str],
    each: tuple[str, ...],
    values: str | None = None,
) -> ClauseQuery:
    """The query of a clause's ground clauses; of those for some values of its variables (a query) where given."""
    writer = _Writer(store, types, bound)
    some = [lit for lit in clause if lit.some]
    open_some = [lit for lit in some if not store.relations[lit.atom.predicate].closed]  # type: ignore[union-attr]
    plain: list[tuple[Literal, Relation]] = []
    for lit in clause:
        if isinstance(lit.atom, Atom) and not lit.some and not store.relations[lit.atom.predicate].closed:
            plain.append((lit, store.relations[lit.atom.predicate]))
    plain.sort(key=lambda pair: (pair[1].base, pair[0].positive))
    joins, where, columns = [], [], []
    for i, (lit, relation) in enumerate(plain):
        assert isinstance(lit.atom, Atom)
        code = f"{writer.number(lit.atom, relation)} * 2 + {int(lit.positive)}"
        if relation.n_known:
            joins.append(f"LEFT JOIN {relation.table} e{i} ON {_all(writer.matches(lit.atom, relation, f'e{i}'))}")
            where.append(f"(e{i}.t IS NULL OR {'NOT ' if lit.positive else ''}e{i}.t)")
            code = f"CASE WHEN e{i}.t IS NULL THEN {code} ELSE {ABSENT} END"
        columns.append(f"{code} AS c{i}")
    columns.append(f"{_weight(writer, each)} AS w")
    outer = {v for lit in open_some for v in _outer_variables(lit)}
    columns += [f"b.{writer.column[v]}" for v in writer.column if v in outer]
    found = bindings(writer, clause) if values is None else _undecided(writer, clause, values)
    inner = f"SELECT {', '.join(columns)} FROM ({found}) b {' '.join(joins)}"
    if where:
        inner += f" WHERE {_all(where)}"
    merged = _merged(plain, inner, [writer.column[v] for v in writer.column if v in outer])
    if not open_some:
        return ClauseQuery(merged, len(plain), ())
    numbered = f"SELECT row_number() OVER () - 1 AS i, * FROM ({merged})"
    return ClauseQuery(numbered, len(plain), tuple(_some_query(writer, lit) for lit in open_some))


def violation_query(store: Store, clause: Clause, types: dict[str, str], bound: dict[str, str]) -> str:
    """Values of the variables, in their order, for which the evidence makes a clause false; one row at most."""
    writer = _Writer(store, types, bound)
    joins: list[str] = []
    where: list[str] = []
    for i, lit in enumerate(clause):
        if isinstance(lit.atom, Atom) and not lit.some and not store.relations[lit.atom.predicate].closed:
            relation = store.relations[lit.atom.predicate]
            joins.append(f"JOIN {relation.table} e{i} ON {_all(writer.matches(lit.atom, relation, f'e{i}'))}")
            where.append(f"{'NOT ' if lit.positive else ''}e{i}.t")
    columns = ", ".join(f"b.{c}" for c in writer.column.values()) or "0"
    return f"SELECT {columns} FROM ({bindings(writer, clause)}) b {' '.join(joins)} WHERE {_all(where)} LIMIT 1"


def _outer_variables(lit: Literal) -> list[str]:
    assert isinstance(lit.atom, Atom)
    return [t.name for t in lit.atom.args if isinstance(t, Variable) and t.name not in lit.some]


def _weight(writer: _Writer, each: tuple[str, ...]) -> str:
    """Which of a rule's weights a grounding has, counted with the last variable fastest."""
    terms, stride = [], 1
    for name in reversed(each):
        terms.append(f"b.{writer.column[name]} * {stride}")
        stride *= writer.store.size(writer.types[name])
    return f"CAST({' + '.join(terms) or '0'} AS BIGINT)"


def _merged(plain: list[tuple[Literal, Relation]], inner: str, kept: list[str]) -> str:
    """Without tautologies, with literals that coincide once, the same clause once with its multiplicity."""
    n = len(plain)
    alike = [[j for j in range(n) if plain[j][1] is plain[i][1]] for i in range(n)]
    where = [
        f"NOT (c{i} >= 0 AND c{i} + 1 = c{j})"  # the negative and the positive literal of one atom
        for i in range(n)
        for j in alike[i]
        if not plain[i][0].positive and plain[j][0].positive
    ]
    columns, groups = [], []
    for i in range(n):
        same = [j for j in alike[i] if plain[j][0].positive == plain[i][0].positive]
        if len(same) > 1 and same[0] == i:
            groups.append(same)
        before = [j for j in same if j < i]
        text = f"c{i}"
        if before:
            text = f"CASE WHEN {' OR '.join(f'c{j} = c{i}' for j in before)} THEN {ABSENT} ELSE c{i} END"
        columns.append(f"{text} AS c{i}")
    others = ["w", *kept]
    once = f"SELECT {', '.join([*columns, *others])} FROM ({inner})" + (f" WHERE {_all(where)}" if where else "")
    if groups:
        ordered = [f"c{i}" for i in range(n)]
        for same in groups:
            if len(same) == 2:
                a, b = same
                ordered[a], ordered[b] = f"least(c{a}, c{b}) AS c{a}", f"greatest(c{a}, c{b}) AS c{b}"
            else:
                listed = f"list_sort([{', '.join(f'c{j}' for j in same)}])"
                for place, j in enumerate(same):
                    ordered[j] = f"{listed}[{place + 1}] AS c{j}"
        once = f"SELECT {', '.join([*ordered, *others])} FROM ({once})"
    names = [*(f"c{i}" for i in range(n)), *others]
    return f"SELECT {', '.join(names)}, count(*) AS m FROM ({once}) GROUP BY {', '.join(names)}"


def _some_query(writer: _Writer, lit: Literal) -> str:
    """The open atoms of a literal under "exists", for each row of the table ``found``."""
    assert isinstance(lit.atom, Atom)
    relation = writer.store.relations[lit.atom.predicate]
    own = {name: f"s{i}.c" for i, name in enumerate(lit.some)}
    tables = [f"range({writer.store.size(writer.bound[name])}) s{i}(c)" for i, name in enumerate(lit.some)]
    code = f"{writer.number(lit.atom, relation, 'b.', own)} * 2 + {int(lit.positive)}"
    sql = f"SELECT b.i, {code} AS c FROM {' CROSS JOIN '.join(['found b', *tables])}"
    if relation.n_known:
        match = []
        for i, (term, kind) in enumerate(zip(lit.atom.args, relation.predicate.types, strict=True)):
            inside = own.get(term.name) if isinstance(term, Variable) else None
            match.append(f"q.a{i} = {inside or writer.code(term, kind)}")
        sql += f" WHERE NOT EXISTS (SELECT 1 FROM {relation.table} q WHERE {_all(match)})"
    return f"SELECT DISTINCT i, c FROM ({sql})"


def slots_query(
    store: Store,
    clauses: tuple[Clause, ...],
    atoms: tuple[Atom | Equal, ...],
    types: dict[str, str],
    each: tuple[str, ...],
    values: str | None = None,
) -> str:
    """Groundings of a whole formula that the evidence leaves open, or false; or for some values of its variables.

    Columns ``w`` (which weight), ``s0, s1, ...`` (of each atom its number, or `TRUE` or `FALSE` where it is known) and
    ``m``.
    """
    writer = _Writer(store, types, {})
    found = [] if values is None else [values]
    for clause in clauses if values is None else ():
        joins, where = [], []
        for i, lit in enumerate(clause):
            relation = store.relations[lit.atom.predicate] if isinstance(lit.atom, Atom) else None
            if relation is not None and not relation.closed and relation.n_known:
                assert isinstance(lit.atom, Atom)
                joins.append(f"LEFT JOIN {relation.table} e{i} ON {_all(writer.matches(lit.atom, relation, f'e{i}'))}")
                where.append(f"(e{i}.t IS NULL OR {'NOT ' if lit.positive else ''}e{i}.t)")
        chosen = ", ".join(f"b.{c}" for c in writer.column.values()) or "0 AS nothing"
        found.append(f"SELECT {chosen} FROM ({bindings(writer, clause)}) b {' '.join(joins)} WHERE {_all(where)}")
    joins, columns = [], [f"{_weight(writer, each)} AS w"]
    for i, atom in enumerate(atoms):
        if isinstance(atom, Equal):
            left, right = writer.equal(atom)
            columns.append(f"CAST(CASE WHEN {left} = {right} THEN {TRUE} ELSE {FALSE} END AS BIGINT) AS s{i}")
            continue
        relation = store.relations[atom.predicate]
        unknown = str(FALSE) if relation.closed else writer.number(atom, relation)
        if relation.n_known:
            joins.append(f"LEFT JOIN {relation.table} q{i} ON {_all(writer.matches(atom, relation, f'q{i}'))}")
            unknown = f"CASE WHEN q{i}.t IS NULL THEN {unknown} WHEN q{i}.t THEN {TRUE} ELSE {FALSE} END"
        columns.append(f"CAST({unknown} AS BIGINT) AS s{i}")
    names = ", ".join(["w", *(f"s{i}" for i in range(len(atoms)))])
    inner = f"SELECT {', '.join(columns)} FROM ({' UNION '.join(found)}) b {' '.join(joins)}"
    return f"SELECT {names}, count(*) AS m FROM ({inner}) GROUP BY {names}"


def losing_query(
    world: Store,
    clauses: list[tuple[Clause, dict[str, str]]],
    types: dict[str, str],
    bound: dict[str, str],
    each: tuple[str, ...],
    chosen: str,
) -> str:
    """Values of the variables for which a world, in which all is known, makes one of some clauses false.

    Each clause comes with the types of variables that it has beyond ``types``. ``chosen`` is a query of the weights
    that matter, counted as those of the formula are; with ``each`` empty it is not looked at.
    """
    found = []
    for clause, more in clauses:
        writer = _Writer(world, types | more, bound)
        columns = ", ".join(f"a.{writer.column[name]}" for name in types) or "0 AS nothing"
        found.append(f"SELECT DISTINCT {columns} FROM ({bindings(writer, clause)}) a")
    sql = " UNION ".join(found)
    if not each:
        return sql
    return f"SELECT b.* FROM ({sql}) b WHERE {_weight(_Writer(world, types, {}), each)} IN ({chosen})"
