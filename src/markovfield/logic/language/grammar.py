"""Tokens to formulas: the grammar of formulas, which lark reads (LALR).

Operators by precedence: ``!``, ``^`` (and ``,`` before an arrow), ``v``, ``=>``, ``<=>``. A quantifier reaches over
the formula right behind it; where its variables occur again further on, to the end of the bracket it stands in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NoReturn

from markovfield.exceptions import ModelError
from markovfield.extras import check_installed
from markovfield.logic.language.lexer import Source, Token
from markovfield.logic.language.syntax import (
    And,
    AnySign,
    Atom,
    Call,
    Constant,
    Equal,
    Exists,
    ForAll,
    Formula,
    Iff,
    Implies,
    Not,
    Or,
    Term,
    Variable,
)

if TYPE_CHECKING:
    from lark import Lark

__all__ = ["read_formula"]

GRAMMAR = """
start: formula
?formula: implication | formula IFF implication -> iff
?implication: disjunction | disjunction IMPLIES implication -> implies | disjunction IF implication -> implied
?disjunction: conjunction | conjunction (OR conjunction)+ -> either
?conjunction: unary | unary ((AND | COMMA) unary)+ -> both
?unary: NOT unary -> negation
    | STAR atom -> any_sign
    | quantifier names unary -> quantified
    | LPAR formula RPAR -> inner
    | LSQB formula RSQB -> inner
    | term EQ term -> equal
    | term NEQ term -> unequal
    | atom
quantifier: EXIST | FORALL
names: variable (COMMA variable)*
variable: NAME | VARIABLE
atom: call | NAME -> proposition
call: NAME LPAR (term (COMMA term)*)? RPAR
term: call | NAME -> name | NUMBER -> name | STRING -> text | VARIABLE -> marked
%declare IFF IMPLIES IF OR AND COMMA NOT STAR LPAR RPAR LSQB RSQB EQ NEQ EXIST FORALL NAME NUMBER STRING VARIABLE
%declare COMPARE PLUS MINUS SLASH COLON QUESTION PERIOD AT LBRACE RBRACE ELLIPSIS
"""

# How an expected token is told of.
_SHOWN = {
    "IFF": "'<=>'", "IMPLIES": "'=>'", "IF": "':-'", "OR": "'v'", "AND": "'^'", "COMMA": "','", "NOT": "'!'",
    "STAR": "'*'", "LPAR": "'('", "RPAR": "')'", "LSQB": "'['", "RSQB": "']'", "EQ": "'='", "NEQ": "'!='",
    "EXIST": "'EXIST'", "FORALL": "'FORALL'", "NAME": "a name", "NUMBER": "a number", "STRING": "a quoted text",
    "VARIABLE": "a variable", "$END": "the end of the formula",
}  # fmt: skip


@lru_cache
def _parser() -> Lark:
    from lark import Lark
    from lark import Token as LarkToken
    from lark.lexer import Lexer

    class Given(Lexer):
        """Hands on tokens that are there already."""

        __future_interface__ = 0

        def __init__(self, conf: Any) -> None:
            """Nothing is configured."""

        def lex(self, data: Any) -> Iterator[Any]:  # type: ignore[override]
            """The tokens as lark's."""
            for token in data:
                yield LarkToken(token.kind, token.text, token.start, end_pos=token.end)

    return Lark(GRAMMAR, parser="lalr", lexer=Given, propagate_positions=False)


def read_formula(
    source: Source, tokens: Sequence[Token], is_variable: Callable[[str], bool]
) -> tuple[Formula, tuple[str, ...]]:
    """The formula that the tokens are, and its variables marked by ``+`` (a weight for each of their values).

    ``is_variable`` tells names of variables from constants.
    """
    check_installed("Markov logic", "lark")
    from lark.exceptions import UnexpectedToken

    if not tokens:
        raise ModelError(f"{source.name}: a formula is empty")
    for token in tokens:
        if token.kind in ("COMPARE", "PLUS", "MINUS", "SLASH"):
            source.fail(
                token.start, f"{token.text!r} in a formula: arithmetic on constants is not part of the language"
            )
    scoped = _with_scopes(source, list(tokens))
    try:
        tree = _parser().parse(scoped)  # type: ignore[arg-type]
    except UnexpectedToken as error:
        _explain(source, tokens, error)
    builder = _Builder(is_variable)
    return builder.formula(tree.children[0]), tuple(builder.each)


def _explain(source: Source, tokens: Sequence[Token], error: Any) -> NoReturn:
    """One sentence: what is there, what would have fitted."""
    wanted = sorted(_SHOWN[kind] for kind in error.expected | error.accepts if kind in _SHOWN)
    expected = f"expected {', '.join(wanted[:-1]) + ' or ' if len(wanted) > 1 else ''}{wanted[-1]}" if wanted else ""
    if error.token.type == "$END":
        source.fail(tokens[-1].end, f"the formula ends here: {expected}")
    source.fail(error.token.start_pos, f"{error.token.value!r} does not fit here: {expected}")


def _with_scopes(source: Source, tokens: list[Token]) -> list[Token]:
    """Brackets around what a quantifier reaches over, where its variables occur again behind the next formula."""
    at = len(tokens) - 1
    while at >= 0:
        if tokens[at].kind in ("EXIST", "FORALL"):
            body = at + 1
            while body < len(tokens) and tokens[body].kind in ("NAME", "VARIABLE", "COMMA"):
                if tokens[body].kind != "COMMA" and body > at + 1 and tokens[body - 1].kind != "COMMA":
                    break
                body += 1
            names = {t.text.lstrip("+?") for t in tokens[at + 1 : body] if t.kind != "COMMA"}
            close, narrow = _close(tokens, body), _unary_end(tokens, body)
            if any(t.kind in ("NAME", "VARIABLE") and t.text.lstrip("+?") in names for t in tokens[narrow:close]):
                end = tokens[close - 1].end
                tokens.insert(close, Token("RPAR", ")", end, end))
                tokens.insert(body, Token("LPAR", "(", tokens[body].start, tokens[body].start))
        at -= 1
    return tokens


def _close(tokens: Sequence[Token], at: int) -> int:
    """Where the bracket that a place is in closes, or the end."""
    depth = 0
    for i in range(at, len(tokens)):
        depth += (tokens[i].kind in ("LPAR", "LSQB")) - (tokens[i].kind in ("RPAR", "RSQB"))
        if depth < 0:
            return i
    return len(tokens)


def _unary_end(tokens: Sequence[Token], at: int) -> int:
    """Where the atom, equality or bracket that begins at a place ends, negations included."""
    while at < len(tokens) and tokens[at].kind in ("NOT", "STAR"):
        at += 1
    if at < len(tokens) and tokens[at].kind == "NAME":
        at += 1
    if at < len(tokens) and tokens[at].kind in ("LPAR", "LSQB"):
        at = _close(tokens, at + 1) + 1
    if at < len(tokens) and tokens[at].kind in ("EQ", "NEQ"):
        at = _unary_end(tokens, at + 1)
    return min(at, len(tokens))


class _Builder:
    """From lark's trees to formulas."""

    def __init__(self, is_variable: Callable[[str], bool]) -> None:
        self.is_variable = is_variable
        self.each: dict[str, None] = {}
        self.renamed: dict[str, str] = {}
        self.bound: list[str] = []

    def formula(self, tree: Any) -> Formula:
        if not hasattr(tree, "data"):
            raise ModelError(f"{tree} is no formula")
        parts = [p for p in tree.children if hasattr(p, "data")]
        match str(tree.data):
            case "iff":
                return Iff(self.formula(parts[0]), self.formula(parts[1]))
            case "implies":
                return Implies(self.formula(parts[0]), self.formula(parts[1]))
            case "implied":
                return Implies(self.formula(parts[1]), self.formula(parts[0]))
            case "either":
                return Or(tuple(self.formula(p) for p in parts))
            case "both":
                return And(tuple(self.formula(p) for p in parts))
            case "negation":
                return Not(self.formula(parts[0]))
            case "any_sign":
                return AnySign(self.atom(parts[0]))
            case "inner":
                return self.formula(parts[0])
            case "equal":
                return Equal(self.term(parts[0]), self.term(parts[1]))
            case "unequal":
                return Not(Equal(self.term(parts[0]), self.term(parts[1])))
            case "quantified":
                given = [str(v.children[0]).lstrip("+?") for v in parts[1].children if hasattr(v, "data")]
                names = tuple(map(self.variable, given))
                self.bound += names
                body = self.formula(parts[2])
                del self.bound[-len(names) :]
                kind = Exists if parts[0].children[0].type == "EXIST" else ForAll
                return kind(names, body)
        return self.atom(tree)

    def variable(self, name: str) -> str:
        """A variable's name in a small letter, as variables are written where they are not marked by ``?``."""
        if name not in self.renamed:
            new = name[0].lower() + name[1:]
            while new in self.renamed.values():
                new += "_"
            self.renamed[name] = new
        return self.renamed[name]

    def atom(self, tree: Any) -> Atom:
        if tree.data == "proposition":
            return Atom(str(tree.children[0]))
        call = tree.children[0]
        return Atom(str(call.children[0]), self.arguments(call))

    def arguments(self, call: Any) -> tuple[Term, ...]:
        return tuple(self.term(p) for p in call.children if hasattr(p, "data"))

    def term(self, tree: Any) -> Term:
        inner = tree.children[0]
        match str(tree.data):
            case "name":
                name = str(inner)
                known = self.is_variable(name) or self.renamed.get(name) in self.bound
                return Variable(self.variable(name)) if known else Constant(name)
            case "text":
                return Constant(unquoted(str(inner)))
            case "marked":
                name = str(inner).lstrip("+?")
                if str(inner).startswith("+"):
                    # "+Name" of a constant is the constant.
                    if (
                        "?" not in str(inner)
                        and not self.is_variable(name)
                        and self.renamed.get(name) not in self.bound
                    ):
                        return Constant(name)
                    self.each[self.variable(name)] = None
                return Variable(self.variable(name))
        return Call(str(inner.children[0]), self.arguments(inner))


def unquoted(text: str) -> str:
    """The text between quotation marks."""
    inner = text[1:-1]
    return inner if "\\" not in inner else "".join(_unescaped(inner))


def _unescaped(text: str) -> Iterator[str]:
    at = 0
    while at < len(text):
        if text[at] == "\\" and at + 1 < len(text):
            at += 1
            yield {"n": "\n", "t": "\t", "r": "\r"}.get(text[at], text[at])
        else:
            yield text[at]
        at += 1
