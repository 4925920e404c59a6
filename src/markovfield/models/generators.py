"""Hierarchical log-linear models as they are written: sets of variables that interact, the generators."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import Any

from markovfield.exceptions import ModelError
from markovfield.names import VariableName

__all__ = ["generator_text", "maximal_sets", "read_generators"]

_ALL = re.compile(r"all\s+(\d+)-way", re.IGNORECASE)
_POWER = re.compile(r"(?:\.|\((?P<inside>[^()]*)\))\s*\^\s*(?P<power>\d+)")


def maximal_sets(sets: Iterable[Iterable[Any]]) -> list[tuple[Any, ...]]:
    """The sets that are in no other one, each once, in the order they came.

    Examples
    --------
    >>> maximal_sets(["A", "AB", "BC", "BA"])
    [('A', 'B'), ('B', 'C')]
    """
    given = [tuple(dict.fromkeys(s)) for s in sets]
    members = [frozenset(s) for s in given]
    holders: dict[Any, list[int]] = {}
    for i, s in enumerate(members):
        for v in s:
            holders.setdefault(v, []).append(i)
    kept = []
    for i, s in enumerate(members):
        # A set that holds this one holds its rarest member.
        rivals = min((holders[v] for v in s), key=len) if s else range(len(members))
        inside = any(j != i and (s < members[j] or (s == members[j] and j < i)) for j in rivals)
        if not inside:
            kept.append(given[i])
    return kept


def read_generators(
    notation: str | Iterable[Sequence[VariableName]], variables: Sequence[VariableName]
) -> tuple[tuple[VariableName, ...], ...]:
    """Generators from any of the notations in use; those inside others are dropped.

    Parameters
    ----------
    notation
        ``"AB/BC"`` or ``"[AB][BC]"``, where a word that is no variable is taken letter by letter;
        ``"[age sex][sex]"``, ``"age*sex/sex"`` or ``"age*sex + sex*smoke"`` for longer names (``:`` is as good as
        ``*``); ``"(A + B + C)^2"`` and ``".^2"``, all pairs of those or of all variables; ``"all 2-way"``; or a list
        of sequences of names.
    variables
        The names there are.

    Examples
    --------
    >>> read_generators("AB/BC/C", "ABC")
    (('A', 'B'), ('B', 'C'))
    >>> read_generators("age*sex + sex + (sex + town + age)^2", ["age", "sex", "town"])
    (('age', 'sex'), ('sex', 'town'), ('town', 'age'))
    """
    names = list(variables)
    if isinstance(notation, str):
        sets = list(_parsed(notation, names))
    elif isinstance(notation, Iterable):
        sets = [(s,) if isinstance(s, int) else _word(s, names) if isinstance(s, str) else tuple(s) for s in notation]
    else:
        raise ModelError(f"generators are a text such as 'AB/BC' or a list of lists, got {type(notation).__name__}")
    known = set(names)
    for s in sets:
        unknown = next((v for v in s if v not in known), None)
        if unknown is not None:
            raise ModelError(f"the generator {list(s)!r} names {unknown!r}, which is not a variable")
        if len(set(s)) < len(s):
            raise ModelError(f"the generator {list(s)!r} names a variable twice")
    if not sets:
        raise ModelError("generators name no variable; the model of independence is written 'A/B/C'")
    return tuple(maximal_sets(sets))


def _parsed(text: str, names: list[VariableName]) -> Iterable[tuple[VariableName, ...]]:
    """The sets a text names, one after another."""
    whole = _ALL.fullmatch(text.strip())
    if whole:
        yield from _all_of(names, int(whole[1]), text)
        return
    if "[" in text:
        if re.sub(r"\[[^][]*\]", "", text).strip():
            raise ModelError(f"generators in brackets are written '[AB][BC]', got {text!r}")
        parts = re.findall(r"\[([^][]*)\]", text)
    else:
        parts = [p for p in re.split(r"[/+](?![^()]*\))", text.strip().removeprefix("~")) if p.strip()]
    for part in parts:
        power = _POWER.fullmatch(part.strip())
        if power:
            inside = power["inside"]
            among = names if inside is None else [v for p in inside.split("+") for v in _word(p, names)]
            yield from _all_of(among, int(power["power"]), text)
        else:
            yield tuple(v for word in re.split(r"[\s,*:]+", part.strip()) if word for v in _word(word, names))


def _all_of(names: Sequence[VariableName], k: int, text: str) -> Iterable[tuple[VariableName, ...]]:
    if not 1 <= k <= len(names):
        raise ModelError(f"{text!r} asks for interactions of {k} of {len(names)} variables")
    return combinations(names, k)


def _word(word: str, names: list[VariableName]) -> tuple[VariableName, ...]:
    """A variable's name, or the names of its letters."""
    word = word.strip()
    if word in names:
        return (word,)
    by_text = {str(v): v for v in names}
    if word in by_text:
        return (by_text[word],)
    letters = tuple(by_text.get(letter) for letter in word)
    if not word or None in letters:
        shown = ", ".join(repr(v) for v in names[:6]) + (", ..." if len(names) > 6 else "")
        raise ModelError(f"generators name {word!r}, which is neither a variable nor made of their letters: {shown}")
    return tuple(v for v in letters if v is not None)


def generator_text(generators: Iterable[Sequence[VariableName]]) -> str:
    """Generators in brackets, as papers write them.

    Examples
    --------
    >>> generator_text([("A", "B"), ("C",)]), generator_text([("age", "sex")])
    ('[AB][C]', '[age sex]')
    """
    sets = [[str(v) for v in s] for s in generators]
    joint = "" if all(len(v) == 1 for s in sets for v in s) else " "
    return "".join(f"[{joint.join(s)}]" for s in sets)
