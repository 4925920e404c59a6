"""Normal forms: negations inside, quantifiers as literals of their own, clauses (Murphy 19.34, 19.35), truth tables."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product

import numpy as np
import numpy.typing as npt

from markovfield.exceptions import ModelError
from markovfield.logic.language.syntax import (
    And,
    Atom,
    Equal,
    Exists,
    ForAll,
    Formula,
    Iff,
    Implies,
    Not,
    Or,
    Term,
    Variable,
    atoms_of,
    children,
    free_variables,
    rebuild,
    substitute,
)

__all__ = ["Clause", "Literal", "clauses_of", "define_quantified", "negations_inside", "truth_table"]

MOST_CLAUSES = 4096
MOST_ATOMS = 14


@dataclass(frozen=True)
class Literal:
    """An atom or an equality, or its negation; true where it holds for some constants in the place of ``some``."""

    atom: Atom | Equal
    positive: bool
    some: tuple[str, ...] = ()


Clause = tuple[Literal, ...]


def open_universal(formula: Formula) -> Formula:
    """Without the quantifiers "for all" at the front, whose variables are free as others are."""
    while isinstance(formula, ForAll):
        clash = set(formula.variables) & set(free_variables(formula))
        values = {name: Variable(f"{name}'") for name in formula.variables if name in clash}
        formula = substitute(formula.body, dict(values))
    return formula


def rename_bound(formula: Formula) -> Formula:
    """Every quantifier with variables of its own, so that no name means two things."""
    used = 0

    def walk(part: Formula, values: dict[str, Term]) -> Formula:
        nonlocal used
        if isinstance(part, Exists | ForAll):
            fresh = {}
            for name in part.variables:
                used += 1
                fresh[name] = Variable(f"{name}'{used}")
            body = walk(part.body, values | fresh)
            return type(part)(tuple(v.name for v in fresh.values()), body)
        if isinstance(part, Atom | Equal):
            return substitute(part, values)
        return rebuild(part, tuple(walk(inner, values) for inner in children(part)))

    return walk(formula, {})


def negations_inside(formula: Formula, positive: bool = True) -> Formula:
    """An equivalent formula of "and", "or" and quantifiers in which only atoms are negated."""
    match formula:
        case Not(body):
            return negations_inside(body, not positive)
        case Implies(left, right):
            return negations_inside(Or((Not(left), right)), positive)
        case Iff(left, right):
            if positive:
                return And(
                    (
                        Or((negations_inside(left, False), negations_inside(right, True))),
                        Or((negations_inside(left, True), negations_inside(right, False))),
                    )
                )
            return And(
                (
                    Or((negations_inside(left, True), negations_inside(right, True))),
                    Or((negations_inside(left, False), negations_inside(right, False))),
                )
            )
        case And(parts) | Or(parts):
            conjunction = isinstance(formula, And) == positive
            inner = tuple(negations_inside(part, positive) for part in parts)
            return And(inner) if conjunction else Or(inner)
        case Exists(variables, body) | ForAll(variables, body):
            changed = negations_inside(body, positive)
            return Exists(variables, changed) if isinstance(formula, Exists) == positive else ForAll(variables, changed)
    return formula if positive else Not(formula)


def narrow(formula: Formula) -> Formula:
    """Quantifiers as far inside as they go: ``EXIST x (P(x) v Q(y))`` is ``EXIST x P(x) v Q(y)``.

    Negations stand inside already.
    """
    if isinstance(formula, And | Or):
        return rebuild(formula, tuple(map(narrow, formula.parts)))
    if not isinstance(formula, Exists | ForAll):
        return formula
    body = narrow(formula.body)
    names = tuple(v for v in formula.variables if v in free_variables(body))
    if not names:
        return body
    kind = type(formula)
    if isinstance(body, kind):
        return narrow(kind((*names, *body.variables), body.body))
    through, other = (Or, And) if kind is Exists else (And, Or)
    if isinstance(body, through):
        return through(tuple(narrow(kind(names, part)) for part in body.parts))
    if isinstance(body, other):
        inside = [part for part in body.parts if set(names) & set(free_variables(part))]
        outside = [part for part in body.parts if not set(names) & set(free_variables(part))]
        if outside:
            rest = inside[0] if len(inside) == 1 else other(tuple(inside))
            return other((*outside, narrow(kind(names, rest))))
    return kind(names, body)


def _literal(formula: Formula) -> Literal | None:
    """A literal, also one under "exists"; None for anything else. Negations stand inside."""
    if isinstance(formula, Exists):
        inner = _literal(formula.body)
        if inner is None or inner.some or isinstance(inner.atom, Equal):
            return None
        used = set(free_variables(inner.atom))
        return Literal(inner.atom, inner.positive, tuple(v for v in formula.variables if v in used))
    if isinstance(formula, Not):
        return Literal(formula.body, False) if isinstance(formula.body, Atom | Equal) else None
    return Literal(formula, True) if isinstance(formula, Atom | Equal) else None


def clauses_of(formula: Formula) -> list[Clause] | None:
    """The conjunctive normal form; None where a quantifier stands around more than a literal, or negated.

    Clauses that are always true are left out, literals that stand twice are there once.
    """
    inner = narrow(negations_inside(formula))
    if _has_hidden_quantifier(inner):
        return None
    found = [c for c in (_tidy(c) for c in _distribute(inner)) if c is not None]
    return list(dict.fromkeys(found))


def _has_hidden_quantifier(formula: Formula) -> bool:
    if isinstance(formula, ForAll):
        return True
    if isinstance(formula, Exists):
        return _literal(formula) is None
    return any(map(_has_hidden_quantifier, children(formula)))


def _distribute(formula: Formula) -> list[Clause]:
    single = _literal(formula)
    if single is not None:
        return [(single,)]
    if isinstance(formula, And):
        found = [clause for part in formula.parts for clause in _distribute(part)]
    else:
        parts = [_distribute(part) for part in children(formula)]
        if np.prod([float(len(p)) for p in parts]) > MOST_CLAUSES:
            raise ModelError(f"the formula {formula} has more than {MOST_CLAUSES} clauses")
        found = [tuple(lit for clause in chosen for lit in clause) for chosen in product(*parts)]
    if len(found) > MOST_CLAUSES:
        raise ModelError(f"the formula {formula} has more than {MOST_CLAUSES} clauses")
    return found


def _tidy(clause: Clause) -> Clause | None:
    """Without repetitions; None where it is always true."""
    unique = dict.fromkeys(clause)
    for literal in unique:
        if not literal.some and Literal(literal.atom, not literal.positive) in unique:
            return None
        if isinstance(literal.atom, Equal) and literal.atom.left == literal.atom.right and literal.positive:
            return None
    return tuple(
        lit
        for lit in unique
        if not (isinstance(lit.atom, Equal) and lit.atom.left == lit.atom.right and not lit.positive)
    )


def define_quantified(formula: Formula, name: Callable[[Formula], Atom]) -> tuple[Formula, list[Formula]]:
    """The formula with a new atom for each quantified part, and the hard formulas that say what these atoms are.

    ``name`` gives the atom for a part. What is defined is determined by other atoms, so it changes neither
    probabilities nor the most likely world.
    """
    rules: list[Formula] = []
    known: dict[Formula, Atom] = {}

    def replace(part: Formula) -> Formula:
        if isinstance(part, ForAll):
            return Not(replace(Exists(part.variables, Not(part.body))))
        if isinstance(part, Exists):
            if part not in known:
                known[part] = name(part)
                body = negations_inside(part.body)
                inner: Formula = body
                literal = _literal(body)
                if literal is None or is_quantified(body) or isinstance(literal.atom, Equal):
                    inner = name(part.body)
                    changed = replace(body)
                    rules.append(Iff(inner, changed))
                rules.append(Or((negations_inside(Not(inner)), known[part])))
                rules.append(Or((Not(known[part]), Exists(part.variables, inner))))
            return known[part]
        return rebuild(part, tuple(replace(inner) for inner in children(part)))

    return replace(formula), rules


def is_quantified(formula: Formula) -> bool:
    """Whether there is a quantifier in a formula."""
    return isinstance(formula, Exists | ForAll) or any(map(is_quantified, children(formula)))


def truth_table(formula: Formula) -> tuple[tuple[Atom | Equal, ...], npt.NDArray[np.bool_]]:
    """The distinct atoms of a formula without quantifiers, and ``bool[2, ..., 2]``, an axis for each."""
    atoms = tuple(dict.fromkeys(atoms_of(formula)))
    if len(atoms) > MOST_ATOMS:
        raise ModelError(
            f"the formula {formula} has {len(atoms)} atoms; up to {MOST_ATOMS} are kept together: write it as several"
        )
    axes = {atom: i for i, atom in enumerate(atoms)}

    def values(part: Formula) -> npt.NDArray[np.bool_]:
        match part:
            case Atom() | Equal():
                shape = [1] * len(atoms)
                shape[axes[part]] = 2
                return np.array([False, True]).reshape(shape)
            case Not(body):
                return ~values(body)
            case And(parts):
                return np.logical_and.reduce(np.broadcast_arrays(*map(values, parts)))
            case Or(parts):
                return np.logical_or.reduce(np.broadcast_arrays(*map(values, parts)))
            case Implies(left, right):
                return ~values(left) | values(right)
            case Iff(left, right):
                return values(left) == values(right)
        raise ModelError(f"the formula {formula} has a quantifier")

    return atoms, np.ascontiguousarray(np.broadcast_to(values(formula), (2,) * len(atoms)))
