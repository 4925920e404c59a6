"""Wapiti's small language of patterns over the characters of a word."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable

__all__ = ["SimplePattern"]

_Test = Callable[[str], bool]


def _is_punctuation(character: str) -> bool:
    return unicodedata.category(character)[0] in "PS"


_CLASSES: dict[str, _Test] = {
    "a": str.isalpha,
    "d": str.isdigit,
    "l": str.islower,
    "p": _is_punctuation,
    "s": str.isspace,
    "u": str.isupper,
    "w": str.isalnum,
}


def _complement(test: _Test) -> _Test:
    return lambda character: not test(character)


class SimplePattern:
    """A pattern: characters, ``.``, classes, each perhaps repeated, perhaps anchored.

    ``\\d`` is a digit, ``\\a`` a letter, ``\\w`` either, ``\\l`` and ``\\u`` a small and a capital letter, ``\\p``
    punctuation, ``\\s`` a space, in capitals everything else; a backslash takes any other character for itself. ``*``
    repeats the character before it, as seldom as will do; ``?`` makes it optional. ``^`` first and ``$`` last anchor.
    What matches first in the text is taken. Classes are those of Unicode; on ASCII they are Wapiti's.
    """

    def __init__(self, pattern: str) -> None:
        self.at_start = pattern.startswith("^")
        pattern = pattern[self.at_start :]
        self.items: list[tuple[_Test, str]] = []
        self.at_end = False
        i = 0
        while i < len(pattern):
            character = pattern[i]
            if character == "$" and i == len(pattern) - 1:
                self.at_end = True
                break
            if character in "*?":
                raise ValueError(f"{character} repeats nothing; write \\{character} for the character itself")
            if character == "\\":
                i += 1
                if i == len(pattern):
                    raise ValueError("it ends in a backslash")
                test = _class(pattern[i])
            elif character == ".":
                test = _anything
            else:
                test = character.__eq__
            i += 1
            repeated = pattern[i] if i < len(pattern) and pattern[i] in "*?" else ""
            i += len(repeated)
            self.items.append((test, repeated))

    def find(self, text: str) -> tuple[int, int] | None:
        """Where the first match starts and ends, or None."""
        for start in range(1 if self.at_start else len(text) + 1):
            end = self._end(text, start)
            if end is not None:
                return start, end
        return None

    def test(self, text: str) -> str:
        """``"true"`` or ``"false"``, whether something matches."""
        return "false" if self.find(text) is None else "true"

    def match(self, text: str) -> str:
        """The part that matches; nothing where none does."""
        found = self.find(text)
        return "" if found is None else text[found[0] : found[1]]

    def _end(self, text: str, start: int) -> int | None:
        """Where a match from a start ends: a search over (item, place), each looked at once, so in linear time."""
        # The stack holds what to try, the preferred last; a state that failed before would fail again.
        stack, tried = [(0, start)], set()
        while stack:
            state = stack.pop()
            if state in tried:
                continue
            tried.add(state)
            item, at = state
            if item == len(self.items):
                if not self.at_end or at == len(text):
                    return at
                continue
            test, repeated = self.items[item]
            fits = at < len(text) and test(text[at])
            if repeated == "*":
                if fits:
                    stack.append((item, at + 1))
                stack.append((item + 1, at))
            else:
                if repeated == "?":
                    stack.append((item + 1, at))
                if fits:
                    stack.append((item + 1, at + 1))
        return None


def _anything(character: str) -> bool:
    return True


def _class(letter: str) -> _Test:
    if letter in _CLASSES:
        return _CLASSES[letter]
    if letter.lower() in _CLASSES and letter.isascii():
        return _complement(_CLASSES[letter.lower()])
    return letter.__eq__
