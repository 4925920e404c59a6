"""BIF by the whole grammar, statement by statement: slower than the plain layout, and it says what is wrong where."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import NoReturn

import numpy as np

from markovfield.exceptions import FormatError, ModelError
from markovfield.io._bif_plain import UNNAMED
from markovfield.io._bif_table import Body
from markovfield.io._text import Source
from markovfield.models import BayesianNetwork

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
class _Block:
    """Where a ``probability`` block's head and body lie in the text."""

    start: int
    head: str
    body_at: int
    body_end: int


@dataclass
class CarefulReader:
    """Reads one file, with nothing but `FormatError` for what is wrong in it."""

    source: Source
    text: str = ""
    quoted: bool = False
    states: dict[str, dict[str, int]] = field(default_factory=dict)
    blocks: list[_Block] = field(default_factory=list)
    default_cells: int = 0
    name: str | None = None
    properties: dict[str | None, list[str]] = field(default_factory=dict)
    has_network: bool = False

    def fail(self, at: int, message: str) -> NoReturn:
        """Raise a `FormatError` at a position in the text."""
        mark = 3 if self.source.data.startswith(b"\xef\xbb\xbf") else 0
        # The text has the length of the file's in characters, whatever was blanked out or hidden.
        raise self.source.error(mark + len(self.source.text()[:at].encode()), message) from None

    def read(self) -> BayesianNetwork:
        """The network, or a `FormatError`."""
        self.text = self.source.text()
        if '"' in self.text or "//" in self.text or "/*" in self.text:
            self.text = self._set_aside(self.text)
        self._scan()
        if not self.states:
            self.fail(len(self.text), "the file declares no variable")
        net = BayesianNetwork({name: tuple(index) for name, index in self.states.items()})
        given: set[str] = set()
        for block in self.blocks:
            self._add_cpt(net, block, given)
        for name in self.states:
            if name not in given:
                self.fail(len(self.text), f"variable {name!r} has no probability block")
        try:
            net._check_acyclic()
        except ModelError as error:
            raise FormatError(f"{self.source.name}:1:1: {error}") from None
        net.name = self.name
        net.properties = {owner: tuple(texts) for owner, texts in self.properties.items()}
        return net

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
        self.properties.setdefault(owner, []).append(text)

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
        name = self.text[at:brace].strip().translate(_SHOW)
        self.name = None if name in ("", UNNAMED) else name
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
                self.states[name] = self._states(name, found)
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

    def _states(self, name: str, found: re.Match[str]) -> dict[str, int]:
        states = self._words(found.group(2))
        index = {state: i for i, state in enumerate(states)}
        if len(index) != len(states):
            twice = next(s for i, s in enumerate(states) if index[s] != i)
            self.fail(found.start(2), f"state {twice!r} of variable {name!r} is listed twice")
        if found.group(1).lstrip("0") != str(len(states)) or "" in index:
            self.fail(
                found.start(1),
                f"variable {name!r} announces {found.group(1)[:20]} states and lists {len(states)}",
            )
        return index

    def _probability(self, start: int, at: int) -> int:
        brace = self.text.find("{", at)
        end = self._closing(start, brace, "probability")
        head = self.text[at:brace].strip()
        if not (head.startswith("(") and head.endswith(")")):
            self.fail(start, "expected probability ( variable | parents ) { ... }")
        self.blocks.append(_Block(start, head[1:-1], brace + 1, end))
        return end + 1

    def _add_cpt(self, net: BayesianNetwork, block: _Block, given: set[str]) -> None:
        family = self._words(block.head.replace("|", " ").replace(",", " "))
        if not family:
            self.fail(block.start, "this probability block names no variable")
        for name in family:
            if name not in self.states:
                self.fail(block.start, f"there is no variable {name[:30]!r} for this probability block")
        child, parents = family[0], family[1:]
        if len(set(family)) != len(family):
            self.fail(block.start, f"a variable is named twice in the probability block of {child!r}")
        if child in given:
            self.fail(block.start, f"variable {child!r} has two probability blocks")
        given.add(child)
        body = Body(
            self.text[block.body_at : block.body_end],
            block.body_at,
            (child, self.states[child]),
            [(p, self.states[p]) for p in parents],
            self.fail,
            self._words,
            max(_DEFAULT_CELLS_FLOOR, _DEFAULT_CELLS_PER_CHARACTER * len(self.text)) - self.default_cells,
        )
        try:
            with np.errstate(over="ignore", invalid="ignore"):  # sums of huge numbers, which are errors anyway
                net.add_cpt(child, parents, body.table())
        except ModelError as error:
            self.fail(block.start, str(error))
        self.default_cells += body.filled_cells
        for text in body.properties:
            self._keep_property(child, text)
