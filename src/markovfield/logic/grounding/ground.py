"""Ground formulas as arrays: what the queries give, counted and told apart."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from markovfield.exceptions import ImpossibleEvidenceError, MemoryLimitError
from markovfield.logic.grounding.queries import FALSE, TRUE, clause_query, slots_query, violation_query
from markovfield.logic.grounding.rules import HARD, Part
from markovfield.logic.grounding.store import Store
from markovfield.logic.language.program import Rule

__all__ = ["Block", "Tally", "ground_part"]

IntArray = npt.NDArray[np.int64]


@dataclass
class Block:
    """Ground factors of one shape.

    Attributes
    ----------
    weight, count
        ``int64[rows]`` and ``float64[rows]``: the weight of each, and how often it counts.
    offsets, atoms
        Ragged: the atoms of row r are ``atoms[offsets[r]:offsets[r + 1]]``.
    positive
        Of clauses, whether each literal is positive; None for tables.
    flipped
        Whether a clause earns its weight where it is false.
    truth
        Of tables, ``bool[2^atoms]``, the last atom fastest.
    rule
        The rule they are of.
    """

    weight: IntArray
    count: npt.NDArray[np.float64]
    offsets: IntArray
    atoms: IntArray
    positive: npt.NDArray[np.bool_] | None = None
    flipped: bool = False
    truth: npt.NDArray[np.bool_] | None = None
    rule: Rule | None = None

    def __len__(self) -> int:
        return len(self.weight)

    def rows(self, keep: npt.NDArray[np.bool_]) -> Block:
        """Some of the rows."""
        size = np.diff(self.offsets)
        inside = np.repeat(keep, size)
        offsets = np.zeros(int(keep.sum()) + 1, np.int64)
        np.cumsum(size[keep], out=offsets[1:])
        positive = None if self.positive is None else self.positive[inside]
        return replace(
            self, weight=self.weight[keep], count=self.count[keep], offsets=offsets, atoms=self.atoms[inside],
            positive=positive,
        )  # fmt: skip


@dataclass
class Tally:
    """What became of a rule's groundings: ``total = satisfied + violated + open``.

    ``satisfied`` and ``violated`` are what the evidence decides, ``violations`` the same for each weight, and
    ``factors`` how many factors are left once those that are the same are merged.
    """

    total: float = 0.0
    violated: float = 0.0
    open: float = 0.0
    factors: int = 0
    violations: dict[int, float] = field(default_factory=dict)

    @property
    def satisfied(self) -> float:
        """Groundings that the evidence makes true."""
        return self.total - self.violated - self.open


def ground_part(store: Store, part: Part, limit: int, tally: Tally, values: str | None = None) -> list[Block]:
    """The ground factors of a clause or formula, at most ``limit`` of them; for some values of its variables only,
    a query, where it is given.
    """
    ground = _ground_clause if part.truth is None else _ground_table
    blocks = ground(store, part, limit, tally, values)
    for block in blocks:
        block.rule = part.rule
    return blocks


def _refuse(store: Store, part: Part, sql: str, limit: int) -> None:
    count = store.count(sql)
    raise MemoryLimitError(
        f"the formula {part.rule.formula} alone has {count} ground clauses, more than the {limit} left of max_clauses"
    )


def _ground_clause(store: Store, part: Part, limit: int, tally: Tally, values: str | None) -> list[Block]:
    clause = part.clauses[0]
    query = clause_query(store, clause, part.types, part.bound, part.rule.each, values)
    if query.some:
        store.connection.execute(f"CREATE OR REPLACE TEMP TABLE found AS {query.sql} LIMIT {limit + 1}")
        rows = store.fetch("SELECT * FROM found")
    else:
        rows = store.fetch(f"{query.sql} LIMIT {limit + 1}")
    count = _plain(rows["m"])
    if len(count) > limit:
        _refuse(store, part, query.sql, limit)
    codes = np.empty((len(count), query.n_literals), np.int64)
    for i in range(query.n_literals):
        codes[:, i] = _plain(rows[f"c{i}"])
    row = np.repeat(np.arange(len(count)), query.n_literals)
    flat = codes.ravel()
    there = flat >= 0
    row, flat = row[there], flat[there]
    if query.some:
        at = _plain(rows["i"])
        place = np.empty(len(at), np.int64)
        place[at] = np.arange(len(at))
        for sql in query.some:
            more = store.fetch(sql)
            row = np.concatenate([row, place[_plain(more["i"])]])
            flat = np.concatenate([flat, _plain(more["c"])])
        row, flat, true = _without_repeats(row, flat, len(count))
    else:
        true = np.zeros(len(count), np.bool_)
    size = np.bincount(row, minlength=len(count))
    weight = part.weight + _plain(rows["w"]) if part.weight != HARD else np.full(len(count), HARD, np.int64)
    empty = (size == 0) & ~true
    scaled = np.asarray(count * part.share, np.float64)
    if empty.any():
        if part.weight == HARD:
            _contradiction(store, part)
        tally.violated += float(scaled[empty].sum())
    for w, missed in zip(*_sums(weight[empty], scaled[empty]), strict=True):
        tally.violations[w] = tally.violations.get(w, 0.0) + missed
    keep = (size > 0) & ~true
    tally.open += float(scaled[keep].sum())
    tally.factors += int(keep.sum())
    if not keep.any():
        return []
    chosen = flat if keep.all() else flat[keep[row]]
    offsets = np.zeros(int(keep.sum()) + 1, np.int64)
    np.cumsum(size[keep], out=offsets[1:])
    return [Block(weight[keep], scaled[keep], offsets, chosen >> 1, (chosen & 1).astype(np.bool_))]


def _sums(keys: IntArray, values: npt.NDArray[np.float64]) -> tuple[list[int], list[float]]:
    found, inverse = np.unique(keys, return_inverse=True)
    return found.tolist(), np.bincount(inverse, values, len(found)).tolist()


def _plain(column: Any) -> IntArray:
    """A column without its mask (none of ours has nulls)."""
    return np.asarray(np.ma.getdata(column), np.int64)


def _without_repeats(row: IntArray, flat: IntArray, n: int) -> tuple[IntArray, IntArray, npt.NDArray[np.bool_]]:
    """Literals by row, each once; and which rows have an atom and its negation, so are always true."""
    order = np.lexsort((flat, row))
    row, flat = row[order], flat[order]
    fresh = np.ones(len(row), np.bool_)
    fresh[1:] = (row[1:] != row[:-1]) | (flat[1:] != flat[:-1])
    row, flat = row[fresh], flat[fresh]
    both = np.flatnonzero((row[1:] == row[:-1]) & (flat[1:] >> 1 == flat[:-1] >> 1))
    true = np.zeros(n, np.bool_)
    true[row[both]] = True
    return row, flat, true


def _contradiction(store: Store, part: Part) -> None:
    """Say which hard formula the evidence violates, and for which constants."""
    row = store.connection.execute(violation_query(store, part.clauses[0], part.types, part.bound)).fetchone() or ()
    values = zip(part.types.items(), row, strict=False)
    given = ", ".join(f"{name} = {store.constants[kind][int(value)]}" for (name, kind), value in values)
    where = f" ({part.rule.where})" if part.rule.where else ""
    raise ImpossibleEvidenceError(
        f"the evidence violates the hard formula {part.rule.formula}{where}{' for ' if given else ''}{given}"
    )


def _ground_table(store: Store, part: Part, limit: int, tally: Tally, values: str | None) -> list[Block]:
    assert part.atoms is not None and part.truth is not None
    sql = slots_query(store, part.clauses, part.atoms, part.types, part.rule.each, values)
    rows = store.fetch(f"{sql} LIMIT {limit + 1}")
    count = _plain(rows["m"])
    if len(count) > limit:
        _refuse(store, part, sql, limit)
    k = len(part.atoms)
    slots = np.empty((len(count), k), np.int64)
    for i in range(k):
        slots[:, i] = _plain(rows[f"s{i}"])
    weight = part.weight + _plain(rows["w"])
    # Rows alike in what is known and in which open atoms coincide have one residual table.
    pattern = np.zeros(len(count), np.int64)
    for i in range(k):
        alike = np.full(len(count), i)
        for j in range(i - 1, -1, -1):
            alike[(slots[:, j] == slots[:, i]) & (slots[:, i] >= 0)] = j
        alike[slots[:, i] == TRUE] = k
        alike[slots[:, i] == FALSE] = k + 1
        pattern = pattern * (k + 2) + alike
    blocks = []
    for code in np.unique(pattern).tolist():
        chosen = np.flatnonzero(pattern == code)
        blocks += _residual(part.truth, slots[chosen], weight[chosen], count[chosen].astype(float), tally)
    return blocks


def _residual(
    truth: npt.NDArray[np.bool_], slots: IntArray, weight: IntArray, count: npt.NDArray[np.float64], tally: Tally
) -> list[Block]:
    """Rows of one pattern: the table of the open atoms, without those on which nothing depends."""
    first = slots[0]
    distinct = [i for i in range(len(first)) if first[i] >= 0 and first[i] not in first[:i]]
    index: list[Any] = []
    for i in range(len(first)):
        if first[i] < 0:
            index.append(int(first[i] == TRUE))
            continue
        axis = next(a for a, j in enumerate(distinct) if first[j] == first[i])
        shape = [1] * len(distinct)
        shape[axis] = 2
        index.append(np.arange(2).reshape(shape))
    table = np.broadcast_to(truth[tuple(index)], (2,) * len(distinct))
    for axis in range(len(distinct) - 1, -1, -1):
        low, high = np.take(table, 0, axis), np.take(table, 1, axis)
        if np.array_equal(low, high):
            table = low
            del distinct[axis]
    total = float(count.sum())
    if not distinct:
        if not bool(table):
            tally.violated += total
            for w, missed in zip(*_sums(weight, count), strict=True):
                tally.violations[w] = tally.violations.get(w, 0.0) + missed
        return []
    tally.open += total
    tally.factors += len(weight)
    atoms = slots[:, distinct]
    offsets = np.arange(len(weight) + 1, dtype=np.int64) * len(distinct)
    flat = table.ravel()
    false, true = np.flatnonzero(~flat), np.flatnonzero(flat)
    if len(false) == 1 or len(true) == 1:
        # One row is false: a clause. One is true: the negation of a clause.
        row = int(false[0] if len(false) == 1 else true[0])
        bits = (row >> np.arange(len(distinct) - 1, -1, -1)) & 1
        positive = np.tile(bits == 0, len(weight))
        return [Block(weight, count, offsets, atoms.ravel(), positive, flipped=len(false) != 1)]
    return [Block(weight, count, offsets, atoms.ravel(), truth=flat)]
