"""Types: every variable of a formula stands for constants of one type, which the predicates' declarations say."""

from __future__ import annotations

from dataclasses import dataclass

from markovfield.exceptions import FormatError, ModelError
from markovfield.logic.language.program import Program, Rule
from markovfield.logic.language.syntax import (
    Atom,
    Call,
    Constant,
    Equal,
    Exists,
    ForAll,
    Formula,
    Term,
    Variable,
    children,
    free_variables,
)

__all__ = ["check_rule", "is_lower_case", "types_of"]


def is_lower_case(name: str) -> bool:
    """Whether a name is a variable's: it begins with a small letter."""
    return name[0].islower() or name[0] == "_"


def check_rule(program: Program, rule: Rule, where: str = "") -> Rule:
    """Check a rule's types, and make its constants known; the rule."""
    prefix = f"{where}: " if where else ""
    try:
        types = types_of(program, rule.formula, learn=True)
    except ModelError as error:
        raise (FormatError if where else ModelError)(f"{prefix}{error}") from None
    free = free_variables(rule.formula)
    for name in rule.each:
        if name not in free:
            raise (FormatError if where else ModelError)(
                f"{prefix}+{name} is bound by a quantifier, and has no weights"
            )
    if any(types[name] is None for name in free):
        untyped = next(name for name in free if types[name] is None)
        raise (FormatError if where else ModelError)(
            f"{prefix}variable {untyped} is in no predicate, so nothing says what it stands for"
        )
    return rule


def types_of(program: Program, formula: Formula, *, learn: bool = False) -> dict[str, str | None]:
    """The type of every free variable of a formula; with ``learn``, constants are added to their types."""
    found = _Typing(program, learn)
    free = {name: _Kind(name) for name in free_variables(formula)}
    found.walk(formula, free)
    found.settle()
    return {name: kind.name for name, kind in free.items()}


@dataclass(eq=False)
class _Kind:
    """What is known of the type of one variable."""

    variable: str
    name: str | None = None


class _Typing:
    """Types as predicates, functions and equalities say them."""

    def __init__(self, program: Program, learn: bool) -> None:
        self.program, self.learn = program, learn
        self.equalities: list[tuple[Equal, dict[str, _Kind]]] = []
        self.bound: list[_Kind] = []

    def walk(self, part: Formula, scope: dict[str, _Kind]) -> None:
        """Take what atoms say; equalities are looked at later, when more is known."""
        if isinstance(part, Atom):
            predicate = self.program.predicates.get(part.predicate)
            if predicate is None:
                raise ModelError(
                    f"predicate {part.predicate} is not declared: write {part.predicate}(type, ...) before it is used"
                )
            if len(part.args) != len(predicate.types):
                raise ModelError(
                    f"{part} has {len(part.args)} argument{'s' * (len(part.args) != 1)}, and {predicate.name} is "
                    f"declared with {len(predicate.types)}"
                )
            for term, kind in zip(part.args, predicate.types, strict=True):
                self.meet(term, kind, str(part), scope)
        elif isinstance(part, Equal):
            self.equalities.append((part, scope))
            for term in (part.left, part.right):
                if isinstance(term, Call):
                    self.meet(term, None, str(part), scope)
        elif isinstance(part, Exists | ForAll):
            own = {name: _Kind(name) for name in part.variables}
            self.bound += own.values()
            self.walk(part.body, scope | own)
        else:
            for inner in children(part):
                self.walk(inner, scope)

    def meet(self, term: Term, kind: str | None, where: str, scope: dict[str, _Kind]) -> None:
        """A term stands where constants of a type do."""
        if isinstance(term, Variable):
            known = scope[term.name]
            if known.name is not None and kind is not None and known.name != kind:
                raise ModelError(f"variable {term.name} is of type {known.name} and, in {where}, of type {kind}")
            known.name = known.name or kind
        elif isinstance(term, Constant):
            if self.learn and kind is not None:
                self.program.add_constant(kind, term.name)
        else:
            function = self.program.functions.get(term.function)
            if function is None:
                raise ModelError(f"function {term.function} is not declared")
            if len(term.args) != len(function.types):
                raise ModelError(
                    f"{term} has {len(term.args)} arguments, and {function.name} takes {len(function.types)}"
                )
            if kind is not None and kind != function.value:
                raise ModelError(f"{term} is of type {function.value} and, in {where}, of type {kind}")
            for inner, inner_kind in zip(term.args, function.types, strict=True):
                self.meet(inner, inner_kind, str(term), scope)

    def settle(self) -> None:
        """What equalities say, until they say nothing more."""
        for _ in range(len(self.equalities) + 1):
            for part, scope in self.equalities:
                kind = self.kind_of(part.left, scope) or self.kind_of(part.right, scope)
                self.meet(part.left, kind, str(part), scope)
                self.meet(part.right, kind, str(part), scope)
        for one in self.bound:
            if one.name is None:
                raise ModelError(
                    f"variable {one.variable} of a quantifier is in no predicate, so nothing says its type"
                )

    def kind_of(self, term: Term, scope: dict[str, _Kind]) -> str | None:
        """The type of a term, where it is known."""
        if isinstance(term, Variable):
            return scope[term.name].name
        return self.program.functions[term.function].value if isinstance(term, Call) else None
