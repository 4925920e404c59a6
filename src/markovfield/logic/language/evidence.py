"""Databases of evidence: ground atoms that are true or false, probabilities of atoms, constants.

One atom after the other, ``Friends(Anna, Bob)``, ``!Smokes(Bob)``, ``0.7 Cancer(Anna)``, ``Rain = true``,
``motherOf(Anna) = Eve`` (or the other way round); ``---`` begins another world.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from markovfield.exceptions import FormatError, ModelError
from markovfield.logic.language.grammar import unquoted
from markovfield.logic.language.lexer import Source
from markovfield.logic.language.program import Program

__all__ = ["Facts", "read_facts"]

_CONSTANT = r'(?:"(?:[^"\\\n]|\\.)*"|[^\s(),="]+)'
_LITERAL = re.compile(
    rf"""(?:(?P<space>[ \t\r\n\ufeff]+|//[^\n]*|/\*.*?\*/|\#[^\n]*)
    |(?P<world>---+[ \t]*$)
    |(?P<domain>[^\W\d][\w'-]*)\s*=\s*\{{(?P<items>[^}}]*)\}}
    |(?P<result>{_CONSTANT})\s*=\s*(?P<function>[^\W\d][\w'-]*)\s*\((?P<given>[^()]*)\)
    |(?:(?P<probability>\d+(?:\.\d+)?(?:[eE][-+]?\d+)?)[ \t]+)?(?P<sign>[!?]?)[ \t]*(?P<name>[^\W\d][\w'-]*)
     [ \t]*(?:\((?P<args>(?:\s*{_CONSTANT}\s*(?:,\s*{_CONSTANT}\s*)*)?)\))?
     (?:[ \t]*=[ \t]*(?P<value>{_CONSTANT}))?[ \t]*\.?)""",
    re.VERBOSE | re.DOTALL | re.MULTILINE,
)
_ARGUMENT = re.compile(_CONSTANT)
_TRUTHS = {"true": True, "false": False, "1": True, "0": False}


@dataclass
class Facts:
    """What one database says.

    Attributes
    ----------
    atoms
        Predicate to ``{arguments: truth}``.
    probabilities
        Predicate to ``{arguments: probability}`` (soft evidence).
    values
        Function to ``{arguments: value}``.
    constants
        Type to constants that are declared.
    unknown
        Predicate to arguments of atoms that are said to be unknown (``?Smokes(Anna)``).
    """

    atoms: dict[str, dict[tuple[str, ...], bool]] = field(default_factory=dict)
    probabilities: dict[str, dict[tuple[str, ...], float]] = field(default_factory=dict)
    values: dict[str, dict[tuple[str, ...], str]] = field(default_factory=dict)
    constants: dict[str, dict[str, None]] = field(default_factory=dict)
    unknown: dict[str, dict[tuple[str, ...], None]] = field(default_factory=dict)

    @property
    def left_open(self) -> dict[str, set[tuple[str, ...]]]:
        """Predicate to the atoms that are open even where it is closed: of a probability, or said to be unknown."""
        names = dict.fromkeys((*self.probabilities, *self.unknown))
        return {name: {*self.probabilities.get(name, ()), *self.unknown.get(name, ())} for name in names}

    def say(self, name: str, args: tuple[str, ...], truth: bool, where: str) -> None:
        """Take an atom as true or false."""
        before = self.atoms.setdefault(name, {}).setdefault(args, truth)
        if before != truth:
            raise FormatError(f"{where}: {name}({', '.join(args)}) is said to be true and to be false")

    def believe(self, name: str, args: tuple[str, ...], probability: float, where: str) -> None:
        """Take an atom as true with a probability."""
        before = self.probabilities.setdefault(name, {}).setdefault(args, probability)
        if before != probability:
            raise FormatError(
                f"{where}: {name}({', '.join(args)}) has the probabilities {before:g} and {probability:g}"
            )

    def give(self, name: str, args: tuple[str, ...], value: str, where: str) -> None:
        """Take the value of a function."""
        before = self.values.setdefault(name, {}).setdefault(args, value)
        if before != value:
            raise FormatError(f"{where}: {name}({', '.join(args)}) has the values {before} and {value}")


def read_facts(text: str, program: Program, name: str = "<evidence>") -> list[Facts]:
    """Read a database; one for each world."""
    source = Source(name, text)
    worlds = [Facts()]
    arity = {p.name: len(p.types) for p in program.predicates.values()}
    at = 0
    while at < len(text):
        found = _LITERAL.match(text, at)
        if found is None or found.end() == at:
            here = text[at : at + 20].partition("\n")[0]
            source.fail(at, f"expected a ground atom such as Name(A, B), got {here!r}")
        if found["space"] is None:
            if found["world"] is not None:
                worlds.append(Facts())
            else:
                _take(worlds[-1], found, program, arity, source, at)
        at = found.end()
    return [w for w in worlds if w.atoms or w.probabilities or w.values or w.constants or w.unknown] or worlds[:1]


def _take(facts: Facts, found: re.Match[str], program: Program, arity: dict[str, int], source: Source, at: int) -> None:
    """One statement of a database."""
    if found["domain"] is not None:
        constants = facts.constants.setdefault(found["domain"], {})
        constants.update(dict.fromkeys(map(_plain, _ARGUMENT.findall(found["items"]))))
        return
    if found["function"] is not None:  # ``Eve = motherOf(Anna)``
        name, text, value = found["function"], found["given"], found["result"]
    else:
        name, text, value = found["name"], found["args"], found["value"]
    if not text:
        args: tuple[str, ...] = ()
    elif '"' in text:
        args = tuple(map(_plain, _ARGUMENT.findall(text)))
    else:
        args = tuple(arg.strip() for arg in text.split(","))
    if name in arity:
        if len(args) != arity[name]:
            source.fail(
                at, f"{found.group().strip()} has {len(args)} arguments, and {name} is declared with {arity[name]}"
            )
        truth = found["sign"] != "!"
        if value is not None:
            value = _TRUTHS.get(value.lower())
            if value is None:
                source.fail(at, f"{name} is a predicate: it is true or false, not {found['value']}")
            truth = truth == value
        if found["sign"] == "?":
            facts.unknown.setdefault(name, {})[args] = None
            return
        if found["probability"] is None:
            facts.say(name, args, truth, source.place(at))
            return
        probability = float(found["probability"])
        if not 0.0 <= probability <= 1.0:
            source.fail(at, f"{found['probability']} is no probability")
        if probability in (0.0, 1.0):
            facts.say(name, args, truth == (probability == 1.0), source.place(at))
        else:
            facts.believe(name, args, probability if truth else 1.0 - probability, source.place(at))
    elif name in program.functions:
        function = program.functions[name]
        if value is None or len(args) != len(function.types):
            source.fail(
                at, f"a value of function {name} is written {name}({', '.join(function.types)}) = {function.value}"
            )
        facts.give(name, args, _plain(value), source.place(at))
    else:
        source.fail(at, f"predicate {name} is not declared in the program")


def _plain(text: str) -> str:
    return unquoted(text) if text.startswith('"') else text


def facts_of(evidence: Mapping[Any, Any] | Iterable[str], program: Program) -> Facts:
    """Evidence given in Python: ``{"Smokes(Anna)": True, ...}``, or atoms as text."""
    items = evidence.items() if isinstance(evidence, Mapping) else [(text, True) for text in evidence]
    facts = Facts()
    for text, truth in items:
        if not isinstance(text, str):
            raise ModelError(f"evidence is named by ground atoms as text, got {text!r}")
        read = read_facts(text, program, "evidence")
        if isinstance(truth, float) and not truth.is_integer():
            for name, atoms in read[0].atoms.items():
                for args, sign in atoms.items():
                    facts.believe(name, args, truth if sign else 1.0 - truth, "evidence")
            continue
        if truth not in (True, False, 0, 1):
            raise ModelError(f"the evidence on {text} must be true, false or a probability, got {truth!r}")
        for name, atoms in read[0].atoms.items():
            for args, sign in atoms.items():
                facts.say(name, args, sign == bool(truth), "evidence")
    return facts
