"""Make a failing case smaller while the same claim fails: fewer questions, settings, factors, variables, numbers."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tests.fuzz.claims import Broken, broken_by
from tests.fuzz.models import Case, Noisy
from tests.fuzz.options import Places, Question, class_asked, moved
from tests.strategies import Apart, Clause, Counted, Cpt, Operation, Spec, Table

Trial = tuple[Case, tuple[Question, ...]]
NEEDED = {"size", "semiring", "event", "loss", "variables", "n_best", "seed"}


def failure(case: Case, questions: Sequence[Question], claim: str) -> Broken | None:
    """Ask all questions of one fresh model; whether the last breaks the claim."""
    try:
        model = case.build()
        for q in questions[:-1]:
            broken_by(case, q, model)
        found = broken_by(case, questions[-1], model)
    except Exception:
        # What cannot even be built or checked is no smaller version of the same failure.
        return None
    return next((b for b in found if b.claim == claim), None)


def smallest(
    case: Case, questions: Sequence[Question], broken: Broken, seconds: float = 10.0
) -> tuple[Case, tuple[Question, ...], Broken]:
    """Greedily the smallest case that still breaks the claim, within some seconds."""
    best: Trial = (case, tuple(questions))
    end = time.perf_counter() + seconds
    changed = True
    while changed and time.perf_counter() < end:
        changed = False
        for trial in _smaller(*best):
            if time.perf_counter() > end:
                break
            found = failure(*trial, broken.claim)
            if found is not None:
                best, broken, changed = trial, found, True
                break
    return *best, broken


def _smaller(case: Case, questions: tuple[Question, ...]) -> Iterator[Trial]:
    """Simpler cases, the largest steps first."""
    for i in range(len(questions) - 1):
        yield case, questions[:i] + questions[i + 1 :]
    yield from _parts(case, questions)
    for i, op in enumerate(case.parts[0].operations if len(case.parts) == 1 and case.form != "tables" else ()):
        if not isinstance(op, Cpt):
            yield _without_operation(case, i), questions
    for v in case.evidence:
        yield replace(case, evidence={u: e for u, e in case.evidence.items() if u != v}), questions
    *before, last = questions
    if last.evidence is not None:
        yield case, (*before, replace(last, evidence=None))
        for v in last.evidence:
            fewer = {u: e for u, e in last.evidence.items() if u != v}
            yield case, (*before, replace(last, evidence=fewer))
    if case.used:
        yield replace(case, used=False), questions
    for simpler in _simpler_questions(last):
        yield case, (*before, simpler)
    if case.form == "graph" and len(case.parts) == 1:
        yield replace(case, form="builder"), questions
    if len(case.parts) == 1:
        for v in range(case.n_variables):
            yield from _without_variable(case, questions, v)
        if case.directed:
            for i in range(len(case.parts[0].operations)):
                yield from ((fewer, questions) for fewer in _fewer_parents(case, i))
        for v in range(case.n_variables):
            yield from _fewer_states(case, questions, v)
        yield from _simpler_numbers(case, questions)


def _parts(case: Case, questions: tuple[Question, ...]) -> Iterator[Trial]:
    at = 0
    for part in case.parts if len(case.parts) > 1 else ():
        new = {at + v: v for v in range(part.n_variables)}
        evidence = {new[v]: e for v, e in case.evidence.items() if v in new}
        yield Case((part,), evidence, "graph", kind=case.kind), tuple(_moved(q, new) for q in questions)
        at += part.n_variables


def _moved(question: Question, new: dict[int, int]) -> Question:
    evidence = question.evidence
    return replace(
        question,
        evidence=None if evidence is None else {new[v]: e for v, e in evidence.items() if v in new},
        settings={k: moved(v, new) for k, v in question.settings.items()},
        keywords={k: moved(v, new) for k, v in question.keywords.items()},
    )


def _simpler_questions(q: Question) -> Iterator[Question]:
    cls = class_asked(q)
    # Without its seed, what is drawn would not be drawn again.
    draws = q.verb == "sample" or cls is None or "rng" in cls.abilities
    if q.stop > 0:
        yield replace(q, stop=0)
    if q.stop >= 0:
        yield replace(q, stop=-1)
    if q.warm:
        yield replace(q, warm=False)
    if q.again:
        yield replace(q, again=0)
    for k in q.settings:
        yield replace(q, settings={a: b for a, b in q.settings.items() if a != k})
    for k, value in q.keywords.items():
        others = {a: b for a, b in q.keywords.items() if a != k}
        if k == "rng" and draws:
            continue
        if k not in NEEDED:
            yield replace(q, keywords=others)
        elif isinstance(value, Places) and len(value.positions) > 1:
            for i in range(len(value.positions)):
                fewer = Places(value.positions[:i] + value.positions[i + 1 :])
                yield replace(q, keywords=others | {k: fewer})
        elif k == "n_best" and value > 2:
            yield replace(q, keywords=others | {k: value - 1})


def _with(case: Case, operations: Sequence[Operation]) -> Case:
    spec = case.parts[0]
    return replace(case, parts=(Spec(spec.cardinalities, tuple(operations), spec.labels),))


def _without_operation(case: Case, i: int) -> Case:
    operations = case.parts[0].operations
    return _with(case, operations[:i] + operations[i + 1 :])


def _scope_of(op: Operation) -> set[int]:
    if isinstance(op, (Clause, Counted)):
        return {v for v, _, _ in op.literals}
    if isinstance(op, Cpt):
        return {op.child, *op.parents}
    return {v for scope in op.scopes for v in scope}


def _renamed(op: Operation, new: dict[int, int]) -> Operation:
    if isinstance(op, (Clause, Counted)):
        return replace(op, literals=tuple((new[v], s, sign) for v, s, sign in op.literals))
    if isinstance(op, Cpt):
        return replace(op, child=new[op.child], parents=tuple(new[p] for p in op.parents))
    return replace(op, scopes=tuple(tuple(new[v] for v in scope) for scope in op.scopes))


def _pool_of(case: Case) -> dict[int, np.ndarray]:
    """The part of a case's own pool that each operation of a directed model reads, by the operation's place."""
    assert case.tables is not None
    operations = case.parts[0].operations
    found, at = {}, 0
    # Conditional tables are compiled in the order of their children.
    for i in sorted(range(len(operations)), key=lambda i: operations[i].child):  # type: ignore[union-attr]
        size = operations[i].table.size  # type: ignore[union-attr]
        found[i], at = case.tables[at : at + size], at + size
    return found


def _without_variable(case: Case, questions: tuple[Question, ...], v: int) -> Iterator[Trial]:
    """The case without a variable and what touches it; in a Bayesian network only a childless one."""
    spec = case.parts[0]
    if any(isinstance(op, Cpt) and v in op.parents for op in spec.operations):
        return
    new = {u: u - (u > v) for u in range(spec.n_variables) if u != v}
    kept = [i for i, op in enumerate(spec.operations) if v not in _scope_of(op)]
    operations = tuple(_renamed(spec.operations[i], new) for i in kept)
    smaller = Spec(
        tuple(c for u, c in enumerate(spec.cardinalities) if u != v),
        operations,
        tuple(x for u, x in enumerate(spec.labels) if u != v),
    )
    evidence = {new[u]: e for u, e in case.evidence.items() if u != v}
    columns = tuple(tuple(new[u] for u in column if u != v) for column in case.columns)
    changed = replace(case, parts=(smaller,), evidence=evidence, columns=columns)
    if case.form == "tables":
        if not case.directed:
            return
        pool = _pool_of(case)
        order = sorted(kept, key=lambda i: spec.operations[i].child)  # type: ignore[union-attr]
        changed = replace(changed, tables=np.concatenate([np.zeros(0), *(pool[i] for i in order)]))
    yield changed, tuple(_moved(q, new) for q in questions)


def _fewer_parents(case: Case, i: int) -> Iterator[Case]:
    """A conditional table with one parent less, in its first state."""
    op = case.parts[0].operations[i]
    if not isinstance(op, Cpt) or isinstance(op, Noisy):
        return
    operations = case.parts[0].operations
    for axis in range(len(op.parents)):
        fewer = op.parents[:axis] + op.parents[axis + 1 :]
        cut = Cpt(op.child, fewer, np.take(op.table, 0, axis))
        changed = _with(case, [*operations[:i], cut, *operations[i + 1 :]])
        if case.form == "tables":
            pool = _pool_of(case)
            pool[i] = np.take(pool[i].reshape(op.table.shape), 0, axis).ravel()
            changed = replace(changed, tables=np.concatenate(list(pool.values())))
        yield changed


def _fewer_states(case: Case, questions: tuple[Question, ...], v: int) -> Iterator[Trial]:
    """The case without a variable's last state, where its factors are tables."""
    spec = case.parts[0]
    last = spec.cardinalities[v] - 1
    touched = [op for op in spec.operations if v in _scope_of(op)]
    plain = all(isinstance(op, Table) and len(op.scopes) == 1 for op in touched)
    if any(q.evidence is not None for q in questions):
        return
    if last < 1 or not plain or case.form == "tables" or "loss" in questions[-1].keywords:
        return
    operations = []
    for op in spec.operations:
        if isinstance(op, Table) and v in op.scopes[0]:
            cut = tuple(slice(0, last) if u == v else slice(None) for u in op.scopes[0])
            operations.append(Table(op.scopes, op.log_table[cut]))
        else:
            operations.append(op)
    cards = tuple(c - (u == v) for u, c in enumerate(spec.cardinalities))
    evidence: dict[int, Any] = {}
    for u, e in case.evidence.items():
        if u == v and (e == last if np.ndim(e) == 0 else not np.asarray(e)[:last].any()):
            return
        evidence[u] = e if u != v or np.ndim(e) == 0 else np.asarray(e)[:last]
    yield replace(case, parts=(Spec(cards, tuple(operations), spec.labels),), evidence=evidence), questions


def _simpler_numbers(case: Case, questions: tuple[Question, ...]) -> Iterator[Trial]:
    """Fewer scopes on a table, and zeros, integers or shorter numbers in it."""
    if case.form == "tables":
        assert case.tables is not None
        for simpler in (np.zeros(len(case.tables)), np.round(case.tables), np.round(case.tables, 1)):
            if not np.array_equal(simpler, case.tables):
                yield replace(case, tables=simpler), questions
        # Numbers that were replaced do not matter.
        plain = [
            Cpt(op.child, op.parents, np.full(op.table.shape, 1.0 / op.table.shape[-1])) if isinstance(op, Cpt) else op
            for op in case.parts[0].operations
        ]
        if any(isinstance(op, Cpt) and (op.table != op.table[..., :1]).any() for op in case.parts[0].operations):
            yield _with(case, plain), questions
        return
    operations = case.parts[0].operations
    for i, op in enumerate(operations):

        def swapped(other: Operation, i: int = i) -> Trial:
            return _with(case, [*operations[:i], other, *operations[i + 1 :]]), questions

        if isinstance(op, (Table, Apart)) and len(op.scopes) > 1:
            for j in range(len(op.scopes)):
                yield swapped(replace(op, scopes=op.scopes[:j] + op.scopes[j + 1 :]))
        if isinstance(op, Table):
            yield from (swapped(Table(op.scopes, t)) for t in _simpler_tables(op.log_table))
        if isinstance(op, Noisy):
            yield swapped(Cpt(op.child, op.parents, op.table))
        elif isinstance(op, Cpt) and not np.array_equal(op.table, np.round(op.table, 1)):
            table = np.round(op.table, 1)
            table[..., -1] = np.round(1 - table[..., :-1].sum(axis=-1), 1)
            if (table >= 0).all():
                yield swapped(Cpt(op.child, op.parents, table))


def _simpler_tables(table: np.ndarray) -> Iterator[np.ndarray]:
    finite = np.isfinite(table)
    for simpler in (np.where(finite, 0.0, table), np.where(finite, np.round(np.where(finite, table, 0)), table)):
        if not np.array_equal(simpler, table):
            yield simpler
    for cell in np.argwhere(table != 0).tolist()[:16]:
        simpler = table.copy()
        simpler[tuple(cell)] = 0.0
        yield simpler
