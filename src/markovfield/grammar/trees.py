"""Trees of constituents: a label over children, which are trees or words."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from markovfield.exceptions import ModelError
from markovfield.frames import Tabular, drawing

__all__ = ["Tree", "cleaned", "rebuilt", "without_function_tags"]

TRACE = "-NONE-"
# Only these spaces separate words: a no-break space, say, is part of one.
SPACES = " \t\r\n\f\v"
_LABEL = re.compile(rf"[^(){SPACES}]+").fullmatch
_WORD = re.compile(rf"[^{SPACES}]+").fullmatch
# What brackets inside of words are written as; in the Penn Treebank they stand so in the text already.
_ESCAPES = str.maketrans({"(": "-LRB-", ")": "-RRB-"})


@dataclass(frozen=True, eq=False, repr=False)
class Tree(Tabular):
    """A constituent: its label and what it is made of, in order.

    Nothing here is recursive: a tree may be as deep as memory allows.

    Parameters
    ----------
    label
        A non-empty string without white space and round brackets, such as ``"NP"``.
    children
        At least one: trees, or words as strings (non-empty, without white space).

    Examples
    --------
    >>> tree = Tree.parse("(S (NP (DT the) (NN dog)) (VP (VBD barked)))")
    >>> tree.leaves
    ('the', 'dog', 'barked')
    >>> tree.spans()
    [('S', 0, 3), ('NP', 0, 2), ('VP', 2, 3)]
    >>> tree == Tree("S", [Tree("NP", [Tree("DT", ["the"]), Tree("NN", ["dog"])]), tree.children[1]])
    True
    >>> [part.label for part in tree if not part.is_preterminal]
    ['S', 'NP', 'VP']
    """

    label: str
    children: tuple[Tree | str, ...]

    def __init__(self, label: str, children: Iterable[Tree | str]) -> None:
        if not isinstance(label, str) or not _LABEL(label):
            raise ModelError(f"a label must be a string without white space and brackets, got {label!r}")
        if isinstance(children, str):
            raise ModelError(f"children of {label} must be a sequence of trees and words, got the string {children!r}")
        below = tuple(children)
        if not below:
            raise ModelError(f"a tree needs at least one child, and this {label} has none")
        for child in below:
            if not isinstance(child, Tree) and not (isinstance(child, str) and _WORD(child)):
                raise ModelError(f"children of {label} must be trees or words without white space, got {child!r}")
        object.__setattr__(self, "label", label)
        object.__setattr__(self, "children", below)

    @classmethod
    def parse(cls, text: str) -> Tree:
        """The tree that a text in brackets describes; an outer bracket without a label is dropped.

        Raises
        ------
        FormatError
            With ``text:line:column``, where brackets do not match or there is not one tree.
        """
        from markovfield.grammar.brackets import one_tree

        return one_tree(text)

    @property
    def is_preterminal(self) -> bool:
        """Whether this is a tag: one word and nothing else."""
        return len(self.children) == 1 and isinstance(self.children[0], str)

    @property
    def leaves(self) -> tuple[str, ...]:
        """The words, from left to right."""
        return tuple(item for item, size in self._flat() if size < 0)

    @property
    def pos(self) -> tuple[tuple[str, str], ...]:
        """Each word with the label of the tree that it is a child of, its tag: ``(word, tag)``."""
        found: list[tuple[str, str]] = []
        stack: list[tuple[Tree | str, str]] = [(self, "")]
        while stack:
            node, above = stack.pop()
            if isinstance(node, str):
                found.append((node, above))
            else:
                stack.extend((child, node.label) for child in reversed(node.children))
        return tuple(found)

    def spans(self, *, tags: bool = False) -> list[tuple[str, int, int]]:
        """Labels with the words they cover, ``leaves[start:end]``, from the top down and from left to right.

        Parameters
        ----------
        tags
            Whether tags (a label over one word and nothing else) are among them.
        """
        return [(node.label, start, end) for node, start, end in self.constituents() if tags or not node.is_preterminal]

    def constituents(self) -> list[tuple[Tree, int, int]]:
        """All trees in this one with the words they cover, in the order of `__iter__`."""
        found: list[tuple[Tree, int, int]] = []
        n = 0
        # From right to left, so that what was found is in order backwards; words are counted from the right.
        stack: list[tuple[Tree | str, int]] = [(self, -1)]
        while stack:
            node, right = stack.pop()
            if isinstance(node, str):
                n += 1
            elif right < 0:
                stack.append((node, n))
                stack.extend((child, -1) for child in node.children)
            else:
                found.append((node, n, right))
        return [(node, n - left, n - right) for node, left, right in reversed(found)]

    def __iter__(self) -> Iterator[Tree]:
        """All trees in this one, itself first, from the top down and from left to right."""
        stack = [self]
        while stack:
            node = stack.pop()
            yield node
            stack.extend(child for child in reversed(node.children) if isinstance(child, Tree))

    def __str__(self) -> str:
        pieces: list[str] = []
        stack: list[Tree | str | None] = [self]
        while stack:
            node = stack.pop()
            if node is None:
                pieces.append(")")
            elif isinstance(node, str):
                pieces.append(" " + node.translate(_ESCAPES))
            else:
                pieces.append(f" ({node.label}")
                stack.append(None)
                stack.extend(reversed(node.children))
        return "".join(pieces)[1:]

    def _columns(self, limit: int | None = None) -> dict[Any, Any]:
        shown = self.spans(tags=True)[:limit]
        return {name: [span[i] for span in shown] for i, name in enumerate(("label", "start", "end"))}

    def _picture(self) -> str:
        return drawing(self, len(self.leaves), "tree")

    def __repr__(self) -> str:
        text = str(self)
        return f"Tree.parse({text!r})" if len(text) <= 200 else f"<Tree {self.label}, {len(self.leaves)} words>"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Tree):
            return NotImplemented
        return self is other or self._flat() == other._flat()

    def __hash__(self) -> int:
        return hash(tuple(self._flat()))

    def __reduce__(self) -> tuple[Callable[..., Tree], tuple[Any, ...]]:
        # Neither copying nor pickling may recurse.
        return _from_flat, (self._flat(),)

    def __copy__(self) -> Tree:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Tree:
        return self

    def _flat(self) -> list[tuple[str, int]]:
        """Labels and how many children each has, words with -1; from the top down and from left to right."""
        found: list[tuple[str, int]] = []
        stack: list[Tree | str] = [self]
        while stack:
            node = stack.pop()
            if isinstance(node, str):
                found.append((node, -1))
            else:
                found.append((node.label, len(node.children)))
                stack.extend(reversed(node.children))
        return found

    def draw(self) -> str:
        """The tree as a picture of characters, for a terminal.

        Examples
        --------
        >>> print(Tree.parse("(S (NP (DT the) (NN dog)) (VP (VBD barked)))").draw())
                S
           ┌────┴───┐
           NP       VP
         ┌─┴──┐     │
         DT   NN   VBD
         │    │     │
        the  dog  barked
        """
        from markovfield.grammar.drawing import drawn_text

        return drawn_text(self)

    def to_svg(self) -> str:
        """The tree as an SVG picture; notebooks show it by themselves."""
        from markovfield.grammar.drawing import drawn_svg

        return drawn_svg(self)

    def _repr_svg_(self) -> str:
        return self.to_svg()


def rebuilt(tree: Tree, make: Callable[[Tree, list[Tree | str]], list[Tree | str]]) -> list[Tree | str]:
    """A tree made anew from below: ``make`` gets a node and what its children became, and says what it becomes.

    That may be nothing or several trees, which then stand where the node stood.
    """
    stack: list[tuple[Tree | str, list[Tree | str] | None]] = [(tree, None)]
    done: list[list[Tree | str]] = [[]]
    while stack:
        node, made = stack.pop()
        if isinstance(node, str):
            done[-1].append(node)
        elif made is None:
            below: list[Tree | str] = []
            done.append(below)
            stack.append((node, below))
            stack.extend((child, None) for child in reversed(node.children))
        else:
            done.pop()
            done[-1].extend(make(node, made))
    return done[0]


def cleaned(tree: Tree, *, traces: bool = False, function_tags: bool = False) -> Tree | None:
    """A tree without traces, and with labels less their function tags; None where nothing is left.

    Parameters
    ----------
    tree
        As the Penn Treebank has it.
    traces
        Whether to keep words under ``-NONE-``; otherwise they go, and so does what would be left without words.
    function_tags
        Whether to keep what follows a label, as in ``NP-SBJ-1`` or ``NP=2``.

    Examples
    --------
    >>> print(cleaned(Tree.parse("(S (NP-SBJ-1 (-NONE- *)) (VP (VB Go)))")))
    (S (VP (VB Go)))
    """

    def make(node: Tree, below: list[Tree | str]) -> list[Tree | str]:
        if not below or (not traces and node.label == TRACE):
            return []
        return [Tree(node.label if function_tags else without_function_tags(node.label), below)]

    found = rebuilt(tree, make)
    return found[0] if found and isinstance(found[0], Tree) else None


@lru_cache(maxsize=65536)
def without_function_tags(label: str) -> str:
    """A label less its function tags and indices: ``NP`` for ``NP-SBJ-1``; ``-LRB-`` and ``PRP$`` stay.

    Examples
    --------
    >>> without_function_tags("NP-SBJ-1"), without_function_tags("NP=2"), without_function_tags("-LRB-")
    ('NP', 'NP', '-LRB-')
    """
    if label.startswith(("-", "=")):
        return label
    return label.partition("-")[0].partition("=")[0]


def _from_flat(flat: list[tuple[str, int]]) -> Tree:
    stack: list[Tree | str] = []
    for label, size in reversed(flat):
        if size < 0:
            stack.append(label)
        else:
            below = stack[: -size - 1 : -1]
            del stack[-size:]
            stack.append(Tree(label, below))
    (tree,) = stack
    assert isinstance(tree, Tree)
    return tree
