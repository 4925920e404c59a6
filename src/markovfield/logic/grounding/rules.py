"""Formulas to what is grounded: single clauses, or formulas that are kept whole as tables of truth values."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from markovfield.exceptions import ModelError
from markovfield.logic.grounding.store import Store
from markovfield.logic.language.normal_forms import (
    Clause,
    clauses_of,
    define_quantified,
    is_quantified,
    narrow,
    negations_inside,
    open_universal,
    rename_bound,
    truth_table,
)
from markovfield.logic.language.program import Predicate, Rule
from markovfield.logic.language.syntax import (
    And,
    Atom,
    Call,
    Equal,
    Exists,
    ForAll,
    Formula,
    Implies,
    Or,
    Term,
    Variable,
    atoms_of,
    children,
    free_variables,
    rebuild,
    terms_of,
    variables_of,
)
from markovfield.logic.language.typing import types_of

__all__ = ["HARD", "Part", "n_groundings", "parts_of"]

HARD = -1


@dataclass(frozen=True)
class Part:
    """What is grounded by itself: a clause, or a formula with its truth table.

    Attributes
    ----------
    rule
        The rule it comes from.
    types, bound
        Type of each variable over whose constants it is grounded; of each that a quantifier binds.
    weight
        Number of its first weight, `HARD` where it has none; with ``each``, there is one for every combination.
    clauses
        Of a clause, itself; of a formula, its conjunctive normal form, which finds the groundings that matter.
    atoms, truth
        Of a formula, its atoms and ``bool[2, ..., 2]``; None of a clause.
    share
        What part of the weight it has (formulas that are split into clauses divide it).
    """

    rule: Rule
    types: dict[str, str]
    bound: dict[str, str]
    weight: int
    clauses: tuple[Clause, ...]
    atoms: tuple[Atom | Equal, ...] | None = None
    truth: npt.NDArray[np.bool_] | None = None
    share: float = 1.0


def n_groundings(store: Store, rule: Rule) -> float:
    """How many groundings a rule has, those that the evidence satisfies included."""
    types = types_of(store.program, open_universal(rule.formula))
    return float(np.prod([float(store.size(str(kind))) for kind in types.values()]))


def parts_of(store: Store, rule: Rule, weight: int, *, split: bool = False) -> Iterator[Part]:
    """What a rule is grounded as.

    With ``split``, a soft formula is its clauses, which divide its weight, as Alchemy has it; otherwise it is one
    factor for each grounding.
    """
    formula = rename_bound(_without_functions(store, open_universal(rule.formula)))
    # Types before anything is moved: "EXIST x (P(x) v x = A)" leaves an equality by itself.
    kinds = _all_types(store, formula)
    definitions: list[Formula] = []
    if is_quantified(formula):
        formula = narrow(negations_inside(formula))
        found = clauses_of(formula)
        if found is None or (len(found) != 1 and not rule.hard):
            formula, definitions = define_quantified(formula, _namer(store, kinds))
    clauses = clauses_of(formula)
    if clauses is None:
        raise ModelError(f"the formula {rule.formula} could not be brought into clauses")
    types, bound = _types(kinds, formula)
    if rule.hard:
        yield from (_hard(kinds, rule, clause) for clause in clauses)
    elif len(clauses) == 1 or split:
        for clause in clauses:
            yield Part(rule, types, bound, weight, (clause,), share=1.0 / len(clauses))
    elif clauses:
        atoms, truth = truth_table(formula)
        yield Part(rule, types, bound, weight, tuple(clauses), atoms, truth)
    for definition in definitions:
        own = Rule(definition, hard=True, where=rule.where)
        found = clauses_of(definition)
        if found is None:
            raise ModelError(f"a quantified part of the formula {rule.formula} could not be brought into clauses")
        yield from (_hard(kinds, own, clause) for clause in found)


def _hard(kinds: dict[str, str], rule: Rule, clause: Clause) -> Part:
    """A hard clause, grounded over its own variables only."""
    parts = [lit.atom for lit in clause]
    types, bound = _types(kinds, Or(tuple(parts)))
    some = {name for lit in clause for name in lit.some}
    both = types | bound
    return Part(
        rule,
        {name: kind for name, kind in both.items() if name not in some},
        {name: kind for name, kind in both.items() if name in some},
        HARD,
        (clause,),
    )


def _types(kinds: dict[str, str], formula: Formula) -> tuple[dict[str, str], dict[str, str]]:
    """Types of free variables, and of those that quantifiers bind (whose names are all different)."""
    free = set(free_variables(formula))
    inside = {name for atom in atoms_of(formula) for term in terms_of(atom) for name in variables_of(term)}
    return (
        {name: kind for name, kind in kinds.items() if name in free},
        {name: kind for name, kind in kinds.items() if name in inside - free},
    )


def _namer(store: Store, outer: dict[str, str]) -> Callable[[Formula], Atom]:
    """Gives each quantified part an atom of a new predicate, of its free variables."""

    def name(part: Formula) -> Atom:
        free = free_variables(part)
        predicate = Predicate(
            f"_part{sum(r.hidden for r in store.relations.values()) + 1}", tuple(outer[v] for v in free)
        )
        store.add(predicate, False, hidden=True)
        return Atom(predicate.name, tuple(Variable(v) for v in free))

    return name


def _all_types(store: Store, formula: Formula) -> dict[str, str]:
    """Types of all variables of a formula, those of quantifiers too."""
    found: dict[str, str] = {}
    for atom in atoms_of(formula):
        if isinstance(atom, Atom):
            kinds = store.relations[atom.predicate].predicate.types
            for term, kind in zip(atom.args, kinds, strict=True):
                if isinstance(term, Variable):
                    found.setdefault(term.name, kind)
    sides = [(atom.left, atom.right) for atom in atoms_of(formula) if isinstance(atom, Equal)]
    for left, right in sides * len(sides):
        for one, other in ((left, right), (right, left)):
            if isinstance(one, Variable) and isinstance(other, Variable) and other.name in found:
                found.setdefault(one.name, found[other.name])
    return found


def _without_functions(store: Store, formula: Formula) -> Formula:
    """Functions as relations between arguments and value: ``P(f(x))`` becomes ``f(x, y) => P(y)``."""
    calls: dict[Call, Variable] = {}

    def term(inner: Term) -> Term:
        if not isinstance(inner, Call):
            return inner
        call = Call(inner.function, tuple(term(t) for t in inner.args))
        return calls.setdefault(call, Variable(f"{call.function}'{len(calls)}"))

    def check(terms: tuple[Term, ...], bound: frozenset[str]) -> None:
        if any(isinstance(t, Call) and bound & set(variables_of(t)) for t in terms):
            raise ModelError(f"a function of a variable of a quantifier, in {formula}, is not part of the language")

    def replace(part: Formula, bound: frozenset[str]) -> Formula:
        if isinstance(part, Atom):
            check(part.args, bound)
            return Atom(part.predicate, tuple(term(t) for t in part.args))
        if isinstance(part, Equal):
            check((part.left, part.right), bound)
            return Equal(term(part.left), term(part.right))
        if isinstance(part, Exists | ForAll):
            bound = bound | set(part.variables)
        return rebuild(part, tuple(replace(inner, bound) for inner in children(part)))

    inner = replace(formula, frozenset())
    if not calls:
        return formula
    given = tuple(Atom(call.function, (*call.args, value)) for call, value in calls.items())
    return Implies(And(given) if len(given) > 1 else given[0], inner)
