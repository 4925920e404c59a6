"""Hugin .net files, token by token."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from itertools import chain, islice, pairwise
from typing import NoReturn

from markovfield.io._families import Families
from markovfield.models import BayesianNetwork
from markovfield.text_files import Source

__all__ = ["NAME_ATTRIBUTE", "PROPERTY_ATTRIBUTE", "HuginReader", "is_value", "string_value"]

# Attributes of our own, which Hugin allows and passes over: names that are no identifiers, and other free texts.
NAME_ATTRIBUTE = "markovfield_name"
PROPERTY_ATTRIBUTE = "markovfield_property"

# Possessive, and a string that is never closed is one token to the end of the file: linear on any input.
_STRING = r'"(?:[^"\\]++|\\.)*+"?+'
_CLOSED_STRING = re.compile(r'"(?:[^"\\]++|\\.)*+"', re.DOTALL)
_TOKEN = re.compile(rf'{_STRING}|[(){{}}=;|,:]|[^\s(){{}}=;|,:"]++', re.DOTALL)
_ASIDE = re.compile(rf"{_STRING}|%[^\n]*+", re.DOTALL)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r", '"': '"', "\\": "\\"}
_SIGNS = frozenset("(){}=;|,:")
_ASTRAY = frozenset("{}=|")
_DEEPEST = 100  # more than any table has axes

_REFUSED_NODES = {
    "continuous": "continuous nodes",
    "decision": "decision nodes",
    "utility": "utility nodes",
    "function": "function nodes",
    "instance": "instances of classes",
}
_REFUSED_TABLES = {
    "model_nodes": "tables given by a model (model_nodes)",
    "model_data": "tables given by a model (model_data)",
    "samples_per_interval": "tables given by a model (samples_per_interval)",
    "experience": "experience tables",
    "fading": "fading tables",
}


def string_value(token: str) -> str:
    """What a token stands for: a quoted one without quotes and escapes."""
    if token[0] != '"':
        return token
    return _ESCAPE.sub(lambda m: _ESCAPED.get(m[1], m[0]), token[1:-1]) if "\\" in token else token[1:-1]


def is_value(text: str) -> bool:
    """Whether a text is the value of an attribute, spaced as `HuginReader` keeps it."""
    tokens = _TOKEN.findall(text)
    odd = any("%" in t or t == ";" if t[0] != '"' else not _CLOSED_STRING.fullmatch(t) for t in tokens)
    return bool(tokens) and not odd and _fault(tokens) is None and _spaced(tokens) == text


def _spaced(tokens: list[str]) -> str:
    """Tokens as text: a space between two, but none inside a pair of parentheses."""
    if len(tokens) == 1:
        return tokens[0]
    gaps = ["" if a == "(" or b == ")" else " " for a, b in pairwise(tokens)]
    return "".join(chain.from_iterable(zip(tokens, [*gaps, ""], strict=True)))


def _fault(value: list[str]) -> tuple[int, str] | None:
    """Which token of a value, a word or a list in parentheses, is wrong, and how."""
    if astray := _ASTRAY.intersection(value):
        first = min(map(value.index, astray))
        return first, f"is not closed by ';' before {value[first]!r}"
    if value[0] == "(":
        if value.count("(") > value.count(")"):
            return 0, "has parentheses that are never closed"
        depth = 0
        for i, token in enumerate(value):
            depth += (token == "(") - (token == ")")
            if depth > _DEEPEST:
                return i, f"has parentheses nested more than {_DEEPEST} deep"
            if depth <= 0 and i + 1 < len(value):
                return i, "has parentheses that close before its end"
    return None


@dataclass
class HuginReader:
    """Reads one file, with nothing but `FormatError` for what is wrong in it; positions are numbers of tokens."""

    source: Source
    tokens: list[str] = field(default_factory=list)
    text: str = ""
    at: int = 0

    def __post_init__(self) -> None:
        self.text = self.source.text()
        if "%" in self.text:
            self.text = _ASIDE.sub(lambda m: m[0] if m[0][0] == '"' else " " * len(m[0]), self.text)
        self.tokens = _TOKEN.findall(self.text)
        self.families = Families(self.source, self.fail, "potential")
        self.names: dict[str, str] = {}
        self.potentials: list[tuple[int, list[str], list[str]]] = []

    def fail(self, at: int, message: str) -> NoReturn:
        """Raise a `FormatError` at a token, or at the end of the file."""
        place = len(self.text.rstrip())
        if 0 <= at < len(self.tokens):
            place = next(islice(_TOKEN.finditer(self.text), at, None)).start()
        mark = 3 if self.source.data.startswith(b"\xef\xbb\xbf") else 0
        # In characters the text is as long as the file's, but blanked comments may have had more bytes.
        raise self.source.error(mark + len(self.source.text()[:place].encode()), message) from None

    def read(self) -> BayesianNetwork:
        """The network, or a `FormatError`."""
        for i, token in enumerate(self.tokens[-2:], max(len(self.tokens) - 2, 0)):
            if token[0] == '"' and not _CLOSED_STRING.fullmatch(token):
                self.fail(i, "this quoted string is never closed")
        in_class = False
        seen: set[str] = set()
        while self.at < len(self.tokens):
            start, word = self.at, self._next("a block")
            if word in ("net", "class"):
                if word in seen:
                    self.fail(start, f"this is the second {word} block of the file")
                seen.add(word)
            if word == "class":
                self.families.name = string_value(self._word("the name of the class"))
                self._expect("{", "a class")
                in_class = True
            elif word == "net":
                self._expect("{", "a net block")
                self._net_attributes()
            elif word in _REFUSED_NODES:
                self.fail(
                    start, f"{_REFUSED_NODES[word]} are not supported: a Bayesian network has discrete chance nodes"
                )
            elif word in ("node", "discrete"):
                if word == "discrete":
                    self._expect("node", "discrete")
                self._node(start)
            elif word == "potential":
                self._potential(start)
            elif in_class and word == "}":
                in_class = False
            elif in_class and word not in _SIGNS and self._peek() == "=":
                self._keep(None, word, self._value(word))
            else:
                self.fail(start, f"expected net, node or potential, got {word[:30]!r}")
        if in_class:
            self.fail(-1, "the class is never closed")
        for start, family, words in self.potentials:
            self.families.add_table(start, [self.names.get(v, v) for v in family], words)
        return self.families.network()

    def _peek(self) -> str:
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def _next(self, what: str) -> str:
        if self.at >= len(self.tokens):
            self.fail(-1, f"the file ends where {what} should come")
        self.at += 1
        return self.tokens[self.at - 1]

    def _word(self, what: str) -> str:
        token = self._next(what)
        if token in _SIGNS:
            self.fail(self.at - 1, f"expected {what}, got {token!r}")
        return token

    def _expect(self, sign: str, what: str) -> None:
        token = self._next(f"{sign!r} of {what}")
        if token != sign:
            self.fail(self.at - 1, f"expected {sign!r} of {what}, got {token[:30]!r}")

    def _value(self, key: str) -> list[str]:
        """The tokens of an attribute's value, up to its semicolon; a list's parentheses must match."""
        self._expect("=", key)
        start = self.at
        try:
            end = self.tokens.index(";", start)
        except ValueError:
            self.fail(start - 1, f"{key[:30]!r} is never closed by ';'")
        value = self.tokens[start:end]
        if not value:
            self.fail(end, f"{key[:30]!r} has no value")
        if fault := _fault(value):
            self.fail(start + fault[0], f"{key[:30]!r} {fault[1]}")
        self.at = end + 1
        return value

    def _keep(self, owner: str | None, key: str, value: list[str]) -> None:
        """Keep an attribute as a property: our own by its text, others as ``key = value``."""
        if key == PROPERTY_ATTRIBUTE and len(value) == 1:
            self.families.add_property(owner, string_value(value[0]))
        else:
            self.families.add_property(owner, f"{key} = {_spaced(value)}")

    def _net_attributes(self) -> None:
        while self._peek() != "}":
            key = self._word("an attribute of the net")
            value = self._value(key)
            if key in (NAME_ATTRIBUTE, "name") and len(value) == 1:
                self.families.name = string_value(value[0])
            else:
                self._keep(None, key, value)
        self._expect("}", "the net block")

    def _node(self, start: int) -> None:
        identifier = name = string_value(self._word("the name of a node"))
        self._expect("{", f"node {name[:30]!r}")
        states: list[str] | None = None
        kept: list[tuple[str, list[str]]] = []
        while self._peek() != "}":
            key = self._word(f"an attribute of node {name[:30]!r}")
            value = self._value(key)
            if key == "states":
                if states is not None:
                    self.fail(start, f"node {name[:30]!r} has two lists of states")
                states = [string_value(token) for token in value if token not in _SIGNS]
            elif key == NAME_ATTRIBUTE and len(value) == 1:
                name = string_value(value[0])
            else:
                kept.append((key, value))
        self._expect("}", f"node {name[:30]!r}")
        if identifier in self.names:
            self.fail(start, f"node {identifier[:30]!r} is declared twice")
        self.names[identifier] = name
        self.families.add_variable(start, name, states or [])
        for key, value in kept:
            self._keep(name, key, value)

    def _potential(self, start: int) -> None:
        self._expect("(", "a potential")
        try:
            end = self.tokens.index(")", self.at)
        except ValueError:
            self.fail(start, "this potential is never closed")
        head, self.at = self.tokens[self.at : end], end + 1
        heads = head.index("|") if "|" in head else len(head)
        family = [string_value(token) for token in head if token not in _SIGNS]
        if heads != 1 or not family:
            self.fail(start, f"a potential is of one variable given its parents, and this one is of {heads}")
        if len(family) != len(head) - ("|" in head):
            self.fail(start, "expected potential ( variable | parents )")
        self._expect("{", f"the potential of {family[0][:30]!r}")
        words: list[str] | None = None
        while self._peek() != "}":
            at, key = self.at, self._word(f"the data of the potential of {family[0][:30]!r}")
            if key in _REFUSED_TABLES:
                self.fail(at, f"{_REFUSED_TABLES[key]} are not supported; export the network with plain tables")
            value = self._value(key)
            if key == "data":
                if words is not None:
                    self.fail(at, f"the potential of {family[0][:30]!r} has two data")
                if value[0] != "(":
                    self.fail(
                        at, f"expected numbers in parentheses as the data of {family[0][:30]!r}, got {value[0][:30]!r}"
                    )
                words = [token for token in value if token not in _SIGNS]
        self._expect("}", f"the potential of {family[0][:30]!r}")
        if words is None:
            self.fail(start, f"the potential of {family[0][:30]!r} has no data")
        self.potentials.append((start, family, words))
