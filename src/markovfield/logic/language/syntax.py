"""Terms and formulas of first-order logic, as trees that do not change.

Formulas are combined with ``&``, ``|``, ``~``, ``>>`` (implies) and `iff`; free variables are for all constants of
their type, as in a program.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

__all__ = [
    "And",
    "AnySign",
    "Atom",
    "Call",
    "Constant",
    "Equal",
    "Exists",
    "ForAll",
    "Formula",
    "Iff",
    "Implies",
    "Not",
    "Or",
    "Term",
    "Variable",
    "atoms_of",
    "free_variables",
    "substitute",
]


# Constants that are written without quotation marks: what begins with a small letter is a variable.
_WORD = re.compile(r"[A-Z][\w'-]*|\d+(?:\.\d+)?")


@dataclass(frozen=True)
class Variable:
    """A variable of a formula, which stands for every constant of its type."""

    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Constant:
    """A constant: one object of the world."""

    name: str

    def __str__(self) -> str:
        if _WORD.fullmatch(self.name):
            return self.name
        inner = self.name.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t")
        return f'"{inner}"'


@dataclass(frozen=True)
class Call:
    """A function of terms, whose value is a constant."""

    function: str
    args: tuple[Term, ...]

    def __str__(self) -> str:
        return f"{self.function}({', '.join(map(str, self.args))})"


Term = Variable | Constant | Call


class Formula:
    """What all formulas can do: be combined."""

    def __and__(self, other: Formula) -> Formula:
        return And((*_parts(self, And), *_parts(other, And)))

    def __or__(self, other: Formula) -> Formula:
        return Or((*_parts(self, Or), *_parts(other, Or)))

    def __invert__(self) -> Formula:
        return Not(self)

    def __rshift__(self, other: Formula) -> Formula:
        return Implies(self, other)

    def iff(self, other: Formula) -> Formula:
        """True where both are true or both are false."""
        return Iff(self, other)


def _parts(formula: Formula, kind: type[And | Or]) -> tuple[Formula, ...]:
    return formula.parts if isinstance(formula, kind) else (formula,)


@dataclass(frozen=True)
class Atom(Formula):
    """A predicate of terms."""

    predicate: str
    args: tuple[Term, ...] = ()

    def __str__(self) -> str:
        return f"{self.predicate}({', '.join(map(str, self.args))})" if self.args else self.predicate


@dataclass(frozen=True)
class Equal(Formula):
    """Two terms are the same constant."""

    left: Term
    right: Term

    def __str__(self) -> str:
        return f"{self.left} = {self.right}"


@dataclass(frozen=True)
class Not(Formula):
    """The opposite."""

    body: Formula

    def __str__(self) -> str:
        if isinstance(self.body, Equal):
            return f"{self.body.left} != {self.body.right}"
        return f"!{_in_brackets(self.body)}"


@dataclass(frozen=True)
class And(Formula):
    """All of the parts."""

    parts: tuple[Formula, ...]

    def __str__(self) -> str:
        return " ^ ".join(map(_in_brackets, self.parts))


@dataclass(frozen=True)
class Or(Formula):
    """One of the parts at least."""

    parts: tuple[Formula, ...]

    def __str__(self) -> str:
        return " v ".join(map(_in_brackets, self.parts))


@dataclass(frozen=True)
class Implies(Formula):
    """The right-hand side wherever the left-hand side."""

    left: Formula
    right: Formula

    def __str__(self) -> str:
        return f"{_in_brackets(self.left)} => {_in_brackets(self.right)}"


@dataclass(frozen=True)
class Iff(Formula):
    """Both or neither."""

    left: Formula
    right: Formula

    def __str__(self) -> str:
        return f"{_in_brackets(self.left)} <=> {_in_brackets(self.right)}"


@dataclass(frozen=True)
class Exists(Formula):
    """The body for some constants."""

    variables: tuple[str, ...]
    body: Formula

    def __str__(self) -> str:
        return f"EXIST {', '.join(self.variables)} ({self.body})"


@dataclass(frozen=True)
class ForAll(Formula):
    """The body for all constants."""

    variables: tuple[str, ...]
    body: Formula

    def __str__(self) -> str:
        return f"FORALL {', '.join(self.variables)} ({self.body})"


@dataclass(frozen=True)
class AnySign(Formula):
    """``*atom``: a template of two formulas, with the atom and with its negation."""

    atom: Atom

    def __str__(self) -> str:
        return f"*{self.atom}"


def _in_brackets(formula: Formula) -> str:
    plain = isinstance(formula, Atom | Not | AnySign) and not (
        isinstance(formula, Not) and isinstance(formula.body, Equal)
    )
    return str(formula) if plain else f"({formula})"


def children(formula: Formula) -> tuple[Formula, ...]:
    """The formulas right inside one."""
    match formula:
        case Not(body) | Exists(_, body) | ForAll(_, body):
            return (body,)
        case And(parts) | Or(parts):
            return parts
        case Implies(left, right) | Iff(left, right):
            return (left, right)
        case AnySign(atom):
            return (atom,)
    return ()


def atoms_of(formula: Formula) -> Iterator[Atom | Equal]:
    """Atoms and equalities, from left to right, as often as they occur."""
    if isinstance(formula, Atom | Equal):
        yield formula
    for part in children(formula):
        yield from atoms_of(part)


def terms_of(atom: Atom | Equal) -> tuple[Term, ...]:
    """The terms of an atom or of an equality."""
    return atom.args if isinstance(atom, Atom) else (atom.left, atom.right)


def variables_of(term: Term) -> Iterator[str]:
    """Names of variables in a term, also inside of functions."""
    if isinstance(term, Variable):
        yield term.name
    elif isinstance(term, Call):
        for inner in term.args:
            yield from variables_of(inner)


def free_variables(formula: Formula) -> tuple[str, ...]:
    """Variables that no quantifier binds, in the order in which they first occur."""
    found: dict[str, None] = {}

    def walk(part: Formula, bound: frozenset[str]) -> None:
        if isinstance(part, Atom | Equal):
            found.update({name: None for term in terms_of(part) for name in variables_of(term) if name not in bound})
        elif isinstance(part, Exists | ForAll):
            walk(part.body, bound | set(part.variables))
        else:
            for inner in children(part):
                walk(inner, bound)

    walk(formula, frozenset())
    return tuple(found)


def rebuild(formula: Formula, inner: tuple[Formula, ...]) -> Formula:
    """The same kind of formula with other formulas inside."""
    match formula:
        case Not():
            return Not(inner[0])
        case And():
            return And(inner)
        case Or():
            return Or(inner)
        case Implies():
            return Implies(*inner)
        case Iff():
            return Iff(*inner)
        case Exists(variables, _):
            return Exists(variables, inner[0])
        case ForAll(variables, _):
            return ForAll(variables, inner[0])
    return formula


def substitute(formula: Formula, values: dict[str, Term]) -> Formula:
    """The formula with terms in the place of free variables."""
    if not values:
        return formula
    if isinstance(formula, Atom):
        return Atom(formula.predicate, tuple(_substitute(t, values) for t in formula.args))
    if isinstance(formula, Equal):
        return Equal(_substitute(formula.left, values), _substitute(formula.right, values))
    if isinstance(formula, AnySign):
        return AnySign(Atom(formula.atom.predicate, tuple(_substitute(t, values) for t in formula.atom.args)))
    if isinstance(formula, Exists | ForAll):
        values = {name: term for name, term in values.items() if name not in formula.variables}
    return rebuild(formula, tuple(substitute(part, values) for part in children(formula)))


def _substitute(term: Term, values: dict[str, Term]) -> Term:
    if isinstance(term, Variable):
        return values.get(term.name, term)
    if isinstance(term, Call):
        return Call(term.function, tuple(_substitute(t, values) for t in term.args))
    return term
