"""Clauses as a search sees them: conjunctions of signed literals, each in one form whatever its variables are called.

A clause is false exactly where the conjunction of its negated literals is true, so that the number of true groundings
of one is that of all groundings less that of the other: a search may count whichever is easier.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations, permutations, product
from typing import NamedTuple

from markovfield.logic.language.program import Predicate
from markovfield.logic.language.syntax import And, Atom, Constant, Formula, Implies, Not, Or, Term, Variable

__all__ = [
    "Conjunction",
    "Part",
    "canonical",
    "clause_formula",
    "components",
    "extensions",
    "hangs_together",
    "singles",
    "types_of_variables",
]

# A variable by its number, a constant by its name.
PartTerm = int | str


class Part(NamedTuple):
    """A literal of a conjunction."""

    predicate: str
    terms: tuple[PartTerm, ...]
    positive: bool = True

    @property
    def variables(self) -> tuple[int, ...]:
        """Numbers of its variables, as often as they occur."""
        return tuple(t for t in self.terms if isinstance(t, int))

    def renamed(self, names: Mapping[int, PartTerm]) -> Part:
        """The same of other variables or constants."""
        return Part(
            self.predicate, tuple(names.get(t, t) if isinstance(t, int) else t for t in self.terms), self.positive
        )


Conjunction = tuple[Part, ...]


def _order(part: Part) -> tuple[object, ...]:
    return (part.predicate, tuple((isinstance(t, str), t) for t in part.terms), not part.positive)


def variables_of(parts: Iterable[Part]) -> tuple[int, ...]:
    """Its variables, in the order in which they first occur."""
    return tuple(dict.fromkeys(v for part in parts for v in part.variables))


def canonical(parts: Iterable[Part]) -> Conjunction:
    """The least of all ways to name its variables 0, 1, ... and to order its literals.

    Two conjunctions have the same form if and only if they are the same up to names and order. Time: factorial in the
    variables, of which clauses of a search have few.
    """
    parts = tuple(dict.fromkeys(parts))
    names = variables_of(parts)
    found = None
    for order in permutations(range(len(names))):
        given = dict(zip(names, order, strict=True))
        one = sorted((part.renamed(given) for part in parts), key=_order)
        key = [_order(part) for part in one]
        if found is None or key < found[0]:
            found = key, tuple(one)
    assert found is not None
    return found[1]


def types_of_variables(parts: Iterable[Part], predicates: Mapping[str, Predicate]) -> dict[int, str]:
    """Type of each variable."""
    found: dict[int, str] = {}
    for part in parts:
        for term, kind in zip(part.terms, predicates[part.predicate].types, strict=True):
            if isinstance(term, int):
                found[term] = kind
    return found


def components(parts: Sequence[Part]) -> list[Conjunction]:
    """Literals that share variables, directly or through others; one without variables is by itself."""
    found: list[tuple[set[int], list[Part]]] = []
    for part in parts:
        names, own = set(part.variables), [part]
        apart = []
        for others, members in found:
            if others & names:
                names |= others
                own = [*members, *own]
            else:
                apart.append((others, members))
        found = [*apart, (names, own)]
    return [tuple(members) for _, members in found]


def singles(predicate: Predicate, constants: Mapping[str, Sequence[str]]) -> list[Conjunction]:
    """All conjunctions of one positive literal of a predicate: variables that are equal or not, and constants."""
    found: dict[Conjunction, None] = {}
    kinds = predicate.types
    for terms in product(*([*range(len(kinds)), *constants.get(kind, ())] for kind in kinds)):
        types: dict[PartTerm, str] = {}
        if all(types.setdefault(t, kind) == kind for t, kind in zip(terms, kinds, strict=True) if isinstance(t, int)):
            found[canonical([Part(predicate.name, terms)])] = None
    return list(found)


def extensions(
    parts: Conjunction,
    predicates: Sequence[Predicate],
    constants: Mapping[str, Sequence[str]],
    *,
    max_variables: int,
    known: Mapping[str, Predicate],
) -> Iterator[Conjunction]:
    """All conjunctions of one literal more that shares a variable with the others; both signs.

    Arguments of types in ``constants`` may be these as well. New variables are allowed up to ``max_variables``.
    """
    types = types_of_variables(parts, known)
    there = {(part.predicate, part.terms) for part in parts}
    fresh = max(types, default=-1) + 1
    for predicate in predicates:
        room = max_variables - len(types)
        choices: list[list[PartTerm]] = []
        for kind in predicate.types:
            own: list[PartTerm] = [v for v, t in types.items() if t == kind]
            own += [fresh + i for i in range(min(room, len(predicate.types)))]
            choices.append([*own, *constants.get(kind, ())])
        for terms in product(*choices):
            new = [t for t in dict.fromkeys(terms) if isinstance(t, int) and t >= fresh]
            if new != list(range(fresh, fresh + len(new))) or (predicate.name, terms) in there:
                continue
            names = {t for t in terms if isinstance(t, int)}
            if names and types and not names & types.keys():
                continue
            if any(len({k for t, k in zip(terms, predicate.types, strict=True) if t == v}) > 1 for v in new):
                continue
            for positive in (True, False):
                yield (*parts, Part(predicate.name, terms, positive))


def hangs_together(parts: Conjunction, query: Sequence[str]) -> bool:
    """Whether literals that are true, never those that are false, connect the query's atoms.

    Counts of ``P(x) ^ P(y) ^ !R(x, y)`` are, but for a few, those of ``P(x) ^ P(y)``: of all pairs. They tell every
    atom how many others are true, and by that, as the weight is learned from all of them, whether it is true itself:
    pseudo-likelihood takes it for a law. Nothing is lost: with ``R(x, y)``, not negated, only the rest counts.
    """
    negative = [part for part in parts if not part.positive]
    base = [part for part in parts if part.positive]
    for n in range(len(negative) + 1):
        for chosen in combinations(negative, n):
            apart = components([*base, *chosen])
            if sum(any(part.predicate in query for part in one) for one in apart) > 1:
                return False
    return True


_LETTERS = "xyzuvw"


def clause_formula(parts: Conjunction) -> Formula:
    """The clause that is false where the conjunction is true: an implication where it has literals of both signs."""
    names = {v: _LETTERS[i] if i < len(_LETTERS) else f"x{i}" for i, v in enumerate(variables_of(parts))}

    def atom(part: Part) -> Formula:
        terms: tuple[Term, ...] = tuple(Variable(names[t]) if isinstance(t, int) else Constant(t) for t in part.terms)
        return Atom(part.predicate, terms)

    given = [atom(part) for part in parts if part.positive]
    wanted = [atom(part) for part in parts if not part.positive]
    if given and wanted:
        return Implies(_joined(And, given), _joined(Or, wanted))
    return _joined(Or, wanted or [Not(one) for one in given])


def _joined(kind: type[And | Or], parts: list[Formula]) -> Formula:
    return parts[0] if len(parts) == 1 else kind(tuple(parts))
