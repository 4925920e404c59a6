"""A grammar read off trees: binary symbols with names of ancestors, rules, words with tags, and counts of all.

Trees -> `TreebankGrammar.read` -> a `BinaryGrammar` (a rule table), a `Lexicon` (which columns of token scores a word
has) and counts. `sentences_of` and `token_scores` make the token columns of sentences, `TreebankGrammar.binary` the
binary tree of a tree, which `BinaryGrammar.cells` turns into cells and `BinaryGrammar.tree` back. Everything is linear
in the trees.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from markovfield.arrays import FloatArray
from markovfield.exceptions import ModelError
from markovfield.grammar.binarisation import NEW, Binarisation
from markovfield.grammar.binary_grammar import BinaryGrammar, Rule
from markovfield.grammar.lexicon import Lexicon, lexicon_counts
from markovfield.grammar.trees import Tree

__all__ = ["Sentence", "TreebankGrammar", "Way", "checked_treebank", "sentences_of", "token_scores"]

# The start symbol where trees have several labels at their top; trees that a user sees lack it.
TOP = f"{NEW}TOP"


class Way(Protocol):
    """How trees are made binary; see `Binarisation`."""

    def transform(self, tree: Tree) -> Tree:
        """The binary tree."""
        ...


class Sentence(NamedTuple):
    """Words, and the tag of each where it is known."""

    words: tuple[str, ...]
    tags: tuple[str | None, ...]


@dataclass(frozen=True, eq=False)
class TreebankGrammar:
    """What some trees are made of.

    Attributes
    ----------
    way
        How trees were made binary.
    grammar
        Symbols and rules. The start symbol is the label at the top of all trees, or ``@TOP`` where there are several.
    lexicon
        Words with the tags they had, and classes of unknown words.
    rule_counts, word_counts
        ``float64[n_rules]`` and ``float64[n_entries]``: how often each was seen, with what unknown words are given.
    seen_counts
        ``float64[n_entries]``: the same of words without what unknown words and smoothing add.

    Examples
    --------
    >>> tree = Tree.parse("(S (NP (DT a) (JJ big) (NN dog)) (VP (VBD barked)))")
    >>> found = TreebankGrammar.read([tree], Binarisation(vertical=2))
    >>> found.grammar.rules
    [('S', 'NP^S', 'VP^S'), ('NP^S', 'DT', '@NP^S[DT]'), ('@NP^S[DT]', 'JJ', 'NN'), ('VP^S', 'VBD')]
    >>> found.grammar.tokens
    ('DT', 'JJ', 'NN', 'VBD')
    >>> scores = token_scores(found.grammar, found.lexicon, sentences_of([["a", ("wombat", "NN")]]), found.word_counts)
    >>> scores.tolist()
    [[1.0, -inf, -inf, -inf], [-inf, -inf, 0.0, -inf]]
    """

    way: Way
    grammar: BinaryGrammar
    lexicon: Lexicon
    rule_counts: FloatArray
    word_counts: FloatArray
    seen_counts: FloatArray

    @classmethod
    def read(
        cls,
        trees: Sequence[Tree],
        way: Way | None = None,
        *,
        weights: FloatArray | None = None,
        unknown: str = "none",
        rare_count: int = 1,
        smoothing: float = 0.0,
    ) -> TreebankGrammar:
        """Count the rules and words of trees.

        Parameters
        ----------
        trees
            All words below a tag of their own.
        way
            How to make them binary; ``Binarisation()`` when None.
        weights
            What each tree counts; one when None.
        unknown, rare_count, smoothing
            What unknown words are, as in `lexicon_counts`.
        """
        chosen = Binarisation() if way is None else way
        rules: Counter[Rule] = Counter()
        seen: Counter[tuple[str, str]] = Counter()
        tops: dict[str, float] = {}
        for tree, weight in zip(trees, [1.0] * len(trees) if weights is None else weights.tolist(), strict=True):
            if not weight:
                continue
            binary = chosen.transform(tree)
            tops[binary.label] = tops.get(binary.label, 0.0) + weight
            for node in binary:
                if node.is_preterminal:
                    seen[str(node.children[0]), node.label] += weight  # type: ignore[assignment]
                else:
                    rules[node.label, *(child.label for child in node.children)] += weight  # type: ignore
        start = TOP
        if len(tops) == 1:
            (start,) = tops
        counts: dict[Rule, float] = {(TOP, label): count for label, count in tops.items()} if start == TOP else {}
        counts.update(rules)
        words = lexicon_counts(seen, unknown=unknown, rare_count=rare_count, smoothing=smoothing)
        grammar = BinaryGrammar.of(counts, (tag for _, tag in seen), start=start)
        lexicon = Lexicon.of((word, grammar.column_of[tag]) for word, tag in words)
        pairs = [(word, grammar.tokens[t]) for word, t in lexicon.pairs()]
        return cls(
            chosen,
            grammar,
            lexicon,
            np.array([counts[rule] for rule in grammar.rules], np.float64),
            np.array([words[pair] for pair in pairs], np.float64),
            np.array([seen.get(pair, 0.0) for pair in pairs], np.float64),
        )

    def binary(self, tree: Tree) -> Tree:
        """A tree as the grammar makes it, from the start symbol on."""
        return with_start(self.way.transform(tree), self.grammar.start)


def with_start(binary: Tree, start: str) -> Tree:
    """A binary tree below the start symbol, where that is one that trees lack."""
    return Tree(start, [binary]) if start.startswith(NEW) and binary.label != start else binary


def sentences_of(X: Any) -> list[Sentence]:
    """Sentences, each a list of words, of ``(word, tag)`` pairs (None is a tag that is not known), or a tree.

    Trees give their words and tags.

    Raises
    ------
    ModelError
        That names the sentence and the word, for everything else.
    """
    if isinstance(X, str | Tree):
        raise ModelError(f"sentences must be a list of sentences, got {'a string' if isinstance(X, str) else 'a tree'}")
    found = []
    for i, x in enumerate(X):
        if isinstance(x, str):
            raise ModelError(f"sentence {i} must be a list of words, got the string {_short(x)}; split it first")
        if not isinstance(x, Iterable):
            raise ModelError(f"sentence {i} must be a list of words, got {type(x).__name__}")
        words: list[str] = []
        tags: list[str | None] = []
        for k, token in enumerate(x.pos if isinstance(x, Tree) else x):
            word, tag = (token, None) if isinstance(token, str) else _pair(token, i, k)
            if not word or any(c.isspace() for c in word):
                raise ModelError(f"word {k} of sentence {i} must be a text without white space, got {word!r}")
            words.append(word)
            tags.append(tag)
        if not words:
            raise ModelError(f"sentence {i} has no words")
        found.append(Sentence(tuple(words), tuple(tags)))
    return found


def _pair(token: Any, i: int, k: int) -> tuple[str, str | None]:
    given = tuple(token) if isinstance(token, list | tuple) else ()
    if len(given) == 2 and isinstance(given[0], str) and (given[1] is None or isinstance(given[1], str)):
        return given[0], given[1]
    raise ModelError(f"word {k} of sentence {i} must be a text, or a pair as ('dog', 'NN'), got {token!r}")


def _short(text: str) -> str:
    return repr(text if len(text) <= 30 else text[:27] + "...")


def token_scores(
    grammar: BinaryGrammar, lexicon: Lexicon, sentences: Sequence[Sentence], values: FloatArray
) -> FloatArray:
    """Scores of tokens, ``float64[words of all sentences, columns]``: values of the lexicon's entries.

    A word whose tag is given has that tag with a score of 0, and no other; -inf stands for what a word cannot be.
    """
    words = [word for sentence in sentences for word in sentence.words]
    found = lexicon.spread(lexicon.rows(words), values, len(grammar.tokens))
    column = grammar.column_of
    tagged = [(k, tag) for k, tag in enumerate(tag for s in sentences for tag in s.tags) if tag is not None]
    found[[k for k, _ in tagged]] = -np.inf
    known = [(k, column[tag]) for k, tag in tagged if tag in column]
    found[[k for k, _ in known], [t for _, t in known]] = 0.0
    return found


def checked_treebank(trees: Any) -> list[Tree]:
    """Trees as a list, at least one; a `ModelError` names an entry that is none."""
    if isinstance(trees, str | Tree) or not isinstance(trees, Iterable):
        raise ModelError(f"trees must be a list of trees, got {type(trees).__name__}")
    found = list(trees)
    for i, tree in enumerate(found):
        if not isinstance(tree, Tree):
            raise ModelError(f"trees must be a list of trees, and entry {i} is {type(tree).__name__}")
    if not found:
        raise ModelError("there is no tree to read a grammar off")
    return found
