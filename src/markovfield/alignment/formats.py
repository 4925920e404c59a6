"""Links as text: the columns of the NAACL 2003 shared task, and Pharaoh's ``0-0 1-2``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from markovfield.alignment.links import GoldLinks, gold_links
from markovfield.exceptions import FormatError, ModelError

__all__ = ["FORMATS", "links_of_text", "text_of_links"]

FORMATS = ("pharaoh", "wa")
_PHARAOH = re.compile(r"(\d{1,9})([-?])(\d{1,9})")
_WA = re.compile(r"\s*(\d{1,9})\s+(\d{1,9})\s+(\d{1,9})(?:\s+([SP]))?(?:\s+[0-9.eE+-]+)?\s*")


def links_of_text(text: str, name: str, *, format: str | None = None, n_pairs: int | None = None) -> list[GoldLinks]:
    """The links of each sentence pair; an error names file, line and column.

    Parameters
    ----------
    text, name
        What is read, and what errors call it.
    format
        ``"wa"``: lines ``pair source target S|P``, numbered from 1, in any order; without S or P a link is sure, and a
        position of 0 is no word, so that nothing is linked. ``"pharaoh"``: a line for each pair, of links
        ``source-target`` numbered from 0; ``source?target`` is only possible. None finds out.
    n_pairs
        How many pairs there are; otherwise lines, or the largest number of a pair, say so.

    Examples
    --------
    >>> [sorted(one.sure) for one in links_of_text("0-0 1-2\\n\\n0-1\\n", "text")]
    [[(0, 0), (1, 2)], [], [(0, 1)]]
    >>> links_of_text("1 1 1 S\\n1 2 1 P\\n", "text")
    [GoldLinks(sure=frozenset({(0, 0)}), possible=frozenset({(1, 0)}))]
    """
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    if format is None:
        first = next((line for line in lines if line.strip()), "")
        format = "wa" if _WA.fullmatch(first) else "pharaoh"
    if format not in FORMATS:
        raise ModelError(f"format of links must be 'pharaoh' or 'wa', got {format!r}")
    found = _of_columns(lines, name) if format == "wa" else _of_lines(lines, name)
    if n_pairs is not None and len(found) > n_pairs:
        raise FormatError(f"{name}:{len(lines)}:1: there are links of {len(found)} pairs, expected {n_pairs}")
    if n_pairs is not None and format == "pharaoh" and len(found) < n_pairs:
        raise FormatError(f"{name}:{len(lines)}:1: there are lines for {len(found)} pairs, expected {n_pairs}")
    found += [GoldLinks(frozenset())] * ((n_pairs or 0) - len(found))
    return found


def _of_columns(lines: Sequence[str], name: str) -> list[GoldLinks]:
    kinds: dict[str, dict[int, set[tuple[int, int]]]] = {"S": {}, "P": {}}
    last = 0
    for k, line in enumerate(lines):
        if not line.strip():
            continue
        match = _WA.fullmatch(line)
        if match is None or int(match[1]) == 0:
            raise FormatError(
                f"{name}:{k + 1}:1: expected the number of a pair, a source and a target position from 1, and S or P, "
                f"found {line.strip()[:40]!r}"
            )
        pair, i, j = int(match[1]), int(match[2]), int(match[3])
        last = max(last, pair)
        if i and j:
            kinds[match[4] or "S"].setdefault(pair, set()).add((i - 1, j - 1))
    none: set[tuple[int, int]] = set()
    return [GoldLinks(*(frozenset(kinds[kind].get(pair, none)) for kind in "SP")) for pair in range(1, last + 1)]


def _of_lines(lines: Sequence[str], name: str) -> list[GoldLinks]:
    found = []
    for k, line in enumerate(lines):
        kinds: dict[str, set[tuple[int, int]]] = {"-": set(), "?": set()}
        for word in re.finditer(r"\S+", line):
            match = _PHARAOH.fullmatch(word[0])
            if match is None:
                raise FormatError(
                    f"{name}:{k + 1}:{word.start() + 1}: expected a link such as 0-1, found {word[0][:40]!r}"
                )
            kinds[match[2]].add((int(match[1]), int(match[3])))
        found.append(GoldLinks(frozenset(kinds["-"]), frozenset(kinds["?"])))
    return found


def text_of_links(links: Iterable[Any], format: str = "pharaoh") -> Iterator[str]:
    """Lines of text, one pair after the other.

    Examples
    --------
    >>> list(text_of_links([[(0, 0), (1, 2)], GoldLinks(frozenset({(0, 0)}), frozenset({(0, 1)}))]))
    ['0-0 1-2\\n', '0-0 0?1\\n']
    >>> list(text_of_links([[(0, 0)], []], "wa"))
    ['1 1 1 S\\n']
    """
    if format not in FORMATS:
        raise ModelError(f"format of links must be 'pharaoh' or 'wa', got {format!r}")
    for k, own in enumerate(links):
        given = gold_links(own, k)
        rows = [(i, j, (i, j) in given.sure) for i, j in sorted(given.allowed)]
        if format == "wa":
            yield from (f"{k + 1} {i + 1} {j + 1} {'S' if sure else 'P'}\n" for i, j, sure in rows)
        else:
            yield " ".join(f"{i}{'-' if sure else '?'}{j}" for i, j, sure in rows) + "\n"
