"""What parsers that are trained on trees share: sentences with tags, trees as outputs, scores of brackets."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from markovfield.exceptions import ModelError
from markovfield.grammar.scoring import BracketReport, bracket_report
from markovfield.grammar.trees import Tree
from markovfield.structured.form_estimator import FormEstimator

__all__ = ["TreeParser", "checked_trees", "tagged_sentences"]


def tagged_sentences(X: Any) -> list[tuple[tuple[str, str], ...]]:
    """Sentences as words with tags: given as such, or as trees whose words and tags are taken."""
    if isinstance(X, str | Tree) or not isinstance(X, Iterable):
        raise ModelError(f"sentences must be a list, each of words with tags or a tree, got {type(X).__name__}")
    found = []
    for i, x in enumerate(X):
        if isinstance(x, str) or not isinstance(x, Iterable):
            raise ModelError(f"sentence {i} must be words with tags, as ('dog', 'NN'), got {x!r}")
        pairs = x.pos if isinstance(x, Tree) else tuple(x)
        if not pairs:
            raise ModelError(f"sentence {i} has no words")
        for pair in pairs:
            tagged = isinstance(pair, tuple | list) and len(pair) == 2
            if not tagged or not all(isinstance(one, str) for one in pair):
                raise ModelError(f"sentence {i} must be words with tags, as ('dog', 'NN'), got {pair!r}")
        found.append(tuple((word, tag) for word, tag in pairs))
    return found


def checked_trees(Y: Any, sentences: Sequence[Any]) -> list[Tree]:
    """Trees of some sentences, all words below a tag of their own."""
    found = []
    for i, (tree, sentence) in enumerate(zip(Y, sentences, strict=True)):
        if not isinstance(tree, Tree):
            raise ModelError(f"y must be trees, and entry {i} is {type(tree).__name__}")
        if tree.pos != tuple(sentence):
            raise ModelError(f"tree {i} has other words or tags than its sentence")
        found.append(tree)
    return found


class TreeParser(FormEstimator):
    """An estimator from sentences with tags to trees."""

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, **words: Any) -> Any:
        """Learn weights from trees.

        Parameters
        ----------
        X, y
            Trees alone; or sentences as lists of ``(word, tag)``, and a tree for each.
        sample_weight
            What each tree weighs; one when None.
        words
            ``init``, ``time_limit``, ``callback`` and ``progress``, as everywhere.
        """
        trees = list(X if y is None else y)
        for i, tree in enumerate(trees if y is None else ()):
            if not isinstance(tree, Tree):
                raise ModelError(f"fit takes trees, or sentences and trees, and entry {i} is {type(tree).__name__}")
        return super().fit(tagged_sentences(X), trees, sample_weight, **words)

    def parse(self, sentence: Iterable[tuple[str, str]]) -> Tree | None:
        """The tree of one sentence, given as ``(word, tag)`` pairs; None where there is none."""
        found: Tree | None = self.predict([tuple(sentence)])[0]
        return found

    def report(self, X: Any, y: Any = None, *, decision: str = "map") -> BracketReport:
        """Brackets of predicted trees against given ones, as `bracket_report` counts them."""
        trees = list(X if y is None else y)
        return bracket_report(trees, self.predict(X, decision=decision))

    def score(self, X: Any, y: Any = None) -> float:
        """F1 of labelled brackets, as a share."""
        return self.report(X, y).f1
