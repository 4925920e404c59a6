"""Trees with at most two children below each node, and back: Markovisation, parent annotation, chains of unaries.

A node of more than two children becomes several, all but the upper one with a new label that begins with ``@``; what
it remembers of its siblings (``horizontal``) and of its ancestors (``vertical``) says which independences a grammar
read off the trees assumes (Klein and Manning 2003). Both ways are linear in the size of a tree.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from markovfield.exceptions import ModelError
from markovfield.grammar.heads import head_child
from markovfield.grammar.trees import Tree, rebuilt

__all__ = ["Binarisation", "collapse_unaries", "expand_unaries"]

NEW = "@"
ABOVE = "^"
JOIN = "+"


@dataclass(frozen=True)
class Binarisation:
    """How trees are made binary: a transformation with an exact inverse.

    Parameters
    ----------
    direction
        Children are taken off one by one: with ``"right"`` from the left (new nodes are right children), with
        ``"left"`` from the right; with ``"head"`` those to the left of the head from the left, then those to its right
        from the right, so that the head is the deepest.
    horizontal
        How many siblings the label of a new node names: those just taken off, or with ``"head"`` the outermost below
        it, beside the head. None names all.
    vertical
        How many labels a node's label is made of, itself, its parent and so on: ``NP^S`` with 2. Tags stay as they are.

    Examples
    --------
    >>> tree = Tree.parse("(NP (DT a) (JJ big) (JJ old) (NN dog))")
    >>> print(Binarisation(horizontal=1).transform(tree))
    (NP (DT a) (@NP[DT] (JJ big) (@NP[JJ] (JJ old) (NN dog))))
    >>> print(Binarisation("head", horizontal=1).transform(tree))
    (NP (DT a) (@NP[JJ..NN] (JJ big) (@NP[JJ..NN] (JJ old) (NN dog))))
    >>> Binarisation("left", vertical=2).inverse(Binarisation("left", vertical=2).transform(tree)) == tree
    True
    """

    direction: Literal["right", "left", "head"] = "right"
    horizontal: int | None = 2
    vertical: int = 1

    def __post_init__(self) -> None:
        if self.direction not in ("right", "left", "head"):
            raise ModelError(f"Binarisation(direction=...) must be 'right', 'left' or 'head', got {self.direction!r}")
        h, v = self.horizontal, self.vertical
        if h is not None and (not isinstance(h, int) or isinstance(h, bool) or h < 0):
            raise ModelError(f"Binarisation(horizontal=...) must be an integer of at least 0, or None, got {h!r}")
        if not isinstance(v, int) or isinstance(v, bool) or v < 1:
            raise ModelError(f"Binarisation(vertical=...) must be an integer of at least 1, got {v!r}")

    def transform(self, tree: Tree) -> Tree:
        """The binary tree.

        Raises
        ------
        ModelError
            Where a label begins with ``@`` or holds ``^``, which the new labels use, or where a word has siblings.
        """
        # Nodes with the labels of their ancestors, the nearest first.
        stack: list[tuple[Tree, tuple[str, ...]]] = [(tree, ())]
        order: list[tuple[Tree, str]] = []
        while stack:
            node, above = stack.pop()
            _check_label(node.label)
            if node.is_preterminal:
                order.append((node, node.label))
                continue
            own = (node.label, *above)[: self.vertical]
            order.append((node, ABOVE.join(own)))
            for child in reversed(node.children):
                if isinstance(child, str):
                    raise ModelError(f"the word {child!r} stands beside others below {node.label}; give it a tag")
                stack.append((child, own))
        done: list[Tree] = []
        for node, label in reversed(order):
            if node.is_preterminal:
                done.append(node)
                continue
            size = len(node.children)
            below = done[: -size - 1 : -1]
            del done[-size:]
            names = [child.label for child in node.children if isinstance(child, Tree)]
            done.append(self._binary(label, node.label, names, below))
        return done[0]

    def inverse(self, tree: Tree) -> Tree:
        """The tree that a binary tree came from: new nodes go, and so do names of ancestors.

        Also of trees that no `transform` made, such as a parser's.
        """

        def make(node: Tree, below: list[Tree | str]) -> list[Tree | str]:
            return below if node.label.startswith(NEW) else [Tree(node.label.partition(ABOVE)[0], below)]

        found = rebuilt(tree, make)
        if len(found) != 1 or not isinstance(found[0], Tree):
            raise ModelError(f"the tree's own label {tree.label} is that of a new node, so it has no inverse")
        return found[0]

    def _binary(self, label: str, own: str, names: list[str], below: Sequence[Tree]) -> Tree:
        """Children below a node, two at a time; ``names`` are their labels without ancestors."""
        if len(names) <= 2:
            return Tree(label, below)
        first, last = 0, len(names)
        # From the top down: each step takes off a child at one side and names what remains.
        steps: list[tuple[str, int, bool]] = []
        rest = label
        for left, memory in self._steps(own, names):
            steps.append((rest, first if left else last - 1, left))
            first, last = (first + 1, last) if left else (first, last - 1)
            rest = f"{NEW}{label}[{memory}]"
        current = Tree(rest, below[first:last])
        for name, taken, left in reversed(steps):
            current = Tree(name, (below[taken], current) if left else (current, below[taken]))
        return current

    def _steps(self, own: str, names: list[str]) -> list[tuple[bool, str]]:
        """For each child taken off: whether from the left, and what the label of the rest remembers."""
        n = len(names)
        h = self.horizontal
        if self.direction == "right":
            return [(True, "|".join(names[_after(i, h) : i])) for i in range(1, n - 1)]
        if self.direction == "left":
            return [(False, "|".join(names[n - i : n - _after(i, h)])) for i in range(1, n - 1)]
        head = head_child(own, names)
        first, last = 0, n
        found = []
        for _ in range(n - 2):
            left = first < head
            first, last = (first + 1, last) if left else (first, last - 1)
            # The siblings of the rest that stand farthest from the head, on the side that comes off next.
            if first < head:
                outer = "|".join(names[first : head if h is None else min(head, first + h)])
                found.append((left, f"{outer}..{names[head]}"))
            else:
                outer = "|".join(names[head + 1 if h is None else max(head + 1, last - h) : last])
                found.append((left, f"{names[head]}..{outer}"))
        return found


def _after(i: int, h: int | None) -> int:
    """How many of ``i`` siblings are forgotten."""
    return 0 if h is None else max(0, i - h)


def _check_label(label: str) -> None:
    if label.startswith(NEW) or ABOVE in label:
        raise ModelError(f"label {label!r} must not begin with {NEW!r} or hold {ABOVE!r}, which binary trees use")


def collapse_unaries(tree: Tree, *, join: str = JOIN) -> Tree:
    """A tree in which chains of single children are one node, ``S+VP``; tags stay apart.

    Every span of words then has at most one label. `expand_unaries` is the inverse.

    Examples
    --------
    >>> print(collapse_unaries(Tree.parse("(S (VP (VB Go)))")))
    (S+VP (VB Go))
    """

    def make(node: Tree, below: list[Tree | str]) -> list[Tree | str]:
        if join in node.label and not node.is_preterminal:
            raise ModelError(f"label {node.label!r} must not hold {join!r}, which joins labels")
        if len(below) == 1 and isinstance(only := below[0], Tree) and not only.is_preterminal:
            return [Tree(f"{node.label}{join}{only.label}", only.children)]
        return [Tree(node.label, below)]

    (found,) = rebuilt(tree, make)
    assert isinstance(found, Tree)
    return found


def expand_unaries(tree: Tree, *, join: str = JOIN) -> Tree:
    """The tree that `collapse_unaries` made one node of chains of.

    Examples
    --------
    >>> print(expand_unaries(Tree.parse("(S+VP (VB Go))")))
    (S (VP (VB Go)))
    """

    def make(node: Tree, below: list[Tree | str]) -> list[Tree | str]:
        if node.is_preterminal:
            return [node]
        for label in reversed(node.label.split(join)):
            below = [Tree(label, below)]
        return below

    (found,) = rebuilt(tree, make)
    assert isinstance(found, Tree)
    return found
