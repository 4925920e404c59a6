"""Feature templates as CRF++ and Wapiti write them."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from markovfield.exceptions import FormatError, ModelError
from markovfield.sequence.text._expansion import Column, Corpus, TokenAttributes, join
from markovfield.sequence.text._wapiti_patterns import SimplePattern
from markovfield.sequence.text.sequences import ColumnCorpus, SequenceData
from markovfield.sequence.text.vectoriser import AttributeVectoriser

__all__ = ["Macro", "Rule", "Template"]

_MACRO = re.compile(
    r"""%(?P<letter>[xXtTmM])\[\s*(?P<absolute>@?)\s*(?P<row>[-+]?\d{1,9})\s*,\s*(?P<column>\d{1,9})\s*"""
    r"""(?:,\s*"(?P<pattern>(?:[^"\\]|\\.)*)"\s*)?\]"""
)
_WAPITI_ONLY = re.compile(r"%[XtTmM]\[|%x\[\s*@")
_WAPITI_FARTHEST = 4


@dataclass(frozen=True)
class Macro:
    """One ``%x[row,column]`` and its kin: what is read at another token, and what is made of it."""

    letter: str
    row: int
    column: int
    absolute: bool = False
    pattern: str | None = None
    rewrite: Callable[[str], str] | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class Rule:
    """A line of a template: texts and macros, and whether it speaks of tokens, of edges between them, or of both."""

    text: str
    parts: tuple[str | Macro, ...]
    of_tokens: bool
    of_edges: bool

    @property
    def is_constant(self) -> bool:
        """Whether it reads nothing of the input."""
        return not any(isinstance(part, Macro) for part in self.parts)


@dataclass(frozen=True)
class Template:
    """Rules that make attributes of tokens and of edges from the columns of a corpus.

    In both languages a line is a rule: ``U00:%x[-1,0]/%x[0,0]`` makes an attribute of each token from column 0 of the
    token before it and of itself; a line that starts with ``B`` makes attributes of the edge to a token from the one
    before it, and ``B`` alone stands for plain transitions between labels. Wapiti writes ``u`` and ``b``, and ``*``
    for both at once; ``%X`` is in lower case; ``%t[0,0,"^\\u"]`` is ``true`` or ``false``, whether a pattern matches,
    and ``%m[0,0,"...$"]`` the part that it matches; ``%x[@1,0]`` is the first token, ``%x[@-1,0]`` the last.

    Beyond a sequence's ends, CRF++ reads ``_B-1``, ``_B-2``, ... and ``_B+1``, ...; Wapiti ``_x-1`` to ``_x-4``, then
    ``_x-#``, and so after the end. In CRF++, ``#`` starts a comment only as the first character; in Wapiti anywhere.

    Attributes
    ----------
    rules
        The lines, in order.
    dialect
        ``"crf++"`` or ``"wapiti"``.

    Examples
    --------
    >>> template = Template.parse("U00:%x[-1,0]\\nU01:%x[0,0]/%x[0,1]\\nB")
    >>> template.expand([("He", "PRP"), ("ran", "VBD")])
    [['U00:_B-1', 'U01:He/PRP'], ['U00:He', 'U01:ran/VBD']]
    >>> template.has_transitions
    True
    """

    rules: tuple[Rule, ...]
    dialect: str

    @classmethod
    def parse(cls, text: str, *, dialect: str | None = None, name: str = "template") -> Template:
        """Read a template; without a ``dialect``, what only Wapiti has makes it one of Wapiti's.

        Raises
        ------
        FormatError
            With ``name:line:column``, where a line is no rule.
        """
        if dialect is None:
            dialect = "wapiti" if _looks_like_wapiti(text) else "crf++"
        if dialect not in ("crf++", "wapiti"):
            raise ModelError(f"Template.parse: dialect must be 'crf++' or 'wapiti', got {dialect!r}")
        rules = []
        for number, line in enumerate(text.split("\n"), 1):
            if dialect == "wapiti":
                line = line.partition("#")[0]
            line = line.rstrip()
            if line and not line.startswith("#"):
                rules.append(_rule(line, dialect, f"{name}:{number}"))
        return cls(tuple(rules), dialect)

    @classmethod
    def read(cls, path: str | os.PathLike[str], *, dialect: str | None = None) -> Template:
        """Read a template from a file of UTF-8 text; see `parse`."""
        name = os.fspath(path)
        with open(name, "rb") as stream:
            raw = stream.read()
        try:
            return cls.parse(raw.decode().removeprefix("\ufeff"), dialect=dialect, name=name)
        except UnicodeDecodeError as error:
            line = raw.count(b"\n", 0, error.start) + 1
            raise FormatError(f"{name}:{line}:1: this line is not UTF-8 text") from None

    @property
    def has_transitions(self) -> bool:
        """Whether some rule stands for plain transitions between labels: one of edges that reads nothing."""
        return any(rule.of_edges and rule.is_constant for rule in self.rules)

    @property
    def n_columns(self) -> int:
        """How many columns a corpus must have at least."""
        macros = [part for rule in self.rules for part in rule.parts if isinstance(part, Macro)]
        return max((macro.column + 1 for macro in macros), default=0)

    def expand(self, sequence: Sequence[Sequence[str]]) -> list[list[str]]:
        """The attributes of each token of one sequence, whose tokens are rows of texts."""
        return list(self.transform([sequence])[0])

    def expand_edges(self, sequence: Sequence[Sequence[str]]) -> list[list[str]]:
        """The attributes of the edge from the token before to each token of one sequence; see `transform_edges`."""
        return list(self.transform_edges([sequence])[0])

    def transform(self, corpus: ColumnCorpus | Iterable[Sequence[Sequence[str]]]) -> TokenAttributes:
        """For each sequence and token the list of its attributes; equal ones are one object.

        Time is that of sorting the combinations of columns; a text is made once for each that occurs.
        """
        corpus = _corpus(corpus)
        return TokenAttributes(self._columns(corpus, edges=False), corpus.sequence_offsets)

    def transform_edges(self, corpus: ColumnCorpus | Iterable[Sequence[Sequence[str]]]) -> TokenAttributes:
        """For each sequence and token the attributes of the edge to it; the first token of a sequence has none.

        Constant rules are left out: their attribute is the transition itself (see `has_transitions`).
        """
        corpus = _corpus(corpus)
        return TokenAttributes(self._columns(corpus, edges=True), corpus.sequence_offsets)

    def vectorise(
        self,
        corpus: ColumnCorpus | Iterable[Sequence[Sequence[str]]],
        vectoriser: AttributeVectoriser,
        *,
        fit: bool = False,
        edges: bool = False,
    ) -> SequenceData:
        """`transform` and the vectoriser's own ``transform`` in one, without the lists between them.

        With ``fit``, the vectoriser learns the names first; with ``edges``, it is `transform_edges`. Attributes get
        other numbers than from the lists, for they are seen rule by rule.
        """
        found = self.transform_edges(corpus) if edges else self.transform(corpus)
        return found.encoded(vectoriser, fit=fit)

    def _columns(self, corpus: ColumnCorpus, *, edges: bool) -> list[Column]:
        if not corpus.n_tokens:
            return []
        rules = [r for r in self.rules if (r.of_edges and not r.is_constant if edges else r.of_tokens)]
        for rule in rules:
            for part in rule.parts:
                if isinstance(part, Macro) and part.column >= len(corpus.names):
                    raise ModelError(
                        f"the rule {rule.text!r} asks for column {part.column}, and the corpus has {len(corpus.names)} "
                        "(counted from 0)"
                    )
        view = Corpus(corpus)
        seen: dict[Macro, Column] = {}
        result = []
        for rule in rules:
            parts: list[str | Column] = []
            for part in rule.parts:
                if isinstance(part, Macro) and part not in seen:
                    seen[part] = self._read(part, view)
                parts.append(seen[part] if isinstance(part, Macro) else part)
            column = join(parts, corpus.n_tokens)
            if edges:
                codes = column.codes.copy()
                codes[view.positions == 0] = -1
                column = Column(codes, column.texts)
            result.append(column)
        return result

    def _read(self, macro: Macro, view: Corpus) -> Column:
        outside = _outside_wapiti if self.dialect == "wapiti" else _outside_crfpp
        column = view.at(view.columns[macro.column], macro.row, outside, absolute=macro.absolute)
        return column if macro.rewrite is None else column.mapped(macro.rewrite)


def _outside_crfpp(steps: int) -> str:
    return f"_B{steps:+d}"


def _outside_wapiti(steps: int) -> str:
    return f"_x{steps:+d}" if abs(steps) <= _WAPITI_FARTHEST else f"_x{'-' if steps < 0 else '+'}#"


def _corpus(given: ColumnCorpus | Iterable[Sequence[Sequence[str]]]) -> ColumnCorpus:
    return given if isinstance(given, ColumnCorpus) else ColumnCorpus.from_rows(given)


def _looks_like_wapiti(text: str) -> bool:
    lines = [line for line in text.split("\n") if line and not line.startswith("#")]
    return any(line[0] in "ub*" for line in lines) or any(_WAPITI_ONLY.search(line) for line in lines)


def _rule(line: str, dialect: str, where: str) -> Rule:
    kind = line[0]
    if dialect == "wapiti":
        line = line[0].lower() + line[1:]
        kind = {"u": "U", "b": "B"}.get(line[0], line[0])
    if kind not in ("UB*" if dialect == "wapiti" else "UB"):
        starts = "u, b or *" if dialect == "wapiti" else "U or B"
        raise FormatError(f"{where}:1: a rule of a {dialect} template starts with {starts}, got {line[:40]!r}")
    parts: list[str | Macro] = []
    at = 0
    while at < len(line):
        percent = line.find("%", at)
        if percent < 0:
            parts.append(line[at:])
            break
        if percent > at:
            parts.append(line[at:percent])
        match = _MACRO.match(line, percent)
        if match is None or (dialect == "crf++" and _WAPITI_ONLY.match(line, percent)):
            raise FormatError(f"{where}:{percent + 1}: expected a macro such as %x[-1,0], got {line[percent:][:40]!r}")
        parts.append(_macro(match, f"{where}:{percent + 1}"))
        at = match.end()
    return Rule(line, tuple(parts), kind in "U*", kind in "B*")


def _macro(match: re.Match[str], where: str) -> Macro:
    letter, pattern = match["letter"], match["pattern"]
    lower = letter.lower()
    if (pattern is not None) != (lower in "tm"):
        wants = 'needs a pattern, as in %t[0,0,"^\\u"]' if lower in "tm" else "takes no pattern"
        raise FormatError(f"{where}: %{letter} {wants}, got {match[0][:40]!r}")
    steps: list[Callable[[str], Any]] = []
    if pattern is not None:
        try:
            compiled = SimplePattern(pattern)
        except ValueError as error:
            raise FormatError(f"{where}: the pattern {pattern[:40]!r} is none of Wapiti's: {error}") from None
        steps.append(compiled.test if lower == "t" else compiled.match)
    if letter != lower:
        steps.append(str.lower)
    rewrite: Callable[[str], str] | None = None
    if steps:

        def rewrite(text: str) -> str:
            for step in steps:
                text = step(text)
            return text

    absolute = bool(match["absolute"])
    row = int(match["row"])
    if absolute and row == 0:
        raise FormatError(f"{where}: %{letter}[@0,...] is no token: the first is @1, the last @-1")
    return Macro(letter, row, int(match["column"]), absolute, pattern, rewrite)
