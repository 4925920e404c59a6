"""Programs as text: the dialects of Alchemy, Tuffy, pracmln and LoMRF, without being told which."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path

from markovfield.exceptions import FormatError, ModelError
from markovfield.logic.language.grammar import read_formula, unquoted
from markovfield.logic.language.lexer import Source, Token, statements
from markovfield.logic.language.program import Function, Predicate, Program, Rule
from markovfield.logic.language.syntax import AnySign, Formula, Not, children, rebuild
from markovfield.logic.language.typing import check_rule, is_lower_case
from markovfield.logic.language.weights import read_weight
from markovfield.text_files import read_source

__all__ = ["read_program"]

LARGEST_RANGE = 10_000_000
LARGEST_TEMPLATE = 4096
_INCLUDE = re.compile(r"""#\s*include\s*(?:"([^"]*)"|<([^>]*)>)\s*$""")


def read_program(text: str, name: str = "<text>", *, folder: Path | None = None) -> Program:
    """Read a program.

    Parameters
    ----------
    text, name
        The text, and what errors call it.
    folder
        Where included files lie; without one, includes are refused.
    """
    program = Program()
    _Reader(program, marked="?" in text and _has_marked_variables(text)).read(Source(name, text), folder, ())
    return program


def _has_marked_variables(text: str) -> bool:
    """Whether variables are written ``?x``: then other names are constants."""
    return re.search(r"[(,\s+]\?[A-Za-z_]", re.sub(r"//[^\n]*|/\*.*?\*/", "", text, flags=re.DOTALL)) is not None


class _Reader:
    def __init__(self, program: Program, marked: bool) -> None:
        self.program, self.marked = program, marked
        self.fixed_next = False
        self.included: set[Path] = set()
        self.once_next: tuple[str, ...] = ()

    def read(self, source: Source, folder: Path | None, above: tuple[Path, ...]) -> None:
        """All statements of a text, and of what it includes."""
        for tokens in statements(source):
            if tokens[0].kind == "DIRECTIVE":
                self._directive(source, tokens[0], folder, above)
            elif len(tokens) > 2 and [t.kind for t in tokens[:3]] == ["NAME", "EQ", "LBRACE"]:
                self._domain(source, tokens)
            elif not self._declaration(source, tokens):
                self._rule(source, tokens)

    def _directive(self, source: Source, token: Token, folder: Path | None, above: tuple[Path, ...]) -> None:
        text = token.text.strip()
        include = _INCLUDE.match(text)
        if include:
            self._include(source, token, include.group(1) or include.group(2), folder, above)
        elif text.startswith(("#fixweight", "#fixed")):
            self.fixed_next = True
        elif text.startswith("#unique"):
            self.once_next = tuple(re.findall(r"\+\??([\w'-]+)", text))
        elif text.startswith("#fuzzy"):
            source.fail(token.start, "fuzzy predicates are not part of the language: truth is true or false")
        # Other lines that begin with # are comments.

    def _include(self, source: Source, token: Token, name: str, folder: Path | None, above: tuple[Path, ...]) -> None:
        if folder is None:
            source.fail(token.start, f"{name!r} is included by a text that is not in a file: read it with logic.read")
        path = (folder / name).resolve()
        if path in above:
            source.fail(token.start, f"{name!r} includes itself")
        if path in self.included:
            self.program.notes.append(f"{source.place(token.start)}: {name!r} is included already, and read once")
            return
        self.included.add(path)
        try:
            text = read_source(path).text()
        except OSError:
            source.fail(token.start, f"the included file {name!r} cannot be read")
        self.read(Source(str(folder / name), text), path.parent, (*above, path))

    def _domain(self, source: Source, tokens: Sequence[Token]) -> None:
        kind = tokens[0].text
        if tokens[-1].kind != "RBRACE":
            source.fail(tokens[-1].end, f"the constants of type {kind} are not closed by '}}'")
        items = tokens[3:-1]
        names = self.program.domains.setdefault(kind, {})
        at = 0
        while at < len(items):
            item = items[at]
            if item.kind == "ELLIPSIS":
                self._range(source, items, at, names)
            elif item.kind in ("NAME", "NUMBER"):
                names[item.text] = None
            elif item.kind == "STRING":
                names[unquoted(item.text)] = None
            elif item.kind == "MINUS" and at + 1 < len(items) and items[at + 1].kind == "NUMBER":
                at += 1
                names[f"-{items[at].text}"] = None
            else:
                source.fail(item.start, f"{item.text!r} is no constant of type {kind}")
            at += 1
            if at < len(items):
                if items[at].kind != "COMMA":
                    source.fail(items[at].start, f"expected ',' or '}}' here, got {items[at].text!r}")
                at += 1

    def _range(self, source: Source, items: Sequence[Token], at: int, names: dict[str, None]) -> None:
        """``1, ..., 10``: what lies between two whole numbers."""
        around = [items[i] for i in (at - 2, at + 2) if 0 <= i < len(items)]
        if len(around) != 2 or not all(t.text.isdigit() for t in around):
            source.fail(items[at].start, "'...' stands between two whole numbers: {1, ..., 10}")
        low, high = (int(t.text) for t in around)
        if high < low or high - low > LARGEST_RANGE:
            source.fail(items[at].start, f"{low} to {high} is no range of at most {LARGEST_RANGE} constants")
        names.update(dict.fromkeys(str(i) for i in range(low + 1, high)))

    def _declaration(self, source: Source, tokens: Sequence[Token]) -> bool:
        """Read a predicate's or a function's declaration, if the statement is one."""
        kinds = [t.kind for t in tokens]
        start = 0
        while start < len(kinds) and kinds[start] in ("STAR", "AT", "PLUS"):
            start += 1
        closed = "STAR" in kinds[:start]
        function = kinds[start : start + 3] == ["NAME", "NAME", "LPAR"]
        equation = kinds[start : start + 4] == ["NAME", "EQ", "NAME", "LPAR"]
        value = tokens[start].text if function or equation else ""
        head = start + (1 if function else 2 if equation else 0)
        if kinds[head : head + 2] == ["NAME", "STAR"]:
            source.fail(
                tokens[head + 1].start, "relations closed under equivalence (Name*) are not part of the language"
            )
        if kinds[head : head + 2] != ["NAME", "LPAR"] or kinds[-1] != "RPAR" or kinds.count("RPAR") != 1:
            return False
        name = tokens[head].text
        if name in self.program.predicates or name in self.program.functions:
            if closed or function or self._says_types(name, tokens[head + 2 : -1]):
                source.fail(tokens[head].start, f"{name} is declared twice")
            return False
        types, determined, soft = [], [], False
        for i, part in enumerate(_split(tokens[head + 2 : -1])):
            shape = [t.kind for t in part]
            if shape[:1] != ["NAME"] or not set(shape[1:]) <= {"NAME", "NOT", "QUESTION"}:
                return self._not_declared(source, tokens[head], equation)
            types.append(part[0].text)
            if {"NOT", "QUESTION"} & set(shape):
                determined.append(i)
                soft |= "QUESTION" in shape
        for kind in types if not value else [*types, value]:
            self.program.domains.setdefault(kind, {})
        if value:
            self.program.functions[name] = Function(name, tuple(types), value)
        else:
            self.program.predicates[name] = Predicate(name, tuple(types), closed or None, tuple(determined), soft)
        return True

    def _says_types(self, name: str, tokens: Sequence[Token]) -> bool:
        """Whether the arguments are the types of a predicate, or marked as in declarations."""
        known = self.program.predicates.get(name)
        marked = any(t.kind in ("NOT", "QUESTION") for t in tokens)
        said = tuple(t.text for t in tokens if t.kind == "NAME")
        return known is not None and bool(known.types) and (marked or said == known.types)

    def _not_declared(self, source: Source, token: Token, equation: bool) -> bool:
        if equation:
            return False
        source.fail(
            token.start, f"predicate {token.text} is not declared: write {token.text}(type, ...) before it is used"
        )

    def _rule(self, source: Source, tokens: Sequence[Token]) -> None:
        start = tokens[0].start
        fixed, self.fixed_next = self.fixed_next, False
        once, self.once_next = self.once_next, ()
        if tokens[0].kind == "AT":
            fixed, tokens = True, tokens[1:]
        weight, used = read_weight(source, tokens)
        body = tokens[used:]
        hard = bool(body) and body[-1].kind == "PERIOD"
        body = body[:-1] if hard else body
        if not body:
            source.fail(start, "a formula is missing here")
        if hard and weight is not None:
            source.fail(
                body[-1].end, "a formula has a weight before it or a period behind it, which makes it hard, not both"
            )
        if body[0].kind == "NAME" and len(body) > 1 and body[1].kind == "COLON":
            source.fail(body[0].start, "weights that are variables (name: formula) are not part of the language")
        for variant in self._groups(source, body):
            formula, each = read_formula(source, variant, self._is_variable())
            rule = Rule(formula, weight, hard, each, fixed, source.place(start))
            for signed in _signs(source, start, formula):
                checked = check_rule(self.program, replace(rule, formula=signed), source.place(start))
                if once:
                    self.program.notes.append(f"{rule.where}: #unique merges nothing: symmetric weights are all kept")
                self.program.rules.append(checked)

    def _is_variable(self) -> Callable[[str], bool]:
        return (lambda name: False) if self.marked else is_lower_case

    def _groups(self, source: Source, tokens: Sequence[Token]) -> list[list[Token]]:
        """``foo|bar(x)``: one formula for each predicate of a group of names."""
        variants: list[list[Token]] = [[]]
        at = 0
        while at < len(tokens):
            group = [tokens[at]]
            while (
                tokens[at].kind == "NAME"
                and at + 2 < len(tokens)
                and tokens[at + 1].kind == "OR"
                and tokens[at + 1].text == "|"
                and tokens[at + 2].kind == "NAME"
                and tokens[at].end == tokens[at + 1].start
                and tokens[at + 1].end == tokens[at + 2].start
            ):
                at += 2
                group.append(tokens[at])
            if len(variants) * len(group) > LARGEST_TEMPLATE:
                source.fail(tokens[at].start, f"this template stands for more than {LARGEST_TEMPLATE} formulas")
            variants = [[*variant, token] for variant, token in product(variants, group)]
            at += 1
        return variants


def _split(tokens: Sequence[Token]) -> list[list[Token]]:
    """Tokens between commas."""
    parts: list[list[Token]] = [[]]
    for token in tokens:
        if token.kind == "COMMA":
            parts.append([])
        else:
            parts[-1].append(token)
    return parts if tokens else []


def _signs(source: Source, start: int, formula: Formula) -> list[Formula]:
    """Formulas with every combination of signs for the atoms marked by ``*``."""
    count = _count_any(formula)
    if 2**count > LARGEST_TEMPLATE:
        source.fail(start, f"this template stands for more than {LARGEST_TEMPLATE} formulas")
    return [_with_signs(formula, list(signs)) for signs in product((True, False), repeat=count)]


def _count_any(formula: Formula) -> int:
    return 1 if isinstance(formula, AnySign) else sum(map(_count_any, children(formula)))


def _with_signs(formula: Formula, signs: list[bool]) -> Formula:
    if isinstance(formula, AnySign):
        return formula.atom if signs.pop(0) else Not(formula.atom)
    return rebuild(formula, tuple(_with_signs(part, signs) for part in children(formula)))


def read_file(path: Path) -> Program:
    """Read a program from a file; files it includes are looked for beside it."""
    path = Path(path)
    text = read_source(path).text()
    program = Program()
    marked = "?" in text and _has_marked_variables(text)
    _Reader(program, marked).read(Source(str(path), text), path.parent, (path.resolve(),))
    if not program.predicates:
        raise FormatError(f"{path}:1:1: no predicate is declared here")
    return program


def formula_of(text: str) -> tuple[Formula, tuple[str, ...]]:
    """One formula as text, with variables in lower case (or ``?x``), and those marked by ``+``."""
    source = Source("<formula>", text)
    found = list(statements(source))
    if len(found) != 1:
        raise ModelError(f"expected one formula, got {text!r}")
    marked = _has_marked_variables(text)
    formula, each = read_formula(source, found[0], (lambda name: False) if marked else is_lower_case)
    if _count_any(formula):
        raise ModelError(f"{text!r} is a template of several formulas: add each sign by itself")
    return formula, each
