"""From text to tokens, and from tokens to statements.

A statement ends where the next token cannot go on with it, so line breaks do not matter: a formula may take several
lines, and several statements may share one.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NoReturn

from markovfield.exceptions import FormatError

__all__ = ["Source", "Token", "statements", "tokens_of"]

_SPACE = re.compile(r"(?:[ \t\r\f\n\ufeff]+|//[^\n]*|/\*.*?\*/)+", re.DOTALL)
_TOKEN = re.compile(
    r"""
    (?P<DIRECTIVE>\#[^\n]*)
  | (?P<ELLIPSIS>\.\.\.|…)
  | (?P<NUMBER>(?:\d+\.\d+|\d+|\.\d+)(?:[eE][-+]?\d+)?(?![\w']))
  | (?P<STRING>"(?:[^"\\\n]|\\.)*")
  | (?P<VARIABLE>\+\??[A-Za-z_][\w'-]*|\?[A-Za-z_][\w'-]*)
  | (?P<NAME>[^\W\d][\w'-]*|\d[\w'-]*)
  | (?P<IFF><=>|⇔) | (?P<IMPLIES>=>|⇒) | (?P<IF>:-) | (?P<NEQ>=/=|!=|<>|≠) | (?P<COMPARE><=|>=|<|>)
  | (?P<EQ>=) | (?P<NOT>!|¬) | (?P<AND>\^|&&?|∧) | (?P<OR>\|\|?|∨) | (?P<STAR>\*) | (?P<AT>@) | (?P<PLUS>\+)
  | (?P<MINUS>-) | (?P<SLASH>/) | (?P<LPAR>\() | (?P<RPAR>\)) | (?P<LBRACE>\{) | (?P<RBRACE>\}) | (?P<LSQB>\[)
  | (?P<RSQB>\]) | (?P<COMMA>,) | (?P<PERIOD>\.) | (?P<COLON>:) | (?P<QUESTION>\?)
    """,
    re.VERBOSE,
)
_QUANTIFIERS = {"EXIST": "EXIST", "EXISTS": "EXIST", "FORALL": "FORALL"}
_ENDS_OPERAND = frozenset({"RPAR", "RBRACE", "RSQB", "NAME", "NUMBER", "STRING", "VARIABLE"})
_STARTS_OPERAND = frozenset(
    {
        "NAME",
        "NUMBER",
        "STRING",
        "VARIABLE",
        "NOT",
        "STAR",
        "LPAR",
        "LSQB",
        "EXIST",
        "FORALL",
        "AT",
        "DIRECTIVE",
        "MINUS",
    }
)


class Source:
    """A text and its name, which knows where a place in it is."""

    def __init__(self, name: str, text: str) -> None:
        self.name, self.text = name, text
        self._starts = [0, *(m.end() for m in re.finditer("\n", text))]

    def place(self, at: int) -> str:
        """``name:line:column`` of a position."""
        line = bisect_right(self._starts, at) - 1
        return f"{self.name}:{line + 1}:{at - self._starts[line] + 1}"

    def fail(self, at: int, message: str) -> NoReturn:
        """Raise with the place."""
        raise FormatError(f"{self.place(at)}: {message}")


@dataclass(frozen=True, slots=True)
class Token:
    """A word of a program: its kind, its text, and where it starts and ends."""

    kind: str
    text: str
    start: int
    end: int


def tokens_of(source: Source) -> Iterator[Token]:
    """The tokens of a text; comments are left out, words that are operators are told from names."""
    at, previous = 0, ""
    while True:
        space = _SPACE.match(source.text, at)
        at = space.end() if space else at
        if at == len(source.text):
            return
        if source.text.startswith("/*", at):
            source.fail(at, "this comment is not closed by */")
        found = _TOKEN.match(source.text, at)
        if found is None:
            if source.text[at] == '"':
                source.fail(at, "this text is not closed by a quotation mark")
            source.fail(at, f"the sign {source.text[at]!r} has no meaning here")
        kind, text = str(found.lastgroup), found.group()
        if kind == "NAME":
            if text == "v" and previous in _ENDS_OPERAND:
                kind = "OR"
            elif text.upper() in _QUANTIFIERS and not source.text.startswith("(", found.end()):
                kind = _QUANTIFIERS[text.upper()]
        yield Token(kind, text, at, found.end())
        at, previous = found.end(), kind


def statements(source: Source) -> Iterator[list[Token]]:
    """Tokens of one statement after the other."""
    current: list[Token] = []
    depth = 0
    in_weight = False
    for token in tokens_of(source):
        if token.kind in ("LPAR", "LBRACE", "LSQB"):
            if current and depth == 0 and _breaks(source, current, token, in_weight):
                yield current
                current, in_weight = [], False
            if in_weight and current and current[-1].kind in ("NUMBER", "RPAR"):
                in_weight = False
            depth += 1
        elif depth == 0 and current and _breaks(source, current, token, in_weight):
            yield current
            current, in_weight = [], False
        if not current:
            in_weight = _may_weigh(token)
        elif in_weight and depth == 0:
            in_weight = token.kind in ("RPAR", "NUMBER", "PLUS", "MINUS", "STAR", "SLASH", "AT") or _may_weigh(token)
        current.append(token)
        if token.kind in ("RPAR", "RBRACE", "RSQB"):
            depth -= 1
            if depth < 0:
                source.fail(token.start, f"this {token.text!r} closes nothing")
        if depth == 0 and token.kind in ("PERIOD", "DIRECTIVE"):
            yield current
            current, in_weight = [], False
    if current:
        yield current


def _may_weigh(token: Token) -> bool:
    """Whether a token can be the beginning of a weight."""
    return token.kind in ("NUMBER", "AT", "MINUS") or token.text in ("log", "logx", "ln", "exp", "sqrt")


def _breaks(source: Source, current: list[Token], token: Token, in_weight: bool) -> bool:
    """Whether a token begins the next statement."""
    last = current[-1]
    if in_weight or last.kind not in _ENDS_OPERAND or token.kind not in _STARTS_OPERAND:
        return False
    if token.kind == "LPAR":
        # A predicate and its arguments touch, or are on one line.
        return not (last.kind == "NAME" and "\n" not in source.text[last.end : token.start])
    if token.kind == "MINUS":
        return "\n" in source.text[last.end : token.start]
    # "EXIST x, y P(x, y)", and functions: "type name(types)".
    if any(t.kind in ("EXIST", "FORALL") for t in current) and _in_quantifier(current):
        return False
    return not (last.kind == "NAME" and len(current) == 1 and "\n" not in source.text[last.end : token.start])


def _in_quantifier(current: list[Token]) -> bool:
    """Whether the last tokens are the variables of a quantifier."""
    for token in reversed(current):
        if token.kind in ("EXIST", "FORALL"):
            return True
        if token.kind not in ("NAME", "VARIABLE", "COMMA"):
            return False
    return False
