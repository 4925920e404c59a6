"""Rules of any length made binary without any loss, for grammars that are written down.

``A -> B C D`` becomes ``A -> B @:C|D`` and ``@:C|D -> C D``, which is certain; rules with the same end share what is
new. A word beside other things, ``A -> 'x' B``, becomes a symbol ``@'x'`` that is this word for certain. Trees lack all
these symbols.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from markovfield.exceptions import ModelError
from markovfield.grammar.binarisation import NEW
from markovfield.grammar.binary_grammar import Rule
from markovfield.grammar.trees import Tree

__all__ = ["REST", "WORD", "Production", "Remainders", "Word", "binary_rules", "long_rules"]

REST, WORD = f"{NEW}:", f"{NEW}'"
_ESCAPES = str.maketrans({"%": "%25", "(": "%28", ")": "%29", "|": "%7C"})


class Word(str):
    """A word on the right of a rule, as against a symbol."""

    __slots__ = ()


class Production(NamedTuple):
    """A rule with any number of symbols and words on its right, and its probability."""

    parent: str
    children: tuple[str, ...]
    probability: float


def _symbol(item: str) -> str:
    """The symbol of a word or symbol on the right of a rule."""
    return f"{WORD}{item.translate(_ESCAPES)}'" if isinstance(item, Word) else item


def _rest(items: Sequence[str]) -> str:
    """The symbol of what remains of a rule: one that its items alone determine."""
    return (
        _symbol(items[0]) if len(items) == 1 else REST + "|".join(_symbol(item).translate(_ESCAPES) for item in items)
    )


def binary_rules(
    productions: Iterable[Production],
) -> tuple[dict[Rule, float], dict[tuple[str, str], float]]:
    """Rules of at most two symbols, and words with the symbol they are made by, with probabilities."""
    rules: dict[Rule, float] = {}
    words: dict[tuple[str, str], float] = {}
    for parent, children, probability in productions:
        if len(children) == 1 and isinstance(children[0], Word):
            words[str(children[0]), parent] = probability
            continue
        name, weight = parent, probability
        for k in range(len(children) - 1):
            rest = _rest(children[k + 1 :])
            rules[name, _symbol(children[k]), rest] = weight
            name, weight = rest, 1.0
        if len(children) == 1:
            rules[parent, children[0]] = probability
        else:
            words.update({(str(item), _symbol(item)): 1.0 for item in children if isinstance(item, Word)})
    return rules, words


def long_rules(
    rules: dict[Rule, float], words: dict[tuple[str, str], float]
) -> list[tuple[str, tuple[str, ...], float]]:
    """The inverse of `binary_rules`."""
    below = {rule[0]: rule[1:] for rule in rules if rule[0].startswith(REST)}
    own = {symbol: Word(word) for word, symbol in words if symbol.startswith(WORD)}
    found = []
    for rule, probability in rules.items():
        if rule[0].startswith(REST):
            continue
        children = list(rule[1:])
        while children[-1] in below:
            children[-1:] = below[children[-1]]
        found.append((rule[0], tuple(own.get(child, child) for child in children), probability))
    found += [(tag, (Word(word),), p) for (word, tag), p in words.items() if not tag.startswith(WORD)]
    return found


@dataclass(frozen=True)
class Remainders:
    """Trees as the rules of a written grammar make them; see the module.

    Examples
    --------
    >>> print(Remainders().transform(Tree("E", [Tree("E", ["1"]), "+", Tree("E", ["2"])])))
    (E (E 1) (@:@'+'|E (@'+' +) (E 2)))
    """

    def transform(self, tree: Tree) -> Tree:
        """The binary tree."""
        done: list[Tree] = []
        for node in reversed(list(tree)):
            if node.label.startswith(NEW):
                raise ModelError(f"label {node.label!r} must not begin with {NEW!r}, which binary trees use")
            if node.is_preterminal:
                done.append(node)
                continue
            items = [child.label if isinstance(child, Tree) else Word(child) for child in node.children]
            trees = [done.pop() if isinstance(c, Tree) else Tree(_symbol(Word(c)), [c]) for c in node.children]
            current = trees[-1]
            for k in range(len(trees) - 2, 0, -1):
                current = Tree(_rest(items[k:]), [trees[k], current])
            done.append(Tree(node.label, [trees[0], current] if len(trees) > 1 else [current]))
        return done[0]
