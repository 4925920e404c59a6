"""The weight that stands before a formula: a number, or an expression of numbers such as ``log(0.9/0.1)``."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from markovfield.logic.language.lexer import Source, Token

__all__ = ["read_weight"]

# ``logx`` is pracmln's: the logarithm, with -100 for that of zero.
_FUNCTIONS: dict[str, Callable[[float], float]] = {
    "log": math.log,
    "ln": math.log,
    "logx": lambda x: -100.0 if x == 0.0 else math.log(x),
    "exp": math.exp,
    "sqrt": math.sqrt,
}


def read_weight(source: Source, tokens: Sequence[Token]) -> tuple[float | None, int]:
    """The weight at the beginning of a statement, None where there is none, and how many tokens it takes."""
    if not tokens or not (
        tokens[0].kind in ("NUMBER", "MINUS", "PLUS") or (tokens[0].text in _FUNCTIONS and _called(tokens, 0))
    ):
        return None, 0
    reader = _Expression(source, tokens)
    try:
        value = reader.sum()
    except (ValueError, ZeroDivisionError, OverflowError):
        source.fail(tokens[0].start, "this weight cannot be worked out")
    if not math.isfinite(value):
        source.fail(tokens[0].start, "a weight is a finite number; a period behind a formula makes it hard")
    return value, reader.at


def _called(tokens: Sequence[Token], at: int) -> bool:
    return at + 1 < len(tokens) and tokens[at + 1].kind == "LPAR"


class _Expression:
    """Sums of products of signed numbers, functions and brackets, read from left to right."""

    def __init__(self, source: Source, tokens: Sequence[Token]) -> None:
        self.source, self.tokens, self.at = source, tokens, 0

    def _kind(self, ahead: int = 0) -> str:
        at = self.at + ahead
        return self.tokens[at].kind if at < len(self.tokens) else ""

    def _is_number(self, ahead: int) -> bool:
        kind, at = self._kind(ahead), self.at + ahead
        if kind in ("NUMBER", "LPAR"):
            return True
        return kind == "NAME" and self.tokens[at].text in _FUNCTIONS and _called(self.tokens, at)

    def sum(self) -> float:
        value = self.product()
        while self._kind() in ("PLUS", "MINUS"):
            sign = 1.0 if self._kind() == "PLUS" else -1.0
            self.at += 1
            value += sign * self.product()
        return value

    def product(self) -> float:
        value = self.factor()
        while self._kind() in ("STAR", "SLASH") and self._is_number(1):
            divides = self._kind() == "SLASH"
            self.at += 1
            value = value / self.factor() if divides else value * self.factor()
        return value

    def factor(self) -> float:
        if self.at >= len(self.tokens):
            self.source.fail(self.tokens[-1].end, "this weight ends in the middle")
        token = self.tokens[self.at]
        self.at += 1
        if token.kind in ("MINUS", "PLUS"):
            return -self.factor() if token.kind == "MINUS" else self.factor()
        if token.kind == "NUMBER":
            return float(token.text)
        if token.kind == "NAME" and token.text in _FUNCTIONS and self._kind() == "LPAR":
            return _FUNCTIONS[token.text](self.factor())
        if token.kind == "LPAR":
            value = self.sum()
            if self._kind() != "RPAR":
                self.source.fail(token.start, "this bracket of a weight is not closed")
            self.at += 1
            return value
        self.source.fail(token.start, f"a weight is made of numbers, + - * / and {', '.join(_FUNCTIONS)}")
