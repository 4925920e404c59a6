"""Trees written in brackets, as in the Penn Treebank: ``( (S (NP (DT the) (NN dog)) (VP (VBD barked))) )``.

One pass over the text with a stack of its own. Where a tree is broken and errors are collected, reading goes on at the
next line that begins with a bracket (what continues a tree is indented), so that one bad tree costs itself only.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from markovfield.exceptions import FormatError
from markovfield.grammar.trees import SPACES, Tree

__all__ = ["bracketed_trees", "one_tree"]

# What a broken tree may hold is quoted no longer than this.
_SHOWN = 30
_TOKEN = re.compile(rf"[()]|[^(){SPACES}]+")
_START = re.compile(r"^\(", re.MULTILINE)


class _BrokenError(Exception):
    """Where and why a tree cannot be read, and how far its text was looked at."""

    def __init__(self, at: int, why: str, seen: int) -> None:
        super().__init__(why)
        self.at, self.why, self.seen = at, why, seen


def one_tree(text: str) -> Tree:
    """The only tree of a text."""
    trees = list(bracketed_trees(text, "text"))
    if len(trees) != 1:
        raise FormatError(f"text:1:1: expected one tree in brackets, found {len(trees)}")
    return trees[0]


def bracketed_trees(
    text: str, name: str, *, top: str | None = None, skipped: list[FormatError] | None = None
) -> Iterator[Tree]:
    """The trees of a text, one after the other.

    Parameters
    ----------
    text
        Trees in brackets.
    name
        What errors call the text.
    top
        Label for an outer bracket that has none; when None such a bracket is dropped (and is ``TOP`` where it holds
        several trees).
    skipped
        Where given, what cannot be read is left out and its error is put here.
    """
    at = 0
    # Below this place a line that begins with a bracket begins a tree, because what stood there was found broken.
    broken_until = 0
    # The next such line, and the number of the line that holds a place: both only move on, so all is linear.
    following, counted, n_lines = 0, 0, 1
    while (start := _next(text, at)) < len(text):
        if following <= start:
            line = _START.search(text, start + 1)
            following = line.start() if line else len(text)
        try:
            tree, at = _tree(text, start, following if start < broken_until else len(text), top)
        except _BrokenError as broken:
            n_lines += text.count("\n", counted, start)
            counted = start
            line_number = n_lines + text.count("\n", start, broken.at)
            column = broken.at - text.rfind("\n", 0, broken.at)
            error = FormatError(f"{name}:{line_number}:{column}: {broken.why}")
            if skipped is None:
                raise error from None
            skipped.append(error)
            broken_until = max(broken_until, broken.seen)
            at = following
        else:
            yield tree


def _next(text: str, at: int) -> int:
    token = _TOKEN.search(text, at)
    return token.start() if token else len(text)


def _tree(text: str, start: int, stop: int, top: str | None) -> tuple[Tree, int]:
    """The tree that begins at a place, and where it ends."""
    # For each open bracket its place, its label ("" until it is known) and its children.
    opened: list[tuple[int, str, list[Tree | str]]] = []
    labelled = True
    for token in _TOKEN.finditer(text, start, stop):
        word, at = token[0], token.start()
        if word == "(":
            if not labelled and len(opened) > 1:
                raise _BrokenError(at, "expected a label after a bracket, found another bracket", token.end())
            opened.append((at, "", []))
            labelled = False
        elif word == ")":
            if not opened:
                raise _BrokenError(at, "this closing bracket closes nothing", token.end())
            begun, label, below = opened.pop()
            if not below:
                what = (
                    f"the bracket of {label[:_SHOWN]!r} has a label and nothing below it" if label else "empty bracket"
                )
                raise _BrokenError(begun, what, token.end())
            labelled = True
            if opened:
                opened[-1][2].append(Tree(label, below))
            elif label:
                return Tree(label, below), token.end()
            else:
                return _outer(below, top), token.end()
        elif not opened:
            raise _BrokenError(at, f"expected an opening bracket, found {word[:_SHOWN]!r}", token.end())
        elif labelled:
            opened[-1][2].append(word)
        else:
            opened[-1] = (opened[-1][0], word, [])
            labelled = True
    raise _BrokenError(opened[-1][0] if opened else start, "this bracket is never closed", stop)


def _outer(below: list[Tree | str], top: str | None) -> Tree:
    """The tree of an outer bracket without a label."""
    (first, *others) = below
    if top is None and not others and isinstance(first, Tree):
        return first
    return Tree(top or "TOP", below)
