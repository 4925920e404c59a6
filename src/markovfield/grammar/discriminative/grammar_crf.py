"""A discriminative context-free grammar: a conditional random field on the trees of a treebank grammar."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from markovfield.arrays import FloatArray
from markovfield.grammar.discriminative.grammar_model import GrammarModel
from markovfield.grammar.parser import TreeParser
from markovfield.learning.solvers.stochastic import AdaGrad
from markovfield.structured.objectives.registry import MARGINS
from markovfield.structured.settings import LikelihoodSettings

__all__ = ["GrammarCRF"]

# Charts take long, and rules begin at what the treebank says: a few passes.
TRAINING = AdaGrad(eta0=0.2, passes=3)


@dataclass(kw_only=True, eq=False, repr=False)
class GrammarCRF(LikelihoodSettings, TreeParser):
    """A context-free grammar whose rules and spans have weights: trees given sentences (Murphy 19.6.2.4).

    The grammar is that of the training trees, made binary. The score of a tree is the sum over its rules, of the log of
    their share in the treebank and a weight, and over its constituents, of weights of features of their words, as in
    `SpanParser`: so no rule is normalised, and words on both sides of a constituent count. Without weights it is the
    treebank's PCFG given tags. Sentences are lists of ``(word, tag)``. Chains of single children are one symbol, so
    that no unary rules lead around. A sentence that no tree of the grammar covers is answered with None.

    Parameters
    ----------
    direction, horizontal, vertical
        How trees are made binary, and what symbols remember of siblings and ancestors, as in `Binarisation`.
    min_count, min_word_count
        How often features and words must occur to have weights, as in `SpanParser`.
    objective
        ``"likelihood"``, or ``"hinge"``, whose loss counts brackets that are missing or wrong.
    solver
        ``"auto"`` is AdaGrad with three passes for the likelihood, and Frank-Wolfe steps for the hinge.
    l2, l1, batch_size, rng, n_jobs
        As those of `StructuredClassifier`; l2 may differ, ``{"rules": 1.0, "spans": 0.5}``.

    Notes
    -----
    Sums are exact. A sentence of n words takes n^3 / 6 operations for each pair of children that some rule has, and in
    training 4 n^2 bytes for each symbol that a binary rule makes.

    Examples
    --------
    >>> import markovfield as mf
    >>> trees = mf.io.read_trees(
    ...     "(S (NP (DT the) (NN dog)) (VP (VBD saw) (NP (DT a) (NN cat)))) (S (NP (NN rain)) (VP (VBD fell)))"
    ... )
    >>> parser = GrammarCRF(min_count=1, min_word_count=1, l2=0.1, rng=0).fit(trees)
    >>> print(parser.parse([("a", "DT"), ("dog", "NN"), ("fell", "VBD")]))
    (S (NP (DT a) (NN dog)) (VP (VBD fell)))
    >>> parser.score(trees)
    1.0
    """

    direction: str = "right"
    horizontal: int | None = 1
    vertical: int = 1
    min_count: int = 3
    min_word_count: int = 3
    model_: GrammarModel = field(init=False)

    def _model(self) -> GrammarModel:
        return GrammarModel(self.direction, self.horizontal, self.vertical, self.min_count, self.min_word_count)

    def _chosen_solver(self, objective: Any) -> Any:
        return TRAINING if self.solver == "auto" and objective.name not in MARGINS else self.solver

    def _risk_scores(self, inputs: Any, pool: FloatArray, counts: FloatArray) -> FloatArray:
        # A bracket that is right gains what one that is wrong costs, whichever symbol it is; rules count for nothing.
        first = int(inputs.family.cell_offsets[0])
        operator = self.model_.operator(inputs)
        gain = 2 * operator.gathered(counts[first:]) - 1
        gain[:, 0] = 0.0
        found = np.concatenate([np.zeros(first), operator.spread(gain)])
        return np.where(np.isneginf(pool), -np.inf, found)
