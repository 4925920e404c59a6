"""A parser without a grammar: a conditional random field on trees of labelled spans."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from markovfield.arrays import FloatArray
from markovfield.grammar.parser import TreeParser
from markovfield.grammar.span_model import SpanModel
from markovfield.learning.solvers.stochastic import AdaGrad
from markovfield.structured.settings import LikelihoodSettings

__all__ = ["SpanParser"]


# Weights are many and trees are few: some passes with steps for each weight of its own, averaged over the last half.
TRAINING = AdaGrad(eta0=0.3, passes=8)


@dataclass(kw_only=True, eq=False, repr=False)
class SpanParser(LikelihoodSettings, TreeParser):
    """A conditional random field on trees of labelled spans, without a grammar (Murphy 19.6.2.4).

    A span's score for a label is a sum of weights of its features, alone and with that label: its first and last words
    and their tags, those before and after it, its length, its tags where it is short, what is inside. Sentences are
    lists of ``(word, tag)``. Chains of single children are one label, and spans that only make a tree binary have the
    null label. Every sentence has a parse.

    Parameters
    ----------
    direction
        How trees are made binary: ``"right"``, ``"left"`` or ``"head"``, as in `Binarisation`.
    min_count
        In how many spans of training trees a feature must occur to have weights (or in ten times as many spans of any
        kind).
    min_word_count
        How often a word must occur to be told from others that are written like it.
    solver
        AdaGrad with eight passes when nothing is given. `LBFGS` finds the optimum itself, with all trees in memory at
        once: about 8 bytes for each label of each span.
    objective, l2, l1, batch_size, rng, n_jobs
        As those of `StructuredClassifier`.

    Notes
    -----
    Sums are exact. A sentence of n words takes n^3 / 6 operations for its sums and n^2 / 2 times labels times features
    for its scores.

    Examples
    --------
    >>> import markovfield as mf
    >>> trees = mf.io.read_trees(
    ...     "(S (NP (DT the) (NN dog)) (VP (VBD saw) (NP (DT a) (NN cat)))) (S (NP (NN rain)) (VP (VBD fell)))"
    ... )
    >>> parser = SpanParser(min_count=1, min_word_count=1, l2=0.1, rng=0).fit(trees)
    >>> print(parser.parse([("a", "DT"), ("dog", "NN"), ("fell", "VBD")]))
    (S (NP (DT a) (NN dog)) (VP (VBD fell)))
    >>> parser.score(trees)
    1.0
    """

    direction: str = "right"
    min_count: int = 3
    min_word_count: int = 3
    solver: Any = TRAINING

    def _model(self) -> SpanModel:
        return SpanModel(self.direction, self.min_count, self.min_word_count)

    def _risk_scores(self, inputs: Any, pool: FloatArray, counts: FloatArray) -> FloatArray:
        # A bracket that is right gains what one that is wrong costs; the null label does neither.
        gain = np.where(np.isneginf(pool), -np.inf, 2 * counts - 1).reshape(-1, self.model_.n_classes)
        gain[:, 0] = np.where(np.isneginf(gain[:, 0]), -np.inf, 0.0)
        return gain.ravel()
