"""Probabilistic grammars as text: ``S -> NP VP [1.0]``, with words in quotes.

One rule with its alternatives (``|``) stands on a line; a line that ends in ``|`` goes on. ``%start S`` names the start
symbol, which is otherwise the first one on the left. ``%binarisation right 2 1`` says that rules were read off trees
that were made binary so (direction, horizontal, vertical). A line that begins with ``#`` is a comment, unless ``->``
follows. ``<unknown>`` and ``<unknown-...>`` on the right are classes of words. ``''`` is a symbol: no word is empty.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from markovfield.exceptions import FormatError, ModelError
from markovfield.grammar.binarisation import Binarisation
from markovfield.grammar.lexicon import is_class
from markovfield.grammar.productions import REST, WORD, Production, Word
from markovfield.grammar.trees import SPACES

__all__ = ["WrittenGrammar", "read_grammar_text", "written_grammar"]

ARROW, OR = "->", "|"
# How far probabilities of a symbol may be from one in a file that people write: 0.33 three times, say.
SLACK = 0.02
# So close they are left as they are, so that a grammar that is written and read again keeps every bit.
EQUAL = 1e-9

_TOKEN = re.compile(
    rf"""(?P<quoted>'(?:[^'\\{SPACES}]|\\.)+'|"(?:[^"\\{SPACES}]|\\.)+")(?![^{SPACES}])|(?P<plain>[^{SPACES}]+)"""
)
_SYMBOL = re.compile(rf"[^(){SPACES}]+").fullmatch
_ESCAPED = re.compile(r"\\(.)")
_COMMENT = re.compile(rf"[{SPACES}]*#(?![{SPACES}]*->[{SPACES}])").match


@dataclass
class WrittenGrammar:
    """What a text says.

    Attributes
    ----------
    start
        The start symbol.
    productions
        Rules with probabilities that add up to one for each symbol on the left.
    way
        How trees were made binary that the rules were read off; None where the text does not say.
    """

    start: str = ""
    productions: list[Production] = field(default_factory=list)
    way: Binarisation | None = None


@dataclass
class _Token:
    text: str
    line: int
    column: int
    quoted: bool


@dataclass
class _Alternative:
    parent: _Token
    children: tuple[str, ...]
    weight: float | None
    at: _Token


class _Reader:
    """Reads one text; errors say where."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.found: list[_Alternative] = []
        self.symbols: list[_Token] = []
        self.start: _Token | None = None
        self.way: Binarisation | None = None

    def wrong(self, at: _Token, why: str) -> FormatError:
        return FormatError(f"{self.name}:{at.line}:{at.column}: {why}")

    def lines(self, text: str) -> Iterator[list[_Token]]:
        """The tokens of each rule; what ends in ``|`` goes on in the next line."""
        waiting: list[_Token] = []
        for number, line in enumerate(text.splitlines(), 1):
            if _COMMENT(line):
                continue
            own = [_Token(m[0], number, m.start() + 1, m.lastgroup == "quoted") for m in _TOKEN.finditer(line.rstrip())]
            waiting += own
            if waiting and not (own and own[-1].text == OR):
                yield waiting
                waiting = []
        if waiting:
            yield waiting

    def directive(self, tokens: Sequence[_Token]) -> None:
        """``%start S`` or ``%binarisation right 2 1``."""
        name, values = tokens[0].text, [token.text for token in tokens[1:]]
        if name == "%start" and len(values) == 1:
            self.start = tokens[1]
        elif name == "%binarisation" and len(values) == 3:
            try:
                horizontal = None if values[1] == "all" else int(values[1])
                self.way = Binarisation(values[0], horizontal, int(values[2]))  # type: ignore[arg-type]
            except (ValueError, ModelError):
                raise self.wrong(
                    tokens[0], "expected a direction, how many siblings (or all) and how many ancestors"
                ) from None
        else:
            raise self.wrong(tokens[0], "expected %start SYMBOL or %binarisation DIRECTION HORIZONTAL VERTICAL")

    def rule(self, tokens: Sequence[_Token]) -> None:
        """A symbol and its alternatives."""
        parent = tokens[0]
        if parent.quoted or not _SYMBOL(parent.text):
            raise self.wrong(parent, f"expected a symbol on the left of a rule, found {parent.text}")
        self.check_symbol(parent)
        if len(tokens) < 2 or tokens[1].quoted or tokens[1].text != ARROW:
            raise self.wrong(tokens[min(1, len(tokens) - 1)], f"expected {ARROW} after {parent.text}")
        own: list[_Token] = []
        last = tokens[1]
        for token in [*tokens[2:], None]:
            if token is None or (token.text == OR and not token.quoted):
                self.alternative(parent, own, last)
                own = []
            else:
                own.append(token)
            last = token or last

    def alternative(self, parent: _Token, tokens: list[_Token], before: _Token) -> None:
        """What stands between ``->``, ``|`` and the end of the line."""
        weight = None
        if tokens and not tokens[-1].quoted and tokens[-1].text.startswith("[") and tokens[-1].text.endswith("]"):
            weight = self.number(tokens.pop())
        if not tokens:
            raise self.wrong(before, "nothing stands on the right: a rule makes at least one word or symbol")
        children: list[str] = []
        for token in tokens:
            if token.quoted:
                children.append(Word(_ESCAPED.sub(r"\1", token.text[1:-1])))
            elif is_class(token.text):
                children.append(Word(token.text))
            elif token.text == ARROW:
                raise self.wrong(token, f"a second {ARROW} in one rule")
            elif token.text[0] in "'\"" and token.text not in ("''", "'", '"'):
                raise self.wrong(token, f"the word {token.text} does not end with the quote it begins with")
            elif not _SYMBOL(token.text):
                raise self.wrong(token, f"{token.text} is no symbol; words stand in quotes, weights last in [ ]")
            else:
                self.check_symbol(token)
                children.append(token.text)
                self.symbols.append(token)
        self.found.append(_Alternative(parent, tuple(children), weight, tokens[0]))

    def check_symbol(self, token: _Token) -> None:
        if token.text.startswith((REST, WORD)):
            raise self.wrong(token, f"{token.text} begins with {token.text[:2]}, as symbols for long rules do")

    def number(self, token: _Token) -> float:
        try:
            weight = float(token.text[1:-1])
        except ValueError:
            raise self.wrong(token, f"expected a number in brackets, found {token.text}") from None
        if not 0 <= weight < float("inf"):
            raise self.wrong(token, f"a weight must be a number of at least 0, got {token.text[1:-1]}")
        return weight

    def checked(self, normalise: bool) -> WrittenGrammar:
        """Rules whose weights are probabilities."""
        if not self.found:
            raise FormatError(f"{self.name}:1:1: there is no rule; one is written S -> NP VP [1.0]")
        made: dict[str, list[_Alternative]] = {}
        places: dict[tuple[str, tuple[tuple[str, bool], ...]], _Alternative] = {}
        for one in self.found:
            key = (one.parent.text, tuple((str(child), isinstance(child, Word)) for child in one.children))
            if key in places:
                raise self.wrong(one.at, f"this rule of {key[0]} stands in line {places[key].at.line} already")
            places[key] = one
            made.setdefault(one.parent.text, []).append(one)
        for token in self.symbols:
            if token.text not in made:
                raise self.wrong(token, f"no rule says what {token.text} is made of; words stand in quotes")
        start = self.start or self.found[0].parent
        if start.text not in made:
            raise self.wrong(start, f"no rule says what the start symbol {start.text} is made of")
        shares = {symbol: self.shares(symbol, own, normalise) for symbol, own in made.items()}
        found = WrittenGrammar(start.text, way=self.way)
        for symbol, own in made.items():
            for one, share in zip(own, shares[symbol], strict=True):
                found.productions.append(Production(symbol, one.children, share))
        return found

    def shares(self, symbol: str, own: Sequence[_Alternative], normalise: bool) -> list[float]:
        """Probabilities of the rules of one symbol."""
        weights = [one.weight for one in own if one.weight is not None]
        if not weights:
            return [1.0 / len(own)] * len(own)
        if len(weights) < len(own):
            bare = next(one for one in own if one.weight is None)
            raise self.wrong(bare.at, f"other rules of {symbol} have a weight and this one has none")
        total = sum(weights)
        if total <= 0 or (not normalise and abs(total - 1) > SLACK):
            wanted = "must be more than 0" if total <= 0 else "must be 1; normalise=True divides by it"
            raise self.wrong(own[0].parent, f"weights of the rules of {symbol} add up to {total:.6g}, which {wanted}")
        return weights if abs(total - 1) <= EQUAL else [weight / total for weight in weights]


def read_grammar_text(text: str, name: str = "text", *, normalise: bool = False) -> WrittenGrammar:
    """Read a grammar.

    Parameters
    ----------
    text
        Rules; see the module.
    name
        What errors call the text.
    normalise
        Whether weights may add up to anything, and are divided by their sum; otherwise they must add up to one (within
        two per cent, which are then divided out). Symbols without any weights have rules of equal probability.

    Raises
    ------
    FormatError
        With ``name:line:column``.

    Examples
    --------
    >>> read_grammar_text("S -> NP 'ran' [1.0]\\nNP -> 'he' [0.4] | 'she' [0.6]").productions[0]
    Production(parent='S', children=('NP', 'ran'), probability=1.0)
    """
    reader = _Reader(name)
    for tokens in reader.lines(text):
        if tokens[0].text.startswith("%") and not (len(tokens) > 1 and tokens[1].text == ARROW):
            reader.directive(tokens)
        else:
            reader.rule(tokens)
    return reader.checked(normalise)


def written_grammar(grammar: WrittenGrammar) -> str:
    """The text of a grammar; `read_grammar_text` reads it again, with the same bits.

    The start symbol comes first, others by name; rules of a symbol before its words, likely ones first.
    """
    lines = [f"%start {grammar.start}"]
    if grammar.way is not None:
        horizontal = "all" if grammar.way.horizontal is None else grammar.way.horizontal
        lines.append(f"%binarisation {grammar.way.direction} {horizontal} {grammar.way.vertical}")
    rows = []
    for parent, children, probability in grammar.productions:
        lexical = len(children) == 1 and isinstance(children[0], Word)
        order = (parent != grammar.start, parent, lexical, -probability)
        rows.append((order, f"{parent} {ARROW} {' '.join(map(_written, children))} [{float(probability)!r}]"))
    lines += [line for _, line in sorted(rows)]
    return "\n".join(lines) + "\n"


def _written(item: str) -> str:
    if not isinstance(item, Word):
        if is_class(item) or item in (ARROW, OR) or (item[0] in "'\"[" and item not in ("''", "'", '"')):
            raise ModelError(f"symbol {item!r} cannot be written on the right of a rule")
        return item
    if is_class(item):
        return str(item)
    quote = '"' if "'" in item and '"' not in item else "'"
    return quote + item.replace("\\", "\\\\").replace(quote, "\\" + quote) + quote
