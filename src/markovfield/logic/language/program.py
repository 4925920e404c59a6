"""What a program says: types with their constants, predicates and functions, weighted formulas."""

from __future__ import annotations

from dataclasses import dataclass, field

from markovfield.logic.language.syntax import Constant, Formula, Variable, substitute

__all__ = ["Function", "Predicate", "Program", "Rule"]


@dataclass(frozen=True)
class Predicate:
    """A predicate and the types of its arguments.

    Attributes
    ----------
    closed
        Whether what the evidence does not name is false (``*Name(...)`` in a declaration); None where a program does
        not say.
    determined
        Positions of arguments that the others determine (``type!``): for the others, exactly one value holds.
    at_most_one
        Whether no value at all may hold (pracmln's ``type!?`` and ``type?``).
    """

    name: str
    types: tuple[str, ...]
    closed: bool | None = None
    determined: tuple[int, ...] = ()
    at_most_one: bool = False

    def __str__(self) -> str:
        mark = "?" if self.at_most_one else "!"
        args = [f"{t}{mark if i in self.determined else ''}" for i, t in enumerate(self.types)]
        return f"{'*' if self.closed else ''}{self.name}({', '.join(args)})"


@dataclass(frozen=True)
class Function:
    """A function of constants; its values are given by the evidence."""

    name: str
    types: tuple[str, ...]
    value: str

    def __str__(self) -> str:
        return f"{self.value} {self.name}({', '.join(self.types)})"


@dataclass(frozen=True)
class Rule:
    """A formula with its weight.

    Attributes
    ----------
    weight
        None where none was given: zero until it is learned.
    hard
        Whether worlds that violate it are impossible.
    each
        Variables marked by ``+``: each combination of their values has a weight of its own.
    fixed
        Whether learning leaves the weight as it is.
    where
        ``file:line:column``, or empty.
    """

    formula: Formula
    weight: float | None = None
    hard: bool = False
    each: tuple[str, ...] = ()
    fixed: bool = False
    where: str = ""

    def __str__(self) -> str:
        text = str(substitute(self.formula, {name: Variable(f"+{name}") for name in self.each}))
        if self.hard:
            return f"{text}."
        mark = "@" if self.fixed else ""
        return f"{mark}{text}" if self.weight is None else f"{mark}{self.weight!r}  {text}"


@dataclass
class Program:
    """Everything that was read, in its order."""

    domains: dict[str, dict[str, None]] = field(default_factory=dict)
    predicates: dict[str, Predicate] = field(default_factory=dict)
    functions: dict[str, Function] = field(default_factory=dict)
    rules: list[Rule] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        """The program in the syntax of Alchemy."""
        lines = [
            f"{kind} = {{{', '.join(str(Constant(name)) for name in names)}}}"
            for kind, names in self.domains.items()
            if names
        ]
        lines += ["", *map(str, self.predicates.values()), *map(str, self.functions.values()), ""]
        return "\n".join([*lines, *map(str, self.rules), ""])

    def add_constant(self, kind: str, name: str) -> None:
        """Make a constant known."""
        self.domains.setdefault(kind, {})[name] = None
