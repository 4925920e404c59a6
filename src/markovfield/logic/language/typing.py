"""Types: every variable of a formula stands for constants of one type, which the predicates' declarations say."""

from __future__ import annotations

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
    """The type of every variable of a formula; with ``learn``, constants are added to their types."""
    types: dict[str, str | None] = {}

    def meet(term: Term, kind: str | None, where: str) -> None:
        if isinstance(term, Variable):
            known = types.get(term.name)
            if known is not None and kind is not None and known != kind:
                raise ModelError(f"variable {term.name} is of type {known} and, in {where}, of type {kind}")
            types[term.name] = known or kind
        elif isinstance(term, Constant):
            if learn and kind is not None:
                program.add_constant(kind, term.name)
        else:
            function = program.functions.get(term.function)
            if function is None:
                raise ModelError(f"function {term.function} is not declared")
            if len(term.args) != len(function.types):
                raise ModelError(
                    f"{term} has {len(term.args)} arguments, and {function.name} takes {len(function.types)}"
                )
            if kind is not None and kind != function.value:
                raise ModelError(f"{term} is of type {function.value} and, in {where}, of type {kind}")
            for inner, inner_kind in zip(term.args, function.types, strict=True):
                meet(inner, inner_kind, str(term))

    def kind_of(term: Term) -> str | None:
        if isinstance(term, Variable):
            return types.get(term.name)
        return program.functions[term.function].value if isinstance(term, Call) else None

    def walk(part: Formula) -> None:
        if isinstance(part, Atom):
            predicate = program.predicates.get(part.predicate)
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
                meet(term, kind, str(part))
        elif isinstance(part, Exists | ForAll):
            outer = {name: types.pop(name) for name in part.variables if name in types}
            walk(part.body)
            for name in part.variables:
                if types.get(name) is None:
                    raise ModelError(f"variable {name} of a quantifier is in no predicate, so nothing says its type")
                bound.append((part, name, types.pop(name)))
            types.update(outer)
        elif not isinstance(part, Equal):
            for inner in children(part):
                walk(inner)

    def equalities(part: Formula) -> None:
        if isinstance(part, Equal):
            kind = kind_of(part.left) or kind_of(part.right)
            meet(part.left, kind, str(part))
            meet(part.right, kind, str(part))
        for inner in children(part):
            if not isinstance(part, Exists | ForAll):
                equalities(inner)

    bound: list[tuple[Formula, str, str | None]] = []
    walk(formula)
    for _ in range(2):  # "x = y" may be typed by another equality
        equalities(formula)
    for name in free_variables(formula):
        types.setdefault(name, None)
    return types
