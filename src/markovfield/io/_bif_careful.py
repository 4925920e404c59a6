"""BIF by the whole grammar, statement by statement: slower than the plain layout, and it says what is wrong where."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NoReturn

from markovfield.arrays import FloatArray
from markovfield.io._bif_table import Body
from markovfield.io._families import Families
from markovfield.models import BayesianNetwork
from markovfield.text_files import Source

__all__ = ["CarefulReader"]

# Every pattern is anchored by match() and possessive (*+, ++), so no input makes it run longer than linear.
_KEYWORD = re.compile(r"\s*+([^\s{}();,|]*+)")
_NAME_AND_BRACE = re.compile(r"\s*+([^\s{}]++)\s*+\{")
_TYPE = re.compile(r"\s*+type\s++discrete\s*+\[\s*+(\d++)\s*+\]\s*+\{([^{}]*+)\}\s*+;?+")
_PROPERTY = re.compile(r"\s*+property\b([^;{}]*+);")
_CLOSE = re.compile(r"\s*+\}")
_ASIDE = re.compile(r'//|/\*|"')
_ENDS = {"//": "\n", "/*": "*/", '"': '"'}

# Signs and spaces inside quotes stand aside as private characters, so that quoting is settled before the grammar.
_SIGNS = '{}();,|[]"' + "".join(c for c in map(chr, range(0x3001)) if c.isspace() and c != "\n")
_HIDE = {ord(sign): 0xF0000 + i for i, sign in enumerate(_SIGNS)}
_SHOW_QUOTES = {code: chr(sign) for sign, code in _HIDE.items()}
_SHOW = _SHOW_QUOTES | {_HIDE[ord('"')]: ""}
_HIDDEN = re.compile(f"[{chr(0xF0000)}-{chr(0xF0000 + len(_SIGNS) - 1)}]")

_DEFAULT_CELLS_FLOOR = 1 << 24
_DEFAULT_CELLS_PER_CHARACTER = 16


@dataclass
class CarefulReader:
    """Reads one file, with nothing but `FormatError` for what is wrong in it."""

    source: Source
    text: str = ""
    quoted: bool = False
    default_cells: int = 0
    has_network: bool = False

    def __post_init__(self) -> None:
        self.families = Families(self.source, self.fail, "probability block")
        # The states of each variable, by name: what rows of tables are looked up in.
        self.states: dict[str, dict[str, int]] = {}

    def fail(self, at: int, message: str) -> NoReturn:
        """Raise a `FormatError` at a position in the text; -1 is its end."""
        mark = 3 if self.source.data.startswith(b"\xef\xbb\xbf") else 0
        at = len(self.text) if at < 0 else at
        # The text has the length of the file's in characters, whatever was blanked out or hidden.
        raise self.source.error(mark + len(self.source.text()[:at].encode()), message) from None

    def read(self) -> BayesianNetwork:
        """The network, or a `FormatError`."""
        self.text = self.source.text()
        if '"' in self.text or "//" in self.text or "/*" in self.text:
            self.text = self._set_aside(self.text)
        self._scan()
        return self.families.network()

    def _set_aside(self, text: str) -> str:
        """Blank out comments and hide the signs inside quotes, leaving every position as it was."""
        if reserved := _HIDDEN.search(text):
            self.fail(reserved.start(), f"a file with quotes or comments cannot hold the character {reserved[0]!r}")
        pieces, at = [], 0
        while match := _ASIDE.search(text, at):
            start, sign = match.start(), match[0]
            # Ends are looked for by find(): much faster than a pattern, and what never ends is looked through once.
            end = text.find(_ENDS[sign], match.end())
            if sign == "//":
                end = len(text) if end < 0 else end
                aside = " " * (end - start)
            elif sign == "/*":
                if end < 0:
                    self.fail(start, "this comment is never closed")
                end += 2
                aside = "\n".join([" " * len(line) for line in text[start:end].split("\n")])
            else:
                end += 1
                if end == 0 or "\n" in text[start:end]:
                    self.fail(start, "this quoted string does not end on its line")
                self.quoted = True
                aside = text[start:end].translate(_HIDE)
            pieces += [text[at:start], aside]
            at = end
        return "".join([*pieces, text[at:]])

    def _words(self, listing: str, count: int = -1) -> list[str]:
        """The words of a list, separated by commas if it has any, by spaces otherwise; or its one word."""
        by_commas = "," in listing or count == 1
        words = [w.strip() for w in listing.split(",")] if by_commas else listing.split()
        return [w.translate(_SHOW) for w in words] if self.quoted else words

    def _keep_property(self, owner: str | None, raw: str) -> None:
        """Note the text of a property: what stands in quotes when all of it does."""
        text = raw.strip().translate(_SHOW_QUOTES)
        if len(text) > 1 and text[0] == text[-1] == '"' and text.count('"') == 2:
            text = text[1:-1]
        self.families.add_property(owner, text)

    def _scan(self) -> None:
        """One pass over the blocks: variables are taken in, probabilities, which may come first, marked."""
        text, at = self.text, 0
        while True:
            word = _KEYWORD.match(text, at)
            assert word is not None
            start = word.start(1)
            if word.group(1) == "variable":
                at = self._variable(word.end())
            elif word.group(1) == "probability":
                at = self._probability(start, word.end())
            elif word.group(1) == "network":
                at = self._network(start, word.end())
            elif start == len(text):
                return
            else:
                found = word.group(1)[:30] or text[start]
                self.fail(start, f"expected network, variable or probability, got {found!r}")

    def _closing(self, start: int, brace: int, what: str) -> int:
        """Position of the brace that closes a block without inner braces."""
        end = self.text.find("}", brace) if brace >= 0 else -1
        if end < 0:
            self.fail(start, f"this {what} block is never {'opened' if brace < 0 else 'closed'}")
        return end

    def _network(self, start: int, at: int) -> int:
        brace = self.text.find("{", at)
        end = self._closing(start, brace, "network")
        if self.has_network:
            self.fail(start, "this is the second network block of the file")
        self.has_network = True
        self.families.name = self.text[at:brace].strip().translate(_SHOW)
        at = brace + 1
        while found := _PROPERTY.match(self.text, at, end):
            self._keep_property(None, found[1])
            at = found.end()
        if self.text[at:end].strip():
            self.fail(at, "a network block holds properties and nothing else, each closed by ';'")
        return end + 1

    def _variable(self, at: int) -> int:
        text = self.text
        head = _NAME_AND_BRACE.match(text, at)
        if head is None:
            self.fail(at, "expected the name of a variable and '{' after it")
        name = head.group(1).translate(_SHOW) if self.quoted else head.group(1)
        if name in self.states:
            self.fail(head.start(1), f"variable {name!r} is declared twice")
        at = head.end()
        while True:
            if found := _TYPE.match(text, at):
                if name in self.states:
                    self.fail(at, f"variable {name!r} has two types")
                self._add_states(name, found)
            elif found := _PROPERTY.match(text, at):
                self._keep_property(name, found[1])
            else:
                break
            at = found.end()
        close = _CLOSE.match(text, at)
        if close is None:
            self.fail(
                head.start(1) if at >= len(text.rstrip()) else at,
                f"the block of variable {name!r} is never closed, or holds something else than "
                "type discrete [ k ] { ... }; and properties",
            )
        if name not in self.states:
            self.fail(head.start(1), f"variable {name!r} has no type")
        return close.end()

    def _add_states(self, name: str, found: re.Match[str]) -> None:
        states = self._words(found.group(2))
        self.families.add_variable(found.start(2), name, states)
        if found.group(1).lstrip("0") != str(len(states)) or "" in states:
            self.fail(
                found.start(1),
                f"variable {name!r} announces {found.group(1)[:20]} states and lists {len(states)}",
            )
        self.states[name] = {state: i for i, state in enumerate(states)}

    def _probability(self, start: int, at: int) -> int:
        brace = self.text.find("{", at)
        end = self._closing(start, brace, "probability")
        head = self.text[at:brace].strip()
        if not (head.startswith("(") and head.endswith(")")):
            self.fail(start, "expected probability ( variable | parents ) { ... }")
        family = self._words(head[1:-1].replace("|", " ").replace(",", " "))
        self.families.tables.append((start, family, lambda: self._table(family, brace + 1, end)))
        return end + 1

    def _table(self, family: list[str], begin: int, end: int) -> FloatArray:
        spare = max(_DEFAULT_CELLS_FLOOR, _DEFAULT_CELLS_PER_CHARACTER * len(self.text)) - self.default_cells
        child, *parents = [(name, self.states[name]) for name in family]
        body = Body(self.text[begin:end], begin, child, parents, self.fail, self._words, spare)
        table = body.table()
        self.default_cells += body.filled_cells
        for text in body.properties:
            self._keep_property(family[0], text)
        return table
